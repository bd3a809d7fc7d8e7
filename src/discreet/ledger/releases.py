"""What became of a reservation: completed with an answer, failed, or still open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from discreet.errors import InvalidArgument
from discreet.ledger import schema
from discreet.ledger.chain import digest

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from discreet.ledger.books import Books, Tip
    from discreet.ledger.entry import Entry

__all__ = ["STATES", "close", "stored_answer"]

STATES = {None: "reserved", "complete": "released", "fail": "failed"}
"""The state of a reservation, by the kind of the entry that closes it."""

_entries, _answers = schema.entries, schema.answers
_closing, _reserved = _entries.alias("closing"), _entries.alias("reserved")

_ANSWER = (
    select(_reserved.c.number, _answers.c.answer, _closing.c.details)
    .select_from(
        _reserved.join(_closing, (_closing.c.reservation == _reserved.c.number) & (_closing.c.kind == "complete")).join(
            _answers, _answers.c.reservation == _reserved.c.number
        )
    )
    .where(_reserved.c.kind == "reserve")
    .order_by(_reserved.c.number.desc())
    .limit(1)
)


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
    query = select(_entries.c.hash).where(_entries.c.number == entry.id, _entries.c.kind == "reserve")
    if connection.execute(query).scalar() != entry.hash:
        raise InvalidArgument("entry", entry.id, "pass an entry that this ledger's reserve(...) returned")
    before = connection.execute(select(_entries.c.kind).where(_entries.c.reservation == entry.id)).scalar()
    if before is not None:
        raise InvalidArgument("entry", entry.id, f"it is {STATES[before]} already, and that is final")
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
        connection.execute(_answers.insert(), {"reservation": entry.id, "answer": answer})


def stored_answer(
    books: Books, connection: Connection, *, dataset: str, fingerprint: str, analyst: str | None
) -> bytes | None:
    """The newest answer to this question, paid for by this analyst or by anybody, if it is what was stored."""
    query = _ANSWER.where(_reserved.c.dataset == dataset, _reserved.c.fingerprint == fingerprint)
    row = connection.execute(query if analyst is None else query.where(_reserved.c.analyst == analyst)).first()
    if row is None:
        return None
    found = bytes(row.answer)
    if f'"answer":"{digest(found)}"' not in (row.details or ""):
        raise books.corrupt(f"the answer of entry {row.number} is not the one that was stored")
    return found
