"""What may stand in a policy file: fields with their types, checked one by one; the first problem is told.

Written out here because a library for it takes longer to load than a question takes to be answered.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.engines.names import closest
from discreet.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["checked_document"]


@dataclass(frozen=True)
class _Kind:
    """A type of values, with the words that ask for one."""

    types: tuple[type, ...]
    words: str
    or_nothing: bool = True
    """Whether null, which YAML can say, stands for leaving the field out."""

    def admits(self, value: object) -> bool:
        """Whether it is such a value; true is no number, though Python says so."""
        if value is None:
            return self.or_nothing
        return isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool))


_TEXT = _Kind((str,), "a text in quotes")
_NAME = _Kind((str,), "a text in quotes", or_nothing=False)
_PATHS = _Kind((str, list), "a path in quotes, or a list of them", or_nothing=False)
_WHOLE = _Kind((int,), "a whole number")
_NUMBER = _Kind((int, float), "a number")
_DELTA = _Kind((int, float), "a number", or_nothing=False)
_TRUTH = _Kind((bool,), "true or false", or_nothing=False)
_LIST = _Kind((list,), "a list in brackets")
_VALUE = _Kind((bool, int, float, str, dt.date), "a number, a text, true, false or a date", or_nothing=False)
_TABLE = _Kind((dict,), "a table of fields", or_nothing=False)
_SECTION = _Kind((dict,), "a table of fields")

_COLUMN_FIELDS = {"type": _TEXT, "bounds": _LIST, "keys": _LIST, "keys_from": _TEXT, "hidden": _TRUTH, "unique": _TRUTH}
_TABLE_FIELDS = {
    "source": _PATHS,
    "table": _TEXT,
    "encoding": _TEXT,
    "unit": _TEXT,
    "public": _TRUTH,
    "rows_per_unit": _WHOLE,
    "max_groups": _WHOLE,
    "max_rows": _WHOLE,
    "columns": _TABLE,
}
_BUDGET_FIELDS = {"epsilon": _NUMBER, "delta": _DELTA, "rho": _NUMBER, "mu": _NUMBER}
_GRANT_FIELDS = {**_BUDGET_FIELDS, "period": _TEXT}
_WHOLE_FIELDS = {**_GRANT_FIELDS, "bounds_share": _NUMBER}
_FILE_FIELDS = {
    "name": _NAME,
    "ledger": _TEXT,
    "ledger_key": _TEXT,
    "ledger_origin": _TEXT,
    "budget": _SECTION,
    "analysts": _SECTION,
    "shared": _TRUTH,
    "tables": _TABLE,
}


def checked_document(shown: str, document: Any) -> dict[str, Any]:
    """The document of a policy file, if every field of it is known and of its type."""
    _section(shown, "", document, _FILE_FIELDS, needed=("name", "tables"))
    if document.get("budget") is not None:
        _section(shown, "budget", document["budget"], _WHOLE_FIELDS)
    for name, limit in (document.get("analysts") or {}).items():
        _section(shown, f"analysts.{name}", limit, _GRANT_FIELDS)
    for name, table in document["tables"].items():
        place = f"tables.{name}"
        _section(shown, place, table, _TABLE_FIELDS, needed=("source",))
        for number, path in enumerate(table["source"] if isinstance(table["source"], list) else ()):
            _value(shown, f"{place}.source.{number}", path, _NAME)
        for column, facts in table.get("columns", {}).items():
            _section(shown, f"{place}.columns.{column}", facts, _COLUMN_FIELDS)
            for field in ("bounds", "keys"):
                for number, value in enumerate(facts.get(field) or ()):
                    _value(shown, f"{place}.columns.{column}.{field}.{number}", value, _VALUE)
    found: dict[str, Any] = document
    return found


def _section(
    shown: str, place: str, section: Any, fields: Mapping[str, _Kind], *, needed: tuple[str, ...] = ()
) -> None:
    _value(shown, place, section, _TABLE)
    where = f"{shown}: {place}" if place else shown
    unknown = next((str(name) for name in section if name not in fields), None)
    for name, kind in fields.items():
        if name in section:
            _value(shown, f"{place}.{name}" if place else name, section[name], kind)
        elif name in needed and unknown is None:
            raise PolicyError(where, f"the field '{name}' is missing", "Add it; `discreet init` shows a policy.")
        elif name in needed:
            raise PolicyError(
                where,
                f"the field '{name}' is missing, and '{unknown}' is no field",
                closest(str(unknown), list(fields)),
            )
    if unknown is not None:
        raise PolicyError(where, f"unknown field '{unknown}'", closest(unknown, list(fields)))


def _value(shown: str, place: str, value: object, kind: _Kind) -> None:
    if not kind.admits(value):
        where = f"{shown}: {place}" if place else shown
        raise PolicyError(where, f"{value!r:.60} is of the wrong type", f"Write {kind.words}.")
