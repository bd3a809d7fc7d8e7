"""The quantile of each group as a place on the grid, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from discreet.query.laws import two_sided
from discreet.query.ranks.support import ENOUGH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.ranks.scale import Scale

__all__ = ["JUMP", "RankAnswer"]

JUMP = 12.0  # S that rises by more between the two places where it was measured has jumped
_BENT = 1.08  # variance in intervals, for S that is not straight
_HELD = 0.95  # the confidence of an interval that was chosen and not measured
_LEAST = 1e-18  # no interval fails less often: then it is everything


@dataclass(frozen=True)
class RankAnswer:
    """The quantile of each group as a place on the grid, and what was measured around it.

    S was measured at the places `left` and `right`: `s_left` and `s_right`, in units of their noise. `blur` is the
    standard deviation of S at the true quantile that comes from weighing rows, in the same unit. `floor` and `ceiling`
    are the places between which the quantile lies for certain, or almost. S is NaN where it was not measured: then left
    and right are the ends of the interval at the confidence 0.95, and if they are NaN as well, all that is known lies
    between floor and ceiling. `doubt` says whether there are rows enough (see `support`).
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
    doubt: NDArray[np.float64]

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
        return cls(scale, place, unknown, unknown, unknown, unknown, unknown, *ends, np.full(place.shape, ENOUGH))

    @classmethod
    def extreme(cls, scale: Scale, place: NDArray[np.float64], *, function: str) -> RankAnswer:
        """MIN or MAX: several standard deviations of weight lie beyond the place, and the extreme is the last of them.

        Without declared bounds nothing is known beyond the place.
        """
        known = scale.bounds is not None
        first = np.full(place.shape, float(scale.cells[0]) if known else math.nan)
        last = np.full(place.shape, scale.cells[1] + 1.0 if known else math.nan)
        ends = (place, last) if function == "max" else (first, place)
        return cls.alone(scale, place, *ends)

    def joined(self, other: RankAnswer, where: NDArray[np.bool_]) -> RankAnswer:
        """This answer for the groups where that is so, in their order, and the other one for the others."""
        found = {}
        for name in (field.name for field in fields(self) if field.name != "scale"):
            column = np.empty(where.shape)
            column[where], column[~where] = getattr(self, name), getattr(other, name)
            found[name] = column
        return RankAnswer(self.scale, **found)

    @property
    def values(self) -> NDArray[np.float64]:
        """The quantiles."""
        return self.scale.value(self.place)

    def interval(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends between which the quantile is with this probability."""
        bought = np.isnan(self.s_left) & ~np.isnan(self.left)
        low, high = self._measured(confidence)
        wide, far = self._widened(max(1.0, (1 - _HELD) / max(1 - confidence, _LEAST)))
        low, high = np.where(bought, wide, low), np.where(bought, far, high)
        return self._values_of(low, high)

    def _measured(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All places where S may be 0 within its noise, if S is straight between and around the two measured ones.

        At left + x (right - left) it is s_left + x (s_right - s_left) with the variance (1 - x)^2 + x^2 + blur^2, so
        the places form the solutions of a quadratic inequality [Fieller 1954]. The variance is taken a twelfth larger,
        because S is not quite straight.

        Where it has no slope to speak of, the solutions have no end, or none on one side. S increases all the same: if
        it is below 0 at a place by more than its noise, the quantile is not before that place, and so on the other
        side. Each end fails with at most half of the probability, because there is one place to fail at.
        """
        z = math.sqrt(_BENT) * two_sided(confidence, gaussian=True)
        q = z * z
        rise = self.s_right - self.s_left
        with np.errstate(invalid="ignore", divide="ignore"):
            # (s + x rise)^2 <= q (1 - 2x + 2x^2 + blur^2), as a x^2 + 2 b x + c <= 0
            a = rise**2 - 2 * q
            b = self.s_left * rise + q
            c = self.s_left**2 - q * (1 + self.blur**2)
            root = np.sqrt(np.maximum(b * b - a * c, 0.0))
            low, high = (-b - root) / a, (-b + root) / a
            bounded = (a > 0) & (rise > 0)
            jump = bounded & (rise > JUMP * (1 + self.blur))
            low = np.where(jump, np.minimum(low, 0.0), low)
            high = np.where(jump, np.maximum(high, 1.0), high)
            span, clear = self.right - self.left, z * np.sqrt(1 + self.blur**2)
            below = np.where(self.s_right < -clear, self.right, np.where(self.s_left < -clear, self.left, -math.inf))
            above = np.where(self.s_left > clear, self.left, np.where(self.s_right > clear, self.right, math.inf))
            low = np.where(bounded, self.left + low * span, below)
            high = np.where(bounded, self.left + high * span, above)
            low = np.where(np.isnan(self.left), self.floor, np.clip(low, self.floor, self.ceiling))
            high = np.where(np.isnan(self.left), self.ceiling, np.clip(high, self.floor, self.ceiling))
        return low, high

    def _widened(self, times: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The chosen ends with their distances from the place taken so many times."""
        low, high = self.place - times * (self.place - self.left), self.place + times * (self.right - self.place)
        return np.maximum(low, self.floor), np.minimum(high, self.ceiling)

    def _values_of(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        low, high = np.minimum(low, self.place), np.maximum(high, self.place)
        if self.scale.whole:  # a cell is a whole number: the one that holds the place before an upper edge
            high = np.ceil(high) - 1
            high = np.where(np.isnan(low), high, np.maximum(high, low))  # of MIN without bounds nothing is known below
        least, most = self.scale.value(low), self.scale.value(high)
        if self.scale.open:  # in the first and the last cell is also what lies beyond
            first, last = self.scale.cells
            least, most = np.where(low < first + 1, -math.inf, least), np.where(high > last, math.inf, most)
        return least, most
