"""The leaves of the `Cost` algebra, one family a file; each brings its own mathematics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.deferred import deferred

if TYPE_CHECKING:
    from discreet.accounting.leaves.choices import ExponentialMechanism, RandomizedResponse
    from discreet.accounting.leaves.contracted import Contracted
    from discreet.accounting.leaves.guarantees import Approximate, Concentrated, GaussianGuarantee, Pure, RenyiCurve
    from discreet.accounting.leaves.iterate import LastIterate
    from discreet.accounting.leaves.leaf import Leaf
    from discreet.accounting.leaves.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Staircase
    from discreet.accounting.leaves.own import OwnDistributions, Table, TradeoffCurve
    from discreet.accounting.leaves.random_stop import RandomStop
    from discreet.accounting.leaves.sampled import Sampled
    from discreet.accounting.leaves.sampled_iterate import SampledIterate
    from discreet.accounting.leaves.sampled_renyi import SampledRenyi
    from discreet.accounting.leaves.schemes import BallsInBins, Replaced, WithoutReplacement
    from discreet.accounting.leaves.shuffled import Shuffled
    from discreet.accounting.leaves.together import Together

__all__ = [
    "Approximate",
    "BallsInBins",
    "Concentrated",
    "Contracted",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianGuarantee",
    "Laplace",
    "LastIterate",
    "Leaf",
    "OwnDistributions",
    "Pure",
    "RandomStop",
    "RandomizedResponse",
    "RenyiCurve",
    "Replaced",
    "Sampled",
    "SampledIterate",
    "SampledRenyi",
    "Shuffled",
    "Staircase",
    "Table",
    "Together",
    "TradeoffCurve",
    "WithoutReplacement",
]

__getattr__, __dir__ = deferred(
    __name__,
    {
        "choices": (
            "ExponentialMechanism",
            "RandomizedResponse",
        ),
        "contracted": ("Contracted",),
        "guarantees": (
            "Approximate",
            "Concentrated",
            "GaussianGuarantee",
            "Pure",
            "RenyiCurve",
        ),
        "iterate": ("LastIterate",),
        "leaf": ("Leaf",),
        "noise": (
            "DiscreteGaussian",
            "DiscreteLaplace",
            "Gaussian",
            "Laplace",
            "Staircase",
        ),
        "own": (
            "OwnDistributions",
            "Table",
            "TradeoffCurve",
        ),
        "random_stop": ("RandomStop",),
        "sampled": ("Sampled",),
        "sampled_iterate": ("SampledIterate",),
        "sampled_renyi": ("SampledRenyi",),
        "schemes": (
            "BallsInBins",
            "Replaced",
            "WithoutReplacement",
        ),
        "shuffled": ("Shuffled",),
        "together": ("Together",),
    },
)
