"""Whatever is outside its domain is refused at the first call, naming the argument, the value and the way out."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting import Cost, calibrate
from discreet.errors import AdjacencyMismatch, DiscreetError, InvalidArgument

COST = Cost.gaussian(1.0)
NO_NUMBER: list[object] = [math.nan, math.inf, -math.inf, "1", None, True, [1.0], 1j, 10**400]
NEGATIVE: list[object] = [-1.0, -1, -1e-300, Fraction(-1, 2)]
ABOVE_ONE: list[object] = [1.0000001, 2, 1e300]
NO_COUNT: list[object] = [-1, 1.5, math.nan, math.inf, "2", None, True, Fraction(1, 2)]

CALLS: dict[str, tuple[Callable[[object], object], str, list[object]]] = {
    # name: the call, the argument that its message names, the values refused
    "gaussian": (Cost.gaussian, "noise_multiplier", [*NO_NUMBER, *NEGATIVE, 0, 0.0]),
    "laplace": (Cost.laplace, "noise_multiplier", [*NO_NUMBER, *NEGATIVE, 0, 0.0]),
    "discrete_gaussian": (Cost.discrete_gaussian, "noise_multiplier", [*NO_NUMBER, *NEGATIVE, 0, 0.0]),
    "discrete_gaussian, sensitivity": (
        lambda x: Cost.discrete_gaussian(1.0, sensitivity=x),
        "sensitivity",
        [*NO_COUNT, 0, 10**9],
    ),
    "discrete_laplace": (Cost.discrete_laplace, "noise_multiplier", [*NO_NUMBER, *NEGATIVE, 0, 0.0]),
    "discrete_laplace, sensitivity": (
        lambda x: Cost.discrete_laplace(1.0, sensitivity=x),
        "sensitivity",
        [*NO_COUNT, 0, 10**9],
    ),
    "staircase": (Cost.staircase, "epsilon", [*NO_NUMBER, *NEGATIVE, 0, 1e3]),
    "staircase, gamma": (
        lambda x: Cost.staircase(1.0, gamma=x),
        "gamma",
        [*(x for x in NO_NUMBER if x is not None), *NEGATIVE, *ABOVE_ONE, 0, 1],
    ),
    "randomized_response": (Cost.randomized_response, "epsilon", [*NO_NUMBER, *NEGATIVE, 0, 1e3]),
    "randomized_response, options": (
        lambda x: Cost.randomized_response(1.0, options=x),
        "options",
        [*NO_COUNT, 0, 1],
    ),
    "exponential_mechanism": (Cost.exponential_mechanism, "epsilon", [*NO_NUMBER, *NEGATIVE, 0, 1e3]),
    "pure": (Cost.pure, "epsilon", [*NO_NUMBER, *NEGATIVE, 1e3]),
    "approximate, epsilon": (lambda x: Cost.approximate(x, 1e-5), "epsilon", [*NO_NUMBER, *NEGATIVE, 1e3]),
    "approximate, delta": (lambda x: Cost.approximate(1.0, x), "delta", [*NO_NUMBER, *NEGATIVE, *ABOVE_ONE]),
    "concentrated": (Cost.concentrated, "rho", [*NO_NUMBER, *NEGATIVE]),
    "gaussian_dp": (Cost.gaussian_dp, "mu", [*NO_NUMBER, *NEGATIVE, 1e4]),
    "renyi": (Cost.renyi, "curve", [3, None, "x", [(2, 1.0)], {}]),
    "renyi, order": (lambda x: Cost.renyi({x: 1.0}), "order", [math.nan, math.inf, 1, 1.0, 0.5, -2, "2", None, True]),
    "renyi, value": (lambda x: Cost.renyi({2.0: x}), "value at order 2.0", [*NO_NUMBER, *NEGATIVE]),
    "from_pair": (lambda x: Cost.from_pair(x, x), "P", [3, None, [], [0.5, 0.6], [1.5, -0.5], [math.nan, 1.0]]),
    "from_pair, Q": (lambda x: Cost.from_pair([0.5, 0.5], x), "Q", [[1.0], [0.5, 0.6], [0.5, -0.5], 3, "ab", None]),
    "from_tradeoff": (
        Cost.from_tradeoff,
        "f",
        [3, None, "x", lambda _: math.nan, lambda _: "x"],
    ),
    "adjacency": (
        lambda x: Cost.gaussian(1.0, adjacency=x),
        "adjacency",
        ["replace", "add_remove", "", None, 1],
    ),
    "with_adjacency": (COST.with_adjacency, "adjacency", ["both", None]),
    "count": (lambda x: x * COST, "count", [-1, 1.5, math.nan, math.inf, True, Fraction(1, 2), 10**16, 10**400]),
    "count on the right": (lambda x: COST * x, "count", [-1, 1.5, math.nan, math.inf, True, "2", None]),
    "sampled": (COST.sampled, "rate", [*NO_NUMBER, *NEGATIVE, *ABOVE_ONE]),
    "sampled, scheme": (lambda x: COST.sampled(0.1, scheme=x), "scheme", ["Poisson", "shuffle", None]),
    "grouped": (COST.grouped, "size", [*NO_COUNT, 0, 10**9]),
    "epsilon": (COST.epsilon, "delta", [*NO_NUMBER, *NEGATIVE, *ABOVE_ONE]),
    "epsilon, method": (lambda x: COST.epsilon(1e-5, method=x), "method", ["best", "", None, 3]),
    "delta": (COST.delta, "epsilon", [*NO_NUMBER, *NEGATIVE]),
    "delta, method": (lambda x: COST.delta(1.0, method=x), "method", ["best", "", None, 3]),
    "bounds, delta": (
        lambda x: COST.bounds(delta=x),
        "delta",
        [*(x for x in NO_NUMBER if x is not None), *NEGATIVE, *ABOVE_ONE],
    ),
    "bounds, epsilon": (
        lambda x: COST.bounds(epsilon=x),
        "epsilon",
        [*(x for x in NO_NUMBER if x is not None), *NEGATIVE],
    ),
    "summary": (COST.summary, "delta", [*NO_NUMBER, *NEGATIVE, *ABOVE_ONE]),
    "estimate": (
        lambda x: COST.estimate(delta=x),
        "delta",
        [*(x for x in NO_NUMBER if x is not None), *NEGATIVE, *ABOVE_ONE],
    ),
    "rdp": (COST.rdp, "order", [*NO_NUMBER, *NEGATIVE, 0, 0.5, 1, 1.0]),
    "calibrate, epsilon": (
        lambda x: calibrate(Cost.gaussian, epsilon=x, delta=1e-5),
        "epsilon",
        [*NO_NUMBER, *NEGATIVE],
    ),
    "calibrate, delta": (
        lambda x: calibrate(Cost.gaussian, epsilon=1.0, delta=x),
        "delta",
        [*NO_NUMBER, *NEGATIVE, *ABOVE_ONE],
    ),
    "calibrate, low": (
        lambda x: calibrate(Cost.gaussian, epsilon=1.0, delta=1e-5, low=x),
        "low",
        [math.nan, math.inf, 0, -1.0, "1", True],
    ),
    "calibrate, high": (
        lambda x: calibrate(Cost.gaussian, epsilon=1.0, delta=1e-5, high=x),
        "high",
        [math.nan, math.inf, 0, -1.0, "1", True],
    ),
}


def _id(value: object) -> str:
    return repr(value) if not callable(value) and not (isinstance(value, int) and abs(value) > 10**20) else "x"


@pytest.mark.parametrize(
    ("call", "argument", "value"),
    [
        pytest.param(call, argument, value, id=f"{name}: {_id(value)}")
        for name, (call, argument, values) in CALLS.items()
        for value in values
    ],
)
def test_bad_values_are_refused_with_argument_value_and_advice(
    call: Callable[[object], object], argument: str, value: object
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        call(value)
    error = refused.value
    assert isinstance(error, DiscreetError)
    assert isinstance(error, ValueError)
    assert argument in str(error)
    assert "is not allowed: " in str(error)
    assert any(word in error.advice for word in ("pass", "choose", "must", "count in", "protects", "too large"))
    if isinstance(value, float | str) and not isinstance(error.value, tuple | list):
        assert repr(value) in str(error)


@pytest.mark.parametrize("value", [COST, Cost.zero(), object(), {}])
def test_only_whole_numbers_repeat_a_cost(value: object) -> None:
    with pytest.raises((TypeError, InvalidArgument)):
        value * COST  # type: ignore[operator]


def test_mixed_adjacency_says_how_to_convert() -> None:
    other = Cost.gaussian(1.0, adjacency="replace-one")
    for mixed in (lambda: COST + other, lambda: other + COST, lambda: sum([COST, other])):
        with pytest.raises(AdjacencyMismatch, match=r"grouped\(2\).with_adjacency") as refused:
            mixed()
        assert isinstance(refused.value, DiscreetError)


@pytest.mark.parametrize("parts", ["abc", 3, ((1, 2),), ((COST, 1),), None])
def test_costs_are_not_made_from_anything(parts: object) -> None:
    with pytest.raises(InvalidArgument, match="make costs with"):
        Cost(parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [-1, 1.5, math.nan])
def test_parts_are_not_used_a_broken_number_of_times(times: float) -> None:
    leaf = COST.parts[0][0]
    with pytest.raises(InvalidArgument, match="count"):
        Cost(((leaf, times),))  # type: ignore[arg-type]


def test_rows_on_the_edge_of_a_domain_are_allowed() -> None:
    assert Cost.approximate(0.0, 1.0).delta(3.0) == 1.0
    assert COST.epsilon(1) == 0.0
    assert COST.delta(0) > 0.0
    assert COST.sampled(0) == 0 * COST


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda a: a, r"f\(1\) = 1\.0 .* between 0 and 1 - alpha"),
        (lambda a: 2 - a, r"f\(.*\) = .* between 0 and 1 - alpha"),
        (lambda a: -a, r"f\(1\) = -1\.0 .* between 0 and 1 - alpha"),
        (lambda a: (1 - a) * (1 - 0.5 * np.cos(20 * a) ** 2), r"f\(.*\) = .* never rises"),
        (lambda a: np.minimum(1 - a, np.maximum(0.0, 0.6 - 0.6 * a**2)), r"f\(.*\) = .* convex, and here it is not"),
    ],
    ids=["rising", "above guessing", "negative", "waves", "concave"],
)
def test_a_function_that_is_no_tradeoff_is_refused_where_it_fails(
    function: Callable[[float], float], advice: str
) -> None:
    with pytest.raises(InvalidArgument, match=advice) as refused:
        Cost.from_tradeoff(function)
    assert "lambda alpha: (1 - alpha)**2" in str(refused.value)
