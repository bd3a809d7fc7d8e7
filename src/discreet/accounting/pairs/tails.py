"""Pairs known by their distribution functions alone: read exactly once, composed on the grid.

They have no certified transform, so the contour accountant refuses them; what it needs for planning, and Rényi
divergences from above, come from a fine dominating table.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.discretise import discretise, loss_span, tails_of
from discreet.accounting.nodes import Nodes
from discreet.accounting.pair import Direction, Pair, Tails

if TYPE_CHECKING:
    from discreet.accounting.pair import Complexes, Reals

__all__ = ["TailsPair", "ThinnedPair"]

_CELLS = 4096


@dataclass(frozen=True, eq=False)
class TailsPair(Pair):
    """A pair that has `tails` and a span and nothing else."""

    has_transform = False
    most_points = 1 << 16

    @abstractmethod
    def tails(self, loss: Reals) -> Tails: ...

    def nodes(self, power: tuple[float, float], reach: float) -> Nodes:
        """A planning table: cells of the forward law merged to points."""
        loss, mass, _ = _table(self, Direction.FORWARD)
        return Nodes(loss, np.expm1(np.minimum(loss, 700.0)), np.log(mass) - loss)

    def log_decay(self, power: float, reach: Reals) -> Reals:
        return np.full(len(reach), np.inf)

    def log_power_mean(self, powers: Complexes) -> tuple[Complexes, Reals]:
        """For real b outside (0, 1) an upper bound, from the dominating table of the direction that b belongs to."""
        values = np.empty(len(powers), dtype=complex)
        for index, power in enumerate(powers.real):
            loss, mass, lost = _table(self, Direction.FORWARD if power >= 1 else Direction.BACKWARD)
            if lost > 0:  # unbounded losses: what lies beyond the window could be anything under a strong tilt
                return np.full(len(powers), np.inf, dtype=complex), np.zeros(len(powers))
            exponent = (power - 1 if power >= 1 else -power) * loss + np.log(mass)
            values[index] = np.logaddexp.reduce(exponent)
        return values, np.full(len(powers), 1e-12)

    def cumulants(self, power: float) -> tuple[float, float, float]:
        direction = Direction.FORWARD if power >= 1 else Direction.BACKWARD
        loss, mass, _ = _table(self, direction)
        exponent = (power - 1 if power >= 1 else -power) * loss + np.log(mass)
        top = float(exponent.max())
        terms = np.exp(exponent - top)
        total = float(terms.sum())
        mean = float((terms * loss).sum()) / total
        variance = max(0.0, float((terms * loss * loss).sum()) / total - mean**2)
        return top + math.log(total), (mean if power >= 1 else -mean), variance


@lru_cache(maxsize=64)
def _table(pair: TailsPair, direction: Direction) -> tuple[Reals, Reals, float]:
    """Losses and masses of a dominating table of one direction (window to 1e-300), and the mass beyond it."""
    low, high = loss_span(pair, direction)

    def outside(x: float) -> bool:
        above, below, _, _ = tails_of(pair, direction, np.array([x]))
        return bool(min(above[0], below[0]) <= 1e-300)

    reach = 1.0
    while reach < 1e6 and not (outside(reach) and outside(-reach)):
        reach *= 1.5
    low, high = max(low, -reach), min(high, reach)
    _, upper = discretise(pair, direction, (high - low) / _CELLS, (low, high), 1.0)
    loss = upper.origin + (high - low) / _CELLS * np.arange(len(upper.mass))
    keep = upper.mass > 0
    bounded = high == loss_span(pair, direction)[1] and pair.infinite(direction) == 0
    return loss[keep], upper.mass[keep], (0.0 if bounded and upper.infinite == 0 else max(upper.infinite, 1e-300))


@dataclass(frozen=True, eq=False)
class ThinnedPair(TailsPair):
    """Poisson sampling of any pair: w becomes 1 - q + q w, P becomes (1-q) Q + q P."""

    base: Pair
    rate: float

    @property
    def q_missing(self) -> float:  # type: ignore[override]
        return 0.0

    @property
    def p_missing(self) -> float:  # type: ignore[override]
        return self.rate * self.base.p_missing

    @property
    def span(self) -> tuple[float, float]:
        low, high = self.base.span
        if self.base.q_missing > 0:
            low = -math.inf
        top = math.inf if high == math.inf else _grow(high, self.rate)
        return (math.log1p(-self.rate) if low == -math.inf else _grow(low, self.rate)), top

    def tails(self, loss: Reals) -> Tails:
        q = self.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.maximum(np.expm1(np.minimum(loss, 30.0)) / q, -1.0)
            base = np.where(loss > 30.0, loss - math.log(q) + np.log1p(-(1 - q) * np.exp(-loss)), np.log1p(ratio))
        inner = self.base.tails(base)
        missing = self.base.q_missing  # Q-mass with w = 0 before, 1 - q after: a finite loss now
        q_below = inner.q_below + np.where(loss >= math.log1p(-q), missing, 0.0)
        q_above = inner.q_above + np.where(loss < math.log1p(-q), missing, 0.0)
        return Tails((1 - q) * q_above + q * inner.p_above, (1 - q) * q_below + q * inner.p_below, q_above, q_below)


def _grow(loss: float, rate: float) -> float:
    return math.log1p(rate * math.expm1(loss)) if loss < 700 else loss + math.log(rate)
