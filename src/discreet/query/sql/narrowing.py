"""What WHERE says about the columns of the rows that are left: a smaller range, and fewer public values.

Both follow from the text of the question and from the policy, and no guarantee rests on either: they decide which
groups an answer lists and to which range an argument is clamped, and a row that meets the condition is within both.
Where the policy says nothing about a column, conditions do if they have two ends and are about how large values are:
between 100 and 180, say. That somebody asks for values from 0 to 1e9 says nothing: the noise of a sum, or its steps,
would be too large by orders of magnitude.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql.days import DAY_MICROSECONDS
from discreet.query.sql.domain import values_that_meet
from discreet.query.sql.expressions import moment
from discreet.query.sql.text import closest
from discreet.query.sql.value import number_of

if TYPE_CHECKING:
    from discreet.query.sql.relation import Field, Relation
    from discreet.query.sql.scope import Rows
    from discreet.query.sql.value import Value

__all__ = ["narrowed"]

_TURNED: dict[type, type] = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ}
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.ILike)
_STEPS = ("integer", "date", "timestamp")
"""Kinds of which two different values are at least 1 apart: less than 5 is at most 4."""

_APART, _LARGEST, _DAYS = 8, 1 << 14, 36_600
"""Two ends say how large values are if the larger is at most so many times the smaller. Where it is found privately how
much of a unit counts, any up to the second do, which are measured in steps of 2^-16. Of dates those of a century."""


def narrowed(relation: Relation, rows: Rows, condition: exp.Expr) -> Relation:
    """The relation whose rows meet the condition, with what that says about single columns."""
    if not relation.private:
        return relation
    fields, vain = list(relation.fields), list(relation.vain)
    told: dict[int, tuple[float, float]] = {}
    for part in _conjuncts(condition):
        if part.find(exp.Query):
            continue
        columns = {id(one): one for column in part.find_all(exp.Column) for one in rows.find(column)}
        if len(columns) != 1:
            continue
        (field,) = columns.values()
        place = next(i for i, one in enumerate(relation.fields) if one is field)
        if field.value.is_unit:
            _check_unit(rows, part)
            continue
        meeting = _meeting(rows, part, field.value)
        vain += _vain(fields[place], rows, part, meeting)
        fields[place] = _field(fields[place], rows, part, field.value, meeting)
        told[place] = _both(told.get(place, field.value.bounds), _range(rows, part, field.value))
    for place, bounds in told.items():
        value = fields[place].value
        if not _is_stated(relation.fields[place].value) and _tells(value, bounds, by_row=relation.level == "row"):
            fields[place] = replace(fields[place], value=replace(value, bounds=bounds))
    return replace(relation, fields=tuple(fields), vain=tuple(vain))


def _check_unit(rows: Rows, part: exp.Expr) -> None:
    """Refuses to ask about rows of nobody, which are in no answer."""
    if isinstance(part, exp.Is) and isinstance(part.expression, exp.Null) and isinstance(part.this, exp.Column):
        raise rows.source.refusal(
            "rows without a unit are in no answer, and no other row meets this condition",
            advice="leave it out; whoever owns the table can count such rows without a budget",
            at=part,
        )


def _meeting(rows: Rows, part: exp.Expr, column: Value) -> tuple[Any, ...] | None:
    """The public values of a column that meet a condition; None if it has none, or is computed."""
    if column.inputs is None or [one.sql for one in column.inputs] != [column.sql]:
        return None
    return values_that_meet(rows.truth(part), column.inputs[0])


def _vain(field: Field, rows: Rows, part: exp.Expr, meeting: tuple[Any, ...] | None) -> list[str]:
    """What to say about a condition that no value meets which the policy knows: a misspelt key, or out of bounds."""
    value, written = field.value, rows.source.written(part)
    if meeting == () and value.kind in ("text", "integer") and isinstance(part, exp.EQ | exp.In | exp.Like | exp.ILike):
        texts = [str(node.this) for node in part.find_all(exp.Literal) if node.is_string]
        known = [str(one) for one in value.values or () if one is not None]
        near = closest(texts[0], known).removesuffix(".") if len(texts) == 1 and value.kind == "text" else ""
        meant = f": {near}" if near else ""
        return [f"no key that the policy lists for {field.name} meets {written}{meant}"]
    low, high = _range(rows, part, value)
    if max(value.bounds[0], low) > min(value.bounds[1], high):
        return [f"no value within the bounds of {field.name} meets {written}"]
    return []


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return [*_conjuncts(node.left), *_conjuncts(node.right)] if isinstance(node, exp.And) else [node]


def _field(field: Field, rows: Rows, part: exp.Expr, column: Value, meeting: tuple[Any, ...] | None) -> Field:
    """The field, perhaps narrowed already, after one more condition on its column as it was."""
    value = field.value
    bounds = _both(value.bounds, _range(rows, part, value))
    if _is_stated(column) and bounds[0] < bounds[1]:
        value = replace(value, bounds=bounds)
    if column.inputs is not None and [one.sql for one in column.inputs] == [column.sql]:  # a column, nothing computed
        left = tuple(one for one in value.values or () if one in (meeting or ()))
        if left:
            value = replace(value, values=left, inputs=(replace(column.inputs[0], values=left),))
    elif value.values is not None and value.inputs is None and _is_no_null(part):
        value = replace(value, values=tuple(one for one in value.values if one is not None) or value.values)
    return replace(field, value=value)


def _is_stated(value: Value) -> bool:
    """Whether the bounds of a column are those of a policy, or follow from such."""
    return math.isfinite(value.bounds[0]) and math.isfinite(value.bounds[1])


def _both(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return max(one[0], other[0]), min(one[1], other[1])


def _tells(value: Value, bounds: tuple[float, float], *, by_row: bool) -> bool:
    """Whether conditions that leave this range say about how large the values of a column are."""
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return False
    if value.kind in ("date", "timestamp"):
        return high - low <= _DAYS * (1 if value.kind == "date" else DAY_MICROSECONDS)
    near, far = sorted((abs(low), abs(high)))
    return not low < 0 < high and (far <= _APART * near or (far <= _LARGEST and not by_row))


def _is_no_null(part: exp.Expr) -> bool:
    """Whether it is a condition that no row meets whose column is NULL."""
    if isinstance(part, exp.Not):
        test = part.this.unnest()
        return isinstance(test, exp.Is) and isinstance(test.expression, exp.Null) and isinstance(test.this, exp.Column)
    return isinstance(part, _COMPARED) and isinstance(part.this.unnest(), exp.Column)


def _range(rows: Rows, part: exp.Expr, value: Value) -> tuple[float, float]:
    """The range that a comparison of the column with literals leaves."""
    if not (value.type.numeric or value.kind in ("date", "timestamp")):
        return -math.inf, math.inf
    if isinstance(part, exp.Between):
        low = _limit(rows, part.this, part.args["low"], value)
        high = _limit(rows, part.this, part.args["high"], value)
        return (-math.inf if low is None else low[0]), (math.inf if high is None else high[1])
    if not isinstance(part, exp.Binary) or type(part) not in _TURNED:
        return -math.inf, math.inf
    kind: type = type(part)
    found = _limit(rows, part.left, part.right, value)
    if found is None:
        found, kind = _limit(rows, part.right, part.left, value), _TURNED[kind]
    if found is None:
        return -math.inf, math.inf
    apart = 1 if value.kind in _STEPS and float(found[0]).is_integer() else 0
    ranges: dict[type, tuple[float, float]] = {
        exp.EQ: found,
        exp.GTE: (found[0], math.inf),
        exp.GT: (found[1] + apart, math.inf),
        exp.LTE: (-math.inf, found[1]),
        exp.LT: (-math.inf, found[0] - apart),
    }
    return ranges[kind]


def _limit(rows: Rows, column: exp.Expr, other: exp.Expr, value: Value) -> tuple[float, float] | None:
    """The first and the last value of the column that a literal can mean: a day has many moments."""
    column = column.unnest()
    whole_day = isinstance(column, exp.Cast) and column.to.this == exp.DataType.Type.DATE and value.kind == "timestamp"
    if not isinstance(column.this if whole_day else column, exp.Column) or other.find(exp.Column):
        return None
    literal = rows.value(other)
    python: Any = literal.python if literal.is_literal else None
    if isinstance(python, str) and value.kind in ("date", "timestamp"):
        python = moment(rows, python, other).python
    if isinstance(python, bool) or python is None or isinstance(python, str):
        return None
    day = isinstance(python, dt.date) and not isinstance(python, dt.datetime)
    if isinstance(python, dt.date) != (value.kind in ("date", "timestamp")) or (value.kind == "date" and not day):
        return None
    if whole_day and not day:
        return None
    first = number_of(python)
    if not (day and value.kind == "timestamp"):
        return first, first
    first *= DAY_MICROSECONDS
    return first, first + (DAY_MICROSECONDS - 1 if whole_day else 0)
