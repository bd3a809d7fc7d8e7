r"""Discrete Gaussian noise on the integers, shifted by an integer d.

Q has mass e^{-k^2 / 2s^2} / theta(0), theta(c) = sum_k e^{-(k-c)^2 / 2s^2}, and the loss of k is (2kd - d^2) / 2s^2: a
lattice of spacing d/s^2. Hence

    E_Q[w^b] = e^{b(b-1) d^2 / 2s^2} theta(bd) / theta(0),

and by Poisson summation theta(c) = s sqrt(2 pi) (1 + 2 sum_n e^{-2 pi^2 s^2 n^2} cos(2 pi n c)): the Gaussian value but
for a factor that is 1 to every digit once s > 4, except near the ends |Im b| = pi s^2 / d of the lattice's period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING, Lattice, Nodes, Pair, Tails, log_power_mean_of

if TYPE_CHECKING:
    from discreet.accounting.pair import Complexes, Reals

__all__ = ["DiscreteGaussianPair"]

_SMALL_SCALE = 6.0
_REACH = 39.0
"""Atoms up to 39 scales out are kept: what is beyond has mass below e^-760, less than any float."""


@dataclass(frozen=True)
class DiscreteGaussianPair(Pair):
    """Discrete Gaussian of the given scale, against its shift by the integer `shift`."""

    scale: float
    shift: int
    symmetric = True

    @property
    def lattice(self) -> Lattice:  # type: ignore[override]
        step = self.shift / self.scale**2
        return Lattice(-self.shift * step / 2, step)

    @property
    def span(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @cached_property
    def _table(self) -> tuple[Reals, Reals, Reals]:
        """Losses, Q-masses and P-masses of all atoms that a float can hold."""
        reach = math.ceil(_REACH * self.scale) + 1
        k = np.arange(-reach, reach + self.shift + 1)
        weight = np.exp(-0.5 * (k / self.scale) ** 2)
        moved = np.exp(-0.5 * ((k - self.shift) / self.scale) ** 2)
        total = math.fsum(weight)
        loss = (2.0 * k - self.shift) * (self.shift / (2 * self.scale**2))
        return loss, weight / total, moved / total

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        loss, q, _ = self._table
        keep = q > 0
        return Nodes(loss[keep], np.expm1(np.minimum(loss[keep], 700.0)), np.log(q[keep]))

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return 1 if self.scale > _SMALL_SCALE else int(2 * _REACH * self.scale) + 3

    def cumulants(self, power: float) -> tuple[float, float, float]:
        if self.scale <= _SMALL_SCALE:
            return super().cumulants(power)
        half = (self.shift / self.scale) ** 2 / 2
        return power * (power - 1) * half, (2 * power - 1) * half, 2 * half

    def log_power_mean(self, powers: Complexes) -> tuple[Complexes, Reals]:
        if self.scale <= _SMALL_SCALE:
            reach = self._window(float(np.abs(powers.real - 0.5).max()))
            loss, q, _ = reach
            nodes = Nodes(loss, np.expm1(np.minimum(loss, 700.0)), np.log(q))
            return log_power_mean_of(nodes, powers)
        half = (self.shift / self.scale) ** 2 / 2
        value = powers * (powers - 1) * half
        factor, blur = self._theta_ratio(powers)
        return value + factor, 16 * ROUNDING * np.abs(powers) * np.abs(powers - 1) * half + blur

    def _theta_ratio(self, powers: Complexes) -> tuple[Complexes, Reals]:
        """ln theta(bd) / theta(0) from the first term of the Poisson sum, with the error of the rest."""
        scale = -2 * (math.pi * self.scale) ** 2
        angle = 2 * math.pi * np.mod(powers.real * self.shift, 1.0)
        height = 2 * math.pi * np.abs(powers.imag) * self.shift
        grown, shrunk = np.exp(np.minimum(scale + height, 0.0)), np.exp(scale - height)
        sign = np.where(powers.imag >= 0, -1.0, 1.0)
        first = grown * np.exp(1j * sign * angle) + shrunk * np.exp(-1j * sign * angle)
        rest = 8 * np.exp(2 * scale) + 4 * np.exp(np.minimum(4 * scale + 2 * height, 0.0))
        modulus = np.abs(1 + first)
        blur = 64 * ROUNDING * np.abs(first) * (1 + np.abs(powers) * self.shift) + rest + 4 * math.exp(scale)
        lost = modulus < 4 * blur
        safe = np.where(lost, 1.0, 1 + first)
        value = np.where(lost, np.log(np.maximum(4 * blur, 1e-300)), np.log(safe))
        return value, np.where(lost, math.log(3.25), -np.log1p(-np.where(lost, 0.0, blur / np.abs(safe))))

    def _window(self, power: float) -> tuple[Reals, Reals, Reals]:
        """The table, checked to hold everything that matters at this tilt."""
        centre = power * self.shift / self.scale
        if centre > _REACH - 12:
            from discreet.accounting.contour import Unreachable

            raise Unreachable("the tilt of a discrete Gaussian of small scale is too strong")
        loss, q, p = self._table
        keep = q > 0
        return loss[keep], q[keep], p[keep]

    def log_decay(self, power: float, reach: Reals) -> Reals:
        """Within one period the Poisson factor is at most 1 + 2 sum e^{...} < 3.1."""
        half = (self.shift / self.scale) ** 2 / 2
        if self.scale <= _SMALL_SCALE:
            value, error = self.log_power_mean(np.array([complex(power)]))
            return np.full(len(reach), float(value[0].real + error[0]))
        slack = 16 * ROUNDING * (abs(power) * abs(power - 1) + reach**2) * half
        return (power * (power - 1) - reach**2) * half + math.log(3.1) + slack

    def tails(self, loss: Reals) -> Tails:
        positions, q, p = self._table
        index = np.searchsorted(positions, loss, side="right")
        columns = [
            np.append(np.cumsum(mass[::-1])[::-1], 0.0)[index] if above else np.append(0.0, np.cumsum(mass))[index]
            for mass in (p, q)
            for above in (True, False)
        ]
        return Tails(*columns)

    def atoms(self) -> tuple[Reals, Reals]:
        loss, q, _ = self._table
        return loss, q
