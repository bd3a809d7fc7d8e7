"""Numbers that others published or that follow from closed forms in papers, against ours."""

from __future__ import annotations

import mpmath as mp
import pytest

from discreet.accounting import Cost, optimal


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta", "epsilon", "digits"),
    [
        (1.0, 0.01, 1_000, 1e-5, 1.8282367, 7),
        (1.1, 256 / 60_000, 14_000, 1e-5, 2.375838, 6),
        (10.0, 0.5, 100, 1e-5, 2.015266, 6),
        (1.0, 0.01, 1_000, 1e-30, 9.341896, 6),
    ],
)
def test_digits_of_private_training(
    sigma: float, rate: float, steps: int, delta: float, epsilon: float, digits: int
) -> None:
    # computed with twenty digits from the definition: see tests/reference
    lower, upper = (steps * Cost.gaussian(sigma).sampled(rate)).bounds(delta=delta)
    assert round(lower, digits) == round(upper, digits) == epsilon


def test_the_first_private_training_on_digits_cost_less_than_its_moments_accountant_said() -> None:
    # [Abadi et al. 2016, Fig. 2]: q = 0.01, sigma = 4, T = 10^4, delta = 1e-5 cost 1.26 by the moments accountant
    # and 9.34 by strong composition
    training = 10_000 * Cost.gaussian(4.0).sampled(0.01)
    lower, upper = training.bounds(delta=1e-5)
    assert upper < 1.26
    assert upper == pytest.approx(lower, rel=1e-8)
    assert lower > 0.9, "another accountant may be loose, but not by so much"
    assert upper < training.epsilon(1e-5, method="renyi") < 1.26


def binomial(count: int, level: float, epsilon: mp.mpf, leak: float = 0.0) -> mp.mpf:
    """delta of `count` optimal (level, leak) boxes at this epsilon [Kairouz et al. 2015, Thm 3.3]."""
    e = mp.mpf(level)
    total = mp.mpf(0)
    for k in range(count + 1):
        weight = mp.binomial(count, k) / (1 + mp.exp(e)) ** count
        total += weight * max(mp.mpf(0), mp.exp(k * e) - mp.exp(epsilon + (count - k) * e))
    kept = (1 - mp.mpf(leak)) ** count
    return 1 - kept + kept * total


@pytest.mark.parametrize(
    ("count", "level", "leak"),
    [(1, 1.0, 0.0), (2, 0.5, 0.0), (10, 0.3, 1e-6), (100, 0.1, 0.0), (100, 0.1, 1e-8), (1000, 0.01, 0.0)],
)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.33, 0.9])
def test_equal_boxes_follow_the_optimal_composition_theorem(
    count: int, level: float, leak: float, share: float
) -> None:
    epsilon = share * count * level
    with mp.workdps(60):
        truth = binomial(count, level, mp.mpf(epsilon), leak)
        for found in (
            (count * Cost.approximate(level, leak)).reading(epsilon=epsilon),
            optimal.delta([level], [leak], counts=[count], epsilon=epsilon),
        ):
            assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)
            assert found.width <= 1e-7, "seven digits, down to delta = 1e-217"


def test_the_worst_of_the_theorem_is_at_an_epsilon_of_its_list() -> None:
    # [Kairouz et al. 2015, Thm 3.3] lists ((k - 2i) eps, delta_i): epsilon read at delta_i is at most that
    with mp.workdps(60):
        for i in (10, 20, 30):
            delta = float(binomial(100, 0.1, mp.mpf("0.1") * (100 - 2 * i)) * (1 + mp.mpf(10) ** -12))
            assert (100 * Cost.pure(0.1)).epsilon(delta) <= 0.1 * (100 - 2 * i) * (1 + 1e-9)


def test_a_hundred_randomized_responses_cost_what_a_hundred_pure_mechanisms_can() -> None:
    # [Kairouz et al. 2015]: randomized response is the worst eps-DP mechanism, so the two agree to the digit
    responses, boxes = 100 * Cost.randomized_response(0.1), 100 * Cost.pure(0.1)
    assert responses.bounds(delta=1e-6) == pytest.approx(boxes.bounds(delta=1e-6), rel=1e-12)
    lower, upper = responses.bounds(delta=1e-6)
    with mp.workdps(60):
        assert binomial(100, 0.1, mp.mpf(upper)) <= mp.mpf(1e-6) <= binomial(100, 0.1, mp.mpf(lower))
    assert upper < 10.0 / 2, "far below basic composition"


def sampled_gaussian(order: int, sigma: float, rate: float) -> mp.mpf:
    """D_order of the sampled Gaussian at integer orders [Mironov et al. 2019, §3.3]."""
    s, q = mp.mpf(sigma), mp.mpf(rate)
    terms = (
        mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp((k * k - k) / (2 * s * s))
        for k in range(order + 1)
    )
    return mp.log(mp.fsum(terms)) / (order - 1)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (1.1, 256 / 60_000), (4.0, 0.01), (0.8, 0.2), (10.0, 0.5)])
@pytest.mark.parametrize("order", [2, 3, 5, 8, 16, 32, 64])
def test_integer_orders_of_the_sampled_gaussian_follow_the_binomial_formula(
    sigma: float, rate: float, order: int
) -> None:
    with mp.workdps(60):
        truth = sampled_gaussian(order, sigma, rate)
        found = Cost.gaussian(sigma).sampled(rate).rdp(order)
        assert truth <= mp.mpf(found) <= truth * (1 + mp.mpf(10) ** -6)
        assert (1000 * Cost.gaussian(sigma).sampled(rate)).rdp(order) == pytest.approx(float(1000 * truth), rel=1e-6)
