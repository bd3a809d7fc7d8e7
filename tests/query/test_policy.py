"""Policies: what a file may say, what is said back, and what becomes of it beside the data."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from discreet import Budget
from discreet.engines import DuckDBEngine
from discreet.errors import EngineError, InvalidArgument, PolicyError, SourceError
from discreet.query.catalog import Catalog, Column
from discreet.query.parse import parse
from discreet.query.policy import ColumnPolicy, Policy, TablePolicy
from discreet.query.versions import versions_of
from engines.sources import csv, database, parquet, visits

TOML = """
name = "shop"
ledger = "ledger.db"

[budget]
epsilon = 3.0
delta = 1e-6

[tables.visits]
source = "visits.parquet"
unit = "User_ID"
max_groups = 20
max_rows = 4

[tables.visits.columns]
city = { keys_from = "cities.name" }
spend = { bounds = [0, 100.5] }

[tables.people]
source = "people.csv"
unit = "id"
rows_per_unit = 1
columns.id.type = "BIGINT"
columns.born = { type = "DATE", bounds = [1900-01-01, 2025-12-31] }
columns.sex.keys = ["f", "m", "x"]
columns.email.hidden = true

[tables.cities]
source = "shop.duckdb"
public = true

[tables.sensors]
source = "sensors/*.parquet"
unit = "row"
"""
YAML = """
name: shop
ledger: ledger.db
budget: {epsilon: 3.0, delta: 1.0e-6}
tables:
  visits:
    source: visits.parquet
    unit: User_ID
    max_groups: 20
    max_rows: 4
    columns:
      city: {keys_from: cities.name}
      spend: {bounds: [0, 100.5]}
  people:
    source: people.csv
    unit: id
    rows_per_unit: 1
    columns:
      id: {type: BIGINT}
      born: {type: DATE, bounds: [1900-01-01, 2025-12-31]}
      sex: {keys: [f, m, x]}
      email: {hidden: true}
  cities: {source: shop.duckdb, public: true}
  sensors: {source: "sensors/*.parquet", unit: row}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parquet(tmp_path / "visits.parquet")
    csv(tmp_path / "people.csv", "id,born,sex,email\n1,1980-01-01,f,a@example.org\nx,?,f,\n")
    database(
        tmp_path / "shop.duckdb",
        "CREATE TABLE cities AS SELECT * FROM (VALUES ('Ulm', 1), ('Bonn', 2), ('Ulm', 3), (NULL, 4)) t(name, code)",
    )
    (tmp_path / "sensors").mkdir()
    parquet(tmp_path / "sensors" / "a.parquet", pa.table({"heat": [1.5]}))
    return tmp_path


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine(threads=1) as opened:
        yield opened


def written(folder: Path, text: str, name: str = "policy.toml") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def refusal(folder: Path, text: str, name: str = "policy.toml") -> str:
    with pytest.raises(PolicyError) as caught:
        Policy.load(written(folder, text, name))
    assert str(folder / name) in str(caught.value)
    assert caught.value.__context__ is None
    return str(caught.value).replace(f"{folder}/", "")


# Files


def test_the_ledger_has_a_key_beside_the_policy_and_an_origin(folder: Path) -> None:
    origin = "0123456789abcdef" * 4
    stated = {
        "toml": f'ledger_key = "my.key"\nledger_origin = "{origin}"',
        "yaml": f"ledger_key: my.key\nledger_origin: {origin}",
    }
    for text, name in ((TOML, "policy.toml"), (YAML, "policy.yaml")):
        policy = Policy.load(written(folder, f"{stated[name[-4:]]}\n{text}", name))
        assert (policy.ledger_key, policy.ledger_origin) == (folder / "my.key", origin)
    for wrong in ("12ab", origin.upper(), f"3:{origin}"):
        said = refusal(folder, f'ledger_origin = "{wrong}"\n{TOML}')
        assert "policy.toml: ledger_origin" in said
        assert "Write the 64 hexadecimal digits that `discreet query explain --json` shows" in said


@pytest.mark.parametrize(("text", "name"), [(TOML, "policy.toml"), (YAML, "policy.yaml"), (YAML, "policy.yml")])
def test_toml_and_yaml_say_the_same(folder: Path, engine: DuckDBEngine, text: str, name: str) -> None:
    policy = Policy.load(written(folder, text, name))
    assert (policy.name, policy.budget) == ("shop", Budget(epsilon=3.0, delta=1e-6))
    assert policy.ledger == folder / "ledger.db"
    assert (policy.tables["visits"].max_groups, policy.tables["visits"].max_rows) == (20, 4)
    assert policy.tables["people"].max_groups is None

    catalog = policy.resolve(engine)
    assert isinstance(catalog, Catalog)
    assert list(catalog.tables) == ["visits", "people", "cities", "sensors"]
    visits, people, cities, sensors = catalog.tables.values()
    assert (visits.level, visits.unit, visits.one_row) == ("unit", "user_id", False)
    assert visits.columns == (
        Column("user_id", "BIGINT"),
        Column("city", "VARCHAR", keys=("Bonn", "Ulm")),
        Column("spend", "DOUBLE", bounds=(0, 100.5)),
    )
    assert (people.level, people.unit, people.one_row) == ("unit", "id", True)
    assert people.columns == (
        Column("id", "BIGINT"),
        Column("born", "DATE", bounds=(dt.date(1900, 1, 1), dt.date(2025, 12, 31))),
        Column("sex", "VARCHAR", keys=("f", "m", "x")),
    )
    assert (cities.level, cities.unit) == ("public", None)
    assert (sensors.level, sensors.unit) == ("row", None)
    for table in catalog.tables.values():
        assert engine.table(f"SELECT COUNT(*) AS n FROM {table.relation}")["n"][0].as_py() > 0


