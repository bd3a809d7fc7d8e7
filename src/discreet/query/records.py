"""Rows for a model: a SELECT without aggregates, one record for each unit, everything NULL left out.

The columns become the arguments of sums and the target a key, so that the text is parsed, checked and rewritten as a
question is: no value in the data can make it fail. The records stay inside: only what a private fit makes of them may
be shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlglot
from sqlglot import exp

from discreet.engines.names import closest
from discreet.errors import QueryRefused
from discreet.noise import uniform_integers
from discreet.query.parse import parse

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from discreet.engines import DuckDBEngine
    from discreet.query.catalog import Catalog
    from discreet.query.plan import Block

__all__ = ["Records", "records_of"]


@dataclass(frozen=True)
class Records:
    """How rows for a model are read: one block whose arguments are the features and whose key is the target."""

    block: Block
    features: tuple[str, ...]

    def read(self, engine: DuckDBEngine) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """X and y: for every unit one of its rows without NULL, each with the same chance."""
        columns = [f"CAST({aggregate.argument} AS DOUBLE) AS f{i}" for i, aggregate in enumerate(self.block.aggregates)]
        # the engine says which units are the same: "a" and "a\0" are not
        unit = [] if self.block.row_level else ["DENSE_RANK() OVER (ORDER BY u) AS u"]
        wanted = [*columns, f"{self.block.keys[0].column} AS y", *unit]
        with engine.session() as session:
            table = session.table(f"SELECT {', '.join(wanted)} FROM ({self.block.rows})")
        X = np.column_stack([table.column(f"f{i}").to_numpy() for i in range(len(self.features))]).astype(np.float64)
        y, known = _targets(table.column("y"))
        chosen = np.flatnonzero(np.isfinite(X).all(axis=1) & known)
        if not self.block.row_level:
            units = np.asarray(table.column("u").to_numpy(), dtype=np.int64)[chosen]
            lots = uniform_integers(1 << 62, size=max(1, len(chosen)))[: len(chosen)]
            order = np.lexsort((lots, units))
            first = np.ones(len(order), dtype=bool)
            first[1:] = units[order][1:] != units[order][:-1]
            chosen = np.sort(chosen[order[first]])
        return X[chosen], y[chosen]


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


def records_of(text: str, target: str, catalog: Catalog) -> Records:
    """The rows that a SELECT names, `target` being one of its columns; refuses aggregates and what parse refuses."""
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except sqlglot.errors.ParseError as problem:
        parse(text, catalog)  # says where
        raise QueryRefused("this is no SELECT", advice="write SELECT columns FROM table") from problem
    if not isinstance(tree, exp.Select):
        raise QueryRefused("rows for a model come from one SELECT", advice="write SELECT columns FROM table")
    for node, word in ((exp.AggFunc, "an aggregate"), (exp.Group, "GROUP BY"), (exp.Window, "a window")):
        if tree.find(node) is not None:
            raise QueryRefused(f"rows for a model cannot come from {word}", advice="select columns of rows")
    for part, word in (("limit", "LIMIT"), ("distinct", "DISTINCT"), ("order", "ORDER BY")):
        if tree.args.get(part) is not None:
            raise QueryRefused(f"{word} has no meaning for the rows of a model", advice="leave it out")
    names = [column.alias_or_name for column in tree.expressions]
    if not all(names) or "*" in names or len(set(names)) != len(names):
        raise QueryRefused("every column needs a name of its own", advice="name them, as in SELECT age, x > 5 AS y")
    if target not in names:
        raise QueryRefused(f"the SELECT has no column '{target}' for the target", advice=closest(target, names))
    features = tuple(name for name in names if name != target)
    if not features:
        raise QueryRefused("a model needs a feature beside its target", advice="select more columns")
    inner = tree.sql(dialect="duckdb")
    quoted = {name: exp.to_identifier(name, quoted=True).sql(dialect="duckdb") for name in names}
    sums = ", ".join(f"SUM({quoted[name]})" for name in features)
    question = parse(f"SELECT {quoted[target]}, {sums} FROM ({inner}) AS rows GROUP BY {quoted[target]}", catalog)
    if len(question.blocks) != 1 or len(question.blocks[0].aggregates) != len(features):
        raise QueryRefused("rows for a model come from one SELECT over people", advice="leave out UNION ALL")
    block = question.blocks[0]
    if block.row_level and block.rows_per_unit != 1:
        raise QueryRefused("one row would become several records", advice="leave out UNION ALL and joins")
    return Records(block, features)
