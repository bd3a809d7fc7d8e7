"""Poisson regression: a generous bound costs little, what is bought is paid for, and no rate runs away."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import d2_tweedie_score

from discreet.errors import InvalidArgument
from discreet.learning import Goal, PoissonRegressor
from discreet.learning.account import Account
from discreet.learning.purchases import buy_most, buy_total

TRUTH = np.array([0.8, -0.5, 0.3])


def planted(mean=2.0, n=20_000, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    rates = np.exp(X @ TRUTH)
    return X, rng.poisson(rates * mean / rates.mean()).astype(float)


def model(**changes):
    return PoissonRegressor(**{"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), **changes})


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("mean", "most"), [(0.1, 300), (2.0, 12), (2.0, 1200), (2.0, "private"), (60.0, 30_000)])
def test_a_bound_a_hundred_times_too_large_costs_little(mean, most, adjacency):
    X, y = planted(mean)
    fitted = model(most=most, adjacency=adjacency).fit(X, y)
    assert fitted.cost_.epsilon(1e-6) <= 1.0 + 1e-9
    assert np.abs(fitted.coef_ - TRUTH).max() < 0.3
    best = d2_tweedie_score(y, np.exp(X @ TRUTH) * mean / np.exp(X @ TRUTH).mean(), power=1)
    assert d2_tweedie_score(y, fitted.predict(X), power=1) > best - 0.03
    text = str(fitted.report_)
    assert "the sum of the counts" in text
    assert (most == 12) or "the bound on counts" in text


def test_pure_epsilon_and_a_model_without_an_intercept_learn_too():
    X, y = planted(1.0)
    assert d2_tweedie_score(y, model(most=50, delta=0.0).fit(X, y).predict(X), power=1) > 0.1
    through = model(most=50, fit_intercept=False).fit(X, y)
    assert through.intercept_ == 0.0
    assert np.abs(through.coef_ - TRUTH).max() < 0.3


def test_no_rate_beyond_the_bound_is_predicted():
    X, y = planted()
    fitted = model(most=100).fit(X, y)
    assert fitted.most_ < 40
    assert fitted.predict(1e6 * X).max() == fitted.most_


@pytest.mark.parametrize(("mean", "most"), [(0.0, 5), (5.0, 5), (1e5, 2.0**30)])
def test_counts_that_are_all_zero_or_all_at_the_bound_give_finite_rates(mean, most):
    X = np.random.default_rng(3).uniform(-1, 1, (2000, 3))
    fitted = model(most=most).fit(X, np.full(2000, mean))
    assert 0 <= fitted.predict(X).min() <= fitted.predict(X).max() <= most


def test_few_records_of_which_the_number_is_known_buy_no_bound():
    X, y = planted(n=500)
    fitted = model(most=50, n_records=500, epsilon=0.5).fit(X, y)
    assert fitted.most_ == 50
    assert "the bound on counts" not in str(fitted.report_)


@given(
    counts=st.lists(st.floats(0, 1e9), min_size=0, max_size=20),
    other=st.floats(0, 1e308),
    most=st.floats(1e-3, 1e6),
    epsilon=st.floats(0.01, 5),
)
def test_one_count_moves_the_sum_by_at_most_its_sensitivity(counts, other, most, epsilon):

    goal = Goal(epsilon=epsilon, delta=1e-6)
    sums = [
        int(np.trunc(np.minimum(np.clip(np.array(one, dtype=float), 0, most) / most, 1) * 2**16).sum())
        for one in (counts, [*counts, other])
    ]
    assert abs(sums[1] - sums[0]) <= 2**16
    account = Account()
    total, noise = buy_total(goal, np.array(counts, dtype=float), account, most=most)
    assert goal.met_by(account.cost)
    assert noise >= most / goal.gaussian * 0.999
    assert abs(total - sums[0] * most / 2**16) < 20 * noise + most


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
@pytest.mark.parametrize("most", [4.5, 10.0, 1e6])
def test_the_bought_bound_is_within_the_stated_one_and_paid_for(epsilon, most):
    goal, account = Goal(epsilon=epsilon, delta=1e-6), Account()
    found = buy_most(goal, np.full(3000, 3.0), account, most=most)
    assert 0 < found <= most
    assert goal.met_by(account.cost)
    if epsilon == 1.0 and most > 10:
        assert 2.5 * 3 / math.exp(0.2) < found < 2.5 * 3 * math.exp(0.2)


@pytest.mark.parametrize(
    ("most", "said"), [(None, "may be generous"), ("some", "private"), (-1, "> 0"), (2.0**31, "2\\^30")]
)
def test_a_bound_that_is_none_is_refused_before_data_is_read(most, said):
    with pytest.raises(InvalidArgument, match=said):
        model(most=most).fit(None, None)
