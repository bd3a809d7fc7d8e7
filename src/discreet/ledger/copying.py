"""A copy of a ledger in a new file: all of it or none, and what goes wrong said of the file that it went wrong with."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument, LedgerError
from discreet.ledger.problems import code

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["copy"]

_OF_THE_SOURCE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_BUSY")


def copy(source: sqlite3.Connection, path: Path, *, name: str) -> None:
    """Writes what is in a database to a new file that nobody else may read, whoever writes to it meanwhile."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InvalidArgument("path", str(path), "a file of that name exists; pass a new one") from None
    except OSError as error:
        raise LedgerError(
            name,
            f"cannot be copied to {path}: {error.strerror}",
            "The ledger is as it was. Name a new file in a directory that exists and may be written.",
        ) from None
    try:
        with closing(sqlite3.connect(path.absolute())) as target:  # a file, also where SQLite reads names otherwise
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error) and not code(error).startswith(_OF_THE_SOURCE):
            raise LedgerError(
                name,
                f"cannot be copied to {path}: {error}",
                "The ledger is as it was, and no copy was left. Free space there, or name another place.",
            ) from error
        raise
