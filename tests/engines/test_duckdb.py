"""The DuckDB engine: what can be opened, what comes out exactly, and what cannot be done with it."""

from __future__ import annotations

import datetime as dt
import gzip
import inspect
import json
import math
import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDBEngine, Engine, Session
from discreet.engines.csv_files import csv_rows
from discreet.engines.failures import guarded
from discreet.engines.frames import frame_of
from discreet.engines.parquet import _without_range, parquet_rows
from discreet.engines.paths import files_of
from discreet.errors import EngineError, InvalidArgument, SourceError
from engines.sources import VISITS, csv, database, parquet, visits


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine(threads=2) as opened:
        yield opened


def rows(engine: DuckDBEngine, relation: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in engine.table(f"SELECT * FROM {relation}").to_pylist()), key=repr)


EXPECTED = sorted(zip(*VISITS.values(), strict=True), key=repr)


def test_the_engine_and_its_sessions_follow_the_protocols(engine: DuckDBEngine) -> None:
    assert isinstance(engine, Engine)
    with engine.session() as session:
        assert isinstance(session, Session)


# Sources


def test_numbers_are_tallied_over_any_number_of_batches(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.engines.session._BATCH", 1000)
    with engine.session() as session:
        counts = session.tally("SELECT CAST(i * i % 7 AS INTEGER) FROM range(5003) t(i)", 9)
        assert counts.tolist() == np.bincount(np.arange(5003) ** 2 % 7, minlength=9).tolist()
        assert session.tally("SELECT 1 WHERE false", 2).tolist() == [0, 0]
        for wrong in ("9", "-1", "NULL::INTEGER"):
            with pytest.raises(EngineError):
                session.tally(f"SELECT CASE WHEN i = 3000 THEN {wrong} ELSE 1 END FROM range(5003) t(i)", 9)


def test_numbers_of_64_bits_are_read_exactly(engine: DuckDBEngine) -> None:
    with engine.session() as session:
        found = session.numbers(
            "SELECT 9223372036854775807 AS a, -9223372036854775808 AS b, 4294967295::UINTEGER AS c, -1::TINYINT AS d, "
            "0.1::DOUBLE AS e, 0.1::FLOAT AS f, 'NaN'::DOUBLE AS g"
        )
        assert [found[name].tolist() for name in "abcd"] == [[2**63 - 1], [-(2**63)], [2**32 - 1], [-1]]
        assert all(found[name].dtype == np.int64 for name in "abcd")
        assert all(found[name].dtype == np.float64 for name in "efg")
        assert found["e"].tolist() == [0.1]
        assert found["f"].tolist() == [float(np.float32(0.1))]
        assert math.isnan(found["g"][0])
        many = session.numbers("SELECT i, i * i AS s FROM range(300000) t(i) ORDER BY i")
        assert many["s"].tolist() == [i * i for i in range(300_000)]
        assert session.numbers("SELECT 1 AS a WHERE false")["a"].tolist() == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1::HUGEINT AS a",
        "SELECT 18446744073709551615::UBIGINT AS a",
        "SELECT 1.5::DECIMAL(10, 2) AS a",
        "SELECT 'x' AS a",
        "SELECT NULL::BIGINT AS a",
        "SELECT nullif(i, 70000) AS a FROM range(100000) t(i)",
        "SELECT 1 AS a, 2 AS a",
        "SELECT 1 AS a, 2 AS A",
    ],
)
def test_what_is_no_number_of_64_bits_is_not_taken_for_one(engine: DuckDBEngine, sql: str) -> None:
    with engine.session() as session, pytest.raises(InvalidArgument, match="number"):
        session.numbers(sql)


def test_rows_are_picked_as_they_come_and_put_in_order(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.engines.session._GROUPS", 2048)
    asked: list[int] = []

    def every_third(batch: pa.RecordBatch) -> np.ndarray:
        asked.append(batch.num_rows)
        return np.array([value % 3 == 0 for value in batch.column("i").to_pylist()])

    with engine.session() as session:
        found = session.filtered("SELECT i, 'v' || i AS v FROM range(10000) t(i)", every_third, order=["i"])
        assert sum(asked) == 10_000
        assert len(asked) > 3
        assert found["i"].to_pylist() == list(range(0, 10_000, 3))
        assert found["v"].to_pylist() == [f"v{i}" for i in range(0, 10_000, 3)]
        nothing = session.filtered("SELECT 1 AS i, DATE '2020-01-01' AS d WHERE false", every_third, order=["d", "i"])
        assert nothing.num_rows == 0
        assert nothing.schema.types == [pa.int32(), pa.date32()]
        with pytest.raises(EngineError) as caught:
            session.filtered("SELECT CAST('secret' || i AS INTEGER) AS i FROM range(9) t(i)", every_third, order=["i"])
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        "CAST('nan' AS DOUBLE), NULL, -0.5, CAST('inf' AS DOUBLE), CAST('-inf' AS DOUBLE), 3",
        "'b', NULL, 'a', 'B', '', 'é', 'z', 'a\0', '10', '9'",
        "DATE '2024-01-01', NULL, DATE '0001-01-01', DATE '9999-12-31'",
        "TRUE, NULL, FALSE",
        "1.25::DECIMAL(9, 2), NULL, -7.5::DECIMAL(9, 2)",
        "TIMESTAMP '2024-01-01 12:00:00', NULL, TIMESTAMP '1970-01-01 00:00:00'",
        "TIME '12:00:00', NULL, TIME '00:00:01'",
        "170141183460469231731687303715884105727::HUGEINT, NULL, 1::HUGEINT, -1::HUGEINT",
        "UUID '00000000-0000-0000-0000-0000000000ff', NULL, UUID 'ff000000-0000-0000-0000-000000000000'",
        "INTERVAL 3 DAY, NULL, INTERVAL 1 MONTH, INTERVAL 5 HOUR",
        "[2, 1], NULL, [1], [1, 3]",
    ],
)
def test_picked_rows_have_the_order_that_the_engine_gives_them(engine: DuckDBEngine, values: str) -> None:
    sql = f"SELECT x, y FROM (SELECT unnest([{values}]) AS x), (VALUES (2), (1)) t(y)"

    def every(batch: pa.RecordBatch) -> np.ndarray:
        return np.ones(batch.num_rows, dtype=bool)

    with engine.session() as session:
        found = session.filtered(sql, every, order=["x", "y"])
        expected = session.table(f"SELECT * FROM ({sql}) ORDER BY x, y")
    assert str(found.to_pylist()) == str(expected.to_pylist())
    assert found.schema == expected.schema


