"""The curator as its users see it: questions, answers, budgets, refusals."""

from __future__ import annotations

import datetime as dt
import math
import os
import pickle
import threading
import uuid
import zoneinfo
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Budget, BudgetExceeded, Cost, Curator, DiscreetError, Ledger
from discreet.errors import (
    EngineError,
    InvalidArgument,
    LedgerError,
    PolicyError,
    QueryFailed,
    QueryRefused,
    ReleaseFailed,
    SourceError,
)
from discreet.mechanisms import DiscreteLaplace, Laplace
from query.open_shop import BUDGET, charges, opened, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(spend) AS mean FROM visits GROUP BY city ORDER BY city"
ROWS = 3000


# -------------------------------------------------------------------- asking


def test_a_plan_is_kept_for_the_same_words_price_and_limits_alone() -> None:
    with opened() as curator:

        def taken(text: str = COUNT, epsilon: float = 1.0, **call: Any) -> Any:
            return curator._desk.take(text, epsilon=epsilon, delta=None, cost=None, call=call)

        first = taken()
        assert taken() is first
        others = [taken(BY_CITY), taken(epsilon=0.5), taken(max_rows=3), taken(bounding="clip", max_rows=2)]
        assert [other.cost.epsilon(0.0) for other in others[1:]] == pytest.approx([0.5, 1.0, 1.0], abs=1e-9)
        assert [other.options.max_rows for other in others] == [None, None, 3, 2]
        curator._desk.delta = lambda _: 1e-9
        assert taken().target.delta == 1e-9
        assert first.target.delta != 1e-9
        for i in range(300):
            taken(epsilon=1.0 + i / 1000)
        assert taken(epsilon=1.25).cost.epsilon(0.0) == pytest.approx(1.25)
        assert len(curator._desk._asked) <= 128


def test_a_price_that_protects_nobody_is_refused_in_its_own_words() -> None:
    with opened() as curator, pytest.raises(InvalidArgument, match="epsilon = 1000 is not allowed: above 600"):
        curator.sql(COUNT, epsilon=1000)


def test_a_closed_curator_can_be_shown_and_says_that_it_is_closed() -> None:
    curator = opened()
    curator.close()
    assert repr(curator) == "<Curator of 'visits', closed>"
    with pytest.raises(InvalidArgument, match="it was closed"):
        _ = curator.remaining


@pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6), Budget(rho=1.0)])
def test_a_curator_whose_budget_is_spent_has_nothing_left(budget: Budget) -> None:
    with opened(budget=budget) as curator:
        price = {"cost": Cost.concentrated(0.5)} if budget.rho else {"epsilon": 0.5, "delta": 0.0}
        planned = [curator.explain(COUNT, **price, reuse=False)]
        curator.sql(COUNT, **price)
        planned.append(curator.explain(COUNT, **price, reuse=False))
        curator.sql(COUNT, **price, reuse=False)
        assert curator.remaining > 0  # and counts
        assert f"; 0 of {budget} left>" in repr(curator)
        assert f"{budget.unit} 0.5 is left, and 0 after it" in str(planned[1])


def test_an_answer_gives_its_rows_one_by_one_its_first_row_and_its_only_value() -> None:
    with opened() as curator:
        one = curator.sql(COUNT, epsilon=1)
        assert one.item() == one.fetchone()[0] == one.fetchall()[0][0]
        several = curator.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1)
        assert [city for city, _ in several] == [row[0] for row in several.fetchall()]
        with pytest.raises(InvalidArgument, match="one row and one column"):
            several.item()
        nothing = curator.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT 0", epsilon=1)
        assert (list(nothing), nothing.fetchone()) == ([], None)


def test_an_answer_is_a_table_with_intervals_cost_and_rules() -> None:
    with opened() as curator:
        answer = curator.sql(BY_CITY, epsilon=2)
        assert answer.columns == ["city", "n", "mean"]
        assert len(answer) == answer.to_arrow().num_rows == len(answer.to_pandas()) == len(answer.fetchall())
        assert pytest.importorskip("polars").DataFrame is type(answer.to_polars())
        table = answer.intervals(0.9).to_pydict()
        assert {"n_low", "n_high", "mean_low", "mean_high"} <= set(table)
        # the ends are cut at 0, which a noisy count of few rows can be below
        ends = zip(table["n_low"], table["n"], table["n_high"], strict=True)
        assert all(low <= max(n, 0) <= high for low, n, high in ends)
        wider = answer.intervals(0.999).to_pydict()
        assert all(a >= b for a, b in zip(wider["n_high"], table["n_high"], strict=True))
        assert answer.cost.delta(2.0) <= BUDGET.delta / 100
        assert any("not counted" in rule for rule in answer.report)
        assert "epsilon = 2, delta = 1e-08" in repr(answer)
        assert "<table>" in answer._repr_html_()
        assert all("x0" not in label for label in answer.bounds)


def test_an_average_of_nothing_is_null_and_says_so() -> None:
    with opened() as curator:
        text = "SELECT AVG(spend * spend) AS m FROM visits WHERE city = 'nowhere'"
        shown = ""
        for _ in range(60):  # half of the time the noisy number of rows is above 0
            shown = repr(curator.sql(text, epsilon=0.01, reuse=False))
            if "NULL" in shown:
                break
        assert "inf" not in shown
        assert "NULL: too few rows" in shown


def test_the_cost_is_never_above_what_was_asked_for() -> None:
    with opened() as curator:
        for epsilon, delta in ((0.3, None), (1.0, 1e-9), (2.0, 0.0)):
            sql = BY_CITY if delta != 0 else "SELECT COUNT(*) AS n, SUM(items) AS s, MEDIAN(spend) AS m FROM visits"
            planned = curator.explain(sql, epsilon=epsilon, delta=delta)
            assert planned.cost.delta(epsilon) <= (BUDGET.delta / 100 if delta is None else delta)


def test_what_is_left_falls_by_what_was_asked_for_and_no_more() -> None:
    with opened(budget=Budget(epsilon=3.0)) as curator:
        assert curator.remaining == 3.0
        curator.sql(COUNT, epsilon=1)
        assert 2.0 <= curator.remaining <= 2.0 + 1e-6
        assert curator.spent.epsilon(0.0) <= 1.0


