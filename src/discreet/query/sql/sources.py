"""FROM: tables, subqueries, WITH and joins, each with what one unit can change through it."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql.arithmetic import MOST_VALUES
from discreet.query.sql.days import MOST_DATES
from discreet.query.sql.relation import PUBLIC_OPEN, Field, Relation, Step, column_sql, is_plain, public_mark, settled
from discreet.query.sql.text import closest, quoted
from discreet.query.sql.types import TIMESTAMP, type_named
from discreet.query.sql.value import EPOCH, EVERYWHERE, Input, Value, number_of

if TYPE_CHECKING:
    from discreet.query.catalog import Column, Table
    from discreet.query.sql.planner import Names, Planner

__all__ = ["from_clause", "joined"]


def from_clause(plan: Planner, node: exp.Select, names: Names) -> Relation:
    """The relation that FROM and its joins make."""
    first = node.args.get("from_")
    if first is None:
        return Relation("", (), "public", single=True, step=Step("one row without a table"))
    relation = table_like(plan, first.this, names)
    where = node.args.get("where")
    equalities = [part for part in _conjuncts(where.this) if isinstance(part, exp.EQ)] if where is not None else []
    for join in node.args.get("joins") or []:
        relation = joined(plan, relation, join, names, equalities)
    return relation


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    return [part.unnest() for part in parts]


def table_like(plan: Planner, node: exp.Expr, names: Names) -> Relation:
    """What stands in FROM or after JOIN."""
    plan.count(node)
    if isinstance(node, exp.Subquery):
        plan.only(node, {"this", "alias", "with_"})
        alias = _alias(plan, node)
        relation = plan.query(node.this, plan.with_names(node, names))
        return relation.named(alias)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise plan.source.refusal(
            "this cannot stand in FROM",
            advice="name a table of the catalog; files and table functions cannot be read from a question",
            at=node,
        )
    plan.only(node, {"this", "alias", "db", "catalog"})
    name = node.name
    if node.args.get("db") is not None:
        raise plan.source.refusal(
            "tables have no schema here",
            advice=closest(name, (one.name for one in plan.catalog.tables.values())),
            at=node,
        )
    alias = _alias(plan, node) or name.lower()
    if name.lower() in names:
        return plan.named_query(name.lower(), names, node).named(alias)
    table = plan.catalog.tables.get(name.lower())
    if table is None:
        known = [*(one.name for one in plan.catalog.tables.values()), *names]
        raise plan.source.refusal(f"there is no table '{name}'", advice=closest(name, known), at=node)
    return scan(plan, table).named(alias)


def _alias(plan: Planner, node: exp.Expr) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    if alias.args.get("columns"):
        raise plan.source.refusal(
            "column names after a table alias are not supported", advice="use AS in the SELECT list", at=alias
        )
    return str(alias.name).lower()


def scan(plan: Planner, table: Table) -> Relation:
    """All rows of a table. Rows without a unit are dropped: they are nobody's, so nobody is protected by them."""
    mark = plan.mark()
    public = table.level == "public"
    fields = tuple(
        Field(column.name, table.name.lower(), _column(table, column, column_sql(mark, column.name)))
        for column in table.columns
    )
    name = public_mark(table.name.lower()) if public else table.relation
    source = f"{name} AS {mark}"
    if table.level != "unit":
        level = "public" if public else "row"
        words = "public: no person is in it" if public else "each row is a unit of its own"
        return Relation(
            source,
            fields,
            level,
            rows_per_unit=None if public else 1,
            tables=() if public else (table.name,),
            public_tables=(table.name,) if public else (),
            scan=True,
            step=Step(f"table {table.name}", words),
        )
    unit = next(one.value for one in fields if one.value.is_unit)
    declared: tuple[tuple[str, str], ...] = ()
    words = "a unit may have any number of rows"
    if table.one_row:
        # Where a unit has several rows after all, one is made of them, in a way that no order of rows can change.
        others = [quoted(one.name) for one in fields if not one.value.is_unit]
        shown = ", ".join([quoted(str(table.unit)), *(f"MIN({other}) AS {other}" for other in others)])
        enforced = f"(SELECT {shown} FROM {table.relation} GROUP BY {quoted(str(table.unit))}) AS {mark}"
        declared = ((source, enforced),)
        words = "declared to have one row for each unit"
    return Relation(
        source,
        fields,
        "unit",
        where=(f"{unit.sql} IS NOT NULL",),
        unit=unit,
        rows_per_unit=1 if table.one_row else None,
        tables=(table.name,),
        scan=True,
        declared=declared,
        step=Step(f"table {table.name}", f"unit {table.unit}; rows without one are dropped; {words}"),
    )


