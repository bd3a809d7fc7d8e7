"""Words to draws: the same as comparing with the thresholds one by one, and exact where a word cannot decide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.noise.law import Digit, Geometric, Law, Sign, TwoSidedGeometric
from discreet.noise.normal_law import DiscreteNormal, RoundedNormal
from discreet.noise.table import LAST, Table
from discreet.noise.testing import SeededGenerator
from noise.chosen import ChosenWords

Q = Fraction
LAWS: list[Law] = [
    Geometric(Q(1, 3)),
    Geometric(Q(50)),
    TwoSidedGeometric(Q(1, 500)),
    DiscreteNormal(Q(20), 2),
    DiscreteNormal(Q(1, 9), 1),
    RoundedNormal(Q(100)),
    Digit(Q(1, 10**9), 8),
    Sign(Q(1, 10)),
]
TABLES = [Table(law) for law in LAWS]


def around(table: Table) -> list[int]:
    """Words at, just below and just above every tenth threshold, and at both ends."""
    marks = {0, 1, LAST - 1, LAST}
    for threshold in table.sorted[:: max(1, len(table.sorted) // 50)] + table.sorted[-30:]:
        marks |= {threshold - 1, threshold, threshold + 1}
    return sorted(u for u in marks if 0 <= u <= LAST)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: repr(t.law))
def test_a_word_that_decides_gives_the_number_of_thresholds_below_it(table: Table) -> None:
    words = [u << 1 | bit for u in around(table) if u not in table.sorted for bit in (0, 1)]
    expected = [sum(t < word >> 1 for t in table.sorted) for word in words]
    generator = ChosenWords([])
    assert [table.found(word, generator) for word in words] == expected
    assert [table.draw(np.array([word], dtype=np.uint64), generator) for word in words] == expected
    assert table.draws(np.array(words, dtype=np.uint64), generator).tolist() == expected
    assert generator.taken == 0


@pytest.mark.parametrize("table", TABLES, ids=lambda t: repr(t.law))
def test_single_and_many_draws_agree_on_random_words(table: Table) -> None:
    words = SeededGenerator(7).words(3000)
    many = table.draws(words, SeededGenerator(8))
    assert many.tolist() == [table.found(int(word), SeededGenerator(8)) for word in words]
    assert many.tolist() == [table.draw(words[i : i + 1], SeededGenerator(8)) for i in range(words.size)]
    assert many.dtype == np.int64


def fraction_bits(law: Law, k: int, bits: int) -> int:
    """The bits of P(M < k) after the first 63."""
    return law.floor(k, 63 + bits) - (law.floor(k, 63) << bits)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: repr(t.law))
def test_a_word_at_a_threshold_is_decided_by_the_next_bits(table: Table) -> None:
    law = table.law
    for k in [1, 2, 3, len(table.sorted) // 2]:
        if not 0 < k <= len(table.sorted) or table.sorted.count(table.sorted[k - 1]) > 1 or table.sorted[k - 1] == LAST:
            continue
        u, deeper = table.sorted[k - 1], fraction_bits(law, k, 64)
        for more, expected in [(deeper - 1, k - 1), (deeper + 1, k), (0, k - 1), (2**64 - 1, k)]:
            if not 0 <= more < 1 << 64 or more == deeper:
                continue
            generator = ChosenWords([more])
            assert table.found(u << 1, generator) == expected
            assert generator.taken == 1
            generator = ChosenWords([more])
            assert table.draw(np.array([u << 1], dtype=np.uint64), generator) == expected
            assert generator.taken == 1
            generator = ChosenWords([more])
            assert table.draws(np.array([u << 1 | 1], dtype=np.uint64), generator).tolist() == [expected]
            assert generator.taken == 1


def test_refinement_goes_on_for_as_long_as_the_bits_agree() -> None:
    table = TABLES[0]
    for k in (1, 4, 20):
        u, deep = table.sorted[k - 1], fraction_bits(table.law, k, 64 * 6)
        same = [deep >> 64 * i & (2**64 - 1) for i in range(5, 0, -1)]
        last = deep & (2**64 - 1)
        for more, expected in [(last - 1, k - 1), (last + 1, k)]:
            generator = ChosenWords([*same, more])
            assert table.found(u << 1, generator) == expected
            assert generator.taken == 6


@pytest.mark.parametrize("table", [t for t in TABLES if t.law.support is None], ids=lambda t: repr(t.law))
def test_the_last_word_reaches_into_the_far_tail(table: Table) -> None:
    """u = 2^63 - 1 followed by x: the draw is the k with P(M < k) <= U < P(M < k + 1), however far out."""
    for more in ([0], [2**63], [2**64 - 2**40], [2**64 - 1, 5], [2**64 - 1, 2**64 - 1, 2**64 - 1, 12345]):
        generator = ChosenWords(more)
        k = table.found(LAST << 1, generator)
        assert generator.taken == len(more)
        bits = 63 + 64 * len(more)
        u = LAST
        for word in more:
            u = u << 64 | word
        assert table.law.floor(k, bits) < u < table.law.floor(k + 1, bits) or k == 0


def test_draws_beyond_the_table_get_rarer_as_the_law_says() -> None:
    # P(M >= k) = e^-k: after 63 ones and 64 ones it takes k > 127 ln 2
    table = Table(Geometric(Q(1)))
    assert table.found(LAST << 1, ChosenWords([2**64 - 1, 0])) == int(127 * np.log(2))
    assert table.found(LAST << 1, ChosenWords([2**64 - 1] * 15 + [0])) == int(np.log(2) * (63 + 64 * 15))


@given(scale=st.fractions(min_value=Q(1, 50), max_value=60), seed=st.integers(0, 2**32))
def test_any_scale_gives_what_the_thresholds_say(scale: Fraction, seed: int) -> None:
    table = Table(TwoSidedGeometric(1 / scale))
    words = SeededGenerator(seed).words(50)
    drawn = table.draws(words, SeededGenerator(seed))
    for word, k in zip(words.tolist(), drawn.tolist(), strict=True):
        assert table.law.floor(k, 63) <= word >> 1 <= table.law.floor(k + 1, 63)
