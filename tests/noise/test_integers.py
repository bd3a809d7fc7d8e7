"""Uniform integers: every value equally often, for every bound, and no word of an incomplete run used."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.noise import uniform_integers
from noise.frequencies import ALPHA, Scripted, p_value


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 1000])
def test_all_values_are_equally_likely(bound: int) -> None:
    draws = uniform_integers(bound, 400_000)
    assert draws.dtype == np.int64
    assert p_value(draws.tolist(), dict.fromkeys(range(bound), 1 / bound)) > ALPHA
    tilted = np.linspace(0.9, 1.1, bound)
    assert p_value(draws.tolist(), dict(enumerate(tilted / tilted.sum()))) < ALPHA


@pytest.mark.parametrize("bound", [3 << 62, (1 << 64) - 1, 1 << 64, 3 << 64, 5 << 127, 10**60])
def test_large_bounds_are_uniform_over_tenths_where_a_remainder_would_not_be(bound: int) -> None:
    draws = [int(10 * draw // bound) for draw in uniform_integers(bound, 20_000)]
    assert p_value(draws, dict.fromkeys(range(10), 0.1)) > ALPHA
    remainders = [10 * (draw % bound) // bound for draw in uniform_integers(1 << bound.bit_length(), 20_000)]
    if bound in (3 << 62, 3 << 64, 5 << 127):
        assert p_value(remainders, dict.fromkeys(range(10), 0.1)) < ALPHA


@pytest.mark.parametrize("bound", [1, 2, 1 << 63])
def test_powers_of_two_use_one_word_each(bound: int) -> None:
    source = Scripted()
    uniform_integers(bound, 1000, generator=source)
    assert source.drawn == 1000


def test_words_of_the_incomplete_run_are_drawn_again() -> None:
    last = (1 << 64) - 1  # 2^64 = 3 k + 1: the last word would make 0 too likely
    assert uniform_integers(3, generator=Scripted(last, 5)) == 2
    assert uniform_integers(3, 3, generator=Scripted(1, last, 2, last, last, 0)).tolist() == [1, 0, 2]


def test_bounds_stay_within_range_and_shapes_are_kept() -> None:
    for bound in (1, 5, 1 << 63, (1 << 63) + 1, 1 << 200):
        draws = uniform_integers(bound, (4, 5))
        assert draws.shape == (4, 5)
        assert all(0 <= int(draw) < bound for draw in draws.ravel())
        assert 0 <= uniform_integers(bound) < bound
    assert uniform_integers(10, 0).shape == (0,)


@pytest.mark.parametrize("bound", [0, -1, 1.5, "10", None, True, float("nan")])
def test_bad_bounds_are_refused_before_any_word_is_drawn(bound: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="bound"):
        uniform_integers(bound, 3, generator=source)
    assert source.drawn == 0