def test_public_values_are_listed_once_for_all_sessions(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["1", "01", None, "7", "1.0"]
    expected = [(1.0, 0), (7.0, 3), (None, 2)]
    with engine.session() as one, engine.session() as two:
        first = one.listed("q__d0", texts, "DOUBLE")
        assert two.listed("q__d5", texts, "DOUBLE") == first
        as_text = two.listed("q__d0", texts, "VARCHAR")
        others = two.listed("q__d0", texts[::-1], "DOUBLE")
        assert len({first, as_text, others}) == 3
        for session in (one, two):
            assert sorted(rows_of(session, first), key=lambda row: str(row[0])) == expected
            assert len(rows_of(session, as_text)) == 5
    with engine.session() as later:
        assert later.listed("q__d0", texts, "DOUBLE") == first
        assert len(rows_of(later, first)) == 3
        monkeypatch.setattr(engine._listings, "_room", 2)  # no more room: a session makes its own
        assert later.listed("q__d0", ["a", "b", "c"], "VARCHAR") == "temp.main.q__d0"
        assert rows_of(later, "temp.main.q__d0") == [("a", 0), ("b", 1), ("c", 2)]
        assert later.listed("q__d0", ["d", "b", "c"], "VARCHAR") == "temp.main.q__d0"
        assert rows_of(later, "temp.main.q__d0")[2] == ("d", 0)
        assert later.listed("q__d0", ["a", "b"], "VARCHAR") != "temp.main.q__d0"
        with pytest.raises(EngineError):
            later.listed("q__d1", ["a"], "NO_SUCH_TYPE")
    with engine.session() as session, pytest.raises(EngineError):
        session.table("SELECT * FROM temp.main.q__d0")


def test_public_texts_are_numbered_by_a_type_that_all_sessions_share(
    engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["b", "a", "", "A", "a ", "ä", "a\u0308", "x\0y", "it's", "NULL", "0"]
    others = ["B", " a", "x", "x\0", "it''s", "null", "00"]
    with engine.session() as one, engine.session() as two:
        name = one.codes(texts)
        assert name is not None
        assert two.codes(texts) == name != two.codes(texts[::-1])
        two.insert("asked", pa.table({"x": pa.array([*texts, *others, None])}))
        got = two.table(f"SELECT x, enum_code(TRY_CAST(x AS {name})) AS i FROM asked").to_pylist()
        want = {text: i for i, text in enumerate(texts)}
        assert [(row["x"], row["i"]) for row in got] == [(x, want.get(x)) for x in [*texts, *others, None]]
        monkeypatch.setattr(engine._listings, "_room", 2)
        assert one.codes(["c", "d", "e"]) is None
        assert one.codes(["c", "d"]) is not None
        assert one.codes(texts) == name
        monkeypatch.setattr(engine._listings, "_room", 1 << 20)
        assert one.codes([str(i) for i in range(1 << 13)]) is None


def rows_of(session: Session, relation: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in session.table(f"SELECT * FROM {relation}").to_pylist()), key=str)


def test_many_threads_list_the_same_values_at_once(engine: DuckDBEngine) -> None:
    names: list[str] = []

    def work(i: int) -> None:
        with engine.session() as session:
            for j in range(20):
                name = session.listed("q__d0", [f"{j} {k}" for k in range(50)], "VARCHAR")
                assert session.numbers(f"SELECT count(*) AS n FROM {name}")["n"].tolist() == [50], i
                names.append(name)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 160
    assert len(set(names)) == 20


def frames() -> dict[str, object]:
    table = visits()
    return {
        "arrow table": table,
        "arrow batch": table.to_batches()[0],
        "arrow reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "arrow data set": pads.dataset(table),
        "polars": pl.DataFrame(VISITS),
        "polars lazy": pl.DataFrame(VISITS).lazy(),
        "pandas": pd.DataFrame(VISITS).astype({"user_id": "Int64"}),
    }


@pytest.mark.parametrize("kind", frames())
def test_a_table_in_memory_is_read_as_it_is(engine: DuckDBEngine, kind: str) -> None:
    relation = engine.register("visits", frames()[kind])
    assert engine.schema(relation) == [("user_id", "BIGINT"), ("city", "VARCHAR"), ("spend", "DOUBLE")]
    assert rows(engine, relation) == EXPECTED
    assert rows(engine, relation) == EXPECTED  # a second time: nothing was used up


def test_parquet_is_read_by_path_pattern_and_directory(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = visits()
    parquet(tmp_path / "a.parquet", table.slice(0, 2))
    parquet(tmp_path / "b.parquet", table.slice(2))
    both = [
        engine.register("pattern", str(tmp_path / "*.parquet")),
        engine.register("directory", tmp_path),
        engine.register("brackets", str(tmp_path / "[ab].parquet")),
    ]
    single = engine.register("single", tmp_path / "a.parquet")
    for relation in both:
        assert rows(engine, relation) == EXPECTED
    assert engine.table(f"SELECT COUNT(*) AS n FROM {single}").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("place", [".", "*.parquet", "**/*.parquet"])
def test_a_file_is_read_once_however_it_is_linked_and_what_was_not_finished_is_not(
    engine: DuckDBEngine, tmp_path: Path, place: str
) -> None:
    """Where every row is a unit, a row that is read twice counts twice, with the noise for one."""
    path = parquet(tmp_path / "b.parquet")
    (tmp_path / "latest.parquet").symlink_to(path)
    (tmp_path / "a.parquet").hardlink_to(path)
    for folder in ("_temporary/0", ".backup"):
        (tmp_path / folder).mkdir(parents=True)
        parquet(tmp_path / folder / "part.parquet")
    assert files_of(tmp_path / place).paths == (str(tmp_path / "a.parquet"),)
    assert rows(engine, engine.register("visits", tmp_path / place)) == EXPECTED


def test_a_list_names_the_files_of_one_table_each_once(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Where every row is a unit, a row that is read twice counts twice, with the noise for one."""
    one, two = parquet(tmp_path / "one.parquet"), parquet(tmp_path / "two.parquet")
    (tmp_path / "link.parquet").symlink_to(one)
    source = [two, str(one), one, tmp_path / "*.parquet", tmp_path / "link.parquet"]
    assert files_of(source).paths == (str(tmp_path / "link.parquet"), str(two))
    assert files_of(tuple(reversed(source))) == files_of(source)
    first, last = csv(tmp_path / "a.csv", "x,y\n1,2\n"), csv(tmp_path / "b.csv", "x,y\n3,4\n")
    stored, written = engine.register("visits", source), engine.register("numbers", (last, first))
    assert len(rows(engine, stored)) == 2 * len(EXPECTED)
    assert rows(engine, written) == [(1, 2), (3, 4)]


def test_a_list_that_is_no_table_is_refused_with_the_file_that_is_wrong(engine: DuckDBEngine, tmp_path: Path) -> None:
    good = parquet(tmp_path / "good.parquet")
    (tmp_path / "torn.parquet").write_bytes(good.read_bytes()[:100])
    with pytest.raises(SourceError, match="an empty list names no file"):
        engine.register("t", [])
    with pytest.raises(SourceError, match=r"/god\.parquet does not exist \(did you mean 'good\.parquet'"):
        engine.register("t", [good, tmp_path / "god.parquet"])
    with pytest.raises(SourceError, match="files of several kinds"):
        engine.register("t", [good, csv(tmp_path / "a.csv", "user_id\n1\n")])
    for source in ([good, tmp_path / "torn.parquet"], tmp_path / "*.parquet", tmp_path):
        with pytest.raises(SourceError, match=r"/torn\.parquet cannot be read as Parquet"):
            engine.register("t", source)
    other = parquet(tmp_path / "other.parquet", pa.table({"a": [1]}))
    with pytest.raises(SourceError, match=r"other\.parquet has other columns .* of each table by themselves"):
        engine.register("t", [good, other])
    with pytest.raises(SourceError, match="several databases"):
        engine.register("t", [database(tmp_path / f"{name}.db", "CREATE TABLE t (a INT)") for name in "ab"], table="t")


def test_a_value_in_a_path_may_begin_with_anything(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "_day=1").mkdir()
    path = parquet(tmp_path / "_day=1" / "part.parquet")
    assert files_of(tmp_path).paths == files_of(tmp_path / "_day=1" / "*.parquet").paths == (str(path),)
    hidden = parquet(tmp_path / "_part.parquet")
    assert files_of(tmp_path / "_*.parquet").paths == (str(hidden),)  # it was asked for by name


@pytest.mark.parametrize(
    ("note", "place"),
    [
        ("_delta_log/00000000000000000000.json", "."),
        ("_delta_log/00000000000000000000.json", "*.parquet"),
        ("metadata/v1.metadata.json", "."),
        ("metadata/v1.metadata.json", "data/*.parquet"),
    ],
)
def test_a_directory_with_earlier_versions_of_its_rows_is_refused(tmp_path: Path, note: str, place: str) -> None:
    (tmp_path / "data").mkdir()
    for file in ("a.parquet", "data/b.parquet"):
        path = parquet(tmp_path / file)
    (tmp_path / note).parent.mkdir()
    (tmp_path / note).write_text("{}")
    with pytest.raises(SourceError, match="earlier versions"):
        files_of(tmp_path / place)
    assert files_of(path).paths == (str(path),)


def test_a_path_with_the_signs_of_patterns_is_first_of_all_a_path(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = parquet(tmp_path / "what's [new]?.parquet")
    assert rows(engine, engine.register("visits", path)) == EXPECTED


def test_a_relative_path_stays_the_same_file_when_the_process_moves(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "v.parquet")
    monkeypatch.chdir(tmp_path)
    relation = engine.register("visits", "v.parquet")
    monkeypatch.chdir("/")
    assert rows(engine, relation) == EXPECTED


def test_parquet_files_with_different_types_are_refused_before_any_value_is_cast(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    parquet(tmp_path / "a.parquet", pa.table({"x": [1]}))
    parquet(tmp_path / "b.parquet", pa.table({"x": ["secret"]}))
    with pytest.raises(SourceError, match=r"b\.parquet has other columns or types than a\.parquet") as caught:
        engine.register("t", str(tmp_path / "*.parquet"))
    assert "secret" not in str(caught.value)


def test_a_table_of_a_database_is_read_and_not_written(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = database(
        tmp_path / "shop.duckdb",
        'CREATE TABLE "Select" AS SELECT i AS "user id", i % 3 AS "from" FROM range(300000) t(i)',
        "CREATE SCHEMA old",
        "CREATE TABLE old.people (id INTEGER)",
        'CREATE VIEW totals AS SELECT COUNT(*) AS n FROM "Select"',
    )
    assert engine.tables(path) == ["Select", "old.people"]
    relation = engine.register("Select", path, table="select")
    people = engine.register("people", path, table="old.people")
    assert engine.schema(people) == [("id", "INTEGER")]
    assert engine.schema(relation) == [("user id", "BIGINT"), ("from", "BIGINT")]
    assert engine.table(f'SELECT SUM("user id")::BIGINT AS s FROM {relation}')["s"].to_pylist() == [44999850000]
    with pytest.raises(EngineError):
        engine.execute("CREATE TABLE source_0.main.other (a INTEGER)")


def test_texts_of_a_database_are_equal_only_if_they_are_the_same(engine: DuckDBEngine, tmp_path: Path) -> None:
    """With the table's own collation one group would be shown, as the first row happens to spell it."""
    path = database(
        tmp_path / "a.db",
        "CREATE TABLE t (id VARCHAR COLLATE NOCASE, city VARCHAR COLLATE NOACCENT, n INTEGER, plain VARCHAR)",
        "INSERT INTO t VALUES ('Ada', 'Zürich', 1, 'Ada'), ('ada', 'Zurich', 2, 'zurich')",
    )
    relation = engine.register("t", path, table="t")
    assert engine.schema(relation) == [("id", "VARCHAR"), ("city", "VARCHAR"), ("n", "INTEGER"), ("plain", "VARCHAR")]
    for column in ("id", "city", "lower(city)", "concat(id, 'x')"):
        found = engine.table(f"SELECT {column} AS k, COUNT(*) AS n FROM {relation} GROUP BY ALL")
        assert found["n"].to_pylist() == [1, 1]
    joined = f"SELECT COUNT(*) AS n FROM {relation} a JOIN {relation} b ON a.id = b.plain"
    assert engine.table(joined)["n"].to_pylist() == [1]


def test_a_generated_column_is_refused_unless_it_is_left_out(engine: DuckDBEngine, tmp_path: Path) -> None:
    """An UPDATE does not check it: the row of 17 would make every question fail that reaches it, and no other."""
    path = database(
        tmp_path / "a.db",
        "CREATE TABLE t (u INTEGER, x VARCHAR, n INTEGER GENERATED ALWAYS AS (CAST(x AS INTEGER)))",
        "INSERT INTO t (u, x) VALUES (16, '1'), (17, '2')",
        "UPDATE t SET x = 'secret' WHERE u = 17",
    )
    with pytest.raises(SourceError, match="computes the column 'n' of 't' while it is read") as caught:
        engine.register("t", path, table="t")
    assert "secret" not in str(caught.value)
    assert rows(engine, engine.register("t", path, table="t", leave_out=["N"])) == [(16, "1"), (17, "secret")]


def test_a_view_of_a_database_is_refused_since_its_rows_may_be_about_many(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = database(
        tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS a", "CREATE VIEW v AS SELECT SUM(a) OVER () FROM t"
    )
    with pytest.raises(SourceError, match="'v' as a view"):
        engine.register("v", path, table="v")
    with pytest.raises(SourceError, match="no table 'w'\\. There is only: t"):
        engine.register("w", path, table="w")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vists.parquet", "does not exist (did you mean 'visits.parquet'?)"),
        ("*.db.csv", "is a pattern that no file fits"),
        ("nothing/here.parquet", "does not exist"),
        ("empty", "is a directory without Parquet files"),
        ("notes.docx", "is of a kind that cannot be read"),
        ("torn.parquet", "cannot be read as Parquet"),
        ("zero.parquet", "cannot be read as Parquet"),
        ("zero.csv", "is empty"),
        ("latin.csv", "is not in UTF-8"),
        ("unnamed.csv", "has a column without a name"),
        ("torn.db", "cannot be opened as a DuckDB database"),
        ("visits*", "means files of several kinds"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(
    engine: DuckDBEngine, tmp_path: Path, name: str, words: str
) -> None:
    parquet(tmp_path / "visits.parquet")
    (tmp_path / "visits2.tsv").write_text("a\tb\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.docx").write_text("hello")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "visits.parquet").read_bytes()[:100])
    (tmp_path / "zero.parquet").touch()
    (tmp_path / "zero.csv").touch()
    (tmp_path / "latin.csv").write_bytes("größe,b\n".encode("latin-1"))
    (tmp_path / "unnamed.csv").write_text("a,,c\n")
    (tmp_path / "torn.db").write_text("no database")
    with pytest.raises(SourceError) as caught:
        engine.register("t", tmp_path / name, table="t" if name == "torn.db" else None)
    assert words in str(caught.value)


@pytest.mark.parametrize("source", [None, 5, ["a.parquet", 5], {"a": [1]}, b"a.parquet"])
def test_what_is_no_table_is_refused_by_its_type(engine: DuckDBEngine, source: object) -> None:
    with pytest.raises(
        SourceError, match=f"^(a|an object of type) {type(source).__name__}( of .*)? is nothing that can be read"
    ):
        engine.register("t", source)


@pytest.mark.parametrize("source", ["s3://bucket/visits.parquet", "https://example.org/visits.parquet"])
def test_nothing_is_read_over_a_network(engine: DuckDBEngine, source: str) -> None:
    with pytest.raises(SourceError, match="not on this machine"):
        engine.register("t", source)


def test_a_database_needs_a_table_and_a_file_takes_none(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", "CREATE TABLE t (a INTEGER)")
    with pytest.raises(SourceError, match="Say which table"):
        engine.register("t", path)
    with pytest.raises(SourceError, match="Leave out `table`"):
        engine.register("t", parquet(tmp_path / "a.parquet"), table="t")


# Names and types


@pytest.mark.parametrize("name", ["Select", "user id", 'a"b', "größe", "order", "a.b", "🦆", "it's", "a;--"])
def test_any_name_works_for_a_table_and_a_column(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    table = pa.table({name: [1, 2]})
    relations = [
        engine.register(name, table),
        engine.register(f"{name} 2", parquet(tmp_path / "a.parquet", table)),
        engine.register(f"{name} 3", parquet(tmp_path / "b.parquet", table), types={name: "VARCHAR"}),
        engine.register(f"{name} 4", table, types={name: "VARCHAR"}),
    ]
    for relation, kind in zip(relations, ["BIGINT", "BIGINT", "VARCHAR", "VARCHAR"], strict=True):
        assert engine.schema(relation) == [(name, kind)]
    assert len({repr(rows(engine, relation)) for relation in relations}) == 2


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_sql_cannot_have_is_refused(engine: DuckDBEngine, name: str) -> None:
    with pytest.raises(InvalidArgument, match="name"):
        engine.register(name, visits())


def test_a_common_table_expression_cannot_stand_in_for_a_relation(engine: DuckDBEngine, tmp_path: Path) -> None:
    for relation in (engine.register("a", visits()), engine.register("b", parquet(tmp_path / "b.parquet"))):
        sql = f"WITH a AS (SELECT 0 AS user_id), b AS (SELECT 0 AS user_id) SELECT COUNT(*) AS n FROM {relation}"
        assert engine.table(sql)["n"].to_pylist() == [4]


def test_columns_that_differ_by_case_alone_are_refused_in_every_kind_of_source(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    table = pa.table({"user_id": [1], "USER_ID": [2], "s": [{"a": 1, "A": 2}]})
    sources = [
        table,
        pd.DataFrame([[1, 2]], columns=["user_id", "USER_ID"]),
        pd.DataFrame([[1, 2]], columns=["user_id", "user_id"]),
        pl.DataFrame({"user_id": [1], "USER_ID": [2]}),
        parquet(tmp_path / "a.parquet", table.select([0, 1])),
        csv(tmp_path / "a.csv", "user_id,USER_ID\n1,2\n"),
    ]
    for source in sources:
        with pytest.raises(SourceError, match="which SQL cannot tell apart"):
            engine.register("t", source)


def test_values_in_paths_are_texts_whatever_other_paths_hold(engine: DuckDBEngine, tmp_path: Path) -> None:
    for name, values in (("numbers", ["17", "2"]), ("one more", ["17", "2", "x"])):
        for value in values:
            (tmp_path / name / f"id={value}").mkdir(parents=True)
            parquet(tmp_path / name / f"id={value}" / "a.parquet", pa.table({"x": [1]}))
        relation = engine.register(name, tmp_path / name)
        assert engine.schema(relation) == [("x", "BIGINT"), ("id", "VARCHAR")]
    cast = engine.register("cast", tmp_path / "one more", types={"id": "BIGINT"})
    assert sorted(rows(engine, cast), key=str) == [(1, 17), (1, 2), (1, None)]


def test_times_with_a_zone_are_in_utc_wherever_the_machine_is() -> None:
    program = """
import pyarrow as pa
from discreet.engines import DuckDBEngine, Sandbox
times = pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))})
asked = "SELECT strftime(CAST(t AS TIMESTAMP), '%H') AS h, current_setting('TimeZone') AS z FROM "
with DuckDBEngine() as engine, Sandbox() as sandbox:
    found = engine.table(asked + engine.register("times", times))
    print(found.to_pylist(), sandbox.run(asked + "t", {"t": times}).to_pylist())
"""
    for zone in ("Asia/Tokyo", "America/New_York"):
        run = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=True
        )
        expected = [{"h": "00", "z": "UTC"}]
        assert run.stdout.strip() == f"{expected} {expected}"


def test_nested_fields_may_share_the_names_of_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = pa.table({"a": [1], "s": [{"a": 1, "b": {"a": 2, "c": [3]}}], "b": [2], "l": [[{"a": 1}]], "c": [1]})
    relation = engine.register("t", parquet(tmp_path / "a.parquet", table))
    assert [name for name, _ in engine.schema(relation)] == ["a", "s", "b", "l", "c"]


def test_two_tables_cannot_share_a_name(engine: DuckDBEngine) -> None:
    engine.register("visits", visits())
    with pytest.raises(InvalidArgument, match="there is a table of this name"):
        engine.register("Visits", visits())


def test_no_table_has_the_name_under_which_another_one_is_stored(engine: DuckDBEngine) -> None:
    """One that had was read in its place, rows of people as rows of a public table."""
    other, people = pa.table({"x": ["public"]}), pa.table({"x": ["7"]})
    first = engine.register("people (stored)", other)
    cast = engine.register("people", people, types={"x": "BIGINT"})
    assert rows(engine, cast) == [(7,)]
    assert rows(engine, first) == [("public",)]
    with DuckDBEngine() as another, pytest.raises(InvalidArgument, match="the engine's own"):
        another.register("Q__stored people", other)


@pytest.mark.parametrize("quoted", [True, False])
def test_how_a_csv_row_is_read_does_not_depend_on_what_stands_before_it(tmp_path: Path, quoted: bool) -> None:
    """Threads that begin in the middle of a file take the end of a line in a quoted cell for that of a row."""
    cells = ('"a\n77,zz,""q\n88,yy,w"', '"x, y\n99,tt,u\n99,tt,u"', '"\n""\n1,2,3\n"', "p" * 60)
    cells = cells if quoted else ("a\r", "b" * 60, "c,d", "")
    people = "".join(f"{u},{cells[u % 4]}\n" for u in range(600_000))
    found = set()
    for before in (0, 5000, 77_777):
        path = csv(tmp_path / f"{before}.csv", f"u,c\n-1,{'y' * before}\n{people}")
        with DuckDBEngine(threads=4) as engine:
            relation = engine.register("t", path, types={"u": "BIGINT", "c": "VARCHAR"})
            rows = engine.numpy(f"SELECT COUNT(*) AS n, SUM(u) AS u, SUM(hash(c)) AS c FROM {relation} WHERE u >= 0")
            found.add(str(rows))
    assert len(found) == 1


def test_a_csv_is_read_by_one_thread(tmp_path: Path) -> None:
    """Several begin in the middle, and split lines in other ways as one is longer: the slow test shows some of them."""
    path = csv(tmp_path / "t.csv", "u,c\n1,a\n")
    sql, _ = csv_rows([str(path)], (",", ["u", "c"]), types={"u": "BIGINT", "c": "VARCHAR"}, run=lambda _: [])
    assert "parallel=false" in sql


@pytest.mark.slow
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_how_a_line_is_read_does_not_depend_on_what_stands_before_it(tmp_path: Path, end: str) -> None:
    """A thread that began between two characters of an end, or at an empty or a short line, read a row more."""
    lines = [f"{u},abcd{end * (1 + (u % 5 == 0))}" if u % 11 else f"{u}{end}" for u in range(10**6, 10**6 + 60_000)]
    people = "".join(lines) * 80
    found = set()
    for before in range(1, 16, 3):
        path = tmp_path / "t.csv"
        path.write_bytes(f"u,c{end}-1,{'y' * before}{end}{people}".encode())
        with DuckDBEngine(threads=4) as engine:
            relation = engine.register("t", path, types={"u": "BIGINT", "c": "VARCHAR"})
            rows = engine.numpy(f"SELECT COUNT(*) AS n, SUM(u) AS u, SUM(hash(c)) AS c FROM {relation} WHERE u >= 0")
            found.add(str(rows))
    assert len(found) == 1


@pytest.mark.parametrize("kind", ["parquet", "arrow", "database", "csv"])
def test_a_declared_type_is_cast_to_and_what_does_not_convert_is_null(
    engine: DuckDBEngine, tmp_path: Path, kind: str
) -> None:
    table = pa.table({"day": ["2024-01-31", "2024-02-31", None, "x"], "n": ["1", "9999999999999999999", "-5", "two"]})
    sources = {
        "parquet": lambda: parquet(tmp_path / "a.parquet", table),
        "arrow": lambda: table,
        "csv": lambda: csv(tmp_path / "a.csv", "day,n\n2024-01-31,1\n2024-02-31,9999999999999999999\n,-5\nx,two\n"),
        "database": lambda: database(
            tmp_path / "a.db",
            "CREATE TABLE t (day VARCHAR, n VARCHAR)",
            "INSERT INTO t VALUES ('2024-01-31','1'),('2024-02-31','9999999999999999999'),(NULL,'-5'),('x','two')",
        ),
    }
    name = "t" if kind == "database" else None
    relation = engine.register("t", sources[kind](), table=name, types={"DAY": "date", "n": "int"})
    assert engine.schema(relation) == [("day", "DATE"), ("n", "INTEGER")]
    sql = f"SELECT COUNT(*) AS rows, COUNT(day) AS days, COUNT(n) AS n, SUM(n)::BIGINT AS s FROM {relation}"
    assert engine.table(sql).to_pylist() == [{"rows": 4, "days": 1, "n": 2, "s": -4}]


@pytest.mark.parametrize("kind", ["INT); DROP TABLE x", "ENUM('a')", "STRUCT(a INT)", "INTEGR", "", "INT[]"])
def test_only_types_of_single_values_can_be_declared(engine: DuckDBEngine, kind: str) -> None:
    with pytest.raises(InvalidArgument, match="type of city"):
        engine.register("t", visits(), types={"city": kind})


def test_a_declared_column_that_does_not_exist_is_refused(engine: DuckDBEngine) -> None:
    with pytest.raises(SourceError, match="no column 'town'\\. There are: user_id, city, spend"):
        engine.register("t", visits(), types={"town": "VARCHAR"})


def test_the_labels_of_a_category_are_values_and_no_part_of_the_schema(engine: DuckDBEngine, tmp_path: Path) -> None:
    labels = ["secret-a", "secret-b"]
    path = database(
        tmp_path / "a.db", "CREATE TYPE e AS ENUM ('secret-a')", "CREATE TABLE t AS SELECT 'secret-a'::e AS c"
    )
    for position, source in enumerate(
        [
            pd.DataFrame({"c": pd.Categorical(labels)}),
            pl.DataFrame({"c": labels}, schema={"c": pl.Categorical}),
            pl.DataFrame({"c": labels}, schema={"c": pl.Enum(labels)}),
            pa.table({"c": pa.array(labels).dictionary_encode()}),
            path,
        ]
    ):
        relation = engine.register(f"t{position}", source, table="t" if source is path else None)
        assert engine.schema(relation) == [("c", "VARCHAR")]
        assert rows_before_sealing(engine, relation) == "secret-a"


def test_labels_are_hidden_inside_of_nested_types_too(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = database(
        tmp_path / "a.db",
        "CREATE TYPE e AS ENUM ('it''s, ''a'' (secret)', 'b')",
        "CREATE TABLE t AS SELECT ['b'::e] AS l, {'f': 'b'::e, 'g': 1} AS s, MAP {'k': 'b'::e} AS m",
    )
    relation = engine.register("t", path, table="t")
    assert "secret" not in str(engine.schema(relation))
    assert engine.table(f"SELECT l[1] AS l, s.f AS f FROM {relation}").to_pylist() == [{"l": "b", "f": "b"}]


def rows_before_sealing(engine: DuckDBEngine, relation: str) -> str:
    return str(engine._run(f"SELECT MIN(c) FROM {relation}")[0][0])


@pytest.mark.parametrize(
    "value",
    ["NaT", "<NA>", b"abc", b"\xff", bytearray(b"q"), None, math.nan, pd.NA, pd.NaT, Decimal("NaN"), "\ud800x", 1.5],
)
def test_a_row_of_a_pandas_column_reads_the_same_whatever_the_other_rows_hold(value: object) -> None:
    """One person's number among texts once turned what is no text, or reads like nothing, of all others."""
    alone, beside = pd.Series([None, "a"], dtype=object), pd.Series([None, "a", 5], dtype=object)
    alone.iat[0] = beside.iat[0] = value
    found = [frame_of(pd.DataFrame({"x": column}))["x"].to_pylist()[:2] for column in (alone, beside)]
    assert found[0] == found[1]


def test_a_pandas_column_of_objects_is_text_whatever_its_values_are(engine: DuckDBEngine) -> None:
    numbers = pd.DataFrame({"a": pd.Series([1, 2], dtype=object)})
    mixed = pd.DataFrame({"a": pd.Series([1, "x", b"y", None, float("nan"), [1], "\ud800", pd.NaT], dtype=object)})
    first, second = engine.register("numbers", numbers), engine.register("mixed", mixed)
    assert engine.schema(first) == engine.schema(second) == [("a", "VARCHAR")]
    assert rows(engine, first) == [("1",), ("2",)]
    assert rows(engine, second).count((None,)) == 3
    assert len(rows(engine, second)) == 8


@pytest.mark.parametrize("other", ["x", b"x", 1.5, Decimal("1.555"), 10**30, dt.date(2020, 1, 1), None])
@pytest.mark.parametrize("usual", [1, 1.5, "1", True, Decimal("1.5"), dt.date(2020, 1, 1)])
def test_pandas_categories_are_text_whatever_one_of_them_is(engine: DuckDBEngine, usual: object, other: object) -> None:
    """SUM was refused, at no cost, if one person's label was no number, and answered if nobody had one."""
    alone, beside = pd.Series([usual, usual], dtype=object), pd.Series([usual, usual, other], dtype=object)
    relations = [
        engine.register(name, pd.DataFrame({"a": column.astype("category")}))
        for name, column in (("alone", alone), ("beside", beside))
    ]
    for relation in relations:
        assert engine.schema(relation) == [("a", "VARCHAR")]
        assert rows(engine, relation).count((str(usual),)) >= 2


def test_pandas_columns_of_unusual_types_can_be_read(engine: DuckDBEngine) -> None:
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2024-01-01", None]),
            "zoned": pd.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("Europe/Berlin"),
            "flag": pd.array([True, None], dtype="boolean"),
            "small": np.array([1, 2], dtype=np.uint8),
            "complex": [1 + 2j, 2],
            5: [np.inf, np.nan],
        }
    )
    relation = engine.register("t", frame)
    kinds = dict(engine.schema(relation))
    assert kinds["zoned"] == "TIMESTAMP WITH TIME ZONE"
    assert (kinds["flag"], kinds["small"], kinds["5"]) == ("BOOLEAN", "UTINYINT", "DOUBLE")
    assert kinds["complex"] == "VARCHAR"
    assert engine.table(f'SELECT COUNT("5") AS n, COUNT("when") AS w FROM {relation}').to_pylist() == [{"n": 1, "w": 1}]


# Dates and times


def raw(kind: pa.DataType, value: int) -> pa.Table:
    """A table of one value with exactly these bits, and one that is in order."""
    width = np.int64 if kind.bit_width == 64 else np.int32
    array = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(np.array([value, 1], dtype=width))])
    return pa.table({"c": array})


EXTREMES = [2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1]
KINDS = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    pa.duration("s"),
    pa.duration("us"),
]
QUESTIONS = [
    "SELECT COUNT(*) AS n, COUNT(c) AS c FROM {0}",
    "SELECT c, COUNT(*) AS n FROM {0} GROUP BY c",
    "SELECT MIN(c) AS low, MAX(c) AS high FROM {0}",
    "SELECT CAST(c AS VARCHAR) AS c FROM {0}",
    "SELECT COUNT(*) AS n FROM {0} WHERE c IS NOT NULL",
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_no_timestamp_in_memory_can_stop_a_question(engine: DuckDBEngine, kind: pa.DataType) -> None:
    relations = []
    for value in EXTREMES:
        relations.append(engine.register(f"table {value}", raw(kind, value)))
        relations.append(engine.register(f"data set {value}", pads.dataset(raw(kind, value))))
    with engine.session() as session:
        for relation in relations:
            for question in QUESTIONS:
                assert session.numpy(question.format(relation))
            assert session.numpy(QUESTIONS[0].format(relation))["n"].tolist() == [2]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_with_a_zone_is_read_in_microseconds_whatever_it_is_stored_in(
    engine: DuckDBEngine, tmp_path: Path, unit: str
) -> None:
    times = pa.table({"c": pa.array([dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)], pa.timestamp(unit, "UTC"))})
    for name, source in (("memory", times), ("file", parquet(tmp_path / "a.parquet", times))):
        relation = engine.register(name, source)
        assert engine.schema(relation) == [("c", "TIMESTAMP WITH TIME ZONE")]


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("ms"), *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC"))],
    ids=str,
)
def test_no_timestamp_in_a_file_can_stop_a_question(engine: DuckDBEngine, tmp_path: Path, kind: pa.DataType) -> None:
    relations = []
    for position, value in enumerate(EXTREMES):
        path = parquet(tmp_path / f"{position}.parquet", raw(kind, value))
        if kind == pa.timestamp("ms") and abs(value) != 2**63 - 1:  # DuckDB cannot scan it: the owner is told
            with pytest.raises(SourceError, match="the column 'c' that cannot be converted"):
                engine.register(f"t{position}", path)
        else:
            relations.append(engine.register(f"t{position}", path))
    with engine.session() as session:
        for relation in relations:
            for question in QUESTIONS:
                assert session.numpy(question.format(relation))


