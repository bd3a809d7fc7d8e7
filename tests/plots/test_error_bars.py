"""Answers are drawn with the intervals that they state."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.axes import Axes

from discreet.errors import InvalidArgument
from discreet.query.error_bars import ErrorBars
from query.open_shop import CITIES, opened

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(spend) AS mean FROM visits GROUP BY city ORDER BY city"


def ends(ax: Axes) -> np.ndarray:
    """The lowest and highest point of every bar, along both axes."""
    (segments,) = [bars.get_segments() for bars in ax.collections]
    return np.array([[segment.min(axis=0), segment.max(axis=0)] for segment in segments])


def test_names_stand_below_each_other_with_the_intervals_of_the_answer(tmp_path: Path) -> None:
    with opened(columns={"city": {"keys": CITIES}}) as curator:
        answer = curator.sql(BY_CITY, epsilon=5)
    ax = answer.plot("mean", confidence=0.9, path=tmp_path / "means.png")
    table = answer.intervals(0.9).to_pydict()
    assert (tmp_path / "means.png").stat().st_size > 5_000
    assert [text.get_text() for text in ax.get_yticklabels()] == list(CITIES)
    assert ax.yaxis_inverted()
    assert ends(ax)[:, 0, 0] == pytest.approx(table["mean_low"])
    assert ends(ax)[:, 1, 0] == pytest.approx(table["mean_high"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mean", "city")
    assert ax.get_title() == "mean, with 90 % intervals"


def test_without_a_name_the_first_column_with_an_interval_is_drawn() -> None:
    with opened(columns={"city": {"keys": CITIES}}) as curator:
        answer = curator.sql(BY_CITY, epsilon=5)
        ax = answer.plot(label="at 5")
        assert ax.get_xlabel() == "n"
        assert curator.sql(BY_CITY, epsilon=1).plot(ax=ax, label="at 1") is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["at 5", "at 1"]
    colours = {line.get_color() for line in ax.lines if line.get_gid()}
    assert len(colours) == 2


def table(keys: list[object]) -> pa.Table:
    return pa.table({"k": keys, "n": [5, 7], "n_low": [4, -math.inf], "n_high": [8.0, 9.0]})


@pytest.mark.parametrize("keys", [[1, 3], [dt.date(2024, 1, 1), dt.date(2024, 2, 1)], [0.5, 1.5]])
def test_numbers_and_dates_are_places_on_the_axis(keys: list[object]) -> None:
    ax = ErrorBars.of(table(keys), None, names=["k", "n"], confidence=0.95).plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("k", "n")
    assert ends(ax)[:, :, 1].tolist() == [[4, 8], [4, 9]]  # an open end reaches as far as the numbers do


def test_several_keys_make_one_name_and_an_answer_without_groups_none() -> None:
    two = table(["a", "b"]).append_column("l", [[True, False]])
    ax = ErrorBars.of(two, "n", names=["k", "l", "n"], confidence=0.95).plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a, True", "b, False"]
    alone = pa.table({"n": [5, None], "n_low": [4, None], "n_high": [8, None]})
    bars = ErrorBars.of(alone, None, names=["n"], confidence=0.95)
    assert bars.values == [5.0]  # rows without a number are left out
    assert [text.get_text() for text in bars.plot().get_yticklabels()] == [""]


def test_a_column_without_an_interval_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="draw a column that has an interval: n"):
        ErrorBars.of(table([1, 2]), "k", names=["k", "n"], confidence=0.95)
    with pytest.raises(InvalidArgument, match="none has"):
        ErrorBars.of(pa.table({"k": [1]}), None, names=["k"], confidence=0.95)
    day = dt.date(2024, 1, 1)
    with pytest.raises(InvalidArgument, match="a column of numbers"):
        ErrorBars.of(pa.table({"d": [day], "d_low": [day], "d_high": [day]}), None, names=["d"], confidence=0.95)
