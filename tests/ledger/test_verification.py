"""Whatever somebody changes in a ledger is found: every row and column of every table, every byte of the file."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet import Budget, Cost, Ledger
from discreet.errors import BudgetExceeded, LedgerCorrupt, LedgerError
from discreet.ledger import Head
from discreet.ledger.chain import FIRST, Chain
from discreet.ledger.entry import COLUMNS

TWICE = 2 * (settings.default or settings()).max_examples
TABLES = ("entries", "answers", "budgets", "members", "totals", "head")


class Intact(NamedTuple):
    """The bytes of a ledger that nobody has touched, and its head."""

    content: bytes
    head: Head

    def __repr__(self) -> str:
        return f"Intact({self.head})"


def written_to(path: Path, key: Path | None = None) -> Head:
    """A ledger with something in every table, closed, so that all of it is in one file."""
    with Ledger.open(path, key=key) as ledger:
        ledger.establish("visits", Budget(epsilon=2.0, delta=1e-6), protects={"visits": "user_id"})
        ledger.establish("sales", Budget(rho=0.5), period=timedelta(days=30))
        ledger.enrol("team", ["ada", "bob"])
        ledger.limit("visits", Budget(epsilon=0.5), analyst="ada")
        ledger.limit("visits", Budget(epsilon=1.5, delta=1e-7), group="team")
        for index, analyst in enumerate(["ada", "bob", "eve"]):
            cost, price = Cost.pure(0.1 + index / 100), {"epsilon": 0.125, "delta": 1e-9}
            entry = ledger.reserve("visits", cost, analyst=analyst, what="q", fingerprint="f", price=price)
            ledger.complete(entry, f"answer {index}".encode(), told={f"bound {index}": [index, {"epsilon": 0.5}]})
        ledger.fail(ledger.reserve("sales", Cost.gaussian(20.0), analyst="bob", what="w"), "out of memory")
        ledger.dismiss("team", ["bob"])
        ledger.amend("visits", Budget(epsilon=3.0, delta=1e-6), reason="agreed")
        ledger.reserve("visits", Cost.discrete_laplace(5.0), analyst="ada")
        return ledger.head


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Intact:
    """The bytes of a ledger that nobody has touched, and its head."""
    path = tmp_path_factory.mktemp("intact") / "ledger.db"
    head = written_to(path)
    return Intact(path.read_bytes(), head)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where copies are put."""
    return tmp_path_factory.mktemp("copies")


def copied(place: Path, content: bytes) -> Path:
    """A fresh copy, in place of the one before."""
    for old in place.iterdir():
        old.unlink(missing_ok=True)
    path = place / "ledger.db"
    path.write_bytes(content)
    return path


def tampered(path: Path, change: Callable[[sqlite3.Connection], Any]) -> None:
    """Does something to the tables that the triggers would not allow, and puts the triggers back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        triggers = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            database.execute(f"DROP TRIGGER {name}")
        change(database)
        for _, statement in triggers:
            database.execute(statement)
        database.execute("COMMIT")


def stored(path: Path, select: str) -> list[Any]:
    """Rows of a table as they are."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute(select).fetchall()


def content_of(path: Path) -> list[Any]:
    """Everything that is stored, with types."""
    database = sqlite3.connect(path)
    try:
        dump: list[Any] = [sorted(database.execute("SELECT type, name, sql FROM sqlite_master").fetchall(), key=repr)]
        for table in TABLES:
            names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            shown = ", ".join(f"typeof({name}), quote({name})" for name in names)
            dump.append(sorted(database.execute(f"SELECT {shown} FROM {table}").fetchall(), key=repr))
        return dump
    finally:
        database.close()


def is_found(path: Path, **options: Any) -> bool:
    """Whether somebody who verifies the ledger learns that something is wrong."""
    try:
        with Ledger.open(path, read_only=True) as ledger:
            ledger.verify(**options)
    except LedgerError:
        return True
    return False


