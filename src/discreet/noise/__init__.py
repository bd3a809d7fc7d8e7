"""Exact integer noise from a cryptographic generator."""

from discreet.noise.gaussian import discrete_gaussian, rounded_gaussian
from discreet.noise.generator import Generator, SecureGenerator, secure_generator
from discreet.noise.laplace import discrete_laplace, geometric, rounded_laplace, truncated_geometric

__all__ = [
    "Generator",
    "SecureGenerator",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "rounded_gaussian",
    "rounded_laplace",
    "secure_generator",
    "truncated_geometric",
]
