r"""Skip-PNSGD: PNSGD that leaves out a random number of first records, so that its last iterate is a random one.

The number of batches left out is uniform on 0 ... floor(T/2) and does not depend on the data. Every record is hidden by
as many steps as in PNSGD, and early ones are used less often [Feldman et al. 2018, Thm 24]. On independent records the
result has the law of an iterate drawn from the second half of a run, which is what convergence proofs are about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.iteration.by_position import skip_pnsgd_by_position
from discreet.accounting.iteration.personal import PersonalCosts
from discreet.accounting.iteration.random_end import skip_pnsgd
from discreet.learning.convex.hidden import HiddenPlan
from discreet.learning.convex.pnsgd import PNSGD
from discreet.noise import uniform_integers

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost
    from discreet.noise import Generator

__all__ = ["SkipPNSGD", "SkipPlan"]


@dataclass(frozen=True)
class SkipPlan(HiddenPlan):
    """One pass in order that starts at a random place of the first half."""

    name: ClassVar[str] = "Skip-PNSGD"
    theorem: ClassVar[str] = "the noise of later steps hides a record [Feldman et al. 2018, Thm 24]"

    @property
    def starts(self) -> int:
        """How many first steps there may be."""
        return self.batches // 2 + 1

    @property
    def is_gaussian(self) -> bool:
        return self.private_batches >= self.starts  # else even the last private record is left out at times

    @cached_property
    def _plain(self) -> PersonalCosts:
        """Without rounding, by private batch."""
        public = self.batches - self.private_batches
        return skip_pnsgd_by_position(lipschitz=self.lipschitz, public=public, **self.schedule)

    def _at(self, place: int) -> Cost:
        """The cost of a record in this batch, from 1."""
        return self.stated(
            skip_pnsgd,
            mu=float(self._plain.mu[place - 1]),
            plain=self.ratio / math.sqrt(self.batches + 1 - place),
            position=place,
            public=self.batches - self.private_batches,
        )

    @cached_property
    def worst_cost(self) -> Cost:
        return self._at(self.private_batches)

    @cached_property
    def personal_costs(self) -> PersonalCosts:
        return PersonalCosts(
            self.name,
            self.by_record(np.sqrt(self._plain.mu**2 + self.rounding) * (1 + 1e-12)),
            self.by_record(self._plain.weight),
            self.facts.adjacency,
            lambda position: self._at((position - 1) // self.batch + 1),
        )

    is_random: ClassVar[bool] = True

    def span(self, generator: Generator | None) -> tuple[int, int]:
        return uniform_integers(self.starts, generator=generator), self.batches


@dataclass(frozen=True)
class SkipPNSGD(PNSGD):
    """PNSGD from a random place of the first half of the order on; the last `public` records are public.

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=10, row_norm=1.0, records=10_000, adjacency="replace-one")
    >>> plan = SkipPNSGD(public=100).plan(facts, Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one"))
    >>> round(plan.sigma, 4)  # PNSGD without public records needs 8.4494
    0.8407
    """

    name: ClassVar[str] = "Skip-PNSGD"
    theorem: ClassVar[str] = SkipPlan.theorem
    plan_type: ClassVar[type[HiddenPlan]] = SkipPlan

    def bound(self, *, step: float, steps: int, radius: float, size: float) -> float:
        r"""R^2 / (2 eta m) + eta G^2 (T + 1) / (2 m) for an iterate drawn from the last m = floor(T/2) + 1 of T.

        docs/proofs/pnsgd-lattice.md derives it; it has no logarithm.
        """
        kept = steps // 2 + 1
        return radius**2 / (2 * step * kept) + step * size**2 * (steps + 1) / (2 * kept)

    def best_step(self, steps: int, radius: float, size: float) -> float:
        return radius / (size * math.sqrt(steps + 1))
