r"""Output perturbation: the minimiser of a strongly convex objective, with noise for how far one record can move it.

    w = argmin  sum_i l(x_i . w, y_i) + (ridge / 2) ||w||^2 ,        released with Gaussian or Laplace noise.

One record more changes the gradient by at most L = lipschitz * row_norm, and the objective is ridge-strongly convex:
the minimiser moves by at most L / ridge, and by 2 L / ridge if a record is replaced [Chaudhuri et al. 2011]. The
computer finds it to a proved ||gradient|| <= gamma, so that what it found moves by at most

    (changes L + 2 gamma) / ridge,       changes = 1 for add-remove, 2 for replace-one.

The proof is at the end of docs/proofs/objective.md. How curved the loss is does not matter for the cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.arguments import count, positive
from discreet.errors import InvalidArgument
from discreet.learning.convex.minimum import Objective, fair_gamma, minimised
from discreet.learning.convex.moments import noise_for
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.goal import Goal
from discreet.learning.report import Release
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from discreet.learning.problem import Facts, Problem
    from discreet.mechanisms.gaussian import Gaussian
    from discreet.mechanisms.laplace import Laplace
    from discreet.noise import Generator

__all__ = ["OutputPerturbation"]


@dataclass(frozen=True)
class OutputPerturbation(Solver):
    """The minimiser with noise; the ridge is the least that keeps the noise within the `radius`, or alpha if larger.

    Noise of standard deviation s in every coordinate has a norm of about s sqrt(dimension), and s is proportional to
    1 / ridge. Needs no number of records; delta = 0 is allowed and gives Laplace noise.

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=4, row_norm=1.0)
    >>> plan = OutputPerturbation().plan(facts, Goal(epsilon=1.0, delta=1e-6))
    >>> round(plan.ridge, 3), round(plan.noise["weights"], 3)
    (8.449, 0.5)
    """

    radius: float = 1.0
    gamma: float | None = None
    name: ClassVar[str] = "output perturbation"
    theorem: ClassVar[str] = "output perturbation [Chaudhuri et al. 2011]"

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        if self.gamma is not None:
            positive("gamma", self.gamma)

    def plan(self, facts: Facts, goal: Goal) -> OutputPlan:
        """The ridge and the noise, from public facts."""
        if facts.adjacency != goal.adjacency:
            raise InvalidArgument("goal", goal, f"its adjacency is not that of the facts, {facts.adjacency!r}")
        least = fair_gamma(facts)
        if self.gamma is not None and self.gamma < least:
            raise InvalidArgument("gamma", self.gamma, f"a gradient can be proved small down to {least:.3g}; pass more")
        move, dimension = facts.changes * facts.lipschitz, facts.dimension
        if goal.is_pure:
            assert goal.epsilon is not None
            size = math.sqrt(2) * dimension * move / goal.epsilon
        else:
            size = math.sqrt(dimension) * move / goal.gaussian
        return OutputPlan(facts, goal, max(facts.alpha, size / self.radius), self.gamma or least)

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

        The ridge costs ridge r^2 / 2n against the best weights of norm r = `radius`, and noise z of mean zero with
        E ||z||^2 = rho^2, rho the solver's own radius, at most min(L rho, smoothness rho^2 / 2):

            min(L rho, smoothness rho^2 / 2) + L sqrt(d) r^2 / (n mu rho).
        """
        n, d = count("n", n, least=1), count("d", d, least=1)
        mu = Goal(epsilon=epsilon, delta=delta).gaussian
        rho = self.radius * (1 + 1e-5)  # the accuracy of the minimum and the lattice add less than that
        noise = min(lipschitz * rho, (smoothness or math.inf) * rho**2 / 2)
        return noise + lipschitz * math.sqrt(d) * radius**2 / (n * mu * self.radius)


@dataclass(frozen=True)
class OutputPlan(Plan):
    """A ridge, and the accuracy to which the minimum is found."""

    facts: Facts
    goal: Goal
    ridge: float
    gamma: float

    @property
    def sensitivity(self) -> Fraction:
        """How far one record moves what is computed, in l2."""
        exact = Fraction(self.facts.loss.lipschitz) * Fraction(self.facts.row_norm)
        return (self.facts.changes * exact + 2 * Fraction(self.gamma)) / Fraction(self.ridge)

    @cached_property
    def mechanism(self) -> Gaussian | Laplace:
        """The noise on the weights."""
        far, dimension = self.sensitivity, self.facts.dimension
        return noise_for(self.goal, l1=far * root_above(dimension), l2=far, dimension=dimension)

    @property
    def releases(self) -> tuple[Release, ...]:
        what = f"the minimiser, which one record moves by at most {float(self.sensitivity):.4g}"
        return (Release(what, self.mechanism.cost, OutputPerturbation.theorem),)

    @property
    def noise(self) -> dict[str, float]:
        return {"weights": math.sqrt(self.mechanism.variance)}

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"the loss is convex with slopes up to {self.facts.loss.lipschitz:.4g}",
            f"rows are shortened to the norm {self.facts.row_norm:.4g}",
            f"the minimum is found to a gradient of norm {self.gamma:.3g}; this is proved before the release",
        )

    @property
    def choices(self) -> tuple[str, ...]:
        return (f"a penalty of {self.ridge:.4g} / 2 times the squared norm of the weights",)

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        del verbose
        self.check(problem)
        weights = minimised(Objective(problem, self.ridge, np.zeros(self.facts.shape)), gamma=self.gamma)
        return Fitted(np.asarray(self.mechanism.release(weights, generator=generator)), self)
