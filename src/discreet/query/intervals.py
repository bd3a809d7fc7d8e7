r"""The post-processing of a question, with the ends of intervals beside its columns.

A noisy table has the ends <a>_low and <a>_high of every aggregate a. Of an expression e over noisy numbers a, b, …,
each of them is moved to either end of its interval while the others stay, and what that changes is combined as
independent errors are:

    high = e + sqrt( sum over a of max(0, e(a_low) - e, e(a_high) - e)^2 ),        low likewise.

For sums with Gaussian noise that is exact, for smooth expressions as good as their straightness within the intervals.
Numbers that are computed from the same noisy sum are not independent: what they change is added up, not squared. An
end is infinite where an expression has no value at the end of an interval, and where a denominator may be 0.

The noisy numbers are columns, aggregates and window functions over several rows (see `pooling`), and subqueries of one
row. Columns of UNION ALL are those of its parts. Of every other noisy column it is said why it has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from discreet.query.moments import moments_of
from discreet.query.pooling import (
    BARE,
    ENDS,
    MIXED,
    Ends,
    Lacking,
    Noise,
    double,
    is_double,
    is_pool,
    is_whole,
    pooled,
    whole,
)
from discreet.query.shifting import shifted_ends

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlglot import exp

    from discreet.query.plan import Block, Question
    from discreet.query.pooling import Pair, Pairs

__all__ = ["noisy_columns", "picks_rows", "takes_extremes", "with_intervals"]

_SELECTED = "which groups are shown was decided with noise, and what the others have is missing from it"
_KEPT = "it is taken over rows that noisy numbers have picked"
_DISTINCT = "DISTINCT compares noisy numbers"
_GROUPED = "rows are grouped by it"
_NO_NUMBER = "it is not a number"
_DEEP = "the SELECT list is nested too deeply"


def with_intervals(
    question: Question, numbers: Collection[str], lost: tuple[float, ...] = (), *, pairs: Pairs = ENDS
) -> tuple[str, dict[str, str]]:
    """`question.after` with two more columns for each output that has an interval; `numbers` are the numeric ones.

    Beside it stand the outputs that are noisy and have no interval, each with the reason. `lost` says for each block
    how many times larger the allowance for what is cut off is in sums over groups, and `pairs` what ends are called.
    """
    try:
        return _ends(question, numbers, lost, pairs)
    except RecursionError:  # a sum of sixty aggregates, say
        return question.after, dict.fromkeys(numbers, _DEEP)


def takes_extremes(question: Question) -> bool:
    """Whether it asks for the largest or smallest of noisy numbers: all groups' intervals must hold at once."""
    text = question.after.upper()
    return "MAX(" in text or "MIN(" in text


def noisy_columns(question: Question) -> set[str]:
    """The outputs in which there is noise, with ends or without."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(question.after, read="duckdb")
    if not isinstance(tree, exp.Select):
        return set()
    try:
        found = _walk(question, (), ENDS).widened(tree, None)
    except RecursionError:
        return {output.name for output in question.outputs}
    return {*found.columns, *found.lacking}


def picks_rows(question: Question) -> bool:
    """Whether noisy numbers decide which rows are shown: the largest of them, or those beyond a threshold."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(question.after, read="duckdb")
    if not isinstance(tree, exp.Select):
        return False
    try:
        scope, _ = _walk(question, (), ENDS)._scope(tree)
    except RecursionError:
        return False
    return scope.picked == _KEPT or (tree.args.get("limit") is not None and _sorted_by_noise(question, tree, scope))


def _sorted_by_noise(question: Question, select: exp.Select, scope: _Scope) -> bool:
    """Whether noisy numbers have a part in the order; they have none among groups that their keys tell apart before."""
    from sqlglot import exp

    order = select.args.get("order")
    terms = [term.this for term in order.expressions] if order is not None else []
    noisy = next((i for i, term in enumerate(terms) if scope.depends(term)), None)
    if noisy is None:
        return False
    source = select.args["from_"].this
    if select.args.get("joins") or not isinstance(source, exp.Table):
        return True
    before = {term.name for term in terms[:noisy] if isinstance(term, exp.Column)}
    keys = {f"noisy_{i}": {key.column for key in block.keys} for i, block in enumerate(question.blocks)}
    return not keys[source.name] <= before


