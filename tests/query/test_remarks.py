"""What is said under an answer, and what the ends of intervals are called."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from discreet import Budget, Curator
from query.open_shop import CITIES, opened, visits


def test_columns_that_are_called_like_ends_of_intervals_are_shown_as_they_are() -> None:
    rows = pa.table({"u": range(400), "n_low": [i % 4 for i in range(400)], "x": [float(i % 10) for i in range(400)]})
    facts = {"n_low": {"bounds": (0, 3)}, "x": {"bounds": (0, 10)}}
    with Curator.open(
        rows, unit="u", name="t", budget=Budget(epsilon=100.0), columns=facts, ledger=":memory:", rows_per_unit=1
    ) as curator:
        answer = curator.sql("SELECT n_low, COUNT(*) AS n FROM t GROUP BY n_low ORDER BY 1", epsilon=5.0)
        table = answer.intervals()
        assert table.column_names == ["n_low", "n", "n_interval_low", "n_interval_high"]
        assert table["n_low"].to_pylist() == [0, 1, 2, 3]
        assert [line.split()[0] for line in str(answer).splitlines()[2:6]] == ["0", "1", "2", "3"]
        assert [column.interval for column in answer.schema] == [False, True]
        assert "<td>3</td>" in answer._repr_html_()
        measures = "AVG(x) AS x, AVG(x) FILTER (WHERE n_low = 0) AS X_LOW, QUANTILE_CONT(x, 0.9) AS x_high, MAX(n) AS m"
        text = f"SELECT {measures} FROM (SELECT *, 1 AS n FROM t)"
        answer = curator.sql(text, epsilon=5.0)
        table = answer.intervals()
        assert len({name.lower() for name in table.column_names}) == table.num_columns == 12
        for name in ("x", "X_LOW", "x_high", "m"):
            low, value, high = (
                table[end][0].as_py() for end in (f"{name}_interval_low", name, f"{name}_interval_high")
            )
            assert low <= value <= high
        assert answer.plot("x") is not None
        plain = curator.sql("SELECT SUM(x) AS s FROM t", epsilon=5.0)
        assert plain.intervals().column_names == ["s", "s_low", "s_high"]


@pytest.mark.parametrize(
    ("end", "picked"),
    [
        ("ORDER BY n DESC LIMIT 2", True),
        ("HAVING COUNT(*) > 5", True),
        ("ORDER BY city LIMIT 2", False),
        ("ORDER BY city, n LIMIT 2", False),
        ("ORDER BY ALL LIMIT 2", False),
        ("ORDER BY LENGTH(city), n LIMIT 2", True),
        ("ORDER BY n", False),
        ("", False),
    ],
)
def test_rows_that_noisy_numbers_have_picked_come_with_a_caution(end: str, picked: bool) -> None:
    with opened(columns={"city": {"keys": list(CITIES)}}) as curator:
        answer = curator.sql(f"SELECT city, COUNT(*) AS n FROM visits GROUP BY city {end}", epsilon=1.0)
        assert any("picked by noisy numbers" in line for line in answer.cautions) == picked
        assert ("picked by noisy numbers" in str(answer)) == picked


def test_printed_intervals_say_where_limits_are_stated_that_they_are_about_no_more() -> None:
    with opened(columns={"city": {"keys": list(CITIES)}}) as curator:
        by_city = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
        free = curator.sql(by_city, epsilon=1.0)
        one = curator.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1.0, max_rows=1)
        both = curator.sql(by_city, epsilon=1.0, max_rows=5, max_groups=2)
    assert "intervals are about" not in str(free)
    assert "intervals are about at most 1 row of each unit, as stated: not about more" in str(one)
    assert "intervals are about at most 5 rows in each group and 2 groups of each unit" in str(both)


@pytest.mark.parametrize(("condition", "picked"), [("n > 3", True), ("city <> 'Bern'", False)])
def test_so_do_rows_that_a_condition_on_them_has_picked(condition: str, picked: bool) -> None:
    with opened(columns={"city": {"keys": list(CITIES)}}) as curator:
        inner = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
        answer = curator.sql(f"SELECT * FROM ({inner}) WHERE {condition}", epsilon=1.0)
        assert any("picked by noisy numbers" in line for line in answer.cautions) == picked


def test_it_is_said_that_rows_without_a_truth_value_are_in_no_group() -> None:
    rows = pa.table({"u": range(300), "consent": [True, False, None] * 100, "city": ["a", "b", None] * 100})
    with Curator.open(rows, unit="u", name="t", budget=Budget(epsilon=9.0, delta=1e-6), ledger=":memory:") as curator:
        for key, said in (("consent", True), ("consent = true", True), ("city", False), ("consent IS NULL", False)):
            shown = str(curator.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1.0))
            assert ("is NULL are in no group" in shown) == said, key


def test_the_report_of_a_csv_file_says_which_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("u,x\n1,2\n2,3\n")
    with opened(tmp_path / "t.csv", unit="u") as curator:
        report = curator.sql("SELECT COUNT(*) FROM t", epsilon=1.0).report
        assert "Lines of t that have too few cells, or quotation marks in wrong places, are not counted." in report
        assert report == curator.explain("SELECT COUNT(*) FROM t", epsilon=1.0).report
    with opened() as curator:
        assert not any("Lines of" in line for line in curator.sql("SELECT COUNT(*) FROM visits", epsilon=1.0).report)


@pytest.mark.parametrize("bounds", [None, (0, 500)])
def test_a_quantile_with_too_few_rows_beyond_it_comes_with_what_to_do(bounds: tuple[int, int] | None) -> None:
    facts = {} if bounds is None else {"spend": {"bounds": bounds}}
    with opened(visits(10_000, 100_000), columns=facts) as curator:
        answer = curator.sql("SELECT QUANTILE_CONT(spend, 0.999) AS q FROM visits", epsilon=0.5)
        (caution,) = (line for line in answer.cautions if "far from the truth" in line)
        assert ("declare bounds" in caution) == (bounds is None)
        assert caution.endswith("ask for a less extreme one, or pay more")
        good = curator.sql("SELECT MEDIAN(spend) AS q FROM visits", epsilon=10.0)
        assert not any("far from the truth" in line for line in good.cautions)
