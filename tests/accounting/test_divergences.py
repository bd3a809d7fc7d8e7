"""`Cost.rdp` against closed forms, and the zCDP claims against the largest D_a / a over a fine grid of orders."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import pytest

from discreet.accounting import Cost

ORDERS = [1.0 + 10 ** (k / 12) for k in range(-36, 37)]
"""1.001 to 1001, twelve to a factor of ten."""


def gaussian(order: mp.mpf, sigma: float) -> mp.mpf:
    return order / (2 * mp.mpf(sigma) ** 2)


def laplace(order: mp.mpf, b: float) -> mp.mpf:
    """[Mironov 2017, Prop. 6]"""
    e = 1 / mp.mpf(b)
    inside = order / (2 * order - 1) * mp.exp((order - 1) * e) + (order - 1) / (2 * order - 1) * mp.exp(-order * e)
    return mp.log(inside) / (order - 1)


def response(order: mp.mpf, epsilon: float) -> mp.mpf:
    """[Mironov 2017, Prop. 5] with truth told with probability 1/(1 + e^-epsilon)."""
    return two_points(order, mp.mpf(epsilon), mp.mpf(epsilon))


def two_points(order: mp.mpf, up: mp.mpf, down: mp.mpf) -> mp.mpf:
    """Losses +up and -down: both laws are determined by P and Q having total mass 1."""
    q = -mp.expm1(-down) / (mp.exp(up) - mp.exp(-down))
    p = q * mp.exp(up)
    return mp.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)


@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 3.7, 16.0, 128.0])
@pytest.mark.parametrize(
    ("make", "truth"),
    [(Cost.gaussian, gaussian), (Cost.laplace, laplace), (Cost.randomized_response, response), (Cost.pure, response)],
    ids=["gaussian", "laplace", "randomized_response", "pure"],
)
@pytest.mark.parametrize("parameter", [0.3, 1.0, 4.0])
def test_renyi_divergence_is_the_closed_form_rounded_up(
    make: Callable[[float], Cost], truth: Callable[[mp.mpf, float], mp.mpf], parameter: float, order: float
) -> None:
    with mp.workdps(60):
        exact = truth(mp.mpf(order), parameter)
        found = make(parameter).rdp(order)
        assert exact <= mp.mpf(found) <= exact * (1 + mp.mpf(10) ** -9)
        assert (3 * make(parameter)).rdp(order) == pytest.approx(float(3 * exact), rel=1e-9)


def test_divergences_of_different_mechanisms_add_up() -> None:
    both = Cost.gaussian(2.0) + Cost.laplace(1.0)
    assert both.rdp(3.0) == pytest.approx(Cost.gaussian(2.0).rdp(3.0) + Cost.laplace(1.0).rdp(3.0), rel=1e-12)


def test_divergence_grows_with_the_order() -> None:
    cost = Cost.gaussian(1.0).sampled(0.1)
    values = [cost.rdp(order) for order in ORDERS if order < 100]
    assert all(b >= a * (1 - 1e-9) for a, b in itertools.pairwise(values))


def test_a_renyi_curve_holds_up_to_the_next_order_and_no_further() -> None:
    cost = 2 * Cost.renyi({2: 0.2, 8: 1.0})
    assert cost.rdp(2.0) == pytest.approx(0.4)
    assert cost.rdp(2.5) == cost.rdp(8.0) == pytest.approx(2.0)
    assert cost.rdp(8.1) == math.inf


def largest_slope(divergence: Callable[[mp.mpf], mp.mpf]) -> mp.mpf:
    """The largest D_a / a on the grid, and the limit D_1 at its lower end."""
    return max(divergence(mp.mpf(order)) / mp.mpf(order) for order in ORDERS)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0, 10.0])
def test_pure_privacy_is_concentrated_with_epsilon_tanh_half_epsilon(epsilon: float) -> None:
    # [Harrison and Manurangsi 2025]: the supremum is at order 1, the relative entropy of randomized response
    with mp.workdps(40):
        slope = largest_slope(lambda order: response(order, epsilon))
        for cost in (Cost.pure(epsilon), Cost.randomized_response(epsilon)):
            assert cost.zcdp() == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-12)
            assert slope <= mp.mpf(cost.zcdp()) <= slope * mp.mpf("1.002")


@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 0.1, 1.0, 3.0, 10.0])
def test_laplace_is_concentrated_with_epsilon_plus_exp_minus_one(epsilon: float) -> None:
    with mp.workdps(40):
        slope = largest_slope(lambda order: laplace(order, 1 / epsilon))
        found = Cost.laplace(1 / epsilon).zcdp()
        assert found == pytest.approx(epsilon + math.expm1(-epsilon), rel=1e-4)
        assert slope <= mp.mpf(found) <= slope * mp.mpf("1.002")


@pytest.mark.parametrize("epsilon", [1e-2, 0.3, 1.0, 3.0])
def test_bounded_range_is_concentrated_with_an_eighth_of_epsilon_squared(epsilon: float) -> None:
    # [Cesar and Rogers 2021]: two-point laws with losses t and t - epsilon, the worst t found on a grid
    with mp.workdps(40):
        laws = [(mp.mpf(epsilon) * k / 40, mp.mpf(epsilon) * (40 - k) / 40) for k in range(1, 40)]
        slopes = [largest_slope(lambda order, law=law: two_points(order, *law)) for law in laws]
        rho = Cost.exponential_mechanism(epsilon).zcdp()
        assert rho == pytest.approx(epsilon**2 / 8, rel=1e-12)
        assert max(slopes) <= mp.mpf(rho)
        assert epsilon > 0.3 or max(slopes) >= mp.mpf(rho) * mp.mpf("0.99")


@pytest.mark.parametrize("epsilon", [1e-100, 1e-9, 1e-3, 0.3, 1.0, 5.0, 40.0, 600.0])
@pytest.mark.parametrize("order", [1 + 1e-9, 1.05, 1.5, 2.0, 7.25, 64.0, 1000.0])
def test_the_curve_of_pure_privacy_is_that_of_randomized_response_rounded_upward(epsilon: float, order: float) -> None:
    with mp.workdps(400):
        size, a = mp.mpf(epsilon), mp.mpf(order)
        exact = mp.log((mp.exp(a * size) + mp.exp((1 - a) * size)) / (1 + mp.exp(size))) / (a - 1)
        found = mp.mpf(Cost.pure(epsilon).rdp(order))
        assert exact <= found
        assert found <= exact * (1 + mp.mpf("1e-11")) or (2 * order - 1) * epsilon / 2 > 600


@pytest.mark.parametrize("epsilon", [1e-13, 1e-9, 1e-4, 0.1, 1.0, 3.0, 8.0, 30.0])
def test_the_mu_of_bounded_range_is_above_that_of_every_window_and_to_four_digits_the_largest(epsilon: float) -> None:
    # two outcomes with losses t and t - epsilon: the corner (a, 1 - e^t a), and mu-GDP through it has z(a) - z(e^t a)
    with mp.workdps(80):
        size = mp.mpf(epsilon)
        score = lambda mass: mp.sqrt(2) * mp.erfinv(1 - 2 * mass)
        corners = [
            (mp.exp(-t) * mp.expm1(t - size) / mp.expm1(-size), t) for t in (size * k / 128 for k in range(64, 128))
        ]
        worst = max(score(a) - score(mp.exp(t) * a) for a, t in corners)
        found = mp.mpf(Cost.exponential_mechanism(epsilon).gdp())
        assert worst <= found
        assert found <= mp.mpf(Cost.pure(epsilon).gdp())
        if 1e-9 <= epsilon <= 3:
            assert found <= worst * mp.mpf("1.0002")


def test_concentrated_costs_add_up_and_are_infinite_where_none_is_known() -> None:
    cost = 4 * Cost.gaussian(2.0) + Cost.concentrated(0.25)
    assert cost.zcdp() == pytest.approx(4 / 8 + 0.25, rel=1e-12)
    assert (cost + Cost.approximate(0.1, 1e-6)).zcdp() == math.inf
