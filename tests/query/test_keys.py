"""Which groups are shown: someone alone in a group stays hidden, as often as the price says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import bdtr, bdtrc, log_ndtr

from discreet import Budget, Curator
from discreet.query import keys
from discreet.query.allocation import allocate
from discreet.query.keys import MOST_GROUPS, WEIGHT, kept_by_count, kept_by_weight, threshold, threshold_of_copies
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


@pytest.mark.parametrize("noise", [0.5, 4.0, 40.0])
@pytest.mark.parametrize("most", [1, 2, 10, 5000])
def test_fewer_groups_of_a_unit_need_a_lower_threshold(noise: float, most: int) -> None:
    t, failure = threshold(noise, 1e-7, most), math.log(1e-7)
    k = np.arange(1.0, most + 1)
    worst = float(np.max(np.log(k) + log_ndtr((1 / np.sqrt(k) - t) / noise)))
    assert failure - 0.05 <= worst <= failure
    assert t <= threshold(noise, 1e-7)
    assert noise < 1 or t < 0.9 * threshold(noise, 1e-7) or most == 5000


def _partitions(rows: int, largest: int | None = None) -> Iterator[list[int]]:
    """All ways to write a number as a sum."""
    if rows == 0:
        yield []
    for one in range(min(rows, largest or rows), 0, -1):
        yield from ([one, *rest] for rest in _partitions(rows - one, one))


@pytest.mark.parametrize("copies", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("noise", [0.02, 0.3, 4.0, 40.0])
@pytest.mark.parametrize("failure", [0.05, 1e-9])
def test_no_way_to_spread_the_copies_of_a_row_is_shown_more_often_than_allowed(
    noise: float, failure: float, copies: int
) -> None:
    t = threshold_of_copies(noise, failure, copies)
    chances = [
        float(np.logaddexp.reduce(log_ndtr((np.array(parts) / copies - t) / noise))) for parts in _partitions(copies)
    ]
    assert math.log(failure) - 0.05 <= max(chances) <= math.log(failure)


def test_somebody_in_more_groups_than_are_allowed_for_shows_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without weight, but with noise, so many groups would reach any threshold for which less is assumed."""
    seen: list[list[int]] = []
    real = keys.kept_by_weight

    def spied(weights: np.ndarray, *given: Any, **named: Any) -> Any:
        seen.append(sorted(weights.tolist()))
        return real(weights, *given, **named)

    monkeypatch.setattr(keys, "kept_by_weight", spied)
    own = pa.table({"u": np.zeros(MOST_GROUPS + 1, dtype=np.int64), "g": np.arange(MOST_GROUPS + 1)})
    others = pa.table({"u": np.arange(1, 9), "g": np.arange(8) // 2})
    budget = Budget(epsilon=100.0, delta=1e-3)
    for rows, expected in (
        (pa.concat_tables([own, others]), [2 * WEIGHT] * 4),
        (own, []),
        (own.slice(1), [int(WEIGHT / math.sqrt(MOST_GROUPS))] * MOST_GROUPS),
    ):
        with Curator.open({"t": rows}, unit="u", budget=budget, ledger=":memory:") as curator:
            curator.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1.0)
            assert seen.pop() == expected
            curator.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1.0, max_groups=MOST_GROUPS + 5)
            assert seen.pop() == expected


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
