"""Private scaling: near the true means and deviations, and never a scale of zero."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from discreet import InvalidArgument
from discreet.learning import LinearRegression, StandardScaler


def table(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(50, 10, n), rng.uniform(-1, 1, n), rng.integers(0, 2, n)])


BOUNDS = [(0, 100), (-2, 2), (0, 1)]


def test_means_and_deviations_are_near_the_truth():
    X = table()
    scaler = StandardScaler(bounds=BOUNDS).fit(X)
    assert np.abs((scaler.mean_ - X.mean(axis=0)) / X.std(axis=0)).max() < 0.05
    assert scaler.scale_ == pytest.approx(X.std(axis=0), rel=0.1)
    assert abs(scaler.n_samples_seen_ - 20_000) < 500
    assert scaler.inverse_transform(scaler.transform(X)) == pytest.approx(X, abs=1e-9)


def test_a_constant_column_gets_a_scale_above_zero():
    X = np.zeros((1000, 2))
    for _ in range(5):
        scaler = StandardScaler(bounds=(-1, 1)).fit(X)
        assert (scaler.scale_ > 0).all()
        assert np.isfinite(scaler.transform(X)).all()


def test_halves_can_be_switched_off():
    X = table(2000)
    assert StandardScaler(bounds=BOUNDS, with_mean=False, with_std=False).fit(X).transform(X) == pytest.approx(X)


def test_a_stated_number_of_records_is_not_released_and_said_to_be_public():
    X = table(2000)
    scaler = StandardScaler(bounds=BOUNDS, n_records=2000).fit(X)
    assert scaler.n_samples_seen_ == 2000
    assert "the number of records, as stated" in scaler.report_.public
    assert not any("number of records" in release.what for release in scaler.report_.releases)
    with pytest.raises(InvalidArgument, match="n_records"):
        StandardScaler(bounds=BOUNDS, n_records=0).fit(X)


def test_it_stands_in_a_pipeline():
    X = table()
    y = X[:, 0] / 100
    steps = make_pipeline(StandardScaler(bounds=BOUNDS), LinearRegression(bounds=(-5, 5), target_bounds=(0, 1)))
    assert steps.fit(X, y).score(X, y) > 0.9
