"""One certified reading of one cost, with what it took: the unit that commands print."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.cli.number import above, below, relative
from discreet.errors import WideBracket

if TYPE_CHECKING:
    from discreet.accounting import Cost

__all__ = ["Result", "bracket", "described", "read", "width"]


@dataclass(frozen=True)
class Result:
    """A certified bracket of epsilon or delta, how it was computed, and how long it took."""

    quantity: str
    lower: float
    upper: float
    width: float
    method: str
    reason: str
    milliseconds: float
    warnings: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """The stable keys of `--json`."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "width": self.width,
            "method": self.method,
            "reason": self.reason,
            "milliseconds": round(self.milliseconds, 3),
            "warnings": list(self.warnings),
        }


def read(cost: Cost, *, delta: float | None = None, epsilon: float | None = None, method: str = "auto") -> Result:
    """Epsilon at a delta, or delta at an epsilon."""
    from discreet.accounting.evaluate import delta_reading, epsilon_reading
    from discreet.arguments import nonnegative, probability

    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WideBracket)
        if epsilon is None:
            reading = epsilon_reading(cost.parts, probability("delta", delta), method)
        else:
            reading = delta_reading(cost.parts, nonnegative("epsilon", epsilon), method)
    return Result(
        quantity="epsilon" if epsilon is None else "delta",
        lower=reading.lower,
        upper=reading.upper,
        width=reading.width,
        method=reading.method,
        reason=reading.reason,
        milliseconds=1000 * (time.perf_counter() - start),
        warnings=tuple(str(warning.message) for warning in caught),
    )


def width(result: Result) -> str:
    """How tight the bracket is; most guarantees of the classic kind know no lower end."""
    return "upper only" if result.lower == 0 < result.upper else relative(result.width)


def bracket(result: Result, digits: int = 12) -> str:
    """Both ends, rounded outwards."""
    return f"[{below(result.lower, digits)}, {above(result.upper, digits)}]"


def described(cost: Cost) -> str:
    """The cost as text that `--cost` reads again, up to six digits of each number."""
    text = repr(cost).removeprefix("Cost(").removesuffix(")")
    suffix = f", adjacency='{cost.adjacency}'"
    return text.removesuffix(suffix) if cost.adjacency != "add-remove" else text
