"""The tables of a policy in an engine, opened once by every process that asks about them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.engines import DuckDBEngine
from discreet.query.turns import Turns
from discreet.query.versions import check_versions, held_of, versions_of

if TYPE_CHECKING:
    from discreet.query.catalog import Catalog
    from discreet.query.policy import Policy

__all__ = ["Data"]


class Data:
    """Tables as they were when they were opened; files that have changed since are refused.

    A fork copies an engine without its threads, and the copy waits for them without end (see `engines.inherited`). So a
    process that was forked off opens the same files anew, and reads the same tables in memory, when it asks for the
    first time.
    """

    def __init__(self, policy: Policy, *, memory_limit: str | None = None, threads: int | None = None) -> None:
        self._policy, self._memory_limit, self._threads = policy, memory_limit, threads
        self.files = versions_of(policy)  # before they are looked through: what comes later is another version
        self.held = held_of(policy)
        self._engine, self.catalog = self._opened(policy)
        self._process = os.getpid()
        self._turns = Turns()

    @property
    def engine(self) -> DuckDBEngine:
        """The engine of this process."""
        if self._process != os.getpid():
            with self._turns.of("opening"):
                if self._process != os.getpid():
                    self._open_anew()
        return self._engine

    def check(self) -> None:
        """Refuses if a file is gone or is another one than was opened."""
        check_versions(self.files)

    def close(self) -> None:
        """Let go of everything."""
        if self._process == os.getpid():
            self._engine.close()

    def _open_anew(self) -> None:
        before = self._engine
        frames = {name: before.frame(name) for name in self._policy.tables}
        tables = {
            name: table if frames[name] is None else replace(table, source=frames[name])
            for name, table in self._policy.tables.items()
        }
        self.check()
        self._engine, self.catalog = self._opened(replace(self._policy, tables=tables))
        self._process = os.getpid()

    def _opened(self, policy: Policy) -> tuple[DuckDBEngine, Catalog]:
        engine = DuckDBEngine(memory_limit=self._memory_limit, threads=self._threads)
        try:
            return engine, policy.resolve(engine)
        except BaseException:
            engine.close()
            raise
