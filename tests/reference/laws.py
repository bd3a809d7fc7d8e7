"""Privacy-loss laws in ball arithmetic: E_P exp(zL) for one direction of a dominating pair.

A law of a smooth pair is integrated by Gauss–Legendre panels laid where the integrand lives, graded by the distance to
the branch points of the likelihood ratio. Parameters are taken as the exact values of the doubles that are passed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from flint import acb, acb_mat, arb

from reference.quadrature import legendre

DEPTH = 85.0
"""Integrands are kept down to exp(-DEPTH) of their peak (1e-37)."""


PHASE = 10.0
"""Half-width of a panel, in radians of exp(zL): 32 points resolve 10 radians to 1e-30 and better."""


MOST_NODES = 60_000
"""A law that needs more is refused: the line would take an hour."""


class Law(Protocol):
    """One direction of a pair (P, Q), known by the moments of L = ln dP/dQ under P."""

    @property
    def reach(self) -> float:
        """How far |Re z| may lean without E_P exp(zL) losing more digits to cancellation than are carried."""

    def moments(self, centre: acb, half: acb, order: int) -> list[acb]:
        """E_P exp(zL) at the Gauss–Legendre points z = centre + half * x."""


def moment(law: Law, z: acb) -> acb:
    """E_P exp(zL) at one point."""
    return law.moments(z, acb(0), 1)[0]


_SPREADS: dict[tuple[int, str, int], tuple[object, acb_mat]] = {}


@dataclass
class Atoms:
    """A finite law: losses[k] with P-probability weights[k] (an infinite loss is left out: its mass is lost)."""

    losses: list[arb]
    weights: list[arb]
    reach: float = math.inf

    def moments(self, centre: acb, half: acb, order: int) -> list[acb]:
        row = acb_mat(
            1, len(self.losses), [w * (centre * l).exp() for l, w in zip(self.losses, self.weights, strict=True)]
        )
        return list((row * self._spread(half, order)).entries())

    def _spread(self, half: acb, order: int) -> acb_mat:
        """exp(half x L) for every loss and node: panels of equal width share it, so the newest few are kept."""
        key = (id(self), half.str(40, radius=False), order)
        if key not in _SPREADS:
            if len(_SPREADS) >= 8:
                del _SPREADS[next(iter(_SPREADS))]
            nodes = legendre(order)[0]
            matrix = acb_mat(len(self.losses), order, [(half * l * x).exp() for l in self.losses for x in nodes])
            _SPREADS[key] = (self, matrix)
        return _SPREADS[key][1]


@dataclass(frozen=True)
class Gaussian:
    """N(1, sigma^2) against N(0, sigma^2): exp(z(z + 1) / (2 sigma^2)), both directions alike."""

    sigma: float
    reach: float = math.inf

    def moments(self, centre: acb, half: acb, order: int) -> list[acb]:
        scale = 1 / (2 * arb(self.sigma) ** 2)
        return [(z * (z + 1) * scale).exp() for z in (centre + half * x for x in legendre(order)[0])]


@dataclass(frozen=True)
class Laplace:
    """Lap(0, b) against Lap(1, b), both directions alike: (exp(az)(z+1) + exp(-a(z+1)) z) / (2z + 1), a = 1/b."""

    b: float
    reach: float = math.inf

    def moments(self, centre: acb, half: acb, order: int) -> list[acb]:
        a = 1 / arb(self.b)
        points = [centre + half * x for x in legendre(order)[0]]
        return [((a * z).exp() * (z + 1) + (-a * (z + 1)).exp() * z) / (2 * z + 1) for z in points]


@dataclass
class Sampled:
    """Poisson sampling of a pair with log-likelihood ratio u: the loss is +-ln(1 - q + q e^u).

    ``base_*`` describe the law of u under Q: an analytic density on an interval, and atoms. ``direction`` "remove" is
    ((1-q)Q + qP, Q), "add" is (Q, (1-q)Q + qP).
    """

    rate: float
    direction: str
    density: Callable[[arb], arb]
    log_density: Callable[[float], float]
    interval: tuple[float, float]
    ends: tuple[arb, arb]
    atoms: list[tuple[arb, arb]]
    panel: float
    reach: float = math.inf
    order: int = 32
    _laws: dict[tuple[int, int, int], Atoms] = field(default_factory=dict, repr=False)

    def _log_ratio(self, u: float) -> float:
        q = self.rate
        return math.log(1 - q + q * math.exp(u)) if u < 30 else u + math.log(q + (1 - q) * math.exp(-u))

    def _slope(self, u: float) -> float:
        q = self.rate
        return q / (q + (1 - q) * math.exp(-u)) if u > -600 else 0.0

    def moments(self, centre: acb, half: acb, order: int) -> list[acb]:
        s = centre + 1 if self.direction == "remove" else -centre
        middle, spread = float(s.real.mid()), float(abs(half.real).mid())
        size = float((abs(s) + abs(half)).mid())
        low, high = _rounded(middle - spread, -1), _rounded(middle + spread, 1)
        key = (low, high, math.ceil(math.log2(size + 1)))
        if key not in self._laws:
            self._laws[key] = self._discretised(_unrounded(low), _unrounded(high), 2.0 ** key[2])
        return self._laws[key].moments(centre, half, order)

    def _discretised(self, low: float, high: float, size: float) -> Atoms:
        left, right = self._support(low, high)
        branch = math.log((1 - self.rate) / self.rate) if self.rate < 1 else -math.inf
        edges = [left]
        while edges[-1] < right:
            u = edges[-1]
            w = self.panel
            for _ in range(60):
                gap = max(0.0, u - branch, branch - (u + 2 * w))
                if w <= 0.4 * math.hypot(math.pi, gap) and size * self._slope(u + 2 * w) * w <= PHASE:
                    break
                w *= 0.8
            edges.append(u + 2 * w)
            if len(edges) * self.order > MOST_NODES:
                raise ArithmeticError(f"more than {MOST_NODES} nodes for |s| = {size:g}")
        points = [arb(e) for e in edges]
        points[-1] = arb(right)
        if left == self.interval[0]:
            points[0] = self.ends[0]
        if right == self.interval[1]:
            points[-1] = self.ends[1]
        q, sign = arb(self.rate), 1 if self.direction == "remove" else -1
        nodes, gauss = legendre(self.order)
        losses, weights = [], []
        masses = list(self.atoms)
        for a, b in itertools.pairwise(points):
            middle, half = (a + b) / 2, (b - a) / 2
            masses += [
                (middle + half * x, w * half * self.density(middle + half * x))
                for x, w in zip(nodes, gauss, strict=True)
            ]
        for at, mass in masses:
            ratio = (1 - q) + q * at.exp()
            losses.append(sign * ratio.log())
            weights.append(mass * ratio if sign > 0 else mass)
        return Atoms(losses, weights)

    def _support(self, low: float, high: float) -> tuple[float, float]:
        """Where the integrand exceeds exp(-DEPTH) of its peak, for every Re s in [low, high]."""
        left, right = math.inf, -math.inf
        for s in (low, high):
            start, stop = self._window(s)
            grid = [start + (stop - start) * k / 4000 for k in range(4001)]
            heights = [self.log_density(u) + s * self._log_ratio(u) for u in grid]
            # off the real axis the moment may be far below its value at Re z: keep what matters against one as well
            floor = min(max(heights), 0.0) - DEPTH
            kept = [k for k, h in enumerate(heights) if h >= floor]
            if math.isinf(self.interval[0]) and (kept[0] == 0 or kept[-1] == 4000):
                raise ArithmeticError(f"the integrand at s = {s} leaves its window")
            left = min(left, grid[max(kept[0] - 1, 0)])
            right = max(right, grid[min(kept[-1] + 1, 4000)])
        return left, right

    def _window(self, s: float) -> tuple[float, float]:
        return self.interval


def _rounded(x: float, way: int) -> int:
    """Index on the grid of +-2^(k/2) - 1 (a coarse grid, so that discretisations are shared between panels)."""
    if x >= 0:
        k = 2 * math.log2(1 + x)
        return math.ceil(k) if way > 0 else math.floor(k)
    return -_rounded(-x, -way)


def _unrounded(k: int) -> float:
    return math.copysign(math.exp2(abs(k) / 2) - 1, k)


class SampledGaussian(Sampled):
    """N(1, sigma^2) against N(0, sigma^2), Poisson-sampled: under Q the log-ratio u is N(-v/2, v), v = 1/sigma^2."""

    def __init__(self, sigma: float, rate: float, direction: str, *, order: int = 32) -> None:
        self.sigma = sigma
        v = 1 / arb(sigma) ** 2
        norm = 1 / (2 * arb.pi() * v).sqrt()
        super().__init__(
            rate=rate,
            direction=direction,
            density=lambda u: norm * (-((u + v / 2) ** 2) / (2 * v)).exp(),
            log_density=lambda u: -((u * sigma + 0.5 / sigma) ** 2) / 2,
            interval=(-math.inf, math.inf),
            ends=(arb(0), arb(0)),
            atoms=[],
            panel=0.5 / sigma,
            reach=14 * sigma,
            order=order,
        )

    def _window(self, s: float) -> tuple[float, float]:
        v = 1 / self.sigma**2
        reach = (math.sqrt(2 * DEPTH + max(s * (s - 1) * v, 0.0)) + 3) / self.sigma
        # s < 0 presses towards u = -inf, by |s| v at most, and only as far as |s| q e^u stays above one
        pressed = min(max(-s, 0.0) * v, 2 * math.log1p(max(-s, 0.0)) + 2 * reach)
        return -v / 2 - reach - pressed, -v / 2 + reach + max(s, 0.0) * v


class SampledLaplace(Sampled):
    """Lap(1, b) against Lap(0, b), Poisson-sampled; under Q: atoms at +-a = +-1/b, density exp(-(a + u)/2)/4."""

    def __init__(self, b: float, rate: float, direction: str, *, order: int = 32) -> None:
        a = 1 / arb(b)
        edge = float(a.mid())
        super().__init__(
            rate=rate,
            direction=direction,
            density=lambda u: (-(a + u) / 2).exp() / 4,
            log_density=lambda u: -(edge + u) / 2,
            interval=(-edge, edge),
            ends=(-a, a),
            atoms=[(-a, arb(1) / 2), (a, (-a).exp() / 2)],
            panel=1.0,
            order=order,
        )
