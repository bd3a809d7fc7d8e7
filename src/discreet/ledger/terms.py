"""`Terms`: a budget as the ledger keeps it. Whose it is, its limits as exact numbers, and when it begins again."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.accounting import Budget
from discreet.accounting.balance import Balance
from discreet.accounting.budget import Limit
from discreet.accounting.charges import INFINITE, Exact, Quantity
from discreet.ledger.chain import canonical
from discreet.ledger.entry import moment, written

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Terms", "described", "exact_text", "label", "totals_from_text", "totals_text"]

_MICROSECOND = timedelta(microseconds=1)
_KEPT = 256
_READ: dict[str, tuple[Exact, ...]] = {}  # totals by their text


@dataclass(frozen=True)
class Terms:
    """Whose budget, its opening balance, the length of a period and when the first one began.

    The limits are computed once, when the budget is set, and stored with it: they cannot drift while it is spent.
    """

    dataset: str
    holder: str
    """`dataset`, `analyst` or `group`."""

    name: str
    """Of the analyst or the group; empty for the data set itself."""

    opening: Balance
    period: timedelta | None
    since: datetime

    @property
    def budget(self) -> Budget:
        """What may be spent, in each period if there are periods."""
        return self.opening.budget

    @property
    def label(self) -> str:
        """What messages call it."""
        return label(self.dataset, self.holder, self.name)

    @property
    def each(self) -> str:
        """How often it begins again, for messages; nothing if it never does."""
        return "" if self.period is None else f" each {str(self.period).removesuffix(', 0:00:00')}"

    def number_at(self, at: datetime) -> int:
        """Which period a moment is in: 0, 1, …; always 0 without periods."""
        return 0 if self.period is None else max(0, (at - self.since) // self.period)

    def start_of(self, number: int) -> datetime:
        """When a period begins."""
        return self.since if self.period is None else self.since + number * self.period

    def end_at(self, at: datetime) -> datetime | None:
        """When the period of a moment ends; None without periods, or if that is after the year 9999."""
        try:
            return None if self.period is None else self.since + (self.number_at(at) + 1) * self.period
        except OverflowError:
            return None

    def balance(self, totals: tuple[Exact, ...]) -> Balance:
        """The balance with these totals."""
        return replace(self.opening, totals=totals)

    def to_details(self) -> dict[str, Any]:
        """What an entry stores of it."""
        return {
            "holder": self.holder,
            "name": self.name,
            "budget": described(self.budget),
            "required": [_limit_row(limit) for limit in self.opening.required],
            "alternatives": [_limit_row(limit) for limit in self.opening.alternatives],
            "period_us": None if self.period is None else self.period // _MICROSECOND,
            "since": written(self.since),
        }

    @classmethod
    def from_details(cls, dataset: str, details: Mapping[str, Any]) -> Terms:
        """The terms that `to_details` wrote."""
        required = tuple(_limit(row) for row in details["required"])
        alternatives = tuple(_limit(row) for row in details["alternatives"])
        nothing = tuple(limit.quantity.of(()) for limit in required + alternatives)
        period = details["period_us"]
        return cls(
            dataset=dataset,
            holder=details["holder"],
            name=details["name"],
            opening=Balance(Budget.from_dict(details["budget"]), required, alternatives, nothing),
            period=None if period is None else timedelta(microseconds=period),
            since=moment(details["since"]),
        )


def label(dataset: str, holder: str, name: str) -> str:
    """What messages call the budget of a data set, or of an analyst or a group on it."""
    return f"data set '{dataset}'" if holder == "dataset" else f"{holder} '{name}' on '{dataset}'"


def described(budget: Budget) -> dict[str, Any]:
    """The budget as its owner wrote it: how delta is divided by default is told by the limits, not by the budget."""
    description = budget.to_dict()
    if budget.shares is None:
        description.pop("shares", None)
    return description


def exact_text(value: Exact) -> str:
    """An exact number as text: 3/10, or inf."""
    return "inf" if value == INFINITE else str(value)


def totals_text(totals: tuple[Exact, ...]) -> str:
    """Totals as JSON text."""
    text = canonical([exact_text(total) for total in totals])
    _keep(text, totals)
    return text


def totals_from_text(text: str) -> tuple[Exact, ...]:
    """The totals that `totals_text` wrote."""
    totals = _READ.get(text)
    if totals is None:
        totals = tuple(INFINITE if item == "inf" else Fraction(item) for item in json.loads(text))
        _keep(text, totals)
    return totals


def _keep(text: str, totals: tuple[Exact, ...]) -> None:
    """What was written is what the next charge reads: it need not be taken apart again."""
    if len(_READ) >= _KEPT:
        _READ.clear()
    _READ[text] = totals


def _limit_row(limit: Limit) -> list[Any]:
    quantity = limit.quantity
    order = None if quantity.order == INFINITE else quantity.order
    return [quantity.kind, order, quantity.without_leak, exact_text(limit.most), limit.delta]


def _limit(row: list[Any]) -> Limit:
    kind, order, without_leak, most, delta = row
    return Limit(Quantity(kind, INFINITE if order is None else order, without_leak), Fraction(most), delta)
