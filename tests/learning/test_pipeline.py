"""Pipelines: every private step is paid for and counted, and no other step takes anything from the records."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA as UNPROTECTED_PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as Unprotected
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.preprocessing import StandardScaler as UnprotectedScaler

from discreet import Budget, BudgetExceeded, Cost, Filter, InvalidArgument
from discreet.learning import (
    PCA,
    KMeans,
    LogisticRegression,
    PrivatePipeline,
    PrivateSearchCV,
    StandardScaler,
    total_cost,
)
from discreet.learning.convex import PNSGD

CITIES = [["Bonn", "Kiel", "Ulm"]]


def planted(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X.sum(axis=1) > 0).astype(int)


def scale(**changes):
    return StandardScaler(**{"epsilon": 0.3, "delta": 1e-7, "bounds": (-1, 1), **changes})


def model(**changes):
    return LogisticRegression(**{"epsilon": 0.7, "delta": 1e-7, "bounds": (-3, 3), "classes": [0, 1], **changes})


def pipeline(*middle, **changes):
    return PrivatePipeline([("scale", scale()), *middle, ("model", model(**changes))])


def test_the_cost_is_that_of_all_steps_together():
    X, y = planted()
    fitted = pipeline().fit(X, y)
    assert fitted.score(X, y) > 0.9
    parts = fitted["scale"].cost_ + fitted["model"].cost_
    assert fitted.cost_ == total_cost(fitted) == total_cost(Pipeline(fitted.steps)) == parts
    assert 0.7 < fitted.cost_.epsilon(2e-7) <= 1.0
    assert fitted.price == Cost.approximate(0.3, 1e-7) + Cost.approximate(0.7, 1e-7)
    text = str(fitted.report_)
    assert "StandardScaler, then LogisticRegression" in text
    assert "scale: sums of 2 columns" in text
    assert fitted.report_.epsilon == pytest.approx(fitted.cost_.epsilon(2e-7))


def test_every_release_is_charged_before_it_is_made():
    X, y = planted()
    wallet = Filter(Budget(epsilon=0.6, delta=1e-6))
    reasons = []

    def charge(cost, *, reason):
        wallet.charge(cost)
        reasons.append(reason)

    failed = pipeline()
    with pytest.raises(BudgetExceeded):
        failed.fit(X, y, charge=charge)
    assert len(reasons) == 1  # the scaler was paid for and made, the model was not
    assert hasattr(failed["scale"], "cost_")
    assert not hasattr(failed["model"], "cost_")
    with pytest.raises(NotFittedError):
        total_cost(failed)


REFUSED = {
    "scikit-learn's scaler": (UnprotectedScaler(), r"use discreet\.learning\.StandardScaler"),
    "scikit-learn's components": (UNPROTECTED_PCA(1), r"use discreet\.learning\.PCA"),
    "ranges": (MinMaxScaler(), "bounds that you state"),
    "a choice of columns": (SelectKBest(k=1), "not known to take nothing"),
    "categories of the records": (OneHotEncoder(), "state categories"),
    "frequent categories": (OneHotEncoder(categories=CITIES, min_frequency=3), "min_frequency"),
    "sparse output": (OneHotEncoder(categories=CITIES), "sparse_output=False"),
    "ordinal categories": (OrdinalEncoder(), "state categories"),
    "means of columns": (SimpleImputer(), "strategy='constant'"),
    "empty columns": (SimpleImputer(strategy="constant", fill_value=0), "keep_empty_features=True"),
    "knots": (SplineTransformer(), "state knots"),
    "a part of a union": (FeatureUnion([("a", PolynomialFeatures()), ("b", UnprotectedScaler())]), "its part 'b'"),
    "a part of the columns": (ColumnTransformer([("a", UnprotectedScaler(), [0])]), r"its part 'a'.*StandardScaler"),
    "the rest of the columns": (ColumnTransformer([], remainder=UnprotectedScaler()), "its part 'remainder'"),
    "columns by a function": (ColumnTransformer([("a", Normalizer(), lambda X: [0])]), "list them"),
    "a private part": (ColumnTransformer([("a", scale(), [0])]), "belongs into the pipeline itself"),
    "a model in the middle": (model(), "should be transformers"),
    "records on the disk": (Pipeline([("a", Normalizer())], memory="cache"), "on the disk"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_step_that_learns_unpaid_is_refused_before_anything_is_spent(kind):
    X, y = planted(n=100)
    step, word = REFUSED[kind]
    spent = []
    with pytest.raises(InvalidArgument, match=word):
        pipeline(("step", step)).fit(X, y, charge=lambda cost, *, reason: spent.append(cost))
    with pytest.raises(InvalidArgument, match=word):
        _ = pipeline(("step", step)).price
    assert not spent


def test_a_subclass_of_a_known_step_is_not_known():
    class Mean(FunctionTransformer):
        def fit(self, X, y=None):
            self.mean_ = X.mean(axis=0)
            return self

    with pytest.raises(InvalidArgument, match="not known to take nothing"):
        _ = pipeline(("mean", Mean())).price


FREE = {
    "polynomials": PolynomialFeatures(2),
    "thresholds": Binarizer(threshold=0.5),
    "directions": Normalizer(),
    "a function": FunctionTransformer(np.tanh),
    "no function": FunctionTransformer(),
    "constants": SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
    "splines": SplineTransformer(knots=np.linspace(-2, 2, 4)[:, None] * [1, 1], extrapolation="constant"),
    "a union": FeatureUnion([("a", Normalizer()), ("b", PolynomialFeatures())]),
    "columns": ColumnTransformer([("a", Normalizer(), [0])], remainder="passthrough"),
    "a pipeline": Pipeline([("a", Normalizer()), ("b", "passthrough")]),
    "nothing": "passthrough",
}


@pytest.mark.parametrize("kind", FREE)
def test_steps_that_take_nothing_from_the_records_are_let_through_and_free(kind):
    X, y = planted()
    fitted = pipeline(("step", clone(FREE[kind], safe=False)), bounds=(-5, 5)).fit(X, y)
    assert fitted.cost_ == fitted["scale"].cost_ + fitted["model"].cost_
    assert fitted.predict(X).shape == y.shape


@pytest.mark.parametrize("kind", FREE)
def test_what_such_a_step_learned_is_the_same_from_other_records(kind):
    if FREE[kind] == "passthrough":
        return
    X, _ = planted()
    one, other = clone(FREE[kind]).fit(X), clone(FREE[kind]).fit(np.zeros((2, 2)))
    assert np.array_equal(one.transform(X), other.transform(X))


WIDE = np.random.default_rng(5).normal(0, 1, (257, 37))
OURS = [
    StandardScaler(bounds=(-4, 4)),
    PCA(7, bounds=(-4, 4)),
    PCA(7, bounds=(-4, 4), whiten=True),
    KMeans(5, bounds=(-4, 4)),
]


@pytest.mark.parametrize("step", [*OURS, Normalizer(), Normalizer("l1"), PolynomialFeatures(2)], ids=repr)
def test_a_step_transforms_every_record_by_itself_to_the_last_digit(step):
    together = clone(step).fit(WIDE)
    whole = together.transform(WIDE)
    for rows in (slice(0, 1), slice(3, 8), slice(100, 256), slice(256, 257)):
        assert np.array_equal(whole[rows], together.transform(WIDE[rows].copy()))


def test_a_table_with_text_is_encoded_by_stated_categories():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"city": rng.choice(CITIES[0], 4000), "age": rng.uniform(20, 80, 4000)})
    y = (table["city"] == "Ulm").to_numpy()
    encode = ColumnTransformer(
        [("city", OneHotEncoder(categories=CITIES, sparse_output=False), make_column_selector(dtype_exclude="number"))],
        remainder="passthrough",
    )
    last = model(bounds=[(0, 1)] * 3 + [(18, 90)], classes=[False, True])
    fitted = PrivatePipeline([("encode", encode), ("model", last)]).fit(table, y)
    assert fitted.score(table, y) > 0.9
    assert fitted.cost_ == fitted["model"].cost_


def test_a_function_that_mixes_records_is_refused_before_anything_is_spent():
    X, y = planted(n=300)
    spent = []
    for mixing in (lambda X: X - X.mean(axis=0), lambda X: (X - X.min(axis=0)) / np.ptp(X, axis=0), lambda X: X[::-1]):
        with pytest.raises(InvalidArgument, match="mixes records"):
            pipeline(("mix", FunctionTransformer(mixing))).fit(X, y, charge=lambda cost, *, reason: spent.append(cost))
    assert not spent


@pytest.mark.filterwarnings("error")
def test_steps_that_invented_rows_do_not_suit_are_fitted_to_the_records():
    X, y = planted()
    positive = X + 2
    logs = PrivatePipeline([("log", FunctionTransformer(np.log)), ("model", model(bounds=(-1, 2)))])
    assert logs.fit(positive, y).score(positive, y) > 0.9
    grades = np.column_stack([1 + y, 2 + 0 * y])
    parts = OneHotEncoder(categories=[[1, 2], [2, 3]], sparse_output=False)
    assert PrivatePipeline([("parts", parts), ("model", model(bounds=(0, 1)))]).fit(grades, y).score(grades, y) > 0.9
    search = PrivateSearchCV(logs, {"model__alpha": [0.1, 1.0]}, epsilon=3.0).fit(positive, y)
    assert search.score(positive, y) > 0.8


def test_one_object_in_two_places_is_refused():
    both = scale()
    with pytest.raises(InvalidArgument, match="clone it"):
        _ = PrivatePipeline([("a", both), ("b", both), ("model", model())]).price


def test_what_no_record_makes_right_is_said_with_its_step_and_costs_nothing():
    X, y = planted(n=300)
    spent = []
    for wrong, word in (({"bounds": None}, "model: bounds"), ({"bounds": [(0, 1)] * 3}, "for all 2 columns")):
        with pytest.raises(InvalidArgument, match=word):
            pipeline(**wrong).fit(X, y, charge=lambda cost, *, reason: spent.append(cost))
    with pytest.raises(InvalidArgument, match="all steps must have the same"):
        pipeline(adjacency="replace-one").fit(X, y)
    replaced = PrivatePipeline([("scale", scale(adjacency="replace-one")), ("model", model(bounds=None))])
    with pytest.raises(InvalidArgument, match="model: bounds"):
        replaced.set_params(model__adjacency="replace-one").fit(X, y, charge=lambda cost, *, reason: spent.append(cost))
    assert replaced.set_params(model__bounds=(-3, 3)).fit(X, y).cost_.adjacency == "replace-one"
    with pytest.raises(InvalidArgument, match="none of them"):
        PrivatePipeline([("a", Normalizer())]).fit(X, y)
    with pytest.raises(InvalidArgument, match="model: LogisticRegression"):
        PrivatePipeline([("scale", scale()), ("model", Unprotected())]).fit(X, y)
    assert not spent


def test_solvers_for_a_stated_number_of_records_work_in_a_pipeline():
    X, y = planted(n=1500)
    told = {"bounds": None, "row_norm": 3.0, "n_records": 1500, "solver": PNSGD(zeroed=True)}
    assert pipeline(**told).fit(X, y).cost_.epsilon(2e-7) <= 1.0


def test_pipelines_are_pipelines():
    X, y = planted()
    both = PrivatePipeline([("inner", Pipeline([("scale", scale())])), ("components", PCA(1, bounds=(-3, 3)))])
    assert both.fit_transform(X).shape == (4000, 1)
    assert both.get_feature_names_out().tolist() == ["pca0"]
    assert len(both.report_.releases) == 4
    assert clone(both).get_params()["inner__scale__epsilon"] == 0.3
    assert not hasattr(pipeline(), "fit_transform")
    clusters = PrivatePipeline([("scale", scale()), ("clusters", KMeans(2, bounds=(-3, 3)))])
    assert clusters.fit_predict(X).shape == (4000,)
    assert not clusters.needs_target
    assert pipeline().needs_target
    assert pipeline().fit(pd.DataFrame(X, columns=["a", "b"]), y).feature_names_in_.tolist() == ["a", "b"]


def test_the_price_of_a_whole_is_shared_as_the_steps_state_theirs():
    X, y = planted()
    for base, size in ((Cost.gaussian(2.0), Cost.gdp), (Cost.pure(1.0), Cost.pure_epsilon)):
        fitted = pipeline().priced(base).fit(X, y)
        assert size(fitted.cost_) == pytest.approx(size(base), rel=1e-6)
        assert size(fitted.cost_) <= size(base)
        assert size(fitted["scale"].cost_) / size(fitted["model"].cost_) == pytest.approx(0.3 / 0.7, rel=1e-6)


def test_the_cost_of_what_was_not_paid_for_cannot_be_stated():
    X, y = planted(n=500)
    leaking = make_pipeline(UnprotectedScaler(), model()).fit(X, y)
    with pytest.raises(InvalidArgument, match=r"nobody pays for that; use discreet\.learning\.StandardScaler"):
        total_cost(leaking)
    with pytest.raises(InvalidArgument, match="no part of it"):
        total_cost(make_pipeline(Normalizer()).fit(X))
    with pytest.raises(NotFittedError):
        total_cost(scale())
    columns = ColumnTransformer([("a", scale(), [0]), ("b", scale(), [1])]).fit(X)
    assert total_cost(columns) == 2 * scale().fit(X[:, :1]).cost_
    union = FeatureUnion([("a", scale()), ("b", PolynomialFeatures())]).fit(X)
    assert total_cost(union) == scale().fit(X).cost_


def test_a_search_may_be_the_last_step():
    X, y = planted()
    search = PrivateSearchCV(model(), {"alpha": [0.1, 10.0]}, epsilon=2.0, delta=1e-7)
    fitted = PrivatePipeline([("scale", scale()), ("search", search)]).fit(X, y)
    assert fitted.cost_.epsilon(2e-7) <= 2.3 + 1e-6
