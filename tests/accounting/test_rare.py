"""Rare large losses: narrow where the plain contour has no certificate, and in agreement with every other path."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.gaussian import GaussianPair, SampledGaussianPair
from discreet.accounting.rare import rare_for_delta, rare_for_epsilon
from discreet.accounting.saddle import Unreachable
from reference.direct import sampled_gaussian_repeated

NARROW = 1e-8

HARD = [
    (0.8934, 1.5e-6, 5_146, 6.7e-31),
    (0.6, 1e-4, 2, 1e-7),
    (0.6, 1e-4, 3, 1e-7),
    (0.6, 1e-4, 10, 1e-7),
    (1.573, 3.6e-5, 5, 1e-8),
    (1.6807, 1.325e-6, 89, 1.8e-47),
    (4.2449, 9.234e-5, 4, 1.18e-6),
    (1.1078, 1.763e-5, 12_251_868, 1.28e-38),
    (0.29464, 1.479e-6, 4_854_235, 2.98e-31),
    (0.1498, 1.476e-3, 47, 9.87e-38),
    (2.654, 1.795e-3, 153, 2.28e-24),
    (1.9492, 1.401e-6, 148_426, 5.63e-32),
]
"""(sigma, rate, count, delta) whose brackets were wide, up to [0, 1.2]."""


def sampled(sigma: float, rate: float, count: int) -> Cost:
    return count * Cost.gaussian(sigma).sampled(rate=rate)


@pytest.mark.parametrize(("sigma", "rate", "count", "delta"), HARD)
def test_rare_losses_are_read_to_eight_digits(sigma: float, rate: float, count: int, delta: float) -> None:
    lower, upper = sampled(sigma, rate, count).bounds(delta=delta)
    assert 0 < lower <= upper <= lower * (1 + NARROW)


@pytest.mark.parametrize(
    ("sigma", "rate", "delta"),
    [
        (0.6, 1e-4, 1e-7),
        (1.2106, 3.41e-4, 9.47e-41),
        (0.2895, 0.0675, 5.4e-14),
        (6.25, 1.03e-6, 3.88e-25),
        (16.21, 1.08e-6, 2.68e-13),
        (1.206, 2.09e-6, 2.82e-10),
    ],
)
def test_two_steps_hold_the_nested_integral(sigma: float, rate: float, delta: float) -> None:
    ctx.prec = 200
    reader = rare_for_delta([(SampledGaussianPair(sigma, rate), 2)], Direction.FORWARD, delta)
    _, epsilon = reader.epsilon_bounds(delta, delta)
    low, high = reader.bounds(epsilon)
    truth = sampled_gaussian_repeated(sigma, rate, "remove", arb(epsilon), count=2)
    assert arb(low) <= truth <= arb(high)
    assert high - low <= 1e-6 * high


@pytest.mark.parametrize("shift", [0.97, 1.0, 1.04])
def test_a_reader_is_right_away_from_the_epsilon_it_was_made_for(shift: float) -> None:
    ctx.prec = 200
    reader = rare_for_epsilon([(SampledGaussianPair(0.9, 1e-3), 2)], Direction.FORWARD, 1.0)
    low, high = reader.bounds(shift)
    assert arb(low) <= sampled_gaussian_repeated(0.9, 1e-3, "remove", arb(shift), count=2) <= arb(high)


@settings(max_examples=10, deadline=None)
@given(
    sigma=st.floats(-1.6, 3.0).map(math.exp),
    rate=st.floats(-13.0, -0.7).map(math.exp),
    count=st.floats(0.7, 14.0).map(lambda x: round(math.exp(x))),
    delta=st.floats(-100.0, -12.0).map(math.exp),
    shift=st.floats(0.95, 1.05),
)
def test_readers_made_for_different_epsilons_agree(
    sigma: float, rate: float, count: int, delta: float, shift: float
) -> None:
    # the split moves with the epsilon it is made for, so mass moves between the three parts
    pairs = [(SampledGaussianPair(sigma, rate), count)]
    with np.errstate(all="ignore"):  # as every reading does
        try:
            first = rare_for_delta(pairs, Direction.FORWARD, delta)
            second = rare_for_epsilon(pairs, Direction.FORWARD, first.line.start * shift)
        except (Unreachable, ArithmeticError, ValueError):
            assume(False)
        for epsilon in (first.line.start, second.line.start):
            one, other = first.bounds(epsilon), second.bounds(epsilon)
            assert max(one[0], other[0]) <= min(one[1], other[1])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    sigma=st.floats(0.4, 4.0),
    rate=st.floats(-11.0, -3.0).map(math.exp),
    count=st.integers(2, 300),
    delta=st.floats(-60.0, -14.0).map(math.exp),
)
@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
def test_the_grid_agrees(sigma: float, rate: float, count: int, delta: float) -> None:
    cost = sampled(sigma, rate, count)
    one, other = cost.bounds(delta=delta), cost.bounds(delta=delta, method="grid")
    assert max(one[0], other[0]) <= min(one[1], other[1])


MIXTURES = [
    (3 * Cost.gaussian(0.7).sampled(rate=1e-4) + 5 * Cost.gaussian(1.5).sampled(rate=1e-3), 1e-9),
    (3 * Cost.gaussian(0.6).sampled(rate=1e-4) + Cost.gaussian(20.0), 1e-12),
    (2 * Cost.gaussian(0.6).sampled(rate=1e-4) + Cost.laplace(5.0), 1e-9),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cost", "delta"), MIXTURES)
@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
def test_the_grid_agrees_on_mixtures(cost: Cost, delta: float) -> None:
    lower, upper = cost.bounds(delta=delta)
    low, high = cost.bounds(delta=delta, method="grid")
    assert max(lower, low) <= min(upper, high)


@pytest.mark.parametrize(("cost", "delta"), MIXTURES)
def test_mixtures_are_narrow(cost: Cost, delta: float) -> None:
    lower, upper = cost.bounds(delta=delta)
    assert upper - lower <= NARROW * upper


def test_delta_and_epsilon_invert_each_other() -> None:
    cost = sampled(0.8934, 1.5e-6, 5_146)
    low, high = cost.bounds(epsilon=0.425)
    assert high - low <= 1e-6 * high
    assert cost.bounds(delta=high)[0] <= 0.425 <= cost.bounds(delta=low)[1]


def test_only_what_can_be_split_is_split() -> None:
    step = SampledGaussianPair(1.0, 0.01)
    with pytest.raises(Unreachable):
        rare_for_delta([(step, 2)], Direction.BACKWARD, 1e-5)
    with pytest.raises(Unreachable):
        rare_for_delta([(GaussianPair(1.0), 1)], Direction.FORWARD, 1e-5)


def test_more_steps_cost_more_across_the_reader_that_answers() -> None:
    # 2 .. 12 steps pass from the rare reader to others: exact comparison of certified ends
    ends = [sampled(0.9, 2e-3, count).bounds(delta=1e-8) for count in (1, 2, 3, 5, 8, 12)]
    for (low, _), (_, high) in itertools.pairwise(ends):
        assert Fraction(low) <= Fraction(high)
