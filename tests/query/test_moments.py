"""What a row adds to the sums that averages and variances are made of, and from where it is measured."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Budget, Curator
from discreet.query.moments import moments_of
from discreet.query.options import Options
from discreet.query.plan import Aggregate
from discreet.query.private import private_plan
from discreet.query.target import Target
from query.tables import block

ENGINE = duckdb.connect()
ENDS = st.floats(-1e12, 1e12, allow_subnormal=False)


@settings(max_examples=150, deadline=None)
@given(ENDS, st.floats(1e-6, 1e12), st.lists(st.floats(0, 1), max_size=8), st.booleans())
def test_no_row_adds_more_than_is_stated(low: float, width: float, places: list[float], integer: bool) -> None:
    high = low + width
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return
    spread = Aggregate(
        "variance", "a0", "v", "x", bounds=(low, high), kind="integer" if integer else "float", middle=True
    )
    values = [low, high, (low + high) / 2, math.nextafter(low, math.inf), math.nextafter(high, -math.inf)]
    values += [low + place * width for place in places] + [-math.inf, math.inf, math.nan, 1e300, -1e300]
    ENGINE.register("written", pa.table({"x": pa.array([*values, None])}))
    total, _, square = moments_of(spread, (spread,))
    for moment in (total, square):
        for coarser in (0, 5):
            for double in (False, True):
                sql = f"SELECT {moment.value(coarser, double=double)} FROM written"
                found = [value for (value,) in ENGINE.sql(sql).fetchall() if value is not None]
                assert len(found) == len(values) - 1  # all but NaN
                assert max(abs(value) for value in found) <= moment.steps_of_row(coarser)
    assert square.steps_of_row(0) * square.quantum <= (width / 2) ** 2 / 2 * (1 + 1e-6)


ALONE = [
    ({"rows_per_unit": 1}, Options()),
    ({"row_level": True, "rows_per_unit": 1}, Options()),
    ({}, Options(max_groups=1, max_rows=4)),
]


@pytest.mark.parametrize(("facts", "options"), ALONE)
def test_values_are_measured_from_the_middle_where_a_row_is_the_measure(facts, options) -> None:
    plan = private_plan(
        block(Aggregate("stddev", "a0", "s", "xx", bounds=(0.0, 100.0)), **facts), Target(epsilon=1.0), options
    )
    assert [(moment.kind, moment.centre, moment.row_bound) for moment in plan.moments] == [
        ("sum", 50.0, 50.0),
        ("present", 0.0, 1.0),
        ("square", 50.0, 1250.0),
    ]


def test_values_are_measured_from_the_end_next_to_0_where_a_bound_is_chosen() -> None:
    """Those of a wide range are mostly near 0, and a unit of many rows is far smaller from there."""
    plan = private_plan(
        block(Aggregate("stddev", "a0", "s", "xx", bounds=(0.0, 100.0))), Target(epsilon=1.0), Options()
    )
    assert [moment.centre for moment in plan.moments] == [0.0, 0.0, 0.0]
    assert [moment.lift for moment in plan.moments] == [0.0, 0.0, 0.0]


def test_a_sum_alone_is_one_number_and_beside_an_average_two() -> None:
    total = Aggregate("sum", "a0", "s", "x", bounds=(0.0, 100.0), middle=True)
    mean = replace(total, function="avg", column="a1")
    assert [moment.kind for moment in moments_of(total, (total,))] == ["sum"]
    assert [(moment.kind, moment.centre) for moment in moments_of(total, (total, mean))] == [
        ("sum", 50.0),
        ("present", 0.0),
    ]
    assert moments_of(total, (total, mean)) == moments_of(mean, (total, mean))


@pytest.mark.parametrize("unit", ["u", "row"])
@pytest.mark.parametrize("bounds", [(0, 100), (-30, 100), (20, 90)])
def test_averages_and_spreads_of_one_row_each_are_those_of_the_rows(unit: str, bounds: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    x = np.clip(rng.normal(45, 12, 20_000), *bounds)
    rows = pa.table({"u": np.arange(len(x)), "x": x})
    limits = {} if unit == "row" else {"rows_per_unit": 1}
    with Curator.open(
        {"t": rows},
        unit=unit,
        columns={"x": {"bounds": bounds}},
        budget=Budget(epsilon=90.0),
        ledger=":memory:",
        **limits,
    ) as curator:
        asked = "SELECT AVG(x) AS m, SUM(x) AS s, VARIANCE(x) AS v, STDDEV_POP(x) AS d FROM t"
        [found] = curator.sql(asked, epsilon=40.0).intervals(0.999999).to_pylist()
    for name, truth in {"m": x.mean(), "s": x.sum(), "v": x.var(ddof=1), "d": x.std()}.items():
        assert found[name] == pytest.approx(truth, rel=0.01)
        assert found[f"{name}_low"] <= truth <= found[f"{name}_high"]
        assert found[f"{name}_high"] - found[f"{name}_low"] < 0.05 * truth


@pytest.mark.parametrize("value", [1e-4, 4e-6, 1.3e-3])
def test_small_values_without_bounds_lie_in_their_interval(value: float) -> None:
    """They are rounded to multiples of 2^-16, all of these in the same direction."""
    rows = pa.table({"u": np.arange(50_000), "y": np.full(50_000, value)})
    with Curator.open(
        {"t": rows}, unit="u", budget=Budget(epsilon=90.0), ledger=":memory:", rows_per_unit=1
    ) as curator:
        answer = curator.sql("SELECT AVG(y) AS m FROM t", epsilon=20.0)
        [found] = answer.intervals(0.999999).to_pylist()
    assert found["m_low"] <= value <= found["m_high"]
    assert any("rounded to multiples of 2^-16" in line for line in answer.report)


def test_large_values_without_bounds_come_with_a_caution() -> None:
    rows = pa.table({"u": np.arange(5000), "ms": np.full(5000, 1.7e12), "s": np.full(5000, 1.7e3)})
    with Curator.open({"t": rows}, unit="u", budget=Budget(epsilon=90.0), ledger=":memory:") as curator:
        large = curator.sql("SELECT AVG(ms) AS m FROM t", epsilon=5.0)
        assert "avg(ms): values beyond ±2^31 count as that, and there may be such: state bounds" in large.cautions
        assert "there may be such: state bounds" in str(large)
        assert curator.sql("SELECT AVG(s) AS m FROM t", epsilon=5.0).cautions == ()


def test_averages_of_whole_numbers_are_not_rounded() -> None:
    for bounds, rounding in (((0.0, 100.0), 0.0), ((0.0, 2.0**32), 1.0), (None, 0.0)):
        mean = Aggregate("avg", "a0", "m", "x", bounds=bounds, kind="integer", middle=True)
        assert moments_of(mean, (mean,))[0].rounding == rounding
    mean = Aggregate("avg", "a0", "m", "x", kind="float")
    assert moments_of(mean, (mean,))[0].rounding == 2.0**-17


@pytest.mark.parametrize("unit", ["u", "row"])
def test_a_constant_that_is_next_to_nothing_is_added_up(unit: str) -> None:
    rows = pa.table({"u": np.arange(300)})
    with Curator.open({"t": rows}, unit=unit, budget=Budget(epsilon=90.0), ledger=":memory:") as curator:
        for number in ("5e-324", "1e-290", "1e-20", "0"):
            [(total,)] = curator.sql(f"SELECT SUM({number}) FROM t", epsilon=5.0).fetchall()
            assert abs(total) < 1
