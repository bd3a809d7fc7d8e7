"""The best whole number for a target: how many steps, queries or people a privacy level allows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.target import Target

__all__ = ["best_whole"]

_LARGEST = 10**15
_PATIENCE = 12
"""Doublings after which an infinite epsilon is taken to stay infinite."""


def best_whole(target: Target, low: int | None, high: int | None) -> int:
    """The largest whole number that meets the target if the cost grows with it, the smallest if it falls.

    The certified epsilon decides at every number tried, so the number returned meets the target and its neighbour on
    the other side does not, or is not allowed.
    """
    first = _first_allowed(target, low or 1, high or _LARGEST)
    last = _last_allowed(target, first, high or _LARGEST)
    if last > first and target.cost(first) == target.cost(last):
        raise target.constant()
    at_first = _excess(target, first)
    inside, value, patience = first, at_first, _PATIENCE
    while inside < last:
        following = min(2 * inside, last)
        here = _excess(target, following)
        if (here <= 0) != (at_first <= 0):
            good, bad = ((following, here), (inside, value)) if here <= 0 else ((inside, value), (following, here))
            return _between(target, good, bad)
        if at_first <= 0 and here < value:  # the cost falls, and the first number is enough already
            return first
        patience -= here == value == math.inf
        inside, value = following, here
        if at_first > 0 and (here > at_first or not patience):  # it will not come down
            break
    if at_first > 0:
        raise target.refusal(first, inside)
    if high is None and last == _LARGEST:
        raise InvalidArgument("high", None, f"every number up to {_LARGEST:.0e} meets the target; pass high=")
    return last


def _excess(target: Target, x: int) -> float:
    return target.reached(x) - target.epsilon


def _first_allowed(target: Target, low: int, high: int) -> int:
    """The smallest number from `low` on that the cost accepts: 2 options, say."""
    for x in range(low, min(low + 16, high) + 1):
        if target.allows(x):
            return x
    target.cost(low)  # raises what is wrong with it
    raise AssertionError("unreachable")


def _last_allowed(target: Target, first: int, high: int) -> int:
    """The largest number up to `high` that the cost accepts, if those that it accepts have no gap."""
    if target.allows(high):
        return high
    low = first
    while low + 1 < high:
        middle = (low + high) // 2 if high < 4 * low else math.isqrt(low * high)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (middle, high) if target.allows(middle) else (low, middle)
    return low


def _between(target: Target, good: tuple[int, float], bad: tuple[int, float]) -> int:
    """Narrows to neighbours: regula falsi and halving in turns."""
    halve = False
    while abs(good[0] - bad[0]) > 1:
        x = (good[0] + bad[0]) // 2
        if not halve and math.isfinite(bad[1] - good[1]) and bad[1] > good[1]:
            share = -good[1] / (bad[1] - good[1])
            x = round(good[0] + share * (bad[0] - good[0]))
        x = min(max(x, min(good[0], bad[0]) + 1), max(good[0], bad[0]) - 1)
        here = _excess(target, x)
        good, bad = ((x, here), bad) if here <= 0 else (good, (x, here))
        halve = not halve
    return good[0]
