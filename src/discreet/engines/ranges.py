"""`Ranges`: which statements DuckDB may plan by the ranges that files and tables state of their columns.

With the ranges, joins and groups of whole numbers take half the time. But DuckDB also simplifies expressions by them,
and fails on some of what it makes: `CASE WHEN x > 9 THEN 'a' END = 'b'` cannot be planned if no row is above 9. Such an
error says what the largest value is, which is one person's, whatever the question costs. So an expression of a question
is never planned by ranges. A statement that has none, only names of columns and tables, may be; should it fail, it is
planned again without.

The setting is one for all sessions of an engine, and switching takes as long as planning a short statement. So it stays
as it is until somebody needs the other. It is turned on only while nothing but plain statements runs: whoever comes
with another one waits for those to end and turns it off, and no plain one overtakes those who wait.

**Interrupts.** Ctrl-C raises an exception between any two steps of the main thread. So a turn is written down inside of
the `try` whose `finally` strikes it out by a single call, which nothing can come in between, and the lock is one that a
`with` takes and gives back as one step. The ranges count as on from before they are turned on until after they are off.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from discreet.engines.failures import guarded
from discreet.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PASS", "Ranges"]

PASS = "statistics_propagation"
"""DuckDB's name of the pass that looks at ranges."""

_PLANNED = ("statement", "failed")  # kinds of errors that come of how a statement was planned
_PAUSE_S = 0.001

T = TypeVar("T")


class Ranges:
    """Turns for statements with and without the ranges; `switch` turns them on and off, and they are off at first."""

    def __init__(self, switch: Callable[[bool], None]) -> None:
        self._switch = switch
        self._lock = threading.Lock()
        self._on = False
        self._using: set[object] = set()
        self._avoiding: set[object] = set()

    def run(self, work: Callable[[], T], *, plain: bool) -> T:
        """The result of the work, which runs one statement: planned by ranges if it is plain and nobody minds."""
        turn = object()
        if plain:
            try:
                if self._used(turn):
                    return guarded(work)
            except EngineError as error:
                if error.kind not in _PLANNED:
                    raise
            finally:
                self._using.discard(turn)
        try:
            self._avoid(turn)
            return guarded(work)
        finally:
            self._avoiding.discard(turn)

    def _used(self, turn: object) -> bool:
        """Begin a turn with the ranges, if it can be had without waiting; whether it is one."""
        with self._lock:
            if self._avoiding:
                return False
            self._set(True)
            self._using.add(turn)
            return True

    def _avoid(self, turn: object) -> None:
        """Begin a turn without the ranges, once nobody uses them."""
        self._avoiding.add(turn)
        while True:
            with self._lock:
                if not self._using:
                    self._set(False)
                    return
            time.sleep(_PAUSE_S)

    def _set(self, on: bool) -> None:
        """Turn the ranges on or off where they are not."""
        if self._on != on:
            self._on = True
            self._switch(on)
            self._on = on
