"""Linear regression, scaling, components, clusters and naive Bayes: what holds for all of them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from discreet import Budget, BudgetExceeded, Cost, Filter, InvalidArgument
from discreet.learning import PCA, GaussianNB, KMeans, LinearRegression, Ridge, StandardScaler

ALL = {
    "LinearRegression": LinearRegression(bounds=(-1, 1), target_bounds=(-2, 2)),
    "Ridge": Ridge(bounds=(-1, 1), target_bounds=(-2, 2)),
    "StandardScaler": StandardScaler(bounds=(-1, 1)),
    "PCA": PCA(bounds=(-1, 1)),
    "KMeans": KMeans(n_clusters=2, bounds=(-1, 1)),
    "GaussianNB": GaussianNB(bounds=(-1, 1), classes=[0, 1]),
}


@pytest.fixture(params=ALL)
def estimator(request):
    return clone(ALL[request.param])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    return X, (X[:, 0] > 0).astype(int)


LEARNED = ("coef_", "mean_", "cluster_centers_", "theta_")


def learned(estimator):
    return next(getattr(estimator, name) for name in LEARNED if hasattr(estimator, name))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_fit_costs_what_was_asked_for_and_no_more(estimator, data, adjacency, delta):
    fitted = estimator.set_params(adjacency=adjacency, delta=delta, epsilon=0.8).fit(*data)
    assert fitted.cost_.adjacency == adjacency
    assert 0.8 * 0.999 < fitted.cost_.epsilon(delta) <= 0.8 * (1 + 1e-9)
    assert fitted.report_.epsilon == fitted.cost_.epsilon(delta)
    assert all(np.isfinite(size) and size > 0 for size in fitted.noise_.values())
    assert np.isfinite(learned(fitted)).all()
    assert "Protects each record" in str(fitted.report_)


def test_bounds_can_be_bought_within_the_same_price(estimator, data):
    X, y = data
    estimator.set_params(bounds="private", epsilon=3.0)
    if isinstance(estimator, LinearRegression):
        estimator.set_params(target_bounds="private")
    fitted = estimator.fit(X * [1.0, 300.0, 0.01] + [0, 5000, 0], y)
    assert "bounds of 3 columns" in str(fitted.report_)
    assert fitted.cost_.epsilon(1e-6) <= 3.0 * (1 + 1e-9)


def test_missing_bounds_are_refused_with_the_way_to_state_or_buy_them(estimator, data):
    with pytest.raises(InvalidArgument, match=r"bounds=.*'private'") as refusal:
        estimator.set_params(bounds=None).fit(*data)
    assert "without looking" in str(refusal.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"delta": 1.0},
        {"delta": -1e-6},
        {"adjacency": "nobody"},
        {"bounds": (1, -1)},
        {"bounds": (0, float("inf"))},
        {"bounds": [(0, 1), (0, 1)]},
        {"bounds": "privat"},
        {"budget": 3.0},
        {"cost": Cost.gaussian(1.0), "budget": Budget(rho=0.1)},
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_before_anything_is_charged(estimator, data, wrong):
    def charge(cost, *, reason):
        pytest.fail(f"{reason} was charged")

    with pytest.raises(InvalidArgument):
        estimator.set_params(**wrong).fit(*data, charge=charge)


def test_bad_data_is_refused_before_anything_is_charged_and_no_message_shows_a_value(estimator, data):
    def charge(cost, *, reason):
        pytest.fail(f"{reason} was charged")

    X, y = data
    for bad in (np.where(X > 0.999, np.nan, X), np.where(X > 0.999, np.inf, X), sparse.csr_matrix(X), X[:, 0], X[:0]):
        with pytest.raises((InvalidArgument, TypeError)) as refusal:
            estimator.fit(bad, y[: len(bad)] if not sparse.issparse(bad) else y, charge=charge)
        assert "0.99" not in str(refusal.value)


def test_releases_are_paid_for_first_and_a_refusal_leaves_nothing(estimator, data):
    wallet, paid = Filter(Budget(epsilon=2.0, delta=1e-5)), []

    def charge(cost, *, reason):
        wallet.charge(cost)
        paid.append(cost)

    fitted = clone(estimator).fit(*data, charge=charge)
    assert sum(paid[1:], paid[0]) == fitted.cost_
    broke = clone(estimator).set_params(epsilon=5.0)
    with pytest.raises(BudgetExceeded):
        broke.fit(*data, charge=charge)
    assert not any(hasattr(broke, name) for name in LEARNED)


def test_frames_and_arrow_tables_are_read(estimator, data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert estimator.fit(frame, y).feature_names_in_.tolist() == ["a", "b", "c"]
    clone(estimator).fit(pa.table({name: X[:, i] for i, name in enumerate("abc")}), y)


def test_a_mu_budget_is_spent_exactly(estimator, data):
    fitted = estimator.set_params(budget=Budget(rho=0.125)).fit(*data)
    assert fitted.cost_.zcdp() == pytest.approx(0.125, rel=1e-6)


def test_what_is_bought_leaves_a_budget_in_mu_unbroken(estimator, data):
    estimator.set_params(budget=Budget(mu=0.5), bounds="private")
    if isinstance(estimator, LinearRegression):
        estimator.set_params(target_bounds="private")
    assert estimator.fit(*data).cost_.gdp() <= 0.5 * (1 + 1e-9)


def test_text_is_refused_and_not_repeated(estimator, data):
    X, y = data
    with pytest.raises(InvalidArgument) as refusal:
        estimator.fit(np.full(X.shape, "secret"), y)
    assert "secret" not in str(refusal.value)
    if isinstance(estimator, LinearRegression | GaussianNB):
        with pytest.raises(InvalidArgument) as refusal:
            estimator.fit(X, np.full(len(X), "secret"))
        assert "secret" not in str(refusal.value)


def test_enormous_numbers_are_clamped_like_any_other(estimator, data):
    X, y = data
    X = X.copy()
    X[0], X[1] = 1e300, -1e305
    assert np.isfinite(learned(estimator.fit(X, y))).all()


def test_next_to_no_records_and_a_lot_of_noise_still_give_finite_models(estimator):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (3, 3))
    for _ in range(5):
        fitted = clone(estimator).set_params(epsilon=0.01).fit(X, [0, 1, 0])
        assert np.isfinite(learned(fitted)).all()
        assert np.abs(learned(fitted)).max() < 1000