def test_paths_are_relative_to_the_policy_and_not_to_the_process(
    folder: Path, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, TOML)
    monkeypatch.chdir(folder.parent)
    policy = Policy.load(Path(folder.name) / "policy.toml")
    monkeypatch.chdir("/")
    assert set(policy.resolve(engine).tables) == {"visits", "people", "cities", "sensors"}


HEAD = 'name = "d"\n[tables.t]\nsource = "visits.parquet"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "policy.toml: this is not TOML: Invalid value (at "),
        (HEAD + "unit='u'\ncolumns.d.bounds=[2023-13-31, 2024-01-01]", "2023-13-31 is no date; write dates such"),
        (HEAD + "unit='u'\ncolumns.d.bounds=[2023-01-31, 2024-02-30]", "2024-02-30 is no date; write dates such"),
        ("[tables.t]\nsource='a'\nunit='u'", "policy.toml: the field 'name' is missing"),
        ("name = 'd'", "policy.toml: the field 'tables' is missing"),
        (HEAD.replace("name", "nme"), "field 'name' is missing, and 'nme' is no field. Did you mean 'name'?"),
        ("name = 'd'\n[tables.t]\nsorce='a'\nunit='u'", "'source' is missing, and 'sorce' is no field. Did you"),
        ("name = ' '\n[tables.t]\nsource='a'\nunit='u'", "policy.toml: name: ' ' is not allowed. Give the data set"),
        ("name = 'd'\n[tables.t]\nunit='u'", "policy.toml: tables.t: the field 'source' is missing"),
        (HEAD, "policy.toml: tables.t.unit: it is missing. Say whose rows they are"),
        (HEAD + "unit='u'\npublic=true", "policy.toml: tables.t.unit: 'u' is not allowed. Say whose rows they are"),
        (HEAD + "public=true", "policy.toml: tables: ['t'] is not allowed. Declare at least one"),
        (HEAD + "unti='u'", "policy.toml: tables.t: unknown field 'unti'. Did you mean 'unit'?"),
        (HEAD + "unit=5", "policy.toml: tables.t.unit: 5 is of the wrong type. Write a text in quotes."),
        (HEAD + "unit='u'\nmax_rows='4'", "tables.t.max_rows: '4' is of the wrong type. Write a whole number"),
        (HEAD + "unit='u'\nmax_rows=0", "policy.toml: tables.t.max_rows: 0 is not allowed. Pass a whole number >= 1"),
        (HEAD + "unit='u'\nmax_rows=true", "tables.t.max_rows: True is of the wrong type. Write a whole number"),
        (HEAD + "unit='row'\nmax_rows=2", "tables.t.max_rows: 2 is not allowed. It limits units with"),
        (HEAD + "unit='u'\nrows_per_unit=3", "tables.t.rows_per_unit: 3 is not allowed. Write 1, or leave it out"),
        (HEAD + "unit='u'\ncolumns.a.bound=[0,1]", "tables.t.columns.a: unknown field 'bound'. Did you mean 'bounds'?"),
        (HEAD + "unit='u'\ncolumns.a.bounds=[0]", "tables.t.columns.a.bounds: [0] is not allowed. Write [low"),
        (HEAD + "unit='u'\ncolumns.a.bounds=5", "tables.t.columns.a.bounds: 5 is of the wrong type. Write a list"),
        (HEAD + "unit='u'\ncolumns.a.type='NUMBER'", "columns.a.type: 'NUMBER' is not allowed. Write a DuckDB"),
        (HEAD + "unit='u'\ncolumns.a.keys_from='b'", "columns.a.keys_from: 'b' is not allowed. Write 'table."),
        (HEAD + "unit='u'\ncolumns.a={keys=['x'],keys_from='b.c'}", "a.keys_from: 'b.c' is not allowed. Give keys or"),
        (HEAD + "unit='u'\ncolumns.a={hidden=true,keys=['x']}", "columns.a.hidden: True is not allowed. A hidden"),
        (HEAD + "unit='u'\ncolumns.a={}\ncolumns.A={}", "tables.t.columns: 'A' is not allowed. 'a' is the same column"),
        (HEAD + "unit='u'\n[tables.T]\nsource='b'\nunit='u'", "tables: 'T' is not allowed. 't' is the same table"),
        ("name='d'\n[tables.noisy_3]\nsource='a'\nunit='u'", "tables: 'noisy_3' is not allowed. Choose another name"),
        (HEAD + "unit='u'\n[budget]\nepsilonn=1", "toml: budget: unknown field 'epsilonn'. Did you mean 'epsilon'?"),
        (HEAD + "unit='u'\n[budget]\nepsilon=-1", "policy.toml: budget.epsilon: -1"),
        (HEAD + "unit='u'\n[budget]\nepsilon=1\nrho=1", "toml: budget: ('epsilon', 'rho') is not allowed. A budget"),
        (HEAD + "unit='u'\n[analysts.ada]\nepsilonn=1", "analysts.ada: unknown field 'epsilonn'. Did you mean"),
        (HEAD + "unit='u'\n[analysts]\nada=1", "analysts.ada: 1 is of the wrong type. Write a table of fields."),
        (HEAD + "unit='u'\n[analysts.ada]\nepsilon=-1", "policy.toml: analysts.ada.epsilon: -1"),
        (HEAD + "unit='u'\n[analysts.ada]", "policy.toml: analysts.ada"),
        (HEAD + "unit='u'\n[analysts.ada]\nepsilon=1\nperiod='monthly'", "analysts.ada.period: 'monthly' is"),
        (HEAD + "unit='u'\n[budget]\nepsilon=1\nperiod='0 days'", "budget.period: '0 days' is not allowed. This is no"),
        (HEAD + "unit='u'\n[budget]\nepsilon=1\nperiod=30", "budget.period: 30 is of the wrong type"),
        (HEAD + "unit='u'\n[analysts.' a']\nepsilon=1", "analysts. a.name: ' a' is not allowed. Pass a name"),
        (HEAD + "unit='u'\n[budget]\nepsilon='1'", "budget.epsilon: '1' is of the wrong type. Write a number."),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_said_with_its_place(folder: Path, text: str, words: str) -> None:
    assert words in refusal(folder, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: d\nname: e\n", "'name' in line 2 is there twice"),
        ("name: d\ntables:\n  t: {source: a, unit: u, unit: v}\n", "'unit' in line 3 is there twice"),
        ("name: [d\n", "policy.yaml: this is not YAML that can be used"),
        ("name: d\ntables:\n  t: {source: a, unit: no}\n", "tables.t.unit: False is of the wrong type. Write a text"),
        ("name: d\ntables:\n  on: {source: a, unit: u}\n", "the name True in line 3 is not text; write it in quotes"),
        ("- a\n", "policy.yaml: ['a'] is of the wrong type. Write a table of fields"),
        ("", "policy.yaml: None is of the wrong type"),
        ("name: !!python/object/apply:os.getcwd []\n", "this is not YAML that can be used"),
        ("name: d\ntables: {t: {source: a, columns: {c: {\n bounds: [2023-13-31, 2024-01-01]}}}}\n",
         "2023-13-31 in line 3 is no date; write dates such as 2024-12-31"),
        ("name: d\ntables:\n  t: {source: a, unit: u, columns: {c: {keys: [null]}}}\n", "columns.c.keys.0: None is of"),
    ],
)  # fmt: skip
def test_yaml_has_no_surprises(folder: Path, text: str, words: str) -> None:
    assert words in refusal(folder, text, "policy.yaml")


