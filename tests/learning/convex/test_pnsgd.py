"""PNSGD: it costs what the theorem says, for everyone; the computed process is the analysed one; and it learns."""

import math
from decimal import Decimal, localcontext

import flint
import numpy as np
import pytest

from discreet import Cost, InvalidArgument
from discreet.accounting.iteration.process import Process
from discreet.audit import check
from discreet.learning import (
    Facts,
    GaussianHinge,
    Goal,
    Huber,
    Logistic,
    Poisson,
    Problem,
    SmoothedHinge,
    Softmax,
    Squared,
)
from discreet.learning.convex import PNSGD, kernel
from discreet.learning.convex.iterate_lattice import IterateLattice
from discreet.noise.testing import SeededGenerator

ALPHA_Z = 6.2  # two-sided error below 1e-9
GOAL = Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one")


def facts_of(loss=None, *, features=5, records=1000, **more):
    values = {"row_norm": 1.0, "adjacency": "replace-one", **more}
    return Facts(loss=loss or Logistic(), features=features, records=records, **values)


# ------------------------------------------------------------------------ cost


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("batch", "public"), [(1, 0), (1, 60), (7, 0), (7, 60), (None, 10)])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_the_worst_record_meets_the_goal_and_spends_it_all(adjacency, batch, public, alpha):
    goal = Goal(epsilon=1.0, delta=1e-6, adjacency=adjacency)
    plan = PNSGD(batch=batch, public=public, zeroed=True).plan(facts_of(adjacency=adjacency, alpha=alpha), goal)
    assert goal.met_by(plan.cost)
    assert plan.cost.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
    everyone = plan.personal_costs
    assert len(everyone) == 1000 - public
    assert everyone.epsilon(1e-6).max() == pytest.approx(1.0, rel=1e-5)
    assert (np.diff(everyone.mu) >= 0).all()  # early records get more privacy


