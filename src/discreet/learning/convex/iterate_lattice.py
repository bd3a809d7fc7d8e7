r"""Where hidden iterates live, and by how much a computed step may differ from the real one.

An iterate is a whole number of steps of 2^exponent in every coordinate, and the noise added to it is an exact Gaussian
rounded to that lattice. Everything else of a step is floating point. `slack` bounds, for two runs together, how far
rounding and floats can drive them apart in one step beyond what the real maps do: an additional push in every step of
the accounting. docs/proofs/pnsgd-lattice.md derives it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.noise.gaussian import LARGEST_ROUNDED

if TYPE_CHECKING:
    from discreet.learning.problem import Facts

__all__ = ["IterateLattice"]

_UNIT = 2.0**-53
_SLOPE = 2.0**-45
"""How exactly slopes are computed from their margins, in parts of their bound: exponentials are good to 2^-50."""

_REACH_BITS = 52


@dataclass(frozen=True)
class IterateLattice:
    """A lattice of step 2^exponent: as fine as whole numbers below 2^53 and noise of scale up to 10^12 allow."""

    exponent: int

    @classmethod
    def of(cls, *, radius: float, deviation: float, move: float) -> IterateLattice:
        """For iterates in a ball of this radius, noise of this deviation, and gradient steps of at most this length."""
        finest = max(deviation / LARGEST_ROUNDED, math.ldexp(radius, -_REACH_BITS), math.ldexp(move, -_REACH_BITS))
        return cls(math.frexp(finest)[1])

    @property
    def step(self) -> float:
        """The step."""
        return math.ldexp(1.0, self.exponent)

    def slack(self, facts: Facts, *, radius: float, batch: int, step: float, convexity: float) -> float:
        """How much further than the real maps a step can drive two runs apart, rounded up; 0 < step <= 2/smoothness.

        Three roundings to the lattice (of the state, of the projection, of the move), the projection's factor, the
        margins through the curvature of the loss, slopes and their sums, and the shrinking by the penalty.
        """
        rounding = 1.5 * math.sqrt(facts.dimension) * self.step
        projection = (facts.dimension / 2 + 8) * _UNIT * radius
        place = math.sqrt(facts.loss.outputs) / facts.row_norm  # of the corner of a hinge, at margin 1
        margins = step * facts.smoothness * (facts.features + 8) * _UNIT * (radius + place)
        slopes = step * facts.lipschitz * (_SLOPE + (batch + facts.loss.outputs + 8) * _UNIT)
        penalty = 8 * _UNIT * step * convexity * radius
        return 2 * (rounding + projection + margins + slopes + penalty) * 1.01
