"""Laws of privacy over random parameters: noise helps, sampling helps, more releases cost more."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.errors import CertificateError

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")

few = settings(max_examples=15, deadline=None)
fewer = settings(max_examples=6, deadline=None)

sigmas = st.floats(0.6, 20.0)
rates = st.floats(1e-3, 0.95)
epsilons = st.floats(0.01, 3.0)
deltas = st.floats(-12, -2).map(lambda x: 10.0**x)
counts = st.integers(1, 40)


def no_more(cheaper: Cost, dearer: Cost, **asked: float) -> bool:
    """Whether the certified lower end of one stays below the certified upper end of the other."""
    return cheaper.bounds(**asked)[0] <= dearer.bounds(**asked)[1]


def ordered(cheaper: Cost, dearer: Cost, **asked: float) -> bool:
    """The upper ends are in order too, up to the width that a bracket is allowed to have."""
    slack = 1e-6 if "delta" in asked else 1e-4
    return cheaper.bounds(**asked)[1] <= dearer.bounds(**asked)[1] * (1 + slack) + 1e-290


LEAVES = st.one_of(
    st.builds(Cost.gaussian, sigmas),
    st.builds(lambda s, q: Cost.gaussian(s).sampled(q), sigmas, rates),
    st.builds(Cost.randomized_response, st.floats(0.05, 2.0), options=st.integers(2, 6)),
    st.builds(Cost.approximate, st.floats(0.05, 1.0), st.floats(1e-12, 1e-4)),
    st.builds(Cost.discrete_laplace, st.floats(0.5, 20.0), sensitivity=st.integers(1, 3)),
)
"""Mechanisms that are read quickly."""


@few
@given(sigma=sigmas, rate=rates, n=counts, delta=deltas)
def test_sampling_never_hurts(sigma: float, rate: float, n: int, delta: float) -> None:
    assert ordered(n * Cost.gaussian(sigma).sampled(rate), n * Cost.gaussian(sigma), delta=delta)


@few
@given(sigma=sigmas, rate=rates, share=st.floats(0.1, 0.99), n=counts, epsilon=epsilons)
def test_a_smaller_sample_never_costs_more(sigma: float, rate: float, share: float, n: int, epsilon: float) -> None:
    cost = Cost.gaussian(sigma)
    assert ordered(n * cost.sampled(rate * share), n * cost.sampled(rate), epsilon=epsilon)


@pytest.mark.parametrize("make", [Cost.gaussian, Cost.laplace, Cost.discrete_gaussian, Cost.discrete_laplace])
@few
@given(sigma=st.floats(0.5, 10.0), more=st.floats(1.01, 3.0), epsilon=st.floats(0.01, 1.0))
def test_more_noise_never_costs_more(make: Callable[[float], Cost], sigma: float, more: float, epsilon: float) -> None:
    assert ordered(make(sigma * more), make(sigma), epsilon=epsilon)


@few
@given(sigma=sigmas, more=st.floats(1.01, 3.0), rate=rates, n=counts, delta=deltas)
def test_more_noise_never_costs_more_in_training(sigma: float, more: float, rate: float, n: int, delta: float) -> None:
    louder = n * Cost.gaussian(sigma * more).sampled(rate)
    assert ordered(louder, n * Cost.gaussian(sigma).sampled(rate), delta=delta)


@few
@given(cost=LEAVES, n=counts, first=epsilons, second=epsilons)
def test_delta_falls_as_epsilon_grows(cost: Cost, n: int, first: float, second: float) -> None:
    small, large = sorted((first, second))
    low, high = (n * cost).bounds(epsilon=large), (n * cost).bounds(epsilon=small)
    assert low[0] <= high[1]
    assert low[1] <= high[1] * (1 + 1e-4) + 1e-300


@few
@given(cost=LEAVES, n=counts, first=deltas, second=deltas)
def test_epsilon_falls_as_delta_grows(cost: Cost, n: int, first: float, second: float) -> None:
    small, large = sorted((first, second))
    assert (n * cost).epsilon(large) <= (n * cost).epsilon(small) * (1 + 1e-6)


@few
@given(cost=LEAVES, n=st.integers(2, 40), delta=deltas)
def test_one_release_more_never_costs_less(cost: Cost, n: int, delta: float) -> None:
    assert no_more((n - 1) * cost, n * cost, delta=delta)
    assert ordered((n - 1) * cost, n * cost, delta=delta)


@pytest.mark.slow
@fewer
@given(first=LEAVES, second=LEAVES, epsilon=epsilons)
def test_a_mixture_costs_at_least_each_part(first: Cost, second: Cost, epsilon: float) -> None:
    both = first + second
    for part in (first, second):
        assert no_more(part, both, epsilon=epsilon)
        assert ordered(part, both, epsilon=epsilon)


@pytest.mark.slow
@fewer
@given(first=LEAVES, second=LEAVES, a=deltas, b=deltas)
def test_a_mixture_costs_at_most_the_sum(first: Cost, second: Cost, a: float, b: float) -> None:
    # basic composition: epsilons add and deltas add
    total = first.epsilon(a) + second.epsilon(b)
    assert math.isinf(total) or (first + second).bounds(epsilon=total)[0] <= (a + b) * (1 + 1e-9)


DOMINATED: dict[str, Callable[[float], Cost]] = {
    "laplace": lambda e: Cost.laplace(1 / e),
    "discrete laplace": lambda e: Cost.discrete_laplace(1 / e),
    "randomized response of 5": lambda e: Cost.randomized_response(e, options=5),
    "exponential mechanism": Cost.exponential_mechanism,
    "staircase": Cost.staircase,
}


@pytest.mark.parametrize("make", DOMINATED.values(), ids=DOMINATED)
@few
@given(level=st.floats(0.05, 3.0), share=st.floats(0.0, 0.99))
def test_a_pure_mechanism_costs_at_most_pure_privacy(make: Callable[[float], Cost], level: float, share: float) -> None:
    assert ordered(make(level), Cost.pure(level), epsilon=level * share)
    assert make(level).pure_epsilon() <= level * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("make", DOMINATED.values(), ids=DOMINATED)
@settings(max_examples=3, deadline=None)
@given(level=st.floats(0.05, 1.0), n=st.integers(2, 20), delta=deltas)
def test_pure_mechanisms_together_cost_at_most_pure_privacy(
    make: Callable[[float], Cost], level: float, n: int, delta: float
) -> None:
    assert ordered(n * make(level), n * Cost.pure(level), delta=delta)


@pytest.mark.slow
@fewer
@given(sigma=st.floats(0.8, 10.0), rate=st.floats(0.01, 0.5), n=st.integers(2, 200), delta=deltas)
def test_contour_and_grid_overlap(sigma: float, rate: float, n: int, delta: float) -> None:
    cost = n * Cost.gaussian(sigma).sampled(rate)
    try:
        contour = cost.bounds(delta=delta, method="contour")
    except CertificateError:
        contour = cost.bounds(delta=delta)
    grid = cost.bounds(delta=delta, method="grid")
    assert max(contour[0], grid[0]) <= min(contour[1], grid[1])


@fewer
@given(level=st.floats(0.05, 1.0), options=st.integers(2, 6), n=st.integers(2, 50), epsilon=epsilons)
def test_contour_and_grid_overlap_on_lattices(level: float, options: int, n: int, epsilon: float) -> None:
    cost = n * Cost.randomized_response(level, options=options)
    contour, grid = (cost.bounds(epsilon=epsilon, method=method) for method in ("contour", "grid"))
    assert max(contour[0], grid[0]) <= min(contour[1], grid[1])


@few
@given(cost=LEAVES, n=counts, epsilon=epsilons)
def test_reading_delta_and_back_gives_no_more_than_the_epsilon_asked_for(cost: Cost, n: int, epsilon: float) -> None:
    low, delta = (n * cost).bounds(epsilon=epsilon)
    assume(delta > 1e-250 and delta - low <= 1e-4 * delta)  # wider ones are warned about
    assert (n * cost).epsilon(delta) <= epsilon * (1 + 1e-6)


@few
@given(cost=LEAVES, rho=st.floats(1e-3, 1.0), delta=deltas)
def test_every_bracket_is_in_order(cost: Cost, rho: float, delta: float) -> None:
    for total in (cost, 3 * cost, Cost.concentrated(rho), cost + Cost.concentrated(rho)):
        lower, upper = total.bounds(delta=delta)
        assert 0 <= lower <= upper
