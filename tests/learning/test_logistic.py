"""Logistic regression: it learns, spends what it says, buys what it is not told, and refuses what it cannot protect."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import Budget, BudgetExceeded, Cost, Filter, InvalidArgument
from discreet.learning import LogisticRegression
from discreet.learning.choosing import SOLVERS


def planted(n=5000, d=3, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.argmax(X @ rng.standard_normal((d, classes)), axis=1)


def model(**changes):
    return LogisticRegression(**{"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], **changes})


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_it_learns_and_spends_what_it_was_given(adjacency):
    X, y = planted()
    fitted = model(adjacency=adjacency).fit(X, y)
    assert fitted.score(X, y) > 0.9
    assert fitted.cost_.adjacency == adjacency
    assert 0.99 < fitted.cost_.epsilon(1e-6) <= 1.0 + 1e-9
    assert fitted.predict_proba(X).sum(axis=1) == pytest.approx(1)


def test_three_classes_are_told_apart():
    X, y = planted(n=20_000, classes=3)
    fitted = model(classes=[0, 1, 2], epsilon=2.0).fit(X, y)
    assert fitted.coef_.shape == (3, 3)
    assert fitted.score(X, y) > 0.85
    assert (fitted.predict_proba(X).argmax(axis=1) == fitted.predict(X)).all()


def test_frames_and_arrow_tables_are_read():
    X, y = planted()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = model().fit(frame, pd.Series(y))
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.score(frame, y) > 0.9
    table = pa.table({name: X[:, i] for i, name in enumerate("abc")})
    assert model().fit(table, y).score(table, y) > 0.9


def test_it_works_in_a_pipeline():
    X, y = planted()
    assert make_pipeline(FunctionTransformer(), model()).fit(X, y).score(X, y) > 0.9


def test_everything_can_be_bought_and_is_in_the_report():
    X, y = planted(n=50_000)
    fitted = model(epsilon=4.0, bounds="private", classes="private", solver="leader").fit(X * [1.0, 1000.0, 1e-3], y)
    assert fitted.score(X * [1.0, 1000.0, 1e-3], y) > 0.85
    assert fitted.cost_.epsilon(1e-6) <= 4.0 + 1e-9
    text = str(fitted.report_)
    for word in ("number of records", "bounds of 3 columns", "list of classes", "epsilon = ", "Protects each record"):
        assert word in text
    assert json.loads(fitted.report_.to_json())["adjacency"] == "add-remove"
    assert Cost.from_dict(fitted.report_.to_dict()["cost"]) == fitted.cost_
    assert fitted.report_.to_markdown().startswith("### LogisticRegression")


def test_costs_and_budgets_are_other_ways_to_state_the_price():
    X, y = planted()
    assert model(cost=Cost.gaussian(2.0)).fit(X, y).cost_.gdp() == pytest.approx(0.5, rel=1e-6)
    assert model(budget=Budget(rho=0.125)).fit(X, y).cost_.zcdp() == pytest.approx(0.125, rel=1e-6)
    assert model(budget=Budget(epsilon=0.5, delta=1e-6)).fit(X, y).cost_.epsilon(1e-6) <= 0.5 + 1e-9


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "statistics"])
def test_every_solver_can_be_named(solver):
    X, y = planted(n=8000)
    fitted = model(epsilon=4.0, solver=solver, adjacency="replace-one").fit(X, y)
    assert fitted.score(X, y) > 0.7
    assert fitted.cost_.epsilon(1e-6) <= 4.0 + 1e-9
    assert fitted.solver_ in str(fitted.report_)


def test_hidden_iterates_give_everybody_a_price_of_their_own():
    X, y = planted(n=1000)
    fitted = model(solver="pnsgd", adjacency="replace-one", row_norm=1.0).fit(X, y)
    prices = fitted.personal_costs_.epsilon(1e-6)
    assert len(prices) == 1000
    assert prices[0] < 0.5 * prices.max()
    assert prices.max() <= fitted.cost_.epsilon(1e-6) * (1 + 1e-9)


def test_every_release_is_paid_for_before_it_is_made_and_a_refusal_stops_the_fit():
    X, y = planted()
    budget = Filter(Budget(epsilon=2.0, delta=1e-5))
    paid = []

    def charge(cost, *, reason):
        budget.charge(cost)
        paid.append(reason)

    model(solver="descent").fit(X, y, charge=charge)
    assert any("number of records" in reason for reason in paid)
    assert any("gradients" in reason for reason in paid)
    before = len(paid)
    unfitted = model(epsilon=5.0)
    with pytest.raises(BudgetExceeded):
        unfitted.fit(X, y, charge=charge)
    assert not hasattr(unfitted, "coef_")
    assert len(paid) <= before + 2


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"bounds": None}, "bounds='private'"),
        ({"bounds": "guess"}, "private"),
        ({"bounds": (1, 0)}, "low < high"),
        ({"bounds": [(0, 1)]}, "one pair"),
        ({"row_norm": -1.0}, "row_norm"),
        ({"classes": None}, "classes="),
        ({"classes": [0]}, "two classes"),
        ({"classes": [0, 2]}, "not among the classes"),
        ({"classes": ["a", "b"]}, "dtype"),
        ({"alpha": -1.0}, "alpha"),
        ({"solver": "magic"}, "solver"),
        ({"adjacency": "neighbours"}, "adjacency"),
        ({"n_records": 0}, "n_records"),
        ({"charge": 3}, "charge"),
    ],
)
def test_bad_parameters_are_refused_with_advice(changes, word):
    X, y = planted(n=50)
    charge = changes.pop("charge", None)
    with pytest.raises(InvalidArgument, match=word):
        model(**changes).fit(X, y, charge=charge)


def test_bad_data_is_refused_without_showing_it():
    X, y = planted(n=50)
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(InvalidArgument, match="NaN") as refusal:
        model().fit(holes, y)
    assert str(X[3, 0]) not in str(refusal.value)
    with pytest.raises((InvalidArgument, TypeError), match=r"[Ss]parse"):
        model().fit(sparse.csr_matrix(X), y)


def test_nothing_is_taken_from_the_data_that_was_not_paid_for():
    # with the same noise, one wild record more changes nothing but the released sums: the plan is the same
    X, y = planted(n=500)
    wild = np.vstack([X, [[1e9, -1e9, 1e9]]])
    one = model(n_records=500, row_norm=1.0).fit(X, y)
    other = model(n_records=500, row_norm=1.0).fit(wild, np.append(y, 1))
    assert one.cost_ == other.cost_
    assert one.noise_ == other.noise_
    assert one.report_ == other.report_


def test_a_seed_repeats_a_fit_in_tests_alone(monkeypatch):
    X, y = planted(n=500)
    first, second = (model(random_state=3).fit(X, y).coef_ for _ in range(2))
    assert (first == second).all()
    assert not (model().fit(X, y).coef_ == model().fit(X, y).coef_).all()
    monkeypatch.delenv("PYTEST_VERSION")
    with pytest.raises(InvalidArgument, match="random_state"):
        model(random_state=3).fit(X, y)


def test_rows_of_classes_that_were_not_bought_do_not_show_in_the_public_number_of_records():
    X, y = planted(n=4000)
    y[:3] = [7, 8, 9]  # too rare to be in the list that is bought
    fitted = model(classes="private", adjacency="replace-one", epsilon=20.0)
    seen = []
    facts = type(fitted)._facts
    fitted._facts = lambda loss, prepared: (seen.append(prepared.records), facts(fitted, loss, prepared))[1]
    fitted.fit(X, y)
    assert fitted.classes_.tolist() == [0, 1]
    assert seen == [4000]


@pytest.mark.parametrize("rare", [0, 1])
def test_a_solver_that_needs_every_record_in_its_place_takes_no_bought_classes(rare):
    X, y = planted()
    y[:rare] = 7  # whether somebody has a label that is not bought must not decide what happens
    hidden = model(solver="pnsgd", classes="private", adjacency="replace-one", alpha=1.0)
    with pytest.raises(InvalidArgument, match="in its place"):
        hidden.fit(X, y)
