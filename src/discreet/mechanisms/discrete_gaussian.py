"""Discrete Gaussian noise on integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import decimal, rounded_up
from discreet.arguments import count, positive
from discreet.divergence.special import ndtri
from discreet.errors import InvalidArgument
from discreet.mechanisms.additive import IntegerAdditive
from discreet.mechanisms.gaussian import multiplier_of
from discreet.mechanisms.laplace import check_scale
from discreet.mechanisms.sensitivity import as_written, below, root_above, whole_square
from discreet.noise import discrete_gaussian

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["DiscreteGaussian"]


@dataclass(frozen=True, init=False, repr=False)
class DiscreteGaussian(IntegerAdditive):
    r"""Discrete Gaussian noise on integers, P(k) proportional to e^{-k^2 / 2s^2} [Canonne et al. 2020].

    s is noise_multiplier times the l2 sensitivity, which is declared in one of three ways:

    - `sensitivity`, a whole number (1 by default): one integer changes by at most this. The pair is its own, and tight:
      `Cost.discrete_gaussian`. With 1 it is also that of a vector of integers, as an l2 change of at most 1 is a change
      of one coordinate.
    - `l0_sensitivity` and `linf_sensitivity`: one person changes at most so many coordinates of a vector by at most so
      much each. The cost is the composition of that many exact ones, s = noise_multiplier * linf * sqrt(l0).
    - `l2_sensitivity`: of a vector. The noise is not rotation invariant, so no single change is the worst one. What
      holds for all is (1 / 2 noise_multiplier^2)-zCDP [Canonne et al. 2020, Thm 4, composed over coordinates], and that
      is the cost. `RoundedGaussian` has the tight cost of a Gaussian there.

    >>> from discreet.mechanisms import DiscreteGaussian
    >>> DiscreteGaussian(noise_multiplier=3.0).error(0.95)
    6.0
    """

    kind: ClassVar[str] = "discrete_gaussian"
    noise_multiplier: float
    sensitivity: int | None
    l2_sensitivity: float | None
    l0_sensitivity: int | None
    linf_sensitivity: int | None

    def __init__(
        self,
        *,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        sensitivity: int | None = None,
        l2_sensitivity: float | None = None,
        l0_sensitivity: int | None = None,
        linf_sensitivity: int | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        if (l0_sensitivity is None) != (linf_sensitivity is None):
            raise InvalidArgument(
                "l0_sensitivity, linf_sensitivity", (l0_sensitivity, linf_sensitivity), "pass both or neither"
            )
        ways = [value for value in (sensitivity, l2_sensitivity, linf_sensitivity) if value is not None]
        if len(ways) > 1:
            raise InvalidArgument("sensitivity", tuple(ways), "declare the sensitivity in one way, not in several")
        if not ways:
            sensitivity = 1
        self._set(
            noise_multiplier=1.0,
            sensitivity=None if sensitivity is None else count("sensitivity", sensitivity, least=1),
            l2_sensitivity=None if l2_sensitivity is None else positive("l2_sensitivity", l2_sensitivity),
            l0_sensitivity=None if l0_sensitivity is None else count("l0_sensitivity", l0_sensitivity, least=1),
            linf_sensitivity=None if linf_sensitivity is None else count("linf_sensitivity", linf_sensitivity, least=1),
            adjacency=adjacency,
        )
        if self._square < 1:
            raise InvalidArgument("l2_sensitivity", l2_sensitivity, "integers change by at least 1, or not at all")
        multiplier = multiplier_of(noise_multiplier, epsilon, delta, self._cost)
        self._set(noise_multiplier=multiplier)
        check_scale(self.scale, most=10**9)
        self._cost(multiplier)

    @property
    def _square(self) -> int:
        """The square of the l2 sensitivity, a whole number."""
        if self.sensitivity is not None:
            return self.sensitivity**2
        if self.l2_sensitivity is not None:
            return whole_square(self.l2_sensitivity)
        assert self.l0_sensitivity is not None
        assert self.linf_sensitivity is not None
        return self.l0_sensitivity * self.linf_sensitivity**2

    def _cost(self, multiplier: float) -> Cost:
        if self.sensitivity is not None or self._square == 1:
            return Cost.discrete_gaussian(multiplier, sensitivity=self.sensitivity or 1, adjacency=self.adjacency)
        if self.l2_sensitivity is not None:
            return Cost.concentrated(_half_inverse_square(multiplier), adjacency=self.adjacency)
        assert self.l0_sensitivity is not None
        assert self.linf_sensitivity is not None
        single = below(as_written(multiplier) * root_above(self.l0_sensitivity))
        return self.l0_sensitivity * Cost.discrete_gaussian(
            single, sensitivity=self.linf_sensitivity, adjacency=self.adjacency
        )

    @property
    def cost(self) -> Cost:
        """The tight pair where there is one; for an l2 sensitivity of a vector, zCDP."""
        return self._cost(self.noise_multiplier)

    @cached_property
    def scale(self) -> Fraction:
        """The exact parameter s of the noise, which is its standard deviation but for a little less."""
        return as_written(self.noise_multiplier) * root_above(self._square)

    def _size_of(self, value: object) -> int:
        size = super()._size_of(value)
        if size > 1 and self.sensitivity is not None and self.sensitivity > 1:
            raise InvalidArgument(
                "value",
                f"{size} coordinates",
                f"sensitivity={self.sensitivity} is that of one integer; for a vector pass l2_sensitivity, or "
                "l0_sensitivity and linf_sensitivity",
            )
        return size

    def examples(self) -> list[tuple[Any, Any]]:
        """One person moves one integer by all of the sensitivity, or as many coordinates as allowed."""
        if self.sensitivity is not None:
            return [(0, self.sensitivity)]
        number, step = (self.l0_sensitivity, self.linf_sensitivity) if self.l0_sensitivity else (1, 1)
        if self.l2_sensitivity is not None:
            number, step = (self._square, 1) if self._square <= 64 else (1, math.isqrt(self._square))
        return [(np.zeros(number or 1, dtype=np.int64), np.full(number or 1, step, dtype=np.int64))]

    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        return discrete_gaussian(self.scale, shape, generator=generator)

    def _reach(self, miss: float, dimension: int) -> int:
        scale = float(self.scale)
        if scale > 1000:
            # the tail sum is at most the integral from q + 1/2, as the density is convex beyond s, and the total is at
            # least s sqrt(2 pi); nearer in, the sum is larger by less than one step of it
            steps = math.ceil(-scale * float(ndtri(miss / 2)) * (1 + 1e-14) - 0.5)
            return steps if steps > scale + 1 else max(0, steps + 1)
        beyond, total = _beyond(scale)
        return int(np.searchsorted(-beyond, -miss * total * (1 - 1e-13), side="left"))

    def _moments(self, dimension: int) -> tuple[float, float]:
        scale = float(self.scale)
        if scale > 1000:  # the sums below to 1e-6 and better
            return scale * math.sqrt(2 / math.pi), scale**2
        beyond, total = _beyond(scale)
        odd = 2 * np.arange(len(beyond)) + 1
        return math.fsum(beyond) / total, math.fsum(odd * beyond) / total


@lru_cache(maxsize=64)
def _beyond(scale: float) -> tuple[Any, float]:
    """The weight of |k| > q for q = 0, 1, ..., and the total weight."""
    k = np.arange(1, math.ceil(39 * scale) + 2)
    weight = 2 * np.exp(-0.5 * (k / scale) ** 2)
    beyond = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    return beyond, 1.0 + float(beyond[0])


def _half_inverse_square(multiplier: float) -> float:
    return rounded_up(Fraction(1, 2) / decimal(multiplier) ** 2)
