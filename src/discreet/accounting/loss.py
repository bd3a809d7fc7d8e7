r"""The distribution of the privacy loss of a composition, from above.

D(x) = E (1 - e^{x-L})_+ = P(L > x) - e^x Q(L > x) is convex in e^x, with slope -Q(L > x). A convex function lies above
its tangents, so for every h > 0

    Q(L > x) <= (D(x - h) - D(x)) / (e^x - e^{x-h}),

so certified bounds of D at two points give a certified upper bound of the tail,

    P(L > x) <= D(x) + (D(x - h) - D(x)) / (1 - e^{-h}),

whatever the number of mechanisms. Putting all mass between two points on the upper one gives a law that is
stochastically larger than the true one; no discretisation of the single steps enters.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.contour import common_lattice
from discreet.accounting.discretise import tails_of
from discreet.accounting.pair import ROUNDING, Direction
from discreet.accounting.sweep import Sweep
from discreet.arguments import count, one_of, probability
from discreet.divergence.drawing import Drawable
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from discreet.accounting.cost import Cost
    from discreet.accounting.pair import Reals

__all__ = ["Loss"]

_REMAINDER = 1e-12
"""Mass that may lie outside the window of the table."""

_NARROW = 1e-9
"""Relative width to which D is read: a tail is good to about the square root of it."""

_WIDEST = 1e6
"""Half of the widest window; the rest is counted as infinite."""

_MOST_LATTICE_POINTS = 4096
_NARROWEST = 1e-6
"""Share of the window below which a cell is not split: an atom, as far as the table goes."""


@dataclass(frozen=True, eq=False, repr=False)
class Loss(Drawable):
    """The privacy loss L = ln dP/dQ under P of a whole composition, as a table that lies above the true law.

    P(table > x) >= P(L > x) for every x: quantiles and tails read from it are never too small. `direction` tells
    which order of the dominating pairs: "forward" is (P, Q), "backward" is (Q, P).

    >>> from discreet.accounting.cost import Cost
    >>> law = Loss.of(Cost.gaussian(noise_multiplier=1.0))
    >>> round(law.mean(), 6), round(law.std(), 6), round(float(law.tail(0.5)), 6)
    (0.5, 1.0, 0.5)
    """

    cost: Cost
    direction: str
    loss: Reals
    """Losses at which the table has mass, increasing."""
    mass: Reals
    infinite: float
    """Mass at loss +inf: what the mechanisms leak outright, and what lies beyond the last point (below 1e-12)."""
    is_lattice: bool
    """Whether all losses of the composition lie on a lattice, whose points are then those of the table."""
    _way: Sweep = field(repr=False)

    @classmethod
    def of(cls, cost: Cost, *, direction: str = "forward", points: int = 640) -> Loss:
        """The law of the loss of this cost on about so many points, closer together where there is more mass."""
        direction = one_of("direction", direction, [member.value for member in Direction])
        points = count("points", points, least=16)
        pairs = []
        for leaf, times in cost.parts:
            pair = leaf.pair()
            if pair is None:
                raise InvalidArgument(
                    "cost",
                    cost,
                    f"{leaf.describe()} is known only by its Rényi divergences, which do not determine a distribution "
                    "of the loss; use cost.profile() or cost.tradeoff()",
                )
            pairs.append((pair, times))
        way = Sweep(pairs, Direction(direction))
        lattice = _lattice_table(way)
        table = _table(way, points) if lattice is None else lattice
        tails = np.minimum.accumulate(np.array(list(table.values())))
        mass = -np.diff(tails, prepend=1.0)
        return cls(cost, direction, np.array(list(table)), mass, float(tails[-1]), lattice is not None, way)

    def tail(self, x: ArrayLike) -> Reals:
        """Certified upper bound of P(L > x); a loss that equals x up to rounding is counted."""
        places = np.asarray(x, dtype=np.float64)
        if np.isnan(places).any():
            raise InvalidArgument("x", x, "pass real numbers, not NaN")
        values = [_tail(self._way, place) for place in map(float, places.ravel())]
        return np.asarray(np.array(values).reshape(places.shape))[()]

    def quantile(self, p: float) -> float:
        """The smallest loss of the table with P(L <= loss) >= p, never below that of L; inf if there is none."""
        allowed = 1.0 - probability("p", p)
        above = np.append(np.cumsum(self.mass[::-1])[::-1][1:], 0.0) + self.infinite
        # the sums are rounded; one part in 1e12 is on the safe side
        enough = np.flatnonzero(above <= allowed * (1 - 1e-12) + (0.0 if allowed < 1 else 1e-12))
        return float(self.loss[enough[0]]) if len(enough) else math.inf

    def mean(self) -> float:
        """Mean of the finite losses, the sum of those of the parts. Accurate, not certified."""
        return self._way.mean

    def std(self) -> float:
        """Standard deviation of the finite losses. Accurate, not certified."""
        return self._way.deviation

    def __repr__(self) -> str:
        return (
            f"Loss({self.cost!r}, direction={self.direction!r}, {len(self.loss)} points from {self.loss[0]:.6g} to "
            f"{self.loss[-1]:.6g}, mean {self.mean():.6g}, std {self.std():.6g}, infinite {self.infinite:.3g})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.cost, self.direction, len(self.loss))


def _again(cost: Cost, direction: str, points: int) -> Loss:
    return Loss.of(cost, direction=direction, points=max(points, 16))


def _tail(way: Sweep, x: float) -> float:
    """Upper bound of P(L > x) in one direction, infinite losses included."""
    if x >= max(way.largest, 0.0) * (1 + 1e-13):
        return way.infinite[1]
    if x < way.least * (1 + math.copysign(1e-13, -way.least)):
        return 1.0
    if way.is_single:
        above = float(tails_of(way.pairs[0][0], way.direction, np.array([x]))[0][0])
        return min(1.0, above * (1 + 512 * ROUNDING) + way.infinite[1])
    lattice = common_lattice(way.pairs, way.direction)
    if lattice is None:
        low, high = way.finite(x, narrow=_NARROW)
        width = (high - low) / high if high > 0 else 0.0
        back = max(way.deviation * math.sqrt(2 * width), 1e-7 * way.deviation, 1e-14 * abs(x))
    else:
        # between two points of the lattice the tail is constant: read it in the middle, far from both
        origin, step, blur = lattice
        x = origin + step * (math.floor((x - blur - origin) / step) + 0.75)
        low, high = way.finite(x, narrow=_NARROW)
        back = 0.5 * step
    before = way.finite(x - back, narrow=_NARROW)[1]
    return min(1.0, (way.infinite[1] + high + max(0.0, before - low) / -math.expm1(-back)) * (1 + 16 * ROUNDING))


def _window(way: Sweep) -> tuple[float, float]:
    """Losses outside of which hardly anything lies."""
    low = max(way.least, way.mean - 8 * way.deviation)
    high = min(way.largest, way.mean + 7 * way.deviation)
    reach = 7 * way.deviation
    while high < way.largest and reach < _WIDEST and _tail(way, high) > way.infinite[1] + _REMAINDER:
        reach *= 1.5
        high = min(way.largest, way.mean + reach)
    return low, high


def _table(way: Sweep, points: int) -> dict[float, float]:
    """P(L > x) by x: equally spaced points first, then the cell with the most mass is halved again and again."""
    low, high = _window(way)
    if not high > low:
        return {high: _tail(way, high)}
    places = np.linspace(low, high, points // 4 + 1).tolist()
    if high == way.largest:
        places[-1] += 2e-13 * abs(high)  # an atom at the largest loss lies below the end
    tails = dict(zip(places, (_tail(way, place) for place in places), strict=True))
    cells = [(tails[right] - tails[left], left, right) for left, right in itertools.pairwise(places)]
    heapq.heapify(cells)
    while cells and len(tails) < points:
        _, left, right = heapq.heappop(cells)
        if right - left < 2 * _NARROWEST * (high - low):
            continue
        middle = 0.5 * (left + right)
        tails[middle] = _tail(way, middle)
        heapq.heappush(cells, (tails[middle] - tails[left], left, middle))
        heapq.heappush(cells, (tails[right] - tails[middle], middle, right))
    return dict(sorted(tails.items()))


def _lattice_table(way: Sweep) -> dict[float, float] | None:
    """P(L > x) by x for the points x of the lattice of losses inside the window; None if there is no lattice."""
    lattice = common_lattice(way.pairs, way.direction) if way.pairs else None
    if lattice is None:
        return None
    origin, step, _ = lattice
    low, high = _window(way)
    first, last = math.floor((low - origin) / step + 1e-6), math.ceil((high - origin) / step - 1e-6)
    if last - first >= _MOST_LATTICE_POINTS:
        return None
    return {origin + step * k: _tail(way, origin + step * (k + 0.5)) for k in range(first, last + 1)}
