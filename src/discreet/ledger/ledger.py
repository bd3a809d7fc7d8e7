"""`Ledger`: a durable budget that threads and processes share, and that no crash makes short."""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from discreet.accounting import Budget, Cost
from discreet.accounting.balance import Balance
from discreet.arguments import count
from discreet.errors import BudgetExceeded, InvalidArgument, LedgerError
from discreet.ledger import protection
from discreet.ledger.books import Books
from discreet.ledger.chain import Chain, Head, digest
from discreet.ledger.charging import Charge
from discreet.ledger.entry import Entry
from discreet.ledger.founding import NEEDS_KEY, beginning, founded
from discreet.ledger.listing import entries_of, lines_of, spent
from discreet.ledger.names import BOUNDS
from discreet.ledger.names import name as checked_name
from discreet.ledger.names import names as checked_names
from discreet.ledger.names import text as checked_text
from discreet.ledger.price import check as checked_price
from discreet.ledger.releases import checked_told, close, stored_answer, told_before
from discreet.ledger.settings import Wish, change_membership, is_granted, set_budget
from discreet.ledger.standing import Standing, least_remaining, standing
from discreet.ledger.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from sqlalchemy.engine import Connection

    from discreet.ledger.books import Account
    from discreet.ledger.terms import Terms
    from discreet.ledger.verification import Report

__all__ = ["Ledger"]

