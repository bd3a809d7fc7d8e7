"""Where to put the corners of a finite pair that stands for another one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.exact import SingleLoss
from discreet.accounting.pairs.atoms import AtomsPair

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair, Reals

__all__ = ["corners_of", "spread"]

_POINTS = 1500
_MOST_ATOMS = 6000
_LAST_DELTA = 1e-30


def corners_of(pair: Pair) -> Reals:
    """Epsilons from 0 on at which a pair's profile, in either order, should be met: its atoms if these are all."""
    if isinstance(pair, AtomsPair) and len(pair.loss) <= _MOST_ATOMS:
        found = np.unique(np.abs(pair.loss))
        # below the rounding of their positions two corners are one
        found = found[np.concatenate([[True], np.diff(found) > 1e-13 * found[1:]])]
        return np.concatenate([[0.0], found[found > 0]])
    largest = max(abs(end) for end in pair.span)

    def delta(epsilon: float) -> float:
        return max(SingleLoss(pair, direction).bounds(epsilon)[1] for direction in pair.directions())

    return spread(delta, largest)


def spread(delta: object, largest: float) -> Reals:
    """Even up to where delta has come down to 1e-30 or the largest loss is reached, which is then the last corner."""
    assert callable(delta)
    high = min(largest, 1.0)
    while high < min(largest, 600.0) and delta(high) > _LAST_DELTA:
        high = min(2 * high, largest, 600.0)
    low = 0.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta(middle) > _LAST_DELTA else (low, middle)
    high = min(high, largest)
    if largest <= high * 1.001 and math.isfinite(largest):
        high = largest
    # denser near 0, where a single step of many has nearly all of its losses
    near = high * np.linspace(0.0, 1.0, _POINTS) ** 2
    if math.isfinite(largest) and largest > high:
        near = np.append(near, largest)
    return np.unique(near)
