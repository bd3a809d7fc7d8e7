"""`Knowing`: what is known of a question's bounds before it is priced, and what has to be found for everybody first."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.accounting import Cost
from discreet.errors import BudgetExceeded, InvalidArgument
from discreet.query.charged import computed
from discreet.query.limits import set_share
from discreet.query.surveys import found_first, paid_first, surveys_of, total_price

if TYPE_CHECKING:
    from discreet.query.asked import Asked
    from discreet.query.data import Data
    from discreet.query.payer import Payer
    from discreet.query.run import Seen
    from discreet.query.surveys import Survey
    from discreet.query.turns import Turns

__all__ = ["Informed", "Knowing"]


@dataclass(frozen=True)
class Informed:
    """A question with what is known of its bounds: from here on it is priced, and asked with that and no more.

    `surveys` is what was `paid`, in words, to find some for everybody just now, `notes` say so, and `seen` is what was
    read for it.
    """

    asked: Asked
    surveys: Cost = field(default_factory=Cost.zero)
    paid: str = ""
    notes: tuple[str, ...] = ()
    seen: Seen = field(default_factory=dict)


@dataclass(frozen=True)
class Knowing:
    """What one analyst may know about bounds on this data."""

    data: Data
    payer: Payer
    turns: Turns

    def remembered(self, asked: Asked) -> Asked:
        """The question with what earlier answers and surveys have told this analyst."""
        return asked.knowing(self.data.files, self.payer.told, self.payer.surveyed, held=self.data.held)

    def wanted(self, asked: Asked) -> tuple[Survey, ...]:
        """The surveys that come before this question: none where the share, or the budget after them, has no room."""
        surveys = () if asked.price is None else surveys_of(asked.plans)
        if not surveys or not self.payer.makes_surveys:
            return ()
        return surveys if self.payer.admits(total_price(surveys), asked.after(surveys).cost) else ()

    def before(self, asked: Asked, text: str) -> Informed:
        """What is known before the question is asked; what is to be found for everybody is found first."""
        known = self.remembered(asked)
        if not surveys_of(known.plans) or not self.payer.makes_surveys:
            return Informed(known)
        with self.turns.of("bounds"):  # somebody else may want the same
            known = self.remembered(asked)
            surveys = self.wanted(known)
            return self._surveyed(asked, surveys, text) if surveys else Informed(known)

    def _surveyed(self, asked: Asked, surveys: tuple[Survey, ...], text: str) -> Informed:
        """The question once these bounds were found for everybody, paid from their share."""
        payer, price = self.payer.of_bounds, total_price(surveys)
        if payer.policy.bounds_share is None:
            with suppress(InvalidArgument):  # somebody has written another one, just now: then that counts
                set_share(payer.ledger, payer.policy)
        try:
            shown = {"epsilon": float(f"{price.epsilon(0.0):.9g}")}
            entry = payer.reserve(price, f"bounds for everybody, wanted first by: {text}", price=shown)
        except BudgetExceeded:  # somebody else was quicker, just now
            return Informed(self.remembered(asked))
        seen: Seen = {}

        def found() -> dict[str, list[Any]]:
            with self.data.engine.session() as session:
                made = [survey.made(session, seen=seen) for survey in surveys if survey.places]
            self.data.check()
            told: dict[str, list[Any]] = {}
            for digest, choices in (item for one in made for item in one.items()):
                told.setdefault(digest, []).extend(choices)
            return told

        payer.complete(entry, told=computed(found, data=self.data, payer=payer, entry=entry, survey=True))
        return Informed(
            self.remembered(asked), price, paid_first(price, entry.id), (found_first(price, entry.id),), seen
        )