def test_dates_outside_of_the_calendar_are_null(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = database(
        tmp_path / "a.db",
        "CREATE TABLE t (d DATE, t TIMESTAMP, z TIMESTAMPTZ, s VARCHAR)",
        "INSERT INTO t VALUES ('infinity', '-infinity', 'infinity', '5881580-07-10'), "
        "('10000-01-01', '10000-01-01', '10000-01-02 00:00:00+00', '0044-03-15 (BC)'), "
        "('9999-12-31', '0001-01-01', '2024-01-01 00:00:00+00', '2024-01-01'), (NULL, NULL, NULL, NULL)",
    )
    relation = engine.register("t", path, table="t", types={"s": "DATE"})
    assert [kind for _, kind in engine.schema(relation)] == ["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DATE"]
    found = engine.table(
        f"SELECT COUNT(*) AS n, COUNT(d) AS d, COUNT(t) AS t, COUNT(z) AS z, COUNT(s) AS s FROM {relation}"
    )
    assert found.to_pylist() == [{"n": 4, "d": 1, "t": 1, "z": 1, "s": 1}]
    assert engine.numpy(f"SELECT MAX(d) AS d FROM {relation}")["d"].tolist() == [dt.date(9999, 12, 31)]


def test_a_file_with_a_time_that_no_clock_shows_is_refused_unless_it_is_left_out(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    path = parquet(tmp_path / "a.parquet", raw(pa.time32("ms"), 2**31 - 1).append_column("u", pa.array([1, 2])))
    with pytest.raises(SourceError, match="the column 'c' that cannot be converted") as caught:
        engine.register("t", path)
    assert "2147483647" not in str(caught.value)
    assert rows(engine, engine.register("t", path, leave_out=["C"])) == [(1,), (2,)]


def test_an_arrow_table_with_bytes_that_are_no_text_is_refused(engine: DuckDBEngine) -> None:
    ends = pa.py_buffer(np.array([0, 2], dtype=np.int32))
    table = pa.table({"c": pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(b"\xff\xfe")])})
    with pytest.raises(SourceError, match="bytes that its types do not allow"):
        engine.register("t", table)


