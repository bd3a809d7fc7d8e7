r"""What the minimiser of a randomly tilted objective reveals: Gaussian privacy, or a profile.

    w = argmin  sum_i l(x_i . w, y_i) + (ridge / 2) ||w||^2 + <b, w>,       b ~ N(0, sigma^2 I).

For every b there is one w and for every w one b. Adding a record shifts b along its row by its slope, and because the
slope grows with the margin the shift stretches: by E = (curvature of a record) / ridge at most. With m = L / sigma and
c = ln(1 + E) = ln det(...) the release of w is mu-GDP (docs/proofs/objective.md), if all slopes of a target

    lie between 0 and one point:      mu = m + A E^2 / ((1 + E) m),  A = 0.15,  for E <= 0.55 m, or  m + sqrt(pi/2) c,
    lie on an interval:               the same with A = 0.75 for E <= 0.45 m, or  1.594 m + sqrt(pi/2) c,
    lie in the hull of 0 and k points of norm L / R:     k e^{-z^2/2} m + sqrt(pi/2) c,   Phi(-z) = 1 / (2 k),

where E counts as 0.2 m if it is less. What a larger m or E costs is a bound for smaller ones. The
last of these is poor for many classes; for them there is the profile, with H_m that of m-Gaussian privacy,

    delta(epsilon) <= k H_m(epsilon - c)                                         add-remove,
    delta(epsilon) <= min over e of k H_m(e) + e^{c+e} k H_m(epsilon - c - e)    replace-one.

[Redberg et al. 2023] prove the case k = 2 of the profile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from discreet.accounting.cost import Cost
from discreet.divergence.gaussian import hockey_stick_gaussian
from discreet.divergence.tradeoff import TradeOff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.losses import Loss

    Reals = NDArray[np.float64]

__all__ = ["Shape", "gaussian_privacy", "largest_ratio", "profile", "profile_cost", "ratio_for"]

_UP = 1 + 1e-12
_ROOT = math.sqrt(math.pi / 2) * _UP
"""The largest Phi(x) / phi(x) over x <= 0."""
_LEAST = 0.2
"""Fields that fall more slowly than this, in units of their height, are counted as if they fell at this rate."""
_FINEST = 1e-8
_FARTHEST = 600.0
"""e to its powers is still a float."""


@dataclass(frozen=True)
class Shape:
    """How the slopes of one target lie: in the hull of 0 and `corners` points, on one line if `is_line`."""

    corners: int
    is_line: bool

    @classmethod
    def of(cls, loss: Loss) -> Shape:
        """The shape of a loss; slopes between 0 and one point lie on a line, whatever the number of outputs."""
        return cls(loss.corners, is_line=loss.outputs == 1 or loss.corners == 1)

    @property
    def constants(self) -> tuple[float, float] | None:
        """A, and the largest E / m for which it is proved; none if there is no such proof."""
        if not self.is_line:
            return None
        return (0.15, 0.55) if self.corners == 1 else (0.75, 0.45)

    @property
    def spread(self) -> float:
        """k e^{-z^2/2} with Phi(-z) = 1 / (2 k): how much more k directions reveal than one."""
        return 1.0 if self.corners == 1 else self.corners * math.exp(-(float(ndtri(0.5 / self.corners)) ** 2) / 2) * _UP


def gaussian_privacy(ratio: float, *, offset: float, shape: Shape) -> float:
    """mu for one record added, `ratio` being m and `offset` c; grows with both.

    >>> round(gaussian_privacy(0.25, offset=0.1, shape=Shape(corners=1, is_line=True)), 4)
    0.256
    """
    direct = ratio * shape.spread + _ROOT * offset
    if shape.constants is None:
        return direct * _UP
    constant, most = shape.constants
    growth = math.expm1(offset)
    height = max(ratio, growth / most)  # a smaller ratio reveals no more than this one
    return min(direct, height + constant * _mean_square(growth, height) / height) * _UP


def _mean_square(growth: float, height: float) -> float:
    """At least the integral of max(E / (1 + s E), _LEAST m)^2 over 0 <= s <= 1."""
    least = (_LEAST * height) ** 2
    if growth <= _LEAST * height:
        return least
    whole = growth**2 / (1 + growth)
    return whole if growth >= (1 + growth) * _LEAST * height else whole + least


def largest_ratio(mu: float, *, offset: float, shape: Shape) -> float:
    """The largest m, to a relative 1e-12, that is mu-GDP for one record added; 0 if the determinant takes all of mu."""
    low, high = 0.0, mu
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_privacy(middle, offset=offset, shape=shape) <= mu else (low, middle)
    return low


def profile(epsilon: float, *, ratio: float, corners: int, offset: float, changes: int = 1) -> float:
    """delta(epsilon) above, certified; `ratio` is m, `offset` c, `changes` 1 for add-remove and 2 for replace-one.

    >>> profile(1.0, ratio=0.25, corners=1, offset=0.1) < 1e-4
    True
    """
    return float(_profile(np.array([epsilon]), ratio=ratio, corners=corners, offset=offset, changes=changes)[0])


def _profile(epsilons: Reals, *, ratio: float, corners: int, offset: float, changes: int) -> Reals:
    left = epsilons - offset
    if changes == 1:
        # below c it is no more than the total variation, which the order without c bounds
        return np.minimum(1.0, corners * _gaussian_above(np.maximum(left, 0.0), ratio))
    # any split is valid; near the middle is best, moved towards the first by what the factor e^first costs
    first = np.maximum(left, 0.0)[:, None] * np.linspace(0.4, 0.6, 21)
    second = np.maximum(left, 0.0)[:, None] - first
    both = _gaussian_above(first, ratio) + np.exp(offset + first) * _gaussian_above(second, ratio)
    return np.where(left < 0, 1.0, np.minimum(1.0, corners * both.min(axis=1) * _UP))


def _gaussian_above(epsilons: Reals, mu: float) -> Reals:
    """At least the profile of mu-Gaussian privacy, which is known to a relative 5e-15 where it does not underflow."""
    return np.asarray(hockey_stick_gaussian(epsilons, mu=mu)) * _UP + 1e-290


def ratio_for(epsilon: float, delta: float, *, corners: int, offset: float, changes: int) -> float:
    """The largest m, to a relative 1e-9, whose profile meets (epsilon, delta), for epsilon > c."""

    def excess(log_ratio: float) -> float:
        value = profile(epsilon, ratio=math.exp(log_ratio), corners=corners, offset=offset, changes=changes)
        return math.log(max(value, 1e-300) / delta)

    found = math.exp(float(brentq(excess, math.log(1e-6), math.log(1e3), xtol=1e-10)))
    while profile(epsilon, ratio=found, corners=corners, offset=offset, changes=changes) > delta:
        found *= 1 - 1e-10
    return found


def profile_cost(
    epsilon: float, delta: float, *, ratio: float, corners: int, offset: float, adjacency: str = "add-remove"
) -> Cost:
    """The whole profile as a cost that composes; below delta = 1e-8, where tables are not that fine, a box."""
    if delta < _FINEST:
        return Cost.approximate(epsilon, delta, adjacency=adjacency)
    changes = 1 if adjacency == "add-remove" else 2

    def read(levels: Reals) -> Reals:
        return _profile(levels, ratio=ratio, corners=corners, offset=offset, changes=changes)

    end = epsilon
    while read(np.array([end]))[0] > 1e-14 and end < _FARTHEST:
        end *= 1.2
    levels = np.unique(np.concatenate([np.linspace(0.0, end, 200), np.linspace(0.9 * epsilon, 1.1 * epsilon, 41)]))
    return Cost.from_tradeoff(TradeOff.from_profile(read, epsilons=levels), adjacency=adjacency)
