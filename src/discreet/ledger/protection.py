"""Whom a data set protects: for each table the column that says whose row it is, or every row by itself.

A budget is a promise about one unit. The same rows under another unit are another promise, so the unit is written into
the chain, beside the budget, when the data is opened first, and every later charge has to agree with it:

| a table comes with | then |
|---|---|
| the unit that is written down for it | it agrees |
| another unit | refused; if nothing was charged yet, its owner may correct it, and say why |
| no unit written down, and a unit that other tables of the data have | it is written down: the promise is the same |
| no unit written down, and a unit of its own | refused, until its owner says that it is about the same people |

A ledger without any of this (made by an earlier release, or by hand) takes what the next opening says, also for what
was charged before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument, UnitMismatch
from discreet.ledger import schema
from discreet.ledger.names import text as checked_text

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from discreet.ledger.books import Books, Tip

__all__ = ["agree", "check", "in_words", "is_written", "write"]

ROW = "row"
"""The unit of a table in which every row is a unit of its own."""

_LONGEST = 1000
_CHARGED = "SELECT EXISTS (SELECT 1 FROM entries WHERE dataset = ? AND kind = 'reserve')"


def check(protects: object) -> dict[str, str]:
    """Units by table, in order of the alphabet and in small letters: SQL ignores case."""
    if not isinstance(protects, Mapping) or not protects:
        raise InvalidArgument(
            "protects", protects, "pass the unit of each table, such as {'visits': 'user_id', 'events': 'row'}"
        )
    found = {_name(table).lower(): _name(unit).lower() for table, unit in protects.items()}
    if len(found) != len(protects):
        raise InvalidArgument("protects", protects, "name every table once: case is ignored")
    return dict(sorted(found.items()))


def _name(value: object) -> str:
    name = checked_text("protects", value, longest=_LONGEST)
    if not name:
        raise InvalidArgument("protects", value, "pass names of tables and columns, each of one character or more")
    return name


def in_words(protects: Mapping[str, str]) -> str:
    """For people: `people.id, visits.user_id, each row of events`; nothing written down is said, too."""
    people = [f"{table}.{unit}" for table, unit in protects.items() if unit != ROW]
    rows = [f"each row of {table}" for table, unit in protects.items() if unit == ROW]
    return ", ".join(people + rows) or "not recorded"


def agree(dataset: str, written: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raises `UnitMismatch` unless every table has the unit that is written down for it."""
    for table, unit in given.items():
        if written.get(table) != unit:
            raise _mismatch(dataset, table, unit, written)


def is_written(dataset: str, written: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether all of it is written down; raises `UnitMismatch` where it may not be without the owner's word."""
    for table, unit in given.items():
        if written and written.get(table) != unit and (table in written or unit not in written.values()):
            raise _mismatch(dataset, table, unit, written)
    return all(table in written for table in given)


def write(
    books: Books,
    connection: Connection,
    tip: Tip,
    *,
    dataset: str,
    given: Mapping[str, str],
    reason: str | None,
) -> None:
    """Writes down whom a data set protects, if that is not written down yet; a reason is the owner's word."""
    books.own_account(connection, dataset, at=tip.at)
    written = books.protected(connection, dataset)
    if reason is None:
        if is_written(dataset, written, given):
            return
    elif all(written.get(table) == unit for table, unit in given.items()):
        return
    elif connection.exec_driver_sql(_CHARGED, (dataset,)).scalar():
        agree(dataset, written, {table: unit for table, unit in given.items() if table in written})
    after = dict(sorted({**written, **given}.items()))
    books.append(connection, tip, kind="protect", dataset=dataset, details={"protects": after, "reason": reason})
    books.mark_format(connection, schema.WITH_UNITS)


def _mismatch(dataset: str, table: str, unit: str, written: Mapping[str, str]) -> UnitMismatch:
    return UnitMismatch(dataset, table, unit=unit, recorded=written.get(table), whole=in_words(written))
