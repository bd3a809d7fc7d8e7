"""Bounds that are found once for everybody, and paid from a share of the budget.

As long as that share has room (`bounds_share` in the policy, or `USUAL_SHARE`), nobody's question has to pay for the
bound of a count or a sum with Laplace noise. The first question that needs one has it found: the curator charges a
*survey* to the share, by itself and before the question, and keeps what it has told. From then on everybody's questions
use that bound, with their whole price as noise, and `explain` knows their error beforehand.

A survey costs as much as the question pays for the measure: that is what it takes to find a bound with which noise is
as small as with one that is tuned on the true data. It is a private choice of a bound (`choices`), with the number of
units and the size that nine in ten do not exceed, from which intervals are made. A sketch of the sizes comes first: how
much a small bound is preferred depends on how steeply sizes fall.

**Claim.** A survey is pure DP at its cost. *Proof.* The sketch, the number of units, the choice and the size of nine in
ten are pure DP at `sketched`, `tail`, `choice` and `tail`, whatever the earlier ones have told, and their sum is no
more than the cost.

It is a charge like any other, under a name of its own (`BOUNDS`) whose budget is the share: the ledger sees to it that
surveys stay within the share, and all charges within the budget. What an analyst sees is their own answers and the
surveys. So a budget of one analyst bounds what they learn beside the surveys, and with them it is both together. Where
the owner has not stated that share, whoever has such a budget is told nothing of surveys, and it bounds all that they
learn.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet.accounting import Cost
from discreet.query.allocation import of_row
from discreet.query.choices import CANDIDATES
from discreet.query.curve import Curve, shape_of
from discreet.query.drawable import WIDEST
from discreet.query.remembered import is_fit
from discreet.query.run import Run
from discreet.query.sizing import whole_buckets
from discreet.query.sketch import Sketch
from discreet.query.sums import find_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from discreet.engines import Session
    from discreet.noise import Generator
    from discreet.query.private import Private
    from discreet.query.run import Seen

__all__ = ["Survey", "Surveying", "found_first", "paid_first", "surveys_of", "total_price"]

_LOOK, _SKETCH = 0.03, 0.04
"""What each of the two looks beside a choice costs, of a survey, and a sketch of sizes before it."""

_STRONGEST, _WEAKEST, _UNKNOWN = 8.0, 4.0, 5.0
"""The largest power of the preference for small bounds: where sizes fall steeply, where they do not, and where a sketch
does not tell. Where sizes end it is the second: robots are beyond an end, and a sketch sees none of a few dozen."""

_STEEP, _HEAVY = 4.2, 2.6
"""With which power of the size the number of units above falls there."""

_LEAST = 3.0
"""What is left of that power where a choice is very well paid."""

_UP = 1 + 1e-12


@dataclass(frozen=True)
class Survey:
    """The bounds of one block that are to be found for everybody: of the plan's pots, those at these places.

    Those at the places `elsewhere` are found by the survey of another block of the question, which needs the same.
    """

    plan: Private
    places: tuple[str, ...]
    elsewhere: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def cost(self) -> Cost:
        """What finding them costs."""
        return sum((Cost.pure(self.plan.level_at(place)) for place in self.places), Cost.zero())

    @cached_property
    def after(self) -> Private:
        """The plan as it will be, but for the bounds."""
        found = (*self.places, *self.elsewhere)
        return self.plan.buying(known.place for known in self.plan.known if not (known.settled or known.place in found))

    @property
    def is_drawable(self) -> bool:
        """Whether the noise of its steps can be drawn."""
        return all(self._rows / (_LOOK * self.plan.level_at(place)) <= WIDEST for place in self.places)

    @property
    def _rows(self) -> int:
        """In how many units of a choice one unit counts."""
        return (self.plan.block.rows_per_unit or 1) if self.plan.block.row_level else 1

    def level_of_choice(self, place: str) -> float:
        """The epsilon at which the bound at a place will be chosen."""
        return of_row(self.prepared(place).allocation.choice, self._rows)

    def prepared(self, place: str) -> Private:
        """The plan with what each step for a place may spend; bounds are for the noise that questions will have."""
        plan, level = self.after, self.plan.level_at(place) / _UP
        paid = replace(
            plan.allocation, choice=(1 - 2 * _LOOK - _SKETCH) * level, tail=_LOOK * level, sketched=_SKETCH * level
        )
        return replace(plan, allocation=paid)

    def made(
        self, session: Session, generator: Generator | None = None, *, seen: Seen | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """What was found, as the ledger keeps it: by the digests under which everybody's plans look for it.

        What the question will read as well is left in `seen`.
        """
        run = Surveying(self, session, generator, seen)
        find_bounds(run, self.places)
        return {digest: [asdict(choice)] for digest, choice in run.told}


class Surveying(Run):
    """A block whose bounds are found, and which is not answered."""

    def __init__(
        self, survey: Survey, session: Session, generator: Generator | None = None, seen: Seen | None = None
    ) -> None:
        super().__init__(session, survey.after, generator, seen)
        self.survey = survey

    def _strongest(self, place: str, found: dict[str, NDArray[Any]], rows: int) -> float:
        """The largest preference for small bounds, by how steeply sizes fall, as far as a sketch shows it.

        Where few units have a large part of everything, one that is cut off costs more than noise that is a little
        larger; and where noise is small, too.
        """
        paid = self.plan.allocation
        sketch = Sketch.drawn(
            whole_buckets(found["f"]),
            found["n"],
            epsilon=of_row(paid.sketched, rows),
            largest=self.plan.most_at(place),
            generator=self.generator,
        )
        shape = shape_of(sketch)
        most = _UNKNOWN if shape is None else _WEAKEST
        if isinstance(shape, Curve):
            steep = shape.steepness(shape.bound(max(1.0, self.allowed(self.plan, place))))
            part = min(1.0, max(0.0, (steep - _HEAVY) / (_STEEP - _HEAVY)))
            most = _WEAKEST + (_STRONGEST - _WEAKEST) * part
        return _LEAST + (most - _LEAST) / max(1.0, of_row(paid.choice, rows))

    def choose(
        self, place: str, sizes: Callable[[], dict[str, NDArray[Any]]], *, smallest: float = 0.0, rows: int = 1
    ) -> float:
        """The number of the bound for a place of the plan, by a new choice for everybody.

        Units that contribute nothing are left out: of them no bound cuts anything off.
        """
        self.plan = self.survey.prepared(place)
        counted = sizes()
        some = whole_buckets(counted["f"]) > CANDIDATES[0]
        found = {name: numbers[some] for name, numbers in counted.items()}
        strongest = self._strongest(place, found, rows)
        chosen = self.bought(place, found, smallest=smallest, rows=rows, strongest=strongest)
        chosen = replace(chosen, surveyed=True)
        self.told.append((self.plan.known_at(place).common_digest, chosen))
        return chosen.number


def surveys_of(plans: Iterable[Private]) -> tuple[Survey, ...]:
    """The surveys that these plans are in need of, which were made with what is known: one for each block, or none.

    Of conditions that no row meets by the policy there are none: they are mistakes, mostly. What several blocks need is
    found once, for the one that pays most, as far as its bound is one for the others.
    """
    found = []
    for plan in plans:
        wanted = tuple(known.place for known in plan.known if plan.is_surveyed(known.place) and not known.settled)
        survey = Survey(plan, wanted)
        if wanted and survey.is_drawable and not plan.block.vain:
            found.append(survey)
    return tuple(found) if len(found) == 1 else _each_once(found)


def _each_once(surveys: list[Survey]) -> tuple[Survey, ...]:
    """The same, every bound found by one of them."""
    levels: dict[str, list[float]] = {}
    elsewhere: set[tuple[int, str]] = set()
    every = [(number, survey, place) for number, survey in enumerate(surveys) for place in survey.places]
    for number, survey, place in sorted(every, key=lambda one: -one[1].plan.level_at(one[2])):
        of_same = levels.setdefault(survey.plan.known_at(place).common_digest, [])
        if any(is_fit(survey.plan, place, level) for level in of_same):
            elsewhere.add((number, place))
        else:
            of_same.append(survey.level_of_choice(place))
    return tuple(
        replace(
            survey,
            places=tuple(place for place in survey.places if (number, place) not in elsewhere),
            elsewhere=tuple(place for place in survey.places if (number, place) in elsewhere),
        )
        for number, survey in enumerate(surveys)
    )


def found_first(price: Cost, entry: int) -> str:
    """A note that bounds were found for everybody before the answer, what that cost, and where the ledger says so."""
    return (
        f"Bounds on what a unit contributes were found for everybody, for epsilon = {price.epsilon(0.0):.4g} from the "
        f"share of the budget for bounds (entry {entry} of the ledger); questions about the same, at up "
        "to three times its price, need not pay for them."
    )


def paid_first(price: Cost, entry: int) -> str:
    """What was charged before a question that is refused after all, because somebody else was quicker."""
    return f"the epsilon = {price.epsilon(0.0):.4g} that finding its bounds for everybody has cost (entry {entry})"


def total_price(surveys: Iterable[Survey]) -> Cost:
    """What all of them cost."""
    return sum((survey.cost for survey in surveys), Cost.zero())
