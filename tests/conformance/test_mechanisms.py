"""Every mechanism of the package passes the audit that users can run on theirs, and fails it with less noise.

A mechanism that is not listed here fails `test_every_mechanism_is_audited`: add one with parameters at which its noise
is small, where the audit sees most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import Cost
from discreet.audit import check
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    AboveThreshold,
    BernoulliModel,
    BoundedNoise,
    ClusteredMean,
    Count,
    Covariance,
    DiscreteGaussian,
    DiscreteLaplace,
    Estimator,
    ExponentialMechanism,
    Gaussian,
    GaussianModel,
    GaussianThreshold,
    Histogram,
    KeySelection,
    Laplace,
    LaplaceThreshold,
    LinearModel,
    Marginals,
    Maximum,
    Mean,
    Mechanism,
    Median,
    Minimum,
    OptimalNoise,
    PermuteAndFlip,
    PoissonModel,
    PrivateMode,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    RoundedGaussian,
    SmoothQuantile,
    SparseVector,
    StableHistogram,
    Staircase,
    Sum,
    TopK,
    TruncatedGeometric,
    UnboundedMean,
    Variance,
)

ADDITIVE: list[Mechanism] = [
    Laplace(epsilon=1, sensitivity=1),
    Laplace(epsilon=2, sensitivity=0.3),
    Laplace(epsilon=2, sensitivity=3, dimension=3),
    Laplace(epsilon=1, sensitivity=1, granularity=1),
    Gaussian(noise_multiplier=1, sensitivity=1),
    Gaussian(epsilon=4, delta=1e-6, sensitivity=0.1, dimension=4),
    DiscreteLaplace(epsilon=1, sensitivity=1),
    DiscreteLaplace(epsilon=2, sensitivity=5),
    DiscreteGaussian(noise_multiplier=1),
    DiscreteGaussian(noise_multiplier=1, sensitivity=4),
    DiscreteGaussian(noise_multiplier=1, l0_sensitivity=3, linf_sensitivity=2),
    DiscreteGaussian(noise_multiplier=1, l2_sensitivity=2),
    RoundedGaussian(noise_multiplier=1, sensitivity=1),
    RoundedGaussian(noise_multiplier=1, sensitivity=2),
    TruncatedGeometric(epsilon=1, lower=0, upper=6),
    TruncatedGeometric(epsilon=2, lower=-5, upper=5, sensitivity=3),
]
OTHER_NOISE: list[Mechanism] = [
    Staircase(epsilon=2, sensitivity=1),
    Staircase(epsilon=2, sensitivity=3, granularity=1, coordinates=2),
    BoundedNoise(bound=6, power=3, sensitivity=1),
    OptimalNoise(variance=0.5),
]
LONG_TABLES: list[Mechanism] = [  # compositions of long tables, of which one reading takes seconds
    BoundedNoise(bound=12, power=4, sensitivity=0.3, coordinates=2),
    OptimalNoise(variance=1, order=2, coordinates=2),
]
KEYS: list[Any] = [  # with a large delta, so that keys of one person alone are seen
    KeySelection(epsilon=1, delta=0.01),
    KeySelection(epsilon=2, delta=0.01, keys_per_unit=2),
    KeySelection(epsilon=2, delta=0.01, adjacency="replace-one"),
    StableHistogram(epsilon=1, delta=0.01),
    LaplaceThreshold(epsilon=1, delta=0.01),
    GaussianThreshold(epsilon=1, delta=0.01),
]
CHOICES: list[Mechanism] = [
    ExponentialMechanism(2, sensitivity=1),
    PermuteAndFlip(2, sensitivity=1),
    PermuteAndFlip(2, sensitivity=0.5, monotone=True),
    ReportNoisyMax(2, sensitivity=1),
    ReportNoisyMax(2, sensitivity=1, noise="laplace"),
    TopK(2, epsilon=4, sensitivity=1),
    AboveThreshold(2, sensitivity=1, threshold=0),
    SparseVector(4, sensitivity=1, threshold=10, positives=2),
    RandomizedResponse(1),
    RandomizedResponse(1, options=5),
]
TESTED: list[Mechanism] = [
    PrivateMode(epsilon=1, delta=0.05),
    PrivateMode(epsilon=1, delta=0.05, test="laplace", adjacency="replace-one"),
    ClusteredMean(epsilon=4, delta=0.05, width=1.0, size=101),
    SmoothQuantile(lower=0, upper=1, epsilon=2, delta=0.01),
    SmoothQuantile(lower=0, upper=1, epsilon=2, delta=0.01, quantile=0.25, adjacency="replace-one"),
]
ESTIMATORS: list[Any] = [
    Count(epsilon=1),
    Count(noise_multiplier=1, adjacency="replace-one"),
    Histogram(categories=["a", "b", "c"], epsilon=1),
    Histogram(edges=[0, 1, 2], noise_multiplier=1, adjacency="replace-one"),
    Sum(-1, 3, epsilon=1),
    Mean(0, 10, epsilon=2),
    Mean(0, 10, epsilon=1, adjacency="replace-one"),
    Variance(0, 10, epsilon=3),
    Variance(0, 10, noise_multiplier=0.5),
    Median(0, 10, epsilon=1),
    Quantiles(0, 10, levels=[0.25, 0.5, 0.75], epsilon=2),
    Quantiles(0, 10, levels=[0.25, 0.75], epsilon=2, adjacency="replace-one"),
    Maximum(0, 10, epsilon=1),
    Minimum(0, 10, epsilon=1, adjacency="replace-one"),
    Marginals(sizes=(2, 3), epsilon=1),
    Marginals(sizes=(2, 2, 2), ways=2, noise_multiplier=1, adjacency="replace-one"),
    BernoulliModel(epsilon=2),
    PoissonModel(0, 10, epsilon=2),
    GaussianModel(0, 10, noise_multiplier=0.5),
    Covariance(dimension=2, radius=1.0, noise_multiplier=0.5),
    Covariance(dimension=2, radius=1.0, noise_multiplier=0.5, adjacency="replace-one"),
    LinearModel(dimension=1, radius=1.0, target=1.0, noise_multiplier=0.5),
    UnboundedMean(radius=10.0, scales=(0.1, 10.0), noise_multiplier=0.5),
]
MECHANISMS = [*ADDITIVE, *OTHER_NOISE, *KEYS, *CHOICES, *TESTED, *ESTIMATORS]


def test_every_mechanism_is_audited() -> None:
    listed = {type(mechanism) for mechanism in MECHANISMS}
    known = {kind for kind in Mechanism.kinds().values() if kind.__module__.startswith("discreet.")}
    assert known <= listed, f"add to MECHANISMS: {sorted(kind.__name__ for kind in known - listed)}"


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_mechanism_passes_its_audit(mechanism: Mechanism) -> None:
    quick = type(mechanism).releases is not Mechanism.releases
    draws = 200_000 if quick else 2000
    if isinstance(mechanism, Estimator):  # their statistics are audited below
        draws = 5000 if quick else 100
    check(mechanism, draws=draws).raise_for_failures()


VALUES: list[Any] = [
    *(None, "many", object(), 1j, {}, {"a": 1}, {"a": "b"}, (["a"], [1]), (["a"], ["b"]), ([["a"]], [1.5]), (1, 2)),
    *(3, -3, 4000.5, math.nan, True, Fraction(1, 3), np.float64(0.5), np.int64(3), np.array(2), np.array(math.nan)),
    *([], [1, 2], [1, 2, 3], [1.5, 2], [1, None], [math.nan, 0.5, 1], ["a", "b"], [True, False], [[1, 2], [3]]),
    *([[0, 1], [1, 2]], [[0.5, 0.5]], [[[1.0]]], [2**70, -1], range(3)),
    *(np.zeros(3), np.full(3, math.nan), np.zeros(3, dtype=int), np.full(3, 9), np.full(3, True), np.array(["a", "b"])),
    *(np.zeros((2, 2)), np.zeros((2, 3), dtype=int), np.zeros(4, dtype=object), np.array([None]), np.zeros(0)),
    *(np.zeros(101), np.array([1j]), np.zeros(2, dtype="datetime64[D]"), np.zeros((2, 2, 2))),
]


def refused(call: Callable[[Any], Any], value: Any) -> bool:
    try:
        call(value)
    except InvalidArgument:
        return True
    return False


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_check_refuses_wrong_types_and_nothing_that_can_be_released(mechanism: Mechanism) -> None:
    for value in (None, "many", object(), 1j):
        assert refused(mechanism.check, value)
    for value in VALUES:
        assert refused(mechanism.release, value) or not refused(mechanism.check, value), value
    for pair in mechanism.examples():
        for value in pair:
            mechanism.check(value)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_check_does_not_look_at_numbers(mechanism: Mechanism) -> None:
    alike: list[tuple[Any, Any]] = [
        (1, 10**30),
        (0.5, math.nan),
        ([1, 2, 3], [1, None, 2**70]),
        (["a", "b"], ["a", 1]),
        ([True, True], [True, False]),
        (np.zeros(3), np.array([1.0, math.nan, math.inf])),
        (np.zeros(3, dtype=int), np.array([-5, 2**60, 1])),
        (np.array([1, 2], dtype=object), np.array(["a", None], dtype=object)),
        ({"a": 1, "b": 2}, {"a": -1, "b": None}),
        ((["a", "b"], [1, 2]), (["a", "a"], [None, -2])),
    ]
    for one, other in alike:
        assert refused(mechanism.check, one) == refused(mechanism.check, other), (one, other)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", LONG_TABLES, ids=repr)
def test_the_mechanism_passes_its_audit_where_its_cost_is_slow_to_read(mechanism: Mechanism) -> None:
    check(mechanism).raise_for_failures()


class Quieter:
    """A mechanism whose noise is a tenth smaller than its cost says: the same draws, moved a tenth closer."""

    def __init__(self, mechanism: Any) -> None:
        self.cost = mechanism.cost
        self.mechanism = type(mechanism).from_dict(
            {**mechanism.to_dict(), "noise_multiplier": 0.9 * mechanism.noise_multiplier}
        )
        self.release, self.releases, self.examples = (
            getattr(self.mechanism, name) for name in ("release", "releases", "examples")
        )


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=repr)
def test_the_audit_catches_the_same_mechanism_with_a_tenth_less_noise(mechanism: Mechanism) -> None:
    if isinstance(mechanism, DiscreteGaussian) and mechanism.l2_sensitivity is not None:
        pytest.skip("its cost is a zCDP bound, and with a tenth less noise the bound is still above the truth")
    report = check(Quieter(mechanism))
    assert "privacy" in [finding.check for finding in report.failures], repr(report)


def many_keys(mechanism: Any) -> Any:
    """The same count under n keys in one release: n independent releases of a table with one key."""

    def releases(people: int, n: int) -> Any:
        answer = mechanism.release((np.arange(n), np.full(n, people)))
        shown = np.full(n, -1)
        keys, counts = answer if isinstance(answer, tuple) else (answer, 0)
        shown[keys] = counts
        return shown

    return releases


@pytest.mark.parametrize(
    "mechanism", [key for key in KEYS if key.keys_per_unit == 1 and key.adjacency == "add-remove"], ids=repr
)
def test_each_key_alone_passes_an_audit_with_many_draws_and_no_smaller_claim_does(mechanism: Any) -> None:
    pairs = [(0, 1), (mechanism.examples()[1][0]["key 0"], mechanism.examples()[1][0]["key 0"] + 1)]
    releases = many_keys(mechanism)
    assert check(releases=releases, cost=mechanism.cost, inputs=pairs).passed
    smaller = Cost.approximate(mechanism.cost.epsilon(0.01) / 2, 0.005)
    assert not check(releases=releases, cost=smaller, inputs=pairs).passed


@pytest.mark.parametrize("mechanism", [*ADDITIVE, *OTHER_NOISE], ids=repr)
def test_releases_have_the_shape_of_the_value_after_their_number(mechanism: Mechanism) -> None:
    for value, neighbour in mechanism.examples():
        assert np.shape(value) == np.shape(neighbour)
        assert np.shape(mechanism.releases(value, 7)) == (7, *np.shape(value))


class Statistics:
    """What an estimator shows besides its value: all released statistics as one vector."""

    def __init__(self, estimator: Any) -> None:
        self.cost, self.estimator = estimator.cost, estimator
        self.examples, self.bad_values = estimator.examples, estimator.bad_values

    def release(self, data: Any) -> Any:
        shown = self.estimator.release(data).statistics
        return np.concatenate([np.ravel(shown[name]) for name in self.estimator.mechanisms])

    def releases(self, data: Any, n: int) -> Any:
        exact, made = self.estimator._exact(data), self.estimator.mechanisms
        return np.concatenate([np.reshape(made[name].releases(exact[name], n), (n, -1)) for name in made], axis=1)


@pytest.mark.parametrize(
    "estimator",
    [one for one in ESTIMATORS if hasattr(one, "mechanisms") and not isinstance(one, UnboundedMean)],
    ids=repr,
)
def test_all_that_an_estimate_shows_passes_the_audit(estimator: Any) -> None:
    check(Statistics(estimator), draws=40_000).raise_for_failures()
