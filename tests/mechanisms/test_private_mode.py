"""The private mode: every pair of small neighbouring data sets, the true distance, and the rules for odd values."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.mechanisms import REFUSED, Mechanism, PrivateMode

VALUES = "abc"


def data_sets(most: int) -> Iterator[tuple[int, ...]]:
    """All counts of three values with at most `most` people."""
    return (counts for counts in itertools.product(range(most + 1), repeat=3) if sum(counts) <= most)


def neighbours(counts: tuple[int, ...], adjacency: str) -> Iterator[tuple[int, ...]]:
    for place in range(3):
        more = tuple(n + (i == place) for i, n in enumerate(counts))
        if adjacency == "add-remove":
            yield more
        else:
            yield from (
                tuple(n - (i == other) for i, n in enumerate(more))
                for other in range(3)
                if counts[other] and other != place
            )


def rows(counts: tuple[int, ...]) -> list[str]:
    return [value for value, n in zip(VALUES, counts, strict=True) for _ in range(n)]


def law(made: PrivateMode, counts: tuple[int, ...]) -> dict[Hashable, float]:
    """The law of the answer, from the definition: the mode with probability p_d, nothing on ties."""
    top = max(counts)
    if counts.count(top) > 1:
        return {REFUSED: 1.0}
    p = made.probability_of_answering(int(made.distance(rows(counts))))
    return {VALUES[counts.index(top)]: p, REFUSED: 1 - p}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("test", ["optimal", "laplace"])
def test_all_small_neighbours_stay_within_the_cost(adjacency: str, test: str) -> None:
    made = PrivateMode(epsilon=0.8, delta=0.03, test=test, adjacency=adjacency)
    growth, worst = math.exp(0.8), 0.0
    for counts in data_sets(12):
        P = law(made, counts)
        for other in neighbours(counts, adjacency):
            Q = law(made, other)
            for X, Y in ((P, Q), (Q, P)):
                worst = max(worst, sum(max(0.0, p - growth * Y.get(y, 0.0)) for y, p in X.items()))
    assert worst <= 0.03 + 1e-12
    if test == "optimal":
        assert worst > 0.03 - 1e-9  # nothing is wasted


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_distance_is_the_true_number_of_changes(adjacency: str) -> None:
    made = PrivateMode(epsilon=1.0, delta=1e-6, adjacency=adjacency)

    def answer(counts: tuple[int, ...]) -> str | None:
        top = max(counts)
        return None if counts.count(top) > 1 else VALUES[counts.index(top)]

    def around(counts: tuple[int, ...]) -> set[tuple[int, ...]]:
        found = set(neighbours(counts, adjacency))
        if adjacency == "add-remove":
            found |= {tuple(n - (i == p) for i, n in enumerate(counts)) for p in range(3) if counts[p]}
        return found

    for counts in [(7, 2, 1), (5, 5, 1), (6, 5, 0), (8, 3, 3), (4, 0, 0), (1, 0, 0), (9, 2, 0)]:
        seen, border, distance = {counts}, {counts}, 0
        while all(answer(y) == answer(x) is not None for x in border for y in around(x)):
            border = {y for x in border for y in around(x)} - seen
            seen |= border
            distance += 1
        assert made.distance(rows(counts)) == distance


def test_it_releases_the_exact_mode_of_anything() -> None:
    mode = PrivateMode(epsilon=1.0, delta=1e-6)
    assert mode.release(["tea"] * 50 + ["coffee"] * 9) == "tea"
    assert mode.release([math.pi] * 50 + [math.e] * 9) == math.pi
    assert mode.release([(1, "a")] * 50 + [None] * 90) == (1, "a")
    assert mode.release([Decimal("1.5")] * 50) == Decimal("1.5")
    assert mode.release(np.array([3.5] * 50 + [np.nan] * 99)) == 3.5
    assert mode.release(np.array(["x"] * 50 + ["y"] * 5)) == "x"
    assert mode.release(np.array(["2024-01-01"] * 50 + ["NaT"] * 70, dtype="M8[D]")) == np.datetime64("2024-01-01")
    assert mode.release(np.array(["x"] * 50 + [None] * 70, dtype=object)) == "x"
    assert mode.release(value for value in "z" * 60) == "z"


def test_arrays_and_lists_agree() -> None:
    mode = PrivateMode(epsilon=1.0, delta=1e-6)
    values = [1.0, 2.5, -0.0, 0.0, 2.5, float("nan"), 0.0] * 3
    assert mode.distance(values) == mode.distance(np.array(values)) == 2
    counts = Counter(np.array(values)[~np.isnan(values)].tolist())
    assert counts[0.0] == 9


def test_the_answer_never_shows_how_one_row_was_written() -> None:
    mode = PrivateMode(epsilon=1.0, delta=1e-6)
    first = mode.release([-0.0] + [0.0] * 60)
    assert math.copysign(1.0, first) == 1.0
    assert math.copysign(1.0, mode.release(np.array([-0.0] * 60))) == 1.0
    answers = [mode.release([odd] + [1] * 60) for odd in (1, 1.0, True)]
    assert [type(answer) for answer in answers] == [int, int, int]


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("odd", "usual"),
    [
        (Decimal("1.00"), Decimal(1)),
        ((1.0,), (1,)),
        ((-0.0, "a"), (0.0, "a")),
        (((True,), "a"), ((1,), "a")),
        (frozenset({True}), frozenset({1})),
        (complex(0.0, -0.0), 0j),
        (NOON.astimezone(timezone(timedelta(hours=2))), NOON),
        (np.float32(-0.0), np.float32(0.0)),
    ],
)
def test_equal_values_that_are_written_differently_do_not_speak_for_each_other(odd: Any, usual: Any) -> None:
    mode = PrivateMode(epsilon=1.0, delta=1e-6)
    assert odd == usual
    assert repr(mode.release([odd] + [usual] * 60)) == repr(mode.release([usual] * 60)) == repr(usual)


def test_sets_are_one_value_however_they_were_made() -> None:
    mode = PrivateMode(epsilon=1.0, delta=1e-6)
    assert mode.distance([frozenset([0, 8]), frozenset([8, 0]), (frozenset([0, 8]),), (frozenset([8, 0]),)] * 5) == 0
    assert mode.distance([frozenset([0, 8]), frozenset([8, 0])] * 5) == 9


@pytest.mark.parametrize("missing", [np.float32("nan"), np.float64("nan"), Decimal("nan"), np.datetime64("NaT")])
def test_missing_values_of_every_type_are_left_out(missing: Any) -> None:
    mode = PrivateMode(epsilon=1.0, delta=1e-6)
    assert mode.release([missing] * 200 + ["a"] * 60) == "a"


@pytest.mark.parametrize("values", [[], [None], [float("nan")] * 50, ["a", "b"], np.array([]), ["a"] * 40 + ["b"] * 40])
def test_ties_and_empty_data_are_always_refused(values: Any) -> None:
    mode = PrivateMode(epsilon=600.0, delta=0.999)
    assert all(mode.release(values) is REFUSED for _ in range(50))
    assert mode.distance(values) == 0


@pytest.mark.parametrize("values", ["text", b"bytes", 7, None, {"a": 3}, np.zeros((2, 2)), [[1], [2]], np.array([1j])])
def test_what_is_no_column_is_refused(values: Any) -> None:
    with pytest.raises(InvalidArgument):
        PrivateMode(epsilon=1.0, delta=1e-6).release(values)


def test_it_is_stored_without_loss() -> None:
    made = PrivateMode(epsilon=1.0, delta=1e-6, test="laplace", adjacency="replace-one")
    assert Mechanism.from_dict(made.to_dict()) == made


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_stated_lead_is_enough_and_one_less_is_not(adjacency: str) -> None:
    made = PrivateMode(epsilon=1.0, delta=1e-6, adjacency=adjacency)
    lead = int(made.error(0.95))
    chance = lambda n: made.probability_of_answering(int(made.distance(["a"] * n)))
    assert chance(lead) >= 0.95 > chance(lead - 1)
