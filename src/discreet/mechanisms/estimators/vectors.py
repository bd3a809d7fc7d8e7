r"""Rows of numbers, clipped to a ball and put on a lattice: exact sums of the rows and of their products.

A row x becomes x - center, NaN counts as the center's coordinate, coordinates are clamped to 2^20 radii, and the row is
shortened to the radius if it is longer. Then every coordinate is cut towards zero to whole steps of the lattice.
Whether the result is within the radius is checked in whole numbers; a row that is not would become zero. So every row,
by itself, is a vector z of whole numbers with ||z||_2 <= r, and

    adding one changes sum z by at most r and sum z z^T by at most r^2 (Frobenius norm),
    replacing one, by at most 2 r and sqrt(2) r^2:   ||z z^T - w w^T||^2 = ||z||^4 + ||w||^4 - 2 (z.w)^2.

The upper triangle of z z^T is released with its off-diagonal entries times 181/128 <= sqrt(2), whose l2 norm is at most
the Frobenius norm: the noise on an off-diagonal entry is smaller by that factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import positive
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.counts import rows_of
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OFF_DIAGONAL", "Ball", "table_of", "unfolded"]

OFF_DIAGONAL = Fraction(181, 128)
_BITS = 20
_CHUNK = 1 << 18


def table_of(data: Any, dimension: int) -> NDArray[np.float64]:
    """Rows of this many numbers; a column for one."""
    rows = rows_of(data)
    if rows.size == 0:
        return np.zeros((0, dimension))
    if rows.ndim == 1 and dimension == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != dimension or rows.dtype.kind not in "iuf" or rows.dtype.itemsize > 8:
        raise InvalidArgument("data", f"{rows.dtype} of shape {rows.shape}", f"pass numbers in {dimension} columns")
    return rows.astype(np.float64)


@dataclass(frozen=True)
class Ball:
    """A ball around a center: 2^20 steps or a little less to its radius."""

    center: tuple[float, ...]
    radius: float

    @property
    def exponent(self) -> int:
        """The step is 2^exponent."""
        return math.frexp(positive("radius", self.radius))[1] - _BITS

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return Fraction(2) ** self.exponent

    @property
    def reach(self) -> int:
        """The radius in whole steps."""
        return math.floor(Fraction(self.radius) / self.step)

    def place(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """z of every row."""
        limit = self.radius * 2.0**20
        with np.errstate(over="ignore", invalid="ignore"):
            moved = rows - np.array(self.center)
        moved = np.clip(np.where(np.isnan(moved), 0.0, moved), -limit, limit) / self.radius
        norms = np.sqrt((moved**2).sum(axis=1, keepdims=True))
        unit = moved / np.maximum(1.0, norms * (1 + 1e-12))
        placed: NDArray[np.int64] = np.trunc(unit * self.reach).astype(np.int64)
        placed[(placed**2).sum(axis=1) > self.reach**2] = 0
        return placed

    def sums(self, placed: NDArray[np.int64]) -> NDArray[Any]:
        """The exact sum of the rows, as Fractions."""
        return np.array([int(total) * self.step for total in placed.sum(axis=0)], dtype=object)

    def products(self, placed: NDArray[np.int64]) -> NDArray[Any]:
        """The exact upper triangle of sum z z^T, row by row, off-diagonal entries times 181/128, as Fractions."""
        dimension = placed.shape[1]
        total = np.zeros((dimension, dimension), dtype=object)
        for start in range(0, len(placed), _CHUNK):
            chunk = placed[start : start + _CHUNK]
            total = total + (chunk.T @ chunk).astype(object)
        entries = [
            total[i, j] * self.step**2 * (1 if i == j else OFF_DIAGONAL)
            for i in range(dimension)
            for j in range(i, dimension)
        ]
        return np.array(entries, dtype=object)

    def sum_sensitivity(self, *, replace: bool) -> Fraction:
        """How far one person moves the sum, in l2."""
        return self.reach * self.step * (2 if replace else 1)

    def product_sensitivity(self, *, replace: bool) -> Fraction:
        """How far one person moves the products, in l2."""
        return self.reach**2 * self.step**2 * (root_above(2) if replace else 1)


def unfolded(entries: Any, dimension: int) -> NDArray[np.float64]:
    """The symmetric matrix whose scaled upper triangle this is."""
    matrix = np.zeros((dimension, dimension))
    above = np.triu_indices(dimension)
    matrix[above] = entries
    matrix[np.triu_indices(dimension, 1)] /= float(OFF_DIAGONAL)
    return matrix + np.triu(matrix, 1).T
