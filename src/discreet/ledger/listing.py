"""What is in a ledger: entries in pages, as lines that anybody can check, and their costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from discreet.accounting import Cost
from discreet.errors import LedgerCorrupt
from discreet.ledger import schema
from discreet.ledger.chain import FIRST, canonical
from discreet.ledger.entry import Entry
from discreet.ledger.releases import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Select
    from sqlalchemy.engine import Connection

    from discreet.ledger.store import Store

__all__ = ["entries_of", "entry_from", "lines_of", "spent"]

_PAGE = 1000
_entries = schema.entries
_closing = _entries.alias("closing")


def entries_of(store: Store, wanted: Mapping[str, str], *, after: int, last: int | None = None) -> Iterator[Entry]:
    """The entries with these values in these columns, oldest first, with the state of reservations; the `last` ones."""
    query = select(_entries, _closing.c.kind.label("closed")).select_from(
        _entries.outerjoin(_closing, _closing.c.reservation == _entries.c.number)
    )
    for column, value in wanted.items():
        query = query.where(_entries.c[column] == value)
    if last is not None:
        after = max(after, _before_last(store, wanted, last))
    for row in _rows(store, query, after=after):
        yield entry_from(store.name, row)


def _before_last(store: Store, wanted: Mapping[str, str], last: int) -> int:
    """The number after which this many of the entries come; 0 if there are not so many."""
    query = select(_entries.c.number).order_by(_entries.c.number.desc()).offset(last).limit(1)
    for column, value in wanted.items():
        query = query.where(_entries.c[column] == value)
    with store.reading() as connection:
        return connection.execute(query).scalar() or 0


def lines_of(store: Store) -> Iterator[str]:
    """Every entry as a line of JSON, with the hash of the one before it."""
    previous = FIRST
    for row in _rows(store, select(_entries), after=0):
        yield canonical({**row, "previous": previous})
        previous = row["hash"]


def spent(connection: Connection, dataset: str, analyst: str | None, *, adjacency: Any) -> Cost:
    """The sum of all costs charged to a data set, or of those of one analyst."""
    query = select(_entries.c.cost, func.count(), func.min(_entries.c.number))
    query = query.where(_entries.c.kind == "reserve", _entries.c.dataset == dataset)
    if analyst is not None:
        query = query.where(_entries.c.analyst == analyst)
    rows = connection.execute(query.group_by(_entries.c.cost).order_by(func.min(_entries.c.number)))
    parts = [(leaf, times * often) for text, often, _ in rows for leaf, times in Cost.from_json(text).parts]
    return Cost(tuple(parts), adjacency)


def entry_from(name: str, row: Any) -> Entry:
    """The entry in a row of the ledger of this name."""
    try:
        state = STATES[row["closed"]] if row["kind"] == "reserve" and "closed" in row else None
        return Entry.from_row(row, state)
    except (ValueError, TypeError, KeyError) as error:
        raise LedgerCorrupt(name, (f"entry {row['number']} cannot be read",)) from error


def _rows(store: Store, query: Select[Any], *, after: int) -> Iterator[Any]:
    """The rows of a query over entries, oldest first: others may write between two pages."""
    query = query.order_by(_entries.c.number).limit(_PAGE)
    while True:
        with store.reading() as connection:
            rows = connection.execute(query.where(_entries.c.number > after)).mappings().all()
        store.settle()  # what is shown may be noted elsewhere
        yield from rows
        if len(rows) < _PAGE:
            return
        after = rows[-1]["number"]