def test_a_time_that_cannot_be_converted_is_found_in_every_file(engine: DuckDBEngine, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", raw(pa.timestamp("us"), 77))
    parquet(tmp_path / "b.parquet", raw(pa.timestamp("ms"), 2**62))  # the same type in another unit
    with pytest.raises(SourceError, match="the column 'c' that cannot be converted"):
        engine.register("t", tmp_path / "*.parquet")


def no_text() -> pa.Array:
    """Texts, some of which are not UTF-8; Arrow writes them as they are."""
    return pa.array([b"ok", b"\xff\xfe", b"b\xc3", None], pa.binary()).view(pa.string())


@pytest.mark.parametrize("made", ["plain", "dictionary", "list", "struct"])
def test_texts_in_a_file_that_are_not_utf8_cannot_stop_a_question(
    engine: DuckDBEngine, tmp_path: Path, made: str
) -> None:
    columns = {
        "plain": no_text(),
        "dictionary": no_text().dictionary_encode(),
        "list": pa.ListArray.from_arrays(range(5), no_text()),
        "struct": pa.StructArray.from_arrays([no_text()], ["a"]),
    }
    relation = engine.register("t", parquet(tmp_path / "a.parquet", pa.table({"c": columns[made]})))
    with engine.session() as session:
        for question in (*QUESTIONS[:2], "SELECT c, COUNT(*) AS n FROM {0} GROUP BY c", "SELECT MAX(c) AS c FROM {0}"):
            assert session.numpy(question.format(relation))
        if made == "plain":
            read = session.table(f"SELECT c FROM {relation} ORDER BY c NULLS LAST")["c"].to_pylist()
            assert read == ["??", "b?", "ok", None]  # each by itself


@pytest.mark.parametrize("other", ["a", "!", "?", "~"])
def test_what_a_question_does_with_bytes_that_are_no_text_does_not_depend_on_other_rows(
    engine: DuckDBEngine, tmp_path: Path, other: str
) -> None:
    """The range in the file is that of the bytes, below which the question marks in their place may lie."""
    content = pa.array([b"\xff\xfe"] * 50 + [b"b"] * 50 + [other.encode()], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(content), content.buffers())
    path = parquet(tmp_path / "a.parquet", pa.table({"c": texts, "plain": ["x"] * len(texts)}))
    relation = engine.register("t", path)
    judge = engine.register("judge", pa.table({"c": ["??"] * 50 + ["b"] * 50 + [other]}))
    wheres = ("c = '??'", "c < 'a'", "c LIKE '??'", "c IN ('??', 'b')", "c BETWEEN '?' AND '@'", "c > 'z'")
    with engine.session() as session:
        for where in wheres:
            asked = f"SELECT count(*) AS n FROM {{0}} WHERE {where}"
            aggregated = f"SELECT count_if({where}) AS n, min(c) AS c FROM {{0}}"
            for question in (asked, aggregated):
                found, expected = (session.table(question.format(name)).to_pylist() for name in (relation, judge))
                assert found == expected, question


def test_a_column_of_texts_that_are_utf8_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path / "a.parquet", pa.table({"good": ["é", "b", None, "ok"], "bad": no_text()}))
    run = lambda sql: guarded(lambda: duckdb.execute(sql).fetchall())
    rows = parquet_rows([str(path)], leave_out=(), run=run)
    assert 'concat(TRY(CAST("bad"' in rows
    assert '"good"' not in rows
    assert "REPLACE" not in parquet_rows([str(path)], leave_out=("bad",), run=run)
    monkeypatch.setattr("discreet.engines.parquet._LOOKED_THROUGH", 7)  # too many to look through
    assert 'concat(TRY(CAST("good"' in parquet_rows([str(path)], leave_out=(), run=run)


