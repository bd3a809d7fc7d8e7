"""The weights of groups and cells: all that a quantile is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.ranks.scale import Scale

__all__ = ["Cells"]


class Cells:
    """The weights of groups and cells: `group`, `cell` and `weight` are arrays of equal length."""

    def __init__(
        self, groups: int, group: NDArray[Any], cell: NDArray[Any], weight: NDArray[Any], scale: Scale
    ) -> None:
        first = scale.cells[0]
        key = group.astype(np.int64) * (scale.span + 1) + (cell.astype(np.int64) - first)
        order = np.argsort(key, kind="stable")
        self._fill(groups, key[order], weight.astype(np.int64)[order], scale)

    def _fill(self, groups: int, key: NDArray[np.int64], weight: NDArray[np.int64], scale: Scale) -> None:
        """From weights in order of their keys: a group has so many keys as cells, and one more."""
        self.groups, self.scale = groups, scale
        self.first, self.last = scale.cells
        self._span = scale.span + 1
        self._key = key
        self._sums = np.concatenate([[0], np.cumsum(weight)])
        starts = np.arange(groups, dtype=np.int64) * self._span
        self._start = self._sums[np.searchsorted(self._key, starts)]
        self.total = self._sums[np.searchsorted(self._key, starts + self._span)] - self._start
        self._offset = starts

    @classmethod
    def tallied(cls, rows: NDArray[np.int64], weight: int, scale: Scale) -> Cells:
        """From the number of rows in every cell of every group, group by group, each row of the same weight."""
        groups = len(rows) // scale.span
        used = np.flatnonzero(rows)
        within = np.diff(np.searchsorted(used, np.arange(groups + 1) * scale.span))
        cells = cls.__new__(cls)
        cells._fill(groups, used + np.repeat(np.arange(groups), within), rows[used] * weight, scale)
        return cells

    def only(self, where: NDArray[np.bool_]) -> Cells:
        """The groups where that is so, in their order."""
        kept = np.flatnonzero(where)
        starts = np.searchsorted(self._key, self._offset[kept])
        ends = np.searchsorted(self._key, self._offset[kept] + self._span)
        moved = (np.arange(kept.size) - kept) * self._span
        used = np.concatenate([np.arange(0), *(np.arange(a, b) for a, b in zip(starts, ends, strict=True))])
        cells = Cells.__new__(Cells)
        cells._fill(kept.size, self._key[used] + np.repeat(moved, ends - starts), np.diff(self._sums)[used], self.scale)
        return cells

    def below(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each group the weight in cells up to and including this one."""
        found: NDArray[np.int64] = (
            self._sums[np.searchsorted(self._key, self._offset + (place - self.first), side="right")] - self._start
        )
        return found

    def of_group(self, g: int) -> NDArray[np.int64]:
        """For every cell the weight of one group up to and including it."""
        low, high = np.searchsorted(self._key, [self._offset[g], self._offset[g] + self._span])
        weights = np.zeros(self._span - 1, dtype=np.int64)
        np.add.at(weights, self._key[low:high] - self._offset[g], np.diff(self._sums[low : high + 1]))
        return weights.cumsum()
