r"""The accountant of rare large losses: a few rarely sampled Gaussian steps, or deep tails of many.

Under a plain contour the ordinary outputs of a rarely sampled step (losses near ln(1 - q), all but nothing) hide the
rare ones that decide delta, and the far ones that cannot matter any more forbid a strong tilt. Here the law mu of one
loss is split softly, mu = small + middle + far, and D(eps) = E (1 - e^{eps-L})_+ into three

- some loss far: then L > eps all but surely and D = P(far) - e^eps Q(far), in closed form;
- none far, some in the middle: the positive measure (small + middle)^{*T} - small^{*T}, whose transform
  (s + m)^T - s^T falls as fast as m does; read by the trapezoid rule on a vertical line, like any contour;
- all small: bounded by Chernoff's inequality, or read on a line of its own where that is not negligible.

Proof: docs/proofs/rare.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.contour import Line, line_for_epsilon
from discreet.accounting.nodes import Nodes, log_near_one, log_power_line_of, log_power_mean_of
from discreet.accounting.pair import ROUNDING, Direction, Pair, unit_interval
from discreet.accounting.pairs.split import SmallPair
from discreet.accounting.partition import (
    Parts,
    Steps,
    astray,
    cumulants,
    first_guess,
    guess,
    light_place,
    parts_of,
    place_for,
    stop_for,
)
from discreet.accounting.saddle import Unreachable, log_chernoff, saddle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting.pair import Complexes, Reals
    from discreet.accounting.pairs.split import SplitStep

__all__ = ["RareLosses", "rare_for_delta", "rare_for_epsilon"]

_GOAL = math.log(1e-12)
"""ln of the share of delta that each neglected part may take."""

_MOST_WORK = 4e7


@dataclass(frozen=True, eq=False)
class RareLosses:
    """The three parts, each with what is needed to bound it at any epsilon."""

    line: Line
    far: tuple[float, float]
    """P(some far) and Q(some far)."""
    astray: tuple[tuple[float, float], ...]
    """(s, upper bound of ln E_Q[w^-s; some far]): what of it may still end below epsilon."""
    ordinary: tuple[tuple[float, float], ...]
    """(s, upper bound of K of the small part)."""
    small: Line | None = None
    """The line of the small part, if it is not negligible."""

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon)."""
        low, high = self.line.bounds(epsilon)
        p, q = self.far
        scaled = math.exp(min(700.0, epsilon + math.log(q))) if q > 0 else 0.0
        slack = 1e-290 + 1e-12 * p + (1e-12 + 4 * ROUNDING * abs(epsilon)) * scaled
        small_low, small_high = (0.0, self._ordinary(epsilon)) if self.small is None else self.small.bounds(epsilon)
        high += max(0.0, p - scaled) + slack + self._astray(epsilon) + small_high
        low += max(0.0, p - scaled - slack) + small_low
        return unit_interval(low * (1 - 8 * ROUNDING), high * (1 + 8 * ROUNDING))

    def _astray(self, epsilon: float) -> float:
        return min(math.exp(min(0.0, value + (1 + s) * epsilon + log_chernoff(s) + 1e-9)) for s, value in self.astray)

    def _ordinary(self, epsilon: float) -> float:
        return min(math.exp(min(0.0, value - s * epsilon + log_chernoff(s) + 1e-9)) for s, value in self.ordinary)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon at which D passes between the two deltas."""
        if self.bounds(0.0)[1] <= low_delta:
            return 0.0, 0.0
        guess, _ = _newton(self, 0.5 * (low_delta + high_delta), self.line.start)
        return self._certify(guess, high_delta, side=-1), self._certify(guess, low_delta, side=+1)

    def _certify(self, guess: float, delta: float, *, side: int) -> float:
        """The point nearest the guess, on the given side, at which the bounds prove the claim."""
        step = 1e-16 * guess
        while step < guess:
            low, high = self.bounds(guess + side * step)
            if (high <= delta) if side > 0 else (low >= delta):
                return guess + side * step
            step *= 1.5
        return math.inf if side > 0 else 0.0


def rare_for_epsilon(pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float) -> RareLosses:
    """A reader suited to this epsilon."""
    parts = parts_of(pairs, direction)
    if epsilon <= 0:
        raise Unreachable("a loss above 0 is not rare")
    log_delta = guess(parts, epsilon, guess(parts, epsilon, -40.0)[0])[0]
    return _reader(parts, epsilon, log_delta)


def rare_for_delta(pairs: Sequence[tuple[Pair, int]], direction: Direction, delta: float) -> RareLosses:
    """A reader suited to the epsilon with D(epsilon) = delta."""
    parts = parts_of(pairs, direction)
    goal = math.log(delta)
    epsilon, low, high = first_guess(parts, goal), 0.0, math.inf
    for _ in range(12):
        log_delta, tilt = guess(parts, epsilon, goal)
        if log_delta > goal:
            low = epsilon
        else:
            high = epsilon
        if abs(log_delta - goal) < 0.7:
            break
        moved = epsilon + (log_delta - goal) / tilt
        moved = min(max(moved, epsilon / 4, low), epsilon * 4, high)
        if not low < moved < high:
            moved = 0.5 * (low + high) if high < math.inf else 2 * low
        epsilon = moved
    reader = _reader(parts, epsilon, goal)
    for _ in range(4):
        found, width = _newton(reader, delta, epsilon)
        if abs(found - epsilon) <= 0.02 * epsilon or not found > 0:
            break
        better = abs(found - epsilon) < 0.1 * epsilon and width < 1e-10
        if better:
            break
        epsilon = found
        reader = _reader(parts, epsilon, goal)
    return reader


def _newton(reader: RareLosses, delta: float, epsilon: float) -> tuple[float, float]:
    """An epsilon at which the middle of the bracket is about delta, and the relative width of the bracket there."""
    goal = math.log(delta)
    width = math.inf
    for _ in range(12):
        low, high = reader.bounds(epsilon)
        other_low, other_high = reader.bounds(epsilon * (1 + 1e-5))
        here, there = 0.5 * (low + high), 0.5 * (other_low + other_high)
        if not (here > 0 and there > 0 and there < here):
            return epsilon, math.inf
        width = (high - low) / high
        slope = math.log(there / here) / (1e-5 * epsilon)
        move = (goal - math.log(here)) / slope
        move = max(-0.5 * epsilon, min(epsilon, move))
        epsilon += move
        if abs(move) < 1e-15 * epsilon:
            break
    return epsilon, width


def _reader(parts: Parts, epsilon: float, log_delta: float) -> RareLosses:
    goal = log_delta + _GOAL
    stop = stop_for(parts, epsilon, goal)
    place, order = place_for(parts, epsilon, goal, stop)
    light = light_place(parts, epsilon, place, stop)
    if light > place:
        try:
            return _split_at(parts, epsilon, goal, light, stop, order=0.0)
        except Unreachable:
            pass
    return _split_at(parts, epsilon, goal, place, stop, order=order)


def _split_at(parts: Parts, epsilon: float, goal: float, place: float, stop: float, *, order: float) -> RareLosses:
    """The reader with these places; the small part has a line of its own if Chernoff's inequality has no order."""
    steps = parts.split(epsilon, place, stop)
    t, _, _, variance = saddle(lambda s: cumulants(steps, s), epsilon=epsilon)
    line = _line(steps, t, epsilon, goal, math.sqrt(variance))
    if not order:
        small: list[tuple[Pair, int]] = [(SmallPair(step), count) for step, count in steps.split]
        alone = line_for_epsilon([*small, *parts.others], Direction.FORWARD, epsilon)
        return RareLosses(line, steps.far, astray(steps, epsilon), (), alone)
    orders = order * np.array([0.8, 1.0, 1.2])
    ordinary = steps.others_above(orders + 1.0)
    for step, count in steps.split:
        ordinary += count * _small_above(step, count, orders + 1.0)
    return RareLosses(
        line, steps.far, astray(steps, epsilon), tuple(zip(orders.tolist(), ordinary.tolist(), strict=True))
    )


