"""Exact bounds of a probability from a count: no central limit, valid for every number of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainccinv, betaincinv

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["at_least", "at_most"]

_ROUNDING = 1e-9
"""The inverse of the incomplete beta function is more accurate than this; its error goes to the safe side."""


def at_least(successes: ArrayLike, trials: ArrayLike, miss: float) -> NDArray[np.float64]:
    """The lower bound of a probability that is above it with probability at most `miss` [Clopper and Pearson 1934].

    >>> round(float(at_least(10, 10, 0.05)), 6)  # 0.05^(1/10)
    0.741134
    """
    k, n = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    bound = betaincinv(np.maximum(k, 1), n - k + 1, miss)
    return np.where(k > 0, np.maximum(bound * (1 - _ROUNDING), 0.0), 0.0)


def at_most(successes: ArrayLike, trials: ArrayLike, miss: float) -> NDArray[np.float64]:
    """The upper bound of a probability that is below it with probability at most `miss` [Clopper and Pearson 1934].

    >>> round(float(at_most(0, 10, 0.05)), 6)  # 1 - 0.05^(1/10)
    0.258866
    """
    k, n = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    bound = betainccinv(k + 1, np.maximum(n - k, 1), miss)
    return np.where(k < n, np.minimum(bound * (1 + _ROUNDING), 1.0), 1.0)