def aged(path: Path, texts: list[str]) -> Path:
    """The range of a column of texts as programs stated it before 2018: in the fields of then, as signed bytes."""
    plain = [f"{chr(len(text.encode()))}".encode() + text.encode() for text in (max(texts), min(texts))]
    signed = sorted((text.encode() for text in texts), key=lambda text: [(byte + 128) % 256 for byte in text])
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    stated = b"\x36\x00\x28" + plain[0] + b"\x18" + plain[1] + b"\x11\x11\x00"
    footer = content[-8 - size : -8]
    assert footer.count(stated) == 1
    ends = [bytes([len(text)]) + text for text in (signed[-1], signed[0])]
    footer = footer.replace(stated, b"\x18" + ends[0] + b"\x18" + ends[1] + b"\x16\x00\x00")
    path.write_bytes(content[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize("other", ["zz", "a", "ü"])
def test_what_a_question_does_with_a_text_is_not_decided_by_a_range_in_an_old_order(
    engine: DuckDBEngine, tmp_path: Path, other: str
) -> None:
    texts = ["é"] * 50 + ["b"] * 50 + [other]
    path = aged(parquet(tmp_path / "a.parquet", pa.table({"c": texts})), texts)
    relation, judge = engine.register("t", path), engine.register("judge", pa.table({"c": texts}))
    with engine.session() as session:
        for where in ("c = 'é'", "c = 'b'", "c < 'z'", "c > 'z'", "c >= 'b'", "c IN ('b', 'q')"):
            for asked in (
                f"SELECT count(*) AS n FROM {{0}} WHERE {where}",
                f"SELECT count_if({where}) AS n FROM {{0}}",
            ):
                found, expected = (session.table(asked.format(name)).to_pylist() for name in (relation, judge))
                assert found == expected, asked


@pytest.mark.parametrize("kind", ["VARCHAR", "DECIMAL(20,2)", "UUID", "UINTEGER", "UBIGINT", "TIMESTAMP"])
def test_a_column_whose_range_is_not_believed_has_the_same_values(kind: str) -> None:
    given = {"VARCHAR": "chr(233) || x", "UUID": "md5(x)", "TIMESTAMP": "make_timestamp(CAST(x AS BIGINT) * 1234567)"}
    sql = f"SELECT CAST({given.get(kind, 'x')} AS {kind}) AS c FROM (SELECT CAST(i AS VARCHAR) AS x FROM range(9) t(i))"
    sql = f"({sql} UNION ALL SELECT NULL)"
    read = f"(SELECT {_without_range('c', kind)} AS c FROM {sql})"
    assert duckdb.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()[0][1] == kind
    assert (
        duckdb.execute(f"SELECT c FROM {read} ORDER BY c").fetchall()
        == duckdb.execute(f"SELECT c FROM {sql} ORDER BY c").fetchall()
    )


def test_dates_are_read_as_they_are_where_a_calendar_has_them_all(engine: DuckDBEngine, tmp_path: Path) -> None:
    known, strange = dt.date(2024, 1, 31), 5_000_000  # a day in the year 15 659
    days = {
        "plain": pa.array([known, None, known]),
        "ends": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        "none": pa.array([None, None], pa.date32()),
        "strange": pa.array([1, strange, None], pa.int32()).view(pa.date32()),
    }
    for stated in (True, False):
        for name, column in days.items():
            path = tmp_path / f"{name} {stated}.parquet"
            pq.write_table(pa.table({"d": column}), path, write_statistics=stated, row_group_size=1)
            engine.register(f"{name} {stated}", path)
            engine.register(f"{name} {stated} cast", path, types={"d": "TIMESTAMP"})
    views = dict(engine._run("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"))
    for stated in (True, False):
        for name in days:
            assert ("CASE" in views[f"{name} {stated}"]) == (name == "strange")
        read = rows(engine, f'main."strange {stated}"')
        assert sorted(map(str, read)) == sorted(["(datetime.date(1970, 1, 2),)", "(None,)", "(None,)"])
        again = rows(engine, f'main."strange {stated} cast"')
        assert sorted(map(str, again)) == sorted(["(datetime.datetime(1970, 1, 2, 0, 0),)", "(None,)", "(None,)"])


def test_texts_in_a_data_set_that_are_not_utf8_are_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", pa.table({"u": [1, 2, 3, 4], "c": no_text()}))
    with pytest.raises(SourceError, match="values that its types do not allow"):
        engine.register("t", pads.dataset(path))
    gone = pads.dataset(path)
    path.unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        engine.register("t", gone)


ABOUT_NAN = (
    "count_if(x > 10)",
    "count_if(x BETWEEN 0 AND 1000)",
    "count_if(x <= 'inf'::DOUBLE)",
    "count_if(isnan(x))",
    "count(NULLIF(x, 'NaN'::DOUBLE))",
    "count(*) FILTER (x > 10)",
    "count_if(CASE WHEN x < 7 THEN false WHEN x <= 'inf'::DOUBLE THEN false ELSE true END)",
    "count_if(greatest(x, 1) > 1000)",
    "isnan(max(x))",
    "isnan(sum(x))",
)
WHERE_NAN = (
    "x > 10",
    "x = 'NaN'::DOUBLE",
    "isnan(x)",
    "NOT x <= 100",
    "x BETWEEN 0 AND 100",
    "x IN (1, 'NaN'::DOUBLE)",
)


@pytest.mark.parametrize("kind", ["one row group", "many row groups", "several files", "data set", "database", "cast"])
@pytest.mark.parametrize("single", [False, True], ids=["double", "float"])
@pytest.mark.parametrize("largest", [5.0, 11.0, 1001.0, math.inf, None])
def test_what_a_question_does_with_nan_does_not_depend_on_other_rows(
    engine: DuckDBEngine, tmp_path: Path, largest: float | None, single: bool, kind: str
) -> None:
    # pyarrow, as most, leaves NaN out of the range of a column, and DuckDB believes the range
    values = [*[3.0, math.nan, math.nan] * 50, None, *([] if largest is None else [largest])]
    table = pa.table({"x": pa.array(values, pa.float32() if single else pa.float64()), "u": range(len(values))})
    source: object = parquet(tmp_path / "a.parquet", table)
    if kind == "many row groups":
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=40)
    elif kind == "several files":
        parquet(tmp_path / "b.parquet", table)
        source = str(tmp_path / "*.parquet")
        table = pa.concat_tables([table, table])
    elif kind == "data set":
        source = pads.dataset(source)
    made = f"CREATE TABLE t AS SELECT * FROM '{tmp_path}/a.parquet'"
    types = {"x": "DOUBLE"} if kind == "cast" else None
    if kind == "database":
        relation = engine.register("t", database(tmp_path / "d.duckdb", made), table="t")
    else:
        relation = engine.register("t", source, types=types)
    judge = engine.register("judge", table)
    asked = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(ABOUT_NAN))
    with engine.session() as session:
        for question in (f"SELECT {asked} FROM {{0}}", *(f"SELECT count(*) FROM {{0}} WHERE {w}" for w in WHERE_NAN)):
            found, expected = (session.table(question.format(name)).to_pylist() for name in (relation, judge))
            assert found == expected, question


