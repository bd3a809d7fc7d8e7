"""Conditions in WHERE make the public values of keys fewer, and the ranges of arguments smaller."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse
from query import shop

LOGS = Table(
    "logs",
    (
        Column("who", "BIGINT"),
        Column("t", "TIMESTAMP", bounds=(dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 31, 23, 59, 59, 999_999))),  # noqa: DTZ001
        Column("city", "VARCHAR", keys=("Bonn", "Oslo", "Rome")),
        Column("free", "DOUBLE"),
    ),
    "logs",
    "unit",
    "who",
)
MORNING = dt.datetime(2024, 3, 15, 6)  # noqa: DTZ001
CATALOG = Catalog({**shop.CATALOG.tables, "logs": LOGS})


def keys(key: str, where: str, table: str = "visits") -> tuple:
    question = parse(f"SELECT {key} AS k, COUNT(*) FROM {table} WHERE {where} GROUP BY k", CATALOG)
    return question.blocks[0].keys[0].values or ()


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("category = 3", (3,)),
        ("category IN (1, 2)", (1, 2)),
        ("category > 1 AND category <= 3", (2, 3)),
        ("(category > 1) AND (3 > category)", (2,)),
        ("category = 1 OR category = 4", (1, 4)),
        ("NOT category BETWEEN 1 AND 3", (0, 4)),
        ("category % 2 = 0 AND spend > 5", (0, 2, 4)),
        # what says nothing about single values, or leaves none, changes nothing
        ("category = 1 OR spend > 5", (0, 1, 2, 3, 4)),
        ("category > spend", (0, 1, 2, 3, 4)),
        ("category > 17", (0, 1, 2, 3, 4)),
    ],
)
def test_only_values_that_meet_the_condition_are_listed(where: str, left: tuple) -> None:
    assert keys("category", where) == left


@pytest.mark.parametrize(
    ("key", "where", "first", "number"),
    [
        ("date_trunc('hour', t)", "t::DATE = '2024-03-15'", dt.datetime(2024, 3, 15), 24),  # noqa: DTZ001
        (
            "date_trunc('hour', t)",
            "t >= '2024-03-15 06:00:00' AND t < '2024-03-15 12:00:00'",
            MORNING,
            6,
        ),
        ("CAST(t AS DATE)", "t >= '2024-03-10' AND t < '2024-03-17'", dt.date(2024, 3, 10), 7),
        ("CAST(t AS DATE)", "CAST(t AS DATE) BETWEEN '2024-03-10' AND '2024-03-12'", dt.date(2024, 3, 10), 3),
        ("CAST(t AS DATE)", "CAST(t AS DATE) > '2024-03-29'", dt.date(2024, 3, 30), 2),
        ("CAST(t AS DATE)", "t > '2030-01-01'", dt.date(2024, 3, 1), 31),
        ("city", "city LIKE '%o'", "Oslo", 1),
        ("city", "city IN (SELECT city FROM regions)", "Bonn", 3),
    ],
)
def test_only_times_that_meet_the_condition_are_listed(key: str, where: str, first: object, number: int) -> None:
    found = keys(key, where, "logs")
    assert (found[0], len(found)) == (first, number)


@pytest.mark.parametrize(
    ("argument", "where", "bounds"),
    [
        ("age", "age BETWEEN 18 AND 30", (18, 30)),
        ("age", "age > 18", (19, 120)),
        ("age * 2", "age < 50 AND ok", (0, 98)),
        ("spend", "spend < 5.5", (0, 5.5)),
        ("spend", "spend > -3 AND spend > 200", (0, 100)),
        ("age", "age < 30 OR ok", (0, 120)),
        ("age", "NOT age < 30", (0, 120)),
    ],
)
def test_an_argument_is_within_the_range_that_a_condition_leaves(argument: str, where: str, bounds: tuple) -> None:
    question = parse(f"SELECT AVG({argument}) FROM visits WHERE {where}", CATALOG)
    assert question.blocks[0].aggregates[0].bounds == bounds


ROWS = Table("rows", (Column("free", "DOUBLE"), Column("whole", "INTEGER"), Column("day", "DATE")), "rows", "row")
UNDECLARED = Catalog(
    {
        "rows": ROWS,
        "units": Table("units", (Column("who", "BIGINT"), *ROWS.columns), "units", "unit", "who"),
    }
)


@pytest.mark.parametrize(
    ("where", "of_units", "of_rows"),
    [
        ("free BETWEEN 100 AND 180", (100, 180), (100, 180)),
        ("free >= 100 AND 180 > free AND who IS NOT NULL", (100, 180), (100, 180)),
        ("free > -80 AND free <= -10.5", (-80, -10.5), (-80, -10.5)),
        ("free BETWEEN 0 AND 100", (0, 100), None),
        # what is as wide as this says nothing about how large values are
        ("free > 0 AND free < 1e9", None, None),
        ("free BETWEEN -20 AND 40", None, None),
        ("free > 100", None, None),
        ("free < 100 AND free > 180", None, None),
        ("free = 100", None, None),
        ("free BETWEEN 100 AND 180 OR free > 500", None, None),
    ],
)
def test_two_ends_of_a_column_without_declared_bounds_say_how_large_it_is(
    where: str, of_units: tuple | None, of_rows: tuple | None
) -> None:
    for table, bounds in (("units", of_units), ("rows", of_rows)):
        text = f"SELECT AVG(free) FROM {table} WHERE {where}".replace(" AND who IS NOT NULL", "")
        assert parse(text, UNDECLARED).blocks[0].aggregates[0].bounds == bounds


def test_days_between_two_of_the_question_are_listed() -> None:
    text = "SELECT date_trunc('month', day) AS m, COUNT(*) FROM units WHERE {} GROUP BY m"
    (key,) = parse(text.format("day BETWEEN '2024-01-15' AND '2024-06-30'"), UNDECLARED).blocks[0].keys
    assert key.values is not None
    assert [day.month for day in key.values if day is not None] == [1, 2, 3, 4, 5, 6]
    for wide in ("day >= '2024-01-15'", "day BETWEEN '1500-01-01' AND '2500-01-01'"):
        (key,) = parse(text.format(wide), UNDECLARED).blocks[0].keys
        assert key.values is None


@pytest.mark.parametrize("where", ["age > 18 AND age <= 60", "age % 7 = 2", "age BETWEEN 20 AND 90 AND age <> 25"])
def test_every_row_that_meets_the_condition_is_in_a_listed_group(where: str) -> None:
    with duckdb.connect() as engine:
        engine.execute(shop.CREATE)
        found = engine.execute(f"SELECT DISTINCT age FROM visits WHERE {where}").fetchall()
    assert found
    assert {age for (age,) in found} <= set(keys("age", where))


@pytest.mark.parametrize(
    "key", ["age * 2", "FLOOR(age / 10)", "age + 100", "age", "CASE WHEN age > 50 THEN 7 ELSE age END"]
)
@pytest.mark.parametrize("where", ["k > 5", "k < 90", "k BETWEEN 6 AND 60", "k IN (7, 8, 20, 120)"])
@pytest.mark.parametrize("inner", ["TRUE", "age > 20"])
def test_conditions_on_what_a_subquery_has_computed_lose_no_group(key: str, where: str, inner: str) -> None:
    rows = f"(SELECT user_id, {key} AS k FROM visits WHERE {inner})"
    with duckdb.connect() as engine:
        engine.execute(shop.CREATE)
        found = engine.execute(f"SELECT DISTINCT k FROM {rows} WHERE {where}").fetchall()
    question = parse(f"SELECT k, COUNT(*) FROM {rows} WHERE {where} GROUP BY k", CATALOG)
    listed = question.blocks[0].keys[0].values
    assert listed is None or {one for (one,) in found} <= set(listed)
