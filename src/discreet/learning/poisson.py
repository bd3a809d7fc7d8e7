"""Poisson regression of counts, private, in scikit-learn's protocol."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discreet.arguments import positive
from discreet.errors import InvalidArgument
from discreet.learning.glm import PrivateLinearModel
from discreet.learning.inputs import numeric, read_training
from discreet.learning.losses import Poisson
from discreet.learning.rows import products

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Charge

    Reals = NDArray[np.float64]

__all__ = ["PoissonRegressor"]


class PoissonRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Private regression of counts with a logarithmic link: E[y | x] = exp(x . coef_ + intercept_).

    `most` is the largest count that is believed: larger ones are clamped, and predicted rates beyond it are penalised
    in a straight line. The other parameters are those of `LogisticRegression`.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = rng.poisson(np.exp(X[:, 0]))
    >>> model = PoissonRegressor(epsilon=1.0, delta=1e-6, bounds=(-1, 1), most=5).fit(X, y)
    >>> bool(model.coef_[0] > 0.5 and abs(model.coef_[1]) < 0.3)
    True
    """

    coef_: Reals
    intercept_: float

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
        if self.most is None:
            raise InvalidArgument("most", None, "state the largest count that is believed, without looking at the data")
        most = positive("most", self.most)
        account = self._account(charge)
        table, targets = read_training(self, X, y, y_numeric=True)
        counts = numeric(targets)
        if not self._unseen and (counts < 0).any():
            raise InvalidArgument("y", "what was passed", "counts are not negative")
        prepared = self._prepared(goal, table, account)
        loss = Poisson(most=most, ceiling=math.log(most))
        solved = self._solve(loss, prepared, counts, account)
        coefficients, intercept = prepared.scaling.unscaled(solved.weights)
        self.coef_, self.intercept_ = coefficients, float(intercept)
        self._report(solved, prepared, account, ("the largest count",))
        return self

    def predict(self, X: Any) -> Reals:
        """The expected count of every row."""
        check_is_fitted(self)
        return np.exp(np.minimum(products(self._read(X), self.coef_) + self.intercept_, 700.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
