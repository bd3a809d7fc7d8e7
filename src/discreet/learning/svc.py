"""A linear support vector machine, private, in scikit-learn's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import positive
from discreet.learning.classes import chosen_classes, encoded
from discreet.learning.hinges import MulticlassHinge, SmoothedHinge
from discreet.learning.inputs import read_training
from discreet.learning.logistic import LinearClassifier

if TYPE_CHECKING:
    from discreet.learning.account import Charge

__all__ = ["LinearSVC"]


class LinearSVC(LinearClassifier):
    """A private linear support vector machine with a smoothed hinge; that of Crammer and Singer for several classes.

    `width` is that of the parabola that rounds off the corner of the hinge: smaller is closer to the hinge, and less
    smooth. The other parameters are those of `LogisticRegression`. All classes are learned in one problem, in which one
    record pulls no harder than in logistic regression; one problem for each class would divide the price by their
    number.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "left", "right")
    >>> model = LinearSVC(epsilon=1.0, delta=1e-6, bounds=(-1, 1), classes=["left", "right"]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
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
        width: float = 0.5,
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
        self.width = width
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, charge: Charge | None = None) -> LinearSVC:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        goal, width = self._check_public(), positive("width", self.width)
        account = self._account(charge)
        table, labels = read_training(self, X, y)
        account.rehearsed_by(self._rehearsal(table))
        classes = chosen_classes(self.classes, labels, goal, account, unseen=self._unseen)
        table, places = encoded(table, labels, classes)
        prepared = self._prepared(goal, table, account, labels=labels)
        number = len(classes)
        loss = SmoothedHinge(width) if number == 2 else MulticlassHinge(outputs=number, width=width)
        solved = self._solve(loss, prepared, places, account)
        coefficients, intercept = prepared.scaling.unscaled(solved.weights)
        self.classes_ = classes
        self.coef_ = np.atleast_2d(coefficients.T)
        self.intercept_ = np.atleast_1d(intercept)
        self._report(solved, prepared, account, self._stated_classes())
        return self
