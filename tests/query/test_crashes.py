"""A curator is killed at every step of a query: what was shown was paid for, and the ledger is sound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed by signals")

DYING = Path(__file__).with_name("dying.py")


@pytest.mark.parametrize("share", [0.0, 0.5], ids=["", "bounds for everybody"])
@pytest.mark.parametrize("deaths", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_killed_at_any_step_of_a_query_the_ledger_is_never_short(tmp_path: Path, deaths: int, share: float) -> None:
    done = subprocess.run(
        [sys.executable, str(DYING), str(tmp_path), str(deaths), str(share)],
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    assert states["before"] > 0  # some died before anything was charged,
    assert states["reserved"] > 0  # some after the charge and before the answer
    assert states["before"] + states["reserved"] + states["released"] == deaths
