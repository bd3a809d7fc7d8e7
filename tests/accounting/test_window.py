"""The window pair far out: its characteristic function is bounded for all larger heights, and decays with many uses."""

from __future__ import annotations

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
