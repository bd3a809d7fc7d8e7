"""COUNT(DISTINCT x): the number of possible values, if public, limits the answer, its interval and the bound."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.query.distinct import most_pairs
from discreet.query.options import Options
from discreet.query.plan import Aggregate
from discreet.query.private import private_plan
from discreet.query.target import Target
from query.tables import PRIVATE, PUBLIC, block

PEOPLE = pa.table(
    {
        "u": np.arange(400) // 4,
        "colour": pa.array(["red", "green", "blue", "red"] * 100),
        "age": np.arange(400) % 7,
        "day": pa.array([dt.date(2024, 1, 1 + i % 3) for i in range(400)]),
        "free": np.arange(400),
        "part": np.arange(400) / 7,
        "tiny": pa.array(np.arange(400) % 5, pa.int8()),
    }
)
COLUMNS = {
    "colour": {"keys": ["red", "green", "blue"]},
    "age": {"bounds": (0, 6)},
    "day": {"bounds": ("2024-01-01", "2024-01-31")},
}


def opened() -> Curator:
    return Curator.open(
        PEOPLE, unit="u", name="people", columns=COLUMNS, budget=Budget(epsilon=500.0, delta=1e-3), ledger=":memory:"
    )


@pytest.mark.parametrize(
    ("argument", "most"),
    {
        "colour": 3,
        "age": 7,
        "age + 1": 7,
        "age > 3": 2,
        "day": 31,
        "UPPER(colour)": 3,
        "CASE WHEN age > 3 THEN 'old' ELSE colour END": 4,
        "colour) FILTER (WHERE age > 2": 3,
        "tiny": 256,
        "CAST(free AS INTEGER)": None,
        "free": None,
        "part": None,
    }.items(),
)
def test_how_many_values_there_can_be_follows_from_what_is_declared(argument: str, most: int | None) -> None:
    with opened() as curator:
        planned = curator.explain(f"SELECT COUNT(DISTINCT {argument}) AS n FROM people", epsilon=1.0)
    (plan,) = planned.plans
    assert plan.distincts[0].values == most
    assert any("as many values as are possible" in rule for rule in planned.report) == (most is not None)


def test_what_where_rules_out_is_not_possible() -> None:
    with opened() as curator:
        planned = curator.explain("SELECT COUNT(DISTINCT age) AS n FROM people WHERE age BETWEEN 2 AND 4", epsilon=1.0)
    assert planned.plans[0].distincts[0].values == 3


def test_no_answer_and_no_interval_is_above_the_number_of_values() -> None:
    with opened() as curator:
        above = 0
        for i in range(40):
            answer = curator.sql(
                "SELECT COUNT(DISTINCT colour) AS c, COUNT(DISTINCT free) AS f FROM people", epsilon=0.01 + 1e-6 * i
            )
            (row,) = answer.intervals(0.95).to_pylist()
            assert 0 <= row["c_low"] <= row["c"] <= row["c_high"] <= 3
            above += row["f_high"] > 400
        assert above  # the noise is far wider than the truth


def test_one_value_that_cannot_be_is_no_value() -> None:
    with opened() as curator:
        answer = curator.sql("SELECT COUNT(DISTINCT colour) AS c FROM people WHERE colour = 'black'", epsilon=1.0)
        assert answer.fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("keys", "options", "facts", "values", "most"),
    [
        ((), Options(), {}, 3, 3),
        ((), Options(), {}, None, math.inf),
        ((), Options(max_rows=2), {}, 3, 2),
        ((), Options(), {"rows_per_unit": 1}, None, 1),
        ((PUBLIC,), Options(), {}, 3, 12),
        ((PUBLIC,), Options(max_groups=2), {}, 3, 6),
        ((PRIVATE,), Options(), {}, 3, math.inf),
        ((PRIVATE,), Options(max_groups=5), {}, 3, 15),
        ((replace(PRIVATE, of_unit=True),), Options(), {}, 3, 3),
        ((PRIVATE,), Options(), {}, 0, 0),
    ],
)
def test_a_unit_keeps_no_more_values_than_it_can_have(
    keys: tuple, options: Options, facts: dict, values: int | None, most: float
) -> None:
    asked = Aggregate("count_distinct", "a0", "values", "nx", values=values)
    plan = private_plan(block(asked, keys=keys, **facts), Target(epsilon=1.0, delta=1e-9), options)
    assert most_pairs(plan, asked) == most


def test_each_distinct_count_has_a_bound_of_its_own() -> None:
    names = ("colour", "free")
    asked = "SELECT COUNT(DISTINCT colour) AS c, COUNT(DISTINCT free) AS f FROM people"
    with opened() as curator:
        for answer in (curator.sql(asked, epsilon=50.0), curator.sql(asked, epsilon=50.0)):
            colour, free = (answer.bounds[f"distinct values of a unit, for count(DISTINCT {x})"] for x in names)
            assert colour <= 3 < free
            assert len(answer.bounds) == 2


def test_the_bound_on_a_unit_is_at_most_what_it_can_have() -> None:
    with opened() as curator:
        for i in range(20):  # a choice for so little would often be far too large
            answer = curator.sql("SELECT COUNT(DISTINCT colour) AS c FROM people", epsilon=0.05 + 1e-6 * i)
            assert max(answer.bounds.values()) <= 3
