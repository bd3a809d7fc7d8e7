"""The functions of texts, each in a form that gives NULL where the plain one would raise; none grows without end."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.engines.sandbox import sandbox
from discreet.errors import EngineError
from discreet.query.sql.expressions import (
    HANDLERS,
    KNOWN_NAMES,
    LONGEST_PATTERN,
    NAMED,
    PLAIN,
    READ,
    Expressions,
    as_text,
    check_written,
)
from discreet.query.sql.functions import arguments
from discreet.query.sql.text import string
from discreet.query.sql.types import BIGINT, BOOLEAN, VARCHAR
from discreet.query.sql.value import Value, derived

if TYPE_CHECKING:
    from discreet.query.sql.expressions import Handler

__all__: list[str] = []

_WIDEST = 1000
"""So many characters a text is padded to, at most."""

_GROWS, _LONGEST = 8, 1 << 24
"""A text that a function may make more than so many times as long is NULL if it might have more than so many bytes."""


def _text(function: str) -> Handler:
    def apply(at: Expressions, node: exp.Func) -> Value:
        value = at.text(node.this)
        return derived(f"{function}({value.sql})", VARCHAR, (value,), weight=2 * value.weight)

    return apply


def _trim(at: Expressions, node: exp.Trim) -> Value:
    value = at.text(node.this)
    function = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position") or "").upper(), "TRIM")
    characters = node.args.get("expression")
    if characters is None:
        return derived(f"{function}({value.sql})", VARCHAR, (value,))
    which = at.constant(characters, str, "the characters to trim")
    return derived(f"{function}({value.sql}, {string(which)})", VARCHAR, (value,))


def _small(at: Expressions, node: exp.Expr | None, what: str) -> int:
    number = at.constant(node, int, what)
    if abs(number) > 1_000_000:
        raise at.source.refusal(f"{what} is too large", advice="use at most 1000000", at=node)
    return int(number)


def _substring(at: Expressions, node: exp.Substring) -> Value:
    value = at.text(node.this)
    start = _small(at, node.args.get("start"), "the start")
    length = node.args.get("length")
    tail = f", {_small(at, length, 'the length')}" if length is not None else ""
    return derived(f"SUBSTRING({value.sql}, {start}{tail})", VARCHAR, (value,))


def _end(function: str) -> Handler:
    def cut(at: Expressions, node: exp.Func) -> Value:
        value = at.text(node.this)
        return derived(f"{function}({value.sql}, {_small(at, node.expression, 'the length')})", VARCHAR, (value,))

    return cut


def _length(at: Expressions, node: exp.Length) -> Value:
    value = at.text(node.this)
    return derived(f"LENGTH({value.sql})", BIGINT, (value,), bounds=(0.0, math.inf), limits=(0, 2**40))


def _concat(at: Expressions, node: exp.Concat) -> Value:
    parts = [_shown(at, part) for part in node.expressions]
    return derived(f"CONCAT({', '.join(part.sql for part in parts)})", VARCHAR, parts)


def _joined(at: Expressions, node: exp.ConcatWs) -> Value:
    mark, *parts = node.expressions
    between = at.constant(mark, str, "the text between the others")
    values = [_shown(at, part) for part in parts]
    sql = f"CONCAT_WS({', '.join([string(between), *(value.sql for value in values)])})"
    return derived(sql, VARCHAR, values, weight=sum(value.weight for value in values) + len(values) * len(between))


def _repeated(at: Expressions, node: exp.Repeat) -> Value:
    value, times = at.text(node.this), at.constant(node.args.get("times"), int, "the number of times")
    if not 0 <= times <= _WIDEST:
        raise at.source.refusal(f"{times} times are not supported", advice=f"repeat up to {_WIDEST} times", at=node)
    sql = f"REPEAT({_short(value, times)}, {times})"
    return derived(sql, VARCHAR, (value,), weight=value.weight * max(1, times))


def _short(value: Value, times: int) -> str:
    """SQL of the text if it stays short when it grows so many times, else NULL: nobody can fill the memory by it."""
    if times <= _GROWS:
        return value.sql
    return f"CASE WHEN STRLEN({value.sql}) <= {_LONGEST // times} THEN {value.sql} END"


def _translated(at: Expressions, node: exp.Translate) -> Value:
    value = at.text(node.this)
    old, new = (at.constant(node.args.get(name), str, "the letters") for name in ("from_", "to"))
    return derived(f"TRANSLATE({value.sql}, {string(old)}, {string(new)})", VARCHAR, (value,), weight=4 * value.weight)


def _code(function: str) -> Handler:
    """The number of the first letter."""

    def number(at: Expressions, node: exp.Expr) -> Value:
        value = at.text(arguments(at, node, 1)[0] if isinstance(node, exp.Anonymous) else node.this)
        return derived(f"CAST({function}({value.sql}) AS BIGINT)", BIGINT, (value,), limits=(-1, 0x10FFFF))

    return number


def _plain_letters(at: Expressions, node: exp.Anonymous) -> Value:
    value = at.text(arguments(at, node, 1)[0])
    return derived(f"STRIP_ACCENTS({value.sql})", VARCHAR, (value,), weight=2 * value.weight)


def _pipes(at: Expressions, node: exp.DPipe) -> Value:
    parts = [_shown(at, part) for part in node.flatten()]
    return derived("(" + " || ".join(part.sql for part in parts) + ")", VARCHAR, parts)


def _shown(at: Expressions, node: exp.Expr) -> Value:
    """A value as text: numbers and dates are written out."""
    value = at.value(node)
    if value.kind == "text":
        return as_text(value)
    check_written(at, value, node)
    return derived(f"CAST({value.sql} AS VARCHAR)", VARCHAR, (value,), weight=60)


def _replace(at: Expressions, node: exp.Replace) -> Value:
    value = at.text(node.this)
    old = at.constant(node.expression, str, "the text to replace")
    new = at.constant(node.args.get("replacement") or exp.Literal.string(""), str, "the replacement")
    weight = value.weight * max(1, len(new))
    sql = f"REPLACE({_short(value, len(new))}, {string(old)}, {string(new)})"
    return derived(sql, VARCHAR, (value,), weight=weight)


def _split_part(at: Expressions, node: exp.SplitPart) -> Value:
    value = at.text(node.this)
    delimiter = at.constant(node.args.get("delimiter"), str, "the delimiter")
    index = _small(at, node.args.get("part_index"), "the position")
    return derived(f"SPLIT_PART({value.sql}, {string(delimiter)}, {index})", VARCHAR, (value,))


def _searched(function: str) -> Handler:
    def search(at: Expressions, node: exp.Func) -> Value:
        first, second = (node.this, node.expression)
        if isinstance(node, exp.Anonymous):
            first, second = arguments(at, node, 2)
        values = at.text(first), at.text(second)
        return derived(f"{function}({values[0].sql}, {values[1].sql})", BOOLEAN, values)

    return search


def _position(at: Expressions, node: exp.StrPosition) -> Value:
    if node.args.get("position") is not None or node.args.get("occurrence") is not None:
        raise at.unknown(node)
    values = at.text(node.this), at.text(node.args["substr"])
    sql = f"STRPOS({values[0].sql}, {values[1].sql})"
    return derived(sql, BIGINT, values, bounds=(0.0, math.inf), limits=(0, 2**40))


def _pattern(at: Expressions, node: exp.Expr | None) -> str:
    """A regular expression that is short and well formed; RE2 runs it in time linear in the text."""
    pattern = at.constant(node, str, "the regular expression")
    if len(pattern) > LONGEST_PATTERN:
        raise at.source.refusal(
            "this regular expression is too long", advice=f"use at most {LONGEST_PATTERN} characters", at=node
        )
    if "\\C" in pattern.replace("\\\\", ""):
        # It matches a part of a character, and the engine raises where that is what a function gives back.
        raise at.source.refusal(
            "\\C matches single bytes, which are no texts", advice="match characters, by a dot or [...]", at=node
        )
    if not _readable(pattern):
        raise at.source.refusal(
            "this regular expression cannot be read", advice="use the syntax of RE2, as in '^a[0-9]+$'", at=node
        )
    return str(pattern)


@functools.lru_cache(maxsize=256)
def _readable(pattern: str) -> bool:
    """Whether the engine can compile the pattern: tried on a row of its own, where there is no data."""
    try:
        sandbox().rows(f"SELECT regexp_matches(s, {string(pattern)}) FROM (VALUES ('a'), (NULL)) t(s)")
    except EngineError:
        return False
    return True


def _matches(function: str) -> Handler:
    def match(at: Expressions, node: exp.Func) -> Value:
        if isinstance(node, exp.Anonymous):
            first, second = arguments(at, node, 2)
        else:
            first, second = node.this, node.expression
            if node.args.get("flag") is not None:
                raise at.unknown(node)
        value = at.text(first)
        return derived(f"{function}({value.sql}, {string(_pattern(at, second))})", BOOLEAN, (value,))

    return match


def _extracted(at: Expressions, node: exp.RegexpExtract) -> Value:
    if any(node.args.get(name) is not None for name in ("position", "occurrence", "parameters")):
        raise at.unknown(node)
    value = at.text(node.this)
    pattern = _pattern(at, node.expression)
    group = node.args.get("group")
    number = _small(at, group, "the group") if group is not None else 0
    if not 0 <= number <= 9 or number > pattern.count("("):
        raise at.source.refusal("the pattern has no such group", advice="name a group that it has", at=node)
    return derived(f"REGEXP_EXTRACT({value.sql}, {string(pattern)}, {number})", VARCHAR, (value,))


def _padded(at: Expressions, node: exp.Pad) -> Value:
    value = at.text(node.this)
    width = _small(at, node.expression, "the width")
    fill = at.constant(node.args.get("fill_pattern") or exp.Literal.string(" "), str, "the filling")
    if not 0 <= width <= _WIDEST or not fill:
        raise at.source.refusal(
            "a text cannot be filled up like this", advice=f"use a width up to {_WIDEST}, and some character", at=node
        )
    function = "LPAD" if node.args.get("is_left") else "RPAD"
    weight = value.weight + width
    return derived(f"{function}({value.sql}, {width}, {string(fill)})", VARCHAR, (value,), weight=weight)


def _pattern_replaced(at: Expressions, node: exp.RegexpReplace) -> Value:
    value = at.text(node.this)
    pattern = _pattern(at, node.expression)
    new = at.constant(node.args.get("replacement") or exp.Literal.string(""), str, "the replacement")
    flags = at.constant(node.args.get("modifiers") or exp.Literal.string(""), str, "the flags")
    if "\\" in new:
        raise at.source.refusal(
            "groups of the pattern cannot stand in the replacement", advice="use REGEXP_EXTRACT(x, pattern, 1)", at=node
        )
    if not set(flags) <= set("gic"):
        raise at.source.refusal("these flags are not known", advice="use 'g' (all matches) and 'i' (any case)", at=node)
    weight = value.weight * (1 + len(new)) + len(new)  # a match may be empty: before every character, and at the end
    sql = f"REGEXP_REPLACE({_short(value, 1 + len(new))}, {string(pattern)}, {string(new)}, {string(flags)})"
    return derived(sql, VARCHAR, (value,), weight=weight)


HANDLERS.update(
    {
        exp.Lower: _text("LOWER"),
        exp.Upper: _text("UPPER"),
        exp.Trim: _trim,
        exp.Substring: _substring,
        exp.Left: _end("LEFT"),
        exp.Right: _end("RIGHT"),
        exp.Length: _length,
        exp.Concat: _concat,
        exp.ConcatWs: _joined,
        exp.Repeat: _repeated,
        exp.Translate: _translated,
        exp.Ascii: _code("ASCII"),
        exp.Unicode: _code("UNICODE"),
        exp.DPipe: _pipes,
        exp.Replace: _replace,
        exp.SplitPart: _split_part,
        exp.StartsWith: _searched("STARTS_WITH"),
        exp.EndsWith: _searched("SUFFIX"),
        exp.Contains: _searched("CONTAINS"),
        exp.StrPosition: _position,
        exp.RegexpLike: _matches("REGEXP_MATCHES"),
        exp.RegexpFullMatch: _matches("REGEXP_FULL_MATCH"),
        exp.SimilarTo: _matches("REGEXP_FULL_MATCH"),
        exp.RegexpExtract: _extracted,
        exp.Reverse: _text("REVERSE"),
        exp.Pad: _padded,
        exp.RegexpReplace: _pattern_replaced,
    }
)
READ.update(
    {
        exp.Substring: {"this", "start", "length"},
        exp.Concat: PLAIN | {"safe", "coalesce"},
        exp.ConcatWs: PLAIN | {"safe", "coalesce"},
        exp.Repeat: {"this", "times"},
        exp.Translate: {"this", "from_", "to"},
        exp.DPipe: PLAIN | {"safe"},
        exp.Replace: PLAIN | {"replacement"},
        exp.Trim: PLAIN | {"position"},
        exp.SplitPart: {"this", "delimiter", "part_index"},
        exp.StrPosition: {"this", "substr", "position", "occurrence"},
        exp.RegexpLike: PLAIN | {"flag"},
        exp.RegexpExtract: PLAIN | {"group", "position", "occurrence", "parameters", "null_if_pos_overflow"},
        exp.Pad: PLAIN | {"fill_pattern", "is_left"},
        exp.RegexpReplace: PLAIN | {"replacement", "modifiers", "single_replace"},
    }
)
NAMED.update(
    {
        "prefix": _searched("STARTS_WITH"),
        "suffix": _searched("SUFFIX"),
        "ord": _code("ORD"),
        "strip_accents": _plain_letters,
    }
)
KNOWN_NAMES.update(
    (
        "prefix", "suffix", "lower", "upper", "trim", "ltrim", "rtrim", "substring", "substr", "left", "right",
        "length", "concat", "replace", "split_part", "starts_with", "ends_with", "contains", "strpos", "instr",
        "regexp_matches", "regexp_full_match", "regexp_extract", "regexp_replace", "reverse", "lpad", "rpad",
        "concat_ws", "repeat", "translate", "ascii", "unicode", "ord", "strip_accents",
    )
)  # fmt: skip
