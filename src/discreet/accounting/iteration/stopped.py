"""Stop-PNSGD for everyone at once: mixtures over the time since the record was used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.iteration.by_position import at_position, people_of
from discreet.accounting.iteration.losses import Losses
from discreet.accounting.iteration.personal import PersonalCosts, log_delta_above
from discreet.accounting.iteration.random_end import stop_pnsgd
from discreet.accounting.leaves.random_stop import hidden_by
from discreet.arguments import ADJACENCIES, nonnegative, one_of, positive, probability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["StoppedCosts", "stop_pnsgd_by_position"]

_EXACT, _MOST = 64, 512
"""How many lengths are told apart: the first one by one, later ones in groups that take their largest mu."""

_PATIENCE = 45


@dataclass(frozen=True, eq=False, repr=False)
class StoppedCosts(PersonalCosts):
    """`PersonalCosts` of a run that stops at a random time: `mu[i]` is that of position i + 1 if it stops right there.

    People share one epsilon in groups of positions; each group takes that of its first, which is the largest.
    """

    contraction: float = 1.0

    def _groups(self) -> tuple[NDArray[np.int64], Reals]:
        """The first length of each group, and its mu."""
        n = len(self)
        first = np.arange(1, min(n, _EXACT) + 1)
        if n > _EXACT:
            first = np.unique(np.append(first, np.geomspace(_EXACT, n, _MOST).astype(np.int64)))
        return first, hidden_by(first.astype(np.float64), contraction=self.contraction, ratio=float(self.mu[0]))

    def _shared(self, lengths: NDArray[np.int64]) -> tuple[Reals, Reals, NDArray[np.int64]]:
        """Weights of the groups for people with these many steps from their record on, and which person is in which."""
        first, mu = self._groups()
        upper = np.append(first[1:], len(self) + 1)
        steps = np.clip(np.minimum(upper - 1, lengths[:, None]) - first + 1, 0, None)
        return mu, steps / len(self), first

    def _profiles(self, epsilon: Reals, mu: Reals, weight: Reals) -> Reals:
        log_delta = log_delta_above(np.broadcast_to(mu, weight.shape), np.broadcast_to(epsilon[:, None], weight.shape))
        return np.asarray((np.exp(log_delta) * weight).sum(axis=1) * (1 + 1e-9))

    def _nodes(self) -> NDArray[np.int64]:
        return np.unique(np.geomspace(1, len(self), 80).astype(np.int64))

    def _spread(self, nodes: NDArray[np.int64], values: Reals) -> Reals:
        """The value of everyone: that of the next longer length which was computed."""
        lengths = np.arange(len(self), 0, -1)
        return np.asarray(values[np.searchsorted(nodes, lengths)])

    def epsilon(self, delta: float) -> Reals:
        """The certified epsilon of everyone at a delta, in the order of their positions."""
        level = probability("delta", delta)
        if level in (0, 1):
            return np.full(len(self), 0.0 if level else np.inf)
        nodes = self._nodes()
        mu, weight, _ = self._shared(nodes)
        low, top = np.zeros(len(nodes)), float(mu[0])
        high = np.full(len(nodes), top * (top / 2 + np.sqrt(max(0.0, -2 * np.log(level)))) * (1 + 1e-9))
        for _ in range(_PATIENCE):
            middle = 0.5 * (low + high)
            good = self._profiles(middle, mu, weight) <= level
            low, high = np.where(good, low, middle), np.where(good, middle, high)
        high = np.where(self._profiles(np.zeros(len(nodes)), mu, weight) <= level, 0.0, high)
        return self._spread(nodes, np.maximum.accumulate(high))

    def delta(self, epsilon: float) -> Reals:
        """The certified delta of everyone at an epsilon, in the order of their positions."""
        nodes = self._nodes()
        mu, weight, _ = self._shared(nodes)
        found = self._profiles(np.full(len(nodes), nonnegative("epsilon", epsilon)), mu, weight)
        return np.minimum(1.0, self._spread(nodes, found))


def stop_pnsgd_by_position(
    *,
    n: int,
    lipschitz: float,
    smoothness: float,
    step: float,
    noise: float,
    strong_convexity: float = 0.0,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> PersonalCosts:
    """`stop_pnsgd` for every record at once: here it is the first that gives away most, as it is always used.

    >>> everyone = stop_pnsgd_by_position(n=10_000, lipschitz=1, smoothness=1, step=1, noise=20)
    >>> everyone.epsilon(delta=1e-6)[[0, -1]].round(3).tolist(), everyone.worst_position()
    ([0.111, 0.093], 1)
    """
    people = people_of(n)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    contraction = float(losses.factor(np.array([positive("step", step)]))[0])
    moved = losses.sensitivity(one_of("adjacency", adjacency, ADJACENCIES))
    ratio = moved / positive("noise", noise) * (1 + 1e-15)
    make = partial(
        stop_pnsgd,
        n=n,
        lipschitz=lipschitz,
        smoothness=smoothness,
        step=step,
        noise=noise,
        strong_convexity=strong_convexity,
        adjacency=adjacency,
        clipped=clipped,
        linear_model=linear_model,
    )
    return StoppedCosts(
        "stop_pnsgd",
        np.full(people, ratio),
        np.arange(people, 0, -1) / people,
        adjacency,
        partial(at_position, make),
        contraction=contraction,
    )
