"""The command as users start it: a process of its own, quick to start, quiet when its reader leaves."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys

import pytest

from cli.calling import process

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