def test_explain_spends_nothing_and_needs_no_rows(tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "visits.parquet")
    with opened(tmp_path / "visits.parquet") as curator:
        (tmp_path / "visits.parquet").unlink()
        before = curator.ledger.head
        text = str(curator.explain(BY_CITY, epsilon=1))
        assert curator.ledger.head == before
        assert "Nothing was spent and no row was read." in text
        with pytest.raises(DiscreetError, match="no longer there"):
            curator.sql(COUNT, epsilon=1)


def test_explain_knows_the_error_where_the_bounds_are_public() -> None:
    with opened() as curator:
        limits = {"max_groups": 1, "max_rows": 10}
        sql = "SELECT COUNT(*) AS n FROM visits"
        expected = curator.explain(sql, epsilon=1, **limits).errors(0.95)["n"]
        answer = curator.sql(sql, epsilon=1, **limits).intervals(0.95).to_pylist()[0]
        assert expected is not None
        assert (answer["n_high"] - answer["n_low"]) / 2 == pytest.approx(expected, abs=1.0)


def test_a_repeated_question_is_free_however_it_is_written() -> None:
    with opened() as curator:
        first = curator.sql(BY_CITY, epsilon=1)
        left = curator.remaining
        again = curator.sql(
            "select  city, count(*) as n, avg(spend) as mean -- the same\nfrom visits group by city order by city",
            epsilon=1,
        )
        assert (again.repeated, again.entry, curator.remaining) == (True, None, left)
        assert again.to_arrow().equals(first.to_arrow())
        assert again.intervals(0.5).equals(first.intervals(0.5))
        assert "paid: nothing" in repr(again)
        assert again.bounds == first.bounds
        assert not curator.sql(BY_CITY, epsilon=1.25).repeated
        assert not curator.sql(BY_CITY, epsilon=1, max_rows=2).repeated
        assert not curator.sql(BY_CITY, epsilon=1, max_groups=10**400, max_rows=10**400).repeated
        fresh = curator.sql(BY_CITY, epsilon=1, reuse=False)
        assert not fresh.repeated
        assert not fresh.to_arrow().equals(first.to_arrow())
        assert curator.remaining < left


def test_what_is_made_of_a_noisy_answer_later_is_free() -> None:
    with opened() as curator:
        first = dict(curator.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1).fetchall())
        left = curator.remaining
        best = curator.sql(
            "SELECT city AS place, COUNT(*) * 2 AS twice FROM visits GROUP BY city ORDER BY twice DESC LIMIT 1",
            epsilon=1,
        )
        assert (best.repeated, curator.remaining) == (True, left)
        assert best.fetchall() == [max(((city, 2 * n) for city, n in first.items()), key=lambda row: row[1])]
        total = curator.sql("SELECT SUM(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)", epsilon=1)
        assert (total.repeated, curator.remaining) == (True, left)
        assert total.fetchall() == [(sum(first.values()),)]
        assert curator.explain("SELECT city, COUNT(*) / 7 AS weekly FROM visits GROUP BY city", epsilon=1).answered
        assert not curator.sql("SELECT city, COUNT(*) AS n FROM visits WHERE TRUE GROUP BY city", epsilon=2).repeated


def test_a_delta_that_no_step_needs_makes_no_other_question() -> None:
    with Curator.open({"visits": visits()}, unit="user_id", budget=BUDGET, ledger=":memory:") as curator:
        first = curator.sql(COUNT, epsilon=0.5, delta=1e-7)
        left = curator.remaining
        for delta in (1e-8, 0.0):
            again = curator.sql(COUNT, epsilon=0.5, delta=delta)
            assert (again.repeated, again.fetchall(), curator.remaining) == (True, first.fetchall(), left)
        assert not curator.sql(COUNT, epsilon=0.5 * (1 + 1e-9), delta=1e-7).repeated
        by_day = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"  # groups that are not public need it
        curator.sql(by_day, epsilon=0.5, delta=1e-7)
        assert not curator.sql(by_day, epsilon=0.5, delta=1e-8).repeated


