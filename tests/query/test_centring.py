"""Middles of values without bounds: what the choice of one costs, where it is, and what it does to averages."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, Curator
from discreet.noise.testing import SeededGenerator
from discreet.query.centring import choose_middle, middle_of, scored, with_centres
from discreet.query.moments import Moment

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")

HISTOGRAMS = st.dictionaries(st.integers(-560, 560), st.integers(1, 40), min_size=0, max_size=12)


def law(histogram: dict[int, int], epsilon: float) -> np.ndarray[Any, Any]:
    """The logarithms of the probabilities of all candidates."""
    buckets, units = (np.array([*part], dtype=np.int64) for part in (histogram.keys(), histogram.values()))
    scores, scale = scored(buckets, units, epsilon=epsilon)
    weights = scores.astype(np.float64) * float(scale)
    top = weights.max()
    return np.asarray(weights - top - math.log(np.exp(weights - top).sum()))


@given(histogram=HISTOGRAMS, more=st.integers(-560, 560), epsilon=st.floats(1e-3, 5))
def test_a_unit_changes_the_law_of_the_choice_by_no_more_than_epsilon(
    histogram: dict[int, int], more: int, epsilon: float
) -> None:
    change = law(histogram | {more: histogram.get(more, 0) + 1}, epsilon) - law(histogram, epsilon)
    assert np.abs(change).max() <= epsilon * (1 + 1e-9)
    assert change.max() - change.min() <= epsilon * (1 + 1e-9)  # a bounded range, too


def test_a_unit_may_change_it_by_all_of_that() -> None:
    change = law({-100: 3, 100: 1, 200: 1}, 1.0) - law({-100: 3, 100: 1}, 1.0)
    assert change.max() - change.min() == pytest.approx(1.0, rel=1e-6)


def test_what_is_drawn_has_that_law() -> None:
    histogram, epsilon, draws = {40: 9, 41: 7, -3: 4}, 0.5, 4000
    generator = SeededGenerator(7)
    buckets, units = np.array([*histogram]), np.array([*histogram.values()])
    found = [choose_middle(buckets, units, epsilon=epsilon, generator=generator) for _ in range(draws)]
    expected = np.exp(law(histogram, epsilon)) * draws
    counts = np.bincount(np.array(found) + 560, minlength=expected.size)
    often = expected >= 10
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    rest = (counts[~often].sum() - expected[~often].sum()) ** 2 / expected[~often].sum()
    freedom = int(often.sum())
    assert statistic + rest < freedom + 6 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("value", [140.0, -2015.0, 0.7, 1e6])
def test_the_middle_is_among_the_values_where_many_units_tell_and_near_0_where_few_do(value: float) -> None:
    number = next(n for n in range(-560, 561) if abs(middle_of(n) / value - 1) < 0.025)
    found = [middle_of(choose_middle(np.array([number]), np.array([20_000]), epsilon=0.05)) for _ in range(20)]
    assert found == pytest.approx([value] * 20, rel=0.1)
    few = [middle_of(choose_middle(np.array([number]), np.array([3]), epsilon=0.05)) for _ in range(50)]
    assert np.median(np.abs(few)) < 2


def table(people: int, rows: int, shift: float) -> pa.Table:
    rng = np.random.default_rng(3)
    u = rng.integers(0, people, people * rows)
    x = shift + 4 * rng.standard_normal(u.size)
    return pa.table({"u": u, "g": [f"g{i % 3}" for i in range(u.size)], "x": x, "n": np.rint(x).astype(np.int64)})


@pytest.mark.parametrize("unit", ["u", "row"])
@pytest.mark.parametrize("column", ["x", "n"])
@pytest.mark.parametrize("shift", [140.0, -140.0, 0.0])
def test_averages_and_spreads_without_bounds_are_near_wherever_values_lie(unit: str, column: str, shift: float) -> None:
    data = table(20_000, 5, shift)
    values = data[column].to_numpy()
    columns = {"g": {"keys": ["g0", "g1", "g2"]}}
    with Curator.open(data, name="t", unit=unit, columns=columns, budget=Budget(epsilon=50.0, delta=1e-5)) as curator:
        whole = curator.sql(f"SELECT AVG({column}) AS m, STDDEV({column}) AS s FROM t", epsilon=2.0)
        [(mean, spread)] = whole.fetchall()
        assert mean == pytest.approx(values.mean(), abs=0.3)
        assert spread == pytest.approx(values.std(), abs=0.5)
        grouped = curator.sql(f"SELECT g, AVG({column}) AS m FROM t GROUP BY g", epsilon=2.0).fetchall()
        assert [m for _, m in grouped] == pytest.approx([values.mean()] * 3, abs=1.0)
        again = curator.sql(f"SELECT AVG({column}) AS m, STDDEV({column}) AS s FROM t", epsilon=2.0)
        assert again.repeated
        assert again.fetchall() == [(mean, spread)]
        assert again.intervals(0.9).equals(whole.intervals(0.9))
        assert "They are measured from a middle that is chosen privately" in "".join(whole.report)


def test_intervals_of_averages_without_bounds_hold() -> None:
    rng = np.random.default_rng(11)
    people = 3000
    rows = np.ceil(rng.lognormal(1, 0.7, people)).astype(int)
    values = {"near": rng.normal(140, 4, rows.sum()), "skew": rng.lognormal(3, 0.7, rows.sum())}
    data = pa.table({"u": np.repeat(np.arange(people), rows), **values})
    held = dict.fromkeys(values, 0)
    for _ in range(60):
        with Curator.open(data, name="t", unit="u", budget=Budget(epsilon=50.0), ledger=":memory:") as curator:
            for name, column in values.items():
                [found] = curator.sql(f"SELECT AVG({name}) AS m FROM t", epsilon=1.0).intervals(0.95).to_pylist()
                held[name] += found["m_low"] <= column.mean() <= found["m_high"]
    assert min(held.values()) >= 48  # of 60; with 95 % each that fails once in 10^5 times


ASKED = [
    "SUM(x), STDDEV(x)",
    "SUM(x), COUNT(DISTINCT u), STDDEV(x)",
    "SUM(x), COUNT(*), VARIANCE(x)",
    "AVG(x), COUNT(x), STDDEV(x), SUM(n)",
    "COUNT(*), AVG(n), AVG(x), MEDIAN(x)",
]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("by", ["", " GROUP BY g"])
def test_no_middle_changes_which_sums_and_looks_are_paid_for(asked: str, by: str) -> None:
    text = f"SELECT {asked} FROM t{by}"
    columns = {"g": {"keys": ["g0", "g1", "g2"]}}
    data = table(200, 3, 140.0)
    with Curator.open(data, name="t", unit="u", columns=columns, budget=Budget(epsilon=50.0, delta=1e-5)) as curator:
        (plan,) = curator.explain(text, epsilon=1.0).plans
        moved = with_centres(plan, dict.fromkeys(plan.uncentred, 123.0))
        assert bool(plan.uncentred) == ("SUM(x)" not in asked)
        assert (moved.moments != plan.moments) == bool(plan.uncentred)
        for place, (one, other) in enumerate(zip(plan.moments, moved.moments, strict=True)):
            assert (one.kind, one.argument) == (other.kind, other.argument)
            assert plan.looks_at(f"moment {place}") == moved.looks_at(f"moment {place}")
        assert not curator.sql(text, epsilon=1.0).repeated
        assert curator.sql(text, epsilon=1.0).repeated


def test_bounds_on_distances_from_a_middle_are_not_taken_for_bounds_on_values() -> None:
    data = table(4000, 5, 140.0)
    with Curator.open(data, name="t", unit="u", budget=Budget(epsilon=50.0), ledger=":memory:") as curator:
        for epsilon in (3.1, 3.05, 3.0):
            curator.sql("SELECT AVG(x), STDDEV(x) FROM t", epsilon=epsilon)
        for text in ("SELECT SUM(x) AS s FROM t", "SELECT SUM(x) AS s, AVG(x) AS m FROM t"):
            (plan,) = curator.explain(text, epsilon=1.0).plans
            [(place, known)] = [(one.place, one) for one in plan.known if one.place == "moment 0"]
            assert plan.moments[0].kind == "sum"
            assert not known.earlier, place
        total = curator.sql("SELECT SUM(x) AS s FROM t", epsilon=1.0).item()
        assert total == pytest.approx(data["x"].to_numpy().sum(), rel=0.1)


def test_a_plan_that_would_change_with_a_middle_is_not_run() -> None:
    data = table(100, 2, 5.0)
    with Curator.open(data, name="t", unit="u", budget=Budget(epsilon=50.0), ledger=":memory:") as curator:
        (plan,) = curator.explain("SELECT SUM(x), AVG(n) FROM t", epsilon=1.0).plans
        assert with_centres(plan, {"x1": 3.0}).moments != plan.moments
        wrong = replace(plan, moments=plan.moments[::-1])
        with pytest.raises(RuntimeError, match="priced"):
            with_centres(wrong, {"x1": 3.0})


def test_squares_of_whole_numbers_far_from_their_middle_count() -> None:
    moment = Moment("square", "v", centre=-0.95 * 2**31, integer=True)
    [(found,)] = duckdb.sql(f"SELECT {moment.value()} FROM (SELECT {2**31 - 1}::BIGINT AS v)").fetchall()
    assert int(found) == pytest.approx((2**31 - 1 + 0.95 * 2**31) ** 2)


def test_what_is_shown_as_a_sum_or_has_bounds_needs_no_middle() -> None:
    data = table(100, 2, 5.0)
    budget = Budget(epsilon=50.0)
    with Curator.open(data, name="t", unit="u", budget=budget, ledger=":memory:", bounds_share=0) as curator:
        for text, needed in (
            ("SELECT AVG(x) FROM t", ("x0",)),
            ("SELECT AVG(x), COUNT(x) FROM t", ("x0",)),
            ("SELECT AVG(x), SUM(x) FROM t", ()),
            ("SELECT STDDEV(x), SUM(x) FROM t", ()),
            ("SELECT SUM(x), AVG(n) FROM t", ("x1",)),
            ("SELECT AVG(LEAST(GREATEST(x, 0), 9)) FROM t", ()),
            ("SELECT MEDIAN(x), COUNT(*) FROM t", ()),
        ):
            (plan,) = curator.explain(text, epsilon=1.0).plans
            assert plan.uncentred == needed, text
            others = sum(not known.settled for known in plan.known)
            assert plan.allocation.choices + len(plan.allocation.pots) == others + len(needed)
