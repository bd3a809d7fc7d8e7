"""OPTIONS (epsilon = 0.5, max_groups = 5, ...) at the end of a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.query.sql.text import closest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.query.sql.text import Source

__all__ = ["KNOWN_OPTIONS", "split_options"]

KNOWN_OPTIONS = ("epsilon", "delta", "max_groups", "max_rows", "bounds", "bounding")
CLOSING = {"(": ")", "[": "]", "{": "}"}


def split_options(source: Source, tokens: Sequence[Any]) -> tuple[int, tuple[tuple[str, Any], ...]]:
    """Where the question ends, and the options after it.

    A value is a number, a text, TRUE or FALSE, a list such as (0, 100), or names with values such as {spend: (0, 100)}.
    """
    depth = 0
    start = None
    for i, token in enumerate(tokens):
        if token.text in CLOSING:
            depth += 1
        elif token.text in CLOSING.values():
            depth -= 1
        elif depth == 0 and i and token.text.upper() == "OPTIONS" and i + 1 < len(tokens) and tokens[i + 1].text == "(":
            if tokens[i - 1].text.upper() in ("AS", "FROM", "JOIN", ","):
                continue
            start = i
    if start is None:
        return len(source.text), ()
    reader = _Reader(source, tokens[start + 1 :])
    reader.expect("(")
    found: list[tuple[str, Any]] = []
    while not reader.ahead(")"):
        token = reader.take()
        name = token.text.lower()
        if name not in KNOWN_OPTIONS:
            raise reader.refusal(token, f"there is no option '{token.text}'", closest(name, KNOWN_OPTIONS))
        if name in (known for known, _ in found):
            raise reader.refusal(token, f"the option '{name}' is given twice", "give it once")
        reader.expect("=")
        found.append((name, reader.value()))
        if not reader.ahead(")"):
            reader.expect(",")
    reader.expect(")")
    if reader.ahead(";"):
        reader.take()
    if reader.rest:
        raise reader.refusal(reader.rest[0], "something follows OPTIONS", "let OPTIONS (...) be the last clause")
    return tokens[start].start, tuple(sorted(found, key=lambda pair: pair[0]))


class _Reader:
    """Reads values from tokens."""

    def __init__(self, source: Source, tokens: Sequence[Any]) -> None:
        self.source, self.rest, self.last = source, list(tokens), None

    def refusal(self, token: Any, reason: str, advice: str) -> Exception:
        span = (token.start, token.end) if token is not None else None
        return self.source.refusal_at(span, reason, advice=advice)

    def ahead(self, text: str) -> bool:
        return bool(self.rest) and self.rest[0].text == text

    def take(self) -> Any:
        if not self.rest:
            raise self.refusal(self.last, "OPTIONS is not finished", "write OPTIONS (epsilon = 0.5)")
        self.last = self.rest.pop(0)
        return self.last

    def expect(self, text: str) -> None:
        token = self.take()
        if token.text != text:
            raise self.refusal(token, f"'{text}' is needed here", "write OPTIONS (epsilon = 0.5, bounds = (0, 100))")

    def value(self) -> Any:
        token = self.take()
        text = token.text
        kind = token.token_type.name
        if text in ("(", "["):
            items = []
            while not self.ahead(CLOSING[text]):
                items.append(self.value())
                if not self.ahead(CLOSING[text]):
                    self.expect(",")
            self.expect(CLOSING[text])
            return tuple(items)
        if text == "{":
            pairs: dict[str, Any] = {}
            while not self.ahead("}"):
                name = self.take().text
                self.expect(":")
                pairs[name] = self.value()
                if not self.ahead("}"):
                    self.expect(",")
            self.expect("}")
            return pairs
        if text == "-":
            number = self.value()
            if isinstance(number, int | float) and not isinstance(number, bool):
                return -number
        if text == "." and self.rest and self.rest[0].token_type.name == "NUMBER":
            return float(f".{self.take().text}")
        if kind == "STRING":
            return text
        if kind == "NUMBER":
            try:
                return int(text) if text.isdigit() else float(text)
            except ValueError:
                pass
        if text.upper() in ("TRUE", "FALSE"):
            return text.upper() == "TRUE"
        raise self.refusal(token, "this value is not understood", "write a number, a text, TRUE, FALSE or (0, 100)")
