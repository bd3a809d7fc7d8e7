r"""What `verify` checks, what that proves, and what it cannot prove.

The entries are replayed from the first to the last. Checked are: SQLite's own integrity; the tables, indexes and
triggers; the numbers 1, 2, 3, … without gap; every hash; times that never run backwards; that each reservation was
charged to exactly the budgets that applied to it, and closed at most once, in the name of whoever paid for it; that
nobody changed whom a data set protects after it was charged; that budgets, members, running totals, the record of the
last entry and the stored answers are what the entries say; that no total is below what today's accountant finds for its
costs; and that no charge was admitted beyond its budget.

| somebody | without key, without anchor | with an anchor | with a key they lack |
|---|---|---|---|
| edits, inserts, deletes, reorders entries, answers, totals | found | found | found |
| does so and recomputes all hashes and totals | not found | found up to the anchor | found |
| cuts entries off at the end, mends the totals and the last hash | not found | found up to the anchor | not found |
| puts back an older copy of the whole file | not found | found if the anchor is newer | not found |
| changes the clock of the machine | not found | not found | not found |

A program that has the ledger open is an anchor by itself: it knows the newest entry that it has written or seen.

A charge looks at less: the end of the chain, the budgets that apply by the entries, the hashes of the entries that set
them, and their running totals. It grants nothing where these do not fit, and the rest of a damaged ledger does not stop
it. So nobody should spend from one that does not pass.

An anchor is `str(ledger.head)`, kept where whoever can write to the file cannot: a mail, another machine, a printout.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from discreet.accounting.charges import INFINITE
from discreet.errors import DiscreetError, LedgerCorrupt
from discreet.ledger import price, protection, schema
from discreet.ledger.books import counted, put_back
from discreet.ledger.chain import FIRST, Chain, Head, digest
from discreet.ledger.entry import COLUMNS, moment, written
from discreet.ledger.terms import Terms, totals_from_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.engine import Connection

    from discreet.accounting.charges import Exact

__all__ = ["Report", "verify"]

_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_MOST_FINDINGS = 20
_SLACK = 1 - 1e-9  # accountants of different releases and processors may differ in the last digits
_MALFORMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, DiscreetError)


@dataclass(frozen=True)
class Report:
    """What a ledger that passed `verify` holds."""

    path: str
    head: Head
    reservations: int
    released: int
    failed: int
    answers: int
    budgets: int
    anchored: bool
    keyed: bool

    @property
    def unfinished(self) -> int:
        """Reservations neither completed nor declared failed: running now, or crashed. They count as spent."""
        return self.reservations - self.released - self.failed

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {**asdict(self), "head": str(self.head), "unfinished": self.unfinished}

    def __str__(self) -> str:
        proof = " and ".join(["hash chain", *(["key"] if self.keyed else []), *(["anchor"] if self.anchored else [])])
        return (
            f"{self.path}: {self.head.count} entries, {self.reservations} reservations ({self.released} released, "
            f"{self.failed} failed, {self.unfinished} unfinished), {self.answers} answers, {self.budgets} budgets; "
            f"intact by {proof}. Head {self.head}"
        )


def verify(connection: Connection, *, name: str, chain: Chain, anchor: Head | None, latest: Head) -> Report:
    """The report of a ledger that is what was written to it; raises `LedgerCorrupt` with all findings otherwise.

    `latest` is the newest entry that this process has seen in it.
    """
    check = _Check(connection, name, chain)
    if check.database():  # a broken one is not worth reading further
        check.objects()
        check.entries(anchor, latest)
        check.tables()
    if check.findings:
        more = len(check.findings) - _MOST_FINDINGS
        shown = check.findings[:_MOST_FINDINGS] + ([f"and {more} more"] if more > 0 else [])
        raise LedgerCorrupt(name, tuple(shown))
    return check.report(anchor)


class _Check:
    """The replay of a chain, and the comparison of what is stored beside it."""

    def __init__(self, connection: Connection, name: str, chain: Chain) -> None:
        self._connection, self._name, self._chain = connection, name, chain
        self.findings: list[str] = []
        self._previous, self._count, self._at = FIRST, 0, ""
        self._terms: dict[int, Terms] = {}  # by the entry that set them; replaced ones are removed
        self._protects: dict[str, dict[str, str]] = {}  # by data set
        self._current: dict[tuple[str, str, str], int] = {}  # those entries by data set, holder and name
        self._groups: dict[str, set[str]] = {}  # by analyst
        self._format = 1  # the earliest that knows all entries
        self._totals: dict[tuple[int, int], tuple[str, int]] = {}  # digest, and the entry that charged
        self._costs: dict[tuple[int, int], Counter[str]] = {}
        self._charges: dict[tuple[str, str, str], list[tuple[str, str]]] = {}  # times and costs, by whose they are
        self._reservations = 0
        self._open: dict[int, tuple[str, str]] = {}  # data set and analyst of reservations
        self._closed: Counter[str] = Counter()
        self._completed: tuple[Any, ...] | None = None  # the reservation that the entry before is about, if it told
        self._answers: dict[int, str] = {}

    def database(self) -> bool:
        """Is it a sound database?"""
        for row in self._connection.exec_driver_sql("PRAGMA integrity_check").all():
            if row[0] != "ok":
                self.findings.append(f"SQLite finds: {row[0]}")
        return not self.findings

    def objects(self) -> None:
        """Has it the tables, indexes and triggers of a ledger, and no others?"""
        stored = {tuple(row) for row in self._connection.exec_driver_sql(_OBJECTS)}
        wanted = _objects_of_a_ledger()
        self.findings += [f"the {row[0]} {row[1]} was removed or changed" for row in sorted(wanted - stored, key=str)]
        self.findings += [f"the {row[0]} {row[1]} was added or changed" for row in sorted(stored - wanted, key=str)]

    def entries(self, anchor: Head | None, latest: Head) -> None:
        """Walks the chain and replays it."""
        seen = FIRST
        reached = anchor is None or (anchor.count == 0 and anchor.hash == FIRST)
        query = select(schema.entries).order_by(schema.entries.c.number)
        for row in self._connection.execute(query).mappings():
            self._entry(dict(row))
            if self._count == latest.count:
                seen = self._previous
            if anchor is not None and self._count == anchor.count:
                reached = True
                if self._previous != anchor.hash:
                    self.findings.append(f"entry {self._count} is not the one that the anchor was taken from")
        if seen != latest.hash:
            self.findings.append(put_back(latest))
        if not reached and anchor is not None:
            self.findings.append(f"it ends at entry {self._count}, and the anchor was taken at entry {anchor.count}")

    def _entry(self, row: dict[str, Any]) -> None:
        number = row["number"]
        if number != self._count + 1:
            missing = range(self._count + 1, number)
            gap = f"entries {missing[0]} to {missing[-1]} are" if len(missing) > 1 else f"entry {self._count + 1} is"
            self.findings.append(f"{gap} missing")
        self._count = number
        try:
            hash_, fields = row.pop("hash"), {column: row[column] for column in COLUMNS}
            if self._chain.link(self._previous, fields) != hash_:
                self.findings.append(f"entry {number} was edited, moved or put in: its hash does not follow")
            self._previous = str(hash_)
            if not isinstance(row["at"], str) or written(moment(row["at"])) != row["at"] or row["at"] < self._at:
                self.findings.append(f"entry {number} has a time that is malformed or before the entry before it")
            self._at = row["at"]
            details = {} if row["details"] is None else json.loads(row["details"])
            if row["kind"] != "told":
                self._completed = None
            {
                "ledger": self._made,
                "establish": self._budget,
                "limit": self._budget,
                "amend": self._budget,
                "protect": self._protect,
                "enrol": self._membership,
                "dismiss": self._membership,
                "reserve": self._reserve,
                "complete": self._close,
                "fail": self._close,
                "told": self._told,
            }[row["kind"]](row, details)
        except _MALFORMED as error:
            self.findings.append(f"entry {number} cannot be replayed ({type(error).__name__})")

    def _made(self, row: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        if row["number"] != 1:
            self.findings.append(f"entry {row['number']} begins a ledger in the middle of one")
        if (details["key_check"] is not None) != self._chain.keyed:
            self.findings.append("its first entry says that it has a key, and it has none, or the other way round")

    def _budget(self, row: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        number, terms = row["number"], Terms.from_details(row["dataset"], details)
        whose = (terms.dataset, terms.holder, terms.name)
        old = self._current.pop(whose, None)
        if (old is not None) != (row["kind"] == "amend"):
            self.findings.append(f"entry {number} sets a budget that exists, or amends one that does not")
        if old is not None:
            del self._terms[old]
            for table in (self._totals, self._costs):
                for key in [key for key in table if key[0] == old]:
                    del table[key]
        self._terms[number] = terms
        self._current[whose] = number
        period = terms.number_at(moment(row["at"]))
        start = written(terms.start_of(period))
        charges = self._charges.get((terms.dataset, terms.holder, terms.name), ())
        costs = Counter(cost for at, cost in charges if terms.period is None or at >= start)
        [[budget, charged_period, totals]] = details["charged"]
        if (budget, charged_period) != (number, period):
            self.findings.append(f"entry {number} begins another budget or period than its own")
        self._totals[number, period], self._costs[number, period] = (totals, number), costs

    def _protect(self, row: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        number, dataset, protects = row["number"], row["dataset"], protection.check(details["protects"])
        written = self._protects.get(dataset, {})
        changed = [table for table, unit in written.items() if protects.get(table) != unit]
        charged = (dataset, "dataset", "") in self._charges
        if changed and charged:
            self.findings.append(f"entry {number} changes whom '{dataset}' protects after it was charged")
        if (dataset, "dataset", "") not in self._current:
            self.findings.append(f"entry {number} is about a data set that has no budget")
        self._protects[dataset] = protects
        self._format = max(self._format, schema.WITH_UNITS)

    def _membership(self, row: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        for analyst in details["analysts"]:
            groups = self._groups.setdefault(analyst, set())
            if row["kind"] == "enrol":
                groups.add(details["group"])
            else:
                groups.discard(details["group"])

    def _reserve(self, row: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        number, at = row["number"], moment(row["at"])
        dataset, payer = row["dataset"], row["analyst"]
        whose = [(dataset, "dataset", ""), (dataset, "analyst", payer)]
        whose += [(dataset, "group", group) for group in self._groups.get(payer, ())]
        entries = [self._current[holder] for holder in whose if holder in self._current]
        applicable = {(entry, self._terms[entry].number_at(at)) for entry in entries}
        charged = {(budget, period): totals for budget, period, totals in details["charged"]}
        if "price" in details:
            price.check(details["price"])
        if set(charged) != applicable or not applicable:
            self.findings.append(f"entry {number} was not charged to exactly the budgets that applied to it")
        for key, totals in charged.items():
            self._totals[key] = (totals, number)
            self._costs.setdefault(key, Counter())[row["cost"]] += 1
        for holder in whose:
            self._charges.setdefault(holder, []).append((row["at"], row["cost"]))
        self._reservations += 1
        self._open[number] = (dataset, payer)

    def _close(self, row: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        whose = self._open.pop(row["reservation"], None)
        if whose is None:
            self.findings.append(f"entry {row['number']} closes a reservation that is not open")
        elif whose != (row["dataset"], row["analyst"]):
            self.findings.append(f"entry {row['number']} closes a reservation of another analyst or data set")
        self._closed[row["kind"]] += 1
        if row["kind"] == "complete":
            self._completed = (row["reservation"], row["dataset"], row["analyst"])
        if row["kind"] == "complete" and details["answer"] is not None:
            self._answers[row["reservation"]] = details["answer"]

    def _told(self, row: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        if self._completed != (details["reservation"], row["dataset"], row["analyst"]):
            self.findings.append(f"entry {row['number']} does not follow the answer that is said to have told it")
        if not isinstance(details["values"], list):
            self.findings.append(f"entry {row['number']} tells nothing that can be read")
        self._format = schema.WITH_TOLD

    # ---------------------------------------------------------------- what stands beside the chain

    def tables(self) -> None:
        """Are the other tables what the entries say?"""
        version = self._connection.exec_driver_sql("PRAGMA user_version").scalar()
        if not isinstance(version, int) or version < self._format:
            self.findings.append("it is marked as an earlier format, whose releases do not know all that is in it")
        for what, compare in (
            ("the record of the last entry", self._compare_head),
            ("the list of budgets", self._compare_budgets),
            ("the list of members of groups", self._compare_members),
            ("the table of running totals", self._compare_totals),
            ("the table of answers", self._compare_answers),
        ):
            try:
                compare()
            except _MALFORMED as error:
                self.findings.append(f"{what} cannot be read ({type(error).__name__})")

    def _compare_head(self) -> None:
        heads = [tuple(row) for row in self._connection.execute(select(schema.head))]
        if heads != [(1, self._count, self._previous)]:
            self.findings.append(f"the record of the last entry does not name entry {self._count} and its hash")

    def _compare_budgets(self) -> None:
        stored = {tuple(row) for row in self._connection.execute(select(schema.budgets))}
        wanted = {(entry, terms.dataset, terms.holder, terms.name) for entry, terms in self._terms.items()}
        self._compare("the list of budgets", stored, wanted)

    def _compare_members(self) -> None:
        members = {(row.analyst, row.team) for row in self._connection.execute(select(schema.members))}
        wanted = {(analyst, group) for analyst, groups in self._groups.items() for group in groups}
        self._compare("the list of members of groups", members, wanted)

    def _compare(self, what: str, stored: set[Any], wanted: set[Any]) -> None:
        if stored != wanted:
            self.findings.append(f"{what} is not what the entries say ({len(stored ^ wanted)} rows differ)")

    def _compare_totals(self) -> None:
        rows = {(row.budget, row.period): row for row in self._connection.execute(select(schema.totals))}
        if set(rows) != set(self._totals):
            self.findings.append("the running totals are not those of the budgets and periods that were charged")
        for key in rows.keys() & self._totals.keys():
            row, (expected, entry) = rows[key], self._totals[key]
            terms = self._terms.get(key[0])
            if terms is None:
                self.findings.append(f"entry {key[0]} should have set a budget that was charged, and did not")
                continue
            try:
                if not isinstance(row.totals, str) or digest(row.totals) != expected or row.entry != entry:
                    self.findings.append(f"the running totals of {terms.label} were edited")
                    continue
                self._recount(terms, self._costs[key], totals_from_text(row.totals), charged=entry != key[0])
            except _MALFORMED as error:
                self.findings.append(f"the running totals of {terms.label} cannot be read ({type(error).__name__})")

    def _recount(self, terms: Terms, costs: Counter[str], totals: tuple[Exact, ...], *, charged: bool) -> None:
        if self.findings:  # neither costs nor limits can be trusted any more, and some would take for ever to evaluate
            return
        for total, today in zip(totals, counted(terms, costs), strict=True):
            if total != INFINITE and (today == INFINITE or float(total) < float(today) * _SLACK):
                self.findings.append(
                    f"the running totals of {terms.label} are below what its costs add up to. Either they were "
                    f"changed and all hashes computed anew, or this release of discreet counts some costs higher than "
                    f"the one that admitted them; then ledger.amend(...) counts all of them again"
                )
                break
        if charged and not terms.balance(totals).holds:
            self.findings.append(f"more was charged to {terms.label} than it allows")

    def _compare_answers(self) -> None:
        seen = set()
        for row in self._connection.execute(select(schema.answers)):
            seen.add(row.reservation)
            expected = self._answers.get(row.reservation)
            if not isinstance(row.answer, bytes) or digest(row.answer) != expected:
                self.findings.append(f"the answer of entry {row.reservation} is not the one that was stored")
        self.findings += [f"the answer of entry {number} is missing" for number in sorted(set(self._answers) - seen)]

    def report(self, anchor: Head | None) -> Report:
        """What was found to be intact."""
        return Report(
            path=self._name,
            head=Head(self._count, self._previous),
            reservations=self._reservations,
            released=self._closed["complete"],
            failed=self._closed["fail"],
            answers=len(self._answers),
            budgets=len(self._terms),
            anchored=anchor is not None,
            keyed=self._chain.keyed,
        )


def _objects_of_a_ledger() -> set[tuple[Any, ...]]:
    """Tables, indexes and triggers as SQLite lists them in a new ledger."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        for statement in schema.statements():
            database.execute(statement)
        return set(database.execute(_OBJECTS))