def test_the_untouched_ledger_passes(intact: Intact, place: Path) -> None:
    path = copied(place, intact.content)
    report = Ledger.open(path).verify(anchor=intact.head)
    assert report.to_dict() == {
        "path": str(path),
        "head": str(intact.head),
        "reservations": 5,
        "released": 3,
        "failed": 1,
        "unfinished": 1,
        "answers": 3,
        "budgets": 4,
        "anchored": True,
        "keyed": False,
    }
    assert "1 unfinished" in str(report)
    assert "hash chain and anchor" in str(report)


def edited(value: Any, how: int) -> Any:
    """A value that is not the one given."""
    if how == 0:
        return None
    if how == 1:
        return value + 1 if isinstance(value, int) else 7
    if how == 2:
        return value.encode() if isinstance(value, str) else str(value).encode()
    text = value.decode() if isinstance(value, bytes) else str(value)
    position = how % (len(text) + 1)
    return text[:position] + chr(48 + how % 75) + text[position + 1 :]


def test_what_an_answer_has_told_is_under_its_hash(intact: Intact, place: Path) -> None:
    path = copied(place, intact.content)
    assert Ledger.open(path).told("visits", ["bound 1"], analyst="bob") == {"bound 1": [1, {"epsilon": 0.5}]}
    replacing = "UPDATE entries SET details = replace(details, '[1,', '[2,') WHERE fingerprint = 'bound 1'"
    tampered(path, lambda database: database.execute(replacing))
    assert Ledger.open(path).told("visits", ["bound 1"], analyst="bob") == {"bound 1": [2, {"epsilon": 0.5}]}
    assert is_found(path)


@pytest.mark.parametrize("details", ['{"values": [', "[1]", '{"values": 3}', '"values"', "{}"])
def test_what_cannot_be_read_as_told_is_said_to_be_corrupt(intact: Intact, place: Path, details: str) -> None:
    path = copied(place, intact.content)
    replacing = "UPDATE entries SET details = ? WHERE fingerprint = 'bound 1'"
    tampered(path, lambda database: database.execute(replacing, (details,)))
    with Ledger.open(path) as ledger, pytest.raises(LedgerCorrupt, match="has told cannot be read"):
        ledger.told("visits", ["bound 1"], analyst="bob")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET analyst = 'eve' WHERE fingerprint = 'bound 1'",
        "UPDATE entries SET dataset = 'sales' WHERE fingerprint = 'bound 1'",
        "UPDATE entries SET details = replace(details, '[1,', 'null,[1,') WHERE fingerprint = 'bound 1'",
        """UPDATE entries SET details = replace(details, '"reservation":', '"reservation":1') WHERE kind = 'told'""",
        "PRAGMA user_version = 2",
    ],
)
def test_what_was_told_to_another_is_found_although_all_hashes_are_computed_anew(
    intact: Intact, place: Path, statement: str
) -> None:
    path = copied(place, intact.content)
    tampered(path, lambda database: (database.execute(statement), rehashed(database, Chain())))
    assert is_found(path)


@settings(max_examples=TWICE)
@given(table=st.sampled_from(TABLES), row=st.integers(0, 30), column=st.integers(0, 12), how=st.integers(0, 400))
def test_every_edit_of_every_value_is_found(
    intact: Intact, place: Path, table: str, row: int, column: int, how: int
) -> None:
    path = copied(place, intact.content)

    def change(database: sqlite3.Connection) -> None:
        names = [item[1] for item in database.execute(f"PRAGMA table_info({table})")]
        name = names[column % len(names)]
        rows = database.execute(f"SELECT rowid, {name} FROM {table} ORDER BY rowid").fetchall()
        rowid, value = rows[row % len(rows)]
        try:
            database.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (edited(value, how), rowid))
        except sqlite3.Error:
            assume(False)  # SQLite itself does not allow it: NULL, or a key that exists

    before = content_of(path)
    tampered(path, change)
    assume(content_of(path) != before)
    assert is_found(path)


@pytest.mark.parametrize("value", ["7", "[]", '"identity"', "{}", "null"])
@pytest.mark.parametrize("column", ["details", "hash"])
def test_a_first_entry_that_is_none_is_found(intact: Intact, place: Path, column: str, value: str) -> None:
    path = copied(place, intact.content)
    tampered(path, lambda database: database.execute(f"UPDATE entries SET {column} = ? WHERE number = 1", (value,)))
    for read_only in (True, False):
        with pytest.raises(LedgerCorrupt, match=r"its first entry is missing|the hash of entry 1 is none"):
            Ledger.open(path, read_only=read_only)