def _column(table: Table, column: Column, sql: str) -> Value:
    type_ = type_named(column.sql_type)
    if type_.name in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"):  # the clock of the engine is UTC
        sql, type_ = f"TRY_CAST({sql} AS TIMESTAMP)", TIMESTAMP
    is_unit = table.level == "unit" and table.unit is not None and column.name.lower() == table.unit.lower()
    bounds = EVERYWHERE
    if column.bounds is not None and (type_.numeric or type_.temporal):
        bounds = (number_of(column.bounds[0]), number_of(column.bounds[1]))
    values = _listed(column, type_.kind, bounds)
    return Value(
        sql,
        type_,
        bounds=(0.0, 1.0) if type_.kind == "boolean" else bounds,
        limits=type_.range,
        # How a FLOAT or a DECIMAL reads as a DOUBLE is for the engine to say, when it lists the values of the key.
        values=None if type_.kind == "decimal" or type_.name == "FLOAT" else values,
        inputs=None if values is None else (Input(sql, type_.name, values),),
        of_unit=is_unit or table.one_row,
        is_unit=is_unit,
        public=table.level == "public",
        weight=1,
        unique=table.level == "public" and column.unique,
    )


def _listed(column: Column, kind: str, bounds: tuple[float, float]) -> tuple[Any, ...] | None:
    """The public values of a column: its declared keys, or everything between its bounds if that is little."""
    if column.keys is not None:
        return tuple(column.keys)
    if kind == "boolean":
        return (False, True)
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if kind == "integer" and high - low < MOST_VALUES:
        return tuple(range(math.ceil(low), math.floor(high) + 1))
    if kind == "date" and high - low < MOST_DATES:
        return tuple(EPOCH + dt.timedelta(days=day) for day in range(int(low), int(high) + 1))
    return None


# ── joins ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Sides:
    left: Relation
    right: Relation
    node: exp.Join
    side: str
    alone: bool  # the one condition there is


def joined(plan: Planner, left: Relation, node: exp.Join, names: Names, equalities: list[exp.EQ]) -> Relation:
    """The rows of both sides of a join; `equalities` are those that WHERE has for joins without a condition."""
    plan.only(node, {"this", "on", "using", "side", "kind", "method"})
    method, side, kind = (str(node.args.get(part) or "").upper() for part in ("method", "side", "kind"))
    if method or kind not in ("", "INNER", "CROSS", "OUTER"):
        raise plan.source.refusal(
            f"{method or kind} JOIN is not supported", advice="write INNER JOIN or LEFT JOIN with ON or USING", at=node
        )
    right = table_like(plan, node.this, names)
    condition = node.args.get("on")
    using = [identifier.name for identifier in node.args.get("using") or []]
    _allow(plan, left, right, side, node)
    if left.tail or not left.source or any(one.value.window for one in left.fields):
        left = settled(left, plan.mark())
    plain = right.scan and not right.tail and all(is_plain(one.value) for one in right.fields)
    if not plain or (side == "FULL" and right.where):
        right = settled(right, plan.mark())
    if side in ("RIGHT", "FULL") and (left.where or not all(is_plain(one.value) for one in left.fields)):
        left = settled(left, plan.mark())
    both = replace(left, fields=left.fields + right.fields, level=left.level if left.private else right.level)
    conditions = [plan.rows(both, names, {}).truth(condition).sql] if condition is not None else []
    pairs = _pairs(plan, both, condition, names)
    for column in using:
        one, other = _find(plan, left, column, node), _find(plan, right, column, node)
        conditions.append(_equal(plan, one, other, node))
        pairs.append((one, other))
    if condition is None and not using and side:
        raise plan.source.refusal(f"{side} JOIN needs a condition", advice="add ON or USING", at=node)
    if not conditions and not side:  # FROM a, b WHERE a.u = b.u
        rows = plan.rows(both, names, {})
        found = [(rows.quietly(part.left), rows.quietly(part.right)) for part in equalities]
        pairs += [(one, other) for one, other in found if one is not None and other is not None]
    alone = len(using) + (len(_conjuncts(condition)) if condition is not None else 0) == 1
    both = _combined(plan, _Sides(left, right, node, side, alone), conditions, pairs)
    if using:
        both = _merged(both, left, right, using, side)
    return both


