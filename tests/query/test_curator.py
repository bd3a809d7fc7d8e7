"""The curator as its users see it: sources, questions, answers, budgets, refusals."""

from __future__ import annotations

import math
import os
import threading
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from discreet import Budget, BudgetExceeded, Cost, Curator, DiscreetError, Ledger
from discreet.errors import (
    EngineError,
    InvalidArgument,
    LedgerError,
    PolicyError,
    QueryRefused,
    SourceError,
    VolatileLedger,
)
from discreet.mechanisms import DiscreteLaplace, Laplace
from discreet.query import Policy
from discreet.query.opening import ledger_path
from discreet.query.policy import ColumnPolicy, TablePolicy
from engines.sources import database
from query.open_shop import BUDGET, CITIES, charges, opened, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(spend) AS mean FROM visits GROUP BY city ORDER BY city"
ROWS = 3000


# -------------------------------------------------------------------- sources


def written(kind: str, folder: Path) -> Any:
    """The same 3000 rows as a source of this kind."""
    table = visits()
    half = ROWS // 2
    if kind == "parquet":
        pq.write_table(table, folder / "visits.parquet")
        return folder / "visits.parquet"
    if kind == "csv":
        pa_csv.write_csv(table, folder / "visits.csv")
        return str(folder / "visits.csv")
    if kind == "pattern":
        (folder / "visits").mkdir()
        pq.write_table(table.slice(0, half), folder / "visits" / "a.parquet")
        pq.write_table(table.slice(half), folder / "visits" / "b.parquet")
        return folder / "visits" / "*.parquet"
    if kind == "database":
        pq.write_table(table, folder / "v.parquet")
        return database(folder / "shop.duckdb", f"CREATE TABLE visits AS FROM '{folder / 'v.parquet'}'")
    if kind == "arrow":
        return table
    return table.to_pandas() if kind == "pandas" else pytest.importorskip("polars").from_arrow(table)


@pytest.mark.parametrize("kind", ["parquet", "csv", "pattern", "database", "arrow", "pandas", "polars"])
def test_every_kind_of_source_gives_the_same_answer_up_to_noise(kind: str, tmp_path: Path) -> None:
    with opened(written(kind, tmp_path), columns={"city": {"keys": CITIES}}) as curator:
        answer = curator.sql(BY_CITY, epsilon=15, max_groups=4, max_rows=8, bounds=(0, 100))
    truth = visits().group_by("city").aggregate([("spend", "mean"), ("city", "count")]).sort_by("city").to_pydict()
    rows = answer.fetchall()
    assert [row[0] for row in rows] == list(CITIES)
    # half of the interval at confidence 1 - 1e-9, and as much again for the rows beyond eight of one person
    table = answer.intervals(1 - 1e-9).to_pydict()
    for name, true in (("n", truth["city_count"]), ("mean", truth["spend_mean"])):
        ends = zip(table[f"{name}_low"], table[f"{name}_high"], true, strict=True)
        assert all(low - 0.02 * x <= x <= high + 0.02 * x for low, high, x in ends)


def test_a_mapping_has_several_tables(tmp_path: Path) -> None:
    people = pa.table({"user_id": np.arange(300), "age": np.arange(300) % 60 + 20})
    with opened({"visits": visits(), "people": people}, name=None) as curator:
        joined = "SELECT AVG(age) AS a FROM visits JOIN people USING (user_id)"
        assert 15 < curator.sql(joined, epsilon=5, bounds=(0, 100)).fetchall()[0][0] < 85


def test_public_tables_stand_beside_data_without_a_policy_file(tmp_path: Path) -> None:
    cities = pa.table({"name": [*CITIES, "Nuuk"], "country": ["A", "A", "B", "B", "C"]})
    pa_csv.write_csv(cities, tmp_path / "lands.csv")
    columns = {"spend": {"bounds": (0, 100)}, "cities.name": {"unique": True}, "lands.name": {"type": "VARCHAR"}}
    public = {"cities": cities.to_pandas(), "lands": tmp_path / "lands.csv"}
    with opened(visits(), name=None, public=public, columns=columns) as curator:
        assert curator.sql("SELECT name FROM cities WHERE country = 'C'").fetchall() == [("Nuuk",)]
        for table in public:
            joined = f"SELECT country, COUNT(*) AS n FROM data JOIN {table} ON city = name GROUP BY country"
            assert {row[0] for row in curator.sql(joined, epsilon=5).fetchall()} >= {"A", "B"}
        with pytest.raises(QueryRefused, match="rows of people"):
            curator.sql("SELECT spend FROM data", epsilon=1)