def _ends(
    question: Question, numbers: Collection[str], lost: tuple[float, ...], pairs: Pairs
) -> tuple[str, dict[str, str]]:
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(question.after, read="duckdb")
    if not isinstance(tree, exp.Select):
        return question.after, {}
    found = _walk(question, lost, pairs).widened(tree, numbers)
    return tree.sql(dialect="duckdb"), found.lacking


def _walk(question: Question, lost: tuple[float, ...], pairs: Pairs) -> _Walk:
    return _Walk(
        noisy={
            f"noisy_{i}": _noises(block, i, lost=lost[i] if lost else 1.0) for i, block in enumerate(question.blocks)
        },
        selected=frozenset(
            f"noisy_{i}" for i, block in enumerate(question.blocks) if any(key.values is None for key in block.keys)
        ),
        pairs=pairs if takes_extremes(question) else pairs[:1],
        at_once=pairs[1],
    )


def _noises(block: Block, number: int, *, lost: float) -> dict[str, Noise]:
    """Which noise each aggregate of a block has: those that share a noisy sum have the same."""
    kinds: dict[object, str] = {}
    found: dict[str, str] = {}
    for aggregate in block.aggregates:
        sums = moments_of(aggregate, block.aggregates) or (aggregate.column,)
        known = {kinds[one] for one in sums if one in kinds}
        name = min(known) if known else f"{number} {aggregate.column}"
        for other in known:  # it joins what was apart
            found = {column: name if noise == other else noise for column, noise in found.items()}
            kinds = {one: name if noise == other else noise for one, noise in kinds.items()}
        kinds |= dict.fromkeys(sums, name)
        found[aggregate.column] = name
    bare = {aggregate.column for aggregate in block.aggregates if aggregate.function in BARE}
    return {column: Noise(name, lost=lost, bare=column in bare) for column, name in found.items()}


@dataclass(frozen=True)
class _Found:
    """The columns of a table that have ends, those that lack them and why, and what its rows were picked by, if so."""

    columns: dict[str, Noise] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    picked: str | None = None
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Scope:
    """What the columns of a SELECT's tables are, by alias, and what it groups by."""

    tables: dict[str, _Found]
    picked: str | None
    keys: tuple[exp.Expr, ...] = ()

    def noise(self, column: exp.Column) -> Noise | None:
        """The noise of a column, None if it has none; raises if it has, and no ends."""
        found = self.tables.get(column.table, _Found())
        if column.name in found.lacking:
            raise Lacking(found.lacking[column.name])
        return found.columns.get(column.name)

    def depends(self, *nodes: exp.Expr | None) -> bool:
        """Whether there is noise in any of these expressions, with ends or without."""
        from sqlglot import exp

        for node in nodes:
            for column in node.find_all(exp.Column) if node is not None else ():
                found = self.tables.get(column.table, _Found())
                if column.name in found.columns or column.name in found.lacking:
                    return True
        return False


