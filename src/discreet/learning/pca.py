r"""Principal components from one noisy matrix of products, in scikit-learn's protocol.

Rows, centred by the middle of their bounds, get a constant c in one more column. The noisy second moment of these holds
all that is needed: n c^2, c sum x and sum x x^T, released once by the Gaussian mechanism (Laplace for a pure goal).
Means, covariance, eigenvectors and variances are post-processing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.arguments import count, positive
from discreet.errors import InvalidArgument
from discreet.learning.bounded import Bounded, BoundedEstimator
from discreet.learning.convex.moments import SecondMoment
from discreet.learning.inputs import read_table
from discreet.learning.report import Release
from discreet.learning.rows import RowLattice, products
from discreet.learning.scaling import Scaling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Account, Charge
    from discreet.learning.goal import Goal

    Reals = NDArray[np.float64]

__all__ = ["PCA"]


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BoundedEstimator):  # type: ignore[misc]  # no types
    """Private principal components of the covariance matrix, in the units of the columns.

    `bounds`      a pair (low, high) for all columns or one for each; values beyond are clamped. "private" buys them.
    `row_norm`    a bound on the distance of a row from the middle of the bounds, or from zero without bounds; rows
                  further away are drawn nearer. Less of it is less noise. "private" buys one (5 % of the price).

    Noise is the same in every direction, so that wide columns decide, as they do without privacy: scale columns by
    what is known of them. `explained_variance_` holds what is left of noisy variances, at least 0. The other parameters
    are those of all estimators.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.normal(0, 1, (20_000, 1)) * [1.0, 2.0, 0.0] + rng.normal(0, 0.3, (20_000, 3))
    >>> pca = PCA(n_components=1, epsilon=1.0, delta=1e-6, bounds=(-8, 8), row_norm=6).fit(X)
    >>> bool(abs(pca.components_[0] @ np.array([1.0, 2.0, 0.0])) / 5**0.5 > 0.99)
    True
    """

    components_: Reals
    explained_variance_: Reals
    explained_variance_ratio_: Reals
    singular_values_: Reals
    mean_: Reals
    noise_variance_: float
    n_components_: int
    n_samples_: int

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        row_norm: Any = None,
        whiten: bool = False,
        adjacency: str = "add-remove",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.cost = cost
        self.budget = budget
        self.bounds = bounds
        self.row_norm = row_norm
        self.whiten = whiten
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def _placed(self, goal: Goal, table: Reals, account: Account) -> Bounded:
        if self.bounds is not None:
            return self._bounded(goal, table, account, same_units=True)
        norm = positive("row_norm", self.row_norm)
        public = (f"{table.shape[1]} columns", f"the bound {norm:g} on the norm of a row; longer rows are shortened")
        return Bounded(Scaling.none(table.shape[1], constant=0.0), norm, goal, public)

    def fit(self, X: Any, y: Any = None, *, charge: Charge | None = None) -> PCA:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        del y
        by_norm = self.bounds is None and self.row_norm is not None and not isinstance(self.row_norm, str)
        if by_norm:
            positive("row_norm", self.row_norm)
        goal = self._goal() if by_norm else self._check_bounds()
        kept = None if self.n_components is None else count("n_components", self.n_components, least=1)
        account = self._account(charge)
        table = read_table(self, X, reset=True)
        account.rehearsed_by(self._rehearsal(table))
        features = table.shape[1]
        if kept is not None and kept > features:
            raise InvalidArgument("n_components", kept, f"there are {features} columns; pass at most that many")
        placed = self._placed(goal, table, account)
        # half the norm of a row: the means are then as well known as they need to be, at a quarter more noise
        scaling = replace(placed.scaling, constant=placed.norm / 2)
        lattice = RowLattice(scaling.radius(placed.norm))
        release = SecondMoment(lattice, features + 1, placed.goal)
        if self.adjacency == "replace-one":  # an eigenvalue of the noise is as large as a root of the columns
            self._check_enough(self._number(table), placed.goal, features + 1)
        kind = "Laplace" if placed.goal.is_pure else "Gaussian"
        account.pay(
            Release(
                f"the sum of x x^T of {features} columns and a constant",
                release.cost,
                f"the {kind} mechanism on exact sums of products; one record adds ||x||^2 at most",
            )
        )
        noisy = release.release(lattice.place(scaling.rows(table, placed.norm)), generator=account.generator)
        self._set(noisy, release, scaling, kept or features)
        one, beside = release.deviations
        self._finish(
            self._goal(),
            account,
            solver="noisy second moment",
            noise={"squares": one, "products": beside},
            public=placed.public,
            choices=(f"a constant of {scaling.constant:g} in one more column for the means",),
        )
        return self

    def _set(self, noisy: Reals, release: SecondMoment, scaling: Scaling, kept: int) -> None:
        """All attributes from the noisy matrix and public numbers."""
        # the number of records times the square of the constant is at least the noise in it, or one record
        size = max(float(noisy[-1, -1]), release.deviations[0], scaling.constant**2)
        number = size / scaling.constant**2
        means = noisy[:-1, -1] / size * scaling.constant
        values, vectors = np.linalg.eigh(noisy[:-1, :-1] / number - np.outer(means, means))
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        # the largest entry of a component is positive, so that signs are no matter of chance
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])
        total = float(values.sum())
        self.n_components_ = kept
        self.n_samples_ = round(number)
        self.mean_ = scaling.centre + means
        self.components_ = (vectors * signs).T[:kept].copy()
        self.explained_variance_ = values[:kept].copy()
        self.explained_variance_ratio_ = values[:kept] / total if total > 0 else np.full(kept, 1 / len(values))
        self.singular_values_ = np.sqrt(values[:kept] * max(1.0, number - 1))
        self.noise_variance_ = float(values[kept:].mean()) if kept < len(values) else 0.0

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _widths(self) -> Reals:
        """What whitening divides by: never zero."""
        largest = float(self.explained_variance_.max(initial=0.0))
        return np.sqrt(np.maximum(self.explained_variance_, largest * 1e-12 + 1e-300))

    def transform(self, X: Any) -> Reals:
        """The coordinates of every row along the components."""
        check_is_fitted(self)
        # a step after this one must see every record by itself, to the last digit
        turned = products(read_table(self, X) - self.mean_, self.components_.T)
        return turned / self._widths() if self.whiten else turned

    def inverse_transform(self, X: Any) -> Reals:
        """The rows whose coordinates these are."""
        check_is_fitted(self)
        turned = np.asarray(X, dtype=np.float64)
        if turned.ndim != 2 or turned.shape[1] != self.n_components_:
            raise InvalidArgument("X", f"of shape {turned.shape}", f"pass rows of {self.n_components_} coordinates")
        return np.asarray((turned * self._widths() if self.whiten else turned) @ self.components_ + self.mean_)
