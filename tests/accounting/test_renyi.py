"""The Rényi accountant: conversions against 60 digits and against the extremal pairs, and the search for the order."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accounting.strategies import log_uniform
from discreet.accounting import renyi
from discreet.errors import InvalidArgument


@pytest.fixture(autouse=True, scope="module")
def sixty_digits():
    with mpmath.workdps(60):
        yield


def above(value: mpmath.mpf) -> float:
    """The smallest float >= value."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


ORDERS = log_uniform(1e-6, 1e9).map(lambda excess: 1.0 + excess)
VALUES = st.one_of(log_uniform(1e-12, 1e3), log_uniform(1e-300, 1e6))
DELTAS = st.one_of(log_uniform(1e-300, 0.99), log_uniform(1e-12, 0.99))


def improved_epsilon(order, value, delta):
    alpha = mpmath.mpf(order)
    return value + mpmath.log((alpha - 1) / alpha) - (mpmath.log(delta) + mpmath.log(alpha)) / (alpha - 1)


def improved_log_delta(order, value, epsilon):
    """ln of e^{(a-1)(r-e)} (1-1/a)^a / (a-1), the form printed in [Canonne et al. 2020, Prop. 12]."""
    alpha = mpmath.mpf(order)
    return (alpha - 1) * (mpmath.mpf(value) - epsilon) + alpha * mpmath.log1p(-1 / alpha) - mpmath.log(alpha - 1)


def two_point_divergence(order, p, q):
    alpha = mpmath.mpf(order)
    power = lambda x, y: mpmath.exp(alpha * mpmath.log(x) + (1 - alpha) * mpmath.log(y))
    return mpmath.log(power(p, q) + power(1 - p, 1 - q)) / (alpha - 1)


@given(ORDERS, VALUES, DELTAS)
def test_improved_epsilon_is_its_formula_rounded_up(order, value, delta):
    truth = max(mpmath.mpf(0), improved_epsilon(order, value, delta))
    got = renyi.epsilon_at_order(order, value, delta, conversion="improved")
    size = value + (abs(math.log(delta)) + math.log(order)) / (order - 1) + 1 / (order - 1)
    assert truth <= got <= truth + 1e-14 * size


@given(ORDERS, VALUES, st.one_of(st.just(0.0), log_uniform(1e-9, 1e4)))
def test_improved_delta_is_its_formula_rounded_up(order, value, epsilon):
    log_truth = improved_log_delta(order, value, epsilon)
    got = renyi.delta_at_order(order, value, epsilon, conversion="improved")
    size = (order - 1) * (value + epsilon) + math.log(order) + 2
    assert min(mpmath.mpf(1), mpmath.exp(log_truth)) <= got
    if -700 < log_truth < 0:
        assert mpmath.log(got) <= log_truth + 1e-14 * size


@given(
    log_uniform(1e-3, 1e3).map(lambda excess: 1.0 + excess),
    log_uniform(1e-100, 0.999),
    log_uniform(1e-3, 30),
    st.floats(0, 1),
)
def test_optimal_conversion_covers_every_two_point_pair_and_is_attained_by_the_extremal_one(order, p, loss, share):
    p = mpmath.mpf(p)
    q = p * mpmath.exp(-mpmath.mpf(loss))
    value = above(two_point_divergence(order, p, q))
    if value <= 1e-12:  # below the accuracy of the reference
        return
    for epsilon in (0.0, share * loss):
        truth = p - mpmath.exp(epsilon) * q
        assert renyi.delta_at_order(order, value, epsilon) >= truth
    # the epsilon for which this pair is the worst: slopes at both likelihood ratios agree (module docstring)
    alpha, x0, x1 = mpmath.mpf(order), (1 - p) / (1 - q), p / q
    worst = mpmath.log((alpha - 1) / alpha * (x1**alpha - x0**alpha) / (x1 ** (alpha - 1) - x0 ** (alpha - 1)))
    if worst <= 1e-6:
        return
    epsilon = float(worst)
    truth = p - mpmath.exp(epsilon) * q
    assert truth <= renyi.delta_at_order(order, value, epsilon) <= truth * (1 + 1e-6)
    # a float below truth, whose epsilon is therefore at least epsilon
    assert epsilon <= renyi.epsilon_at_order(order, value, float(truth) * (1 - 1e-15)) * (1 + 1e-15)
    assert renyi.epsilon_at_order(order, value, float(truth)) <= epsilon * (1 + 1e-6)


