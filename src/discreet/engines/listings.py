"""Lists of public values that all sessions of an engine share: made once, and joined with by every question."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines.arrow import arrow_column
from discreet.engines.failures import guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

__all__ = ["Listings"]

_SCHEMA = "q__lists"
_MOST_LISTS = 256
_MOST_VALUES = 1 << 20  # in all lists that are kept


class Listings:
    """Tables (k, i) of values and their numbers, in the engine's own memory.

    They hold what the caller says and no data. None is ever dropped, so that no session can lose one that it was given;
    once there are many, a session makes its own, which ends with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[tuple[str, tuple[str | None, ...]], str] = {}
        self._room = _MOST_VALUES

    def table(
        self, cursor: duckdb.DuckDBPyConnection, texts: Sequence[str | None], kind: str, *, otherwise: str
    ) -> str:
        """The name of the table of these texts as values of a type; `otherwise` is the name of one that is not kept.

        Values that the type makes equal are one, with the smallest of their numbers.
        """
        wanted = (kind, tuple(texts))
        with self._lock:
            name = self._names.get(wanted)
            if name is None:
                kept = len(self._names) < _MOST_LISTS and len(texts) <= self._room
                if not kept:
                    _write(cursor, f"TEMP TABLE {otherwise}", texts, kind)
                    return f"temp.main.{otherwise}"
                name = f"memory.{_SCHEMA}.l{len(self._names)}"
                guarded(lambda: cursor.execute(f"CREATE SCHEMA IF NOT EXISTS memory.{_SCHEMA}"))
                _write(cursor, f"TABLE {name}", texts, kind)
                self._names[wanted] = name
                self._room -= len(texts)
        return name


def _write(cursor: duckdb.DuckDBPyConnection, table: str, texts: Sequence[str | None], kind: str) -> None:
    import pyarrow as pa

    rows = pa.table({"k": arrow_column(texts), "i": arrow_column(np.arange(len(texts)))})
    select = f"SELECT CAST(k AS {kind}) AS k, CAST(min(i) AS INTEGER) AS i FROM q__incoming GROUP BY 1"
    guarded(lambda: cursor.register("q__incoming", rows))
    try:
        guarded(lambda: cursor.execute(f"CREATE OR REPLACE {table} AS {select}"))
    finally:
        cursor.unregister("q__incoming")
