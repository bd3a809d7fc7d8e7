"""Counts, histograms, sums, means and variances: the cost is the composition, intervals hold as often as they say."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, bdtrc

from discreet import Cost
from discreet.audit.refusals import CountingGenerator
from discreet.errors import InvalidArgument
from discreet.mechanisms import Count, Estimate, Estimator, Gaussian, Histogram, Laplace, Mean, Sum, Variance
from discreet.mechanisms.estimators.ratio import ratio_interval
from discreet.noise.testing import SeededGenerator

ALPHA = 1e-9
NAN, INF = math.nan, math.inf
COLUMN = np.random.default_rng(7).normal(50, 12, 4000)

ESTIMATORS: list[Any] = [
    Count(epsilon=1),
    Count(epsilon=1, delta=1e-6),
    Histogram(edges=[0, 40, 60, 100], epsilon=1),
    Histogram(edges=[0, 40, 60, 100], rho=0.1, adjacency="replace-one"),
    Sum(0, 100, epsilon=1),
    Sum(-20, 100, epsilon=1, delta=1e-6, adjacency="replace-one"),
    Mean(0, 100, epsilon=1),
    Mean(0, 100, epsilon=1, delta=1e-6),
    Mean(0, 100, noise_multiplier=3, adjacency="replace-one"),
    Variance(0, 100, epsilon=1),
    Variance(0, 100, rho=0.1),
    Variance(0, 100, epsilon=1, adjacency="replace-one"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_the_cost_is_the_composition_of_the_statistics_and_meets_the_level(estimator: Any) -> None:
    parts = [mechanism.cost for mechanism in estimator.mechanisms.values()]
    assert estimator.cost == sum(parts[1:], parts[0])
    if estimator.noise == "laplace":
        assert 0.999 < estimator.cost.pure_epsilon() * estimator.noise_multiplier <= 1
    else:
        whole = Cost.gaussian(estimator.noise_multiplier, adjacency=estimator.adjacency)
        for epsilon in (0.1, 0.5, 1.0):
            assert estimator.cost.delta(epsilon) <= whole.delta(epsilon) * (1 + 1e-9) + 1e-15
    assert estimator.cost.adjacency == estimator.adjacency


@pytest.mark.parametrize("kind", [Mean, Variance, Sum])
def test_epsilon_and_delta_are_met_and_hardly_undercut(kind: Any) -> None:
    assert 0.9999 < kind(0, 1, epsilon=1, delta=1e-6).cost.epsilon(1e-6) <= 1 + 1e-9
    assert 0.9999 < kind(0, 1, epsilon=1).cost.epsilon(0) <= 1
    assert 0.0999 < kind(0, 1, rho=0.1).cost.zcdp() <= 0.1


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_json_gives_the_estimator_back(estimator: Any) -> None:
    assert Estimator.from_dict(json.loads(json.dumps(estimator.to_dict()))) == estimator


def truth(estimator: Any) -> Any:
    clamped = COLUMN if isinstance(estimator, Count | Histogram) else np.clip(COLUMN, estimator.lower, estimator.upper)
    exact = {
        Count: lambda: len(clamped),
        Histogram: lambda: np.histogram(clamped, [0, 40, 60, 100])[0],
        Sum: lambda: math.fsum(clamped),
        Mean: clamped.mean,
        Variance: clamped.var,
    }
    return exact[type(estimator)]()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_intervals_hold_the_true_value_as_often_as_they_say(estimator: Any) -> None:
    if isinstance(estimator, Count) and estimator.public_rows:
        return
    runs, held = 400, 0
    exact = np.atleast_1d(truth(estimator))[0]
    for _ in range(runs):
        low, high = estimator.release(COLUMN).interval(0.8)
        held += bool(np.atleast_1d(low)[0] <= exact <= np.atleast_1d(high)[0])
    assert bdtr(held, runs, 0.8) > ALPHA, f"{held} of {runs} intervals hold the value"
    if isinstance(estimator, Sum | Mean):  # exact, not only valid: 0.92 would be too much
        assert bdtrc(held - 1, runs, 0.81) > ALPHA, f"{held} of {runs} intervals hold the value: too wide"


def test_too_narrow_intervals_would_be_noticed() -> None:
    estimator, runs = Mean(0, 100, epsilon=1), 1000
    exact = truth(estimator)
    held = 0
    for _ in range(runs):
        estimate = estimator.release(COLUMN)
        low, high = estimate.interval(0.8)
        middle = (low + high) / 2
        held += bool(abs(exact - middle) <= 0.7 * (high - low) / 2)
    assert bdtr(held, runs, 0.8) < ALPHA


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_results_do_not_depend_on_the_order_of_the_rows_bit_for_bit(estimator: Any) -> None:
    turned = COLUMN[np.random.default_rng(3).permutation(len(COLUMN))]
    one, other = (estimator.release(rows, generator=SeededGenerator(5)) for rows in (COLUMN, turned))
    assert np.array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_bad_data_is_refused_before_randomness_is_used(estimator: Any) -> None:
    for bad in estimator.bad_values():
        generator = CountingGenerator()
        with pytest.raises(InvalidArgument):
            estimator.release(bad, generator=generator)
        assert generator.taken == 0


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_no_rows_give_an_estimate_all_the_same(estimator: Any) -> None:
    estimate = estimator.release([])
    low, high = estimate.interval(0.9)
    assert np.isfinite(np.asarray(estimate)).all()
    assert np.all(low <= high)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Count(),
        lambda: Count(epsilon=0),
        lambda: Count(epsilon=-1),
        lambda: Count(epsilon=NAN),
        lambda: Count(epsilon=1, delta=0),
        lambda: Count(epsilon=1, delta=1),
        lambda: Count(delta=1e-6),
        lambda: Count(epsilon=1, rho=1),
        lambda: Count(rho=0),
        lambda: Count(rho=INF),
        lambda: Count(epsilon=1, noise="gaussian"),
        lambda: Count(rho=1, noise="laplace"),
        lambda: Count(noise_multiplier=-1),
        lambda: Count(noise_multiplier=1, noise="uniform"),
        lambda: Count(epsilon=1, adjacency="neighbours"),
        lambda: Histogram(epsilon=1),
        lambda: Histogram(epsilon=1, edges=[1]),
        lambda: Histogram(epsilon=1, edges=[1, 1]),
        lambda: Histogram(epsilon=1, edges=[1, NAN]),
        lambda: Histogram(epsilon=1, edges=[1, 2], categories=["a"]),
        lambda: Histogram(epsilon=1, categories=[]),
        lambda: Histogram(epsilon=1, categories=["a", "a"]),
        lambda: Histogram(epsilon=1, categories=["a", 1]),
        lambda: Histogram(epsilon=1, categories="ab"),
        lambda: Sum(1, 1, epsilon=1),
        lambda: Sum(2, 1, epsilon=1),
        lambda: Mean(0, INF, epsilon=1),
        lambda: Mean(0, NAN, epsilon=1),
        lambda: Mean(0, "1", epsilon=1),
        lambda: Mean(0, 1, epsilon=1, missing=2),
        lambda: Variance(0, 1, epsilon=1, delta=-1),
    ],
)
def test_bad_parameters_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()


def test_rows_that_are_no_numbers_follow_the_stated_rule() -> None:
    strong = {"noise_multiplier": 0.004, "noise": "laplace"}
    rows = [NAN, INF, -INF, 5.0, 1e308]
    assert float(Sum(0, 10, **strong).release(rows)) == pytest.approx(0 + 10 + 0 + 5 + 10, abs=2.0)
    assert float(Sum(0, 10, missing=7, **strong).release(rows)) == pytest.approx(32, abs=2.0)
    assert float(Mean(0, 10, **strong).release(rows)) == pytest.approx(5, abs=0.5)
    assert list(Histogram(edges=[0, 5, 10], **strong).release([NAN, INF, 0.0, 5.0, 10.0, 10.1])) == [1, 2]
    assert float(Count(**strong).release(rows)) == 5


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.floats(allow_nan=True), max_size=20), row=st.floats(allow_nan=True), data=st.data())
def test_one_row_moves_exact_statistics_by_at_most_their_sensitivity(
    rows: list[float], row: float, data: st.DataObject
) -> None:
    for adjacency in ("add-remove", "replace-one"):
        estimator = Variance(-3, 8.5, epsilon=1, adjacency=adjacency)
        rows = rows or [1.0]
        other = [*rows, row] if adjacency == "add-remove" else [row, *rows[1:]]
        one, two = estimator._exact(rows), estimator._exact(other)
        for name, mechanism in estimator.mechanisms.items():
            assert abs(Fraction(one[name]) - Fraction(two[name])) <= Fraction(mechanism.sensitivity)


def test_errors_shrink_with_the_number_of_rows() -> None:
    widths = {}
    for n in (500, 50_000):
        low, high = Mean(0, 100, epsilon=1).release(np.resize(COLUMN, n)).interval(0.95)
        widths[n] = high - low
    assert widths[50_000] < widths[500] / 30


def test_the_mean_under_replace_one_uses_the_public_number_of_rows() -> None:
    estimator = Mean(0, 100, epsilon=1, adjacency="replace-one")
    assert list(estimator.mechanisms) == ["sum"]
    assert estimator.release(COLUMN).statistics["rows"] == len(COLUMN)
    assert "rows" in Mean(0, 100, epsilon=1).mechanisms


def test_under_add_remove_nothing_but_noisy_statistics_is_shown() -> None:
    for estimator in ESTIMATORS:
        shown = set(estimator.release(COLUMN).statistics)
        assert shown == set(estimator.mechanisms) | ({"rows"} if estimator.public_rows and "rows" in shown else set())


def test_under_replace_one_a_count_of_rows_is_refused_and_of_statements_is_not() -> None:
    estimator = Count(epsilon=1, adjacency="replace-one")
    with pytest.raises(InvalidArgument, match="public"):
        estimator.release([1, 2, 3])
    assert isinstance(estimator.release([True, False]), Estimate)


def test_the_ratio_interval_of_gaussian_noise_is_fiellers() -> None:
    top, bottom = Gaussian(noise_multiplier=1, sensitivity=30), Gaussian(noise_multiplier=1, sensitivity=1)
    low, high = ratio_interval(400.0, 50.0, noises=(top, bottom), miss=0.05, within=(-100, 100))
    # (400 - 50 t)^2 = z^2 (900 + t^2)
    z2 = 3.841458820694124
    roots = np.sort(np.roots([2500 - z2, -40000, 160000 - 900 * z2]))
    assert [low, high] == pytest.approx(roots, rel=1e-4)


def test_the_ratio_interval_knows_nothing_when_the_count_may_be_zero() -> None:
    noises = (Laplace(epsilon=1, sensitivity=1), Laplace(epsilon=1, sensitivity=1))
    assert ratio_interval(5.0, 1.0, noises=noises, miss=0.05, within=(-3, 3)) == (-3, 3)
    low, high = ratio_interval(5.0, 100.0, noises=noises, miss=0.05, within=(-3, 3))
    assert -0.1 < low < 0.05 < high < 0.2


def test_an_estimate_reads_as_a_number_or_an_array() -> None:
    estimate = Mean(0, 100, epsilon=1).release(COLUMN)
    assert float(estimate) == estimate.value
    assert "95 %" in repr(estimate)
    table = Histogram(categories=["a", "b", "c", "d", "e"], epsilon=1).release(["a", "b", "a"])
    assert np.asarray(table).shape == (5,)
    assert len(table) == 5
    assert [float(x) for x in table] == [table[i] for i in range(5)]
    assert repr(table).endswith("…>")
    with pytest.raises(InvalidArgument):
        float(table)
    with pytest.raises(InvalidArgument):
        table.interval(1.0)
    with pytest.raises(InvalidArgument, match="depends on the data"):
        Mean(0, 1, epsilon=1).error()
