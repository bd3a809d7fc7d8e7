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
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.iteration.program import Solution, solve
from discreet.arguments import positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["Process", "Runs", "runs_of"]

Runs = tuple[tuple[int, float], ...]
"""(how often, value), in order."""

MOST_STEPS = 10_000_000
"""Steps that touch the record, and changes of the schedule, that one process may have."""

MOST_RATIOS = 20
"""Different ratios of diameter to noise for which contraction is tried."""

_GROWTH = 200.0
"""Merged steps may grow distances by at most e^200: floats end at e^709."""


def runs_of(values: Reals) -> Runs:
    """A schedule as runs of equal values.

    >>> runs_of(np.array([1.0, 1.0, 0.5]))
    ((2, 1.0), (1, 0.5))
    """
    if not len(values):
        return ()
    starts = np.flatnonzero(np.concatenate([[True], np.diff(values) != 0]))
    counts = np.diff(np.append(starts, len(values)))
    return tuple(zip(counts.tolist(), values[starts].tolist(), strict=True))


def _checked(name: str, runs: Any, *, positive_values: bool) -> Runs:
    try:
        rows = tuple((int(count), float(value)) for count, value in runs)
        whole = all(count == given for (count, _), (given, _) in zip(rows, runs, strict=True))
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(name, runs, "pass pairs (how often, value)") from None
    if not whole or any(count < 1 for count, _ in rows):
        raise InvalidArgument(name, runs, "pass pairs (how often, value) with whole numbers >= 1")
    for _, value in rows:
        if not math.isfinite(value) or value < 0 or (positive_values and value == 0):
            sign = "> 0" if positive_values else ">= 0"
            raise InvalidArgument(name, value, f"pass finite numbers {sign}")
    return rows


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
        object.__setattr__(self, "contraction", _checked("contraction", self.contraction, positive_values=False))
        object.__setattr__(self, "noise", _checked("noise", self.noise, positive_values=True))
        object.__setattr__(self, "push", _checked("push", self.push, positive_values=False))
        if self.diameter is not None:
            object.__setattr__(self, "diameter", positive("diameter", self.diameter))
        lengths = {sum(count for count, _ in runs) for runs in (self.contraction, self.noise, self.push)}
        if len(lengths) != 1 or lengths == {0}:
            raise InvalidArgument("steps", sorted(lengths), "pass schedules of the same length, at least one step")
        touched = sum(count for count, value in self.push if value > 0)
        changes = len(self.contraction) + len(self.noise) + len(self.push)
        if touched + changes > MOST_STEPS:
            raise InvalidArgument("steps", touched + changes, f"pass a process of at most {MOST_STEPS} different steps")

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return sum(count for count, _ in self.push)

    @cached_property
    def _pieces(self) -> tuple[NDArray[np.int64], Reals, Reals, Reals]:
        """Counts, contraction, noise and push of the stretches in which none of them changes."""
        ends = [np.cumsum([count for count, _ in runs]) for runs in (self.contraction, self.noise, self.push)]
        edges = np.unique(np.concatenate(ends))
        values = [
            np.array([value for _, value in runs])[np.searchsorted(end, edges)]
            for runs, end in zip((self.contraction, self.noise, self.push), ends, strict=True)
        ]
        return np.diff(edges, prepend=0), values[0], values[1], values[2]

    @cached_property
    def _merged(self) -> tuple[NDArray[np.int64], Reals, Reals, Reals]:
        """The same process with untouched stretches merged into one step each; how many steps each stands for."""
        counts, factors, noises, pushes = self._pieces
        parts: list[tuple[NDArray[np.int64], Reals, Reals, Reals]] = []
        if len(counts) == int(counts.sum()):
            return counts, factors, noises, pushes
        for count, factor, noise, push in zip(
            counts.tolist(), factors.tolist(), noises.tolist(), pushes.tolist(), strict=True
        ):
            sizes = [1] * count if push > 0 else self._sizes(count, factor)
            if push > 0:
                parts.append(
                    (
                        np.ones(count, dtype=np.int64),
                        np.full(count, factor),
                        np.full(count, noise),
                        np.full(count, push),
                    )
                )
                continue
            joined = [_merge(size, factor, noise) for size in sizes]
            parts.append(
                (
                    np.array(sizes, dtype=np.int64),
                    np.array([c for c, _ in joined]),
                    np.array([nu for _, nu in joined]),
                    np.zeros(len(sizes)),
                )
            )
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))  # type: ignore[return-value]

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
        return sum(count for count, value in self.push if value > 0)

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
        return "iteration from the diameter" if self.solution.start else "iteration"

    def since_last_use(self) -> tuple[float, Runs] | None:
        """mu right after the record's last use, and the ratio c D / nu of every step since; None if nothing follows."""
        counts, factors, noises, pushes = self._pieces
        used = int(np.flatnonzero(pushes > 0)[-1]) + 1
        if self.diameter is None or used == len(counts):
            return None
        ratios = np.nextafter(factors[used:] * self.diameter / noises[used:], math.inf) * (1 + 2.0**-51)
        if len(ratios) > MOST_RATIOS or not (ratios > 0).all():
            return None
        before = Process(
            self.name,
            tuple(zip(counts[:used].tolist(), factors[:used].tolist(), strict=True)),
            tuple(zip(counts[:used].tolist(), noises[:used].tolist(), strict=True)),
            tuple(zip(counts[:used].tolist(), pushes[:used].tolist(), strict=True)),
            self.diameter,
        )
        return before.mu, tuple(zip(counts[used:].tolist(), ratios.tolist(), strict=True))

    def why(self) -> str:
        """Which bound won and why, in words."""
        counts, _, _, _ = self._merged
        others = f"releasing every state would cost mu = {self.composition:.6g}"
        if self.winner == "composition":
            reason = "later steps hide nothing of it" if self.touched == 1 else "no step hides what another one added"
            return f"composition won with mu = {self.mu:.6g}: {reason}."
        if self.winner == "iteration":
            return (
                f"iteration won with mu = {self.mu:.6g}: {self.touched} of {self.steps} steps use the record, and the "
                f"noise of later ones hides what it did; {others}."
            )
        late = int(counts[self.solution.start :].sum())
        return (
            f"iteration from the diameter won with mu = {self.mu:.6g}: whatever happened before, two states are at "
            f"most {self.diameter:g} apart, and the noise of the last {late} steps hides that and what the record did "
            f"since; {others}."
        )


def _merge(count: int, factor: float, noise: float) -> tuple[float, float]:
    """k steps without a push as one: c^k rounded up, nu sqrt(1 + c^2 + ... + c^{2(k-1)}) rounded down."""
    if count == 1:
        return factor, noise
    if factor == 1:
        return 1.0, noise * math.sqrt(count) * (1 - 1e-15)
    if factor == 0:
        return 0.0, noise
    log_factor = math.log1p(factor - 1) if factor > 0.5 else math.log(factor)  # factor - 1 is exact from 1/2 on
    total = math.expm1(2 * count * log_factor) / ((factor - 1) * (factor + 1))
    grown = math.exp(count * log_factor)
    return grown * (1 + 1e-15 * (8 + abs(count * log_factor))), noise * math.sqrt(total) * (1 - 1e-14)
