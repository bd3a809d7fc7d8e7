"""Intervals of computed columns: what moving every noisy number within its own interval does to them."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, Curator
from discreet.errors import InvalidArgument
from discreet.query.intervals import with_intervals
from discreet.query.laws import GAUSSIAN, LAPLACE, Law, NoisySum
from discreet.query.losses import UNTOLD
from discreet.query.parse import parse
from query import noiseless, shop
from query.tables import visits
from query.test_answers import QUESTIONS

NOISY = """SELECT * FROM (VALUES
    ('Bern', 100, 90, 110, 300.0::DOUBLE, 260.0::DOUBLE, 340.0::DOUBLE, 3.0::DOUBLE, 2.5::DOUBLE, 3.5::DOUBLE),
    ('Oslo', 5, -5, 15, 40.0::DOUBLE, 0.0::DOUBLE, 80.0::DOUBLE, 8.0::DOUBLE, -1e400::DOUBLE, 1e400::DOUBLE)
) t(k0, a0, a0_low, a0_high, a1, a1_low, a1_high, a2, a2_low, a2_high)"""


OTHER = (
    NOISY.replace("-1e400::DOUBLE, 1e400::DOUBLE", "7.0::DOUBLE, 9.0::DOUBLE")
    .replace(
        "t(k0, a0, a0_low, a0_high, a1, a1_low, a1_high, a2,", "t(k0, a1, a1_low, a1_high, a3, a3_low, a3_high, a0,"
    )
    .replace("a2_low, a2_high", "a0_low, a0_high")
)
"""The same numbers in other columns: a0 is 8 in [7, 9] in Oslo, and a1 5 in [-5, 15]."""


def asked(
    text: str, noisy: str = NOISY, lost: tuple[float, ...] = (), bare: dict[str, str] | None = None
) -> list[dict]:
    """The rows of a question with its intervals, over fixed noisy numbers for every block.

    `bare` has half the widths by noise alone; where it has none the interval is all noise.
    """
    question = parse(text, shop.CATALOG)
    engine = duckdb.connect()
    for i in range(len(question.blocks)):
        engine.execute(f"CREATE TABLE given_{i} AS {noisy}")
        columns = [row[0] for row in engine.execute(f"DESCRIBE given_{i}").fetchall()]
        wider = [f"a{j}_low - 3 AS a{j}_least, a{j}_high + 3 AS a{j}_most" for j in range(2)]
        for name in (name for name in columns if f"{name}_low" in columns):
            half = (bare or {}).get(name)
            low, high = (f"{name}_low", f"{name}_high") if half is None else (f"{name} - {half}", f"{name} + {half}")
            wider += [f"{low} AS {name}_low_bare, {high} AS {name}_high_bare"]
            wider += [f"{low} - 3 AS {name}_least_bare, {high} + 3 AS {name}_most_bare"]
        engine.execute(f"CREATE TABLE noisy_{i} AS SELECT *, {', '.join(wider)} FROM given_{i}")
    numbers = {output.name for output in question.outputs} - {"city", "category", "k", "word"}
    return engine.sql(with_intervals(question, numbers, lost)[0]).to_arrow_table().to_pylist()


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


RATIO = "SELECT city, SUM(spend) AS s, SUM(age) / COUNT(*) AS r FROM visits GROUP BY city"
LOST = """SELECT * FROM (VALUES
    ('Bern', 100, 90, 110, 300.0::DOUBLE, 262.0::DOUBLE, 398.0::DOUBLE, 3.0::DOUBLE, 2.58::DOUBLE, 3.62::DOUBLE)
) t(k0, a0, a0_low, a0_high, a1, a1_low, a1_high, a2, a2_low, a2_high)"""
"""SUM(age) is 300 give or take 38, and may have lost 60; COUNT(*) is 3 give or take 0.42, and may have lost 0.2."""


def test_what_bounds_cut_off_of_both_parts_of_a_ratio_cancels_but_for_a_quarter() -> None:
    (row,) = asked(RATIO, LOST, bare={"a1": "44.0", "a2": "0.5"})
    up = math.hypot(344 / 3 - 100, 300 / 2.5 - 100)
    down = math.hypot(100 - 256 / 3, 100 - 300 / 3.5)
    gain, loss = 360 / 3 - 100, 100 - 300 / 3.2
    more, less = 0.25 * gain + 0.75 * (gain - loss), 0.25 * loss
    part = max(38 / 44, 0.42 / 0.5)

    def reach(noise: float) -> float:
        return noise * (part + (1 - part) * math.exp(-(more + less) / (2 * noise * (1 - part))))

    assert row["r_high"] == pytest.approx(100 + reach(up) + more)
    assert row["r_low"] == pytest.approx(100 - reach(down) - less)


def test_losses_of_what_is_added_up_do_not_cancel() -> None:
    text = "SELECT city, SUM(spend) + SUM(age) AS r, COUNT(*) AS n FROM visits GROUP BY city"
    (row,) = asked(text, LOST.replace("90, 110", "90, 130"), bare={"a0": "10", "a1": "38.0"})  # q as large as Q
    assert row["r_high"] == pytest.approx(400 + math.hypot(10, 38) + math.hypot(20, 60), rel=1e-6)
    assert row["r_low"] == pytest.approx(400 - math.hypot(10, 38), rel=1e-6)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("lost", [0.0, 1.0])
def test_the_interval_of_a_ratio_holds_as_often_as_it_says(law: Law, lost: float) -> None:
    """With nothing lost, and with a part of each that is in proportion; and not much more often."""
    stream, draws = np.random.default_rng(11), 4000
    scales, allowed = (20.0, 3.0), (60.0, 9.0)
    draw = stream.normal if law.gaussian else stream.laplace
    truth = (8000.0, 1000.0)
    columns: dict[str, np.ndarray] = {"k0": np.arange(draws)}
    for name, true, scale, most in zip(("a1", "a2"), truth, scales, allowed, strict=True):
        loss = lost * true * min(allowed[0] / truth[0], allowed[1] / truth[1])
        sums = NoisySum(draw(true - loss, scale, draws), scale, law, np.full(draws, most))
        columns[name] = sums.values
        columns |= dict(zip((f"{name}_low", f"{name}_high"), sums.interval(0.95), strict=True))
    columns |= {"a0": columns["a1"], "a0_low": columns["a1"], "a0_high": columns["a1"]}
    written = pa.table(columns)
    rows = _with_table(
        RATIO, written, {name: s * law.two_sided(0.95) for name, s in zip(("a1", "a2"), scales, strict=True)}
    )
    held = np.mean([row["r_low"] <= 8.0 <= row["r_high"] for row in rows])
    assert 0.945 < held < 0.985  # of 4000 draws, four standard deviations are 0.014 at 0.95


def _with_table(text: str, table: pa.Table, half: dict[str, float]) -> list[dict]:
    engine = duckdb.connect()
    engine.register("given", table)
    bare = [f"{name} - {q!r} AS {name}_low_bare, {name} + {q!r} AS {name}_high_bare" for name, q in half.items()]
    engine.execute(
        f"CREATE TABLE noisy_0 AS SELECT *, {', '.join(bare)}, a0 AS a0_low_bare, a0 AS a0_high_bare FROM given"
    )
    return engine.sql(with_intervals(parse(text, shop.CATALOG), {"s", "r"})[0]).to_arrow_table().to_pylist()


def test_ends_that_are_infinite_stay_so_as_whole_numbers() -> None:
    by_group = "SELECT category, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY category"
    _, oslo = asked(
        f"SELECT category, CAST(m AS BIGINT) AS t FROM ({by_group}) x", OTHER.replace("-5, 15", "-1e400::DOUBLE, 15.4")
    )
    assert oslo["t_low"] == -math.inf
    assert oslo["t_high"] == 15


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


REASONS = {
    "SELECT SUM(n) AS t FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) x": "decided with noise",
    "SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY city": "decided with noise",
    "SELECT SUM(n) AS t FROM (SELECT category, COUNT(*) AS n FROM visits GROUP BY category) x WHERE n > 9": "picked",
    "SELECT COUNT(*) AS t FROM (SELECT category, COUNT(*) AS n FROM visits GROUP BY category HAVING n > 9) x": "picked",
    "SELECT SUM(n) AS t FROM (SELECT category, COUNT(*) AS n FROM visits GROUP BY category LIMIT 1) x": "picked",
    "SELECT n % 2 AS k, SUM(n) AS t FROM (SELECT category, COUNT(*) AS n FROM visits GROUP BY category) x GROUP BY 1": (
        "picked"
    ),
    "SELECT category, RANK() OVER (ORDER BY COUNT(*)) AS t FROM visits GROUP BY category": "order of noisy numbers",
    "SELECT STDDEV(n) AS t FROM (SELECT category, COUNT(*) AS n FROM visits GROUP BY category) x": (
        "no interval is known"
    ),
    "SELECT DISTINCT COUNT(*) AS t FROM visits GROUP BY category": "DISTINCT",
    "SELECT CASE WHEN COUNT(*) > 5 THEN 'big' ELSE 'small' END AS word FROM visits": "not a number",
}


@pytest.mark.parametrize("text", REASONS)
def test_a_noisy_column_without_an_interval_says_why(text: str) -> None:
    assert not any(name.startswith(("t_", "word_")) for row in asked(text) for name in row)
    question = parse(text, shop.CATALOG)
    (reason,) = {
        why
        for name, why in with_intervals(question, {"t", "k"})[1].items()
        if name in ("t", "word")  # a noisy key has a reason of its own
    }
    assert REASONS[text] in reason


def test_a_sum_over_groups_combines_independent_noise_and_adds_up_what_may_be_lost() -> None:
    by_group = "SELECT category, SUM(spend) AS s, COUNT(*) AS n FROM visits GROUP BY category"
    (row,) = asked(f"SELECT SUM(s) AS t, AVG(s) AS m FROM ({by_group}) x")
    # the two are 100 give or take 10, and 5 give or take 10
    assert (row["t_low"], row["t_high"]) == pytest.approx((105 - 200**0.5, 105 + 200**0.5))
    assert (row["m_low"], row["m_high"]) == pytest.approx((52.5 - 50**0.5, 52.5 + 50**0.5))
    lost = NOISY.replace("90, 110", "90, 130").replace("-5, 15", "-5, 17")  # 20 and 2 more above
    (row,) = asked(f"SELECT SUM(s) AS t FROM ({by_group}) x", lost)
    assert (row["t_low"], row["t_high"]) == pytest.approx((105 - 200**0.5, 105 + 22 + 200**0.5))
    (row,) = asked(f"SELECT SUM(s) AS t FROM ({by_group}) x", lost, (3.0,))
    assert (row["t_low"], row["t_high"]) == pytest.approx((105 - 200**0.5, 105 + 3 * 22 + 200**0.5))


@given(
    scales=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30),
    allowances=st.lists(st.floats(0.0, 8.0), min_size=30, max_size=30),
    confidence=st.floats(0.7, 0.999),
)
def test_the_interval_of_a_sum_of_gaussian_numbers_holds_as_often_as_that_of_one(
    scales: list[float], allowances: list[float], confidence: float
) -> None:
    scale, lost = np.array(scales), np.array(scales) * allowances[: len(scales)]
    half = scale * GAUSSIAN.reach(lost / scale, confidence)
    together, spread = math.hypot(*half), math.hypot(*scales)
    # it fails most often where nothing is lost, or all of the allowance, and least often where half of it is
    worst = (GAUSSIAN.beyond(together / spread) + GAUSSIAN.beyond((together + lost.sum()) / spread)) / 2
    best = GAUSSIAN.beyond((together + lost.sum() / 2) / spread)
    assert max((worst + best) / 2, worst / 1.1) <= (1 - confidence) * (1 + 1e-6)


@pytest.mark.parametrize("groups", [2, 5, 40])
def test_the_interval_of_a_sum_of_laplace_numbers_holds_and_is_little_too_wide(groups: int) -> None:
    stream = np.random.default_rng(groups)
    noise = stream.laplace(size=(40_000, groups)).sum(axis=1)
    half = math.sqrt(groups) * LAPLACE.two_sided(0.95)
    assert 0.945 < np.mean(np.abs(noise) <= half) < 0.975
    assert np.mean(np.abs(noise) <= 0.9 * half) < 0.955


def test_running_sums_and_shares_have_intervals() -> None:
    text = "SELECT category, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY category) AS t FROM visits GROUP BY category"
    first, second = asked(text)
    assert (first["t_low"], first["t_high"]) == (90, 110)
    assert (second["t_low"], second["t_high"]) == pytest.approx((105 - 200**0.5, 105 + 200**0.5))
    text = "SELECT category, COUNT(*) / SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY category"
    first, _ = asked(text)
    # the sum has the group's own noise in it: both changes are added up
    up = 10 / 105 + (100 / (105 - 200**0.5) - 100 / 105)
    assert first["t_high"] == pytest.approx(100 / 105 + up)


def test_the_difference_to_the_row_before_has_the_noise_of_both() -> None:
    _, second = asked("SELECT category, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY category) AS t FROM visits GROUP BY 1")
    assert (second["t_low"], second["t_high"]) == pytest.approx((-95 - 200**0.5, -95 + 200**0.5))
    # sums of running sums share noise: half widths are added up
    inner = "SELECT category, SUM(COUNT(*)) OVER (ORDER BY category) AS n FROM visits GROUP BY category"
    (row,) = asked(f"SELECT SUM(n) AS t FROM ({inner}) x")
    assert (row["t_low"], row["t_high"]) == pytest.approx((205 - 10 - 200**0.5, 205 + 10 + 200**0.5))


def test_the_largest_group_is_at_least_what_holds_for_all_groups_at_once() -> None:
    (row,) = asked(
        "SELECT MAX(n) AS t, MIN(n) AS b FROM (SELECT category, COUNT(*) AS n FROM visits GROUP BY category) x"
    )
    # least and most are 3 beyond low and high
    assert (row["t_low"], row["t"], row["t_high"]) == (87, 100, 110)
    assert (row["b_low"], row["b"], row["b_high"]) == (-5, 5, 18)


def test_numbers_of_different_tables_combine_as_independent_ones() -> None:
    one = NOISY.replace("100, 90, 110", "200, 180, 220").rsplit(",\n", 1)[0] + ") t" + NOISY.rsplit(") t", 1)[1]
    parts = "(SELECT COUNT(*) FROM visits WHERE age > 30) / (SELECT COUNT(*) FROM visits WHERE age > 20)"
    (row,) = asked(f"SELECT {parts} AS t", one)
    up = ((220 / 200 - 1) ** 2 + (200 / 180 - 1) ** 2) ** 0.5
    assert row["t_high"] == pytest.approx(1 + up)
    total = "SELECT SUM(n) FROM (SELECT category, COUNT(*) AS n FROM visits GROUP BY category) x"
    (row,) = asked(f"SELECT COUNT(*) - ({total}) AS t FROM visits WHERE age > 30", one)
    assert (row["t_low"], row["t_high"]) == pytest.approx((-(800**0.5), 800**0.5))


def test_a_ratio_whose_denominator_may_be_0_is_unbounded() -> None:
    sure, unsure = asked("SELECT category, AVG(age) / COUNT(*) AS t FROM visits GROUP BY category", OTHER)
    assert 0 < sure["t_low"] < sure["t_high"] < 10
    assert (unsure["t_low"], unsure["t_high"]) == (-float("inf"), float("inf"))


def test_rows_are_filtered_and_ordered_as_in_the_answer() -> None:
    text = "SELECT city, COUNT(*) AS n, COUNT(*) * 2 AS d FROM visits GROUP BY city"
    (only,) = asked(f"{text} HAVING COUNT(*) > 50 ORDER BY d LIMIT 3")
    assert (only["city"], only["d_low"], only["d"], only["d_high"]) == ("Bern", 180, 200, 220)


def test_numbers_without_noise_are_their_own_ends_in_every_question() -> None:
    names = [f"{end}{bare}" for end in ("low", "high", "least", "most") for bare in ("", "_bare")]
    with shop.connection() as engine:
        for text in QUESTIONS:
            question = parse(text, shop.CATALOG)
            exact = noiseless.answer(question, engine)
            for i, block in enumerate(question.blocks):
                ends = "".join(f", {one.column} AS {one.column}_{end}" for one in block.aggregates for end in names)
                engine.execute(f"CREATE OR REPLACE TEMP TABLE noisy_{i} AS SELECT *{ends} FROM noisy_{i}")
            kinds = _rows(engine, question.after)[1]
            numbers = {name for name, kind in kinds.items() if kind in ("BIGINT", "HUGEINT", "DOUBLE", "INTEGER")}
            rows, _ = _rows(engine, with_intervals(question, numbers)[0])
            assert noiseless.same([tuple(row[name] for name in kinds) for row in rows], exact), text
            for row in rows:
                for name in {name for name in kinds if f"{name}_low" in row and row[name] is not None}:
                    both = (row[f"{name}_low"], row[f"{name}_high"])
                    unsure = row[name] == 0 or both == (-math.inf, math.inf)
                    assert unsure or noiseless.same([both], [(row[name], row[name])]), (text, row)


def _rows(engine: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[dict], dict[str, str]]:
    result = engine.execute(sql)
    kinds = {column[0]: str(column[1]) for column in result.description}
    return [dict(zip(kinds, row, strict=True)) for row in result.fetchall()], kinds


@pytest.mark.parametrize("unit", ["user_id", "row"])
def test_an_answer_without_groups_is_shown_and_has_intervals(unit: str) -> None:
    import pyarrow as pa

    rows = pa.table({"user_id": [i % 300 for i in range(3000)], "id": list(range(3000)), "x": [1.0] * 3000})
    with Curator.open(rows, unit=unit, budget=Budget(epsilon=9.0, delta=1e-6), ledger=":memory:") as curator:
        answer = curator.sql("SELECT id, COUNT(*) AS n, SUM(x) AS s, MEDIAN(x) AS m FROM data GROUP BY id", epsilon=1.0)
        assert answer.intervals(0.95).num_rows == 0
        assert "No group is shown" in answer.show()


def test_a_group_key_that_is_an_expression_stays_whole() -> None:
    by_group = "SELECT category, COUNT(*) AS n FROM visits GROUP BY category"
    text = (
        f"SELECT k + 1 AS k, k * SUM(n) AS t FROM (SELECT n, FLOOR(category / 2) AS k FROM ({by_group}) x) y GROUP BY k"
    )
    noisy = NOISY.replace("'Bern'", "1").replace("'Oslo'", "4")
    rows = sorted(asked(text, noisy), key=lambda row: float(row["k"]))  # groups come in any order
    # FLOOR(1 / 2) = 0 and FLOOR(4 / 2) = 2
    assert [(row["t_low"], row["t"], row["t_high"]) for row in rows] == [(0, 0, 0), (-10, 10, 30)]


def test_a_share_of_a_total_writes_the_total_a_few_times_only() -> None:
    # What stands in a question is repeated for every end; sums over all rows must not be, or printing takes seconds.
    text = "SELECT category, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY category"
    sql, lacking = with_intervals(parse(text, shop.CATALOG), {"t"})
    assert lacking == {}
    assert sql.count("OVER (") <= 16
    assert len(sql) < 10_000


def test_a_larger_allowance_moves_the_one_end_where_something_may_be_cut_off() -> None:
    with Curator.open({"t": visits(50, 3000)}, unit="u", budget=Budget(epsilon=10.0), ledger=":memory:") as curator:
        answer = curator.sql("SELECT COUNT(*) AS n FROM t", epsilon=1.0)
        again = curator.sql("SELECT COUNT(*) AS n FROM t", epsilon=1.0)
    ends = {times: answer.intervals(0.95, allowance=times).to_pylist()[0] for times in (0, 1, 4)}
    assert ends[1] == answer.intervals(0.95).to_pylist()[0]
    assert ends[0]["n_high"] < ends[1]["n_high"] < ends[4]["n_high"]
    assert ends[4]["n_low"] >= ends[0]["n_low"]  # the noise needs less of the interval where much is allowed for
    below, above = ends[0]["n"] - ends[0]["n_low"], ends[0]["n_high"] - ends[0]["n"]
    assert abs(below - above) <= 1  # noise alone, in whole numbers
    assert again.repeated
    assert again.cautions == answer.cautions  # kept with the answer
    assert any("too short (number of rows)" in caution for caution in answer.cautions)  # 50 people are few
    with pytest.raises(InvalidArgument, match="allowance"):
        answer.intervals(0.95, allowance=-1.0)
    with pytest.raises(InvalidArgument, match="allowance"):
        answer.intervals(0.95, allowance=float("nan"))


def test_intervals_of_computed_columns_are_the_same_again_and_from_the_ledger() -> None:
    table = pa.table({"u": [i % 400 for i in range(4000)], "x": [float(i % 97) for i in range(4000)]})
    text = "SELECT SUM(x) / COUNT(*) AS r, COUNT_IF(x < 40) - COUNT_IF(x >= 40) AS d, STDDEV(x) AS s FROM t"
    columns, budget = {"x": {"bounds": (0, 100)}}, Budget(epsilon=10.0, delta=1e-6)
    with Curator.open({"t": table}, unit="u", budget=budget, ledger=":memory:", columns=columns) as curator:
        answer, again = curator.sql(text, epsilon=1.0), curator.sql(text, epsilon=1.0)
    assert again.repeated
    assert answer.intervals().equals(answer.intervals())
    assert answer.intervals().equals(again.intervals())
    wide, narrow = answer.intervals(0.99).to_pylist()[0], answer.intervals(0.5).to_pylist()[0]
    for name in "rds":
        assert wide[f"{name}_low"] <= narrow[f"{name}_low"] <= narrow[f"{name}_high"] <= wide[f"{name}_high"]
    usual, more = (answer.intervals(allowance=times).to_pylist()[0] for times in (1, 4))
    assert more["r_high"] - more["r_low"] > usual["r_high"] - usual["r_low"]


def test_stated_bounds_leave_no_doubt_and_averages_without_bounds_say_what_is_not_in_their_intervals() -> None:
    with Curator.open({"t": visits(50, 3000)}, unit="u", budget=Budget(epsilon=10.0), ledger=":memory:") as curator:
        stated = curator.sql("SELECT COUNT(*) AS n FROM t", epsilon=1.0, max_rows=20)
        assert stated.cautions == ()
        assert stated.intervals(allowance=4).equals(stated.intervals())
        free = curator.sql("SELECT AVG(n) AS m FROM t", epsilon=1.0)
        bound = curator.sql("SELECT AVG(n) AS m FROM t", epsilon=1.0, bounds={"n": (-5, 50)})
        once = curator.sql("SELECT AVG(s) AS m FROM (SELECT u, SUM(n) AS s FROM t GROUP BY u)", epsilon=1.0)
        beside = curator.sql("SELECT AVG(n) AS m, SUM(n) AS s FROM t", epsilon=0.5)
        total = curator.sql("SELECT SUM(n) AS m FROM t", epsilon=0.5)
        counted = curator.sql("SELECT COUNT(n) AS m FROM t", epsilon=0.5)
    [guess] = total.cautions
    assert guess.endswith("is a guess, and a low one; state bounds of the values, and max_rows")
    assert f"\ncaution: {guess}\n" in repr(total)
    assert f"<p>caution: {guess}</p>" in total._repr_html_()
    small = replace(counted, _measured=(replace(counted._measured[0], doubts={0: UNTOLD}),))
    [untold] = small.cautions
    assert untold.endswith("larger than the others; state max_rows, or see intervals(allowance=4)")
    assert "caution" not in repr(small)  # it is so of every small table
    assert "caution" not in repr(stated)
    assert any("does not allow for values that the chosen bound cuts off" in rule for rule in beside.report)
    for answer in (free, once):
        assert any("allows for a few values that the chosen bound cuts off" in rule for rule in answer.report)
    assert not any("cuts off" in rule for rule in bound.report)


def test_quantiles_of_one_argument_are_in_order_with_their_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (
        "SELECT g, QUANTILE_CONT(x, 0.75) AS c, MEDIAN(x) AS b, QUANTILE_CONT(x, 0.25) AS a, MAX(x) AS most FROM t "
        "GROUP BY g"
    )
    table = pa.table({"u": range(60), "g": [i % 12 for i in range(60)], "x": [float(i % 5) for i in range(60)]})
    columns = {"g": {"keys": list(range(12))}, "x": {"bounds": (0, 100)}}
    budget = Budget(epsilon=10.0, delta=1e-6)
    with Curator.open({"t": table}, unit="u", budget=budget, ledger=":memory:", columns=columns) as curator:
        answer = curator.sql(asked, epsilon=0.3)  # so little that noise exchanges them
        with monkeypatch.context() as patched:
            patched.setattr("discreet.query.estimates._same_values", lambda one, other: one is other)
            apart = curator.sql(asked, epsilon=0.3).intervals().to_pylist()
    assert any(not row["a"] <= row["b"] <= row["c"] for row in apart)
    for row, raw in zip(answer.intervals().to_pylist(), apart, strict=True):
        for end in ("", "_low", "_high"):
            names = [f"{name}{end}" for name in "abc"]
            assert [row[name] for name in names] == sorted(raw[name] for name in names)
        assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for name in "abc")
        assert row["most"] == raw["most"]


def test_the_average_of_what_each_person_has_allows_for_what_the_bound_on_its_sum_cuts_off() -> None:
    """Everybody counts once, so nothing is cut off the number of people; the sum is too small by a few large ones."""
    stream = np.random.default_rng(4)
    totals = np.round(stream.lognormal(3, 1.2, 20_000), 2)
    rows, held = pa.table({"u": range(20_000), "x": totals}), 0
    for _ in range(60):
        with Curator.open(
            rows, unit="u", name="t", budget=Budget(epsilon=2.0), ledger=":memory:", rows_per_unit=1
        ) as curator:
            [row] = curator.sql("SELECT AVG(x) AS m FROM t", epsilon=1.0).intervals(0.95).to_pylist()
        held += row["m_low"] <= totals.mean() <= row["m_high"]
        assert row["m_high"] - row["m"] > 1.3 * (row["m"] - row["m_low"])
    assert held > 0.85 * 60
