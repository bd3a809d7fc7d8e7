"""Additive noise mechanisms on a query of known sensitivity; `noise_multiplier` = noise scale / sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.leaves.leaf import LARGEST_EPSILON, Leaf, decimal, finite_epsilon, rounded_up
from discreet.accounting.pair import ROUNDING, Lattice
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.discrete_gaussian import discrete_gaussian_pair
from discreet.accounting.pairs.gaussian import GaussianPair
from discreet.accounting.pairs.window import WindowPair
from discreet.arguments import count, positive, unit_fraction
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace", "Staircase"]


def _multiplier(value: object) -> float:
    """A noise multiplier that is neither no noise at all nor beyond floating point."""
    number = positive("noise_multiplier", value)
    if not 1 / LARGEST_EPSILON <= number <= 1e12:
        raise InvalidArgument("noise_multiplier", value, f"pass a number between {1 / LARGEST_EPSILON:.3g} and 1e12")
    return number


def _check_scale(scale: float) -> None:
    if scale > 1e6:
        raise InvalidArgument(
            "noise_multiplier * sensitivity",
            scale,
            "count in coarser units: beyond 1e6 of them use the continuous mechanism's cost",
        )


@dataclass(frozen=True)
class Gaussian(Leaf):
    """N(0, sigma^2) noise, l2 sensitivity 1: the pair N(1, sigma^2), N(0, sigma^2) is tight [Balle and Wang 2018]."""

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _multiplier(self.noise_multiplier))

    def pair(self) -> Pair:
        return GaussianPair(1 / self.noise_multiplier)

    def zcdp(self) -> float:
        return rounded_up(Fraction(1, 2) / decimal(self.noise_multiplier) ** 2)

    def gdp(self) -> float:
        return rounded_up(1 / decimal(self.noise_multiplier))

    def grouped(self, size: int) -> Leaf:
        return Gaussian(self.noise_multiplier / size)


@dataclass(frozen=True)
class Laplace(Leaf):
    """Laplace noise, l1 sensitivity 1: losses in [-1/b, 1/b] with atoms at both ends; the pair is tight."""

    kind: ClassVar[str] = "laplace"
    noise_multiplier: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _multiplier(self.noise_multiplier))

    def pair(self) -> Pair:
        epsilon = 1 / self.noise_multiplier
        is_exact = Fraction(epsilon) * Fraction(self.noise_multiplier) == 1
        return WindowPair(epsilon, with_atoms=True, slip=0.0 if is_exact else 4 * ROUNDING)

    def pure_epsilon(self) -> float:
        return rounded_up(1 / decimal(self.noise_multiplier))

    def zcdp(self) -> float:
        """eps + e^-eps - 1 [Harrison and Manurangsi 2025]."""
        epsilon = 1 / self.noise_multiplier
        small = epsilon + math.expm1(-epsilon) if epsilon > 1e-3 else epsilon**2 / 2
        return min(small, epsilon**2 / 2) * (1 + 1e-12)

    def grouped(self, size: int) -> Leaf:
        return Laplace(self.noise_multiplier / size)


@dataclass(frozen=True)
class DiscreteGaussian(Leaf):
    """Integer noise with mass e^{-k^2 / 2 s^2}, s = noise_multiplier * sensitivity, on one integer-valued query.

    A change of the query by `sensitivity` dominates all smaller ones, as the noise is log-concave.
    """

    kind: ClassVar[str] = "discrete_gaussian"
    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _multiplier(self.noise_multiplier))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity, least=1))
        _check_scale(self.noise_multiplier * self.sensitivity)

    def pair(self) -> Pair:
        return discrete_gaussian_pair(self.noise_multiplier * self.sensitivity, self.sensitivity)

    def rdp(self, order: float) -> float:
        """At most that of the continuous Gaussian [Canonne et al. 2020, Thm 4]."""
        return order * self.zcdp()

    def pure_epsilon(self) -> float:
        return math.inf

    def zcdp(self) -> float:
        """The same as for the continuous Gaussian [Canonne et al. 2020, Thm 4]."""
        return rounded_up(Fraction(1, 2) / decimal(self.noise_multiplier) ** 2)

    def grouped(self, size: int) -> Leaf:
        return DiscreteGaussian(self.noise_multiplier / size, self.sensitivity * size)


@dataclass(frozen=True)
class DiscreteLaplace(Leaf):
    """Integer noise with mass proportional to e^{-|k| / s}, s = noise_multiplier * sensitivity."""

    kind: ClassVar[str] = "discrete_laplace"
    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _multiplier(self.noise_multiplier))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity, least=1))
        _check_scale(float(self.sensitivity))

    def pair(self) -> Pair:
        return _discrete_laplace(self.noise_multiplier, self.sensitivity)

    def pure_epsilon(self) -> float:
        return rounded_up(1 / decimal(self.noise_multiplier))

    def grouped(self, size: int) -> Leaf:
        return DiscreteLaplace(self.noise_multiplier / size, self.sensitivity * size)


@lru_cache(maxsize=256)
def _discrete_laplace(noise_multiplier: float, sensitivity: int) -> AtomsPair:
    """Losses (2k - D) / s for k = 0 .. D with s the scale: |k| - |k - D| is constant outside [0, D]."""
    scale = noise_multiplier * sensitivity
    k = np.arange(sensitivity + 1)
    loss = (2.0 * k - sensitivity) / scale
    norm = math.tanh(0.5 / scale)
    mass = norm * np.exp(-k / scale)
    # everything at or below 0, everything at or above D
    mass[0] = norm / -math.expm1(-1 / scale)
    mass[-1] = norm * math.exp(-sensitivity / scale) / -math.expm1(-1 / scale)
    return AtomsPair(loss, mass, symmetric=True, lattice=Lattice(float(loss[0]), 2.0 / scale))


@dataclass(frozen=True)
class Staircase(Leaf):
    """Staircase noise of pure level `epsilon` and step share `gamma`, sensitivity 1 [Geng and Viswanath 2016].

    gamma = 1 / (1 + e^{epsilon/2}) by default, the best for the mean absolute error. A shift d <= 1 changes the
    log-density by -epsilon, 0 or epsilon and its total variation P(|x| <= d/2) grows with d, so the shift 1
    dominates: losses +-epsilon and 0.
    """

    kind: ClassVar[str] = "staircase"
    epsilon: float
    gamma: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))
        if self.gamma is not None:
            object.__setattr__(self, "gamma", unit_fraction("gamma", self.gamma))

    def pair(self) -> Pair:
        gamma = self.gamma if self.gamma is not None else 1 / (1 + math.exp(self.epsilon / 2))
        decay = math.exp(-self.epsilon)
        # total variation at shift 1: P(|x| <= 1/2), of which min(gamma, 1/2) has the top density
        top = -math.expm1(-self.epsilon) / (2 * (gamma + decay * (1 - gamma)))
        half = min(gamma, 0.5) + decay * max(0.0, 0.5 - gamma)
        variation = 2 * top * half
        high = variation / -math.expm1(-self.epsilon)  # P-mass of loss +epsilon
        rest = max(0.0, 1 - high * (1 + decay))
        e = self.epsilon
        if rest <= 0:
            return AtomsPair(
                np.array([-e, e]),
                np.array([1, decay]) / (1 + decay),
                symmetric=True,
                lattice=Lattice(-e, 2 * e),
                position_error=0.0,
            )
        return AtomsPair(
            np.array([-e, 0.0, e]),
            np.array([high, rest, high * decay]),
            symmetric=True,
            lattice=Lattice(-e, e),
            position_error=0.0,
        )
