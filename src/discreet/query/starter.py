"""A first policy for somebody's tables, written from names and types alone: no value is read."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.engines.names import closest
from discreet.errors import InvalidArgument
from discreet.query.declared import family, identifies, never_identifies
from discreet.query.sources import table_name
from discreet.query.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Seen", "seen_in", "starter"]

_WHO = [
    "user",
    "person",
    "people",
    "customer",
    "client",
    "patient",
    "member",
    "subject",
    "account",
    "respondent",
    "participant",
    "household",
    "employee",
    "student",
    "visitor",
    "passenger",
    "driver",
    "rider",
    "guest",
    "buyer",
    "donor",
    "voter",
    "citizen",
    "resident",
    "individual",
    "unit",
    "uid",
    "pid",
]
_IDENTITY = re.compile(rf"(?:{'|'.join(_WHO)})s?(?:[ _-]?(?:id|key|no|nr|number|uuid|guid|hash|code))?", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = """\
# A policy for discreet: what everybody may know about these tables.
# Written by `discreet init` from the names and types of columns; no value was read.

# The ledger knows the data by this name: keep it when files move.
name = {name}

# Where spending is recorded, relative to this file, and how much there is to spend.
# ledger = {ledger}
# The ledger has a name of its own once it was made; with ledger_origin in this file no other is used, and none is made.
# [budget]
# epsilon = 3.0
# delta = 1e-6  # well below 1 / (number of people)
# bounds_share = 0.1  # of it, to find once for everybody what bounds one person's part in counts and sums; 0 for none