@pytest.mark.parametrize("table", TABLES)
def test_every_deleted_row_is_found(intact: Intact, place: Path, table: str) -> None:
    path = copied(place, intact.content)
    database = sqlite3.connect(path)
    rows = [row[0] for row in database.execute(f"SELECT rowid FROM {table}")]
    database.close()
    assert rows
    for rowid in rows:
        path = copied(place, intact.content)
        tampered(path, lambda database, rowid=rowid: database.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,)))
        assert is_found(path)
    path = copied(place, intact.content)
    tampered(path, lambda database: database.execute(f"DELETE FROM {table}"))
    assert is_found(path)


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO entries SELECT MAX(number) + 1, {', '.join(COLUMNS[1:])}, hash FROM entries",
        f"INSERT INTO entries SELECT 0, {', '.join(COLUMNS[1:])}, hash FROM entries WHERE number = 4",
        "INSERT INTO answers VALUES (99, x'00')",
        "INSERT INTO members VALUES ('eve', 'team')",
        "INSERT INTO budgets VALUES (99, 'other', 'dataset', '')",
        "INSERT INTO totals SELECT budget, period + 1, totals, entry FROM totals LIMIT 1",
        "INSERT INTO head SELECT 2, count, hash FROM head",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER generous AFTER INSERT ON totals BEGIN UPDATE totals SET totals = '[\"0\"]'; END",
        "DROP INDEX entries_by_reservation",
    ],
)
def test_everything_that_is_put_in_or_taken_out_is_found(intact: Intact, place: Path, statement: str) -> None:
    path = copied(place, intact.content)
    tampered(path, lambda database: database.execute(statement))
    assert is_found(path)


@pytest.mark.parametrize("trigger", ["entries_are_not_changed", "entries_follow_each_other", "answers_are_not_deleted"])
def test_a_removed_trigger_is_found(intact: Intact, place: Path, trigger: str) -> None:
    path = copied(place, intact.content)
    database = sqlite3.connect(path)
    database.execute(f"DROP TRIGGER {trigger}")
    database.close()
    with pytest.raises(LedgerCorrupt, match=f"the trigger {trigger} was removed"):
        Ledger.open(path).verify()


@given(pair=st.tuples(st.integers(1, 16), st.integers(1, 16)))
def test_every_reordering_is_found(intact: Intact, place: Path, pair: tuple[int, int]) -> None:
    assume(pair[0] != pair[1])
    path = copied(place, intact.content)

    def change(database: sqlite3.Connection) -> None:
        database.execute("DROP INDEX entries_by_reservation")
        for old, new in ((pair[0], -1), (pair[1], pair[0]), (-1, pair[1])):
            database.execute("UPDATE entries SET number = ? WHERE number = ?", (new, old))
        database.execute("CREATE UNIQUE INDEX entries_by_reservation ON entries (reservation)")

    tampered(path, change)
    assert is_found(path)


@settings(max_examples=TWICE)
@given(data=st.data())
def test_every_changed_byte_is_found_or_changes_nothing(intact: Intact, place: Path, data: st.DataObject) -> None:
    content = bytearray(intact.content)
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    before = content_of(copied(place, intact.content))
    path = copied(place, bytes(content))
    if is_found(path):
        return
    assert content_of(path) == before  # free space, or a field of the header that means nothing


# -------------------------------------------------------------------- somebody who knows the format


