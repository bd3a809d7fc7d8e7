"""Classic composition: published formulas in high precision, and the exact optimal composition as the judge."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import classic
from discreet.errors import InvalidArgument


@pytest.fixture(autouse=True, scope="module")
def fifty_digits():
    with mpmath.workdps(50):
        yield


EPSILONS = st.one_of(st.floats(0, 3), st.floats(1e-12, 1e-3))
DELTAS = st.one_of(st.just(0.0), st.floats(0, 0.2), st.floats(1e-300, 1e-6))
BOXES = st.lists(st.tuples(EPSILONS, DELTAS, st.integers(0, 200)), min_size=1, max_size=6)
SLACKS = st.one_of(st.floats(1e-300, 1e-3), st.floats(1e-3, 0.999))


def unzip(boxes):
    epsilons, deltas, counts = zip(*boxes, strict=True)
    return list(epsilons), list(deltas), list(counts)


def kairouz_oh_viswanath(boxes, slack):
    """[Kairouz et al. 2015, Thm 3.5] in 50 digits."""
    spread = mpmath.fsum(k * mpmath.mpf(e) ** 2 for e, _, k in boxes)
    mean = mpmath.fsum(k * (mpmath.exp(e) - 1) * e / (mpmath.exp(e) + 1) for e, _, k in boxes)
    basic = mpmath.fsum(k * mpmath.mpf(e) for e, _, k in boxes)
    log_kept = mpmath.log1p(-mpmath.mpf(slack)) + mpmath.fsum(k * mpmath.log1p(-mpmath.mpf(d)) for _, d, k in boxes)
    epsilon = basic
    if slack > 0:
        by_log = mean + mpmath.sqrt(2 * spread * mpmath.log(1 / mpmath.mpf(slack)))
        by_scale = mean + mpmath.sqrt(2 * spread * mpmath.log(mpmath.e + mpmath.sqrt(spread) / slack))
        epsilon = min(basic, by_log, by_scale)
    return epsilon, -mpmath.expm1(log_kept)


def optimal_delta(boxes, epsilon):
    """Exact delta of the worst mechanisms: each leaks with probability delta_i, else is randomized response.

    [Kairouz et al. 2015, Thm 3.3; Murtagh and Vadhan 2016, Thm 1.5], by enumeration of all outcomes.
    """
    single = [(mpmath.mpf(e), mpmath.mpf(d)) for e, d, k in boxes for _ in range(k)]
    kept = mpmath.fprod(1 - d for _, d in single)
    total = mpmath.mpf(0)
    for signs in itertools.product((1, -1), repeat=len(single)):
        likely = mpmath.fprod(1 / (1 + mpmath.exp(-s * e)) for s, (e, _) in zip(signs, single, strict=True))
        unlikely = mpmath.fprod(1 / (1 + mpmath.exp(s * e)) for s, (e, _) in zip(signs, single, strict=True))
        total += max(mpmath.mpf(0), likely - mpmath.exp(epsilon) * unlikely)
    return 1 - kept + kept * total - mpmath.mpf(10) ** -45  # its own rounding


def test_basic_composition_is_the_exact_sum_rounded_up():
    assert classic.basic([1.0, 0.5], [0.0, 0.25], counts=[3, 2]) == (4.0, 0.5)
    total, _ = classic.basic([0.1] * 10, [0.0] * 10)
    exact = 10 * Fraction(0.1)
    assert Fraction(math.nextafter(total, 0.0)) < exact <= Fraction(total)
    assert classic.basic([0.1], [0.0], counts=[10]) == (total, 0.0)


@given(st.lists(st.tuples(st.floats(0, 1e300), st.floats(0, 1), st.integers(0, 10**9)), max_size=8))
def test_basic_composition_is_never_below_the_sum_and_within_two_ulp(boxes):
    epsilons, deltas, counts = unzip(boxes) if boxes else ([], [], [])
    epsilon, delta = classic.basic(epsilons, deltas, counts=counts)
    exact = sum((Fraction(e) * k for e, _, k in boxes), Fraction(0))
    exact_delta = sum((Fraction(d) * k for _, d, k in boxes), Fraction(0))
    if epsilon < math.inf:
        assert exact <= Fraction(epsilon) <= exact * (1 + Fraction(1, 2**51)) + Fraction(5e-324) * len(boxes)
    else:
        assert exact > Fraction(1.79e308)
    assert Fraction(delta) >= min(1, exact_delta)
    assert delta <= 1.0


def test_nothing_composed_costs_nothing():
    assert classic.basic([], []) == (0.0, 0.0)
    assert classic.advanced_heterogeneous([], [], slack=0.0) == (0.0, 0.0)
    assert classic.epsilon([3.0], [0.1], delta=0.0, counts=[0]) == 0.0
    assert classic.delta([3.0], [0.1], epsilon=0.0, counts=[0]) == 0.0
    assert classic.advanced(0.5, 0.1, count=0, slack=1e-9) == (0.0, 1e-9)


@given(st.floats(1e-9, 5), st.floats(0, 1e-6), st.integers(1, 10**6), SLACKS)
def test_advanced_composition_is_the_formula_of_dwork_and_roth(epsilon, delta, count, slack):
    got, got_delta = classic.advanced(epsilon, delta, count=count, slack=slack)
    e, k = mpmath.mpf(epsilon), count
    formula = e * mpmath.sqrt(2 * k * mpmath.log(1 / mpmath.mpf(slack))) + k * e * mpmath.expm1(e)
    truth = min(formula, k * e)
    assert truth <= got <= truth * (1 + mpmath.mpf(2) ** -44)
    assert min(1, k * mpmath.mpf(delta) + slack) <= got_delta <= min(1, (k * delta + slack) * (1 + 1e-15))


def test_advanced_composition_at_the_textbook_setting():
    # Dwork and Roth 2014, after Cor. 3.21, in numbers: epsilon 0.1, k = 100, slack 1e-6
    assert classic.advanced(0.1, 0.0, count=100, slack=1e-6)[0] == pytest.approx(6.30823095, abs=1e-8)


@given(BOXES, SLACKS)
def test_heterogeneous_composition_is_its_formula_rounded_up(boxes, slack):
    epsilons, deltas, counts = unzip(boxes)
    epsilon, delta = classic.advanced_heterogeneous(epsilons, deltas, slack=slack, counts=counts)
    true_epsilon, true_delta = kairouz_oh_viswanath(boxes, slack)
    assert true_epsilon <= epsilon <= true_epsilon * (1 + mpmath.mpf(2) ** -44) + 1e-320
    assert true_delta <= delta <= true_delta * (1 + mpmath.mpf(2) ** -44) + 1e-320


@given(st.lists(st.tuples(st.floats(0.01, 2), DELTAS, st.just(1)), min_size=1, max_size=6), st.floats(1e-8, 0.9))
def test_epsilon_is_never_below_the_optimal_composition(boxes, delta):
    epsilons, deltas, _ = unzip(boxes)
    epsilon = classic.epsilon(epsilons, deltas, delta=delta)
    if epsilon < math.inf:
        assert optimal_delta(boxes, epsilon) <= delta
    else:
        assert optimal_delta(boxes, 1000) > delta * (1 - 1e-12)


@given(st.lists(st.tuples(st.floats(0.01, 2), DELTAS, st.just(1)), min_size=1, max_size=6), st.floats(0, 6))
def test_delta_is_never_below_the_optimal_composition(boxes, epsilon):
    epsilons, deltas, _ = unzip(boxes)
    assert classic.delta(epsilons, deltas, epsilon=epsilon) >= optimal_delta(boxes, epsilon)


@given(st.lists(st.tuples(st.floats(1e-3, 3), DELTAS, st.integers(1, 200)), min_size=1), st.floats(1e-12, 0.5))
def test_epsilon_and_delta_are_inverse_to_each_other(boxes, delta):
    epsilons, deltas, counts = unzip(boxes)
    epsilon = classic.epsilon(epsilons, deltas, delta=delta, counts=counts)
    if epsilon == math.inf:
        return
    again = classic.delta(epsilons, deltas, epsilon=epsilon, counts=counts)
    assert again <= delta * (1 + 1e-9)


@given(BOXES, st.floats(1e-12, 0.5), st.floats(1.01, 2))
def test_more_delta_never_raises_epsilon_and_the_slack_of_pure_boxes_is_all_of_delta(boxes, delta, factor):
    epsilons, deltas, counts = unzip(boxes)
    first = classic.epsilon(epsilons, deltas, delta=delta, counts=counts)
    assert classic.epsilon(epsilons, deltas, delta=min(1.0, delta * factor), counts=counts) <= first
    pure = [0.0] * len(boxes)
    assert (
        classic.epsilon(epsilons, pure, delta=delta, counts=counts)
        == classic.advanced_heterogeneous(epsilons, pure, slack=delta, counts=counts)[0]
    )


def test_advanced_composition_beats_basic_composition_for_many_small_boxes():
    assert classic.epsilon([0.01], [0.0], delta=1e-6, counts=[10_000]) < 0.07 * classic.basic([100.0], [0.0])[0]
    # and its second form, with ln(e + sqrt(v)/slack), beats the first where the whole loss is small against the slack
    small, _ = classic.advanced_heterogeneous([1e-5], [0.0], slack=1e-3, counts=[10_000])
    assert small < 1e-3 * math.sqrt(2 * math.log(1e3))


def test_boxes_that_leak_more_than_delta_have_no_finite_epsilon():
    assert classic.epsilon([1.0], [1e-6], delta=1e-7) == math.inf
    assert classic.epsilon([1.0], [1e-6], delta=0.0) == math.inf
    assert classic.epsilon([1.0], [1.0], delta=0.999) == math.inf


def test_boxes_that_leak_exactly_delta_keep_their_epsilon():
    assert classic.epsilon([1.0], [1e-6], delta=1e-6) == 1.0
    assert classic.epsilon([1.0, 2.0], [0.5, 0.5], delta=0.75) == 3.0
    assert classic.epsilon([1.0], [2.0**-20], delta=2.0**-10, counts=[1024]) < 1024
    assert classic.delta([1.0], [1e-6], epsilon=1.0) == 1e-6


def test_ends_of_the_ranges():
    assert classic.epsilon([1.0], [0.5], delta=1.0) == 0.0
    assert classic.epsilon([1e308, 1e308], [0.0, 0.0], delta=0.0) == math.inf
    assert classic.epsilon([1e5], [0.0], delta=1e-300, counts=[3]) == 3e5
    assert classic.epsilon([1e-200], [0.0], delta=1e-300) == 1e-200
    assert classic.delta([0.0], [0.0], epsilon=0.0) == 0.0
    assert classic.delta([1.0], [0.0], epsilon=0.0) == 1.0
    assert 0.0 < classic.delta([0.1], [0.0], epsilon=40.0, counts=[1000]) < 1e-20
    assert classic.advanced(800.0, 0.0, count=2, slack=1e-300) == (1600.0, 1e-300)
    assert classic.advanced_heterogeneous([1.0], [1.0], slack=0.0) == (1.0, 1.0)
    assert classic.advanced_heterogeneous([1.0], [0.3], slack=1.0)[1] == 1.0


def test_split_balances_the_deltas_of_gaussians_and_the_slack():
    # for the classical Gaussian mechanism epsilon_0 = sqrt(2 ln(1.25/delta_0)) / sigma, sigma = 1000, 10 000 times
    profile = lambda d: math.sqrt(2 * math.log(1.25 / d)) / 1000
    epsilon, share, slack = classic.split(profile, count=10_000, delta=1e-5)
    leak = 10_000 * mpmath.log1p(-mpmath.mpf(share)) + mpmath.log1p(-mpmath.mpf(slack))
    assert leak >= mpmath.log1p(-mpmath.mpf(1e-5))
    assert epsilon == classic.advanced_heterogeneous([profile(share)], [share], slack=slack, counts=[10_000])[0]
    by_hand = [
        classic.epsilon([profile(f * 1e-9)], [f * 1e-9], delta=1e-5, counts=[10_000])
        for f in [x / 1000 for x in range(1, 1000)]
    ]
    assert epsilon <= min(by_hand) * (1 + 1e-9)
    assert epsilon < 0.7 * 10_000 * profile(1e-9)


def test_split_falls_back_to_basic_composition_for_one_mechanism():
    profile = lambda d: 1.0 - math.log(d)
    epsilon, share, slack = classic.split(profile, count=1, delta=1e-3)
    assert (epsilon, share, slack) == (profile(1e-3), 1e-3, 0.0)
    assert classic.split(lambda d: math.inf, count=3, delta=0.1)[0] == math.inf


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: classic.basic([-1.0], [0.0]), "epsilons[0]"),
        (lambda: classic.basic([1.0, math.nan], [0.0, 0.0]), "epsilons[1]"),
        (lambda: classic.basic([1.0], [1.5]), "deltas[0]"),
        (lambda: classic.basic([1.0], []), "deltas"),
        (lambda: classic.basic([1.0], [0.0], counts=[1, 2]), "counts"),
        (lambda: classic.basic([1.0], [0.0], counts=[1.5]), "counts[0]"),
        (lambda: classic.basic([1.0], [0.0], counts=[10**301]), "counts[0]"),
        (lambda: classic.advanced(1.0, 0.0, count=-1, slack=0.1), "count"),
        (lambda: classic.advanced(1.0, 0.0, count=1, slack=0.0), "slack"),
        (lambda: classic.advanced_heterogeneous([1.0], [0.0], slack=-0.1), "slack"),
        (lambda: classic.epsilon([1.0], [0.0], delta=math.nan), "delta"),
        (lambda: classic.delta([1.0], [0.0], epsilon=-1.0), "epsilon"),
        (lambda: classic.split(lambda d: 1.0, count=0, delta=0.1), "count"),
        (lambda: classic.split(lambda d: -1.0, count=1, delta=0.1), "profile(0.1)"),
    ],
)
def test_wrong_arguments_are_named(call, argument):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument
