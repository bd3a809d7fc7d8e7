"""One mechanism, used once: delta(epsilon) = P(l > eps) - e^eps Q(l > eps), straight from the distribution functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.discretise import tails_of
from discreet.accounting.pair import ROUNDING, Direction, Pair

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SingleLoss", "invert"]


class SingleLoss:
    """Reads D of a single pair in one direction, like a `Line` of the contour accountant."""

    def __init__(self, pair: Pair, direction: Direction) -> None:
        self.pair, self.direction = pair, direction

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon); the two tails are good to 256 ROUNDING."""
        p, _, q, _ = tails_of(self.pair, self.direction, np.array([epsilon]))
        above, scaled = float(p[0]), 0.0
        if float(q[0]) > 0:
            scaled = math.exp(min(epsilon + math.log(float(q[0])), 1.0))
        # where it is small next to both tails, the difference is bounded by its own size in epsilon
        slack = 256 * ROUNDING * (above + scaled * (1 + abs(epsilon)))
        value = above - scaled
        return max(0.0, value - slack), min(1.0, max(0.0, value + slack))

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon at which D passes between the two deltas."""
        return invert(self.bounds, low_delta, high_delta)


def invert(bounds: Callable[[float], tuple[float, float]], low_delta: float, high_delta: float) -> tuple[float, float]:
    """Brackets the epsilon with D(epsilon) = delta by bisection on certified bounds of a falling D."""
    if bounds(0.0)[1] <= low_delta:
        return 0.0, 0.0
    reach = 1.0
    while bounds(reach)[1] > low_delta:
        reach *= 2
        if reach > 1e9:
            return _last(lambda e: bounds(e)[0] >= high_delta, 0.0, 1e9)[0], math.inf
    upper = _last(lambda e: bounds(e)[1] > low_delta, 0.0, reach)[1]
    lower = _last(lambda e: bounds(e)[0] >= high_delta, 0.0, upper)[0]
    return lower, upper


def _last(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Adjacent points between which `holds` turns from true to false."""
    for _ in range(2000):
        middle = 0.5 * (low + high)
        if middle in (low, high) or high - low <= 1e-16 * high:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high
