r"""One Poisson-sampled Gaussian step, its noise split softly into ordinary, rare and far outputs.

With chi_a(x) = Phi((x - a) / tau_a) and w = 1 - q + q e^u as in :mod:`discreet.accounting.pairs.gaussian`,

    1 = (1 - chi_c)(1 - chi_f) + chi_c (1 - chi_f) + chi_f        ("small", "middle", "far"),

three non-negative parts of the noise and so of the law of the loss. Each is log-concave in x, entire, and off the real
axis no larger than e^{a^2/2 (1/tau_c^2 + 1/tau_f^2)} times its value below, a = |Im x|. All bounds here are sums over
cells of the largest value in the cell; only the values themselves come from the trapezoid rule, whose error such a sum
bounds. Proof: docs/proofs/rare.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.nodes import Nodes, log_power_mean_of
from discreet.accounting.pair import ROUNDING, Pair, Tails
from discreet.accounting.pairs.gaussian import SampledGaussianPair
from discreet.accounting.saddle import Unreachable
from discreet.divergence.special import log_ndtr, ndtr

if TYPE_CHECKING:
    from discreet.accounting.pair import Complexes, Reals

__all__ = ["Part", "SmallPair", "SplitStep"]

_DEPTH = 38.0
"""Trapezoid sums are good to e^-38 of their value."""

_MOST_NODES = 20_000


@dataclass(frozen=True, eq=False)
class Part:
    """One part of the noise: ln of its weighted density at the edges of the cells, and a bound of it in each cell."""

    log_density: Reals
    log_above: Reals
    slope_left: float
    slope_right: float
    """How ln density rises left of the first edge (at least), and falls right of the last (at most)."""


@dataclass(frozen=True)
class SplitStep:
    """The step and where its noise is split: `start` and `stop` (outputs x), each softened by a normal law."""

    sigma: float
    rate: float
    start: float
    stop: float
    start_width: float
    stop_width: float

    @property
    def pair(self) -> SampledGaussianPair:
        return SampledGaussianPair(self.sigma, self.rate)

    @property
    def end(self) -> float:
        """Beyond this output everything is far: chi_f differs from 1 by less than 1e-57 there. A number of few bits."""
        grid = 2.0 ** (math.frexp(self.sigma)[1] - 30)
        return grid * math.ceil((self.stop + 16 * self.stop_width) / grid)

    @cached_property
    def edges(self) -> Reals:
        """Edges of the cells, dense where the parts change; the last one is the end."""
        fine = min(self.start_width, self.stop_width) / 3
        low = min(-13.0 * self.sigma, self.start - 12 * self.start_width)
        middle = max(low, self.start - 9 * self.start_width)
        if (self.end - middle) / fine > _MOST_NODES:
            raise Unreachable("the rare losses are too far apart")
        ordinary = np.linspace(low, middle, max(2, math.ceil((middle - low) / (0.1 * self.sigma))) + 1)
        dense = np.linspace(middle, self.end, math.ceil((self.end - middle) / fine) + 1)
        return np.concatenate([ordinary[:-1], dense])

    @cached_property
    def exponent(self) -> Reals:
        """u at the edges."""
        return (self.edges - 0.5) / self.sigma**2

    @cached_property
    def loss(self) -> Reals:
        return self.pair._ratio(self.exponent)[0]

    def log_weight(self, x: Reals, which: str) -> Reals:
        """ln of a part's share of the noise."""
        if which == "far":
            return np.asarray(log_ndtr((x - self.stop) / self.stop_width))
        sign = -1.0 if which == "small" else 1.0
        return np.asarray(
            log_ndtr(sign * (x - self.start) / self.start_width) + log_ndtr((self.stop - x) / self.stop_width)
        )

    def log_normal(self, x: Reals) -> Reals:
        return -0.5 * (x / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))

    @cached_property
    def parts(self) -> dict[str, Part]:
        return {which: self._part(which) for which in ("small", "middle", "far")}

    def _part(self, which: str) -> Part:
        x = self.edges
        value = self.log_normal(x) + self.log_weight(x, which)
        width = np.diff(x)
        slope = np.diff(value) / width
        # concave: right of an edge it rises at most as fast as left of it, so each cell is below both extensions
        from_left = value[:-1] + np.append(np.inf, np.maximum(slope[:-1], 0.0)) * width
        from_right = value[1:] + np.append(np.maximum(-slope[1:], 0.0), np.inf) * width
        slack = 1e-9 + 4096 * ROUNDING * (np.abs(value[:-1]) + np.abs(value[1:]))
        above = np.minimum(from_left, from_right) + slack
        return Part(value, above, float(slope[0]) * (1 - 1e-9), float(-slope[-1]) * (1 - 1e-9))

    def _angle(self, theta: Reals) -> Reals:
        """arg(1 - q + q e^{u + i theta}) at the edges, a row for each theta."""
        grow = self.rate * np.exp(np.minimum(self.exponent, 300.0))
        rows = theta[:, None]
        return np.asarray(np.arctan2(grow * np.sin(rows), 1 - self.rate + grow * np.cos(rows)))

    def log_mean_above(self, which: str, powers: Reals) -> Reals:
        """Upper bounds of ln E_Q[psi w^b] for real b."""
        zero = np.zeros(1)
        return np.array([self._log_integral(which, float(power), zero, 0.0)[0] for power in powers])

    def _tails(self, which: str, power: float) -> tuple[float, float]:
        """ln of bounds of psi w^b dQ integrated left of the first edge and right of the end (nothing, unless far)."""
        part = self.parts[which]
        if not part.slope_left > 0 or (which == "far" and not (part.slope_right > 0 >= power)):
            return math.inf, math.inf
        left = part.log_density[0] + power * (math.log1p(-self.rate) if power < 0 else self.loss[0])
        right = part.log_density[-1] + power * self.loss[-1] - math.log(part.slope_right) if which == "far" else -np.inf
        return float(left) - math.log(part.slope_left), float(right)

    def _log_integral(self, which: str, power: float, theta: Reals, reach: float) -> Reals:
        """ln of a bound of the integral of |psi w^b dQ| along Im u = +-theta, Re b = power and |Im b| <= reach."""
        part = self.parts[which]
        turn = reach * self._angle(theta)
        loss = power * self.loss
        cell = part.log_above + np.maximum(loss[1:], loss[:-1]) + np.log(np.diff(self.edges))
        left, right = self._tails(which, power)
        price, first, last = self._price(which, theta)
        sides = np.stack([left + first + turn[:, 0], right + last + reach * theta], axis=1)
        shrink = power * np.log(np.cos(theta / 2)) if power < 0 else 0.0
        terms = np.concatenate([cell + price + turn[:, 1:], sides], axis=1)
        return _log_sum(terms) + shrink + 64 * ROUNDING * (1 + abs(power) + reach)

    def _price(self, which: str, theta: Reals) -> tuple[Reals, Reals, Reals]:
        """ln of the most by which |psi dQ| grows from the real axis to Im u = theta: in cells, left and right of all.

        |Phi(x + iy)| <= min(e^{y^2/2} Phi(x), 1 + e^{y^2/2} Phi(-x)).
        """
        a = self.sigma**2 * theta[:, None]
        start, stop = (self.edges - self.start) / self.start_width, (self.edges - self.stop) / self.stop_width
        price = np.zeros((len(theta), len(self.edges) - 1))
        first = last = np.zeros(len(theta))
        if which == "far":
            factors = [(stop[:-1], self.stop_width)]
        elif which == "middle":
            factors = [(start[:-1], self.start_width), (-stop[1:], self.stop_width)]
        else:
            factors = [(-start[1:], self.start_width), (-stop[1:], self.stop_width)]
        for place, width in factors:
            steep = 0.5 * (a / width) ** 2
            flat = np.logaddexp(0.0, steep + log_ndtr(-place)) - log_ndtr(place)
            grown = np.minimum(steep, flat)
            price += grown
            first = first + (steep[:, 0] if place[0] < place[-1] else grown[:, 0])
            last = last + (grown[:, -1] if place[0] < place[-1] else steep[:, 0])
        wide = 0.5 * (a / self.sigma) ** 2
        return price + wide, first + wide[:, 0], last + wide[:, 0]

    def _log_end(self, which: str, power: float, theta: Reals) -> Reals:
        """ln of a bound of |psi w^b dQ| integrated from the end up to Im u = theta and down, apart from the swing."""
        a = self.sigma**2 * theta
        value = float(self.parts[which].log_density[-1] + power * self.loss[-1]) + 1e-9
        shrink = power * np.log(np.cos(theta / 2)) if power < 0 else 0.0
        return np.asarray(value + shrink + np.log(2 * a) + self._price(which, theta)[2])

    def log_decay(self, which: str, power: float, reach: Reals) -> Reals:
        """For each r in `reach` a bound of ln|E_Q[psi w^{power+iy}]| valid for all |y| >= r, power >= 0.

        The path is lifted to Im u = theta, where arg w >= 0, and comes back to the real axis at the end.
        """
        part = self.parts[which]
        theta = np.geomspace(0.01, 1.5, 14)
        grow = self.rate * np.exp(np.minimum(self.exponent, 300.0))
        rest = 1 - self.rate
        bend = -4 * rest * grow / (rest + grow) ** 2 * np.sin(theta[:, None] / 2) ** 2
        modulus = self.loss + 0.5 * np.log1p(bend)  # ln|w_theta|, rising in x for theta <= pi/2
        scaled = power * modulus
        price, first, _ = self._price(which, theta)
        cell = part.log_above + np.maximum(scaled[:, 1:], scaled[:, :-1]) + np.log(np.diff(self.edges)) + price
        angle = self._angle(theta)[:, :-1]
        left, _ = self._tails(which, power)
        ends = np.stack([left + first, self._log_end(which, power, theta)], axis=1)
        bounds = np.empty(len(reach))
        for index, r in enumerate(reach):
            bounds[index] = _log_sum(np.concatenate([cell - r * angle, ends], axis=1)).min()
        bounds += 64 * ROUNDING * (1 + abs(power) * (1 + np.abs(self.loss).max()) + reach)
        return np.asarray(np.minimum(bounds, self.log_mean_above(which, np.array([power]))[0]))

    def nodes(
        self, which: str, power: tuple[float, float], reach: float, depth: float = 0.0, widest: float = 1.5
    ) -> Nodes:
        """Trapezoid nodes for E_Q[psi w^b], Re b within `power` and |Im b| <= reach, good to e^-(38 + depth).

        For the small part the errors of E_Q[psi] and b E_Q[psi (w - 1)] are counted as well.
        """
        part = self.parts[which]
        goal = _DEPTH + depth
        ends = [(p, 0.0 if which == "small" else self._peak(part, p)) for p in power]
        if which == "small":
            ends += [(0.0, 0.0), (1.0, 0.0)]
        scale = max(top for _, top in ends)
        kept = np.zeros(len(self.edges), dtype=bool)
        for p, top in ends:
            kept |= part.log_density + p * self.loss > top - goal - 4.0
        found = np.flatnonzero(kept)
        low, high = float(self.edges[found[0]]), float(self.edges[found[-1]])
        theta = np.geomspace(0.003, widest, 20)
        log_size, edge = np.full(len(theta), -np.inf), np.full(len(theta), -np.inf)
        for p, top in ends:
            log_size = np.logaddexp(log_size, self._log_integral(which, p, theta, reach if p in power else 0.0) - top)
            edge = np.maximum(edge, self._log_end(which, p, theta) - top)
        edge = edge + math.log(4.0) + reach * self._angle(theta)[:, -1]
        a = self.sigma**2 * theta
        need = goal + math.log(4.0) + log_size
        steps = np.where(edge <= -goal, 2 * math.pi * a / np.maximum(need, 1.0), 0.0)
        step = float(steps.max())
        if not step > 0 or (high - low) / step > _MOST_NODES:
            raise Unreachable("the rare losses need too many quadrature nodes")
        mantissa, power_of_two = math.frexp(step)
        step = math.ldexp(math.floor(mantissa * 4096), power_of_two - 12)  # few bits: the nodes are exactly even
        # the end lies half a step beyond the last possible node
        first = max(0, math.floor((self.end - high) / step - 0.5))
        x = self.end - step * (np.arange(first, math.ceil((self.end - low) / step + 0.5) + 1) + 0.5)[::-1]
        ratio = 2 * math.pi * a / step
        log_strip = math.log(2.0) + log_size - ratio - np.log(-np.expm1(-ratio))
        log_error = float(np.logaddexp(log_strip, edge).min())
        for p, top in ends:
            log_error = float(
                np.logaddexp(log_error, self._log_left_out(which, slice(found[0], found[-1]), step, p) - top)
            )
        u = (x - 0.5) / self.sigma**2
        loss, excess = self.pair._ratio(u)
        share = np.where(excess > 1e15, 1.0, (np.minimum(excess, 1e15) + self.rate) / (1 + np.minimum(excess, 1e15)))
        slip = 4 * np.abs(loss) + 4 * np.abs(u) * np.minimum(1.0, share)
        log_weight = self.log_normal(x) + self.log_weight(x, which) + math.log(step)
        counted = 1.0 if which == "small" else 0.0

        def error(powers: Complexes) -> Reals:
            return np.asarray(log_error + scale + 1e-9 + counted * np.log1p(2 * np.abs(powers)))

        return Nodes(loss, excess, log_weight, error, slip)

    def _peak(self, part: Part, power: float) -> float:
        """ln of the size of E_Q[psi w^b], roughly."""
        terms = part.log_density[:-1] + power * self.loss[:-1] + np.log(np.diff(self.edges))
        return float(_log_sum(terms[None, :])[0])

    def _log_left_out(self, which: str, kept: slice, step: float, power: float) -> float:
        """ln of a bound of what the nodes outside the kept cells would have added: a cell of width d has at most
        d / step + 1 of them."""
        part = self.parts[which]
        loss = power * self.loss
        cell = part.log_above + np.maximum(loss[1:], loss[:-1]) + np.log(np.diff(self.edges) + step)
        cell[kept] = -np.inf
        ends = [
            tail + math.log1p(step * slope)
            for tail, slope in zip(self._tails(which, power), (part.slope_left, part.slope_right), strict=True)
        ]
        return float(_log_sum(np.append(cell, ends)[None, :])[0]) + 1e-9

    def tilted(self, which: str, power: float) -> tuple[float, float, float]:
        """ln E_Q[psi w^b], mean and variance of the loss under it: good to a percent or so."""
        part = self.parts[which]
        width = np.diff(self.edges)
        weight = np.log(0.5 * (np.append(width, 0.0) + np.append(0.0, width)))
        logs = part.log_density + weight + power * self.loss
        top = float(logs.max())
        terms = np.exp(logs - top)
        total = float(terms.sum())
        mean = float((terms * self.loss).sum()) / total
        return top + math.log(total), mean, float((terms * (self.loss - mean) ** 2).sum()) / total

    def small_decay(self, power: float, reach: Reals) -> Reals:
        """Like `log_decay` for the small part, sharp enough for many repetitions: a trapezoid sum, and cells only for
        what the split adds off the real axis."""
        nodes = self.nodes("small", (power, power), 0.0, 20.0, widest=1.2)  # 1.2 + 0.35 < pi / 2
        theta = np.geomspace(1e-4, 0.35, 16)
        x = np.exp(np.minimum(nodes.loss, 300.0))  # w at the nodes
        grow, rest = np.maximum(x - (1 - self.rate), 0.0), 1 - self.rate
        half = np.sin(theta[:, None] / 2) ** 2
        modulus = nodes.loss + 0.5 * np.log1p(-4 * rest * grow / x**2 * half)
        angle = np.arctan2(grow * np.sin(theta[:, None]), rest + grow * np.cos(theta[:, None]))
        exponent = power * modulus + nodes.log_weight
        part, widths = self.parts["small"], np.log(np.diff(self.edges))
        price, first, _ = self._price("small", theta)
        wide = (self.sigma * theta) ** 2 / 2
        more = _log_expm1(price - wide[:, None] + 8 * ROUNDING * price)
        cell = part.log_above + power * np.maximum(self.loss[1:], self.loss[:-1]) + widths + more
        turn = self._angle(theta)[:, :-1]
        left = self._tails("small", power)[0] + _log_expm1(first - wide + 8 * ROUNDING * first)
        assert nodes.log_error is not None
        error = float(nodes.log_error(np.array([complex(power)]))[0])
        ends = np.stack([left, self._log_end("small", power, theta) - wide, np.full(len(theta), error)], axis=1)
        bounds = np.empty(len(reach))
        care = 16 * ROUNDING * (1 + np.abs(nodes.loss).max())  # of angles: q e^u was found as w - (1 - q)
        slack = 64 * ROUNDING * (1 + power * np.abs(modulus).max() + np.abs(nodes.log_weight).max())
        for index, r in enumerate(reach):
            terms = np.concatenate([exponent - r * angle, cell - r * turn, ends], axis=1)
            bounds[index] = (_log_sum(terms) + wide + slack + care * r * theta).min()
        return bounds

    @cached_property
    def far_masses(self) -> tuple[float, float]:
        """E_P[chi_f] and E_Q[chi_f]: normal tails of variance sigma^2 + tau_f^2."""
        wide = math.hypot(self.sigma, self.stop_width)
        q_mass, base = float(ndtr(-self.stop / wide)), float(ndtr((1 - self.stop) / wide))
        return (1 - self.rate) * q_mass + self.rate * base, q_mass

    @cached_property
    def missing(self) -> tuple[float, float]:
        """P- and Q-mass of all that is not small."""
        p_far, q_far = self.far_masses
        nodes = self.nodes("middle", (0.0, 1.0), 0.0)
        masses = [float(np.exp(p * nodes.loss + nodes.log_weight).sum()) for p in (1.0, 0.0)]
        return p_far + masses[0], q_far + masses[1]


