"""Every script in examples/ runs alone and says something; those that draw write their picture where they are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert {"laplace_count.py", "audit_my_mechanism.py", "private_mean.py"} <= {path.name for path in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_example_runs_alone(script: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    draws = script.name.startswith("plot_")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *([str(picture)] if draws else [])],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 1000 if draws else done.stdout.strip()


def test_the_audit_of_the_whiteboard_mechanism_finds_its_low_bits() -> None:
    script = next(path for path in SCRIPTS if path.name == "audit_my_mechanism.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "✗ low bits" in done.stdout
    assert "✓ privacy" in done.stdout
