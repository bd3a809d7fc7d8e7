"""Windows within one person: whatever else is in the table, in whatever order, the rows of a person stay the same."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet import Curator
from discreet.errors import QueryRefused
from discreet.query import Policy
from discreet.query.parse import parse
from discreet.query.policy import TablePolicy
from query import shop
from query.open_shop import BUDGET, charges

INNER = (
    "ROW_NUMBER() OVER (PARTITION BY u ORDER BY k)",
    "ROW_NUMBER() OVER (PARTITION BY u)",
    "NTILE(3) OVER (PARTITION BY u ORDER BY x DESC)",
    "LAG(x) OVER (PARTITION BY u ORDER BY k)",
    "LEAD(c, 2) OVER (PARTITION BY u ORDER BY x)",
    "LAG(k, 1, -1) OVER (PARTITION BY u ORDER BY k)",
    "LEAD(c, 2, 'none') OVER (PARTITION BY u, k ORDER BY x)",
    "FIRST_VALUE(x) OVER (PARTITION BY u ORDER BY k DESC)",
    "LAST_VALUE(x) OVER (PARTITION BY u, k ORDER BY c ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "MIN(x) OVER (PARTITION BY u)",
    "MIN(CASE WHEN x = 0 THEN x * (k - 1) END) OVER (PARTITION BY u, c)",
    "FIRST_VALUE(CAST(l AS VARCHAR)) OVER (PARTITION BY u, k, x, c)",
    "SUM(k) OVER (PARTITION BY u ORDER BY k)",
    "SUM(k) OVER (PARTITION BY u ORDER BY c ROWS 2 PRECEDING)",
    "COUNT(x) OVER (PARTITION BY u ORDER BY c ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
    "RANK() OVER (PARTITION BY u ORDER BY x)",
    "CUME_DIST() OVER (PARTITION BY u ORDER BY k)",
)


def visits(units: int = 40, rows: int = 900) -> pa.Table:
    """Rows with many ties, some equal in all columns, and zeros of both signs."""
    rng = np.random.default_rng(5)
    x = rng.choice([0.0, -0.0, 1.5, np.nan, np.inf, -2.0], rows)
    return pa.table(
        {
            "u": pa.array(rng.integers(0, units, rows), mask=rng.random(rows) < 0.05),
            "k": pa.array(rng.integers(0, 3, rows), mask=rng.random(rows) < 0.1),
            "x": pa.array(x, mask=rng.random(rows) < 0.1),
            "c": rng.choice(["a", "b", ""], rows).tolist(),
            "l": pa.array([[value] for value in rng.choice([0.0, -0.0, 3.0], rows)]),
        }
    )


def opened(rows: pa.Table, **options: Any) -> Curator:
    policy = Policy("tried", {"t": TablePolicy(rows, unit="u")})
    return Curator.open(policy, budget=BUDGET, ledger=":memory:", **options)


def rows_of(rows: pa.Table, text: str, **options: Any) -> list[tuple[Any, ...]]:
    """What the engine has before anything is added up, as texts that tell all values apart."""
    with opened(rows, **options) as curator:
        asked = curator._desk.take(text, epsilon=1.0, delta=1e-6, cost=None, call={})
        (plan,) = asked.plans
        with curator._data.engine.session() as session:
            found = session.table(plan.block.rows)
    return sorted(tuple(map(str, row.values())) for row in found.to_pylist())


@pytest.mark.parametrize("value", INNER)
def test_the_rows_of_a_person_depend_on_their_own_alone(value: str) -> None:
    rows = visits()
    other = INNER[(INNER.index(value) + 3) % len(INNER)]
    text = (
        f"SELECT CAST(v AS VARCHAR) AS a, CAST(w AS VARCHAR) AS b, x, COUNT(l) AS n FROM "
        f"(SELECT *, {value} AS v, {other} AS w FROM t) AS s GROUP BY ALL"
    )
    whole = rows_of(rows, text, threads=1)
    assert len({row[1] for row in whole}) > 1
    shuffled = rows.take(np.random.default_rng(7).permutation(rows.num_rows))
    assert rows_of(shuffled, text, threads=4) == whole
    mine = [row for row in whole if row[0] in ("3", "17")]
    fewer = shuffled.filter(pa.compute.is_in(shuffled["u"], pa.array([3, 17])))
    assert rows_of(fewer, text, threads=1) == mine
    more = pa.concat_tables([shuffled, visits(5000, 200_000).filter(pa.compute.field("u") > 40), shuffled.slice(0, 0)])
    assert [row for row in rows_of(more, text) if row[0] in ("3", "17")] == mine


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("ROW_NUMBER() OVER (PARTITION BY u ORDER BY k) = 1", 1),
        ("ROW_NUMBER() OVER (PARTITION BY u ORDER BY k) = 7", 1),
        ("(ROW_NUMBER() OVER (PARTITION BY u)) <= 3 AND k >= 0", 3),
        ("k >= 0 AND r < 3", 2),
        ("3 > r", 2),
        ("r BETWEEN 2 AND 5 AND k >= 0", 4),
        ("r IN (1, 3, 4)", 3),
        ("r IN (1, k)", None),
        ("r BETWEEN 5 AND 2", None),
        ("k > 0 OR r < 3", None),
        ("NOT r < 3", None),
        ("r < 1", None),
        ("r > 1", None),
        ("r = k", None),
        ("ROW_NUMBER() OVER (PARTITION BY u, c ORDER BY k) = 1", None),
        ("RANK() OVER (PARTITION BY u ORDER BY k) = 1", None),
        ("ROW_NUMBER() OVER (PARTITION BY u ORDER BY k) % 2 = 1", None),
    ],
)
def test_the_first_rows_of_each_person_are_no_more_than_that(condition: str, most: int | None) -> None:
    numbered = "SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY k, x) AS r FROM t"
    inner = f"{numbered} QUALIFY {condition}"
    after = f"SELECT u, k FROM (SELECT u, r, k AS k FROM ({numbered}) WHERE x IS NULL OR x < 9) AS s WHERE {condition}"
    with opened(visits()) as curator:
        for rows in (inner, *([after] if "OVER" not in condition else [])):
            text = f"SELECT COUNT(*) FROM ({rows})"
            (plan,) = curator._desk.take(text, epsilon=1.0, delta=0.0, cost=None, call={}).plans
            assert plan.block.rows_per_unit == most
            with curator._data.engine.session() as session:
                units = session.table(plan.block.rows)["u"].to_pylist()
            assert most is None or max(map(units.count, units)) <= most
    # joined again with all rows of a person, or beside another copy, they are more
    with opened(visits()) as curator:
        for again in (
            f"({inner}) AS a JOIN t AS b ON a.u = b.u",
            f"({numbered}) AS a JOIN t AS b ON a.u = b.u WHERE r = 1",
            f"(SELECT k, r FROM ({numbered}) UNION ALL SELECT k, r FROM ({numbered})) WHERE r = 1",
            f"(SELECT r + 0 AS r FROM ({numbered})) WHERE r = 1",
            f"(SELECT k AS r FROM ({numbered})) WHERE r = 1",
            f"(SELECT u, c, MAX(r) AS r FROM ({numbered}) GROUP BY u, c) WHERE r = 1",
            f"(SELECT k FROM t UNION ALL SELECT k FROM ({inner}))",
        ):
            text = f"SELECT COUNT(*) FROM {again}"
            (plan,) = curator._desk.take(text, epsilon=1.0, delta=0.0, cost=None, call={}).plans
            assert plan.block.rows_per_unit is None


def test_two_rows_of_each_person_are_counted_without_a_choice_of_a_bound() -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i % 31) for i in range(9000)]
    rows = pa.table({"u": [i % 1500 for i in range(9000)], "day": days, "shop": [f"s{i % 3}" for i in range(9000)]})
    with opened(rows) as curator:
        first = "SELECT shop FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY u ORDER BY day) <= 2"
        answer = curator.sql(f"SELECT COUNT(*) AS n FROM ({first})", epsilon=2.0)
        assert abs(answer.item() - 3000) <= 30
        assert "chosen" not in " ".join(answer.report)
        assert charges(curator) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY day) AS r FROM visits)", "PARTITION BY the unit"),
        ("SELECT COUNT(*) FROM (SELECT LAG(day) OVER (PARTITION BY city) AS r FROM visits)", "several people"),
        ("SELECT COUNT(*) FROM (SELECT LAG(day) OVER (PARTITION BY user_id + 0) AS r FROM visits)", "several people"),
        (
            "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY kind ORDER BY x) AS r FROM events)",
            "cannot stand here",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT SUM(spend) OVER (PARTITION BY user_id) AS r FROM visits)",
            "SUM(CAST(x * 100 AS BIGINT))",
        ),
        ("SELECT COUNT(*) FROM (SELECT AVG(age) OVER (PARTITION BY user_id) AS r FROM visits)", "divided by a COUNT"),
        (
            "SELECT COUNT(*) FROM (SELECT LAST_VALUE(age) OVER (PARTITION BY user_id ORDER BY day) AS r FROM visits)",
            "UNBOUNDED FOLLOWING",
        ),
        (
            (
                "SELECT COUNT(*) FROM (SELECT FIRST_VALUE(age) OVER (PARTITION BY user_id ORDER BY day "
                "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS r FROM visits)"
            ),
            "rows that tie",
        ),
        ("SELECT COUNT(*) FROM (SELECT LAG(age, -1) OVER (PARTITION BY user_id) AS r FROM visits)", "offset"),
        ("SELECT COUNT(*) FROM visits WHERE ROW_NUMBER() OVER (PARTITION BY user_id) = 1", "and in QUALIFY"),
        ("SELECT city FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id) = 1", "rows of people"),
        ("SELECT user_id, COUNT(*) FROM visits GROUP BY 1 QUALIFY RANK() OVER (ORDER BY COUNT(*)) = 1", "cannot stand"),
        (
            (
                "SELECT COUNT(*) FROM (SELECT LAG(b.born) OVER (PARTITION BY b.user_id) FROM visits a LEFT JOIN "
                "users b ON a.user_id = b.user_id)"
            ),
            "several people",
        ),
    ],
)
def test_what_does_not_stay_within_a_person_is_refused(text: str, words: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        parse(text, shop.CATALOG)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "frame",
    [
        "ROWS BETWEEN CURRENT ROW AND 1 PRECEDING",
        "ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW",
        "ROWS 2 FOLLOWING",
        "ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW",
        "ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING",
        "RANGE UNBOUNDED FOLLOWING",
        "RANGE BETWEEN 2 PRECEDING AND CURRENT ROW",
        "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN 5000000000 PRECEDING AND CURRENT ROW",
    ],
)
def test_a_frame_that_the_engine_would_not_take_is_refused_before_anything_is_paid(frame: str) -> None:
    over = f"(PARTITION BY user_id ORDER BY day {frame})"
    for text in (
        f"SELECT COUNT(v) FROM (SELECT MAX(age) OVER {over} AS v FROM visits)",
        f"SELECT city, MAX(COUNT(*)) OVER (ORDER BY city {frame}) FROM visits GROUP BY city",
    ):
        with pytest.raises(QueryRefused, match="this frame of a window is not supported"):
            parse(text, shop.CATALOG)


def test_values_that_are_written_alike_and_differ_are_told_apart(tmp_path: Path) -> None:
    asked = "SELECT COUNT(*) FROM (SELECT FIRST_VALUE(x) OVER (PARTITION BY u ORDER BY k) AS f, x FROM t) WHERE f = x"
    values = ("union_value(a := 1)", "union_value(b := '1')", "union_value(b := '1')")
    for turn, order in enumerate((values, values[::-1])):
        path = tmp_path / f"{turn}.duckdb"
        with duckdb.connect(path) as database:
            database.execute("CREATE TABLE t (u INT, k INT, x UNION(a INT, b VARCHAR))")
            for value in order:
                database.execute(f"INSERT INTO t SELECT 1, 1, {value}")
        with Curator.open(path, unit="u", name="t", table="t", budget=BUDGET, ledger=":memory:") as curator:
            (plan,) = curator._desk.take(asked, epsilon=1.0, delta=0.0, cost=None, call={}).plans
            with curator._data.engine.session() as session:
                assert session.table(plan.block.rows).num_rows == 1


def test_lists_that_are_equal_and_look_different_have_no_smallest() -> None:
    with opened(visits()) as curator, pytest.raises(QueryRefused, match="may be equal and look different"):
        curator.explain("SELECT COUNT(m) FROM (SELECT MIN(l) OVER (PARTITION BY u) AS m FROM t)", epsilon=1.0)


def test_a_window_keeps_what_is_known_of_its_values() -> None:
    text = (
        "SELECT was, COUNT(*) AS n, SUM(before) AS s FROM (SELECT LAG(category) OVER w1 AS was, LAG(age) OVER w1 AS "
        "before FROM visits) GROUP BY was"
    ).replace("w1", "(PARTITION BY user_id ORDER BY moment)")
    (block,) = parse(text, shop.CATALOG).blocks
    assert block.keys[0].values == (0, 1, 2, 3, 4, None)
    assert {one.function: one.bounds for one in block.aggregates}["sum"] == (0.0, 120.0)
    for condition in ("was IS NOT NULL", "was >= 0 AND was < 9", "was IN (1, 2, 7)"):
        (block,) = parse(text.replace("GROUP BY", f"WHERE {condition} GROUP BY"), shop.CATALOG).blocks
        assert block.keys[0].values == (0, 1, 2, 3, 4)
    for condition in ("was IS NULL OR was > 2", "before > 3", "coalesce(was, 1) = 1", "was IS DISTINCT FROM 1"):
        (block,) = parse(text.replace("GROUP BY", f"WHERE {condition} GROUP BY"), shop.CATALOG).blocks
        assert block.keys[0].values == (0, 1, 2, 3, 4, None)


@pytest.mark.parametrize(
    ("value", "shared"),
    [
        ("MAX(age) OVER (PARTITION BY user_id)", True),
        ("COUNT(*) OVER (PARTITION BY user_id)", True),
        ("FIRST_VALUE(city) OVER (PARTITION BY user_id ORDER BY day)", True),
        ("MAX(age) OVER (PARTITION BY user_id, city)", False),
        ("MAX(age) OVER (PARTITION BY user_id ORDER BY day)", False),
        ("SUM(age) OVER (PARTITION BY user_id ROWS 3 PRECEDING)", False),
        ("FIRST_VALUE(city) OVER (PARTITION BY user_id ORDER BY day ROWS 3 PRECEDING)", False),
        ("ROW_NUMBER() OVER (PARTITION BY user_id)", False),
        ("RANK() OVER (PARTITION BY user_id ORDER BY day)", False),
        ("LAG(age) OVER (PARTITION BY user_id)", False),
    ],
)
def test_what_all_rows_of_a_person_share_leaves_them_in_one_group(value: str, shared: bool) -> None:
    (block,) = parse(f"SELECT v, COUNT(*) FROM (SELECT {value} AS v FROM visits) GROUP BY v", shop.CATALOG).blocks
    assert block.keys[0].of_unit == shared
    with shop.connection() as engine:
        (most,) = engine.execute(
            f"SELECT MAX(n) FROM (SELECT COUNT(DISTINCT k0) + MAX(CAST(k0 IS NULL AS INT)) AS n FROM ({block.rows}) "
            "GROUP BY u)"
        ).fetchone()
    assert (most == 1) == shared


NAMED = [
    ("RANK() OVER w", "w AS (PARTITION BY user_id ORDER BY day)", "RANK() OVER (PARTITION BY user_id ORDER BY day)"),
    (
        "SUM(age) OVER (W ROWS 2 PRECEDING)",
        "w AS (PARTITION BY user_id ORDER BY day)",
        "SUM(age) OVER (PARTITION BY user_id ORDER BY day ROWS 2 PRECEDING)",
    ),
    (
        "FIRST_VALUE(city) OVER v",
        "w AS (PARTITION BY user_id), v AS (w ORDER BY day DESC)",
        "FIRST_VALUE(city) OVER (PARTITION BY user_id ORDER BY day DESC)",
    ),
    (
        "COUNT(*) OVER f",
        "f AS (PARTITION BY user_id ORDER BY day ROWS 2 PRECEDING)",
        "COUNT(*) OVER (PARTITION BY user_id ORDER BY day ROWS 2 PRECEDING)",
    ),
]


@pytest.mark.parametrize(("value", "clause", "spelled"), NAMED)
def test_a_window_with_a_name_is_what_the_name_stands_for(value: str, clause: str, spelled: str) -> None:
    named = f"SELECT v, COUNT(*) AS n FROM (SELECT {value} AS v FROM visits WINDOW {clause}) GROUP BY v"
    plain = f"SELECT v, COUNT(*) AS n FROM (SELECT {spelled} AS v FROM visits) GROUP BY v"
    assert parse(named, shop.CATALOG).blocks == parse(plain, shop.CATALOG).blocks
    with shop.connection() as engine:
        assert sorted(engine.execute(named).fetchall(), key=str) == sorted(engine.execute(plain).fetchall(), key=str)


def test_names_of_windows_work_in_qualify_and_over_answers() -> None:
    named = "SELECT city, COUNT(*) AS n FROM ({}) GROUP BY city"
    first = "SELECT city FROM visits {}QUALIFY ROW_NUMBER() OVER {} = 1"
    over = "(PARTITION BY user_id ORDER BY day)"
    asked = parse(named.format(first.format(f"WINDOW w AS {over} ", "w")), shop.CATALOG)
    assert asked.blocks == parse(named.format(first.format("", over)), shop.CATALOG).blocks
    ranked = "SELECT category, COUNT(*) AS n, RANK() OVER {} AS r FROM visits GROUP BY category{}"
    asked = parse(ranked.format("w", " WINDOW w AS (ORDER BY COUNT(*) DESC)"), shop.CATALOG)
    assert asked.after == parse(ranked.format("(ORDER BY COUNT(*) DESC)", ""), shop.CATALOG).after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT LAG(age) OVER v AS x FROM visits WINDOW w AS (PARTITION BY user_id)", "no window named v; there is w"),
        ("SELECT LAG(age) OVER v AS x FROM visits", "write WINDOW v AS"),
        ("SELECT age AS x FROM visits WINDOW w AS (PARTITION BY read_csv('x'))", "nothing uses the window w"),
        ("SELECT LAG(age) OVER w AS x FROM visits WINDOW w AS (ORDER BY day)", "sees rows of several people"),
        (
            "SELECT city, LAG(age) IGNORE NULLS OVER (PARTITION BY user_id ORDER BY day) AS x FROM visits",
            "IGNORE NULLS",
        ),
        (
            "SELECT city, SUM(age) FILTER (WHERE age > 1) OVER (PARTITION BY user_id ORDER BY day) AS x FROM visits",
            "without DISTINCT, FILTER",
        ),
        (
            "SELECT LAG(age) OVER (w PARTITION BY city) AS x FROM visits WINDOW w AS (PARTITION BY user_id)",
            "cannot be read|has this part already",
        ),
        (
            "SELECT LAG(age) OVER (w ORDER BY city) AS x FROM visits WINDOW w AS (PARTITION BY user_id ORDER BY day)",
            "has this part already",
        ),
        (
            "SELECT COUNT(*) OVER (w ORDER BY day) x FROM visits WINDOW w AS (PARTITION BY user_id ROWS 1 PRECEDING)",
            "has this part already",
        ),
        (
            "SELECT LAG(age) OVER w AS x FROM visits WINDOW w AS (PARTITION BY user_id), W AS (PARTITION BY user_id)",
            "two windows named",
        ),
        (
            "SELECT x FROM (SELECT LAG(age) OVER w AS x, user_id FROM visits) WINDOW w AS (PARTITION BY user_id)",
            "no window named w",
        ),
    ],
)
def test_names_of_windows_that_mean_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(QueryRefused, match=message):
        parse(f"SELECT COUNT(x) FROM ({text})", shop.CATALOG)


def test_a_default_counts_among_what_is_known_of_the_values() -> None:
    text = "SELECT was, SUM(b) AS s FROM (SELECT LAG(category, 1, 9) OVER w AS was, LAG(age, 2, -5) OVER w AS b FROM "
    (block,) = parse(
        f"{text} visits WINDOW w AS (PARTITION BY user_id ORDER BY moment)) GROUP BY was", shop.CATALOG
    ).blocks
    assert set(block.keys[0].values or ()) == {0, 1, 2, 3, 4, 9, None}
    assert block.aggregates[0].bounds == (-5.0, 120.0)
