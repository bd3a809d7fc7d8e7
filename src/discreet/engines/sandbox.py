"""A place for SQL over answers and public values alone: it has the given tables and no way to anything else."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from discreet.engines.failures import guarded
from discreet.engines.inherited import Holder
from discreet.engines.names import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

__all__ = ["Sandbox", "sandbox"]


class Sandbox(Holder):
    """An in-memory DuckDB without files, network, extensions or settings, apart from any engine.

    What runs here cannot reach the data: post-processing of a private answer is safe by construction. Results keep the
    order that ORDER BY gives, and otherwise that of the tables.

    >>> import pyarrow
    >>> noisy = pyarrow.table({"k0": ["a", "b"], "a0": [3, 5]})
    >>> Sandbox().run("SELECT k0 FROM noisy_0 WHERE a0 > 4", {"noisy_0": noisy}).to_pylist()
    [{'k0': 'b'}]
    """

    def __init__(self) -> None:
        import duckdb

        super().__init__()
        self._root = duckdb.connect(
            ":memory:",
            config={
                "threads": 1,
                "enable_external_access": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "allow_persistent_secrets": False,
                "python_enable_replacements": False,
                "temp_directory": "",
            },
        )
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        self._root.execute("SET lock_configuration = true")

    def run(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a SELECT over the tables, as an Arrow table; nothing is kept from one call to the next."""
        cursor = guarded(self._root.cursor)
        try:
            for name, table in tables.items():
                quoted(name)  # refuses what is no name
                guarded(lambda name=name, table=table: cursor.register(name, table))  # type: ignore[misc]
            return _plain(guarded(lambda: cursor.sql(sql).to_arrow_table()))
        finally:
            cursor.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a SELECT that brings its values along."""
        cursor = guarded(self._root.cursor)
        try:
            return guarded(lambda: cursor.execute(sql).fetchall())
        finally:
            cursor.close()

    def close(self) -> None:
        """Let go of the sandbox."""
        self._root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def sandbox() -> Sandbox:
    """The one of this process."""
    return _of(os.getpid())


@lru_cache(maxsize=1)
def _of(process: int) -> Sandbox:  # noqa: ARG001 (a forked child makes its own)
    return Sandbox()


def _plain(table: pa.Table) -> pa.Table:
    """The same, with whole numbers of 128 bits as BIGINT where all fit; Arrow has them as decimals."""
    import pyarrow as pa

    for place, column in enumerate(table.columns):
        if column.type == pa.decimal128(38, 0):
            with suppress(pa.ArrowInvalid):  # too large
                table = table.set_column(place, table.column_names[place], column.cast(pa.int64()))
    return table
