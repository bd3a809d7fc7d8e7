"""Dates and times that every later step can handle: what no calendar has becomes NULL where it is read.

DuckDB stores dates up to the year 5 881 580, timestamps that are infinite, and whatever 64 bits an Arrow or Parquet
file holds. Some of its own functions then fail, or end the whole database with an internal error, and Python has no
such dates: one row could stop a question. So relations have the years 1 to 9999, and timestamps in microseconds.
"""

from __future__ import annotations

import re

__all__ = ["calm", "is_calm", "is_written"]

_TIMES = re.compile(r"\b(?:DATE|TIME|TIMESTAMP)|\bVARIANT\b")
_NESTED = re.compile(r"\[\d*\]$|^(?:STRUCT|MAP|UNION)\(|^VARIANT$")
_YEARS = ("0001-01-01", "9999-12-31")
_MOMENTS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59")
_LIMITS = {
    "DATE": _YEARS,
    "TIMESTAMP": _MOMENTS,
    "TIMESTAMP_S": _MOMENTS,
    "TIMESTAMP_MS": _MOMENTS,
    "TIMESTAMP_NS": ("1678-01-01 00:00:00", "2261-12-31 23:59:59"),
    "TIMESTAMPTZ_NS": ("1678-01-01 00:00:00+00", "2261-12-31 23:59:59+00"),
    "TIMESTAMP WITH TIME ZONE": ("0001-01-01 00:00:00+00", "9999-12-31 23:59:59+00"),
    "TIME": ("00:00:00", "23:59:59.999999"),
}
_MICROSECONDS = {
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
    "TIMESTAMPTZ_NS": "TIMESTAMP WITH TIME ZONE",
}


def calm(sql: str, kind: str) -> tuple[str, str]:
    """SQL of the same values and its type, with NULL in place of dates and times that no calendar or clock has.

    >>> calm("d", "DATE")
    ("CASE WHEN d BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN d END", 'DATE')
    >>> calm("n", "BIGINT")
    ('n', 'BIGINT')
    """
    if kind not in _LIMITS:
        return sql, kind
    low, high = (f"CAST('{limit}' AS {kind})" for limit in _LIMITS[kind])
    target = _MICROSECONDS.get(kind, kind)
    value = sql if target == kind else f"TRY_CAST({sql} AS {target})"
    return f"CASE WHEN {sql} BETWEEN {low} AND {high} THEN {value} END", target


def is_written(kind: str) -> bool:
    """Whether every value of a type can be written as text.

    A time in a list, a struct or the like is none that `calm` has looked at, and one that no calendar has makes the
    engine fail, also in TRY_CAST.

    >>> is_written("TIMESTAMP"), is_written("BIGINT[]"), is_written("STRUCT(at TIMESTAMP)")
    (True, True, False)
    """
    return not (_NESTED.search(kind.upper()) and _TIMES.search(kind.upper()))


def is_calm(sql: str, kind: str) -> str | None:
    """SQL over all rows of a column: whether `calm` would change nothing; None for types of which it is not asked."""
    if kind not in _LIMITS or kind in _MICROSECONDS:
        return None
    low, high = (f"CAST('{limit}' AS {kind})" for limit in _LIMITS[kind])
    return f"coalesce(min({sql}) >= {low} AND max({sql}) <= {high}, true)"
