"""`Packed`: Parquet files that are asked about again and again are kept in memory, in the engine's own compressed form.

A question reads a few columns of all rows, which takes the engine less time from there than from a file: it need not
unpack pages first, and texts that occur often are numbers. A question or two would not make up for reading all columns
and packing them. So it is done when the third one comes, for tables of which all rows fit into little memory while they
are being packed; what is kept is a fraction of that.

The rows are the same, since files that have changed are refused by whoever asks (see `query.versions`), and nothing
else depends on where they are. Whatever goes wrong, the files are read as before.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.engines.names import literals, quoted
from discreet.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Packed"]

_MOST = 1 << 28
"""Bytes of all rows together, before they are packed; larger tables are read from their files every time."""

_OF_MEMORY = 1 / 8  # the part of `memory_limit` that rows may have while they are being packed
_WHEN = 3  # the question before which it is done
_SOME = 2048  # rows that are looked at to see how long texts are
_SPACE = "q__packed"
_NARROW = {
    **dict.fromkeys(("BOOLEAN", "TINYINT", "UTINYINT"), 1),
    **dict.fromkeys(("SMALLINT", "USMALLINT"), 2),
    **dict.fromkeys(("INTEGER", "UINTEGER", "FLOAT", "DATE"), 4),
    **dict.fromkeys(("BIGINT", "UBIGINT", "DOUBLE"), 8),
}
_WIDE = ("TIME", "DECIMAL", "HUGEINT", "UHUGEINT", "UUID", "INTERVAL", "ENUM")  # how their names begin
_WIDEST = 16.0  # bytes of one of these; and of a text, beside its letters
_LENGTHS = {"VARCHAR": "strlen", "BLOB": "octet_length"}


class Packed:
    """The views of an engine that are to be packed; `run` runs a statement of the engine's own.

    Every view has a copy of its own name, and waits until just before it reads that: a copy is only made or dropped
    while no view reads it. So whoever is interrupted, by Ctrl-C between any two steps, leaves views that read their own
    rows, and the next question goes on with those that still wait.
    """

    def __init__(self, run: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self._run = run
        self._waiting: dict[str, tuple[str, list[str]]] = {}
        self._added = self._questions = 0

    def add(self, view: str, paths: Sequence[str]) -> None:
        """Keep the rows behind this quoted name, which reads these files, once it is time."""
        self._waiting[view] = f"{_SPACE}.main.t{self._added}", list(paths)
        self._added += 1

    def asked(self) -> None:
        """There is one question more; if it is time, tables are packed before it."""
        self._questions += 1
        if self._questions >= _WHEN and self._waiting:
            self._make()

    def _make(self) -> None:
        """Pack as many tables as there is room for, the smallest first; the others are not looked at again."""
        sizes = {view: self._size(view, paths) for view, (_, paths) in self._waiting.items()}
        room, made = self._room(), list[str]()
        for view in sorted(sizes, key=sizes.__getitem__):
            room -= sizes[view]
            if room < 0 or not self._tried(
                f"ATTACH IF NOT EXISTS ':memory:' AS {_SPACE} (COMPRESS)",
                f"CREATE OR REPLACE TABLE {self._waiting[view][0]} AS SELECT * FROM main.{view}",
            ):
                break
            made.append(view)
        if made and not self._tried(f"CHECKPOINT {_SPACE}"):  # it packs them; as they are written they are slow
            self._tried(*(f"DROP TABLE {self._waiting[view][0]}" for view in made))
            made = []
        for view in made:
            copy, _ = self._waiting.pop(view)
            self._tried(f"CREATE OR REPLACE VIEW main.{view} AS SELECT * FROM {copy}")
        self._waiting = {}

    def _room(self) -> float:
        """How many bytes of rows are packed: a part of the memory that the engine may have."""
        try:
            found = self._run("SELECT parse_formatted_bytes(current_setting('memory_limit'))")
        except EngineError as error:
            if error.kind == "interrupt":
                raise
            return 0.0
        return min(float(_MOST), _OF_MEMORY * float(found[0][0]))

    def _size(self, view: str, paths: Sequence[str]) -> float:
        """About how many bytes all rows have; infinite if there is no telling."""
        try:
            columns = [(quoted(row[0]), row[1]) for row in self._run(f"DESCRIBE SELECT * FROM main.{view}")]
            width = sum(_width(kind) for _, kind in columns)
            lengths = [f"avg({_LENGTHS[kind]}({name}))" for name, kind in columns if kind in _LENGTHS]
            if lengths:
                some = f"(SELECT * FROM main.{view} LIMIT {_SOME})"
                width += sum(found or 0.0 for found in self._run(f"SELECT {', '.join(lengths)} FROM {some}")[0])
            rows = self._run(f"SELECT sum(num_rows) FROM parquet_file_metadata({literals(paths)})")[0][0]
            stored = self._run(f"SELECT sum(total_uncompressed_size) FROM parquet_metadata({literals(paths)})")[0][0]
        except EngineError as error:
            if error.kind == "interrupt":
                raise
            return math.inf
        return max(width * float(rows or 0), float(stored or 0))  # the first rows may have shorter texts than others

    def _tried(self, *statements: str) -> bool:
        """Whether these statements, one after the other, could be run."""
        try:
            for statement in statements:
                self._run(statement)
        except EngineError as error:
            if error.kind == "interrupt":
                raise
            return False
        return True


def _width(kind: str) -> float:
    """How many bytes a value of a type takes; infinite if that is not known."""
    if kind in _NARROW:
        return _NARROW[kind]
    flat = "[" not in kind and (kind in _LENGTHS or kind.startswith(_WIDE))
    return _WIDEST if flat else math.inf
