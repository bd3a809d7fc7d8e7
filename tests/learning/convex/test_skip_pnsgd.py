"""Skip-PNSGD: PNSGD on the rest of the order, from a place that is uniform on the first half; never dearer."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from discreet.learning import Facts, Goal, Logistic, Problem
from discreet.learning.convex import PNSGD, SkipPNSGD
from discreet.learning.convex.pnsgd import PNSGDPlan
from discreet.noise import uniform_integers
from discreet.noise.testing import SeededGenerator

ALPHA = 1e-9
GOAL = Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one")


def facts_of(records=400, **more):
    return Facts(loss=Logistic(), features=3, row_norm=1.0, records=records, adjacency="replace-one", **more)


@pytest.mark.parametrize(("batch", "public"), [(1, 0), (1, 40), (5, 40), (1, 300), (None, 20)])
def test_the_worst_record_meets_the_goal_and_spends_it_all(batch, public):
    plan = SkipPNSGD(batch=batch, public=public).plan(facts_of(), GOAL)
    assert GOAL.met_by(plan.cost)
    assert plan.cost.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
    everyone = plan.personal_costs.epsilon(1e-6)
    assert len(everyone) == 400 - public
    assert everyone.max() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(("batch", "public"), [(1, 0), (1, 300), (4, 40)])
def test_mu_and_the_chance_to_be_used_are_the_closed_forms(batch, public):
    plan = SkipPNSGD(batch=batch, public=public).plan(facts_of(), GOAL)
    place = np.arange(400 - public) // batch + 1
    steps = 400 // batch
    exact = 2 / (batch * plan.sigma * np.sqrt(steps + 1 - place))
    assert (plan.personal_costs.mu >= exact).all()
    assert plan.personal_costs.mu == pytest.approx(exact, rel=1e-6)
    assert plan.personal_costs.weight == pytest.approx(np.minimum(1, place / (steps // 2 + 1)))


def test_nobody_pays_more_than_under_pnsgd_with_the_same_noise():
    facts = facts_of(alpha=1.0)
    plan = SkipPNSGD().plan(facts, GOAL)
    plain = PNSGDPlan(facts, plan.radius, 1, plan.step, plan.sigma)
    ours, theirs = plan.personal_costs.epsilon(1e-6), plain.personal_costs.epsilon(1e-6)
    assert (ours <= theirs * (1 + 1e-5)).all()
    assert (ours[:100] < theirs[:100] * 0.95).all()
    for position in (1, 150, 400):
        assert plan.personal_costs.for_person(position).epsilon(1e-6) <= theirs[position - 1] * (1 + 1e-5)


def test_it_is_pnsgd_on_the_rest_of_the_order():
    rng = np.random.default_rng(4)
    table, labels = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    facts = facts_of(records=60)
    plan = SkipPNSGD(batch=2).plan(facts, GOAL)
    for seed in range(5):
        generator = SeededGenerator(seed)
        skipped = uniform_integers(16, generator=generator)
        rest = facts_of(records=60 - 2 * skipped)
        same = PNSGDPlan(rest, plan.radius, 2, plan.step, plan.sigma)
        expected = same.run(Problem.of(rest, table[2 * skipped :], labels[2 * skipped :]), generator=generator)
        found = plan.run(Problem.of(facts, table, labels), generator=SeededGenerator(seed))
        assert found.weights.tolist() == expected.weights.tolist()


def test_the_first_step_is_uniform_on_the_first_half():
    plan = SkipPNSGD().plan(facts_of(records=9), GOAL)
    counts = np.bincount([plan.span(None)[0] for _ in range(4000)], minlength=5)
    assert counts.sum() == 4000
    assert len(counts) == 5
    assert chisquare(counts).pvalue > ALPHA
    wrong = np.array([1.5, 1, 1, 1, 0.5]) / 5
    assert chisquare(counts, 4000 * wrong).pvalue < ALPHA
    assert {plan.span(None)[1] for _ in range(20)} == {9}


def test_its_bound_is_that_of_a_random_iterate_and_has_no_logarithm():
    values = {"n": 10**6, "d": 10, "epsilon": 1.0, "delta": 1e-6}
    bound = SkipPNSGD().utility_bound(**values)
    size = math.hypot(1, math.sqrt(10) * 2 / GOAL.gaussian)
    assert bound == pytest.approx(size * math.sqrt(10**6 + 1) / 500_001, rel=1e-9)  # R G sqrt(T + 1) / m
    assert bound < PNSGD().utility_bound(**values)
