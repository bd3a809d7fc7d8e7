"""What is said when DuckDB fails: never its own words, which may show values of the data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from discreet.errors import DiscreetError, EngineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["guarded", "shown_cause"]

_FILES = (
    "a file could not be read: the engine reads only the files that the data was opened with, as long as they are "
    "where they were. Put them back, or open the data again."
)
_SAID = {
    "OutOfMemoryException": (
        "memory",
        "the engine ran out of memory. Give it more (memory_limit), fewer threads, or a temporary directory with room.",
    ),
    "InterruptException": ("interrupt", "the work was interrupted before it was done."),
    "IOException": ("files", _FILES),
    "PermissionException": ("files", _FILES),
    "BinderException": ("statement", "the engine did not accept a statement. See the SQL and the types."),
    "CatalogException": ("statement", "the engine did not find a name. See the SQL and the tables."),
    "ParserException": ("statement", "the engine could not parse a statement. See the SQL."),
}
_STOPPED = ("Query interrupted",)
"""What DuckDB says when the handler of a signal has raised an exception in the thread that waits for it."""

_OTHERWISE = (
    "the engine could not finish, and what it said may show values of the data, so it is not repeated here. The owner "
    "of the data can set DISCREET_SHOW_ENGINE_ERRORS=1 in the environment of the process to see it as the cause."
)


def shown_cause(error: BaseException) -> BaseException | None:
    """The error itself as the cause of another one, if the owner of the process wants to see it; else None."""
    return error if os.environ.get("DISCREET_SHOW_ENGINE_ERRORS") == "1" else None


def guarded(work: Callable[[], T]) -> T:
    """The result of the work; if it fails, an `EngineError` that carries nothing of what was said.

    The error is raised after the handler has ended, so that the original is neither its cause nor its context. Ctrl-C
    is a KeyboardInterrupt, which DuckDB has made another error of.
    """
    cause: BaseException | None = None
    stopped = False
    try:
        return work()
    except DiscreetError:
        raise
    except Exception as error:  # noqa: BLE001 - of nothing that goes wrong in the engine may the words pass
        stopped = type(error) is RuntimeError and error.args == _STOPPED
        kind, message = _SAID.get(type(error).__name__, ("failed", _OTHERWISE))
        cause = shown_cause(error)
    if stopped:
        raise KeyboardInterrupt
    raise EngineError(kind, message) from cause
