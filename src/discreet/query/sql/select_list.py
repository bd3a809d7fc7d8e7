"""The SELECT list: its columns, with * written out, and what GROUP BY names of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.aggregates import calls_of, has_aggregate, is_aggregate
from discreet.query.sql.pairs import is_pair

if TYPE_CHECKING:
    from discreet.query.sql.planner import Planner
    from discreet.query.sql.relation import Relation
    from discreet.query.sql.scope import Rows
    from discreet.query.sql.value import Value

__all__ = ["Shown", "expanded", "keys_of", "shown_of"]


@dataclass(frozen=True)
class Shown:
    """One column of a SELECT list: its name, and the syntax tree or the finished value behind it."""

    name: str
    node: exp.Expr | None
    value: Value | None = None


def shown_of(planner: Planner, node: exp.Select, relation: Relation) -> list[Shown]:
    """The SELECT list with * written out."""
    if not node.expressions:
        raise planner.source.refusal("nothing is selected", advice="write SELECT COUNT(*) FROM ...", at=node)
    shown: list[Shown] = []
    for part in node.expressions:
        star = part.this if isinstance(part, exp.Column) else part
        if isinstance(star, exp.Star):
            planner.only(star, {"except_"})
            hidden = {one.name.lower() for one in star.args.get("except_") or []}
            table = part.table.lower() if isinstance(part, exp.Column) else ""
            found = [
                one for one in relation.fields
                if not one.hidden and one.name.lower() not in hidden and (not table or one.table == table)
            ]  # fmt: skip
            if not found:
                raise planner.source.refusal("there is nothing to select", advice="name a table in FROM", at=part)
            shown += [Shown(one.name, None, one.value) for one in found]
        elif isinstance(part, exp.Alias):
            shown.append(Shown(part.alias, part.this))
        elif isinstance(part, exp.Column):
            shown.append(Shown(part.name, part))
        else:
            shown.append(Shown(planner.source.written(part, limit=100), part))
    return shown


def expanded(planner: Planner, shown: list[Shown]) -> list[Shown]:
    """A quantile with a list of probabilities becomes one column for each."""
    out: list[Shown] = []
    for one in shown:
        node = one.node.unnest() if one.node is not None else None
        is_call = node is not None and is_aggregate(node) and not is_pair(node)
        call = calls_of(planner.source, node) if node is not None and is_call else None
        if call is None or not call.listed:
            out.append(one)
            continue
        for probability in call.probabilities:
            kind = exp.PercentileDisc if call.discrete else exp.PercentileCont
            part: exp.Expr = kind(
                this=call.argument.copy() if call.argument else None,
                expression=exp.Literal.number(repr(probability)),
            )
            if call.condition is not None:
                part = exp.Filter(this=part, expression=exp.Where(this=call.condition.copy()))
            out.append(Shown(_name_of_part(planner, one, probability), part))
    return out


def _name_of_part(planner: Planner, one: Shown, probability: float) -> str:
    """q_0.25 for what is called q, and the call with this probability alone for what has no name."""
    unnamed = one.node is not None and one.name == planner.source.written(one.node, limit=100)
    alone = re.sub(r"\[[^\[\]]*\]", f"{probability:g}", one.name) if unnamed else one.name
    return alone if alone != one.name else f"{one.name}_{probability:g}"


def keys_of(planner: Planner, group: exp.Group | None, shown: list[Shown], rows: Rows) -> list[tuple[exp.Expr, Value]]:
    """What GROUP BY names: expressions, names of the SELECT list, positions in it, or ALL."""
    if group is None:
        return []
    planner.only(group, {"expressions", "all"})
    nodes: list[exp.Expr] = []
    if not group.expressions and not group.args.get("all"):
        raise planner.source.refusal("GROUP BY names nothing", advice="name columns, or leave it out", at=group)
    if group.args.get("all"):
        nodes = [
            one.node or exp.column(one.name) for one in shown
            if one.node is None or not (has_aggregate(one.node) or isinstance(one.node, exp.Literal))
        ]  # fmt: skip
    for part in group.expressions:
        node = part.unnest()
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            position = int(str(node.this))
            if not 1 <= position <= len(shown):
                raise planner.source.refusal(
                    f"there is no column {position} in the SELECT list", advice=f"use 1 to {len(shown)}", at=node
                )
            one = shown[position - 1]
            node = one.node if one.node is not None else exp.column(one.name)
        elif isinstance(node, exp.Literal) and node.is_string:
            rows.check_name(str(node.this), node)
        elif isinstance(node, exp.Tuple):
            nodes += node.expressions
            continue
        nodes.append(node)
    keys = []
    for node in nodes:
        if has_aggregate(node):
            raise planner.source.refusal(
                "GROUP BY an aggregate is not possible", advice="aggregate in a subquery first", at=node
            )
        keys.append((node, rows.value(node)))
    return keys
