"""Rows for a model: a SELECT without aggregates, one record for each unit, everything NULL left out.

The columns become the arguments of sums and the target a key, so that the text is parsed, checked and rewritten as a
question is: no value in the data can make it fail. The records stay inside: only what a private fit makes of them may
be shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from discreet.engines.names import closest
from discreet.errors import InvalidArgument, QueryRefused
from discreet.noise import uniform_integers
from discreet.query.parse import parse, read_rows, relation_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from discreet.engines import DuckDBEngine
    from discreet.query.catalog import Catalog
    from discreet.query.plan import Block, Key
    from discreet.query.sql.text import Source

__all__ = ["Records", "records_of"]

_LONGEST = 100
"""A text of more characters is no label: an array of texts takes as much room for each as for the longest."""


@dataclass(frozen=True)
class Records:
    """How rows for a model are read: one block whose arguments are the features and whose key is the target, if any.

    `target` is an array of no labels, of the dtype that the labels will have.
    """

    block: Block
    features: tuple[str, ...]
    target: NDArray[Any] | None = None

    def read(self, engine: DuckDBEngine) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        """X and y: for every unit one of its rows without NULL, each with the same chance; without a target, no y."""
        columns = [f"CAST({aggregate.argument} AS DOUBLE) AS f{i}" for i, aggregate in enumerate(self.block.aggregates)]
        # the engine says which units are the same: "a" and "a\0" are not
        unit = [] if self.block.row_level else ["DENSE_RANK() OVER (ORDER BY u) AS u"]
        labels = [f"{_label(key)} AS y" for key in self.block.keys]
        wanted = [*columns, *labels, *unit]
        with engine.session() as session:
            table = session.table(f"SELECT {', '.join(wanted)} FROM ({self.block.rows})")
        X = np.column_stack([table.column(f"f{i}").to_numpy() for i in range(len(self.features))]).astype(np.float64)
        y, known = _targets(table.column("y")) if labels else (None, np.ones(len(X), dtype=bool))
        chosen = np.flatnonzero(np.isfinite(X).all(axis=1) & known)
        if not self.block.row_level:
            units = np.asarray(table.column("u").to_numpy(), dtype=np.int64)[chosen]
            lots = uniform_integers(1 << 62, size=max(1, len(chosen)))[: len(chosen)]
            order = np.lexsort((lots, units))
            first = np.ones(len(order), dtype=bool)
            first[1:] = units[order][1:] != units[order][:-1]
            chosen = np.sort(chosen[order[first]])
        return X[chosen], None if y is None else y[chosen]


def _label(key: Key) -> str:
    """SQL of a label, which is NULL if it is too long."""
    if key.sql_type != "VARCHAR":
        return key.column
    return f"CASE WHEN length({key.column}) <= {_LONGEST} THEN {key.column} END"


def _targets(column: pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The targets, of a dtype that the column's type decides and no value in it, and which of them are there."""
    import pyarrow as pa

    known = ~np.asarray(column.is_null().to_numpy(), dtype=bool)
    kind, values = column.type, column.to_pylist()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_uint64(kind):
        y: NDArray[Any] = np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
        return y, known & np.isfinite(y)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        plain = np.bool_ if pa.types.is_boolean(kind) else np.int64
        return np.array([value or 0 for value in values], dtype=plain), known
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array([value or "" for value in values], dtype=np.str_), known
    y = np.empty(len(values), dtype=object)
    y[:] = values
    return y, known


