"""Expressions over the columns of a relation: an allow-list, re-emitted in a form that no data can make raise.

Nothing of the analyst's text is copied. Every node of the syntax tree that has no handler here is refused, so that a
function, an operator or a setting that was not thought about can not reach the engine.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.engines.calendar import is_written
from discreet.query.sql.alternatives import instead_of
from discreet.query.sql.text import Source, closest, string
from discreet.query.sql.types import (
    BIGINT,
    DATE,
    DOUBLE,
    HUGEINT,
    NULL,
    TIMESTAMP,
    VARCHAR,
    SqlType,
)
from discreet.query.sql.value import Value, derived, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from discreet.query.sql.within import Within

    Handler = Callable[["Expressions", Any], Value]

__all__ = ["Expressions", "unified"]

MOST_WEIGHT = 5000  # how many texts and characters one text may be made of, so that nobody grows strings in the engine
MOST_SQL = 20_000  # characters of generated SQL for one expression
LONGEST_PATTERN = 300
MOST_WILDCARDS = 6  # LIKE backtracks; a regular expression runs in linear time


class Expressions:
    """Turns syntax trees into values.

    `resolve` finds columns; `intercept` may give the value of a node before anything else looks at it (that is how keys
    and aggregates are recognised above a GROUP BY); `subquery` gives the value of a scalar subquery, or the SQL of a
    list for IN; `windows` allows window functions, and `within` says that each must stay within a person.
    """

    def __init__(
        self,
        source: Source,
        resolve: Callable[[exp.Column], Value],
        *,
        intercept: Callable[[exp.Expr], Value | None] | None = None,
        subquery: Callable[[exp.Expr], Value] | None = None,
        windows: bool = False,
    ) -> None:
        self.source, self.resolve, self.intercept, self.subquery = source, resolve, intercept, subquery
        self.windows = windows
        self.within: Within | None = None

    def value(self, node: exp.Expr) -> Value:
        """The value of any allowed expression."""
        if self.intercept is not None and (found := self.intercept(node)) is not None:
            return found
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise self.unknown(node)
        read = READ.get(type(node), PLAIN)
        for name, argument in node.args.items():
            # A part of the syntax that the handler does not read would be lost in silence: NOT LIKE was one.
            if name not in read and argument not in (None, False, []):
                raise self.source.refusal(
                    f"'{self.source.written(node)}' has a part that is not supported ({name.strip('_')})",
                    advice="write it in a simpler way; see the SQL reference",
                    at=node,
                )
        value = handler(self, node)
        if value.weight > MOST_WEIGHT or len(value.sql) > MOST_SQL:
            raise self.source.refusal(
                "this expression grows too large",
                advice="write x IN (...) in place of many ORs, join fewer or shorter texts, or compute it in steps",
                at=node,
            )
        return value

    def values(self, nodes: Sequence[exp.Expr]) -> list[Value]:
        """The values of several expressions."""
        return [self.value(node) for node in nodes]

    def truth(self, node: exp.Expr) -> Value:
        """The value of a condition."""
        value = self.value(node)
        if value.kind not in ("boolean", "null"):
            self.check_quotes(node, value)
            raise self.source.refusal(
                f"a condition is needed here, and '{self.source.written(node)}' is {value.type.words}",
                advice="compare it with something, as in x > 0 or x IS NOT NULL",
                at=node,
            )
        return value

    def number(self, node: exp.Expr) -> Value:
        """The value of a numeric expression."""
        return self.as_number(self.value(node), node)

    def as_number(self, value: Value, node: exp.Expr) -> Value:
        """The value of this node, if it is a number."""
        if value.kind == "null":
            return derived("CAST(NULL AS DOUBLE)", DOUBLE, (value,), values=(None,))
        if not value.type.numeric:
            self.check_quotes(node, value)
            hint = "CAST(... AS INTEGER)" if value.kind == "boolean" else "CAST(... AS DOUBLE)"
            raise self.source.refusal(
                f"a number is needed here, and '{self.source.written(node)}' is {value.type.words}",
                advice=f"convert it with {hint}, which gives NULL where that is not possible",
                at=node,
            )
        return value

    def text(self, node: exp.Expr) -> Value:
        """The value of a text expression."""
        value = self.value(node)
        if value.kind == "null":
            return derived("CAST(NULL AS VARCHAR)", VARCHAR, (value,), values=(None,))
        if value.kind != "text":
            raise self.source.refusal(
                f"a text is needed here, and '{self.source.written(node)}' is {value.type.words}",
                advice="convert it with CAST(... AS VARCHAR)",
                at=node,
            )
        return as_text(value)

    def constant(self, node: exp.Expr | None, of: type | tuple[type, ...], what: str) -> Any:
        """The Python value of an argument that must be written as a literal."""
        value = self.value(node) if node is not None else None
        if value is None or not value.is_literal or not isinstance(value.python, of) or isinstance(value.python, bool):
            raise self.source.refusal(
                f"{what} must be written out", advice="write a literal there, not a column or an expression", at=node
            )
        return value.python

    def named(self, text: str) -> str | None:
        """The column that has this name, if there is one."""
        del text
        return None

    def check_quotes(self, node: exp.Expr, value: Value, *, inside: exp.Expr | None = None) -> None:
        """Refuses an expression over no row with a text in it that has the name of a column: that one was meant."""
        if value.constant:
            for part in node.find_all(exp.Literal):
                if part.is_string:
                    self.check_name(str(part.this), node if inside is None else inside)

    def check_name(self, text: str, node: exp.Expr) -> None:
        """Refuses a text inside of `node` that has the name of a column, where only a column has a meaning."""
        column = self.named(text)
        if column is None:
            return

        def renamed(part: exp.Expr) -> exp.Expr:
            is_it = isinstance(part, exp.Literal) and part.is_string and str(part.this) == text
            return exp.column(column, quoted=True) if is_it else part

        raise self.source.refusal(
            f"{string(text)} in single quotes is a text, and no column",
            advice=f"names stand in double quotes: write {self.source.written(node.transform(renamed))}",
            at=next((part for part in node.find_all(exp.Literal) if renamed(part) is not part), node),
        )

    def unknown(self, node: exp.Expr) -> Exception:
        """The refusal of what has no handler."""
        reason, advice = _refused(node, self.source.called(node))
        if isinstance(node, exp.Func) and not any("start" in part.meta for part in node.walk()):
            place = self.source.place_of(node.sql_name()) or self.source.span(node)  # a word such as CURRENT_DATE
            return self.source.refusal_at(place, reason, advice=advice)
        return self.source.refusal(reason, advice=advice, at=node)


def as_text(value: Value) -> Value:
    """A text as VARCHAR: an enumeration is written out."""
    if value.type == VARCHAR:
        return value
    return derived(f"CAST({value.sql} AS VARCHAR)", VARCHAR, (value,), values=value.values)


def check_written(at: Expressions, value: Value, node: exp.Expr) -> None:
    """Refuses to convert what has times inside of it: one that no calendar has would stop the engine."""
    if not is_written(value.type.name):
        raise at.source.refusal(
            f"'{at.source.written(node)}' writes out times that are inside of lists or structs",
            advice="count or compare them, or store them in columns of their own",
            at=node,
        )


def unified(at: Expressions, values: Sequence[Value], node: exp.Expr) -> tuple[SqlType, list[str]]:
    """One type for several values that are compared or chosen among, and the SQL of each in it."""
    known = [value for value in values if value.kind != "null"]
    kinds = {value.kind for value in known}
    if not known:
        return NULL, [value.sql for value in values]
    if kinds <= {"integer", "float", "decimal"}:
        type_ = DOUBLE
        common = {value.type for value in known if not value.is_literal}
        if kinds == {"integer"} and len(common) == 1:
            low, high = next(iter(common)).range
            if all(low <= value.limits[0] and value.limits[1] <= high for value in known if value.is_literal):
                return next(iter(common)), [value.bare for value in values]
        if kinds == {"integer"}:
            fits = all(BIGINT.range[0] <= value.limits[0] and value.limits[1] <= BIGINT.range[1] for value in known)
            type_ = BIGINT if fits and all(value.type != HUGEINT for value in known) else HUGEINT
        elif len({value.type.name for value in known}) == 1 and known[0].kind == "decimal":
            type_ = known[0].type
        if type_ == DOUBLE:
            return type_, [value.sql if value.kind == "null" else value.double for value in values]
        typed = not all(value.is_literal for value in known)
        return type_, [
            value.bare
            if value.kind == "null" or (value.is_literal and typed)
            else value.sql
            if value.type == type_
            else f"CAST({value.sql} AS {type_.name})"
            for value in values
        ]
    if kinds == {"text"}:
        return VARCHAR, [value.sql if value.kind == "null" else as_text(value).sql for value in values]
    if kinds & {"date", "timestamp"} and kinds <= {"date", "timestamp", "text"}:
        dated = [_dated(at, value, node) for value in values]
        type_ = TIMESTAMP if any(value.kind == "timestamp" for value in dated) else DATE
        if type_ == DATE:
            return DATE, [value.sql for value in dated]
        return TIMESTAMP, [value.sql if value.kind == "null" else value.timestamp for value in dated]
    if len({value.type.name for value in known}) == 1:
        return known[0].type, [value.sql for value in values]
    for value in known:
        if value.kind == "text" and value.is_literal:
            at.check_name(value.python, node)
    first, other = known[0], next(value for value in known if value.kind != known[0].kind)
    raise at.source.refusal(
        f"{first.type.words} and {other.type.words} do not go together in '{at.source.written(node)}'",
        advice=_together(first, other),
        at=node,
    )


def _together(first: Value, other: Value) -> str:
    """How to compare two values of different types, where one of them was written out."""
    if first.is_literal == other.is_literal:
        return "convert one of them with CAST, which gives NULL where that is not possible"
    known, written = (other, first) if first.is_literal else (first, other)
    if known.kind == "boolean":
        return "compare it with true or false, or write the column alone, or NOT and the column"
    if known.type.temporal:
        return "write a date, as in '2024-12-31', or compare a part of it, as in year(x) = 2024"
    if known.kind == "text":
        return f"write a text in quotes: '{written.python}'"
    if isinstance(written.python, str) and _is_number(written.python):
        return f"write the number without quotes: {written.python.strip()}"
    return "convert one of them with CAST, which gives NULL where that is not possible"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and len(text) < 40
    except ValueError:
        return False


def _dated(at: Expressions, value: Value, node: exp.Expr) -> Value:
    """A text literal next to a date is a date."""
    if value.kind != "text":
        return value
    if not value.is_literal:
        raise at.source.refusal(
            "a text column is compared with a date", advice="convert it with CAST(... AS DATE)", at=node
        )
    return moment(at, value.python, node)


def moment(at: Expressions, text: str, node: exp.Expr) -> Value:
    """The date or the timestamp that a literal says."""
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        try:
            found = read(text.strip())
        except ValueError:
            continue
        if not isinstance(found, dt.datetime) or found.tzinfo is None:
            return literal(found)
    at.check_name(text, node)
    raise at.source.refusal(
        f"'{text[:40]}' is not a date", advice="write '2024-12-31' or '2024-12-31 23:59:59'", at=node
    )


def _refused(node: exp.Expr, called: str | None) -> tuple[str, str]:
    """Reason and advice for a node that has no handler; `called` is the name of the function as it was written."""
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return _unknown_function(str(node.this))
    if isinstance(node, exp.Window):
        return (
            "a window function cannot stand here",
            (
                "windows within one person, OVER (PARTITION BY the unit column ...), stand in the SELECT list of a "
                "subquery over rows, and in QUALIFY: SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY "
                "unit ORDER BY day) = 1 has the first row of each person; around a GROUP BY of each person, in a "
                "SELECT of its own"
            ),
        )
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return (
            "a subquery cannot stand here",
            "join on the unit column; in WHERE, write EXISTS, unit IN (SELECT unit FROM ...) or x IN (SELECT ...)",
        )
    if isinstance(node, exp.Lambda | exp.Array | exp.Struct | exp.Bracket | exp.Dot | exp.Map | exp.Tuple):
        return "lists, structs, maps and lambdas are not supported", "use columns with plain values"
    if isinstance(node, exp.Star):
        return "* cannot stand here", "name the columns"
    if isinstance(node, exp.AggFunc):
        advice = instead_of(node.sql_name())
        if advice is not None:
            return f"{node.sql_name()} is not supported", advice
        return (
            f"the aggregate {node.sql_name()} cannot stand here",
            "aggregates stand in SELECT, HAVING and ORDER BY: COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, ...",
        )
    if isinstance(node, exp.Func):
        return _unknown_function(node.sql_name(), called)
    if isinstance(node, exp.Placeholder | exp.Parameter):
        return "parameters are not supported", "write the value itself"
    if isinstance(node, exp.Any | exp.All):
        return (
            f"{type(node).__name__.upper()} is not supported",
            "write x IN (SELECT ...), or compare with (SELECT MAX(x) FROM public)",
        )
    kind = type(node).__name__.upper()
    return f"'{kind}' is not supported", instead_of(kind) or "see the SQL reference for what can be written"


def _unknown_function(name: str, called: str | None = None) -> tuple[str, str]:
    lower = {"rand": "random"}.get(name.lower(), name.lower())
    if lower in VOLATILE:
        shown = called.lower() if called is not None and called.lower() in VOLATILE else lower
        return (
            f"{shown} gives another value each time, so the answer would not be a function of the data",
            "write the value itself, for example DATE '2024-12-31' or 0.5",
        )
    shown = (called or lower).lower()
    known = [*sorted(KNOWN_NAMES), *AGGREGATES, "average"]
    advice = instead_of(shown) or instead_of(lower) or closest(shown, known).replace("'average'", "'avg'")
    return f"the function {shown} is not known here", advice


AGGREGATES = (
    "count", "sum", "avg", "mean", "median", "min", "max", "variance", "stddev", "quantile_cont", "count_if",
)  # fmt: skip

VOLATILE = {
    "rand", "random", "now", "current_date", "current_timestamp", "current_time", "today", "uuid", "gen_random_uuid",
    "setseed", "nextval", "currval", "current_localtimestamp", "current_localtime", "get_current_timestamp",
    "localtimestamp", "localtime", "transaction_timestamp", "txid_current",
}  # fmt: skip

HANDLERS: dict[type, Handler] = {}
PLAIN = {"this", "expression", "expressions"}
READ: dict[type, set[str]] = {}
NAMED: dict[str, Handler] = {}
KNOWN_NAMES: set[str] = set()