@given(st.floats(1.001, 100), log_uniform(1e-3, 5), st.floats(0, 1))
def test_optimal_conversion_with_all_of_p_on_one_point(order, value, share):
    # P sits on a point of Q-mass e^-r: D_alpha = r at every order and delta(epsilon) = 1 - e^(epsilon - r)
    epsilon = share * value
    truth = -mpmath.expm1(mpmath.mpf(epsilon) - mpmath.mpf(value))
    got = renyi.delta_at_order(order, value, epsilon)
    assert got >= truth
    if order * (1 - math.exp(epsilon - value)) > 1.001:
        assert got <= truth * (1 + 1e-12)
        assert renyi.epsilon_at_order(order, value, float(truth)) == pytest.approx(epsilon, abs=1e-12)


@given(ORDERS, VALUES, DELTAS, log_uniform(1e-9, 1e3))
def test_optimal_conversion_is_never_worse_than_the_improved_one(order, value, delta, epsilon):
    best = renyi.epsilon_at_order(order, value, delta)
    assert 0 <= best <= renyi.epsilon_at_order(order, value, delta, conversion="improved")
    assert (
        0
        <= renyi.delta_at_order(order, value, epsilon)
        <= renyi.delta_at_order(order, value, epsilon, conversion="improved")
    )


@pytest.mark.parametrize("conversion", renyi.CONVERSIONS)
@given(ORDERS, st.floats(0, 1e300), st.floats(0, 1), st.floats(0, 1e300))
def test_conversions_give_numbers_everywhere(conversion, order, value, delta, epsilon):
    assert 0 <= renyi.epsilon_at_order(order, value, delta, conversion=conversion) <= math.inf
    assert 0 <= renyi.delta_at_order(order, value, epsilon, conversion=conversion) <= 1


def test_conversions_at_the_ends():
    for conversion in renyi.CONVERSIONS:
        assert renyi.epsilon_at_order(2.0, 0.0, 1e-9, conversion=conversion) == 0.0
        assert renyi.epsilon_at_order(2.0, 0.0, 0.0, conversion=conversion) == 0.0
        assert renyi.epsilon_at_order(2.0, math.inf, 1e-9, conversion=conversion) == math.inf
        assert renyi.epsilon_at_order(2.0, math.inf, 1.0, conversion=conversion) == 0.0
        assert renyi.epsilon_at_order(2.0, 1.0, 0.0, conversion=conversion) == math.inf
        assert renyi.epsilon_at_order(math.inf, 1.5, 0.0, conversion=conversion) == 1.5
        assert renyi.delta_at_order(2.0, 0.0, 0.0, conversion=conversion) == 0.0
        assert renyi.delta_at_order(2.0, math.inf, 1.0, conversion=conversion) == 1.0
        assert renyi.delta_at_order(math.inf, 1.5, 1.5, conversion=conversion) == 0.0
    assert renyi.epsilon_at_order(math.inf, 1.5, 0.25) == pytest.approx(1.5 + math.log(0.75), abs=1e-14)
    assert renyi.delta_at_order(math.inf, 1.5, 0.5) == pytest.approx(1 - math.exp(-1), abs=1e-14)
    assert renyi.delta_at_order(math.inf, 1.5, 0.5, conversion="improved") == 1.0


@given(log_uniform(1e-12, 1e6), log_uniform(1e-300, 1e-2))
def test_search_finds_the_best_real_order(rho, delta):
    # alpha rho + conversion is smallest where (alpha-1)^2 rho = -ln(alpha delta)
    condition = lambda t: 2 * t + mpmath.log(rho) - mpmath.log(-mpmath.log((1 + mpmath.exp(t)) * delta))
    lo, hi = mpmath.mpf(-40), mpmath.log(1 / mpmath.mpf(delta) - 1) - mpmath.mpf(10) ** -30
    assume(condition(hi) > 0)
    root = mpmath.findroot(condition, (lo, hi), solver="anderson", tol=1e-20, verify=False, maxsteps=200)
    order = 1 + mpmath.exp(root)
    truth = improved_epsilon(order, order * rho, delta)
    assume(truth > 0)
    got = renyi.epsilon(lambda alpha: alpha * rho, delta, conversion="improved")
    size = truth + (abs(math.log(delta)) + mpmath.log(order)) / (order - 1)
    assert truth - 1e-15 * size <= got <= truth + 1e-12 * size
    assert renyi.epsilon(lambda alpha: alpha * rho, delta) <= got * (1 + 1e-12)
    again = renyi.delta(lambda alpha: alpha * rho, got, conversion="improved")
    assert again <= delta * (1 + 1e-9 + 1e-13 * float((order - 1) * size))


