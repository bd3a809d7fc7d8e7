"""The functions of angles, which distances between places on a map are made of: NULL where there is no value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.arithmetic import combine
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, Expressions
from discreet.query.sql.types import DOUBLE
from discreet.query.sql.value import EVERYWHERE, Value, derived, literal

if TYPE_CHECKING:
    from discreet.query.sql.expressions import Handler

__all__: list[str] = []

_RIGHT = math.pi / 2
_FINITE = "BETWEEN CAST('-1.7976931348623157e308' AS DOUBLE) AND CAST('1.7976931348623157e308' AS DOUBLE)"
_SINE = "BETWEEN CAST('-1' AS DOUBLE) AND CAST('1' AS DOUBLE)"


def _function(name: str, bounds: tuple[float, float], *, where: str | None = _FINITE) -> Handler:
    """A function of one number that the engine has where a condition holds, and of others raises an error."""

    def apply(at: Expressions, node: exp.Func) -> Value:
        value = at.number(node.this)
        argument = value.double if where is None else f"CASE WHEN {value.double} {where} THEN {value.double} END"
        return derived(f"{name}({argument})", DOUBLE, (value,), bounds=bounds)

    return apply


def _direction(at: Expressions, node: exp.Atan2) -> Value:
    values = at.number(node.this), at.number(node.expression)
    return derived(f"ATAN2({values[0].double}, {values[1].double})", DOUBLE, values, bounds=(-math.pi, math.pi))


def _scaled(factor: float) -> Handler:
    return lambda at, node: combine("*", at.number(node.this), literal(factor))


HANDLERS.update(
    {
        exp.Sin: _function("SIN", (-1.0, 1.0)),
        exp.Cos: _function("COS", (-1.0, 1.0)),
        exp.Tan: _function("TAN", EVERYWHERE),
        exp.Asin: _function("ASIN", (-_RIGHT, _RIGHT), where=_SINE),
        exp.Acos: _function("ACOS", (0.0, math.pi), where=_SINE),
        exp.Atan: _function("ATAN", (-_RIGHT, _RIGHT), where=None),
        exp.Atan2: _direction,
        exp.Radians: _scaled(math.pi / 180),
        exp.Degrees: _scaled(180 / math.pi),
        exp.Pi: lambda _, __: literal(math.pi),
    }
)
KNOWN_NAMES.update(("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "radians", "degrees", "pi"))
