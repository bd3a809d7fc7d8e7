"""Time zones: the clock of a place, for hours and days as people there know them.

Columns with a zone are read in UTC. `x AT TIME ZONE 'Europe/Berlin'` is the time on the clocks there. Of a column
without a zone it is the other way round, as in SQL everywhere: it was such a time, and becomes one in UTC.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sqlglot import exp

from discreet.engines.sandbox import sandbox
from discreet.errors import EngineError
from discreet.query.sql.calendar import moment_of, tamed
from discreet.query.sql.expressions import HANDLERS, KNOWN_NAMES, NAMED, READ, Expressions
from discreet.query.sql.functions import arguments
from discreet.query.sql.text import closest, string
from discreet.query.sql.types import TIMESTAMP
from discreet.query.sql.value import Value, derived

__all__: list[str] = []

_FARTHEST = 16 * 3600 * 10**6
"""No clock is farther from UTC than this many microseconds, nor was one before there were zones."""


@cache
def _names() -> dict[str, str]:
    """The zones that the engine knows, by lower-case name."""
    try:
        return {str(name).lower(): str(name) for (name,) in sandbox().rows("SELECT name FROM pg_timezone_names()")}
    except EngineError:
        return {}


def _zone(at: Expressions, node: exp.Expr | None) -> str:
    """The name of a zone that was written out, as an SQL literal."""
    written: str = at.constant(node, str, "the time zone")
    known = _names()
    if written.lower() not in known:
        advice = closest(written, [name for name in known.values() if "/" in name])
        if not advice.startswith("did you mean"):
            advice = "write a place, as in 'Europe/Berlin', or hours from UTC: 'Etc/GMT-2' is two hours ahead of it"
        raise at.source.refusal(f"there is no time zone '{written[:40]}'", advice=advice, at=node)
    return string(known[written.lower()])


def _at_zone(at: Expressions, moment: exp.Expr, zone: exp.Expr | None) -> Value:
    name, value = _zone(at, zone), moment_of(at, moment)
    if value.zoned is None:
        raise at.source.refusal(
            f"whether '{at.source.written(moment)}' is a time in UTC is not known here",
            advice="change the zone of the column itself first: date_trunc('day', moment AT TIME ZONE 'Europe/Berlin')",
            at=moment,
        )
    first, then = ("'UTC'", name) if value.zoned else (name, "'UTC'")
    low, high = value.bounds if value.kind == "timestamp" else (-float("inf"), float("inf"))
    sql = f"timezone({then}, timezone({first}, {value.timestamp}))"
    there = tamed(derived(sql, TIMESTAMP, (value,), bounds=(low - _FARTHEST, high + _FARTHEST)))
    return replace(there, zoned=not value.zoned)


def _written(at: Expressions, node: exp.AtTimeZone) -> Value:
    return _at_zone(at, node.this, node.args.get("zone"))


def _called(at: Expressions, node: exp.Anonymous) -> Value:
    zone, moment = arguments(at, node, 2)
    return _at_zone(at, moment, zone)


HANDLERS[exp.AtTimeZone] = _written
READ[exp.AtTimeZone] = {"this", "zone"}
NAMED["timezone"] = _called
KNOWN_NAMES.add("timezone")
