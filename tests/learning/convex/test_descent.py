"""Noisy gradient descent: it learns, costs what it says, and one record moves its gradients by no more than that."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.learning import Facts, Goal, Logistic, Loss, Problem, Softmax
from discreet.learning.convex import NoisyGradientDescent


def planted(n, d, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(d)
    table = rng.standard_normal((n, d)) / np.sqrt(d)
    return table, (table @ truth > 0).astype(float), truth


def test_the_plan_meets_the_goal_before_any_data_is_seen():
    facts = Facts(loss=Logistic(), features=8, row_norm=1.0, records=1000)
    goal = Goal(epsilon=1.0, delta=1e-6)
    plan = NoisyGradientDescent().plan(facts, goal)
    assert goal.met_by(plan.cost)
    assert plan.cost.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)  # and spends all of it


def test_it_finds_a_planted_direction():
    table, labels, truth = planted(20_000, 8)
    facts = Facts(loss=Logistic(), features=8, row_norm=2.0, records=20_000)
    plan = NoisyGradientDescent().plan(facts, Goal(epsilon=1.0, delta=1e-6))
    weights = plan.run(Problem.of(facts, table, labels)).weights
    assert weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth) > 0.9


@pytest.mark.parametrize("loss", [Logistic(), Softmax(outputs=3)], ids=["logistic", "softmax"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_record_moves_the_exact_gradient_by_at_most_the_sensitivity(loss, adjacency):
    rng = np.random.default_rng(1)
    facts = Facts(loss=loss, features=4, row_norm=1.5, records=40, adjacency=adjacency)
    table, targets = rng.standard_normal((40, 4)) * 3, rng.integers(0, 3, 40)
    largest = 0.0
    for i in range(40):
        weights = rng.standard_normal(facts.shape) * 20
        whole = Problem.of(facts, table, targets).gradient_steps(weights)
        if adjacency == "add-remove":
            other, labels = np.delete(table, i, 0), np.delete(targets, i)
        else:
            other, labels = table.copy(), targets.copy()
            other[i], labels[i] = -table[i], (targets[i] + 1) % 3
        rest = Problem.of(facts, other, labels).gradient_steps(weights)
        change = sum(int(x) ** 2 for x in (whole - rest).ravel())
        assert change <= facts.gradient_sensitivity**2
        largest = max(largest, change**0.5 / facts.gradient_sensitivity)
    assert largest > 0.4  # the bound is no dead letter


@dataclass(frozen=True)
class Linear(Loss):
    """-y m: the loss for which the excess risk is as large as the bounds allow."""

    name = "linear"
    lipschitz = 1.0
    smoothness = 1e-9

    def values(self, margins, targets):
        return -targets * margins

    def slopes(self, margins, targets):
        return -targets

    def curvatures(self, margins, targets):
        return np.zeros_like(margins)

    def checked(self, targets):
        return np.clip(targets, -1.0, 1.0)


def excess(n, d, mu, *, runs, seed=0):
    """Mean excess loss on a hard instance: a mean gradient as large as the noise, over the ball of radius 1."""
    rng = np.random.default_rng(seed)
    bias = min(0.9, math.sqrt(d) / (n * mu))
    table = np.where(rng.uniform(size=(n, d)) < (1 + bias) / 2, 1.0, -1.0) / math.sqrt(d)
    facts = Facts(loss=Linear(), features=d, row_norm=1.0, records=n)
    problem = Problem.of(facts, table, np.ones(n))
    plan = NoisyGradientDescent(radius=1.0, steps=30).plan(facts, Goal(mu=mu))
    best = -float(np.linalg.norm(table.mean(axis=0)))
    return np.array([problem.objective(plan.run(problem).weights) / n - best for _ in range(runs)])


@pytest.mark.parametrize(("n", "d", "epsilon"), [(500, 4, 1.0), (2000, 30, 0.5)])
def test_the_excess_risk_stays_below_its_bound(n, d, epsilon):
    mu = Goal(epsilon=epsilon, delta=1e-6).gaussian
    measured = excess(n, d, mu, runs=5)
    bound = NoisyGradientDescent(steps=30).utility_bound(n=n, d=d, epsilon=epsilon, delta=1e-6)
    assert measured.mean() <= bound
    assert NoisyGradientDescent(steps=10**6).utility_bound(n=n, d=d, epsilon=epsilon, delta=1e-6) <= 8 * math.sqrt(
        d * math.log(1e6)
    ) / (epsilon * n) * (1 + 1e-3)  # the bound of the sources, from exact accounting


def test_the_excess_risk_grows_with_the_root_of_d_and_falls_with_epsilon_times_n():
    """Slopes of log excess against log n, log mu and log d on hard instances: -1, -1 and 1/2.

    20 runs at each end have a standard error s of the log of their mean, measured; a slope is accepted within 6 of its
    own standard errors (a false alarm in 10^9), and those are below 0.05, so that slopes of -1/2 or 0 are rejected.
    """
    settings = {
        "n": ((400, 16, 0.25), (6400, 16, 0.25), -1.0, 16),
        "mu": ((2000, 16, 0.05), (2000, 16, 0.4), -1.0, 8),
        "d": ((20_000, 4, 0.05), (20_000, 64, 0.05), 0.5, 16),
    }
    for name, (near, far, expected, ratio) in settings.items():
        logs, errors = [], []
        for where in (near, far):
            values = excess(*where, runs=20)
            logs.append(math.log(values.mean()))
            errors.append(values.std(ddof=1) / values.mean() / math.sqrt(20))
        slope, error = (logs[1] - logs[0]) / math.log(ratio), math.hypot(*errors) / math.log(ratio)
        assert error < 0.05, name
        assert abs(slope - expected) < 6 * error + 0.02, name


def test_the_last_iterate_alone_costs_what_the_closed_form_says_and_less_than_all():
    facts = Facts(loss=Logistic(), features=3, row_norm=1.0, records=500, alpha=50.0, adjacency="replace-one")
    goal = Goal(mu=0.5, adjacency="replace-one")
    plan = NoisyGradientDescent(steps=300, iterate="last").plan(facts, goal)
    assert goal.met_by(plan.cost)
    # strongly convex: (2 L / (n sigma)) sqrt((1 - c^T) / (1 + c^T) (1 + c) / (1 - c)), and rounding
    c = 1 - plan.step * plan.convexity
    c = max(c, abs(1 - plan.step * plan.smoothness))
    closed = 2 / (500 * plan.sigma) * math.sqrt((1 - c**300) / (1 + c**300) * (1 + c) / (1 - c))
    assert plan.cost.gdp() == pytest.approx(closed, rel=1e-5)
    average = NoisyGradientDescent(steps=300).plan(facts, goal)
    assert 500 * plan.noise["gradient"] < 0.5 * average.noise["gradient"]
    table, labels, truth = planted(500, 3)
    weights = plan.run(Problem.of(facts, table, labels)).weights
    assert weights.shape == truth.shape


def test_without_a_number_of_records_it_says_how_to_get_one():
    facts = Facts(loss=Logistic(), features=4, row_norm=1.5)
    with pytest.raises(InvalidArgument, match="n_records"):
        NoisyGradientDescent().plan(facts, Goal(epsilon=1.0, delta=1e-6))


def test_a_plan_refuses_a_problem_of_other_facts():
    facts = Facts(loss=Logistic(), features=2, row_norm=1.0, records=10)
    wider = Facts(loss=Logistic(), features=2, row_norm=2.0, records=10)
    plan = NoisyGradientDescent().plan(facts, Goal(epsilon=1.0, delta=1e-6))
    with pytest.raises(InvalidArgument, match="made for"):
        plan.run(Problem.of(wider, np.zeros((10, 2)), np.zeros(10)))
