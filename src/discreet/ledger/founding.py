"""The first entry of a chain: the identity of the ledger, and whether it was made with a key.

It is written together with the tables, so there is no ledger without it: one that has lost it is not begun again.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from discreet.errors import LedgerError
from discreet.ledger import schema
from discreet.ledger.books import Books, Tip
from discreet.ledger.chain import FIRST, Head
from discreet.ledger.listing import entry_from
from discreet.ledger.statements import first

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy.engine import Connection

    from discreet.ledger.chain import Chain
    from discreet.ledger.entry import Entry
    from discreet.ledger.store import Store

__all__ = ["NEEDS_KEY", "beginning", "founded"]

NEEDS_KEY = "Pass the file of its key: key= in Python, --key on the command line, ledger_key in a policy."
"""What to do with a ledger that has a key."""

_FIRST = "SELECT * FROM entries WHERE number = 1"


def beginning(chain: Chain, now: Callable[[], datetime]) -> Callable[[Connection], None]:
    """What writes the first entry of a new ledger, in the transaction that makes its tables."""

    def begin(connection: Connection) -> None:
        identity = secrets.token_hex(16)
        details = {"format": schema.VERSION, "identity": identity, "key_check": chain.check_value(identity)}
        Books("that is being made", chain).append(
            connection, Tip(Head(0, FIRST), now()), kind="ledger", details=details
        )

    return begin


def founded(store: Store, books: Books, chain: Chain) -> Entry:
    """The first entry; refuses a ledger that has none, and a key that does not fit it."""
    with store.reading() as connection:
        row = first(connection, _FIRST)
        entry = None if row is None else entry_from(store.name, dict(row))
    if entry is None or not isinstance(entry.details, dict) or "identity" not in entry.details:
        raise books.corrupt("its first entry is missing")
    books.saw(books.end(entry.id, entry.hash))
    store.origin = entry.hash
    expected = entry.details.get("key_check")
    if expected is None and chain.keyed:
        raise LedgerError(store.name, "was made without a key", "Leave out key=, or --key on the command line.")
    if expected is not None and not chain.keyed and not store.read_only:
        raise LedgerError(store.name, "was made with a key", NEEDS_KEY)
    if chain.keyed and expected != chain.check_value(str(entry.details["identity"])):
        raise LedgerError(store.name, "was made with another key", "Pass the file of its own key.")
    return entry
