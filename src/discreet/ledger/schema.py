"""The tables of a ledger. The entries are the truth; budgets, members, totals and head only save reading all of them.

Entries and answers can be added and never changed: triggers refuse it, and the chain shows it if somebody removes them.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Table, Text, UniqueConstraint
from sqlalchemy.schema import CreateIndex, CreateTable

__all__ = [
    "APPLICATION",
    "READABLE",
    "VERSION",
    "WITH_TOLD",
    "WITH_UNITS",
    "answers",
    "budgets",
    "entries",
    "head",
    "members",
    "statements",
    "totals",
]

APPLICATION = 0x64637274
"""`PRAGMA application_id` of a ledger."""

WITH_UNITS, WITH_TOLD = 2, 3
"""Since these formats entries say whom data sets protect, and what answers have told."""

VERSION = WITH_TOLD
"""`PRAGMA user_version`: the format of the file."""

READABLE = (1, WITH_UNITS, VERSION)
"""The formats that this release reads. A file becomes a later one with its first entry that is unknown to earlier."""

_metadata = MetaData()

entries = Table(
    "entries",
    _metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("dataset", Text),
    Column("analyst", Text),
    Column("what", Text),
    Column("fingerprint", Text),
    Column("cost", Text),
    Column("reservation", Integer),
    Column("details", Text),
    Column("hash", Text, nullable=False),
    Index("entries_by_reservation", "reservation", unique=True),  # a reservation is closed at most once
    Index("entries_by_dataset", "dataset", "kind", "fingerprint"),
)

answers = Table(
    "answers",
    _metadata,
    Column("reservation", Integer, primary_key=True, autoincrement=False),
    Column("answer", LargeBinary, nullable=False),
)

budgets = Table(
    "budgets",
    _metadata,
    Column("entry", Integer, primary_key=True, autoincrement=False),
    Column("dataset", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("name", Text, nullable=False),
    UniqueConstraint("dataset", "holder", "name"),
)

members = Table(
    "members",
    _metadata,
    Column("analyst", Text, primary_key=True),
    Column("team", Text, primary_key=True),
)

totals = Table(
    "totals",
    _metadata,
    Column("budget", Integer, primary_key=True, autoincrement=False),
    Column("period", Integer, primary_key=True, autoincrement=False),
    Column("totals", Text, nullable=False),
    Column("entry", Integer, nullable=False),
)

head = Table(
    "head",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("hash", Text, nullable=False),
)

_TRIGGERS = (
    *(
        f"CREATE TRIGGER {table}_are_not_{name} BEFORE {event} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} of a ledger are never {name}'); END"
        for table in ("entries", "answers")
        for event, name in (("UPDATE", "changed"), ("DELETE", "deleted"))
    ),
    # REPLACE would delete without firing the triggers above
    *(
        f"CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{message}'); END"
        for name, table, condition, message in (
            (
                "entries_follow_each_other",
                "entries",
                "NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM entries)",
                "entries of a ledger are only added at its end",
            ),
            (
                "answers_are_not_replaced",
                "answers",
                "EXISTS (SELECT 1 FROM answers WHERE reservation = NEW.reservation)",
                "answers of a ledger are never replaced",
            ),
        )
    ),
)


def statements() -> tuple[str, ...]:
    """What makes an empty database a ledger."""
    from sqlalchemy.dialects import sqlite

    dialect = sqlite.dialect()
    made = []
    for table in _metadata.sorted_tables:
        made.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        made += [str(CreateIndex(index).compile(dialect=dialect)).strip() for index in sorted(table.indexes, key=str)]
    return (*made, *_TRIGGERS)
