"""Several releases at once as one pair: what a sample reveals that is used for all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.exact import EnumeratedLoss, finite_sums
from discreet.accounting.pair import Direction, Pair, total_infinite
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.corners import spread
from discreet.accounting.pairs.dots import table_through
from discreet.accounting.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["composed_pair"]

_MOST_OUTCOMES = 4000


def composed_pair(pairs: Sequence[tuple[Pair, int]]) -> tuple[Pair, bool]:
    """A pair that dominates the composition, and whether it is the composition itself (up to rounding).

    Gaussians add up to one Gaussian; few outcomes are listed; anything else is replaced by a finite pair through its
    certified profile, in both orders.
    """
    if len(pairs) == 1 and pairs[0][1] == 1:
        return pairs[0][0], True
    if all(isinstance(pair, GaussianPair) for pair, _ in pairs):
        squares = [count * pair.mu**2 for pair, count in pairs if isinstance(pair, GaussianPair)]
        return GaussianPair(math.sqrt(math.fsum(squares)) * (1 + 4e-16)), True
    if EnumeratedLoss.size(pairs) <= _MOST_OUTCOMES and not any(pair.p_cut or pair.q_cut for pair, _ in pairs):
        return _listed(pairs), True
    return _through_profile(pairs), False


def _listed(pairs: Sequence[tuple[Pair, int]]) -> AtomsPair:
    loss, log_mass, error = finite_sums(pairs, Direction.FORWARD)
    order = np.argsort(loss, kind="stable")
    loss, log_mass = loss[order], log_mass[order]
    step = 1e-14 * max(1.0, float(np.abs(loss).max()))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(loss) > step]))
    # losses that are equal up to rounding are one; their mean keeps both masses
    p, q = np.add.reduceat(np.exp(log_mass), starts), np.add.reduceat(np.exp(log_mass - loss), starts)
    keep = (p > 1e-290) & (q > 1e-290)
    p_cut, q_cut = math.fsum(p[~keep]), math.fsum(q[~keep])
    p, q = (p[keep], q[keep]) if keep.any() else (np.full(1, 1e-300), np.full(1, 1e-300))
    blur = math.fsum(count * pair.blur for pair, count in pairs) + 4 * step + 4 * float(error.max())
    return AtomsPair(
        np.log(p / q),
        q,
        p_missing=total_infinite(pairs, Direction.FORWARD)[1],
        q_missing=total_infinite(pairs, Direction.BACKWARD)[1],
        p_cut=p_cut,
        q_cut=q_cut,
        symmetric=all(pair.symmetric for pair, _ in pairs),
        blur=blur,
    )


def _through_profile(pairs: Sequence[tuple[Pair, int]]) -> AtomsPair:
    from discreet.accounting.sweep import sweeps

    ways = sweeps(list(pairs))
    blur = math.fsum(count * pair.blur for pair, count in pairs)

    def deltas(epsilon: float) -> list[float]:
        return [way.bounds(max(0.0, epsilon - blur))[1] + (blur if epsilon < blur else 0.0) for way in ways]

    largest = max(way.largest for way in ways)
    epsilons = spread(lambda e: max(deltas(e)) - max(way.infinite[1] for way in ways), largest)
    table = np.array([deltas(float(e)) for e in epsilons])
    return table_through(epsilons, table[:, 0], None if len(ways) == 1 else table[:, 1])
