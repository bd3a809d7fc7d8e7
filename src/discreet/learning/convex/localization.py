r"""Iterative localization: phases on fresh records, each near the noisy result of the one before, of ever less noise.

In phase i = 1, ..., k the records whose own coins put them there, a share 2^-i of all, give

    w~_i = argmin of their losses + (1 / eta_i) ||w - w_{i-1}||^2,   w_i = w~_i + N(0, sigma_i^2 I),   eta_i = 4^-i eta,

from w_0 = 0, and w_k is the result [Feldman et al. 2020]. The objective of a phase is (2 / eta_i)-strongly convex, so
one record moves w~_i by at most s_i = changes L eta_i / 2, and w~_i is found to a gradient of norm gamma, which adds
eta_i gamma for both of two neighbours. A record is in one phase alone, and later phases only see what was released:
with sigma_i = s_i / mu in every phase the whole run is mu-GDP. Losses need not be smooth. The penalty alpha of the
facts is not used: phases bring their own.

For n independent records, a loss of Lipschitz constant L and a minimiser w* with ||w*|| <= R, the expected excess risk
is at most the sum of what the phases lose,

    2 R^2 / (eta_1 n_1) + L^2 eta_1 + sum_{i>1} (2 d sigma_{i-1}^2 / (eta_i n_i) + L^2 eta_i) + L sigma_k sqrt(d):

the result of a phase is as good for the distribution as any fixed w' but for ||w_{i-1} - w'||^2 / (eta_i N_i), for N_i
records, and L^2 eta_i, the stability of a strongly convex minimum; w' is w* first and w~_{i-1} after that. A binomial
N_i of mean n_i = n 2^-i has E[1/N_i] <= 2 / n_i; it is zero with probability e^-n_i, and that is added too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from discreet.arguments import count, positive
from discreet.learning.convex.minimum import Objective, fair_gamma, minimised
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

    from discreet.accounting.cost import Cost
    from discreet.learning.problem import Facts
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["IterativeLocalization", "LocalizationPlan"]

_FEWEST = 64
"""Phases stop when fewer records than this are expected in the next."""


@dataclass(frozen=True)
class IterativeLocalization(Solver):
    """Private stochastic convex optimisation in about log2(n) phases; `radius` is a guess of the minimiser's norm.

    >>> from discreet.learning import Facts, Logistic
    >>> facts = Facts(loss=Logistic(), features=5, row_norm=1.0, records=10_000)
    >>> plan = IterativeLocalization(radius=2.0).plan(facts, Goal(epsilon=1.0, delta=1e-6))
    >>> plan.phases, plan.cost.epsilon(1e-6) <= 1.0
    (7, True)
    """

    radius: float = 10.0
    phases: int | None = None
    name: ClassVar[str] = "iterative localization"
    theorem: ClassVar[str] = "a Gaussian mechanism on a strongly convex minimum; every record is in one phase alone"
    needs_records: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        if self.phases is not None:
            count("phases", self.phases, least=1)

    def plan(self, facts: Facts, goal: Goal) -> LocalizationPlan:
        """eta is chosen to make the bound on the excess risk smallest."""
        records = facts.needed_records("the number of phases and their penalties depend on it")
        phases = self._phases(records)
        sizes = _Sizes(records, facts.dimension, facts.lipschitz, self.radius, goal.gaussian / facts.changes, phases)
        return LocalizationPlan(facts, self.radius, phases, sizes.best_eta, goal.gaussian)

    def _phases(self, records: int) -> int:
        return self.phases or max(1, int(math.log2(max(2.0, records / _FEWEST))))

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
        """A bound on the expected excess risk over the distribution of n independent records (add-remove)."""
        del smoothness
        mu = Goal(epsilon=epsilon, delta=delta).gaussian
        sizes = _Sizes(count("n", n, least=1), count("d", d, least=1), lipschitz, radius, mu, self._phases(n))
        return sizes.bound(sizes.best_eta)


@dataclass(frozen=True)
class _Sizes:
    """The bound of the module for these numbers; `mu` is per change of one record."""

    records: int
    dimension: int
    lipschitz: float
    radius: float
    mu: float
    phases: int

    def bound(self, eta: float) -> float:
        """The bound on the excess risk."""
        total, before = 0.0, self.radius**2
        for i in range(1, self.phases + 1):
            size, here = self.records * 2.0**-i, eta * 4.0**-i
            total += 2 * before / (here * size) + self.lipschitz**2 * here
            total += 2 * self.lipschitz * self.radius * math.exp(-size)
            before = self.dimension * (self.lipschitz * here / (2 * self.mu)) ** 2
        return total + self.lipschitz * math.sqrt(before)

    @cached_property
    def best_eta(self) -> float:
        """The eta of the smallest bound."""
        guess = math.log(self.radius / self.lipschitz)
        found = minimize_scalar(lambda x: math.log(self.bound(math.exp(x))), bounds=(guess - 25, guess + 10))
        return math.exp(float(found.x))


@dataclass(frozen=True)
class LocalizationPlan(Plan):
    """`phases` phases of penalties 1 / eta_i, eta_i = 4^-i `eta`, each a Gaussian release of ratio `mu`."""

    facts: Facts
    radius: float
    phases: int
    eta: float
    mu: float

    @property
    def gamma(self) -> float:
        """The norm of the gradient to which a phase is solved."""
        gamma: float = fair_gamma(self.facts)
        return gamma

    def mechanism(self, phase: int) -> Gaussian:
        """The noise on the minimiser of a phase, from 1."""
        eta = self.eta * 4.0**-phase
        moved = (self.facts.changes * self.facts.lipschitz + 2 * self.gamma) * eta / 2
        return Gaussian(
            noise_multiplier=1 / self.mu,
            sensitivity=moved * (1 + 1e-12),
            dimension=self.facts.dimension,
            adjacency=self.facts.adjacency,
        )

    @property
    def releases(self) -> tuple[Release, ...]:
        what = f"{self.phases} regularised minima, every record in one of them"
        cost: Cost = self.mechanism(1).cost
        return (Release(what, cost, IterativeLocalization.theorem),)

    @property
    def noise(self) -> dict[str, float]:
        return {f"phase {i}": math.sqrt(self.mechanism(i).variance) for i in range(1, self.phases + 1)}

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("every record is in one phase, by a coin of its own",)

    @property
    def choices(self) -> tuple[str, ...]:
        return (f"{self.phases} phases, eta = {self.eta:.4g}, for a minimiser of norm about {self.radius:g}",)

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        self.check(problem)
        # phase i with probability 2^-i: the number of zero bits before the first one; those beyond the last are unused
        coins = uniform_integers(1 << 62, size=max(1, len(problem)), generator=generator)[: len(problem)]
        place = 62 - np.frexp(coins.astype(np.float64))[1] + 1
        weights = np.zeros(self.facts.shape)
        for phase in shown(range(1, self.phases + 1), "localization", verbose=verbose):
            chosen = np.flatnonzero(place == phase)
            part = Problem(self.facts, Rows(problem.rows.lattice, problem.rows.steps[chosen]), problem.targets[chosen])
            ridge = 2 * 4.0**phase / self.eta
            minimum = minimised(Objective(part, ridge, -ridge * weights), gamma=self.gamma)
            weights = self.mechanism(phase).release(minimum, generator=generator)
        return Fitted(weights, self)
