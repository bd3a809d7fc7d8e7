"""Which versions of its files a data set was opened with, and whether they are still those."""

from __future__ import annotations

import secrets
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.frames import files_behind
from discreet.engines.paths import files_of, in_files
from discreet.errors import SourceError

if TYPE_CHECKING:
    from discreet.query.policy import Policy

__all__ = ["check_versions", "held_of", "versions_of"]

_held: dict[int, tuple[weakref.ref[Any], str]] = {}  # what tables in memory are called, while they are there


def versions_of(policy: Policy) -> list[list[Any]]:
    """The files of the data, with size and time, and what the policy reads from them as which table.

    Tables in memory have no file and count as unchanged.
    """
    found: list[list[Any]] = []
    for name, table in policy.tables.items():
        types = sorted((column.lower(), str(facts.type)) for column, facts in table.columns.items() if facts.type)
        read = [name.lower(), table.table, types, *([table.encoding] if table.encoding else [])]
        paths = files_of(table.source).paths if in_files(table.source) else files_behind(table.source)
        if not paths:
            found.append([None, *read])
        for path in paths:
            status = Path(path).stat()
            found.append([path, *read, status.st_size, status.st_mtime_ns])
    return found


def held_of(policy: Policy) -> str:
    """A name of the tables in memory, as these very objects, which no other process and no other tables have.

    Empty if there are none. What they hold must not decide it: that two tables are equal is about everybody in them.
    """
    sources = [table.source for table in policy.tables.values()]
    return " ".join(_name(one) for one in sources if not in_files(one) and not files_behind(one))


def _name(source: object) -> str:
    key = id(source)
    known = _held.get(key)
    if known is not None and known[0]() is source:
        return known[1]
    name = secrets.token_hex(16)
    with suppress(TypeError):  # of what cannot be referred to nothing is known the next time
        _held[key] = weakref.ref(source, lambda _: _held.pop(key, None)), name
    return name


def check_versions(files: list[list[Any]]) -> None:
    """Refuses if a file of the data is gone or is another one than was opened.

    What makes every row count by itself was looked at when it was opened.
    """
    for path, *facts in files:
        if path is None:
            continue
        try:
            status = Path(path).stat()
        except OSError:
            raise SourceError(path, "is no longer there", "Put it back, or open the data again.") from None
        if facts[-2:] != [status.st_size, status.st_mtime_ns]:
            raise SourceError(path, "has changed since the data was opened", "Open the data again.")
