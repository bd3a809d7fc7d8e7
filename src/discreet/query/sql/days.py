"""The days that a bounded date or timestamp can fall on: what is computed from them has public values."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.query.sql.types import DATE
from discreet.query.sql.value import EPOCH, Input, derived, number_of

if TYPE_CHECKING:
    from discreet.query.sql.value import Value

__all__ = ["DAY_MICROSECONDS", "FIRST", "LAST", "MOST_DATES", "daily", "day_of", "is_bounded", "span"]

MOST_DATES = 5000
"""More values than these are not listed: then they are chosen privately."""

DAY_MICROSECONDS = 86_400_000_000
FIRST, LAST = number_of(dt.date(1, 1, 1)), number_of(dt.date(9999, 12, 31))


def is_bounded(value: Value) -> bool:
    """Whether its bounds are finite and in order."""
    low, high = value.bounds
    return math.isfinite(low) and math.isfinite(high) and low <= high


def span(value: Value) -> tuple[dt.date, dt.date]:
    """The first and the last day that the bounds allow; of bounds that no calendar has, the day next to them."""
    scale = 1 if value.kind == "date" else DAY_MICROSECONDS
    low, high = (min(max(bound / scale, FIRST), LAST) for bound in value.bounds)
    return EPOCH + dt.timedelta(days=math.floor(low)), EPOCH + dt.timedelta(days=math.floor(high))


def day_of(value: Value) -> Value:
    """The date of a timestamp; where its bounds leave few days, they are listed.

    Rows on other days are not among the values, so a wrong bound costs rows and shows nothing.
    """
    low, high = (bound // DAY_MICROSECONDS if math.isfinite(bound) else bound for bound in value.bounds)
    date = derived(f"TRY_CAST({value.sql} AS DATE)", DATE, (value,), bounds=(low, high), tame=value.tame)
    if value.constant or value.inputs is not None or not is_bounded(value):
        return date
    first, last = span(value)
    if not 0 <= (last - first).days < MOST_DATES:
        return date
    days = tuple(first + dt.timedelta(days=day) for day in range((last - first).days + 1))
    return replace(date, values=days, inputs=(Input(date.sql, DATE.name, days),))


def daily(value: Value) -> Value:
    """A timestamp as its date, if that has listed values, for functions to which the time of day means nothing."""
    if value.kind != "timestamp":
        return value
    date = day_of(value)
    return date if date.values is not None else value