def _small_above(step: SplitStep, count: int, powers: Reals) -> Reals:
    """Upper bounds of ln E_Q[psi_small w^b] for real b; from cells alone for those that are too large."""
    bounds = step.log_mean_above("small", powers)
    order = np.argsort(powers)
    while len(order):
        chosen = powers[order]
        try:
            nodes = step.nodes("small", (float(chosen[0]), float(chosen[-1])), 0.0, math.log(count))
        except Unreachable:
            order = order[:-1]
            continue
        value, error = _near_one(step, nodes, chosen.astype(complex))
        bounds[order] = np.fmin(bounds[order], value.real + error + 1e-15 * np.abs(value.real))
        break
    return bounds


def _near_one(step: SplitStep, nodes: Nodes, powers: Complexes) -> tuple[Complexes, Reals]:
    """ln E_Q[psi_small w^b] from its distance to 1, and a bound of its error, rounded weights included.

    A node adds its weight times e^{bl} - 1 - b (w - 1), in size at most
    min(|bl|^2, |bl|) (1 + e^{Re bl}) + |b| |l - (w - 1)|.
    """
    value, error = log_power_mean_of(nodes, powers, *step.missing)
    size, loss = np.abs(powers), np.abs(nodes.loss)
    reals, index = np.unique(powers.real, return_inverse=True)
    care = (
        8
        * ROUNDING
        * np.abs(nodes.log_weight)
        * (np.exp(nodes.log_weight) + np.exp(np.outer(reals, nodes.loss) + nodes.log_weight))
    )
    square, linear = (care @ loss**2)[index], (care @ loss)[index]
    bend = (care @ np.abs(nodes.loss - nodes.excess))[index]
    extra = np.minimum(square * size**2, linear * size) + bend * size
    return value, error + 2 * extra * np.exp(-np.minimum(value.real, 0.0))


