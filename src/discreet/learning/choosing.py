"""`solver="auto"`: which solver fits a problem, from public quantities alone."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument
from discreet.learning import convex
from discreet.learning.convex.descent import NoisyGradientDescent
from discreet.learning.convex.functional import FunctionalMechanism
from discreet.learning.convex.leader import FollowTheRegularizedLeader
from discreet.learning.convex.localization import IterativeLocalization
from discreet.learning.convex.objective import ObjectivePerturbation
from discreet.learning.convex.output import OutputPerturbation
from discreet.learning.convex.pnsgd import PNSGD
from discreet.learning.convex.preconditioned import PreconditionedDescent
from discreet.learning.convex.solver import Solver
from discreet.learning.convex.statistics import SufficientStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.learning.goal import Goal
    from discreet.learning.problem import Facts

__all__ = ["SOLVERS", "check_solver", "chosen_solver", "needs_records"]

_NAMED: dict[str, Callable[[], Solver]] = {
    "descent": NoisyGradientDescent,
    "functional": FunctionalMechanism,
    "leader": FollowTheRegularizedLeader,
    "localization": IterativeLocalization,
    "objective": ObjectivePerturbation,
    "output": OutputPerturbation,
    "pnsgd": partial(PNSGD, batch=None),
    "preconditioned": PreconditionedDescent,
    "statistics": SufficientStatistics,
}
SOLVERS = ("auto", *_NAMED)
_WIDE = 1000
"""Beyond this many features a second moment has more entries than it is worth."""


def check_solver(asked: object) -> None:
    """Refuse what is no solver, with the name or the call that was meant."""
    if isinstance(asked, Solver) or (isinstance(asked, str) and asked in SOLVERS):
        return
    everyone = f"choose one of {', '.join(map(repr, SOLVERS))}, or pass a solver of discreet.learning.convex"
    if isinstance(asked, type):
        hint = f"pass an instance, such as {asked.__name__}()" if issubclass(asked, Solver) else everyone
        raise InvalidArgument("solver", f"the class {asked.__name__}", hint)
    written = str(asked).lower().replace("_", "").replace(" ", "").replace("-", "")
    meant = next((name for name, make in _NAMED.items() if written in (name, _class_name(make))), None)
    if meant is None:
        others = {name.lower(): name for name in convex.__all__ if name not in ("Fitted", "Plan", "Solver")}
        if written in others:
            raise InvalidArgument("solver", asked, f"pass an instance: {others[written]}() of discreet.learning.convex")
        meant = next(iter(difflib.get_close_matches(written, SOLVERS, n=1)), None)
    raise InvalidArgument("solver", asked, everyone + (f"; did you mean {meant!r}?" if meant else ""))


def _class_name(make: Callable[[], Solver]) -> str:
    return type(make()).__name__.lower()


def needs_records(asked: object, features: int, goal: Goal) -> bool:
    """Whether the solver that `chosen_solver` would take has to know the number of records."""
    if isinstance(asked, Solver):
        return asked.needs_records
    if asked != "auto":
        return _NAMED[str(asked)]().needs_records
    return features > _WIDE and not goal.is_pure


def chosen_solver(
    asked: object, facts: Facts, goal: Goal, *, automatic_alpha: bool
) -> tuple[Solver, Facts, tuple[str, ...]]:
    """The solver that was asked for or the one that suits, the facts with a penalty filled in, and why."""
    if automatic_alpha:
        facts = replace(facts, alpha=1e-3)
    if isinstance(asked, Solver):
        return asked, facts, ()
    if asked != "auto":
        return _NAMED[str(asked)](), facts, ()
    return _suited(facts, goal)


def _suited(facts: Facts, goal: Goal) -> tuple[Solver, Facts, tuple[str, ...]]:
    """By the benchmarks of all solvers on real data (docs/benchmarks.md), from public quantities alone."""
    if goal.is_pure:
        return ObjectivePerturbation(), facts, ("objective perturbation, because delta = 0 rules Gaussian noise out",)
    if facts.features > _WIDE:
        return NoisyGradientDescent(), facts, (f"gradient descent, because there are more than {_WIDE} features",)
    return PreconditionedDescent(), facts, ("preconditioned descent, the best of the solvers on real data",)
