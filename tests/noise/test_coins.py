"""Coins: the exact bias, and the refinement of words that one comparison does not decide."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import fractions, integers

from discreet.errors import DiscreetError
from discreet.noise import bernoulli, bernoulli_exp
from discreet.noise.certified import exp_minus
from discreet.noise.coins import rational_bias, settle
from noise.frequencies import ALPHA, Scripted, p_value

DRAWS = 200_000


def law(p: float) -> dict[bool, float]:
    return {True: p, False: 1 - p}


@pytest.mark.parametrize("p", [0.5, Fraction(1, 3), 0.1, 0.97])
def test_coins_have_their_bias_and_no_other(p: float | Fraction) -> None:
    flips = bernoulli(p, DRAWS).tolist()
    assert p_value(flips, law(float(p))) > ALPHA
    assert p_value(flips, law(float(p) + 0.02)) < ALPHA
    assert p_value(flips, law(float(p) - 0.02)) < ALPHA


@pytest.mark.parametrize("x", [0.01, Fraction(1, 3), 1, 2.5])
def test_exponential_coins_have_their_bias_and_no_other(x: float | Fraction) -> None:
    flips = bernoulli_exp(x, DRAWS).tolist()
    assert p_value(flips, law(math.exp(-x))) > ALPHA
    assert p_value(flips, law(math.exp(-x) * 0.9)) < ALPHA


def test_single_coins_have_their_bias_too() -> None:
    flips = [bernoulli(Fraction(1, 3)) for _ in range(20_000)]
    assert p_value(flips, law(1 / 3)) > ALPHA
    assert p_value(flips, law(0.37)) < ALPHA


@pytest.mark.parametrize("size", [0, 5, (2, 3), (0, 4)])
def test_sizes_are_those_of_numpy(size: int | tuple[int, ...]) -> None:
    assert bernoulli(0.5, size).shape == np.empty(size).shape
    assert bernoulli_exp(1, size).dtype == np.bool_


def test_certain_coins_are_certain() -> None:
    assert bernoulli(1) is True
    assert bernoulli(0) is False
    assert bernoulli(1, 1000).all()
    assert not bernoulli(0, 1000).any()
    assert bernoulli_exp(0, 1000).all()
    assert not bernoulli_exp(10**9, 1000).any()


def test_a_word_that_equals_the_threshold_is_refined_with_the_bits_that_follow() -> None:
    word = (1 << 64) // 3  # 1/3 = 0.0101…: the first 64 bits of p, so that the next ones decide, with probability 1/3
    flips = [bernoulli(Fraction(1, 3), generator=Scripted(word)) for _ in range(20_000)]
    assert p_value(flips, law(1 / 3)) > ALPHA
    assert p_value(flips, law(0.37)) < ALPHA
    several = bernoulli(Fraction(1, 3), 3, generator=Scripted(word - 1, word, word + 1, 0))
    assert several.tolist() == [True, True, False]


def test_an_ambiguous_exponential_coin_is_refined_until_it_is_certain() -> None:
    lower, _ = exp_minus(Fraction(1), 192)
    bits = lower >> 128, lower >> 64 & (1 << 64) - 1
    rest = (1 << 64) - 1
    assert bernoulli_exp(1, generator=Scripted(bits[0], bits[1], 0))
    assert not bernoulli_exp(1, generator=Scripted(bits[0], bits[1], rest))
    source = Scripted(bits[0], bits[1])
    bernoulli_exp(1, generator=source)
    assert source.drawn >= 3
    source = Scripted(bits[0] + 3)
    assert not bernoulli_exp(1, generator=source)
    assert source.drawn == 1


@given(p=fractions(0, 1), word=integers(0, (1 << 64) - 1))
def test_settling_agrees_with_the_comparison_of_exact_numbers(p: Fraction, word: int) -> None:
    follows = 1 << 63
    uniform = Fraction((word << 64) + follows, 1 << 128)
    if not 0 <= p * (1 << 128) - uniform * (1 << 128) < 1:
        assert settle(word, rational_bias(p), Scripted(follows)) == (uniform < p)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf, "half", None, True, Fraction(3, 2), 1j])
def test_what_is_no_probability_is_refused_before_any_word_is_drawn(p: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="p = "):
        bernoulli(p, 3, generator=source)
    assert source.drawn == 0


@pytest.mark.parametrize("x", [-1, -1e-9, math.nan, math.inf, "1", None, False])
def test_what_is_no_exponent_is_refused_before_any_word_is_drawn(x: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="x = "):
        bernoulli_exp(x, generator=source)
    assert source.drawn == 0


@pytest.mark.parametrize("size", [-1, 1.5, "3", (2, -1)])
def test_bad_sizes_are_refused(size: object) -> None:
    with pytest.raises(DiscreetError, match="size"):
        bernoulli(0.5, size)
