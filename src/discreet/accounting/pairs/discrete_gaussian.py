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

from discreet.accounting.nodes import Nodes
from discreet.accounting.pair import ROUNDING, Lattice, Pair, Tails
from discreet.accounting.pairs.atoms import AtomsPair

if TYPE_CHECKING:
    from discreet.accounting.pair import Complexes, Reals

__all__ = ["DiscreteGaussianPair", "discrete_gaussian_pair"]

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

    tail_error = 4096 * ROUNDING

    @property
    def span(self) -> tuple[float, float]:
        """Where a float can hold the masses; the rest is less than 1e-320."""
        reach = (_REACH * self.scale + self.shift + 2) * self.shift / self.scale**2
        return -reach, reach

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

    @cached_property
    def _sums(self) -> tuple[Reals, ...]:
        """P above, P below, Q above, Q below, at every atom."""
        _, q, p = self._table
        return tuple(
            np.append(np.cumsum(mass[::-1])[::-1], 0.0) if above else np.append(0.0, np.cumsum(mass))
            for mass in (p, q)
            for above in (True, False)
        )

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        loss, q, _ = self._table
        keep = q > 0
        return Nodes(loss[keep], np.expm1(np.minimum(loss[keep], 700.0)), np.log(q[keep]))

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return 1

    def cumulants(self, power: float) -> tuple[float, float, float]:
        half = (self.shift / self.scale) ** 2 / 2
        return power * (power - 1) * half, (2 * power - 1) * half, 2 * half

    def log_power_mean(self, powers: Complexes) -> tuple[Complexes, Reals]:
        half = (self.shift / self.scale) ** 2 / 2
        # the losses lie on a lattice: one period of Im b further on, only the phase e^{-i pi d} of its origin changes
        period = 2 * math.pi * self.scale**2 / self.shift
        turns = np.rint(powers.imag / period)
        near = powers.real + 1j * (powers.imag - turns * period)
        factor, blur = self._theta_ratio(near)
        value = near * (near - 1) * half + factor - 1j * math.pi * np.mod(turns * self.shift, 2.0)
        blur = blur + 16 * ROUNDING * np.abs(near) * np.abs(near - 1) * half
        return value, blur + 8 * ROUNDING * np.abs(turns) * (1 + np.abs(powers) * half * 4)

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

    def log_decay(self, power: float, reach: Reals) -> Reals:
        """The transform is periodic in Im b: further out it comes back to its value on the real axis."""
        half = (self.shift / self.scale) ** 2 / 2
        return np.full(len(reach), power * (power - 1) * half + 1e-12 * (1 + abs(power * (power - 1) * half)))

    def log_decay_within(self, power: float, reach: Reals) -> Reals:
        """Within one period the Poisson factor is at most 1 + 2 sum e^{...} < 3.1."""
        half = (self.shift / self.scale) ** 2 / 2
        slack = 16 * ROUNDING * (abs(power) * abs(power - 1) + reach**2) * half
        return np.asarray((power * (power - 1) - reach**2) * half + math.log(3.1) + slack)

    def log_modulus(self, power: float, height: Reals, half: float) -> Reals:
        """e^{-v^2 d^2 / 2s^2} within one period, where the Poisson factor is 1 but near the ends, and at most 3.1."""
        period = 2 * math.pi * self.scale**2 / self.shift
        within = np.abs(height - period * np.rint(height / period))
        factor = np.where(within + half < 0.25 * period, 1e-9, math.log(3.1) + 1e-9)
        fall = np.maximum(within * (1 - 1e-9) - half, 0.0) ** 2 * ((self.shift / self.scale) ** 2 / 2)
        return np.asarray(np.minimum(0.0, factor - fall))

    def tails(self, loss: Reals) -> Tails:
        index = np.searchsorted(self._table[0], loss, side="right")
        return Tails(*(column[index] for column in self._sums))

    def atoms(self) -> tuple[Reals, Reals]:
        loss, q, _ = self._table
        return loss, q


def discrete_gaussian_pair(scale: float, shift: int) -> Pair:
    """The pair of a discrete Gaussian: listed atoms for a small scale, Poisson sums for a large one."""
    if scale > _SMALL_SCALE:
        return DiscreteGaussianPair(scale, shift)
    whole = DiscreteGaussianPair(scale, shift)
    loss, q, p = whole._table
    keep = (q > 1e-300) & (p > 1e-300)
    # what a float cannot hold counts as infinite in upper bounds, symmetrically
    cut = max(float(p[~keep].sum()), float(q[~keep].sum())) + 1e-300
    return AtomsPair(
        loss[keep],
        q[keep],
        symmetric=True,
        lattice=whole.lattice,
        p_cut=cut,
        q_cut=cut,
        tail_error=4096 * ROUNDING,
    )
