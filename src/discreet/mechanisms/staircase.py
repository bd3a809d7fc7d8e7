"""Staircase noise: pure privacy with less error than Laplace noise, the less the larger epsilon is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import decimal, finite_epsilon
from discreet.arguments import count, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.additive import LatticeAdditive
from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.sensitivity import sensitivity_of
from discreet.noise import staircase

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["Staircase", "least_absolute_gamma", "least_squares_gamma"]

_FINENESS = 20
_WIDEST = 39


@dataclass(frozen=True, init=False, repr=False)
class Staircase(LatticeAdditive):
    r"""Staircase noise: among all epsilon-DP noise on one number, that of the least error [Geng and Viswanath 2016].

    The density is constant on steps and falls by e^{-epsilon} from one to the next; the first ends at gamma *
    sensitivity and every further one is `sensitivity` wide. gamma = 1 / (1 + e^{epsilon/2}) by default, which gives the
    least mean absolute error; `least_squares_gamma(epsilon)` gives the least variance. At large epsilon the error falls
    like e^{-epsilon/2} where that of Laplace noise falls like 1/epsilon.

    On the lattice of multiples of `granularity` the first step is a whole number r of lattice steps wide, and the noise
    is the continuous staircase with gamma = (r - 1/2) / (sensitivity in steps), rounded: `Cost.staircase` of that gamma
    holds, see docs/proofs/lattice.md. `sensitivity` is the change of one number. For an array, one person may change
    `coordinates` of its numbers by so much each, and the cost is that of as many releases.

    >>> from discreet.mechanisms import Laplace, Staircase
    >>> one, other = Staircase(epsilon=8.0, sensitivity=1), Laplace(epsilon=8.0, sensitivity=1)
    >>> round(one.expected_absolute_error, 4), round(other.expected_absolute_error, 4)
    (0.0183, 0.125)
    """

    kind: ClassVar[str] = "staircase"
    epsilon: float
    gamma: float
    coordinates: int
    granularity: float

    def __init__(
        self,
        *,
        epsilon: float,
        sensitivity: float,
        gamma: float | None = None,
        coordinates: int = 1,
        granularity: float | None = None,
        adjacency: str = "add-remove",
    ) -> None:
        level = finite_epsilon(epsilon)
        bound = sensitivity_of("sensitivity", sensitivity)
        share = least_absolute_gamma(level) if gamma is None else unit_fraction("gamma", gamma)
        if granularity is None:
            # fine enough for the first step, which is narrow at large epsilon
            fineness = _FINENESS + min(60, max(0, math.ceil(-math.log2(share))))
            reach = Fraction(bound) * max(Fraction(1), 1 / Fraction(level))
            lattice = Lattice.below(Fraction(bound), reach, fineness=fineness, widest=_WIDEST)
        else:
            lattice = Lattice.of(granularity)
        self._set(
            epsilon=level,
            sensitivity=bound,
            gamma=share,
            coordinates=count("coordinates", coordinates, least=1),
            granularity=lattice.granularity,
            adjacency=adjacency,
        )
        if self.steps > 10**12 or self.steps / self._level > 10**12:
            raise InvalidArgument(
                "granularity", granularity, "noise is drawn exactly up to 1e12 steps: pass a larger granularity"
            )

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of all possible outputs."""
        return Lattice.of(self.granularity)

    @cached_property
    def steps(self) -> int:
        """The sensitivity in steps of the lattice."""
        return self.lattice.l1_steps(Fraction(self.sensitivity), 1)

    @cached_property
    def first(self) -> int:
        """How many lattice steps, from zero outwards, the first step of the staircase has: the nearest to gamma."""
        return min(self.steps, max(1, math.floor(Fraction(self.gamma) * self.steps + 1)))

    @cached_property
    def _level(self) -> Fraction:
        """The smaller of the two readings of epsilon."""
        return min(Fraction(self.epsilon), decimal(self.epsilon))

    @property
    def cost(self) -> Cost:
        """`Cost.staircase` at the gamma that the lattice allows, for every coordinate that one person may change."""
        gamma = (self.first - 0.5) / self.steps
        return self.coordinates * Cost.staircase(self.epsilon, gamma=gamma, adjacency=self.adjacency)

    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        return staircase(self._level, self.steps, self.first, shape, generator=generator)

    def _beyond(self, k: int) -> float:
        """P(|Z| >= k) for k >= 1, from the steps of height e^{-j epsilon}, each `steps` wide after the first."""
        decay, rest, total = self._parts()
        if k < self.first:
            return 2 * (self.first - k + rest) / total
        level, offset = divmod(k - self.first, self.steps)
        return 2 * decay**level * (rest - offset * decay) / total

    def _parts(self) -> tuple[float, float, float]:
        """e^{-epsilon}, the weight of one side beyond the first step, and the total weight."""
        decay = math.exp(-self.epsilon)
        rest = self.steps * decay / -math.expm1(-self.epsilon)
        return decay, rest, 2 * self.first - 1 + 2 * rest

    def _reach(self, miss: float, dimension: int) -> int:
        low, high = 0, 1
        while self._beyond(high) > miss:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._beyond(middle) > miss else (low, middle)
        return high - 1  # P(|Z| > q) = P(|Z| >= q + 1)

    def _moments(self, dimension: int) -> tuple[float, float]:
        decay, _, total = self._parts()
        width, first = float(self.steps), float(self.first)
        gap = -math.expm1(-self.epsilon)
        # sums of b^j (j-1)^n over j >= 1, and of i^n over i < width
        zero, one, two = decay / gap, decay**2 / gap**2, decay**2 * (1 + decay) / gap**3
        linear, square = width * (width - 1) / 2, (width - 1) * width * (2 * width - 1) / 6
        absolute = first * (first - 1) / 2 + (first * width + linear) * zero + width**2 * one
        squared = (first - 1) * first * (2 * first - 1) / 6 + (
            (first**2 * width + 2 * first * linear + square) * zero
            + 2 * width * (first * width + linear) * one
            + width**3 * two
        )
        return 2 * absolute / total, 2 * squared / total


def least_absolute_gamma(epsilon: float) -> float:
    """The share of the first step that gives the least mean absolute error, 1 / (1 + e^{epsilon/2})."""
    return math.exp(-epsilon / 2) / (1 + math.exp(-epsilon / 2))


def least_squares_gamma(epsilon: float) -> float:
    """The share of the first step that gives the least variance.

    With b = e^{-epsilon}: -b / (1-b) + (b - 2b^2 + 2b^4 - b^5)^{1/3} / (2^{1/3} (1-b)^2) [Geng and Viswanath 2016].
    """
    b = math.exp(-finite_epsilon(epsilon))
    gap = -math.expm1(-epsilon)
    # b - 2b^2 + 2b^4 - b^5 = b (1-b)^3 (1+b)
    root = math.cbrt(b * (1 + b) / 2)
    return root / gap - b / gap