def _log_rare(steps: Steps, powers: Reals) -> tuple[Reals, list[Reals]]:
    """Upper bounds of ln(prod (s + m)^T - prod s^T) at real points, and of every ln(s + m)."""
    total, some = steps.others_above(powers), np.full(len(powers), -np.inf)
    kept = []
    for step, count in steps.split:
        middle = step.log_mean_above("middle", powers)
        both = np.logaddexp(_small_above(step, count, powers), middle)
        total += count * both
        some = np.logaddexp(some, math.log(count) + middle - both)
        kept.append(both)
    bound = total + np.minimum(some, 0.0) + 1e-12 * (1 + np.abs(total))
    return np.where(np.isfinite(bound), bound, np.inf), kept


def _line(steps: Steps, t: float, epsilon: float, goal: float, width: float) -> Line:
    strides = np.array([0.5, 1.0, 2.0, 4.0, 8.0]) / width
    others = np.concatenate([[t], t + strides, t * np.array([1.1, 1.3]), (t - strides)[t - strides > 0]])
    bounds, each = _log_rare(steps, others + 1.0)
    aliases = list(zip(others[1:].tolist(), bounds[1:].tolist(), strict=True))
    mass = sum(count * step.missing[0] for step, count in steps.split)
    aliases.append((0.0, min(0.0, math.log(max(mass, 1e-300)) + 1e-9)))
    right = min((v - s * epsilon + log_chernoff(s) - goal) / (s - t) for s, v in aliases if s > t)
    left = min((v - s * epsilon + log_chernoff(s) - goal) / (t - s) for s, v in aliases if s < t)
    period = max(right, left, 4 * width, 1.0 / t)
    spacing = 2 * math.pi / period
    reaches = math.sqrt(60) / width * 1.3 ** np.arange(-2, 40)
    log_cut = np.full(len(reaches), -np.inf)
    total = float(steps.others_above(others[:1] + 1.0)[0])
    total += sum(count * float(both[0]) for both, (_, count) in zip(each, steps.split, strict=True))
    for (step, count), both in zip(steps.split, each, strict=True):
        decay = step.log_decay("middle", t + 1, reaches)
        log_cut = np.logaddexp(log_cut, math.log(count) + decay - float(both[0]))
    log_cut = log_cut + total + 1e-9 - np.log(math.pi * reaches)
    good = np.flatnonzero(log_cut - t * epsilon <= goal)
    if not len(good):
        raise Unreachable("the transform of the rare losses does not fall fast enough")
    count = math.ceil(float(reaches[good[0]]) / spacing) + 1
    log_value, log_error = _values(steps, t, spacing, count)
    return Line(
        t,
        spacing * np.arange(count),
        log_value,
        log_error,
        period,
        tuple(aliases),
        float(log_cut[good[0]]),
        0.0,
        0.0,
        epsilon,
    )


