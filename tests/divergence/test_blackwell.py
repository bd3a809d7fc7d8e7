"""Blackwell's comparison: verdicts that are known, and witnesses that can be checked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence import Comparison, TradeOff, Verdict, compare, logistic_noise
from discreet.errors import InvalidArgument
from divergence.pairs import normalised, pairs, pairs_and_channels

MIRRORED = {
    Verdict.EQUAL: Verdict.EQUAL,
    Verdict.DOMINATES: Verdict.DOMINATED,
    Verdict.DOMINATED: Verdict.DOMINATES,
    Verdict.INCOMPARABLE: Verdict.INCOMPARABLE,
}


def check_witnesses(first: TradeOff, second: TradeOff, found: Comparison) -> None:
    """Inside the witnessing intervals the curves are in the stated order."""
    for intervals, sign in ((found.below, -1), (found.above, 1)):
        for low, high in intervals:
            assert 0 <= low < high <= 1
            inside = low + (high - low) * np.linspace(0.05, 0.95, 19)
            assert (sign * (first(inside) - second(inside)) >= -1e-14).all()
            middle = 0.5 * (low + high)
            assert sign * (float(first(middle)) - float(second(middle))) >= 0


@given(st.floats(0.01, 5), st.floats(0.01, 5))
def test_gaussians_compare_like_their_mus(a: float, b: float) -> None:
    found = compare(TradeOff.gaussian(a), TradeOff.gaussian(b))
    if abs(a - b) > 1e-6:
        assert found.verdict is (Verdict.DOMINATES if a > b else Verdict.DOMINATED)
        ((low, high),) = found.below or found.above
        assert low == 0
        assert high > 0.99
    elif a == b:
        assert found == Comparison(Verdict.EQUAL, (), ())


def test_laplace_beats_its_own_guarantee_but_not_the_gaussian_everywhere() -> None:
    laplace = TradeOff.laplace(1.0)
    bound = compare(TradeOff.from_guarantee(1.0, 0.0), laplace)
    assert bound.verdict is Verdict.DOMINATES
    ((low, high),) = bound.below
    assert (low, high) == pytest.approx((math.exp(-1) / 2, 0.5), abs=1e-4)  # equal outside Laplace's curved part
    crossing = compare(TradeOff.gaussian(1.0), laplace)
    assert crossing.verdict is Verdict.INCOMPARABLE
    assert len(crossing.below) == 2
    ((start, end),) = crossing.above
    assert float(TradeOff.gaussian(1.0)(start)) == pytest.approx(float(laplace(start)), abs=1e-9)
    # symmetric curves cross symmetrically: the missed detection at one crossing is the false alarm at the other
    assert float(laplace(start)) == pytest.approx(end, abs=1e-9)
    check_witnesses(TradeOff.gaussian(1.0), laplace, crossing)


def test_two_guarantees_that_cross_are_incomparable_with_exact_crossings() -> None:
    first, second = TradeOff.from_guarantee(1.0, 0.0), TradeOff.from_guarantee(0.5, 0.1)
    found = compare(first, second)
    assert found.verdict is Verdict.INCOMPARABLE
    # 1 - e alpha = 0.9 - e^0.5 alpha
    crossing = 0.1 / (math.e - math.exp(0.5))
    assert found.above[0] == pytest.approx((0.0, crossing), rel=1e-12)
    assert found.below[0][0] == pytest.approx(crossing, rel=1e-12)
    assert found.above[1][1] == 1.0
    check_witnesses(first, second, found)


def test_a_smooth_curve_and_its_certified_lower_curve() -> None:
    f = TradeOff.shifted(logistic_noise(), shift=1.0)
    found = compare(f, f.below(epsilons=np.linspace(0, 1, 20)))
    assert found.verdict is Verdict.DOMINATED
    assert compare(f, TradeOff.laplace(1.0)).verdict is Verdict.DOMINATED


@given(pairs_and_channels())
def test_a_pair_dominates_everything_made_from_it(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    p, q, channel = case
    after = TradeOff.from_pair(normalised(list(p @ channel)), normalised(list(q @ channel)))
    assert compare(TradeOff.from_pair(p, q), after, tolerance=1e-9).verdict in {Verdict.DOMINATES, Verdict.EQUAL}


@given(pairs(zeros=False), pairs(zeros=False))
def test_verdicts_mirror_and_their_witnesses_hold(
    one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]
) -> None:
    f, g = TradeOff.from_pair(*one), TradeOff.from_pair(*two)
    found, mirrored = compare(f, g), compare(g, f)
    assert mirrored.verdict is MIRRORED[found.verdict]
    np.testing.assert_allclose(mirrored.below, found.above, rtol=1e-9)
    check_witnesses(f, g, found)
    assert compare(f, f).verdict is Verdict.EQUAL


def test_a_difference_in_tails_of_1e_300_is_seen() -> None:
    one, two = TradeOff.from_pair([1e-300, 1.0], [0.0, 1.0]), TradeOff.from_pair([2e-300, 1.0], [0.0, 1.0])
    assert compare(one, two).verdict is Verdict.DOMINATED
    assert compare(one, TradeOff.identity()).verdict is Verdict.DOMINATES


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="tolerance"):
        compare(TradeOff.identity(), TradeOff.identity(), tolerance=-1.0)


def test_a_kink_just_before_which_the_curve_is_steep_is_not_mistaken_for_a_crossing() -> None:
    # 1.5e-8 of missed detection are left at the kink, where the rounding of alpha counts for 1e-9 of them
    p = np.array([0.0, 1 / 65, 6.4e-29 / 65, 64 / 65, 0.0])
    q = np.array([1e-30, 1 / 64, 1.0, 1.0, 1.0])
    p, q = p / p.sum(), q / q.sum()
    q[1] = p[1] / p[3] * q[3]
    q /= q.sum()
    channel = np.array([[1.0, 0.0], [1 - 1e-6, 1e-6], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    comparison = compare(TradeOff.from_pair(p, q), TradeOff.from_pair(p @ channel, q @ channel), tolerance=1e-9)
    assert comparison.verdict in {Verdict.DOMINATES, Verdict.EQUAL}
