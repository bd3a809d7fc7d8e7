"""Choices: the law on paper, whichever arithmetic decides; floats only decide how soon it is known."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, sampled_from

from discreet.errors import DiscreetError
from discreet.noise import choice, exponential_choice, permute_and_flip
from discreet.noise.certified import exp_minus
from discreet.noise.choice import EXP_ERROR, FAR, Listed, cumulative, flipped, listed_choices, settle_choice
from discreet.noise.scores import Scores
from discreet.noise.testing import SeededGenerator
from noise.frequencies import ALPHA, Scripted, p_value, permute_and_flip_law, softmax

SCORES = [Fraction(0), Fraction(1), Fraction(5, 2), Fraction(1, 3), Fraction(-1)]
SCALE = Fraction(7, 10)
EXPONENTS = [SCALE * score for score in SCORES]
SEEDS = integers(0, 1 << 32)


def test_the_exponential_choice_has_its_law_and_no_other() -> None:
    draws = exponential_choice(SCORES, 200_000, scale=SCALE).tolist()
    assert p_value(draws, softmax(EXPONENTS)) > ALPHA
    assert p_value(draws, softmax([1.1 * x for x in EXPONENTS])) < ALPHA
    assert p_value(draws, permute_and_flip_law(EXPONENTS)) < ALPHA


def test_single_exponential_choices_have_the_same_law() -> None:
    scores = np.array([float(score) for score in SCORES])
    draws = [exponential_choice(scores, scale=SCALE) for _ in range(20_000)]
    assert p_value(draws, softmax(EXPONENTS)) > ALPHA
    assert p_value(draws, softmax([1.3 * x for x in EXPONENTS])) < ALPHA


def test_permute_and_flip_has_its_law_and_no_other() -> None:
    scores = np.array([float(score) for score in SCORES])
    draws = [permute_and_flip(scores, scale=SCALE) for _ in range(20_000)]
    assert p_value(draws, permute_and_flip_law(EXPONENTS)) > ALPHA
    assert p_value(draws, permute_and_flip_law([1.3 * x for x in EXPONENTS])) < ALPHA
    assert p_value(draws, softmax(EXPONENTS)) < ALPHA


def test_equal_scores_are_equally_likely() -> None:
    even, tilted = dict.fromkeys(range(4), 0.25), {0: 0.28, 1: 0.24, 2: 0.24, 3: 0.24}
    for draws in (
        exponential_choice([7, 7, 7, 7], 20_000).tolist(),
        [permute_and_flip([7, 7, 7, 7]) for _ in range(20_000)],
    ):
        assert p_value(draws, even) > ALPHA
        assert p_value(draws, tilted) < ALPHA


@given(scores=lists(floats(-50, 50), min_size=1, max_size=12), seed=SEEDS)
def test_floats_and_integers_choose_the_same_on_the_same_words(scores: list[float], seed: int) -> None:
    candidates, follows = Scores(scores), [int(word) for word in SeededGenerator(seed + 1).words(9)]
    for word in [*map(int, SeededGenerator(seed).words(10)), 0, (1 << 64) - 1, 1 << 63]:
        by_floats = exponential_choice(scores, generator=Scripted(word, *follows))
        assert by_floats == settle_choice(word, candidates, Fraction(1), Scripted(*follows))


@given(scores=lists(sampled_from([0, -1, -7, -300]), min_size=1, max_size=40), seed=SEEDS)
def test_runs_of_equal_scores_are_settled_as_one_by_one(scores: list[int], seed: int) -> None:
    """Each end at 2000 bits: a word that is clear lies between two of them."""
    low, high = zip(*(exp_minus(Fraction(max(scores) - score), 2000) for score in scores), strict=True)
    lower, upper = list(itertools.accumulate(low)), list(itertools.accumulate(high))
    follows = [int(word) for word in SeededGenerator(seed + 1).words(31)]
    edges = [min((end << 64) // lower[-1], (1 << 64) - 1) for end in lower]
    words = [0, (1 << 64) - 1, *map(int, SeededGenerator(seed).words(5)), *edges, *(max(edge - 1, 0) for edge in edges)]
    for word in words:
        whole, bits = int.from_bytes(b"".join(w.to_bytes(8, "big") for w in (word, *follows))), 64 * 32
        i = settle_choice(word, Scores(scores), Fraction(1), Scripted(*follows))
        assert i == 0 or whole * upper[-1] >= lower[i - 1] << bits
        assert whole * lower[-1] < upper[i] << bits


@pytest.mark.parametrize("scores", [np.zeros(1 << 20, dtype=np.int64), np.zeros(1 << 20)])
def test_a_million_equal_scores_are_settled_by_one_weight(scores: np.ndarray) -> None:
    for word in map(int, SeededGenerator(3).words(200)):
        assert settle_choice(word, Scores(scores), Fraction(1), Scripted(5)) == word >> 44


@given(
    scores=lists(sampled_from([0.0, -3.0, -63.9, -64.1, -80.0, -400.0, -800.0]), min_size=1, max_size=12), seed=SEEDS
)
def test_candidates_too_unlikely_to_be_weighed_are_chosen_where_they_would_be(scores: list[float], seed: int) -> None:
    # words of 0 and 1 in all bits, on which the unlikely ones before and behind all others lie, and between them
    candidates = Scores(scores)
    _, ends, _ = cumulative(candidates, Fraction(1))
    edges = [min(int(end / ends[-1] * 2**53) << 11, (1 << 64) - 1) for end in ends]
    words = [
        0,
        1,
        (1 << 64) - 1,
        *map(int, SeededGenerator(seed).words(5)),
        *edges,
        *(max(edge - 1, 0) for edge in edges),
    ]
    for word in words:
        for follows in ([0] * 9, [(1 << 64) - 1] * 9, [int(w) for w in SeededGenerator(seed + 1).words(9)]):
            exact = settle_choice(word, candidates, Fraction(1), Scripted(*follows))
            assert exponential_choice(scores, generator=Scripted(word, *follows)) == exact
            assert exponential_choice(scores, 1, generator=Scripted(word, *follows)).tolist() == [exact]


def listed(*each: tuple[np.ndarray, np.ndarray]) -> Listed:
    """Choices with these places listed, among all these scores."""
    starts = np.cumsum([0, *(places.size for places, _ in each)])
    places = [places for places, _ in each]
    scores = [every[places] for places, every in each]
    nothing = [np.zeros(0, dtype=np.int64)]
    return Listed(starts, np.concatenate(places + nothing), np.concatenate(scores + nothing), lambda i: each[i][1])


@given(scores=lists(sampled_from([0, -3, -63, -64, -65, -80, -400]), min_size=1, max_size=12), seed=SEEDS)
def test_among_listed_candidates_the_choice_is_that_among_all(scores: list[int], seed: int) -> None:
    every, last = np.array(scores), len(scores) - 1
    places = np.array([i for i, score in enumerate(scores) if i in (0, last) or max(scores) - score < FAR])
    _, ends, _ = cumulative(Scores(every[places]), Fraction(1))
    edges = [min(int(end / ends[-1] * 2**53) << 11, (1 << 64) - 1) for end in ends]
    words = [0, (1 << 64) - 1, *map(int, SeededGenerator(seed).words(5)), *edges, *(max(edge - 1, 0) for edge in edges)]
    for word in words:
        for follows in ([0] * 9, [(1 << 64) - 1] * 9, [int(w) for w in SeededGenerator(seed + 1).words(9)]):
            exact = settle_choice(word, Scores(every), Fraction(1), Scripted(*follows))
            for beside in ([], [(np.arange(20), np.zeros(20, dtype=np.int64))]):
                told = Scripted(word, *(0 for _ in beside), *follows)
                chosen = listed_choices(listed((places, every), *beside), generator=told)
                assert chosen.tolist() == [exact, *(0 for _ in beside)]


def test_choices_side_by_side_have_their_laws_and_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are put into one table: of unequal lengths, each with its own scores."""
    scores = np.array([0, 1, 3, 0, -1])
    long = np.array([*([-70] * 30), 0, 1, -2])
    each = [(np.arange(one.size), one) for one in (scores, long)]
    monkeypatch.setattr(choice, "_TABLE", 200)
    draws = listed_choices(listed(*each * 20_000), scale=SCALE).reshape(-1, 2)
    for factor, holds in ((1.0, True), (1.2, False)):
        laws = [softmax([factor * float(SCALE) * x for x in one.tolist()]) for one in (scores, long)]
        pairs = {(a, b): laws[0][a] * laws[1][b] for a, b in itertools.product(*laws)}
        assert (p_value(map(tuple, draws.tolist()), pairs) > ALPHA) == holds


