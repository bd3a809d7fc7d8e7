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
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.noise.choice import Listed, listed_choices
from discreet.query.ranks.spans import Spans, far
from discreet.query.ranks.statistic import VARIED
from discreet.query.ranks.support import ENOUGH

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.ranks.cells import Cells
    from discreet.query.ranks.choice import Levels
    from discreet.query.ranks.edges import Edges
    from discreet.query.ranks.statistic import Statistic

__all__ = ["Ends", "preferred"]

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
        self, s: Edges, indices: NDArray[np.int64], groups: slice, generator: Generator | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The edges between which the quantile is, as numbers of edges, for groups of which these cells were chosen."""
        begin, end = np.zeros(s.groups, dtype=np.int64), np.full(s.groups, s.cells)
        around = self._around(s, indices, groups)
        # Cells that are no whole numbers are narrow, and one more on either side makes up for their edges.
        far = listed_choices(around.listed(self.factor), scale=self.factor, generator=generator) + self.narrow
        low, high = around.index - far, around.index + 1 + far
        begin[around.rows] = np.where(around.below, np.maximum(low, 0), 0)
        end[around.rows] = np.where(around.above, np.minimum(high, s.cells), s.cells)
        return begin, end

    def _around(self, s: Edges, indices: NDArray[np.int64], groups: slice) -> _Around:
        """What intervals around these cells may be, for the groups that have an end."""
        below, above = (side[groups].copy() for side in self.told)
        both = below & above
        beyond = self.beyond[groups]
        wide = np.array(
            [not told and self._is_wide(int(i), b) for told, i, b in zip(both, indices, beyond, strict=True)],
            dtype=bool,
        )
        below, above = below | wide, above | wide
        aims = np.where(below == above, self.aims[groups], self.aims_of_one[groups])
        rows = np.flatnonzero(below | above)
        return _Around(
            s,
            rows,
            indices[rows],
            below[rows],
            above[rows],
            np.rint(aims[rows]).astype(np.int64),
            _Against(
                self.factor,
                indices[rows],
                self.distance,
                self.folds,
                # There are thousands of cells that no value reaches: the farther, the less preferred.
                down=below[rows] & ~above[rows],
                up=above[rows] & ~below[rows],
                wide=wide[rows],
            ),
        )

    def _is_wide(self, index: int, beyond: float) -> bool:
        """Whether to prefer narrow intervals is enough for both ends to be told."""
        if self.folds is None or beyond < _CLEAR:
            return False
        away = _folded(self.folds, index, np.arange(len(self.folds)))
        return beyond > _margin(float(np.exp(-away).sum()))


@dataclass(frozen=True)
class _Against:
    """What speaks against each number h of cells around the cells `index`, in units of scores: nothing by itself.

    Where an interval goes `down` or `up` alone it is how far its end is away; where it is `wide`, by how many factors
    of e it goes away.
    """

    factor: Fraction
    index: NDArray[np.int64]
    distance: NDArray[np.float64]
    folds: NDArray[np.float64] | None
    down: NDArray[np.bool_]
    up: NDArray[np.bool_]
    wide: NDArray[np.bool_]

    def __call__(self, which: Any, h: NDArray[np.int64]) -> NDArray[np.int64]:
        """For these h of the interval of that number, or of one each."""
        if not (self.down | self.up | self.wide).any():
            return np.zeros(h.size, dtype=np.int64)
        away, index, last = np.zeros(h.size), self.index[which], len(self.distance) - 1
        for side, sign in ((self.down[which], -1), (self.up[which], 1)):
            if side.any():
                end = np.clip(index + sign * h, 0, last)
                away = np.where(side, np.abs(self.distance[end] - self.distance[index]), away)
        wide = self.wide[which]
        if self.folds is not None and wide.any():
            away = np.where(wide, _folded(self.folds, index, h), away)
        return preferred(away, self.factor)


def _folded(folds: NDArray[np.float64], index: Any, h: NDArray[np.int64]) -> NDArray[np.float64]:
    """By how many factors of e an interval goes away from its cell that has so many cells on either side."""
    up, down = np.minimum(index + h, len(folds) - 1), np.maximum(index - h, 0)
    away: NDArray[np.float64] = np.maximum(folds[up] - folds[index], folds[index] - folds[down])
    return away


@dataclass(frozen=True)
class _Around:
    """Numbers h of cells on either side of cells, or on one, as candidates for intervals that aim at m(h) = s.

    `rows` are the groups of the intervals, by their numbers in `s`. Beyond the grid S is what it is at its end.
    `against` is what speaks against each h.
    """

    s: Edges
    rows: NDArray[np.int64]
    index: NDArray[np.int64]
    below: NDArray[np.bool_]
    above: NDArray[np.bool_]
    aim: NDArray[np.int64]
    against: Callable[[Any, NDArray[np.int64]], NDArray[np.int64]]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many h there are."""
        cells = self.s.cells
        both = self.below & self.above
        return np.where(both, cells, np.where(self.below, self.index + 1, cells - self.index))

    def listed(self, factor: Fraction) -> Listed:
        """The candidates but those of which m(h) is far from what is aimed at."""
        every = np.arange(self.rows.size)
        aim = self.aim.astype(object)
        near = np.minimum(self._reaching(aim), self.sizes - 1)
        best = np.maximum(self._scores(every, np.maximum(near - 1, 0)), self._scores(every, near))
        # What is farther from the aim is FAR below the best of these two, whatever is preferred.
        worst = best.astype(object) - far(factor)
        spans = Spans.of(self._reaching(aim + worst), self._reaching(aim - worst + 1), self.sizes)
        return Listed(spans.starts, spans.numbers, spans.scored(self._scores), self._all)

    def _reaching(self, least: NDArray[Any]) -> NDArray[np.int64]:
        """The first h with m(h) of at least this; their number, if there is none."""
        cells, sizes = self.s.cells, self.sizes
        edge = self.s.reaching(self.rows, 1 - least) - 1  # the last one with -S of at least this
        down = np.where(edge >= 0, self.index - edge, sizes)
        edge = self.s.reaching(self.rows, least)
        up = np.where(edge <= cells, edge - self.index - 1, sizes)
        h = np.maximum(np.where(self.below, down, 0), np.where(self.above, up, 0))
        return np.clip(h, 0, sizes)

    def _scores(self, which: Any, h: NDArray[np.int64]) -> NDArray[np.int64]:
        """The scores of these candidates of the interval of that number, or of one each."""
        rows, index = self.rows[which], self.index[which]
        down = -self.s.at(rows, np.maximum(index - h, 0))
        up = self.s.at(rows, np.minimum(index + 1 + h, self.s.cells))
        below, above = self.below[which], self.above[which]
        held = np.where(below & above, np.minimum(down, up), np.where(below, down, up))
        scores: NDArray[np.int64] = -np.abs(held - self.aim[which]) - self.against(which, h)
        return scores

    def _all(self, i: int) -> NDArray[np.int64]:
        """The scores of all candidates of one interval."""
        return self._scores(i, np.arange(self.sizes[i]))


def _margin(cells: float) -> float:
    """By how many units of the noise so many cells beyond all values have to be worse than those near the quantile."""
    return max(math.log(cells) - _NEAR, _CLEAR)


def _aim(ratio: float, *, ends: int = 2) -> float:
    """y of the claim, for this ratio of levels and so many ends; with e^{-u} at its mean 1 / (1 + d)."""
    missed, fails = ratio / (1 + ratio), _FAILS * 2 / ends
    return max(0.0, -math.log(2 * fails / (missed + fails * (1 - missed))))
