"""Least squares, plain and with a ridge penalty, private, in scikit-learn's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discreet.arguments import one_of
from discreet.errors import InvalidArgument
from discreet.learning.choosing import chosen_solver
from discreet.learning.convex.functional import FunctionalMechanism
from discreet.learning.convex.solver import Solver
from discreet.learning.convex.statistics import SufficientStatistics
from discreet.learning.glm import PrivateLinearModel, Solved
from discreet.learning.inputs import numeric, read_training
from discreet.learning.losses import Huber, Squared
from discreet.learning.purchases import buy_bounds
from discreet.learning.rows import products
from discreet.learning.scaling import one_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Account, Charge
    from discreet.learning.glm import Prepared
    from discreet.learning.goal import Goal
    from discreet.learning.losses import Loss

    Reals = NDArray[np.float64]

__all__ = ["LinearRegression", "Ridge"]

_TARGETS = 0.1
"""The share of the goal for bounds of the targets, where these are bought."""


class LinearRegression(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Private least squares; `coef_` and `intercept_` are in the units of the columns and of the target.

    `target_bounds`   the pair (low, high) that targets lie in, known without looking; values beyond are clamped.
                      "private" buys it (10 % of the price).
    `bounds`          a pair (low, high) for all columns or one for each; values beyond are clamped. "private" buys it.
    `row_norm`        a bound on the l2 norm of a row (scaled by the bounds, if there are any); longer rows are
                      shortened. Beside bounds of more than four columns it is bought if it is not stated (5 %).
    `solver`          "auto" or "statistics" (`SufficientStatistics`), "functional" (`FunctionalMechanism`), another
                      name, or a solver of `discreet.learning.convex`. Those that need bounded slopes get `Huber`
                      losses that are squares for residuals up to the width of the target bounds.
    `n_records`       needed by some solvers only; None leaves it unknown, "private" buys it.

    The penalty that keeps noise from running away is chosen in every direction from what was released; see the page on
    sufficient statistics. The other parameters are those of `LogisticRegression`.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.uniform(0, 10, (20_000, 2))
    >>> y = 3 * X[:, 0] - X[:, 1] + 5 + rng.normal(0, 1, 20_000)
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6, bounds=(0, 10), target_bounds=(-10, 40)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.cost_.epsilon(1e-6) <= 1.0
    (True, True)
    """

    coef_: Reals
    intercept_: float
    alpha: Any = 0.0

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        row_norm: Any = None,
        target_bounds: Any = None,
        n_records: Any = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        adjacency: str = "add-remove",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.cost = cost
        self.budget = budget
        self.bounds = bounds
        self.row_norm = row_norm
        self.target_bounds = target_bounds
        self.n_records = n_records
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, charge: Charge | None = None) -> LinearRegression:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        goal = self._check_public()
        self._check_targets()
        account = self._account(charge)
        table, targets = read_training(self, X, y, y_numeric=True)
        account.rehearsed_by(self._rehearsal(table))
        targets = numeric(targets)
        low, high = self._target_ends(goal, targets, account)
        prepared = self._prepared(goal, table, account)
        centre = (low + high) / 2 if self.fit_intercept else 0.0
        half = max(high - centre, centre - low) if self.fit_intercept else max(abs(low), abs(high))
        scaled = (np.clip(targets, low, high) - centre) / half
        solved = self._least_squares(prepared, scaled, account)
        coefficients, intercept = prepared.scaling.unscaled(solved.weights)
        self.coef_ = coefficients * half
        self.intercept_ = float(centre + half * intercept) if self.fit_intercept else 0.0
        stated = (
            () if isinstance(self.target_bounds, str) else ("the bounds of the targets; values beyond are clamped",)
        )
        self._report(solved, prepared, account, stated)
        return self

    def _check_targets(self) -> None:
        if self.target_bounds is None:
            raise InvalidArgument(
                "target_bounds",
                None,
                "one target must have a limited influence. State the pair (low, high) that targets lie in, known "
                "without looking at the data; or buy it: target_bounds='private' spends 10 % of epsilon on it",
            )
        if isinstance(self.target_bounds, str):
            one_of("target_bounds", self.target_bounds, ["private"])
        else:
            one_bound("target_bounds", self.target_bounds)

    def _target_ends(self, goal: Goal, targets: Reals, account: Account) -> tuple[float, float]:
        if not isinstance(self.target_bounds, str):
            return one_bound("target_bounds", self.target_bounds)
        low, high = buy_bounds(goal.share(_TARGETS), targets[:, None], account, what="bounds of the target")
        return float(low[0]), float(high[0])

    def _least_squares(self, prepared: Prepared, targets: Reals, account: Account) -> Solved:
        """Weights for rows and targets within [-1, 1]."""
        solver: Any = self.solver
        why: tuple[str, ...] = ()
        if solver in ("auto", "statistics"):
            solver = SufficientStatistics(intercept=bool(self.fit_intercept))
            why = ("sums of products suffice for least squares, and are released once",)
        elif solver == "functional":
            solver = FunctionalMechanism()
        exact = isinstance(solver, SufficientStatistics | FunctionalMechanism)
        # targets and sensible predictions are within [-1, 1]: residuals up to 2 are squares
        loss: Loss = Squared(1.0) if exact else Huber(2.0)
        facts = self._facts(loss, prepared)
        if not isinstance(solver, Solver):
            solver, facts, why = chosen_solver(solver, facts, prepared.goal, automatic_alpha=False)
        plan = solver.plan(facts, prepared.goal)
        return Solved(self._weights(plan, prepared, targets, account), solver.name, plan, why)

    def predict(self, X: Any) -> Reals:
        """x . coef_ + intercept_ of every row."""
        check_is_fitted(self)
        return products(self._read(X), self.coef_) + self.intercept_


class Ridge(LinearRegression):
    """Private least squares with the penalty (alpha / 2) ||w||^2 on the sum of squared residuals / 2.

    As in scikit-learn, but w are the weights of columns scaled by their bounds (to [-1, 1]), and of targets scaled by
    theirs, so that alpha means the same in all units. The intercept is not penalised. All else is `LinearRegression`.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.uniform(0, 10, (20_000, 2))
    >>> y = 3 * X[:, 0] - X[:, 1] + 5 + rng.normal(0, 1, 20_000)
    >>> model = Ridge(alpha=2000.0, epsilon=1.0, delta=1e-6, bounds=(0, 10), target_bounds=(-10, 40)).fit(X, y)
    >>> bool(0 < model.coef_[0] < 3)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        row_norm: Any = None,
        target_bounds: Any = None,
        n_records: Any = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        adjacency: str = "add-remove",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            cost=cost,
            budget=budget,
            bounds=bounds,
            row_norm=row_norm,
            target_bounds=target_bounds,
            n_records=n_records,
            fit_intercept=fit_intercept,
            solver=solver,
            adjacency=adjacency,
            verbose=verbose,
            random_state=random_state,
        )
        self.alpha = alpha
