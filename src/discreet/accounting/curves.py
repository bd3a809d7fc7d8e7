r"""A cost as a whole curve: its privacy profile, its trade-off function, and the law of its privacy loss.

The profile is delta(epsilon), the larger of E_gamma(P||Q) and E_gamma(Q||P) at gamma = e^epsilon. Every point of it is
a supporting line of the trade-off function [Dong et al. 2022, Prop. 2.12], so finitely many certified points give a
certified lower curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet.accounting import gaussian_dp
from discreet.accounting.evaluate import delta_reading, settled
from discreet.accounting.loss import Loss
from discreet.accounting.pairs.gaussian import GaussianPair
from discreet.accounting.sweep import Sweep, sweeps
from discreet.divergence.drawing import Drawable
from discreet.divergence.tradeoff import TradeOff
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from discreet.accounting.cost import Cost
    from discreet.accounting.leaves.leaf import Leaf
    from discreet.accounting.pair import Pair, Reals

__all__ = ["Loss", "Profile", "tradeoff_of"]

_GAP = 2e-5
"""How far below the true trade-off function the certified one may lie."""

_POWER_GAP = 1e-2
"""The same relative to the power of the test, which matters at small false alarms."""

_LAST_DELTA = 1e-12
_LARGEST_EPSILON = 690.0
_MOST_POINTS = 4000
_COARSE = 20.0
"""Curves that are no sharper than a Rényi conversion are sampled this much more coarsely."""


class _Reader(Protocol):
    @property
    def limit(self) -> float:
        """delta at epsilon = inf."""

    def bounds(self, epsilon: float, *, floor: float = 0.0) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Profile(Drawable):
    """The privacy profile of a cost: a certified upper delta at every epsilon >= 0, one or many.

    Much faster than `cost.delta(epsilon)` for many epsilons, and within a relative 1e-6 of it; where only the grid
    accountant has a certificate, and next to the largest possible loss, it may be 1e-4. The neighbouring relation is
    that of the cost.

    >>> from discreet.accounting.cost import Cost
    >>> profile = Profile(100 * Cost.randomized_response(0.1))
    >>> [f"{delta:.4g}" for delta in profile([0.0, 1.0, 4.0])]
    ['0.382', '0.1257', '3.422e-05']
    """

    cost: Cost

    def __call__(self, epsilon: ArrayLike) -> Reals:
        """Certified upper delta at each epsilon; the shape is kept."""
        return self._read(epsilon, lambda e: self._upper.bounds(e)[1])

    def lower(self, epsilon: ArrayLike) -> Reals:
        """Certified lower delta at each epsilon: what the releases certainly give away if the cost is attained."""
        return self._read(epsilon, lambda e: min(self._lower.bounds(e)[0], self._upper.bounds(e)[1]))

    def __reduce__(self) -> tuple[type[Profile], tuple[Cost]]:
        return type(self), (self.cost,)

    @cached_property
    def _upper(self) -> _Reader:
        parts = settled(self.cost.parts)
        pairs = _pairs(parts, [leaf.pair() for leaf, _ in parts])
        return _Guarantee(parts) if pairs is None else _reader(pairs)

    @cached_property
    def _lower(self) -> _Reader:
        pairs = _pairs(self.cost.parts, [leaf.witness() for leaf, _ in self.cost.parts])
        if pairs is None:
            return _Guarantee(self.cost.parts)
        known = _pairs(self.cost.parts, [leaf.pair() for leaf, _ in self.cost.parts])
        tight = known is not None and all(a[0] is b[0] or a[0] == b[0] for a, b in zip(pairs, known, strict=True))
        return self._upper if tight else _reader(pairs)

    def _read(self, epsilon: ArrayLike, value: Callable[[float], float]) -> Reals:
        try:
            levels = np.asarray(epsilon, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument("epsilon", epsilon, "pass numbers >= 0") from None
        if not (np.isfinite(levels) & (levels >= 0)).all():
            raise InvalidArgument("epsilon", epsilon, "pass finite numbers >= 0")
        distinct, places = np.unique(levels, return_inverse=True)
        values = np.array([value(level) + 0.0 for level in map(float, distinct)])
        return np.asarray(values[places].reshape(levels.shape))[()]


def tradeoff_of(cost: Cost) -> TradeOff:
    r"""A trade-off function certainly below the true one, and close to it.

    Only Gaussian parts: the closed form G_mu with mu rounded up. Otherwise the maximum of the supporting lines at
    epsilons chosen one by one. Between two neighbours the curve is wrong by at most the distance of delta from its
    chord in gamma = e^epsilon; delta is convex in gamma, so that distance is a concave function, zero at both ends,
    and never exceeds its value at any point between divided by the smaller share of the interval beside that point.
    Intervals are halved until this is below 2e-5, and below a hundredth of the power of the test, down to false alarms
    at which delta is 1e-12. Where a part is known only by a Rényi curve, the bounds are twenty times wider.

    >>> from discreet.accounting.cost import Cost
    >>> f = tradeoff_of(1_000 * Cost.gaussian(1.0).sampled(0.01))
    >>> round(float(f(0.05)), 3)
    0.889
    """
    if not cost.parts:
        return TradeOff.identity()
    parts = settled(cost.parts)
    pairs = _pairs(parts, [leaf.pair() for leaf, _ in parts])
    if pairs is None:
        # the sharpest known bound is a Rényi conversion: far from the truth, and slow to read
        reader: _Reader = _Guarantee(parts)
        start, coarse = 1.0, _COARSE
    else:
        reader = _reader(pairs)
        if isinstance(reader, _Gaussian):
            return TradeOff.gaussian(reader.mu[1])
        start, coarse = _reach(pairs), 1.0
    floor = 1e-4 * _GAP

    def delta(epsilon: float) -> float:
        return reader.bounds(epsilon, floor=max(floor * min(1.0, math.exp(-epsilon)), 0.1 * _LAST_DELTA))[1]

    points = _supporting(delta, start, limit=reader.limit, coarse=coarse)
    epsilons, deltas = np.array(points).T
    return TradeOff.from_profile(lambda _: deltas, epsilons=epsilons)


def _supporting(
    delta: Callable[[float], float], start: float, *, limit: float, coarse: float
) -> list[tuple[float, float]]:
    """(epsilon, delta) from 0 to where delta has come down to its limit, close enough together."""
    last = min(start, _LARGEST_EPSILON)
    end = delta(last)
    while end > limit + _LAST_DELTA and last < _LARGEST_EPSILON:
        last = min(1.5 * last, _LARGEST_EPSILON)
        end = delta(last)
    points = [(0.0, delta(0.0))]
    todo = [(last * k / 8, end if k == 8 else delta(last * k / 8)) for k in range(8, 0, -1)]
    while todo:
        left, right = points[-1], todo[-1]
        if right[1] >= left[1] or len(points) + len(todo) > _MOST_POINTS:
            points.append(todo.pop())
            continue
        middle = 0.5 * (left[0] + right[0])
        between = middle, delta(middle)
        if _gap(left, between, right) <= coarse:
            points += [between, todo.pop()]
        else:
            todo.append(between)
    return points


def _gap(left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]) -> float:
    """Bound of the curve's error between the two outer epsilons, in units of what is allowed."""
    width = math.expm1(right[0] - left[0])
    share = math.expm1(middle[0] - left[0]) / width
    chord = left[1] + share * (right[1] - left[1])
    gap = (chord - middle[1]) / min(share, 1 - share)
    power = left[1] + (left[1] - right[1]) / width  # of the test at which the two lines cross
    return gap / min(_GAP, _POWER_GAP * power + 0.1 * _LAST_DELTA)


