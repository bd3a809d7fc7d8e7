r"""Quantiles, MIN and MAX with Gaussian noise: bisection for all groups at once.

Each round is a Gaussian mechanism with a small share of the price; one more such question is the weight of each group.
From the answers every group keeps the tightest places where S was clearly below and clearly above 0. The rest of the
price is spent on two more values of S, on either side of the cell that was found, and the quantile is where the line
through them is 0: the noise that counts is that of one question with nearly the whole price, not of fifteen. All
questions are Gaussian mechanisms about S, which one unit moves by at most max(p, 1 - p) C over all groups, at places
that depend on earlier answers alone: adaptive composition.

A bisection goes wrong where S beyond the values is a few times the noise of a round, because half of the places that it
looks at are there. So it begins with the weight of each group, and groups in which few rows lie beyond the quantile are
handed over to a `choice`, with what is left of the price: it looks at all places at once, and its noise is that of one
question. MIN and MAX, of which few rows lie beyond by rule, are all found so. In which of the two ways a group is
answered depends on its noisy weight alone, and either way costs a unit no more than Gaussian noise does on one question
of the whole price about this group: by adaptive composition, in all groups together no more than the measure.

The interval is the set of places where S may be 0 within the noise, if S is straight there. It is for the quantile of
all *rows*, each counted once: what weighing them adds is in it, as if weights and values had nothing to do with each
other, with a variance of weights of 0.045.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise import rounded_gaussian
from discreet.query.ranks.answer import JUMP, RankAnswer
from discreet.query.ranks.choice import Levels, picked
from discreet.query.ranks.statistic import VARIED, Statistic
from discreet.query.ranks.support import Support

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.plan import Aggregate
    from discreet.query.ranks.cells import Cells
    from discreet.query.ranks.scale import Scale

__all__ = ["bisected", "noise_of_round"]

_SEARCH = 0.35  # share of the price for the bisection
_CLEAR = 4.0  # standard deviations that make a sign clear
_APART = 2.5  # S is measured where it is expected to be so many units of its noise from 0
_SIDE = 0.3  # … and no farther than this part of the rows on the smaller side
_ROUGH = 0.15  # relative error of a slope that is taken from afar
_FLAT = 0.5  # S that rises by less between them has no slope to speak of
_COARSE = 16  # the two places are no farther from the cell than this part of the grid
_FEW = 4.0  # MIN and MAX leave out about so many standard deviations of weight
_MANY = 4096  # of more groups than this all are found by bisection, and …
_MANY_CELLS = 1 << 28  # … if they have more cells than this together: a million of them take some ten milliseconds
_THIN = 25.0  # S that is no farther from 0 beyond the values than so many units of its noise is better chosen


def _rounds(scale: Scale) -> int:
    return max(1, scale.span.bit_length())


def noise_of_round(noise: float, scale: Scale, search: float = _SEARCH) -> float:
    """The noise multiplier of one round of the bisection: this share of the price is for all of them and one more."""
    return noise * math.sqrt((_rounds(scale) + 1) / search) * (1 + 1e-12)


def bisected(
    cells: Cells,
    aggregate: Aggregate,
    bound: float,
    parts: int,
    *,
    noise: float,
    weighed: int,
    generator: Generator | None,
) -> RankAnswer:
    """The quantile of every group; `weighed` is the weight of a full row if others weigh less, else 0."""
    extreme = aggregate.function in ("min", "max")
    share = 1.0 if extreme else _SEARCH
    each = noise_of_round(noise, cells.scale, share)
    statistic = Statistic.of(aggregate, parts, _FEW * each * bound)
    question = _Question(cells, statistic, bound, generator)
    total = question.weight(each)
    if cells.groups > _MANY or cells.groups * cells.scale.span > _MANY_CELLS:
        return _found(question, aggregate, total, noise=noise, weighed=weighed)
    last = _unit(question, noise)
    thin = np.full(cells.groups, True)
    if not extreme:
        thin = min(statistic.a, statistic.b) * total < _THIN * last
    levels = Levels.of_mu(1 / noise / (1 + 1e-12), counted=share / (_rounds(cells.scale) + 1), extreme=extreme)
    by_choice = picked(
        cells.only(thin),
        aggregate,
        bound,
        parts,
        levels=levels,
        total=total[thin],
        spread=each * bound,
        weighed=weighed,
        generator=generator,
    )
    if thin.all():
        return by_choice
    others = replace(question, cells=cells.only(~thin))
    return by_choice.joined(_found(others, aggregate, total[~thin], noise=noise, weighed=weighed), thin)


def _unit(question: _Question, noise: float) -> float:
    """The standard deviation of the last two values of S."""
    return question.spread(noise * math.sqrt(2 / (1 - _SEARCH)) * (1 + 1e-12))


def _found(
    question: _Question, aggregate: Aggregate, total: NDArray[np.float64], *, noise: float, weighed: int
) -> RankAnswer:
    """By bisection, with the rest of the price when the weight of each group is known with noise."""
    cells, statistic = question.cells, question.statistic
    extreme = aggregate.function in ("min", "max")
    each = noise_of_round(noise, cells.scale, 1.0 if extreme else _SEARCH)
    bracket = _searched(question, each)
    spread = each * question.bound
    if extreme:
        place = bracket.cell.astype(np.float64) + 0.5
        support = Support.of_extreme(total, spread, reach=_FEW * spread)
        return replace(RankAnswer.extreme(cells.scale, place, function=aggregate.function), doubt=support.doubt)
    parts = statistic.a + statistic.b
    last = noise * math.sqrt(2 / (1 - _SEARCH)) * (1 + 1e-12)
    unit = question.spread(last)
    # No farther than a part of the rows on the smaller side, where S bends.
    p = statistic.a / parts
    reach = np.clip(_SIDE * min(p, 1 - p) * parts * total / unit, 0.1, _APART)
    back, ahead = bracket.distances(unit)
    left, right = _beside(cells, bracket.cell, reach * back, reach * ahead)
    s_left, s_right = question.asked(left, last) / unit, question.asked(right, last) / unit
    rows = np.maximum(total, 0.0) * weighed
    blur = np.sqrt(VARIED * rows * p * (1 - p)) * parts / unit
    with np.errstate(divide="ignore", invalid="ignore"):
        afar = 1 / np.where((s_left + s_right) > 0, back, ahead)
    line = _Line(left, right, s_left, s_right)
    place = np.where(line.rise > JUMP * (1 + blur), line.jump(bracket.cell), line.zero(bracket.cell, afar))
    floor, ceiling = bracket.low + 1, np.maximum(bracket.high + 1, bracket.low + 1)
    support = Support.of_rounds(total, spread, statistic, noise=question.spread(each))
    return RankAnswer(
        scale=cells.scale,
        place=np.clip(place, floor, ceiling),
        left=(left + 1).astype(np.float64),
        right=(right + 1).astype(np.float64),
        s_left=s_left,
        s_right=s_right,
        blur=blur,
        floor=floor,
        ceiling=ceiling,
        doubt=support.doubt,
    )


@dataclass(frozen=True)
class _Question:
    """What S is at some place of each group: a Gaussian mechanism."""

    cells: Cells
    statistic: Statistic
    bound: float
    generator: Generator | None

    def spread(self, multiplier: float) -> float:
        """The standard deviation of the answers."""
        return multiplier * self.statistic.largest * self.bound

    def asked(self, place: NDArray[np.int64], multiplier: float) -> NDArray[np.int64]:
        scale = self.spread(multiplier) * (1 + 1e-12)
        noise = rounded_gaussian(scale, self.cells.groups, generator=self.generator)
        answer: NDArray[np.int64] = self.statistic.of_cells(self.cells, place) + noise
        return answer

    def weight(self, multiplier: float) -> NDArray[np.float64]:
        """The weight of each group, which one unit moves as S at the last place divided by its factor."""
        noise = rounded_gaussian(multiplier * self.bound * (1 + 1e-12), self.cells.groups, generator=self.generator)
        found: NDArray[np.float64] = (self.cells.total + noise).astype(np.float64)
        return found


@dataclass(frozen=True)
class _Bracket:
    """The cell that was found, and the tightest places around it where S was clearly below and above 0.

    `s_low` and `s_high` are the answers there, infinite where there were none.
    """

    cell: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    s_low: NDArray[np.float64]
    s_high: NDArray[np.float64]

    def distances(self, unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How many cells back and ahead S takes to change by this much, going by its slope up to the bracket."""
        with np.errstate(divide="ignore", invalid="ignore"):
            back = (self.cell - self.low) * unit / -self.s_low
            ahead = (self.high - self.cell) * unit / self.s_high
        back = np.where(np.isfinite(self.s_low), back, math.inf)
        ahead = np.where(np.isfinite(self.s_high), ahead, math.inf)
        return np.minimum(back, 2 * ahead), np.minimum(ahead, 2 * back)


