r"""PNSGD: one pass of projected noisy SGD over the records in a fixed order, the last iterate released.

The record at position t of n is hidden by the noise of all steps from its own on, so that it has
mu_t = 2 L / (sigma sqrt(n + 1 - t)) when records may be replaced [Feldman et al. 2018, Thm 23]: the last pays most and
sets the noise; early records get far more privacy than was asked for. With public records at the end of the order the
last private one is hidden by them too, and sqrt(public + 1) times less noise will do [Feldman et al. 2018, Cor. 31].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.iteration.algorithms import pnsgd
from discreet.accounting.iteration.by_position import pnsgd_by_position
from discreet.accounting.iteration.personal import PersonalCosts
from discreet.arguments import count
from discreet.errors import InvalidArgument
from discreet.learning.convex.hidden import HiddenPlan
from discreet.learning.convex.hidden_solver import HiddenSolver
from discreet.learning.goal import Goal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.problem import Facts

    Reals = NDArray[np.float64]

__all__ = ["PNSGD", "PNSGDPlan"]


def harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n, rounded up."""
    return math.log(n) + 0.5772156649015329 + 1 / (2 * n) if n else 0.0


@dataclass(frozen=True)
class PNSGDPlan(HiddenPlan):
    """One pass in order."""

    name: ClassVar[str] = "PNSGD"
    theorem: ClassVar[str] = "the noise of later steps hides a record [Feldman et al. 2018, Thm 23; Bok et al. 2024]"

    @cached_property
    def _mu(self) -> Reals:
        """mu of every private batch without rounding."""
        public = self.batches - self.private_batches
        return pnsgd_by_position(lipschitz=self.lipschitz, public=public, **self.schedule).mu

    def _at(self, place: int) -> Cost:
        """The cost of a record in this batch, from 1."""
        later = self.batches + 1 - place
        return self.stated(
            pnsgd,
            mu=float(self._mu[place - 1]),
            plain=self.ratio / math.sqrt(later),
            position=place,
            public=self.batches - self.private_batches,
        )

    @cached_property
    def worst_cost(self) -> Cost:
        return self._at(self.private_batches)

    @cached_property
    def personal_costs(self) -> PersonalCosts:
        mu = np.sqrt(self._mu**2 + self.rounding) * (1 + 1e-12)
        return PersonalCosts(
            self.name,
            self.by_record(mu),
            np.ones(self.records - self.public),
            self.facts.adjacency,
            lambda position: self._at((position - 1) // self.batch + 1),
        )


@dataclass(frozen=True)
class PNSGD(HiddenSolver):
    """Algorithm 1 of [Feldman et al. 2018]: one pass in a fixed order, the last iterate; the last `public` are public.

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=10, row_norm=1.0, records=10_000, adjacency="replace-one")
    >>> goal = Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one")
    >>> plan = PNSGD().plan(facts, goal)
    >>> plan.personal_costs.epsilon(1e-6)[[0, 4_999, 9_999]].round(4).tolist()
    [0.007, 0.0103, 1.0]
    """

    public: int = 0
    name: ClassVar[str] = "PNSGD"
    theorem: ClassVar[str] = PNSGDPlan.theorem
    plan_type: ClassVar[type[HiddenPlan]] = PNSGDPlan

    def __post_init__(self) -> None:
        super().__post_init__()
        count("public", self.public)

    def made(self, facts: Facts, *, batch: int, sigma: float) -> HiddenPlan:
        records = facts.needed_records("the number of records, hence of steps, is public in this analysis")
        if self.public >= records:
            raise InvalidArgument("public", self.public, f"at least one of the {records} records must be private")
        steps = -(-(records - self.public) // batch) - (-self.public // batch)
        step = self.chosen_step(facts, lambda size: self.best_step(steps, self.radius, size), sigma=sigma)
        return self.plan_type(facts, self.radius, batch, step, sigma, self.public)

    def best_batch(self, records: int, ratio: float) -> int:
        """The least of b (1 + ratio^2 / (b^2 (1 + public / b))) among sizes a factor of sqrt(2) apart."""
        sizes = {round(2 ** (k / 2)) for k in range(2 * records.bit_length())} | {1, round(ratio) or 1}
        fitting = [size for size in sizes if 1 <= size <= records - self.public]
        return min(fitting, key=lambda b: b + ratio**2 / (b * (1 + self.public // b)))

    def bound(self, *, step: float, steps: int, radius: float, size: float) -> float:
        r"""A bound on E F(w_T) - min F for the last of T stochastic gradient steps of constant size eta.

            R^2 / (2 eta (T + 1)) + (eta G^2 / 2) (1 + 1 + 1/2 + ... + 1/T),

        for F convex on a ball of radius R, w_0 its centre, unbiased gradients with E ||g||^2 <= G^2 = `size`^2: the
        argument of [Shamir and Zhang 2013, Thm 2] for constant steps, in docs/proofs/pnsgd-lattice.md.
        """
        return radius**2 / (2 * step * (steps + 1)) + step * size**2 / 2 * (1 + harmonic(steps))

    def best_step(self, steps: int, radius: float, size: float) -> float:
        """The step for which `bound` is smallest."""
        return radius / (size * math.sqrt((steps + 1) * (1 + harmonic(steps))))

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
        """A bound on the expected excess population loss on n independent records, one of which may be replaced.

        `bound` with the noise and the step of the plan; n counts the public records too.
        """
        if self.public >= count("n", n, least=1):
            raise InvalidArgument("public", self.public, f"at least one of the {n} records must be private")
        mu = Goal(epsilon=epsilon, delta=delta).gaussian
        batch = self.batch or self.best_batch(n, 2 * math.sqrt(d) / mu)
        steps = -(-(n - self.public) // batch) - (-self.public // batch)
        sigma = 2 * lipschitz / (batch * mu * math.sqrt(1 - (-self.public // batch)))
        size = math.hypot(lipschitz, sigma * math.sqrt(d))
        step = self.step or min(self.best_step(steps, radius, size), math.inf if smoothness is None else 1 / smoothness)
        return self.bound(step=step, steps=steps, radius=radius, size=size)
