"""Tables in which every row is a unit: sums by key, what one row changes, and values of every strange kind."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.query import run as running
from discreet.query import sizing
from discreet.query.bounding import Grid
from discreet.query.by_row import are_exact, by_public_group, of_groups, row_grid, row_total, row_totals
from discreet.query.measuring import measure
from discreet.query.moments import Moment
from discreet.query.options import Options
from discreet.query.plan import Aggregate, Block, Key
from discreet.query.private import private_plan
from discreet.query.run import Run
from discreet.query.sketch import Sketch
from discreet.query.target import Target
from query.tables import PRIVATE, PUBLIC, block, session_of, steps, visits, without_noise

BOUNDED = (
    Aggregate("count", "a0", "count"),
    Aggregate("sum", "a1", "sum", "xx", bounds=(-5.0, 30.0)),
    Aggregate("avg", "a2", "mean", "nx", bounds=(0.0, 20.0), kind="integer"),
)
VALUES = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, -0.0, 0.0, 30.0, -5.0, 29.99999, 3.1415926, 30.0000001]


def everything_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group is left out."""
    every = lambda numbers, *_, **__: np.ones(numbers.size, dtype=bool)
    monkeypatch.setattr("discreet.query.keys.kept_by_count", every)
    monkeypatch.setattr("discreet.query.keys.kept_by_weight", lambda *a, **b: (every(*a), np.ones(1)))


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("coarser", [0, 3, 11])
@pytest.mark.parametrize("kind", ["sum", "square"])
@pytest.mark.parametrize("bounds", [(-5.0, 30.0), (2.0, 30.0), (-0.3, 0.1), None])
def test_a_row_counts_with_its_value_cut_to_the_bounds_in_whole_steps(
    bounds: tuple[float, float] | None, kind: str, coarser: int, double: bool
) -> None:
    moment = Moment(kind, "x", bounds, centre=0.0 if bounds is None else bounds[0] / 2)
    low, high = bounds or (-(2.0**31), 2.0**31)
    table = pa.table({"x": pa.array(VALUES, pa.float64())})
    with session_of(table) as session:
        got = session.numpy(f"SELECT x, {moment.value(coarser, double=double)} AS v FROM t")
    for x, value in zip(got["x"], got["v"], strict=True):
        if x is None or math.isnan(x):
            assert value is None
            continue
        moved = min(max(x, low), high) - moment.centre
        exact = (moved * moved if kind == "square" else moved) / math.ldexp(moment.quantum, coarser)
        assert value == int(value)
        assert abs(value - exact) <= 0.5 + 1e-9 * abs(exact)
        if bounds is not None:
            assert abs(value) <= moment.steps_of_row(coarser)


@pytest.mark.parametrize("coarser", [0, 1, 5, 17])
@pytest.mark.parametrize("kind", ["sum", "square"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-5.0, 30.0), (0.0, 1e9), (-1.0, 0.5)])
def test_a_row_counts_alike_in_doubles_and_in_integers_also_halfway_between_two_steps(
    bounds: tuple[float, float], kind: str, coarser: int
) -> None:
    # else one row, by which a total grows too large for doubles, would change what all others count for
    moment = Moment(kind, "x", bounds)
    step = math.ldexp(moment.quantum, coarser)
    steps = np.concatenate([np.arange(-50, 50), [2**k + j for k in range(6, 26) for j in (-1, 0, 1)]])
    values = (steps + 0.5) * step if kind == "sum" else np.sqrt(np.abs((steps + 0.5) * step))
    with session_of(pa.table({"x": np.clip(values, *bounds)})) as session:
        got = session.numbers(
            f"SELECT {moment.value(coarser, double=True)} AS a, {moment.value(coarser)} AS b FROM t WHERE x IS NOT NULL"
        )
    np.testing.assert_array_equal(got["a"], got["b"])
    assert np.any(got["b"] * step != np.clip(values, *bounds))


