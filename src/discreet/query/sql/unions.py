"""UNION ALL: the rows of both sides; what a unit can have on them adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.query.sql.expressions import unified
from discreet.query.sql.ordering import finished
from discreet.query.sql.relation import Field, Relation, Step
from discreet.query.sql.value import Value, derived, hull

if TYPE_CHECKING:
    from sqlglot import exp

    from discreet.query.sql.planner import Names, Planner

__all__ = ["united"]


def united(planner: Planner, node: exp.Union, names: Names) -> Relation:
    """The relation of a UNION ALL."""
    planner.only(node, {"this", "expression", "distinct", "with_", "order", "limit", "offset"})
    if node.args.get("distinct"):
        raise planner.source.refusal(
            "UNION removes duplicates",
            advice="write UNION ALL, and SELECT DISTINCT around it if needed",
            at=node.expression,
        )
    inner = planner.with_names(node, names)
    left, right = planner.query(node.this, inner), planner.query(node.expression, inner)
    if len(left.fields) != len(right.fields):
        raise planner.source.refusal(
            "the two sides of UNION ALL have different numbers of columns",
            advice="select the same columns",
            at=node,
        )
    if left.private != right.private or (left.private and left.level != right.level):
        raise planner.source.refusal(
            "UNION ALL of rows about people with anything else is not supported",
            advice="aggregate both sides before the UNION ALL, or select from tables with the same kind of unit",
            at=node,
        )
    return finished(planner, _all_rows(planner, left, right, node), node, inner)


def _all_rows(planner: Planner, left: Relation, right: Relation, node: exp.Union) -> Relation:
    """The rows of both sides, with one type for each column."""
    rows = planner.rows(left, {}, {})
    mark = planner.mark()
    sides: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    fields = []
    for i, (one, other) in enumerate(zip(left.fields, right.fields, strict=True)):
        type_, sqls = unified(rows, (one.value, other.value), node)
        for side, sql in zip(sides, sqls, strict=True):
            side.append((sql, f"c{i}"))
        facts = hull((one.value, other.value))
        both_unit = one.value.is_unit and other.value.is_unit
        value = derived(f"{mark}.u" if both_unit else f"{mark}.c{i}", type_, (one.value, other.value), **facts)
        value = replace(
            value, constant=False, of_unit=both_unit, is_unit=both_unit, inputs=None,
            origin=one.value.origin if one.value.origin == other.value.origin else None,
        )  # fmt: skip
        fields.append(Field(one.name, "", value))
    unit, rows_per_unit = None, None
    if left.unit is not None and right.unit is not None:
        type_, sqls = unified(rows, (left.unit, right.unit), node)
        planner.same_units(left.unit, right.unit, node)
        for side, sql in zip(sides, sqls, strict=True):
            side.append((sql, "u"))
        unit = Value(f"{mark}.u", type_, limits=type_.range, of_unit=True, is_unit=True)
    if left.rows_per_unit is not None and right.rows_per_unit is not None:
        rows_per_unit = left.rows_per_unit + right.rows_per_unit
    level = left.level if left.private else ("public" if left.level == right.level == "public" else "released")
    return Relation(
        f"(({left.select(sides[0])}) UNION ALL ({right.select(sides[1])})) AS {mark}",
        tuple(fields),
        level,
        unit=unit,
        rows_per_unit=rows_per_unit,
        tables=tuple(dict.fromkeys(left.tables + right.tables)),
        public_tables=tuple(dict.fromkeys(left.public_tables + right.public_tables)),
        scan=True,
        arbitrary=left.arbitrary or right.arbitrary,
        declared=left.declared + right.declared,
        step=Step(
            "union all", "the rows of a unit on both sides add up" if left.private else "", (left.step, right.step)
        ),
    )
