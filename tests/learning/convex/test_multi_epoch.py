"""Several passes in the same order: the closed form of their cost, and PNSGD on the records repeated."""

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.learning import Facts, Goal, Logistic, Problem
from discreet.learning.convex import MultiEpochPNSGD
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


def test_no_theorem_bounds_its_excess_risk_and_it_says_so():
    with pytest.raises(InvalidArgument, match="no theorem"):
        MultiEpochPNSGD().utility_bound(n=100, d=2, epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidArgument, match="epochs"):
        MultiEpochPNSGD(epochs=0)
