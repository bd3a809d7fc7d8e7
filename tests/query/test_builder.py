"""Questions that are written step by step."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query import Selection, Summary

pytestmark = pytest.mark.filterwarnings("ignore::discreet.VolatileLedger")

VISITS = pa.table(
    {
        "person": [1, 1, 2, 3, 4, 5],
        "city": ["a", "b", "a", "a", "b", "b"],
        "spend": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "order": [1, 2, 3, 4, 5, 6],
    }
)


@pytest.fixture
def curator() -> Iterator[Curator]:
    with Curator.open(
        {"visits": VISITS},
        unit="person",
        budget=Budget(epsilon=100.0, delta=1e-6),
        columns={"city": {"keys": ["a", "b"]}, "spend": {"bounds": (0, 10)}},
    ) as opened:
        yield opened


@pytest.fixture
def rows(curator: Curator) -> Selection:
    return curator.table("visits")


def same(summary: Summary, sql: str) -> bool:
    """Whether the plans are the same, whatever the SQL looks like."""
    one, other = (summary.curator.explain(text, epsilon=1.0).question for text in (summary.sql, sql))
    return (one.canonical, one.after) == (other.canonical, other.after)


def test_steps_are_planned_like_the_sql_that_one_would_write(rows: Selection) -> None:
    assert same(rows.agg(n="COUNT(*)"), "SELECT COUNT(*) AS n FROM visits")
    assert same(
        rows.filter("spend > 1", "spend < 5").filter("city = 'a' OR city = 'b'").group_by("city").agg(m="AVG(spend)"),
        "SELECT city, AVG(spend) AS m FROM visits WHERE spend > 1 AND spend < 5 AND (city = 'a' OR city = 'b') "
        "GROUP BY city",
    )
    assert same(
        rows.group_by(spend="floor(spend / 2)").agg(n="COUNT(*)"),
        "SELECT floor(spend / 2) AS spend, COUNT(*) AS n FROM visits GROUP BY 1",
    )
    assert same(
        rows.with_columns(double="2 * spend").filter("double > 4").agg(total="SUM(double)"),
        "SELECT SUM(double) AS total FROM (SELECT *, 2 * spend AS double FROM visits) WHERE double > 4",
    )
    assert same(
        rows.filter("spend > 1").union_all(rows.filter("spend > 2")).agg(n="COUNT(*)"),
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE spend > 1 UNION ALL "
        "SELECT * FROM visits WHERE spend > 2)",
    )


def test_a_condition_after_a_computed_column_may_name_it_and_one_before_does_not(rows: Selection) -> None:
    shadowed = rows.filter("spend > 3").with_columns(spend2="spend * 10").filter("spend2 > 3").agg(n="COUNT(*)")
    assert shadowed.sql.index("spend > 3") > shadowed.sql.index("spend * 10 AS spend2")
    assert shadowed.sql.index("spend2 > 3") > shadowed.sql.index("spend > 3")


def test_steps_after_the_summary_cost_nothing(rows: Selection) -> None:
    counts = rows.group_by("city").agg(n="COUNT(*)", m="AVG(spend)")
    further = counts.filter("n > 1").with_columns(t="n * m").with_columns(half="t / 2").sort("half DESC").limit(1)
    assert further.explain(epsilon=1.0).cost == counts.explain(epsilon=1.0).cost


def test_steps_after_the_summary_are_taken_in_their_order(rows: Selection) -> None:
    counts = rows.group_by("city").agg(n="COUNT(*)")
    assert len(counts.answer(epsilon=5.0).fetchall()) == 2
    assert len(counts.sort("n DESC").limit(1).answer(epsilon=5.0).fetchall()) == 1
    assert counts.limit(1).filter("n > 1e9").answer(epsilon=5.0).fetchall() == []
    three = counts.sort("n DESC").limit(1).sort("n").sql
    assert three.index("ORDER BY n DESC") < three.index("LIMIT 1") < three.rindex("ORDER BY n")
    kept = counts.sort("n DESC").with_columns(twice="2 * n").with_columns(four="2 * twice").sql
    assert kept.endswith("ORDER BY n DESC")
    assert kept.count("ORDER BY") == 1


def test_summaries_are_joined_with_each_other(rows: Selection) -> None:
    every = rows.group_by("city").agg(n="COUNT(*)")
    some = rows.filter("spend > 2").group_by("city").agg(k="COUNT(*)")
    assert every.join(some, on="city").answer(epsilon=5.0).columns == ["city", "n", "k"]
    apart = every.alias("l").join(some.alias("r"), on="l.city = r.city", how="left").with_columns(share="k / n")
    assert "share" in apart.answer(epsilon=5.0).columns


def test_names_that_are_words_of_sql_are_quoted(rows: Selection) -> None:
    summary = rows.group_by("order").agg(select="COUNT(*)")
    assert "GROUP BY 1" in summary.sql
    assert summary.answer(epsilon=1.0).columns == ["order", "select"]


def test_a_text_of_several_lines_is_left_as_it_is(rows: Selection) -> None:
    text = "first\n  second"
    summary = rows.filter(f"city = '{text}'").with_columns(x="spend").filter("x > 0").agg(n="COUNT(*)")
    assert text in summary.sql


def test_a_step_does_not_change_what_it_is_called_on(rows: Selection) -> None:
    before = repr(rows)
    rows.filter("spend > 1").with_columns(x="spend").group_by("city").agg(n="COUNT(*)").limit(1)
    assert repr(rows) == before


def test_rows_and_groups_have_no_answer(rows: Selection) -> None:
    for one in (rows, rows.group_by("city")):
        assert not hasattr(one, "answer")
        assert not hasattr(one, "sql")


@pytest.mark.parametrize(
    "text",
    ["", "spend) OR (spend", "spend > 1 -- more", "spend > 1 /* more */", "spend; spend", "SELECT 1", "spend AS x",
     "DROP TABLE visits", "*", "spend, city", "spend > 1 LIMIT 1", "spend >", "spend UNION SELECT 1", 3, None],
)  # fmt: skip
def test_what_is_no_single_expression_is_refused_where_it_is_written(rows: Selection, text: str) -> None:
    with pytest.raises(InvalidArgument):
        rows.filter(text)
    with pytest.raises(InvalidArgument):
        rows.with_columns(x=text)
    with pytest.raises(InvalidArgument):
        rows.agg(x=text)
    with pytest.raises(InvalidArgument):
        rows.agg(n="COUNT(*)").sort(text)


def test_arguments_that_mean_nothing_are_refused(curator: Curator, rows: Selection) -> None:
    summary = rows.agg(n="COUNT(*)")
    for wrong in (
        lambda: curator.table("visit"),
        lambda: curator.table(3),  # type: ignore[arg-type]
        lambda: rows.agg(),
        lambda: rows.group_by(),
        lambda: rows.group_by("spend + 1"),
        lambda: rows.group_by("city").agg(),
        lambda: rows.union_all(summary),  # type: ignore[arg-type]
        lambda: rows.join(3, on="city"),  # type: ignore[arg-type]
        lambda: rows.join("visits", on=[]),
        lambda: rows.join("visits", on="city", how="outer"),
        lambda: rows.alias(""),
        lambda: summary.sort(),
        lambda: summary.limit(-1),
    ):
        with pytest.raises(InvalidArgument):
            wrong()
    with pytest.raises(InvalidArgument, match="did you mean 'visits'"):
        curator.table("visit")


def test_what_sql_refuses_is_refused_with_its_words(rows: Selection) -> None:
    with pytest.raises(QueryRefused, match=r"no column 'spent'.*\n.*WHERE"):
        rows.filter("spent > 1").agg(n="COUNT(*)").answer(epsilon=1.0)
    with pytest.raises(QueryRefused, match="rows of people"):
        rows.agg(x="city").answer(epsilon=1.0)
    with pytest.raises(QueryRefused, match="neither in GROUP BY"):
        rows.group_by("city").agg(x="spend").answer(epsilon=1.0)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("groupby", r"write group_by\('city'\)"),
        ("where", r"write filter\("),
        ("answer", r"summarize them first, as in group_by"),
        ("head", r"rows of people are not shown"),
        ("to_pandas", r"rows of people are not shown"),
        ("count", r"write agg\(n='COUNT\(\*\)'\)"),
        ("gruop_by", r"no attribute 'gruop_by'$"),
    ],
)
def test_a_step_of_another_library_says_what_it_is_called_here(curator: Curator, step: str, words: str) -> None:
    rows = curator.table("visits")
    for steps in (rows, rows.group_by("city")):
        with pytest.raises(AttributeError, match=words):
            getattr(steps, step)
    assert not hasattr(rows, step)


def test_an_answer_is_asked_for_before_it_is_taken_elsewhere(curator: Curator) -> None:
    summary = curator.table("visits").agg(n="COUNT(*)")
    for name in ("to_pandas", "fetchall", "collect"):
        with pytest.raises(AttributeError, match=r"ask the question first: answer\(epsilon=0\.5\)"):
            getattr(summary, name)
    assert copy.copy(summary) == summary
