r"""A noisy iteration as one person sees it: how each step contracts, how much noise it adds, and how far their record
can push it.

The state is w_t = phi_t(w_{t-1}) + N(0, nu_t^2 I), projected onto a convex set where there is one; only the last state
is released. A schedule is kept as runs of equal numbers, so that a million equal steps are a few numbers. Steps that do
not touch the record merge exactly: k of them contract by c^k and add noise of variance
nu^2 (1 + c^2 + ... + c^{2(k-1)}).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.iteration.program import Solution, solve
from discreet.accounting.iteration.runs import Runs
from discreet.arguments import positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["MOST_STEPS", "Process"]

MOST_STEPS = 10_000_000
"""Steps that touch the record, or changes of a schedule, that one process may have."""

MOST_RATIOS = 20
"""Different ratios of diameter to noise for which contraction is tried."""

_GROWTH = 200.0
"""Merged steps may grow distances by at most e^200: floats end at e^709."""


@dataclass(frozen=True)
class Process:
    """A noisy iteration whose last state is released, as far as one person is concerned.

    `contraction` holds the Lipschitz constants c_t of the steps, `noise` the standard deviations nu_t of what is added
    to the *state* (step size times the noise on the gradient), `push` the largest distance s_t by which the person's
    record can move the step (0 where it is not used); `diameter` is that of the set projected onto, None without one.
    """

    name: str
    contraction: Runs
    noise: Runs
    push: Runs
    diameter: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidArgument("name", self.name, "pass a short text")
        object.__setattr__(self, "contraction", Runs.of("contraction", self.contraction))
        object.__setattr__(self, "noise", Runs.of("noise", self.noise, positive_values=True))
        object.__setattr__(self, "push", Runs.of("push", self.push))
        if self.diameter is not None:
            object.__setattr__(self, "diameter", positive("diameter", self.diameter))
        lengths = {runs.steps for runs in (self.contraction, self.noise, self.push)}
        if len(lengths) != 1 or lengths == {0}:
            raise InvalidArgument("steps", sorted(lengths), "pass schedules of the same length, at least one step")
        different = max(len(self.contraction), len(self.noise), len(self.push), self.touched)
        if different > MOST_STEPS:
            raise InvalidArgument("steps", different, f"pass a process of at most {MOST_STEPS} different steps")

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.push.steps

    @cached_property
    def _pieces(self) -> tuple[NDArray[np.int64], Reals, Reals, Reals]:
        """Counts, contraction, noise and push of the stretches in which none of them changes."""
        schedules = (self.contraction, self.noise, self.push)
        if max(map(len, schedules)) == self.steps:
            spread = [np.repeat(runs.values, runs.counts) for runs in schedules]
            return np.ones(self.steps, dtype=np.int64), spread[0], spread[1], spread[2]
        edges = np.unique(np.concatenate([runs.ends for runs in schedules]))
        values = [runs.values[np.searchsorted(runs.ends, edges)] for runs in schedules]
        return np.diff(edges, prepend=0), values[0], values[1], values[2]

    @cached_property
    def _merged(self) -> tuple[NDArray[np.int64], Reals, Reals, Reals]:
        """The same process with untouched stretches merged into one step each; how many steps each stands for."""
        counts, factors, noises, pushes = self._pieces
        if len(counts) == self.steps:
            return counts, factors, noises, pushes
        quiet = pushes == 0
        pieces = np.where(quiet, 1, counts)  # how many steps each stretch becomes
        growing = np.flatnonzero(quiet & (counts > 1) & (factors > 1))
        parts = {int(i): self._sizes(int(counts[i]), float(factors[i])) for i in growing}
        for i, own in parts.items():
            pieces[i] = len(own)
        owner = np.repeat(np.arange(len(counts)), pieces)
        sizes = np.where(quiet, counts, 1)[owner]
        first = np.cumsum(pieces) - pieces
        for i, own in parts.items():
            sizes[first[i] : first[i] + len(own)] = own
        merged = merge(sizes, factors[owner], noises[owner])
        return sizes, merged[0], merged[1], pushes[owner]

    def _sizes(self, count: int, factor: float) -> list[int]:
        """Into which sizes an untouched stretch is merged: one, unless distances grow."""
        if factor <= 1:
            return [count]
        most = max(1, int(_GROWTH / math.log(factor)))
        single = min(count, 64) if self.diameter is not None else 0  # a late start from the diameter is best then
        whole, rest = divmod(count - single, most)
        return [most] * whole + ([rest] if rest else []) + [1] * single

    @cached_property
    def solution(self) -> Solution:
        """The certified solution of the convex program; merged stretches count as one step."""
        _, factors, noises, pushes = self._merged
        return solve(factors, noises, pushes, diameter=math.inf if self.diameter is None else self.diameter)

    @cached_property
    def composition(self) -> float:
        """mu if every state were released: sqrt(sum (s_t / nu_t)^2), rounded up."""
        counts, _, noises, pushes = self._pieces
        ratio = pushes / noises
        return math.sqrt(float((counts * ratio * ratio).sum())) * (1 + 1e-14)

    @property
    def mu(self) -> float:
        """w_T is mu-GDP, rounded up: the best of all bounds that give a mu."""
        return min(self.solution.mu, self.composition)

    @property
    def attained(self) -> float:
        """A mu that quadratic losses reach where nothing is projected, rounded down; 0 if none is known.

        It is sum s_t w_t / sqrt(sum (nu_t w_t)^2). All pushes point the same way and every step is w -> c_t w and a
        shift, so that w_T is Gaussian.
        """
        if self.diameter is not None:
            return 0.0
        _, factors, noises, pushes = self._merged
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([factors[1:], [1.0]]))
        weight = np.exp(np.minimum(np.cumsum(logs[::-1])[::-1], 600.0))
        if float(weight.max()) > 1e150:
            return 0.0
        variance = float(((noises * weight) ** 2).sum())
        return float((pushes * weight).sum()) / math.sqrt(variance) * (1 - 1e-9) if variance > 0 else 0.0

    @property
    def touched(self) -> int:
        """How many steps use the record."""
        return int(self.push.counts[self.push.values > 0].sum())

    def allocation(self) -> Reals:
        """a_t for every step: how much of the distance its noise hides; sum (a_t / nu_t)^2 is `solution.mu` squared."""
        counts, factors, noises, _ = self._pieces
        if int(counts.sum()) > MOST_STEPS:
            raise InvalidArgument("steps", int(counts.sum()), f"an allocation is listed for up to {MOST_STEPS} steps")
        sizes, _, merged_noise, _ = self._merged
        factor = np.repeat(factors, counts)
        noise = np.repeat(noises, counts)
        # inside a merged stretch step i takes its share nu^2 c^{later} of the whole
        ends = np.cumsum(sizes)
        later = np.repeat(ends, sizes) - 1 - np.arange(int(ends[-1]))
        with np.errstate(under="ignore"):
            share = noise**2 * factor**later / np.repeat(merged_noise, sizes) ** 2
        return np.where(
            np.repeat(sizes, sizes) == 1,
            np.repeat(self.solution.shifts, sizes),
            np.repeat(self.solution.shifts, sizes) * share,
        )

    @property
    def winner(self) -> str:
        """Which bound is the best: 'composition', 'iteration' or 'iteration from the diameter'."""
        if self.solution.mu >= self.composition * (1 - 1e-9):
            return "composition"
        return self.program

    def since_last_use(self) -> tuple[float, tuple[tuple[int, float], ...]] | None:
        """mu right after the record's last use, and the ratio c D / nu of every step since; None if nothing follows."""
        counts, factors, noises, pushes = self._pieces
        used = int(np.flatnonzero(pushes > 0)[-1]) + 1
        if self.diameter is None or used == len(counts):
            return None
        ratios = np.nextafter(factors[used:] * self.diameter / noises[used:], math.inf) * (1 + 2.0**-51)
        if len(ratios) > MOST_RATIOS or not (ratios > 0).all():
            return None
        factor, noise, push = (Runs(counts[:used], column[:used]) for column in (factors, noises, pushes))
        before = Process(self.name, factor, noise, push, self.diameter)
        return before.mu, tuple(zip(counts[used:].tolist(), ratios.tolist(), strict=True))

    @property
    def program(self) -> str:
        """What the convex program is called here."""
        return "iteration from the diameter" if self.solution.start else "iteration"

    def why_composition(self) -> str:
        """Why nothing is better than releasing every state, if so."""
        return "later steps hide nothing of it" if self.touched == 1 else "no step hides what another one added"

    def why_program(self) -> str:
        """What the convex program makes use of."""
        if self.solution.start == 0:
            use = "uses" if self.touched == 1 else "use"
            return (
                f"{self.touched} of {self.steps} steps {use} the record, and the noise of later ones hides what it did"
            )
        late = int(self._merged[0][self.solution.start :].sum())
        return (
            f"whatever happened before, two states are at most {self.diameter:g} apart, and the noise of the last "
            f"{late} steps hides that and what the record did since"
        )


def merge(counts: NDArray[np.int64], factors: Reals, noises: Reals) -> tuple[Reals, Reals]:
    """k equal steps without a push as one, for many k: c^k rounded up, nu sqrt(1 + ... + c^{2(k-1)}) rounded down."""
    k = counts.astype(np.float64)
    with np.errstate(all="ignore"):
        # c - 1 is exact from 1/2 on
        log_factor = np.where(factors > 0.5, np.log1p(np.maximum(factors, 0.5) - 1), np.log(factors))
        total = np.expm1(2 * k * log_factor) / ((factors - 1) * (factors + 1))
        grown = np.exp(k * log_factor) * (1 + 1e-15 * (8 + np.abs(k * log_factor)))
        blurred = noises * np.sqrt(total) * (1 - 1e-14)
    one, zero = factors == 1, factors == 0
    grown = np.where(one, 1.0, np.where(zero, 0.0, grown))
    blurred = np.where(one, noises * np.sqrt(k) * (1 - 1e-15), np.where(zero, noises, blurred))
    single = counts == 1
    return np.where(single, factors, grown), np.where(single, noises, blurred)
