"""Least squares for columns in their own units."""

import numpy as np
import pytest
from sklearn import linear_model

from discreet import InvalidArgument
from discreet.learning import LinearRegression, Ridge
from discreet.learning.convex import FunctionalMechanism, NoisyGradientDescent

BOUNDS = [(0, 10), (-200, 0), (5, 6)]


def planted(n=30_000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(low, high, n) for low, high in BOUNDS])
    return X, X @ [2.0, 0.1, -8.0] + 70 + rng.normal(0, 2, n)


def model(**changes):
    return LinearRegression(**{"bounds": BOUNDS, "target_bounds": (-30, 60), **changes})


def test_coefficients_are_in_the_users_units():
    X, y = planted()
    fitted = model(epsilon=3.0).fit(X, y)
    assert fitted.coef_ == pytest.approx([2.0, 0.1, -8.0], rel=0.15)
    assert fitted.intercept_ == pytest.approx(70, rel=0.15)
    assert fitted.score(X, y) > 0.93


def test_with_little_noise_it_is_scikit_learns():
    X, y = planted(5000)
    ours = model(budget=None, cost=None, epsilon=150.0, delta=1e-3, row_norm=2.0, target_bounds=(-100, 150)).fit(X, y)
    theirs = linear_model.LinearRegression().fit(X, y)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), abs=0.5)


def test_without_an_intercept_the_model_passes_through_zero():
    rng = np.random.default_rng(1)
    X = rng.uniform(2, 4, (20_000, 2))
    fitted = LinearRegression(bounds=(0, 5), target_bounds=(0, 20), epsilon=3.0, fit_intercept=False)
    fitted.fit(X, X @ [3.0, 1.0])
    assert fitted.intercept_ == 0.0
    assert fitted.predict([[0.0, 0.0]]) == [0.0]
    assert fitted.coef_ == pytest.approx([3.0, 1.0], abs=0.3)


def test_ridge_shrinks_and_zero_alpha_does_not():
    X, y = planted()
    free, tight = (Ridge(alpha, bounds=BOUNDS, target_bounds=(-30, 60), epsilon=3.0).fit(X, y) for alpha in (0.0, 1e5))
    assert np.abs(tight.coef_ * [5, 100, 0.5]).max() < 0.3 * np.abs(free.coef_ * [5, 100, 0.5]).max()
    assert abs(tight.predict(X).mean() - y.mean()) < 1.0  # the intercept is not penalised


@pytest.mark.parametrize(
    "solver", ["functional", "statistics", FunctionalMechanism(), NoisyGradientDescent(), "descent"]
)
def test_other_solvers_can_be_asked_for(solver):
    X, y = planted()
    fitted = model(epsilon=3.0, solver=solver, n_records="private").fit(X, y)
    assert fitted.score(X, y) > 0.3
    assert fitted.cost_.epsilon(1e-6) <= 3.0 * (1 + 1e-9)


def test_targets_beyond_their_bounds_are_clamped():
    X, y = planted(4000)
    y[:5] = 1e12
    assert np.abs(model(epsilon=3.0).fit(X, y).predict(X)).max() < 200


def test_missing_target_bounds_are_refused_with_the_way_to_state_or_buy_them():
    X, y = planted(100)
    with pytest.raises(InvalidArgument, match=r"target_bounds='private'"):
        model(target_bounds=None).fit(X, y)
    for wrong in ((1, 0), (0, float("nan")), 3, "all"):
        with pytest.raises(InvalidArgument, match="target_bounds"):
            model(target_bounds=wrong).fit(X, y)


def test_a_wrong_solver_or_penalty_is_refused():
    X, y = planted(100)
    with pytest.raises(InvalidArgument, match="solver"):
        model(solver="newton").fit(X, y)
    with pytest.raises(InvalidArgument, match="alpha"):
        Ridge(-1.0, bounds=BOUNDS, target_bounds=(0, 1)).fit(X, y)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_nearly_dependent_columns_do_not_run_away(epsilon):
    # the case in which noisy normal equations without a penalty give an R^2 of minus thousands
    rng = np.random.default_rng(3)
    size = rng.normal(0, 0.2, (20_000, 1))
    X = np.clip(size + 0.001 * rng.standard_normal((20_000, 4)), -1, 1)
    y = np.clip(X.sum(axis=1) / 2 + 0.05 * rng.standard_normal(20_000), -1, 1)
    for _ in range(5):
        assert LinearRegression(bounds=(-1, 1), target_bounds=(-1, 1), epsilon=epsilon).fit(X, y).score(X, y) > 0.8


def test_a_report_says_from_how_many_records_on_bought_bounds_are_no_guess():
    X, y = planted(500)
    bought = model(target_bounds="private", epsilon=1.0, delta=1e-6).fit(X, y).report_.releases[0]
    assert bought.what == "bounds of the target"
    assert bought.why.endswith("guesses for fewer than about 2001 records")  # 100 / (0.05 for one quantile), rounded up
