"""What became of a reservation: completed with an answer, failed, or still open.

What an answer has told for later questions to know (`told`), private numbers that were paid for, follows the entry that
completes it: an entry for each name, so that it is found by its name among any number of others. They are written
together: all of it is in the file or nothing, under the hashes of the chain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidArgument
from discreet.ledger import schema
from discreet.ledger.chain import canonical, digest
from discreet.ledger.names import name as checked_name
from discreet.ledger.statements import first, found, run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.engine import Connection

    from discreet.ledger.books import Books, Tip
    from discreet.ledger.entry import Entry

__all__ = ["STATES", "checked_told", "close", "stored_answer", "told_before"]

STATES = {None: "reserved", "complete": "released", "fail": "failed"}
"""The state of a reservation, by the kind of the entry that closes it."""

_CLOSED = """
    SELECT reserved.hash AS hash, reserved.dataset AS dataset, reserved.analyst AS analyst, closing.kind AS kind
    FROM entries AS reserved LEFT JOIN entries AS closing ON closing.reservation = reserved.number
    WHERE reserved.number = :number AND reserved.kind = 'reserve'
"""
_STORE = "INSERT INTO answers VALUES (:reservation, :answer)"
_ANSWER = """
    SELECT reserved.number AS number, answers.answer AS answer, closing.details AS details
    FROM entries AS reserved
    JOIN entries AS closing ON closing.reservation = reserved.number AND closing.kind = 'complete'
    JOIN answers ON answers.reservation = reserved.number
    WHERE reserved.kind = 'reserve' AND reserved.dataset = :dataset AND reserved.fingerprint = :fingerprint
      AND (:analyst IS NULL OR reserved.analyst = :analyst)
    ORDER BY reserved.number DESC LIMIT 1
"""
_TOLD = """
    SELECT number, details FROM entries
    WHERE dataset = :dataset AND kind = 'told' AND fingerprint = :name
      AND (:analyst IS NULL OR analyst = :analyst)
    ORDER BY number DESC LIMIT :most
"""
_MOST_TOLD = 32
"""So many entries are looked at for each name, the newest."""


def close(
    books: Books,
    connection: Connection,
    tip: Tip,
    entry: Entry,
    *,
    kind: str,
    details: dict[str, Any],
    answer: bytes | None = None,
    told: Mapping[str, list[Any]] | None = None,
) -> Entry:
    """Writes what became of a reservation, once; gives the last entry of it."""
    row = first(connection, _CLOSED, {"number": entry.id})
    if row is None or row["hash"] != entry.hash:
        raise InvalidArgument("entry", entry.id, "pass an entry that this ledger's reserve(...) returned")
    if row["kind"] is not None:
        raise InvalidArgument("entry", entry.id, f"it is {STATES[row['kind']]} already, and that is final")
    payer = {"dataset": row["dataset"], "analyst": row["analyst"]}
    written = books.append(connection, tip, kind=kind, reservation=entry.id, details=details, **payer)
    if answer is not None:
        run(connection, _STORE, {"reservation": entry.id, "answer": answer})
    for name, values in (told or {}).items():
        tip = tip.after(written)
        details = {"reservation": entry.id, "values": values}
        written = books.append(connection, tip, kind="told", fingerprint=name, details=details, **payer)
        books.mark_format(connection, schema.WITH_TOLD)
    return written


def stored_answer(
    books: Books, connection: Connection, *, dataset: str, fingerprint: str, analyst: str | None
) -> bytes | None:
    """The newest answer to this question, paid for by this analyst or by anybody, if it is what was stored."""
    wanted = {"dataset": dataset, "fingerprint": fingerprint, "analyst": analyst}
    row = first(connection, _ANSWER, wanted)
    if row is None:
        return None
    found = bytes(row["answer"])
    if f'"answer":"{digest(found)}"' not in (row["details"] or ""):
        raise books.corrupt(f"the answer of entry {row['number']} is not the one that was stored")
    return found


def checked_told(told: object) -> dict[str, list[Any]]:
    """Lists of JSON values by name, as they can be stored."""
    advice = "pass lists of JSON values by name, such as {'bound of rows': [12]}"
    if not isinstance(told, Mapping) or not all(isinstance(values, list | tuple) for values in told.values()):
        raise InvalidArgument("told", told, advice)
    checked = {checked_name("told", name): list(values) for name, values in told.items()}
    try:
        canonical(checked)
    except (ValueError, TypeError):
        raise InvalidArgument("told", told, advice) from None
    return checked


def told_before(
    books: Books, connection: Connection, names: Iterable[str], *, dataset: str, analyst: str | None
) -> dict[str, list[Any]]:
    """What this analyst's answers, or anybody's, have told under these names, the newest first."""
    known: dict[str, list[Any]] = {}
    for name in names:
        wanted = {"dataset": dataset, "analyst": analyst, "name": name, "most": _MOST_TOLD}
        known[name] = []
        for row in found(connection, _TOLD, wanted):
            try:
                known[name] += json.loads(row["details"])["values"]
            except (ValueError, TypeError, KeyError) as error:
                raise books.corrupt(f"what entry {row['number']} has told cannot be read") from error
    return known
