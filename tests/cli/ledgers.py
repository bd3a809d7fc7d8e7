"""Ledgers for commands to look at."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from discreet import Budget, Cost, Ledger
from discreet.ledger import Head


def written_ledger(path: Path, *, key: Path | None = None) -> Head:
    """A data set, an analyst with a budget, three charges in three states."""
    with Ledger.open(path, key=key) as ledger:
        ledger.establish("visits", Budget(epsilon=1.0, delta=1e-6))
        ledger.limit("visits", Budget(epsilon=0.5), analyst="ada", period=timedelta(days=30))
        done = ledger.reserve("visits", Cost.pure(0.25), analyst="ada", what="SELECT COUNT(*)\n FROM visits")
        ledger.complete(done, b"41")
        failed = ledger.reserve("visits", Cost.pure(0.125), analyst="bob", what="SELECT \x1b[31m" + "x" * 100)
        ledger.fail(failed, "out of memory")
        ledger.reserve("visits", Cost.discrete_laplace(10.0), analyst="bob")
        return ledger.head
