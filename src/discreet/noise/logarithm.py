"""Certified fixed-point logarithms, to any number of bits, in Python integers alone."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.noise.certified import Bounds

__all__ = ["log_bounds"]


def log_bounds(numerator: int, shift: int, bits: int) -> Bounds:
    """Integers lower <= ln(numerator / 2^shift) 2^bits <= upper for an integer numerator > 0.

    With numerator = y 2^k and 1 <= y < 2, the value is ln y + (k - shift) ln 2, and ln y = 2 atanh((y - 1)/(y + 1)).
    """
    if numerator <= 0:
        raise ValueError("the logarithm needs a positive number")
    exponent = numerator.bit_length() - 1
    twos = exponent - shift
    work = bits + abs(twos).bit_length() + 24
    mantissa, mantissa_error = _twice_atanh(numerator - (1 << exponent), numerator + (1 << exponent), work)
    two, two_error = _log_two(work)
    value = mantissa + twos * two
    error = mantissa_error + abs(twos) * two_error
    spare = work - bits
    return value - error >> spare, -(-(value + error) >> spare)


@lru_cache(maxsize=64)
def _log_two(work: int) -> Bounds:
    return _twice_atanh(1, 3, work)


def _twice_atanh(numerator: int, denominator: int, work: int) -> Bounds:
    """2 atanh(z) 2^work for 0 <= z <= 1/3 and a bound of its error in units.

    z is cut by less than a unit (the slope is at most 9/8); every power is off by less than 3 units; the powers left
    out sum to less than 4.
    """
    z = (numerator << work) // denominator
    square = z * z >> work
    power, total, order = z, 0, 1
    while power:
        total += power // order
        power = power * square >> work
        order += 2
    return 2 * total, 2 * (4 * (order // 2) + 8)
