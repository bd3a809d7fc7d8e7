"""What people write in steps: names of columns, and expressions in SQL, each checked to be one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidArgument
from discreet.query.sql.text import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "aliased",
    "expression",
    "expressions",
    "identifier",
    "is_among",
    "is_plain",
    "name_of",
    "names_of",
    "ordered",
]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r'"((?:[^"]|"")+)"')
_ORDER = re.compile(r"(?P<what>.*?)(?P<how>(\s+(ASC|DESC))?(\s+NULLS\s+(FIRST|LAST))?)\s*", re.IGNORECASE | re.DOTALL)


def identifier(name: str) -> str:
    """The name as it is where it is plain, quoted where it is not, or may be a word of SQL."""
    from sqlglot.dialects.duckdb import DuckDB

    return name if is_plain(name) and name.upper() not in DuckDB.Tokenizer.KEYWORDS else quoted(name)


def is_plain(name: Any) -> bool:
    """Whether it is a name of letters, digits and _."""
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None


def is_among(name: str, columns: Iterable[str]) -> bool:
    """Whether it is the name of one of these, by SQL's rule: case does not matter."""
    return name.lower() in (column.lower() for column in columns)


def name_of(text: Any, columns: Sequence[str]) -> str | None:
    """The name that a text is: of a column, with or without quotes, or like one; None if it is something else."""
    if not isinstance(text, str):
        return None
    if is_among(text, columns) or is_plain(text):
        return text
    found = _QUOTED.fullmatch(text.strip())
    return None if found is None else found[1].replace('""', '"')


def names_of(on: Any, columns: Sequence[str]) -> list[str]:
    """The columns by which rows are joined; none if it is a condition."""
    if isinstance(on, str):
        name = name_of(on, columns)
        return [] if name is None else [name]
    listed = list(on) if isinstance(on, Iterable) else []
    if not listed or not all(isinstance(one, str) for one in listed):
        raise InvalidArgument("on", on, "name one column or more, or write a condition")
    return [name_of(one, columns) or one for one in listed]


def aliased(name: str, text: str) -> str:
    """An expression under a name, as a SELECT lists it."""
    return text if text == identifier(name) else f"{text} AS {identifier(name)}"


def expressions(named: Mapping[str, str], columns: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Names with their expressions."""
    return tuple((name, expression(name, text, columns)) for name, text in named.items())


def ordered(text: str, columns: Sequence[str]) -> str:
    """A name or an expression with its direction, as ORDER BY lists it."""
    if not isinstance(text, str):
        raise InvalidArgument("by", text, "name a column, as in 'n DESC'")
    found = _ORDER.fullmatch(text)
    assert found is not None
    name = name_of(found["what"], columns)
    what = expression("by", found["what"], columns) if name is None else identifier(name)
    return what + " ".join(["", *found["how"].upper().split()])


def expression(argument: str, text: str, columns: Sequence[str]) -> str:
    """The text, if it is one expression: what begins or ends elsewhere would change the meaning of other steps."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError

    advice = "write one expression in SQL, such as 'spend > 0' or 'AVG(spend)'"
    bare = next((name for name in columns if not is_plain(name) and _is_bare(name, str(text))), None)
    if bare is not None:
        advice = f"names with other signs than letters, digits and _ stand in double quotes: {quoted(bare)}"
    if not isinstance(text, str):
        raise InvalidArgument(argument, text, advice)
    try:
        commented = any(token.comments for token in DuckDB().tokenize(text))
        trees = sqlglot.parse(text, read="duckdb")
    except (SqlglotError, RecursionError):
        raise InvalidArgument(argument, text, advice) from None
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Alias):
        after = "leave out the name after AS: names are given as keywords"
        raise InvalidArgument(argument, text, after if bare is None else advice)
    query = isinstance(tree, exp.Query) and not isinstance(tree, exp.Subquery)
    if tree is None or commented or query or isinstance(tree, exp.DDL | exp.Drop | exp.Command | exp.Star | exp.Tuple):
        raise InvalidArgument(argument, text, advice)
    return text.strip()


def _is_bare(name: str, text: str) -> bool:
    """Whether a name stands in a text without the quotes that it needs."""
    return name.lower() in text.lower().replace(quoted(name).lower(), "")
