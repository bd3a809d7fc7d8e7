"""What the estimators of generalised linear models share: scaling, purchases and a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import count, nonnegative, one_of, positive
from discreet.errors import InvalidArgument
from discreet.learning.choosing import check_solver, chosen_solver, needs_records
from discreet.learning.convex.hidden import HiddenPlan
from discreet.learning.enough import fewest_records
from discreet.learning.estimator import PrivateEstimator
from discreet.learning.inputs import read_table
from discreet.learning.problem import Facts, Problem
from discreet.learning.purchases import buy_bounds, buy_records, buy_row_norm, worth_buying
from discreet.learning.scaling import Scaling, checked_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.iteration.personal import PersonalCosts
    from discreet.learning.account import Account
    from discreet.learning.convex.solver import Plan
    from discreet.learning.goal import Goal
    from discreet.learning.losses import Loss

    Reals = NDArray[np.float64]

__all__ = ["Prepared", "PrivateLinearModel", "Solved"]

_RECORDS, _BOUNDS, _NORM = 0.02, 0.2, 0.05
"""Shares of the goal for the number of records, all bounds, and the row norm, where these are bought."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows within public bounds, and what is left to spend on learning from them."""

    rows: Reals
    radius: float
    scaling: Scaling
    goal: Goal
    records: int | None
    bought: bool  # the number of records, which is then not exact
    public: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Solved:
    """The weights, by which solver, and why by it."""

    weights: Reals
    solver: str
    plan: Plan
    why: tuple[str, ...]


