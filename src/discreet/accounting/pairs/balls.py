r"""Balls in bins: in every epoch each record falls into one of T batches, uniformly and independently of all others.

If (P, Q) dominates one step, an epoch is dominated by outputs y_1 ... y_T that are all drawn from Q, except one, at a
uniformly random place, from P, against all from Q [Chua et al. 2024b]; adaptive steps included, as each is made from
(P, Q) by a kernel of its own. The likelihood ratio of an epoch is the mean of T independent ratios,

    S = (w_1 + ... + w_T) / T,    E_gamma(P_T || Q_T) = E (S - gamma)_+,    E_gamma(Q_T || P_T) = E (1 - gamma S)_+,

convex functions of S. So a law that is larger in convex order gives an upper bound at every gamma, in both orders, and
a smaller one a lower bound. Sums are formed by doubling. After each addition the values are moved to few points: *up*,
each split onto its two neighbours with its mean kept; *down*, all of a cell merged into their mean. What exceeds the
last point becomes an infinite loss. No sampling is involved, and so no confidence level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.dots import table_through

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.pair import Pair, Reals

__all__ = ["epoch_above", "epoch_below"]

_POINTS = 900
_STRIDE = 3
_ROWS = 64
"""Sums are formed in blocks of so many rows, which stay in the processor's cache."""
_LAST_MASS = 1e-34
"""P-mass of a single step beyond its last point."""

_ROUNDING = 2e-9
"""Relative error charged for sums of up to 10^6 positive products, twenty times over."""


@dataclass(frozen=True, eq=False)
class _Law:
    """Values >= 0 with their masses, and the mean that was moved to infinity."""

    value: Reals
    mass: Reals
    lost: float

    def plus(self, other: _Law, *, up: bool) -> _Law:
        lost = self.lost + other.lost
        if len(self.value) * len(other.value) <= _POINTS:
            total = np.add.outer(self.value, other.value).ravel()
            mass = np.multiply.outer(self.mass, other.mass).ravel()
            order = np.argsort(total, kind="stable")
            total, mass = total[order], mass[order]
            starts = np.flatnonzero(np.concatenate([[True], np.diff(total) > 0]))
            return _Law(total[starts], np.add.reduceat(mass, starts), lost)
        points = _points(self, other)
        counted, moment, beyond = np.zeros(len(points)), np.zeros(len(points)), 0.0
        for start in range(0, len(self.value), _ROWS):
            part = slice(start, start + _ROWS)
            total = np.add.outer(self.value[part], other.value).ravel()
            mass = np.multiply.outer(self.mass[part], other.mass).ravel()
            cell = np.clip(np.searchsorted(points, total, side="right") - 1, 0, len(points) - 2)
            if not up:
                counted += _summed(cell, mass, len(points))
                moment += _summed(cell, mass * total, len(points))
                continue
            left = points[cell]
            share = np.minimum((total - left) / (points[cell + 1] - left), 1.0)
            beyond += float((mass * np.maximum(total - points[-1], 0.0)).sum())
            counted += _summed(cell + 1, mass * share, len(points)) + _summed(cell, mass * (1 - share), len(points))
        kept = counted > 0
        if not up:
            return _Law(moment[kept] / counted[kept], counted[kept], lost)
        return _Law(points[kept], counted[kept], lost + beyond)


def _summed(place: NDArray[np.int64], weight: Reals, length: int) -> Reals:
    return np.asarray(np.bincount(place, weights=weight, minlength=length), dtype=np.float64)


def _points(one: _Law, other: _Law) -> Reals:
    """Where to put the values of a sum: close together where most mass is, and everywhere on a logarithmic scale.

    All points are valid, so every third value of each law is enough to see where the mass lies.
    """
    total = np.add.outer(one.value[::_STRIDE], other.value[::_STRIDE]).ravel()
    mass = np.multiply.outer(one.mass[::_STRIDE], other.mass[::_STRIDE]).ravel()
    last = float(one.value.max() + other.value.max())
    low, high = math.log(float(total[total > 0].min())), math.log(last)
    bins = 8192
    place = np.log(np.maximum(total, math.exp(low)))
    index = np.minimum(((place - low) * (bins / (high - low))).astype(np.int64), bins - 1)
    held = np.bincount(index, weights=mass * (1 + total / max(float((mass * total).sum()), 1e-300)), minlength=bins)
    # quadratic errors of means are least for a density like the cube root of the law's; a flatter one serves the tails
    dense = held**0.1
    weight = 0.9 * dense / dense.sum() + 0.1 / bins
    cumulative = np.concatenate([[0.0], np.cumsum(weight)])
    inner = np.interp(np.linspace(0.0, cumulative[-1], _POINTS), cumulative, np.linspace(low, high, bins + 1))
    found = np.unique(np.exp(inner))
    found[-1] = min(float(found[-1]), last)
    return np.concatenate([[0.0], found]) if found[0] > 0 else found


