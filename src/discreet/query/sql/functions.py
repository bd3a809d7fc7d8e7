"""The functions of numbers, each in a form that gives NULL where the plain one would raise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql import arithmetic
from discreet.query.sql.expressions import (
    HANDLERS,
    KNOWN_NAMES,
    NAMED,
    PLAIN,
    READ,
    Expressions,
)
from discreet.query.sql.types import BIGINT, BOOLEAN, DOUBLE
from discreet.query.sql.value import EVERYWHERE, Value, derived, literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.query.sql.expressions import Handler

__all__ = ["arguments"]


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _binary(operation: Callable[[Value, Value], Value]) -> Handler:
    return lambda at, node: operation(at.number(node.this), at.number(node.expression))


def _whole_divided(at: Expressions, node: exp.IntDiv) -> Value:
    value = arithmetic.whole_divided(at.number(node.this), at.number(node.expression))
    if value is None:
        raise at.source.refusal("// divides whole numbers", advice="write FLOOR(a / b) for other numbers", at=node)
    return value


def _negated(at: Expressions, node: exp.Neg) -> Value:
    return arithmetic.negated(at.number(node.this))


def _abs(at: Expressions, node: exp.Abs) -> Value:
    value = at.number(node.this)
    if value.is_literal and value.kind == "integer" and value.python is not None:
        return literal(abs(value.python))
    low, high = value.bounds
    bounds = (0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
    if value.kind == "integer":
        most = max(abs(value.limits[0]), abs(value.limits[1]))
        wide = arithmetic.combine("-", value, literal(0)) if most <= BIGINT.range[1] else arithmetic.negated(value)
        return derived(f"ABS({wide.sql})", wide.type, (value,), bounds=bounds, limits=(0, most))
    return derived(f"ABS({value.double})", DOUBLE, (value,), bounds=bounds)


def _sign(at: Expressions, node: exp.Sign) -> Value:
    value = at.number(node.this)
    low, high = value.bounds
    values = tuple(one for one in (-1, 0, 1) if math.copysign(1, low or -1) <= one <= math.copysign(1, high or 1))
    sql = f"CAST(SIGN({value.double}) AS BIGINT)"
    return derived(sql, BIGINT, (value,), bounds=(values[0], values[-1]), limits=(-1, 1), values=values)


def _stepped(function: str) -> Handler:
    def step(at: Expressions, node: exp.Func) -> Value:
        value = at.number(node.this)
        digits = node.args.get("decimals")
        if node.args.get("to") is not None or (digits is not None and function != "round"):
            raise at.unknown(node)
        places = at.constant(digits, int, "the number of digits") if digits is not None else 0
        if not -18 <= places <= 18:
            raise at.source.refusal("that is too many digits", advice="round to between -18 and 18 digits", at=node)
        if places == 0 or (places > 0 and value.kind == "integer"):
            return arithmetic.stepped(function, value)
        low, high = value.bounds
        slack = 10.0**-places
        bounds = (low - slack, high + slack)
        return derived(f"ROUND({value.double}, {places})", DOUBLE, (value,), bounds=bounds)

    return step


def _monotone(function: str, formula: Callable[[float], float], *, least: float = -math.inf) -> Callable[..., Value]:
    """An increasing function on [least, inf); NULL below (at 0 too where the value there is infinite)."""

    def apply(at: Expressions, node: exp.Func) -> Value:
        value = at.number(node.this)
        argument = value.double
        if function == "SQRT":
            sql = f"NULLIF(SQRT({argument}), CAST('NaN' AS DOUBLE))"
        elif least == 0:
            sql = f"{function}(NULLIF(GREATEST({argument}, 0), 0))"  # GREATEST skips NULL, and 0 becomes NULL again
        else:
            sql = f"{function}({argument})"
        bounds = (_safe(formula, max(value.bounds[0], least), -math.inf), _safe(formula, value.bounds[1], math.inf))
        return derived(sql, DOUBLE, (value,), bounds=bounds if bounds[0] <= bounds[1] else EVERYWHERE)

    return apply


def _safe(formula: Callable[[float], float], x: float, otherwise: float) -> float:
    try:
        y = formula(x)
    except (ValueError, OverflowError):
        return otherwise
    return otherwise if math.isnan(y) else y


def _log(at: Expressions, node: exp.Log) -> Value:
    base, argument = (node.this, node.expression) if node.expression is not None else (None, node.this)
    value = at.number(argument)
    radix = 10 if base is None else at.constant(base, (int, float), "the base of the logarithm")
    if not (math.isfinite(radix) and radix > 0 and radix != 1):
        raise at.source.refusal("this is no base of a logarithm", advice="use 2, 10 or LN(x)", at=node)
    inside = f"NULLIF(GREATEST({value.double}, 0), 0)"
    sql = {2: f"LOG2({inside})", 10: f"LOG10({inside})"}.get(radix, f"(LN({inside}) / {literal(math.log(radix)).sql})")
    bounds = EVERYWHERE
    if radix > 1:
        bounds = (_safe(lambda x: math.log(x, radix), value.bounds[0], -math.inf),
                  _safe(lambda x: math.log(x, radix), value.bounds[1], math.inf))  # fmt: skip
    return derived(sql, DOUBLE, (value,), bounds=bounds)


def _power(at: Expressions, node: exp.Pow) -> Value:
    left, right = at.number(node.this), at.number(node.expression)
    bounds = EVERYWHERE
    if right.is_literal and right.python in (2, 2.0):
        bounds = arithmetic._interval("*", left.bounds, left.bounds)
        bounds = (max(0.0, bounds[0]), bounds[1])
    elif left.bounds[0] >= 1 and right.bounds[0] >= 0:
        low = _safe(lambda x: x ** right.bounds[0], left.bounds[0], 0.0)
        bounds = (low, _safe(lambda x: x ** right.bounds[1], left.bounds[1], math.inf))
    sql = f"NULLIF(POWER({left.double}, {right.double}), CAST('NaN' AS DOUBLE))"
    return derived(sql, DOUBLE, (left, right), bounds=bounds)


def _classified(function: str) -> Handler:
    def classify(at: Expressions, node: exp.Func) -> Value:
        argument = node.this if isinstance(node, exp.IsNan | exp.IsInf) else arguments(at, node, 1)[0]
        value = at.number(argument)
        return derived(f"{function}({value.double})", BOOLEAN, (value,))

    return classify


# ── functions by name ─────────────────────────────────────────────────────────────────────────────────────────────────


def arguments(at: Expressions, node: exp.Expr, count: int) -> list[exp.Expr]:
    """The arguments of a function that takes so many."""
    if len(node.expressions) != count:
        raise at.source.refusal(
            f"{str(node.this).lower()} takes {count} argument{'s' * (count > 1)}", advice="write it so", at=node
        )
    return list(node.expressions)


def _named(at: Expressions, node: exp.Anonymous) -> Value:
    handler = NAMED.get(str(node.this).lower())
    if handler is None:
        raise at.unknown(node)
    return handler(at, node)


def _as(kind: type, *slots: str) -> Handler:
    """A function that sqlglot leaves without a node of its own, rewritten to the node that has one."""

    def rewrite(at: Expressions, node: exp.Anonymous) -> Value:
        given = arguments(at, node, len(slots))
        other = kind(**dict(zip(slots, (part.copy() for part in given), strict=True)))
        other.parent = node.parent
        return at.value(other)

    return rewrite


HANDLERS.update(
    {
        exp.Mul: _binary(lambda a, b: arithmetic.combine("*", a, b)),
        exp.Div: _binary(arithmetic.divided),
        exp.IntDiv: _whole_divided,
        exp.Mod: _binary(arithmetic.remainder),
        exp.Neg: _negated,
        exp.Abs: _abs,
        exp.Sign: _sign,
        exp.Floor: _stepped("floor"),
        exp.Ceil: _stepped("ceil"),
        exp.Round: _stepped("round"),
        exp.Trunc: _stepped("trunc"),
        exp.Sqrt: _monotone("SQRT", math.sqrt, least=0),
        exp.Ln: _monotone("LN", math.log, least=0),
        exp.Exp: _monotone("EXP", math.exp),
        exp.Cbrt: _monotone("CBRT", math.cbrt),
        exp.Log: _log,
        exp.Pow: _power,
        exp.IsNan: _classified("ISNAN"),
        exp.IsInf: _classified("ISINF"),
        exp.Anonymous: _named,
    }
)
READ.update(
    {
        exp.Div: PLAIN | {"typed", "safe"},
        exp.Floor: PLAIN | {"decimals", "to"},
        exp.Ceil: PLAIN | {"decimals", "to"},
        exp.Round: PLAIN | {"decimals"},
        exp.Trunc: PLAIN | {"decimals"},
    }
)
NAMED.update(
    {
        "mod": _as(exp.Mod, "this", "expression"),
        "fmod": _as(exp.Mod, "this", "expression"),
        "add": _as(exp.Add, "this", "expression"),
        "subtract": _as(exp.Sub, "this", "expression"),
        "multiply": _as(exp.Mul, "this", "expression"),
        "isfinite": _classified("ISFINITE"),
    }
)
KNOWN_NAMES.update(NAMED)
KNOWN_NAMES.update(
    (
        "abs", "sign", "floor", "ceil", "round", "trunc", "sqrt", "ln", "log", "log2", "log10", "exp", "power", "pow",
        "isnan", "isinf", "cbrt",
    )
)  # fmt: skip
