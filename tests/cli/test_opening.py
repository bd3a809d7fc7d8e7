"""The ledger of a question on the command line: which one, with which key, and what is said if it is new."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.calling import NEW_LEDGER, call, good, good_json
from discreet import Budget, Ledger
from engines.sources import parquet
from query.open_shop import visits

COUNT = '"SELECT COUNT(*) AS n FROM visits"'
TABLE = '[tables.visits]\nsource = "visits.parquet"\nunit = "user_id"\n'
BUDGET = "--budget-epsilon 3 --budget-delta 1e-6"
ASKING = ["query run", "query run --dry-run", "query explain"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    parquet(tmp_path / "visits.parquet", visits())
    (tmp_path / "ledger.key").write_bytes(b"k" * 32)
    (tmp_path / "other.key").write_bytes(b"o" * 32)
    return tmp_path


def policy(*fields: str) -> str:
    Path("p.toml").write_text("\n".join(['name = "shop"', "budget = { epsilon = 3 }", *fields, TABLE]))
    return "p.toml"


def refused(command: str) -> tuple[int, str]:
    result = call(*shlex.split(command))
    assert result.exit_code != 0, result.stdout
    return result.exit_code, " ".join(result.stderr.split())


@pytest.mark.parametrize("command", ASKING)
def test_a_ledger_that_the_policy_states_is_not_exchanged_for_another(folder: Path, command: str) -> None:
    source = policy('ledger = "shop.ledger"')
    good(f"query run {source} {COUNT} --epsilon 3")
    for other in ("other.ledger", "shop.ledger"):
        code, words = refused(f"{command} {source} {COUNT} --epsilon 3 --ledger {other}")
        assert (code, "the policy says it; change it there" in words) == (1, True)
    assert not (folder / "other.ledger").exists()


@pytest.mark.parametrize("command", ASKING)
def test_a_ledger_in_memory_is_refused_where_a_process_asks_one_question(command: str) -> None:
    for source in (policy(), "visits.parquet --unit user_id"):
        code, words = refused(f"{command} {source} {COUNT} --epsilon 1 {BUDGET} --ledger :memory:")
        assert (code, "would count nowhere: name a file" in words) == (2, True)


def test_the_ledger_of_data_without_a_policy_is_where_the_option_says(folder: Path) -> None:
    good(f"query run visits.parquet {COUNT} --unit user_id --epsilon 1 {BUDGET} --ledger mine.ledger")
    assert (folder / "mine.ledger").exists()
    assert not (folder / "visits.ledger").exists()


@pytest.mark.parametrize("machine", ["", "--json"])
def test_a_new_ledger_is_said_in_one_line_and_an_old_one_is_not(folder: Path, machine: str) -> None:
    ask = f"query run {policy()} {COUNT} --epsilon 0.5 {machine}"
    first, again = call(*shlex.split(ask)), call(*shlex.split(ask))
    assert NEW_LEDGER.fullmatch(first.stderr)
    assert "shop.ledger, from which nothing has been spent" in first.stderr
    assert again.stderr == ""
    (folder / "shop.ledger").write_bytes(b"")  # as a full disk leaves it
    assert NEW_LEDGER.fullmatch(call(*shlex.split(ask)).stderr)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ('"SELECT user_id FROM visits" --epsilon 0.5', "user_id"),
        ('"SELECT COUNT(*) FROM nowhere" --epsilon 0.5', "nowhere"),
        (f"{COUNT} --epsilon 0.5 --bounds spend=0,1", "the question aggregates no such thing"),
        (f"{COUNT} --epsilon 5", "data set 'shop'"),
        (f"{COUNT} --epsilon 0.5 --output nowhere/n.csv", "there is no directory"),
    ],
)
def test_a_refused_question_makes_no_ledger(folder: Path, asked: str, words: str) -> None:
    before = {path.name for path in (*folder.iterdir(), Path(policy()))}
    assert words in refused(f"query run p.toml {asked}")[1]
    assert {path.name for path in folder.iterdir()} == before
    good(f"query run p.toml {COUNT} --epsilon 0.5")
    assert (folder / "shop.ledger").exists()


def test_a_question_that_reads_no_row_of_people_makes_no_ledger(folder: Path) -> None:
    (folder / "cities.csv").write_text("city\nBern\nOslo\n")
    policy('tables.cities = { source = "cities.csv", public = true }')
    found = good_json('query run p.toml "SELECT COUNT(*) AS n FROM cities"')
    assert ([row["n"] for row in found["rows"]], found["ledger_origin"]) == ([2], None)
    assert not (folder / "shop.ledger").exists()


def test_machines_are_told_which_ledger_it_is_and_whether_it_is_new() -> None:
    source = policy()
    before = good_json(f"query explain {source} {COUNT} --epsilon 0.5")
    assert (before["ledger_origin"], before["new_ledger"]) == (None, True)
    first = good_json(f"query run {source} {COUNT} --epsilon 0.5")
    again = good_json(f"query run {source} {COUNT} --epsilon 0.5")
    after = good_json(f"query explain {source} {COUNT} --epsilon 0.5")
    assert [found["new_ledger"] for found in (first, again, after)] == [True, False, False]
    with Ledger.open("shop.ledger", read_only=True) as books:
        origin = next(books.entries()).hash
    for found in (first, again, after):
        assert (Path(found["ledger"]).name, found["ledger_origin"]) == ("shop.ledger", origin)


@pytest.mark.parametrize("command", ASKING)
def test_a_ledger_that_the_policy_names_is_missed_where_it_is_lost(folder: Path, command: str) -> None:
    origin = good_json(f"query run {policy()} {COUNT} --epsilon 0.5")["ledger_origin"]
    source = policy(f'ledger_origin = "{origin}"')
    assert good_json(f"{command} {source} {COUNT} --epsilon 0.5")["ledger_origin"] == origin
    for path in folder.glob("shop.ledger*"):
        path.unlink()
    code, words = refused(f"{command} {source} {COUNT} --epsilon 0.5")
    assert (code, "is not there, and 'shop' has one already" in words) == (1, True)
    assert not (folder / "shop.ledger").exists()
    with Ledger.open("shop.ledger") as books:
        books.establish("shop", Budget(epsilon=3.0))
    code, words = refused(f"{command} {source} {COUNT} --epsilon 0.5")
    assert (code, "is another one than that of 'shop'" in words) == (1, True)


def test_a_named_ledger_without_a_budget_can_be_explained() -> None:
    with Ledger.open("shop.ledger") as books:
        origin = next(books.entries()).hash
    Path("p.toml").write_text(f'name = "shop"\nledger_origin = "{origin}"\n{TABLE}')
    assert "No budget is set yet" in good(f"query explain p.toml {COUNT} --epsilon 0.5")


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="this system has other permissions")
@pytest.mark.parametrize(("file", "directory"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_what_was_paid_for_is_read_from_a_ledger_that_may_not_be_written(file: int, directory: int) -> None:
    with tempfile.TemporaryDirectory() as place:  # pytest's own are private
        for made in (Path(place), Path(place, "books")):
            made.mkdir(exist_ok=True)
            made.chmod(0o755)
        pq.write_table(visits(), f"{place}/visits.parquet")
        books = Path(place, "books", "l.ledger")
        ask = f"query run {place}/visits.parquet {COUNT} --unit user_id --ledger {books}"
        first = good_json(f"{ask} {BUDGET} --epsilon 0.5")
        books.chmod(file)
        books.parent.chmod(directory)
        with unprivileged():
            again = good_json(f"{ask} --epsilon 0.5")
            other = refused(f"{ask} --epsilon 0.25")
        assert (again["rows"], again["repeated"]) == (first["rows"], True)
        assert other[0] == 1
        assert f"the ledger {books} is read-only. This step was not recorded. Charges must be stored" in other[1]
        assert [path.name for path in books.parent.iterdir()] == ["l.ledger"]
        books.chmod(0o600)
        books.parent.chmod(0o755)
        assert not good_json(f"{ask} --epsilon 0.25")["repeated"]  # nothing is in the way that was left there


@contextmanager
def unprivileged() -> Iterator[None]:
    """What is done here is done by somebody who may not write everywhere; root gives its rights up meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    os.setresgid(65534, 65534, 0)
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


