"""Joins with a public table on a column that is declared unique: a row stays one row, whatever the file holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.errors import InvalidArgument, PolicyError, QueryRefused
from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse, render
from discreet.query.policy import ColumnPolicy, Policy, TablePolicy
from query import noiseless

EVENTS = Table(
    "events",
    (Column("city", "VARCHAR"), Column("code", "INTEGER"), Column("x", "DOUBLE", bounds=(0, 1))),
    '"events"',
    "row",
)
USERS = Table(
    "users", (Column("user_id", "BIGINT"), Column("city", "VARCHAR")), '"users"', "unit", "user_id", one_row=True
)
CITIES = Table(
    "cities",
    (Column("city", "VARCHAR", unique=True), Column("code", "BIGINT", unique=True), Column("country", "VARCHAR")),
    '"cities"',
    "public",
)
COUNTRIES = Table(
    "countries", (Column("country", "VARCHAR", unique=True), Column("part", "VARCHAR")), '"countries"', "public"
)
ORDERS = Table("orders", (Column("user_id", "BIGINT"), Column("day", "BIGINT")), '"orders"', "unit", "user_id")
CATALOG = Catalog({table.name: table for table in (EVENTS, USERS, CITIES, COUNTRIES, ORDERS)})

OF_ROWS = [
    "SELECT country, COUNT(*) FROM events JOIN cities USING (city) GROUP BY country",
    "SELECT part, COUNT(*) FROM events JOIN cities USING (city) JOIN countries USING (country) GROUP BY part",
    "SELECT country, COUNT(*) FROM events e LEFT JOIN cities c ON e.code = c.code AND x > 0.5 GROUP BY country",
    "SELECT country, COUNT(*) FROM cities c JOIN events e ON e.code = c.code GROUP BY country",
    "SELECT country, COUNT(*) FROM cities c RIGHT JOIN events e ON e.city = c.city GROUP BY country",
    "SELECT country, COUNT(*) FROM cities c, events e WHERE e.city = c.city AND x > 0.1 GROUP BY country",
    "SELECT COUNT(*) FROM events JOIN (SELECT city, country FROM cities) USING (city)",
    "WITH e AS (SELECT city FROM events) SELECT country, COUNT(*) FROM e JOIN cities USING (city) GROUP BY country",
    "SELECT COUNT(*) FROM events e JOIN cities a USING (city) JOIN cities b ON b.code = a.code",
]
OF_UNITS = [
    "SELECT country, COUNT(*) FROM users JOIN cities USING (city) GROUP BY country",
    "SELECT part, COUNT(*) FROM users LEFT JOIN cities USING (city) JOIN countries USING (country) GROUP BY part",
]
OF_MANY_ROWS = {
    "SELECT country, COUNT(*) FROM orders JOIN users USING (user_id) JOIN cities USING (city) GROUP BY country": True,
    "SELECT part, COUNT(*) FROM orders o JOIN users USING (user_id) JOIN cities USING (city) "
    "LEFT JOIN countries USING (country) GROUP BY part": True,
    "SELECT c.country, COUNT(*) FROM orders o JOIN users u USING (user_id) LEFT JOIN cities c ON u.city = c.city "
    "GROUP BY c.country": True,
    "SELECT c.country, COUNT(*) FROM orders o JOIN users u USING (user_id) LEFT JOIN cities c ON u.city = c.city "
    "AND o.day > 3 GROUP BY c.country": False,
    "SELECT country, COUNT(*) FROM orders JOIN cities ON day = code GROUP BY country": False,
    "SELECT one, COUNT(*) FROM orders LEFT JOIN (SELECT code, 1 AS one FROM cities) ON day = code GROUP BY one": False,
    "SELECT one, COUNT(*) FROM orders LEFT JOIN (SELECT 1 AS one FROM countries WHERE part = 'north') ON user_id = day "
    "GROUP BY one": False,
    "SELECT day, COUNT(*) FROM orders JOIN users USING (user_id) JOIN cities USING (city) GROUP BY day": False,
}
REFUSED = [
    "SELECT COUNT(*) FROM events e JOIN cities c ON e.city = c.country",
    "SELECT COUNT(*) FROM events e JOIN cities c ON e.x = c.code",
    "SELECT COUNT(*) FROM events e JOIN cities c ON c.city = c.city",
    "SELECT COUNT(*) FROM events e JOIN cities c ON c.city = c.country",
    "SELECT COUNT(*) FROM events e JOIN cities c ON c.city = c.country AND e.city <> c.city",
    "SELECT COUNT(*) FROM events e, cities c WHERE c.city = c.country",
    "SELECT COUNT(*) FROM events e, cities c WHERE e.city = c.city OR x > 0.5",
    "SELECT COUNT(*) FROM events e JOIN cities c ON e.city = c.city OR x > 0.5",
    "SELECT COUNT(*) FROM events e JOIN cities c ON NOT e.city = c.city",
    "SELECT COUNT(*) FROM events e JOIN cities c ON e.city >= c.city",
    "SELECT COUNT(*) FROM events CROSS JOIN cities",
    "SELECT COUNT(*) FROM events JOIN (SELECT city || '' AS city FROM cities) USING (city)",
    "SELECT COUNT(*) FROM events JOIN (SELECT a.city FROM cities a CROSS JOIN cities b) USING (city)",
    "SELECT COUNT(*) FROM events JOIN (SELECT city FROM cities UNION ALL SELECT city FROM cities) USING (city)",
    "SELECT COUNT(*) FROM events JOIN cities a USING (city) JOIN cities b ON b.city = b.country",
    "SELECT COUNT(*) FROM cities c LEFT JOIN events e ON e.city = c.city",
    "SELECT COUNT(*) FROM cities c FULL JOIN events e ON e.city = c.city",
]


@pytest.fixture
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            """CREATE TABLE events AS SELECT ['Rome', 'Oslo', 'Lima', 'x', NULL][1 + (i % 5)::INT] AS city,
            (i % 4)::INTEGER AS code, (i % 10) / 10.0 AS x FROM range(60) r(i);
            CREATE TABLE users AS SELECT i AS user_id, ['Rome', 'Oslo', 'x'][1 + (i % 3)::INT] AS city
            FROM range(20) r(i);
            CREATE TABLE orders AS SELECT i % 25 AS user_id, i % 7 AS day FROM range(200) r(i);
            CREATE TABLE cities AS FROM (VALUES ('Rome', 1::BIGINT, 'IT'), ('Oslo', 2, 'NO'), ('Lima', 3, 'PE'),
            (NULL, NULL, 'IT')) AS t(city, code, country);
            CREATE TABLE countries AS FROM (VALUES ('IT', 'south'), ('NO', 'north')) AS t(country, part)"""
        )
        yield connection


@pytest.mark.parametrize("text", OF_ROWS + OF_UNITS)
def test_without_noise_the_join_is_the_one_of_sql(engine: duckdb.DuckDBPyConnection, text: str) -> None:
    question = parse(text, CATALOG)
    (block,) = question.blocks
    assert block.rows_per_unit == 1
    assert noiseless.same(noiseless.answer(question, engine), engine.execute(text).fetchall(), ordered=False)


@pytest.mark.parametrize(("text", "shared"), OF_MANY_ROWS.items())
def test_what_a_unit_s_own_value_is_joined_to_is_its_own(
    engine: duckdb.DuckDBPyConnection, text: str, shared: bool
) -> None:
    question = parse(text, CATALOG)
    (block,) = question.blocks
    assert [key.of_unit for key in block.keys] == [shared]
    groups = engine.execute(f"SELECT max(n) FROM (SELECT count(DISTINCT coalesce(k0::VARCHAR, '')) AS n "
                            f"FROM ({block.rows}) GROUP BY u)").fetchall()  # fmt: skip
    assert (groups[0][0] == 1) == shared
    assert noiseless.same(noiseless.answer(question, engine), engine.execute(text).fetchall(), ordered=False)


def test_joins_on_columns_alone_may_be_planned_by_their_ranges() -> None:
    (block,) = parse(OF_ROWS[0], CATALOG).blocks
    assert "DISTINCT ON" in block.rows
    assert block.plain
    for condition in ("x > 0.5", "country = 'IT'", "LOWER(city) = 'rome'"):
        (block,) = parse(OF_ROWS[0].replace("GROUP", f"WHERE {condition} GROUP"), CATALOG).blocks
        assert not block.plain


def test_the_plan_says_what_to_declare() -> None:
    plain = Catalog({"orders": ORDERS, "days": Table("days", (Column("day", "BIGINT"),), "days", "public")})
    shown = render("SELECT COUNT(*) FROM orders JOIN days USING (day)", plain)
    assert "if day has no value twice, declare unique = true" in shown


@pytest.mark.parametrize("text", OF_ROWS)
def test_one_row_changes_one_row_also_where_the_file_is_not_as_declared(
    engine: duckdb.DuckDBPyConnection, text: str
) -> None:
    engine.execute(
        "INSERT INTO cities FROM cities; INSERT INTO cities FROM cities; INSERT INTO countries FROM countries"
    )
    (block,) = parse(text, CATALOG).blocks
    engine.execute("CREATE TABLE every AS FROM events")
    for kept in range(60):
        engine.execute(f"CREATE OR REPLACE TABLE events AS FROM every LIMIT 1 OFFSET {kept}")
        assert len(engine.execute(block.rows).fetchall()) <= 1


@pytest.mark.parametrize("text", REFUSED)
def test_joins_that_could_multiply_rows_are_refused(text: str) -> None:
    with pytest.raises(QueryRefused, match=r"could multiply rows|belong to no unit"):
        parse(text, CATALOG)


def test_the_policy_declares_it_and_the_public_table_is_looked_at(tmp_path: Path) -> None:
    rows = pa.table({"city": ["Rome"] * 700 + ["Oslo"] * 300})
    good = pa.table({"city": ["Rome", "Oslo"], "country": ["IT", "NO"]})
    bad = pa.table({"city": ["Rome", "Rome"], "country": ["IT", "NO"]})

    def policy(cities: pa.Table, **facts: bool) -> Policy:
        tables = {
            "events": TablePolicy(rows, unit="row"),
            "cities": TablePolicy(cities, public=True, columns={"city": ColumnPolicy(**facts)}),
        }
        return Policy("events", tables)

    text = "SELECT country, COUNT(*) AS n FROM events JOIN cities USING (city) GROUP BY country ORDER BY n"
    given = {"budget": Budget(epsilon=10.0, delta=1e-6), "ledger": ":memory:"}
    with Curator.open(policy(good, unique=True), **given) as curator:
        answer = dict(curator.sql(text, epsilon=5).fetchall())
        assert (answer["IT"], answer["NO"]) == (pytest.approx(700, abs=30), pytest.approx(300, abs=30))
    with Curator.open(policy(good), **given) as curator, pytest.raises(QueryRefused, match="unique = true"):
        curator.sql(text, epsilon=5)
    with pytest.raises(PolicyError, match=r"tables\.cities\.columns\.city\.unique: a value is there more than once"):
        Curator.open(policy(bad, unique=True), **given)


def test_only_plain_columns_of_public_tables_can_be_unique() -> None:
    with pytest.raises(InvalidArgument, match="only a public table"):
        TablePolicy("a.csv", unit="u", columns={"c": ColumnPolicy(unique=True)})
    with pytest.raises(InvalidArgument, match="hidden"):
        ColumnPolicy(hidden=True, unique=True)
    tables = {
        "t": TablePolicy(pa.table({"u": [1]}), unit="u"),
        "p": TablePolicy(pa.table({"c": [0.1]}), public=True, columns={"c": ColumnPolicy(unique=True)}),
    }
    with pytest.raises(PolicyError, match="DOUBLE is compared in more than one way"):
        Curator.open(Policy("t", tables), budget=Budget(epsilon=1.0), ledger=":memory:")
