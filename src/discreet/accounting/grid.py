r"""The grid accountant: every loss moved to a lattice, once so that privacy can only look worse, once only better.

How one step is moved is told in `discreet.accounting.discretise`; the two results are wrong by O(step^2) in opposite
directions. The masses are tilted by e^{tl} before
the FFT, so the result is accurate *relative* to delta however small it is; composition is a power in Fourier space, and
the sum over the lattice is the one of `discreet.accounting.contour` with its certificate for aliasing and rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.contour import Line, Unreachable, period_for, saddle
from discreet.accounting.discretise import LatticeLaw, discretise, loss_span, tails_of
from discreet.accounting.pair import ROUNDING, Direction, Pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting.pair import Reals

__all__ = ["GridLines", "grid_for_delta", "grid_for_epsilon"]

_MOST_POINTS = 1 << 21
_GOAL = 1e-13
"""Share of delta that windows and aliasing may take."""


@dataclass(frozen=True, eq=False)
class _Side:
    """One discretised composition: its line and how far epsilon must be moved to pay for rounding."""

    line: Line
    infinite: float
    shift: float


@dataclass(frozen=True, eq=False)
class GridLines:
    """Lower and upper discretisation of one direction, read like a `Line`."""

    lower: _Side
    upper: _Side

    def bounds(self, epsilon: float) -> tuple[float, float]:
        low = self.lower.line.bounds(epsilon + self.lower.shift)[0]
        high = self.upper.line.bounds(epsilon - self.upper.shift)[1]
        return low, min(1.0, high + self.upper.infinite)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon at which D passes between the two deltas."""
        room = low_delta - self.upper.infinite
        if room <= 0:
            raise Unreachable("delta is below the mass outside the grid's window")
        high = max(0.0, self.upper.line.epsilon_bounds(room, room)[1] + self.upper.shift)
        low = max(0.0, self.lower.line.epsilon_bounds(high_delta, high_delta)[0] - self.lower.shift)
        return low, high


def grid_for_epsilon(
    pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float, width: float = 1e-9
) -> GridLines:
    """Both discretisations, suited to reading D at this epsilon."""
    t, _, log_delta, variance = saddle(pairs, direction, epsilon=epsilon)
    return _lines(pairs, direction, t=t, epsilon=epsilon, log_delta=log_delta, variance=variance, width=width)


def grid_for_delta(
    pairs: Sequence[tuple[Pair, int]], direction: Direction, delta: float, width: float = 1e-9
) -> GridLines:
    """Both discretisations, suited to finding the epsilon with D(epsilon) = delta."""
    t, epsilon, log_delta, variance = saddle(pairs, direction, delta=delta)
    if epsilon <= 0:
        return grid_for_epsilon(pairs, direction, 0.0, width)
    return _lines(pairs, direction, t=t, epsilon=epsilon, log_delta=log_delta, variance=variance, width=width)


