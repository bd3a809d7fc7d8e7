"""Numbers as people type them, and as they must be shown: fractions are read, certified ends are rounded outwards."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import typer

__all__ = ["above", "below", "json_number", "number", "relative"]

_ADVICE = "write a number such as 14000, 1e6, 1e-5 or 0.01, or a fraction such as 256/60000"


def number(text: str) -> float:
    """The number behind `14000`, `1e-5`, `14_000` or `256/60000`; whole numbers stay exact.

    >>> number("256/60000") == 256 / 60000
    True
    """
    top, slash, bottom = str(text).partition("/")
    try:
        return _plain(top) / _plain(bottom) if slash else _plain(top)
    except ZeroDivisionError:
        raise typer.BadParameter(f"'{text}' divides by zero; {_ADVICE}") from None
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"'{text}' is not a number; {_ADVICE}") from None


def _plain(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def above(value: float, digits: int = 10) -> str:
    """The value with this many significant digits, rounded up: an upper end stays one on the screen.

    >>> above(2 / 3, 4), above(2 / 3, 4) == below(2 / 3, 4)
    ('0.6667', False)
    """
    return _shown(value, digits, ROUND_CEILING)


def below(value: float, digits: int = 10) -> str:
    """The value with this many significant digits, rounded down: a lower end stays one on the screen."""
    return _shown(value, digits, ROUND_FLOOR)


def relative(width: float) -> str:
    """A relative width with two digits, rounded up; `exact` if there is none."""
    return "exact" if width == 0 else above(width, 2)


def _shown(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    rounded = Context(prec=digits, rounding=rounding).plus(Decimal(value))
    text = f"{float(rounded):.{digits}g}"
    # below 1e-307 a float has fewer than `digits` digits, and printing it could round the wrong way
    return text if Decimal(text) == rounded else str(rounded)


def json_number(value: float) -> float | str:
    """The value as JSON can hold it: JSON has no infinity, so it becomes the string "inf"."""
    return value if math.isfinite(value) else str(value)
