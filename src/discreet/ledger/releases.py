"""What became of a reservation: completed with an answer, failed, or still open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidArgument
from discreet.ledger.chain import digest
from discreet.ledger.statements import first, run

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from discreet.ledger.books import Books, Tip
    from discreet.ledger.entry import Entry

__all__ = ["STATES", "close", "stored_answer"]

STATES = {None: "reserved", "complete": "released", "fail": "failed"}
"""The state of a reservation, by the kind of the entry that closes it."""

_CLOSED = """
    SELECT reserved.hash AS hash, closing.kind AS kind
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


def close(
    books: Books,
    connection: Connection,
    tip: Tip,
    entry: Entry,
    *,
    kind: str,
    details: dict[str, Any],
    answer: bytes | None = None,
) -> None:
    """Writes what became of a reservation, once."""
    row = first(connection, _CLOSED, {"number": entry.id})
    if row is None or row["hash"] != entry.hash:
        raise InvalidArgument("entry", entry.id, "pass an entry that this ledger's reserve(...) returned")
    if row["kind"] is not None:
        raise InvalidArgument("entry", entry.id, f"it is {STATES[row['kind']]} already, and that is final")
    books.append(
        connection,
        tip,
        kind=kind,
        dataset=entry.dataset,
        analyst=entry.analyst,
        reservation=entry.id,
        details=details,
    )
    if answer is not None:
        run(connection, _STORE, {"reservation": entry.id, "answer": answer})


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
