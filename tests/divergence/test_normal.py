"""Tails and quantiles of the normal law against mpmath, from one end of the floats to the other."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence.normal import log_tail, log_tails, mills_ratio, score, scores, tails

ULP = 2.0**-52


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(60):
        yield


def exact_tail(x: float) -> mp.mpf:
    return mp.erfc(mp.mpf(x) / mp.sqrt(2)) / 2


def exact_log_tail(x: float) -> mp.mpf:
    return mp.log(exact_tail(x)) if x > 0 else mp.log1p(-exact_tail(-x))


def exact_mills(x: float) -> mp.mpf:
    return exact_tail(x) * mp.exp(mp.mpf(x) ** 2 / 2) * mp.sqrt(2 * mp.pi)


@given(st.one_of(st.floats(0, 12), st.floats(-37.6, 0), st.floats(-18, 4).map(lambda power: 10**power)))
def test_mills_ratio_is_right_to_four_units_of_the_last_place(x: float) -> None:
    exact = exact_mills(x)
    if exact > 1.79e308:
        assert mills_ratio(x) == math.inf
    else:
        assert abs(mills_ratio(x) - exact) <= 4 * ULP * exact


@given(st.one_of(st.floats(-36, 40), st.floats(-300, 4).map(lambda power: 10**power)))
def test_the_logarithm_of_a_tail_is_right_on_both_sides(x: float) -> None:
    exact = exact_log_tail(x)
    allowed = (1e-15 * (1 + x * x) if x < 0 else 2e-15) * abs(exact)
    assert abs(log_tail(x) - exact) <= allowed
    assert abs(float(log_tails(np.array([x]))[0]) - exact) <= allowed


@given(st.floats(0, 37))
def test_a_tail_is_right_as_long_as_it_is_no_subnormal_number(x: float) -> None:
    exact = exact_tail(x)
    assert abs(float(tails(np.array([x]))[0]) - exact) <= 1e-15 * (1 + x * x) * exact


@given(
    st.one_of(
        st.floats(-5, 0, exclude_max=True),
        st.floats(-20, 5).map(lambda power: -(10**power)),
        st.floats(-12, 0).map(lambda power: math.log(0.5) + 10**power / 2),
    ).filter(lambda value: value < 0)
)
def test_a_score_has_the_mass_that_was_asked_for(log_mass: float) -> None:
    # the answer moves by M(x) times the error of the logarithm
    found = score(log_mass)
    off = (exact_log_tail(found) - mp.mpf(log_mass)) * exact_mills(found)
    assert abs(off) <= 1e-15 * (1 + abs(found))
    assert float(scores(np.array([log_mass]))[0]) == pytest.approx(found, rel=1e-15, abs=1e-15)


def test_arrays_keep_their_shape_and_mixed_signs_their_sides() -> None:
    points = np.linspace(-30.0, 30.0, 24).reshape(2, 3, 4)
    masses = log_tails(points)
    assert masses.shape == scores(masses).shape == points.shape
    right = points > -7  # further left the mass is 1 to the last digit
    assert np.allclose(scores(masses)[right], points[right], rtol=1e-12, atol=1e-12)


def test_the_ends_of_the_ranges() -> None:
    assert mills_ratio(math.inf) == 0.0
    assert mills_ratio(-math.inf) == mills_ratio(-38.0) == math.inf
    assert math.isnan(mills_ratio(math.nan))
    assert log_tail(math.inf) == -math.inf
    assert log_tail(-math.inf) == 0.0
    assert log_tails(np.array([math.inf, -math.inf])).tolist() == [-math.inf, 0.0]
    assert [score(-math.inf), score(0.0)] == scores(np.array([-math.inf, 0.0])).tolist() == [math.inf, -math.inf]
    assert score(math.log(0.5)) == pytest.approx(0.0, abs=1e-15)
    assert tails(np.array([0.0, 50.0, math.inf])).tolist() == pytest.approx([0.5, 0.0, 0.0], rel=1e-15, abs=0.0)
