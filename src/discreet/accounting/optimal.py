"""Optimal composition of (epsilon, delta) black boxes [Kairouz et al. 2015; Murtagh and Vadhan 2018].

A box is exactly as bad as "leak with probability delta, else randomized response with epsilon", so the optimal bound is
the composition of those pairs; equal boxes make a binomial sum, unequal ones share a lattice or go to the grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.accounting.leaves.guarantees import Approximate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting.reading import Reading

__all__ = ["delta", "epsilon"]


def delta(
    epsilons: Sequence[float], deltas: Sequence[float], *, epsilon: float, counts: Sequence[int] | None = None
) -> Reading:
    """Certified bounds of the smallest delta for which the boxes together are (epsilon, delta)-DP.

    >>> round(delta([0.1], [0.0], counts=[100], epsilon=3.0).upper, 9)
    0.001361399
    """
    from discreet.accounting.evaluate import delta_reading

    return delta_reading(_parts(epsilons, deltas, counts), epsilon)


def epsilon(
    epsilons: Sequence[float], deltas: Sequence[float], *, delta: float, counts: Sequence[int] | None = None
) -> Reading:
    """Certified bounds of the smallest epsilon for which the boxes together are (epsilon, delta)-DP."""
    from discreet.accounting.evaluate import epsilon_reading

    return epsilon_reading(_parts(epsilons, deltas, counts), delta)


def _parts(
    epsilons: Sequence[float], deltas: Sequence[float], counts: Sequence[int] | None
) -> list[tuple[Approximate, int]]:
    times = [1] * len(epsilons) if counts is None else counts
    return [(Approximate(e, d), k) for e, d, k in zip(epsilons, deltas, times, strict=True)]
