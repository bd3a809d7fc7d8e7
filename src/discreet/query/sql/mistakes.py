"""Mistakes in writing a question: what was meant, and where; the words of the parser stay behind."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from discreet.query.sql.text import is_plain, named, quoted

if TYPE_CHECKING:
    from discreet.query.catalog import Catalog
    from discreet.query.sql.text import Source

__all__ = ["NEVER", "check_spelling", "question_for", "syntax"]

_RESERVED = {
    "all", "asc", "case", "check", "column", "default", "desc", "distinct", "else", "end", "fetch", "for", "group",
    "in", "into", "like", "limit", "offset", "on", "only", "order", "primary", "references", "select", "some", "table",
    "then", "to", "union", "unique", "using", "when", "window", "with",
}  # fmt: skip

_CHANGES = {
    "ALTER", "ATTACH", "COPY", "CREATE", "DELETE", "DETACH", "DROP", "EXPORT", "GRANT", "IMPORT", "INSERT", "LOAD",
    "MERGE", "RENAME", "REPLACE", "REVOKE", "TRUNCATE", "UPDATE", "UPSERT", "VACUUM",
}  # fmt: skip
NEVER = "discreet answers SELECT questions only, and never changes tables: write SELECT ... FROM ..."
_WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "JOIN", "LEFT", "INNER", "DISTINCT",
    "BETWEEN", "UNION", "WITH", "CASE", "WHEN", "THEN", "ELSE", "FILTER", "OVER", "PARTITION", "QUALIFY", "USING",
    "INTERVAL", "OPTIONS", "DESC", "LIKE",
)  # fmt: skip


def check_spelling(source: Source, tokens: list[Any]) -> None:
    """Refuses what other databases write in another way."""
    _check_top(source, tokens)
    _check_backticks(source)


def _check_top(source: Source, tokens: list[Any]) -> None:
    """Refuses SELECT TOP 5, which other databases write for LIMIT 5."""
    words = [token.text.upper() for token in tokens]
    for place in range(1, len(tokens) - 1):
        if words[place] != "TOP" or words[place - 1] not in ("SELECT", "DISTINCT", "ALL"):
            continue
        number = place + 1 + (words[place + 1] == "(")
        if number < len(tokens) and words[number].isdigit():
            raise source.refusal_at(
                (tokens[place].start, tokens[number].end),
                "SELECT TOP is not known here",
                advice=f"write LIMIT {words[number]} at the end",
            )


def _check_backticks(source: Source) -> None:
    """Refuses `name`, which other databases write for "name"."""
    found = re.search(r"`([^`\n]*)`?", source.bare)
    if found is not None:
        name = source.text[found.start(1) : found.end(1)]
        raise source.refusal_at(
            (found.start(), found.end() - 1),
            "backticks have no meaning here",
            advice=f"write {named(name)}: a name stands as it is, or in double quotes if it has spaces or signs",
        )


def question_for(word: str) -> str:
    """What to write instead of a statement that begins with this word."""
    if word in ("DESCRIBE", "DESC", "SHOW", "SUMMARIZE", "TABLE"):
        return "print(curator.tables), or `discreet query tables`, shows the tables and their columns"
    if word == "EXPLAIN":
        return "curator.explain(...), or `discreet query explain`, explains a SELECT"
    if word in ("PIVOT", "UNPIVOT"):
        return "write SELECT, with COUNT(*) FILTER (WHERE ...) for each column, or with GROUP BY"
    if word in _CHANGES:
        return NEVER
    meant = difflib.get_close_matches(word, ("SELECT", "WITH", "FROM"), n=1)
    return f"did you mean {meant[0]}?" if meant else "write SELECT ... FROM ..."


def syntax(source: Source, error: Any, tokens: list[Any], catalog: Catalog) -> Exception:
    """The place of a syntax error; the words of the parser stay behind."""
    found = (getattr(error, "errors", None) or [{}])[0]
    line, column, word = found.get("line"), found.get("col"), found.get("highlight") or ""
    span = None
    if line and column:
        lines = source.text.split("\n")
        end = sum(len(row) + 1 for row in lines[: line - 1]) + column - 1
        span = (max(0, end - max(len(word), 1) + 1), end)
    near = f" near '{word[:40]}'" if word else ""
    meant = None if span is None else _unquoted(source, span, catalog)
    if meant is not None:
        place, what, name = meant
        advice = f"there is a {what} {quoted(name)}: a name with spaces or signs stands in double quotes"
        return source.refusal_at(place, f"the SQL cannot be read{near}", advice=advice)
    misspelt = None if span is None else _misspelt(tokens, span[1], catalog)
    if misspelt is not None:
        token, advice = misspelt
        return source.refusal_at((token.start, token.end), f"the SQL cannot be read{near}", advice=advice)
    advice = "check commas, parentheses and the spelling"
    known = next((one.name for table in catalog for one in table.columns if one.name.lower() == word.lower()), None)
    if known is not None:
        advice = f"there is a column {quoted(known)}, which is also a word of SQL: it stands in double quotes"
    elif word.lower() in _RESERVED:
        advice += f'; a name that is a word of SQL is written "{word[:40]}"'
    return source.refusal_at(span, f"the SQL cannot be read{near}", advice=advice)


def _misspelt(tokens: list[Any], end: int, catalog: Catalog) -> tuple[Any, str] | None:
    """Where the parser stopped, or up to three words before, one that is nearly a word of SQL, and what was meant."""
    names = {name.lower() for table in catalog for name in (table.name, *(one.name for one in table.columns))}
    read = [token for token in tokens if token.start <= end][-4:]
    for before, token in zip([None, *read], read, strict=False):
        if before is not None and before.text.upper() in ("GROUP", "ORDER", "PARTITION") and token.text.upper() != "BY":
            return token, f"write {before.text.upper()} BY"
    for token in reversed(read):
        word = token.text.upper()
        if not word.isalpha() or word in _WORDS or word.lower() in names:
            continue
        meant = difflib.get_close_matches(word, _WORDS, n=1, cutoff=0.75)
        if meant:
            return token, f"did you mean {meant[0]}?"
    return None


def _unquoted(source: Source, span: tuple[int, int], catalog: Catalog) -> tuple[tuple[int, int], str, str] | None:
    """Where the parser stopped, a name that stands without the quotes it needs: its place, what it names, itself."""
    tables = catalog.tables.values()
    names = [("column", one.name) for table in tables for one in table.columns]
    for what, name in [*names, *(("table", table.name) for table in tables)]:
        if is_plain(name) or not name.strip():
            continue
        words = r"\s+".join(re.escape(word) for word in name.split())
        for found in re.finditer(rf"(?<!\w){words}(?!\w)", source.bare, re.IGNORECASE):
            if found.start() <= span[1] and span[0] < found.end():
                return (found.start(), found.end() - 1), what, name
    return None
