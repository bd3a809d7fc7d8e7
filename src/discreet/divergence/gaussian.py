r"""Divergences between N(mu, 1) and N(0, 1), the pair of the Gaussian mechanism with mu = sensitivity / sigma.

The pair is symmetric: both orders have the same divergences. Arguments broadcast; mu may be 0 (equal distributions)
or infinite (disjoint ones). Profiles keep their relative accuracy down to 1e-300, their logarithms beyond.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.divergence.logspace import Reals, mills, mills_drop
from discreet.divergence.special import erf, ndtr, ndtri
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "hockey_stick_gaussian",
    "kl_gaussian",
    "log_hockey_stick_gaussian",
    "renyi_gaussian",
    "total_variation_gaussian",
    "tradeoff_gaussian",
]

_SQRT_2PI = math.sqrt(2 * math.pi)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def _two_sum(a: Reals, b: Reals) -> tuple[Reals, Reals]:
    """a + b as rounded sum and exact remainder."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Reals, b: Reals) -> tuple[Reals, Reals]:
    """a b as rounded product and exact remainder, by Dekker's splitting."""
    product = a * b
    scaled = 134217729.0 * a
    a_high = scaled - (scaled - a)
    scaled = 134217729.0 * b
    b_high = scaled - (scaled - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _threshold(epsilon: Reals, mu: Reals) -> tuple[Reals, Reals, Reals]:
    r"""a = epsilon/mu - mu/2 and a^2/2 as a rounded value plus its remainder.

    Rounding a at 1e-16 (epsilon/mu) would cost a relative error a (epsilon/mu) 1e-16 in density(a): 2e-12 at mu = 1000,
    a = 37. So numerator and quotient are carried in twice the precision.
    """
    square, square_rest = _two_product(mu, mu)
    head, rest = _two_sum(epsilon, -0.5 * square)
    head, rest = _two_sum(head, rest - 0.5 * square_rest)
    a = head / mu
    product, product_rest = _two_product(a, mu)
    a_rest = (((head - product) - product_rest) + rest) / mu
    energy, energy_rest = _two_product(a, a)
    return a, 0.5 * energy, 0.5 * energy_rest + a * a_rest


def _broadcast(epsilon: ArrayLike, mu: ArrayLike) -> tuple[Reals, Reals]:
    e, m = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64))
    if np.isnan(e).any():
        raise InvalidArgument("epsilon", epsilon, "pass real numbers, not NaN")
    if not (m >= 0).all():
        raise InvalidArgument("mu", mu, "pass numbers >= 0")
    return e, m


def hockey_stick_gaussian(epsilon: ArrayLike, *, mu: ArrayLike) -> Reals:
    r"""Hockey-stick divergence between N(mu, 1) and N(0, 1): the privacy profile of mu-Gaussian differential privacy.

        delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

    [Dong et al. 2022, Cor. 2.13]. With a = epsilon/mu - mu/2 and Mills' ratio M this is
    density(a) (M(a) - M(a + mu)), which is how it is computed: relative error at most 1e-12 (typically 1e-14) wherever
    delta >= 1e-300, for mu from 1e-5 to 1e3. For epsilon < 0, it is 1 - e^epsilon + e^epsilon delta(-epsilon).

    >>> round(float(hockey_stick_gaussian(1.0, mu=1.0)), 12)
    0.126936737507
    """
    e, m = _broadcast(epsilon, mu)
    size = np.abs(e)
    ordinary = (m > 0) & np.isfinite(m) & np.isfinite(size)
    result = np.where(np.isinf(m), 1.0, 0.0)
    if ordinary.any():
        a, energy, energy_rest = _threshold(size[ordinary], m[ordinary])
        width = m[ordinary]
        density = np.exp(-energy) * np.exp(-energy_rest) / _SQRT_2PI
        inner = a < -1.0
        deltas = np.empty_like(a)
        deltas[~inner] = density[~inner] * mills_drop(a[~inner], width[~inner])
        # Phi(-a) = 1 - density(a) M(-a), more than 0.8 here
        deltas[inner] = 1.0 - density[inner] * (mills(-a[inner]) + mills(a[inner] + width[inner]))
        result[ordinary] = deltas
    below = e < 0
    if below.any():
        result[below] = -np.expm1(e[below]) + np.exp(e[below]) * result[below]
    return result[()]


