r"""Rényi divergences from a privacy profile: finite also where the profile has no exact end.

Let X, Y be the outputs on neighbours and w = dX/dY. With f(w) = w^a - 1 - a (w - 1), which is convex, and the calls and
puts of w, C(g) = E_Y (w - g)_+ = E_g(X || Y) and E_Y (g - w)_+ = g E_{1/g}(Y || X),

    E_Y w^a - 1 = E_Y f(w) = int_0^1 f''(g) g E_{1/g}(Y || X) dg  +  int_1^inf f''(g) E_g(X || Y) dg

[Sason and Verdú 2016]. Both hockey-sticks are convex in g, so between two levels they lie below their chord, and f''
times a chord has its integral in closed form: a certified profile gives a certified upper bound. The second integral is
taken up to some W. What is left is at most E_Y[w^a; w > W] <= W^{a-b} E_Y w^b for every order b > a, and E_Y w^b is
bounded by any Rényi curve of the same mechanism, however crude; W and b are chosen to make the sum small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.exact import SingleLoss
from discreet.accounting.pair import ROUNDING, Direction, Pair
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.divergence.logspace import exp_minus

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.accounting.pair import Reals

__all__ = ["ProfileMoments", "moments_of", "profile_upper"]

_POINTS = 1500
_FAR = 1e-300
"""A profile is followed to where it has come down to this."""
_BEYOND = np.geomspace(1e-2, 1e4, 25)
"""Orders above the one asked, relative to it less 1, from which the rest is bounded."""


@dataclass(frozen=True, eq=False)
class ProfileMoments:
    """Levels 0 = epsilons[0] < epsilons[1] < ... and upper bounds of E_{e^epsilon}(X || Y) and E_{e^epsilon}(Y || X)
    there; both orders of a pair are read from the same levels."""

    epsilons: Reals
    forward: Reals
    backward: Reals

    @property
    def is_symmetric(self) -> bool:
        """Whether both orders have the same profile."""
        return self.forward is self.backward

    @property
    def is_bounded(self) -> bool:
        """Whether no loss is infinite or lost, so that nothing but the profile is needed."""
        return bool(self.forward[-1] == 0 and self.backward[-1] == 0)

    def rdp(self, order: float, direction: Direction, known: Callable[[float], float]) -> float:
        """An upper bound of D_order(X || Y), or of D_order(Y || X) backward; `known` bounds it at every other order."""
        sides = (self.forward, self.backward) if direction is Direction.FORWARD else (self.backward, self.forward)
        excess = self._log_excess(order, *sides, known)
        if excess == -math.inf:
            return 0.0
        moment = math.log1p(math.exp(excess)) if excess < 36 else excess + 1e-15
        return moment / (order - 1) * (1 + 4e-15)

    def _log_excess(self, order: float, calls: Reals, puts: Reals, known: Callable[[float], float]) -> float:
        """ln of an upper bound of E_Y w^order - 1."""
        e, steps = self.epsilons, np.diff(self.epsilons)
        low, high = _log_cell(order, steps)
        # exponents carry a few roundings of their size, and so does a difference of two e^A - 1 - A
        slack = 64 * ROUNDING * (2 + order * e + order / (order - 1))
        with np.errstate(divide="ignore"):
            call, put = np.log(calls), np.log(puts) - e
        left = np.concatenate(
            [
                low + put[1:] - (order - 1) * e[1:] + slack[1:],
                high + put[:-1] - (order - 1) * e[:-1] + slack[1:],
                [math.log(order - 1) + put[-1] - (order - 1) * e[-1] + slack[-1]],  # down to w = 0
            ]
        )
        near = float(np.logaddexp.reduce(left))
        cells = np.logaddexp(low + call[:-1] + (order - 1) * e[:-1], high + call[1:] + (order - 1) * e[1:]) + slack[1:]
        sums = np.append(-np.inf, np.logaddexp.accumulate(cells))
        if calls[-1] == 0:
            return float(np.logaddexp(near, sums[-1])) + 1e-12
        tail = self._log_rest(order, known)
        return float(np.logaddexp(near, np.logaddexp(sums, tail).min())) + 1e-12

    def _log_rest(self, order: float, known: Callable[[float], float]) -> Reals:
        """ln of a bound of E_Y[w^order; w > e^epsilon] at each level."""
        best = np.full(len(self.epsilons), np.inf)
        for share in _BEYOND:
            above = order + (order - 1) * float(share)
            value = known(above)
            if not value < math.inf:
                break  # curves do not come back from infinity
            bound = (above - 1) * value - (above - order) * self.epsilons
            best = np.minimum(best, bound + 16 * ROUNDING * (1 + (above - 1) * value + above * self.epsilons))
        return best


def _log_cell(order: float, steps: Reals) -> tuple[Reals, Reals]:
    r"""ln of the weights of a chord's two ends g and g e^h, less (order - 1) times the logarithm of that end.

    int f''(x) (g e^h - x) / (g e^h - g) dx = g^{a-1} ((e^{ah} - 1) / (e^h - 1) - a),
    int f''(x) (x - g) / (g e^h - g) dx = (g e^h)^{a-1} (a - (1 - e^{-ah}) / (1 - e^{-h})).
    """
    grown = order * steps
    rise, fall = np.expm1(steps), -np.expm1(-steps)
    safe = np.minimum(grown, 300.0)
    with np.errstate(divide="ignore"):
        low = np.log(np.maximum(exp_minus(safe).real - order * exp_minus(np.minimum(steps, safe)).real, 0.0))
        # e^{ah} alone where it is all there is
        low = np.where(grown > 300.0, grown, low) - np.log(rise)
        high = np.log(np.maximum(exp_minus(-grown).real - order * exp_minus(-steps).real, 0.0)) - np.log(fall)
    return low, high


def moments_of(pair: Pair) -> ProfileMoments:
    """The moments of a dominating pair: from its own losses if they are finitely many, from a fine net otherwise."""
    tops = [_largest(pair, direction) for direction in pair.directions()]
    epsilons = np.union1d(_levels(pair), [top for top in tops if top < math.inf])
    sides = []
    for direction, top in zip(pair.directions(), tops, strict=True):
        side = np.array([profile_upper(pair, float(e), direction) for e in epsilons]) + _FAR  # lost is not zero
        side = np.where(epsilons >= top, np.minimum(side, lost_mass(pair, direction)), side)
        sides.append(np.minimum.accumulate(side))
    last = float(epsilons[-1])
    if any(side[-1] > 0 for side in sides):
        # no further level is known, and the profile does not rise: W may lie beyond the last one all the same
        more = last + np.geomspace(1e-2, 1.0, 60) * (4 * last + 60)
        epsilons = np.append(epsilons, more)
        sides = [np.append(side, np.full(len(more), side[-1])) for side in sides]
    return ProfileMoments(epsilons, sides[0], sides[-1])


def _largest(pair: Pair, direction: Direction) -> float:
    """No finite loss of this direction exceeds this number."""
    low, high = pair.span
    top = high if direction is Direction.FORWARD else -low
    return max(top + 1e-12 * abs(top) + pair.blur, 0.0)


def profile_upper(pair: Pair, epsilon: float, direction: Direction) -> float:
    """Upper bound of one order's divergence, infinite losses and what the pair leaves out included."""
    found = SingleLoss(pair, direction).bounds(max(0.0, epsilon - pair.blur))[1]
    return min(1.0, found + lost_mass(pair, direction) + (pair.blur if epsilon < pair.blur else 0.0))


def lost_mass(pair: Pair, direction: Direction) -> float:
    """The probability of an infinite loss, losses that were left out counted as such."""
    return pair.infinite(direction) + (pair.p_cut if direction is Direction.FORWARD else pair.q_cut)


def _levels(pair: Pair) -> Reals:
    """From 0 to the largest loss, or to where the profile is lost: dense near 0, and never much wider than there."""
    if isinstance(pair, AtomsPair) and len(pair.loss) <= 2 * _POINTS:
        found = np.unique(np.abs(pair.loss))
        return np.concatenate([[0.0], found[found > 0]])
    low, high = pair.span
    largest = max(-low, high)

    def delta(epsilon: float) -> float:
        return max(SingleLoss(pair, direction).bounds(epsilon)[1] for direction in pair.directions())

    start = max(delta(0.0), 1e-12)
    reach = start
    while reach < min(largest, 600.0) and delta(reach) > _FAR:
        reach *= 1.1
    reach = min(reach, largest, 600.0)
    even = np.linspace(0.0, reach, _POINTS // 2)
    bent = start * np.sinh(np.linspace(0.0, math.asinh(reach / start), _POINTS))
    return np.unique(np.concatenate([even, bent[bent < reach], [reach]]))
