"""A bound that nobody stated, found step by step from a sketch of the units' sizes; what is not spent makes noise less.

    number of units ──▶ sketch ──▶ curve, or end ──▶ count of large units ──▶ as it should be: that is the bound
                                        └─ none ──▶ a choice as usual ◀── not ──┘

Each step is pure DP with an epsilon of its own (see `allocation`, which proves what they cost together). Which step
follows depends on what the earlier ones have told, and on nothing else.

Where people are as many as 250 / e' (e' is the epsilon of the sketch, a thirtieth of the price) and their sizes are
smooth, the bound is right to a tenth. The counts are there because sizes need not go on beyond what is seen as they do
before. A curve is asked how many units are between the size that it says some forty exceed, at epsilon = 1, and the
bound, and how many are beyond; so many are to be there, give or take what noise and the curve may be off. A unit is in
one of the two ranges, so both counts cost what one costs. More mean that some are on no curve, as robots among people
are; none mean that sizes end before. Fewer than about 50 robots may be missed at epsilon = 1, and 100 at 0.3, by the
count or by a choice after it; and beside a curve intervals are narrower, and hold less often then.
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

_WATCHED, _FAR, _VAGUE = 4.0, 0.1, 0.3
"""Units, times epsilon of a count, that a curve expects where it is asked; of which part it expects at most so many
where it is asked a second time; and by which part of them it may be off."""

_ALARM, _AT_END = 1.4, 0.5
"""By how much counts may differ besides, times epsilon: by more, and the curve is not believed, which is so of one in
five smooth tables. Beyond an end there should be none, and this is enough."""

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

    def counts(ends: list[float]) -> list[float]:
        kind = np.searchsorted(np.array(ends) * FINE, found["f"], side="left")  # how many ends a size is above
        return run.counted_apart([units[kind == k] for k in range(1, len(ends) + 1)], allocation.checked / rows)

    if shape is not None:
        hoped = replace(plan, allocation=allocation.hoped)
        allowed = run.allowed(hoped, place)
        number = max(fine_number_of(smallest), min(fine_number_of(shape.bound(allowed)), fine_number_of(largest)))
        left, noise = left - allocation.checked, rows / allocation.checked
        if _believed(shape, number, allowed, counts, noise=noise):
            run.left[measure] = left / _UP
            return replace(
                told,
                number=number,
                noise=hoped.noise_for(place),
                allowed=allowed,
                size=sketch.within(_SHARE_OF_UNITS, below=math.ceil(number)),
                **_cut_off(shape, bound_of(number), seen=counted * sketch.epsilon, beyond=allowed + noise),
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
    shape: Curve | End, number: float, allowed: float, counts: Callable[[list[float]], list[float]], *, noise: float
) -> bool:
    """Whether as many units are large as a shape says.

    `counts` tells how many are between the bounds of numbers and above the last, with noise of this scale; `allowed`
    may exceed that of this number.
    """
    if not isinstance(shape, Curve):
        [beyond] = counts([number])
        return beyond <= allowed + _AT_END * noise
    watched = min(_WATCHED * noise, shape.most)
    near, far = (fine_number_of(shape.bound(above)) for above in (watched, min(allowed, _FAR * watched)))
    outside = shape.above(bound_of(far))
    between = shape.above(bound_of(near)) - outside
    inner, outer = counts([near, far])
    return abs(inner - between) <= _ALARM * noise + _VAGUE * between and outer <= outside + _ALARM * noise


def whole_buckets(fine: NDArray[Any]) -> NDArray[np.int64]:
    """The buckets of which these are parts."""
    return np.asarray(-(-fine.astype(np.int64) // FINE))
