"""What a policy grants one analyst, kept in the ledger beside the budget of the data."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from discreet.accounting import Cost, Filter
from discreet.accounting.balance import Balance
from discreet.errors import BudgetExceeded, InvalidArgument, KeptBudget
from discreet.ledger.names import BOUNDS
from discreet.ledger.standing import within
from discreet.ledger.terms import label
from discreet.query.policy import USUAL_SHARE
from discreet.query.target import DELTA_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from discreet.accounting import Budget
    from discreet.ledger import Ledger
    from discreet.ledger.terms import Terms
    from discreet.query.policy import Policy

__all__ = [
    "check_delta",
    "default_delta",
    "has_own",
    "refusal_of",
    "refuse_delta",
    "remaining",
    "set_limit",
    "set_share",
]


_OF_EVERYBODY = "the policy has it for everybody"
"""The reason that is written down with a budget that nobody has chosen for this analyst."""


def set_limit(ledger: Ledger, policy: Policy, analyst: str) -> None:
    """Writes the budget of this analyst into the ledger, once.

    A ledger that has one for them keeps it, and refuses another one that the policy states for them by name. Of a
    smaller one that the policy has for everybody by now it is said that it does not count, unless the owner has set
    theirs in the ledger. A ledger that was opened for looking is left as it is.
    """
    limit = _missing(ledger, policy, analyst)
    if limit is not None and not ledger.read_only:
        of_everybody = None if analyst in policy.analysts else _OF_EVERYBODY
        ledger.limit(policy.name, limit, analyst=analyst, period=policy.renewal(analyst), reason=of_everybody)
    elif limit is None and analyst in policy.analysts:
        ledger.limit(policy.name, policy.analysts[analyst], analyst=analyst, period=policy.renewal(analyst))
    else:
        _warn_if_kept(ledger, policy, analyst)


def _warn_if_kept(ledger: Ledger, policy: Policy, analyst: str) -> None:
    stated, renewal = policy.limit(analyst), policy.renewal(analyst)
    if stated is None:
        return
    for one in ledger.terms(policy.name, analyst=analyst):
        if one.holder == "analyst" and _allows_more((one.budget, one.period), (stated, renewal)):
            acts = (entry for kind in ("limit", "amend") for entry in ledger.entries(policy.name, kind=kind))
            own = [act for act in acts if (act.details["holder"], act.details["name"]) == ("analyst", analyst)]
            if max(own, key=lambda act: act.id).details["reason"] == _OF_EVERYBODY:
                warnings.warn(KeptBudget(analyst, str(one.budget), str(stated)), stacklevel=4)


def _allows_more(kept: tuple[Budget, timedelta | None], stated: tuple[Budget, timedelta | None]) -> bool:
    """Whether a budget with its period allows more than another in some way."""
    (one, every), (other, each) = kept, stated
    if one.unit != other.unit or every != each or one.renyi is not None or other.renyi is not None:
        return kept != stated
    return getattr(one, one.unit) > getattr(other, one.unit) or one.delta > other.delta


def set_share(ledger: Ledger, policy: Policy) -> None:
    """Writes into the ledger, once, what may be spent on bounds for everybody.

    A ledger that has another one for them, of another share or an earlier budget, keeps that, and this is refused if it
    was stated.
    """
    if policy.bounds_share == 0:
        return
    budget, period = _share(ledger, policy)
    for one in ledger.terms(policy.name, analyst=BOUNDS):
        if one.holder == "analyst" and policy.bounds_share is None:
            return
        if one.holder == "analyst" and (one.budget, one.period) != (budget, period):
            advice = (
                f"of this budget it is {budget}, and the ledger has {one.budget} for bounds that everybody uses: state "
                "the share as it was, or change that in the ledger, by ledger.amend(...) or `discreet ledger amend`, "
                f"as the budget of analyst '{BOUNDS}'"
            )
            raise InvalidArgument("bounds_share", policy.bounds_share, advice)
    if not ledger.read_only:
        ledger.limit(policy.name, budget, analyst=BOUNDS, period=period, aligned=True)


def _share(ledger: Ledger, policy: Policy) -> tuple[Budget, timedelta | None]:
    """The share of the budget for bounds, and how often that begins again."""
    whole = next(one for one in ledger.terms(policy.name, analyst=BOUNDS) if one.holder == "dataset")
    share = USUAL_SHARE if policy.bounds_share is None else policy.bounds_share
    return whole.budget.part(share), whole.period


def has_own(ledger: Ledger, policy: Policy, analyst: str) -> bool:
    """Whether an analyst has a budget of their own, or is in a group that has one."""
    if policy.limit(analyst) is not None:
        return True
    return any(one.holder != "dataset" for one in ledger.terms(policy.name, analyst=analyst))


def default_delta(ledger: Ledger, policy: Policy, analyst: str) -> float:
    """The delta of a question that states none: a hundredth of the smallest of the budgets that pay for it.

    A budget in rho or mu that an analyst has beside that of the data has no part in it: it admits Gaussian noise.
    """
    terms = ledger.terms(policy.name, analyst=analyst)
    missing = _missing(ledger, policy, analyst)
    others = [one.budget for one in terms if one.holder != "dataset"] + ([] if missing is None else [missing])
    whole = next(one.budget for one in terms if one.holder == "dataset")
    return min([whole.delta, *(budget.delta for budget in others if budget.unit == "epsilon")]) / DELTA_SHARE


def check_delta(ledger: Ledger, policy: Policy, analyst: str, delta: float) -> None:
    """Refuses a question at a larger delta than a budget has in all: it states a promise that nobody was granted.

    Where no step needs it, or Gaussian noise does, a budget would admit such a question. Budgets in rho or mu have no
    delta to compare with.
    """
    refuse_delta(policy, analyst, delta, ledger.terms(policy.name, analyst=analyst))


def refuse_delta(policy: Policy, analyst: str, delta: float, terms: Sequence[Terms]) -> None:
    """The same by the budgets that apply to the analyst, as they are known already."""
    missing = None if any(one.holder == "analyst" for one in terms) else policy.limit(analyst)
    budgets = {one.label: one.budget for one in terms}
    budgets |= {} if missing is None else {label(policy.name, "analyst", analyst): missing}
    for whose, budget in budgets.items():
        if budget.unit == "epsilon" and delta > budget.delta:
            advice = f"the budget of {whose} has no delta: leave it out"
            if budget.delta:
                most = f"has a delta of {budget.delta:g} in all"
                advice = f"the budget of {whose} {most}: pass less, or none for a hundredth of it"
            raise InvalidArgument("delta", delta, advice)


def refusal_of(ledger: Ledger, policy: Policy, cost: Cost, *, analyst: str) -> BudgetExceeded | None:
    """The error that this cost would meet now, or None; charges nothing."""
    denied = ledger.refusal(policy.name, cost, analyst=analyst)
    limit = _unwritten(ledger, policy, analyst)
    if denied is None and limit is not None:
        try:
            Filter(limit).charge(ledger.spent(policy.name, analyst=analyst) + cost)
        except BudgetExceeded as error:
            return error
    return denied


def remaining(ledger: Ledger, policy: Policy, analyst: str, *, after: Cost | None = None) -> float:
    """What is left for an analyst, as `Ledger.remaining` says it."""
    left = ledger.remaining(policy.name, analyst=analyst, after=after)
    limit = _unwritten(ledger, policy, analyst)
    if limit is None:
        return left
    balance = Balance.opening(limit)
    balance = balance.after(balance.amounts(ledger.spent(policy.name, analyst=analyst) + (after or Cost.zero())))
    return within(balance, ledger.budget(policy.name).unit, left) if balance.holds else 0.0


def _unwritten(ledger: Ledger, policy: Policy, analyst: str) -> Budget | None:
    """A budget that counts and is not in the ledger: of somebody new, if it was opened for looking, or for bounds.

    That is written there with the first survey, unless it was stated.
    """
    return _missing(ledger, policy, analyst) if ledger.read_only or analyst == BOUNDS else None


def _missing(ledger: Ledger, policy: Policy, analyst: str) -> Budget | None:
    """The budget that the policy gives an analyst, if the ledger has none for them yet."""
    limit = _share(ledger, policy)[0] if analyst == BOUNDS else policy.limit(analyst)
    if limit is None or any(one.holder == "analyst" for one in ledger.terms(policy.name, analyst=analyst)):
        return None
    return limit