def _allow(plan: Planner, left: Relation, right: Relation, side: str, node: exp.Join) -> None:
    """Refuses joins through which a row would belong to nobody, to two people, or to an answer and a person."""
    levels = {left.level, right.level}
    if levels & {"unit", "row"}:
        for one in (left, right):
            plan.fixed(one, node)
    if levels & {"unit", "row"} and "released" in levels:
        raise plan.source.refusal(
            "rows of people are joined with an answer that is already aggregated",
            advice="ask the two questions one after the other, or aggregate both sides before joining them",
            at=node,
        )
    if levels in ({"row"}, {"unit", "row"}):
        raise plan.source.refusal(
            "tables in which every row is a unit cannot be joined with each other",
            advice="name a unit column for both tables in the policy",
            at=node,
        )
    orphans = {"RIGHT": (right,), "LEFT": (left,), "FULL": (left, right), "": ()}.get(side, ())
    if levels & {"unit", "row"} and any(one.level == "public" for one in orphans):
        raise plan.source.refusal(
            f"this {side} JOIN keeps rows of the public table that belong to no unit",
            advice="put the table about people on the side that is kept (people LEFT JOIN public), or use JOIN",
            at=node,
        )
    if left.level == right.level == "unit" and side in ("RIGHT", "FULL"):
        raise plan.source.refusal(
            f"{side} JOIN of two tables about people is not supported", advice="use JOIN or LEFT JOIN", at=node
        )


def _pairs(plan: Planner, both: Relation, condition: exp.Expr | None, names: Names) -> list[tuple[Value, Value]]:
    """The pairs of values that the condition equates."""
    if condition is None:
        return []
    rows = plan.rows(both, names, {})
    return [
        (rows.value(equal.left), rows.value(equal.right))
        for equal in _conjuncts(condition)
        if isinstance(equal, exp.EQ) and isinstance(equal.left, exp.Column) and isinstance(equal.right, exp.Column)
    ]


def _find(plan: Planner, relation: Relation, name: str, node: exp.Expr) -> Value:
    found = [one.value for one in relation.fields if one.name.lower() == name.lower() and not one.hidden]
    if len(found) != 1:
        raise plan.source.refusal(
            f"USING ({name}) needs exactly one column of that name on both sides",
            advice=closest(name, (one.name for one in relation.fields)),
            at=node,
        )
    return found[0]


def _equal(plan: Planner, one: Value, other: Value, node: exp.Expr) -> str:
    from discreet.query.sql.expressions import Expressions, unified

    _, (left, right) = unified(Expressions(plan.source, lambda _: one), (one, other), node)
    return f"({left} = {right})"


