"""Values that are equal and do not look alike: where the engine takes one of several, which one must not show.

0.0 and -0.0 are equal to it, and so are all NaN, one month and 30 days, or lists of such. GROUP BY, DISTINCT, MIN and
MAX keep the one that some thread came across first, which depends on where the rows of others lie; and CAST(x AS
VARCHAR) and POWER(x, -1) tell them apart. So floats are given one look there, and what has none is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.engines.calendar import is_written
from discreet.query.sql.text import quoted

if TYPE_CHECKING:
    from discreet.query.sql.types import SqlType

__all__ = ["is_alike", "one_look", "smallest"]

_FLOATS = ("FLOAT", "DOUBLE")
_ALIKE = ("BLOB", "JSON", "TIME", "TIME WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE", "UHUGEINT", "UUID")


def one_look(sql: str, type_name: str) -> str:
    """SQL of a value that looks like every other one that is equal to it; only floats need it.

    >>> one_look("n", "BIGINT")
    'n'
    """
    if type_name not in _FLOATS:
        return sql
    return f"CASE WHEN isnan({sql}) THEN CAST('NaN' AS {type_name}) ELSE {sql} + CAST(0 AS {type_name}) END"


def is_alike(kind: SqlType) -> bool:
    """Whether equal values of a type look alike, or `one_look` makes them so."""
    return kind.kind != "other" or kind.name.upper() in _ALIKE


def smallest(column: str, kind: SqlType) -> str:
    """SQL of the smallest value of a column over some rows, in an order that tells all apart that look different."""
    cell = quoted(column)
    if is_alike(kind) or not is_written(kind.name):  # what cannot be written out cannot be told apart
        return one_look(f"MIN({cell})", kind.name)
    return f"ARG_MIN({cell}, ROW(CAST({cell} AS VARCHAR), {cell}))"
