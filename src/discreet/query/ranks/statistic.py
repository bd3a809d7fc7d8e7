"""S, of which a quantile is the place where it changes sign, as an integer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.query.plan import Aggregate
    from discreet.query.ranks.cells import Cells

__all__ = ["VARIED", "Statistic"]

VARIED = 0.045  # variance of the rows' weights, where nine units in ten weigh fully, or a few more
_LARGEST = 2.0**60  # of the numbers that are no counts, what fits into 64 bits beside these


@dataclass(frozen=True)
class Statistic:
    """S as an integer: a * below - b * above + shift, increasing in t."""

    a: int
    b: int
    shift: int

    @classmethod
    def of(cls, aggregate: Aggregate, parts: int, reach: float) -> Statistic:
        if aggregate.function == "max":
            return cls(0, parts, round(min(reach * parts, _LARGEST)))
        if aggregate.function == "min":
            return cls(parts, 0, -round(min(reach * parts, _LARGEST)))
        assert aggregate.probability is not None
        part = min(max(round(aggregate.probability * parts), 1), parts - 1)
        return cls(parts - part, part, 0)

    @property
    def largest(self) -> int:
        return max(self.a, self.b)

    def of_cells(self, cells: Cells, place: NDArray[np.int64]) -> NDArray[np.int64]:
        below = cells.below(place)
        value: NDArray[np.int64] = self.a * below - self.b * (cells.total - below) + self.shift
        return value