def test_a_ledger_with_a_key_pays_for_questions() -> None:
    ask = f"query run {policy()} {COUNT} --epsilon 0.5"
    good(f"{ask} --key ledger.key")
    assert "was made with a key" in refused(ask)[1]
    assert "was made with another key" in refused(f"{ask} --key other.key")[1]
    assert good_json(f"{ask} --key ledger.key")["repeated"]
    assert good_json(f"query explain p.toml {COUNT} --epsilon 0.5 --key ledger.key")["answered"]
    assert "was made with another key" in refused(f"query explain p.toml {COUNT} --epsilon 0.5 --key other.key")[1]
    with Ledger.open("shop.ledger", key="ledger.key") as books:
        books.verify()


def test_a_policy_names_the_key_once_and_for_all() -> None:
    source = policy('ledger_key = "ledger.key"')
    ask = f"query run {source} {COUNT} --epsilon 0.5"
    good(ask)
    assert good_json(ask)["repeated"]
    assert "the policy says it; change it there" in refused(f"{ask} --key ledger.key")[1]
    policy()
    assert "was made with a key" in refused(ask)[1]


def test_whoever_has_no_budget_is_told_which_ledger_was_looked_for(folder: Path) -> None:
    (folder / "there").mkdir()
    (folder / "there" / "visits.parquet").symlink_to(folder / "visits.parquet")
    good(f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5 {BUDGET}")
    _, words = refused(f"query run there/visits.parquet {COUNT} --unit user_id --epsilon 0.5")
    assert f"there is no ledger {folder / 'there' / 'visits.ledger'}" in words
    _, words = refused(f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5 --name v --ledger visits.ledger")
    assert f"may be spent on 'v', and the ledger {folder / 'visits.ledger'} does not, either" in words
