"""Statements that are planned by the ranges of columns, and those that must not be."""

from __future__ import annotations

import signal
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
        session.numpy(PLAIN.replace(" t ", " stored "), plain=True)
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
    entered, leave, done = threading.Event(), threading.Event(), threading.Event()
    used = threading.Thread(target=lambda: ranges.run(lambda: (entered.set(), leave.wait(60)), plain=True))
    avoided = threading.Thread(target=lambda: ranges.run(done.set, plain=False))
    overtaking = threading.Thread(target=lambda: ranges.run(lambda: switched.copy(), plain=True))
    used.start()
    assert entered.wait(60)
    assert ranges.run(switched.copy, plain=True) == [True]  # several may use them
    avoided.start()
    while not ranges._avoiding:
        pass
    overtaking.start()
    overtaking.join(0.05)
    assert overtaking.is_alive()
    assert not done.is_set()
    assert switched == [True]
    leave.set()
    for thread in (used, avoided, overtaking):
        thread.join(60)
    assert done.is_set()
    assert switched == [True, False]
    for _ in range(2):
        assert ranges.run(switched.copy, plain=True) == [True, False, True]
    for _ in range(2):
        assert ranges.run(switched.copy, plain=False) == [True, False, True, False]
    assert not ranges._using
    assert not ranges._avoiding


def test_ranges_count_as_on_where_switching_fails_so_that_they_are_turned_off_again() -> None:
    switched: list[bool] = []
    broken: BaseException | None = KeyboardInterrupt()

    def switch(on: bool) -> None:
        switched.append(on)
        if broken is not None:
            raise broken

    ranges = Ranges(switch)
    for plain in (True, False, False):
        with pytest.raises(KeyboardInterrupt):
            ranges.run(lambda: None, plain=plain)
    assert switched == [True, False, False]
    broken = None
    assert ranges.run(switched.copy, plain=False) == [True, False, False, False]
    assert ranges.run(switched.copy, plain=True) == [True, False, False, False, True]


def test_interrupts_leave_no_turn_behind_and_no_ranges_for_those_who_avoid_them() -> None:
    state = {"on": False}

    def switch(on: bool) -> None:
        state["on"] = on

    ranges = Ranges(switch)
    seen: list[bool] = []
    armed = False
    interrupted = 0

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(4000):
            try:
                signal.setitimer(signal.ITIMER_REAL, (1 + 37 * k % 200) * 1e-6)
                armed = True
                for _ in range(20):
                    ranges.run(lambda: sum(range(50)), plain=True)
                    ranges.run(lambda: seen.append(state["on"]), plain=False)
                armed = False
            except KeyboardInterrupt:
                armed = False
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 100
    assert not any(seen)
    assert not ranges._using
    assert not ranges._avoiding
    assert not ranges.run(lambda: state["on"], plain=False)


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
