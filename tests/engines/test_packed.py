"""Parquet files that are asked about again are kept in memory, if they are not too large; nothing else changes."""

from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Budget, Curator
from discreet.engines import DuckDBEngine, packed
from discreet.errors import EngineError, SourceError

ROWS = pa.table(
    {
        "who": pa.array([1, 1, 2, None], pa.int64()),
        "big": pa.array([Decimal(2**100), None, Decimal(-3), Decimal(0)], pa.decimal128(38, 0)),
        "spend": pa.array([float("nan"), float("inf"), -0.0, None], pa.float64()),
        "half": pa.array([1.5, None, float("-inf"), 0.1], pa.float32()),
        "city": ["Ulm", "", None, "Köln\0x"],
        "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        "at": pa.array([1_700_000_000_000_000, None, None, -1], pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\\x", b"", None, b"\xff"], pa.binary()),
        "yes": pa.array([True, None, False, True]),
        "price": pa.array([Decimal("1.25"), None, Decimal("-9.99"), Decimal("0.00")], pa.decimal128(9, 2)),
    }
)
ASKED = "SELECT *, isnan(spend) AS nan FROM {} ORDER BY ALL"


def opened(folder: Path, rows: pa.Table = ROWS, **facts: object) -> tuple[DuckDBEngine, str, Path]:
    path = folder / "t.parquet"
    pq.write_table(rows, path)
    engine = DuckDBEngine()
    return engine, engine.register("t", path, **facts), path  # type: ignore[arg-type]


def asked_often(engine: DuckDBEngine) -> None:
    for _ in range(3):
        engine.make_ready()


def is_packed(engine: DuckDBEngine) -> bool:
    return engine.table("SELECT count(*) AS n FROM duckdb_tables() WHERE table_name LIKE 't%'")["n"][0].as_py() > 0


def test_the_third_question_packs_the_rows_and_they_stay_what_they_are(tmp_path: Path) -> None:
    engine, relation, path = opened(tmp_path)
    found = []
    for often in (False, False, True, True):
        engine.make_ready()
        assert is_packed(engine) == often
        found.append((engine.schema(relation), str(engine.table(ASKED.format(relation)).to_pylist())))
    assert found[0] == found[1] == found[2] == found[3]
    path.unlink()  # nothing reads it any more; whoever asks refuses if it is gone
    assert str(engine.table(ASKED.format(relation)).to_pylist()) == found[0][1]


def test_columns_that_are_cast_or_left_out_are_so_in_what_is_packed(tmp_path: Path) -> None:
    engine, relation, _ = opened(tmp_path, types={"city": "INTEGER"}, leave_out=("raw", "who"))
    before = engine.schema(relation)
    asked_often(engine)
    assert is_packed(engine)
    assert engine.schema(relation) == before
    assert "raw" not in dict(before)


def test_what_is_packed_takes_a_fraction_of_the_memory_of_its_rows(tmp_path: Path) -> None:
    many = 200_000
    engine, relation, _ = opened(tmp_path, pa.table({"k": [f"a category {i % 50:040}" for i in range(many)]}))
    asked_often(engine)
    assert is_packed(engine)
    assert engine.table(f"SELECT count(DISTINCT k) AS n FROM {relation}")["n"][0].as_py() == 50
    held = engine.table("SELECT sum(memory_usage_bytes) AS n FROM duckdb_memory()")["n"][0].as_py()
    assert held < 50 * many / 5


def test_tables_for_which_there_is_no_room_are_read_from_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = pa.table({"k": ["x" * 1000] * 3000})  # little in the file, as it is one text
    monkeypatch.setattr(packed, "_MOST", 2_000_000)
    for rows, kept in ((texts, False), (texts.slice(0, 1000), True)):
        engine, relation, _ = opened(tmp_path, rows)
        asked_often(engine)
        assert is_packed(engine) == kept
        assert engine.table(f"SELECT count(k) AS n FROM {relation}")["n"][0].as_py() == rows.num_rows


@pytest.mark.parametrize(
    "column",
    [pa.array([[1], None]), pa.array([{"a": 1}, None]), pa.array([[("a", 1)], None], pa.map_("utf8", "int64"))],
)
def test_tables_with_nested_columns_are_not_packed(tmp_path: Path, column: pa.Array) -> None:
    engine, relation, _ = opened(tmp_path, pa.table({"x": column}))
    asked_often(engine)
    assert not is_packed(engine)
    assert engine.table(f"SELECT count(*) AS n FROM {relation}")["n"][0].as_py() == 2


@pytest.mark.parametrize("failing", ["ATTACH", "CREATE OR REPLACE TABLE", "CHECKPOINT", "DESCRIBE"])
def test_where_packing_fails_the_files_are_read_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    engine, relation, _ = opened(tmp_path)
    before = str(engine.table(ASKED.format(relation)).to_pylist())
    run = engine._run

    def breaking(sql: str) -> list:
        if sql.startswith(failing):
            raise EngineError("memory", "there is no more")
        return run(sql)

    monkeypatch.setattr(engine._packed, "_run", breaking)
    asked_often(engine)
    assert not is_packed(engine)
    assert str(engine.table(ASKED.format(relation)).to_pylist()) == before


