"""Neyman-Pearson tests: the curves of the slides, predictive values and Bayes errors."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence import (
    ThresholdTest,
    TradeOff,
    bayes_error,
    gaussian_test,
    laplace_test,
    positive_predictive_value,
)
from discreet.errors import InvalidArgument
from divergence.pairs import pairs

THRESHOLDS = np.linspace(-5, 8, 53)
TESTS = [gaussian_test(1.3), laplace_test(0.9)]


def test_gaussian_errors_are_q_functions() -> None:
    # noise sigma = 2 around 0 or 1: P_FA = Q(t/sigma), P_MD = Q((1 - t)/sigma)
    sigma, test = 2.0, gaussian_test(0.5)
    with mp.workdps(30):
        for t in (-3.0, 0.0, 0.5, 2.5, 70.0):
            assert float(test.false_alarm(t / sigma)) == pytest.approx(float(mp.ncdf(-t / sigma)), rel=1e-13)
            assert float(test.missed_detection(t / sigma)) == pytest.approx(float(mp.ncdf((t - 1) / sigma)), rel=1e-13)
            assert float(test.detection(t / sigma)) == pytest.approx(float(mp.ncdf((1 - t) / sigma)), rel=1e-13)


def test_laplace_errors_are_the_integrals_of_the_slides() -> None:
    # density (rate/2) exp(-rate |z|), hypotheses 0 and A = 1; thresholds scale with the rate
    rate, test = 0.9, laplace_test(0.9)
    with mp.workdps(20):
        for t in (-1.0, 0.3, 0.9, 4.0):
            false_alarm = mp.quad(lambda z: rate / 2 * mp.exp(-rate * abs(z)), [*sorted({t, max(t, 0.0)}), mp.inf])
            missed = mp.quad(lambda z: rate / 2 * mp.exp(-rate * abs(1 - z)), [-mp.inf, *sorted({t, min(t, 1.0)})])
            assert float(test.false_alarm(rate * t)) == pytest.approx(float(false_alarm), rel=1e-12)
            assert float(test.missed_detection(rate * t)) == pytest.approx(float(missed), rel=1e-12)


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.family.name)
def test_the_thresholds_trace_the_trade_off_curve(test: ThresholdTest) -> None:
    np.testing.assert_allclose(
        test.tradeoff(test.false_alarm(THRESHOLDS)), test.missed_detection(THRESHOLDS), rtol=1e-9, atol=1e-14
    )
    gain = test.detection(THRESHOLDS) - test.false_alarm(THRESHOLDS)
    assert gain.max() <= test.advantage() + 1e-15
    half = test.shift / 2
    assert float(test.detection(half) - test.false_alarm(half)) == pytest.approx(test.advantage(), rel=1e-12)


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.family.name)
def test_predictive_values_of_threshold_and_curve_agree(test: ThresholdTest) -> None:
    for prior in (1e-6, 0.01, 0.5, 0.9):
        by_threshold = test.positive_predictive_value(THRESHOLDS, prior=prior)
        by_curve = positive_predictive_value(test.tradeoff, prior=prior, false_alarm=test.false_alarm(THRESHOLDS))
        np.testing.assert_allclose(by_threshold, by_curve, rtol=1e-9)
        assert (by_threshold >= prior * (1 - 1e-12)).all(), "an alarm never makes the person less likely"


def test_predictive_value_by_hand_and_in_the_tails() -> None:
    # 1 % of the population, 90 % detection, 10 % false alarm: 0.009 / (0.009 + 0.099)
    curve = TradeOff.from_vertices([0.0, 0.1, 1.0], [1.0, 0.1, 0.0])
    assert float(positive_predictive_value(curve, prior=0.01, false_alarm=0.1)) == pytest.approx(
        0.009 / 0.108, rel=1e-12
    )
    # the odds of a Laplace alarm never rise by more than e^epsilon, however far the threshold
    odds = 0.01 / 0.99 * math.e
    far = float(laplace_test(1.0).positive_predictive_value(600.0, prior=0.01))
    assert far == pytest.approx(odds / (1 + odds), rel=1e-10)
    tail = float(positive_predictive_value(TradeOff.laplace(1.0), prior=0.01, false_alarm=1e-290))
    assert tail == pytest.approx(odds / (1 + odds), rel=1e-12)
    # those of a Gaussian alarm do
    assert float(positive_predictive_value(TradeOff.gaussian(1.0), prior=0.01, false_alarm=1e-290)) > 0.999999


@given(pairs(), st.floats(1e-6, 1 - 1e-6))
def test_bayes_error_is_the_smaller_posterior_summed_up(pair: tuple[np.ndarray, np.ndarray], prior: float) -> None:
    p, q = pair
    exact = float(np.minimum(prior * p, (1 - prior) * q).sum())
    assert bayes_error(TradeOff.from_pair(p, q), prior=prior) == pytest.approx(exact, abs=1e-12)


def test_bayes_error_at_even_odds_and_at_extreme_priors() -> None:
    f = TradeOff.gaussian(1.0)
    assert bayes_error(f, prior=0.5) == pytest.approx((1 - f.advantage()) / 2, rel=1e-14)
    assert bayes_error(TradeOff.identity(), prior=0.2) == pytest.approx(0.2)
    assert bayes_error(f, prior=1e-12) == pytest.approx(1e-12, rel=1e-6)
    assert bayes_error(f, prior=1 - 1e-12) == pytest.approx(1e-12, rel=1e-3)
    grid = np.linspace(0, 1, 100_001)
    assert bayes_error(f, prior=0.3) == pytest.approx(float((0.7 * grid + 0.3 * f(grid)).min()), abs=1e-9)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, math.nan])
def test_priors_must_leave_a_doubt(prior: float) -> None:
    for call in (
        lambda: bayes_error(TradeOff.identity(), prior=prior),
        lambda: positive_predictive_value(TradeOff.identity(), prior=prior, false_alarm=0.1),
        lambda: gaussian_test(1.0).positive_predictive_value(0.0, prior=prior),
    ):
        with pytest.raises(InvalidArgument, match="prior"):
            call()


def test_impossible_false_alarms_and_shifts_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="false_alarm"):
        positive_predictive_value(TradeOff.identity(), prior=0.5, false_alarm=0.0)
    with pytest.raises(InvalidArgument, match="mu"):
        gaussian_test(-1.0)
