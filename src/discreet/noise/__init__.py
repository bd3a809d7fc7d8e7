"""Exact noise, coins and choices from a cryptographic generator."""

from discreet.noise.choice import exponential_choice, permute_and_flip
from discreet.noise.coins import bernoulli, bernoulli_exp
from discreet.noise.gaussian import discrete_gaussian, rounded_gaussian
from discreet.noise.generator import Generator, SecureGenerator, secure_generator
from discreet.noise.integers import uniform_integers
from discreet.noise.laplace import discrete_laplace, geometric, rounded_laplace, truncated_geometric
from discreet.noise.lazy import noisy_top
from discreet.noise.staircase import staircase

__all__ = [
    "Generator",
    "SecureGenerator",
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "geometric",
    "noisy_top",
    "permute_and_flip",
    "rounded_gaussian",
    "rounded_laplace",
    "secure_generator",
    "staircase",
    "truncated_geometric",
    "uniform_integers",
]
