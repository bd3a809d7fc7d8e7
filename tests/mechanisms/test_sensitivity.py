"""Sensitivities are converted upwards only."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.mechanisms.sensitivity import as_written, below, in_l1, in_l2, root_above, sensitivity_of


@given(number=st.integers(1, 10**12))
def test_roots_are_rounded_up_by_less_than_one_part_in_two_to_the_64(number: int) -> None:
    root = root_above(number)
    assert root**2 >= number > (root - Fraction(1, 2**64)) ** 2 if root > 1 else root == 1


@given(sensitivity=st.floats(1e-6, 1e6), dimension=st.integers(1, 10**6))
def test_conversions_bound_the_norm_and_little_more(sensitivity: float, dimension: int) -> None:
    exact = Fraction(sensitivity)
    assert Fraction(in_l1(None, None, None, sensitivity, dimension)) >= exact * dimension
    assert Fraction(in_l1(None, None, sensitivity, None, dimension)) ** 2 >= exact**2 * dimension
    assert Fraction(in_l2(None, None, None, sensitivity, dimension)) ** 2 >= exact**2 * dimension
    assert in_l2(None, None, None, sensitivity, dimension) <= sensitivity * math.sqrt(dimension) * (1 + 1e-14)
    assert in_l2(None, sensitivity, None, None, None) == sensitivity
    assert in_l1(sensitivity, None, None, None, None) == in_l2(sensitivity, None, None, None, None) == sensitivity


@given(numerator=st.integers(1, 10**30), denominator=st.integers(1, 10**30))
def test_a_fraction_is_never_rounded_down(numerator: int, denominator: int) -> None:
    exact = Fraction(numerator, denominator)
    assert exact <= Fraction(sensitivity_of("sensitivity", exact)) <= exact * (1 + Fraction(1, 2**51))
    assert as_written(below(exact)) <= exact


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", True, None, 1e-300, 1e300])
def test_a_sensitivity_is_a_positive_number(value: object) -> None:
    with pytest.raises(InvalidArgument, match="sensitivity"):
        sensitivity_of("sensitivity", value)


def test_exactly_one_norm_is_named_and_a_conversion_needs_the_dimension() -> None:
    with pytest.raises(InvalidArgument, match="exactly one"):
        in_l1(None, None, None, None, None)
    with pytest.raises(InvalidArgument, match="exactly one"):
        in_l2(1.0, 1.0, None, None, None)
    with pytest.raises(InvalidArgument, match="dimension"):
        in_l2(None, None, None, 1.0, None)
    with pytest.raises(InvalidArgument, match="dimension"):
        in_l1(None, None, 1.0, None, None)