def rehashed(database: sqlite3.Connection, chain: Chain) -> None:
    """All hashes computed anew, as somebody would who wants to hide an edit."""
    previous = FIRST
    for row in database.execute(f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY number").fetchall():
        previous = chain.link(previous, dict(zip(COLUMNS, row, strict=True)))
        database.execute("UPDATE entries SET hash = ? WHERE number = ?", (previous, row[0]))
    database.execute(
        "UPDATE head SET count = (SELECT MAX(number) FROM entries), hash = ?",
        (previous,),
    )


def renamed(database: sqlite3.Connection) -> None:
    """Somebody else is said to have asked."""
    database.execute("UPDATE entries SET what = 'something harmless' WHERE what = 'q'")


def test_an_edit_with_all_hashes_computed_anew_is_found_by_an_anchor(intact: Intact, place: Path) -> None:
    path = copied(place, intact.content)
    tampered(path, lambda database: (renamed(database), rehashed(database, Chain())))
    assert not is_found(path)  # that is why there are anchors and keys
    assert is_found(path, anchor=intact.head)
    assert is_found(path, anchor=str(intact.head))


def test_an_edit_with_all_hashes_computed_anew_is_found_by_a_key(tmp_path: Path) -> None:
    key, path = tmp_path / "key", tmp_path / "ledger.db"
    key.write_bytes(b"a secret of 32 bytes, not for you")
    written_to(path, key)
    assert Ledger.open(path, key=key).verify().keyed
    tampered(
        path, lambda database: (renamed(database), rehashed(database, Chain(b"a guess of 32 bytes, not the key..")))
    )
    with pytest.raises(LedgerCorrupt, match="its hash does not follow"):
        Ledger.open(path, key=key).verify()


def test_a_cost_made_smaller_with_all_hashes_computed_anew_is_found_without_either(intact: Intact, place: Path) -> None:
    """Totals below what the costs add up to: the other way round, costs raised above their totals."""
    path = copied(place, intact.content)
    larger = Cost.pure(0.4).to_json()

    def change(database: sqlite3.Connection) -> None:
        database.execute("UPDATE entries SET cost = ? WHERE analyst = 'eve' AND kind = 'reserve'", (larger,))
        rehashed(database, Chain())

    tampered(path, change)
    with pytest.raises(LedgerCorrupt, match="below what its costs add up to"):
        Ledger.open(path).verify()


def test_an_answer_given_to_another_analyst_with_all_hashes_computed_anew_is_found_without_either(
    intact: Intact, place: Path
) -> None:
    path = copied(place, intact.content)

    def change(database: sqlite3.Connection) -> None:
        database.execute("UPDATE entries SET analyst = 'mallory' WHERE kind = 'complete'")
        rehashed(database, Chain())

    tampered(path, change)
    with pytest.raises(LedgerCorrupt, match="closes a reservation of another analyst"):
        Ledger.open(path).verify()


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE entries SET analyst = 'mallory' WHERE analyst = 'ada'", "not charged to exactly the budgets"),
        (
            "UPDATE entries SET details = replace(details, '0.125', '-0.125') WHERE kind = 'reserve'",
            "cannot be replayed",
        ),
        ("UPDATE entries SET at = '19' || substr(at, 3) WHERE number = 9", "before the entry before it"),
    ],
    ids=[
        "a charge said to be somebody's who has no limit",
        "a charge with a price that is none",
        "a charge said to be of an earlier time",
    ],
)
def test_a_charge_that_goes_around_a_budget_with_all_hashes_computed_anew_is_found_without_either(
    intact: Intact, place: Path, statement: str, finding: str
) -> None:
    path = copied(place, intact.content)
    tampered(path, lambda database: (database.execute(statement), rehashed(database, Chain())))
    with pytest.raises(LedgerCorrupt, match=finding):
        Ledger.open(path).verify()


