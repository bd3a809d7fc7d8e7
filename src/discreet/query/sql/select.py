"""One SELECT: WHERE, GROUP BY, HAVING and DISTINCT, from the relation that FROM gives to the one that it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.aggregates import has_aggregate
from discreet.query.sql.apart import tells_units_apart
from discreet.query.sql.existence import without_exists
from discreet.query.sql.grouping import Grouping
from discreet.query.sql.joins import from_clause
from discreet.query.sql.membership import with_memberships
from discreet.query.sql.narrowing import narrowed
from discreet.query.sql.ordering import finished, ordered
from discreet.query.sql.relation import Field, Relation, Step, settled
from discreet.query.sql.select_list import Shown, expanded, keys_of, shown_of
from discreet.query.sql.totals import is_dropped
from discreet.query.sql.windows import depends_on_order
from discreet.query.sql.within import first_rows, numbered, placed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.query.sql.planner import Names, Planner
    from discreet.query.sql.scope import Rows
    from discreet.query.sql.value import Value

__all__ = ["selected"]

CLAUSES = {
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_",
    "qualify",
}  # fmt: skip


def selected(planner: Planner, node: exp.Select, names: Names) -> Relation:
    """The relation of one SELECT."""
    planner.only(node, CLAUSES)
    names = planner.with_names(node, names)
    relation = from_clause(planner, node, names)
    where = node.args.get("where")
    condition = None if where is None else _without_truisms(where.this)
    if condition is not None:
        condition = without_exists(planner, relation, condition, names)
        relation, condition = with_memberships(planner, relation, condition, names)
    if relation.tail or any(one.value.window for one in relation.fields):
        relation = settled(relation, planner.mark())
    shown = shown_of(planner, node, relation)
    aliases = _aliases(node, shown)
    if condition is not None:
        rows = planner.rows(relation, names, aliases, intercept=planner.no_aggregates)
        words = f"where {planner.source.written(node.args['where'].this)}"
        effect = "keeps or drops each row by itself" if relation.private else ""
        relation = relation.filtered(rows.truth(condition).sql, Step(words, effect, (relation.step,)))
        relation = narrowed(relation, rows, condition)
        relation = _limited(relation, first_rows(rows, condition))
    qualify, within = node.args.get("qualify"), None
    if relation.level == "unit" and not _is_aggregated(node, shown):
        parts = [part for part in (*node.expressions, qualify) if part is not None]
        relation, within = placed(planner, planner.rows(relation, names, aliases), parts)
    shown = shown_of(planner, node, relation)  # once more, with what WHERE says about columns
    windows = within is not None or not relation.private
    rows = planner.rows(relation, names, aliases, intercept=planner.no_aggregates, windows=windows)
    rows.within = within
    distinct, order = node.args.get("distinct"), node.args.get("order")
    if distinct is not None and distinct.args.get("on") is not None:
        raise planner.source.refusal(
            "DISTINCT ON is not supported",
            advice="use GROUP BY with MIN or MAX; for the first row of each person, write QUALIFY ROW_NUMBER() OVER "
            "(PARTITION BY unit ORDER BY day) = 1",
            at=distinct,
        )
    if _is_aggregated(node, shown):
        grouping = Grouping(planner, relation, rows, aliases, names)
        result, terms = _aggregated(planner, node, shown, grouping)
    else:
        result, terms = _projected(relation, shown, rows), None
        if qualify is not None:
            result = _qualified(planner, result, qualify.this, rows)
        elif within is not None:
            result = settled(result, planner.mark())
        elif distinct is None and order is not None and not result.private:
            terms = ordered(planner, order, result.fields, rows)
    if distinct is not None:
        result = _distinct(planner, result, names)
    parts = [part for part in (*node.expressions, order, qualify) if part is not None]
    if within is None and any(depends_on_order(part) for part in parts):
        result = replace(result, arbitrary=True)
    return finished(planner, result, node, names, terms)


def _aliases(node: exp.Select, shown: list[Shown]) -> Mapping[str, exp.Expr]:
    """What the names that the SELECT list gives stand for."""
    given = {part.alias.lower() for part in node.expressions if isinstance(part, exp.Alias) and part.alias}
    named = {one.name.lower(): one.node for one in shown if one.node is not None and one.name.lower() in given}
    return {name: value for name, value in named.items() if not is_dropped(value)}


def _is_aggregated(node: exp.Select, shown: list[Shown]) -> bool:
    """Whether rows become groups, or one group."""
    group, having, order = (node.args.get(part) for part in ("group", "having", "order"))
    if group is not None or having is not None:
        return True
    return any(one.node is not None and has_aggregate(one.node) for one in shown) or (
        order is not None and has_aggregate(order)
    )


def _aggregated(
    planner: Planner, node: exp.Select, shown: list[Shown], grouping: Grouping
) -> tuple[Relation, list[str] | None]:
    """The relation of the groups, and the terms of ORDER BY unless DISTINCT comes between."""
    group, having, order, qualify = (node.args.get(part) for part in ("group", "having", "order", "qualify"))
    grouping.rows.windows = False  # keys and arguments are computed before the windows of the answer
    grouping.add_keys(keys_of(planner, group, shown, grouping.rows))
    fields = grouping.fields([(one.name, one.node, one.value) for one in expanded(planner, shown)])
    grouping.having(having)
    if qualify is not None:
        kept = Field("", "", grouping.outer.truth(qualify.this), hidden=True)
        return _kept(planner, grouping.finish((*fields, kept)), qualify.this), None
    terms = None
    if order is not None and node.args.get("distinct") is None:
        terms = ordered(planner, order, fields, grouping.outer)
    return grouping.finish(fields), terms


def _projected(relation: Relation, shown: list[Shown], rows: Rows) -> Relation:
    fields = tuple(
        Field(one.name, "", _value(one, rows), apart=one.node is not None and tells_units_apart(one.node, rows))
        for one in shown
    )
    places = numbered(rows, [(one.node, field.value) for one, field in zip(shown, fields, strict=True)])
    return replace(relation, fields=fields, scan=relation.scan and not relation.where, numbered=places)


def _qualified(planner: Planner, relation: Relation, condition: exp.Expr, rows: Rows) -> Relation:
    """The rows that meet the condition of QUALIFY; of each unit no more than a condition on ROW_NUMBER leaves."""
    kept = Field("", "", rows.truth(condition), hidden=True)
    result = _kept(planner, replace(relation, fields=(*relation.fields, kept)), condition)
    return _limited(result, first_rows(rows, condition) if rows.within is not None else None)


def _limited(relation: Relation, most: int | None) -> Relation:
    """The relation, of which no unit has more rows than that."""
    return relation if most is None else replace(relation, rows_per_unit=min(most, relation.rows_per_unit or most))


def _kept(planner: Planner, relation: Relation, condition: exp.Expr) -> Relation:
    """The rows for which the last column is true, without that column."""
    whole = settled(relation, planner.mark())
    effect = "keeps or drops each row by the rows of its unit" if relation.private else ""
    step = Step(f"qualify {planner.source.written(condition)}", effect, (relation.step,))
    result = replace(whole, fields=whole.fields[:-1]).filtered(whole.fields[-1].value.sql, step)
    return settled(result, planner.mark())


def _value(one: Shown, rows: Rows) -> Value:
    if one.value is not None:
        return one.value
    assert one.node is not None
    return rows.value(one.node)


def _distinct(planner: Planner, relation: Relation, names: Names) -> Relation:
    """Each distinct row once. Of people's rows: once for each unit if the unit is shown, else a choice of keys."""
    if relation.private and not any(one.value.is_unit for one in relation.fields):
        rows = planner.rows(relation, names, {})
        grouping = Grouping(planner, relation, rows, {}, names)
        grouping.add_keys([(exp.column(one.name), one.value) for one in relation.fields])
        return grouping.finish(grouping.fields([(one.name, None, one.value) for one in relation.fields]))
    inside = settled(relation, planner.mark())
    if relation.level != "released":
        fields = (replace(one, value=planner.with_one_look(one.value, exp.column(one.name))) for one in inside.fields)
        inside = replace(inside, fields=tuple(fields))
    outside = settled(inside, planner.mark())
    source = outside.source.replace("(SELECT ", "(SELECT DISTINCT ", 1)
    words = "once for each unit" if relation.private else ""
    return replace(outside, source=source, step=Step("distinct", words, (relation.step,)))


def _without_truisms(condition: exp.Expr) -> exp.Expr | None:
    """A condition without what is always true in it, as programs write it: WHERE 1 = 1 AND …; None if all of it is."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        parts = [part for part in (_without_truisms(one) for one in (inner.left, inner.right)) if part is not None]
        if len(parts) == 2 and parts[0] is inner.left and parts[1] is inner.right:
            return condition
        return exp.and_(*parts, copy=False) if parts else None
    same = isinstance(inner, exp.EQ) and isinstance(inner.left, exp.Literal) and inner.left == inner.right
    return None if same or (isinstance(inner, exp.Boolean) and inner.this) else condition
