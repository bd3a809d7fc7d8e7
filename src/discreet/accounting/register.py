"""The books of a filter or an odometer: what was spent, with exact running totals."""

from __future__ import annotations

from collections import Counter
from threading import RLock
from typing import TYPE_CHECKING

from discreet.accounting.balance import amounts
from discreet.accounting.cost import Cost

if TYPE_CHECKING:
    from discreet.accounting.charges import Exact, Quantity
    from discreet.accounting.leaves.leaf import Leaf

__all__ = ["Register"]


class Register:
    """What was spent, as leaves and counts, with exact totals of some quantities; changed only under its lock."""

    def __init__(self, adjacency: str, quantities: tuple[Quantity, ...]) -> None:
        self.adjacency, self.quantities = adjacency, quantities
        self.parts: Counter[Leaf] = Counter()
        self.totals: tuple[Exact, ...] = tuple(quantity.of(()) for quantity in quantities)
        self.lock = RLock()

    def amounts(self, cost: object) -> tuple[Exact, ...]:
        """What a cost would add."""
        return amounts(cost, self.quantities, self.adjacency)

    def add(self, cost: Cost, amounts: tuple[Exact, ...]) -> None:
        """Books a cost whose amounts were found before: nothing here can fail half-way."""
        self.totals = tuple(total + amount for total, amount in zip(self.totals, amounts, strict=True))
        for leaf, times in cost.parts:
            self.parts[leaf] += times

    def spent(self) -> Cost:
        """The sum of all costs booked."""
        return Cost(tuple(self.parts.items()), self.adjacency)
