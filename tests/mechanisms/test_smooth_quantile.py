"""Smooth sensitivity: its definition, smoothness over random neighbours, the exact delta of its noise, the median."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtrc, ndtri

from discreet import DiscreetError, InvalidArgument
from discreet.mechanisms import Mechanism, SmoothQuantile
from discreet.mechanisms.smooth_sensitivity import Levels, laplace_growth, level_of_rank
from noise.statistics import p_value

ALPHA = 1e-9
WIDTH = 400
LEVELS = Levels(3, WIDTH, Fraction(1, 5))
DATA = st.lists(st.integers(0, WIDTH), max_size=14)
RANKS = st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(4, 5)])


def level(values: list[int], share: Fraction) -> tuple[int, int]:
    """The quantile and its level."""
    y, rank = np.array(sorted(values), dtype=np.int64), math.ceil(share * len(values))
    return (int(y[rank - 1]) if rank else 0), level_of_rank(y, rank, lower=0, upper=WIDTH, levels=LEVELS)


@settings(max_examples=200, deadline=None)
@given(values=DATA, share=RANKS)
def test_the_level_is_the_one_of_the_definition(values: list[int], share: Fraction) -> None:
    y, rank = sorted(values), math.ceil(share * len(values))
    at = lambda i: 0 if i < 1 else WIDTH if i > len(y) else y[i - 1]
    expected = 0
    for t in range(LEVELS.units.size + 5):
        bound = max(at(rank + a) - at(rank + a - t - 1) for a in range(t + 2))
        first = next(j for j in range(LEVELS.units.size) if LEVELS.scale(j) >= bound)
        expected = max(expected, first - t)
    assert level(values, share)[1] == expected


@settings(max_examples=400, deadline=None)
@given(values=DATA, share=RANKS, place=st.integers(0, 13), new=st.integers(0, WIDTH), change=st.integers(0, 2))
def test_one_person_moves_the_level_by_one_and_the_quantile_by_its_scale(
    values: list[int], share: Fraction, place: int, new: int, change: int
) -> None:
    place = min(place, len(values))
    other = [*values[:place], *([new] if change else []), *values[place + (change != 1) :]]  # removed, added, replaced
    (f, j), (g, k) = level(values, share), level(other, share)
    assert abs(j - k) <= 1
    assert abs(f - g) <= min(LEVELS.scale(j), LEVELS.scale(k))


def test_levels_grow_by_no_more_than_stated_and_reach_the_end() -> None:
    for growth in (Fraction(1, 5), Fraction(467, 10_000), Fraction(1, 10**5)):
        units = [int(unit) for unit in Levels(256, 1 << 30, growth).units]
        assert all(b > a and b <= a * (1 + growth) for a, b in itertools.pairwise(units[:5000]))
        assert units[-1] >= (1 << 30) << 24


def excess(epsilon: float, shift: int, scale: mpmath.mpf, other: mpmath.mpf) -> mpmath.mpf:
    """The exact hockey-stick divergence of discrete Laplace laws at 0 and `shift` with these scales."""
    growth = mpmath.exp(epsilon)
    reach = int(40 * max(scale, other)) + shift
    c, d = mpmath.tanh(1 / (2 * scale)), mpmath.tanh(1 / (2 * other))
    p = lambda z: c * mpmath.exp(-mpmath.mpf(abs(z)) / scale)
    q = lambda z: d * mpmath.exp(-mpmath.mpf(abs(z - shift)) / other)
    return mpmath.fsum(max(mpmath.mpf(0), p(z) - growth * q(z)) for z in range(-reach, reach + shift))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (2.0, 0.05), (0.5, 1e-2), (6.0, 1e-6)])
def test_the_noise_keeps_delta_exactly_at_the_worst_scales_and_shifts(epsilon: float, delta: float) -> None:
    sensitivity = 6
    multiplier = mpmath.mpf(2) / epsilon
    growth = laplace_growth(
        Fraction(epsilon), Fraction(delta), least_scale=Fraction(sensitivity) * 2 / Fraction(epsilon)
    )
    wide = 1 + mpmath.mpf(growth.numerator) / growth.denominator
    with mpmath.workdps(25):
        worst = mpmath.mpf(0)
        for shift in range(sensitivity + 1):
            b = multiplier * sensitivity
            for scale, other in ((b, b), (b * wide, b), (b, b * wide)):
                worst = max(worst, excess(epsilon, shift, scale, other))
    assert worst <= delta
    assert worst > delta / 2  # and does not waste it
    assert growth > epsilon / (2 * math.log(2 / delta)) * 1.3


def test_more_growth_would_break_delta() -> None:
    growth = laplace_growth(Fraction(1), Fraction(1, 1000), least_scale=Fraction(12))
    with mpmath.workdps(25):
        wide = 12 * (1 + mpmath.mpf(growth.numerator) / growth.denominator * mpmath.mpf("1.05"))
        assert excess(1.0, 6, wide, mpmath.mpf(12)) > 1e-3


def made(**changes: Any) -> SmoothQuantile:
    return SmoothQuantile(**{"lower": 0.0, "upper": 1000.0, "epsilon": 1.0, "delta": 1e-6, **changes})


def normal(n: int) -> np.ndarray[Any, Any]:
    return 500 + 100 * ndtri((np.arange(n) + 0.5) / n)


@pytest.mark.parametrize("changes", [{}, {"quantile": 0.1}, {"adjacency": "replace-one"}])
def test_the_noise_has_the_scale_of_the_data_and_no_other(changes: dict[str, Any]) -> None:
    mechanism, data, draws = made(**changes), normal(5001), 1500
    centre = np.sort(data)[math.ceil(mechanism.quantile * 5001) - 1]
    answers = np.array([mechanism.release(data) for _ in range(draws)])
    steps = np.round((answers - centre) / mechanism.granularity).astype(np.int64)
    scale = mechanism.scale_for(data) / mechanism.granularity
    below = lambda b: lambda k: np.where(k < 0, np.exp(np.minimum(k, 0) / b) / 2, 1 - np.exp(-np.maximum(k, 0) / b) / 2)
    assert p_value(steps, below(scale)) > ALPHA
    for wrong in (0.7, 1.45):
        assert p_value(steps, below(scale * wrong)) < ALPHA
    # every answer is on the lattice
    assert (answers / mechanism.granularity == np.round(answers / mechanism.granularity)).all()


def test_the_noise_shrinks_with_more_data_and_vanishes_on_a_common_value() -> None:
    assert made().scale_for(normal(100_001)) < made().scale_for(normal(1001)) / 50
    same = np.full(1000, 123.456)
    assert made().scale_for(same) <= 2 * 1000 * 2.0**-21
    assert abs(made().release(same) - 123.456) < 0.1


def test_quantiles_and_clamping_follow_the_stated_rules() -> None:
    mechanism = made(epsilon=50.0, delta=0.1)
    big = lambda values: np.repeat(values, 2000)
    assert mechanism.release(big([1.0, 2.0, 3.0])) == pytest.approx(2.0, abs=0.01)
    assert mechanism.release(big([1.0, 2.0, 2.5, 4.0])) == pytest.approx(2.0, abs=600)
    assert made(epsilon=50.0, delta=0.1, quantile=0.9).release(big([1.0, 2.0, 3.0])) == pytest.approx(3.0, abs=0.01)
    assert mechanism.release(big([-math.inf, -7.0, 3.0])) == pytest.approx(0.0, abs=0.01)
    assert mechanism.release(np.append(big([5.0]), [math.nan] * 9000)) == pytest.approx(5.0, abs=0.01)
    assert all(0 <= made().release([]) <= 1000 for _ in range(50))


def test_rows_may_come_in_any_order_and_missing_ones_do_not_count() -> None:
    data = normal(3001)
    assert made().scale_for(data) == made().scale_for(data[::-1]) == made().scale_for(np.append(data, math.nan))


def test_selecting_near_ranks_gives_what_sorting_everything_gives() -> None:
    mechanism = made()
    data = normal(20_001)[np.argsort(np.sin(np.arange(20_001)))]
    width = mechanism._ends[1] - mechanism._ends[0]
    steps = np.sort(np.asarray(mechanism.lattice.place(data.clip(0, 1000))) - mechanism._ends[0])
    whole = level_of_rank(steps, 10_001, lower=0, upper=width, levels=mechanism._levels)
    assert mechanism._checked(data) == (int(steps[10_000]), whole)


def test_the_error_for_data_holds_and_half_of_it_does_not() -> None:
    mechanism, data = made(), normal(5001)
    answers = np.array([mechanism.release(data) for _ in range(1000)])
    missed = lambda reach: int((np.abs(answers - 500) > reach).sum())
    assert bdtrc(missed(mechanism.error_for(data, 0.9)) - 1, 1000, 0.1) > ALPHA
    assert bdtrc(missed(mechanism.error_for(data, 0.9) / 2) - 1, 1000, 0.1) < ALPHA
    assert mechanism.error() == 1000.0


def exponential_mechanism_error(data: np.ndarray[Any, Any], epsilon: float, confidence: float) -> float:
    """The exact quantile of |answer - median| for the exponential mechanism on a grid of 2^17 points of [0, 1000]."""
    grid = np.linspace(0, 1000, 2**17 + 1)
    below, upto = np.searchsorted(data, grid, "left"), np.searchsorted(data, grid, "right")
    score = -np.maximum(0, np.maximum(below - data.size / 2, data.size / 2 - upto))
    weight = np.exp(epsilon * (score - score.max()))  # the score changes by 1/2 with one person
    distance = np.abs(grid - np.median(data))
    order = np.argsort(distance)
    return float(distance[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), confidence)])


def test_the_exponential_mechanism_is_better_on_spread_data() -> None:
    # what the documentation says: it needs no delta either
    for n in (1001, 10_001):
        assert exponential_mechanism_error(normal(n), 1.0, 0.95) < made().error_for(normal(n), 0.95) / 4


def test_it_is_stored_without_loss() -> None:
    mechanism = made(quantile=0.25, adjacency="replace-one")
    assert Mechanism.from_dict(mechanism.to_dict()) == mechanism


@pytest.mark.parametrize(
    "changes",
    [
        {"lower": 1000.0},
        {"lower": math.nan},
        {"upper": math.inf},
        {"upper": -1.0},
        {"epsilon": 0.0},
        {"epsilon": 1e-7},
        {"epsilon": math.nan},
        {"delta": 0.0},
        {"delta": 1.0},
        {"quantile": 0.0},
        {"quantile": 1.0},
        {"adjacency": "swap"},
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        made(**changes)


@pytest.mark.parametrize("data", [None, 3.0, "abc", ["a"], [None], np.zeros((2, 2)), [1j], [[1.0], [2.0, 3.0]]])
def test_bad_data_is_refused(data: Any) -> None:
    with pytest.raises(DiscreetError):
        made().release(data)


def test_bounds_far_from_zero_keep_their_precision() -> None:
    mechanism = made(lower=1e15, upper=1e15 + 1000)
    data = 1e15 + np.round(normal(20_001))
    assert abs(mechanism.release(data) - (1e15 + 500)) < 100
