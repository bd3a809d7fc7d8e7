"""Answers in files: the intervals beside the values, and a file that cannot be written costs nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.calling import call, good, good_json
from discreet import Ledger
from engines.sources import parquet
from query.open_shop import visits

BY_CITY = (
    'query run visits.parquet "SELECT city, COUNT(*) AS n, MAX(day) - MIN(day) AS span FROM visits GROUP BY city" '
    "--unit user_id --epsilon 2 --budget-epsilon 9 --budget-delta 1e-2"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    parquet(tmp_path / "visits.parquet", visits())
    return tmp_path


def test_an_answer_is_written_as_its_ending_says_beside_what_is_printed() -> None:
    assert "95 % intervals in brackets" in good(f"{BY_CITY} -o cities.csv")
    found = good_json(f"{BY_CITY} --output cities.parquet")
    with Path("cities.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"city", "n", "n_low", "n_high", "span"} <= set(rows[0])
    told = {row["city"]: row for row in found["rows"]}
    assert {row["city"] for row in rows} == set(told) == {"Bern", "Oslo", "Rome", "Wien"}
    for row in rows:
        assert [int(row[name]) for name in ("n", "n_low", "n_high")] == [
            told[row["city"]][name] for name in ("n", "n_low", "n_high")
        ]
    stored = pq.read_table("cities.parquet")
    assert stored.column("n").to_pylist() == [row["n"] for row in found["rows"]]
    assert stored.schema.names == list(found["rows"][0])


def test_json_has_what_is_printed() -> None:
    found = good_json(f"{BY_CITY} --confidence 0.5 --out cities.JSON")
    assert json.loads(Path("cities.JSON").read_text(encoding="utf-8")) == found
    assert found["confidence"] == 0.5


@pytest.mark.parametrize(
    ("file", "code", "words"),
    [
        ("cities.txt", 2, "is no name that ends in .csv, .parquet or .json, such as answer.csv"),
        (".csv", 2, "is no name that ends in .csv"),
        ("there.csv", 1, "a file of that name exists"),
        ("nowhere/cities.csv", 1, "there is no directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_paid(file: str, code: int, words: str) -> None:
    Path("there.csv").write_text("mine")
    query = "SELECT COUNT(*) FROM visits"
    asked = ["query", "run", "visits.parquet", query, "--unit", "user_id", "--epsilon", "1", "--budget-epsilon", "3"]
    refused = call(*asked, "--output", file)
    assert (refused.exit_code, refused.stdout.count("\nleft  ")) == (code, 0)
    assert words in refused.output
    assert Path("there.csv").read_text() == "mine"
    assert not Path("visits.ledger").exists()
    good("ledger establish visits.ledger --dataset visits --epsilon 3")
    assert call(*asked, "--output", file).exit_code == code
    with Ledger.open("visits.ledger", read_only=True) as books:
        assert not list(books.entries(kind="reserve"))


def test_looking_writes_no_file(folder: Path) -> None:
    good(f"{BY_CITY} --dry-run -o cities.csv")
    assert [path.name for path in folder.iterdir()] == ["visits.parquet"]


def test_a_csv_file_is_read_in_the_encoding_that_is_stated(folder: Path) -> None:
    rows = "".join(f"{person},{'München' if person % 3 else 'Köln'}\n" for person in range(3000))
    (folder / "people.csv").write_bytes(f"person,city\n{rows}".encode("windows-1252"))
    asked = 'people.csv "SELECT city, COUNT(*) AS n FROM people GROUP BY city" --unit person --epsilon 2'
    budget = "--budget-epsilon 9 --budget-delta 1e-2"
    found = good_json(f"query run {asked} {budget} --encoding windows-1252")
    assert {row["city"] for row in found["rows"]} == {"München", "Köln"}
    assert good_json(f"query explain {asked} --encoding windows-1252")["answered"]
    assert "city" in good("query tables people.csv --unit person --encoding windows-1252")
    assert call("query", "tables", "people.csv", "--unit", "person", "--encoding", "nonsense").exit_code == 1
