"""Correlation, covariance and regression of two numbers, as formulas over sums.

CORR(y, x) and the others are functions of the number of rows in which both have a value, and of the sums of x, y, x²,
y² and xy in those rows. Each of these is measured, and the formula is post-processing. Values are clamped to their
bounds and taken from the middle of them, which changes no formula and makes the sums small beside what they are to
tell. So bounds have to be public: those that are found privately, one for each sum, would not fit each other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from discreet.query.sql.value import literal_sql

if TYPE_CHECKING:
    from discreet.query.sql.scope import Rows

__all__ = ["is_pair", "spelled_out"]

_N = "COUNT(*) FILTER (WHERE both)"
_SUMS = {
    "sx": "SUM(x) FILTER (WHERE both)",
    "sy": "SUM(y) FILTER (WHERE both)",
    "sxx": "SUM(x ** 2) FILTER (WHERE both)",
    "syy": "SUM(y ** 2) FILTER (WHERE both)",
    "sxy": "SUM(x * y) FILTER (WHERE both)",
}
_LABELS = {"n": "rows", "sx": "{x}", "sy": "{y}", "sxx": "({x})²", "syy": "({y})²", "sxy": "({x}) * ({y})"}
_COVARIANCE = "(sxy - sx * sy / n)"
_SLOPE = "((n * sxy - sx * sy) / (n * sxx - sx * sx))"
_CORRELATION = "((n * sxy - sx * sy) / (SQRT(n * sxx - sx * sx) * SQRT(n * syy - sy * sy)))"
_FORMULAS: dict[type, str] = {
    exp.CovarPop: f"({_COVARIANCE} / n)",
    exp.CovarSamp: f"({_COVARIANCE} / NULLIF(n - 1, 0))",
    exp.Corr: f"CASE WHEN {_CORRELATION} IS NULL THEN NULL ELSE LEAST(GREATEST({_CORRELATION}, -1e0), 1e0) END",
    exp.RegrSlope: _SLOPE,
    exp.RegrIntercept: f"((sy / n + cy) - {_SLOPE} * (sx / n + cx))",
    exp.RegrR2: (  # 1 where y does not vary and x does, by the standard
        "CASE WHEN n * syy - sy * sy = 0 AND n * sxx - sx * sx > 0 THEN 1e0 "
        f"WHEN {_CORRELATION} IS NULL THEN NULL ELSE LEAST(GREATEST({_CORRELATION} ** 2, 0e0), 1e0) END"
    ),
    exp.RegrCount: "n",
    exp.RegrAvgx: "(sx / n + cx)",
    exp.RegrAvgy: "(sy / n + cy)",
    exp.RegrSxx: "(sxx - sx * sx / n)",
    exp.RegrSyy: "(syy - sy * sy / n)",
    exp.RegrSxy: _COVARIANCE,
}


def is_pair(node: exp.Expr) -> bool:
    """Whether the node is such an aggregate, with or without FILTER."""
    return type(node.this if isinstance(node, exp.Filter) else node) in _FORMULAS


def spelled_out(rows: Rows, node: exp.Expr, *, bounded: bool) -> exp.Expr:
    """The formula that the node stands for; `bounded` where people are aggregated, whose values need bounds."""
    call = node.this if isinstance(node, exp.Filter) else node
    y, x = call.this, call.expression
    both = _put(parse_one("isfinite(x * y)", dialect="duckdb"), {"x": x, "y": y})
    parts: dict[str, exp.Expr] = {"both": both}
    if isinstance(node, exp.Filter):
        parts["both"] = exp.And(this=both, expression=exp.Paren(this=node.expression.this.copy()))
    shown: dict[str, str] = {}
    for name, argument in (("x", x), ("y", y)):
        low, high = rows.number(argument).bounds
        if not (math.isfinite(low) and math.isfinite(high)):
            if bounded:
                raise rows.source.refusal(
                    f"'{rows.source.written(node)}' needs bounds of {rows.source.written(argument)}",
                    advice="declare bounds of the column in the policy, or write LEAST(GREATEST(x, 0), 100), since "
                    "those of a call or of OPTIONS come too late here; state max_rows, too, if people have many rows",
                    at=argument,
                )
            low = high = 0.0
        centre = _number((low + high) / 2)
        parts[f"c{name}"] = centre
        shown[name] = f"{rows.source.written(argument, limit=20)} - {(low + high) / 2:g}"
        inside = f"(LEAST(GREATEST(v, {literal_sql(low)}), {literal_sql(high)}) - c)" if low < high else "(v - c)"
        parts[name] = _put(parse_one(inside, dialect="duckdb"), {"v": argument, "c": centre})
    written = rows.source.written(node)
    for name, sql in {"n": _N, **_SUMS}.items():
        parts[name] = _put(parse_one(sql, dialect="duckdb"), parts)
        parts[name].meta["written"] = f"{_LABELS[name].format(**shown)} in {written}"
    formula = _put(parse_one(_FORMULAS[type(call)], dialect="duckdb"), parts)
    formula.parent = node.parent
    return formula


def _number(value: float) -> exp.Expr:
    return parse_one(literal_sql(value), dialect="duckdb")


def _put(tree: exp.Expr, parts: dict[str, exp.Expr]) -> exp.Expr:
    """The tree with these expressions in place of the columns of their names."""
    places = [node for node in tree.walk() if isinstance(node, exp.Column) and node.name in parts and not node.table]
    for place in places:
        part = exp.Paren(this=parts[place.name].copy())
        if place is tree:
            return part
        place.replace(part)
    return tree