def test_choices_by_factors_beyond_floats_are_side_by_side_as_well() -> None:
    tiny = Fraction(1, 10**300)
    large = np.array([0, 10**18])
    one = (np.arange(2), large)
    draws = listed_choices(listed(*[one] * 4000), scale=tiny)
    assert 1800 < draws.sum() < 2200
    assert listed_choices(listed(*[one] * 9), scale=10**300).tolist() == [1] * 9
    ends = np.array([0, 1]), np.array([-(2**62), 2**62 - 1])
    assert listed_choices(listed(ends, one), scale=9 * 10**289).tolist() == [1, 1]  # products of floats overflow
    assert listed_choices(listed(), scale=1).tolist() == []


@given(scores=lists(floats(-50, 50), min_size=1, max_size=12), seed=SEEDS)
def test_coins_settled_exactly_fall_as_coins_compared_in_floats(scores: list[float], seed: int) -> None:
    candidates = Scores(scores)
    words = SeededGenerator(seed).words(len(scores))
    chosen = [
        flipped(words, candidates, Fraction(1), SeededGenerator(seed + 1), slack=slack) for slack in (0.0, 2.0, 1e-6)
    ]
    assert chosen[0] == chosen[1] == chosen[2]


def test_coins_settled_exactly_have_the_law_of_permute_and_flip() -> None:
    candidates, source = Scores(SCORES), Scripted()
    draws = [flipped(source.words(5), candidates, SCALE, source, slack=2.0) for _ in range(10_000)]
    assert p_value(draws, permute_and_flip_law(EXPONENTS)) > ALPHA
    assert p_value(draws, permute_and_flip_law([1.3 * x for x in EXPONENTS])) < ALPHA


