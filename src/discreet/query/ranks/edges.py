"""S of several groups at all edges of their cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.ranks.cells import Cells
    from discreet.query.ranks.statistic import Statistic

__all__ = ["Edges"]


@dataclass(frozen=True)
class Edges:
    """S at the lower edge of the first cell, which is edge 0, and at the upper edge of every cell; it increases.

    At an edge it is `slope` times the weight below it in the group, plus `start`. `up_to` is the weight below all edges
    of one group after the other, with that of all groups before: it never decreases, so that one search finds the
    edges of all groups. `rows` are groups by their numbers here, from 0.
    """

    up_to: NDArray[np.int64]
    slope: int
    start: NDArray[np.int64]

    @classmethod
    def of(cls, cells: Cells, begin: int, end: int, statistic: Statistic) -> Edges:
        """Those of the groups from `begin` up to `end`, which is not one of them."""
        start = [statistic.shift - statistic.b * total for total in cells.total[begin:end].tolist()]
        return cls(cells.up_to(begin, end), statistic.a + statistic.b, np.array(start, dtype=np.int64))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.start)

    @property
    def cells(self) -> int:
        """How many cells each group has; its last edge has this number."""
        return len(self.up_to) // self.groups - 1

    @cached_property
    def _before(self) -> NDArray[np.int64]:
        """Of each group the weight of all groups before it."""
        return self.up_to[:: self.cells + 1].copy()

    @cached_property
    def _offset(self) -> NDArray[np.int64]:
        """What S is more than `slope` times what `up_to` says; it may wrap around, and S does so back."""
        return self.start - self._before * self.slope

    def at(self, rows: Any, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """S of one group at edges, or of groups at one each."""
        width = self.cells + 1
        one = isinstance(rows, int)
        up_to = self.up_to[rows * width : (rows + 1) * width][edges] if one else self.up_to[rows * width + edges]
        found: NDArray[np.int64] = up_to * self.slope + self._offset[rows]
        return found

    def reaching(self, rows: NDArray[np.int64], least: NDArray[Any]) -> NDArray[np.int64]:
        """The first edge where S of a group is at least this, one more than the last if there is none.

        `least` are Python's integers, which may be larger than any S.
        """
        begin, before = rows * (self.cells + 1), self._before[rows]
        most = self.up_to[begin + self.cells] - before
        below = -((self.start[rows].astype(object) - least) // self.slope)  # rounded up
        wanted = before + np.minimum(np.maximum(below, 0), most).astype(np.int64)
        found = np.maximum(self.up_to.searchsorted(wanted) - begin, 0)
        return np.where((below > most).astype(np.bool_), self.cells + 1, found)
