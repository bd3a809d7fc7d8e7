r"""The ends of an expression over noisy numbers: each of them is moved to either end of its interval.

What the moves change is combined as in `intervals`. Every noisy number, and what it becomes at its ends, is written
once and has a name from then on; the expression is repeated over these names alone. In SQL a name is an argument of a
lambda over a list of one struct:

    list_transform(list_transform([{numbers and their ends}], lambda _given: {the value, moved in every way}),
                   lambda _moved: value -+ error)[1]

A share of a total, say, would otherwise repeat the sum over all rows sixty times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.query.pooling import MIXED, Ends, double, is_pool, parsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

__all__ = ["shifted_ends"]

_INFINITE, _NAN, _ZERO = "CAST('inf' AS DOUBLE)", "CAST('NaN' AS DOUBLE)", "CAST(0 AS DOUBLE)"
_GIVEN, _MOVED = "_given", "_moved"


def shifted_ends(
    value: exp.Expr, atoms: list[tuple[exp.Expr, Ends]], *, is_key: Callable[[exp.Expr], bool]
) -> tuple[exp.Expr, exp.Expr]:
    """The two ends of a value whose noisy numbers are `atoms`; `is_key` says what GROUP BY has as a whole."""
    from sqlglot import exp

    let = _Let({node.sql("duckdb"): ends for node, ends in atoms}, is_key)
    body = let.bound(value)
    value_of, below, above = let.spread(body)
    unsure = " OR ".join(
        [
            "FALSE",
            *(let.may_be_zero(ratio.expression) for ratio in body.find_all(exp.Div) if let.noisy(ratio.expression)),
        ]
    )
    given = _struct(let.given)
    moved = _struct(let.moved)
    low, high = (
        parsed(
            f"list_transform(list_transform([{given}], lambda {_GIVEN}: {moved}), "
            f"lambda {_MOVED}: {value_of} {sign} CASE WHEN {unsure} THEN {_INFINITE} ELSE {part} END)[1]"
        )
        for sign, part in (("-", below), ("+", above))
    )
    return low, high


@dataclass
class _Let:
    """Names for the parts of one expression: `given` for its numbers, `moved` for what becomes of it."""

    ends: dict[str, Ends]
    is_key: Callable[[exp.Expr], bool]
    given: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _ends_of: dict[str, Ends] = field(default_factory=dict)

    def bound(self, value: exp.Expr) -> exp.Expr:
        """The value with a name in the place of every column, aggregate, window function, subquery and key."""
        from sqlglot import exp

        if isinstance(value, exp.Column | exp.Subquery) or is_pool(value) or self.is_key(value):
            return exp.column(self._name(value), table=_GIVEN)
        body = value.copy()
        waiting = list(body.iter_expressions())
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Column | exp.Subquery) or is_pool(node) or self.is_key(node):
                node.replace(exp.column(self._name(node), table=_GIVEN))
            else:
                waiting += node.iter_expressions()
        return body

    def _name(self, node: exp.Expr) -> str:
        text = node.sql("duckdb")
        if text not in self._names:
            name = self._names[text] = f"x{len(self._names)}"
            self.given[name] = text
            if text in self.ends:
                ends = self._ends_of[name] = self.ends[text]
                self.given |= {f"{name}_low": ends.low.sql("duckdb"), f"{name}_high": ends.high.sql("duckdb")}
        return self._names[text]

    def noisy(self, body: exp.Expr) -> list[str]:
        """The noisy numbers in a part of the expression, by name."""
        from sqlglot import exp

        names = dict.fromkeys(column.name for column in body.find_all(exp.Column))
        return sorted(name for name in names if name in self._ends_of)

    def spread(self, body: exp.Expr) -> tuple[str, str, str]:
        """SQL of a part of the expression, and of how far it may be below and above."""
        centre = self._moved(body, None)
        kinds = {self._ends_of[name].noise.name for name in self.noisy(body)}
        shifts: dict[str, list[tuple[str, str]]] = {}
        for name in self.noisy(body):
            moved = (self._moved(body, name, "low"), self._moved(body, name, "high"))
            shifts.setdefault(MIXED if MIXED in kinds else self._ends_of[name].noise.name, []).append(moved)
        below, above = (_combined(centre, list(shifts.values()), up=up) for up in (False, True))
        return centre, below, above

    def may_be_zero(self, body: exp.Expr) -> str:
        """SQL of whether the interval of a denominator has 0 in it."""
        from sqlglot import exp

        if isinstance(body, exp.Column):
            low, high = (self._stored(double(_at_end(body, end)).sql("duckdb")) for end in ("low", "high"))
            return f"coalesce({low} <= 0 AND {high} >= 0, TRUE)"
        centre, below, above = self.spread(body)
        inner = [self.may_be_zero(one.expression) for one in body.find_all(exp.Div) if self.noisy(one.expression)]
        inside = f"coalesce({centre} - {below} <= 0 AND {centre} + {above} >= 0, TRUE)"
        return f"({' OR '.join([*inner, inside])})"

    def _moved(self, body: exp.Expr, name: str | None, end: str = "") -> str:
        """A name for the part of the expression with one number at an end of its interval."""
        from sqlglot import exp

        def change(node: exp.Expr) -> exp.Expr:
            return _at_end(node, end) if isinstance(node, exp.Column) and node.name == name else node

        return self._stored(double(body.transform(change)).sql("duckdb"))

    def _stored(self, text: str) -> str:
        if text not in self._names:
            name = self._names[text] = f"m{len(self.moved)}"
            self.moved[name] = text
        return f"{_MOVED}.{self._names[text]}"


def _at_end(column: exp.Column, end: str) -> exp.Expr:
    from sqlglot import exp

    return exp.column(f"{column.name}_{end}", table=_GIVEN)


def _struct(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"'{name}': {text}" for name, text in fields.items()) + "}"


def _combined(centre: str, shifts: list[list[tuple[str, str]]], *, up: bool) -> str:
    """SQL of how far the value may be above (below): the root of the squares over independent noises."""
    squares = []
    for numbers in shifts:
        parts = []
        for ends in numbers:
            gaps = [
                f"coalesce(NULLIF({one} - {other}, {_NAN}), {_INFINITE})"
                for one, other in (((end, centre) if up else (centre, end)) for end in ends)
            ]
            parts.append(f"greatest({_ZERO}, {', '.join(gaps)})")
        squares.append(f"pow({' + '.join(parts)}, 2)")
    return f"sqrt({' + '.join(squares)})"
