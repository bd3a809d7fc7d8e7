"""Shifted noise of any family: the closed forms of two families, mpmath for a third, and the laws."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence import (
    ShiftedFamily,
    gaussian_noise,
    hockey_stick_gaussian,
    hockey_stick_laplace,
    laplace_noise,
    logistic_noise,
    renyi_gaussian,
    renyi_laplace,
    tradeoff_gaussian,
    tradeoff_laplace,
)
from discreet.errors import CertificateError, InvalidArgument

EPSILONS = np.array([-3.0, 0.0, 1e-4, 0.05, 0.5, 1.0, 4.0, 20.0])
FAMILIES = [gaussian_noise(), laplace_noise(), logistic_noise()]


@pytest.mark.parametrize("shift", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_hockey_sticks_agree_with_the_closed_forms(shift: float) -> None:
    np.testing.assert_allclose(
        gaussian_noise().hockey_stick(EPSILONS, shift=shift), hockey_stick_gaussian(EPSILONS, mu=shift), rtol=1e-11
    )
    np.testing.assert_allclose(
        laplace_noise().hockey_stick(EPSILONS, shift=shift), hockey_stick_laplace(EPSILONS, shift=shift), rtol=1e-12
    )


def test_a_gaussian_delta_of_1e_300_comes_out_of_the_tails() -> None:
    for epsilon in (10.0, 36.5):
        ours = float(gaussian_noise().log_hockey_stick(epsilon, shift=1.0))
        assert ours == pytest.approx(math.log(hockey_stick_gaussian(epsilon, mu=1.0)), rel=1e-12)
    assert float(gaussian_noise().hockey_stick(60.0, shift=1.0)) == 0.0


@pytest.mark.parametrize("order", [0.3, 0.5, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("shift", [0.01, 1.0, 5.0])
def test_renyi_agrees_with_the_closed_forms(order: float, shift: float) -> None:
    assert gaussian_noise().renyi(order, shift=shift) == pytest.approx(
        float(renyi_gaussian(order, mu=shift)), rel=1e-11
    )
    assert laplace_noise().renyi(order, shift=shift) == pytest.approx(
        float(renyi_laplace(order, shift=shift)), rel=1e-11
    )


def test_logistic_noise_against_mpmath() -> None:
    with mp.workdps(25):
        shift = mp.mpf("1.5")
        density = lambda x: mp.exp(-x) / (1 + mp.exp(-x)) ** 2
        ends = [-60, -10, 0, shift / 2, shift, 10, 60]
        kl = mp.quad(lambda x: density(x - shift) * mp.log(density(x - shift) / density(x)), ends)
        assert logistic_noise().kl(shift=1.5) == pytest.approx(float(kl), rel=1e-12)
        cube = mp.quad(lambda x: density(x - shift) ** 3 / density(x) ** 2, ends)
        assert logistic_noise().renyi(3.0, shift=1.5) == pytest.approx(float(mp.log(cube) / 2), rel=1e-12)
        # loss(x) = epsilon at e^x = (e^{(epsilon + shift)/2} - ... ) has a root; take the supremum over thresholds
        tail = lambda x: 1 / (1 + mp.exp(x))
        epsilon = mp.mpf("0.7")
        best = mp.findroot(lambda t: mp.log(density(t - shift) / density(t)) - epsilon, 1.5)
        delta = tail(best - shift) - mp.exp(epsilon) * tail(best)
        assert float(logistic_noise().hockey_stick(0.7, shift=1.5)) == pytest.approx(float(delta), rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@given(shift=st.floats(0.01, 20), epsilon=st.floats(0, 10))
def test_no_threshold_beats_the_hockey_stick(family: ShiftedFamily, shift: float, epsilon: float) -> None:
    delta = float(family.hockey_stick(epsilon, shift=shift))
    t = np.linspace(-30, 30 + shift, 301)
    gains = np.exp(family.log_upper_tail(t - shift)) - np.exp(epsilon + family.log_upper_tail(t))
    assert gains.max() <= delta + 1e-13
    assert 0 <= delta <= 1


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_losses_quantiles_and_thresholds_fit_together(family: ShiftedFamily) -> None:
    x = np.linspace(-20, 20, 401)
    assert (np.diff(family.loss(x, shift=1.0)) >= -1e-13).all()
    tails = family.log_upper_tail(family.upper_quantile(np.array([-0.1, -1.0, -50.0, -700.0])))
    np.testing.assert_allclose(tails, [-0.1, -1.0, -50.0, -700.0], rtol=1e-14)
    t = float(family.threshold(0.3, shift=1.0))
    assert float(family.loss(t, shift=1.0)) <= 0.3 < float(family.loss(t + 1e-6, shift=1.0))
    assert float(family.threshold(2000.0, shift=1.0)) == math.inf
    assert float(family.threshold(-2000.0, shift=1.0)) == -math.inf


def test_tradeoffs_agree_with_the_closed_forms() -> None:
    alpha = np.concatenate([[0.0, 1.0], np.geomspace(1e-300, 0.5, 50), np.linspace(0.5, 0.999, 50)])
    np.testing.assert_allclose(
        gaussian_noise().tradeoff(alpha, shift=1.3), tradeoff_gaussian(alpha, mu=1.3), rtol=1e-12, atol=0
    )
    np.testing.assert_allclose(
        laplace_noise().tradeoff(alpha, shift=1.3), tradeoff_laplace(alpha, shift=1.3), rtol=1e-12, atol=0
    )


def test_f_divergences_contain_the_named_ones() -> None:
    noise = logistic_noise()
    variation = noise.f_divergence(lambda t: 0.5 * np.abs(t - 1), shift=1.0)
    assert variation == pytest.approx(noise.total_variation(shift=1.0), rel=1e-13)
    assert variation == pytest.approx(math.tanh(0.25), rel=1e-13)  # P(|X| < 1/2)
    stick = noise.f_divergence(lambda t: np.maximum(t - math.exp(0.4), 0), shift=1.0, kinks=[math.exp(0.4)])
    assert stick == pytest.approx(float(noise.hockey_stick(0.4, shift=1.0)), rel=1e-12)
    entropy = noise.f_divergence(lambda t: t * np.log(t), shift=1.0)
    assert entropy == pytest.approx(noise.kl(shift=1.0), rel=1e-12)


def test_equal_distributions_and_bad_arguments() -> None:
    noise = logistic_noise()
    assert noise.renyi(2.0, shift=0.0) == 0
    assert float(noise.hockey_stick(0.0, shift=0.0)) == 0
    assert float(noise.hockey_stick(-1.0, shift=0.0)) == pytest.approx(1 - math.exp(-1))
    with pytest.raises(InvalidArgument, match="shift"):
        noise.hockey_stick(0.0, shift=-1.0)
    with pytest.raises(InvalidArgument, match="epsilon"):
        noise.hockey_stick(math.nan, shift=1.0)
    with pytest.raises(InvalidArgument, match="order"):
        noise.renyi(0.0, shift=1.0)
    with pytest.raises(InvalidArgument, match="alpha"):
        noise.tradeoff(2.0, shift=1.0)
    with pytest.raises(CertificateError, match="infinite order"):
        noise.renyi(math.inf, shift=1.0)
    with pytest.raises(CertificateError, match="order 4"):
        gaussian_noise().renyi(4.0, shift=30.0)
