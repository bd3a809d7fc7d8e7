"""Scores: exact whatever their type, with certified distances to the best, and refused without showing any."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, fractions, integers, lists, one_of

from discreet.errors import DiscreetError
from discreet.noise.scores import Scores

NUMBERS = one_of(
    floats(allow_nan=False, allow_infinity=False), integers(-(10**25), 10**25), fractions(), integers(-5, 5)
)


def check(scores: Scores, exact: list[Fraction]) -> None:
    best = max(exact)
    assert len(scores) == len(exact)
    for i, value in enumerate(exact):
        gap = best - value
        assert scores.gap(i) == gap
        rounded = float(scores.gaps[i])
        assert (rounded == 0) == (gap == 0)
        if math.isinf(rounded):
            assert gap > 1.79e308
        elif rounded > 1e-300:
            assert abs(Fraction(rounded) - gap) <= gap / 2**52
        else:
            assert gap <= 1.1e-300


@given(values=lists(NUMBERS, min_size=1, max_size=8))
def test_lists_of_any_numbers_keep_their_exact_value(values: list) -> None:
    check(Scores(values), [Fraction(value) for value in values])


@given(values=lists(floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_float_arrays_keep_their_exact_value(values: list[float]) -> None:
    check(Scores(np.array(values)), [Fraction(value) for value in values])


@given(values=lists(integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=8))
def test_integer_arrays_keep_their_exact_value_even_beyond_2_to_53(values: list[int]) -> None:
    check(Scores(np.array(values, dtype=np.int64)), [Fraction(value) for value in values])
    shifted = [value + (1 << 63) for value in values]
    check(Scores(np.array(shifted, dtype=np.uint64)), [Fraction(value) for value in shifted])


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", ">i4", "i1", "u2", ">u8"])
def test_other_widths_and_byte_orders_are_read(dtype: str) -> None:
    check(Scores(np.array([3, 0, 7, 7], dtype=dtype)), [Fraction(3), Fraction(0), Fraction(7), Fraction(7)])


@given(
    values=lists(NUMBERS, min_size=1, max_size=5),
    factor=one_of(
        fractions(Fraction(1, 10**6), 10**6), fractions(Fraction(1, 10**400), Fraction(1, 10**300)).filter(bool)
    ),
)
def test_exponents_are_within_their_error(values: list, factor: Fraction) -> None:
    scores = Scores(values)
    for i, exponent in enumerate(scores.exponents(factor).tolist()):
        exact = factor * scores.gap(i)
        if math.isinf(exponent):
            assert exact > 10**18
        elif exponent > 1e-300:
            assert abs(Fraction(exponent) - exact) <= exact / 2**50
        else:
            assert exact <= 1.1e-300


SECRET = 123456789.25
BAD = [
    [],
    np.array([]),
    np.zeros((2, 2)),
    np.array(3.0),
    3.0,
    None,
    "abc",
    [SECRET, math.nan],
    [SECRET, math.inf],
    [SECRET, None],
    [SECRET, "1"],
    [SECRET, True],
    [SECRET, 1j],
    [Fraction(1, 2), -math.inf],
    np.array([SECRET, math.nan]),
    np.array([SECRET, -math.inf]),
    np.array([math.inf, SECRET]),
    np.array([True, False]),
    np.array(["a", "b"]),
    np.array([SECRET, None], dtype=object),
    np.array([1, 2], dtype=np.longdouble),
    np.array([1, 2], dtype=complex),
    {1: 2.0},
]


@pytest.mark.parametrize("scores", BAD, ids=lambda value: type(value).__name__)
def test_bad_scores_are_refused_and_not_shown(scores: object) -> None:
    with pytest.raises(DiscreetError, match="scores") as caught:
        Scores(scores)
    assert "123456789" not in str(caught.value)
