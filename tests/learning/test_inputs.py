"""Tables and targets that cannot be read are refused in words that show no value, no count and no advice that costs."""

from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone

from discreet import Budget, Cost, Filter, Odometer
from discreet.errors import InvalidArgument
from discreet.learning import (
    PCA,
    GaussianNB,
    KMeans,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    PrivatePipeline,
    PrivateSearchCV,
    Ridge,
    StandardScaler,
)
from discreet.learning.convex import PNSGD
from discreet.learning.estimator import EPSILON

SECRET = 123.456789
ROWS = np.full((37, 2), SECRET)
LABELS = np.arange(37) % 2

MODELS = [
    LogisticRegression(bounds=(0, 200), classes=[0, 1]),
    LinearSVC(bounds=(0, 200), classes=[0, 1]),
    GaussianNB(bounds=(0, 200), classes=[0, 1]),
    LinearRegression(bounds=(0, 200), target_bounds=(0, 1)),
    Ridge(bounds=(0, 200), target_bounds=(0, 1)),
    PoissonRegressor(bounds=(0, 200), most=1),
    StandardScaler(bounds=(0, 200)),
    PCA(bounds=(0, 200)),
    KMeans(2, bounds=(0, 200)),
]

UNREADABLE = {
    "one dimension": (ROWS[:, 0], "reshape"),
    "complex numbers": (ROWS + 1j, "complex"),
    "text": (np.full((37, 2), f"{SECRET} mg"), "numeric"),
    "a date": (pd.DataFrame({"a": ROWS[:, 0], "b": pd.Timestamp("2020-01-01")}), "numeric"),
    "missing": (np.where(np.eye(37, 2), np.nan, ROWS), "public numbers"),
    "infinite": (np.where(np.eye(37, 2), np.inf, ROWS), "infinity"),
    "sparse": (scipy.sparse.csr_matrix(ROWS), "toarray"),
    "a sparse array": (scipy.sparse.coo_array(ROWS), "toarray"),
    "sparse by keys": (scipy.sparse.dok_matrix(ROWS), "toarray"),
    "a sparse frame": (pd.DataFrame({"a": pd.arrays.SparseArray(ROWS[:, 0])}), "toarray"),
    "a mapping": ({"a": ROWS[:, 0]}, "pandas.dataframe"),
    "a lazy frame": (pl.DataFrame(ROWS).lazy(), "collect"),
    "text in Polars": (pl.DataFrame({"a": [f"{SECRET} mg"] * 37}), "numbers"),
    "nothing in Polars": (pl.DataFrame({"a": [None, *ROWS[1:, 0]]}), "public numbers"),
    "nothing in Arrow": (pa.table({"a": [None, *ROWS[1:, 0]]}), "public numbers"),
}


NAMED = pd.DataFrame({"age": ROWS[:, 0], "town": "Bonn", "born": pd.Timestamp("2020-01-01")})


@pytest.mark.parametrize("table", [NAMED, NAMED[["age", "town"]], pa.Table.from_pandas(NAMED), pl.DataFrame(NAMED)])
def test_columns_that_are_no_numbers_are_named(table):
    with pytest.raises(InvalidArgument, match=r"encode text and dates by public rules\. Look at 'town'") as refused:
        KMeans(2, bounds=(0, 200)).fit(table)
    assert "age" not in str(refused.value)
    assert "Bonn" not in str(refused.value)


SEARCH = PrivateSearchCV(MODELS[0], {"alpha": [1.0, 10.0]}, epsilon=3.0)


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("estimator", [*MODELS, SEARCH], ids=lambda model: type(model).__name__)
def test_what_cannot_be_read_is_refused_without_a_value_or_a_count(estimator, kind):
    table, said = UNREADABLE[kind]
    spent = []
    with pytest.raises(InvalidArgument) as refused:
        estimator.fit(table, LABELS, charge=lambda cost, *, reason: spent.append(cost))
    assert not spent
    text = str(refused.value)
    assert said in text.lower()
    assert "123" not in text
    assert "37" not in text
    assert "sklearn" not in text


