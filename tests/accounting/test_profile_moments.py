"""Rényi divergences of samples, read from their profiles: closed forms, integrals, all outcomes, and the far ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.accounting.pair import Direction
from discreet.accounting.profile_moments import ProfileMoments, moments_of
from discreet.errors import InvalidArgument

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")

REPLACE = "replace-one"
laws = st.lists(st.floats(0.02, 1.0), min_size=3, max_size=3).map(lambda row: np.array(row) / sum(row))


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return max(0.0, float(np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q))) / (order - 1))


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def unknown(order: float) -> float:
    return math.inf


def excess(log_density: np.ndarray, loss: np.ndarray, order: float) -> np.ndarray:
    """density times w^a - 1 - a (w - 1) at w = e^loss, without overflow or cancellation."""
    density, linear = np.exp(log_density), order * np.expm1(np.minimum(loss, 600.0))
    small = density * (np.expm1(order * np.minimum(loss, 1 / order)) - linear)
    return np.where(order * loss > 1, np.exp(order * loss + log_density) - density * (1 + linear), small)


def normal(x: np.ndarray, mean: float, sigma: float) -> np.ndarray:
    return np.asarray(-0.5 * ((x - mean) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi)))


def line(sigma: float, order: float, start: float | None = None) -> np.ndarray:
    reach = 12 * sigma + order / sigma + 4
    return np.linspace(-reach if start is None else start, reach, 100_001)


@settings(max_examples=30, deadline=None)
@given(p=laws, q=laws, order=st.floats(1.001, 60.0))
def test_the_profile_of_a_finite_pair_gives_its_divergences_exactly(p: np.ndarray, q: np.ndarray, order: float) -> None:
    pair = Cost.from_pair(p, q).parts[0][0].pair()
    assert pair is not None
    moments = moments_of(pair)
    assert moments.is_bounded
    for direction, truth in (
        (Direction.FORWARD, divergence(p, q, order)),
        (Direction.BACKWARD, divergence(q, p, order)),
    ):
        found = moments.rdp(order, direction, unknown)
        assert truth * (1 - 1e-9) - 1e-11 <= found <= truth * (1 + 1e-6) + 1e-9


@settings(max_examples=30, deadline=None)
@given(
    p=laws,
    q=laws,
    levels=st.lists(st.floats(0.01, 5.0), min_size=1, max_size=12, unique=True),
    order=st.floats(1.01, 20.0),
    above=st.floats(1.01, 3.0),
)
def test_few_levels_and_a_crude_curve_bound_from_above(
    p: np.ndarray, q: np.ndarray, levels: list[float], order: float, above: float
) -> None:
    # the levels may end far below the largest loss: the rest must be paid for
    e = np.array([0.0, *sorted(levels)])
    moments = ProfileMoments(
        e, np.array([hockey_stick(p, q, x) for x in e]), np.array([hockey_stick(q, p, x) for x in e])
    )
    for direction, one, other in ((Direction.FORWARD, p, q), (Direction.BACKWARD, q, p)):
        truth = divergence(one, other, order)
        found = moments.rdp(order, direction, lambda b, one=one, other=other: above * divergence(one, other, b))
        assert truth <= found * (1 + 1e-9) + 1e-13
        if (moments.forward if direction is Direction.FORWARD else moments.backward)[-1] > 0:
            assert moments.rdp(order, direction, unknown) == math.inf


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.1, 0.7), (0.5, 1.0), (1e-4, 2.0)])
def test_gaussian_noise_with_a_replaced_record_agrees_with_an_integral(rate: float, sigma: float) -> None:
    # the integrand is analytic and vanishes at both ends: the trapezoid rule is exact to rounding
    cost = Cost.gaussian(sigma).sampled(rate, adjacency=REPLACE)
    for order in (1.01, 2.0, 6.0, 12.0):
        x = line(sigma, order)
        rest = math.log1p(-rate) + normal(x, 0, sigma)
        one, other = (np.logaddexp(rest, math.log(rate) + normal(x, mean, sigma)) for mean in (1.0, -1.0))
        total = float(np.trapezoid(excess(other, one - other, order), x))
        truth = math.log1p(total) / (order - 1)
        assert truth * (1 - 1e-8) <= cost.rdp(order) <= truth * 1.003


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.3, 0.7)])
def test_gaussian_noise_on_a_sample_of_fixed_size_agrees_with_an_integral(rate: float, sigma: float) -> None:
    # the positive losses of the Poisson-sampled pair and their mirror images; all else has loss 0
    cost = Cost.gaussian(sigma, adjacency=REPLACE).sampled(rate, scheme="without_replacement")
    for order in (1.01, 2.0, 6.0, 12.0):
        x = line(sigma, order, start=0.5)
        rest = normal(x, 0, sigma)
        loss = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * sigma**2))
        both = excess(rest, loss, order) + excess(rest + loss, -loss, order)
        truth = math.log1p(float(np.trapezoid(both, x))) / (order - 1)
        assert truth * (1 - 1e-6) <= cost.rdp(order) <= truth * 1.003


@pytest.mark.parametrize("scheme", ["without_replacement", "balls_in_bins", "replaced"])
@pytest.mark.parametrize("base", [Cost.gaussian(0.7), Cost.laplace(1.0), Cost.discrete_gaussian(1.5)], ids=repr)
def test_curves_are_finite_rise_and_stay_below_the_unsampled_one(scheme: str, base: Cost) -> None:
    # the last orders lie beyond all that a profile in floats can know
    if scheme == "replaced":
        cost, plain = base.sampled(0.1, adjacency=REPLACE), base.grouped(2)
    elif scheme == "without_replacement":
        plain = base.with_adjacency(REPLACE)
        cost = plain.sampled(0.1, scheme=scheme)
    else:
        cost, plain = base.sampled(0.1, scheme=scheme), base
    poisson = base.sampled(0.1)
    before = 0.0
    for order in (1.0001, 1.5, 2.0, 5.5, 20.0, 45.0, 100.0, 3000.0):
        found = cost.rdp(order)
        assert before * (1 - 1e-9) <= found <= plain.rdp(order) * (1 + 1e-12) < math.inf
        # more is known of the record than in a Poisson sample, once: a lower bound of all three
        if scheme != "balls_in_bins":
            assert found >= poisson.rdp(order) * (1 - 1e-6)
        before = found
    assert (10 * cost).rdp(4.0) == pytest.approx(10 * cost.rdp(4.0), rel=1e-12)


def test_a_profile_lost_to_underflow_is_not_taken_for_zero() -> None:
    # at these orders the divergence comes from losses whose delta no float holds
    for order in (60.0, 300.0, 2000.0):
        cost = Cost.gaussian(0.7, adjacency=REPLACE).sampled(0.1, scheme="without_replacement")
        assert cost.rdp(order) >= Cost.gaussian(0.7).sampled(0.1).rdp(order) * (1 - 1e-9)


def test_a_box_that_may_leak_has_no_curve_on_any_sample() -> None:
    leak = Cost.approximate(1.0, 1e-6, adjacency=REPLACE)
    assert leak.sampled(0.1, scheme="without_replacement").rdp(2.0) == math.inf
    assert leak.with_adjacency("add-remove").sampled(0.1, scheme="balls_in_bins").rdp(2.0) == math.inf
    with pytest.raises(InvalidArgument):
        leak.sampled(0.1, scheme="without_replacement").rdp(1.0)
