r"""The post-processing of a question, with the ends of intervals beside its columns.

A noisy table has the ends <a>_low and <a>_high of every aggregate a. Of an expression e over aggregates a, b, … of the
same row, each of its noisy numbers is moved to either end of its interval while the others stay, and what that changes
is combined as independent errors are:

    high = e + sqrt( sum over a of max(0, e(a_low) - e, e(a_high) - e)^2 ),        low likewise.

For sums with Gaussian noise that is exact, for smooth expressions as good as their straightness within the intervals.
Aggregates that are computed from the same noisy sum are not independent: what they change is added up, not squared. An
end is infinite where an expression has no value at the end of an interval, such as a ratio whose denominator may be 0.

Columns of UNION ALL are those of its parts. Where post-processing itself aggregates over groups (SUM of counts, window
functions, DISTINCT), a number depends on many groups at once: no interval is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.query.moments import moments_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlglot import exp

    from discreet.query.plan import Block, Question

__all__ = ["with_intervals"]

_ENDS = ("low", "high")
_INFINITE = "CAST('inf' AS DOUBLE)"
_MIXED = "mixed"
"""The noise of a column that is made of several; what is combined with it is added up."""

Edges = dict[str, dict[str, str]]
"""By alias of a table the columns that have ends, each with the name of the noise that it shares with others."""


def with_intervals(question: Question, numbers: Collection[str]) -> str:
    """`question.after` with two more columns for each output that has an interval; `numbers` are the numeric ones."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(question.after, read="duckdb")
    if not isinstance(tree, exp.Select):
        return question.after
    noisy = {f"noisy_{i}": _noises(block, i) for i, block in enumerate(question.blocks)}
    _widened(tree, noisy, numbers)
    return tree.sql(dialect="duckdb")


def _noises(block: Block, number: int) -> dict[str, str]:
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
    return found


def _widened(
    select: exp.Select, noisy: Mapping[str, dict[str, str]], numbers: Collection[str] | None
) -> dict[str, str]:
    """Add the ends to a SELECT, in place; gives the columns that have them and their noise."""
    from sqlglot import exp

    edges: Edges = {}
    for table in select.find_all(exp.Table):
        if table.name in noisy:
            edges[table.alias_or_name] = noisy[table.name]
    source = select.args.get("from_") or select.args.get("from")
    inner = source.this if source is not None else None
    if isinstance(inner, exp.Subquery):
        edges[inner.alias_or_name] = _of_parts(inner.this, noisy)
    if select.args.get("distinct") or select.args.get("group"):
        return {}
    found: dict[str, str] = {}
    projections: list[exp.Expr] = []
    for projection in select.expressions:
        projections.append(projection)
        name = projection.alias_or_name
        ends = _ends(projection.unalias(), edges, computed=numbers is None or name in numbers)
        if ends is not None:
            found[name] = ends[2]
            projections += [
                exp.alias_(end, f"{name}_{which}", quoted=True) for end, which in zip(ends[:2], _ENDS, strict=True)
            ]
    select.set("expressions", projections)
    return found


def _of_parts(inner: exp.Expr, noisy: Mapping[str, dict[str, str]]) -> dict[str, str]:
    """The columns with ends of a table in parentheses: a SELECT, or the parts of UNION ALL."""
    from sqlglot import exp

    parts = [part for part in _parts(inner) if isinstance(part, exp.Select)]
    if not parts or len(parts) < sum(1 for _ in _parts(inner)):
        return {}
    found = [_widened(part, noisy, None) for part in parts]
    names = [projection.alias_or_name for projection in parts[0].expressions]
    columns = {name: noise for one in found for name, noise in one.items()}
    for part, own in zip(parts, found, strict=True):
        plain = [p for p in part.expressions if not p.alias_or_name.endswith(("_low", "_high"))]
        by_name = {p.alias_or_name: p for p in part.expressions}
        projections = list(plain)
        for name in columns:
            for which in _ENDS:
                if name in own:
                    projections.append(by_name[f"{name}_{which}"])
                else:  # no noise in this part: the column is its own end
                    projections.append(exp.alias_(by_name[name].unalias().copy(), f"{name}_{which}"))
        part.set("expressions", projections)
    # Of several parts it is not known which columns share noise: all of them, to be safe.
    return columns if len(found) == 1 else {name: _MIXED for name in columns if name in names}


def _parts(tree: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    if isinstance(tree, exp.Subquery):
        yield from _parts(tree.this)
    elif isinstance(tree, exp.Union) and not tree.args.get("distinct"):
        yield from _parts(tree.this)
        yield from _parts(tree.expression)
    else:
        yield tree


def _ends(value: exp.Expr, edges: Edges, *, computed: bool) -> tuple[exp.Expr, exp.Expr, str] | None:
    """The two ends of a value and its noise, or None if it has no noise, or none that is understood."""
    from sqlglot import exp

    noises = {}
    for column in value.find_all(exp.Column):
        noise = edges.get(column.table, {}).get(column.name)
        if noise is not None:
            noises[column.table, column.name] = noise
    if not noises:
        return None
    if isinstance(value, exp.Column):
        low, high = (_moved(value, value.table, value.name, which) for which in _ENDS)
        return low, high, noises[value.table, value.name]
    if not computed or value.find(exp.AggFunc, exp.Window) is not None:
        return None
    centre = _double(value)
    shifts: dict[str, list[tuple[exp.Expr, exp.Expr]]] = {}
    for (table, name), noise in noises.items():
        ends = [_double(_moved(value, table, name, which)) for which in _ENDS]
        shifts.setdefault(_MIXED if _MIXED in noises.values() else noise, []).append((ends[0], ends[1]))
    below, above = _combined(centre, shifts, up=False), _combined(centre, shifts, up=True)
    low, high = (_parsed(f"{centre.sql('duckdb')} {sign} {part}") for sign, part in (("-", below), ("+", above)))
    return low, high, next(iter(noises.values())) if len(set(noises.values())) == 1 else _MIXED


def _combined(centre: exp.Expr, shifts: Mapping[str, list[tuple[exp.Expr, exp.Expr]]], *, up: bool) -> str:
    """SQL of how far the value may be above (below): the root of the squares over independent noises."""
    squares = []
    for columns in shifts.values():
        parts = []
        for ends in columns:
            gaps = [
                f"coalesce(NULLIF({one.sql('duckdb')} - {other.sql('duckdb')}, CAST('NaN' AS DOUBLE)), {_INFINITE})"
                for one, other in (((end, centre) if up else (centre, end)) for end in ends)
            ]
            parts.append(f"greatest(CAST(0 AS DOUBLE), {', '.join(gaps)})")
        squares.append(f"pow({' + '.join(parts)}, 2)")
    return f"sqrt({' + '.join(squares)})"


def _moved(value: exp.Expr, table: str, name: str, which: str) -> exp.Expr:
    """The value with a column in the place of one end."""
    from sqlglot import exp

    def move(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table == table and node.name == name:
            edge = node.copy()
            edge.set("this", exp.to_identifier(f"{name}_{which}", quoted=True))
            return edge
        return node

    return value.copy().transform(move)


def _double(value: exp.Expr) -> exp.Expr:
    return _parsed(f"TRY_CAST({value.sql('duckdb')} AS DOUBLE)")


def _parsed(sql: str) -> exp.Expr:
    import sqlglot

    return sqlglot.parse_one(sql, read="duckdb")