@pytest.mark.parametrize("estimator", MODELS[:6], ids=lambda model: type(model).__name__)
def test_targets_of_another_length_or_shape_are_refused_without_a_count(estimator):
    for targets in (LABELS[:-1], np.column_stack([LABELS, LABELS])):
        with pytest.raises(InvalidArgument) as refused:
            estimator.fit(ROWS, targets)
        assert "37" not in str(refused.value)
        assert "36" not in str(refused.value)


@pytest.mark.parametrize("estimator", MODELS[3:6], ids=lambda model: type(model).__name__)
def test_text_is_no_target_of_a_regression(estimator):
    with pytest.raises(InvalidArgument, match="pass numbers"):
        estimator.fit(ROWS, np.array(["no", "yes"])[LABELS])


@pytest.mark.parametrize("estimator", MODELS, ids=lambda model: type(model).__name__)
def test_an_epsilon_that_protects_nobody_is_refused_as_it_was_passed(estimator):
    spent = []
    with pytest.raises(InvalidArgument, match=r"epsilon = 1000000\.0 .* above 600"):
        type(estimator)(**{**estimator.get_params(), "epsilon": 1e6}).fit(
            ROWS, LABELS, charge=lambda cost, *, reason: spent.append(cost)
        )
    assert not spent


@pytest.mark.parametrize("estimator", [*MODELS, SEARCH], ids=lambda model: type(model).__name__)
def test_a_seed_is_refused_outside_tests_before_a_row_is_read(estimator, monkeypatch):
    seeded = clone(estimator).set_params(random_state=7)
    monkeypatch.delenv("PYTEST_VERSION")
    for one in (seeded, PrivatePipeline([("model", seeded)])):
        with pytest.raises(InvalidArgument, match="noise that can be repeated protects nobody"):
            one.fit("no table at all", None)
        with pytest.raises(InvalidArgument, match="noise that can be repeated protects nobody"):
            _ = one.price


@pytest.mark.parametrize("estimator", [*MODELS, SEARCH], ids=lambda model: type(model).__name__)
def test_a_filter_pays_for_every_release(estimator):
    wallet = Filter(Budget(epsilon=10.0, delta=1e-4))
    fitted = clone(estimator).fit(ROWS, LABELS, charge=wallet.charge)
    assert wallet.spent == fitted.cost_
    spent = Odometer(delta=1e-6)
    with pytest.raises(InvalidArgument, match="a function such as"):
        clone(estimator).fit(ROWS, LABELS, charge=spent)
    assert clone(estimator).fit(ROWS, LABELS, charge=spent.charge).cost_ == spent.spent


NAMES = np.array(["no", "yes"])[LABELS]

WRITTEN = {
    "objects": (NAMES.astype(object), ["no", "yes"]),
    "a pandas column": (pd.Series(NAMES), ["no", "yes"]),
    "pandas text": (pd.Series(NAMES, dtype="string"), ["no", "yes"]),
    "a pandas category": (pd.Series(NAMES, dtype="category"), ["no", "yes"]),
    "an Arrow column": (pa.array(NAMES), ["no", "yes"]),
    "a list": (NAMES.tolist(), {"no", "yes"}),
    "bytes of images": (LABELS.astype(np.uint8), [0, 1]),
    "truth values": (LABELS.astype(bool), [0, 1]),
    "floats": (LABELS.astype(float), [False, True]),
    "numbers as objects": (LABELS.astype(object), [0, 1]),
    "classes as objects": (NAMES, np.array(["no", "yes"], dtype=object)),
}


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("estimator", MODELS[:3], ids=lambda model: type(model).__name__)
def test_labels_are_read_however_they_are_kept(estimator, kind):
    labels, classes = WRITTEN[kind]
    rows = np.column_stack([200 * LABELS, 100 + 0 * LABELS])
    fitted = clone(estimator).set_params(classes=classes, epsilon=100.0).fit(rows, labels)
    assert fitted.predict(rows).tolist() == np.asarray(labels).tolist()


