r"""How much a channel shrinks divergences: strong data processing, and what it means for estimation.

A channel K turns a law mu of inputs into a law mu K of outputs. No f-divergence grows on the way, and its contraction
coefficient says by how much it must shrink,

    eta_f(K) = sup D_f(mu K || nu K) / D_f(mu || nu).

For the hockey-stick divergence E_gamma, gamma >= 1, the supremum is attained by two point inputs,

    eta_gamma(K) = sup_{x, x'} E_gamma(K(x) || K(x')),

as Dobrushin found for total variation, gamma = 1 [Asoodeh et al. 2020]. So K is (epsilon, delta)-locally private iff
eta_{e^epsilon}(K) <= delta [Asoodeh et al. 2021b]. Every f-divergence contracts at least as much as total variation
[Cohen et al. 1993].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.arguments import nonnegative, positive, probability
from discreet.divergence.finite import f_divergence, finite_pair
from discreet.divergence.gaussian import hockey_stick_gaussian
from discreet.divergence.laplace import hockey_stick_laplace
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from discreet.divergence.logspace import Reals

__all__ = [
    "bayes_risk_bound",
    "channel_divergence",
    "contraction_finite",
    "contraction_gaussian",
    "contraction_laplace",
    "hockey_stick_information",
]

_ROUNDING = 1e-14
_BLOCK = 2_000_000


def contraction_gaussian(*, diameter: float, sigma: float, epsilon: float = 0.0) -> float:
    r"""eta_gamma of x -> x + N(0, sigma^2 I) on inputs at most `diameter` apart, gamma = e^epsilon.

        eta = Phi(r/2 - epsilon/r) - e^epsilon Phi(-r/2 - epsilon/r),   r = diameter / sigma,

    in every dimension, as E_gamma grows with the distance; epsilon = 0 is total variation. [Asoodeh et al. 2020]

    >>> round(contraction_gaussian(diameter=1.0, sigma=1.0), 6)
    0.382925
    """
    return float(hockey_stick_gaussian(nonnegative("epsilon", epsilon), mu=_ratio(diameter, sigma=sigma)))


def contraction_laplace(*, diameter: float, scale: float, epsilon: float = 0.0) -> float:
    r"""eta_gamma of x -> x + Laplace(scale) on an interval of length `diameter`, gamma = e^epsilon.

        eta = max(0, 1 - e^{(epsilon - diameter/scale)/2})

    >>> round(contraction_laplace(diameter=1.0, scale=1.0), 6)
    0.393469
    """
    return float(hockey_stick_laplace(nonnegative("epsilon", epsilon), shift=_ratio(diameter, scale=scale)))


def _ratio(diameter: float, **noise: float) -> float:
    [(name, value)] = noise.items()
    return nonnegative("diameter", diameter) / positive(name, value)


def contraction_finite(channel: ArrayLike, *, epsilon: float = 0.0) -> float:
    """eta_gamma of a finite channel, gamma = e^epsilon: the largest E_gamma between two of its rows.

    `channel` has one row of output probabilities for each input; it need not be square. epsilon = 0 is Dobrushin's
    coefficient, which bounds the contraction of every f-divergence.

    >>> contraction_finite([[0.75, 0.25], [0.25, 0.75]])
    0.5
    """
    rows = _channel(channel)
    gamma = math.exp(min(nonnegative("epsilon", epsilon), 700.0))
    largest = 0.0
    block = max(1, _BLOCK // rows.size)
    for start in range(0, len(rows), block):
        gaps = np.maximum(rows[start : start + block, None, :] - gamma * rows[None, :, :], 0.0)
        largest = max(largest, float(gaps.sum(axis=-1).max()))
    return min(1.0, largest)


def channel_divergence(
    p: ArrayLike,
    q: ArrayLike,
    channel: ArrayLike,
    *,
    generator: Callable[[Reals], Reals],
    recession: float | None = None,
) -> float:
    """D_f(pK || qK): what is left of an f-divergence after a finite channel; see `f_divergence` for f.

    >>> square = lambda t: (t - 1) ** 2
    >>> round(channel_divergence([1, 0], [0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], generator=square), 12)
    0.25
    """
    first, second = finite_pair(p, q)
    rows = _channel(channel)
    if len(rows) != first.size:
        raise InvalidArgument("channel", channel, f"pass one row for each of the {first.size} inputs")
    return f_divergence(_through(first, rows), _through(second, rows), generator=generator, recession=recession)


def hockey_stick_information(prior: ArrayLike, channel: ArrayLike, *, epsilon: float = 0.0) -> float:
    r"""E_gamma-mutual information I_gamma(X; Y) = E_gamma(P_XY || P_X P_Y) of an input with this prior and its output.

    It is the prior's mean of E_gamma(K(x) || prior K). A further channel L shrinks it: I_gamma(X; Z) <=
    eta_gamma(L) I_gamma(X; Y). [Asoodeh et al. 2021b]

    >>> round(hockey_stick_information([0.5, 0.5], [[1, 0], [0, 1]]), 12)
    0.5
    """
    weights, _ = finite_pair(prior, prior)
    rows = _channel(channel)
    if len(rows) != weights.size:
        raise InvalidArgument("channel", channel, f"pass one row for each of the {weights.size} inputs")
    gamma = math.exp(min(nonnegative("epsilon", epsilon), 700.0))
    mean = _through(weights, rows)
    return min(1.0, float((weights[:, None] * np.maximum(rows - gamma * mean, 0.0)).sum()))


def bayes_risk_bound(
    information: float, *, small_ball: Callable[[Reals], Reals], radii: ArrayLike, epsilon: float = 0.0
) -> float:
    r"""A lower bound of the Bayes risk of every estimator of a secret that saw data of this E_gamma-information.

    `information` is an upper bound of I_gamma(secret; data) at gamma = e^epsilon, `small_ball(r)` one of the largest
    prior probability that the loss of a fixed guess is at most r. For every radius r > 0

        risk >= r (1 - I_gamma - gamma small_ball(r)),

    because the loss exceeds r with that probability at least: P(loss <= r) <= gamma (P x P)(loss <= r) + I_gamma. The
    largest over the given radii is returned, and 0 if none says anything. If the data are n locally private reports of
    what is known about the secret, I_gamma is at most the delta of their composition at epsilon. [Asoodeh et al. 2021b]

    >>> round(bayes_risk_bound(0.5, small_ball=lambda r: 2 * r, radii=[0.1, 0.125, 0.15]), 6)
    0.03125
    """
    known = probability("information", information)
    gamma = math.exp(min(nonnegative("epsilon", epsilon), 700.0))
    levels = np.atleast_1d(np.asarray(radii, dtype=np.float64))
    if not (np.isfinite(levels) & (levels > 0)).all() or not levels.size:
        raise InvalidArgument("radii", radii, "pass finite numbers > 0")
    masses = np.asarray(small_ball(levels), dtype=np.float64)
    if masses.shape != levels.shape or not ((masses >= 0) & np.isfinite(masses)).all():
        raise InvalidArgument("small_ball", small_ball, "it must return one probability for each radius")
    return max(0.0, float((levels * (1 - known - gamma * np.minimum(masses, 1.0))).max()) * (1 - _ROUNDING))


def _channel(channel: ArrayLike) -> Reals:
    rows = np.asarray(channel, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise InvalidArgument("channel", channel, "pass a matrix: one row of output probabilities for each input")
    for row in rows:
        finite_pair(row, row)
    return rows


def _through(law: Reals, rows: Reals) -> Reals:
    """The law of outputs, scaled to sum to one: the rows do so only up to rounding."""
    outputs = law @ rows
    return np.asarray(outputs / outputs.sum())
