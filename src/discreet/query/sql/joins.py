"""FROM with its joins, each with what one unit can change through it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.possible import Listing
from discreet.query.sql.relation import PUBLIC_OPEN, Field, Relation, Step, is_plain, settled
from discreet.query.sql.sources import table_like
from discreet.query.sql.text import closest

if TYPE_CHECKING:
    from discreet.query.sql.planner import Names, Planner
    from discreet.query.sql.value import Value

__all__ = ["conjuncts", "from_clause", "joined"]


def from_clause(planner: Planner, node: exp.Select, names: Names) -> Relation:
    """The relation that FROM and its joins make."""
    first = node.args.get("from_")
    if first is None:
        return Relation("", (), "public", single=True, step=Step("one row without a table"))
    relation = table_like(planner, first.this, names)
    where = node.args.get("where")
    equalities = [part for part in conjuncts(where.this) if isinstance(part, exp.EQ)] if where is not None else []
    for join in node.args.get("joins") or []:
        relation = joined(planner, relation, join, names, equalities)
    return relation


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that AND joins."""
    condition = condition.unnest()
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    return [part.unnest() for part in parts]


@dataclass(frozen=True)
class _Sides:
    """The two sides of a join, the join itself, and LEFT, RIGHT, FULL or nothing."""

    left: Relation
    right: Relation
    node: exp.Join
    side: str
    alone: bool  # the one condition there is


def joined(planner: Planner, left: Relation, node: exp.Join, names: Names, equalities: list[exp.EQ]) -> Relation:
    """The rows of both sides of a join; `equalities` are those that WHERE has for joins without a condition."""
    planner.only(node, {"this", "on", "using", "side", "kind", "method"})
    method, side, kind = (str(node.args.get(part) or "").upper() for part in ("method", "side", "kind"))
    if method or kind not in ("", "INNER", "CROSS", "OUTER"):
        advice = "write INNER JOIN or LEFT JOIN with ON or USING"
        if kind in ("SEMI", "ANTI"):
            advice = f"write WHERE x {'NOT ' * (kind == 'ANTI')}IN (SELECT x FROM ...)"
        raise planner.source.refusal(f"{method or kind} JOIN is not supported", advice=advice, at=node)
    right = table_like(planner, node.this, names)
    condition = node.args.get("on")
    using = [identifier.name for identifier in node.args.get("using") or []]
    _allow(planner, left, right, side, node)
    if left.tail or not left.source or any(one.value.window for one in left.fields):
        left = settled(left, planner.mark())
    plain = right.scan and not right.tail and all(is_plain(one.value) for one in right.fields)
    if not plain or (side == "FULL" and right.where):
        right = settled(right, planner.mark())
    if side in ("RIGHT", "FULL") and (left.where or not all(is_plain(one.value) for one in left.fields)):
        left = settled(left, planner.mark())
    both = replace(left, fields=left.fields + right.fields, level=left.level if left.private else right.level)
    conditions = [planner.rows(both, names, {}).truth(condition).sql] if condition is not None else []
    pairs = _pairs(planner, both, condition, names)
    for column in using:
        one, other = _find(planner, left, column, node), _find(planner, right, column, node)
        conditions.append(_equal(planner, one, other, node))
        pairs.append((one, other))
    if condition is None and not using and side:
        raise planner.source.refusal(f"{side} JOIN needs a condition", advice="add ON or USING", at=node)
    if not conditions and not side:  # FROM a, b WHERE a.u = b.u
        rows = planner.rows(both, names, {})
        found = [(rows.quietly(part.left), rows.quietly(part.right)) for part in equalities]
        pairs += [(one, other) for one, other in found if one is not None and other is not None]
    alone = len(using) + (len(conjuncts(condition)) if condition is not None else 0) == 1
    both = _combined(planner, _Sides(left, right, node, side, alone), conditions, pairs)
    if using:
        both = _merged(both, left, right, using, side)
    return both


def _allow(planner: Planner, left: Relation, right: Relation, side: str, node: exp.Join) -> None:
    """Refuses joins through which a row would belong to nobody, to two people, or to an answer and a person."""
    levels = {left.level, right.level}
    if levels & {"unit", "row"}:
        for one in (left, right):
            planner.fixed(one, node)
    if levels & {"unit", "row"} and "released" in levels:
        raise planner.source.refusal(
            "rows of people are joined with an answer that is already aggregated",
            advice="ask the two questions one after the other, or aggregate both sides before joining them",
            at=node,
        )
    if levels in ({"row"}, {"unit", "row"}):
        raise planner.source.refusal(
            "tables in which every row is a unit cannot be joined with each other",
            advice="name a unit column for both tables in the policy",
            at=node,
        )
    orphans = {"RIGHT": (right,), "LEFT": (left,), "FULL": (left, right), "": ()}.get(side, ())
    if levels & {"unit", "row"} and any(one.level == "public" for one in orphans):
        raise planner.source.refusal(
            f"this {side} JOIN keeps rows of the public table that belong to no unit",
            advice="put the table about people on the side that is kept (people LEFT JOIN public), or use JOIN; groups "
            "without people are shown if the policy lists the keys (keys, keys_from)",
            at=node,
        )
    if left.level == right.level == "unit" and side in ("RIGHT", "FULL"):
        raise planner.source.refusal(
            f"{side} JOIN of two tables about people is not supported", advice="use JOIN or LEFT JOIN", at=node
        )


