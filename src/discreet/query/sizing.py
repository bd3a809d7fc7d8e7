"""A bound that nobody stated, found step by step from a sketch of the units' sizes; what is not spent makes noise less.

    number of units ──▶ sketch ──▶ curve, or end ──▶ count above it ──▶ few: that is the bound
                                        └─ none ──┐       └─ many: count again ──▶ many ──┐
                                                  └───────────▶ a choice as usual ◀───────┘

Each step is pure DP with an epsilon of its own (see `allocation`, which proves what they cost together). Which step
follows depends on what the earlier ones have told, and on nothing else.

Where people are as many as 250 / e' (e' is the epsilon of the sketch, a thirtieth of the price) and their sizes are
smooth, the bound costs a tenth of the price and is right to a tenth. The counts are there because sizes need not go on
beyond what is seen as they do before: some hundred robots among a hundred thousand people are nothing that a curve
shows. Fewer than about 30 / e of them, where e is the price, may still be missed, as they may be by a choice.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.query.choices import CANDIDATES, FINE, choose_bound
from discreet.query.curve import End, shape_of
from discreet.query.losses import SURELY
from discreet.query.remembered import Choice
from discreet.query.sketch import Sketch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.run import Run

__all__ = ["sized", "whole_buckets"]

_ALARMS, _AT_END = (1.3, 1.7), 0.5
"""Units above a bound that was read off a curve, times epsilon, beyond those that are meant to be: with more they are
counted again, and with more then the curve is not believed. Noise alone does that in one of seven, and of fifteen.
Where sizes seem to end, one count is all, and less is enough: there should be none."""

_SHARE_OF_UNITS = 0.9
_UP = 1 + 1e-12


def sized(run: Run, place: str, found: dict[str, NDArray[Any]], *, smallest: float, rows: int) -> Choice:
    """A new bound for a place of the plan, from the number n of units in each part f of a bucket.

    A unit counts in at most `rows` of them. No bound is below `smallest`. What is left of the pot is added to that of
    the run.
    """
    plan, allocation, units = run.plan, run.plan.allocation, found["n"]
    buckets, largest = whole_buckets(found["f"]), plan.most_at(place)
    run.counted = run.counted_units(units[buckets > CANDIDATES[0]], allocation.counted / rows)
    facts = {"epsilon": allocation.sketched / rows, "largest": largest}
    sketch = Sketch.drawn(buckets, units, **facts, generator=run.generator)
    left, shape = allocation.later, shape_of(sketch)
    hoped = replace(plan, allocation=allocation.hoped)
    told = Choice(
        CANDIDATES[0],
        allocation.chosen / rows,
        hoped.noise_for(place),
        units=run.counted,
        size=CANDIDATES[0],
        looked=allocation.counted / rows,
        sketch=sketch,
    )
    if shape is not None:
        read = told.read_off(shape, run.allowed(hoped, place))
        above, weighed, weight = units[found["f"] > read.number * FINE], 0.0, 0.0
        counts = zip(allocation.checks, _ALARMS, strict=True)
        for epsilon, alarm in [(sum(allocation.checks), _AT_END)] if isinstance(shape, End) else counts:
            left -= epsilon
            weighed += epsilon**2 * run.counted_units(above, epsilon / rows)
            weight += epsilon**2
            if weighed / weight <= read.allowed + alarm * rows / math.sqrt(weight):
                run.left += left / _UP
                return replace(read, size=sketch.within(_SHARE_OF_UNITS, below=math.ceil(read.number)))
    left -= allocation.chosen
    run.left += left / _UP
    paid = replace(plan, allocation=allocation.spared(left / _UP))
    allowed = run.allowed(paid, place)
    number = choose_bound(
        buckets,
        units,
        epsilon=allocation.chosen / rows,
        allowed=allowed,
        smallest=smallest,
        largest=largest,
        sure=run.counted - SURELY * rows / allocation.counted,
        bounded=False,
        generator=run.generator,
    )
    size = sketch.within(_SHARE_OF_UNITS, below=number)
    return replace(told, number=number, noise=paid.noise_for(place), allowed=allowed, size=size)


def whole_buckets(fine: NDArray[Any]) -> NDArray[np.int64]:
    """The buckets of which these are parts."""
    return np.asarray(-(-fine.astype(np.int64) // FINE))
