"""Least squares from noisy sums: near the exact solution, bounded whatever the noise, and of the cost it states."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet import InvalidArgument
from discreet.audit import check
from discreet.learning import Facts, Goal, Huber, Logistic, Problem, Squared
from discreet.learning.convex import SufficientStatistics
from discreet.learning.convex.statistics import StatisticsPlan, adaptive_ridge, centred

GOAL = Goal(epsilon=1.0, delta=1e-6)


def planted(n, d, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.uniform(-1, 1, (n, d)) / np.sqrt(d)
    truth = rng.standard_normal(d) / 2
    return table, np.clip(table @ truth + 0.05 * rng.standard_normal(n), -1, 1), truth


@pytest.mark.parametrize("goal", [GOAL, Goal(epsilon=1.0), Goal(mu=0.3)], ids=["approximate", "pure", "mu"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_plan_meets_the_goal_and_spends_it_before_any_data_is_seen(goal, adjacency):
    goal = Goal(epsilon=goal.epsilon, delta=goal.delta, mu=goal.mu, adjacency=adjacency)
    facts = Facts(loss=Squared(1.0), features=5, row_norm=1.0, adjacency=adjacency)
    plan = SufficientStatistics().plan(facts, goal)
    assert goal.met_by(plan.cost)
    assert plan.cost.adjacency == adjacency
    if goal.epsilon is not None:
        assert plan.cost.epsilon(goal.delta) == pytest.approx(goal.epsilon, rel=1e-6)
    else:
        assert plan.cost.zcdp() == pytest.approx(0.3**2 / 2, rel=1e-6)


@pytest.mark.parametrize("goal", [GOAL, Goal(epsilon=1.0)], ids=["approximate", "pure"])
def test_it_finds_planted_weights(goal):
    table, targets, truth = planted(40_000, 4)
    facts = Facts(loss=Squared(1.0), features=4, row_norm=1.0)
    weights = SufficientStatistics().plan(facts, goal).run(Problem.of(facts, table, targets)).weights
    assert np.abs(weights - truth).max() < 0.15


def test_with_little_noise_it_is_least_squares():
    table, targets, _ = planted(2000, 3)
    facts = Facts(loss=Squared(1.0), features=3, row_norm=1.0)
    plan = SufficientStatistics().plan(facts, Goal(mu=300.0))
    weights = plan.run(Problem.of(facts, table, targets)).weights
    assert np.abs(weights - np.linalg.lstsq(table, targets)[0]).max() < 1e-3


def test_alpha_is_the_ridge_penalty_and_leaves_the_intercept_alone():
    table, targets, _ = planted(2000, 3)
    table = np.column_stack([table, np.ones(2000)])
    targets = targets + 0.5
    facts = Facts(loss=Squared(2.0), features=4, row_norm=1.5, alpha=100.0)
    plan = SufficientStatistics(intercept=True).plan(facts, Goal(mu=300.0))
    weights = plan.run(Problem.of(facts, table, targets)).weights
    penalty = np.diag([100.0, 100.0, 100.0, 0.0])
    assert np.abs(weights - np.linalg.solve(table.T @ table + penalty, table.T @ targets)).max() < 5e-3


@pytest.mark.parametrize("intercept", [False, True])
def test_weights_are_bounded_even_without_records(intercept):
    facts = Facts(loss=Squared(1.0), features=3, row_norm=1.0)
    plan = SufficientStatistics(intercept=intercept).plan(facts, Goal(epsilon=0.01, delta=1e-9))
    for _ in range(20):
        weights = plan.run(Problem.of(facts, np.zeros((1, 3)), np.zeros(1))).weights
        assert np.isfinite(weights).all()
        assert np.linalg.norm(weights) < 20


@given(
    arrays(np.float64, (3, 3), elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)),
    st.floats(1e-3, 1e3),
    st.floats(0, 1e3),
)
def test_no_matrix_lets_the_weights_run_away(noise, vector, level, alpha):
    weights = adaptive_ridge(noise + noise.T, vector, level=level, alpha=alpha)
    assert np.linalg.norm(weights) <= np.linalg.norm(vector) / (2 * level) * (1 + 1e-9)


def test_centring_gives_deviations_from_the_means():
    rng = np.random.default_rng(4)
    table, targets = rng.standard_normal((50, 2)) + 3, rng.standard_normal(50) - 1
    full = np.column_stack([table, np.full(50, 0.5)])
    inner, products, means, target = centred(full.T @ full, full.T @ targets, least=1e-9)
    assert np.allclose(inner, 50 * np.cov(table.T, bias=True))
    assert np.allclose(products, (table - table.mean(0)).T @ (targets - targets.mean()))
    assert np.allclose(means * 0.5, table.mean(0))
    assert np.isclose(target * 0.5, targets.mean())


def _released(goal):
    """One weight, and the intercept, of few records: what somebody who knows all but one of them would look at."""
    facts = Facts(loss=Squared(1.0), features=1, row_norm=1.0)
    plan = SufficientStatistics().plan(facts, goal)

    def release(problem):
        matrix = plan.matrix.release(problem.rows)[0, 0]
        vector = plan.vector.release(problem.rows, problem.targets)[0]
        return float(matrix / plan.matrix.deviations[0] ** 2 + vector / plan.vector.deviation**2)

    with_one = Problem.of(facts, np.array([[0.2], [1.0]]), np.array([0.1, 1.0]))
    without = Problem.of(facts, np.array([[0.2]]), np.array([0.1]))
    return plan, release, (without, with_one)


def test_an_audit_finds_nothing_and_would_find_a_third_of_the_noise():
    goal = Goal(epsilon=4.0, delta=1e-5)
    plan, release, inputs = _released(goal)
    assert check(release=release, cost=plan.cost, inputs=inputs, draws=600, bad_values=[None]).passed
    _, too_little, _ = _released(Goal(mu=3 * goal.gaussian))
    assert not check(release=too_little, cost=plan.cost, inputs=inputs, draws=600, bad_values=[None]).passed


def test_what_it_is_not_for_is_refused():
    solver = SufficientStatistics()
    with pytest.raises(InvalidArgument, match="Squared alone"):
        solver.plan(Facts(loss=Logistic(), features=2, row_norm=1.0), GOAL)
    with pytest.raises(InvalidArgument, match="Squared alone"):
        solver.plan(Facts(loss=Huber(1.0), features=2, row_norm=1.0), GOAL)
    with pytest.raises(InvalidArgument, match="adjacency"):
        solver.plan(Facts(loss=Squared(1.0), features=2, row_norm=1.0, adjacency="replace-one"), GOAL)
    with pytest.raises(InvalidArgument, match="share"):
        SufficientStatistics(share=1.5)
    with pytest.raises(InvalidArgument, match="another column"):
        SufficientStatistics(intercept=True).plan(Facts(loss=Squared(1.0), features=1, row_norm=1.0), GOAL)


def test_a_solver_that_needs_bounded_slopes_refuses_squares():
    with pytest.raises(InvalidArgument, match="no bounded slope"):
        _ = Facts(loss=Squared(1.0), features=2, row_norm=1.0).lipschitz


def test_a_plan_refuses_a_problem_of_other_facts():
    facts = Facts(loss=Squared(1.0), features=2, row_norm=1.0)
    plan = SufficientStatistics().plan(facts, GOAL)
    other = Facts(loss=Squared(2.0), features=2, row_norm=1.0)
    with pytest.raises(InvalidArgument, match="made for"):
        plan.run(Problem.of(other, np.zeros((3, 2)), np.zeros(3)))


def test_targets_beyond_their_bound_count_as_the_bound():
    facts = Facts(loss=Squared(1.0), features=1, row_norm=1.0)
    plan = SufficientStatistics().plan(facts, Goal(mu=300.0))
    assert isinstance(plan, StatisticsPlan)
    weights = plan.run(Problem.of(facts, np.ones((100, 1)), np.full(100, 1e9))).weights
    assert weights[0] == pytest.approx(1.0, abs=1e-3)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), level=st.floats(0.05, 20.0), noise=st.floats(0.0, 20.0))
def test_whatever_the_noise_the_excess_is_within_the_inequality_of_the_proof(seed, level, noise):
    rng = np.random.default_rng(seed)
    d = 4
    half = rng.standard_normal((d, d)) * rng.lognormal(0, 2, d)
    matrix, best = half @ half.T, rng.standard_normal(d)
    shaken = noise * rng.standard_normal((d, d))
    shaken, pushed = (shaken + shaken.T) / 2, noise * rng.standard_normal(d)
    found = adaptive_ridge(matrix + shaken, matrix @ best + pushed, level=level)
    excess = (found - best) @ matrix @ (found - best) / 2
    v, r = np.abs(np.linalg.eigvalsh(shaken)).max(), np.linalg.norm(best)
    xi = 2 * v * r + np.linalg.norm(pushed)
    curved = 9 / (16 * np.sqrt(3)) * (np.sqrt(level) * r + xi / np.sqrt(level)) ** 2
    assert excess <= (curved + v * (r + xi / (2 * level)) ** 2) / 2 * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("least", [1.0, 0.01])
def test_the_measured_excess_stays_below_the_theorem_and_that_of_far_more_noise_does_not(least):
    rng = np.random.default_rng(6)
    n, d, runs = 40_000, 5, 20
    table = rng.standard_normal((n, d)) * np.geomspace(1.0, least, d)
    table /= np.maximum(1.0, np.linalg.norm(table, axis=1))[:, None]
    targets = np.clip(table @ [0.5, -0.4, 0.4, -0.3, 0.5] + 0.1 * rng.standard_normal(n), -1, 1)
    best = np.linalg.lstsq(table, targets, rcond=None)[0]
    facts = Facts(loss=Squared(1.0), features=d, row_norm=1.0, adjacency="replace-one")
    problem = Problem.of(facts, table, targets)

    def excess(epsilon):
        plan = SufficientStatistics().plan(facts, Goal(epsilon=epsilon, delta=1e-6, adjacency="replace-one"))
        return np.array([np.mean((table @ (plan.run(problem).weights - best)) ** 2) / 2 for _ in range(runs)])

    size = float(np.linalg.norm(best))
    bound = SufficientStatistics().utility_bound(n=n, d=d, epsilon=1.0, delta=1e-6, radius=size)
    found = excess(1.0)
    assert found.mean() + 6 * found.std() / np.sqrt(runs) < bound
    assert bound < np.mean((table @ best) ** 2) / 2  # better than no weights at all
    assert excess(0.001).mean() > bound


def test_the_bound_falls_with_records_and_epsilon_and_grows_as_the_root_of_the_dimension():
    def bound(**changes):
        return SufficientStatistics().utility_bound(**{"n": 10**6, "d": 100, "epsilon": 0.5, "delta": 1e-6, **changes})

    assert bound(n=10**7) == pytest.approx(bound() / 10)
    assert bound(d=400) == pytest.approx(2 * bound(), rel=0.15)
    assert bound(epsilon=1.0) == pytest.approx(bound() / 2, rel=0.05)
    # in other units of rows and weights the same
    assert bound(smoothness=16.0, lipschitz=4.0, radius=0.25) == pytest.approx(bound(), rel=1e-6)
    with pytest.raises(InvalidArgument, match="intercept"):
        SufficientStatistics(intercept=True).utility_bound(n=10, d=2, epsilon=1.0, delta=1e-6)


def test_moments_of_the_noise_are_bounded_and_not_by_much():
    facts = Facts(loss=Squared(1.0), features=30, row_norm=1.0)
    plan = SufficientStatistics().plan(facts, GOAL)
    none = Problem.of(facts, np.zeros((1, 30)), np.zeros(1))
    noise = [plan.matrix.release(none.rows) for _ in range(300)]
    sizes = np.array([np.abs(np.linalg.eigvalsh(matrix)).max() for matrix in noise])
    (first, second, third), (e1, e2) = plan.noise_moments
    for power, bound in ((1, first), (2, second), (3, third)):
        found = sizes**power
        assert found.mean() + 6 * found.std() / np.sqrt(300) < bound < 1.6**power * found.mean()
    vectors = np.array([plan.vector.release(none.rows, np.zeros(1)) for _ in range(300)])
    squares = np.sum(vectors**2, axis=1)
    assert squares.mean() - 6 * squares.std() / np.sqrt(300) < e2 < squares.mean() + 6 * squares.std() / np.sqrt(300)
    assert np.sqrt(squares).mean() < e1 * 1.05
