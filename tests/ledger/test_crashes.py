"""Processes die, fight for one budget, or find the disk full: the ledger is never short, never corrupt, never late."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import SEED
from discreet import Budget, BudgetExceeded, Cost, Ledger
from discreet.errors import LedgerError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed by signals")

CHILDREN = Path(__file__).with_name("children.py")


def run(scenario: str, path: Path, *arguments: object) -> Any:
    """What the scenario found, in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, str(CHILDREN), scenario, str(path), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_before_and_after_every_statement_of_a_query_nothing_is_missing(tmp_path: Path) -> None:
    assert run("statements", tmp_path / "l.db") >= 40


def test_killed_at_any_time_nothing_is_missing(tmp_path: Path) -> None:
    assert run("random", tmp_path / "l.db", 25, SEED) == 25


@pytest.mark.slow
def test_killed_hundreds_of_times_nothing_is_missing(tmp_path: Path) -> None:
    assert run("random", tmp_path / "l.db", 500, f"{SEED} long") == 500


def test_eight_processes_spend_exactly_the_budget_and_no_more(tmp_path: Path) -> None:
    granted = run("hammer", tmp_path / "l.db", 8)
    assert sum(granted.values()) == 300  # 0.3 in steps of 0.001
    assert granted["p0"] <= 50  # its own limit
    assert sum(1 for count in granted.values() if count) > 1  # they did compete


def test_many_processes_that_make_the_same_ledger_make_one(tmp_path: Path) -> None:
    assert run("opening", tmp_path / "l.db", 24) == 24


def test_of_eight_processes_that_open_data_for_eight_units_one_may_spend(tmp_path: Path) -> None:
    assert sorted(run("units", tmp_path / "l.db", 8).values()) == [0] * 7 + [1]


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_eight_threads_spend_exactly_the_budget_and_no_more(tmp_path: Path, kind: str) -> None:
    ledger = Ledger.in_memory() if kind == "memory" else Ledger.open(tmp_path / "l.db")
    ledger.establish("d", Budget(epsilon=0.1))
    granted: list[int] = []
    failures: list[BaseException] = []

    def spend() -> None:
        try:
            while True:
                entry = ledger.reserve("d", Cost.pure(0.001), fingerprint="f")
                ledger.complete(entry, b"x")
                granted.append(entry.id)
        except BudgetExceeded:
            pass
        except BaseException as error:  # noqa: BLE001 (whatever it is, the test must see it)
            failures.append(error)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(set(granted)) == len(granted) == 100
    assert ledger.verify().released == 100


# -------------------------------------------------------------------- forks


def test_what_a_child_spends_is_kept_when_its_parent_closes_the_ledger(tmp_path: Path) -> None:
    """SQLite would remove the log that the child writes to: its locks are those of the parent."""
    assert run("parted", tmp_path / "l.db") == [pytest.approx(1 - 0.011), pytest.approx(1 - 0.011)]


def test_a_process_can_be_forked_while_its_threads_spend(tmp_path: Path) -> None:
    assert run("forking", tmp_path / "l.db", 10) == 30


def test_a_fork_inside_of_a_transaction_leaves_the_ledger_to_the_parent(tmp_path: Path) -> None:
    told, left = run("inside", tmp_path / "l.db")
    assert "was in use when this process was forked" in told
    assert left == "0.999"


# -------------------------------------------------------------------- full disks


def goes_on(path: Path, found: dict[str, Any]) -> None:
    """After the disk was full: what was granted is there, what was not is not, and work goes on when there is room."""
    ledger = Ledger.open(path)
    ledger.verify()
    stored = {entry.id for entry in ledger.entries(kind="reserve")}
    granted = {int(number) for word, number in found["lines"] if word == "granted"}
    assert granted == stored
    for word, number in found["lines"]:
        if word == "shown":
            assert ledger.answer("d", f"f{number}") is not None
    ledger.reserve("d", Cost.pure(0.001))
    ledger.verify()
    ledger.close()


