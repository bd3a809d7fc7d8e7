r"""Where to part the losses of sampled Gaussians into small, middle and far ones for :mod:`discreet.accounting.rare`.

Nothing here but `astray` carries a certificate: places are found from sums over coarse cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import Direction, Pair
from discreet.accounting.pairs.gaussian import SampledGaussianPair
from discreet.accounting.pairs.split import SplitStep
from discreet.accounting.saddle import Unreachable, log_chernoff, saddle
from discreet.divergence.special import ndtri_exp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting.pair import Reals

__all__ = [
    "Parts",
    "Steps",
    "astray",
    "cumulants",
    "first_guess",
    "guess",
    "light_place",
    "parts_of",
    "place_for",
    "stop_for",
]


@dataclass(frozen=True, eq=False)
class Parts:
    """The sampled Gaussians of a composition, whose losses may be rare, and all the rest."""

    sampled: list[tuple[SampledGaussianPair, int]]
    others: list[tuple[Pair, int]]

    @property
    def count(self) -> int:
        return sum(count for _, count in self.sampled)

    @property
    def least(self) -> float:
        """The smallest total loss, as a positive number (it may be infinite)."""
        return -sum(count * pair.span[0] for pair, count in [*self.sampled, *self.others])

    def split(self, epsilon: float, place: float, stop: float) -> Steps:
        return Steps(
            [(_split(pair, epsilon, self.count, place, stop), count) for pair, count in self.sampled], self.others
        )


@dataclass(frozen=True, eq=False)
class Steps:
    """The same with every sampled step split."""

    split: list[tuple[SplitStep, int]]
    others: list[tuple[Pair, int]]

    def others_above(self, powers: Reals) -> Reals:
        """Upper bounds of the others' sum of T ln E_Q[w^b] for real b outside (0, 1)."""
        total = np.zeros(len(powers))
        for pair, count in self.others:
            total += count * pair.log_power_bound(powers)
        return total + 1e-12 * np.abs(total)

    @property
    def far(self) -> tuple[float, float]:
        """P and Q of: some loss is far."""
        masses = [(step.far_masses, count) for step, count in self.split]
        p, q = (-math.expm1(sum(count * math.log1p(-mass[k]) for mass, count in masses)) for k in (0, 1))
        return p, q


def parts_of(pairs: Sequence[tuple[Pair, int]], direction: Direction) -> Parts:
    """The parts, if some of them are sampled Gaussians and the rest has finite losses and a transform."""
    if direction is not Direction.FORWARD:
        raise Unreachable("losses of this direction are not rare")
    sampled: list[tuple[SampledGaussianPair, int]] = []
    others: list[tuple[Pair, int]] = []
    for pair, count in pairs:
        if isinstance(pair, SampledGaussianPair) and pair.rate < 1 and pair.end == math.inf:
            sampled.append((pair, count))
        elif pair.has_transform and pair.p_missing == pair.q_missing == pair.blur == 0:
            others.append((pair, count))
        else:
            raise Unreachable("a part has infinite losses or no transform")
    if not sampled or len(pairs) > 8:
        raise Unreachable("there are no sampled Gaussians, or too many kinds")
    return Parts(sampled, others)


def _output(pair: SampledGaussianPair, loss: float) -> float:
    """The output x with this loss > ln(1 - q)."""
    u = loss - math.log(pair.rate) if loss > 600 else math.log1p(math.expm1(loss) / pair.rate)
    return pair.sigma**2 * u + 0.5


def _split(pair: SampledGaussianPair, epsilon: float, count: float, place: float, stop: float) -> SplitStep:
    """Splits the noise at the loss `stop`, and at a `place` from 0, where `count` small losses certainly stay below
    epsilon, to 1, where a single one may exceed it."""
    high = _output(pair, epsilon)
    low = _output(pair, epsilon / count) - 12 * _width(pair, epsilon / count)
    start = low + place * (high - low)
    first = _width(pair, float(pair._ratio(np.array([(start - 0.5) / pair.sigma**2]))[0][0]))
    last = pair.sigma**2 * min(0.5 / pair.sigma, 0.03 * max(1.0, stop))
    return SplitStep(pair.sigma, pair.rate, start, _output(pair, stop) + 9 * last, first, last)


