"""Randomized response: exact truthfulness, unbiased totals, variances and intervals that hold."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis.strategies import floats, integers
from scipy.special import xlog1py, xlogy

from discreet import Cost, DiscreetError, InvalidArgument
from discreet.audit import check
from discreet.mechanisms import Mechanism, RandomizedResponse
from noise.frequencies import ALPHA, Scripted, p_value

DRAWS = 100_000


@pytest.mark.parametrize(("epsilon", "options"), [(1.0, 2), (0.5, 4), (3.0, 10)])
def test_reports_have_their_law_and_no_other(epsilon: float, options: int) -> None:
    mechanism = RandomizedResponse(epsilon, options=options)
    reports = mechanism.release(np.full(DRAWS, 1)).tolist()

    def law(level: float) -> dict[int, float]:
        total = math.exp(level) + options - 1
        return {v: (math.exp(level) if v == 1 else 1) / total for v in range(options)}

    assert p_value(reports, law(epsilon)) > ALPHA
    assert p_value(reports, law(1.15 * epsilon)) < ALPHA
    assert p_value(reports, law(0.85 * epsilon)) < ALPHA


@given(epsilon=floats(1e-6, 100), options=integers(2, 10**6), bits=integers(1, 300))
def test_the_probability_of_the_truth_is_bracketed_at_every_precision(epsilon: float, options: int, bits: int) -> None:
    mechanism = RandomizedResponse(epsilon, options=options)
    before, ctx.prec = ctx.prec, 1000
    try:
        level = min(Fraction(epsilon), Fraction(repr(epsilon)))
        growth = (arb(level.numerator) / arb(level.denominator)).exp()
        truth = growth / (growth + (options - 1)) * arb(2) ** bits
        low, high = mechanism._bias(bits)
        assert arb(low) <= truth <= arb(high)
        assert high - low <= 3
    finally:
        ctx.prec = before
    assert mechanism.truth / mechanism.other == pytest.approx(math.exp(epsilon), rel=1e-12)
    assert mechanism.truth + (options - 1) * mechanism.other == pytest.approx(1, rel=1e-12)


def test_scalars_give_ints_arrays_give_arrays_of_their_shape() -> None:
    mechanism = RandomizedResponse(1.0, options=3)
    assert isinstance(mechanism.release(2), int)
    reports = mechanism.release(np.zeros((2, 5), dtype=np.int8))
    assert reports.shape == (2, 5)
    assert reports.dtype == np.int64
    assert mechanism.release([0, 1, 2]).shape == (3,)


def test_estimates_are_unbiased_with_the_stated_variance() -> None:
    mechanism = RandomizedResponse(1.0, options=3)
    people = np.repeat([0, 1, 2], [500, 300, 200])
    counts = np.array([mechanism.estimate(mechanism.release(people)).counts for _ in range(2000)])
    assert counts.sum(axis=1) == pytest.approx(1000)
    for v, held in enumerate([500, 300, 200]):
        variance = mechanism.variance(held, reports=1000)
        error = math.sqrt(variance / 2000)
        assert abs(counts[:, v].mean() - held) < 6.1 * error
        assert abs(counts[:, v].mean() - held - 50) > 6.1 * error  # the naive share is off by more than that
        assert abs(counts[:, v].var() / variance - 1) < 6.1 * math.sqrt(2 / 2000)


def test_the_variance_is_that_of_two_binomials() -> None:
    mechanism = RandomizedResponse(0.8, options=5)
    p, q = mechanism.truth, mechanism.other
    exact = (70 * p * (1 - p) + 30 * q * (1 - q)) / (p - q) ** 2
    assert mechanism.variance(70, reports=100) == pytest.approx(exact, rel=1e-12)


def named_law(mechanism: RandomizedResponse, held: int, n: int) -> np.ndarray:
    """The law of how many reports name an option that `held` of n people hold: a convolution of two binomials."""

    def binomial(m: int, p: float) -> np.ndarray:
        k = np.arange(m + 1)
        choose = np.array([math.lgamma(m + 1) - math.lgamma(i + 1) - math.lgamma(m - i + 1) for i in k])
        return np.exp(choose + xlogy(k, p) + xlog1py(m - k, -p))

    return np.convolve(binomial(held, mechanism.truth), binomial(n - held, mechanism.other))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_intervals_cover_every_true_count_as_often_as_stated(epsilon: float, confidence: float) -> None:
    mechanism, n = RandomizedResponse(epsilon, options=3), 40
    found = [mechanism.estimate(np.repeat([0, 1], [c, n - c]), confidence=confidence) for c in range(n + 1)]
    covers = np.array([[e.lower[0] <= held <= e.upper[0] for e in found] for held in range(n + 1)])
    coverage = np.array([named_law(mechanism, held, n) @ covers[held] for held in range(n + 1)])
    assert coverage.min() >= confidence - 1e-12
    assert covers[n // 2].mean() < 1  # the intervals say something


@pytest.mark.parametrize("reports", [1, 25, 400])
def test_the_error_of_an_estimate_holds_for_every_true_count(reports: int) -> None:
    mechanism = RandomizedResponse(1.0)
    for confidence in (0.5, 0.95):
        width = mechanism.estimate_error(confidence, reports=reports)
        for held in {0, reports // 3, reports}:
            named = np.arange(reports + 1)
            estimate = (named - reports * mechanism.other) / mechanism.contrast
            missed = named_law(mechanism, held, reports)[np.abs(estimate - held) > width].sum()
            assert missed <= 1 - confidence + 1e-12


def test_the_error_of_one_report_is_the_smallest_distance_that_holds() -> None:
    mechanism = RandomizedResponse(1.0, options=6)
    p, q = mechanism.truth, mechanism.other
    assert mechanism.error(p * 0.99) == 0
    for steps in range(1, 6):
        assert mechanism.error(p + (steps - 0.5) * q) == steps
    assert RandomizedResponse(1.0).error(0.99) == 1


def test_the_cost_protects_each_answer_against_any_other() -> None:
    mechanism = RandomizedResponse(0.7, options=5)
    assert mechanism.cost == Cost.randomized_response(0.7, options=5, adjacency="replace-one")
    assert Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict()))) == mechanism


@pytest.mark.parametrize("options", [2, 5])
def test_the_audit_finds_nothing(options: int) -> None:
    report = check(RandomizedResponse(1.0, options=options), draws=50_000)
    assert report.passed, str(report)


def test_the_audit_finds_a_truth_told_too_often() -> None:
    wrong = RandomizedResponse(1.1)
    assert not check(release=wrong.release, releases=wrong.releases, cost=Cost.pure(1.0), inputs=(0, 1)).passed


@pytest.mark.parametrize("value", [-1, 3, 1.0, math.nan, "1", None, True, [], [0, 3], [0.5], np.array([-1]), [[None]]])
def test_bad_answers_are_refused_before_any_word_is_drawn_and_not_shown(value: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="value"):
        RandomizedResponse(1.0, options=3).release(value, generator=source)
    assert source.drawn == 0


@pytest.mark.parametrize(
    "changes",
    [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": math.nan}, {"options": 1}, {"options": 2.5}, {"options": 1 << 63}],
    ids=str,
)
def test_bad_parameters_are_refused(changes: dict) -> None:
    with pytest.raises(DiscreetError, match=next(iter(changes))):
        RandomizedResponse(**{"epsilon": 1.0, **changes})


def test_bad_reports_and_confidences_are_refused() -> None:
    mechanism = RandomizedResponse(1.0)
    for reports in ([2], [-1], [0.5], [], "ab"):
        with pytest.raises(DiscreetError, match="reports"):
            mechanism.estimate(reports)
    with pytest.raises(DiscreetError, match="confidence"):
        mechanism.estimate([0, 1], confidence=0.3)
    with pytest.raises(DiscreetError, match="held"):
        mechanism.variance(11, reports=10)


def test_yes_and_no_may_be_given_as_booleans():
    coin = RandomizedResponse(epsilon=30.0)  # flips once in 1e13
    assert coin.release(np.array([True, False, True])).tolist() == [1, 0, 1]
    assert coin.release([False, True]).tolist() == [0, 1]
    assert coin.release(True) == 1
    with pytest.raises(InvalidArgument):
        RandomizedResponse(epsilon=1.0, options=3).release(np.array([True]))


def test_that_somebody_answered_is_not_hidden():
    with pytest.raises(InvalidArgument, match="number of reports is public"):
        RandomizedResponse(epsilon=1.0, adjacency="add-remove")
