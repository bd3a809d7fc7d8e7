"""What can be foreseen is refused before anything is spent: a purchase comes after a rehearsal of what follows."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.learning import (
    PCA,
    GaussianNB,
    KMeans,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    StandardScaler,
)
from discreet.learning.convex import PNSGD, ObjectivePerturbation, PreconditionedDescent

X = np.random.default_rng(1).uniform(0, 1, (300, 6))
Y = (X[:, 0] > 0.5).astype(int)
BUYING = {"bounds": "private"}
WRONG = {
    "hidden iterates, records that come and go": LogisticRegression(**BUYING, classes=[0, 1], solver="pnsgd"),
    "too long steps": LinearSVC(**BUYING, classes=[0, 1], adjacency="replace-one", solver=PNSGD(step=1e6)),
    "places, classes bought": LogisticRegression(
        bounds=(0, 1), classes="private", solver="pnsgd", adjacency="replace-one"
    ),
    "sums of products, logistic": LogisticRegression(**BUYING, classes=[0, 1], solver="statistics"),
    "an expansion, hinges": LinearSVC(**BUYING, classes=[0, 1], solver="functional"),
    "an expansion, many classes": LogisticRegression(**BUYING, classes=range(3), solver="functional"),
    "Gaussian noise, pure": LinearRegression(
        **BUYING, target_bounds="private", delta=0.0, solver=PreconditionedDescent()
    ),
    "mu, objective": PoissonRegressor(**BUYING, most=1000, solver=ObjectivePerturbation(gamma=1e-300)),
    "bounds of other columns": PoissonRegressor(bounds=[(0, 1)] * 5, most=1000),
    "bounds of other columns, targets bought": LinearRegression(bounds=[(0, 1)] * 5, target_bounds="private"),
    "bounds of other columns, classes bought": GaussianNB(bounds=[(0, 1)] * 5, classes="private"),
    "priors of other classes": GaussianNB(**BUYING, classes=[0, 1], priors=[1.0]),
    "records unknown": LinearRegression(**BUYING, target_bounds=(0, 1), solver="descent"),
    "components of other columns": PCA(7, bounds="private"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_can_be_foreseen_is_refused_before_the_first_purchase(kind):
    spent = []
    with pytest.raises(InvalidArgument):
        WRONG[kind].fit(X, Y, charge=lambda cost, *, reason: spent.append(cost))
    assert not spent
    with pytest.raises(InvalidArgument):
        WRONG[kind].rehearse(6)


RIGHT = [
    LogisticRegression(bounds="private", classes="private", solver="descent"),
    LogisticRegression(bounds=(0, 1), classes=[0, 1], adjacency="replace-one", solver="localization"),
    LinearSVC(bounds="private", classes=range(4), row_norm="private"),
    LinearRegression(bounds="private", target_bounds="private", delta=0.0),
    PoissonRegressor(bounds="private", most="private"),
    GaussianNB(bounds="private", classes="private"),
    StandardScaler(bounds="private", adjacency="replace-one"),
    PCA(bounds="private", row_norm="private"),
    KMeans(3, bounds="private"),
]


@pytest.mark.parametrize("model", RIGHT, ids=lambda model: type(model).__name__)
def test_a_rehearsal_passes_what_can_be_fitted_draws_no_noise_and_leaves_no_trace(model):
    before = dict(vars(model))
    model.rehearse(6)
    assert vars(model) == before
    spent = []
    model.fit(X, Y, charge=lambda cost, *, reason: spent.append(cost))
    assert spent  # and then it is paid for
    assert sum(spent[1:], spent[0]).epsilon(1e-6) <= 1.0 + 1e-6


def test_a_fit_within_a_rehearsal_costs_what_the_fit_costs():
    paid = {}

    def charge(cost, *, reason):
        paid[reason] = cost

    model = PoissonRegressor(bounds="private", most=1000).fit(X, Y, charge=charge)
    assert [release.what for release in model.report_.releases][:2] == list(paid)[:2]
    assert model.cost_.epsilon(1e-6) <= 1.0 + 1e-9


def test_few_records_that_are_public_are_seen_in_a_rehearsal():
    with pytest.raises(InvalidArgument, match="n_clusters"):
        KMeans(301, bounds="private", adjacency="replace-one").fit(
            X, charge=lambda cost, *, reason: pytest.fail(reason)
        )
    KMeans(301, bounds="private", adjacency="replace-one").rehearse(6)  # how many there are is not known here
