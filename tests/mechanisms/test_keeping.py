"""The optimal keeping probabilities: closed form, (ε, δ) at every step, optimality, and coins that fall exactly so."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

from discreet.mechanisms.keeping import Keeping, at_most
from discreet.noise import secure_generator
from noise.chosen import ChosenWords

ALPHA = 1e-9
CASES = [
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 100), Fraction(1, 10**9)),
    (Fraction(3), Fraction(1, 2)),
    (Fraction(1, 1000), Fraction(1, 3)),
    (Fraction(50), Fraction(1, 10**30)),
    (Fraction(1), Fraction(1, 2)),
]


def exact(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def recursion(epsilon: Fraction, delta: Fraction, n: int) -> list[mpmath.mpf]:
    """π_0, …, π_n by the definition, to 60 digits."""
    growth, d = mpmath.exp(exact(epsilon)), exact(delta)
    values = [mpmath.mpf(0)]
    for _ in range(n):
        last = values[-1]
        values.append(min(growth * last + d, 1 - (1 - last - d) / growth, mpmath.mpf(1)))
    return values


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_closed_form_is_the_recursion(epsilon: Fraction, delta: Fraction) -> None:
    keeping = Keeping(epsilon, delta)
    last = min(keeping.end + 5, 3000)
    with mpmath.workdps(60):
        expected = recursion(epsilon, delta, last)
        value, error = keeping.probabilities(np.arange(last + 1))
        off = [abs(mpmath.mpf(float(v)) - e) for v, e in zip(value, expected, strict=True)]
        assert all(o <= mpmath.mpf(float(e)) / 100 + mpmath.mpf(10) ** -40 for o, e in zip(off, error, strict=True))
        for n in {0, 1, 2, keeping.crossover, keeping.crossover + 1, last // 2, last}:
            low, high = keeping.interval(n, 128)
            assert exact(low) - mpmath.mpf(10) ** -50 <= expected[n] <= exact(high) + mpmath.mpf(10) ** -50
            assert high - low < Fraction(1, 2**128)


@pytest.mark.parametrize(("epsilon", "ten"), [(45, 300), (69, 300), (138, 300), (599, 300), (300, 250)])
def test_floats_do_not_decide_where_they_are_too_short(epsilon: int, ten: int) -> None:
    """δ e^{-ε} is below the smallest float here: up to the crossover π was taken for 0, and is near 1 next to it."""
    keeping = Keeping(Fraction(epsilon), Fraction(1, 10**ten))
    value, error = keeping.probabilities(np.arange(keeping.crossover + 4))
    for n in range(1, keeping.crossover + 4):
        low, high = (float(end) for end in keeping.interval(n, 128))
        assert low - error[n] <= value[n] <= high + error[n]
    share = keeping.probability(keeping.crossover)
    seen = int(keeping.draw(np.full(400, keeping.crossover), secure_generator()).sum())
    assert abs(seen - 400 * share) <= 8 * np.sqrt(400 * share * (1 - share)) + 8


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 50), 8, max_denominator=1000),
    delta=st.fractions(Fraction(1, 10**6), Fraction(9, 10), max_denominator=10**6),
)
def test_neighbouring_counts_are_indistinguishable_and_nothing_larger_would_be(
    epsilon: Fraction, delta: Fraction
) -> None:
    keeping = Keeping(epsilon, delta)
    tiny = mpmath.mpf(2) ** -150
    with mpmath.workprec(400):
        growth, d = mpmath.exp(exact(epsilon)), exact(delta)
        middle = keeping.crossover
        for n in {0, 1, max(0, middle - 1), middle, middle + 1, keeping.end - 1, keeping.end}:
            (low, _), (next_low, next_high) = keeping.interval(n, 200), keeping.interval(n + 1, 200)
            assert low <= next_high
            up = growth * exact(low) + d - exact(next_high)
            down = growth * (1 - exact(next_high)) + d - (1 - exact(low))
            assert up >= -tiny
            assert down >= -tiny
            assert next_low == 1 or min(up, down) <= tiny  # one of the two is met with equality


def test_a_key_that_nobody_has_is_never_kept() -> None:
    keeping = Keeping(Fraction(1), Fraction(1, 10))
    assert not keeping.draw(np.zeros(10_000, dtype=np.int64), secure_generator()).any()


@pytest.mark.parametrize("n", [1, 2, 5, 9, 12])
def test_coins_fall_with_their_probability_and_no_other(n: int) -> None:
    keeping = Keeping(Fraction(1, 5), Fraction(1, 50))
    draws = 200_000
    seen = int(keeping.draw(np.full(draws, n), secure_generator()).sum())
    p = keeping.probability(n)

    def p_value(share: float) -> float:
        return float(chdtrc(1, (seen - draws * share) ** 2 / (draws * share * (1 - share))))

    assert p_value(p) > ALPHA
    # the probabilities of the neighbouring counts are rejected
    for other in (n - 1, n + 1):
        assert other == 0 or keeping.probability(other) == 1 or p_value(keeping.probability(other)) < ALPHA


def test_words_that_floats_cannot_decide_are_decided_by_further_bits() -> None:
    keeping = Keeping(Fraction(1), Fraction(1, 10**6))
    for n in (1, 5, 13, 14, 20):
        low, _ = keeping.interval(n, 256)
        first = int(low * 2**64)
        second = int(low * 2**128) - (first << 64)
        for word, kept in ((second - 1, True), (second + 2, False)):
            generator = ChosenWords([first, word])
            assert bool(keeping.draw(np.array([n]), generator)[0]) is kept
            assert generator.taken == 2


def test_the_largest_word_keeps_what_is_kept_for_sure() -> None:
    keeping = Keeping(Fraction(1), Fraction(1, 10**6))
    generator = ChosenWords([2**64 - 1] * 2)
    assert keeping.draw(np.array([keeping.end + 3, 10**18]), generator).all()


def test_tiny_levels_need_no_table() -> None:
    keeping = Keeping(Fraction(1, 10**9), Fraction(1, 10**12))
    assert 6e9 < keeping.crossover < 7e9
    assert keeping.probability(1) == 1e-12
    assert 0.49 < keeping.probability(keeping.least(0.5)) < 0.51


def test_both_readings_of_a_float_are_covered() -> None:
    assert at_most(0.1) == Fraction(1, 10) < Fraction(0.1)
    assert at_most(0.3) == Fraction(0.3) < Fraction(3, 10)
