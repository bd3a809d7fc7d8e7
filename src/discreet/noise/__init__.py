"""Exact integer noise from a cryptographic generator."""

from discreet.noise.generator import Generator, SecureGenerator, secure_generator

__all__ = ["Generator", "SecureGenerator", "secure_generator"]