def test_yaml_reads_powers_of_ten_as_people_write_them(folder: Path) -> None:
    for number in ("1e-6", "1.0e-6", "1E-06", "0.000001"):
        path = folder / "powers.yaml"
        path.write_text(f"name: d\nbudget: {{epsilon: 1e0, delta: {number}}}\ntables: {{t: {{source: a, unit: u}}}}\n")
        assert Policy.load(path).budget == Budget(epsilon=1.0, delta=1e-6)
    (folder / "texts.yaml").write_text(
        "name: d\ntables: {t: {source: a, unit: u, columns: {c: {keys: ['1e5', 1e5x, 12e]}}}}\n"
    )
    assert Policy.load(folder / "texts.yaml").tables["t"].columns["c"].keys == ("1e5", "1e5x", "12e")


def test_a_file_that_is_no_policy_is_refused(folder: Path) -> None:
    for path, words in [
        (folder / "nowhere.toml", "the file does not exist"),
        (folder / "people.csv", "a policy is a TOML or YAML file"),
        (folder / "latin.toml", "the file is not text in UTF-8. Save it in that encoding."),
    ]:
        (folder / "latin.toml").write_bytes(b"name = '\xff'")
        with pytest.raises(PolicyError, match=words):
            Policy.load(path)


def test_several_tables_can_be_read_from_one_database(folder: Path, engine: DuckDBEngine) -> None:
    database(folder / "two.db", "CREATE TABLE a AS SELECT 1 AS u", 'CREATE TABLE "b c" AS SELECT 1 AS u')
    text = 'name="d"\n[tables.a]\nsource="two.db"\nunit="u"\n[tables.b]\nsource="two.db"\ntable="b c"\nunit="u"\n'
    catalog = Policy.load(written(folder, text)).resolve(engine)
    assert list(catalog.tables) == ["a", "b"]


