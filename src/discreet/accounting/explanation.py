"""One reading of a cost in words: what was read, by which accountant and why, how sure it is, and what it means."""

from __future__ import annotations

import math
import textwrap
import warnings
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from discreet.accounting.attacker import detection_at, least_detection, positive_predictive_value
from discreet.accounting.contest import contest
from discreet.accounting.digits import NARROW, bracket, percent, shown, up
from discreet.accounting.saddle import Unreachable
from discreet.errors import CertificateError, WideBracket

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost
    from discreet.accounting.reading import Reading

__all__ = ["Explanation", "explain", "neighbours_of"]

_NEIGHBOURS = {
    "add-remove": "one person more or fewer in the data",
    "replace-one": "one person's data exchanged for anybody else's, the number of people being public",
}
_ZEROED = (
    "one person's record used or left out of every step that has a place for it; the place stays empty, all others "
    "keep theirs, and the number of places, the steps and what sums are divided by are public. Other parts of the cost "
    "hold for this too; a list that closes up when a record leaves it is not covered"
)
_DIVIDED = "one person more or fewer in the data; the number that sums of gradients are divided by is public and stays"
_AGAINST = {"add-remove": "without it", "replace-one": "with anybody else's in its place"}
_DIRECTIONS = {
    ("forward", "add-remove"): "answers with the person's data against answers without it",
    ("backward", "add-remove"): "answers without the person's data against answers with it",
}
_WHY = {
    "exact": "A closed form, so there is nothing to approximate",
    "gaussian_dp": "Every part is Gaussian, so the whole is, and its profile is a closed form",
    "spline": "Few releases with losses in windows: the profile is composed piece by piece, exactly but for rounding",
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
_FALSE_ALARM = 0.01
_WIDTH = 100


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
    amplification: str = ""
    """Which bound of a part that has several was the best, and why; empty without such parts."""

    def __str__(self) -> str:
        paragraphs = [
            ("Cost", "; ".join(self.made_of)),
            ("Neighbours", f"{self.adjacency}: {self.neighbours}."),
            ("Reading", f"{self.question}: {up(self.upper)}, certified bracket {bracket(self.lower, self.upper)}."),
            *([("Amplified", self.amplification)] if self.amplification else []),
            ("Accountant", self.accountant),
            ("Certificate", self.certificate),
            ("Meaning", self.meaning),
            ("Not covered", "; ".join(self.not_covered) + "."),
        ]
        return "\n".join(_paragraph(title, text) for title, text in paragraphs)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def neighbours_of(cost: Cost) -> str:
    """Which data sets the cost compares, in words; a run with places leaves a record out of steps, not of the list."""
    runs = [leaf for leaf, _ in cost.parts if leaf.of_one_run] if cost.adjacency == "add-remove" else []
    if any(leaf.is_of_position() for leaf in runs):
        return _ZEROED
    return _DIVIDED if runs else _NEIGHBOURS[cost.adjacency]


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
        neighbours=neighbours_of(cost),
        accountant=accountant,
        certificate=_certificate(reading),
        meaning=_meaning(cost, *promised),
        not_covered=_NOT_COVERED,
        amplification=contest(cost, delta=delta, epsilon=epsilon),
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
    return f"The bracket has a relative width of {shown(reading.width, 2, up=True)}. {sure}"


def _meaning(cost: Cost, epsilon: float | None, delta: float | None) -> str:
    assert epsilon is not None
    assert delta is not None
    if epsilon == math.inf or delta >= 1:
        return "Nothing can be promised at this level: the answers may identify the person."
    against = _AGAINST[cost.adjacency]
    if epsilon == 0 and delta == 0:
        return f"The answers have the same law with this person's data as {against}: they reveal nothing about it."
    factor = f"e^{up(epsilon)}" + (f" = {shown(math.exp(epsilon) * (1 + 1e-15), 4, up=True)}" if epsilon < 20 else "")
    plus = f", plus {up(delta)}" if delta > 0 else ""
    return (
        f"Any conclusion drawn from the answers is at most {factor} times as likely with this person's data as "
        f"{against}{plus}; and the other way round. Someone at 50 : 50 about the person, with a test of 1 % false "
        f"alarms, becomes at most {percent(_belief(cost, epsilon, delta))} sure."
    )


def _belief(cost: Cost, epsilon: float, delta: float) -> float:
    """After a positive test, from even odds; the whole trade-off curve says more than one (epsilon, delta)."""
    detection = detection_at(epsilon, delta, _FALSE_ALARM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WideBracket)  # any valid bound will do
            detection = min(detection, least_detection(cost, _FALSE_ALARM))
    except (CertificateError, OverflowError, Unreachable):
        pass  # no certificate of the curve: what the reading itself says stands
    return positive_predictive_value(detection, prior=0.5, false_alarm=_FALSE_ALARM)


def _paragraph(title: str, text: str) -> str:
    filled = textwrap.fill(
        text, _WIDTH, initial_indent=f"{title + ':':<13}", subsequent_indent=" " * 13, break_on_hyphens=False
    )
    return filled.replace(NARROW, " ")
