r"""What the solvers with hidden iterates share: noisy projected steps in a fixed order, of which only the last is seen.

    w <- Pi_K[w - eta (mean of a batch's gradients + (alpha/n) w + N(0, sigma^2 I))],   K = ball of the radius,

from w = 0, over batches of consecutive records. A step with 0 < eta <= 2/smoothness brings no two iterates further
apart, so that the noise of all later steps hides what a record did [Feldman et al. 2018]. On the computer iterates lie
on a lattice and the noise is exact; what rounding adds is a small push in every step, `IterateLattice.slack`, and is
part of the cost: if a process with pushes s_t is mu-GDP, the same with pushes s_t + u is, by the same pulls and u more
in each of its T steps, sqrt(mu^2 + (2 u sum_t s_t + T u^2) / nu^2)-GDP (docs/proofs/pnsgd-lattice.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.iteration.losses import Losses
from discreet.arguments import count, positive
from discreet.errors import InvalidArgument
from discreet.learning.convex import kernel
from discreet.learning.convex.iterate_lattice import IterateLattice
from discreet.learning.convex.solver import Fitted, Plan
from discreet.learning.progress import shown
from discreet.learning.report import Release
from discreet.noise import kernel as noise_kernel
from discreet.noise import rounded_gaussian

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from numpy.typing import NDArray

    from discreet.accounting.iteration.personal import PersonalCosts
    from discreet.learning.problem import Facts, Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]
    Wholes = NDArray[np.int64]

__all__ = ["HiddenFit", "HiddenPlan"]

_DRAWS = 1 << 17  # noise is drawn in blocks of about so many
_UP = 1 + 1e-12  # bounds are rounded up by more than floating point can be off
_COARSE = 1e-2  # rounding beyond this part of what a record moves is refused
_MOST = 2.0  # an enlargement beyond this is better avoided by leaving strong convexity out


@dataclass(frozen=True, eq=False)
class HiddenFit(Fitted):
    """The last iterate, and what it cost everyone."""

    plan: HiddenPlan

    @property
    def personal_costs(self) -> PersonalCosts:
        """The cost for each private record, by its position."""
        return self.plan.personal_costs


@dataclass(frozen=True)
class HiddenPlan(Plan):
    """Steps of size `step` with noise `sigma` on the mean gradient of `batch` records; the last `public` are public."""

    facts: Facts
    radius: float
    batch: int
    step: float
    sigma: float
    public: int = 0

    name: ClassVar[str]
    theorem: ClassVar[str]

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        count("batch", self.batch, least=1)
        if count("public", self.public) >= self.records:
            raise InvalidArgument("public", self.public, f"at least one of the {self.records} records must be private")
        # refuses steps above 2 / smoothness: they can expand, and then nothing is hidden
        Losses(self.facts.lipschitz, self.smoothness, self.convexity).factor(np.array([positive("step", self.step)]))
        if self.slack > _COARSE * self.push:
            raise InvalidArgument(
                "radius",
                self.radius,
                f"floating point is too coarse for steps that are {self.push / self.radius:.2g} of the radius; pass a "
                "smaller radius, or a larger step",
            )

    # -------------------------------------------------------------- the steps

    @property
    def records(self) -> int:
        """How many records there are, the public ones included."""
        return self.facts.needed_records("the number of records, hence of steps, is public in this analysis")

    @property
    def private_batches(self) -> int:
        """Batches of records that are protected; the last of them may be smaller."""
        return -(-(self.records - self.public) // self.batch)

    @property
    def batches(self) -> int:
        """All batches of one pass."""
        return self.private_batches - (-self.public // self.batch)

    @property
    def steps(self) -> int:
        """The most steps that a run takes."""
        return self.batches

    @property
    def uses(self) -> int:
        """How often a run uses a record."""
        return 1

    @property
    def convexity(self) -> float:
        """Strong convexity of one step's loss, from the penalty."""
        return self.facts.alpha / self.records

    @property
    def smoothness(self) -> float:
        """Smoothness of one step's loss, the penalty included, rounded up."""
        return (self.facts.smoothness + self.convexity) * (1 + 2.0**-50)

    @property
    def lipschitz(self) -> float:
        """How far one record moves the mean gradient of its batch if it is zeroed, rounded up."""
        return self.facts.lipschitz / self.batch * (1 + 2.0**-50)

    @property
    def push(self) -> float:
        """How far one record moves a step."""
        return self.step * self.lipschitz * self.facts.changes * (1 + 2.0**-50)

    @property
    def deviation(self) -> float:
        """nu: the standard deviation of the noise on the iterate."""
        return self.step * self.sigma

    @cached_property
    def lattice(self) -> IterateLattice:
        """Where iterates lie."""
        longest = self.step * (self.facts.lipschitz + self.convexity * self.radius)
        return IterateLattice.of(radius=self.radius, deviation=self.deviation, move=longest)

    @cached_property
    def slack(self) -> float:
        """u: what rounding adds to every push, at most."""
        return self.lattice.slack(
            self.facts, radius=self.radius, batch=self.batch, step=self.step, convexity=self.convexity
        )

    # --------------------------------------------------------------- the cost

    @property
    def rounding(self) -> float:
        """What rounding adds to mu^2, for every record: (2 u sum s_t + T u^2) / nu^2, rounded up."""
        return self.slack * (2 * self.uses * self.push + self.steps * self.slack) / self.deviation**2 * _UP

    def enlarged(self, mu: float) -> float:
        """By how much a Lipschitz constant must be enlarged so that mu covers the rounding as well."""
        return math.sqrt(1 + self.rounding / mu**2) * _UP

    @property
    def schedule(self) -> dict[str, Any]:
        """What the accounting of `discreet.last_iterate` takes, for batches in the place of records."""
        return {
            "n": self.batches,
            "smoothness": self.smoothness,
            "step": self.step,
            "noise": self.sigma * (1 - 2.0**-50),
            "strong_convexity": self.convexity,
            "adjacency": self.facts.adjacency,
        }

    def stated(self, algorithm: Callable[..., Cost], *, mu: float, plain: float, **place: int) -> Cost:
        """The cost by one of `discreet.last_iterate`'s algorithms, with the rounding in its Lipschitz constant.

        `mu` is that of the place without rounding, `plain` the same without strong convexity. Where the penalty makes
        the process forget the record but not the rounding since, the former is left out.
        """
        schedule, larger = self.schedule, self.enlarged(mu)
        if larger > _MOST:
            schedule["strong_convexity"], larger = 0.0, self.enlarged(plain)
        return algorithm(lipschitz=self.lipschitz * larger, **place, **schedule)

    @property
    def ratio(self) -> float:
        """mu of a record if nothing but its own step hid it, without rounding."""
        return self.lipschitz * self.facts.changes / self.sigma

    @property
    def is_gaussian(self) -> bool:
        """Whether the cost of the worst record is that of a Gaussian release."""
        return True

    @property
    def local_cost(self) -> Cost:
        """What a record costs towards somebody who sees every state: each use is one Gaussian release.

        Needs neither smoothness nor hidden iterates [Feldman et al. 2018, Lemma 27].
        """
        once = (self.push + self.slack) / self.deviation * _UP
        return self.uses * Cost.gaussian_dp(once, adjacency=self.facts.adjacency)

    @property
    @abstractmethod
    def worst_cost(self) -> Cost:
        """The cost of the record that gives away most: what can be promised to everybody."""

    @property
    @abstractmethod
    def personal_costs(self) -> PersonalCosts:
        """The cost for each private record, by its position."""

    def by_record(self, values: Reals) -> Reals:
        """A value for each record from one for each private batch."""
        return np.repeat(values, self.batch)[: self.records - self.public]

    @property
    def releases(self) -> tuple[Release, ...]:
        what = f"the last of {self.steps} hidden iterates; others than the record at the worst position pay less"
        return (Release(what, self.worst_cost, self.theorem),)

    @property
    def noise(self) -> dict[str, float]:
        return {"gradient": self.sigma, "iterate": self.deviation}

    @property
    def assumptions(self) -> tuple[str, ...]:
        zeroed = "the records' order and number are public: a neighbour has "
        zeroed += "a record zeroed" if self.facts.adjacency == "add-remove" else "another record in one place"
        smooth = f"losses are convex and {self.facts.smoothness:.4g}-smooth, and the step {self.step:.4g} is at most "
        found = [zeroed, smooth + "2 / smoothness: no step expands", "no iterate but the last is seen by anybody"]
        if self.public:
            found.append(f"the last {self.public} of {self.records} records need no protection")
        return tuple(found)

    @property
    def choices(self) -> tuple[str, ...]:
        taken = f"{self.steps} steps of size {self.step:.4g} on batches of {self.batch} in a ball of radius "
        taken += f"{self.radius:g}, noise {self.sigma:.4g} on each coordinate of the mean gradient"
        rounding = f"iterates on a lattice of step 2^{self.lattice.exponent}; rounding is "
        rounding += f"{self.slack / self.push:.1e} of what a record moves, and is paid for"
        return taken, rounding

    # ---------------------------------------------------------------- the run

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if len(problem) != self.records:
            raise InvalidArgument(
                "problem", "rows", f"this plan was made for {self.records} records, and the data has another number"
            )

    @property
    def constants(self) -> kernel.Constants:
        """What the loop needs to know."""
        rows, iterates = self.facts.lattice.exponent, self.lattice.exponent
        return kernel.Constants(
            pull=math.ldexp(self.step / self.batch, rows - iterates),
            margin=math.ldexp(1.0, rows + iterates),
            shrink=self.step * self.convexity,
            reach=math.ldexp(self.radius, -iterates),
            bound=self.facts.loss.lipschitz,
        )

    is_random: ClassVar[bool] = False
    """Whether `span` is random, and secret."""

    def span(self, generator: Generator | None) -> tuple[int, int]:
        """The first step that is taken, and the one after the last; random for some, never dependent on the data."""
        del generator
        return 0, self.steps

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> HiddenFit:
        self.check(problem)
        return self._one_run(problem, verbose=verbose, generator=generator)

    def _one_run(self, problem: Problem, *, verbose: bool, generator: Generator | None) -> HiddenFit:
        """One run on a problem that was checked."""
        first, last = self.span(generator)
        facts, advance = self.facts, None
        if (last - first) * facts.dimension >= noise_kernel.MANY:
            noise_kernel.load()
        if last - first >= kernel.MANY:
            advance = kernel.compiled(facts.loss, self.constants)
        advance = advance or kernel.interpreted(facts.loss, self.constants)
        scale = math.ldexp(self.deviation, -self.lattice.exponent)
        state = np.zeros(facts.dimension, dtype=np.int64)
        starts = self._starts
        block = max(1, _DRAWS // facts.dimension)
        # a bar for a random span would tell what must stay secret
        for low in shown(range(first, last, block), self.name, verbose=verbose and not self.is_random):
            high = min(low + block, last)
            noise = rounded_gaussian(scale, (high - low, facts.dimension), generator=generator)
            while low < high:  # a pass over the data ends within the block
                stop = min(high, (low // self.batches + 1) * self.batches)
                at = low % self.batches
                edges = starts[at : at + stop - low + 1]
                advance(state, problem.rows.steps, problem.targets, edges, noise[: stop - low])
                low, noise = stop, noise[stop - low :]  # noqa: PLW2901 - the rest of the block
        return HiddenFit(self._released(state), self)

    @cached_property
    def _starts(self) -> Wholes:
        """The first record of every batch, and the end."""
        private = self.records - self.public
        parts = np.arange(0, private, self.batch), np.arange(private, self.records, self.batch), [self.records]
        return np.concatenate(parts).astype(np.int64)

    def _released(self, state: Wholes) -> Reals:
        """The last iterate, projected: a function of the last noisy state."""
        place = state.astype(np.float64)
        size, reach = float(np.linalg.norm(place)), math.ldexp(self.radius, -self.lattice.exponent)
        if size > reach:
            place = np.rint(place * (reach / size))
        return np.ldexp(place, self.lattice.exponent).reshape(self.facts.shape)