def test_choices_settled_exactly_have_the_law_of_the_exponential_choice() -> None:
    candidates, source = Scores(SCORES), Scripted()
    draws = [settle_choice(source.word(), candidates, SCALE, source) for _ in range(10_000)]
    assert p_value(draws, softmax(EXPONENTS)) > ALPHA
    assert p_value(draws, softmax([1.3 * x for x in EXPONENTS])) < ALPHA


def test_a_word_on_a_boundary_is_refined_and_falls_on_both_sides() -> None:
    # equal scores: the boundary 1/2 is exact, and the word below it is certain only with further bits or integers
    boundary = 1 << 63
    assert exponential_choice([0, 0], generator=Scripted(boundary)) == 1
    assert exponential_choice([0, 0], generator=Scripted(boundary - 1, 5)) == 0
    # three: 2^64 / 3 is no integer, so the word that holds the boundary goes to either side
    word = (1 << 64) // 3
    answers = [exponential_choice([0, 0, 0], generator=Scripted(word)) for _ in range(3000)]
    assert p_value(answers, {0: 1 / 3, 1: 2 / 3}) > ALPHA
    assert p_value(answers, {0: 1 / 2, 1: 1 / 2}) < ALPHA
    assert exponential_choice([0, 0, 0], 3, generator=Scripted(word - 1, word + 1, 0)).tolist() == [0, 1, 0]


def test_a_candidate_too_unlikely_for_floats_is_reachable_with_its_exact_probability() -> None:
    # P(0) = e^-60 / (1 + e^-60) = 2^-86.6: among words that start with 64 zero bits it has probability 2^64 e^-60
    share = 2**64 * math.exp(-60)
    assert share < 2**-22
    deeper = 2**128 * math.exp(-60) / 2**64
    assert deeper == pytest.approx(share)
    first = exponential_choice([0, 60], generator=Scripted(0, 0, 5))
    assert first == 0
    assert exponential_choice([0, 60], generator=Scripted(0, 1 << 50)) == 1
    assert exponential_choice([60, 0], generator=Scripted((1 << 64) - 1, (1 << 64) - 1)) == 1


def test_coins_of_unlikely_candidates_fall_too() -> None:
    assert permute_and_flip([0, 60], generator=Scripted(0, 0, 0, 0)) in (0, 1)
    falls = [permute_and_flip([0, 60], generator=Scripted(0, 1 << 60, 0)) for _ in range(200)]
    assert {0, 1} == set(falls)


@given(values=lists(floats(0, 745), min_size=1, max_size=50))
def test_numpy_keeps_the_exponential_within_the_error_that_is_allowed(values: list[float]) -> None:
    before, ctx.prec = ctx.prec, 200
    try:
        for x, computed in zip(values, np.exp(-np.array(values)).tolist(), strict=True):
            truth = (-arb(x)).exp()
            assert abs(arb(computed) - truth) <= truth * arb(EXP_ERROR / 16) + arb(1e-300)
    finally:
        ctx.prec = before


def test_extreme_scores_and_scales_are_chosen_without_overflow() -> None:
    assert exponential_choice([-1.7e308, 1.7e308]) == 1
    assert permute_and_flip([1.7e308, -1.7e308]) == 0
    assert exponential_choice([0, 1], scale=Fraction(10**400)) == 1
    assert permute_and_flip([Fraction(10**400), Fraction(0)], scale=1e-300) == 0
    draws = exponential_choice([0, Fraction(10**400)], 20_000, scale=Fraction(1, 10**400)).tolist()
    assert p_value(draws, softmax([0, 1])) > ALPHA
    assert p_value(draws, softmax([0, 0.8])) < ALPHA


def test_one_candidate_is_always_chosen_and_shapes_are_kept() -> None:
    assert exponential_choice([3.5]) == 0
    assert permute_and_flip(np.array([3])) == 0
    assert exponential_choice([1, 2], (2, 3)).shape == (2, 3)
    assert exponential_choice([1, 2], 0).shape == (0,)


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, None, "1"])
@pytest.mark.parametrize("choose", [exponential_choice, permute_and_flip])
def test_bad_scales_are_refused_before_any_word_is_drawn(choose, scale: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="scale"):
        choose([1, 2], scale=scale, generator=source)
    assert source.drawn == 0


@pytest.mark.parametrize("scores", [[], [math.nan, 1.0], np.zeros((2, 2)), "ab"])
@pytest.mark.parametrize("choose", [exponential_choice, permute_and_flip])
def test_bad_scores_are_refused_before_any_word_is_drawn(choose, scores: object) -> None:
    source = Scripted()
    with pytest.raises(DiscreetError, match="scores"):
        choose(scores, generator=source)
    assert source.drawn == 0
