"""`calibrate` returns a parameter that certainly meets the target, and hardly anything better exists."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from discreet.accounting import Cost, calibrate
from discreet.errors import CertificateError, DiscreetError, InvalidArgument
from reference import tables

NEAR = 1e-6
"""How far from the optimum a calibrated parameter may lie."""


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=[pytest.mark.slow] if k != 1 else [], id=f"{target['rate']:.2g}, {target['count']}")
        for k, target in enumerate(tables.calibrations())
    ],
)
def test_noise_of_private_training_is_within_a_millionth_of_the_optimum(target: dict[str, float]) -> None:
    def training(sigma: float) -> Cost:
        return target["count"] * Cost.gaussian(sigma).sampled(target["rate"])

    found = calibrate(training, epsilon=target["epsilon"], delta=target["delta"])
    best = Fraction(str(target["noise_multiplier"]))
    assert training(found).epsilon(target["delta"]) <= target["epsilon"]
    assert best <= Fraction(found) <= best * (1 + Fraction(NEAR))


@pytest.mark.parametrize(
    ("make", "epsilon", "delta", "way"),
    [
        (Cost.gaussian, 1.0, 1e-6, -1),
        (Cost.gaussian, 1e-3, 1e-10, -1),
        (Cost.gaussian, 50.0, 1e-5, -1),
        (lambda s: 100 * Cost.gaussian(s), 0.5, 1e-5, -1),
        (lambda s: 20 * Cost.discrete_gaussian(s), 1.0, 1e-6, -1),
        (Cost.laplace, 0.5, 1e-3, -1),
        (lambda e: 30 * Cost.randomized_response(e), 1.0, 1e-6, 1),
        (lambda e: 30 * Cost.pure(e), 1.0, 1e-6, 1),
        (Cost.concentrated, 1.0, 1e-6, 1),
        (Cost.gaussian_dp, 1.0, 1e-6, 1),
        (lambda s: Cost.gaussian(s) + Cost.randomized_response(0.25), 1.0, 1e-6, -1),
    ],
    ids=["noise", "tiny", "large", "many", "discrete", "laplace", "response", "pure", "rho", "mu", "beside another"],
)
def test_the_target_is_met_and_a_millionth_further_it_is_not(
    make: Callable[[float], Cost], epsilon: float, delta: float, way: int
) -> None:
    found = calibrate(make, epsilon=epsilon, delta=delta)
    assert make(found).epsilon(delta) <= epsilon
    assert make(found * (1 + NEAR * way)).bounds(delta=delta)[1] > epsilon


def test_gaussian_noise_follows_from_its_closed_form() -> None:
    # one Gaussian of multiplier s costs what n of multiplier s sqrt(n) do
    one = calibrate(Cost.gaussian, epsilon=0.7, delta=1e-7)
    many = calibrate(lambda s: 49 * Cost.gaussian(s), epsilon=0.7, delta=1e-7)
    assert many == pytest.approx(7 * one, rel=1e-8)


@pytest.mark.slow
def test_the_largest_sampling_rate() -> None:
    def training(rate: float) -> Cost:
        return 1000 * Cost.gaussian(1.0).sampled(rate)

    found = calibrate(training, epsilon=2.0, delta=1e-5)
    assert 0.01 < found < 0.02  # at 0.01 it costs 1.83
    assert training(found).epsilon(1e-5) <= 2.0 < training(found * (1 + NEAR)).epsilon(1e-5)


def test_a_rate_for_which_every_value_is_allowed_is_the_whole_data() -> None:
    found = calibrate(lambda rate: Cost.gaussian(1.0).sampled(rate), epsilon=5.0, delta=0.01)
    assert found == 1.0


def test_the_largest_number_of_steps_where_make_rounds_down() -> None:
    def steps(x: float) -> Cost:
        return math.floor(x) * Cost.gaussian(20.0)

    found = math.floor(calibrate(steps, epsilon=1.0, delta=1e-6, low=1.0, high=1e6))
    assert steps(found).epsilon(1e-6) <= 1.0 < steps(found + 1).epsilon(1e-6)


@pytest.mark.parametrize(
    ("make", "best", "way"),
    [
        (Cost.laplace, 2.0, -1),
        (lambda b: 10 * Cost.laplace(b), 20.0, -1),
        (Cost.pure, 0.5, 1),
        (lambda e: 10 * Cost.pure(e), 0.05, 1),
        (lambda e: Cost.randomized_response(e) + Cost.pure(0.25), 0.25, 1),
        (lambda b: Cost.discrete_laplace(b, sensitivity=3), 2.0, -1),
    ],
    ids=["laplace", "ten laplace", "pure", "ten pure", "beside another", "discrete laplace"],
)
def test_delta_zero_spends_the_largest_loss(make: Callable[[float], Cost], best: float, way: int) -> None:
    found = calibrate(make, epsilon=0.5, delta=0.0)
    assert make(found).epsilon(0.0) <= 0.5
    assert found == pytest.approx(best, rel=NEAR)
    assert make(found * (1 + NEAR * way)).epsilon(0.0) > 0.5


@pytest.mark.parametrize(
    ("make", "epsilon", "delta"),
    [
        (Cost.gaussian, 1.0, 0.0),
        (lambda s: Cost.gaussian(s) + Cost.pure(2.0), 1.0, 1e-9),
        pytest.param(lambda s: Cost.gaussian(s) + Cost.approximate(0.1, 1e-3), 1.0, 1e-6, marks=pytest.mark.slow),
    ],
    ids=["delta 0", "another costs more", "another leaks"],
)
def test_an_impossible_target_is_refused_with_advice(
    make: Callable[[float], Cost], epsilon: float, delta: float
) -> None:
    with pytest.raises(CertificateError, match="Allow a larger epsilon or delta"):
        calibrate(make, epsilon=epsilon, delta=delta)


def test_without_a_delta_gaussian_noise_asks_for_one() -> None:
    with pytest.raises(CertificateError, match="pass delta > 0"):
        calibrate(Cost.gaussian, epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("epsilon", [1.0, 5.0], ids=["missed", "met"])
def test_a_function_that_ignores_its_argument_is_refused(epsilon: float, integer: bool) -> None:
    with pytest.raises(InvalidArgument, match="same cost of every parameter"):
        calibrate(lambda _: Cost.pure(2.0), epsilon=epsilon, delta=1e-6, integer=integer)


@pytest.mark.parametrize(
    ("make", "way"),
    [
        (lambda k: k * Cost.gaussian(20.0), 1),
        (lambda k: k * Cost.gaussian(30.0) + Cost.laplace(5.0), 1),
        (lambda k: k * Cost.gaussian(4.0).sampled(0.001), 1),
        (lambda k: Cost.gaussian(20.0).grouped(k), 1),
        (lambda k: 3 * Cost.gaussian(k), -1),
        (lambda k: 10 * Cost.discrete_laplace(k), -1),
    ],
    ids=["queries", "beside another", "training", "people", "noise", "integer noise"],
)
def test_the_best_whole_number_meets_the_target_and_its_neighbour_does_not(
    make: Callable[[float], Cost], way: int
) -> None:
    found = calibrate(make, epsilon=1.0, delta=1e-6, integer=True)
    assert type(found) is int
    assert make(found).epsilon(1e-6) <= 1.0 < make(found + way).epsilon(1e-6)


def test_a_whole_number_stays_between_its_limits() -> None:
    def queries(k: float) -> Cost:
        return k * Cost.gaussian(20.0)

    assert calibrate(queries, epsilon=1.0, delta=1e-6, integer=True, low=3, high=10) == 10
    assert calibrate(lambda s: Cost.gaussian(s), epsilon=1.0, delta=1e-6, integer=True, low=9) == 9
    assert calibrate(lambda k: Cost.randomized_response(1.0, options=k), epsilon=1.0, delta=1e-6, integer=True, high=7)
    with pytest.raises(CertificateError, match=r"smallest found is .* at x = 50"):
        calibrate(queries, epsilon=1.0, delta=1e-6, integer=True, low=50)
    with pytest.raises(InvalidArgument, match="low"):
        calibrate(queries, epsilon=1.0, delta=1e-6, integer=True, low=0.5)
    with pytest.raises(InvalidArgument, match="low <= high"):
        calibrate(queries, epsilon=1.0, delta=1e-6, integer=True, low=5, high=4)
    with pytest.raises(InvalidArgument, match="pass high="):
        calibrate(lambda k: k * Cost.gaussian(1e9), epsilon=1.0, delta=1e-6, integer=True)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_one_query_too_many_is_refused_with_what_it_costs(delta: float) -> None:
    with pytest.raises(CertificateError, match="Allow a larger epsilon or delta"):
        calibrate(lambda k: k * Cost.gaussian(0.1), epsilon=1.0, delta=delta, integer=True)


def test_a_count_that_was_not_declared_says_how() -> None:
    with pytest.raises(InvalidArgument, match="pass integer=True"):
        calibrate(lambda k: k * Cost.gaussian(20.0), epsilon=1.0, delta=1e-6)


def test_a_range_without_solution_is_refused() -> None:
    with pytest.raises(CertificateError, match=r"between 0\.5 and 1 "):
        calibrate(Cost.gaussian, epsilon=0.1, delta=1e-6, low=0.5, high=1.0)


def test_limits_that_contain_the_solution_do_not_change_it() -> None:
    free = calibrate(Cost.gaussian, epsilon=1.0, delta=1e-6)
    assert calibrate(Cost.gaussian, epsilon=1.0, delta=1e-6, low=2.0, high=8.0) == pytest.approx(free, rel=1e-8)


@pytest.mark.parametrize(("make", "advice"), [(3, "pass a function"), (None, "pass a function")])
def test_make_must_be_a_function(make: object, advice: str) -> None:
    with pytest.raises(InvalidArgument, match=advice):
        calibrate(make, epsilon=1.0, delta=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda _: None, lambda x: x, lambda _: "cost"])
def test_make_must_return_a_cost(make: Callable[[float], Cost]) -> None:
    for integer in (False, True):
        with pytest.raises(DiscreetError, match=r"make\(1\) = .* must return a Cost"):
            calibrate(make, epsilon=1.0, delta=1e-5, integer=integer)


def test_an_error_of_make_is_passed_on() -> None:
    def broken(x: float) -> Cost:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        calibrate(broken, epsilon=1.0, delta=1e-5)


def test_low_must_be_below_high() -> None:
    with pytest.raises(InvalidArgument, match="low < high"):
        calibrate(Cost.gaussian, epsilon=1.0, delta=1e-5, low=2.0, high=1.0)
