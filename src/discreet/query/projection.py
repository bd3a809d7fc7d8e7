"""Answers that show the noisy numbers as they are: no database is needed for that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

__all__ = ["key_columns", "plain_columns", "projected"]

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


def key_columns(after: str) -> set[str]:
    """The columns of an answer that are what rows were grouped by, with NULL where one of several groupings has none.

    >>> sorted(key_columns('SELECT t0.k0 AS "city", t0.a0 * 2 AS "n" FROM noisy_0 AS t0 ORDER BY 2'))
    ['city']
    """
    import sqlglot

    return {name for name, is_key in _kinds(sqlglot.parse_one(after, read="duckdb")).items() if is_key}


def _kinds(query: exp.Expr) -> dict[str, bool | None]:
    """Which columns of a query are keys; None of one that is NULL throughout."""
    from sqlglot import exp

    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.Union):
        first, second = _kinds(query.this), _kinds(query.expression)
        both = zip(first.items(), second.values(), strict=False)
        return {name: other if one is None else one if other is None else one and other for (name, one), other in both}
    if not isinstance(query, exp.Select):
        return {}
    sources = [part.this for part in (query.args.get("from_"), *(query.args.get("joins") or [])) if part is not None]
    inner = {source.alias: _kinds(source) for source in sources if isinstance(source, exp.Subquery)}
    noisy = {source.alias for source in sources if isinstance(source, exp.Table) and source.name.startswith("noisy_")}

    def kind(value: exp.Expr) -> bool | None:
        if isinstance(value, exp.Null):
            return None
        if not isinstance(value, exp.Column):
            return False
        if value.table in noisy:
            return value.name.startswith("k")
        return inner.get(value.table, {}).get(value.name, False)

    return {one.alias_or_name: kind(one.unalias()) for one in query.expressions}


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
