"""`Balance`: the limits of a budget with exact running totals; says what fits, what is left and what is in the way."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from discreet.accounting.charges import INFINITE, Exact, decimal, floor_decimal, floor_root, up, up_root
from discreet.accounting.cost import Cost
from discreet.divergence.normal import log_tail
from discreet.errors import AdjacencyMismatch, BudgetExceeded, InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.budget import Budget, Limit
    from discreet.accounting.charges import Quantity

__all__ = ["Balance", "amounts"]

_LEAST = 1e-100
"""No release costs less, except for nothing."""


@dataclass(frozen=True)
class Balance:
    """A budget, its limits, and the exact total of each of their quantities so far; it never changes.

    All of `required` must hold, and at least one of `alternatives` if there are any; `totals` has one number for each
    of them, in this order. `Filter` keeps its balance in memory, a ledger keeps it in a file.
    """

    budget: Budget
    required: tuple[Limit, ...]
    alternatives: tuple[Limit, ...]
    totals: tuple[Exact, ...]

    @classmethod
    def opening(cls, budget: Budget) -> Balance:
        """The balance of a budget of which nothing was spent."""
        required, alternatives = budget.required(), budget.alternatives()
        return cls(budget, required, alternatives, tuple(limit.quantity.of(()) for limit in required + alternatives))

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Every limit, the required ones first."""
        return self.required + self.alternatives

    def amounts(self, cost: object) -> tuple[Exact, ...]:
        """What a cost would add to the totals; the slow part of a charge, and independent of the totals."""
        return amounts(cost, tuple(limit.quantity for limit in self.limits), self.budget.adjacency)

    def after(self, added: tuple[Exact, ...]) -> Balance:
        """The balance once these amounts are added."""
        return replace(self, totals=tuple(total + amount for total, amount in zip(self.totals, added, strict=True)))

    @property
    def holds(self) -> bool:
        """Whether the totals keep the budget."""
        count = len(self.required)
        if not all(limit.holds(total) for limit, total in zip(self.required, self.totals[:count], strict=True)):
            return False
        rest = zip(self.alternatives, self.totals[count:], strict=True)
        return not self.alternatives or any(limit.holds(total) for limit, total in rest)

    def admits(self, cost: Cost) -> bool:
        """Whether the cost still fits."""
        return self.after(self.amounts(cost)).holds

    @property
    def remaining(self) -> float:
        """The largest x such that one more release of that size is admitted; see `Filter.remaining`."""
        if self.alternatives:
            return self._remaining_epsilon()
        rooms = [limit.most - total for limit, total in zip(self.required, self.totals, strict=True)]
        if self.budget.renyi is not None:
            orders = [decimal(limit.quantity.order) for limit in self.required]
            rate = min(room / order for room, order in zip(rooms, orders, strict=True))
            return self._admitted(Cost.concentrated, floor_decimal(rate))
        return floor_root(rooms[0]) if self.budget.mu is not None else floor_decimal(rooms[0])

    @property
    def remaining_delta(self) -> float:
        """What is left for the delta that releases carry themselves; 0 for budgets without delta."""
        return floor_decimal(self.required[0].most - self.totals[0]) if self.alternatives else 0.0

    def shares(self) -> tuple[tuple[Limit, float], ...]:
        """Every limit with the share of it that is spent; above 1 for an alternative that is closed."""
        return tuple((limit, _share(limit, total)) for limit, total in zip(self.limits, self.totals, strict=True))

    def refusal(self, cost: Cost, added: tuple[Exact, ...], *, of: str = "", until: str = "") -> BudgetExceeded:
        """Names the limit that is in the way; of several alternatives the one that comes closest."""
        rows = list(zip(self.limits, self.totals, added, strict=True))
        required, alternatives = rows[: len(self.required)], rows[len(self.required) :]
        broken = [row for row in required if not row[0].holds(row[1] + row[2])]
        overshoot = [
            (_share(limit, total + amount), limit, total, amount) for limit, total, amount in broken or alternatives
        ]
        pick = max if broken else min
        _, limit, total, amount = pick(overshoot, key=lambda row: row[0])
        left = limit.most - total
        endless = (leaf.describe() for leaf, _ in cost.parts if limit.quantity.of(((leaf, 1),)) == INFINITE)
        culprit = next(endless, "")
        if limit.quantity.kind == "mu2":
            requested, remaining, unit = up_root(amount), floor_root(left), "mu"
        else:
            requested, remaining, unit = up(amount), floor_decimal(left), limit.quantity.unit
        leaks = self.alternatives and broken
        pure = self.remaining if self.alternatives and not culprit else None
        if pure is not None and not broken and alternatives[0][2] != INFINITE and [n for _, n in cost.parts] == [1]:
            # one release that has an epsilon: in these words whatever limit comes closest
            requested, remaining, unit = up(alternatives[0][2]), pure, "epsilon"
        return BudgetExceeded(
            requested=requested,
            remaining=remaining,
            unit=unit,
            unbounded=culprit,
            of=of,
            until=until,
            pure=pure,
            set_aside=floor_decimal(limit.most) if leaks else None,
        )

    def _remaining_epsilon(self) -> float:
        """The largest epsilon of a pure release that some alternative has room for."""
        best = 0.0
        for limit, total in zip(self.alternatives, self.totals[len(self.required) :], strict=True):
            room = limit.most - total
            if room <= 0:
                continue
            if limit.quantity.kind == "epsilon":
                epsilon = floor_decimal(room)
            elif limit.quantity.kind == "mu2":
                epsilon = _pure_of_mu(math.sqrt(room))
            else:
                epsilon = _pure_of_renyi(limit.quantity.order, float(room))
            if epsilon > best:
                best = max(best, self._admitted(Cost.pure, epsilon))
        return best

    def _admitted(self, release: Any, size: float) -> float:
        """`size`, or slightly less where its release is not quite admitted."""
        step = 1e-12
        while size >= _LEAST and step < 1:
            if self.admits(release(size, adjacency=self.budget.adjacency)):
                return size
            size, step = size * (1 - step), 4 * step
        return 0.0


