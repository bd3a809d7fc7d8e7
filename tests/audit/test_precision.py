"""Low bits: read correctly, and different where noise was added in floating point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Cost
from discreet.audit import check
from discreet.audit.precision import lowest_bit, off_lattice


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_the_lowest_bit_is_the_largest_power_of_two_that_divides(value: float) -> None:
    exponent = int(lowest_bit(np.array([value]))[0])
    numerator, denominator = value.as_integer_ratio()
    expected = (numerator & -numerator).bit_length() - denominator.bit_length()
    assert exponent == expected


def test_zero_is_divided_by_every_power() -> None:
    assert lowest_bit(np.array([0.0]))[0] > 1100


@given(st.integers(-20, 20), st.integers(-(2**40), 2**40))
def test_multiples_of_the_granularity_are_on_the_lattice_and_halves_are_not(exponent: int, steps: int) -> None:
    granularity = math.ldexp(1.0, exponent)
    assert off_lattice(np.array([steps * granularity]), granularity) == 0
    assert off_lattice(np.array([(steps + 0.5) * granularity]), granularity) == 1


FLOATS = np.random.default_rng(20)
NOISES = {
    "Laplace": (lambda n: FLOATS.laplace(0, 1.0, n), Cost.laplace(1.0)),
    "Gaussian": (lambda n: FLOATS.normal(0, 1.0, n), Cost.gaussian(1.0)),
    "Laplace by inversion": (lambda n: -np.log(1 - FLOATS.random(n)), Cost.laplace(0.5)),
    "four normals": (lambda n: FLOATS.normal(0, 0.5, (n, 4)).sum(axis=1), Cost.gaussian(1.0)),
}


@pytest.mark.parametrize("name", NOISES)
def test_noise_added_in_floating_point_is_caught_by_its_low_bits(name: str) -> None:
    noise, cost = NOISES[name]
    report = check(releases=lambda value, n: value + noise(n), cost=cost, inputs=(0.0, 1.0), draws=40_000)
    assert "low bits" in [finding.check for finding in report.failures], repr(report)
    assert report.epsilon_measured > 3


@pytest.mark.parametrize("name", ["Laplace", "Gaussian"])
def test_the_same_noise_on_a_lattice_is_not(name: str) -> None:
    noise, cost = NOISES[name]

    def releases(value: float, n: int) -> np.ndarray:
        return (round(value * 2**20) + np.round(noise(n) * 2**20)) / 2**20

    assert check(releases=releases, cost=cost, inputs=(0.0, 1.0), draws=40_000).passed


def test_low_bits_of_arrays_are_seen() -> None:
    def releases(value: np.ndarray, n: int) -> np.ndarray:
        return value + FLOATS.laplace(0, 1.0, (n, 3))

    inputs = (np.array([4.0, 0.0, 4.0]), np.array([4.0, 1.0, 4.0]))
    report = check(releases=releases, cost=Cost.laplace(1.0), inputs=inputs, draws=40_000)
    assert "low bits" in [finding.check for finding in report.failures], repr(report)
