"""Columns from the paths of files: none depends on where another file lies."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Budget, Curator
from discreet.engines.partitions import partitioning
from discreet.errors import SourceError

ROWS = {"u": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0]}
COPIES = {**ROWS, "year": [1999] * 4}


def written(folder: Path, files: dict[str, dict]) -> str:
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(rows), path)
    return str(folder)


def years(source: str, unit: str = "u", **facts: object) -> dict:
    """How many rows have each of these years, nearly without noise."""
    declared = {"year": {"keys": ["2023", "2024"], **facts}}
    with Curator.open(
        source, unit=unit, name="t", columns=declared, budget=Budget(epsilon=500.0), ledger=":memory:", max_groups=3
    ) as curator:
        answer = curator.sql(
            "SELECT COALESCE(year, 'none') AS y, COUNT(*) AS n FROM t GROUP BY y", epsilon=400.0, max_rows=4
        )
    return {year: n for year, n in answer.fetchall() if n}


def test_a_path_gives_its_rows_a_text(tmp_path: Path) -> None:
    hidden = "year=__HIVE_DEFAULT_PARTITION__/a.parquet"
    source = written(tmp_path, {"year=2023/a.parquet": ROWS, "year=2024/a.parquet": ROWS, hidden: ROWS})
    assert years(source) == {"2023": 4, "2024": 4, "none": 4}
    assert years(f"{source}/year=2024/*.parquet") == {"2024": 4}


def test_a_path_can_say_whose_rows_it_has(tmp_path: Path) -> None:
    rows = {"x": [1.0], "year": ["2024"]}
    source = written(tmp_path, {f"u={i}/a.parquet": rows for i in range(5)})
    assert years(source) == {"2024": 5}
    source = written(tmp_path / "b", {f"u={i}/year=2024/a.parquet": {"x": [1.0]} for i in range(5)})
    assert years(source) == {"2024": 5}


def test_what_files_hold_is_read_from_them(tmp_path: Path) -> None:
    source = written(tmp_path, {"year=2023/a.parquet": COPIES, "year=2024/a.parquet": COPIES})
    with Curator.open(source, unit="u", name="t", budget=Budget(epsilon=500.0), ledger=":memory:") as curator:
        (row,) = curator.sql(
            "SELECT MIN(year) AS a, MAX(year) AS b FROM t", epsilon=400.0, bounds=(1900, 2100)
        ).fetchall()
    assert row == (1999, 1999)


def test_a_column_of_a_csv_file_is_read_from_it(tmp_path: Path) -> None:
    for year in (2023, 2024):
        path = tmp_path / f"year={year}" / "a.csv"
        path.parent.mkdir()
        path.write_text("u,year\n1,2024\n2,2024\n3,2024\n", encoding="utf-8")
    assert years(f"{tmp_path}/**/*.csv", type="VARCHAR") == {"2024": 6}


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"year=2024/a.parquet": ROWS, "b/a.parquet": ROWS}, "lies in other directories"),
        ({"year=2024/a.parquet": COPIES, "b/a.parquet": COPIES}, "lies in other directories"),
        ({"year=2024/a.parquet": ROWS, "month=3/a.parquet": ROWS}, "lies in other directories"),
        ({"year=2024/a.parquet": ROWS, "Year=2023/a.parquet": ROWS}, "lies in other directories"),
        ({"year=2024/year=2023/a.parquet": ROWS}, "twice in its path"),
        ({"year=2024/month=3/a.parquet": COPIES}, "in the file and in its path"),
    ],
)
def test_files_that_would_change_the_columns_of_others_are_refused(files: dict, word: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=word):
        Curator.open(written(tmp_path, files), unit="u", budget=Budget(epsilon=1.0), ledger=":memory:")


def test_the_order_of_directories_and_what_is_no_value_do_not_matter() -> None:
    assert partitioning(["/a=1/b=2/x.parquet", "/b=1/c/a=2/x.parquet"], ["x"]).startswith("hive_partitioning = true")
    for path in ("/d/x.parquet", "/d/a=1.parquet", "/=1/x.parquet", "/a=b=c/x.parquet", "/X=1/x.parquet"):
        assert partitioning([path], ["x"]) == "hive_partitioning = false"
