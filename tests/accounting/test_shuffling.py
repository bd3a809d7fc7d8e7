"""Shuffled reports: never below what real randomizers reveal, close to it, and certified over the whole range."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.accounting.binomial import ERROR, coin_above, coin_mass, count_below
from discreet.accounting.evaluate import _numeric
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.shuffled import ShuffledPair, shuffled_response
from discreet.errors import InvalidArgument

FORWARD = Direction.FORWARD


def report(epsilon: float) -> Cost:
    return Cost.pure(epsilon, adjacency="replace-one")


def exact(epsilon0: float, n: int, epsilon: float) -> float:
    """The hockey-stick divergence of the pair of counts, term by term."""
    q = 1 / (math.exp(epsilon0) + 1)
    total = 0.0
    for c in range(n):
        weight = math.comb(n - 1, c) * (2 * q) ** c * (1 - 2 * q) ** (n - 1 - c)
        for k in range(c + 2):
            with_one = math.comb(c, k - 1) / 2**c if 1 <= k <= c + 1 else 0.0
            without = math.comb(c, k) / 2**c if k <= c else 0.0
            p, other = (1 - q) * with_one + q * without, q * with_one + (1 - q) * without
            total += weight * max(0.0, p - math.exp(epsilon) * other)
    return total


def multisets(randomizer: np.ndarray, values: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    """The law of the sorted reports of these people."""
    law: Counter[tuple[int, ...]] = Counter()
    for outcome in itertools.product(range(randomizer.shape[1]), repeat=len(values)):
        law[tuple(sorted(outcome))] += math.prod(
            randomizer[value, answer] for value, answer in zip(values, outcome, strict=True)
        )
    return law


def hockey_stick(p: Counter[tuple[int, ...]], q: Counter[tuple[int, ...]], epsilon: float) -> float:
    return sum(max(0.0, p[y] - math.exp(epsilon) * q[y]) for y in set(p) | set(q))


@pytest.mark.parametrize(("epsilon0", "n"), [(0.1, 40), (0.5, 1), (1.0, 2), (1.0, 30), (3.0, 25), (8.0, 20)])
def test_the_profile_is_the_sum_over_all_counts(epsilon0: float, n: int) -> None:
    pair = ShuffledPair(epsilon0, n)
    for share in (0.0, 0.1, 0.5, 0.9):
        truth = exact(epsilon0, n, share * epsilon0)
        upper = pair.profile(share * epsilon0, FORWARD)[1]
        assert truth <= upper * (1 + 1e-14)
        assert upper <= truth * (1 + 1e-7) + 1e-290
    assert pair.profile(epsilon0, FORWARD)[1] == 0.0


@settings(max_examples=40, deadline=None)
@given(data=st.data(), epsilon0=st.floats(0.2, 3.0), n=st.integers(2, 5), share=st.floats(0.0, 0.95))
def test_no_randomizer_reveals_more_than_the_bound(data: st.DataObject, epsilon0: float, n: int, share: float) -> None:
    # three values, three answers, each column's entries within e^epsilon0: all multisets of reports enumerated
    rows = np.array(data.draw(st.lists(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3), min_size=3, max_size=3)))
    randomizer = np.exp(0.5 * epsilon0 * rows)  # entries within e^{eps0/2}; rows normalised within another e^{eps0/2}
    randomizer /= randomizer.sum(axis=1, keepdims=True)
    assert (randomizer.max(axis=0) / randomizer.min(axis=0)).max() <= math.exp(epsilon0) * (1 + 1e-12)
    others = tuple(data.draw(st.lists(st.integers(0, 2), min_size=n - 1, max_size=n - 1)))
    epsilon = share * epsilon0
    truth = hockey_stick(multisets(randomizer, (0, *others)), multisets(randomizer, (1, *others)), epsilon)
    assert truth <= report(epsilon0).shuffled(n).delta(epsilon) * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize(("epsilon0", "options"), [(0.4, 2), (1.0, 2), (1.0, 3), (2.5, 3), (2.5, 4)])
@pytest.mark.parametrize("n", [2, 5])
def test_randomized_response_stays_between_the_bounds(epsilon0: float, options: int, n: int) -> None:
    randomizer = np.full((options, options), 1.0) + (math.exp(epsilon0) - 1) * np.eye(options)
    randomizer /= randomizer.sum(axis=1, keepdims=True)
    cost = report(epsilon0).shuffled(n)
    for share in (0.0, 0.3, 0.7):
        worst = 0.0
        for others in itertools.combinations_with_replacement(range(options), n - 1):
            p, q = multisets(randomizer, (0, *others)), multisets(randomizer, (1, *others))
            worst = max(worst, hockey_stick(p, q, share * epsilon0), hockey_stick(q, p, share * epsilon0))
        low, high = cost.bounds(epsilon=share * epsilon0)
        assert worst <= high * (1 + 1e-12)
        if options == (3 if epsilon0 > math.log(2) else 2):  # the mechanism that the lower bound speaks of
            assert low <= worst * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon0", "n", "gap"), [(0.2, 10_000, 1.1), (1.0, 10**6, 1.2), (4.0, 10**6, 1.05)])
def test_lower_and_upper_bound_are_close(epsilon0: float, n: int, gap: float) -> None:
    low, high = report(epsilon0).shuffled(n).bounds(delta=1e-6)
    assert 0 < low <= high <= gap * low


def test_the_whole_range_is_covered() -> None:
    for epsilon0, n in [(10.0, 10**9), (1e-3, 10**9), (10.0, 2)]:
        cost = report(epsilon0).shuffled(n)
        for delta in (1e-12, 1e-3):
            low, high = cost.bounds(delta=delta)
            assert 0 <= low <= high <= epsilon0


def test_more_people_hide_better_and_louder_reports_worse() -> None:
    values = [report(2.0).shuffled(n).epsilon(1e-6) for n in (10, 100, 1_000, 10_000, 100_000)]
    assert values == sorted(values, reverse=True)
    values = [report(epsilon0).shuffled(1_000).epsilon(1e-6) for epsilon0 in (0.1, 0.5, 1.0, 3.0, 6.0)]
    assert values == sorted(values)


def test_at_large_n_the_bound_has_the_known_size() -> None:
    # Gaussian limit: C is 2qn, the loss has standard deviation 2 (1-2q) / sqrt(2qn) for the difference of the counts
    epsilon0, n = 1.0, 10**8
    q = 1 / (math.exp(epsilon0) + 1)
    limit = Cost.gaussian_dp(2 * (1 - 2 * q) / math.sqrt(2 * q * n)).delta(1e-5)
    assert report(epsilon0).shuffled(n).delta(1e-5) == pytest.approx(limit, rel=0.02)


@pytest.mark.slow
def test_shuffled_costs_compose() -> None:
    once = report(1.0).shuffled(1_000)
    ten = 10 * once
    low, high = ten.bounds(delta=1e-6)
    assert once.epsilon(1e-6) < low <= high < 1.2 * low
    assert high < 10 * once.epsilon(1e-7)


def test_three_rounds_of_four_people_agree_with_all_outcomes() -> None:
    q, n = 1 / (math.e + 1), 4
    p_law, q_law = {}, {}
    for c in range(n):
        weight = math.comb(n - 1, c) * (2 * q) ** c * (1 - 2 * q) ** (n - 1 - c)
        for k in range(c + 2):
            one = math.comb(c, k - 1) / 2**c if 1 <= k <= c + 1 else 0.0
            none = math.comb(c, k) / 2**c if k <= c else 0.0
            p_law[c, k] = weight * ((1 - q) * one + q * none)
            q_law[c, k] = weight * (q * one + (1 - q) * none)
    p, other = np.array(list(p_law.values())), np.array(list(q_law.values()))
    three_p = np.multiply.outer(np.multiply.outer(p, p), p)
    three_q = np.multiply.outer(np.multiply.outer(other, other), other)
    for epsilon in (0.0, 0.5):
        truth = float(np.maximum(three_p - math.exp(epsilon) * three_q, 0.0).sum())
        upper = _numeric([(ShuffledPair(1.0, n).table, 3)], "auto", epsilon, None).upper
        assert truth <= upper <= truth * (1 + 1e-8)


def test_the_witness_is_a_pair_of_distributions() -> None:
    for epsilon0, n in [(0.3, 1), (0.3, 1000), (2.0, 1), (2.0, 1000), (5.0, 10**8)]:
        pair = shuffled_response(epsilon0, n)
        losses, masses = pair.atoms()
        assert math.fsum(masses) == pytest.approx(1.0, abs=1e-9)
        assert math.fsum(masses * np.exp(losses)) == pytest.approx(1.0, abs=1e-9)


def test_shuffling_is_stored_and_described() -> None:
    cost = report(1.0).shuffled(1_000)
    assert Cost.from_json(cost.to_json()) == cost
    assert repr(cost) == "Cost(shuffled(local_epsilon=1, n=1000), adjacency='replace-one')"
    assert report(1.0).shuffled(1) == report(1.0)
    assert cost.pure_epsilon() == 1.0


def test_reports_that_say_nearly_nothing_are_counted_as_they_are() -> None:
    # below 1e-6 no shuffler is needed; just above it the shuffled cost must not be larger
    for epsilon0 in (1e-12, 9.9e-7):
        cost = report(epsilon0).shuffled(10_000)
        assert cost.pure_epsilon() == report(epsilon0).pure_epsilon()
        assert cost.delta(0.0) == report(epsilon0).delta(0.0)
        assert cost.epsilon(0.0) <= epsilon0 * (1 + 1e-9)
    assert report(1.1e-6).shuffled(100).delta(0.0) < report(1.1e-6).delta(0.0) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("cost", "n", "words"),
    [
        (Cost.pure(1.0), 100, "what a person holds"),
        (Cost.gaussian(1.0, adjacency="replace-one"), 100, "on their own"),
        (report(11.0), 100, "on their own"),
        (report(1.0), 0, "whole number"),
        (report(1.0), 10**10, "at most"),
    ],
)
def test_what_the_analysis_does_not_cover_is_refused(cost: Cost, n: int, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        cost.shuffled(n)


@pytest.mark.parametrize("flips", [1, 2, 7, 50, 400])
def test_fair_coins_agree_with_whole_numbers(flips: int) -> None:
    heads = np.arange(flips + 1)
    masses = np.array([math.comb(flips, int(k)) / 2**flips for k in heads])
    assert np.allclose(coin_mass(np.full(flips + 1, float(flips)), heads), masses, rtol=1e-12, atol=0)
    tails = np.array([math.fsum(masses[k:]) for k in heads])
    assert np.allclose(coin_above(np.full(flips + 1, float(flips)), heads), tails, rtol=1e-12, atol=0)
    below = np.array([math.fsum(math.comb(flips, j) * 0.3**j * 0.7 ** (flips - j) for j in range(k)) for k in heads])
    assert np.allclose(count_below(flips, 0.3, 0.7, heads), below, rtol=1e-11, atol=0)


@pytest.mark.parametrize(("flips", "z"), [(10**6, 0.5), (10**6, 6.0), (10**8, 4.0), (10**9, 12.0)])
def test_many_coins_stay_within_the_error_that_is_charged(flips: int, z: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    k = int(flips / 2 + z * math.sqrt(flips) / 2)
    with mpmath.workdps(40):
        half = mpmath.mpf(1) / 2
        mass = mpmath.exp(
            mpmath.loggamma(flips + 1)
            - mpmath.loggamma(k + 1)
            - mpmath.loggamma(flips - k + 1)
            + flips * mpmath.log(half)
        )
        term, total = mpmath.mpf(1), mpmath.mpf(1)  # P(K >= k) / mass, term by term
        for j in range(60_000):
            term *= mpmath.mpf(flips - k - j) / (k + 1 + j)
            total += term
            if term < mpmath.mpf(10) ** -25 * total:
                break
    assert float(coin_mass(np.array([float(flips)]), np.array([float(k)]))[0] / mass) == pytest.approx(
        1, abs=ERROR / 10
    )
    if term < mpmath.mpf(10) ** -20 * total:
        found = float(coin_above(np.array([float(flips)]), np.array([float(k)]))[0] / (mass * total))
        assert found == pytest.approx(1, abs=ERROR / 2)
