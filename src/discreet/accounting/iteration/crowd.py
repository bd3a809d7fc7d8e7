r"""The convex program of `program.py` for many people at once, each with few uses of their record.

Between two uses of a record nothing touches it, and the steps between them are one step: contraction C = prod c_i and
variance V = sum_i nu_i^2 prod_{l>i} c_l^2. So a person whose record is used k times has a program of k steps, whatever
the length of the run. `solve_rows` solves all of these side by side, one row for each use and one column for each
person: pooling adjacent stretches whose slopes fall gives the lower hull, and the walk that certifies it is the one of
`program.py`, a whole row at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.iteration.process import merge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]
    Places = NDArray[np.int64]

    Row = tuple[Reals, Reals, Reals]

__all__ = ["mu_of_epochs", "mu_of_uses", "repeated", "solve_rows", "stretches"]

_UP = 1.0 + 2.0**-50
_LEAST = 1e-300
"""As in `program.py`: cover the roundings of one step, and what underflows."""

_CHUNK = 1 << 15
"""People who are solved for together: their numbers stay in the cache."""

_GROWTH = 200.0
"""As in `process.py`: merged steps that count from the diameter on grow distances by about e^200 at most."""

_SOME = 9
"""People for whom all starts are compared where the schedule is even."""

_FEW, _STARTS = 5_000_000, 24
"""If there are many people with many uses, so many starts from the diameter are tried, the later the denser."""


def stretches(factor: Reals, noise: Reals, low: Places, high: Places) -> tuple[Reals, Reals]:
    """Contraction, rounded up, and noise, rounded down, of the steps low ... high - 1, for many stretches.

    `factor` and `noise` are single numbers or one for each step. An empty stretch neither contracts nor blurs.
    Stretches are put together from pieces of 1, 2, 4, ... steps: only positive numbers are added, so nothing cancels.

    >>> c, nu = stretches(np.array([0.5]), np.array([1.0]), np.array([0, 3]), np.array([2, 3]))
    >>> c.round(9).tolist(), (nu**2).round(9).tolist()
    ([0.25, 1.0], [1.25, 0.0])
    """
    length = high - low
    if len(factor) == len(noise) == 1:
        c, nu = merge(
            np.maximum(length, 1), np.broadcast_to(factor, length.shape), np.broadcast_to(noise, length.shape)
        )
        return np.where(length > 0, c, 1.0), np.where(length > 0, nu, 0.0)
    steps = max(len(factor), len(noise))
    piece = np.broadcast_to(factor, (steps,)).copy()
    variance = np.broadcast_to(noise, (steps,)) ** 2
    at, product, total = low.copy(), np.ones(len(low)), np.zeros(len(low))
    size = 1
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        while True:
            chosen = np.flatnonzero(length & size)
            here = at[chosen]
            total[chosen] = total[chosen] * piece[here] ** 2 + variance[here]
            product[chosen] *= piece[here]
            at[chosen] += size
            if 2 * size > int(length.max(initial=0)):
                break
            variance = variance[:-size] * piece[size:] ** 2 + variance[size:]
            piece = piece[:-size] * piece[size:]
            size *= 2
        slack = 1e-15 * (16 + length)  # four roundings for each step, and some for the pieces
        return product * (1 + slack), np.sqrt(total) * (1 - slack)


def repeated(contraction: float, noise: float, push: float, times: Places) -> tuple[Reals, Reals, Reals]:
    """The same step with a push, taken this many times, as one step; for contraction <= 1 the hull bends at none.

    Their weights grow towards the end, so slopes push / (noise^2 weight) fall, and a hull has corners only where they
    rise. (c^r, nu sqrt(1 + ... + c^{2(r-1)}), s (1 + ... + c^{r-1})), pushes rounded up, noise down.
    """
    c, nu = merge(np.maximum(times, 1), np.full(times.shape, contraction), np.full(times.shape, noise))
    r = np.maximum(times, 1).astype(np.float64)
    if contraction == 1:
        total = r
    elif contraction == 0:
        total = np.ones(times.shape)
    else:
        log_factor = math.log1p(contraction - 1) if contraction > 0.5 else math.log(contraction)
        total = np.expm1(r * log_factor) / (contraction - 1) * (1 + 1e-14)
    none = times == 0
    return np.where(none, 1.0, c), np.where(none, 0.0, nu), np.where(none, 0.0, push * total * (1 + 1e-15))


def solve_rows(
    contraction: Reals, noise: Reals, push: Reals, *, start: float = 0.0, diameter: float = math.inf
) -> Reals:
    """mu of many processes, rounded up: one row for each step, one column for each process.

    All begin with the distance `start`, and distances are cut to the diameter before every step. A step may have no
    noise; infinite if the last has none and something is left.

    >>> solve_rows(np.ones((2, 1)), np.ones((2, 1)), np.array([[1.0], [0.0]])).round(9).tolist()
    [0.707106781]
    """
    parts = []
    for low in range(0, contraction.shape[1], _CHUNK):
        some = slice(low, low + _CHUNK)
        parts.append(_solve_some(contraction[:, some], noise[:, some], push[:, some], start, diameter))
    return np.concatenate(parts)


def _solve_some(contraction: Reals, noise: Reals, push: Reals, start: float, diameter: float) -> Reals:
    with np.errstate(all="ignore"):  # what is not finite is not chosen, or taken off at the next step
        wanted = _wanted(contraction, noise, push, start) * (1 + 1e-13)
        z = np.full(contraction.shape[1], start)
        energy = np.zeros(contraction.shape[1])
        last = len(contraction) - 1
        for j in range(len(contraction)):
            reach = (contraction[j] * np.minimum(z, diameter) + push[j]) * _UP + _LEAST
            taken = np.where(wanted[j] < reach, wanted[j], reach) if j < last else reach  # not-a-number: all of it
            taken = np.where(noise[j] > 0, taken, 0.0 if j < last else reach)
            z = reach - taken
            ratio = np.where(taken > 0, taken / noise[j], 0.0)
            energy += ratio * ratio
        mu = np.sqrt(energy) * (1 + 1e-14 + 4e-16 * len(contraction))
    # squares underflow below 1e-154; nothing smaller than 1e-100 is told apart from it
    return np.where(np.isfinite(mu), np.maximum(mu, 1e-100), math.inf)


def _wanted(contraction: Reals, noise: Reals, push: Reals, start: float) -> Reals:
    """The shifts of the lower hull; approximate, and only a proposal."""
    rows, columns = contraction.shape
    weight = np.ones((rows, columns))
    for j in range(rows - 2, -1, -1):
        weight[j] = weight[j + 1] * contraction[j + 1]
    x, y = (noise * weight) ** 2, push * weight
    y[0] += start * contraction[0] * weight[0]
    first = np.zeros((rows, columns), dtype=np.int64)
    depth = np.zeros(columns, dtype=np.int64)
    everyone = np.arange(columns)
    run, rise = np.zeros((rows, columns)), np.zeros((rows, columns))
    for j in range(rows):
        run[depth, everyone], rise[depth, everyone], first[depth, everyone] = x[j], y[j], j
        depth += 1
        active = everyone if j else everyone[:0]
        while len(active):
            high = depth[active] - 1
            falls = rise[high - 1, active] * run[high, active] >= rise[high, active] * run[high - 1, active]
            active, high = active[falls], high[falls]
            run[high - 1, active] += run[high, active]
            rise[high - 1, active] += rise[high, active]
            depth[active] -= 1
            active = active[depth[active] > 1]
    slope = np.empty((rows, columns))
    at = depth - 1
    for j in range(rows - 1, -1, -1):
        slope[j] = rise[at, everyone] / run[at, everyone]
        at -= (first[at, everyone] == j) & (at > 0)
    return np.asarray(slope * noise**2 * weight)


def mu_of_uses(
    factor: Reals, noise: Reals, push: Reals, uses: Places, *, steps: int, diameter: float | None = None
) -> Reals:
    """mu of people whose records are used in these steps (from 0): one row for each use, one column for each person.

    `factor`, `noise` and `push` are single numbers or one for each of the `steps`. On a bounded set a run may be
    counted from the diameter on, right after any use: earlier there is a push more to hide, later there is less noise.
    """
    until = np.concatenate([uses[1:], np.full((1, uses.shape[1]), steps)])
    c, nu = (values.reshape(uses.shape) for values in stretches(factor, noise, (uses + 1).ravel(), until.ravel()))
    own_factor, own_noise, moved = (values[uses] if len(values) > 1 else values for values in (factor, noise, push))
    least = c * (1 - 4e-15 * (16 + until - uses))  # c is rounded up; noise must be rounded down
    whole = (
        own_factor * c * (1 + 1e-15),
        np.hypot(own_noise * least, nu) * (1 - 4e-15),
        np.broadcast_to(moved * c * (1 + 1e-15), uses.shape),
    )
    size = math.inf if diameter is None else diameter
    mu = np.minimum(solve_rows(*whole, diameter=size), _composed(np.broadcast_to(moved / own_noise, uses.shape)))
    if diameter is not None:
        later = np.arange(1, len(uses) + 1)
        if uses.size * len(uses) > _FEW:
            later = np.unique(np.geomspace(1, len(uses), _STARTS).astype(np.int64))
        for begin, most in _begins(factor, uses, until):
            c, nu = (values.reshape(uses.shape) for values in stretches(factor, noise, begin.ravel(), until.ravel()))
            quiet = (c, nu, np.zeros(uses.shape))
            for j in (len(uses) - later[later <= most]).tolist():
                rows = (np.concatenate([a[j : j + 1], b[j + 1 :]]) for a, b in zip(quiet, whole, strict=True))
                mu = np.minimum(mu, solve_rows(*rows, start=diameter, diameter=diameter))
    return np.maximum(mu, 1e-100)


def _begins(factor: Reals, uses: Places, until: Places) -> list[tuple[Places, int]]:
    """Where to start between two uses: right after the first of them, and later too if distances may grow.

    And how many uses may follow: where distances grow, early starts are worthless.
    """
    if factor.max() <= 1:
        return [(uses + 1, len(uses))]
    longest = int(_GROWTH / math.log(factor.max())) + 1  # beyond it distances leave the range of floats
    late = np.union1d(np.arange(1, min(longest, 24)), np.geomspace(1, longest, 24).astype(np.int64)).tolist()
    return [(np.maximum(uses + 1, until - steps), len(uses) if steps == longest else 4) for steps in late]


def _composed(ratio: Reals) -> Reals:
    """mu if every state were released, rounded up."""
    return np.asarray(np.sqrt((ratio * ratio).sum(axis=0)) * (1 + 1e-14 + 4e-16 * len(ratio)))


def mu_of_epochs(
    *, factor: float, noise: float, push: float, stride: int, epochs: int, tails: Places, diameter: float | None = None
) -> Reals:
    """mu of people whose records are used every `stride` equal steps, the last time `tails` steps from the end.

    As in `mu_of_uses`, for contractions (factor <= 1): all passes but the last are one step, whatever their number.

    >>> both = mu_of_epochs(factor=1.0, noise=1.0, push=0.5, stride=100, epochs=50, tails=np.array([100, 1]))
    >>> (both**2).round(9).tolist()  # (1/2)^2 (49/100 + 1/100), (1/2)^2 (49/100 + 1)
    [0.125, 0.3725]
    """
    laps = _Laps(factor, noise, push, stride)
    size = math.inf if diameter is None else diameter
    mu = laps.mu([laps.passes(epochs - 1)], tails, diameter=size)
    mu = np.minimum(mu, math.sqrt(epochs) * push / noise * (1 + 1e-14))
    if diameter is not None:
        for uses in laps.starts(epochs, tails, diameter):
            mu = np.minimum(mu, laps.late(uses, tails, diameter))
    return np.maximum(mu, 1e-100)


@dataclass(frozen=True)
class _Laps:
    """Equal steps, of which every `stride`-th uses the record."""

    factor: float
    noise: float
    push: float
    stride: int

    def steps(self, low: int, high: Places) -> tuple[Reals, Reals]:
        """Contraction and noise of high - low steps."""
        return stretches(np.array([self.factor]), np.array([self.noise]), np.full(high.shape, low), high)

    def passes(self, times: int) -> Row:
        """This many passes, each from a use to the step before the next one."""
        lap = np.array([self.stride])
        c, nu = self.steps(0, lap)
        left = self.steps(1, lap)[0]
        return repeated(float(c[0]), float(nu[0]), self.push * float(left[0]) * (1 + 1e-15), np.array([times]))

    def mu(self, before: list[Row], tails: Places, *, start: float = 0.0, diameter: float = math.inf) -> Reals:
        """The mu of these steps and the last use after them."""
        c, nu = self.steps(0, tails)
        rows = [*before, (c, nu, self.push * self.steps(1, tails)[0] * (1 + 1e-15))]
        columns = (np.stack([np.broadcast_to(row[i], tails.shape) for row in rows]) for i in range(3))
        return solve_rows(*columns, start=start, diameter=diameter)

    def late(self, uses: int, tails: Places, diameter: float) -> Reals:
        """The mu of a run that is counted from the diameter on, right after the use that this many uses follow."""
        if uses == 0:
            c, nu = self.steps(1, tails)
            return solve_rows(c[None], nu[None], np.zeros((1, len(tails))), start=diameter, diameter=diameter)
        c, nu = self.steps(1, np.array([self.stride]))
        before = [(c, nu, np.zeros(1)), self.passes(uses - 1)]
        return self.mu(before, tails, start=diameter, diameter=diameter)

    def starts(self, epochs: int, tails: Places, diameter: float) -> list[int]:
        """How many uses are worth counting: what is best for a few people, from the first to the last."""
        some = tails[np.unique(np.linspace(0, len(tails) - 1, _SOME).astype(np.int64))]
        tried = np.unique(np.round(1.1 ** np.arange(math.log(epochs, 1.1) + 1))).astype(np.int64)
        tried = np.union1d(np.arange(min(epochs, 16)), tried[tried < epochs])
        found = np.stack([self.late(uses, some, diameter) for uses in tried.tolist()])
        return sorted(set(tried[np.argmin(found, axis=0)].tolist()))
