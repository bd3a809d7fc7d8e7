"""Answers that show the noisy numbers as they are: no database is needed for that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["plain_columns", "projected", "shown_columns"]

_COLUMN = r't0\.(\w+) AS "((?:[^"]|"")+)"'
_PLAIN = re.compile(rf"SELECT {_COLUMN}(?:, {_COLUMN})* FROM noisy_0 AS t0")
_ONE = re.compile(_COLUMN)


def plain_columns(after: str) -> list[tuple[str, str]] | None:
    """The columns of noisy_0 that a SELECT shows, each with its new name; None if it does anything else.

    >>> plain_columns('SELECT t0.k0 AS "city", t0.a0 AS "n" FROM noisy_0 AS t0')
    [('k0', 'city'), ('a0', 'n')]
    >>> plain_columns('SELECT t0.a0 AS "n" FROM noisy_0 AS t0 WHERE t0.a0 > 3') is None
    True
    """
    if not _PLAIN.fullmatch(after):
        return None
    return [(column, name.replace('""', '"')) for column, name in _ONE.findall(after)]


def shown_columns(after: str) -> dict[str, str]:
    """The columns of noisy tables that a SELECT shows as they are, by the names that it gives them.

    >>> shown_columns('SELECT t0.k0 AS "city", t0.a0 * 2 AS "n" FROM noisy_0 AS t0 ORDER BY 2')
    {'city': 'k0'}
    """
    import sqlglot
    from sqlglot import exp

    parsed = sqlglot.parse_one(after, read="duckdb")
    listed = parsed.selects if isinstance(parsed, exp.Query) else []
    return {one.alias_or_name: one.unalias().name for one in listed if isinstance(one.unalias(), exp.Column)}


def projected(table: pa.Table, columns: list[tuple[str, str]]) -> pa.Table:
    """These columns under their new names, in the types that a database would give back."""
    import pyarrow as pa

    return pa.table([_plain(table.column(column)) for column, _ in columns], names=[name for _, name in columns])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    if not pa.types.is_large_string(column.type):
        return column
    return pa.chunked_array([_short(chunk) for chunk in column.chunks], pa.string())


def _short(texts: pa.Array) -> pa.Array:
    """Texts with places of 32 bits, by changing the places alone."""
    import pyarrow as pa

    valid, places, content = texts.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if texts.offset or ends[-1] >= 1 << 31:
        return texts.cast(pa.string())
    return pa.Array.from_buffers(pa.string(), len(texts), [valid, pa.py_buffer(ends.astype(np.int32)), content])
