"""Literals, columns, comparisons, AND, OR, NOT, IN and LIKE."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.expressions import HANDLERS, LONGEST_PATTERN, MOST_WILDCARDS, READ, Expressions, unified
from discreet.query.sql.text import string
from discreet.query.sql.types import BOOLEAN
from discreet.query.sql.value import Value, derived, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.query.sql.expressions import Handler

__all__: list[str] = []


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


def _meant(at: Expressions, node: exp.Expr, parts: Sequence[exp.Expr]) -> list[Value]:
    """The values that a condition is about; if no column is among them, none may have been meant."""
    values = at.values(parts)
    if all(value.constant for value in values):
        at.check_quotes(node, values[0])
    return values


def _compared(operator: str) -> Handler:
    def compare(at: Expressions, node: exp.Binary) -> Value:
        values = _meant(at, node, (node.left, node.right))
        _, (left, right) = unified(at, values, node)
        return derived(f"({left} {operator} {right})", BOOLEAN, values)

    return compare


def _joined(operator: str) -> Handler:
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
        (value,) = _meant(at, node, (node.this,))
        return derived(f"({value.sql} IS {negated}NULL)", BOOLEAN, (value,))
    if isinstance(other, exp.Boolean):
        value = at.truth(node.this)
        return derived(f"({value.sql} IS {negated}{'TRUE' if other.this else 'FALSE'})", BOOLEAN, (value,))
    raise at.unknown(node)


def _between(at: Expressions, node: exp.Between) -> Value:
    if node.args.get("symmetric"):
        raise at.unknown(node)
    values = _meant(at, node, (node.this, node.args["low"], node.args["high"]))
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
    values = _meant(at, node, (node.this, *node.expressions))
    _, (this, *others) = unified(at, values, node)
    return derived(f"({this} IN ({', '.join(others)}))", BOOLEAN, values)


def _like(operator: str) -> Handler:
    def like(at: Expressions, node: exp.Binary, escape: str = "") -> Value:
        value = at.text(node.this)
        at.check_quotes(node.this, value, inside=node)
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
    if len(escape.encode()) != 1:  # of any other one the engine complains once a row is there
        raise at.source.refusal("the escape must be one plain character", advice="write ESCAPE '!'", at=node.expression)
    return _like(LIKES[type(node.this)])(at, node.this, escape)  # type: ignore[call-arg]


LIKES: dict[type, str] = {exp.Like: "LIKE", exp.ILike: "ILIKE"}


def _scalar_subquery(at: Expressions, node: exp.Subquery) -> Value:
    if at.subquery is None:
        raise at.unknown(node)
    return at.subquery(node)


HANDLERS.update(
    {
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
        exp.Subquery: _scalar_subquery,
    }
)
READ.update(
    {
        exp.Literal: {"this", "is_string"},
        exp.Column: {"this", "table", "db"},
        exp.Between: {"this", "low", "high", "symmetric"},
        exp.In: {"this", "expressions", "query", "unnest", "field"},
        exp.Like: {"this", "expression", "negate"},
        exp.ILike: {"this", "expression", "negate"},
        exp.Subquery: {"this", "with_"},
    }
)