class PrivateLinearModel(PrivateEstimator):
    """Parameters that all linear models have; see `LogisticRegression` for their meaning."""

    bounds: Any
    row_norm: Any
    n_records: Any
    alpha: Any
    fit_intercept: bool
    solver: Any

    personal_costs_: PersonalCosts
    bounds_: Reals

    def _check_public(self) -> Goal:
        """Refuse, before any data is read, what can be refused."""
        goal = self._goal()
        if self.bounds is None and self.row_norm is None:
            raise InvalidArgument(
                "bounds, row_norm",
                None,
                "one record must have a limited influence. State what is known without looking at the data: "
                "bounds=[(low, high), ...] for the columns (or one pair for all), or row_norm=... for the l2 norm of a "
                "row. Or buy them: bounds='private' spends 20 % of epsilon on them",
            )
        if isinstance(self.bounds, str):
            one_of("bounds", self.bounds, ["private"])
        if isinstance(self.row_norm, str):
            one_of("row_norm", self.row_norm, ["private"])
        elif self.row_norm is not None:
            positive("row_norm", self.row_norm)
        if isinstance(self.n_records, str):
            one_of("n_records", self.n_records, ["private"])
        elif self.n_records is not None:
            count("n_records", self.n_records, least=1)
        if isinstance(self.alpha, str):
            one_of("alpha", self.alpha, ["auto"])
        else:
            nonnegative("alpha", self.alpha)
        check_solver(self.solver)
        return goal

    def _prepared(self, goal: Goal, table: Reals, account: Account, *, labels: Any = None) -> Prepared:
        """Scale the rows by public or bought bounds; everything that is bought is paid for first.

        `labels` are those of all records, where some were left out of the table: how many is not public.
        """
        features, public = table.shape[1], [f"{table.shape[1]} columns"]
        records, bought, constant = None, False, 1.0 if self.fit_intercept else 0.0
        if self.adjacency == "replace-one":
            records = self._number(table if labels is None else labels)
            public.append("the number of records, which stays the same when one is replaced")
        elif isinstance(self.n_records, str) and (
            self._uses_records
            or needs_records(self.solver, features + bool(self.fit_intercept), goal)
            or self._may_buy_norm(features)
        ):
            records, bought = buy_records(goal.share(_RECORDS), table, account), True
        elif self.n_records is not None and not isinstance(self.n_records, str):
            records = self._stated_records()
            public.append("the number of records, as stated")
        if self.bounds is None:
            norm = positive("row_norm", self.row_norm)
            scaling = Scaling.none(features, constant=constant * norm / 2)
            public.append(f"the bound {norm:g} on the norm of a row; longer rows are shortened")
        else:
            if isinstance(self.bounds, str):
                ends = buy_bounds(goal.share(_BOUNDS), table, account)
                self.bounds_ = np.column_stack(ends)  # released: predictions clamp to them too
            else:
                ends = checked_bounds(self.bounds, features, self._names())
                public.append("the bounds of the columns; values beyond are clamped")
            scaling = Scaling.within(ends, constant=constant) if constant else Scaling.through_zero(ends)
            part = goal.share(_NORM)
            if isinstance(self.row_norm, str) or (self._may_buy_norm(features) and worth_buying(part, records)):
                norm = buy_row_norm(part, scaling.norms(table), account, most=scaling.worst_norm)
            elif self.row_norm is None:
                norm = scaling.worst_norm
            else:
                norm = positive("row_norm", self.row_norm)
                public.append(f"the bound {norm:g} on the norm of a scaled row; longer rows are shortened")
        left = goal.after(account.cost) if account.releases else goal
        rows = scaling.rows(table, norm)
        return Prepared(rows, scaling.radius(norm), scaling, left, records, bought, tuple(public))

    def _read(self, X: Any) -> Reals:
        """Rows to predict for, of the columns of the fit, clamped to bounds that were bought."""
        table = read_table(self, X)
        return np.clip(table, *self.bounds_.T) if isinstance(self.bounds, str) else table

    @property
    def _uses_records(self) -> bool:
        """Whether the estimator itself needs the number of records, whatever its solver."""
        return False

    def _stated_records(self) -> int | None:
        return None if isinstance(self.n_records, str | None) else count("n_records", self.n_records, least=1)

    def _may_buy_norm(self, features: int) -> bool:
        """Beside bounds of several columns a row is rarely as long as it might be: its norm is worth buying."""
        return self.bounds is not None and self.row_norm is None and features > 4

    def _facts(self, loss: Loss, prepared: Prepared) -> Facts:
        return Facts(
            loss=loss,
            features=prepared.rows.shape[1],
            row_norm=prepared.radius,
            records=prepared.records,
            alpha=0.0 if isinstance(self.alpha, str) else float(self.alpha),
            adjacency=self.adjacency,
        )

    def _solve(self, loss: Loss, prepared: Prepared, targets: NDArray[Any], account: Account) -> Solved:
        """The weights, for all of the goal that is left."""
        goal, automatic = prepared.goal, isinstance(self.alpha, str)
        solver, facts, why = chosen_solver(self.solver, self._facts(loss, prepared), goal, automatic_alpha=automatic)
        plan = solver.plan(facts, goal)
        return Solved(self._weights(plan, prepared, targets, account), solver.name, plan, why)

    def _weights(self, plan: Plan, prepared: Prepared, targets: NDArray[Any], account: Account) -> Reals:
        """What the plan releases, paid for first."""
        self._check_places(plan)
        if prepared.records is not None and not prepared.bought:
            self._check_enough(prepared.records, prepared.goal, plan.facts.dimension)
        problem = Problem.of(plan.facts, prepared.rows, targets)
        account.pay(*plan.releases)
        return plan.run(problem, verbose=bool(self.verbose), generator=account.generator).weights

    def _check_places(self, plan: Plan) -> None:
        """Refuse a plan of which the number and the order of the records are part, where these are not public."""
        if not isinstance(plan, HiddenPlan):
            return
        if self._unseen:
            raise InvalidArgument(
                "solver", plan.name, "the number and the order of its records would be public; use another solver"
            )
        if isinstance(getattr(self, "classes", None), str):
            raise InvalidArgument(
                "classes",
                "private",
                f"{plan.name} needs every record in its place, and a bought list may leave some out; state classes",
            )

    def _report(self, solved: Solved, prepared: Prepared, account: Account, stated: tuple[str, ...]) -> None:
        """Set `cost_`, `noise_`, `solver_` and `report_`; `stated` are facts that the user gave."""
        fewest = fewest_records(prepared.goal, solved.plan.facts.dimension)
        self._finish(
            self._goal(),
            account,
            solver=solved.solver,
            noise=solved.plan.noise,
            public=(*prepared.public, *stated),
            assumptions=solved.plan.assumptions,
            choices=(*solved.why, *solved.plan.choices, f"noise outweighs what fewer than {fewest} records can say"),
        )
        personal = getattr(solved.plan, "personal_costs", None)
        if personal is not None and account.releases == list(solved.plan.releases):  # nothing else was bought
            self.personal_costs_ = personal
