"""Intervals for numbers whose noise is known: single numbers, and ratios of two of them.

Of a sum whose units were cut to a bound the truth is the value, less the noise, plus what was cut off. How much that is
nobody knows; an allowance A for it is public (`NoisySum.lost`). The interval of a value v is

    v - q  to  v + q + A

or the other way round where what is cut off is negative. With a loss b it fails with probability

    m(b) = P(noise > q + b) + P(noise > q + A - b),

for b in [0, A] a convex function, because the density of the noise falls on either side of 0, and the same for b and
A - b: it fails most often if nothing is lost or all of A, and least often in the middle. So an interval that always
held with the confidence would hold too often in between, where most losses are. q is the smallest number, not below 0,
with

    (m(0) + m(A/2)) / 2 <= 1 - confidence      and      m(0) <= 11/10 (1 - confidence).

**Claim.** Whatever the loss between 0 and A, an interval of 95 % holds in 94.5 % of the cases at least, and half way
between the loss for which it fails most often and the one for which it does least, it holds in 95 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.divergence.normal import score, tails

if TYPE_CHECKING:
    from collections.abc import Callable

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
    "variance_interval",
]

_STEPS, _CLOSE, _HALVED, _HALF = 40, 1e-13, 45, 0.5
_ROOT = math.sqrt(2 * math.pi)
_OF_SPREAD, _OF_FREE_SPREAD = 2 / 3, 1.5
"""Which part of what may be cut off of a sum of squares a variance may have lost: its number of rows loses, too."""

_AT_WORST = 1.1
"""How many times as often as asked for an interval may fail, for the worst of the losses that it allows for."""

_STEPS_TRIED, _AS_GOOD = 256, 1.01
"""Of the shares of a staircase's first step so many are compared; and by how much they may be worse than Laplace."""

