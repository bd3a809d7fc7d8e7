r"""The public grid of cells that values are put into, fine near 0 and coarser in proportion beyond.

Cell i of sign s holds |x| = q (2^{i/R} - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.query.moments import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Scale"]

_PER_OCTAVE = 512


@dataclass(frozen=True)
class Scale:
    """The public grid of cells for one argument: even for dates, times and bounded integers, else as above."""

    bounds: tuple[float, float] | None
    kind: str

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value; dates and times without bounds are taken to be from 1900 to 2100."""
        if self.bounds is not None:
            return self.bounds
        if self.kind in ("date", "timestamp"):
            day = 1 if self.kind == "date" else 86_400_000_000
            return -25_567.0 * day, 47_482.0 * day
        return -(2.0**40), 2.0**40

    @property
    def open(self) -> bool:
        """Whether there may be values beyond the ends: numbers without declared bounds."""
        return self.bounds is None and self.kind not in ("date", "timestamp")

    @property
    def _even(self) -> float | None:
        """The width of equal cells: whole numbers, as long as there are not too many."""
        if self.kind == "float" or (self.kind == "integer" and self.bounds is None):
            return None
        low, high = self.ends
        return max(1.0, math.ceil((high - low) / (1 << 20)))

    @property
    def whole(self) -> bool:
        """Whether every cell is one whole number."""
        return self._even == 1

    @property
    def _quantum(self) -> float:
        """q: values below it in absolute value share the finest cells."""
        if self.bounds is None:
            return 1.0 if self.kind == "integer" else 2.0**-10
        return max(abs(self.bounds[0]), abs(self.bounds[1]), 1e-300) * 2.0**-20

    @property
    def cells(self) -> tuple[int, int]:
        """The first and the last cell: no place that the engine finds for a clamped value is beyond.

        Even ones are found by the same steps here and there, each rounded as the standard says. Logarithms are not:
        what stands before `floor` is below 2^15 and off by 2^-15 at most if they have 30 of 53 bits right, so the
        cell is off by at most 1, and there is one to spare. None is needed beyond 0 for values of the other sign only:
        they have sign 0 or their own, and no logarithm of 1 or more is below 0.
        """
        low, high = self.ends
        first, last = self._cell(low), self._cell(high)
        if self._even is not None:
            return first, last
        return first - (first > 0 or low < 0), last + (last < 0 or high > 0)

    @property
    def span(self) -> int:
        """How many cells there are."""
        first, last = self.cells
        return last - first + 1

    def _cell(self, value: float) -> int:
        if self._even is not None:
            return math.floor((value - self.ends[0]) / self._even)
        return int(math.copysign(math.floor(math.log2(1 + abs(value) / self._quantum) * _PER_OCTAVE), value))

    def clamped(self, argument: str) -> str:
        """SQL of a value within the ends, a DOUBLE; NaN, which is larger than infinity to the engine, becomes NULL."""
        low, high = self.ends
        x = f"CAST({argument} AS DOUBLE)"
        return (
            f"CASE WHEN {x} BETWEEN {number(low)} AND {number(high)} THEN {x} "
            f"WHEN {x} < {number(low)} THEN {number(low)} WHEN {x} <= {number(math.inf)} THEN {number(high)} END"
        )

    def place(self, x: str) -> str:
        """SQL of the number of the cell of a clamped value: one of `cells`, as a whole DOUBLE."""
        if self._even is not None:
            return f"floor(({x} - {number(self.ends[0])}) / {number(self._even)})"
        if self.ends[0] >= 0:
            return f"floor({self._logarithm(x)})"
        return f"sign({x}) * floor({self._logarithm(f'abs({x})')})"

    def _logarithm(self, size: str) -> str:
        """SQL of the place of a value >= 0; the engine multiplies in less time than it divides."""
        return f"log2({number(1.0)} + {size} * {number(1 / self._quantum)}) * {number(_PER_OCTAVE)}"

    def distance(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """A public preference where no bounds are declared: how many times e a value is larger than 1, else 0.

        There are thousands of cells that no value reaches. Without it they would win together over the few that matter.
        """
        if self.bounds is not None or self._even is not None:
            return np.zeros(cells.size)
        return np.log1p(np.abs(self.value(cells.astype(np.float64))))

    def apart(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same with the sign of the value: how much two cells differ, where no bounds are declared."""
        return np.copysign(self.distance(cells), cells)

    def folds(self, cells: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Where a cell is in factors of e, with the sign of its value; None where cells are even.

        Values below 1 in absolute value, or below a thousandth of the largest one where bounds are declared, are near
        each other, however many cells there are between them.
        """
        if self._even is not None:
            return None
        least = 1.0 if self.bounds is None else 1024 * self._quantum
        return np.copysign(np.log1p(np.abs(self.value(cells.astype(np.float64))) / least), cells)

    def value(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value at a place of the grid: cell i covers the places i to i + 1, and negative cells i - 1 to i.

        So that places increase with values, cell 0 has the negative values before 0 and the positive ones after it.
        """
        low, high = self.ends
        if self._even is not None:
            # Whole numbers: the value of a cell of width 1 is the cell, whatever the place within it.
            inside = np.floor(place) if self._even == 1 else place
            return np.clip(low + inside * self._even, low, high)
        size = self._quantum * np.expm1(np.abs(place) / _PER_OCTAVE * math.log(2))
        return np.clip(np.copysign(size, place), low, high)
