"""Arithmetic that cannot raise: integers in a type wide enough for every case, division by zero as NULL.

Integers are added, subtracted and multiplied as BIGINT where the types of the operands guarantee that the result fits,
else as HUGEINT, else as DOUBLE. Decimals count as DOUBLE, whose operations overflow to infinity instead of raising.

The engine raises where a product is -2^127, or that number is divided by -1, although it is a HUGEINT. So what may be
that number by its type, or becomes it by the operation, is computed as DOUBLE.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.query.sql.types import BIGINT, DOUBLE, HUGEINT, SqlType
from discreet.query.sql.value import EVERYWHERE, Value, derived, literal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MOST_VALUES", "combine", "divided", "listed", "negated", "remainder", "stepped", "whole_divided"]

MOST_VALUES = 1000  # a number with more public values than this is not listed
EXACT = 2.0**53  # whole numbers up to here are floats without rounding
Range = tuple[float, float]


def combine(operator: str, left: Value, right: Value) -> Value:
    """The sum, difference or product (operator +, - or *)."""
    bounds = _interval(operator, left.bounds, right.bounds)
    if left.kind == right.kind == "integer":
        limits = _interval(operator, left.limits, right.limits)
        type_ = _fitting(limits, left.limits, right.limits)
    else:
        limits, type_ = EVERYWHERE, DOUBLE
    if type_ == DOUBLE:
        sql = f"({left.double} {operator} {right.double})"
    else:
        sql = f"({_wide(left, type_, right)} {operator} {_wide(right, type_, left)})"
    if left.is_literal and right.is_literal and type_ == BIGINT:
        return literal(int(limits[0]))
    values = _pointwise(OPERATIONS[operator], left, right, type_)
    return derived(sql, type_, (left, right), bounds=bounds, limits=limits, values=values)


def negated(value: Value) -> Value:
    """The number with its sign changed."""
    if value.is_literal and isinstance(value.python, int | float) and not isinstance(value.python, bool):
        return literal(-value.python)
    return combine("-", literal(0 if value.kind == "integer" else 0.0), value)


def divided(left: Value, right: Value) -> Value:
    """left / right as DOUBLE; NULL where right is 0."""
    low, high = right.bounds
    bounds = EVERYWHERE if low <= 0 <= high else _interval("*", left.bounds, (1 / high, 1 / low))
    divisor = right.double if right.is_literal and right.python else f"NULLIF({right.double}, 0)"
    values = _pointwise(lambda a, b: a / b if b else None, left, right, DOUBLE)
    return derived(f"({left.double} / {divisor})", DOUBLE, (left, right), bounds=bounds, values=values)


def whole_divided(left: Value, right: Value) -> Value | None:
    """left // right of integers, cut off towards zero; NULL where right is 0; None if they are not integers."""
    if left.kind != "integer" or right.kind != "integer":
        return None
    low, high = right.bounds
    bounds = EVERYWHERE if low <= 0 <= high else _interval("*", left.bounds, (1 / high, 1 / low))
    bounds = (_trunc(bounds[0]), _trunc(bounds[1]))
    # The one overflow is the smallest integer divided by -1; a wider type has room for it.
    most = max(abs(left.limits[0]), abs(left.limits[1]))
    type_ = _fitting((-most, most), left.limits, right.limits)
    if type_ == DOUBLE:
        return derived(f"TRUNC({left.double} / NULLIF({right.double}, 0))", DOUBLE, (left, right), bounds=bounds)
    sql = f"({_wide(left, type_, right)} // NULLIF({_wide(right, type_, left)}, 0))"
    return derived(sql, type_, (left, right), bounds=bounds, limits=(-most, most), values=listed(bounds, int))


