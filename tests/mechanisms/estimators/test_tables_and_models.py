"""Marginals, covariance, models and the mean without bounds: sensitivities hold exactly, intervals as often as said."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr

from discreet import Cost
from discreet.audit.refusals import CountingGenerator
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    BernoulliModel,
    Covariance,
    Estimate,
    Estimator,
    GaussianModel,
    LinearModel,
    Marginals,
    PoissonModel,
    UnboundedMean,
)
from discreet.mechanisms.estimators.vectors import Ball
from discreet.noise.testing import SeededGenerator

ALPHA = 1e-9
RANDOM = np.random.default_rng(11)
INPUTS = RANDOM.normal(size=(4000, 2)) * 0.3
ROWS = np.column_stack([INPUTS, INPUTS @ [0.5, -0.3] + 0.1])
CODES = RANDOM.integers(0, 3, size=(500, 3))
LEVEL: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ESTIMATORS: list[tuple[Any, Any]] = [
    (Marginals(sizes=(3, 3, 3), ways=2, **LEVEL), CODES),
    (Marginals(sizes=(3, 3, 3), epsilon=1), CODES),
    (Covariance(dimension=2, radius=3.0, **LEVEL), INPUTS),
    (Covariance(dimension=2, radius=3.0, adjacency="replace-one", positive=False, **LEVEL), INPUTS),
    (LinearModel(dimension=2, radius=2.0, target=2.0, **LEVEL), ROWS),
    (BernoulliModel(epsilon=1), RANDOM.integers(0, 2, 1000)),
    (PoissonModel(0, 30, epsilon=1), RANDOM.poisson(4, 1000)),
    (GaussianModel(-5, 5, **LEVEL), RANDOM.normal(size=1000)),
    (UnboundedMean(radius=1e5, scales=(0.01, 1e3), **LEVEL), RANDOM.normal(1234, 2, 4000)),
    (UnboundedMean(radius=1e5, scales=(0.01, 1e3), dimension=2, adjacency="replace-one", **LEVEL), INPUTS),
]


@pytest.mark.parametrize(("estimator", "data"), ESTIMATORS, ids=lambda x: type(x).__name__)
def test_cost_storing_order_and_refusals(estimator: Any, data: Any) -> None:
    total = Cost.zero(adjacency=estimator.adjacency)
    for mechanism in estimator.mechanisms.values():
        total = total + mechanism.cost
    assert estimator.cost == total
    assert 0.999 < estimator.cost.epsilon(0 if estimator.noise == "laplace" else 1e-6) <= 1 + 1e-9
    assert Estimator.from_dict(json.loads(json.dumps(estimator.to_dict()))) == estimator
    turned = data[np.random.default_rng(3).permutation(len(data))]
    one, other = (estimator.release(rows, generator=SeededGenerator(5)) for rows in (data, turned))
    assert np.array_equal(np.asarray(one), np.asarray(other))
    assert np.isfinite(np.asarray(estimator.release([]))).all()
    for bad in estimator.bad_values():
        generator = CountingGenerator()
        with pytest.raises(InvalidArgument):
            estimator.release(bad, generator=generator)
        assert generator.taken == 0


def held(estimator: Any, data: Any, exact: Any, runs: int = 200) -> int:
    """How often the first entry's interval at 0.8 holds the exact value."""
    found = 0
    sums = {} if isinstance(estimator, UnboundedMean) else estimator._exact(data)
    for _ in range(runs):
        if sums:  # exact sums once for all releases
            noised = {name: made.release(sums[name]) for name, made in estimator.mechanisms.items()}
            estimate = Estimate(estimator, {**sums, **noised})
        else:
            estimate = estimator.release(data)
        low, high = (np.asarray(end).ravel()[0] for end in estimate.interval(0.8))
        found += bool(low <= exact <= high)
    return found


def test_intervals_hold_the_value_on_the_rows_as_often_as_they_say() -> None:
    strong = LinearModel(dimension=2, radius=2.0, target=2.0, penalty=0.0, **LEVEL)
    cases = [
        (ESTIMATORS[0][0], CODES, float(((CODES[:, 0] == 0) & (CODES[:, 1] == 0)).sum())),
        (ESTIMATORS[2][0], INPUTS, float(np.cov(INPUTS.T, bias=True)[0, 0])),
        (ESTIMATORS[3][0], INPUTS, float(np.cov(INPUTS.T, bias=True)[0, 0])),
        (strong, np.tile(ROWS, (10, 1)), 0.5),
        (*ESTIMATORS[8], float(ESTIMATORS[8][1].mean())),
    ]
    for estimator, data, exact in cases:
        found = held(estimator, data, exact)
        assert bdtr(found, 200, 0.8) > ALPHA, f"{estimator!r}: {found} of 200"


@pytest.mark.parametrize(
    ("estimator", "draw", "truth"),
    [
        (BernoulliModel(epsilon=1), lambda: RANDOM.random(500) < 0.3, 0.3),
        (PoissonModel(0, 40, epsilon=1), lambda: RANDOM.poisson(4, 500), 4.0),
        (GaussianModel(-8, 12, epsilon=2), lambda: RANDOM.normal(2, 1, 500), 2.0),
    ],
    ids=["bernoulli", "poisson", "gaussian"],
)
def test_intervals_of_models_hold_the_parameter_over_fresh_samples(estimator: Any, draw: Any, truth: float) -> None:
    found = 0
    for _ in range(200):
        low, high = estimator.release(np.asarray(draw(), dtype=float)).interval(0.8)
        found += bool(np.ravel(low)[0] <= truth <= np.ravel(high)[0])
    assert bdtr(found, 200, 0.8) > ALPHA


