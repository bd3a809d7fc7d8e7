"""Times as texts, and texts as times: a text that is none gives NULL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.calendar import moment_of
from discreet.query.sql.days import daily
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, NAMED, READ, Expressions
from discreet.query.sql.functions import arguments
from discreet.query.sql.text import string
from discreet.query.sql.types import TIMESTAMP, VARCHAR
from discreet.query.sql.value import Value, derived

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__: list[str] = []

LONGEST = 60
WRITTEN = re.compile("(?:[^%]|%[aAwdbBmyYHIpMSjUWGVu%]|%-[dmyHIMSj])*")
READABLE = re.compile("(?:[^%]|%[aAdbBmyYHIpMSf%]|%-[dmyHIMS])*")


def _formatted(at: Expressions, node: exp.TimeToStr) -> Value:
    value = moment_of(at, node.this)
    pattern = _pattern(at, node.args.get("format"), WRITTEN, ("%Y", "%m", "%d", "%H", "%M", "%S", "%a", "%b", "%j"))
    if not set(re.findall("%-?(.)", pattern)) & set("HIMSp"):
        value = daily(value)
    return derived(f"STRFTIME({value.sql}, {string(pattern)})", VARCHAR, (value,), weight=60 + len(pattern))


def _pattern(at: Expressions, node: exp.Expr | None, known: re.Pattern[str], named: Iterable[str]) -> str:
    """The format that was written out, if all of it is understood."""
    pattern: str = at.constant(node, str, "the format")
    if len(pattern) > LONGEST or not known.fullmatch(pattern):
        raise at.source.refusal(
            "this format of a date is not supported", advice=f"use {', '.join(named)} or %%", at=node
        )
    return pattern


def _of_text(at: Expressions, text: exp.Expr, pattern: exp.Expr | None) -> Value:
    value = at.text(text)
    written = _pattern(at, pattern, READABLE, ("%Y", "%m", "%d", "%H", "%M", "%S", "%f", "%b", "%p"))
    return derived(f"TRY_STRPTIME({value.sql}, {string(written)})", TIMESTAMP, (value,), zoned=False)


def _read(at: Expressions, node: exp.StrToTime) -> Value:
    return _of_text(at, node.this, node.args.get("format"))


def _tried(at: Expressions, node: exp.Anonymous) -> Value:
    text, pattern = arguments(at, node, 2)
    return _of_text(at, text, pattern)


HANDLERS.update({exp.TimeToStr: _formatted, exp.StrToTime: _read})
READ.update({exp.TimeToStr: {"this", "format"}, exp.StrToTime: {"this", "format"}})
NAMED["try_strptime"] = _tried
KNOWN_NAMES.update(("strftime", "strptime", "try_strptime"))