@pytest.mark.parametrize("estimator", [*MODELS, SEARCH], ids=lambda model: type(model).__name__)
def test_a_price_is_stated_once(estimator):
    assert signature(type(estimator)).parameters["epsilon"].default == EPSILON
    for price in ({"cost": Cost.gaussian_dp(0.5)}, {"budget": Budget(epsilon=0.5, delta=1e-6)}):
        with pytest.raises(InvalidArgument, match=r"epsilon = 0\.1 is not allowed: .* leave one of them out"):
            clone(estimator).set_params(epsilon=0.1, **price).fit(ROWS, LABELS)
        for left_out in (EPSILON, None):
            cost = clone(estimator).set_params(epsilon=left_out, **price).price
            assert cost == clone(estimator).set_params(epsilon=EPSILON, **price).price


def test_numbers_and_texts_are_never_taken_for_each_other():
    mixed, missing = (np.array(["1"] * 36 + [last], dtype=object) for last in (1, None))
    for labels, classes in (
        (mixed, ["0", "1"]),
        (missing, ["0", "1"]),
        (LABELS, ["0", "1"]),
        (LABELS.astype(str), [0, 1]),
    ):
        with pytest.raises(InvalidArgument, match=r"the classes are of dtype .*; write both .* without a label"):
            LogisticRegression(bounds=(0, 200), classes=classes).fit(ROWS, labels)
    with pytest.raises(InvalidArgument, match="all text or all numbers"):
        LogisticRegression(bounds=(0, 200), classes=["1", None]).fit(ROWS, mixed)


@pytest.mark.parametrize("estimator", MODELS, ids=lambda model: type(model).__name__)
def test_a_rehearsal_passes_what_can_be_fitted_and_leaves_no_trace(estimator):
    fresh = clone(estimator)
    fresh.rehearse(2)
    assert vars(fresh) == vars(clone(estimator))
    with pytest.raises(InvalidArgument, match="for all 2 columns"):
        fresh.set_params(bounds=[(0, 1)] * 3).rehearse(2)


def test_a_search_is_rehearsed_with_the_classes_of_its_estimator():
    PrivateSearchCV(LogisticRegression(bounds=(0, 1), classes=["a", "b"]), {"alpha": [1.0, 10.0]}).rehearse(2)


