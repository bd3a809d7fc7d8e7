"""Exact bounds of a probability: closed forms at the ends, the definition in the middle, coverage everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from discreet.audit.binomial import at_least, at_most


@pytest.mark.parametrize("miss", [0.05, 1e-9, 1e-12])
@pytest.mark.parametrize("trials", [1, 10, 150_000])
def test_the_ends_are_closed_forms(trials: int, miss: float) -> None:
    assert at_least(0, trials, miss) == 0
    assert at_most(trials, trials, miss) == 1
    assert at_least(trials, trials, miss) == pytest.approx(miss ** (1 / trials), rel=1e-8)
    assert at_most(0, trials, miss) == pytest.approx(-np.expm1(np.log(miss) / trials), rel=1e-8)


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-14, 0.4))
def test_at_the_bound_the_count_is_as_unlikely_as_was_asked(trials: int, share: float, miss: float) -> None:
    k = round(share * trials)
    low, high = float(at_least(k, trials, miss)), float(at_most(k, trials, miss))
    assert 0 <= low <= k / trials <= high <= 1
    if k > 0:
        assert miss * 0.99 <= binom.sf(k - 1, trials, low) <= miss * (1 + 1e-6)
    if k < trials:
        assert binom.cdf(k, trials, high) <= miss * (1 + 1e-6)
    if high < 1 - 1e-4:  # closer to 1 the bound is rounded up to it
        assert binom.cdf(k, trials, high) >= miss * 0.99


@pytest.mark.parametrize("probability", [0.001, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("trials", [7, 100, 1000])
def test_the_bounds_miss_as_rarely_as_they_say(probability: float, trials: int) -> None:
    counts = np.arange(trials + 1)
    mass = binom.pmf(counts, trials, probability)
    for miss in (0.1, 1e-3, 1e-9):
        assert mass[at_least(counts, trials, miss) > probability].sum() <= miss
        assert mass[at_most(counts, trials, miss) < probability].sum() <= miss
