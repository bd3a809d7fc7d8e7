r"""The Gaussian pair P = N(1, sigma^2), Q = N(0, sigma^2), and its Poisson-sampled mixture.

With u = (2x - 1) / (2 sigma^2) the likelihood ratio is e^u unsampled and w = 1 - q + q e^u when every record is
taken with probability q: the pair ((1-q) Q + q P, Q) [Zhu et al. 2022, Thm 11], add-remove adjacency.

Everything below rests on one fact: w is an entire function of x with w = 0 only where Im u is an odd multiple of pi,
and for |theta| < pi, with A = 1 - q and B = q e^u > 0,

    |A + B e^{i theta}| <= A + B,  |A + B e^{i theta}| >= (A + B) cos(theta / 2),  |arg(A + B e^{i theta})| <= |theta|.

So the trapezoid rule in x converges geometrically, with a bound one can state [Trefethen and Weideman 2014, Thm 5.1],
and moving the line of integration to Im u = theta bounds E_Q[w^b] for all large |Im b| at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.nodes import Nodes
from discreet.accounting.pair import ROUNDING, Direction, Pair, Tails
from discreet.accounting.profile import sampled_profile
from discreet.divergence.gaussian import hockey_stick_gaussian
from discreet.divergence.special import log_ndtr, ndtr, ndtri_exp

if TYPE_CHECKING:
    from discreet.accounting.pair import Complexes, Reals

__all__ = ["GaussianPair", "SampledGaussianPair"]

_DEPTH = 52.0
"""Quadrature nodes are placed so that truncation and discretisation stay below about e^-52 = 1e-22 relatively."""


@dataclass(frozen=True)
class GaussianPair(Pair):
    """N(mu, 1) against N(0, 1): loss N(mu^2/2, mu^2) under P."""

    mu: float
    symmetric = True

    def sampled(self, rate: float) -> Pair:
        return SampledGaussianPair(1 / self.mu, rate)

    @property
    def span(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        return SampledGaussianPair(1.0 / self.mu, 1.0).nodes(power, reach)

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return 1

    def log_power_mean(self, powers: Complexes) -> tuple[Complexes, Reals]:
        value = powers * (powers - 1) * (self.mu * self.mu / 2)
        return value, 16 * ROUNDING * np.abs(powers) * np.abs(powers - 1) * (self.mu * self.mu / 2)

    def cumulants(self, power: float) -> tuple[float, float, float]:
        half = self.mu * self.mu / 2
        return power * (power - 1) * half, (2 * power - 1) * half, 2 * half

    def log_decay(self, power: float, reach: Reals) -> Reals:
        half = self.mu * self.mu / 2
        return (power * (power - 1) - reach * reach) * half * (1 - 8 * ROUNDING) + 16 * ROUNDING * abs(power) * abs(
            power - 1
        ) * half

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float]:
        return _gaussian_profile(epsilon, self.mu)

    def tails(self, loss: Reals) -> Tails:
        return _normal_tails(loss / self.mu + self.mu / 2, self.mu)


@dataclass(frozen=True)
class SampledGaussianPair(Pair):
    """(1 - rate) N(0, sigma^2) + rate N(1, sigma^2) against N(0, sigma^2)."""

    sigma: float
    rate: float
    end: float = math.inf
    """Outputs x above this are left out of the finite losses (forward: they count as infinite in upper bounds)."""

    @property
    def p_cut(self) -> float:  # type: ignore[override]
        if self.end == math.inf:
            return 0.0
        below = ndtr(-self.end / self.sigma), ndtr((1 - self.end) / self.sigma)
        return float((1 - self.rate) * below[0] + self.rate * below[1])

    @property
    def q_cut(self) -> float:  # type: ignore[override]
        return 0.0 if self.end == math.inf else float(ndtr(-self.end / self.sigma))

    def cut(self, log_mass: float) -> Pair:
        """Leaves out the outputs beyond which P has mass at most e^log_mass.

        They play no role at the asked delta, and without them a strong tilt does not lift a far-off bump of losses
        that nobody will ever see.
        """
        score = float(-ndtri_exp(max(log_mass, -700.0))) if log_mass < -1 else 1.0
        return SampledGaussianPair(self.sigma, self.rate, 1 + self.sigma * score)

    def sampled(self, rate: float) -> Pair:
        return SampledGaussianPair(self.sigma, self.rate * rate)

    @property
    def span(self) -> tuple[float, float]:
        return (math.log1p(-self.rate) if self.rate < 1 else -math.inf), math.inf

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        x, step = self._points(power, self._step(power, reach))
        u = (x - 0.5) / self.sigma**2
        loss, excess = self._ratio(u)
        # u is rounded, and the loss moves with it by the posterior probability q e^u / w
        share = np.where(excess > 1e15, 1.0, (np.minimum(excess, 1e15) + self.rate) / (1 + np.minimum(excess, 1e15)))
        slip = 4 * np.abs(loss) + 4 * np.abs(u) * np.minimum(1.0, share)
        log_weight = -0.5 * (x / self.sigma) ** 2 + math.log(step / (self.sigma * math.sqrt(2 * math.pi)))
        edges = float(x[0]), float(x[-1])
        return Nodes(
            loss, excess, log_weight, lambda powers: self._log_error(powers, step, edges, loss, log_weight), slip
        )

    def _points(self, power: tuple[float, float], step: float) -> tuple[Reals, float]:
        """Equally spaced outputs over the window; a cut end lies half a step beyond the last of them."""
        low, high = self._window(power)
        if (high - low) / step > 1_000_000:
            raise OverflowError(f"{(high - low) / step:.1e} quadrature nodes would be needed")
        if high == self.end:
            return (high - step * (np.arange(math.ceil((high - low) / step) + 1) + 0.5))[::-1], step
        return step * np.arange(math.floor(low / step), math.ceil(high / step) + 1), step

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        low, high = self._window(power)
        return int((high - low) / self._step(power, reach)) + 2

    def cumulants(self, power: float) -> tuple[float, float, float]:
        octave = math.ceil(math.log2(abs(power) + 1.0))
        loss, log_weight = _planning_nodes(self, octave if power >= 0 else -octave)
        log_terms = power * loss + log_weight
        top = float(log_terms.max())
        terms = np.exp(log_terms - top)
        total = float(terms.sum())
        weighted = terms * loss
        mean = float(weighted.sum()) / total
        return top + math.log(total), mean, max(0.0, float((weighted * loss).sum()) / total - mean * mean)

    def log_power_bound(self, powers: Reals) -> Reals:
        """From planning nodes: window and step keep the quadrature error below e^-50 of the mean, which is >= 1."""
        if self.end < math.inf or powers.min() < 0 <= powers.max():  # a cut end has an error of its own
            return super().log_power_bound(powers)
        far = float(np.abs(powers).max())
        octave = math.ceil(math.log2(far + 1.0))
        loss, log_weight = _planning_nodes(self, octave if powers.max() >= 0 else -octave)
        terms = np.outer(powers, loss) + log_weight
        top = terms.max(axis=1)
        return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)) + 1e-11 * (1 + np.abs(top)))

    def _ratio(self, u: Reals) -> tuple[Reals, Reals]:
        """ln w and w - 1 at u, neither with cancellation."""
        q = self.rate
        with np.errstate(over="ignore"):
            excess = q * np.expm1(u)
            loss = np.log1p(np.maximum(excess, -0.5))
        if q == 1.0:
            return u.copy(), excess
        low = excess < -0.5
        if low.any():
            loss[low] = np.log((1 - q) + q * np.exp(u[low]))
        high = u > 600.0
        if high.any():
            loss[high] = u[high] + math.log(q) + np.log1p((1 - q) / q * np.exp(-u[high]))
        return loss, excess

    def _window(self, power: tuple[float, float]) -> tuple[float, float]:
        """Where the integrand lives: N(0, sigma^2) below, tilted to at most N(b, sigma^2) above."""
        depth = math.sqrt(2 * _DEPTH)
        if self.rate == 1.0:
            return min(0.0, power[0]) - depth * self.sigma, max(1.0, power[1]) + depth * self.sigma
        left = math.sqrt(2 * (_DEPTH + max(0.0, -power[0]) * -math.log1p(-self.rate)))
        return -left * self.sigma, min(self.end, max(1.0, power[1]) + depth * self.sigma)

    def _strips(self, power: float) -> tuple[float, float]:
        """Half-widths theta (of Im u) at which the error of the trapezoid rule may be evaluated, the best one first."""
        best = math.sqrt(2 * _DEPTH) / self.sigma
        if self.rate == 1.0:
            return best, best / 2
        widest = 3.1 if power >= 0 else min(2.8, 4.0 / math.sqrt(1 - power))
        if self.end < math.inf:
            best, widest = 5.0 / self.sigma, min(widest, 1.5)
        return min(widest, best), min(widest, best / 2)

    @lru_cache(maxsize=2048)  # noqa: B019 - keyed by value, and small
    def _step(self, power: tuple[float, float], reach: float) -> float:
        """Largest step for which some strip brings the trapezoid error below e^-_DEPTH."""
        steps = []
        for theta in self._strips(power[0]):
            swing, _ = self._swing(theta, power[1], reach)
            steps.append(2 * math.pi * self.sigma**2 * theta / (_DEPTH + (self.sigma * theta) ** 2 / 2 + swing))
        return max(steps)

    def _swing(self, theta: float, power: float, reach: float) -> tuple[float, float]:
        """A bound of reach * arg w_theta that holds for all x below some point, and ln of the mass times
        e^{reach theta} beyond that point.

        The plain bound reach * theta is far too large when q e^u is small wherever the integrand lives.
        """
        q, sigma = self.rate, self.sigma
        if q == 1.0 or reach * theta < 1.0:
            return reach * theta, -math.inf
        point = min(self.end, max(1.0, power) + sigma * math.sqrt(2 * (reach * theta + _DEPTH)))
        u = (point - 0.5) / sigma**2
        if u > 30.0:
            return reach * theta, -math.inf
        part = q * math.exp(u)
        if point == self.end:
            return reach * math.atan2(part * math.sin(theta), 1 - q + part * math.cos(theta)), -math.inf
        over = math.log(q + (1 - q) * math.exp(-min(700.0, u)))  # as in `_log_right`, for one power
        if power >= 0:
            tail = power * over + power * (power - 1) / (2 * sigma**2) + float(log_ndtr((power - point) / sigma))
        else:
            tail = power * max(0.0, over + u) + float(log_ndtr(-point / sigma))
        tail += reach * theta
        if tail > -_DEPTH / 2:
            return reach * theta, -math.inf
        return reach * math.atan2(part * math.sin(theta), 1 - q + part * math.cos(theta)), tail

    def _log_error(
        self, powers: Complexes, step: float, edges: tuple[float, float], loss: Reals, log_weight: Reals
    ) -> Reals:
        """ln of a bound of |trapezoid sum - E_Q[...]| for the three functions w^b, 1 and b (w - 1) together."""
        real, size, reach = powers.real, np.abs(powers), np.abs(powers.imag)
        q = self.rate
        ends = self._log_ends(powers, edges)
        log_mean = self._log_mean(real, step, ends, loss, log_weight)
        best: Reals = np.full(len(powers), np.inf)
        for theta in self._strips(float(real.min())):
            swing, beyond = self._swing(theta, float(real.max()), float(reach.max()))
            inside = np.minimum(swing, reach * theta) + log_mean
            log_sup = np.logaddexp(np.logaddexp(inside, beyond) + self._shrink(real, theta), np.log1p(2 * q * size))
            best = np.minimum(best, log_sup + self._log_trapezoid(step, theta))
        return np.asarray(np.logaddexp(best, ends) + 1e-9)

    def _log_trapezoid(self, step: float, theta: float) -> float:
        """ln of 2 e^{(sigma theta)^2 / 2} / (e^{2 pi a / step} - 1) for the strip of half-width a = sigma^2 theta."""
        ratio = 2 * math.pi * self.sigma**2 * theta / step
        return math.log(2.0) + (self.sigma * theta) ** 2 / 2 - ratio - math.log(-math.expm1(-ratio))

    def _shrink(self, real: Reals, theta: float) -> Reals:
        """ln of the most by which |w_theta|^b can exceed w^b: cos(theta/2)^b for negative b, 1 otherwise."""
        if self.rate == 1.0:
            return np.zeros_like(real)
        return np.where(real < 0, real * math.log(math.cos(theta / 2)), 0.0)

    def _log_mean(self, real: Reals, step: float, ends: Reals, loss: Reals, log_weight: Reals) -> Reals:
        """A bound of ln E_Q[w^b] for real b.

        For positive integrands the trapezoid sum S misses the mean F by at most rho F, so F <= (S + ends)/(1 - rho).
        """
        if real[0] == real[-1] and (real == real[0]).all():  # a vertical line
            distinct, index = real[:1], np.zeros(len(real), dtype=np.intp)
        else:
            distinct, index = np.unique(real, return_inverse=True)
        terms = distinct[:, None] * loss + log_weight
        top = terms.max(axis=1)
        sums = top + np.log(np.exp(terms - top[:, None]).sum(axis=1)) + 1e-9
        theta = self._strips(float(real.min()))[0]
        log_rho = self._log_trapezoid(step, theta) + self._shrink(distinct, theta)
        crude = np.where(distinct >= 1, distinct * (distinct - 1) / (2 * self.sigma**2), np.inf)
        measured = np.where(log_rho < -3.0, np.logaddexp(sums[index], ends) + 0.1, np.inf)
        return np.minimum(measured, crude[index])

    def _log_ends(self, powers: Complexes, edges: tuple[float, float]) -> Reals:
        """ln of a bound of what the nodes beyond the window would have added."""
        real, size = powers.real, np.abs(powers)
        sigma, q = self.sigma, self.rate
        low, high = edges[0] / sigma, edges[1] / sigma
        head, tail = float(log_ndtr(low)), float(log_ndtr(-high))
        left: Reals
        right: Reals
        if q == 1.0:
            gauss = real * (real - 1) / (2 * sigma**2)
            left, right = gauss + log_ndtr(low - real / sigma), gauss + log_ndtr(real / sigma - high)
        else:
            ends = self._ratio((np.array(edges) - 0.5) / sigma**2)[0]
            left = head + np.where(real >= 0, real * ends[0], real * math.log1p(-q))
            right = self._log_edge(powers, edges) if self._is_cut(edges[1]) else self._log_right(real, edges[1])
        others = np.logaddexp(np.log1p(q * size) + head, tail)
        others = np.logaddexp(others, np.log(q * size + 1e-300) + float(log_ndtr(1 / sigma - high)))
        return np.asarray(np.logaddexp.reduce([left, right, others]))

    def _is_cut(self, last: float) -> bool:
        """Whether the last node is the one below a cut end (otherwise the window ends earlier by itself)."""
        return self.end < math.inf and last < self.end < last + 3.2 * self.sigma

    def _log_edge(self, powers: Complexes, edges: tuple[float, float]) -> Reals:
        """ln of a bound of the trapezoid error made at a cut end.

        With the end half a step beyond the last node, Abel-Plana leaves the vertical segment at the end, |Im x| = s up
        to a = sigma^2 theta, weighted with 1/(1 + e^{2 pi s / step}). On it the density grows by e^{s^2 / 2 sigma^2} <=
        e^{s a / 2 sigma^2}, and |w^b| by e^{|Im b| arg w} with arg w <= (B / A) s / sigma^2, A = 1 - q, B = q e^u (for
        theta <= pi/2). If the weight falls faster, the segment adds at most its foot times 2 / (difference of rates).
        """
        real, reach = powers.real, np.abs(powers.imag)
        theta = self._strips(float(real.min()))[0]
        u = (self.end - 0.5) / self.sigma**2
        log_ratio = float(self._ratio(np.array([u]))[0][0])
        part = self.rate * math.exp(min(u, 300.0))
        log_density = -0.5 * (self.end / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
        step = 2 * (self.end - edges[1])
        rate = 2 * math.pi / step - theta / 2 - reach * part / ((1 - self.rate) * self.sigma**2)
        with np.errstate(divide="ignore"):
            foot = np.where(rate > 0, np.log(2 / np.maximum(rate, 1e-300)), np.inf)
        others = np.log1p(np.abs(powers) * (1 + part))
        return np.asarray(np.logaddexp(np.maximum(real, 0.0) * log_ratio, others) + log_density + foot)

    def _log_right(self, real: Reals, x: float) -> Reals:
        """ln of a bound of E_Q[w^b; beyond x], x >= max(1, b): there w <= e^u (q + (1-q) e^{-u(x)})."""
        sigma, q, u = self.sigma, self.rate, (x - 0.5) / self.sigma**2
        over = math.log(q + (1 - q) * math.exp(-min(700.0, u)))
        rising = real * over + real * (real - 1) / (2 * sigma**2) + log_ndtr((real - x) / sigma)
        return np.where(real >= 0, rising, real * max(0.0, over + u) + float(log_ndtr(-x / sigma)))

    def log_decay(self, power: float, reach: Reals) -> Reals:
        """Shift x so that Im u = theta: |E_Q[w^{b+iy}]| <= e^{(sigma theta)^2/2} E_Q[|w_theta|^b e^{-y arg w_theta}].

        On 0 <= theta <= pi/2 the argument of w_theta = 1 - q + q e^{u + i theta} is non-negative, so the bound falls
        in y and its value at r holds for all |y| >= r. The trapezoid error is taken on a strip of half-width beta
        with theta + beta <= pi/2: there arg w_{theta+beta} + arg w_{theta-beta} >= 0 and the integrand stays below
        w^b times the factor of `_shrink`.
        """
        if self.rate == 1.0:
            return GaussianPair(1 / self.sigma).log_decay(power, reach)
        sigma, q = self.sigma, self.rate
        if self.node_count((min(power, 0.0), max(power, 1.0)), 0.0) > 60_000:
            return np.full(len(reach), np.inf)
        widest = 0.78 if power >= 0 else min(0.78, 2.0 / math.sqrt(1 - power))
        beta = min(widest, (9.0 if self.end == math.inf else 2.5) / sigma)
        step = 2 * math.pi * sigma**2 * beta / (_DEPTH - 12 + (sigma * beta) ** 2 / 2)
        x, step = self._points((min(power, 0.0), max(power, 1.0)), step)
        u = (x - 0.5) / sigma**2
        log_weight = -0.5 * (x / sigma) ** 2 + math.log(step / (sigma * math.sqrt(2 * math.pi)))
        grow = q * np.exp(np.minimum(u, 300.0))
        level = 1 - q + grow
        # for small theta the bound is (sigma theta)^2/2 - r theta E[q e^u / w], tilted: look around its minimum
        tilted = power * np.log(level) + power * np.maximum(u - 300.0, 0.0) + log_weight
        tilted = np.exp(tilted - tilted.max())
        pull = float((tilted * grow / level).sum() / tilted.sum()) / sigma**2
        first, last = 0.3 * pull * float(reach.min()), 1.5 * pull * float(reach.max())
        theta = np.geomspace(min(first, 0.3 * beta), min(last, beta), 8)[:, None]
        # |w_theta|^2 = level^2 - 4 (1-q) q e^u sin^2(theta/2)
        log_modulus = np.log(level) + np.maximum(u - 300.0, 0.0)
        log_modulus = log_modulus + 0.5 * np.log1p(-4 * (1 - q) * grow / level**2 * np.sin(theta / 2) ** 2)
        angle = np.arctan2(grow * np.sin(theta), 1 - q + grow * np.cos(theta))
        gain = (sigma * theta[:, 0]) ** 2 / 2
        exponent = power * log_modulus + log_weight
        single = np.array([complex(power)])
        ends = self._log_ends(single, (float(x[0]), float(x[-1])))
        if self.end < math.inf:
            # a cut end adds the vertical segment up to theta + beta <= 2 beta, of length sigma^2 2 beta, on which the
            # density grows by e^{(2 sigma beta)^2 / 2} and w by nothing: its argument has the good sign or is conjugate
            ends = ends + math.log1p(8 * sigma**2 * beta / step) + 2 * (sigma * beta) ** 2
        log_mean = self._log_mean(single.real, step, ends, log_modulus[0], log_weight) + 0.1
        shrink = self._shrink(single.real, 2 * widest)
        floor = float((np.logaddexp(log_mean + self._log_trapezoid(step, beta), ends) + shrink)[0])
        slack = 64 * ROUNDING * (1 + abs(power) * np.abs(log_modulus).max() + np.abs(log_weight).max())
        heights = np.asarray(reach, dtype=float)
        bounds = np.empty(len(heights))
        block = max(1, 200_000 // angle.size)
        for start in range(0, len(heights), block):
            terms = exponent - heights[start : start + block, None, None] * angle
            top = terms.max(axis=2)
            value = top + np.log(np.exp(terms - top[:, :, None]).sum(axis=2)) + slack
            bounds[start : start + block] = (np.logaddexp(value, floor) + gain).min(axis=1)
        return bounds

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float] | None:
        if self.end < math.inf:
            return None
        return sampled_profile(lambda x: _gaussian_profile(x, 1 / self.sigma), epsilon, self.rate, direction)

    def tails(self, loss: Reals) -> Tails:
        q = self.rate
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # u solves 1 - q + q e^u = e^loss
            ratio = np.expm1(loss) / q
            u = np.where(
                loss > 30.0, loss - math.log(q) + np.log1p(-(1 - q) * np.exp(-loss)), np.log1p(np.maximum(ratio, -1.0))
            )
        base = _normal_tails(u * self.sigma + 0.5 / self.sigma, 1 / self.sigma)
        return Tails(
            (1 - q) * base.q_above + q * base.p_above,
            (1 - q) * base.q_below + q * base.p_below,
            base.q_above,
            base.q_below,
        )


@lru_cache(maxsize=1024)
def _planning_nodes(pair: SampledGaussianPair, octave: int) -> tuple[Reals, Reals]:
    """Losses and log weights good for all powers up to 2^octave in size, of the sign of the octave."""
    far = 2.0 ** abs(octave)
    nodes = pair.nodes((1.0, far) if octave >= 0 else (-far, 0.0), 0.0)
    kept = nodes.log_weight > -745.0 - far * np.abs(nodes.loss)
    return nodes.loss[kept], nodes.log_weight[kept]


def _gaussian_profile(x: float, mu: float) -> tuple[float, float]:
    """Certified delta of the Gaussian pair at any real x; the function underneath is good to 1e-13."""
    if x < 0:  # E_gamma(P||Q) = 1 - gamma + gamma E_{1/gamma}(Q||P), and the pair is symmetric
        low, high = _gaussian_profile(-x, mu)
        return (-math.expm1(x) + math.exp(x) * low) * (1 - 1e-15), (-math.expm1(x) + math.exp(x) * high) * (1 + 1e-15)
    value = float(hockey_stick_gaussian(x, mu=mu))
    return value * (1 - 2e-13), max(value * (1 + 2e-13), 5e-324)


def _normal_tails(score: Reals, mu: float) -> Tails:
    """Tails at x = score for P = N(mu, 1) and Q = N(0, 1)."""
    return Tails(ndtr(mu - score), ndtr(score - mu), ndtr(-score), ndtr(score))
