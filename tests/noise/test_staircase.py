"""Staircase noise: its law and no other, from a table and step by step, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.noise import SecureGenerator, staircase
from discreet.noise.staircase import FirstStep, StaircaseMagnitude, Steps
from discreet.noise.table import Table, thresholds
from discreet.noise.testing import SeededGenerator
from noise.chosen import ChosenWords
from noise.statistics import ALPHA, DRAWS, Below, p_value, p_value_of_residues

Q = Fraction


def weights(epsilon: float, sensitivity: int, split: int, reach: int) -> np.ndarray:
    """The law as it is defined, on -reach .. reach."""
    x = np.abs(np.arange(-reach, reach + 1))
    block, offset = np.divmod(x, sensitivity)
    mass = np.exp(-epsilon * (block + (offset >= split)))
    return mass / mass.sum()


def below(epsilon: float, sensitivity: int, split: int) -> Below:
    reach = int(sensitivity * (45 / epsilon + 2))
    sums = np.concatenate([[0], np.cumsum(weights(epsilon, sensitivity, split, reach))])
    return lambda k: sums[np.clip(np.asarray(k, dtype=np.int64) + reach, 0, len(sums) - 1)]


SMALL = [(1.0, 10, 3), (0.1, 7, 7), (2.5, 1, 1), (5.0, 20, 2), (0.3, 100, 38)]


def fresh() -> SeededGenerator:
    """Other words on every run."""
    return SeededGenerator(SecureGenerator().integer(64))


@pytest.mark.parametrize(("epsilon", "sensitivity", "split"), SMALL)
def test_draws_have_their_law_and_no_other(epsilon: float, sensitivity: int, split: int) -> None:
    steps = Steps(Q(epsilon), sensitivity, split)
    for draws in (staircase(epsilon, sensitivity, split, DRAWS), steps.many(DRAWS, fresh())):
        assert p_value(draws, below(epsilon, sensitivity, split)) > ALPHA
        assert p_value(draws, below(epsilon / 1.15, sensitivity, split)) < ALPHA
        if 1 < split < sensitivity:
            assert p_value(draws, below(epsilon, sensitivity, split // 2)) < ALPHA


@pytest.mark.parametrize(("epsilon", "sensitivity", "split"), SMALL)
def test_single_draws_have_the_same_law(epsilon: float, sensitivity: int, split: int) -> None:
    steps, generator = Steps(Q(epsilon), sensitivity, split), fresh()
    for draws in (
        np.array([staircase(epsilon, sensitivity, split) for _ in range(5000)]),
        np.array([steps.one(generator) for _ in range(5000)]),
    ):
        assert p_value(draws, below(epsilon, sensitivity, split), cells=25) > ALPHA
        assert p_value(draws, below(epsilon / 1.6, sensitivity, split), cells=25) < ALPHA


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "split"),
    [(1.0, 10**6, 10**5), (1e-6, 30, 7), (3.0, 10**12, 10**7), (0.01, 10**9, 10**9)],
)
def test_large_noise_has_its_blocks_and_fair_places(epsilon: float, sensitivity: int, split: int) -> None:
    draws = staircase(epsilon, sensitivity, split, DRAWS)
    blocks, places = np.divmod(np.abs(draws), sensitivity)
    assert p_value(blocks, lambda k: -np.expm1(-epsilon * np.maximum(k, 0))) > ALPHA
    assert p_value(blocks, lambda k: -np.expm1(-epsilon / 1.1 * np.maximum(k, 0))) < ALPHA
    on_first = places < split
    share = split / (split + np.exp(-epsilon) * (sensitivity - split))
    assert abs(on_first.mean() - share) < 7 * np.sqrt(share / DRAWS)
    first = places[on_first]
    assert p_value(first, lambda k: np.clip(k, 0, split) / split) > ALPHA or first.size < 1000
    assert p_value_of_residues(draws, 8) > ALPHA
    assert 0.4 < (draws > 0).mean() < 0.6
    assert abs(staircase(epsilon, sensitivity, split)) < 60 * sensitivity / epsilon + sensitivity


@given(
    epsilon=st.fractions(min_value=Q(1, 20), max_value=60),
    sensitivity=st.integers(1, 30),
    share=st.floats(0, 1),
    k=st.integers(1, 200),
    bits=st.integers(1, 200),
)
def test_the_distribution_function_is_the_sum_of_its_masses(
    epsilon: Fraction, sensitivity: int, share: float, k: int, bits: int
) -> None:
    split = 1 + int(share * (sensitivity - 1))
    with mpmath.workprec(bits + 120):
        b = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        mass = lambda x: b ** (x // sensitivity + (x % sensitivity >= split))
        whole = 2 * sum(mass(x) for x in range(sensitivity)) / (1 - b) - 1
        true = (2 * sum(mass(x) for x in range(k)) - 1) / whole
        low, high = StaircaseMagnitude(epsilon, sensitivity, split).bounds(k, bits)
        tiny = mpmath.ldexp(1, -60)  # the sum of the masses is rounded
        assert low - tiny <= mpmath.ldexp(true, bits) <= high + tiny
        assert high - low <= 4
        if split < sensitivity:
            low, high = FirstStep(epsilon, sensitivity, split).bounds(1, bits)
            assert low <= mpmath.ldexp(split / (split + b * (sensitivity - split)), bits) <= high
            assert high - low <= 4


@given(epsilon=st.floats(0.2, 20), sensitivity=st.integers(1, 12), share=st.floats(0, 1))
def test_a_shift_by_the_sensitivity_changes_no_mass_by_more_than_epsilon(
    epsilon: float, sensitivity: int, share: float
) -> None:
    split = 1 + int(share * (sensitivity - 1))
    table = [0, *thresholds(StaircaseMagnitude(Q(epsilon), sensitivity, split))]
    mass = np.diff(np.array(table, dtype=np.uint64)) / 2.0**63
    mass = np.concatenate([mass[:0:-1] / 2, mass[:1], mass[1:] / 2])
    for shift in range(1, sensitivity + 1):
        here, there = mass[shift:], mass[:-shift]
        big = np.minimum(here, there) > 1e-9
        assert np.all(np.abs(np.log(here[big] / there[big])) <= epsilon * (1 + 1e-9) + 1e-9)


def test_zero_is_counted_once_step_by_step() -> None:
    steps = Steps(Q(1), 10**6, 10)
    generator = ChosenWords([0, 0, 0])
    assert steps.one(generator) == 0
    assert generator.taken == 3
    generator = ChosenWords([1, 0, 0])
    steps.one(generator)
    assert generator.taken >= 6


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ((0, 1, 1), "epsilon"),
        ((-1, 1, 1), "epsilon"),
        ((float("nan"), 1, 1), "epsilon"),
        (("1", 1, 1), "epsilon"),
        ((1e-9, 10**6, 1), "epsilon"),
        ((1, 0, 1), "sensitivity"),
        ((1, 2.5, 1), "sensitivity"),
        ((10**6, 10**13, 1), "sensitivity"),
        ((1, 5, 0), "split"),
        ((1, 5, 6), "split"),
        ((1, 5, 1.5), "split"),
        ((1, 5, None), "split"),
    ],
)
def test_wrong_arguments_are_refused_before_a_word_is_drawn(wrong: Any, argument: str) -> None:
    generator = ChosenWords([])
    with pytest.raises(InvalidArgument, match=f"{argument} = "):
        staircase(*wrong, generator=generator)
    with pytest.raises(InvalidArgument, match="size = "):
        staircase(1, 5, 2, -1, generator=generator)
    assert generator.taken == 0


def test_sizes_and_seeds() -> None:
    assert type(staircase(1, 5, 2)) is int
    assert staircase(1, 5, 2, (2, 3)).shape == (2, 3)
    for sensitivity in (5, 10**6):
        draws = [staircase(1, sensitivity, 2, 500, generator=SeededGenerator(s)).tolist() for s in (1, 1, 2)]
        assert draws[0] == draws[1] != draws[2]


def test_the_table_reaches_every_whole_number() -> None:
    table = Table(StaircaseMagnitude(Q(1), 4, 2))
    assert len(table.sorted) < 4 * 46
    assert table.found((2**64 - 2), ChosenWords([2**64 - 1] * 3 + [0])) > 4 * 150