@pytest.mark.parametrize("bounds", [(-5.0, 30.0), (-1e18, 1e18), (0.0, 1e-12), (3.0, 3.0)])
def test_the_rows_that_have_a_value_are_those_that_a_sum_adds_up(bounds: tuple[float, float]) -> None:
    present, total = Moment("present", "x"), Moment("sum", "x", bounds)
    assert present.is_present_in(total)
    assert not present.is_present_in(Moment("sum", "y", bounds))
    assert not present.is_present_in(Moment("sum", "x"))
    assert not Moment("present", "x", integer=True).is_present_in(total)
    with session_of(pa.table({"x": pa.array([*VALUES, 5e-324, -1.7e308, 1e18], pa.float64())})) as session:
        for coarser in (0, 7):
            got = session.numbers(f"SELECT {present.total()} AS a, count({total.value(coarser)}) AS b FROM t")
            assert got["a"].tolist() == got["b"].tolist() == [len(VALUES) + 1]


ONE_SIGN = Aggregate("sum", "a1", "sum", "xx", bounds=(0.0, 30.0))
TWO_SIGNS = Aggregate("sum", "a2", "other", "xx", bounds=(-1.0, 30.0))


@pytest.mark.parametrize(
    ("aggregates", "signs", "kinds"),
    [
        ((Aggregate("count", "a0", "count"), ONE_SIGN, TWO_SIGNS), [1, 1, 0], "ifi"),
        ((Aggregate("variance", "a0", "variance", "xx", bounds=(0.0, 30.0)),), [0, 1, 0], "fif"),
    ],
)
def test_sums_are_taken_in_doubles_if_it_can_be_seen_that_they_are_exact(
    aggregates: tuple[Aggregate, ...], signs: list[int], kinds: str
) -> None:
    """By their sign, or because their values are counted beside them."""
    plan = private_plan(block(*aggregates, row_level=True, rows_per_unit=1), Target(epsilon=1.0), Options())
    grids = {i: row_grid(moment, plan.noise_of_moment(i), rows=1) for i, moment in enumerate(plan.moments)}
    assert [m.sign for m in plan.moments] == signs
    for double, expected in ((True, kinds), (False, "iii")):
        summed = row_totals(plan, grids, rows=1, double=double)
        with session_of(visits(12, 40, 3)) as session:
            source = summed.source(f"({plan.block.rows}) r")
            found = session.numbers(f"SELECT {', '.join(summed.listed)} FROM {source}")
        assert "".join(numbers.dtype.kind for numbers in found.values()) == expected


