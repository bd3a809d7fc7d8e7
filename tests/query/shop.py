"""A small shop: visits and users with a unit, events without one, regions that are public."""

from __future__ import annotations

import datetime as dt

import duckdb

from discreet.query.catalog import Catalog, Column, Table

DAYS = (dt.date(2023, 1, 1), dt.date(2023, 12, 31))
VISITS = Table(
    "visits",
    (
        Column("user_id", "BIGINT"),
        Column("city", "VARCHAR"),
        Column("category", "INTEGER", keys=tuple(range(5))),
        Column("spend", "DOUBLE", bounds=(0, 100)),
        Column("day", "DATE", bounds=DAYS),
        Column("moment", "TIMESTAMP"),
        Column("age", "INTEGER", bounds=(0, 120)),
        Column("big", "BIGINT"),
        Column("price", "DECIMAL(10,2)", bounds=(0, 50)),
        Column("ok", "BOOLEAN"),
        Column("note", "VARCHAR"),
    ),
    '"visits"',
    "unit",
    "user_id",
)
USERS = Table(
    "users",
    (
        Column("user_id", "BIGINT"),
        Column("country", "VARCHAR"),
        Column("born", "INTEGER", bounds=(1920, 2020)),
    ),
    '"users"',
    "unit",
    "user_id",
    one_row=True,
)
EVENTS = Table("events", (Column("kind", "VARCHAR"), Column("x", "DOUBLE", bounds=(0, 1))), '"events"', "row")
REGIONS = Table(
    "regions",
    (Column("city", "VARCHAR"), Column("region", "VARCHAR"), Column("population", "BIGINT")),
    '"regions"',
    "public",
)
CATALOG = Catalog({table.name: table for table in (VISITS, USERS, EVENTS, REGIONS)})

CREATE = """
CREATE TABLE visits AS SELECT
    (i * 7919 % 23)::BIGINT AS user_id,
    ['Rome', 'Oslo', 'Lima', 'Bonn', NULL][1 + (i * 31 % 5)::INT] AS city,
    (i * 17 % 5)::INTEGER AS category,
    CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 37 % 1000) / 10.0 END::DOUBLE AS spend,
    DATE '2023-01-01' + (i * 13 % 365)::INTEGER AS day,
    TIMESTAMP '2023-01-01' + INTERVAL (i * 7013 % 31536000) SECOND AS moment,
    CASE WHEN i % 13 = 0 THEN NULL ELSE i * 29 % 121 END::INTEGER AS age,
    (i * 1000003 % 100000 - 50000)::BIGINT AS big,
    ((i * 7 % 500) / 10)::DECIMAL(10,2) AS price,
    [TRUE, FALSE, NULL][1 + (i * 5 % 3)::INT] AS ok,
    ['a1', 'b-22', '', 'Cc', NULL][1 + (i * 3 % 5)::INT] AS note
FROM range(400) r(i);
CREATE TABLE users AS SELECT i::BIGINT AS user_id, ['it', 'no', 'pe'][1 + (i % 3)::INT] AS country,
    (1920 + i * 7 % 100)::INTEGER AS born FROM range(20) r(i);
CREATE TABLE events AS SELECT ['x', 'y'][1 + (i % 2)::INT] AS kind, (i % 10) / 10.0::DOUBLE AS x FROM range(50) r(i);
CREATE TABLE regions AS SELECT * FROM (VALUES ('Rome', 'south', 2800000), ('Oslo', 'north', 700000),
    ('Lima', 'south', 10000000), ('Bonn', 'north', 330000), ('Atlantis', 'sea', 0)) t(city, region, population);
"""


def connection() -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds the shop."""
    engine = duckdb.connect()
    engine.execute(CREATE)
    return engine
