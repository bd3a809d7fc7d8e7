"""Exact Gaussian differential privacy: brackets hold the truth in 100 digits and have the stated width."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accounting.strategies import log_uniform
from discreet.accounting import gaussian_dp
from discreet.errors import InvalidArgument


@pytest.fixture(autouse=True, scope="module")
def hundred_digits():
    with mpmath.workdps(100):
        yield


def true_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """The textbook formula; 100 digits outlast its cancellation, which costs at most 2 log10(1/mu) + 6 of them."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2
    return tail(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * tail(epsilon / mu + mu / 2)


@given(log_uniform(1e-12, 1e6), st.one_of(st.floats(-30, 37), st.floats(-3, 3)))
def test_delta_lies_in_a_bracket_of_width_1e_12(mu, threshold):
    epsilon = mu * (threshold + mu / 2)
    assume(epsilon >= 0)
    truth = true_delta(mu, epsilon)
    lower, upper = gaussian_dp.delta_bounds(mu, epsilon)
    assert lower <= truth <= upper
    if truth > 1e-300:
        assert upper - lower <= 1e-12 * lower


@given(log_uniform(1e-12, 1e6), log_uniform(1e-300, 1e6))
def test_delta_is_bracketed_at_any_epsilon_also_where_it_underflows(mu, epsilon):
    lower, upper = gaussian_dp.delta_bounds(mu, epsilon)
    assume(epsilon / mu < 1e15)  # beyond, 100 digits do not carry the reference
    assert lower <= true_delta(mu, epsilon) <= upper


@given(log_uniform(1e-8, 1e3), st.one_of(log_uniform(1e-300, 0.5), log_uniform(1e-12, 0.5)))
def test_epsilon_lies_in_a_bracket_of_width_1e_10(mu, delta):
    lower, upper = gaussian_dp.epsilon_bounds(mu, delta)
    assert true_delta(mu, upper) <= delta
    assert lower == 0.0 or true_delta(mu, lower) >= delta
    if lower >= mu / 100:
        assert upper - lower <= 1e-10 * lower
    else:
        assert upper - lower <= 1e-11 * mu


@pytest.mark.parametrize("delta", [0.9, 0.999999, 1 - 2.0**-53, 5e-324, 1e-310])
@pytest.mark.parametrize("mu", [1e-8, 0.3, 20.0, 1e3])
def test_epsilon_is_bracketed_for_deltas_near_one_and_near_zero(mu, delta):
    lower, upper = gaussian_dp.epsilon_bounds(mu, delta)
    assert true_delta(mu, upper) <= delta
    assert lower == 0.0 or true_delta(mu, lower) >= delta
    if delta < 0.5:
        assert upper - lower <= 2e-3 * upper


def test_analytic_gaussian_mechanism():
    # [Balle and Wang 2018b, Alg. 1] calibrates epsilon = 1, delta = 1e-5 to sigma = 3.730631634816
    lower, upper = gaussian_dp.epsilon_bounds(1 / 3.730631634816, 1e-5)
    assert lower == pytest.approx(1.0, abs=1e-12)
    assert upper == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("sigma", "epochs", "mu", "epsilon"), [(1.3, 15, 0.23, 0.83), (1.1, 60, 0.57, 2.32), (0.7, 45, 1.13, 5.07)]
)
def test_estimates_of_the_mnist_table(sigma, epochs, mu, epsilon):
    # [Bu et al. 2020, Table 1]: batches of 256 of 60 000 images, delta = 1e-5
    rate = 256 / 60_000
    estimate = gaussian_dp.clt_estimate(rate, sigma, round(epochs / rate))
    assert estimate == pytest.approx(mu, abs=0.005)
    assert gaussian_dp.epsilon_bounds(estimate, 1e-5)[1] == pytest.approx(epsilon, abs=0.005)


def test_total_variation_of_one_gdp():
    # [Dong et al. 2022]: delta(0) = 2 Phi(mu/2) - 1
    lower, upper = gaussian_dp.delta_bounds(1.0, 0.0)
    assert lower <= mpmath.erf(1 / mpmath.sqrt(8)) <= upper


