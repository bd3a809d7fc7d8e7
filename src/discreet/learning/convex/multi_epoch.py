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
from discreet.learning.convex.hidden import HiddenPlan, HiddenSolver

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
