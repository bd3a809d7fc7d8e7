"""Preconditioned descent: exact sums, a cost that is all of the goal, and fits of badly scaled features."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import InvalidArgument
from discreet.learning import Facts, Goal, Logistic, MulticlassHinge, Problem, Softmax
from discreet.learning.convex import NoisyGradientDescent, PreconditionedDescent
from learning.membership import proved_delta

GOAL = Goal(epsilon=1.0, delta=1e-6)


@settings(max_examples=15)
@given(
    epsilon=st.floats(0.05, 8.0),
    share=st.floats(0.01, 0.9),
    steps=st.integers(1, 30),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
def test_the_plan_meets_the_goal_and_spends_it(epsilon, share, steps, adjacency):
    goal = Goal(epsilon=epsilon, delta=1e-6, adjacency=adjacency)
    facts = Facts(loss=Softmax(outputs=3), features=4, row_norm=2.0, adjacency=adjacency)
    plan = PreconditionedDescent(steps=steps, share=share).plan(facts, goal)
    assert goal.met_by(plan.cost)
    assert plan.cost.epsilon(1e-6) == pytest.approx(epsilon, rel=1e-6)


def test_a_goal_in_mu_is_met():
    plan = PreconditionedDescent().plan(Facts(loss=Logistic(), features=4, row_norm=2.0), Goal(mu=0.5))
    assert plan.cost.gdp() == pytest.approx(0.5, rel=1e-6)
    assert Goal(mu=0.5).met_by(plan.cost)


@pytest.mark.parametrize(
    "loss", [Logistic(), Softmax(outputs=3), MulticlassHinge(3)], ids=["logistic", "softmax", "hinge"]
)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_record_by_record_both_sums_move_by_at_most_their_sensitivity(loss, adjacency):
    rng = np.random.default_rng(1)
    facts = Facts(loss=loss, features=3, row_norm=1.5, adjacency=adjacency)
    plan = PreconditionedDescent(clip=0.4).plan(facts, replace(GOAL, adjacency=adjacency))
    table, targets = rng.standard_normal((30, 3)) * 3, rng.integers(0, 3, 30)
    gradient_limit, moment_limit = plan.mechanism.sensitivity, plan.moment.mechanism.sensitivity
    largest = [0.0, 0.0]

    def sums(problem, weights):
        slopes = loss.slopes(problem.rows.margins(weights), problem.targets)
        return problem.rows.pull(slopes, bound=plan.bound), plan.moment.exact(problem.rows)

    for i in range(30):
        weights = rng.standard_normal(facts.shape) * 20
        if adjacency == "add-remove":
            other, labels = np.delete(table, i, 0), np.delete(targets, i)
        else:
            other, labels = table.copy(), targets.copy()
            other[i], labels[i] = rng.standard_normal(3) * 3, (targets[i] + 1) % 3
        whole = sums(Problem.of(facts, table, targets), weights)
        rest = sums(Problem.of(facts, other, labels), weights)
        for which, limit in enumerate((gradient_limit, moment_limit)):
            change = sum(int(x) ** 2 for x in (whole[which] - rest[which]).ravel())
            assert change <= int(limit) ** 2 + int(limit)
            largest[which] = max(largest[which], math.sqrt(change) / limit)
    assert min(largest) > 0.5  # the bounds are no dead letters


def test_features_of_very_different_sizes_are_learned_where_plain_descent_is_not():
    rng = np.random.default_rng(0)
    sizes = np.array([1.0, 0.1, 0.03])
    table = rng.uniform(-1, 1, (100_000, 3)) * sizes
    truth = np.array([0.5, 4.0, -30.0])
    labels = rng.random(100_000) < 1 / (1 + np.exp(-table @ truth))
    facts = Facts(loss=Logistic(), features=3, row_norm=1.01, records=100_000)
    problem = Problem.of(facts, table, labels)
    right = labels.astype(float)

    def excess(solver):
        weights = solver.plan(facts, GOAL).run(problem).weights
        margins = np.stack([table @ weights, table @ truth])
        return float(np.diff((np.logaddexp(0, margins) - right * margins).mean(axis=1))[0] * -1)

    assert excess(PreconditionedDescent()) < 0.005
    assert excess(NoisyGradientDescent()) > 0.02


def test_noise_alone_never_breaks_the_preconditioner():
    facts = Facts(loss=Logistic(), features=3, row_norm=1.0)
    plan = PreconditionedDescent().plan(facts, Goal(epsilon=0.01, delta=1e-9))
    inverse = plan.preconditioner(np.array([[-1e6, 0, 0], [0, 1e6, 5], [0, 5, 0.0]]))
    values = np.linalg.eigvalsh(inverse)
    assert values.min() > 0
    assert values.max() <= 1 / plan.ridge * (1 + 1e-9)
    weights = plan.run(Problem.of(facts, np.zeros((0, 3)), np.zeros(0))).weights
    assert np.isfinite(weights).all()


def test_the_mean_is_over_the_last_half_of_the_iterates():
    facts = Facts(loss=Logistic(), features=1, row_norm=1.0)
    # next to no noise and no rows: every iterate is 0 up to noise, whatever their number
    for steps in (1, 2, 3):
        plan = PreconditionedDescent(steps=steps).plan(facts, Goal(mu=100.0))
        assert abs(plan.run(Problem.of(facts, np.zeros((0, 1)), np.zeros(0))).weights[0]) < 10


def test_an_attacker_finds_no_more_than_the_cost_and_would_find_noise_that_is_three_times_too_small():
    facts = Facts(loss=Logistic(), features=1, row_norm=1.0)
    goal = Goal(epsilon=0.05, delta=0.2)
    # the sum of slopes is -1/2 with the record, 0 without; shortened to 1/2 that is as loud as the sensitivity says
    plan = PreconditionedDescent(steps=1, share=0.01, clip=0.5).plan(facts, goal)
    assert goal.met_by(plan.cost)
    quiet = replace(plan, each=Goal(mu=3 * plan.each.gaussian))
    data = [Problem.of(facts, np.ones((n, 1)), np.ones(n)) for n in (0, 1)]
    for tried, is_private in ((plan, True), (quiet, False)):
        release = lambda there, tried=tried: float(tried.run(data[there]).weights[0])
        found = proved_delta(release, epsilon=goal.epsilon, event=lambda w: w > 0, draws=1000)
        assert (found <= goal.delta) == is_private


@pytest.mark.parametrize(
    ("facts", "goal", "words"),
    [
        (Facts(loss=Logistic(), features=2, row_norm=1.0), Goal(epsilon=1.0), "ObjectivePerturbation"),
        (Facts(loss=Logistic(), features=2, row_norm=1.0), replace(GOAL, adjacency="replace-one"), "adjacency"),
        (Facts(loss=Logistic(), features=5000, row_norm=1.0), GOAL, "4000"),
    ],
)
def test_what_it_cannot_do_is_refused_before_data_is_seen(facts, goal, words):
    with pytest.raises(InvalidArgument, match=words):
        PreconditionedDescent().plan(facts, goal)


@pytest.mark.parametrize(
    "bad", [{"steps": 0}, {"share": 0.0}, {"share": 1.0}, {"clip": 1.5}, {"clip": 0.0}, {"radius": -1}]
)
def test_parameters_outside_their_domain_are_refused(bad):
    with pytest.raises(InvalidArgument):
        PreconditionedDescent(**bad)
