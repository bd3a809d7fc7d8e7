r"""Quantiles, MIN and MAX by exponential mechanisms over the cells, group by group.

The quantile is in cell t if S is below 0 at its lower edge and not at its upper one, and the score of a cell is how far
that is from being so [Smith 2011]:

    -max(0, S(t - 1), -S(t)).

A cell that many rows share counts as a whole in this. So MAX of values that end with such a cell is that cell, and not
one of the empty ones behind it.

A small part of the price buys the interval around the chosen cell t: a number h of cells on either side, by an
exponential mechanism with the score -|m(h) - s|, where m(h) = min(-S(t - h - 1), S(t + h)). The interval holds if
m(h) >= 0. How many rows there are is counted with noise, at a smaller part. Where one side has too few of them for S to
reach s there and be told from it, that end is the end of the grid, and m(h) is S on the other side alone.

**Claim.** Let f be the factor of the scores of h, and f / d that of t. If m rises evenly with h from -v, where v has
the law Exp(f / d) that the choice of t gives it, the interval fails with the mean over u, exponential of mean d, of

    e^{-y} (1 - e^{-u}) / (2 - e^{-y-u}),        y = f s,

because the law of m(h) is proportional to exp(-f |m - s|) above -v; and half as often if it has one end, because t is
on the other side of the quantile half of the time. `_aim` is the y for which that is about 1/23, smaller for one end
than for two. If all distances are taken k > 1 times, the interval fails at most 1/k times as often, however m rises,
where bounds are declared or both sides have rows enough: the probability of h increases as long as m(h) < s, so that
all h < d / k together have at most a k-th of what all h < d have. Where a wide gap without values lies next to the
quantile, m does not rise evenly, and the interval fails more often.

**Claim.** On the Laplace path all steps together cost no more than one Laplace mechanism of the whole epsilon. *Proof.*
An exponential mechanism of level e has losses within a range of e, and at every epsilon at most the delta of Laplace
noise of level e (`tests/query/test_ranks.py` compares them). Steps that are no worse than Laplace noise of levels e_1,
e_2, … are no worse than the product of these trade-off functions [Dong et al. 2022], and that is no worse than
exchanging one after the other, as for a group of people: which composes the trade-off functions of Laplace noise to
that of the level e_1 + e_2 + …, because shifts of one coordinate add up.

**Claim.** An exponential mechanism of level e is no worse than Gaussian noise of mu = K e, K = sqrt(2 pi) / 4. *Proof.*
A pair of laws with losses in a range of length e is a post-processing of a pair of coins, with probabilities a and b
whose logits differ by e. The trade-off function of two coins has one kink, and lies above that of mu if
probit(a) - probit(b) <= mu: chords of a convex function lie above it. As a function of the logit, the probit rises at
most by the largest value of Phi(z) Phi(-z) / phi(z), which is that at 0, and there it is K. So a unit that moves the
weights of group g by c_g, with the root of the sum of squares at most the bound, loses in all groups together no more
than one Gaussian mechanism of mu if e = mu / K for a change by the bound: that of a group is then no worse than
Gaussian noise of mu c_g / bound, and their squares add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise import exponential_choice, rounded_laplace
from discreet.noise.choice import FAR, listed_choice
from discreet.query.ranks.answer import RankAnswer
from discreet.query.ranks.statistic import VARIED, Statistic
from discreet.query.ranks.support import ENOUGH, Support

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.plan import Aggregate
    from discreet.query.ranks.cells import Cells

__all__ = ["Levels", "chosen", "picked"]

_FAR = 3.0
_AROUND = 0.12  # share of the price for the interval
_COUNTED = 0.02  # … and for the number of rows
_AROUND_OF_SQUARE = 0.28  # … and of the square of mu
_ORDINARY = 0.25  # of MIN and MAX, how much of the preference for ordinary values: else MIN of large ones would be 0
_WIDEST = 1e12  # Laplace noise is drawn up to this scale; beyond, nothing is known of the number of rows
_LARGEST = 2.0**60  # no interval needs to aim at more: no table has so many rows
_FAILS = 1 / 23  # of intervals of 95 %, by the claim
_NEAR = 2.0  # the logarithm of how many cells are near the quantile, at least
_CLEAR = 3.0  # an end is told if S goes so many units of the noise of its choice beyond what it aims at
_BEYOND = 1.0  # what an end aims at, more than the logarithm of the number of cells, where the cell is in doubt
_PER_LEVEL = math.sqrt(2 * math.pi) / 4 * (1 + 1e-9)  # K


@dataclass(frozen=True)
class Levels:
    """The epsilons of the choice of a cell, and of the interval around it, for a unit that moves all of the bound."""

    place: float
    around: float

    @classmethod
    def of_epsilon(cls, epsilon: float, *, extreme: bool) -> Levels:
        """What is left of epsilon when rows have been counted."""
        around = 0.0 if extreme else _AROUND
        return cls((1 - _COUNTED - around) * epsilon, around * epsilon)

    @classmethod
    def of_mu(cls, mu: float, *, counted: float, extreme: bool) -> Levels:
        """What is left of the square of mu when rows have been counted with this part of it."""
        around = 0.0 if extreme else _AROUND_OF_SQUARE
        level = mu / _PER_LEVEL
        return cls(math.sqrt(1 - counted - around) * level, math.sqrt(around) * level)


def chosen(
    cells: Cells,
    aggregate: Aggregate,
    bound: float,
    parts: int,
    *,
    noise: float,
    weighed: int,
    generator: Generator | None,
) -> RankAnswer:
    """The quantile of every group on the Laplace path.

    A unit moves the weight of group g by c_g with a sum of at most the bound, and each choice is
    (epsilon c_g / bound)-DP for it, because the loss of an exponential mechanism grows in proportion to the change of
    its scores. So all choices together are epsilon-DP, in however many groups the unit counts.
    """
    epsilon = 1 / noise / (1 + 1e-12)
    # Weights are whole numbers, which one unit changes by the bound in all groups together. Rounded to rows, it could
    # change them by one in each of its groups.
    scale = bound / (_COUNTED * epsilon) * (1 + 1e-12)
    if scale > _WIDEST:
        total, scale = np.zeros(cells.groups), math.inf
    else:
        total = (cells.total + rounded_laplace(scale, cells.groups, generator=generator)).astype(np.float64)
    levels = Levels.of_epsilon(epsilon, extreme=aggregate.function in ("min", "max"))
    return picked(
        cells,
        aggregate,
        bound,
        parts,
        levels=levels,
        total=total,
        spread=scale,
        weighed=weighed,
        generator=generator,
    )


def picked(
    cells: Cells,
    aggregate: Aggregate,
    bound: float,
    parts: int,
    *,
    levels: Levels,
    total: NDArray[np.float64],
    spread: float,
    weighed: int,
    generator: Generator | None,
) -> RankAnswer:
    """Exponential mechanisms for each group: the cell, and how far the interval goes on either side of it.

    `total` is the weight of each group with noise of the scale `spread`; `weighed` is the weight of a full row if
    others weigh less, else 0.
    """
    extreme = aggregate.function in ("min", "max")
    # Far beyond all values there may be many cells, each with the score -reach: together they must not win.
    reach = _FAR * bound * math.log(cells.last - cells.first + 2) / levels.place
    statistic = Statistic.of(aggregate, parts, reach)
    sensitivity = 2 * math.ceil(statistic.largest * bound)
    factor = Fraction(levels.place / (1 + 1e-12)) / sensitivity
    every = np.arange(cells.first, cells.last + 1)
    # Rounded to whole numbers, which is as good a preference; it has nothing to do with the data.
    distance = cells.scale.distance(every) * (_ORDINARY if extreme else 1.0)
    preference = _preferred(distance, factor)
    if extreme:
        support, ends = Support.of_extreme(total, spread, reach=reach), None
    else:
        support = Support.of_quantile(total, spread, statistic, unit=1 / float(factor), cells=every.size)
        ends = _Ends.of(cells, statistic, levels, sensitivity, total=total, doubt=support.doubt, weighed=weighed)
    places, lefts, rights = [], [], []
    for g in range(cells.groups):
        # S at the lower edge of the first cell, and at the upper edge of every cell
        s = np.empty(every.size + 1, dtype=np.int64)
        s[0] = 0
        s[1:] = cells.of_group(g)
        s *= statistic.a + statistic.b
        s += statistic.shift - statistic.b * int(cells.total[g])
        index = _Fits(s, preference).chosen(factor, generator)
        # Of MIN and MAX the edge behind which the extreme is for certain; of whole numbers the cell is the value.
        edge = 0.0 if aggregate.function == "max" else 1.0
        places.append(every[index] + (edge if extreme and not cells.scale.whole else 0.5))
        if ends is not None:
            left, right = ends.chosen(s, index, g, generator)
            lefts.append(cells.first + left)
            rights.append(cells.first + right)
    place = np.array(places, dtype=float)
    if extreme:
        return replace(RankAnswer.extreme(cells.scale, place, function=aggregate.function), doubt=support.doubt)
    first, last = np.full(place.shape, float(cells.first)), np.full(place.shape, cells.last + 1.0)
    return replace(
        RankAnswer.alone(cells.scale, place, first, last),
        left=np.array(lefts, dtype=float),
        right=np.array(rights, dtype=float),
        doubt=support.doubt,
    )


@dataclass(frozen=True)
class _Fits:
    """The cells of one group as candidates: S at all edges, which increases, and what speaks against each cell."""

    s: NDArray[np.int64]
    preference: NDArray[np.int64]

    def chosen(self, factor: Fraction, generator: Generator | None) -> int:
        """One of the cells; those far from where S changes sign are not looked at, of which there are thousands."""
        cells = len(self.preference)
        middle = min(max(int(self.s.searchsorted(0)) - 1, 0), cells - 1)
        # What fits worse than this is FAR below the cell where S changes sign, whatever is preferred.
        worst = int(self.of(np.array([middle]))[0]) - -(-FAR * factor.denominator // factor.numerator)
        low, high = 0, cells
        if worst > -_LARGEST:
            low = max(int(self.s.searchsorted(worst)) - 1, 0)
            high = min(int(self.s.searchsorted(-worst, side="right")), cells)
        places = np.unique(np.concatenate([[0], np.arange(low, high), [cells - 1]]))
        return listed_choice(
            places, self.of(places), lambda: self.of(np.arange(cells)), scale=factor, generator=generator
        )

    def of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The scores of these cells."""
        fits = np.minimum(np.minimum(-self.s[places], self.s[places + 1]), 0)
        scores: NDArray[np.int64] = fits - self.preference[places]
        return scores


