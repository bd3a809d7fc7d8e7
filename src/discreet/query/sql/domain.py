"""The public values of a key, by evaluating its expression over everything its columns can be."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from discreet.engines.sandbox import sandbox
from discreet.errors import EngineError
from discreet.query.sql.text import string
from discreet.query.sql.value import literal_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.query.sql.value import Input, Value

__all__ = ["combinations_of", "public_values", "size_of", "values_that_meet"]

MOST_COMBINATIONS, MOST_WITH_NULL = 5000, 20_000
_CYCLE = 14  # years; after 28 the calendar repeats itself, but for most turns of a century
MOST_WORTH_KNOWING = 1 << 31  # no number of values that anybody counts is near all whole numbers of 32 bits


def public_values(value: Value) -> tuple[Any, ...] | None:
    """All values that the expression can have, or None if they are private or too many.

    What the operators know comes first. Otherwise, if every column of the expression has finitely many public values,
    the engine computes the expression for all of them: then the list has exactly the form that the engine gives rows.
    Any of them may be missing, too: what the expression makes of NULL is listed, unless that is NULL.
    """
    if value.values is not None:
        return value.values
    if not value.inputs:
        return None
    if math.prod(len(column.values) for column in value.inputs) > MOST_COMBINATIONS:
        return None
    if math.prod(len(column.values) + 1 for column in value.inputs) > MOST_WITH_NULL:
        return None
    (sql,), tables = _over([value.sql], value.inputs)
    whole = " AND ".join(f"d{i}.l" for i, _ in enumerate(tables))
    try:
        found = sandbox().rows(f"SELECT {sql}, bool_or({whole}) FROM {', '.join(tables)} GROUP BY 1 ORDER BY 1")
    except EngineError:
        return None
    return tuple(one for one, of_values in found if one is not None or of_values)


def combinations_of(values: Sequence[Value], *, around: Sequence[Input] = ()) -> list[tuple[Any, ...]] | None:
    """The combinations, without NULL, that expressions over the same columns can have; None if these are too many.

    Of the dates `around`, those of `_CYCLE` years before and after are taken in, too: all kinds of years are among
    them, with their weekdays, whatever the listed ones are.
    """
    inputs = tuple(dict.fromkeys(column for value in values for column in value.inputs or ()))
    wide = {column: _days_around(column) for column in around}
    if math.prod(_length(wide[one]) if one in wide else len(one.values) for one in inputs) > MOST_WITH_NULL:
        return None
    sqls, tables = _over([value.sql for value in values], inputs)
    for i, column in enumerate(inputs):
        if column in wide:
            first, last = (literal_sql(day) for day in wide[column])
            tables[i] = f"(SELECT CAST(range AS DATE) AS v FROM range({first}, {last}, INTERVAL 1 DAY)) AS d{i}"
    present = " AND ".join(f"{sql} IS NOT NULL" for sql in sqls)
    try:
        found = sandbox().rows(
            f"SELECT DISTINCT {', '.join(sqls)} FROM {', '.join(tables)} WHERE {present} ORDER BY ALL"
        )
    except EngineError:
        return None
    listed = [set(public_values(value) or ()) for value in values]
    kept = [row for row in found if all(one in some for one, some in zip(row, listed, strict=True))]
    return kept if len(kept) <= MOST_COMBINATIONS else None


def _days_around(column: Input) -> tuple[dt.date, dt.date]:
    """The first of the days, and the one behind the last."""
    first, last = min(column.values).year - _CYCLE, max(column.values).year + _CYCLE
    return dt.date(max(first, 1), 1, 1), dt.date(min(last + 1, 9999), 1, 1)


def _length(days: tuple[dt.date, dt.date]) -> int:
    return (days[1] - days[0]).days


def _over(sqls: list[str], inputs: tuple[Input, ...]) -> tuple[list[str], list[str]]:
    """Expressions over tables of what their columns can be, with NULL for which l is false, and these tables."""
    tables = []
    for i, column in enumerate(inputs):
        sqls = [sql.replace(column.sql, f"d{i}.v") for sql in sqls]
        exact = column.type_name == "FLOAT" or column.type_name.startswith("DECIMAL")
        rows = [string(str(one)) if exact else literal_sql(one) for one in column.values]
        listed = f"(VALUES {', '.join([*(f'({one}, true)' for one in rows), '(NULL, false)'])}) AS list(v, l)"
        tables.append(f"(SELECT TRY_CAST(v AS {column.type_name}) AS v, l FROM {listed}) AS d{i}")
    return sqls, tables


def size_of(value: Value) -> int | None:
    """How many different values the expression can have, NULL apart, or None if that is not public.

    Of whole numbers and dates it is how many lie within the declared bounds, or within the range of the type.
    """
    listed = public_values(value)
    if listed is not None:
        return len({one for one in listed if one is not None})
    if value.kind not in ("integer", "date"):
        return None
    low, high = max(value.bounds[0], value.limits[0]), min(value.bounds[1], value.limits[1])
    if not high - low < MOST_WORTH_KNOWING:
        return None
    return max(0, math.floor(high) - math.ceil(low) + 1)


def values_that_meet(condition: Value, column: Input) -> tuple[Any, ...] | None:
    """The public values of a column that meet a condition on it alone, or None if the engine cannot tell."""
    if condition.inputs != (column,) or len(column.values) > MOST_COMBINATIONS:
        return None
    rows = ", ".join(f"({i}, {literal_sql(one)})" for i, one in enumerate(column.values))
    listed = f"(SELECT i, TRY_CAST(v AS {column.type_name}) AS v FROM (VALUES {rows}) AS list(i, v)) AS d"
    try:
        sql = condition.sql.replace(column.sql, "d.v")
        found = sandbox().rows(f"SELECT i FROM {listed} WHERE {sql} ORDER BY i")
    except EngineError:
        return None
    return tuple(column.values[i] for (i,) in found)
