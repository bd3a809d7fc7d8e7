r"""Choosing a number by its rank: the exponential mechanism over all steps between the bounds, exactly.

Rows are put on a coarse lattice and each gets `SPREAD_BITS` random bits below it, so that equal rows take different
places: without them many equal rows have no place whose rank is near the target, and the choice falls anywhere. The
bits are the row's own, so for every fixed choice of them neighbours stay neighbours, and the guarantee is that of the
mechanism that sees them; it gives less if they are hidden.

A place y with L(y) rows below it has the score -|r L(y) - t|. All places between two rows share their score, so a gap k
is chosen with probability proportional to (number of places in it) e^{a score_k}, and then one of its places uniformly:
with whole numbers of places this is exact, and it is the exponential mechanism over the places [Smith 2011].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.columns import column_of
from discreet.mechanisms.sums import Bounds
from discreet.noise import uniform_integers
from discreet.noise.weighted import weighted_choice

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["SPREAD_BITS", "Places", "choose_place"]

SPREAD_BITS = 20
_COARSE_BITS = 20


@dataclass(frozen=True)
class Places:
    """All places between two bounds: 2^20 to 2^21 coarse steps, each of 2^20 fine ones."""

    bounds: Bounds

    @classmethod
    def between(cls, lower: float, upper: float, *, granularity: float | None, missing: float | None) -> Places:
        """The places between these bounds; `granularity` is that of the coarse lattice, on which results lie."""
        checked = Bounds(lower, upper, granularity=granularity, missing=missing)
        if granularity is None:
            step = math.ldexp(1.0, max(math.frexp(checked.upper - checked.lower)[1] - _COARSE_BITS - 1, -990))
            checked = Bounds(lower, upper, granularity=step, missing=missing)
        return cls(checked)

    @property
    def number(self) -> int:
        """How many fine places there are."""
        low, high = self.bounds.ends
        return (high - low + 1) << SPREAD_BITS

    def spread(self, data: Any, generator: Generator | None) -> NDArray[np.int64]:
        """The rows in order, as fine places from 0 on, equal rows spread over their coarse step.

        Rows are sorted before they get their bits, so the result does not depend on their order.
        """
        placed = np.sort(self.place(data)) << SPREAD_BITS
        if placed.size:
            placed += uniform_integers(1 << SPREAD_BITS, placed.shape, generator=generator)
        return np.sort(placed)

    def place(self, data: Any) -> NDArray[np.int64]:
        """The rows as coarse places from 0 on; checks them, and draws nothing."""
        low, high = self.bounds.ends
        if high - low >= 1 << 41:
            raise InvalidArgument("granularity", self.bounds.granularity, "pass one of at most 2^41 steps")
        return self.bounds.place(column_of(data)) - low

    def restore(self, fine: int) -> float:
        """The number whose coarse step holds this fine place."""
        restored = self.bounds.lattice.restore((fine >> SPREAD_BITS) + self.bounds.ends[0])
        assert isinstance(restored, float)
        return restored


def choose_place(
    rows: NDArray[np.int64],
    *,
    first: int,
    last: int,
    target: Fraction,
    scale: Fraction,
    generator: Generator | None,
) -> int:
    """A place y from first to last with probability proportional to e^{-scale |L(y) - target|}.

    `rows` are sorted places from first to last, and L(y) is how many of them are below y.
    """
    ends = np.concatenate([[first - 1], rows, [last]])
    weights = np.diff(ends)  # places in (rows[k - 1], rows[k]] have k rows below them
    r = target.denominator
    scores = -np.abs(np.arange(len(weights), dtype=np.int64) * r - target.numerator)
    k = weighted_choice(scores, weights, scale=scale / r, generator=generator)
    return int(ends[k]) + 1 + uniform_integers(int(weights[k]), generator=generator)