@pytest.mark.parametrize(("batch", "public"), [(1, 0), (1, 300), (6, 0), (6, 60)])
@pytest.mark.parametrize(("adjacency", "changes"), [("replace-one", 2), ("add-remove", 1)])
def test_everybodys_mu_is_the_closed_form_and_never_below(batch, public, adjacency, changes):
    # Theorem 23: mu_t = Delta / (b sigma sqrt(steps from the record's own on))
    goal = Goal(mu=0.5, adjacency=adjacency)
    facts = facts_of(Huber(1.5), row_norm=2.0, adjacency=adjacency)
    plan = PNSGD(batch=batch, public=public, zeroed=True).plan(facts, goal)
    place = np.arange(1000 - public) // batch
    later = -(-(1000 - public) // batch) - place + -(-public // batch)
    exact = changes * 3.0 / (batch * plan.sigma * np.sqrt(later))
    assert (plan.personal_costs.mu >= exact).all()
    assert plan.personal_costs.mu == pytest.approx(exact, rel=1e-5)
    for position in (1, 500, 1000 - public):
        cost = plan.personal_costs.for_person(position)
        assert cost.gdp() >= exact[position - 1]
        assert cost.gdp() == pytest.approx(exact[position - 1], rel=1e-5)
        assert cost.adjacency == adjacency


def test_rounding_changes_the_promised_epsilon_by_less_than_a_millionth():
    for features, records in ((5, 1000), (100, 10**6), (1000, 10**5)):
        plan = PNSGD().plan(facts_of(features=features, records=records), GOAL)
        assert 0 < plan.rounding / plan.cost.gdp() ** 2 < 1e-6


@pytest.mark.parametrize("place", [1, 40, 100])
@pytest.mark.parametrize("alpha", [0.0, 20.0])
def test_the_lemma_bounds_the_process_with_a_push_in_every_step(place, alpha):
    plan = PNSGD(radius=1e6).plan(facts_of(records=100, alpha=alpha), Goal(mu=0.3, adjacency="replace-one"))
    factor = 1 - plan.step * plan.convexity
    u, s = plan.slack * 1e4, plan.push  # rounding that can be seen
    object.__setattr__(plan, "slack", u)
    pushes = tuple((n, value) for n, value in ((place - 1, u), (1, s + u), (100 - place, u)) if n)
    exact = Process("all", ((100, factor),), ((100, plan.deviation),), pushes)
    ours = plan.personal_costs
    assert exact.mu <= ours.mu[place - 1] * (1 + 1e-9)
    assert exact.mu <= ours.for_person(place).gdp() * (1 + 1e-9)
    without = Process("alone", ((100, factor),), ((100, plan.deviation),), tuple((n, v - u) for n, v in pushes if n))
    assert ours.mu[place - 1] > without.mu * (1 + 1e-12)
    if alpha == 0:
        assert ours.mu[place - 1] == pytest.approx(exact.mu, rel=1e-9)


def test_a_strong_penalty_does_not_let_rounding_vanish_from_early_costs():
    plan = PNSGD(step=1.0).plan(facts_of(records=4000, alpha=2000.0), GOAL)
    floor = math.sqrt(plan.rounding)
    assert plan.personal_costs.mu.min() >= floor
    assert plan.personal_costs.for_person(1).gdp() >= floor


# ----------------------------------------------------- the process is the analysed one


def exact_step(facts, plan, state, rows, targets, pull_digits=60):
    """Pi(v) - eta (mean gradient + kappa Pi(v)) in high precision, in steps of the iterate."""
    with localcontext() as context:
        context.prec = pull_digits
        rho, row_step = Decimal(2) ** plan.lattice.exponent, Decimal(2) ** facts.lattice.exponent
        v = [Decimal(int(value)) * rho for value in state]
        norm = sum(x * x for x in v).sqrt()
        radius = Decimal(plan.radius)
        if norm > radius:
            v = [x * radius / norm for x in v]
        total = [Decimal(plan.convexity) * x for x in v]
        for row, target in zip(rows, targets, strict=True):
            x = [Decimal(int(value)) * row_step for value in row]
            margin = sum(a * b for a, b in zip(x, v, strict=True))
            slope = exact_slope(facts.loss, margin, Decimal(float(target)))
            total = [t + slope * a / plan.batch for t, a in zip(total, x, strict=True)]
        return [(a - Decimal(plan.step) * t) / rho for a, t in zip(v, total, strict=True)]


def exact_slope(loss, margin, target):
    match loss:
        case Logistic():
            return 1 / (1 + (-margin).exp()) - (1 if target > 0 else 0)
        case Huber():
            return max(min(margin - target, Decimal(loss.limit)), -Decimal(loss.limit))
        case Poisson():
            return min(margin, Decimal(loss.ceiling)).exp() - target
        case SmoothedHinge():
            sign, width = (1 if target > 0 else -1), Decimal(loss.width)
            return -sign * max(min((1 + width / 2 - sign * margin) / width, Decimal(1)), Decimal(0))
        case GaussianHinge():
            sign = 1 if target > 0 else -1
            flint.ctx.prec = 260
            score = flint.arb(str((sign * margin - 1) / Decimal(loss.width) / Decimal(2).sqrt()))
            return -sign * Decimal(score.erfc().str(60, radius=False)) / 2
    raise AssertionError


LOSSES = [
    Logistic(),
    Huber(0.7),
    Poisson(4.0, 1.5),
    SmoothedHinge(0.2),
    SmoothedHinge(1e-4),
    GaussianHinge(0.3),
    GaussianHinge(1e-3),
]


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_computed_step_is_within_half_the_slack_of_the_real_one(loss, way):
    rng = np.random.default_rng(5)
    worst = 0.0
    for batch, alpha, radius in ((1, 0.0, 3.0), (4, 50.0, 3.0), (3, 10.0, 300.0)):
        facts = facts_of(loss, features=6, records=400, alpha=alpha, row_norm=2.0)
        smooth = facts.smoothness + alpha / 400
        plan = PNSGD(batch=batch, radius=radius, step=2 / smooth * 0.999).plan(facts, GOAL)
        advance = getattr(kernel, way)(loss, plan.constants)
        if advance is None:
            pytest.skip("numba is not installed")
        allowed = plan.slack / 2 / plan.lattice.step - math.sqrt(facts.dimension) / 2
        assert allowed > 0
        for _ in range(12):
            table = rng.standard_normal((batch, 6)) * rng.choice([0.1, 1, 10])
            targets = rng.standard_normal(batch) * 3
            problem = Problem.of(facts, table, targets)
            size = rng.choice([0.01, 0.999, 1.0, 1.5, 40]) * plan.radius / plan.lattice.step
            direction = rng.standard_normal(6)
            state = np.rint(direction / np.linalg.norm(direction) * size).astype(np.int64)
            expected = exact_step(facts, plan, state, problem.rows.steps, problem.targets)
            advance(
                state,
                problem.rows.steps,
                problem.targets,
                np.array([0, batch]),
                np.zeros((1, 6), dtype=np.int64),
            )
            error = math.sqrt(sum(float(Decimal(int(a)) - b) ** 2 for a, b in zip(state, expected, strict=True)))
            assert error <= allowed
            worst = max(worst, error / allowed)
    assert worst > 0.01  # the bound is no dead letter


def test_slopes_of_many_classes_are_as_exact_as_the_slack_assumes():
    rng, classes = np.random.default_rng(9), 60
    for size in (0.1, 3, 30):
        margins = rng.standard_normal((1, classes)) * size
        found = Softmax(outputs=classes).slopes(margins, np.array([7]))[0]
        with localcontext() as context:
            context.prec = 50
            powers = [Decimal(float(m)).exp() for m in margins[0]]
            exact = [power / sum(powers) - (k == 7) for k, power in enumerate(powers)]
            error = sum((Decimal(float(a)) - b) ** 2 for a, b in zip(found, exact, strict=True)).sqrt()
        assert error <= math.sqrt(2) * (2**-45 + classes * 2**-53)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_compiled_loop_takes_the_steps_of_numpy(loss):
    rng = np.random.default_rng(6)
    facts = facts_of(loss, records=60, alpha=2.0)
    plan = PNSGD(batch=4, step=0.5 / facts.smoothness, radius=2.0).plan(facts, GOAL)
    if kernel.compiled(loss, plan.constants) is None:
        pytest.skip("numba is not installed")
    problem = Problem.of(facts, rng.standard_normal((60, 5)), rng.standard_normal(60))
    states = []
    for way in (kernel.compiled, kernel.interpreted):
        state, noise = np.zeros(5, dtype=np.int64), np.random.default_rng(7).integers(-(2**38), 2**38, (15, 5))
        way(loss, plan.constants)(state, problem.rows.steps, problem.targets, plan._starts, noise)
        states.append(state)
    assert np.abs(states[0] - states[1]).max() <= 15 * plan.slack / plan.lattice.step
    assert np.abs(states[0]).max() > 2**36


def test_values_that_are_no_numbers_move_nothing():
    loss = Huber(1.0)
    facts = facts_of(loss, features=2, records=4)
    plan = PNSGD().plan(facts, GOAL)
    rows = facts.lattice.place(np.ones((4, 2)))
    problem = Problem(facts, rows, np.array([np.nan, np.inf, -np.inf, 1e308]))  # `Problem.of` refuses NaN
    for way in (kernel.interpreted, kernel.compiled):
        if way(loss, plan.constants) is None:
            continue
        state = np.zeros(2, dtype=np.int64)
        noise = np.zeros((4, 2), dtype=np.int64)
        way(loss, plan.constants)(state, problem.rows.steps, problem.targets, plan._starts, noise)
        assert np.abs(state * plan.lattice.step).max() <= 2 * plan.push


@pytest.mark.parametrize("way", [kernel.interpreted, kernel.compiled])
def test_a_row_that_is_no_row_counts_as_zero(way):
    rng = np.random.default_rng(8)
    facts = facts_of(records=6)
    plan = PNSGD(batch=3).plan(facts, GOAL)
    advance = way(Logistic(), plan.constants)
    if advance is None:
        pytest.skip("numba is not installed")
    rows, noise = np.rint(rng.standard_normal((6, 5)) * 2**19), rng.integers(-(2**35), 2**35, (2, 5))
    states = []
    for bad in (0.0, np.nan, np.inf, -np.inf):
        broken, state = rows.copy(), np.zeros(5, dtype=np.int64)
        broken[1] = 0.0
        broken[1, 2] = broken[4, 0] = bad
        if bad == 0:
            broken[4] = 0.0
        advance(state, broken, np.ones(6), plan._starts, noise)
        states.append(state.tolist())
    assert all(state == states[0] for state in states)


def test_the_lattice_keeps_whole_numbers_exact_and_noise_within_reach():
    for radius, deviation, move in ((5.0, 1e-4, 1e-5), (1e-9, 1e3, 1e-9), (1.0, 1e-30, 7.0), (3.0, 3.0, 3.0)):
        step = IterateLattice.of(radius=radius, deviation=deviation, move=move).step
        assert radius / step <= 2**52
        assert move / step <= 2**52
        assert deviation / step <= 1e12
        assert max(radius / 2**52, move / 2**52, deviation / 1e12) > step / 2.001


# ------------------------------------------------- exact Gaussian check on quadratic losses


def releases(plan, table, targets, runs):
    problem = Problem.of(plan.facts, table, targets)
    return np.array([plan.run(problem).weights[0] for _ in range(runs)])


@pytest.mark.parametrize(("position", "public"), [(1, 0), (5, 4)])
def test_on_quadratic_losses_the_last_iterate_has_its_exact_gaussian_law_and_no_more_than_its_mu(position, public):
    # rows of 1, residuals within the limit: w <- (1 - eta) w + eta y + noise, all Gaussian
    n, runs, limit = 9, 1200, 10.0
    facts = facts_of(Huber(limit), features=1, records=n)
    plan = PNSGD(step=0.01, radius=5.0, public=public).plan(facts, Goal(mu=3.0, adjacency="replace-one"))
    table, targets = np.ones((n, 1)), np.zeros(n)
    ours, theirs = targets.copy(), targets.copy()
    ours[position - 1], theirs[position - 1] = 9.0, -9.0
    first, second = releases(plan, table, ours, runs), releases(plan, table, theirs, runs)
    c, k = 1 - plan.step, n - position
    gap = 18.0 * plan.step * c**k
    variance = plan.deviation**2 * (1 - c ** (2 * n)) / (1 - c**2)
    error = math.sqrt(2 * variance / runs)
    found = first.mean() - second.mean()
    assert abs(found - gap) < ALPHA_Z * error
    assert abs(found - 2.5 * gap) > ALPHA_Z * error
    spread = (first.var(ddof=1) + second.var(ddof=1)) / 2
    assert abs(spread / variance - 1) < ALPHA_Z * math.sqrt(1 / (runs - 1))
    claimed = plan.personal_costs.mu[position - 1]
    least = (found - ALPHA_Z * error) / math.sqrt(variance)  # no smaller mu is compatible with these runs
    assert least <= claimed
    assert least > claimed / 3  # a claim of a third is refuted


def test_an_audit_of_the_first_record_passes_and_refutes_a_fifth_of_the_claim():
    facts = facts_of(Huber(10.0), features=1, records=3)
    plan = PNSGD(step=0.01, radius=5.0).plan(facts, Goal(mu=6.0, adjacency="replace-one"))
    pair = tuple(Problem.of(facts, np.ones((3, 1)), np.array([y, 0.0, 0.0])) for y in (9.9, -9.9))
    claims = plan.personal_costs.for_person(1), Cost.gaussian_dp(plan.personal_costs.mu[0] / 5, adjacency="replace-one")
    reports = [
        check(release=lambda problem: float(plan.run(problem).weights[0]), cost=claim, inputs=pair, draws=1200)
        for claim in claims
    ]
    assert [report.passed for report in reports] == [True, False]


# --------------------------------------------------------------------- learning


def planted(n, d, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(d) * 2
    table = rng.standard_normal((n, d)) / np.sqrt(d)
    return table, (rng.random(n) < 1 / (1 + np.exp(-table @ truth))).astype(float), truth


def test_it_finds_a_planted_direction_and_public_records_help():
    table, labels, truth = planted(4000, 5)
    facts = facts_of(records=4000, row_norm=2.0)
    found = []
    for solver in (PNSGD(batch=None), PNSGD(batch=None, public=400)):
        plan = solver.plan(facts, Goal(epsilon=2.0, delta=1e-6, adjacency="replace-one"))
        weights = plan.run(Problem.of(facts, table, labels)).weights
        found.append(weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth))
        assert np.linalg.norm(weights) <= 5.0 * (1 + 1e-9)
    assert min(found) > 0.7
    assert found[1] > 0.9


def test_several_outputs_are_learned_too():
    rng = np.random.default_rng(2)
    classes = rng.integers(0, 3, 3000)
    table = np.eye(3)[classes] + 0.3 * rng.standard_normal((3000, 3))
    facts = facts_of(Softmax(outputs=3), features=3, records=3000)
    plan = PNSGD(batch=None, public=300).plan(facts, Goal(epsilon=2.0, delta=1e-6, adjacency="replace-one"))
    weights = plan.run(Problem.of(facts, table, classes)).weights
    assert weights.shape == (3, 3)
    assert ((table @ weights).argmax(axis=1) == classes).mean() > 0.8


def test_an_estimator_takes_it_as_a_solver():
    from discreet.learning import LogisticRegression

    rng = np.random.default_rng(11)
    table = rng.uniform(-1, 1, (4000, 3))
    labels = (table @ [3.0, -2.0, 1.0] > 0).astype(int)
    given = {"epsilon": 2.0, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1]}
    model = LogisticRegression(**given, adjacency="replace-one", solver=PNSGD(batch=None)).fit(table, labels)
    assert model.score(table, labels) > 0.6
    assert model.cost_.epsilon(1e-6) == pytest.approx(2.0, rel=1e-6)
    assert "hidden iterates" in str(model.report_)
    with pytest.raises(InvalidArgument, match="zeroed=True"):
        LogisticRegression(**given, n_records=4000, solver=PNSGD()).fit(table, labels)