@pytest.mark.parametrize("at", ["ATTACH", "CREATE OR REPLACE TABLE", "CHECKPOINT", "CREATE OR REPLACE VIEW"])
def test_who_was_interrupted_packs_with_the_next_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    engine, relation, _ = opened(tmp_path)
    before = str(engine.table(ASKED.format(relation)).to_pylist())
    run = engine._run

    def stopped(sql: str) -> list:
        found = run(sql)
        if sql.startswith(at):
            monkeypatch.setattr(engine._packed, "_run", run)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(engine._packed, "_run", stopped)
    with pytest.raises(KeyboardInterrupt):
        asked_often(engine)
    assert str(engine.table(ASKED.format(relation)).to_pylist()) == before
    engine.make_ready()
    assert is_packed(engine)  # or, where it was just about to be read, left as it is
    assert str(engine.table(ASKED.format(relation)).to_pylist()) == before


@pytest.mark.parametrize("swaps", [1, 2])
def test_who_was_interrupted_never_reads_the_rows_of_another_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swaps: int
) -> None:
    engine = DuckDBEngine()
    relations = {}
    for name, value in (("people", 7), ("sample", -1)):
        pq.write_table(pa.table({"x": [value] * 100, "s": [name] * 100}), tmp_path / f"{name}.parquet")
        relations[name] = engine.register(name, tmp_path / f"{name}.parquet")
    sizes = iter([1.0, 2.0, 2.0, 1.0, 2.0, 1.0])  # the other one is the smaller by the next look
    monkeypatch.setattr(engine._packed, "_size", lambda *_: next(sizes))
    run, seen = engine._run, list[str]()

    def stopped(sql: str) -> list:
        found = run(sql)
        seen.extend([sql] if sql.startswith("CREATE OR REPLACE VIEW") else [])
        if len(seen) == swaps:
            seen.append("stopped")
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(engine._packed, "_run", stopped)
    with pytest.raises(KeyboardInterrupt):
        asked_often(engine)
    for _ in range(2):
        engine.make_ready()
        for name, relation in relations.items():
            assert engine.table(f"SELECT DISTINCT s FROM {relation}")["s"].to_pylist() == [name]


def test_what_a_view_reads_is_not_dropped_where_packing_fails_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, relation, _ = opened(tmp_path)
    before = str(engine.table(ASKED.format(relation)).to_pylist())
    run = engine._run

    def failing(sql: str) -> list:
        if sql.startswith("CHECKPOINT"):
            raise EngineError("memory", "there is no more")
        return run(sql)

    def stopped(sql: str) -> list:
        found = run(sql)
        if sql.startswith("CREATE OR REPLACE VIEW"):
            monkeypatch.setattr(engine._packed, "_run", failing)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(engine._packed, "_run", stopped)
    with pytest.raises(KeyboardInterrupt):
        asked_often(engine)
    engine.make_ready()
    assert str(engine.table(ASKED.format(relation)).to_pylist()) == before


def test_no_more_is_packed_than_a_part_of_the_memory_limit_has_room_for(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(1_000_000)}), path)
    for limit, kept in (("50MB", False), ("200MB", True)):
        engine = DuckDBEngine(memory_limit=limit)
        engine.register("t", path)
        asked_often(engine)
        assert is_packed(engine) == kept


def test_long_texts_after_short_ones_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_MOST", 8_000_000)
    texts = ["a"] * 10_000 + [f"{i}" + "b" * 2000 for i in range(10_000)]
    engine, _, _ = opened(tmp_path, pa.table({"k": texts}))
    asked_often(engine)
    assert not is_packed(engine)


def test_sessions_that_read_the_file_go_on_while_others_pack_it(tmp_path: Path) -> None:
    many = 300_000
    engine, relation, _ = opened(tmp_path, pa.table({"i": range(many), "k": [f"k{i % 7}" for i in range(many)]}))
    engine.make_ready()
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(10):
            engine.make_ready()
            with engine.session() as session:
                found = session.numbers(f"SELECT CAST(sum(i) AS BIGINT) AS s, count(DISTINCT k) AS n FROM {relation}")
            if (found["s"][0], found["n"][0]) != (many * (many - 1) / 2, 7):
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert is_packed(engine)


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
def test_a_curator_packs_from_its_third_question_on_and_still_refuses_a_file_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"u": range(5000), "k": [f"k{i % 3}" for i in range(5000)]}), path)
    columns = {"k": {"keys": ["k0", "k1", "k2"]}}
    with Curator.open(path, unit="u", budget=Budget(epsilon=200.0), columns=columns, ledger=":memory:") as curator:
        text = "SELECT k, COUNT(*) AS n FROM visits GROUP BY k"
        for often in (False, False, True, True):
            answer = curator.sql(text, epsilon=20, reuse=False)
            assert is_packed(curator._data.engine) == often
            assert all(abs(n - 1667) < 20 for _, n in answer.fetchall())
        left = curator.remaining
        pq.write_table(pa.table({"u": range(6000), "k": ["k1"] * 6000}), path)
        with pytest.raises(SourceError, match="changed"):
            curator.sql(text, epsilon=20, reuse=False)
        assert curator.remaining == left
