"""Between which numbers expressions over noisy numbers lie."""

from __future__ import annotations

import itertools
import math

import duckdb
import pytest
import sqlglot

from discreet.query.extents import extent

INF = math.inf
KNOWN = {
    "GREATEST(x, 0)": (0, INF),
    "LEAST(x, y, 5)": (-INF, 5),
    "GREATEST(x, (-1e0))": (-1, INF),
    "GREATEST(x, -(CAST(3 AS DOUBLE)))": (-3, INF),
    "LEAST(x, CASE WHEN y > 0 THEN 1 END)": (-INF, INF),
    "LEAST(GREATEST(x, -1e0), 1e0)": (-1, 1),
    "ROUND(LEAST(GREATEST(x, -1), 1), 2)": (-1, 1),
    "ROUND(LEAST(GREATEST(x, -1), 1))": (-1, 1),
    "ROUND(LEAST(GREATEST(x, -1), 7), -1)": (-INF, INF),
    "ROUND(LEAST(x, 1.5))": (-INF, INF),
    "(CASE WHEN x > 3 THEN 3 WHEN x < -2.5 THEN -2.5 END)": (-2.5, 3),
    "CASE WHEN x > 3 THEN NULL ELSE ABS(y) END": (0, INF),
    "COALESCE(LEAST(x, 4), 9)": (-INF, 9),
    "LEAST(ABS(x), LEAST(y, 1))": (-INF, INF),
    "LEAST(GREATEST(x, 2), GREATEST(y, 3), 10)": (2, 10),
    "CAST(ABS(x) AS DOUBLE)": (0, INF),
    "CAST(ABS(x) AS INTEGER)": (-INF, INF),
    "SQRT(ABS(x))": (0, INF),
    "x + 1": (-INF, INF),
}


@pytest.mark.parametrize("sql", KNOWN)
def test_extents_are_known_and_hold_what_the_engine_says(sql: str) -> None:
    low, high = extent(sqlglot.parse_one(sql, read="duckdb"))
    assert (low, high) == KNOWN[sql]
    numbers = ("NULL", "-1e5", "-7.5", "-1.0", "0.0", "0.5", "2.0", "5.0", "1e5")
    for x, y in itertools.product(numbers, repeat=2):
        found = duckdb.sql(f"SELECT {sql} FROM (SELECT {x}::DOUBLE AS x, {y}::DOUBLE AS y)").fetchall()[0][0]
        assert found is None or low <= found <= high
