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
    from discreet.accounting.reading import Reading

__all__ = ["Result", "bracket", "described", "read", "width"]


@dataclass(frozen=True)
class Result:
    """A certified bracket of epsilon at a delta or of delta at an epsilon, and what it took to find it."""

    quantity: str
    reading: Reading
    milliseconds: float
    warnings: tuple[str, ...]

    @property
    def lower(self) -> float:
        """The certified lower end."""
        return self.reading.lower

    @property
    def upper(self) -> float:
        """The certified upper end: the promise."""
        return self.reading.upper

    def fields(self) -> dict[str, Any]:
        """The stable keys of `--json`."""
        return {
            "lower": self.reading.lower,
            "upper": self.reading.upper,
            "width": self.reading.width,
            "method": self.reading.method,
            "reason": self.reading.reason,
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
    spent = 1000 * (time.perf_counter() - start)
    return Result(
        "epsilon" if epsilon is None else "delta", reading, spent, tuple(str(warning.message) for warning in caught)
    )


def width(result: Result) -> str:
    """How tight the bracket is; most guarantees of the classic kind know no lower end."""
    return "upper only" if result.lower == 0 < result.upper else relative(result.reading.width)


def bracket(result: Result, digits: int = 12) -> str:
    """Both ends, rounded outwards."""
    return f"[{below(result.lower, digits)}, {above(result.upper, digits)}]"


def described(cost: Cost) -> str:
    """The cost as text that `--cost` reads again, up to six digits of each number."""
    text = repr(cost).removeprefix("Cost(").removesuffix(")")
    suffix = f", adjacency='{cost.adjacency}'"
    return text.removesuffix(suffix) if cost.adjacency != "add-remove" else text
