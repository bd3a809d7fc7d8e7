"""Whole fits, audited from outside: what somebody sees who knows every record but one."""

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.audit import check
from discreet.learning import PCA, GaussianNB, Goal, KMeans, LinearRegression, PrivatePipeline, StandardScaler

FEW = np.array([[0.1], [-0.2]])
ONE = np.array([[1.0]])

FITS = {
    "LinearRegression": (
        lambda e: LinearRegression(epsilon=e, bounds=(-1, 1), target_bounds=(-1, 1), fit_intercept=False),
        lambda model: float(model.coef_[0]),
    ),
    "StandardScaler": (
        lambda e: StandardScaler(epsilon=e, bounds=(-1, 1), n_records=3),
        lambda model: float(model.mean_[0] + model.var_[0]),
    ),
    "PCA": (
        lambda e: PCA(epsilon=e, bounds=(-1, 1)),
        lambda model: float(model.mean_[0] + model.explained_variance_[0]),
    ),
    "KMeans": (
        lambda e: KMeans(1, epsilon=e, bounds=(-1, 1), max_iter=1),
        lambda model: float(model.cluster_centers_[0, 0]),
    ),
    "GaussianNB": (
        lambda e: GaussianNB(epsilon=e, bounds=(-1, 1), classes=[0, 1]),
        lambda model: float(model.class_count_[1] / 5 + model.theta_[1, 0]),
    ),
    "PrivatePipeline": (
        lambda e: PrivatePipeline(
            [
                ("scale", StandardScaler(epsilon=e / 2, delta=5e-7, bounds=(-1, 1), n_records=3)),
                ("components", PCA(epsilon=e / 2, delta=5e-7, bounds=(-3, 3))),
            ]
        ),
        # where the record is after both steps, and how much it weighs in each
        lambda model: float(
            model["scale"].mean_[0] + model["scale"].var_[0] + model["components"].explained_variance_[0] / 9
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_a_fit_keeps_its_claim_and_one_with_far_too_little_noise_is_caught(name):
    made, seen = FITS[name]
    claim = made(1.0).fit(np.vstack([FEW, ONE]), [0, 0, 1]).cost_
    assert Goal(epsilon=1.0, delta=1e-6).met_by(claim)

    def released(epsilon):
        def release(present):
            if not isinstance(present, bool):
                raise InvalidArgument("present", present, "pass True or False")
            table = np.vstack([FEW, ONE]) if present else FEW
            return seen(made(epsilon).fit(table, [0, 0, 1][: len(table)]))

        return release

    inputs = (False, True)
    assert check(release=released(1.0), cost=claim, inputs=inputs, draws=250, bad_values=[None]).passed
    assert not check(release=released(100.0), cost=claim, inputs=inputs, draws=250, bad_values=[None]).passed
