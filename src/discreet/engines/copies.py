"""`Copies`: CSV files are split into cells once and kept in memory, and not read anew for every statement.

A file is read by one thread (see `files.csv_rows`), which takes several times as long as adding up what it holds, and a
question has several statements. So the rows of files that are not too large become a table of the engine when the
first session begins, and the view of their name reads that. Files that have changed since they were opened are refused
by whoever asks (see `query.versions`), as they would be without a copy.

A file that is too large for that is not `steady`: a quotation mark in the wrong place, as in `""é`, may cut a letter
in two, and such a line is left out by a statement that reads the cell, and by no other. Whoever needs the same rows in
two statements has to write them down.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.names import quoted
from discreet.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Copies"]

_MOST = 1 << 29
"""Bytes of text; the rows of larger tables are read from their files every time."""

_PACKED = 6
"""How many times longer a text is than its compressed file."""


class Copies:
    """The views of an engine that are to be copied; `run` runs a statement of the engine's own."""

    def __init__(self, run: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self._run = run
        self._waiting: dict[str, tuple[int, str]] = {}
        self._added = 0

    @property
    def steady(self) -> bool:
        """Whether all rows are the same in every statement: nothing is read from its file any more."""
        return not self._waiting

    def add(self, view: str, paths: Sequence[str]) -> None:
        """Copy the rows behind this quoted name when sessions begin, if the files are small enough."""
        sizes = (Path(path).stat().st_size * (_PACKED if path.lower().endswith(".gz") else 1) for path in paths)
        self._waiting[view] = sum(sizes), quoted(f"q__copy_{self._added}")
        self._added += 1

    def make(self) -> None:
        """Copy as many as there is room for, the smallest first; where that fails, the file is read as before.

        What was interrupted goes on with the next call: every view has a copy of its own name, made from its file.
        """
        room = _MOST
        for view, (size, copy) in sorted(self._waiting.items(), key=lambda one: one[1]):
            room -= size
            if room < 0:
                break
            try:
                self._run(f"CREATE OR REPLACE TABLE main.{copy} AS SELECT * FROM main.{view}")
            except EngineError as error:
                if error.kind == "interrupt":
                    raise
                continue
            del self._waiting[view]  # first: were it copied once more, that would be from its copy
            self._run(f"CREATE OR REPLACE VIEW main.{view} AS SELECT * FROM main.{copy}")
