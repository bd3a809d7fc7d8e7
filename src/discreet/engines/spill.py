"""Where rows go that do not fit into memory, and that they are gone afterwards.

An engine has a folder that only this user can read, and removes it at its end. A process that was killed could not: its
folders are removed by the next one. Whether somebody still uses a folder is told by a lock on it, which ends with the
process that holds it, whatever becomes of its number.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

if sys.platform != "win32":  # where nothing tells whether a folder is in use
    import fcntl

__all__ = ["Spill"]

_PREFIX = "discreet-spill-"
_YOUNG_S = 60.0
"""Younger folders are left alone: somebody may just have made them, and not have locked them yet."""


class Spill:
    """A folder for what an engine has no room for; a process that was forked off leaves it to the one that made it."""

    def __init__(self) -> None:
        _sweep()
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._owner = os.getpid()
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Remove the folder with all that is in it; nothing if that has been done."""
        if os.getpid() != self._owner:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        _unlock(self._lock)
        self._lock = None


@cache
def _sweep() -> None:
    """Remove the folders of processes that are no more; looked for once by each process."""
    if sys.platform == "win32":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            status = folder.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG_S:
                continue
            lock = _locked(str(folder))
        except OSError:  # in use, or gone by now
            continue
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            _unlock(lock)


def _locked(path: str) -> int | None:
    """A lock on the folder, until it is closed or the process ends; OSError if somebody else has it."""
    if sys.platform == "win32":
        return None
    found = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        raise
    return found


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
