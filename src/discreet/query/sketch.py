"""`Sketch`: how many units have which size, with noise; what the shape of sizes is read from.

Sizes fall into the buckets of the candidates for bounds, four to an octave (`choices`). A unit is in one bucket, so
adding or removing it changes one count by 1: discrete Laplace noise of scale 1/e on every count is e-DP. Buckets in
which nobody is have noise, too; which buckets there are follows from what is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.noise import discrete_laplace
from discreet.query.choices import CANDIDATES, STEPS, number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["Sketch"]

_OCTAVES = 8
"""A share of the units is looked for in so many octaves below what few exceed, and where units are seen."""

_SEEN = 0.05

_UP = 1 + 1e-12


@dataclass(frozen=True)
class Sketch:
    """Noisy numbers of units of the first buckets, of which the first has those of size 0; bought with `epsilon`."""

    counts: tuple[int, ...]
    epsilon: float

    @classmethod
    def drawn(
        cls,
        buckets: NDArray[Any],
        units: NDArray[Any],
        *,
        epsilon: float,
        largest: float,
        generator: Generator | None = None,
    ) -> Sketch:
        """The sketch of these numbers of units by bucket; no unit is larger than `largest` by what is public."""
        length = max(2, number_of(min(largest, 2.0**200)) - CANDIDATES[0] + 1)
        exact = np.zeros(length, dtype=np.int64)
        places = np.clip(buckets.astype(np.int64) - CANDIDATES[0], 0, length - 1)
        np.add.at(exact, places, units.astype(np.int64))
        noisy = exact + discrete_laplace(_UP / epsilon, length, generator=generator)
        return cls(tuple(noisy.tolist()), epsilon)

    @property
    def least_seen(self) -> float:
        """What noise alone would exceed in some bucket in one of twenty sketches."""
        return math.log(max(2, len(self.counts)) / _SEEN) / self.epsilon

    @property
    def seen(self) -> NDArray[np.int64]:
        """The places of larger counts, without those of size 0: there are units."""
        return 1 + np.flatnonzero(np.array(self.counts[1:]) > self.least_seen)

    def within(self, share: float, *, below: int) -> int:
        """The candidate that about this share of the units does not exceed; few exceed that of the number `below`."""
        last, seen = min(below - CANDIDATES[0], len(self.counts) - 1), self.seen
        first = max(1, min(last - _OCTAVES * STEPS + 1, int(seen[0]) - STEPS if seen.size else last))
        up_to = np.cumsum(self.counts[first : last + 1])
        if not up_to.size:
            return CANDIDATES[0]
        return CANDIDATES[0] + first + int(np.argmax(up_to >= share * up_to[-1]))
