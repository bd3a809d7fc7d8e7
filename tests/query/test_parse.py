"""What a question becomes: blocks, keys with public values, bounds of arguments, options, and refusals."""

from __future__ import annotations

import datetime as dt

import pytest
import sqlglot
from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse, render
from discreet.query.sql.text import Source
from query import shop


def block_of(text: str):
    (block,) = parse(text, shop.CATALOG).blocks
    return block


@pytest.mark.parametrize(
    ("text", "keys", "functions"),
    [
        ("SELECT COUNT(*) FROM visits", [], ["count"]),
        ("SELECT SUM(spend) FROM visits", [], ["sum"]),
        ("SELECT category, COUNT(*) FROM visits GROUP BY category", [5], ["count"]),
        ("SELECT city, AVG(spend), SUM(spend) FROM visits GROUP BY city", [None], ["avg", "sum"]),
        ("SELECT day, COUNT(DISTINCT user_id) FROM visits GROUP BY day", [365], ["count_units"]),
        ("SELECT category, MEDIAN(spend) FROM visits GROUP BY category", [5], ["quantile"]),
        ("SELECT country, COUNT(*) FROM visits JOIN users USING (user_id) GROUP BY country", [None], ["count"]),
        ("SELECT category, day, COUNT(*) FROM visits GROUP BY ALL", [5, 365], ["count"]),
    ],
)
def test_the_questions_of_the_benchmark_become_one_block(text, keys, functions):
    block = block_of(text)
    assert [key.values and len(key.values) for key in block.keys] == keys
    assert [aggregate.function for aggregate in block.aggregates] == functions
    assert block.rows.startswith('SELECT t0."user_id" AS u')


def test_only_needed_columns_are_read_and_rows_are_one_plain_select():
    text = (
        "WITH v AS (SELECT user_id, spend * 2 AS s, city FROM visits) "
        "SELECT city, SUM(s) FROM v WHERE s > 1 GROUP BY city"
    )
    assert block_of(text).rows == (
        'SELECT t0."user_id" AS u, t0."city" AS k0, (t0."spend" * 2.0e0) AS x0 '
        'FROM "visits" AS t0 WHERE t0."user_id" IS NOT NULL AND ((t0."spend" * 2.0e0) > 1.0e0)'
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits",
        "SELECT city, AVG(spend), COUNT(DISTINCT note) FROM visits GROUP BY city",
        "SELECT country, COUNT(*) FROM visits JOIN users USING (user_id) GROUP BY country",
        "SELECT COUNT(*) FROM visits AS v JOIN users AS u ON v.user_id = u.user_id WHERE v.city IS NOT NULL",
    ],
)
def test_rows_of_columns_alone_are_plain(text):
    assert block_of(text).plain


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits WHERE spend > 9",
        "SELECT COUNT(*) FROM visits WHERE city = 'Rome'",
        "SELECT COUNT(*) FROM visits WHERE ok",
        "SELECT COUNT(*) FROM visits WHERE age < big",
        "SELECT COUNT(*) FROM visits WHERE city IN ('Rome')",
        "SELECT COUNT(*) FROM visits WHERE NOT ok",
        "SELECT COUNT(*) FROM visits WHERE city = note",
        "SELECT COUNT(*) FROM visits WHERE (city IS NULL) = ok",
        "SELECT COUNT(*) FROM visits WHERE city IS NULL",
        "SELECT SUM(-age) FROM visits",
        "SELECT SUM(spend + age) FROM visits",
        "SELECT COUNT(LOWER(city)) FROM visits",
        "SELECT SUM(CAST(big AS DOUBLE)) FROM visits",
        "SELECT SUM(spend) FILTER (WHERE ok) FROM visits",
        "SELECT CASE WHEN ok THEN 1 ELSE 0 END AS k, COUNT(*) FROM visits GROUP BY k",
        "SELECT COUNT(*) FROM visits JOIN users ON visits.user_id = users.user_id AND age > born",
        "SELECT SUM(n) FROM (SELECT user_id, MAX(age) AS n FROM visits GROUP BY user_id)",
    ],
)
def test_rows_with_any_expression_are_not_plain(text):
    (block,) = parse(text, shop.CATALOG).blocks
    assert not block.plain