def test_a_repeated_question_survives_the_process_and_needs_no_data(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(visits(), path)
    with opened(path, ledger=None) as curator:
        first = curator.sql(BY_CITY, epsilon=1).to_arrow()
    with opened(path, ledger=None, budget=None) as curator:
        path.unlink()
        assert curator.sql(BY_CITY, epsilon=1).to_arrow().equals(first)


def test_another_analyst_pays_for_the_same_question() -> None:
    with opened() as ada:
        ada.sql(COUNT, epsilon=1)
        bob = opened(ledger=ada.ledger, analyst="bob", budget=None)
        assert not bob.sql(COUNT, epsilon=1).repeated


@pytest.mark.parametrize(
    ("budget", "price", "unit"),
    [
        (Budget(rho=0.5), {"cost": Cost.concentrated(0.1)}, "rho"),
        (Budget(mu=2.0), {"cost": Cost.gaussian_dp(0.5)}, "mu"),
        (Budget(rho=0.5), {"epsilon": 0.2}, "rho"),
        (Budget(epsilon=2.0), {"cost": Cost.pure(0.5)}, "epsilon"),
        (Budget(epsilon=2.0, delta=1e-6), {"cost": Cost.approximate(0.5, 1e-9)}, "epsilon"),
    ],
)
def test_budgets_and_prices_in_every_notion(budget: Budget, price: dict[str, Any], unit: str) -> None:
    with opened(budget=budget) as curator:
        before = curator.remaining
        answer = curator.sql("SELECT COUNT(*) AS n, AVG(spend) AS m FROM visits", bounds=(0, 100), **price)
        assert curator.budget.unit == unit
        assert curator.remaining < before
        spent = {"rho": answer.cost.zcdp, "mu": answer.cost.gdp, "epsilon": lambda: answer.cost.epsilon(1e-6)}[unit]()
        assert spent <= getattr(budget, unit)


def test_prices_can_be_written_into_the_question() -> None:
    with opened() as curator:
        assert curator.explain(f"{COUNT} OPTIONS (epsilon = 0.25)").target.epsilon == 0.25
        assert curator.explain(f"{COUNT} OPTIONS (epsilon = 0.25)", epsilon=0.5).target.epsilon == 0.5
        assert curator.explain(f"{COUNT} OPTIONS (epsilon = .25, delta = -.0)").target.epsilon == 0.25


def test_row_level_privacy_is_the_special_case(tmp_path: Path) -> None:
    with opened(unit="row") as curator:
        answer = curator.sql(COUNT, epsilon=2, delta=0)
        assert answer.fetchall()[0][0] == pytest.approx(ROWS, abs=20)  # noise of scale 1/2: beyond 20 in e^-40
        assert any("person of its own" in rule for rule in answer.report)


# -------------------------------------------------------------------- other releases


def test_releases_and_charges_are_paid_from_the_same_budget() -> None:
    with opened(budget=Budget(epsilon=1.0)) as curator:
        assert isinstance(curator.release(DiscreteLaplace(epsilon=0.25, sensitivity=1), 10, reason="staff"), int)
        assert curator.remaining == 0.75
        entry = curator.charge(Cost.pure(0.5), reason="a model")
        assert curator.remaining == 0.25
        stored = list(curator.ledger.entries(kind="reserve"))
        assert [(one.what, one.state) for one in stored] == [("staff", "released"), ("a model", "released")]
        assert stored[1].id == entry
        with pytest.raises(BudgetExceeded):
            curator.charge(Cost.pure(0.5), reason="another")
        with pytest.raises(BudgetExceeded):
            curator.release(Laplace(epsilon=0.5, sensitivity=1), 1.0)
        assert curator.remaining == 0.25


@pytest.mark.parametrize("value", ["many", 4000.5, math.nan, None, np.zeros(3), [[1, 2], [3]]])
def test_a_value_of_a_wrong_type_or_shape_is_refused_before_it_is_paid_for(value: Any) -> None:
    with opened(budget=Budget(epsilon=1.0)) as curator:
        with pytest.raises(InvalidArgument, match="value"):
            curator.release(DiscreteLaplace(epsilon=0.25, sensitivity=1), value)
        assert charges(curator) == 0


@pytest.mark.parametrize("value", [math.nan, np.array([1.0, math.inf]), [1.0, None]])
def test_a_value_that_is_refused_for_what_it_is_stays_paid_and_says_so(value: Any) -> None:
    with opened(budget=Budget(epsilon=1.0)) as curator:
        with pytest.raises(ReleaseFailed, match=r"stays spent \(entry \d+ of the ledger\)") as failed:
            curator.release(Laplace(epsilon=0.25, sensitivity=1), value)
        assert curator.remaining == 0.75
        (entry,) = curator.ledger.entries(kind="reserve")
        assert (entry.id, entry.state) == (failed.value.entry, "failed")


def test_a_mechanism_of_ones_own_that_fails_stays_paid_and_shows_nothing() -> None:
    class Broken:
        cost = Cost.pure(0.25)

        def release(self, value: Any) -> Any:
            raise KeyError(value)

    with opened(budget=Budget(epsilon=1.0)) as curator:
        with pytest.raises(ReleaseFailed, match="KeyError") as failed:
            curator.release(Broken(), 4711)  # type: ignore[arg-type]
        assert "4711" not in str(failed.value)
        assert [one.state for one in curator.ledger.entries(kind="reserve")] == ["failed"]


# -------------------------------------------------------------------- bad input, before anything is spent

OPENINGS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no unit": ({"unit": None}, InvalidArgument, "say whose rows these are"),
    "a misspelt unit": ({"unit": "userid"}, PolicyError, "Did you mean 'user_id'?"),
    "a unit of floats": ({"unit": "spend"}, PolicyError, "does not identify anybody"),
    "a unit of dates": ({"unit": "day"}, PolicyError, "does not identify anybody"),
    "no budget": ({"budget": None}, InvalidArgument, "how much may be spent"),
    "a number as budget": ({"budget": 1.0}, InvalidArgument, "pass a Budget"),
    "the wrong adjacency": ({"budget": Budget(epsilon=1.0, adjacency="replace-one")}, InvalidArgument, "add-remove"),
    "a number as ledger": ({"ledger": 3}, InvalidArgument, "path of a file"),
    "no analyst": ({"analyst": ""}, InvalidArgument, "pass a name"),
    "an unknown column": ({"columns": {"cty": {"bounds": (0, 1)}}}, PolicyError, "Did you mean 'city'?"),
    "bounds the wrong way": ({"columns": {"spend": {"bounds": (5, 1)}}}, PolicyError, "lower < upper"),
    "bounds of a text": ({"columns": {"city": {"bounds": (0, 1)}}}, PolicyError, "has no bounds"),
    "no threads": ({"threads": 0}, InvalidArgument, "threads"),
    "memory in words": ({"memory_limit": "much"}, InvalidArgument, "4GB"),
    "more threads than can be": ({"threads": 10**9}, InvalidArgument, "at most 1024"),
    "a list of columns": ({"columns": ["spend"]}, InvalidArgument, r"\{'age': \{'bounds': \(0, 120\)\}\}"),
    "a number as column": ({"columns": {5: {"bounds": (0, 1)}}}, InvalidArgument, "columns = 5 .* name is a text"),
    "a column without a name": ({"columns": {"": {"bounds": (0, 1)}}}, InvalidArgument, "name is a text"),
    "a number as type": ({"columns": {"spend": {"type": 5}}}, InvalidArgument, "type = 5 .* such as BIGINT"),
    "a number as keys_from": ({"columns": {"city": {"keys_from": 5}}}, InvalidArgument, "'table.column'"),
    "hidden in words": ({"columns": {"city": {"hidden": "no"}}}, InvalidArgument, "hidden = 'no' .* True or False"),
    "unique in words": ({"columns": {"city": {"unique": "no"}}}, InvalidArgument, "unique = 'no' .* True or False"),
    "a number as name": ({"name": 5}, InvalidArgument, "name = 5 .* give the data a name"),
    "a number as table": ({"table": 5}, InvalidArgument, "table = 5 .* name of a table"),
    "a number as public table": ({"public": {5: visits()}}, InvalidArgument, "public = 5 .* name is a text"),
    "a number as analyst": ({"analyst": 5}, InvalidArgument, "analyst = 5"),
    "rows as unit": ({"unit": visits()["user_id"]}, InvalidArgument, "unit = a ChunkedArray is not .* one column"),
}