@given(log_uniform(1e-8, 1e3), log_uniform(1e-300, 1.0), st.floats(1.001, 2))
def test_epsilon_falls_with_delta_and_grows_with_mu(mu, delta, factor):
    lower, upper = gaussian_dp.epsilon_bounds(mu, delta)
    assert 0 <= lower <= upper < math.inf
    assert gaussian_dp.epsilon_bounds(mu, min(1.0, delta * factor))[0] <= upper
    assert gaussian_dp.epsilon_bounds(mu * factor, delta)[1] >= lower


@given(log_uniform(1e-8, 1e3), st.floats(0, 50), st.floats(1.001, 2))
def test_delta_falls_with_epsilon_and_grows_with_mu(mu, epsilon, factor):
    lower, upper = gaussian_dp.delta_bounds(mu, epsilon)
    assert 0 <= lower <= upper <= 1
    assert gaussian_dp.delta_bounds(mu, epsilon * factor)[0] <= upper
    assert gaussian_dp.delta_bounds(mu * factor, epsilon)[1] >= lower


def test_ends_of_the_ranges():
    assert gaussian_dp.delta_bounds(0.0, 0.0) == (0.0, 0.0)
    assert gaussian_dp.delta_bounds(1e-8, 1e6) == (0.0, 5e-324)
    assert gaussian_dp.delta_bounds(1e-300, 1e300) == (0.0, 5e-324)
    assert gaussian_dp.epsilon_bounds(0.0, 0.0) == (0.0, 0.0)
    assert gaussian_dp.epsilon_bounds(1.0, 0.0) == (math.inf, math.inf)
    assert gaussian_dp.epsilon_bounds(1.0, 1.0) == (0.0, 0.0)
    assert gaussian_dp.epsilon_bounds(1.0, 0.4) == (0.0, 0.0)
    lower, upper = gaussian_dp.epsilon_bounds(1.0, 0.3829249225480261)  # delta(0) itself, up to rounding
    assert lower == 0.0
    assert upper < 1e-12


def test_enormous_mu_is_bracketed_honestly():
    lower, upper = gaussian_dp.delta_bounds(1e8, 1e15)
    assert lower <= 1.0 == upper
    lower, upper = gaussian_dp.epsilon_bounds(1e8, 1e-6)
    assert 0 < lower < 5e15 < upper < 5.001e15


@given(st.lists(st.tuples(st.floats(0, 1e200), st.integers(0, 10**12)), max_size=6))
def test_composition_is_the_root_of_the_sum_of_squares_rounded_outward(parts):
    lower, upper = gaussian_dp.compose([mu for mu, _ in parts], counts=[k for _, k in parts])
    exact = sum((k * Fraction(mu) ** 2 for mu, k in parts), Fraction(0))
    assert Fraction(lower) ** 2 <= exact <= Fraction(upper) ** 2
    assert upper in (lower, math.nextafter(lower, math.inf))


def test_composition_keeps_exact_roots_and_order_does_not_matter():
    assert gaussian_dp.compose([]) == (0.0, 0.0)
    assert gaussian_dp.compose([3.0, 4.0]) == (5.0, 5.0)
    assert gaussian_dp.compose([0.2], counts=[1]) == (0.2, 0.2)
    assert gaussian_dp.compose([0.2], counts=[100]) == (2.0, 2.0000000000000004)  # the float 0.2 is above 1/5
    assert gaussian_dp.compose([0.5], counts=[100]) == (5.0, 5.0)
    assert gaussian_dp.compose([1e-200, 1e-200]) == pytest.approx((math.sqrt(2) * 1e-200,) * 2, rel=1e-15)
    assert gaussian_dp.compose([1e308, 1.7e308])[1] == math.inf
    assert gaussian_dp.compose([1e308, 1.7e308])[0] == math.nextafter(math.inf, 0.0)
    for parts in itertools.permutations([0.1, 0.7, 1.3]):
        assert gaussian_dp.compose(parts) == gaussian_dp.compose([0.1, 0.7, 1.3])


