r"""Gaussian pairs of different mu, one of which is chosen by a public coin: the index is shown, then the output.

P = sum_i p_i (i, N(mu_i, 1)) and Q = sum_i p_i (i, N(0, 1)), with mu_i = 0 allowed. The coin has the same law under
both, so

    delta(epsilon) = sum_i p_i delta_{mu_i}(epsilon),        E_Q[w^b] = sum_i p_i e^{b (b - 1) mu_i^2 / 2}.

Both are closed forms, and symmetric. A mechanism that does not show the index is a function of one that does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.nodes import Nodes, guarded, log_near_one
from discreet.accounting.pair import ROUNDING, Direction, Pair, Tails
from discreet.divergence.gaussian import hockey_stick_gaussian
from discreet.divergence.special import ndtr

if TYPE_CHECKING:
    from discreet.accounting.pair import Complexes, Reals

__all__ = ["GaussianMixturePair"]

_BLOCK = 1_000_000
_FEW = 128
"""Where there is an atom only the grid can compose, and it asks for every tail at very many points."""

_MARGIN = 1e-11
"""Relative error allowed for the sum of profiles; each is good to 1e-12."""


@dataclass(frozen=True)
class GaussianMixturePair(Pair):
    """With probability weights[i] the pair N(mus[i], 1) against N(0, 1), mus > 0 and falling; else nothing happens.

    Read once, the profile is the sum of all of them. In a composition, and if nothing may happen, mus are grouped to
    128, each group taking its largest: a pair that dominates this one.
    """

    weights: tuple[float, ...]
    mus: tuple[float, ...]
    symmetric = True
    most_points = 1 << 16

    @cached_property
    def _groups(self) -> tuple[Reals, Reals]:
        weight, mu = np.array(self.weights), np.array(self.mus)
        if not self._still or len(mu) <= _FEW:
            return weight, mu
        starts = np.unique(np.append(np.arange(_FEW // 2), np.geomspace(_FEW // 2, len(mu) - 1, _FEW // 2).astype(int)))
        return np.add.reduceat(weight, starts), mu[starts]

    @cached_property
    def _weight(self) -> Reals:
        return self._groups[0]

    @cached_property
    def _mu(self) -> Reals:
        return self._groups[1]

    @cached_property
    def _half(self) -> Reals:
        """mu^2 / 2."""
        return self._mu**2 / 2

    @cached_property
    def _still(self) -> float:
        """The probability that nothing happens; rounding of the weights is left there."""
        rest = 1.0 - math.fsum(self.weights)
        return rest if rest > 1e-12 else 0.0

    @property
    def span(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        raise OverflowError("a mixture has its transform in closed form and no nodes")

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return len(self._mu)

    def atoms(self) -> tuple[Reals, Reals]:
        return (np.zeros(1), np.array([self._still])) if self._still else (np.empty(0), np.empty(0))

    def log_power_mean(self, powers: Complexes) -> tuple[Complexes, Reals]:
        block = max(1, _BLOCK // len(self._mu))
        if len(powers) > block:
            parts = [self.log_power_mean(powers[i : i + block]) for i in range(0, len(powers), block)]
            return np.concatenate([value for value, _ in parts]), np.concatenate([error for _, error in parts])
        exponent = np.outer(powers * (powers - 1), self._half)
        top = exponent.real.max(axis=1)
        if float(top.max()) <= 300.0:
            excess = np.expm1(exponent) @ self._weight
            # an exponent is off by 8 roundings of itself, and e^A - 1 moves by |A| max(1, e^Re A) times that
            size = (np.abs(exponent) * np.maximum(1.0, np.exp(exponent.real))) @ self._weight
            error = 64 * ROUNDING * (size + np.abs(excess))
            return guarded(log_near_one(excess), np.abs(1 + excess), error)
        top = np.maximum(top, 0.0)
        terms = np.exp(exponent - top[:, None])
        mean = terms @ self._weight + self._still * np.exp(-top)
        error = 64 * ROUNDING * (((1 + np.abs(exponent)) * np.abs(terms)) @ self._weight + self._still * np.exp(-top))
        value, bound = guarded(np.log(mean), np.abs(mean), error)
        return value + top, bound + 4 * ROUNDING * np.abs(top)

    def log_power_line(self, power: float, spacing: float, count: int, times: int) -> tuple[Complexes, Reals, float]:
        value, error = self.log_power_mean(power + 1j * spacing * np.arange(count))
        return value, error, 0.0

    def cumulants(self, power: float) -> tuple[float, float, float]:
        half, slope = self._half, 2 * power - 1
        exponent = np.append(power * (power - 1) * half, 0.0)
        top = float(exponent.max())
        terms = np.append(self._weight, self._still) * np.exp(exponent - top)
        total = float(terms.sum())
        first = float((terms[:-1] * half).sum()) * slope / total
        second = float((terms[:-1] * (2 * half + (half * slope) ** 2)).sum()) / total
        return top + math.log(total), first, max(0.0, second - first * first)

    def log_decay(self, power: float, reach: Reals) -> Reals:
        """|e^{b (b - 1) h}| = e^{(t (t - 1) - y^2) h} for b = t + iy falls with |y|."""
        exponent = np.outer(power * (power - 1) - np.asarray(reach) ** 2, self._half)
        exponent += 64 * ROUNDING * (abs(power) * abs(power - 1) + np.asarray(reach)[:, None] ** 2) * self._half
        top = np.maximum(exponent.max(axis=1), 0.0 if self._still else -np.inf)
        still = self._still * np.exp(-np.maximum(top, 0.0))  # 0 where nothing is, however far down the top
        total = np.exp(exponent - top[:, None]) @ self._weight + still
        return np.asarray(top + np.log(total) + 1e-13 * (1 + np.abs(top)))

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float]:
        size, mu = abs(epsilon), np.array(self.mus)
        seen = size < mu * (40 + mu / 2)  # for the others delta <= P(Z > 40) is less than any float
        value = 0.0
        if seen.any():
            value = float(np.array(self.weights)[seen] @ hockey_stick_gaussian(size, mu=mu[seen]))
        if epsilon < 0:  # E_gamma(P||Q) = 1 - gamma + gamma E_{1/gamma}(Q||P), and the pair is symmetric
            value = -math.expm1(epsilon) + math.exp(epsilon) * value
        return value * (1 - _MARGIN), value * (1 + _MARGIN) + 5e-324

    def tails(self, loss: Reals) -> Tails:
        mus = self._mu
        sides = np.zeros((4, len(loss)))
        block = max(1, _BLOCK // len(mus))
        for start in range(0, len(loss), block):
            part = slice(start, start + block)
            score = np.divide.outer(np.asarray(loss)[part], mus) + mus / 2
            for row, values in enumerate((ndtr(mus - score), ndtr(score - mus), ndtr(-score), ndtr(score))):
                sides[row, part] = values @ self._weight
        below = np.where(np.asarray(loss) >= 0, self._still, 0.0)
        return Tails(sides[0] + self._still - below, sides[1] + below, sides[2] + self._still - below, sides[3] + below)
