r"""Objective perturbation: the minimiser of the objective with a random linear term, released.

    w = argmin  sum_i l(x_i . w, y_i) + (ridge / 2) ||w||^2 + <b, w>,       b ~ N(0, sigma^2 I), or Laplace noise.

For every b there is one w and for every w one b, so that w has a density, and adding one record changes it by a shift
of b by the record's gradient and by a determinant [Chaudhuri et al. 2011; Kifer et al. 2012]. For losses of one margin
that is mu-Gaussian privacy with mu little above L / sigma, as long as the ridge is not much smaller than the curvature
of one record divided by mu; `tilted.py` states it for all losses. With Laplace noise epsilon = c + (l1 norm of the
change of the gradient) / scale, c = ln det(I + (R^2 / ridge) C) at most (`Loss.log_determinant`). Proofs:
docs/proofs/objective.md.

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

from discreet.arguments import count, positive, unit_fraction
from discreet.errors import InvalidArgument
from discreet.learning.convex.minimum import Objective, fair_gamma, minimised
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.convex.tilted import Shape, largest_ratio, profile_cost, ratio_for
from discreet.learning.goal import Goal
from discreet.learning.report import Release
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sensitivity import root_above
from discreet.noise import rounded_gaussian, rounded_laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.problem import Facts, Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["ObjectivePerturbation"]

_PART = 0.002
"""The share of mu^2 for the noise that covers the distance to the minimum."""
_BOX_PART = 0.01
"""The share of epsilon and delta for it, where there is no mu."""
_FINE_GAUSSIAN, _FINE_LAPLACE = 28, 38
"""Steps of b, in powers of two, to its scale: as fine as the exact samplers go."""
_MOST = 500.0
"""A larger epsilon is met with noise for this one; e to its powers is still a float."""
_LEAST_RATIO = 0.05
"""Of what the noise may take of mu; less is refused, as a larger ridge would be far better."""
_UP = 1 + 1e-12


@dataclass(frozen=True)
class ObjectivePerturbation(Solver):
    """The minimiser of a randomly tilted objective; `share` says how large the ridge must be.

    With the curvature h R^2 of one record, the ridge is at least h R^2 / (share mu): the more, the less the determinant
    costs. For pure epsilon `share` is the part of epsilon that it costs. By default it is 0.45 where slopes keep their
    sign, 0.25 where they do not, and 0.03 for pure epsilon, where noise is larger. A larger `alpha` of the facts costs
    less. Needs no number of records.

    >>> from discreet.learning import Facts, Goal, Logistic
    >>> facts = Facts(loss=Logistic(), features=3, row_norm=1.0)
    >>> plan = ObjectivePerturbation().plan(facts, Goal(epsilon=1.0, delta=1e-6))
    >>> round(plan.ridge, 3), round(plan.noise["linear term"], 2)
    (2.349, 4.35)
    """

    share: float | None = None
    gamma: float | None = None
    name: ClassVar[str] = "objective perturbation"
    theorem: ClassVar[str] = (
        "objective perturbation (docs/proofs/objective.md) [Redberg et al. 2023; Iyengar et al. 2019]"
    )

    def __post_init__(self) -> None:
        if self.share is not None:
            unit_fraction("share", self.share)
        if self.gamma is not None:
            positive("gamma", self.gamma)

    def plan(self, facts: Facts, goal: Goal) -> ObjectivePlan:
        """Ridge and noise for the goal, from public facts."""
        if facts.adjacency != goal.adjacency:
            raise InvalidArgument("goal", goal, f"its adjacency is not that of the facts, {facts.adjacency!r}")
        shape = Shape.of(facts.loss)
        least = fair_gamma(facts)
        if self.gamma is not None and self.gamma < least:
            raise InvalidArgument("gamma", self.gamma, f"a gradient can be proved small down to {least:.3g}; pass more")
        if goal.epsilon is not None and goal.epsilon > _MOST:
            goal = Goal(epsilon=_MOST, delta=goal.delta, adjacency=goal.adjacency)
        accuracy = self.gamma or least
        if goal.is_pure:
            return self._pure(facts, goal, accuracy)
        if shape.is_line or goal.epsilon is None:
            return self._gaussian(facts, goal, shape, accuracy)
        return self._by_profile(facts, goal, shape, accuracy)

    def _pure(self, facts: Facts, goal: Goal, accuracy: float) -> ObjectivePlan:
        rest, main = goal.carve(_BOX_PART)
        assert main.epsilon is not None
        ridge = _ridge_for(facts, (self.share or 0.03) * main.epsilon)
        offset = _offset_at(facts, ridge)
        ratio = (main.epsilon - offset) / facts.changes
        return ObjectivePlan(facts, ridge, offset, ratio, main.cost, rest, accuracy)

    def _gaussian(self, facts: Facts, goal: Goal, shape: Shape, accuracy: float) -> ObjectivePlan:
        rest, main = (Goal(mu=part.gaussian, adjacency=goal.adjacency) for part in goal.divided(_PART, 1 - _PART))
        one = main.gaussian / facts.changes
        ridge = _ridge_for(facts, math.log1p((self.share or (0.45 if shape.corners == 1 else 0.25)) * one))
        offset = _offset_at(facts, ridge)
        ratio = largest_ratio(one, offset=offset, shape=shape)
        if ratio < _LEAST_RATIO * one:
            raise InvalidArgument(
                "share", self.share, "at so small a ridge the determinant alone costs the whole goal; pass at most 0.5"
            )
        return ObjectivePlan(facts, ridge, offset, ratio, main.cost, rest, accuracy)

    def _by_profile(self, facts: Facts, goal: Goal, shape: Shape, accuracy: float) -> ObjectivePlan:
        """Slopes in several directions: the profile of (epsilon, delta) is much better than its Gaussian privacy."""
        rest, main = goal.carve(_BOX_PART)
        assert main.epsilon is not None
        ridge = _ridge_for(facts, min(math.log1p((self.share or 0.25) * main.gaussian), 0.9 * main.epsilon))
        offset = _offset_at(facts, ridge)
        box, corners = (main.epsilon, main.delta), shape.corners
        ratio = ratio_for(*box, corners=corners, offset=offset, changes=facts.changes)
        cost = profile_cost(*box, ratio=ratio, corners=corners, offset=offset, adjacency=facts.adjacency)
        return ObjectivePlan(facts, ridge, offset, ratio, cost, rest, accuracy)

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
        rest, main = Goal(epsilon=epsilon, delta=delta).divided(_PART, 1 - _PART)
        one = main.gaussian / 2
        offset = min(math.log1p((self.share or 0.25) * one), _MOST_OFFSET)
        ratio = largest_ratio(one, offset=offset, shape=Shape(corners=2, is_line=True))
        if ratio < _LEAST_RATIO * one:
            raise InvalidArgument("share", self.share, "at so small a ridge there is no bound; pass at most 0.5")
        ridge, sigma = smoothness / math.expm1(offset), lipschitz / ratio
        gamma = (self.gamma or lipschitz * 2.0**-20) + sigma * math.sqrt(d) * 2.0**-_FINE_GAUSSIAN
        size = 2 * gamma / ridge / rest.gaussian * 1.001
        return (ridge * radius**2 / 2 + d * sigma**2 / ridge) / n + lipschitz * size * math.sqrt(d)


_MOST_OFFSET = 1.0
"""The determinant may cost this much at most: a smaller ridge would gain nothing."""


def _offset_at(facts: Facts, ridge: float) -> float:
    """What the determinant costs at this ridge."""
    return facts.loss.log_determinant(facts.row_norm**2 / ridge * _UP) * _UP


def _ridge_for(facts: Facts, offset: float) -> float:
    """The ridge at which the determinant costs `offset`, or that of the facts if it is larger."""
    square, offset = facts.row_norm**2, min(offset, _MOST_OFFSET)

    def excess(log_ridge: float) -> float:
        return facts.loss.log_determinant(square / math.exp(log_ridge)) - offset

    size = math.log(square * facts.loss.smoothness * facts.loss.outputs / offset)
    return max(facts.alpha, math.exp(float(brentq(excess, size - 60, size + 60, xtol=1e-12))))


@dataclass(frozen=True)
class ObjectivePlan(Plan):
    """A ridge, a linear term of known scale, its cost, and the accuracy to which the minimum is found.

    `ratio` is the gradient of one record divided by the scale of b: in l2 for Gaussian noise, in l1 for Laplace noise.
    """

    facts: Facts
    ridge: float
    offset: float
    ratio: float
    tilted: Cost
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
        return (
            Release(
                f"the minimiser of the objective with a random linear term of scale {self.scale:.4g}",
                self.tilted,
                f"{ObjectivePerturbation.theorem}; a determinant of at most e^{self.offset:.4g} included",
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
