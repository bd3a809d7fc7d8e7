"""Public texts as whole numbers while rows are read: keys of groups that take a byte or two.

Where groups are public, a text matters only as far as it is one of their list. So it can become a value of an ENUM,
which is the place in the list, as early as there are few of them: of a joined public table before rows are joined with
it, of a table about people where several keys are grouped by together. Texts of one column alone are quicker as they
are: files have them as numbers already, and the engine groups by those.

A text is compared byte by byte, as by `=`; what is not in the list is NULL, and in no group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.query.plan import COLUMN_NAME, MARK, ONCE, STORED, TABLE_COLUMN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.engines import Session
    from discreet.query.plan import Block, Key

__all__ = ["Coded", "coded"]

_SHOWN = re.compile(rf"(?:SELECT |, )(?P<value>(?P<mark>{MARK})\.(?P<name>{COLUMN_NAME})) AS (?P<column>\w+)")
_READ = re.compile(
    rf" (?:FROM|JOIN) (?:{STORED}|(?P<once>{ONCE})) AS (?P<mark>{MARK})(?: ON \({TABLE_COLUMN} = {TABLE_COLUMN}\))?"
)


@dataclass(frozen=True)
class Coded:
    """The `rows` of a block, and SQL of those keys that are values of an ENUM, by column."""

    rows: str
    keys: Mapping[str, str] = field(default_factory=dict)


def coded(session: Session, block: Block) -> Coded:
    """The rows of a block of columns alone, with such keys as ENUMs for which that saves time."""
    assert block.plain
    shown, joined = _read(block.rows)
    edits: list[tuple[int, int, str]] = []
    keys: dict[str, str] = {}
    for key in block.keys:
        once = joined.get(shown[key.column]["mark"])
        if once is None and len(block.keys) == 1:
            continue
        kind = _codes(session, key)
        if kind is None:
            continue
        keys[key.column] = f"TRY_CAST({key.column} AS {kind})"
        if once is not None:
            found, name = shown[key.column], f'"q__code {key.column}"'
            edits.append((*found.span("value"), f"{found['mark']}.{name}"))
            star = once.start("once") + once["once"].rindex("* FROM ") + 1
            edits.append((star, star, f", TRY_CAST({found['name']} AS {kind}) AS {name}"))
            keys[key.column] = key.column
    rows = block.rows
    for start, end, text in sorted(edits, reverse=True):
        rows = rows[:start] + text + rows[end:]
    return Coded(rows, keys)


def _read(rows: str) -> tuple[dict[str, re.Match[str]], dict[str, re.Match[str]]]:
    """Where each column of such rows comes from, and the tables of which they have one row for each value, by alias."""
    shown: dict[str, re.Match[str]] = {}
    joined: dict[str, re.Match[str]] = {}
    position = 0
    while found := _SHOWN.match(rows, position):
        shown[found["column"]] = found
        position = found.end()
    while found := _READ.match(rows, position):
        if found["once"]:
            joined[found["mark"]] = found
        position = found.end()
    return shown, joined


def _codes(session: Session, key: Key) -> str | None:
    """The ENUM of the values of a key, if they are different texts and there is room for one."""
    texts = [value for value in key.values or () if isinstance(value, str)]
    if key.sql_type != "VARCHAR" or not texts or len(set(texts)) != len(key.values or ()):
        return None
    return session.codes(texts)