# Beside the data


def column(name: str, **facts: object) -> dict[str, object]:
    return {"unit": "user_id", "columns": {name: ColumnPolicy(**facts)}}  # type: ignore[arg-type]


def resolved(source: object, engine: DuckDBEngine, **declared: object) -> Catalog:
    return Policy(name="d", tables={"t": TablePolicy(source, **declared)}).resolve(engine)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"unit": "usr_id"}, "policy: tables.t.unit: the table has no column 'usr_id'. Did you mean 'user_id'?"),
        ({"unit": "spend"}, "tables.t.unit: the column 'spend' is of type DOUBLE, which does not identify anybody"),
        ({"unit": "day"}, "is of type DATE, which does not identify"),
        ({"unit": "flag"}, "is of type BOOLEAN, which does not identify"),
        ({"unit": "price"}, "is of type DECIMAL(5,2), which does not identify"),
        ({"unit": "tags"}, "is of type VARCHAR[], which does not identify"),
        (column("town"), "tables.t.columns: the table 't' has no column 'town'"),
        (column("user_id", hidden=True), "the unit cannot be hidden"),
        (column("city", bounds=(0, 1)), "city.bounds: [0, 1] is not allowed. A column of type VARCHAR has no"),
        (column("spend", bounds=("a", "b")), "spend.bounds: 'a' is not allowed. The column is of type DOUBLE: w"),
        (column("spend", bounds=(5, 5)), "write [lower, upper] with lower < upper"),
        (column("spend", bounds=(5, 1)), "write [lower, upper] with lower < upper"),
        (column("spend", bounds=(0, float("inf"))), "write finite numbers"),
        (column("spend", bounds=(float("nan"), 1)), "write finite numbers"),
        (column("spend", bounds=(0, 10**400)), "write finite numbers that a float can hold"),
        (column("spend", bounds=(False, True)), "write numbers"),
        (column("day", bounds=(0, 1)), "write dates such as 2024-12-31"),
        (column("day", bounds=("2024-13-01", "2025-01-01")), "day.bounds: '2024-13-01' is not allowed. The column"),
        (column("day", bounds=("2024-12-01", "tomorrow")), "day.bounds: 'tomorrow' is not allowed"),
        (column("day", keys=("2024-02-30",)), "day.keys: '2024-02-30' is not allowed"),
        (column("city", keys=("a", 5)), "city.keys: 5 is not allowed. The column is of type VARCHAR: write texts in"),
        (column("city", keys=("a", "a")), "list every value once"),
        (column("city", keys=()), "list at least one value"),
        (column("flag", keys=(0, 1)), "write true or false"),
        (column("user_id", keys=(1.5,)), "write whole numbers that fit BIGINT"),
        (column("user_id", keys=(2**63,)), "write whole numbers that fit BIGINT"),
        (column("price", keys=(1.005,)), "write numbers that fit DECIMAL(5,2)"),
        (column("price", keys=(1000,)), "write numbers that fit DECIMAL(5,2)"),
        (column("tags", keys=("a",)), "a column of type VARCHAR[] cannot have keys"),
        (column("city", keys_from="x.y"), "there is no table 'x'"),
        (column("city", keys_from="t.city"), "the table 't' is not public"),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_the_data_is_refused_at_its_place(
    engine: DuckDBEngine, declared: dict[str, object], words: str
) -> None:
    table = pa.table(
        {
            "user_id": [1],
            "city": ["Secretville"],
            "spend": [1.5],
            "day": [dt.date(2024, 1, 1)],
            "flag": [True],
            "price": [Decimal("1.25")],
            "tags": [["a"]],
        }
    ).cast(pa.schema({"user_id": pa.int64(), "city": pa.string(), "spend": pa.float64(), "day": pa.date32(),
                      "flag": pa.bool_(), "price": pa.decimal128(5, 2), "tags": pa.list_(pa.string())}))  # fmt: skip
    with pytest.raises(PolicyError) as caught:
        resolved(table, engine, **declared)
    assert words.lower() in str(caught.value).lower()
    assert "Secretville" not in str(caught.value)
    assert caught.value.__context__ is None


