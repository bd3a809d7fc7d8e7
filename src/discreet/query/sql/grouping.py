"""GROUP BY and aggregates: a block where people are aggregated, exact SQL for each person and for noisy answers.

Three cases, by what is aggregated. Rows of people, with the unit among the keys: the aggregates of each person, which
stay that person's rows. Rows of people otherwise: a `Block`, the only place where something about people leaves the
engine, and only with noise. Noisy answers and public tables: ordinary SQL.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.plan import Aggregate, Block, Key
from discreet.query.sql import exact
from discreet.query.sql.aggregates import Call, calls_of, has_aggregate, is_aggregate
from discreet.query.sql.apart import tells_units_apart
from discreet.query.sql.days import MOST_DATES
from discreet.query.sql.domain import public_values
from discreet.query.sql.expressions import as_text
from discreet.query.sql.measure import argument_of
from discreet.query.sql.pairs import is_pair, spelled_out
from discreet.query.sql.possible import Possible, possible
from discreet.query.sql.relation import Field, Relation, Step, numbered, with_public
from discreet.query.sql.scope import Rows
from discreet.query.sql.types import BIGINT, DATE, DOUBLE, HUGEINT, TIMESTAMP
from discreet.query.sql.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.query.sql.planner import Names, Planner

__all__ = ["Grouping"]

RESULTS = {"count": BIGINT, "count_units": BIGINT, "count_distinct": BIGINT, "avg": DOUBLE}
KINDS = {"date": DATE, "timestamp": TIMESTAMP}


class Grouping:
    """One SELECT with aggregates, from its rows to the relation above them."""

    def __init__(
        self, planner: Planner, relation: Relation, rows: Rows, aliases: Mapping[str, exp.Expr], names: Names
    ) -> None:
        self.planner, self.relation, self.rows, self.aliases = planner, relation, rows, aliases
        self.mark = planner.mark()
        self.keys: dict[str, tuple[Value, exp.Expr, Value]] = {}  # by SQL: inside, as written, outside
        self.aggregates: dict[tuple[object, ...], Aggregate] = {}
        self.arguments: dict[str, str] = {}
        self.exact: dict[str, str] = {}
        self.conditions: list[str] = []
        self.per_unit = False
        self.outer = _Outer(self, names)
        self.outer.windows = True  # no keys: one row that is released or public

    def add_keys(self, keys: list[tuple[exp.Expr, Value]]) -> None:
        """The columns of GROUP BY."""
        self.per_unit = self.relation.level == "unit" and any(value.is_unit for _, value in keys)
        self.outer.windows = not self.per_unit
        for node, value in keys:
            if value.sql in self.keys or value.constant:
                continue
            if not self.per_unit and tells_units_apart(node, self.rows):
                raise self.planner.source.refusal(
                    "every person would be a group of their own",
                    advice="group by something that people share; for numbers of each person, GROUP BY the unit column "
                    "as it is in a subquery, and aggregate over people next",
                    at=node,
                )
            inside = _key_value(value)
            if self.per_unit or self.relation.level == "public":  # of other groups the engine shows the keys
                inside = self.planner.with_one_look(inside, node)
            is_unit = self.per_unit and value.is_unit
            outside = replace(
                value,
                sql=f"{self.mark}.u" if is_unit else f"{self.mark}.k{len(self.keys)}",
                type=inside.type,
                constant=False,
                python=None,
                inputs=None,
                is_unit=is_unit,
                origin=None,
            )
            self.keys[value.sql] = (inside, node, outside)

    # ── what stands above the rows ────────────────────────────────────────────────────────────────────────────────────

    def fields(self, shown: list[tuple[str, exp.Expr | None, Value | None]]) -> tuple[Field, ...]:
        """The columns of the SELECT list, over keys and aggregates."""
        fields = []
        for name, node, value in shown:
            if value is not None:  # a column of *
                if value.constant:
                    fields.append(Field(name, "", value))
                    continue
                if value.sql not in self.keys:
                    raise self._not_a_key(name, None)
                fields.append(Field(name, "", self.keys[value.sql][2]))
            else:
                assert node is not None
                fields.append(Field(name, "", self.outer.value(node)))
        return tuple(fields)

    def having(self, node: exp.Expr | None) -> None:
        """HAVING, as a condition on the answer."""
        if node is not None:
            self.outer.windows = False
            self.conditions.append(self.outer.truth(node.this).sql)
            self.outer.windows = not self.per_unit

    def of(self, node: exp.Expr) -> Value | None:
        """The key or the aggregate that a node is, or None if it is made of such."""
        if is_pair(node):
            return self.outer.value(spelled_out(self.rows, node, bounded=self.relation.private and not self.per_unit))
        if is_aggregate(node):
            return self._measured(calls_of(self.planner.source, node))
        if isinstance(node, exp.Window | exp.Subquery | exp.Literal | exp.Boolean | exp.Null) or has_aggregate(node):
            return None
        if isinstance(node, exp.Column) and not self.rows.find(node):
            if node.table or node.name.lower() not in self.aliases:
                return self.rows.value(node)  # refuses, and offers the columns that there are
            return None
        columns = list(node.find_all(exp.Column))
        if columns:
            for _, written, outside in self.keys.values():  # a subquery is planned anew each time that it is met
                if node in (written, self._behind(written)):
                    return outside
        if node.find(exp.Query) or not columns or not all(self.rows.find(column) for column in columns):
            return None
        value = self.rows.value(node)
        if value.sql in self.keys:
            return self.keys[value.sql][2]
        if isinstance(node, exp.Column):
            if not node.table and node.name.lower() in self.aliases:
                return None
            raise self._not_a_key(node.name, node)
        return None

    def _behind(self, key: exp.Expr) -> exp.Expr | None:
        """What a key is in the SELECT list, if it is a name of that and no column."""
        if not isinstance(key, exp.Column) or key.table or self.rows.find(key):
            return None
        return self.aliases.get(key.name.lower())

    def _not_a_key(self, name: str, node: exp.Expr | None) -> Exception:
        found = self.rows.find(node) if isinstance(node, exp.Column) else []
        numeric = all(one.value.type.numeric for one in found)
        return self.planner.source.refusal(
            f"the column '{name}' is neither in GROUP BY nor inside an aggregate",
            advice=f"add it to GROUP BY, or write for example {'AVG(' if numeric else 'COUNT(DISTINCT '}{name})",
            at=node,
        )

    def _measured(self, call: Call) -> Value:
        if call.listed:
            raise self.planner.source.refusal(
                "several quantiles at once are several columns",
                advice="let them stand alone in the SELECT list, or ask for one probability each",
                at=call.node,
            )
        if self.relation.private and not self.per_unit:
            return self._private(call)
        value, sql = exact.aggregate(self.rows, call, self.relation)
        name = next((name for name, known in self.exact.items() if known == sql), f"a{len(self.exact)}")
        self.exact[name] = sql
        of_unit = self.per_unit and all(inside.of_unit for inside, _, _ in self.keys.values())
        return replace(value, sql=f"{self.mark}.{name}", of_unit=of_unit, public=self.relation.level == "public")

    def _private(self, call: Call) -> Value:
        argument = argument_of(self.rows, call, self.relation)
        column = None
        if argument.sql is not None:
            column = self.arguments.setdefault(argument.sql, f"x{len(self.arguments)}")
        probability = call.probabilities[0] if call.probabilities else None
        key = (argument.function, column, probability)
        found = self.aggregates.get(key)
        if found is None:
            found = Aggregate(
                argument.function,
                f"a{len(self.aggregates)}",
                self.planner.source.written(call.node),
                column,
                argument.bounds,
                probability,
                argument.kind,
                self.planner.source.written(call.argument) if call.argument is not None else "",
                argument.values,
            )
            self.aggregates[key] = found
        type_ = RESULTS.get(found.function, DOUBLE)
        if found.function in ("min", "max", "quantile"):
            type_ = KINDS.get(
                found.kind, BIGINT if found.kind == "integer" and found.function != "quantile" else DOUBLE
            )
        elif found.function == "sum" and found.kind == "integer":
            type_ = HUGEINT
        return Value(f"{self.mark}.{found.column}", type_, limits=type_.range, origin=(-1, found.column))

    # ── the relation below ────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, fields: tuple[Field, ...]) -> Relation:
        """The relation of the whole SELECT."""
        if not self.relation.private:
            return self._ordinary(fields)
        return self._of_each_unit(fields) if self.per_unit else self._block(fields)

    def _select(self, first: list[tuple[str, str]]) -> str:
        keys = [
            (inside.sql, f"k{i}") for i, (inside, _, outside) in enumerate(self.keys.values()) if not outside.is_unit
        ]
        columns = [*first, *keys, *((sql, name) for name, sql in self.exact.items())]
        select = self.relation.select(columns)
        names = [name for _, name in (*first, *keys)]
        grouped = [str(i + 1) for i in range(len(names))]
        return f"{select} GROUP BY {', '.join(grouped)}" if names else select

    def _of_each_unit(self, fields: tuple[Field, ...]) -> Relation:
        assert self.relation.unit is not None
        unit = replace(self.relation.unit, sql=f"{self.mark}.u", inputs=None, values=None)
        alone = all(inside.is_unit for inside, _, _ in self.keys.values())
        words = "one row for each unit" if alone else "one row for each unit and combination of keys"
        return replace(
            self.relation,
            source=f"({self._select([(self.relation.unit.sql, 'u')])}) AS {self.mark}",
            fields=fields,
            where=tuple(self.conditions),
            unit=unit,
            rows_per_unit=1 if alone else None,
            scan=not self.conditions,
            declared=self.relation.declared,
            step=Step("aggregate for each unit", words, (self.relation.step,)),
        )

    def _ordinary(self, fields: tuple[Field, ...]) -> Relation:
        return replace(
            self.relation,
            source=f"({self._select([])}) AS {self.mark}",
            fields=fields,
            where=tuple(self.conditions),
            scan=not self.conditions,
            single=not self.keys and not self.conditions,
            step=Step("aggregate the answer", "", (self.relation.step,)),
        )

    def _block(self, fields: tuple[Field, ...]) -> Relation:
        shown = [(inside, outside.sql) for inside, _, outside in self.keys.values()]
        tied = possible(shown, self.relation.listings)
        block, step = self._make_block(tied)
        if block in self.planner.blocks:
            index = self.planner.blocks.index(block)
        else:
            index = len(self.planner.blocks)
            self.planner.blocks.append(block)
            self.planner.steps.append(step)
        placed = tuple(
            replace(one, value=replace(one.value, origin=(index, one.value.origin[1])))
            if one.value.origin is not None and one.value.origin[0] == -1
            else one
            for one in fields
        )
        conditions = [*self.conditions, *(one.condition for one in tied)]
        return Relation(
            f"noisy_{index} AS {self.mark}",
            placed,
            "released",
            where=tuple(conditions),
            tables=self.relation.tables,
            single=not self.keys and not conditions,
            scan=not conditions,
            step=Step(f"noisy_{index}"),
        )

    def _make_block(self, tied: list[Possible]) -> tuple[Block, Step]:
        relation, source = self.relation, self.planner.source
        if not self.keys and not self.aggregates:
            raise source.refusal("nothing is asked of the rows", advice="add an aggregate such as COUNT(*)")
        row_level = relation.level == "row"
        if row_level and relation.rows_per_unit is None:
            raise source.refusal(
                "one row could appear any number of times here", advice="leave out the join, or name a unit column"
            )
        notes = []
        if not row_level:
            notes.append("rows without a unit are not counted")
        for name in dict.fromkeys(relation.tables):
            table = self.planner.catalog.tables[name.lower()]
            notes += table.notes
            if table.one_row:
                merged = "if there are several, each column has its smallest value"
                several = "if there are several, all are counted, in one group by its columns"
                once = merged if relation.rows_per_unit is not None else several
                notes.append(f"of {table.name}, a unit has one row by the policy; {once}")
        keys = []
        for i, (inside, node, _) in enumerate(self.keys.values()):
            label = source.written(node)
            values = public_values(inside)
            if values is not None:
                one = "one public value is" if len(values) == 1 else f"{len(values)} public values are"
                other = "other values are" if None in values else "other values, and NULL, are"
                notes.append(f"of {label}, {one} shown; rows with {other} not counted")
            elif inside.type.temporal:
                notes.append(
                    f"to see every {label}, declare bounds of the column in the policy, and group by so large a period "
                    f"that there are at most {MOST_DATES}"
                )
            elif inside.kind in ("float", "decimal"):
                notes.append(
                    f"few people share a value of {label}: group by buckets, such as FLOOR(x / 10) * 10, of a column "
                    "with bounds"
                )
            meant = self.aliases.get(node.name.lower(), node) if isinstance(node, exp.Column) else node
            inferred = values is not None and None not in values and _may_be_null(meant, inside)
            keys.append(Key(f"k{i}", inside.type.name, label, values, inside.of_unit, inferred))
        for together in tied:
            names = " and ".join(keys[i].label for i in together.places)
            notes.append(f"of {names}, those combinations are shown that can be")
        columns = [] if relation.unit is None else [(relation.unit.sql, "u")]
        columns += [(inside.sql, f"k{i}") for i, (inside, _, _) in enumerate(self.keys.values())]
        alone = {"": self._rows(columns)}
        alone |= {name: self._rows([*columns, (sql, "x")]) for sql, name in self.arguments.items()}
        columns += [(sql, name) for sql, name in self.arguments.items()]
        block = Block(
            self._rows(columns),
            tuple(keys),
            tuple(self.aggregates.values()),
            relation.rows_per_unit,
            row_level,
            relation.tables,
            tuple(notes),
            tuple(alone.items()),
            relation.vain,
        )
        grouped = f" by {', '.join(key.label for key in keys)}" if keys else ""
        what = ", ".join(one.label for one in block.aggregates) or "which groups exist"
        most = relation.rows_per_unit
        words = (
            "any number of rows for each unit"
            if most is None
            else f"at most {most} row{'s' * (most > 1)} for each unit"
        )
        return block, Step(f"measure {what}{grouped}", f"{words}; bounded, then noise", (relation.step,))

    def _rows(self, columns: list[tuple[str, str]]) -> str:
        """SQL of the rows with these columns."""
        relation, tables = self.relation, self.planner.catalog.tables
        rows = relation.select(columns)
        if relation.rows_per_unit is not None:
            for plain, enforced in relation.declared:
                rows = rows.replace(plain, enforced)
        return numbered(with_public(rows, lambda name: tables[name].relation))


class _Outer(Rows):
    """Expressions over the groups: keys, aggregates, names of the SELECT list, and what is made of them."""

    def __init__(self, grouping: Grouping, names: Names) -> None:
        planner, relation = grouping.planner, grouping.relation
        above = replace(relation, level="public" if relation.level == "public" else "released", fields=())

        def subquery(node: exp.Expr) -> Value:
            # Whether it is about single units is known once the keys are.
            return planner.inner(node, names, replace(above, level="unit") if grouping.per_unit else above)

        super().__init__(planner.source, above, aliases=grouping.aliases, intercept=grouping.of, subquery=subquery)
        self._below = grouping.rows

    def named(self, text: str) -> str | None:
        """The name of the SELECT list, or the column below, that a text is."""
        return text if text.lower() in self.aliases else self._below.named(text)


def _may_be_null(node: exp.Expr, value: Value) -> bool:
    """Whether a key with values that nobody declared is NULL where its column is: truth values, parts of dates."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return value.kind == "boolean"
    compares = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between, exp.In, exp.Like)
    parts = (exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.DayOfMonth, exp.Extract, exp.Hour)
    return isinstance(node, (*compares, *parts))


def _key_value(value: Value) -> Value:
    """A key in the type that the answer shows: whole numbers fit BIGINT or are NULL, enumerations are texts."""
    if value.type == HUGEINT or value.type.name == "UBIGINT":
        low, high = BIGINT.range
        values = tuple(one for one in value.values or () if one is None or low <= one <= high)
        sql = f"TRY_CAST({value.sql} AS BIGINT)"
        return replace(value, sql=sql, type=BIGINT, limits=BIGINT.range, values=values or None)
    return as_text(value) if value.kind == "text" else value
