"""What every solver is: public facts and a goal in, a plan out; the plan knows its cost before it sees any data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.goal import Goal
    from discreet.learning.problem import Facts, Problem
    from discreet.learning.report import Release
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["Fitted", "Plan", "Solver"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a plan released: the weights, of shape `facts.shape`, and nothing else that depends on the data."""

    weights: Reals
    plan: Plan


class Plan(ABC):
    """A solver, its noise and its cost for one problem; made from public facts alone."""

    facts: Facts

    @property
    @abstractmethod
    def releases(self) -> tuple[Release, ...]:
        """Everything that `run` reveals, with its cost and the reason for it."""

    @property
    def cost(self) -> Cost:
        """The composition of all releases."""
        first, *others = (release.cost for release in self.releases)
        for other in others:
            first = first + other
        return first

    @property
    @abstractmethod
    def noise(self) -> dict[str, float]:
        """The standard deviations (or scales) of the noise, in the units of what is released, by name."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the cost to hold, in words; the code sees to each of them."""
        return ()

    @property
    def choices(self) -> tuple[str, ...]:
        """Parameters that were chosen, and from what."""
        return ()

    @abstractmethod
    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        """Fit. Call it once for what `cost` says; `generator` is for tests alone."""

    def check(self, problem: Problem) -> None:
        """Refuse a problem whose facts are not those of the plan."""
        if problem.facts != self.facts:
            raise InvalidArgument("problem", problem.facts, f"this plan was made for {self.facts}")


@dataclass(frozen=True)
class Solver(ABC):
    """A way to fit a generalised linear model privately; its fields are its public parameters.

    `solver.plan(facts, goal)` decides everything from public facts; `plan.run(problem)` fits. `utility_bound` says what
    its theorem promises about the excess risk, where there is one.
    """

    name: ClassVar[str]
    theorem: ClassVar[str] = ""
    needs_records: ClassVar[bool] = False  # whether the facts must have the number of records

    @abstractmethod
    def plan(self, facts: Facts, goal: Goal) -> Plan:
        """The plan that meets the goal; touches no data."""

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
        """An upper bound on the expected excess risk, by the solver's theorem, for losses and a ball of this size."""
        del n, d, epsilon, delta, lipschitz, radius, smoothness
        raise InvalidArgument("solver", self.name, "no theorem bounds the excess risk of this solver")