def remainder(left: Value, right: Value) -> Value:
    """left % right, with the sign of left; NULL where right is 0."""
    most = max(abs(right.bounds[0]), abs(right.bounds[1]))
    integers = left.kind == right.kind == "integer"
    most = max(0.0, most - 1) if integers and math.isfinite(most) else most
    most = min(most, max(abs(left.bounds[0]), abs(left.bounds[1])))
    bounds = (0.0 if left.bounds[0] >= 0 else -most, 0.0 if left.bounds[1] <= 0 else most)
    if integers:
        type_ = _fitting(left.limits, left.limits, right.limits)
        most_limit = max(abs(left.limits[0]), abs(left.limits[1]))
        type_ = HUGEINT if type_ == BIGINT and most_limit > BIGINT.range[1] else type_
        if type_ != DOUBLE:
            sql = f"({_wide(left, type_, right)} % NULLIF({_wide(right, type_, left)}, 0))"
            known = left.bounds[0] >= 0 or left.bounds[1] <= 0
            values = listed(bounds, int) if known and right.is_literal else None
            return derived(sql, type_, (left, right), bounds=bounds, limits=(-most_limit, most_limit), values=values)
    return derived(f"({left.double} % NULLIF({right.double}, 0))", DOUBLE, (left, right), bounds=bounds)


def stepped(function: str, value: Value) -> Value:
    """floor, ceil, round or trunc to a whole number."""
    if value.kind == "integer":
        return value
    step = STEPS[function]
    bounds = (step(value.bounds[0]), step(value.bounds[1]))
    values = None if value.values is None else tuple(dict.fromkeys(_stepped(step, one) for one in value.values))
    if values is None:
        values = listed(bounds, float)
    return derived(f"{function.upper()}({value.double})", DOUBLE, (value,), bounds=bounds, values=values)


def _stepped(step: Callable[[float], float], value: Any) -> float | None:
    return None if value is None else step(float(value))


def _fitting(*ranges: Range) -> SqlType:
    """The narrowest of BIGINT, HUGEINT and DOUBLE that holds everything in the ranges; HUGEINT without its smallest."""
    for type_, least in ((BIGINT, BIGINT.range[0]), (HUGEINT, -HUGEINT.range[1])):
        if all(least <= low and high <= type_.range[1] for low, high in ranges):
            return type_
    return DOUBLE


def _wide(value: Value, type_: SqlType, other: Value) -> str:
    """SQL of an operand in the type of the operation."""
    if value.is_literal and not other.is_literal:
        return value.bare
    return value.sql if value.type == type_ else f"CAST({value.sql} AS {type_.name})"


def _interval(operator: str, left: Range, right: Range) -> Range:
    """Interval arithmetic; 0 times infinity is 0, because the factor 0 is exact."""
    if operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operator == "-":
        return left[0] - right[1], left[1] - right[0]
    corners = [0 if 0 in (a, b) else a * b for a in left for b in right]
    return min(corners), max(corners)


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _ceil(x: float) -> float:
    return float(math.ceil(x)) if math.isfinite(x) else x


def _round(x: float) -> float:
    """Halves away from zero, as DuckDB rounds."""
    return math.copysign(_floor(abs(x) + 0.5), x) if math.isfinite(x) else x


def _trunc(x: float) -> float:
    return float(math.trunc(x)) if math.isfinite(x) else x


STEPS = {"floor": _floor, "ceil": _ceil, "round": _round, "trunc": _trunc}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def listed(bounds: Range, of: type) -> tuple[Any, ...] | None:
    """All whole numbers within the bounds, if they are few, and so small that bounds are exact."""
    low, high = bounds
    if not (low >= -EXACT and high <= EXACT) or high - low >= MOST_VALUES:
        return None
    return tuple(of(value) for value in range(math.ceil(low), math.floor(high) + 1))


def _pointwise(
    operation: Callable[[Any, Any], Any], left: Value, right: Value, type_: SqlType
) -> tuple[Any, ...] | None:
    """The values of an operation between a listed number and a literal, with the arithmetic of the engine."""
    if left.values is None or right.values is None or 1 not in (len(left.values), len(right.values)):
        return None
    of = float if type_ == DOUBLE else int
    found: dict[Any, None] = {}
    for a in left.values:
        for b in right.values:
            if a is None or b is None:
                found[None] = None
                continue
            result = operation(of(a), of(b))
            found[None if result is None else result + (0 if of is int else 0.0)] = None
    return tuple(found)
