"""Output perturbation: one record moves the computed minimiser by no more than the noise is for."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.learning import Facts, Goal, Huber, Logistic, MulticlassHinge, Problem, SmoothedHinge, Softmax, Squared
from discreet.learning.convex import OutputPerturbation
from discreet.learning.convex.minimum import Objective, minimised
from learning.membership import proved_delta

LOSSES = [Logistic(), SmoothedHinge(), Huber(limit=0.5), Softmax(outputs=3), MulticlassHinge(outputs=3)]
GOALS = [Goal(epsilon=1.0, delta=1e-6), Goal(epsilon=1.0), Goal(mu=0.4)]


@pytest.mark.parametrize("goal", GOALS, ids=["approximate", "pure", "mu"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_plan_meets_the_goal_and_spends_it(goal, adjacency):
    goal = replace(goal, adjacency=adjacency)
    facts = Facts(loss=Softmax(outputs=3), features=4, row_norm=2.0, adjacency=adjacency)
    plan = OutputPerturbation(radius=0.5).plan(facts, goal)
    assert goal.met_by(plan.cost)
    if goal.mu is not None:
        assert plan.cost.gdp() == pytest.approx(goal.mu, rel=1e-6)
    else:
        assert plan.cost.epsilon(goal.delta) == pytest.approx(goal.epsilon, rel=1e-6)
    # the noise has about the norm that was asked for
    assert plan.noise["weights"] * np.sqrt(12) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    "loss", [Logistic(), SmoothedHinge(), Huber(limit=0.5), Softmax(outputs=3)], ids=lambda x: x.name
)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("ridge", [0.1, 5.0])
def test_record_by_record_the_minimiser_moves_by_at_most_the_sensitivity(loss, adjacency, ridge):
    rng = np.random.default_rng(1)
    facts = Facts(loss=loss, features=2, row_norm=1.5, alpha=ridge, adjacency=adjacency)
    plan = OutputPerturbation(radius=1e9).plan(facts, Goal(epsilon=1.0, delta=1e-6, adjacency=adjacency))
    assert plan.ridge == ridge
    table, targets = rng.standard_normal((8, 2)) * 3, rng.integers(0, 2 if loss.outputs == 1 else 3, 8)

    def found(rows, labels):
        objective = Objective(Problem.of(facts, rows, labels), ridge, np.zeros(facts.shape))
        return minimised(objective, gamma=plan.gamma)

    whole = found(table, targets)
    largest = 0.0
    for i in range(8):
        if adjacency == "add-remove":
            others = [(np.delete(table, i, 0), np.delete(targets, i))]
        else:
            others = [(table.copy(), targets.copy()) for _ in range(2)]
            for rows, labels in others:
                rows[i], labels[i] = rng.standard_normal(2) * 3, 1 - min(1, targets[i])
        for rows, labels in others:
            moved = float(np.linalg.norm(found(rows, labels) - whole))
            assert moved <= plan.sensitivity
            largest = max(largest, moved / float(plan.sensitivity))
    assert largest > (0.2 if ridge == 5.0 else 0.005)  # the bound is no dead letter


def test_one_record_alone_moves_the_minimiser_by_nearly_all_of_the_sensitivity():
    # far out on the line the hinge is straight: the minimiser moves by exactly L / ridge
    facts = Facts(loss=SmoothedHinge(), features=1, row_norm=1.0, alpha=10.0)
    plan = OutputPerturbation(radius=1e9).plan(facts, Goal(epsilon=1.0, delta=1e-6))
    places = [
        minimised(Objective(Problem.of(facts, np.ones((n, 1)), np.ones(n)), 10.0, np.zeros(1)), gamma=plan.gamma)[0]
        for n in (0, 1)
    ]
    assert abs(places[1] - places[0]) == pytest.approx(float(plan.sensitivity), rel=1e-4)
    assert abs(places[1] - places[0]) <= plan.sensitivity


@pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["gaussian", "laplace"])
def test_it_finds_a_planted_direction_on_a_lattice(delta):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(4)
    table = rng.standard_normal((50_000, 4)) / 2
    facts = Facts(loss=Logistic(), features=4, row_norm=2.0)
    plan = OutputPerturbation(radius=0.5).plan(facts, Goal(epsilon=1.0, delta=delta))
    weights = plan.run(Problem.of(facts, table, table @ truth > 0)).weights
    assert weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth) > 0.9
    assert (weights / plan.mechanism.granularity == np.rint(weights / plan.mechanism.granularity)).all()


@pytest.mark.parametrize("goal", [Goal(epsilon=0.05, delta=0.2), Goal(epsilon=1.0)], ids=["gaussian", "pure"])
def test_an_attacker_finds_no_more_than_the_cost_and_would_find_noise_that_is_three_times_too_small(goal):
    facts = Facts(loss=SmoothedHinge(), features=1, row_norm=1.0, alpha=10.0)  # moves by all of the sensitivity
    plan = OutputPerturbation(radius=1e9).plan(facts, goal)
    quiet = replace(plan, goal=Goal(mu=3 * goal.gaussian) if goal.delta else Goal(epsilon=3 * goal.epsilon))
    data = [Problem.of(facts, np.ones((n, 1)), np.ones(n)) for n in (0, 1)]
    middle = float(plan.sensitivity) * (0.5 if goal.delta else 1.0)
    for tried, is_private in ((plan, True), (quiet, False)):
        release = lambda there, tried=tried: float(tried.run(data[there]).weights[0])
        found = proved_delta(release, epsilon=goal.epsilon, event=lambda w: w > middle, draws=800)
        assert (found <= goal.delta) == is_private


def test_what_it_cannot_do_is_refused_before_data_is_seen():
    goal = Goal(epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidArgument, match="bounded slope"):
        OutputPerturbation().plan(Facts(loss=Squared(1.0), features=2, row_norm=1.0), goal)
    with pytest.raises(InvalidArgument, match="proved small"):
        OutputPerturbation(gamma=1e-12).plan(Facts(loss=Logistic(), features=2, row_norm=1.0), goal)
    with pytest.raises(InvalidArgument, match="adjacency"):
        OutputPerturbation().plan(Facts(loss=Logistic(), features=2, row_norm=1.0, adjacency="replace-one"), goal)
    for bad in ({"radius": 0.0}, {"radius": float("nan")}, {"gamma": -1.0}):
        with pytest.raises(InvalidArgument):
            OutputPerturbation(**bad)


@pytest.mark.parametrize("n", [2000, 20_000])
def test_the_measured_excess_stays_below_the_theorem(n):
    rng = np.random.default_rng(3)
    d, truth = 5, np.array([0.6, -0.3, 0.2, 0.5, -0.4])
    truth /= np.linalg.norm(truth)
    table = rng.standard_normal((n, d))
    table /= np.linalg.norm(table, axis=1)[:, None]
    labels = rng.random(n) < 1 / (1 + np.exp(-table @ truth))
    facts = Facts(loss=Logistic(), features=d, row_norm=1.0, adjacency="replace-one")
    problem = Problem.of(facts, table, labels)
    goal = Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one")
    solver = OutputPerturbation(radius=0.3)
    plan = solver.plan(facts, goal)
    losses = [problem.objective(plan.run(problem).weights) / n for _ in range(20)]
    excess = np.mean(losses) - problem.objective(truth) / n  # against weights of norm 1
    bound = solver.utility_bound(n=n, d=d, epsilon=1.0, delta=1e-6, lipschitz=1.0, radius=1.0, smoothness=0.25)
    assert excess <= bound
    assert bound < (1.0 if n == 2000 else 0.2)  # it says something