def test_data_cannot_be_public_beside_itself(tmp_path: Path) -> None:
    table = visits()
    pq.write_table(table, tmp_path / "visits.parquet")
    path = tmp_path / "visits.parquet"
    for source, public, said in (
        (table, {"other": table}, "public"),
        (path, {"other": path}, "public"),
        (path, {"visits": path}, "cannot be public, too"),
        (path, [path], "public tables by name"),
    ):
        with pytest.raises(DiscreetError, match=said):
            opened(source, name=None, public=public)


def test_a_public_file_does_not_say_where_the_ledger_of_tables_in_memory_is(tmp_path: Path) -> None:
    pa_csv.write_csv(pa.table({"name": list(CITIES)}), tmp_path / "cities.csv")
    with pytest.warns(VolatileLedger):
        Curator.open(
            visits(), unit="user_id", budget=Budget(epsilon=1.0), public={"c": tmp_path / "cities.csv"}
        ).close()
    assert [path.name for path in tmp_path.iterdir()] == ["cities.csv"]


def shop(folder: Path, *, budget: str = "epsilon = 20.0\ndelta = 1e-6") -> Path:
    """A policy of two tables with units and a public one."""
    pq.write_table(visits(), folder / "visits.parquet")
    pa_csv.write_csv(pa.table({"id": np.arange(300), "age": np.arange(300) % 60 + 20}), folder / "people.csv")
    pa_csv.write_csv(pa.table({"name": [*CITIES, "Nuuk"], "country": list("ABCDE")}), folder / "cities.csv")
    policy = folder / "policy.toml"
    policy.write_text(
        f"""
name = "shop"
[budget]
{budget}
[tables.visits]
source = "visits.parquet"
unit = "user_id"
max_groups = 5
max_rows = 20
columns = {{ spend = {{ bounds = [0, 100] }}, city = {{ keys_from = "cities.name" }} }}
[tables.people]
source = "people.csv"
unit = "id"
rows_per_unit = 1
columns = {{ id = {{ type = "BIGINT" }}, age = {{ type = "INTEGER", bounds = [0, 120] }} }}
[tables.cities]
source = "cities.csv"
public = true
"""
    )
    return policy


def test_a_policy_brings_budget_keys_bounds_limits_and_public_tables(tmp_path: Path) -> None:
    with Curator.open(shop(tmp_path)) as curator:
        assert (tmp_path / "shop.ledger").exists()
        assert curator.budget == BUDGET
        by_city = curator.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY city", epsilon=4)
        assert [row[0] for row in by_city.fetchall()] == sorted(
            [*CITIES, "Nuuk"]
        )  # all public keys, also the empty one
        one_country = "SELECT COUNT(*) AS n FROM visits JOIN cities ON city = name WHERE country = 'E'"
        assert abs(curator.sql(one_country, epsilon=4).fetchall()[0][0]) < 200  # nobody was there
        assert curator.sql("SELECT AVG(age) AS a FROM people", epsilon=2).fetchall()[0][0] == pytest.approx(49.5, abs=9)
        public = curator.sql("SELECT COUNT(*) AS n FROM cities", epsilon=1)
        assert public.fetchall() == [(5,)]  # about nobody: exact, and free
        assert public.cost == Cost.zero()
        assert public.fetchall() == curator.sql("SELECT COUNT(*) AS n FROM cities").fetchall()
        assert "paid: nothing" in repr(public)
        assert curator.explain("SELECT COUNT(*) AS n FROM cities").target is None
        assert curator.explain("SELECT COUNT(*) AS n FROM people", epsilon=100).refusal is not None
        assert charges(curator) == 3


