r"""k-means by Lloyd's rounds with noisy counts and sums, in scikit-learn's protocol.

The first release is the noisy mean and variance of all records; the centres begin as those of a cloud of public points
with that mean and variance. Then, a few times, every record goes to its nearest centre, and the noisy number and sum of
the records of each centre move it [Su et al. 2016]. A record is in one group in every round. Which one is computed from
exact products (`Rows.margins`), and so from the record and the centres alone. All sums are exact; the rest is
post-processing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.arguments import count
from discreet.errors import InvalidArgument
from discreet.learning.bounded import BoundedEstimator
from discreet.learning.inputs import read_table
from discreet.learning.progress import shown
from discreet.learning.rows import RowLattice
from discreet.learning.tallies import BOX, GroupTally, box_rows
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Account, Charge
    from discreet.learning.rows import Rows
    from discreet.learning.scaling import Scaling

    Reals = NDArray[np.float64]

__all__ = ["KMeans", "assigned", "starting_centres"]

_FIRST = 0.15
"""The share of the price for the mean and the variance of all records."""
_CLOUD = 2000


def _cloud(mean: Reals, deviation: Reals) -> Reals:
    """Public points that are spread like a Gaussian of this mean and deviation: an additive recurrence, no chance."""
    features = len(mean)
    root = 2.0
    for _ in range(60):  # the root of x^(d+1) = x + 1
        root = (1 + root) ** (1 / (features + 1))
    steps = root ** -np.arange(1.0, features + 1)
    uniform = (0.5 + np.arange(1, _CLOUD + 1)[:, None] * steps) % 1.0
    return np.asarray(mean + deviation * ndtri(np.clip(uniform, 1e-4, 1 - 1e-4)))


def _nearest(points: Reals, centres: Reals) -> NDArray[np.intp]:
    return np.asarray((points @ (2 * centres.T) - np.sum(centres**2, axis=1)).argmax(axis=1))


def starting_centres(mean: Reals, deviation: Reals, number: int) -> Reals:
    """The centres of a public cloud with this mean and deviation, by Lloyd's rounds without noise."""
    cloud = _cloud(mean, deviation)
    if number >= len(cloud):
        return cloud[np.arange(number) % len(cloud)]
    centres = cloud[:number].copy()
    for _ in range(20):
        places = _nearest(cloud, centres)
        for place in range(number):
            members = cloud[places == place]
            if len(members):
                centres[place] = members.mean(axis=0)
    return centres


def assigned(rows: Rows, centres: Reals) -> NDArray[np.intp]:
    """The nearest centre of every row, from exact products: a function of the row itself and of the centres."""
    scores = rows.margins(2 * centres.T) - np.sum(centres**2, axis=1)
    return np.asarray(scores.argmax(axis=1))


def _start(whole: GroupTally, scaling: Scaling, table: Reals, account: Account, number: int) -> tuple[Reals, Reals]:
    """Starting centres, and the deviation of every column, from the noisy mean and variance of all records."""
    half = (scaling.high - scaling.low) / 2
    everyone = np.zeros(len(table), dtype=np.intp)
    noisy = whole.release(box_rows(scaling.scaled(table) / half), everyone, generator=account.generator)
    assert noisy.squares is not None
    records = max(1.0, float(noisy.counts[0]), whole.deviations["sums"] / BOX)
    mean = np.clip(noisy.sums[0] / BOX / records, -1.0, 1.0)
    floor = min(1.0, whole.deviations["squares"] / BOX**2 / records)
    deviation = np.sqrt(np.clip(noisy.squares[0] / BOX**2 / records - mean**2, floor, 1.0))
    return starting_centres(mean * half, deviation * half, number), deviation * half


def _moved(centres: Reals, counts: Reals, sums: Reals, *, noise: float, spread: Reals) -> Reals:
    """Centres on the way to the noisy means of their records: as far as these are better known than records are spread.

    A mean of n records has the noise sigma / n; where a centre is uncertain by s, n^2 / (n^2 + (sigma / s)^2) of the
    way is best. So centres of few records stay where they are.
    """
    records = np.maximum(counts, 1.0)[:, None]
    blur = noise / math.sqrt(float(np.mean(spread**2)))
    share = records**2 / (records**2 + blur**2)
    return np.asarray(centres + share * (sums / records - centres))


