"""What one unit can change: the claim on which the noise rests, tried on random tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.query.bounding import make_sizes, norm
from discreet.query.estimates import noisy_table
from discreet.query.measuring import measure
from discreet.query.options import Options
from discreet.query.plan import Aggregate, Key
from discreet.query.private import private_plan
from discreet.query.target import Target
from query.tables import CITIES, PRIVATE, PUBLIC, block, session_of, steps, visits, without_noise

TARGETS = {"gaussian": Target(epsilon=0.1, delta=1e-6), "laplace": Target(epsilon=1.0, delta=0.0)}
AGGREGATES = (
    Aggregate("count", "a0", "count"),
    Aggregate("sum", "a1", "sum", "xx", bounds=(-5.0, 30.0)),
    Aggregate("sum", "a2", "free", "nx", kind="integer"),
    Aggregate("avg", "a3", "mean", "xx", bounds=(-5.0, 30.0)),
    Aggregate("variance", "a4", "spread", "nx", bounds=(0.0, 20.0), kind="integer"),
    Aggregate("count_units", "a5", "units"),
    Aggregate("count_distinct", "a6", "values", "nx"),
    Aggregate("variance", "a7", "wide", "xx"),
)
OPTIONS = {
    "clip": Options(),
    "sample": Options(max_groups=2, max_rows=3),
    "groups": Options(max_groups=1),
    "rows": Options(max_rows=2),
}


WRONG = replace(PRIVATE, of_unit=True)  # declared to be one for each unit, and it is not
SLACK = Target(epsilon=1.0, delta=1e-12)
CASES = {
    "gaussian, all": ((), TARGETS["gaussian"], True),
    "gaussian, public": ((PUBLIC,), TARGETS["gaussian"], True),
    "gaussian, private": ((PRIVATE,), TARGETS["gaussian"], True),
    "gaussian, one by a wrong declaration": ((WRONG,), TARGETS["gaussian"], True),
    "laplace, all": ((), TARGETS["laplace"], False),
    "laplace, public": ((PUBLIC,), TARGETS["laplace"], False),
    "laplace, one by a wrong declaration": ((WRONG,), SLACK, False),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("case", CASES)
def test_a_unit_changes_every_vector_of_sums_by_no_more_than_the_noise_is_made_for(
    case: str, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, target, gaussian = CASES[case]
    without_noise(monkeypatch, bound=9, middle=100)  # 2^(9/4) = 4.76: many units exceed it
    monkeypatch.setattr("discreet.query.run.Run.secret", 12345)
    everything = lambda numbers, *_, **__: np.ones(numbers.size, dtype=bool)
    monkeypatch.setattr("discreet.query.keys.kept_by_weight", lambda *a, **b: (everything(*a), np.ones(1)))
    monkeypatch.setattr("discreet.query.keys.kept_by_count", everything)
    plan = private_plan(block(*AGGREGATES, keys=keys), target, OPTIONS[options])
    assert plan.gaussian == gaussian
    order = 2 if plan.gaussian else 1
    reached = 0.0
    for seed in range(1):
        table = visits(16, 400, seed)  # every group has units, whoever is missing
        with session_of(table) as session:
            whole, limits = steps(session, plan)
        for unit in range(16):
            rest = table.filter(pc.fill_null(pc.not_equal(table["u"], unit), True))
            with session_of(rest) as session:
                fewer, _ = steps(session, plan)
            for a, b, limit in zip(whole, fewer, limits, strict=True):
                change = np.linalg.norm(a - b, ord=order)
                assert change <= limit
                reached = max(reached, change / limit)
    assert reached > 0.99  # some unit changes as much as it may: the claim is not empty


def test_a_unit_is_in_no_more_groups_than_there_are_where_they_are_public_and_few() -> None:
    target, units = Target(epsilon=1.0, delta=1e-8), AGGREGATES[5]
    for options, most in ((Options(), 4), (Options(max_groups=2), 2), (Options(max_groups=100), 4)):
        plan = private_plan(block(units, keys=(PUBLIC,)), target, options)
        assert (plan.groups, plan.gaussian) == (most, False)
        assert plan.known_bound(plan.moments[0]) == most
        assert plan.allocation.choices == 0
    many = replace(PUBLIC, values=tuple("abcdefghijklmnop"))
    for key in (PRIVATE, many):
        plan = private_plan(block(units, keys=(key,)), target, Options())
        assert (plan.groups, plan.gaussian, plan.allocation.choices) == (None, True, 1)


def test_no_larger_bound_is_used_for_units_than_a_one_in_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch, bound=40)  # 2^10
    many = replace(PUBLIC, values=(*CITIES, *"abcdefghijkl"))
    plan = private_plan(block(AGGREGATES[5], keys=(many,)), SLACK, Options())
    with session_of(visits(6, 200, 3)) as session:
        sums, limits = steps(session, plan)
        found = measure(session, plan)
    assert found.bounds == {"number of units": pytest.approx(4.0)}  # the root of 16
    assert sums[0].max() * 4 / limits[0] == pytest.approx(6, rel=1e-6)  # and nobody is cut


@pytest.mark.parametrize(
    ("aggregate", "options", "facts", "most"),
    [
        (AGGREGATES[0], Options(), {}, 4.0 * (2**31 - 1)),
        (AGGREGATES[0], Options(max_rows=7), {}, 4.0 * 7),
        (AGGREGATES[1], Options(max_rows=7), {}, 4.0 * 7 * 2**30 * 30 / 32),
        (AGGREGATES[2], Options(), {}, 4.0 * 2**47),
        (AGGREGATES[2], Options(), {"rows_per_unit": 1}, 2.0**31),
        (AGGREGATES[2], Options(), {"rows_per_unit": 1, "row_level": True}, 2.0**31),
        (AGGREGATES[5], Options(), {}, 4.0),
    ],
)
def test_what_is_public_limits_the_bound_on_a_unit(
    aggregate: Aggregate, options: Options, facts: dict, most: float
) -> None:
    many = replace(PUBLIC, values=(*CITIES, *"abcdefghijkl"))  # 16 groups, whose root is 4
    plan = private_plan(block(aggregate, keys=(many,), **facts), TARGETS["gaussian"], options)
    assert plan.gaussian == (not facts)
    assert plan.most(plan.moments[0]) == pytest.approx(most)
    free = private_plan(block(aggregate, keys=(PRIVATE,)), TARGETS["gaussian"], Options())
    assert free.most(free.moments[0]) == math.inf


def test_the_bound_on_a_sum_is_no_larger_than_the_rows_that_are_left_can_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing changes but the noise: moments of one argument are shrunk together."""
    asked = (Aggregate("avg", "a0", "mean", "xx", bounds=(0.0, 30.0)), Aggregate("variance", "a1", "spread", "nx"))
    plan = private_plan(block(*asked, keys=(PRIVATE,)), SLACK, Options())
    total, present, free, counted, squares = range(5)
    found = plan.no_larger(dict.fromkeys(range(5), 2.0**90) | {present: 10.0, counted: 3.0})
    assert found[total] == 10 * plan.moments[total].row_steps
    assert (found[present], found[counted]) == (10.0, 3.0)
    assert (found[free], found[squares]) == (3 * 2.0**47, 3 * 2.0**78)
    assert plan.no_larger(dict.fromkeys(range(5), 1.0)) == dict.fromkeys(range(5), 1.0)
    without_noise(monkeypatch)
    small = lambda buckets, *_, **__: 9 if max(buckets) < 28 else int(max(buckets)) + 16  # rows are cut, sums are not
    monkeypatch.setattr("discreet.query.run.choose_bound", small)
    everything = lambda numbers, *_, **__: (np.ones(numbers.size, dtype=bool), np.ones(1))
    monkeypatch.setattr("discreet.query.keys.kept_by_weight", everything)
    with session_of(visits(6, 200, 3)) as session:
        found = measure(session, plan)
        assert found.bounds["sum of xx"] == pytest.approx(30 * 2 ** (9 / 4))
        bounded = noisy_table(found)
        monkeypatch.setattr("discreet.query.private.Private.no_larger", lambda self, bounds: bounds)
        unbounded = noisy_table(measure(session, plan))
    for name in ("a0", "a1"):
        assert bounded[name].to_pylist() == pytest.approx(unbounded[name].to_pylist(), rel=1e-5)


