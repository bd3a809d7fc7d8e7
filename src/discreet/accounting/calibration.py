"""Finding the parameter of a cost that meets a target: noise for a privacy level, or the rate or steps it allows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.accounting.evaluate import delta_reading
from discreet.accounting.target import Target
from discreet.accounting.whole import best_whole
from discreet.arguments import count, nonnegative, positive, probability
from discreet.errors import CertificateError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.accounting.cost import Cost

__all__ = ["calibrate"]

_TOLERANCE = 1e-9


def calibrate(
    make: Callable[[float], Cost],
    *,
    epsilon: float,
    delta: float,
    low: float | None = None,
    high: float | None = None,
    integer: bool = False,
) -> float:
    """The best parameter x > 0 for which the certified epsilon of make(x) at `delta` is at most `epsilon`.

    The cost must change monotonically with x. If it falls (noise), the smallest such x is returned; if it grows (a
    sampling rate), the largest; to a relative 1e-9. The value returned satisfies `make(x).epsilon(delta) <= epsilon`.
    `low` and `high` limit the search; without them it starts at 1 and goes as far as needed. With `integer=True` only
    whole numbers x >= 1 are tried and the best of them is returned, an `int`: the parameter is a count.

    >>> from discreet.accounting import Cost
    >>> sigma = calibrate(lambda s: Cost.gaussian(s), epsilon=1.0, delta=1e-6)
    >>> round(sigma, 6), Cost.gaussian(sigma).epsilon(1e-6) <= 1.0
    (4.224679, True)
    >>> calibrate(lambda steps: steps * Cost.gaussian(20.0), epsilon=1.0, delta=1e-6, integer=True)
    22
    """
    if not callable(make):
        raise InvalidArgument(
            "make", make, "pass a function from a number to a Cost, such as lambda s: Cost.gaussian(s)"
        )
    target = Target(make, nonnegative("epsilon", epsilon), probability("delta", delta))
    if integer:
        least = count("low", low, least=1) if low is not None else None
        most = count("high", high, least=1) if high is not None else None
        if least is not None and most is not None and least > most:
            raise InvalidArgument("low, high", (low, high), "pass low <= high")
        return best_whole(target, least, most)
    bottom = positive("low", low) if low is not None else None
    top = positive("high", high) if high is not None else None
    if bottom is not None and top is not None and bottom >= top:
        raise InvalidArgument("low, high", (low, high), "pass low < high")
    good, bad = _bracket(target, bottom, top)
    if bad is None:
        return good
    good = _narrow(target, good, bad)
    return _settle(target, good, bad)


def _bracket(target: Target, low: float | None, high: float | None) -> tuple[float, float | None]:
    """A parameter that meets the target and one that does not; None for the latter if the whole range meets it."""
    start = math.sqrt(low * high) if low is not None and high is not None else (low or high or 1.0)
    first = target.try_excess(start)
    while first is None and start > 1e-12:  # a rate above 1, say
        start /= 4
        first = target.try_excess(start)
    if first is None:
        target.excess(start)
        raise AssertionError("unreachable")
    ends: dict[int, float] = {}
    for way in _ways(target, start, first):
        limit = high if way > 0 else low
        x, value, factor, still = start, first, 1.6, 0
        while True:
            following = x * factor**way
            if limit is not None and (following - limit) * way >= 0:
                following = limit
            here = None if following == x or not 1e-15 < following < 1e15 else target.try_excess(following)
            if here is None and following != x and 1e-15 < following < 1e15 and factor > 1.01:
                # the edge of what is allowed, or of what can be certified: go there, or approach it
                edge = x if target.allows(following) else _edge(target, x, following)
                here = None if edge == x else target.try_excess(edge)
                if here is None:
                    factor = math.sqrt(factor)
                    continue
                following = edge
            if here is None:
                break
            if (here <= 0) != (first <= 0):
                return (following, x) if here <= 0 else (x, following)
            # a cost that no longer changes will not change further on
            still = still + 1 if here == value or abs(here - value) <= 1e-6 * abs(here) else 0
            x, value, factor = following, here, min(16.0, factor * 1.15)
            if still >= 4:
                break
        ends[way] = x
    if first <= 0:
        # everything meets the target: the most useful end is the one that costs most
        if target.cost(ends[-1]) == target.cost(ends[1]):
            raise target.constant()
        costs = {way: (target.excess(x), delta_reading(target.cost(x).parts, 0.0).upper) for way, x in ends.items()}
        return (ends[-1] if costs[-1] >= costs[1] else ends[1]), None
    raise target.refusal(ends[-1], ends[1])


def _edge(target: Target, inside: float, outside: float) -> float:
    """The last x on the way from an allowed to a refused one that is allowed: 1 for a rate."""
    while True:
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            return inside
        inside, outside = (middle, outside) if target.allows(middle) else (inside, middle)


def _ways(target: Target, start: float, first: float) -> tuple[int, int]:
    """Which way to look first: where the excess moves towards changing its sign."""
    up, down = target.try_excess(start * 1.6), target.try_excess(start / 1.6)
    if up is None or down is None:
        return (-1, 1) if up is None else (1, -1)
    rises = up > down
    return (1, -1) if rises == (first <= 0) else (-1, 1)


def _narrow(target: Target, good: float, bad: float) -> float:
    """Illinois iteration on ln x, falling back to bisection where the excess is infinite."""
    a, b = math.log(good), math.log(bad)
    fa, fb = target.excess(good), target.excess(bad)
    side = 0
    for _ in range(80):
        if abs(a - b) <= _TOLERANCE * 0.5:
            break
        if math.isfinite(fa) and math.isfinite(fb) and fa != fb:
            middle = b - fb * (b - a) / (fb - fa)
            # aim a little to the good side so that the bracket closes from there
            middle += (a - middle) * 1e-3 if abs(a - b) > 1e-2 else math.copysign(_TOLERANCE * 0.2, a - middle)
            if not min(a, b) < middle < max(a, b):
                middle = 0.5 * (a + b)
        else:
            middle = 0.5 * (a + b)
        value = target.excess(math.exp(middle))
        if value <= 0:
            a, fa = middle, value
            fb = fb / 2 if side == 1 and math.isfinite(fb) else fb
            side = 1
        else:
            b, fb = middle, value
            fa = fa / 2 if side == -1 and math.isfinite(fa) else fa
            side = -1
        if -1e-9 < value <= 0:
            break
    return math.exp(a)


def _settle(target: Target, good: float, bad: float) -> float:
    """Steps away from the failing side until the certified epsilon itself meets the target."""
    away = 1.0 if good > bad else -1.0
    step = 1e-14
    x = good
    while not target.met(x):
        x = good * (1 + away * step)
        step *= 4
        if step > 1e-3:
            raise CertificateError(
                "the calibrated parameter",
                limit=f"a certified epsilon that stays above the target near x = {good:.9g}",
                advice="Allow a slightly larger epsilon or delta.",
            )
    return x
