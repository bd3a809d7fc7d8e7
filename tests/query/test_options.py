"""Bounds that a question states: of numbers, dates and times."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.errors import InvalidArgument
from query.open_shop import opened

LAST = "values below 2022-01-01 count as that, and above 2022-03-31 as that"


@pytest.mark.parametrize(
    "bounds",
    [
        ("2022-01-01", "2022-03-31"),
        (dt.date(2022, 1, 1), dt.date(2022, 3, 31)),
        {"day": ("2022-01-01", dt.date(2022, 3, 31))},
        {"max(day)": ("2022-01-01", "2022-03-31")},
    ],
)
def test_dates_are_bounded_by_dates_as_in_a_policy(bounds: Any) -> None:
    with opened() as curator:
        planned = curator.explain("SELECT MAX(day) AS last, COUNT(*) AS n FROM visits", epsilon=1, bounds=bounds)
        assert any(LAST in rule for rule in planned.report)


@pytest.mark.parametrize(
    "named", ["date_diff('day', day, DATE '2022-12-31')", "AVG(date_diff('day',day,DATE '2022-12-31'))"]
)
def test_what_is_bounded_may_be_spelled_as_in_the_question(named: str) -> None:
    text = "SELECT AVG(date_diff('day', day, DATE '2022-12-31')) AS n FROM visits"
    with opened() as curator:
        (plan,) = curator.explain(text, epsilon=1, bounds={named: (0, 365)}).plans
        assert plan.block.aggregates[0].bounds == (0, 365)
        with pytest.raises(InvalidArgument, match="aggregates no such thing"):
            curator.explain(text, epsilon=1, bounds={"date_diff('week', day": (0, 365)})


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_are_bounded_by_times_and_a_last_day_is_the_whole_day(zone: str | None) -> None:
    at = [dt.datetime(2022, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=hour) for hour in range(2000)]
    rows = pa.table({"user": list(range(2000)), "at": pa.array(at, pa.timestamp("us", tz=zone))})
    with Curator.open(rows, unit="user", budget=Budget(epsilon=100.0), ledger=":memory:") as curator:

        def rule(low: Any, high: Any) -> str:
            planned = curator.explain("SELECT MAX(at) AS last FROM data", epsilon=1, bounds=(low, high))
            return " ".join(planned.report)

        assert "above 2022-01-31 23:59:59.999999" in rule("2022-01-01", "2022-01-31")
        assert "above 2022-01-31 18:00:00 as" in rule("2022-01-01", "2022-01-31T18:00:00")
        assert "above 2022-01-31 17:00:00 as" in rule(dt.date(2022, 1, 1), "2022-01-31T18:00:00+01:00")
        answer = curator.sql("SELECT MAX(at) AS last FROM data", epsilon=10, bounds=("2022-01-01", "2022-01-31"))
        (row,) = answer.intervals(0.95).to_pylist()
        assert "2022-01-25" < str(row["last"]) < "2022-02-01"


@pytest.mark.parametrize(
    ("text", "bounds", "words"),
    [
        ("MAX(day)", ("2022-03-31", "2022-01-01"), "lower < upper"),
        ("MAX(day)", ("soon", "later"), "dates and times such as 2024-12-31"),
        ("MAX(day)", ("2022-03-31", 7), "two numbers, or two dates or times"),
        ("MAX(day)", ("2022-03-31T10:00:00", "2022-04-01"), "write dates such as"),
        ("SUM(spend)", ("2022-01-01", "2022-03-31"), r"sum\(spend\) is about numbers: pass two numbers"),
    ],
)
def test_bounds_of_another_kind_are_refused(text: str, bounds: Any, words: str) -> None:
    with opened() as curator, pytest.raises(InvalidArgument, match=words):
        curator.sql(f"SELECT {text} FROM visits", epsilon=1, bounds=bounds)