def test_declared_values_come_in_the_type_of_the_column(engine: DuckDBEngine) -> None:
    zone = dt.timezone(dt.timedelta(hours=1))
    schema = pa.schema(
        {
            "u": pa.int8(),
            "x": pa.float32(),
            "d": pa.date32(),
            "t": pa.timestamp("us"),
            "z": pa.timestamp("us", tz="UTC"),
            "p": pa.decimal128(5, 2),
            "b": pa.bool_(),
            "id": pa.string(),
        }
    )
    identity = uuid.uuid4()
    columns = {
        "u": ColumnPolicy(keys=(1, 2.0), bounds=(0, 9.5)),
        "x": ColumnPolicy(keys=(1, 0.5)),
        "d": ColumnPolicy(keys=("2024-02-29", dt.date(2024, 1, 1)), bounds=("2024-01-01", "2024-12-31")),
        "t": ColumnPolicy(bounds=(dt.date(2024, 1, 1), "2024-12-31T12:00:00")),
        "z": ColumnPolicy(bounds=(dt.datetime(2024, 1, 1, 1, tzinfo=zone), dt.date(2024, 1, 2))),
        "p": ColumnPolicy(keys=(1.25, 2), bounds=(Decimal("0.5"), 2)),
        "b": ColumnPolicy(keys=(True, False)),
        "id": ColumnPolicy(type="uuid", keys=(str(identity),)),
    }
    table = resolved(schema.empty_table(), engine, unit="u", columns=columns).tables["t"]
    found = {column.name: column for column in table.columns}
    assert (found["u"].keys, found["u"].bounds) == ((1, 2), (0, 9.5))
    assert found["x"].keys == (1.0, 0.5)
    assert all(isinstance(key, float) for key in found["x"].keys or ())
    assert found["d"].keys == (dt.date(2024, 2, 29), dt.date(2024, 1, 1))
    assert found["d"].bounds == (dt.date(2024, 1, 1), dt.date(2024, 12, 31))
    assert [bound.isoformat() for bound in found["t"].bounds or ()] == ["2024-01-01T00:00:00", "2024-12-31T12:00:00"]
    assert [bound.isoformat() for bound in found["z"].bounds or ()] == [
        "2024-01-01T00:00:00+00:00",
        "2024-01-02T23:59:59.999999+00:00",
    ]
    assert (found["p"].keys, found["p"].bounds) == ((Decimal("1.25"), Decimal("2.00")), (0.5, 2))
    assert found["b"].keys == (True, False)
    assert (found["id"].sql_type, found["id"].keys) == ("UUID", (identity,))


@pytest.mark.parametrize("last", [dt.date(2024, 1, 2), "2024-01-02"])
def test_a_date_as_the_upper_bound_of_timestamps_is_the_whole_day(last: object, engine: DuckDBEngine) -> None:
    schema = pa.schema({"u": pa.int64(), "t": pa.timestamp("us")})
    columns = {"t": ColumnPolicy(bounds=(dt.date(2024, 1, 1), last))}
    catalog = resolved(schema.empty_table(), engine, unit="u", columns=columns)
    key = parse("SELECT date_trunc('hour', t) AS h, COUNT(*) FROM t GROUP BY h", catalog).blocks[0].keys[0]
    assert len(key.values or ()) == 48


@pytest.mark.parametrize(
    ("kind", "public", "expected"),
    [
        ("BIGINT", pa.array([3, 1, None, 3]), (1, 3)),
        ("HUGEINT", pa.array([3, 1]), (1, 3)),
        ("VARCHAR", pa.array(["b", "a"]), ("a", "b")),
        ("DATE", pa.array([dt.date(2024, 1, 2), dt.date(2024, 1, 1)]), (dt.date(2024, 1, 1), dt.date(2024, 1, 2))),
        ("BOOLEAN", pa.array([True, False]), (False, True)),
    ],
)
def test_keys_are_read_from_a_public_table(
    engine: DuckDBEngine, kind: str, public: pa.Array, expected: tuple[object, ...]
) -> None:
    data = pa.table({"u": [1], "k": pa.array(["1"])})
    policy = Policy(
        name="d",
        tables={
            "t": TablePolicy(data, unit="u", columns={"k": ColumnPolicy(type=kind, keys_from="Codes.CODE")}),
            "codes": TablePolicy(pa.table({"code": public}), public=True, columns={"code": ColumnPolicy(type=kind)}),
        },
    )
    column = policy.resolve(engine).tables["t"].column("k")
    assert column is not None
    assert column.keys == expected


def test_keys_of_another_type_than_the_column_are_refused(engine: DuckDBEngine) -> None:
    tables = {
        "t": TablePolicy(visits(), unit="user_id", columns={"city": ColumnPolicy(keys_from="c.code")}),
        "c": TablePolicy(pa.table({"code": [1]}), public=True),
    }
    with pytest.raises(PolicyError, match=r"'c\.code' is of type BIGINT and the column of type VARCHAR"):
        Policy(name="d", tables=tables).resolve(engine)


def test_a_missing_file_is_said_with_its_place_in_the_policy(folder: Path, engine: DuckDBEngine) -> None:
    policy = Policy.load(written(folder, 'name="d"\n[tables.t]\nsource="vists.parquet"\nunit="u"'))
    with pytest.raises(
        SourceError, match=r"policy.toml: tables.t: .*vists.parquet does not exist \(did you mean 'visits"
    ):
        policy.resolve(engine)


