r"""Divergences between a noise distribution and its shift: any additive noise with a symmetric log-concave density.

For a log-concave density g the ratio g(x - s)/g(x) does not decrease in x, so the best tests are "x > t" and every
divergence of the pair (shifted, unshifted) follows from the density and one tail. By symmetry about 0 both orders of
the pair have the same divergences. Closed forms for two families live in `gaussian` and `laplace`; this file serves
all others, and is checked against those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.arguments import nonnegative
from discreet.divergence.finite import entropy_terms
from discreet.divergence.logspace import Reals, exp_minus, log1mexp, log_normal_density
from discreet.divergence.special import log_expit, log_ndtr, logsumexp
from discreet.errors import CertificateError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["ShiftedFamily", "gaussian_noise", "laplace_noise", "logistic_noise"]

_DEEPEST = 745.0  # -ln of the smallest tail that is looked at: below every positive double
_LADDER = np.concatenate([[math.log(2.0), 1.0, 1.5, 2.0, 2.5], np.arange(3.0, _DEEPEST)])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@dataclass(frozen=True)
class ShiftedFamily:
    r"""Noise with a symmetric log-concave density g, and its pair (g(x - shift), g(x)) for any shift >= 0.

    `log_density` gives ln g(x) and `log_upper_tail` gives ln P(X > x), both vectorised; `kinks` are the points where g
    is not smooth. Symmetry and log-concavity are assumed, not checked. Accuracy: the loss ln g(x - shift) - ln g(x) is
    a difference, so results carry a relative error of about 1e-15 |ln g| / shift where the shift is small.

    >>> round(laplace_noise().hockey_stick(0.5, shift=1.0).item(), 12)
    0.221199216929
    """

    name: str
    log_density: Callable[[Reals], Reals]
    log_upper_tail: Callable[[Reals], Reals]
    kinks: tuple[float, ...] = ()

    def loss(self, x: ArrayLike, *, shift: float) -> Reals:
        """Privacy loss ln g(x - shift) - ln g(x) of the observation x; it does not decrease in x."""
        points = np.asarray(x, dtype=np.float64)
        return self.log_density(points - shift) - self.log_density(points)

    def upper_quantile(self, log_tail: ArrayLike) -> Reals:
        """The x with ln P(X > x) = log_tail, by bisection on the doubles."""
        wanted = np.asarray(log_tail, dtype=np.float64)
        return _last_where(lambda x: self.log_upper_tail(x) >= wanted, shape=wanted.shape)

    def threshold(self, epsilon: ArrayLike, *, shift: float) -> Reals:
        """The largest x whose loss is at most epsilon, by bisection; +-inf if that is beyond every tail >= e^-745."""
        levels = np.asarray(epsilon, dtype=np.float64)
        end = float(_quantiles(self)[-1])

        def before(x: Reals) -> NDArray[np.bool_]:
            inside = (x > -end) & (x < end + shift)
            with np.errstate(invalid="ignore"):
                loss = self.loss(np.clip(x, -end, end + shift), shift=shift)
            return np.where(inside, loss <= levels, x <= -end)

        t = _last_where(before, shape=levels.shape)
        return np.where(t >= np.nextafter(end + shift, 0.0), np.inf, np.where(t <= -end, -np.inf, t))[()]

    def tradeoff(self, alpha: ArrayLike, *, shift: float) -> Reals:
        """Smallest missed detection at false alarm alpha: P(X < x - shift) where P(X > x) = alpha."""
        a = np.asarray(alpha, dtype=np.float64)
        if not ((a >= 0) & (a <= 1)).all():
            raise InvalidArgument("alpha", alpha, "pass false-alarm probabilities between 0 and 1")
        with np.errstate(divide="ignore"):
            x = self.upper_quantile(np.log(a))
        return np.where(a == 0, 1.0, np.where(a == 1, 0.0, np.exp(self.log_upper_tail(shift - x))))[()]

    def hockey_stick(self, epsilon: ArrayLike, *, shift: float) -> Reals:
        """E_gamma of the pair at gamma = e^epsilon, computed as in `log_hockey_stick`."""
        return np.exp(self.log_hockey_stick(epsilon, shift=shift))

    def log_hockey_stick(self, epsilon: ArrayLike, *, shift: float) -> Reals:
        r"""ln E_gamma of the pair at gamma = e^epsilon, for one epsilon or many.

        With t the threshold at epsilon >= 0, E_gamma = P(X > t - shift) - e^epsilon P(X > t). Where these nearly cancel
        it is instead the integral of g(x - shift) - e^epsilon g(x) over x > t, by Gauss-Legendre between quantiles.
        For epsilon < 0, E = 1 - e^epsilon + e^epsilon E at -epsilon.
        """
        shift = nonnegative("shift", shift)
        levels = np.asarray(epsilon, dtype=np.float64)
        if np.isnan(levels).any():
            raise InvalidArgument("epsilon", epsilon, "pass real numbers, not NaN")
        size = np.abs(levels)
        t = np.asarray(self.threshold(size, shift=shift))
        result = np.full(levels.shape, -np.inf)
        for index in np.ndindex(t.shape):
            if shift > 0 and math.isfinite(t[index]):
                result[index] = self._log_mass_beyond(float(t[index]), float(size[index]), shift)
        below = levels < 0
        with np.errstate(divide="ignore"):
            negative = np.log(-np.expm1(levels, where=below, out=np.zeros_like(size)) + np.exp(result - size))
        return np.where(below, negative, result)[()]

    def _log_mass_beyond(self, t: float, epsilon: float, shift: float) -> float:
        log_taken, log_left = np.asarray(self.log_upper_tail(np.array([t - shift, t])))
        kept = epsilon + float(log_left) - float(log_taken)
        if kept < -0.1:
            return float(log_taken + log1mexp(kept))
        points, log_weights = self._panels(shift, start=t)
        gap = np.minimum(epsilon - self.loss(points, shift=shift), 0.0)
        return float(logsumexp(log_weights + self.log_density(points - shift) + log1mexp(gap)))

    def renyi(self, order: float, *, shift: float) -> float:
        r"""Rényi divergence of the pair for every finite order > 0, by quadrature.

        Refuses orders whose integrand has not died out where the noise's own tails fall below 1e-300.

        >>> round(gaussian_noise().renyi(3.0, shift=0.5), 12)
        0.375
        """
        shift = nonnegative("shift", shift)
        if shift == 0:
            return 0.0
        if order == math.inf:
            raise CertificateError(
                "the Rényi divergence of infinite order",
                limit="a supremum over the whole line",
                advice="Use a large finite order, or the closed form of the family.",
            )
        if not order > 0:
            raise InvalidArgument("order", order, "pass an order > 0")
        points, log_weights = self._panels(shift)
        loss = self.loss(points, shift=shift)
        log_masses = log_weights + self.log_density(points - shift)
        excess = order - 1.0
        log_terms = log_masses + excess * loss
        total = float(logsumexp(log_terms))
        if max(log_terms[:20].max(), log_terms[-20:].max()) > total - 50.0:
            raise CertificateError(
                f"the Rényi divergence of order {order:g}",
                limit=f"the tails of the {self.name} noise beyond 1e-300",
                advice="Use a smaller order or shift, or the closed form of the family.",
            )
        if abs(total) > 0.5:
            return total / excess
        # one plus second-order remainders, as in `discreet.divergence.finite.renyi`
        masses = np.exp(log_masses)
        remainder = math.fsum(entropy_terms(masses, np.exp(log_weights + self.log_density(points)), loss))
        if excess == 0:
            return remainder
        remainder += math.fsum(masses * exp_minus(excess * loss).real) / excess
        return math.log1p(excess * remainder) / excess

    def kl(self, *, shift: float) -> float:
        """Kullback-Leibler divergence of the pair."""
        return self.renyi(1.0, shift=shift)

    def total_variation(self, *, shift: float) -> float:
        """Total variation of the pair, P(-shift/2 < X < shift/2)."""
        return float(self.hockey_stick(0.0, shift=shift))

    def f_divergence(
        self, generator: Callable[[Reals], Reals], *, shift: float, kinks: Sequence[float] = (1.0,)
    ) -> float:
        r"""D_f of the pair, the integral of f(g(x - shift)/g(x)) g(x), by Gauss-Legendre between quantiles.

        `kinks` are the ratios at which the generator f is not smooth: the panels are cut there.

        >>> noise, chi_square = gaussian_noise(), lambda t: (t - 1) ** 2
        >>> round(noise.f_divergence(chi_square, shift=1.0) - math.expm1(1.0), 12)
        0.0
        """
        shift = nonnegative("shift", shift)
        cuts = np.atleast_1d(self.threshold(np.log(np.asarray(kinks, dtype=np.float64)), shift=shift))
        points, log_weights = self._panels(shift, cuts=cuts[np.isfinite(cuts)])
        values = np.asarray(generator(np.exp(self.loss(points, shift=shift))), dtype=np.float64)
        return math.fsum(np.exp(log_weights + self.log_density(points)) * values)

    def _panels(self, shift: float, *, start: float = -math.inf, cuts: Reals | None = None) -> tuple[Reals, Reals]:
        """Gauss-Legendre nodes and log weights between the quantiles of both distributions, from `start` on."""
        ladder = _quantiles(self)
        own = np.concatenate([-ladder[::-1], ladder, self.kinks])
        edges = np.concatenate([own, own + shift, cuts if cuts is not None else np.empty(0)])
        edges = np.unique(np.append(edges[edges > start], start) if start > -math.inf else edges)
        # a far quantile of the one can lie where the other is long zero: log space takes care of that
        half = 0.5 * np.diff(edges)[:, None]
        points = edges[:-1, None] + half * (1.0 + _NODES)
        return points.ravel(), np.log(half * _WEIGHTS).ravel()


@lru_cache(maxsize=32)
def _quantiles(family: ShiftedFamily) -> Reals:
    """Upper quantiles at the tails 1/2, ..., e^-745, the ladder on which panels stand."""
    return np.unique(family.upper_quantile(-_LADDER))


def _last_where(holds: Callable[[Reals], NDArray[np.bool_]], *, shape: tuple[int, ...]) -> Reals:
    """The largest double at which a predicate that goes from true to false still holds, element by element."""
    low = np.full(shape, _ordinal(-np.finfo(np.float64).max))
    high = np.full(shape, _ordinal(np.finfo(np.float64).max))
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        true = holds(_double(middle))
        low, high = np.where(true, middle, low), np.where(true, high, middle)
    return _double(low)


def _ordinal(x: float) -> np.int64:
    """Position of a double among all doubles, so that neighbours differ by one and 0 is at 0."""
    bits = int(np.float64(abs(x)).view(np.int64))
    return np.int64(bits if x >= 0 else -bits)


def _double(ordinal: NDArray[np.int64]) -> Reals:
    size = np.abs(ordinal).view(np.float64)
    return np.where(ordinal < 0, -size, size)


def gaussian_noise() -> ShiftedFamily:
    """Standard normal noise."""
    return ShiftedFamily("Gaussian", log_normal_density, _gaussian_upper_tail)


def laplace_noise() -> ShiftedFamily:
    """Laplace noise of scale 1."""
    return ShiftedFamily("Laplace", _laplace_log_density, _laplace_upper_tail, kinks=(0.0,))


def logistic_noise() -> ShiftedFamily:
    """Logistic noise of scale 1: between Laplace's tails and the Gaussian's smooth centre."""
    return ShiftedFamily("logistic", _logistic_log_density, _logistic_upper_tail)


def _gaussian_upper_tail(x: Reals) -> Reals:
    return np.asarray(log_ndtr(-x))


def _laplace_log_density(x: Reals) -> Reals:
    return -np.abs(x) - math.log(2.0)


def _laplace_upper_tail(x: Reals) -> Reals:
    size = np.abs(x)
    return np.where(x > 0, -size - math.log(2.0), np.log1p(-0.5 * np.exp(-size)))


def _logistic_log_density(x: Reals) -> Reals:
    size = np.abs(x)
    return -size - 2.0 * np.log1p(np.exp(-size))


def _logistic_upper_tail(x: Reals) -> Reals:
    return np.asarray(log_expit(-x))