def _powered(law: _Law, times: int, *, up: bool) -> _Law:
    """The law of the sum of `times` independent values."""
    result: _Law | None = None
    while True:
        if times & 1:
            result = law if result is None else result.plus(law, up=up)
        times >>= 1
        if not times:
            assert result is not None
            return result
        law = law.plus(law, up=up)


def _single(pair: Pair, *, up: bool) -> _Law:
    """The ratio of one step under Q."""
    if isinstance(pair, AtomsPair):
        value, mass = np.exp(pair.loss), pair.mass
        if pair.q_missing + pair.q_cut > 0:
            value, mass = np.append(0.0, value), np.append(pair.q_missing + pair.q_cut, mass)
        return _Law(value, mass, (pair.p_missing + pair.p_cut) if up else 0.0)
    edges = _edges(pair)
    tails = pair.tails(edges)
    use = tails.p_above[:-1] < tails.p_below[1:]
    p = np.where(use, tails.p_above[:-1] - tails.p_above[1:], tails.p_below[1:] - tails.p_below[:-1])
    use = tails.q_above[:-1] < tails.q_below[1:]
    q = np.where(use, tails.q_above[:-1] - tails.q_above[1:], tails.q_below[1:] - tails.q_below[:-1])
    p, q = np.maximum(p, 0.0), np.maximum(q, 0.0)
    first, last = (
        (float(tails.p_below[0]), float(tails.q_below[0])),
        (
            float(tails.p_above[-1]),
            float(tails.q_above[-1]),
        ),
    )
    ratio = np.exp(edges)
    if not up:
        p, q = np.concatenate([[first[0]], p, [last[0]]]), np.concatenate([[first[1]], q, [last[1]]])
        kept = q > 1e-290
        q = q[kept]
        return _Law(p[kept] / q, q, 0.0)
    # a share of each cell's Q-mass goes to its right end, so that the mean is kept
    share = np.clip((p - q * ratio[:-1]) / np.diff(ratio), 0.0, q)
    mass = np.append(q - share, 0.0) + np.append(0.0, share)
    mass[-1] += last[1]
    low = min(first[0] / float(ratio[0]), first[1])
    mass[0] += low
    lost = max(0.0, last[0] - last[1] * float(ratio[-1])) + pair.p_missing + pair.p_cut
    value, mass = np.append(0.0, ratio), np.append(first[1] - low + pair.q_missing + pair.q_cut, mass)
    return _Law(value[mass > 0], mass[mass > 0], lost)


def _edges(pair: Pair) -> Reals:
    """Losses at which a continuous law is cut, from one end of its span to the other, or to where no mass is left."""
    low, high = pair.span
    reach = 1.0
    while reach < 600:
        tails = pair.tails(np.array([-reach, reach]))
        if tails.q_below[0] < _LAST_MASS and tails.p_above[1] < _LAST_MASS:
            break
        reach *= 1.3
    return np.linspace(max(low, -reach), min(high, reach), 2 * _POINTS)


def epoch_above(pair: Pair, batches: int) -> AtomsPair:
    """A finite pair that dominates an epoch of so many batches."""
    law = _powered(_single(pair, up=True), batches, up=True)
    value, mass, lost = law.value / batches, law.mass, law.lost / batches
    with np.errstate(divide="ignore"):
        losses = np.log(value)
    epsilons = np.unique(np.abs(losses[np.isfinite(losses)]))
    epsilons = np.concatenate([[0.0], epsilons[(epsilons > 0) & (epsilons < 600)]])
    order = np.argsort(value)
    value, mass = value[order], mass[order]
    # if single losses are off by b, so is the logarithm of a mean of ratios: E (e^b S - g)_+ = e^b E (S - g e^-b)_+
    gamma, grown = np.exp(epsilons - pair.blur), math.exp(pair.blur) * (1 + _ROUNDING)
    forward = np.array([float((mass * np.maximum(value - g, 0.0)).sum()) for g in gamma]) + lost
    backward = np.array([float((mass * np.maximum(1 - g * value, 0.0)).sum()) for g in gamma])
    return table_through(epsilons, np.minimum(forward * grown, 1.0), np.minimum(backward * grown, 1.0))


def epoch_below(pair: Pair, batches: int) -> AtomsPair:
    """A finite pair that an epoch dominates."""
    law = _powered(_single(pair, up=False), batches, up=False)
    kept = (law.value > 1e-250) & (law.mass > 1e-290)
    loss, mass = np.log(law.value[kept] / batches), law.mass[kept]
    order = np.argsort(loss)
    loss, mass = loss[order], mass[order]
    # what was left out, infinite losses above all, is not claimed
    cuts = [max(0.0, 1 - math.fsum(mass * np.exp(loss))), max(0.0, 1 - math.fsum(mass))]
    p_cut, q_cut = (cut if cut > 1e-9 else 0.0 for cut in cuts)
    return AtomsPair(loss, mass, p_cut=p_cut, q_cut=q_cut, blur=_ROUNDING, tail_error=_ROUNDING)