def test_entries_cut_off_at_the_end_are_found_by_an_anchor(intact: Intact, place: Path) -> None:
    path = copied(place, intact.content)
    database = sqlite3.connect(path)
    last = database.execute("SELECT MAX(number) FROM entries").fetchone()[0]
    database.close()

    def change(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM entries WHERE number = ?", (last,))
        database.execute(
            "UPDATE head SET count = ?, hash = (SELECT hash FROM entries WHERE number = ?)", (last - 1,) * 2
        )

    tampered(path, change)
    with pytest.raises(LedgerCorrupt, match=rf"ends at entry {last - 1}, and the anchor was taken at entry {last}"):
        Ledger.open(path).verify(anchor=intact.head)
    assert is_found(path)  # the totals know of the charge


def test_an_older_copy_of_the_file_is_found_by_an_anchor(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
    older = path.read_bytes()
    with Ledger.open(path) as ledger:
        ledger.reserve("d", Cost.pure(0.5))
        anchor = ledger.head
        ledger.reserve("d", Cost.pure(0.1))
        ledger.verify(anchor=anchor)  # it has grown since, and that is fine
    path.write_bytes(older)
    assert not is_found(path)
    assert is_found(path, anchor=anchor)


# -------------------------------------------------------------------- before anybody verifies


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE totals SET totals = '[\"0\"]'",
        "UPDATE totals SET totals = 'nonsense'",
        "DELETE FROM totals",
        "DELETE FROM head",
        "UPDATE head SET count = count - 1",
        "DELETE FROM entries WHERE number = (SELECT MAX(number) FROM entries)",
        "UPDATE budgets SET name = 'eve' WHERE holder = 'dataset'",
        "UPDATE entries SET details = '{}' WHERE kind = 'establish'",
        "UPDATE entries SET details = replace(details, '1.0', '9.0') WHERE kind = 'establish'",
        """UPDATE entries SET details = replace(details, '"1"', '"9"') WHERE kind = 'establish'""",
        "UPDATE entries SET hash = replace(hash, 'a', 'b') WHERE kind = 'establish'",
    ],
)
def test_what_would_loosen_a_budget_is_refused_already_when_charging(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.establish("d", Budget(epsilon=1.0))
        ledger.reserve("d", Cost.pure(0.9))
    tampered(path, lambda database: database.execute(statement))
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path).reserve("d", Cost.pure(0.5))


def emptied(database: sqlite3.Connection) -> None:
    """As if the ledger had just been made, but for its first entry."""
    for table in TABLES:
        database.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("meanwhile", [False, True], ids=["before it was opened", "while it was open"])
def test_an_emptied_ledger_is_not_begun_anew(intact: Intact, place: Path, meanwhile: bool) -> None:
    path = copied(place, intact.content)
    ledger = Ledger.open(path) if meanwhile else None
    tampered(path, emptied)
    for _ in range(2):  # also the second time
        with pytest.raises(LedgerCorrupt, match=r"its first entry is missing|the record of its last entry is missing"):
            (ledger or Ledger.open(path)).establish("visits", Budget(epsilon=2.0, delta=1e-6))
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path, read_only=True)
    assert stored(path, "SELECT * FROM entries") == []


def test_the_tables_of_a_ledger_are_never_without_its_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("no random numbers")

    with monkeypatch.context() as patched:
        patched.setattr("discreet.ledger.founding.secrets.token_hex", fails)
        with pytest.raises(LedgerError, match="cannot be used"):
            Ledger.open(tmp_path / "ledger.db")
    assert stored(tmp_path / "ledger.db", "SELECT * FROM sqlite_master") == []
    with Ledger.open(tmp_path / "ledger.db") as ledger:  # what was left is empty, and becomes one
        assert ledger.verify().head.count == 1


LIMITED = {"group": "ada", "analyst": "bob"}


def limited(path: Path) -> None:
    """A ledger in which ada spends from the limit of her group, and bob from his own."""
    with Ledger.open(path) as ledger:
        ledger.establish("d", Budget(epsilon=10.0))
        ledger.enrol("team", ["ada", "eve"])
        ledger.limit("d", Budget(epsilon=1.0), group="team")
        ledger.limit("d", Budget(epsilon=1.0), analyst="bob")
        for analyst in ("ada", "bob"):
            ledger.reserve("d", Cost.pure(0.5), analyst=analyst)