COLUMNS = {"dose": ROWS[:, 0], "age": np.arange(37.0), "ill": LABELS.astype(bool)}
FRAMES = {
    "pandas": (pd.DataFrame(COLUMNS), pd.Series(LABELS)),
    "pandas without NumPy": (
        pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
        pd.Series(LABELS, dtype="int64[pyarrow]"),
    ),
    "pandas in another order": (pd.DataFrame(COLUMNS, index=range(37, 0, -1)), pd.Series(LABELS)),
    "Arrow": (pa.table(COLUMNS), pa.chunked_array([LABELS[:9], LABELS[9:]])),
    "Arrow batch": (pa.record_batch(COLUMNS), pa.array(LABELS)),
    "Polars": (pl.DataFrame(COLUMNS), pl.Series(LABELS)),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("estimator", [*MODELS, SEARCH], ids=lambda model: type(model).__name__)
def test_frames_of_all_kinds_are_read_with_their_names(estimator, kind):
    table, labels = FRAMES[kind]
    fitted = clone(estimator).fit(table, labels)
    assert fitted.feature_names_in_.tolist() == list(COLUMNS)
    use = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    assert np.array_equal(use(table), use(pd.DataFrame(COLUMNS)))


@pytest.mark.parametrize("estimator", [*MODELS, SEARCH], ids=lambda model: type(model).__name__)
def test_arrays_of_all_kinds_are_read(estimator):
    for table in (ROWS, np.asfortranarray(ROWS), ROWS.astype(np.float32), ROWS.astype(int), ROWS.tolist()):
        assert clone(estimator).fit(table, LABELS.tolist()).n_features_in_ == 2


@pytest.mark.parametrize("make", [pa.table, pa.record_batch])
def test_the_columns_of_an_arrow_table_are_known_by_their_names(make):
    table = make({"dose": ROWS[:, 0], "age": np.arange(37), "ill": LABELS.astype(bool)})
    fitted = StandardScaler(bounds=(0, 200)).fit(table)
    assert fitted.feature_names_in_.tolist() == ["dose", "age", "ill"]
    assert fitted.transform(table).shape == (37, 3)
    with pytest.raises(InvalidArgument, match="same order"):
        fitted.transform(table.select(["age", "dose", "ill"]))
    for other in (NAMES, pa.array([0] * 37, pa.timestamp("s")), [{"a": 1}] * 37):
        with pytest.raises(InvalidArgument, match=r"must be numeric.* Look at 'other'"):
            StandardScaler(bounds=(0, 200)).fit(make({"dose": ROWS[:, 0], "other": other}))


FRAME = pd.DataFrame({"dose": ROWS[:, 0], "age": np.arange(37.0)})


def unpaid(cost, *, reason):
    pytest.fail(f"{reason} was paid for")


BY_NAME = {
    "a dict": {"age": (0, 50), "dose": (0, 200)},
    "a series of pairs": pd.Series({"age": (0, 50), "dose": (0, 200)}),
    "a frame, a row for each": pd.DataFrame({"low": [0, 0], "high": [50, 200]}, index=["age", "dose"]),
    "a frame, a column for each": pd.DataFrame({"age": [0, 50], "dose": [0, 200]}),
}


@pytest.mark.parametrize("kind", BY_NAME)
@pytest.mark.parametrize("estimator", MODELS, ids=lambda model: type(model).__name__)
def test_bounds_are_read_by_the_names_of_columns(estimator, kind):
    seen = clone(estimator).set_params(bounds=[(0, 200), (0, 50)], random_state=3).fit(FRAME, LABELS)
    named = clone(estimator).set_params(bounds=BY_NAME[kind], random_state=3).fit(FRAME, LABELS)
    for name in ("coef_", "cluster_centers_", "mean_", "theta_"):
        assert np.array_equal(getattr(seen, name, 0), getattr(named, name, 0))


@pytest.mark.parametrize("estimator", [*MODELS[:1], *MODELS[5:7]], ids=lambda model: type(model).__name__)
def test_bounds_by_other_names_are_refused_before_anything_is_spent(estimator):
    wrong = {
        "did you mean 'dose'": {"age": (0, 50), "doze": (0, 200)},
        "for 'dose' as well": {"age": (0, 50)},
        "low < high": {"age": (50, 0), "dose": (0, 200)},
        "or the other way round": pd.DataFrame(np.zeros((3, 3))),
    }
    for said, bounds in wrong.items():
        with pytest.raises(InvalidArgument, match=said):
            clone(estimator).set_params(bounds=bounds).fit(FRAME, LABELS, charge=unpaid)
    with pytest.raises(InvalidArgument, match="have no names"):
        clone(estimator).set_params(bounds=BY_NAME["a dict"]).fit(ROWS, LABELS, charge=unpaid)


def test_bounds_by_name_go_with_purchases():
    frame = FRAME.assign(a=0.0, b=1.0, c=0.5)
    bounds = {**BY_NAME["a dict"], "a": (0, 1), "b": (0, 1), "c": (0, 1)}
    fitted = PoissonRegressor(bounds=bounds, most=1000, epsilon=50.0).fit(frame, LABELS)
    assert fitted.coef_.shape == (5,)


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        ("PNSGD", "did you mean 'pnsgd'"),
        ("PreconditionedDescent", "did you mean 'preconditioned'"),
        ("noisy gradient descent", "did you mean 'descent'"),
        ("objectiv", "did you mean 'objective'"),
        ("MultiEpochPNSGD", "pass an instance: MultiEpochPNSGD()"),
        (PNSGD, r"pass an instance, such as PNSGD\(\)"),
        (dict, "choose one of 'auto'"),
        ("newton", "'preconditioned', 'statistics', or pass a solver of discreet.learning.convex"),
        (None, "choose one of 'auto'"),
    ],
)
@pytest.mark.parametrize("estimator", [*MODELS[:2], *MODELS[3:6]], ids=lambda model: type(model).__name__)
def test_a_solver_that_is_none_is_refused_with_the_one_that_was_meant(estimator, solver, said):
    with pytest.raises(InvalidArgument, match=said):
        clone(estimator).set_params(solver=solver).fit(None, None)