_LARGEST_ANSWER = 1 << 29


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Ledger:
    """Durable budgets of data sets, shared by threads and processes; every charge is stored before it is granted.

    >>> ledger = Ledger.in_memory()
    >>> ledger.establish("visits", Budget(epsilon=1.0))
    >>> entry = ledger.reserve("visits", Cost.pure(0.25), what="SELECT COUNT(*) FROM visits")
    >>> ledger.complete(entry, b"41")  # release only after this
    >>> ledger.remaining("visits")
    0.75

    **Spend first.** `reserve` returns once the charge is on the disk; then the release is computed; `complete` stores
    it; only then is it shown. A process that dies in between has spent and has shown nothing. Nothing is refunded.

    **Promise.** What is released from a data set under `reserve` costs no more than its budget in total, whoever
    asks, in any number of processes, and however the questions depend on earlier answers: charges are admitted by the
    rule of `discreet.accounting.Filter`, one after another. A budget of an analyst or of a group bounds in the same
    way what they see together. A budget with a `period` promises this for each period, and nothing about all of them
    together except that costs add up.
    """

    def __init__(self, store: Store, chain: Chain) -> None:
        self._store, self._chain = store, chain
        self._books, self._keyed = Books(store.name, chain), chain.keyed
        weakref.finalize(self, store.end)

    # ---------------------------------------------------------------- opening

    @classmethod
    def open(cls, path: Path | str, *, key: Path | str | None = None, read_only: bool = False) -> Ledger:
        """The ledger in a file, made if there is none.

        `key` is a file with a secret key (16 bytes or more); a ledger that was made with a key is hashed with it, and
        opens for writing only with it. `read_only` opens for looking, also where nothing may be written.
        """
        if str(path) in ("", ":memory:") or not isinstance(path, str | Path):
            raise InvalidArgument("path", path, "pass the path of a file; Ledger.in_memory() needs none")
        if "\0" in str(path):
            raise InvalidArgument("path", str(path), "no file has a name with a NUL character")
        place = Path(path)
        if os.path.isdir(place):  # noqa: PTH112 - says no, also of a name that is too long
            raise LedgerError(place, "cannot be opened: it is a directory", "Pass the path of a file in it.")
        if read_only and not os.path.exists(place):  # noqa: PTH110 - the same
            raise LedgerError(place, "does not exist", "Check the path.")
        chain = Chain.with_key_file(key)  # before a file is made for it
        return cls._opened(Store(place, beginning(chain, now), read_only=read_only), chain)

    @classmethod
    def in_memory(cls) -> Ledger:
        """A ledger that lives and dies with this object: for trying things out, not for guarding data."""
        chain = Chain()
        return cls._opened(Store(None, beginning(chain, now)), chain)

    @classmethod
    def _opened(cls, store: Store, chain: Chain) -> Ledger:
        ledger = cls(store, chain)
        try:
            first = founded(store, ledger._books, chain)
        except BaseException:
            store.end()
            raise
        ledger._keyed = first.details.get("key_check") is not None
        ledger._books.checkable = chain.keyed or not ledger._keyed
        return ledger

    def close(self) -> None:
        """Closes the file; the ledger opens it again when it is used again. One in memory goes on as it is."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path | None:
        """The file; None for a ledger in memory."""
        return self._store.path

    @property
    def read_only(self) -> bool:
        """Whether it was opened for looking only."""
        return self._store.read_only

    @property
    def origin(self) -> str:
        """What tells this ledger from all others: the hash of its first entry, which stays as it grows and moves."""
        assert self._store.origin is not None
        return self._store.origin

    @property
    def head(self) -> Head:
        """The end of the chain. Keep it elsewhere: `verify(anchor=...)` then also finds entries cut off at the end."""
        with self._store.reading() as connection:
            head = self._books.tip(connection, now()).head
        self._store.settle()
        return head

    # ---------------------------------------------------------------- budgets

    def establish(
        self,
        dataset: str,
        budget: Budget,
        *,
        period: timedelta | None = None,
        protects: Mapping[str, str] | None = None,
    ) -> None:
        """Sets the budget of a data set, once: the same budget again changes nothing, another one is refused.

        With a `period` the budget begins again after each; the guarantee is then one per period. `protects` says whom
        the budget is about, as in `protect`.
        """
        given = None if protects is None else protection.check(protects)
        self._set("establish", Wish(dataset, budget, period=period))
        if given is not None:
            self.protect(dataset, given)

    def protect(self, dataset: str, protects: Mapping[str, str], *, reason: str | None = None) -> None:
        """Writes down whom the budget of a data set is about: the unit of each table, a column or `"row"`.

        Said once, it holds: the same again changes nothing, and `UnitMismatch` is raised for a table that comes with
        another unit, or is new and has a unit that no other table has. With a `reason`, the word of the owner that it
        is about the same people, a new table is written down whatever its unit is; the unit of a known table is
        replaced only while nothing was charged.
        """
        dataset, given = checked_name("dataset", dataset), protection.check(protects)
        if reason is not None and not checked_text("reason", reason).strip():
            raise InvalidArgument("reason", reason, "say why; it is written into the ledger")
        with self._store.reading() as connection:
            written = self._books.protected(connection, dataset)
        if reason is None and (protection.is_written(dataset, written, given) or self.read_only):
            return  # who only looks, writes nothing down
        with self._store.writing() as connection:
            tip = self._books.tip(connection, now())
            protection.write(self._books, connection, tip, dataset=dataset, given=given, reason=reason)

    def protected(self, dataset: str) -> dict[str, str]:
        """Whom the budget of a data set is about: units by table; empty if nobody has said it yet."""
        with self._store.reading() as connection:
            self._books.own_account(connection, checked_name("dataset", dataset), at=now())
            return self._books.protected(connection, dataset)

    def budget(self, dataset: str) -> Budget:
        """The budget of a data set itself."""
        with self._store.reading() as connection:
            return self._books.own_account(connection, checked_name("dataset", dataset), at=now()).terms.budget

    def limit(
        self,
        dataset: str,
        budget: Budget,
        *,
        analyst: str | None = None,
        group: str | None = None,
        period: timedelta | None = None,
        aligned: bool = False,
        reason: str | None = None,
    ) -> None:
        """Sets the budget of one analyst, or of a group of analysts together, on a data set that has a budget.

        Charges have to fit into the data set's budget, into the analyst's and into those of all groups that the analyst
        is in. What the analyst has spent before counts; for a group, what its members spent while they were members.
        A `period` begins now, or if `aligned` it began with the data set's own. A `reason` is written down with it.
        """
        if analyst is None and group is None:
            raise InvalidArgument("analyst, group", None, "say whose budget: analyst='ada' or group='marketing'")
        reason = None if reason is None else checked_text("reason", reason)
        self._set("limit", Wish(dataset, budget, analyst=analyst, group=group, period=period, aligned=aligned), reason)

    def amend(
        self,
        dataset: str,
        budget: Budget,
        *,
        reason: str,
        analyst: str | None = None,
        group: str | None = None,
        period: timedelta | None = None,
    ) -> None:
        """Replaces a budget by another one, and writes down why. All that was spent is counted again under it.

        This is the owner's act, outside of the guarantee: the promise of a budget holds if the budget does not depend
        on what was released. A budget below what was spent admits nothing more. Periods are counted from where they
        were counted before.
        """
        if not checked_text("reason", reason).strip():
            raise InvalidArgument("reason", reason, "say why the budget changes; it is written into the ledger")
        self._set("amend", Wish(dataset, budget, analyst=analyst, group=group, period=period), reason)

    def enrol(self, group: str, analysts: Iterable[str]) -> None:
        """Adds analysts to a group; the group's budgets bound what they spend from now on."""
        self._change_membership("enrol", group, analysts)

    def dismiss(self, group: str, analysts: Iterable[str]) -> None:
        """Removes analysts from a group; what they spent as members stays spent by the group."""
        self._change_membership("dismiss", group, analysts)

    # ---------------------------------------------------------------- spending

    def reserve(
        self,
        dataset: str,
        cost: Cost,
        *,
        analyst: str = "local",
        what: str = "",
        fingerprint: str | None = None,
        protects: Mapping[str, str] | None = None,
        price: Mapping[str, float] | None = None,
        agree: Callable[[Sequence[Terms]], None] | None = None,
    ) -> Entry:
        """Charges a cost to every budget that applies, durably, or raises `BudgetExceeded` and charges nothing.

        Call it before the data is touched. The cost stays spent, whatever happens afterwards. `protects` says whose
        privacy the cost is about, and has to be what the ledger says; without it, that is taken for granted. `price`
        is what was asked for, as `{"epsilon": 0.5, "delta": 1e-8}`: it is kept and shown, and only the cost counts.
        `agree` is shown the budgets that would be charged; an `InvalidArgument` that it raises is passed on.
        """
        dataset, analyst = checked_name("dataset", dataset), checked_name("analyst", analyst)
        what = checked_text("what", what)
        fingerprint = None if fingerprint is None else checked_name("fingerprint", fingerprint)
        about = {} if protects is None else protection.check(protects)
        if not isinstance(cost, Cost):
            raise InvalidArgument("cost", cost, "pass a Cost, such as Cost.laplace(noise_multiplier=2.0)")
        paid = None if price is None else checked_price(price)
        charge = Charge(
            dataset, cost, analyst=analyst, what=what, fingerprint=fingerprint, protects=about, price=paid, agree=agree
        )
        return charge.made(self._store, self._books, now)

    def complete(
        self, entry: Entry, answer: bytes | None = None, *, told: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        """States that the release was made, and keeps its answer for when the question is asked again.

        `told` is what the release has told besides: lists of JSON values by name, for `told` to find. All of it has to
        be paid for by the cost of the entry. Show the answer after this returns, and not at all if it raises. It does
        not wait for the disk: if the power fails before the next charge, the cost stays spent and the answer is lost.
        """
        if answer is not None:
            if not isinstance(answer, bytes | bytearray | memoryview):
                raise InvalidArgument("answer", type(answer).__name__, "pass bytes, or None to keep no answer")
            answer = bytes(answer)
            if len(answer) > _LARGEST_ANSWER:
                raise InvalidArgument("answer", len(answer), f"pass at most {_LARGEST_ANSWER} bytes, or None")
        details: dict[str, Any] = {"answer": None if answer is None else digest(answer)}
        self._close_reservation(entry, "complete", details, answer, checked_told(told) if told else None)

    def fail(self, entry: Entry, note: str) -> None:
        """States that the release failed. The cost stays spent: the data was touched, and a failure tells, too."""
        self._close_reservation(entry, "fail", {"note": checked_text("note", note)})

    def answer(self, dataset: str, fingerprint: str, *, analyst: str = "local", shared: bool = False) -> bytes | None:
        """The newest stored answer to an identical question; reading it again costs nothing.

        By default only answers that this analyst has paid for. `shared=True` gives everybody's: for the data set's
        budget that is post-processing all the same. It is not for the budget of an analyst or a group, which bounds
        what they see; so analysts under such a budget always get their own answers only.
        """
        dataset, analyst = checked_name("dataset", dataset), checked_name("analyst", analyst)
        fingerprint = checked_name("fingerprint", fingerprint)
        with self._store.reading() as connection:
            payer = self._payer(connection, dataset, analyst, shared=shared)
            return stored_answer(self._books, connection, dataset=dataset, fingerprint=fingerprint, analyst=payer)

    def told(
        self, dataset: str, names: Iterable[str], *, analyst: str = "local", shared: bool = False
    ) -> dict[str, list[Any]]:
        """What answers that this analyst has paid for have told under each of these names, the newest first.

        Using it again is post-processing and costs nothing. What others have paid for is among it if it is `shared`,
        under the same condition as for `answer`.
        """
        dataset, analyst = checked_name("dataset", dataset), checked_name("analyst", analyst)
        wanted = tuple(checked_name("names", name) for name in names)
        with self._store.reading() as connection:
            payer = self._payer(connection, dataset, analyst, shared=shared)
            return told_before(self._books, connection, wanted, dataset=dataset, analyst=payer)

    # ---------------------------------------------------------------- reading

    def remaining(self, dataset: str, *, analyst: str = "local", after: Cost | None = None) -> float:
        """The largest x such that one more release of size x is admitted, in the notion of the data set's budget.

        With `after`, once that cost is charged: it is not, and one that does not fit is refused as `reserve` would.
        That is what `Filter.remaining` says, the smallest over all budgets that apply to the analyst. Where a budget of
        the analyst or a group is in another notion than the data set's, it is asked about releases of the latter kind.
        """
        dataset, analyst = checked_name("dataset", dataset), checked_name("analyst", analyst)
        with self._store.reading() as connection:
            at = self._time(connection)
            accounts = self._books.known_accounts(connection, dataset, analyst, at=at)
        return _left(accounts, after, at)

    def remaining_in_all(self, dataset: str, *, after: Cost | None = None) -> float:
        """The same by the data set's own budget alone, whoever asks."""
        dataset = checked_name("dataset", dataset)
        with self._store.reading() as connection:
            at = self._time(connection)
            own = self._books.own_account(connection, dataset, at=at)
        return _left((own,), after, at)

    def admits(self, dataset: str, cost: Cost, *, analyst: str = "local") -> bool:
        """Whether `reserve` would grant this cost now, to this analyst; charges nothing."""
        return self.refusal(dataset, cost, analyst=analyst) is None

    def refusal(self, dataset: str, cost: Cost, *, analyst: str = "local") -> BudgetExceeded | None:
        """The error with which `reserve` would refuse this cost now, or None if it would grant it; charges nothing."""
        dataset, analyst = checked_name("dataset", dataset), checked_name("analyst", analyst)
        with self._store.reading() as connection:
            at = self._time(connection)
            accounts = self._books.known_accounts(connection, dataset, analyst, at=at)
        for account in accounts:
            try:
                account.charged(cost, at=at)
            except BudgetExceeded as error:
                return error
        return None

    def standings(self, dataset: str, *, analyst: str | None = None) -> tuple[Standing, ...]:
        """What is left of each budget: of those that apply to an analyst, or of all that the data set has."""
        dataset = checked_name("dataset", dataset)
        analyst = None if analyst is None else checked_name("analyst", analyst)
        with self._store.reading() as connection:
            at = self._time(connection)
            accounts = self._books.known_accounts(connection, dataset, analyst, at=at)
            protects = self._books.protected(connection, dataset)
        return tuple(standing(account, at, protects) for account in accounts)

    def terms(self, dataset: str, *, analyst: str) -> tuple[Terms, ...]:
        """The budgets that apply to an analyst, as they were set: `standings` computes what is left of them besides."""
        dataset, analyst = checked_name("dataset", dataset), checked_name("analyst", analyst)
        with self._store.reading() as connection:
            accounts = self._books.known_accounts(connection, dataset, analyst, at=self._time(connection))
        return tuple(account.terms for account in accounts)

    def spent(self, dataset: str, *, analyst: str | None = None) -> Cost:
        """The sum of all costs charged to a data set since the beginning, or of those of one analyst."""
        dataset = checked_name("dataset", dataset)
        analyst = None if analyst is None else checked_name("analyst", analyst)
        with self._store.reading() as connection:
            own = self._books.own_account(connection, dataset, at=now())
            return spent(connection, dataset, analyst, adjacency=own.terms.budget.adjacency)

    def datasets(self) -> tuple[str, ...]:
        """The data sets that have a budget, in order of the alphabet."""
        with self._store.reading() as connection:
            return tuple(sorted(self._books.datasets(connection)))

    def members(self, group: str) -> tuple[str, ...]:
        """Who is in a group, in order of the alphabet."""
        return self.groups().get(checked_name("group", group), ())

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The groups that have members, and who they are, in order of the alphabet."""
        with self._store.reading() as connection:
            groups = self._books.groups(connection)
        return {group: tuple(sorted(groups[group])) for group in sorted(groups)}

    def entries(
        self,
        dataset: str | None = None,
        *,
        analyst: str | None = None,
        kind: str | None = None,
        after: int = 0,
        last: int | None = None,
    ) -> Iterator[Entry]:
        """The entries of the chain, oldest first: all of them, or those of a data set, an analyst, a kind.

        `after` leaves out those up to this number; `last` gives so many of them, the newest.
        """
        last = None if last is None else count("last", last)
        wanted = {"dataset": dataset, "analyst": analyst, "kind": kind}
        checked = {column: checked_text(column, value) for column, value in wanted.items() if value is not None}
        return entries_of(self._store, checked, after=after, last=last)

    # ---------------------------------------------------------------- proving and keeping

    def verify(self, *, anchor: Head | str | None = None) -> Report:
        """Checks everything that is stored against the chain; raises `LedgerCorrupt` with all findings.

        So it does if an entry is missing that this object has written or seen.
        What that proves, and what an `anchor` or a key adds, is told in `discreet.ledger.verification`.
        """
        from discreet.ledger.verification import verify

        head = Head.parse(anchor) if isinstance(anchor, str) else anchor
        if head is not None and not isinstance(head, Head):
            raise InvalidArgument("anchor", anchor, "pass a Head, or the text that str(ledger.head) gave")
        if self._keyed and not self._chain.keyed:
            raise LedgerError(self._store.name, "was made with a key, without which no hash can be checked", NEEDS_KEY)
        latest = self._books.latest
        store = self._store.for_looking()
        try:
            with store.reading() as connection:
                report = verify(connection, name=self._store.name, chain=self._chain, anchor=head, latest=latest)
            store.settle()
            self._books.saw(report.head)
            return report
        finally:
            if store is not self._store:
                store.close()

    def export(self) -> Iterator[str]:
        """Every entry as a line of JSON, exactly as it was hashed: `cost` and `details` are JSON text.

        The hash of a line is that of the line without its `hash`; `previous` is the hash of the line before.
        """
        return lines_of(self._store)

    def backup(self, path: Path | str) -> None:
        """Writes a consistent copy to a new file, while others go on spending.

        A copy is for restoring after a loss, not for spending from: two copies in use spend the budget twice.
        """
        self._store.copy_to(Path(path))

    def __repr__(self) -> str:
        return "Ledger.in_memory()" if self.path is None else f"Ledger.open({str(self.path)!r})"

    # ---------------------------------------------------------------- inside

    def _set(self, kind: str, wish: Wish, reason: str | None = None) -> None:
        if kind != "amend":
            with self._store.reading() as connection:
                if is_granted(self._books, connection, wish, at=now()):
                    return
        opening = Balance.opening(wish.budget)  # the slow part, before anybody has to wait
        with self._store.writing() as connection:
            tip = self._books.tip(connection, now())
            if kind != "amend" and is_granted(self._books, connection, wish, at=tip.at):
                return
            written = set_budget(self._books, connection, tip, wish, kind=kind, opening=opening, reason=reason)
        self._books.committed(written)

    def _change_membership(self, kind: str, group: str, analysts: Iterable[str]) -> None:
        group, wanted = checked_name("group", group), checked_names("analysts", analysts)
        if kind == "enrol" and BOUNDS in wanted:
            advice = "that is what bounds for everybody are paid as, and not somebody who asks"
            raise InvalidArgument("analysts", BOUNDS, advice)
        with self._store.writing() as connection:
            tip = self._books.tip(connection, now())
            change_membership(self._books, connection, tip, kind=kind, group=group, analysts=wanted)

    def _close_reservation(
        self,
        entry: Entry,
        kind: str,
        details: dict[str, Any],
        answer: bytes | None = None,
        told: Mapping[str, list[Any]] | None = None,
    ) -> None:
        if not isinstance(entry, Entry):
            raise InvalidArgument("entry", entry, "pass the entry that ledger.reserve(...) returned")
        with self._store.writing(durable=False) as connection:
            tip = self._books.tip(connection, now())
            written = close(self._books, connection, tip, entry, kind=kind, details=details, answer=answer, told=told)
        self._books.committed(written)

    def _payer(self, connection: Connection, dataset: str, analyst: str, *, shared: bool) -> str | None:
        """Who must have paid for what this analyst may see at no cost; None for anybody."""
        accounts = self._books.known_accounts(connection, dataset, analyst, at=now())
        return None if shared and all(account.terms.holder == "dataset" for account in accounts) else analyst

    def _time(self, connection: Connection) -> datetime:
        return self._books.tip(connection, now()).at


def _left(accounts: Sequence[Account], after: Cost | None, at: datetime) -> float:
    """What these budgets leave, once this cost is charged to all of them."""
    if after is not None:
        accounts = tuple(replace(account, balance=account.charged(after, at=at)) for account in accounts)
    return least_remaining(accounts)