def _width(pair: SampledGaussianPair, loss: float) -> float:
    """How softly to split at this loss."""
    return pair.sigma**2 * min(0.5 / pair.sigma, 0.2 * max(1.0, 0.6 * loss))


def first_guess(parts: Parts, log_delta: float) -> float:
    """epsilon if a single large loss decides: T q P(x > y) = delta."""
    best = 1e-9
    for pair, count in parts.sampled:
        mass = log_delta - math.log(count * pair.rate)
        score = float(-ndtri_exp(mass)) if mass < -0.7 else 0.0
        u = (0.5 + pair.sigma * score) / pair.sigma**2
        best = max(best, float(pair._ratio(np.array([u]))[0][0]))
    return best


def cumulants(steps: Steps, t: float) -> tuple[float, float, float]:
    """K = ln of the transform of "some middle, none far" at real t, with two derivatives (approximate).

    With A = sum T ln s and B = sum T ln((s + m) / s), K = A + ln(e^B - 1).
    """
    a, b = np.zeros(3), np.zeros(3)
    for pair, count in steps.others:
        a += count * np.array(pair.cumulants(t + 1))
    found = [(step.tilted("small", t + 1), step.tilted("middle", t + 1), count) for step, count in steps.split]
    top = max(middle[0] - small[0] for small, middle, _ in found)
    scale = min(top + 20.0, 0.0)  # for rare ones B is proportional to the odds, however small they are
    for small, middle, count in found:
        odds = math.exp(min(600.0, middle[0] - small[0] - scale))
        share = odds / (1 + odds) if scale == 0.0 else odds
        gap = middle[1] - small[1]
        a += count * np.array(small)
        b += count * share * np.array([0.0, gap, middle[2] - small[2] + (1 - share * math.exp(scale)) * gap**2])
        b[0] += count * (math.log1p(odds) if scale == 0.0 else odds)
    size = math.exp(scale) * b[0]
    if size < 1e-7:
        value, growth = math.log(b[0]) + scale, 1 / b[0]
        second = b[2] * growth - (b[1] * growth) ** 2
    else:
        b *= math.exp(scale)
        growth = -1 / math.expm1(-b[0])
        value = b[0] + math.log(-math.expm1(-b[0]))
        second = b[2] * growth + b[1] ** 2 * growth * (1 - growth)
    return float(a[0] + value), float(a[1] + b[1] * growth), max(float(a[2] + second), 0.0)


def guess(parts: Parts, epsilon: float, goal: float) -> tuple[float, float]:
    """ln D(epsilon) to within a factor or so if it is above `goal`, and the tilt there."""
    stop = epsilon + (parts.least if parts.least < 3 * epsilon or parts.count < 30 else 2 * epsilon)
    if stop == math.inf:
        stop = 3 * epsilon
    place = place_for(parts, epsilon, goal, stop, halvings=3)[0]
    place = max(place, light_place(parts, epsilon, place, stop, halvings=3))
    steps = parts.split(epsilon, place, stop)
    p, q = steps.far
    scaled = math.exp(min(700.0, epsilon + math.log(q))) if q > 0 else 0.0
    t, _, log_delta, _ = saddle(lambda s: cumulants(steps, s), epsilon=epsilon)
    if parts.count > _MANY:
        tilt, _, log_small, _ = saddle(lambda s: _small_cumulants(steps, s), epsilon=epsilon)
        if log_small > log_delta:
            t = tilt
        log_delta = float(np.logaddexp(log_delta, log_small))
    return float(np.logaddexp(log_delta, math.log(max(p - scaled, 1e-320)))), t


_MANY = 50
"""So many small losses have a transform that falls by itself."""


def _small_cumulants(steps: Steps, t: float) -> tuple[float, float, float]:
    total = np.zeros(3)
    for pair, count in steps.others:
        total += count * np.array(pair.cumulants(t + 1))
    for step, count in steps.split:
        total += count * np.array(step.tilted("small", t + 1))
    return float(total[0]), float(total[1]), float(total[2])