def test_rows_are_not_public_in_one_table_and_protected_in_another(folder: Path, engine: DuckDBEngine) -> None:
    frame = visits()
    (folder / "link.parquet").symlink_to(folder / "visits.parquet")
    pairs = [
        (str(folder / "*.parquet"), folder / "visits.parquet", None),
        ([folder / "visits.parquet"], folder / "link.parquet", None),
        (folder / "visits.parquet", [str(folder / "link.parquet")], None),
        (folder / "visits.parquet", folder / "link.parquet", None),
        (frame, frame, None),
        (folder / "shop.duckdb", folder / "shop.duckdb", "cities"),
    ]
    for source, other, table in pairs:
        tables = {
            "a": TablePolicy(source, table=table, unit="row"),
            "b": TablePolicy(other, table=None if table is None else f"main.{table.upper()}", public=True),
        }
        with pytest.raises(PolicyError, match=r"tables\.b\.public: the rows of this table are those of 'a'"):
            Policy(name="d", tables=tables).resolve(engine)


def test_rows_have_one_unit_whatever_the_table_is_called(folder: Path, engine: DuckDBEngine) -> None:
    frame = visits()
    (folder / "linked.parquet").symlink_to(folder / "visits.parquet")
    (folder / "again.parquet").hardlink_to(folder / "visits.parquet")
    links = [(folder / "visits.parquet", folder / f"{name}.parquet") for name in ("linked", "again")]
    data_set = (pads.dataset(folder / "visits.parquet"), folder / "again.parquet")
    listed = ([folder / "again.parquet"], folder / "visits.parquet")
    for source, other in [(frame, frame), *links, data_set, data_set[::-1], listed, listed[::-1]]:
        tables = {"a": TablePolicy(source, unit="user_id"), "b": TablePolicy(other, unit="row")}
        with pytest.raises(PolicyError, match=r"tables\.b\.unit: .* are those of 'a', whose unit is"):
            Policy(name="d", tables=tables).resolve(engine)
    same = {"a": TablePolicy(frame, unit="user_id"), "b": TablePolicy(frame, unit="USER_ID")}
    assert set(Policy(name="d", tables=same).resolve(engine).tables) == {"a", "b"}


def test_a_column_called_row_is_not_taken_for_row_level(engine: DuckDBEngine) -> None:
    with pytest.raises(PolicyError, match="the table has a column of this name too"):
        resolved(pa.table({"Row": [1]}), engine, unit="row")


def test_a_hidden_column_is_no_part_of_what_the_engine_reads(engine: DuckDBEngine, tmp_path: Path) -> None:
    for position, source in enumerate(
        [visits(), parquet(tmp_path / "a.parquet"), csv(tmp_path / "b.csv", "user_id,City\n1,a\n")]
    ):
        name = f"t{position}"
        table = TablePolicy(source, unit="user_id", columns={"CITY": ColumnPolicy(hidden=True)})
        with DuckDBEngine() as own:
            found = Policy(name="d", tables={name: table}).resolve(own).tables[name]
            assert found.column("city") is None
            with pytest.raises(EngineError):
                own.table(f"SELECT city FROM {found.relation}")
    with pytest.raises(SourceError, match="no column 'emial'"):
        resolved(visits(), engine, unit="user_id", columns={"emial": ColumnPolicy(hidden=True)})


def test_a_unit_can_be_declared_into_a_type_that_identifies(engine: DuckDBEngine) -> None:
    frame = pd.DataFrame({"u": [1.0, None, 3.0]})
    catalog = resolved(frame, engine, unit="u", columns={"u": ColumnPolicy(type="BIGINT")})
    assert catalog.tables["t"].columns == (Column("u", "BIGINT"),)
    assert engine.numpy(f"SELECT COUNT(u) AS n FROM {catalog.tables['t'].relation}")["n"].tolist() == [2]


@pytest.mark.parametrize("kind", ["BIGINT", "VARCHAR"])
@pytest.mark.parametrize(
    "stored",
    [
        pa.array([True, None]),
        pa.array([dt.date(2024, 1, 1), None]),
        pa.array([0, None], pa.timestamp("us")),
        pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None]),
        pa.array([dt.time(12), None]),
        pa.array([dt.timedelta(1), None]),
    ],
    ids=lambda array: str(array.type),
)
def test_a_truth_value_or_a_time_is_no_unit_whatever_type_is_declared(
    stored: pa.Array, kind: str, engine: DuckDBEngine, tmp_path: Path
) -> None:
    table = pa.table({"u": stored})
    stored_as_numbers = pa.types.is_duration(stored.type)  # in a Parquet file
    for number, source in enumerate([table] if stored_as_numbers else [table, parquet(tmp_path / "t.parquet", table)]):
        for columns in ({}, {"u": ColumnPolicy(type=kind)}):
            name = f"t{number}{len(columns)}"
            policy = Policy(name="d", tables={name: TablePolicy(source, unit="u", columns=columns)})
            with pytest.raises(PolicyError, match="does not identify anybody") as refused:
                policy.resolve(engine)
            assert "Name the column that says whose row it is" in str(refused.value)
            assert "declare" not in refused.value.advice


