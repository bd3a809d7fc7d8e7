"""Dates and timestamps as arguments: those outside the years 1 to 9999 count as NULL, so that no function overflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.days import DAY_MICROSECONDS, FIRST, LAST
from discreet.query.sql.expressions import moment
from discreet.query.sql.text import closest
from discreet.query.sql.types import DATE, TIMESTAMP
from discreet.query.sql.value import Value, derived

if TYPE_CHECKING:
    from discreet.query.sql.expressions import Expressions

__all__ = ["PART_NAMES", "has_bounds", "moment_of", "part_of", "tamed", "unit_of"]

PART_NAMES = {
    "years": "year", "y": "year", "months": "month", "mon": "month", "days": "day", "d": "day", "dayofmonth": "day",
    "quarters": "quarter", "weeks": "week", "weekofyear": "week", "w": "week", "dow": "dayofweek",
    "weekday": "dayofweek", "day_of_week": "dayofweek", "dayofweekiso": "isodow", "doy": "dayofyear",
    "day_of_year": "dayofyear", "hours": "hour", "h": "hour", "minutes": "minute", "m": "minute", "seconds": "second",
    "s": "second", "decades": "decade", "centuries": "century",
}  # fmt: skip
UNITS = {
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
    "century",
}  # fmt: skip


def moment_of(at: Expressions, node: exp.Expr) -> Value:
    """A date or timestamp within the calendar, or NULL."""
    if type(node) in (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeStrToTime) and len(node.args) == 1:
        node = node.this
    value = at.value(node)
    if value.kind == "null":
        return derived("CAST(NULL AS DATE)", DATE, (value,), values=(None,), tame=True)
    if value.kind == "text" and value.is_literal:
        value = moment(at, value.python, node)
    if not value.type.temporal:
        raise at.source.refusal(
            f"a date is needed here, and '{at.source.written(node)}' is {value.type.words}",
            advice="a time of day has no date: store it with one, as a TIMESTAMP"
            if value.type.name.startswith("TIME")
            else "convert it with CAST(... AS DATE), which gives NULL where that is not possible",
            at=node,
        )
    return tamed(value)


def tamed(value: Value) -> Value:
    """The date or timestamp if it is within the years 1 to 9999, else NULL."""
    if value.tame:
        return value
    low, high = value.bounds
    if value.kind == "date":
        sql = f"(CASE WHEN {value.sql} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {value.sql} END)"
        bounds = (max(low, FIRST), min(high, LAST))
    else:
        sql = value.timestamp
        between = "BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59'"
        sql = f"(CASE WHEN {sql} {between} THEN {sql} END)"
        bounds = (max(low, FIRST * DAY_MICROSECONDS), min(high, LAST * DAY_MICROSECONDS))
    type_ = DATE if value.kind == "date" else TIMESTAMP
    return derived(sql, type_, (value,), bounds=bounds, values=value.values, tame=True, zoned=value.zoned)


def has_bounds(date: Value) -> bool:
    """Whether both bounds are within the calendar, so that somebody has stated them."""
    scale = 1 if date.kind == "date" else DAY_MICROSECONDS
    return date.bounds[0] > FIRST * scale and date.bounds[1] < LAST * scale


def part_of(at: Expressions, node: exp.Expr | None) -> str:
    """The name of a part of dates or a unit of time, as it was written, by its usual name."""
    if isinstance(node, exp.Var | exp.Identifier | exp.Literal):
        name = str(node.this).lower()
    elif isinstance(node, exp.WeekStart):
        name = "week"
    elif isinstance(node, exp.Column) and not node.table:
        name = node.name.lower()
    else:
        raise at.source.refusal(
            "the part of the date must be written out", advice="write 'month', for example", at=node
        )
    return PART_NAMES.get(name, name)


def unit_of(at: Expressions, node: exp.Expr | None, where: exp.Expr) -> str:
    """The unit of time that a node names."""
    name = part_of(at, node).removesuffix("s")
    if name not in UNITS:
        raise at.source.refusal(f"'{name}' is not a unit of time", advice=closest(name, UNITS), at=where)
    return name
