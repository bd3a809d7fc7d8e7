"""Iterative localization: its minima move no further than is paid for, and the excess risk keeps to its bound."""

import math

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.learning import Facts, GaussianHinge, Goal, Logistic, Problem
from discreet.learning.convex import IterativeLocalization
from discreet.learning.convex.minimum import Objective, minimised

GOAL = Goal(epsilon=1.0, delta=1e-6)


def facts(n=20_000, d=4, **changes):
    return Facts(**{"loss": Logistic(), "features": d, "row_norm": 1.0, "records": n, **changes})


def signs(n, d, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.choice([-1.0, 1.0], (n, d)) / math.sqrt(d)
    chance = 1 / (1 + np.exp(-2 * table[:, 0]))
    return table, (rng.uniform(size=n) < chance).astype(float)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_plan_meets_the_goal_and_spends_it(adjacency):
    goal = Goal(epsilon=1.0, delta=1e-6, adjacency=adjacency)
    plan = IterativeLocalization().plan(facts(adjacency=adjacency), goal)
    assert goal.met_by(plan.cost)
    assert plan.cost.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
    assert list(plan.noise.values()) == sorted(plan.noise.values(), reverse=True)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_record_moves_a_phase_by_no_more_than_its_sensitivity(adjacency):
    rng = np.random.default_rng(1)
    public = facts(n=64, d=3, adjacency=adjacency)
    plan = IterativeLocalization(radius=2.0, phases=2).plan(public, Goal(mu=1.0, adjacency=adjacency))
    table, labels = signs(30, 3)
    largest = 0.0
    for phase in (1, 2):
        ridge = 2 * 4.0**phase / plan.eta
        for i in range(10):
            centre = rng.standard_normal(3) * 3
            other, targets = (np.delete(table, i, 0), np.delete(labels, i))
            if adjacency == "replace-one":
                other, targets = np.vstack([other, -table[i]]), np.append(targets, labels[i])
            found = [
                minimised(Objective(Problem.of(public, X, y), ridge, -ridge * centre), gamma=plan.gamma)
                for X, y in ((table, labels), (other, targets))
            ]
            moved = float(np.linalg.norm(found[0] - found[1])) / plan.mechanism(phase).sensitivity
            assert moved <= 1
            largest = max(largest, moved)
    assert largest > 0.3


@pytest.mark.parametrize("loss", [Logistic(), GaussianHinge(width=0.05)], ids=["logistic", "hinge"])
def test_it_finds_a_planted_direction(loss):
    rng = np.random.default_rng(2)
    table = rng.standard_normal((40_000, 4)) / 2
    truth = np.array([1.0, -1.0, 0.5, 0.0])
    public = facts(n=40_000, loss=loss)
    plan = IterativeLocalization(radius=4.0).plan(public, Goal(epsilon=4.0, delta=1e-6))
    weights = plan.run(Problem.of(public, table, (table @ truth > 0).astype(float))).weights
    assert weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth) > 0.8


def test_the_excess_risk_stays_below_its_bound():
    n, d = 60_000, 4
    table, labels = signs(n, d)
    public = facts(n=n, d=d)
    solver = IterativeLocalization(radius=2.0)
    problem, plan = Problem.of(public, table, labels), solver.plan(public, GOAL)
    corners = np.array(np.meshgrid(*[[-0.5, 0.5]] * d)).reshape(d, -1).T
    chance = 1 / (1 + np.exp(-2 * corners[:, 0]))

    def risk(w):
        margins = corners @ w
        return float(np.mean(np.logaddexp(0, margins) - chance * margins))

    best = risk(np.array([2.0, 0, 0, 0]))
    measured = np.mean([risk(plan.run(problem).weights) - best for _ in range(3)])
    bound = solver.utility_bound(n=n, d=d, epsilon=1.0, delta=1e-6, radius=2.0)
    assert measured <= bound < math.log(2)


def test_the_bound_falls_as_the_theorem_says():
    # R L (1/sqrt(n) + sqrt(d) / (mu n)): halves, or more, with four times the records
    solver = IterativeLocalization()
    near, far = (solver.utility_bound(n=n, d=10, epsilon=1.0, delta=1e-6) for n in (10**5, 4 * 10**5))
    assert far <= 0.55 * near


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidArgument):
        IterativeLocalization(radius=0.0)
    with pytest.raises(InvalidArgument, match="number of records"):
        IterativeLocalization().plan(facts(n=None), GOAL)
