"""Rounding to the lattice is exact, and moves neighbours no further apart than the mechanism pays for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.mechanisms.lattice import Lattice, added

FLOATS = st.floats(-1e300, 1e300, allow_nan=False)
EXPONENTS = st.integers(-60, 60)


def slow_place(value: float, exponent: int) -> int:
    return math.floor(Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2))


@given(value=FLOATS, exponent=EXPONENTS)
def test_arrays_and_scalars_are_placed_at_the_nearest_step_exactly(value: float, exponent: int) -> None:
    lattice = Lattice(exponent)
    expected = slow_place(value, exponent)
    assert lattice.place(Fraction(value)) == expected
    placed = lattice.place(np.array([value]))
    assert isinstance(placed, np.ndarray)
    assert int(placed[0]) == expected


@pytest.mark.parametrize(
    "value", [0.49999999999999994, -0.49999999999999994, 0.5, -0.5, 1.5, -1.5, 2.5, 5e-324, -5e-324, 4503599627370497.5]
)
def test_the_half_way_points_go_up_and_their_neighbours_do_not(value: float) -> None:
    # adding 0.5 in floating point would send 0.49999999999999994 to 1
    placed = Lattice(0).place(np.array([value]))
    assert isinstance(placed, np.ndarray)
    assert placed.tolist() == [slow_place(value, 0)]


def test_a_value_beyond_int64_is_placed_in_python_integers() -> None:
    placed = Lattice(-30).place(np.array([1e300, 1.0]))
    assert isinstance(placed, np.ndarray)
    assert placed.dtype == object
    assert placed[0] == int(Fraction(1e300) * 2**30)


@given(
    x=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6),
    change=st.lists(st.floats(-10, 10), min_size=6, max_size=6),
    exponent=st.integers(-12, 4),
)
def test_neighbours_stay_within_the_sensitivity_that_is_paid_for(
    x: list[float], change: list[float], exponent: int
) -> None:
    lattice, step = Lattice(exponent), Fraction(2) ** exponent
    left = [Fraction(v) for v in x]
    right = [v + Fraction(c) for v, c in zip(left, change, strict=False)]
    moved = [abs(lattice._place(a) - lattice._place(b)) for a, b in zip(left, right, strict=True)]
    l1 = sum((abs(a - b) for a, b in zip(left, right, strict=True)), Fraction(0))
    squares = sum(((a - b) ** 2 for a, b in zip(left, right, strict=True)), Fraction(0))
    for a, b, m in zip(left, right, moved, strict=True):
        assert m <= math.ceil(abs(a - b) / step)
    if l1 > 0:
        assert sum(moved) <= lattice.l1_steps(l1, len(x))
    root = Fraction(math.isqrt(int(squares * 10**40)) + 1, 10**20)
    assert sum(m * m for m in moved) <= lattice.l2_steps(root, len(x)) ** 2


def test_the_growth_in_l1_is_attained_up_to_nothing() -> None:
    # a change of 1 + tiny in l1, spread over three coordinates that sit just below a half
    lattice, tiny = Lattice(0), Fraction(1, 10**9)
    left = [Fraction(1, 2) - tiny] * 3
    right = [Fraction(1, 2), Fraction(1, 2), Fraction(3, 2)]
    moved = sum(lattice._place(b) - lattice._place(a) for a, b in zip(left, right, strict=True))
    l1 = sum((b - a for a, b in zip(left, right, strict=True)), Fraction(0))
    assert moved == lattice.l1_steps(l1, 3) == 4


def test_one_coordinate_on_the_lattice_pays_nothing_for_rounding() -> None:
    lattice = Lattice(-10)
    assert lattice.l1_steps(Fraction(3), 1) == lattice.l2_steps(Fraction(3), 1) == 3 * 1024
    assert lattice.l1_steps(Fraction(3) + Fraction(1, 10**9), 1) == 3 * 1024 + 1


@given(steps=st.integers(-(2**70), 2**70), exponent=EXPONENTS)
def test_steps_come_back_as_the_nearest_float(steps: int, exponent: int) -> None:
    value = Lattice(exponent).restore(steps)
    assert value == float(steps * Fraction(2) ** exponent)
    many = Lattice(exponent).restore(np.array([steps], dtype=object))
    assert isinstance(many, np.ndarray)
    assert many[0] == value


def test_sums_with_noise_are_exact_beyond_int64() -> None:
    near = np.array([2**62 - 1, -(2**62) + 1])
    total = added(near, np.array([2**63 - 1, -(2**63) + 1]))
    assert isinstance(total, np.ndarray)
    assert total.tolist() == [2**62 + 2**63 - 2, -(2**62) - 2**63 + 2]


def test_what_lies_beyond_all_floats_is_the_largest_float() -> None:
    assert Lattice(0).restore(10**400) == np.finfo(np.float64).max
    assert Lattice(0).restore(-(10**400)) == -np.finfo(np.float64).max


@pytest.mark.parametrize("granularity", [0.1, 0, -1, 3, math.nan, math.inf, "1", True, 2.0**1000, 2.0**-1020])
def test_a_granularity_is_a_power_of_two(granularity: object) -> None:
    with pytest.raises(InvalidArgument, match="granularity"):
        Lattice.of(granularity)


def test_the_default_depends_on_public_numbers_alone() -> None:
    fine = Lattice.below(Fraction(3), Fraction(6), fineness=20, widest=29)
    assert fine.granularity == 2.0 ** (1 - 20)
    wide = Lattice.below(Fraction(1), Fraction(10**9), fineness=20, widest=29)
    assert Fraction(10**9) / wide.step <= 2**29


@given(exponent=st.integers(-1000, 900), steps=st.integers(-(1 << 1100), 1 << 1100), bits=st.integers(1, 1100))
def test_steps_of_any_size_become_the_nearest_float(exponent: int, steps: int, bits: int) -> None:
    short = (abs(steps) >> (1100 - bits)) * (1 if steps >= 0 else -1)
    if short.bit_length() + exponent < 1020:
        nearest = float(short * Fraction(2) ** exponent)
        assert Lattice(exponent).restore(short) == nearest
        assert Lattice(exponent).restore(np.array([short], dtype=object)) == [nearest]


def test_whole_numbers_of_any_size_are_placed_as_fractions_are() -> None:
    lattice = Lattice(5)
    whole = [0, 15, 16, -16, -17, (1 << 70) + 16, -(1 << 90) - 15]
    placed = lattice.place(np.array(whole, dtype=object))
    assert placed.tolist() == [lattice.place(Fraction(number)) for number in whole]
