"""A quick bound of what many copies of a finite pair cost: to search with, before the accountant certifies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["is_within", "smallest"]

_ORDERS = np.geomspace(0.01, 1e4, 80)


def is_within(log_p: Reals, loss: Reals, *, times: int, epsilon: float, delta: float) -> bool:
    """Whether Chernoff's inequality proves delta(epsilon) <= delta for `times` copies, in one direction.

    The losses are those of outcomes with P-masses e^log_p; P-mass that is not listed is lost. From the largest loss
    down, outcomes are given up for a quarter of delta in all, as their moments may be large and their masses are not.
    For the rest E (1 - e^{eps - L})_+ <= e^{K(s) - s eps} s^s / (1+s)^{s+1} for every s > 0.
    """
    order = np.argsort(-loss)
    log_p, loss = log_p[order], loss[order]
    mass = np.exp(log_p)
    lost = max(0.0, 1.0 - float(mass.sum())) + np.cumsum(mass)
    kept = times * lost > delta / 4
    if times * (lost[0] - mass[0]) > delta / 2 or not kept.any():
        return False
    log_p, loss = log_p[kept], loss[kept]
    exponent = _ORDERS[:, None] * loss + log_p
    top = exponent.max(axis=1)
    moment = top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))
    shape = _ORDERS * np.log(_ORDERS) - (_ORDERS + 1) * np.log1p(_ORDERS)
    bound = float((times * moment - _ORDERS * epsilon + shape).min())
    return bool(bound <= np.log(delta / 2))


def smallest(is_met: Callable[[float], bool], low: float, high: float, *, tolerance: float) -> float | None:
    """The smallest x in [low, high] that is met, to a relative tolerance; None if not even `high` is."""
    if not is_met(high):
        return None
    while high > low * (1 + tolerance):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_met(middle) else (middle, high)
    return high