@pytest.mark.parametrize("meanwhile", [False, True], ids=["before it was opened", "while it was open"])
@pytest.mark.parametrize(
    ("holder", "statement"),
    [
        ("group", "DELETE FROM members"),
        ("group", "DELETE FROM members WHERE analyst = 'ada'"),
        ("group", "UPDATE members SET team = 'other' WHERE analyst = 'ada'"),
        ("group", "DELETE FROM budgets WHERE holder = 'group'"),
        ("group", "UPDATE budgets SET name = 'other' WHERE holder = 'group'"),
        ("group", "UPDATE budgets SET dataset = 'other' WHERE holder = 'group'"),
        ("analyst", "DELETE FROM budgets WHERE holder = 'analyst'"),
        ("analyst", "UPDATE budgets SET name = 'other' WHERE holder = 'analyst'"),
        ("analyst", "INSERT INTO members VALUES ('bob', 'team')"),
    ],
)
def test_a_limit_that_is_taken_out_of_the_tables_grants_nothing(
    tmp_path: Path, holder: str, statement: str, meanwhile: bool
) -> None:
    path, analyst = tmp_path / "ledger.db", LIMITED[holder]
    limited(path)
    ledger = Ledger.open(path)
    if meanwhile:
        ledger.reserve("d", Cost.pure(0.1), analyst=analyst)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)  # no trigger is in the way
    ledger = ledger if meanwhile else Ledger.open(path)
    for attempt in (
        lambda: ledger.reserve("d", Cost.pure(0.1), analyst=analyst),
        lambda: ledger.remaining("d", analyst=analyst),
        lambda: ledger.answer("d", "f", analyst=analyst, shared=True),
    ):
        with pytest.raises(LedgerCorrupt, match=r"the list of budgets .*(group 'team'|analyst 'bob') on 'd'"):
            attempt()
    with pytest.raises(LedgerCorrupt, match=r"rows? differ(.|\n)*Let nobody spend from it"):
        ledger.verify()


@pytest.mark.parametrize(
    ("statement", "act"),
    [
        ("DELETE FROM budgets", lambda ledger: ledger.establish("d", Budget(epsilon=99.0))),
        ("DELETE FROM budgets", lambda ledger: ledger.limit("d", Budget(epsilon=99.0), analyst="bob")),
        ("DELETE FROM budgets", lambda ledger: ledger.amend("d", Budget(epsilon=99.0), group="team", reason="r")),
        ("DELETE FROM budgets", lambda ledger: ledger.datasets()),
        ("DELETE FROM members", lambda ledger: ledger.enrol("team", ["ada"])),
        ("DELETE FROM members", lambda ledger: ledger.dismiss("team", ["eve"])),
        ("DELETE FROM members", lambda ledger: ledger.members("team")),
    ],
)
def test_what_is_taken_out_of_the_tables_is_not_set_anew_and_not_overlooked(
    tmp_path: Path, statement: str, act: Callable[[Ledger], object]
) -> None:
    path = tmp_path / "ledger.db"
    limited(path)
    tampered(path, lambda database: database.execute(statement))
    with Ledger.open(path) as ledger:
        before = ledger.head
        with pytest.raises(LedgerCorrupt, match=r"the list of (budgets|members)"):
            act(ledger)
        assert ledger.head == before


@pytest.mark.parametrize("details", ["{", "[]", '{"group": "team"}', '{"group": [], "analysts": ["ada"]}'])
def test_members_that_cannot_be_read_grant_nothing(tmp_path: Path, details: str) -> None:
    path = tmp_path / "ledger.db"
    limited(path)
    changing = "UPDATE entries SET details = ? WHERE kind = 'enrol'"
    tampered(path, lambda database: database.execute(changing, (details,)))
    for attempt in (
        lambda: Ledger.open(path).reserve("d", Cost.pure(0.1), analyst="ada"),
        lambda: Ledger.open(path).members("team"),
    ):
        with pytest.raises(LedgerCorrupt, match="entry 3, about a budget or a group, cannot be read"):
            attempt()


def test_totals_of_a_group_that_were_put_back_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    limited(path)
    earlier = stored(path, "SELECT budget, period, totals, entry FROM totals WHERE budget = 4")
    with Ledger.open(path) as ledger:
        charged = ledger.reserve("d", Cost.pure(0.5), analyst="eve")
        ledger.dismiss("team", ["eve"])
        ledger.reserve("d", Cost.pure(0.5), analyst="eve")  # not the group's
    with Ledger.open(path) as ledger, pytest.raises(BudgetExceeded):
        ledger.reserve("d", Cost.pure(0.5), analyst="ada")
    tampered(path, lambda database: database.executemany("REPLACE INTO totals VALUES (?, ?, ?, ?)", earlier))
    with Ledger.open(path) as ledger, pytest.raises(LedgerCorrupt, match=f"leave out what entry {charged.id} charged"):
        ledger.reserve("d", Cost.pure(0.5), analyst="ada")


