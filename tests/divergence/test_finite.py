"""Divergences of finite distributions: reference values, zeros and infinities, and the laws they obey."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.divergence import f_divergence, hockey_stick, kl, renyi, total_variation
from discreet.errors import InvalidArgument
from divergence.pairs import normalised, pairs, pairs_and_channels

P, Q = [0.5, 0.3, 0.2, 0.0], [0.25, 0.25, 0.25, 0.25]
ORDERS = [0.0, 0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 8.0, math.inf]
EPSILONS = np.array([-2.0, -0.3, 0.0, 0.1, 1.0, 5.0])


def hellinger(t: np.ndarray) -> np.ndarray:
    return (np.sqrt(t) - 1.0) ** 2


def relative_entropy(t: np.ndarray) -> np.ndarray:
    return np.where(t == 0, 0.0, t * np.log(np.where(t == 0, 1.0, t)))


def test_reference_values_by_hand() -> None:
    assert total_variation(P, Q) == pytest.approx(0.3)
    assert float(hockey_stick(P, Q, epsilon=math.log(1.5))) == pytest.approx(0.125)
    assert kl(P, Q) == pytest.approx(0.5 * math.log(2) + 0.3 * math.log(1.2) + 0.2 * math.log(0.8))
    assert renyi(P, Q, order=2.0) == pytest.approx(math.log((0.25 + 0.09 + 0.04) / 0.25))
    assert renyi(P, Q, order=math.inf) == pytest.approx(math.log(2))
    assert renyi(P, Q, order=0.0) == pytest.approx(-math.log(0.75))


def test_randomized_response_costs_its_epsilon() -> None:
    e = 1.3
    p = normalised([math.exp(e), 1.0])
    assert renyi(p, p[::-1], order=math.inf) == pytest.approx(e, rel=1e-15)
    assert float(hockey_stick(p, p[::-1], epsilon=0.0)) == pytest.approx(math.tanh(e / 2), rel=1e-15)
    assert float(hockey_stick(p, p[::-1], epsilon=e + 1e-12)) == 0.0


def test_disjoint_supports_are_infinitely_far() -> None:
    p, q = [1.0, 0.0], [0.0, 1.0]
    assert all(renyi(p, q, order=order) == math.inf for order in ORDERS)
    assert kl(p, q) == math.inf
    assert list(hockey_stick(p, q, epsilon=[-5.0, 0.0, 800.0, math.inf])) == [1.0] * 4
    assert total_variation(p, q) == 1.0


def test_a_cell_missing_on_one_side_is_infinite_in_one_order_only() -> None:
    assert kl(Q, P) == math.inf
    assert renyi(Q, P, order=1.5) == math.inf
    assert renyi(Q, P, order=0.5) == pytest.approx(renyi(P, Q, order=0.5), rel=1e-14)
    assert renyi(P, Q, order=40.0) < math.inf


def test_hockey_stick_survives_tails_and_huge_epsilons() -> None:
    p, q = np.array([1e-300, 1.0]), np.array([1e-305, 1.0])
    assert float(hockey_stick(p, q, epsilon=1.0)) == pytest.approx(1e-300 - math.e * 1e-305, rel=1e-12)
    assert float(hockey_stick([1.0, 0.0], [1e-320, 1.0], epsilon=736.0)) == pytest.approx(
        1 - float(mp.mpf(1e-320) * mp.exp(736)), rel=1e-9
    )
    assert float(hockey_stick([1.0, 0.0], [1e-320, 1.0], epsilon=1e6)) == 0.0
    assert float(hockey_stick(p, q, epsilon=-math.inf)) == 1.0


@pytest.mark.parametrize("order", [0.1, 0.5, 0.999999, 1.0, 1.000001, 1.5, 2.0, 30.0])
@pytest.mark.parametrize("size", [1e-3, 1e-9])
def test_renyi_of_nearly_equal_distributions_keeps_its_digits(order: float, size: float) -> None:
    shift = size * np.array([1.0, -2.0, 1.0])
    q = np.array([0.25, 0.5, 0.25])
    p = q + shift
    with mp.workdps(60):
        first, second = [mp.mpf(float(x)) for x in p], [mp.mpf(float(x)) for x in q]
        total = sum(first)
        first = [x / total for x in first]
        if order == 1:
            exact = sum(a * mp.log(a / b) for a, b in zip(first, second, strict=True))
        else:
            a = mp.mpf(order)
            exact = mp.log(sum(x**a * y ** (1 - a) for x, y in zip(first, second, strict=True))) / (a - 1)
    assert renyi(p, q, order=order) == pytest.approx(float(exact), rel=1e-13 / min(1.0, 1e3 * size) ** 0.5)


def test_renyi_far_apart_neither_overflows_nor_cancels() -> None:
    p, q = [1.0 - 1e-300, 1e-300], [1e-300, 1.0 - 1e-300]
    log_tail = 300 * math.log(10)
    assert renyi(p, q, order=3.0) == pytest.approx(log_tail, rel=1e-12)
    assert renyi(p, q, order=0.5) == pytest.approx(-2 * (math.log(2) - log_tail / 2), rel=1e-12)
    assert kl(p, q) == pytest.approx(log_tail, rel=1e-12)
    tiny = [5e-324, 1.0]
    assert kl(tiny, [0.5, 0.5]) == pytest.approx(math.log(2), rel=1e-12)


@given(pairs_and_channels())
def test_post_processing_lowers_every_divergence(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    p, q, channel = case
    after, reference = normalised(list(p @ channel)), normalised(list(q @ channel))
    rounding = 1e-10
    assert (hockey_stick(after, reference, epsilon=EPSILONS) <= hockey_stick(p, q, epsilon=EPSILONS) + rounding).all()
    assert total_variation(after, reference) <= total_variation(p, q) + rounding
    for order in ORDERS:
        assert renyi(after, reference, order=order) <= renyi(p, q, order=order) * (1 + rounding) + rounding
    before = f_divergence(p, q, generator=hellinger, recession=1.0)
    assert f_divergence(after, reference, generator=hellinger, recession=1.0) <= before + rounding


@given(pairs())
def test_divergences_are_nonnegative_and_vanish_on_equal_pairs(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = pair
    for order in ORDERS:
        assert renyi(p, q, order=order) >= 0
        assert renyi(p, p, order=order) == pytest.approx(0.0, abs=1e-14)
    assert total_variation(p, q) == pytest.approx(total_variation(q, p), rel=1e-15)
    assert (hockey_stick(p, q, epsilon=EPSILONS) >= -np.expm1(np.minimum(EPSILONS, 0)) - 1e-12).all()


@given(pairs(), st.lists(st.floats(0, 60), min_size=2, max_size=5))
def test_renyi_does_not_decrease_in_its_order(pair: tuple[np.ndarray, np.ndarray], orders: list[float]) -> None:
    values = [renyi(*pair, order=order) for order in [*sorted(orders), math.inf]]
    for low, high in itertools.pairwise(values):
        assert low <= high * (1 + 1e-9) + 1e-13


@given(pairs(), st.floats(-3, 3))
def test_hockey_sticks_of_both_orders_determine_each_other(pair: tuple[np.ndarray, np.ndarray], epsilon: float) -> None:
    p, q = pair
    ours = float(hockey_stick(p, q, epsilon=epsilon))
    theirs = float(hockey_stick(q, p, epsilon=-epsilon))
    assert ours == pytest.approx(1 - math.exp(epsilon) + math.exp(epsilon) * theirs, abs=1e-11)


@given(pairs())
def test_f_divergence_contains_the_named_ones(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = pair
    variation = f_divergence(p, q, generator=lambda t: 0.5 * np.abs(t - 1), recession=0.5)
    assert variation == pytest.approx(total_variation(p, q), abs=1e-12)
    stick = f_divergence(p, q, generator=lambda t: np.maximum(t - math.e, 0), recession=1.0)
    assert stick == pytest.approx(float(hockey_stick(p, q, epsilon=1.0)), abs=1e-12)
    entropy = f_divergence(p, q, generator=relative_entropy, recession=math.inf)
    assert entropy == pytest.approx(kl(p, q), abs=1e-10)
    # squared Hellinger = 2 (1 - sum sqrt(p q)) and D_{1/2} = -2 ln sum sqrt(p q)
    affinity = math.exp(-0.5 * renyi(p, q, order=0.5))
    assert f_divergence(p, q, generator=hellinger, recession=1.0) == pytest.approx(2 * (1 - affinity), abs=1e-12)


def test_f_divergence_asks_for_what_it_needs() -> None:
    with pytest.raises(InvalidArgument, match="recession"):
        f_divergence([0.5, 0.5], [1.0, 0.0], generator=hellinger)
    reciprocal = lambda t: np.where(t > 0, 1 / np.where(t > 0, t, 1) - 1, math.inf)
    assert f_divergence([1.0, 0.0], [0.5, 0.5], generator=reciprocal) == math.inf
    with pytest.raises(InvalidArgument, match="NaN"), np.errstate(invalid="ignore", divide="ignore"):
        f_divergence([1.0, 0.0], [0.5, 0.5], generator=lambda t: t * np.log(t))


@pytest.mark.parametrize(
    ("p", "q", "argument"),
    [
        ([0.5, 0.6], [0.5, 0.5], "p"),
        ([0.5, 0.5], [1.0], "q"),
        ([1.5, -0.5], [0.5, 0.5], "p"),
        ([], [], "p"),
        ([0.5, 0.5], [math.nan, 1.0], "q"),
        ([[0.5, 0.5]], [0.5, 0.5], "p"),
    ],
)
def test_anything_but_two_distributions_is_refused(p: list[float], q: list[float], argument: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        kl(p, q)
    assert error.value.argument == argument


def test_bad_orders_and_levels_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="order"):
        renyi(P, Q, order=-1.0)
    with pytest.raises(InvalidArgument, match="order"):
        renyi(P, Q, order=math.nan)
    with pytest.raises(InvalidArgument, match="epsilon"):
        hockey_stick(P, Q, epsilon=math.nan)
