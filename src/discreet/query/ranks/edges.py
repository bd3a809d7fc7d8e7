"""S of one group at all edges of its cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.query.ranks.cells import Cells
    from discreet.query.ranks.statistic import Statistic

__all__ = ["Edges"]


@dataclass(frozen=True)
class Edges:
    """S at the lower edge of the first cell, which is edge 0, and at the upper edge of every cell; it increases.

    At an edge it is `slope` times the weight below it, plus `start`; `up_to` is the weight below all edges.
    """

    up_to: NDArray[np.int64]
    slope: int
    start: int

    @classmethod
    def of(cls, cells: Cells, g: int, statistic: Statistic) -> Edges:
        """Those of group g."""
        start = statistic.shift - statistic.b * int(cells.total[g])
        return cls(cells.up_to(g), statistic.a + statistic.b, start)

    @property
    def cells(self) -> int:
        """How many cells there are; the last edge has this number."""
        return len(self.up_to) - 1

    def at(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """S at these edges."""
        return self.up_to[edges] * self.slope + self.start

    def at_one(self, edge: int) -> int:
        """S at one of them."""
        return int(self.up_to[edge]) * self.slope + self.start

    def reaching(self, least: int) -> int:
        """The first edge where S is at least this, one more than the last if there is none."""
        below = -((self.start - least) // self.slope)  # rounded up
        if below > int(self.up_to[-1]):
            return self.cells + 1
        return int(self.up_to.searchsorted(max(below, 0)))
