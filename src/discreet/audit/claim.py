r"""What a cost allows: for every event, how likely it may be on one input given how likely it is on a neighbour.

If the releases on neighbouring inputs have the laws P and Q, a cost of profile delta(epsilon) claims for all events

    P(E) <= min over epsilon >= 0 of e^epsilon Q(E) + delta(epsilon),

and the same with P and Q exchanged [Wasserman and Zhou 2010]; for the complement of E the latter says

    P(E) <= min over epsilon >= 0 of 1 - e^-epsilon (1 - Q(E) - delta(epsilon)).

Each epsilon alone is a consequence of the claim, so a
finite number of them is enough to refute it, and none of them can refute a true one.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import CertificateError, WideBracket

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.accounting.cost import Cost

__all__ = ["Claim"]

_LEVELS = 49
_LEAST = 9
_PATIENCE_S = 2.0
"""Costs that are slow to read are read at the least number of points only."""
_TOPS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
_LADDER = tuple(np.geomspace(0.01, 30.0, 41))
_LARGEST = 30.0
"""No number of releases that can be counted tells a larger epsilon from this one."""


@dataclass(frozen=True, eq=False)
class Claim:
    """A cost, read at several epsilon."""

    cost: Cost
    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]

    @classmethod
    def of(cls, cost: Cost) -> Claim:
        """The readings of a cost between epsilon = 0 and the largest that matters for counts of releases."""
        pure = cost.pure_epsilon()
        reached = ((e, d) for d in _TOPS if math.isfinite(e := _level(cost, d)))
        top, left = (pure, 0.0) if math.isfinite(pure) else next(reached, (0.0, 1.0))
        top = min(top, _LARGEST)
        points = [*np.linspace(0.0, top, _LEVELS)]
        if left > _TOPS[0]:  # a claim whose delta stays: a ladder for what it says beyond
            points += [epsilon for epsilon in _LADDER if epsilon > top]
        found: dict[float, float] = {}
        start = time.monotonic()
        for epsilon in _coarse_first(points):
            if len(found) >= _LEAST and time.monotonic() - start > _PATIENCE_S:
                break  # fewer readings see less, and are as true
            found[epsilon] = 0.0 if epsilon >= pure else _delta(cost, epsilon)
        epsilons = np.array(sorted(found))
        deltas = np.array([found[epsilon] for epsilon in sorted(found)])
        return cls(cost, epsilons, deltas)

    def allows(self, other: ArrayLike) -> NDArray[np.float64]:
        """The largest probability that an event may have if it has this probability on the neighbour."""
        q = np.asarray(other, dtype=np.float64)[..., None]
        event = np.exp(self.epsilons) * q + self.deltas
        complement = 1 - np.exp(-self.epsilons) * np.maximum(1 - q - self.deltas, 0)
        allowed: NDArray[np.float64] = np.minimum(event, complement).min(axis=-1)
        return np.minimum(allowed, 1.0)

    def excess(self, p: ArrayLike, q: ArrayLike, trials: int) -> NDArray[np.float64]:
        """By how many standard errors of `trials` releases p and q break the claim: for choosing events."""
        p, q = np.asarray(p, dtype=np.float64)[..., None], np.asarray(q, dtype=np.float64)[..., None]
        factor = np.exp(self.epsilons)
        # a count of 0 has an upper bound of ~20/n: without a floor the rarest events would look the best
        floor = 20.0 / trials
        spread = np.sqrt((p * (1 - p) + floor) / trials) + factor * np.sqrt((q * (1 - q) + floor) / trials)
        found: NDArray[np.float64] = ((p - factor * q - self.deltas) / spread).max(axis=-1)
        return found

    def telling_delta(self) -> float:
        """Where to read epsilon: 0 for a pure claim, else 1e-5 or the smallest delta above it that is claimed."""
        if math.isfinite(self.cost.pure_epsilon()):
            return 0.0
        return next((delta for delta in _TOPS if delta >= 1e-5 and math.isfinite(self.epsilon(delta))), 1e-5)

    def epsilon(self, delta: float) -> float:
        """The claimed epsilon at this delta; infinite if none is claimed."""
        return _level(self.cost, delta)


def _level(cost: Cost, delta: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBracket)
        try:
            return cost.pure_epsilon() if delta == 0 else cost.epsilon(delta)
        except CertificateError:
            return math.inf


def _delta(cost: Cost, epsilon: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBracket)  # both ends of a wide bracket are valid
        try:
            return cost.delta(epsilon)
        except CertificateError:
            return 1.0


def _coarse_first(points: list[float]) -> list[float]:
    """The same points, the ends first and then ever finer: wherever one stops, they are spread out."""
    last = len(points) - 1
    step = 1 << max(last - 1, 0).bit_length()
    order = [last, 0]
    while step > 1:
        order += [place for place in range(step // 2, last, step) if place not in order]
        step //= 2
    return [float(points[place]) for place in dict.fromkeys(order)]
