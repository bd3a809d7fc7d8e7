"""Sums are exact, do not depend on the order, and move by no more than the sensitivity says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounds, Laplace

ROWS = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30)
ENDS = st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)).filter(lambda ends: ends[1] - ends[0] > 1e-3)


def slow(bounds: Bounds, row: float) -> Fraction:
    step = Fraction(bounds.granularity)
    low, high = math.ceil(Fraction(bounds.lower) / step), math.floor(Fraction(bounds.upper) / step)
    if math.isnan(row):
        return min(high, max(low, 0)) * step
    if math.isinf(row):
        return (high if row > 0 else low) * step
    return min(high, max(low, math.floor(Fraction(row) / step + Fraction(1, 2)))) * step


@given(rows=ROWS, ends=ENDS)
def test_a_sum_is_the_exact_sum_of_its_rows(rows: list[float], ends: tuple[float, float]) -> None:
    bounds = Bounds(*ends)
    assert bounds.sum(np.array(rows)) == sum((slow(bounds, row) for row in rows), Fraction(0))


@given(rows=ROWS, ends=ENDS, seed=st.integers(0, 2**32))
def test_the_order_of_the_rows_does_not_matter(rows: list[float], ends: tuple[float, float], seed: int) -> None:
    bounds = Bounds(*ends)
    mixed = np.random.default_rng(seed).permutation(np.array(rows))
    assert bounds.steps(mixed) == bounds.steps(np.array(rows))


def test_floats_added_one_by_one_would_depend_on_the_order() -> None:
    rows = np.array([1e16, 1.0, -1e16, 1.0] * 3)
    assert sum(rows) != sum(np.sort(rows))
    bounds = Bounds(-1e16, 1e16, granularity=1)
    assert bounds.sum(rows) == bounds.sum(np.sort(rows)) == 6


@given(rows=ROWS, extra=st.floats(allow_nan=True), other=st.floats(allow_nan=True), ends=ENDS)
def test_one_row_moves_the_sum_by_no_more_than_the_sensitivity(
    rows: list[float], extra: float, other: float, ends: tuple[float, float]
) -> None:
    bounds = Bounds(*ends)
    without, with_it, replaced = (bounds.sum(np.array(column)) for column in (rows, [*rows, extra], [*rows, other]))
    assert abs(with_it - without) <= bounds.sensitivity() <= max(abs(bounds.lower), abs(bounds.upper))
    assert (
        abs(with_it - replaced) <= bounds.sensitivity("replace-one") <= Fraction(bounds.upper) - Fraction(bounds.lower)
    )


@given(
    rows=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20),
    ends=st.tuples(st.integers(-(2**61), 2**61), st.integers(-(2**61), 2**61)).filter(lambda e: e[1] - e[0] > 2**40),
    exponent=st.integers(0, 30),
)
def test_integers_beyond_a_float_are_summed_exactly(rows: list[int], ends: tuple[int, int], exponent: int) -> None:
    bounds = Bounds(float(ends[0]), float(ends[1]), granularity=2.0**exponent)
    low, high = bounds.ends
    step = 2**exponent
    expected = sum(min(high, max(low, math.floor(Fraction(row, step) + Fraction(1, 2)))) * step for row in rows)
    assert bounds.sum(np.array(rows, dtype=np.int64)) == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32])
def test_every_number_type_gives_the_same_sum(dtype: type) -> None:
    rows = np.array([0, 1, 2, 100, 127], dtype=dtype)
    assert Bounds(0.5, 100.25, granularity=0.25).sum(rows) == Fraction(1, 2) + 1 + 2 + 100 + Fraction(401, 4)


def test_unsigned_integers_beyond_int64_are_clamped() -> None:
    assert Bounds(0, 2.0**40, granularity=1).sum(np.array([2**64 - 1], dtype=np.uint64)) == 2**40
    assert Bounds(-5, -1, granularity=1).sum(np.array([2**64 - 1], dtype=np.uint64)) == -1
    assert Bounds(1000, 2000, granularity=1).sum(np.array([5], dtype=np.uint8)) == 1000


def test_a_sum_of_the_largest_rows_cannot_overflow() -> None:
    bounds = Bounds(0, 2.0**61, granularity=1)
    rows = np.full(1000, 2.0**61)
    assert bounds.steps(rows) == 1000 * 2**61
    mixed = np.concatenate([rows, np.zeros(7)])
    assert bounds.steps(mixed) == 1000 * 2**61
    negative = Bounds(-(2.0**61), 1, granularity=1)
    assert negative.steps(-rows) == -1000 * 2**61


def test_what_is_missing_and_what_is_infinite_follow_the_stated_rule() -> None:
    nan = np.array([math.nan])
    assert Bounds(-3, 7).sum(nan) == 0
    assert Bounds(2, 7).sum(nan) == 2
    assert Bounds(-7, -2).sum(nan) == -2
    assert Bounds(2, 7, missing=4.5).sum(nan) == Fraction(9, 2)
    assert Bounds(2, 7).sum([math.inf]) == 7
    assert Bounds(2, 7).sum([-math.inf]) == 2


def test_no_rows_sum_to_zero_and_columns_are_summed_one_by_one() -> None:
    bounds = Bounds(0, 10)
    assert bounds.sum([]) == 0
    assert bounds.sums(np.array([[1.5, 20.0], [2.0, -1.0]])) == [Fraction(7, 2), 10]
    with pytest.raises(InvalidArgument, match="columns"):
        bounds.sums([1.0, 2.0])


def test_a_sum_on_the_lattice_pays_nothing_for_rounding_when_released() -> None:
    bounds = Bounds(0, 0.7)
    mechanism = Laplace(epsilon=1.0, sensitivity=bounds.sensitivity(), granularity=bounds.granularity)
    assert mechanism.scale_in_steps() == bounds.steps_apart()
    assert isinstance(mechanism.release(bounds.sum([0.1, 0.2])), float)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((1, 1), "lower < upper"),
        ((2, 1), "lower < upper"),
        ((0, math.inf), "upper"),
        ((math.nan, 1), "lower"),
        ((0, 1, 0.3), "power of two"),
        ((0, 1, 2.0), "no two multiples"),
        ((0, 1, 2.0**-70), "2\\^62 steps"),
        ((0, 1, None, 2.0), "missing"),
        ((0, 1, None, math.nan), "missing"),
    ],
)
def test_bounds_that_cannot_be_are_refused(arguments: tuple, match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        Bounds(*arguments)


@pytest.mark.parametrize(
    "values", ["abc", None, 1.0, [None], [[1.0], [1.0, 2.0]], np.array([1j]), np.broadcast_to(0.0, (1 << 31,))]
)
def test_columns_that_are_not_numbers_are_refused(values: object) -> None:
    with pytest.raises(InvalidArgument, match="values"):
        Bounds(0, 1).sum(values)


@pytest.mark.parametrize("added", [2**54, 2.0**54, 0.5, math.nan, math.inf, 2**70])
def test_a_row_of_another_type_does_not_change_how_the_others_are_read(added: float) -> None:
    bounds = Bounds(0, 2**54)
    # an integer just below the middle of two lattice points, whose nearest float is that middle and goes up
    rows = [2**53 + 2**23 - 1] * 1000
    assert 0 <= bounds.steps([*rows, added]) - bounds.steps(rows) <= bounds.steps_apart()
    assert bounds.steps([*rows, added]) - bounds.steps(rows) == bounds.steps([added])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.int64, np.float64])
def test_small_integers_are_summed_on_a_lattice_that_is_coarser_than_all_of_them(dtype: type) -> None:
    assert Bounds(-1e30, 1e30).sum(np.array([1, 2, 3], dtype=dtype)) == 0
    assert Bounds(-(2.0**93), 2.0**93, 2.0**63).sum(np.array([1, 100], dtype=dtype)) == 0
