"""Chebyshev series: values, integrals and running sums stay within their stated errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import chebyshev
from discreet.accounting.pair import ROUNDING

rows = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=24)
some = settings(max_examples=50, deadline=None)


def true_value(series: list[float], x: float) -> Fraction:
    """The series in rational arithmetic."""
    before, here, total = Fraction(1), Fraction(x), Fraction(series[0])
    for c in series[1:]:
        total += Fraction(c) * here
        before, here = here, 2 * Fraction(x) * here - before
    return total


def true_integral(series: list[float]) -> Fraction:
    return sum((Fraction(c) * Fraction(2, 1 - j * j) for j, c in enumerate(series) if j % 2 == 0), Fraction(0))


@some
@given(series=rows, x=st.floats(-1.0, 1.0))
def test_values_stay_within_their_error(series: list[float], x: float) -> None:
    array = np.array([series])
    found = float(chebyshev.values(array, np.array([[x]]))[0, 0])
    assert abs(Fraction(found) - true_value(series, x)) <= Fraction(float(chebyshev.values_error(array)[0]))


@some
@given(series=rows)
def test_integrals_stay_within_their_error(series: list[float]) -> None:
    array, size = np.array([series]), sum(map(abs, series))
    error = Fraction((len(series) + 6) * ROUNDING * size)
    assert abs(Fraction(float(chebyshev.integral(array)[0])) - true_integral(series)) <= error
    inner = chebyshev.antiderivative(array)[0].tolist()
    assert abs(true_value(inner, -1.0)) <= 3 * error
    assert abs(true_value(inner, 1.0) - true_integral(series)) <= 6 * error


@pytest.mark.parametrize("count", [1, 2, 9, 40])
def test_interpolation_finds_the_coefficients_again(count: int) -> None:
    points, matrix = chebyshev.interpolation(count)
    series = np.linspace(1.0, -2.0, count)[None, :]
    assert matrix @ chebyshev.values(series, points[None, :])[0] == pytest.approx(series[0], abs=1e-13)


@pytest.mark.parametrize("count", [5, 21, 80])
def test_interpolation_enlarges_errors_no_more_than_stated(count: int) -> None:
    _, matrix = chebyshev.interpolation(count)
    grid = np.linspace(-1, 1, 2001)
    cardinal = chebyshev.values(matrix.T.copy(), np.tile(grid, (count, 1)))
    assert np.abs(cardinal).sum(axis=0).max() <= chebyshev.lebesgue(count)


@some
@given(terms=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=400))
def test_running_sums_stay_within_their_roundings(terms: list[float]) -> None:
    found, roundings = chebyshev.running(np.array(terms))
    total = Fraction(0)
    for k in range(len(terms) + 1):
        assert abs(Fraction(float(found[k])) - total) <= Fraction(roundings * ROUNDING) * total
        total += Fraction(terms[k]) if k < len(terms) else 0
