r"""The ends of an expression over noisy numbers: each of them is moved to either end of its interval.

What the moves change is combined as in `intervals`. Every noisy number, and what it becomes at its ends, is written
once and has a name from then on; the expression is repeated over these names alone. In SQL a name is an argument of a
lambda over a list of one struct:

    list_transform(list_transform(list_transform([{numbers and their ends}], lambda _given: {the value, moved in every
                   way}), lambda _moved: {what these change, together}), lambda _parts: value -+ error)[1]

A share of a total, say, would otherwise repeat the sum over all rows sixty times.

**Several numbers of which bounds have cut something off.** Number i may have lost up to A_i, and the expression e
changes by d_i if it has lost all of that. Its noise and what is lost are taken apart: noise alone moves e down or up by
at most Q at the confidence, and losses by at most

    L = w h + (1 - w) min(h, max(0, sum d_i)),       h = sqrt(sum max(0, d_i)^2),        w = 1/4,

upwards, downwards likewise with -d_i. All numbers are about the same people, who have lost a part of each: a ratio, or
a difference, has lost the difference of that, and where the bounds of one were chosen lower than those of another, a
quarter of what one may have lost beside it. w was found by simulation (docs/benchmarks.md).

With L on both sides together, the noise needs less than Q: what `laws` has for an allowance of L. That q falls from Q
to r Q, where r is the quotient for an allowance that is very large, and

    q <= Q (r + (1 - r) exp(-L / (2 Q (1 - r)))),

exact at L = 0 with its slope -1/2, and a few per cent too large between. It increases in r, which is taken to be the
quotient that the interval of one of the numbers has, at its own A_i; that is not smaller.

Ends are not beyond what an expression is by its own form (`extents`): a correlation is between -1 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.query.extents import extent
from discreet.query.pooling import MIXED, Ends, Noise, double, is_pool, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

__all__ = ["shifted_ends"]

_INFINITE, _NAN = "CAST('inf' AS DOUBLE)", "CAST('NaN' AS DOUBLE)"
_GIVEN, _MOVED, _PARTS = "_given", "_moved", "_parts"

_ALONE = 0.25
"""w: which part of its allowance one number may have lost alone, where what several have lost cancels."""


def shifted_ends(
    value: exp.Expr, atoms: list[tuple[exp.Expr, Ends]], *, noise: Noise, is_key: Callable[[exp.Expr], bool]
) -> Ends:
    """The two ends of a value whose noisy numbers are `atoms`; `is_key` says what GROUP BY has as a whole."""
    from sqlglot import exp

    let = _Let({node.sql("duckdb"): ends for node, ends in atoms}, is_key)
    body = let.bound(value)
    value_of, below, above = let.spread(body)
    unsure = [let.may_be_zero(ratio.expression) for ratio in body.find_all(exp.Div) if let.noisy(ratio.expression)]
    parts = {"value": value_of, "below": below, "above": above, "unsure": " OR ".join(["FALSE", *unsure])}
    lossy, parts = let.lossy(body), parts | let.losses(body)
    given, moved, listed = (_struct(fields) for fields in (let.given, let.moved, parts))
    steps = f"[{given}]"
    for name, fields in ((_GIVEN, moved), (_MOVED, listed)):
        steps = f"list_transform({steps}, lambda {name}: {fields})"
    low, high = (
        _within(
            f"{_PARTS}.value {sign} CASE WHEN {_PARTS}.unsure THEN {_INFINITE} "
            f"ELSE coalesce(NULLIF({_reach(moves, lossy, up=sign == '+')}, {_NAN}), {_INFINITE}) END",
            limit,
            at_least=sign == "-",
        )
        for sign, moves, limit in zip("-+", ("below", "above"), extent(value), strict=True)
    )

    def made(end: str) -> exp.Expr:
        return written(f"list_transform({steps}, lambda {_PARTS}: {end})[1]")

    def both(names: tuple[str, str]) -> exp.Expr:
        quoted = (name.replace("'", "''") for name in names)
        return written(f"unnest({made(_struct(dict(zip(quoted, (low, high), strict=True))))})")

    nested = any(isinstance(node, exp.Subquery) for node, _ in atoms)  # of which the engine makes no copies
    return Ends(made(low), made(high), noise, both=None if nested else both)


@dataclass
class _Let:
    """Names for the parts of one expression: `given` for its numbers, `moved` for what becomes of it.

    If there are several numbers, those with ends by noise alone are moved to these, and `_lossy` are their names.
    """

    ends: dict[str, Ends]
    is_key: Callable[[exp.Expr], bool]
    given: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _ends_of: dict[str, Ends] = field(default_factory=dict)
    _lossy: list[str] = field(default_factory=list)

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
                if len(self.ends) > 1 and ends.bare is not None:
                    self._lose(name, text, ends, ends.bare)
                else:
                    self.given |= {f"{name}_low": ends.low.sql("duckdb"), f"{name}_high": ends.high.sql("duckdb")}
        return self._names[text]

    def _lose(self, name: str, text: str, ends: Ends, bare: tuple[exp.Expr, exp.Expr]) -> None:
        """A number with its ends by noise alone, itself when all is lost that may be, and r, which is 0 if that is 0.

        With the ends l and h of the number x, and l' and h' by noise alone, h - x is q + A and x - l is q, so that
        x + A = l + h - x, and r = 2 q / (h' - l') = (h - l - |A|) / (h' - l').
        """
        self._lossy.append(name)
        low, high, under, over = (one.sql("duckdb") for one in (ends.low, ends.high, *bare))
        self.given |= {
            f"{name}_low": under,
            f"{name}_high": over,
            f"{name}_lost": f"TRY_CAST({low} AS DOUBLE) + {high} - {text}",
            f"{name}_wide": f"TRY_CAST({high} AS DOUBLE) - {low}",
        }

    def noisy(self, body: exp.Expr) -> list[str]:
        """The noisy numbers in a part of the expression, by name."""
        from sqlglot import exp

        names = dict.fromkeys(column.name for column in body.find_all(exp.Column))
        return sorted(name for name in names if name in self._ends_of)

    def spread(self, body: exp.Expr) -> tuple[str, str, str]:
        """SQL of a part of the expression, and of how far its noise may move it down and up."""
        centre = self._moved(body, None)
        kinds = {self._ends_of[name].noise.name for name in self.noisy(body)}
        shifts: dict[str, list[tuple[str, str]]] = {}
        for name in self.noisy(body):
            moved = (self._moved(body, name, "low"), self._moved(body, name, "high"))
            shifts.setdefault(MIXED if MIXED in kinds else self._ends_of[name].noise.name, []).append(moved)
        below, above = (_combined(centre, list(shifts.values()), up=up) for up in (False, True))
        return centre, below, above

    def lossy(self, body: exp.Expr) -> list[str]:
        """The numbers in a part of the expression of which something may be cut off, by name."""
        return [name for name in self.noisy(body) if name in self._lossy]

    def losses(self, body: exp.Expr) -> dict[str, str]:
        """SQL of how far below and above the expression is when all of one number is lost that may be, and of r."""
        lossy, centre = self.lossy(body), self._moved(body, None)
        found: dict[str, str] = {}
        for name in lossy:
            lost = (self._moved(body, name, "lost"),)
            found |= {f"{name}_down": _gaps(centre, lost, up=False), f"{name}_up": _gaps(centre, lost, up=True)}
        parts = ", ".join(self._stored(_quotient(f"{_GIVEN}.{name}")) for name in lossy)
        return found | {"part": f"greatest(0, {parts})"} if lossy else {}

    def may_be_zero(self, body: exp.Expr) -> str:
        """SQL of whether the interval of a denominator has 0 in it."""
        from sqlglot import exp

        if len(self.noisy(body)) == 1 and not any(self.noisy(one.expression) for one in body.find_all(exp.Div)):
            return self._changes_sign(body, *self.noisy(body))
        centre, below, above = self.spread(body)
        lost = [self._moved(body, name, "lost") for name in self.lossy(body)]
        below, above = (
            " + ".join([noise, *(_gaps(centre, (one,), up=up) for one in lost)])
            for noise, up in ((below, False), (above, True))
        )
        inner = [self.may_be_zero(one.expression) for one in body.find_all(exp.Div) if self.noisy(one.expression)]
        inside = f"coalesce({centre} - ({below}) <= 0 AND {centre} + ({above}) >= 0, TRUE)"
        return f"({' OR '.join([*inner, inside])})"

    def _changes_sign(self, body: exp.Expr, name: str) -> str:
        """SQL of whether a denominator with one noisy number has another sign, or none, at one of its ends."""
        centre, low, high = (self._moved(body, name if end else None, end) for end in ("", "low", "high"))
        ends = [low, high]
        if name in self._lossy:
            lost = self._moved(body, name, "lost")
            ends += [f"({lost} + {end} - {centre})" for end in (low, high)]
        return f"coalesce({' OR '.join(f'{centre} * {end} <= 0' for end in ends)}, TRUE)"

    def _moved(self, body: exp.Expr, name: str | None, end: str = "") -> str:
        """A name for the part of the expression with one number at an end of its interval."""
        from sqlglot import exp

        def change(node: exp.Expr) -> exp.Expr:
            return _at_end(node, end) if isinstance(node, exp.Column) and node.name == name else node

        moved = double(body.transform(change)).sql("duckdb")
        return self._stored(moved if name is None else f"coalesce({moved}, {_NAN})")

    def _stored(self, text: str) -> str:
        return f"{_MOVED}.{self._kept(text)}"

    def _kept(self, text: str) -> str:
        if text not in self._names:
            name = self._names[text] = f"m{len(self.moved)}"
            self.moved[name] = text
        return self._names[text]


def _at_end(column: exp.Column, end: str) -> exp.Expr:
    from sqlglot import exp

    return exp.column(f"{column.name}_{end}", table=_GIVEN)


def _struct(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"'{name}': {text}" for name, text in fields.items()) + "}"


def _combined(centre: str, shifts: list[list[tuple[str, str]]], *, up: bool) -> str:
    """SQL of how far the value may be above (below): the root of the squares over independent noises."""
    squares = [f"pow({' + '.join(_gaps(centre, ends, up=up) for ends in numbers)}, 2)" for numbers in shifts]
    return f"sqrt({' + '.join(squares)})"


def _gaps(centre: str, ends: tuple[str, ...], *, up: bool) -> str:
    """SQL of how far the farthest of these is above (below), NaN if one is: to the engine that is the largest."""
    gaps = (f"{end} - {centre}" if up else f"{centre} - {end}" for end in ends)
    return f"greatest(0, {', '.join(gaps)})"


def _quotient(x: str) -> str:
    """SQL of r by the interval of one number; NULL if it allows for nothing."""
    return f"({x}_wide - abs(NULLIF({x}_lost - {x}, 0))) / NULLIF({x}_high - {x}_low, 0)"


def _reach(noise: str, lossy: list[str], *, up: bool) -> str:
    """SQL of how far an end is: the noise, as far as losses leave room for it, and what may be lost on this side."""
    noise, part = (f"{_PARTS}.{name}" for name in (noise, "part"))
    if not lossy:
        return noise
    downs, ups = ([f"{_PARTS}.{name}_{end}" for name in lossy] for end in ("down", "up"))
    less, more = _lost(downs, ups), _lost(ups, downs)
    fall = f"exp(-least(({less} + {more}) / (2 * greatest({noise}, 1e-300) * greatest(1 - {part}, 1e-9)), 700))"
    return f"{noise} * least({part} + (1 - {part}) * {fall}, 1) + {more if up else less}"


def _within(end: str, limit: float, *, at_least: bool) -> str:
    """SQL of an end that is not beyond a limit; NULL where the value is."""
    if not math.isfinite(limit):
        return end
    kept = f"{'greatest' if at_least else 'least'}({end}, CAST({limit!r} AS DOUBLE))"
    return f"CASE WHEN {_PARTS}.value IS NULL THEN NULL ELSE {kept} END"


def _lost(these: list[str], others: list[str]) -> str:
    """SQL of L, from what losses change in this direction and in the other one."""
    if len(these) == 1:
        return these[0]
    together = f"sqrt({' + '.join(f'{one} * {one}' for one in these)})"
    net = f"greatest(0, {' + '.join(these)} - {' - '.join(others)})"
    return f"({_ALONE} * {together} + {1 - _ALONE} * least({together}, {net}))"
