"""Searching parameters privately: paid for as a whole, before the first fit, and never free."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression as Unprotected

from discreet import Budget, BudgetExceeded, Cost, Filter, InvalidArgument
from discreet.learning import Goal, LogisticRegression, PoissonRegressor, PrivateSearchCV
from discreet.learning.search import _base
from discreet.learning.tuning import Runs


def planted(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X.sum(axis=1) > 0).astype(int)


def base(**changes):
    return LogisticRegression(**{"bounds": (-1, 1), "classes": [0, 1], "n_records": 4000, **changes})


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
    assert 0.98 * epsilon <= total.epsilon(delta) <= epsilon * (1 + 1e-9)


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
        (base(), {"alfa": [1.0]}, "no such parameter"),
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


class Wild(RegressorMixin, BaseEstimator):
    """Predicts what is no number for the first row."""

    def predict(self, X):
        return np.where(np.arange(len(X)) == 0, np.nan, 0.0)


def test_a_prediction_that_is_no_number_changes_the_score_by_one_record_at_most():
    search = PrivateSearchCV(Wild(), {}, target_bounds=(0, 1))
    score = search._noisy_score(Wild(), np.zeros((50, 2)), np.zeros(50), Cost.gaussian(1.0), None)
    assert abs(score / 2**20 - 49) < 10  # ten deviations
