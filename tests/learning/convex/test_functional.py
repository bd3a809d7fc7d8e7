"""The functional mechanism: a noisy quadratic problem that always has a minimum, at the cost it states."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet import InvalidArgument
from discreet.audit import check
from discreet.learning import Facts, Goal, Logistic, Poisson, Problem, SmoothedHinge, Softmax, Squared
from discreet.learning.convex import FunctionalMechanism

LOSSES = [Logistic(), Squared(1.0), Poisson(most=4.0, ceiling=2.0)]
GOAL = Goal(epsilon=1.0, delta=1e-6)


def named(loss):
    return loss.name


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("goal", [GOAL, Goal(epsilon=1.0)], ids=["approximate", "pure"])
def test_the_plan_meets_the_goal_and_spends_it(loss, goal):
    plan = FunctionalMechanism().plan(Facts(loss=loss, features=5, row_norm=1.0), goal)
    assert goal.met_by(plan.cost)
    assert plan.cost.epsilon(goal.delta) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_the_expansion_bounds_the_slopes_of_all_targets_and_is_their_curvature(loss):
    targets = loss.checked(np.linspace(-50, 50, 2001))
    expansion = loss.expansion()
    zero = np.zeros(len(targets))
    slopes = np.abs(loss.slopes(zero, targets))
    assert slopes.max() <= expansion.slope
    assert slopes.max() >= 0.999 * expansion.slope
    assert np.allclose(loss.curvatures(zero, targets), expansion.curvature)
    step = 1e-3
    second = (
        loss.values(zero + step, targets) - 2 * loss.values(zero, targets) + loss.values(zero - step, targets)
    ) / step**2
    assert np.allclose(second, expansion.curvature, rtol=1e-3)


@pytest.mark.parametrize("loss", [SmoothedHinge(), Poisson(most=4.0, ceiling=-1.0)], ids=named)
def test_a_loss_without_an_expansion_is_refused(loss):
    with pytest.raises(InvalidArgument, match="quadratic expansion"):
        FunctionalMechanism().plan(Facts(loss=loss, features=2, row_norm=1.0), GOAL)


def test_several_margins_and_mixed_adjacencies_are_refused():
    with pytest.raises(InvalidArgument, match="one margin"):
        FunctionalMechanism().plan(Facts(loss=Softmax(outputs=3), features=2, row_norm=1.0), GOAL)
    with pytest.raises(InvalidArgument, match="adjacency"):
        FunctionalMechanism().plan(Facts(loss=Logistic(), features=2, row_norm=1.0, adjacency="replace-one"), GOAL)
    with pytest.raises(InvalidArgument, match="ridge"):
        FunctionalMechanism(ridge=0.0)


@given(arrays(np.float64, (4, 4), elements=st.floats(-1e6, 1e6)))
def test_whatever_the_noise_the_problem_is_positive_definite(noise):
    plan = FunctionalMechanism().plan(Facts(loss=Logistic(), features=4, row_norm=1.0, alpha=0.5), GOAL)
    repaired = plan.repaired(noise + noise.T)
    least = np.linalg.eigvalsh(repaired)[0]
    assert least >= (plan.ridge + 0.5) * (1 - 1e-9) - 1e-8 * np.abs(noise).max()


def test_weights_are_bounded_even_when_there_is_only_noise():
    facts = Facts(loss=Logistic(), features=6, row_norm=1.0)
    plan = FunctionalMechanism().plan(facts, Goal(epsilon=0.01))
    problem = Problem.of(facts, np.zeros((1, 6)), np.zeros(1))
    for _ in range(20):
        assert np.linalg.norm(plan.run(problem).weights) < 100


@pytest.mark.parametrize("goal", [GOAL, Goal(epsilon=1.0)], ids=["approximate", "pure"])
def test_it_finds_a_planted_direction(goal):
    rng = np.random.default_rng(6)
    truth = np.array([2.0, -1.0, 0.5])
    table = rng.uniform(-1, 1, (60_000, 3)) / np.sqrt(3)
    labels = rng.random(60_000) < 1 / (1 + np.exp(-table @ truth))
    facts = Facts(loss=Logistic(), features=3, row_norm=1.0)
    weights = FunctionalMechanism().plan(facts, goal).run(Problem.of(facts, table, labels)).weights
    assert weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth) > 0.97
    assert 0.7 < np.linalg.norm(weights) / np.linalg.norm(truth) < 1.1


def test_with_little_noise_squares_are_solved_exactly():
    rng = np.random.default_rng(7)
    table, truth = rng.uniform(-0.5, 0.5, (3000, 3)), np.array([0.3, -0.2, 0.1])
    facts = Facts(loss=Squared(1.0), features=3, row_norm=1.0)
    plan = FunctionalMechanism().plan(facts, Goal(mu=300.0))
    weights = plan.run(Problem.of(facts, table, table @ truth)).weights
    assert np.abs(weights - truth).max() < 1e-3


def test_an_audit_finds_nothing_and_would_find_a_quarter_of_the_noise():
    goal, facts = Goal(epsilon=3.0), Facts(loss=Logistic(), features=1, row_norm=1.0)

    def plan_and_release(goal):
        plan = FunctionalMechanism().plan(facts, goal)

        def release(problem):
            slopes = facts.loss.slopes(np.zeros(len(problem)), problem.targets)
            matrix = plan.matrix.release(problem.rows)[0, 0]
            return float(
                matrix / plan.matrix.deviations[0]
                + plan.vector.release(problem.rows, slopes)[0] / plan.vector.deviation
            )

        return plan, release

    inputs = (
        Problem.of(facts, np.array([[0.2]]), np.array([0])),
        Problem.of(facts, np.array([[0.2], [1.0]]), np.array([0, 0])),
    )
    plan, release = plan_and_release(goal)
    assert check(release=release, cost=plan.cost, inputs=inputs, draws=600, bad_values=[None]).passed
    _, too_little = plan_and_release(Goal(epsilon=12.0))
    assert not check(release=too_little, cost=plan.cost, inputs=inputs, draws=600, bad_values=[None]).passed


def test_the_measured_excess_stays_below_the_theorem_and_that_of_far_more_noise_does_not():
    rng = np.random.default_rng(6)
    n, d, runs = 100_000, 5, 20
    table = rng.standard_normal((n, d))
    table /= np.linalg.norm(table, axis=1)[:, None]
    targets = np.clip(table @ [0.5, -0.4, 0.4, -0.3, 0.5] + 0.1 * rng.standard_normal(n), -1, 1)
    best = np.linalg.lstsq(table, targets, rcond=None)[0]
    facts = Facts(loss=Squared(1.0), features=d, row_norm=1.0, adjacency="replace-one")
    problem = Problem.of(facts, table, targets)

    def excess(epsilon):
        plan = FunctionalMechanism().plan(facts, Goal(epsilon=epsilon, delta=1e-6, adjacency="replace-one"))
        return np.array([np.mean((table @ (plan.run(problem).weights - best)) ** 2) / 2 for _ in range(runs)])

    size = float(np.linalg.norm(best))
    bound = FunctionalMechanism().utility_bound(n=n, d=d, epsilon=1.0, delta=1e-6, radius=size)
    found = excess(1.0)
    assert found.mean() + 6 * found.std() / np.sqrt(runs) < bound
    assert bound < np.mean((table @ best) ** 2) / 2  # better than no weights at all
    assert excess(0.001).mean() > bound


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), ridge=st.floats(0.05, 20.0), noise=st.floats(0.0, 20.0))
def test_whatever_the_noise_the_excess_is_within_the_inequality_of_the_proof(seed, ridge, noise):
    rng = np.random.default_rng(seed)
    d = 4
    half = rng.standard_normal((d, d)) * rng.lognormal(0, 2, d)
    matrix, best = half @ half.T, rng.standard_normal(d)
    shaken = noise * rng.standard_normal((d, d))
    shaken, pushed = (shaken + shaken.T) / 2, noise * rng.standard_normal(d)
    plan = FunctionalMechanism().plan(Facts(loss=Squared(1.0), features=d, row_norm=1.0), GOAL)
    plan = replace(plan, relative_ridge=plan.relative_ridge * ridge / plan.ridge)
    found = np.linalg.solve(plan.repaired(matrix + shaken), matrix @ best + pushed)
    excess = (found - best) @ matrix @ (found - best) / 2
    v, r = np.abs(np.linalg.eigvalsh(shaken)).max(), np.linalg.norm(best)
    xi = 2 * v * r + np.linalg.norm(pushed)
    curved = (np.sqrt(ridge) * r + xi / np.sqrt(ridge)) ** 2 / 4
    assert excess <= (curved + v * (r + xi / ridge) ** 2) / 2 * (1 + 1e-6) + 1e-9
    # without the noise's part it would not hold
    if noise == 0:
        assert excess <= ridge * r**2 / 8 * (1 + 1e-6)
