"""Window functions over the rows of people, each within one person: first and last rows, changes, running counts.

The rows of a unit may be computed from all rows of that unit, so a window is allowed whose PARTITION BY has the unit.
What it gives must depend on nothing else. Three things would let the rows of others have a say, by the order in which
the engine happens to come across rows, and are kept out:

- *Rows that tie.* ROW_NUMBER, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE and frames of ROWS depend on which of two rows
  with equal terms in ORDER BY comes first. So the rows of each unit are numbered first, in the order of all columns
  that the SELECT names, and that place is the last term. Rows that are equal in all of them share their places out
  among themselves; whoever gets which, the rows with their places are the same ones. One place serves all windows of
  a SELECT: with a place for each, two windows could number two equal rows in different ways.
- *Values that are equal and look different*, as 0.0 and -0.0: columns, and what MIN and MAX give, have one look
  (see `alike`).
- *Rounding.* Sums of floats depend on the order, and on where other partitions begin in the tree of partial sums that
  the engine builds. Whole numbers are added up, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.engines.calendar import is_written
from discreet.query.sql.alike import is_alike, one_look
from discreet.query.sql.relation import Field, Relation, Step, settled
from discreet.query.sql.types import BIGINT, HUGEINT
from discreet.query.sql.value import Value

if TYPE_CHECKING:
    from discreet.query.sql.expressions import Expressions
    from discreet.query.sql.planner import Planner
    from discreet.query.sql.scope import Rows

__all__ = ["Within", "first_rows", "numbered", "placed", "whole"]

_PLACED = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_CHOSEN = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.Min, exp.Max)


def _windows_of(*nodes: exp.Expr) -> list[exp.Window]:
    """The window functions in some parts of a SELECT, those of subqueries apart."""
    found: list[exp.Window] = []
    for node in nodes:
        if isinstance(node, exp.Query | exp.Subquery):
            continue
        if isinstance(node, exp.Window):
            found.append(node)
        found += _windows_of(*node.iter_expressions())
    return found


def _named_by(rows: Rows, parts: list[exp.Expr]) -> tuple[Field, ...]:
    """The columns that some parts of a SELECT name; all of them if there is a star, or a name that means none."""
    fields = rows.relation.fields
    if any(isinstance(part.this if isinstance(part, exp.Column) else part, exp.Star) for part in parts):
        return fields
    found = [(column.name.lower(), rows.find(column)) for part in parts for column in part.find_all(exp.Column)]
    if any(not named and not _is_alias(rows, name) for name, named in found):
        return fields
    named = {id(one) for _, some in found for one in some}
    return tuple(one for one in fields if id(one) in named)


def _is_alias(rows: Rows, name: str) -> bool:
    """Whether the SELECT list gives this name to something that is not made of it."""
    value = rows.aliases.get(name)
    return value is not None and all(column.name.lower() != name for column in value.find_all(exp.Column))


def _by_place(window: exp.Window) -> bool:
    """Whether it depends on which of two rows comes first that ORDER BY does not tell apart."""
    frame = window.args.get("spec")
    in_rows = frame is not None and str(frame.args.get("kind")).upper() == "ROWS"
    return in_rows or isinstance(window.this, _PLACED)


@dataclass(frozen=True)
class Within:
    """What windows over the rows of people need: SQL of the unit, and of the place of a row among those of its unit."""

    unit: str
    place: str

    def check(self, at: Expressions, node: exp.Window) -> None:
        """Refuses a window that does not stay within a unit, or that takes one of several rows or looks."""
        if not any(value.is_unit for value in at.values(node.args.get("partition_by") or [])):
            raise at.source.refusal(
                "this window sees rows of several people",
                advice="begin it with PARTITION BY the unit column, so that it stays within one person; to compare "
                "people, aggregate first: window functions over the answer see all of its rows",
                at=node,
            )
        _check_frame(at, node)
        _check_look(at, node)

    def over(self, node: exp.Window, partition: list[Value], terms: list[str]) -> list[str]:
        """PARTITION BY and ORDER BY of a window."""
        parts = ", ".join(dict.fromkeys([self.unit, *(value.sql for value in partition if not value.is_unit)]))
        terms = [*terms, *([self.place] if _by_place(node) else [])]
        return [f"PARTITION BY {parts}", *([f"ORDER BY {', '.join(terms)}"] if terms else [])]

    def result(self, node: exp.Window, value: Value, parts: list[Value], partition: list[Value]) -> Value:
        """What is known of a window's value: whether all rows of a unit share it, and its range."""
        shared = _is_shared(node) and all(part.is_unit for part in partition)
        value = replace(value, of_unit=shared, public=False)
        if not isinstance(node.this, _CHOSEN):
            return value
        source = parts[0]  # the value, or NULL where there is no such row
        values = None if source.values is None else tuple(dict.fromkeys((*source.values, None)))
        sql = one_look(value.sql, value.type.name) if isinstance(node.this, exp.Min | exp.Max) else value.sql
        return replace(value, sql=sql, bounds=source.bounds, limits=source.limits, values=values, tame=source.tame)


