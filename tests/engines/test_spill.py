"""What did not fit into memory is gone afterwards, also if the process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from discreet.engines import DuckDBEngine, spill
from discreet.engines.spill import Spill

PROGRAM = """
import sys
from discreet.engines import DuckDBEngine
engine = DuckDBEngine(memory_limit="60MB", threads=1)
folder = engine._root.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
with engine.session() as session:
    session.execute("CREATE TEMP TABLE t AS SELECT hash(i) AS a, 'secret-' || i AS b FROM range(3000000) r(i)")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary files that nobody else uses."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    spill._sweep.cache_clear()
    return tmp_path


def aged(folder: Path) -> None:
    """Let it be older than those that are left alone."""
    then = time.time() - 2 * spill._YOUNG_S
    os.utime(folder, (then, then))


def test_what_was_spilled_by_a_process_that_was_killed_is_removed_by_the_next(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.parent == place
        assert folder.stat().st_mode & 0o077 == 0
        assert sum(path.stat().st_size for path in folder.iterdir()) > 1 << 20
        aged(folder)
        DuckDBEngine().close()
        assert folder.exists()  # it is in use
        process.send_signal(signal.SIGKILL)
    assert folder.exists()
    spill._sweep.cache_clear()
    DuckDBEngine().close()
    assert not folder.exists()


def test_folders_that_are_young_or_no_folders_of_ours_are_left_alone(place: Path) -> None:
    young, other = place / f"{spill._PREFIX}young", place / "discreet-notes"
    for folder in (young, other):
        folder.mkdir()
    aged(other)
    file = place / f"{spill._PREFIX}file"
    file.write_text("mine")
    link = place / f"{spill._PREFIX}link"
    link.symlink_to(other)
    aged(file)
    Spill().remove()
    assert {young, other, file, link} == set(place.iterdir())


def test_a_folder_is_removed_once_and_not_by_a_process_that_was_forked_off(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Spill()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        made.remove()
    assert Path(made.path).exists()
    made.remove()
    made.remove()
    assert not Path(made.path).exists()
