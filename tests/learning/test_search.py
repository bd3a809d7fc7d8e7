"""Searching parameters privately: paid for as a whole, before the first fit, and never free."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression as Unprotected
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler as UnprotectedScaler

from discreet import Budget, BudgetExceeded, Cost, Filter, InvalidArgument
from discreet.learning import Goal, LogisticRegression, PoissonRegressor, PrivateSearchCV, Ridge, StandardScaler
from discreet.learning.search import _base
from discreet.learning.tuning import Runs


def planted(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X.sum(axis=1) > 0).astype(int)


def base(**changes):
    return LogisticRegression(**{"bounds": (-1, 1), "classes": [0, 1], "n_records": 4000, **changes})


def pipeline(scale=None):
    scale = StandardScaler(epsilon=0.2, bounds=(-1, 1)) if scale is None else scale
    return Pipeline([("scale", scale), ("model", base(epsilon=0.8, bounds=(-3, 3), n_records="private"))])


@pytest.fixture
def forty_tries(monkeypatch):
    """Chance may try one setting alone; of forty tries all are of the same one with probability 2^-39."""
    monkeypatch.setattr(Runs, "draw", lambda *_: 40)


@pytest.mark.usefixtures("forty_tries")
def test_it_finds_the_better_setting_and_spends_what_it_was_given():
    X, y = planted()
    search = PrivateSearchCV(base(), {"alpha": [0.1, 1e6]}, epsilon=3.0, delta=1e-6, expected_runs=8).fit(X, y)
    assert search.best_params_ == {"alpha": 0.1}  # the other one learns nothing
    assert search.score(X, y) > 0.9
    assert 2.9 < search.cost_.epsilon(1e-6) <= 3.0 + 1e-6
    assert "Papernot" in str(search.report_)
    assert search.predict(X).shape == (4000,)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-7), (0.3, 1e-9), (2.0, 1e-5), (8.0, 1e-6)])
@pytest.mark.parametrize("expected", [2.0, 5.0, 40.0])
def test_every_price_is_met_and_spent(epsilon, delta, expected):
    goal = Goal(epsilon=epsilon, delta=delta)
    _, total = _base(goal, Runs(expected))
    assert 0.999999 * epsilon <= total.epsilon(delta) <= epsilon * (1 + 1e-9)


def test_a_price_that_no_noise_meets_is_refused_in_words():
    with pytest.raises(InvalidArgument, match="no noise makes the search that private"):
        _base(Goal(epsilon=1e-4, delta=1e-6), Runs(300.0))


def test_one_fit_would_have_had_more_for_itself():
    X, y = planted()
    search = PrivateSearchCV(base(), {"alpha": [0.1, 1.0]}, epsilon=1.0, delta=1e-6).fit(X, y)
    alone = base(epsilon=1.0, delta=1e-6, alpha=0.1).fit(X, y)
    assert search.best_estimator_.cost_.epsilon(1e-6) < alone.cost_.epsilon(1e-6) * 0.8


def test_regressions_are_searched_with_a_bounded_score():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (4000, 2))
    y = rng.poisson(np.exp(X[:, 0]))
    model = PoissonRegressor(bounds=(-1, 1), most=5, n_records=4000)
    search = PrivateSearchCV(model, {"alpha": [0.1, 1e7]}, epsilon=4.0, delta=1e-6, target_bounds=(0, 5)).fit(X, y)
    assert np.isfinite(search.predict(X)).all()


def test_a_regression_is_scored_within_the_bounds_that_it_states_itself():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (2000, 2))
    y = X[:, 0] + rng.normal(0, 0.1, 2000)
    model = Ridge(bounds=(-1, 1), target_bounds=(-2, 2))
    for tried, name in ((model, "alpha"), (Pipeline([("model", model)]), "model__alpha")):
        search = PrivateSearchCV(tried, {name: [0.1, 1e7]}, epsilon=8.0, delta=1e-6)
        assert search._target_ends() == (-2.0, 2.0)
        assert search.set_params(target_bounds=(0, 1))._target_ends() == (0.0, 1.0)
        assert np.isfinite(search.set_params(target_bounds=None).fit(X, y).predict(X)).all()
    with pytest.raises(InvalidArgument, match=r"state \(low, high\) of the target"):
        PrivateSearchCV(Ridge(bounds=(-1, 1), target_bounds="private"), {"alpha": [0.1]}).fit(X, y)


def test_the_whole_search_is_charged_before_the_first_fit():
    X, y = planted()
    account = Filter(Budget(epsilon=0.5, delta=1e-6))

    def charge(cost, *, reason):
        assert "fits" in reason
        account.charge(cost)

    search = PrivateSearchCV(base(), {"alpha": [0.1, 1.0]}, epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetExceeded):
        search.fit(X, y, charge=charge)
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize(
    ("estimator", "grid", "word"),
    [
        (base(), {"epsilon": [1.0, 2.0]}, "price is no parameter"),
        (base(), {"cost": [None]}, "price is no parameter"),
        (base(), {"alfa": [1.0]}, "no such parameter; did you mean 'alpha'"),
        (pipeline(), {"alpha": [1.0]}, "did you mean 'model__alpha'"),
        (pipeline(), {"model__alhpa": [1.0]}, "did you mean 'model__alpha'"),
        (pipeline(), {"scale__epsilon": [1.0]}, "price is no parameter"),
        (pipeline(), {"model__bounds": [(-3, 3), None]}, "model: bounds"),
        (pipeline(UnprotectedScaler()), {"model__alpha": [1.0]}, r"use discreet\.learning\.StandardScaler"),
        (pipeline(), {"scale": ["passthrough", UnprotectedScaler()]}, r"use discreet\.learning\.StandardScaler"),
        (StandardScaler(bounds=(-1, 1)), {"with_mean": [True]}, "predicts one"),
        (base(), {"alpha": [1.0, -1.0]}, "number >= 0"),
        (base(), {"alpha": []}, "param_grid"),
        (base(), 3, "param_grid"),
        (Unprotected(), {"C": [1.0]}, "every try must be private"),
        (base(classes="private"), {"alpha": [1.0]}, "classes"),
        (PoissonRegressor(bounds=(-1, 1), most=5), {"alpha": [1.0]}, "target_bounds"),
    ],
)
def test_what_would_be_free_or_impossible_is_refused(estimator, grid, word):
    X, y = planted(n=60)
    with pytest.raises(InvalidArgument, match=word):
        PrivateSearchCV(estimator, grid, epsilon=1.0, delta=1e-6).fit(X, y)


@pytest.mark.usefixtures("forty_tries")
def test_a_pipeline_is_searched_and_all_its_steps_are_paid_for():
    X, y = planted()
    grid = {"model__alpha": [0.1, 1e6], "scale__with_mean": [True, False]}
    search = PrivateSearchCV(pipeline(), grid, epsilon=4.0, delta=1e-6, expected_runs=8).fit(X, y)
    assert search.best_params_["model__alpha"] == 0.1
    assert search.score(X, y) > 0.9
    assert search.predict_proba(X).shape == (4000, 2)
    assert search.classes_.tolist() == [0, 1]
    assert search.cost_.epsilon(1e-6) <= 4.0 + 1e-6
    best = search.best_estimator_
    one, _ = _base(Goal(epsilon=4.0, delta=1e-6), Runs(8))
    assert best.cost_ == best["scale"].cost_ + best["model"].cost_
    assert best.cost_.gdp() == pytest.approx(one.gdp(), rel=1e-6)
    assert best.cost_.gdp() <= one.gdp()
    assert best["model"].cost_.gdp() / best["scale"].cost_.gdp() == pytest.approx(4, rel=1e-6)


def test_steps_can_be_searched_over_and_prices_follow():
    X, y = planted()
    grid = {"scale": ["passthrough", StandardScaler(bounds=(-1, 1))], "model__alpha": [0.1]}
    search = PrivateSearchCV(pipeline(), grid, epsilon=4.0, delta=1e-6).fit(X, y)
    one, _ = _base(Goal(epsilon=4.0, delta=1e-6), Runs(2))
    assert search.best_estimator_.cost_.gdp() == pytest.approx(one.gdp(), rel=1e-6)


FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b"]),
    "Polars": lambda X: pl.DataFrame(X, schema=["a", "b"]),
    "Arrow": lambda X: pa.table({"a": X[:, 0], "b": X[:, 1]}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_searched_and_keep_their_names(kind):
    X, y = planted(n=500)
    table = FRAMES[kind](X)
    search = PrivateSearchCV(base(), {"alpha": [0.1, 1.0]}, epsilon=3.0, delta=1e-6).fit(table, y.tolist())
    assert search.feature_names_in_.tolist() == ["a", "b"]
    assert search.n_features_in_ == 2
    assert search.predict(table).shape == (500,)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (csr_matrix(np.ones((60, 2))), "toarray"),
        ({"a": np.ones(60)}, "pass a table"),
        (np.ones(60), "2D"),
        (np.ones((59, 2)), "same number of rows"),
        (np.full((60, 2), np.nan), "NaN"),
        (np.full((60, 2), "x"), "numeric"),
    ],
)
def test_what_cannot_be_read_costs_nothing(table, word):
    spent = []
    with pytest.raises(InvalidArgument, match=word):
        PrivateSearchCV(base(), {"alpha": [0.1, 1.0]}).fit(
            table, np.arange(60) % 2, charge=lambda cost, *, reason: spent.append(cost)
        )
    assert not spent


def test_a_label_that_was_not_stated_costs_nothing():
    X, _ = planted(n=60)
    spent = []
    with pytest.raises(InvalidArgument, match="not among the classes"):
        PrivateSearchCV(base(), {"alpha": [0.1]}).fit(
            X, np.arange(60) % 3, charge=lambda cost, *, reason: spent.append(cost)
        )
    assert not spent


class Wild(RegressorMixin, BaseEstimator):
    """Predicts what is no number for the first row."""

    def predict(self, X):
        return np.where(np.arange(len(X)) == 0, np.nan, 0.0)


def test_a_prediction_that_is_no_number_changes_the_score_by_one_record_at_most():
    search = PrivateSearchCV(Wild(), {}, target_bounds=(0, 1))
    score = search._noisy_score(Wild(), np.zeros((50, 2)), np.zeros(50), Cost.gaussian(1.0), None)
    assert abs(score / 2**20 - 49) < 10  # ten deviations
