r"""Rows of bounded norm on a lattice, whose margins and sums are exact in any order of summation.

A row is shortened to the radius if it is longer, and cut towards zero to whole steps, 2^20 of them or a little fewer to
the radius; that its norm is at most `reach` steps is then checked in whole numbers. Floats hold whole numbers up to
2^53 exactly, so that a matrix product in float64 is exact, whatever the order in which the library adds, as long as no
partial sum passes 2^53. Everything here is arranged so that none does:

    margins   weights are public, and are put on a lattice with ||w|| <= 2^32 steps:  |x . w| <= ||x|| ||w|| <= 2^52;
    sums      slopes are cut towards zero to whole 2^-16 parts of their bound:        |sum over 2^16 rows| <= 2^52,

and blocks of 2^16 rows are added as 64-bit integers. So a margin depends on its own row alone, and one row changes
`pull` by a vector of whole numbers of l2 norm at most 2^16 reach: the sensitivity on the computer is the one on paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arguments import positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["PARTS", "RowLattice", "Rows", "products", "squared_lengths"]

PARTS = 1 << 16
"""A slope is a whole number of 2^-16 parts of its bound."""
_BITS = 20
_BLOCK = 1 << 16
_WEIGHT_BITS = 32


_FAR_BITS = 21
_FAR = 1 << _FAR_BITS
_WIDE = 1 << 11  # squares of that many numbers below 2^21 add up to at most 2^53


@dataclass(frozen=True)
class RowLattice:
    """Where rows of l2 norm at most `radius` are put; public."""

    radius: float

    def __post_init__(self) -> None:
        if not 1e-100 <= positive("row_norm", self.radius) <= 1e100:
            raise InvalidArgument("row_norm", self.radius, "pass a number between 1e-100 and 1e100")

    @property
    def exponent(self) -> int:
        """The step is 2^exponent."""
        return math.frexp(self.radius)[1] - _BITS

    @property
    def step(self) -> float:
        """The step."""
        return math.ldexp(1.0, self.exponent)

    @property
    def reach(self) -> int:
        """The radius in whole steps: no row is longer."""
        return math.floor(Fraction(self.radius) / Fraction(2) ** self.exponent)

    def place(self, table: Reals) -> Rows:
        """The rows of a table of finite numbers."""
        # entries beyond 2^1000 steps count as that: further away the scaled row would overflow
        limit = math.ldexp(1.0, min(1000 + self.exponent, 1023))
        scaled = np.array(table, dtype=np.float64, order="C")  # one copy, changed in place: this is most of the work
        np.clip(scaled, -limit, limit, out=scaled)
        np.ldexp(scaled, -self.exponent, out=scaled)
        # rows that are far too long are halved, exactly, until their squares can be added without rounding
        largest = np.maximum(scaled.max(axis=1, initial=0.0), -scaled.min(axis=1, initial=0.0))
        far = largest >= _FAR
        if far.any():
            scaled[far] = np.ldexp(scaled[far], (_FAR_BITS - np.frexp(largest[far])[1])[:, None])
        np.trunc(scaled, out=scaled)
        for margin in (0.0, 1e-6):  # after the second pass nothing is too long
            squares = squared_lengths(scaled)
            long = squares > self.reach**2
            if not long.any():
                break
            factor = self.reach * (1 - margin) / np.sqrt(squares[long].astype(np.float64))
            scaled[long] = np.trunc(scaled[long] * factor[:, None])
        return Rows(self, scaled)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on their lattice: `steps` are whole numbers in a float64 table of shape (n, features)."""

    lattice: RowLattice
    steps: Reals

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def features(self) -> int:
        """The number of columns."""
        return int(self.steps.shape[1])

    def values(self) -> Reals:
        """The rows themselves."""
        return np.ldexp(self.steps, self.lattice.exponent)

    def margins(self, weights: Reals) -> Reals:
        """x . w of every row, exactly, for the weights put on a lattice of relative fineness 2^-31."""
        size = float(np.sqrt(np.sum(np.square(weights), axis=0)).max(initial=0.0))
        if size == 0:
            return np.zeros((len(self), *np.shape(weights)[1:]))
        exponent = math.frexp(size)[1] - _WEIGHT_BITS + 1
        whole = np.trunc(np.ldexp(weights, -exponent))
        return np.ldexp(self.steps @ whole, exponent + self.lattice.exponent)

    def pull(self, slopes: Reals, *, bound: float) -> NDArray[np.int64]:
        """sum of slope_i x_i in steps of lattice.step * bound / PARTS: shape (features,) or (features, outputs), exact.

        A slope of norm above the bound is shortened to it, which for a loss that keeps its word is rounding alone.
        """
        parts = np.trunc(slopes * (PARTS / bound))
        squares = parts**2 if parts.ndim == 1 else np.einsum("ij,ij->i", parts, parts)
        over = squares > PARTS**2
        if over.any():
            shrink = PARTS / np.sqrt(squares[over]) * (1 - 1e-9)
            parts[over] = np.trunc(parts[over] * (shrink if parts.ndim == 1 else shrink[:, None]))
        total = np.zeros((self.features, *parts.shape[1:]), dtype=np.int64)
        for start in range(0, len(self), _BLOCK):
            block = slice(start, start + _BLOCK)
            total += (self.steps[block].T @ parts[block]).astype(np.int64)
        return total


def products(table: Reals, weights: Reals) -> Reals:
    """x . w of every row of floats, added column by column: a function of the row alone.

    A library's product may round a row differently beside other rows, and a noisy sum of scores must not see that.
    """
    total = np.zeros((len(table), *weights.shape[1:]))
    with np.errstate(over="ignore", invalid="ignore"):
        for column, weight in zip(table.T, weights, strict=True):
            total += column * weight if weights.ndim == 1 else column[:, None] * weight
    return total


def squared_lengths(whole: Reals) -> NDArray[np.int64]:
    """The squared length of every row of whole numbers below 2^21, exactly."""
    total = np.zeros(len(whole), dtype=np.int64)
    for start in range(0, whole.shape[1], _WIDE):
        part = whole[:, start : start + _WIDE]
        total += np.einsum("ij,ij->i", part, part).astype(np.int64)
    return total
