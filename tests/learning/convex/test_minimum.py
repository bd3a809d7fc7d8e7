"""Minima with a certificate: the bound on the gradient holds in real arithmetic, and the search gets there."""

import math

import mpmath
import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.learning import Facts, Huber, Logistic, MulticlassHinge, Poisson, Problem, SmoothedHinge, Softmax
from discreet.learning.convex import minimum
from discreet.learning.convex.minimum import Objective, fair_gamma, minimised

MANY = [Softmax(outputs=3), MulticlassHinge(outputs=3, width=0.1)]
LOSSES = [Logistic(), SmoothedHinge(), Huber(limit=1.0), Poisson(most=5.0, ceiling=2.0), *MANY]


def problem_of(loss, n=60, d=4, seed=0, row_norm=1.5):
    rng = np.random.default_rng(seed)
    facts = Facts(loss=loss, features=d, row_norm=row_norm)
    targets = rng.integers(0, 3, n) if loss.outputs > 1 else rng.integers(0, 2, n).astype(float)
    return Problem.of(facts, rng.standard_normal((n, d)), targets)


def real_gradient(problem, ridge, linear, weights):
    """The gradient with forty digits, for one output of the logistic loss."""
    with mpmath.workdps(40):
        rows = [[mpmath.mpf(float(v)) for v in row] for row in problem.rows.values()]
        w = [mpmath.mpf(float(v)) for v in weights]
        total = [ridge * a + mpmath.mpf(float(b)) for a, b in zip(w, linear, strict=True)]
        for row, y in zip(rows, problem.targets, strict=True):
            slope = 1 / (1 + mpmath.exp(-mpmath.fdot(row, w))) - int(y)
            total = [t + slope * x for t, x in zip(total, row, strict=True)]
        return mpmath.sqrt(mpmath.fsum(t * t for t in total))


def test_the_bound_is_above_the_norm_in_real_arithmetic_and_close_to_it():
    rng = np.random.default_rng(3)
    problem = problem_of(Logistic())
    for size in (0.0, 1e-3, 1.0, 50.0):
        weights, linear = size * rng.standard_normal(4), rng.standard_normal(4)
        bound = Objective(problem, 2.0, linear).gradient_bound(weights)
        true = real_gradient(problem, 2.0, linear, weights)
        assert bound >= true
        assert bound <= true * (1 + 1e-8) + 1e-9


def test_at_the_minimum_the_bound_still_holds_where_floats_see_only_rounding():
    problem, linear = problem_of(Logistic()), np.array([3.0, -1.0, 0.5, 2.0])
    weights = minimised(Objective(problem, 0.5, linear), gamma=1e-8)
    true = real_gradient(problem, 0.5, linear, weights)
    assert true <= Objective(problem, 0.5, linear).gradient_bound(weights) <= 1e-8


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("ridge", [0.01, 1.0, 300.0])
def test_the_search_reaches_the_accuracy_for_every_loss(loss, ridge):
    problem = problem_of(loss, n=200)
    rng = np.random.default_rng(1)
    objective = Objective(problem, ridge, 20 * rng.standard_normal(problem.facts.shape))
    gamma = fair_gamma(problem.facts)
    weights = minimised(objective, gamma=gamma)
    assert objective.gradient_bound(weights) <= gamma
    # strong convexity: nearby points are no better
    near = weights + 1e-3 * rng.standard_normal(weights.shape)
    values = [problem.objective(w) + ridge / 2 * np.sum(w**2) + np.sum(objective.linear * w) for w in (weights, near)]
    assert values[0] < values[1]


def test_margins_are_those_of_real_arithmetic_to_one_rounding():
    problem = problem_of(Logistic(), n=20, d=7)
    for size in (1e-200, 1e-3, 1.0, 1e6):
        weights = size * np.random.default_rng(4).standard_normal(7)
        got, missing = Objective(problem, 1.0, np.zeros(7))._exact_margins(weights)
        length = size * np.linalg.norm(weights / size)
        assert missing <= 1e-15 * length
        with mpmath.workdps(60):
            w = [mpmath.mpf(float(v)) for v in weights]
            for row, margin in zip(problem.rows.values(), got, strict=True):
                true = mpmath.fdot([mpmath.mpf(float(v)) for v in row], w)
                assert abs(mpmath.mpf(float(margin)) - true) <= 1.5 * (2.0**-53 * length + missing)


def test_no_rows_leave_the_minimum_of_the_ridge_and_the_linear_term():
    facts = Facts(loss=Logistic(), features=2, row_norm=1.0)
    problem = Problem.of(facts, np.zeros((0, 2)), np.zeros(0))
    weights = minimised(Objective(problem, 2.0, np.array([4.0, -2.0])), gamma=1e-9)
    assert weights == pytest.approx([-2.0, 1.0])


def test_very_many_features_are_scaled_by_one_number(monkeypatch):
    monkeypatch.setattr(minimum, "_MOST_WHITENED", 2)
    problem = problem_of(Logistic())
    objective = Objective(problem, 1.0, np.ones(4))
    assert objective.gradient_bound(minimised(objective, gamma=1e-7)) <= 1e-7


def test_the_exact_sum_is_exact():
    problem = problem_of(Logistic(), n=70_000, d=2)
    shares = np.random.default_rng(5).uniform(-1, 1, 70_000)
    got = Objective(problem, 1.0, np.zeros(2))._exact_sum(shares)
    for column in range(2):
        true = math.fsum((problem.rows.steps[:, column] * shares).tolist())  # each product rounded once
        assert got[column] == pytest.approx(true, abs=70_000 * 2**20 * 2.0**-47)


def test_more_rows_than_the_error_bound_covers_are_refused(monkeypatch):
    monkeypatch.setattr(minimum, "MOST_ROWS", 10)
    with pytest.raises(InvalidArgument, match="another solver"):
        Objective(problem_of(Logistic()), 1.0, np.zeros(4))


def test_a_ridge_that_rounding_swallows_does_not_end_the_search():
    facts = Facts(loss=Logistic(), features=3, row_norm=1.0)
    problem = Problem.of(facts, np.full((4000, 3), 0.5), np.arange(4000) % 2)
    objective = Objective(problem, 1e-15, np.zeros(3))
    assert isinstance(minimum._Whitened(objective).factor, float)
    assert objective.gradient_bound(minimised(objective, gamma=1e-6)) <= 1e-6