@pytest.mark.parametrize("conversion", renyi.CONVERSIONS)
def test_search_crosses_the_orders_that_say_nothing(conversion):
    # at rho = 1e5 every order above 1.02 only gives delta = 1
    curve = lambda order: 1e5 * order
    epsilon = renyi.epsilon(curve, 0.05, conversion=conversion)
    assert renyi.delta(curve, epsilon, conversion=conversion) == pytest.approx(0.05, rel=1e-6)


def test_search_is_not_trapped_by_a_second_valley():
    # two valleys that a search from one start would confuse: the curve jumps up at order 3 and comes back at 40
    def curve(order):
        return 0.02 * order + (2.0 if 3 < order < 40 else 0.0)

    fine = min(
        renyi.epsilon_at_order(order, curve(order), 1e-6, conversion="improved")
        for order in 1 + np.geomspace(1e-3, 1e4, 20_001)
    )
    assert renyi.epsilon(curve, 1e-6, conversion="improved") <= fine * (1 + 1e-9)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.5), (30.0, 60.0), (300.0, math.inf), (7.0, 7.0), (1.0, 1.0 + 1e-12)])
def test_search_keeps_to_its_limits_and_reaches_them(low, high):
    asked = []

    def curve(order):
        asked.append(order)
        return 0.01 * order if low <= order <= high else math.inf

    found = renyi.epsilon(curve, 1e-5, orders=(low, high), conversion="improved")
    assert all(low <= order <= high for order in asked)
    end = high if high < 26 else max(low, 34.0)  # the free optimum is at an order of about 34
    if end in (low, high):
        assert found <= renyi.epsilon_at_order(end, 0.01 * end, 1e-5, conversion="improved") * (1 + 1e-7)
    # and without limits, infinite values alone keep the search inside
    if high > 1.001:
        assert renyi.epsilon(curve, 1e-5, conversion="improved") == pytest.approx(found, rel=1e-3) or low == high


def test_curves_that_are_infinite_everywhere_promise_nothing():
    assert renyi.epsilon(lambda order: math.inf, 1e-5) == math.inf
    assert renyi.epsilon(lambda order: math.inf, 1.0) == 0.0
    assert renyi.delta(lambda order: math.inf, 10.0) == 1.0


def test_pure_curves_keep_their_epsilon():
    pure = lambda order: 0.5
    assert renyi.epsilon(pure, 0.0) == 0.5
    assert 0.5 - 1e-11 < renyi.epsilon(pure, 1e-12) <= 0.5 + 1e-13
    assert renyi.delta(pure, 0.5001) < 1e-300
    assert renyi.epsilon(lambda order: 0.0, 0.0) == 0.0
    assert renyi.epsilon(lambda order: 0.0, 1e-9) == 0.0
    assert renyi.delta(lambda order: 0.0, 0.0) == 0.0
    assert renyi.epsilon(pure, 0.0, orders=(1.0, 100.0)) == math.inf


def test_small_losses_profit_from_the_optimal_conversion():
    # total variation of rho-zCDP is at most sqrt(rho/2) [Pinsker]; the improved conversion cannot show it
    curve = lambda order: 1e-4 * order
    assert renyi.delta(curve, 0.0) <= math.sqrt(1e-4 / 2) * 1.001
    assert renyi.delta(curve, 0.0, conversion="improved") > 1.2 * math.sqrt(1e-4 / 2)
    assert renyi.epsilon(curve, math.sqrt(1e-4 / 2) * 1.001) == 0.0


