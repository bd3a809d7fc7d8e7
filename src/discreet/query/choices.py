r"""Private choices of how much of a unit's contribution is kept.

Let x_u be the size of unit u's contribution (the norm of all its numbers) and N(C) the number of units with x_u > C.
Keeping at most C of everyone adds noise in proportion to C and loses what is above it. For a noise of scale s C the sum
of the two is smallest where about n* = s units are above: an answer of one number. With G groups, each with its own
noise, about n* = s G / r, where r says how many groups' worth a large unit loses at once: the sum of its numbers over
their norm, which is 1 if it has one group and the root of k if it has equal numbers in k groups. What is lost has one
sign and the noise both, so that somewhat more units may be above: 1.6 times as many gave the least median error over
tables of few and many people and groups, with light and heavy tails.

r differs from table to table: who has ten rows is in ten days of a year at most, and who has a thousand is in all of
them. Where groups are public and a unit may be in many, a look at the units' r is bought (`losses`), the r that a tenth
of them exceeds; those above the bound have more. Else r is the root of 40 groups. And however many groups there are, n*
is no more than half of the units, or less where the price is too small to tell half of them from all: a bound that
everybody exceeds says nothing about anybody, and its answers are near 0 whatever the truth.

C is chosen among powers of 2^{1/4} by an exponential mechanism with probability proportional to

    C^{-a} exp(-e max(0, N(C) - n*)),

which takes the smallest C that few enough units exceed. Adding a unit raises N(C) by at most 1 and never lowers it, so
the score is monotone with sensitivity 1, and the choice is e-DP with a bounded range e. Where pure epsilons are added
up anyway, permute-and-flip chooses by the same scores: e-DP without a bounded range, and closer to the best. C^{-a} is
a public preference for small C, without which the many C above all units would win by their number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.mechanisms import ExponentialMechanism, PermuteAndFlip
from discreet.noise import exponential_choice, permute_and_flip

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = [
    "CANDIDATES",
    "FINE",
    "OFTEN",
    "STEPS",
    "STRONGEST",
    "bound_of",
    "bucket",
    "choose_bound",
    "choose_share",
    "fine_bucket",
    "fine_number_of",
    "lean",
    "most_above",
    "number_of",
    "preference",
    "spread_above",
    "tolerated",
    "units_above",
]

STEPS = 4
"""Candidates per octave."""

FINE = 4
"""Parts of the step between two candidates: bounds that are not chosen among the candidates are multiples of it."""

OFTEN = 1.6
"""Units that may exceed a bound for each unit of noise, in one group."""

_TOGETHER = 40
"""A large unit is taken to lose the root of so many groups' worth at once, or of all if there are fewer."""

_WIDER = 2.5
"""A unit above the bound is taken to be in so many times more groups than those that a tenth of the units exceeds."""

_MOST_ABOVE, _LEAST_ABOVE = 0.5, 0.25
"""Of the units, no more than so many are meant to exceed a bound; the smaller share is for small tables."""

_TELLING = 25.0
"""Units beyond those meant to exceed a bound, times epsilon: with fewer, the preference would choose a bound near 0."""

_WEAKEST = 1.2
"""The least power of the preference for small bounds."""

STRONGEST = 4.0
"""The largest one, where few units may be above them."""

_PARTS = 1 << 10
"""Scores are counted in parts of a unit, so that they are whole numbers."""

_OCTAVES = 8
"""What a tenth of the units exceeds is looked for in so many octaves below what few exceed."""

_FEWEST, _MOST = -1, 112  # exponents of the candidates, in octaves
CANDIDATES = range(_FEWEST * STEPS, _MOST * STEPS + 1)
"""The numbers of the candidates."""


def units_above(groups: float, *, single: bool, looked: float | None = None) -> float:
    """n* / s: how many units may exceed a bound, for each unit of noise; `single` says that a unit has one group."""
    if groups == 0:
        return 0.0
    return OFTEN * groups / spread_above(groups, single=single, looked=looked)


