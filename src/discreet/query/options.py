"""What an analyst or a policy may say about how a question is answered; everything has a default."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from discreet.arguments import count, one_of, real
from discreet.engines.names import closest
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.query.plan import Question

__all__ = ["Options"]


_MOST = 1 << 62
"""No unit has more groups, or rows in one."""


@dataclass(frozen=True)
class Options:
    """`max_groups`: groups kept of each unit, chosen at random. `max_rows`: rows' worth kept of each unit in each
    group.

    `bounds`: the public range of an aggregate's argument, by the argument's label in the question (or the only one).
    `bounding`: "clip" shrinks a unit's whole vector of contributions to a norm; "sample" keeps `max_groups` groups and
    `max_rows` rows' worth of each and needs both; "auto" takes "sample" if both are given.
    """

    max_groups: int | None = None
    max_rows: int | None = None
    bounds: tuple[tuple[str, tuple[float, float]], ...] = ()
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

    def bounds_for(self, *labels: str) -> tuple[float, float] | None:
        """The stated range of an argument that goes by any of these labels, if any."""
        named = dict(self.bounds)
        return next((named[label] for label in (*labels, "*") if label in named), None)

    def check(self, question: Question) -> None:
        """Refuses bounds for something that the question does not aggregate: they would be silently ignored."""
        aggregates = [aggregate for block in question.blocks for aggregate in block.aggregates]
        known = {name for aggregate in aggregates for name in (aggregate.label, aggregate.of) if name}
        for label, _ in self.bounds:
            if label != "*" and label not in known:
                raise InvalidArgument(
                    "bounds", label, f"the question aggregates no such thing. {closest(label, sorted(known))}"
                )


def _bounds(given: Any) -> tuple[tuple[str, tuple[float, float]], ...]:
    items = given.items() if hasattr(given, "items") else [("*", given)]
    checked = []
    for label, pair in items:
        ends: Any = () if isinstance(pair, str | bytes) else pair
        try:
            low, high = ends
        except (TypeError, ValueError):
            raise InvalidArgument("bounds", pair, "pass (low, high), or {'column': (low, high)}") from None
        if any(isinstance(end, str | dt.date) for end in (low, high)):
            raise InvalidArgument("bounds", pair, "pass two numbers; bounds of dates and times stand in the policy")
        low, high = real("bounds", low), real("bounds", high)
        if low >= high:
            raise InvalidArgument("bounds", pair, "the lower bound comes first and is smaller")
        checked.append((str(label), (low, high)))
    return tuple(checked)
