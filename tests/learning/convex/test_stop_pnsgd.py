"""Stop-PNSGD: a mixture over its length, composed over tasks; cheaper than the theorem it comes from."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from discreet import InvalidArgument
from discreet.learning import Facts, Goal, Logistic, Problem
from discreet.learning.convex import StopPNSGD
from discreet.learning.convex.pnsgd import PNSGDPlan
from discreet.noise import uniform_integers
from discreet.noise.testing import SeededGenerator

ALPHA = 1e-9
GOAL = Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one")


def facts_of(records=400, **more):
    return Facts(loss=Logistic(), features=3, row_norm=1.0, records=records, adjacency="replace-one", **more)


def gaussian_delta(mu, epsilon):
    return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize(("batch", "tasks", "alpha"), [(1, 1, 0.0), (1, 1, 2.0), (4, 1, 0.0), (20, 20, 0.0)])
def test_the_goal_is_met_and_spent_by_all_tasks_together(batch, tasks, alpha):
    plan = StopPNSGD(batch=batch, tasks=tasks).plan(facts_of(alpha=alpha), GOAL)
    assert GOAL.met_by(plan.cost)
    assert plan.cost.epsilon(1e-6) == pytest.approx(1.0, rel=1e-5)
    everyone = plan.personal_costs
    assert len(everyone) == 400
    readings = everyone.epsilon(1e-6)
    assert readings[0] == pytest.approx(1.0, rel=1e-3)
    assert (np.diff(readings) <= 1e-12).all()
    assert everyone.for_person(400).epsilon(1e-6) <= readings[-1] * (1 + 1e-6)
    deltas = everyone.delta(0.5)
    assert deltas[0] >= deltas[-1] > 0


def test_one_task_costs_the_mean_over_its_length_and_no_less():
    plan = StopPNSGD().plan(facts_of(), GOAL)
    mus = 2 / (plan.sigma * np.sqrt(np.arange(1, 401)))
    exact = float(np.mean([gaussian_delta(mu, 1.0) for mu in mus]))
    assert plan.cost.delta(1.0) >= exact * (1 - 1e-9)
    assert plan.cost.delta(1.0) == pytest.approx(exact, rel=1e-4)


def test_noise_scales_with_rows_of_every_size():
    one, *others = (
        StopPNSGD().plan(Facts(loss=Logistic(), features=3, row_norm=r, records=90, adjacency="replace-one"), GOAL)
        for r in (1.0, 1e-40, 1e6)
    )
    for plan in others:
        assert plan.sigma / plan.facts.row_norm == pytest.approx(one.sigma, rel=1e-6)


@pytest.mark.parametrize("tasks", [1, 50])
def test_less_noise_is_needed_than_the_theorem_asks_for(tasks):
    # Theorem 32: sigma = 4 L sqrt(q ln(1/delta)) / epsilon, q = max(2 k ln(n)/n, 2 ln(1/delta))
    plan = StopPNSGD(tasks=tasks).plan(facts_of(), GOAL)
    q = max(2 * tasks * math.log(400) / 400, 2 * math.log(1e6))
    assert plan.sigma < 4 * math.sqrt(q * math.log(1e6))


def test_many_tasks_need_little_more_noise_than_one():
    one, many = (StopPNSGD(tasks=k).plan(facts_of(), GOAL).sigma for k in (1, 20))
    assert one < many < 3 * one  # composition of Gaussians would need sqrt(20) = 4.5 times as much


def test_it_is_pnsgd_on_the_first_records():
    rng = np.random.default_rng(4)
    table, labels = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    facts = facts_of(records=60)
    plan = StopPNSGD(batch=2).plan(facts, GOAL)
    for seed in range(5):
        generator = SeededGenerator(seed)
        taken = 2 * (1 + uniform_integers(30, generator=generator))
        part = facts_of(records=taken)
        same = PNSGDPlan(part, plan.radius, 2, plan.step, plan.sigma)
        expected = same.run(Problem.of(part, table[:taken], labels[:taken]), generator=generator)
        found = plan.run(Problem.of(facts, table, labels), generator=SeededGenerator(seed))
        assert found.weights.tolist() == expected.weights.tolist()


def test_the_length_is_uniform():
    plan = StopPNSGD().plan(facts_of(records=5), GOAL)
    spans = [plan.span(None) for _ in range(4000)]
    assert {first for first, _ in spans} == {0}
    counts = np.bincount([last for _, last in spans], minlength=6)
    assert counts[0] == 0
    assert len(counts) == 6
    assert chisquare(counts[1:]).pvalue > ALPHA
    assert chisquare(counts[1:], 4000 * np.array([1.5, 1, 1, 1, 0.5]) / 5).pvalue < ALPHA


def test_tasks_are_run_together_or_not_at_all():
    rng = np.random.default_rng(1)
    facts = facts_of(records=100)
    plan = StopPNSGD(tasks=3).plan(facts, GOAL)
    table = rng.standard_normal((100, 3))
    problems = [Problem.of(facts, table, table[:, k] > 0) for k in range(3)]
    with pytest.raises(InvalidArgument, match="run_all"):
        plan.run(problems[0])
    with pytest.raises(InvalidArgument, match="3 tasks"):
        plan.run_all(problems[:2])
    fits = plan.run_all(problems)
    assert len(fits) == 3
    assert len({tuple(fit.weights) for fit in fits}) == 3
    with pytest.raises(InvalidArgument, match="tasks"):
        StopPNSGD(tasks=0)


def test_the_bound_on_the_excess_loss_holds_on_data_with_a_known_optimum():
    # x = +-1, P(y = 1) = 3/4 where x is positive: the population's optimum is ln 3
    n, runs, rng = 3000, 25, np.random.default_rng(3)
    solver = StopPNSGD(batch=10, radius=2.0)
    facts = Facts(loss=Logistic(), features=1, row_norm=1.0, records=n, adjacency="replace-one")
    plan = solver.plan(facts, GOAL)
    bound = solver.utility_bound(n=n, d=1, epsilon=1.0, delta=1e-6, radius=2.0, smoothness=0.25)

    def population(w):
        return float(0.75 * np.logaddexp(0, -w) + 0.25 * np.logaddexp(0, w))

    excess = []
    for _ in range(runs):
        signs = rng.choice([-1.0, 1.0], n)
        labels = rng.random(n) < np.where(signs > 0, 0.75, 0.25)
        fitted = plan.run(Problem.of(facts, signs[:, None], labels))
        excess.append(population(fitted.weights[0]) - population(math.log(3)))
    assert 0 < np.mean(excess) < bound < 0.5
