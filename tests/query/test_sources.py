"""What can be opened: every kind of source, policies in files and as objects, public tables, and where ledgers lie."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from discreet import Budget, BudgetExceeded, Cost, Curator, DiscreetError, Ledger
from discreet.errors import (
    InvalidArgument,
    KeptBudget,
    LedgerError,
    PolicyError,
    QueryRefused,
    SourceError,
    VolatileLedger,
)
from discreet.query import Policy
from discreet.query.opening import ledger_path
from discreet.query.remembered import ENOUGH
from engines.sources import database
from query.open_shop import BUDGET, CITIES, charges, opened, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(spend) AS mean FROM visits GROUP BY city ORDER BY city"
ROWS = 3000


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


NO_TABLES: list[tuple[Any, str]] = [
    ([{"user_id": 1, "spend": 2.0}], r"^a list of dicts is .* pyarrow\.Table\.from_pylist\(rows\)"),
    (({"user_id": 1},), r"^a list of dicts is .* pandas\.DataFrame\(rows\)"),
    ([(1, 2.0), (2, 3.0)], r"^a list of tuples is .* pandas\.DataFrame\(rows, columns=\["),
    ([1, None], "^a list of ints and NoneTypes is "),
    (["visits.csv", 5], r"^a list of ints and strs is .* a list of paths"),
    ({"user_id": [1, 2], "city": ["a", "b"]}, r"^a dict of lists is .* pyarrow\.table\(columns\)"),
    ({"user_id": (1, 2), "spend": np.zeros(2)}, "^a dict of ndarrays and tuples is "),
    ({"user_id": ["ada", "bob"], "city": ["a", "b"]}, "^a dict of lists is "),
    ({"user_id": pa.array([1, 2])}, "^a dict of Int64Arrays is "),
    ({"visits": {"user_id": [1, 2]}}, r"^a dict of lists is .* pandas\.DataFrame\(columns\)"),
    ({"visits": {}}, "^a dict of nothing is "),
    (np.zeros((2, 2)), r"^an object of type ndarray is .* pandas\.DataFrame\(rows, columns=\["),
]


@pytest.mark.parametrize(("source", "said"), NO_TABLES, ids=lambda value: repr(value)[:30])
def test_what_is_no_table_yet_is_named_with_how_to_make_one(source: Any, said: str) -> None:
    with pytest.raises(SourceError, match=said) as refused:
        opened(source)
    assert "ada" not in str(refused.value)


def test_data_cannot_be_public_beside_itself(tmp_path: Path) -> None:
    table = visits()
    pq.write_table(table, tmp_path / "visits.parquet")
    path = tmp_path / "visits.parquet"
    for source, public, said in (
        (table, {"other": table}, "public"),
        (path, {"other": path}, "public"),
        (path, {"visits": path}, "cannot be public, too"),
        (path, [path], "a mapping by name"),
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


def test_a_smaller_budget_for_everybody_is_said_not_to_count_where_the_ledger_has_a_larger_one(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    text = policy.read_text()

    def states(amounts: str) -> None:
        policy.write_text(f'{text}[analysts]\n"*" = {{ {amounts} }}\n')

    states("epsilon = 0.5, delta = 1e-8")
    Curator.open(policy, analyst="bob").close()
    for larger in ("epsilon = 0.6, delta = 1e-8", "epsilon = 0.5, delta = 1e-7"):
        states(larger)
        Curator.open(policy, analyst="bob").close()
    for smaller in ("epsilon = 0.4, delta = 1e-8", "epsilon = 0.5, delta = 1e-9", "rho = 0.1"):
        states(smaller)
        with pytest.warns(KeptBudget, match="epsilon=0.5.* for analyst 'bob', and that counts.*discreet ledger amend"):
            Curator.open(policy, analyst="bob").close()
        Curator.open(policy, analyst=f"ann {smaller}").close()
    with Ledger.open(tmp_path / "shop.ledger") as ledger:
        ledger.amend("shop", Budget(epsilon=0.9), analyst="bob", reason="a larger project")
    Curator.open(policy, analyst="bob").close()  # the owner's act


def test_a_question_without_a_delta_takes_a_hundredth_of_the_smallest_that_pays_for_it(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    limits = '"*" = { epsilon = 5, delta = 1e-7 }\nada = { epsilon = 5 }\nbob = { rho = 0.5 }\n'
    policy.write_text(f"{policy.read_text()}[analysts]\n{limits}")

    def taken(analyst: str, **given: Any) -> float:
        with Curator.open(policy, analyst=analyst, **given) as curator:
            target = curator.explain(COUNT, epsilon=0.5).target
            assert target is not None
            return target.delta

    assert taken("eve") == taken("eve") == pytest.approx(1e-9)
    assert taken("ada") == 0
    assert taken("bob") == 1e-8  # zCDP admits Gaussian noise, which the delta of the data set's budget is for
    with Ledger.open(tmp_path / "shop.ledger") as ledger:
        ledger.enrol("few", ["zoe"])
        ledger.limit("shop", Budget(epsilon=1.0, delta=1e-8), group="few")
    assert taken("zoe") == pytest.approx(1e-10)
    looking = Ledger.open(tmp_path / "shop.ledger", read_only=True)
    assert taken("new", ledger=looking) == pytest.approx(
        1e-9
    )  # what the policy will give, if the ledger may not be written to

    def ask(analyst: str, delta: float | None) -> None:
        with Curator.open(policy, analyst=analyst) as curator:
            for spend in range(20):
                text = f"SELECT items, COUNT(*) FROM visits WHERE spend > {spend} GROUP BY items"
                curator.sql(text, epsilon=0.02, delta=delta)

    ask("eve", None)
    with pytest.raises(BudgetExceeded, match="delta"):  # a tenth of it each time, and it is soon gone
        ask("tom", 1e-8)


def test_budgets_of_a_policy_begin_again_if_it_says_so(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    text = policy.read_text() + '[analysts]\n"*" = { epsilon = 0.5, period = "4 weeks" }\nada = { epsilon = 2 }\n'
    policy.write_text(text.replace("[budget]", '[budget]\nperiod = "365 days"'))
    for _ in range(2):  # the same again changes nothing
        for analyst in ("ada", "bob"):
            Curator.open(policy, analyst=analyst).close()
    with Ledger.open(tmp_path / "shop.ledger") as ledger:
        periods = {(one.holder, one.name): one.period for one in ledger.standings("shop")}
    weeks, year = dt.timedelta(weeks=4), dt.timedelta(days=365)
    assert periods == {("dataset", ""): year, ("analyst", "ada"): None, ("analyst", "bob"): weeks}
    policy.write_text(policy.read_text().replace('period = "365 days"', ""))
    with pytest.raises(InvalidArgument, match="another budget or period; state that one"):
        Curator.open(policy, analyst="ada")


def test_a_refusal_names_the_budget_that_is_in_the_way_in_the_end(tmp_path: Path) -> None:
    with Curator.open(shop(tmp_path), analyst="ada") as curator:
        curator.ledger.limit("shop", Budget(epsilon=0.5), analyst="ada")
        with pytest.raises(BudgetExceeded, match="the budget of analyst 'ada'") as refused:
            curator.sql(COUNT, epsilon=100, delta=0)
        assert refused.value.remaining == pytest.approx(0.5, abs=0.05)


def test_a_policy_shares_what_was_paid_for_with_all_who_have_no_budget_of_their_own(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    text = policy.read_text().replace("max_rows = 20\n", "")  # a bound has to be chosen
    policy.write_text("shared = true\n" + text + "[analysts]\neve = { epsilon = 5 }\n")
    price = {"epsilon": 0.5, "delta": 0}
    with Curator.open(policy, analyst="ada") as ada:
        for _ in range(ENOUGH):
            answer = ada.sql(COUNT, **price, reuse=False)
        known = ada.explain(COUNT, **price, reuse=False).cost
        before = ada.remaining
    with Curator.open(policy, analyst="bob") as bob:
        assert bob.explain(COUNT, **price).answered
        repeated = bob.sql(COUNT, **price)
        assert repeated.repeated
        assert repeated.to_arrow().equals(answer.to_arrow())
        assert bob.remaining == before
        assert bob.explain(COUNT, **price, reuse=False).cost == known  # bounds are not bought again
    with Curator.open(policy, analyst="eve") as eve:
        assert not eve.explain(COUNT, **price).answered
        assert not eve.sql(COUNT, **price).repeated
    with Ledger.open(tmp_path / "shop.ledger") as ledger:
        ledger.enrol("team", ["bob"])
        ledger.limit("shop", Budget(epsilon=5.0), group="team")
    with Curator.open(policy, analyst="bob") as bob:
        assert not bob.explain(COUNT, **price).answered
        assert bob.explain(COUNT, **price).cost != known


def test_nobody_shares_what_a_policy_does_not_share_or_limits_for_everybody(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    text = policy.read_text()
    with Curator.open(policy, analyst="ada") as ada:
        ada.sql(COUNT, epsilon=0.5)
    with Curator.open(policy, analyst="bob") as bob:
        assert not bob.explain(COUNT, epsilon=0.5).answered
    policy.write_text("shared = 1\n" + text)
    with pytest.raises(PolicyError, match="Write true or false"):
        Policy.load(policy)
    policy.write_text("shared = true\n" + text + '[analysts]\n"*" = { epsilon = 5 }\n')
    with pytest.raises(PolicyError, match="bounds what each of them sees: leave out one"):
        Policy.load(policy)


def test_looking_does_not_share_with_somebody_whose_budget_is_not_written_yet(tmp_path: Path) -> None:
    policy = shop(tmp_path)
    policy.write_text("shared = true\n" + policy.read_text() + "[analysts]\neve = { epsilon = 5 }\n")
    with Curator.open(policy, analyst="ada") as ada:
        ada.sql(COUNT, epsilon=0.5)
        place = ada.ledger.path
    assert place is not None
    for analyst, answered in (("bob", True), ("eve", False)):
        with Curator.open(policy, analyst=analyst, ledger=Ledger.open(place, read_only=True)) as looking:
            assert looking.explain(COUNT, epsilon=0.5).answered == answered


def test_the_limit_of_an_analyst_holds_however_their_accents_are_written(tmp_path: Path) -> None:
    composed, apart = "ren\u00e9", "rene\u0301"
    policy = shop(tmp_path)
    text = policy.read_text()
    policy.write_text(f"{text}[analysts]\n{composed!r} = {{ epsilon = 0.25 }}\n", encoding="utf-8")
    with Curator.open(policy, analyst=apart) as curator:
        assert curator.analyst == composed
        assert curator.remaining == 0.25
    both = f"{text}[analysts]\n{composed!r} = {{ epsilon = 0.25 }}\n{apart!r} = {{ epsilon = 2 }}\n"
    policy.write_text(both, encoding="utf-8")
    with pytest.raises(PolicyError, match="Name every analyst once"):
        Curator.open(policy, analyst=apart)


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


def test_a_policy_is_not_contradicted_by_arguments(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="the policy says it"):
        Curator.open(shop(tmp_path), unit="user_id")