def spread_above(groups: float, *, single: bool, looked: float | None = None) -> float:
    """r: the sum of a large unit's numbers, over their norm. `looked` is the r that a tenth of the units exceeds."""
    if single:
        return 1.0
    if looked is None:
        return math.sqrt(min(groups, _TOGETHER))
    return min(max(1.0, looked * math.sqrt(_WIDER)), math.sqrt(max(1.0, groups)))


def lean(units: float, *, epsilon: float) -> float:
    """The power of a preference for small candidates that is weak beside the scores of about so many units."""
    return min(10.0, max(_WEAKEST, units * epsilon / 20))


def most_above(units: float, *, epsilon: float) -> float:
    """How many of about so many units may be meant to exceed a bound that is chosen with this epsilon."""
    units = max(units, 1.0)
    return max(1.0, units * min(_MOST_ABOVE, max(_LEAST_ABOVE, 1 - _TELLING / epsilon / units)))


def tolerated(allowed: float) -> int:
    """n* as a whole number. Where it is below 1, one unit loses more than its noise would be: then none is meant."""
    return round(allowed) if allowed >= 1 else 0


def preference(
    epsilon: float, allowed: float, *, units: float = math.inf, reach: float = 1e4, strongest: float = STRONGEST
) -> float:
    """a: strong where the choice is well paid or many units may be above; weak where little is paid.

    The candidates below the units are avoided by their scores, which amount to epsilon times the number of units that
    are more than allowed. A preference that is strong beside that would choose a bound near 0, for small tables, or
    where half of the units may be above. So where there are no fewer than `units`, as far as is known, it is no more
    than they can bear: C^-a stays weaker than their scores for sizes up to `reach` times the smallest candidate.
    `strongest` is the largest power where few may be above.
    """
    paid = min(strongest, max(_WEAKEST, _WEAKEST + 12 * (epsilon - 0.05)))
    many = 10 * min(1.0, max(0.0, (epsilon * allowed - 1) / 6))
    bearable = epsilon * max(0.0, units - allowed) / math.log(reach)
    return min(max(paid, many), max(_WEAKEST, bearable))


def bucket(size: str) -> str:
    """SQL of the number of the smallest candidate that is at least this size; 0 and less give the first."""
    x = f"CAST({size} AS DOUBLE)"
    return f"CAST(CASE WHEN {x} > 0.5 THEN ceil(log2({x}) * {STEPS}) ELSE {_FEWEST * STEPS} END AS INTEGER)"


def fine_bucket(size: str) -> str:
    """SQL of the same in parts of a step: rounded up to whole steps it is the bucket."""
    x = f"CAST({size} AS DOUBLE)"
    return (
        f"CAST(CASE WHEN {x} > 0.5 THEN ceil(log2({x}) * {STEPS * FINE}) ELSE {_FEWEST * STEPS * FINE} END AS INTEGER)"
    )


def bound_of(number: float) -> float:
    """The candidate of this number; those in between are bounds, too."""
    return float(2.0 ** (number / STEPS))


def fine_number_of(size: float) -> float:
    """The number of the smallest bound that is at least this size, up to rounding, in whole parts of a step."""
    least, most = (number * FINE for number in (_FEWEST * STEPS, _MOST * STEPS))
    return min(max(math.ceil(math.log2(max(size, 0.5)) * STEPS * FINE - 1e-6), least), most) / FINE


def number_of(size: float) -> int:
    """The number of the smallest candidate that is at least this size, up to rounding."""
    return min(max(math.ceil(math.log2(max(size, 0.5)) * STEPS - 1e-9), _FEWEST * STEPS), _MOST * STEPS)


def _above(buckets: NDArray[Any], units: NDArray[Any]) -> NDArray[np.int64]:
    """N(C) for every candidate: how many units have a larger bucket."""
    total = np.zeros(_MOST * STEPS - _FEWEST * STEPS + 1, dtype=np.int64)
    places = np.clip(buckets.astype(np.int64) - _FEWEST * STEPS, 0, total.size - 1)
    np.add.at(total, places, units.astype(np.int64))
    above: NDArray[np.int64] = total.sum() - np.cumsum(total)
    return above


