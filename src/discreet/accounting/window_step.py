r"""One release with losses in a window, as the spline accountant applies it: atoms at both ends, a density between.

In *depth* y = (largest loss) - l and divided by e^{l/2}, the loss of one release has mass `near` at depth 0, mass `far`
at depth `drop`, and a density between. For Laplace noise and the exponential mechanism the density is constant; after
Poisson sampling with rate q it is, with both directions alike up to their orientation,

    C (1 - (1-q) e^{-l})^{-3/2},        C = height e^{-epsilon/2} q^{1/2}      (`WindowPair.height`),

because l = ln w, w = 1 - q + q e^u, du/dl = w / (w - 1 + q), and u has density height e^{-(u+epsilon)/2} under Q, which
w^{1/2} = e^{l/2} turns into the symmetric form, forward (w Q e^{-l/2}) and backward (Q e^{l/2}).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING, Direction

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals
    from discreet.accounting.pairs.window import WindowPair

__all__ = ["WindowStep"]


@dataclass(frozen=True)
class WindowStep:
    """The symmetric law of one release, in depth."""

    pair: WindowPair
    direction: Direction
    top: float
    """The largest loss."""
    drop: float
    """From the largest loss to the smallest."""
    near: float
    far: float
    scale: float
    """C above; the density itself if it is constant."""
    gap: float
    """ln(1-q) to the smallest forward loss: where the density has its singularity. Infinite if it is constant."""

    @classmethod
    def of(cls, pair: WindowPair, direction: Direction) -> WindowStep:
        a, q = pair.epsilon, pair.rate
        low, high = pair.span
        q_low, q_high = (0.5, 0.5 * math.exp(-a)) if pair.with_atoms else (0.0, 0.0)
        at_low, at_high = q_low * math.exp(low / 2), q_high * math.exp(high / 2)
        scale = pair.height * math.exp(-a / 2) * math.sqrt(q)
        if q == 1.0:
            return cls(pair, direction, a, 2 * a, at_high, at_low, scale, math.inf)
        drop = math.log1p(2 * q * math.sinh(a) / ((1 - q) + q * math.exp(-a)))
        gap = math.log1p(q * math.exp(-a) / (1 - q))
        if direction is Direction.FORWARD:
            return cls(pair, direction, high, drop, at_high, at_low, scale, gap)
        return cls(pair, direction, -low, drop, at_low, at_high, scale, gap)

    @property
    def is_flat(self) -> bool:
        return self.gap == math.inf

    @property
    def slip(self) -> float:
        """By how much the largest loss and the drop may be off, together."""
        low, high = self.pair.span
        return 16 * ROUNDING * (abs(low) + abs(high) + (1.0 if low < -0.6 and not self.is_flat else 0.0))

    def log_moments(self, tilts: Reals) -> Reals:
        """Upper bounds of ln of the integral of e^{-(s + 1/2) y} over the symmetric law, for each s >= 0 in `tilts`."""
        slope = tilts + 0.5
        if self.is_flat:
            rest = np.exp(-slope * self.drop)
            return np.asarray(np.log(self.near + self.far * rest + self.scale * -np.expm1(-slope * self.drop) / slope))
        moments = self.pair.log_power_bound(self.direction.power(tilts.astype(complex)).real)
        return np.asarray(moments - slope * self.top + 16 * ROUNDING * (np.abs(moments) + slope * abs(self.top)))
