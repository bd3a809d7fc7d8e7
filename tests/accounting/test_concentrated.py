"""zCDP: the upper end is the best Rényi conversion, the lower end the Gaussian mechanism, over the whole range."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.strategies import log_uniform
from discreet.accounting import concentrated
from discreet.errors import InvalidArgument


@pytest.fixture(autouse=True, scope="module")
def hundred_digits():
    with mpmath.workdps(100):
        yield


RHOS = log_uniform(1e-12, 1e6)
DELTAS = st.one_of(log_uniform(1e-300, 1e-5), log_uniform(1e-12, 0.5))


def best_improved_epsilon(rho, delta):
    """min over alpha of the improved conversion, which has a single minimum: by golden sections in 100 digits."""
    rho, log_delta = mpmath.mpf(rho), mpmath.log(delta)

    def value(t):
        excess = mpmath.exp(t)
        return (1 + excess) * rho - mpmath.log1p(1 / excess) - (log_delta + mpmath.log1p(excess)) / excess

    low, high, golden = mpmath.mpf(-40), mpmath.mpf(60), (mpmath.sqrt(5) - 1) / 2
    with mpmath.workdps(40):
        for _ in range(100):
            left, right = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, right) if value(left) < value(right) else (left, high)
    return value((low + high) / 2)


def gaussian_delta(mu, epsilon):
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2
    return tail(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * tail(epsilon / mu + mu / 2)


@given(RHOS, DELTAS)
def test_improved_conversion_is_the_exact_minimum_over_real_orders(rho, delta):
    truth = max(mpmath.mpf(0), best_improved_epsilon(rho, delta))
    got = concentrated.epsilon(rho, delta, conversion="improved")
    scale = truth + 2 * mpmath.sqrt(rho)
    assert truth - scale * mpmath.mpf(10) ** -30 <= got <= truth + scale * 1e-11
    assert concentrated.epsilon(rho, delta) <= got * (1 + 1e-12)


@given(RHOS, DELTAS)
def test_bracket_of_epsilon_holds_the_gaussian_mechanism_and_the_textbook_bound(rho, delta):
    lower, upper = concentrated.epsilon_bounds(rho, delta)
    mu = mpmath.sqrt(2 * mpmath.mpf(rho))
    assert 0 <= lower <= upper < math.inf
    assert lower == 0 or gaussian_delta(mu, lower) >= delta
    assert gaussian_delta(mu, upper) <= delta
    # [Bun and Steinke 2016, Prop. 1.3]
    assert upper <= (rho + 2 * math.sqrt(rho * math.log(1 / delta))) * (1 + 1e-12)


@given(RHOS, st.one_of(st.just(0.0), log_uniform(1e-6, 1e6)))
def test_bracket_of_delta_holds_the_gaussian_mechanism(rho, epsilon):
    lower, upper = concentrated.delta_bounds(rho, epsilon)
    assert 0 <= lower <= upper <= 1
    truth = gaussian_delta(mpmath.sqrt(2 * mpmath.mpf(rho)), epsilon) if epsilon**2 / rho < 1e8 else mpmath.mpf(0)
    assert upper >= truth
    assert lower <= truth or truth == 0


@given(RHOS, log_uniform(1e-250, 0.1))
def test_epsilon_and_delta_are_inverse_to_each_other(rho, delta):
    epsilon = concentrated.epsilon(rho, delta)
    if epsilon > 1e-3 * math.sqrt(rho):
        assert math.log(concentrated.delta(rho, epsilon)) == pytest.approx(math.log(delta), abs=1e-6)


@given(RHOS, DELTAS, st.floats(1.01, 3))
def test_epsilon_falls_with_delta_and_grows_with_rho(rho, delta, factor):
    here = concentrated.epsilon(rho, delta)
    assert concentrated.epsilon(rho, min(1.0, delta * factor)) <= here * (1 + 1e-9)
    assert concentrated.epsilon(rho * factor, delta) * (1 + 1e-9) >= here


@pytest.mark.parametrize(
    ("rho", "delta", "textbook", "improved"),
    [
        # rho + 2 sqrt(rho ln(1/delta)) and the exact minimum of the improved conversion, both to the digits shown
        (0.5, 1e-5, 5.2985, 4.7284),
        (0.5, 1e-6, 5.7565, 5.2215),
        (0.1, 1e-10, 3.1349, 2.8818),
    ],
)
def test_reference_values(rho, delta, textbook, improved):
    assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) == pytest.approx(textbook, abs=1e-4)
    assert concentrated.epsilon(rho, delta, conversion="improved") == pytest.approx(improved, abs=1e-4)
    assert concentrated.epsilon(rho, delta) == pytest.approx(improved, abs=1e-4)


def test_ends_of_the_ranges():
    assert concentrated.epsilon_bounds(0.0, 0.0) == (0.0, 0.0)
    assert concentrated.epsilon_bounds(0.0, 1e-300) == (0.0, 0.0)
    assert concentrated.epsilon_bounds(1.0, 0.0) == (math.inf, math.inf)
    assert concentrated.epsilon_bounds(1.0, 1.0) == (0.0, 0.0)
    assert concentrated.delta_bounds(0.0, 0.0) == (0.0, 0.0)
    lower, upper = concentrated.delta_bounds(1e-12, 1.0)
    assert lower == 0.0 < upper < 1e-300
    assert concentrated.epsilon(1e-12, 1e-5) == 0.0  # its total variation is below 1e-6
    lower, upper = concentrated.epsilon_bounds(1e6, 1e-300)
    assert 1.05e6 < lower < upper < 1.0527e6


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**9)), max_size=8))
def test_composition_is_the_sum_rounded_up(parts):
    total = concentrated.compose([rho for rho, _ in parts], counts=[k for _, k in parts])
    exact = sum((k * Fraction(rho) for rho, k in parts), Fraction(0))
    assert exact <= Fraction(total)
    assert total == 0.0 or Fraction(math.nextafter(total, 0.0)) < exact


def test_composition_and_groups_of_exact_numbers():
    assert concentrated.compose([]) == 0.0
    assert concentrated.compose([0.5, 0.25]) == 0.75
    assert concentrated.compose([1e308], counts=[100]) == math.inf
    assert concentrated.group(0.125, 4) == 2.0
    assert concentrated.group(0.1, 1) == 0.1
    assert Fraction(concentrated.group(0.1, 3)) >= 9 * Fraction(0.1)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: concentrated.epsilon(-1.0, 0.1), "rho"),
        (lambda: concentrated.epsilon(1.0, 1.1), "delta"),
        (lambda: concentrated.epsilon(1.0, 0.1, conversion="old"), "conversion"),
        (lambda: concentrated.delta(math.inf, 1.0), "rho"),
        (lambda: concentrated.delta(1.0, -1.0), "epsilon"),
        (lambda: concentrated.epsilon_bounds(math.nan, 0.1), "rho"),
        (lambda: concentrated.delta_bounds(1.0, math.nan), "epsilon"),
        (lambda: concentrated.compose([1.0, -1.0]), "rhos[1]"),
        (lambda: concentrated.compose([1.0], counts=[]), "counts"),
        (lambda: concentrated.compose([1.0], counts=[-1]), "counts[0]"),
        (lambda: concentrated.group(1.0, 0), "size"),
    ],
)
def test_wrong_arguments_are_named(call, argument):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument
