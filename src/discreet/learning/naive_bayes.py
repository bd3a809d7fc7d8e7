"""Gaussian naive Bayes from noisy counts, sums and squares of every class, in scikit-learn's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discreet.arguments import nonnegative
from discreet.errors import InvalidArgument
from discreet.learning.bounded import BoundedEstimator
from discreet.learning.classes import chosen_classes, encoded
from discreet.learning.inputs import read_table, read_training
from discreet.learning.tallies import BOX, GroupTally, Tally, box_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Charge

    Reals = NDArray[np.float64]

__all__ = ["GaussianNB"]

_SHARES = 0.1, 0.5, 0.4
"""Of the price: for numbers of records, sums, and sums of squares."""


class GaussianNB(ClassifierMixin, BoundedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Private Gaussian naive Bayes: every class has a share, and a mean and a variance of every column.

    `bounds`          a pair (low, high) for all columns or one for each; values beyond are clamped. "private" buys it.
    `classes`         the list of labels; "private" buys those that are common.
    `priors`          the shares of the classes, if these are known; else they are learned.
    `var_smoothing`   this part of a column's squared half-width is added to its variances.

    Classes of few records are drawn towards all records together, by as much as the noise is worth. `epsilon`, `delta`,
    `cost`, `budget`, `adjacency` are those of all estimators.

    >>> rng = np.random.default_rng(7)
    >>> y = rng.integers(0, 2, 4000)
    >>> X = rng.normal(2.0 * y[:, None], 1.0, (4000, 3))
    >>> model = GaussianNB(epsilon=1.0, delta=1e-6, bounds=(-4, 6), classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    classes_: NDArray[Any]
    theta_: Reals
    var_: Reals
    class_prior_: Reals
    class_count_: Reals

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        classes: Any = None,
        priors: Any = None,
        var_smoothing: float = 1e-3,
        adjacency: str = "add-remove",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.cost = cost
        self.budget = budget
        self.bounds = bounds
        self.classes = classes
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, charge: Charge | None = None) -> GaussianNB:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        goal = self._check_bounds()
        nonnegative("var_smoothing", self.var_smoothing)
        account = self._account(charge)
        table, labels = read_training(self, X, y)
        account.rehearsed_by(self._rehearsal(table))
        classes = chosen_classes(self.classes, labels, goal, account, unseen=self._unseen)
        priors = self._stated_priors(len(classes))
        table, places = encoded(table, labels, classes)
        bounded = self._bounded(goal, table, account)
        scaling, features = bounded.scaling, table.shape[1]
        tally = GroupTally.of_box(len(classes), features, bounded.goal, _SHARES)
        if self.adjacency == "replace-one":
            self._check_enough(self._number(labels), bounded.goal, 2 * features)
        account.pay(*tally.releases)
        noisy = tally.release(box_rows(scaling.scaled(table)), places, generator=account.generator)
        means, variances = self._moments(noisy, tally.deviations)
        counts = np.maximum(noisy.counts, 0.0)
        self.classes_ = classes
        self.class_count_ = counts
        # a class is never impossible: it counts as half a record at least
        self.class_prior_ = (counts + 0.5) / (counts + 0.5).sum() if priors is None else priors
        self.theta_ = scaling.centre + scaling.half * means
        self.var_ = (variances + self.var_smoothing) * scaling.half**2
        noise = {
            "counts": tally.deviations["counts"],
            "sums": tally.deviations["sums"] / BOX * float(scaling.half.max()),
            "squares": tally.deviations["squares"] / BOX**2 * float(scaling.half.max()) ** 2,
        }
        public = bounded.public if isinstance(self.classes, str) else (*bounded.public, "the list of classes")
        self._finish(self._goal(), account, solver="noisy counts, sums and squares", noise=noise, public=public)
        return self

    def _stated_priors(self, number: int) -> Reals | None:
        if self.priors is None:
            return None
        shares: Reals = np.asarray(self.priors, dtype=np.float64)
        if shares.shape != (number,) or not (shares > 0).all() or not abs(float(shares.sum()) - 1) < 1e-6:
            raise InvalidArgument("priors", self.priors, f"pass {number} positive numbers that add up to 1")
        return np.asarray(shares / shares.sum())

    def _moments(self, noisy: Tally, deviations: dict[str, float]) -> tuple[Reals, Reals]:
        """Means and variances of scaled columns by class, drawn towards those of all records as noise suggests."""
        assert noisy.squares is not None
        sums, squares = noisy.sums / BOX, noisy.squares / BOX**2
        total = max(1.0, float(noisy.counts.sum()))
        overall = np.clip(sums.sum(axis=0) / total, -1.0, 1.0)
        square = np.clip(squares.sum(axis=0) / total, overall**2, 1.0)
        weight = deviations["sums"] / BOX  # as many records' worth as the noise can hide
        counts = np.maximum(noisy.counts, 0.0)[:, None] + weight
        means = np.clip((sums + weight * overall) / counts, -1.0, 1.0)
        floor = np.minimum(1.0, deviations["squares"] / BOX**2 / counts)
        variances = np.clip((squares + weight * square) / counts - means**2, floor, 1.0)
        return means, variances

    def _joint(self, X: Any) -> Reals:
        check_is_fitted(self)
        table = read_table(self, X)
        joint = np.empty((len(table), len(self.classes_)))
        for place, (mean, variance) in enumerate(zip(self.theta_, self.var_, strict=True)):
            fit = -0.5 * np.sum(np.log(2 * np.pi * variance)) - 0.5 * ((table - mean) ** 2 / variance).sum(axis=1)
            joint[:, place] = np.log(self.class_prior_[place]) + fit
        return joint

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of every row."""
        joint = self._joint(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def predict_log_proba(self, X: Any) -> Reals:
        """The logarithm of the probability of every class."""
        joint = self._joint(X)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Reals:
        """The probability of every class."""
        return np.exp(self.predict_log_proba(X))
