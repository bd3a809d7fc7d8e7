"""Threads that want the same at the same time: the first does it, and the others find it done."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Turns"]


class Turns:
    """Threads that do something of one name do it one after the other; a process that was forked off waits for none."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, str], tuple[threading.Lock, int]] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """The turn of whoever is here next."""
        key = os.getpid(), name
        with _counting:
            lock, number = self._waiting.get(key, (threading.Lock(), 0))
            self._waiting[key] = lock, number + 1
        try:
            with lock:
                yield
        finally:
            with _counting:
                lock, number = self._waiting.pop(key)
                if number > 1:
                    self._waiting[key] = lock, number - 1


_counting = threading.Lock()


def _anew() -> None:
    """A thread that is not here any more may have held it."""
    global _counting  # noqa: PLW0603 - there is one of each process
    _counting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_anew)
