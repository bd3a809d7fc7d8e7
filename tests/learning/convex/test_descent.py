"""Noisy gradient descent: it learns, costs what it says, and one record moves its gradients by no more than that."""

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.learning import Facts, Goal, Logistic, Problem, Softmax
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
