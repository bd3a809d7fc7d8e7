"""Value in, private value out: every mechanism releases exactly what its `Cost` says, with exact noise."""

from discreet.mechanisms.additive import Additive
from discreet.mechanisms.bounded import BoundedNoise
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.gaussian import Gaussian, RoundedGaussian
from discreet.mechanisms.geometric import TruncatedGeometric
from discreet.mechanisms.key_selection import KeySelection
from discreet.mechanisms.laplace import DiscreteLaplace, Laplace
from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.optimal import OptimalNoise
from discreet.mechanisms.randomized_response import RandomizedResponse, ResponseEstimate
from discreet.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, Selection, TopK
from discreet.mechanisms.sparse_vector import AboveThreshold, Comparisons, SparseVector
from discreet.mechanisms.staircase import Staircase
from discreet.mechanisms.sums import Bounds
from discreet.mechanisms.thresholding import GaussianThreshold, LaplaceThreshold, StableHistogram

__all__ = [
    "AboveThreshold",
    "Additive",
    "BoundedNoise",
    "Bounds",
    "Comparisons",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianThreshold",
    "KeySelection",
    "Laplace",
    "LaplaceThreshold",
    "Lattice",
    "Mechanism",
    "OptimalNoise",
    "PermuteAndFlip",
    "RandomizedResponse",
    "ReportNoisyMax",
    "ResponseEstimate",
    "RoundedGaussian",
    "Selection",
    "SparseVector",
    "StableHistogram",
    "Staircase",
    "TopK",
    "TruncatedGeometric",
]