@pytest.mark.parametrize("case", OPENINGS)
def test_data_that_cannot_be_opened_is_refused_with_advice(case: str) -> None:
    options, kind, words = OPENINGS[case]
    with pytest.raises(kind, match=words):
        opened(**options)


def test_tables_have_names_that_are_texts(tmp_path: Path) -> None:
    database = tmp_path / "shop.duckdb"
    with duckdb.connect(database) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS user_id, 2 AS items")
    for table in (5, b"visits", ""):
        with pytest.raises(InvalidArgument, match="name of a table"):
            opened(database, table=table, name=None)
    with pytest.raises(InvalidArgument, match=r"source = 5 .* name is a text"):
        opened({5: visits()})


def test_what_cannot_be_opened_leaves_no_ledger_behind(tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "visits.parquet")
    for options in ({"unit": "nobody"}, {"budget": None}):
        with pytest.raises((PolicyError, InvalidArgument)):
            opened(tmp_path / "visits.parquet", ledger=None, **options)
    with pytest.raises(SourceError, match="does not exist"):
        opened(tmp_path / "nothing.parquet", ledger=None)
    assert [path.name for path in tmp_path.iterdir()] == ["visits.parquet"]


def test_another_budget_than_the_ledgers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "books.ledger"
    opened(ledger=path).close()
    with pytest.raises((InvalidArgument, LedgerError), match="epsilon=20"):
        opened(ledger=path, budget=Budget(epsilon=99.0))
    opened(ledger=path, budget=None).close()


QUESTIONS: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "a misspelt column": ("SELECT AVG(spnd) FROM visits", {}, QueryRefused, "did you mean 'spend'?"),
    "a misspelt table": ("SELECT COUNT(*) FROM visit", {}, QueryRefused, "did you mean 'visits'?"),
    "rows": ("SELECT * FROM visits", {}, QueryRefused, "rows of people"),
    "a row for each unit": ("SELECT user_id, COUNT(*) FROM visits GROUP BY user_id", {}, QueryRefused, "each person"),
    "a window": ("SELECT SUM(spend) OVER () FROM visits", {}, QueryRefused, "rows of several people"),
    "another statement": ("DROP TABLE visits", {}, QueryRefused, "only questions"),
    "two statements": (f"{COUNT}; {COUNT}", {}, QueryRefused, "one SELECT"),
    "a file": ("SELECT COUNT(*) FROM 'visits.parquet'", {}, QueryRefused, "no table"),
    "a function that reads": ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", {}, QueryRefused, "cannot be read"),
    "no SQL": ("how many are there?", {}, QueryRefused, "only questions"),
    "nothing": ("", {}, QueryRefused, "is empty"),
    "no price": (COUNT, {"epsilon": None}, InvalidArgument, "say what this question may cost"),
    "two prices": (COUNT, {"cost": Cost.pure(1.0)}, InvalidArgument, "in one way"),
    "epsilon of 0": (COUNT, {"epsilon": 0}, InvalidArgument, "epsilon"),
    "epsilon of NaN": (COUNT, {"epsilon": math.nan}, InvalidArgument, "epsilon"),
    "epsilon as text": (COUNT, {"epsilon": "1"}, InvalidArgument, "epsilon"),
    "infinite epsilon": (COUNT, {"epsilon": math.inf}, InvalidArgument, "epsilon"),
    "delta of 1": (COUNT, {"delta": 1}, InvalidArgument, "delta"),
    "negative delta": (COUNT, {"delta": -0.1}, InvalidArgument, "delta"),
    "no groups": (BY_CITY, {"max_groups": 0}, InvalidArgument, "max_groups"),
    "half a row": (BY_CITY, {"max_rows": 0.5}, InvalidArgument, "max_rows"),
    "bounds the wrong way": (BY_CITY, {"bounds": (5, 1)}, InvalidArgument, "comes first"),
    "bounds that are none": (BY_CITY, {"bounds": 5}, InvalidArgument, "bounds"),
    "bounds that are bytes": (BY_CITY, {"bounds": b"ab"}, InvalidArgument, "low, high"),
    "bounds that are a text": (BY_CITY, {"bounds": "ab"}, InvalidArgument, "low, high"),
    "unknown bounding": (BY_CITY, {"bounding": "hope"}, InvalidArgument, "bounding"),
    "private keys without delta": (BY_CITY, {"delta": 0}, InvalidArgument, "list the keys in the policy"),
    "a composed price": (COUNT, {"epsilon": None, "cost": 2 * Cost.pure(1.0)}, InvalidArgument, "plain guarantee"),
    "more than there is": (COUNT, {"epsilon": 21}, BudgetExceeded, "nothing was charged"),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_a_question_that_cannot_be_answered_is_refused_before_anything_is_spent(case: str) -> None:
    text, options, kind, words = QUESTIONS[case]
    with opened() as curator:
        with pytest.raises(kind, match=words) as refused:
            curator.sql(text, **{"epsilon": 1.0, **options})
        assert charges(curator) == 0
        assert curator.remaining == BUDGET.epsilon
        assert isinstance(refused.value, DiscreetError)


def test_a_null_that_the_question_itself_makes_is_not_blamed_on_the_noise() -> None:
    text = f"SELECT city, n - LAG(n) OVER (ORDER BY city) AS change FROM ({BY_CITY}) ORDER BY city"
    with opened() as curator:
        shown = curator.sql(text, epsilon=5).show()
        assert "NULL" in shown
        assert "too few rows" not in shown


def test_a_refusal_says_if_it_is_the_delta_that_is_too_large() -> None:
    with opened(budget=Budget(epsilon=2.0, delta=1e-6)) as curator:
        with pytest.raises(
            BudgetExceeded, match=r"at a delta, here 9e-07, and of the 2.5e-07 .* State at most delta = 2.5e-07"
        ) as refused:
            curator.sql(BY_CITY, epsilon=0.5, delta=9e-7)
        assert pickle.loads(pickle.dumps(refused.value)).delta == 9e-7
        assert refused.value.delta_left == 2.5e-7
        with pytest.raises(BudgetExceeded, match="it would be answered"):
            curator.sql(BY_CITY, epsilon=5)


