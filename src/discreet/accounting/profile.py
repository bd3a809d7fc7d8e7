r"""Profiles of Poisson-sampled pairs in closed form, from the profile of the base.

With gamma = e^x, and D, D' the base's hockey-stick divergences of (P, Q) and (Q, P),

    E_gamma((1-q) Q + q P || Q) = q D(ln((gamma - 1 + q) / q)),
    E_gamma(Q || (1-q) Q + q P) = (1 - gamma (1-q)) D'(ln(gamma q / (1 - gamma (1-q)))),

the second for gamma < 1/(1-q), beyond which it is 0. Neither subtracts two nearly equal tails.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.accounting.pair import ROUNDING, Direction

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["sampled_profile"]


def sampled_profile(
    base: Callable[[float], tuple[float, float]], epsilon: float, rate: float, direction: Direction
) -> tuple[float, float]:
    """Certified bounds of D(epsilon) of the sampled pair; `base` bounds the profile of a symmetric base pair."""
    if rate == 1.0:
        return base(epsilon)
    if direction is Direction.FORWARD:
        if epsilon > 600:
            moved = epsilon - math.log(rate)
        else:
            ratio = math.expm1(epsilon) / rate
            if ratio <= -1:
                return -math.expm1(epsilon) * (1 - 8 * ROUNDING), -math.expm1(epsilon) * (1 + 8 * ROUNDING)
            moved = math.log1p(ratio)
        scale = rate
        blur = 16 * ROUNDING * (1 + abs(moved))
    else:
        # 1 - gamma (1-q) = q - (gamma - 1)(1 - q); it cancels near the largest loss, where D' tends to 0 with it
        scale = rate - math.expm1(epsilon) * (1 - rate) if epsilon < 700 else -1.0
        uncertain = 8 * ROUNDING * (rate + abs(math.expm1(min(epsilon, 700.0))) * (1 - rate))
        if scale <= 2 * uncertain:
            return 0.0, (scale + uncertain if scale + uncertain > 0 else 0.0)
        moved = epsilon + math.log(rate) - math.log(scale)
        blur = 16 * ROUNDING * (1 + abs(moved) + abs(epsilon)) + 2 * uncertain / scale
        low, high = base(moved + blur)[0], base(moved - blur)[1]
        return (scale - uncertain) * low, (scale + uncertain) * high
    return scale * base(moved + blur)[0] * (1 - 8 * ROUNDING), scale * base(moved - blur)[1] * (1 + 8 * ROUNDING)
