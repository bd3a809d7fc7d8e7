"""Certified logarithms: they bracket the truth, tightly, at every precision."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis.strategies import integers

from discreet.noise.logarithm import log_bounds


@pytest.fixture(autouse=True)
def _digits():
    before, ctx.prec = ctx.prec, 3000
    yield
    ctx.prec = before


def ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


@given(numerator=integers(1, 1 << 400), shift=integers(0, 500), bits=integers(1, 500))
def test_logarithms_are_bracketed_to_three_units(numerator: int, shift: int, bits: int) -> None:
    lower, upper = log_bounds(numerator, shift, bits)
    truth = ball(Fraction(numerator, 1 << shift)).log() * arb(2) ** bits
    assert arb(lower) <= truth <= arb(upper)
    assert upper - lower <= 3


def test_the_logarithm_of_one_is_bracketed_around_zero() -> None:
    for bits in (1, 64, 640):
        lower, upper = log_bounds(1 << 7, 7, bits)
        assert lower <= 0 <= upper
        assert upper - lower <= 2


def test_a_number_that_is_not_positive_has_no_logarithm() -> None:
    with pytest.raises(ValueError, match="positive"):
        log_bounds(0, 1, 64)
