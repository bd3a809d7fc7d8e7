"""Expressions over the columns of a relation: an allow-list, re-emitted in a form that no data can make raise.

Nothing of the analyst's text is copied. Every node of the syntax tree that has no handler here is refused, so that a
function, an operator or a setting that was not thought about can not reach the engine.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql import arithmetic
from discreet.query.sql.text import Source, closest, string
from discreet.query.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    NULL,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    type_named,
)
from discreet.query.sql.value import Value, derived, hull, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Expressions", "unified"]

MOST_WEIGHT = 5000  # how many texts and characters one text may be made of, so that nobody grows strings in the engine
MOST_SQL = 20_000  # characters of generated SQL for one expression
LONGEST_PATTERN = 300
MOST_WILDCARDS = 6  # LIKE backtracks; a regular expression runs in linear time
Handler = "Callable[[Expressions, Any], Value]"


class Expressions:
    """Turns syntax trees into values.

    `resolve` finds columns; `intercept` may give the value of a node before anything else looks at it (that is how keys
    and aggregates are recognised above a GROUP BY); `subquery` gives the value of a scalar subquery, or the SQL of a
    list for IN; `windows` allows window functions.
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
                "this expression grows too large", advice="join fewer or shorter texts, or compute it in steps", at=node
            )
        return value

    def values(self, nodes: Sequence[exp.Expr]) -> list[Value]:
        """The values of several expressions."""
        return [self.value(node) for node in nodes]

    def truth(self, node: exp.Expr) -> Value:
        """The value of a condition."""
        value = self.value(node)
        if value.kind not in ("boolean", "null"):
            raise self.source.refusal(
                f"a condition is needed here, and '{self.source.written(node)}' is {value.type.words}",
                advice="compare it with something, as in x > 0 or x IS NOT NULL",
                at=node,
            )
        return value

    def number(self, node: exp.Expr) -> Value:
        """The value of a numeric expression."""
        value = self.value(node)
        if value.kind == "null":
            return derived("CAST(NULL AS DOUBLE)", DOUBLE, (value,), values=(None,))
        if not value.type.numeric:
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

    def unknown(self, node: exp.Expr) -> Exception:
        """The refusal of what has no handler."""
        reason, advice = _refused(node)
        return self.source.refusal(reason, advice=advice, at=node)


def as_text(value: Value) -> Value:
    """A text as VARCHAR: an enumeration is written out."""
    if value.type == VARCHAR:
        return value
    return derived(f"CAST({value.sql} AS VARCHAR)", VARCHAR, (value,), values=value.values)


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
                return next(iter(common)), [value.sql for value in values]
        if kinds == {"integer"}:
            fits = all(BIGINT.range[0] <= value.limits[0] and value.limits[1] <= BIGINT.range[1] for value in known)
            type_ = BIGINT if fits and all(value.type != HUGEINT for value in known) else HUGEINT
        elif len({value.type.name for value in known}) == 1 and known[0].kind == "decimal":
            type_ = known[0].type
        if type_ == DOUBLE:
            return type_, [value.sql if value.kind == "null" else value.double for value in values]
        every_literal = all(value.is_literal for value in known)
        return type_, [
            value.sql if value.kind == "null" or value.type == type_ or (value.is_literal and not every_literal)
            else f"CAST({value.sql} AS {type_.name})"
            for value in values
        ]  # fmt: skip
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
    first, other = known[0], next(value for value in known if value.kind != known[0].kind)
    raise at.source.refusal(
        f"{first.type.words} and {other.type.words} do not go together in '{at.source.written(node)}'",
        advice="convert one of them with CAST, which gives NULL where that is not possible",
        at=node,
    )


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
    raise at.source.refusal(
        f"'{text[:40]}' is not a date", advice="write '2024-12-31' or '2024-12-31 23:59:59'", at=node
    )


