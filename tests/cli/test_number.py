"""Numbers are read as people type them, and certified ends are rounded outwards on the screen."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
import typer
from hypothesis import given
from hypothesis.strategies import floats, integers

from discreet.cli.number import above, below, json_number, number, relative


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("256/60000", 256 / 60000),
        ("1e-5", 1e-5),
        ("14_000", 14000),
        ("0.5/3", 0.5 / 3),
        (" 3 / 4 ", 0.75),
        ("-1", -1),
        ("1e-1000000000", 0.0),
        ("inf", math.inf),
    ],
)
def test_numbers_and_fractions_are_read(text: str, value: float) -> None:
    assert number(text) == value


def test_whole_numbers_stay_exact() -> None:
    assert number(str(2**80 + 1)) == 2**80 + 1


@given(integers(-(10**30), 10**30), integers(1, 10**30))
def test_a_fraction_is_the_float_nearest_to_it(top: int, bottom: int) -> None:
    assert number(f"{top}/{bottom}") == float(Fraction(top, bottom))


@pytest.mark.parametrize("text", ["", "/", "1/", "/2", "1/2/3", "abc", "1..2", "0x10", f"{10**400}/3"])
def test_what_is_not_a_number_is_refused_with_advice(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a number; write a number such as"):
        number(text)


def test_dividing_by_zero_is_called_that() -> None:
    with pytest.raises(typer.BadParameter, match="'1/0' divides by zero"):
        number("1/0")


@given(floats(allow_nan=False, allow_infinity=False), integers(1, 15))
def test_rounding_goes_outwards_and_not_far(value: float, digits: int) -> None:
    up, down, exact = Decimal(above(value, digits)), Decimal(below(value, digits)), Decimal(value)
    assert down <= exact <= up
    assert up - down <= abs(exact) * Decimal(10) ** (1 - digits)


def test_infinity_is_shown_as_such_and_survives_json() -> None:
    assert above(math.inf) == below(math.inf) == "inf"
    assert json.dumps(json_number(math.inf)) == '"inf"'
    assert float(json_number(math.inf)) == math.inf
    assert json_number(0.25) == 0.25


def test_no_width_is_called_exact() -> None:
    assert (relative(0.0), relative(1.01e-9)) == ("exact", "1.1e-09")
