r"""Quantiles, MIN and MAX by exponential mechanisms over the cells, group by group.

The quantile is in cell t if S is below 0 at its lower edge and not at its upper one, and the score of a cell is how far
that is from being so [Smith 2011]:

    -max(0, S(t - 1), -S(t)).

A cell that many rows share counts as a whole in this. So MAX of values that end with such a cell is that cell, and not
one of the empty ones behind it.

A small part of the price buys the interval around the chosen cell (see `ends`), and a smaller one the number of rows.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.noise import rounded_laplace
from discreet.noise.choice import Listed, listed_choices
from discreet.query.ranks.answer import RankAnswer
from discreet.query.ranks.edges import Edges
from discreet.query.ranks.ends import Ends, preferred
from discreet.query.ranks.spans import Spans, far, whole_numbers
from discreet.query.ranks.statistic import Statistic
from discreet.query.ranks.support import Support

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
_TOGETHER = 1 << 19  # cells of groups that are looked at together
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
    preference = preferred(distance, factor)
    if extreme:
        support, ends = Support.of_extreme(total, spread, reach=reach), None
    else:
        support = Support.of_quantile(total, spread, statistic, unit=1 / float(factor), cells=every.size)
        ends = Ends.of(cells, statistic, levels, sensitivity, total=total, doubt=support.doubt, weighed=weighed)
    # Of MIN and MAX the edge behind which the extreme is for certain; of whole numbers the cell is the value.
    edge = 0.0 if aggregate.function == "max" else 1.0
    within = edge if extreme and not cells.scale.whole else 0.5
    place = np.empty(cells.groups)
    left, right = np.full(cells.groups, float(cells.first)), np.full(cells.groups, cells.last + 1.0)
    together = max(1, _TOGETHER // every.size)
    for begin in range(0, cells.groups, together):
        some = slice(begin, min(begin + together, cells.groups))
        edges = Edges.of(cells, some.start, some.stop, statistic)
        fits = _Fits(edges, preference).listed(factor)
        chosen = listed_choices(fits, scale=factor, generator=generator)
        place[some] = cells.first + chosen + within
        if ends is not None:
            low, high = ends.chosen(edges, chosen, some, generator)
            left[some], right[some] = cells.first + low, cells.first + high
    if extreme:
        return replace(RankAnswer.extreme(cells.scale, place, function=aggregate.function), doubt=support.doubt)
    first, last = np.full(place.shape, float(cells.first)), np.full(place.shape, cells.last + 1.0)
    return replace(RankAnswer.alone(cells.scale, place, first, last), left=left, right=right, doubt=support.doubt)


@dataclass(frozen=True)
class _Fits:
    """The cells of groups as candidates: S at all edges, and what speaks against each cell."""

    s: Edges
    preference: NDArray[np.int64]

    def listed(self, factor: Fraction) -> Listed:
        """The cells of each group but those far from where S changes sign, of which there are thousands."""
        s, rows = self.s, np.arange(self.s.groups)
        middle = np.clip(s.reaching(rows, whole_numbers(0, rows.size)) - 1, 0, s.cells - 1)
        # What fits worse than this is FAR below the cell where S changes sign, whatever is preferred.
        worst = self.of(rows, middle).astype(object) - far(factor)
        low, high = s.reaching(rows, worst) - 1, s.reaching(rows, 1 - worst)
        spans = Spans.of(low, high, np.full(rows.size, s.cells))
        every = np.arange(s.cells)
        return Listed(
            spans.starts,
            spans.numbers,
            spans.scored(self.of),
            lambda i: self.of(i, every),
        )

    def of(self, rows: Any, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The scores of cells of one group, or of one each."""
        fits = np.minimum(np.minimum(-self.s.at(rows, places), self.s.at(rows, places + 1)), 0)
        scores: NDArray[np.int64] = fits - self.preference[places]
        return scores
