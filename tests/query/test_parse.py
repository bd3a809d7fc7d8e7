import datetime as dt

import pytest

from discreet.errors import QueryRefused
from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse

DATES = (dt.date(2023, 1, 1), dt.date(2023, 12, 31))
VISITS = Table(
    "visits",
    (
        Column("user_id", "BIGINT"),
        Column("city", "VARCHAR"),
        Column("category", "INTEGER", keys=tuple(range(50))),
        Column("spend", "DOUBLE", bounds=(0, 100)),
        Column("day", "DATE", bounds=DATES),
    ),
    '"visits"',
    "unit",
    "user_id",
)
USERS = Table("users", (Column("user_id", "BIGINT"), Column("country", "VARCHAR")), '"users"', "unit", "user_id", True)
CATALOG = Catalog({"visits": VISITS, "users": USERS})


@pytest.mark.parametrize(
    ("text", "keys", "functions"),
    [
        ("SELECT COUNT(*) FROM visits", [], ["count"]),
        ("SELECT SUM(spend) FROM visits", [], ["sum"]),
        ("SELECT category, COUNT(*) FROM visits GROUP BY category", [50], ["count"]),
        ("SELECT city, AVG(spend), SUM(spend) FROM visits GROUP BY city", [None], ["avg", "sum"]),
        ("SELECT day, COUNT(DISTINCT user_id) FROM visits GROUP BY day", [365], ["count_units"]),
        ("SELECT category, MEDIAN(spend) FROM visits GROUP BY category", [50], ["quantile"]),
        ("SELECT country, COUNT(*) FROM visits JOIN users USING (user_id) GROUP BY country", [None], ["count"]),
        ("SELECT category, day, COUNT(*) FROM visits GROUP BY ALL", [50, 365], ["count"]),
    ],
)
def test_the_questions_of_the_benchmark_become_one_block(text, keys, functions):
    (block,) = parse(text, CATALOG).blocks
    assert [key.values and len(key.values) for key in block.keys] == keys
    assert [aggregate.function for aggregate in block.aggregates] == functions
    assert block.rows.startswith('SELECT t0."user_id" AS u')


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM visits",
        "SELECT user_id, COUNT(*) FROM visits GROUP BY user_id",
        "SELECT city FROM visits LIMIT 3",
        "SELECT COUNT(*) FROM visits JOIN users ON visits.city = users.country",
        "DROP TABLE visits",
    ],
)
def test_rows_of_people_are_never_shown(text):
    with pytest.raises(QueryRefused):
        parse(text, CATALOG)
