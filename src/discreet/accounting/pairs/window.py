r"""Losses spread over a window [-epsilon, epsilon] with density e^{l/2}: Laplace and the exponential mechanism.

Laplace noise of scale 1/epsilon against a shift by 1 has loss l = epsilon (1 - 2x) for 0 < x < 1 and is +-epsilon
outside: under Q atoms of mass 1/2 at -epsilon and e^{-epsilon}/2 at +epsilon and density e^{-(l + epsilon)/2}/4
between. A mechanism of *bounded range* epsilon (the exponential mechanism) has the profile

    delta(x) = (1 - e^{(x - epsilon)/2})^2 / (1 - e^{-epsilon})        for |x| <= epsilon,

the largest over the two-point pairs of [Dong et al. 2020]; its pair has the same density shape, no atoms.

Poisson sampling turns l into ln(1 - q + q e^l) and leaves the masses under Q alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.nodes import Nodes, guarded
from discreet.accounting.pair import ROUNDING, Direction, Pair, Tails
from discreet.accounting.profile import sampled_profile
from discreet.divergence.legendre import gauss_legendre

if TYPE_CHECKING:
    from discreet.accounting.pair import Complexes, Reals

__all__ = ["WindowPair"]

_ELLIPSES = tuple(np.geomspace(1.3, 200.0, 9).tolist())
_FEW = 8  # powers up to which the closed form, one by one, is quicker than quadrature for all
_LARGEST = 600.0  # e^600 does not overflow


@dataclass(frozen=True)
class WindowPair(Pair):
    """Q-density `height` e^{-(l+epsilon)/2} on the window and, if `with_atoms`, Laplace's atoms at its ends."""

    epsilon: float
    with_atoms: bool
    rate: float = 1.0
    slip: float = 0.0
    """By how much epsilon may be off, relatively, because it was rounded; 0 where it is the number itself."""

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.rate == 1.0

    def sampled(self, rate: float) -> Pair:
        return WindowPair(self.epsilon, self.with_atoms, self.rate * rate, self.slip)

    @property
    def height(self) -> float:
        """Density under Q at l = -epsilon."""
        return 0.25 if self.with_atoms else 0.5 / -math.expm1(-self.epsilon)

    @property
    def span(self) -> tuple[float, float]:
        ends = self._sampled(np.array([-self.epsilon, self.epsilon]))[0]
        return float(ends[0]), float(ends[1])

    def _sampled(self, base: Reals) -> tuple[Reals, Reals]:
        """Loss and excess after sampling."""
        excess = self.rate * np.expm1(base)
        if self.rate == 1.0:
            return base, excess
        return np.where(excess < -0.5, np.log((1 - self.rate) + self.rate * np.exp(base)), np.log1p(excess)), excess

    def _end_masses(self) -> tuple[float, float]:
        return (0.5, 0.5 * math.exp(-self.epsilon)) if self.with_atoms else (0.0, 0.0)

    def atoms(self) -> tuple[Reals, Reals]:
        if not self.with_atoms:
            return np.empty(0), np.empty(0)
        return np.array(self.span), np.array(self._end_masses())

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return 4 if self._is_far(power, reach) else self._order(power, reach) + 2

    def _is_far(self, power: tuple[float, float], reach: float) -> bool:
        """Whether some powers lie so far up that the closed form is cheaper than quadrature."""
        return self.rate == 1.0 and self._order(power, reach) >= 256

    def _order(self, power: tuple[float, float], reach: float) -> int:
        frequency = self.epsilon * (max(abs(power[0]), abs(power[1])) + 1 + reach)
        return min(512, 16 * math.ceil((30 + 0.75 * frequency) / 16))

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        count = self._order(power, reach)
        points, weights = gauss_legendre(count)
        base = self.epsilon * points
        log_weight = np.log(weights * (self.epsilon * self.height)) - 0.5 * (base + self.epsilon)
        if self.with_atoms:
            base = np.concatenate([[-self.epsilon], base, [self.epsilon]])
            low, high = self._end_masses()
            log_weight = np.concatenate([[math.log(low)], log_weight, [math.log(high)]])
        loss, excess = self._sampled(base)
        return Nodes(loss, excess, log_weight, lambda powers: self._log_error(powers, count))

    def _log_error(self, powers: Complexes, count: int) -> Reals:
        """Gauss-Legendre error for a function analytic in the ellipse of parameter rho [Trefethen 2008, Thm 4.5].

        With |Im l| <= a < pi the modulus of w^b is at most w(top)^{|b|} cos(a/2)^{-|b|} e^{|Im b| a}; the other two
        functions, 1 and b (w - 1), are smaller. Everything is multiplied by |e^{-(l + epsilon)/2}|.
        """
        if count < 512 and len(powers) > 2:  # enough nodes for all of them: the hardest one speaks for the others
            hardest = complex(float(np.abs(powers.real).max()), float(np.abs(powers.imag).max()))
            return np.full(len(powers), self._log_error(np.array([hardest]), count)[0])
        best = np.full(len(powers), np.inf)
        for rho in _ELLIPSES:
            wide, tall = self.epsilon * (rho + 1 / rho) / 2, self.epsilon * (rho - 1 / rho) / 2
            if self.rate < 1.0 and tall > 2.9:
                break
            angle = 0.0 if self.rate == 1.0 else -math.log(math.cos(tall / 2))
            top = (
                wide
                if self.rate == 1.0
                else max(
                    math.log1p(self.rate * math.expm1(min(wide, 700.0))), -math.log1p(self.rate * math.expm1(-wide))
                )
            )
            log_sup = np.abs(powers.real) * (top + angle) + np.abs(powers.imag) * tall
            log_sup = np.logaddexp(log_sup, np.log1p(np.abs(powers) * 2) + wide) + 0.5 * (wide - self.epsilon)
            log_sup = log_sup + math.log(self.epsilon * self.height * 64 / 15) - math.log1p(-(rho**-2))
            best = np.minimum(best, log_sup - 2 * (count - 1) * math.log(rho))
        return best + 1e-9

    def log_power_mean(self, powers: Complexes) -> tuple[Complexes, Reals]:
        """By quadrature, or in closed form: for a few real powers, and far up, where too many nodes are needed."""
        if len(powers) <= _FEW and self._has_closed_form(powers):
            pairs = [self._real_power(power) for power in powers.real.tolist()]
            return np.array([value for value, _ in pairs], dtype=complex), np.array([error for _, error in pairs])
        reach = float(np.abs(powers.imag).max())
        if not self._is_far((float(powers.real.min()), float(powers.real.max())), reach):
            return super().log_power_mean(powers)
        value, error = np.empty(len(powers), dtype=complex), np.empty(len(powers))
        far = np.abs(powers.imag) * self.epsilon > 20.0
        if not far.all():
            value[~far], error[~far] = super().log_power_mean(powers[~far])
        value[far], error[far] = self._far_up(powers[far])
        return value, error

    def _has_closed_form(self, powers: Complexes) -> bool:
        real = powers.real
        near = self.epsilon * (float(np.abs(real).max()) + 1) <= _LARGEST
        return self.rate == 1.0 and near and not powers.imag.any() and bool(((real <= 0) | (real >= 1)).all())

    def _real_power(self, power: float) -> tuple[float, float]:
        r"""ln E_Q[w^b] for one real b <= 0 or >= 1 and a bound of its error; no digit of a small E - 1 is lost.

        With y = epsilon/2, x = |2b - 1| y >= y and S(t) = sinh(t)/t,

            E = e^{-y} (cosh x + y S(x)),  E - 1 = e^{-y} (cosh x - cosh y + y (S(x) - S(y)))    with atoms,
            E = S(x) / S(y),               E - 1 = (S(x) - S(y)) / S(y)                          without.

        With p = (x + y)/2 and q = (x - y)/2, cosh x - cosh y = 2 sinh p sinh q; for S(x) - S(y) see `_rise`.

        If epsilon is off by a share s, sinh p sinh q is off by at most (2 + x) s, as t coth t <= 1 + t. So is
        S(x) - S(y), a sum of (x^{2n} - y^{2n}) / (2n + 1)!: its terms fall more quickly than those of sinh(x)/x times
        x^2, of which that is true. Then E - 1 is off by (3 + x + y) s at most, and ln E by no more.
        """
        y = 0.5 * self.epsilon
        q = y * (power - 1 if power >= 1 else -power)
        if q == 0.0:
            return 0.0, 0.0
        p, x = y + q, y + 2 * q
        rise, doubt = _rise(p, q, x, y)
        if self.with_atoms:
            excess = math.exp(-y) * (2 * math.sinh(p) * math.sinh(q) + y * rise)
        else:
            excess = rise * y / math.sinh(y)
        return math.log1p(excess), (32 * ROUNDING * (4 + x + y) + doubt) * min(excess, 1.01)

    def log_power_line(self, power: float, spacing: float, count: int, times: int) -> tuple[Complexes, Reals, float]:
        if not self._is_far((power, power), spacing * (count - 1)):
            return super().log_power_line(power, spacing, count, times)
        value, error = self.log_power_mean(power + 1j * spacing * np.arange(count))
        return value, error, 0.0

    def log_power_bound(self, powers: Reals) -> Reals:
        if self.rate < 1.0 or (np.abs(powers - 0.5) < 0.25).any():
            return super().log_power_bound(powers)
        value, error = self._far_up(powers.astype(complex))
        return np.asarray(value.real + error)

    def _far_up(self, powers: Complexes) -> tuple[Complexes, Reals]:
        """height e^{-a/2} 2 sinh(ca)/c + the atoms, c = b - 1/2 away from 0, a = epsilon: all over e^{|Re c| a}."""
        a, bent = self.epsilon, powers - 0.5
        top = np.abs(bent.real) * a
        rising, falling = np.exp(bent * a - top), np.exp(-bent * a - top)
        mean = self.height * (rising - falling) / bent
        if self.with_atoms:  # e^{-ba}/2 and e^{-a} e^{ba}/2, both times e^{a/2}
            mean = mean + 0.5 * (rising + falling)
        size = (self.height / np.abs(bent) + 0.5) * (np.abs(rising) + np.abs(falling))
        error = 16 * ROUNDING * (4 + np.abs(bent) * a + top) * size
        value, bound = guarded(np.log(mean), np.abs(mean), error)
        return value + (top - 0.5 * a), bound + 8 * ROUNDING * (top + a)

    def log_decay(self, power: float, reach: Reals) -> Reals:
        r"""Atoms at full weight, plus the density by parts.

        In s = ln w the density is h(l) = height w^{b+1} e^{-l} e^{-(l+epsilon)/2} / q; its logarithm is convex in l for
        b + 1 > 0, concave otherwise, so |int h e^{iys} ds| <= 2 (h(-eps) + h(eps)) / y or 2 max h / y.
        """
        log_rough, _, log_ends = self._rough(power)
        bound = log_rough - np.log(np.maximum(reach, 1e-300))
        if self.with_atoms:
            bound = np.logaddexp(bound, float(np.logaddexp.reduce(log_ends)))
        nodes = self.nodes((power, power), 0.0)
        terms = power * nodes.loss + nodes.log_weight
        assert nodes.log_error is not None
        total = np.logaddexp.reduce(np.append(terms, nodes.log_error(np.array([complex(power)]))))
        slack = 64 * ROUNDING * (2 + float(np.abs(terms).max()))
        if self.with_atoms and self.rate == 1.0:
            bound = np.minimum(bound, self._log_decay_of_atoms(power, reach, terms))
        return np.minimum(bound, total) + slack

    def log_modulus(self, power: float, height: Reals, half: float) -> Reals:
        """The atoms as they turn, plus the density by parts as in `log_decay`."""
        log_density, loss, log_ends = self._rough(power)
        bound = float(self.log_power_bound(np.array([power]))[0])
        log_whole = bound - 1e-9 * (1 + abs(bound))  # sharp to more than that
        rough = math.exp(log_density - log_whole) / np.maximum(height - half, 1e-300)
        if not self.with_atoms:
            return np.asarray(np.minimum(0.0, np.log(rough) + 1e-9))
        low, high = np.exp(log_ends - log_whole).tolist()
        gap = float(loss[1] - loss[0])
        # |low + high e^{i y gap}|, which moves by at most half the gap times the two masses
        size = np.sqrt(np.maximum((low + high) ** 2 - 4 * low * high * np.sin(0.5 * gap * height) ** 2, 0.0))
        moved = 0.5 * gap * half * (low + high) + 1e-9 + 1e-14 * gap * height
        return np.asarray(np.minimum(0.0, np.log(size + moved + rough) + 1e-9))

    def _rough(self, power: float) -> tuple[float, Reals, Reals]:
        """ln C with |int over the density| <= C / |y|, the losses at the two ends, and ln of their tilted masses."""
        ends = np.array([-self.epsilon, self.epsilon])
        loss, _ = self._sampled(ends)
        log_h = (power + 1) * loss - 1.5 * ends - 0.5 * self.epsilon + math.log(self.height / self.rate)
        if power + 1 > 0:
            log_rough = math.log(2.0) + float(np.logaddexp(log_h[0], log_h[1]))
        else:
            log_rough = math.log(2 * self.height / self.rate) + (power + 1) * float(loss[0]) + self.epsilon
        if not self.with_atoms:
            return log_rough, loss, np.full(2, -np.inf)
        return log_rough, loss, power * loss + np.log(self._end_masses())

    def _log_decay_of_atoms(self, power: float, reach: Reals, terms: Reals) -> Reals:
        r"""The two atoms p, p' of an unsampled window turn against each other: up to y = pi / (2 epsilon) their sum

            |p e^{-iy eps} + p' e^{iy eps}| = sqrt((p - p')^2 + 4 p p' cos^2(y eps))

        falls. Beyond, it is at most p + p', but the density between, monotone after the tilt, has fallen to
        2 max h / y < its mass. So few losses in a million uses decay as they should.
        """
        scale = float(terms.max())
        low, high = np.exp(terms[[0, -1]] - scale)
        tilt = abs(power - 0.5)
        lift = self.height * math.exp(tilt * self.epsilon - 0.5 * self.epsilon - scale)
        # in closed form, as quadrature misses some of it under a strong tilt
        mass = lift * (-math.expm1(-2 * tilt * self.epsilon) / tilt if tilt > 0 else 2 * self.epsilon) * (1 + 1e-12)
        peak = 2 * lift
        turn = 1.57 / self.epsilon
        angle = np.minimum(reach, turn) * self.epsilon
        near = np.sqrt((low - high) ** 2 + 4 * low * high * np.cos(angle) ** 2)
        near = near + np.minimum(mass, peak / np.maximum(reach, 1e-300))
        far = low + high + np.minimum(mass, peak / np.maximum(reach, turn))
        return np.asarray(scale + np.log(np.where(reach < turn, np.maximum(near, far), far)))

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float]:
        """1 - e^{(x - eps)/2} with atoms, (1 - e^{(x - eps)/2})^2 / (1 - e^-eps) without, then sampled."""
        return sampled_profile(self._base_profile, epsilon, self.rate, direction)

    def _base_profile(self, x: float) -> tuple[float, float]:
        if x < 0:  # E_gamma(P||Q) = 1 - gamma + gamma E_{1/gamma}(Q||P), and the pair is symmetric
            low, high = self._base_profile(-x)
            return -math.expm1(x) + math.exp(x) * low, (-math.expm1(x) + math.exp(x) * high) * (1 + 8 * ROUNDING)
        # a longer window has the larger profile
        ends = self.epsilon * (1 - self.slip), self.epsilon * (1 + self.slip)
        low, high = (self._rest(x, end) for end in ends)
        return low * (1 - 16 * ROUNDING), high * (1 + 16 * ROUNDING)

    def _rest(self, x: float, epsilon: float) -> float:
        if x >= epsilon:
            return 0.0
        rest = -math.expm1((x - epsilon) / 2)
        return rest if self.with_atoms else rest * (rest / -math.expm1(-epsilon))

    def tails(self, loss: Reals) -> Tails:
        base = loss
        if self.rate < 1.0:
            with np.errstate(divide="ignore", invalid="ignore"):
                base = np.log1p(np.maximum(np.expm1(loss) / self.rate, -1.0))
            # an end point of the window must map to itself, or its atom would be lost to rounding
            low, high = self.span
            inside = np.clip(base, -self.epsilon, math.nextafter(self.epsilon, 0.0))
            base = np.where(loss >= high, self.epsilon, np.where(loss < low, -np.inf, inside))
        eps = self.epsilon
        inside = np.clip(base, -eps, eps)
        below, above = base < -eps, base >= eps
        low, high = self._end_masses()
        scale = 2 * self.height
        # Q-density e^{-(l+eps)/2}, P-density e^{(l-eps)/2}, both times height
        q_low = low - scale * np.expm1(-(inside + eps) / 2)
        q_high = high - scale * np.exp(-(inside + eps) / 2) * np.expm1((inside - eps) / 2)
        p_high = low - scale * np.expm1((inside - eps) / 2)
        p_low = high - scale * np.exp((inside - eps) / 2) * np.expm1(-(inside + eps) / 2)
        q_below = np.where(below, 0.0, np.where(above, 1.0, q_low))
        q_above = np.where(below, 1.0, np.where(above, 0.0, q_high))
        p_above = np.where(below, 1.0, np.where(above, 0.0, p_high))
        p_below = np.where(below, 0.0, np.where(above, 1.0, p_low))
        q = self.rate
        return Tails((1 - q) * q_above + q * p_above, (1 - q) * q_below + q * p_below, q_above, q_below)


def _rise(p: float, q: float, x: float, y: float) -> tuple[float, float]:
    r"""sinh(x)/x - sinh(y)/y for x = p + q and y = p - q > 0, and its relative error beyond that of a hyperbolic sine.

    = 2pq cosh p cosh q (tanh q / q - tanh p / p) / (xy)
    = 4pq sum_n (x^{2n} + x^{2n-2} y^2 + ... + y^{2n}) / (2n + 3)!
    """
    if x > 2.0:
        steep, flat = math.tanh(q) / q, math.tanh(p) / p
        value = 2 * p * q * math.cosh(p) * math.cosh(q) * (steep - flat) / (x * y)
        return value, 16 * ROUNDING * (1 + (steep + flat) / (steep - flat))
    total, power, factor = 1.0 / 6.0, 1.0, 1.0
    for n in range(1, 16):  # what is left out is below 2^-60 of the first
        power *= y * y
        factor = factor * x * x + power
        total += factor / math.factorial(2 * n + 3)
    return 4 * p * q * total, 16 * ROUNDING
