r"""Divergences between Laplace(shift, 1) and Laplace(0, 1), the pair of the Laplace mechanism.

`shift` = sensitivity / scale, which is also the pure epsilon of the mechanism. The pair is symmetric: both orders have
the same divergences. Arguments broadcast; the shift may be 0 or infinite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.divergence.logspace import Reals, exp_minus, log1mexp, log1p_minus
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "hockey_stick_laplace",
    "kl_laplace",
    "log_hockey_stick_laplace",
    "renyi_laplace",
    "total_variation_laplace",
    "tradeoff_laplace",
]


def _shift(shift: ArrayLike) -> Reals:
    s = np.asarray(shift, dtype=np.float64)
    if not (s >= 0).all():
        raise InvalidArgument("shift", shift, "pass numbers >= 0 (sensitivity / scale)")
    return s


def _profile_arguments(epsilon: ArrayLike, shift: ArrayLike) -> tuple[Reals, Reals, Reals]:
    e, s = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), _shift(shift))
    if np.isnan(e).any():
        raise InvalidArgument("epsilon", epsilon, "pass real numbers, not NaN")
    with np.errstate(invalid="ignore"):
        gap = np.where(e >= s, 0.0, 0.5 * (e - s))
    return e, s, gap


def hockey_stick_laplace(epsilon: ArrayLike, *, shift: ArrayLike) -> Reals:
    r"""Hockey-stick divergence between Laplace(shift, 1) and Laplace(0, 1).

        delta(epsilon) = 1 - e^{(epsilon - shift)/2}   for |epsilon| <= shift,
        delta(epsilon) = max(0, 1 - e^epsilon)         outside.

    [Balle et al. 2018, Thm 3]

    >>> round(float(hockey_stick_laplace(0.5, shift=1.0)), 12)
    0.221199216929
    """
    e, s, gap = _profile_arguments(epsilon, shift)
    return np.where(e < -s, 0.0 - np.expm1(np.minimum(e, 0.0)), 0.0 - np.expm1(gap))[()]


def log_hockey_stick_laplace(epsilon: ArrayLike, *, shift: ArrayLike) -> Reals:
    """ln of `hockey_stick_laplace`; -inf once epsilon >= shift."""
    e, s, gap = _profile_arguments(epsilon, shift)
    return np.where(e < -s, log1mexp(np.minimum(e, 0.0)), log1mexp(gap))[()]


def renyi_laplace(order: ArrayLike, *, shift: ArrayLike) -> Reals:
    r"""Rényi divergence D_order between Laplace(shift, 1) and Laplace(0, 1), for every order in [0, inf].

    With s = shift, a = order > 1, [Mironov 2017, Prop. 6]

        (a - 1) D_a = ln( a/(2a-1) e^{(a-1)s} + (a-1)/(2a-1) e^{-as} ),

    continued to 0 < a < 1; D_1 = s + e^{-s} - 1 and D_inf = s. To keep the digits of a small s the logarithm is taken
    of one plus second-order remainders (`exp_minus`, `log1p_minus`), near a = 1/2 in the form
    e^{-h} (cosh w + h sinh(w)/w) with h = s/2, w = (2a - 1) h.

    >>> round(float(renyi_laplace(2.0, shift=1.0)), 12)
    0.619123629999
    """
    a, s = np.broadcast_arrays(np.asarray(order, dtype=np.float64), _shift(shift))
    if not (a >= 0).all():
        raise InvalidArgument("order", order, "pass orders >= 0 (infinity allowed)")
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # (a - 1) D_a is the same for the orders a and 1 - a; the excess of the latter over one, -a, is exact
        low = a < 0.5
        high, excess = np.where(low, 1.0 - a, a), np.where(low, -a, a - 1.0)
        log_sum = np.where(high < 0.75, _log_sum_middle(high, s), _log_sum_outer(high, excess, s))
        result = log_sum / (a - 1.0)
    result = np.where(a == 1, exp_minus(-np.where(np.isinf(s), 0.0, s)).real, result)
    result = np.where(np.isinf(a), s, result)
    result = np.where(np.isinf(s), np.inf, result)
    return np.where((s == 0) | (a == 0), 0.0, result)[()]


def _log_sum_outer(a: Reals, excess: Reals, s: Reals) -> Reals:
    """(a - 1) D_a for a = 1 + excess >= 3/4: no cancelling terms, and no overflow for large (a - 1) s."""
    rise = excess * s
    remainder = a * exp_minus(rise).real + excess * exp_minus(-a * s).real
    near = np.log1p(remainder / (2.0 * a - 1.0))
    far = rise + np.log1p(-excess / (2.0 * a - 1.0)) + np.log1p(excess / a * np.exp(-(2.0 * a - 1.0) * s))
    return np.where(np.abs(rise) < 1.0, near, far)


def _log_sum_middle(a: Reals, s: Reals) -> Reals:
    """(a - 1) D_a for a in [1/2, 3/4)."""
    half = 0.5 * s
    w = (2.0 * a - 1.0) * half
    versine = 2.0 * np.sinh(0.5 * w) ** 2
    excess = (exp_minus(w).real - exp_minus(-w).real) / np.where(w == 0, 1.0, 2.0 * w)  # sinh(w)/w - 1
    near = log1p_minus(half) + np.log1p((versine + half * excess) / (1.0 + half))
    ratio = np.where(w == 0, 1.0, -np.expm1(-2.0 * w) / np.where(w == 0, 1.0, 2.0 * w))
    far = w - half + np.log(0.5 * (1.0 + np.exp(-2.0 * w)) + half * ratio)
    return np.where(s < 2.0, near, far)


def kl_laplace(*, shift: ArrayLike) -> Reals:
    """Kullback-Leibler divergence between Laplace(shift, 1) and Laplace(0, 1): shift + e^{-shift} - 1."""
    return renyi_laplace(1.0, shift=shift)


def total_variation_laplace(*, shift: ArrayLike) -> Reals:
    """Total variation between Laplace(shift, 1) and Laplace(0, 1): 1 - e^{-shift/2}."""
    return hockey_stick_laplace(0.0, shift=shift)


def tradeoff_laplace(alpha: ArrayLike, *, shift: ArrayLike) -> Reals:
    r"""Smallest missed detection at false alarm alpha.

        f(alpha) = 1 - e^s alpha     for alpha < e^{-s}/2,
                   e^{-s}/(4 alpha)  for e^{-s}/2 <= alpha <= 1/2,
                   e^{-s}(1 - alpha) above,   s = shift.

    the curve F(F^-1(1 - alpha) - s) of a shifted log-concave distribution F. [Dong et al. 2022, Sec. 2.2]

    >>> round(float(tradeoff_laplace(0.25, shift=1.0)), 12)
    0.367879441171
    """
    a, s = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), _shift(shift))
    if not ((a >= 0) & (a <= 1)).all():
        raise InvalidArgument("alpha", alpha, "pass false-alarm probabilities between 0 and 1")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        kept = np.exp(-s)
        missed = np.where(a <= 0.5, kept / (4.0 * a), kept * (1.0 - a))
        missed = np.where(a < 0.5 * kept, 1.0 - np.exp(s) * a, missed)
    return np.where(np.isinf(s), 0.0, missed)[()]