@pytest.mark.parametrize("unit", [["user_id", "city"], 0, ""])
def test_a_unit_is_the_name_of_one_column(unit: Any) -> None:
    with pytest.raises(InvalidArgument, match="pass the name of one column"):
        opened(unit=unit)


def test_a_price_that_protects_nobody_and_bounds_that_are_no_numbers_are_refused_in_their_own_words() -> None:
    with opened() as curator:
        with pytest.raises(InvalidArgument, match="epsilon = 1000 is not allowed: above 600"):
            curator.sql(COUNT, epsilon=1000)
        with pytest.raises(InvalidArgument, match="bounds of dates and times stand in the policy"):
            curator.sql("SELECT MAX(day) FROM visits", epsilon=1, bounds=("2020-01-01", "2024-01-01"))


def test_a_closed_curator_can_be_shown_and_says_that_it_is_closed() -> None:
    curator = opened()
    curator.close()
    assert repr(curator) == "<Curator of 'visits', closed>"
    with pytest.raises(InvalidArgument, match="it was closed"):
        _ = curator.remaining


def test_data_without_a_policy_file_is_named_as_it_was_given(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user_id": [0.5], "x": [1]}), tmp_path / "a.parquet")
    with pytest.raises(
        PolicyError, match=r'^a\.parquet: tables\.a\.unit: .*columns=\{"user_id": \{"type": "BIGINT"\}\}'
    ):
        opened(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match=r"^\S*b\.parquet cannot be read as Parquet"):
        opened(tmp_path / "b.parquet")


def test_a_policy_limits_analysts_by_name_and_everybody_else(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    policy.write_text(policy.read_text() + '[analysts]\n"*" = { epsilon = 0.5 }\nada = { epsilon = 2 }\n')
    for analyst, most in (("ada", 2.0), ("bob", 0.5)):
        with Curator.open(policy, analyst=analyst) as curator:
            assert curator.remaining == most
            with pytest.raises(BudgetExceeded, match=f"the budget of analyst '{analyst}'"):
                curator.sql(COUNT, epsilon=most + 0.1, delta=0)
            assert curator.explain(COUNT, epsilon=most + 0.1, delta=0).refusal is not None
            curator.sql(COUNT, epsilon=0.4, delta=0)
    with Curator.open(policy, analyst="bob") as curator:
        assert curator.remaining == pytest.approx(0.1)
        curator.ledger.amend("shop", Budget(epsilon=1.0), analyst="bob", reason="a larger project")
    with Curator.open(policy, analyst="bob") as curator:  # the owner's act stays
        assert curator.remaining == pytest.approx(0.6)
    policy.write_text(policy.read_text().replace("epsilon = 2 ", "epsilon = 3 "))
    with pytest.raises(InvalidArgument, match="amend"):
        Curator.open(policy, analyst="ada")


def test_looking_knows_the_limit_of_an_analyst_who_never_asked(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    Curator.open(policy, analyst="ada").close()
    policy.write_text(policy.read_text() + '[analysts."*"]\nepsilon = 0.5\n')
    with Curator.open(policy, analyst="bob", ledger=Ledger.open(tmp_path / "shop.ledger", read_only=True)) as curator:
        refusal = curator.explain(COUNT, epsilon=0.6, delta=0).refusal
        assert refusal is not None
        assert refusal.remaining == pytest.approx(0.5, rel=0.01)
        assert curator.explain(COUNT, epsilon=0.5, delta=0).refusal is None


@pytest.mark.parametrize("replaced", [False, True])
def test_a_ledger_that_is_deleted_or_replaced_under_the_curator_stops_it(tmp_path: Path, replaced: bool) -> None:
    text = "SELECT COUNT(*) AS n FROM visits"
    with Curator.open(shop(tmp_path)) as curator:
        curator.sql(text, epsilon=1)
        (tmp_path / "shop.ledger").unlink()
        if replaced:
            with Curator.open(tmp_path / "policy.toml") as other:
                assert other.remaining == BUDGET.epsilon
        for attempt in (
            lambda: curator.sql(text, epsilon=1),
            lambda: curator.sql(text, epsilon=1, reuse=False),
            lambda: curator.charge(Cost.pure(0.1), reason="a model"),
            lambda: curator.remaining,
        ):
            with pytest.raises(LedgerError, match="replaced" if replaced else "deleted"):
                attempt()


def test_yaml_says_the_same_as_toml(tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "visits.parquet")
    (tmp_path / "p.yaml").write_text(
        "name: shop\nbudget: {epsilon: 1.0}\ntables:\n  visits: {source: visits.parquet, unit: user_id}\n"
    )
    with Curator.open(tmp_path / "p.yaml") as curator:
        assert curator.remaining == 1.0
        assert list(curator.tables.tables) == ["visits"]


def test_a_policy_object_keeps_its_ledger_beside_the_data(tmp_path: Path) -> None:
    with Curator.open(Policy.load(shop(tmp_path))) as curator:
        assert curator.ledger.path == tmp_path / "shop.ledger"


def test_a_name_with_a_slash_is_no_folder(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    policy.write_text(policy.read_text().replace('name = "shop"', 'name = "shop/2024"'))
    with Curator.open(policy) as curator:
        assert curator.ledger.path == tmp_path / "shop_2024.ledger"
        assert curator.ledger.datasets() == ("shop/2024",)


def test_a_folder_with_brackets_in_its_name_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1]").mkdir()
    assert (
        ledger_path(Policy.of(visits(), unit="user_id", name="v"), tmp_path / "a[1]") == tmp_path / "a[1]" / "v.ledger"
    )
    pattern = tmp_path / "20??" / "v_*.parquet"
    assert ledger_path(Policy.of(visits(), unit="user_id", name="v"), pattern) == tmp_path / "v.ledger"


def test_tables_in_memory_warn_that_spending_is_forgotten() -> None:
    with pytest.warns(VolatileLedger, match="forgotten"):
        Curator.open(visits(), unit="user_id", budget=BUDGET).close()


# -------------------------------------------------------------------- asking


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


def test_a_release_that_fails_stays_paid() -> None:
    with opened(budget=Budget(epsilon=1.0)) as curator:
        with pytest.raises(DiscreetError):
            curator.release(DiscreteLaplace(epsilon=0.25, sensitivity=1), "no number")
        assert curator.remaining == 0.75
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
}


@pytest.mark.parametrize("case", OPENINGS)
def test_data_that_cannot_be_opened_is_refused_with_advice(case: str) -> None:
    options, kind, words = OPENINGS[case]
    with pytest.raises(kind, match=words):
        opened(**options)


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


def test_a_policy_is_not_contradicted_by_arguments(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="the policy says it"):
        Curator.open(shop(tmp_path), unit="user_id")


QUESTIONS: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "a misspelt column": ("SELECT AVG(spnd) FROM visits", {}, QueryRefused, "did you mean 'spend'?"),
    "a misspelt table": ("SELECT COUNT(*) FROM visit", {}, QueryRefused, "did you mean 'visits'?"),
    "rows": ("SELECT * FROM visits", {}, QueryRefused, "rows of people"),
    "a row for each unit": ("SELECT user_id, COUNT(*) FROM visits GROUP BY user_id", {}, QueryRefused, "each person"),
    "a window": ("SELECT SUM(spend) OVER () FROM visits", {}, QueryRefused, "window functions"),
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


def test_a_file_that_is_gone_is_noticed_before_anything_is_paid(tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "visits.parquet")
    curator = opened(tmp_path / "visits.parquet")
    (tmp_path / "visits.parquet").rename(tmp_path / "gone.parquet")
    with pytest.raises(DiscreetError, match="no longer there"):
        curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
    assert charges(curator) == 0


def test_a_file_that_has_changed_is_noticed_before_anything_is_paid(tmp_path: Path) -> None:
    """The new one may hold what the old one was looked through for: then one row would decide about others."""
    pq.write_table(visits(), tmp_path / "visits.parquet")
    curator = opened(tmp_path / "visits.parquet")
    first = curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
    pq.write_table(visits(seed=1), tmp_path / "visits.parquet")
    with pytest.raises(DiscreetError, match="has changed since the data was opened"):
        curator.sql("SELECT COUNT(*) FROM visits WHERE spend > 1", epsilon=0.5)
    assert charges(curator) == 1
    again = curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)  # about the data that was opened
    assert again.repeated
    assert again.fetchall() == first.fetchall()


def test_a_file_behind_a_data_set_that_has_changed_is_noticed_before_anything_is_paid(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(visits(), tmp_path / f"{name}.parquet")
    data = pads.dataset([pads.dataset(tmp_path / "a.parquet"), pads.dataset(tmp_path / "b.parquet")])
    curator = opened(data, name="visits", ledger=tmp_path / "l.ledger")
    curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
    pq.write_table(visits(seed=1), tmp_path / "b.parquet")
    with pytest.raises(DiscreetError, match="has changed since the data was opened"):
        curator.sql("SELECT COUNT(*) FROM visits WHERE spend > 1", epsilon=0.5)
    assert charges(curator) == 1


def test_changed_files_are_another_question(tmp_path: Path) -> None:
    answers = []
    for rows in (visits(), None, visits(seed=1)):
        if rows is not None:
            pq.write_table(rows, tmp_path / "visits.parquet")
        with opened(tmp_path / "visits.parquet", ledger=tmp_path / "l.ledger") as curator:
            answers.append(curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.1).repeated)
    assert answers == [False, True, False]


@pytest.mark.parametrize("change", ["tables", "stored table", "type"])
def test_a_policy_that_reads_other_rows_or_types_asks_another_question(tmp_path: Path, change: str) -> None:
    """Files alone do not say which table is which of them, and as what its columns are read."""
    few, many = pa.table({"u": range(10), "x": ["x"] * 10}), pa.table({"u": range(5000), "x": ["1"] * 5000})
    paths = [tmp_path / "few.parquet", tmp_path / "many.parquet"]
    for path, rows in zip(paths, (few, many), strict=True):
        pq.write_table(rows, path)
    made = [f"CREATE TABLE {path.stem} AS FROM '{path}'" for path in paths]
    shop = database(tmp_path / "shop.duckdb", *made) if change == "stored table" else None
    answers = []
    for first, second, kind in ((*paths, "VARCHAR"), (*reversed(paths), "BIGINT")):
        tables = {
            "tables": {first.stem: TablePolicy(paths[0], unit="u"), second.stem: TablePolicy(paths[1], unit="u")},
            "stored table": {"few": TablePolicy(shop, table=first.stem, unit="u")},
            "type": {"few": TablePolicy(paths[1], unit="u", columns={"x": ColumnPolicy(type=kind)})},
        }[change]
        with Curator.open(Policy("d", tables), budget=BUDGET, ledger=tmp_path / "l.ledger") as curator:
            answers.append(curator.sql("SELECT COUNT(x) FROM few", epsilon=0.1).repeated)
    assert answers == [False, False]


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


def test_several_tables_in_memory_have_one_name_in_the_ledger(tmp_path: Path) -> None:
    tables = {"a": visits(), "b": visits()}
    with Curator.open(tables, unit="user_id", budget=BUDGET, name="shop", ledger=tmp_path / "l") as curator:
        assert curator.ledger.datasets() == ("shop",)
        curator.sql("SELECT COUNT(*) FROM a JOIN b USING (user_id)", epsilon=0.1)


def test_a_question_that_is_stopped_by_the_user_says_so_and_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> None:
        raise EngineError("interrupt", "the work was interrupted before it was done.")

    with opened() as curator:
        monkeypatch.setattr("discreet.query.curator.measure", stopped)
        with pytest.raises(KeyboardInterrupt, match="stays spent"):
            curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)
        (entry,) = curator.ledger.entries(kind="reserve")
        assert entry.state == "failed"
        assert curator.remaining < BUDGET.epsilon