def test_a_unit_of_numbers_that_are_stored_in_another_way_is_told_to_declare_its_type(engine: DuckDBEngine) -> None:
    with pytest.raises(PolicyError, match='declare its type: type = "BIGINT"'):
        resolved(pa.table({"u": [1.0]}), engine, unit="u")


@pytest.mark.parametrize("kind", ["BIGINT", "UTINYINT", "HUGEINT", "VARCHAR", "UUID", "DECIMAL(20,0)"])
def test_whole_numbers_texts_and_uuids_identify(engine: DuckDBEngine, kind: str) -> None:
    table = pa.table({"u": ["1", None]})
    catalog = resolved(table, engine, unit="u", columns={"u": ColumnPolicy(type=kind)})
    assert catalog.tables["t"].unit == "u"


def test_a_table_without_rows_or_with_strange_names_is_resolved(engine: DuckDBEngine) -> None:
    table = pa.table(
        {"user id": pa.array([], pa.int64()), "Select": pa.array([], pa.string()), 'a"b': pa.array([], pa.float64())}
    )
    policy = Policy(name="d", tables={"from where": TablePolicy(table, unit="USER ID")})
    found = policy.resolve(engine).tables["from where"]
    assert found.unit == "user id"
    assert [column.name for column in found.columns] == ["user id", "Select", 'a"b']


# Without a file


def test_a_path_alone_is_enough(folder: Path, engine: DuckDBEngine) -> None:
    policy = Policy.of(folder / "visits.parquet", unit="user_id", columns={"spend": {"bounds": (0, 10)}}, max_groups=3)
    assert (policy.name, list(policy.tables)) == ("visits", ["visits"])
    assert policy.tables["visits"].max_groups == 3
    assert policy.resolve(engine).tables["visits"].columns[2] == Column("spend", "DOUBLE", bounds=(0, 10))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("visits.parquet", "visits"),
        ("2024/visits_*.parquet", "visits"),
        ("trips/*.parquet", "trips"),
        ("trips", "trips"),
        ("a.b.csv.gz", "a"),
        ("noisy_0.parquet", None),
    ],
)
def test_a_table_is_called_after_its_file(tmp_path: Path, pattern: str, name: str | None) -> None:
    (tmp_path / "2024").mkdir()
    (tmp_path / "trips").mkdir()
    for file in ("visits.parquet", "2024/visits_1.parquet", "trips/1.parquet", "noisy_0.parquet"):
        parquet(tmp_path / file)
    (tmp_path / "a.b.csv.gz").touch()
    expected = name or tmp_path.name
    assert list(Policy.of(str(tmp_path / pattern), unit="user_id").tables) == [expected]


@pytest.mark.parametrize("frame", [visits(), pd.DataFrame({"user_id": [1]}), pl.DataFrame({"user_id": [1]})])
def test_a_table_in_memory_is_called_data_or_as_told(engine: DuckDBEngine, frame: object) -> None:
    assert list(Policy.of(frame, unit="user_id").tables) == ["data"]
    assert list(Policy.of(frame, unit="user_id", name="visits").resolve(engine).tables) == ["visits"]


def test_of_a_database_all_tables_with_the_unit_are_read(tmp_path: Path, engine: DuckDBEngine) -> None:
    path = database(
        tmp_path / "shop.db",
        "CREATE TABLE visits AS SELECT 1 AS user_id",
        "CREATE TABLE Orders AS SELECT 1 AS USER_ID, 2.5 AS amount",
        "CREATE TABLE secrets AS SELECT 'x' AS word",
    )
    policy = Policy.of(path, unit="user_id", columns={"orders.amount": {"bounds": (0, 5)}})
    assert policy.name == "shop"
    catalog = policy.resolve(engine)
    assert set(catalog.tables) == {"visits", "orders"}
    assert catalog.tables["orders"].columns[1].bounds == (0, 5)
    assert list(Policy.of(path, unit="user_id", table="Orders").tables) == ["Orders"]
    assert list(Policy.of(path, unit="row").tables) == ["Orders", "secrets", "visits"]
    with pytest.raises(InvalidArgument, match="no table of the database has this column"):
        Policy.of(path, unit="user_iid")


def test_a_list_of_files_is_one_table_in_a_policy_and_without(folder: Path, engine: DuckDBEngine) -> None:
    paths = [parquet(folder / f"calls_{year}.parquet") for year in (2023, 2024)]
    policy = Policy.of(paths, unit="user_id")
    assert (policy.name, list(policy.tables)) == ("calls", ["calls"])
    names = "ledger_2023.parquet", "2024.parquet"
    assert list(Policy.of([parquet(folder / name) for name in names], unit="user_id").tables) == [folder.name]
    relation = policy.resolve(engine).tables["calls"].relation
    with engine.session() as session:
        assert session.numpy(f"SELECT COUNT(*) AS n FROM {relation}")["n"][0] == 8
    (folder / "calls.toml").write_text(
        'name = "calls"\n[tables.calls]\nsource = ["calls_2023.parquet", "calls_*.parquet"]\nunit = "user_id"\n'
    )
    assert versions_of(Policy.load(folder / "calls.toml")) == versions_of(policy)
    for wrong, words in (
        ('["a.parquet", 5]', r"source\.1: 5 is of the wrong type"),
        ("5", "a path in quotes, or a list"),
    ):
        (folder / "wrong.toml").write_text(f'name = "c"\n[tables.calls]\nsource = {wrong}\nunit = "user_id"\n')
        with pytest.raises(PolicyError, match=words):
            Policy.load(folder / "wrong.toml")
    with pytest.raises(InvalidArgument, match="this is a policy"):
        Policy.of([folder / "calls.toml"], unit="user_id")


