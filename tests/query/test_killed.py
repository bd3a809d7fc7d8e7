"""Processes that are killed in the middle of a question: what may have been seen is paid for, nothing is corrupt."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet import Budget
from query.killed import STEPS
from query.open_shop import charges, opened, visits

PROGRAM = Path(__file__).with_name("killed.py")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_question_is_paid_for_once_it_is_reserved(tmp_path: Path) -> None:
    data, ledger = tmp_path / "visits.parquet", tmp_path / "visits.ledger"
    pq.write_table(visits(), data)
    opened(data, ledger=ledger, budget=Budget(epsilon=10.0)).close()
    # the one that completes comes last: its answer is kept, and would be read by those that ask after it
    for steps in (STEPS[:-1], STEPS[-1:]):
        processes = [
            subprocess.Popen([sys.executable, str(PROGRAM), step, str(data), str(ledger)], stdout=subprocess.PIPE)
            for step in steps
        ]
        ends = [(process.communicate()[0], process.returncode) for process in processes]
        assert ends == [(b"", -signal.SIGKILL)] * len(steps)
    with opened(data, ledger=ledger, budget=None) as curator:
        curator.ledger.verify()
        assert charges(curator) == len(STEPS) - 1  # all but the one that died before
        assert curator.remaining == pytest.approx(10 - (len(STEPS) - 1), abs=1e-6)
        states = sorted(str(entry.state) for entry in curator.ledger.entries(kind="reserve"))
        assert states == ["released", "reserved", "reserved", "reserved"]
        # of what was chosen, only that is remembered whose answer was completed
        assert len(list(curator.ledger.entries(kind="told"))) == 1
        # what was completed was stored before it was shown: it can be read again at no cost
        assert curator.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1.0).repeated
