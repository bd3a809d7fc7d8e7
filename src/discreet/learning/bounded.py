"""What estimators of bounded columns share: their bounds are stated or bought, never read off the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.arguments import one_of, positive
from discreet.errors import InvalidArgument
from discreet.learning.estimator import PrivateEstimator
from discreet.learning.purchases import buy_bounds, buy_row_norm
from discreet.learning.scaling import Scaling, checked_bounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.learning.account import Account
    from discreet.learning.goal import Goal

    Reals = NDArray[np.float64]

__all__ = ["Bounded", "BoundedEstimator"]

_BOUNDS, _NORM = 0.2, 0.05
"""Shares of the goal for all bounds and for the row norm, where these are bought."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """How columns are scaled, the norm of scaled rows, what is left to spend, and what was taken as public."""

    scaling: Scaling
    norm: float
    goal: Goal
    public: tuple[str, ...]


class BoundedEstimator(PrivateEstimator):
    """Estimators with a parameter `bounds`, and `row_norm` if they use the length of rows."""

    bounds: Any
    row_norm: Any = None

    def _check_bounds(self) -> Goal:
        """Refuse, before any data is read, what can be refused."""
        goal = self._goal()
        if self.bounds is None:
            raise InvalidArgument(
                "bounds",
                None,
                "one record must have a limited influence. State what is known without looking at the data, "
                "bounds=[(low, high), ...] for the columns or one pair for all; or buy them: bounds='private' spends "
                "20 % of epsilon on them",
            )
        if isinstance(self.bounds, str):
            one_of("bounds", self.bounds, ["private"])
        if isinstance(self.row_norm, str):
            one_of("row_norm", self.row_norm, ["private"])
        elif self.row_norm is not None:
            positive("row_norm", self.row_norm)
        return goal

    def _bounded(
        self, goal: Goal, table: Reals, account: Account, *, same_units: bool = False, constant: float = 0.0
    ) -> Bounded:
        """Columns scaled to [-1, 1], or only centred for `same_units`; what is bought is paid for first."""
        features, public = table.shape[1], [f"{table.shape[1]} columns"]
        if isinstance(self.bounds, str):
            ends = buy_bounds(goal.share(_BOUNDS), table, account)
        else:
            ends = checked_bounds(self.bounds, features, self._names())
            public.append("the bounds of the columns; values beyond are clamped")
        scaling = Scaling.between(ends, same_units=same_units, constant=constant)
        norm = scaling.worst_norm
        if isinstance(self.row_norm, str):
            norm = buy_row_norm(goal.share(_NORM), scaling.norms(table), account, most=norm)
        elif self.row_norm is not None:
            norm = min(norm, positive("row_norm", self.row_norm))
            public.append(f"the bound {norm:g} on the norm of a centred row; longer rows are shortened")
        left = goal.after(account.cost) if account.releases else goal
        return Bounded(scaling, norm, left, tuple(public))
