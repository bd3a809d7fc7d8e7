"""The books: the chain's end, the budgets that apply to a charge, and their running totals, inside one transaction."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.accounting import Cost
from discreet.errors import AdjacencyMismatch, InvalidArgument, LedgerCorrupt
from discreet.ledger import protection
from discreet.ledger.chain import FIRST, Chain, Head, canonical, digest
from discreet.ledger.entry import COLUMNS, Entry, moment, written
from discreet.ledger.names import unknown
from discreet.ledger.roll import Roll, Unreadable
from discreet.ledger.statements import first, found, run
from discreet.ledger.terms import Terms, label, totals_from_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sqlalchemy.engine import Connection

    from discreet.accounting.balance import Balance
    from discreet.accounting.charges import Exact
    from discreet.ledger.roll import Holder

__all__ = ["Account", "Books", "Tip", "charges_of", "counted", "put_back"]

# What every charge needs is written as SQL: an expression would be compiled anew in every process, which takes longer
# than all the rest of a charge.
_TIP = """
    SELECT head.count AS length, head.hash AS hash, entries.number AS number, entries.hash AS last, entries.at AS at,
           (SELECT hash FROM entries WHERE number = :known) AS known
    FROM head LEFT JOIN entries ON entries.number = (SELECT MAX(number) FROM entries)
"""
_BUDGET = """
    SELECT budgets.entry AS entry, budgets.holder AS holder, budgets.name AS name,
           entries.details AS details, entries.hash AS hash
    FROM budgets LEFT JOIN entries ON entries.number = budgets.entry
"""
_ONE_BUDGET = f"{_BUDGET} WHERE budgets.dataset = :dataset AND budgets.holder = :holder AND budgets.name = :name"
_BUDGETS = f"""
    {_BUDGET}
    WHERE budgets.dataset = :dataset AND (
        :analyst IS NULL
        OR budgets.holder = 'dataset'
        OR (budgets.holder = 'analyst' AND budgets.name = :analyst)
        OR (budgets.holder = 'group' AND budgets.name IN (SELECT team FROM members WHERE analyst = :analyst))
    )
    ORDER BY budgets.entry
"""
_TOTALS = """
    SELECT totals.totals AS totals, totals.entry AS entry, entries.details AS details
    FROM totals LEFT JOIN entries ON entries.number = totals.entry
    WHERE totals.budget = :budget AND totals.period = :period
"""
_LINK = """
    SELECT *, (SELECT hash FROM entries WHERE number = :number - 1) AS previous FROM entries WHERE number = :number
"""
# The newest entries are looked through from the end, and not found by their kind.
_LATER_CHARGE = """
    SELECT number FROM entries
    WHERE +dataset = :dataset AND +kind = 'reserve' AND (:analyst IS NULL OR analyst = :analyst) AND number > :after
      AND instr(details, :charged)
    ORDER BY number DESC LIMIT 1
"""
_INSERT_ENTRY = f"INSERT INTO entries VALUES ({', '.join(f':{column}' for column in COLUMNS)}, :hash)"
_SET_HEAD = "REPLACE INTO head VALUES (1, :number, :hash)"
_SET_TOTALS = "REPLACE INTO totals VALUES (:budget, :period, :totals, :entry)"
_CHARGES = """
    SELECT number, at, analyst, cost FROM entries
    WHERE kind = 'reserve' AND dataset = :dataset AND (:analyst IS NULL OR analyst = :analyst)
    ORDER BY number
"""
_PROTECTED = """
    SELECT number, details FROM entries WHERE dataset = :dataset AND kind = 'protect' ORDER BY number DESC LIMIT 1