@pytest.mark.skipif(
    "bloom_filter_options" not in inspect.signature(pq.ParquetWriter.__init__).parameters,
    reason="this pyarrow writes no Bloom filters",
)
@pytest.mark.parametrize("others", [10, 1000])
def test_which_short_floats_are_found_does_not_depend_on_other_rows(
    engine: DuckDBEngine, tmp_path: Path, others: int
) -> None:
    # DuckDB looks for 32 bits in a Bloom filter of 16: none of the hundred rows was found beside ten others, and all
    # of them beside a thousand, which set all bits of the filter
    values = np.array([5.0] * 100 + [7 + i / 8 for i in range(others)], dtype=np.float16)
    table = pa.table({"x": pa.array(values), "u": range(len(values))})
    few = {"x": {"ndv": 1, "fpp": 0.5}}
    pq.write_table(table, tmp_path / "a.parquet", bloom_filter_options=few)
    relation = engine.register("t", tmp_path / "a.parquet")
    for condition in ("x = 5", "x IN (5, 6)", "x IS NOT DISTINCT FROM 5", "x BETWEEN 5 AND 5"):
        found = engine.numpy(f"SELECT count(*) AS n FROM {relation} WHERE {condition}")
        assert found["n"].tolist() == [100], condition


def test_a_column_without_nan_is_read_as_it_is(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"x": [1.0, math.inf, None], "y": [math.nan, 2.0, None], "z": pa.nulls(3, pa.float64())})
    path = parquet(tmp_path / "a.parquet", table)
    run = lambda sql: duckdb.execute(sql).fetchall()
    rows = parquet_rows([str(path)], leave_out=(), run=run)
    assert '"y" + 1' in rows
    assert '"x"' not in rows
    assert '"z"' not in rows
    assert "REPLACE" not in parquet_rows([str(path)], leave_out=("y",), run=run)
    assert "REPLACE" not in parquet_rows([str(parquet(tmp_path / "e.parquet", table[:0]))], leave_out=(), run=run)
    monkeypatch.setattr("discreet.engines.parquet._LOOKED_THROUGH", 8)  # too many to look through
    assert all(f'"{name}" + 1' in parquet_rows([str(path)], leave_out=(), run=run) for name in "xyz")


@pytest.mark.parametrize("kind", ["uuid", "json", "bool8"])
@pytest.mark.parametrize("layout", ["file", "directories"])
def test_a_data_set_with_extension_types_is_scanned_whatever_rows_a_condition_leaves(
    engine: DuckDBEngine, tmp_path: Path, kind: str, layout: str
) -> None:
    """COUNT(DISTINCT x) of rows with n > 8 failed if somebody was above 8, and was answered if nobody was."""
    stored = {
        "uuid": (pa.uuid, pa.array([bytes([i]) * 16 for i in range(20)], pa.binary(16))),
        "json": (pa.json_, pa.array([f"{i}" for i in range(20)])),
        "bool8": (pa.bool8, pa.array([i % 2 for i in range(20)], pa.int8())),
    }
    made, cells = stored[kind]
    table = pa.table(
        {"x": pa.ExtensionArray.from_storage(made(), cells), "n": [i % 10 for i in range(20)], "p": [1] * 20}
    )
    if layout == "file":
        source = pads.dataset(parquet(tmp_path / "a.parquet", table))
    else:
        pads.write_dataset(table, tmp_path / "d", format="parquet", partitioning=["p"], partitioning_flavor="hive")
        source = pads.dataset(tmp_path / "d", partitioning="hive")
    relation = engine.register("t", source)
    for least, left in ((7, 4), (8, 2), (9, 0)):
        for condition in ("x IS NOT NULL", "n < 100", "p = 1"):
            found = engine.numpy(f"SELECT count(x) AS n FROM {relation} WHERE n > {least} AND {condition}")
            assert found["n"].tolist() == [left]


def test_a_data_set_that_cannot_be_read_is_refused_without_a_value(engine: DuckDBEngine, tmp_path: Path) -> None:
    times = pa.array([0, 2**62 + 12345], type=pa.int64()).view(pa.timestamp("ms", "UTC"))
    stored = parquet(tmp_path / "a.parquet", pa.table({"x": times}))
    source = pads.dataset(stored, schema=pa.schema({"x": pa.timestamp("s", "UTC")}))
    with pytest.raises(SourceError) as caught:
        engine.register("t", source)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize("secret", [5, 2**40])
@pytest.mark.parametrize("made", ["csv", "json", "another type", "filter"])
def test_a_data_set_whose_scan_fails_on_a_value_is_refused(
    engine: DuckDBEngine, tmp_path: Path, made: str, secret: int
) -> None:
    """A question would fail if the row of 17 is in it, and be answered if not."""
    path = tmp_path / f"a.{made}"
    large = 200_000  # rows, so that types are guessed from others
    if made == "csv":
        cell = secret if secret < 10 else "secret"
        path.write_text("u,x\n" + "".join(f"{u},1\n" for u in range(large)) + f"17,{cell}\n")
        source = pads.dataset(path, format="csv")
    elif made == "json":
        cell = secret if secret < 10 else '"secret"'
        lines = "".join(f'{{"u": {u}, "x": 1}}\n' for u in range(large))
        path.write_text(f'{lines}{{"u": 17, "x": {cell}}}\n')
        source = pads.dataset(path, format="json")
    else:
        stored = parquet(path, pa.table({"u": [1, 17], "x": pa.array([1, secret], pa.int64())}))
        source = pads.dataset(stored)
        if made == "filter":
            source = source.filter(pc.divide_checked(pc.scalar(1), pc.field("x") - pc.scalar(2**40)) < 5)
        else:
            source = pads.dataset(stored, schema=pa.schema({"u": pa.int64(), "x": pa.int32()}))
    if secret == 5:
        relation = engine.register("t", source)
        assert engine.table(f"SELECT MAX(x) AS x FROM {relation}")["x"].to_pylist() == [5]
        return
    with pytest.raises(SourceError, match="values that its types do not allow") as caught:
        engine.register("t", source)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("nested", [False, True])
def test_a_file_with_json_that_is_none_is_refused_unless_it_is_left_out(
    engine: DuckDBEngine, tmp_path: Path, nested: bool
) -> None:
    texts = pa.array(['{"a": 1}', "{secret", None]).cast(pa.json_())
    column = pa.StructArray.from_arrays([texts], ["a"]) if nested else texts
    path = parquet(tmp_path / "a.parquet", pa.table({"u": [1, 2, 3], "c": column}))
    with pytest.raises(SourceError, match="the column 'c' that cannot be converted") as caught:
        engine.register("t", path)
    assert "secret" not in str(caught.value)
    assert rows(engine, engine.register("t", path, leave_out=["c"])) == [(1,), (2,), (3,)]


