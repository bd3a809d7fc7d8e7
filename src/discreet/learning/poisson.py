"""Poisson regression of counts, private, in scikit-learn's protocol."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discreet.arguments import one_of, positive
from discreet.errors import InvalidArgument
from discreet.learning.glm import PrivateLinearModel
from discreet.learning.inputs import numeric, read_training
from discreet.learning.losses import Poisson
from discreet.learning.purchases import buy_most, buy_total, worth_buying
from discreet.learning.rows import products

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Charge

    Reals = NDArray[np.float64]

__all__ = ["PoissonRegressor"]

_MOST, _TOTAL = 0.05, 0.02
"""Shares of the goal for the bound on counts and for their sum."""
_TIGHT, _LARGEST = 4.0, 2.0**30
_STEEPER = 1.5
"""Where covariates matter, the loss is more curved than at the mean; steps for that swing less."""


def _mean(total: float, noise: float, records: int | None, most: float) -> float:
    """The mean count, from noisy numbers: not below what noise alone makes of nothing, nor near the bound."""
    if records is None:
        return most / 4
    return min(max(total, 2 * noise, 1e-6 * most * records) / records, most / 2)


class PoissonRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Private regression of counts with a logarithmic link: E[y | x] = exp(x . coef_ + intercept_).

    `most` is the largest count that could be, known without looking at the data, and may be generous: counts are cut at
    `most_`, about 2.5 times what 90 % of them do not exceed, which is bought within it (5 % of the price) where that is
    more than a guess. No rate beyond it is predicted. "private" states nothing but that counts are up to 2^30. Fits
    start at the mean count, which is bought as well (2 %, and 2 % for the number of records), and `alpha` is relative
    to it: losses are divided by the mean. The other parameters are those of `LogisticRegression`.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = rng.poisson(np.exp(X[:, 0]))
    >>> model = PoissonRegressor(epsilon=1.0, delta=1e-6, bounds=(-1, 1), most=5).fit(X, y)
    >>> bool(model.coef_[0] > 0.5 and abs(model.coef_[1]) < 0.3)
    True
    """

    coef_: Reals
    intercept_: float
    most_: float

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        row_norm: Any = None,
        most: Any = None,
        n_records: Any = "private",
        alpha: Any = "auto",
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
        self.most = most
        self.n_records = n_records
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, charge: Charge | None = None) -> PoissonRegressor:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        goal = self._check_public()
        most = self._most()
        account = self._account(charge)
        table, targets = read_training(self, X, y, y_numeric=True)
        account.rehearsed_by(self._rehearsal(table))
        counts = numeric(targets)
        if not self._unseen and (counts < 0).any():
            raise InvalidArgument("y", "what was passed", "counts are not negative")
        part = goal.share(_MOST)
        known = self._number(counts) if self.adjacency == "replace-one" else self._stated_records()
        if isinstance(self.most, str) or (most > _TIGHT and worth_buying(part, known)):
            most = buy_most(part, counts, account, most=most)
        total, noise = buy_total(goal.share(_TOTAL), counts, account, most=most)
        prepared = self._prepared(goal, table, account)
        mean = _mean(total, noise, prepared.records, most)
        # rates in units of the mean: margin zero, where fits start, is the mean, and the curvature there is 1
        unit = mean if self.fit_intercept else 1.0
        loss = Poisson(most=most / unit, ceiling=math.log(most / unit), usual=_STEEPER * mean / unit)
        solved = self._solve(loss, prepared, np.clip(counts, 0.0, most) / unit, account)
        coefficients, intercept = prepared.scaling.unscaled(solved.weights)
        self.coef_, self.intercept_ = coefficients, float(intercept) + math.log(unit)
        self.most_ = most
        why = f"counts up to {most:.4g}, and steps for rates about {mean:.4g}"
        stated = () if isinstance(self.most, str) else ("the largest count",)
        self._report(replace(solved, why=(*solved.why, why)), prepared, account, stated)
        return self

    def _most(self) -> float:
        """The largest count that could be."""
        if self.most is None:
            raise InvalidArgument(
                "most",
                None,
                "state the largest count that could be, without looking at the data; it may be generous. Or buy it: "
                "most='private' spends 5 % of epsilon on it",
            )
        if isinstance(self.most, str):
            one_of("most", self.most, ["private"])
            return _LARGEST
        if positive("most", self.most) > _LARGEST:
            raise InvalidArgument("most", self.most, "pass a number up to 2^30")
        return float(self.most)

    @property
    def _uses_records(self) -> bool:
        return True

    def predict(self, X: Any) -> Reals:
        """The expected count of every row, at most `most_`."""
        check_is_fitted(self)
        margins = products(self._read(X), self.coef_) + self.intercept_
        return np.minimum(np.exp(np.minimum(margins, 700.0)), self.most_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