"""
_DATASETS = "SELECT dataset FROM budgets WHERE holder = 'dataset'"
_ESTABLISHED = "SELECT DISTINCT dataset FROM entries WHERE kind = 'establish'"
_MEMBERS = "SELECT analyst, team FROM members"
_MEMBERSHIP = "SELECT number, kind, details FROM entries WHERE kind IN ('enrol', 'dismiss') ORDER BY number"


@dataclass(frozen=True)
class Account:
    """One budget at one moment: its terms, the entry that set it, its period and its balance."""

    entry: int
    terms: Terms
    period: int
    balance: Balance

    def charged(self, cost: Cost, *, at: datetime) -> Balance:
        """The balance once the cost is charged; raises `BudgetExceeded` if it does not fit."""
        added = self.balance.amounts(cost)
        after = self.balance.after(added)
        if not after.holds:
            end = self.terms.end_at(at)
            until = "" if end is None else written(end)
            raise self.balance.refusal(cost, added, of=self.terms.label, until=until)
        return after


@dataclass(frozen=True)
class Tip:
    """The end of the chain, and the time of the next entry."""

    head: Head
    at: datetime

    @property
    def next(self) -> int:
        """The number of the next entry."""
        return self.head.count + 1

    def after(self, entry: Entry) -> Tip:
        """The end of the chain once the entry is added."""
        return Tip(Head(entry.id, entry.hash), self.at)


class Books:
    """Reads and writes the books of a ledger; every method works inside a transaction of the caller."""

    def __init__(self, name: str, chain: Chain) -> None:
        self._name, self._chain = name, chain
        self._terms: dict[str, Terms] = {}  # by the hash of the entry, which covers all there is to know
        self._seen: dict[tuple[str, str | None], tuple[Account, ...]] = {}
        self._latest = Head(0, FIRST)
        self._roll = Roll()
        self.checkable = True
        """Whether hashes can be computed: not of a ledger with a key by somebody who has none and only looks."""

    # ---------------------------------------------------------------- the chain

    def tip(self, connection: Connection, now: datetime) -> Tip:
        """Where the next entry goes. Time never runs backwards in the chain, whatever the clock says.

        Nor does the chain: a file that was put back to an earlier state while it was in use has forgotten charges.
        """
        latest = self._latest
        row = first(connection, _TIP, {"known": latest.count})
        if row is None:
            raise self.corrupt("the record of its last entry is missing")
        if row["number"] != row["length"] or row["last"] != row["hash"]:
            raise self.corrupt(f"entry {row['length']} should be its last one, and the table of entries ends otherwise")
        head = self.end(row["length"], row["hash"])
        if latest.count and row["known"] != latest.hash:
            raise self.corrupt(put_back(latest))
        self._latest = head
        return Tip(head, max(now, moment(row["at"])))

    def append(
        self,
        connection: Connection,
        tip: Tip,
        *,
        kind: str,
        details: Mapping[str, Any] | None = None,
        cost: Cost | None = None,
        reservation: int | None = None,
        **texts: str | None,
    ) -> Entry:
        """Adds an entry at the end of the chain."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row |= {"number": tip.next, "kind": kind, "at": written(tip.at), "reservation": reservation, **texts}
        row["cost"] = None if cost is None else cost.to_json()
        row["details"] = None if details is None else canonical(details)
        row["hash"] = self._chain.link(tip.head.hash, row)
        run(connection, _INSERT_ENTRY, row)
        run(connection, _SET_HEAD, {"number": row["number"], "hash": row["hash"]})
        return Entry.from_row(row, cost=cost)

    @property
    def latest(self) -> Head:
        """The newest entry that this process knows to be in the file."""
        return self._latest

    def end(self, count: int, hash_: str) -> Head:
        """The end of a chain as it was read."""
        try:
            return Head(count, hash_)
        except InvalidArgument as error:
            raise self.corrupt(f"the hash of entry {count} is none") from error

    def committed(self, entry: Entry) -> None:
        """An entry of this process is in the file: from now on a file without it was put back."""
        self.saw(Head(entry.id, entry.hash))

    def saw(self, head: Head) -> None:
        """The chain has reached this end."""
        if head.count > self._latest.count:
            self._latest = head

    def mark_format(self, connection: Connection, version: int) -> None:
        """From now on the file has entries that earlier formats do not know, and should not be spent beside."""
        row = first(connection, "PRAGMA user_version")
        if row is None or row[0] < version:
            connection.exec_driver_sql(f"PRAGMA user_version = {version}")

    # ---------------------------------------------------------------- budgets

    def protected(self, connection: Connection, dataset: str) -> dict[str, str]:
        """Whom a data set protects, as its newest entry about that says: units by table; empty if none says it."""
        row = first(connection, _PROTECTED, {"dataset": dataset})
        if row is None:
            return {}
        try:
            return protection.check(json.loads(row["details"])["protects"])
        except (ValueError, TypeError, KeyError) as error:
            raise self.corrupt(f"entry {row['number']} says of nobody that they are protected") from error

    def accounts(
        self, connection: Connection, dataset: str, analyst: str | None, *, at: datetime
    ) -> tuple[Account, ...]:
        """The budgets that a charge by this analyst has to fit into; all of the data set's without an analyst."""
        rows = found(connection, _BUDGETS, {"dataset": dataset, "analyst": analyst})
        self._check_listed(dataset, {_holder(row): row for row in rows}, self._listed(connection, dataset, analyst))
        return tuple(self._account(connection, dataset, row, at) for row in rows)

    def account(self, connection: Connection, dataset: str, holder: str, name: str, *, at: datetime) -> Account | None:
        """One budget of a data set: its own, an analyst's or a group's; None if there is none."""
        row = first(connection, _ONE_BUDGET, {"dataset": dataset, "holder": holder, "name": name})
        entry = self._listed(connection, dataset, None).get((holder, name))
        wanted = {} if entry is None else {(holder, name): entry}
        self._check_listed(dataset, {} if row is None else {_holder(row): row}, wanted)
        return None if row is None else self._account(connection, dataset, row, at)

    def own_account(self, connection: Connection, dataset: str, *, at: datetime) -> Account:
        """The data set's own budget; refuses a data set that has none."""
        account = self.account(connection, dataset, "dataset", "", at=at)
        if account is None:
            raise unknown(dataset, connection.exec_driver_sql("SELECT DISTINCT dataset FROM budgets").scalars())
        return account

    def known_accounts(
        self, connection: Connection, dataset: str, analyst: str | None, *, at: datetime
    ) -> tuple[Account, ...]:
        """The same, the data set's own budget among them; refuses a data set that has none."""
        accounts = self.accounts(connection, dataset, analyst, at=at)
        if not any(account.terms.holder == "dataset" for account in accounts):
            raise unknown(dataset, connection.exec_driver_sql("SELECT DISTINCT dataset FROM budgets").scalars())
        self._seen[dataset, analyst] = accounts
        return accounts

    def last_seen(self, dataset: str, analyst: str | None) -> tuple[Account, ...]:
        """What `known_accounts` gave the last time, if it was asked before: others may have changed it since."""
        return self._seen.get((dataset, analyst), ())

    def _account(self, connection: Connection, dataset: str, row: sqlite3.Row, at: datetime) -> Account:
        entry = row["entry"]
        known = self._terms.get(row["hash"])
        terms = known
        if terms is None:
            self._check_link(connection, entry)
            terms = self.parsed(entry, dataset, row["details"])
        if (terms.dataset, terms.holder, terms.name) != (dataset, row["holder"], row["name"]):
            raise self.corrupt(f"the budget that entry {entry} set is filed under another name")
        period = terms.number_at(at)
        charged, totals = self._totals(connection, entry, terms, period)
        if known is None:
            self._check_newest(connection, entry, terms, period, charged)
            self._terms[row["hash"]] = terms
        return Account(entry, terms, period, terms.balance(totals))

    def _listed(self, connection: Connection, dataset: str, analyst: str | None) -> dict[Holder, int]:
        try:
            return self._roll.budgets(connection, dataset, analyst)
        except Unreadable as error:
            raise self.corrupt(f"entry {error.entry}, about a budget or a group, cannot be read") from error

    def _check_listed(self, dataset: str, rows: Mapping[Holder, sqlite3.Row], wanted: Mapping[Holder, int]) -> None:
        """The tables of budgets and members know exactly the budgets that the entries say there are."""
        for holder in rows.keys() | wanted.keys():
            row, entry = rows.get(holder), wanted.get(holder)
            whose = label(dataset, *holder)
            if row is None:
                changed = "budgets or of members of groups" if holder[0] == "group" else "budgets"
                raise self.corrupt(f"the list of {changed} leaves out the budget of {whose}, which entry {entry} set")
            if entry is None:
                raise self.corrupt(f"the list of budgets has one of {whose} that applies to nobody by the entries")
            if row["entry"] != entry:
                raise self.corrupt(f"the budget of {whose} is an earlier one: entry {entry} replaced it")

    def datasets(self, connection: Connection) -> set[str]:
        """The data sets that have a budget, by the table and by the entries alike."""
        listed, entered = ({row["dataset"] for row in found(connection, sql, {})} for sql in (_DATASETS, _ESTABLISHED))
        if listed != entered:
            raise self.corrupt("the list of budgets is not what the entries say")
        return listed

    def groups(self, connection: Connection) -> dict[str, set[str]]:
        """Who is in each group that has members, by the table and by the entries alike."""
        listed: dict[str, set[str]] = {}
        for row in found(connection, _MEMBERS, {}):
            listed.setdefault(row["team"], set()).add(row["analyst"])
        try:
            if listed == self._roll.groups(connection):
                return listed
        except Unreadable as error:
            raise self.corrupt(f"entry {error.entry}, about a budget or a group, cannot be read") from error
        raise self.corrupt("the list of members of groups is not what the entries say")

    def _check_newest(self, connection: Connection, entry: int, terms: Terms, period: int, charged: int | None) -> None:
        """The totals of a budget are those that the chain ends with, not earlier ones; looked at once by each process.

        `charged` is the entry that the totals are of: none after it may have charged to the same budget and period.
        """
        wanted = {
            "dataset": terms.dataset,
            "analyst": terms.name if terms.holder == "analyst" else None,
            "charged": f"[{entry},{period},",
            "after": entry if charged is None else charged,
        }
        later = first(connection, _LATER_CHARGE, wanted)
        if later is not None:
            raise self.corrupt(f"the running totals of {terms.label} leave out what entry {later['number']} charged")

    def _check_link(self, connection: Connection, entry: int) -> None:
        """An entry that sets a budget is believed if its hash follows; looked at once by each process."""
        row = first(connection, _LINK, {"number": entry}) if self.checkable else None
        if row is None:
            return
        try:
            expected = self._chain.link(row["previous"] or FIRST, {column: row[column] for column in COLUMNS})
        except TypeError:  # not even text
            expected = None
        if expected != row["hash"]:
            raise self.corrupt(f"entry {entry}, which sets a budget, was edited: its hash does not follow")

    def parsed(self, entry: int, dataset: str, details: str | None) -> Terms:
        """The terms in the details of an entry."""
        try:
            return Terms.from_details(dataset, json.loads(details or ""))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise self.corrupt(f"entry {entry} holds no budget that can be read") from error

    def _totals(
        self, connection: Connection, budget: int, terms: Terms, period: int
    ) -> tuple[int | None, tuple[Exact, ...]]:
        """The entry that charged last, if any has in this period, and the totals after it."""
        row = first(connection, _TOTALS, {"budget": budget, "period": period})
        if row is None:
            if terms.period is None:
                raise self.corrupt(f"the running totals of {terms.label} are missing")
            return None, terms.opening.totals  # a new period
        try:
            charged = json.loads(row["details"] or "null")["charged"]
            if [budget, period, digest(row["totals"])] not in charged:
                raise self.corrupt(f"the running totals of {terms.label} are not those of entry {row['entry']}")
            totals = totals_from_text(row["totals"])
        except (ValueError, TypeError, KeyError, ZeroDivisionError) as error:
            raise self.corrupt(f"the running totals of {terms.label} cannot be read") from error
        if len(totals) != len(terms.opening.totals):
            raise self.corrupt(f"the running totals of {terms.label} do not fit its limits")
        return int(row["entry"]), totals

    def set_totals(self, connection: Connection, rows: Iterable[tuple[int, int, str]], entry: int) -> None:
        """Stores totals as an entry has charged them: rows of budget, period and text."""
        for budget, period, text in rows:
            run(connection, _SET_TOTALS, {"budget": budget, "period": period, "totals": text, "entry": entry})

    def recounted(self, connection: Connection, terms: Terms, period: int) -> tuple[Exact, ...]:
        """What all charges of the chain that fall under these terms add up to, by today's accountant."""
        start = terms.start_of(period)
        costs: Counter[str] = Counter()
        for row in charges_of(connection, terms):
            if terms.period is None or moment(row.at) >= start:
                costs[row.cost] += 1
        return counted(terms, costs)

    def corrupt(self, finding: str) -> LedgerCorrupt:
        """The error that says so."""
        return LedgerCorrupt(self._name, (finding,))