def log_hockey_stick_gaussian(epsilon: ArrayLike, *, mu: ArrayLike) -> Reals:
    r"""ln of `hockey_stick_gaussian`, relative error at most 1e-12 also where delta itself underflows.

    >>> round(float(log_hockey_stick_gaussian(450.0, mu=1.0)), 4)
    -101038.2624
    """
    e, m = _broadcast(epsilon, mu)
    size = np.abs(e)
    ordinary = (m > 0) & np.isfinite(m) & np.isfinite(size)
    result = np.where(np.isinf(m), 0.0, -np.inf)
    if ordinary.any():
        a, energy, energy_rest = _threshold(size[ordinary], m[ordinary])
        width = m[ordinary]
        inner = a < -1.0
        logs = np.empty_like(a)
        drop = mills_drop(a[~inner], width[~inner])
        logs[~inner] = (np.log(drop) - _LOG_SQRT_2PI - energy_rest[~inner]) - energy[~inner]
        density = np.exp(-energy[inner]) / _SQRT_2PI
        logs[inner] = np.log1p(-density * (mills(-a[inner]) + mills(a[inner] + width[inner])))
        result[ordinary] = logs
    below = e < 0
    if below.any():
        # 1 - delta = e^epsilon (1 - delta(-epsilon))
        result[below] = np.log1p(np.exp(e[below]) * np.expm1(result[below]))
    return result[()]


def renyi_gaussian(order: ArrayLike, *, mu: ArrayLike) -> Reals:
    r"""Rényi divergence D_order between N(mu, 1) and N(0, 1): order mu^2 / 2. [Mironov 2017, Prop. 7]

    >>> float(renyi_gaussian(2.0, mu=0.5))
    0.25
    """
    alpha, m = np.broadcast_arrays(np.asarray(order, dtype=np.float64), np.asarray(mu, dtype=np.float64))
    if not (alpha >= 0).all():
        raise InvalidArgument("order", order, "pass orders >= 0")
    if not (m >= 0).all():
        raise InvalidArgument("mu", mu, "pass numbers >= 0")
    half = np.where((m == 0) | (alpha == 0), 0.0, 0.5 * m * m)
    with np.errstate(invalid="ignore"):
        return np.where(half == 0, 0.0, alpha * half)[()]


def kl_gaussian(*, mu: ArrayLike) -> Reals:
    """Kullback-Leibler divergence between N(mu, 1) and N(0, 1): mu^2 / 2."""
    return renyi_gaussian(1.0, mu=mu)


def total_variation_gaussian(*, mu: ArrayLike) -> Reals:
    """Total variation between N(mu, 1) and N(0, 1): 2 Phi(mu/2) - 1, the advantage of the best test.

    >>> round(float(total_variation_gaussian(mu=1.0)), 12)
    0.382924922548
    """
    _, m = _broadcast(0.0, mu)
    return np.asarray(erf(m / math.sqrt(8.0)))[()]


def tradeoff_gaussian(alpha: ArrayLike, *, mu: ArrayLike) -> Reals:
    r"""Smallest missed detection at false alarm alpha: G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu).

    [Dong et al. 2022, Sec. 2.2]

    >>> round(float(tradeoff_gaussian(0.05, mu=1.0)), 12)
    0.740488977159
    """
    _, m = _broadcast(0.0, mu)
    a = np.asarray(alpha, dtype=np.float64)
    if not ((a >= 0) & (a <= 1)).all():
        raise InvalidArgument("alpha", alpha, "pass false-alarm probabilities between 0 and 1")
    with np.errstate(invalid="ignore"):
        missed = ndtr(-ndtri(a) - m)
    return np.where(np.isinf(m) | (a == 1), 0.0, missed)[()]
