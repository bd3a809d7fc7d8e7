"""Questions that are written step by step."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.errors import InvalidArgument, QueryRefused, UnknownStep
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
        lambda: rows.join("visits", on=5),  # type: ignore[arg-type]
        lambda: rows.join("visits", on="city", how=["left"]),  # type: ignore[arg-type]
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
    with pytest.raises(AttributeError, match=words):
        getattr(rows, step)
    assert not hasattr(rows, step)
    assert not hasattr(rows.group_by("city"), step)


def test_an_answer_is_asked_for_before_it_is_taken_elsewhere(curator: Curator) -> None:
    summary = curator.table("visits").agg(n="COUNT(*)")
    for name in ("to_pandas", "fetchall", "collect"):
        with pytest.raises(AttributeError, match=r"ask the question first: answer\(epsilon=0\.5\)"):
            getattr(summary, name)
    assert copy.copy(summary) == summary


# -------------------------------------------------------------------- names that need quotes

STAYS = pa.table({"patient id": [1, 1, 2, 3], "length of stay": [1, 2, 1, 2], "cost+1": [1.0, 2.0, 3.0, 4.0]})
PATIENTS = pa.table({"patient id": [1, 2, 3], "age": [30, 40, 50]})


@pytest.fixture
def stays() -> Iterator[Selection]:
    with Curator.open(
        {"stays": STAYS, "patients": PATIENTS},
        unit="patient id",
        name="hospital",
        budget=Budget(epsilon=100.0, delta=1e-6),
        columns={"stays.length of stay": {"keys": [1, 2]}, "patients.age": {"bounds": (0, 100)}},
    ) as opened:
        yield opened.table("stays")


@pytest.mark.parametrize("on", ["patient id", '"patient id"', "Patient ID", ["patient id"], ['"patient id"']])
def test_a_join_takes_names_of_columns_with_and_without_quotes(stays: Selection, on: Any) -> None:
    joined = stays.join("patients", on=on).agg(m="AVG(age)")
    assert same(joined, 'SELECT AVG(age) AS m FROM stays JOIN patients USING ("patient id")')


@pytest.mark.parametrize("key", ["length of stay", '"length of stay"', "cost+1"])
def test_groups_take_names_of_columns_with_and_without_quotes(stays: Selection, key: str) -> None:
    name = key.strip('"')
    assert same(stays.group_by(key).agg(n="COUNT(*)"), f'SELECT "{name}", COUNT(*) AS n FROM stays GROUP BY 1')


def test_names_are_known_through_all_steps(stays: Selection) -> None:
    twice = {"twice as long": '2 * "length of stay"'}
    steps = stays.filter('"length of stay" > 0').with_columns(**twice).alias("s").join("patients", on="patient id")
    summary = steps.group_by("twice as long", "length of stay").agg(**{"of them": "COUNT(*)"})
    assert summary.sort("of them DESC", "twice as long").answer(epsilon=1.0).columns == [
        "twice as long",
        "length of stay",
        "of them",
    ]
    assert summary.sort("of them DESC").sql.endswith('ORDER BY "of them" DESC')
    both = stays.union_all(stays).group_by("length of stay").agg(n="COUNT(*)")
    assert both.join(summary, on="length of stay").answer(epsilon=1.0).columns[0] == "length of stay"


def test_an_expression_with_a_name_that_needs_quotes_says_so(stays: Selection) -> None:
    for wrong in (
        lambda: stays.filter("length of stay > 1"),
        lambda: stays.with_columns(x="2 * length of stay"),
        lambda: stays.agg(m="AVG(length of stay)"),
        lambda: stays.group_by("length of stay").agg(n="COUNT(*)").sort("length of stay + 1"),
    ):
        with pytest.raises(InvalidArgument, match='in double quotes: "length of stay"'):
            wrong()
    with pytest.raises(InvalidArgument, match="an expression gets a name"):
        stays.group_by("length of stays")


def test_a_name_that_is_ambiguous_is_told_as_sql_writes_it(stays: Selection) -> None:
    joined = stays.join("patients", on='stays."patient id" = patients."patient id"')
    with pytest.raises(QueryRefused, match=r'which one is meant: stays."patient id", patients."patient id"'):
        joined.agg(n='COUNT(DISTINCT "patient id")').answer(epsilon=1.0)
    twice = "SELECT SUM(age) AS s FROM (SELECT *, 2 * age AS age FROM patients) AS p"
    with pytest.raises(QueryRefused, match=r"'p' has two columns of this name.*SELECT \* EXCLUDE \(age\)"):
        stays.curator.sql(twice, epsilon=1.0)


def test_a_computed_column_takes_the_place_of_one_of_its_name(rows: Selection, stays: Selection) -> None:
    doubled = rows.with_columns(spend="2 * spend", more="spend + 1")
    assert same(
        doubled.agg(total="SUM(spend)", more="SUM(more)"),
        "SELECT SUM(spend) AS total, SUM(more) AS more FROM "
        '(SELECT person, city, 2 * spend AS spend, "order", spend + 1 AS more FROM visits)',
    )
    assert same(
        rows.union_all(rows.with_columns(SPEND="2 * spend")).agg(total="SUM(spend)"),
        "SELECT SUM(spend) AS total FROM (SELECT * FROM visits UNION ALL "
        'SELECT person, city, 2 * spend AS SPEND, "order" FROM visits)',
    )
    counts = rows.group_by("city").agg(n="COUNT(*)", m="AVG(spend)").with_columns(n="round(n)", city="upper(city)")
    answer = counts.answer(epsilon=5.0)
    assert answer.columns == ["city", "n", "m"]
    assert {row[0] for row in answer.fetchall()} == {"A", "B"}
    counts = rows.group_by("city").agg(n="COUNT(*)")
    with pytest.raises(InvalidArgument, match="sort last"):
        counts.sort("n DESC").with_columns(n="-n")
    turned = counts.with_columns(n="-n").sort("n").answer(epsilon=5.0).fetchall()
    assert turned == sorted(turned, key=lambda row: row[1])
    joined = stays.alias("l").join(stays.alias("r"), on='l."patient id" = r."patient id"')
    both = joined.with_columns(**{"length of stay": 'l."length of stay" + r."length of stay"'})
    assert both.group_by("length of stay").agg(n="COUNT(*)").answer(epsilon=1.0).columns == ["length of stay", "n"]


# -------------------------------------------------------------------- mistakes


def test_aggregates_and_columns_are_named_by_keywords(rows: Selection) -> None:
    for wrong in (
        lambda: rows.agg("COUNT(*)"),  # type: ignore[arg-type]
        lambda: rows.group_by("city").agg("COUNT(*)"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument, match=r"names are keywords: agg\(n='COUNT\(\*\)'\)"):
            wrong()
    with pytest.raises(InvalidArgument, match=r"names are keywords: with_columns\(decade='age // 10'\)"):
        rows.with_columns("2 * spend")  # type: ignore[arg-type]


def test_people_are_summarized_one_by_one_and_then_together(rows: Selection) -> None:
    each = rows.filter("spend > 1").group_by("person").agg(total="SUM(spend)", n="COUNT(*)")
    inner = "SELECT person, SUM(spend) AS total, COUNT(*) AS n FROM visits WHERE spend > 1 GROUP BY person"
    assert same(each.agg(mean="AVG(total)"), f"SELECT AVG(total) AS mean FROM ({inner})")
    assert same(
        each.filter("n > 1").group_by(many="n // 2").agg(people="COUNT(*)"),
        f"SELECT n // 2 AS many, COUNT(*) AS people FROM ({inner}) WHERE n > 1 GROUP BY 1",
    )
    assert (
        each.agg(mean="AVG(total)").explain(epsilon=1.0).cost
        == rows.curator.explain(f"SELECT AVG(total) AS mean FROM ({inner})", epsilon=1.0).cost
    )


def test_a_summary_of_noisy_numbers_costs_no_more_than_they_do(rows: Selection) -> None:
    by_city = rows.group_by("city").agg(n="COUNT(*)")
    both = by_city.agg(all="SUM(n)")
    assert same(both, f'SELECT SUM(n) AS "all" FROM ({by_city.sql})')
    numbers = [row[1] for row in by_city.answer(epsilon=1.0)]
    answer = both.answer(epsilon=1.0)
    assert answer.repeated
    assert answer.item() == sum(numbers)
    assert by_city.sort("n DESC").limit(1).agg(most="MAX(n)").answer(epsilon=1.0).item() == max(numbers)


@pytest.mark.parametrize("step", ["union_all", "select", "vstack"])
def test_rows_are_put_together_before_they_are_summarized(rows: Selection, step: str) -> None:
    summary = rows.group_by("city").agg(n="COUNT(*)")
    with pytest.raises(UnknownStep, match="it is summarized already: do so with rows, before agg"):
        getattr(summary, step)
    assert not hasattr(summary, step)


def test_rows_with_the_same_columns_are_put_together(rows: Selection) -> None:
    few = rows.select("person", amount="spend").union_all(rows.filter("spend > 2").select("person", amount="2 * spend"))
    assert same(
        few.agg(total="SUM(amount)"),
        "SELECT SUM(amount) AS total FROM (SELECT person, spend AS amount FROM visits UNION ALL "
        "SELECT person, 2 * spend AS amount FROM visits WHERE spend > 2)",
    )
    assert same(
        rows.with_columns(double="2 * spend").select("city", "double").group_by("city").agg(m="AVG(double)"),
        "SELECT city, AVG(double) AS m FROM (SELECT city, 2 * spend AS double FROM visits) GROUP BY city",
    )
    with pytest.raises(InvalidArgument, match="name at least one column"):
        rows.select()
    with pytest.raises(InvalidArgument, match="an expression gets a name"):
        rows.select("spend + 1")


def test_groups_are_filtered_before_they_are_made(rows: Selection) -> None:
    groups = rows.group_by("city")
    for step in ("filter", "join", "with_columns", "union_all", "select"):
        with pytest.raises(UnknownStep, match=f"write {step} before group_by"):
            getattr(groups, step)
    with pytest.raises(UnknownStep, match="name all columns at once"):
        _ = groups.group_by  # type: ignore[attr-defined]


def test_a_column_is_named_in_expressions(rows: Selection) -> None:
    with pytest.raises(UnknownStep, match=r"name the column in an expression, as in agg\(mean='AVG\(spend\)'\)"):
        _ = rows.spend  # type: ignore[attr-defined]
    with pytest.raises(InvalidArgument, match=r"name the column in an expression, as in agg\(mean='AVG\(spend\)'\)"):
        _ = rows["spend"]  # type: ignore[index]
    with pytest.raises(InvalidArgument, match="ask the question first"):
        _ = rows.agg(n="COUNT(*)")["n"]  # type: ignore[index]
    assert copy.copy(rows) == rows


def test_a_price_that_is_misspelt_is_told_how_it_is_written(rows: Selection) -> None:
    summary = rows.agg(n="COUNT(*)")
    for ask in (summary.answer, summary.explain):
        with pytest.raises(InvalidArgument, match="did you mean 'epsilon'"):
            ask(epsilonn=1.0)
