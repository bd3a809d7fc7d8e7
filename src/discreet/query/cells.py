"""The cells of an answer as text: numbers in the digits that their error leaves, in columns that line up."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from discreet.query.pooling import ENDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from discreet.query.pooling import Pair

__all__ = ["cells", "printable"]

_LARGE, _FINE = 1e15, 12
_UNKNOWN = "…"


def cells(rows: Sequence[Mapping[str, Any]], names: Sequence[str], pair: Pair = ENDS[0]) -> list[list[str]]:
    """For each row a text for each name: the value, and the ends <name>_low and <name>_high in brackets.

    A number is shown with three digits of its error, whole from there on and never in powers of ten below 1e15; one
    without an interval has six digits. An interval that is open on both sides says nothing and is left out; an end
    that is not known is shown as dots.

    >>> rows = [{"n": 1234567.891, "n_low": 1204567.5, "n_high": 1264567.5}, {"n": 5.25, "n_low": 4.75, "n_high": 5.75}]
    >>> for row in cells(rows, ["n"]):
    ...     print(*row)
    1234568  [1204568, 1264568]
       5.25  [   4.75,    5.75]
    """
    columns = [_column([(row[name], *map(row.get, pair.of(name))) for row in rows]) for name in names]
    return [list(row) for row in zip(*columns, strict=True)]


def printable(text: str) -> str:
    """The text on one line, with nothing in it that a terminal obeys: a key may be what anybody has written."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _column(triples: list[tuple[Any, Any, Any]]) -> list[str]:
    parts = [_parts(*triple) for triple in triples]
    if all(value is None or _is_number(value) for value, _, _ in triples):
        widths = [max((len(part[i]) for part in parts), default=0) for i in range(3)]
        parts = [(value.rjust(widths[0]), low.rjust(widths[1]) if low else "", high.rjust(widths[2]) if high else "")
                 for value, low, high in parts]  # fmt: skip
    return [f"{value}  [{low or _UNKNOWN}, {high or _UNKNOWN}]" if low or high else value for value, low, high in parts]


def _parts(value: Any, low: Any, high: Any) -> tuple[str, str, str]:
    open_ends = sum(end is None or _infinite(end) for end in (low, high))
    if open_ends >= (1 if value is None else 2):
        return _text(value, None), "", ""
    places = _places(value, low, high)
    lower, upper = ("" if end is None else _text(end, places) for end in (low, high))
    return _text(value, places), lower, upper


def _places(value: Any, low: Any, high: Any) -> int | None:
    """How many decimal places show three digits of the error; None if there is none to go by."""
    if not all(one is None or _is_number(one) for one in (value, low, high)):
        return None
    middle = low if value is None else value
    known = [float(end) for end in (low, high) if end is not None and not _infinite(end)]
    error = max((abs(end - float(middle)) for end in known), default=0.0)
    if not 0 < error < math.inf:
        return None
    places = max(0, 2 - math.floor(math.log10(error)))
    ends = [float(one) for one in (value, low, high) if one is not None and not _infinite(one)]
    while 0 < places <= _FINE and all(f"{one:.{places}f}".endswith("0") for one in ends):
        places -= 1  # what is whole, or rounded by the question, is shown so
    return places


def _text(value: Any, places: int | None) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, float):
        return printable(str(value))
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= _LARGE or (places is not None and places > _FINE):
        return f"{value:.6g}"
    if places is None:
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)
