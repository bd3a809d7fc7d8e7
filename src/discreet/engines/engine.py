"""What an engine must do, so that PostgreSQL and Spark can follow DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    import numpy as np
    import pyarrow as pa

__all__ = ["Engine", "Session"]


@runtime_checkable
class Session(Protocol):
    """One line of work: temporary tables made in a session are seen by it alone and end with it."""

    steady: bool
    """Whether every statement reads the same rows of the sources, whichever columns it reads."""

    def execute(self, sql: str, *, plain: bool = False) -> None:
        """Run a statement that returns nothing, such as CREATE TEMP TABLE.

        `plain` says that it has no expression that a question brought along, so that it may be planned in ways that
        fail on some data for some expressions.
        """

    def table(self, sql: str, *, plain: bool = False) -> pa.Table:
        """The rows of a SELECT as an Arrow table."""

    def numpy(self, sql: str, *, plain: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of a SELECT as arrays; 128-bit integers stay exact."""

    def numbers(self, sql: str, *, plain: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of a SELECT of numbers that have at most 64 bits and are not NULL: arrays of int64 or float64."""

    def tally(self, sql: str, size: int, *, plain: bool = False) -> np.ndarray[Any, Any]:
        """How often each of the integers from 0 to `size` - 1 occurs in the one column of a SELECT."""

    def filtered(
        self,
        sql: str,
        keep: Callable[[pa.RecordBatch], np.ndarray[Any, Any]],
        *,
        order: Sequence[str],
        plain: bool = False,
    ) -> pa.Table:
        """The rows of a SELECT that `keep` picks, in the order of these columns, as an Arrow table.

        It is asked as they come.
        """

    def insert(self, name: str, rows: pa.Table, select: str = ...) -> None:
        """Make a temporary table of this name from Arrow rows, in place of an earlier one.

        `select` reads the rows as q__incoming; without it the table has them as they are.
        """

    def listed(self, name: str, texts: Sequence[str | None], kind: str) -> str:
        """The name of a table (k, i) of public texts as values of a type and their numbers, in that order.

        Values that the type makes equal are one, with the smallest of their numbers. The table may be kept for other
        sessions; if it is not, it is a temporary one of the given name.
        """

    def codes(self, texts: Sequence[str]) -> str | None:
        """The name of an ENUM of different public texts, in that order, or None: `TRY_CAST` makes others NULL."""

    def interrupt(self) -> None:
        """Stop what the session is doing, from another thread; it raises `EngineError` there."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class Engine(Protocol):
    """Holds the sources of tables and runs SQL over them; its errors are `EngineError` and show no value."""

    def register(
        self,
        name: str,
        source: object,
        *,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
        leave_out: Collection[str] = (),
        encoding: str | None = None,
    ) -> str:
        """Make a source a relation and give the quoted name by which SQL reads it; no value is read but where said."""

    def schema(self, relation: str) -> list[tuple[str, str]]:
        """Names and types of the columns of a relation, without touching rows."""

    def stored_types(self, name: str) -> dict[str, str]:
        """The types in which the source of a registered table has its columns, by lower-case name."""

    def session(self) -> Session:
        """A new session; the first one ends registration."""

    def close(self) -> None:
        """Let go of everything."""
