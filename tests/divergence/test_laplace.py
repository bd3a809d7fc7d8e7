"""The Laplace pair against mpmath and against its own defining integrals."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence import (
    hockey_stick_laplace,
    kl_laplace,
    log_hockey_stick_laplace,
    renyi_laplace,
    total_variation_laplace,
    tradeoff_laplace,
)
from discreet.errors import InvalidArgument

SHIFTS = st.floats(-8, 2).map(lambda x: 10.0**x)
ORDERS = (
    st.floats(1e-6, 1000)
    | st.floats(1e-30, 1)
    | st.floats(-15, -1).map(lambda x: 1 + 10.0**x)
    | st.floats(-15, -1).map(lambda x: 1 - 10.0**x)
    | st.sampled_from([0.5, 0.75, 1.0, 2.0])
)


def exact_renyi(order: float, shift: float) -> mp.mpf:
    a, s = mp.mpf(order), mp.mpf(shift)
    if a == 1:
        return s + mp.exp(-s) - 1
    h, w = s / 2, (2 * a - 1) * s / 2
    return mp.log(mp.exp(-h) * (mp.cosh(w) + h * (mp.sinh(w) / w if w else 1))) / (a - 1)


@given(order=ORDERS, shift=SHIFTS)
def test_renyi_is_right_to_1e_14(order: float, shift: float) -> None:
    with mp.workdps(120):
        true = exact_renyi(order, shift)
        assert abs(mp.mpf(float(renyi_laplace(order, shift=shift))) - true) <= 1e-14 * true


def test_renyi_is_the_integral_of_its_definition() -> None:
    with mp.workdps(25):
        for order, shift in [(2.0, 1.0), (1.5, 3.0), (0.3, 2.0), (7.0, 0.5)]:
            total = mp.quad(
                lambda x, a=order, s=shift: mp.exp(-a * abs(x - s) - (1 - a) * abs(x)) / 2,
                [-mp.inf, 0, shift, mp.inf],
            )
            assert float(renyi_laplace(order, shift=shift)) == pytest.approx(
                float(mp.log(total) / (order - 1)), rel=1e-13
            )


def test_the_published_form_of_the_renyi_divergence() -> None:
    # [Mironov 2017, Prop. 6] with lambda = 1/shift
    a, s = 4.0, 0.7
    form = math.log(a / (2 * a - 1) * math.exp(s * (a - 1)) + (a - 1) / (2 * a - 1) * math.exp(-s * a)) / (a - 1)
    assert float(renyi_laplace(a, shift=s)) == pytest.approx(form, rel=1e-14)


def test_limits() -> None:
    assert list(renyi_laplace([0.0, 0.5, 1.0, 2.0, math.inf], shift=0.0)) == [0] * 5
    assert list(renyi_laplace([0.5, 1.0, 2.0, math.inf], shift=math.inf)) == [math.inf] * 4
    assert float(renyi_laplace(math.inf, shift=0.3)) == 0.3
    assert float(renyi_laplace(1e-300, shift=0.3)) == pytest.approx(1e-300 * float(kl_laplace(shift=0.3)), rel=1e-14)
    assert float(renyi_laplace(1e9, shift=0.3)) == pytest.approx(0.3, rel=1e-7)
    assert float(kl_laplace(shift=1e-150)) == pytest.approx(5e-301, rel=1e-14)
    assert list(hockey_stick_laplace([-math.inf, 0.0, math.inf], shift=math.inf)) == [1, 1, 0]
    assert list(hockey_stick_laplace([-math.inf, 0.0, math.inf], shift=0.0)) == [1, 0, 0]
    assert list(log_hockey_stick_laplace([0.0, 1.0, 2.0], shift=1.0))[1:] == [-math.inf, -math.inf]
    assert list(tradeoff_laplace([0.0, 0.5, 1.0], shift=math.inf)) == [0, 0, 0]


@given(epsilon=st.floats(-5, 5), shift=SHIFTS)
def test_hockey_stick_is_the_mass_above_the_threshold(epsilon: float, shift: float) -> None:
    # sup over half lines x > t of P(x > t) - e^epsilon Q(x > t), whose best t is (epsilon + shift)/2 inside (0, shift)
    value = float(hockey_stick_laplace(epsilon, shift=shift))
    with mp.workdps(40):
        e, s = mp.mpf(epsilon), mp.mpf(shift)
        tail = lambda x: mp.exp(-x) / 2 if x > 0 else 1 - mp.exp(x) / 2
        if abs(e) < s:
            t = (e + s) / 2
            true = tail(t - s) - mp.exp(e) * tail(t)
        else:
            true = max(mp.mpf(0), 1 - mp.exp(e))
        assert abs(value - true) <= 4e-15 * max(abs(true), mp.mpf("1e-300"))
    if value > 0:
        assert float(log_hockey_stick_laplace(epsilon, shift=shift)) == pytest.approx(
            math.log(value), rel=1e-12, abs=1e-15
        )


def test_a_delta_of_1e_300_keeps_its_digits() -> None:
    shift, gap = 1e-280, 1e-300
    assert float(hockey_stick_laplace(shift - 2 * gap, shift=shift)) == pytest.approx(gap, rel=1e-3)
    assert float(hockey_stick_laplace(0.0, shift=2e-300)) == pytest.approx(1e-300, rel=1e-15)
    assert float(total_variation_laplace(shift=2e-300)) == pytest.approx(1e-300, rel=1e-15)
    assert float(log_hockey_stick_laplace(0.0, shift=2e-300)) == pytest.approx(-300 * math.log(10), rel=1e-15)


@given(alpha=st.floats(0, 1), shift=st.floats(0, 50))
def test_tradeoff_is_its_own_inverse_and_below_the_diagonal(alpha: float, shift: float) -> None:
    missed = float(tradeoff_laplace(alpha, shift=shift))
    assert 0 <= missed <= 1 - alpha
    if shift < 30:  # beyond, 1 - f rounds away
        again = float(tradeoff_laplace(missed, shift=shift))
        assert again == pytest.approx(alpha, abs=1e-15 * math.exp(shift) + 1e-14)


def test_tradeoff_at_the_corners() -> None:
    corner = math.exp(-1.0) / 2
    np.testing.assert_allclose(
        tradeoff_laplace([0.0, corner, 0.5, 1.0], shift=1.0), [1.0, 0.5, corner, 0.0], rtol=1e-15
    )


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="shift"):
        hockey_stick_laplace(0.0, shift=-1.0)
    with pytest.raises(InvalidArgument, match="epsilon"):
        hockey_stick_laplace(math.nan, shift=1.0)
    with pytest.raises(InvalidArgument, match="order"):
        renyi_laplace(-0.5, shift=1.0)
    with pytest.raises(InvalidArgument, match="alpha"):
        tradeoff_laplace(-0.1, shift=1.0)
