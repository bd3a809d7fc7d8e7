"""WHERE unit IN (SELECT unit FROM rows of people): who does something elsewhere.

It is written as a join on the unit, which the rules for joins then check like any other:

    people LEFT JOIN (SELECT u AS m FROM (subquery) GROUP BY u) AS j ON unit = j.m

with j.m IS NOT NULL in the place of the condition.

There is one row of j for each unit, so the rows of a unit stay as many as they were, and whether one is kept depends on
rows of the same unit alone. Rows without a unit are dropped on both sides, so that NOT IN never meets a NULL.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.joins import joined

if TYPE_CHECKING:
    from discreet.query.sql.planner import Names, Planner
    from discreet.query.sql.relation import Relation

__all__ = ["with_memberships"]


def with_memberships(planner: Planner, relation: Relation, where: exp.Expr, names: Names) -> tuple[Relation, exp.Expr]:
    """The relation and the condition, with a join in the place of every IN that asks for units of people's rows."""
    if relation.level != "unit" or not any(one.args.get("query") for one in where.find_all(exp.In)):
        return relation, where
    where = where.copy()
    top = exp.Paren(this=where)  # so that the whole condition can be replaced, too
    waiting: list[exp.Expr] = [where]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            unit = _unit_of(planner, relation, node, names)
            if unit is not None:
                relation, mark = _with_join(planner, relation, node, unit, names)
                found = exp.Is(this=exp.column(mark, table=mark), expression=exp.Null())
                node.replace(exp.Paren(this=exp.Not(this=found)))
        elif not isinstance(node, exp.Query):
            waiting += node.iter_expressions()
    return relation, top.this


def _unit_of(planner: Planner, relation: Relation, node: exp.In, names: Names) -> str | None:
    """The name of the one column of the subquery, if units are looked for among the units of people's rows."""
    value = planner.rows(relation, names, {}).quietly(node.this)
    if value is None or not value.is_unit:
        return None
    found = planner.listed(node.args["query"], names, relation)
    if found.level == "unit" and len(found.fields) == 1 and found.fields[0].value.is_unit:
        return found.fields[0].name
    return None


def _with_join(planner: Planner, relation: Relation, node: exp.In, unit: str, names: Names) -> tuple[Relation, str]:
    mark = f"q__in_{planner.marks}"
    query = node.args["query"]
    inside = query.this if isinstance(query, exp.Subquery) and not query.args.get("with_") else query
    column = exp.Column(this=exp.to_identifier(unit, quoted=True))
    once = exp.select(exp.alias_(column, mark)).from_(_named(inside.copy(), mark)).group_by(column.copy())
    condition = exp.EQ(this=node.this.copy(), expression=exp.column(mark, table=mark))
    join = exp.Join(this=_named(once, mark), side="LEFT", on=condition)
    join.parent = node  # refusals point at the IN
    found = joined(planner, relation, join, names, [])
    fields = tuple(replace(one, hidden=True) if one.table == mark else one for one in found.fields)
    return replace(found, fields=fields), mark


def _named(query: exp.Expr, mark: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(mark)))
