"""Whether there are rows enough for a quantile at its price: as far as the noisy number of rows tells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.ranks.statistic import Statistic

__all__ = ["BEYOND", "DECLARE", "ENOUGH", "FEW", "IN_WORDS", "Support"]

ENOUGH, FEW, BEYOND = 0.0, 1.0, 2.0
"""There are rows enough; there may be too few of them; there may be too few beyond the quantile."""

DECLARE = "declare bounds of the values, "
"""The part of the advice that is for values without bounds."""

IN_WORDS = {
    FEW: "there may be too few rows for it at this price; ask about more of them, or pay more",
    BEYOND: f"there may be too few rows beyond this quantile for it at this price; {DECLARE}ask for a less extreme "
    "one, or pay more",
}

_MORE = 2.0  # of the rows beyond a quantile, in units of noise, more than the logarithm of the number of cells
_CLEARLY = 3.0  # of the rows beyond a quantile, in standard deviations of a round of the bisection
_TIMES = 3.0  # of the rows that MIN and MAX leave out, how many times as many there are at least


@dataclass(frozen=True)
class Support:
    """What the noisy weight of each group says: `doubt` is one of the above.

    Far beyond all values S is what the rows beyond the quantile weigh, a p-th or (1 - p)-th of the whole, and so is the
    loss of score of each of the cells there. There are up to as many of them as the grid has. For the places where the
    rows are to win, that loss is larger than the logarithm of the number of cells, in units of the noise. The weight is
    taken to be smaller than it looks by the scale of its noise.
    """

    doubt: NDArray[np.float64]

    @classmethod
    def of_quantile(
        cls,
        total: NDArray[np.float64],
        spread: float,
        statistic: Statistic,
        *,
        unit: float,
        cells: int,
    ) -> Support:
        """`unit` is the scale of the noise of S."""
        least = (math.log(cells) + _MORE) * unit
        sure = np.maximum(total - spread, 0.0)
        smaller, larger = min(statistic.a, statistic.b), max(statistic.a, statistic.b)
        few = np.where(sure * larger < least, FEW, BEYOND)
        return cls(np.where(sure * smaller < least, few, ENOUGH))

    @classmethod
    def of_rounds(cls, total: NDArray[np.float64], spread: float, statistic: Statistic, *, noise: float) -> Support:
        """By bisection: `noise` is the standard deviation of S in a round, and no round may go wrong."""
        sure = np.maximum(total - spread, 0.0)
        smaller, larger = min(statistic.a, statistic.b), max(statistic.a, statistic.b)
        few = np.where(sure * larger < _CLEARLY * noise, FEW, BEYOND)
        return cls(np.where(sure * smaller < _CLEARLY * noise, few, ENOUGH))

    @classmethod
    def of_extreme(cls, total: NDArray[np.float64], spread: float, *, reach: float) -> Support:
        """`reach` is the weight that MIN and MAX leave out."""
        return cls(np.where(total - spread < _TIMES * reach, FEW, ENOUGH))
