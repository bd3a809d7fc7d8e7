"""What an answer says about its columns."""

from __future__ import annotations

import pytest

from discreet import Budget, Curator
from query.open_shop import visits

TEXT = (
    "SELECT city, COUNT(*) AS n, SUM(spend) AS s, AVG(spend) AS m, MEDIAN(spend) AS q, COUNT(*) * 2 AS twice "
    "FROM visits GROUP BY city ORDER BY n"
)


@pytest.fixture(scope="module")
def curator() -> Curator:
    rows = visits()
    keys = sorted({str(city) for city in rows.column("city").to_pylist() if city is not None})
    return Curator.open(
        {"visits": rows},
        unit="user_id",
        budget=Budget(epsilon=50.0, delta=1e-5),
        ledger=":memory:",
        columns={"city": {"keys": keys}, "spend": {"bounds": (0, 100)}},
        public={"towns": rows.select(["city"]).slice(0, 3)},
    )


def test_every_column_says_what_it_is_and_how_much_noise_it_has(curator: Curator) -> None:
    answer = curator.sql(TEXT, epsilon=1.0, max_groups=2, max_rows=5)
    columns = {column.name: column for column in answer.schema}
    assert list(columns) == answer.columns
    assert {name: column.type for name, column in columns.items()} == {
        field.name: str(field.type) for field in answer.to_arrow().schema
    }
    assert {name: (column.role, column.aggregate) for name, column in columns.items()} == {
        "city": ("key", None),
        "n": ("released", "count(*)"),
        "s": ("released", "sum(spend)"),
        "m": ("released", "avg(spend)"),
        "q": ("released", "median(spend)"),
        "twice": ("computed", None),
    }
    assert {name for name, column in columns.items() if column.interval} == {"n", "s", "m", "q", "twice"}
    sums = curator.sql("SELECT city, SUM(spend) AS s FROM visits GROUP BY city", epsilon=1.0, max_groups=2, max_rows=5)
    [_, alone] = sums.schema
    for column, unit, one in ((columns["n"], 1.0, 5.0), (alone, 100.0, 500.0)):
        plan = (answer if unit == 1 else sums)._measured[0].plan
        kind = "rows" if unit == 1 else "sum"
        noise = plan.noise_of_moment(next(i for i, moment in enumerate(plan.moments) if moment.kind == kind))
        spread = 2**0.5 if plan.gaussian else 2.0
        assert column.noise == ("gaussian" if plan.gaussian else "laplace")
        assert column.bound == pytest.approx(one * spread, rel=1e-6)
        assert column.scale == pytest.approx(noise * one * spread, rel=1e-6)
    assert columns["s"].scale is None  # beside an average it is made of two numbers
    assert columns["m"].scale is columns["m"].bound is columns["q"].scale is columns["city"].noise is None


def test_a_number_of_its_own_has_its_law(curator: Curator) -> None:
    [people] = curator.sql("SELECT COUNT(DISTINCT user_id) AS people FROM visits", epsilon=1.0).schema
    assert (people.role, people.noise, people.bound) == ("released", "staircase", 1.0)
    [middle] = curator.sql("SELECT MEDIAN(spend) AS middle FROM visits", epsilon=1.0, delta=0.0).schema
    assert (middle.noise, middle.scale) == ("exponential mechanism", None)
    [cities] = curator.sql("SELECT COUNT(DISTINCT spend) AS cities FROM visits", epsilon=1.0).schema
    assert cities.aggregate == "count(DISTINCT spend)"
    assert (cities.bound or 0) >= 1


def test_columns_without_people_are_public(curator: Curator) -> None:
    [column] = curator.sql("SELECT COUNT(*) AS n FROM towns").schema
    assert (column.role, column.noise, column.interval) == ("public", None, False)


@pytest.mark.parametrize("keys", ["ROLLUP (city)", "CUBE (city)", "GROUPING SETS ((city), ())"])
def test_keys_of_several_groupings_are_keys(curator: Curator, keys: str) -> None:
    answer = curator.sql(f"SELECT city, COUNT(*) AS n, 1 AS one FROM visits GROUP BY {keys}", epsilon=1.0)
    assert [column.role for column in answer.schema] == ["key", "computed", "computed"]
