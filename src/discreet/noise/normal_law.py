"""Laws of Gaussian shape on the whole numbers, with certified distribution functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, repeat
from typing import TYPE_CHECKING

from discreet.noise.certified import exp_minus, half_normal, product, root_two_over_pi
from discreet.noise.law import Law

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from discreet.noise.certified import Bounds

__all__ = ["DiscreteNormal", "RoundedNormal"]


def heights(scale: Fraction, precision: int) -> Iterator[tuple[Bounds, Bounds]]:
    """(g_k, g_{k+1} / g_k) for g_k = e^{-k²/2 scale²}, k = 0, 1, 2, …

    The quotients e^{-(2k+1)/2 scale²} are a geometric sequence: two products a step. The distance of the bounds of g_k
    is at most a few k² units.
    """
    step = exp_minus(1 / scale**2, precision)
    height, quotient = (1 << precision, 1 << precision), exp_minus(1 / (2 * scale**2), precision)
    while True:
        yield height, quotient
        height, quotient = product(height, quotient, precision), product(quotient, step, precision)


def guard_bits(scale: Fraction) -> int:
    """Bits that hide the rounding of sums of `heights`: fewer than 2^9 scale terms, each off by fewer than k² * 4."""
    return 3 * int(scale).bit_length() + 40


@dataclass(frozen=True)
class DiscreteNormal(Law):
    """Mass ∝ e^{-k²/2 scale²} at k = 0 and `sides` times that at k >= 1.

    With two sides this is |X| for X discrete Gaussian; with one side it is what remains of X where X >= 0.
    """

    scale: Fraction
    sides: int

    def sweep(self, bits: int) -> Iterable[Bounds]:
        """The bounds for all k up to where P(M >= k) < 2^-bits, then those at infinity for ever."""
        sums, total = self._sums(bits)
        last = sums[-1][0], total[1]
        return (_quotient(part, total, bits) for part in chain(sums, repeat(last)))

    def bounds(self, k: int, bits: int) -> Bounds:
        sums, total = self._sums(bits)
        return _quotient(sums[k - 1] if k <= len(sums) else (sums[-1][0], total[1]), total, bits)

    def _sums(self, bits: int) -> tuple[list[Bounds], Bounds]:
        """The mass below 1, 2, 3, … and the whole, in the same units."""
        precision = bits + guard_bits(self.scale)
        low = high = 0
        sums: list[Bounds] = []
        for k, (height, quotient) in enumerate(heights(self.scale, precision)):
            if not height[0]:  # all that follows is below a geometric series
                rest = self.sides * ((height[1] << precision) // ((1 << precision) - quotient[1]) + 1)
                return sums, (low, high + rest)
            weight = self.sides if k else 1
            low, high = low + weight * height[0], high + weight * height[1]
            sums.append((low, high))
        raise AssertionError  # pragma: no cover - the heights have no end


def _quotient(part: Bounds, whole: Bounds, bits: int) -> Bounds:
    return (part[0] << bits) // whole[1], (part[1] << bits) // whole[0] + 1


@dataclass(frozen=True)
class RoundedNormal(Law):
    """M = |X| for X the whole number nearest to N(0, scale²): P(M < k) = P(|Z| < (k - 1/2) / scale) for k >= 1."""

    scale: Fraction

    def bounds(self, k: int, bits: int) -> Bounds:
        return half_normal(Fraction(2 * k - 1) / (2 * self.scale), bits)

    def sweep(self, bits: int) -> Iterable[Bounds]:
        """One value by its series, then cell by cell; every value by its series where cells are wide.

        With h = 1/scale, m = kh and Hermite polynomials He_n, the cell around k has the mass

            ∫_{m-h/2}^{m+h/2} √(2/π) e^{-x²/2} dx = √(2/π) e^{-m²/2} h Σ_j He_{2j}(m) h^{2j} / (4^j (2j+1)!).

        |He_n(m)| e^{-m²/2} <= 1.09 √(n!) bounds what is left out [Abramowitz and Stegun 1964, 22.14].
        """
        return super().sweep(bits) if self.scale < 64 else self._cells(bits)

    def _cells(self, bits: int) -> Iterator[Bounds]:
        guard = guard_bits(self.scale)
        precision = bits + guard
        one, width = 1 << precision, 1 / self.scale
        # What is left out of each cell stays under 2^-8 of the guard once all cells are added up.
        terms = next(j for j in range(1, 200) if _left_out(j, width, precision) < 1 << 32)
        left_out = _left_out(terms, width, precision)
        square = floored(width**2, precision)
        shares = [4**j * math.factorial(2 * j + 1) for j in range(terms)]
        factor = product(root_two_over_pi(precision), _exactly(width, precision), precision)
        below = self.bounds(1, precision)
        for k, (height, _) in enumerate(heights(self.scale, precision)):
            if k:
                # even = He_{2j}(m) h^{2j} and odd = He_{2j+1}(m) h^{2j} / m, by He_{n+1} = m He_n - n He_{n-1}; both
                # are below 1 in size for m <= 16, and their rounding adds fewer than 4 units a term to the sum
                slope = floored(k * k * width**4, precision)
                even, odd, total = one, 0, 0
                for j, share in enumerate(shares):
                    total += even // share
                    odd = even - (2 * j * square * odd >> precision)
                    even = (slope * odd >> precision) - ((2 * j + 1) * square * even >> precision)
                mean = total - 4 * terms, total + 4 * terms
                mass = product(product(mean, height, precision), factor, precision)
                below = below[0] + mass[0] - left_out, below[1] + mass[1] + left_out
            yield below[0] >> guard, (below[1] >> guard) + 1


def _left_out(terms: int, width: Fraction, precision: int) -> int:
    """Units of 2^-precision that all terms from this one on stay below: twice the bound of the first."""
    n = 2 * terms
    bound = 2 * (math.isqrt(math.factorial(n)) + 1) * width ** (n + 1) / (2**n * math.factorial(n + 1))
    return floored(bound, precision) + 1


def floored(x: Fraction, bits: int) -> int:
    """⌊2^bits x⌋."""
    return (x.numerator << bits) // x.denominator


def _exactly(x: Fraction, bits: int) -> Bounds:
    return floored(x, bits), floored(x, bits) + 1
