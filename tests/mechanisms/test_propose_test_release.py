"""Propose-test-release: both tests, the generic mechanism, and what it refuses."""

from __future__ import annotations

import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import chdtrc

from discreet import AdjacencyMismatch, Cost, InvalidArgument, StorageError
from discreet.audit import check
from discreet.mechanisms import REFUSED, Laplace, ProposeTestRelease, Refused
from discreet.noise import Generator

ALPHA = 1e-9
DRAWS = 4000


def constant(epsilon: float, delta: float, distance: Any, test: str = "optimal") -> ProposeTestRelease:
    return ProposeTestRelease(lambda _: "answer", lambda _: distance, epsilon=epsilon, delta=delta, test=test)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (3.0, 0.2)])
def test_the_laplace_threshold_is_the_smallest_that_keeps_unsafe_data_below_delta(epsilon: float, delta: float) -> None:
    t = constant(epsilon, delta, 0, "laplace").threshold
    with mpmath.workdps(30):
        tail = lambda k: mpmath.exp(-mpmath.mpf(epsilon) * k) / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        assert tail(t) <= delta
        assert t == 1 or tail(t - 1) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.2, 1e-3), (3.0, 0.05)])
def test_the_optimal_test_answers_at_least_as_often_at_every_distance(epsilon: float, delta: float) -> None:
    best, classic = (constant(epsilon, delta, 0, test) for test in ("optimal", "laplace"))
    for d in range(2 * classic.threshold + 3):
        assert best.probability_of_answering(d) >= classic.probability_of_answering(d) * (1 - 1e-12)
    assert best.probability_of_answering(0) <= delta
    assert best.distance_needed(0.99) <= classic.distance_needed(0.99)


@pytest.mark.parametrize("test", ["optimal", "laplace"])
def test_neighbouring_distances_are_indistinguishable(test: str) -> None:
    made = constant(0.7, 0.01, 0, test)
    growth = math.exp(0.7)
    for d in range(60):
        p, q = made.probability_of_answering(d), made.probability_of_answering(d + 1)
        for x, y in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
            assert x <= growth * y + 0.01 + 1e-12


@pytest.mark.parametrize("test", ["optimal", "laplace"])
@pytest.mark.parametrize("distance", [0, 1, 3, 6])
def test_answers_come_with_their_probability_and_no_other(test: str, distance: int) -> None:
    made = constant(1.0, 0.02, distance, test)
    answered = sum(made.release(None) is not REFUSED for _ in range(DRAWS))
    p = made.probability_of_answering(distance)
    p_value = lambda share: float(chdtrc(1, (answered - DRAWS * share) ** 2 / (DRAWS * share * (1 - share))))
    assert p_value(p) > ALPHA
    for other in (distance - 1, distance + 1):
        share = made.probability_of_answering(other) if other >= 0 else made.probability_of_answering(0) / 10
        assert share == 1 or p_value(share) < ALPHA


@pytest.mark.parametrize("test", ["optimal", "laplace"])
def test_data_far_from_trouble_is_always_answered(test: str) -> None:
    assert constant(1.0, 1e-6, math.inf, test).release(0) == "answer"
    assert constant(1.0, 1e-6, 10**30, test).release(0) == "answer"
    assert constant(1.0, 1e-6, np.int64(500), test).release(0) == "answer"


def test_the_cost_is_that_of_the_test_and_the_base() -> None:
    base = Laplace(epsilon=0.5, sensitivity=0.1)
    made = ProposeTestRelease(base, lambda x: 99, epsilon=1.0, delta=1e-6, statistic=np.mean)
    assert made.cost == Cost.approximate(1.0, 1e-6) + base.cost
    assert abs(made.release(np.array([1.0, 3.0])) - 2.0) < 0.1 * 2 * 40
    assert constant(1.0, 1e-6, 5).cost == Cost.approximate(1.0, 1e-6)


def test_an_answer_may_be_falsy() -> None:
    made = ProposeTestRelease(lambda _: 0, lambda _: math.inf, epsilon=1.0, delta=1e-6)
    assert made.release(None) is not REFUSED
    assert made.release(None) == 0


def test_there_is_one_refusal() -> None:
    assert Refused() is REFUSED
    assert pickle.loads(pickle.dumps(REFUSED)) is REFUSED
    assert not REFUSED
    assert repr(REFUSED) == "REFUSED"


class Untouched(Generator):
    def words(self, n: int) -> Any:
        raise AssertionError("randomness was used before the refusal")


@pytest.mark.parametrize("distance", [-1, 1.5, float("nan"), -math.inf, "3", None, True])
def test_a_distance_that_is_none_is_refused_before_any_randomness_is_used(distance: Any) -> None:
    with pytest.raises(InvalidArgument):
        constant(1.0, 1e-6, distance).release(None, generator=Untouched())


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.0, "delta": 1e-6},
        {"epsilon": float("nan"), "delta": 1e-6},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": 1e-6, "test": "gauss"},
        {"epsilon": 1.0, "delta": 1e-6, "adjacency": "swap"},
        {"epsilon": 1.0, "delta": 1e-6, "statistic": 3},
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        ProposeTestRelease(lambda x: x, lambda x: 1, **arguments)


def test_bad_functions_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        ProposeTestRelease(7, lambda x: 1, epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidArgument):
        ProposeTestRelease(lambda x: x, 7, epsilon=1.0, delta=1e-6)  # type: ignore[arg-type]
    base = Laplace(epsilon=0.5, sensitivity=0.1, adjacency="replace-one")
    with pytest.raises(AdjacencyMismatch):
        ProposeTestRelease(base, lambda x: 1, epsilon=1.0, delta=1e-6)


def test_functions_cannot_be_stored() -> None:
    with pytest.raises(StorageError):
        constant(1.0, 1e-6, 1).to_dict()


def test_it_passes_an_audit_and_a_smaller_claim_does_not() -> None:
    # votes of 0 and 1: the majority is safe if it leads by more than two, where one person may change sides
    majority = ProposeTestRelease(
        lambda ones: int(2 * ones > 20),
        lambda ones: max(0, (abs(2 * ones - 20) - 1) // 2),
        epsilon=1.0,
        delta=0.1,
        adjacency="replace-one",
    )
    answer = lambda ones: -1 if (found := majority.release(ones)) is REFUSED else found
    pairs = [(11, 12), (13, 14)]
    assert check(release=answer, cost=majority.cost, inputs=pairs, draws=4000, bad_values=[None]).passed
    smaller = Cost.approximate(0.2, 0.01, adjacency="replace-one")
    assert not check(release=answer, cost=smaller, inputs=pairs, draws=4000, bad_values=[None]).passed