def test_a_table_of_a_database_is_taken_by_its_name(tmp_path: Path, engine: DuckDBEngine) -> None:
    path = database(
        tmp_path / "shop.db",
        "CREATE TABLE visits AS SELECT 1 AS user_id, 'Ulm' AS city",
        "CREATE TABLE cities AS SELECT 'Ulm' AS city",
    )
    catalog = Policy.of({"visits": path}, unit="user_id", public={"cities": str(path)}).resolve(engine)
    assert {name: table.level for name, table in catalog.tables.items()} == {"visits": "unit", "cities": "public"}
    with pytest.raises(SourceError, match="no table 'citys'"), DuckDBEngine() as other:
        Policy.of({"visits": path}, unit="user_id", public={"citys": path}).resolve(other)
    both = {"a": TablePolicy([path], table="visits", unit="user_id"), "b": TablePolicy(path, "Visits", public=True)}
    with pytest.raises(PolicyError, match="which is not public"), DuckDBEngine() as other:
        Policy(name="d", tables=both).resolve(other)


def test_several_sources_can_be_given_by_name(engine: DuckDBEngine, folder: Path) -> None:
    policy = Policy.of(
        {"visits": folder / "visits.parquet", "orders": pa.table({"user_id": [1], "amount": [2.5]})},
        unit="user_id",
        columns={"orders.amount": {"bounds": [0, 5]}},
    )
    assert set(policy.resolve(engine).tables) == {"visits", "orders"}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("spend", "say which one has the column, as one of 'as.spend', 'b.spend'"),
        ("a", "as one of 'as.a', 'b.a'"),  # not taken for the name of a table
        ("bb.spend", r"write 'table\.column'. Did you mean 'b'\?"),
        ("b.", r"write 'table\.column'"),
    ],
)
def test_of_several_tables_the_one_that_has_the_column_is_named(column: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        Policy.of({"as": visits(), "b": visits()}, unit="user_id", columns={column: {}})


@pytest.mark.parametrize("facts", [{"bounds": (0, 5)}, {"type": "DOUBLE"}, {"hidden": True}])
def test_of_one_table_the_name_of_the_table_is_left_out(facts: dict[str, object], engine: DuckDBEngine) -> None:
    policy = Policy.of(visits(), unit="user_id", name="visits", columns={"visits.spend": facts})
    with pytest.raises((PolicyError, SourceError), match=r"Did you mean 'spend', without 'visits\.'\?"):
        policy.resolve(engine)


def test_a_column_of_another_table_is_told_with_its_table(engine: DuckDBEngine) -> None:
    policy = Policy.of(
        visits(),
        unit="user_id",
        name="visits",
        public={"cities": pa.table({"city": ["Ulm"], "size": [1]})},
        columns={"size": {"bounds": (0, 5)}},
    )
    with pytest.raises(PolicyError, match=r"no column 'size'. The table 'cities' has it: .* 'cities\.size'"):
        policy.resolve(engine)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"unit": None}, "say whose rows they are"),
        ({"unit": ""}, "name"),
        ({"unit": "user_id", "columns": {"spend": {"bound": (0, 1)}}}, "Did you mean 'bounds'?"),
        ({"unit": "user_id", "columns": {"spend": (0, 1)}}, "write a mapping such as"),
        ({"unit": "user_id", "columns": {"spend": {"bounds": 5}}}, r"write \[lower, upper\]"),
        ({"unit": "user_id", "max_groups": 0}, "max_groups = 0 is not allowed"),
        ({"unit": "user_id", "name": "noisy_1"}, "choose another name"),
        ({"unit": "user_id", "name": " "}, "give the data a name"),
        ({"unit": "user_id", "table": "visits"}, "only a database has tables"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, object], words: str) -> None:
    with pytest.raises((InvalidArgument, PolicyError), match=words):
        Policy.of(visits(), **arguments)  # type: ignore[arg-type]


def test_a_policy_file_is_not_taken_for_data(folder: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"use Policy\.load"):
        Policy.of(written(folder, TOML), unit="user_id")


def test_yaml_is_loaded_only_for_a_file() -> None:
    code = (
        "import sys, pyarrow; from discreet.query.policy import Policy\n"
        "from discreet.engines import DuckDBEngine, arrow_column\n"
        "Policy.of(pyarrow.table({'u': arrow_column([1])}), unit='u').resolve(DuckDBEngine())\n"
        "print([name for name in ('yaml', 'pandas', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