def test_a_run_is_a_function_of_its_words_and_lies_on_the_lattice():
    table, labels, _ = planted(300, 5)
    facts = facts_of(records=300)
    plan = PNSGD().plan(facts, GOAL)
    problem = Problem.of(facts, table, labels)
    one, same = (plan.run(problem, generator=SeededGenerator(1)).weights for _ in range(2))
    assert one.tolist() == same.tolist()
    assert one.tolist() != plan.run(problem, generator=SeededGenerator(2)).weights.tolist()
    steps = one / plan.lattice.step
    assert (steps == np.rint(steps)).all()


def test_the_bound_on_the_excess_loss_holds_on_data_with_a_known_optimum():
    # x = +-e_i uniform, P(y = 1) = 3/4 where x is positive: the population's optimum is ln 3 in every coordinate
    n, d, runs = 2000, 2, 12
    rng = np.random.default_rng(3)
    solver = PNSGD(batch=None, radius=2.0)
    facts = facts_of(features=d, records=n)
    plan = solver.plan(facts, GOAL)
    bound = solver.utility_bound(n=n, d=d, epsilon=1.0, delta=1e-6, radius=2.0, smoothness=0.25)

    def population(w):
        return float(np.mean([0.75 * np.logaddexp(0, -m) + 0.25 * np.logaddexp(0, m) for m in w]))

    best = population(np.full(d, math.log(3)))
    excess = []
    for _ in range(runs):
        signs, which = rng.choice([-1.0, 1.0], n), rng.integers(0, d, n)
        table = np.zeros((n, d))
        table[np.arange(n), which] = signs
        labels = (rng.random(n) < np.where(signs > 0, 0.75, 0.25)).astype(float)
        excess.append(population(plan.run(Problem.of(facts, table, labels)).weights) - best)
    assert min(excess) >= 0
    assert 0 < np.mean(excess) < bound
    assert bound < 1.0  # it says something