def _searched(question: _Question, multiplier: float) -> _Bracket:
    """The bisection."""
    cells, clear = question.cells, _CLEAR * question.spread(multiplier)
    low = np.full(cells.groups, cells.first - 1, dtype=np.int64)
    high = np.full(cells.groups, cells.last, dtype=np.int64)
    clear_low, clear_high = low.astype(float), high.astype(float)
    s_low, s_high = np.full(cells.groups, -math.inf), np.full(cells.groups, math.inf)
    for _ in range(_rounds(cells.scale)):
        middle = (low + high) // 2
        answer = question.asked(middle, multiplier)
        negative = answer < 0
        low, high = np.where(negative, middle, low), np.where(negative, high, middle)
        nearer = (answer < -clear) & (middle >= clear_low)
        clear_low, s_low = np.where(nearer, middle, clear_low), np.where(nearer, answer, s_low)
        nearer = (answer > clear) & (middle <= clear_high)
        clear_high, s_high = np.where(nearer, middle, clear_high), np.where(nearer, answer, s_high)
    return _Bracket(high, clear_low, clear_high, s_low, s_high)


def _beside(
    cells: Cells, cell: NDArray[np.int64], back: NDArray[np.float64], ahead: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two places this far on either side of the cell that was found; its own edges if that is less than a cell."""
    farthest = cells.scale.span / _COARSE
    left = cell - 1 - np.floor(np.minimum(back, farthest)).astype(np.int64)
    right = cell + np.floor(np.minimum(ahead, farthest)).astype(np.int64)
    return np.maximum(left, cells.first - 1), np.minimum(right, cells.last)


@dataclass(frozen=True)
class _Line:
    """S at two places, in units of its noise."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    s_left: NDArray[np.float64]
    s_right: NDArray[np.float64]

    @property
    def rise(self) -> NDArray[np.float64]:
        return self.s_right - self.s_left

    def jump(self, cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """The zero where many rows share one cell: S jumps over 0 within it, or somewhere between the two places."""
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = self.left + 1 + np.clip(-self.s_left / self.rise, 0.0, 1.0)
        return np.where(self.right - self.left == 1, inside, cell + 0.5)

    def zero(self, cell: NDArray[np.int64], afar: NDArray[np.float64]) -> NDArray[np.float64]:
        """The zero where S is smooth: where its slope leads, else the cell that was found.

        The slope is that between the two places, and that from `afar`, which is good to a sixth or so.
        """
        apart = np.maximum(self.right - self.left, 1)  # both may be the edge before the first cell
        slope = np.maximum(self.rise, 0.0) / apart
        with np.errstate(divide="ignore", invalid="ignore"):
            trust = np.where(afar > 0, 2 / (_ROUGH * afar * apart) ** 2, 0.0)
            slope = (slope + np.where(trust > 0, trust * afar, 0.0)) / (1 + trust)
            moved = (self.left + self.right) / 2 + 1 - (self.s_left + self.s_right) / 2 / slope
        return np.where(slope * apart > _FLAT, moved, cell + 0.5)
