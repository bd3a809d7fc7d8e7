"""Checks of what people call data sets, analysts and groups, and of other text that is stored."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

from discreet.errors import InvalidArgument

__all__ = ["BOUNDS", "name", "names", "text", "unknown", "unknown_holder"]

BOUNDS = "(bounds)"
"""Under this name stands what was spent on bounds for everybody; it is nobody who asks, and in no group."""

_LONGEST_NAME = 200
_LONGEST_TEXT = 1_000_000


def name(argument: str, value: object) -> str:
    """A name: short, printable, without space around it, and accents as Unicode composes them (NFC).

    So two that look alike are alike; letters of different alphabets excepted, which nobody can tell apart.
    """
    checked = unicodedata.normalize("NFC", text(argument, value, longest=_LONGEST_NAME))
    if not checked or checked != checked.strip() or not checked.isprintable():
        raise InvalidArgument(argument, value, "pass a name of printable characters without space around it")
    return checked


def names(argument: str, values: object) -> tuple[str, ...]:
    """Several names, each once, in order of the alphabet."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgument(argument, values, "pass a list of names, such as ['ada', 'grace']")
    checked = sorted({name(argument, value) for value in values})
    if not checked:
        raise InvalidArgument(argument, values, "pass at least one name")
    return tuple(checked)


def text(argument: str, value: object, *, longest: int = _LONGEST_TEXT) -> str:
    """Text that can be stored."""
    if not isinstance(value, str):
        raise InvalidArgument(argument, value, f"pass text (got {type(value).__name__})")
    if len(value) > longest:
        raise InvalidArgument(argument, value, f"pass at most {longest} characters (got {len(value)})")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(argument, value, "pass text without half characters (lone surrogates)") from None
    if "\0" in value:
        raise InvalidArgument(argument, value, "pass text without NUL characters")
    return value


def unknown(dataset: str, known: Iterable[str]) -> InvalidArgument:
    """No such data set; offers the closest one."""
    return InvalidArgument(
        "dataset",
        dataset,
        "it has no budget in this ledger: set one with ledger.establish(...) or `discreet ledger establish`"
        f"{_hint(dataset, known)}",
    )


def unknown_holder(dataset: str, holder: str, name: str, known: Iterable[str]) -> InvalidArgument:
    """No budget of such an analyst or group; offers the closest one that has a budget."""
    return InvalidArgument(
        holder,
        name,
        f"this {holder} has no budget on '{dataset}' that could be changed: set one with ledger.limit(...) or "
        f"`discreet ledger limit`{_hint(name, known)}",
    )


def _hint(wrong: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(wrong, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
