"""`discreet init`: a policy from names and types, which holds no value and decides nothing for the owner."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from cli.calling import call, good, good_json
from discreet.engines import DuckDBEngine
from discreet.errors import PolicyError
from discreet.query.policy import Policy
from engines.sources import csv, database, parquet

SECRETS = pa.table(
    {
        "user_id": [987654321, 123454321],
        "Secret City": pa.array(["Secretville", "Hush"]).dictionary_encode(),
        "spend": [31337.25, 4242.5],
        "price": [Decimal("98765.25"), Decimal("1.25")],
        "day": [dt.date(1987, 6, 5), dt.date(1987, 6, 6)],
        "member": [True, False],
        "email": ["hush@example.org", "x@example.org"],
        "tags": [["whisper"], []],
        'quoted "key"': ["murmur", ""],
    }
)
WORDS = ["987654321", "Secretville", "Hush", "31337", "98765", "1987", "hush@", "whisper", "murmur"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_value_of_the_data_is_in_the_policy(folder: Path) -> None:
    parquet(folder / "visits.parquet", SECRETS)
    csv(folder / "people.csv", "user_id,name,age\n987654321,Secretville,31337\n")
    database(
        folder / "shop.duckdb",
        "CREATE TYPE e AS ENUM ('Secretville')",
        "CREATE TABLE orders AS SELECT 987654321 AS customer, 'Secretville'::e AS town",
        "CREATE TABLE nested AS SELECT ['Secretville'::e] AS l, {'f': 'Secretville'::e} AS s",
    )
    printed = good("init visits.parquet people.csv shop.duckdb --output -")
    machine = good("init visits.parquet people.csv shop.duckdb --output - --json")
    for text in (printed, machine):
        assert "[tables.visits]" in text.replace("\\n", "\n")
        for word in WORDS:
            assert word not in text


def test_the_same_schema_gives_the_same_policy_whatever_the_values_are(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    parquet(folder / "a" / "visits.parquet", SECRETS)
    parquet(folder / "b" / "visits.parquet", SECRETS.slice(2))
    csv(folder / "a" / "x.csv", "id,b\n1,2024-01-01\n")
    csv(folder / "b" / "x.csv", "id,b\nhello,5\n")
    for name in ("visits.parquet", "x.csv"):
        one, other = (good(f"init {place}/{name} --output -").replace(f'"{place}/', '"') for place in "ab")
        assert one == other


def test_with_a_unit_the_policy_can_be_used_at_once(folder: Path) -> None:
    parquet(folder / "visits.parquet", SECRETS)
    printed = good("init visits.parquet --unit User_ID")
    assert printed.splitlines() == [
        "policy.toml: visits (9 columns), from names and types alone.",
        "What to do next, in this file:",
        "1. Set how much may be spent, in the section [budget]: nothing can be asked without a budget.",
        "2. Declare bounds and public keys where you know them: answers are more accurate.",
    ]
    policy = Policy.load("policy.toml")
    assert (policy.name, policy.tables["visits"].unit) == ("visits", "User_ID")
    with DuckDBEngine() as engine:
        assert policy.resolve(engine).tables["visits"].unit == "user_id"


def test_without_a_unit_nothing_can_be_asked_before_the_owner_has_chosen(folder: Path) -> None:
    parquet(folder / "visits.parquet", SECRETS)
    printed = good("init visits.parquet")
    assert "\n1. Say whose rows they are: visits.\n2. Set how much may be spent, in the section [budget]" in printed
    with pytest.raises(PolicyError, match="Say whose rows they are"):
        Policy.load("policy.toml")
    text = Path("policy.toml").read_text()
    Path("policy.toml").write_text(text.replace('# unit = "user_id"', 'unit = "user_id"'))
    assert Policy.load("policy.toml").tables["visits"].unit == "user_id"


def test_every_commented_line_can_be_filled_in(folder: Path) -> None:
    parquet(folder / "visits.parquet", SECRETS)
    good("init visits.parquet --unit user_id")
    text = Path("policy.toml").read_text()
    lines = []
    for line in text.splitlines():
        if " = " in line and line.startswith("# "):
            line = line[2:]
        if line in ("# [budget]", "# [analysts]"):
            line = line[2:]
        bounds = "1900-01-01, 2000-01-01" if line.startswith("day") else "0, 1"
        lines.append(line.replace("..., ...", bounds).replace('"...", "..."', '"a", "b"'))
    Path("policy.toml").write_text("\n".join(lines))
    policy = Policy.load("policy.toml")
    assert policy.budget is not None
    assert policy.limit("ada") is not None
    assert policy.tables["visits"].max_groups == 10
    assert policy.tables["visits"].columns["email"].hidden
    with DuckDBEngine() as engine:
        table = policy.resolve(engine).tables["visits"]
    assert {column.name for column in table.columns} == set(SECRETS.column_names) - {"email", "tags"}
    assert [table.column(name).bounds is not None for name in ("spend", "price", "day")] == [True] * 3  # type: ignore[union-attr]
    assert [table.column(name).keys for name in ("Secret City", "member")] == [("a", "b"), (False, True)]  # type: ignore[union-attr]


def test_a_csv_file_gets_types_and_ideas_by_the_names_of_its_columns(folder: Path) -> None:
    csv(folder / "a.csv", "user_id,city,signupDate,unit_price,isActive,notes,order_id,age,created_at,age_group,x\n")
    text = good("init a.csv --unit user_id --output -")
    for line in (
        '# user_id = { type = "..." }  # BIGINT, VARCHAR or UUID',
        '# city = { type = "VARCHAR", keys = ["...", "..."] }',
        '# signupDate = { type = "DATE", bounds = [..., ...] }',
        '# unit_price = { type = "DOUBLE", bounds = [..., ...] }',
        '# isActive = { type = "BOOLEAN" }',
        "# notes = { hidden = true }  # free text",
        "# order_id = { hidden = true }  # it identifies something; nobody groups by it",
        '# age = { type = "BIGINT", bounds = [..., ...] }',
        '# created_at = { type = "TIMESTAMP", bounds = [..., ...] }',
        '# age_group = { type = "VARCHAR", keys = ["...", "..."] }',
        '# x = { type = "..." }  # and bounds if it is a number or a date, keys if it is one of a few words',
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["user_id", "id", "city"], ["user_id"]),
        (["Customer", "PatientID", "member no"], ["Customer", "PatientID", "member no"]),
        (["id", "userland", "accounting", "identity"], []),
    ],
)
def test_candidates_for_the_unit_are_found_by_name(folder: Path, columns: list[str], expected: list[str]) -> None:
    parquet(folder / "t.parquet", pa.table({name: pa.array([], pa.int64()) for name in columns}))
    assert good_json("init t.parquet --output -")["tables"][0]["candidates"] == expected


def test_a_column_of_floats_is_no_candidate(folder: Path) -> None:
    parquet(folder / "t.parquet", pa.table({"user": pa.array([], pa.float64())}))
    assert good_json("init t.parquet --output -")["tables"][0]["candidates"] == []


def test_tables_of_a_database_without_the_unit_are_left_to_the_owner(folder: Path) -> None:
    database(folder / "shop.duckdb", "CREATE TABLE visits (user_id INT)", "CREATE TABLE cities (name VARCHAR)")
    report = good_json("init shop.duckdb --unit user_id")
    assert [(table["name"], table["unit"]) for table in report["tables"]] == [("cities", None), ("visits", "user_id")]
    text = Path("policy.toml").read_text()
    assert tomllib.loads(text)["tables"]["visits"] == {"source": "shop.duckdb", "unit": "user_id", "columns": {}}
    with pytest.raises(PolicyError, match=r"tables\.cities\.unit"):
        Policy.load("policy.toml")


def test_paths_are_written_as_seen_from_the_policy(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "policies").mkdir()
    parquet(folder / "data" / "visits 1.parquet", SECRETS)
    good("init 'data/visits *.parquet' --unit user_id --output policies/p.toml")
    policy = Policy.load("policies/p.toml")
    with DuckDBEngine() as engine:
        assert list(policy.resolve(engine).tables) == ["visits"]


def test_two_sources_of_one_name_become_two_tables(folder: Path) -> None:
    (folder / "a").mkdir()
    parquet(folder / "visits.parquet", SECRETS)
    parquet(folder / "a" / "visits.parquet", SECRETS)
    report = good_json("init visits.parquet a/visits.parquet --unit row")
    assert [table["name"] for table in report["tables"]] == ["visits", "visits_2"]
    assert [table.level for table in Policy.load("policy.toml").tables.values()] == ["row", "row"]


def test_a_file_is_not_replaced_unless_told(folder: Path) -> None:
    parquet(folder / "visits.parquet", SECRETS)
    Path("policy.toml").write_text("mine")
    result = call("init", "visits.parquet")
    assert result.exit_code == 1
    assert "policy.toml: the file exists already. Pass --force to replace it" in result.stderr
    assert Path("policy.toml").read_text() == "mine"
    assert "nowhere.parquet does not exist" in call("init", "nowhere.parquet").stderr  # the first thing to mend
    good("init visits.parquet --force")
    assert Path("policy.toml").read_text() != "mine"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("init", 2, "Missing argument"),
        ("init nowhere.parquet", 1, "nowhere.parquet does not exist"),
        ("init empty.csv", 1, "is empty"),
        ("init empty.duckdb", 1, "there is no table in it"),
        ("init visits.parquet --unit usr_id", 1, "Did you mean 'user_id'?"),
        ("init visits.parquet --unit spend", 1, "of type DOUBLE, which does not identify anybody"),
        ("init visits.parquet --unit day", 1, "which does not identify anybody; name the column that says whose row"),
        ("init visits.parquet --output policy.txt", 2, "does not end in .toml"),
        ("init visits.parquet --output no/where/p.toml", 1, "there is no directory"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, command: str, code: int, words: str) -> None:
    parquet(folder / "visits.parquet", SECRETS)
    (folder / "empty.csv").touch()
    database(folder / "empty.duckdb", "CREATE VIEW v AS SELECT 1 AS a")
    result = call(*command.split())
    assert result.exit_code == code
    assert words in " ".join(result.stderr.split())
    assert not Path("policy.toml").exists()


def test_a_refusal_is_json_for_machines(folder: Path) -> None:
    result = call("init", "nowhere.parquet", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["kind"] == "SourceError"


def test_a_table_that_may_be_public_is_told_about_unique_columns(folder: Path) -> None:
    csv(folder / "wards.csv", "ward_id,name\n1,ER\n")
    csv(folder / "visits.csv", "patient_id,ward_id\n1,1\n")
    text = good("init wards.csv visits.csv --unit patient_id --output -")
    wards, visits = text[text.index("[tables.wards]") :].split("[tables.visits]")
    assert "{ unique = true }, to join on it" in wards
    assert "unique" not in visits
    assert "# max_rows = 10" in visits
