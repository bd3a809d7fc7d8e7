"""What prices, and what is left of a budget, mean: one sentence each, wherever they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.accounting import Budget

__all__ = ["meaning"]


def meaning(budget: Budget) -> str:
    """How what is left of this budget relates to the prices of questions.

    >>> from discreet import Budget
    >>> meaning(Budget(rho=0.5))
    'Left is the largest rho that one more release may have; charges add up.'
    """
    if budget.unit == "epsilon" and budget.delta > 0:
        return (
            "Left is the largest epsilon that one more release may have if its delta is 0. Charges are composed at the "
            "budget's delta, not added up: together they often use up less than their prices."
        )
    added = "the squares of charges add up" if budget.unit == "mu" else "charges add up"
    return f"Left is the largest {budget.unit} that one more release may have; {added}."
