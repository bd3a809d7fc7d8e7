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

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.accounting import storing
from discreet.accounting.balance import Balance
from discreet.accounting.budget import Budget, Limit
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
        self._opening = Balance.opening(budget)
        self._register = Register(budget.adjacency, tuple(limit.quantity for limit in self._opening.limits))

    @property
    def budget(self) -> Budget:
        """The budget that is guarded; it never changes."""
        return self._opening.budget

    @property
    def spent(self) -> Cost:
        """The sum of all costs charged so far."""
        with self._register.lock:
            return self._register.spent()

    def admits(self, cost: Cost) -> bool:
        """Whether `charge(cost)` would succeed now."""
        amounts = self._register.amounts(cost)
        with self._register.lock:
            return self._balance().after(amounts).holds

    def charge(self, cost: Cost, *, reason: str = "") -> None:
        """Spends a cost, or raises `BudgetExceeded` and leaves everything as it was.

        A `reason` is not kept: with it, a filter can pay wherever a curator can, as in `fit(X, y, charge=...)`.
        """
        del reason
        amounts = self._register.amounts(cost)  # the slow part, outside the lock
        with self._register.lock:
            balance = self._balance()
            if not balance.after(amounts).holds:
                raise balance.refusal(cost, amounts)
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
            return self._balance().remaining

    @property
    def remaining_delta(self) -> float:
        """What is left for the delta that releases carry themselves; 0 for budgets without delta."""
        with self._register.lock:
            return self._balance().remaining_delta

    def limits(self) -> tuple[tuple[Limit, float], ...]:
        """Every limit of the budget with the share of it that is spent; above 1 for an alternative that is closed."""
        with self._register.lock:
            return self._balance().shares()

    def to_dict(self) -> dict[str, Any]:
        """A lossless, versioned description made of JSON values: the budget and the costs spent."""
        return {
            "format": "discreet.filter",
            "version": storing.VERSION,
            "budget": self.budget.to_dict(),
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
        return Filter._restored, (self.budget, self.spent)

    def __repr__(self) -> str:
        return f"Filter({self.budget!r}, remaining={self.budget.left(self.remaining)})"

    def _balance(self) -> Balance:
        return replace(self._opening, totals=self._register.totals)
