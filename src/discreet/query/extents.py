"""Between which numbers an expression lies by its own form, whatever the noisy numbers in it are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    Extent = tuple[float, float]

__all__ = ["extent"]

_ANY = (-math.inf, math.inf)
_NONE = (math.inf, -math.inf)
"""Of NULL: it adds nothing to the extents of other branches."""


def extent(value: exp.Expr) -> Extent:
    """Between which two numbers it lies where it is one; they are infinite where nothing is known."""
    from sqlglot import exp

    match value:
        case exp.Null():
            return _NONE
        case exp.Literal(is_string=False) | exp.Neg():
            return _constant(value)
        case exp.Paren() | exp.Alias() | exp.Cast(to=exp.DataType(this=exp.DataType.Type.DOUBLE)):
            return extent(value.this)
        case exp.Least() | exp.Greatest():
            return _extreme(value)
        case exp.Coalesce():
            return _hull([value.this, *value.expressions])
        case exp.Case():
            return _hull([*(branch.args["true"] for branch in value.args["ifs"]), value.args.get("default")])
        case exp.Abs() | exp.Sqrt():
            return 0.0, math.inf
        case exp.Round():
            return _rounded(value)
    return _ANY


def _constant(value: exp.Expr) -> Extent:
    from sqlglot import exp

    match value:
        case exp.Literal(is_string=False):
            return float(value.this), float(value.this)
        case exp.Neg():
            low, high = _constant(value.this)
            return -high, -low
        case exp.Paren() | exp.Cast(to=exp.DataType(this=exp.DataType.Type.DOUBLE)):
            return _constant(value.this)
    return _ANY


def _extreme(value: exp.Least | exp.Greatest) -> Extent:
    """They leave out what is NULL, so that only a constant limits what the others may be."""
    from sqlglot import exp

    parts = [value.this, *value.expressions]
    low, high = _hull(parts)
    constants = [end for end, other in map(_constant, parts) if end == other]
    if not constants:
        return low, high
    return (low, min(high, *constants)) if isinstance(value, exp.Least) else (max(low, *constants), high)


def _hull(branches: Sequence[exp.Expr | None]) -> Extent:
    lows, highs = zip(*(_NONE if branch is None else extent(branch) for branch in branches), strict=True)
    return min(lows), max(highs)


def _rounded(value: exp.Round) -> Extent:
    """Rounding to decimals leaves whole ends where they are."""
    decimals = value.args.get("decimals")
    low, high = extent(value.this)
    whole = all(math.isinf(end) or end.is_integer() for end in (low, high))
    return (low, high) if whole and (decimals is None or _constant(decimals)[0] >= 0) else _ANY