def test_an_edited_answer_is_not_given_out(intact: Intact, place: Path) -> None:
    path = copied(place, intact.content)
    tampered(path, lambda database: database.execute("UPDATE answers SET answer = x'3432'"))
    with pytest.raises(LedgerCorrupt, match="not the one that was stored"):
        Ledger.open(path).answer("visits", "f", analyst="ada")


def test_findings_are_listed_and_long_lists_cut(intact: Intact, place: Path) -> None:
    path = copied(place, intact.content)
    tampered(path, lambda database: database.execute("UPDATE entries SET what = 'x', at = 'y' WHERE number > 1"))
    with pytest.raises(LedgerCorrupt) as caught:
        Ledger.open(path, read_only=True).verify()
    assert len(caught.value.findings) == 21
    assert caught.value.findings[-1].endswith("more")


def test_anybody_can_check_the_chain_with_a_few_lines(intact: Intact, place: Path) -> None:
    """The format is simple on purpose: this is all it takes, in any language."""
    import hashlib

    path = copied(place, intact.content)
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    previous = "0" * 64
    for row in database.execute("SELECT * FROM entries ORDER BY number"):
        fields = dict(row)
        found = fields.pop("hash")
        text = json.dumps({**fields, "previous": previous}, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == found
    database.close()
    assert previous == intact.head.hash


@pytest.mark.parametrize("analyst", ["ann", None])
@pytest.mark.parametrize("period", [None, timedelta(days=300)])
def test_totals_and_budgets_that_were_replaced_are_not_believed_again(
    tmp_path: Path, analyst: str | None, period: timedelta | None
) -> None:
    path, key = tmp_path / "ledger.db", tmp_path / "key"
    key.write_bytes(b"k" * 32)
    whose = {} if analyst is None else {"analyst": analyst}
    with Ledger.open(path, key=key) as ledger:
        ledger.establish("d", Budget(epsilon=50.0), period=period if analyst is None else None)
        if analyst is not None:
            ledger.limit("d", Budget(epsilon=5.0), analyst=analyst, period=period)
        ledger.reserve("d", Cost.pure(1e-9), **whose)
        earlier = stored(path, "SELECT budget, period, totals, entry FROM totals")
        ledger.reserve("d", Cost.pure(4.5), **whose)
        ledger.reserve("d", Cost.pure(1e-9), analyst="bob")
    content = path.read_bytes()
    found = "the running totals of .* leave out what entry"

    def put_back(database: sqlite3.Connection) -> None:
        database.executemany("REPLACE INTO totals VALUES (?, ?, ?, ?)", earlier)

    def removed(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM totals")

    for change in (put_back, removed):
        path.write_bytes(content)
        tampered(path, change)
        with Ledger.open(path, key=key) as ledger, pytest.raises(LedgerCorrupt, match=f"{found}|are missing"):
            ledger.reserve("d", Cost.pure(4.5), **whose)
    path.write_bytes(content)
    with Ledger.open(path, key=key) as ledger:
        ledger.reserve("d", Cost.pure(0.1), **whose)  # as it is, it is believed
        old = stored(path, "SELECT entry, dataset, holder, name FROM budgets")
        totals = stored(path, "SELECT budget, period, totals, entry FROM totals")
        ledger.amend("d", Budget(epsilon=4.7), reason="less", **whose)
        with pytest.raises(BudgetExceeded):
            ledger.reserve("d", Cost.pure(0.2), **whose)

    def former(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM budgets")
        database.executemany("INSERT INTO budgets VALUES (?, ?, ?, ?)", old)
        database.executemany("REPLACE INTO totals VALUES (?, ?, ?, ?)", totals)

    tampered(path, former)
    with Ledger.open(path, key=key) as ledger, pytest.raises(LedgerCorrupt, match="is an earlier one"):
        ledger.reserve("d", Cost.pure(0.2), **whose)
