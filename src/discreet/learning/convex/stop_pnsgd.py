r"""Stop-PNSGD: PNSGD that stops after a random number of steps; and several tasks on one data set.

The number of steps is uniform on 1 ... n and does not depend on the data. A record that is not reached costs nothing,
one that is reached is hidden by the steps since, and the mean over all lengths is small: that is why k <= n tasks on
the same records cost little more than one [Feldman et al. 2018, Thm 32]. The composition of the k mixtures is evaluated
as it is, which needs no condition on the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.calibration import calibrate
from discreet.accounting.iteration.personal import PersonalCosts
from discreet.accounting.iteration.random_end import stop_pnsgd
from discreet.accounting.iteration.stopped import stop_pnsgd_by_position
from discreet.arguments import count, nonnegative, probability
from discreet.errors import InvalidArgument
from discreet.learning.convex.hidden import HiddenPlan
from discreet.learning.convex.hidden_solver import HiddenSolver
from discreet.learning.goal import Goal
from discreet.noise import uniform_integers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.convex.hidden import HiddenFit
    from discreet.learning.problem import Facts, Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["StopPNSGD", "StopPlan"]

_NODES = 6


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _StoppedTasks(PersonalCosts):
    """Everybody's cost of `tasks` runs over `batches` batches; early records cost most, as they are reached most."""

    one: PersonalCosts
    batch: int
    tasks: int

    def _spread(self, values: Reals, places: NDArray[np.int64]) -> Reals:
        """From some batches, in order and the first among them, to everyone: the value of the last one before."""
        every = np.arange(len(self.one)) + 1
        return np.repeat(values[np.searchsorted(places, every, side="right") - 1], self.batch)[: len(self)]

    def _some(self) -> NDArray[np.int64]:
        last = len(self.one)
        return np.unique(np.append(last + 1 - np.geomspace(last, 1, min(_NODES, last)).astype(np.int64), 1))

    def epsilon(self, delta: float) -> Reals:
        """The certified epsilon of everyone at a delta; for several tasks that of a record somewhat before them."""
        if self.tasks == 1:
            return self._spread(self.one.epsilon(delta), np.arange(len(self.one)) + 1)
        level = probability("delta", delta)
        return self._composed(("epsilon", level), lambda cost: cost.epsilon(level))

    def delta(self, epsilon: float) -> Reals:
        """The certified delta of everyone at an epsilon."""
        if self.tasks == 1:
            return self._spread(self.one.delta(epsilon), np.arange(len(self.one)) + 1)
        level = nonnegative("epsilon", epsilon)
        return self._composed(("delta", level), lambda cost: cost.delta(level))

    def _composed(self, asked: tuple[str, float], read: Callable[[Cost], float]) -> Reals:
        """Compositions of several tasks are slow to read: every answer is kept."""
        some = self._some()
        if asked not in self._answers:
            costs = (self.tasks * self.one.for_person(int(place)) for place in some)
            self._answers[asked] = np.array([read(cost) for cost in costs])
        return self._spread(self._answers[asked], some)

    @cached_property
    def _answers(self) -> dict[tuple[str, float], Reals]:
        return {}


