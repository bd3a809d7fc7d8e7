r"""Error bars of a ratio of two noisy numbers, without dividing one interval by another.

With noisy A = a + X and B = b + Y and the ratio t = a / b, the difference A - t B = X - t Y is noise alone, of a law
that is known for every t. So the set of all t with |A - t B| <= q(t), the quantile of |X - t Y|, holds the true ratio
with exactly that probability [Fieller 1954]. It is an interval as soon as B exceeds the quantile of |Y|: the slope of q
is at most that. Otherwise the count is not told apart from zero, and nothing but the public range is known.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.divergence.special import ndtri
from discreet.mechanisms.laplace import Laplace

if TYPE_CHECKING:
    from discreet.mechanisms.gaussian import Gaussian

__all__ = ["noise_scale", "ratio_interval"]


def ratio_interval(
    top: float,
    bottom: float,
    *,
    noises: tuple[Laplace | Gaussian, Laplace | Gaussian | None],
    dimension: int = 1,
    miss: float,
    within: tuple[float, float],
) -> tuple[float, float]:
    """The interval for a / b that is missed with probability at most `miss`, cut to the public range.

    `noises` made the two numbers; None means that the bottom is exact. `dimension` is that of the top's release.
    """
    above, below = noises
    low, high = within
    laplace = isinstance(above, Laplace)
    spread = noise_scale(above, dimension)
    rounding = above.granularity  # half a step when the value is placed and half when the noise is rounded
    if below is None:
        if bottom <= 0:
            return within
        width = (_quantile(spread, 0.0, miss, laplace=laplace) + rounding) / bottom
        return _cut(top / bottom - width, top / bottom + width, within)
    count_spread, count_rounding = noise_scale(below, 1), below.granularity
    if bottom <= _quantile(0.0, count_spread, miss, laplace=laplace) + count_rounding:
        return within

    def slack(t: float) -> float:
        return _quantile(spread, abs(t) * count_spread, miss, laplace=laplace) + rounding + abs(t) * count_rounding

    # t B - A - q(t) and t B - A + q(t) both grow with t
    upper = _root(lambda t: t * bottom - top - slack(t), low, high)
    lower = _root(lambda t: t * bottom - top + slack(t), low, high)
    return lower, upper


def noise_scale(mechanism: Laplace | Gaussian, dimension: int) -> float:
    """The scale of the noise before it is rounded, in units of the value."""
    return float(mechanism.scale_in_steps(dimension)) * mechanism.granularity


def _quantile(first: float, second: float, miss: float, *, laplace: bool) -> float:
    """q with P(|X + Y| > q) <= miss, for independent noise of these scales."""
    if not laplace:
        return -float(ndtri(miss / 2)) * math.hypot(first, second)
    a, b = max(first, second), min(first, second)
    if b == 0:
        return -a * math.log(miss)
    a = max(a, b * 1.001)  # the formula divides by a - b; more noise only widens the interval

    # P(|X + Y| > t) = (a^2 e^{-t/a} - b^2 e^{-t/b}) / (a^2 - b^2); its logarithm is concave, so Newton's steps from the
    # right, where the second term is dropped, never leave the right side of the quantile
    t = -a * math.log(miss * (1 - (b / a) ** 2))
    for _ in range(8):
        first_term, second_term = a * a * math.exp(-t / a), b * b * math.exp(-t / b)
        tail = (first_term - second_term) / (a * a - b * b)
        slope = (second_term / b - first_term / a) / (first_term - second_term)
        t -= (math.log(tail) - math.log(miss)) / slope
    return max(t, 0.0) * (1 + 1e-9)


def _root(growing: object, low: float, high: float) -> float:
    """Where a growing function crosses zero, within [low, high]."""
    assert callable(growing)
    if growing(low) >= 0:
        return low
    if growing(high) <= 0:
        return high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if growing(middle) >= 0 else (middle, high)
    return (low + high) / 2


def _cut(low: float, high: float, within: tuple[float, float]) -> tuple[float, float]:
    return min(max(low, within[0]), within[1]), max(min(high, within[1]), within[0])
