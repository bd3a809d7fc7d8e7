"""The window pair far out: its characteristic function is bounded for all larger heights, and decays with many uses."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Cost
from discreet.accounting.pairs.window import WindowPair


@settings(max_examples=100, deadline=None)
@given(
    log_level=st.floats(-8, 2),
    tilt=st.floats(-20, 20),
    log_reach=st.floats(-6, 6),
    beyond=st.lists(st.floats(0, 50), min_size=1, max_size=20),
)
def test_the_decay_bound_holds_at_all_larger_heights(
    log_level: float, tilt: float, log_reach: float, beyond: list[float]
) -> None:
    a = float(np.exp(log_level))
    power, reach = tilt / max(a, 0.2), float(np.exp(log_reach)) / a
    with np.errstate(all="ignore"):
        bound = float(WindowPair(a, with_atoms=True).log_decay(power, np.array([reach]))[0])
    z = power + 1j * reach * (1 + np.array([0.0, *beyond]))
    half = z - 0.5
    # E_Q[w^z] in closed form: two atoms, and e^{-a/2}/4 times the integral of e^{(z - 1/2) l}
    value = 0.5 * np.exp(-z * a) + 0.5 * np.exp((z - 1) * a)
    value += 0.25 * np.exp(-a / 2) * (np.exp(half * a) - np.exp(-half * a)) / half
    assert float(np.log(np.abs(value)).max()) <= bound + 1e-12


@pytest.mark.parametrize("count", [10**8, 10**9, 10**11])
def test_very_many_weak_laplace_releases_are_read_to_ten_digits_and_are_almost_gaussian(count: int) -> None:
    b = 1e4 * (count / 10**8) ** 0.5  # the total variance of the loss, count / b^2, is 1 in each case
    cost = count * Cost.laplace(b)
    low, high = cost.bounds(delta=1e-6)
    assert high - low <= 1e-10 * high
    assert low == pytest.approx(Cost.gaussian_dp(1.0).epsilon(1e-6), rel=1e-3)


@settings(max_examples=300, deadline=None)
@given(
    log_level=st.floats(-12, 2),
    power=st.one_of(
        st.integers(-64, 64).map(float),
        st.floats(-9, 3).map(lambda digits: 1 + 10**digits),
        st.floats(-9, 3).map(lambda digits: -(10**digits)),
    ),
    with_atoms=st.booleans(),
)
def test_single_powers_are_bracketed_by_their_closed_form_and_agree_with_quadrature(
    log_level: float, power: float, with_atoms: bool
) -> None:
    pair = WindowPair(10**log_level, with_atoms)
    with mp.workdps(80):
        a, bent = mp.mpf(pair.epsilon), mp.mpf(power) - mp.mpf("0.5")
        inner = mp.sinh(bent * a) / bent
        # Laplace noise: [Mironov 2017, Prop. 6], times e^{-a/2}; bounded range: the same without its atoms
        mean = mp.exp(-a / 2) * (mp.cosh(bent * a) + inner / 2) if with_atoms else inner / (2 * mp.sinh(a / 2))
        exact = mp.log(mean) if power not in (0, 1) else mp.mpf(0)
        value, error = pair.log_power_mean(np.array([complex(power)]))
        low, high = mp.mpf(float(value[0].real - error[0])), mp.mpf(float(value[0].real + error[0]))
        assert exact <= high
        if pair.epsilon * (abs(power) + 1) > 600:  # by quadrature, which may give up and bound it
            return
        assert low <= exact
        assert float(error[0]) <= 1e-11 * float(exact)
    many, doubts = pair.log_power_mean(np.full(9, complex(power)))  # too many for the closed form
    assert abs(many[0] - value[0]) <= doubts[0] + error[0]


def test_a_power_of_zero_or_one_is_a_total_mass() -> None:
    for with_atoms in (False, True):
        value, error = WindowPair(0.7, with_atoms).log_power_mean(np.array([0j, 1 + 0j]))
        assert value.tolist() == [0, 0]
        assert error.tolist() == [0, 0]
