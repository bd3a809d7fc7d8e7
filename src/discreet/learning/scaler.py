"""Columns brought to mean 0 and variance 1 by noisy means and variances, in scikit-learn's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.arguments import count, one_of
from discreet.learning.bounded import BoundedEstimator
from discreet.learning.inputs import read_table
from discreet.learning.tallies import BOX, GroupTally, box_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Charge

    Reals = NDArray[np.float64]

__all__ = ["StandardScaler"]

_SHARES = 0.06, 0.54, 0.4
"""Of the price: for the number of records, sums, and sums of squares."""


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, BoundedEstimator):  # type: ignore[misc]  # no types
    """Private scaling: (x - mean_) / scale_, with noisy means and variances of clamped columns.

    `bounds`      a pair (low, high) for all columns or one for each; values beyond are clamped. "private" buys them.
    `n_records`   how many records there are, if that is public; "private", the default, releases it with noise.

    A variance that drowns in its noise is replaced by the size of that noise, so that no scale is zero. `epsilon`,
    `delta`, `cost`, `budget`, `adjacency` are those of all estimators.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.normal([5.0, -1.0], [2.0, 0.5], (20_000, 2))
    >>> scaler = StandardScaler(epsilon=1.0, delta=1e-6, bounds=[(-5, 15), (-4, 2)]).fit(X)
    >>> bool(np.abs(scaler.mean_ - [5.0, -1.0]).max() < 0.1), bool(np.abs(scaler.scale_ / [2.0, 0.5] - 1).max() < 0.1)
    (True, True)
    """

    mean_: Reals
    var_: Reals
    scale_: Reals
    n_samples_seen_: int

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        n_records: Any = "private",
        with_mean: bool = True,
        with_std: bool = True,
        adjacency: str = "add-remove",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.cost = cost
        self.budget = budget
        self.bounds = bounds
        self.n_records = n_records
        self.with_mean = with_mean
        self.with_std = with_std
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, charge: Charge | None = None) -> StandardScaler:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        del y
        goal = self._check_bounds()
        records = None
        if isinstance(self.n_records, str):
            one_of("n_records", self.n_records, ["private"])
        elif self.n_records is not None:
            records = count("n_records", self.n_records, least=1)
        account = self._account(charge)
        table = read_table(self, X, reset=True)
        account.rehearsed_by(self._rehearsal(table))
        bounded = self._bounded(goal, table, account)
        public = bounded.public
        if self.adjacency == "replace-one":
            records = self._number(table)
            public = (*public, "the number of records, which stays the same when one is replaced")
        elif records is not None:
            public = (*public, "the number of records, as stated")
        features = table.shape[1]
        if records is not None:
            self._check_enough(records, bounded.goal, 2 * features)
        shares = _SHARES if records is None else (0.0, *_SHARES[1:])
        tally = GroupTally.of_box(1, features, bounded.goal, shares)
        account.pay(*tally.releases)
        noisy = tally.release(
            box_rows(bounded.scaling.scaled(table)),
            np.zeros(len(table), dtype=np.intp),
            records=records,
            generator=account.generator,
        )
        assert noisy.squares is not None
        number = max(1.0, float(noisy.counts[0]))
        means = np.clip(noisy.sums[0] / BOX / number, -1.0, 1.0)
        variances = noisy.squares[0] / BOX**2 / number - means**2
        # what is below the noise cannot be told from zero
        floor = min(1.0, tally.deviations["squares"] / BOX**2 / number)
        variances = np.clip(variances, floor, 1.0)
        centre, half = bounded.scaling.centre, bounded.scaling.half
        self.mean_ = centre + half * means
        self.var_ = variances * half**2
        self.scale_ = np.sqrt(variances) * half
        self.n_samples_seen_ = round(number)
        deviations = tally.deviations
        noise = {
            "mean": deviations["sums"] / BOX / number * float(half.max()),
            "variance": deviations["squares"] / BOX**2 / number * float(half.max()) ** 2,
        }
        self._finish(self._goal(), account, solver="noisy sums and squares", noise=noise, public=public)
        return self

    def transform(self, X: Any) -> Reals:
        """(x - mean_) / scale_ of every row, values beyond the bounds included as they are."""
        check_is_fitted(self)
        table = read_table(self, X)
        if self.with_mean:
            table = table - self.mean_
        return table / self.scale_ if self.with_std else table

    def inverse_transform(self, X: Any) -> Reals:
        """x scale_ + mean_ of every row."""
        check_is_fitted(self)
        table = read_table(self, X)
        if self.with_std:
            table = table * self.scale_
        return table + self.mean_ if self.with_mean else table
