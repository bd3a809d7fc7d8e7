r"""The grid accountant: every loss moved to a lattice, once so that privacy can only look worse, once only better.

How one step is moved is told in `discreet.accounting.discretise`; the two results are wrong by O(step^2) in opposite
directions. The masses are tilted by e^{tl} before
the FFT, so the result is accurate *relative* to delta however small it is; composition is a power in Fourier space.

The inverse transform gives the tilted masses of the sum modulo one period. What other periods add is bounded by
Chernoff's inequality, rounding by its worst case at every frequency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.discretise import LatticeLaw, discretise, loss_span, tails_of
from discreet.accounting.exact import SingleLoss, invert
from discreet.accounting.pair import ROUNDING, Direction, Pair, unit_interval
from discreet.accounting.saddle import Unreachable, saddle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from discreet.accounting.pair import Reals

__all__ = ["GridLines", "grid_for_delta", "grid_for_epsilon"]

_MOST_POINTS = 1 << 20
_ROUGH = 4096
_GOAL = 1e-13
"""Share of delta that windows and aliasing may take."""


@dataclass(frozen=True, eq=False)
class _Table:
    """The composed law of one discretisation: suffix sums from which D is read at any epsilon at once.

    `above[j]` = sum over i >= j of e^{-t (s_i - centre)} m_i with m the tilted masses of one period, `below[j]` the
    same with an extra factor e^{-(s_i - centre)}; both divided by e^`scale`.
    """

    t: float
    start: float
    step: float
    centre: float
    scale: float
    above: Reals
    below: Reals
    log_noise: float
    """ln of a bound of the error of a single tilted mass, before division by e^scale."""
    aliases: tuple[tuple[float, float], ...]
    infinite: float
    shift: float

    def enclosure(self, epsilon: float) -> tuple[float, float]:
        """Lower and upper value of D(epsilon) for this discretisation."""
        index = math.ceil((epsilon - self.start) / self.step)
        if index < 0:
            return 0.0, 1.0
        if index >= len(self.above):
            value = error = 0.0
        else:
            log_scale = min(600.0, self.scale - self.t * self.centre)
            first, second = float(self.above[index]), float(self.below[index]) * math.exp(epsilon - self.centre)
            value = (first - second) * math.exp(log_scale)
            error = (len(self.above) + 64) * ROUNDING * (first + second) * math.exp(log_scale)
        # one period of masses, each off by the noise, weighted with e^{-t (s - epsilon)}
        noise = math.exp(min(600.0, self.log_noise - self.t * epsilon)) / -math.expm1(-self.t * self.step)
        right, left = self._aliases(epsilon)
        # losses beyond the end of the table are in other periods: their whole mass goes to the upper end
        end = max(epsilon, self.start + self.step * len(self.above))
        beyond = min(math.exp(min(0.0, log_mean - s * end)) for s, log_mean in self.aliases)
        return unit_interval(value - error - noise - right - left, value + error + noise + right + beyond)

    def _aliases(self, epsilon: float) -> tuple[float, float]:
        """Bounds of what the periods to the right and to the left add, by P(S >= x) <= e^{K(s) - s x}."""
        period = len(self.above) * self.step
        right = left = math.inf
        for s, log_mean in self.aliases:
            gap = abs(s - self.t) * period
            if gap > 0:
                bound = math.exp(min(600.0, log_mean - s * epsilon - gap)) / -math.expm1(-gap)
                right, left = (min(right, bound), left) if s > self.t else (right, min(left, bound))
        return right * (1 + 1e-9), left * (1 + 1e-9)


@dataclass(frozen=True, eq=False)
class GridLines:
    """Lower and upper discretisation of one direction, read like a `Line` of the contour accountant."""

    lower: _Table
    upper: _Table

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon)."""
        low = self.lower.enclosure(epsilon + self.lower.shift)[0]
        high = self.upper.enclosure(epsilon - self.upper.shift)[1]
        return unit_interval(low, high + self.upper.infinite)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon at which D passes between the two deltas."""
        if self.upper.infinite >= low_delta:
            raise Unreachable("delta is below the mass outside the grid's window")
        return invert(self.bounds, low_delta, high_delta)


def grid_for_epsilon(
    pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float, width: float = 1e-9
) -> GridLines:
    """Both discretisations, suited to reading D at this epsilon."""
    # D is at least that of any single part, which is enough to place the windows
    single = max(SingleLoss(pair, direction).bounds(epsilon)[0] for pair, _ in pairs)
    windows, coarse = _windows(pairs, direction, math.log(max(single, 1e-280)))
    t, _, log_delta, variance = saddle(coarse.cumulants, epsilon=epsilon)
    return _lines(
        pairs,
        direction,
        windows=windows,
        coarse=coarse,
        t=t,
        epsilon=epsilon,
        log_delta=log_delta,
        variance=variance,
        width=width,
    )


def grid_for_delta(
    pairs: Sequence[tuple[Pair, int]], direction: Direction, delta: float, width: float = 1e-9
) -> GridLines:
    """Both discretisations, suited to finding the epsilon with D(epsilon) = delta."""
    windows, coarse = _windows(pairs, direction, math.log(delta))
    t, epsilon, log_delta, variance = saddle(coarse.cumulants, delta=delta)
    if epsilon <= 0:
        return grid_for_epsilon(pairs, direction, 0.0, width)
    return _lines(
        pairs,
        direction,
        windows=windows,
        coarse=coarse,
        t=t,
        epsilon=epsilon,
        log_delta=log_delta,
        variance=variance,
        width=width,
    )


@dataclass(frozen=True, eq=False)
class _Coarse:
    """A rough table of every part, cut to its window: where to put the tilt and how long a period must be.

    The cut matters: a rare, very large loss that plays no role at this delta would otherwise rule the tilt.
    """

    tables: list[tuple[Reals, Reals, int]]

    def cumulants(self, t: float) -> tuple[float, float, float]:
        total = np.zeros(3)
        for loss, log_mass, count in self.tables:
            exponent = t * loss + log_mass
            top = float(exponent.max())
            terms = np.exp(exponent - top)
            size = float(terms.sum())
            mean = float((terms * loss).sum()) / size
            total += count * np.array([top + math.log(size), mean, float((terms * (loss - mean) ** 2).sum()) / size])
        return float(total[0]), float(total[1]), float(total[2])

    def period(self, t: float, epsilon: float, goal: float, spread: float) -> float:
        """Long enough for Chernoff's inequality to bound what other periods add."""
        right = left = math.inf
        for s in [*(t + k / spread for k in _STRIDES), *(t - k / spread for k in _STRIDES), 0.0]:
            if 0 <= s != t:
                needed = (self.cumulants(s)[0] - s * epsilon - goal) / abs(s - t)
                right, left = (min(right, needed), left) if s > t else (right, min(left, needed))
        return max(right, left, 4 * spread, 1.0 / t)


