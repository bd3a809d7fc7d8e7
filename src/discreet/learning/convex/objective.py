r"""Objective perturbation: the minimiser of the objective with a random linear term, released.

    w = argmin  sum_i l(x_i . w, y_i) + (ridge / 2) ||w||^2 + <b, w>,       b ~ N(0, sigma^2 I), or Laplace noise.

For every b there is one w and for every w one b, so that w has a density, and adding one record changes it by a shift
of b by the record's gradient and by a determinant [Chaudhuri et al. 2011; Kifer et al. 2012]. Let all slopes of a
target lie in the hull of 0 and k points of norm at most L / R (`Loss.corners`), let m = L / sigma, H_m the profile of
m-Gaussian privacy, and c = ln det(I + (R^2 / ridge) C) at most (`Loss.log_determinant`). Then for epsilon >= c

    delta(epsilon) <= k H_m(epsilon - c)                                         add-remove,
    delta(epsilon) <= min over e of k H_m(e) + e^{c+e} k H_m(epsilon - c - e)    replace-one,

and with Laplace noise epsilon = c + (l1 norm of the change of the gradient) / scale. [Redberg et al. 2023] is the case
k = 2; for logistic regression and hinges k = 1. Proofs: docs/proofs/objective.md.

The computer finds w to a proved ||gradient|| <= gamma, the rounding of b to its lattice included, which puts it within
gamma / ridge of the minimiser; noise for the sensitivity 2 gamma / ridge covers that [Iyengar et al. 2019], and puts
what is released on a lattice with exact noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.optimize import brentq

from discreet.accounting.cost import Cost
from discreet.accounting.gaussian_dp import delta_bounds
from discreet.arguments import count, positive, unit_fraction
from discreet.errors import InvalidArgument
from discreet.learning.convex.minimum import Objective, fair_gamma, minimised
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.goal import Goal
from discreet.learning.report import Release
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sensitivity import root_above
from discreet.noise import rounded_gaussian, rounded_laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.problem import Facts, Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["ObjectivePerturbation", "profile"]

_PART = 0.01
"""The share of epsilon and delta for the noise that covers the distance to the minimum."""
_FINE_GAUSSIAN, _FINE_LAPLACE = 28, 38
"""Steps of b, in powers of two, to its scale: as fine as the exact samplers go."""
_MOST = 500.0
"""A larger epsilon is met with noise for this one; e to its powers is still a float."""
_UP = 1 + 1e-12


def profile(epsilon: float, *, ratio: float, corners: int, offset: float, changes: int = 1) -> float:
    """delta(epsilon) above, certified; `ratio` is m, `offset` c, `changes` 1 for add-remove and 2 for replace-one.

    >>> profile(1.0, ratio=0.25, corners=1, offset=0.1) < 1e-4
    True
    """
    left = epsilon - offset
    if left < 0:
        return 1.0
    if changes == 1:
        return min(1.0, corners * delta_bounds(ratio, left)[1])

    def whole(first: float) -> float:
        near, far = delta_bounds(ratio, first)[1], delta_bounds(ratio, left - first)[1]
        return corners * (near + math.exp(offset + first) * far) * _UP

    # any split is valid; near the middle is best, moved towards the first by what the factor e^first costs
    return min(1.0, *(whole(left * share) for share in np.linspace(0.4, 0.6, 21).tolist()))


def _ratio_for(epsilon: float, delta: float, *, corners: int, offset: float, changes: int) -> float:
    """The largest m, to a relative 1e-9, whose profile meets (epsilon, delta)."""

    def excess(log_ratio: float) -> float:
        value = profile(epsilon, ratio=math.exp(log_ratio), corners=corners, offset=offset, changes=changes)
        return math.log(max(value, 1e-300) / delta)

    found = math.exp(float(brentq(excess, math.log(1e-6), math.log(1e3), xtol=1e-10)))
    while profile(epsilon, ratio=found, corners=corners, offset=offset, changes=changes) > delta:
        found *= 1 - 1e-10
    return found


@dataclass(frozen=True)
class ObjectivePerturbation(Solver):
    """The minimiser of a randomly tilted objective; `share` of epsilon is what the determinant may cost.

    The share decides the least ridge: c = share * epsilon at a ridge of about smoothness / (share * epsilon). A larger
    `alpha` of the facts costs less. By default it is 0.1, and 0.03 for pure epsilon, where noise is larger. Needs no
    number of records.

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=3, row_norm=1.0)
    >>> plan = ObjectivePerturbation().plan(facts, Goal(epsilon=1.0, delta=1e-6))
    >>> round(plan.ridge, 3), round(plan.noise["linear term"], 2)
    (2.402, 4.7)
    """

    share: float | None = None
    gamma: float | None = None
    name: ClassVar[str] = "objective perturbation"
    theorem: ClassVar[str] = "objective perturbation [Redberg et al. 2023; Iyengar et al. 2019]"

    def __post_init__(self) -> None:
        if self.share is not None:
            unit_fraction("share", self.share)
        if self.gamma is not None:
            positive("gamma", self.gamma)

    def plan(self, facts: Facts, goal: Goal) -> ObjectivePlan:
        """Ridge and noise for the goal, from public facts; refuses goals in mu, which no profile of this kind meets."""
        if goal.epsilon is None:
            raise InvalidArgument(
                "goal", goal, "objective perturbation meets a goal in epsilon and delta; use another solver for mu"
            )
        if facts.adjacency != goal.adjacency:
            raise InvalidArgument("goal", goal, f"its adjacency is not that of the facts, {facts.adjacency!r}")
        corners = facts.loss.corners
        least = fair_gamma(facts)
        if self.gamma is not None and self.gamma < least:
            raise InvalidArgument("gamma", self.gamma, f"a gradient can be proved small down to {least:.3g}; pass more")
        epsilon, delta = min(goal.epsilon, _MOST) * (1 - _PART), goal.delta * (1 - _PART)
        share = self.share if self.share is not None else (0.03 if goal.is_pure else 0.1)
        ridge = max(facts.alpha, _ridge_for(facts, min(share * epsilon, 1.0)))  # less ridge would gain nothing
        offset = facts.loss.log_determinant(facts.row_norm**2 / ridge * _UP) * _UP
        if goal.is_pure:
            ratio = (epsilon - offset) / facts.changes
        else:
            ratio = _ratio_for(epsilon, delta, corners=corners, offset=offset, changes=facts.changes)
        return ObjectivePlan(
            facts=facts,
            ridge=ridge,
            offset=offset,
            ratio=ratio,
            box=(epsilon, delta),
            rest=Goal(epsilon=min(goal.epsilon, _MOST) * _PART, delta=goal.delta * _PART, adjacency=goal.adjacency),
            accuracy=self.gamma or least,
        )

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

        Against the best weights of norm at most r = `radius`, for losses of one output with this smoothness:

            (ridge r^2 / 2 + d sigma^2 / ridge) / n,       and lipschitz times the size of the noise on the weights.

        The first part holds because the tilted objective is lower at its minimum than at the ridge's, and both are
        within ||b|| / ridge of each other [Kifer et al. 2012].
        """
        n, d = count("n", n, least=1), count("d", d, least=1)
        if smoothness is None:
            raise InvalidArgument("smoothness", None, "this solver is for smooth losses: pass their constant")
        goal = Goal(epsilon=epsilon, delta=delta)
        inner, offset = epsilon * (1 - _PART), min((self.share or 0.1) * epsilon * (1 - _PART), 1.0)
        ratio = _ratio_for(inner, delta * (1 - _PART), corners=2, offset=offset, changes=2)
        ridge, sigma = smoothness / math.expm1(offset), lipschitz / ratio
        gamma = (self.gamma or lipschitz * 2.0**-20) + sigma * math.sqrt(d) * 2.0**-_FINE_GAUSSIAN
        rest = 2 * gamma / ridge / goal.share(_PART).gaussian * 1.001
        return (ridge * radius**2 / 2 + d * sigma**2 / ridge) / n + lipschitz * rest * math.sqrt(d)