def records_of(text: str, target: str | None, catalog: Catalog) -> Records:
    """The rows that a SELECT names, `target` being one of its columns; refuses what parse refuses.

    They are about people: as they are, aggregated for each of them, or with windows within each. Refusals point into
    the text as it was written.
    """
    source, tree = read_rows(text, catalog)
    _check_shape(source, tree)
    relation = relation_of(source, tree, catalog)
    if relation.level == "released":
        raise source.refusal(
            "rows for a model cannot come from an aggregate or DISTINCT over people",
            advice="select columns of rows, or aggregate for each of them: GROUP BY the unit column",
            at=tree,
        )
    if not relation.private:
        raise QueryRefused(
            "these are no rows of people", advice="fit the model to public rows yourself: that costs nothing"
        )
    names = [column.alias_or_name for column in tree.expressions]
    if not all(names) or "*" in names or len({name.lower() for name in names}) != len(names):
        raise QueryRefused("every column needs a name of its own", advice="name them, as in SELECT age, x > 5 AS y")
    if target is not None and not isinstance(target, str):
        raise InvalidArgument("target", target, "name one column of the SELECT, as text")
    if target is not None and target not in names:
        raise QueryRefused(f"the SELECT has no column '{target}' for the target", advice=closest(target, names))
    features = tuple(name for name in names if name != target)
    if not features:
        raise QueryRefused("a model needs a feature beside its target", advice="select more columns")
    labels = None
    for column, name, one in zip(tree.expressions, names, relation.fields, strict=True):
        kind = one.value.kind
        if name == target:
            if kind not in _LABELS:
                raise source.refusal(
                    f"the target '{name}' is {one.value.type.words}", advice="make it a number or a text", at=column
                )
            if one.value.is_unit:
                raise source.refusal(
                    f"the target '{name}' says who it is", advice="choose something to learn", at=column
                )
            labels = np.zeros(0, dtype=_LABELS[kind])
        elif kind not in _NUMBERS:
            raise source.refusal(
                f"the feature '{name}' must be a number, and it is {one.value.type.words}",
                advice="encode it by public rules: CASE WHEN city = 'Bonn' THEN 1 ELSE 0 END AS in_bonn, YEAR(day)",
                at=column,
            )
    try:
        block = _block(tree, target, names, features, catalog)
    except QueryRefused as refused:  # it points into SQL that nobody wrote
        raise QueryRefused(refused.reason, advice=refused.advice) from None
    return Records(block, features, labels)


_NUMBERS = ("integer", "float", "decimal", "boolean", "null")
_LABELS: dict[str, Any] = {
    "integer": np.float64,
    "float": np.float64,
    "decimal": np.float64,
    "boolean": np.bool_,
    "text": np.str_,
}


def _check_shape(source: Source, tree: exp.Expr) -> None:
    """Refuse what is no list of rows."""
    if not isinstance(tree, exp.Select):
        raise source.refusal("rows for a model come from one SELECT", advice="write SELECT columns FROM table", at=tree)
    for part, word in (("limit", "LIMIT"), ("offset", "OFFSET"), ("order", "ORDER BY")):
        if (found := tree.args.get(part)) is not None:
            raise source.refusal(f"{word} has no meaning for the rows of a model", advice="leave it out", at=found)


def _block(
    tree: exp.Select, target: str | None, names: list[str], features: tuple[str, ...], catalog: Catalog
) -> Block:
    """The one block of a question that sums the features for every target."""
    quoted = {name: exp.to_identifier(name, quoted=True).sql(dialect="duckdb") for name in names}
    sums = ", ".join(f"SUM({quoted[name]})" for name in features)
    key = ("", "") if target is None else (f"{quoted[target]}, ", f" GROUP BY {quoted[target]}")
    question = parse(f"SELECT {key[0]}{sums} FROM ({tree.sql(dialect='duckdb')}) AS rows{key[1]}", catalog)
    if len(question.blocks) != 1:
        raise QueryRefused(
            "rows for a model come from one SELECT over people", advice="leave out subqueries and DISTINCT"
        )
    block = question.blocks[0]
    if len(block.aggregates) != len(features):
        raise QueryRefused("two features are the same", advice="select each once")
    if len(block.keys) != (target is not None):
        raise QueryRefused("the target must be one column", advice="name a column of the SELECT")
    if block.row_level and block.rows_per_unit != 1:
        raise QueryRefused("one row would become several records", advice="leave out UNION ALL and joins")
    return block