def _is_shared(node: exp.Window) -> bool:
    """Whether all rows of a partition have the same value: it is that of the whole, or of its first row."""
    if node.args.get("spec") is not None:
        return False
    if node.args.get("order") is None:
        return isinstance(node.this, exp.Count | exp.Min | exp.Max | exp.Sum)
    return isinstance(node.this, exp.FirstValue)


def _check_frame(at: Expressions, node: exp.Window) -> None:
    """Refuses FIRST_VALUE and LAST_VALUE of a frame that begins, or ends, with all rows that tie with this one."""
    frame = node.args.get("spec")
    if isinstance(node.this, exp.FirstValue):
        loose = frame is not None and str(frame.args.get("start")).upper() != "UNBOUNDED"
    elif isinstance(node.this, exp.LastValue):
        loose = frame is None or str(frame.args.get("end")).upper() != "UNBOUNDED"
    else:
        return
    if loose and (frame is None or str(frame.args.get("kind")).upper() != "ROWS"):
        raise at.source.refusal(
            f"'{at.source.written(node)}' would take one of several rows that tie",
            advice="for the last of all, write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING after ORDER BY",
            at=node,
        )


def _check_look(at: Expressions, node: exp.Window) -> None:
    """Refuses MIN and MAX of values of which several are the smallest and look different."""
    if isinstance(node.this, exp.Min | exp.Max) and not is_alike(at.value(node.this.this).type):
        raise at.source.refusal(
            f"values of '{at.source.written(node.this.this)}' may be equal and look different",
            advice="cast it to a text, or to a number",
            at=node,
        )


def whole(at: Expressions, function: exp.Expr, node: exp.Window) -> tuple[str, Value]:
    """SUM of whole numbers, which no order of rows and no number of them can change or overflow."""
    value = at.number(function.this)
    if not isinstance(function, exp.Sum) or value.kind != "integer":
        raise at.source.refusal(
            f"'{at.source.written(node)}' depends on the order in which rows are added up",
            advice="add up whole numbers, as in SUM(CAST(x * 100 AS BIGINT)) OVER (...), or sum up each person's rows "
            "with GROUP BY the unit column; an average is a SUM divided by a COUNT",
            at=node,
        )
    return f"SUM(TRY_CAST({value.sql} AS BIGINT))", replace(value, type=HUGEINT)


