"""Where a ledger is: which file a path means, the log beside it, and whether others would look for that elsewhere."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["Identity", "Place"]

Identity = tuple[int, int]
"""Device and number of a file."""

_WITH_LOG = b"\2\2"  # what SQLite writes there of a file whose changes are in a log first
_MOUNTS = "/proc/self/mountinfo"


class Place:
    """A path, and the file that it means: SQLite follows links, and keeps the log beside the file itself."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # also when the program goes to another directory
        self.file = Path(os.path.realpath(path))
        self.log = Path(f"{self.file}-wal")
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

    def lacks_its_log(self) -> bool:
        """Whether the file is one that keeps a log beside it, and there is none: nobody uses it, or it is a copy."""
        if self.log.exists():
            return False
        try:
            with self.file.open("rb") as file:
                return file.read(20)[18:] == _WITH_LOG
        except OSError:
            return False

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
