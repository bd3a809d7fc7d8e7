"""Whom a budget protects is written down once, and no charge is made for anybody else."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, Cost, Ledger
from discreet.errors import InvalidArgument, LedgerCorrupt, UnitMismatch
from discreet.ledger import schema
from discreet.ledger.protection import in_words
from ledger.test_verification import tampered

BUDGET = Budget(epsilon=1.0)
USERS = {"visits": "user_id"}
ROWS = {"visits": "row"}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.open(tmp_path / "ledger.db")
    made.establish("shop", BUDGET, protects=USERS)
    return made


def reopened(ledger: Ledger) -> Ledger:
    assert ledger.path is not None
    return Ledger.open(ledger.path)


def version(path: Path) -> int:
    database = sqlite3.connect(path)
    try:
        return int(database.execute("PRAGMA user_version").fetchone()[0])
    finally:
        database.close()


# -------------------------------------------------------------------- written once


def test_the_unit_is_written_once_and_known_to_everybody(ledger: Ledger) -> None:
    ledger.protect("shop", {"VISITS": "User_ID"})  # SQL ignores case
    other = reopened(ledger)
    assert other.protected("shop") == USERS
    assert [entry.details for entry in other.entries(kind="protect")] == [{"protects": USERS, "reason": None}]
    assert [row.protects for row in other.standings("shop")] == [USERS]
    other.verify()


def test_another_unit_is_refused_and_nothing_is_written(ledger: Ledger) -> None:
    before = ledger.head
    for ask in (
        lambda: ledger.protect("shop", ROWS),
        lambda: ledger.establish("shop", BUDGET, protects={"visits": "visit_id"}),
        lambda: ledger.reserve("shop", Cost.pure(0.1), protects=ROWS),
        lambda: ledger.reserve("shop", Cost.pure(0.1), protects={**USERS, "people": "user_id"}),
    ):
        with pytest.raises(UnitMismatch):
            ask()
    assert ledger.head == before
    ledger.reserve("shop", Cost.pure(0.1), protects=USERS)
    ledger.reserve("shop", Cost.pure(0.1))  # whoever does not say it means the same
    assert ledger.remaining("shop") == 0.8


def test_a_refusal_says_what_the_ledger_knows_and_what_to_do(ledger: Ledger) -> None:
    with pytest.raises(UnitMismatch, match=r"'visits' is 'user_id'.*with the unit 'row'.*another name") as known:
        ledger.protect("shop", ROWS)
    assert (known.value.table, known.value.unit, known.value.recorded) == ("visits", "row", "user_id")
    with pytest.raises(UnitMismatch, match=r"'people' with the unit 'id' is new.*ledger\.protect\(") as new:
        ledger.protect("shop", {"people": "id"})
    assert (new.value.recorded, new.value.whole) == (None, "visits.user_id")


def test_a_new_table_of_the_same_unit_joins_and_one_of_another_unit_needs_the_owners_word(ledger: Ledger) -> None:
    ledger.protect("shop", {"orders": "user_id"})
    assert ledger.protected("shop") == {"orders": "user_id", "visits": "user_id"}
    ledger.reserve("shop", Cost.pure(0.1))
    ledger.protect("shop", {"people": "id"}, reason="ids of people are user ids")
    everybody = {"orders": "user_id", "people": "id", "visits": "user_id"}
    assert ledger.protected("shop") == everybody
    assert next(entry for entry in ledger.entries(kind="protect", after=4)).details["reason"].startswith("ids of")
    ledger.reserve("shop", Cost.pure(0.1), protects={"people": "id"})
    ledger.protect("shop", {"accounts": "id"})  # now a unit of this data
    ledger.verify()


def test_the_owner_corrects_a_unit_before_the_first_charge_and_not_after_it(ledger: Ledger) -> None:
    other = reopened(ledger)
    ledger.protect("shop", ROWS, reason="a typing error")
    assert ledger.protected("shop") == ROWS
    with pytest.raises(UnitMismatch):  # who opened it under the old one is stopped
        other.reserve("shop", Cost.pure(0.1), protects=USERS)
    assert ledger.remaining("shop") == 1.0
    ledger.reserve("shop", Cost.pure(0.1), protects=ROWS)
    with pytest.raises(UnitMismatch, match="'row'"):
        ledger.protect("shop", USERS, reason="no, it was right")
    ledger.verify()


def test_data_sets_of_one_ledger_have_units_of_their_own(ledger: Ledger) -> None:
    ledger.establish("rows of the shop", BUDGET, protects=ROWS)
    ledger.reserve("rows of the shop", Cost.pure(1.0), protects=ROWS)
    assert ledger.remaining("shop") == 1.0
    assert ledger.protected("shop") == USERS


def test_who_only_looks_is_told_and_writes_nothing(ledger: Ledger) -> None:
    assert ledger.path is not None
    looking = Ledger.open(ledger.path, read_only=True)
    looking.protect("shop", USERS)
    looking.protect("shop", {"orders": "user_id"})
    with pytest.raises(UnitMismatch):
        looking.protect("shop", ROWS)
    assert looking.protected("shop") == USERS


@pytest.mark.parametrize(
    "wrong", [None, {}, "user_id", {"visits": ""}, {"": "row"}, {"visits": 3}, {"visits": "a\0b"}, {"V": "a", "v": "b"}]
)
def test_what_says_nothing_about_units_is_refused(ledger: Ledger, wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="protects"):
        ledger.protect("shop", wrong)
    with pytest.raises(InvalidArgument, match="reason"):
        ledger.protect("shop", ROWS, reason=" ")
    with pytest.raises(InvalidArgument, match="did you mean 'shop'"):
        ledger.protect("shoop", USERS)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(protects=st.dictionaries(NAMES.map(str.lower), NAMES, min_size=1, max_size=4))
def test_whatever_columns_are_called_the_same_again_agrees(protects: dict[str, str]) -> None:
    ledger = Ledger.in_memory()
    ledger.establish("d", BUDGET, protects=protects)
    ledger.establish("d", BUDGET, protects=protects)
    ledger.reserve("d", Cost.pure(0.1), protects=protects)
    assert len(list(ledger.entries(kind="protect"))) == 1
    ledger.verify()


def test_units_are_told_in_words() -> None:
    assert in_words({"events": "row", "people": "id"}) == "people.id, each row of events"
    assert in_words({}) == "not recorded"


# -------------------------------------------------------------------- earlier files


def test_a_ledger_of_the_earlier_format_goes_on_and_learns_the_unit_at_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with Ledger.open(path) as ledger:
        ledger.establish("shop", BUDGET)
        ledger.complete(ledger.reserve("shop", Cost.pure(0.25), fingerprint="f"), b"41")
        anchor = ledger.head
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 1")
    database.close()
    with Ledger.open(path, read_only=True) as looking:
        looking.verify(anchor=anchor)
        assert looking.protected("shop") == {}
    with Ledger.open(path) as ledger:
        ledger.reserve("shop", Cost.pure(0.25))
        assert version(path) == 1  # nothing in it that an earlier release would not know
        ledger.protect("shop", USERS)
        assert ledger.answer("shop", "f") == b"41"
        assert ledger.remaining("shop") == 0.5
        ledger.verify(anchor=anchor)
    assert version(path) == schema.WITH_UNITS  # so that none spends beside it
    with Ledger.open(path) as ledger, pytest.raises(UnitMismatch):
        ledger.protect("shop", ROWS)


# -------------------------------------------------------------------- changed by hand


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE entries SET details = replace(details, 'user_id', 'row') WHERE kind = 'protect'""",
        """UPDATE entries SET kind = 'note' WHERE kind = 'protect'""",
        """DELETE FROM entries WHERE kind = 'protect'""",
        """PRAGMA user_version = 1""",
    ],
)
def test_a_unit_that_was_changed_by_hand_is_found(ledger: Ledger, statement: str) -> None:
    assert ledger.path is not None
    ledger.reserve("shop", Cost.pure(0.1))
    ledger.close()
    tampered(ledger.path, lambda database: database.execute(statement))
    with pytest.raises(LedgerCorrupt):
        Ledger.open(ledger.path, read_only=True).verify()


def test_a_unit_that_was_changed_with_all_hashes_computed_anew_after_a_charge_is_found(tmp_path: Path) -> None:
    from discreet.ledger.books import Books
    from discreet.ledger.chain import Chain
    from discreet.ledger.ledger import now

    ledger = Ledger.open(tmp_path / "l.db")
    ledger.establish("shop", BUDGET, protects=USERS)
    ledger.reserve("shop", Cost.pure(0.1))
    books = Books("l", Chain())
    with ledger._store.writing() as connection:  # as an insider would, who knows how entries are made
        tip = books.tip(connection, now())
        books.append(connection, tip, kind="protect", dataset="shop", details={"protects": ROWS, "reason": None})
    with pytest.raises(LedgerCorrupt, match="whom 'shop' protects after it was charged"):
        ledger.verify()


def test_an_unreadable_unit_grants_nothing(ledger: Ledger) -> None:
    assert ledger.path is not None
    ledger.close()
    tampered(ledger.path, lambda database: database.execute("UPDATE entries SET details = '{}' WHERE kind = 'protect'"))
    with pytest.raises(LedgerCorrupt, match="says of nobody"):
        Ledger.open(ledger.path).reserve("shop", Cost.pure(0.1), protects=USERS)
