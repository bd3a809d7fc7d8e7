"""Buckets: `width_bucket` of numbers and `time_bucket` of times, whose values are public.

Both are total: a number that is none is in no bucket, and times are within the calendar.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from sqlglot import exp

from discreet.query.sql.calendar import moment_of
from discreet.query.sql.days import DAY_MICROSECONDS, MOST_DATES, daily, is_bounded, span
from discreet.query.sql.durations import LENGTHS, amount_of
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, READ, Expressions
from discreet.query.sql.types import BIGINT, DATE, TIMESTAMP
from discreet.query.sql.value import EPOCH, EPOCH_TIME, EVERYWHERE, MICROSECOND, Value, derived, literal_sql, number_of

__all__: list[str] = []

MOST_LISTED = 1000
MOST_BUCKETS = 10**9
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
WHOLE_DAYS = ("day", "week")
FIRST_MONTH = 2000 * 12
"""Buckets of months are counted from January 2000, as DuckDB does."""

FIRST_MONDAY = int(number_of(dt.date(2000, 1, 3))) * DAY_MICROSECONDS
"""Buckets of days and less are counted from this Monday."""


def _width_bucket(at: Expressions, node: exp.WidthBucket) -> Value:
    """0 below the range, 1 to n in it, n + 1 from its end on."""
    value = at.number(node.this)
    low, high = (
        float(at.constant(node.args.get(name), (int, float), "the range of width_bucket"))
        for name in ("min_value", "max_value")
    )
    n: int = at.constant(node.args.get("num_buckets"), int, "the number of buckets")
    if not (math.isfinite(high - low) and low < high and 1 <= n <= MOST_BUCKETS):
        raise at.source.refusal(
            "these are no buckets", advice="write width_bucket(x, 0, 100, 10): ten from 0 to below 100", at=node
        )
    x = f"NULLIF({value.double}, CAST('NaN' AS DOUBLE))"
    first, last, width = (literal_sql(number) for number in (low, high, high - low))
    sql = (
        f"CASE WHEN {x} < {first} THEN CAST(0 AS BIGINT) WHEN {x} >= {last} THEN CAST({n + 1} AS BIGINT) "
        f"WHEN {x} IS NOT NULL THEN LEAST(CAST(FLOOR(({x} - {first}) / {width} * {n}) AS BIGINT) + 1, {n}) END"
    )

    def place(number: float) -> int:
        if number < low:
            return 0
        return n + 1 if number >= high else min(math.floor((number - low) / (high - low) * n) + 1, n)

    least, most = (place(bound) for bound in value.bounds)
    listed = tuple(range(least, most + 1)) if most - least < MOST_LISTED and not value.inputs else None
    return derived(f"({sql})", BIGINT, (value,), bounds=(least, most), limits=(0, n + 1), values=listed)


def _time_bucket(at: Expressions, node: exp.DateBin) -> Value:
    if any(node.args.get(name) is not None for name in ("unit", "zone", "origin")):
        raise at.source.refusal(
            "time_bucket with an origin or an offset is not supported",
            advice="shift the time: time_bucket(INTERVAL 1 DAY, t - INTERVAL 6 HOUR)",
            at=node,
        )
    if not isinstance(node.this.unnest(), exp.Interval):
        raise at.source.refusal(
            "the width of time_bucket is an interval", advice="write time_bucket(INTERVAL 15 MINUTE, t)", at=node
        )
    amount, unit = amount_of(at, node.this, node)
    length = MONTHS[unit] * LENGTHS["month"] if unit in MONTHS else LENGTHS[unit]
    if amount <= 0 or amount * length > 10_000 * LENGTHS["year"]:
        raise at.source.refusal(
            "this is no width of a bucket", advice="write time_bucket(INTERVAL 15 MINUTE, t)", at=node
        )
    value = moment_of(at, node.expression)
    whole = unit in MONTHS or unit in WHOLE_DAYS
    type_ = DATE if value.kind == "date" and whole else TIMESTAMP
    value = daily(value) if whole else value
    if unit in MONTHS:
        interval, starts = f"INTERVAL ({amount * MONTHS[unit]}) MONTH", _months(value, amount * MONTHS[unit])
    else:
        micros = amount * LENGTHS[unit]
        interval, starts = f"INTERVAL ({micros}) MICROSECOND", _ticks(value, micros)
        if whole:
            interval = f"INTERVAL ({micros // DAY_MICROSECONDS}) DAY"
    sql = f"CAST(TIME_BUCKET({interval}, {value.sql if whole else value.timestamp}) AS {type_.name})"
    if starts is None:
        return derived(sql, type_, (value,), bounds=EVERYWHERE)
    first, last, listed = starts
    values: tuple[Any, ...] | None = None
    if listed is not None:
        values = tuple(one.date() for one in listed) if type_ == DATE else listed
    scale = DAY_MICROSECONDS if type_ == DATE else 1
    return derived(sql, type_, (value,), bounds=(first // scale, last // scale), values=values)


Starts = tuple[int, int, tuple[dt.datetime, ...] | None]
"""The first and the last beginning of a bucket in microseconds since 1970, and all of them, if they are few."""


def _ticks(value: Value, width: int) -> Starts | None:
    if not is_bounded(value):
        return None
    scale = DAY_MICROSECONDS if value.kind == "date" else 1
    first, last = ((int(bound) * scale - FIRST_MONDAY) // width for bound in value.bounds)
    begin, end = (tick * width + FIRST_MONDAY for tick in (first, last))
    try:
        start = EPOCH_TIME + begin * MICROSECOND
    except OverflowError:  # the first of these begins before the calendar of Python does
        return None
    listed = None
    if last - first < MOST_DATES:
        listed = tuple(start + step * (width * MICROSECOND) for step in range(last - first + 1))
    return begin, end, listed


def _months(value: Value, width: int) -> Starts | None:
    if not is_bounded(value):
        return None
    first, last = ((day.year * 12 + day.month - 1 - FIRST_MONTH) // width for day in span(value))
    if FIRST_MONTH + first * width < 12:  # it begins before the year 1
        return None
    begin, end = (int(number_of(_month(FIRST_MONTH + tick * width))) for tick in (first, last))
    listed = None
    if last - first < MOST_DATES:
        listed = tuple(_month(FIRST_MONTH + tick * width) for tick in range(first, last + 1))
    return begin, end, listed


def _month(number: int) -> dt.datetime:
    """The beginning of a month, counted from January of the year 0."""
    return EPOCH_TIME + (dt.date(number // 12, number % 12 + 1, 1) - EPOCH)


HANDLERS.update({exp.WidthBucket: _width_bucket, exp.DateBin: _time_bucket})
READ.update(
    {
        exp.WidthBucket: {"this", "min_value", "max_value", "num_buckets"},
        exp.DateBin: {"this", "expression", "unit", "zone", "origin"},
    }
)
KNOWN_NAMES.update(("width_bucket", "time_bucket"))
