"""Releases counted on two neighbouring inputs: is any event likelier than the cost allows?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.events import chosen, tested
from discreet.audit.outcomes import views
from discreet.audit.precision import bit_views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from discreet.audit.claim import Claim
    from discreet.audit.events import Evidence
    from discreet.audit.outcomes import View

__all__ = ["Sides", "values_and_bits"]

_LEARNING = 4
"""One release in so many chooses the events; the rest test them, where they are worth more."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Releases on an input and on its neighbour, split into a part that chooses events and a part that tests them."""

    left: NDArray[Any]
    right: NDArray[Any]

    def comparable(self) -> Sides:
        """The same releases in one form: if they are not numbers of one shape on both sides, they are names."""
        same = self.left.shape[1:] == self.right.shape[1:]
        if same and object not in (self.left.dtype, self.right.dtype):
            return self
        return Sides(_named(self.left), _named(self.right))

    def evidence(self, seen: Sequence[View], claim: Claim, *, miss: float, delta: float) -> list[Evidence]:
        """The events chosen in these views, tested together: a true claim is refuted with probability at most miss."""
        cut = max(1, len(self.left) // _LEARNING)
        trials = max(1, len(self.left) - cut)
        groups = [chosen(view, self.left[:cut], self.right[:cut], claim, trials=trials, delta=delta) for view in seen]
        number = sum(map(len, groups))
        found: list[Evidence] = []
        for events in groups:
            found += tested(events, self.left[cut:], self.right[cut:], claim, miss=miss / number)
        return found

    def learning(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The part that may be looked at."""
        cut = max(1, len(self.left) // _LEARNING)
        return self.left[:cut], self.right[:cut]


def values_and_bits(sides: Sides) -> tuple[Sequence[View], Sequence[View]]:
    """The views of the released values, and those of their low bits, learnt from the part that may be looked at."""
    left, right = sides.learning()
    return views(left, right), bit_views(left) if right.dtype.kind == "f" else []


def _named(releases: NDArray[Any]) -> NDArray[Any]:
    if releases.dtype == object:
        return releases
    named = np.empty(len(releases), dtype=object)
    named[:] = [repr(row.tolist()) for row in releases]
    return named
