"""Several passes in the same order: the closed form of their cost, and PNSGD on the records repeated."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.learning import Facts, Goal, Logistic, Problem
from discreet.learning.convex import PNSGD, MultiEpochPNSGD
from discreet.learning.convex.pnsgd import PNSGDPlan
from discreet.noise.testing import SeededGenerator


def facts_of(records=200, **more):
    return Facts(loss=Logistic(), features=3, row_norm=1.0, records=records, **{"adjacency": "replace-one", **more})


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("epochs", "batch"), [(1, 1), (7, 1), (200, 1), (7, 8), (5, None)])
@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_the_worst_record_meets_the_goal_and_spends_it_all(epochs, batch, adjacency, alpha):
    goal = Goal(epsilon=1.0, delta=1e-6, adjacency=adjacency)
    plan = MultiEpochPNSGD(epochs=epochs, batch=batch, zeroed=True).plan(
        facts_of(adjacency=adjacency, alpha=alpha), goal
    )
    assert goal.met_by(plan.cost)
    assert plan.cost.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
    assert plan.personal_costs.epsilon(1e-6).max() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(("epochs", "batch"), [(1, 1), (7, 1), (200, 1), (7, 8)])
def test_everybodys_mu_is_the_closed_form_and_never_below(epochs, batch):
    # Theorem 35: mu^2 = (2 L / (b sigma))^2 ((k - 1)/T + 1/(T + 1 - t))
    plan = MultiEpochPNSGD(epochs=epochs, batch=batch).plan(facts_of(), Goal(mu=0.5, adjacency="replace-one"))
    place, steps = np.arange(200) // batch + 1, 200 // batch
    exact = 2 / (batch * plan.sigma) * np.sqrt((epochs - 1) / steps + 1 / (steps + 1 - place))
    assert (plan.personal_costs.mu >= exact).all()
    assert plan.personal_costs.mu == pytest.approx(exact, rel=1e-6)
    for position in (1, 77, 200):
        assert plan.personal_costs.for_person(position).gdp() == pytest.approx(exact[position - 1], rel=1e-6)
        assert plan.personal_costs.for_person(position).gdp() >= exact[position - 1]


def test_whoever_sees_every_state_sees_each_use_and_nothing_is_hidden_from_them():
    plan = MultiEpochPNSGD(epochs=9, batch=2).plan(facts_of(), Goal(mu=0.5, adjacency="replace-one"))
    assert plan.local_cost.gdp() == pytest.approx(3 * 2 / (2 * plan.sigma), rel=1e-6)  # sqrt(9) 2 L / (b sigma)
    assert plan.local_cost.gdp() >= plan.cost.gdp()
    assert plan.local_cost.adjacency == "replace-one"


@pytest.mark.parametrize(("epochs", "batch"), [(3, 1), (5, 4)])
def test_it_is_pnsgd_on_the_records_repeated(epochs, batch):
    rng = np.random.default_rng(4)
    table, labels = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    facts, longer = facts_of(records=40), facts_of(records=40 * epochs)
    plan = MultiEpochPNSGD(epochs=epochs, batch=batch).plan(facts, Goal(mu=0.5, adjacency="replace-one"))
    same = PNSGDPlan(longer, plan.radius, batch, plan.step, plan.sigma)
    repeated = Problem.of(longer, np.tile(table, (epochs, 1)), np.tile(labels, epochs))
    found = plan.run(Problem.of(facts, table, labels), generator=SeededGenerator(1))
    assert found.weights.tolist() == same.run(repeated, generator=SeededGenerator(1)).weights.tolist()


def test_many_short_passes_cross_blocks_of_noise_where_they_should(monkeypatch):
    monkeypatch.setattr("discreet.learning.convex.hidden._DRAWS", 3 * 7)  # seven steps a block, batches of ten
    test_it_is_pnsgd_on_the_records_repeated(5, 4)


@pytest.mark.parametrize(("batches", "epochs"), [(1, 100), (4, 60), (1, 400)])
def test_the_measured_excess_stays_below_the_theorem_in_the_worst_order(batches, epochs):
    rng = np.random.default_rng(2)
    n, d, radius = 4000, 3, 2.0
    table = rng.standard_normal((n, d))
    table /= np.linalg.norm(table, axis=1)[:, None]
    order = np.argsort(table[:, 0])  # an order that is as bad as can be
    table = table[order]
    labels = (table[:, 0] > 0).astype(float)
    facts = facts_of(records=n)
    solver = MultiEpochPNSGD(epochs=epochs, batch=n // batches, radius=radius)
    goal = Goal(epsilon=2.0, delta=1e-5, adjacency="replace-one")
    problem = Problem.of(facts, table, labels)
    best = problem.objective(np.array([radius, 0.0, 0.0])) / n  # the farther along the first axis the better
    bound = solver.utility_bound(n=n, d=d, epsilon=2.0, delta=1e-5, radius=radius, smoothness=0.25)

    def excess(plan, runs):
        return np.array([problem.objective(plan.run(problem).weights) / n for _ in range(runs)]) - best

    found = excess(solver.plan(facts, goal), 15)
    assert found.mean() + 6 * found.std() / np.sqrt(15) < bound  # six standard errors
    # steps that are far too small get nowhere, and the measurement would show it
    if batches == 1:
        assert bound < 1.0
        lost = excess(replace(solver, step=1e-6).plan(facts, goal), 2)
        assert lost.mean() > found.mean() + 0.1


def test_one_pass_worth_of_error_is_what_batches_cost_and_one_batch_has_none():
    solver = MultiEpochPNSGD(epochs=9)
    fixed = {"radius": 2.0, "lipschitz": 1.5, "noise": 0.5}
    # one batch: the bound of PNSGD for as many steps
    alone = solver.bound(step=0.1, batches=1, **fixed)
    assert alone == pytest.approx(PNSGD().bound(step=0.1, steps=9, radius=2.0, size=np.hypot(1.5, 0.5)), rel=1e-12)
    # two: a pass is a step of twice the size whose second half starts 0.1 (L + s) too far away
    square = 2 * (1.5**2 + 0.5**2) + 2 * 1.5 * (1.5 + 0.5)
    both = PNSGD().bound(step=0.2, steps=9, radius=2.0, size=np.sqrt(square) / 2)
    assert solver.bound(step=0.1, batches=2, **fixed) == pytest.approx(both, rel=1e-12)
    assert MultiEpochPNSGD().utility_bound(n=10**5, d=10, epsilon=1.0, delta=1e-6) == 2.0  # says nothing, and no more


def test_no_passes_are_refused():
    with pytest.raises(InvalidArgument, match="epochs"):
        MultiEpochPNSGD(epochs=0)
