r"""Parameters of simple models from noisy sufficient statistics, with intervals that cover noise and sampling together.

A third of the probability of missing goes to each of three things: the noisy mean of the rows, the noisy number of
rows, and the sampling of that many rows, for which the classical interval is used at the ends of what the noise leaves
open. With more rows a sampling interval only gets shorter, so the smallest number that the noise leaves open is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.divergence.special import betaincinv, chdtri, gammaincinv, ndtri
from discreet.mechanisms.estimators.means import Moments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["BernoulliModel", "GaussianModel", "PoissonModel"]


@dataclass(frozen=True, repr=False)
class SampleModel(Moments):
    """What models of one column have in common: how many rows there are at least."""

    covers: ClassVar[str] = "the noise, and the sampling error if the model is true"
    leaves_out: ClassVar[str] = "what clamping to the bounds changes; that the model may be wrong"

    def _fewest(self, statistics: Mapping[str, Any], miss: float) -> int:
        """A number of rows that there are at least, except with probability `miss`."""
        rows = float(statistics["rows"])
        return max(0, math.floor(rows if self.public_rows else rows - self._error_of("rows", 1 - 2 * miss)))


@dataclass(frozen=True, repr=False)
class BernoulliModel(SampleModel):
    """The probability of a one, from rows that are 0 or 1 (others are clamped); intervals of Clopper and Pearson.

    [Clopper and Pearson 1934]

    >>> estimate = BernoulliModel(epsilon=1.0).release([0, 1, 1, 1] * 1000)
    >>> abs(float(estimate) - 0.75) < 0.1
    True
    """

    kind: ClassVar[str] = "bernoulli_model"
    powers: ClassVar[tuple[int, ...]] = (1,)
    lower: float = 0.0
    upper: float = 1.0

    def value_of(self, statistics: Mapping[str, Any]) -> Any:
        return self._mean(statistics)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        miss = (1 - confidence) / 3
        n, (low, high) = self._fewest(statistics, miss), self._mean_interval(statistics, miss)
        few, many = low * n, high * n
        least = float(betaincinv(few, n - few + 1, miss / 2)) if few > 0 else 0.0
        most = float(betaincinv(many + 1, n - many, 1 - miss / 2)) if many < n else 1.0
        return least, most


@dataclass(frozen=True, repr=False)
class PoissonModel(SampleModel):
    """The rate of a Poisson law from counts between 0 and `upper`; the exact interval of a total, by gamma quantiles.

    >>> estimate = PoissonModel(0, 20, epsilon=1.0).release([2, 3, 4] * 1000)
    >>> abs(float(estimate) - 3) < 1
    True
    """

    kind: ClassVar[str] = "poisson_model"
    powers: ClassVar[tuple[int, ...]] = (1,)

    def value_of(self, statistics: Mapping[str, Any]) -> Any:
        return self._mean(statistics)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        miss = (1 - confidence) / 3
        n, (low, high) = self._fewest(statistics, miss), self._mean_interval(statistics, miss)
        if n == 0:
            return 0.0, math.inf
        least = float(gammaincinv(max(0.0, low) * n, miss / 2)) / n if low > 0 else 0.0
        return least, float(gammaincinv(max(0.0, high) * n + 1, 1 - miss / 2)) / n


@dataclass(frozen=True, repr=False)
class GaussianModel(SampleModel):
    """Mean and standard deviation of a normal law, from rows between the bounds.

    >>> mean, deviation = GaussianModel(0, 10, epsilon=1.0).release([3.0, 5.0, 7.0] * 3000)
    >>> bool(abs(mean - 5) < 1 and 1 < deviation < 2.5)
    True
    """

    kind: ClassVar[str] = "gaussian_model"
    powers: ClassVar[tuple[int, ...]] = (1, 2)

    def value_of(self, statistics: Mapping[str, Any]) -> NDArray[np.float64]:
        return np.stack([self._mean(statistics), np.sqrt(self._variance(statistics))], axis=-1)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        miss = (1 - confidence) / 3
        n = self._fewest(statistics, miss / 2)
        low, high = self._mean_interval(statistics, miss)
        least, most = (math.sqrt(max(end, 0.0)) for end in self._variance_interval(statistics, miss))  # it is >= 0
        if n < 2:
            return np.array([-math.inf, 0.0]), np.array([math.inf, math.inf])
        width = -float(ndtri(miss / 4)) * most / math.sqrt(n)
        small = least * math.sqrt(n / float(chdtri(n - 1, miss / 4)))
        large = most * math.sqrt(n / float(chdtri(n - 1, 1 - miss / 4)))
        return np.array([low - width, small]), np.array([high + width, large])