_STRIDES = (0.5, 1.0, 2.0, 4.0, 8.0, 14.0)


def _windows(
    pairs: Sequence[tuple[Pair, int]], direction: Direction, log_delta: float
) -> tuple[list[tuple[float, float]], _Coarse]:
    """The window of every part, and the rough tables inside."""
    goal = max(log_delta + math.log(_GOAL), -690.0)
    windows, tables = [], []
    for pair, count in pairs:
        low, high = _window(pair, direction, goal - math.log(count))
        step = max((high - low) / _ROUGH, 1e-12)
        _, upper = discretise(pair, direction, step, (low, high), 1.0)
        kept = upper.mass > 0
        tables.append(((upper.origin + step * np.arange(len(upper.mass)))[kept], np.log(upper.mass[kept]), count))
        windows.append((low, high))
    return windows, _Coarse(tables)


def _lines(
    pairs: Sequence[tuple[Pair, int]],
    direction: Direction,
    *,
    windows: list[tuple[float, float]],
    coarse: _Coarse,
    t: float,
    epsilon: float,
    log_delta: float,
    variance: float,
    width: float,
) -> GridLines:
    spread = math.sqrt(variance)
    period = coarse.period(t, epsilon, log_delta + math.log(_GOAL), spread)
    # both discretisations together widen the loss by h^2/4 a step, which moves epsilon by (t+1)/2 times that
    steps = sum(count for _, count in pairs)
    fine = math.sqrt(width * max(epsilon, 1e-3 / (1 + t)) * 8 / ((t + 1) * steps))
    most = max((high - low) / pair.most_points for (low, high), (pair, _) in zip(windows, pairs, strict=True))
    step = _aligned(pairs, max(fine, period / _MOST_POINTS, most))
    size = 1 << max(8, math.ceil(math.log2(period / step)))
    lower, upper = (_Product(t, step, size, spread) for _ in range(2))
    for (pair, count), window in zip(pairs, windows, strict=True):  # one law at a time: memory stays small
        low, high = discretise(pair, direction, step, window, t)
        lower.multiply(low, count)
        del low
        upper.multiply(high, count)
        del high
    return GridLines(lower.table(epsilon), upper.table(epsilon))


