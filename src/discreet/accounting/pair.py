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
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.divergence.logspace import exp_minus, log1p_minus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Reals = NDArray[np.floating[Any]]
    Complexes = NDArray[np.complexfloating[Any, Any]]

__all__ = [
    "ROUNDING",
    "Direction",
    "Lattice",
    "Nodes",
    "Pair",
    "Tails",
    "guarded",
    "log_near_one",
    "log_power_line_of",
    "log_power_mean_of",
    "total_infinite",
    "unit_interval",
]

ROUNDING = 2.0**-53
"""Relative error of one correctly rounded operation.

Elementary functions (exp, log, log1p, expm1, sin, cos, atan2) are taken to be good to 4 ulp and every bound in this
room charges at least 32 ROUNDING a node, several times what an operation-by-operation count gives.
"""


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


class ErrorBound(Protocol):
    """ln of a bound of |sum over the nodes - E_Q[w^b]| for each exponent b."""

    def __call__(self, powers: Complexes) -> Reals: ...


@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature for E_Q[g(l)]: losses l_j, excesses v_j = e^{l_j} - 1, log weights, and its error."""

    loss: Reals
    excess: Reals
    log_weight: Reals
    log_error: ErrorBound | None = None
    """None: the sum is exact (atoms)."""
    slip: Reals | None = None
    """Absolute error of each loss in units of ROUNDING; None for 4 |loss|."""


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


def log_power_mean_of(
    nodes: Nodes, powers: Complexes, p_missing: float = 0.0, q_missing: float = 0.0
) -> tuple[Complexes, Reals]:
    r"""ln sum_j q_j w_j^b for each b in `powers`, and a bound of its absolute error.

    A single step of a long training run has E_Q[w^b] = 1 + O(1e-16 ...), so 1 must never be formed. As
    E_Q[1] = 1 - q_missing and E_Q[w] = 1 - p_missing are known exactly,

        E_Q[w^b] - 1 = -q_missing + b (q_missing - p_missing) + E_Q[ (e^{bl} - 1 - bl) + b (ln(1+v) - v) ],

    every bracket computed without cancellation. When w^b overflows, the plain sum in log scale is as good.
    """
    loss = nodes.loss
    block = max(1, 500_000 // len(loss))
    if len(powers) > block:  # memory stays small
        blocks = [
            log_power_mean_of(nodes, powers[start : start + block], p_missing, q_missing)
            for start in range(0, len(powers), block)
        ]
        return np.concatenate([value for value, _ in blocks]), np.concatenate([error for _, error in blocks])
    log_error = np.full(len(powers), -np.inf) if nodes.log_error is None else nodes.log_error(powers)
    reals, index = np.unique(powers.real, return_inverse=True)
    real_part = np.outer(reals, loss)
    size = np.abs(powers)
    if float(real_part.max()) <= 300.0:
        weight = np.exp(nodes.log_weight)
        exponent = np.outer(powers, loss)
        deep = nodes.excess < -0.5
        bend = np.where(deep, loss - nodes.excess, log1p_minus(np.where(deep, 0.0, nodes.excess)))
        bend_mean = float((bend * weight).sum())
        # with A = bl, |A (e^A - 1)| is at most |A|^2 max(1, e^Re A) and at most |A| (1 + e^Re A)
        growth = np.exp(real_part)
        # a weight e^-k carries some k roundings of its own
        care = weight * (1 + np.abs(nodes.log_weight) / 16)
        square = (np.maximum(growth, 1.0) * (care * loss * loss)).sum(axis=1)[index] * size * size
        linear = ((1.0 + growth) * (care * np.abs(loss))).sum(axis=1)[index] * size
        sizes = np.minimum(square, linear)
        excess = np.einsum("ij,j->i", exp_minus(exponent), weight) + powers * bend_mean
        excess += -q_missing + powers * (q_missing - p_missing)
        bends = float((np.abs(bend) * care).sum())
        error = 64 * ROUNDING * (sizes + np.abs(powers) * bends + np.abs(excess)) + np.exp(log_error)
        if nodes.slip is not None:
            # d/dl of a node's term is b (e^{bl} - e^l), at most |b| |b - 1| |l| max(e^{bl}, e^l) and |b| (e^{bl} + e^l)
            extra = weight * np.maximum(nodes.slip - 4 * np.abs(loss), 0.0)
            ratio = np.exp(loss)
            steep = (np.maximum(growth, ratio) * (extra * np.abs(loss))).sum(axis=1)[index] * size * np.abs(powers - 1)
            plain = ((growth + ratio) * extra).sum(axis=1)[index] * size
            error += ROUNDING * np.minimum(steep, plain)
        if p_missing or q_missing:
            error += 512 * ROUNDING * (q_missing + np.abs(powers) * (q_missing + p_missing))
        mean = 1.0 + excess
        return guarded(log_near_one(excess), np.abs(mean), error)
    exponent = np.outer(powers, loss) + nodes.log_weight
    top = exponent.real.max(axis=1)
    terms = np.exp(exponent - top[:, None])
    mean = terms.sum(axis=1)
    slip = 4 * np.abs(loss) if nodes.slip is None else nodes.slip
    reach = 1.0 + size[:, None] * (np.abs(loss) + slip) + np.abs(nodes.log_weight)
    error = 64 * ROUNDING * (reach * np.abs(terms)).sum(axis=1)
    error += np.exp(np.minimum(log_error - top, 700.0))
    value, bound = guarded(np.log(mean), np.abs(mean), error)
    return value + top, bound + 4 * ROUNDING * np.abs(top)


_BLOCK = 64


def log_power_line_of(nodes: Nodes, power: float, spacing: float, count: int) -> tuple[Complexes, Reals, float, float]:
    """ln of E_Q[w^{power + iy}] / E_Q[w^power] at y = spacing n for n = 0 .. count - 1, a bound of its error, and
    ln E_Q[w^power] with its error.

    A long line costs a few multiplications a node instead of an exponential: phases for one block of heights are
    made once, and the coefficients turned from block to block. With y = y_0 + y_1 and U = e^{i y_0 l} - 1,
    V = e^{i y_1 l} - 1,

        e^{iyl} - 1 = U + V + U V,

    so sums of small numbers are formed, and the error is in proportion to E|yl|, not to 1. Sums are pairwise.
    """
    exponent = power * nodes.loss + nodes.log_weight
    top = float(exponent.max())
    coefficient = np.exp(exponent - top)
    total = float(coefficient.sum())
    kept = coefficient > 1e-26 * total
    dropped = float(coefficient[~kept].sum()) / total
    loss, weight = nodes.loss[kept], coefficient[kept] / total
    block = max(1, min(_BLOCK, 2 * math.isqrt(count), 500_000 // len(loss)))  # few sines, and memory stays small
    near = _turned(np.outer(spacing * np.arange(block), loss))
    near_sum = (near * weight).sum(axis=1)
    change = np.empty(block * math.ceil(count / block), dtype=complex)
    for start in range(0, count, block):
        far = _turned((spacing * start) * loss) * weight
        change[start : start + block] = near_sum + (far.sum() + (near * far).sum(axis=1) if start else 0.0)
    change = change[:count]
    height = spacing * np.arange(count)
    # |e^{iyl} - 1| <= min(2, y|l|); each term is off by the rounding of its weight's exponent, of a pairwise sum and of
    # a few products, and by that of its phase, 4 y|l|
    slip = (4 * np.abs(nodes.loss) if nodes.slip is None else nodes.slip)[kept]
    care = weight * (48 + 4 * (abs(power) * np.abs(loss) + np.abs(nodes.log_weight[kept]) + abs(top)))
    care += weight * abs(power) * slip
    order = np.argsort(np.abs(loss))
    extent = np.abs(loss)[order]
    linear = np.append(0.0, np.cumsum(care[order] * extent))
    flat = np.append(np.cumsum(care[order][::-1])[::-1], 0.0)
    split = np.searchsorted(extent, 2 / np.maximum(height, 1e-300))
    error = np.asarray(ROUNDING * (height * linear[split] + 2 * flat[split]) * (1 + 1e-9))
    error += 2 * ROUNDING * height * float((weight * (slip + 4 * np.abs(loss))).sum()) + 2 * dropped
    log_start = top + math.log(total)
    start_error = float(ROUNDING * (64 + 4 * float(care.sum()) + 4 * abs(log_start)) + dropped)
    if nodes.log_error is not None:
        quadrature = np.exp(np.minimum(nodes.log_error(power + 1j * height) - log_start, 700.0))
        error += quadrature + quadrature[0]
        start_error += 2 * float(quadrature[0])
    value, error = guarded(log_near_one(change), np.abs(1.0 + change), error)
    return value, error, log_start, start_error


def log_near_one(change: Complexes) -> Complexes:
    """ln(1 + change), without cancellation where the change is small and without blow-up where the sum is."""
    modulus = np.abs(1.0 + change)
    square = change.real * (2 + change.real) + change.imag**2
    near = modulus > 0.5
    size = np.where(near, 0.5 * np.log1p(np.where(near, square, 0.0)), np.log(np.where(near, 1.0, modulus) + 1e-300))
    return np.asarray(size + 1j * np.angle(1.0 + change))


def _turned(angle: Reals) -> Complexes:
    """e^{i angle} - 1 without cancellation."""
    result = np.empty(angle.shape, dtype=complex)
    half = np.sin(0.5 * angle)
    result.real = -2 * half * half
    result.imag = np.sin(angle)
    return result


def guarded(value: Complexes, modulus: Reals, error: Reals) -> tuple[Complexes, Reals]:
    """Turns an absolute error of a mean into one of its logarithm; a mean lost in its error is replaced by a bound.

    If |mean| < 4 error, then the true modulus is below 5 error. Reporting ln(4 error) with log-error ln 3.25 keeps
    |truth^k - reported^k| <= reported^k (3.25^k - 1) for every k >= 1.
    """
    lost = ~(modulus >= 4 * error)  # also where a NaN slipped in
    safe = np.where(lost, 1.0, modulus)
    bound = -np.log1p(-np.where(lost, 0.0, error / safe)) + 8 * ROUNDING * np.abs(value)
    value = np.where(lost, np.log(np.maximum(4 * error, 1e-300)), value)
    return value, np.where(lost, np.log(3.25), bound)


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
