"""Models on the curator's budget: rows by SQL, one record a unit, paid before a row is read."""

import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget, BudgetExceeded, Cost, Curator, InvalidArgument, QueryFailed, QueryRefused
from discreet.learning import LogisticRegression
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


def test_a_price_in_mu_is_charged_as_it_is():
    with curator(mu=1.0) as desk:
        desk.fit(model(cost=Cost.gaussian_dp(0.5)), QUESTION, target="y")
        assert desk.remaining == pytest.approx(np.sqrt(1 - 0.25), rel=1e-6)


def test_every_person_gives_one_record_and_all_rows_have_the_same_chance():
    with curator(people(n=300)) as desk:
        records = records_of("SELECT hours, age, city AS y FROM people", "y", desk.tables)
        assert records.features == ("hours", "age")
        picked = [records.read(desk._engine) for _ in range(30)]
        for X, y in picked:
            assert X.shape == (300, 2)
            assert set(y.tolist()) <= {"a", "b"}
            assert len(np.unique(X[:, 1])) == 300  # the age is the person's
        hours = np.array([np.sort(X[:, 0]).sum() for X, _ in picked])
        assert len(np.unique(hours)) > 1  # another row another time


def test_rows_with_null_are_left_out():
    table = pa.table({"person": [1, 2, 3, 4], "x": [1.0, None, 3.0, float("nan")], "y": [True, False, None, True]})
    with curator(table) as desk:
        X, y = records_of("SELECT x, y FROM people", "y", desk.tables).read(desk._engine)
        assert X.tolist() == [[1.0]]
        assert y.tolist() == [True]


def test_what_is_refused_by_the_budget_reads_no_row():
    with curator(epsilon=0.5, delta=1e-6) as desk:
        with pytest.raises(BudgetExceeded):
            desk.fit(model(epsilon=1.0), QUESTION, target="y")
        assert desk.remaining == pytest.approx(0.5)


def test_a_failure_on_the_data_stays_paid_and_says_nothing():
    with curator() as desk:
        before = desk.remaining
        with pytest.raises(QueryFailed) as failure:
            desk.fit(model(classes=["x", "z"]), QUESTION, target="y")
        assert "class" not in str(failure.value)
        assert desk.remaining < before


class Interrupted(LogisticRegression):
    """A model whose fit is stopped by hand."""

    def fit(self, X, y, *, charge=None):
        raise KeyboardInterrupt


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
        ("SELECT income > 80 AS y FROM people", "y", "a feature"),
        ("SELECT *, income > 80 AS y FROM people", "y", "name of its own"),
        ("SELECT age, COUNT(*) AS n, income > 80 AS y FROM people GROUP BY age, y", "y", "aggregate"),
        ("SELECT n, y FROM (SELECT city AS y, SUM(age) AS n FROM people GROUP BY city) AS t", "y", "aggregate"),
        ("SELECT age, hours, income > 80 AS y FROM people LIMIT 5", "y", "LIMIT"),
        ("SELECT age, ROW_NUMBER() OVER () AS r, income > 80 AS y FROM people", "y", "window"),
        ("SELECT wage, income > 80 AS y FROM people", "y", "wage"),
        ("DELETE FROM people", "y", "SELECT"),
        ("SELECT FROM", "y", "SQL"),
    ],
)
def test_bad_questions_are_refused_before_anything_is_paid(text, target, word):
    with curator() as desk:
        before = desk.remaining
        with pytest.raises(QueryRefused, match=word):
            desk.fit(model(), text, target=target)
        assert desk.remaining == before


def test_what_is_no_private_model_is_refused():
    from sklearn.linear_model import LogisticRegression as Unprotected

    with curator() as desk, pytest.raises(InvalidArgument, match=r"discreet\.learning"):
        desk.fit(Unprotected(), QUESTION, target="y")
    with curator() as desk, pytest.raises(InvalidArgument, match="epsilon"):
        desk.fit(model(epsilon=-1.0), QUESTION, target="y")
