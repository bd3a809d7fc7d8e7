r"""The convex program behind every fixed-order bound of a last iterate, and its certified solution.

A process takes steps w_t = phi_t(w_{t-1}) + N(0, nu_t^2 I). On neighbouring data phi_t differs by at most s_t, and it
is c_t-Lipschitz. If a_t >= 0 and z_t >= 0 satisfy

    z_0 = 0,        z_t = c_t z_{t-1} + s_t - a_t,        z_T = 0,

then w_T is mu-GDP with mu^2 = sum_t (a_t / nu_t)^2 [Bok et al. 2024]; see docs/proofs/iteration.md. On a bounded set of
diameter D one may start at any time from z = D instead, and z may be cut to D before every step.

**Finding a good allocation.** With w_t = prod_{i>t} c_i, time x_t = sum_{i<=t} (nu_i w_i)^2 and pushes
y_t = sum_{i<=t} s_i w_i, the cumulative allocation is a convex function below the points (x_t, y_t), and the one of
least energy is their lower convex hull: mu^2 = sum over its edges of (dy)^2 / dx. Only points right before a push can
be corners.

**Certifying it.** Whatever the hull's rounding, `_certified` walks once through the recursion with z rounded up and
every a_t cut to what is there. What it returns is the energy of an allocation that satisfies the constraints, so it is
an upper bound whoever proposed it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["Solution", "lower_hull", "solve"]

_UP = 1.0 + 2.0**-50
"""Covers the four roundings of one step of the recursion."""

_LEAST = 1e-300
"""Added to every distance, so that what underflows is not forgotten."""

_BLUR = 2.0**-50
"""Points within rounding of a line are taken to be on it."""

_FEW = 1000
"""Up to this many steps every start from the diameter is tried."""

_RANGE = 150.0
"""Beyond e^150 between the weights of two steps the earlier ones are not optimised over: their products underflow."""


@dataclass(frozen=True, eq=False)
class Solution:
    """An allocation that satisfies the constraints, and its energy rounded up."""

    mu: float
    """sqrt(sum (a_t / nu_t)^2), rounded up."""
    shifts: Reals
    """a_t, how much of the distance step t's noise hides."""
    start: int
    """How many steps are left out: 0, or the time at which the distance is taken to be the diameter."""


@dataclass(frozen=True, eq=False)
class _Steps:
    """The schedule from some step on, with the logarithms of the weights w_t."""

    contraction: Reals
    noise: Reals
    push: Reals
    weight: Reals
    diameter: float

    def since(self, start: int) -> _Steps:
        return _Steps(
            self.contraction[start:], self.noise[start:], self.push[start:], self.weight[start:], self.diameter
        )


def solve(contraction: Reals, noise: Reals, push: Reals, *, diameter: float = math.inf) -> Solution:
    """The least mu that the program gives, certified, in O(T) for an unbounded set.

    With a diameter every start is tried if there are few, else those 1, 2, 4, ... steps from the end, then some
    between the best of them; every start is valid, so what is not tried can only make the bound looser.

    >>> quiet = np.array([1.0, 0.0, 0.0, 0.0])
    >>> round(solve(np.ones(4), np.ones(4), quiet).mu, 12)
    0.5
    """
    steps = len(push)
    if not push.any():
        return Solution(0.0, np.zeros(steps), 0)
    schedule = _Steps(contraction, noise, push, _weights(contraction), diameter)
    whole = _from(schedule, 0, 0.0)
    if diameter == math.inf:
        return whole
    energy: dict[int, float] = {}

    def estimate(start: int) -> float:
        if start not in energy:
            late = schedule.since(start)
            energy[start] = _energy(_slopes(late, diameter), late)
        return energy[start]

    best = _best_start(estimate, steps)
    late = _from(schedule, best, diameter)
    return late if late.mu < whole.mu else whole


