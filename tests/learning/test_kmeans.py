"""Private k-means: finds planted clusters, and keeps no record in the model."""

import numpy as np
import pytest
from sklearn import cluster

from discreet import InvalidArgument
from discreet.learning import KMeans
from discreet.learning.kmeans import assigned, starting_centres
from discreet.learning.rows import RowLattice

CENTRES = np.array([[-6.0, -6.0], [6.0, -5.0], [0.0, 7.0], [7.0, 7.0]])


def blobs(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(0, 4, n)] + rng.normal(0, 0.7, (n, 2))


def test_planted_clusters_are_found():
    X = blobs()
    model = KMeans(4, bounds=(-10, 10)).fit(X)
    distances = np.linalg.norm(model.cluster_centers_[:, None] - CENTRES, axis=2)
    assert distances.min(axis=0).max() < 1.0
    exact = cluster.KMeans(4, n_init=10, random_state=0).fit(X).inertia_
    assert -model.score(X) < 1.4 * exact


def test_a_bad_start_far_from_the_data_is_left_behind():
    X = blobs() / 10 + [40.0, -40.0]  # a small corner of what the bounds allow
    model = KMeans(4, bounds=(-50, 50), epsilon=5.0).fit(X)
    assert np.linalg.norm(model.cluster_centers_ - X.mean(axis=0), axis=1).max() < 5


def test_the_model_holds_no_labels_and_predicts_for_rows_that_are_given():
    X = blobs(500)
    model = KMeans(4, bounds=(-10, 10), epsilon=5.0)
    labels = model.fit_predict(X)
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "inertia_")
    assert labels.tolist() == model.predict(X).tolist()
    assert labels.tolist() == model.transform(X).argmin(axis=1).tolist()


def test_a_row_is_assigned_by_itself_whatever_else_is_there():
    rng = np.random.default_rng(1)
    rows = RowLattice(3.0).place(rng.standard_normal((999, 5)))
    centres = rng.standard_normal((7, 5))
    together = assigned(rows, centres)
    for i in (0, 1, 500, 998):
        alone = RowLattice(3.0).place(rows.values()[i : i + 1])
        assert assigned(alone, centres)[0] == together[i]
    values = rows.values()
    slow = [int(np.argmin([np.sum((row - centre) ** 2) for centre in centres])) for row in values]
    assert np.mean(together == slow) > 0.999


def test_starting_centres_are_spread_like_the_data():
    centres = starting_centres(np.array([5.0, 0.0]), np.array([1.0, 3.0]), 8)
    assert len(np.unique(centres.round(3), axis=0)) == 8
    assert np.abs(centres.mean(axis=0) - [5.0, 0.0]).max() < 0.7
    assert centres[:, 1].std() > centres[:, 0].std()


def test_all_rounds_are_in_the_report_and_paid():
    model = KMeans(3, bounds=(-10, 10), max_iter=4).fit(blobs(300))
    assert model.n_iter_ == 4
    assert len(model.report_.releases) == 3 + 4 * 2


@pytest.mark.parametrize("wrong", [{"n_clusters": 0}, {"max_iter": 0}, {"n_clusters": 2.5}, {"row_norm": -1.0}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        KMeans(**{"bounds": (-1, 1), **wrong}).fit(blobs(20))
