r"""Bounds that earlier answers have told: what was bought is not bought again.

A bound that nobody stated is chosen privately, at a part of the price (see `choices`). What was chosen is an output
like any other, paid for and shown with its answer. Whoever has seen it may use it for every later question, so the
curator does: that is post-processing. The ledger keeps the choices of an answer with the entry that completes it, for
the analyst who paid and the data that was asked; an answer that failed, or whose process died, leaves none. Where the
policy says that what was paid for is shared, everybody uses it who has no budget of their own: the claim below is about
the budget of the data, for which it does not matter who asked.

**Claim.** Answers with remembered bounds cost no more than the sum of the costs that the ledger was charged for them.
*Proof.* What is remembered is a function of earlier outputs. Given these, the plan of a question is fixed before it is
charged (which choices are bought, every share of its price, every bound that is known), and so is its cost, which is
that of exactly the steps that run. So the questions are an adaptive sequence of mechanisms whose costs are chosen
adaptively, too: that is what the filter of the ledger admits (`discreet.accounting.Filter`).

**Rule.** The first three answers buy a choice each. From the third on the median of three is used, and from the fourth
on nothing is bought. A single choice is off by a factor of four and more once in ten times at epsilon = 0.3, and would
be so for ever; the middle of two is worse than one of them on some tables; the median of three is better on all that
were tried. Choices count if they were paid as well as this question would pay if nothing were known, and were made for
noise that is not larger: what is bought for less is worse than a new choice on some tables. How much smaller the noise
may have been depends on the number of groups, because a bound for less noise is larger. For one number the factor is
10, and the error is smaller for it on every table; for many groups it is 1.2.

Where large units are on no curve (see `sizing`), one count of them may miss a few dozen, and three rarely do. If their
mean says that there are more than there should be, the bounds count that were chosen because of it, and no others.

A bound that was found for everybody (see `surveys`) is used in place of all these, by questions whose noise is not much
smaller or larger than it was found for.

What identifies a choice is a digest of all that decides *what* is chosen, and not at which price: rows, unit, keys,
the measure with its declared bounds, how contributions are bounded, the versions of the files. The rest of the question
(other aggregates, HAVING, ORDER BY, aliases) is no part of it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from discreet.query.allocation import of_row
from discreet.query.choices import CANDIDATES, FINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from discreet.query.private import Private

    Told = Callable[[list[str]], Mapping[str, list[Any]]]

__all__ = ["ALARM", "ENOUGH", "Choice", "Known", "Memory", "is_fit"]

ENOUGH = 3
"""So many choices are bought; their median is used from then on."""

ALARM = 1.2
"""By how much counts of large units beyond a curve may exceed what it says, times epsilon: by more, and the curve is
not believed."""

_SMALLER, _AT_LEAST = 10.0, 1.2
_SAME = 1.02
"""Prices that differ by no more are the same."""

_FINER = 3.4
"""A bound that was found for everybody is used by questions that pay up to so many times what its choice cost, which
is nine tenths of the survey: three times as much as that."""

_VERSION = 5
_BY_GAINS = "by gains"
"""What the bound of a distinct count is chosen by: those that were chosen by the sizes of units do not count."""


@dataclass(frozen=True)
class Choice:
    """One private choice of a bound: all that it has told, and at what price.

    `number` is the candidate that was chosen, with `epsilon`, for noise of the multiplier `noise` (0 if noise has
    nothing to do with it), so that about `allowed` units exceed it; of distinct values, so that one more of each unit
    would not gain `allowed` of them. `units` and the candidate `size` are what a look at
    the tail of sizes has told, each with the epsilon `looked`; None without a look. `spread` is what was taken for the
    sum of a large unit's numbers over their norm, where the allowance depends on it, else 0. `lost` is what
    the bound is expected to cut off of all units together, in bounds, if it was read off a sketch of sizes, with the
    standard deviation `unsure`; `seen` are the units times the epsilon of the sketch, and `steep` is the exponent with
    which the number of units above falls there if it was a curve, 0 if it was an end. Then `number` may lie between two
    candidates. `beyond` is how many more units were counted beyond a curve or an end than should be there, over the
    scale of the count's noise, or over ten if that is more (beyond an end a part of it); 0 if nothing was counted.
    `surveyed` says that it was found for everybody, for as much as the measure costs.
    """

    number: float
    epsilon: float
    noise: float = 0.0
    allowed: float = 0.0
    units: float | None = None
    size: int | None = None
    looked: float = 0.0
    spread: float = 0.0
    lost: float | None = None
    unsure: float = 0.0
    seen: float = 0.0
    steep: float = 0.0
    beyond: float = 0.0
    surveyed: bool = False

    @property
    def surprised(self) -> bool:
        """Whether it was chosen because more units were counted beyond a curve than noise explains."""
        return self.lost is None and self.beyond > ALARM

    def __post_init__(self) -> None:
        exact = (int,) if self.lost is None else (int, float)
        if type(self.number) not in exact or not float(self.number * FINE).is_integer():
            raise ValueError("no candidate")
        if type(self.size) not in (int, type(None)):
            raise ValueError("no candidate")
        if not all(CANDIDATES[0] <= number <= CANDIDATES[-1] for number in (self.number, self.size or 0)):
            raise ValueError("no candidate")
        told = [self.lost or 0.0, self.unsure, self.seen, self.steep]
        least_0 = [self.noise, self.allowed, self.looked, self.spread, *told]
        real = [self.epsilon, self.units or 0.0, self.beyond, *least_0]
        if not all(type(value) in (int, float) and math.isfinite(value) for value in real):
            raise ValueError("no number")
        if not self.epsilon > 0 or min(least_0) < 0:
            raise ValueError("below 0")
        if len({self.units is None, self.size is None, self.looked == 0}) > 1:
            raise ValueError("half a look")
        if self.lost is None and any(told):
            raise ValueError("half a sketch")
        if type(self.surveyed) is not bool:
            raise ValueError("neither true nor false")

    @classmethod
    def read(cls, stored: Any) -> Choice | None:
        """The choice that `asdict` wrote; None if another release wrote something else."""
        names = {field.name for field in fields(cls)}
        if (
            not isinstance(stored, dict) or set(stored) | {"surveyed"} != names
        ):  # of which earlier releases knew nothing
            return None
        try:
            return cls(**stored)
        except (ValueError, TypeError):
            return None


@dataclass(frozen=True)
class Known:
    """What a plan knows about one of its choices: its digest, and the earlier choices that count, if any.

    `place` says which choice it is: "moment 0", "rows", "distinct 1". `common` is what was found for everybody; of
    tables in memory, which are `held` under a name of their own, it is not known any more when they are opened anew.
    """

    place: str
    digest: str = ""
    earlier: tuple[Choice, ...] = ()
    common: Choice | None = None
    held: str = ""

    @property
    def common_digest(self) -> str:
        """The digest under which it is known what was found for everybody."""
        return _digest((self.digest, "for everybody", *([self.held] if self.held else [])))

    @property
    def settled(self) -> bool:
        """Whether nothing is bought."""
        return self.common is not None or len(self.earlier) >= ENOUGH

    def with_new(self, new: Choice | None = None) -> Choice:
        """What is used: what is known to everybody, or the median of three, or the new choice while there are fewer."""
        if self.common is not None:
            return self.common
        chosen = [*self.earlier, *([] if new is None else [new])]
        if len(chosen) < ENOUGH:
            assert new is not None
            return new
        counted = [one.beyond for one in chosen if one.beyond]
        beyond = sum(counted) / len(counted) if counted else 0.0
        if beyond > ALARM:
            # an earlier release believed a little more: then there may be none
            chosen = [one for one in chosen if one.surprised] or chosen
        looks = [one for one in chosen if one.units is not None and one.size is not None]
        read = [one for one in chosen if one.lost is not None]
        sketched = 2 * len(read) > len(chosen)
        number = _median(one.number for one in chosen)
        return replace(
            chosen[0],
            number=number if sketched else math.ceil(number),
            epsilon=min(one.epsilon for one in chosen),
            noise=max(one.noise for one in chosen),
            allowed=max(one.allowed for one in chosen),
            units=_median(one.units for one in looks) if looks else None,
            size=_median(one.size for one in looks) if looks else None,
            looked=min(one.looked for one in chosen),
            spread=_median(one.spread for one in chosen),
            lost=_median(one.lost for one in read) if sketched else None,
            unsure=_median(one.unsure for one in read) if sketched else 0.0,
            seen=_median(one.seen for one in read) if sketched else 0.0,
            steep=_median(one.steep for one in read) if sketched else 0.0,
            beyond=beyond,
        )


def _median(values: Iterable[Any]) -> Any:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


@dataclass(frozen=True)
class Memory:
    """All that is remembered for one question about these versions of files, by digest; fixed before it is priced."""

    files: str
    choices: Mapping[str, tuple[Choice, ...]]
    held: str = ""

    @classmethod
    def of(
        cls,
        plans: Iterable[Private],
        files: list[list[Any]],
        told: Told,
        surveyed: Told | None = None,
        *,
        held: str = "",
    ) -> Memory:
        """What the ledger was told about the choices of these plans, and by surveys.

        Both give lists of stored values by digest; without `surveyed` there are no surveys. `held` names the tables in
        memory, if there are any.
        """
        empty = cls(hashlib.sha256(json.dumps(files).encode()).hexdigest(), {}, held)
        every = [(plan, known) for plan in plans for known in empty.known(plan)]
        found = _asked(told, (known.digest for _, known in every))
        if surveyed is not None:
            common = (known.common_digest for plan, known in every if plan.is_surveyed(known.place))
            found = found | _asked(surveyed, common)
        read = {digest: [Choice.read(value) for value in values] for digest, values in found.items()}
        return replace(
            empty, choices={digest: tuple(one for one in ones if one is not None) for digest, ones in read.items()}
        )

    def known(self, plan: Private) -> tuple[Known, ...]:
        """What is known about every choice of a plan that was made as if nothing were."""
        common = _digest((_VERSION, self.files, [key.digest for key in plan.block.keys]))
        return tuple(self._known(plan, one.place, common) for one in plan.known)

    def _known(self, plan: Private, place: str, common: str) -> Known:
        digest = _digest((common, _identity(plan, place)))
        if place.startswith("moment") and plan.is_uncentred(plan.moments[int(place.partition(" ")[2])]):
            # It is a bound on distances from a middle, which is another one each time: no question may take it for
            # one on values.
            return Known(place, _digest((digest, "uncentred")))
        noise, epsilon, looks = plan.noise_for(place), plan.epsilon_of_choice(place), plan.looks_at(place)
        smaller = _smaller(plan)
        by_price = plan.has_pot(place)  # then the noise is in proportion to the price as far as that is known before
        counted = [
            one
            for one in self.choices.get(digest, ())
            if one.epsilon * _SAME >= epsilon
            and (one.epsilon <= epsilon * smaller if by_price else noise <= one.noise * smaller)
            and (by_price or one.noise <= noise * _SAME)
            and (one.units is not None) == looks
        ]
        counted.sort(key=lambda one: -one.epsilon)  # of those that are as good, the newest come first
        known = Known(place, digest, tuple(counted[:ENOUGH]), held=self.held)
        return replace(known, common=self._common(plan, known)) if plan.is_surveyed(place) else known

    def _common(self, plan: Private, known: Known) -> Choice | None:
        """What was found for everybody, if this plan may use it; of several what was paid best."""
        found = self.choices.get(known.common_digest, ())
        return max(
            (one for one in found if is_fit(plan, known.place, one.epsilon)), key=lambda one: one.epsilon, default=None
        )


def is_fit(plan: Private, place: str, epsilon: float) -> bool:
    """Whether a bound that was found for everybody at this epsilon is for noise much like that of a plan."""
    paid = of_row(plan.level_at(place), (plan.block.rows_per_unit or 1) if plan.block.row_level else 1)
    return epsilon * _FINER >= paid and epsilon <= paid * _smaller(plan)


def _smaller(plan: Private) -> float:
    """By what factor the noise that a bound was chosen for may be smaller than that of a plan which uses it."""
    return (max(_AT_LEAST, _SMALLER / max(1, plan.cells)) if plan.public else _AT_LEAST) * _SAME


def _asked(told: Told, digests: Iterable[str]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(digests))
    return dict(told(names)) if names else {}


def _digest(facts: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _identity(plan: Private, place: str) -> tuple[Any, ...]:
    """Everything that decides what is chosen there, beside keys and files."""
    block, options = plan.block, plan.options
    kind, _, i = place.partition(" ")
    if kind == "moment":
        moment = plan.moments[int(i)]
        argument, measure = moment.argument, replace(moment, argument=None)
    else:
        argument, measure = (plan.distincts[int(i)].argument if kind == "distinct" else None), None
    rows = dict(block.alone).get(argument or "", f"{argument} of {block.rows}")
    rule = (_BY_GAINS,) if kind == "distinct" else ()
    limits = (plan.groups, options.max_groups, options.max_rows, options.bounding)
    totals = kind != "rows" and not plan.public and plan.shows_totals  # then fewer units may exceed a bound
    how = (plan.gaussian, block.row_level, block.rows_per_unit, plan.looks_at(place), totals)
    return (kind, rows, measure, limits, how, *rule)
