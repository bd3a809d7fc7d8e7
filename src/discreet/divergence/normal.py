r"""Tails and quantiles of the normal law, in plain floats and in NumPy, without SciPy.

All rest on Mills' ratio M(x) = P(Z > x) / density(x). For x >= 0,

    (1 + x) M(x) = p(t),    t = (x - 5) / (x + 5)  in  [-1, 1],

is a smooth function with values between 1 and 1.27; p is its Chebyshev series in t cut after the term of degree 23, the
idea of [Shepherd and Laframboise 1981], written in powers of t. Against mpmath the error is below 2 ulp = 2^-51 for
x >= 0, that of the cut included.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]
    Number = TypeVar("Number", float, Reals)

__all__ = ["log_tail", "log_tails", "mills_ratio", "score", "scores", "tails"]

_POWERS = (
    1.1568486282918946,
    -0.22948753825211315,
    0.07778159886873769,
    0.0250721793016388,
    -0.0661776007790963,
    0.0615050458401865,
    -0.03802659218584139,
    0.01634823128102938,
    -0.004201290329187307,
    1.9530638370790786e-05,
    0.00045704392357953655,
    -0.0001343742785571135,
    -2.480583845192319e-05,
    2.270961270923768e-05,
    -1.7633239265736746e-07,
    -3.277287633208865e-06,
    3.2054316652589574e-07,
    4.91996233147834e-07,
    -6.588974491108954e-08,
    -7.758520236786343e-08,
    9.092476134019147e-09,
    1.1032071151574336e-08,
    -7.073898575561589e-10,
    -9.564832934712551e-10,
)
_FIRST, _REST = _POWERS[-1], _POWERS[-2::-1]
_SQRT_2PI = math.sqrt(2 * math.pi)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_LOG_HALF = math.log(0.5)
_LEAST = -37.6  # further to the left M(x) is beyond the largest float
_STEPS = 8  # of Halley's method, each of which triples the digits; three or four are enough
_CLOSE = 1e-6  # the step after one of this length is of no consequence


def _right(x: Number) -> Number:
    """M(x) for x >= 0, infinity included."""
    t = 1.0 - 10.0 / (x + 5.0)
    total = _FIRST * t
    for power in _REST[:-1]:
        total += power
        total *= t
    total += _REST[-1]
    return total / (1.0 + x)


def mills_ratio(x: float) -> float:
    """Mills' ratio of one number, to 4 ulp; infinite where it overflows, once x < -37.

    >>> round(mills_ratio(0.0), 12)
    1.253314137316
    """
    if not x < 0:
        return _right(x)
    if x < _LEAST:
        return math.inf
    # M(x) = sqrt(2 pi) e^{x^2/2} - M(-x); the square in two parts, the first of them exact
    near = math.floor(64 * x) / 64
    try:
        return _SQRT_2PI * math.exp(near * near / 2) * math.exp((x - near) * (x + near) / 2) - _right(-x)
    except OverflowError:
        return math.inf


def log_tail(x: float) -> float:
    """ln P(Z > x) of a standard normal Z, relative error 2e-15, and 1e-15 (1 + x^2) for x < 0.

    >>> round(log_tail(38.0), 9)
    -726.557216019
    """
    if x < 0:
        return math.log1p(-math.exp(log_tail(-x)))
    return math.log(_right(x)) - 0.5 * x * x - _LOG_SQRT_2PI if x < math.inf else -x


def log_tails(x: Reals) -> Reals:
    """`log_tail` of each number of an array."""
    size = np.abs(x)
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(_right(size)) - 0.5 * size * size - _LOG_SQRT_2PI
    return np.where(x < 0, np.log1p(-np.exp(logs)), logs)


def tails(x: Reals) -> Reals:
    """P(Z > x) for each x >= 0 of an array, relative error 1e-15 (1 + x^2)."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.exp(-0.5 * x * x) * _right(x) / _SQRT_2PI)


def score(log_mass: float) -> float:
    """The x with ln P(Z > x) = `log_mass` <= 0, to 1e-15 (1 + |x|): infinite for -inf, -inf for 0.

    For log_mass <= ln(1/2) by Halley's method on the concave function ln P(Z > x), whose derivatives are -1/M(x) and
    -(1 - x M(x)) / M(x)^2, from sqrt(2 (ln(1/2) - log_mass)), which is above the answer as P(Z > x) <= e^{-x^2/2} / 2
    for x >= 0. What lies to the left of 0 is found from its complement.

    >>> round(score(math.log(0.025)), 9)
    1.959963985
    """
    if log_mass > _LOG_HALF:
        return -score(math.log(-math.expm1(log_mass))) if log_mass < 0 else -math.inf
    x = math.sqrt(2 * (_LOG_HALF - log_mass))
    if x == math.inf:
        return x
    for _ in range(_STEPS):
        ratio = _right(x)
        step = _halley(x, ratio, math.log(ratio) - 0.5 * x * x - _LOG_SQRT_2PI - log_mass)
        x = max(x + step, 0.0)
        if abs(step) <= _CLOSE * (1.0 + x):
            break
    return x


def scores(log_mass: Reals) -> Reals:
    """`score` of each number of an array."""
    left = log_mass > _LOG_HALF
    with np.errstate(divide="ignore"):
        target = np.where(left, np.log(-np.expm1(log_mass)), log_mass)
    x = np.sqrt(2 * np.maximum(_LOG_HALF - target, 0.0))
    known = np.isfinite(x)
    at, target = x[known], target[known]
    for _ in range(_STEPS):
        ratio = _right(at)
        step = _halley(at, ratio, np.log(ratio) - 0.5 * at * at - _LOG_SQRT_2PI - target)
        at = np.maximum(at + step, 0.0)
        if np.all(np.abs(step) <= _CLOSE * (1.0 + at)):
            break
    x[known] = at
    return np.asarray(np.where(left, -x, x))


def _halley(x: Number, ratio: Number, gap: Number) -> Number:
    """The step from x towards the zero of `gap` = ln P(Z > x) - log_mass, of which -1/M is the slope."""
    return gap * ratio / (1.0 + 0.5 * gap * (1.0 - x * ratio))
