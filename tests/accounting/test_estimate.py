"""The central-limit estimate: exact for Gaussians, close for many small releases, and demonstrably not a bound."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import gaussian_dp
from discreet.accounting.cost import Cost
from discreet.accounting.shuffled_batches import delta_at_least, epsilon_at_least
from discreet.errors import InvalidArgument


@given(sigma=st.floats(0.3, 50), count=st.integers(1, 1000), delta=st.floats(1e-12, 0.01))
def test_exact_for_gaussian_noise(sigma: float, count: int, delta: float) -> None:
    cost = count * Cost.gaussian(sigma)
    assert cost.estimate(delta=delta) == pytest.approx(cost.epsilon(delta), rel=1e-6, abs=1e-9)
    assert cost.estimate(epsilon=1.0) == pytest.approx(cost.delta(1.0), rel=1e-6, abs=1e-300)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"), [(1.1, 256 / 60_000, 14_000), (10.0, 0.5, 100), (2.0, 0.01, 10**5)]
)
def test_agrees_with_the_limit_theorem_for_sampled_gaussians(sigma: float, rate: float, steps: int) -> None:
    cost = steps * Cost.gaussian(sigma).sampled(rate=rate)
    mu = gaussian_dp.clt_estimate(rate, sigma, steps)
    assert cost.estimate(delta=1e-5) == pytest.approx(gaussian_dp.epsilon_bounds(mu, 1e-5)[1], rel=5e-3)
    assert cost.estimate(delta=1e-5) == pytest.approx(cost.epsilon(1e-5), rel=0.04)


def test_may_be_too_small_and_badly_so_at_small_delta() -> None:
    training = 1_000 * Cost.gaussian(1.0).sampled(rate=0.01)
    lower, _ = training.bounds(delta=1e-5)
    assert training.estimate(delta=1e-5) < 0.9 * lower
    assert training.estimate(epsilon=3.0) < 0.01 * training.bounds(epsilon=3.0)[0]


def test_may_be_too_large_as_well() -> None:
    cost = 100 * Cost.randomized_response(0.1)
    assert cost.estimate(delta=1e-4) > cost.epsilon(1e-4)
    assert cost.estimate(delta=1e-4) == pytest.approx(cost.epsilon(1e-4), rel=0.02)


def test_the_two_directions_differ_and_the_larger_one_is_reported() -> None:
    # P against Q and Q against P of a lopsided table, by mean and variance of the two losses
    p, q, count, epsilon = [0.02, 0.98], [0.01, 0.99], 200, 0.5
    losses = [math.log(a / b) for a, b in zip(p, q, strict=True)]

    def normal(weights: list[float], signs: float) -> float:
        mean = sum(w * signs * l for w, l in zip(weights, losses, strict=True))
        variance = sum(w * l * l for w, l in zip(weights, losses, strict=True)) - mean**2
        mean, variance = count * mean, count * variance
        return gaussian_dp.delta_bounds(math.sqrt(variance), epsilon - mean + variance / 2)[1]

    forward, backward = normal(p, 1.0), normal(q, -1.0)
    assert abs(forward - backward) > 0.01
    estimate = (count * Cost.from_pair(p, q)).estimate(epsilon=epsilon)
    assert estimate == pytest.approx(max(forward, backward), rel=1e-9)


def test_leaks_are_kept_and_no_loss_exceeds_the_largest() -> None:
    cost = 10 * Cost.approximate(0.3, 1e-6)
    leak = 1 - (1 - 1e-6) ** 10
    assert cost.estimate(delta=0.5 * leak) == math.inf
    assert cost.estimate(epsilon=3.0) == pytest.approx(leak, rel=1e-9)
    assert cost.estimate(delta=leak * (1 + 1e-9)) == pytest.approx(3.0)
    assert Cost.laplace(1.0).estimate(delta=1e-9) == 1.0
    assert Cost.laplace(1.0).estimate(delta=0.0) == 1.0
    assert Cost.gaussian(1.0).estimate(delta=0.0) == math.inf


def test_nothing_released_and_everything_allowed_are_zero() -> None:
    assert Cost.zero().estimate(delta=1e-5) == 0
    assert Cost.zero().estimate(epsilon=0.0) == 0
    assert Cost.gaussian(1.0).estimate(delta=1.0) == 0
    assert Cost.approximate(0.0, 1.0).estimate(delta=1.0) == 0
    assert Cost.approximate(0.0, 0.5).estimate(epsilon=0.0) == pytest.approx(0.5)


def test_estimate_and_its_inverse_agree() -> None:
    cost = 300 * Cost.laplace(20.0) + 100 * Cost.gaussian(2.0).sampled(rate=0.05)
    delta = cost.estimate(epsilon=1.5)
    assert cost.estimate(delta=delta) == pytest.approx(1.5, rel=1e-9)


@pytest.mark.parametrize(
    "cost", [Cost.concentrated(0.1), Cost.renyi({2.0: 0.1}), Cost.gaussian(1.0) + Cost.concentrated(0.1)]
)
def test_parts_without_a_loss_are_refused_by_name(cost: Cost) -> None:
    with pytest.raises(InvalidArgument, match=r"(concentrated|renyi)\("):
        cost.estimate(delta=1e-5)


@pytest.mark.parametrize("arguments", [{}, {"delta": 0.1, "epsilon": 1.0}, {"delta": 2.0}, {"epsilon": -1.0}])
def test_bad_input_is_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        Cost.gaussian(1.0).estimate(**arguments)


def test_shuffled_batches_are_shown_by_their_lower_bound() -> None:
    step = Cost.gaussian(0.8)
    found = step.estimate(delta=1e-6, shuffled_batches=100)
    assert found == pytest.approx(epsilon_at_least(0.8, batches=100, delta=1e-6), rel=1e-9)
    assert 2 * (100 * step.sampled(0.01)).epsilon(1e-6) < found <= step.epsilon(1e-6)
    delta = delta_at_least(0.8, batches=100, epsilon=4.0)
    assert step.estimate(epsilon=4.0, shuffled_batches=100) == pytest.approx(delta, rel=1e-9)
    # two releases on the same batch are one with less noise
    twice = (2 * Cost.gaussian(0.8 * math.sqrt(2))).estimate(delta=1e-6, shuffled_batches=100)
    assert twice == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize(
    ("cost", "batches"),
    [
        (Cost.laplace(1.0), 10),
        (Cost.gaussian(1.0).sampled(0.1), 10),
        (Cost.gaussian(1.0, adjacency="replace-one"), 10),
        (Cost.zero(), 10),
        (Cost.gaussian(1.0), 0),
        (Cost.gaussian(1.0), 2.5),
    ],
)
def test_the_bound_of_shuffled_batches_is_given_only_where_it_is_known(cost: Cost, batches: int) -> None:
    with pytest.raises(InvalidArgument):
        cost.estimate(delta=1e-6, shuffled_batches=batches)
