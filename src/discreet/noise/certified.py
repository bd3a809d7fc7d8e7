"""Certified fixed-point values of exp, pi and the normal law, to any number of bits, in Python integers alone.

Every function returns a pair of integers (lower, upper) with lower <= 2^bits * value <= upper, a few units apart. Each
operation rounds its lower end down and its upper end up, so that no error analysis is needed beyond the remainders that
are stated beside the line.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["Bounds", "exp_minus", "half_normal", "over", "product", "root_two_over_pi"]

Bounds: TypeAlias = tuple[int, int]


def product(left: Bounds, right: Bounds, bits: int) -> Bounds:
    """The product of two nonnegative values."""
    return left[0] * right[0] >> bits, (left[1] * right[1] >> bits) + 1


def over(left: Bounds, right: Bounds, bits: int) -> Bounds:
    """The quotient of a nonnegative and a positive value."""
    return (left[0] << bits) // right[1], (left[1] << bits) // right[0] + 1


def exp_minus(x: Fraction, bits: int) -> Bounds:
    """e^{-x} for rational x >= 0.

    Taylor series at y = x / 2^s <= 2^-8, then s squarings.
    """
    if x > bits:  # e^-x < 2^-x < 2^-bits
        return 0, 1
    squarings = int(x).bit_length() + 8
    precision = bits + squarings + 16
    y = (x.numerator << precision) // (x.denominator << squarings)
    term, total, n = 1 << precision, 0, 0
    while term:
        total += -term if n % 2 else term
        n += 1
        term = term * y // (n << precision)
    # Each term is short by less than 2 units (its own rounding, and 2^-8 of the one before), the rest of the series is
    # below 2 units, and e^-y falls by at most one unit over the rounding of y.
    error = 2 * n + 3
    low, high = total - error, total + error
    for _ in range(squarings):
        low, high = low * low >> precision, (high * high >> precision) + 1
    drop = precision - bits
    return low >> drop, (high >> drop) + 1


@lru_cache(maxsize=16)
def root_two_over_pi(bits: int) -> Bounds:
    """√(2/π), by Machin's π = 16 arctan(1/5) - 4 arctan(1/239)."""
    precision = bits + 16
    low = 16 * _arctan_inverse(5, precision)[0] - 4 * _arctan_inverse(239, precision)[1]
    high = 16 * _arctan_inverse(5, precision)[1] - 4 * _arctan_inverse(239, precision)[0]
    # 2^precision √(2/π) = √(2 * 2^(3 precision) / (2^precision π))
    bottom = math.isqrt((2 << 3 * precision) // high)
    top = math.isqrt((2 << 3 * precision) // low) + 1
    return bottom >> 16, (top >> 16) + 1


def _arctan_inverse(n: int, bits: int) -> Bounds:
    """arctan(1/n) for n >= 2: the alternating series, each term rounded by less than one unit."""
    power, total, k = (1 << bits) // n, 0, 0
    while power:
        total += -(power // (2 * k + 1)) if k % 2 else power // (2 * k + 1)
        power //= n * n
        k += 1
    error = 2 * k + 2
    return total - error, total + error


def half_normal(x: Fraction, bits: int) -> Bounds:
    """P(|Z| < x) for a standard normal Z and rational x >= 0.

        P(|Z| < x) = √(2/π) e^{-x²/2} Σ_{n>=0} x^{2n+1} / (2n+1)!!        [Abramowitz and Stegun 1964, 26.2.11]

    Every term is positive, so nothing cancels.
    """
    square = x * x
    if square > 2 * bits:  # P(|Z| >= x) <= e^{-x²/2} < 2^-bits
        return (1 << bits) - 1, 1 << bits
    precision = bits + int(square) + 16  # the series grows to e^{x²/2} √(π/2)
    top, bottom = square.numerator, square.denominator
    low = (x.numerator << precision) // x.denominator
    high = low + 1
    total_low, total_high, odd = 0, 0, 1
    while low or 2 * top > bottom * (odd + 2):
        total_low, total_high = total_low + low, total_high + high
        odd += 2
        low = low * top // (bottom * odd)
        high = -(-high * top // (bottom * odd))
    total_high += 2 * high  # from here on each term is at most half the one before
    density = product(root_two_over_pi(precision), exp_minus(square / 2, precision), precision)
    value = product((total_low, total_high), density, precision)
    drop = precision - bits
    return value[0] >> drop, (value[1] >> drop) + 1