def _reach(pairs: Sequence[tuple[Pair, int]]) -> float:
    """An epsilon beyond which a bell-shaped loss hardly goes; the largest loss if that is smaller."""
    ends = [min(way.largest * (1 + 1e-12), max(way.mean, 0.0) + 7 * way.deviation) for way in sweeps(pairs)]
    return max(*ends, 1e-300)


def _pairs(parts: Sequence[tuple[Leaf, int]], pairs: Sequence[Pair | None]) -> list[tuple[Pair, int]] | None:
    """The pairs with their counts; None if one of them is missing."""
    known = [(pair, count) for pair, (_, count) in zip(pairs, parts, strict=True) if pair is not None]
    return known if len(known) == len(parts) else None


def _reader(pairs: Sequence[tuple[Pair, int]]) -> _Reader:
    mus = [(pair.mu, count) for pair, count in pairs if isinstance(pair, GaussianPair)]
    if len(mus) == len(pairs):
        low, high = gaussian_dp.compose([mu for mu, _ in mus], counts=[count for _, count in mus])
        return _Gaussian((low * (1 - 4e-16), high * (1 + 4e-16)))
    return _Worst(sweeps(pairs))


@dataclass(frozen=True)
class _Gaussian:
    """Only Gaussian parts: the closed form, mu known up to rounding."""

    mu: tuple[float, float]
    limit: float = 0.0

    def bounds(self, epsilon: float, *, floor: float = 0.0) -> tuple[float, float]:  # noqa: ARG002 - always narrow
        return gaussian_dp.delta_bounds(self.mu[0], epsilon)[0], gaussian_dp.delta_bounds(self.mu[1], epsilon)[1]


@dataclass(frozen=True)
class _Worst:
    """The larger of the two directions, each composed to the end."""

    ways: list[Sweep]

    @property
    def limit(self) -> float:
        return max(way.infinite[1] for way in self.ways)

    def bounds(self, epsilon: float, *, floor: float = 0.0) -> tuple[float, float]:
        found = [way.bounds(epsilon, floor=floor) for way in self.ways]
        return max(low for low, _ in found), max(high for _, high in found)


@dataclass(frozen=True)
class _Guarantee:
    """A part is known only by a Rényi curve: one reading for each epsilon."""

    parts: Sequence[tuple[Leaf, int]]
    limit: float = 0.0

    def bounds(self, epsilon: float, *, floor: float = 0.0) -> tuple[float, float]:  # noqa: ARG002 - never narrow
        reading = delta_reading(self.parts, epsilon)
        return reading.lower, reading.upper