def _ridge_for(facts: Facts, offset: float) -> float:
    """The ridge at which the determinant costs `offset`."""
    square = facts.row_norm**2

    def excess(log_ridge: float) -> float:
        return facts.loss.log_determinant(square / math.exp(log_ridge)) - offset

    size = math.log(square * facts.loss.smoothness * facts.loss.outputs / offset)
    return math.exp(float(brentq(excess, size - 60, size + 60, xtol=1e-12)))


@dataclass(frozen=True)
class ObjectivePlan(Plan):
    """A ridge, a linear term of known scale, and the accuracy to which the minimum is found.

    `ratio` is the gradient of one record divided by the scale of b: in l2 for Gaussian noise, in l1 for Laplace noise.
    """

    facts: Facts
    ridge: float
    offset: float
    ratio: float
    box: tuple[float, float]
    rest: Goal
    accuracy: float

    @property
    def scale(self) -> float:
        """The scale of b: its standard deviation, or that of Laplace noise."""
        if not self.rest.is_pure:
            return self.facts.lipschitz / self.ratio * _UP
        # l1 norms: sqrt(features) for the row, sqrt(outputs) for the slope
        return self.facts.lipschitz * float(root_above(self.facts.dimension)) / self.ratio * _UP

    @property
    def step(self) -> float:
        """b is rounded to whole multiples of this power of two."""
        fine = _FINE_LAPLACE if self.rest.is_pure else _FINE_GAUSSIAN
        return math.ldexp(1.0, math.frexp(self.scale)[1] - 1 - fine)

    @property
    def gamma(self) -> float:
        """The norm of the gradient of the objective with b before it was rounded."""
        return (self.accuracy + self.step * math.sqrt(self.facts.dimension) / 2) * _UP

    @cached_property
    def mechanism(self) -> Gaussian | Laplace:
        """The noise that covers the distance to the minimum."""
        far, dimension, adjacency = 2 * self.gamma / self.ridge * _UP, self.facts.dimension, self.facts.adjacency
        if self.rest.is_pure:
            assert self.rest.epsilon is not None
            return Laplace(epsilon=self.rest.epsilon, l2_sensitivity=far, dimension=dimension, adjacency=adjacency)
        return Gaussian(
            noise_multiplier=1 / self.rest.gaussian, sensitivity=far, dimension=dimension, adjacency=adjacency
        )

    @property
    def releases(self) -> tuple[Release, ...]:
        epsilon, delta = self.box
        return (
            Release(
                f"the minimiser of the objective with a random linear term of scale {self.scale:.4g}",
                Cost.approximate(epsilon, delta, adjacency=self.facts.adjacency),
                f"{ObjectivePerturbation.theorem}; the determinant costs {self.offset:.4g} of it",
            ),
            Release(
                f"its distance, at most {self.gamma / self.ridge:.3g}, from what was computed",
                self.mechanism.cost,
                "noise for twice that distance",
            ),
        )

    @property
    def noise(self) -> dict[str, float]:
        return {"linear term": self.scale, "weights": math.sqrt(self.mechanism.variance)}

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"the loss is convex with slopes up to {self.facts.loss.lipschitz:.4g}",
            f"its curvature is at most {self.facts.loss.smoothness:.4g}",
            f"rows are shortened to the norm {self.facts.row_norm:.4g}",
            f"the minimum is found to a gradient of norm {self.accuracy:.3g}; this is proved before the release",
        )

    @property
    def choices(self) -> tuple[str, ...]:
        return (f"a penalty of {self.ridge:.4g} / 2 times the squared norm of the weights",)

    def tilt(self, generator: Generator | None = None) -> Reals:
        """b on its lattice."""
        steps = Fraction(self.scale) / Fraction(self.step)
        draw = rounded_laplace if self.rest.is_pure else rounded_gaussian
        return np.ldexp(
            draw(steps, self.facts.shape, generator=generator).astype(np.float64), math.frexp(self.step)[1] - 1
        )

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        del verbose
        self.check(problem)
        objective = Objective(problem, self.ridge, self.tilt(generator))
        weights = minimised(objective, gamma=self.accuracy)
        return Fitted(self.mechanism.release(weights, generator=generator), self)