class _Product:
    """Composes one of the two discretisations: a power in Fourier space for each law, one inverse transform."""

    def __init__(self, t: float, step: float, size: int, spread: float) -> None:
        self.t, self.step, self.size = t, step, size
        self.others = [t + k / spread for k in _STRIDES] + [s for k in _STRIDES[:-1] if (s := t - k / spread) > 0]
        self.means = np.zeros(len(self.others))
        self.log_large, self.log_size, self.angle = (np.zeros(size // 2 + 1) for _ in range(3))
        self.origin = self.shift = self.log_finite = self.scale = 0.0

    def multiply(self, law: LatticeLaw, count: int) -> None:
        """Takes in `count` uses of one law."""
        value, error, top = _spectrum(law, self.t, self.step, self.size)
        self.angle += count * np.angle(value)
        modulus = np.abs(value)
        del value
        with np.errstate(divide="ignore"):
            self.log_size += count * np.log(modulus)
        self.log_large += count * np.log(modulus + error)
        del modulus
        self.scale += count * top
        self.origin += count * law.origin
        self.shift += count * law.shift
        self.log_finite += count * math.log1p(-law.infinite)
        losses = law.origin + self.step * np.arange(len(law.mass))
        with np.errstate(divide="ignore"):
            log_mass = np.log(law.mass)
        for index, s in enumerate(self.others):
            exponent = s * losses
            exponent += log_mass
            peak = float(exponent.max())
            exponent -= peak
            self.means[index] += count * (peak + math.log(float(np.exp(exponent, out=exponent).sum())) + 1e-12)

    def table(self, epsilon: float) -> _Table:
        """The composed law, around this epsilon."""
        size, step, t = self.size, self.step, self.t
        largest = float(self.log_size[0])
        kept = np.flatnonzero(self.log_size > largest - 60.0)
        product = np.zeros(size // 2 + 1, dtype=complex)
        product[kept] = np.exp(self.log_size[kept] - largest + 1j * self.angle[kept])
        # |prod a - prod b| <= prod (|b| + e) - prod |b| for each frequency; the phases are rounded as well
        blur = np.exp(self.log_large - largest) - np.abs(product)
        blur[kept] += np.abs(product[kept]) * 8 * ROUNDING * (4 + np.abs(self.angle[kept]) + abs(largest))
        noise = float(np.maximum(blur, 0.0).sum()) * 2 / size
        noise += 8 * ROUNDING * (math.log2(size) + 2) * float(np.abs(product).sum()) * 2 / size
        del blur, kept
        masses = np.fft.irfft(np.conj(product), size)
        del product
        # bring the period to [epsilon - a third, epsilon + two thirds): the tilted law is centred near epsilon
        first = math.floor((epsilon - self.origin) / step) - size // 3
        masses = np.maximum(np.roll(masses, -(first % size)), 0.0)
        start = self.origin + first * step
        positions = start + step * np.arange(size) - epsilon
        weight = np.exp(np.clip(-t * positions, -700.0, 600.0)) * masses
        del masses
        above = np.cumsum(weight[::-1])[::-1]
        below = np.cumsum((weight * np.exp(np.clip(-positions, -700.0, 100.0)))[::-1])[::-1]
        scale = self.scale + largest
        return _Table(
            t,
            start,
            step,
            epsilon,
            scale,
            above,
            below,
            math.log(noise) + scale,
            (*zip(self.others, self.means.tolist(), strict=True), (0.0, 0.0)),
            -math.expm1(self.log_finite) * (1 + 1e-12),
            self.shift + 64 * ROUNDING * (abs(self.origin) + abs(epsilon)),
        )


def _spectrum(law: LatticeLaw, t: float, step: float, size: int) -> tuple[np.ndarray, float, float]:
    """sum_j m_j e^{(t + iy)(step j)} e^{t origin} at all y, divided by e^top; a bound of its absolute error; top."""
    exponent = t * (law.origin + step * np.arange(len(law.mass)))
    with np.errstate(divide="ignore"):
        logs = exponent + np.log(law.mass)
    top = float(logs.max())
    if not math.isfinite(top):
        raise Unreachable("the losses are too far apart for one grid")
    tilted = np.exp(logs - top)
    pad = -len(tilted) % size
    folded = np.concatenate([tilted, np.zeros(pad)]).reshape(-1, size).sum(axis=0)
    value = np.conj(np.fft.rfft(folded))
    # every input reaches an output through log2(size) butterflies, each rounding relatively
    error = 8 * ROUNDING * (math.log2(size) + 2) * float(folded.sum())
    error += 4 * ROUNDING * float((tilted * (1 + np.abs(exponent) + abs(top))).sum())
    return value, error, top


def _window(pair: Pair, direction: Direction, budget: float) -> tuple[float, float]:
    """Losses outside of which the mass is at most e^budget on either side."""
    low, high = loss_span(pair, direction)

    def outside(x: float, column: int) -> bool:
        return math.log(max(1e-320, float(tails_of(pair, direction, np.array([x]))[column][0]))) <= budget

    reach = 1e-6
    while reach < 1e12 and not (outside(reach, 0) and outside(-reach, 1)):
        reach *= 2
    if high > 0:
        high = _bisect(lambda x: not outside(x, 0), max(low, -reach), min(high, reach))
    if low < 0:
        low = _bisect(lambda x: outside(x, 1), max(low, -reach), high)
    return min(low, high), max(low, high)


def _bisect(left_of: Callable[[float], bool], low: float, high: float) -> float:
    """The border between where left_of holds (low) and where it does not (high), from outside the window."""
    first = low
    for _ in range(40):
        middle = 0.5 * (low + high)
        if left_of(middle):
            low = middle
        else:
            high = middle
        if high - low < 1e-3 * abs(high - first):
            break
    return high


def _aligned(pairs: Sequence[tuple[Pair, int]], step: float) -> float:
    """The largest step <= `step` that divides the distance of the two atoms of the heaviest law that has them."""
    for pair, _ in sorted(pairs, key=lambda item: -item[1]):
        positions, _masses = pair.atoms()
        if len(positions) >= 2:
            gap = float(positions[-1] - positions[0])
            return gap / math.ceil(gap / step)
    return step
