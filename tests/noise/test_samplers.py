"""Every sampler: its law and no other, at every scale, single and many, and what it refuses."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from discreet.errors import InvalidArgument
from discreet.noise import (
    Generator,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    rounded_gaussian,
    rounded_laplace,
    truncated_geometric,
)
from discreet.noise.gaussian import FEW, FEW_SCALE, DiscreteLayers, Layers, RoundedLayers
from discreet.noise.testing import SeededGenerator
from noise.chosen import ChosenWords
from noise.statistics import ALPHA, DRAWS, p_value, p_value_of_residues

Below = Callable[[np.ndarray], np.ndarray]


def below_discrete_laplace(scale: float) -> Below:
    # P(X < k) = e^{(k-1)/t} / (1 + e^{-1/t}) for k <= 0 and 1 - e^{-k/t} / (1 + e^{-1/t}) for k >= 1
    norm = 1 + np.exp(-1 / scale)
    return lambda k: np.where(
        k <= 0, np.exp(np.minimum(k - 1, 0) / scale) / norm, 1 - np.exp(-np.maximum(k, 0) / scale) / norm
    )


def below_rounded_laplace(scale: float) -> Below:
    x = lambda k: (k - 0.5) / scale
    return lambda k: np.where(k <= 0, np.exp(np.minimum(x(k), 0)) / 2, 1 - np.exp(-np.maximum(x(k), 0)) / 2)


def below_geometric(scale: float) -> Below:
    return lambda k: -np.expm1(-np.maximum(k, 0) / scale)


def below_discrete_gaussian(scale: float) -> Below:
    if scale > 50:  # the rounded Gaussian and the discrete one agree to 1/(24 scale²) there
        return below_rounded_gaussian(scale)
    k = np.arange(-int(12 * scale) - 3, int(12 * scale) + 4)
    mass = np.exp(-(k**2) / (2 * scale**2))
    sums = np.concatenate([[0], np.cumsum(mass)]) / mass.sum()
    return lambda x: sums[np.clip(np.asarray(x, dtype=np.int64) - k[0], 0, len(k))]


def below_rounded_gaussian(scale: float) -> Below:
    return lambda k: ndtr((k - 0.5) / scale)


SAMPLERS: list[tuple[Any, Callable[[float], Below], float]] = [
    (discrete_laplace, below_discrete_laplace, 1e12),
    (rounded_laplace, below_rounded_laplace, 1e12),
    (geometric, below_geometric, 1e12),
    (discrete_gaussian, below_discrete_gaussian, 1e9),
    (rounded_gaussian, below_rounded_gaussian, 1e12),
]
IDS = [sampler.__name__ for sampler, _, _ in SAMPLERS]
SCALES = [0.5, 1, 3.3, 40, 1000, 1024, 1025, 4e3, 1e6, 3e7, 1e9, 1e12]
CASES = [
    pytest.param(sampler, below, scale, id=f"{sampler.__name__} {scale:g}")
    for sampler, below, most in SAMPLERS
    for scale in SCALES
    if scale <= most
]


@pytest.mark.parametrize(("sampler", "below", "scale"), CASES)
def test_draws_have_their_scale_and_no_other(sampler: Any, below: Callable[[float], Below], scale: float) -> None:
    draws = sampler(scale, DRAWS)
    assert p_value(draws, below(scale)) > ALPHA
    assert p_value(draws, below(scale * 1.1)) < ALPHA
    assert p_value(draws, below(scale * 0.9)) < ALPHA


@pytest.mark.parametrize(("sampler", "below", "scale"), CASES)
def test_single_draws_have_the_same_law(sampler: Any, below: Callable[[float], Below], scale: float) -> None:
    draws = np.array([sampler(scale) for _ in range(4000)])
    assert p_value(draws, below(scale), cells=20) > ALPHA
    assert p_value(draws, below(scale * 1.5), cells=20) < ALPHA
    assert p_value(draws, below(scale / 1.5), cells=20) < ALPHA


@pytest.mark.parametrize(("sampler", "below", "scale"), CASES)
def test_a_few_draws_at_a_time_have_the_same_law(sampler: Any, below: Callable[[float], Below], scale: float) -> None:
    draws = np.concatenate([sampler(scale, 1000) for _ in range(130)])
    assert p_value(draws, below(scale)) > ALPHA
    assert p_value(draws, below(scale * 1.1)) < ALPHA
    assert p_value(draws, below(scale * 0.9)) < ALPHA


@pytest.mark.parametrize("scale", [8, 8.3, 31.9, 32, 63, 65, 1e3, 1e6 + 1 / 3, 1e12])
def test_rounded_gaussians_have_the_same_law_with_layers_for_few_draws(scale: float) -> None:
    draws = np.concatenate([rounded_gaussian(scale, FEW) for _ in range(4)])
    assert p_value(draws, below_rounded_gaussian(scale)) > ALPHA
    assert p_value(draws, below_rounded_gaussian(scale * 1.1)) < ALPHA
    assert p_value(draws, below_rounded_gaussian(scale * 0.9)) < ALPHA


@pytest.mark.parametrize(("sampler", "below", "scale"), [c for c in CASES if c.values[2] > 1e6])
def test_the_lowest_bits_of_large_noise_are_fair(sampler: Any, below: Callable[[float], Below], scale: float) -> None:
    draws = sampler(scale, DRAWS)
    for modulus in (2, 3, 8, 12, 1024):
        assert p_value_of_residues(draws, modulus) > ALPHA
    assert p_value_of_residues(draws // 2 * 2, 8) < ALPHA


@pytest.mark.parametrize("scale", [0.7, 3, 900])
def test_rounded_is_not_discrete_where_they_differ(scale: float) -> None:
    if scale < 3:
        assert p_value(rounded_laplace(scale, DRAWS), below_discrete_laplace(scale)) < ALPHA
        assert p_value(rounded_gaussian(scale, DRAWS), below_discrete_gaussian(scale)) < ALPHA
    assert p_value(rounded_gaussian(scale, DRAWS), below_rounded_laplace(scale)) < ALPHA


def test_the_discrete_gaussian_of_a_large_scale_counts_zero_once() -> None:
    # +0 is kept and -0 is not: the same words with the other sign give a new draw
    word, place, chance = 0, 0, 2**64 - 1
    assert discrete_gaussian(10**6, generator=ChosenWords([word, place, chance])) == 0
    generator = ChosenWords([word | 1, place, chance])
    discrete_gaussian(10**6, generator=generator)
    assert generator.taken >= 6
    assert discrete_gaussian(10**6, 1, generator=ChosenWords([word, place, chance])).tolist() == [0]
    generator = ChosenWords([word | 1, place, chance])
    discrete_gaussian(10**6, 1, generator=generator)
    assert generator.taken >= 6
    generator = ChosenWords([word | 1, place, chance])
    assert rounded_gaussian(10**6, generator=generator) == 0
    assert generator.taken == 3


@pytest.mark.parametrize(
    "sampler",
    [DiscreteLayers(Fraction(scale)) for scale in (5000, 10**6, 10**9)]
    + [RoundedLayers(Fraction(scale), widest=w) for scale in (9, 63, 65, 5000, 10**12) for w in (FEW_SCALE, 256)],
    ids=lambda sampler: f"{type(sampler).__name__} {sampler.shift} {float(sampler.decay):.3g}",
)
def test_single_and_many_large_gaussians_agree_on_the_same_words(sampler: Layers) -> None:
    for seed in range(100):
        words = SeededGenerator(seed).words(3).tolist()
        words[2] >>= seed % 20  # small chances: many of them are rejected or cannot be decided in floating point
        one, many = ChosenWords(words), ChosenWords(words)
        first, second = int(sampler.one(one)), sampler.many(1, many).tolist()
        if one.taken == many.taken == 3:
            assert [first] == second
        else:
            assert one.taken > 3
            assert many.taken > 3


@pytest.mark.parametrize(("sampler", "below", "most"), SAMPLERS, ids=IDS)
@pytest.mark.parametrize("scale", [0.3, 7, 5000, 10**8])
def test_the_same_words_give_the_same_draws(sampler: Any, below: object, most: float, scale: float) -> None:
    one, other = sampler(scale, 1000, generator=SeededGenerator(3)), sampler(scale, 1000, generator=SeededGenerator(3))
    assert one.tolist() == other.tolist()
    assert one.tolist() != sampler(scale, 1000, generator=SeededGenerator(4)).tolist()
    assert one.tolist() != sampler(scale, 1000).tolist()


@pytest.mark.parametrize(("sampler", "below", "most"), SAMPLERS, ids=IDS)
def test_sizes_give_shapes_and_none_a_python_integer(sampler: Any, below: object, most: float) -> None:
    assert type(sampler(3)) is int
    for size, shape in [(0, (0,)), (5, (5,)), ((2, 3), (2, 3)), ((), ()), ((4, 0, 2), (4, 0, 2)), (np.int64(7), (7,))]:
        draws = sampler(3, size)
        assert draws.shape == shape
        assert draws.dtype == np.int64
    assert sampler(2000, 300_001).shape == (300_001,)


@pytest.mark.parametrize(("sampler", "below", "most"), SAMPLERS, ids=IDS)
def test_wrong_arguments_are_refused_before_a_word_is_drawn(sampler: Any, below: object, most: float) -> None:
    generator = ChosenWords([])
    not_positive = [0, -1, -0.0, Fraction(-1, 3), float("nan"), float("inf")]
    for scale in [*not_positive, "1", None, True, 1j, np.array([1.0]), most * 1.001]:
        with pytest.raises(InvalidArgument, match="scale = "):
            sampler(scale, 10, generator=generator)
        with pytest.raises(InvalidArgument, match="scale = "):
            sampler(scale, generator=generator)
    for size in [-1, 1.5, "3", (2, -1), (1.5,), True, 10**15, (10**10, 10**10), 10**30]:
        with pytest.raises(InvalidArgument, match="size = "):
            sampler(1, size, generator=generator)
    for predictable in [np.random.default_rng(1), random.Random(2), 3]:
        with pytest.raises(InvalidArgument, match="generator = "):
            sampler(1, 10, generator=predictable)
    assert generator.taken == 0


@pytest.mark.parametrize(("sampler", "below", "most"), SAMPLERS, ids=IDS)
def test_a_scale_of_any_exact_kind_means_the_same(sampler: Any, below: object, most: float) -> None:
    same = [2.5, Fraction(5, 2), np.float64(2.5), np.float32(2.5)]
    draws = [sampler(scale, 200, generator=SeededGenerator(9)).tolist() for scale in same]
    assert all(other == draws[0] for other in draws)
    whole = [sampler(scale, 200, generator=SeededGenerator(9)).tolist() for scale in (3, 3.0, np.int64(3))]
    assert whole[0] == whole[1] == whole[2]


@pytest.mark.parametrize(("sampler", "below", "most"), SAMPLERS, ids=IDS)
@pytest.mark.parametrize("scale", [5e-324, 1e-300, Fraction(1, 10**400), 1e-3])
def test_a_tiny_scale_gives_zeros(sampler: Any, below: object, most: float, scale: float) -> None:
    assert not sampler(scale, 10_000).any()
    assert sampler(scale) == 0


def test_truncated_geometric_noise_is_clamped_and_its_ends_carry_the_tails() -> None:
    draws = truncated_geometric(4, 6, DRAWS)
    full = below_discrete_laplace(4.0)
    clamped = lambda k: np.where(k <= -6, 0.0, np.where(k > 6, 1.0, full(k)))
    assert (draws.min(), draws.max()) == (-6, 6)
    assert p_value(draws, clamped) > ALPHA
    assert p_value(draws, full) < ALPHA
    end = np.exp(-6 / 4) / (1 + np.exp(-1 / 4))  # the docstring's mass at either end
    assert abs((draws == 6).mean() - end) < 7 * np.sqrt(end / DRAWS)
    assert abs((draws == -6).mean() - end) < 7 * np.sqrt(end / DRAWS)
    assert type(truncated_geometric(4, 6)) is int
    assert {abs(truncated_geometric(1e9, 1)) for _ in range(50)} == {1}


@pytest.mark.parametrize("bound", [0, -1, 1.5, None, 2**63])
def test_a_wrong_bound_is_refused(bound: object) -> None:
    with pytest.raises(InvalidArgument, match="bound = "):
        truncated_geometric(1, bound)  # type: ignore[arg-type]


def test_the_tail_of_the_gaussian_is_not_cut() -> None:
    # the largest of n draws: P(max |X| > x) = 1 - (1 - 2 Φ(-x))^n; both ends at ALPHA
    n = 2_000_000
    largest = int(np.abs(rounded_gaussian(5000, n)).max()) / 5000
    tail = lambda x: float(-np.expm1(n * np.log1p(-2 * np.exp(log_ndtr(-x)))))
    assert 1e-6 < tail(largest) < 1 - 1e-6


def test_generators_that_only_give_words_are_enough() -> None:
    class Minimal(Generator):
        def words(self, n: int) -> np.ndarray:
            return SeededGenerator(n).words(n)

    assert type(discrete_laplace(5, generator=Minimal())) is int
    assert discrete_gaussian(5e5, 100, generator=Minimal()).shape == (100,)
