"""A bound that nobody stated, found step by step from a sketch of the units' sizes; what is not spent makes noise less.

    number of units ──▶ sketch ──▶ curve, or end ──▶ count of large units ──▶ as it should be: that is the bound
                                        └─ none ──▶ a choice as usual ◀── not ──┴── more beyond: a choice among larger

Each step is pure DP with an epsilon of its own (see `allocation`, which proves what they cost together). Which step
follows depends on what the earlier ones have told, and on nothing else.

Where people are as many as 250 / e' (e' is the epsilon of the sketch, a thirtieth of the price) and their sizes are
smooth, the bound is right to a tenth. The counts are there because sizes need not go on beyond what is seen as they do
before. A curve is asked how many units are between the size that it says some forty exceed, at epsilon = 1, and the
bound, and how many are beyond; so many are to be there, give or take what noise and the curve may be off. A unit is in
one of the two ranges, so both counts cost what one costs. More mean that some are on no curve, as robots among people
are; none mean that sizes end before. Where more are beyond the bound, a larger one is chosen, for up to twice the usual
price: what a few dozen robots say must not drown in a preference for small bounds. Fewer than about 30 robots may be
missed at epsilon = 1, and 60 at 0.3, by the count or by a choice after it; and beside a curve intervals are narrower,
and hold less often then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.query.choices import CANDIDATES, FINE, bound_of, choose_bound, fine_number_of
from discreet.query.curve import Curve, shape_of
from discreet.query.losses import SURELY
from discreet.query.remembered import ALARM, Choice
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

_AT_END = 0.5
"""How many units may be counted beyond an end, times epsilon: there should be none, and this is enough."""

_LEANING, _LEANING_LEAST, _WEIGHTY = 2.0, 1.0, 4.0
"""The preference of a choice for small bounds where units are counted that are on no curve, and the least. It is weaker
where their number times epsilon is not so many times larger: they must weigh more than a bound that is large enough."""

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

    price, power = allocation.chosen, None
    if shape is not None:
        hoped = replace(plan, allocation=allocation.hoped)
        allowed = run.allowed(hoped, place)
        number = max(fine_number_of(smallest), min(fine_number_of(shape.bound(allowed)), fine_number_of(largest)))
        left, noise = left - allocation.checked, rows / allocation.checked
        seen = _counted(shape, number, allowed, counts, noise=noise)
        told = replace(told, beyond=seen.beyond)
        if seen.believed:
            run.left[measure] = left / _UP
            return replace(
                told,
                number=number,
                noise=hoped.noise_for(place),
                allowed=allowed,
                size=sketch.within(_SHARE_OF_UNITS, below=math.ceil(number)),
                **_cut_off(shape, bound_of(number), seen=counted * sketch.epsilon, beyond=allowed + noise),
            )
        if told.surprised:
            price += allocation.more_for(measure)
            power = min(_LEANING, max(_LEANING_LEAST, told.beyond * noise * price / rows / _WEIGHTY))
            smallest = min(max(smallest, bound_of(seen.far)), largest)
    left -= price
    run.left[measure] = left / _UP if left > 0 else left * _UP
    paid = replace(plan, allocation=allocation.spared(run.left))
    allowed = run.allowed(paid, place)
    chosen = choose_bound(
        buckets,
        units,
        epsilon=price / rows,
        allowed=allowed,
        smallest=smallest,
        largest=largest,
        sure=counted - SURELY * rows / allocation.counted,
        bounded=False,
        power=power,
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


@dataclass(frozen=True)
class _Counted:
    """Whether as many units are large as a shape says, and how many more are beyond `far`, over the counts' noise."""

    believed: bool
    beyond: float
    far: float


def _counted(
    shape: Curve | End, number: float, allowed: float, counts: Callable[[list[float]], list[float]], *, noise: float
) -> _Counted:
    """What counts of large units say about a shape.

    `counts` tells how many are between the bounds of numbers and above the last, with noise of this scale; `allowed`
    may exceed that of this number.
    """
    if not isinstance(shape, Curve):
        beyond = (counts([number])[0] - allowed) / noise
        return _Counted(beyond <= _AT_END, beyond, number)
    watched = min(_WATCHED * noise, shape.most)
    near, far = (fine_number_of(shape.bound(above)) for above in (watched, min(allowed, _FAR * watched)))
    outside = shape.above(bound_of(far))
    between = shape.above(bound_of(near)) - outside
    inner, outer = counts([near, far])
    beyond = (outer - outside) / noise
    return _Counted(abs(inner - between) <= ALARM * noise + _VAGUE * between and beyond <= ALARM, beyond, far)


def whole_buckets(fine: NDArray[Any]) -> NDArray[np.int64]:
    """The buckets of which these are parts."""
    return np.asarray(-(-fine.astype(np.int64) // FINE))
