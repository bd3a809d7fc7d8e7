"""Durations: dates and intervals added and subtracted, and the time between two dates."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.arithmetic import combine, listed
from discreet.query.sql.calendar import has_bounds, moment_of, tamed, unit_of
from discreet.query.sql.days import DAY_MICROSECONDS
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, NAMED, PLAIN, READ, Expressions
from discreet.query.sql.functions import arguments
from discreet.query.sql.types import BIGINT, DATE, TIMESTAMP
from discreet.query.sql.value import EPOCH, EVERYWHERE, Value, derived

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.query.sql.expressions import Handler

__all__ = ["LENGTHS", "amount_of", "complete"]

LENGTHS = {
    "microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6,
    "day": DAY_MICROSECONDS, "week": 7 * DAY_MICROSECONDS, "month": 31 * DAY_MICROSECONDS,
    "quarter": 92 * DAY_MICROSECONDS, "year": 366 * DAY_MICROSECONDS,
}  # fmt: skip
_CLOCK = ("microsecond", "millisecond", "second", "minute", "hour", "day")
_CALENDAR: dict[str, Callable[[dt.date], int]] = {
    "month": lambda day: 12 * day.year + day.month,
    "quarter": lambda day: (12 * day.year + day.month - 1) // 3,
    "year": lambda day: day.year,
    "decade": lambda day: day.year // 10,
    "century": lambda day: day.year // 100,
}
_EXACT = 1 << 53
"""Microseconds up to here are floats without rounding."""


def _difference(at: Expressions, node: exp.DateDiff) -> Value:
    unit = unit_of(at, node.args.get("unit"), node)
    end, start = moment_of(at, node.this), moment_of(at, node.expression)
    both = (start.sql, end.sql) if start.kind == end.kind else (start.timestamp, end.timestamp)
    bounds = _between(unit, start, end)
    sql = f"DATE_DIFF('{unit}', {both[0]}, {both[1]})"
    found = derived(sql, BIGINT, (start, end), bounds=bounds, limits=(-(10**18), 10**18))
    # Where the days are listed, the engine will say which differences they have.
    return found if found.inputs is not None else replace(found, values=listed(bounds, int))


def _complete(at: Expressions, node: exp.Anonymous) -> Value:
    """date_sub(unit, start, end): the units that are complete, as of age the years."""
    unit, start, end = arguments(at, node, 3)
    return complete(at, unit_of(at, unit, node), start, end)


def complete(at: Expressions, unit: str, since: exp.Expr, until: exp.Expr) -> Value:
    """How many units of time are complete between two dates; negative where the second is the earlier one.

    That is what DATE_DIFF counts, or one less in absolute value.
    """
    start, end = moment_of(at, since), moment_of(at, until)
    low, high = _between(unit, start, end)
    bounds = (low - (low > 0), high + (high < 0))
    sql = f"DATE_SUB('{unit}', {start.timestamp}, {end.timestamp})"
    found = derived(sql, BIGINT, (start, end), bounds=bounds, limits=(-(10**18), 10**18))
    return found if found.inputs is not None else replace(found, values=listed(bounds, int))


def _between(unit: str, start: Value, end: Value) -> tuple[float, float]:
    """The range of DATE_DIFF where both have bounds; the whole calendar is none that a sum should be clamped to.

    It never falls as the end grows, and never grows with the start, so the ends of both ranges have its extremes.
    """
    if not (has_bounds(start) and has_bounds(end)):
        return EVERYWHERE
    (earliest, latest), (first, last) = _ends(start), _ends(end)
    low, high = _counted(unit, latest, first), _counted(unit, earliest, last)
    least, most = float(low), float(high)  # more microseconds than a float can count are rounded away from each other
    return (
        least if least <= low else math.nextafter(least, -math.inf),
        most if most >= high else math.nextafter(most, math.inf),
    )


def _ends(value: Value) -> tuple[int, int]:
    """Its bounds in microseconds, and never inside of those that were declared."""
    if value.kind == "date":
        low, high = (math.floor(bound) * DAY_MICROSECONDS for bound in value.bounds)
        return low, high
    low, high = (math.floor(bound) for bound in value.bounds)
    return low - _rounded(low), high + _rounded(high)


def _rounded(microseconds: int) -> int:
    """How far from the time that was declared its float may be: nothing before 2255."""
    return 0 if abs(microseconds) <= _EXACT else math.ceil(math.ulp(microseconds))


def _counted(unit: str, start: int, end: int) -> int:
    """DATE_DIFF of two times in microseconds since 1970: turns of the unit; of weeks, those that are complete."""
    if unit == "week":
        days = end // DAY_MICROSECONDS - start // DAY_MICROSECONDS
        return days // 7 if days >= 0 else -(-days // 7)
    if unit in _CLOCK:
        return end // LENGTHS[unit] - start // LENGTHS[unit]
    until, since = (EPOCH + dt.timedelta(days=time // DAY_MICROSECONDS) for time in (end, start))
    return _CALENDAR[unit](until) - _CALENDAR[unit](since)


def _shift(sign: int) -> Handler:
    def shift(at: Expressions, node: exp.Expr) -> Value:
        amount, unit = amount_of(at, node.expression, node)
        value = moment_of(at, node.this)
        amount *= sign
        if isinstance(node, exp.DateAdd | exp.DateSub | exp.TsOrDsAdd) and node.args.get("unit") is not None:
            unit = unit_of(at, node.args["unit"], node)
        return _moved(at, value, amount, unit, node)

    return shift


def _moved(at: Expressions, value: Value, amount: int, unit: str, node: exp.Expr) -> Value:
    if unit not in LENGTHS or abs(amount) * LENGTHS[unit] > 10_000 * LENGTHS["year"]:
        raise at.source.refusal("this interval is too long", advice="stay within 10000 years", at=node)
    sql = f"({value.timestamp} + INTERVAL ({amount}) {unit.upper()})"
    low, high = (bound * (DAY_MICROSECONDS if value.kind == "date" else 1) for bound in value.bounds)
    move = amount * LENGTHS[unit]
    least = move * 28 / 31 if unit in ("month", "quarter", "year") else move
    bounds = (low + min(move, least), high + max(move, least))
    return derived(sql, TIMESTAMP, (value,), bounds=bounds)


def amount_of(at: Expressions, node: exp.Expr, where: exp.Expr) -> tuple[int, str]:
    """The length and unit of INTERVAL 3 DAY, or of a whole number of days."""
    sign = 1
    while isinstance(node, exp.Neg | exp.Paren):
        sign, node = (-sign if isinstance(node, exp.Neg) else sign), node.this
    if isinstance(node, exp.Interval):
        inside = node.this
        if isinstance(inside, exp.Literal) and inside.is_string:
            words = str(inside.this).split()
            try:
                number = int(words[0])
            except (ValueError, IndexError):
                raise at.source.refusal(
                    "this interval is not understood", advice="write INTERVAL 3 DAY", at=where
                ) from None
            if node.args.get("unit") is None and len(words) == 2:
                return sign * number, unit_of(at, exp.Var(this=words[1]), where)
        else:
            number = at.constant(inside, int, "the length of the interval")
        return sign * number, unit_of(at, node.args.get("unit"), where)
    return sign * at.constant(node, int, "the number of days"), "day"


def _plus(sign: int) -> Handler:
    """+ and -: of numbers, or of a date and an interval, or between two dates."""
    operator = "+" if sign > 0 else "-"

    def apply(at: Expressions, node: exp.Binary) -> Value:
        left, right = node.left, node.right
        if sign > 0 and isinstance(left.unnest(), exp.Interval):
            left, right = right, left
        if isinstance(right.unnest(), exp.Interval):
            amount, unit = amount_of(at, right, node)
            return _moved(at, moment_of(at, left), sign * amount, unit, node)
        value = at.value(left)
        if not value.type.temporal:
            return combine(operator, at.as_number(value, left), at.number(right))  # each once: sums are nested deeply
        other = at.value(right)
        if sign < 0 and value.kind == other.kind == "date":
            start, end = tamed(other), tamed(value)
            sql = f"DATE_DIFF('day', {start.sql}, {end.sql})"
            return derived(sql, BIGINT, (start, end), bounds=_between("day", start, end), limits=(-(10**7), 10**7))
        if value.kind == "date" and other.is_literal and other.kind == "integer":
            moved = _moved(at, tamed(value), sign * int(other.python), "day", node)
            bounds = (moved.bounds[0] / DAY_MICROSECONDS, moved.bounds[1] / DAY_MICROSECONDS)
            return derived(f"CAST({moved.sql} AS DATE)", DATE, (moved,), bounds=bounds)
        raise at.source.refusal(
            "this arithmetic with dates is not supported",
            advice="add an INTERVAL, or take DATE_DIFF('day', start, end) between two dates",
            at=node,
        )

    return apply


HANDLERS.update(
    {
        exp.Add: _plus(1),
        exp.Sub: _plus(-1),
        exp.DateDiff: _difference,
        exp.DateAdd: _shift(1),
        exp.DateSub: _shift(-1),
    }
)
READ.update(
    {
        exp.DateDiff: PLAIN | {"unit", "date_part_boundary"},
        exp.DateAdd: PLAIN | {"unit"},
        exp.DateSub: PLAIN | {"unit"},
    }
)
NAMED.update({"date_sub": _complete, "datesub": _complete})
KNOWN_NAMES.update(("date_diff", "date_add", "date_sub"))