_APART = 1.001
"""How much larger each of several scales of Laplace noise is at least than the next: their law has their difference in
a denominator."""


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
        if confidence >= 1:
            return math.inf
        decay = math.exp(-self.epsilon)
        rest = decay / -math.expm1(-self.epsilon)
        beyond = (1 - confidence) * (self.gamma + rest)
        if beyond >= rest:  # on the first step
            return self.epsilon * (self.gamma + rest - beyond)
        level = max(math.floor(math.log(rest / beyond) / self.epsilon), 0)  # beyond so many more there is less
        within = (rest - beyond * math.exp(self.epsilon * level)) / decay
        return self.epsilon * (self.gamma + level + within)

    @property
    def mean(self) -> float:
        """The mean of |noise|."""
        if self.kind != "staircase":
            return math.sqrt(2 / math.pi) if self.gaussian else 1.0
        decay = math.exp(-self.epsilon)
        rest = decay / -math.expm1(-self.epsilon)
        first = self.gamma * (self.gamma / 2 + rest)  # the integral of the tail, step by step
        others = (rest - decay / 2) / -math.expm1(-self.epsilon)
        return self.epsilon * (first + others) / (self.gamma + rest)

    def reach(self, allowance: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
        """q of an interval with this allowance."""
        if self.kind == "gaussian":
            return _normal_reach(allowance, confidence)
        if self.kind == "laplace":  # with the decay d = e^-allowance, m(0) = e^-q (1 + d) / 2 and m(A/2) = e^-q sqrt(d)
            halfway = 2 * np.log1p(np.exp(-allowance / 2)) - math.log(4)
            at_worst = np.log1p(np.exp(-allowance)) - math.log(2 * _AT_WORST)
            return np.maximum(np.maximum(halfway, at_worst) + two_sided(confidence, gaussian=False), 0.0)
        low = np.zeros_like(allowance)
        high = np.full_like(allowance, 2 * two_sided(confidence, gaussian=self.gaussian) + 2 * self.epsilon)
        for _ in range(60):
            middle = (low + high) / 2
            above = _fails(self.beyond, middle, allowance) > 1 - confidence
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high


GAUSSIAN, LAPLACE = Law("gaussian"), Law("laplace")


def staircase_law(epsilon: float) -> Law:
    """Staircase noise that has the least median, as long as its mean and its interval are about those of Laplace noise.

    Where much is paid, half of the noise of the least median lies at 0, and the other half is spread evenly over all
    that one unit can contribute, whatever the price. There the step is one with the least sum of median, mean and
    interval of 95 %, each beside that of Laplace noise, of those with which none is larger by more than a hundredth.
    Below epsilon = 0.83 there are none of these, and the mean is up to 3 % larger.
    """
    return Law("staircase", epsilon, _gamma(epsilon))


@lru_cache(maxsize=1024)
def _gamma(epsilon: float) -> float:
    least = least_median_gamma(epsilon)
    if max(_sizes(epsilon, least)) <= _AS_GOOD:
        return least
    gammas = np.geomspace(least, 1.0, _STEPS_TRIED).tolist()
    fit = {sum(sizes): gamma for gamma in gammas if max(sizes := _sizes(epsilon, gamma)) <= _AS_GOOD}
    return fit[min(fit)] if fit else least


def _sizes(epsilon: float, gamma: float) -> tuple[float, float, float]:
    """Median, mean and interval of 95 % of staircase noise, as multiples of those of Laplace noise."""
    law = Law("staircase", epsilon, gamma)
    return law.two_sided(0.5) / math.log(2), law.mean, law.two_sided(0.95) / math.log(20)


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

    def sum_interval(
        self, other: NoisySum, factor: float, confidence: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of self + factor * other, like `interval`, by the law of both noises and the sum of both allowances."""
        value, lost = self.values + factor * other.values, self.lost + factor * other.lost
        scales = (self.scale, abs(factor) * other.scale)
        reach = _reach_of_sum(scales, np.abs(lost), confidence, gaussian=self.gaussian)
        return value - reach + np.minimum(lost, 0.0), value + reach + np.maximum(lost, 0.0)

    def ratio_interval(
        self, other: NoisySum, confidence: float, shift: float = 0.0, *, cancels: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All r for which self - r * other is 0 within its noise, plus the shift; unbounded where other may be 0.

        The other one is a number of rows or units, which is not below 0, whatever its noise says.
        [Fieller 1954], with the exact law of the sum of two Laplace noises in place of the normal one. Staircase noise
        is not used for ratios. What both have lost `cancels`, as far as it does; if nothing can be cut off the other
        one, this one has its allowance.
        """
        ratio = np.divide(self.values, other.values, out=np.full(self.values.shape, np.nan), where=other.values != 0)
        lost = np.zeros(1) if cancels else self.lost
        low = self._end(other, ratio, confidence, -1.0, lost)
        high = self._end(other, ratio, confidence, +1.0, lost)
        unsure = other.values <= other.half_width(confidence)
        low[unsure], high[unsure] = -np.inf, np.inf
        return low + shift, high + shift

    def _end(
        self,
        other: NoisySum,
        ratio: NDArray[np.float64],
        confidence: float,
        sign: float,
        lost: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Fixed point of r = ratio ± q(r) / |other|, where q(r) is the quantile of |noise - r * noise of other|."""
        more = np.maximum(sign * lost, 0.0)

        def wide(end: NDArray[np.float64]) -> NDArray[np.float64]:
            scales = (self.scale, np.abs(end) * other.scale)
            reach = _reach_of_sum(scales, np.abs(lost), confidence, gaussian=self.gaussian)
            return (reach + more) / np.abs(other.values)

        return _settled(ratio, wide, sign)


def variance_interval(
    total: NoisySum, number: NoisySum, squares: NoisySum, confidence: float, lift: float = 0.0, *, free: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""An interval of V = squares / number + lift - (total / number)^2, by the joint law of the three noises.

    With the true mean m and variance V the number T = squares - 2 m total + (m^2 + lift - V) number is its noise
    X'' - 2 m X + (m^2 + lift - V) X' and nothing else. With the noisy mean in the place of m, a distance d from it, it
    is n (noisy V - V) = T - n d^2. So the interval has all V with |n (noisy V - V)| within the quantile of the noise of
    T, as for a ratio, and its upper end is higher by the mean of d^2. What the noisy mean changes in the quantile is
    left out: it is small where d is small beside the mean, or the mean beside the spread.

    People with the largest squares weigh less, in all three sums. What that takes from V is allowed for by two thirds
    of the allowance of the squares, as in `NoisySum.interval`; by more where values have no bounds and may be `free`
    to lie anywhere: of lognormal values of spread 1 a few rows make much of V.
    """
    n, lost = number.values, (_OF_FREE_SPREAD if free else _OF_SPREAD) * np.maximum(squares.lost, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = total.values / n
        variance = squares.values / n + lift - mean**2

        def reach(end: NDArray[np.float64], lost: NDArray[np.float64]) -> NDArray[np.float64]:
            scales = (squares.scale, 2 * np.abs(mean) * total.scale, np.abs(mean**2 + lift - end) * number.scale)
            return _reach_of_sum(scales, lost, confidence, gaussian=total.gaussian) / n

        # The noise is that at the end that it has without an allowance, which is as far away or farther.
        least, most = (_settled(variance, lambda end: reach(end, np.zeros(1)), sign) for sign in (-1.0, 1.0))
        blur = (total.scale**2 + (mean * number.scale) ** 2) / n**2 * (1.0 if total.gaussian else 2.0)
        low, high = variance - reach(least, lost), variance + reach(most, lost) + blur + lost / n
    unsure = n <= number.half_width(confidence)
    return np.where(unsure, 0.0, np.maximum(low, 0.0)), np.where(unsure, np.inf, np.maximum(high, 0.0))


def _settled(
    start: NDArray[np.float64], wide: Callable[[NDArray[np.float64]], NDArray[np.float64]], sign: float
) -> NDArray[np.float64]:
    """The end with end = start + sign * wide(end), which changes little with it."""
    end = start
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(30):
            before, end = end, start + sign * wide(end)
            if np.allclose(before, end, rtol=1e-12, atol=0.0, equal_nan=True):
                break
    return end


def half_width_of_sum(first: float, second: float, confidence: float, *, gaussian: bool) -> float:
    """The sum of two independent noises of these scales is beyond this with probability 1 - confidence."""
    return float(_reach_of_sum((first, second), np.zeros(1), confidence, gaussian=gaussian)[0])


def two_sided(confidence: float, *, gaussian: bool) -> float:
    """The quantile of |noise| for Gaussian or Laplace noise of scale 1."""
    miss = math.log1p(-confidence) if confidence < 1 else -math.inf
    return score(miss - math.log(2)) if gaussian else -miss


def _fails(
    beyond: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    reach: NDArray[np.float64],
    allowance: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What is to be 1 - confidence for an interval with this q, if `beyond` is the tail of the noise on both sides."""
    worst, best = (beyond(reach) + beyond(reach + allowance)) / 2, beyond(reach + allowance / 2)
    return np.maximum((worst + best) / 2, worst / _AT_WORST)


def _normal_reach(allowance: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """`Law.reach` of the normal law."""
    miss = 1 - confidence
    if not allowance.any() or not 0 < miss < 1:
        return np.full_like(allowance, two_sided(confidence, gaussian=True))
    first = score(math.log(_AT_WORST * miss)) if _AT_WORST * miss < _HALF else 0.0
    worst = _newton(np.full_like(allowance, first), allowance, (1.0, 0.0, 1.0), _AT_WORST * miss)
    return _newton(worst, allowance, (0.5, 1.0, 0.5), miss)


def _newton(
    start: NDArray[np.float64], allowance: NDArray[np.float64], weights: tuple[float, ...], miss: float
) -> NDArray[np.float64]:
    """The first q from `start` on with no more than this sum of weighted tails at q, q + A/2 and q + A.

    By Newton's method: tails are convex to the right of 0, so it never goes too far from the left.
    """
    reach = start
    for _ in range(_STEPS):
        places = [(w, reach + part * allowance) for w, part in zip(weights, (0.0, 0.5, 1.0), strict=True) if w]
        over = sum(w * tails(x) for w, x in places) - miss
        slope = sum(w * np.exp(-(x**2) / 2) for w, x in places) / _ROOT
        step = np.maximum(over / slope, 0.0)
        reach = reach + step
        if np.all(step <= _CLOSE):
            break
    return reach


def _reach_of_sum(
    scales: tuple[float | NDArray[np.float64], ...],
    allowance: NDArray[np.float64],
    confidence: float,
    *,
    gaussian: bool,
) -> NDArray[np.float64]:
    """`Law.reach` for a sum of independent noises of these scales, two or three of them.

    With Laplace noises, P(|sum| > x) is the sum over i of e^{-x / a_i} times the product over j != i of
    a_i^2 / (a_i^2 - a_j^2), for scales a_i that differ. Those that do not are taken up to two thousandths larger.
    """
    if gaussian:
        scale = np.sqrt(sum(np.square(one) for one in scales))
        scale, allowance = np.broadcast_arrays(scale, allowance)
        allowed = np.divide(allowance, scale, out=np.zeros(scale.shape), where=scale > 0)
        return np.asarray(scale * GAUSSIAN.reach(allowed, confidence))
    *listed, allowance = np.broadcast_arrays(*scales, allowance)
    a = np.sort(np.stack([np.asarray(one, dtype=np.float64) for one in listed]), axis=0)
    a = np.maximum(a, np.maximum(1e-9 * a[-1], 1e-300))
    for i in range(1, len(a)):
        a[i] = np.maximum(a[i], a[i - 1] * _APART)
    weights = np.stack(
        [np.prod([a[i] ** 2 / (a[i] ** 2 - a[j] ** 2) for j in range(len(a)) if j != i], axis=0) for i in range(len(a))]
    )

    def missed(x: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(under="ignore"):
            return np.asarray(np.sum(weights * np.exp(-x / a), axis=0))

    low = np.zeros(allowance.shape)
    high = 2 * len(a) * a[-1] * two_sided(confidence, gaussian=False)
    for _ in range(_HALVED):
        middle = (low + high) / 2
        above = _fails(missed, middle, allowance) > 1 - confidence
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(high)