@given(log_uniform(1e-8, 1e4), log_uniform(1e-100, 0.5), st.floats(1.01, 3))
def test_epsilon_falls_with_delta_and_grows_with_the_curve(rho, delta, factor):
    here = renyi.epsilon(lambda order: rho * order, delta)
    slack = 1 + 1e-9
    assert renyi.epsilon(lambda order: rho * order, min(1.0, delta * factor)) <= here * slack
    assert renyi.epsilon(lambda order: factor * rho * order, delta) * slack >= here


def sampled_gaussian(order, *, rate, sigma):
    """D_order((1-q) N(0, s^2) + q N(1, s^2) || N(0, s^2)) for whole orders, by the binomial theorem."""
    total = mpmath.fsum(
        mpmath.binomial(order, k) * (1 - mpmath.mpf(rate)) ** (order - k) * mpmath.mpf(rate) ** k
        * mpmath.exp(mpmath.mpf(k * (k - 1)) / (2 * mpmath.mpf(sigma) ** 2))
        for k in range(order + 1)
    )  # fmt: skip
    return mpmath.log(total) / (order - 1)


@pytest.mark.parametrize(
    ("sigma", "epochs", "published", "least"), [(1.3, 15, 1.19, 0.83), (1.1, 60, 3.01, 2.3758), (0.7, 45, 7.10, 5.0)]
)
def test_moments_accountant_of_the_mnist_table(sigma, epochs, published, least):
    # [Bu et al. 2020, Table 1] prints the moments accountant's epsilon at delta = 1e-5, with the conversion
    # r + ln(1/delta)/(alpha-1); ours must lie below it and above the true epsilon
    rate, steps = 256 / 60_000, epochs * 60_000 // 256
    table = {float(a): float(steps * sampled_gaussian(a, rate=rate, sigma=sigma)) for a in range(2, 33)}
    older = min(value + math.log(1e5) / (order - 1) for order, value in table.items())
    assert published - 0.005 <= older <= published + 0.03  # the paper also used orders between the whole ones
    assert least < renyi.table_epsilon(table, 1e-5) < older - 0.1


def finite_pair(draw_rng, points=5):
    p, q = draw_rng.dirichlet(np.ones(points)), draw_rng.dirichlet(np.ones(points))
    return [mpmath.mpf(float(x)) for x in p], [mpmath.mpf(float(x)) for x in q]


def finite_divergence(order, p, q):
    if order == math.inf:
        return mpmath.log(max(x / y for x, y in zip(p, q, strict=True)))
    alpha = mpmath.mpf(order)
    return mpmath.log(mpmath.fsum(x**alpha * y ** (1 - alpha) for x, y in zip(p, q, strict=True))) / (alpha - 1)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_interpolation_is_never_below_the_true_curve_and_exact_at_the_table(seed, with_infinity):
    rng = np.random.default_rng(seed)
    p, q = finite_pair(rng)
    orders = sorted(1 + np.exp(rng.uniform(-3, 4, size=4))) + ([math.inf] if with_infinity else [])
    table = {float(order): above(finite_divergence(order, p, q)) for order in orders}
    curve = renyi.interpolate(table)
    for order, value in table.items():
        assert curve(order) <= value
    for order in 1 + np.exp(rng.uniform(-4, 6, size=12)):
        assert curve(float(order)) >= finite_divergence(order, p, q)
    if not with_infinity:
        assert curve(2 * orders[-1]) == math.inf


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 0.5), st.floats(0, 2))
def test_table_readings_cover_the_true_profile_and_use_every_order(seed, delta, epsilon):
    rng = np.random.default_rng(seed)
    p, q = finite_pair(rng)
    table = {float(a): above(finite_divergence(a, p, q)) for a in (1.5, 3.0, 9.0, 40.0, math.inf)}
    profile = lambda e: mpmath.fsum(max(mpmath.mpf(0), x - mpmath.exp(e) * y) for x, y in zip(p, q, strict=True))
    assert renyi.table_delta(table, epsilon) >= profile(epsilon)
    assert profile(renyi.table_epsilon(table, delta)) <= delta
    for order, value in table.items():
        assert renyi.table_epsilon(table, delta) <= renyi.epsilon_at_order(order, value, delta)
        assert renyi.table_delta(table, epsilon) <= renyi.delta_at_order(order, value, epsilon)


