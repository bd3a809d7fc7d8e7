"""Public texts as whole numbers while rows are read: keys of groups that take a byte or two.

Where groups are public, a text matters only as far as it is one of their list. So it can become a value of an ENUM,
which is the place in the list, when that is quickest: of a joined public table before rows are joined with it, of a
table about people before they are added up where several keys are grouped by together. Texts of one column alone are
quicker as they are: files have them as numbers already, and the engine groups by those. They become places in the list
after that, which takes less time than a join with it.

A text is compared byte by byte, as by `=`; what is not in the list is NULL, and in no group.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.query.plan import COLUMN_NAME, MARK, ONCE, STORED, TABLE_COLUMN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.engines import Session
    from discreet.query.plan import Block, Key

__all__ = ["Coded", "coded"]

_SHOWN = re.compile(rf"(?:SELECT |, )(?P<value>(?P<mark>{MARK})\.(?P<name>{COLUMN_NAME})) AS (?P<column>\w+)")
_ONCE = ONCE.replace(r"\*", r"(?P<star>\*)")
_READ = re.compile(
    rf" (?:FROM|JOIN) (?:{STORED}|(?P<once>{_ONCE})) AS (?P<mark>{MARK})(?: ON \({TABLE_COLUMN} = {TABLE_COLUMN}\))?"
)
_CODE = f"q__code {secrets.token_hex(8)}"
"""What a column of codes is called beside those of a table, of which none has this name."""


@dataclass(frozen=True)
class Coded:
    """The `rows` of a block, and SQL of those keys that are values of an ENUM, by column.

    `keys` are such before rows are added up, and `late` ones after that.
    """

    rows: str
    keys: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[str, str] = field(default_factory=dict)


def coded(session: Session, block: Block, *, ranged: bool) -> Coded:
    """The rows of a block with those keys as ENUMs for which that saves time; `ranged` as in `by_public_group`."""
    shown, joined = _read(block.rows) if ranged else ({}, {})
    alone = len(block.keys) == 1
    edits: list[tuple[int, int, str]] = []
    keys: dict[str, str] = {}
    late: dict[str, str] = {}
    for key in block.keys:
        kind = _codes(session, key) if alone or ranged else None
        if kind is None:
            continue
        found = shown.get(key.column)
        once = None if found is None else joined.get(found["mark"])
        if found is not None and once is not None:
            name = f'"{_CODE} {key.column}"'
            edits.append((*found.span("value"), f"{found['mark']}.{name}"))
            star = once.end("star")
            edits.append((star, star, f", TRY_CAST({found['name']} AS {kind}) AS {name}"))
            keys[key.column] = key.column
        else:
            (late if alone else keys)[key.column] = f"TRY_CAST({key.column} AS {kind})"
    rows = block.rows
    for start, end, text in sorted(edits, reverse=True):
        rows = rows[:start] + text + rows[end:]
    return Coded(rows, keys, late)


def _read(rows: str) -> tuple[dict[str, re.Match[str]], dict[str, re.Match[str]]]:
    """Where each column of such rows comes from, and the tables of which they have one row for each value, by alias.

    Rows are read from their beginning, as far as they are made of columns alone (see `Block.plain`).
    """
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