def put_back(latest: Head) -> str:
    """The finding that a file lacks what this process has seen in it."""
    return f"it had {latest.count} entries before, and entry {latest.count} is missing or another one now"


def _holder(row: sqlite3.Row) -> Holder:
    return row["holder"], row["name"]


def charges_of(connection: Connection, terms: Terms) -> Iterable[Any]:
    """The charges of the chain that fall under these terms, oldest first.

    A charge counts for a group if the analyst was a member when it was made.
    """
    analyst = terms.name if terms.holder == "analyst" else None
    rows = connection.exec_driver_sql(_CHARGES, {"dataset": terms.dataset, "analyst": analyst})
    if terms.holder != "group":
        yield from rows
        return
    changes = [(row.number, row.kind, json.loads(row.details)) for row in connection.exec_driver_sql(_MEMBERSHIP)]
    changes = [change for change in changes if change[2]["group"] == terms.name]
    inside: set[str] = set()
    position = 0
    for row in rows:
        while position < len(changes) and changes[position][0] < row.number:
            _, kind, details = changes[position]
            inside = inside | set(details["analysts"]) if kind == "enrol" else inside - set(details["analysts"])
            position += 1
        if row.analyst in inside:
            yield row


def counted(terms: Terms, costs: Mapping[str, int]) -> tuple[Exact, ...]:
    """The totals of costs, given as their JSON text and how often each was charged."""
    parts: list[tuple[Any, int]] = []
    for text, often in costs.items():
        cost = Cost.from_json(text)
        if cost.adjacency != terms.budget.adjacency:
            raise AdjacencyMismatch(terms.budget.adjacency, cost.adjacency)
        parts += ((leaf, times * often) for leaf, times in cost.parts)
    return terms.opening.amounts(Cost(tuple(parts), terms.budget.adjacency))