def _preferred(distance: NDArray[np.float64], factor: Fraction) -> NDArray[np.int64]:
    """A public preference in units of scores."""
    return np.rint(np.minimum(distance / float(factor), 2.0**60)).astype(np.int64)


@dataclass(frozen=True)
class _Ends:
    """The choice of an interval: `aims` is s of each group, `told` whether there are rows enough on either side."""

    factor: Fraction
    aims: NDArray[np.float64]
    told: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    distance: NDArray[np.float64]
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
    ) -> _Ends:
        """The blur of weighing rows is in what is aimed at.

        Where the cell that was chosen may be far beyond all values, there may be as many cells between it and the
        quantile as the grid has, and it takes more to keep away from them all.
        """
        factor = Fraction(levels.around / (1 + 1e-12)) / sensitivity
        parts = statistic.a + statistic.b
        p, rows = statistic.a / parts, np.maximum(total, 0.0)
        blur = np.sqrt(VARIED * rows * p * (1 - p) * weighed) * parts
        aim = np.where(doubt == ENOUGH, _aim(levels.around / levels.place), math.log(cells.scale.span) + _BEYOND)
        aims = np.minimum(aim / float(factor) + blur, _LARGEST)
        # Cells far beyond all values, of which there are up to as many as the grid has, must not win together.
        least = aims + max(math.log(cells.scale.span) - _NEAR, _CLEAR) / float(factor)
        told = (statistic.b * rows > least, statistic.a * rows > least)
        # An interval with one end fails half as often, and may aim at less; what is told stays what it is.
        one = _aim(levels.around / levels.place, ends=1) / float(factor) + blur
        aims = np.where((told[0] != told[1]) & (doubt == ENOUGH), np.minimum(one, aims), aims)
        distance = cells.scale.apart(np.arange(cells.first, cells.last + 1))
        return cls(factor, aims, told, distance, not cells.scale.whole)

    def chosen(self, s: NDArray[np.int64], index: int, g: int, generator: Generator | None) -> tuple[int, int]:
        """The edges between which the quantile is, as numbers of edges, from S at all edges."""
        cells, (below, above) = len(s) - 1, (bool(side[g]) for side in self.told)
        if not (below or above):
            return 0, cells
        # From the chosen cell outwards; beyond the grid S is what it is at its end.
        left, right = np.full(cells, -s[0]), np.full(cells, s[-1])
        left[: index + 1], right[: cells - index] = -s[index::-1], s[index + 1 :]
        if below and above:
            scores = -np.abs(np.minimum(left, right) - round(float(self.aims[g])))
        else:
            # There are thousands of cells that no value reaches: the farther, the less preferred.
            away = np.abs(self.distance - self.distance[index])
            away, held = (away[index::-1], left[: index + 1]) if below else (away[index:], right[: cells - index])
            scores = -np.abs(held - round(float(self.aims[g]))) - _preferred(away, self.factor)
        # Cells that are no whole numbers are narrow, and one more on either side makes up for their edges.
        far = exponential_choice(scores, scale=self.factor, generator=generator) + self.narrow
        return max(index - far, 0) if below else 0, min(index + 1 + far, cells) if above else cells


def _aim(ratio: float, *, ends: int = 2) -> float:
    """y of the claim, for this ratio of levels and so many ends; with e^{-u} at its mean 1 / (1 + d)."""
    missed, fails = ratio / (1 + ratio), _FAILS * 2 / ends
    return max(0.0, -math.log(2 * fails / (missed + fails * (1 - missed))))
