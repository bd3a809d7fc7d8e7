r"""Smooth upper bounds of a local sensitivity, in whole numbers: no rounding can break their smoothness.

Let A_t(x), t = 0, 1, ..., bound how far a statistic can move if first t people and then one more change, so that
A_t(x) <= A_{t+1}(x') for neighbours x and x'. Take levels s_0 < s_1 < ... that do not depend on data and grow by a
factor of at most 1 + growth, let j(A) be the first level that is at least A, and

    J(x) = max(0, max over t of j(A_t(x)) - t).

Then s_{J(x)} >= A_0(x), and J(x) <= J(x') + 1 because j(A_t(x)) - t <= j(A_{t+1}(x')) - (t + 1) + 1. So s_J bounds the
local sensitivity and changes by a factor of at most 1 + growth between neighbours: it is a smooth upper bound in the
sense of [Nissim et al. 2007], rounded up to the next level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Levels", "laplace_growth", "level_of_rank"]

_FRACTION_BITS = 24
_MOST_LEVELS = 1 << 22


@dataclass(frozen=True)
class Levels:
    """s_j in units of 2^-24 steps: from `least` steps up to at least `most`, each at most 1 + growth times the last."""

    least: int
    most: int
    growth: Fraction

    def __post_init__(self) -> None:
        if math.log(self.most / self.least) / math.log1p(float(self.growth)) > _MOST_LEVELS:
            raise InvalidArgument("epsilon", f"growth {float(self.growth):.3g}", "pass a larger epsilon or delta")

    @property
    def units(self) -> NDArray[np.int64]:
        """The levels, in ascending order."""
        return _units(self.least, self.most, self.growth)

    def scale(self, level: int) -> Fraction:
        """s_level in steps."""
        return Fraction(int(self.units[level]), 1 << _FRACTION_BITS)

    def first(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """j(A) for whole numbers of steps A."""
        return np.searchsorted(self.units, bounds << _FRACTION_BITS, side="left").astype(np.int64)


@lru_cache(maxsize=8)
def _units(least: int, most: int, growth: Fraction) -> NDArray[np.int64]:
    top, bottom = growth.numerator + growth.denominator, growth.denominator
    units, end = [least << _FRACTION_BITS], most << _FRACTION_BITS
    while units[-1] < end:
        units.append(units[-1] * top // bottom)
    return np.array(units, dtype=np.int64)


def level_of_rank(ordered: NDArray[np.int64], rank: int, *, lower: int, upper: int, levels: Levels) -> int:
    """J for the `rank`-th smallest (from 1) of whole numbers in [lower, upper].

    With y_i = lower for i < 1 and upper for i > n,

        A_t = max over 0 <= a <= t + 1 of y_{rank+a} - y_{rank+a-t-1},

    whether people are added, removed or replaced. Only t below the number of levels T can matter, so the time is O(T^2)
    at worst, whatever n; mostly O(T), because cheap bounds of A_t from both sides rule most of them out.
    """
    reach = levels.units.size + 1
    places = rank - 1 + np.arange(-reach, reach + 1)
    inside = (places >= 0) & (places < ordered.size)
    values = np.where(places < 0, lower, upper).astype(np.int64)
    values[inside] = ordered[places[inside]]
    above, below = values[reach:], values[reach::-1]  # y_{rank+a} and y_{rank-b}
    t = np.arange(reach)
    most = levels.first(above[1:] - below[1:]) - t
    least = levels.first(np.maximum(above[1:] - below[0], above[0] - below[1:])) - t
    best = max(0, int(least.max()))
    for place in np.argsort(-most, kind="stable"):
        if most[place] <= best:
            break
        end = place + 1
        bound = (above[: end + 1] - below[end::-1]).max()
        best = max(best, int(levels.first(np.array([bound]))[0]) - int(place))
    return best


def laplace_growth(epsilon: Fraction, delta: Fraction, *, least_scale: Fraction) -> Fraction:
    r"""The largest growth for which Laplace noise of scale (2 / epsilon) s_J is (epsilon, delta)-DP.

    Proved in docs/proofs/stability.md: for a growth g <= epsilon / 2 and noise scales of at least b steps,

        delta = (e^{-h/g} + e^{-(h + epsilon/2)/g}) g / ((1 + e^{-1/b}) (1 + g)),     h = epsilon / 2 + ln(1 + g) - e_b,

    where e_b = -ln(1 - 1/(12 b^2)), or ln(1 + g) if that is less, is what the lattice adds. [Nissim et al. 2007] have
    g = epsilon / (2 ln(2 / delta)), which is smaller by a third and more.
    """
    half, scale = float(epsilon) / 2, float(least_scale)
    excess = -math.log1p(-1 / (12 * scale**2)) if scale > 1 else math.inf
    target = math.log(delta.numerator) - math.log(delta.denominator)

    def failure(growth: float) -> float:
        """The logarithm of the formula above."""
        h = half + math.log1p(growth) - min(excess, math.log1p(growth))
        tails = -h / growth + math.log1p(math.exp(-half / growth))
        return tails + math.log(growth / (1 + growth)) - math.log1p(math.exp(-1 / scale))

    low, high = half / 1e5, min(half, 1.0)
    if failure(high) > target:
        for _ in range(100):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if failure(middle) <= target else (low, middle)
    else:
        low = high
    # far more is left out here than the floats above can be off
    growth = Fraction(low) * (1 - Fraction(1, 10**9))
    bits = 40 + max(0, -math.frexp(low)[1])
    return Fraction(math.floor(growth * 2**bits), 2**bits)
