r"""Polynomials on [-1, 1] as Chebyshev series sum_j c_j T_j, with what their evaluation may lose to rounding.

Series are rows of arrays: the last axis holds c_0 .. c_{n-1}, everything before it runs over pieces. As |T_j| <= 1, a
series whose coefficients are off by e_j is off by at most sum_j |e_j|, and a dropped coefficient costs its own size.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals

__all__ = ["antiderivative", "integral", "interpolation", "lebesgue", "running", "values", "values_error"]

_BLOCK = 64


def values(series: Reals, points: Reals) -> Reals:
    """The series at the points of its own row (Clenshaw's recurrence); `points` has one row for each series."""
    twice = 2.0 * points
    later = np.zeros(points.shape)
    last = np.zeros(points.shape)
    for j in range(series.shape[-1] - 1, 0, -1):
        later, last = series[..., j, None] + twice * later - last, later
    return np.asarray(series[..., 0, None] + points * later - last)


def values_error(series: Reals) -> Reals:
    r"""Bound of what `values` is off by, for points that are themselves off by up to 4 ROUNDING.

    The computed recurrence is the exact one for coefficients c_j + e_j with |e_j| <= 10 ROUNDING B_j and B_j =
    sum_{i >= j} (i - j + 1) |c_i|, which adds up to 5 (i+1)(i+2) |c_i|; a point off by h costs |T_i'| h <= i^2 h.
    """
    degree = np.arange(series.shape[-1])
    return np.asarray(np.abs(series) @ (16.0 * ROUNDING * (degree + 1.0) ** 2))


def antiderivative(series: Reals) -> Reals:
    """The integral from -1 on: one coefficient more, off by at most 3 (n + 6) ROUNDING sum |c_j| altogether."""
    count = series.shape[-1]
    padded = np.zeros((*series.shape[:-1], count + 2))
    padded[..., :count] = series
    padded[..., 0] *= 2.0
    result = np.empty((*series.shape[:-1], count + 1))
    result[..., 1:] = (padded[..., :-2] - padded[..., 2:]) / (2.0 * np.arange(1, count + 1))
    sign = np.where(np.arange(1, count + 1) % 2 == 0, -1.0, 1.0)
    result[..., 0] = result[..., 1:] @ sign
    return result


def integral(series: Reals) -> Reals:
    """The integral over [-1, 1], off by at most (n + 6) ROUNDING sum |c_j|."""
    degree = np.arange(0, series.shape[-1], 2)
    return np.asarray(series[..., ::2] @ (2.0 / (1.0 - degree * degree)))


@lru_cache(maxsize=64)
def interpolation(count: int) -> tuple[Reals, Reals]:
    """`count` Chebyshev points and the matrix that turns values there into coefficients."""
    angle = math.pi * (np.arange(count) + 0.5) / count
    matrix = np.cos(np.outer(np.arange(count), angle)) * (2.0 / count)
    matrix[0] *= 0.5
    return np.cos(angle), matrix


def lebesgue(count: int) -> float:
    """Bound of the largest value of a polynomial that is at most 1 at `count` Chebyshev points."""
    return 1.0 + math.log(count)


def running(terms: Reals) -> tuple[Reals, float]:
    """Sums over all earlier terms (0 first, the total last), and how many roundings of the sum of moduli they are off.

    Summed in blocks, so that the error grows with the root of the length only.
    """
    length = len(terms)
    block = max(_BLOCK, math.isqrt(length))
    rows = math.ceil(length / block)
    padded = np.zeros(rows * block)
    padded[:length] = terms
    inside = np.cumsum(padded.reshape(rows, block), axis=1)
    before = np.append(0.0, np.cumsum(inside[:, -1]))[:-1]
    return np.append(0.0, (inside + before[:, None]).ravel()[:length]), float(block + rows + 2)