def _combined(plan: Planner, sides: _Sides, conditions: list[str], pairs: list[tuple[Value, Value]]) -> Relation:
    left, right, node, side = sides.left, sides.right, sides.node, sides.side
    level = next((one for one in ("unit", "row", "released") if one in (left.level, right.level)), "public")
    unit = left.unit if left.unit is not None else right.unit
    rows_per_unit: int | None = None
    words = "each row may meet any number of public rows"
    if left.private != right.private and "public" in (left.level, right.level):
        people, public = (left, right) if left.private else (right, left)
        single = _single_partner(people, public, pairs)
        if single is not None:
            rows_per_unit, words = people.rows_per_unit, "each row meets one public row at most"
            left, right = (left, single) if left.private else (single, right)
        elif level == "row":
            raise plan.source.refusal(
                "joining a public table could multiply rows that are units of their own",
                advice="declare the column that is joined to as unique = true in the policy, filter with x IN (SELECT "
                "... FROM the public table), or name a unit column",
                at=node,
            )
    right_fields = right.fields
    if left.level == right.level == "unit":
        assert left.unit is not None
        assert right.unit is not None
        mine = {left.unit.sql, *(one.value.sql for one in left.fields if one.value.is_unit)}
        theirs = {right.unit.sql, *(one.value.sql for one in right.fields if one.value.is_unit)}
        if not any(
            (one.sql in mine and other.sql in theirs) or (one.sql in theirs and other.sql in mine)
            for one, other in pairs
        ):
            raise plan.source.refusal(
                "two tables about people are joined without equating their units",
                advice="join ON their unit columns (more conditions may follow with AND)",
                at=node,
            )
        plan.same_units(left.unit, right.unit, node)
        if left.rows_per_unit is not None and right.rows_per_unit is not None:
            rows_per_unit = left.rows_per_unit * right.rows_per_unit
        words = "on the unit: the rows of a unit meet only its own"
    if side in ("LEFT", "FULL"):
        # With no other condition than that on the unit, all rows of a unit meet the same rows or none.
        keep = side == "LEFT" and sides.alone and left.level == right.level == "unit"
        right_fields = tuple(replace(one, value=_optional(one.value, keep=keep)) for one in right.fields)
    if side in ("LEFT", "RIGHT", "FULL"):
        inner = right.where if side == "LEFT" else ()
        where = left.where if side == "LEFT" else right.where
        conditions = [*conditions, *inner]
        verb = f"{side} JOIN"
    else:
        where = left.where + right.where
        verb = "JOIN" if conditions else "CROSS JOIN"
    on = f" ON {' AND '.join(conditions)}" if conditions else ""
    left_fields = left.fields
    if side in ("RIGHT", "FULL"):
        left_fields = tuple(replace(one, value=_optional(one.value, keep=False)) for one in left.fields)
    fields = tuple(replace(one, value=replace(one.value, unique=False)) for one in left_fields + right_fields)
    return Relation(
        f"{left.source} {verb} {right.source}{on}",
        fields,
        level,
        where=where,
        unit=unit,
        rows_per_unit=rows_per_unit,
        tables=tuple(dict.fromkeys(left.tables + right.tables)),
        public_tables=tuple(dict.fromkeys(left.public_tables + right.public_tables)),
        arbitrary=left.arbitrary or right.arbitrary,
        declared=left.declared + right.declared,
        step=Step(f"{verb.lower()}", words if level in ("unit", "row") else "", (left.step, right.step)),
    )


def _single_partner(people: Relation, public: Relation, pairs: list[tuple[Value, Value]]) -> Relation | None:
    """The public table with one row for each value of the column that people's rows are joined to, if it is unique.

    What is declared is enforced here, so that a file which changes later cannot multiply rows. Both sides must be
    compared in a way that keeps different values different: with the same type, or as whole numbers.
    """
    if not public.scan or not public.source.startswith(PUBLIC_OPEN):
        return None
    unique = {one.value.sql for one in public.fields if one.value.unique}
    theirs = {one.value.sql for one in people.fields}
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            alike = one.type == other.type or one.kind == other.kind == "integer"
            if one.sql in unique and other.sql in theirs and alike:
                table, _, mark = public.source.rpartition(" AS ")
                column = one.sql.removeprefix(f"{mark}.")
                return replace(public, source=f"(SELECT DISTINCT ON ({column}) * FROM {table}) AS {mark}")
    return None


def _optional(value: Value, *, keep: bool) -> Value:
    """A value that is NULL where an outer join found no partner: no longer the unit, no longer a constant."""
    return replace(value, is_unit=False, of_unit=value.of_unit and keep, constant=False, python=None, inputs=None)


def _merged(joined: Relation, left: Relation, right: Relation, using: list[str], side: str) -> Relation:
    """One visible column for each name of USING; the two that it is made of are reached by their table."""
    lower = {name.lower() for name in using}
    fields: list[Field] = []
    for i, one in enumerate(joined.fields):
        named = one.name.lower() in lower and not one.hidden
        kept = (i < len(left.fields)) == (side != "RIGHT")
        if named and side == "FULL" and kept:
            other = next(two.value for two in right.fields if two.name.lower() == one.name.lower() and not two.hidden)
            merged = replace(one.value, sql=f"COALESCE({one.value.sql}, {other.sql})", origin=None, values=None)
            fields.append(replace(one, table="", value=merged))
            kept = False
        fields.append(replace(one, hidden=one.hidden or (named and not kept)))
    return replace(joined, fields=tuple(fields))
