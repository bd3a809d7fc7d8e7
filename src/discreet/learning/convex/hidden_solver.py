"""What solvers with hidden iterates choose before they run: batch, step, and the least noise that meets a goal."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.accounting.calibration import calibrate
from discreet.arguments import count, positive
from discreet.errors import InvalidArgument
from discreet.learning.convex.solver import Solver

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.learning.convex.hidden import HiddenPlan
    from discreet.learning.goal import Goal
    from discreet.learning.problem import Facts

__all__ = ["HiddenSolver"]


@dataclass(frozen=True)
class HiddenSolver(Solver):
    """Projected noisy SGD with hidden iterates; `batch` records a step, None to let the solver choose.

    `step` is the step size, at most 2 / smoothness; None takes what the bound on the excess risk is smallest for. The
    analysis is of records that keep their places: under 'add-remove' a neighbour has a record zeroed, not taken out so
    that all later ones move up, and `zeroed=True` says that this is meant.
    """

    needs_records: ClassVar[bool] = True
    radius: float = 5.0
    batch: int | None = 1
    step: float | None = None
    zeroed: bool = False

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        if self.batch is not None:
            count("batch", self.batch, least=1)
        if self.step is not None:
            positive("step", self.step)

    @abstractmethod
    def made(self, facts: Facts, *, batch: int, sigma: float) -> HiddenPlan:
        """The plan with this noise on the mean gradient of a batch."""

    def plan(self, facts: Facts, goal: Goal) -> HiddenPlan:
        """The least noise for which even the record at the worst position meets the goal; touches no data."""
        if goal.adjacency != facts.adjacency:
            raise InvalidArgument("goal", goal, f"its adjacency is not that of the facts, {facts.adjacency!r}")
        records = facts.needed_records("the number of records, hence of steps, is public in this analysis")
        if facts.adjacency == "add-remove" and not self.zeroed:
            raise InvalidArgument(
                "adjacency",
                facts.adjacency,
                "hidden iterates are analysed for records that keep their places: pass adjacency='replace-one', or "
                "zeroed=True to the solver if a record that is zeroed instead of taken out is what you protect",
            )
        ratio = math.sqrt(facts.dimension) * facts.changes / goal.gaussian
        batch = self.batch or self.best_batch(records, ratio)
        return _calibrated(
            lambda sigma: self.made(facts, batch=batch, sigma=sigma),
            goal,
            start=facts.changes * facts.lipschitz / batch / goal.gaussian,
        )

    def best_batch(self, records: int, ratio: float) -> int:
        """The batch for which the bound is least: its statistical part grows with it, that of the noise falls.

        `ratio` is the size of the noise of a step on one record, if no later step hid it, in Lipschitz constants.
        """
        return max(1, min(records, round(ratio)))

    def chosen_step(self, facts: Facts, best: Callable[[float], float], *, sigma: float) -> float:
        """The step given, or the best for gradients of this second moment's root, at most 1 / smoothness."""
        if self.step is not None:
            return self.step
        records = facts.needed_records("the step size depends on it")
        size = math.hypot(facts.lipschitz, sigma * math.sqrt(facts.dimension))
        return min(best(size), 1 / (facts.smoothness + facts.alpha / records))


def _calibrated(make: Callable[[float], HiddenPlan], goal: Goal, *, start: float) -> HiddenPlan:
    """The plan with the least noise that meets the goal, from `make(sigma)`."""
    target, sigma = goal.gaussian, start
    plan = make(sigma)
    if goal.epsilon is not None and not plan.is_gaussian:
        # in units of the start, so that the search is the same for losses of every size
        share = calibrate(lambda part: make(part * start).cost, epsilon=goal.epsilon, delta=goal.delta)
        return make(share * start)
    for _ in range(100):
        mu = math.sqrt(2 * plan.cost.zcdp())
        if target * (1 - 1e-9) <= mu <= target:
            return plan
        sigma *= mu / target * (1 + 3e-10)
        plan = make(sigma)
    raise InvalidArgument("goal", goal, "no noise meets it within the accuracy of floats; pass a larger epsilon")
