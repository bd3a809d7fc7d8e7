"""Lazy noise: certified floats, nested ends, and the order of real-valued noise whoever decides it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, sampled_from

from discreet.errors import DiscreetError
from discreet.noise import noisy_top
from discreet.noise.lazy import LAWS, LazyNoise, ranked, settle_order
from discreet.noise.scores import Scores
from discreet.noise.testing import SeededGenerator
from noise.frequencies import ALPHA, Scripted, p_value, permute_and_flip_law, softmax, without_replacement

SCORES = np.array([0, 1, 2.5, -1])
SCALE = Fraction(7, 10)
EXPONENTS = [float(SCALE) * score for score in SCORES]
WORDS = integers(0, (1 << 64) - 1)


def two_laplace(gap: float) -> dict[int, float]:
    """Who wins between 0 and `gap` below it: the difference of two Laplace variables has this closed form."""
    loser = math.exp(-gap) * (2 + gap) / 4
    return {0: 1 - loser, 1: loser}


@pytest.mark.parametrize(
    ("noise", "law"), [("gumbel", softmax), ("exponential", permute_and_flip_law)], ids=["gumbel", "exponential"]
)
def test_the_noisy_maximum_has_the_law_on_paper_and_no_other(noise: str, law) -> None:
    draws = [int(noisy_top(SCORES, noise=noise, scale=SCALE)[0]) for _ in range(20_000)]
    assert p_value(draws, law(EXPONENTS)) > ALPHA
    assert p_value(draws, law([1.3 * x for x in EXPONENTS])) < ALPHA
    other = permute_and_flip_law if law is softmax else softmax
    assert p_value(draws, other(EXPONENTS)) < ALPHA


def test_laplace_noise_has_its_closed_form_for_two_candidates() -> None:
    draws = [int(noisy_top([3.0, 0.0], noise="laplace")[0]) for _ in range(20_000)]
    assert p_value(draws, two_laplace(3)) > ALPHA
    assert p_value(draws, two_laplace(3.3)) < ALPHA
    assert p_value(draws, softmax([3, 0])) < ALPHA


def test_the_top_k_are_draws_without_replacement_in_order() -> None:
    draws = [tuple(noisy_top(SCORES, 2, scale=SCALE).tolist()) for _ in range(20_000)]
    assert p_value(draws, without_replacement(EXPONENTS, 2)) > ALPHA
    assert p_value(draws, without_replacement([1.3 * x for x in EXPONENTS], 2)) < ALPHA
    assert p_value([draw[::-1] for draw in draws], without_replacement(EXPONENTS, 2)) < ALPHA


@pytest.mark.parametrize("k", [1, 2, 4])
def test_candidates_settled_by_integers_alone_have_the_same_law(k: int) -> None:
    candidates = Scores(SCORES)
    draws = [tuple(ranked(candidates, SCALE, LazyNoise("gumbel", 4), k, slack=1e9).tolist()) for _ in range(4_000)]
    assert p_value(draws, without_replacement(EXPONENTS, k)) > ALPHA
    assert p_value(draws, without_replacement([1.5 * x for x in EXPONENTS], k)) < ALPHA


@given(
    scores=lists(floats(-30, 30), min_size=1, max_size=10),
    noise=sampled_from(sorted(LAWS)),
    seed=integers(0, 1 << 32),
    data=integers(1, 10),
)
def test_floats_and_integers_rank_alike_on_the_same_words(
    scores: list[float], noise: str, seed: int, data: int
) -> None:
    k = min(data, len(scores))
    candidates, factor = Scores(scores), Fraction(3, 7)
    by_floats = ranked(candidates, factor, LazyNoise(noise, len(scores), generator=SeededGenerator(seed)), k)
    draws = LazyNoise(noise, len(scores), generator=SeededGenerator(seed))
    assert by_floats.tolist() == settle_order(range(len(scores)), candidates, factor, draws, k)


@given(word=WORDS, noise=sampled_from(sorted(LAWS)))
def test_the_float_of_a_draw_is_within_its_stated_error(word: int, noise: str) -> None:
    draws = LazyNoise(noise, 1, generator=Scripted(word))
    values, error = draws.floats()
    low, high = draws.ends(0, 64)
    error = float(np.broadcast_to(error, 1)[0])
    if math.isfinite(error):
        assert low is not None
        assert high is not None
        assert low / 2**64 >= values[0] - error
        assert high / 2**64 <= values[0] + error


@pytest.mark.parametrize("noise", sorted(LAWS))
@pytest.mark.parametrize("word", [0, 1, (1 << 40) - 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 1])
def test_words_at_an_end_claim_nothing_until_more_bits_are_drawn(noise: str, word: int) -> None:
    draws = LazyNoise(noise, 1, generator=Scripted(word))
    _, error = draws.floats()
    assert np.all(np.isinf(error))
    low, high = draws.ends(0, 256)
    assert low is not None
    assert high is not None
    assert (high - low) / 2.0**256 < 1e-9


@given(word=WORDS, follows=WORDS, noise=sampled_from(sorted(LAWS)))
def test_more_bits_stay_within_the_ends_of_fewer(word: int, follows: int, noise: str) -> None:
    draws = LazyNoise(noise, 1, generator=Scripted(word, follows, follows))
    outer = draws.ends(0, 64)
    inner = draws.ends(0, 192)
    if outer[0] is not None:
        assert inner[0] is not None
        assert inner[0] >= (outer[0] - 1) << 128
    if outer[1] is not None:
        assert inner[1] is not None
        assert inner[1] <= (outer[1] + 1) << 128


def test_two_candidates_with_the_same_first_words_are_told_apart_by_later_ones() -> None:
    word = 1 << 62
    wins = [int(noisy_top([5, 5], generator=Scripted(word, word))[0]) for _ in range(2000)]
    assert p_value(wins, {0: 0.5, 1: 0.5}) > ALPHA
    assert p_value(wins, {0: 0.7, 1: 0.3}) < ALPHA


def test_extreme_scores_and_scales_are_ranked_exactly() -> None:
    assert noisy_top([-1.7e308, 0.0, 1.7e308], 3).tolist() == [2, 1, 0]
    assert noisy_top([0, 1, 2], 3, scale=Fraction(10**400)).tolist() == [2, 1, 0]
    assert noisy_top([Fraction(10**400), Fraction(10**399), 0], 3).tolist() == [0, 1, 2]
    huge = [0, -(10**330), -(10**331)]  # all below the range of floats, and still in order
    assert noisy_top(huge, 3, scale=1e-280).tolist() == [0, 1, 2]


@pytest.mark.parametrize("k", [0, -1, 3, 1.5, None, True])
def test_k_must_be_a_number_of_candidates(k: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="k = "):
        noisy_top([1, 2], k, generator=source)
    assert source.drawn == 0


def test_bad_laws_scores_and_scales_are_refused_before_any_word_is_drawn() -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="did you mean 'gumbel'"):
        noisy_top([1, 2], noise="gumble", generator=source)
    with pytest.raises(DiscreetError, match="scores"):
        noisy_top([math.nan, 2.0], generator=source)
    with pytest.raises(DiscreetError, match="scale"):
        noisy_top([1, 2], scale=0, generator=source)
    assert source.drawn == 0
