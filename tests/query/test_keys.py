"""Which groups are shown: someone alone in a group stays hidden, as often as the price says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc, log_ndtr

from discreet.query.allocation import allocate
from discreet.query.keys import WEIGHT, kept_by_count, kept_by_weight, threshold
from discreet.query.target import Target

ALPHA = 1e-9


@pytest.mark.parametrize("noise", [0.5, 4.0, 40.0])
@pytest.mark.parametrize("failure", [1e-3, 1e-9])
def test_no_number_of_lonely_groups_is_shown_more_often_than_allowed(noise: float, failure: float) -> None:
    t = threshold(noise, failure)
    k = np.unique(np.geomspace(1, 1 << 16, 20_000).astype(int)).astype(float)
    worst = float(np.max(np.log(k) + log_ndtr((1 / np.sqrt(k) - t) / noise)))
    assert worst <= math.log(failure)
    assert worst >= math.log(failure) - 0.05  # and the threshold is not higher than it must be


@pytest.mark.parametrize(("epsilon", "k"), [(4.0, 1), (4.0, 4), (30.0, 1)])
def test_lonely_groups_are_shown_no_more_often_than_stated(epsilon: float, k: int) -> None:
    allocation = allocate(Target(epsilon=epsilon, delta=0.02), gaussian=True, choices=0, keys=True, weights=(1.0,))
    draws = 20_000
    kept, _ = kept_by_weight(np.full(draws * k, int(WEIGHT / math.sqrt(k))), allocation)
    shown = int(np.any(kept.reshape(draws, k), axis=1).sum())
    assert bdtrc(shown - 1, draws, allocation.key_delta) > ALPHA  # not significantly more often than key_delta
    if epsilon == 30.0:  # a single group is the worst there, and is shown so often: twice would be seen, and half
        assert bdtr(shown, draws, 2 * allocation.key_delta) < ALPHA
        assert bdtrc(shown - 1, draws, allocation.key_delta / 2) < ALPHA


def test_lonely_groups_are_kept_by_their_number_no_more_often_than_stated() -> None:
    laplace = allocate(Target(epsilon=4.0, delta=0.02), gaussian=False, choices=0, keys=True, weights=(1.0,))
    draws = 20_000
    shown = int(kept_by_count(np.ones(draws, dtype=np.int64), laplace).sum())
    assert bdtrc(shown - 1, draws, laplace.key_delta) > ALPHA
    assert bdtr(shown, draws, 2 * laplace.key_delta) < ALPHA
    assert bdtrc(shown - 1, draws, laplace.key_delta / 2) < ALPHA


def test_large_groups_are_shown_and_empty_ones_never() -> None:
    for gaussian in (False, True):
        allocation = allocate(Target(epsilon=1.0, delta=1e-6), gaussian=gaussian, choices=1, keys=True, weights=(1.0,))
        units = np.array([10_000] * 200 + [0] * 200)
        kept = kept_by_weight(units * WEIGHT, allocation)[0] if gaussian else kept_by_count(units, allocation)
        assert kept[:200].all()
        assert not kept[200:].any()
