"""What stands in FROM or after JOIN: tables, subqueries and names of WITH, each with what one unit can change in it."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql.alike import smallest
from discreet.query.sql.arithmetic import MOST_VALUES
from discreet.query.sql.days import MOST_DATES
from discreet.query.sql.relation import Field, Relation, Step, column_sql, public_mark
from discreet.query.sql.text import closest, quoted
from discreet.query.sql.types import TIMESTAMP, type_named
from discreet.query.sql.value import EPOCH, EVERYWHERE, Input, Value, number_of

if TYPE_CHECKING:
    from discreet.query.catalog import Column, Table
    from discreet.query.sql.planner import Names, Planner

__all__ = ["table_like"]


def table_like(planner: Planner, node: exp.Expr, names: Names) -> Relation:
    """What stands in FROM or after JOIN."""
    planner.count(node)
    if isinstance(node, exp.Subquery):
        planner.only(node, {"this", "alias", "with_"})
        alias = _alias(planner, node)
        relation = planner.query(node.this, planner.with_names(node, names))
        return relation.named(alias)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise planner.source.refusal(
            "this cannot stand in FROM",
            advice="name a table of the catalog; files and table functions cannot be read from a question",
            at=node,
        )
    planner.only(node, {"this", "alias", "db", "catalog"})
    name = node.name
    if node.args.get("db") is not None:
        raise planner.source.refusal(
            "tables have no schema here",
            advice=closest(name, (one.name for one in planner.catalog.tables.values())),
            at=node,
        )
    alias = _alias(planner, node) or name.lower()
    if name.lower() in names:
        return planner.named_query(name.lower(), names, node).named(alias)
    table = planner.catalog.tables.get(name.lower())
    if table is None:
        known = [*(one.name for one in planner.catalog.tables.values()), *names]
        raise planner.source.refusal(f"there is no table '{name}'", advice=closest(name, known), at=node)
    return scan(planner, table, alias)


def _alias(planner: Planner, node: exp.Expr) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    if alias.args.get("columns"):
        raise planner.source.refusal(
            "column names after a table alias are not supported", advice="use AS in the SELECT list", at=alias
        )
    return str(alias.name).lower()


def scan(planner: Planner, table: Table, alias: str) -> Relation:
    """All rows of a table, under this name.

    Rows without a unit are dropped: they are nobody's, so nobody is protected by them.
    """
    mark = planner.mark()
    public = table.level == "public"
    fields = tuple(
        Field(column.name, alias, _column(table, column, column_sql(mark, column.name))) for column in table.columns
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
        others = [
            f"{smallest(one.name, type_named(one.sql_type))} AS {quoted(one.name)}"
            for one in table.columns
            if one.name.lower() != str(table.unit).lower()
        ]
        shown = ", ".join([quoted(str(table.unit)), *others])
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
    zoned = type_.name in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")
    if zoned:  # the clock of the engine is UTC
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
        zoned=zoned,
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
