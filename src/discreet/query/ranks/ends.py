r"""The interval around a quantile that an exponential mechanism has chosen: a choice of its own.

It is a number h of cells on either side of the chosen cell t, by an exponential mechanism with the score -|m(h) - s|,
where m(h) = min(-S(t - h - 1), S(t + h)). The interval holds if m(h) >= 0.

**Claim.** Let f be the factor of the scores of h, and f / d that of t. If m rises evenly with h from -v, where v has
the law Exp(f / d) that the choice of t gives it, the interval fails with the mean over u, exponential of mean d, of

    e^{-y} (1 - e^{-u}) / (2 - e^{-y-u}),        y = f s,

because the law of m(h) is proportional to exp(-f |m - s|) above -v; and half as often if it has one end, because t is
on the other side of the quantile half of the time. `_aim` is the y for which that is about 1/23, smaller for one end
than for two. If all distances are taken k > 1 times, the interval fails at most 1/k times as often, however m rises,
as long as no h is preferred: the probability of h increases while m(h) < s, so that all h < d / k together have at most
a k-th of what all h < d have. Where a wide gap without values lies next to the quantile, m does not rise evenly, and
the interval fails more often.

Beyond all values m is what the rows on the smaller side weigh, and there may be as many cells there as the grid has.
How many rows there are is counted with noise. By that

- they are so many that these cells lose together, or
- they would lose if an h that takes the values e times farther from each other is preferred e times less, which hardly
  matters as long as the interval is narrower than that. (Where values of both signs are possible that is so of tails:
  a median may be near 0 in a grid that is finest there, with many factors of e between it and most values.) Or
- they are too few, and that end is the end of the grid. Then m(h) is S on the other side alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise.choice import FAR, Listed, listed_choices
from discreet.query.ranks.statistic import VARIED
from discreet.query.ranks.support import ENOUGH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.ranks.cells import Cells
    from discreet.query.ranks.choice import Levels
    from discreet.query.ranks.edges import Edges
    from discreet.query.ranks.statistic import Statistic

__all__ = ["Ends", "preferred", "spanned"]

_LARGEST = 2.0**60  # no interval needs to aim at more: no table has so many rows
_FAILS = 1 / 23  # of intervals of 95 %, by the claim
_NEAR = 2.0  # the logarithm of how many cells are near the quantile, at least
_CLEAR = 3.0  # an end is told if S goes so many units of the noise of its choice beyond what it aims at
_TAIL = 1 / 4  # a quantile with at most this part of the rows on one side is one of a tail
_BEYOND = 1.0  # what an end aims at, more than the logarithm of the number of cells, where the cell is in doubt


def preferred(distance: NDArray[np.float64], factor: Fraction) -> NDArray[np.int64]:
    """A public preference in units of scores: the exponents by which what is farther is chosen less often."""
    return np.rint(np.minimum(distance / float(factor), 2.0**60)).astype(np.int64)


@dataclass(frozen=True)
class Ends:
    """The choice of an interval: `told` says on which sides of each group there are rows enough for an end.

    `aims` is s of an interval with two ends, `aims_of_one` with one. `beyond` is what the smaller side has beyond that,
    in units of the noise, or -1 where even the cell is in doubt. `folds` are the places of cells in factors of e, if
    these may be used.
    """

    factor: Fraction
    told: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    aims: NDArray[np.float64]
    aims_of_one: NDArray[np.float64]
    beyond: NDArray[np.float64]
    distance: NDArray[np.float64]
    folds: NDArray[np.float64] | None
    narrow: bool

    @classmethod
    def of(
        cls,
        cells: Cells,
        statistic: Statistic,
        levels: Levels,
        sensitivity: int,
        *,
        total: NDArray[np.float64],
        doubt: NDArray[np.float64],
        weighed: int,
    ) -> Ends:
        """The blur of weighing rows is in what is aimed at.

        Where the cell that was chosen may be far beyond all values, there may be as many cells between it and the
        quantile as the grid has, and it takes more to keep away from them all.
        """
        factor = Fraction(levels.around / (1 + 1e-12)) / sensitivity
        unit, sure = 1 / float(factor), doubt == ENOUGH
        parts = statistic.a + statistic.b
        p, rows = statistic.a / parts, np.maximum(total, 0.0)
        blur = np.sqrt(VARIED * rows * p * (1 - p) * weighed) * parts
        aim = np.where(sure, _aim(levels.around / levels.place), math.log(cells.scale.span) + _BEYOND)
        aims = np.minimum(aim * unit + blur, _LARGEST)
        least = aims + _margin(cells.scale.span) * unit
        told = (statistic.b * rows > least, statistic.a * rows > least)
        smaller, smaller_part = min(statistic.a, statistic.b) * rows, min(p, 1 - p)
        # An interval with one end fails half as often, and may aim at less; what is told stays what it is.
        one = np.minimum(_aim(levels.around / levels.place, ends=1) * unit + blur, aims)
        every = np.arange(cells.first, cells.last + 1)
        apart = cells.first >= 0 or smaller_part <= _TAIL
        return cls(
            factor,
            told,
            aims,
            np.where(sure, one, aims),
            np.where(sure, (smaller - aims) / unit, -1.0),
            cells.scale.apart(every),
            cells.scale.folds(every) if apart else None,
            not cells.scale.whole,
        )

    def chosen(
        self, sums: Sequence[Edges], indices: NDArray[np.int64], groups: Sequence[int], generator: Generator | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The edges between which the quantile is, as numbers of edges, for groups of which these cells were chosen."""
        cells = sums[0].cells if sums else 0
        begin, end = np.zeros(len(sums), dtype=np.int64), np.full(len(sums), cells)
        around = [self._around(s, int(index), g) for s, index, g in zip(sums, indices, groups, strict=True)]
        drawn = [i for i, one in enumerate(around) if one.below or one.above]
        listed = [around[i].listed(self.factor) for i in drawn]
        # Cells that are no whole numbers are narrow, and one more on either side makes up for their edges.
        far = listed_choices(listed, scale=self.factor, generator=generator) + self.narrow
        for i, h in zip(drawn, far.tolist(), strict=True):
            if around[i].below:
                begin[i] = max(around[i].index - h, 0)
            if around[i].above:
                end[i] = min(around[i].index + 1 + h, cells)
        return begin, end

    def _around(self, s: Edges, index: int, g: int) -> _Around:
        """What an interval around this cell of group g may be."""
        below, above = (bool(side[g]) for side in self.told)
        if not (below and above):
            wide = self._wide(index, g)
            if wide is not None:
                return _Around(s, index, True, True, round(float(self.aims[g])), preferred(wide, self.factor))
        if below == above:
            return _Around(s, index, below, above, round(float(self.aims[g])), None)
        # There are thousands of cells that no value reaches: the farther, the less preferred.
        away = np.abs(self.distance - self.distance[index])
        away = away[index::-1] if below else away[index:]
        return _Around(s, index, below, above, round(float(self.aims_of_one[g])), preferred(away, self.factor))

    def _wide(self, index: int, g: int) -> NDArray[np.float64] | None:
        """By how many factors of e each h goes away from the cell, if to prefer narrow ones is enough for both ends."""
        if self.folds is None or self.beyond[g] < _CLEAR:
            return None
        steps = np.arange(len(self.folds))
        up, down = np.minimum(index + steps, steps[-1]), np.maximum(index - steps, 0)
        away = np.maximum(self.folds[up] - self.folds[index], self.folds[index] - self.folds[down])
        return away if self.beyond[g] > _margin(float(np.exp(-away).sum())) else None


