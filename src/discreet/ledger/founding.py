"""The first entry of a chain: the identity of the ledger, and whether it was made with a key."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from discreet.errors import LedgerError
from discreet.ledger import schema
from discreet.ledger.listing import entry_from
from discreet.ledger.statements import first

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy.engine import Connection

    from discreet.ledger.books import Books
    from discreet.ledger.chain import Chain
    from discreet.ledger.entry import Entry
    from discreet.ledger.store import Store

__all__ = ["founded"]

_FIRST = "SELECT * FROM entries WHERE number = 1"


def founded(store: Store, books: Books, chain: Chain, now: Callable[[], datetime]) -> Entry:
    """The first entry, written if there is none; refuses a key that does not fit it."""
    with store.reading() as connection:
        entry = _first(store, connection)
    if entry is None and not store.read_only:
        with store.writing() as connection:
            tip = books.tip(connection, now())
            if tip.next == 1:
                identity = secrets.token_hex(16)
                details = {"format": schema.VERSION, "identity": identity, "key_check": chain.check_value(identity)}
                books.append(connection, tip, kind="ledger", details=details)
            entry = _first(store, connection)
    if entry is None or "identity" not in entry.details:
        raise books.corrupt("its first entry is missing")
    store.origin = entry.hash
    expected = entry.details.get("key_check")
    if expected is None and chain.keyed:
        raise LedgerError(store.name, "was made without a key", "Open it without key=.")
    if expected is not None and not chain.keyed and not store.read_only:
        raise LedgerError(store.name, "was made with a key", "Open it with key=, the file of its key.")
    if chain.keyed and expected != chain.check_value(str(entry.details["identity"])):
        raise LedgerError(store.name, "was made with another key", "Pass the file of its own key.")
    return entry


def _first(store: Store, connection: Connection) -> Entry | None:
    row = first(connection, _FIRST)
    return None if row is None else entry_from(store.name, dict(row))
