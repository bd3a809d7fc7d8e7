"""`Ranges`: which statements DuckDB may plan by the ranges that files and tables state of their columns.

With the ranges, joins and groups of whole numbers take half the time. But DuckDB also simplifies expressions by them,
and fails on some of what it makes: `CASE WHEN x > 9 THEN 'a' END = 'b'` cannot be planned if no row is above 9. Such an
error says what the largest value is, which is one person's, whatever the question costs. So an expression of a question
is never planned by ranges. A statement that has none, only names of columns and tables, may be; should it fail, it is
planned again without.

The setting is one for all sessions of an engine, and switching takes as long as planning a short statement. So it stays
as it is until somebody needs the other. It is turned on only while nothing but plain statements runs: whoever comes
with another one waits for those to end and turns it off, and no plain one overtakes those who wait.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["PASS", "Ranges"]

PASS = "statistics_propagation"
"""DuckDB's name of the pass that looks at ranges."""


class Ranges:
    """Turns for statements with and without the ranges; `switch` turns them on and off, and they are off at first."""

    def __init__(self, switch: Callable[[bool], None]) -> None:
        self._switch = switch
        self._turn = threading.Condition()
        self._on = False
        self._using = self._avoiding = self._waiting = 0

    @contextmanager
    def used(self) -> Iterator[bool]:
        """A turn with the ranges, if it can be had without waiting; gives whether it is one."""
        with self._turn:
            free = not self._avoiding and not self._waiting
            if free:
                self._set(True)
                self._using += 1
        try:
            yield free
        finally:
            if free:
                with self._turn:
                    self._using -= 1
                    self._turn.notify_all()

    @contextmanager
    def avoided(self) -> Iterator[None]:
        """A turn without the ranges."""
        with self._turn:
            self._waiting += 1
            try:
                self._turn.wait_for(lambda: not self._using)
                self._set(False)
            finally:
                self._waiting -= 1
            self._avoiding += 1
        try:
            yield
        finally:
            with self._turn:
                self._avoiding -= 1

    def _set(self, on: bool) -> None:
        """Turn the ranges on or off where they are not; if that fails, they count as on, and are turned off again."""
        if self._on != on:
            self._on = True
            self._switch(on)
            self._on = on