def choose_bound(
    buckets: NDArray[Any],
    units: NDArray[Any],
    *,
    epsilon: float,
    allowed: float,
    smallest: float = 0.0,
    largest: float = math.inf,
    sure: float = math.inf,
    reach: float = 1e4,
    bounded: bool = True,
    most: float = math.inf,
    strongest: float = STRONGEST,
    generator: Generator | None = None,
) -> int:
    """The number of the chosen candidate, from the number of units in every bucket; none below `smallest`.

    No unit is above `largest` by what is public, so that no candidate beyond the first that is not below it is of use.
    `sure` is how many units there are at least, as far as is known, and `reach` how many times the smallest candidate
    their sizes may well be. `bounded` asks for a bounded range: an exponential
    mechanism. `most` is the largest power of the preference for small candidates, and `strongest` that where few units
    may be above them.
    """
    mechanism = (ExponentialMechanism if bounded else PermuteAndFlip)(epsilon, sensitivity=1, monotone=True)
    above = _above(buckets, units)
    least = tolerated(allowed)
    first = 0 if smallest <= bound_of(_FEWEST * STEPS) else math.floor(math.log2(smallest) * STEPS) - _FEWEST * STEPS
    first = min(first, len(above) - 1)
    if largest < bound_of(_MOST * STEPS):
        last = max(math.ceil(math.log2(max(largest, 0.5)) * STEPS) - _FEWEST * STEPS, first)
        above = above[: last + 1]
    power = min(most, preference(epsilon, allowed, units=sure, reach=reach, strongest=strongest))
    scores = _PARTS * np.maximum(0, above[first:] - least) + _preferences(power, mechanism.factor, first, above)
    choose = exponential_choice if bounded else permute_and_flip
    chosen = int(choose(-scores, scale=mechanism.factor / _PARTS, generator=generator))
    return _FEWEST * STEPS + first + chosen


def choose_share(
    buckets: NDArray[Any],
    units: NDArray[Any],
    *,
    epsilon: float,
    share: float,
    further: tuple[int, float] | None = None,
    below: int | None = None,
    power: float = 0.0,
    generator: Generator | None = None,
) -> int:
    """The candidate that about this share of the units does not exceed.

    Where there are more units than the first number in `further`, it is the second one's share of those that are more.
    The score is -|(units meant to be above) - (units above)|. Of one unit more a part is meant to be above, and it is
    above or not, so that it changes the score by at most 1. The same public preference for small candidates as
    above keeps the many that no unit reaches from winning together. It is not needed where the number `below` of a
    candidate is known that few units exceed: then the choice is among those of the eight octaves up to it. A preference
    that goes through all octaves is stronger than the scores of a small table whose sizes are large numbers. A `power`
    is a preference of C^-power among them: if all units have one size, nothing else tells it from those above.
    """
    above, every = _above(buckets, units), int(units.sum())
    first_many, rest = (every, share) if further is None else further
    meant = round((1 - share) * _PARTS) * min(every, first_many)
    meant += round((1 - rest) * _PARTS) * max(every - first_many, 0)
    mechanism = ExponentialMechanism(epsilon, sensitivity=1)
    scores = np.abs(meant - _PARTS * above)
    first = 0
    if below is None:
        scores += _preferences(preference(epsilon, 0.0), mechanism.factor, 0, above)
    else:
        scores += _preferences(power, mechanism.factor, 0, above)
        last = below - _FEWEST * STEPS
        first = max(0, last - _OCTAVES * STEPS)
        scores = scores[first : last + 1]
    chosen = int(exponential_choice(-scores, scale=mechanism.factor / _PARTS, generator=generator))
    return _FEWEST * STEPS + first + chosen


def _preferences(power: float, factor: Fraction, first: int, above: NDArray[np.int64]) -> NDArray[np.int64]:
    """The public preference for small candidates, in parts of a score; rounding it has nothing to do with the data."""
    each = power * math.log(2) / STEPS / float(factor) * _PARTS
    return np.arange(above.size - first, dtype=np.int64) * round(min(each, 2.0**50))