def _lines(
    pairs: Sequence[tuple[Pair, int]],
    direction: Direction,
    *,
    t: float,
    epsilon: float,
    log_delta: float,
    variance: float,
    width: float,
) -> GridLines:
    goal = log_delta + math.log(_GOAL)
    windows = [_window(pair, count, direction, t=t, goal=goal) for pair, count in pairs]
    spread = math.sqrt(variance)
    period, _ = period_for(pairs, direction, t=t, epsilon=epsilon, goal=goal, width=spread)
    # both discretisations together widen the loss by h^2/4 a step, which moves epsilon by (t+1)/2 times that
    steps = sum(count for _, count in pairs)
    fine = math.sqrt(width * max(epsilon, 1e-3 / (1 + t)) * 8 / ((t + 1) * steps))
    step = max(fine, period / _MOST_POINTS, max(high - low for low, high in windows) / _MOST_POINTS)
    step = _aligned(pairs, direction, step)
    size = 1 << max(8, math.ceil(math.log2(period / step)))
    if size > 2 * _MOST_POINTS:
        raise Unreachable("the grid would need too many points")
    laws = [
        (discretise(pair, direction, step, window, t), count)
        for (pair, count), window in zip(pairs, windows, strict=True)
    ]
    heights = 2 * math.pi / (size * step) * np.arange(size // 2 + 1)
    sides = [_side(laws, which, t, step, size, heights, epsilon, spread) for which in (0, 1)]
    return GridLines(*sides)


def _side(
    laws: Sequence[tuple[tuple[LatticeLaw, LatticeLaw], int]],
    which: int,
    t: float,
    step: float,
    size: int,
    heights: Reals,
    epsilon: float,
    spread: float,
) -> _Side:
    """Composes one of the two discretisations."""
    others = [t + k / spread for k in (0.5, 1.0, 2.0, 4.0, 8.0, 14.0)]
    others += [s for k in (0.5, 1.0, 2.0, 4.0, 8.0) if (s := t - k / spread) > 0]
    means = np.zeros(len(others))
    log_value = np.zeros(len(heights), dtype=complex)
    log_error = np.zeros(len(heights))
    origin = shift = log_finite = 0.0
    for both, count in laws:
        law = both[which]
        value, error, top = _spectrum(law, t, step, size)
        modulus = np.abs(value)
        lost = modulus < 4 * error
        safe = np.where(lost, 4 * error, modulus)
        log_value += count * (np.where(lost, np.log(safe), np.log(np.where(lost, 1.0, value))) + top)
        log_value += count * (1j * heights * law.origin)
        log_error += count * np.where(lost, math.log(3.25), -np.log1p(-np.where(lost, 0.0, error / safe)))
        origin += count * law.origin
        shift += count * law.shift
        log_finite += count * math.log1p(-law.infinite)
        losses = law.origin + step * np.arange(len(law.mass))
        for index, s in enumerate(others):
            exponent = s * losses
            peak = float(exponent.max())
            means[index] += count * (peak + math.log(float((np.exp(exponent - peak) * law.mass).sum())) + 1e-12)
    log_error += 16 * ROUNDING * (1 + np.abs(log_value))
    aliases = (*zip(others, means.tolist(), strict=True), (0.0, 0.0))
    keep, log_cut = _significant(log_value, t, heights, step, size)
    line = Line(
        t, heights[keep], log_value[keep], log_error[keep], size * step, aliases, log_cut, origin, step, start=epsilon
    )
    return _Side(line, -math.expm1(log_finite) * (1 + 1e-12), shift + 64 * ROUNDING * (abs(origin) + abs(epsilon)))


def _significant(log_value: np.ndarray, t: float, heights: Reals, step: float, size: int) -> tuple[Reals, float]:
    """Frequencies worth keeping, and ln of a bound of what the others contribute (before the factor e^{-t x})."""
    z = t + 1j * heights
    kernel = step * (1 / np.abs(np.expm1(-z * step)) + 1 / np.abs(np.expm1(-(z + 1) * step)))
    size_of = log_value.real + np.log(kernel)
    keep = size_of >= size_of[0] - 46.0
    keep[0] = True
    dropped = size_of[~keep]
    if not len(dropped):
        return keep, -math.inf
    top = float(dropped.max())
    # a dropped term is lost in its own error at worst three times over
    return keep, top + math.log(4 * 2 * float(np.exp(dropped - top).sum()) / (size * step)) + t * step


def _spectrum(law: LatticeLaw, t: float, step: float, size: int) -> tuple[np.ndarray, float, float]:
    """sum_j m_j e^{(t + iy)(step j)} e^{t origin} at all y, divided by e^top; a bound of its absolute error; top."""
    exponent = t * (law.origin + step * np.arange(len(law.mass)))
    with np.errstate(divide="ignore"):
        logs = exponent + np.log(law.mass)
    top = float(logs.max())
    tilted = np.exp(logs - top)
    pad = -len(tilted) % size
    folded = np.concatenate([tilted, np.zeros(pad)]).reshape(-1, size).sum(axis=0)
    value = np.conj(np.fft.rfft(folded))
    # every input reaches an output through log2(size) butterflies, each rounding relatively
    error = 8 * ROUNDING * (math.log2(size) + 2) * float(folded.sum())
    error += 4 * ROUNDING * float((tilted * (1 + np.abs(exponent) + abs(top))).sum())
    return value, error, top


def _window(pair: Pair, count: int, direction: Direction, *, t: float, goal: float) -> tuple[float, float]:
    """Losses between which all but e^goal / count of the (tilted) mass lies."""
    low, high = loss_span(pair, direction)
    budget = goal - math.log(count)

    def above(x: float) -> float:
        return math.log(max(1e-320, float(tails_of(pair, direction, np.array([x]))[0][0])))

    def below(x: float) -> float:
        return math.log(max(1e-320, float(tails_of(pair, direction, np.array([x]))[1][0]))) + t * x

    if high == math.inf:
        reach = 1.0
        while above(reach) > budget and reach < 1e12:
            reach *= 2
        left = -1.0 if above(0.0) > budget else -1e6
        high = _bisect(lambda x: above(x) > budget, left, reach)
    if low == -math.inf:
        reach = -1.0
        while below(reach) > budget and reach > -1e12:
            reach *= 2
        low = _bisect(lambda x: below(x) <= budget, reach, high)
        low = min(low, high)
    return low, high


def _bisect(left_of: object, low: float, high: float) -> float:
    """The border between where left_of is true (low) and false (high), to one part in a thousand of the bracket."""
    assert callable(left_of)
    for _ in range(40):
        middle = 0.5 * (low + high)
        if left_of(middle):
            low = middle
        else:
            high = middle
    return high


def _aligned(pairs: Sequence[tuple[Pair, int]], direction: Direction, step: float) -> float:
    """The largest step <= `step` that divides the distance of the two atoms of the heaviest law that has them."""
    for pair, _ in sorted(pairs, key=lambda item: -item[1]):
        positions, _masses = pair.atoms()
        if len(positions) >= 2:
            gap = float(positions[-1] - positions[0])
            return gap / math.ceil(gap / step)
    return step
