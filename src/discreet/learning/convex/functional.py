r"""The functional mechanism: noise on the coefficients of the objective, which is then repaired and minimised.

[Zhang et al. 2012] write the objective as a polynomial in the weights and add noise to its coefficients. To second
order at zero a generalised linear model has

    sum of losses = const + g^T w + (c / 2) w^T (sum x x^T) w,      g = sum of (slope at margin 0) x,

exactly for squares; for the logistic loss this is the Taylor expansion log 2 + (1/2 - y) m + m^2 / 8, good for margins
of moderate size. A noisy quadratic form need not have a minimum. Here it always does: negative eigenvalues become zero,
and a ridge of the size of the noise, which is public, is added. So the problem that is solved is strongly convex with a
known constant, and ||w|| <= ||g|| / ridge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.arguments import count, positive, unit_fraction
from discreet.errors import InvalidArgument
from discreet.learning.convex.solver import Fitted, Solver
from discreet.learning.convex.statistics import QuadraticPlan, quadratic_facts
from discreet.learning.goal import Goal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.losses import Expansion
    from discreet.learning.problem import Facts, Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["FunctionalMechanism"]


@dataclass(frozen=True)
class FunctionalMechanism(Solver):
    """Noisy coefficients of the quadratic expansion at zero; `share` of the goal buys those of degree 2.

    `ridge` is the penalty in units of the noise's largest eigenvalue. The loss must have one output and an expansion:
    `Logistic`, `Squared` and `Poisson` (with a ceiling above 0) do. Fit for margins of moderate size.

    >>> rng = np.random.default_rng(5)
    >>> table = rng.uniform(-1, 1, (20_000, 2)) / 2
    >>> from discreet.learning import Facts, Goal, Logistic, Problem
    >>> facts = Facts(loss=Logistic(), features=2, row_norm=1.0)
    >>> plan = FunctionalMechanism().plan(facts, Goal(epsilon=1.0))
    >>> weights = plan.run(Problem.of(facts, table, table[:, 0] > 0)).weights
    >>> bool(weights[0] > 2 * abs(weights[1])), plan.cost.epsilon(0.0) <= 1.0
    (True, True)
    """

    share: float = 0.6
    ridge: float = 0.5
    name: ClassVar[str] = "functional mechanism"
    theorem: ClassVar[str] = "noise on the coefficients of the objective [Zhang et al. 2012]"

    def __post_init__(self) -> None:
        unit_fraction("share", self.share)
        positive("ridge", self.ridge)

    def plan(self, facts: Facts, goal: Goal) -> FunctionalPlan:
        """Noise on the coefficients of degree 1 and 2; needs no number of records."""
        if facts.loss.outputs != 1:
            raise InvalidArgument("loss", facts.loss.name, "the functional mechanism is for losses of one margin")
        expansion = facts.loss.expansion()
        if facts.adjacency != goal.adjacency:
            raise InvalidArgument("goal", goal, f"its adjacency is not that of the facts, {facts.adjacency!r}")
        return FunctionalPlan(facts, goal, self.share, expansion.slope, expansion=expansion, relative_ridge=self.ridge)

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
        r"""A bound on the expected excess of the mean quadratic expansion on n records, one of which may be replaced.

        Against the expansion's minimum, if that has norm at most r = `radius`, for |slope at 0| ||x|| <= `lipschitz`
        and curvature ||x||^2 <= `smoothness`, without alpha. For squares the expansion is the loss itself; for others
        what it leaves out comes on top. docs/solvers/functional-mechanism.md has the proof.
        """
        facts = quadratic_facts(d=d, lipschitz=lipschitz, smoothness=smoothness)
        plan = self.plan(facts, Goal(epsilon=epsilon, delta=delta, adjacency="replace-one"))
        total = plan.excess_above(positive("radius", radius), gain=0.25, size=plan.ridge, slope=1.0)
        return total / count("n", n, least=1)


@dataclass(frozen=True)
class FunctionalPlan(QuadraticPlan):
    """The noisy quadratic problem, and its minimum."""

    facts: Facts
    goal: Goal
    share: float
    bound: float
    expansion: Expansion
    relative_ridge: float

    @property
    def ridge(self) -> float:
        """The least eigenvalue of the problem that is solved, alpha not counted."""
        return self.relative_ridge * self.expansion.curvature * self.matrix.width

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (*super().assumptions, "the loss is replaced by its quadratic expansion at zero")

    @property
    def choices(self) -> tuple[str, ...]:
        return (
            f"{self.share:.0%} of the price for the coefficients of degree 2",
            f"a ridge of {self.ridge:.4g}, the size of the noise; negative eigenvalues become zero",
        )

    def repaired(self, matrix: Reals) -> Reals:
        """The noisy Hessian made positive definite: its eigenvalues are at least `ridge` + alpha."""
        values, vectors = np.linalg.eigh(matrix)
        sound = np.maximum(values, 0.0) + self.ridge + self.facts.alpha
        return np.asarray((vectors * sound) @ vectors.T)

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        del verbose
        self.check(problem)
        at_zero = self.facts.loss.slopes(np.zeros(len(problem)), problem.targets)
        matrix = self.matrix.release(problem.rows, generator=generator)
        gradient = self.vector.release(problem.rows, at_zero, generator=generator)
        hessian = self.repaired(self.expansion.curvature * matrix)
        return Fitted(np.asarray(np.linalg.solve(hessian, -gradient), dtype=np.float64), self)
