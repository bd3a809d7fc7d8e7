"""Rounded Gaussian, truncated geometric, staircase, bounded and optimal noise: laws, costs, errors, storage."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.accounting.evaluate import delta_reading
from discreet.divergence import hockey_stick
from discreet.errors import DiscreetError, InvalidArgument
from discreet.mechanisms import (
    BoundedNoise,
    DiscreteLaplace,
    Laplace,
    Mechanism,
    OptimalNoise,
    RoundedGaussian,
    Staircase,
    TruncatedGeometric,
)
from discreet.mechanisms.staircase import least_squares_gamma
from discreet.mechanisms.weights import WeightedNoise
from discreet.noise.testing import SeededGenerator
from mechanisms import laws
from mechanisms.laws import ALPHA, DRAWS, p_value

ALL = [
    RoundedGaussian(noise_multiplier=2.0, sensitivity=math.sqrt(3)),
    RoundedGaussian(epsilon=1.0, delta=1e-6, adjacency="replace-one"),
    TruncatedGeometric(epsilon=0.5, lower=-2, upper=9, sensitivity=2),
    Staircase(epsilon=2.0, sensitivity=1.5),
    Staircase(epsilon=2.0, sensitivity=3, gamma=0.4, coordinates=5, granularity=1),
    BoundedNoise(bound=6.0, power=3, sensitivity=1),
    BoundedNoise(bound=60.5, power=3, sensitivity=0.7, coordinates=4),
    OptimalNoise(variance=0.5),
    OptimalNoise(variance=1.5, order=2.0, coordinates=3),
]


def staircase_mass(epsilon: float, steps: int, first: int):
    def level(k: int) -> int:
        return 0 if abs(k) < first else (abs(k) - first) // steps + 1

    total = math.fsum(math.exp(-epsilon * level(k)) for k in range(-60 * steps, 60 * steps + 1))
    return lambda k: math.exp(-epsilon * level(k)) / total


def weighted_mass(noise: WeightedNoise):
    def mass(k: int) -> float:
        k, n = abs(k), len(noise.weights)
        if k < n:
            return noise.weights[k] / noise.total
        return noise.tail / noise.total * -math.expm1(-float(noise.rate)) * math.exp(-float(noise.rate) * (k - n))

    return mass


CASES = [
    (
        RoundedGaussian(noise_multiplier=1.5, sensitivity=2),
        laws.rounded_gaussian(3.0),
        [laws.rounded_gaussian(3.3), laws.rounded_gaussian(2.7)],
    ),
    (
        Staircase(epsilon=1.0, sensitivity=6, gamma=0.4, granularity=1),
        staircase_mass(1.0, 6, 3),
        [staircase_mass(1.1, 6, 3), staircase_mass(1.0, 6, 4), staircase_mass(1.0, 7, 3)],
    ),
    (
        BoundedNoise(bound=12, power=3, sensitivity=1, granularity=1),
        weighted_mass(WeightedNoise(tuple((144 - k * k) ** 3 for k in range(12)))),
        [weighted_mass(WeightedNoise(tuple((144 - k * k) ** power for k in range(12)))) for power in (2, 4)],
    ),
    (
        OptimalNoise(variance=1.0),
        weighted_mass(OptimalNoise(variance=1.0)._noise),
        [weighted_mass(OptimalNoise(variance=variance)._noise) for variance in (0.9, 1.1)],
    ),
    (
        OptimalNoise(weights=[1, 3], tail=2, rate=0.25),
        weighted_mass(WeightedNoise((1, 3), 2, Fraction(1, 4))),
        [
            weighted_mass(WeightedNoise((1, 3), 2, Fraction(3, 10))),
            weighted_mass(WeightedNoise((2, 3), 2, Fraction(1, 4))),
        ],
    ),
]


@pytest.mark.parametrize(("mechanism", "law", "others"), CASES, ids=lambda value: getattr(value, "kind", None))
def test_released_minus_value_has_the_stated_law_and_no_other(mechanism, law, others) -> None:
    draws = np.asarray(mechanism.release(np.full(DRAWS, 17)) - 17).astype(int)
    assert p_value(draws, law) > ALPHA
    for other in others:
        assert p_value(draws, other) < ALPHA


@pytest.mark.parametrize(("mechanism", "law", "others"), CASES, ids=lambda value: getattr(value, "kind", None))
@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.9, 0.99, 1 - 1e-7])
def test_the_error_is_the_exact_quantile_and_moments_are_exact(mechanism, law, others, confidence: float) -> None:
    reach = math.floor(mechanism.error(confidence))  # half a step more where the value is rounded

    def beyond(steps: int) -> float:
        return 2 * math.fsum(law(k) for k in range(steps + 1, steps + 300))

    assert beyond(reach) <= (1 - confidence) * (1 + 1e-9)
    assert reach == 0 or beyond(reach - 1) > (1 - confidence) * (1 - 1e-9)
    assert mechanism.variance == pytest.approx(2 * math.fsum(k * k * law(k) for k in range(300)), rel=1e-9)
    assert mechanism.expected_absolute_error == pytest.approx(2 * math.fsum(k * law(k) for k in range(300)), rel=1e-9)


@pytest.mark.parametrize(("mechanism", "law", "others"), CASES[1:], ids=lambda value: getattr(value, "kind", None))
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
def test_the_cost_is_the_divergence_of_the_masses_at_every_change(mechanism, law, others, epsilon: float) -> None:
    most = 6 if isinstance(mechanism, Staircase) else 1
    outcomes = range(-200, 201)
    worst = max(
        hockey_stick([law(k - shift) for k in outcomes], [law(k) for k in outcomes], epsilon=epsilon)
        for shift in range(1, most + 1)
    )
    assert mechanism.cost.delta(epsilon) == pytest.approx(worst, rel=1e-7, abs=1e-14)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: mechanism.kind)
def test_a_description_survives_json(mechanism: Mechanism) -> None:
    again = Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict(), allow_nan=False)))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again.cost == mechanism.cost
    value = 4
    assert again.release(value, generator=SeededGenerator(3)) == mechanism.release(value, generator=SeededGenerator(3))
    assert mechanism.kind.replace("_", "") in repr(mechanism).lower()


def test_costs_are_those_of_the_leaves() -> None:
    assert RoundedGaussian(noise_multiplier=2.0, sensitivity=5).cost == Cost.gaussian(2.0)
    assert TruncatedGeometric(epsilon=0.5, lower=0, upper=9).cost == Cost.discrete_laplace(2.0)
    assert Staircase(epsilon=2.0, sensitivity=3, gamma=0.4, coordinates=5, granularity=1).cost == (
        5 * Cost.staircase(2.0, gamma=0.5)  # two of three steps: (2 - 1/2) / 3
    )
    assert OptimalNoise(variance=0.5, coordinates=7).cost == 7 * OptimalNoise(variance=0.5).cost


def test_a_truncated_answer_stays_in_the_range_and_has_the_clamped_law() -> None:
    mechanism = TruncatedGeometric(epsilon=1.0, lower=0, upper=5)
    released = mechanism.release(np.full(DRAWS, 2))
    assert set(released.tolist()) == set(range(6))
    mass = laws.discrete_laplace(1.0)
    below, above = math.fsum(mass(k) for k in range(2, 60)), math.fsum(mass(k) for k in range(3, 60))
    expected = np.array([below, mass(1), mass(0), mass(1), mass(2), above]) * DRAWS
    counts = np.bincount(released, minlength=6)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < 57.0  # chi-square with 5 degrees of freedom exceeds this with probability 5e-11
    assert mechanism.release(10**30) <= 5
    assert mechanism.release(-3) >= 0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_staircase_noise_has_less_error_than_laplace_noise(epsilon: float) -> None:
    laplace = Laplace(epsilon=epsilon, sensitivity=1)
    absolute = Staircase(epsilon=epsilon, sensitivity=1)
    squared = Staircase(epsilon=epsilon, sensitivity=1, gamma=least_squares_gamma(epsilon))
    # the least mean absolute error is e^{eps/2} / (e^eps - 1) [Geng and Viswanath 2016]
    assert absolute.expected_absolute_error == pytest.approx(math.exp(epsilon / 2) / math.expm1(epsilon), rel=1e-4)
    assert absolute.expected_absolute_error < laplace.expected_absolute_error
    assert squared.variance < laplace.variance
    for share in (0.97, 1.03):
        worse = Staircase(epsilon=epsilon, sensitivity=1, gamma=share * squared.gamma)
        assert squared.variance < worse.variance


@given(epsilon=st.floats(0.05, 20), sensitivity=st.floats(1e-3, 1e3), gamma=st.floats(0.01, 0.99))
def test_a_staircase_costs_its_epsilon_and_no_more(epsilon: float, sensitivity: float, gamma: float) -> None:
    mechanism = Staircase(epsilon=epsilon, sensitivity=sensitivity, gamma=gamma)
    assert mechanism.cost.pure_epsilon() == pytest.approx(epsilon, rel=1e-12)
    assert abs((mechanism.first - 0.5) / mechanism.steps - gamma) <= 1 / mechanism.steps
    assert mechanism.error(0.5) <= mechanism.error(0.9) <= mechanism.error(0.999)


def test_bounded_noise_keeps_every_answer_within_its_bound() -> None:
    mechanism = BoundedNoise(bound=20, power=4, sensitivity=1, coordinates=100)
    released = mechanism.release(np.zeros(DRAWS))
    assert np.abs(released).max() <= mechanism.error() < 20
    assert mechanism.cost.pure_epsilon() == math.inf
    assert BoundedNoise(bound=20, power=4, sensitivity=1).cost.delta(2.0) < 1e-4


@given(steps=st.integers(2, 60), power=st.integers(1, 12))
def test_bounded_noise_is_log_concave_so_that_the_largest_change_dominates(steps: int, power: int) -> None:
    noise = WeightedNoise(tuple((steps * steps - k * k) ** power for k in range(steps)))
    assert noise.is_log_concave()
    smaller, larger = Cost.from_pair(*noise.pair(1)), Cost.from_pair(*noise.pair(2))
    for epsilon in (0.0, 0.1, 1.0):
        assert smaller.delta(epsilon) <= larger.delta(epsilon) * (1 + 1e-9)


def test_noise_that_is_not_log_concave_is_recognised() -> None:
    assert not WeightedNoise((5, 1, 1)).is_log_concave()
    assert not WeightedNoise((1, 5, 1)).is_log_concave()


@given(variance=st.floats(0.05, 8), order=st.sampled_from([1.0, 1.5, 3.0]))
def test_optimal_noise_has_its_variance_and_a_smaller_divergence_than_its_rivals(variance: float, order: float) -> None:
    noise = OptimalNoise(variance=variance, order=order)
    assert noise.variance == pytest.approx(variance, rel=1e-6)

    def divergence(p: np.ndarray, q: np.ndarray) -> float:
        if order == 1:
            return float((p * np.log(p / q)).sum())
        return math.log(float((p * (p / q) ** (order - 1)).sum())) / (order - 1)

    p, q = noise._noise.pair(1)
    ratio = 1 / (1 + 1 / variance + math.sqrt((1 + 1 / variance) ** 2 - 1))  # two-sided geometric of this variance
    k = np.arange(-400, 401)
    rival = ratio ** np.abs(k) * (1 - ratio) / (1 + ratio)
    usual = (rival > 1e-280)[1:] & (rival > 1e-280)[:-1]
    assert divergence(p, q) < divergence(rival[:-1][usual], rival[1:][usual])
    if order == 1:  # the discrete Gaussian of this variance has s^2 >= variance, so at most 1 / 2s^2 is beaten too
        assert divergence(p, q) <= 1 / (2 * variance)


@pytest.mark.slow
def test_optimal_noise_beats_gaussian_and_laplace_noise_after_many_compositions() -> None:
    from discreet.accounting import calibrate

    noise = OptimalNoise(epsilon=30.0, delta=1e-6, coordinates=30)
    assert delta_reading(noise.cost.parts, 30.0).upper <= 1e-6
    gaussian = calibrate(lambda s: 30 * Cost.gaussian(s), epsilon=30.0, delta=1e-6)
    laplace = calibrate(lambda s: 30 * Cost.discrete_laplace(s), epsilon=30.0, delta=1e-6)
    assert noise.variance < 0.95 * gaussian**2
    assert noise.variance < 0.95 * DiscreteLaplace(noise_multiplier=laplace).variance


@pytest.mark.slow
def test_bounded_noise_for_many_answers_meets_its_budget_with_a_bound_near_four_deviations() -> None:
    noise = BoundedNoise(epsilon=1.0, delta=1e-6, sensitivity=1, coordinates=100)
    assert delta_reading(noise.cost.parts, 1.0).upper <= 1e-6
    assert noise.bound < 4.5 * 42.25  # the Gaussian of this budget has a standard deviation of 42.25


REFUSED = [
    (RoundedGaussian, {"noise_multiplier": 1.0, "sensitivity": 0.5}),
    (RoundedGaussian, {"sensitivity": 1}),
    (TruncatedGeometric, {"epsilon": 1.0, "lower": 3, "upper": 3}),
    (TruncatedGeometric, {"epsilon": 1.0, "lower": 0.5, "upper": 3}),
    (TruncatedGeometric, {"epsilon": 0.0, "lower": 0, "upper": 3}),
    (Staircase, {"epsilon": 0, "sensitivity": 1}),
    (Staircase, {"epsilon": 1, "sensitivity": 0}),
    (Staircase, {"epsilon": 1, "sensitivity": 1, "gamma": 1.0}),
    (Staircase, {"epsilon": 1, "sensitivity": 1, "coordinates": 0}),
    (Staircase, {"epsilon": 1, "sensitivity": 1, "granularity": 2.0**-50}),
    (BoundedNoise, {"sensitivity": 1}),
    (BoundedNoise, {"sensitivity": 1, "bound": 5.0}),
    (BoundedNoise, {"sensitivity": 1, "bound": 0.5, "power": 2}),
    (BoundedNoise, {"sensitivity": 1, "bound": 5.0, "power": 100}),
    (BoundedNoise, {"sensitivity": 1, "bound": 1e9, "power": 2}),
    (BoundedNoise, {"sensitivity": 1, "epsilon": 1.0, "delta": 1.0}),
    (OptimalNoise, {}),
    (OptimalNoise, {"variance": 0.0}),
    (OptimalNoise, {"variance": 1e3}),
    (OptimalNoise, {"variance": 1.0, "order": 0.5}),
    (OptimalNoise, {"weights": [1, 0], "tail": 1, "rate": 1.0}),
    (OptimalNoise, {"weights": [1, 2], "tail": 0, "rate": 1.0}),
    (OptimalNoise, {"weights": [1, 2.5], "tail": 1, "rate": 1.0}),
    (OptimalNoise, {"weights": [1, 2], "tail": 1, "rate": -1.0}),
]


@pytest.mark.parametrize(("made", "arguments"), REFUSED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_bad_parameters_are_refused(made: type[Mechanism], arguments: dict) -> None:
    with pytest.raises(InvalidArgument):
        made(**arguments)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: mechanism.kind)
@pytest.mark.parametrize("value", [math.nan, None, "1", np.array([]), True])
def test_values_that_cannot_be_released_are_refused(mechanism: Mechanism, value: object) -> None:
    with pytest.raises(DiscreetError):
        mechanism.release(value)


@pytest.mark.parametrize("power", [1, 2, 3, 5, 16])
def test_what_bounded_noise_gives_away_for_certain_is_never_understated(power: int) -> None:
    for steps in range(5, 60, 3):
        for change in (1, 3):
            noise = BoundedNoise(bound=float(steps), power=power, granularity=1.0, sensitivity=change)
            weights = [(steps**2 - k**2) ** power for k in range(1 - steps, steps)]
            exact = Fraction(sum(weights[:change]), sum(weights))
            assert exact <= Fraction(noise.cost.delta(200.0)) <= exact * (1 + Fraction(1, 10**12))
