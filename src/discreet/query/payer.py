"""`Payer`: one analyst's side of the ledger of a data set."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.errors import BudgetExceeded, LedgerCorrupt, LedgerError
from discreet.ledger.names import BOUNDS
from discreet.query.limits import has_own, refusal_of, refuse_delta, remaining

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from discreet.accounting import Cost
    from discreet.ledger import Entry, Ledger
    from discreet.query.policy import Policy

__all__ = ["Payer"]


@dataclass(frozen=True)
class Payer:
    """Pays for the releases of one analyst, and finds again what was paid for."""

    ledger: Ledger
    policy: Policy
    analyst: str

    def reserve(
        self,
        cost: Cost,
        what: str,
        fingerprint: str | None = None,
        *,
        price: Mapping[str, float] | None = None,
        delta: float = 0.0,
    ) -> Entry:
        """The charge, on the disk; refused if the data is about other units than these by now.

        So it is if a budget has a smaller delta than the one that was asked for.
        """
        return self.ledger.reserve(
            self.policy.name,
            cost,
            analyst=self.analyst,
            what=what,
            fingerprint=fingerprint,
            protects=self.policy.protects,
            price=price,
            agree=partial(refuse_delta, self.policy, self.analyst, delta) if delta > 0 else None,
        )

    def complete(self, entry: Entry, answer: bytes | None = None, *, told: dict[str, list[Any]] | None = None) -> None:
        """States that the release was made; it may be shown once this returns."""
        with _staying_paid(entry):
            self.ledger.complete(entry, answer, told=told)

    def fail(self, entry: Entry, note: str) -> None:
        """States that the release failed; it stays paid."""
        with _staying_paid(entry):
            self.ledger.fail(entry, note)

    @property
    def shared(self) -> bool:
        """Whether what others have paid for may be used: never by somebody who has a budget of their own."""
        return self.policy.shared and self.policy.limit(self.analyst) is None

    @property
    def surveys(self) -> bool:
        """Whether bounds that are found for everybody are used, those that were found before a share of 0 as well.

        Without a share that somebody has stated, never by who has a budget of their own: that is what they learn.
        """
        return bool(self.policy.bounds_share) or not has_own(self.ledger, self.policy, self.analyst)

    @property
    def makes_surveys(self) -> bool:
        """Whether they are found, as well."""
        return self.policy.bounds_share != 0 and self.surveys

    @property
    def of_bounds(self) -> Payer:
        """Who pays for bounds that everybody uses."""
        return replace(self, analyst=BOUNDS)

    def admits(self, surveys: Cost, question: Cost) -> bool:
        """Whether the share for bounds has room for surveys, and the budgets for the question after them."""
        if self.of_bounds.denied(surveys) is not None or self.denied(question) is not None:
            return False
        try:
            self.ledger.remaining_in_all(self.policy.name, after=surveys + question)
        except BudgetExceeded:
            return False
        return True

    def denied(self, cost: Cost) -> BudgetExceeded | None:
        """The error that this cost would meet now, or None."""
        return refusal_of(self.ledger, self.policy, cost, analyst=self.analyst)

    def left(self, *, after: Cost | None = None, surveys: Cost | None = None) -> float:
        """What is left, or would be once this cost is paid, and that of surveys before it; both have to fit."""
        left = remaining(self.ledger, self.policy, self.analyst, after=after)
        if after is None or surveys is None:
            return left
        return min(left, self.ledger.remaining_in_all(self.policy.name, after=surveys + after))

    @property
    def delta_left(self) -> float | None:
        """What is left of the deltas that budgets set aside for releases which have one; None if none does."""
        standings = self.ledger.standings(self.policy.name, analyst=self.analyst)
        return min((one.remaining_delta for one in standings if one.unit == "epsilon"), default=None)

    def answer(self, fingerprint: str) -> bytes | None:
        """The stored answer to an identical question."""
        return self.ledger.answer(self.policy.name, fingerprint, analyst=self.analyst, shared=self.shared)

    def told(self, names: list[str]) -> dict[str, list[Any]]:
        """What earlier answers have told under these names."""
        return self.ledger.told(self.policy.name, names, analyst=self.analyst, shared=self.shared)

    def surveyed(self, names: list[str]) -> dict[str, list[Any]]:
        """What surveys have told under these names, if they are used."""
        return self.ledger.told(self.policy.name, names, analyst=BOUNDS) if names and self.surveys else {}


@contextmanager
def _staying_paid(entry: Entry) -> Iterator[None]:
    """Says of a ledger that fails after the charge that the charge stays, and that nothing is shown."""
    try:
        yield
    except LedgerCorrupt:
        raise
    except LedgerError as error:
        advice = f"Entry {entry.id} was charged before that and stays charged; nothing is released. {error.advice}"
        raise LedgerError(error.path, error.problem, advice) from error
