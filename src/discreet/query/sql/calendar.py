"""Functions of dates and timestamps: those outside the years 1 to 9999 count as NULL, so that none can overflow."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql.arithmetic import combine
from discreet.query.sql.days import DAY_MICROSECONDS, FIRST, LAST, MOST_DATES, daily, is_bounded, span
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, NAMED, PLAIN, READ, Expressions
from discreet.query.sql.functions import arguments
from discreet.query.sql.text import closest
from discreet.query.sql.types import BIGINT, DATE, DOUBLE, TIMESTAMP, VARCHAR
from discreet.query.sql.value import EPOCH, EPOCH_TIME, EVERYWHERE, Value, derived, number_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LENGTHS", "amount_of", "moment_of", "tamed"]

PARTS: dict[str, tuple[float, float]] = {
    "year": (1, 9999),
    "month": (1, 12),
    "day": (1, 31),
    "quarter": (1, 4),
    "week": (1, 53),
    "dayofweek": (0, 6),
    "isodow": (1, 7),
    "dayofyear": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "decade": (0, 999),
    "century": (1, 100),
    "isoyear": (0, 10000),
}
PART_NAMES = {
    "years": "year", "y": "year", "months": "month", "mon": "month", "days": "day", "d": "day", "dayofmonth": "day",
    "quarters": "quarter", "weeks": "week", "weekofyear": "week", "w": "week", "dow": "dayofweek",
    "weekday": "dayofweek", "day_of_week": "dayofweek", "dayofweekiso": "isodow", "doy": "dayofyear",
    "day_of_year": "dayofyear", "hours": "hour", "h": "hour", "minutes": "minute", "m": "minute", "seconds": "second",
    "s": "second", "decades": "decade", "centuries": "century",
}  # fmt: skip
TIMES = ("hour", "minute", "second")
UNITS = {
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
    "century",
}  # fmt: skip
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def moment_of(at: Expressions, node: exp.Expr) -> Value:
    """A date or timestamp within the calendar, or NULL."""
    if type(node) in (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeStrToTime) and len(node.args) == 1:
        node = node.this
    value = at.value(node)
    if value.kind == "null":
        return derived("CAST(NULL AS DATE)", DATE, (value,), values=(None,), tame=True)
    if not value.type.temporal:
        raise at.source.refusal(
            f"a date is needed here, and '{at.source.written(node)}' is {value.type.words}",
            advice="convert it with CAST(... AS DATE), which gives NULL where that is not possible",
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
    return derived(sql, type_, (value,), bounds=bounds, values=value.values, tame=True)


ERAS: dict[str, Callable[[int], int]] = {
    "year": lambda year: year,
    "decade": lambda year: year // 10,
    "century": lambda year: (year - 1) // 100 + 1,
}


def _part(name: str) -> Callable[[Expressions, Any], Value]:
    return lambda at, node: _extract(at, name, node.this, node)


def _extract(at: Expressions, name: str, argument: exp.Expr, node: exp.Expr) -> Value:
    if name not in PARTS and name != "epoch":
        raise at.source.refusal(f"'{name}' is not a part of a date", advice=closest(name, PARTS), at=node)
    value = moment_of(at, argument)
    if name == "epoch":
        return derived(f"CAST(EPOCH({value.timestamp}) AS DOUBLE)", DOUBLE, (value,))
    low, high = PARTS[name]
    if name not in TIMES:
        value = daily(value)
    if is_bounded(value):
        first, last = span(value)
        if name in ERAS:
            low, high = ERAS[name](first.year), ERAS[name](last.year)
        elif name == "month" and first.year == last.year:
            low, high = first.month, last.month
    if value.kind == "date" and name in TIMES:
        low = high = 0
    values = tuple(range(int(low), int(high) + 1)) if high - low < 400 and (low, high) != PARTS["century"] else None
    if value.inputs:
        values = None  # the days are listed, so the engine will say which parts they have
    function = "date_part('isoyear', " if name == "isoyear" else f"{name}("
    sql = f"CAST({function}{value.sql}) AS BIGINT)"
    bounds = EVERYWHERE if PARTS[name][1] >= PARTS["year"][1] and not _has_bounds(value) else (low, high)
    return derived(sql, BIGINT, (value,), bounds=bounds, limits=PARTS[name], values=values)


def _part_name(at: Expressions, node: exp.Expr | None) -> str:
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
    return name


def _extracted(at: Expressions, node: exp.Extract) -> Value:
    name = _part_name(at, node.this)
    return _extract(at, PART_NAMES.get(name, name), node.expression, node)


def _date_part(at: Expressions, node: exp.Anonymous) -> Value:
    part, argument = arguments(at, node, 2)
    name = _part_name(at, part)
    return _extract(at, PART_NAMES.get(name, name), argument, node)


def _named_part(name: str) -> Callable[[Expressions, Any], Value]:
    return lambda at, node: _extract(at, name, arguments(at, node, 1)[0], node)


def _unit(at: Expressions, node: exp.Expr | None, where: exp.Expr) -> str:
    name = _part_name(at, node)
    name = PART_NAMES.get(name, name)
    name = name.removesuffix("s")
    if name not in UNITS:
        raise at.source.refusal(f"'{name}' is not a unit of time", advice=closest(name, UNITS), at=where)
    return name


def _truncated(at: Expressions, node: exp.TimestampTrunc | exp.DateTrunc) -> Value:
    if node.args.get("zone") is not None:
        raise at.unknown(node)
    unit = _unit(at, node.args.get("unit"), node)
    value = moment_of(at, node.this)
    days = unit in ("day", "week", "month", "quarter", "year", "decade", "century")
    type_ = DATE if value.kind == "date" and days else TIMESTAMP
    value = daily(value) if days else value
    sql = f"CAST(DATE_TRUNC('{unit}', {value.sql}) AS {type_.name})"
    bounds, values = EVERYWHERE, None
    if is_bounded(value):
        first, last = span(value)
        begin = _floor_day(first, unit) if days else first
        bounds = (_as_number(begin, type_ == TIMESTAMP), value.bounds[1] if type_ == value.type else math.inf)
        if days:
            bounds = (bounds[0], _as_number(_floor_day(last, unit), type_ == TIMESTAMP))
            values = _steps(first, last, unit, stamps=type_ == TIMESTAMP)
        elif value.kind == "timestamp":
            values = _ticks(value.bounds, LENGTHS[unit])
    return derived(sql, type_, (value,), bounds=bounds, values=values, tame=unit not in ("week", "decade", "century"))


def _ticks(bounds: tuple[float, float], length: int) -> tuple[Any, ...] | None:
    """The beginnings of all hours, minutes, ... that meet the bounds, if they are few."""
    first, last = (int(bound) // length for bound in bounds)
    if last - first >= MOST_DATES:
        return None
    return tuple(EPOCH_TIME + dt.timedelta(microseconds=tick * length) for tick in range(first, last + 1))


def _as_number(day: dt.date, stamp: bool) -> float:
    return number_of(day) * (DAY_MICROSECONDS if stamp else 1)


def _floor_day(day: dt.date, unit: str) -> dt.date:
    """The first day of the week (Monday), month, quarter, year, decade or century."""
    if unit == "day":
        return day
    if unit == "week":
        return EPOCH + dt.timedelta(days=max((day - EPOCH).days - day.weekday(), FIRST))
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=day.month - (day.month - 1) % 3, day=1)
    year = {"year": day.year, "decade": day.year // 10 * 10, "century": day.year // 100 * 100}[unit]
    return dt.date(max(year, 1), 1, 1)


def _steps(first: dt.date, last: dt.date, unit: str, *, stamps: bool) -> tuple[Any, ...] | None:
    """The first days of all periods that meet [first, last], if they are few."""
    if (last - first).days > MOST_DATES * {"day": 1, "week": 7, "month": 28, "quarter": 90}.get(unit, 365):
        return None
    found: dict[dt.date, None] = {}
    day = first
    step = dt.timedelta(days={"day": 1, "week": 7}.get(unit, 27))
    while day <= last:
        found[_floor_day(day, unit)] = None
        if last - day < step:
            break
        day += step
    found[_floor_day(last, unit)] = None
    if len(found) > MOST_DATES or (first.year < 100 and unit in ("week", "decade", "century")):
        return None  # the first of these begin before the calendar of Python does
    days = sorted(found)
    return tuple(EPOCH_TIME + (day - EPOCH) for day in days) if stamps else tuple(days)


def _difference(at: Expressions, node: exp.DateDiff) -> Value:
    unit = _unit(at, node.args.get("unit"), node)
    end, start = moment_of(at, node.this), moment_of(at, node.expression)
    both = (start.sql, end.sql) if start.kind == end.kind else (start.timestamp, end.timestamp)
    bounds = _days_between(start, end) if unit == "day" and start.kind == end.kind == "date" else EVERYWHERE
    sql = f"DATE_DIFF('{unit}', {both[0]}, {both[1]})"
    return derived(sql, BIGINT, (start, end), bounds=bounds, limits=(-(10**18), 10**18))


def _days_between(start: Value, end: Value) -> tuple[float, float]:
    """The range of end - start where both have bounds; the whole calendar is none that a sum should be clamped to."""
    if not (_has_bounds(start) and _has_bounds(end)):
        return EVERYWHERE
    return end.bounds[0] - start.bounds[1], end.bounds[1] - start.bounds[0]


def _has_bounds(date: Value) -> bool:
    scale = 1 if date.kind == "date" else DAY_MICROSECONDS
    return date.bounds[0] > FIRST * scale and date.bounds[1] < LAST * scale


def _shift(sign: int) -> Callable[[Expressions, Any], Value]:
    def shift(at: Expressions, node: exp.Expr) -> Value:
        amount, unit = amount_of(at, node.expression, node)
        value = moment_of(at, node.this)
        amount *= sign
        if isinstance(node, exp.DateAdd | exp.DateSub | exp.TsOrDsAdd) and node.args.get("unit") is not None:
            unit = _unit(at, node.args["unit"], node)
        return _moved(at, value, amount, unit, node)

    return shift


LENGTHS = {
    "microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6,
    "day": DAY_MICROSECONDS, "week": 7 * DAY_MICROSECONDS, "month": 31 * DAY_MICROSECONDS,
    "quarter": 92 * DAY_MICROSECONDS, "year": 366 * DAY_MICROSECONDS,
}  # fmt: skip


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
                return sign * number, _unit(at, exp.Var(this=words[1]), where)
        else:
            number = at.constant(inside, int, "the length of the interval")
        return sign * number, _unit(at, node.args.get("unit"), where)
    return sign * at.constant(node, int, "the number of days"), "day"


def _plus(sign: int) -> Callable[[Expressions, Any], Value]:
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


def _name(function: str, names: tuple[str, ...]) -> Callable[[Expressions, Any], Value]:
    def name(at: Expressions, node: exp.Func) -> Value:
        value = daily(moment_of(at, node.this))
        listed = None if value.inputs else names
        return derived(f"{function}({value.sql})", VARCHAR, (value,), values=listed, weight=10)

    return name


def _last_day(at: Expressions, node: exp.LastDay) -> Value:
    if node.args.get("unit") is not None:
        raise at.unknown(node)
    value = daily(moment_of(at, node.this))
    return derived(f"LAST_DAY({value.sql})", DATE, (value,), tame=True)


def _as_date(at: Expressions, node: exp.Func) -> Value:
    if node.this is None or any(argument for name, argument in node.args.items() if name != "this"):
        raise at.unknown(node)
    cast = exp.Cast(this=node.this.copy(), to=exp.DataType.build("DATE"))
    cast.parent = node.parent
    return at.value(cast)


HANDLERS.update(
    {
        exp.Add: _plus(1),
        exp.Sub: _plus(-1),
        exp.Extract: _extracted,
        exp.TimestampTrunc: _truncated,
        exp.DateTrunc: _truncated,
        exp.DateDiff: _difference,
        exp.DateAdd: _shift(1),
        exp.DateSub: _shift(-1),
        exp.Monthname: _name("MONTHNAME", MONTHS),
        exp.Dayname: _name("DAYNAME", DAYS),
        exp.LastDay: _last_day,
        exp.Date: _as_date,
        exp.TsOrDsToDate: _as_date,
        exp.Year: _part("year"),
        exp.Month: _part("month"),
        exp.Day: _part("day"),
        exp.DayOfMonth: _part("day"),
        exp.Quarter: _part("quarter"),
        exp.Week: _part("week"),
        exp.WeekOfYear: _part("week"),
        exp.DayOfWeek: _part("dayofweek"),
        exp.DayOfWeekIso: _part("isodow"),
        exp.DayOfYear: _part("dayofyear"),
        exp.Hour: _part("hour"),
        exp.Minute: _part("minute"),
        exp.Second: _part("second"),
        exp.TimeToUnix: _part("epoch"),
    }
)
READ.update(
    {
        exp.TimestampTrunc: {"this", "unit", "zone"},
        exp.DateTrunc: {"this", "unit", "zone"},
        exp.DateDiff: PLAIN | {"unit", "date_part_boundary"},
        exp.DateAdd: PLAIN | {"unit"},
        exp.DateSub: PLAIN | {"unit"},
        exp.LastDay: {"this", "unit"},
    }
)
NAMED.update({"date_part": _date_part, "datepart": _date_part})
for _anonymous in ("isodow", "dayofyear", "decade", "century", "isoyear", "weekday", "hour", "minute", "second"):
    NAMED.setdefault(_anonymous, _named_part(PART_NAMES.get(_anonymous, _anonymous)))
KNOWN_NAMES.update(PARTS, NAMED, ("date_trunc", "date_diff", "date_add", "date_sub", "extract"))
KNOWN_NAMES.update(("monthname", "dayname", "last_day", "epoch"))