def light_place(parts: Parts, epsilon: float, place: float, stop: float, halvings: int = 5) -> float:
    """The largest place at which the small losses, tilted towards epsilon, still fall off before the split: then a
    contour of their own reads them. Zero where the split is high enough already, or the losses are few."""
    steps = parts.split(epsilon, place, stop)
    if parts.count <= _MANY or all(np.interp(s.start, s.edges, s.loss) > 0.1 * epsilon for s, _ in steps.split):
        return 0.0

    def is_light(place: float) -> bool:
        steps = parts.split(epsilon, place, stop)
        t = saddle(lambda s: _small_cumulants(steps, s), epsilon=epsilon)[0]
        return all(t * np.interp(s.start, s.edges, s.loss) <= 0.8 * (s.start - 1) for s, _ in steps.split)

    low, high = 0.0, 1.0
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if is_light(middle):
            low = middle
        else:
            high = middle
    return low


def astray(steps: Steps, epsilon: float) -> tuple[tuple[float, float], ...]:
    """(s, ln of a bound of E_Q[w^-s; some far]): sum_i T_i E_Q[chi_i w^-s] / E_Q[w^-s] times prod E_Q[w^-s]."""
    orders = np.geomspace(0.5, 300.0, 20) / epsilon
    total = steps.others_above(-orders)
    some = np.full(len(orders), -np.inf)
    least = sum(-count * math.log1p(-step.rate) for step, count in steps.split)
    for step, count in steps.split:
        worst = -orders * math.log1p(-step.rate)
        if least > 0.3 * epsilon and step.pair.node_count((-float(orders[-1]), 0.0), 0.0) < 3_000:
            worst = np.clip(step.pair.log_power_bound(-orders), 0.0, worst)
        total += count * worst
        some = np.logaddexp(some, math.log(count) + step.log_mean_above("far", -orders))
    return tuple(zip(orders.tolist(), (total + some).tolist(), strict=True))


def stop_for(parts: Parts, epsilon: float, goal: float) -> float:
    """The loss from which on a single one settles that the total is above epsilon."""
    if parts.least > 0.3 * epsilon:
        for share in (1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0):
            if share * epsilon > epsilon + parts.least:
                break
            found = astray(parts.split(epsilon, 1.0, share * epsilon), epsilon)
            if min(value + (1 + s) * epsilon + log_chernoff(s) for s, value in found) <= goal:
                return share * epsilon
    if parts.least == math.inf:
        raise Unreachable("no single loss settles that the total is above epsilon")
    return epsilon + parts.least


def place_for(parts: Parts, epsilon: float, goal: float, stop: float, halvings: int = 6) -> tuple[float, float]:
    """The largest place up to which all may be called small and together still stay below epsilon, and the order s
    of Chernoff's inequality that shows it."""
    orders = np.geomspace(0.5, 3e3, 40) / epsilon
    shift = np.array([log_chernoff(s) for s in orders]) - orders * epsilon
    shift += parts.split(epsilon, 0.0, stop).others_above(orders + 1.0)

    def best(place: float) -> tuple[float, float]:
        total = shift.copy()
        for step, count in parts.split(epsilon, place, stop).split:
            total += count * _log_tilted(step, orders + 1.0)
        enough = np.flatnonzero(total <= goal - 2.0)
        index = int(enough[0]) if len(enough) else int(np.nanargmin(total))
        return float(total[index]), float(orders[index])

    low, high = 0.0, 1.0
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if best(middle)[0] <= goal - 2.0:
            low = middle
        else:
            high = middle
    return low, best(low)[1]


def _log_tilted(step: SplitStep, powers: Reals) -> Reals:
    """ln E_Q[psi_small w^b] for real b, roughly."""
    width = np.diff(step.edges)
    weight = np.log(0.5 * (np.append(width, 0.0) + np.append(0.0, width)))
    logs = step.parts["small"].log_density + weight
    kept = slice(0, int(np.searchsorted(step.edges, step.start + 12 * step.start_width)))
    terms = np.outer(powers, step.loss[kept]) + logs[kept]
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