def test_a_file_with_json_that_is_not_utf8_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    content = pa.array([b'"\xff"', b'"a"'], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 2, content.buffers())
    path = parquet(tmp_path / "a.parquet", pa.table({"c": pa.ExtensionArray.from_storage(pa.json_(), texts)}))
    with pytest.raises(SourceError, match="the column 'c' that cannot be converted"):
        engine.register("t", path)


POINT = struct.pack("<BIdd", 1, 1, 5.0, 6.0)


@pytest.mark.parametrize("shape", [b"", b"garbage", POINT[:-1], struct.pack("<BII", 1, 7, 2**31 - 1)])
def test_a_file_with_a_shape_that_is_none_is_refused_unless_it_is_left_out(
    engine: DuckDBEngine, tmp_path: Path, shape: bytes
) -> None:
    """Questions that read the column failed where one row had it."""
    note = {"version": "1.0.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "geometry_types": []}}}
    for name, last in (("good", POINT), ("bad", shape)):
        table = pa.table({"id": [1, 2], "g": [POINT, last]}).replace_schema_metadata({"geo": json.dumps(note)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    good = engine.register("good", tmp_path / "good.parquet")
    with pytest.raises(SourceError, match="shape or JSON in the column 'g'"):
        engine.register("bad", tmp_path / "bad.parquet")
    bad = engine.register("bad", tmp_path / "bad.parquet", leave_out=["g"])
    assert dict(engine.schema(good))["g"].startswith("GEOMETRY")
    assert [engine.table(f"SELECT COUNT(*) AS n FROM {name}")["n"].to_pylist() for name in (good, bad)] == [[2], [2]]


@pytest.mark.parametrize("name", ["geoarrow.wkb", "arrow.opaque"])
def test_bytes_in_memory_are_read_as_bytes_whatever_others_may_read_in_them(engine: DuckDBEngine, name: str) -> None:
    meant = {"ARROW:extension:name": name, "ARROW:extension:metadata": '{"type_name":"bit","vendor_name":"DuckDB"}'}
    named = pa.field("g", pa.binary(), metadata=meant)
    table = pa.table([pa.array([1, 2]), pa.array([POINT, b""])], schema=pa.schema([pa.field("id", pa.int64()), named]))
    for i, source in enumerate((table, pads.dataset(table))):
        relation = engine.register(f"t{i}", source)
        assert dict(engine.schema(relation)) == {"id": "BIGINT", "g": "BLOB"}
    inside = pa.table([pa.array([[b""]], pa.list_(named))], names=["x"])
    with pytest.raises(SourceError, match=f"has values of type {name} inside of the column 'x'"):
        engine.register("inside", inside)


FAR = pa.array([0, 2**62, -(2**63)], type=pa.int64())


@pytest.mark.parametrize("kind", [pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC"), pa.duration("s")])
@pytest.mark.parametrize("shape", ["list", "struct", "dictionary", "runs"])
def test_a_time_that_the_engine_would_convert_inside_of_a_column_is_refused_by_its_type(
    engine: DuckDBEngine, kind: pa.DataType, shape: str
) -> None:
    """The scan of the column failed where one row had a time that does not fit."""
    times = FAR.view(kind)
    column = {
        "list": lambda: pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), times),
        "struct": lambda: pa.StructArray.from_arrays([times], names=["at"]),
        "dictionary": lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), times),
        "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), times),
    }[shape]()
    table = pa.table({"id": [1, 2, 3], "x": column})
    for source in (table, pads.dataset(table)):
        with pytest.raises(SourceError, match="inside of the column 'x'"):
            engine.register("t", source)


def test_times_inside_of_a_column_are_not_read_as_another_type(engine: DuckDBEngine, tmp_path: Path) -> None:
    times = pa.StructArray.from_arrays([FAR.view(pa.timestamp("us"))], names=["at"])
    pq.write_table(pa.table({"id": [1, 2, 3], "x": times}), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="has times inside of the column 'x'"):
        engine.register("t", tmp_path / "t.parquet", types={"x": "VARCHAR"})
    relation = engine.register("t", tmp_path / "t.parquet")
    assert engine.numpy(f"SELECT COUNT(x) AS n, COUNT(DISTINCT x) AS d FROM {relation}") == {"n": [3], "d": [3]}
    with pytest.raises(EngineError):  # what a question may not do: see the refusals of casts
        engine.table(f"SELECT COUNT(TRY_CAST(x AS VARCHAR)) FROM {relation}")


def test_a_number_of_any_length_that_does_not_fit_is_null(engine: DuckDBEngine, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "d.duckdb") as stored:
        stored.execute("CREATE TABLE t AS SELECT repeat('9', n)::BIGNUM AS x FROM (VALUES (2), (5000)) v(n)")
    relation = engine.register("t", tmp_path / "d.duckdb", table="t", types={"x": "BIGINT"})
    assert sorted(engine.table(f"SELECT x FROM {relation}")["x"].to_pylist(), key=str) == [99, None]


def test_a_time_inside_a_struct_that_cannot_be_converted_is_found(engine: DuckDBEngine, tmp_path: Path) -> None:
    column = raw(pa.timestamp("ms"), 2**62).column("c").combine_chunks()
    inside = pa.StructArray.from_arrays([column], ["a"])
    with pytest.raises(SourceError, match="the column 'c' that cannot be converted"):
        engine.register("t", parquet(tmp_path / "a.parquet", pa.table({"c": inside})))
    fine = pa.array([{"a": 77}, None, {"a": None}], pa.struct([("a", pa.timestamp("ms"))]))
    assert engine.register("t", parquet(tmp_path / "b.parquet", pa.table({"c": fine})))


@pytest.mark.parametrize("kind", [pa.decimal256(50, 2), pa.float16()], ids=str)
def test_a_type_that_duckdb_does_not_have_is_named(engine: DuckDBEngine, kind: pa.DataType) -> None:
    with pytest.raises(SourceError, match=rf"has a type among int64, {re.escape(str(kind))} that DuckDB cannot read"):
        engine.register("t", pa.table({"u": [1], "c": pa.nulls(1, kind)}))


# CSV


def test_the_types_of_a_csv_are_guessed_so_that_one_bad_cell_changes_nothing(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    lines = [f"{i},{i / 4},2024-01-{i % 28 + 1:02},2024-01-01 10:00:{i % 60:02},true,c{i}" for i in range(200)]
    header = "id,amount,day,at,member,city\n"
    good = engine.register("good", csv(tmp_path / "good.csv", header + "\n".join(lines) + "\n"))
    lines[7] = "seven,much,someday,sometime,perhaps,5"
    bad = engine.register("bad", csv(tmp_path / "bad.csv", header + "\n".join(lines) + "\n"))
    kinds = ["BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN", "VARCHAR"]
    assert [kind for _, kind in engine.schema(good)] == [kind for _, kind in engine.schema(bad)] == kinds
    sql = f"SELECT COUNT(*) AS n, COUNT(id) AS a, COUNT(amount) AS b, COUNT(day) AS c, COUNT(city) AS d FROM {bad}"
    assert engine.table(sql).to_pylist() == [{"n": 200, "a": 199, "b": 199, "c": 199, "d": 200}]


def test_a_bad_cell_far_behind_the_sample_is_null_and_no_error(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = "id\n" + "".join(f"{i}\n" for i in range(50_000)) + "secret\n"
    relation = engine.register("t", csv(tmp_path / "a.csv", text))
    assert engine.table(f"SELECT COUNT(*) AS n, COUNT(id) AS i FROM {relation}").to_pylist() == [
        {"n": 50_001, "i": 50_000}
    ]


def test_a_cast_in_a_query_never_costs_a_line_of_a_csv(engine: DuckDBEngine, tmp_path: Path) -> None:
    # DuckDB 2.0 moves TRY_CAST of a bare column into its CSV reader, which then leaves out lines that do not convert.
    relation = engine.register("t", csv(tmp_path / "a.csv", "a,b\n1,x\ny,2\n3,4\n"), types={"a": "INT", "b": "TEXT"})
    assert rows(engine, f"(SELECT a, TRY_CAST(b AS INT) AS b FROM {relation})") == [(1, None), (3, 4), (None, 2)]
    assert len(engine.table(f"SELECT TRY_CAST(b AS INT) AS b FROM {relation}")) == 3
    assert len(engine.table(f"SELECT a FROM {relation}")) == 3
    assert len(engine.table(f"SELECT b FROM {relation} WHERE TRY_CAST(b AS INT) IS NULL")) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", [(1, 2)]),
        ("a;b\r\n1;2\r\n", [(1, 2)]),
        ("a\tb\n1\t2", [(1, 2)]),
        ("a|b\n1|2", [(1, 2)]),
        ("\ufeffa,b\n1,2\n", [(1, 2)]),
        ("a,b\n1,2\r\n3,4\n", [(1, 2), (3, 4)]),
        ("a,b\n1\n3,4\n", [(3, 4)]),
        ("a,b\n", []),
        ('"a","b"\n"1","2"\n', [(1, 2)]),
        ("a,b\n1," + "9" * 3_000_000 + "\n3,4\n", [(3, 4)]),
    ],
    ids=["plain", "semicolon", "tab", "bar", "mark", "line ends", "short line", "header only", "quotes", "huge"],
)
def test_csv_dialects_and_broken_lines_are_read_without_an_error(
    engine: DuckDBEngine, tmp_path: Path, text: str, expected: list[tuple[int, int]]
) -> None:
    relation = engine.register("t", csv(tmp_path / "a.csv", text), types={"a": "BIGINT", "b": "BIGINT"})
    assert rows(engine, relation) == expected


def test_a_compressed_csv_is_read(engine: DuckDBEngine, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("a,b\n1,2\n")
    assert rows(engine, engine.register("t", tmp_path / "a.csv.gz")) == [(1, 2)]


def test_csv_files_with_different_headers_are_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", "a,b\n1,2\n")
    csv(tmp_path / "b.csv", "b,a\n1,2\n")
    with pytest.raises(SourceError, match=r"another header than a\.csv"):
        engine.register("t", str(tmp_path / "*.csv"))


# Results


def test_integers_of_128_bits_come_out_exactly(engine: DuckDBEngine) -> None:
    big = 2**63 - 1
    engine.register("t", pa.table({"x": pa.array([big, big, 7]), "k": ["a", "a", "b"]}))
    found = engine.numpy("SELECT k, SUM(x) AS s, -SUM(x) AS m, COUNT(*) AS n FROM temp.main.t GROUP BY k ORDER BY k")
    assert found["s"].tolist() == [2 * big, 7]
    assert found["m"].tolist() == [-2 * big, -7]
    assert [type(value) for value in found["s"]] == [int, int]
    assert found["n"].dtype == np.int64
    assert found["k"].tolist() == ["a", "b"]


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, 2**126, -(2**126)])
def test_the_edges_of_the_halves_are_exact(engine: DuckDBEngine, value: int) -> None:
    found = engine.numpy(f"SELECT ({value})::HUGEINT AS h")["h"]
    assert found.tolist() == [value]
    assert (found.dtype == np.int64) == (-(2**63) <= value < 2**63)


