"""Several releases as one: what is sampled together is one mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.accounting.leaves.leaf import Leaf, check_fields, leaf_from_fields
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.composed import composed_pair
from discreet.arguments import count
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair

__all__ = ["Together"]

Parts = tuple[tuple[Leaf, int], ...]


@dataclass(frozen=True)
class Together(Leaf):
    """The composition of its parts, each with how often it is used, on the same records."""

    kind: ClassVar[str] = "together"
    parts: Parts

    def __post_init__(self) -> None:
        checked = tuple((leaf, count("count", times, least=1)) for leaf, times in self.parts)
        if not checked:
            raise InvalidArgument("parts", self.parts, "pass at least one part")
        object.__setattr__(self, "parts", checked)

    def pair(self) -> Pair | None:
        return _composed(self.parts)[0]

    def is_tight(self) -> bool:
        return all(leaf.is_tight() for leaf, _ in self.parts) and _composed(self.parts)[1]

    def witness(self) -> Pair | None:
        """The composition where it is known exactly, otherwise the part that varies most, alone."""
        if self.is_tight():
            return self.pair()
        found = [pair for leaf, _ in self.parts if (pair := leaf.witness()) is not None]
        if not found:
            return None
        return max(found, key=lambda pair: pair.cumulants(1.0)[2])

    def rdp(self, order: float) -> float:
        from discreet.accounting.by_guarantee import renyi_total

        return renyi_total(self.parts, order)

    def orders(self) -> tuple[float, ...]:
        return tuple(sorted({order for leaf, _ in self.parts for order in leaf.orders()}))

    def pure_epsilon(self) -> float:
        return math.fsum(times * leaf.pure_epsilon() for leaf, times in self.parts) * (1 + 4e-16)

    def zcdp(self) -> float:
        return math.fsum(times * leaf.zcdp() for leaf, times in self.parts) * (1 + 4e-16)

    def gdp(self) -> float:
        return math.sqrt(math.fsum(times * leaf.gdp() ** 2 for leaf, times in self.parts)) * (1 + 1e-15)

    def fields(self) -> dict[str, Any]:
        return {"parts": [{"kind": leaf.kind, "count": times, **leaf.fields()} for leaf, times in self.parts]}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        check_fields("a 'together' entry", values, ["parts"])
        rows = values["parts"]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise StorageError("the field 'parts' of a 'together' entry must be a list of parts.")
        parts = []
        for row in rows:
            inner = dict(row)
            kind, times = inner.pop("kind", None), inner.pop("count", None)
            parts.append((leaf_from_fields(kind, inner), times))
        return cls(tuple(parts))

    def describe(self) -> str:
        inside = " + ".join(
            leaf.describe() if times == 1 else f"{times} * {leaf.describe()}" for leaf, times in self.parts
        )
        return f"({inside})"


@lru_cache(maxsize=64)
def _composed(parts: Parts) -> tuple[Pair | None, bool]:
    pairs = [(leaf.pair(), times) for leaf, times in parts]
    known = [(pair, times) for pair, times in pairs if pair is not None]
    if len(known) < len(pairs):
        return None, False
    pair, exact = composed_pair(known)
    assert pair.infinite(Direction.FORWARD) >= 0
    return pair, exact
