"""Intervals: they hold as often as they say, for sums and for ratios, on both paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from discreet.query.laws import NoisySum

ALPHA = 1e-9
DRAWS = 10_000


def noise(rng: np.random.Generator, scale: float, *, gaussian: bool) -> np.ndarray:
    return rng.normal(0, scale, DRAWS) if gaussian else rng.laplace(0, scale, DRAWS)


def holds(covered: np.ndarray, confidence: float) -> bool:
    """Neither more nor less often than stated, as far as so many draws can tell."""
    hits = int(covered.sum())
    return bdtr(hits, DRAWS, confidence) > ALPHA and bdtrc(hits - 1, DRAWS, confidence) > ALPHA


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_the_interval_of_a_sum_holds_as_often_as_it_says(gaussian: bool, confidence: float) -> None:
    rng = np.random.default_rng(1)
    low, high = NoisySum(7.0 + noise(rng, 3.0, gaussian=gaussian), 3.0, gaussian).interval(confidence)
    assert holds((low <= 7.0) & (high >= 7.0), confidence)
    assert not holds((low <= 7.0) & (high >= 7.0), confidence - 0.06)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("scales", [(3.0, 0.2), (3.0, 1.5), (0.1, 2.0)])
def test_the_interval_of_a_ratio_holds_as_often_as_it_says(gaussian: bool, scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(2)
    top = NoisySum(120.0 + noise(rng, scales[0], gaussian=gaussian), scales[0], gaussian)
    bottom = NoisySum(60.0 + noise(rng, scales[1], gaussian=gaussian), scales[1], gaussian)
    low, high = top.ratio_interval(bottom, 0.95, shift=10.0)
    covered = np.mean((low <= 12.0) & (high >= 12.0))
    assert 0.94 < covered < 0.96  # four standard deviations are 0.009
    assert np.all(low <= high)


def test_a_ratio_with_a_denominator_that_may_be_zero_can_be_anything() -> None:
    low, high = NoisySum(np.array([5.0]), 1.0, True).ratio_interval(NoisySum(np.array([0.5]), 1.0, True), 0.95)
    assert low[0] == -np.inf
    assert high[0] == np.inf