def test_equal_aggregates_arguments_and_blocks_are_shared():
    block = block_of("SELECT AVG(spend), SUM(spend), sum(spend) / 2, SUM(spend) + AVG(visits.spend) FROM visits")
    assert [(one.function, one.argument) for one in block.aggregates] == [("avg", "x0"), ("sum", "x0")]
    twice = "WITH a AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) SELECT * FROM a JOIN a AS b ON a.n < b.n"
    assert len(parse(twice, shop.CATALOG).blocks) == 1


def test_outputs_say_which_aggregate_they_show():
    text = "SELECT city, COUNT(*) AS n, n + 1 AS more FROM visits GROUP BY city"
    shown = [(one.name, one.block, one.column) for one in parse(text, shop.CATALOG).outputs]
    assert shown == [("city", None, None), ("n", 0, "a0"), ("more", None, None)]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("category", (0, 1, 2, 3, 4)),
        ("category + 1", (1, 2, 3, 4, 5)),
        ("ok", (False, True)),
        ("spend > 50", (False, True)),
        ("month(moment)", tuple(range(1, 13))),
        ("CASE WHEN age < 18 THEN 'minor' WHEN spend > 3 THEN 'adult' END", ("minor", "adult", None)),
        ("CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END", ("minor", "adult")),
        ("FLOOR(age / 50) * 50", (0.0, 50.0, 100.0)),
        ("FLOOR(spend / 25)", (0.0, 1.0, 2.0, 3.0, 4.0)),
        ("age // 50", (0, 1, 2)),
        ("year(day)", (2023,)),
        ("date_diff('month', day, DATE '2024-07-01')", tuple(range(7, 19))),
        ("date_trunc('quarter', day)", tuple(dt.date(2023, month, 1) for month in (1, 4, 7, 10))),
        ("concat('c', category)", ("c", "c0", "c1", "c2", "c3", "c4")),  # the first is of NULL
        ("'c' || category", ("c0", "c1", "c2", "c3", "c4")),
        ("upper(city)", None),
        ("spend", None),
        ("big % 10", None),
    ],
)
def test_keys_have_the_public_values_that_the_policy_implies(key, values):
    (found,) = block_of(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY k").keys
    assert found.values == values


def test_public_values_that_drop_rows_are_noted():
    notes = block_of("SELECT category, COUNT(*) FROM visits GROUP BY category").notes
    assert "of category, 5 public values are shown; rows with other values, and NULL, are not counted" in notes
    assert "rows without a unit are not counted" in notes


@pytest.mark.parametrize(
    ("argument", "bounds", "kind"),
    [
        ("spend", (0, 100), "float"),
        ("spend * 2 - 10", (-10, 190), "float"),
        ("-spend", (-100, 0), "float"),
        ("spend / 4", (0, 25), "float"),
        ("spend / age", None, "float"),
        ("age + category", None, "integer"),
        ("age", (0, 120), "integer"),
        ("age * age", (0, 14400), "integer"),
        ("abs(age - 60)", (0, 60), "integer"),
        ("least(big, 10)", None, "integer"),
        ("greatest(least(big, 10), 0)", (0, 10), "integer"),
        ("CASE WHEN ok THEN spend ELSE 0 END", (0, 100), "float"),
        ("CASE WHEN ok THEN 1 ELSE 0 END", (0, 1), "integer"),
        ("coalesce(spend, 200)", (0, 200), "float"),
        ("1", (1, 1), "integer"),
        ("price", (0, 50), "float"),
        ("big", None, "integer"),
        ("ok", (0, 1), "integer"),
        ("sqrt(spend)", (0, 10), "float"),
        ("CAST(ok AS INT)", (0, 1), "integer"),
    ],
)
def test_bounds_of_arguments_follow_from_the_policy(argument, bounds, kind):
    (found,) = block_of(f"SELECT SUM({argument}) FROM visits").aggregates
    assert (found.bounds, found.kind, found.of) == (bounds and tuple(map(float, bounds)), kind, found.label[4:-1])


def test_dates_are_measured_as_whole_days():
    (found,) = block_of("SELECT MIN(day) FROM visits").aggregates
    assert (found.kind, found.bounds) == ("date", (19358.0, 19722.0))


def test_several_quantiles_at_once_are_several_columns():
    question = parse("SELECT QUANTILE_CONT(spend, [0.25, 0.5]) AS q FROM visits", shop.CATALOG)
    assert [one.name for one in question.outputs] == ["q_0.25", "q_0.5"]
    unnamed = parse("SELECT QUANTILE_CONT(age, [0.25, 0.5]) FROM visits", shop.CATALOG)
    assert [one.name for one in unnamed.outputs] == ["quantile_cont(age, 0.25)", "quantile_cont(age, 0.5)"]
    assert [one.probability for one in question.blocks[0].aggregates] == [0.25, 0.5]


def test_a_condition_on_units_counts_their_distinct_values():
    (found,) = block_of("SELECT COUNT(DISTINCT user_id) FILTER (WHERE ok) FROM visits").aggregates
    assert (found.function, found.argument) == ("count_distinct", "x0")


def test_keys_of_a_table_with_one_row_for_each_unit_belong_to_the_unit():
    assert [key.of_unit for key in block_of("SELECT country, born, COUNT(*) FROM users GROUP BY ALL").keys] == [
        True,
        True,
    ]
    joined = block_of("SELECT country, city, COUNT(*) FROM visits JOIN users USING (user_id) GROUP BY ALL")
    assert [key.of_unit for key in joined.keys] == [True, False]
    # The condition of this join looks at single visits, so one person can be found and missed.
    missed = "SELECT country, COUNT(*) FROM visits v LEFT JOIN users u ON v.user_id = u.user_id AND v.ok GROUP BY ALL"
    assert [key.of_unit for key in block_of(missed).keys] == [False]


def test_after_the_noise_only_answers_and_public_tables_are_named():
    text = (
        "WITH a AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 5) "
        "SELECT r.region, SUM(n) AS n FROM a JOIN regions r ON r.city = a.city GROUP BY region ORDER BY n DESC LIMIT 3"
    )
    question = parse(text, shop.CATALOG)
    assert question.public_tables == ("regions",)
    assert "visits" not in question.after
    assert 'noisy_0 AS t2 JOIN "regions" AS t1' in question.after


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("FETCH FIRST 3 ROWS ONLY", "LIMIT 3"),
        ("fetch next 3 rows only", "LIMIT 3"),
        ("FETCH FIRST ROW ONLY", "LIMIT 1"),
        ("OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY", "LIMIT 3 OFFSET 2"),
    ],
)
def test_rows_are_fetched_as_limited(written: str, limit: str) -> None:
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC"
    fetched, limited = parse(f"{text} {written}", shop.CATALOG), parse(f"{text} {limit}", shop.CATALOG)
    assert fetched.after == limited.after
    assert fetched.after.endswith(limit)
    assert fetched.blocks == limited.blocks


