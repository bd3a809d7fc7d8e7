"""What prices, and what is left of a budget, mean: one sentence each, wherever they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting import Budget

__all__ = ["meaning", "meanings"]


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


def meanings(budgets: Sequence[Budget]) -> list[str]:
    """The sentences that these budgets need, each with the budgets that it is about if there are several.

    >>> from discreet import Budget
    >>> for line in meanings([Budget(rho=0.5), Budget(epsilon=1.0), Budget(rho=0.1)]):
    ...     print(line)
    Budgets in rho: left is the largest rho that one more release may have; charges add up.
    Budgets in epsilon: left is the largest epsilon that one more release may have; charges add up.
    """
    about = {
        meaning(budget): f"Budgets in {budget.unit}{' with a delta' if budget.delta > 0 else ''}" for budget in budgets
    }
    if len(about) == 1:
        return list(about)
    return [f"{whose}: {line[:1].lower()}{line[1:]}" for line, whose in about.items()]