def _best_start(estimate: Callable[[int], float], steps: int) -> int:
    """The start with the least energy among those tried: all of them if they are few."""
    if steps <= _FEW:
        return min(range(steps), key=estimate)
    spans, span = [], 1
    while span < steps:
        spans.append(span)
        span *= 2
    spans.append(steps)
    found: list[tuple[float, int]] = []
    for span in spans:
        found.append((estimate(steps - span), span))
        if len(found) > 6 and min(found)[1] < spans[len(found) - 6]:
            break  # it has been growing for five doublings
    span = min(found)[1]
    low, high = max(1, span // 2), min(steps, 2 * span)
    while high - low > 2:  # by thirds: the energy falls and then grows with the number of steps that are counted
        third = max(1, (high - low) // 3)
        left, right = low + third, high - third
        if left >= right:
            break
        if estimate(steps - left) <= estimate(steps - right):
            high = right
        else:
            low = left
    best = span
    for candidate in range(low, high + 1):
        if estimate(steps - candidate) < estimate(steps - best):
            best = candidate
    return steps - best


def _weights(contraction: Reals) -> Reals:
    """ln of w_t = prod_{i>t} c_i: how much of a push at step t is left at the end."""
    with np.errstate(divide="ignore"):
        logs = np.log(contraction)
    later = np.concatenate([logs[1:], [0.0]])
    return np.cumsum(later[::-1])[::-1]


def _slopes(steps: _Steps, distance: float) -> Reals:
    """For each step the slope of the hull there: a_t = slope nu_t^2 w_t. Infinite: take all that is left.

    Far-off steps whose weight leaves the range of floats get slope 0 if the process contracts, else infinity: both
    are allowed.
    """
    log_weight = steps.weight
    slopes = np.zeros(len(log_weight))
    if not len(slopes):
        return slopes
    first = _window(log_weight)
    if first and not log_weight[first - 1] < log_weight[first]:
        slopes[:first] = math.inf
        carried = 0.0
    else:
        carried = _carried(first, distance, steps)
    scaled = np.exp(log_weight[first:] - float(log_weight[first:].max()))
    pushes = steps.push[first:] * scaled
    pushes[0] += carried * float(steps.contraction[first]) * float(scaled[0])
    x, y = _walk((steps.noise[first:] * scaled) ** 2, pushes)
    later = np.flatnonzero(pushes[1:] > 0) + 1  # a corner can only be right before a push
    corners = np.concatenate([[0], later, [len(pushes)]])
    hull = corners[lower_hull(x[corners], y[corners])]
    width = np.diff(hull)
    rise, run = np.diff(y[hull]), np.diff(x[hull])
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = np.where(rise > 0, rise / run, 0.0)
    slopes[first:] = np.repeat(edge, width) * math.exp(-float(log_weight[first:].max()))
    return np.where(np.isnan(slopes), math.inf, slopes)


def _window(log_weight: Reals) -> int:
    """The first step from which on all weights are within e^150 of each other."""
    least = np.minimum.accumulate(log_weight[::-1])
    most = np.maximum.accumulate(log_weight[::-1])
    return len(log_weight) - int(np.searchsorted(most - least, _RANGE, side="right"))


def _carried(first: int, distance: float, steps: _Steps) -> float:
    """The distance before step `first` if nothing is taken off it; approximate, it only guides the hull."""
    with np.errstate(over="ignore", invalid="ignore"):
        left = np.exp(steps.weight[:first] - steps.weight[first - 1]) if first else np.ones(0)
        start = distance * float(steps.contraction[0] * left[0]) if first else distance
        total = start + float((steps.push[:first] * left).sum())
    return total if math.isfinite(total) else 0.0


def _walk(times: Reals, pushes: Reals) -> tuple[Reals, Reals]:
    """Cumulative time and push, summed from the end at which the terms are small."""
    if times[0] <= times[-1]:
        return np.concatenate([[0.0], np.cumsum(times)]), np.concatenate([[0.0], np.cumsum(pushes)])
    x, y = np.cumsum(times[::-1])[::-1], np.cumsum(pushes[::-1])[::-1]
    return -np.append(x, 0.0), -np.append(y, 0.0)


def lower_hull(x: Reals, y: Reals) -> NDArray[np.intp]:
    """Indices of the corners of the lower convex hull of points with increasing x, first and last included.

    A point on or above the line between two others is no corner, so all such points are dropped at once, round after
    round; what is left after some rounds is finished one by one.

    >>> lower_hull(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 3.0])).tolist()
    [0, 2, 3]
    """
    kept = np.arange(len(x))
    for _ in range(40):
        if len(kept) < 3:
            return kept
        dx, dy = np.diff(x[kept]), np.diff(y[kept])
        blur = np.abs(y[kept[1:-1]]) * (dx[:-1] + dx[1:]) + np.abs(x[kept[1:-1]]) * (dy[:-1] + dy[1:])
        corner = dy[:-1] * dx[1:] < dy[1:] * dx[:-1] - _BLUR * blur
        if corner.all():
            return kept
        kept = kept[np.concatenate([[True], corner, [True]])]
    chain: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for i in kept.tolist():
        while len(chain) > 1:
            j, k = chain[-2], chain[-1]
            if (ys[k] - ys[j]) * (xs[i] - xs[k]) < (ys[i] - ys[k]) * (xs[k] - xs[j]):
                break
            chain.pop()
        chain.append(i)
    return np.array(chain)


def _energy(slopes: Reals, steps: _Steps) -> float:
    """sum (slope nu w)^2, approximately."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(((slopes * np.exp(steps.weight) * steps.noise) ** 2).sum())
    return total if math.isfinite(total) else math.inf


def _from(schedule: _Steps, start: int, distance: float) -> Solution:
    """The certified solution that leaves out the steps before `start` and begins with this distance."""
    steps = schedule.since(start)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = _slopes(steps, distance) * steps.noise**2 * np.exp(steps.weight)
    taken = _certified(steps, distance, np.where(np.isnan(wanted), math.inf, wanted))
    with np.errstate(over="ignore"):
        ratios = taken / steps.noise
        energy = float((ratios * ratios).sum())
    mu = math.sqrt(energy) * (1.0 + 1e-14) if math.isfinite(energy) else math.inf
    skipped = np.zeros(start)
    # squares underflow below 1e-154; nothing smaller than 1e-100 is told apart from it
    return Solution(max(mu, 1e-100), np.concatenate([skipped, taken]), start)


def _certified(steps: _Steps, distance: float, wanted: Reals) -> Reals:
    """Walks through the recursion, z rounded up: the allocation that comes out satisfies the constraints.

    The roundings may leave a little distance at the end; the wanted shifts are enlarged by as much beforehand, so
    that it is spread over all steps instead of falling on the last one.
    """
    length = len(wanted)
    enlarged = (wanted * (1.0 + 1e-14 + 2e-15 * length)).tolist()
    shifts: list[float] = []
    take = shifts.append
    reach, z, diameter, up, least = 0.0, distance, steps.diameter, _UP, _LEAST  # globals would take a fifth of the time
    for factor, added, shift in zip(steps.contraction.tolist(), steps.push.tolist(), enlarged, strict=True):
        if z > diameter:  # noqa: PLR1730 - a call of min would take as long as all the rest
            z = diameter
        reach = (factor * z + added) * up + least
        if shift >= reach:
            take(reach)
            z = 0.0
        else:
            take(shift)
            z = reach - shift
    if z > 0.0:
        shifts[-1] = reach
    return np.array(shifts)
