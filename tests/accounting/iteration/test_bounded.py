"""Bounded sets, sampled batches, contraction of divergences, and noise of any kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet import Cost, InvalidArgument, StorageError, last_iterate
from discreet.accounting import gaussian_dp
from discreet.accounting.leaves import SampledIterate

SAMPLED = {"n": 10_000, "rate": 0.01, "lipschitz": 1.0, "smoothness": 1.0, "step": 0.1, "noise": 0.02}


def profile(mu: float, epsilon: float) -> float:
    return gaussian_dp.delta_bounds(mu, epsilon)[1]


# ------------------------------------------------------------------------------------------------- contraction


@given(n=st.integers(1, 60), epsilon=st.floats(0, 3), sigma=st.floats(0.3, 5), diameter=st.floats(0.1, 5))
def test_contraction_has_its_closed_form(n: int, epsilon: float, sigma: float, diameter: float) -> None:
    cost = last_iterate.hockey_stick_contraction(
        n=n, position=1, lipschitz=0.7, step=0.5, noise=sigma, diameter=diameter
    )
    ratio = (diameter + 2 * 0.5 * 0.7) / (0.5 * sigma)
    log_expected = math.log(max(profile(1.4 / sigma, epsilon), 1e-300))
    log_expected += (n - 1) * math.log(max(profile(ratio, epsilon), 1e-300))
    expected = math.exp(max(log_expected, -700.0))
    leaf = cost.parts[0][0]
    if n > 1 and log_expected > -200:
        assert float(leaf.profile(np.array([epsilon]))[0]) == pytest.approx(expected, rel=1e-8)
    if log_expected > -200:
        assert expected * (1 - 1e-9) <= cost.delta(epsilon) <= expected * (1 + 1e-8)


def law_on_a_grid(drift: np.ndarray, *, diameter: float, deviation: float, factor: float = 1.0) -> np.ndarray:
    """The law of w <- Pi[factor w + drift_t + N(0, deviation^2)] on [0, diameter]; mass beyond an end moves to it."""
    grid = np.linspace(0, diameter, 301)
    edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
    mass = np.zeros(len(grid))
    mass[150] = 1.0
    for move in drift:
        mass = mass @ np.diff(ndtr((edges[None, :] - (factor * grid[:, None] + move)) / deviation), axis=1)
    return mass


@pytest.mark.parametrize("place", [1, 4, 7, 8])
@pytest.mark.parametrize("deviation", [0.4, 1.5])
def test_the_true_profile_on_an_interval_stays_below_every_bound(place: int, deviation: float) -> None:
    """Linear losses in one dimension: the record moves step `place` by one half either way, and no other step."""
    n, diameter = 8, 1.0
    move = np.zeros(n)
    move[place - 1] = 0.5
    p = law_on_a_grid(move, diameter=diameter, deviation=deviation)
    q = law_on_a_grid(-move, diameter=diameter, deviation=deviation)
    shared = {"n": n, "position": place, "lipschitz": 0.5, "step": 1.0, "noise": deviation, "diameter": diameter}
    iteration = last_iterate.pnsgd(smoothness=1.0, **shared)
    contraction = last_iterate.hockey_stick_contraction(smoothness=1.0, **shared)
    general = last_iterate.hockey_stick_contraction(**shared)
    for epsilon in (0.0, 0.3, 1.0):
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        assert truth <= iteration.delta(epsilon) + 1e-9
        assert truth <= contraction.delta(epsilon) + 1e-9
        assert contraction.delta(epsilon) <= general.delta(epsilon) * (1 + 1e-9)
        assert iteration.delta(epsilon) <= contraction.delta(epsilon) * (1 + 1e-9)


def test_the_better_of_iteration_and_contraction_is_read_and_named() -> None:
    shared = {"n": 10, "position": 5, "lipschitz": 1.0, "smoothness": 1.0, "step": 1.0}
    noisy = last_iterate.pnsgd(noise=2.0, diameter=1.0, **shared)
    reading = noisy.reading(delta=1e-6)
    assert "read as" in reading.reason
    assert reading.upper < Cost.gaussian_dp(noisy.gdp()).epsilon(1e-6)
    assert "contraction" in str(noisy.explain(delta=1e-6))
    wide = last_iterate.pnsgd(noise=2.0, diameter=1000.0, **shared)
    assert wide.reading(delta=1e-6).method == "gaussian_dp"
    assert wide.epsilon(1e-6) == pytest.approx(last_iterate.pnsgd(noise=2.0, **shared).epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-9, 1e-14, 1e-25])
def test_contraction_is_read_at_tiny_deltas_too(delta: float) -> None:
    cost = last_iterate.hockey_stick_contraction(n=40, position=1, lipschitz=1.0, step=0.5, noise=3.0, diameter=0.7)
    leaf, epsilon = cost.parts[0][0], cost.epsilon(delta)
    assert float(leaf.profile(np.array([epsilon]))[0]) <= delta
    if epsilon > 0:
        assert float(leaf.profile(np.array([epsilon * (1 - 1e-6)]))[0]) > delta
    inside = last_iterate.pnsgd(n=40, position=1, lipschitz=1.0, smoothness=1.0, step=0.5, noise=3.0, diameter=0.7)
    assert inside.epsilon(delta) <= epsilon * (1 + 1e-9)


def test_compositions_of_contracted_releases_are_bounded_by_those_of_their_start() -> None:
    cost = last_iterate.hockey_stick_contraction(n=4, position=1, lipschitz=1.0, step=1.0, noise=2.0, diameter=1.0)
    assert cost.epsilon(1e-6) < (3 * cost).epsilon(1e-6) < (3 * Cost.gaussian_dp(1.0)).epsilon(1e-6)
    total = cost + last_iterate.pnsgd(n=5, position=2, lipschitz=1.0, smoothness=1.0, step=1.0, noise=2.0, diameter=1.0)
    assert total.epsilon(1e-6) > cost.epsilon(1e-6)


@pytest.mark.parametrize("ratios", ["many", [[1, 2, 3]], [[0, 1.0]], [[2, -1.0]]])
def test_a_damaged_contraction_is_refused(ratios: object) -> None:
    stored = last_iterate.hockey_stick_contraction(
        n=3, position=1, lipschitz=1.0, step=1.0, noise=2.0, diameter=1.0
    ).to_dict()
    assert Cost.from_dict(stored).to_dict() == stored
    stored["parts"][0]["ratios"] = ratios
    with pytest.raises(StorageError):
        Cost.from_dict(stored)


# ----------------------------------------------------------------------------------------------------- sampling


def sampled_gaussian_rdp(order: int, sigma: float, rate: float) -> float:
    """The Rényi divergence of the sampled Gaussian at a whole order, by its binomial sum [Mironov et al. 2019]."""
    terms = [
        math.lgamma(order + 1)
        - math.lgamma(k + 1)
        - math.lgamma(order - k + 1)
        + k * math.log(rate)
        + (order - k) * math.log1p(-rate)
        + k * (k - 1) / (2 * sigma**2)
        for k in range(order + 1)
    ]
    return float(np.logaddexp.reduce(terms)) / (order - 1)


@pytest.mark.parametrize("order", [2, 5, 16])
@pytest.mark.parametrize("diameter", [0.01, 0.1])
def test_sampled_batches_have_the_rdp_of_the_published_bound(order: int, diameter: float) -> None:
    leaf = SampledIterate(steps=10**7, rate=0.01, contraction=1.0, noise=0.002, push=0.001, diameter=diameter)
    m = np.unique(np.geomspace(1, 10**7, 3000).astype(int))
    published = min(
        float(
            (
                m * sampled_gaussian_rdp(order, math.sqrt(1 - share) * 2.0, 0.01)
                + order * diameter**2 / (2 * share * m * 0.002**2)
            ).min()
        )
        for share in np.linspace(0.02, 0.98, 49)
    )
    assert leaf.rdp(order) == pytest.approx(published, rel=1e-4)
    assert leaf.rdp(order) <= published * (1 + 1e-9)
    (one, m), (start, _) = leaf.since(1000, 0.3)
    exact = m * sampled_gaussian_rdp(order, math.sqrt(0.7) * 2.0, 0.01) + order * diameter**2 / (0.6 * m * 0.002**2)
    assert m * one.rdp(order) + start.mu**2 * order / 2 == pytest.approx(exact, rel=1e-9)


def test_sampled_batches_reach_a_plateau_below_composition_and_below_renyi() -> None:
    def epsilon(steps: int) -> float:
        return last_iterate.sampled_projected_sgd(steps=steps, diameter=0.1, **SAMPLED).epsilon(1e-6)

    def composed(steps: int) -> float:
        return (steps * Cost.gaussian(2.0).sampled(0.01)).epsilon(1e-6)

    assert epsilon(100) == pytest.approx(composed(100), rel=1e-9)
    plateau = epsilon(10**6)
    assert epsilon(3 * 10**5) == epsilon(10**8) == plateau
    assert plateau < 0.2 * composed(10**6)
    leaf = SampledIterate(steps=10**6, rate=0.01, contraction=1.0, noise=0.002, push=0.001, diameter=0.1)
    assert plateau < Cost(((leaf, 1),)).epsilon(1e-6, method="renyi")


def test_sampled_batches_on_an_interval_stay_below_their_bound() -> None:
    """One dimension, linear losses: the record moves the step with probability q, add-remove."""
    diameter, deviation, push, rate, steps = 0.3, 0.2, 0.25, 0.2, 60
    grid = np.linspace(0, diameter, 401)
    edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])

    def kernel(move: float) -> np.ndarray:
        return np.diff(ndtr((edges[None, :] - (grid[:, None] + move)) / deviation), axis=1)

    absent = np.linalg.matrix_power(kernel(0.0), steps)[200]
    present = np.linalg.matrix_power((1 - rate) * kernel(0.0) + rate * kernel(push), steps)[200]
    leaf = SampledIterate(steps, rate, 1.0, deviation, push, diameter)
    cost = Cost(((leaf, 1),))
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        factor = math.exp(epsilon)
        truth = max(np.maximum(a - factor * b, 0).sum() for a, b in ((absent, present), (present, absent)))
        assert truth <= cost.delta(epsilon) + 1e-9
    assert cost.delta(0.5) < (steps * Cost.gaussian(deviation / push).sampled(rate)).delta(0.5)


def test_a_batch_that_may_be_too_large_is_paid_for_in_delta() -> None:
    options = {**SAMPLED, "n": 1000, "steps": 10**6, "diameter": 0.001}
    safe = last_iterate.sampled_projected_sgd(**{**options, "step": 0.019})
    risky = last_iterate.sampled_projected_sgd(**{**options, "step": 0.5})
    assert safe.parts[0][0].excess == 0.0  # a batch of all 1000 would still contract
    excess = risky.parts[0][0].excess
    # more than 40 of 1000 at rate 0.01: Chernoff is above the true tail and not far from it
    tail = sum(math.comb(1000, k) * 0.01**k * 0.99 ** (1000 - k) for k in range(39, 80))
    assert tail < excess < 30 * tail
    late = risky.parts[0][0].alternatives(epsilon=None, delta=1e-6)[1]
    assert late[-1][0].delta == pytest.approx(late[0][1] * excess, rel=1e-9)
    assert Cost(tuple(late)).delta(20.0) >= late[0][1] * excess
    words = risky.explain(delta=1e-6).amplification
    assert "sampled iteration won" in words
    assert "by sampled composition" in words


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"diameter": None}, "diameter"),
        ({"diameter": math.inf}, "diameter"),
        ({"step": 2.0}, "step"),
        ({"step": 1.99}, "step"),
        ({"clipped": True}, "clipped"),
        ({"smoothness": math.inf}, "smoothness"),
        ({"rate": 1.5}, "rate"),
        ({"noise": 0.0}, "noise"),
        ({"steps": 0}, "steps"),
    ],
)
def test_sampled_batches_refuse_what_is_not_covered(change: dict, argument: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        last_iterate.sampled_projected_sgd(**{"steps": 100, "diameter": 1.0, **SAMPLED, **change})
    assert caught.value.argument == argument


@pytest.mark.parametrize("diameter", [None, math.inf, 0.0])
def test_contraction_needs_a_bounded_set(diameter: float | None) -> None:
    with pytest.raises(InvalidArgument, match="diameter"):
        last_iterate.hockey_stick_contraction(n=5, lipschitz=1.0, step=1.0, noise=1.0, diameter=diameter)


def test_a_sampled_iterate_is_stored_and_composes() -> None:
    cost = last_iterate.sampled_projected_sgd(steps=10**6, diameter=0.1, **SAMPLED)
    assert Cost.from_json(cost.to_json()) == cost
    assert (2 * cost).epsilon(1e-6) > cost.epsilon(1e-6)
    assert cost.bounds(delta=1e-6)[0] == 0.0
    assert cost.tradeoff()(0.05) > (10**6 * Cost.gaussian(2.0).sampled(0.01)).tradeoff()(0.05)
    assert float(cost.profile()(4.0)) == pytest.approx(cost.delta(4.0), rel=1e-3)


# ------------------------------------------------------------------------------------------------ general noise


def laplace_divergence(scale: float):
    def divergence(order: float, shift: float) -> float:
        x = shift / scale
        return math.log(
            order / (2 * order - 1) * math.exp((order - 1) * x) + (order - 1) / (2 * order - 1) * math.exp(-order * x)
        ) / (order - 1)

    return divergence


def test_gaussian_noise_through_the_general_door_costs_the_same() -> None:
    orders = [1.5, 2.0, 8.0, 64.0]
    cost = last_iterate.general_noise(
        steps=50, push=0.3, contraction=0.9, touches=[3, 20, 41], divergence=lambda a, z: a * z * z / 2, orders=orders
    )
    mu = last_iterate.describe(steps=50, step=1.0, noise=1.0, sensitivity=0.3, contraction=0.9, touches=[3, 20, 41]).mu
    for order in orders:
        assert cost.rdp(order) == pytest.approx(order * mu**2 / 2, rel=1e-9)


def test_laplace_noise_is_hidden_by_later_steps_too() -> None:
    orders = [2.0, 4.0, 16.0]
    one = last_iterate.general_noise(steps=1, push=1.0, divergence=laplace_divergence(1.0), orders=orders)
    late = last_iterate.general_noise(steps=100, push=1.0, divergence=laplace_divergence(1.0), orders=orders)
    for order in orders:
        assert one.rdp(order) == pytest.approx(laplace_divergence(1.0)(order, 1.0), rel=1e-9)
        assert late.rdp(order) == pytest.approx(100 * laplace_divergence(1.0)(order, 0.01), rel=1e-6)
        assert late.rdp(order) < 0.1 * one.rdp(order)


def test_the_general_bound_is_above_the_truth_for_laplace_sums() -> None:
    """All maps the identity, T Laplace noises: the sum is shifted by the push; its divergence is found on a grid."""
    scale, push, steps, order = 1.0, 1.0, 4, 3.0
    width = 0.002
    x = np.arange(-60, 60, width)
    one = np.exp(-np.abs(x) / scale) / (2 * scale)
    characteristic = np.fft.fft(np.fft.ifftshift(one)) * width
    law = np.maximum(np.fft.fftshift(np.fft.ifft(characteristic**steps).real) / width, 1e-30)
    moved = np.roll(law, round(push / width))
    inside = np.abs(x) < 25
    truth = math.log((moved**order * law ** (1 - order))[inside].sum() * width) / (order - 1)
    bound = last_iterate.general_noise(steps=steps, push=push, divergence=laplace_divergence(scale), orders=[order])
    assert truth <= bound.rdp(order)
    assert truth > 0.5 * bound.rdp(order)


@pytest.mark.parametrize(
    "change", [{"divergence": 3.0}, {"orders": [1.0]}, {"touches": 9}, {"push": 0.0}, {"contraction": -1.0}]
)
def test_general_noise_refuses_what_is_out_of_range(change: dict) -> None:
    options = {"steps": 5, "push": 1.0, "divergence": lambda a, z: a * z * z / 2, "orders": [2.0]}
    with pytest.raises(InvalidArgument):
        last_iterate.general_noise(**{**options, **change})


def test_a_divergence_that_returns_nonsense_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        last_iterate.general_noise(steps=5, push=1.0, divergence=lambda a, z: math.nan, orders=[2.0])
