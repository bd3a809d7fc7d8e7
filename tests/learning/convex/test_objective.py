"""Objective perturbation: densities move by no more than the theorem says, and the plan is the theorem's."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Budget, Cost, InvalidArgument
from discreet.divergence import hockey_stick_gaussian
from discreet.learning import (
    Facts,
    Goal,
    Huber,
    Logistic,
    MulticlassHinge,
    Poisson,
    Problem,
    SmoothedHinge,
    Softmax,
    Squared,
)
from discreet.learning.convex import ObjectivePerturbation
from discreet.learning.convex.minimum import Objective, minimised
from discreet.learning.convex.tilted import Shape, gaussian_privacy, profile
from learning.membership import proved_delta

GOAL = Goal(epsilon=1.0, delta=1e-6)
MANY = [Softmax(outputs=4), MulticlassHinge(outputs=4, width=2.0)]
LOSSES = [Logistic(), SmoothedHinge(), Huber(limit=1.0), Poisson(most=3.0, ceiling=1.0), *MANY]


def curvature(loss, margin, target):
    """The curvature of one row in all its margins, from its slopes."""
    if loss.outputs == 1:
        return np.array([[loss.curvatures(np.array([margin]), np.array([target]))[0]]])
    p = loss.slopes(margin[None], np.array([target]))[0] + np.eye(loss.outputs)[target]
    if isinstance(loss, MulticlassHinge):
        shared = (p > 1e-12).astype(float)
        return (np.diag(shared) - np.outer(shared, shared) / shared.sum()) * 2 / loss.width
    return np.diag(p) - np.outer(p, p)


def log_density(problem, ridge, sigma, weights):
    """ln of the density of the minimiser at these weights, up to a constant."""
    gradient = Objective(problem, ridge, np.zeros(problem.facts.shape)).gradient(weights)
    rows, loss = problem.rows.values(), problem.facts.loss
    hessian = ridge * np.eye(problem.facts.dimension)
    for row, target, margin in zip(rows, problem.targets, rows @ weights, strict=True):
        hessian += np.kron(np.outer(row, row), curvature(loss, margin, target))
    return -np.sum(gradient**2) / (2 * sigma**2) + np.linalg.slogdet(hessian)[1], gradient


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_record_by_record_the_density_moves_by_at_most_the_bound(loss):
    rng = np.random.default_rng(7)
    radius, ridge, sigma, n = 1.5, 0.7, 2.0, 12
    facts = Facts(loss=loss, features=2, row_norm=radius)
    table = 3 * rng.standard_normal((n, 2))
    targets = rng.integers(0, 4, n) if loss.outputs > 1 else rng.integers(0, 2, n).astype(float)
    whole = Problem.of(facts, table, targets)
    offset, m = loss.log_determinant(radius**2 / ridge), facts.lipschitz / sigma
    largest = 0.0
    for i in range(n):
        rest = Problem.of(facts, np.delete(table, i, 0), np.delete(targets, i))
        row = whole.rows.values()[i]
        for _ in range(20):
            weights = rng.standard_normal(facts.shape) * rng.choice([0.1, 1.0, 5.0])
            with_it, gradient = log_density(whole, ridge, sigma, weights)
            without, other = log_density(rest, ridge, sigma, weights)
            slope = loss.slopes(
                (row @ weights)[None] if loss.outputs > 1 else np.array([row @ weights]), targets[i : i + 1]
            )
            assert np.linalg.norm(gradient - other - np.multiply.outer(row, slope[0])) < 1e-9
            # the extreme points that the slopes of this target lie between
            if loss.outputs > 1:
                points = [np.eye(4)[j] - np.eye(4)[targets[i]] for j in range(4) if j != targets[i]]
            elif loss.corners == 1:
                points = [-math.copysign(1.0, targets[i] - 0.5)]
            else:
                points = [-loss.lipschitz, loss.lipschitz]
            assert len(points) == loss.corners
            for noise, sign, paid in ((-gradient, 1, offset), (-other, -1, 0.0)):
                losses = [
                    (2 * sign * np.sum(noise * np.multiply.outer(row, v)) + np.sum(np.multiply.outer(row, v) ** 2))
                    / (2 * sigma**2)
                    for v in points
                ]
                assert all(np.linalg.norm(np.multiply.outer(row, v)) <= m * sigma * (1 + 1e-9) for v in points)
                assert sign * (with_it - without) <= paid + max(0.0, *losses) + 1e-9
            largest = max(largest, (with_it - without) / (offset + max(0.0, *losses)))
    assert largest > 0.1  # the bound is no dead letter


@pytest.mark.parametrize(
    "loss", [Logistic(), SmoothedHinge(), Softmax(outputs=5), MulticlassHinge(5, 8.0)], ids=lambda loss: loss.name
)
def test_determinants_are_within_their_bound_and_reach_it(loss):
    rng = np.random.default_rng(2)
    best = 0.0
    for ratio in (0.01, 1.0, 30.0):
        for _ in range(300):
            margin = rng.standard_normal(loss.outputs) * rng.choice([0.0, 1.0, 10.0])
            matrix = curvature(loss, margin if loss.outputs > 1 else 1 + 0.1 * margin[0] * (loss.name != "logistic"), 1)
            value = np.linalg.slogdet(np.eye(loss.outputs) + ratio * matrix)[1]
            assert value <= loss.log_determinant(ratio) * (1 + 1e-12)
            best = max(best, value / loss.log_determinant(ratio))
    assert best > 0.85


PUSHED = [(1.0, 0)] * 40
"""Records that push the weight to where the slope of (1, 1) is nearly as steep as it can be."""


def one_dimensional(records, ridge, sigma, places):
    """The density of the minimiser for logistic records on the line."""
    slopes, bends = ridge * places, np.full_like(places, ridge)
    for x, y in records:
        p = 1 / (1 + np.exp(-x * places))
        slopes, bends = slopes + (p - y) * x, bends + p * (1 - p) * x * x
    return np.exp(-(slopes**2) / (2 * sigma**2)) * bends / (sigma * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("ridge", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_on_the_line_the_true_divergence_is_within_the_profile_and_not_far_below(ridge, sigma):
    # the densities are known, so the hockey-stick divergence is a sum over a fine grid
    facts = Facts(loss=Logistic(), features=1, row_norm=1.0)
    offset, m = facts.loss.log_determinant(1 / ridge), 1 / sigma
    reach = (3 + 9 * sigma) / ridge + 8
    places = np.linspace(-reach, reach, 400_001)
    width = places[1] - places[0]
    tightest = 0.0
    for rest in ([], [(1.0, 0)], [(-1.0, 1), (0.3, 0)], [(1.0, 1)] * 5, PUSHED):
        without = one_dimensional(rest, ridge, sigma, places)
        assert without.sum() * width == pytest.approx(1.0, abs=1e-6)
        with_it = one_dimensional([*rest, (1.0, 1)], ridge, sigma, places)
        for epsilon in (offset, offset + 0.1, offset + 1.0, offset + 2.5):
            allowed = profile(epsilon, ratio=m, corners=1, offset=offset)
            there = np.maximum(with_it - math.exp(epsilon) * without, 0).sum() * width
            back = np.maximum(without - math.exp(epsilon) * with_it, 0).sum() * width
            assert there <= allowed + 1e-6
            assert back <= profile(epsilon, ratio=m, corners=1, offset=0.0) + 1e-6
            tightest = max(tightest, there / allowed)
        # a replaced record
        other = one_dimensional([*rest, (-1.0, 1)], ridge, sigma, places)
        for epsilon in (offset + 0.1, offset + 2.0):
            allowed = profile(epsilon, ratio=m, corners=1, offset=offset, changes=2)
            assert np.maximum(with_it - math.exp(epsilon) * other, 0).sum() * width <= allowed + 1e-6
        # noise that is three times too small would break the same claim
        quiet = [one_dimensional(r, ridge, sigma / 3, places) for r in (rest, [*rest, (1.0, 1)])]
        broken = np.maximum(quiet[1] - math.exp(offset + 0.1) * quiet[0], 0).sum() * width
        if ridge >= 1 and rest == PUSHED:
            assert broken > profile(offset + 0.1, ratio=m, corners=1, offset=offset)
    if ridge >= 1:  # with less the determinant costs more in the bound than in truth
        assert tightest > 0.3


@settings(max_examples=15)  # every example reads a certified epsilon
@given(
    epsilon=st.floats(0.05, 8.0),
    log_delta=st.floats(-12, -2),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
    loss=st.sampled_from(LOSSES),
)
def test_the_plan_meets_the_goal_and_spends_it(epsilon, log_delta, adjacency, loss):
    goal = Goal(epsilon=epsilon, delta=10**log_delta, adjacency=adjacency)
    facts = Facts(loss=loss, features=3, row_norm=2.0, adjacency=adjacency)
    plan = ObjectivePerturbation().plan(facts, goal)
    assert goal.met_by(plan.cost)
    assert plan.cost.epsilon(goal.delta) > 0.98 * epsilon
    shape = Shape.of(loss)
    if shape.is_line:
        spent = facts.changes * gaussian_privacy(plan.ratio, offset=plan.offset, shape=shape)
        assert 0.999 * goal.gaussian < math.hypot(spent, plan.rest.gaussian) <= goal.gaussian * (1 + 1e-9)
        assert plan.ratio > 0.93 * goal.gaussian / facts.changes
    else:
        inner, delta = 0.99 * epsilon, 0.99 * goal.delta
        spent = profile(inner, ratio=plan.ratio, corners=loss.corners, offset=plan.offset, changes=facts.changes)
        assert 0.999 * delta < spent <= delta * (1 + 1e-9)
    assert plan.offset >= loss.log_determinant(facts.row_norm**2 / plan.ridge)
    assert plan.scale >= facts.lipschitz / plan.ratio


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_goals_in_mu_and_in_rho_are_met_and_spent(adjacency, loss):
    facts = Facts(loss=loss, features=3, row_norm=2.0, adjacency=adjacency)
    for goal in (
        Goal(mu=0.4, adjacency=adjacency),
        Goal.of(budget=Budget(rho=0.08, adjacency=adjacency), adjacency=adjacency),
    ):
        plan = ObjectivePerturbation().plan(facts, goal)
        assert 0.399 < plan.cost.gdp() <= 0.4 * (1 + 1e-9)
        assert plan.cost.zcdp() <= 0.08 * (1 + 1e-9)
        assert np.isfinite(plan.run(Problem.of(facts, np.eye(3), np.array([0, 1, 1]))).weights).all()


@pytest.mark.parametrize("loss", [Logistic(), Huber(limit=1.0), Softmax(outputs=10)], ids=lambda loss: loss.name)
def test_many_fits_cost_far_less_than_many_boxes(loss):
    facts = Facts(loss=loss, features=3, row_norm=1.0)
    cost = ObjectivePerturbation().plan(facts, GOAL).cost
    assert (16 * cost).epsilon(1e-5) < (9.0 if loss.outputs > 1 else 5.5)  # sixteen boxes of epsilon 1 cost 16


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_pure_plan_is_pure_and_its_noise_is_for_the_l1_norm(adjacency):
    goal = Goal(epsilon=1.0, adjacency=adjacency)
    facts = Facts(loss=Logistic(), features=9, row_norm=2.0, adjacency=adjacency)
    plan = ObjectivePerturbation().plan(facts, goal)
    assert plan.cost.epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    assert goal.met_by(plan.cost)
    # c + changes * (l1 norm of a gradient) / scale, with sqrt(9) * 2 for the norm
    assert plan.offset + facts.changes * 6.0 / plan.scale <= 0.99
    assert plan.offset + facts.changes * 6.0 / plan.scale == pytest.approx(0.99, rel=1e-9)


def test_one_record_replaced_costs_what_two_gaussian_steps_do():
    # with no determinant and one corner the best split is exact: H_{2m}
    for epsilon in (0.5, 1.0, 3.0):
        got = profile(epsilon, ratio=0.2, corners=1, offset=0.0, changes=2)
        assert got == pytest.approx(float(hockey_stick_gaussian(epsilon, mu=0.4)), rel=0.02)
        assert got >= float(hockey_stick_gaussian(epsilon, mu=0.4))


def test_the_linear_term_has_its_scale_and_what_is_computed_is_near_the_minimum():
    facts = Facts(loss=Logistic(), features=3, row_norm=1.0)
    plan = ObjectivePerturbation().plan(facts, GOAL)
    draws = np.array([plan.tilt() for _ in range(3000)])
    assert np.sqrt(np.mean(draws**2)) == pytest.approx(plan.scale, rel=0.06)  # 9000 draws: eight standard errors
    assert (np.ldexp(draws, 0) / plan.step == np.rint(draws / plan.step)).all()
    rng = np.random.default_rng(0)
    problem = Problem.of(facts, rng.standard_normal((500, 3)), rng.integers(0, 2, 500))
    objective = Objective(problem, plan.ridge, plan.tilt())
    found, better = minimised(objective, gamma=plan.accuracy), minimised(objective, gamma=plan.accuracy / 1000)
    assert np.linalg.norm(found - better) <= plan.accuracy * 1.001 / plan.ridge
    assert plan.gamma >= plan.accuracy + plan.step * math.sqrt(3) / 2
    assert plan.mechanism.sensitivity >= 2 * plan.gamma / plan.ridge


@pytest.mark.parametrize("delta", [1e-5, 0.0], ids=["gaussian", "pure"])
def test_it_finds_a_planted_direction(delta):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(8)
    table = rng.standard_normal((20_000, 8)) / np.sqrt(8)
    facts = Facts(loss=Logistic(), features=8, row_norm=2.0)
    plan = ObjectivePerturbation().plan(facts, Goal(epsilon=1.0, delta=delta))
    weights = plan.run(Problem.of(facts, table, table @ truth > 0)).weights
    assert weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth) > 0.95
    assert (weights / plan.mechanism.granularity == np.rint(weights / plan.mechanism.granularity)).all()


def test_several_classes_are_learned():
    rng = np.random.default_rng(0)
    centres = np.array([[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]])
    labels = rng.integers(0, 3, 5000)
    table = centres[labels] + 0.3 * rng.standard_normal((5000, 2))
    facts = Facts(loss=Softmax(outputs=3), features=2, row_norm=2.0)
    plan = ObjectivePerturbation().plan(facts, GOAL)
    weights = plan.run(Problem.of(facts, table, labels)).weights
    assert np.mean((table @ weights).argmax(1) == labels) > 0.9


def released(plan):
    absent, present = (
        Problem.of(plan.facts, np.array([[x] for x, _ in records]), np.array([y for _, y in records]))
        for records in (PUSHED, [*PUSHED, (1.0, 1)])
    )
    return lambda there: float(plan.run(present if there else absent).weights[0])


@pytest.mark.parametrize("goal", [Goal(epsilon=1.0, delta=0.05), Goal(epsilon=1.0)], ids=["gaussian", "pure"])
def test_an_attacker_finds_no_more_than_the_cost_and_would_find_noise_that_is_three_times_too_small(goal):
    facts = Facts(loss=Logistic(), features=1, row_norm=1.0)
    plan = ObjectivePerturbation().plan(facts, goal)
    assert goal.met_by(plan.cost)
    quiet = replace(plan, ratio=3 * plan.ratio)
    records = Problem.of(facts, np.ones((41, 1)), np.array([0] * 40 + [1]))
    # with the record the weight is above this half of the time, whatever the noise
    middle = float(minimised(Objective(records, plan.ridge, np.zeros(1)), gamma=1e-6)[0])
    for tried, is_private in ((plan, True), (quiet, False)):
        found = proved_delta(released(tried), epsilon=goal.epsilon, event=lambda w: w > middle, draws=800)
        assert (found <= goal.delta) == is_private


@pytest.mark.parametrize(
    ("goal", "loss", "solver", "words"),
    [
        (GOAL, Squared(1.0), ObjectivePerturbation(), "bounded slope"),
        (GOAL, Logistic(), ObjectivePerturbation(share=0.95), "pass at most 0.5"),
        (GOAL, Logistic(), ObjectivePerturbation(gamma=1e-12), "proved small"),
        (Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one"), Logistic(), ObjectivePerturbation(), "adjacency"),
    ],
)
def test_what_it_cannot_do_is_refused_before_data_is_seen(goal, loss, solver, words):
    with pytest.raises(InvalidArgument, match=words):
        solver.plan(Facts(loss=loss, features=2, row_norm=1.0), goal)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5])
def test_every_share_up_to_a_half_has_a_plan(loss, share):
    facts = Facts(loss=loss, features=2, row_norm=1.0)
    for goal in (GOAL, Goal(mu=2.0), Goal(epsilon=1.0)):
        plan = ObjectivePerturbation(share=share).plan(facts, goal)
        assert goal.met_by(plan.cost)
        assert 0 < plan.scale < 1e4
    bound = ObjectivePerturbation(share=share).utility_bound(n=1000, d=2, epsilon=1.0, delta=1e-6, smoothness=1.0)
    assert 0 < bound < math.inf


@pytest.mark.parametrize("bad", [{"share": 0.0}, {"share": 1.0}, {"share": math.nan}, {"gamma": 0.0}, {"gamma": -1.0}])
def test_parameters_outside_their_domain_are_refused(bad):
    with pytest.raises(InvalidArgument):
        ObjectivePerturbation(**bad)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_huge_epsilon_is_met_with_a_ridge_that_stays(adjacency, delta):
    goal = Goal(epsilon=1e5, delta=delta, adjacency=adjacency)
    facts = Facts(loss=Logistic(), features=2, row_norm=1.0, adjacency=adjacency)
    plan = ObjectivePerturbation().plan(facts, goal)
    assert goal.met_by(plan.cost)
    assert plan.ridge > 0.1
    assert np.isfinite(plan.run(Problem.of(facts, np.eye(2), np.array([0, 1]))).weights).all()


def test_a_larger_penalty_of_the_facts_is_used_and_costs_less():
    loose = Facts(loss=Logistic(), features=2, row_norm=1.0)
    plan, strict = (ObjectivePerturbation().plan(f, GOAL) for f in (loose, replace(loose, alpha=50.0)))
    assert strict.ridge == 50.0
    assert strict.offset < plan.offset
    assert strict.scale < plan.scale
    assert isinstance(strict.cost, Cost)


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
    solver = ObjectivePerturbation()
    plan = solver.plan(facts, goal)
    losses = [problem.objective(plan.run(problem).weights) / n for _ in range(20)]
    excess = np.mean(losses) - problem.objective(truth) / n  # against weights of norm 1
    bound = solver.utility_bound(n=n, d=d, epsilon=1.0, delta=1e-6, lipschitz=1.0, radius=1.0, smoothness=0.25)
    assert excess <= bound
    assert bound < (1.0 if n == 2000 else 0.2)  # it says something