def _log_expm1(x: Reals) -> Reals:
    """ln(e^x - 1) for x >= 0, at least ln 1e-300, without overflow."""
    x = np.maximum(x, 1e-300)
    return np.asarray(
        np.where(x > 1.0, x + np.log1p(-np.exp(-np.maximum(x, 1.0))), np.log(np.expm1(np.minimum(x, 1.0))))
    )


def _log_sum(terms: Reals) -> Reals:
    """ln of the sum of exponentials of each row."""
    top = terms.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    return np.asarray(np.where(np.isfinite(top), safe + np.log(np.exp(terms - safe[:, None]).sum(axis=1)), top))


@dataclass(frozen=True)
class SmallPair(Pair):
    """The small part of a split step as a pair of its own, of total mass below 1; forward only."""

    step: SplitStep

    @property
    def p_cut(self) -> float:  # type: ignore[override]
        return self.step.missing[0]

    @property
    def q_cut(self) -> float:  # type: ignore[override]
        return self.step.missing[1]

    @property
    def span(self) -> tuple[float, float]:
        return math.log1p(-self.step.rate), float(self.step.loss[-1])

    @lru_cache(maxsize=64)  # noqa: B019 - keyed by value, and small
    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        return self.step.nodes("small", power, reach, 20.0)

    def log_decay(self, power: float, reach: Reals) -> Reals:
        return self.step.small_decay(power, reach)

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return len(self.step.edges) if reach == 0 else len(self.nodes(power, reach).loss)

    def cumulants(self, power: float) -> tuple[float, float, float]:
        return self.step.tilted("small", power)

    def log_power_bound(self, powers: Reals) -> Reals:
        """Sharp where the nodes reach, from cells alone for larger powers."""
        bounds, order = self.step.log_mean_above("small", powers), np.argsort(powers)
        while len(order):
            chosen = powers[order]
            try:
                nodes = self.nodes((float(chosen[0]), float(chosen[-1])), 0.0)
            except Unreachable:
                order = order[:-1]
                continue
            value, error = log_power_mean_of(nodes, chosen.astype(complex), self.p_cut, self.q_cut)
            bounds[order] = np.fmin(bounds[order], value.real + error * (1 + 1e-9))
            break
        return bounds

    def tails(self, loss: Reals) -> Tails:
        raise Unreachable("the small part of a step has no distribution functions of its own")
