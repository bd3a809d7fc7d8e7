"""Which of several valid bounds a reading took, by how much it was the best, and why: in words."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from discreet.accounting.digits import shown
from discreet.accounting.evaluate import delta_reading, epsilon_reading
from discreet.accounting.saddle import Unreachable
from discreet.errors import CertificateError, WideBracket

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost
    from discreet.accounting.leaves.leaf import Leaf, Parts, Rival

__all__ = ["contest"]

_TIE = 1e-9
"""Bounds that agree to this say the same; the one that is named first, and is simpler, has won."""


def contest(cost: Cost, *, delta: float | None = None, epsilon: float | None = None) -> str:
    """For each part with several bounds: the one that won, why, and what the cost would be by each of the others.

    Every bound is read in place of its part, with everything else as it is, so the numbers are those of the whole cost.
    """
    return " ".join(_words(cost, leaf, delta, epsilon) for leaf, _ in cost.parts if leaf.rivals())


def _words(cost: Cost, leaf: Leaf, delta: float | None, epsilon: float | None) -> str:
    found: dict[str, tuple[float, Rival]] = {}
    for rival in leaf.rivals():
        value = _upper(_with(cost, leaf, rival.parts), delta, epsilon)
        if rival.name not in found or value < found[rival.name][0]:
            found[rival.name] = value, rival
    least = min(value for value, _ in found.values())
    winner = next(name for name, (value, _) in found.items() if value <= least * (1 + _TIE))
    what = "epsilon" if delta is not None else "delta"
    value, rival = found.pop(winner)
    said = f"{leaf.subject()}: {winner} won with {what} = {_number(value)}: {rival.why}."
    others = ", ".join(f"{_number(other)} by {name}" for name, (other, _) in found.items())
    return f"{said} It would be {others}." if others else said


def _with(cost: Cost, leaf: Leaf, parts: Parts | None) -> Parts | None:
    """The parts of the cost with one leaf exchanged."""
    if parts is None:
        return None
    swapped: list[tuple[Leaf, int]] = []
    for other, times in cost.parts:
        swapped += [(inner, many * times) for inner, many in parts] if other == leaf else [(other, times)]
    return swapped


def _upper(parts: Parts | None, delta: float | None, epsilon: float | None) -> float:
    """What is read from these parts; no number where nobody is protected, or nothing can be certified."""
    if parts is None:
        return math.inf if delta is not None else 1.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WideBracket)  # any valid bound will do
            if delta is not None:
                return epsilon_reading(parts, delta).upper
            assert epsilon is not None
            return delta_reading(parts, epsilon).upper
    except (CertificateError, OverflowError, Unreachable):
        return math.inf


def _number(value: float) -> str:
    return "no finite number" if value == math.inf else shown(value, 5, up=True)
