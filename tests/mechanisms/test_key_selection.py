"""Selected keys: the composed guarantee by enumeration, what is given back, and what is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from discreet import DiscreetError, InvalidArgument
from discreet.mechanisms import KeySelection, LaplaceThreshold, Mechanism, StableHistogram
from discreet.noise import Generator
from noise.chosen import ChosenWords


def hockey_stick(P: dict[Any, mpmath.mpf], Q: dict[Any, mpmath.mpf], epsilon: mpmath.mpf) -> mpmath.mpf:
    growth = mpmath.exp(epsilon)
    return mpmath.fsum(max(mpmath.mpf(0), P.get(y, 0) - growth * Q.get(y, 0)) for y in {*P, *Q})


def law(selection: KeySelection, counts: dict[str, int]) -> dict[frozenset[str], mpmath.mpf]:
    """The probability of every set of kept keys."""
    kept = {key: selection._keeping.interval(n, 300)[1] for key, n in counts.items()}
    p = {key: mpmath.mpf(v.numerator) / v.denominator for key, v in kept.items()}
    found = {}
    for size in range(len(p) + 1):
        for chosen in itertools.combinations(p, size):
            found[frozenset(chosen)] = mpmath.fprod(p[key] if key in chosen else 1 - p[key] for key in p)
    return found


@pytest.mark.parametrize("base", [{}, {"a": 1, "b": 1}, {"a": 2, "b": 7, "c": 3}, {"a": 6, "b": 6}, {"a": 13, "b": 14}])
def test_adding_a_person_with_two_keys_stays_within_the_stated_cost(base: dict[str, int]) -> None:
    selection = KeySelection(epsilon=1.0, delta=0.01, keys_per_unit=2)
    with_person = {**base, "a": base.get("a", 0) + 1, "b": base.get("b", 0) + 1}
    with mpmath.workdps(80):
        P, Q = law(selection, with_person), law(selection, base)
        for epsilon in (0.0, 0.3, 0.7, 1.0):
            allowed = selection.cost.delta(epsilon)
            assert hockey_stick(P, Q, mpmath.mpf(epsilon)) <= allowed
            assert hockey_stick(Q, P, mpmath.mpf(epsilon)) <= allowed
        assert selection.cost.delta(1.0) <= 0.01


def test_replacing_a_person_stays_within_the_stated_cost() -> None:
    selection = KeySelection(epsilon=1.0, delta=0.01, adjacency="replace-one")
    with mpmath.workdps(80):
        for n, m in itertools.product((0, 1, 4, 8, 15), repeat=2):
            P, Q = law(selection, {"a": n + 1, "b": m}), law(selection, {"a": n, "b": m + 1})
            assert hockey_stick(P, Q, mpmath.mpf(1)) <= selection.cost.delta(1.0) <= 0.01 * (1 + 1e-9)


def test_a_probability_a_little_larger_would_break_the_guarantee() -> None:
    selection = KeySelection(epsilon=1.0, delta=0.01)
    with mpmath.workdps(50):
        for n in range(8):
            low, high = (selection._keeping.interval(k, 300)[0] for k in (n, n + 1))
            p, more = mpmath.mpf(low.numerator) / low.denominator, mpmath.mpf(high.numerator) / high.denominator + 1e-9
            if more < 1:
                P, Q = {1: more, 0: 1 - more}, {1: p, 0: 1 - p}
                assert max(hockey_stick(P, Q, mpmath.mpf(1)), hockey_stick(Q, P, mpmath.mpf(1))) > 0.01


@pytest.mark.parametrize("keys", [1, 3, 40, 300])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_division_among_keys_is_within_the_budget_and_never_worse_than_equal_shares(
    keys: int, adjacency: str
) -> None:
    selection = KeySelection(epsilon=0.8, delta=1e-7, keys_per_unit=keys, adjacency=adjacency)
    assert selection.cost.epsilon(1e-7) <= 0.8 * (1 + 1e-9)
    changed = keys if adjacency == "add-remove" else 2 * keys
    equal = KeySelection(key_epsilon=0.8 / changed, key_delta=1e-7 / changed, keys_per_unit=keys, adjacency=adjacency)
    assert selection.error(0.5) <= equal.error(0.5)
    if keys >= 40:
        assert selection.error(0.5) < 0.9 * equal.error(0.5)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-8), (1.0, 1e-6), (3.0, 1e-5)])
def test_it_keeps_more_than_the_laplace_threshold_at_every_count(epsilon: float, delta: float) -> None:
    best, classic = KeySelection(epsilon=epsilon, delta=delta), LaplaceThreshold(epsilon=epsilon, delta=delta)
    gains = []
    for n in range(1, 3 * classic.threshold):
        kept, other = best.probability_of_keeping(n), classic.probability_of_keeping(n)
        assert kept >= other * (1 - 1e-12)
        gains.append(kept - other)
    assert max(gains) > 0.03


def test_what_is_given_back_does_not_depend_on_the_order_of_the_rows() -> None:
    selection = KeySelection(epsilon=1.0, delta=1e-6)
    counts = {"pear": 900, "apple": 800, "fig": 700}
    assert selection.release(counts) == selection.release(dict(reversed(counts.items()))) == ["apple", "fig", "pear"]
    keys, numbers = np.array([5, 3, 9, 1]), np.array([400, 300, 0, 500])
    assert selection.release((keys, numbers)).tolist() == [1, 3, 5]
    assert selection.release((["b", "a"], [100, 100])).tolist() == ["a", "b"]


def test_keys_that_cannot_be_sorted_are_shuffled() -> None:
    selection = KeySelection(epsilon=1.0, delta=1e-6)
    counts: dict[Any, int] = {1: 500, "one": 500, (1,): 500, None: 500}
    orders = {tuple(selection.release(counts)) for _ in range(400)}
    assert len(orders) == 24  # missing one of 24 orders has probability below 24 (23/24)^400 < 1e-6


def test_zero_counts_and_empty_tables_give_nothing() -> None:
    selection = KeySelection(epsilon=1.0, delta=1e-6)
    assert selection.release({}) == []
    assert selection.release({"a": 0}) == []
    assert selection.release((np.array([], dtype=np.int64), np.array([], dtype=np.int64))).size == 0


def test_it_is_stored_without_loss() -> None:
    for made in (
        KeySelection(epsilon=1.0, delta=1e-6, keys_per_unit=7),
        KeySelection(key_epsilon=0.1, key_delta=1e-8, keys_per_unit=3, adjacency="replace-one"),
    ):
        again = Mechanism.from_dict(made.to_dict())
        assert again == made
        assert again.cost == made.cost


class Untouched(Generator):
    def words(self, n: int) -> Any:
        raise AssertionError("randomness was used before the refusal")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1.0},
        {"delta": 1e-6},
        {"epsilon": 0.0, "delta": 1e-6},
        {"epsilon": -1.0, "delta": 1e-6},
        {"epsilon": float("nan"), "delta": 1e-6},
        {"epsilon": float("inf"), "delta": 1e-6},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": float("nan")},
        {"epsilon": 1.0, "delta": 1e-6, "keys_per_unit": 0},
        {"epsilon": 1.0, "delta": 1e-6, "keys_per_unit": 1.5},
        {"epsilon": 1.0, "delta": 1e-6, "keys_per_unit": 10**9},
        {"epsilon": 1.0, "delta": 1e-6, "key_epsilon": 1.0, "key_delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6, "adjacency": "swap"},
        {"key_epsilon": 1e-20, "key_delta": 1e-6},
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        KeySelection(**arguments)


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "abc",
        {"a": -1},
        {"a": 1.5},
        {"a": "b"},
        {"a": True},
        {"a": None},
        (["a", "b"], [1]),
        (["a", "a"], [1, 2]),
        (np.array([1, 1]), np.array([1, 2])),
        (np.array([np.nan, 1.0]), np.array([1, 2])),
        (np.array([[1, 2]]), np.array([1, 2])),
        ([["a"], ["b"]], [1, 2]),
        (["a", "b"], [[1], [2]]),
        (["a", "b"], 7),
        (np.array(["a"]), np.array([1.0])),
        {"a": 2**70},
    ],
)
def test_bad_counts_are_refused_before_any_randomness_is_used(value: Any) -> None:
    with pytest.raises(DiscreetError):
        KeySelection(epsilon=1.0, delta=1e-6).release(value, generator=Untouched())


def test_refusals_do_not_show_the_data() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        KeySelection(epsilon=1.0, delta=1e-6).release((["secret", "secret"], [12345, 678]))
    assert not any(word in str(refusal.value) for word in ("secret", "12345", "678"))


def test_a_predictable_generator_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        KeySelection(epsilon=1.0, delta=1e-6).release({"a": 1}, generator=np.random.default_rng(1))  # type: ignore[call-overload]


def test_one_word_is_taken_for_every_key_whatever_its_count() -> None:
    selection = KeySelection(epsilon=1.0, delta=1e-6)
    for counts in ([1, 1, 1], [10**6, 0, 3]):
        generator = ChosenWords([2**63 + 12345] * 3)
        selection.release((np.array([1, 2, 3]), np.array(counts)), generator=generator)
        assert generator.taken == 3


def test_probabilities_are_those_of_the_paper() -> None:
    # the first steps by hand: δ, δ(1 + e^ε), δ(1 + e^ε + e^2ε)
    selection = KeySelection(epsilon=1.0, delta=1e-6)
    e = Fraction(np.e)
    for n, expected in ((1, 1), (2, 1 + e), (3, 1 + e + e * e)):
        assert selection.probability_of_keeping(n) == pytest.approx(float(expected) * 1e-6, rel=1e-14)


@pytest.mark.parametrize("kind", ["U", "S"])
def test_the_width_of_an_array_of_keys_shows_nothing_of_those_left_out(kind: str) -> None:
    selection = KeySelection(key_epsilon=1.0, key_delta=1e-12)
    histogram = StableHistogram(key_epsilon=1.0, threshold=30)
    short = np.array(["ab", "c"], dtype=kind), np.array([500, 500])
    long = np.array(["ab", "c", "the name of one person"], dtype=kind), np.array([500, 500, 1])
    for release in (selection.release, lambda value: histogram.release(value)[0]):
        assert release(short).dtype == release(long).dtype == np.dtype(f"{kind}2")
        assert release(long).tolist() == release(short).tolist() == short[0].tolist()
    empty = long[0][2:], long[1][2:]
    assert selection.release(empty).dtype == selection.release((short[0][:0], short[1][:0])).dtype