def _refused(node: exp.Expr) -> tuple[str, str]:
    """Reason and advice for a node that has no handler."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return _unknown_function(str(node.this))
    if isinstance(node, exp.Window):
        return (
            "window functions over rows of people, or in conditions, are not supported",
            "aggregate per person in a subquery (GROUP BY the unit column), then over people",
        )
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return "a subquery cannot stand here", "write it as a join on the unit column, or as a table in FROM or WITH"
    if isinstance(node, exp.Lambda | exp.Array | exp.Struct | exp.Bracket | exp.Dot | exp.Map | exp.Tuple):
        return "lists, structs, maps and lambdas are not supported", "use columns with plain values"
    if isinstance(node, exp.Star):
        return "* cannot stand here", "name the columns"
    if isinstance(node, exp.AggFunc):
        return (
            f"the aggregate {node.sql_name()} cannot stand here",
            "aggregates stand in SELECT, HAVING and ORDER BY: COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, ...",
        )
    if isinstance(node, exp.Func):
        return _unknown_function(node.sql_name())
    if isinstance(node, exp.Placeholder | exp.Parameter):
        return "parameters are not supported", "write the value itself"
    return f"'{type(node).__name__.upper()}' is not supported", "see the SQL reference for what can be written"


def _unknown_function(name: str) -> tuple[str, str]:
    lower = {"rand": "random"}.get(name.lower(), name.lower())
    if lower in VOLATILE:
        return (
            f"{lower}() gives another value each time, so the answer would not be a function of the data",
            "write the value itself, for example DATE '2024-12-31'",
        )
    return f"the function {lower} is not known here", f"{closest(lower, KNOWN_NAMES)}"


VOLATILE = {
    "rand", "random", "now", "current_date", "current_timestamp", "current_time", "today", "uuid", "gen_random_uuid",
    "setseed", "nextval", "currval", "current_localtimestamp", "current_localtime", "get_current_timestamp",
    "localtimestamp", "localtime", "transaction_timestamp", "txid_current",
}  # fmt: skip


# ── literals, columns, logic ──────────────────────────────────────────────────────────────────────────────────────────


def _literal(at: Expressions, node: exp.Literal) -> Value:
    if node.is_string:
        return literal(str(node.this))
    text = str(node.this).replace("_", "")
    try:
        if text.isdigit():
            if len(text) > 300:
                raise ValueError(text)
            return literal(int(text))
        number = float(decimal.Decimal(text))
    except (ValueError, decimal.InvalidOperation, OverflowError):
        raise at.source.refusal("this is not a number", advice="write digits, as in 12 or 1.5e3", at=node) from None
    return literal(number)


def _compared(operator: str) -> Callable[[Expressions, Any], Value]:
    def compare(at: Expressions, node: exp.Binary) -> Value:
        values = at.values((node.left, node.right))
        _, (left, right) = unified(at, values, node)
        return derived(f"({left} {operator} {right})", BOOLEAN, values)

    return compare


def _joined(operator: str) -> Callable[[Expressions, Any], Value]:
    def join(at: Expressions, node: exp.Connector) -> Value:
        # A long chain is a deep tree: walk it instead of recursing once for every AND.
        parts = [at.truth(part) for part in node.flatten()]
        return derived("(" + f" {operator} ".join(part.sql for part in parts) + ")", BOOLEAN, parts)

    return join


def _not(at: Expressions, node: exp.Not) -> Value:
    value = at.truth(node.this)
    return derived(f"(NOT {value.sql})", BOOLEAN, (value,))


def _is(at: Expressions, node: exp.Is) -> Value:
    other = node.expression
    negated = ""
    if isinstance(other, exp.Not):
        negated, other = "NOT ", other.this
    if isinstance(other, exp.Null):
        value = at.value(node.this)
        return derived(f"({value.sql} IS {negated}NULL)", BOOLEAN, (value,))
    if isinstance(other, exp.Boolean):
        value = at.truth(node.this)
        return derived(f"({value.sql} IS {negated}{'TRUE' if other.this else 'FALSE'})", BOOLEAN, (value,))
    raise at.unknown(node)


def _between(at: Expressions, node: exp.Between) -> Value:
    if node.args.get("symmetric"):
        raise at.unknown(node)
    values = at.values((node.this, node.args["low"], node.args["high"]))
    _, (this, low, high) = unified(at, values, node)
    return derived(f"({this} BETWEEN {low} AND {high})", BOOLEAN, values)


def _in(at: Expressions, node: exp.In) -> Value:
    if node.args.get("unnest") or node.args.get("field"):
        raise at.unknown(node)
    query = node.args.get("query")
    if query is not None:
        value = at.value(node.this)
        if at.subquery is None:
            raise at.unknown(query)
        listed = at.subquery(node)
        _, (this, _) = unified(at, (value, listed), node)
        if value.type.name != listed.type.name and this != value.sql:
            raise at.source.refusal(
                "the two sides of IN have different types", advice="convert one of them with CAST", at=node
            )
        return derived(f"({this} IN ({listed.sql}))", BOOLEAN, (value, listed))
    if len(node.expressions) > 1000:
        raise at.source.refusal("this list is too long", advice="list at most 1000 values", at=node.this)
    values = at.values((node.this, *node.expressions))
    _, (this, *others) = unified(at, values, node)
    return derived(f"({this} IN ({', '.join(others)}))", BOOLEAN, values)


def _like(operator: str) -> Callable[[Expressions, Any], Value]:
    def like(at: Expressions, node: exp.Binary, escape: str = "") -> Value:
        value = at.text(node.this)
        pattern = at.constant(node.expression, str, "the pattern")
        if len(pattern) > LONGEST_PATTERN or pattern.count("%") > MOST_WILDCARDS:
            raise at.source.refusal(
                "this pattern is too large",
                advice=f"use at most {LONGEST_PATTERN} characters and {MOST_WILDCARDS} '%', or a regular expression",
                at=node.expression,
            )
        tail = f" ESCAPE {string(escape)}" if escape else ""
        if escape and _ends_in_escape(pattern, escape):
            raise at.source.refusal(
                "the pattern ends in its escape character", advice="write the character after it", at=node.expression
            )
        word = f"NOT {operator}" if node.args.get("negate") else operator
        return derived(f"({value.sql} {word} {string(pattern)}{tail})", BOOLEAN, (value,))

    return like


def _ends_in_escape(pattern: str, escape: str) -> bool:
    inside = False
    for character in pattern:
        inside = character == escape and not inside
    return inside


def _escape(at: Expressions, node: exp.Escape) -> Value:
    if type(node.this) not in LIKES or set(node.this.args) - {"this", "expression", "negate"}:
        raise at.unknown(node)
    escape = at.constant(node.expression, str, "the escape character")
    if len(escape) != 1:
        raise at.source.refusal("the escape must be one character", advice="write ESCAPE '!'", at=node.expression)
    return _like(LIKES[type(node.this)])(at, node.this, escape)  # type: ignore[call-arg]


LIKES: dict[type, str] = {exp.Like: "LIKE", exp.ILike: "ILIKE"}


# ── choices ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _case(at: Expressions, node: exp.Case) -> Value:
    branches: list[tuple[Value, Value]] = []
    for branch in node.args["ifs"]:
        condition = branch.this
        if node.this is not None:
            condition = exp.EQ(this=node.this.copy(), expression=condition.copy())
            condition.parent = node
        branches.append((at.truth(condition), at.value(branch.args["true"])))
    default = node.args.get("default")
    return _chosen(at, branches, at.value(default) if default is not None else literal(None), node)


def _if(at: Expressions, node: exp.If) -> Value:
    default = node.args.get("false")
    otherwise = at.value(default) if default is not None else literal(None)
    return _chosen(at, [(at.truth(node.this), at.value(node.args["true"]))], otherwise, node)


def _chosen(at: Expressions, branches: list[tuple[Value, Value]], default: Value, node: exp.Expr) -> Value:
    results = [result for _, result in branches] + [default]
    type_, sqls = unified(at, results, node)
    cases = " ".join(f"WHEN {test.sql} THEN {sql}" for (test, _), sql in zip(branches, sqls, strict=False))
    facts = hull(results)
    if facts.get("values") is not None and any(result.kind == "null" for result in results):
        facts["values"] = tuple(dict.fromkeys((*facts["values"], None)))
    facts["values"] = _typed(facts.get("values"), type_)
    parts = [part for pair in branches for part in pair] + [default]
    return derived(f"(CASE {cases} ELSE {sqls[-1]} END)", type_, parts, **facts)


def _typed(values: tuple[Any, ...] | None, type_: SqlType) -> tuple[Any, ...] | None:
    """The listed values in the type that the choice among them has."""
    if values is None or type_ not in (DOUBLE, TIMESTAMP):
        return values
    return tuple(dict.fromkeys(_lifted(value, type_) for value in values))


def _lifted(value: Any, type_: SqlType) -> Any:
    if value is None or isinstance(value, dt.datetime):
        return value
    if type_ == DOUBLE:
        return float(value)
    return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - SQL timestamps have no zone


def _coalesce(at: Expressions, node: exp.Coalesce) -> Value:
    values = at.values((node.this, *node.expressions))
    type_, sqls = unified(at, values, node)
    facts = hull(values)
    facts["values"] = _typed(facts.get("values"), type_)
    if facts["values"] is not None and any(value.is_literal and value.python is not None for value in values):
        facts["values"] = tuple(value for value in facts["values"] if value is not None)
    return derived(f"COALESCE({', '.join(sqls)})", type_, values, **facts)


def _extreme(function: str) -> Callable[[Expressions, Any], Value]:
    def extreme(at: Expressions, node: exp.Func) -> Value:
        values = at.values((node.this, *node.expressions))
        type_, sqls = unified(at, values, node)
        pick = max if function == "GREATEST" else min
        facts = hull(values)
        # NULLs are skipped, so the smallest (largest) of all is possible only if some operand can be NULL; the hull of
        # the operands that are literals and never NULL cuts the range on one side.
        sure = [value.bounds for value in values if value.is_literal and value.type.numeric]
        if sure and type_.numeric:
            low, high = facts["bounds"]
            cut = pick(bound[0] for bound in sure)
            facts["bounds"] = (max(low, cut), max(high, cut)) if pick is max else (min(low, cut), min(high, cut))
        facts.pop("values")
        return derived(f"{function}({', '.join(sqls)})", type_, values, **facts)

    return extreme


def _nullif(at: Expressions, node: exp.Nullif) -> Value:
    values = at.values((node.this, node.expression))
    type_, (left, right) = unified(at, values, node)
    first = values[0]
    known = None if first.values is None else tuple(dict.fromkeys((*first.values, None)))
    return derived(
        f"NULLIF({left}, {right})",
        type_,
        values,
        bounds=first.bounds,
        limits=first.limits,
        values=_typed(known, type_),
        tame=first.tame,
        weight=first.weight,
    )


# ── conversions ───────────────────────────────────────────────────────────────────────────────────────────────────────

CASTS = {
    "text": {"text", "integer", "float", "decimal", "boolean", "date", "timestamp"},
    "integer": {"integer", "float", "decimal", "text", "boolean"},
    "float": {"integer", "float", "decimal", "text", "boolean"},
    "decimal": {"integer", "float", "decimal", "text", "boolean"},
    "boolean": {"integer", "float", "text", "boolean"},
    "date": {"date", "timestamp", "text"},
    "timestamp": {"date", "timestamp", "text"},
    "other": {"text"},
}


def _cast(at: Expressions, node: exp.Cast) -> Value:
    if node.args.get("format") or node.args.get("default"):
        raise at.unknown(node)
    target = type_named(node.to.sql(dialect="duckdb"))
    value = at.value(node.this)
    if target.kind in ("other", "null") or (target.name not in KNOWN_TARGETS and target.kind != "decimal"):
        raise at.source.refusal(
            f"CAST to {target.name} is not supported",
            advice="cast to INTEGER, BIGINT, DOUBLE, DECIMAL(p, s), VARCHAR, BOOLEAN, DATE or TIMESTAMP",
            at=node,
        )
    if value.kind == "null":
        return derived(f"CAST(NULL AS {target.name})", target, (value,), values=(None,))
    if target.kind not in CASTS[value.kind]:
        raise at.source.refusal(
            f"{value.type.words} cannot be converted to {target.name}", advice="choose another type", at=node
        )
    if value.is_literal and value.kind == "text" and target.temporal:
        found = moment(at, value.python, node)
        if found.type == target:
            return found
        if target == TIMESTAMP:
            return literal(_lifted(found.python, TIMESTAMP))
        return literal(found.python.date())
    if value.type == target:
        return value
    facts: dict[str, Any] = {"weight": max(value.weight, 60)}
    if value.type.numeric or value.kind == "boolean":
        low, high = value.bounds
        if target.kind == "integer":
            facts["bounds"] = (max(arithmetic.STEPS["floor"](low), target.range[0]),
                               min(arithmetic.STEPS["ceil"](high), target.range[1]))  # fmt: skip
            if value.kind == "boolean":
                facts["values"] = (0, 1)
        elif target.numeric:
            facts["bounds"] = (low, high)
            if value.values is not None and target == DOUBLE:
                facts["values"] = tuple(None if one is None else float(one) for one in value.values)
    if value.type.temporal and target.temporal:
        scale = 86_400_000_000.0
        low, high = value.bounds
        facts["bounds"] = (low * scale, high * scale) if target == TIMESTAMP else (low // scale, high // scale)
        facts["tame"] = value.tame
    return derived(f"TRY_CAST({value.sql} AS {target.name})", target, (value,), **facts)


KNOWN_TARGETS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT",
    "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP",
}  # fmt: skip


def _scalar_subquery(at: Expressions, node: exp.Subquery) -> Value:
    if at.subquery is None:
        raise at.unknown(node)
    return at.subquery(node)


HANDLERS: dict[type, Callable[[Expressions, Any], Value]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda _, node: literal(bool(node.this)),
    exp.Null: lambda *_: literal(None),
    exp.Column: lambda at, node: at.resolve(node),
    exp.Paren: lambda at, node: at.value(node.this),
    exp.EQ: _compared("="),
    exp.NEQ: _compared("<>"),
    exp.LT: _compared("<"),
    exp.LTE: _compared("<="),
    exp.GT: _compared(">"),
    exp.GTE: _compared(">="),
    exp.NullSafeEQ: _compared("IS NOT DISTINCT FROM"),
    exp.NullSafeNEQ: _compared("IS DISTINCT FROM"),
    exp.And: _joined("AND"),
    exp.Or: _joined("OR"),
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like("LIKE"),
    exp.ILike: _like("ILIKE"),
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme("GREATEST"),
    exp.Least: _extreme("LEAST"),
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Subquery: _scalar_subquery,
}
PLAIN = {"this", "expression", "expressions"}
READ: dict[type, set[str]] = {
    exp.Literal: {"this", "is_string"},
    exp.Column: {"this", "table", "db"},
    exp.Between: {"this", "low", "high", "symmetric"},
    exp.In: {"this", "expressions", "query", "unnest", "field"},
    exp.Like: {"this", "expression", "negate"},
    exp.ILike: {"this", "expression", "negate"},
    exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true", "false"},
    exp.Coalesce: PLAIN | {"is_nvl", "is_null"},
    exp.Greatest: PLAIN | {"ignore_nulls"},
    exp.Least: PLAIN | {"ignore_nulls"},
    exp.Cast: {"this", "to", "safe", "format", "default"},
    exp.TryCast: {"this", "to", "safe", "format", "default", "requires_string"},
    exp.Subquery: {"this", "with_"},
}
NAMED: dict[str, Callable[[Expressions, Any], Value]] = {}
KNOWN_NAMES: set[str] = {"coalesce", "ifnull", "nullif", "greatest", "least", "cast", "try_cast", "if"}
