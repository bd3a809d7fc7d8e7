"""The text of a question, and refusals that point into it."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.errors import QueryRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import exp

__all__ = ["Source", "closest", "is_plain", "named", "quoted", "string"]

_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/""", re.DOTALL)


@dataclass(frozen=True)
class Source:
    """What the analyst wrote."""

    text: str

    def refusal(self, reason: str, *, advice: str, at: exp.Expr | None = None) -> QueryRefused:
        """The error that points at the node `at` in the text."""
        return self.refusal_at(self.span(at) if at is not None else None, reason, advice=advice)

    def refusal_at(self, span: tuple[int, int] | None, reason: str, *, advice: str) -> QueryRefused:
        """The error that points at the characters from span[0] to span[1]."""
        if span is None:
            return QueryRefused(reason, advice=advice)
        start = min(max(span[0], 0), max(len(self.text) - 1, 0))
        line = self.text.count("\n", 0, start) + 1
        begin = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", begin)
        row = self.text[begin : end if end >= 0 else len(self.text)]
        width = max(1, min(span[1] + 1, begin + len(row)) - start)
        offset = start - begin
        if len(row) > 120:  # show the neighbourhood of a very long line
            cut = max(0, offset - 50)
            row, offset = row[cut : cut + 110], offset - cut
            width = min(width, max(1, len(row) - offset))
        row = row.replace("\t", " ").replace("\r", " ")
        snippet = f"{row}\n{' ' * offset}{'^' * width}"
        return QueryRefused(reason, advice=advice, line=line, column=start - begin + 1, snippet=snippet)

    def span(self, node: exp.Expr) -> tuple[int, int] | None:
        """The first and last character of a node, from the positions of the tokens inside it."""
        found = [part.meta for part in node.walk() if "start" in part.meta]
        if found:
            return self._with_name(node, min(meta["start"] for meta in found), max(meta["end"] for meta in found))
        above = node.parent
        return self.span(above) if above is not None else None

    def _with_name(self, node: exp.Expr, start: int, end: int) -> tuple[int, int]:
        """The place of a function with its name and parentheses, of which the parser keeps the arguments alone."""
        from sqlglot import exp

        calls = re.search(r"(?:[A-Za-z_]\w*\s*\(\s*)+$", self.bare[:start])
        if calls is None or not isinstance(node, exp.Func):
            return start, end
        names = list(re.finditer(r"([A-Za-z_]\w*)\s*\(", calls[0]))
        other = names[-1:] if isinstance(node, exp.AggFunc) else []  # written by another name
        own = [found for found in names if found[1].upper() in node.sql_names()] or other
        if not own:
            return start, end
        depth = len(names) - names.index(own[-1])
        closed = re.match(rf"(?:\s*\)){{{depth}}}", self.bare[end + 1 :])
        return calls.start() + own[-1].start(), end + (closed.end() if closed is not None else 0)

    @property
    def bare(self) -> str:
        """The text with signs of no meaning in place of quoted names, texts and comments."""
        return _QUOTED.sub(lambda found: "\0" * len(found[0]), self.text)

    def place_of(self, word: str) -> tuple[int, int] | None:
        """The first and last character of a word, where it first stands."""
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.bare, re.IGNORECASE)
        return None if found is None else (found.start(), found.end() - 1)

    def called(self, node: exp.Expr) -> str | None:
        """The name of a function as it was written, which the parser may have translated."""
        span = self.span(node)
        if span is None:
            return None
        found = re.match(r"([A-Za-z_]\w*)\s*\(", self.text[span[0] :])
        found = found or re.search(r"([A-Za-z_]\w*)\s*\(\s*$", self.text[: span[0]])  # only the argument has a place
        return None if found is None else found[1]

    def written(self, node: exp.Expr, *, limit: int = 60) -> str:
        """A short form of what stands there."""
        if "written" in node.meta:
            return str(node.meta["written"])
        name = _column(node)
        if name is not None:
            return name if len(name) <= limit else name[: limit - 3] + "..."
        from sqlglot.errors import ErrorLevel

        shown = node.sql(
            dialect="duckdb", comments=False, normalize_functions="lower", unsupported_level=ErrorLevel.IGNORE
        )
        text = " ".join(shown.split())
        return text if len(text) <= limit else text[: limit - 3] + "..."


def _column(node: exp.Expr) -> str | None:
    """The name of a column that stands alone and without quotes, which need not be generated."""
    from sqlglot import exp
    from sqlglot.generators.duckdb import DuckDBGenerator

    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or len(node.parts) > 1:
        return None
    name = node.name
    plain = is_plain(name) and not node.this.quoted and name.lower() not in DuckDBGenerator.RESERVED_KEYWORDS
    return name if plain else None


def closest(name: str, known: Iterable[str]) -> str:
    """The start of an advice: the closest known name, or the first names that exist.

    >>> closest("patientid", ["Patient ID", "x"])
    'did you mean "Patient ID"?'
    """
    names = list(dict.fromkeys(known))
    lower = {other.strip().lower(): other for other in names}
    close = difflib.get_close_matches(name.strip().lower(), lower, n=1)
    if close:
        meant = lower[close[0]]
        return f"did you mean '{meant}'?" if is_plain(meant) else f"did you mean {quoted(meant)}?"
    if not names:
        return "there is none to choose from."
    listed = ", ".join(map(named, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return f"there {'are' if len(names) > 1 else 'is only'}: {listed}."


def is_plain(name: str) -> bool:
    """Whether a name is written without quotes; of one that is a word of SQL, the parser says so."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None


def named(name: str, table: str = "") -> str:
    """A name as it is written in SQL, of its table if there is one.

    >>> named("patient id", "visits")
    'visits."patient id"'
    """
    return ".".join(part if is_plain(part) else quoted(part) for part in (table, name) if part)


def quoted(name: str) -> str:
    """A name as DuckDB reads it whatever its characters are."""
    return '"' + name.replace('"', '""') + '"'


def string(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"
