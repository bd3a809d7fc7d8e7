"""What an analyst or a policy may say about how a question is answered; everything has a default."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from discreet.arguments import count, one_of, real
from discreet.engines.names import closest
from discreet.errors import InvalidArgument
from discreet.query.declared import bounds_of
from discreet.query.sql.text import Source
from discreet.query.sql.value import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.query.plan import Aggregate, Question

__all__ = ["Options"]


_TYPES = {"date": "DATE", "timestamp": "TIMESTAMP WITH TIME ZONE"}
"""Of arguments that are dates or times; those without a zone are in UTC, as the rows are read."""

_MOST = 1 << 62
"""No unit has more groups, or rows in one."""


@dataclass(frozen=True)
class Options:
    """`max_groups`: groups kept of each unit, chosen at random. `max_rows`: rows' worth kept of each unit in each
    group.

    `bounds`: the public range of an aggregate's argument, by the argument's label in the question (or the only one):
    numbers, or dates and times, as objects or as text.
    `bounding`: "clip" shrinks a unit's whole vector of contributions to a norm; "sample" keeps `max_groups` groups and
    `max_rows` rows' worth of each and needs both; "auto" takes "sample" if both are given.
    """

    max_groups: int | None = None
    max_rows: int | None = None
    bounds: tuple[tuple[str, tuple[Any, Any]], ...] = ()
    bounding: str = "auto"

    def __post_init__(self) -> None:
        for name in ("max_groups", "max_rows"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, min(count(name, value, least=1), _MOST))
        one_of("bounding", self.bounding, ("auto", "clip", "sample"))
        if self.bounding == "sample" and (self.max_groups is None or self.max_rows is None):
            raise InvalidArgument("bounding", self.bounding, "sampling needs max_groups= and max_rows=")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """From keyword arguments, those that are None left out; `bounds` may be a mapping or one pair for all."""
        known = {field.name for field in fields(cls)}
        for name in values:
            one_of("option", name, known)
        given = {name: value for name, value in values.items() if value is not None}
        if "bounds" in given:
            given["bounds"] = _bounds(given["bounds"])
        return cls(**given)

    def bounds_for(self, aggregate: Aggregate) -> tuple[float, float] | None:
        """The stated range of an aggregate's argument, as numbers, if any; dates say nothing about a count."""
        named = dict(self.bounds)
        stated = next((named[label] for label in (aggregate.label, aggregate.of, "*") if label in named), None)
        if stated is None or not isinstance(stated[0], dt.date):
            return stated
        if aggregate.function.startswith("count"):
            return None
        if aggregate.kind not in _TYPES:
            advice = (
                f"{aggregate.label} is about numbers: pass two numbers, or name what has dates: {{'column': (…, …)}}"
            )
            raise InvalidArgument("bounds", stated, advice)
        low, high = bounds_of(stated, _TYPES[aggregate.kind])
        return number_of(low), number_of(high)

    def check(self, question: Question) -> None:
        """Refuses bounds for something that the question does not aggregate: they would be silently ignored."""
        aggregates = [aggregate for block in question.blocks for aggregate in block.aggregates]
        known = {name for aggregate in aggregates for name in (aggregate.label, aggregate.of) if name}
        for label, _ in self.bounds:
            if label != "*" and label not in known:
                raise InvalidArgument(
                    "bounds", label, f"the question aggregates no such thing. {closest(label, sorted(known))}"
                )


def _bounds(given: Any) -> tuple[tuple[str, tuple[Any, Any]], ...]:
    items = given.items() if hasattr(given, "items") else [("*", given)]
    checked: list[tuple[str, tuple[Any, Any]]] = []
    for label, pair in items:
        ends: Any = () if isinstance(pair, str | bytes) else pair
        try:
            low, high = ends
        except (TypeError, ValueError):
            raise InvalidArgument("bounds", pair, "pass (low, high), or {'column': (low, high)}") from None
        if all(isinstance(end, str | dt.date) for end in (low, high)):
            checked.append((_spelled(str(label)), (_moment(low), _moment(high))))  # compared once their type is known
            continue
        if any(isinstance(end, str | dt.date) for end in (low, high)):
            raise InvalidArgument("bounds", pair, "pass two numbers, or two dates or times")
        low, high = real("bounds", low), real("bounds", high)
        if low >= high:
            raise InvalidArgument("bounds", pair, "the lower bound comes first and is smaller")
        checked.append((_spelled(str(label)), (low, high)))
    return tuple(checked)


def _spelled(label: str) -> str:
    """A call as messages and answers spell it; anything else as it is."""
    if "(" not in label:
        return label
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    try:
        return Source(label).written(parse_one(label, dialect="duckdb"))
    except (SqlglotError, RecursionError):
        return label


def _moment(end: str | dt.date) -> dt.date:
    """A date or a time, also as text."""
    if not isinstance(end, str):
        return end
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        with suppress(ValueError):
            return read(end)
    raise InvalidArgument("bounds", end, "pass numbers, or dates and times such as 2024-12-31 or 2024-12-31T18:00:00")
