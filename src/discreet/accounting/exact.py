"""Closed forms: one mechanism used once, and compositions with few possible outcomes.

One mechanism: delta(epsilon) = P(l > eps) - e^eps Q(l > eps), straight from the distribution functions. Few outcomes:
the multinomial law of all total losses, listed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.discretise import tails_of
from discreet.accounting.pair import ROUNDING, Direction, Pair, unit_interval
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.divergence.special import gammaln

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from discreet.accounting.pair import Reals

__all__ = ["EnumeratedLoss", "SingleLoss", "finite_sums", "invert"]


_CLIFF = 50.0
"""Logarithms beyond this say no more than that delta is far away."""

_LEAST = 5e-324
"""The smallest float above 0: an upper bound of a number that is positive but too small to hold."""


class SingleLoss:
    """Reads D of a single pair in one direction, like a `Line` of the contour accountant."""

    def __init__(self, pair: Pair, direction: Direction) -> None:
        self.pair, self.direction = pair, direction

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon): a closed form, or the difference of two tails."""
        closed = self.pair.profile(epsilon, self.direction)
        if closed is not None:
            return unit_interval(*closed)
        # an atom may sit at epsilon itself up to the rounding of its position: read on both sides of it
        shift = 16 * ROUNDING * abs(epsilon)
        points = np.array([epsilon + shift, epsilon - shift])
        p, _, q, _ = tails_of(self.pair, self.direction, points)
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(p), np.log(q)
        scaled = np.exp(np.minimum(points + log_q, 1.0))
        # a tail e^-k is good to a few k roundings, and so is its logarithm
        deep = np.minimum(np.abs(log_p), 745.0), np.minimum(np.abs(log_q), 745.0)
        slack = self.pair.tail_error * (p * (1 + deep[0] / 8) + scaled * (1 + deep[1] / 8))
        slack += 16 * ROUNDING * abs(epsilon) * scaled
        low, high = p - scaled - slack, p - scaled + slack
        if float(q[0]) < 1e-290:  # Q's tail is lost: nothing is known but D >= 0
            low[0] = 0.0
        if float(q[1]) < 1e-290:
            high[1] = p[1] * (1 + self.pair.tail_error * (1 + deep[0][1] / 8))
        return unit_interval(float(low[0]), max(float(high[1]), _LEAST))

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon at which D passes between the two deltas."""
        return invert(self.bounds, low_delta, high_delta)


class TopLoss:
    """The largest total loss alone: D(epsilon) >= M (1 - e^{epsilon - top}) if it has mass M.

    At a delta far below M this is all there is to know, as no epsilon above the top is ever needed.
    """

    def __init__(self, pairs: Sequence[tuple[Pair, int]], direction: Direction) -> None:
        self.top = self.log_mass = 0.0
        for pair, count in pairs:
            losses, masses = pair.atoms()
            if not len(losses):
                self.log_mass = -math.inf
                return
            forward = direction is Direction.FORWARD
            loss, mass = (float(losses[-1]), float(masses[-1])) if forward else (-float(losses[0]), float(masses[0]))
            self.top += count * (loss - 64 * ROUNDING * abs(loss) - pair.blur)
            if mass <= 0:
                self.log_mass = -math.inf
                return
            log_mass = math.log(mass) + (loss if forward else 0.0)
            # the mass is rounded, and its loss; e^-k carries some k roundings
            self.log_mass += count * (log_mass - (64 * ROUNDING + pair.tail_error) * (1 + abs(log_mass) + abs(loss)))

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """M (1 - e^{epsilon - top}) at least."""
        if epsilon >= self.top or self.log_mass == -math.inf:
            return 0.0, 1.0
        return unit_interval(math.exp(min(0.0, self.log_mass)) * -math.expm1(epsilon - self.top) * (1 - 1e-14), 1.0)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """The epsilon at which that bound is delta, and infinity: the largest loss is known to the caller."""
        largest = max(low_delta, high_delta)
        log_share = math.log(largest) - self.log_mass if largest > 0 else -math.inf
        if not log_share < -1e-12:
            return 0.0, math.inf
        lower = self.top + math.log1p(-math.exp(log_share) * (1 + 1e-12))
        return max(0.0, lower - 4 * ROUNDING * (abs(self.top) + abs(lower))), math.inf


class EnumeratedLoss:
    """All total losses of a composition of few outcomes, with their masses: multinomial, exact up to rounding."""

    def __init__(self, pairs: Sequence[tuple[Pair, int]], direction: Direction) -> None:
        loss, log_mass, error = finite_sums(pairs, direction)
        order = np.argsort(loss, kind="stable")
        self.loss = loss[order]
        mass, error = np.exp(log_mass[order]), error[order] + 8 * ROUNDING * (1 + np.abs(loss[order]))
        self.error = float(8 * ROUNDING * (1 + np.abs(self.loss).max()))
        self._mass, self._error = mass, error
        scaled = np.exp(log_mass[order] - self.loss)
        self._above = _suffix(mass), _suffix(scaled), _suffix(mass * error), _suffix(scaled * error)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon)."""
        # a loss may sit at epsilon itself up to the rounding of its position: read on both sides of it
        shift = self.error + 16 * ROUNDING * abs(epsilon)
        low, high = self._at(epsilon + shift)[0], self._at(epsilon - shift)[1]
        return unit_interval(low, max(high, _LEAST))

    def _at(self, epsilon: float) -> tuple[float, float]:
        index = int(np.searchsorted(self.loss, epsilon))
        if epsilon > 300.0:  # e^epsilon is too large to work with: term by term
            terms = self._mass[index:] * -np.expm1(epsilon - self.loss[index:])
            value, error = float(terms.sum()), float((terms * (self._error[index:] + 64 * ROUNDING)).sum())
            return value - error, value + error
        p, q, p_error, q_error = (float(column[index]) for column in self._above)
        scale = math.exp(min(epsilon, 700.0))
        slack = p_error + q_error * scale + (len(self.loss) * ROUNDING * 2 + self.error) * (p + q * scale)
        return p - q * scale - slack, p - q * scale + slack

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon at which D passes between the two deltas."""
        return invert(self.bounds, low_delta, high_delta)

    @staticmethod
    def size(pairs: Sequence[tuple[Pair, int]]) -> float:
        """How many total losses there are, infinite if a part is not finite."""
        total = 1.0
        for pair, count in pairs:
            if not isinstance(pair, AtomsPair):
                return math.inf
            total *= (
                math.comb(count + len(pair.loss) - 1, min(count, len(pair.loss) - 1))
                if len(pair.loss) < 12
                else math.inf
            )
        return total


def finite_sums(pairs: Sequence[tuple[Pair, int]], direction: Direction) -> tuple[Reals, Reals, Reals]:
    """All total losses of finite laws, their log masses and relative errors of the masses; 0 if there are none."""
    loss, log_mass, error = np.zeros(1), np.zeros(1), np.zeros(1)
    for pair, count in pairs:
        part = _multinomial(pair, direction, count)
        loss = np.add.outer(loss, part[0]).ravel()
        log_mass = np.add.outer(log_mass, part[1]).ravel()
        error = np.add.outer(error, part[2]).ravel()
    return loss, log_mass, error


def _suffix(values: Reals) -> Reals:
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def _multinomial(pair: Pair, direction: Direction, count: int) -> tuple[Reals, Reals, Reals]:
    """Losses, log masses and relative errors of `count` independent uses of a finite pair."""
    loss, q = pair.atoms()
    log_mass = np.log(q) + (loss if direction is Direction.FORWARD else 0.0)
    loss = loss if direction is Direction.FORWARD else -loss
    counts = _splits(count, len(loss))
    factorial = gammaln(np.arange(count + 1) + 1.0)
    logs = factorial[count] - factorial[counts].sum(axis=1) + (counts * log_mass).sum(axis=1)
    size = 2 * factorial[count] + (counts * np.abs(log_mass)).sum(axis=1)
    return (counts * loss).sum(axis=1), logs, 16 * ROUNDING * (4 + size)


def _splits(total: int, parts: int) -> NDArray[np.int64]:
    """All ways to write `total` as an ordered sum of `parts` numbers >= 0, one a row."""
    if parts == 1:
        return np.array([[total]])
    if parts == 2:
        first = np.arange(total + 1)
        return np.stack([first, total - first], axis=1)
    blocks = []
    for taken in range(total + 1):
        rest = _splits(total - taken, parts - 1)
        blocks.append(np.column_stack([np.full(len(rest), taken), rest]))
    return np.concatenate(blocks)


def invert(bounds: Callable[[float], tuple[float, float]], low_delta: float, high_delta: float) -> tuple[float, float]:
    """Brackets the epsilon with D(epsilon) = delta by bisection on certified bounds of a falling D."""
    if bounds(0.0)[1] <= low_delta:
        return 0.0, 0.0
    reach = 1.0
    while bounds(reach)[1] > low_delta:
        reach *= 2
        if reach > 1e9:
            return 0.0, math.inf
    upper = _first_below(lambda e: bounds(e)[1], low_delta, reach)
    # certified lower bounds may be useless far below: walk down from the upper end until one proves the claim
    step = 1e-15 * upper
    while step < upper:
        if bounds(upper - step)[0] >= high_delta:
            return _last(lambda e: bounds(e)[0] >= high_delta, upper - step, upper - step / 2), upper
        step *= 2
    return 0.0, upper


def _first_below(value: Callable[[float], float], delta: float, high: float) -> float:
    """A point at which the falling `value` is at most delta, close to the first.

    Inverse quadratic steps where they are safe, halving otherwise [Chandrupatla 1997]. Whatever the steps do, the point
    returned has been checked.
    """

    def distance(epsilon: float) -> float:
        return max(-_CLIFF, min(_CLIFF, _log(value(epsilon) / delta)))

    # a is the latest point, b the end on the other side of the root, c the one before
    b, f_b, a, f_a = 0.0, distance(0.0), high, distance(high)
    share = 0.5
    for _ in range(200):
        if abs(a - b) <= 2e-15 * max(a, b):
            break
        point = a + share * (b - a)
        if not min(a, b) < point < max(a, b):
            break
        f = distance(point)
        if (f > 0) == (f_a > 0):
            c, f_c = a, f_a
        else:
            c, f_c, b, f_b = b, f_b, a, f_a
        a, f_a = point, f
        if -1e-15 < f <= 0:
            break
        share = 0.5
        if f_b not in (f_a, f_c) and f_c != f_a:
            place, rise = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
            if 1 - math.sqrt(1 - place) < rise < math.sqrt(place):
                share = f_a / (f_b - f_a) * f_c / (f_b - f_c)
                share += (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
        least = min(0.5, 1e-15 * max(a, b) / abs(b - a))  # steps over the root in the end
        share = min(max(share, least), 1 - least)
    return a if f_a <= 0 else b


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """A point at which `holds` is true, close to where it turns false on the way from low to high."""
    least = (high - low) / 16
    while high - low > least:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
