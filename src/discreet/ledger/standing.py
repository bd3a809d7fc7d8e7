"""What is left: of one budget (`Standing`), and of all that apply to an analyst."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.accounting import Cost
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from discreet.accounting import Budget
    from discreet.accounting.balance import Balance
    from discreet.ledger.books import Account

__all__ = ["Standing", "least_remaining", "standing", "within"]


@dataclass(frozen=True)
class Standing:
    """What is left of one budget of a data set: its own, an analyst's or a group's.

    `remaining` and `remaining_delta` are what `Filter.remaining` and `Filter.remaining_delta` say, in `unit`.
    """

    dataset: str
    holder: str
    """`"dataset"`, `"analyst"` or `"group"`."""

    name: str
    """Of the analyst or the group; empty for the data set itself."""

    budget: Budget
    remaining: float
    remaining_delta: float
    period: timedelta | None
    renewed: datetime | None
    """When the current period ends and the budget begins again; None if it never does."""

    protects: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Whom the budget is about: the unit of each table, as `Ledger.protected` gives it."""

    @property
    def unit(self) -> str:
        """The unit of `remaining`."""
        return self.budget.unit


def standing(account: Account, at: datetime, protects: Mapping[str, str]) -> Standing:
    """What is left of a budget at a moment."""
    return Standing(
        dataset=account.terms.dataset,
        holder=account.terms.holder,
        name=account.terms.name,
        budget=account.terms.budget,
        remaining=account.balance.remaining,
        remaining_delta=account.balance.remaining_delta,
        period=account.terms.period,
        renewed=account.terms.end_at(at),
        protects=protects,
    )


def least_remaining(accounts: Sequence[Account]) -> float:
    """What is left for whoever these budgets apply to, in the notion of the data set's own among them."""
    own = next(account.balance for account in accounts if account.terms.holder == "dataset")
    unit, least = own.budget.unit, own.remaining
    for account in accounts:
        if account.balance is not own:
            least = within(account.balance, unit, least)
    return least


def within(balance: Balance, unit: str, most: float) -> float:
    """How much of `most`, the size of a release in this notion, a balance leaves room for."""
    return min(most, balance.remaining) if balance.budget.unit == unit else _room(balance, unit, most)


def _room(balance: Balance, unit: str, most: float) -> float:
    """The largest size up to `most` of a release in another notion that a balance admits, to about nine digits."""
    release = {"epsilon": Cost.pure, "rho": Cost.concentrated, "mu": Cost.gaussian_dp}[unit]

    def fits(size: float) -> bool:
        try:
            return balance.admits(release(size, adjacency=balance.budget.adjacency))
        except InvalidArgument:  # no release is so large, or so small
            return False

    if most <= 0 or fits(most):
        return most
    low, high = 0.0, most
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
        if high - low <= 1e-9 * high:
            break
    return low