@dataclass(frozen=True)
class _Walk:
    noisy: Mapping[str, dict[str, Noise]]
    selected: frozenset[str]
    pairs: tuple[Pair, ...]
    at_once: Pair

    def widened(self, select: exp.Select, numbers: Collection[str] | None) -> _Found:
        """Add the ends to a SELECT, in place; `numbers` are the numeric outputs, None within the question."""
        from sqlglot import exp

        scope, tables = self._scope(select)
        columns: dict[str, Noise] = {}
        lacking: dict[str, str] = {}
        projections: list[exp.Expr] = []
        for projection in select.expressions:
            projections.append(projection)
            name, value = projection.alias_or_name, projection.unalias()
            try:
                for clause, reason in (("distinct", _DISTINCT), ("group", _GROUPED)):
                    if select.args.get(clause) and scope.depends(value) and not (clause == "group" and _pools(value)):
                        raise Lacking(reason)
                ends = [self.ends(value, scope, pair) for pair in self.pairs[: 1 if numbers is not None else None]]
                if any(end is None for end in ends):
                    continue
                if numbers is not None and name not in numbers and not isinstance(value, exp.Column):
                    raise Lacking(_NO_NUMBER)
            except Lacking as why:
                lacking[name] = str(why)
                continue
            for pair, end in zip(self.pairs, ends, strict=False):
                assert end is not None
                columns[name] = end.noise
                if end.both is not None and numbers is not None:
                    projections.append(end.both(pair.of(name)))
                    continue
                named = list(zip((end.low, end.high), pair.of(name), strict=True))
                if end.bare is not None and numbers is None:
                    named += zip(end.bare, pair.bare(name), strict=True)
                projections += [exp.alias_(one, called, quoted=True) for one, called in named]
        select.set("expressions", projections)
        picked = scope.picked
        if select.args.get("limit") or select.args.get("distinct") or scope.depends(select.args.get("having")):
            picked = _KEPT
        if select.args.get("joins"):
            columns = {name: replace(noise, apart=False) for name, noise in columns.items()}
        return _Found(columns, lacking, picked, tables)

    def _scope(self, select: exp.Select) -> tuple[_Scope, tuple[str, ...]]:
        from sqlglot import exp

        source = select.args.get("from_") or select.args.get("from")
        joins = select.args.get("joins") or []
        found: dict[str, _Found] = {}
        for inner in [one.this for one in (source, *joins) if one is not None]:
            if isinstance(inner, exp.Table) and inner.name in self.noisy:
                picked = _SELECTED if inner.name in self.selected else None
                found[inner.alias_or_name] = _Found(dict(self.noisy[inner.name]), {}, picked, (inner.name,))
            elif isinstance(inner, exp.Subquery):
                found[inner.alias_or_name] = self._of_parts(inner.this)
        scope = _Scope(found, next((one.picked for one in found.values() if one.picked), None))
        conditions = [select.args.get("where"), *(join.args.get("on") for join in joins)]
        grouped = select.args.get("group")
        keys = list(grouped.expressions) if grouped is not None else []
        keys = [select.expressions[int(key.this) - 1] if isinstance(key, exp.Literal) else key for key in keys]
        scope = replace(scope, keys=tuple(key.unalias() for key in keys))
        if scope.depends(*conditions, *keys):
            scope = replace(scope, picked=_KEPT)
        return scope, tuple(table for one in found.values() for table in one.tables)

    def _of_parts(self, inner: exp.Expr) -> _Found:
        """A table in parentheses: a SELECT, or the parts of UNION ALL."""
        from sqlglot import exp

        parts = list(_parts(inner))
        if not all(isinstance(part, exp.Select) for part in parts):
            return _Found()
        found = [self.widened(part, None) for part in parts if isinstance(part, exp.Select)]
        if len(found) == 1:
            return found[0]
        ends = {end for pair in self.pairs for name in found[0].columns for end in (*pair.of(name), *pair.bare(name))}
        names = [p.alias_or_name for p in parts[0].expressions if p.alias_or_name not in ends]
        lacking = {name: why for one in found for name, why in one.lacking.items()}
        noisy = {name for one in found for name in one.columns} - set(lacking)
        tables = tuple(table for one in found for table in one.tables)
        for part, own in zip(parts, found, strict=True):
            by_name = {p.alias_or_name: p for p in part.expressions}
            projections = [by_name[name] for name in names]
            for name in (name for name in names if name in noisy):
                for end in (end for pair in self.pairs for end in pair.of(name)):
                    if name in own.columns:
                        projections.append(by_name[end])
                    else:  # no noise in this part: the column is its own end
                        projections.append(exp.alias_(by_name[name].unalias().copy(), end, quoted=True))
            part.set("expressions", projections)
        # Of several parts it is not known which columns share noise: all of them, to be safe.
        apart = len(set(tables)) == len(tables) and all(noise.apart for one in found for noise in one.columns.values())
        picked = next((one.picked for one in found if one.picked), None)
        lost = max([noise.lost for one in found for noise in one.columns.values()], default=1.0)
        return _Found({name: Noise(MIXED, apart=apart, lost=lost) for name in noisy}, lacking, picked, tables)

    def ends(self, value: exp.Expr, scope: _Scope, pair: Pair) -> Ends | None:
        """The two ends of a value and its noise, or None if it has no noise."""
        from sqlglot import exp

        if isinstance(value, exp.Paren):
            return self.ends(value.this, scope, pair)
        if is_double(value) or is_whole(value):  # the ends of a number are those of the number as another type
            inner = self.ends(value.this, scope, pair)
            return inner if inner is None else inner.each(double if is_double(value) else whole)
        atoms = list(self._atoms(value, scope, pair))
        if not atoms:
            return None
        if isinstance(value, exp.Column):
            return atoms[0][1]
        kinds = {ends.noise.name for _, ends in atoms}
        noise = Noise(
            kinds.pop() if len(kinds) == 1 else MIXED,
            apart=all(ends.noise.apart for _, ends in atoms),
            lost=max(ends.noise.lost for _, ends in atoms),
        )
        return shifted_ends(value, atoms, noise=noise, is_key=lambda node: node in scope.keys)

    def _atoms(self, value: exp.Expr, scope: _Scope, pair: Pair) -> Iterator[tuple[exp.Expr, Ends]]:
        """The noisy numbers that a value is made of: columns, aggregates over rows, and subqueries of one row."""
        from sqlglot import exp

        seen: set[str] = set()
        waiting = [value]
        while waiting:
            node = waiting.pop()
            ends: Ends | None = None
            if isinstance(node, exp.Column):
                noise = scope.noise(node)
                if noise is not None:
                    low, high, *bare = (_named(node, end) for end in (*pair.of(node.name), *pair.bare(node.name)))
                    ends = Ends(low, high, noise, (bare[0], bare[1]) if noise.bare else None)
            elif is_pool(node):
                ends = pooled(
                    node,
                    pair,
                    at_once=self.at_once,
                    ends_of=lambda inner, level: self.ends(inner, scope, level),
                    depends=scope.depends,
                )
                if scope.picked and (ends is not None or not isinstance(node, exp.Window)):
                    raise Lacking(scope.picked)
            elif isinstance(node, exp.Subquery):
                ends = self._of_scalar(node, pair)
            else:
                waiting += reversed(list(node.iter_expressions()))
            if ends is not None and node.sql("duckdb") not in seen:
                seen.add(node.sql("duckdb"))
                yield node, ends

    def _of_scalar(self, node: exp.Subquery, pair: Pair) -> Ends | None:
        from sqlglot import exp

        inner = node.this.copy()
        if not isinstance(inner, exp.Select):
            return None
        name = inner.expressions[0].alias_or_name
        found = self.widened(inner, None)
        if name in found.lacking:
            raise Lacking(found.lacking[name])
        if name not in found.columns:
            return None
        by_name = {p.alias_or_name: p for p in inner.expressions}
        noise = replace(found.columns[name], apart=False)
        ends = []
        for end in (*pair.of(name), *(pair.bare(name) if noise.bare else ())):
            one = inner.copy()
            one.set("expressions", [by_name[end].copy()])
            ends.append(exp.Subquery(this=one))
        return Ends(ends[0], ends[1], noise, (ends[2], ends[3]) if noise.bare else None)


def _pools(value: exp.Expr) -> bool:
    return any(is_pool(node) for node in value.walk())


def _parts(tree: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    if isinstance(tree, exp.Subquery):
        yield from _parts(tree.this)
    elif isinstance(tree, exp.Union) and not tree.args.get("distinct"):
        yield from _parts(tree.this)
        yield from _parts(tree.expression)
    else:
        yield tree


def _named(column: exp.Column, name: str) -> exp.Expr:
    from sqlglot import exp

    edge = column.copy()
    edge.set("this", exp.to_identifier(name, quoted=True))
    return edge
