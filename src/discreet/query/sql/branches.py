"""Choices among values (CASE, COALESCE, GREATEST, ...) and conversions between types (CAST)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql import arithmetic
from discreet.query.sql.calendar import has_bounds, tamed
from discreet.query.sql.days import DAY_MICROSECONDS, day_of
from discreet.query.sql.expressions import (
    HANDLERS,
    KNOWN_NAMES,
    PLAIN,
    READ,
    Expressions,
    check_written,
    moment,
    unified,
)
from discreet.query.sql.types import DOUBLE, TIMESTAMP, SqlType, type_named
from discreet.query.sql.value import Value, derived, hull, literal

if TYPE_CHECKING:
    from discreet.query.sql.expressions import Handler

__all__: list[str] = []


def _case(at: Expressions, node: exp.Case) -> Value:
    branches: list[tuple[Value, Value]] = []
    for branch in node.args["ifs"]:
        condition = branch.this
        if node.this is not None:
            condition = exp.EQ(this=node.this.copy(), expression=condition.copy())
            condition.parent = node
        branches.append((at.truth(condition), at.value(branch.args["true"])))
    default = node.args.get("default")
    return _chosen(at, branches, at.value(default) if default is not None else literal(None), node)


def _if(at: Expressions, node: exp.If) -> Value:
    default = node.args.get("false")
    otherwise = at.value(default) if default is not None else literal(None)
    return _chosen(at, [(at.truth(node.this), at.value(node.args["true"]))], otherwise, node)


def _chosen(at: Expressions, branches: list[tuple[Value, Value]], default: Value, node: exp.Expr) -> Value:
    results = [result for _, result in branches] + [default]
    type_, sqls = unified(at, results, node)
    cases = " ".join(f"WHEN {test.sql} THEN {sql}" for (test, _), sql in zip(branches, sqls, strict=False))
    facts = hull(results)
    if facts.get("values") is not None and any(result.kind == "null" for result in results):
        facts["values"] = tuple(dict.fromkeys((*facts["values"], None)))
    facts["values"] = _typed(facts.get("values"), type_)
    parts = [part for pair in branches for part in pair] + [default]
    return derived(f"(CASE {cases} ELSE {sqls[-1]} END)", type_, parts, **facts)


def _typed(values: tuple[Any, ...] | None, type_: SqlType) -> tuple[Any, ...] | None:
    """The listed values in the type that the choice among them has."""
    if values is None or type_ not in (DOUBLE, TIMESTAMP):
        return values
    return tuple(dict.fromkeys(_lifted(value, type_) for value in values))


def _lifted(value: Any, type_: SqlType) -> Any:
    if value is None or isinstance(value, dt.datetime):
        return value
    if type_ == DOUBLE:
        return float(value)
    return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - SQL timestamps have no zone


def _coalesce(at: Expressions, node: exp.Coalesce) -> Value:
    values = at.values((node.this, *node.expressions))
    type_, sqls = unified(at, values, node)
    facts = hull(values)
    facts["values"] = _typed(facts.get("values"), type_)
    if facts["values"] is not None and any(value.is_literal and value.python is not None for value in values):
        facts["values"] = tuple(value for value in facts["values"] if value is not None)
    return derived(f"COALESCE({', '.join(sqls)})", type_, values, **facts)


def _extreme(function: str) -> Handler:
    def extreme(at: Expressions, node: exp.Func) -> Value:
        values = at.values((node.this, *node.expressions))
        type_, sqls = unified(at, values, node)
        pick = max if function == "GREATEST" else min
        facts = hull(values)
        # NULLs are skipped, so the smallest (largest) of all is possible only if some operand can be NULL; the hull of
        # the operands that are literals and never NULL cuts the range on one side.
        sure = [value.bounds for value in values if value.is_literal and value.type.numeric]
        if sure and type_.numeric:
            low, high = facts["bounds"]
            cut = pick(bound[0] for bound in sure)
            facts["bounds"] = (max(low, cut), max(high, cut)) if pick is max else (min(low, cut), min(high, cut))
        facts.pop("values")
        return derived(f"{function}({', '.join(sqls)})", type_, values, **facts)

    return extreme


def _nullif(at: Expressions, node: exp.Nullif) -> Value:
    values = at.values((node.this, node.expression))
    type_, (left, right) = unified(at, values, node)
    first = values[0]
    if (
        first.constant or first.kind == "null"
    ) and type_.numeric:  # to the engine, the type of the first one is that of the result
        left = f"CAST({first.sql} AS {type_.name})"
    known = None if first.values is None else tuple(dict.fromkeys((*first.values, None)))
    return derived(
        f"NULLIF({left}, {right})",
        type_,
        values,
        bounds=first.bounds,
        limits=first.limits,
        values=_typed(known, type_),
        tame=first.tame,
        weight=first.weight,
    )


CASTS = {
    "text": {"text", "integer", "float", "decimal", "boolean", "date", "timestamp"},
    "integer": {"integer", "float", "decimal", "text", "boolean"},
    "float": {"integer", "float", "decimal", "text", "boolean"},
    "decimal": {"integer", "float", "decimal", "text", "boolean"},
    "boolean": {"integer", "float", "text", "boolean"},
    "date": {"date", "timestamp", "text"},
    "timestamp": {"date", "timestamp", "text"},
    "other": {"text"},
}


def _cast(at: Expressions, node: exp.Cast) -> Value:
    if node.args.get("format") or node.args.get("default"):
        raise at.unknown(node)
    target = type_named(node.to.sql(dialect="duckdb"))
    value = at.value(node.this)
    if target.kind in ("other", "null") or (target.name not in KNOWN_TARGETS and target.kind != "decimal"):
        raise at.source.refusal(
            f"CAST to {target.name} is not supported",
            advice="cast to INTEGER, BIGINT, DOUBLE, DECIMAL(p, s), VARCHAR, BOOLEAN, DATE or TIMESTAMP",
            at=node,
        )
    if value.kind == "null":
        return derived(f"CAST(NULL AS {target.name})", target, (value,), values=(None,))
    if target.kind not in CASTS[value.kind]:
        raise at.source.refusal(
            f"{value.type.words} cannot be converted to {target.name}", advice="choose another type", at=node
        )
    check_written(at, value, node)
    if value.is_literal and value.kind == "text" and target.temporal:
        found = moment(at, value.python, node)
        if found.type == target:
            return found
        if target == TIMESTAMP:
            return literal(_lifted(found.python, TIMESTAMP))
        return literal(found.python.date())
    zoned = False if target.temporal else None
    if value.type == target:
        return replace(value, zoned=zoned)
    facts: dict[str, Any] = {"weight": max(value.weight, 60), "zoned": zoned}
    if value.type.numeric or value.kind == "boolean":
        low, high = value.bounds
        if target.kind == "integer":
            facts["bounds"] = (max(arithmetic.STEPS["floor"](low), target.range[0]),
                               min(arithmetic.STEPS["ceil"](high), target.range[1]))  # fmt: skip
            if value.kind == "boolean":
                facts["values"] = (0, 1)
        elif target.numeric:
            facts["bounds"] = (low, high)
            if value.values is not None and target == DOUBLE:
                facts["values"] = tuple(None if one is None else float(one) for one in value.values)
    if value.kind == "timestamp" and target.kind == "date":
        return replace(day_of(tamed(value) if has_bounds(value) else value), zoned=False)
    if value.type.temporal and target.temporal:
        low, high = value.bounds
        facts["bounds"] = (low * DAY_MICROSECONDS, high * DAY_MICROSECONDS) if value.kind == "date" else (low, high)
        facts["tame"] = value.tame
    return derived(f"TRY_CAST({value.sql} AS {target.name})", target, (value,), **facts)


KNOWN_TARGETS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT",
    "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP",
}  # fmt: skip


HANDLERS.update(
    {
        exp.Case: _case,
        exp.If: _if,
        exp.Coalesce: _coalesce,
        exp.Greatest: _extreme("GREATEST"),
        exp.Least: _extreme("LEAST"),
        exp.Nullif: _nullif,
        exp.Cast: _cast,
        exp.TryCast: _cast,
    }
)
READ.update(
    {
        exp.Case: {"this", "ifs", "default"},
        exp.If: {"this", "true", "false"},
        exp.Coalesce: PLAIN | {"is_nvl", "is_null"},
        exp.Greatest: PLAIN | {"ignore_nulls"},
        exp.Least: PLAIN | {"ignore_nulls"},
        exp.Cast: {"this", "to", "safe", "format", "default"},
        exp.TryCast: {"this", "to", "safe", "format", "default", "requires_string"},
    }
)
KNOWN_NAMES.update(("coalesce", "ifnull", "nullif", "greatest", "least", "cast", "try_cast", "if"))
