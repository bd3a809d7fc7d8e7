"""Intervals of computed columns: what moving every noisy number within its own interval does to them."""

from __future__ import annotations

import duckdb
import pytest

from discreet.query.intervals import with_intervals
from discreet.query.parse import parse
from query import shop

NOISY = """SELECT * FROM (VALUES
    ('Bern', 100, 90, 110, 300.0::DOUBLE, 260.0::DOUBLE, 340.0::DOUBLE, 3.0::DOUBLE, 2.5::DOUBLE, 3.5::DOUBLE),
    ('Oslo', 5, -5, 15, 40.0::DOUBLE, 0.0::DOUBLE, 80.0::DOUBLE, 8.0::DOUBLE, -1e400::DOUBLE, 1e400::DOUBLE)
) t(k0, a0, a0_low, a0_high, a1, a1_low, a1_high, a2, a2_low, a2_high)"""


def asked(text: str) -> list[dict]:
    """The rows of a question with its intervals, over fixed noisy numbers for every block."""
    question = parse(text, shop.CATALOG)
    engine = duckdb.connect()
    for i in range(len(question.blocks)):
        engine.execute(f"CREATE TABLE noisy_{i} AS {NOISY}")
    numbers = {output.name for output in question.outputs} - {"city", "k", "word"}
    return engine.sql(with_intervals(question, numbers)).to_arrow_table().to_pylist()


def test_a_ratio_combines_the_errors_of_both_numbers() -> None:
    bern, oslo = asked("SELECT city, SUM(spend) AS s, SUM(age) / COUNT(*) AS r FROM visits GROUP BY city")
    assert (bern["s_low"], bern["s_high"]) == (90, 110)
    # SUM(age) = 300 in [260, 340], COUNT(*) = 3 in [2.5, 3.5] in these fixed numbers
    assert bern["r"] == pytest.approx(100.0)
    up = ((340 / 3 - 100) ** 2 + (300 / 2.5 - 100) ** 2) ** 0.5
    down = ((100 - 260 / 3) ** 2 + (100 - 300 / 3.5) ** 2) ** 0.5
    assert (bern["r_low"], bern["r_high"]) == pytest.approx((100 - down, 100 + up))
    assert oslo["r"] == pytest.approx(5.0)
    assert oslo["r_low"] <= 0.0


def test_a_single_number_that_is_rounded_has_its_ends_rounded() -> None:
    bern, _ = asked("SELECT city, COUNT(*) AS n, ROUND(SUM(spend) / 7, 1) AS r FROM visits GROUP BY city")
    assert (bern["r_low"], bern["r"], bern["r_high"]) == pytest.approx((37.1, 42.9, 48.6))


def test_numbers_that_share_noise_add_up() -> None:
    # AVG(spend) is made of the same sum as SUM(spend): their errors may point the same way.
    bern, _ = asked(
        "SELECT city, SUM(spend) AS s, AVG(spend) AS m, SUM(spend) + AVG(spend) AS b FROM visits GROUP BY city"
    )
    assert bern["b_high"] == pytest.approx(400 + 10 + 40)
    assert bern["b_low"] == pytest.approx(400 - 10 - 40)


def test_parts_of_a_union_keep_their_intervals() -> None:
    rows = asked(
        "SELECT 'all' AS k, COUNT(*) AS n FROM visits UNION ALL SELECT 'half', COUNT(*) / 2 FROM visits WHERE age > 30"
    )
    assert [(row["k"], row["n_low"], row["n_high"]) for row in rows if row["n"] in (100, 50)] == [
        ("all", 90.0, 110.0),
        ("half", 45.0, 55.0),
    ]


def test_columns_of_a_union_that_may_share_noise_add_up() -> None:
    part = "SELECT SUM(spend) AS s, AVG(spend) AS m FROM visits"
    rows = asked(f"SELECT s + m AS b FROM ({part} UNION ALL {part} WHERE age > 30) x")
    assert {(row["b_low"], row["b_high"]) for row in rows if row["b"] == 400} == {(350.0, 450.0)}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(n) AS t FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) x",
        "SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY city",
        "SELECT DISTINCT COUNT(*) AS t FROM visits GROUP BY city",
        "SELECT CASE WHEN COUNT(*) > 5 THEN 'big' ELSE 'small' END AS word FROM visits",
    ],
)
def test_what_depends_on_many_groups_or_is_no_number_has_no_interval(text: str) -> None:
    assert not any(name.endswith(("_low", "_high")) for row in asked(text) for name in row)


def test_rows_are_filtered_and_ordered_as_in_the_answer() -> None:
    text = "SELECT city, COUNT(*) AS n, COUNT(*) * 2 AS d FROM visits GROUP BY city"
    (only,) = asked(f"{text} HAVING COUNT(*) > 50 ORDER BY d LIMIT 3")
    assert (only["city"], only["d_low"], only["d"], only["d_high"]) == ("Bern", 180, 200, 220)
