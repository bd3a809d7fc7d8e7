"""Fits that are interrupted by Ctrl-C: what was charged stays charged, nothing is kept, and the ledger is whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet import Budget, Cost
from query.open_shop import opened, visits

PROGRAM = Path(__file__).with_name("interrupted.py")
BOX = Cost.approximate(1.0, 1e-8)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this system has no SIGINT for one process")


@pytest.mark.parametrize("how", ["curator", "charge", "goes on"])
def test_an_interrupted_fit_leaves_the_ledger_true(how: str, tmp_path: Path) -> None:
    data, ledger = tmp_path / "visits.parquet", tmp_path / "visits.ledger"
    pq.write_table(visits(), data)
    opened(data, ledger=ledger, budget=Budget(epsilon=10.0, delta=1e-6)).close()
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), how, str(data), str(ledger)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "learning\n"  # some steps are done, the others never will be
            process.send_signal(signal.SIGINT)
            said, complaint = process.communicate()
        finally:
            process.kill()
    with opened(data, ledger=ledger, budget=None) as curator:
        assert curator.ledger.verify()
        entries = list(curator.ledger.entries(kind="reserve"))
        if how == "charge":  # both steps were paid for, release by release, before any noise of theirs was drawn
            assert [str(entry.state) for entry in entries] == ["released", "released"]
            assert 1.2 < curator.spent.epsilon(2e-8) <= 2.0
            assert "gradients" in entries[-1].what
        else:  # the whole price, before a row was read
            assert str(entries[0].state) == "reserved"
            assert entries[0].cost == BOX + BOX
        if how == "goes on":
            assert said == "nothing kept\nTrue\n"
            assert process.returncode == 0
            assert curator.spent == BOX + BOX + entries[-1].cost
        else:
            assert said == ""
            assert "KeyboardInterrupt" in complaint
            assert process.returncode == -signal.SIGINT
        if how == "curator":
            assert curator.spent == BOX + BOX
        assert curator.sql("SELECT SUM(items) AS n FROM visits", epsilon=1.0, bounds=(0, 9)).fetchall()
