"""The Gaussian pair against mpmath, from ordinary parameters to deltas of 1e-300 and far below."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence import (
    hockey_stick_gaussian,
    kl_gaussian,
    log_hockey_stick_gaussian,
    renyi_gaussian,
    total_variation_gaussian,
    tradeoff_gaussian,
)
from discreet.errors import InvalidArgument

MUS = st.floats(-5, 3).map(lambda x: 10.0**x)


def exact(epsilon: float, mu: float) -> mp.mpf:
    e, m = mp.mpf(epsilon), mp.mpf(mu)
    upper = lambda x: mp.erfc(x / mp.sqrt(2)) / 2
    return upper(e / m - m / 2) - mp.exp(e) * upper(e / m + m / 2)


@given(mu=MUS, a=st.floats(-8, 37.5), sign=st.sampled_from([1, 1, 1, -1]))
def test_hockey_stick_is_right_to_1e_12_down_to_1e_300(mu: float, a: float, sign: int) -> None:
    epsilon = sign * max(0.0, mu * a + mu * mu / 2)
    with mp.workdps(60):
        true = exact(epsilon, mu)
        if true < mp.mpf("1e-300"):
            return
        assert abs(mp.mpf(float(hockey_stick_gaussian(epsilon, mu=mu))) - true) <= 1e-12 * true


@pytest.mark.parametrize("mu", [1e-5, 0.37, 1.0, 31.7, 1000.0])
def test_deep_tails_do_not_inherit_the_rounding_of_their_thresholds(mu: float) -> None:
    # the density at a = 37 turns a relative error r of a into 1369 r: thresholds are carried in twice the precision
    with mp.workdps(60):
        for a in (30.1, 34.7, 36.3, 36.9):
            epsilon = mu * a + mu * mu / 2
            true = exact(epsilon, mu)
            assert abs(mp.mpf(float(hockey_stick_gaussian(epsilon, mu=mu))) - true) <= 1e-14 * true


@given(mu=MUS, epsilon=st.floats(0, 30) | st.floats(-300, 1).map(lambda x: 10.0**x))
def test_hockey_stick_at_ordinary_epsilons(mu: float, epsilon: float) -> None:
    with mp.workdps(400 if epsilon < 1e-10 else 60):
        true = exact(epsilon, mu)
        if true < mp.mpf("1e-300"):
            return
        assert abs(mp.mpf(float(hockey_stick_gaussian(epsilon, mu=mu))) - true) <= 1e-12 * true


@given(mu=MUS, a=st.floats(30, 447))
def test_log_hockey_stick_reaches_minus_1e5(mu: float, a: float) -> None:
    epsilon = mu * a + mu * mu / 2
    with mp.workdps(60):
        true = mp.log(exact(epsilon, mu))
        assert abs(mp.mpf(float(log_hockey_stick_gaussian(epsilon, mu=mu))) - true) <= 1e-13 * abs(true)


def test_log_hockey_stick_close_to_one_is_minus_the_complement() -> None:
    # delta = 1 - (Phi(a) + density(a) M(b)), about 4e-84 from one
    with mp.workdps(200):
        true = mp.log(exact(5e-6, 38.865))
        assert float(log_hockey_stick_gaussian(5e-6, mu=38.865)) == pytest.approx(float(true), rel=1e-12)
        true = mp.log(exact(-3.0, 2.0))
        assert float(log_hockey_stick_gaussian(-3.0, mu=2.0)) == pytest.approx(float(true), rel=1e-12)


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 1.0), (0.5, 3.0), (3.0, 0.0), (1e-5, 2e-5), (40.0, 700.0)])
def test_log_and_plain_hockey_stick_agree(mu: float, epsilon: float) -> None:
    plain = float(hockey_stick_gaussian(epsilon, mu=mu))
    assert float(log_hockey_stick_gaussian(epsilon, mu=mu)) == pytest.approx(math.log(plain), rel=1e-12, abs=1e-14)


def test_limits() -> None:
    assert list(hockey_stick_gaussian([0.0, 1.0, math.inf], mu=0.0)) == [0, 0, 0]
    assert float(hockey_stick_gaussian(-1.0, mu=0.0)) == pytest.approx(1 - math.exp(-1))
    assert list(hockey_stick_gaussian([0.0, 1e9], mu=math.inf)) == [1, 1]
    assert float(hockey_stick_gaussian(-math.inf, mu=1.0)) == 1
    assert float(hockey_stick_gaussian(math.inf, mu=1.0)) == 0
    assert list(log_hockey_stick_gaussian([0.0, math.inf], mu=0.0)) == [-math.inf, -math.inf]
    assert float(log_hockey_stick_gaussian(0.0, mu=math.inf)) == 0


def test_epsilons_and_mus_broadcast() -> None:
    grid = hockey_stick_gaussian(np.linspace(-1, 3, 5)[:, None], mu=np.array([0.0, 0.3, 2.0, math.inf]))
    assert grid.shape == (5, 4)
    assert float(grid[3, 1]) == pytest.approx(float(hockey_stick_gaussian(2.0, mu=0.3)), rel=1e-14)


@given(mu=MUS, epsilons=st.lists(st.floats(-20, 50), min_size=2, max_size=6))
def test_delta_falls_with_epsilon_and_rises_with_mu(mu: float, epsilons: list[float]) -> None:
    levels = np.sort(epsilons)
    deltas = hockey_stick_gaussian(levels, mu=mu)
    assert (np.diff(deltas) <= 1e-15).all()
    assert (hockey_stick_gaussian(levels, mu=1.01 * mu) >= deltas * (1 - 1e-14)).all()
    assert ((deltas >= 0) & (deltas <= 1)).all()


def test_renyi_kl_and_total_variation() -> None:
    assert float(renyi_gaussian(3.0, mu=2.0)) == 6.0
    assert list(renyi_gaussian([0.0, 1.0, math.inf], mu=1.0)) == [0.0, 0.5, math.inf]
    assert list(renyi_gaussian([0.0, math.inf], mu=0.0)) == [0.0, 0.0]
    assert float(kl_gaussian(mu=3.0)) == 4.5
    assert float(total_variation_gaussian(mu=1e-300)) == pytest.approx(1e-300 / math.sqrt(2 * math.pi), rel=1e-14)
    assert float(total_variation_gaussian(mu=1.3)) == pytest.approx(
        float(hockey_stick_gaussian(0.0, mu=1.3)), rel=1e-13
    )


@given(threshold=st.floats(-3, 37), mu=st.floats(0, 30))
def test_tradeoff_is_the_missed_detection_at_the_threshold_of_the_false_alarm(threshold: float, mu: float) -> None:
    with mp.workdps(30):
        alpha = float(mp.ncdf(-mp.mpf(threshold)))
        missed = mp.ncdf(mp.mpf(threshold) - mp.mpf(mu))
        assert abs(mp.mpf(float(tradeoff_gaussian(alpha, mu=mu))) - missed) <= 1e-12 * missed


def test_tradeoff_at_a_published_point() -> None:
    # threshold t = 1.5 between N(0,1) and N(1,1): alpha = Phi(-1.5), beta = Phi(0.5)
    with mp.workdps(30):
        alpha, beta = float(mp.ncdf(-1.5)), float(mp.ncdf(0.5))
    assert float(tradeoff_gaussian(alpha, mu=1.0)) == pytest.approx(beta, rel=1e-14)
    assert list(tradeoff_gaussian([0.0, 1.0], mu=1.0)) == [1.0, 0.0]
    assert list(tradeoff_gaussian([0.0, 0.5, 1.0], mu=math.inf)) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("call", [hockey_stick_gaussian, log_hockey_stick_gaussian])
def test_bad_arguments_are_refused(call: object) -> None:
    with pytest.raises(InvalidArgument, match="mu"):
        call(1.0, mu=-1.0)  # type: ignore[operator]
    with pytest.raises(InvalidArgument, match="mu"):
        call(1.0, mu=math.nan)  # type: ignore[operator]
    with pytest.raises(InvalidArgument, match="epsilon"):
        call(math.nan, mu=1.0)  # type: ignore[operator]
    with pytest.raises(InvalidArgument, match="order"):
        renyi_gaussian(-1.0, mu=1.0)
    with pytest.raises(InvalidArgument, match="mu"):
        renyi_gaussian(1.0, mu=math.nan)
    with pytest.raises(InvalidArgument, match="alpha"):
        tradeoff_gaussian(1.1, mu=1.0)
