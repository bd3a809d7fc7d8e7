"""Laplace and Gaussian noise, on reals and on integers: what is released has the law that the cost speaks about."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.errors import InvalidArgument, StorageError, UnknownVersion
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Mechanism
from discreet.noise.testing import SeededGenerator
from mechanisms import laws
from mechanisms.laws import ALPHA, DRAWS, p_value

COARSE = [
    (Laplace(epsilon=0.5, sensitivity=1, granularity=1), laws.rounded_laplace, 2.0),
    (Gaussian(noise_multiplier=1.5, sensitivity=2, granularity=1), laws.rounded_gaussian, 3.0),
    (DiscreteLaplace(epsilon=0.5, sensitivity=1), laws.discrete_laplace, 2.0),
    (DiscreteGaussian(noise_multiplier=1.5, sensitivity=2), laws.discrete_gaussian, 3.0),
]
ALL = [mechanism for mechanism, _, _ in COARSE] + [
    Laplace(epsilon=1.0, sensitivity=1),
    Laplace(noise_multiplier=3.0, linf_sensitivity=0.1, dimension=7, adjacency="replace-one"),
    Gaussian(epsilon=1.0, delta=1e-6, sensitivity=0.3),
    Gaussian(noise_multiplier=2.0, linf_sensitivity=1, dimension=5),
    DiscreteGaussian(noise_multiplier=2.0, l2_sensitivity=math.sqrt(3)),
    DiscreteGaussian(noise_multiplier=2.0, l0_sensitivity=4, linf_sensitivity=2),
]


@pytest.mark.parametrize(("mechanism", "law", "scale"), COARSE, ids=lambda value: getattr(value, "kind", None))
def test_released_minus_value_has_the_stated_law_and_no_other(mechanism, law, scale) -> None:
    draws = np.array([int(mechanism.release(17)) - 17 for _ in range(DRAWS)])
    assert p_value(draws, law(scale)) > ALPHA
    assert p_value(draws, law(scale * 1.1)) < ALPHA
    assert p_value(draws, law(scale * 0.9)) < ALPHA


@pytest.mark.parametrize(
    ("mechanism", "law", "steps"),
    [
        (Laplace(epsilon=0.5, sensitivity=3, granularity=1), laws.rounded_laplace, 2.0 * (3 + DRAWS - 1)),
        (
            Gaussian(noise_multiplier=0.5, sensitivity=3, granularity=1),
            laws.rounded_gaussian,
            0.5 * (3 + math.sqrt(DRAWS)),
        ),
    ],
    ids=["laplace", "gaussian"],
)
def test_a_vector_pays_for_the_rounding_of_every_coordinate(mechanism, law, steps) -> None:
    assert float(mechanism.scale_in_steps(DRAWS)) == pytest.approx(steps, rel=1e-12)
    draws = mechanism.release(np.full(DRAWS, 5.2)) - 5
    width = 2 * int(steps / 40) + 1  # odd, so that pooled cells are those of a coarser rounding
    pooled = np.rint(draws / width).astype(int)
    assert p_value(pooled, law(steps / width)) > ALPHA
    assert p_value(pooled, law(steps / width * 1.15)) < ALPHA


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_a_description_survives_json(mechanism: Mechanism) -> None:
    stored = json.loads(json.dumps(mechanism.to_dict(), allow_nan=False))
    again = Mechanism.from_dict(stored)
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again.cost == mechanism.cost
    assert again.error(0.9) == mechanism.error(0.9)
    assert type(mechanism).from_dict(stored) == mechanism


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_the_same_noise_gives_the_same_release_and_scalars_stay_scalars(mechanism: Mechanism) -> None:
    whole = isinstance(mechanism, DiscreteLaplace | DiscreteGaussian)
    declared = getattr(mechanism, "dimension", None)
    if declared is None:
        scalar = mechanism.release(3, generator=SeededGenerator(1))
        assert type(scalar) is (int if whole else float)
        assert scalar == mechanism.release(3, generator=SeededGenerator(1))
    if getattr(mechanism, "sensitivity", None) in (None, 1) or not whole:
        shape = (declared,) if declared else (2, 3)
        many = mechanism.release(np.zeros(shape, dtype=int), generator=SeededGenerator(1))
        assert many.shape == shape
        assert many.dtype == (np.int64 if whole else np.float64)


def test_costs_are_the_leaves_of_the_noise() -> None:
    assert Laplace(epsilon=0.5, sensitivity=3).cost == Cost.laplace(2.0)
    assert Laplace(scale=6, sensitivity=3, adjacency="replace-one").cost == Cost.laplace(2.0, adjacency="replace-one")
    assert Gaussian(noise_multiplier=1.1, sensitivity=5).cost == Cost.gaussian(1.1)
    assert DiscreteLaplace(epsilon=0.5, sensitivity=3).cost == Cost.discrete_laplace(2.0, sensitivity=3)
    assert DiscreteGaussian(noise_multiplier=2.0, sensitivity=3).cost == Cost.discrete_gaussian(2.0, sensitivity=3)
    assert DiscreteGaussian(noise_multiplier=2.0, l2_sensitivity=1).cost == Cost.discrete_gaussian(2.0)
    assert DiscreteGaussian(noise_multiplier=2.0, l2_sensitivity=2**0.5).cost == Cost.concentrated(0.125)
    assert DiscreteGaussian(noise_multiplier=2.0, l0_sensitivity=4, linf_sensitivity=3).cost == (
        4 * Cost.discrete_gaussian(4.0, sensitivity=3)
    )


@given(epsilon=st.floats(1e-3, 50))
def test_a_laplace_mechanism_never_costs_more_than_the_epsilon_asked_for(epsilon: float) -> None:
    for mechanism in (Laplace(epsilon=epsilon, sensitivity=1), DiscreteLaplace(epsilon=epsilon)):
        assert epsilon * (1 - 1e-14) <= mechanism.epsilon <= epsilon
        assert mechanism.cost.pure_epsilon() <= epsilon * (1 + 1e-15)


@given(epsilon=st.floats(0.01, 20), exponent=st.floats(-10, -2))
def test_a_gaussian_mechanism_meets_its_target_at_every_epsilon(epsilon: float, exponent: float) -> None:
    delta = 10.0**exponent
    cost = Gaussian(epsilon=epsilon, delta=delta, sensitivity=1).cost
    assert epsilon * (1 - 1e-6) <= cost.epsilon(delta) <= epsilon


def test_the_analytic_calibration_beats_the_classical_formula() -> None:
    # classical: sqrt(2 ln(1.25/delta)) / epsilon = 5.2988 at epsilon = 1, delta = 1e-6
    assert Gaussian(epsilon=1.0, delta=1e-6, sensitivity=1).noise_multiplier == pytest.approx(4.224679, abs=1e-6)


@pytest.mark.parametrize(("mechanism", "law", "scale"), COARSE, ids=lambda value: getattr(value, "kind", None))
@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9])
def test_the_error_is_the_exact_quantile_of_the_noise(mechanism, law, scale, confidence: float) -> None:
    mass = law(scale)
    rounding = 0.5 if isinstance(mechanism, Laplace | Gaussian) else 0.0
    reach = int(mechanism.error(confidence) - rounding)

    def beyond(steps: int) -> float:
        return 2 * math.fsum(mass(k) for k in range(steps + 1, steps + 400))

    assert beyond(reach) <= (1 - confidence) * (1 + 1e-9)
    assert reach == 0 or beyond(reach - 1) > (1 - confidence) * (1 - 1e-9)


@pytest.mark.parametrize(("mechanism", "law", "scale"), COARSE, ids=lambda value: getattr(value, "kind", None))
def test_moments_are_those_of_the_masses(mechanism, law, scale) -> None:
    mass = law(scale)
    first = 2 * math.fsum(k * mass(k) for k in range(1, 200))
    second = 2 * math.fsum(k * k * mass(k) for k in range(1, 200))
    assert mechanism.expected_absolute_error == pytest.approx(first, rel=1e-9)
    assert mechanism.variance == pytest.approx(second, rel=1e-9)


def test_simultaneous_errors_are_those_of_independent_coordinates() -> None:
    mechanism = DiscreteLaplace(epsilon=0.1)
    assert mechanism.error(0.95, dimension=10, simultaneous=True) == mechanism.error(0.95 ** (1 / 10))
    assert mechanism.error(0.95, dimension=10) == mechanism.error(0.95)


@given(value=st.floats(-1e15, 1e15), seed=st.integers(0, 2**32))
def test_every_output_is_a_multiple_of_the_granularity(value: float, seed: int) -> None:
    for mechanism in (Laplace(epsilon=1.0, sensitivity=0.1), Gaussian(noise_multiplier=1.0, sensitivity=0.1)):
        released = mechanism.release(value, generator=SeededGenerator(seed))
        steps = Fraction(released) / Fraction(mechanism.granularity)
        assert steps.denominator == 1


@given(value=st.floats(-1e3, 1e3), shift=st.floats(-1, 1), seed=st.integers(0, 2**32))
def test_neighbours_with_the_same_noise_differ_by_the_steps_paid_for_whatever_their_low_bits(
    value: float, shift: float, seed: int
) -> None:
    # so the sets of possible outputs coincide: the precision attack on float noise has nothing to see
    mechanism = Laplace(epsilon=1.0, sensitivity=1)
    left = mechanism.release(value, generator=SeededGenerator(seed))
    right = mechanism.release(Fraction(value) + Fraction(shift), generator=SeededGenerator(seed))
    apart = abs(Fraction(left) - Fraction(right)) / Fraction(mechanism.granularity)
    assert apart.denominator == 1
    assert apart <= mechanism.lattice.l1_steps(Fraction(1), 1)


def test_integers_beyond_a_float_stay_exact() -> None:
    large = 2**70 + 1
    noise = DiscreteLaplace(epsilon=1.0).release(0, generator=SeededGenerator(5))
    assert DiscreteLaplace(epsilon=1.0).release(large, generator=SeededGenerator(5)) == large + noise


def test_integer_arrays_stop_at_the_ends_of_int64_instead_of_wrapping() -> None:
    ends = np.iinfo(np.int64)
    released = DiscreteLaplace(epsilon=0.001).release(np.array([ends.max] * 200 + [ends.min] * 200))
    assert (released[:200] > 2**62).all()
    assert (released[200:] < -(2**62)).all()


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, "1", None, True, 1j, [], np.array([]), np.array([1.0, math.nan]), [1, "a"],
     np.array([True]), np.array(["2020-01-01"], dtype="datetime64[D]"), [[1.0], [1.0, 2.0]], object(),
     np.broadcast_to(0.0, (1 << 31,)), np.array([1.0], dtype=object).astype(complex)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize("mechanism", [mechanism for mechanism, _, _ in COARSE], ids=lambda m: m.kind)
def test_a_value_that_cannot_be_released_is_refused_before_any_randomness(mechanism: Mechanism, value: object) -> None:
    class Untouched(SeededGenerator):
        def words(self, n: int) -> np.ndarray:
            raise AssertionError("randomness was used")

        def word(self) -> int:
            raise AssertionError("randomness was used")

    with pytest.raises(InvalidArgument) as refusal:
        mechanism.release(value, generator=Untouched(0))
    assert "nan" not in str(refusal.value)


@pytest.mark.parametrize("value", [1.0, np.array([1.0]), Fraction(1, 2), np.array([2**63], dtype=np.uint64)])
def test_integer_mechanisms_refuse_reals_even_if_they_are_whole(value: object) -> None:
    with pytest.raises(InvalidArgument, match="whole number"):
        DiscreteLaplace(epsilon=1.0).release(value)


BAD = [
    {"epsilon": 0, "sensitivity": 1},
    {"epsilon": -1, "sensitivity": 1},
    {"epsilon": math.nan, "sensitivity": 1},
    {"epsilon": 1},
    {"sensitivity": 1},
    {"epsilon": 1, "noise_multiplier": 1, "sensitivity": 1},
    {"epsilon": 1, "sensitivity": 0},
    {"epsilon": 1, "sensitivity": -1},
    {"epsilon": 1, "sensitivity": 1, "adjacency": "add"},
    {"epsilon": 1, "sensitivity": 1, "l1_sensitivity": 1},
    {"epsilon": 1, "linf_sensitivity": 1},
    {"epsilon": 1, "sensitivity": 1, "granularity": 0.3},
    {"epsilon": 1, "sensitivity": 1, "granularity": 2.0**-60},
    {"epsilon": 1, "sensitivity": 1, "dimension": 0},
]


@pytest.mark.parametrize("arguments", BAD, ids=str)
def test_bad_parameters_of_laplace_and_gaussian_are_refused(arguments: dict) -> None:
    with pytest.raises(InvalidArgument):
        Laplace(**arguments)
    arguments = {("delta" if name == "noise_multiplier" else name): value for name, value in arguments.items()}
    if "epsilon" in arguments and "delta" not in arguments:
        arguments["delta"] = 1e-6
    elif "delta" in arguments:
        arguments["delta"] = 1.0
    with pytest.raises(InvalidArgument):
        Gaussian(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"noise_multiplier": 1.0, "sensitivity": 1, "l2_sensitivity": 1},
        {"noise_multiplier": 1.0, "l0_sensitivity": 1},
        {"noise_multiplier": 1.0, "l2_sensitivity": 0.5},
        {"noise_multiplier": 1.0, "epsilon": 1.0},
        {"epsilon": 1.0},
        {"sensitivity": 1.5, "noise_multiplier": 1.0},
        {"noise_multiplier": 1e7},
        {},
    ],
    ids=str,
)
def test_bad_parameters_of_the_discrete_gaussian_are_refused(arguments: dict) -> None:
    with pytest.raises(InvalidArgument):
        DiscreteGaussian(**arguments)


def test_a_vector_needs_the_sensitivity_of_a_vector() -> None:
    with pytest.raises(InvalidArgument, match="l2_sensitivity"):
        DiscreteGaussian(noise_multiplier=1.0, sensitivity=2).release(np.array([1, 2]))
    with pytest.raises(InvalidArgument, match="dimension 5"):
        Gaussian(noise_multiplier=1.0, linf_sensitivity=1, dimension=5).release(np.zeros(4))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"format": "discreet.cost"}, StorageError),
        ({"version": 2}, UnknownVersion),
        ({"kind": "unknown"}, StorageError),
        ({"extra": 1}, StorageError),
        ({"sensitivity": -1}, StorageError),
        ({"noise_multiplier": "x"}, StorageError),
        ({"noise_multiplier": None}, StorageError),
    ],
)
def test_a_malformed_description_is_refused(change: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        Mechanism.from_dict(Laplace(epsilon=1.0, sensitivity=1).to_dict() | change)
    with pytest.raises(StorageError, match="gaussian"):
        Gaussian.from_dict(Laplace(epsilon=1.0, sensitivity=1).to_dict())


def test_descriptions_read_well() -> None:
    assert repr(DiscreteLaplace(epsilon=0.5)) == "DiscreteLaplace(noise_multiplier=2.0, sensitivity=1)"
    assert "replace-one" in repr(DiscreteLaplace(epsilon=0.5, adjacency="replace-one"))
