"""The command as users start it: a process of its own, quick to start, quiet when its reader leaves."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.calling import process
from discreet import DiscreetError, Ledger

HEAVY = ["numpy", "scipy", "matplotlib", "rich.table", "discreet.accounting", "discreet.plots"]


def test_success_is_0_and_json_is_one_object() -> None:
    done = process("account", "epsilon", "--gaussian", "2", "--delta", "1e-6", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["upper"] == pytest.approx(2.25408465, rel=1e-8)


def test_a_refusal_is_1_without_a_traceback() -> None:
    done = process("account", "epsilon", "--gaussian", "-2", "--delta", "1e-6")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: noise_multiplier = -2 is not allowed: pass a number > 0\n"


def test_wrong_usage_is_2() -> None:
    done = process("account", "epsilon", "--gaussian", "two", "--delta", "1e-6")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout) == (0, f"discreet {importlib.metadata.version('discreet')}\n")


def test_the_script_of_the_distribution_is_the_same_command() -> None:
    [script] = importlib.metadata.entry_points(group="console_scripts", name="discreet")
    from discreet.cli import main

    assert script.load() is main


@pytest.mark.parametrize("arguments", [["--help"], ["account", "epsilon", "--help"], ["account", "epsilon"]])
def test_help_and_wrong_usage_load_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import json, sys\nfrom discreet.cli import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert "typer" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_screen_without_accents_is_no_reason_to_fail() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "account", "epsilon", "--cost", "renyi({2: 0.1})", "--delta", "1e-6"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert done.returncode == 0
    assert b"R\\xe9nyi" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_reason_to_complain() -> None:
    command = [sys.executable, "-m", "discreet", "account", "epsilon", "--gaussian", "1", "--delta", "1e-6"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        assert b"Traceback" not in running.stderr.read()


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no signals for one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_is_stopped_while_a_question_is_answered_hears_that_it_is_paid_and_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    rows = {"u": rng.integers(0, 10**6, 10**6), "x": rng.integers(0, 10**9, 10**6), "y": rng.random(10**6)}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    ledger, temporary = tmp_path / "t.ledger", tmp_path / "temporary"
    temporary.mkdir()
    measures = ", ".join(f"COUNT(DISTINCT x + {i}), MEDIAN(y + {i})" for i in range(20))
    text = f"SELECT {measures} FROM t"
    budget = ["--unit", "u", "--budget-epsilon", "5", "--epsilon", "5", "--ledger", str(ledger)]
    with subprocess.Popen(
        [sys.executable, "-m", "discreet", "query", "run", str(tmp_path / "t.parquet"), text, *budget],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as command:
        try:
            while not _charged(ledger):
                assert command.poll() is None, command.communicate()
                time.sleep(0.05)
            assert list(temporary.iterdir())
            command.send_signal(number)
            _, complaint = command.communicate()
        finally:
            command.kill()
    assert command.returncode == 130
    assert "the question was stopped; what it cost stays spent" in complaint
    assert list(temporary.iterdir()) == []
    with Ledger.open(ledger) as book:
        (entry,) = book.entries(kind="reserve")
        assert str(entry.state) == "failed"
        assert book.verify()


def _charged(path: Path) -> bool:
    """Whether somebody has been charged; the ledger may not be there yet, or not be whole."""
    try:
        with Ledger.open(path, read_only=True) as book:
            return any(True for _ in book.entries(kind="reserve"))
    except DiscreetError:
        return False