def _reseed(centres: Reals, counts: Reals, *, least: float, spread: Reals, turn: int) -> None:
    """Put centres that attract next to nobody beside those that attract most: splitting these may be worth more."""
    crowded = np.argsort(-counts)
    empty = [place for place in crowded[::-1] if counts[place] < least]
    for which, place in enumerate(empty[: len(centres) // 2]):
        signs = np.where((np.arange(len(spread)) * (which + 1) + turn) % 2 == 0, 1.0, -1.0)
        centres[place] = centres[crowded[which]] + 0.3 * spread * signs


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BoundedEstimator):  # type: ignore[misc]
    """Private k-means: `cluster_centers_` of records within bounds.

    `bounds`      a pair (low, high) for all columns or one for each; values beyond are clamped. "private" buys them.
    `row_norm`    a bound on the distance of a row from the middle of the bounds; rows further away are drawn nearer.
                  Less of it is less noise. "private" buys one (5 % of the price).
    `max_iter`    how many rounds there are; they share the price.

    Distances are in the units of the columns: scale them by what is known of them. There is no `labels_` and no
    `inertia_`, which would put every record into the model; `predict` and `score` give them for rows that you hold. The
    other parameters are those of all estimators.

    >>> rng = np.random.default_rng(7)
    >>> X = rng.normal(0, 0.5, (9000, 2)) + np.repeat([[-3, 0], [3, 0], [0, 4]], 3000, axis=0)
    >>> model = KMeans(n_clusters=3, epsilon=1.0, delta=1e-6, bounds=(-6, 6)).fit(X)
    >>> distances = np.linalg.norm(model.cluster_centers_[:, None] - np.array([[-3, 0], [3, 0], [0, 4]]), axis=2)
    >>> bool(distances.min(axis=0).max() < 0.3)
    True
    """

    cluster_centers_: Reals
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        bounds: Any = None,
        row_norm: Any = None,
        max_iter: int = 6,
        adjacency: str = "add-remove",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.cost = cost
        self.budget = budget
        self.bounds = bounds
        self.row_norm = row_norm
        self.max_iter = max_iter
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, charge: Charge | None = None) -> KMeans:
        """Fit privately; `charge` (`curator.charge`, say) is asked to pay for every release before it is made."""
        del y
        goal = self._check_bounds()
        number, rounds = count("n_clusters", self.n_clusters, least=1), count("max_iter", self.max_iter, least=1)
        account = self._account(charge)
        table = read_table(self, X, reset=True)
        account.rehearsed_by(self._rehearsal(table))
        if self.adjacency == "replace-one" and self._number(table) < number:
            raise InvalidArgument("n_clusters", number, f"there are {len(table)} records; pass at most that many")
        bounded = self._bounded(goal, table, account, same_units=True)
        scaling, features = bounded.scaling, table.shape[1]
        half = (scaling.high - scaling.low) / 2
        first, *others = bounded.goal.divided(_FIRST, *[(1 - _FIRST) / rounds] * rounds)
        lattice = RowLattice(bounded.norm)
        reach = Fraction(lattice.reach)
        # what makes the error of a centre smallest if centres are about a third of the way out
        sums = math.sqrt(features) / (math.sqrt(features) + 0.3)
        tally = GroupTally(number, features, root_above(features) * reach, reach, others[0], (1 - sums, sums, 0.0))
        whole = GroupTally.of_box(1, features, first, (0.1, 0.5, 0.4))
        if self.adjacency == "replace-one":
            self._check_enough(self._number(table), bounded.goal, features)
        account.pay(*whole.releases)
        centres, spread = _start(whole, scaling, table, account, number)
        rows = lattice.place(scaling.scaled(table))
        noise = tally.deviations["sums"] * lattice.step
        for left in shown(range(rounds - 1, -1, -1), "k-means", verbose=bool(self.verbose)):
            account.pay(*tally.releases)
            noisy = tally.release(rows.steps.astype(np.int64), assigned(rows, centres), generator=account.generator)
            least = 3 * tally.deviations["counts"]
            moved = _moved(centres, noisy.counts, noisy.sums * lattice.step, noise=noise, spread=spread)
            if left:
                _reseed(moved, noisy.counts, least=least, spread=spread, turn=left)
            centres = np.clip(moved, -half, half)
        self.cluster_centers_ = scaling.centre + centres
        self.n_iter_ = rounds
        sizes = tally.deviations
        self._finish(
            self._goal(),
            account,
            solver="Lloyd's rounds with noisy counts and sums",
            noise={"counts": sizes["counts"], "sums": sizes["sums"] * lattice.step},
            public=bounded.public,
            choices=(f"{rounds} rounds of equal price, after {_FIRST:.0%} for the mean and variance of all records",),
        )
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The nearest centre of every row."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None, *, charge: Charge | None = None) -> NDArray[np.intp]:
        """Fit, and give the nearest centre of every row: these are not private, and not kept in the model."""
        return self.fit(X, y, charge=charge).predict(X)

    def transform(self, X: Any) -> Reals:
        """The distances of every row to all centres."""
        check_is_fitted(self)
        table = read_table(self, X)
        return np.column_stack([np.sqrt(np.sum((table - centre) ** 2, axis=1)) for centre in self.cluster_centers_])

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances of these rows to their nearest centres. Not private."""
        del y
        return -float(np.sum(self.transform(X).min(axis=1) ** 2))