def test_the_delta_of_groups_is_said_to_run_out_before_it_does_and_when_it_has() -> None:
    with opened(budget=Budget(epsilon=9.0, delta=1e-6)) as curator:
        first = curator.explain(BY_CITY, epsilon=0.1, delta=1e-7)
        needed = sum(plan.allocation.key_delta for plan in first.plans)
        assert first.delta_left == 2.5e-7
        enough = int(2.5e-7 / needed)
        assert f"is enough for {enough} questions like this one" in str(first)
        assert curator.explain(COUNT, epsilon=0.1).delta_left is None
        for _ in range(enough):
            assert curator.explain(BY_CITY, epsilon=0.1, delta=1e-7, reuse=False).refusal is None
            curator.sql(BY_CITY, epsilon=0.1, delta=1e-7, reuse=False)
        last = curator.explain(BY_CITY, epsilon=0.1, delta=1e-7, reuse=False)
        assert last.refusal is not None
        assert "of the 2.5e-07 that the budget sets aside for that nothing is left. To go on, group by keys" in str(
            last
        )
        assert "is enough for" not in str(last)
        assert curator.explain(COUNT, epsilon=0.1).refusal is None
        curator.charge(Cost.pure(curator.remaining), reason="all that is left")
        with pytest.raises(BudgetExceeded, match="Too little is left to answer it at all"):  # it needs no delta
            curator.sql(COUNT, epsilon=0.1)


@pytest.mark.parametrize("text", [COUNT, BY_CITY])  # Gaussian noise that a budget with a smaller delta would admit
@pytest.mark.parametrize(
    "price",
    [{"epsilon": 0.5, "delta": 0.1}, {"epsilon": 0.5, "delta": 2e-6}, {"cost": Cost.approximate(0.5, 0.1)}],
)
def test_a_delta_beyond_that_of_the_whole_budget_is_refused_first_of_all(text: str, price: dict[str, Any]) -> None:
    with opened(budget=Budget(epsilon=9.0, delta=1e-6)) as curator:
        for ask in (curator.sql, curator.explain):
            with pytest.raises(InvalidArgument, match="the budget of data set 'visits' has a delta of 1e-06 in all"):
                ask(text, **price)
        curator.ledger.limit("visits", Budget(epsilon=9.0, delta=1e-7), analyst="local")
        with pytest.raises(InvalidArgument, match="the budget of analyst 'local' on 'visits' has a delta of 1e-07 in"):
            curator.sql(text, epsilon=0.5, delta=1e-6)
        assert charges(curator) == 0
        curator.sql(text, epsilon=0.5, delta=2e-8)
        curator.ledger.limit("visits", Budget(epsilon=9.0), group="all")
        curator.ledger.enrol("all", ["local"])
        with pytest.raises(InvalidArgument, match="the budget of group 'all' on 'visits' has no delta: leave it out"):
            curator.sql(text, epsilon=0.4, delta=3e-8)


def test_a_delta_is_that_of_the_budgets_as_they_are_by_now() -> None:
    with opened(budget=Budget(epsilon=9.0, delta=1e-6)) as curator:
        assert curator.explain(COUNT, epsilon=0.3).target.delta == pytest.approx(1e-8)
        curator.ledger.limit("visits", Budget(epsilon=2.0, delta=1e-9), group="team")
        curator.ledger.enrol("team", ["local"])
        for ask in (curator.explain, curator.sql):
            with pytest.raises(
                InvalidArgument, match="the budget of group 'team' on 'visits' has a delta of 1e-09 in all"
            ):
                ask(COUNT, epsilon=0.3, delta=1e-8)
            assert ask(COUNT, epsilon=0.3).target.delta == pytest.approx(1e-11)
        curator.ledger.dismiss("team", ["local"])
        assert curator.explain(BY_CITY, epsilon=0.3).target.delta == pytest.approx(1e-8)


def test_what_was_paid_at_a_delta_is_read_again_though_budgets_have_less_since() -> None:
    with opened(budget=Budget(epsilon=9.0, delta=1e-4)) as curator:
        first = curator.sql(COUNT, epsilon=0.5, delta=5e-5)
        curator.ledger.amend("visits", Budget(epsilon=9.0, delta=1e-5), reason="less")
        again = curator.sql(COUNT, epsilon=0.5, delta=5e-5)
        assert again.repeated
        assert again.fetchall() == first.fetchall()
        assert curator.explain(COUNT, epsilon=0.5, delta=5e-5).answered
        with pytest.raises(InvalidArgument, match="has a delta of 1e-05 in all"):
            curator.sql(COUNT, epsilon=0.5, delta=5e-5, reuse=False)


@pytest.mark.parametrize("budget", [Budget(rho=9.0), Budget(mu=9.0)])
def test_a_large_delta_is_told_first_where_the_budget_has_none(budget: Budget) -> None:
    with opened(budget=budget) as curator:
        answer, planned = (ask(COUNT, epsilon=0.5, delta=0.1) for ask in (curator.sql, curator.explain))
        assert answer.cautions[0].startswith("delta = 0.1 is large: with this probability the price promises nothing")
        assert planned.cautions == answer.cautions[:1]
        assert "caution: delta = 0.1 is large" in repr(answer)
        assert "caution: delta = 0.1 is large" in answer._repr_html_()
        assert str(planned).splitlines()[1].startswith("caution delta = 0.1 is large")
        for price in ({"epsilon": 0.5, "delta": 1e-3}, {"epsilon": 0.5}, {"cost": Cost.concentrated(0.1)}):
            assert not any("is large" in line for line in curator.sql(COUNT, **price).cautions)


@pytest.mark.parametrize("reuse", ["no", "yes", 0, 1, None])
def test_a_question_is_repeated_or_not_and_nothing_else(reuse: Any) -> None:
    with opened() as curator:
        for ask in (curator.sql, curator.explain):
            with pytest.raises(InvalidArgument, match=r"reuse = .* pass True or False"):
                ask(COUNT, epsilon=1, reuse=reuse)
        assert charges(curator) == 0


@pytest.mark.parametrize("reason", ["", " ", 5, None])
def test_a_charge_says_what_it_is_for(reason: Any) -> None:
    with opened() as curator:
        with pytest.raises(InvalidArgument, match=r"reason = .* say what is released, as in reason='a model, run 17'"):
            curator.charge(Cost.pure(0.25), reason=reason)
        assert charges(curator) == 0


