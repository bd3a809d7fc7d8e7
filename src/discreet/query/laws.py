"""Intervals for numbers whose noise is known: single numbers, and ratios of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NoisySum"]


@dataclass(frozen=True)
class NoisySum:
    """Sums with independent noise of one scale each: Gaussian of that standard deviation, or Laplace of that scale."""

    values: NDArray[np.float64]
    scale: float
    gaussian: bool

    def half_width(self, confidence: float) -> float:
        """Noise beyond this has probability 1 - confidence."""
        return float(self.scale * two_sided(confidence, gaussian=self.gaussian))

    def interval(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The values give or take the half width."""
        half = self.half_width(confidence)
        return self.values - half, self.values + half

    def sum_half_width(self, other: NoisySum, factor: float, confidence: float) -> float:
        """Noise of self + factor * other beyond this has probability 1 - confidence."""
        second = np.array([factor * other.scale])
        return float(np.asarray(_quantile_of_sum(self.scale, second, confidence, gaussian=self.gaussian))[0])

    def ratio_interval(
        self, other: NoisySum, confidence: float, shift: float = 0.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All r for which self - r * other is 0 within its noise, plus the shift; unbounded where other may be 0.

        [Fieller 1954], with the exact law of the sum of two Laplace noises in place of the normal one.
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


def two_sided(confidence: float, *, gaussian: bool) -> float:
    """The quantile of |noise| for noise of scale 1."""
    return float(ndtri((1 + confidence) / 2)) if gaussian else float(-np.log1p(-confidence))


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
