r"""What a sample of fixed size certainly reveals: three records at the corners of a triangle.

All records but one are 0; that one is u, or is replaced by v, with |u| = |v| = |u - v| = mu: an equilateral triangle. A
sum with N(0, I) noise on a sample that holds the record with probability q shows

    P = (1-q) N(0, I) + q N(u, I)    against    Q = (1-q) N(0, I) + q N(v, I),

in the plane, and that is allowed for noise of sensitivity mu. For small q its chi-square divergence is
q^2 (2 e^{mu^2} - 2 e^{mu^2/2}), up to twice the q^2 (e^{mu^2} - 1) of the Poisson-sampled pair. Turned so that u - v is
horizontal, all three laws are products, and the masses of rectangles are products of normal ones: what falls into
rectangles, or into sets of them, is a post-processing.

*Below on a lattice*: for any set A, P(A) - g Q(A) is a line below the divergence E_g. Take A_j = {dP/dQ > m_j} for m_j
between two levels g_j < g_{j+1}. A polygon whose corner at g_j lies below the lines of A_{j-1} and of A_j stays below
E_g, and so does the largest convex function through its corners: a pair with losses ln g_j that is dominated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING, Lattice
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.dots import table_through
from discreet.divergence.special import ndtr

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair, Reals

__all__ = ["fixed_size_below", "three_outcomes"]

_SIDE = 320
"""Rectangles along each axis."""
_NEAR = 400
_FINE = 24.0
"""Lattice points up to, and in, a standard deviation of the loss."""
_MARGIN = 1e-9
"""Share of the profile given up for rounding: masses are good to 1e-12, and `table_through` adds 1e-11."""


def three_outcomes(epsilon: float, rate: float) -> AtomsPair:
    """Randomized response among three answers, of three different records: P against Q have losses -a, 0 and a."""
    loss = math.log1p(rate * math.expm1(epsilon))
    unit = 1 / (math.exp(epsilon) + 2)
    masses = np.array([unit * math.exp(loss), 1 - unit - unit * math.exp(loss), unit])
    return AtomsPair(np.array([-loss, 0.0, loss]), masses, symmetric=True)


def fixed_size_below(mu: float, rate: float) -> Pair | None:
    """A finite pair below the one of the triangle, with losses on a lattice; None where floats do not hold it."""
    if not 1e-3 <= mu <= 8 or rate < 1e-9:
        return None
    loss, p, q = _rectangles(mu, rate)
    spread = math.sqrt(float((p * loss * loss).sum()))
    step = spread / _FINE
    largest = float(loss[-1])
    if not step > 0 or largest < 8 * step or largest / step > 1e7:
        return None
    index = np.unique(
        np.concatenate([np.arange(_NEAR), np.round(np.geomspace(_NEAR, max(largest / step, _NEAR) + 1, 500))])
    )
    epsilons = step * index
    values = _polygon(loss, p, q, epsilons)
    used = int(np.flatnonzero(values > 0)[-1]) + 2 if (values > 0).any() else 0
    if used < 3 or used > len(values):
        return None
    table = table_through(
        epsilons[:used],
        values[:used] * (1 - _MARGIN),
        lattice=Lattice(0.0, step, 4 * ROUNDING * float(epsilons[used - 1])),
    )
    return table if table.p_missing == 0 and len(table.loss) > 8 else None


def _rectangles(mu: float, rate: float) -> tuple[Reals, Reals, Reals]:
    """Losses of all rectangles, increasing, with their masses under P and Q."""
    across, up = 0.5 * mu, 0.5 * math.sqrt(3.0) * mu
    x = np.linspace(-8.5 - across, 8.5 + across, _SIDE)
    y = np.linspace(-8.5, 8.5 + up, _SIDE)
    left, middle, right = (_masses(x, mean) for mean in (-across, 0.0, across))
    plain, moved = _masses(y, 0.0), _masses(y, up)
    rest = (1 - rate) * np.multiply.outer(middle, plain)
    p = (rest + rate * np.multiply.outer(right, moved)).ravel()
    q = (rest + rate * np.multiply.outer(left, moved)).ravel()
    kept = (p > 1e-200) & (q > 1e-200)
    p, q = p[kept], q[kept]
    loss = np.log(p / q)
    order = np.argsort(loss)
    return loss[order], p[order], q[order]


def _masses(edges: Reals, mean: float) -> Reals:
    """Normal masses of the intervals between edges and beyond, from the smaller tail."""
    below, above = ndtr(edges - mean), ndtr(mean - edges)
    inner = np.where(edges[1:] < mean, below[1:] - below[:-1], above[:-1] - above[1:])
    return np.concatenate([below[:1], inner, above[-1:]])


def _polygon(loss: Reals, p: Reals, q: Reals, epsilons: Reals) -> Reals:
    """Values at e^epsilon of a polygon below the divergence, the same in both orders; 0 from some corner on."""
    p_above = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    q_above = np.append(np.cumsum(q[::-1])[::-1], 0.0)
    middles = 0.5 * (epsilons[1:] + epsilons[:-1])
    at = np.searchsorted(loss, middles, side="right")
    level = np.exp(epsilons)
    start = p_above[at] - level[:-1] * q_above[at]  # the line of A_j at its left and at its right level
    end = p_above[at] - level[1:] * q_above[at]
    values = np.append(start, 0.0)
    values[1:] = np.minimum(values[1:], np.maximum(end, 0.0))
    over = np.flatnonzero(end <= 0)
    if len(over):
        values[over[0] :] = 0.0
    return np.maximum(np.minimum.accumulate(values), 0.0)