def test_the_reason_of_a_release_is_a_text() -> None:
    with opened() as curator:
        with pytest.raises(InvalidArgument, match="reason = 5"):
            curator.release(DiscreteLaplace(epsilon=0.25), 3, reason=5)  # type: ignore[arg-type]
        assert charges(curator) == 0


def test_what_is_no_mechanism_is_not_released() -> None:
    with opened() as curator:
        for wrong in ("laplace", 3, Cost.pure(0.5), None):
            with pytest.raises(InvalidArgument, match="pass a mechanism"):
                curator.release(wrong, 3)  # type: ignore[arg-type]
        assert charges(curator) == 0


def test_a_refusal_says_for_how_much_the_question_would_be_answered() -> None:
    with opened(budget=Budget(epsilon=2.0, delta=1e-6)) as curator:
        curator.sql(BY_CITY, epsilon=1.5)
        with pytest.raises(BudgetExceeded, match="it would be answered: ask for that or less") as refused:
            curator.sql(BY_CITY, epsilon=1.75)
        most = refused.value.remaining
        assert 0.1 < most < 1.75
        with pytest.raises(BudgetExceeded):
            curator.sql(BY_CITY, epsilon=1.01 * most)
        curator.sql(BY_CITY, epsilon=float(f"{most:.6g}") * 0.999)


def test_rows_without_a_unit_do_not_count() -> None:
    nobody = pa.table({"user_id": pa.array([None] * 10_000, pa.int64()), "spend": [1.0] * 10_000})
    with opened(nobody) as curator:
        answer = curator.sql(COUNT, epsilon=10, delta=0, max_groups=1, max_rows=1)
        assert abs(answer.fetchall()[0][0]) < 100
        assert "Rows without a unit are not counted." in answer.report


def test_threads_share_a_curator_and_never_overspend() -> None:
    with opened(budget=Budget(epsilon=1.0)) as curator:
        answered, refused = [], []

        def ask(number: int) -> None:
            try:
                text = f"SELECT COUNT(*) AS n FROM visits WHERE items > {number % 3}"
                answered.append(curator.sql(text, epsilon=0.125, reuse=False))
            except BudgetExceeded:
                refused.append(number)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(answered), len(refused)) == (8, 4)
        assert curator.spent.epsilon(0.0) <= 1.0
        assert curator.ledger.verify().reservations == len(answered)


def test_a_curator_of_one_budget_in_two_places_shares_it(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(visits(), path)
    with opened(path, ledger=None) as one, opened(path, ledger=None, budget=None) as other:
        one.sql(COUNT, epsilon=5)
        assert other.remaining == one.remaining < 20
        with Ledger.open(tmp_path / "visits.ledger", read_only=True) as books:
            assert books.remaining("visits") == one.remaining


def test_a_budget_that_renews_needs_not_be_said_again(tmp_path: Path) -> None:
    from datetime import timedelta

    from discreet import Ledger

    data = pa.table({"user_id": list(range(50)), "x": [1.0] * 50})
    with Ledger.open(tmp_path / "l.ledger") as ledger:
        ledger.establish("data", Budget(epsilon=1.0), period=timedelta(days=30))
    with Curator.open(data, unit="user_id", ledger=tmp_path / "l.ledger") as curator:
        curator.sql("SELECT COUNT(*) FROM data", epsilon=0.25)
        assert curator.remaining == pytest.approx(0.75)


def test_a_closed_curator_answers_nothing_and_spends_nothing(tmp_path: Path) -> None:
    curator = opened(ledger=tmp_path / "l.ledger")
    curator.close()
    for ask in (
        lambda: curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5),
        lambda: curator.explain("SELECT COUNT(*) FROM visits", epsilon=0.5),
        lambda: curator.charge(Cost.pure(0.5), reason="a model"),
    ):
        with pytest.raises(InvalidArgument, match="it was closed"):
            ask()
    with Ledger.open(tmp_path / "l.ledger") as ledger:
        assert not list(ledger.entries(kind="reserve"))


@pytest.mark.parametrize("price", [Cost.pure, Cost.concentrated, Cost.gaussian_dp])
def test_a_price_about_another_relation_of_neighbours_is_refused(price: Any) -> None:
    """Somebody whose record is replaced is removed and added: that would cost up to twice what was stated."""
    curator = opened(visits())
    with pytest.raises(InvalidArgument, match="adding or removing a person"):
        curator.sql("SELECT COUNT(*) FROM visits", cost=price(0.1, adjacency="replace-one"))
    assert charges(curator) == 0


@pytest.mark.parametrize("unit", ["id", "row"])
@pytest.mark.parametrize(
    ("kind", "values", "keys", "shown"),
    [
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("2.50")], [1.5, 2.5], [Decimal("1.50"), Decimal("2.50")]),
        (pa.uint64(), [5, 2**64 - 1], [5, 2**64 - 1], [5]),  # whole numbers that fit 64 bits with a sign
        (pa.uuid(), [uuid.UUID(int=1).bytes] * 2, [str(uuid.UUID(int=1))], [str(uuid.UUID(int=1))]),
    ],
    ids=["decimal", "unsigned", "uuid"],
)
def test_public_keys_of_every_type_are_shown(unit: str, kind: Any, values: Any, keys: Any, shown: Any) -> None:
    """They were paid for, and then there was no column for them."""
    table = pa.table({"id": range(2000), "k": pa.array(values * 1000, kind)})
    source = table if unit == "id" else table.drop_columns(["id"])
    curator = opened(source, unit=unit, name="t", columns={"k": {"keys": keys}})
    answer = curator.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=0.5)
    assert [key for key, _ in answer.fetchall()] == shown
    assert curator.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=0.5).fetchall() == answer.fetchall()


