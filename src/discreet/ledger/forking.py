"""Forks: no connection to a ledger lives through one.

SQLite keeps in the memory of a process which locks it holds. A fork copies that memory, and the locks stay with the
parent: a child would believe that it holds what it does not, whichever connection it uses, and when the parent closes
its own, the log that the child writes its charges to would be removed as if nobody used it. So the connections of all
stores are closed before a fork, each under its lock, and parent and child open them again when they are used next.

A store that is in use for longer than anybody waits, or by the thread that forks, cannot be closed; it is useless to
the child, which says so. So is one that was open when a process was forked without Python being told.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["watch"]


class Forkable(Protocol):
    """What a fork needs of a store."""

    def before_fork(self) -> None:
        """Takes the lock and closes the connection, if both are possible."""

    def after_fork(self, *, child: bool) -> None:
        """Gives the lock back, or makes a new one in the child."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_turn = threading.Lock()  # two forks at once would wait for each other's stores
_held: list[Forkable] = []


def watch(store: Forkable) -> None:
    """From now on the store is closed before every fork."""
    with _turn:
        _watched.add(store)


def _before() -> None:
    _turn.acquire()
    for store in list(_watched):
        _held.append(store)
        store.before_fork()


def _after(*, child: bool) -> None:
    try:
        while _held:
            _held.pop().after_fork(child=child)
    finally:
        _turn.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=lambda: _after(child=False), after_in_child=lambda: _after(child=True)
    )
