"""ORDER BY, LIMIT, FETCH FIRST and OFFSET, which choose among rows: they apply to answers and public tables alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.relation import Field, Relation, Step, settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.query.sql.expressions import Expressions
    from discreet.query.sql.planner import Names, Planner

__all__ = ["finished", "ordered"]


def finished(
    planner: Planner, relation: Relation, node: exp.Expr, names: Names, terms: list[str] | None = None
) -> Relation:
    """The relation with ORDER BY (already compiled to `terms`, or over its columns), LIMIT and OFFSET."""
    order, limit, offset = (node.args.get(part) for part in ("order", "limit", "offset"))
    if order is None and limit is None and offset is None:
        return relation
    if relation.private and relation.step.what == "aggregate for each unit":
        raise planner.source.refusal(
            "ORDER BY and LIMIT would choose among people: there is one row for each of them",
            advice="aggregate over people next: SELECT AVG(n) FROM (... GROUP BY the unit column)",
            at=order or limit or offset,
        )
    if relation.private:
        raise planner.source.refusal(
            "ORDER BY and LIMIT choose among rows of people",
            advice="aggregate first; ORDER BY and LIMIT apply to the answer",
            at=order or limit or offset,
        )
    if relation.tail:
        relation, terms = settled(relation, planner.mark()), None
    tail = ""
    if order is not None:
        planner.only(order, {"expressions"})
        if terms is None:
            rows = planner.rows(relation, names, {}, intercept=planner.no_aggregates)
            terms = ordered(planner, order, relation.fields, rows)
        terms = [term for term in terms if term]
    if relation.level == "public" and node.parent is not None and (limit is not None or offset is not None):
        # Which rows are chosen must not depend on what else the engine is doing: rows that are alike in all are one.
        shown = [f"{one.value.sql} NULLS LAST" for one in relation.fields if not one.value.constant]
        terms = [*(terms or ()), *shown]
    if terms:
        tail += f" ORDER BY {', '.join(terms)}"
    for clause, word in ((limit, "LIMIT"), (offset, "OFFSET")):
        if clause is None:
            continue
        amount = planner.rows(relation, names, {}).constant(_amount(planner, clause), int, word)
        if amount < 0:
            raise planner.source.refusal(f"{word} cannot be negative", advice="write a whole number", at=clause)
        tail += f" {word} {min(amount, 2**62)}"
    words = ", ".join(word for word, clause in (("order", order), ("limit", limit), ("offset", offset)) if clause)
    return replace(relation, tail=tail, scan=False, step=Step(words, "", (relation.step,)))


def _amount(planner: Planner, clause: exp.Expr) -> exp.Expr:
    """How many rows LIMIT, OFFSET or FETCH FIRST says; FETCH FIRST ROW is one."""
    options = clause.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise planner.source.refusal(
            "rows are chosen by their number: PERCENT and WITH TIES are not supported",
            advice="write LIMIT and a whole number, such as LIMIT 3",
            at=clause,
        )
    planner.only(clause, {"expression", "direction", "count", "limit_options"})
    written: exp.Expr | None = clause.args.get("count" if isinstance(clause, exp.Fetch) else "expression")
    return exp.Literal.number(1) if written is None else written


def ordered(planner: Planner, order: exp.Order, fields: Sequence[Field], expressions: Expressions) -> list[str]:
    """The terms of ORDER BY; ALL stands for every column of the SELECT list, from left to right."""
    terms: list[str] = []
    for part in order.expressions:
        if isinstance(part, exp.Ordered) and isinstance(part.this, exp.Var) and part.this.name.upper() == "ALL":
            terms += [_direction(one.value.sql, part) for one in fields if not one.value.constant]
        else:
            terms.append(_term(planner, part, fields, expressions))
    return terms


def _direction(sql: str, part: exp.Ordered) -> str:
    direction = " DESC" if part.args.get("desc") else ""
    return f"{sql}{direction} NULLS {'FIRST' if part.args.get('nulls_first') else 'LAST'}"


def _term(planner: Planner, part: exp.Ordered, fields: Sequence[Field], expressions: Expressions) -> str:
    """One term of ORDER BY: a position, a name of the SELECT list, or an expression; empty for a constant."""
    if not isinstance(part, exp.Ordered):
        raise planner.source.refusal("this order is not understood", advice="write ORDER BY x DESC", at=part)
    planner.only(part, {"this", "desc", "nulls_first"})
    node = part.this
    named = [
        one for one in fields
        if isinstance(node, exp.Column) and not node.table and one.name.lower() == node.name.lower()
    ]  # fmt: skip
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        position = int(str(node.this))
        if not 1 <= position <= len(fields):
            raise planner.source.refusal(
                f"there is no column {position} in the SELECT list", advice=f"use 1 to {len(fields)}", at=node
            )
        value = fields[position - 1].value
    else:
        value = named[0].value if named else expressions.value(node)
        expressions.check_quotes(node, value)
    if value.constant:  # orders nothing, and the engine would read a number as a position
        return ""
    return _direction(value.sql, part)
