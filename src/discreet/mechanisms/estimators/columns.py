"""A column between public bounds, as whole numbers of steps around the middle: exact sums of first and second powers.

Rows are clamped, NaN becomes `missing` and infinities the bound on their side, each row by itself: see `Bounds`. With c
the middle step and h the half width in steps, a row becomes z in [-h, h]. One row more changes sum z by at most h, and
sum (z^2 - h^2 / 2) by at most h^2 / 2; one row replaced changes sum z by at most 2h, and sum z^2 by at most h^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.counts import rows_of
from discreet.mechanisms.sums import Bounds

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Centred", "column_of", "exact_total"]

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Centred:
    """The column's lattice: 2^20 to 2^21 steps across the bounds, so that a million squares add up within 64 bits."""

    bounds: Bounds

    @classmethod
    def between(cls, lower: float, upper: float, missing: float | None) -> Centred:
        """The column between these bounds."""
        checked = Bounds(lower, upper, missing=missing)
        step = math.ldexp(1.0, max(math.frexp(checked.upper - checked.lower)[1] - 21, -990))
        return cls(Bounds(lower, upper, granularity=step, missing=missing))

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return self.bounds.lattice.step

    @property
    def middle(self) -> int:
        """c, in steps."""
        low, high = self.bounds.ends
        return (low + high) // 2

    @property
    def half(self) -> int:
        """h, in steps."""
        return self.bounds.ends[1] - self.middle

    def place(self, data: Any) -> NDArray[np.int64]:
        """z of every row."""
        return self.bounds.place(column_of(data)) - self.middle


def column_of(data: Any) -> NDArray[Any]:
    """One column of numbers, as an array."""
    rows = rows_of(data)
    if rows.ndim != 1:
        raise InvalidArgument("data", "a table", "pass one column of numbers")
    return rows


def exact_total(steps: NDArray[np.int64], *, power: int = 1) -> int:
    """The exact sum of the entries, or of their squares; squares of up to 2^21 steps."""
    total = 0
    for start in range(0, len(steps), _CHUNK):
        chunk = steps[start : start + _CHUNK]
        total += int(chunk.sum() if power == 1 else chunk @ chunk)
    return total
