"""Gauss-Legendre points and weights: accurate to the last digits, near the ends too."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from discreet.divergence.legendre import gauss_legendre, long_gauss_legendre


def exact(count: int, near: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The zero of P_n next to a number and its weight, with forty digits."""
    with mpmath.workdps(40):
        x = mpmath.mpf(near)
        for _ in range(5):
            before, here = mpmath.mpf(1), x
            for n in range(2, count + 1):
                before, here = here, ((2 * n - 1) * x * here - (n - 1) * before) / n
            slope = count * (before - x * here) / (1 - x * x)
            x -= here / slope
        return x, 2 / ((1 - x * x) * slope**2)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 12, 31, 32, 48, 128, 512])
def test_points_and_weights_are_right_to_a_few_units_of_the_last_digit(count: int) -> None:
    points, weights = gauss_legendre(count)
    assert points.shape == weights.shape == (count,)
    for i in {0, 1 % count, count // 3, count // 2, count - 1}:
        x, weight = exact(count, float(points[i]))
        assert abs(float(points[i]) - x) <= 2.3e-16 * abs(x)
        assert abs(float(weights[i]) - weight) <= 32 * 2.0**-53 * weight  # what accounting charges for each node


def test_another_library_has_the_same_points_in_the_same_order() -> None:
    for count in range(1, 40):
        points, weights = gauss_legendre(count)
        other_points, other_weights = leggauss(count)
        assert points == pytest.approx(other_points, abs=1e-15)
        assert weights == pytest.approx(other_weights, rel=1e-11)


@pytest.mark.parametrize("count", [3, 10, 20])
def test_polynomials_of_degree_below_twice_the_points_are_integrated_and_the_next_is_not(count: int) -> None:
    points, weights = long_gauss_legendre(count)
    for degree in range(0, 2 * count, 2):
        assert float((weights * points**degree).sum()) == pytest.approx(2 / (degree + 1), rel=1e-14)
    # the square of the n-th monic polynomial has a positive integral, and the rule says 0
    missed = 2 / (2 * count + 1) - float((weights * points ** (2 * count)).sum())
    expected = float(
        mpmath.mpf(2) ** (2 * count + 1)
        * mpmath.factorial(count) ** 4
        / ((2 * count + 1) * mpmath.factorial(2 * count) ** 2)
    )
    assert missed == pytest.approx(expected, rel=0.5, abs=1e-17)


def test_the_rule_is_shared_and_cannot_be_changed() -> None:
    points, _ = gauss_legendre(7)
    with pytest.raises(ValueError, match="read-only"):
        points[0] = 0.0
    assert np.all(np.diff(points) > 0)
