r"""Divergences between two distributions on the same finite set, given as arrays of probabilities.

Cells may have probability zero on either side; a divergence that is infinite is returned as infinity. Probabilities
must be >= 0 and sum to one within 1e-12 (they are not renormalised).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.arguments import nonnegative
from discreet.divergence.logspace import Reals, exp_minus
from discreet.divergence.special import logsumexp
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

__all__ = [
    "entropy_terms",
    "f_divergence",
    "finite_pair",
    "hockey_stick",
    "kl",
    "log_ratio",
    "renyi",
    "total_variation",
]

_SUM_TOLERANCE = 1e-12


def finite_pair(p: ArrayLike, q: ArrayLike) -> tuple[Reals, Reals]:
    """The two distributions as float arrays of one length, checked: non-negative, finite, each summing to one."""
    checked = []
    for name, given in (("p", p), ("q", q)):
        masses = np.asarray(given, dtype=np.float64)
        if masses.ndim != 1 or masses.size == 0:
            raise InvalidArgument(name, given, "pass a non-empty list of probabilities")
        if not (np.isfinite(masses).all() and (masses >= 0).all()):
            raise InvalidArgument(name, given, "pass finite probabilities >= 0")
        total = math.fsum(masses)
        if abs(total - 1.0) > _SUM_TOLERANCE:
            raise InvalidArgument(name, given, f"pass probabilities that sum to 1 (these sum to {total!r})")
        checked.append(masses)
    first, second = checked
    if first.size != second.size:
        raise InvalidArgument("q", q, f"pass as many probabilities as in p ({first.size}, not {second.size})")
    return first, second


def log_ratio(p: Reals, q: Reals) -> Reals:
    r"""ln(p/q) cell by cell, accurate also where p and q nearly agree; +-inf where one is zero, NaN where both are."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = np.log1p((p - q) / q)
        quotient = p / q
        ordinary = (quotient > 1e-300) & (quotient < 1e300)
        far = np.where(ordinary, np.log(quotient), np.log(p) - np.log(q))
    return np.where((p > 0.5 * q) & (p < 2.0 * q), near, far)


def entropy_terms(p: Reals, q: Reals, loss: Reals) -> Reals:
    r"""q - p + p ln(p/q) cell by cell, given loss = ln(p/q): each >= 0, their sum is the KL divergence.

    For losses above -1 as p (e^{-loss} - 1 + loss), which keeps its digits for p near q.
    """
    with np.errstate(invalid="ignore"):
        return np.where(loss > -1.0, p * exp_minus(-np.maximum(loss, -1.0)).real, (q - p) + p * loss)


def hockey_stick(p: ArrayLike, q: ArrayLike, *, epsilon: ArrayLike) -> Reals:
    r"""Hockey-stick divergence E_gamma(p||q) at gamma = e^epsilon, for one epsilon or many.

        E_gamma(p||q) = sup_A p(A) - gamma q(A) = sum of max(0, p_i - gamma q_i)

    (p, q) is (epsilon, delta)-indistinguishable in this order iff it is at most delta. [Balle et al. 2018, Sec. 2]

    >>> float(hockey_stick([0.75, 0.25], [0.25, 0.75], epsilon=0.0))
    0.5
    """
    first, second = finite_pair(p, q)
    levels = np.asarray(epsilon, dtype=np.float64)
    if np.isnan(levels).any():
        raise InvalidArgument("epsilon", epsilon, "pass real numbers, not NaN")
    # e^epsilon overflows before e^epsilon q does: apply half of it twice. Past 1400 no positive double q survives.
    half = np.exp(0.5 * np.minimum(levels, 1400.0))[..., None]
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(second == 0, 0.0, (second * half) * half)
        return np.asarray(np.maximum(first - scaled, 0.0).sum(axis=-1))[()]


def total_variation(p: ArrayLike, q: ArrayLike) -> float:
    """Total variation sup_A |p(A) - q(A)|, the advantage of the best test between p and q.

    >>> total_variation([0.75, 0.25], [0.25, 0.75])
    0.5
    """
    first, second = finite_pair(p, q)
    return 0.5 * math.fsum(np.abs(first - second))


