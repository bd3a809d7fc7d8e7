"""WHERE EXISTS (SELECT ... WHERE inner.x = outer.y AND ...): written as y IN (SELECT x ...), which other rules check.

The two say the same where y and x are known, and EXISTS is false where one of them is NULL. So for public rows it is

    COALESCE(y IN (SELECT x FROM ... WHERE x IS NOT NULL AND ...), FALSE)

and for units it is IN alone, since rows without a unit are dropped. Nothing is allowed here that IN does not allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.joins import conjuncts, from_clause

if TYPE_CHECKING:
    from discreet.query.sql.planner import Names, Planner
    from discreet.query.sql.relation import Relation
    from discreet.query.sql.scope import Rows

__all__ = ["without_exists"]

_ADVICE = (
    "let one equality in its WHERE name a column outside, as in EXISTS (SELECT 1 FROM b WHERE b.unit = a.unit "
    "AND ...), and the rest columns of its own tables"
)


def without_exists(planner: Planner, relation: Relation, where: exp.Expr, names: Names) -> exp.Expr:
    """The condition of WHERE with an IN in the place of every EXISTS."""
    if where.find(exp.Exists) is None:
        return where
    where = where.copy()
    top = exp.Paren(this=where)  # so that the whole condition can be replaced, too
    waiting: list[exp.Expr] = [where]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Exists):
            node.replace(exp.Paren(this=_membership(planner, relation, node, names)))
        elif not isinstance(node, exp.Query):
            waiting += node.iter_expressions()
    changed: exp.Expr = top.this
    return changed


def _membership(planner: Planner, relation: Relation, node: exp.Exists, names: Names) -> exp.Expr:
    query = node.this.unnest()
    if not isinstance(query, exp.Select):
        raise planner.source.refusal("this EXISTS is not understood", advice=_ADVICE, at=node)
    planner.only(query, {"expressions", "from_", "joins", "where", "with_"})
    before = len(planner.blocks), len(planner.steps), planner.mixed
    inside = from_clause(planner, query, planner.with_names(query, names))
    planner.mixed = before[2]  # this was a look at its columns alone: what it measures is planned with the IN
    del planner.blocks[before[0] :], planner.steps[before[1] :]
    own, around = planner.rows(inside, names, {}), planner.rows(relation, names, {})
    for shown in query.expressions:  # what is selected does not matter, if it is no aggregate: that has a row always
        if not (isinstance(shown, exp.Star | exp.Literal) or (isinstance(shown, exp.Column) and own.find(shown))):
            raise planner.source.refusal(
                "EXISTS does not look at what is selected", advice="write SELECT 1 in it", at=shown
            )
    where = query.args.get("where")
    rest, pairs = [], []
    for part in [] if where is None else conjuncts(where.this):
        pair = _pair(part, own, around)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    strange = next((one for part in rest for one in _columns(part) if not own.find(one) and around.find(one)), None)
    if len(pairs) != 1 or strange is not None:
        raise planner.source.refusal(
            "this EXISTS asks more about the rows outside than whether one column is found"
            if pairs else "this EXISTS has no equality with a column outside",
            advice=_ADVICE,
            at=strange or (pairs[1][0].parent if len(pairs) > 1 else node),
        )  # fmt: skip
    (outer, inner), value = pairs[0], around.quietly(pairs[0][0])
    if inside.level != "unit" or value is None or not value.is_unit:
        rest.append(exp.Not(this=exp.Is(this=inner.copy(), expression=exp.Null())))
    listed = query.copy()
    listed.set("expressions", [inner.copy()])
    listed.set("where", exp.Where(this=exp.and_(*rest, copy=True)) if rest else None)
    found = exp.In(this=outer.copy(), query=exp.Subquery(this=listed))
    if inside.level == "unit" and value is not None and value.is_unit:
        return found
    return exp.Coalesce(this=found, expressions=[exp.false()])


def _pair(part: exp.Expr, own: Rows, around: Rows) -> tuple[exp.Column, exp.Column] | None:
    """The outer and the inner column of an equality between the two. A name that both know is the inner one."""
    if not isinstance(part, exp.EQ):
        return None
    columns = [side for side in (part.left.unnest(), part.right.unnest()) if isinstance(side, exp.Column)]
    if len(columns) != 2:
        return None
    for outer, inner in (columns, columns[::-1]):
        if own.find(inner) and not own.find(outer) and around.find(outer):
            return outer, inner
    return None


def _columns(node: exp.Expr) -> list[exp.Column]:
    """The columns of an expression, without those of queries inside of it."""
    if isinstance(node, exp.Query):
        return []
    if isinstance(node, exp.Column):
        return [node]
    return [one for child in node.iter_expressions() for one in _columns(child)]