MANY = replace(PUBLIC, values=(*CITIES, *"abcdefghijkl"))


def exact(table: pa.Table, expression: str) -> dict:
    with session_of(table) as session:
        found = session.table(f"SELECT city, {expression} AS x FROM t WHERE u IS NOT NULL GROUP BY city")
    return dict(zip(found["city"].to_pylist(), found["x"].to_pylist(), strict=True))


@pytest.mark.parametrize("key", [PUBLIC, MANY, replace(PUBLIC, of_unit=True)], ids=["few", "many", "one"])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e7])
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_a_spread_without_declared_bounds_is_right_for_small_and_large_values(
    kind: str, scale: float, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    rng = np.random.default_rng(5)
    unit = rng.integers(0, 300, 3000)
    values = scale * rng.integers(1, 100, 3000)
    city = unit % 4 if key.of_unit else rng.integers(0, 4, 3000)
    table = pa.table(
        {
            "u": unit,
            "city": pa.array([CITIES[i] for i in city]),
            "n": values.astype(np.int64) if kind == "integer" else values + 0.25,
        }
    )
    plan = private_plan(block(Aggregate("stddev", "a0", "spread", "nx", kind=kind), keys=(key,)), SLACK, Options())
    with session_of(table) as session:
        found = noisy_table(measure(session, plan)).to_pylist()
    true = exact(table, "stddev(n)")
    assert {row["k0"]: row["a0"] for row in found if row["k0"] in true} == pytest.approx(true, rel=1e-3)


@pytest.mark.parametrize("facts", [{"row_level": True, "rows_per_unit": 1}, {}], ids=["rows", "units"])
def test_a_spread_of_large_fractions_is_right_for_rows_and_where_units_are_shrunk(
    facts: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    values = np.random.default_rng(6).uniform(0, 2e9, 3000)
    table = pa.table({"u": np.arange(3000) % 300, "n": values})
    asked = block(Aggregate("stddev_pop", "a0", "spread", "nx"), **facts)
    plan = private_plan(asked, SLACK, Options() if facts else Options(max_rows=5))
    with session_of(table) as session:
        (found,) = noisy_table(measure(session, plan)).to_pylist()
    assert found["a0"] == pytest.approx(float(np.std(values)), rel=1e-3)


@pytest.mark.parametrize("kind", ["sum", "square"])
def test_the_norm_of_numbers_of_any_size_is_never_less_than_it_is(kind: str) -> None:
    """Otherwise a unit would be shrunk too little, and change a sum by more than the noise is made for."""
    asked = "variance" if kind == "square" else "sum"
    plan = private_plan(block(Aggregate(asked, "a0", "", "xx"), keys=(MANY,)), TARGETS["gaussian"], Options())
    place = next(i for i, moment in enumerate(plan.moments) if moment.kind == kind)
    moment = plan.moments[place]
    rng = np.random.default_rng(7)
    edges = [e + d for e in (1 << 47, 1 << 62, 1 << 94) for d in (-1, 0, 1) if e + d <= moment.largest]
    numbers = [edges[i] if i < len(edges) else int(2.0 ** rng.uniform(0, 92)) for i in range(300)]
    numbers = [min(number, moment.largest) for number in numbers]
    units = [i // 3 if i % 2 else i for i in range(300)]  # of one number, of two, and of several sizes
    signs = [1 if kind == "square" or i % 5 else -1 for i in range(300)]
    listed = ", ".join(f"({u}, {s * m}::HUGEINT)" for u, s, m in zip(units, signs, numbers, strict=True))
    with session_of(pa.table({"one": [1]})) as session:
        session.execute(
            f"CREATE TEMP TABLE q__per AS SELECT u, CAST(m AS {moment.sql_type}) AS m{place} "
            f"FROM (VALUES {listed}) v(u, m)"
        )
        make_sizes(session, plan, (place,))
        found = session.numbers(f"SELECT u, {norm(plan, place, single=False)} AS size FROM q__sizes")
    squares: dict[int, int] = {}
    for u, m in zip(units, numbers, strict=True):
        squares[u] = squares.get(u, 0) + m * m
    for u, size in zip(found["u"].tolist(), found["size"].tolist(), strict=True):
        true = math.isqrt(squares[u])
        assert true * (1 - 2.0**-45) <= size <= (true + 1) * (1 + 2.0**-14)


def test_people_with_many_rows_count_as_whole_people(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch, bound=9)  # 2^(9/4) = 4.76: rows are cut, and nobody is in more than four cities
    plan = private_plan(block(AGGREGATES[0], AGGREGATES[5], keys=(MANY,)), SLACK, Options())
    table = visits(6, 200, 3)
    with session_of(table) as session:
        found = [row for row in noisy_table(measure(session, plan)).to_pylist() if row["k0"] in CITIES]
    rows, people = exact(table, "count(*)"), exact(table, "count(DISTINCT u)")
    assert all(row["a0"] < rows[row["k0"]] for row in found)
    assert {row["k0"]: row["a5"] for row in found} == people


PLAIN = (AGGREGATES[0], AGGREGATES[2], AGGREGATES[5], AGGREGATES[6])


@pytest.mark.parametrize("options", ["clip", "rows"])
@pytest.mark.parametrize("keys", [(), (replace(PUBLIC, of_unit=True),), (WRONG,)], ids=["all", "public", "wrong"])
@pytest.mark.parametrize("aggregates", [PLAIN, PLAIN[:1], PLAIN[1:2]], ids=["several", "count", "sum"])
def test_a_unit_changes_one_number_alone_where_staircase_noise_is_used(
    aggregates: tuple, keys: tuple, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A staircase costs epsilon for any change at all, so it may protect one number of a unit, and no second one."""
    without_noise(monkeypatch, bound=9)
    drawn: list[int] = []
    none = lambda epsilon, sensitivity, split, size, **_: (drawn.append(sensitivity), np.zeros(size, dtype=np.int64))[1]
    monkeypatch.setattr("discreet.query.run.staircase", none)
    monkeypatch.setattr("discreet.query.run.Run.secret", 12345)
    everything = lambda numbers, *_, **__: np.ones(numbers.size, dtype=bool)
    monkeypatch.setattr("discreet.query.keys.kept_by_count", everything)
    plan = private_plan(block(*aggregates, keys=keys), Target(epsilon=40.0, delta=1e-12), OPTIONS[options])
    measures = range(len(plan.moments))
    assert all(plan.allocation.hoped.is_staircase(i) for i in measures)
    other = private_plan(block(*aggregates, keys=(PUBLIC,)), Target(epsilon=20.0), Options()).allocation
    assert not any(one.is_staircase(i) for one in (other, other.hoped) for i in measures)
    table = visits(6, 200, 2)
    with session_of(table) as session:
        whole, _ = steps(session, plan)
    made_for = drawn[:]
    assert len(made_for) == len(whole)
    reached = 0.0
    for unit in range(6):
        rest = table.filter(pc.fill_null(pc.not_equal(table["u"], unit), True))
        with session_of(rest) as session:
            fewer, _ = steps(session, plan)
        for a, b, limit in zip(whole, fewer, made_for, strict=True):
            assert np.count_nonzero(a - b) <= 1
            assert np.max(np.abs(a - b)) <= limit
            reached = max(reached, float(np.max(np.abs(a - b))) / limit)
    assert reached > 0.99


@pytest.mark.parametrize("path", TARGETS)
def test_a_row_changes_no_more_where_every_row_is_a_unit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch, bound=9)
    plan = private_plan(block(*AGGREGATES, keys=(PUBLIC,), row_level=True, rows_per_unit=1), TARGETS[path], Options())
    table = visits(12, 25, 3)
    with session_of(table) as session:
        whole, limits = steps(session, plan)
    for i in range(table.num_rows):
        rest = pa.concat_tables([table.slice(0, i), table.slice(i + 1)])
        with session_of(rest) as session:
            fewer, _ = steps(session, plan)
        for a, b, limit in zip(whole, fewer, limits, strict=True):
            assert np.linalg.norm(a - b, ord=2 if plan.gaussian else 1) <= limit


@pytest.mark.parametrize("epsilon", [1e-4, 1e-7, 1e-9])
@pytest.mark.parametrize("rows", [None, 1], ids=["unit", "row"])
@pytest.mark.parametrize("path", ["gaussian", "laplace"])
def test_a_price_near_nothing_makes_the_steps_of_no_count_too_coarse_for_its_numbers(
    path: str, rows: int | None, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums were once taken in single numbers, and their noise in steps of many."""
    without_noise(monkeypatch, bound=40)  # 2^10 values of a unit
    monkeypatch.setattr("discreet.query.run.Run.secret", 12345)
    many = pa.table({"u": pa.array(np.zeros(500, dtype=int)), "n": pa.array(np.arange(500))})
    nobody = many.slice(0, 0)
    target = Target(epsilon=epsilon) if path == "laplace" else Target(rho=epsilon**2 / 2)
    for aggregate in (AGGREGATES[6], AGGREGATES[0]):
        plan = private_plan(block(aggregate, row_level=rows is not None, rows_per_unit=rows), target, Options())
        with session_of(many if rows is None else many.slice(0, 1)) as session:
            found, (limit,) = steps(session, plan)
        with session_of(nobody) as session:
            none, _ = steps(session, plan)
        change = np.abs(found[0] - none[0]).sum()
        assert change <= limit
        assert change > 0 or aggregate is AGGREGATES[0]  # of a unit's rows less than a step is none


@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), threads=st.integers(1, 4))
def test_order_of_rows_threads_and_pieces_change_nothing_before_the_noise(seed: int, threads: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        without_noise(patch, bound=9)
        patch.setattr("discreet.query.run.Run.secret", 99)
        plan = private_plan(block(*AGGREGATES, keys=(PUBLIC,)), Target(mu=0.5), Options(max_groups=2))
        table = visits(40, 3000, 1)
        shuffled = table.take(np.random.default_rng(seed).permutation(table.num_rows))
        with session_of(table, threads=1) as session:
            first, _ = steps(session, plan)
        pieces = pa.Table.from_batches(shuffled.to_batches(max_chunksize=257))
        with session_of(pieces, threads=threads) as session:
            second, _ = steps(session, plan)
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)


def test_sums_are_exact_where_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.query.measuring import measure

    without_noise(monkeypatch)
    aggregates = (
        Aggregate("count", "a0", "count"),
        Aggregate("sum", "a1", "sum", "nx", bounds=(-5.0, 50.0), kind="integer"),
        Aggregate("avg", "a2", "mean", "nx", bounds=(-5.0, 50.0), kind="integer"),
        Aggregate("stddev", "a3", "spread", "nx", bounds=(-5.0, 50.0), kind="integer"),
        Aggregate("count_distinct", "a4", "values", "nx"),
        Aggregate("count_units", "a5", "units"),
    )
    table = visits(30, 2000, 5)
    with session_of(table) as session:
        got = noisy_table(measure(session, private_plan(block(*aggregates, keys=(PUBLIC,)), Target(mu=1.0), Options())))
        want = session.table(
            "SELECT city AS k0, count(*) AS a0, CAST(sum(n) AS BIGINT) AS a1, avg(n) AS a2, stddev(n) AS a3, "
            "count(DISTINCT n) AS a4, count(DISTINCT u) AS a5 FROM t WHERE u IS NOT NULL GROUP BY 1"
        )
    expected = {row["k0"]: row for row in want.to_pylist()}
    assert got["k0"].to_pylist() == list(PUBLIC.values or ())
    for row in got.to_pylist():
        for name in ("a0", "a1", "a4", "a5"):
            assert row[name] == expected[row["k0"]][name]
        assert row["a2"] == pytest.approx(expected[row["k0"]]["a2"], rel=1e-6)
        assert row["a3"] == pytest.approx(expected[row["k0"]]["a3"], rel=1e-6)


def test_groups_with_few_units_are_not_shown_and_large_ones_are() -> None:
    from discreet.query.measuring import measure

    rows = 3000
    table = pa.table(
        {
            "u": pa.array(np.arange(rows)),
            "city": pa.array(["big"] * (rows - 2) + ["mine", "yours"]),
            "x": pa.array(np.ones(rows)),
            "n": pa.array(np.ones(rows, dtype=int)),
        }
    )
    for target in (Target(epsilon=1.0, delta=1e-9), Target(epsilon=1.0, delta=1e-9)):
        plan = private_plan(block(AGGREGATES[0], keys=(PRIVATE,)), target, Options())
        with session_of(table) as session:
            assert measure(session, plan).keys["k0"].to_pylist() == ["big"]


@pytest.mark.parametrize("aggregate", [AGGREGATES[0], AGGREGATES[2]], ids=["count", "sum"])
@pytest.mark.parametrize("keys", [(), (replace(PUBLIC, of_unit=True),)], ids=["all", "by city"])
@pytest.mark.parametrize("path", TARGETS)
def test_the_sum_of_one_statement_is_that_of_several(
    path: str, keys: tuple, aggregate: Aggregate, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.query import measuring

    without_noise(monkeypatch, bound=14)
    monkeypatch.setattr("discreet.query.run.Run.secret", 7)
    plan = private_plan(block(aggregate, keys=keys), TARGETS[path], Options())
    table = visits(20, 400, 8)
    with session_of(table) as session:
        folded = measuring.measure(session, plan).moments[0]
        monkeypatch.setattr("discreet.query.sums._folds", lambda _: False)
        usual = measuring.measure(session, plan).moments[0]
    assert np.any(folded.values != 0)
    assert folded.values == pytest.approx(usual.values, abs=1e-5)
    for unit in range(20):
        monkeypatch.setattr("discreet.query.sums._folds", lambda _: True)
        rest = table.filter(pc.fill_null(pc.not_equal(table["u"], unit), True))
        with session_of(table) as session:
            whole, limits = steps(session, plan)
        with session_of(rest) as session:
            fewer, _ = steps(session, plan)
        assert np.abs(whole[0] - fewer[0]).sum() <= limits[0]
        if unit == 4:
            break


def test_a_sum_that_is_rounded_once_changes_by_a_step_more_than_the_bound_and_that_is_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A bound of 2^27.5 in steps of 4: the large unit adds 47453132.75 of them to a quarter that is there already.
    without_noise(monkeypatch, bound=110)
    plan = private_plan(block(Aggregate("sum", "a0", "sum", "nx", kind="integer")), Target(epsilon=1.0), Options())
    large = math.floor(2**27.5)
    sums = []
    for table in ({"u": [1], "n": [1]}, {"u": [1, 2], "n": [1, large]}):
        with session_of(pa.table(table)) as session:
            (found,), (limit,) = steps(session, plan)
        sums.append(int(found[0]))
    change = sums[1] - sums[0]
    assert change == math.ceil(large / 4) > 2**27.5 / 4
    assert change <= limit
