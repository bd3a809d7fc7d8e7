"""The certified distribution functions, against mpmath to 300 bits and against themselves."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import islice

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.noise.certified import exp_minus, half_normal, root_two_over_pi
from discreet.noise.law import Digit, Geometric, Law, Positive, RoundedLaplace, Sign, TwoSidedGeometric
from discreet.noise.normal_law import DiscreteNormal, RoundedNormal
from discreet.noise.table import LAST, thresholds

Q = Fraction
Truth = Callable[[int], mpmath.mpf]


def mp(x: Fraction) -> mpmath.mpf:
    """The exact value, to the working precision."""
    return mpmath.mpf(x.numerator) / x.denominator


def exponential(first: Callable[[mpmath.mpf], mpmath.mpf], scale: Fraction) -> Truth:
    return lambda k: 1 - first(mp(1 / scale)) * mpmath.exp(-(k - 1) * mp(1 / scale))


def discrete_normal(scale: Fraction, sides: int) -> Truth:
    decay = 1 / (2 * mp(scale) ** 2)
    heights = [mpmath.exp(-decay * j**2) * (sides if j else 1) for j in range(int(28 * scale) + 30)]
    sums = [mpmath.mpf(0)]
    for height in heights:
        sums.append(sums[-1] + height)
    return lambda k: sums[k] / sums[-1]


def cases() -> list[tuple[str, Callable[[], tuple[Law, Truth]]]]:
    made: list[tuple[str, Callable[[], tuple[Law, Truth]]]] = []
    for t in (Q(1, 7), Q(1), Q(0.1), Q(10, 3), Q(40), Q(257, 2)):
        name = f"{float(t):.4g}"
        made += [
            (f"geometric {name}", lambda t=t: (Geometric(1 / t), exponential(lambda r: mpmath.exp(-r), t))),
            (
                f"two-sided {name}",
                lambda t=t: (TwoSidedGeometric(1 / t), exponential(lambda r: 2 / (1 + mpmath.exp(r)), t)),
            ),
            (
                f"rounded Laplace {name}",
                lambda t=t: (RoundedLaplace(1 / t), exponential(lambda r: mpmath.exp(-r / 2), t)),
            ),
            (
                f"rounded normal {name}",
                lambda t=t: (RoundedNormal(t), lambda k: mpmath.erf((k - mpmath.mpf("0.5")) / mp(t) / mpmath.sqrt(2))),
            ),
            (f"discrete normal {name}", lambda t=t: (DiscreteNormal(t, 2), discrete_normal(t, 2))),
            (f"half normal {name}", lambda t=t: (DiscreteNormal(t, 1), discrete_normal(t, 1))),
        ]
    for rate, width in ((Q(1, 10**12), 8), (Q(4096, 10**9), 10), (Q(1, 3), 4)):
        made.append(
            (
                f"digit {float(rate):.3g}",
                lambda rate=rate, width=width: (
                    Digit(rate, width),
                    lambda k: mpmath.expm1(-k * mp(rate)) / mpmath.expm1(-(2**width) * mp(rate)),
                ),
            )
        )
    for rate in (Q(1, 10**12), Q(2)):
        made += [
            (f"sign {float(rate):.3g}", lambda rate=rate: (Sign(rate), lambda k: 1 / (1 + mpmath.exp(-mp(rate))))),
            (f"positive {float(rate):.3g}", lambda rate=rate: (Positive(rate), lambda k: -mpmath.expm1(-mp(rate)))),
        ]
    return made


CASES = cases()


@pytest.mark.parametrize("case", [make for _, make in CASES], ids=[name for name, _ in CASES])
def test_thresholds_and_deeper_bits_are_the_floor_of_the_truth(case: Callable[[], tuple[Law, Truth]]) -> None:
    with mpmath.workprec(600):
        law, truth = case()
        table = thresholds(law)
        for k, threshold in enumerate(table, start=1):
            true = truth(k)
            assert threshold == int(mpmath.floor(mpmath.ldexp(true, 63))), k
            if k in {1, 2, len(table) // 3, len(table) - 1, len(table)}:
                for bits in (63, 127, 300):
                    low, high = law.bounds(k, bits)
                    assert low <= mpmath.ldexp(true, bits) <= high, (k, bits)
                    assert high - low < 1 << 20, (k, bits)
                    assert law.floor(k, bits) == int(mpmath.floor(mpmath.ldexp(true, bits))), (k, bits)


@pytest.mark.parametrize("case", [make for _, make in CASES], ids=[name for name, _ in CASES])
def test_a_table_rises_and_covers_all_words(case: Callable[[], tuple[Law, Truth]]) -> None:
    law, _ = case()
    table = thresholds(law)
    assert table == sorted(table)
    assert min(table) >= 0
    if law.support is None:
        assert table[-1] == LAST
        assert table.count(LAST) == 1
    else:
        assert len(table) == law.support - 1
        assert table[-1] < LAST
        assert law.floor(law.support, 63) == 1 << 63  # with the last cell, the words add up to all of them
    assert law.floor(0, 63) == 0


@pytest.mark.parametrize("case", [make for _, make in CASES], ids=[name for name, _ in CASES])
def test_a_sweep_agrees_with_the_bounds_of_single_values(case: Callable[[], tuple[Law, Truth]]) -> None:
    law, _ = case()
    for k, swept in enumerate(islice(law.sweep(200), 8), start=1):
        single = law.bounds(k, 200)
        assert max(swept[0], single[0]) <= min(swept[1], single[1])  # both hold the truth


def test_values_far_in_the_tail_are_found_without_end() -> None:
    assert Geometric(Q(1)).floor(10**9, 127) == (1 << 127) - 1
    assert RoundedNormal(Q(1)).floor(10**9, 127) == (1 << 127) - 1
    assert DiscreteNormal(Q(1), 2).floor(10**9, 127) == (1 << 127) - 1


@given(
    x=st.fractions(min_value=0, max_value=2000) | st.floats(0, 1e300).map(Fraction),
    bits=st.integers(1, 400),
)
def test_exp_is_certified_and_sharp(x: Fraction, bits: int) -> None:
    low, high = exp_minus(x, bits)
    with mpmath.workprec(bits + 80):
        assert low <= mpmath.ldexp(mpmath.exp(-mp(x)), bits) <= high
    assert 0 <= high - low <= 3


@given(x=st.fractions(min_value=0, max_value=60), bits=st.integers(1, 300))
def test_the_normal_law_is_certified_and_sharp(x: Fraction, bits: int) -> None:
    low, high = half_normal(x, bits)
    with mpmath.workprec(bits + 80):
        assert low <= mpmath.ldexp(mpmath.erf(mp(x) / mpmath.sqrt(2)), bits) <= high
    assert 0 <= high - low <= 3


@pytest.mark.parametrize("bits", [1, 2, 63, 64, 500, 3000])
def test_the_root_of_two_over_pi_is_certified_and_sharp(bits: int) -> None:
    low, high = root_two_over_pi(bits)
    with mpmath.workprec(bits + 80):
        assert low <= mpmath.ldexp(mpmath.sqrt(2 / mpmath.pi), bits) <= high
    assert 0 <= high - low <= 3
