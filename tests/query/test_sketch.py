"""Sketches of sizes: exact noise on every bucket, and what several of them are together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.query import sketch as room
from discreet.query.choices import CANDIDATES, STEPS, number_of
from discreet.query.sketch import Sketch

ALPHA = 1e-9


def no_noise(scale: float, size: int, *, generator: object = None) -> np.ndarray:
    return np.zeros(size, dtype=np.int64)


def test_one_unit_is_in_one_bucket_and_all_buckets_that_are_public_have_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[float] = []

    def seen(scale: float, size: int, *, generator: object = None) -> np.ndarray:
        scales.append(scale)
        return no_noise(scale, size)

    monkeypatch.setattr(room, "discrete_laplace", seen)
    buckets, units = np.array([-4, 0, 7, 9, 40]), np.array([5, 3, 1, 1, 2])
    for largest, length in ((1.0, 5), (100.0, 4 + number_of(100.0) + 1), (math.inf, len(CANDIDATES))):
        drawn = Sketch.drawn(buckets, units, epsilon=0.04, largest=largest)
        assert len(drawn.counts) == length
        assert sum(drawn.counts) == units.sum()  # also those that are larger than is possible
        assert drawn.counts[0] == 5
        for extra in range(5):
            more = Sketch.drawn(buckets, units + (np.arange(5) == extra), epsilon=0.04, largest=largest)
            assert np.abs(np.subtract(more.counts, drawn.counts)).sum() == 1
    assert min(scales) >= 1 / 0.04
    assert max(scales) == pytest.approx(1 / 0.04)


def test_the_noise_of_a_sketch_has_its_scale_and_no_other() -> None:
    empty = np.array([], dtype=np.int64)
    drawn = np.concatenate([Sketch.drawn(empty, empty, epsilon=0.1, largest=math.inf).counts for _ in range(40)])

    def likelihood(scale: float) -> float:
        return float(np.log(np.tanh(1 / (2 * scale))) - np.abs(drawn).mean() / scale) * drawn.size

    # the mean of |X| is sufficient for the scale; wrong ones are excluded beyond any doubt
    for wrong in (9.0, 11.1):
        assert likelihood(10.0) - likelihood(wrong) > math.log(1 / ALPHA)


def test_a_share_of_the_units_is_found_where_units_are_seen() -> None:
    counts = np.zeros(200)
    counts[0], counts[20:60] = 1e6, 100.0
    sketch = Sketch(tuple(counts.tolist()), 1.0)
    assert sketch.seen.tolist() == list(range(20, 60))
    assert sketch.within(0.9, below=CANDIDATES[70]) == CANDIDATES[55]
    assert sketch.within(0.5, below=CANDIDATES[70]) == CANDIDATES[39]
    assert sketch.within(0.5, below=CANDIDATES[29]) == CANDIDATES[24]  # of those that are not above
    assert sketch.within(0.5, below=CANDIDATES[0]) == CANDIDATES[0]
    few = Sketch(tuple((0.001 * counts).tolist()), 0.1)
    assert few.seen.size == 0
    assert few.within(0.9, below=CANDIDATES[70]) == CANDIDATES[57]  # in the eight octaves below
    assert 70 - 8 * STEPS < 39
