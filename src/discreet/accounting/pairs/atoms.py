"""Pairs with finitely many outcomes: randomized response, (epsilon, delta) boxes, staircase, own tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.nodes import Nodes
from discreet.accounting.pair import ROUNDING, Direction, Lattice, Pair, Tails

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals

__all__ = ["AtomsPair"]

_MOST_TURNS = 30_000_000


@dataclass(frozen=True, eq=False)
class AtomsPair(Pair):
    """Outcomes with losses `loss` (increasing, finite) of Q-mass `mass`, so of P-mass mass * e^loss.

    `p_missing` and `q_missing` are the masses where the other distribution vanishes. The masses must satisfy
    sum(mass) = 1 - q_missing and sum(mass * e^loss) = 1 - p_missing; they are used as given.
    """

    loss: Reals
    mass: Reals
    p_missing: float = 0.0
    q_missing: float = 0.0
    symmetric: bool = False
    lattice: Lattice | None = None
    p_cut: float = 0.0
    q_cut: float = 0.0
    blur: float = 0.0
    position_error: float = 16 * ROUNDING
    """Relative error of the losses; 0 where they are given numbers."""
    tail_error: float = 256 * ROUNDING
    is_finite = True
    _above: tuple[Reals, Reals, Reals, Reals] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        p = self.mass * np.exp(self.loss)
        cumulative = (
            np.append(np.cumsum(p[::-1])[::-1], 0.0),
            np.append(0.0, np.cumsum(p)),
            np.append(np.cumsum(self.mass[::-1])[::-1], 0.0),
            np.append(0.0, np.cumsum(self.mass)),
        )
        object.__setattr__(self, "_above", cumulative)
        if self.lattice is None:
            object.__setattr__(self, "lattice", _lattice_of(self.loss))

    def sampled(self, rate: float) -> Pair:
        """w becomes 1 - q + q w; outcomes that P lacked now have the finite loss ln(1 - q)."""
        excess = rate * np.expm1(self.loss)
        loss = np.where(excess < -0.5, np.log((1 - rate) + rate * np.exp(self.loss)), np.log1p(excess))
        mass = self.mass
        if self.q_missing > 0:
            loss, mass = np.append(math.log1p(-rate), loss), np.append(self.q_missing, mass)
        # |d ln(1 - q + q e^l) / dl| <= 1
        return AtomsPair(
            loss,
            mass,
            p_missing=rate * self.p_missing,
            p_cut=rate * self.p_cut + (1 - rate) * self.q_cut,
            q_cut=self.q_cut,
            blur=self.blur,
            tail_error=self.tail_error,
        )

    @property
    def span(self) -> tuple[float, float]:
        return float(self.loss[0]), float(self.loss[-1])

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        return Nodes(self.loss, np.expm1(self.loss), np.log(self.mass))

    def node_count(self, power: tuple[float, float], reach: float) -> int:
        return len(self.loss)

    def log_power_bound(self, powers: Reals) -> Reals:
        terms = np.outer(powers, self.loss) + np.log(self.mass)
        top = terms.max(axis=1)
        slack = 64 * ROUNDING * (1 + np.abs(terms).max(axis=1))
        return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)) + slack)

    def log_decay(self, power: float, reach: Reals) -> Reals:
        """Atoms do not decay: the modulus stays below its value on the real axis."""
        terms = power * self.loss + np.log(self.mass)
        top = float(terms.max())
        slack = 32 * ROUNDING * (1 + float(np.abs(terms).max()))
        return np.full(len(reach), top + math.log(float(np.exp(terms - top).sum())) + slack)

    def log_modulus(self, power: float, height: Reals, half: float) -> Reals:
        """The sum itself at y; elsewhere it has moved by at most |v - y| E|l - m|, under the tilted masses, for any m.

        Light atoms, a thousandth of the mass together, count with all they have.
        """
        terms = power * self.loss + np.log(self.mass)
        weight = np.exp(terms - terms.max())
        weight /= weight.sum()
        heaviest = np.argsort(-weight)
        kept = heaviest[: 1 + int(np.searchsorted(np.cumsum(weight[heaviest]), 1 - 1e-3))]
        if len(kept) * len(height) > _MOST_TURNS:
            return np.zeros(len(height))
        middle = float((weight * self.loss).sum())
        moved = half * float((weight * np.abs(self.loss - middle)).sum())
        if len(weight) == 2:
            turn = np.sin(0.5 * float(self.loss[1] - self.loss[0]) * height)
            size = np.sqrt(np.maximum(1.0 - (4.0 * float(weight[0] * weight[1])) * turn * turn, 0.0))
        else:
            real, imaginary = np.zeros(len(height)), np.zeros(len(height))
            for share, loss in zip(weight[kept].tolist(), (self.loss[kept] - middle).tolist(), strict=True):
                angle = loss * height
                real += share * np.cos(angle)
                imaginary += share * np.sin(angle)
            size = np.sqrt(real * real + imaginary * imaginary) + max(0.0, 1.0 - float(weight[kept].sum()))
        # weights and phases are rounded: 1e-9 is far more than they can be off for heights below 1e6 / |loss|
        extent = float(np.abs(self.loss - middle).max())
        return np.asarray(np.minimum(0.0, np.log(size + (moved * (1 + 1e-9) + 1e-9 + 1e-14 * extent * height))))

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float]:
        """sum p (1 - e^{eps - l}) over the losses above epsilon: no term cancels."""
        shift = self.position_error * (abs(epsilon) + float(np.abs(self.loss).max()))
        return self._excess(epsilon + shift, direction)[0], self._excess(epsilon - shift, direction)[1]

    def _excess(self, epsilon: float, direction: Direction) -> tuple[float, float]:
        forward = direction is Direction.FORWARD
        loss = self.loss if forward else -self.loss
        above = loss > epsilon
        mass = (self.mass * np.exp(self.loss) if forward else self.mass)[above]
        value = float((mass * -np.expm1(epsilon - loss[above])).sum())
        return value * (1 - self.tail_error), value * (1 + self.tail_error)

    def tails(self, loss: Reals) -> Tails:
        index = np.searchsorted(self.loss, loss, side="right")
        return Tails(*(column[index] for column in self._above))

    def atoms(self) -> tuple[Reals, Reals]:
        return self.loss, self.mass


def _lattice_of(loss: Reals) -> Lattice | None:
    """The lattice of few losses: any two share one, more only if their differences are multiples up to rounding."""
    if len(loss) == 1:
        return Lattice(float(loss[0]), 1.0)
    if len(loss) > 64:
        return None
    differences = np.diff(loss)
    step = float(differences[0])
    for other in map(float, differences[1:]):
        small, large = min(step, other), max(step, other)
        while small > 1e-9 * float(differences.max()):
            small, large = abs(large - small * round(large / small)), small
        step = large
    multiples = np.rint(differences / step)
    if multiples.max() > 4096 or np.abs(differences - multiples * step).max() > 1e-13 * step:
        return None
    step = float(loss[-1] - loss[0]) / float(multiples.sum())
    places = np.append(0.0, np.cumsum(multiples))
    return Lattice(float(loss[0]), step, float(np.abs(loss - (loss[0] + step * places)).max()))
