r"""Moments of likelihood ratios on samples, from Rényi curves of the mechanism alone: whole orders, and between them.

**One record of a sample is replaced.** X = (1-q) R + q P and Y = (1-q) R + q P', where P and P' are the outputs with
the old and the new record in the sample, and R without either. Then dX/dY - 1 = q (P - P') / Y, so for whole a

    E_Y (dX/dY)^a <= 1 + sum_{j=2}^a C(a, j) q^j E_Y |(P - P') / Y|^j,

and as |x|^j / y^{j-1} is convex in (x, y), the last factor is at most (1-q) E_R |(P - P')/R|^j + q E_P' |P/P' - 1|^j;
the same convexity lets P, P', R be mixtures with common weights, as they are for samples without replacement. As
Y >= (1-q) R, it is also at most (1-q)^{1-j} E_R |(P - P')/R|^j. For v >= 0 and j >= 2,
|v - 1|^j <= v^j - 1 - j (v - 1). So with r a bound of D_j between the laws named,

    E_P' |P/P' - 1|^j <= e^{(j-1) r(j)} - 1,
    E_R |(P - P')/R|^j <= min(2 e^{(j-1) r(j)}, 2^j (e^{(j-1) r(j)} - 1)),

the second from |x - y| <= max(x, y), or from Minkowski's inequality. It is the bound of [Wang et al. 2019] with sharper
constants.

**Balls in bins.** S = (w_1 + ... + w_T) / T for independent ratios with E w_i^k <= m_k = e^{(k-1) r(k)}, m_0 = m_1 = 1:

    E S^a <= a! T^-a [z^a] (sum_k m_k z^k / k!)^T,        E S^{1-a} <= (E w^{-(a-1)/T})^T <= e^{(a-1) r(1 + (a-1)/T)},

the latter because a mean is at least its geometric mean.

ln E w^a is convex in a and 0 at a = 1, which covers the orders between whole ones.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING
from discreet.divergence.special import gammaln

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.accounting.leaves.leaf import Leaf
    from discreet.accounting.pair import Reals

__all__ = ["MOST_ORDER", "between", "log_epoch_moments", "log_replaced_moment", "whole_exponents"]

MOST_ORDER = 1024
"""No expansion is made for larger orders."""


def whole_exponents(leaf: Leaf, order: int) -> Reals:
    """(j - 1) r(j) for j = 2 .. order; infinite from the first order on at which nothing is known."""
    length = 8
    while length < order:
        length *= 2
    return _exponents(leaf, length)[: order - 1]


@lru_cache(maxsize=256)
def _exponents(leaf: Leaf, order: int) -> Reals:
    found = np.full(order - 1, np.inf)
    start = 2
    if order > 8:
        start = order // 2 + 1
        found[: start - 2] = _exponents(leaf, order // 2)
        if not found[start - 3] < math.inf:
            return found
    for j in range(start, order + 1):
        found[j - 2] = (j - 1) * leaf.rdp(float(j))
        if not found[j - 2] < math.inf:
            break
    return found


def between(order: float, log_moment: Callable[[int], float]) -> float:
    """ln E w^order / (order - 1) for any order > 1, from upper bounds of ln E w^a at whole orders a."""
    low = math.floor(order)
    at_low = log_moment(low) if low > 1 else 0.0
    if low == order:
        return at_low / (order - 1) * (1 + 1e-15)
    share = order - low
    return ((1 - share) * at_low + share * log_moment(low + 1)) / (order - 1) * (1 + 4e-15)


def log_replaced_moment(order: int, rate: float, one: Reals, two: Reals) -> float:
    """ln of a bound of E_Y (dX/dY)^order for a whole order >= 2.

    `one` and `two` are (j - 1) r(j), j = 2 .. order, for a record that joins (R against P) and for a replaced one.
    """
    j = np.arange(2, order + 1)
    apart = np.minimum(math.log(2.0) + one[: order - 1], j * math.log(2.0) + _log_expm1(one[: order - 1]))
    middle = np.minimum(
        np.logaddexp(math.log1p(-rate) + apart, math.log(rate) + _log_expm1(two[: order - 1])),
        apart - (j - 1) * math.log1p(-rate),
    )
    ways = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    terms = ways + j * math.log(rate) + middle
    if np.isposinf(terms).any():
        return math.inf
    total = _log_sum(terms)
    if total == -math.inf:
        return 0.0
    # logarithms of factorials and powers are rounded in proportion to their size
    total += 1e-11 + 1e-14 * order * (abs(math.log(rate)) + math.log(order) + 1) + 1e-15 * float(np.abs(middle).max())
    return math.log1p(math.exp(total)) * (1 + 1e-15) if total < 700 else total + 1e-300


def log_epoch_moments(batches: int, exponents: Reals) -> Reals:
    """ln of bounds of E S^a for a = 0 .. len(exponents) + 1, from (k - 1) r(k) at k = 2, 3, ..."""
    known = exponents[np.isfinite(exponents)]
    degree = len(known) + 1
    k = np.arange(degree + 1)
    factorials = gammaln(k + 1.0)
    series = np.concatenate([[0.0, 0.0], known]) - factorials
    power, result, times = series, None, batches
    while times:
        if times & 1:
            result = power if result is None else _product(result, power)
        times >>= 1
        if times:
            power = _product(power, power)
    assert result is not None
    moments = result + factorials - k * math.log(batches)
    # a coefficient of degree n is a sum of products with at most n factors that are not exactly 1: their roundings add
    # up, once for each of the 2 log2(T) products
    size = np.maximum.accumulate(np.maximum(np.abs(series), np.abs(result)) + k * math.log(batches) + factorials)
    moments = np.maximum(moments, 0.0) + 2 * batches.bit_length() * ROUNDING * k * (16 * size + k + 16)
    moments[:2] = 0.0
    return np.concatenate([moments, np.full(len(exponents) - len(known), np.inf)])


def _product(a: Reals, b: Reals) -> Reals:
    """Logarithms of the coefficients of a product of two power series, as many as they have."""
    found = np.empty(len(a))
    for degree in range(len(a)):
        found[degree] = _log_sum(a[: degree + 1] + b[degree::-1])
    return found


def _log_sum(terms: Reals) -> float:
    """ln of the sum of exponentials, good to a few roundings of the largest."""
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum())) if math.isfinite(top) else top


def _log_expm1(x: Reals) -> Reals:
    """ln(e^x - 1) for x >= 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(x > 30, x, np.log(np.expm1(np.minimum(x, 30.0)))))
