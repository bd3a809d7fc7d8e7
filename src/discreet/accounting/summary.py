"""The same cost in every notion: pure, (epsilon, delta), zCDP, GDP, Rényi, and what an attacker can make of it.

What the attackers' rows say is derived in `discreet.accounting.attacker`; how numbers are rounded, in
`discreet.accounting.digits`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.accounting.attacker import least_detection, positive_predictive_value, posterior
from discreet.accounting.digits import NARROW, bracket, percent, shown, up
from discreet.accounting.explanation import neighbours_of
from discreet.accounting.saddle import Unreachable
from discreet.arguments import one_of
from discreet.errors import CertificateError, WideBracket

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.accounting.cost import Cost

__all__ = ["Row", "Summary", "html", "summarise"]

T = TypeVar("T")

_PRIORS = (0.5, 0.1, 0.01)
_FALSE_ALARMS = (0.01, 0.001)
_ORDERS = (2.0, 8.0, 32.0)


@dataclass(frozen=True)
class Row:
    """One notion: its certified upper end, its lower end if it has one, and what it says.

    `is_floor` marks a quantity of which more is better: there the lower end is the promise. `upper` is None where no
    number could be certified.
    """

    name: str
    upper: float | None
    meaning: str
    lower: float | None = None
    is_percentage: bool = False
    is_floor: bool = False

    def shown(self) -> str:
        """The promised end, rounded away from the promise."""
        value = self.lower if self.is_floor else self.upper
        if value is None:
            return "not certified"
        return percent(value, up=not self.is_floor) if self.is_percentage else shown(value, 7, up=not self.is_floor)


@dataclass(frozen=True, repr=False)
class Summary:
    """The same cost in every notion; prints as an aligned table."""

    cost: Cost
    delta: float
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> Row:
        rows = {row.name: row for row in self.rows}
        return rows[one_of("name", name, rows)]

    def __str__(self) -> str:
        head = ("notion", "value", "what it says")
        table = [head, *((row.name, row.shown(), row.meaning) for row in self.rows)]
        names, values = (max(len(line[column]) for line in table) for column in (0, 1))
        lines = [f"{name:<{names}}  {value:>{values}}  {meaning}".rstrip() for name, value, meaning in table]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([f"{self.cost!r}", f"{self.cost.adjacency}: {neighbours_of(self.cost)}", "", *lines])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON values; None where a number is infinite or not certified."""
        return {
            "cost": repr(self.cost),
            "adjacency": self.cost.adjacency,
            "delta": self.delta,
            "rows": [
                {"name": row.name, "lower": _json(row.lower), "upper": _json(row.upper), "meaning": row.meaning}
                for row in self.rows
            ],
        }

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{escape(row.name)}</td><td style='text-align:right'>{escape(row.shown())}</td>"
            f"<td style='text-align:left'>{escape(row.meaning)}</td></tr>"
            for row in self.rows
        )
        return (
            f"<p><code>{escape(repr(self.cost))}</code><br>{escape(self.cost.adjacency)}: "
            f"{escape(neighbours_of(self.cost))}</p>"
            f"<table><thead><tr><th>notion</th><th>value</th><th>what it says</th></tr></thead>"
            f"<tbody>{cells}</tbody></table>"
        )


def summarise(cost: Cost, delta: float) -> Summary:
    """The cost in every notion, and what attackers with several priors can make of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBracket)  # the brackets are part of the table
        rows = [*_notions(cost, delta), *_attackers(cost)]
    return Summary(cost, delta, tuple(rows))


def _notions(cost: Cost, delta: float) -> list[Row]:
    pure = cost.pure_epsilon()
    rows = [Row("pure epsilon", pure, "no loss exceeds it" if pure < math.inf else "losses are unbounded")]
    ends = _tried(lambda: cost.bounds(delta=delta))
    lower, upper = ends if ends is not None else (None, None)
    seen = f"certified in {bracket(*ends)}".replace(NARROW, " ") if ends is not None else "no certificate"
    rows.append(Row(f"epsilon at delta {delta:g}", upper, seen, lower=lower))
    rows.append(Row("zCDP rho", cost.zcdp(), "Rényi divergences grow at most by rho per order"))
    rows.append(Row("GDP mu", cost.gdp(), "at least as hard as telling N(0, 1) from N(mu, 1)"))
    for order in _ORDERS:
        value = _tried(partial(cost.rdp, order))
        known = min(math.inf if value is None else value, order * cost.zcdp() * (1 + 1e-15))
        rows.append(Row(f"Rényi divergence {order:g}", known, f"of order {order:g}"))
    return rows


def _attackers(cost: Cost) -> list[Row]:
    ends = _tried(lambda: cost.bounds(epsilon=0.0))
    lower, upper = ends if ends is not None else (None, None)
    rows = [Row("advantage", upper, "best attacker: detection rate minus false-alarm rate", lower=lower)]
    errors = [None if end is None else (1 - end) / 2 for end in (upper, lower)]
    guess = "an attacker at 50 : 50 errs at least this often"
    rows.append(Row("Bayes error", errors[1], guess, lower=errors[0], is_percentage=True, is_floor=True))
    pure = cost.pure_epsilon()
    if pure < math.inf:
        says = "belief after any answer, at most"
        rows += [Row(f"prior {percent(p)}", posterior(p, pure), says, is_percentage=True) for p in _PRIORS]
    for false_alarm in _FALSE_ALARMS:
        detection = _tried(partial(least_detection, cost, false_alarm))
        test = f"{percent(false_alarm)} false alarms"
        for prior in _PRIORS:
            belief = None
            if detection is not None:
                belief = positive_predictive_value(detection, prior=prior, false_alarm=false_alarm)
            says = f"belief after a positive test with {test}, at most"
            rows.append(Row(f"prior {percent(prior)}, {test}", belief, says, is_percentage=True))
    return rows


def html(cost: Cost) -> str:
    """A cost for notebooks: its parts, its adjacency, and epsilon at delta = 1e-6 if that can be certified."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBracket)
        ends = _tried(lambda: cost.bounds(delta=1e-6))
    rows = "".join(
        f"<tr><td style='text-align:right'>{times}</td>"
        f"<td style='text-align:left'><code>{escape(leaf.describe())}</code></td></tr>"
        for leaf, times in cost.parts
    )
    reading = "not certified" if ends is None else f"{up(ends[1])}, certified in {bracket(*ends)}"
    return (
        f"<table><thead><tr><th>times</th><th style='text-align:left'>Cost, {escape(cost.adjacency)}</th></tr></thead>"
        f"<tbody>{rows or '<tr><td>0</td><td>nothing was released</td></tr>'}</tbody></table>"
        f"<p>epsilon at delta 1e-06: {escape(reading)}</p>"
    )


def _tried(read: Callable[[], T]) -> T | None:
    """What was read, or None where no certificate exists."""
    try:
        return read()
    except (CertificateError, OverflowError, Unreachable):
        return None


def _json(value: float | None) -> float | None:
    return None if value is None or value == math.inf else value
