"""Laws on the whole numbers 0, 1, 2, …, known by certified distribution functions to any number of bits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from discreet.noise.certified import exp_minus, over, product

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from fractions import Fraction

    from discreet.noise.certified import Bounds

__all__ = ["Digit", "Geometric", "Law", "Positive", "RoundedLaplace", "Sign", "TwoSidedGeometric"]


class Law(ABC):
    """The law of a random whole number M >= 0; P(M < k) is irrational for 0 < k < support."""

    support: int | None = None
    """M < support; None if M is unbounded."""

    @abstractmethod
    def bounds(self, k: int, bits: int) -> Bounds:
        """2^bits P(M < k) lies between these integers, for 0 < k < support; their distance does not grow with bits."""

    def sweep(self, bits: int) -> Iterable[Bounds]:
        """The bounds for k = 1, 2, 3, …, up to the support: what a table is made of, in one pass."""
        ks = count(1) if self.support is None else range(1, self.support)
        return (self.bounds(k, bits) for k in ks)

    def floor(self, k: int, bits: int) -> int:
        """⌊2^bits P(M < k)⌋, exactly."""
        if k <= 0:
            return 0
        if self.support is not None and k >= self.support:
            return 1 << bits
        guard = 32
        while True:
            low, high = self.bounds(k, bits + guard)
            # P(M < k) < 1: without this cut no finite precision would tell 1 - e^-10^9 from 1
            low, high = max(low, 0) >> guard, min(high, (1 << bits + guard) - 1) >> guard
            if low == high:
                return low
            guard *= 2


@dataclass(frozen=True)
class ExponentialTail(Law):
    """P(M >= k) = P(M >= 1) e^{-(k-1) rate} for k >= 1; each law states how it starts."""

    rate: Fraction

    @abstractmethod
    def first(self, bits: int) -> Bounds:
        """2^bits P(M >= 1)."""

    def bounds(self, k: int, bits: int) -> Bounds:
        precision = bits + 8
        tail = product(self.first(precision), exp_minus((k - 1) * self.rate, precision), precision)
        return (1 << bits) - (tail[1] >> 8) - 1, (1 << bits) - (tail[0] >> 8)

    def sweep(self, bits: int) -> Iterator[Bounds]:
        precision = bits + 48  # enough for 2^40 steps, each of which adds a unit or two
        step, tail = exp_minus(self.rate, precision), self.first(precision)
        while True:
            yield (1 << bits) - (tail[1] >> 48) - 1, (1 << bits) - (tail[0] >> 48)
            tail = product(tail, step, precision)


class Geometric(ExponentialTail):
    """P(M >= k) = e^{-k rate}."""

    def first(self, bits: int) -> Bounds:
        return exp_minus(self.rate, bits)


class TwoSidedGeometric(ExponentialTail):
    """M = |X| for P(X = x) ∝ e^{-|x| rate}: P(M >= k) = 2 e^{-k rate} / (1 + e^{-rate}) for k >= 1."""

    def first(self, bits: int) -> Bounds:
        low, high = exp_minus(self.rate, bits)
        one = 1 << bits
        return over((2 * low, 2 * high), (one + low, one + high), bits)


class RoundedLaplace(ExponentialTail):
    """M = |X| for X the whole number nearest to a Laplace variable: P(M >= k) = e^{-(k - 1/2) rate} for k >= 1."""

    def first(self, bits: int) -> Bounds:
        return exp_minus(self.rate / 2, bits)


@dataclass(frozen=True)
class Digit(Law):
    """A geometric variable below 2^width, given that it is: P(M < k) = (1 - e^{-k rate}) / (1 - e^{-2^width rate}).

    A geometric variable of rate r written in base B has independent digits: the digit of place value p is a geometric
    variable of rate p r given that it is below B, because e^{-r Σ p d_p} is a product.
    """

    rate: Fraction
    width: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", 1 << self.width)

    def bounds(self, k: int, bits: int) -> Bounds:
        # 1 - e^-x is about x: as many more bits as x has zeros in front
        precision = bits + (self.rate.denominator // self.rate.numerator).bit_length() + 8
        one = 1 << precision
        part, whole = exp_minus(k * self.rate, precision), exp_minus((self.rate * (1 << self.width)), precision)
        low, high = over((one - part[1], one - part[0]), (one - whole[1], one - whole[0]), precision)
        drop = precision - bits
        return low >> drop, (high >> drop) + 1

    def sweep(self, bits: int) -> Iterator[Bounds]:
        extra = (self.rate.denominator // self.rate.numerator).bit_length() + self.width + 16
        precision = bits + extra
        one = 1 << precision
        step, whole = exp_minus(self.rate, precision), exp_minus((self.rate * (1 << self.width)), precision)
        scale = over((one, one), (one - whole[1], one - whole[0]), precision)
        power = step
        for _ in range(1, 1 << self.width):
            low, high = product((one - power[1], one - power[0]), scale, precision)
            yield low >> extra, (high >> extra) + 1
            power = product(power, step, precision)


@dataclass(frozen=True)
class Sign(Law):
    """M = 0 with probability 1 / (1 + e^{-rate}), else 1.

    If G is geometric of the same rate, then G where M = 0 and -1 - G where M = 1 has the mass ∝ e^{-|x| rate}.
    """

    rate: Fraction
    support = 2

    def bounds(self, k: int, bits: int) -> Bounds:  # noqa: ARG002 - k = 1 is the only one
        low, high = exp_minus(self.rate, bits)
        one = 1 << bits
        return over((one, one), (one + low, one + high), bits)


@dataclass(frozen=True)
class Positive(Law):
    """M = 0 with probability 1 - e^{-rate}, else 1."""

    rate: Fraction
    support = 2

    def bounds(self, k: int, bits: int) -> Bounds:  # noqa: ARG002 - k = 1 is the only one
        low, high = exp_minus(self.rate, bits)
        return (1 << bits) - high, (1 << bits) - low