@dataclass(frozen=True)
class StopPlan(HiddenPlan):
    """One pass in order that stops at a random time, for each of `tasks` problems."""

    tasks: int = 1
    name: ClassVar[str] = "Stop-PNSGD"
    theorem: ClassVar[str] = (
        "the noise of later steps hides a record, on average over a random end [Feldman et al. 2018, Thm 26 and 32]"
    )

    @property
    def is_gaussian(self) -> bool:
        return False

    @property
    def _arguments(self) -> dict[str, object]:
        """The accounting of one task: without strong convexity, enlarged for runs of all lengths."""
        larger = self.enlarged(self.ratio / math.sqrt(self.batches))
        return {**self.schedule, "strong_convexity": 0.0, "lipschitz": self.lipschitz * larger}

    @cached_property
    def one_task(self) -> Cost:
        """What one task costs the first record, which gives away most."""
        return stop_pnsgd(**self._arguments)  # type: ignore[arg-type]

    @cached_property
    def worst_cost(self) -> Cost:
        return self.tasks * self.one_task

    @cached_property
    def personal_costs(self) -> PersonalCosts:
        one = stop_pnsgd_by_position(**self._arguments)  # type: ignore[arg-type]
        return _StoppedTasks(
            self.name,
            self.by_record(one.mu),
            self.by_record(one.weight),
            self.facts.adjacency,
            lambda position: self.tasks * one.for_person((position - 1) // self.batch + 1),
            one=one,
            batch=self.batch,
            tasks=self.tasks,
        )

    is_random: ClassVar[bool] = True

    def span(self, generator: Generator | None) -> tuple[int, int]:
        return 0, 1 + uniform_integers(self.batches, generator=generator)

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> HiddenFit:
        if self.tasks != 1:
            raise InvalidArgument("tasks", self.tasks, "pass all problems at once to run_all: the cost is for all")
        return super().run(problem, verbose=verbose, generator=generator)

    def run_all(
        self, problems: Sequence[Problem], *, verbose: bool = False, generator: Generator | None = None
    ) -> tuple[HiddenFit, ...]:
        """Fit all tasks, with independent noise; `cost` is for all of them, whose rows and targets may be one's own."""
        if len(problems) != self.tasks:
            raise InvalidArgument("problems", len(problems), f"this plan was made for {self.tasks} tasks")
        for problem in problems:
            self.check(problem)
        return tuple(self._one_run(problem, verbose=verbose, generator=generator) for problem in problems)


@dataclass(frozen=True)
class StopPNSGD(HiddenSolver):
    """PNSGD that stops at a random time, for one task or `tasks` of them on the same records.

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=10, row_norm=1.0, records=10_000, adjacency="replace-one")
    >>> goal = Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one")
    >>> [round(StopPNSGD(tasks=k).plan(facts, goal).sigma, 2) for k in (1, 100)]
    [3.8, 6.76]
    """

    tasks: int = 1
    name: ClassVar[str] = "Stop-PNSGD"
    theorem: ClassVar[str] = StopPlan.theorem

    def __post_init__(self) -> None:
        super().__post_init__()
        count("tasks", self.tasks, least=1)

    def made(self, facts: Facts, *, batch: int, sigma: float) -> StopPlan:
        records = facts.needed_records("the number of records, hence of steps, is public in this analysis")
        steps = -(-records // batch)
        step = self.chosen_step(facts, lambda size: self.radius / (size * math.sqrt(steps + 1)), sigma=sigma)
        return StopPlan(facts, self.radius, batch, step, sigma, tasks=self.tasks)

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
        """A bound on the expected excess population loss of each task on n independent records.

        R^2 / (2 eta T) + (1 + 1/T) eta G^2 / 2 for an iterate drawn from all T (docs/proofs/pnsgd-lattice.md), with the
        noise and the step of the plan when records may be replaced.
        """
        batch = self.batch or self.best_batch(
            count("n", n, least=1), 2 * math.sqrt(d) / Goal(epsilon=epsilon, delta=delta).gaussian
        )
        steps = -(-n // batch)
        sigma = calibrate(
            lambda noise: (
                self.tasks * stop_pnsgd(n=steps, lipschitz=lipschitz / batch, smoothness=1.0, step=1.0, noise=noise)
            ),
            epsilon=epsilon,
            delta=delta,
        )
        size = math.hypot(lipschitz, sigma * math.sqrt(d))
        best = radius / (size * math.sqrt(steps + 1))
        step = self.step or min(best, math.inf if smoothness is None else 1 / smoothness)
        return radius**2 / (2 * step * steps) + (1 + 1 / steps) * step * size**2 / 2
