"""Gauss-Legendre quadrature: the points and weights that integrate polynomials of degree 2n - 1 exactly."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["gauss_legendre", "long_gauss_legendre"]

Reals: TypeAlias = "NDArray[np.float64]"
Long: TypeAlias = "NDArray[Any]"

_STEPS = 4
"""Newton's method doubles the digits each time, from three or more; the slope is that of the last point but one."""


@lru_cache(maxsize=256)
def gauss_legendre(count: int) -> tuple[Reals, Reals]:
    """`count` points in (-1, 1), ascending, and their weights, correctly rounded but for a few units of 1e-17.

    >>> points, weights = gauss_legendre(2)
    >>> points.tolist(), weights.tolist()
    ([-0.5773502691896257, 0.5773502691896257], [1.0, 1.0])
    """
    points, weights = (np.asarray(values, dtype=np.float64) for values in long_gauss_legendre(count))
    points.flags.writeable = weights.flags.writeable = False
    return points, weights


@lru_cache(maxsize=64)
def long_gauss_legendre(count: int) -> tuple[Long, Long]:
    """The same in the widest floating point of the machine.

    The points are the zeros of P_n, found by Newton's method from (1 - (n-1) / (8 n^3)) cos(pi (k - 1/4) / (n + 1/2)),
    and the weights are 2 / ((1 - x^2) P_n'(x)^2). Only those in [0, 1) are computed: the rule is symmetric.
    """
    half = (count + 1) // 2
    angles = np.pi * (np.arange(1, half + 1, dtype=np.longdouble) - 0.25) / (count + 0.5)
    x = (1 - (count - 1) / (8 * count**3)) * np.cos(angles)
    if count % 2:
        x[-1] = 0
    slope: Long = np.ones_like(x)
    for _ in range(_STEPS):
        before, here = np.ones_like(x), x
        for n in range(2, count + 1):
            before, here = here, ((2 * n - 1) * x * here - (n - 1) * before) / n
        slope = count * (before - x * here) / ((1 - x) * (1 + x))
        x = x - here / slope
    weights = 2 / ((1 - x) * (1 + x) * slope * slope)
    mirrored = slice(None, half - count % 2)
    return np.concatenate([-x[mirrored], x[::-1]]), np.concatenate([weights[mirrored], weights[::-1]])
