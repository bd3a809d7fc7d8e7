"""Middles of values without bounds: what the choice of one costs, where it is, and what it does to averages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, Curator
from discreet.noise.testing import SeededGenerator
from discreet.query.centring import choose_middle, middle_of, scored

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


def test_what_is_shown_as_a_sum_or_has_bounds_needs_no_middle() -> None:
    data = table(100, 2, 5.0)
    with Curator.open(data, name="t", unit="u", budget=Budget(epsilon=50.0), ledger=":memory:") as curator:
        for text, needed in (
            ("SELECT AVG(x) FROM t", ("x0",)),
            ("SELECT AVG(x), COUNT(x) FROM t", ("x0",)),
            ("SELECT AVG(x), SUM(x) FROM t", ()),
            ("SELECT STDDEV(x), SUM(x) FROM t", ("x0",)),
            ("SELECT SUM(x), AVG(n) FROM t", ("x1",)),
            ("SELECT AVG(LEAST(GREATEST(x, 0), 9)) FROM t", ()),
            ("SELECT MEDIAN(x), COUNT(*) FROM t", ()),
        ):
            (plan,) = curator.explain(text, epsilon=1.0).plans
            assert plan.uncentred == needed, text
            others = sum(not known.settled for known in plan.known)
            assert plan.allocation.choices + len(plan.allocation.pots) == others + len(needed)