def _pairs(planner: Planner, both: Relation, condition: exp.Expr | None, names: Names) -> list[tuple[Value, Value]]:
    """The pairs of values that the condition equates."""
    if condition is None:
        return []
    rows = planner.rows(both, names, {})
    return [
        (rows.value(equal.left), rows.value(equal.right))
        for equal in conjuncts(condition)
        if isinstance(equal, exp.EQ) and isinstance(equal.left, exp.Column) and isinstance(equal.right, exp.Column)
    ]


def _find(planner: Planner, relation: Relation, name: str, node: exp.Expr) -> Value:
    found = [one.value for one in relation.fields if one.name.lower() == name.lower() and not one.hidden]
    if len(found) != 1:
        raise planner.source.refusal(
            f"USING ({name}) needs exactly one column of that name on both sides",
            advice=f"{closest(name, (one.name for one in relation.fields))} Names that differ stand in ON a = b",
            at=node,
        )
    return found[0]


def _equal(planner: Planner, one: Value, other: Value, node: exp.Expr) -> str:
    from discreet.query.sql.expressions import Expressions, unified

    _, (left, right) = unified(Expressions(planner.source, lambda _: one), (one, other), node)
    return f"({left} = {right})"


def _combined(planner: Planner, sides: _Sides, conditions: list[str], pairs: list[tuple[Value, Value]]) -> Relation:
    side = sides.side
    level = next((one for one in ("unit", "row", "released") if one in (sides.left.level, sides.right.level)), "public")
    left, right, rows_per_unit, words = _meeting(planner, sides, level, pairs)
    left_fields, right_fields = left.fields, right.fields
    if side in ("LEFT", "FULL"):
        # With no other condition than that on what all rows of a unit share, they meet the same rows or none.
        keep = side == "LEFT" and sides.alone and left.level == "unit" and _is_shared(left, right, pairs)
        right_fields = tuple(replace(one, value=_optional(one.value, keep=keep)) for one in right_fields)
    if side in ("RIGHT", "FULL"):
        left_fields = tuple(replace(one, value=_optional(one.value, keep=False)) for one in left_fields)
    if side in ("LEFT", "RIGHT", "FULL"):
        inner = right.where if side == "LEFT" else ()
        where = left.where if side == "LEFT" else right.where
        conditions = [*conditions, *inner]
        verb = f"{side} JOIN"
    else:
        where = left.where + right.where
        verb = "JOIN" if conditions else "CROSS JOIN"
    on = f" ON {' AND '.join(conditions)}" if conditions else ""
    return Relation(
        f"{left.source} {verb} {right.source}{on}",
        tuple(replace(one, value=replace(one.value, unique=False)) for one in left_fields + right_fields),
        level,
        where=where,
        unit=left.unit if left.unit is not None else right.unit,
        rows_per_unit=rows_per_unit,
        tables=tuple(dict.fromkeys(left.tables + right.tables)),
        public_tables=tuple(dict.fromkeys(left.public_tables + right.public_tables)),
        arbitrary=left.arbitrary or right.arbitrary,
        declared=left.declared + right.declared,
        listings=left.listings + right.listings + _listings(sides, pairs),
        # a condition that no row of the optional side meets leaves the other side as it is
        vain=(() if side in ("RIGHT", "FULL") else left.vain) + (() if side in ("LEFT", "FULL") else right.vain),
        step=Step(verb.lower(), words if level in ("unit", "row") else "", (left.step, right.step)),
    )


def _meeting(
    planner: Planner, sides: _Sides, level: str, pairs: list[tuple[Value, Value]]
) -> tuple[Relation, Relation, int | None, str]:
    """Both sides as they are joined, and how many rows a unit has at most where they meet, as a number and in words."""
    left, right = sides.left, sides.right
    if left.level == right.level == "unit":
        _check_units(planner, left, right, sides.node, pairs)
        rows_per_unit = None
        if left.rows_per_unit is not None and right.rows_per_unit is not None:
            rows_per_unit = left.rows_per_unit * right.rows_per_unit
        return left, right, rows_per_unit, "on the unit: the rows of a unit meet only its own"
    if left.private != right.private and "public" in (left.level, right.level):
        people, public = (left, right) if left.private else (right, left)
        single = _single_partner(people, public, pairs)
        if single is not None:
            left, right = (left, single) if left.private else (single, right)
            return left, right, people.rows_per_unit, "each row meets one public row at most"
        if level == "row":
            raise planner.source.refusal(
                "joining a public table could multiply rows that are units of their own",
                advice="declare the column that is joined to as unique = true in the policy, filter with x IN (SELECT "
                "... FROM the public table), or name a unit column",
                at=sides.node,
            )
        names = dict.fromkeys(one.name for one in public.fields for pair in pairs if one.value in pair)
        hint = f"; if {' or '.join(names)} has no value twice, declare unique = true" if names else ""
        return left, right, None, f"each row may meet any number of public rows{hint}"
    return left, right, None, ""


