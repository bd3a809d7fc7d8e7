"""A bound that nobody stated, found step by step from a sketch of the units' sizes; what is not spent makes noise less.

    number of units ──▶ sketch ──▶ curve, or end ──▶ count of large units ──▶ as it should be: that is the bound
                                        └─ none ──┐       └─ not: count again ──▶ not ──┐
                                                  └──────────▶ a choice as usual ◀──────┘

Each step is pure DP with an epsilon of its own (see `allocation`, which proves what they cost together). Which step
follows depends on what the earlier ones have told, and on nothing else.

Where people are as many as 250 / e' (e' is the epsilon of the sketch, a thirtieth of the price) and their sizes are
smooth, the bound is right to a tenth. The counts are there because sizes need not go on beyond what is seen as they do
before. A curve is asked where it expects some forty units to be above, at epsilon = 1, and so many are to be there,
give or take what noise and the curve may be off. More mean that some are on no curve, as robots among people are; none
mean that sizes end before. Fewer than about 45 robots may be missed at epsilon = 1, and 100 at 0.3. So they may be by a
choice; but beside a curve intervals are narrower, and hold less often then.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.query.choices import CANDIDATES, FINE, bound_of, choose_bound, fine_number_of
from discreet.query.curve import Curve, shape_of
from discreet.query.losses import SURELY
from discreet.query.remembered import Choice
from discreet.query.sketch import Sketch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.query.curve import End
    from discreet.query.run import Run

__all__ = ["sized", "whole_buckets"]

_WATCHED, _VAGUE = 4.0, 0.3
"""Units, times epsilon of a count, that a curve expects where it is asked; and which part of them it may be off."""

_ALARMS, _AT_END = (1.3, 1.3), 0.5
"""By how much a count may differ besides, times epsilon: by more, it is counted again, and then the curve is not
believed. Of smooth tables one of six is counted again, and one of ten is not believed. Beyond an end there should be
none, one count is all, and this is enough."""

_BEYOND_END = 0.75
"""What is taken to be lost beyond an end, in bounds, for each unit that a count would not have told from none."""

_SHARE_OF_UNITS = 0.9
_UP = 1 + 1e-12


def sized(run: Run, place: str, found: dict[str, NDArray[Any]], *, smallest: float, rows: int) -> Choice:
    """A new bound for a place of the plan, from the number n of units in each part f of a bucket.

    A unit counts in at most `rows` of them. No bound is below `smallest`. What is left of the pot is left to the run.
    """
    plan, allocation, units, largest = run.plan, run.plan.allocation, found["n"], run.plan.most_at(place)
    measure = int(place.partition(" ")[2])
    buckets = whole_buckets(found["f"])
    counted = run.counted_units(units[buckets > CANDIDATES[0]], allocation.counted / rows)
    run.counted = counted
    sketch = Sketch.drawn(buckets, units, epsilon=allocation.sketched / rows, largest=largest, generator=run.generator)
    left, shape = allocation.later, shape_of(sketch)
    told = Choice(
        CANDIDATES[0],
        allocation.chosen / rows,
        units=counted,
        size=CANDIDATES[0],
        looked=allocation.counted / rows,
    )

    def above(number: float, epsilon: float) -> float:
        return run.counted_units(units[found["f"] > number * FINE], epsilon / rows)

    if shape is not None:
        hoped = replace(plan, allocation=allocation.hoped)
        allowed = run.allowed(hoped, place)
        number = max(fine_number_of(smallest), min(fine_number_of(shape.bound(allowed)), fine_number_of(largest)))
        believed, spent = _believed(shape, number, allowed, above, allocation.checks, rows=rows)
        left -= spent
        if believed:
            run.left[measure] = left / _UP
            return replace(
                told,
                number=number,
                noise=hoped.noise_for(place),
                allowed=allowed,
                size=sketch.within(_SHARE_OF_UNITS, below=math.ceil(number)),
                **_cut_off(shape, bound_of(number), seen=counted * sketch.epsilon, beyond=allowed + rows / spent),
            )
    left -= allocation.chosen
    run.left[measure] = left / _UP
    paid = replace(plan, allocation=allocation.spared({measure: left / _UP}))
    allowed = run.allowed(paid, place)
    chosen = choose_bound(
        buckets,
        units,
        epsilon=allocation.chosen / rows,
        allowed=allowed,
        smallest=smallest,
        largest=largest,
        sure=counted - SURELY * rows / allocation.counted,
        bounded=False,
        generator=run.generator,
    )
    size = sketch.within(_SHARE_OF_UNITS, below=chosen)
    return replace(told, number=chosen, noise=paid.noise_for(place), allowed=allowed, size=size)


def _cut_off(shape: Curve | End, bound: float, *, seen: float, beyond: float) -> dict[str, float]:
    """What is known about that, for a `Choice`: by a curve, or because there may be so many units beyond an end."""
    if not isinstance(shape, Curve):
        return {"lost": _BEYOND_END * beyond}
    mean, variance = shape.lost(bound)
    told = {"lost": mean / bound, "unsure": math.sqrt(variance) / bound}
    return {**told, "seen": max(0.0, seen), "steep": shape.steepness(bound)}


def _believed(
    shape: Curve | End,
    number: float,
    allowed: float,
    above: Callable[[float, float], float],
    checks: tuple[float, ...],
    *,
    rows: int,
) -> tuple[bool, float]:
    """Whether as many units are large as a shape says, and what it cost to count them.

    `above` counts those above the bound of a number, with an epsilon; `allowed` may exceed the bound of this number.
    """
    if not isinstance(shape, Curve):
        epsilon = sum(checks)
        return above(number, epsilon) <= allowed + _AT_END * rows / epsilon, epsilon
    at = fine_number_of(shape.bound(min(_WATCHED * rows / checks[0], shape.most)))
    expected = shape.above(bound_of(at))
    weighed, weight, spent = 0.0, 0.0, 0.0
    for epsilon, alarm in zip(checks, _ALARMS, strict=True):
        weighed, weight, spent = weighed + epsilon**2 * above(at, epsilon), weight + epsilon**2, spent + epsilon
        if abs(weighed / weight - expected) <= alarm * rows / math.sqrt(weight) + _VAGUE * expected:
            return True, spent
    return False, spent


def whole_buckets(fine: NDArray[Any]) -> NDArray[np.int64]:
    """The buckets of which these are parts."""
    return np.asarray(-(-fine.astype(np.int64) // FINE))