@dataclass(frozen=True)
class _Around:
    """Numbers h of cells on either side of a cell, or on one, as candidates for an interval that aims at m(h) = s.

    Beyond the grid S is what it is at its end. `preference` is what speaks against each h.
    """

    s: Edges
    index: int
    below: bool
    above: bool
    aim: int
    preference: NDArray[np.int64] | None

    @property
    def size(self) -> int:
        """How many h there are."""
        if self.below and self.above:
            return self.s.cells
        return self.index + 1 if self.below else self.s.cells - self.index

    def listed(self, factor: Fraction) -> Listed:
        """The candidates but those of which m(h) is far from what is aimed at."""
        near = min(self._reaching(self.aim), self.size - 1)
        best = max(self._score(max(near - 1, 0)), self._score(near))
        # What is farther from the aim is FAR below the best of these two, whatever is preferred.
        worst = best - -(-FAR * factor.denominator // factor.numerator)
        places = spanned(self._reaching(self.aim + worst), self._reaching(self.aim - worst + 1), self.size)
        return Listed(places, self._scores(places), lambda: self._scores(np.arange(self.size)))

    def _reaching(self, least: int) -> int:
        """The first h with m(h) of at least this; their number, if there is none."""
        cells, h = self.s.cells, 0
        if self.below:
            edge = self.s.reaching(1 - least) - 1  # the last one with -S of at least this
            h = max(h, self.index - edge if edge >= 0 else self.size)
        if self.above:
            edge = self.s.reaching(least)
            h = max(h, edge - self.index - 1 if edge <= cells else self.size)
        return min(h, self.size)

    def _score(self, h: int) -> int:
        """The score of one candidate."""
        sides = []
        if self.below:
            sides.append(-self.s.at_one(max(self.index - h, 0)))
        if self.above:
            sides.append(self.s.at_one(min(self.index + 1 + h, self.s.cells)))
        return -abs(min(sides) - self.aim) - (0 if self.preference is None else int(self.preference[h]))

    def _scores(self, h: NDArray[np.int64]) -> NDArray[np.int64]:
        """The scores of these candidates."""
        sides = []
        if self.below:
            sides.append(-self.s.at(np.maximum(self.index - h, 0)))
        if self.above:
            sides.append(self.s.at(np.minimum(self.index + 1 + h, self.s.cells)))
        scores: NDArray[np.int64] = -np.abs(np.minimum(sides[0], sides[-1]) - self.aim)
        return scores if self.preference is None else scores - self.preference[h]


def spanned(low: int, high: int, size: int) -> NDArray[np.int64]:
    """The numbers from low up to high, which is not one of them, and the first and the last of all; at least one."""
    low = min(max(low, 0), size - 1)
    high = max(min(high, size), low + 1)
    numbers = np.arange(low - (low > 0), high + (high < size))
    if low > 0:
        numbers[0] = 0
    if high < size:
        numbers[-1] = size - 1
    return numbers


def _margin(cells: float) -> float:
    """By how many units of the noise so many cells beyond all values have to be worse than those near the quantile."""
    return max(math.log(cells) - _NEAR, _CLEAR)


def _aim(ratio: float, *, ends: int = 2) -> float:
    """y of the claim, for this ratio of levels and so many ends; with e^{-u} at its mean 1 / (1 + d)."""
    missed, fails = ratio / (1 + ratio), _FAILS * 2 / ends
    return max(0.0, -math.log(2 * fails / (missed + fails * (1 - missed))))
