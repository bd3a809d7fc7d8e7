r"""The lattice 2^k Z that real values are put on before noise is added; proofs in docs/proofs/lattice.md.

A real x becomes the integer n(x) = floor(x / 2^k + 1/2), computed exactly. For a change from x to x' in d coordinates,

    |n(x) - n(x')| <= ceil(|x - x'| / 2^k)                     in each coordinate,
    ||n(x) - n(x')||_1 <= ceil(||x - x'||_1 / 2^k) + d - 1,
    ||n(x) - n(x')||_2 <= ||x - x'||_2 / 2^k + sqrt(d),

and for d = 1 a sensitivity that is a multiple of 2^k does not grow at all.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import positive
from discreet.errors import InvalidArgument
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Lattice", "added"]

_SAFE = 1 << 62
"""Steps up to here are int64; with noise up to here their sum still is. Beyond, Python integers take over."""


@dataclass(frozen=True)
class Lattice:
    """The multiples of 2^exponent."""

    exponent: int

    def __post_init__(self) -> None:
        if not -1000 <= self.exponent <= 900:
            raise InvalidArgument("granularity", f"2^{self.exponent}", "pass a power of two between 2^-1000 and 2^900")

    @classmethod
    def of(cls, granularity: object) -> Lattice:
        """The lattice of this granularity, which must be a power of two."""
        number = positive("granularity", granularity)
        mantissa, exponent = math.frexp(number)
        if mantissa != 0.5:
            raise InvalidArgument(
                "granularity", granularity, f"pass a power of two, such as {math.ldexp(1.0, exponent - 1)!r}"
            )
        return cls(exponent - 1)

    @classmethod
    def below(cls, sensitivity: Fraction, scale: Fraction, *, fineness: int, widest: int) -> Lattice:
        """2^fineness steps to the sensitivity, unless the noise scale were then more than 2^widest steps.

        Both are public, and so is the result: no data is looked at.
        """
        return cls(max(_log2(sensitivity) - fineness, _log2(scale) + 1 - widest))

    @property
    def granularity(self) -> float:
        """The step 2^exponent."""
        return math.ldexp(1.0, self.exponent)

    @cached_property
    def step(self) -> Fraction:
        """The step as an exact number."""
        return Fraction(2) ** self.exponent

    def l1_steps(self, sensitivity: Fraction, dimension: int) -> int:
        """How far in l1, in steps, a change of l1 norm `sensitivity` can move the rounded value."""
        return math.ceil(sensitivity / self.step) + dimension - 1

    def l2_steps(self, sensitivity: Fraction, dimension: int) -> Fraction:
        """How far in l2, in steps, a change of l2 norm `sensitivity` can move the rounded value."""
        if dimension == 1:
            return Fraction(math.ceil(sensitivity / self.step))
        return sensitivity / self.step + root_above(dimension)

    def place(self, value: Fraction | NDArray[Any]) -> int | NDArray[Any]:
        """n(x), exactly: a Python integer for a Fraction; int64 for an array if all fit, else Python integers."""
        if isinstance(value, Fraction):
            return self._place(value)
        if value.dtype != object:
            with np.errstate(over="ignore", under="ignore"):  # too large is seen below, too small is 0 either way
                steps = np.ldexp(value, -self.exponent)
            if bool((np.abs(steps) < _SAFE).all()):
                whole = np.floor(steps)
                # floor(steps + 0.5) would round the sum; the fraction is exact wherever it could be mistaken for 1/2
                return np.asarray(whole.astype(np.int64) + (steps - whole >= 0.5))
        placed = np.empty(value.shape, dtype=object)
        placed.reshape(-1)[:] = [self._place(entry if type(entry) is int else Fraction(entry)) for entry in value.flat]
        return placed

    def _place(self, value: Fraction | int) -> int:
        # floor(a / (b 2^k) + 1/2) in integers, as single releases are often made
        above, below, exponent = value.numerator, value.denominator, self.exponent
        if exponent < 0:
            above <<= -exponent
        else:
            below <<= exponent
        return (2 * above + below) // (2 * below)

    def restore(self, steps: int | NDArray[Any]) -> float | NDArray[np.float64]:
        """steps * 2^k as floats: exact up to 2^53 steps, and the nearest float beyond.

        The nearest float is a function of the released integer alone, so nothing of the input shows through.
        """
        if isinstance(steps, int):
            return self._restored(steps)
        if steps.dtype == object:
            values = [self._restored(int(entry)) for entry in steps.flat]
            return np.array(values, dtype=np.float64).reshape(steps.shape)
        return np.ldexp(steps.astype(np.float64), self.exponent)

    def _restored(self, steps: int) -> float:
        # Up to 2^53 steps are a float. Far from the ends of the floats, the one next to steps * 2^k has the digits
        # of the one next to steps. The time of this says nothing about the steps; that of a fraction's gcd would.
        bits = steps.bit_length()
        if bits <= 53 or (bits < 1000 and -900 < self.exponent < 1000 - bits):
            return math.ldexp(float(steps), self.exponent)
        return _nearest(steps * self.step)


def added(steps: int | NDArray[Any], noise: int | NDArray[np.int64]) -> int | NDArray[Any]:
    """The exact sum of placed values and integer noise."""
    if isinstance(steps, int) and isinstance(noise, int):
        return steps + noise
    assert isinstance(steps, np.ndarray)
    assert isinstance(noise, np.ndarray)
    if steps.dtype != object and bool((np.abs(noise) >= _SAFE).any()):
        steps = steps.astype(object)
    return np.asarray(steps + noise.astype(object) if steps.dtype == object else steps + noise)


def _nearest(value: Fraction) -> float:
    """The nearest float; the largest one beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(sys.float_info.max, 1 if value > 0 else -1)


def _log2(value: Fraction) -> int:
    """floor(log2(value)) of a positive number."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1
