"""What goes wrong with the file of a ledger, in words: which file, what is wrong with it, what to do."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from discreet.errors import LedgerCorrupt, LedgerError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ADVICE", "BUSY_S", "READ_ONLY", "code", "explained", "is_full"]

BUSY_S = 60.0
"""How long a process waits for the others before it gives up."""

ADVICE = "This step was not recorded. Mend the cause and try again."

_LEAST_ROOM = 1 << 16
"""Bytes: SQLite lays a file of half of it beside a ledger, also for those who only look."""

READ_ONLY = (
    "is read-only",
    "This step was not recorded. Charges must be stored: make the file and its directory writable.",
)
"""What is wrong with a file that may not be written, and what to do."""

_PROBLEMS = {
    "SQLITE_FULL": ("cannot be written because the disk is full", "This step was not recorded. Free space, try again."),
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_BUSY": (
        f"was locked by another process for more than {BUSY_S:g} seconds",
        "This step was not recorded. Find who holds it, or try again.",
    ),
    "SQLITE_NOTADB": (
        "is not a ledger: the file is no SQLite database",
        "Pass the path of a ledger, or of a new file.",
    ),
    "SQLITE_CANTOPEN": (
        "cannot be opened",
        "Check that the directory exists and that file and directory may be read and written.",
    ),
    "SQLITE_PERM": ("may not be used", "Check the permissions of the file and its directory."),
    "SQLITE_IOERR": ("cannot be read or written: the file system reports an error", ADVICE),
}


def code(error: BaseException | None) -> str:
    """The name that SQLite has for an error."""
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


def explained(name: str, error: BaseException | None, directory: Path | None) -> LedgerError:
    """An error of SQLite in words; `directory` is where the file of the ledger is."""
    found = code(error)
    if found.startswith("SQLITE_CORRUPT"):
        return LedgerCorrupt(name, (f"SQLite cannot read it: {error}",))
    if found.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and directory is not None and is_full(directory):
        return LedgerError(
            name,
            "cannot be used because the disk is full",
            "Nothing was changed. Free space and try again: also to look at it takes a small file beside it.",
        )
    for start, (problem, advice) in _PROBLEMS.items():
        if found.startswith(start):
            return LedgerError(name, problem, advice)
    return LedgerError(name, f"cannot be used: {error} ({found})", ADVICE)


def is_full(directory: Path) -> bool:
    """Whether the disk has no room for another small file, in bytes or in number; no if nobody can say."""
    try:
        if shutil.disk_usage(directory).free < _LEAST_ROOM:
            return True
        facts = os.statvfs(directory) if hasattr(os, "statvfs") else None
    except OSError:
        return False
    return facts is not None and facts.f_files > 0 and facts.f_favail == 0
