"""ROLLUP, CUBE and GROUPING SETS: several groupings of the same rows, as a UNION ALL of one SELECT for each.

Every grouping is measured by itself, and the price is divided among them: a total is more accurate so than as the sum
of many noisy parts, and is not that sum. Keys that a grouping leaves out are NULL in its rows; GROUPING(key) is 1
there, and 0 elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.aggregates import has_aggregate, is_aggregate
from discreet.query.sql.joins import from_clause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from discreet.query.sql.planner import Names, Planner

__all__ = ["is_dropped", "with_totals"]

_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
_OUTSIDE = ("order", "limit", "offset", "with_")
_DROPPED = "dropped"
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
    return _Groupings(planner, node, names).query()


def is_dropped(node: exp.Expr) -> bool:
    """Whether it stands in the place of a key that a grouping leaves out; no other expression means it by its name."""
    return isinstance(node, exp.Null) and bool(node.meta.get(_DROPPED))


class _Groupings:
    """The groupings of one SELECT, whose keys are compared as texts.

    `aliases` are the names that the SELECT list gives and that are no columns, which come first.
    """

    def __init__(self, planner: Planner, node: exp.Select, names: Names) -> None:
        self.planner, self.node = planner, node
        columns = Counter(
            one.name.lower() for one in from_clause(planner, node, planner.with_names(node, names)).fields
        )
        self.shared = {name for name, count in columns.items() if count > 1}
        given = {part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias)}
        self.aliases = {name: value for name, value in given.items() if name not in columns}
        parts = product(*map(_sets, node.args["group"].expressions))
        self.sets = [{self._text(key): key for part in keys for key in map(self._key, part)} for keys in parts]
        self.every = self._texts({text: key for keys in self.sets for text, key in keys.items()})

    def query(self) -> exp.Query:
        """All of them."""
        for part in (*self.node.expressions, *([self.node.args["having"]] if self.node.args.get("having") else [])):
            self._check(part)
        query, *others = (self._grouped(keys) for keys in self.sets)
        whole: exp.Query = query
        for other in others:
            whole = exp.Union(this=whole, expression=other, distinct=False)
        for part in _OUTSIDE:
            if self.node.args.get(part) is not None:
                whole.set(part, self.node.args[part])
        for term in [] if self.node.args.get("order") is None else self.node.args["order"].expressions:
            self._name(term)
        return whole

    def _key(self, key: exp.Expr) -> exp.Expr:
        """A key; a position stands for the expression at that place of the SELECT list."""
        if isinstance(key, exp.Literal) and not key.is_string and str(key.this).isdigit():
            place = int(str(key.this))
            return self.node.expressions[place - 1].unalias() if 1 <= place <= len(self.node.expressions) else key
        return key

    def _text(self, key: exp.Expr) -> str:
        """A key in a form in which two ways to write it are one: in small letters, with tables only where needed."""
        plain = key.copy()
        for column in plain.find_all(exp.Column):
            name, table = column.name.lower(), column.table.lower()
            column.set("this", exp.to_identifier(name, quoted=True))
            column.set("table", exp.to_identifier(table, quoted=True) if table and name in self.shared else None)
        return plain.sql(dialect="duckdb", comments=False)

    def _texts(self, keys: dict[str, exp.Expr]) -> set[str]:
        """How keys are written: as they are, and in other words where the SELECT list gives them a name."""
        plain = (key.name.lower() for key in keys.values() if isinstance(key, exp.Column) and not key.table)
        return {*keys, *(self._text(self.aliases[name]) for name in plain if name in self.aliases)}

    def _check(self, part: exp.Expr) -> None:
        """Refuses GROUPING of what is no key."""
        for call in part.find_all(exp.Grouping):
            for key in call.expressions:
                if self._text(key) not in self.every:
                    words = f"'{self.planner.source.written(key)}' is no key of these groupings"
                    raise self.planner.source.refusal(words, advice="name one that GROUP BY has", at=key)

    def _name(self, term: exp.Expr) -> None:
        """Let a term of ORDER BY that is written like a column of the SELECT list be that column."""
        if not isinstance(term, exp.Ordered):
            return
        text = self._text(term.this)
        for part in self.node.expressions:
            if self._text(part.unalias()) == text:
                term.set("this", exp.column(self._called(part), quoted=True))
                return

    def _called(self, part: exp.Expr) -> str:
        """What a column of the SELECT list is called."""
        named = isinstance(part, exp.Alias | exp.Column)
        return part.alias_or_name if named else self.planner.source.written(part, limit=100)

    def _grouped(self, keys: dict[str, exp.Expr]) -> exp.Select:
        """The SELECT with one grouping, and NULL in place of the keys of others."""
        select, kept = self.node.copy(), self._texts(keys)
        for part in (*_OUTSIDE, "group"):
            select.set(part, None)
        if keys:
            select.set("group", exp.Group(expressions=[key.copy() for key in keys.values()]))
        elif not any(has_aggregate(part) for part in self.node.expressions):
            words = "one of the groupings has neither keys nor aggregates"
            raise self.planner.source.refusal(words, advice="select an aggregate, such as COUNT(*)", at=self.node)
        shown: list[exp.Expr] = []
        for part, own in zip(self.node.expressions, select.expressions, strict=True):
            name, value = self._called(part), self._without(own.unalias(), kept)
            same = isinstance(value, exp.Column) and value.name == name
            shown.append(value if same else exp.alias_(value, name, quoted=True, copy=False))
        select.set("expressions", shown)
        having = select.args.get("having")
        if having is not None:
            having.set("this", self._without(having.this, kept))
        return select

    def _without(self, node: exp.Expr, kept: set[str]) -> exp.Expr:
        """An expression over keys and aggregates with NULL in the place of keys that are not kept."""
        if isinstance(node, exp.Grouping):
            bits = "".join("0" if self._text(key) in kept else "1" for key in node.expressions)
            return exp.Literal.number(int(bits, 2))
        text = self._text(node)
        if is_aggregate(node) or isinstance(node, exp.Query | exp.Subquery) or text in kept:
            return node
        if text in self.every:
            null = exp.null()
            null.meta[_DROPPED] = True
            return null
        for child in list(node.iter_expressions()):
            put = self._without(child, kept)
            if put is not child:
                child.replace(put)
        return node


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
