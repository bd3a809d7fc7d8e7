r"""A dominating pair (P, Q) and what the accountants may ask of it.

Write w = dP/dQ for the likelihood ratio and l = ln w for the privacy loss. A mechanism is dominated by (P, Q) when its
hockey-stick divergences, from the output with the person's record to the one without it, stay below those of (P, Q),
and the other way round below those of (Q, P) [Zhu et al. 2022, Def. 7]. All parts of a composition share this order,
so only all-forward and all-backward are composed. Both come from the same numbers: with z = t + iy,

    forward,  loss ln dP/dQ under P:    E e^{zL} = E_Q[w^{z+1}],
    backward, loss ln dQ/dP under Q:    E e^{zL} = E_Q[w^{-z}],

so a pair only has to know E_Q[w^b] for complex b (`log_power_mean`), a bound of its modulus far out on a vertical line
(`log_decay`) and the two distribution functions of l (`tails`). Composition, sampling, reading and storing are
written once on top of these.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.nodes import ROUNDING, Nodes, log_power_line_of, log_power_mean_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Reals = NDArray[np.floating[Any]]
    Complexes = NDArray[np.complexfloating[Any, Any]]

__all__ = [
    "ROUNDING",
    "Direction",
    "Lattice",
    "Pair",
    "Tails",
    "total_infinite",
    "unit_interval",
]


def unit_interval(low: float, high: float) -> tuple[float, float]:
    """(low, high) cut to [0, 1]; a NaN becomes the end that claims nothing."""
    return (max(0.0, low)), (max(high, 0.0) if high < 1.0 else 1.0)


class Direction(enum.Enum):
    """Which order of the pair: `FORWARD` is (P, Q), `BACKWARD` is (Q, P)."""

    FORWARD = "forward"
    BACKWARD = "backward"

    def power(self, z: Complexes) -> Complexes:
        """The exponent b with E e^{zL} = E_Q[w^b]."""
        return z + 1 if self is Direction.FORWARD else -z


@dataclass(frozen=True)
class Lattice:
    """Losses of the form origin + step * integer, with their forward masses P(l) and backward masses Q(l)."""

    origin: float
    step: float
    mismatch: float = 0.0
    """By how much a loss may be off its lattice point."""


@dataclass(frozen=True)
class Tails:
    """P(l > x), P(l <= x), Q(l > x), Q(l <= x) at the asked points, each with small *relative* error.

    The mass where one of the two vanishes (l = +inf or -inf) is not counted.
    """

    p_above: Reals
    p_below: Reals
    q_above: Reals
    q_below: Reals


class Pair(ABC):
    """A dominating pair; immutable, compared by the description that made it."""

    symmetric: bool = False
    """True when (Q, P) has the same profile as (P, Q): one direction is then enough."""

    p_missing: float = 0.0
    """P-mass where Q vanishes: loss +inf forward."""

    q_missing: float = 0.0
    """Q-mass where P vanishes: loss +inf backward."""

    p_cut: float = 0.0
    """P-mass of losses left out on purpose: counted as infinite in upper bounds, as nothing in lower ones."""

    q_cut: float = 0.0
    """The same under Q."""

    lattice: Lattice | None = None
    """Set when all finite losses lie on a lattice."""

    blur: float = 0.0
    """By how much each loss may be off, absolutely (tables of given probabilities)."""

    tail_error: float = 256 * ROUNDING
    """Relative error of `tails`."""

    most_points: int = 1 << 20
    """How many grid points a single step may take."""

    is_finite: bool = False
    """True when `atoms` are all there is."""

    has_transform: bool = True
    """False when `log_power_mean` is not certified off the real axis."""

    def sampled(self, rate: float) -> Pair:
        """The pair of the Poisson-sampled mechanism."""
        from discreet.accounting.pairs.tails import ThinnedPair

        return ThinnedPair(self, rate)

    def cut(self, log_mass: float) -> Pair:
        """This pair without the far losses whose P-mass is at most e^log_mass; itself if that is of no use."""
        return self

    def directions(self) -> tuple[Direction, ...]:
        return (Direction.FORWARD,) if self.symmetric else (Direction.FORWARD, Direction.BACKWARD)

    def infinite(self, direction: Direction) -> float:
        """P(L = inf) in this direction."""
        return self.p_missing if direction is Direction.FORWARD else self.q_missing

    @property
    @abstractmethod
    def span(self) -> tuple[float, float]:
        """Smallest and largest finite loss l (may be infinite)."""

    @abstractmethod
    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        """Nodes good for all b with real part in `power` and |imaginary part| <= reach."""

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        """How many nodes `nodes` would return, for planning."""
        return len(self.nodes(power, reach).loss)

    @abstractmethod
    def log_decay(self, power: float, reach: Reals) -> Reals:
        """For each r in `reach` a bound of ln|E_Q[w^{power + iy}]| valid for **all** |y| >= r."""

    @abstractmethod
    def tails(self, loss: Reals) -> Tails:
        """Both distribution functions of l at the given losses."""

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float] | None:
        """Certified bounds of D(epsilon) in closed form, if there is one better than the difference of two tails."""
        return None

    def log_decay_within(self, power: float, reach: Reals) -> Reals:
        """Like `log_decay`, but only for |y| within one period of the pair's own lattice."""
        return self.log_decay(power, reach)

    def log_modulus(self, power: float, height: Reals, half: float) -> Reals:
        """For each y in `height` a bound of ln|E_Q[w^{power + iv}] / E_Q[w^power]| for all v within `half` of y.

        Cheap and rough; 0 claims nothing.
        """
        return np.zeros(len(height))

    def atoms(self) -> tuple[Reals, Reals]:
        """Positions and Q-masses of the atoms of l, increasing; empty for a continuous law."""
        return np.empty(0), np.empty(0)

    def log_power_mean(self, powers: Complexes) -> tuple[Complexes, Reals]:
        """ln E_Q[w^b] (over finite l) for each b and a bound of its absolute error."""
        reals = powers.real
        nodes = self.nodes((float(reals.min()), float(reals.max())), float(np.abs(powers.imag).max()))
        return log_power_mean_of(nodes, powers, self.p_missing + self.p_cut, self.q_missing + self.q_cut)

    def log_power_bound(self, powers: Reals) -> Reals:
        """An upper bound of ln E_Q[w^b] for real b outside (0, 1); need not be sharp to more than 1e-9."""
        value, error = self.log_power_mean(powers.astype(complex))
        return np.asarray(value.real + error)

    def log_power_line(self, power: float, spacing: float, count: int, times: int) -> tuple[Complexes, Reals, float]:
        """`log_power_mean` at power + i spacing n for n = 0 .. count - 1, for long lines and `times` repetitions.

        The error has a part for each height and one that is the same number at all of them.
        """
        nodes = self.nodes((power, power), spacing * (count - 1))
        value, error, start, start_error = log_power_line_of(nodes, power, spacing, count)
        if times > 10_000:  # the plain sum on the real axis is good to 1e-14, which is too little if repeated so often
            accurate, bound = self.log_power_mean(np.array([complex(power)]))
            start, start_error = float(accurate[0].real), float(bound[0])
        return value + start, error, start_error

    def cumulants(self, power: float) -> tuple[float, float, float]:
        """ln E_Q[w^b] and its first two derivatives in b, for real b; approximate, used only to place contours."""
        nodes = self.nodes((power, power), 0.0)
        log_terms = power * nodes.loss + nodes.log_weight
        top = float(log_terms.max())
        terms = np.exp(log_terms - top)
        total = float(terms.sum())
        weighted = terms * nodes.loss
        mean = float(weighted.sum()) / total
        variance = max(0.0, float((weighted * nodes.loss).sum()) / total - mean * mean)
        return top + math.log(total), mean, variance


def total_infinite(pairs: Sequence[tuple[Pair, int]], direction: Direction) -> tuple[float, float]:
    """Bounds of P(some loss is infinite) = 1 - prod (1 - m_i)^{k_i}; what was cut counts in the upper one only."""
    log_low = log_high = 0.0
    for pair, count in pairs:
        mass = pair.infinite(direction)
        cut = pair.p_cut if direction is Direction.FORWARD else pair.q_cut
        if mass >= 1.0:
            return 1.0, 1.0
        log_low += count * math.log1p(-mass)
        log_high += count * math.log1p(-min(mass + cut * (1 + 1e-12), 1.0 - ROUNDING))
    lossy = [(pair.infinite(direction), count) for pair, count in pairs if pair.infinite(direction) > 0]
    if log_low == log_high and len(lossy) == 1 and lossy[0][1] == 1:
        return lossy[0][0], lossy[0][0]  # one box alone: its delta, not rounded
    slack = 16 * ROUNDING * (len(pairs) + 1)
    return 0.0 - math.expm1(log_low) * (1 - slack), min(1.0, 0.0 - math.expm1(log_high) * (1 + slack))
