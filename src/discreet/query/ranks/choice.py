r"""Quantiles, MIN and MAX with Laplace-like noise: exponential mechanisms over the cells.

The quantile is in cell t if S is below 0 at its lower edge and not at its upper one, and the score of a cell is how far
that is from being so [Smith 2011]:

    -max(0, S(t - 1), -S(t)).

A cell that many rows share counts as a whole in this. So MAX of values that end with such a cell is that cell, and not
one of the empty ones behind it.

A small part of the price buys the interval around the chosen cell t: a number h of cells on either side, by an
exponential mechanism with the score -|m(h) - s|, where m(h) = min(-S(t - h - 1), S(t + h)). The interval holds if
m(h) >= 0.

**Claim.** Let f be the factor of the scores of h, and f r that of t. If m rises evenly with h from -v, where v has the
law Exp(f r) that the choice of t gives it, the interval fails with the mean over u ~ Exp(r) of

    e^{-y} (1 - e^{-u}) / (2 - e^{-y-u}),        y = f s,

because the law of m(h) is proportional to exp(-f |m - s|) above -v. At the shares below that is 1/23. If all distances
are taken k > 1 times, the interval fails at most 1/k times as often, however m rises: the probability of h increases as
long as m(h) < s, so that all h < d / k together have at most a k-th of what all h < d have. Where a wide gap without
values lies next to the quantile, m does not rise evenly, and the interval fails more often.

**Claim.** All steps together cost no more than one Laplace mechanism of the whole epsilon. *Proof.* An exponential
mechanism of level e has losses within a range of e, and at every epsilon at most the delta of Laplace noise of level e
(`tests/query/test_ranks.py` compares them). Steps that are no worse than Laplace noise of levels e_1, e_2, … are no
worse than the product of these trade-off functions [Dong et al. 2022], and that is no worse than exchanging one after
the other, as for a group of people: which composes the trade-off functions of Laplace noise to that of the level
e_1 + e_2 + …, because shifts of one coordinate add up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise import exponential_choice, rounded_laplace
from discreet.query.ranks.answer import RankAnswer
from discreet.query.ranks.statistic import VARIED, Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.plan import Aggregate
    from discreet.query.ranks.cells import Cells

__all__ = ["chosen"]

_FAR = 3.0
_AROUND = 0.12  # share of the price for the interval
_COUNTED = 0.02  # … and for the number of rows, where the blur of weighing them is needed
_ORDINARY = 0.25  # of MIN and MAX, how much of the preference for ordinary values: else MIN of large ones would be 0
_WIDEST = 1e12  # Laplace noise is drawn up to this scale; beyond, nothing is known of the number of rows
_LARGEST = 2.0**60  # no interval needs to aim at more: no table has so many rows
_AIMED = 0.6  # y: what the interval aims at, in units of the noise of its choice


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
    """Exponential mechanisms for each group: the cell, and how far around it the interval goes.

    A unit moves the weight of group g by c_g with a sum of at most the bound, and each choice is
    (epsilon c_g / bound)-DP for it, because the loss of an exponential mechanism grows in proportion to the change of
    its scores. So all choices together are epsilon-DP, in however many groups the unit counts.
    """
    epsilon = 1 / noise / (1 + 1e-12)
    extreme = aggregate.function in ("min", "max")
    around, counted = (0.0, 0.0) if extreme else (_AROUND, _COUNTED if weighed else 0.0)
    # Far beyond all values there may be many cells, each with the score -reach: together they must not win.
    reach = _FAR * bound * math.log(cells.last - cells.first + 2) / epsilon
    statistic = Statistic.of(aggregate, parts, reach)
    sensitivity = 2 * math.ceil(statistic.largest * bound)
    factor = Fraction((1 - around - counted) * epsilon / (1 + 1e-12)) / sensitivity
    every = np.arange(cells.first, cells.last + 1)
    # Rounded to whole numbers, which is as good a preference; it has nothing to do with the data.
    distance = cells.scale.distance(every) * (_ORDINARY if extreme else 1.0)
    preference = np.rint(np.minimum(distance / float(factor), 2.0**60)).astype(np.int64)
    aims = (
        np.zeros(cells.groups)
        if extreme
        else _aims(
            cells, statistic, bound, parts, epsilon=epsilon, counted=counted, weighed=weighed, generator=generator
        )
    )
    scale = Fraction(around * epsilon / (1 + 1e-12)) / sensitivity
    places, lefts, rights = [], [], []
    for g in range(cells.groups):
        # S at the lower edge of the first cell, and at the upper edge of every cell
        s = np.empty(every.size + 1, dtype=np.int64)
        s[0] = 0
        s[1:] = cells.of_group(g)
        s *= statistic.a + statistic.b
        s += statistic.shift - statistic.b * int(cells.total[g])
        fits = np.minimum(np.minimum(-s[:-1], s[1:]), 0)
        index = exponential_choice(fits - preference, scale=factor, generator=generator)
        # Of MIN and MAX the edge behind which the extreme is for certain; of whole numbers the cell is the value.
        edge = 0.0 if aggregate.function == "max" else 1.0
        places.append(every[index] + (edge if extreme and not cells.scale.whole else 0.5))
        if not extreme:
            held = _held(s, index)
            far = exponential_choice(-np.abs(held - round(aims[g])), scale=scale, generator=generator)
            # Cells that are no whole numbers are narrow, and one more on either side makes up for their edges.
            far += not cells.scale.whole
            lefts.append(every[index] - far)
            rights.append(every[index] + far + 1)
    place = np.array(places, dtype=float)
    if extreme:
        return RankAnswer.extreme(cells.scale, place, function=aggregate.function)
    first, last = np.full(place.shape, float(cells.first)), np.full(place.shape, cells.last + 1.0)
    found = RankAnswer.alone(cells.scale, place, first, last)
    return replace(found, left=np.array(lefts, dtype=float), right=np.array(rights, dtype=float))


def _held(s: NDArray[np.int64], index: int) -> NDArray[np.int64]:
    """m(h) for h = 0, 1, … around the chosen cell, from S at all edges; beyond the grid S is what it is at its end."""
    cells = len(s) - 1
    left, right = np.full(cells, -s[0]), np.full(cells, s[-1])
    left[: index + 1] = -s[index::-1]
    right[: cells - index] = s[index + 1 :]
    held: NDArray[np.int64] = np.minimum(left, right)
    return held


def _aims(
    cells: Cells,
    statistic: Statistic,
    bound: float,
    parts: int,
    *,
    epsilon: float,
    counted: float,
    weighed: int,
    generator: Generator | None,
) -> NDArray[np.float64]:
    """s: how far from 0 S should be at the ends of each group's interval; the blur of weighing rows is in it."""
    aimed = _AIMED * 2 * math.ceil(statistic.largest * bound) / (_AROUND * epsilon)
    aim = np.full(cells.groups, min(aimed, _LARGEST))
    if not weighed:
        return aim
    # Weights are whole numbers, which one unit changes by the bound in all groups together. Rounded to rows, it could
    # change them by one in each of its groups.
    scale = bound / (counted * epsilon) * (1 + 1e-12)
    if scale > _WIDEST:
        return aim
    weight = cells.total + rounded_laplace(scale, cells.groups, generator=generator)
    p = statistic.a / parts
    blur = np.sqrt(VARIED * np.maximum(weight, 0) * p * (1 - p) * weighed) * parts
    found: NDArray[np.float64] = np.minimum(aim + blur, _LARGEST)
    return found
