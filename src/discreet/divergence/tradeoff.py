r"""Trade-off functions: the smallest missed detection at each false alarm, and everything that follows from it.

Statements of [Dong et al. 2022] are numbered as in arXiv:1905.02383v3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arguments import count, nonnegative, probability
from discreet.divergence.curves import Curve, GaussianCurve, LaplaceCurve, ShiftedCurve
from discreet.divergence.drawing import Drawable
from discreet.divergence.envelope import default_epsilons, from_guarantees, from_points
from discreet.divergence.finite import finite_pair
from discreet.divergence.polyline import Polyline
from discreet.divergence.special import expit
from discreet.errors import CertificateError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from discreet.divergence.logspace import Reals
    from discreet.divergence.shifted import ShiftedFamily

__all__ = ["TradeOff"]


@dataclass(frozen=True)
class TradeOff(Drawable):
    r"""A trade-off function f: [0, 1] -> [0, 1], convex, non-increasing, f(alpha) <= 1 - alpha.

    f(alpha) is the smallest missed detection of any test whose false alarm is at most alpha: the higher the curve, the
    better the privacy [Dong et al. 2022, Def. 2.1 and Prop. 2.2]. The test decides between the null hypothesis Q and
    the alternative P, so that delta(epsilon) = E_gamma(P||Q), gamma = e^epsilon; in the notation of that paper
    f = T(Q, P). `inverse()` is the curve of the other order.

    Built from closed forms or a finite pair the curve is exact up to rounding. Built from a profile or a function
    (`from_profile`, `from_conjugate`, `from_function`, `below`) it is a certified lower bound, rounding included: it
    may promise less privacy than there is, never more.

    >>> f = TradeOff.gaussian(1.0)
    >>> round(float(f(0.05)), 6), round(float(f.delta(1.0)), 6)
    (0.740489, 0.126937)
    >>> f.compose(f) == TradeOff.gaussian(2**0.5)
    True
    """

    curve: Curve

    @classmethod
    def identity(cls) -> TradeOff:
        """Perfect privacy: f(alpha) = 1 - alpha."""
        return cls(Polyline(np.ones(1), np.ones(1)))

    @classmethod
    def gaussian(cls, mu: float) -> TradeOff:
        """G_mu of mu-Gaussian differential privacy: N(mu, 1) against N(0, 1). [Dong et al. 2022, Def. 2.6]"""
        return cls(GaussianCurve(mu))

    @classmethod
    def laplace(cls, epsilon: float) -> TradeOff:
        """The Laplace mechanism with epsilon = sensitivity / scale."""
        return cls(LaplaceCurve(nonnegative("epsilon", epsilon)))

    @classmethod
    def shifted(cls, family: ShiftedFamily, *, shift: float) -> TradeOff:
        """Symmetric log-concave noise of any family, shifted against unshifted."""
        return cls(ShiftedCurve(family, shift))

    @classmethod
    def from_pair(cls, p: ArrayLike, q: ArrayLike) -> TradeOff:
        r"""The exact curve of two finite distributions: delta(epsilon) is E_gamma(p||q), the null hypothesis is q.

        >>> TradeOff.from_pair([0.75, 0.25], [0.25, 0.75]).advantage()
        0.5
        """
        return cls(Polyline(*finite_pair(p, q)))

    @classmethod
    def from_vertices(cls, alphas: ArrayLike, betas: ArrayLike) -> TradeOff:
        """The piecewise-linear curve through given vertices, from (0, f(0)) to (1, 0). Must be convex.

        The vertices must be those of the curve itself. Joining sampled points of a smooth curve gives a curve above it,
        which is no guarantee: use `from_function` for that.
        """
        x, y = np.asarray(alphas, dtype=np.float64), np.asarray(betas, dtype=np.float64)
        if x.ndim != 1 or x.size < 2 or x.shape != y.shape:
            raise InvalidArgument("alphas", alphas, "pass as many false alarms as missed detections, at least two")
        if x[0] != 0 or x[-1] != 1 or y[-1] != 0 or not (y[0] <= 1 and (np.diff(x) > 0).all()):
            raise InvalidArgument("alphas", alphas, "pass vertices from (0, f(0)) to (1, 0), false alarms increasing")
        slopes = np.diff(y) / np.diff(x)
        if not ((slopes <= 0).all() and (np.diff(slopes) >= -1e-12 * np.abs(slopes[1:])).all()):
            raise InvalidArgument("betas", betas, "pass the vertices of a convex, non-increasing curve")
        return cls(Polyline(np.append(1.0 - y[0], -np.diff(y)), np.append(0.0, np.diff(x))))

    @classmethod
    def from_guarantee(cls, epsilon: float, delta: float) -> TradeOff:
        r"""What (epsilon, delta)-differential privacy guarantees, no more and no less.

            f(alpha) = max(0, 1 - delta - e^epsilon alpha, e^{-epsilon} (1 - delta - alpha))

        [Wasserman and Zhou 2010; Dong et al. 2022, Prop. 2.5]

        >>> round(float(TradeOff.from_guarantee(0.0, 0.1)(0.5)), 12)
        0.4
        """
        epsilon, delta = nonnegative("epsilon", epsilon), probability("delta", delta)
        more, less = (1.0 - delta) * expit(epsilon), (1.0 - delta) * expit(-epsilon)
        return cls(Polyline(np.array([delta, more, less, 0.0]), np.array([0.0, less, more, delta])))

    @classmethod
    def from_profile(
        cls,
        delta: Callable[[Reals], Reals],
        *,
        epsilons: ArrayLike | None = None,
        reverse: Callable[[Reals], Reals] | None = None,
    ) -> TradeOff:
        r"""The certified lower curve of a privacy profile.

        `delta` maps an array of epsilons >= 0 to *upper bounds* of E_gamma(P||Q), and `reverse` likewise for
        E_gamma(Q||P); without `reverse`, `delta` must bound both orders. Each value gives two supporting lines,

            f(alpha) >= 1 - delta(epsilon) - e^epsilon alpha,
            f(alpha) >= e^{-epsilon} (1 - reverse(epsilon) - alpha),

        and the curve is the maximum of those at `epsilons` (default: chosen from the profile), so it lies below the
        true curve whatever the grid; a finer grid only brings it closer. Its own `delta` is an upper bound again, but
        rounded up at about 1e-12 of the mass between two grid points: read tiny deltas from the profile itself.
        [Dong et al. 2022, Prop. 2.12]

        >>> from discreet.divergence.gaussian import hockey_stick_gaussian
        >>> f = TradeOff.from_profile(lambda e: hockey_stick_gaussian(e, mu=1.0))
        >>> 0 < float(TradeOff.gaussian(1.0)(0.05) - f(0.05)) < 1e-4
        True
        """
        profiles = (delta,) if reverse is None else (delta, reverse)
        grid = default_epsilons(*profiles) if epsilons is None else np.asarray(epsilons, dtype=np.float64)
        deltas = [np.asarray(profile(grid), dtype=np.float64) for profile in profiles]
        return cls(from_guarantees(grid, deltas[0], deltas[-1]))

    @classmethod
    def from_conjugate(cls, conjugate: Callable[[Reals], Reals], *, epsilons: ArrayLike | None = None) -> TradeOff:
        r"""The certified lower curve of a convex conjugate f*(y) = sup_alpha (y alpha - f(alpha)), given for y <= 0.

        delta(epsilon) = 1 + f*(-e^epsilon), and in the other order reverse(epsilon) = 1 + e^epsilon f*(-e^{-epsilon}).
        The values must be upper bounds of f*, up to rounding.
        """

        def profile(epsilon: Reals) -> Reals:
            return np.clip(1.0 + conjugate(-np.exp(epsilon)) + 2.0**-50, 0.0, 1.0)

        def reverse(epsilon: Reals) -> Reals:
            # f* is rounded near -1: its error 2^-53 is multiplied by e^epsilon
            return np.clip(1.0 + np.exp(epsilon) * (conjugate(-np.exp(-epsilon)) + 2.0**-50), 0.0, 1.0)

        return cls.from_profile(profile, reverse=reverse, epsilons=epsilons)

    @classmethod
    def from_function(cls, function: Callable[[Reals], Reals], *, alphas: ArrayLike | None = None) -> TradeOff:
        """A certified lower curve of a convex trade-off function that is known only by its values (to 1e-13).

        `alphas` are the false alarms at which it is read, from 0 to 1 (default: 1 500 of them, denser at both ends).
        """
        if alphas is None:
            edge = np.geomspace(1e-14, 0.02, 500, endpoint=False)
            grid = np.concatenate([[0.0], edge, np.linspace(0.02, 0.98, 500), 1.0 - edge[::-1], [1.0]])
        else:
            grid = np.asarray(alphas, dtype=np.float64)
        return cls(from_points(grid, np.asarray(function(grid), dtype=np.float64)))

    def __call__(self, alpha: ArrayLike) -> Reals:
        """Smallest missed detection at false alarm alpha, for one alpha or many."""
        return np.asarray(self.curve.value(_false_alarm(alpha)))[()]

    def power(self, alpha: ArrayLike) -> Reals:
        """Largest detection probability 1 - f(alpha) at false alarm alpha, accurate also where it is tiny."""
        return np.asarray(self.curve.power(_false_alarm(alpha)))[()]

    def delta(self, epsilon: ArrayLike) -> Reals:
        r"""The profile 1 + f*(-e^epsilon) = sup_alpha 1 - f(alpha) - e^epsilon alpha, at every real epsilon.

        It is E_gamma(P||Q) for this order; a mechanism's delta is the larger of `delta` and `inverse().delta`, which is
        `symmetrised().delta`. [Dong et al. 2022, Prop. 2.12]
        """
        levels = np.asarray(epsilon, dtype=np.float64)
        if np.isnan(levels).any():
            raise InvalidArgument("epsilon", epsilon, "pass real numbers, not NaN")
        return np.asarray(self.curve.delta(levels))[()]

    def conjugate(self, slope: ArrayLike) -> Reals:
        r"""Convex conjugate f*(y) = sup_alpha (y alpha - f(alpha)): delta(ln(-y)) - 1 for y < 0, and y for y >= 0.

        >>> float(TradeOff.identity().conjugate(-1.0))
        -1.0
        """
        y = np.asarray(slope, dtype=np.float64)
        if np.isnan(y).any():
            raise InvalidArgument("slope", slope, "pass real numbers, not NaN")
        with np.errstate(divide="ignore"):
            level = np.log(np.maximum(-y, 0.0))
        return np.where(y < 0, np.asarray(self.curve.delta(level)) - 1.0, np.maximum(y, 0.0))[()]

    def inverse(self) -> TradeOff:
        """The curve of the pair in the other order: f^-1(beta) = inf {alpha : f(alpha) <= beta}."""
        return TradeOff(self.curve.inverse())

    def symmetrised(self) -> TradeOff:
        r"""The largest trade-off function below f and its inverse, min(f, f^-1)**: what holds in both orders.

        Its profile is the larger of the two profiles. This is the curve of a mechanism whose two directions have the
        curves f and f^-1 (add and remove). If f is known to bound *both* directions, then so does f^-1, and even
        max(f, f^-1) holds [Dong et al. 2022, Prop. 2.4]; that is not what is computed here.
        """
        return TradeOff(self.curve.symmetrised())

    def grouped(self, k: int) -> TradeOff:
        r"""What holds for groups of k: 1 - (1 - f) o ... o (1 - f), k times. [Dong et al. 2022, Thm 2.14]

        Exact for every curve here: mu becomes k mu, a Laplace epsilon becomes k epsilon, and piecewise-linear curves
        stay piecewise linear. grouped(0) is the identity.
        """
        k = count("k", k)
        return TradeOff.identity() if k == 0 else TradeOff(self.curve.grouped(k))

    def compose(self, other: TradeOff) -> TradeOff:
        r"""The tensor product f (x) g: what two releases tell together. [Dong et al. 2022, Def. 3.1 and Thm 3.2]

        Exact for two piecewise-linear curves (the product of their finite pairs, outcomes of equal ratio merged) and
        for two Gaussians (mu = sqrt(mu_1^2 + mu_2^2)). Other curves are refused: make them piecewise linear from below
        with `below()`, which keeps the result certified.
        """
        for one, two in ((self.curve, other.curve), (other.curve, self.curve)):
            if two.is_identity:
                return TradeOff(one)
            product = one.composed(two)
            if product is not None:
                return TradeOff(product)
        raise CertificateError(
            "this composition",
            limit=f"{type(self.curve).__name__} and {type(other.curve).__name__} having no closed-form product",
            advice="Compose f.below() with g.below(): piecewise-linear curves from below compose exactly.",
        )

    def below(self, *, epsilons: ArrayLike | None = None) -> TradeOff:
        """A piecewise-linear curve that is certified to lie below this one, by supporting lines at `epsilons`."""
        if self.curve.breaks is not None:
            return self
        inverse = self.curve.inverse()
        # closed forms are right to 1e-12 relative; one part in 1e11 puts the lines on the safe side
        return TradeOff.from_profile(
            lambda e: np.minimum(self.curve.delta(e) * (1.0 + 1e-11), 1.0),
            reverse=lambda e: np.minimum(inverse.delta(e) * (1.0 + 1e-11), 1.0),
            epsilons=epsilons,
        )

    def advantage(self) -> float:
        """Largest detection minus false alarm, the total variation: delta(0) = sup 1 - alpha - f(alpha)."""
        return float(self.delta(0.0))


def _false_alarm(alpha: ArrayLike) -> Reals:
    a = np.asarray(alpha, dtype=np.float64)
    if not ((a >= 0) & (a <= 1)).all():
        raise InvalidArgument("alpha", alpha, "pass false-alarm probabilities between 0 and 1")
    return a
