r"""Noisy counts, sums and sums of squares of rows in groups: what k-means, naive Bayes and scaling learn from.

Rows are whole numbers z, computed from each record by itself. A record is in one group, so whatever the number of
groups it adds 1 to one count, z to one sum, with ||z||_2 <= row_l2 and ||z||_1 <= row_l1, and, for rows in [-B, B]^d,
the vector of 2 z_j^2 - B^2 in [-B^2, B^2] to one sum of squares; shifted like that they need half the noise, and the
noisy count shifts them back. Replacing a record is removing and adding one: at most twice that, and sqrt(2) for counts
in l2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import count
from discreet.learning.convex.moments import noise_for
from discreet.learning.report import Release
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.goal import Goal
    from discreet.mechanisms.gaussian import Gaussian
    from discreet.mechanisms.laplace import Laplace
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["BOX", "GroupTally", "Tally", "box_rows"]

BOX = 1 << 16
"""B: rows in [-1, 1]^d are put on steps of 2^-16."""
_BLOCK = 1 << 20
"""Numbers below 2^41 of that many rows add up within int64."""


def box_rows(scaled: Reals) -> NDArray[np.int64]:
    """Rows clamped to [-1, 1] in every column, in whole steps of 1/B."""
    return np.rint(np.clip(scaled, -1.0, 1.0) * BOX).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Tally:
    """What was released of every group, with noise: numbers of records, sums in steps, sums of squares in steps^2."""

    counts: Reals
    sums: Reals
    squares: Reals | None


@dataclass(frozen=True)
class GroupTally:
    """The release of counts and sums of rows in `groups` groups, at a goal; `shares` for counts, sums and squares.

    Without a share for counts they are taken to be public and are not released: for one group of known size alone.
    """

    groups: int
    features: int
    row_l1: Fraction
    row_l2: Fraction
    goal: Goal
    shares: tuple[float, float, float]

    def __post_init__(self) -> None:
        count("groups", self.groups, least=1)
        count("features", self.features, least=1)

    @classmethod
    def of_box(cls, groups: int, features: int, goal: Goal, shares: tuple[float, float, float]) -> GroupTally:
        """For rows made by `box_rows`."""
        return cls(groups, features, Fraction(features * BOX), root_above(features) * BOX, goal, shares)

    @cached_property
    def _parts(self) -> dict[str, Goal]:
        given = {name: s for name, s in zip(("counts", "sums", "squares"), self.shares, strict=True) if s}
        total = math.fsum(given.values())
        return dict(zip(given, self.goal.divided(*(s / total for s in given.values())), strict=True))

    @cached_property
    def mechanisms(self) -> dict[str, Gaussian | Laplace]:
        """The noise on counts, sums and shifted squares, each in its steps."""
        changes, cells = (2 if self.goal.adjacency == "replace-one" else 1), self.groups * self.features
        square = Fraction(BOX) ** 2
        bounds = {
            "counts": (Fraction(changes), root_above(changes), self.groups),
            "sums": (changes * self.row_l1, changes * self.row_l2, cells),
            "squares": (changes * self.features * square, changes * root_above(self.features) * square, cells),
        }
        return {
            name: noise_for(goal, l1=bounds[name][0], l2=bounds[name][1], dimension=bounds[name][2])
            for name, goal in self._parts.items()
        }

    @property
    def releases(self) -> tuple[Release, ...]:
        """What a tally reveals."""
        kind = "Laplace" if self.goal.is_pure else "Gaussian"
        where = f" of {self.groups} groups" if self.groups > 1 else ""
        said = {
            "counts": f"numbers of records{where}" if self.groups > 1 else "the number of records",
            "sums": f"sums of {self.features} columns{where}",
            "squares": f"sums of squares of {self.features} columns{where}",
        }
        return tuple(
            Release(said[name], mechanism.cost, f"the {kind} mechanism on exact sums; a record is in one group")
            for name, mechanism in self.mechanisms.items()
        )

    @property
    def deviations(self) -> dict[str, float]:
        """Standard deviations of the noise: on counts, on sums in steps, and on sums of squares in steps^2."""
        sizes = {name: math.sqrt(mechanism.variance) for name, mechanism in self.mechanisms.items()}
        if "squares" in sizes:
            sizes["squares"] = math.hypot(sizes["squares"], sizes.get("counts", 0.0) * float(BOX) ** 2) / 2
        return sizes

    def exact(self, rows: NDArray[np.int64], places: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """Counts, sums and shifted squares by group, as Python integers; `places` are the groups of the rows."""
        made = {"counts": np.bincount(places, minlength=self.groups).astype(object)}
        made["sums"] = self._summed(rows, places)
        if "squares" in self.mechanisms:
            made["squares"] = self._summed(2 * rows**2 - BOX**2, places)
        return {name: made[name] for name in self.mechanisms}

    def _summed(self, values: NDArray[np.int64], places: NDArray[np.intp]) -> NDArray[Any]:
        total = np.zeros((self.groups, self.features), dtype=object)
        for start in range(0, len(values), _BLOCK):
            block, where = values[start : start + _BLOCK], places[start : start + _BLOCK]
            for group in range(self.groups):
                total[group] += block[where == group].sum(axis=0, dtype=np.int64).astype(object)
        return total

    def release(
        self,
        rows: NDArray[np.int64],
        places: NDArray[np.intp],
        *,
        records: int | None = None,
        generator: Generator | None = None,
    ) -> Tally:
        """The noisy tally; `records` is the public number of records, where counts are not released."""
        exact = self.exact(rows, places)
        noisy = {
            name: np.asarray(mechanism.release(exact[name], generator=generator), dtype=np.float64)
            for name, mechanism in self.mechanisms.items()
        }
        counts = noisy.get("counts")
        if counts is None:
            counts = np.array([float(count("records", records, least=1))])
        squares = noisy.get("squares")
        if squares is not None:
            squares = (squares + counts[:, None] * float(BOX) ** 2) / 2
        return Tally(counts, noisy["sums"], squares)
