r"""Noisy projected gradient descent on all the data, releasing the average or the last iterate.

    w_{t+1} = Pi_K[w_t - eta (sum of gradients + alpha w_t + noise_t)],   K = ball of the radius,

Every noisy gradient is a Gaussian release of the same ratio mu / sqrt(steps), so that the run as a whole is mu-GDP; the
average of the iterates and everything else computed from them is post-processing [Bassily et al. 2014]. How good the
average is, for a mean loss of Lipschitz constant L and smoothness beta and noise of variance v on its gradient
(all coordinates together), says one of two theorems for T steps from the centre of the ball of radius R:

    eta = R / sqrt((L^2 + v) T):              excess <= R sqrt((L^2 + v) / T)                [Bubeck 2015, Thm 6.1]
    eta = 1 / (beta + sqrt(v T) / R):         excess <= beta R^2 / (2 T) + R sqrt(v / T)     [Bubeck 2015, Thm 6.3]

With v = T d (changes L / (n mu))^2 both have a term R L sqrt(d) changes / (n mu), which more steps cannot reduce, and
one that they can. The plan takes the step of the smaller bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.arguments import count, one_of, positive
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.goal import Goal
from discreet.learning.progress import shown
from discreet.learning.report import Release
from discreet.mechanisms.gaussian import Gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
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
    """Full-batch noisy gradient descent on a ball, the average of the iterates released.

    `iterate="last"` hides all iterates but the last, which then costs less the stronger the penalty alpha pulls: the
    noise of late steps covers what early ones revealed. It is `MultiEpochPNSGD` with all records in one batch.

    >>> from discreet.learning import Facts, Logistic
    >>> facts = Facts(loss=Logistic(), features=5, row_norm=1.0, records=1000, alpha=100.0, adjacency="replace-one")
    >>> goal = Goal(mu=0.5, adjacency="replace-one")
    >>> noise = [NoisyGradientDescent(steps=200, iterate=one).plan(facts, goal).noise for one in ("average", "last")]
    >>> round(noise[0]["gradient"] / (1000 * noise[1]["gradient"]), 1)  # of the sum, and of the mean
    2.7
    """

    radius: float = 10.0
    steps: int | None = None
    iterate: str = "average"
    name: ClassVar[str] = "noisy gradient descent"
    theorem: ClassVar[str] = "composition of Gaussian mechanisms [Dong et al. 2022, Cor. 3.3]"
    needs_records: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        if self.steps is not None:
            count("steps", self.steps, least=1)
        one_of("iterate", self.iterate, ["average", "last"])

    def plan(self, facts: Facts, goal: Goal) -> Plan:
        """Noise for `steps` gradients of equal price; by default as many steps as the theorem suggests, up to 100."""
        records = facts.needed_records("gradient descent needs it for its step size")
        if self.iterate == "last":
            from discreet.learning.convex.multi_epoch import MultiEpochPNSGD

            return MultiEpochPNSGD(radius=self.radius, batch=records, epochs=self.steps or 100).plan(facts, goal)
        # beyond T = (n mu)^2 / d the noise, no longer the number of steps, limits the average iterate
        suggested = math.ceil((records * goal.gaussian / facts.changes) ** 2 / facts.dimension)
        steps = self.steps or max(5, min(100, suggested))
        return DescentPlan(facts=facts, radius=self.radius, steps=steps, ratio=goal.gaussian / math.sqrt(steps))

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

        The smaller of the two theorems above; without a smoothness, of the first. Beside it stands the bound of the
        sources, 8 L R sqrt(d log(1/delta)) / (epsilon n), for T = n^2 and noise that is not calibrated.
        """
        n, d = count("n", n, least=1), count("d", d, least=1)
        mu = Goal(epsilon=epsilon, delta=delta).gaussian
        steps = self.steps or max(5, min(100, math.ceil((n * mu / 2) ** 2 / d)))
        deviation = 2 * lipschitz * math.sqrt(steps * d) / (n * mu)
        return min(_bounds(lipschitz, smoothness or math.inf, deviation, radius, steps))


def _bounds(lipschitz: float, smoothness: float, deviation: float, radius: float, steps: int) -> tuple[float, float]:
    """The two theorems, for noise of this deviation on the whole gradient of a mean loss."""
    return (
        radius * math.hypot(lipschitz, deviation) / math.sqrt(steps),
        smoothness * radius**2 / (2 * steps) + radius * deviation / math.sqrt(steps),
    )


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

    @cached_property
    def _constants(self) -> tuple[float, float, float]:
        """Lipschitz constant, smoothness and deviation of the noise, all of the sum."""
        records, alpha = self.facts.needed_records("the step size depends on it"), self.facts.alpha
        deviation = self.noise["gradient"] * math.sqrt(self.facts.dimension)
        return self.facts.lipschitz * records + alpha * self.radius, self.facts.smoothness * records + alpha, deviation

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the second theorem promises more."""
        rough, smooth = _bounds(*self._constants, self.radius, self.steps)
        return smooth < rough

    @cached_property
    def step(self) -> float:
        """eta, by the theorem that promises more."""
        lipschitz, smoothness, deviation = self._constants
        if self.is_smooth:
            return 1 / (smoothness + deviation * math.sqrt(self.steps) / self.radius)
        return self.radius / (math.hypot(lipschitz, deviation) * math.sqrt(self.steps))

    @property
    def choices(self) -> tuple[str, ...]:
        return (f"{self.steps} steps of size {self.step:.4g} in a ball of radius {self.radius:g}",)

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        self.check(problem)
        weights, total = np.zeros(self.facts.shape), np.zeros(self.facts.shape)
        for _ in shown(range(self.steps), "gradient descent", verbose=verbose):
            noisy = self.mechanism.release(problem.gradient_steps(weights), generator=generator)
            gradient = noisy * self.facts.gradient_step + self.facts.alpha * weights
            ahead = projected(weights - self.step * gradient, self.radius)
            total += ahead if self.is_smooth else weights  # the theorems differ in which iterates are averaged
            weights = ahead
        return Fitted(total / self.steps, self)