def amounts(cost: object, quantities: tuple[Quantity, ...], adjacency: str) -> tuple[Exact, ...]:
    """What a cost adds to each of these quantities; refuses what is no cost, or one under another adjacency."""
    if not isinstance(cost, Cost):
        raise InvalidArgument("cost", cost, "pass a Cost, such as Cost.laplace(noise_multiplier=2.0)")
    if cost.adjacency != adjacency:
        raise AdjacencyMismatch(adjacency, cost.adjacency)
    return _amounts(cost, quantities)


@lru_cache(maxsize=1024)
def _amounts(cost: Cost, quantities: tuple[Quantity, ...]) -> tuple[Exact, ...]:
    return tuple(quantity.of(cost.parts) for quantity in quantities)


def _share(limit: Limit, total: Exact) -> float:
    if total == 0:
        return 0.0
    if total == INFINITE or limit.most == 0:
        return math.inf
    try:
        return float(total / limit.most)
    except OverflowError:
        return math.inf


def _pure_of_mu(mu: float) -> float:
    """The epsilon of the pure guarantee that is mu-GDP: ln(Phi(mu/2) / Phi(-mu/2))."""
    return log_tail(-mu / 2) - log_tail(mu / 2)


def _pure_of_renyi(order: float, room: float) -> float:
    """The epsilon at which randomized response has this divergence of this order, to about nine digits."""
    low, high = min(room, math.sqrt(2 * room / order)), max(2 * room, 4 * math.sqrt(2 * room / order)) + 1
    for _ in range(80):
        middle = 0.5 * (low + high)
        # ln(e^{a x} + e^{(1-a) x}) - ln(1 + e^x), over a - 1
        spread = math.log1p(math.exp(-(2 * order - 1) * middle)) - math.log1p(math.exp(-middle))
        if middle + spread / (order - 1) <= room:
            low = middle
        else:
            high = middle
        if high - low <= 1e-12 * high:
            break
    return low
