r"""The central-limit estimate: what epsilon or delta would be if the total loss were normal. Not a bound.

The loss of a composition is a sum of independent losses, so for many small releases it is nearly normal. Its mean m and
variance v are known exactly, in each direction: with K(b) = ln E_Q[(dP/dQ)^b],

    forward, under P:  m = K'(1),  v = K"(1);        backward, under Q:  m = -K'(0),  v = K"(0).

A normal loss that belongs to a pair of distributions has m = v/2 and is the loss of sqrt(v)-GDP; the estimate keeps the
exact mean beside the exact variance, which shifts that profile by m - v/2:

    delta(epsilon) = delta_GDP(epsilon - m + v/2; mu = sqrt(v)).

No loss exceeds the sum of the largest ones, so neither does the estimate. For Gaussian noise it is exact. For sampled
Gaussians with many steps mu tends to `gaussian_dp.clt_estimate` [Bu et al. 2020]. The tails of the true loss are
heavier than normal for sampled mechanisms, so **the estimate is often too small**, by 5 % at moderate delta and by
factors at tiny delta: use it for orientation, never as a guarantee.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.accounting import gaussian_dp
from discreet.accounting.pair import Direction, Pair, total_infinite
from discreet.arguments import nonnegative, probability
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting.leaves.leaf import Leaf

__all__ = ["estimate"]

_LARGEST_EPSILON = 1e9


def estimate(parts: Sequence[tuple[Leaf, int]], *, delta: float | None = None, epsilon: float | None = None) -> float:
    """The central-limit estimate of epsilon at a delta, or of delta at an epsilon; may be too small.

    >>> from discreet.accounting.cost import Cost
    >>> training = 14_000 * Cost.gaussian(1.1).sampled(rate=256 / 60_000)
    >>> round(estimate(training.parts, delta=1e-5), 3), round(training.epsilon(1e-5), 3)
    (2.317, 2.376)
    """
    if (delta is None) == (epsilon is None):
        raise InvalidArgument("delta, epsilon", (delta, epsilon), "pass exactly one of delta= and epsilon=")
    pairs = [(_pair(leaf), times) for leaf, times in parts]
    if not pairs:
        return 0.0
    directions = [Direction.FORWARD]
    if not all(pair.symmetric for pair, _ in pairs):
        directions.append(Direction.BACKWARD)
    if delta is not None:
        level = probability("delta", delta)
        return max(_epsilon(pairs, direction, level) for direction in directions)
    level = nonnegative("epsilon", epsilon)
    return max(_delta(pairs, direction, level) for direction in directions)


def _pair(leaf: Leaf) -> Pair:
    pair = leaf.pair()
    if pair is None:
        raise InvalidArgument(
            "cost",
            leaf.describe(),
            "a central-limit estimate needs the mean and the variance of the loss, and this part is known only by a "
            "guarantee on Rényi divergences; describe the mechanism itself (for example Cost.gaussian), or read a "
            "certified value with Cost.epsilon",
        )
    return pair


def _moments(pairs: Sequence[tuple[Pair, int]], direction: Direction) -> tuple[float, float]:
    """Mean and variance of the total loss, given that it is finite."""
    mean = variance = 0.0
    for pair, times in pairs:
        _, slope, bend = pair.cumulants(1.0 if direction is Direction.FORWARD else 0.0)
        mean += times * (slope if direction is Direction.FORWARD else -slope)
        variance += times * bend
    return mean, variance


def _delta(pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float) -> float:
    leak = total_infinite(pairs, direction)[1]
    if leak >= 1 or epsilon >= _largest(pairs, direction):
        return leak
    return leak + (1 - leak) * _normal_delta(*_moments(pairs, direction), epsilon)


def _epsilon(pairs: Sequence[tuple[Pair, int]], direction: Direction, delta: float) -> float:
    leak = total_infinite(pairs, direction)[1]
    if delta == 1 or delta < leak:
        return 0.0 if delta == 1 else math.inf
    mean, variance = _moments(pairs, direction)
    level = (delta - leak) / (1 - leak)
    if _normal_delta(mean, variance, 0.0) <= level:
        return 0.0
    largest = _largest(pairs, direction)
    if level == 0:
        return largest
    low, high = 0.0, max(1.0, 2 * mean)
    while _normal_delta(mean, variance, high) > level and high < _LARGEST_EPSILON:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _normal_delta(mean, variance, middle) > level else (low, middle)
    return min(high, largest)


def _largest(pairs: Sequence[tuple[Pair, int]], direction: Direction) -> float:
    """The largest finite loss of the composition."""
    ends = [(times, pair.span) for pair, times in pairs]
    return max(
        0.0, math.fsum(times * (span[1] if direction is Direction.FORWARD else -span[0]) for times, span in ends)
    )


def _normal_delta(mean: float, variance: float, epsilon: float) -> float:
    """E[(1 - e^{epsilon - L})_+] for a normal L."""
    mu, shifted = math.sqrt(variance), epsilon - (mean - variance / 2)
    if mu == 0:
        return max(0.0, -math.expm1(epsilon - mean))
    if shifted >= 0:
        return gaussian_dp.delta_bounds(mu, shifted)[1]
    return 1 - math.exp(shifted) * (1 - gaussian_dp.delta_bounds(mu, -shifted)[1])