def _listings(sides: _Sides, pairs: list[tuple[Value, Value]]) -> tuple[Listing, ...]:
    """The public table that rows of people are joined to, with its columns, and those that are equal to them."""
    people, public = (sides.left, sides.right) if sides.left.private else (sides.right, sides.left)
    if not people.private or public.level != "public" or not public.source.startswith(PUBLIC_OPEN):
        return ()
    own = {one.value.sql: one.value for one in public.fields}
    columns = {sql: sql for sql in own}
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            if one.sql in own and other.sql not in own and one.type == other.type:
                columns[other.sql] = one.sql
    return (Listing(public.source, tuple(columns.items()), frozenset(own), outer=bool(sides.side)),)


def _is_shared(left: Relation, right: Relation, pairs: list[tuple[Value, Value]]) -> bool:
    """Whether all rows of a unit are joined by the same value: a column of the left is equated to one of the right."""
    if right.level == "unit":
        return True
    mine, theirs = ({one.value.sql for one in side.fields} for side in (left, right))
    both = [ends for pair in pairs for ends in (pair, pair[::-1])]
    return any(one.sql in mine and other.sql in theirs and one.of_unit for one, other in both)


def _check_units(
    planner: Planner, left: Relation, right: Relation, node: exp.Join, pairs: list[tuple[Value, Value]]
) -> None:
    """Refuses to join two tables about people unless their units are equated."""
    assert left.unit is not None
    assert right.unit is not None
    mine = {left.unit.sql, *(one.value.sql for one in left.fields if one.value.is_unit)}
    theirs = {right.unit.sql, *(one.value.sql for one in right.fields if one.value.is_unit)}
    if not any(
        (one.sql in mine and other.sql in theirs) or (one.sql in theirs and other.sql in mine) for one, other in pairs
    ):
        raise planner.source.refusal(
            "two tables about people are joined without equating their units",
            advice="join ON their unit columns (more conditions may follow with AND)",
            at=node,
        )
    planner.same_units(left.unit, right.unit, node)


def _single_partner(people: Relation, public: Relation, pairs: list[tuple[Value, Value]]) -> Relation | None:
    """The public table with one row for each value of the column that people's rows are joined to, if it is unique.

    What is declared is enforced here, so that a file which changes later cannot multiply rows. Both sides must be
    compared in a way that keeps different values different: with the same type, or as whole numbers. Where all rows of
    a unit share the value, they share the public row.
    """
    if not public.scan or not public.source.startswith(PUBLIC_OPEN):
        return None
    unique = {one.value.sql for one in public.fields if one.value.unique}
    theirs = {one.value.sql for one in people.fields}
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            alike = one.type == other.type or one.kind == other.kind == "integer"
            if one.sql in unique and other.sql in theirs and alike:
                table, _, mark = public.source.rpartition(" AS ")
                column = one.sql.removeprefix(f"{mark}.")
                fields = tuple(
                    replace(each, value=replace(each.value, of_unit=other.of_unit)) for each in public.fields
                )
                source = f"(SELECT DISTINCT ON ({column}) * FROM {table}) AS {mark}"
                return replace(public, source=source, fields=fields)
    return None


def _optional(value: Value, *, keep: bool) -> Value:
    """A value that is NULL where an outer join found no partner: no longer the unit, no longer a constant."""
    return replace(value, is_unit=False, of_unit=value.of_unit and keep, constant=False, python=None, inputs=None)


def _merged(joined: Relation, left: Relation, right: Relation, using: list[str], side: str) -> Relation:
    """One visible column for each name of USING; the two that it is made of are reached by their table."""
    lower = {name.lower() for name in using}
    fields: list[Field] = []
    for i, one in enumerate(joined.fields):
        named = one.name.lower() in lower and not one.hidden
        kept = (i < len(left.fields)) == (side != "RIGHT")
        if named and side == "FULL" and kept:
            other = next(two.value for two in right.fields if two.name.lower() == one.name.lower() and not two.hidden)
            merged = replace(one.value, sql=f"COALESCE({one.value.sql}, {other.sql})", origin=None, values=None)
            fields.append(replace(one, table="", value=merged))
            kept = False
        fields.append(replace(one, hidden=one.hidden or (named and not kept)))
    return replace(joined, fields=tuple(fields))
