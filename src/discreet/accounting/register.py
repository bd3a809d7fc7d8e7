"""The books of a filter or an odometer: what was spent, with exact running totals, and how they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

from discreet.accounting.cost import Cost
from discreet.errors import AdjacencyMismatch, InvalidArgument, StorageError, UnknownVersion

if TYPE_CHECKING:
    from discreet.accounting.charges import Exact, Quantity
    from discreet.accounting.leaves.leaf import Leaf

__all__ = ["VERSION", "Register", "stored_fields"]

VERSION = 1


class Register:
    """What was spent, as leaves and counts, with exact totals of some quantities; changed only under its lock."""

    def __init__(self, adjacency: str, quantities: tuple[Quantity, ...]) -> None:
        self.adjacency, self.quantities = adjacency, quantities
        self.parts: Counter[Leaf] = Counter()
        self.totals: tuple[Exact, ...] = tuple(quantity.of(()) for quantity in quantities)
        self.lock = RLock()

    def amounts(self, cost: object) -> tuple[Exact, ...]:
        """What a cost would add."""
        if not isinstance(cost, Cost):
            raise InvalidArgument("cost", cost, "pass a Cost, such as Cost.laplace(noise_multiplier=2.0)")
        if cost.adjacency != self.adjacency:
            raise AdjacencyMismatch(self.adjacency, cost.adjacency)
        return tuple(quantity.of(cost.parts) for quantity in self.quantities)

    def add(self, cost: Cost, amounts: tuple[Exact, ...]) -> None:
        """Books a cost whose amounts were found before: nothing here can fail half-way."""
        self.totals = tuple(total + amount for total, amount in zip(self.totals, amounts, strict=True))
        for leaf, times in cost.parts:
            self.parts[leaf] += times

    def spent(self) -> Cost:
        """The sum of all costs booked."""
        return Cost(tuple(self.parts.items()), self.adjacency)


def stored_fields(description: object, kind: str, names: set[str]) -> Mapping[str, Any]:
    """The fields of a stored description, after checking its format, version and names."""
    if not isinstance(description, Mapping) or description.get("format") != kind:
        raise StorageError(f"this is not what to_dict() wrote: it needs 'format': '{kind}'.")
    version = description.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise UnknownVersion(version, VERSION)
    if set(description) != names | {"format", "version"}:
        found = sorted(map(str, set(description) - {"format", "version"}))
        raise StorageError(f"a '{kind}' needs the fields {sorted(names)} and has {found}.")
    return description