def _values(steps: Steps, t: float, spacing: float, count: int) -> tuple[Complexes, Reals]:
    r"""ln V, V = prod (s + m)^T - prod s^T, at t + i spacing n, and a bound of its error.

    With r = max(|s|, |s + m|) for each step, errors e_s and e_m of s and m move V by at most

        prod r^T e^{sum T (e_s + e_m)/r} [sum T e_m/r + min(2, sum T (|m| + e_m)/r) sum T e_s/r].
    """
    power, reach = t + 1, spacing * (count - 1)
    log_small, odds = np.zeros(count, dtype=complex), np.zeros(count, dtype=complex)
    log_peak, error_s, error_m, jumps, rounding = (np.zeros(count) for _ in range(5))
    for pair, times in steps.others:
        value, error = pair.log_power_mean(power + 1j * spacing * np.arange(count))
        log_small += times * value
        log_peak += times * value.real
        error_s += times * np.expm1(error + 8 * ROUNDING * np.abs(value))
    for step, times in steps.split:
        few, most = (
            step.nodes("middle", (power, power), reach),
            step.nodes("small", (power, power), reach, math.log(times)),
        )
        work = count * (len(few.loss) + len(most.loss))
        if work > _MOST_WORK:
            raise Unreachable(f"{work:.1e} evaluations of the integrand would be needed")
        value, error, log_start, start_error = log_power_line_of(few, power, spacing, count)
        middle, middle_error = value + log_start, error + start_error
        small, small_error = _small_line(step, most, power, spacing=spacing, count=count, times=times)
        ratio = np.exp(middle - small)
        log_odds = log_near_one(ratio)
        size = np.maximum(np.abs(1 + ratio), 1.0)
        log_small += times * small
        odds += times * log_odds
        log_peak += times * (small.real + np.log(size))
        error_m += (
            times * np.abs(ratio) / size * np.expm1(middle_error + 32 * ROUNDING * (1 + np.abs(middle) + np.abs(small)))
        )
        error_s += times / size * np.expm1(small_error + 8 * ROUNDING * np.abs(small))
        jumps += times * np.abs(ratio) / size
        rounding += times * np.abs(log_odds)
    top = log_peak[0]
    both, alone = log_small + odds - top, log_small - top
    near = np.abs(odds) < 1.0
    close = np.where(near, odds, 0.0)
    shifted = np.expm1(close.real) * np.cos(close.imag) - 2 * np.sin(close.imag / 2) ** 2
    change = shifted + 1j * np.exp(close.real) * np.sin(close.imag)
    value = np.where(near, np.exp(alone) * change, np.exp(both) - np.exp(alone))
    with np.errstate(over="ignore"):
        blur = np.exp(log_peak - top + error_s + error_m)
        error = blur * (error_m + np.minimum(2.0, jumps + error_m) * error_s)
    care = 16 * ROUNDING * (2 + np.abs(log_small) + abs(top))
    large = np.exp(both.real) + np.exp(alone.real)
    error += np.where(
        near, np.abs(value) * care + 32 * ROUNDING * large * rounding, large * (care + 16 * ROUNDING * rounding)
    )
    error = np.where(np.isfinite(error), error, np.inf) * (1 + 1e-9) + 1e-250
    lost = ~(np.abs(value) > error)
    value = np.where(lost, np.minimum(error, 1e250), value)
    return np.log(value) + top, np.where(lost, math.log(4.0), np.log1p(error / np.abs(value)))


def _small_line(
    step: SplitStep, nodes: Nodes, power: float, *, spacing: float, count: int, times: int
) -> tuple[Complexes, Reals]:
    """ln E_Q[psi_small w^b] along the line and a bound of its error."""
    if times > 3_000_000 or count * len(nodes.loss) < 2_000:
        return _near_one(step, nodes, power + 1j * spacing * np.arange(count))
    value, error, plain, plain_error = log_power_line_of(nodes, power, spacing, count)
    start, bound = _near_one(step, nodes, np.array([complex(power)]))
    if plain_error < bound[0]:  # the sum is far from 1, nothing is gained by its distance to it
        return value + plain, error + plain_error
    return value + start[0].real, error + bound[0]
