"""Parts of dates and timestamps: EXTRACT and its many spellings, names of months and days, the date of a timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.calendar import PART_NAMES, has_bounds, moment_of, part_of
from discreet.query.sql.days import FIRST, LAST, daily, is_bounded, span
from discreet.query.sql.durations import complete
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, NAMED, READ, Expressions
from discreet.query.sql.functions import arguments
from discreet.query.sql.text import closest
from discreet.query.sql.types import BIGINT, DATE, DOUBLE, VARCHAR
from discreet.query.sql.value import EVERYWHERE, Value, derived

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.query.sql.expressions import Handler

__all__: list[str] = []

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
TIMES = ("hour", "minute", "second")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ERAS: dict[str, Callable[[int], int]] = {
    "year": lambda year: year,
    "decade": lambda year: year // 10,
    "century": lambda year: (year - 1) // 100 + 1,
}


def _part(name: str) -> Handler:
    return lambda at, node: _extract(at, name, node.this, node)


def _extract(at: Expressions, name: str, argument: exp.Expr, node: exp.Expr) -> Value:
    if name not in PARTS and name != "epoch":
        raise at.source.refusal(f"'{name}' is not a part of a date", advice=closest(name, PARTS), at=node)
    if name == "year" and isinstance(argument, exp.Anonymous) and str(argument.this).lower() == "age":
        end, start = arguments(at, argument, 2)
        return complete(at, "year", start, end)
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
    bounds = EVERYWHERE if PARTS[name][1] >= PARTS["year"][1] and not has_bounds(value) else (low, high)
    return derived(sql, BIGINT, (value,), bounds=bounds, limits=PARTS[name], values=values)


def _extracted(at: Expressions, node: exp.Extract) -> Value:
    return _extract(at, part_of(at, node.this), node.expression, node)


def _date_part(at: Expressions, node: exp.Anonymous) -> Value:
    part, argument = arguments(at, node, 2)
    return _extract(at, part_of(at, part), argument, node)


def _named_part(name: str) -> Handler:
    return lambda at, node: _extract(at, name, arguments(at, node, 1)[0], node)


def _name(function: str, names: tuple[str, ...]) -> Handler:
    def name(at: Expressions, node: exp.Func) -> Value:
        value = daily(moment_of(at, node.this))
        listed = None if value.inputs else names
        return derived(f"{function}({value.sql})", VARCHAR, (value,), values=listed, weight=10)

    return name


def _made(at: Expressions, node: exp.DateFromParts) -> Value:
    """make_date(year, month, day): NULL where there is no such day."""
    parts = [at.number(node.args[name]) for name in ("year", "month", "day")]
    for part, name in zip(parts, ("year", "month", "day"), strict=True):
        if part.kind != "integer":
            raise at.source.refusal(
                f"the {name} of make_date must be a whole number",
                advice="write CAST(x AS INTEGER)",
                at=node.args[name],
            )
    ranges = ((1, 9999), (1, 12), (1, 31))
    there = " AND ".join(
        f"{part.sql} BETWEEN {low} AND {high}" for part, (low, high) in zip(parts, ranges, strict=True)
    )
    written = " || '-' || ".join(
        f"LPAD(CAST({part.sql} AS VARCHAR), {digits}, '0')" for part, digits in zip(parts, (4, 2, 2), strict=True)
    )
    sql = f"TRY_CAST(CASE WHEN {there} THEN {written} END AS DATE)"
    return derived(sql, DATE, parts, bounds=(FIRST, LAST), tame=True)


def _as_date(at: Expressions, node: exp.Func) -> Value:
    if node.this is None or any(argument for name, argument in node.args.items() if name != "this"):
        raise at.unknown(node)
    cast = exp.Cast(this=node.this.copy(), to=exp.DataType.build("DATE"))
    cast.parent = node.parent
    return at.value(cast)


HANDLERS.update(
    {
        exp.Extract: _extracted,
        exp.Monthname: _name("MONTHNAME", MONTHS),
        exp.Dayname: _name("DAYNAME", DAYS),
        exp.Date: _as_date,
        exp.DateFromParts: _made,
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
READ[exp.DateFromParts] = {"year", "month", "day"}
NAMED.update({"date_part": _date_part, "datepart": _date_part})
for _anonymous in ("isodow", "dayofyear", "decade", "century", "isoyear", "weekday", "hour", "minute", "second"):
    NAMED.setdefault(_anonymous, _named_part(PART_NAMES.get(_anonymous, _anonymous)))
KNOWN_NAMES.update(PARTS, NAMED, ("extract", "monthname", "dayname", "epoch", "make_date"))
