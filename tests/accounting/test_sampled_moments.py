"""Samples of mechanisms known only by Rényi curves: no mechanism under the curve gets above it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.accounting.sampled_moments import log_epoch_moments, log_replaced_moment, whole_exponents

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")

REPLACE = "replace-one"
ORDERS = tuple(np.arange(1.25, 13.0, 0.25))
laws = st.lists(st.floats(0.02, 1.0), min_size=3, max_size=3).map(lambda row: np.array(row) / sum(row))


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return max(0.0, math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1))


def curve_over(pairs: list[tuple[np.ndarray, np.ndarray]], adjacency: str) -> Cost:
    """The smallest curve, at many orders, that all these pairs stay below in both orders."""
    both = pairs + [(q, p) for p, q in pairs]
    return Cost.renyi({a: max(divergence(p, q, a) for p, q in both) for a in ORDERS}, adjacency=adjacency)


@settings(max_examples=25, deadline=None)
@given(without=laws, old=laws, new=laws, rate=st.floats(0.001, 0.95), order=st.floats(1.05, 12.0))
def test_no_mechanism_under_the_curve_gets_above_it_when_a_record_is_replaced(
    without: np.ndarray, old: np.ndarray, new: np.ndarray, rate: float, order: float
) -> None:
    one, other = (1 - rate) * without + rate * old, (1 - rate) * without + rate * new
    truth = max(divergence(one, other, order), divergence(other, one, order))
    near, far = [(old, without), (new, without)], [(old, new)]
    fixed = curve_over(near + far, REPLACE).sampled(rate, scheme="without_replacement")
    assert truth <= fixed.rdp(order) * (1 + 1e-9) + 1e-13
    # Poisson: one change for each of `near`; what two changes cost follows from the curve at twice the order
    wide = {a: max(divergence(p, q, a) for p, q in [*near, *[(q, p) for p, q in near]]) for a in (2.5, 5.0, 12.0, 25.0)}
    assert truth <= Cost.renyi(wide).sampled(rate, adjacency=REPLACE).rdp(order) * (1 + 1e-9) + 1e-13


@settings(max_examples=20, deadline=None)
@given(p=laws, q=laws, batches=st.integers(2, 4), order=st.floats(1.05, 12.0))
def test_no_epoch_of_a_mechanism_under_the_curve_gets_above_it(
    p: np.ndarray, q: np.ndarray, batches: int, order: float
) -> None:
    ratio, law = p / q, np.ones(1)
    total = np.zeros(1)
    for _ in range(batches):
        total, law = np.add.outer(total, ratio).ravel(), np.multiply.outer(law, q).ravel()
    mean = total / batches
    truth = max(math.log(float((law * mean**order).sum())), math.log(float((law * mean ** (1 - order)).sum())))
    epoch = curve_over([(p, q)], "add-remove").sampled(1 / batches, scheme="balls_in_bins")
    assert truth / (order - 1) <= epoch.rdp(order) * (1 + 1e-9) + 1e-13


def test_moments_of_a_mean_are_those_of_simple_laws() -> None:
    # w = 0 or 2 by a fair coin has E w^k = 2^{k-1}; a mean of T of them is 2 Bin(T, 1/2) / T
    exponents = np.log(2.0) * np.arange(1.0, 20.0)
    for batches in (2, 3, 7, 50):
        k = np.arange(batches + 1)
        chance = np.array([math.comb(batches, int(i)) for i in k]) / 2.0**batches
        found = log_epoch_moments(batches, exponents)
        for order in (2, 3, 10, 20):
            truth = math.log(float((chance * (2 * k / batches) ** order).sum()))
            assert truth <= found[order] <= truth + 1e-9
    # a ratio that is always 1 has a mean that is always 1, whatever the number of batches
    assert np.all(log_epoch_moments(10**6, np.zeros(63)) < 1e-6)
    assert np.all(log_epoch_moments(10**6, np.zeros(63))[:9] < 1e-9)


def test_the_expansion_of_a_replaced_record_has_its_second_moment() -> None:
    # order 2: q^2 times the smaller of the two means over the reference
    rate, one, two = 0.2, 0.3, 0.7
    apart = min(2 * math.exp(one), 4 * math.expm1(one))
    middle = min(0.8 * apart + 0.2 * math.expm1(two), apart / 0.8)
    found = log_replaced_moment(2, rate, np.array([one]), np.array([two]))
    assert found == pytest.approx(math.log1p(rate**2 * middle), rel=1e-9)
    assert found >= math.log1p(rate**2 * middle)


def test_curves_end_where_the_given_one_does() -> None:
    curve = Cost.renyi({2.0: 0.1, 6.0: 0.4}, adjacency=REPLACE).sampled(0.1, scheme="without_replacement")
    assert curve.rdp(6.0) < 0.4
    assert curve.rdp(6.5) == math.inf
    assert np.isinf(whole_exponents(curve.parts[0][0].base, 9)[5:]).all()


@pytest.mark.parametrize(
    ("make", "plain"),
    [
        (lambda q: Cost.concentrated(0.1).sampled(q, adjacency=REPLACE), 0.4),
        (lambda q: Cost.concentrated(0.1, adjacency=REPLACE).sampled(q, scheme="without_replacement"), 0.1),
        (lambda q: Cost.concentrated(0.1).sampled(q, scheme="balls_in_bins"), 0.1),
    ],
)
def test_concentrated_costs_are_amplified_by_every_scheme(make: object, plain: float) -> None:
    assert callable(make)
    cost = make(0.05)
    assert Cost.from_json(cost.to_json()) == cost
    low, high = (100 * cost).bounds(delta=1e-6)
    assert 0 < low < high < (100 * Cost.concentrated(plain)).epsilon(1e-6)
    assert cost.zcdp() == pytest.approx(plain)
    assert make(0.5).rdp(3.0) > cost.rdp(3.0)
    assert make(0.5).rdp(5000.0) <= plain * 5000.0 * (1 + 1e-9)
