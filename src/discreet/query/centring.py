r"""Where values without bounds are measured from, in averages and spreads: a middle that is chosen privately.

The noise of a sum is in proportion to what one unit may add to it. If values are 140 and thereabouts, and averages are
made of sum and number, most of that is the same for all of them and says nothing. With bounds, values are measured from
the middle of these. Without, a middle c is chosen first, at the price of a choice, and all sums are of x - c.

Of every unit one number counts, the mean of its values; where every row is a unit, the row. Candidates are 0 and
± 2^{k/16} from 1/16 on. One is chosen by an exponential mechanism with probability proportional to

    (16 |c|)^{-a} exp(-e |B(c) - A(c)| / 2),

where B and A are the units below and above. Adding a unit changes B - A by at most 1, so the choice is e-DP with a
bounded range e. The preference for small |c| is public: where units are too few to tell, the middle is near 0, which is
as if nothing had been chosen. No guarantee rests on where it is: bounds on what units add are enforced afterwards.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.mechanisms import ExponentialMechanism
from discreet.noise import exponential_choice
from discreet.query.allocation import of_row
from discreet.query.moments import Moment, moments_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.private import Private
    from discreet.query.run import Run

__all__ = ["choose_centres", "choose_middle", "with_centres"]

_STEPS = 16
"""Candidates per octave."""

_SMALLEST, _OCTAVES = 2.0**-4, 35
"""The smallest candidate beside 0, and the octaves from it on: the largest value that counts is 2^31."""

_LAST = _STEPS * _OCTAVES
_POWER = 1.2
_PARTS = 1 << 10
"""Scores are counted in parts of a unit, so that the preference is one, too."""


def choose_centres(run: Run) -> dict[str, float]:
    """A middle for every argument of the plan that has none."""
    plan = run.plan
    rows = (plan.block.rows_per_unit or 1) if plan.block.row_level else 1
    centres = {}
    for argument in plan.uncentred:
        integer = any(one.argument == argument and one.kind != "float" for one in plan.block.aggregates)
        total = Moment("sum", argument, integer=integer)
        number = _SMALLEST / total.quantum
        value = f"CAST({total.value()} AS DOUBLE)"
        if not plan.block.row_level:
            value = f"CAST(sum({total.value()}) AS DOUBLE) / count({total.value()})"
        mean = f"SELECT {value} AS m FROM {run.rows.source}{'' if plan.block.row_level else ' GROUP BY r.u'}"
        found = run.session.numbers(
            f"SELECT {_bucket(number)} AS b, count(*) AS n FROM ({mean}) WHERE m IS NOT NULL GROUP BY b"
        )
        epsilon = of_row(plan.allocation.choice, rows)
        middle = middle_of(choose_middle(found["b"], found["n"], epsilon=epsilon, generator=run.generator))
        centres[argument] = float(round(middle)) if integer else middle
        run.bounds[plan.middle_of(argument)] = centres[argument]
    return centres


def _bucket(smallest: float) -> str:
    """SQL of the number of the candidate next to m, in quanta: 0 if it is smaller than the smallest, else signed."""
    size = f"1 + floor(log2(abs(m) / {smallest!r}) * {_STEPS})"
    return f"CAST(CASE WHEN abs(m) < {smallest!r} THEN 0 ELSE least({size}, {_LAST}) * sign(m) END AS INTEGER)"


def middle_of(number: int) -> float:
    """The candidate of this number: in the middle of its bucket, by ratio."""
    return math.copysign(_SMALLEST * 2.0 ** ((abs(number) - 0.5) / _STEPS), number) if number else 0.0


def choose_middle(
    buckets: NDArray[Any], units: NDArray[Any], *, epsilon: float, generator: Generator | None = None
) -> int:
    """The number of the chosen candidate, from the number of units in every bucket."""
    scores, scale = scored(buckets, units, epsilon=epsilon)
    return int(exponential_choice(scores, scale=scale, generator=generator)) - _LAST


def scored(buckets: NDArray[Any], units: NDArray[Any], *, epsilon: float) -> tuple[NDArray[np.int64], Fraction]:
    """The scores of all candidates, and what they are multiplied by: chosen is in proportion to exp(scale * score)."""
    counts = np.zeros(2 * _LAST + 1, dtype=np.int64)
    np.add.at(counts, np.clip(buckets.astype(np.int64), -_LAST, _LAST) + _LAST, units.astype(np.int64))
    below = np.cumsum(counts) - counts
    above = counts.sum() - counts - below
    mechanism = ExponentialMechanism(epsilon, sensitivity=1)
    each = round(min(_POWER * math.log(2) / _STEPS / float(mechanism.factor) * _PARTS, 2.0**40))
    scores = _PARTS * np.abs(below - above) + each * np.abs(np.arange(-_LAST, _LAST + 1, dtype=np.int64))
    return -scores, mechanism.factor / _PARTS


def with_centres(plan: Private, centres: Mapping[str, float]) -> Private:
    """The plan with its sums measured from these."""
    if not any(centres.values()):
        return plan
    asked = plan.block.aggregates
    aggregates = tuple(
        replace(one, centre=centres.get(one.argument or "", 0.0))
        if one.bounds is None and moments_of(one, asked)
        else one
        for one in asked
    )
    moments = tuple(dict.fromkeys(moment for one in aggregates for moment in moments_of(one, aggregates)))
    moved = replace(plan, block=replace(plan.block, aggregates=aggregates), moments=moments)
    if _priced(moved) != _priced(plan):
        raise RuntimeError("a plan that was priced must not change")
    return moved


def _priced(plan: Private) -> list[tuple[Any, ...]]:
    """What a price was divided by: which sums there are, in which order, and which looks go with them."""
    return [
        (
            moment.kind,
            moment.argument,
            moment.bounds,
            plan.known_bound(moment),
            plan.tailed(moment),
            plan.spread(moment),
        )
        for moment in plan.moments
    ]
