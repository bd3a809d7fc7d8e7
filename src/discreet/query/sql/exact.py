"""Aggregates that are computed exactly: for each person inside the engine, and over answers that are already noisy.

The result must not depend on the order of rows, so sums of floats are taken in fixed point with twelve decimals (NaN,
infinities and values beyond ±1e15 count as NULL), and variances over sorted values. None can raise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.query.sql.alike import one_look
from discreet.query.sql.measure import ONE, check_argument
from discreet.query.sql.types import BIGINT, DOUBLE, HUGEINT
from discreet.query.sql.value import EVERYWHERE, Value, literal_sql

if TYPE_CHECKING:
    from discreet.query.sql.aggregates import Call
    from discreet.query.sql.relation import Relation
    from discreet.query.sql.scope import Rows
    from discreet.query.sql.types import SqlType

__all__ = ["aggregate"]

SPREADS = {"variance": "VAR_SAMP", "variance_pop": "VAR_POP", "stddev": "STDDEV_SAMP", "stddev_pop": "STDDEV_POP"}
NAN = "CAST('NaN' AS DOUBLE)"


def aggregate(rows: Rows, call: Call, relation: Relation) -> tuple[Value, str]:
    """The value of the aggregate (its SQL is given by the caller) and the SQL that computes it."""
    condition = rows.truth(call.condition).sql if call.condition is not None else None
    counts = {"bounds": (0.0, math.inf), "limits": (0, 2**62)}
    if call.argument is None:
        return Value("", BIGINT, **counts), f"COUNT({_if(condition, '1') if condition else '*'})"  # type: ignore[arg-type]
    if call.function == "count_if":
        test = rows.truth(call.argument).sql
        both = f"{condition} AND {test}" if condition else test
        return Value("", BIGINT, **counts), f"COUNT({_if(both, ONE)})"  # type: ignore[arg-type]
    value = rows.value(call.argument)
    check_argument(rows, call, value)
    sql = _if(condition, value.sql)
    if call.function == "count":
        return Value("", BIGINT, **counts), f"COUNT({sql})"  # type: ignore[arg-type]
    if call.function == "count_distinct":
        return Value("", BIGINT, **counts), f"COUNT(DISTINCT {sql})"  # type: ignore[arg-type]
    if call.function in ("min", "max"):
        if value.kind == "other":
            raise _not_a_number(rows, call, value)
        known = Value("", value.type, bounds=value.bounds, limits=value.limits, weight=value.weight, tame=value.tame)
        return known, _shown(f"{call.function.upper()}({sql})", value.type, relation)
    if not (value.type.numeric or value.kind == "boolean"):
        raise _not_a_number(rows, call, value)
    if call.function == "quantile":
        name = "QUANTILE_DISC" if call.discrete else "QUANTILE_CONT"
        inside = _if(condition, f"NULLIF({_double(value)}, {NAN})")
        result = f"{name}({inside}, {literal_sql(call.probabilities[0])})"
        return Value("", DOUBLE, bounds=value.bounds), _shown(result, DOUBLE, relation)
    if call.function == "sum" and value.kind in ("integer", "boolean") and value.type != HUGEINT:
        bounds = (0.0 if value.bounds[0] >= 0 else -math.inf, 0.0 if value.bounds[1] <= 0 else math.inf)
        inside = _if(condition, f"CAST({value.sql} AS BIGINT)" if value.type.name != "UBIGINT" else value.sql)
        return Value("", HUGEINT, bounds=bounds, limits=HUGEINT.range), f"CAST(SUM({inside}) AS HUGEINT)"
    fixed = f"TRY_CAST({_double(value)} AS DECIMAL(27, 12))"  # their sum has room for 10^11 rows
    if call.function == "sum":
        bounds = (0.0 if value.bounds[0] >= 0 else -math.inf, 0.0 if value.bounds[1] <= 0 else math.inf)
        return Value("", DOUBLE, bounds=bounds), f"CAST(SUM({_if(condition, fixed)}) AS DOUBLE)"
    if call.function == "avg":
        inside = _if(condition, fixed)
        return Value("", DOUBLE, bounds=value.bounds), f"(CAST(SUM({inside}) AS DOUBLE) / COUNT({inside}))"
    inside = _if(condition, f"CAST({fixed} AS DOUBLE)")
    width = value.bounds[1] - value.bounds[0]
    bounds = (0.0, math.inf) if value.bounds == EVERYWHERE else (0.0, width * width)
    return Value("", DOUBLE, bounds=bounds), f"{SPREADS[call.function]}({inside} ORDER BY {inside})"


def _shown(sql: str, type_: SqlType, relation: Relation) -> str:
    """One of several values, with the look that all equal ones have; what is noisy already shows nothing by it."""
    return sql if relation.level == "released" else one_look(sql, type_.name)


def _if(condition: str | None, sql: str) -> str:
    return sql if condition is None else f"CASE WHEN {condition} THEN {sql} END"


def _double(value: Value) -> str:
    return f"CAST(CAST({value.sql} AS BIGINT) AS DOUBLE)" if value.kind == "boolean" else value.double


def _not_a_number(rows: Rows, call: Call, value: Value) -> Exception:
    return rows.source.refusal(
        f"'{rows.source.written(call.node)}' needs a number, and its argument is {value.type.words}",
        advice="convert it with CAST(x AS DOUBLE), or count it",
        at=call.node,
    )
