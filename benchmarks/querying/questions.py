"""The eight questions, each as the SQL an analyst would write, and as the floor.

The **floor** is the least that user-level privacy asks of a database, in one statement: rows are added up per person
and key, each person's vector is scaled down to an l2 norm of at most ``clip``, and the vectors are summed. It has no
accounting, no exact integers, no ledger and no noise inside the statement; nothing private can be expected to be much
faster. The form with a join was the quickest of those tried (window functions take 1.5 to 2 times as long, lists 3
times). For the median the vector is a histogram of ``spend`` in bins of 4 %, from which a median is read off.
"""

from __future__ import annotations

from dataclasses import dataclass

from querying.data import LARGEST_SPEND

JUDGED_CITIES = 300
"""The error of d is judged on this many largest cities, so that releasing more small ones is no disadvantage."""

BINS_PER_UNIT_OF_LOG = 25
"""Width of the bins of the floor's histogram: 4 % of the value."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question: ``keys`` are the grouping columns, ``values`` the released ones.

    ``raw`` is the statement without privacy, where it is not the analyst's: the sum of b is one of clamped values.
    """

    name: str
    sql: str
    floor: str
    raw: str = ""
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ("n",)
    judged: int | None = None
    described: str = ""


def _clipped(cells: str, *, keys: str, values: dict[str, str], tables: str = "visits") -> str:
    """Pre-aggregate per person and key, scale each person's vectors, add up."""
    sums = ", ".join(f"{expression} AS {name}" for name, expression in values.items())
    scales = ", ".join(f"least(1, {{clip_{v}}} / sqrt(sum({v} * {v}))) AS scale_{v}" for v in values)
    added = ", ".join(f"sum({v} * scale_{v}) AS {v}" for v in values)
    return (
        f"WITH cells AS (SELECT user_id, {cells}, {sums} FROM {tables} GROUP BY ALL), "
        f"norms AS (SELECT user_id, {scales} FROM cells GROUP BY user_id) "
        f"SELECT {keys}, {added} FROM cells JOIN norms USING (user_id) GROUP BY ALL"
    )


_SPEND = f"sum(least(greatest(spend, 0), {LARGEST_SPEND:g}))"
_BIN = f"floor(ln(greatest(spend, 0.01)) * {BINS_PER_UNIT_OF_LOG})::INT AS bin"

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="a",
        described="COUNT(*)",
        sql="SELECT COUNT(*) AS n FROM visits",
        floor="SELECT sum(least(n, {clip_n})) AS n FROM (SELECT count(*) AS n FROM visits GROUP BY user_id)",
    ),
    Question(
        name="b",
        described="SUM(spend), clamped",
        sql="SELECT SUM(spend) AS total FROM visits",
        raw=f"SELECT {_SPEND} AS total FROM visits",
        values=("total",),
        floor=f"SELECT sum(least(total, {{clip_total}})) AS total FROM "
        f"(SELECT {_SPEND} AS total FROM visits GROUP BY user_id)",
    ),
    Question(
        name="c",
        described="COUNT(*) by category, 50 public keys",
        sql="SELECT category, COUNT(*) AS n FROM visits GROUP BY category",
        keys=("category",),
        floor=_clipped("category", keys="category", values={"n": "count(*)"}),
    ),
    Question(
        name="d",
        described="AVG and SUM(spend) by city, 10 000 keys, private selection",
        sql="SELECT city, AVG(spend) AS mean, SUM(spend) AS total FROM visits GROUP BY city",
        keys=("city",),
        values=("mean", "total"),
        judged=JUDGED_CITIES,
        floor=_clipped("city", keys="city", values={"people": "1", "n": "count(*)", "total": _SPEND}),
    ),
    Question(
        name="e",
        described="COUNT(DISTINCT user_id) by day, 365 public keys",
        sql="SELECT day, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY day",
        keys=("day",),
        floor=_clipped("day", keys="day", values={"n": "1"}),
    ),
    Question(
        name="f",
        described="MEDIAN(spend) by category, 50 public keys",
        sql="SELECT category, MEDIAN(spend) AS middle FROM visits GROUP BY category",
        keys=("category",),
        values=("middle",),
        floor=_clipped(f"category, {_BIN}", keys="category, bin", values={"n": "count(*)"}),
    ),
    Question(
        name="g",
        described="COUNT(*) by country, joined with users, 40 public keys",
        sql="SELECT country, COUNT(*) AS n FROM visits JOIN users USING (user_id) GROUP BY country",
        keys=("country",),
        floor="SELECT country, sum(least(n, {clip_n})) AS n FROM "
        "(SELECT user_id, count(*) AS n FROM visits GROUP BY user_id) JOIN users USING (user_id) GROUP BY country",
    ),
    Question(
        name="h",
        described="COUNT(*) by category and day, 18 250 public cells",
        sql="SELECT category, day, COUNT(*) AS n FROM visits GROUP BY category, day",
        keys=("category", "day"),
        floor=_clipped("category, day", keys="category, day", values={"n": "count(*)"}),
    ),
)


def question(name: str) -> Question:
    """The question of that letter."""
    return next(q for q in QUESTIONS if q.name == name)
