r"""PNSGD with several passes over the records in the same order, the last iterate released (Algorithm 2).

For convex losses, k passes and the record at position t of n, mu^2 = (2 L / sigma)^2 ((k - 1)/n + 1/(n + 1 - t)), as in
the proof of [Feldman et al. 2018, Thm 35]: n passes cost the last record no more than two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.iteration.algorithms import multi_epoch_pnsgd
from discreet.accounting.iteration.by_position import multi_epoch_pnsgd_by_position
from discreet.accounting.iteration.personal import PersonalCosts
from discreet.arguments import count
from discreet.learning.convex.hidden import HiddenPlan
from discreet.learning.convex.hidden_solver import HiddenSolver
from discreet.learning.convex.pnsgd import harmonic
from discreet.learning.goal import Goal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.problem import Facts

    Reals = NDArray[np.float64]

__all__ = ["MultiEpochPNSGD", "MultiEpochPlan"]


@dataclass(frozen=True)
class MultiEpochPlan(HiddenPlan):
    """`epochs` passes in the same order."""

    epochs: int = 1
    name: ClassVar[str] = "multi-epoch PNSGD"
    theorem: ClassVar[str] = "the noise of later steps hides every use of a record [Feldman et al. 2018, Thm 35]"

    @property
    def steps(self) -> int:
        return self.batches * self.epochs

    @property
    def uses(self) -> int:
        return self.epochs

    @cached_property
    def _mu(self) -> Reals:
        """mu of every batch without rounding."""
        return multi_epoch_pnsgd_by_position(epochs=self.epochs, lipschitz=self.lipschitz, **self.schedule).mu

    def _at(self, place: int) -> Cost:
        """The cost of a record in this batch, from 1."""
        later = self.batches + 1 - place
        return self.stated(
            multi_epoch_pnsgd,
            mu=float(self._mu[place - 1]),
            plain=self.ratio * math.sqrt((self.epochs - 1) / self.batches + 1 / later),
            position=place,
            epochs=self.epochs,
        )

    @cached_property
    def worst_cost(self) -> Cost:
        return self._at(self.batches)

    @cached_property
    def personal_costs(self) -> PersonalCosts:
        return PersonalCosts(
            self.name,
            self.by_record(np.sqrt(self._mu**2 + self.rounding) * (1 + 1e-12)),
            np.ones(self.records),
            self.facts.adjacency,
            lambda position: self._at((position - 1) // self.batch + 1),
        )


@dataclass(frozen=True)
class MultiEpochPNSGD(HiddenSolver):
    """`epochs` passes over the records in the same order, the last iterate (Algorithm 2 of [Feldman et al. 2018]).

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=10, row_norm=1.0, records=1_000, adjacency="replace-one")
    >>> goal = Goal(mu=0.25, adjacency="replace-one")
    >>> [round(MultiEpochPNSGD(epochs=k).plan(facts, goal).sigma, 3) for k in (1, 10, 1_000)]
    [8.0, 8.036, 11.311]
    """

    epochs: int = 10
    name: ClassVar[str] = "multi-epoch PNSGD"
    theorem: ClassVar[str] = MultiEpochPlan.theorem

    def __post_init__(self) -> None:
        super().__post_init__()
        count("epochs", self.epochs, least=1)

    def made(self, facts: Facts, *, batch: int, sigma: float) -> MultiEpochPlan:
        records = facts.needed_records("the number of records, hence of steps, is public in this analysis")
        steps = -(-records // batch) * self.epochs
        step = self.chosen_step(facts, lambda size: self.radius / (size * math.sqrt(steps)), sigma=sigma)
        return MultiEpochPlan(facts, self.radius, batch, step, sigma, epochs=self.epochs)

    def bound(self, *, step: float, batches: int, radius: float, lipschitz: float, noise: float) -> float:
        r"""A bound on E F(x_K) - min F after K passes over m batches in any order, F the mean of their losses.

            R^2 / (2 eta m (K + 1)) + (eta B / (2 m)) (1 + 1 + 1/2 + ... + 1/K),
            B = m (L^2 + s^2) + 2 L sum_{j<m} (j L + sqrt(j) s),        s = sqrt(d) sigma = `noise`:

        for convex losses that are L-Lipschitz on a ball of radius R, from its centre: a pass is one step of m eta with
        an error, see docs/proofs/pnsgd-lattice.md. It says something for few, large batches and many passes only: in a
        fixed order that may be the worst one a pass is worth no more than one full gradient.
        """
        places = np.arange(batches, dtype=np.float64)
        drift = float(np.sum(places * lipschitz + np.sqrt(places) * noise))
        square = batches * (lipschitz**2 + noise**2) + 2 * lipschitz * drift
        first = radius**2 / (2 * step * batches * (self.epochs + 1))
        return first + step * square / (2 * batches) * (1 + harmonic(self.epochs))

    def utility_bound(
        self,
        *,
        n: int,
        d: int,
        epsilon: float,
        delta: float,
        lipschitz: float = 1.0,
        radius: float = 1.0,
        smoothness: float | None = None,
    ) -> float:
        """A bound on the expected excess of the mean loss on these n records, one of which may be replaced.

        `bound` with the noise and the step of the plan, for n that is a multiple of the batch; never more than 2 L R,
        which is the most that losses can differ by in the ball.
        """
        n, d = count("n", n, least=1), count("d", d, least=1)
        mu = Goal(epsilon=epsilon, delta=delta).gaussian
        batch = min(n, self.batch or self.best_batch(n, 2 * math.sqrt(d) / mu))
        batches = -(-n // batch)
        sigma = 2 * lipschitz / (batch * mu) * math.sqrt((self.epochs - 1) / batches + 1)
        noise = sigma * math.sqrt(d)
        best = radius / (math.hypot(lipschitz, noise) * math.sqrt(batches * self.epochs))
        step = self.step or min(best, math.inf if smoothness is None else 1 / smoothness)
        found = self.bound(step=step, batches=batches, radius=radius, lipschitz=lipschitz, noise=noise)
        return min(found, 2 * lipschitz * radius)