@pytest.mark.parametrize(
    ("text", "call", "words"),
    [
        ("SELECT SUM(spend) FROM visits", {"bounds": {"spnd": (0, 50)}}, "Did you mean 'spend'"),
        ("SELECT SUM(spend) FROM visits OPTIONS (bounds = {spnd: (0, 50)})", {}, "Did you mean 'spend'"),
        ("SELECT COUNT(*) FROM visits OPTIONS (epsilon = -1)", {}, "epsilon"),
        (5, {}, "as text"),
    ],
)
def test_what_would_be_ignored_is_refused(text: Any, call: dict[str, Any], words: str) -> None:
    curator = opened()
    with pytest.raises(InvalidArgument, match=words):
        curator.sql(text, epsilon=0.1, **call)
    assert charges(curator) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the size of files is limited by the operating system")
def test_a_ledger_that_is_full_after_the_charge_says_that_it_stays_paid(tmp_path: Path) -> None:
    import resource

    with opened(ledger=tmp_path / "l.ledger") as curator:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        reserve = curator.ledger.reserve

        def reserve_and_fill(*arguments: Any, **named: Any) -> Any:
            entry = reserve(*arguments, **named)
            size = (tmp_path / "l.ledger-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
            return entry

        curator.ledger.reserve = reserve_and_fill  # type: ignore[method-assign]
        try:
            with pytest.raises(LedgerError, match=r"Entry 4 was charged before that and stays charged; nothing"):
                curator.sql(COUNT, epsilon=0.5)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert curator.remaining == pytest.approx(BUDGET.epsilon - 0.5)
        assert [entry.state for entry in curator.ledger.entries(kind="reserve")] == ["reserved"]
        curator.ledger.verify()


def test_rows_without_a_value_add_nothing_to_sums_of_rows() -> None:
    values = [5.0, None, float("nan"), 5.0] * 2000
    with Curator.open(pa.table({"x": values}), unit="row", budget=BUDGET, ledger=":memory:") as curator:
        (row,) = curator.sql("SELECT SUM(x) AS s, AVG(x) AS a FROM data", epsilon=5.0).to_arrow().to_pylist()
        assert row["s"] == pytest.approx(20_000, rel=0.05)
        assert row["a"] == pytest.approx(5.0, rel=0.05)


def test_sums_of_one_column_with_bounds_of_their_own_are_told_apart() -> None:
    limits = {"avg(spend)": (0, 10), "sum(spend)": (0, 20)}
    with opened() as curator:
        answer = curator.sql("SELECT AVG(spend) AS a, SUM(spend) AS s FROM visits", epsilon=5.0, bounds=limits)
        assert {"sum for avg(spend)", "sum for sum(spend)"} <= answer.bounds.keys()
        (ten,) = [rule for rule in answer.report if "above 10 as 10" in rule]
        assert ten.startswith("avg(spend): ")


def test_the_report_says_where_large_numbers_without_bounds_are_cut() -> None:
    with opened() as curator:
        report = " ".join(curator.sql("SELECT SUM(spend * 1e6) AS s FROM visits", epsilon=1.0).report)
        assert "values beyond ±2^31 count as that: state larger bounds" in report


@pytest.mark.parametrize("unit", ["user_id", "row"])
def test_nan_is_no_value_to_any_aggregate(unit: str) -> None:
    values = [5.0, None, float("nan"), 7.0] * 1000
    rows = pa.table({"user_id": list(range(4000)), "x": values})
    with Curator.open(rows, unit=unit, budget=BUDGET, ledger=":memory:", rows_per_unit=None) as curator:
        (row,) = curator.sql("SELECT COUNT(x) AS n, COUNT(DISTINCT x) AS d FROM data", epsilon=10.0).fetchall()
        assert row[0] == pytest.approx(2000, abs=30)
        assert row[1] == pytest.approx(2, abs=1 if unit == "row" else 30)


def test_days_between_dates_without_bounds_are_not_clamped_to_the_whole_calendar() -> None:
    import datetime as dt

    days = [dt.date(2023, 1, 1) + dt.timedelta(days=i % 300) for i in range(6000)]
    rows = pa.table({"user_id": list(range(6000)), "day": days})
    with Curator.open(rows, unit="user_id", budget=BUDGET, ledger=":memory:") as curator:
        for sql in ("DATE_DIFF('day', DATE '2023-01-01', day)", "day - DATE '2023-01-01'"):
            (row,) = curator.sql(f"SELECT AVG({sql}) AS mean FROM data", epsilon=2.0).fetchall()
            assert row[0] == pytest.approx(149.5, abs=15)
        (row,) = curator.sql("SELECT AVG(year(day)) AS mean FROM data", epsilon=2.0).fetchall()
        assert row[0] == pytest.approx(2023, abs=15)


def test_whole_numbers_that_are_computed_stay_whole_numbers() -> None:
    with opened() as curator:
        answer = curator.sql("SELECT COUNT(*) + 1 AS x, 2 * COUNT(*) AS y, 0 - COUNT(*) AS z FROM visits", epsilon=0.1)
        x, y, z = answer.fetchall()[0]
        assert (type(x), type(y), type(z)) == (int, int, int)
        assert (y, z) == (2 * (x - 1), 1 - x)
        assert answer.to_pandas().dtypes.astype(str).tolist() == ["int64"] * 3
        assert type(answer.intervals().to_pylist()[0]["x"]) is int


def test_an_answer_whose_columns_are_nested_too_deeply_for_intervals_is_shown_without() -> None:
    with opened() as curator:
        answer = curator.sql(f"SELECT {'+'.join(['COUNT(*)'] * 150)} AS n FROM visits", epsilon=0.1)
        assert answer.fetchall()[0][0] % 150 == 0
        assert answer.no_interval == {"n": "the SELECT list is nested too deeply"}
        assert "nested too deeply" in str(answer)
        assert answer.intervals().column_names == ["n"]


def test_a_bound_is_called_by_the_aggregate_that_it_is_for() -> None:
    with opened() as curator:
        answer = curator.sql("SELECT AVG(spend) AS a, MEDIAN(spend) AS m FROM visits", epsilon=0.1)
        assert {"sum for avg(spend)", "number of values for avg(spend)"} <= set(answer.bounds)
        assert "middle from which spend is measured" in answer.bounds


def test_several_tables_in_memory_have_one_name_in_the_ledger(tmp_path: Path) -> None:
    tables = {"a": visits(), "b": visits()}
    with Curator.open(tables, unit="user_id", budget=BUDGET, name="shop", ledger=tmp_path / "l") as curator:
        assert curator.ledger.datasets() == ("shop",)
        curator.sql("SELECT COUNT(*) FROM a JOIN b USING (user_id)", epsilon=0.1)


def test_whoever_is_stopped_while_a_file_is_read_for_the_first_time_has_paid_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> None:
        raise EngineError("interrupt", "the work was interrupted before it was done.")

    (tmp_path / "v.csv").write_text("user_id,spend\n" + "".join(f"{i},{i % 7}\n" for i in range(50)))
    with opened(tmp_path / "v.csv") as curator:
        with monkeypatch.context() as patch:
            patch.setattr(curator._data.engine._copies, "_run", stopped)
            with pytest.raises(KeyboardInterrupt, match="nothing was paid"):
                curator.sql("SELECT COUNT(*) FROM v", epsilon=0.1)
        assert charges(curator) == 0
        assert not curator.sql("SELECT COUNT(*) FROM v", epsilon=0.1).repeated


@pytest.mark.parametrize("more", ["", ", COUNT(*) AS n", ", MEDIAN(x) AS m"])
def test_what_is_0_by_rule_is_answered(more: str) -> None:
    rows = pa.table({"u": range(60), "day": [dt.date(2024, 1, 5 + i % 20) for i in range(60)], "x": [1.0] * 60})
    facts = {"day": {"bounds": (dt.date(2024, 1, 1), dt.date(2024, 12, 30))}, "x": {"bounds": (0, 9)}}
    with Curator.open(rows, unit="u", budget=BUDGET, columns=facts, ledger=":memory:", name="t") as curator:
        for call in ("AVG", "SUM", "STDDEV"):
            sql = f"SELECT {call}(date_diff('year', day, DATE '2024-02-02')) AS years{more} FROM t"
            years = curator.sql(sql, epsilon=1.0).fetchall()[0][0]
            assert abs(years or 0) < 60


def test_a_question_that_is_stopped_by_the_user_says_so_and_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise EngineError("interrupt", "the work was interrupted before it was done.")

    with opened() as curator:
        monkeypatch.setattr("discreet.query.curator.measure", stopped)
        with pytest.raises(KeyboardInterrupt, match="stays spent"):
            curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)
        (entry,) = curator.ledger.entries(kind="reserve")
        assert entry.state == "failed"
        assert curator.remaining < BUDGET.epsilon


