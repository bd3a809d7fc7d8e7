r"""Samples of fixed size, drawn without replacement, when one record is replaced.

If E_gamma(P || Q) bounds both orders of neighbours of the base for gamma >= 1, then a sample that holds a record with
probability q has

    E_{1 + q (gamma - 1)} <= q E_gamma(P || Q),

in both orders again [Balle et al. 2018; Zhu et al. 2022, Thm 11]. Below gamma' = 1 the reverse order says what
holds, E_g(A || B) = 1 - g + g E_{1/g}(B || A). So the dominating pair has the positive losses of the Poisson-sampled
pair, their mirror images, and all other mass at loss 0. **It is not the Poisson-sampled pair**, in either order: that
one is dominated at gamma' >= 1 only, and composes to less [Lebeda et al. 2024].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.discretise import tails_of
from discreet.accounting.pair import Direction, Pair, Tails
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.corners import corners_of
from discreet.accounting.pairs.dots import table_through
from discreet.accounting.pairs.tails import TailsPair
from discreet.accounting.profile_moments import profile_upper

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals

__all__ = ["MirroredPair", "without_replacement"]


def without_replacement(base: Pair, rate: float) -> Pair:
    """The dominating pair of a sample of fixed size that holds each record with probability `rate`."""
    if isinstance(base, AtomsPair) or not base.symmetric:
        return _table(base, rate)
    return MirroredPair(base.sampled(rate))


def _table(base: Pair, rate: float) -> AtomsPair:
    """Corners where the base has its own, so that nothing is lost for a finite base; the worse of its two orders."""
    epsilons = corners_of(base)
    deltas = np.array([profile_of(base, float(e)) for e in epsilons])
    moved = np.where(epsilons < 600, np.log1p(rate * np.expm1(np.minimum(epsilons, 600.0))), epsilons + math.log(rate))
    return table_through(np.where(epsilons > 0, moved, 0.0) * (1 + 4e-16), rate * deltas * (1 + 1e-15))


def profile_of(base: Pair, epsilon: float) -> float:
    """Upper bound of the larger of both orders' divergences, infinite losses included."""
    return max(profile_upper(base, epsilon, direction) for direction in base.directions())


@dataclass(frozen=True, eq=False)
class MirroredPair(TailsPair):
    """The positive losses of `sampled`, mirrored; `sampled` comes from a pair whose two orders agree."""

    sampled_pair: Pair
    symmetric = True
    most_points = 1 << 20

    @property
    def p_missing(self) -> float:  # type: ignore[override]
        return self.sampled_pair.p_missing

    @property
    def q_missing(self) -> float:  # type: ignore[override]
        return self.sampled_pair.p_missing

    @property
    def span(self) -> tuple[float, float]:
        high = self.sampled_pair.span[1]
        return -high, high

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float] | None:
        if epsilon >= 0:
            return self.sampled_pair.profile(epsilon, Direction.FORWARD)
        mirrored = self.profile(-epsilon, direction)
        if mirrored is None:
            return None
        rest, gamma = -math.expm1(epsilon), math.exp(epsilon)
        return (rest + gamma * mirrored[0]) * (1 - 1e-15), (rest + gamma * mirrored[1]) * (1 + 1e-15)

    def tails(self, loss: Reals) -> Tails:
        inside = self.sampled_pair.tails(np.maximum(loss, 0.0))
        mirrored = tails_of(self.sampled_pair, Direction.BACKWARD, np.minimum(loss, 0.0))
        right = loss >= 0
        return Tails(
            np.where(right, inside.p_above, mirrored[0]),
            np.where(right, inside.p_below, mirrored[1]),
            np.where(right, inside.q_above, mirrored[2]),
            np.where(right, inside.q_below, mirrored[3]),
        )

    def atoms(self) -> tuple[Reals, Reals]:
        loss, mass = self.sampled_pair.atoms()
        loss, mass = loss[loss > 0], mass[loss > 0]
        at_zero = self.sampled_pair.tails(np.zeros(1))
        rest = float(at_zero.p_below[0] - at_zero.q_above[0])
        if rest <= 0:
            return np.concatenate([-loss[::-1], loss]), np.concatenate([(mass * np.exp(loss))[::-1], mass])
        return (
            np.concatenate([-loss[::-1], [0.0], loss]),
            np.concatenate([(mass * np.exp(loss))[::-1], [rest], mass]),
        )
