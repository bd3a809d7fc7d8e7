"""Laplace noise: on reals by way of a lattice, and on integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import decimal, finite_epsilon, rounded_up
from discreet.arguments import count, positive
from discreet.errors import InvalidArgument
from discreet.mechanisms.additive import IntegerAdditive, LatticeAdditive
from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.sensitivity import as_written, checked_dimension, in_l1
from discreet.noise import discrete_laplace, rounded_laplace

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["DiscreteLaplace", "Laplace"]

_FINENESS = 30
_WIDEST = 39
"""2^39 steps to the noise scale: within the 10^12 that are drawn exactly."""


@dataclass(frozen=True, init=False, repr=False)
class Laplace(LatticeAdditive):
    r"""Laplace noise of scale b = noise_multiplier * sensitivity: (1 / noise_multiplier)-DP [Dwork et al. 2006].

    `sensitivity` is the l1 sensitivity of the value; `l2_sensitivity` and `linf_sensitivity` are converted, with
    `dimension`. Pass one of `epsilon`, `noise_multiplier` and `scale`.

    The value is rounded to the lattice of multiples of `granularity` = 2^k, and noise round(Laplace(b')) is added in
    steps of it, with b' = noise_multiplier times the sensitivity of the rounded value. As rounding commutes with whole
    shifts, the output is a function of a Laplace mechanism on the rounded value, and `Cost.laplace` holds as it is, for
    vectors too: docs/proofs/lattice.md.

    >>> from discreet.mechanisms import Laplace
    >>> count = Laplace(epsilon=0.5, sensitivity=1)
    >>> released = count.release(1234)
    >>> count.epsilon, round(count.error(0.95), 6)
    (0.5, 5.991465)
    """

    kind: ClassVar[str] = "laplace"
    noise_multiplier: float
    dimension: int | None
    granularity: float

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        sensitivity: float | None = None,
        noise_multiplier: float | None = None,
        scale: float | None = None,
        l1_sensitivity: float | None = None,
        l2_sensitivity: float | None = None,
        linf_sensitivity: float | None = None,
        dimension: int | None = None,
        granularity: float | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        dimension = checked_dimension(dimension)
        bound = in_l1(sensitivity, l1_sensitivity, l2_sensitivity, linf_sensitivity, dimension)
        multiplier = laplace_multiplier(epsilon, noise_multiplier, scale, bound)
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
        check_scale(self.scale_in_steps(dimension or 1), most=10**12)

    @property
    def cost(self) -> Cost:
        """`Cost.laplace(noise_multiplier)`: the tight pair of the continuous mechanism."""
        return Cost.laplace(self.noise_multiplier, adjacency=self.adjacency)

    @property
    def epsilon(self) -> float:
        """The pure level of one release, 1 / noise_multiplier."""
        return rounded_up(1 / decimal(self.noise_multiplier))

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of all possible outputs."""
        return Lattice.of(self.granularity)

    def scale_in_steps(self, dimension: int = 1) -> Fraction:
        """noise_multiplier times the l1 sensitivity of the rounded value, in steps."""
        return _scale(self.noise_multiplier, self.sensitivity, self.lattice, dimension)

    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        return rounded_laplace(self.scale_in_steps(dimension), shape, generator=generator)

    def _reach(self, miss: float, dimension: int) -> int:
        # P(|Z| > q) = e^{-(q + 1/2) / b}
        scale = float(self.scale_in_steps(dimension))
        return max(0, math.ceil(-scale * math.log(miss) * (1 + 1e-14) - 0.5))

    def _moments(self, dimension: int) -> tuple[float, float]:
        # P(|Z| >= k) = e^{1/2b} r^k with r = e^{-1/b}
        rate = 1 / float(self.scale_in_steps(dimension))
        first = math.exp(-rate / 2) / -math.expm1(-rate)
        return first, first * (1 + math.exp(-rate)) / -math.expm1(-rate)


@lru_cache(maxsize=256)
def _scale(noise_multiplier: float, sensitivity: float, lattice: Lattice, dimension: int) -> Fraction:
    return as_written(noise_multiplier) * lattice.l1_steps(Fraction(sensitivity), dimension)


@dataclass(frozen=True, init=False, repr=False)
class DiscreteLaplace(IntegerAdditive):
    r"""Two-sided geometric noise on integers, P(k) proportional to e^{-|k| / s}, s = noise_multiplier * sensitivity.

    (1 / noise_multiplier)-DP; also called the geometric mechanism [Ghosh et al. 2012]. `sensitivity` is a whole number,
    the l1 sensitivity of an integer or of a vector of integers: the pair of one integer that changes by all of it
    dominates every way of spreading the change over coordinates, docs/proofs/lattice.md.

    >>> from discreet.mechanisms import DiscreteLaplace
    >>> DiscreteLaplace(epsilon=1.0, sensitivity=1).error(0.95)
    3.0
    """

    kind: ClassVar[str] = "discrete_laplace"
    noise_multiplier: float
    sensitivity: int

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        sensitivity: int = 1,
        noise_multiplier: float | None = None,
        scale: float | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        bound = count("sensitivity", sensitivity, least=1)
        self._set(
            noise_multiplier=laplace_multiplier(epsilon, noise_multiplier, scale, bound),
            sensitivity=bound,
            adjacency=adjacency,
        )
        check_scale(self.scale, most=10**12)

    @property
    def cost(self) -> Cost:
        """`Cost.discrete_laplace(noise_multiplier, sensitivity=sensitivity)`: its own finite pair, which is tight."""
        return Cost.discrete_laplace(self.noise_multiplier, sensitivity=self.sensitivity, adjacency=self.adjacency)

    @property
    def epsilon(self) -> float:
        """The pure level of one release, 1 / noise_multiplier."""
        return rounded_up(1 / decimal(self.noise_multiplier))

    @cached_property
    def scale(self) -> Fraction:
        """The exact scale s of the noise."""
        return as_written(self.noise_multiplier) * self.sensitivity

    def examples(self) -> list[tuple[Any, Any]]:
        """One person moves an integer by all of the sensitivity."""
        return [(0, self.sensitivity)]

    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        return discrete_laplace(self.scale, shape, generator=generator)

    def _reach(self, miss: float, dimension: int) -> int:
        # P(|Z| > q) = 2 r^{q+1} / (1 + r), r = e^{-1/s}
        scale = float(self.scale)
        steps = scale * (math.log(2) - math.log1p(math.exp(-1 / scale)) - math.log(miss))
        return max(0, math.ceil(steps * (1 + 1e-14) - 1))

    def _moments(self, dimension: int) -> tuple[float, float]:
        rate = 1 / float(self.scale)
        ratio, rest = math.exp(-rate), -math.expm1(-rate)
        return 2 * ratio / (rest * (1 + ratio)), 2 * ratio / rest**2


def laplace_multiplier(epsilon: object, noise_multiplier: object, scale: object, sensitivity: float) -> float:
    """The noise multiplier from exactly one of its three names; 1/epsilon is rounded up."""
    given = {"epsilon": epsilon, "noise_multiplier": noise_multiplier, "scale": scale}
    passed = [name for name, value in given.items() if value is not None]
    if len(passed) != 1:
        raise InvalidArgument("epsilon, noise_multiplier, scale", tuple(given.values()), "pass exactly one of them")
    if epsilon is not None:
        multiplier = rounded_up(1 / decimal(finite_epsilon(epsilon)))
    elif noise_multiplier is not None:
        multiplier = positive("noise_multiplier", noise_multiplier)
    else:
        multiplier = positive("scale", scale) / sensitivity
    Cost.laplace(multiplier)  # the range of multipliers is the leaf's
    return multiplier


def check_scale(steps: Fraction, *, most: int) -> None:
    """Refuses a noise scale that the exact samplers do not cover."""
    if steps > most:
        raise InvalidArgument(
            "granularity",
            f"a noise scale of {float(steps):.4g} steps",
            f"noise is drawn exactly up to a scale of {most:.0e} steps: pass a larger granularity or less noise",
        )