def test_gaussian_marginals_beat_laplace_ones_as_their_number_grows() -> None:
    ratios = []
    for d in (4, 64, 1024):
        laplace = Marginals(sizes=(2,) * d, epsilon=0.5).expected_absolute_error
        gaussian = Marginals(sizes=(2,) * d, epsilon=0.5, delta=1e-6).expected_absolute_error
        ratios.append(laplace / gaussian)
        # d/eps with pure DP, and at most 3 sqrt(d ln(1/delta)) / eps with a delta: the bounds of advanced composition
        assert laplace <= d / 0.5
        assert gaussian <= 3 * math.sqrt(d * math.log(1e6)) / 0.5
    assert ratios[0] < 1 < ratios[1] < ratios[2]
    assert ratios[2] / ratios[1] == pytest.approx(4, rel=0.02)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.floats(allow_nan=True)] * 3), min_size=1, max_size=6),
    row=st.tuples(*[st.floats(allow_nan=True)] * 3),
)
def test_one_row_moves_sums_and_products_by_at_most_their_sensitivity(rows: Any, row: Any) -> None:
    ball = Ball((0.5, 0.0, -1.0), 2.3)
    one = ball.place(np.array(rows))
    for replace in (False, True):
        other = ball.place(np.array([*rows[1:], row] if replace else [*rows, row]))
        moved = ball.sums(one) - ball.sums(other)
        assert sum(Fraction(x) ** 2 for x in moved) <= ball.sum_sensitivity(replace=replace) ** 2
        moved = ball.products(one) - ball.products(other)
        assert sum(Fraction(x) ** 2 for x in moved) <= ball.product_sensitivity(replace=replace) ** 2


def test_the_covariance_is_symmetric_and_positive_where_asked() -> None:
    noisy = Covariance(dimension=4, radius=5.0, **LEVEL)
    for _ in range(5):
        matrix = noisy.release(np.zeros((30, 4))).value
        assert np.array_equal(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9
    raw = Covariance(dimension=4, radius=5.0, positive=False, **LEVEL)
    assert min(np.linalg.eigvalsh(raw.release(np.zeros((30, 4))).value).min() for _ in range(5)) < -1e-6


def test_the_mean_is_found_from_generous_ranges_and_better_with_more_rows() -> None:
    estimator = UnboundedMean(radius=1e9, scales=(1e-6, 1e6), **LEVEL)
    errors = []
    for n in (2000, 40_000):
        data = RANDOM.normal(-31_415.0, 0.5, n)
        errors.append(np.median([abs(float(estimator.release(data)) - data.mean()) for _ in range(9)]))
    assert errors[1] < errors[0] / 4
    assert errors[1] < 0.5


def test_the_linear_model_finds_the_coefficients() -> None:
    model = LinearModel(dimension=2, radius=2.0, target=2.0, center=[0.1, -0.2], **LEVEL)
    assert np.asarray(model.release(np.tile(ROWS, (50, 1)))) == pytest.approx([0.5, -0.3, 0.1], abs=0.03)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Marginals(sizes=(), epsilon=1),
        lambda: Marginals(sizes=(2, 0), epsilon=1),
        lambda: Marginals(sizes=(2,), ways=2, epsilon=1),
        lambda: Marginals(sizes=(1000,) * 3, ways=3, epsilon=1),
        lambda: Covariance(dimension=2, radius=1.0, epsilon=1),
        lambda: Covariance(dimension=0, radius=1.0, **LEVEL),
        lambda: Covariance(dimension=2, radius=0.0, **LEVEL),
        lambda: Covariance(dimension=2, radius=math.nan, **LEVEL),
        lambda: Covariance(dimension=2, radius=1.0, center=[1.0], **LEVEL),
        lambda: Covariance(dimension=2, radius=1.0, positive="yes", **LEVEL),
        lambda: LinearModel(dimension=2, radius=1.0, target=0.0, **LEVEL),
        lambda: LinearModel(dimension=2, radius=1.0, target=1.0, penalty=-1.0, **LEVEL),
        lambda: UnboundedMean(radius=1.0, scales=(2.0, 1.0), **LEVEL),
        lambda: UnboundedMean(radius=1.0, scales=(0.0, 1.0), **LEVEL),
        lambda: UnboundedMean(radius=-1.0, scales=(1.0, 1.0), **LEVEL),
        lambda: UnboundedMean(radius=1.0, scales=(1.0, 1.0), epsilon=1),
        lambda: PoissonModel(0, math.inf, epsilon=1),
    ],
)
def test_bad_parameters_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()


def test_a_variance_lost_in_its_noise_still_has_an_interval() -> None:
    estimator = GaussianModel(-1000, 1000, epsilon=0.01)
    for _ in range(40):  # with so much noise the estimated variance is negative about every second time
        low, high = estimator.release(np.zeros(20)).interval(0.8)
        assert low[1] >= 0
        assert high[1] >= low[1]
