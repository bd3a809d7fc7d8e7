"""Intervals: they hold as often as they say, for sums and for ratios, on both paths."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from discreet.noise import staircase
from discreet.query.laws import (
    GAUSSIAN,
    LAPLACE,
    Law,
    NoisySum,
    _reach_of_sum,
    least_median_gamma,
    staircase_law,
    variance_interval,
)

ALPHA = 1e-9
DRAWS = 10_000


def noise(rng: np.random.Generator, scale: float, *, gaussian: bool) -> np.ndarray:
    return rng.normal(0, scale, DRAWS) if gaussian else rng.laplace(0, scale, DRAWS)


def law(gaussian: bool) -> Law:
    return GAUSSIAN if gaussian else LAPLACE


def holds(covered: np.ndarray, confidence: float) -> bool:
    """Neither more nor less often than stated, as far as so many draws can tell."""
    hits = int(covered.sum())
    return bdtr(hits, DRAWS, confidence) > ALPHA and bdtrc(hits - 1, DRAWS, confidence) > ALPHA


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_the_interval_of_a_sum_holds_as_often_as_it_says(gaussian: bool, confidence: float) -> None:
    rng = np.random.default_rng(1)
    low, high = NoisySum(7.0 + noise(rng, 3.0, gaussian=gaussian), 3.0, law(gaussian)).interval(confidence)
    assert holds((low <= 7.0) & (high >= 7.0), confidence)
    assert not holds((low <= 7.0) & (high >= 7.0), confidence - 0.06)


@pytest.mark.parametrize("epsilon", [0.9, 1.0, 3.0])
def test_the_law_of_a_staircase_is_that_of_its_exact_draws(epsilon: float) -> None:
    steps, many = 1 << 20, 20 * DRAWS
    law = staircase_law(epsilon)
    draws = np.abs(staircase(epsilon, steps, round(law.gamma * steps + 0.5), many)) / steps * epsilon
    places = (0.1, 0.5, 1.0, 2.0, 3.5)

    def fits(law: Law, x: float) -> bool:
        hits, tail = int(np.sum(draws > x)), float(law.beyond(x))
        return bool(bdtr(hits, many, tail) > ALPHA and bdtrc(hits - 1, many, tail) > ALPHA)

    assert all(fits(law, x) for x in places)
    assert not all(fits(staircase_law(1.2 * epsilon), x) for x in places)
    assert not all(fits(LAPLACE, x) for x in places)


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("gamma", [0.01, 0.5, 1.0])
def test_quantiles_of_a_staircase_are_where_its_tail_says(epsilon: float, gamma: float) -> None:
    law = Law("staircase", epsilon, gamma)
    for confidence in (0.0, 0.01, 0.3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9):
        found = law.two_sided(confidence)
        assert law.beyond(found) == pytest.approx(1 - confidence, rel=1e-6)
        assert found == pytest.approx(float(law.reach(np.zeros(1), confidence)[0]), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.9, 1.0, 3.0, 3.2, 4.0, 5.0, 10.0, 50.0])
def test_staircase_noise_is_no_larger_than_laplace_noise_in_median_mean_and_interval(epsilon: float) -> None:
    steps = 1 << 20
    law, least = staircase_law(epsilon), Law("staircase", epsilon, least_median_gamma(epsilon))
    assert law.two_sided(0.5) < LAPLACE.two_sided(0.5)
    assert law.two_sided(0.95) <= 1.01 * LAPLACE.two_sided(0.95)
    assert law.mean <= 1.01 * LAPLACE.mean
    assert (law == least) == (epsilon <= 3)  # of the least median as long as that has no price
    if epsilon <= 10:  # as it is drawn
        draws = np.abs(staircase(epsilon, steps, max(1, round(law.gamma * steps + 0.5)), DRAWS)) / steps * epsilon
        assert float(np.mean(draws)) == pytest.approx(law.mean, rel=0.05)
    if epsilon >= 4:  # half of it would be spread over all that a unit can contribute
        assert least.two_sided(0.95) > 1.2 * LAPLACE.two_sided(0.95)


def test_who_pays_more_for_one_number_has_a_shorter_interval() -> None:
    widths = [staircase_law(epsilon).two_sided(0.95) / epsilon for epsilon in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)]
    assert all(more < 0.9 * less for less, more in pairwise(widths))


@pytest.mark.parametrize("epsilon", [0.9, 1.0, 2.0, 3.0])
def test_no_staircase_has_a_smaller_median_than_the_one_that_is_used(epsilon: float) -> None:
    best = least_median_gamma(epsilon)
    medians = {g: Law("staircase", epsilon, g).two_sided(0.5) for g in (best / 2, best * 0.9, best, best * 1.1, 0.99)}
    assert min(medians.values()) == pytest.approx(medians[best])
    assert medians[best] == pytest.approx(epsilon / np.expm1(epsilon))
    assert medians[best] < LAPLACE.two_sided(0.5)


LAWS = {"gaussian": GAUSSIAN, "laplace": LAPLACE, "staircase": staircase_law(1.2)}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("allowed", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_an_interval_hardly_fails_more_often_than_it_says_for_any_loss_that_is_allowed_for_and_does_for_more(
    name: str, allowed: float, confidence: float
) -> None:
    law = LAWS[name]
    low, high = (end[0] for end in NoisySum(np.zeros(1), 2.0, law, np.array([2.0 * allowed])).interval(confidence))

    def fails(loss: float) -> float:
        # The truth is the value, less the noise, plus the loss: outside if the noise is beyond either end.
        ends = np.array([loss - low, high - loss]) / 2.0
        tails = np.where(ends >= 0, law.beyond(np.abs(ends)) / 2, 1 - law.beyond(np.abs(ends)) / 2)
        return float(tails.sum())

    at = [fails(2.0 * allowed * part) for part in (0.0, 0.2, 0.5, 0.8, 1.0)]
    worst, best = at[0], at[2]
    assert worst == pytest.approx(at[-1])
    assert max(at) <= worst * (1 + 1e-9)
    assert min(at) >= best * (1 - 1e-9)
    # half way between the two as often as it says, or more rarely because the worst would be more than a tenth worse
    found = max((worst + best) / 2, worst / 1.1)
    assert found == pytest.approx(1 - confidence) or (low > -1e-9 and found < 1 - confidence)
    assert low > -1e-9 or fails(2.0 * allowed + 2.0) > (1 - confidence) * 1.05
    mirrored = NoisySum(np.zeros(1), 2.0, law, np.array([-2.0 * allowed])).interval(confidence)
    assert (-mirrored[1][0], -mirrored[0][0]) == pytest.approx((low, high))


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("scales", [(3.0, 0.2), (3.0, 1.5), (0.1, 2.0)])
def test_the_interval_of_a_ratio_holds_as_often_as_it_says(gaussian: bool, scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(2)
    top = NoisySum(120.0 + noise(rng, scales[0], gaussian=gaussian), scales[0], law(gaussian))
    bottom = NoisySum(60.0 + noise(rng, scales[1], gaussian=gaussian), scales[1], law(gaussian))
    low, high = top.ratio_interval(bottom, 0.95, shift=10.0)
    covered = np.mean((low <= 12.0) & (high >= 12.0))
    assert 0.94 < covered < 0.96  # four standard deviations are 0.009
    assert np.all(low <= high)


@pytest.mark.parametrize("rows", [0.5, -0.5, -8.0])
def test_an_average_over_rows_of_which_there_may_be_none_can_be_anything(rows: float) -> None:
    low, high = NoisySum(np.array([5.0]), 1.0, GAUSSIAN).ratio_interval(NoisySum(np.array([rows]), 1.0, GAUSSIAN), 0.95)
    assert low[0] == -np.inf
    assert high[0] == np.inf


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("lost", [0.0, 0.3, 1.0])
def test_a_sum_of_two_noisy_sums_holds_nearly_as_often_as_it_says_at_either_end_of_its_allowance(
    gaussian: bool, lost: float
) -> None:
    rng = np.random.default_rng(3)
    first = NoisySum(120.0 - 4.0 * lost + noise(rng, 3.0, gaussian=gaussian), 3.0, law(gaussian), np.full(DRAWS, 4.0))
    second = NoisySum(60.0 - 1.0 * lost + noise(rng, 1.0, gaussian=gaussian), 1.0, law(gaussian), np.full(DRAWS, 1.0))
    low, high = first.sum_interval(second, 5.0, 0.95)
    covered = (low <= 420.0) & (high >= 420.0)
    assert holds(covered, 0.945) if lost in (0.0, 1.0) else np.mean(covered) > 0.95
    mirrored = first.sum_interval(second, -5.0, 0.95)  # of the losses a fifth of the second is left
    assert np.median(mirrored[1] - mirrored[0]) < np.median(high - low)


SPREADS = {  # number, mean, variance, and the scales of the noises of total, number and squares
    "small noise": (1000.0, 27.0, 500.0, (300.0, 10.0, 3e4)),
    "noise of the squares": (1000.0, 27.0, 500.0, (300.0, 10.0, 3e5)),
    "noise of the number": (1000.0, 27.0, 500.0, (300.0, 60.0, 3e4)),
    "far from the centre": (100.0, 50.0, 10.0, (300.0, 2.0, 2e4)),
    "three alike": (1000.0, 0.5, 1.0, (10.0, 10.0, 10.0)),
}


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("case", SPREADS)
def test_the_interval_of_a_variance_holds_as_often_as_it_says(gaussian: bool, case: str) -> None:
    number, mean, variance, scales = SPREADS[case]
    rng = np.random.default_rng(4)
    truths = (number * mean, number, number * (variance + mean**2))
    sums = [
        NoisySum(true + noise(rng, s, gaussian=gaussian), s, law(gaussian))
        for true, s in zip(truths, scales, strict=True)
    ]
    low, high = variance_interval(*sums, 0.95)
    assert 0.94 < np.mean((low <= variance) & (variance <= high)) < 0.965  # four standard deviations are 0.009
    assert np.all(low <= high)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("part", [0.0, 1.0])
def test_a_variance_holds_nearly_as_often_as_it_says_if_two_thirds_of_what_squares_may_lose_are_lost(
    gaussian: bool, part: float
) -> None:
    rng, scales, allowed = np.random.default_rng(5), (30.0, 1.0, 3e4), 9e4
    truths = (27_000.0, 1000.0, 1000 * (500.0 + 27.0**2) - part * allowed * 2 / 3)
    total, number, squares = (
        NoisySum(true + noise(rng, s, gaussian=gaussian), s, law(gaussian))
        for true, s in zip(truths, scales, strict=True)
    )
    low, high = variance_interval(total, number, replace(squares, lost=np.full(DRAWS, allowed)), 0.95)
    assert holds((low <= 500.0) & (high >= 500.0), 0.945)


def test_the_variance_of_a_number_of_rows_that_may_be_zero_can_be_anything() -> None:
    total, number, squares = (NoisySum(np.array([one, one]), 1.0, GAUSSIAN) for one in (5.0, 1.5, 40.0))
    low, high = variance_interval(total, number, squares, 0.95)
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (3.0, 2.0, 2.0), (5.0, 1e-3, 0.0), (2.0, 2.0)])
@pytest.mark.parametrize("gaussian", [True, False])
def test_the_reach_of_a_sum_of_noises_is_that_of_its_draws(scales: tuple[float, ...], gaussian: bool) -> None:
    rng = np.random.default_rng(6)
    drawn = sum(noise(rng, s, gaussian=gaussian) for s in scales)
    reach = _reach_of_sum(scales, np.zeros(1), 0.95, gaussian=gaussian)
    assert holds(np.abs(drawn) <= reach, 0.95)
    assert not holds(np.abs(drawn) <= 0.85 * reach, 0.95)


@pytest.mark.parametrize("which", [GAUSSIAN, LAPLACE])
def test_a_confidence_that_rounds_to_one_has_no_end_and_the_largest_below_has_one(which: Law) -> None:
    assert which.two_sided(1.0) == np.inf
    last = float(np.nextafter(1.0, 0.0))
    assert 8.0 < which.two_sided(last) < 40.0
    assert which.beyond(which.two_sided(last)) == pytest.approx(1 - last, rel=1e-12)
