"""Value in, private value out: every mechanism releases exactly what its `Cost` says, with exact noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.deferred import deferred

if TYPE_CHECKING:
    from discreet.mechanisms.additive import Additive
    from discreet.mechanisms.bounded import BoundedNoise
    from discreet.mechanisms.clustered_mean import ClusteredMean
    from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
    from discreet.mechanisms.distance_test import REFUSED, Refused
    from discreet.mechanisms.estimators.counts import Count, Histogram
    from discreet.mechanisms.estimators.covariance import Covariance
    from discreet.mechanisms.estimators.estimate import Estimate
    from discreet.mechanisms.estimators.estimator import Estimator, NoisyStatistics
    from discreet.mechanisms.estimators.extremes import Maximum, Minimum
    from discreet.mechanisms.estimators.linear import LinearModel
    from discreet.mechanisms.estimators.marginals import Marginals
    from discreet.mechanisms.estimators.means import Mean, Sum, Variance
    from discreet.mechanisms.estimators.models import BernoulliModel, GaussianModel, PoissonModel
    from discreet.mechanisms.estimators.quantiles import Median, Quantiles
    from discreet.mechanisms.estimators.unbounded import UnboundedMean
    from discreet.mechanisms.gaussian import Gaussian, RoundedGaussian
    from discreet.mechanisms.geometric import TruncatedGeometric
    from discreet.mechanisms.key_selection import KeySelection
    from discreet.mechanisms.laplace import DiscreteLaplace, Laplace
    from discreet.mechanisms.lattice import Lattice
    from discreet.mechanisms.mechanism import Mechanism
    from discreet.mechanisms.optimal import OptimalNoise
    from discreet.mechanisms.private_mode import PrivateMode
    from discreet.mechanisms.propose_test_release import ProposeTestRelease
    from discreet.mechanisms.randomized_response import RandomizedResponse, ResponseEstimate
    from discreet.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, Selection, TopK
    from discreet.mechanisms.smooth_quantile import SmoothQuantile
    from discreet.mechanisms.sparse_vector import AboveThreshold, Comparisons, SparseVector
    from discreet.mechanisms.staircase import Staircase
    from discreet.mechanisms.sums import Bounds
    from discreet.mechanisms.thresholding import GaussianThreshold, LaplaceThreshold, StableHistogram

__all__ = [
    "REFUSED",
    "AboveThreshold",
    "Additive",
    "BernoulliModel",
    "BoundedNoise",
    "Bounds",
    "ClusteredMean",
    "Comparisons",
    "Count",
    "Covariance",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Estimate",
    "Estimator",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianModel",
    "GaussianThreshold",
    "Histogram",
    "KeySelection",
    "Laplace",
    "LaplaceThreshold",
    "Lattice",
    "LinearModel",
    "Marginals",
    "Maximum",
    "Mean",
    "Mechanism",
    "Median",
    "Minimum",
    "NoisyStatistics",
    "OptimalNoise",
    "PermuteAndFlip",
    "PoissonModel",
    "PrivateMode",
    "ProposeTestRelease",
    "Quantiles",
    "RandomizedResponse",
    "Refused",
    "ReportNoisyMax",
    "ResponseEstimate",
    "RoundedGaussian",
    "Selection",
    "SmoothQuantile",
    "SparseVector",
    "StableHistogram",
    "Staircase",
    "Sum",
    "TopK",
    "TruncatedGeometric",
    "UnboundedMean",
    "Variance",
]

__getattr__, __dir__ = deferred(
    __name__,
    {
        "additive": ("Additive",),
        "bounded": ("BoundedNoise",),
        "clustered_mean": ("ClusteredMean",),
        "discrete_gaussian": ("DiscreteGaussian",),
        "distance_test": (
            "REFUSED",
            "Refused",
        ),
        "estimators.counts": (
            "Count",
            "Histogram",
        ),
        "estimators.covariance": ("Covariance",),
        "estimators.estimate": ("Estimate",),
        "estimators.estimator": (
            "Estimator",
            "NoisyStatistics",
        ),
        "estimators.extremes": (
            "Maximum",
            "Minimum",
        ),
        "estimators.linear": ("LinearModel",),
        "estimators.marginals": ("Marginals",),
        "estimators.means": (
            "Mean",
            "Sum",
            "Variance",
        ),
        "estimators.models": (
            "BernoulliModel",
            "GaussianModel",
            "PoissonModel",
        ),
        "estimators.quantiles": (
            "Median",
            "Quantiles",
        ),
        "estimators.unbounded": ("UnboundedMean",),
        "gaussian": (
            "Gaussian",
            "RoundedGaussian",
        ),
        "geometric": ("TruncatedGeometric",),
        "key_selection": ("KeySelection",),
        "laplace": (
            "DiscreteLaplace",
            "Laplace",
        ),
        "lattice": ("Lattice",),
        "mechanism": ("Mechanism",),
        "optimal": ("OptimalNoise",),
        "private_mode": ("PrivateMode",),
        "propose_test_release": ("ProposeTestRelease",),
        "randomized_response": (
            "RandomizedResponse",
            "ResponseEstimate",
        ),
        "selection": (
            "ExponentialMechanism",
            "PermuteAndFlip",
            "ReportNoisyMax",
            "Selection",
            "TopK",
        ),
        "smooth_quantile": ("SmoothQuantile",),
        "sparse_vector": (
            "AboveThreshold",
            "Comparisons",
            "SparseVector",
        ),
        "staircase": ("Staircase",),
        "sums": ("Bounds",),
        "thresholding": (
            "GaussianThreshold",
            "LaplaceThreshold",
            "StableHistogram",
        ),
    },
)