def test_a_public_table_inside_the_rows_is_not_needed_after_them():
    question = parse("SELECT COUNT(*) FROM visits WHERE city IN (SELECT city FROM regions)", shop.CATALOG)
    assert question.public_tables == ()
    assert 'FROM "regions"' in question.blocks[0].rows


def test_options_are_read_and_are_no_part_of_the_question():
    clause = "OPTIONS (Epsilon = 0.5, bounds = {spend: (-1, 10)}, bounding = 'clip', delta = 1e-7);"
    text = f"SELECT COUNT(*) FROM visits {clause}"
    question = parse(text, shop.CATALOG)
    assert question.options == (
        ("bounding", "clip"), ("bounds", {"spend": (-1, 10)}), ("delta", 1e-7), ("epsilon", 0.5),
    )  # fmt: skip
    assert question.blocks == parse("SELECT COUNT(*) FROM visits", shop.CATALOG).blocks


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("(epsilom = 1)", "did you mean 'epsilon'"),
        ("(epsilon = 1, epsilon = 2)", "twice"),
        ("(epsilon)", "'=' is needed"),
        ("(epsilon = )", "not understood"),
        ("(epsilon = 1", "not finished"),
        ("(epsilon = 1) LIMIT 3", "something follows"),
        ("(epsilon = spend)", "not understood"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(QueryRefused, match=words):
        parse(f"SELECT COUNT(*) FROM visits OPTIONS {options}", shop.CATALOG)


def test_a_plan_is_shown_as_a_tree_with_the_stability_of_each_operator():
    inner = "SELECT user_id, COUNT(*) AS n FROM visits GROUP BY 1"
    text = f"SELECT country, AVG(n) FROM ({inner}) JOIN users USING (user_id) GROUP BY 1"
    assert render(text, shop.CATALOG).splitlines() == [
        "noisy_0: measure avg(n) by country  [at most 1 row for each unit; bounded, then noise]",
        "    join  [on the unit: the rows of a unit meet only its own]",
        "      aggregate for each unit  [one row for each unit]",
        "        table visits  [unit user_id; rows without one are dropped; a unit may have any number of rows]",
        "      table users  [unit user_id; rows without one are dropped; declared to have one row for each unit]",
        "  note: rows without a unit are not counted",
        "  note: of users, a unit has one row by the policy; if there are several, each column has its smallest value",
        'after: SELECT t0.k0 AS "country", t0.a0 AS "avg(n)" FROM noisy_0 AS t0',
    ]


def test_the_notes_say_what_becomes_of_more_rows_than_a_policy_declares():
    joined = "SELECT COUNT(*) FROM visits JOIN users USING (user_id)"
    (block,) = parse(joined, shop.CATALOG).blocks
    assert block.notes[-1].endswith("if there are several, all are counted, in one group by its columns")
    (block,) = parse("SELECT COUNT(*) FROM users", shop.CATALOG).blocks
    assert block.notes[-1].endswith("if there are several, each column has its smallest value")


def test_names_with_quotes_cannot_leave_their_place():
    name = 'a" FROM secret; --'
    table = Table(name, (Column("u", "BIGINT"), Column(name, "VARCHAR")), '"x"', "unit", "u")
    catalog = Catalog({name.lower(): table})
    escaped = name.replace('"', '""')
    question = parse(f'SELECT "{escaped}" AS "{escaped}", COUNT(*) FROM "{escaped}" GROUP BY 1', catalog)
    assert f't0."{escaped}" AS k0' in question.blocks[0].rows
    assert f't0.k0 AS "{escaped}"' in question.after
    text = "it's; DROP TABLE x --"
    rows = (
        parse(f"SELECT COUNT(*) FROM visits WHERE city = '{text.replace(chr(39), chr(39) * 2)}'", shop.CATALOG)
        .blocks[0]
        .rows
    )
    assert "(t0.\"city\" = 'it''s; DROP TABLE x --')" in rows


def test_a_spread_of_numbers_as_large_as_floats_are_is_planned():
    question = parse(
        "SELECT AVG(a) FROM (SELECT user_id, VAR_POP(spend * 1e306) AS a FROM visits GROUP BY 1)", shop.CATALOG
    )
    assert question.blocks[0].aggregates[0].bounds is None


def test_a_limit_outside_of_the_parentheses_of_a_list_is_kept():
    text = "SELECT COUNT(*) FROM visits WHERE city IN ((SELECT city FROM regions) ORDER BY city LIMIT 2)"
    assert "LIMIT 2)" in parse(text, shop.CATALOG).blocks[0].rows


@pytest.mark.parametrize(
    "name",
    ["a", '"a"', '"A b"', "T1.x", '"T 1"."x"', '"select"', '"order"', "date", "day", "Ab", "ä", "_x", '"1a"', "count"],
)
def test_a_column_is_written_as_the_generator_writes_it(name: str) -> None:
    node = sqlglot.parse_one(f"SELECT {name}", read="duckdb").expressions[0]
    assert Source("").written(node) == node.sql(dialect="duckdb")
    assert Source("").written(exp.column("a" * 61)) == "a" * 57 + "..."
