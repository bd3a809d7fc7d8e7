"""The roll: which budgets there are and who is in which group, as the entries say it.

The tables of budgets and of members only save reading all entries, and whoever deletes a row of them lifts a limit. So
a process reads the entries about them once, by their index, goes on with those that are new since, and believes the
tables where they say the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from discreet.ledger.statements import first, found

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.engine import Connection

__all__ = ["Holder", "Roll", "Unreadable"]

_SETTING, _MOVING = ("establish", "limit", "amend"), ("enrol", "dismiss")
_OWNED, _JOINED = (", ".join(f"'{kind}'" for kind in kinds) for kinds in (_SETTING, _MOVING))
_HOLDER = f"""
    CASE WHEN kind IN ({_OWNED}) AND json_valid(details) THEN json_extract(details, '$.holder') END AS holder,
    CASE WHEN kind IN ({_OWNED}) AND json_valid(details) THEN json_extract(details, '$.name') END AS name
"""
_NEWEST = "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
_SINCE = f"""
    SELECT number, kind, dataset, hash, CASE WHEN kind IN ({_JOINED}) THEN details END AS details, {_HOLDER}
    FROM entries
    WHERE number >= :known AND (
        number = :known OR kind IN ({_OWNED}, {_JOINED}) OR number = (SELECT MAX(number) FROM entries)
    )
    ORDER BY number
"""
_OF_A_DATASET = f"""
    SELECT number, {_HOLDER} FROM entries WHERE dataset = :dataset AND kind IN ({_OWNED}) ORDER BY number
"""
_OF_GROUPS = f"""
    SELECT number, kind, details FROM entries WHERE dataset IS NULL AND kind IN ({_JOINED}) ORDER BY number
"""

Holder = tuple[str, str]
"""`dataset`, `analyst` or `group`, and the name; that of a data set is empty."""


class Unreadable(Exception):
    """An entry about a budget or a group cannot be read."""

    def __init__(self, entry: int) -> None:
        self.entry = entry
        super().__init__(entry)


class Roll:
    """Budgets by data set and groups by analyst; every method works inside a transaction of the caller."""

    def __init__(self) -> None:
        self._known: tuple[int, object] | None = None  # number and hash of the last entry that was read
        self._budgets: dict[str, dict[Holder, int]] = {}  # of the data sets that were asked for
        self._groups: dict[str, set[str]] | None = None  # by analyst, once they were asked for

    def budgets(self, connection: Connection, dataset: str, analyst: str | None) -> dict[Holder, int]:
        """The entries that set the budgets that apply to an analyst; without one, all of the data set's."""
        self._go_on(connection)
        if dataset not in self._budgets:
            read: dict[Holder, int] = {}
            for row in found(connection, _OF_A_DATASET, {"dataset": dataset}):
                _set(row, read)
            self._budgets[dataset] = read
        budgets = self._budgets[dataset]
        if analyst is None:
            return dict(budgets)
        groups = self._of_analysts(connection).get(analyst, set())
        holders = [("dataset", ""), ("analyst", analyst), *(("group", group) for group in groups)]
        return {holder: budgets[holder] for holder in holders if holder in budgets}

    def groups(self, connection: Connection) -> dict[str, set[str]]:
        """Who is in each group that has members."""
        self._go_on(connection)
        inside: dict[str, set[str]] = {}
        for analyst, groups in self._of_analysts(connection).items():
            for group in groups:
                inside.setdefault(group, set()).add(analyst)
        return inside

    def _of_analysts(self, connection: Connection) -> dict[str, set[str]]:
        if self._groups is None:
            read: dict[str, set[str]] = {}
            for row in found(connection, _OF_GROUPS, {}):
                _move(row, read)
            self._groups = read
        return self._groups

    def _go_on(self, connection: Connection) -> None:
        """Reads what is new since the last time; all of it again if what was read is not there any more."""
        rows = [] if self._known is None else found(connection, _SINCE, {"known": self._known[0]})
        if not rows or (rows[0]["number"], rows[0]["hash"]) != self._known:
            self._budgets, self._groups = {}, None
            newest = first(connection, _NEWEST)
            self._known = None if newest is None else (newest["number"], newest["hash"])
            return
        for row in rows[1:]:
            if row["kind"] in _SETTING and row["dataset"] in self._budgets:
                _set(row, self._budgets[row["dataset"]])
            elif row["kind"] in _MOVING and self._groups is not None:
                _move(row, self._groups)
        self._known = (rows[-1]["number"], rows[-1]["hash"])


def _set(row: sqlite3.Row, budgets: dict[Holder, int]) -> None:
    if not isinstance(row["holder"], str) or not isinstance(row["name"], str):
        raise Unreadable(row["number"])
    budgets[row["holder"], row["name"]] = row["number"]


def _move(row: sqlite3.Row, groups: dict[str, set[str]]) -> None:
    try:
        details = json.loads(row["details"])
        for analyst in details["analysts"]:
            inside = groups.setdefault(analyst, set())
            inside.add(details["group"]) if row["kind"] == "enrol" else inside.discard(details["group"])
    except (ValueError, TypeError, KeyError) as error:
        raise Unreadable(row["number"]) from error