@pytest.mark.parametrize("keys", [(), (PUBLIC,), (PRIVATE,)], ids=["all", "public", "private"])
def test_totals_that_are_too_large_for_doubles_are_taken_in_integers(
    keys: tuple[Key, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    everything_kept(monkeypatch)
    plan = private_plan(
        block(*BOUNDED, ONE_SIGN, keys=keys, row_level=True, rows_per_unit=1),
        Target(epsilon=1.0, delta=1e-9),
        Options(),
    )
    asked: list[str] = []
    found = []
    for largest in (2.0**53, 1000.0):
        monkeypatch.setattr("discreet.query.by_row._EXACT", largest)
        with session_of(visits(12, 40, 3)) as session:
            for name in ("numbers", "filtered"):
                method = getattr(session, name)
                monkeypatch.setattr(
                    session, name, lambda sql, *a, m=method, **k: (asked.append(sql), m(sql, *a, **k))[1]
                )
            found.append(steps(session, plan)[0])
        assert ["DOUBLE) AS s" in sql for sql in asked] == ([True] if largest > 1000 else [True, False])
        asked.clear()
    for doubles, integers in zip(*found, strict=True):
        np.testing.assert_array_equal(doubles, integers)


def test_the_engine_adds_whole_doubles_exactly_below_two_to_the_53() -> None:
    step = (1 << 26) - 1
    for rows in ((1 << 27) - 1, (1 << 27) + (1 << 22)):  # 138 million rows
        with session_of(pa.table({"x": [1]})) as session:
            sql = f"SELECT sum(round(CAST({step} + i * 0 AS DOUBLE))) AS s FROM range({rows}) r(i)"
            total = session.numbers(sql)["s"]
        if rows * step < 2**53:
            assert int(total[0]) == rows * step


def test_doubles_are_exact_below_two_to_the_53() -> None:
    """Of one sign, a total says so; of two, the number of values does, however small the total is."""
    spread = Aggregate("variance", "a0", "variance", "xx", bounds=(0.0, 30.0))
    plan = private_plan(block(ONE_SIGN, row_level=True, rows_per_unit=1), Target(epsilon=1.0), Options())
    grids = {0: row_grid(plan.moments[0], plan.noise_of_moment(0), rows=1)}
    assert are_exact(plan, grids, {"s0": np.array([2.0**53 - 1, 5.0])})
    assert not are_exact(plan, grids, {"s0": np.array([5.0, 2.0**53])})
    assert are_exact(plan, grids, {"s0": np.array([1 << 60])})
    assert are_exact(plan, grids, {"s0": np.array([])})
    plan = private_plan(block(spread, row_level=True, rows_per_unit=1), Target(epsilon=1.0), Options())
    grids = {i: row_grid(moment, plan.noise_of_moment(i), rows=1) for i, moment in enumerate(plan.moments)}
    steps = max(moment.steps_of_row(grids[i].exponent) for i, moment in enumerate(plan.moments) if not moment.counts)
    for number, exact in (((2**53 - 1) // steps, True), ((2**53 - 1) // steps + 1, False)):
        found = {"s0": np.array([1.0, -3.0]), "s1": np.array([number, 7]), "s2": np.array([0.0, 5.0])}
        assert are_exact(plan, grids, found) == exact


@pytest.mark.parametrize("exponent", [0, 5])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("kind", ["sum", "square"])
def test_a_row_without_a_value_counts_nothing_and_others_are_cut_to_the_chosen_bound(
    kind: str, rows: int, exponent: int
) -> None:
    moment = Moment(kind, "x")
    grid = Grid(rows * 8.0 / moment.quantum, exponent)
    limit = math.floor(grid.bound / rows)
    for x in VALUES:
        with session_of(pa.table({"x": pa.array([x, None, math.nan], pa.float64())})) as session:
            got = int(session.numpy(f"SELECT {row_total(moment, grid, rows=rows)} AS s FROM t")["s"][0])
        if x is None or math.isnan(x):
            assert got == 0
            continue
        exact = (x * x if kind == "square" else x) / moment.quantum
        assert abs(got * 2**exponent - min(max(exact, -limit), limit)) <= 2**exponent
        assert abs(got) <= limit / 2**exponent


@pytest.mark.parametrize("keys", [(), (PUBLIC,), (PRIVATE,)], ids=["all", "public", "private"])
@pytest.mark.parametrize("target", [Target(epsilon=1.0, delta=1e-9), Target(mu=0.3)], ids=["laplace", "gaussian"])
def test_a_row_changes_every_sum_by_at_most_what_the_noise_is_made_for(
    target: Target, keys: tuple[Key, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    everything_kept(monkeypatch)
    if target.mu is not None and keys == (PRIVATE,):
        target = Target(epsilon=0.1, delta=1e-6)
    plan = private_plan(block(*BOUNDED, keys=keys, row_level=True, rows_per_unit=1), target, Options())
    table = visits(12, 40, 3)
    doubled = pa.concat_tables([table, table])  # so that no group disappears with a row
    with session_of(doubled) as session:
        whole, limits = steps(session, plan)
    reached = 0.0
    for i in range(table.num_rows):
        rest = pa.concat_tables([table, table.slice(0, i), table.slice(i + 1)])
        with session_of(rest) as session:
            fewer, _ = steps(session, plan)
        for a, b, limit in zip(whole, fewer, limits, strict=True):
            change = np.linalg.norm(a - b, ord=2 if plan.gaussian else 1)
            assert change <= limit
            reached = max(reached, change / limit)
    assert reached > 0.99


@pytest.mark.parametrize("keys", [(), (PUBLIC,), (PRIVATE,)], ids=["all", "public", "private"])
def test_counts_and_distinct_values_are_those_of_the_database(
    keys: tuple[Key, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    everything_kept(monkeypatch)
    asked = (BOUNDED[0], Aggregate("sum", "a1", "sum", "nx", bounds=(-5.0, 50.0), kind="integer"))
    values = Aggregate("count_distinct", "a2", "values", "nx")
    grouped = "city" if keys else "1"
    with session_of(visits(30, 2000, 5)) as session:
        want = {
            row.pop("k"): list(row.values())
            for row in session.table(
                f"SELECT {grouped} AS k, count(*) AS a0, CAST(sum(n) AS BIGINT) AS a1, count(DISTINCT n) AS a2 "
                f"FROM t GROUP BY {grouped}"
            ).to_pylist()
        }
        for aggregates in (asked, (*asked, values)):
            plan = private_plan(
                block(*aggregates, keys=keys, row_level=True, rows_per_unit=1), Target(epsilon=1, delta=1e-6), Options()
            )
            found = measure(session, plan)
            sums: list[Any] = [noisy.values for noisy in (*found.moments, *found.distincts)]
            shown = found.keys["k0"].to_pylist() if keys else [1]
            assert sorted(map(str, shown)) == sorted(map(str, want))
            for place, key in enumerate(shown):
                assert [numbers[place] for numbers in sums] == pytest.approx(want[key][: len(sums)], abs=1e-3)


TEXTS = ("Bern", "", "bern", "Bern ", "Ö", "O\u0308", "it's", "NULL")
FLAGS = (True, None, False)


@pytest.mark.parametrize("rows", [0, 1, 3000])
@pytest.mark.parametrize("flags", [FLAGS, FLAGS[:1]])
@pytest.mark.parametrize("order", [("name", "flag"), ("flag", "name"), ("name", "day", "flag", "name")])
def test_several_public_keys_have_the_totals_of_the_database_also_where_they_are_counted_in_an_array(
    order: tuple[str, ...], flags: tuple[Any, ...], rows: int
) -> None:
    # texts become whole numbers while rows are read; rows with other keys, or with NULL, are in no group
    stream = np.random.default_rng(rows)
    texts = [*TEXTS, "x", "BERN", None, "Bern\0"]
    table = pa.table(
        {
            "name": pa.array([texts[i] for i in stream.integers(0, len(texts), rows)], pa.string()),
            "flag": pa.array([[True, False, None][i] for i in stream.integers(0, 3, rows)], pa.bool_()),
            "day": pa.array(stream.integers(0, 9, rows), pa.int32()).cast(pa.date32()),
            "x": pa.array(stream.choice([0.0, 1.0, -7.5, math.nan, math.inf], rows)),
        }
    )
    values: dict[str, tuple[Any, ...]] = {"name": TEXTS, "flag": flags, "day": ("1970-01-03", "1970-01-02")}
    kinds = {"name": "VARCHAR", "flag": "BOOLEAN", "day": "DATE"}
    keys = tuple(Key(f"k{i}", kinds[name], name, values[name]) for i, name in enumerate(order))
    shown = ", ".join(f't0."{name}" AS k{i}' for i, name in enumerate(order))
    sql = f'SELECT {shown}, t0."x" AS xx FROM temp.main."t" AS t0'
    asked = Block(sql, keys, BOUNDED[:2], row_level=True, rows_per_unit=1)
    plan = private_plan(asked, Target(epsilon=1, delta=1e-6), Options())
    grids = {i: row_grid(moment, plan.noise_of_moment(i), rows=1) for i, moment in enumerate(plan.moments)}
    summed = row_totals(plan, grids, rows=1, double=True)
    with session_of(table) as session:
        totals = []
        for ranged in (False, True):
            sql = by_public_group(session, plan, summed, ranged=ranged)
            assert ("enum_code" in sql) == ranged
            found = of_groups(session.numbers(sql, plain=ranged))
            assert found["g"].size == np.unique(found["g"]).size
            totals.append(sorted(zip(*(found[name].tolist() for name in found), strict=True)))
    assert totals[0] == totals[1]
    places = {listed: i for i, listed in enumerate(product(*(map(str, key.values or ()) for key in keys)))}
    counts = Counter(zip(*(map(str, table[name].to_pylist()) for name in order), strict=True))
    assert [(g, n) for g, n, *_ in totals[0]] == sorted((places[row], n) for row, n in counts.items() if row in places)


def test_groups_that_are_shown_come_in_the_order_of_their_keys_with_their_own_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_noise(monkeypatch)
    monkeypatch.setattr("discreet.engines.session._GROUPS", 2048)  # so that groups come in several batches
    picked = lambda numbers, *_, **__: numbers % 3 == 0
    monkeypatch.setattr("discreet.query.keys.kept_by_count", picked)
    monkeypatch.setattr("discreet.query.keys.kept_by_weight", lambda w, *_, **__: (picked(w >> 20), np.ones(1)))
    cities = [f"city {(7919 * i) % 8000}" for i in range(8000)]
    rows = np.repeat(np.arange(8000), 1 + np.arange(8000) % 5)
    table = pa.table({"city": np.array(cities)[rows], "x": (rows % 30).astype(float), "u": np.arange(rows.size)})
    for target in (Target(epsilon=1.0, delta=1e-9), Target(epsilon=0.1, delta=1e-6)):
        aggregates = (BOUNDED[0], Aggregate("sum", "a1", "sum", "xx", bounds=(-5.0, 30.0)))
        plan = private_plan(block(*aggregates, keys=(PRIVATE,), row_level=True, rows_per_unit=1), target, Options())
        with session_of(table.append_column("n", pa.array(rows))) as session:
            found = measure(session, plan)
        shown = {city: (1 + i % 5, (1 + i % 5) * (i % 30)) for i, city in enumerate(cities) if i % 5 == 2}
        assert found.keys["k0"].to_pylist() == sorted(shown)
        assert found.groups == len(shown)
        assert found.moments[0].values.tolist() == [shown[city][0] for city in sorted(shown)]
        assert found.moments[1].values == pytest.approx([shown[city][1] for city in sorted(shown)], abs=1e-3)


def test_keys_that_are_equal_but_not_the_same_are_shown_as_they_are() -> None:
    for values in ((0, 1), (False, True), (0.0, 1.0), (-0.0, 1.0), (0, 1)):
        key = Key("k0", "BIGINT", "city", values)
        plan = private_plan(
            block(BOUNDED[0], keys=(key,), row_level=True, rows_per_unit=1), Target(epsilon=1, delta=1e-6), Options()
        )
        with session_of(visits(1, 1, 1)) as session:
            shown = Run(session, plan, None).keys()["k0"]
        assert repr(shown.to_pylist()) == repr(list(values))


def test_negative_zero_is_the_group_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    everything_kept(monkeypatch)
    table = pa.table({"city": pa.array([-0.0, 0.0, -0.0, 1.0]), "u": [1, 2, 3, 4]})
    for values, count in ((None, 2), ((0.0, 1.0), 2)):
        key = Key("k0", "DOUBLE", "city", values)
        plan = private_plan(
            block(BOUNDED[0], keys=(key,), row_level=True, rows_per_unit=1), Target(epsilon=1, delta=1e-6), Options()
        )
        with session_of(table) as session:
            found = measure(session, plan)
        shown = found.keys["k0"].to_pylist()
        assert len(shown) == count
        assert [math.copysign(1, k) for k in shown] == [1, 1]
        assert found.moments[0].values.tolist() == [3, 1]


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_choice_in_which_a_unit_counts_several_times_is_made_with_that_part_of_its_price(
    rows: int, gaussian: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[float] = []
    for room, name in ((running, "choose_bound"), (running, "choose_share"), (sizing, "choose_bound")):
        choose = getattr(room, name)

        def spied(*given: Any, choose: Any = choose, **facts: Any) -> int:
            levels.append(facts["epsilon"])
            return choose(*given, **facts)

        monkeypatch.setattr(room, name, spied)
    count, draw = Run.counted_apart, Sketch.drawn

    def drawn(*given: Any, **facts: Any) -> Sketch:
        levels.append(facts["epsilon"])
        return draw(*given, **facts)

    monkeypatch.setattr(sizing.Sketch, "drawn", drawn)

    def counted(self: Run, kinds: list[np.ndarray], epsilon: float) -> list[float]:
        levels.append(epsilon)
        return count(self, kinds, epsilon)

    monkeypatch.setattr(Run, "counted_apart", counted)
    target = Target(mu=1.0) if gaussian else Target(epsilon=1.0)
    total = Aggregate("sum", "a0", "sum", "nx", kind="integer")
    plan = private_plan(block(total, row_level=True, rows_per_unit=rows), target, Options())
    with session_of(visits(12, 40, 3)) as session:
        measure(session, plan)
    paid = plan.allocation
    steps_of_plan = [paid.choice, paid.tail, paid.tail] if gaussian else [paid.chosen, paid.counted, paid.sketched]
    assert sorted(levels) == pytest.approx(sorted(step / rows for step in steps_of_plan))
