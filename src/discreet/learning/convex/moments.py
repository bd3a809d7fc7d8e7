r"""Noisy sums of products of rows: sum x x^T and sum s x, exact before the noise.

Rows lie on a lattice (`rows.py`): x is a vector of whole numbers with ||x||_2 <= reach <= 2^20. Products of 2^12 rows
add up to at most 2^52, which float64 holds exactly in any order of summation; blocks are then added as integers. The
upper triangle of a matrix, entries beside the diagonal times 181/128 <= sqrt(2), is a vector whose l2 norm is at most
the Frobenius norm, so that

    add-remove   ||x x^T|| = ||x||^2 <= reach^2,
    replace-one  ||x x^T - z z^T||^2 = ||x||^4 + ||z||^4 - 2 (x.z)^2 <= 2 reach^4,

and in l1, without that factor, |x_i x_j| over i <= j adds up to (||x||_1^2 + ||x||_2^2) / 2 <= (d + 1) / 2 reach^2,
twice that for replace-one. Slopes of |s| <= bound are cut to 2^-16 parts of it (`Rows.pull`):
||s x||_2 <= 2^16 reach, and ||s x||_1 <= sqrt(d) times that. Noise is Gaussian, or Laplace where the goal is pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import count
from discreet.errors import InvalidArgument
from discreet.learning.rows import PARTS, RowLattice, Rows
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.goal import Goal
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["SecondMoment", "SlopeSum", "noise_for", "second_moment"]

_ONE, _BESIDE = 128, 181
"""Diagonal and other entries in 1/128: 181/128 is a little below sqrt(2)."""
_BLOCK = 1 << 12
_FULL = 1 << 10
"""Blocks of 2^12 rows are exact in floats, 2^10 blocks of them in int64."""
_MOST_FEATURES = 4000


def second_moment(rows: Rows) -> NDArray[Any]:
    """sum x x^T in squared steps of the lattice: Python integers, exact for any number of rows."""
    total = np.zeros((rows.features, rows.features), dtype=object)
    for large in range(0, len(rows), _BLOCK * _FULL):
        part = np.zeros((rows.features, rows.features), dtype=np.int64)
        for start in range(large, min(len(rows), large + _BLOCK * _FULL), _BLOCK):
            block = rows.steps[start : start + _BLOCK]
            part += (block.T @ block).astype(np.int64)
        total = total + part.astype(object)
    return total


def noise_for(goal: Goal, *, l1: Fraction, l2: Fraction, dimension: int) -> Gaussian | Laplace:
    """Noise for a vector of these sensitivities: Gaussian of the goal's mu, or Laplace where the goal is pure."""
    if goal.is_pure:
        assert goal.epsilon is not None
        return Laplace(epsilon=goal.epsilon, sensitivity=_up(l1), dimension=dimension, adjacency=goal.adjacency)
    return Gaussian(
        noise_multiplier=math.nextafter(1 / goal.gaussian, math.inf),
        sensitivity=_up(l2),
        dimension=dimension,
        adjacency=goal.adjacency,
    )


def _up(exact: Fraction) -> float:
    value = float(exact)
    return value if Fraction(value) >= exact else math.nextafter(value, math.inf)


@dataclass(frozen=True)
class SecondMoment:
    """The release of sum x x^T of rows on a lattice, at a goal of its own; public until `release`."""

    lattice: RowLattice
    features: int
    goal: Goal

    def __post_init__(self) -> None:
        if count("features", self.features, least=1) > _MOST_FEATURES:
            raise InvalidArgument(
                "features", self.features, f"a matrix of products is for at most {_MOST_FEATURES} columns"
            )

    @cached_property
    def mechanism(self) -> Gaussian | Laplace:
        """The noise on the upper triangle, in squared steps; for Gaussian noise in 1/128 of them."""
        square, replace = Fraction(self.lattice.reach) ** 2, self.goal.adjacency == "replace-one"
        return noise_for(
            self.goal,
            l1=square * Fraction(self.features + 1, 2) * (2 if replace else 1),
            l2=square * _ONE * (root_above(2) if replace else 1),
            dimension=self.features * (self.features + 1) // 2,
        )

    @property
    def cost(self) -> Cost:
        """What it reveals about one record."""
        return self.mechanism.cost

    @property
    def _factors(self) -> tuple[int, int]:
        return (1, 1) if self.goal.is_pure else (_ONE, _BESIDE)

    @property
    def deviations(self) -> tuple[float, float]:
        """The standard deviations of the noise on and beside the diagonal, in the units of the rows."""
        size = math.sqrt(self.mechanism.variance) * self.lattice.step**2
        one, beside = self._factors
        return size / one, size / beside

    @property
    def width(self) -> float:
        """About the largest eigenvalue of the noise: twice the root of the variances of a row of it, added up."""
        one, beside = self.deviations
        return 2 * math.sqrt(one**2 + (self.features - 1) * beside**2)

    def exact(self, rows: Rows) -> NDArray[Any]:
        """The vector that the noise is added to: the scaled upper triangle, row by row, as Python integers."""
        if rows.lattice != self.lattice or rows.features != self.features:
            raise InvalidArgument("rows", rows.lattice, f"this release was planned for {self.lattice}")
        one, beside = self._factors
        total = second_moment(rows) * beside
        above = np.triu_indices(self.features)
        diagonal = np.diag_indices(self.features)
        total[diagonal] = total[diagonal] // beside * one
        return np.asarray(total[above], dtype=object)

    def release(self, rows: Rows, *, generator: Generator | None = None) -> Reals:
        """The noisy matrix, symmetric, in the units of the rows."""
        noisy = np.asarray(self.mechanism.release(self.exact(rows), generator=generator), dtype=np.float64)
        one, beside = self._factors
        matrix = np.zeros((self.features, self.features))
        matrix[np.triu_indices(self.features)] = noisy * (self.lattice.step**2 / beside)
        matrix[np.diag_indices(self.features)] *= beside / one
        return matrix + np.triu(matrix, 1).T


@dataclass(frozen=True)
class SlopeSum:
    """The release of sum s x over rows x with numbers |s| <= bound, at a goal of its own; public until `release`."""

    lattice: RowLattice
    features: int
    bound: float
    goal: Goal

    @cached_property
    def mechanism(self) -> Gaussian | Laplace:
        """The noise, in steps of `Rows.pull`."""
        changes = 2 if self.goal.adjacency == "replace-one" else 1
        l2 = Fraction(changes * PARTS * self.lattice.reach)
        return noise_for(self.goal, l1=l2 * root_above(self.features), l2=l2, dimension=self.features)

    @property
    def cost(self) -> Cost:
        """What it reveals about one record."""
        return self.mechanism.cost

    @property
    def step(self) -> float:
        """What one step of the sum is worth."""
        return self.lattice.step * self.bound / PARTS

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on every entry."""
        return math.sqrt(self.mechanism.variance) * self.step

    def release(self, rows: Rows, numbers: Reals, *, generator: Generator | None = None) -> Reals:
        """The noisy sum."""
        exact = rows.pull(numbers, bound=self.bound)
        return np.asarray(self.mechanism.release(exact, generator=generator), dtype=np.float64) * self.step
