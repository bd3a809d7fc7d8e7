r"""Filters: a budget that holds although every cost is chosen after seeing the answers so far.

`Cost.epsilon` of a sum is a theorem about a list of mechanisms fixed in advance. An analyst who chooses the next
mechanism, its noise, or whether to go on, by looking at the answers, is not covered by it: that every list that *might*
come about is (1, delta)-DP does not make the interaction (1, delta)-DP [Rogers et al. 2016; Regehr et al. 2026]. (A
small example: `docs/explanation/adaptive.md`.) So numerical composition never decides here. A `Filter` adds up
quantities for which the sum of adaptively chosen terms is proved to be enough, and refuses what would exceed the
budget; which they are, and why, is in `discreet.accounting.budget`.

Interactive releases that run at the same time are covered as well, as long as each is charged when it starts
[Haney et al. 2023].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.accounting import storing
from discreet.accounting.budget import Budget, Limit
from discreet.accounting.charges import INFINITE, Exact, decimal, floor_decimal, floor_root, up, up_root
from discreet.accounting.cost import Cost
from discreet.accounting.odometer import Odometer
from discreet.accounting.register import Register
from discreet.errors import BudgetExceeded, InvalidArgument, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Budget", "Filter", "Odometer"]


class Filter:
    """Guards a budget against adaptively chosen costs: admits a cost, or refuses it and changes nothing.

    >>> guard = Filter(Budget(epsilon=1.0))
    >>> for _ in range(10):
    ...     guard.charge(Cost.pure(0.1))
    >>> guard.remaining, guard.admits(Cost.pure(1e-9))
    (0.0, False)

    As long as every release is charged before it is made and none is made after a refusal of its charge, the whole
    interaction costs no more than `budget.cost`, whoever chooses the releases and whatever they have seen. A refused
    charge costs nothing: whether it is refused depends on costs only, never on data. One filter may be shared by
    threads; a budget shared by processes needs a ledger.
    """

    def __init__(self, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise InvalidArgument("budget", budget, "pass a Budget, such as Budget(epsilon=1.0, delta=1e-6)")
        self._budget = budget
        self._required, self._alternatives = budget.required(), budget.alternatives()
        limits = self._required + self._alternatives
        self._register = Register(budget.adjacency, tuple(limit.quantity for limit in limits))

    @property
    def budget(self) -> Budget:
        """The budget that is guarded; it never changes."""
        return self._budget

    @property
    def spent(self) -> Cost:
        """The sum of all costs charged so far."""
        with self._register.lock:
            return self._register.spent()

    def admits(self, cost: Cost) -> bool:
        """Whether `charge(cost)` would succeed now."""
        amounts = self._register.amounts(cost)
        with self._register.lock:
            return self._fits(self._after(amounts))

    def charge(self, cost: Cost) -> None:
        """Spends a cost, or raises `BudgetExceeded` and leaves everything as it was."""
        amounts = self._register.amounts(cost)  # the slow part, outside the lock
        with self._register.lock:
            if not self._fits(self._after(amounts)):
                raise self._refusal(cost, amounts)
            self._register.add(cost, amounts)

    @property
    def remaining(self) -> float:
        """The largest x such that one more release of that size is admitted, in the unit of the budget.

        The release is `Cost.pure(x)` for budgets in epsilon, with or without delta; `Cost.concentrated(x)` for budgets
        in rho and in Rényi divergences; `Cost.gaussian_dp(x)` for budgets in mu. Exact to the last digit for epsilon
        without delta, rho and mu; otherwise to about nine digits, and never too large. Releases of other kinds may fit
        although their numbers are larger, or not although they are smaller: ask `admits`.
        """
        with self._register.lock:
            totals = self._register.totals
            if self._alternatives:
                return self._remaining_epsilon(totals[len(self._required) :])
            rooms = [limit.most - total for limit, total in zip(self._required, totals, strict=True)]
            if self._budget.renyi is not None:
                orders = [decimal(limit.quantity.order) for limit in self._required]
                rate = min(room / order for room, order in zip(rooms, orders, strict=True))
                return self._admitted(Cost.concentrated, floor_decimal(rate))
            return floor_root(rooms[0]) if self._budget.mu is not None else floor_decimal(rooms[0])

    @property
    def remaining_delta(self) -> float:
        """What is left for the delta that releases carry themselves; 0 for budgets without delta."""
        with self._register.lock:
            if not self._alternatives:
                return 0.0
            return floor_decimal(self._required[0].most - self._register.totals[0])

    def limits(self) -> tuple[tuple[Limit, float], ...]:
        """Every limit of the budget with the share of it that is spent; above 1 for an alternative that is closed."""
        with self._register.lock:
            rows = zip(self._required + self._alternatives, self._register.totals, strict=True)
            return tuple((limit, _spent_share(limit, total)) for limit, total in rows)

    def to_dict(self) -> dict[str, Any]:
        """A lossless, versioned description made of JSON values: the budget and the costs spent."""
        return {
            "format": "discreet.filter",
            "version": storing.VERSION,
            "budget": self._budget.to_dict(),
            "spent": self.spent.to_dict(),
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Filter:
        """The filter that `to_dict` described; what was spent is counted again, by today's leaves."""
        fields = storing.checked_fields(description, "filter", ["budget", "spent"])
        return cls._restored(Budget.from_dict(fields["budget"]), Cost.from_dict(fields["spent"]))

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return storing.to_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Filter:
        """The filter that `to_json` wrote."""
        return cls.from_dict(storing.from_json(text, "filter"))

    @classmethod
    def _restored(cls, budget: Budget, spent: Cost) -> Filter:
        guard = cls(budget)
        try:
            guard.charge(spent)
        except BudgetExceeded as error:
            raise StorageError(
                f"the costs that were spent exceed the budget: they need {error.unit} = {error.requested:.6g} and "
                f"{error.unit} = {error.remaining:.6g} is all there is. Either the description was changed by hand, or "
                "this release finds the costs larger than the one that admitted them, and the old budget was not kept. "
                "State a larger budget and charge the costs to it."
            ) from error
        return guard

    def __reduce__(self) -> tuple[object, ...]:
        return Filter._restored, (self._budget, self.spent)

    def __repr__(self) -> str:
        return f"Filter({self._budget!r}, remaining={self.remaining:.6g})"

    def _after(self, amounts: tuple[Exact, ...]) -> tuple[Exact, ...]:
        return tuple(total + amount for total, amount in zip(self._register.totals, amounts, strict=True))

    def _fits(self, totals: tuple[Exact, ...]) -> bool:
        count = len(self._required)
        if not all(limit.holds(total) for limit, total in zip(self._required, totals[:count], strict=True)):
            return False
        rest = zip(self._alternatives, totals[count:], strict=True)
        return not self._alternatives or any(limit.holds(total) for limit, total in rest)

    def _refusal(self, cost: Cost, amounts: tuple[Exact, ...]) -> BudgetExceeded:
        """Names the limit that is in the way; of several alternatives the one that comes closest."""
        rows = list(zip(self._required + self._alternatives, self._register.totals, amounts, strict=True))
        required, alternatives = rows[: len(self._required)], rows[len(self._required) :]
        broken = [row for row in required if not row[0].holds(row[1] + row[2])]
        overshoot = [
            (_spent_share(limit, total + amount), limit, total, amount)
            for limit, total, amount in broken or alternatives
        ]
        pick = max if broken else min
        _, limit, total, amount = pick(overshoot, key=lambda row: row[0])
        left = limit.most - total
        endless = (leaf.describe() for leaf, _ in cost.parts if limit.quantity.of(((leaf, 1),)) == INFINITE)
        culprit = next(endless, "")
        if limit.quantity.kind == "mu2":
            return BudgetExceeded(requested=up_root(amount), remaining=floor_root(left), unit="mu", unbounded=culprit)
        unit = limit.quantity.unit
        return BudgetExceeded(requested=up(amount), remaining=floor_decimal(left), unit=unit, unbounded=culprit)

    def _remaining_epsilon(self, totals: tuple[Exact, ...]) -> float:
        """The largest epsilon of a pure release that some alternative has room for."""
        best = 0.0
        for limit, total in zip(self._alternatives, totals, strict=True):
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
        while size > 0 and step < 1:
            if self._fits(self._after(self._register.amounts(release(size, adjacency=self._budget.adjacency)))):
                return size
            size, step = size * (1 - step), 4 * step
        return 0.0


def _spent_share(limit: Limit, total: Exact) -> float:
    if total == 0:
        return 0.0
    return math.inf if total == INFINITE or limit.most == 0 else float(total / limit.most)


def _pure_of_mu(mu: float) -> float:
    """The epsilon of the pure guarantee that is mu-GDP: ln(Phi(mu/2) / Phi(-mu/2))."""
    from scipy.special import log_ndtr

    return float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


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
