"""Gaussian noise: on reals by way of a lattice, and rounded on integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.calibration import calibrate
from discreet.accounting.cost import Cost
from discreet.arguments import positive, unit_fraction
from discreet.divergence.special import erfc, ndtri
from discreet.errors import InvalidArgument
from discreet.mechanisms.additive import IntegerAdditive, LatticeAdditive
from discreet.mechanisms.laplace import check_scale
from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.sensitivity import (
    as_written,
    checked_dimension,
    in_l2,
    root_above,
    sensitivity_of,
    whole_square,
)
from discreet.noise import rounded_gaussian

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.noise import Generator

__all__ = ["Gaussian", "RoundedGaussian", "gaussian_multiplier", "multiplier_of"]

_FINENESS = 20
_WIDEST = 29
"""2^29 steps to the noise scale: within the 10^9 that are drawn exactly."""


@dataclass(frozen=True, init=False, repr=False)
class Gaussian(LatticeAdditive):
    r"""Gaussian noise of standard deviation noise_multiplier * sensitivity.

    `sensitivity` is the l2 sensitivity of the value; `l1_sensitivity` bounds it, and `linf_sensitivity` is converted,
    with `dimension`. Pass `noise_multiplier`, or `epsilon` and `delta`: then it is the smallest for which

        Phi(1/2s - eps s) - e^eps Phi(-1/2s - eps s) <= delta

    to a relative 1e-9, certified, for every epsilon [Balle and Wang 2018, Thm 8].

    The value is rounded to the lattice of multiples of `granularity` = 2^k, and noise round(N(0, s'^2)) is added in
    steps of it, with s' = noise_multiplier times the sensitivity of the rounded value. As rounding commutes with whole
    shifts, the output is a function of a Gaussian mechanism on the rounded value, and `Cost.gaussian` holds as it is:
    docs/proofs/lattice.md.

    >>> from discreet.mechanisms import Gaussian
    >>> mean = Gaussian(epsilon=1.0, delta=1e-6, sensitivity=0.01)
    >>> released = mean.release([0.25, 0.5])
    >>> round(mean.noise_multiplier, 6), round(mean.error(0.95), 6)
    (4.224679, 0.082802)
    """

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: float
    dimension: int | None
    granularity: float

    def __init__(
        self,
        *,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        sensitivity: float | None = None,
        l1_sensitivity: float | None = None,
        l2_sensitivity: float | None = None,
        linf_sensitivity: float | None = None,
        dimension: int | None = None,
        granularity: float | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        dimension = checked_dimension(dimension)
        bound = in_l2(sensitivity, l1_sensitivity, l2_sensitivity, linf_sensitivity, dimension)
        multiplier = gaussian_multiplier(noise_multiplier, epsilon, delta)
        if granularity is None:
            reach = as_written(multiplier) * Fraction(bound)
            lattice = Lattice.below(Fraction(bound), reach, fineness=_FINENESS, widest=_WIDEST)
        else:
            lattice = Lattice.of(granularity)
        self._set(
            noise_multiplier=multiplier,
            sensitivity=bound,
            dimension=dimension,
            granularity=lattice.granularity,
            adjacency=adjacency,
        )
        check_scale(self.scale_in_steps(dimension or 1), most=10**9)

    @property
    def cost(self) -> Cost:
        """`Cost.gaussian(noise_multiplier)`: the tight pair of the continuous mechanism."""
        return Cost.gaussian(self.noise_multiplier, adjacency=self.adjacency)

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of all possible outputs."""
        return Lattice.of(self.granularity)

    def scale_in_steps(self, dimension: int = 1) -> Fraction:
        """noise_multiplier times the l2 sensitivity of the rounded value, in steps."""
        return _scale(self.noise_multiplier, self.sensitivity, self.lattice, dimension)

    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        return rounded_gaussian(self.scale_in_steps(dimension), shape, generator=generator)

    def _reach(self, miss: float, dimension: int) -> int:
        return rounded_reach(miss, float(self.scale_in_steps(dimension)))

    def _moments(self, dimension: int) -> tuple[float, float]:
        return rounded_moments(float(self.scale_in_steps(dimension)))


@lru_cache(maxsize=256)
def _scale(noise_multiplier: float, sensitivity: float, lattice: Lattice, dimension: int) -> Fraction:
    return as_written(noise_multiplier) * lattice.l2_steps(Fraction(sensitivity), dimension)


@dataclass(frozen=True, init=False, repr=False)
class RoundedGaussian(IntegerAdditive):
    r"""Gaussian noise on integers, rounded: the tight cost of a Gaussian for vectors of integers of any dimension.

    Noise round(N(0, s^2)), s = noise_multiplier * sensitivity, on values that are integers already. Rounding commutes
    with whole shifts, so the output is a function of the continuous Gaussian mechanism on the same integers, and
    `Cost.gaussian` holds with the l2 `sensitivity` as it is: docs/proofs/lattice.md. Its variance is s^2 + 1/12.

    >>> from discreet.mechanisms import RoundedGaussian
    >>> RoundedGaussian(noise_multiplier=3.0, sensitivity=2**0.5).cost
    Cost(gaussian(noise_multiplier=3))
    """

    kind: ClassVar[str] = "rounded_gaussian"
    noise_multiplier: float
    sensitivity: float

    def __init__(
        self,
        *,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        sensitivity: float = 1.0,
        adjacency: str = "add-remove",
    ) -> None:
        self._set(
            noise_multiplier=gaussian_multiplier(noise_multiplier, epsilon, delta),
            sensitivity=sensitivity_of("sensitivity", sensitivity),
            adjacency=adjacency,
        )
        if self._square < 1:
            raise InvalidArgument("sensitivity", sensitivity, "integers change by at least 1, or not at all")
        check_scale(self.scale, most=10**9)

    @property
    def _square(self) -> int:
        return whole_square(self.sensitivity)

    @property
    def cost(self) -> Cost:
        """`Cost.gaussian(noise_multiplier)`."""
        return Cost.gaussian(self.noise_multiplier, adjacency=self.adjacency)

    @cached_property
    def scale(self) -> Fraction:
        """The exact standard deviation of the noise before it is rounded."""
        return as_written(self.noise_multiplier) * root_above(self._square)

    def examples(self) -> list[tuple[Any, Any]]:
        """One person moves as many coordinates as the l2 sensitivity allows by one, or one by all of it."""
        number, step = (self._square, 1) if self._square <= 64 else (1, math.isqrt(self._square))
        return [(np.zeros(number, dtype=np.int64), np.full(number, step, dtype=np.int64))]

    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        return rounded_gaussian(self.scale, shape, generator=generator)

    def _reach(self, miss: float, dimension: int) -> int:
        return rounded_reach(miss, float(self.scale))

    def _moments(self, dimension: int) -> tuple[float, float]:
        return rounded_moments(float(self.scale))


def rounded_reach(miss: float, scale: float) -> int:
    """The smallest q with P(|round(N(0, scale^2))| > q) = 2 Phi(-(q + 1/2) / scale) <= miss."""
    return max(0, math.ceil(-scale * float(ndtri(miss / 2)) * (1 + 1e-14) - 0.5))


def rounded_moments(scale: float) -> tuple[float, float]:
    """E|Z| and E Z^2 of Z = round(N(0, scale^2))."""
    if scale > 1000:  # the sums below to 1e-7 and better
        return scale * math.sqrt(2 / math.pi), scale**2 + 1 / 12
    k = np.arange(1, math.ceil(39 * scale) + 2)
    beyond = erfc((k - 0.5) / (scale * math.sqrt(2)))  # P(|Z| >= k)
    return math.fsum(beyond), math.fsum((2 * k - 1) * beyond)


def gaussian_multiplier(noise_multiplier: object, epsilon: object, delta: object) -> float:
    """The noise multiplier of a Gaussian, given or calibrated to (epsilon, delta)."""
    return multiplier_of(noise_multiplier, epsilon, delta, Cost.gaussian)


def multiplier_of(noise_multiplier: object, epsilon: object, delta: object, cost: Callable[[float], Cost]) -> float:
    """The noise multiplier as given, or the smallest whose certified cost meets (epsilon, delta)."""
    if noise_multiplier is not None:
        if epsilon is not None or delta is not None:
            raise InvalidArgument(
                "noise_multiplier, epsilon, delta",
                (noise_multiplier, epsilon, delta),
                "pass noise_multiplier alone, or epsilon and delta",
            )
        multiplier = positive("noise_multiplier", noise_multiplier)
        cost(multiplier)  # the range of multipliers is the leaf's
        return multiplier
    if epsilon is None or delta is None:
        raise InvalidArgument(
            "noise_multiplier, epsilon, delta",
            (noise_multiplier, epsilon, delta),
            "pass noise_multiplier, or both epsilon and delta",
        )
    return calibrate(cost, epsilon=positive("epsilon", epsilon), delta=unit_fraction("delta", delta))
