"""Names and texts as they are written in SQL, and the one that was meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument, SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["closest", "distinct_names", "literal", "literals", "plain_type", "quoted"]

_LISTED = 20
_SIMPLE = (
    r"BOOL(?:EAN)?|U?TINYINT|U?SMALLINT|U?INT(?:EGER)?|U?BIGINT|U?HUGEINT|INT[1248]|FLOAT|REAL|FLOAT[48]|DOUBLE"
    r"|DOUBLE PRECISION|VARCHAR|TEXT|STRING|CHAR|DATE|TIME|TIMESTAMP|DATETIME|TIMESTAMPTZ|TIMESTAMP WITH TIME ZONE"
    r"|UUID|INTERVAL|BLOB"
)
_TYPE = re.compile(rf"(?:{_SIMPLE}|(?:DECIMAL|NUMERIC)(?:\(\d{{1,2}}(?:, ?\d{{1,2}})?\))?|VARCHAR\(\d{{1,9}}\))")


def closest(name: str, known: Sequence[str]) -> str:
    """Advice to somebody who wrote a name that does not exist: the closest one, and those that there are.

    >>> closest("usr_id", ["user_id", "city"])
    "Did you mean 'user_id'? There are: user_id, city."
    >>> closest("visits.city", ["user_id", "city"])
    "Did you mean 'city', without 'visits.'? There are: user_id, city."
    """
    import difflib

    if not known:
        return "There are none."
    folded = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), list(folded), n=1)
    meant = f"Did you mean '{folded[close[0]]}'? " if close else ""
    before, _, last = name.rpartition(".")
    if before and last.lower() in folded:
        meant = f"Did you mean '{folded[last.lower()]}', without '{before}.'? "
    more = f", … ({len(known)} in all)" if len(known) > _LISTED else ""
    verb = "are" if len(known) > 1 else "is only"
    return f"{meant}There {verb}: {', '.join(known[:_LISTED])}{more}."


def quoted(name: str) -> str:
    """The name as SQL reads it, whatever it contains.

    >>> quoted('a "b" c')
    '"a ""b"" c"'
    """
    if not name or "\0" in name:
        raise InvalidArgument("name", name, "a name in SQL has at least one character and no NUL character")
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """The text as a SQL string.

    >>> literal("it's")
    "'it''s'"
    """
    if "\0" in text:
        raise InvalidArgument("text", text, "a text in SQL has no NUL character")
    return "'" + text.replace("'", "''") + "'"


def literals(texts: Sequence[str]) -> str:
    """The texts as a SQL list.

    >>> literals(["a.csv", "b.csv"])
    "['a.csv', 'b.csv']"
    """
    return f"[{', '.join(literal(text) for text in texts)}]"


def distinct_names(source: str, names: Sequence[str]) -> None:
    """Refuse columns whose names SQL cannot tell apart; DuckDB would rename the second one."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            why = f"has the columns '{seen[name.lower()]}' and '{name}', which SQL cannot tell apart"
            raise SourceError(source, why, "Rename one of them.")
        seen[name.lower()] = name


def plain_type(argument: str, text: object) -> str:
    """The name of a type of single values, in capitals: numbers, texts, truth values, dates and times.

    >>> plain_type("type", "decimal(10,2)")
    'DECIMAL(10,2)'
    """
    name = " ".join(text.upper().split()) if isinstance(text, str) else ""
    if not _TYPE.fullmatch(name):
        raise InvalidArgument(
            argument,
            text,
            "write a DuckDB type of single values, such as BIGINT, DOUBLE, DECIMAL(18,2), VARCHAR, BOOLEAN, DATE, "
            "TIMESTAMP or UUID",
        )
    return name
