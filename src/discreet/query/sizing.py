"""A bound that nobody stated, found step by step from a sketch of the units' sizes; what is not spent makes noise less.

    number of units ─▶ sketch ─▶ curve, or end ─▶ count of large units ─▶ as it should be: that is the bound
                          │                          ├─ a little off: a second count, and judged together
                          └─ neither ─▶ a choice ◀───┴─ off; where more are beyond: a choice among larger ones

Each step is pure DP with an epsilon of its own (see `allocation`, which proves what they cost together). Which step
follows depends on what the earlier ones have told, and on nothing else.

Where people are as many as 250 / e' (e' is the epsilon of the sketch, a thirtieth of the price) and their sizes are
smooth, the bound is right to a tenth. The counts are there because sizes need not go on beyond what is seen as they do
before. A curve is asked how many units are between the size that it says some forty exceed, at epsilon = 1, and the
bound, and how many are beyond; so many are to be there, give or take what noise and the curve may be off. A unit is in
one of the two ranges, so both counts cost what one costs. More mean that some are on no curve, as robots among people
are; none mean that sizes end before. Of a smooth table one count in five is a little off by the luck of its noise. A
second one costs less than a choice for nothing, and both together are off in one table of eight.

Where more are beyond the bound, a larger one is chosen, for up to twice the usual price: what a few dozen robots say
must not drown in a preference for small bounds. Beyond an end nobody should be, and robots are those who are two
octaves beyond it. With 36 robots at epsilon = 1, and 60 at 0.3, a quarter of first answers miss them, by the count or
by a choice after it; and beside a curve intervals are narrower, and hold less often then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.query.choices import CANDIDATES, FINE, OFTEN, STEPS, bound_of, choose_bound, fine_number_of
from discreet.query.curve import Curve, shape_of
from discreet.query.losses import SURELY, blurred
from discreet.query.remembered import ALARM, Choice
from discreet.query.sketch import Sketch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.curve import End
    from discreet.query.run import Run

__all__ = ["sized", "whole_buckets"]

_WATCHED, _FAR, _VAGUE = 4.0, 0.1, 0.3
"""Units, times epsilon of a count, that a curve expects where it is asked; of which part it expects at most so many
where it is asked a second time; and by which part of them it may be off."""

_LITTLE, _CLEARLY, _TOGETHER = 0, 1, 2
_NEAR, _AT_END, _BEYOND = (1.6, 2.6, 1.7), (0.5, 1.7, 0.5), (0.9, 2.2, ALARM)
"""By how much counts may be off, times epsilon: by less, and one count is believed; by more, and it is not believed;
between, there is a second one, and both together may be off by the last. So it is for units near the bound of a curve
and of an end, of whom there should be none, and for units beyond. That is believed of fewer tables with ten and more
units beyond, and of more without, than if one count decided at 1.4: it is off in 8 % of smooth ones (12 %), and with
20 beyond at epsilon = 1 in 77 % (73 %).
"""

_OUTER = math.log(2) / math.log(20)
"""The half of Laplace noise is this part of the interval of 95 %: bounds are to be good for both."""

_FAR_FROM_END, _LESS_LIKELY = 2.0 * STEPS, 0.55
"""Two octaves: who is further beyond an end is not one of those who are just not as many as the others; and what such
units count, because tables in which everybody has one row are many, and few of these have robots; after a second count
they count half of what is missing to 1 more."""

_ENOUGH, _WEIGHTY, _WEAKEST = 6.0, 7.0, 1.0
"""Units that are on no curve, times the epsilon of a choice of a bound because of them: so many are enough, and where
there are fewer it costs more; and over which power of a preference for small bounds they win. It has the last at least.
"""

_DOZEN = 10.0
"""Units that a count of large ones is compared with at least, where its noise is smaller: a bound for fewer costs too
much, where one smooth table in eight seems to have them."""

_BEYOND_END = 0.75
"""What is taken to be lost beyond an end, in bounds, for each unit that a count would not have told from none."""

_SHARE_OF_UNITS = 0.9
_UP = 1 + 1e-12


def sized(run: Run, place: str, found: dict[str, NDArray[Any]], *, smallest: float, rows: int) -> Choice:
    """A new bound for a place of the plan, from the number n of units in each part f of a bucket.

    A unit counts in at most `rows` of them. No bound is below `smallest`. What is left of the pot is left to the run.
    """
    steps = _Steps(run, place, found, smallest=smallest, rows=rows)
    shape = shape_of(steps.sketch)
    return (None if shape is None else steps.read(shape)) or steps.chosen()


class _Steps:
    """The steps for one place, in their order: what they have told, and what is left of the pot."""

    def __init__(self, run: Run, place: str, found: dict[str, NDArray[Any]], *, smallest: float, rows: int) -> None:
        """The number of units, and the sketch."""
        self.run, self.place, self.found, self.rows = run, place, found, rows
        self.paid, self.measure = run.plan.allocation, int(place.partition(" ")[2])
        self.smallest, self.largest = smallest, run.plan.most_at(place)
        self.buckets = whole_buckets(found["f"])
        run.counted = run.counted_units(found["n"][self.buckets > CANDIDATES[0]], self.paid.counted / rows)
        self.sketch = Sketch.drawn(
            self.buckets,
            found["n"],
            epsilon=self.paid.sketched / rows,
            largest=self.largest,
            generator=run.generator,
        )
        self.left = self.paid.later
        self.price, self.power = self.paid.chosen, math.inf
        self.more = self.paid.more_for(self.measure)
        self.told = Choice(
            CANDIDATES[0],
            self.paid.chosen / rows,
            units=run.counted,
            size=CANDIDATES[0],
            looked=self.paid.counted / rows,
        )

    def read(self, shape: Curve | End) -> Choice | None:
        """The bound that a shape says, if counts agree with it."""
        bound, allowed = self._wanted(shape)
        least, wanted, most = map(fine_number_of, (self.smallest, bound, self.largest))
        number = max(least, min(wanted, most))
        noise = self.rows / self.paid.checked
        expected = _expected(shape, number, allowed, noise=noise)
        beyond, believed = self._counted(expected, noise)
        self.told = replace(self.told, beyond=beyond / max(noise, _DOZEN * self.rows))
        if believed:
            paid = replace(self.run.plan, allocation=self.paid.spared({self.measure: _less(self.left)}))
            return self._ended(
                number=number,
                noise=paid.noise_for(self.place),
                allowed=allowed,
                **_cut_off(shape, bound_of(number), seen=self.seen, beyond=allowed + noise),
            )
        if self.told.surprised:
            large, far = beyond / self.rows, expected.ends[-1]
            self.price += min(self.more, max(0.0, _ENOUGH / large - self.price))
            self.power = max(_WEAKEST, large * self.price / _WEIGHTY)
            self.smallest = min(max(self.smallest, bound_of(far)), self.largest)
        return None

    def _wanted(self, shape: Curve | End) -> tuple[float, float]:
        """The bound that a shape says, for noise as it is if counts agree, and how many units may exceed it."""
        hoped = replace(self.run.plan, allocation=self.paid.hoped)
        usual = self.run.allowed(hoped, self.place)
        if not isinstance(shape, Curve):
            return shape.bound(usual), usual
        multiplier, law = hoped.noise_for(self.place), hoped.law(self.measure)
        bound = shape.best(
            usual,
            groups=max(1.0, usual / (OFTEN * multiplier)),
            noise=multiplier * (law.two_sided(0.5) + _OUTER * law.two_sided(0.95)) / 2,
            blur=blurred(self.seen),
        )
        return bound, shape.above(bound)

    def _counted(self, expected: _Expected, noise: float) -> tuple[float, bool]:
        """How many more units are beyond than expected, and whether counts are as expected; a second one if unclear."""
        self.left -= self.paid.checked
        counts = self._counts(expected.ends, self.paid.checked)
        if not expected.off(counts, noise, _LITTLE) or expected.off(counts, noise, _CLEARLY):
            return expected.beyond(counts), not expected.off(counts, noise, _CLEARLY)
        again = self.paid.checked_again(self.measure)
        self.left -= again
        self.more -= again
        weight = again**2 / (again**2 + self.paid.checked**2)  # by the variances of their noise
        second = self._counts(expected.ends, again)
        counts = [(1 - weight) * one + weight * other for one, other in zip(counts, second, strict=True)]
        surer = replace(expected, likely=1 - (1 - expected.likely) / 2)
        return surer.beyond(counts), not surer.off(counts, noise, _TOGETHER)

    @property
    def seen(self) -> float:
        """The units times the epsilon of the sketch."""
        assert self.told.units is not None
        return max(0.0, self.told.units * self.sketch.epsilon)

    def chosen(self) -> Choice:
        """A bound that is chosen."""
        self.left -= self.price
        paid = replace(self.run.plan, allocation=self.paid.spared({self.measure: _less(self.left)}))
        allowed = self.run.allowed(paid, self.place)
        assert self.told.units is not None
        number = choose_bound(
            self.buckets,
            self.found["n"],
            epsilon=self.price / self.rows,
            allowed=allowed,
            smallest=self.smallest,
            largest=self.largest,
            sure=self.told.units - SURELY * self.rows / self.paid.counted,
            reach=self.run.plan.reach_at(self.place),
            bounded=False,
            most=self.power,
            generator=self.run.generator,
        )
        return self._ended(number=number, noise=paid.noise_for(self.place), allowed=allowed)

    def _counts(self, ends: tuple[float, float], epsilon: float) -> list[float]:
        """How many units are above each of these numbers and not above the next."""
        above = np.searchsorted(np.array(ends) * FINE, self.found["f"], side="left")  # how many of them a size is above
        kinds = [self.found["n"][above == k] for k in range(1, len(ends) + 1)]
        return self.run.counted_apart(kinds, epsilon / self.rows)

    def _ended(self, *, number: float, **facts: Any) -> Choice:
        """What was found; the rest of the pot is put aside."""
        self.run.left[self.measure] = _less(self.left)
        size = self.sketch.within(_SHARE_OF_UNITS, below=math.ceil(number))
        return replace(self.told, number=number, size=size, **facts)


def _less(left: float) -> float:
    """What is left, or missing, rounded down."""
    return left / _UP if left > 0 else left * _UP


def _cut_off(shape: Curve | End, bound: float, *, seen: float, beyond: float) -> dict[str, float]:
    """What is known about that, for a `Choice`: by a curve, or because there may be so many units beyond an end."""
    if not isinstance(shape, Curve):
        return {"lost": _BEYOND_END * beyond}
    mean, variance = shape.lost(bound)
    told = {"lost": mean / bound, "unsure": math.sqrt(variance) / bound}
    return {**told, "seen": seen, "steep": shape.steepness(bound)}


@dataclass(frozen=True)
class _Expected:
    """How many units should be between two numbers of bounds, and beyond the second.

    The first may be off by `vague`, or there may be any number of fewer where `ended`; those beyond that are too many
    count `likely`.
    """

    ends: tuple[float, float]
    between: float
    outside: float
    vague: float
    likely: float = 1.0
    ended: bool = False

    def off(self, counts: list[float], noise: float, which: int) -> bool:
        """Whether counts differ by more from that than noise of this scale explains, by one of three measures."""
        near = counts[0] - self.between
        limit = _AT_END[which] if self.ended else _NEAR[which]
        far = (near if self.ended else abs(near)) - self.vague > limit * noise
        return far or self.beyond(counts) > _BEYOND[which] * noise

    def beyond(self, counts: list[float]) -> float:
        """How many more were counted there than should be."""
        return self.likely * (counts[1] - self.outside)


def _expected(shape: Curve | End, number: float, allowed: float, *, noise: float) -> _Expected:
    """What a shape says, for counts with noise of this scale; `allowed` may exceed the bound of this number."""
    if not isinstance(shape, Curve):
        far = min(number + _FAR_FROM_END, float(CANDIDATES[-1]))
        return _Expected((number, far), 0.0, 0.0, allowed, _LESS_LIKELY, ended=True)
    watched = min(_WATCHED * noise, shape.most)
    near, far = (fine_number_of(shape.bound(above)) for above in (watched, min(allowed, _FAR * watched)))
    outside = shape.above(bound_of(far))
    between = shape.above(bound_of(near)) - outside
    return _Expected((near, far), between, outside, _VAGUE * between)


def whole_buckets(fine: NDArray[Any]) -> NDArray[np.int64]:
    """The buckets of which these are parts."""
    return np.asarray(-(-fine.astype(np.int64) // FINE))
