"""Releases that several compositions dominate: all ways to take one of them for each part."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.accounting.leaves.leaf import Parts

__all__ = ["alternatives", "stands_alone"]

_MOST = 12
"""With more ways than this every part takes what is best for it alone: each is valid, so any choice of ways is."""


def alternatives(parts: Parts, *, epsilon: float | None, delta: float | None) -> list[Parts]:
    """The compositions that dominate the same releases, the given one left out; empty if no part has a choice."""
    ways: list[list[Parts]] = []
    for leaf, count in parts:
        others = [
            [(inner, times * count) for inner, times in other]
            for other in leaf.alternatives(epsilon=epsilon, delta=delta)
        ]
        own: list[Parts] = [] if others and leaf.pair() is None else [[(leaf, count)]]
        ways.append([*own, *others])
    if all(len(way) == 1 and way[0] == [part] for way, part in zip(ways, parts, strict=True)):
        return []
    if prod(map(len, ways)) > _MOST:
        from discreet.accounting.evaluate import upper_end

        ways = [[min(way, key=lambda one: upper_end(one, epsilon=epsilon, delta=delta))] for way in ways]
    found = [[part for way in choice for part in way] for choice in product(*ways)]
    return [choice for choice in found if choice != list(parts)]


def stands_alone(parts: Parts, *, epsilon: float | None, delta: float | None) -> bool:
    """Whether the parts can be read as they are: none of them is known by its alternatives alone."""
    return not any(leaf.pair() is None and leaf.alternatives(epsilon=epsilon, delta=delta) for leaf, _ in parts)
