"""The mean of clustered data: the distance by its definition and by its properties, coverage, and odd rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, bdtrc

from discreet import DiscreetError, InvalidArgument
from discreet.mechanisms import REFUSED, ClusteredMean, Mechanism
from discreet.mechanisms.clustered_mean import distance_to_spread

ALPHA = 1e-9


def spread(y: list[int], trim: int, t: int) -> float:
    """W_t by its definition, with y_0 = -inf and y_{n+1} = inf."""
    n = len(y)
    at = lambda i: -math.inf if i < 1 else math.inf if i > n else y[i - 1]
    return max(at(n - trim + a) - at(trim + 1 - (t + 1 - a)) for a in range(t + 2))


def by_definition(y: list[int], trim: int, width: int) -> int:
    t = 0
    while spread(y, trim, t) <= width:
        t += 1
    return t


DATA = st.lists(st.integers(-12, 12), min_size=9, max_size=14)


@settings(max_examples=300, deadline=None)
@given(values=DATA, trim=st.integers(1, 4), width=st.integers(0, 15))
def test_the_distance_is_the_one_of_the_definition(values: list[int], trim: int, width: int) -> None:
    y = sorted(values)
    assert distance_to_spread(np.array(y), trim=trim, width=width) == by_definition(y, trim, width)


@settings(max_examples=300, deadline=None)
@given(values=DATA, place=st.integers(0, 8), new=st.integers(-12, 12), trim=st.integers(1, 4), width=st.integers(0, 15))
def test_one_replaced_person_moves_the_distance_by_one_and_a_safe_sum_by_the_width(
    values: list[int], place: int, new: int, trim: int, width: int
) -> None:
    y, other = sorted(values), sorted([*values[:place], new, *values[place + 1 :]])
    d, e = (distance_to_spread(np.array(x), trim=trim, width=width) for x in (y, other))
    assert abs(d - e) <= 1
    if d or e:
        assert abs(sum(y[trim:-trim]) - sum(other[trim:-trim])) <= width


def made(**changes: Any) -> ClusteredMean:
    return ClusteredMean(**{"epsilon": 1.0, "delta": 1e-6, "width": 2.0, "size": 1000, "outliers": 3, **changes})


def test_the_whole_costs_what_was_asked_for() -> None:
    for epsilon, delta in ((1.0, 1e-6), (0.3, 1e-8)):
        mechanism = made(epsilon=epsilon, delta=delta, size=5000)
        assert mechanism.cost.delta(epsilon) <= delta
        assert mechanism.cost.adjacency == "replace-one"


@pytest.mark.parametrize("centre", [0.0, -7e5])
def test_it_finds_the_mean_wherever_it_is_and_the_error_is_honest(centre: float) -> None:
    mechanism = made()
    values = centre + np.cos(np.arange(1000.0))
    left = np.sort(values)[mechanism.trim : -mechanism.trim].mean()
    released = (mechanism.release(values) for _ in range(600))
    answers = np.array([answer for answer in released if answer is not REFUSED], dtype=np.float64)
    draws = answers.size
    within = lambda reach: int((np.abs(answers - left) <= reach).sum())
    assert bdtr(within(mechanism.error(0.9) + abs(centre) * 1e-14), draws, 0.9) > ALPHA
    assert bdtrc(within(mechanism.error(0.9) / 2) - 1, draws, 0.9) > 1 - ALPHA  # a smaller one would not be


def test_numbers_far_from_zero_are_as_good() -> None:
    values = 1e12 + np.cos(np.arange(1000.0))
    answer = made().release(values)
    assert answer is REFUSED or abs(answer - values.mean()) < 0.1


def test_outliers_up_to_the_stated_number_do_no_harm() -> None:
    mechanism = made()
    values = 5.0 + np.cos(np.arange(1000.0))
    values[:3], values[3:5], values[5] = math.inf, -math.inf, -1e200
    assert mechanism.distance(values) == mechanism.trim - 3
    assert mechanism.probability_of_answering(mechanism.distance(values)) >= 0.999
    values[6:9] = math.nan
    assert mechanism.distance(values) == mechanism.trim - 6


def test_scattered_data_is_refused() -> None:
    assert made().release(np.arange(1000.0)) is REFUSED
    assert made(width=1e-3).distance(np.cos(np.arange(1000.0))) == 0


def test_the_order_of_the_rows_does_not_matter() -> None:
    values = np.cos(np.arange(1000.0)) * 1.4
    assert made().distance(values) == made().distance(values[::-1]) == made().distance(np.sort(values))


def test_it_is_stored_without_loss() -> None:
    mechanism = made(test="laplace")
    assert Mechanism.from_dict(mechanism.to_dict()) == mechanism
    assert Mechanism.from_dict(mechanism.to_dict()).cost == mechanism.cost


@pytest.mark.parametrize(
    "changes",
    [
        {"width": 0.0},
        {"width": -1.0},
        {"width": math.nan},
        {"size": 0},
        {"size": 60},
        {"size": 10.5},
        {"outliers": -1},
        {"outliers": 1000},
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"test": "best"},
        {"adjacency": "add-remove"},
        {"adjacency": "swap"},
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        made(**changes)


@pytest.mark.parametrize(
    "data", [None, 3.0, np.zeros(999), np.zeros((1000, 1)), ["a"] * 1000, [None] * 1000, [1j] * 1000]
)
def test_bad_data_is_refused(data: Any) -> None:
    with pytest.raises(DiscreetError):
        made().release(data)
