"""Contraction coefficients bound what channels leave of divergences, are attained, and bound what estimators can do."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.divergence import (
    bayes_risk_bound,
    channel_divergence,
    contraction_finite,
    contraction_gaussian,
    contraction_laplace,
    f_divergence,
    hockey_stick,
    hockey_stick_information,
    total_variation,
)
from discreet.errors import InvalidArgument

few = settings(max_examples=60, deadline=None)


def laws(size: int) -> st.SearchStrategy[np.ndarray]:
    weights = st.lists(st.floats(0.001, 1.0), min_size=size, max_size=size)
    return weights.map(lambda w: np.array(w) / math.fsum(w))


channels = st.lists(laws(4), min_size=3, max_size=3).map(np.array)


def normalised(law: np.ndarray) -> np.ndarray:
    return np.asarray(law / math.fsum(law))


@few
@given(channel=channels, p=laws(3), q=laws(3), epsilon=st.floats(0.0, 2.0))
def test_no_pair_of_inputs_shrinks_less_than_the_coefficient_says(
    channel: np.ndarray, p: np.ndarray, q: np.ndarray, epsilon: float
) -> None:
    before = float(hockey_stick(p, q, epsilon=epsilon))
    after = float(hockey_stick(normalised(p @ channel), normalised(q @ channel), epsilon=epsilon))
    assert after <= contraction_finite(channel, epsilon=epsilon) * before + 1e-12


@few
@given(channel=channels, epsilon=st.floats(0.0, 2.0))
def test_two_point_inputs_attain_it(channel: np.ndarray, epsilon: float) -> None:
    best = max(
        float(hockey_stick(channel[i], channel[j], epsilon=epsilon)) for i, j in itertools.permutations(range(3), 2)
    )
    assert contraction_finite(channel, epsilon=epsilon) == pytest.approx(best, abs=1e-14)


GENERATORS = {
    "chi-square": (lambda t: (t - 1) ** 2, math.inf),
    "kl": (lambda t: t * np.log(np.maximum(t, 1e-300)) - t + 1, math.inf),
    "hellinger": (lambda t: (np.sqrt(t) - 1) ** 2, 1.0),
    "total variation": (lambda t: 0.5 * np.abs(t - 1), 0.5),
}


@pytest.mark.parametrize("name", GENERATORS)
@few
@given(channel=channels, p=laws(3), q=laws(3))
def test_every_f_divergence_shrinks_at_least_like_total_variation(
    name: str, channel: np.ndarray, p: np.ndarray, q: np.ndarray
) -> None:
    generator, recession = GENERATORS[name]
    before = f_divergence(p, q, generator=generator, recession=recession)
    after = channel_divergence(p, q, channel, generator=generator, recession=recession)
    assert after <= contraction_finite(channel) * before + 1e-12


@pytest.mark.parametrize("flip", [0.0, 0.1, 0.25, 0.5])
def test_the_binary_symmetric_channel_has_its_closed_forms(flip: float) -> None:
    channel = [[1 - flip, flip], [flip, 1 - flip]]
    assert contraction_finite(channel) == pytest.approx(1 - 2 * flip)
    # chi-square from (1/2, 1/2): the square of that
    square = channel_divergence([0.6, 0.4], [0.5, 0.5], channel, generator=lambda t: (t - 1) ** 2)
    assert square == pytest.approx((1 - 2 * flip) ** 2 * 0.04)


@pytest.mark.parametrize("options", [2, 3, 10])
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_randomized_response_contracts_to_its_delta(options: int, epsilon0: float) -> None:
    channel = np.ones((options, options)) + (math.exp(epsilon0) - 1) * np.eye(options)
    channel /= channel.sum(axis=1, keepdims=True)
    for epsilon in (0.0, 0.3, 3.0):
        truth = max(0.0, (math.exp(epsilon0) - math.exp(epsilon)) / (math.exp(epsilon0) + options - 1))
        assert contraction_finite(channel, epsilon=epsilon) == pytest.approx(truth, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.2])
def test_noise_on_a_fine_grid_approaches_the_coefficient_of_continuous_noise(epsilon: float) -> None:
    edges = np.linspace(-12, 13, 4001)
    inputs = np.linspace(0, 1, 5)
    from scipy.special import ndtr

    gaussian = np.diff(ndtr((edges[None, :] - inputs[:, None]) / 0.7), axis=1)
    gaussian /= gaussian.sum(axis=1, keepdims=True)
    bound = contraction_gaussian(diameter=1.0, sigma=0.7, epsilon=epsilon)
    assert contraction_finite(gaussian, epsilon=epsilon) == pytest.approx(bound, rel=1e-4)
    z = edges[None, :] - inputs[:, None]
    laplace = np.diff(np.where(z < 0, 0.5 * np.exp(z), 1 - 0.5 * np.exp(-z)), axis=1)
    laplace /= laplace.sum(axis=1, keepdims=True)
    bound = contraction_laplace(diameter=1.0, scale=1.0, epsilon=epsilon)
    assert contraction_finite(laplace, epsilon=epsilon) == pytest.approx(bound, abs=1e-4)


def test_the_ends() -> None:
    assert contraction_gaussian(diameter=0.0, sigma=1.0) == 0.0
    assert contraction_laplace(diameter=0.0, scale=1.0) == 0.0
    assert contraction_laplace(diameter=1.0, scale=1.0, epsilon=1.5) == 0.0
    assert contraction_finite(np.eye(4)) == 1.0
    assert contraction_finite(np.eye(4), epsilon=1e6) == 1.0
    assert contraction_finite([[0.3, 0.7]]) == 0.0
    assert contraction_finite(np.full((5, 2), 0.5)) == 0.0
    assert contraction_gaussian(diameter=1e300, sigma=1e-300) == 1.0


def test_a_channel_of_many_inputs_is_read_in_blocks() -> None:
    size = 300
    channel = np.full((size, size), 1.0) + 3 * np.eye(size)
    channel /= channel.sum(axis=1, keepdims=True)
    assert contraction_finite(channel) == pytest.approx(3 / (size + 3))


@few
@given(prior=laws(3), channel=channels, second=st.lists(laws(3), min_size=4, max_size=4).map(np.array))
def test_information_shrinks_along_a_chain(prior: np.ndarray, channel: np.ndarray, second: np.ndarray) -> None:
    for epsilon in (0.0, 0.3):
        through = hockey_stick_information(
            prior, channel @ second / (channel @ second).sum(1, keepdims=True), epsilon=epsilon
        )
        whole = hockey_stick_information(prior, channel, epsilon=epsilon)
        assert through <= contraction_finite(second, epsilon=epsilon) * whole + 1e-12
    joint = prior[:, None] * channel
    product = prior[:, None] * (prior @ channel)
    truth = total_variation(normalised(joint.ravel()), normalised(product.ravel()))
    assert hockey_stick_information(prior, channel) == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("reports", [1, 3])
def test_no_estimator_beats_the_bound(epsilon0: float, reports: int) -> None:
    # the secret is one of 21 chances, its loss the distance; each report is a coin of that chance, flipped privately
    secrets = np.linspace(0, 1, 21)
    keep = math.exp(epsilon0) / (math.exp(epsilon0) + 1)
    yes = keep * secrets + (1 - keep) * (1 - secrets)
    count = np.arange(reports + 1)
    ways = np.array([math.comb(reports, int(k)) for k in count])
    channel = ways * yes[:, None] ** count * (1 - yes[:, None]) ** (reports - count)
    joint = channel / len(secrets)
    guesses = np.linspace(0, 1, 201)
    risk = sum((joint[:, [k]] * np.abs(secrets[:, None] - guesses)).sum(axis=0).min() for k in range(reports + 1))
    prior = np.full(len(secrets), 1 / len(secrets))
    radii = np.linspace(0.01, 0.6, 60)

    def small_ball(r: np.ndarray) -> np.ndarray:
        return np.asarray([(np.abs(secrets[:, None] - guesses) <= x + 1e-12).mean(axis=0).max() for x in r])

    best = 0.0
    for epsilon in (0.0, 0.1, 0.5):
        bound = bayes_risk_bound(
            hockey_stick_information(prior, channel, epsilon=epsilon),
            small_ball=small_ball,
            radii=radii,
            epsilon=epsilon,
        )
        assert bound <= risk
        best = max(best, bound)
    assert best > 0.2 * risk


@pytest.mark.parametrize(
    "call",
    [
        lambda: contraction_finite([[0.5, 0.4]]),
        lambda: contraction_finite([0.5, 0.5]),
        lambda: contraction_finite([[0.5, 0.5]], epsilon=-1.0),
        lambda: contraction_gaussian(diameter=-1.0, sigma=1.0),
        lambda: contraction_laplace(diameter=1.0, scale=0.0),
        lambda: channel_divergence([1.0], [1.0], [[1.0], [1.0]], generator=lambda t: t - 1),
        lambda: hockey_stick_information([0.5, 0.5], [[1.0]]),
        lambda: bayes_risk_bound(2.0, small_ball=lambda r: r, radii=[0.1]),
        lambda: bayes_risk_bound(0.5, small_ball=lambda r: r, radii=[0.0]),
        lambda: bayes_risk_bound(0.5, small_ball=lambda r: -r, radii=[0.1]),
    ],
)
def test_bad_arguments_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(InvalidArgument):
        call()
