"""Periods of the calendar: DATE_TRUNC and LAST_DAY, with the periods that bounds leave as public values."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from sqlglot import exp

from discreet.query.sql.calendar import moment_of, unit_of
from discreet.query.sql.days import DAY_MICROSECONDS, FIRST, MOST_DATES, daily, is_bounded, span
from discreet.query.sql.durations import LENGTHS
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, READ, Expressions
from discreet.query.sql.types import DATE, TIMESTAMP
from discreet.query.sql.value import EPOCH, EPOCH_TIME, EVERYWHERE, Value, derived, number_of

__all__: list[str] = []


def _truncated(at: Expressions, node: exp.TimestampTrunc | exp.DateTrunc) -> Value:
    if node.args.get("zone") is not None:
        raise at.unknown(node)
    unit = unit_of(at, node.args.get("unit"), node)
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
    try:
        return tuple(EPOCH_TIME + dt.timedelta(microseconds=tick * length) for tick in range(first, last + 1))
    except OverflowError:  # rounded up, the last moment of the calendar is beyond it
        return None


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


def _last_day(at: Expressions, node: exp.LastDay) -> Value:
    if node.args.get("unit") is not None:
        raise at.unknown(node)
    value = daily(moment_of(at, node.this))
    return derived(f"LAST_DAY({value.sql})", DATE, (value,), tame=True)


HANDLERS.update({exp.TimestampTrunc: _truncated, exp.DateTrunc: _truncated, exp.LastDay: _last_day})
READ.update(
    {
        exp.TimestampTrunc: {"this", "unit", "zone"},
        exp.DateTrunc: {"this", "unit", "zone"},
        exp.LastDay: {"this", "unit"},
    }
)
KNOWN_NAMES.update(("date_trunc", "last_day"))
