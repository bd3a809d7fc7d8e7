"""Lists of leaves with counts, in their canonical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.accounting.leaves.leaf import Leaf

    Parts = tuple[tuple[Leaf, int], ...]
    Names = tuple[tuple[str, str], ...]

__all__ = ["canonical", "merged"]


def canonical(part: tuple[Leaf, int]) -> tuple[str, str]:
    """What parts are ordered by."""
    leaf, _ = part
    return leaf.kind, repr(leaf)


def merged(first: tuple[Parts, Names], second: tuple[Parts, Names]) -> tuple[Parts, Names] | None:
    """Two ordered lists, each with the names it is ordered by, joined in one pass; None if the order is in doubt.

    A sum of many different costs would otherwise order all of them again with every addition.
    """
    (ours, mine), (others, theirs) = first, second
    parts: list[tuple[Leaf, int]] = []
    names: list[tuple[str, str]] = []
    i = j = 0
    while i < len(mine) or j < len(theirs):
        if j == len(theirs) or (i < len(mine) and mine[i] < theirs[j]):
            parts.append(ours[i])
            names.append(mine[i])
            i += 1
        elif i == len(mine) or theirs[j] < mine[i]:
            parts.append(others[j])
            names.append(theirs[j])
            j += 1
        elif ours[i][0] == others[j][0]:
            parts.append((ours[i][0], ours[i][1] + others[j][1]))
            names.append(mine[i])
            i, j = i + 1, j + 1
        else:  # two leaves that look alike but are not
            return None
    return tuple(parts), tuple(names)
