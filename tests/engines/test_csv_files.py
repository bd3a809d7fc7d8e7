"""The first line of a CSV file: names that everybody may know, or somebody's row."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet import Budget, Curator
from discreet.engines.csv_files import csv_header
from discreet.errors import SourceError
from discreet.query.starter import seen_in


@pytest.mark.parametrize(
    "row",
    [
        "1,Ada Lovelace,1815,flu",
        "-1.5;Ada Lovelace;flu",
        "1e5,Ada Lovelace",
        ".5,Ada Lovelace",
        '"1,5",Ada Lovelace',
        "1815-12-10,Ada Lovelace",
        "10.12.1815\tAda Lovelace",
        "12/10/1815|Ada Lovelace",
        "1815-12-10T08:30:00.5Z,Ada Lovelace",
        "08:30,Ada Lovelace",
        " 7 ,Ada Lovelace,Ada Lovelace",
        "7,Ada Lovelace,",
        "7",
        "1,2,3",
        "0,2,1",
    ],
)
def test_a_first_line_that_begins_like_a_row_is_not_published_as_names(tmp_path: Path, row: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"{row}\n2,Bob,1900,flu\n")
    for read in (
        lambda: csv_header([str(path)]),
        lambda: seen_in([path]),
        lambda: Curator.open(path, unit="row", budget=Budget(epsilon=1.0), ledger=":memory:"),
    ):
        with pytest.raises(SourceError, match="seems to have no line of column names") as refused:
            read()
        assert "Ada" not in str(refused.value)
        assert "1815" not in str(refused.value)


@pytest.mark.parametrize(
    "line", ["id,name", "0,1,2", "0", "name,1815,1900", "_1,2", "1st,2nd", "2nd line,x", "NaN,inf", "T,Z", "-,+"]
)
def test_names_are_names_also_where_they_have_digits(tmp_path: Path, line: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"{line}\n")
    assert csv_header([str(path)])[1] == line.split(",")
