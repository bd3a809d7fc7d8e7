"""`Asked`: a question with everything that is decided about it before any data is touched or anything is paid."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.accounting import Cost
from discreet.arguments import nonnegative, positive
from discreet.errors import BudgetExceeded, InvalidArgument
from discreet.query.options import Options
from discreet.query.parse import parse
from discreet.query.private import Private, plans_of, total_cost
from discreet.query.remembered import Memory
from discreet.query.target import Target, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from discreet.query.catalog import Catalog
    from discreet.query.plan import Question
    from discreet.query.policy import Policy
    from discreet.query.remembered import Told
    from discreet.query.surveys import Survey

__all__ = ["Asked", "Desk"]

_REMEMBERED = 128
"""So many plans are kept."""

K = TypeVar("K")
V = TypeVar("V")

_REFINED = 10
"""A refusal says for how much the question would be answered, to a thousandth of what was asked for."""


@dataclass(frozen=True)
class Asked:
    """A question, its price, how contributions are bounded, and the private plan of each of its blocks.

    Without a price (`target` None) it is about public tables alone, and has no plans. `memory` is what the plans know
    of earlier answers.
    """

    question: Question
    target: Target | None
    options: Options
    plans: tuple[Private, ...]
    memory: Memory | None = None

    @property
    def price(self) -> Target | None:
        """What is paid for it; None if it is free."""
        return self.target if self.plans else None

    @cached_property
    def cost(self) -> Cost:
        """What answering it costs, never above the price."""
        return total_cost(self.plans)

    def fingerprint(self, files: list[list[Any]]) -> str:
        """What identical questions about the same versions of files share.

        The price counts as far as it decides what is spent on each step: of a delta that no step needs nothing is left.
        """
        price = [repr(plan.allocation) for plan in self.plans]
        facts = [self.question.canonical, price, repr(self.options), files]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def knowing(self, files: list[list[Any]], told: Told, surveyed: Told | None = None, *, held: str = "") -> Asked:
        """The same question, planned with what the ledger was told: from here on it is asked with that and no more.

        That is what earlier answers have told, and what surveys have.
        """
        if self.target is None or not any(plan.known for plan in self.plans):  # no bound is bought, at any price
            return self
        memory = Memory.of(self.plans, files, told, surveyed, held=held)
        plans = plans_of(self.question, self.target, self.options, memory)
        return Asked(self.question, self.target, self.options, plans, memory)

    def after(self, surveys: Iterable[Survey]) -> Asked:
        """The same question as it will be priced once these bounds have been found for everybody."""
        found = {id(survey.plan): survey.after for survey in surveys}
        return replace(self, plans=tuple(found.get(id(plan), plan) for plan in self.plans)) if found else self

    def refusal(
        self, error: BudgetExceeded, denied: Callable[[Cost], BudgetExceeded | None], *, beside: str = ""
    ) -> BudgetExceeded:
        """The ledger's refusal, in the words of the question: the most for which it would not be denied.

        `beside` is what was charged before it.
        """
        if error.unbounded or self.target is None:
            return error
        last, low, high = error, 0.0, self.target.size
        for _ in range(_REFINED):
            middle = (low + high) / 2
            try:
                plans = plans_of(self.question, self.target.resized(middle), self.options, self.memory)
            except InvalidArgument:  # too little to be answered at all
                break
            refused = denied(total_cost(plans))
            low, high = (middle, high) if refused is None else (low, middle)
            last = refused or last  # the budget that is in the way in the end may be another one
        delta = self.target.delta
        shown = any(plan.allocation.key_delta > 0 for plan in self.plans)  # groups, at a delta
        too_much = shown and low == 0 and denied(Cost.approximate(0.0, delta)) is not None
        return BudgetExceeded(
            requested=self.target.size,
            remaining=low,
            unit=self.target.unit,
            of=last.of,
            until=last.until,
            question=True,
            pure=last.pure,
            delta=delta if too_much else None,
            delta_left=last.remaining if too_much and last.unit == "delta" else None,
            set_aside=last.set_aside if too_much else None,
            beside=beside,
        )


class Desk:
    """Takes questions about the tables of a policy: what the text, the call and the policy say becomes an `Asked`."""

    def __init__(self, policy: Policy, catalog: Catalog, *, delta: Callable[[str | None], float]) -> None:
        self._policy, self._catalog = policy, catalog
        self.delta = delta  # of questions that state none, by who asks; budgets change while data are open
        self._questions: dict[str, Question] = {}  # by their text
        self._asked: dict[tuple[str, Target | None, str], Asked] = {}

    def take(
        self,
        text: str,
        *,
        epsilon: float | None,
        delta: float | None,
        cost: Cost | None,
        call: Mapping[str, Any],
        analyst: str | None = None,
    ) -> Asked:
        """The question at its price; what the call says wins over the text, and the text over the policy.

        Without an `analyst`, it is asked by whoever the analyst is now.
        """
        if not isinstance(text, str):
            raise InvalidArgument("text", text, "pass a question in SQL, as text")
        question = self._parsed(text)
        written = dict(question.options)
        for name, check in (("epsilon", positive), ("delta", nonnegative)):
            if name in written:  # also where the call says something else, and wins
                check(name, written[name])
        written_epsilon, written_delta = written.pop("epsilon", None), written.pop("delta", None)
        if epsilon is None and cost is None:
            epsilon = written_epsilon
        if delta is None and written_delta is not None:
            delta = written_delta
        free = not question.blocks and epsilon is None and cost is None
        if delta is None and epsilon is not None and not free:
            delta = self.delta(analyst)
        target = None if free else target_of(epsilon, delta, cost)
        stated = {name: value for name, value in call.items() if value is not None}
        options = Options.of({**self._defaults(question), **written, **stated})
        options.check(question)
        key = text, target, repr(options)  # moments that are an hour apart may be equal, when clocks are put back
        asked = self._asked.get(key)
        if asked is None:
            asked = Asked(question, target, options, () if target is None else plans_of(question, target, options))
            _keep(self._asked, key, asked)
        return asked

    def _parsed(self, text: str) -> Question:
        """The plan of the text, which depends on the text and the tables alone: it is kept for the next time."""
        question = self._questions.get(text)
        if question is None:
            question = parse(text, self._catalog)
            _keep(self._questions, text, question)
        return question

    def _defaults(self, question: Question) -> dict[str, int]:
        """The policy's limits, the smallest of the tables that are asked."""
        names = {name.lower() for block in question.blocks for name in block.tables}
        limits: dict[str, int] = {}
        for name, table in self._policy.tables.items():
            if name.lower() not in names:
                continue
            for limit in ("max_groups", "max_rows"):
                value = getattr(table, limit)
                if value is not None:
                    limits[limit] = min(value, limits.get(limit, value))
        return limits


def _keep(known: dict[K, V], key: K, value: V) -> None:
    """Write down what was made, for the next time; not everything for ever."""
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