# How much of it one analyst may spend; "*" is everybody who is not named. Budgets of groups are set in the ledger.
# [analysts]
# "*" = {{ epsilon = 1.0, delta = 1e-7 }}  # period = "30 days" lets it begin again
"""


_COLUMNS = (
    "# bounds: the range that values are known to be in (others are clamped). keys: the values that GROUP BY shows.",
    "# Take both from what is known without the data. What is not declared is found privately, for part of the price.",
)


@dataclass(frozen=True)
class Seen:
    """A table as its schema shows it: columns with their types, or None for a CSV file, where types are not written."""

    name: str
    source: str
    columns: tuple[tuple[str, str | None], ...]
    table: str | None = None
    encoding: str | None = None

    @property
    def candidates(self) -> tuple[str, ...]:
        """Columns that could say whose row it is, by their names and types."""
        return tuple(
            column
            for column, kind in self.columns
            if _IDENTITY.fullmatch(column) and (kind is None or family(kind) in ("integer", "text", "uuid"))
        )

    def has(self, column: str) -> bool:
        """Whether there is a column of this name; case is ignored."""
        return any(column.lower() == other.lower() for other, _ in self.columns)


def seen_in(sources: Iterable[str | os.PathLike[str]], *, encoding: str | None = None) -> list[Seen]:
    """The tables of files, patterns, directories and databases; of a CSV file only the header is read."""
    from discreet.engines import DuckDBEngine
    from discreet.engines.csv_files import csv_header
    from discreet.engines.encodings import known_encoding
    from discreet.engines.paths import files_of

    encoding = None if encoding is None else known_encoding(encoding)
    found: list[Seen] = []
    with DuckDBEngine(threads=1) as engine:
        for source in sources:
            text, files = os.fsdecode(source), files_of(source)
            if files.kind == "csv":
                columns = tuple((column, None) for column in csv_header(files.paths, encoding=encoding)[1])
                found.append(Seen(_fresh(table_name(source), found), text, columns, encoding=encoding))
                continue
            tables: Sequence[str | None] = engine.tables(source) if files.kind == "database" else [None]
            for table in tables:
                name = _fresh(table_name(source) if table is None else table.rpartition(".")[2], found)
                relation = engine.register(name, source, table=table)
                found.append(Seen(name, text, tuple(engine.schema(relation)), table))
    if not found:
        raise InvalidArgument("source", [os.fsdecode(source) for source in sources], "there is no table in it")
    return found


def starter(tables: Sequence[Seen], *, unit: str | None = None, name: str | None = None, folder: Path) -> str:
    """The text of a policy in `folder`; `unit` is declared where a table has it, else the owner is asked to choose."""
    if unit is not None and unit.lower() != "row" and not any(table.has(unit) for table in tables):
        names = list(dict.fromkeys(column for table in tables for column, _ in table.columns))
        raise InvalidArgument("unit", unit, f"no table has this column. {closest(unit, names)}")
    for table in tables:
        _check_unit(table, unit)
    title = name or (tables[0].name if len(tables) == 1 else table_name(tables[0].source))
    parts = [_HEAD.format(name=_text(title), ledger=_text(f"{title}.ledger"))]
    parts += [_section(table, unit=unit, folder=folder) for table in tables]
    return "\n".join(parts)


def _check_unit(table: Seen, unit: str | None) -> None:
    """Refuses a column as the unit that identifies nobody by its type: the policy could not be opened."""
    for column, kind in table.columns:
        if unit is not None and column.lower() == unit.lower() and kind is not None and not identifies(kind):
            advice = "name the column that says whose row it is"
            if not never_identifies(kind):
                advice += (
                    ". If it has whole numbers, leave the unit out here and write it into the file, with "
                    'type = "BIGINT" for the column'
                )
            raise InvalidArgument(
                "unit", unit, f"it is of type {_short(kind)}, which does not identify anybody; {advice}"
            )


def _section(table: Seen, *, unit: str | None, folder: Path) -> str:
    lines = [f"[tables.{_key(table.name)}]", f"source = {_text(_placed(table.source, folder))}"]
    if table.table is not None and table.table != table.name:
        lines.append(f"table = {_text(table.table)}")
    if table.encoding is not None:
        lines.append(f"encoding = {_text(table.encoding)}")
    if unit is not None and (unit.lower() == "row" or table.has(unit)):
        lines.append(f"unit = {_text(unit)}")
    else:
        lines.append("# Whose rows are these? Nothing can be asked before one of the next lines is chosen.")
        lines += [f"# unit = {_text(column)}  # one person: all rows with this value" for column in table.candidates]
        if not table.candidates:
            lines.append('# unit = "..."  # the column that says whose row it is')
        lines.append('# unit = "row"  # every row is about another person')
        lines.append("# public = true  # no row is about anybody: this table is not protected")
    if unit is None or unit.lower() != "row":
        lines.append("# rows_per_unit = 1  # if nobody has more than one row")
        lines.append(
            "# max_groups = 10  # in how many groups of an answer one person counts, unless the question says so"
        )
        lines.append("# max_rows = 10  # and with how many rows in each")
    lines += ["", f"[tables.{_key(table.name)}.columns]", *_COLUMNS]
    if any(kind is None for _, kind in table.columns):
        lines.append(
            "# A CSV file has no types: declare them, or they are guessed from its first rows at every opening."
        )
    lines.append("# These are ideas from the names of columns: correct them, and remove the # of those that are right.")
    public = unit is None or (unit.lower() != "row" and not table.has(unit))  # it may be
    if public:
        listed = _text(f"{table.name}.column")
        lines.append(f"# If it is public, {{ keys_from = {listed} }} of a column of its own makes its values groups.")
    lines += [
        _declaration(column, kind, unit=unit, candidates=table.candidates, public=public)
        for column, kind in table.columns
    ]
    return "\n".join(lines) + "\n"


def _declaration(column: str, kind: str | None, *, unit: str | None, candidates: Sequence[str], public: bool) -> str:
    """What can be declared of a column, as a comment: the owner knows the numbers, and nobody else may say them."""
    if (unit is not None and column.lower() == unit.lower()) or (unit is None and column in candidates):
        fields, remark = ('type = "..."', "BIGINT, VARCHAR or UUID") if kind is None else ("", "")
    else:
        fields, remark = suggestion(column, kind)
        if public and not candidates and fields == "hidden = true":
            remark = f"{remark}; if the table is public and has each once: {{ unique = true }}, to join on it"
    said = ": ".join(part for part in ("" if kind is None else _short(kind), remark) if part)
    return f"# {_key(column)} = {{ {fields} }}{f'  # {said}' if said else ''}".replace("{  }", "{}")


def _short(kind: str) -> str:
    """A type without what is inside of it: the names in a nested type are left out."""
    return (
        kind
        if family(kind) != "other"
        else re.split(r"[(\[]", kind, maxsplit=1)[0] + ("[]" if kind.endswith("]") else "")
    )


def _fresh(name: str, found: Sequence[Seen]) -> str:
    taken = {table.name.lower() for table in found}
    number, fresh = 1, name
    while fresh.lower() in taken:
        number += 1
        fresh = f"{name}_{number}"
    return fresh


def _placed(source: str, folder: Path) -> str:
    """A relative path as seen from the folder of the policy; an absolute one as it is."""
    path = Path(source).expanduser()
    return str(path) if path.is_absolute() else os.path.relpath(path, folder)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
