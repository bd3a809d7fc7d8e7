"""Certified numbers as text: rounded away from the claim, upper ends up and lower ends down.

A number within a relative 1e-12 of a short one, such as 1.0000000000000002, is printed as the short one.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

__all__ = ["NARROW", "bracket", "percent", "shown", "up"]

NARROW = "\u00a0"
"""A space at which no line is broken."""

_SAME = Decimal("1e-12")


def up(value: float) -> str:
    """Seven digits, rounded up."""
    return shown(value, 7, up=True)


def bracket(lower: float, upper: float) -> str:
    """Both ends with eleven digits, rounded outwards; the space does not break a line."""
    return f"[{shown(lower, 11, up=False)},{NARROW}{shown(upper, 11, up=True)}]"


def percent(value: float, *, up: bool = True) -> str:
    """A probability in percent, four digits, rounded up or down but never beyond 100 %."""
    hundredfold = Decimal(repr(value)) * 100
    return f"{_rounded(hundredfold, 4, up=up) if value < 1 else '100'} %"


def shown(value: float, digits: int, *, up: bool) -> str:
    """The value with this many digits, rounded up or down; short where it is short but for rounding."""
    return "infinite" if value == math.inf else _rounded(Decimal(repr(float(value))), digits, up=up)


def _rounded(value: Decimal, digits: int, *, up: bool) -> str:
    """The shortest text of a number rounded to some digits: plain between 1e-4 and 1e9, scientific beyond."""
    if value == 0:
        return "0"
    unit = Decimal(1).scaleb(value.adjusted() - digits + 1)
    rounded = value.quantize(unit, rounding=ROUND_HALF_EVEN)
    if abs(rounded - value) > _SAME * abs(value):
        rounded = value.quantize(unit, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    rounded = rounded.normalize()
    if -4 <= rounded.adjusted() < 9:
        return f"{rounded:f}"
    mantissa = rounded.scaleb(-rounded.adjusted())
    return f"{mantissa:f}e{rounded.adjusted():+03d}"