def test_the_bound_falls_with_records_and_with_public_ones_and_grows_with_the_dimension():
    fixed = {"epsilon": 1.0, "delta": 1e-6}
    bound = PNSGD().utility_bound
    assert bound(n=10**6, d=10, **fixed) < bound(n=10**5, d=10, **fixed) < bound(n=10**5, d=100, **fixed)
    assert PNSGD(public=1000).utility_bound(n=10**5, d=10, **fixed) < bound(n=10**5, d=10, **fixed)
    assert PNSGD(batch=None).utility_bound(n=10**5, d=10, **fixed) < bound(n=10**5, d=10, **fixed)


# --------------------------------------------------------------------- refusals


def test_a_step_above_two_over_the_smoothness_is_refused_before_any_data():
    with pytest.raises(InvalidArgument, match="2 / smoothness"):
        PNSGD(step=8.1).plan(facts_of(), GOAL)
    PNSGD(step=7.99).plan(facts_of(), GOAL)


@pytest.mark.parametrize(
    ("solver", "facts", "goal", "match"),
    [
        (PNSGD(), facts_of(records=None), GOAL, "records"),
        (PNSGD(), facts_of(), Goal(epsilon=1.0, adjacency="replace-one"), "delta"),
        (PNSGD(public=1000), facts_of(), GOAL, "private"),
        (PNSGD(radius=1e16), facts_of(), GOAL, "floating point"),
        (PNSGD(), facts_of(), Goal(epsilon=1.0, delta=1e-6), "adjacency"),
        (PNSGD(), facts_of(adjacency="add-remove"), Goal(epsilon=1.0, delta=1e-6), "zeroed=True"),
        (PNSGD(), facts_of(Squared(1.0)), GOAL, "no bounded slope"),
    ],
    ids=["no number of records", "pure", "all public", "huge radius", "other adjacency", "removed", "squares"],
)
def test_what_cannot_be_planned_says_why(solver, facts, goal, match):
    with pytest.raises(InvalidArgument, match=match):
        solver.plan(facts, goal)


@pytest.mark.parametrize("bad", [{"radius": 0.0}, {"batch": 0}, {"step": -1.0}, {"public": -1}, {"radius": math.nan}])
def test_parameters_are_checked(bad):
    with pytest.raises(InvalidArgument):
        PNSGD(**bad)


def test_another_number_of_records_is_refused_without_saying_how_many_there_are():
    plan = PNSGD().plan(facts_of(records=50), GOAL)
    with pytest.raises(InvalidArgument, match="made for 50 records") as caught:
        plan.run(Problem.of(plan.facts, np.zeros((47, 5)), np.zeros(47)))
    assert "47" not in str(caught.value)


def test_the_plan_says_what_it_assumes_and_chose():
    plan = PNSGD(public=10).plan(facts_of(records=50), GOAL)
    text = " ".join(plan.assumptions + plan.choices)
    assert "no iterate but the last" in text
    assert "10 of 50" in text
    assert "2 / smoothness" in text
    assert plan.noise["iterate"] == plan.step * plan.noise["gradient"]
    assert plan.run(Problem.of(plan.facts, np.zeros((50, 5)), np.zeros(50))).personal_costs is plan.personal_costs
