r"""Quantiles, MIN and MAX of many groups at once.

Values are put into cells of a public grid, fine near 0 and coarser in proportion beyond: cell i of sign s holds
|x| = q (2^{i/R} - 1). The engine returns the weight of every group and cell, an exact integer: a row of unit u weighs
w_u = min(1, C / norm of the unit's numbers of rows), so that one unit moves any sum over cells, as a vector over
groups, by at most C. All the rest happens on these weights.

A quantile of order p is the place where

    S(t) = (1 - p) (weight at or below t) - p (weight above t)

changes sign; one unit changes S by at most max(p, 1 - p) C. MIN and MAX are where the weight at or below (above) t
comes to a few times the noise: the extreme value itself belongs to one person and cannot be told.

**Gaussian path.** Bisection for all groups at once, each round a Gaussian mechanism with a small share of the price.
From its answers every group keeps the tightest places where S was clearly below and clearly above 0. There the rest of
the price is spent on two more values of S, and the quantile is interpolated between them: the noise that counts is
that of one question with nearly the whole price, not of fifteen.

**Laplace path.** An exponential mechanism over the cells of each group with score -|S(t)|. [Smith 2011]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.noise import exponential_choice, rounded_gaussian
from discreet.query.laws import two_sided
from discreet.query.moments import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.plan import Aggregate

__all__ = ["Cells", "RankAnswer", "Scale", "Units", "measure_rank"]

_PER_OCTAVE = 512
_SEARCH = 0.35  # share of the price for the bisection
_CLEAR = 4.0  # standard deviations that make a sign clear
_FEW = 4.0  # MIN and MAX leave out about so many standard deviations of weight
_FAR = 3.0
_WIDEST = 2.0**29.5  # Gaussian noise is drawn up to 10^9


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
        room = math.floor(math.log2(_WIDEST / (bound * max(_each(noise, scale), 1.0))))
        if room < 4:
            raise InvalidArgument("epsilon", 1 / noise, "a quantile needs more than this; pass a larger epsilon")
        parts = min(10, max(room - 6, 2))
        return cls(1 << min(12, room - parts), 1 << parts)


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

    def _cell(self, value: float) -> int:
        if self._even is not None:
            return math.floor((value - self.ends[0]) / self._even)
        return int(math.copysign(math.floor(math.log2(1 + abs(value) / self._quantum) * _PER_OCTAVE), value))

    def clamped(self, argument: str) -> str:
        """SQL of a value within the ends, a DOUBLE; NaN stays NaN."""
        low, high = self.ends
        x = f"CAST({argument} AS DOUBLE)"
        return f"CASE WHEN isnan({x}) THEN {x} ELSE least(greatest({x}, {number(low)}), {number(high)}) END"

    def sql(self, x: str) -> str:
        """SQL of the cell of a clamped value: an INTEGER, never an error."""
        first, last = self.cells
        if self._even is not None:
            place = f"floor(({x} - {number(self.ends[0])}) / {number(self._even)})"
        elif self.ends[0] >= 0:
            place = f"floor(log2(1 + {x} / {number(self._quantum)}) * {_PER_OCTAVE})"
        else:
            place = f"sign({x}) * floor(log2(1 + abs({x}) / {number(self._quantum)}) * {_PER_OCTAVE})"
        return f"CAST(least(greatest({place}, {first}), {last}) AS INTEGER)"

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
        self.groups, self.scale = groups, scale
        self.first, self.last = scale.cells
        self._span = self.last - self.first + 2
        key = group.astype(np.int64) * self._span + (cell.astype(np.int64) - self.first)
        order = np.argsort(key, kind="stable")
        self._key = key[order]
        self._sums = np.concatenate([[0], np.cumsum(weight.astype(np.int64)[order])])
        starts = np.arange(groups, dtype=np.int64) * self._span
        self._start = self._sums[np.searchsorted(self._key, starts)]
        self.total = self._sums[np.searchsorted(self._key, starts + self._span)] - self._start
        self._offset = starts

    def below(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each group the weight in cells up to and including this one."""
        found: NDArray[np.int64] = (
            self._sums[np.searchsorted(self._key, self._offset + (place - self.first), side="right")] - self._start
        )
        return found

    def of_group(self, g: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The occupied cells of one group and the weight up to and including each."""
        low, high = np.searchsorted(self._key, [self._offset[g], self._offset[g] + self._span])
        return self._key[low:high] - self._offset[g] + self.first, self._sums[low + 1 : high + 1] - self._start[g]


@dataclass(frozen=True)
class RankAnswer:
    """The quantile of each group as a place on the grid, and what was measured around it.

    `below` and `above` are S at the lower and the upper edge of the cell `cell`, in units of their noise; `left` and
    `right` say how many places S takes to change by one such unit on either side (infinite where that is unknown). All
    are NaN where the place was chosen by an exponential mechanism, or is an extreme: no interval is known for those.
    """

    scale: Scale
    place: NDArray[np.float64]
    cell: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]

    @classmethod
    def alone(cls, scale: Scale, place: NDArray[np.float64]) -> RankAnswer:
        """A place of which nothing else is known."""
        unknown = np.full(place.shape, math.nan)
        return cls(scale, place, unknown, unknown, unknown, unknown, unknown)

    @property
    def values(self) -> NDArray[np.float64]:
        """The quantiles."""
        return self.scale.value(self.place)

    def interval(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The places where S may be 0 if the noise at both edges is within its quantile: at least the cell itself."""
        q = two_sided(confidence, gaussian=True)
        first, last = self.scale.cells
        with np.errstate(invalid="ignore"):
            low = self.cell - np.where(self.below > -q, (self.below + q) * self.left, 0.0)
            high = self.cell + 1 + np.where(self.above < q, (q - self.above) * self.right, 0.0)
        low, high = np.clip(low, first, last + 1), np.clip(high, first, last + 1)
        return self.scale.value(low), self.scale.value(high)


@dataclass(frozen=True)
class _Statistic:
    """S as an integer: a * below - b * above + shift, increasing in t."""

    a: int
    b: int
    shift: int

    @classmethod
    def of(cls, aggregate: Aggregate, parts: int, reach: float) -> _Statistic:
        if aggregate.function == "max":
            return cls(0, parts, round(reach * parts))
        if aggregate.function == "min":
            return cls(parts, 0, -round(reach * parts))
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
    """The noise multiplier of one round of the bisection, with this share of the price for all of them."""
    return noise * math.sqrt(_rounds(scale) / search) * (1 + 1e-12)


def measure_rank(
    cells: Cells,
    aggregate: Aggregate,
    *,
    bound: float,
    units: Units,
    noise: float,
    gaussian: bool,
    generator: Generator | None,
) -> RankAnswer:
    """The quantile of every group; one unit moves weights by at most `bound` rows (l2 over groups, or one group alone).

    `noise` is the noise multiplier of the whole measure; on the Laplace path its inverse is the epsilon.
    """
    size = bound * units.weight
    if gaussian:
        return _bisected(cells, aggregate, size, units.parts, noise=noise, generator=generator)
    return _chosen(cells, aggregate, size, units.parts, noise=noise, generator=generator)


def _bisected(
    cells: Cells, aggregate: Aggregate, bound: float, parts: int, *, noise: float, generator: Generator | None
) -> RankAnswer:
    extreme = aggregate.function in ("min", "max")
    each = _each(noise, cells.scale, 1.0 if extreme else _SEARCH)
    statistic = _Statistic.of(aggregate, parts, _FEW * each * bound)
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
    if extreme:  # where few rows are left there is no slope to go by
        return RankAnswer.alone(cells.scale, high.astype(np.float64) + 0.5)
    # The bisection has found the cell `high`, give or take its noise. Most of the price goes to S at both edges of it.
    last = noise * math.sqrt(2 / (1 - _SEARCH)) * (1 + 1e-12)
    unit = last * statistic.largest * bound
    below = asked(np.maximum(high - 1, cells.first - 1), last) / unit
    above = asked(high, last) / unit
    middle_s = (below + above) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.maximum(high - clear_low, 1.0) / np.maximum(middle_s - s_low / unit, 1e-9)
        right = np.maximum(clear_high - high, 1.0) / np.maximum(s_high / unit - middle_s, 1e-9)
    left = np.where(np.isfinite(s_low), left, math.inf)
    right = np.where(np.isfinite(s_high), right, math.inf)
    # Many rows in one cell: S jumps over 0 within it. Otherwise S is smooth, and the zero is where its slope leads.
    jumps = (below < 0) & (above > 0) & (above - below > _CLEAR)
    inside = high + np.clip(-below / np.maximum(above - below, 1e-9), 0.0, 1.0)
    slope = np.where(middle_s > 0, left, right)
    moved = high + 0.5 - np.where(np.isfinite(slope), middle_s * np.where(np.isfinite(slope), slope, 0.0), 0.0)
    moved = np.clip(moved, clear_low + 1, np.maximum(clear_high + 1, clear_low + 1))
    place = np.where(jumps, inside, moved)
    return RankAnswer(cells.scale, place, high.astype(float), below, above, left, right)


def _chosen(
    cells: Cells, aggregate: Aggregate, bound: float, parts: int, *, noise: float, generator: Generator | None
) -> RankAnswer:
    """An exponential mechanism for each group.

    A unit moves the weight of group g by c_g with a sum of at most the bound, and each choice is
    (epsilon c_g / bound)-DP for it, because the loss of an exponential mechanism grows in proportion to the change of
    its scores. So all choices together are epsilon-DP, in however many groups the unit counts.
    """
    epsilon = 1 / noise / (1 + 1e-12)
    # Far beyond all values there may be many cells, each with the score -reach: together they must not win.
    reach = _FAR * bound * math.log(cells.last - cells.first + 2) / epsilon
    statistic = _Statistic.of(aggregate, parts, reach)
    sensitivity = statistic.largest * bound
    factor = Fraction(epsilon) / (2 * math.ceil(sensitivity))
    every = np.arange(cells.first, cells.last + 1)
    # Rounded to whole numbers, which is as good a preference; it has nothing to do with the data.
    preference = np.rint(np.minimum(cells.scale.distance(every) / float(factor), 2.0**60)).astype(np.int64)
    places = []
    for g in range(cells.groups):
        occupied, sums = cells.of_group(g)
        below = np.concatenate([[0], sums])[np.searchsorted(occupied, every, side="right")]
        value = statistic.a * below - statistic.b * (cells.total[g] - below) + statistic.shift
        chosen = int(exponential_choice(-(np.abs(value) + preference), scale=factor, generator=generator))
        # S belongs to the upper edge of a cell; of whole numbers the cell itself is the value.
        places.append(every[chosen] + (0.5 if cells.scale.whole else 1.0))
    return RankAnswer.alone(cells.scale, np.array(places, dtype=float))
