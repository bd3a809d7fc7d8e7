r"""The largest and the smallest row, up to a few rows: a place with a small target number of rows beyond it.

One extreme row decides the maximum alone, so no private answer can be close to it for all data. What is chosen is a
place y with about r rows at or above it: score -|G(y) - r|, which one row more or less, or another one, changes by at
most 1, whatever the number of rows. r is so large that y is above all rows with probability at most `beyond`, if there
are at least r rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.accounting.cost import Cost
from discreet.arguments import unit_fraction
from discreet.mechanisms.estimators.estimate import Estimate
from discreet.mechanisms.estimators.quantiles import COLLISIONS, RankEstimator
from discreet.mechanisms.estimators.ranks import choose_place
from discreet.mechanisms.selection import level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.noise import Generator

__all__ = ["Maximum", "Minimum"]


@dataclass(frozen=True, repr=False)
class Maximum(RankEstimator):
    """A number that few rows exceed: below the maximum, and above it with probability at most `beyond`.

    It is biased on purpose: about `rank` rows are above it, and at most `rows_beyond(confidence)`. All of
    this needs at least `rank` rows: with fewer there is nothing to tell, and the answer is near the lower bound. The
    interval reaches from the answer to the upper bound, for a single row may be anywhere in there; at confidences above
    1 - beyond it is all of the range.

    >>> latest = Maximum(0, 1000, epsilon=1.0)
    >>> estimate = latest.release(list(range(0, 500)) * 20)
    >>> 450 < float(estimate) < 500, latest.rank
    (True, 83)
    """

    kind: ClassVar[str] = "maximum"
    leaves_out: ClassVar[str] = "what clamping and rounding change; the sampling error, if the rows are a sample"
    beyond: float = field(default=0.01, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beyond", unit_fraction("beyond", self.beyond))

    @property
    def _scale(self) -> Fraction:
        return level(self.epsilon) / 2

    @property
    def rank(self) -> int:
        """How many rows are aimed to be at or above the answer: ln(places / beyond) / a + 16, rounded up."""
        return math.ceil(math.log(self._places.number / self.beyond) / float(self._scale)) + COLLISIONS

    @property
    def cost(self) -> Cost:
        """One exponential mechanism."""
        return Cost.exponential_mechanism(self.epsilon, adjacency=self.adjacency)

    def rows_beyond(self, confidence: float = 0.95) -> float:
        """With this probability at most so many rows are at or above the answer; 16 of them for rows at one place."""
        miss = 1 - unit_fraction("confidence", confidence)
        return self.rank + math.log(self._places.number / miss) / float(self._scale) + COLLISIONS

    def release(self, value: Any, *, generator: Generator | None = None) -> Estimate:
        """A number that few rows exceed; `generator` is for tests alone."""
        self._places.place(value)
        rows = self._places.spread(value, generator)
        return Estimate(self, {"place": self._chosen(rows, len(rows) - self.rank, generator)})

    def _chosen(self, rows: Any, target: int, generator: Generator | None) -> float:
        last = self._places.number - 1
        chosen = choose_place(rows, first=0, last=last, target=Fraction(target), scale=self._scale, generator=generator)
        return self._places.restore(chosen)

    def value_of(self, statistics: Mapping[str, Any]) -> float:
        return float(statistics["place"])

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        low = self.value_of(statistics) - float(self.granularity or 0.0)
        return (max(self.lower, low) if confidence <= 1 - self.beyond else self.lower), self.upper


@dataclass(frozen=True, repr=False)
class Minimum(Maximum):
    """A number that few rows are below: the mirror image of `Maximum`.

    >>> 0 <= float(Minimum(-100, 1000, epsilon=1.0).release(list(range(0, 500)) * 20)) < 50
    True
    """

    kind: ClassVar[str] = "minimum"

    def release(self, value: Any, *, generator: Generator | None = None) -> Estimate:
        """A number that few rows are below; `generator` is for tests alone."""
        self._places.place(value)
        rows = self._places.spread(value, generator)
        return Estimate(self, {"place": self._chosen(rows, self.rank, generator)})

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        high = self.value_of(statistics) + float(self.granularity or 0.0)
        return self.lower, (min(self.upper, high) if confidence <= 1 - self.beyond else self.upper)
