"""`Charge`: one charge to every budget that applies, stored before it is granted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import BudgetExceeded, InvalidArgument
from discreet.ledger import protection
from discreet.ledger.chain import digest
from discreet.ledger.terms import totals_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from discreet.accounting import Cost
    from discreet.ledger.books import Account, Books
    from discreet.ledger.entry import Entry
    from discreet.ledger.store import Store
    from discreet.ledger.terms import Terms

__all__ = ["Charge"]


@dataclass(frozen=True)
class Charge:
    """What is charged to whom, for what, and about whose privacy: checked, not yet written.

    `agree` raises `InvalidArgument` if these budgets are not to be charged so, whether it fits into them or not.
    """

    dataset: str
    cost: Cost
    analyst: str
    what: str
    fingerprint: str | None
    protects: Mapping[str, str]
    price: Mapping[str, float] | None
    agree: Callable[[Sequence[Terms]], None] | None = None

    def made(self, store: Store, books: Books, now: Callable[[], datetime]) -> Entry:
        """The entry of the charge, on the disk; raises and writes nothing if it does not fit into every budget."""
        accounts = books.last_seen(self.dataset, self.analyst)
        if not accounts or not self._agreed(accounts):  # others may have changed them since
            with store.reading() as connection:
                accounts = books.known_accounts(connection, self.dataset, self.analyst, at=now())
            self._check(accounts)
        for account in accounts:  # the slow part, remembered and before anybody has to wait
            account.balance.amounts(self.cost)
        with store.writing() as connection:
            tip = books.tip(connection, now())
            if self.protects:
                protection.agree(self.dataset, books.protected(connection, self.dataset), self.protects)
            after, refused = [], []
            accounts = books.known_accounts(connection, self.dataset, self.analyst, at=tip.at)
            self._check(accounts)
            for account in accounts:
                try:
                    balance = account.charged(self.cost, at=tip.at)
                except BudgetExceeded as error:
                    refused.append(error)
                    continue
                after.append((account.entry, account.period, totals_text(balance.totals)))
            if refused:  # what is told to fit has to fit into all
                raise min(refused, key=lambda error: (error.unit != refused[0].unit, error.remaining))
            details: dict[str, Any] = {"charged": [[budget, period, digest(text)] for budget, period, text in after]}
            if self.price is not None:
                details["price"] = self.price
            entry = books.append(
                connection,
                tip,
                kind="reserve",
                dataset=self.dataset,
                analyst=self.analyst,
                what=self.what,
                fingerprint=self.fingerprint,
                cost=self.cost,
                details=details,
            )
            books.set_totals(connection, after, entry.id)
        books.committed(entry)
        return entry

    def _check(self, accounts: Sequence[Account]) -> None:
        if self.agree is not None:
            self.agree(tuple(account.terms for account in accounts))

    def _agreed(self, accounts: Sequence[Account]) -> bool:
        try:
            self._check(accounts)
        except InvalidArgument:
            return False
        return True
