"""Statements that are planned by the ranges of columns, and those that must not be."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from discreet.engines import DuckDBEngine
from discreet.engines.ranges import PASS, Ranges
from discreet.errors import EngineError

FAILS = "SELECT count(*) AS n FROM t WHERE CASE WHEN x > 9 THEN 'a' END = 'b'"  # with ranges, as no x is above 9
PLAIN = "SELECT x, count(*) AS n FROM t GROUP BY x"
DISABLED = "SELECT value FROM duckdb_settings() WHERE name = 'disabled_optimizers'"


@pytest.fixture
def engine() -> DuckDBEngine:
    engine = DuckDBEngine()
    engine.register("t", pa.table({"x": [1.0, 2.0, 3.0] * 1000}))
    engine._root.execute("CREATE TABLE stored AS SELECT * FROM (SELECT unnest([1.0, 2.0, 3.0])) r(x)")
    return engine


def disabled(engine: DuckDBEngine) -> object:
    return engine._root.execute(DISABLED).fetchall()[0][0]


def test_an_expression_is_not_planned_by_ranges_and_fails_if_it_is(engine: DuckDBEngine) -> None:
    with engine.session() as session:
        assert disabled(engine) == PASS
        fails = FAILS.replace(" t ", " stored ")
        assert session.numbers(fails)["n"].tolist() == [0]
        with engine._ranges.used() as used:
            assert used
            assert disabled(engine) == ""
            with pytest.raises(Exception, match="Bind"):
                session._cursor.execute(fails)
        assert session.numbers(fails)["n"].tolist() == [0]  # whoever comes next turns them off
        assert disabled(engine) == PASS


def test_a_plain_statement_that_fails_with_ranges_is_planned_without(engine: DuckDBEngine) -> None:
    fails = FAILS.replace(" t ", " stored ")
    with engine.session() as session:
        assert session.numpy(fails, plain=True)["n"].tolist() == [0]
        session.execute(f"CREATE TEMP TABLE made AS {fails}", plain=True)
        assert session.numbers("SELECT n FROM made")["n"].tolist() == [0]
        with pytest.raises(EngineError):
            session.execute("SELECT no_such_column FROM t", plain=True)
        assert disabled(engine) == PASS


def test_whoever_avoids_ranges_waits_for_those_who_use_them_and_is_not_overtaken() -> None:
    switched: list[bool] = []
    ranges = Ranges(switched.append)
    entered = threading.Event()

    def avoid() -> None:
        with ranges.avoided():
            entered.set()

    with ranges.used() as first, ranges.used() as second:
        assert first
        assert second
        thread = threading.Thread(target=avoid)
        thread.start()
        while not ranges._waiting:
            pass
        with ranges.used() as third:
            assert not third
        assert not entered.is_set()
        assert switched == [True]
    thread.join()
    assert entered.is_set()
    assert switched == [True, False]
    with ranges.avoided(), ranges.avoided(), ranges.used() as used:
        assert not used
    for _ in range(2):
        with ranges.used() as used:
            assert used
    assert switched == [True, False, True]
    for _ in range(2):
        with ranges.avoided():
            assert switched == [True, False, True, False]


def test_ranges_count_as_on_where_switching_fails_so_that_they_are_turned_off_again() -> None:
    switched: list[bool] = []
    broken = True

    def switch(on: bool) -> None:
        switched.append(on)
        if broken:
            raise EngineError("failed", "it did not work")

    ranges = Ranges(switch)
    with pytest.raises(EngineError), ranges.used():
        pass
    with pytest.raises(EngineError), ranges.avoided():
        pass
    broken = False
    with ranges.avoided():
        assert switched == [True, False, False]
    with ranges.used() as used:
        assert used
        assert switched == [True, False, False, True]


def test_statements_of_both_kinds_in_many_threads_never_fail(engine: DuckDBEngine) -> None:
    fails = FAILS.replace(" t ", " stored ")

    def ask(number: int) -> int:
        with engine.session() as session:
            plain = number % 2 == 0
            for _ in range(20):
                sql = PLAIN.replace(" t ", " stored ") if plain else fails
                session.numpy(sql, plain=plain)
        return number

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(ask, range(8))) == list(range(8))
    with engine.session() as session:
        session.numbers(fails)
    assert disabled(engine) == PASS


def test_no_other_setting_can_be_changed_once_the_engine_is_sealed(engine: DuckDBEngine) -> None:
    with engine.session() as session:
        for statement in ("SET threads = 1", "SET allowed_configs = []", "SET enable_external_access = true"):
            with pytest.raises(EngineError):
                session.execute(statement)
