"""Setting and changing budgets and groups: the acts of the owner, each an entry of the chain."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from discreet.accounting import Budget
from discreet.arguments import truth
from discreet.errors import AdjacencyMismatch, InvalidArgument
from discreet.ledger import schema
from discreet.ledger.chain import digest
from discreet.ledger.names import name as checked_name
from discreet.ledger.names import unknown_holder
from discreet.ledger.terms import Terms, described, totals_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy.engine import Connection

    from discreet.accounting.balance import Balance
    from discreet.ledger.books import Account, Books, Tip
    from discreet.ledger.entry import Entry

__all__ = ["Wish", "change_membership", "is_granted", "set_budget"]

_budgets, _members, _totals = schema.budgets, schema.members, schema.totals


class Wish:
    """A budget that somebody asks to set: checked, not yet written.

    Periods of one that is `aligned` began with those of the data set's own budget.
    """

    def __init__(
        self,
        dataset: str,
        budget: Budget,
        *,
        analyst: str | None = None,
        group: str | None = None,
        period: timedelta | None = None,
        aligned: bool = False,
    ) -> None:
        self.dataset = checked_name("dataset", dataset)
        if not isinstance(budget, Budget):
            raise InvalidArgument("budget", budget, "pass a Budget, such as Budget(epsilon=1.0, delta=1e-6)")
        if analyst is not None and group is not None:
            raise InvalidArgument("analyst, group", (analyst, group), "a budget belongs to one of them: pass one")
        self.holder, self.name = "dataset", ""
        if analyst is not None:
            self.holder, self.name = "analyst", checked_name("analyst", analyst)
        if group is not None:
            self.holder, self.name = "group", checked_name("group", group)
        self.budget, self.period, self.aligned = budget, _checked_period(period), truth("aligned", aligned)


def is_granted(books: Books, connection: Connection, wish: Wish, *, at: datetime) -> bool:
    """Whether exactly this budget is set already; refuses another one in its place."""
    found = _current(books, connection, wish, at)
    if found is None:
        return False
    if described(found.terms.budget) == described(wish.budget) and found.terms.period == wish.period:
        return True
    raise InvalidArgument(
        "budget",
        wish.budget,
        f"{found.terms.label} has {found.terms.budget!r}{found.terms.each} already, and this is another budget or "
        "period; state that one, also in a policy, or none. To change it, and have that written down, call "
        "ledger.amend(..., reason=...) or `discreet ledger amend`",
    )


def set_budget(
    books: Books, connection: Connection, tip: Tip, wish: Wish, *, kind: str, opening: Balance, reason: str | None
) -> Entry:
    """Writes a budget in place of the one there was, with everything counted that was spent under it."""
    old = _current(books, connection, wish, tip.at)
    missing = kind == "amend" and old is None
    others = [books.own_account(connection, wish.dataset, at=tip.at)] if missing or wish.holder != "dataset" else []
    if missing:
        accounts = books.accounts(connection, wish.dataset, None, at=tip.at)
        known = [account.terms.name for account in accounts if account.terms.holder == wish.holder]
        raise unknown_holder(wish.dataset, wish.holder, wish.name, known)
    if old is not None and wish.budget.adjacency != old.terms.budget.adjacency:  # all budgets have the same
        others = [one for one in books.accounts(connection, wish.dataset, None, at=tip.at) if one.entry != old.entry]
    for other in others:
        if other.terms.budget.adjacency != wish.budget.adjacency:
            raise AdjacencyMismatch(other.terms.budget.adjacency, wish.budget.adjacency)
    since = others[0].terms.since if wish.aligned and wish.holder != "dataset" else tip.at
    since = since if old is None else old.terms.since
    terms = Terms(wish.dataset, wish.holder, wish.name, opening, wish.period, since)
    period = terms.number_at(tip.at)
    text = totals_text(books.recounted(connection, terms, period))
    details = terms.to_details() | {"reason": reason, "charged": [[tip.next, period, digest(text)]]}
    entry = books.append(connection, tip, kind=kind, dataset=wish.dataset, details=details)
    if old is not None:
        connection.execute(_budgets.delete().where(_budgets.c.entry == old.entry))
        connection.execute(_totals.delete().where(_totals.c.budget == old.entry))
    row = {"entry": entry.id, "dataset": wish.dataset, "holder": wish.holder, "name": wish.name}
    connection.execute(_budgets.insert(), row)
    books.set_totals(connection, [(entry.id, period, text)], entry.id)
    return entry


def change_membership(
    books: Books, connection: Connection, tip: Tip, *, kind: str, group: str, analysts: Iterable[str]
) -> None:
    """Writes down who joins or leaves a group; nothing if nobody does."""
    inside = books.groups(connection).get(group, set())
    changed = [name for name in analysts if (name in inside) == (kind == "dismiss")]
    if not changed:
        return
    books.append(connection, tip, kind=kind, details={"group": group, "analysts": changed})
    for name in changed:
        if kind == "enrol":
            connection.execute(_members.insert(), {"analyst": name, "team": group})
        else:
            connection.execute(_members.delete().where(_members.c.analyst == name, _members.c.team == group))


def _current(books: Books, connection: Connection, wish: Wish, at: datetime) -> Account | None:
    return books.account(connection, wish.dataset, wish.holder, wish.name, at=at)


def _checked_period(period: object) -> timedelta | None:
    if period is None:
        return None
    if not isinstance(period, timedelta) or period <= timedelta(0):
        raise InvalidArgument("period", period, "pass a timedelta > 0, such as timedelta(days=30), or None for ever")
    return period
