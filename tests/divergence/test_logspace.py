"""The log-space functions against mpmath, and at the ends of their domains."""

from __future__ import annotations

import cmath
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence.logspace import (
    exp_minus,
    log1mexp,
    log1p_minus,
    log_diff_exp,
    log_interval_mass,
    log_normal_density,
    mills,
    mills_drop,
    mills_slope,
)

ULP = 2.0**-52
RNG = np.random.default_rng(20240501)


def ulps(got: complex, exact: mp.mpf | mp.mpc) -> float:
    """Relative error in units of the last place."""
    return float(abs(mp.mpmathify(got) - exact) / abs(exact)) / ULP


def exact_mills(x: mp.mpf) -> mp.mpf:
    return mp.sqrt(mp.pi / 2) * mp.erfc(x / mp.sqrt(2)) * mp.exp(x * x / 2)


def complex_points(radius: float, size: int) -> np.ndarray:
    moduli = 10.0 ** RNG.uniform(-12, math.log10(radius), size)
    return moduli * np.exp(1j * RNG.uniform(-np.pi, np.pi, size))


@pytest.mark.parametrize(
    "points",
    [
        complex_points(6.0, 400),
        -(10.0 ** RNG.uniform(-3, 2.8, 200)) + 1j * RNG.uniform(-50, 50, 200),
        np.array([1e-150, 1e-150j, 0.5, -0.5j, 2.0, 2.0j, -2.0 + 1e-9j, 1.9999999999, 2.0000000001]),
    ],
    ids=["disc", "left half plane", "edges"],
)
def test_exp_minus_is_right_to_16_ulp(points: np.ndarray) -> None:
    with mp.workdps(400):
        worst = max(
            ulps(complex(got), mp.expm1(mp.mpmathify(complex(a))) - mp.mpmathify(complex(a)))
            for got, a in zip(exp_minus(points), points, strict=True)
        )
    assert worst <= 16


def test_exp_minus_near_its_other_zero_errs_by_4_ulp_of_its_terms() -> None:
    with mp.workdps(40):
        zero = complex(-1 - mp.lambertw(-mp.exp(-1), 1))
        for nudge in (0, 1e-12, 1e-6j, 1e-3, -1e-1j):
            a = zero + nudge
            exact = mp.exp(mp.mpmathify(a)) - 1 - mp.mpmathify(a)
            assert abs(mp.mpmathify(complex(exp_minus(a))) - exact) <= 4 * ULP * (abs(cmath.exp(a)) + abs(a))


def test_exp_minus_keeps_shape_and_agrees_across_its_blocks() -> None:
    grid = RNG.uniform(-4, 4, (130, 131)) + 1j * RNG.uniform(-4, 4, (130, 131))
    whole = exp_minus(grid)
    assert whole.shape == grid.shape
    one_by_one = np.array([[complex(exp_minus(a)) for a in row] for row in grid[:3]])
    np.testing.assert_allclose(whole[:3], one_by_one, rtol=1e-14)
    assert exp_minus(np.empty((0, 3))).shape == (0, 3)
    assert complex(exp_minus(0.0)) == 0


@given(st.floats(-0.999999, 1e6))
def test_log1p_minus_is_right_to_16_ulp(v: float) -> None:
    if v * v < 1e-300:
        assert abs(float(log1p_minus(v))) <= 1e-299
        return
    with mp.workdps(360):
        assert ulps(float(log1p_minus(v)), mp.log1p(mp.mpf(v)) - mp.mpf(v)) <= 16


def test_log1p_minus_at_the_ends_of_its_domain() -> None:
    assert list(log1p_minus([-1.0, np.inf, 0.0])) == [-np.inf, -np.inf, 0.0]
    assert np.isnan(log1p_minus([-1.5, np.nan])).all()
    mixed = np.linspace(-0.99, 3, 20_000)
    np.testing.assert_allclose(log1p_minus(mixed), np.log1p(mixed) - mixed, atol=5e-16)


@given(st.floats(-700, -1e-300))
def test_log1mexp_is_right_to_4_ulp(x: float) -> None:
    with mp.workdps(650):
        assert ulps(float(log1mexp(x)), mp.log(-mp.expm1(mp.mpf(x)))) <= 4


def test_log1mexp_and_log_diff_exp_at_infinities() -> None:
    assert list(log1mexp([0.0, -np.inf])) == [-np.inf, 0.0]
    assert np.isnan(log1mexp(1.0))
    assert float(log_diff_exp(3.0, 3.0)) == -np.inf
    assert float(log_diff_exp(3.0, -np.inf)) == 3.0
    assert float(log_diff_exp(-np.inf, -np.inf)) == -np.inf
    assert float(log_diff_exp(np.inf, 5.0)) == np.inf
    assert np.isnan(log_diff_exp(1.0, 2.0))
    assert float(log_diff_exp(1e4 + 1.0, 1e4)) == pytest.approx(1e4 + math.log(math.expm1(1)), rel=1e-15)


@given(st.floats(-4, 1e4))
def test_mills_ratio_and_its_slope(x: float) -> None:
    with mp.workdps(60):
        t = mp.mpf(x)
        ratio = exact_mills(t)
        assert ulps(float(mills(x)), ratio) <= 32
        assert ulps(float(mills_slope(x)), 1 - t * ratio) <= 64  # 1.4e-14


@given(x=st.floats(-3, 1e3), width=st.floats(1e-9, 1e3))
def test_mills_drop_keeps_its_digits_for_tiny_widths(x: float, width: float) -> None:
    if x + width < 0:
        width -= x
    with mp.workdps(60):
        a, w = mp.mpf(x), mp.mpf(width)
        assert ulps(float(mills_drop(x, width)), exact_mills(a) - exact_mills(a + w)) <= 64


@given(a=st.floats(-37, 37), width=st.floats(1e-12, 40))
def test_log_interval_mass_in_both_tails_and_for_tiny_intervals(a: float, width: float) -> None:
    b = a + width
    with mp.workdps(450):
        low, high = (a, b) if abs(a) <= abs(b) else (-b, -a)
        tail = lambda x: mp.erfc(mp.mpf(x) / mp.sqrt(2)) / 2
        exact = mp.log(tail(low) - tail(high))
        assert abs(mp.mpf(float(log_interval_mass(a, b))) - exact) <= 2e-15 * (10 + min(abs(low), abs(high)) ** 2)


def test_log_interval_mass_of_half_lines_and_empty_intervals() -> None:
    assert float(log_interval_mass(-np.inf, np.inf)) == 0
    assert float(log_interval_mass(2.0, 2.0)) == -np.inf
    assert np.isnan(log_interval_mass(2.0, 1.0))
    with mp.workdps(30):
        for x in (0.0, 5.0, 38.0, 400.0):
            exact = mp.log(mp.erfc(mp.mpf(x) / mp.sqrt(2)) / 2)
            assert float(log_interval_mass(x, np.inf)) == pytest.approx(float(exact), rel=1e-14)
            assert float(log_interval_mass(-np.inf, -x)) == float(log_interval_mass(x, np.inf))
    assert float(log_normal_density(0.0)) == pytest.approx(-0.5 * math.log(2 * math.pi), rel=1e-15)
