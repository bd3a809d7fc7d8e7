"""ROLLUP, CUBE and GROUPING SETS: several groupings of the same rows, as a UNION ALL of one SELECT for each.

Every grouping is measured by itself, and the price is divided among them: a total is more accurate so than as the sum
of many noisy parts, and is not that sum. Keys that a grouping leaves out are NULL in its rows;
GROUPING(key) is 1 there, and 0 elsewhere.
"""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.aggregates import has_aggregate, is_aggregate
from discreet.query.sql.joins import from_clause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from discreet.query.sql.planner import Names, Planner

__all__ = ["with_totals"]

_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
_OUTSIDE = ("order", "limit", "offset", "with_")
_MOST = 16
"""How many groupings one SELECT may have: each gets a part of the price."""


def with_totals(planner: Planner, node: exp.Select, names: Names) -> exp.Query | None:
    """The SELECT with its groupings written out, if GROUP BY has ROLLUP, CUBE or GROUPING SETS."""
    group = node.args.get("group")
    if group is None or not any(isinstance(part, _SEVERAL) for part in group.expressions):
        return None
    planner.only(group, {"expressions"})
    number = math.prod(map(_number, group.expressions))
    if number > _MOST:
        raise planner.source.refusal(
            f"these are {number} groupings, among which the price would be divided",
            advice=f"ask for at most {_MOST} at once, listed in GROUPING SETS",
            at=group,
        )
    if node.args.get("distinct") or node.args.get("qualify") or any(part.find(exp.Window) for part in node.expressions):
        raise planner.source.refusal(
            "DISTINCT, QUALIFY and window functions beside ROLLUP, CUBE or GROUPING SETS are not supported",
            advice="write them around it: SELECT ... FROM (SELECT ... GROUP BY ROLLUP (...))",
            at=group,
        )
    sets = [[key for part in parts for key in part] for parts in product(*map(_sets, group.expressions))]
    columns = {one.name.lower() for one in from_clause(planner, node, planner.with_names(node, names)).fields}
    aliases = {part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias)}
    aliases = {name: value for name, value in aliases.items() if name not in columns}  # which come first
    given = [{_text(key): key for key in (_key(node, key) for key in keys)} for keys in sets]
    every = _texts({text: key for keys in given for text, key in keys.items()}, aliases)
    selects = [
        _grouped(planner, node, list(keys.values()), kept=(kept := _texts(keys, aliases)), dropped=every - kept)
        for keys in given
    ]
    query: exp.Query = selects[0]
    for select in selects[1:]:
        query = exp.Union(this=query, expression=select, distinct=False)
    for part in _OUTSIDE:
        if node.args.get(part) is not None:
            query.set(part, node.args[part])
    return query


def _number(part: exp.Expr) -> int:
    """How many groupings one part of GROUP BY means."""
    if isinstance(part, exp.GroupingSets):
        return sum(map(_number, part.expressions))
    parts = len(part.expressions)
    return 2**parts if isinstance(part, exp.Cube) else parts + 1 if isinstance(part, exp.Rollup) else 1


def _sets(part: exp.Expr) -> list[list[exp.Expr]]:
    """The groupings that one part of GROUP BY means."""
    if isinstance(part, exp.GroupingSets):
        return [keys for one in part.expressions for keys in _sets(one)]
    if not isinstance(part, exp.Rollup | exp.Cube):
        return [_keys(part)]
    parts = [_keys(one) for one in part.expressions]
    if isinstance(part, exp.Rollup):
        chosen: Iterable[Sequence[list[exp.Expr]]] = (parts[:size] for size in range(len(parts), -1, -1))
    else:
        chosen = (some for size in range(len(parts), -1, -1) for some in combinations(parts, size))
    return [[key for keys in some for key in keys] for some in chosen]


def _keys(part: exp.Expr) -> list[exp.Expr]:
    return list(part.expressions) if isinstance(part, exp.Tuple) else [part.unnest()]


def _key(node: exp.Select, key: exp.Expr) -> exp.Expr:
    """A key; a position stands for the expression at that place of the SELECT list."""
    if isinstance(key, exp.Literal) and not key.is_string and str(key.this).isdigit():
        place = int(str(key.this))
        return node.expressions[place - 1].unalias() if 1 <= place <= len(node.expressions) else key
    return key


def _texts(keys: dict[str, exp.Expr], aliases: dict[str, exp.Expr]) -> set[str]:
    """How keys are written: as they are, and in other words where the SELECT list gives them a name."""
    named = (aliases.get(key.name.lower()) for key in keys.values() if isinstance(key, exp.Column) and not key.table)
    return {*keys, *(_text(one) for one in named if one is not None)}


def _text(key: exp.Expr) -> str:
    """A key in a form in which two ways to write it are one: columns without their tables, in small letters."""
    plain = key.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
        column.this.set("quoted", False)
        column.this.set("this", column.name.lower())
    return plain.sql(dialect="duckdb", comments=False)


def _grouped(
    planner: Planner, node: exp.Select, keys: list[exp.Expr], *, kept: set[str], dropped: set[str]
) -> exp.Select:
    """The SELECT with one grouping, and NULL in place of the keys of others; `kept` and `dropped` are their texts."""
    select = node.copy()
    for part in (*_OUTSIDE, "group"):
        select.set(part, None)
    if keys:
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    elif not any(has_aggregate(part) for part in node.expressions):
        words = "one of the groupings has neither keys nor aggregates"
        raise planner.source.refusal(words, advice="select an aggregate, such as COUNT(*)", at=node)
    shown: list[exp.Expr] = []
    for part, own in zip(node.expressions, select.expressions, strict=True):
        name = (
            part.alias_or_name if isinstance(part, exp.Alias | exp.Column) else planner.source.written(part, limit=100)
        )
        value = _without(own.unalias(), dropped, kept)
        shown.append(value if isinstance(value, exp.Column) and value.name == name else _called(value, name))
    select.set("expressions", shown)
    having = select.args.get("having")
    if having is not None:
        having.set("this", _without(having.this, dropped, kept))
    return select


def _called(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True, copy=False)


def _without(node: exp.Expr, dropped: set[str], kept: set[str]) -> exp.Expr:
    """An expression over keys and aggregates with NULL in the place of keys that are dropped."""
    if isinstance(node, exp.Grouping):
        bits = "".join("1" if _text(key) in dropped else "0" for key in node.expressions)
        return exp.Literal.number(int(bits, 2))
    text = _text(node)
    if is_aggregate(node) or text in kept:
        return node
    if text in dropped:
        return exp.null()
    for child in list(node.iter_expressions()):
        put = _without(child, dropped, kept)
        if put is not child:
            child.replace(put)
    return node