def test_estimate_at_the_ends():
    assert gaussian_dp.clt_estimate(0.0, 0.01, 10) == 0.0
    assert gaussian_dp.clt_estimate(1.0, 1.0, 0) == 0.0
    assert gaussian_dp.clt_estimate(1.0, 0.01, 1) == math.inf
    assert gaussian_dp.clt_estimate(1.0, 1e-300, 1) == math.inf
    assert gaussian_dp.clt_estimate(0.5, 1e9, 4) == pytest.approx(1e-9, rel=1e-14)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: gaussian_dp.delta_bounds(-1.0, 1.0), "mu"),
        (lambda: gaussian_dp.delta_bounds(math.inf, 1.0), "mu"),
        (lambda: gaussian_dp.delta_bounds(1.0, -1e-9), "epsilon"),
        (lambda: gaussian_dp.epsilon_bounds(math.nan, 0.1), "mu"),
        (lambda: gaussian_dp.epsilon_bounds(1.0, 1.1), "delta"),
        (lambda: gaussian_dp.compose([1.0, -1.0]), "mus[1]"),
        (lambda: gaussian_dp.compose([1.0], counts=[1, 1]), "counts"),
        (lambda: gaussian_dp.compose([1.0], counts=[0.5]), "counts[0]"),
        (lambda: gaussian_dp.clt_estimate(2.0, 1.0, 1), "rate"),
        (lambda: gaussian_dp.clt_estimate(0.5, 0.0, 1), "noise_multiplier"),
        (lambda: gaussian_dp.clt_estimate(0.5, 1.0, -1), "steps"),
    ],
)
def test_wrong_arguments_are_named(call, argument):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument


@given(epsilon=st.floats(1e-3, 100.0), log_delta=st.floats(-60.0, -0.1))
def test_the_largest_mu_keeps_the_guarantee_and_a_larger_one_does_not(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    mu = gaussian_dp.largest_mu(epsilon, delta)
    assert gaussian_dp.delta_bounds(mu, epsilon)[1] <= delta
    assert gaussian_dp.delta_bounds(mu * (1 + 1e-9), epsilon)[0] > delta * (1 - 1e-12)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 0.999])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 500.0])
def test_the_largest_mu_is_found_at_the_ends_of_what_floats_can_say(epsilon: float, delta: float) -> None:
    mu = gaussian_dp.largest_mu(epsilon, delta)
    larger = max(mu * (1 + 1e-9), math.nextafter(mu, math.inf))
    assert gaussian_dp.delta_bounds(mu, epsilon)[1] <= delta < gaussian_dp.delta_bounds(larger, epsilon)[1]


@given(st.one_of(log_uniform(1e-300, 600.0), st.floats(0.9, 1.1)))
def test_the_mu_of_pure_privacy_is_an_upper_bound_to_thirteen_digits_however_small_epsilon_is(epsilon: float) -> None:
    half = mpmath.mpf(epsilon) / 2
    truth = 2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(half)) if epsilon < 100 else None
    found = gaussian_dp.mu_of_pure(epsilon)
    if truth is None:  # erfinv gives up: compare the tails, whose logarithm moves by about mu/2 times what mu moves by
        wanted = -mpmath.log1p(mpmath.exp(2 * half))
        assert mpmath.log(mpmath.erfc(mpmath.mpf(found) / mpmath.sqrt(8)) / 2) < wanted
        assert mpmath.log(mpmath.erfc(mpmath.mpf(found) * (1 - mpmath.mpf("2e-13")) / mpmath.sqrt(8)) / 2) > wanted
    else:
        assert truth < found <= truth * (1 + mpmath.mpf("2e-13"))


def test_nothing_spent_is_no_mu() -> None:
    assert gaussian_dp.mu_of_pure(0.0) == 0.0
    with pytest.raises(InvalidArgument, match="epsilon"):
        gaussian_dp.mu_of_pure(-1.0)
