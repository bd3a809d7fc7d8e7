"""Models on the curator's budget: rows by SQL, one record a unit, paid before a row is read."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, PolynomialFeatures
from sklearn.preprocessing import StandardScaler as UnprotectedScaler

from discreet import Budget, BudgetExceeded, Cost, Curator, InvalidArgument, QueryFailed, QueryRefused
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
    StandardScaler,
)
from discreet.learning.convex import PNSGD
from discreet.query.records import records_of

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")


def people(n=4000, visits=3, seed=0):
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n), visits)
    age = rng.uniform(20, 80, n)[person]
    hours = rng.uniform(0, 60, n * visits)
    income = age + hours + rng.normal(0, 5, n * visits)
    return pa.table(
        {"person": person, "age": age, "hours": hours, "income": income, "city": ["a", "b"] * (n * visits // 2)}
    )


def curator(table=None, **budget):
    return Curator.open(
        {"people": people() if table is None else table},
        unit="person",
        budget=Budget(**(budget or {"epsilon": 3.0, "delta": 1e-6})),
    )


def model(**changes):
    given = {"epsilon": 1.0, "delta": 1e-7, "bounds": [(20, 80), (0, 60)], "classes": [False, True], **changes}
    return LogisticRegression(**given)


QUESTION = "SELECT age, hours, income > 80 AS y FROM people"


def test_a_model_is_fitted_to_rows_and_paid_from_the_budget():
    with curator() as desk:
        before = desk.remaining
        fitted = desk.fit(model(), QUESTION, target="y")
        assert fitted.coef_.shape == (1, 2)
        assert (fitted.coef_ > 0).all()
        assert desk.remaining < before
        assert desk.spent.epsilon(1e-6) >= fitted.cost_.epsilon(1e-6) * (1 - 1e-9)


EACH = "SELECT person, AVG(age) AS age, SUM(hours) / 3 AS hours, MAX(income) AS income FROM people GROUP BY person"
FIRST = "ROW_NUMBER() OVER (PARTITION BY person ORDER BY hours) = 1"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT age, hours, income > 80 AS y FROM ({EACH}) AS each",
        "SELECT AVG(age) AS age, AVG(hours) AS hours, MAX(income) > 80 AS y FROM people GROUP BY person",
        "SELECT age, LAG(hours) OVER (PARTITION BY person ORDER BY hours) AS hours, income > 80 AS y FROM people",
        f"SELECT age, hours, income > 80 AS y FROM people QUALIFY {FIRST}",
    ],
    ids=["subquery", "groups", "window", "first"],
)
def test_a_model_is_fitted_to_what_is_computed_for_each_person(text):
    table = people()
    connection = duckdb.connect()
    connection.register("people", table)
    true = connection.sql(text).fetchnumpy()
    with curator(table) as desk:
        X, y = records_of(text, "y", desk.tables).read(desk._data.engine)
        assert len(X) == len(y) == 4000
        rows = np.column_stack([true["age"], np.ma.filled(true["hours"], np.nan)]).round(4).tolist()
        assert {tuple(row) for row in X.round(4).tolist()} <= {tuple(row) for row in rows}
        assert (desk.fit(model(), text, target="y").coef_ > 0).any()


@pytest.mark.parametrize(
    "fitted",
    [
        model(bounds={"hours": (0, 60), "age": (20, 80)}),
        PrivateSearchCV(model(bounds={"hours": (0, 60), "age": (20, 80)}), {"alpha": [1.0, 10.0]}, epsilon=1.5),
        Pipeline(
            [
                ("scale", StandardScaler(epsilon=0.5, bounds={"hours": (0, 60), "age": (20, 80)})),
                ("model", LogisticRegression(epsilon=0.5, bounds=(-3, 3), classes=[False, True])),
            ]
        ),
    ],
    ids=["model", "search", "pipeline"],
)
def test_bounds_are_stated_by_the_names_of_the_select(fitted):
    table = people()
    with curator(table, epsilon=3.0, delta=1e-5) as desk:
        found = desk.fit(fitted, QUESTION, target="y")
    X = np.column_stack([table["age"], table["hours"]])
    assert np.mean(found.predict(X) == (table["income"].to_numpy() > 80)) > 0.8


def test_bounds_by_a_name_that_the_select_has_not_cost_nothing():
    with curator() as desk:
        with pytest.raises(InvalidArgument, match="hours"):
            desk.fit(model(bounds={"our": (0, 60), "age": (20, 80)}), QUESTION, target="y")
        assert desk.remaining == 3.0


def test_a_price_in_mu_is_charged_as_it_is():
    with curator(mu=1.0) as desk:
        desk.fit(model(cost=Cost.gaussian_dp(0.5)), QUESTION, target="y")
        assert desk.remaining == pytest.approx(np.sqrt(1 - 0.25), rel=1e-6)


def test_every_person_gives_one_record_and_all_rows_have_the_same_chance():
    with curator(people(n=300)) as desk:
        records = records_of("SELECT hours, age, city AS y FROM people", "y", desk.tables)
        assert records.features == ("hours", "age")
        picked = [records.read(desk._data.engine) for _ in range(30)]
        for X, y in picked:
            assert X.shape == (300, 2)
            assert set(y.tolist()) <= {"a", "b"}
            assert len(np.unique(X[:, 1])) == 300  # the age is the person's
        hours = np.array([np.sort(X[:, 0]).sum() for X, _ in picked])
        assert len(np.unique(hours)) > 1  # another row another time


def test_rows_with_null_are_left_out():
    table = pa.table({"person": [1, 2, 3, 4], "x": [1.0, None, 3.0, float("nan")], "y": [True, False, None, True]})
    with curator(table) as desk:
        X, y = records_of("SELECT x, y FROM people", "y", desk.tables).read(desk._data.engine)
        assert X.tolist() == [[1.0]]
        assert y.tolist() == [True]


@pytest.mark.parametrize("longest", [100, 101, 30_000_000])
def test_no_label_is_so_long_that_there_is_no_room_for_the_others(longest):
    n = 100_000  # an array of them would have as many characters for each
    table = pa.table({"person": range(n), "x": [0.5] * n, "y": ["a", "b"] * (n // 2 - 1) + ["a", "c" * longest]})
    with curator(table) as desk:
        X, y = records_of("SELECT x, y FROM people", "y", desk.tables).read(desk._data.engine)
        assert len(X) == len(y) == n - (longest > 100)
        fitted = desk.fit(
            LogisticRegression(epsilon=1.0, delta=1e-7, bounds=(0, 1), classes=["a", "b"]),
            "SELECT x, y FROM people",
            target="y",
        )
        assert fitted.classes_.tolist() == ["a", "b"]


def test_what_is_refused_by_the_budget_reads_no_row():
    with curator(epsilon=0.5, delta=1e-6) as desk:
        with pytest.raises(BudgetExceeded):
            desk.fit(model(epsilon=1.0), QUESTION, target="y")
        assert desk.remaining == pytest.approx(0.5)


class Broken(LogisticRegression):
    """A model that fails on rows of people, and says what it saw."""

    def fit(self, X, y, *, charge=None):
        if X.any():
            raise ValueError(f"somebody is {X[0, 0]} years old")
        return super().fit(X, y, charge=charge)


def test_a_failure_on_the_data_stays_paid_and_says_nothing():
    with curator() as desk:
        before = desk.remaining
        given = {"epsilon": 1.0, "delta": 1e-7, "bounds": (0, 80), "classes": [False, True]}
        with pytest.raises(QueryFailed) as failure:
            desk.fit(Broken(**given), QUESTION, target="y")
        assert "years" not in str(failure.value)
        assert failure.value.__context__ is None
        assert desk.remaining < before


class Interrupted(LogisticRegression):
    """A model whose fit is stopped by hand, once it has rows of people and not the zeros of a rehearsal."""

    def fit(self, X, y, *, charge=None):
        if X.any():
            raise KeyboardInterrupt
        return super().fit(X, y, charge=charge)


def test_an_interrupted_fit_stays_paid():
    with curator() as desk:
        before = desk.remaining
        given = {"epsilon": 1.0, "delta": 1e-7, "bounds": (0, 80), "classes": [False, True]}
        with pytest.raises(KeyboardInterrupt):
            desk.fit(Interrupted(**given), QUESTION, target="y")
        assert desk.remaining < before


@pytest.mark.parametrize(
    ("text", "target", "word"),
    [
        ("SELECT age, hours FROM people", "y", "no column 'y'"),
        ("SELECT age, city FROM people", None, "'city' must be a number, and it is a text"),
        ("SELECT city, hours AS y FROM people", "y", "'city' must be a number, and it is a text"),
        ("SELECT age, DATE '2020-01-01' AS y FROM people", "y", "target 'y' is a date"),
        ("SELECT age, person AS y FROM people", "y", "says who it is"),
        ("SELECT age AS a, age AS b FROM people", None, "same"),
        ("SELECT age, age AS AGE FROM people", None, "name of its own"),
        ("SELECT 1 AS a, 2 AS y", "y", "no rows of people"),
        ("SELECT age, hours FROM people ORDER BY age", None, "ORDER BY"),
        ("SELECT age, hours FROM people OFFSET 5", None, "OFFSET"),
        ("SELECT age, hours FROM (SELECT DISTINCT age, hours FROM people) AS q", None, "DISTINCT"),
        ("SELECT age, hours FROM people OPTIONS (epsilon = 1)", None, "OPTIONS"),
        ("SELECT income > 80 AS y FROM people", "y", "a feature"),
        ("SELECT *, income > 80 AS y FROM people", "y", "name of its own"),
        ("SELECT age, COUNT(*) AS n, income > 80 AS y FROM people GROUP BY age, y", "y", "aggregate"),
        ("SELECT n, y FROM (SELECT city AS y, SUM(age) AS n FROM people GROUP BY city) AS t", "y", "aggregate"),
        ("SELECT age, hours, income > 80 AS y FROM people LIMIT 5", "y", "LIMIT"),
        ("SELECT age, ROW_NUMBER() OVER () AS r, income > 80 AS y FROM people", "y", "several people"),
        ("SELECT wage, income > 80 AS y FROM people", "y", "wage"),
        ("DELETE FROM people", "y", "SELECT"),
        ("SELECT FROM", "y", "SQL"),
    ],
)
def test_bad_questions_are_refused_before_anything_is_paid(text, target, word):
    with curator() as desk:
        before = desk.remaining
        with pytest.raises(QueryRefused, match=word) as refused:
            desk.fit(model() if target else KMeans(2, bounds=(0, 80)), text, target=target)
        assert desk.remaining == before
        assert 'SUM("' not in str(refused.value)
        if refused.value.snippet:  # it points into what the analyst wrote, as it was written
            line, mark = refused.value.snippet.split("\n")
            assert line == text
            assert text[refused.value.column - 1] == line[mark.index("^")]


def test_what_is_no_private_model_is_refused():
    from sklearn.linear_model import LogisticRegression as Unprotected

    with curator() as desk, pytest.raises(InvalidArgument, match=r"discreet\.learning"):
        desk.fit(Unprotected(), QUESTION, target="y")
    with curator() as desk, pytest.raises(InvalidArgument, match="epsilon"):
        desk.fit(model(epsilon=-1.0), QUESTION, target="y")


UNSUPERVISED = {
    "k-means": KMeans(3, epsilon=1.0, delta=1e-7, bounds=(0, 1)),
    "components": PCA(epsilon=1.0, delta=1e-7, bounds=(0, 1)),
    "scaler": StandardScaler(epsilon=1.0, delta=1e-7, bounds=(0, 1)),
    "scaler that buys": StandardScaler(epsilon=1.0, delta=1e-7, bounds="private"),
    "pipeline of scikit-learn": Pipeline(
        [
            ("scale", StandardScaler(epsilon=1.0, delta=1e-7, bounds="private")),
            ("powers", PolynomialFeatures(3)),
            ("clusters", KMeans(3, epsilon=1.0, delta=1e-7, bounds=(-3, 3), row_norm="private")),
        ]
    ),
}
PIPELINE = PrivatePipeline(
    [
        ("scale", StandardScaler(epsilon=1.0, delta=1e-7, bounds=(0, 1))),
        ("powers", PolynomialFeatures(3)),
        ("parts", OneHotEncoder(categories=[[0, 1]] * 4, handle_unknown="ignore", sparse_output=False)),
        ("model", LogisticRegression(epsilon=1.0, delta=1e-7, bounds=(0, 1), classes=[0, 1])),
    ]
)
MODELS = {
    "pipeline": PIPELINE,
    "search over a pipeline": PrivateSearchCV(PIPELINE, {"model__alpha": [0.1, 1.0]}, epsilon=2.0, delta=1e-6),
    "logistic": LogisticRegression(epsilon=1.0, delta=1e-7, bounds=(0, 1), classes=[0, 1]),
    "buying": LogisticRegression(epsilon=1.0, delta=1e-7, bounds="private", row_norm="private", classes=[0, 1]),
    "three classes": LogisticRegression(epsilon=1.0, delta=1e-7, bounds=(0, 1), classes=[0, 1, 5]),
    "pure": LogisticRegression(epsilon=1.0, delta=0.0, bounds=(0, 1), classes=[0, 1]),
    "svc": LinearSVC(epsilon=1.0, delta=1e-7, bounds=(0, 1), classes=[0, 1, 5]),
    "naive Bayes": GaussianNB(epsilon=1.0, delta=1e-7, bounds=(0, 1), classes=[0, 1]),
    "least squares": LinearRegression(epsilon=1.0, delta=1e-7, bounds="private", target_bounds="private"),
    "poisson": PoissonRegressor(epsilon=1.0, delta=1e-7, bounds=(0, 1), most=3),
    "k-means": KMeans(3, epsilon=1.0, delta=1e-7, bounds=(0, 1)),
    "components": PCA(epsilon=1.0, delta=1e-7, bounds=(0, 1)),
    "scaler": StandardScaler(epsilon=1.0, delta=1e-7, bounds=(0, 1)),
    "search": PrivateSearchCV(
        LogisticRegression(bounds=(0, 1), classes=[0, 1]), {"alpha": [0.1, 1.0]}, epsilon=2.0, delta=1e-6
    ),
} | {
    f"solver {name}": LogisticRegression(epsilon=1.0, delta=1e-7, bounds=(0, 1), classes=[0, 1], solver=name)
    for name in ("descent", "functional", "leader", "localization", "objective", "output")
}
ONE_PERSON = [
    "SELECT x, y FROM people WHERE person = 7",
    "SELECT x, y FROM people WHERE person = -7",
    "SELECT x, CASE WHEN person = 7 THEN -3 ELSE y END AS y FROM people",
    "SELECT CASE WHEN person = 7 THEN 1.7e308 ELSE x END AS x, y FROM people",
    "SELECT x, CASE WHEN person = 7 THEN 0.5 ELSE y END AS y FROM people",
    "SELECT x, CASE WHEN person = 7 THEN CAST('nan' AS DOUBLE) ELSE y END AS y FROM people",
]


@pytest.mark.parametrize("name", MODELS)
def test_no_person_decides_whether_a_fit_succeeds(name):
    table = pa.table({"person": np.arange(60), "x": np.linspace(0, 1, 60), "y": np.arange(60) % 2})
    with curator(table, epsilon=20.0, delta=1e-4) as desk:
        for text in ONE_PERSON:
            desk.fit(clone(MODELS[name]), text, target="y")


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_no_person_decides_whether_a_fit_without_a_target_succeeds(name):
    table = pa.table({"person": np.arange(60), "x": np.linspace(0, 1, 60), "y": np.arange(60) % 2})
    with curator(table, epsilon=20.0, delta=1e-4) as desk:
        for text in ONE_PERSON:
            desk.fit(clone(UNSUPERVISED[name]), text)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", people())
        connection.execute("CREATE TABLE people AS FROM given")
    return path


def test_models_without_a_target_are_fitted_to_a_database_on_one_budget(database):
    bounds, price = [(20, 80), (0, 60)], {"epsilon": 1.0, "delta": 1e-8}
    text = "SELECT age, hours FROM people"
    with Curator.open(database, unit="person", budget=Budget(epsilon=3.5, delta=1e-6)) as desk:
        scaler = desk.fit(StandardScaler(bounds=bounds, **price), text)
        assert scaler.mean_ == pytest.approx([50, 30], abs=3)
        components = desk.fit(PCA(1, bounds=bounds, **price), text)
        assert components.components_.shape == (1, 2)
        clusters = desk.fit(KMeans(2, bounds=bounds, **price), text, reason="clusters")
        assert clusters.cluster_centers_.shape == (2, 2)
        with pytest.raises(BudgetExceeded):
            desk.fit(StandardScaler(bounds=bounds, **price), text)
        assert desk.spent == 3 * Cost.approximate(1.0, 1e-8)
    with Curator.open(database, unit="person") as desk:  # the ledger is a file beside the data
        assert desk.spent == 3 * Cost.approximate(1.0, 1e-8)
        assert [entry.what for entry in desk.ledger.entries(kind="reserve")][-1] == "clusters"
        assert desk.ledger.verify()


def test_a_pipeline_of_scikit_learn_is_fitted_and_all_its_steps_are_charged(database):
    steps = [
        ("scale", StandardScaler(epsilon=0.5, delta=1e-7, bounds=[(20, 80), (0, 60)])),
        ("model", LogisticRegression(epsilon=1.0, delta=1e-7, bounds=(-2, 2), classes=[False, True])),
    ]
    with Curator.open(database, unit="person", budget=Budget(epsilon=3.0, delta=1e-6)) as desk:
        given = Pipeline(steps)
        fitted = desk.fit(given, QUESTION, target="y")
        assert isinstance(fitted, PrivatePipeline)
        assert desk.spent == Cost.approximate(0.5, 1e-7) + Cost.approximate(1.0, 1e-7)
        assert fitted.cost_.epsilon(2e-7) <= 1.5
        assert (fitted["model"].coef_ > 0).all()
        assert given.predict([[80.0, 60.0], [20.0, 0.0]]).tolist() == [True, False]  # the steps are the same objects


LEAKING = ("scale", UnprotectedScaler())
LAST = ("model", model(bounds=(-2, 2)))


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (Pipeline([LEAKING, LAST]), r"discreet\.learning\.StandardScaler"),
        (Pipeline([("log", FunctionTransformer(np.log1p)), LAST]), "into the SELECT"),
        (Pipeline([("parts", OneHotEncoder(categories=[[0, 1]] * 2, sparse_output=False)), LAST]), "handle_unknown"),
        (Pipeline([("reduce", PCA(3, bounds=(0, 80))), LAST]), "reduce: n_components"),
        (Pipeline([LEAKING]), r"model of discreet\.learning"),
        (PrivateSearchCV(Pipeline([LEAKING, LAST]), {"model__alpha": [1.0]}), r"discreet\.learning\.StandardScaler"),
        (PrivateSearchCV(Pipeline([LAST]), {"model__bounds": [(-1, 1), None]}), "model: bounds"),
        (
            PrivateSearchCV(Pipeline([("log", FunctionTransformer(np.log1p)), LAST]), {"model__alpha": [1.0]}),
            "into the SELECT",
        ),
        (Pipeline([("names", ColumnTransformer([("a", Normalizer(), ["age"])])), LAST]), "names: ColumnTransformer"),
        (PrivateSearchCV(model(), {"alfa": [1.0]}), "did you mean 'alpha'"),
        (PrivateSearchCV(model(), {"classes": [["x", "z"]]}), "the classes are of dtype"),
        (model(classes=["x", "z"]), "the classes are of dtype"),
    ],
)
def test_pipelines_and_searches_that_cannot_be_right_cost_nothing(wrong, word):
    with curator() as desk:
        with pytest.raises(InvalidArgument, match=word):
            desk.fit(wrong, QUESTION, target="y")
        assert desk.spent == Cost.zero()


@pytest.mark.parametrize("target", [5, ["y"], b"y"])
def test_a_target_is_named_by_a_text(target):
    with curator() as desk:
        with pytest.raises(InvalidArgument, match=r"target = .* name one column"):
            desk.fit(model(), QUESTION, target=target)
        with pytest.raises(InvalidArgument, match="reason = 5"):
            desk.fit(model(), QUESTION, target="y", reason=5)
        assert list(desk.ledger.entries(kind="reserve")) == []


def test_a_model_that_learns_a_target_needs_one():
    search = PrivateSearchCV(model(), {"alpha": [0.1, 1.0]}, epsilon=2.0, delta=1e-6)
    with curator() as desk:
        for one in (model(), LinearRegression(bounds=(0, 80), target_bounds=(0, 1)), Pipeline([LAST]), search):
            with pytest.raises(InvalidArgument, match="name the column"):
                desk.fit(one, QUESTION)
        with pytest.raises(InvalidArgument, match="pass a SELECT"):
            desk.fit(model(), 3, target="y")
        assert desk.spent == Cost.zero()


@pytest.mark.parametrize("records", [59, 60])
def test_a_solver_that_shows_the_number_of_records_is_refused_whatever_it_is(records):
    table = pa.table({"person": np.arange(60), "x": np.linspace(0, 1, 60), "y": np.arange(60) % 2})
    told = {"bounds": (0, 1), "row_norm": 1.0, "classes": [0, 1], "n_records": records}
    with curator(table) as desk:
        before = desk.remaining
        with pytest.raises(InvalidArgument, match="would be public"):
            desk.fit(model(solver=PNSGD(zeroed=True, public=58), **told), "SELECT x, y FROM people", target="y")
        assert desk.remaining == before


@pytest.mark.parametrize(("units", "people"), [(["a", "a\0", "b"], 3), ([2**62, 2**62 + 1, 2**62], 2)])
def test_who_is_the_same_person_is_as_in_questions(units, people):
    table = pa.table({"person": units, "x": [0.1, 0.2, 0.3], "y": [0, 1, 0]})
    with curator(table) as desk:
        X, _ = records_of("SELECT x, y FROM people", "y", desk.tables).read(desk._data.engine)
        assert len(X) == people


def test_a_row_that_is_a_unit_gives_one_record():
    table = pa.table({"x": [0.1, 0.2], "y": [0, 1]})
    twice = "SELECT x, y FROM (SELECT x, y FROM people UNION ALL SELECT x, y FROM people) AS q"
    with Curator.open({"people": table}, unit="row", budget=Budget(epsilon=1.0)) as desk:
        assert len(records_of("SELECT x, y FROM people", "y", desk.tables).read(desk._data.engine)[0]) == 2
        with pytest.raises(QueryRefused, match="several records"):
            records_of(twice, "y", desk.tables)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("DOUBLE", "f"), ("DECIMAL(9, 2)", "f"), ("BIGINT", "i"), ("BOOLEAN", "b"), ("VARCHAR", "U")]
)
@pytest.mark.parametrize("who", [1, -1])
def test_the_dtype_of_the_target_depends_on_its_type_alone(kind, dtype, who):
    table = pa.table({"person": [1, 2], "x": [0.1, 0.2], "y": [0, 1]})
    with curator(table) as desk:
        text = f"SELECT x, CAST(y AS {kind}) AS y FROM people WHERE person = {who}"
        _, y = records_of(text, "y", desk.tables).read(desk._data.engine)
        assert (y.dtype.kind, len(y)) == (dtype, int(who == 1))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bounds": None}, "State what is known"),
        ({"bounds": [(20, 80)]}, "for all 2 columns"),
        ({"bounds": (5, 1)}, "low < high"),
        ({"classes": None}, "must not come from the data"),
        ({"classes": [True]}, "at least two classes"),
        ({"solver": "objectiv"}, "did you mean 'objective'"),
        ({"solver": "statistics"}, "use another solver"),
        ({"alpha": -1.0}, "number >= 0"),
    ],
)
def test_what_is_wrong_whatever_the_data_are_is_said_and_costs_nothing(wrong, said):
    with curator() as desk:
        with pytest.raises(InvalidArgument, match=said):
            desk.fit(model(**wrong), QUESTION, target="y")
        assert desk.spent == Cost.zero()
        assert not list(desk.ledger.entries(kind="reserve"))
