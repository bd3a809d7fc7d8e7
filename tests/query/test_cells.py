"""The cells of printed answers."""

from __future__ import annotations

import datetime as dt
import math

from hypothesis import given
from hypothesis import strategies as st

from discreet.query.cells import cells


def shown(value: object, low: object = None, high: object = None) -> str:
    return cells([{"x": value, "x_low": low, "x_high": high}], ["x"])[0][0]


def test_a_number_has_three_digits_of_its_error() -> None:
    assert shown(240.48962, 237.90848, 243.09223) == "240.49  [237.91, 243.09]"
    assert shown(0.301552, 0.298802, 0.303639) == "0.30155  [0.29880, 0.30364]"
    assert shown(-502987.63, -2714015.57, 1197740.59) == "-502988  [-2714016, 1197741]"


def test_large_numbers_are_written_out() -> None:
    assert shown(7.58587e7, 7.57192e7, 7.59998e7) == "75858700  [75719200, 75999800]"
    assert shown(7.58587e7) == "75858700"
    assert shown(3e18, 2e18, 4e18) == "3e+18  [2e+18, 4e+18]"


def test_whole_numbers_stay_whole_and_other_things_as_they_are() -> None:
    assert shown(40128, 39994, 40553) == "40128  [39994, 40553]"
    day = dt.date(2024, 3, 1)
    assert shown(day, day, day) == "2024-03-01  [2024-03-01, 2024-03-01]"
    assert shown("Ulm") == "Ulm"
    assert shown(value=True) == "True"


def test_an_interval_that_says_nothing_is_left_out_and_one_open_end_is_not() -> None:
    assert shown(3.5, -math.inf, math.inf) == "3.5"
    assert shown(3.5, 2.5, math.inf) == "3.5  [2.5, ∞]"
    assert shown(None, -math.inf, 4.0) == "NULL"
    assert shown(None, 2.0, 4.0) == "NULL  [2, 4]"
    assert shown(2.5, 2.5, 2.5) == "2.5  [2.5, 2.5]"


def test_what_is_whole_or_rounded_has_no_zeros_behind_it() -> None:
    assert shown(1094, 1094.0, 1095.0) == "1094  [1094, 1095]"
    assert shown(4.5, 4.4, 4.6) == "4.5  [4.4, 4.6]"
    assert shown(4.5, 4.4, 4.61) == "4.50  [4.40, 4.61]"
    assert shown(200.0, 100.0, 300.0) == "200  [100, 300]"


def test_an_end_that_is_not_known_is_shown_as_dots_and_two_are_left_out() -> None:
    assert shown(4.5, None, 4.5) == "4.5  […, 4.5]"
    assert shown(4.5, 4.25, None) == "4.50  [4.25, …]"
    assert shown(4.5, -math.inf, 4.75) == "4.50  [-∞, 4.75]"
    assert shown(4.5, None, math.inf) == shown(4.5, None, None) == "4.5"
    assert shown(None, None, 3.0) == shown(None, None, None) == "NULL"


def test_a_number_that_rounds_to_zero_has_no_sign() -> None:
    assert shown(-0.0001, -5.0, 5.0) == "0  [-5, 5]"


def test_numbers_of_a_column_line_up_and_texts_do_not_move() -> None:
    rows = [{"k": "a", "n": 60357, "n_low": 60013, "n_high": 60918}, {"k": "bb", "n": 9, "n_low": -3, "n_high": 21}]
    assert cells(rows, ["k", "n"]) == [["a", "60357  [60013, 60918]"], ["bb", "    9  [   -3,    21]"]]
    assert cells([], ["k"]) == []


@given(
    value=st.floats(-1e6, 1e6),
    below=st.floats(1e-6, 1e12),
    above=st.floats(1e-6, 1e12),
)
def test_what_is_shown_is_the_number_within_a_hundredth_of_its_error(value: float, below: float, above: float) -> None:
    text = shown(value, value - below, value + above)
    error = max(value - (value - below), (value + above) - value)
    assert "e" not in text
    assert abs(float(text.split()[0]) - value) <= max(error / 100, 0.5 if error >= 100 else 0) * (1 + 1e-9) + 1e-15
