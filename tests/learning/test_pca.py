"""Private principal components: near the true ones, in the units of the columns."""

import numpy as np
import pytest
from sklearn import decomposition

from discreet import InvalidArgument
from discreet.learning import PCA


def table(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (n, 3)) * [3.0, 1.0, 0.2] @ np.linalg.qr(rng.standard_normal((3, 3)))[0] + [1.0, -2.0, 0.5]


def test_components_variances_and_means_are_near_the_truth():
    X = table()
    ours = PCA(epsilon=2.0, bounds=(-15, 15), row_norm=12).fit(X)
    theirs = decomposition.PCA().fit(X)
    assert np.abs(np.diag(ours.components_ @ theirs.components_.T))[:2].min() > 0.99
    assert ours.explained_variance_[:2] == pytest.approx(theirs.explained_variance_[:2], rel=0.1)
    assert ours.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert ours.mean_ == pytest.approx(X.mean(axis=0), abs=0.2)
    assert ours.singular_values_[0] == pytest.approx(theirs.singular_values_[0], rel=0.1)
    assert abs(ours.n_samples_ / 20_000 - 1) < 0.1


def test_components_are_orthonormal_and_as_many_as_asked_for():
    X = table(2000)
    pca = PCA(2, bounds=(-15, 15)).fit(X)
    assert pca.components_ @ pca.components_.T == pytest.approx(np.eye(2), abs=1e-9)
    assert pca.transform(X).shape == (2000, 2)
    assert pca.get_feature_names_out().tolist() == ["pca0", "pca1"]
    assert (np.diff(pca.explained_variance_) <= 0).all()
    assert pca.noise_variance_ >= 0


@pytest.mark.parametrize("whiten", [False, True])
def test_all_components_keep_every_row(whiten):
    X = table(5000)
    pca = PCA(bounds=(-15, 15), whiten=whiten, epsilon=5.0).fit(X)
    assert pca.inverse_transform(pca.transform(X)) == pytest.approx(X, abs=1e-6)
    with pytest.raises(InvalidArgument, match="coordinates"):
        pca.inverse_transform(X[:, :2])


def test_a_norm_alone_is_enough():
    X = table() - [1.0, -2.0, 0.5]
    pca = PCA(1, row_norm=10.0, epsilon=2.0).fit(X)
    theirs = decomposition.PCA(1).fit(X)
    assert abs(float(pca.components_[0] @ theirs.components_[0])) > 0.99
    with pytest.raises(InvalidArgument, match="row_norm"):
        PCA(row_norm=-1.0).fit(X)


@pytest.mark.parametrize("wrong", [0, -1, 4, 1.5])
def test_a_wrong_number_of_components_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="n_components"):
        PCA(wrong, bounds=(-1, 1)).fit(table(50))


def test_without_records_worth_the_noise_variances_are_still_not_negative():
    for _ in range(10):
        pca = PCA(bounds=(-1, 1), epsilon=0.01).fit(np.zeros((2, 4)))
        assert (pca.explained_variance_ >= 0).all()
        assert pca.explained_variance_ratio_.sum() == pytest.approx(1.0)
