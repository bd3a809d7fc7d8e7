"""Noise of one's own on the integers: symmetric, with whole-number weights, and a geometric tail if it has one.

Weights are integers, so every mass is a rational number and the draws, the cost and the error all speak about the very
same law. Draws are by exact inversion, as for the other noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.noise.certified import exp_minus
from discreet.noise.law import Law
from discreet.noise.sampler import Signed, drawn
from discreet.noise.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.noise.certified import Bounds

__all__ = ["WeightedNoise"]

_UP = 1 + 1e-14
"""More than quotients and sums of masses can be off."""


@dataclass(frozen=True)
class WeightedNoise:
    """Z with P(Z = k) = weights[|k|] / total for |k| < n, and beyond it tail (1 - r) r^{|k| - n} / total each.

    n is the number of weights, `tail` the weight of all k >= n (and of all k <= -n), r = e^{-rate}. Without a tail the
    noise is bounded. total = weights[0] + 2 (sum of the others) + 2 tail.
    """

    weights: tuple[int, ...]
    tail: int = 0
    rate: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        whole = all(type(weight) is int for weight in (*self.weights, self.tail))
        if not self.weights or not whole or min(self.weights) <= 0 or self.tail < 0 or self.rate <= 0:
            raise InvalidArgument("weights", f"{len(self.weights)} weights", "pass whole numbers > 0, and a tail >= 0")

    @cached_property
    def total(self) -> int:
        """The weight of everything."""
        return self.weights[0] + 2 * sum(self.weights[1:]) + 2 * self.tail

    @cached_property
    def sides(self) -> list[int]:
        """The weight of |Z| < k for k = 0, ..., n."""
        return [0, *accumulate((self.weights[0], *(2 * weight for weight in self.weights[1:])))]

    def is_log_concave(self) -> bool:
        """Whether ratios of neighbours fall outwards, so that a larger shift dominates a smaller one; exactly."""
        w = (self.weights[1] if len(self.weights) > 1 else 0, *self.weights)
        return self.tail == 0 and all(w[k] ** 2 >= w[k - 1] * w[k + 1] for k in range(1, len(w) - 1))

    def draw(self, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        """Exact draws: an int if shape is None, else int64 of that shape."""
        return drawn(_sampler(self), shape, generator)

    def pair(self, shift: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The masses of Z + shift and of Z over the same outcomes, those of equal ratio in the tails taken together.

        Each is a quotient of integers, rounded once (in the tails, times an exponential), and up where the other is 0.
        """
        n, total = len(self.weights), self.total
        if self.tail == 0:
            masses = np.array([weight / total for weight in (*self.weights[:0:-1], *self.weights)])
            left, right = np.pad(masses, (0, shift)), np.pad(masses, (shift, 0))
            # what only one of them can say is delta itself, at every epsilon: rounded up
            left[:shift] *= _UP
            right[-shift:] *= _UP
            return right, left
        rate = float(self.rate)

        def mass(k: int) -> float:
            k = abs(k)
            if k < n:
                return self.weights[k] / total
            return self.tail / total * -math.expm1(-rate) * math.exp(-rate * (k - n))

        low, high = -n + 1, n + shift - 1  # everything from high + 1 on has one ratio, everything below low another
        q = [mass(k) for k in range(low, high + 1)]
        p = [mass(k - shift) for k in range(low, high + 1)]
        near, far = self.tail / total, self.tail / total * math.exp(-rate * shift)
        return np.array([far, *p, near]), np.array([near, *q, far])

    def reach(self, miss: float) -> int:
        """The smallest q with P(|Z| > q) <= miss."""
        n = len(self.weights)
        allowed = Fraction(miss) * self.total
        for q in range(n):
            if self.total - self.sides[q + 1] <= allowed:
                return q
        # P(|Z| > q) = (2 tail / total) e^{-rate (q + 1 - n)}
        steps = math.log(2 * self.tail / self.total / miss) / float(self.rate)
        return n - 1 + max(0, math.ceil(steps * (1 + 1e-13)))

    def moments(self) -> tuple[float, float]:
        """E|Z| and E Z^2."""
        n = len(self.weights)
        first = sum(2 * k * weight for k, weight in enumerate(self.weights))
        second = sum(2 * k * k * weight for k, weight in enumerate(self.weights))
        ratio, gap = math.exp(-float(self.rate)), -math.expm1(-float(self.rate))
        mean, square = ratio / gap, ratio * (1 + ratio) / gap**2  # of the geometric part
        tail = 2 * self.tail / self.total
        return (
            first / self.total + tail * (n + mean),
            second / self.total + tail * (n * n + 2 * n * mean + square),
        )


class Magnitude(Law):
    """The law of |Z|."""

    def __init__(self, noise: WeightedNoise) -> None:
        self.noise = noise
        self.support = None if noise.tail else len(noise.weights)

    def bounds(self, k: int, bits: int) -> Bounds:
        n, total = len(self.noise.weights), self.noise.total
        if k <= n:
            share = (self.noise.sides[k] << bits) // total
            return share, share + 1
        low, high = exp_minus((k - n) * self.noise.rate, bits)
        beyond = 2 * self.noise.tail
        return (1 << bits) - (beyond * high // total + 1), (1 << bits) - beyond * low // total


@lru_cache(maxsize=16)
def _sampler(noise: WeightedNoise) -> Signed:
    return Signed(Table(Magnitude(noise)))