def placed(planner: Planner, rows: Rows, parts: list[exp.Expr]) -> tuple[Relation, Within | None]:
    """The rows of people as the windows in these parts of a SELECT see them; without windows they are as they were.

    Every value has one look, and every row a place if a window needs it. Columns that no part names are left out.
    """
    relation, windows = rows.relation, _windows_of(*parts)
    if not windows:
        return relation, None
    inside = settled(replace(relation, fields=_named_by(rows, parts)), planner.mark())
    fields = [replace(one, value=_with_one_look(one.value)) for one in inside.fields]
    assert inside.unit is not None
    if any(_by_place(window) for window in windows):
        terms = [f"{sql} NULLS LAST" for one in fields if not one.value.is_unit for sql in _told_apart(one.value)]
        order = f" ORDER BY {', '.join(terms)}" if terms else ""
        place = Value(f"(ROW_NUMBER() OVER (PARTITION BY {inside.unit.sql}{order}))", BIGINT)
        fields.append(Field("", "", place, hidden=True))
    count = len(inside.fields)
    result = settled(replace(inside, fields=tuple(fields)), planner.mark())
    assert result.unit is not None
    step = Step("windows within each unit", "the rows of a unit are computed from its own", (relation.step,))
    within = Within(result.unit.sql, "".join(one.value.sql for one in result.fields[count:]))
    return replace(result, fields=result.fields[:count], step=step), within


def _with_one_look(value: Value) -> Value:
    return replace(value, sql=one_look(value.sql, value.type.name))


def _told_apart(value: Value) -> list[str]:
    """SQL of terms whose order tells all values apart that differ, or look different."""
    written = not is_alike(value.type) and is_written(value.type.name)
    return [f"CAST({value.sql} AS VARCHAR)", value.sql] if written else [value.sql]


def first_rows(rows: Rows, condition: exp.Expr) -> int | None:
    """How many rows of a unit meet a condition at most, if it is ROW_NUMBER() OVER (...) = 1, or <= k, or implies it.

    In WHERE it is a column that a subquery has numbered rows with.
    """
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        found = [first_rows(rows, part) for part in (condition.left, condition.right)]
        return min((one for one in found if one is not None), default=None)
    condition = _turned(condition)
    if not isinstance(condition, exp.EQ | exp.LTE | exp.LT | exp.Between | exp.In):
        return None
    if not _numbers_rows(rows, condition.this.unnest()):
        return None
    if isinstance(condition, exp.In):
        listed = [_whole(one) for one in condition.expressions]
        return len(listed) if listed and None not in listed else None
    if isinstance(condition, exp.Between):
        low, high = _whole(condition.args["low"]), _whole(condition.args["high"])
        most = None if low is None or high is None else high - low + 1
    elif isinstance(condition, exp.EQ):
        most = None if _whole(condition.right) is None else 1
    else:
        last = _whole(condition.right)
        most = None if last is None else last - isinstance(condition, exp.LT)
    return most if most is not None and most >= 1 else None


def _turned(condition: exp.Expr) -> exp.Expr:
    """A comparison with its number on the right."""
    turned: dict[type, type[exp.Binary]] = {exp.EQ: exp.EQ, exp.GTE: exp.LTE, exp.GT: exp.LT}
    if isinstance(condition, exp.EQ | exp.GTE | exp.GT) and _whole(condition.left) is not None:
        return turned[type(condition)](this=condition.right, expression=condition.left)
    return condition


def _whole(node: exp.Expr) -> int | None:
    """A whole number that is written out."""
    node = node.unnest()
    is_whole = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
    return int(str(node.this)) if is_whole else None


def numbered(rows: Rows, shown: list[tuple[exp.Expr | None, Value]]) -> tuple[str, ...]:
    """SQL of the columns of a SELECT list that number the rows of each unit."""
    return tuple(
        value.sql
        for node, value in shown
        if value.sql in rows.relation.numbered or (node is not None and _numbers_rows(rows, node.unnest()))
    )


def _numbers_rows(rows: Rows, node: exp.Expr) -> bool:
    """Whether it is ROW_NUMBER over all rows of a unit, which no two of them share, or a column of such numbers."""
    if isinstance(node, exp.Column):
        found = rows.find(node)
        if found or node.table:
            return len(found) == 1 and found[0].value.sql in rows.relation.numbered
        node = rows.aliases.get(node.name.lower(), node).unnest()
    if not isinstance(node, exp.Window) or not isinstance(node.this, exp.RowNumber):
        return False
    partition = node.args.get("partition_by") or []
    return rows.relation.level == "unit" and bool(partition) and all(rows.value(part).is_unit for part in partition)