def kl(p: ArrayLike, q: ArrayLike) -> float:
    """Kullback-Leibler divergence sum p ln(p/q), infinite unless q > 0 wherever p > 0.

    >>> round(kl([0.75, 0.25], [0.25, 0.75]), 12)
    0.549306144334
    """
    return renyi(p, q, order=1.0)


def renyi(p: ArrayLike, q: ArrayLike, *, order: float) -> float:
    r"""Rényi divergence D_order(p||q) for every order in [0, inf].

        D_a(p||q) = ln( sum p^a q^{1-a} ) / (a - 1),   D_0 = -ln q(p > 0),  D_1 = KL,  D_inf = max ln(p/q),

    non-decreasing in the order [Van Erven and Harremoës 2014, Thm 3]. For p near q the logarithm is taken of one plus
    second-order remainders, so that the result keeps its digits: with l = ln(p/q) and r(x) = e^x - 1 - x,

        sum p^a q^{1-a} - 1 = (a - 1) ( sum_{p>0} p (r(-l) + r((a-1) l)/(a-1)) + q(p=0) ).

    >>> round(renyi([0.75, 0.25], [0.25, 0.75], order=2.0), 12)
    0.847297860387
    """
    first, second = finite_pair(p, q)
    if order != math.inf:
        order = nonnegative("order", order)
    if order == 0:
        support = math.fsum(second[first > 0])
        return -math.log(support) if 0 < support < 1 else (math.inf if support == 0 else 0.0)
    if not ((first > 0) & (second > 0)).any() or (order >= 1 and (first[second == 0] > 0).any()):
        return math.inf
    if order == math.inf:
        return max(0.0, float(log_ratio(first, second)[first > 0].max()))
    if order == 1:
        return _entropy(first, second)
    # the sum is the same for order a of (p, q) and 1 - a of (q, p), whose excess over one, -a, is exact
    log_sum = _log_sum(second, first, -order) if order < 0.5 else _log_sum(first, second, order - 1.0)
    return max(0.0, log_sum / (order - 1.0))


def _entropy(p: Reals, q: Reals) -> float:
    """KL divergence, leaving out the cells with q = 0 < p."""
    both = (p > 0) & (q > 0)
    loss = log_ratio(p[both], q[both])
    return math.fsum(entropy_terms(p[both], q[both], loss)) + math.fsum(q[p == 0])


def _log_sum(p: Reals, q: Reals, excess: float) -> float:
    """ln of the sum of p^{1 + excess} q^{-excess}, for excess >= -1/2 and not 0."""
    both = (p > 0) & (q > 0)
    masses, loss = p[both], log_ratio(p[both], q[both])
    with np.errstate(over="ignore", invalid="ignore"):
        growth = masses * exp_minus(excess * loss).real
    if np.isfinite(growth).all():
        change = excess * _entropy(p, q) + math.fsum(growth) - (1.0 + excess) * math.fsum(p[q == 0])
        if -0.5 < change < 1.0:
            return math.log1p(change)
    return float(logsumexp(np.log(masses) + excess * loss))


def f_divergence(
    p: ArrayLike, q: ArrayLike, *, generator: Callable[[Reals], Reals], recession: float | None = None
) -> float:
    r"""Csiszár's f-divergence D_f(p||q) = sum q f(p/q) for a convex f with f(1) = 0.

    `generator` is f, vectorised over [0, inf); f(0) may be infinite. `recession` is its slope at infinity, lim f(t)/t,
    which weighs the cells with q = 0 < p; it is needed only if there are such cells. [Csiszár 1967]

    >>> round(f_divergence([0.75, 0.25], [0.25, 0.75], generator=lambda t: (t - 1) ** 2), 12)  # chi-square
    1.333333333333
    """
    first, second = finite_pair(p, q)
    inside = second > 0
    outside = math.fsum(first[~inside])
    if outside > 0 and recession is None:
        raise InvalidArgument(
            "recession", recession, "some cells have q = 0 < p: pass the slope of the generator at infinity, lim f(t)/t"
        )
    values = np.asarray(generator(first[inside] / second[inside]), dtype=np.float64)
    if np.isnan(values).any():
        raise InvalidArgument("generator", generator, "it returned NaN: give its limits at 0 and 1 explicitly")
    terms = second[inside] * values
    total = math.fsum(terms) if np.isfinite(terms).all() else float(terms.sum())
    return total + (outside * recession if outside > 0 and recession is not None else 0.0)
