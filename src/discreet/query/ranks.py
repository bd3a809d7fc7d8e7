r"""Quantiles, MIN and MAX of many groups at once.

Values are put into cells of a public grid, fine near 0 and coarser in proportion beyond: cell i of sign s holds
|x| = q (2^{i/R} - 1). The engine returns the weight of every group and cell, an exact integer: a row of unit u weighs
w_u = min(1, C / norm of the unit's numbers of rows), so that one unit moves any sum over cells, as a vector over
groups, by at most C. All the rest happens on these weights.

A quantile of order p is the place where

    S(t) = (1 - p) (weight at or below t) - p (weight above t)

changes sign; one unit changes S by at most max(p, 1 - p) C. MIN and MAX are where the weight at or below (above) t
comes to a few times the noise: the extreme value itself belongs to one person and cannot be told.

**Gaussian path.** Bisection for all groups at once, each round a Gaussian mechanism with a small share of the price;
one more such question is the weight of each group. From the answers every group keeps the tightest places where S was
clearly below and clearly above 0. The rest of the price is spent on two more values of S, on either side of the cell
that was found, and the quantile is where the line through them is 0: the noise that counts is that of one question
with nearly the whole price, not of fifteen. All questions are Gaussian mechanisms about S, which one unit moves by at
most max(p, 1 - p) C over all groups, at places that depend on earlier answers alone: adaptive composition.

The interval is the set of places where S may be 0 within the noise, if S is straight there. It is for the quantile of
all *rows*, each counted once: what weighing them adds is in it, as if weights and values had nothing to do with each
other, with a variance of weights of 1/20.

On the Laplace path quantiles are chosen by exponential mechanisms: see `ranking`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.noise import rounded_gaussian
from discreet.query.laws import two_sided
from discreet.query.moments import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.plan import Aggregate

__all__ = ["VARIED", "Cells", "RankAnswer", "Scale", "Statistic", "Units", "beyond", "bisected"]

_PER_OCTAVE = 512
_SEARCH = 0.35  # share of the price for the bisection
_CLEAR = 4.0  # standard deviations that make a sign clear
_APART = 2.5  # S is measured where it is expected to be so many units of its noise from 0
_SIDE = 0.3  # … and no farther than this part of the rows on the smaller side
_ROUGH = 0.15  # relative error of a slope that is taken from afar
_FLAT = 0.5  # S that rises by less between them has no slope to speak of
_BENT = 1.15  # variance in intervals, for S that is not straight
_JUMP = 12.0  # S that rises by more between them has jumped
_COARSE = 16  # the two places are no farther from the cell than this part of the grid
VARIED = 0.05  # variance of the rows' weights, where nine units in ten weigh fully
_FEW = 4.0  # MIN and MAX leave out about so many standard deviations of weight
_HELD = 0.95  # the confidence of an interval that was chosen and not measured
_WIDEST = 2.0**39.5  # Gaussian noise is drawn up to 10^12
_ROOM = 4  # a row has at least four parts, and so has the probability 1: 2^4 steps
_LARGEST = 2.0**60  # of the numbers that are no counts, what fits into 64 bits beside these


@dataclass(frozen=True)
class Units:
    """How finely rows and probabilities are counted: a full row is `weight`, the probability 1 is `parts`."""

    weight: int
    parts: int

    @classmethod
    def of(cls, scale: Scale, bound: float, noise: float, *, gaussian: bool) -> Units:
        """As fine as the noise can be drawn: its scale is at most noise * weight * parts * bound."""
        if not gaussian:
            return cls(1 << 12, 1 << 10)
        room = max(_ROOM, math.floor(math.log2(_WIDEST / (bound * max(_each(noise, scale), 1.0)))))
        parts = min(10, max(room - 6, 2))
        return cls(1 << min(12, room - parts), 1 << parts)

    @classmethod
    def most(cls, scale: Scale, noise: float) -> float:
        """The largest bound for which noise can be drawn on the Gaussian path."""
        return _WIDEST / 2.0**_ROOM / max(_each(noise, scale), 1.0)


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
        """The first and the last cell."""
        low, high = self.ends
        return self._cell(low), self._cell(high)

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
        """SQL of the number of the cell of a clamped value, a DOUBLE, where rounding may be off by one at the ends."""
        if self._even is not None:
            return f"floor(({x} - {number(self.ends[0])}) / {number(self._even)})"
        if self.ends[0] >= 0:
            return f"floor(log2(1 + {x} / {number(self._quantum)}) * {_PER_OCTAVE})"
        return f"sign({x}) * floor(log2(1 + abs({x}) / {number(self._quantum)}) * {_PER_OCTAVE})"

    def within(self, place: str) -> str:
        """SQL of the cell itself, an INTEGER that is one of `cells`; never an error."""
        first, last = self.cells
        return (
            f"CAST(CASE WHEN {place} > {number(last)} THEN {number(last)} WHEN {place} < {number(first)} "
            f"THEN {number(first)} ELSE {place} END AS INTEGER)"
        )

    def distance(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """A public preference where no bounds are declared: how many times e a value is larger than 1, else 0.

        There are thousands of cells that no value reaches. Without it they would win together over the few that matter.
        """
        if self.bounds is not None or self._even is not None:
            return np.zeros(cells.size)
        return np.log1p(np.abs(self.value(cells.astype(np.float64))))

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


@dataclass(frozen=True)
class RankAnswer:
    """The quantile of each group as a place on the grid, and what was measured around it.

    S was measured at the places `left` and `right`: `s_left` and `s_right`, in units of their noise. `blur` is the
    standard deviation of S at the true quantile that comes from weighing rows, in the same unit. `floor` and `ceiling`
    are the places between which the quantile lies for certain, or almost. S is NaN where it was not measured: then left
    and right are the ends of the interval at the confidence 0.95, and if they are NaN as well, all that is known lies
    between floor and ceiling.
    """

    scale: Scale
    place: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    s_left: NDArray[np.float64]
    s_right: NDArray[np.float64]
    blur: NDArray[np.float64]
    floor: NDArray[np.float64]
    ceiling: NDArray[np.float64]

    @classmethod
    def alone(
        cls,
        scale: Scale,
        place: NDArray[np.float64],
        floor: NDArray[np.float64] | None = None,
        ceiling: NDArray[np.float64] | None = None,
    ) -> RankAnswer:
        """A place of which nothing else is known, or only how far the truth can be."""
        unknown = np.full(place.shape, math.nan)
        ends = (unknown if floor is None else floor, unknown if ceiling is None else ceiling)
        return cls(scale, place, unknown, unknown, unknown, unknown, unknown, *ends)

    @property
    def values(self) -> NDArray[np.float64]:
        """The quantiles."""
        return self.scale.value(self.place)

    def interval(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All places where S may be 0 within its noise, if S is straight between and around the two measured ones.

        At left + x (right - left) it is s_left + x (s_right - s_left) with the variance (1 - x)^2 + x^2 + blur^2, so
        the places form the solutions of a quadratic inequality [Fieller 1954]. The variance is taken a seventh larger,
        because S is not quite straight.
        """
        chosen = np.isnan(self.s_left) & ~np.isnan(self.left)
        if chosen.all() and chosen.size:
            return self._widened(max(1.0, (1 - _HELD) / (1 - confidence)))
        q = _BENT * two_sided(confidence, gaussian=True) ** 2
        rise = self.s_right - self.s_left
        with np.errstate(invalid="ignore", divide="ignore"):
            # (s + x rise)^2 <= q (1 - 2x + 2x^2 + blur^2), as a x^2 + 2 b x + c <= 0
            a = rise**2 - 2 * q
            b = self.s_left * rise + q
            c = self.s_left**2 - q * (1 + self.blur**2)
            root = np.sqrt(np.maximum(b * b - a * c, 0.0))
            low, high = (-b - root) / a, (-b + root) / a
            bounded = (a > 0) & (rise > 0)
            jump = bounded & (rise > _JUMP * (1 + self.blur))
            low = np.where(jump, np.minimum(low, 0.0), low)
            high = np.where(jump, np.maximum(high, 1.0), high)
            span = self.right - self.left
            low = np.where(bounded, self.left + low * span, -math.inf)
            high = np.where(bounded, self.left + high * span, math.inf)
            low = np.where(np.isnan(self.left), self.floor, np.clip(low, self.floor, self.ceiling))
            high = np.where(np.isnan(self.left), self.ceiling, np.clip(high, self.floor, self.ceiling))
        return self._values_of(low, high)

    def _widened(self, times: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The chosen interval with its distances from the middle taken so many times."""
        middle, half = (self.left + self.right) / 2, (self.right - self.left) / 2
        low, high = middle - times * half, middle + times * half
        return self._values_of(np.maximum(low, self.floor), np.minimum(high, self.ceiling))

    def _values_of(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        low, high = np.minimum(low, self.place), np.maximum(high, self.place)
        if self.scale.whole:  # a cell is a whole number: the one that holds the place before an upper edge
            high = np.maximum(np.ceil(high) - 1, low)
        return self.scale.value(low), self.scale.value(high)


@dataclass(frozen=True)
class Statistic:
    """S as an integer: a * below - b * above + shift, increasing in t."""

    a: int
    b: int
    shift: int

    @classmethod
    def of(cls, aggregate: Aggregate, parts: int, reach: float) -> Statistic:
        if aggregate.function == "max":
            return cls(0, parts, round(min(reach * parts, _LARGEST)))
        if aggregate.function == "min":
            return cls(parts, 0, -round(min(reach * parts, _LARGEST)))
        assert aggregate.probability is not None
        part = min(max(round(aggregate.probability * parts), 1), parts - 1)
        return cls(parts - part, part, 0)

    @property
    def largest(self) -> int:
        return max(self.a, self.b)

    def of_cells(self, cells: Cells, place: NDArray[np.int64]) -> NDArray[np.int64]:
        below = cells.below(place)
        value: NDArray[np.int64] = self.a * below - self.b * (cells.total - below) + self.shift
        return value


def _rounds(scale: Scale) -> int:
    first, last = scale.cells
    return max(1, (last - first + 1).bit_length())


def _each(noise: float, scale: Scale, search: float = _SEARCH) -> float:
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
    """The Gaussian path; `weighed` is the weight of a full row if others weigh less, else 0."""
    extreme = aggregate.function in ("min", "max")
    each = _each(noise, cells.scale, 1.0 if extreme else _SEARCH)
    statistic = Statistic.of(aggregate, parts, _FEW * each * bound)
    spread = each * statistic.largest * bound

    def asked(place: NDArray[np.int64], multiplier: float) -> NDArray[np.int64]:
        scale = multiplier * statistic.largest * bound * (1 + 1e-12)
        answer: NDArray[np.int64] = statistic.of_cells(cells, place) + rounded_gaussian(
            scale, cells.groups, generator=generator
        )
        return answer

    low = np.full(cells.groups, cells.first - 1, dtype=np.int64)
    high = np.full(cells.groups, cells.last, dtype=np.int64)
    clear_low, clear_high = low.astype(float), high.astype(float)
    s_low, s_high = np.full(cells.groups, -math.inf), np.full(cells.groups, math.inf)
    for _ in range(_rounds(cells.scale)):
        middle = (low + high) // 2
        answer = asked(middle, each)
        negative = answer < 0
        low, high = np.where(negative, middle, low), np.where(negative, high, middle)
        nearer = (answer < -_CLEAR * spread) & (middle >= clear_low)
        clear_low, s_low = np.where(nearer, middle, clear_low), np.where(nearer, answer, s_low)
        nearer = (answer > _CLEAR * spread) & (middle <= clear_high)
        clear_high, s_high = np.where(nearer, middle, clear_high), np.where(nearer, answer, s_high)
    if extreme:
        return beyond(cells, aggregate, high.astype(np.float64) + 0.5)
    # The bisection has found the cell `high`, give or take its noise. The rest of the price goes to S at two places on
    # either side, as far as S takes to change by a few units of their noise; next to the cell if that is less than one.
    total = asked(np.full(cells.groups, cells.last), each) / max(statistic.a, 1)
    last = noise * math.sqrt(2 / (1 - _SEARCH)) * (1 + 1e-12)
    unit = last * statistic.largest * bound
    with np.errstate(divide="ignore", invalid="ignore"):
        back = (high - clear_low) * unit / -s_low
        ahead = (clear_high - high) * unit / s_high
    span = float(cells.last - cells.first + 1)
    back = np.where(np.isfinite(s_low), back, math.inf)
    ahead = np.where(np.isfinite(s_high), ahead, math.inf)
    back, ahead = np.minimum(back, 2 * ahead), np.minimum(ahead, 2 * back)
    # No farther than a part of the rows on the smaller side, where S bends.
    p = statistic.a / parts
    reach = np.clip(_SIDE * min(p, 1 - p) * parts * total / unit, 0.1, _APART)
    farthest = span / _COARSE
    left = high - 1 - np.floor(np.minimum(reach * back, farthest)).astype(np.int64)
    right = high + np.floor(np.minimum(reach * ahead, farthest)).astype(np.int64)
    left, right = np.maximum(left, cells.first - 1), np.minimum(right, cells.last)
    s_left, s_right = asked(left, last) / unit, asked(right, last) / unit
    rise = s_right - s_left
    rows = np.maximum(total, 0.0) * weighed
    blur = np.sqrt(VARIED * rows * p * (1 - p)) * parts / unit
    # Many rows in one cell: S jumps over 0 within it, or between the two places. Otherwise S is smooth, and the zero is
    # where its slope leads: that between the two places, and that from afar, which is good to a sixth or so.
    near = (right - left) == 1
    jumps = rise > _JUMP * (1 + blur)
    apart = np.maximum(right - left, 1)  # both may be the edge before the first cell
    slope = np.maximum(rise, 0.0) / apart
    with np.errstate(divide="ignore", invalid="ignore"):
        afar = 1 / np.where((s_left + s_right) > 0, back, ahead)
        trust = np.where(afar > 0, 2 / (_ROUGH * afar * apart) ** 2, 0.0)
        slope = (slope + np.where(trust > 0, trust * afar, 0.0)) / (1 + trust)
        moved = (left + right) / 2 + 1 - (s_left + s_right) / 2 / slope
        inside = left + 1 + np.clip(-s_left / rise, 0.0, 1.0)
    moved = np.where(slope * apart > _FLAT, moved, high + 0.5)
    place = np.where(jumps, np.where(near, inside, high + 0.5), moved)
    floor, ceiling = clear_low + 1, np.maximum(clear_high + 1, clear_low + 1)
    return RankAnswer(
        scale=cells.scale,
        place=np.clip(place, floor, ceiling),
        left=left + 1.0,
        right=right + 1.0,
        s_left=s_left,
        s_right=s_right,
        blur=blur,
        floor=floor,
        ceiling=ceiling,
    )


def beyond(cells: Cells, aggregate: Aggregate, place: NDArray[np.float64]) -> RankAnswer:
    """MIN or MAX: several standard deviations of weight lie beyond the place, and the extreme is the last of them."""
    # Without declared bounds nothing is known beyond the place.
    known = cells.scale.bounds is not None
    first = np.full(place.shape, float(cells.first) if known else math.nan)
    last = np.full(place.shape, cells.last + 1.0 if known else math.nan)
    ends = (place, last) if aggregate.function == "max" else (first, place)
    return RankAnswer.alone(cells.scale, place, *ends)
