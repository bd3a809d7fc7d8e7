"""Too few records for a goal, and a delta too large for records, are refused where the number is public."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget
from discreet.errors import InvalidArgument
from discreet.learning import (
    PCA,
    Facts,
    GaussianNB,
    Goal,
    KMeans,
    LinearRegression,
    LinearSVC,
    Logistic,
    LogisticRegression,
    PoissonRegressor,
    PrivateSearchCV,
    Ridge,
    StandardScaler,
)
from discreet.learning.convex import NoisyGradientDescent, PreconditionedDescent
from discreet.learning.enough import check_enough, fewest_records

ROWS = np.random.default_rng(1).uniform(0, 1, (10, 3))
LABELS = np.arange(10) % 2
MODELS = [
    LogisticRegression(bounds=(0, 1), classes=[0, 1]),
    LinearSVC(bounds=(0, 1), classes=[0, 1]),
    GaussianNB(bounds=(0, 1), classes=[0, 1]),
    LinearRegression(bounds=(0, 1), target_bounds=(0, 1)),
    Ridge(bounds=(0, 1), target_bounds=(0, 1)),
    PoissonRegressor(bounds="private", most=100),
    StandardScaler(bounds=(0, 1)),
    PCA(bounds="private"),
    KMeans(2, bounds=(0, 1)),
]


def unpaid(cost, *, reason):
    pytest.fail(f"{reason} was paid for")


def changed(model, **changes):
    return type(model)(**{**model.get_params(), **changes})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_few_records_are_refused_before_anything_is_spent(model):
    with pytest.raises(InvalidArgument, match=r"n = 10 is not allowed: noise .* fewer than \d+ records"):
        changed(model, epsilon=0.05, adjacency="replace-one").fit(ROWS, LABELS, charge=unpaid)


@pytest.mark.parametrize("model", [*MODELS[:2], *MODELS[3:7]], ids=lambda model: type(model).__name__)
def test_a_number_that_is_stated_is_looked_at_too(model):
    with pytest.raises(InvalidArgument, match="n = 10"):
        changed(model, epsilon=0.05, n_records=10).fit(ROWS, LABELS, charge=unpaid)


def test_what_no_number_is_known_of_is_fitted_and_the_report_says_how_many_it_takes():
    fitted = LogisticRegression(bounds=(0, 1), classes=[0, 1], epsilon=0.05).fit(ROWS, LABELS)
    assert "noise outweighs what fewer than" in str(fitted.report_)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    "price", [{"delta": 0.02}, {"budget": Budget(epsilon=1.0, delta=0.5)}], ids=["delta", "budget"]
)
def test_a_delta_that_protects_nobody_is_refused_before_data_is_read(model, price):
    with pytest.raises(InvalidArgument, match="published whole"):
        changed(model, **price).fit(None, None)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_delta_of_one_in_n_is_refused_before_anything_is_spent(model):
    rows, labels = np.tile(ROWS, (20, 1)), np.tile(LABELS, 20)
    with pytest.raises(InvalidArgument, match="below 1 / n, and is not for 200 records"):
        changed(model, epsilon=50.0, delta=0.005, adjacency="replace-one").fit(rows, labels, charge=unpaid)


def test_a_search_has_no_such_delta_either():
    with pytest.raises(InvalidArgument, match="published whole"):
        PrivateSearchCV(MODELS[0], {"alpha": [1.0]}, delta=0.02).fit(None, None)


@pytest.mark.parametrize("solver", [PreconditionedDescent(), NoisyGradientDescent()])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_records_below_the_fewest_are_outweighed_in_every_step_of_a_solver(solver, adjacency):
    goal = Goal(epsilon=1.0, delta=1e-6, adjacency=adjacency)
    facts = Facts(loss=Logistic(), features=30, row_norm=1.0, records=100, adjacency=adjacency)
    plan = solver.plan(facts, goal)
    clip = getattr(plan, "bound", 1.0)
    assert plan.noise["gradient"] * 30**0.5 >= (fewest_records(goal, 30) - 1) * clip * facts.row_norm * 0.999


@given(
    epsilon=st.floats(0.01, 50),
    delta=st.sampled_from([0.0, 1e-9, 1e-5]),
    dimension=st.integers(1, 10_000),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
def test_more_noise_needs_more_records(epsilon, delta, dimension, adjacency):
    goal = Goal(epsilon=epsilon, delta=delta, adjacency=adjacency)
    fewest = fewest_records(goal, dimension)
    assert fewest >= 1
    assert fewest_records(goal, 4 * dimension) >= fewest
    assert fewest_records(Goal(epsilon=epsilon / 2, delta=delta, adjacency=adjacency), dimension) >= fewest
    check_enough(fewest, goal, dimension)
    if fewest > 1:
        with pytest.raises(InvalidArgument, match="outweighs"):
            check_enough(fewest - 1, goal, dimension)