def test_tables_know_what_lies_between_their_orders():
    # both orders alone give epsilon = 0.215; what convexity implies in between gives a tenth less
    table = {10.0: 0.1, 1000.0: 0.225}
    alone = [renyi.epsilon_at_order(order, value, 1e-2) for order, value in table.items()]
    assert alone == pytest.approx([0.215, 0.215], abs=1e-4)
    assert renyi.table_epsilon(table, 1e-2) < 0.91 * min(alone)
    table = {2.0: 0.1, math.inf: 1.0}
    assert renyi.table_epsilon(table, 1e-3) < renyi.epsilon_at_order(math.inf, 1.0, 1e-3) - 5e-4
    assert renyi.table_epsilon({2.0: 1.0, math.inf: 3.0}, 0.0) == 3.0
    assert renyi.table_epsilon({2.0: 1.0}, 0.0) == math.inf
    assert renyi.table_epsilon({2.0: math.inf}, 1e-3) == math.inf


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), log_uniform(1e-2, 20))
def test_group_curves_cover_chains_of_neighbours(seed, size, excess):
    rng = np.random.default_rng(seed)
    chain = [[mpmath.mpf(float(x)) for x in rng.dirichlet(3 * np.ones(4))] for _ in range(size + 1)]
    pairs = list(itertools.pairwise(chain))
    curve = lambda order: above(max(finite_divergence(order, p, q) for p, q in pairs))
    assert renyi.group(curve, size)(1 + excess) >= finite_divergence(1 + excess, chain[0], chain[-1])


@given(log_uniform(1e-6, 1e3), st.integers(1, 40), log_uniform(1e-3, 1e3))
def test_group_curve_of_a_gaussian_is_that_of_its_scaled_shift(rho, size, excess):
    order = 1 + excess
    grouped = renyi.group(lambda alpha: math.nextafter(rho * alpha, math.inf), size)(order)
    truth = mpmath.mpf(rho) * size**2 * order
    assert truth * (1 - mpmath.mpf(2) ** -52) <= grouped <= truth * (1 + 1e-13)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(2, 30))
def test_group_curve_is_at_most_the_one_of_mironov(seed, doublings, order):
    # [Mironov 2017, Prop. 2]: 3^c r(2^c order) for groups of 2^c and order >= 2
    p, q = finite_pair(np.random.default_rng(seed))
    curve = lambda alpha: above(finite_divergence(alpha, p, q))
    assert renyi.group(curve, 2**doublings)(order) <= 3**doublings * curve(2**doublings * order) * (1 + 1e-12)


def test_groups_of_one_and_pure_groups():
    curve = lambda order: 0.25
    assert renyi.group(curve, 1) is curve
    assert renyi.group(curve, 3)(math.inf) == pytest.approx(0.75, rel=1e-14)
    assert renyi.group(lambda order: math.inf, 2)(3.0) == math.inf


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: renyi.epsilon(lambda order: 1.0, -0.1), "delta"),
        (lambda: renyi.epsilon(lambda order: 1.0, 0.1, orders=(0.5, 2.0)), "orders"),
        (lambda: renyi.epsilon(lambda order: 1.0, 0.1, orders=(3.0, 2.0)), "orders"),
        (lambda: renyi.epsilon(lambda order: 1.0, 0.1, orders=(1.0, 1.0)), "orders[1]"),
        (lambda: renyi.epsilon(lambda order: 1.0, 0.1, conversion="best"), "conversion"),
        (lambda: renyi.epsilon(lambda order: math.nan, 0.1), "curve(2.0)"),
        (lambda: renyi.delta(lambda order: -1e-9, 1.0), "curve(2.0)"),
        (lambda: renyi.delta(lambda order: 1.0, math.nan), "epsilon"),
        (lambda: renyi.epsilon_at_order(1.0, 1.0, 0.1), "order"),
        (lambda: renyi.epsilon_at_order(2.0, -1.0, 0.1), "divergence"),
        (lambda: renyi.delta_at_order(2.0, 1.0, math.inf), "epsilon"),
        (lambda: renyi.table_epsilon({}, 0.1), "table"),
        (lambda: renyi.table_epsilon({2.0: -1.0}, 0.1), "table[2.0]"),
        (lambda: renyi.table_delta({0.5: 1.0}, 0.1), "order"),
        (lambda: renyi.group(lambda order: 1.0, 0), "size"),
    ],
)
def test_wrong_arguments_are_named(call, argument):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument
