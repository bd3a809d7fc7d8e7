r"""What the best of a random number of runs costs [Papernot and Steinke 2022].

A private algorithm Q gives a result with a score. Draw K, run Q that many times, and show the result of the best score
and nothing else, not even K. If K is logarithmic or geometric with parameter g,

    P(K = k) ∝ (1 - g)^k / k           (eta = 0)          or          P(K = k) = g (1 - g)^(k-1)       (eta = 1),

and Q has the Rényi curve r, the result has, for every order a > 1 and every b >= 1 [Papernot and Steinke 2022, Thm 2],

    r'(a) = r(a) + (1 + eta) ((1 - 1/b) r(b) + log(1/g) / b) + log(E K) / (a - 1),

and if Q is e-DP, the result is ((2 + eta) e)-DP [Papernot and Steinke 2022, Cor. 3]. A fixed number of runs has no such
bound: the best of k runs can cost k times as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from discreet.accounting.cost import Cost
from discreet.arguments import one_of, real
from discreet.errors import InvalidArgument
from discreet.noise import bernoulli, geometric

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["Runs"]

_FINE = 2**20
_ORDERS = tuple(sorted({*(1 + 2 ** (k / 4) for k in range(-12, 41))}))


@dataclass(frozen=True)
class Runs:
    """A random number of runs, at least one, with this mean; logarithmic (the cheaper) or geometric."""

    expected: float
    law: str = "logarithmic"

    def __post_init__(self) -> None:
        one_of("law", self.law, ["logarithmic", "geometric"])
        if not 1 < real("expected_runs", self.expected) <= 1e6:
            raise InvalidArgument("expected_runs", self.expected, "pass a number above 1 and at most 1e6")

    @property
    def eta(self) -> int:
        """0 for logarithmic, 1 for geometric."""
        return 0 if self.law == "logarithmic" else 1

    @cached_property
    def scale(self) -> Fraction:
        """1 - g = e^(-1/scale): the largest multiple of 2^-20 whose mean is at most what was asked for."""
        low, high = 0, 1
        while self._mean(Fraction(high, _FINE)) <= self.expected:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._mean(Fraction(middle, _FINE)) <= self.expected else (low, middle)
        return Fraction(max(low, 1), _FINE)

    def _mean(self, scale: Fraction) -> float:
        g = -math.expm1(-1 / float(scale))
        if self.law == "geometric":
            return 1 / g
        return (1 - g) / g / -math.log(g) if g < 1 else 1.0

    @property
    def parameter(self) -> float:
        """g."""
        return -math.expm1(-1 / float(self.scale))

    @property
    def mean(self) -> float:
        """E K, rounded up."""
        return self._mean(self.scale) * (1 + 1e-12)

    def draw(self, generator: Generator | None = None) -> int:
        """One number of runs, exactly of its law; it must stay secret."""
        while True:
            number = 1 + geometric(self.scale, generator=generator)
            # a geometric number that survives with probability 1/k is logarithmic
            if self.law == "geometric" or bernoulli(Fraction(1, number), generator=generator):
                return number

    def cost(self, base: Cost) -> Cost:
        """What the best of the runs costs if one run, its score included, costs `base`."""
        pure = base.pure_epsilon()
        if math.isfinite(pure):
            return Cost.pure((2 + self.eta) * pure * (1 + 1e-15), adjacency=base.adjacency)
        log_g, log_mean = -math.log(self.parameter) * (1 + 1e-12), math.log(self.mean) * (1 + 1e-12)
        values = {order: base.rdp(order) for order in _ORDERS}
        best = min((1 - 1 / b) * r + log_g / b for b, r in values.items())
        if not math.isfinite(best):
            raise InvalidArgument(
                "cost", base, "the best of several runs needs a base cost with finite Rényi divergences"
            )
        extra = (1 + self.eta) * best
        curve = {a: (r + extra + log_mean / (a - 1)) * (1 + 1e-12) for a, r in values.items() if math.isfinite(r)}
        return Cost.renyi(curve, adjacency=base.adjacency)
