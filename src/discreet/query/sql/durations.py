"""Durations: dates and intervals added and subtracted, and the time between two dates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.arithmetic import combine
from discreet.query.sql.calendar import has_bounds, moment_of, tamed, unit_of
from discreet.query.sql.days import DAY_MICROSECONDS
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, PLAIN, READ, Expressions
from discreet.query.sql.types import BIGINT, DATE, TIMESTAMP
from discreet.query.sql.value import EVERYWHERE, Value, derived

if TYPE_CHECKING:
    from discreet.query.sql.expressions import Handler

__all__ = ["LENGTHS", "amount_of"]

LENGTHS = {
    "microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6,
    "day": DAY_MICROSECONDS, "week": 7 * DAY_MICROSECONDS, "month": 31 * DAY_MICROSECONDS,
    "quarter": 92 * DAY_MICROSECONDS, "year": 366 * DAY_MICROSECONDS,
}  # fmt: skip


def _difference(at: Expressions, node: exp.DateDiff) -> Value:
    unit = unit_of(at, node.args.get("unit"), node)
    end, start = moment_of(at, node.this), moment_of(at, node.expression)
    both = (start.sql, end.sql) if start.kind == end.kind else (start.timestamp, end.timestamp)
    bounds = _days_between(start, end) if unit == "day" and start.kind == end.kind == "date" else EVERYWHERE
    sql = f"DATE_DIFF('{unit}', {both[0]}, {both[1]})"
    return derived(sql, BIGINT, (start, end), bounds=bounds, limits=(-(10**18), 10**18))


def _days_between(start: Value, end: Value) -> tuple[float, float]:
    """The range of end - start where both have bounds; the whole calendar is none that a sum should be clamped to."""
    if not (has_bounds(start) and has_bounds(end)):
        return EVERYWHERE
    return end.bounds[0] - start.bounds[1], end.bounds[1] - start.bounds[0]


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
            return derived(sql, BIGINT, (start, end), bounds=_days_between(start, end), limits=(-(10**7), 10**7))
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
KNOWN_NAMES.update(("date_diff", "date_add", "date_sub"))
