r"""Reads delta at many epsilons: the costly part of an accountant is made once and shared by its neighbours.

A line of the contour accountant or a grid is made for one epsilon, but its bounds are certified at every epsilon; only
their width grows with the distance. Sources are therefore made at *anchors*, multiples of 128, 64, ..., 1/2 standard
deviations of the loss. An epsilon is read from its nearest anchor of the coarsest level; while the bracket is too wide,
it is intersected with that of the next level. The result depends on the epsilon alone, never on what was asked before.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from discreet.accounting.discretise import loss_span
from discreet.accounting.exact import EnumeratedLoss, SingleLoss
from discreet.accounting.pair import Direction, Pair, total_infinite
from discreet.accounting.sources import shared_source

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NARROW", "Sweep", "sweeps"]

NARROW = 1e-6
"""Relative width up to which a neighbour's bracket is taken unless a narrower one is asked for."""

_WIDEST = 1e-2
"""Relative width of a source at its own anchor up to which its neighbours may be read with twice that."""

_LEVELS = tuple(2.0**k for k in range(7, -2, -1))

_KEPT = 16


class _Source(Protocol):
    def bounds(self, epsilon: float) -> tuple[float, float]: ...


class Sweep:
    """D(epsilon) = E (1 - e^{epsilon - L})_+ of one direction of a composition, at any number of epsilons."""

    def __init__(self, pairs: Sequence[tuple[Pair, int]], direction: Direction) -> None:
        self.pairs, self.direction = list(pairs), direction
        lost = total_infinite(self.pairs, direction)
        self.infinite = lost[0] + 0.0, lost[1] + 0.0
        """Bounds of the probability that the loss is infinite."""
        spans = [(count, loss_span(pair, direction)) for pair, count in self.pairs]
        self.least = math.fsum(count * low for count, (low, _) in spans)
        self.largest = math.fsum(count * high for count, (_, high) in spans)
        """Smallest and largest finite loss."""
        forward = direction is Direction.FORWARD
        moments = [(count, pair.cumulants(1.0 if forward else -0.0)) for pair, count in self.pairs]
        self.mean = math.fsum(count * (m[1] if forward else -m[1]) for count, m in moments)
        self.deviation = math.sqrt(math.fsum(count * m[2] for count, m in moments))
        """Mean and standard deviation of the finite losses; approximate, for placing anchors and windows."""
        self._sources: OrderedDict[float, tuple[_Source, float]] = OrderedDict()

    @property
    def is_single(self) -> bool:
        """One mechanism, used once."""
        return len(self.pairs) == 1 and self.pairs[0][1] == 1

    def bounds(self, epsilon: float, *, narrow: float = NARROW, floor: float = 0.0) -> tuple[float, float]:
        """Certified lower and upper D(epsilon), infinite losses included, at any real epsilon.

        Their relative width is at most `narrow` where the accountants reach it, or their width at most `floor`.
        """
        low, high = self.finite(epsilon, narrow=narrow, floor=floor)
        return min(1.0, self.infinite[0] + low * (1 - 1e-15)), min(1.0, (self.infinite[1] + high) * (1 + 1e-15))

    def finite(self, epsilon: float, *, narrow: float = NARROW, floor: float = 0.0) -> tuple[float, float]:
        """`bounds` of what the finite losses contribute."""
        if epsilon >= max(self.largest, 0.0) * (1 + 1e-13):
            return 0.0, 0.0
        low, high = 0.0, 1.0
        for anchor in self._anchors(epsilon):
            source, own_width = self._source(anchor)
            found = source.bounds(epsilon)
            low, high = max(low, found[0]), min(high, found[1])
            allowed = max(narrow, 2 * own_width) if own_width <= _WIDEST else narrow
            if high - low <= max(allowed * high, floor):
                break
        return low, high

    def _anchors(self, epsilon: float) -> list[float]:
        """The nearest anchor of each level, coarse to fine."""
        if self.is_single or self.deviation == 0 or not epsilon > 0:
            return [0.0]
        anchors: dict[float, None] = {}
        for level in _LEVELS:
            spacing = level * self.deviation
            index = round(epsilon / spacing)
            if index * spacing >= self.largest:
                index -= 1
            anchors[max(index, 0) * spacing] = None
        return list(anchors)

    def _source(self, epsilon: float) -> tuple[_Source, float]:
        """The source made at this epsilon, and its relative width there."""
        if epsilon in self._sources:
            self._sources.move_to_end(epsilon)
            return self._sources[epsilon]
        source = self._made(epsilon)
        low, high = source.bounds(epsilon)
        self._sources[epsilon] = source, ((high - low) / high if high > 0 else 0.0)
        if len(self._sources) > _KEPT:
            self._sources.popitem(last=False)
        return self._sources[epsilon]

    @cached_property
    def _listed(self) -> EnumeratedLoss:
        return EnumeratedLoss(self.pairs, self.direction)

    def _made(self, epsilon: float) -> _Source:
        if self.is_single:
            return SingleLoss(self.pairs[0][0], self.direction)
        # next to 0 a grid must be much finer for the same relative width, and its neighbour serves as well
        at = max(epsilon, min(0.5 * self.deviation, 0.5 * self.largest))
        return shared_source(
            self.pairs, self.direction, epsilon, narrow=NARROW, grid_at=at, listed=lambda: self._listed
        )


def sweeps(pairs: Sequence[tuple[Pair, int]]) -> list[Sweep]:
    """One sweep per direction in which the composition can leak differently."""
    directions = [Direction.FORWARD]
    if not all(pair.symmetric for pair, _ in pairs):
        directions.append(Direction.BACKWARD)
    return [Sweep(pairs, direction) for direction in directions]