def test_a_file_that_cannot_grow_gives_a_clear_error_and_no_charge(tmp_path: Path) -> None:
    found = run("full", tmp_path / "l.db", 200_000)
    assert "cannot be" in found["message"]
    assert "This step was not recorded" in found["message"]
    assert found["lines"]
    goes_on(tmp_path / "l.db", found)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB and 40 files, where mounting one is allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k,nr_inodes=40", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only a privileged user may mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_gives_a_clear_error_and_no_charge(small_disk: Path) -> None:
    found = run("full", small_disk / "l.db", 0)
    assert "the disk is full" in found["message"]
    assert found["lines"]
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    goes_on(small_disk / "l.db", found)


def filled(disk: Path, with_what: str = "bytes") -> None:
    """Not a byte is free, or not a file more is possible."""
    place = disk / "filling"
    place.mkdir()
    with contextlib.suppress(OSError):
        if with_what == "files":
            for number in range(100):
                (place / str(number)).touch()
        with (place / "bytes").open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass


@pytest.mark.parametrize("with_what", ["bytes", "files"])
@pytest.mark.parametrize("read_only", [True, False])
def test_whoever_opens_a_ledger_on_a_full_disk_is_told_so(small_disk: Path, read_only: bool, with_what: str) -> None:
    path = small_disk / "l.db"
    with Ledger.open(path) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
    filled(small_disk, with_what)
    with pytest.raises(LedgerError, match=r"l\.db cannot be used because the disk is full\. Nothing was changed"):
        Ledger.open(path, read_only=read_only).verify()
    shutil.rmtree(small_disk / "filling")
    assert Ledger.open(path, read_only=read_only).verify().head.count == 2


def test_a_backup_that_finds_no_room_names_its_place_and_leaves_nothing_there(small_disk: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.establish("d", Budget(epsilon=1.0))
    filled(small_disk)
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"cannot be copied to .*disk/copy\.db: .* The ledger is as it was"):
            ledger.backup(small_disk / "copy.db")
    assert [file.name for file in small_disk.iterdir()] == ["filling"]
    assert ledger.remaining("d") == 1.0


def test_a_full_database_gives_a_clear_error_and_no_charge(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.establish("d", Budget(epsilon=1.0))
    with ledger._store.writing() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    before, left = ledger.head, ledger.remaining("d")
    with pytest.raises(LedgerError, match=r"the disk is full.*not recorded"):
        ledger.reserve("d", Cost.pure(0.1), what="x" * 100_000)
    assert (ledger.head, ledger.remaining("d")) == (before, left)
    entry = ledger.reserve("d", Cost.pure(0.1))
    with pytest.raises(LedgerError, match="the disk is full"):
        ledger.complete(entry, b"x" * 100_000)
    assert ledger.remaining("d") == 0.9  # charged, and nothing was shown
    assert ledger.answer("d", "f") is None
    ledger.verify()


# -------------------------------------------------------------------- files that may not be written


@pytest.fixture
def public_place() -> Iterator[Path]:
    """A directory that other users may look into; pytest's own are private."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    yield place
    place.chmod(0o755)
    shutil.rmtree(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only a privileged user can become another one")
def test_whoever_may_only_read_sees_what_is_written_meanwhile(public_place: Path) -> None:
    assert run("looking", public_place / "l.db") == [1.0, 0.999, 0.998]


@pytest.mark.parametrize("protected", ["file", "file and directory"])
def test_a_read_only_file_can_be_read_and_gives_a_clear_error_on_writing(public_place: Path, protected: str) -> None:
    path = public_place / "l.db"
    with Ledger.open(path) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
        ledger.reserve("d", Cost.pure(0.25))
    path.chmod(0o444)
    public_place.chmod(0o555 if "directory" in protected else 0o755)
    refusal = run("unprivileged", path, "write")
    assert "read-only" in refusal or "cannot be opened" in refusal
    assert "writable" in refusal or "permission" in refusal or "may be read and written" in refusal
    assert run("unprivileged", path, "read") == "0.75 1"
    assert [file.name for file in public_place.iterdir()] == ["l.db"]  # what was left there would be in the way
    path.chmod(0o600)
    public_place.chmod(0o755)
    assert Ledger.open(path).remaining("d") == 0.75
