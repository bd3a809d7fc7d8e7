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
_MOST_CODES = 1 << 12  # texts that are made whole numbers of while rows are read


class Listings:
    """Tables (k, i) of values and their numbers, in the engine's own memory.

    They hold what the caller says and no data. None is ever dropped, so that no session can lose one that it was given;
    once there are many, a session makes its own, which ends with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[tuple[str, tuple[str | None, ...]], str] = {}
        self._types: dict[tuple[str, ...], str] = {}
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

    def codes(self, cursor: duckdb.DuckDBPyConnection, texts: Sequence[str]) -> str | None:
        """The name of an ENUM of these different texts, in their order; None if there is no room for one.

        `TRY_CAST(x AS ENUM)` of a text is one of them or NULL, and compares bytes, as `=` of texts does.
        """
        wanted = tuple(texts)
        with self._lock:
            name = self._types.get(wanted)
            if name is None:
                if len(self._types) >= _MOST_LISTS or len(wanted) > min(_MOST_CODES, self._room):
                    return None
                name = f"memory.{_SCHEMA}.e{len(self._types)}"
                guarded(lambda: cursor.execute(f"CREATE SCHEMA IF NOT EXISTS memory.{_SCHEMA}"))
                made = f"CREATE OR REPLACE TYPE {name} AS ENUM (SELECT k FROM q__incoming ORDER BY i)"
                _write_from(cursor, wanted, made)
                self._types[wanted] = name
                self._room -= len(wanted)
        return name


def _write(cursor: duckdb.DuckDBPyConnection, table: str, texts: Sequence[str | None], kind: str) -> None:
    select = f"SELECT CAST(k AS {kind}) AS k, CAST(min(i) AS INTEGER) AS i FROM q__incoming GROUP BY 1"
    _write_from(cursor, texts, f"CREATE OR REPLACE {table} AS {select}")


def _write_from(cursor: duckdb.DuckDBPyConnection, texts: Sequence[str | None], statement: str) -> None:
    """Run a statement that reads texts k and their numbers i from q__incoming."""
    import pyarrow as pa

    rows = pa.table({"k": arrow_column(texts), "i": arrow_column(np.arange(len(texts)))})
    guarded(lambda: cursor.register("q__incoming", rows))
    try:
        guarded(lambda: cursor.execute(statement))
    finally:
        cursor.unregister("q__incoming")
