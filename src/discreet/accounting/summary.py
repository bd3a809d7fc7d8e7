r"""A cost in words: one reading explained, or the same cost in every notion, with what an attacker can make of it.

**What the readouts say.** Let P and Q be the answers' laws on neighbouring data and delta(epsilon) the privacy profile.
An attacker decides from the answers whether the data were those of P. Every test with false-alarm probability f has

    detection <= min over epsilon >= 0 of e^epsilon f + delta(epsilon)                  [Wasserman and Zhou 2010],

so a prior belief p turns, at a positive test, into at most p d / (p d + (1 - p) f) with d that bound: the positive
predictive value. Without a delta the posterior after *any* answer is at most p e^epsilon / (1 - p + p e^epsilon). The
advantage, detection minus false alarm of the best test, is delta(0), and the best guess at even odds errs with
probability (1 - advantage) / 2. Every epsilon of the minimum is valid, so the search for it need not be exact.

Numbers are printed rounded away from the claim, upper ends up and lower ends down; one that is within a relative 1e-12
of a short number, such as 1.0000000000000002, is printed as the short one.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.accounting.saddle import Unreachable
from discreet.errors import CertificateError, WideBracket

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.accounting.cost import Cost
    from discreet.accounting.evaluate import Reading

__all__ = ["Explanation", "Row", "Summary", "explain", "html", "summarise"]

_NEIGHBOURS = {
    "add-remove": "one person more or fewer in the data",
    "replace-one": "one person's data exchanged for anybody else's, the number of people being public",
}
_AGAINST = {"add-remove": "without it", "replace-one": "with anybody else's in its place"}
_DIRECTIONS = {
    ("forward", "add-remove"): "answers with the person's data against answers without it",
    ("backward", "add-remove"): "answers without the person's data against answers with it",
}
_WHY = {
    "exact": "A closed form, so there is nothing to approximate",
    "gaussian_dp": "Every part is Gaussian, so the whole is, and its profile is a closed form",
    "contour": "The sharpest accountant that has a certificate for these losses",
    "grid": "Discretised loss distributions, as the contour integral has no certificate here",
    "renyi": "Some part is known only by Rényi divergences (or they were asked for)",
    "concentrated": "zCDP was asked for; other accountants are sharper",
    "classic": "Basic composition was asked for; other accountants are sharper",
    "advanced": "Advanced composition was asked for; other accountants are sharper",
}
_NOT_COVERED = (
    "a program that does something else than the cost says: other sampling, larger sensitivity, less noise",
    "costs chosen after seeing answers: guard those with a Filter",
    "what the answers say about everybody, this person included, and people who reveal each other",
    "running time, error messages, logs, and whoever holds the raw data",
)
T = TypeVar("T")

_PRIORS = (0.5, 0.1, 0.01)
_FALSE_ALARMS = (0.01, 0.001)
_ORDERS = (2.0, 8.0, 32.0)
_WIDTH = 100
_NARROW = "\u00a0"
_SAME = Decimal("1e-12")


@dataclass(frozen=True, repr=False)
class Explanation:
    """One reading of a cost in words; prints as text, and has its pieces as fields."""

    question: str
    lower: float
    upper: float
    width: float
    method: str
    reason: str
    direction: str
    made_of: tuple[str, ...]
    adjacency: str
    neighbours: str
    accountant: str
    certificate: str
    meaning: str
    not_covered: tuple[str, ...]

    def __str__(self) -> str:
        paragraphs = [
            ("Cost", "; ".join(self.made_of)),
            ("Neighbours", f"{self.adjacency}: {self.neighbours}."),
            ("Reading", f"{self.question}: {up(self.upper)}, certified bracket {bracket(self.lower, self.upper)}."),
            ("Accountant", self.accountant),
            ("Certificate", self.certificate),
            ("Meaning", self.meaning),
            ("Not covered", "; ".join(self.not_covered) + "."),
        ]
        return "\n".join(_paragraph(title, text) for title, text in paragraphs)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def explain(cost: Cost, reading: Reading, *, delta: float | None = None, epsilon: float | None = None) -> Explanation:
    """The reading in words: what was read, by which accountant and why, how sure it is, and what it means."""
    name, level = ("epsilon", f"delta = {delta:g}") if delta is not None else ("delta", f"epsilon = {epsilon:g}")
    shown = _WHY.get(reading.method, f"The accountant '{reading.method}'")
    accountant = f"{reading.method}. {shown}: {reading.reason}."
    if reading.direction:
        side = _DIRECTIONS.get((reading.direction, cost.adjacency), "one order of the two data sets")
        accountant += f" The worse direction is '{reading.direction}': {side}."
    promised = (reading.upper, delta) if delta is not None else (epsilon, reading.upper)
    return Explanation(
        question=f"{name} at {level}",
        lower=reading.lower,
        upper=reading.upper,
        width=reading.width,
        method=reading.method,
        reason=reading.reason,
        direction=reading.direction,
        made_of=_parts(cost),
        adjacency=cost.adjacency,
        neighbours=_NEIGHBOURS[cost.adjacency],
        accountant=accountant,
        certificate=_certificate(reading),
        meaning=_meaning(cost.adjacency, *promised),
        not_covered=_NOT_COVERED,
    )


def _parts(cost: Cost) -> tuple[str, ...]:
    if not cost.parts:
        return ("nothing was released",)
    return tuple(leaf.describe() if times == 1 else f"{times} times {leaf.describe()}" for leaf, times in cost.parts)


def _certificate(reading: Reading) -> str:
    sure = "Rounding, truncation and discretisation are included in both ends."
    if reading.lower == reading.upper:
        return f"Both ends agree. {sure}"
    if not reading.is_tight:
        return (
            "Every mechanism with these guarantees stays below the upper end, and one of them reaches the lower end: "
            f"what lies between is left open by the guarantee. {sure}"
        )
    return f"The bracket has a relative width of {_digits(reading.width, 2, up=True)}. {sure}"


def _meaning(adjacency: str, epsilon: float | None, delta: float | None) -> str:
    assert epsilon is not None
    assert delta is not None
    if epsilon == math.inf or delta >= 1:
        return "Nothing can be promised at this level: the answers may identify the person."
    against = _AGAINST[adjacency]
    if epsilon == 0 and delta == 0:
        return f"The answers have the same law with this person's data as {against}: they reveal nothing about it."
    factor = f"e^{up(epsilon)}" + (f" = {_digits(math.exp(epsilon) * (1 + 1e-15), 4, up=True)}" if epsilon < 20 else "")
    plus = f", plus {up(delta)}" if delta > 0 else ""
    belief = positive_predictive_value(_detection(epsilon, delta, 0.01), prior=0.5, false_alarm=0.01)
    return (
        f"Any conclusion drawn from the answers is at most {factor} times as likely with this person's data as "
        f"{against}{plus}; and the other way round. Someone at 50 : 50 about the person, with a test of 1 % false "
        f"alarms, becomes at most {percent(belief)} sure."
    )


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
        return percent(value, up=not self.is_floor) if self.is_percentage else _digits(value, 7, up=not self.is_floor)


@dataclass(frozen=True, repr=False)
class Summary:
    """The same cost in every notion; prints as an aligned table."""

    cost: Cost
    delta: float
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> Row:
        return {row.name: row for row in self.rows}[name]

    def __str__(self) -> str:
        head = ("notion", "value", "what it says")
        table = [head, *((row.name, row.shown(), row.meaning) for row in self.rows)]
        names, values = (max(len(line[column]) for line in table) for column in (0, 1))
        lines = [f"{name:<{names}}  {value:>{values}}  {meaning}".rstrip() for name, value, meaning in table]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([f"{self.cost!r}", f"{self.cost.adjacency}: {_NEIGHBOURS[self.cost.adjacency]}", "", *lines])

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
            f"{escape(_NEIGHBOURS[self.cost.adjacency])}</p>"
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
    seen = f"certified in {bracket(*ends)}".replace(_NARROW, " ") if ends is not None else "no certificate"
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
        rows += [Row(f"prior {percent(p)}", _posterior(p, pure), says, is_percentage=True) for p in _PRIORS]
    for false_alarm in _FALSE_ALARMS:
        detection = _tried(partial(_least_detection, cost, false_alarm))
        test = f"{percent(false_alarm)} false alarms"
        for prior in _PRIORS:
            belief = None
            if detection is not None:
                belief = positive_predictive_value(detection, prior=prior, false_alarm=false_alarm)
            says = f"belief after a positive test with {test}, at most"
            rows.append(Row(f"prior {percent(prior)}, {test}", belief, says, is_percentage=True))
    return rows


def _posterior(prior: float, epsilon: float) -> float:
    """p e^eps / (1 - p + p e^eps), rounded up."""
    return min(1.0, prior / (prior + (1 - prior) * math.exp(-epsilon)) * (1 + 1e-14))


def _detection(epsilon: float, delta: float, false_alarm: float) -> float:
    """e^eps f + delta, rounded up, at most 1."""
    log_scaled = epsilon + math.log(false_alarm)
    return min(1.0, (math.exp(log_scaled) + delta) * (1 + 1e-13)) if log_scaled < 0 else 1.0


def _least_detection(cost: Cost, false_alarm: float) -> float:
    """The smallest bound over a grid of epsilons, refined twice: the bound is convex in e^epsilon."""
    profile = cost.profile()
    grid = np.linspace(0.0, math.log(1 / false_alarm), 33)
    least = _detection(cost.pure_epsilon(), 0.0, false_alarm)
    for _ in range(3):
        bounds = [_detection(float(e), float(d), false_alarm) for e, d in zip(grid, profile(grid), strict=True)]
        index = int(np.argmin(bounds))
        least = min(least, bounds[index])
        grid = np.linspace(grid[max(index - 1, 0)], grid[min(index + 1, len(grid) - 1)], 17)
    return least


def positive_predictive_value(detection: float, *, prior: float, false_alarm: float) -> float:
    """The belief after a positive test, rounded up."""
    hit = prior * detection
    return min(1.0, hit / (hit + (1 - prior) * false_alarm) * (1 + 1e-14)) if hit > 0 else 0.0


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


def up(value: float) -> str:
    """Seven digits, rounded up."""
    return _digits(value, 7, up=True)


def bracket(lower: float, upper: float) -> str:
    """Both ends with eleven digits, rounded outwards; the space does not break a line."""
    return f"[{_digits(lower, 11, up=False)},{_NARROW}{_digits(upper, 11, up=True)}]"


def percent(value: float, *, up: bool = True) -> str:
    """A probability in percent, four digits, rounded up or down but never beyond 100 %."""
    hundredfold = Decimal(repr(value)) * 100
    return f"{_rounded(hundredfold, 4, up=up) if value < 1 else '100'} %"


def _digits(value: float, digits: int, *, up: bool) -> str:
    return "infinite" if value == math.inf else _rounded(Decimal(repr(float(value))), digits, up=up)


def _rounded(value: Decimal, digits: int, *, up: bool) -> str:
    """The shortest text of a number rounded to some digits: plain between 1e-4 and 1e9, scientific beyond."""
    if value == 0:
        return "0"
    unit = Decimal(1).scaleb(value.adjusted() - digits + 1)
    rounded = value.quantize(unit, rounding=ROUND_HALF_EVEN)
    if abs(rounded - value) > _SAME * abs(value):
        rounded = value.quantize(unit, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    rounded = rounded.normalize()
    if -4 <= rounded.adjusted() < 9:
        return f"{rounded:f}"
    mantissa = rounded.scaleb(-rounded.adjusted())
    return f"{mantissa:f}e{rounded.adjusted():+03d}"


def _json(value: float | None) -> float | None:
    return None if value is None or value == math.inf else value


def _paragraph(title: str, text: str) -> str:
    filled = textwrap.fill(
        text, _WIDTH, initial_indent=f"{title + ':':<13}", subsequent_indent=" " * 13, break_on_hyphens=False
    )
    return filled.replace(_NARROW, " ")
