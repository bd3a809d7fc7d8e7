"""The weights of groups and cells: all that a quantile is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.query.moments import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.ranks.scale import Scale

__all__ = ["Cells", "TalliedCells"]


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

    def up_to(self, begin: int, end: int) -> NDArray[np.int64]:
        """The weight below each edge of the groups from `begin` up to `end`, and that of those groups before it.

        Edges are the lower one of the first cell and the upper ones of all. Not to be written to.
        """
        first = int(self._offset[begin])
        low, high = np.searchsorted(self._key, [first, first + (end - begin) * self._span])
        weights = np.zeros((end - begin) * self._span, dtype=np.int64)
        np.add.at(weights, self._key[low:high] - first + 1, np.diff(self._sums[low : high + 1]))
        return weights.cumsum()


class TalliedCells(Cells):
    """The same from the number of rows in every cell of every group, each row of the same weight.

    Group after group, they begin with a 0 in front of the first cell. The array is taken over: it will hold the weights
    up to and including each cell, with those of all groups before.
    """

    def __init__(self, rows: NDArray[np.int64], weight: int, scale: Scale) -> None:
        if weight != 1:
            rows *= weight
        self._take(np.cumsum(rows, out=rows).reshape(-1, scale.span + 1), scale)

    def _take(self, up_to: NDArray[np.int64], scale: Scale) -> None:
        self.groups, self.scale = len(up_to), scale
        self.first, self.last = scale.cells
        self._up_to = up_to
        self.total = up_to[:, -1] - up_to[:, 0]

    @staticmethod
    def place(group: str, cell: str, scale: Scale) -> str:
        """SQL of where a row is counted, a BIGINT, by the place of its group and the number of its cell."""
        return f"CAST({group} * {scale.span + 1} + {cell} - {number(scale.cells[0] - 1)} AS BIGINT)"

    def only(self, where: NDArray[np.bool_]) -> Cells:
        """The groups where that is so, in their order."""
        cells = TalliedCells.__new__(TalliedCells)
        cells._take(self._up_to[where], self.scale)
        return cells

    def below(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each group the weight in cells up to and including this one."""
        found: NDArray[np.int64] = self._up_to[np.arange(self.groups), place - self.first + 1] - self._up_to[:, 0]
        return found

    def up_to(self, begin: int, end: int) -> NDArray[np.int64]:
        """The weight below each edge of these groups, and that of groups before; not to be written to."""
        found: NDArray[np.int64] = self._up_to[begin:end].reshape(-1)
        return found
