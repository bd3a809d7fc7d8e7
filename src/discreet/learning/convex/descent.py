r"""Noisy projected gradient descent on all the data, releasing the average or the last iterate.

    w_{t+1} = Pi_K[w_t - eta (sum of gradients + alpha w_t + noise_t)],   K = ball of the radius,

Every noisy gradient is a Gaussian release of the same ratio mu / sqrt(steps), so that the run as a whole is mu-GDP; the
average of the iterates and everything else computed from them is post-processing [Bassily et al. 2014, Thm 2.4; the
accounting here is exact instead]. With alpha > 0 and hidden iterates the last one costs less: `last_iterate` uses that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.arguments import count, positive
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.progress import shown
from discreet.learning.report import Release
from discreet.mechanisms.gaussian import Gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.goal import Goal
    from discreet.learning.problem import Facts, Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["NoisyGradientDescent", "projected"]


def projected(weights: Reals, radius: float) -> Reals:
    """The nearest point of the ball of this radius around the origin."""
    size = float(np.linalg.norm(weights))
    return weights if size <= radius else weights * (radius / size)


@dataclass(frozen=True)
class NoisyGradientDescent(Solver):
    """Full-batch noisy gradient descent on a ball, the average of the iterates released."""

    radius: float = 10.0
    steps: int | None = None
    name: ClassVar[str] = "noisy gradient descent"
    theorem: ClassVar[str] = "composition of Gaussian mechanisms [Dong et al. 2022, Cor. 3.3]"

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        if self.steps is not None:
            count("steps", self.steps, least=1)

    def plan(self, facts: Facts, goal: Goal) -> DescentPlan:
        """Noise for `steps` gradients of equal price; by default as many steps as the theorem suggests, up to 100."""
        records = facts.needed_records("gradient descent needs it for its step size")
        # beyond T = (n mu)^2 / d the noise, no longer the number of steps, limits the average iterate
        suggested = math.ceil((records * goal.gaussian) ** 2 / facts.dimension)
        steps = self.steps or max(5, min(100, suggested))
        return DescentPlan(facts=facts, radius=self.radius, steps=steps, ratio=goal.gaussian / math.sqrt(steps))


@dataclass(frozen=True)
class DescentPlan(Plan):
    """`steps` noisy gradients, each of ratio sensitivity / noise = `ratio`."""

    facts: Facts
    radius: float
    steps: int
    ratio: float

    @cached_property
    def mechanism(self) -> Gaussian:
        """The noise on one gradient, in its steps."""
        return Gaussian(
            noise_multiplier=1 / self.ratio,
            sensitivity=self.facts.gradient_sensitivity,
            dimension=self.facts.dimension,
            adjacency=self.facts.adjacency,
        )

    @property
    def releases(self) -> tuple[Release, ...]:
        what = f"{self.steps} sums of gradients, each of l2 sensitivity {self.facts.lipschitz * self.facts.changes:.4g}"
        cost: Cost = self.steps * self.mechanism.cost
        return (Release(what, cost, NoisyGradientDescent.theorem),)

    @property
    def noise(self) -> dict[str, float]:
        return {"gradient": math.sqrt(self.mechanism.variance) * self.facts.gradient_step}

    @property
    def step(self) -> float:
        """eta: 1 / smoothness of the whole sum, or what the noise permits if that is less."""
        records = self.facts.needed_records("the step size depends on it")
        smooth = self.facts.smoothness * records + self.facts.alpha
        size = math.hypot(self.facts.lipschitz * records, self.noise["gradient"] * math.sqrt(self.facts.dimension))
        return min(1 / smooth, 2 * self.radius / (size * math.sqrt(self.steps)))

    @property
    def choices(self) -> tuple[str, ...]:
        return (f"{self.steps} steps of size {self.step:.4g} in a ball of radius {self.radius:g}",)

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        self.check(problem)
        weights, total = np.zeros(self.facts.shape), np.zeros(self.facts.shape)
        for _ in shown(range(self.steps), "gradient descent", verbose=verbose):
            noisy = self.mechanism.release(problem.gradient_steps(weights), generator=generator)
            gradient = noisy * self.facts.gradient_step + self.facts.alpha * weights
            weights = projected(weights - self.step * gradient, self.radius)
            total += weights
        return Fitted(total / self.steps, self)