def test_a_curator_says_what_is_left_of_the_data_and_for_whom() -> None:
    with Ledger.in_memory() as ledger:
        ledger.establish("visits", BUDGET)
        ledger.limit("visits", Budget(epsilon=3.0, delta=1e-6), analyst="ada")
        with opened(ledger=ledger, budget=None, analyst="ada") as curator:
            assert repr(curator).endswith(f"; 20 of {BUDGET} left; 3 left for ada>")
        with opened(ledger=ledger, budget=None) as curator:
            assert repr(curator).endswith(f"; 20 of {BUDGET} left>")


def test_the_ledger_keeps_what_was_asked_for_a_question() -> None:
    with opened() as curator:
        for price in (
            {"epsilon": 0.5, "delta": 1e-8},
            {"cost": Cost.concentrated(0.01)},
            {"epsilon": 0.25, "delta": 0},
        ):
            curator.sql("SELECT COUNT(*) AS n FROM visits", reuse=False, **price)
        kept = [entry.price for entry in curator.ledger.entries(kind="reserve")]
        assert kept == [{"epsilon": 0.5, "delta": 1e-8}, {"rho": 0.01}, {"epsilon": 0.25}]
        curator.charge(Cost.pure(0.1), reason="a model")
        assert [entry.price for entry in curator.ledger.entries(kind="reserve")][-1] is None


def test_a_charge_that_fits_into_no_budget_is_told_what_fits_into_all() -> None:
    with Ledger.in_memory() as ledger:
        ledger.establish("visits", BUDGET)
        ledger.limit("visits", Budget(epsilon=3.0, delta=1e-6), analyst="ada")
        with opened(ledger=ledger, budget=None, analyst="ada") as curator:
            with pytest.raises(BudgetExceeded, match="ada") as caught:
                curator.charge(Cost.pure(25.0), reason="a model")
            assert caught.value.remaining <= 3.0
            curator.charge(Cost.pure(caught.value.remaining), reason="a model")


@pytest.mark.parametrize("shown", [False, True])
def test_why_a_question_failed_is_shown_to_whoever_owns_the_process_and_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, shown: bool
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("secret-17")

    monkeypatch.setenv("DISCREET_SHOW_ENGINE_ERRORS", "1" if shown else "0")
    with opened() as curator:
        monkeypatch.setattr("discreet.query.curator.measure", fails)
        with pytest.raises(QueryFailed, match="DISCREET_SHOW_ENGINE_ERRORS=1") as caught:
            curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)
        assert caught.value.__context__ is None
        assert str(caught.value.__cause__) == ("secret-17" if shown else "None")
        assert "secret" not in str(caught.value)


def test_the_price_may_come_second_without_its_name() -> None:
    with opened() as curator:
        question = "SELECT COUNT(*) AS n FROM visits"
        assert curator.explain(question, 0.5).target == curator.explain(question, epsilon=0.5).target
        assert curator.sql(question, 0.5).target == curator.explain(question, epsilon=0.5).target


def test_bounds_that_are_an_hour_apart_are_not_taken_for_each_other() -> None:
    """Of two moments that a clock shows twice, when it is put back, Python says that they are equal."""
    rows = pa.table({"user_id": np.arange(3000), "at": pa.array([dt.datetime(2024, 10, 27, 3, tzinfo=dt.UTC)] * 3000)})
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    low, twice = dt.datetime(2024, 10, 26, tzinfo=berlin), dt.datetime(2024, 10, 27, 2, 30, tzinfo=berlin)
    assert twice == twice.replace(fold=1)
    with opened(rows, budget=Budget(epsilon=300.0)) as curator:
        first, second = (
            curator.sql("SELECT MEDIAN(at) AS m FROM visits", epsilon=100.0, bounds=(low, twice.replace(fold=fold)))
            for fold in (0, 1)
        )
        assert not second.repeated
        assert abs(second.item() - first.item() - dt.timedelta(hours=1)) < dt.timedelta(minutes=1)
