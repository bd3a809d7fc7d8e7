"""Intervals for numbers whose noise is known: single numbers, and ratios of two of them.

Of a sum whose units were cut to a bound the truth is the value, less the noise, plus what was cut off. How much that is
nobody knows; an allowance A for it is public (`NoisySum.lost`). The interval of a value v is

    v - q  to  v + q + A,      P(noise > q) + P(noise > q + A) = 1 - confidence,

or the other way round where what is cut off is negative. **Claim.** It holds with at least the confidence whenever the
loss is between 0 and A. *Proof.* With a loss b it fails with probability P(noise > q + b) + P(noise > q + A - b), a
convex function of b because the density of the noise falls on either side of 0, and at b = 0 and b = A it is what
was asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.divergence.normal import score, tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "Law",
    "NoisySum",
    "half_width_of_sum",
    "least_median_gamma",
    "staircase_law",
    "two_sided",
]


@dataclass(frozen=True)
class Law:
    """Noise of scale 1: "gaussian", "laplace", or "staircase" of level `epsilon` and sensitivity `epsilon`.

    So all three stand in for each other: a scale of sensitivity / epsilon.
    """

    kind: str
    epsilon: float = 0.0
    gamma: float = 0.0

    @property
    def gaussian(self) -> bool:
        """Whether it is the normal law."""
        return self.kind == "gaussian"

    def beyond(self, x: Any) -> Any:
        """P(|noise| > x) for x >= 0."""
        x = np.asarray(x, dtype=np.float64)
        if self.kind == "gaussian":
            return 2 * tails(x)
        if self.kind == "laplace":
            return np.exp(-x)
        x = x / self.epsilon
        decay = math.exp(-self.epsilon)
        rest = decay / -math.expm1(-self.epsilon)
        level = np.floor(np.maximum(x - self.gamma, 0.0))
        within = rest - (np.maximum(x - self.gamma, 0.0) - level) * decay
        outer = np.where(x < self.gamma, self.gamma - x + rest, np.exp(-self.epsilon * level) * within)
        return outer / (self.gamma + rest)

    def two_sided(self, confidence: float) -> float:
        """The quantile of |noise|."""
        if self.kind != "staircase":
            return two_sided(confidence, gaussian=self.gaussian)
        return float(self.reach(np.zeros(1), confidence)[0])

    def reach(self, allowance: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
        """q with P(noise > q) + P(noise > q + allowance) = 1 - confidence."""
        low = np.zeros_like(allowance)
        high = np.full_like(allowance, 2 * two_sided(confidence, gaussian=self.gaussian) + 2 * self.epsilon)
        for _ in range(60):
            middle = (low + high) / 2
            miss = (self.beyond(middle) + self.beyond(middle + allowance)) / 2
            low, high = np.where(miss > 1 - confidence, middle, low), np.where(miss > 1 - confidence, high, middle)
        return high


GAUSSIAN, LAPLACE = Law("gaussian"), Law("laplace")


def staircase_law(epsilon: float) -> Law:
    """Staircase noise of the least median."""
    return Law("staircase", epsilon, least_median_gamma(epsilon))


def least_median_gamma(epsilon: float) -> float:
    """The step share of the staircase noise whose absolute value has the least median, for epsilon >= log 2.

    Half of the noise lies on the first step if gamma = 1 / (e^epsilon - 1). No epsilon-DP noise with a falling density
    has more within that distance: beyond it the density can fall by e^{-epsilon} once for every sensitivity, and these
    steps hold at least e^{-epsilon} / (1 - e^{-epsilon}) times the density at 0, the other half.
    """
    return min(1.0 / math.expm1(epsilon), 1.0)


@dataclass(frozen=True)
class NoisySum:
    """Sums with independent noise of one law and scale: a Gaussian's standard deviation, or sensitivity / epsilon.

    `lost` is the allowance for what the bound on one unit has cut off, positive where the true sum is larger.
    """

    values: NDArray[np.float64]
    scale: float
    law: Law
    lost: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))

    @property
    def gaussian(self) -> bool:
        """Whether the noise is normal."""
        return self.law.gaussian

    def half_width(self, confidence: float) -> float:
        """Noise beyond this has probability 1 - confidence."""
        return float(self.scale * self.law.two_sided(confidence))

    def interval(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Around the values, further on the side where something may be lost."""
        if not self.scale > 0:
            return self.values + np.minimum(self.lost, 0.0), self.values + np.maximum(self.lost, 0.0)
        reach = self.scale * self.law.reach(np.abs(self.lost) / self.scale, confidence)
        return self.values - reach + np.minimum(self.lost, 0.0), self.values + reach + np.maximum(self.lost, 0.0)

    def sum_half_width(self, other: NoisySum, factor: float, confidence: float) -> float:
        """Noise of self + factor * other beyond this has probability 1 - confidence."""
        return half_width_of_sum(self.scale, factor * other.scale, confidence, gaussian=self.gaussian)

    def ratio_interval(
        self, other: NoisySum, confidence: float, shift: float = 0.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All r for which self - r * other is 0 within its noise, plus the shift; unbounded where other may be 0.

        [Fieller 1954], with the exact law of the sum of two Laplace noises in place of the normal one. Staircase noise
        is not used for ratios.
        """
        ratio = np.divide(self.values, other.values, out=np.full(self.values.shape, np.nan), where=other.values != 0)
        low = self._end(other, ratio, confidence, -1.0)
        high = self._end(other, ratio, confidence, +1.0)
        unsure = np.abs(other.values) <= other.half_width(confidence)
        low[unsure], high[unsure] = -np.inf, np.inf
        return low + shift, high + shift

    def _end(self, other: NoisySum, ratio: NDArray[np.float64], confidence: float, sign: float) -> NDArray[np.float64]:
        """Fixed point of r = ratio ± q(r) / |other|, where q(r) is the quantile of |noise - r * noise of other|."""
        end = ratio.copy()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for _ in range(30):
                wide = _quantile_of_sum(self.scale, np.abs(end) * other.scale, confidence, gaussian=self.gaussian)
                end = ratio + sign * wide / np.abs(other.values)
        return end


def half_width_of_sum(first: float, second: float, confidence: float, *, gaussian: bool) -> float:
    """The sum of two independent noises of these scales is beyond this with probability 1 - confidence."""
    return float(np.asarray(_quantile_of_sum(first, np.array([second]), confidence, gaussian=gaussian))[0])


def two_sided(confidence: float, *, gaussian: bool) -> float:
    """The quantile of |noise| for Gaussian or Laplace noise of scale 1."""
    miss = math.log1p(-confidence) if confidence < 1 else -math.inf
    return score(miss - math.log(2)) if gaussian else -miss


def _quantile_of_sum(first: float, second: NDArray[np.float64], confidence: float, *, gaussian: bool) -> Any:
    """The quantile of |X + Y| for independent noises of these scales."""
    if gaussian:
        return np.hypot(first, second) * two_sided(confidence, gaussian=True)
    # P(|X + Y| > x) = (a² e^{-x/a} - b² e^{-x/b}) / (a² - b²) for Laplace noises of scales a != b
    a = np.maximum(first, second)
    b = np.minimum(first, second)
    b = np.where(np.abs(a - b) < 1e-6 * a, a * (1 - 1e-6), b)
    low, high = np.zeros_like(a), 4 * a * two_sided(confidence, gaussian=False)
    for _ in range(40):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", under="ignore"):
            tail = (a * a * np.exp(-middle / a) - b * b * np.exp(-middle / np.maximum(b, 1e-300))) / (a * a - b * b)
        above = tail > 1 - confidence
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high
