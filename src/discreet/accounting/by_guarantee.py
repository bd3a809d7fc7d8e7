"""Reads a composition by what is guaranteed of each part: Rényi divergences, zCDP, or (epsilon, delta) boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from discreet.accounting import classic, renyi
from discreet.accounting.leaves.guarantees import Approximate
from discreet.accounting.leaves.leaf import Leaf, rdp_of
from discreet.accounting.pair import Direction, Pair
from discreet.accounting.reading import Reading
from discreet.accounting.saddle import Unreachable
from discreet.errors import InvalidArgument

__all__ = ["box_of", "guarantee_only", "renyi_total"]

Parts = Sequence[tuple[Leaf, int]]


def renyi_total(parts: Parts, order: float) -> float:
    """Upper bound of the Rényi divergence of the composition at this order: the worse of the two directions."""
    common, by_direction = 0.0, {Direction.FORWARD: 0.0, Direction.BACKWARD: 0.0}
    for leaf, count in parts:
        pair = leaf.pair()
        if pair is None or type(leaf).rdp is not Leaf.rdp:
            common += count * leaf.rdp(order)
            continue
        for direction in by_direction:
            if pair.symmetric and direction is Direction.BACKWARD:
                by_direction[direction] += count * _rdp(pair, order, Direction.FORWARD)
            else:
                by_direction[direction] += count * _rdp(pair, order, direction)
    return (common + max(by_direction.values())) * (1 + 1e-15)


@lru_cache(maxsize=512)
def _rdp(pair: Pair, order: float, direction: Direction) -> float:
    """Remembered: a search for one part's noise reads the others at the same orders again and again."""
    return rdp_of(pair, order, direction)


def guarantee_only(parts: Parts, method: str, epsilon: float | None, delta: float | None) -> Reading:
    """Upper bounds from a guarantee of the whole: Rényi, zCDP, or boxes."""
    if method in ("renyi", "concentrated"):
        if method == "concentrated":
            rho = math.fsum(count * leaf.zcdp() for leaf, count in parts)

            def curve(order: float) -> float:
                return order * rho
        else:

            def curve(order: float) -> float:
                try:
                    return renyi_total(parts, order)
                except (OverflowError, Unreachable):
                    return math.inf  # too far out to be computed; leaving an order out is on the safe side

        reason = "Rényi divergences add up; converted at the best real order"
        given = _given(parts, curve) if method == "renyi" else {}
        if epsilon is not None:
            found = min(
                renyi.delta(curve, epsilon), *(renyi.delta_at_order(*row, epsilon) for row in given.items()), 1.0
            )
            return Reading(0.0, found, method, reason, is_tight=False)
        assert delta is not None
        if delta == 0:
            top = math.fsum(count * leaf.pure_epsilon() for leaf, count in parts)
            return Reading(0.0, top, method, "the sum of the largest losses", is_tight=False)
        known = (renyi.epsilon_at_order(*row, delta) for row in given.items())
        return Reading(0.0, min(renyi.epsilon(curve, delta), *known, math.inf), method, reason, is_tight=False)
    boxes = [box_of(leaf, method) for leaf, _ in parts]
    counts = [count for _, count in parts]
    epsilons, deltas = [box[0] for box in boxes], [box[1] for box in boxes]
    if method == "classic":
        total_epsilon, total_delta = classic.basic(epsilons, deltas, counts=counts)
        reason = "the sum of the parts' epsilons and deltas"
        if epsilon is not None:
            return Reading(0.0, total_delta if epsilon >= total_epsilon else 1.0, method, reason, is_tight=False)
        assert delta is not None
        return Reading(0.0, total_epsilon if delta >= total_delta else math.inf, method, reason, is_tight=False)
    reason = "advanced composition, heterogeneous closed form"
    if epsilon is not None:
        return Reading(
            0.0, classic.delta(epsilons, deltas, counts=counts, epsilon=epsilon), method, reason, is_tight=False
        )
    assert delta is not None
    return Reading(0.0, classic.epsilon(epsilons, deltas, counts=counts, delta=delta), method, reason, is_tight=False)


def _given(parts: Parts, curve: Callable[[float], float]) -> dict[float, float]:
    """The curve of the whole at the orders at which that of a part has a step; where it is finite."""
    values = {order: curve(order) for order in sorted({order for leaf, _ in parts for order in leaf.orders()})}
    return {order: value for order, value in values.items() if value < math.inf}


def box_of(leaf: Leaf, method: str) -> tuple[float, float]:
    """The (epsilon, delta) by which classic composition knows a leaf."""
    if isinstance(leaf, Approximate):
        return leaf.epsilon, leaf.delta
    epsilon = leaf.pure_epsilon()
    if not np.isfinite(epsilon):
        raise InvalidArgument(
            "method",
            method,
            f"it composes parts that are pure or (epsilon, delta)-DP, and {leaf.describe()} is neither; use 'auto', or "
            "state that part as Cost.approximate(epsilon, delta)",
        )
    return epsilon, 0.0
