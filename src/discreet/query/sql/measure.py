"""The argument of a private aggregate: the column of numbers that the block hands to its measurement.

A condition in FILTER makes the argument NULL where it does not hold. NaN stays, and measurements leave it out as NULL;
infinities are clamped to the bounds like every value. Whole numbers that do not fit BIGINT, and dates outside the years
1 to 9999, are NULL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.query.sql.calendar import tamed
from discreet.query.sql.domain import size_of
from discreet.query.sql.text import closest
from discreet.query.sql.types import BIGINT

if TYPE_CHECKING:
    from sqlglot import exp

    from discreet.query.sql.aggregates import Call
    from discreet.query.sql.relation import Relation
    from discreet.query.sql.scope import Rows
    from discreet.query.sql.value import Value

__all__ = ["Argument", "argument_of", "check_argument", "number_sql"]

ONE = "CAST(1 AS BIGINT)"


@dataclass(frozen=True)
class Argument:
    """What is measured, of which kind its values are, and how many different ones there can be, if that is asked."""

    function: str
    sql: str | None
    kind: str
    bounds: tuple[float, float] | None = None
    values: int | None = None


def argument_of(rows: Rows, call: Call, relation: Relation) -> Argument:
    """The argument of a call over rows of people."""
    condition = rows.truth(call.condition).sql if call.condition is not None else None
    node = call.argument
    if node is None:
        return Argument("count", _if(condition, ONE) if condition else None, "integer")
    if call.function == "count_if":
        both = rows.truth(node).sql
        return Argument("count", _if(f"{condition} AND {both}" if condition else both, ONE), "integer")
    if call.function == "count_distinct":
        return _distinct(rows, call, node, condition)
    value = rows.value(node)
    check_argument(rows, call, value)
    if call.function == "count":
        if value.constant and value.is_literal and value.python is not None:
            return Argument("count", _if(condition, ONE) if condition else None, "integer")
        known = f"{_without_nan(value)} IS NOT NULL"
        return Argument("count", _if(f"{condition} AND {known}" if condition else known, ONE), "integer")
    sql, kind = number_sql(rows, value, call, relation)
    low, high = value.bounds
    bounds = (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None
    return Argument(call.function, _if(condition, sql), kind, bounds)


def _if(condition: str | None, sql: str) -> str:
    return sql if condition is None else f"CASE WHEN {condition} THEN {sql} END"


def check_argument(rows: Rows, call: Call, value: Value) -> None:
    """Refuses to aggregate a text that was written out: it has no number, and counting it counts nothing but rows."""
    if call.argument is None or not value.constant:
        return
    rows.check_quotes(call.argument, value, inside=call.node)
    if value.is_literal and value.kind == "text":
        names = closest(value.python, [one.name for one in rows.relation.fields if not one.hidden])
        written = rows.source.written(call.node)
        advice = "to count rows, write COUNT(*);" if call.function == "count" else ""
        raise rows.source.refusal(
            f"'{written}' is about a text, and no column",
            advice=f"{advice or 'names stand in double quotes or in none:'} {names}",
            at=call.node,
        )


def _distinct(rows: Rows, call: Call, node: exp.Expr, condition: str | None) -> Argument:
    """COUNT(DISTINCT x): units if x is the unit."""
    value = rows.value(node)
    check_argument(rows, call, value)
    if value.is_unit:
        function = "count_units" if condition is None else "count_distinct"
        return Argument(function, _if(condition, value.sql) if condition else None, "integer")
    return Argument("count_distinct", _if(condition, _without_nan(value)), "integer", values=size_of(value))


def _without_nan(value: Value) -> str:
    """NaN is no value to any aggregate: SUM(x) / COUNT(x) is AVG(x)."""
    return f"NULLIF({value.double}, CAST('NaN' AS DOUBLE))" if value.kind == "float" else value.sql


def number_sql(rows: Rows, value: Value, call: Call, relation: Relation) -> tuple[str, str]:
    """The argument as BIGINT or DOUBLE, and its kind."""
    del relation
    node = call.node
    if value.kind == "boolean":
        return f"CAST({value.sql} AS BIGINT)", "integer"
    if value.kind == "integer":
        fits = BIGINT.range[0] <= value.type.range[0] and value.type.range[1] <= BIGINT.range[1]
        if value.type == BIGINT and not value.constant:
            return value.sql, "integer"
        return f"{'CAST' if fits else 'TRY_CAST'}({value.sql} AS BIGINT)", "integer"
    if value.kind in ("decimal", "null"):
        return f"CAST({value.sql} AS DOUBLE)", "float"
    if value.kind == "float":
        return value.double, "float"
    if value.type.temporal:
        if call.function not in ("min", "max", "quantile"):
            raise rows.source.refusal(
                f"'{rows.source.written(node)}' of a {value.kind} is not supported",
                advice="take MIN, MAX or MEDIAN of it, or DATE_DIFF('day', DATE '2000-01-01', x) as a number",
                at=node,
            )
        day = tamed(value)
        if value.kind == "date":
            return f"DATE_DIFF('day', DATE '1970-01-01', {day.sql})", "date"
        return f"EPOCH_US({day.timestamp})", "timestamp"
    raise rows.source.refusal(
        f"'{rows.source.written(node)}' needs a number, and its argument is {value.type.words}",
        advice="count it with COUNT(DISTINCT x), group by it, or convert it with CAST(x AS DOUBLE)",
        at=node,
    )
