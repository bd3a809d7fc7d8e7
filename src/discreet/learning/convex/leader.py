r"""Follow the regularised leader on one pass of mini-batches, with noise that is correlated between steps (DP-FTRL).

A record takes part in one step, by a coin of its own. With S_t the sum of the gradients of steps 1..t, each at the
iterate of its step, and noise added,

    w_{t+1} = Pi_K[-eta (S_t + noise_t)],   K = ball of the radius,

and the average of the iterates is the result. Two ways to make the noise, both adaptive compositions of Gaussian
releases of exact sums, so that no sampling has to be trusted and every iterate may be seen [Kairouz et al. 2021]:

tree    Every node of a binary tree over the steps releases the sum of its steps; S_t is put together from at most
        log2(t) + 1 of them. A record is in one node of each level: mu^2 = levels ratio^2.
banded  Step t releases y_t = c_0 g_t + ... + c_{b-1} g_{t-b+1}, where 1 / sqrt(1 - x) = c_0 + c_1 x + ...; solving
        for the gradients and adding up are post-processing, and the noise of later steps cancels much of that
        of earlier ones [Denisov et al. 2022]. A record is in b of them: mu^2 = (c_0^2 + ... + c_{b-1}^2) ratio^2.

Coefficients are cut to 2^-10 parts, so that y_t is a whole number of steps; the lattice of the noise adds at most
sqrt(d) of its steps to a change, and that is in the cost: a change of c times the sensitivity costs (c + 2^-19 sqrt(d))
ratio at most.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.arguments import count, one_of, positive
from discreet.learning.convex.descent import projected
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.goal import Goal
from discreet.learning.problem import Problem
from discreet.learning.progress import shown
from discreet.learning.report import Release
from discreet.learning.rows import Rows
from discreet.mechanisms.gaussian import Gaussian
from discreet.noise import uniform_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.problem import Facts
    from discreet.noise import Generator

    Reals = NDArray[np.float64]
    Wholes = NDArray[np.int64]

__all__ = ["BandedPlan", "FollowTheRegularizedLeader", "LeaderPlan", "TreePlan", "coefficients"]

_CUT = 1 << 10
_ROUNDING = 2.0**-19


def coefficients(band: int) -> tuple[int, ...]:
    """c_0, ..., c_{band-1} of 1 / sqrt(1 - x) in 2^-10 parts, rounded down; c_0 is one."""
    exact, parts = 1.0, []
    for j in range(band):
        parts.append(int(exact * _CUT))
        exact *= (2 * j + 1) / (2 * j + 2)
    return tuple(parts)


@dataclass(frozen=True)
class FollowTheRegularizedLeader(Solver):
    """One pass of correlated noise; `noise` is "banded" (the default) or "tree"; needs no sampling assumption.

    >>> from discreet.learning import Facts, Logistic
    >>> facts = Facts(loss=Logistic(), features=10, row_norm=1.0, records=10_000)
    >>> plan = FollowTheRegularizedLeader(steps=64).plan(facts, Goal(epsilon=1.0, delta=1e-6))
    >>> plan.cost.epsilon(1e-6) <= 1.0
    True
    """

    radius: float = 10.0
    steps: int | None = None
    noise: str = "banded"
    band: int | None = None
    name: ClassVar[str] = "follow the regularised leader"
    theorem: ClassVar[str] = "adaptive composition of Gaussian mechanisms [Dong et al. 2022, Cor. 3.3]"
    needs_records: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        one_of("noise", self.noise, ["banded", "tree"])
        if self.steps is not None:
            count("steps", self.steps, least=1)
        if self.band is not None:
            count("band", self.band, least=1)

    def plan(self, facts: Facts, goal: Goal) -> LeaderPlan:
        """By default as many steps as balance the noise against the number of iterates, at most 256."""
        records = facts.needed_records("the number of steps and their size depend on it")
        return self._plan(facts, goal.gaussian, records)

    def _plan(self, facts: Facts, mu: float, records: int) -> LeaderPlan:
        steps = self.steps or max(1, min(256, records, math.ceil(records * mu / math.sqrt(facts.dimension))))
        if self.noise == "tree":
            return TreePlan(facts, self.radius, steps, mu / math.sqrt(steps.bit_length()))
        band = min(self.band or steps, steps)
        return BandedPlan(facts, self.radius, steps, mu / _size(band, facts.dimension) * (1 - 1e-12), band)

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
        """A bound on the expected excess risk over the distribution of n independent records, none of them seen twice.

        With mean gradients of norm at most G, the leader's regret is at most R^2/(2 eta) + eta T G^2; noise e_t moves
        w_{t+1} by eta |e_t| and costs G times that. The average iterate is as good as the average regret, and the best
        eta gives R sqrt(2 G (G + max E|e_t|) / T); batches by coins have one record at least, but for e^(-n/T).
        """
        del smoothness
        from discreet.learning.losses import Logistic
        from discreet.learning.problem import Facts

        facts = Facts(loss=Logistic(), features=d, row_norm=lipschitz, records=n)
        plan = self._plan(facts, Goal(epsilon=epsilon, delta=delta).gaussian, n)
        error = plan.prefix_deviation * math.sqrt(d) * lipschitz / plan.ratio / (n / plan.steps)
        # the sum of a step is a mean times n/T times a random factor of second moment at most 1 + T/n
        spread = math.sqrt(1 + plan.steps / n)
        empty = 2 * lipschitz * radius * math.exp(-n / plan.steps)
        return radius * math.sqrt(2 * lipschitz * spread * (lipschitz * spread + error) / plan.steps) + empty


@dataclass(frozen=True)
class LeaderPlan(Plan):
    """`steps` steps; every release has noise of 1 / `ratio` times the sensitivity of one gradient sum."""

    facts: Facts
    radius: float
    steps: int
    ratio: float

    @cached_property
    def mechanism(self) -> Gaussian:
        """The noise on one release, in steps of the gradient."""
        return Gaussian(
            noise_multiplier=1 / self.ratio,
            sensitivity=self.facts.gradient_sensitivity,
            dimension=self.facts.dimension,
            adjacency=self.facts.adjacency,
        )

    @property
    def noise(self) -> dict[str, float]:
        return {"release": math.sqrt(self.mechanism.variance) * self.facts.gradient_step}

    @property
    @abstractmethod
    def prefix_deviation(self) -> float:
        """The largest deviation of the noise on a coordinate of S_t, in units of the noise on a release."""

    @property
    def step(self) -> float:
        """eta, by the regret bound with the public number of records."""
        records = self.facts.needed_records("the step size depends on it")
        gradient = self.facts.lipschitz * records / self.steps
        error = self.noise["release"] * self.prefix_deviation * math.sqrt(self.facts.dimension)
        return self.radius / math.sqrt(2 * gradient * (gradient + error) * self.steps)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("every record takes part in one step, by a coin of its own",)

    @property
    def choices(self) -> tuple[str, ...]:
        return (f"{self.steps} steps, eta = {self.step:.4g}, in a ball of radius {self.radius:g}",)

    @abstractmethod
    def _leaders(self) -> _Leaders:
        """A fresh state of the noise."""

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        self.check(problem)
        place = uniform_integers(self.steps, size=max(1, len(problem)), generator=generator)[: len(problem)]
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(self.steps + 1))
        leaders = self._leaders()
        weights, total = np.zeros(self.facts.shape), np.zeros(self.facts.shape)
        for t in shown(range(self.steps), "follow the leader", verbose=verbose):
            chosen = order[ends[t] : ends[t + 1]]
            part = Problem(self.facts, Rows(problem.rows.lattice, problem.rows.steps[chosen]), problem.targets[chosen])
            total += weights
            prefix = leaders.after(part.gradient_steps(weights), self.mechanism, generator)
            penalty = self.facts.alpha / self.steps * total
            weights = projected(-self.step * (prefix * self.facts.gradient_step + penalty), self.radius)
        return Fitted(total / self.steps, self)


class _Leaders(ABC):
    """The noise between steps: takes the exact gradient of a step, gives the noisy sum of all."""

    @abstractmethod
    def after(self, gradient: Wholes, mechanism: Gaussian, generator: Generator | None) -> Reals:
        """S_t + noise_t in steps of the gradient, after one more step."""


@dataclass(frozen=True)
class TreePlan(LeaderPlan):
    """A binary tree of noisy sums."""

    @property
    def releases(self) -> tuple[Release, ...]:
        levels = self.steps.bit_length()
        what = f"sums of gradients over the nodes of a tree with {levels} levels, every record in one node of each"
        return (Release(what, levels * self.mechanism.cost, FollowTheRegularizedLeader.theorem),)

    @property
    def prefix_deviation(self) -> float:
        """A sum is put together from as many nodes as its number of steps has ones in binary."""
        most = max(self.steps.bit_count(), self.steps.bit_length() - 1)
        return math.sqrt(most)

    def _leaders(self) -> _Tree:
        return _Tree()


class _Tree(_Leaders):
    """The nodes that make up the steps so far, by level: exact, to be added to larger ones, and as released."""

    def __init__(self) -> None:
        self.steps = 0
        self.exact: dict[int, Wholes] = {}
        self.released: dict[int, Reals] = {}

    def after(self, gradient: Wholes, mechanism: Gaussian, generator: Generator | None) -> Reals:
        self.steps += 1
        level = (self.steps & -self.steps).bit_length() - 1  # this step completes a node of 2^level steps
        node = gradient.copy()
        for smaller in range(level):
            node += self.exact.pop(smaller)
            del self.released[smaller]
        self.exact[level] = node
        self.released[level] = mechanism.release(node, generator=generator)
        total: Reals = np.sum(list(self.released.values()), axis=0)
        return total


@dataclass(frozen=True)
class BandedPlan(LeaderPlan):
    """Sums of neighbouring gradients with the coefficients of a square root, `band` of them."""

    band: int

    @cached_property
    def mechanism(self) -> Gaussian:
        return Gaussian(
            noise_multiplier=1 / self.ratio,
            sensitivity=self.facts.gradient_sensitivity * _CUT,
            dimension=self.facts.dimension,
            adjacency=self.facts.adjacency,
        )

    @property
    def noise(self) -> dict[str, float]:
        return {"release": math.sqrt(self.mechanism.variance) * self.facts.gradient_step / _CUT}

    @property
    def releases(self) -> tuple[Release, ...]:
        mu = self.ratio * _size(self.band, self.facts.dimension)
        what = f"{self.steps} weighted sums of gradients, every record in {self.band} of them"
        cost = Cost.gaussian((1 - 1e-13) / mu, adjacency=self.facts.adjacency)
        return (Release(what, cost, FollowTheRegularizedLeader.theorem),)

    @cached_property
    def prefix_deviation(self) -> float:
        """The noise of S_t is sum_k h_k z_{t-k}, where h_0 + h_1 x + ... = 1 / ((1 - x) (c_0 + c_1 x + ...))."""
        parts = np.array(coefficients(self.band)) / _CUT
        inverse = np.zeros(self.steps)
        for k in range(self.steps):
            reach = min(k, self.band - 1)
            inverse[k] = (k == 0) - float(parts[1 : reach + 1] @ inverse[k - reach : k][::-1])
        return float(np.linalg.norm(np.cumsum(inverse)))

    def _leaders(self) -> _Banded:
        return _Banded(coefficients(self.band))


class _Banded(_Leaders):
    """The last gradients, exact, and what was solved for them from the releases."""

    def __init__(self, parts: tuple[int, ...]) -> None:
        self.parts = parts
        self.exact: deque[Wholes] = deque(maxlen=len(parts))
        self.solved: deque[Reals] = deque(maxlen=len(parts) - 1)
        self.total: Reals | float = 0.0

    def after(self, gradient: Wholes, mechanism: Gaussian, generator: Generator | None) -> Reals:
        self.exact.appendleft(gradient)
        largest = max(int(np.abs(one).max(initial=0)) for one in self.exact)
        wide = largest * sum(self.parts) >= 1 << 62
        combined = sum(
            (one.astype(object) if wide else one) * part for part, one in zip(self.parts, self.exact, strict=False)
        )
        noisy = mechanism.release(np.asarray(combined), generator=generator) / _CUT
        for part, before in zip(self.parts[1:], self.solved, strict=False):
            noisy = noisy - part / _CUT * before
        self.solved.appendleft(noisy)
        self.total = self.total + noisy
        return np.asarray(self.total)


def _size(band: int, dimension: int) -> float:
    """The root of the sum of squares of the coefficients, each with what the lattice adds."""
    return math.sqrt(sum((c / _CUT + _ROUNDING * math.sqrt(dimension)) ** 2 for c in coefficients(band)))
