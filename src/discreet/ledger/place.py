"""Where a ledger is: which file a path means, the log beside it, and whether others would look for that elsewhere."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["Identity", "Place"]

Identity = tuple[int, int]
"""Device and number of a file."""

_MOUNTS = "/proc/self/mountinfo"


class Place:
    """A path, and the file that it means: SQLite follows links, and keeps the log beside the file itself."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # also when the program goes to another directory
        self.file = Path(os.path.realpath(path))
        self.log = Path(f"{self.file}-wal")
        self.mark = Path(f"{self.file}-new")
        self.directory = self.file.parent

    def facts(self) -> os.stat_result | None:
        """What the file system knows of the file; None if there is none."""
        return _facts(self.path)

    def state(self) -> tuple[Any, ...]:
        """What changes when anybody writes."""
        facts = self.facts()
        return (None if facts is None else (facts.st_ino, facts.st_size, facts.st_mtime_ns), self.log.exists())

    def log_identity(self) -> Identity | None:
        """Of the log; None if there is none."""
        facts = _facts(self.log)
        return None if facts is None else (facts.st_dev, facts.st_ino)

    def begin(self) -> bool:
        """Whether a ledger may be made here: nothing is in the file yet, or somebody has begun to make one.

        That is what the mark says, a file beside it, from before the first byte is written until the ledger is there.
        """
        if self.holds():
            return self.mark.exists()
        with suppress(OSError):  # SQLite will say that nothing can be written here
            os.close(os.open(self.mark, os.O_CREAT | os.O_WRONLY, 0o600))
        return True

    def holds(self) -> bool:
        """Whether something is in the file."""
        facts = self.facts()
        return facts is not None and facts.st_size > 0

    def finish(self) -> None:
        """A ledger is there: from now on none is made."""
        with suppress(OSError):
            self.mark.unlink(missing_ok=True)

    def make(self) -> None:
        """Makes an empty file that nobody else may read, if there is none: it will hold answers."""
        with suppress(OSError):  # it is there, or SQLite will say that it cannot be
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def is_writable(self) -> bool:
        """Whether this user may write the file, and a log beside it."""
        return os.access(self.file, os.W_OK) and os.access(self.directory, os.W_OK)

    def is_mounted_alone(self) -> bool:
        """Whether the file was put here from elsewhere without its directory, as containers do; known on Linux."""
        try:
            mounts = Path(_MOUNTS).read_bytes().splitlines()
        except OSError:
            return False
        wanted = os.fsencode(self.file)
        return any(_unescaped(fields[4]) == wanted for line in mounts if len(fields := line.split()) > 4)

    def make_name_durable(self) -> None:
        """After a power failure the directory must still know the new file."""
        if os.name == "posix":
            directory = os.open(self.directory, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _unescaped(field: bytes) -> bytes:
    for code in (b"040", b"011", b"012", b"043"):
        field = field.replace(b"\\" + code, bytes([int(code, 8)]))
    return field.replace(b"\\134", b"\\")
