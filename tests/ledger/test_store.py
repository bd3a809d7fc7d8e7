"""The file: what makes it durable, who may change it, and what is said when it cannot be used."""

from __future__ import annotations

import functools
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from discreet import Budget, Cost, Ledger
from discreet.errors import InvalidArgument, LedgerCorrupt, LedgerError
from discreet.ledger import Report, schema
from discreet.ledger.verification import verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a charge and an answer, closed."""
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
        ledger.complete(ledger.reserve("d", Cost.pure(0.25), fingerprint="f"), b"answer")
    return place


def test_commits_wait_for_the_disk_and_writers_for_each_other(path: Path) -> None:
    with Ledger.open(path)._store.reading() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout")
        }
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 60_000}


def test_charges_wait_for_the_disk_whatever_was_written_before(path: Path) -> None:
    store = Ledger.open(path)._store
    found = []
    for durable in (True, False, True):
        with store.writing(durable=durable) as connection:
            found.append(connection.exec_driver_sql("PRAGMA synchronous").scalar())
    assert found == [2, 1, 2]  # FULL and NORMAL


def test_whatever_part_of_the_log_a_loss_of_power_leaves_no_charge_that_was_granted_is_missing(tmp_path: Path) -> None:
    """A synced log is on the disk; of what was written since, any part may be, and it may be torn anywhere."""
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    log, copied = Path(f"{path}-wal"), Path(f"{copy}-wal")
    ledger = Ledger.open(path)
    ledger.establish("d", Budget(epsilon=1.0))
    for number in range(1, 4):
        entry = ledger.reserve("d", Cost.pure(0.125), fingerprint=f"f{number}")
        synced = log.stat().st_size
        ledger.complete(entry, b"answer", told={"bound": [number]})
        written = log.read_bytes()
        assert len(written) > synced
        states = set()
        for end in range(synced, len(written), 1000):
            for rest in (b"", bytes(len(written) - end)):  # cut off, or a hole where nothing was written
                copy.write_bytes(path.read_bytes())
                copied.write_bytes(written[:end] + rest)
                with Ledger.open(copy) as found:
                    assert found.remaining("d") == 1.0 - 0.125 * number
                    states.add(found.verify().released)
                    assert found.told("d", ["bound"])["bound"] in ([*range(number, 0, -1)], [*range(number - 1, 0, -1)])
        assert states == {number - 1}  # the end of the log is never there: the answer is undone as a whole
        assert ledger.verify(anchor=str(ledger.head)).released == number
    ledger.close()


@pytest.mark.parametrize("linked", [False, True])
def test_a_head_that_was_noted_is_on_the_disk(path: Path, linked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, int]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        synced.append((os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size))

    link = path.with_name("link.db")
    link.symlink_to(path)
    ledger = Ledger.open(link if linked else path)
    ledger.complete(ledger.reserve("d", Cost.pure(0.125)), b"answer")
    monkeypatch.setattr(os, "fsync", watched)
    log = Path(f"{path}-wal").stat()
    for look in (lambda: ledger.head, ledger.verify, lambda: [*ledger.export()], lambda: [*ledger.entries()]):
        synced.clear()
        look()
        assert synced == [(log.st_ino, log.st_size)]


def test_a_new_file_is_its_owners_alone(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ledger = Ledger.open(path)
    ledger.reserve("d", Cost.pure(0.1))
    for beside in path.parent.glob("ledger.db*"):
        assert stat.S_IMODE(beside.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET cost = NULL WHERE kind = 'reserve'",
        "UPDATE entries SET number = number + 100",
        "DELETE FROM entries WHERE kind = 'reserve'",
        "DELETE FROM entries",
        "INSERT INTO entries SELECT 99, kind, at, NULL, NULL, NULL, NULL, NULL, NULL, details, hash FROM entries",
        "REPLACE INTO entries SELECT number, kind, at, NULL, NULL, NULL, NULL, NULL, NULL, details, hash FROM entries",
        "UPDATE answers SET answer = x'00'",
        "DELETE FROM answers",
        "REPLACE INTO answers SELECT reservation, x'00' FROM answers",
    ],
)
def test_entries_and_answers_cannot_be_changed_by_plain_sql(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="of a ledger are"):
        database.execute(statement)
    database.close()
    Ledger.open(path).verify()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("these are my notes, and they are long enough to be no header of SQLite " * 100)
    before = place.read_bytes()
    with pytest.raises(LedgerError, match="no SQLite database"):
        Ledger.open(place)
    assert place.read_bytes() == before


def test_another_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "other.db"
    database = sqlite3.connect(place)
    database.execute("CREATE TABLE people (name TEXT)")
    database.close()
    before = place.read_bytes()
    for read_only in (True, False):
        with pytest.raises(LedgerError, match="another kind of database"):
            Ledger.open(place, read_only=read_only)
    assert place.read_bytes() == before


def test_a_newer_format_is_refused_and_left_alone(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    database.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=f"format version {schema.VERSION + 1}.*Upgrade discreet"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    place = tmp_path / "empty.db"
    place.touch()
    with pytest.raises(LedgerError, match="is empty"):
        Ledger.open(place, read_only=True)
    Ledger.open(place).establish("d", Budget(epsilon=1.0))
    Ledger.open(place).verify()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_copy_of_a_young_ledger_without_its_log_is_no_new_ledger(tmp_path: Path, read_only: bool) -> None:
    place, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with Ledger.open(place) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
        ledger.reserve("d", Cost.pure(0.75))
        shutil.copy(place, copy)
        before = copy.read_bytes()
        assert before
        with pytest.raises(LedgerError, match=r"holds no ledger.*-wal.*ledger backup"):
            Ledger.open(copy, read_only=read_only)
        assert copy.read_bytes() == before
        shutil.copy(f"{place}-wal", f"{copy}-wal")
        assert Ledger.open(copy, read_only=read_only).remaining("d") == 0.25


def test_however_many_open_a_copy_without_its_log_none_becomes_a_ledger(tmp_path: Path) -> None:
    place, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with Ledger.open(place) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
        shutil.copy(place, copy)
    assert not Path(f"{place}-new").exists()
    code = "import sys; from discreet import Ledger; Ledger.open(sys.argv[1])"
    openers = [
        subprocess.Popen([sys.executable, "-c", code, str(copy)], stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    said = [opener.communicate()[1] for opener in openers]
    assert all(opener.returncode == 1 for opener in openers)
    assert all("holds no ledger, though it is not empty" in one for one in said)


def test_a_ledger_that_somebody_has_begun_to_make_is_made(tmp_path: Path) -> None:
    """As it is after the process was killed: marked as begun, and without tables."""
    place = tmp_path / "ledger.db"
    begun = sqlite3.connect(place)
    begun.execute("PRAGMA journal_mode = WAL")
    begun.close()
    assert place.stat().st_size
    with pytest.raises(LedgerError, match="holds no ledger"):
        Ledger.open(place)
    Path(f"{place}-new").touch()
    with Ledger.open(place) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
    assert not Path(f"{place}-new").exists()
    assert Ledger.open(place).remaining("d") == 1.0


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"cannot be opened.*directory exists"):
        Ledger.open(tmp_path / "missing" / "ledger.db")
    with pytest.raises(LedgerError, match="is a directory"):
        Ledger.open(tmp_path)
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger.open(tmp_path / "ledger.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, read_only: bool) -> None:
    with pytest.raises(LedgerError, match="does not exist" if read_only else "too long"):
        Ledger.open(tmp_path / ("x" * 300), read_only=read_only)
    with pytest.raises(InvalidArgument, match="NUL"):
        Ledger.open(f"{tmp_path}/a\0b", read_only=read_only)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path / "loop", read_only=read_only)


def test_odd_names_of_files_are_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a b?mode=ro#c%20.db", "ä.db", "-x.db"):
        Ledger.open(name).establish("d", Budget(epsilon=1.0))
        assert (tmp_path / name).exists()
        assert Ledger.open(name, read_only=True).remaining("d") == 1.0


def test_a_ledger_stays_the_same_when_the_program_goes_elsewhere(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    ledger = Ledger.open("ledger.db")
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    ledger.reserve("d", Cost.pure(0.25))
    ledger.close()
    assert ledger.remaining("d") == 0.5
    assert ledger.verify().reservations == 2
    assert [*elsewhere.iterdir()] == []


def test_a_ledger_opened_for_reading_refuses_to_write(path: Path) -> None:
    ledger = Ledger.open(path, read_only=True)
    assert ledger.remaining("d") == 0.75
    assert ledger.answer("d", "f") == b"answer"
    with pytest.raises(LedgerError, match="for reading only"):
        ledger.reserve("d", Cost.pure(0.1))
    with pytest.raises(LedgerError, match="for reading only"):
        ledger.establish("e", Budget(epsilon=1.0))


def test_a_reader_sees_what_is_written_meanwhile(path: Path) -> None:
    reader, writer = Ledger.open(path, read_only=True), Ledger.open(path)
    writer.reserve("d", Cost.pure(0.25))
    assert reader.remaining("d") == 0.5


def test_looking_leaves_no_files_behind_and_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    with Ledger.open(path, read_only=True) as ledger:
        ledger.verify()
        assert ledger.remaining("d") == 0.75
        with pytest.raises(LedgerError, match="is read-only"), ledger._store.reading() as connection:
            connection.exec_driver_sql("DELETE FROM totals")
    assert [beside.name for beside in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_looking_beside_a_log_that_a_crash_left_does_not_touch_it(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.reserve("d", Cost.pure(0.25))
    copy = path.with_name("crashed.db")
    for end in ("", "-wal"):  # as they are after kill -9
        copy.with_name(copy.name + end).write_bytes(path.with_name(path.name + end).read_bytes())
    before = copy.read_bytes()
    with Ledger.open(copy, read_only=True) as looking:
        assert looking.remaining("d") == 0.5
    assert copy.read_bytes() == before
    assert copy.with_name("crashed.db-wal").stat().st_size > 0


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_file_that_is_deleted_or_replaced_meanwhile_is_noticed_before_anything_is_granted(
    path: Path, what: str, closed: bool
) -> None:
    ledger = Ledger.open(path)
    assert ledger.remaining("d") == 0.75
    backup = path.with_name("backup.db")
    ledger.backup(backup)
    if closed:
        ledger.close()
    path.unlink()
    if what == "replaced":
        with Ledger.open(path) as other:
            other.establish("d", Budget(epsilon=1.0))
    words = "deleted or moved" if what == "deleted" else "replaced"
    for attempt in (
        lambda: ledger.reserve("d", Cost.pure(0.1)),
        lambda: ledger.remaining("d"),
        lambda: ledger.answer("d", "f"),
        lambda: ledger.establish("d", Budget(epsilon=1.0)),
    ):
        with pytest.raises(LedgerError, match=words):
            attempt()
    assert path.exists() == (what == "replaced")  # no new file grants the budget again
    backup.replace(path)
    with Ledger.open(path) as mended:
        assert mended.remaining("d") == 0.75


def test_a_file_that_is_put_back_to_an_earlier_state_meanwhile_grants_nothing(path: Path) -> None:
    """The same file, with the content of a copy: it is no other file, and its first entry is the same."""
    ledger = Ledger.open(path)
    copy = path.with_name("backup.db")
    ledger.backup(copy)
    ledger.complete(ledger.reserve("d", Cost.pure(0.5)))
    ledger.close()
    path.write_bytes(copy.read_bytes())
    for attempt in (
        lambda: ledger.reserve("d", Cost.pure(0.5)),
        lambda: ledger.remaining("d"),
        lambda: ledger.head,
        ledger.verify,
    ):
        with pytest.raises(LedgerCorrupt, match="it had 6 entries before, and entry 6 is missing or another one now"):
            attempt()
    with Ledger.open(path) as forgetful:  # who opens it anew cannot know: that takes an anchor
        assert forgetful.remaining("d") == 0.75


def test_a_file_that_is_put_back_and_spent_from_by_others_grants_nothing_either(path: Path) -> None:
    """It is longer than it was, and not a continuation of it."""
    ledger = Ledger.open(path)
    copy = path.with_name("backup.db")
    ledger.backup(copy)
    ledger.reserve("d", Cost.pure(0.5))
    ledger.close()
    path.write_bytes(copy.read_bytes())
    with Ledger.open(path) as forgetful:
        for _ in range(3):
            forgetful.reserve("d", Cost.pure(0.125))
    for attempt in (
        lambda: ledger.reserve("d", Cost.pure(0.125)),
        lambda: ledger.remaining("d"),
        lambda: ledger.head,
        ledger.verify,
    ):
        with pytest.raises(LedgerCorrupt, match="had 5 entries before, and entry 5 is missing or another one"):
            attempt()


@pytest.mark.parametrize("known", ["by its entries", "by a report", "by its first entry"])
def test_whoever_verifies_again_remembers_what_was_there(path: Path, known: str) -> None:
    older = path.read_bytes()
    with Ledger.open(path) as writer:
        writer.reserve("d", Cost.pure(0.5))
    ledger = Ledger.open(path, read_only=True)
    if known == "by its first entry":
        path.unlink()
        with Ledger.open(path) as other:
            other.establish("d", Budget(epsilon=1.0))
    else:
        assert (ledger.head if known == "by its entries" else ledger.verify().head).count == 5
        ledger.close()
        path.write_bytes(older)
    with pytest.raises(LedgerCorrupt, match=r"it had \d entries before, and entry \d is missing or another one now"):
        ledger.verify()


def test_a_file_that_is_deleted_while_a_charge_is_written_grants_nothing(path: Path) -> None:
    ledger = Ledger.open(path)

    def charged() -> None:
        with ledger._store.writing() as connection:
            connection.exec_driver_sql("UPDATE totals SET totals = totals")
            path.unlink()

    with pytest.raises(LedgerError, match="deleted or moved"):
        charged()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_log_that_is_deleted_meanwhile_grants_nothing(path: Path, replaced: bool) -> None:
    """Charges are written to the log first: without a name it is gone when the process ends."""
    ledger = Ledger.open(path)
    ledger.reserve("d", Cost.pure(0.25))
    log = Path(f"{path}-wal")
    log.unlink()
    if replaced:
        log.write_bytes(b"")
    for attempt in (lambda: ledger.reserve("d", Cost.pure(0.1)), lambda: ledger.remaining("d")):
        with pytest.raises(LedgerError, match=r"lost the log beside it \(ledger.db-wal\) while it was in use"):
            attempt()


def test_a_log_that_is_deleted_while_a_charge_is_written_grants_nothing(path: Path) -> None:
    ledger = Ledger.open(path)

    def charged() -> None:
        with ledger._store.writing() as connection:
            connection.exec_driver_sql("UPDATE totals SET totals = totals")
            Path(f"{path}-wal").unlink()

    with pytest.raises(LedgerError, match="lost the log beside it"):
        charged()


def test_a_charge_is_refused_where_sqlite_took_the_file_to_be_unused(path: Path) -> None:
    """Whoever opens and closes the file itself gives the locks of the process away; others then remove the log."""
    ledger = Ledger.open(path)
    ledger.reserve("d", Cost.pure(0.25))
    path.read_bytes()
    other = "import sys; from discreet import Ledger; print(Ledger.open(sys.argv[1]).remaining('d'))"
    found = subprocess.run([sys.executable, "-c", other, str(path)], capture_output=True, text=True, check=True)
    assert found.stdout == "0.5\n"
    with pytest.raises(LedgerError, match="lost the log beside it"):
        ledger.reserve("d", Cost.pure(0.1))


def test_a_file_with_two_names_is_not_spent_from(path: Path) -> None:
    """Each name would have a log of its own, and each log a budget."""
    other = path.with_name("other.db")
    os.link(path, other)
    for name in (path, other):
        with pytest.raises(LedgerError, match=r"is one of 2 names of the same file.*symbolic links"):
            Ledger.open(name)
        assert Ledger.open(name, read_only=True).remaining("d") == 0.75
    other.unlink()
    ledger = Ledger.open(path)
    os.link(path, other)
    with pytest.raises(LedgerError, match="is one of 2 names"):
        ledger.reserve("d", Cost.pure(0.1))


def test_a_file_that_was_mounted_without_its_directory_is_not_spent_from(path: Path) -> None:
    """Its log would be where it was mounted, and another one where it came from."""
    inside = path.with_name("it is inside")
    inside.mkdir()
    place = inside / "a ledger.db"
    place.touch()
    command = ["mount", "--bind", str(path), str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only a privileged user may mount a file")
    try:
        with pytest.raises(LedgerError, match=r"was put here without its directory.*Mount the whole directory"):
            Ledger.open(place)
        assert Ledger.open(place, read_only=True).remaining("d") == 0.75
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_symbolic_link_is_another_name_of_the_same_ledger(path: Path) -> None:
    link = path.parent / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    ledger, linked = Ledger.open(path), Ledger.open(link)
    ledger.reserve("d", Cost.pure(0.25))
    linked.reserve("d", Cost.pure(0.25))
    assert Ledger.open(link, read_only=True).remaining("d") == ledger.remaining("d") == 0.25
    assert [beside.name for beside in link.parent.iterdir()] == ["link.db"]


def test_a_ledger_that_somebody_holds_for_too_long_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.ledger.store.BUSY_S", 0.05)
    ledger = Ledger.open(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match=r"locked by another process.*not recorded"):
        ledger.reserve("d", Cost.pure(0.1))
    assert ledger.remaining("d") == 0.75  # readers do not wait
    holder.execute("COMMIT")
    holder.close()
    ledger.reserve("d", Cost.pure(0.1))


def test_whoever_waits_gets_its_turn(path: Path) -> None:
    ledger = Ledger.open(path)
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, lambda: holder.execute("COMMIT"))
    release.start()
    ledger.reserve("d", Cost.pure(0.1))
    release.join()
    holder.close()
    assert ledger.remaining("d") == 0.65


def test_a_file_torn_in_the_middle_is_corrupt(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(LedgerError):
        Ledger.open(path).verify()
    path.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path).verify()


def test_errors_inside_a_transaction_leave_nothing_behind(path: Path) -> None:
    ledger = Ledger.open(path)
    before = ledger.head

    class Interrupted(Exception):
        pass

    def interrupted() -> None:
        with ledger._store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM totals")
            raise Interrupted

    with pytest.raises(Interrupted):
        interrupted()
    assert ledger.head == before
    assert ledger.remaining("d") == 0.75


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN DEFERRED"])
def test_an_interrupt_right_after_a_transaction_began_ends_it(
    path: Path, begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupts = [KeyboardInterrupt()]

    class Interrupted(sqlite3.Connection):
        def execute(self, *arguments: Any) -> Any:
            found = super().execute(*arguments)
            if arguments[0] == begin and interrupts:
                raise interrupts.pop()
            return found

    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Interrupted))
    with pytest.raises(KeyboardInterrupt):
        Ledger.open(path).reserve("d", Cost.pure(0.25))
    ledger = Ledger.open(path)
    interrupts.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve("d", Cost.pure(0.25)) if "IMMEDIATE" in begin else ledger.remaining("d")
    ledger.reserve("d", Cost.pure(0.25))
    assert ledger.remaining("d") == 0.5


def test_a_ledger_in_memory_is_not_shared_with_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.in_memory()
    ledger.establish("d", Budget(epsilon=1.0))
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(LedgerError, match="belongs to another process"):
        ledger.remaining("d")


def test_a_ledger_in_memory_forgets_nothing_when_it_is_closed() -> None:
    ledger = Ledger.in_memory()
    ledger.establish("d", Budget(epsilon=1.0))
    ledger.reserve("d", Cost.pure(0.75))
    with ledger:
        pass
    ledger.establish("d", Budget(epsilon=1.0))
    assert ledger.remaining("d") == 0.25


def test_nobody_waits_for_somebody_who_verifies(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(path)
    begun, done = threading.Event(), threading.Event()
    counted: list[int] = []

    def slowly(*arguments: Any, **options: Any) -> Report:
        begun.set()
        assert done.wait(60)
        return verify(*arguments, **options)

    monkeypatch.setattr("discreet.ledger.verification.verify", slowly)
    thread = threading.Thread(target=lambda: counted.append(ledger.verify().reservations))
    thread.start()
    assert begun.wait(60)
    ledger.reserve("d", Cost.pure(0.1))
    done.set()
    thread.join()
    assert counted == [2]
