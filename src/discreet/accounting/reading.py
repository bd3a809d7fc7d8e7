"""A certified bracket and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """A certified bracket and where it comes from."""

    lower: float
    upper: float
    method: str
    reason: str
    direction: str = ""
    is_tight: bool = True
    """Both ends approach the same number: False where lower and upper speak of different mechanisms."""

    @property
    def width(self) -> float:
        """Relative width of the bracket."""
        if self.upper == self.lower:
            return 0.0
        return (self.upper - self.lower) / self.upper if self.upper < math.inf else math.inf
