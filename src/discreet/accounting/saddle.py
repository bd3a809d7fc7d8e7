"""Where to put the line, and what Chernoff's inequality says: everything that needs the transform only at real points.

The saddle point of K(z) - eps z - ln z(z+1) chooses the abscissa of the contour and the tilt of the grid
[Alghamdi et al. 2023]. It is found roughly; no certificate depends on it. Chernoff's inequality is a certificate:
D(x) <= e^{K(s) - s x} s^s / (1+s)^{s+1} for every s >= 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import Direction, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from discreet.accounting.pair import Reals

__all__ = ["Unreachable", "chernoff", "cumulants_of", "line_tilt", "log_chernoff", "period_for", "saddle", "sketch"]

_MANY = 40


class Unreachable(Exception):
    """No certificate within the limits of time and memory; the message says what is in the way."""


def saddle(
    cumulants: Callable[[float], tuple[float, float, float]],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> tuple[float, float, float, float]:
    """t near the saddle of K(z) - eps z - ln z(z+1), with epsilon, ln delta and the curvature there (approximate).

    `cumulants` gives K, K' and K'' at a real t.
    """

    def probe(log_t: float) -> tuple[float, float, float, float]:
        t = math.exp(log_t)
        value, first, second = cumulants(t)
        eps = first - 1 / t - 1 / (1 + t)
        curvature = second + 1 / t**2 + 1 / (1 + t) ** 2
        used = eps if epsilon is None else epsilon
        log_delta = value - used * t - math.log(t) - math.log1p(t) - 0.5 * math.log(2 * math.pi * curvature)
        gap = (log_delta - math.log(delta)) if delta is not None else (used - eps)
        return gap, used, log_delta, curvature

    # gap falls with t in both uses: bracket by steps in ln t, then secant with bisection
    low = high = 0.0
    state = probe(0.0)
    low_gap = high_gap = state[0]
    stride = 1.0
    while low_gap < 0 and low > -60 and state[1] >= 0:
        high, high_gap = low, low_gap
        low -= stride
        stride = min(1.5, 1.5 * stride)
        state = probe(low)
        low_gap = state[0]
    stride = 1.0
    while high_gap > 0 and high < 60:
        low, low_gap = high, high_gap
        high += stride
        stride = min(1.5, 1.5 * stride)
        state = probe(high)
        high_gap = state[0]
    if delta is not None and state[0] < 0 and state[1] < 0:  # even epsilon = 0 costs less than delta
        return 1.0, -1.0, 0.0, 1.0
    for _ in range(60):
        if high - low < 1e-9 or not (low_gap > 0 > high_gap):
            break
        share = low_gap / (low_gap - high_gap)
        middle = low + min(0.9, max(0.1, share)) * (high - low)
        state = probe(middle)
        if abs(state[0]) < (0.3 if delta is not None else 0.02 * abs(state[1]) + 0.3 / math.exp(middle)):
            low = high = middle
            break
        if state[0] > 0:
            low, low_gap = middle, state[0]
        else:
            high, high_gap = middle, state[0]
    middle = 0.5 * (low + high)
    if low != high:
        state = probe(middle)
    return math.exp(middle), state[1], min(state[2], 0.0), state[3]


def line_tilt(pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float) -> float:
    """The abscissa of the saddle for this epsilon."""
    chosen = sketch(pairs)
    return saddle(lambda s: cumulants_of(chosen, direction, s), epsilon=epsilon)[0]


def sketch(pairs: Sequence[tuple[Pair, int]]) -> list[tuple[Pair, float]]:
    """A few of many different parts, weighted to stand for all: enough to place a line, which need not be exact."""
    if len(pairs) <= _MANY:
        return [(pair, float(count)) for pair, count in pairs]
    chosen = [pairs[i] for i in np.linspace(0, len(pairs) - 1, _MANY // 3).astype(int)]
    scale = sum(count for _, count in pairs) / sum(count for _, count in chosen)
    return [(pair, count * scale) for pair, count in chosen]


def cumulants_of(pairs: Sequence[tuple[Pair, float]], direction: Direction, t: float) -> tuple[float, float, float]:
    """K, K' and K'' at real t (approximate)."""
    forward = direction is Direction.FORWARD
    total = np.zeros(3)
    for pair, count in pairs:
        power = t + 1 if forward else -t
        if pair.node_count((power, power), 0.0) > 200_000:
            raise Unreachable("the saddle point lies too far out")
        value, first, second = pair.cumulants(power)
        total += count * np.array([value, first if forward else -first, second])
    return float(total[0]), float(total[1]), float(total[2])


def log_chernoff(s: float) -> float:
    """ln of sup over L of e^{-sL} (1 - e^{-L})_+, which is s^s / (1+s)^{s+1}."""
    return 0.0 if s == 0 else s * math.log(s) - (s + 1) * math.log1p(s)


def chernoff(pairs: Sequence[tuple[Pair, int]], direction: Direction, epsilon: float, t: float) -> float:
    """A certified upper bound of D(epsilon) from the transform at one real point t."""
    value = float(_log_bound(pairs, direction, np.array([t]))[0])
    return math.exp(min(0.0, value - t * epsilon + log_chernoff(t)))


def _log_bound(pairs: Sequence[tuple[Pair, float]], direction: Direction, t: Reals) -> Reals:
    """Upper bounds of K at real points."""
    powers = t + 1.0 if direction is Direction.FORWARD else -t
    total = np.zeros(len(t))
    for pair, count in pairs:
        total += count * pair.log_power_bound(powers)
    return total + 1e-12 * (1 + np.abs(total))


def period_for(
    pairs: Sequence[tuple[Pair, float]], direction: Direction, *, t: float, epsilon: float, goal: float, width: float
) -> tuple[float, list[tuple[float, float]]]:
    """A period for which Chernoff's inequality keeps ln of the aliasing below `goal`, and the bounds it rests on."""
    strides = [k / width for k in ((0.5, 1.0, 2.0, 4.0, 8.0, 14.0) if len(pairs) < 20 else (2.0, 5.0, 8.0))]
    shares = (1.05, 1.15, 1.3, 1.6) if len(pairs) < 20 else (1.2, 1.6)
    others = [t + k for k in strides] + [t * k for k in shares] + [t - k for k in strides if k < t]
    aliases = list(zip(others, _log_bound(pairs, direction, np.array(others)).tolist(), strict=True))
    aliases.append((0.0, 0.0))
    right = min((v - s * epsilon + log_chernoff(s) - goal) / (s - t) for s, v in aliases if s > t)
    left = min((v - s * epsilon + log_chernoff(s) - goal) / (t - s) for s, v in aliases if s < t)
    period = max(right, left, 4 * width, 1.0 / t)
    if not math.isfinite(period):
        raise Unreachable("the transform on the real axis is not known well enough")
    return period, aliases
