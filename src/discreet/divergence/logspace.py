r"""Elementary functions where the textbook formula loses its digits.

Everything here is vectorised NumPy: arrays in, float64 or complex128 arrays of the broadcast shape out (a NumPy scalar
for scalar input). Errors are stated in units of the last place, ulp = 2^-52; the tests hold them against mpmath.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.divergence.legendre import gauss_legendre
from discreet.divergence.normal import mills_ratio
from discreet.divergence.special import erf, erfcx

__all__ = [
    "exp_minus",
    "log1mexp",
    "log1p_minus",
    "log_diff_exp",
    "log_interval_mass",
    "log_normal_density",
    "mills",
    "mills_drop",
    "mills_slope",
]

Reals: TypeAlias = NDArray[np.float64]
Complexes: TypeAlias = NDArray[np.complex128]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)

# e^A - 1 - A = (A^2 / 2) (1 + A/3 + A^2/12 + ... + 2 A^n / (n + 2)! + ...)
_EXP_MINUS_SERIES = tuple(2.0 / math.factorial(n + 2) for n in range(24))
_EXP_MINUS_RADIUS = 2.0
_FEW = 16  # numbers up to which plain floats are as quick as SciPy, which need not be loaded then
_BLOCK = 8192  # elements worked on at a time: temporaries stay in cache
# 2 (atanh s - s) / s^3 = 2/3 + 2 s^2/5 + 2 s^4/7 + ...; for |s| <= 1/5 the rest after s^20 is below 2^-52.
_ATANH_SERIES = tuple(2.0 / (2 * n + 3) for n in range(11))


def exp_minus(exponent: ArrayLike) -> Complexes:
    r"""e^A - 1 - A for complex A, to 16 ulp wherever it does not pass through another of its zeros.

    The textbook formula keeps no digit of the value A^2/2 once |A| < 1e-8. Here |A| <= 2 uses the power series and
    the rest subtracts from a complex expm1. The error is at most 16 ulp of the modulus for |A| <= 6 and for every A
    with negative real part; elsewhere, near the nontrivial zeros -1 - W_k(-1/e) = 2.09 +- 7.46i, ..., at most 4 ulp of
    |e^A| + |A|. Where e^A overflows the result is not finite.

    >>> complex(exp_minus(1e-9))
    (5.000000001666667e-19+0j)
    """
    a = np.asarray(exponent, dtype=np.complex128)
    flat = a.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        block, out = flat[start : start + _BLOCK], result[start : start + _BLOCK]
        square = block.real * block.real + block.imag * block.imag
        near = square <= _EXP_MINUS_RADIUS**2
        if near.all():
            _exp_minus_series(block, out, radius=math.sqrt(square.max()))
        elif not near.any():
            out[:] = _exp_minus_direct(block)
        else:
            inside = block[near]
            values = np.empty_like(inside)
            _exp_minus_series(inside, values, radius=_EXP_MINUS_RADIUS)
            out[near] = values
            out[~near] = _exp_minus_direct(block[~near])
    return result.reshape(a.shape)[()]


@lru_cache(maxsize=64)
def _series_terms(radius_in_sixteenths: int) -> int:
    """Number of terms after which 2 r^n / (n + 2)! < 2^-56, for r = radius_in_sixteenths / 16."""
    radius = radius_in_sixteenths / 16.0
    return next(n for n, c in enumerate(_EXP_MINUS_SERIES) if n >= 2 and c * radius**n < 2.0**-56)


def _exp_minus_series(a: Complexes, out: Complexes, *, radius: float) -> None:
    terms = _series_terms(math.ceil(16.0 * radius))
    np.multiply(a, _EXP_MINUS_SERIES[terms - 1], out=out)
    for coefficient in _EXP_MINUS_SERIES[terms - 2 : 0 : -1]:
        out += coefficient
        out *= a
    out += 1.0
    out *= a
    out *= a
    out *= 0.5


def _exp_minus_direct(a: Complexes) -> Complexes:
    # expm1 of a complex number from real functions: (e^x - 1) cos y - 2 sin^2(y/2) + i e^x sin y
    x, y = a.real.copy(), a.imag.copy()
    sine, cosine = np.sin(0.5 * y), np.cos(0.5 * y)
    result = np.empty_like(a)
    with np.errstate(invalid="ignore", over="ignore"):
        grown = np.expm1(x)
        swing = 2.0 * sine * (1.0 + grown)
        result.real = (grown - x) - sine * swing
        result.imag = cosine * swing - y
    return result


def log1p_minus(value: ArrayLike) -> Reals:
    r"""ln(1 + v) - v for real v >= -1, to 16 ulp; -inf at -1 and +inf, NaN below -1.

    With s = v / (2 + v), ln(1 + v) = 2 atanh s and v - 2s = vs give, without cancellation for |s| <= 1/5,

        ln(1 + v) - v = -s (v - s^2 (2/3 + 2 s^2/5 + 2 s^4/7 + ...)).

    >>> float(log1p_minus(1e-9))
    -4.999999996666666e-19
    """
    v = np.asarray(value, dtype=np.float64)
    flat = v.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        block, out = flat[start : start + _BLOCK], result[start : start + _BLOCK]
        near = (block >= -1.0 / 3.0) & (block <= 0.5)
        if near.all():
            out[:] = _log1p_minus_series(block)
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            out[:] = np.where(block == np.inf, -np.inf, np.log1p(block) - block)
        if near.any():
            out[near] = _log1p_minus_series(block[near])
    return result.reshape(v.shape)[()]


def _log1p_minus_series(v: Reals) -> Reals:
    s = v / (2.0 + v)
    square = s * s
    largest = float(square.max())
    terms = next((n for n in range(2, len(_ATANH_SERIES)) if largest**n < 2.0**-54), len(_ATANH_SERIES))
    total = square * _ATANH_SERIES[terms - 1]
    for coefficient in _ATANH_SERIES[terms - 2 : 0 : -1]:
        total += coefficient
        total *= square
    total += _ATANH_SERIES[0]
    total *= square
    np.subtract(v, total, out=total)
    total *= s
    return np.negative(total, out=total)


def log1mexp(exponent: ArrayLike) -> Reals:
    """ln(1 - e^x) for x <= 0, to 4 ulp: -inf at 0, 0 at -inf, NaN for x > 0.

    >>> round(float(log1mexp(-1e-300)), 9)
    -690.775527898
    """
    x = np.asarray(exponent, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > -math.log(2.0), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))[()]


def log_diff_exp(larger: ArrayLike, smaller: ArrayLike) -> Reals:
    """ln(e^a - e^b) for a >= b, without leaving log space; -inf if a = b, NaN if a < b.

    >>> round(float(log_diff_exp(-1000.0, -1001.0)), 9)
    -1000.458675145
    """
    a, b = np.broadcast_arrays(np.asarray(larger, dtype=np.float64), np.asarray(smaller, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, b - a)
        return np.where(np.isneginf(b) | (a == np.inf), np.where(a < b, np.nan, a), a + log1mexp(gap))[()]


def log_normal_density(x: ArrayLike) -> Reals:
    """ln of the standard normal density, -x^2/2 - ln sqrt(2 pi)."""
    value = np.asarray(x, dtype=np.float64)
    return (-0.5 * value * value - _LOG_SQRT_2PI)[()]


def mills(x: ArrayLike) -> Reals:
    r"""Mills' ratio M(x) = P(Z > x) / density(x) of a standard normal Z; infinite once x < -37.

    M(x) = sqrt(pi/2) erfcx(x / sqrt 2) = integral over s > 0 of e^{-xs - s^2/2}: positive, convex, decreasing.

    >>> round(float(mills(0.0)), 12)
    1.253314137316
    """
    t = np.asarray(x, dtype=np.float64)
    if t.size <= _FEW:
        return np.array([mills_ratio(value) for value in t.ravel().tolist()]).reshape(t.shape)[()]
    return (_SQRT_HALF_PI * erfcx(_SQRT_HALF * t))[()]


def mills_slope(x: ArrayLike) -> Reals:
    r"""-M'(x) = 1 - x M(x), the positive slope of Mills' ratio, to 1e-14 relative.

    1 - x M(x) behaves like 1/x^2, so x >= 4 uses Laplace's continued fraction, free of cancellation:

        1 - x M(x) = M(x) (1/M(x) - x),   1/M(x) - x = 1/(x + 2/(x + 3/(x + ...))).

    [Abramowitz and Stegun 1964, 26.2.14]
    """
    t = np.asarray(x, dtype=np.float64)
    ratio = np.asarray(mills(t))
    far = t >= 4.0
    with np.errstate(over="ignore"):
        result = np.where(far, 0.0, 1.0 - t * ratio)
    if far.any():
        tail = t[far]
        # the n-th convergent errs by about e^{-2 x sqrt(2n)}; its tail is replaced by the fixed point of u = n/(x+u)
        terms = 8 + math.ceil((26.0 / float(tail.min())) ** 2 / 2.0)
        rest = 0.5 * (np.sqrt(tail * tail + 4.0 * terms) - tail)
        for n in range(terms - 1, 0, -1):
            rest = n / (tail + rest)
        result[far] = ratio[far] * rest
    return result[()]


def _unit_rule(count: int) -> tuple[Reals, Reals]:
    """Nodes and weights of Gauss-Legendre quadrature on [0, 1]."""
    points, weights = gauss_legendre(count)
    return 0.5 * (points + 1.0), 0.5 * weights


def mills_drop(x: ArrayLike, width: ArrayLike) -> Reals:
    r"""M(x) - M(x + width) for width >= 0 and x + width >= 0, to 1e-14 relative also for a tiny width.

    Where the difference would cancel (M(x + width) > M(x)/2) it is the integral of `mills_slope` over the interval, by
    12-point Gauss-Legendre: there the integrand is smooth on the scale of the interval.
    """
    a, w = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(width, dtype=np.float64))
    left = np.asarray(mills(a))
    right = np.asarray(mills(a + w))
    with np.errstate(invalid="ignore"):
        result = np.asarray(left - right)
    close = right > 0.5 * left
    if close.any():
        nodes, weights = _unit_rule(12)
        slopes = mills_slope(a[close][:, None] + w[close][:, None] * nodes)
        result[close] = w[close] * (slopes @ weights)
    return result[()]


def log_interval_mass(lower: ArrayLike, upper: ArrayLike) -> Reals:
    r"""ln(P(a < Z <= b)) of a standard normal Z, for a <= b anywhere, both tails and tiny intervals included.

    Reflected so that the interval lies mostly on the right; then erf on both sides of 0, or, for 0 <= a,

        P(a < Z <= b) = density(a) (M(a) - e^{-d} M(b)),   d = (b^2 - a^2)/2,

    or, where that cancels (d <= 1/2), Gauss-Legendre on the density itself. The mass is right to about
    1e-15 (1 + a^2) relative, from the rounding of a^2.

    >>> round(float(log_interval_mass(38.0, 39.0)), 9)
    -726.557216019
    """
    a, b = np.broadcast_arrays(np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        flip = np.abs(a) > np.abs(b)
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    width = np.where(low == high, 0.0, high - low)
    wide = np.where(np.isfinite(width), width, 0.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        drop = np.where(np.isinf(high), np.inf, width * (0.5 * (low + high)))
        far = mills(low) - np.exp(-drop) * np.where(np.isinf(high), 0.0, mills(high))
        result = np.where(low < 0.0, np.log(0.5 * (erf(_SQRT_HALF * high) - erf(_SQRT_HALF * low))), np.log(far))
        result = np.where(low < 0.0, result, result + log_normal_density(low))
    near = (drop <= 0.5) & (low >= 0.0)
    if near.any():
        nodes, weights = _unit_rule(16)
        start, step = low[near][:, None], wide[near][:, None] * nodes
        inner = np.exp(-step * (start + 0.5 * step)) @ weights
        with np.errstate(divide="ignore"):
            result[near] = np.log(wide[near]) + np.log(inner) + log_normal_density(low[near])
    return np.where(a > b, np.nan, result)[()]
