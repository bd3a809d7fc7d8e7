"""Calling the command line from tests: in this process, which is quick, or as users do."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner, Result

from discreet.cli import app

NEW_LEDGER = re.compile(r"A new ledger was made, .*\n")


def call(*arguments: str, stdin: str | None = None) -> Result:
    """The command with these arguments, in this process."""
    return CliRunner().invoke(app, list(arguments), input=stdin, prog_name="discreet")


def good(command: str, stdin: str | None = None) -> str:
    """What a command that must succeed prints; nothing is said beside it, except of a ledger that was made."""
    result = call(*shlex.split(command), stdin=stdin)
    assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception!r}"
    assert NEW_LEDGER.sub("", result.stderr) == ""
    return result.stdout


def good_json(command: str, stdin: str | None = None) -> dict[str, Any]:
    """The one object that a command with --json prints."""
    lines = good(f"{command} --json", stdin).splitlines()
    assert len(lines) == 1
    value = json.loads(lines[0], parse_constant=lambda constant: pytest_fail(constant))
    assert isinstance(value, dict)
    return value


def pytest_fail(constant: str) -> float:
    """JSON knows no NaN and no Infinity."""
    raise AssertionError(f"{constant} is not JSON")


def process(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command with these arguments, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "discreet", *arguments], capture_output=True, text=True, input=stdin, check=False
    )