def test_a_column_with_null_has_none_in_it_and_never_nan(engine: DuckDBEngine) -> None:
    found = engine.numpy("SELECT * FROM (VALUES (1::HUGEINT, 1.5::DOUBLE, 'a'), (NULL, NULL, NULL)) t(i, x, s)")
    assert [column.tolist() for column in found.values()] == [[1, None], [1.5, None], ["a", None]]
    assert isinstance(found["i"][0], int)


def test_an_empty_result_has_its_columns(engine: DuckDBEngine) -> None:
    found = engine.numpy("SELECT 1::HUGEINT AS h, 'a' AS s, 1.5::DOUBLE AS x WHERE false")
    assert {name: len(column) for name, column in found.items()} == {"h": 0, "s": 0, "x": 0}


def test_columns_of_one_name_are_refused_where_one_would_be_lost(engine: DuckDBEngine) -> None:
    with engine.session() as session, pytest.raises(InvalidArgument, match="a name of its own"):
        session.numpy("SELECT 1 AS a, 2 AS a")


def test_sums_of_integers_do_not_depend_on_threads_or_the_order_of_rows(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    table = pa.table({"k": generator.integers(0, 50, 200_000), "x": generator.integers(-(2**40), 2**40, 200_000)})
    shuffled = table.take(generator.permutation(len(table)))
    parquet(tmp_path / "a.parquet", table)
    parquet(tmp_path / "b.parquet", shuffled)
    found = []
    for threads in (1, 3):
        for name in ("a", "b"):
            with DuckDBEngine(threads=threads) as engine:
                relation = engine.register("t", tmp_path / f"{name}.parquet")
                found.append(engine.numpy(f"SELECT k, SUM(x) AS s FROM {relation} GROUP BY k ORDER BY k"))
    for one in found[1:]:
        assert one["s"].tolist() == found[0]["s"].tolist()


# Sessions


def test_a_temporary_table_is_seen_by_its_session_alone_and_ends_with_it(engine: DuckDBEngine) -> None:
    engine.register("visits", visits())
    with engine.session() as one, engine.session() as other:
        one.execute("CREATE TEMP TABLE t AS SELECT * FROM temp.main.visits")
        assert one.table("SELECT COUNT(*) AS n FROM t")["n"].to_pylist() == [4]
        with pytest.raises(EngineError):
            other.table("SELECT * FROM t")
        other.execute("CREATE TEMP TABLE t AS SELECT 1 AS a")
        assert one.table("SELECT COUNT(*) AS n FROM t")["n"].to_pylist() == [4]
    with pytest.raises(EngineError):
        engine.table("SELECT * FROM t")


def test_threads_with_their_own_sessions_do_not_meet(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.register("frame", visits())
    engine.register("file", parquet(tmp_path / "a.parquet"))
    wrong: list[object] = []

    def work(number: int) -> None:
        for _ in range(10):
            with engine.session() as session:
                session.execute(f"CREATE TEMP TABLE mine AS SELECT {number} AS n FROM temp.main.frame, main.file")
                found = session.numpy("SELECT MIN(n) AS low, MAX(n) AS high, COUNT(*) AS n FROM mine")
                if [column[0] for column in found.values()] != [number, number, 16]:
                    wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_session_can_be_interrupted_from_another_thread(engine: DuckDBEngine) -> None:
    caught: list[EngineError] = []
    with engine.session() as session:

        def work() -> None:
            try:
                session.table("SELECT SUM(a.range * b.range) FROM range(10000000) a, range(10000000) b")
            except EngineError as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            session.interrupt()
            thread.join(0.05)
    assert caught[0].kind == "interrupt"


# What cannot be done


def test_a_sealed_engine_reads_its_sources_and_nothing_else(engine: DuckDBEngine, tmp_path: Path) -> None:
    own = parquet(tmp_path / "own.parquet")
    other = parquet(tmp_path / "other.parquet")
    text = csv(tmp_path / "text.csv", "a\n1\n")
    relation = engine.register("visits", own)
    engine.seal()
    assert rows(engine, relation) == EXPECTED
    for sql in (
        f"SELECT * FROM read_parquet('{other}')",
        f"SELECT * FROM '{other}'",
        f"SELECT * FROM read_csv('{text}')",
        f"SELECT * FROM read_text('{text}')",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"SELECT * FROM parquet_schema('{other}')",
    ):
        with pytest.raises(EngineError):
            engine.table(sql)
    for sql in (
        f"COPY (SELECT 1) TO '{tmp_path / 'out.parquet'}'",
        f"ATTACH '{tmp_path / 'new.db'}'",
        f"EXPORT DATABASE '{tmp_path / 'all'}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "RESET lock_configuration",
    ):
        with pytest.raises(EngineError):
            engine.execute(sql)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.parquet", "own.parquet", "text.csv"]


def test_a_python_variable_is_not_a_table(engine: DuckDBEngine) -> None:
    secret = visits()
    assert secret.num_rows == 4
    with pytest.raises(EngineError):
        engine.table("SELECT * FROM secret")


def test_nothing_can_be_registered_after_the_first_query(engine: DuckDBEngine) -> None:
    engine.register("a", visits())
    engine.table("SELECT 1 AS one")
    with pytest.raises(InvalidArgument, match="register all sources before"):
        engine.register("b", visits())


ATTACKS = [
    "SELECT CAST(city AS INTEGER) AS x FROM {0}",
    "SELECT user_id + 9223372036854775807 AS x FROM {0}",
    "SELECT strptime(city, '%Y') AS x FROM {0}",
    "SELECT CAST(city AS DATE) AS x FROM {0}",
    "SELECT error(city) AS x FROM {0}",
    "SELECT regexp_matches('a', city || '(') AS x FROM {0}",
    "SELECT (SELECT city FROM {0}) AS x",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_word_of_the_engine_and_no_value_is_in_an_error(engine: DuckDBEngine, attack: str) -> None:
    table = pa.table({"user_id": [9], "city": ["Secretville"]})
    relation = engine.register("t", pa.concat_tables([table, table]))
    with pytest.raises(EngineError) as caught:
        engine.table(attack.format(relation))
    assert caught.value.kind == "failed"
    error: BaseException = caught.value
    assert "Secretville" not in f"{error} {error!r} {vars(error)}"
    assert error.__cause__ is None
    assert error.__context__ is None


def test_the_owner_can_ask_to_see_the_words_of_the_engine(
    engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCREET_SHOW_ENGINE_ERRORS", "1")
    with pytest.raises(EngineError) as caught:
        engine.table("SELECT CAST('Secretville' || range AS INTEGER) FROM range(3)")
    assert isinstance(caught.value.__cause__, duckdb.Error)
    assert "Secretville" not in str(caught.value)


def test_a_file_that_went_away_is_an_error_without_a_value(engine: DuckDBEngine, tmp_path: Path) -> None:
    relation = engine.register("t", parquet(tmp_path / "a.parquet"))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(EngineError) as caught:
        engine.table(f"SELECT * FROM {relation}")
    assert caught.value.kind == "files"


def test_too_little_memory_is_said_and_what_is_spilled_is_removed(tmp_path: Path) -> None:
    engine = DuckDBEngine(memory_limit="20MB", threads=1)
    spill = Path(engine._root.execute("SELECT current_setting('temp_directory')").fetchall()[0][0])
    assert spill.stat().st_mode & 0o077 == 0
    with pytest.raises(EngineError) as caught:
        engine.table("SELECT LENGTH(STRING_AGG(repeat('x', 1000), '')) AS n FROM range(1000000)")
    assert caught.value.kind == "memory"
    engine.close()
    assert not spill.exists()


@pytest.mark.parametrize(("option", "value"), [("memory_limit", "lots"), ("threads", 0), ("threads", "two")])
def test_an_impossible_setting_is_refused_by_name(option: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=option):
        DuckDBEngine(**{option: value})  # type: ignore[arg-type]


def test_a_closed_engine_says_so_as_an_engine_error(engine: DuckDBEngine) -> None:
    engine.close()
    with pytest.raises(EngineError):
        engine.table("SELECT 1 AS a")


def test_reading_a_table_loads_neither_pandas_nor_polars(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet")
    code = (
        "import sys, pyarrow\n"
        "from discreet.engines import DuckDBEngine, Sandbox, arrow_column\n"
        f"engine = DuckDBEngine(); relation = engine.register('t', {str(path)!r})\n"
        "engine.numpy(f'SELECT *, 1::HUGEINT AS h, NULL AS n FROM {relation}')\n"
        "engine.numpy(f'SELECT * FROM {relation} WHERE false')\n"
        "column = arrow_column([1, None, 2**90])\n"
        "Sandbox().run('SELECT a + 1 AS b FROM t', {'t': pyarrow.table({'a': column})})\n"
        "print([name for name in ('pandas', 'polars') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
