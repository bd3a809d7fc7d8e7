"""Opening data again: the unit of a budget is part of its promise, and the ledger holds everybody to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Budget, Cost, Curator, Ledger
from discreet.errors import InvalidArgument, LedgerError, SourceError, UnitMismatch
from discreet.mechanisms import DiscreteLaplace
from discreet.query import Policy
from query.open_shop import visits

BUDGET = Budget(epsilon=5.0, delta=1e-6)
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    pq.write_table(visits(), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def policy(folder: Path, *tables: str, name: str = "shop") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(f'name = "{name}"\nledger = "shop.ledger"\n[budget]\nepsilon = 5.0\n' + "\n".join(tables))
    return path


VISITS = '[tables.visits]\nsource = "visits.parquet"\nunit = "user_id"\n'
PEOPLE = '[tables.people]\nsource = "people.csv"\nunit = "id"\nrows_per_unit = 1\n'
PUBLIC = '[tables.visits]\nsource = "visits.parquet"\npublic = true\n'


def test_a_name_of_data_that_no_file_beside_it_can_have_is_refused_in_words(data: Path) -> None:
    for budget in (BUDGET, None):
        with pytest.raises((LedgerError, InvalidArgument), match=r"too long|nothing says yet how much"):
            Curator.open(data, unit="user_id", budget=budget, name="\u00e9" * 150)


def test_the_same_data_is_not_opened_for_another_unit(data: Path) -> None:
    with Curator.open(data, unit="user_id", budget=BUDGET) as curator:
        curator.sql(COUNT, epsilon=0.5)
        left = curator.remaining
    for unit in ("row", "city"):
        for budget in (BUDGET, None):
            with pytest.raises(UnitMismatch, match=f"is 'user_id', and it was opened with the unit '{unit}'"):
                Curator.open(data, unit=unit, budget=budget)
    with Curator.open(data, unit="USER_ID") as curator:
        assert curator.remaining == left
        curator.ledger.verify()


def test_another_name_is_another_budget(data: Path) -> None:
    with Curator.open(data, unit="user_id", budget=BUDGET) as curator:
        curator.sql(COUNT, epsilon=0.5)
        with Curator.open(data, unit="row", name="visits_by_row", budget=BUDGET, ledger=curator.ledger.path) as rows:
            assert rows.sql("SELECT COUNT(*) FROM visits_by_row", epsilon=0.5).repeated is False
            assert rows.ledger.datasets() == ("visits", "visits_by_row")
            assert rows.ledger.protected("visits_by_row") == {"visits_by_row": "row"}


def test_a_name_names_the_table_of_one_source_and_not_those_of_a_mapping(data: Path) -> None:
    for source, table in ((data, "hospital"), ({"visits": data}, "visits")):
        with Curator.open(source, unit="user_id", name="hospital", budget=BUDGET, ledger=":memory:") as curator:
            assert list(curator.tables.tables) == [table]
            assert curator.ledger.datasets() == ("hospital",)


def test_two_processes_do_not_spend_one_budget_on_two_promises(data: Path) -> None:
    asking = f"from discreet import Curator; Curator.open({str(data)!r}, unit='UNIT').sql({COUNT!r}, epsilon=0.75)"
    with Curator.open(data, unit="user_id", budget=BUDGET) as curator:
        codes = {}
        for unit in ("user_id", "row"):
            done = subprocess.run(
                [sys.executable, "-c", asking.replace("UNIT", unit)], capture_output=True, text=True, check=False
            )
            codes[unit] = done.returncode
            assert ("UnitMismatch" in done.stderr) == (unit == "row")
        assert codes == {"user_id": 0, "row": 1}
        assert [entry.state for entry in curator.ledger.entries(kind="reserve")] == ["released"]


def test_every_way_to_spend_is_stopped_when_the_owner_corrects_the_unit(data: Path) -> None:
    with Curator.open(data, unit="user_id", budget=BUDGET) as curator:
        curator.ledger.protect("visits", {"visits": "row"}, reason="every visit is by somebody else")
        for ask in (
            lambda: curator.sql(COUNT, epsilon=0.5),
            lambda: curator.charge(Cost.pure(0.5), reason="a model"),
            lambda: curator.release(DiscreteLaplace(epsilon=0.5), 3),
        ):
            with pytest.raises(UnitMismatch):
                ask()
        assert curator.remaining == 5.0


def test_a_policy_may_gain_tables_of_the_same_unit_and_others_by_the_word_of_the_owner(data: Path) -> None:
    folder = data.parent
    (folder / "people.csv").write_text("id,age\n1,30\n2,40\n")
    pq.write_table(visits(), folder / "orders.parquet")
    Curator.open(policy(folder, VISITS)).close()
    Curator.open(policy(folder, VISITS, VISITS.replace("visits", "orders"))).close()
    with pytest.raises(UnitMismatch, match="'people' with the unit 'id' is new"):
        Curator.open(policy(folder, VISITS, PEOPLE))
    with Ledger.open(folder / "shop.ledger") as ledger:
        ledger.protect("shop", {"people": "id"}, reason="the same customers")
    with Curator.open(policy(folder, VISITS, PEOPLE)) as curator:
        curator.sql("SELECT AVG(age) FROM people", epsilon=0.5, bounds=(0, 100))
        assert curator.ledger.protected("shop") == {"orders": "user_id", "people": "id", "visits": "user_id"}
    Curator.open(policy(folder, PEOPLE)).close()  # a policy may be about fewer tables


def test_a_list_of_files_is_watched_and_has_its_ledger_beside_them(data: Path) -> None:
    other = data.with_name("visits_more.parquet")
    pq.write_table(visits(), other)
    with Curator.open([data, other], unit="user_id", budget=BUDGET) as curator:
        assert (data.parent / "visits.ledger").exists()
        curator.sql(COUNT, epsilon=0.75)  # more than the share for bounds
        pq.write_table(visits().slice(1), other)
        with pytest.raises(SourceError, match="has changed since"):
            curator.sql("SELECT COUNT(*) FROM visits WHERE city = 'Bonn'", epsilon=0.5)
        assert len(list(curator.ledger.entries(kind="reserve"))) == 1


def test_a_protected_table_does_not_become_public(data: Path) -> None:
    folder = data.parent
    (folder / "people.csv").write_text("id,age\n1,30\n2,40\n")
    Curator.open(policy(folder, VISITS, PEOPLE)).close()
    with pytest.raises(UnitMismatch, match="as a public table, which protects nobody"):
        Curator.open(policy(folder, PUBLIC, PEOPLE))


def test_a_budget_that_was_set_by_hand_learns_the_unit_from_the_first_curator(tmp_path: Path) -> None:
    rows = pa.table({"user_id": list(range(50)), "device": list(range(50))})
    with Ledger.open(tmp_path / "l.ledger") as ledger:
        ledger.establish("data", BUDGET)
        Curator.open(rows, unit="user_id", ledger=ledger).close()
        assert ledger.protected("data") == {"data": "user_id"}
        with pytest.raises(UnitMismatch):
            Curator.open(rows, unit="device", ledger=ledger)


def test_the_order_of_a_list_does_not_decide_which_ledger_is_used(tmp_path: Path) -> None:
    paths = []
    for folder, name in (("b", "visits_2024.parquet"), ("a", "visits_2023.parquet")):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / name)
        pq.write_table(visits(), paths[-1])
    with Curator.open(paths, unit="user_id", name="visits", budget=BUDGET) as curator:
        curator.charge(Cost.pure(4.0), reason="all but little")
        assert curator.ledger.path == tmp_path / "a" / "visits.ledger"
    with Curator.open(paths[::-1], unit="user_id", name="visits", budget=BUDGET) as curator:
        assert curator.remaining < 1.1


def test_a_policy_that_names_its_ledger_uses_no_other_and_makes_none(data: Path) -> None:
    folder = data.parent
    with Curator.open(policy(folder, VISITS)) as curator:
        origin = next(curator.ledger.entries()).hash
    named = policy(folder, VISITS)
    named.write_text(f'ledger_origin = "{origin}"\n{named.read_text()}')
    with Curator.open(named) as curator:
        curator.charge(Cost.pure(0.5), reason="a model")
    for other in (folder / "other.ledger", ":memory:", Ledger.in_memory()):
        with pytest.raises(LedgerError, match=r"is not there, and 'shop' has one|is another one than that of 'shop'"):
            Curator.open(named, ledger=other)
    assert not (folder / "other.ledger").exists()
    (folder / "shop.ledger").rename(folder / "moved.ledger")
    with pytest.raises(LedgerError, match=r"shop\.ledger is not there, and 'shop' has one already"):
        Curator.open(named)
    assert not (folder / "shop.ledger").exists()
    with Curator.open(named, ledger=folder / "moved.ledger") as curator:  # it is the same wherever it is
        assert curator.remaining < 5


def test_another_ledger_in_the_place_of_a_named_one_is_left_as_it_is(data: Path) -> None:
    named = policy(data.parent, VISITS)
    named.write_text(f'ledger_origin = "{"0" * 64}"\n{named.read_text()}')
    with Ledger.open(data.parent / "shop.ledger") as ledger:
        before = ledger.head
    with pytest.raises(LedgerError, match="is another one"):
        Curator.open(named)
    with Ledger.open(data.parent / "shop.ledger", read_only=True) as ledger:
        assert ledger.head == before


def test_a_policy_names_the_key_of_its_ledger(data: Path) -> None:
    folder = data.parent
    (folder / "ledger.key").write_bytes(b"k" * 32)
    keyed = policy(folder, VISITS)
    keyed.write_text(f'ledger_key = "ledger.key"\n{keyed.read_text()}')
    (folder / "ledger.key").rename(folder / "away.key")
    with pytest.raises(InvalidArgument, match="the file cannot be read"):
        Curator.open(keyed)
    assert not (folder / "shop.ledger").exists()  # it would be one without a key
    (folder / "away.key").rename(folder / "ledger.key")
    with Curator.open(keyed) as curator:
        curator.sql(COUNT, epsilon=0.5)
    with Curator.open(keyed) as curator:
        assert curator.sql(COUNT, epsilon=0.5).repeated
        curator.ledger.verify()
    with pytest.raises(LedgerError, match="was made with a key"):
        Curator.open(policy(folder, VISITS))


def test_whoever_has_no_budget_is_told_which_ledger_was_looked_for(data: Path) -> None:
    with pytest.raises(InvalidArgument, match=f"there is no ledger {data.parent / 'visits.ledger'}"):
        Curator.open(data, unit="user_id")
    Ledger.open(data.parent / "visits.ledger").close()
    with pytest.raises(InvalidArgument, match=f"and the ledger {data.parent / 'visits.ledger'} does not, either"):
        Curator.open(data, unit="user_id")


def test_limits_of_several_tables_are_stated_for_all_of_them_or_by_name() -> None:
    people, calls = pa.table({"u": [1, 2]}), pa.table({"u": [1, 1, 2]})
    sources = {"people": people, "calls": calls}
    for given, expected in (
        (1, {"people": 1, "calls": 1}),
        ({"People": 1}, {"people": 1, "calls": None}),
        (None, {"people": None, "calls": None}),
    ):
        tables = Policy.of(sources, unit="u", rows_per_unit=given, max_rows={"calls": 7}).tables
        assert {name: table.rows_per_unit for name, table in tables.items()} == expected
        assert {name: table.max_rows for name, table in tables.items()} == {"people": None, "calls": 7}
    with pytest.raises(InvalidArgument, match="name a table about people: people, calls"):
        Policy.of(sources, unit="u", rows_per_unit={"phones": 1})
    with pytest.raises(InvalidArgument, match="max_rows"):
        Policy.of(sources, unit="u", max_rows={"calls": 0})
