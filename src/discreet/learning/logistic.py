"""Logistic regression: binary and multinomial, private, in scikit-learn's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discreet.learning.classes import chosen_classes, encoded
from discreet.learning.glm import PrivateLinearModel
from discreet.learning.inputs import read_training
from discreet.learning.losses import Logistic, Softmax, probabilities
from discreet.learning.rows import products

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Charge

    Reals = NDArray[np.float64]

__all__ = ["LinearClassifier", "LogisticRegression"]


class LinearClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Predictions from `coef_` and `intercept_`."""

    classes: Any
    classes_: NDArray[Any]
    coef_: Reals
    intercept_: Reals

    def decision_function(self, X: Any) -> Reals:
        """The margins: one column for two classes, else one for each class."""
        check_is_fitted(self)
        margins = products(self._read(X), self.coef_.T) + self.intercept_
        return np.asarray(margins[:, 0] if len(self.classes_) == 2 else margins)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of every row."""
        margins = self.decision_function(X)
        chosen = (margins > 0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def _stated_classes(self) -> tuple[str, ...]:
        return () if isinstance(self.classes, str) else ("the list of classes",)


class LogisticRegression(LinearClassifier):
    """Private logistic regression, multinomial for more than two classes.

    `epsilon` and `delta` (or `cost=Cost...`, `budget=Budget(...)`) say what the fit may reveal about one record, all
    purchases included; delta=0 (or None) asks for pure epsilon. What is known about the data beforehand is stated, and
    never taken from the data:

    `bounds`      a pair (low, high) for all columns or one for each, in a list, or by their names in a dict or a frame
                  if X has names; values beyond are clamped. "private" buys them.
    `row_norm`    a bound on the l2 norm of a row (scaled by the bounds, if there are any); longer rows are shortened.
                  Beside bounds of more than four columns it is bought if it is not stated (5 % of the price).
    `classes`     the list of labels; "private" buys those that are common.
    `n_records`   how many records there are; "private", the default, buys it (2 %) where it is needed and not public.
    `alpha`       the penalty alpha/2 ||w||^2 on the sum of losses, or "auto".
    `solver`      "auto", a name, or a solver of `discreet.learning.convex`. Those with hidden iterates, like "pnsgd",
                  set `personal_costs_`, the cost of every record by its position, if nothing was bought besides.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), classes=[False, True]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.cost_.epsilon(1e-6) <= 1.0
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        row_norm: Any = None,
        classes: Any = None,
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
        self.classes = classes
        self.n_records = n_records
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, charge: Charge | None = None) -> LogisticRegression:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        goal = self._check_public()
        account = self._account(charge)
        table, labels = read_training(self, X, y)
        account.rehearsed_by(self._rehearsal(table))
        classes = chosen_classes(self.classes, labels, goal, account, unseen=self._unseen)
        table, targets = encoded(table, labels, classes)
        prepared = self._prepared(goal, table, account, labels=labels)
        loss = Logistic() if len(classes) == 2 else Softmax(outputs=len(classes))
        solved = self._solve(loss, prepared, targets, account)
        coefficients, intercept = prepared.scaling.unscaled(solved.weights)
        self.classes_ = classes
        self.coef_ = np.atleast_2d(coefficients.T)
        self.intercept_ = np.atleast_1d(intercept)
        self._report(solved, prepared, account, self._stated_classes())
        return self

    def predict_proba(self, X: Any) -> Reals:
        """The probability of every class."""
        margins = self.decision_function(X)
        if margins.ndim == 1:
            return np.column_stack([expit(-margins), expit(margins)])
        return probabilities(margins)

    def predict_log_proba(self, X: Any) -> Reals:
        """Its logarithm."""
        return np.log(self.predict_proba(X))
