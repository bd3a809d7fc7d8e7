r"""Noisy gradient descent in coordinates that fit the data: a noisy second moment once, then few preconditioned steps.

    A   = sum x x^T + noise                                        one Gaussian release, `share` of mu^2,
    g_t = sum of slopes, shortened to `clip`, times rows + noise   `steps` Gaussian releases of the rest,
    w   <- w - M^{-1} (g_t + alpha w),      M = h A+ + ridge,      A+ the nearest positive semidefinite matrix,

and the mean of the last half of the iterates is released; [Ganesh et al. 2023] use noisy curvature in this way. h is
the usual curvature of the loss; the features' second moment serves every class of several. The ridge is what the noise
calls for, sd of g_t times sqrt(dimension) / radius: noise alone moves the weights by about the radius in one step. In
directions in which the data say less than that, M is the ridge and the steps are plain gradient steps.

Everything is a function of Gaussian releases of exact sums, whose ratios add up in squares to the goal's: no convexity
is needed for the cost, and that is why slopes may be shortened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.arguments import count, positive, unit_fraction
from discreet.errors import InvalidArgument
from discreet.learning.convex.moments import SecondMoment, noise_for
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.progress import shown
from discreet.learning.report import Release
from discreet.learning.rows import PARTS
from discreet.mechanisms.gaussian import Gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.goal import Goal
    from discreet.learning.problem import Facts, Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["PreconditionedDescent"]


@dataclass(frozen=True)
class PreconditionedDescent(Solver):
    """Few noisy gradient steps, preconditioned by a noisy second moment of the rows.

    `share` of mu^2 buys the second moment, `clip` is the largest slope in units of the loss's Lipschitz constant (1 for
    one output, 1/2 for several classes), and `radius` about how far the noise of one step may move the
    weights (by default what the loss says, 1.5, or 0.75 for Poisson). Needs no number of records, and delta > 0.

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=3, row_norm=1.0)
    >>> plan = PreconditionedDescent().plan(facts, Goal(epsilon=1.0, delta=1e-6))
    >>> plan.steps, round(plan.cost.epsilon(1e-6), 6)
    (10, 1.0)
    """

    steps: int = 10
    share: float = 0.05
    clip: float | None = None
    radius: float | None = None
    name: ClassVar[str] = "preconditioned descent"
    theorem: ClassVar[str] = "composition of Gaussian mechanisms [Dong et al. 2022, Cor. 3.3]"

    def __post_init__(self) -> None:
        count("steps", self.steps, least=1)
        unit_fraction("share", self.share)
        if self.radius is not None:
            positive("radius", self.radius)
        if self.clip is not None and positive("clip", self.clip) > 1:
            raise InvalidArgument("clip", self.clip, "slopes are at most 1 in these units: pass a number up to 1")

    def plan(self, facts: Facts, goal: Goal) -> PreconditionedPlan:
        """Noise for one second moment and `steps` gradients, together all of the goal."""
        if facts.adjacency != goal.adjacency:
            raise InvalidArgument("goal", goal, f"its adjacency is not that of the facts, {facts.adjacency!r}")
        if goal.is_pure:
            raise InvalidArgument("delta", goal.delta, "it needs delta > 0; use ObjectivePerturbation for pure epsilon")
        matrix, gradients = goal.divided(self.share, 1 - self.share)
        clip = self.clip if self.clip is not None else (1.0 if facts.loss.outputs == 1 else 0.5)
        return PreconditionedPlan(
            facts=facts,
            steps=self.steps,
            radius=facts.loss.usual_radius if self.radius is None else self.radius,
            bound=clip * facts.loss.lipschitz,
            moment=SecondMoment(facts.lattice, facts.features, matrix),
            each=gradients.divided(*[1 / self.steps] * self.steps)[0],
        )


@dataclass(frozen=True)
class PreconditionedPlan(Plan):
    """A release of the second moment and `steps` releases of gradients whose slopes are at most `bound`."""

    facts: Facts
    steps: int
    radius: float
    bound: float
    moment: SecondMoment
    each: Goal

    @cached_property
    def mechanism(self) -> Gaussian:
        """The noise on one gradient, in steps of `Rows.pull`."""
        sensitivity = Fraction(self.facts.changes * PARTS * self.facts.lattice.reach)
        noise = noise_for(self.each, l1=sensitivity, l2=sensitivity, dimension=self.facts.dimension)
        assert isinstance(noise, Gaussian)
        return noise

    @property
    def releases(self) -> tuple[Release, ...]:
        norm = self.facts.row_norm
        return (
            Release(
                f"the sum of x x^T of rows of norm at most {norm:.4g}",
                self.moment.cost,
                "the Gaussian mechanism on exact sums of products; one record adds ||x||^2 at most",
            ),
            Release(
                f"{self.steps} sums of gradients, each of l2 sensitivity {self.bound * norm * self.facts.changes:.4g}",
                self.steps * self.mechanism.cost,
                PreconditionedDescent.theorem,
            ),
        )

    @property
    def noise(self) -> dict[str, float]:
        one, beside = self.moment.deviations
        return {"squares": one, "products": beside, "gradient": math.sqrt(self.mechanism.variance) * self.gradient_step}

    @property
    def gradient_step(self) -> float:
        """What one step of a sum of gradients is worth."""
        return self.facts.lattice.step * self.bound / PARTS

    @property
    def curvature(self) -> float:
        """h."""
        return self.facts.loss.usual_curvature

    @property
    def ridge(self) -> float:
        """What is added to the second moment in every direction."""
        return self.noise["gradient"] * math.sqrt(self.facts.dimension) / self.radius + self.facts.alpha

    @property
    def choices(self) -> tuple[str, ...]:
        return (
            f"{self.steps} steps with slopes up to {self.bound:.4g} and a ridge of {self.ridge:.4g}",
            "the mean of the last half of the iterates",
        )

    def preconditioner(self, matrix: Reals) -> Reals:
        """M^{-1} for a noisy second moment; a function of it and of public numbers alone."""
        values, vectors = np.linalg.eigh(matrix)
        scaled = self.curvature * np.maximum(values, 0.0) + self.ridge
        return np.asarray((vectors / scaled) @ vectors.T)

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        self.check(problem)
        inverse = self.preconditioner(self.moment.release(problem.rows, generator=generator))
        loss, rows = self.facts.loss, problem.rows
        weights, total, kept = np.zeros(self.facts.shape), np.zeros(self.facts.shape), 0
        for step in shown(range(self.steps), "preconditioned descent", verbose=verbose):
            exact = rows.pull(loss.slopes(rows.margins(weights), problem.targets), bound=self.bound)
            noisy = np.asarray(self.mechanism.release(exact, generator=generator)) * self.gradient_step
            weights = weights - inverse @ (noisy + self.facts.alpha * weights)
            if 2 * (step + 1) > self.steps:
                total, kept = total + weights, kept + 1
        return Fitted(total / kept, self)
