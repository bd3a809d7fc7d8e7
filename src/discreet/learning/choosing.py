"""`solver="auto"`: which solver fits a problem, from public quantities alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.learning.convex.descent import NoisyGradientDescent
from discreet.learning.convex.functional import FunctionalMechanism
from discreet.learning.convex.solver import Solver
from discreet.learning.convex.statistics import SufficientStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.learning.goal import Goal
    from discreet.learning.problem import Facts

__all__ = ["SOLVERS", "chosen_solver"]

_NAMED: dict[str, Callable[[], Solver]] = {
    "descent": NoisyGradientDescent,
    "functional": FunctionalMechanism,
    "statistics": SufficientStatistics,
}
SOLVERS = ("auto", *_NAMED)


def chosen_solver(
    asked: object, facts: Facts, goal: Goal, *, automatic_alpha: bool
) -> tuple[Solver, Facts, tuple[str, ...]]:
    """The solver that was asked for or the one that suits, the facts with a penalty filled in, and why."""
    del goal
    if automatic_alpha:
        facts = replace(facts, alpha=1e-3)
    if isinstance(asked, Solver):
        return asked, facts, ()
    if asked != "auto":
        return _NAMED[str(asked)](), facts, ()
    return NoisyGradientDescent(), facts, ("gradient descent: the only solver that is built",)
