"""The price of a question, divided: no division costs more than the target says."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Cost
from discreet.errors import InvalidArgument
from discreet.query.allocation import allocate, of_row
from discreet.query.options import Options
from discreet.query.plan import Aggregate
from discreet.query.private import private_plan
from discreet.query.target import Target, target_of
from query.tables import block


def _possible(shape: dict[str, Any]) -> dict[str, Any]:
    """It is looked at in how many groups units are on the Gaussian path, beside looks at tails."""
    most = min(len(shape["weights"]), shape["choices"])
    tails = shape["tails"][:most]
    return shape | {"tails": tails, "spreads": min(shape["spreads"], len(tails)) if shape["gaussian"] else 0}


WEIGHTS = st.lists(st.floats(0.1, 10), min_size=1, max_size=5).map(tuple)
SHAPES = {
    "shape": st.fixed_dictionaries(
        {
            "gaussian": st.booleans(),
            "choices": st.integers(0, 4),
            "keys": st.booleans(),
            "weights": WEIGHTS,
            "groups": st.integers(1, 5000),
            "alone": st.booleans(),
            "tails": st.integers(0, 3).map(lambda number: tuple(range(number))),
            "spreads": st.integers(0, 3),
        }
    ).map(_possible)
}


@settings(max_examples=25)
@given(epsilon=st.floats(0.01, 5), log_delta=st.floats(-12, -3), **SHAPES)
def test_no_division_costs_more_than_epsilon_at_delta(epsilon: float, log_delta: float, shape: dict[str, Any]) -> None:
    delta = 10**log_delta
    cost = allocate(Target(epsilon=epsilon, delta=delta), **shape).cost
    # The exponential mechanism alone may be read as pure DP; the Gaussian path is proved by mu and the leak.
    assert cost.delta(epsilon) <= delta * (1 + 1e-9)


@settings(max_examples=25)
@given(value=st.floats(1e-4, 2), **SHAPES)
def test_no_division_costs_more_than_rho_or_mu(value: float, shape: dict[str, Any]) -> None:
    shape["keys"] = False
    assert allocate(Target(rho=value), **shape).cost.zcdp() <= value * (1 + 1e-9)
    assert allocate(Target(mu=value), **shape).cost.gdp() <= value * (1 + 1e-9)


def test_a_look_at_the_number_of_groups_is_paid_for_and_cheap() -> None:
    def plan(spreads: int) -> Any:
        shape = {"gaussian": True, "choices": 1, "keys": False, "weights": (1.0,), "tails": (0,), "spreads": spreads}
        return allocate(Target(epsilon=1.0, delta=1e-6), **shape)

    assert plan(1).noise[0] > plan(0).noise[0]
    assert plan(1).noise[0] == pytest.approx(plan(0).noise[0], rel=2e-3)
    unpaid = replace(plan(1), spreads=0).cost
    assert (unpaid + Cost.exponential_mechanism(plan(1).tail)).delta(1.0) == pytest.approx(plan(1).cost.delta(1.0))
    assert unpaid.delta(1.0) < plan(1).cost.delta(1.0)


def test_a_heavier_measure_has_less_noise_on_both_paths() -> None:
    target = Target(epsilon=1.0, delta=1e-6)
    laplace = allocate(target, gaussian=False, choices=0, keys=False, weights=(1.0, 3.0)).noise
    assert laplace == pytest.approx((4.0, 4 / 3))
    gaussian = allocate(target, gaussian=True, choices=0, keys=False, weights=(1.0, 4.0)).noise
    assert gaussian[0] == pytest.approx(2 * gaussian[1])


def test_more_groups_leave_more_for_the_numbers_and_less_for_the_choice_of_a_bound() -> None:
    shares = [
        allocate(Target(epsilon=1.0), gaussian=False, choices=1, keys=False, weights=(1.0,), groups=groups).choice
        for groups in (1, 4, 40, 4000)
    ]
    assert shares == pytest.approx([0.2, 0.2 * 4**-0.4, 0.05, 0.05], rel=1e-9)


def test_looks_at_tails_take_two_parts_in_a_hundred_of_what_a_single_number_has() -> None:
    shape = {"choices": 1, "keys": False, "weights": (1.0, 1.0)}
    plain, looked = (allocate(Target(mu=0.3), gaussian=True, tails=tails, **shape) for tails in ((), (0, 1)))
    assert looked.tail == pytest.approx(0.08 * 0.3 / math.sqrt(2))
    assert 1 < looked.noise[0] / plain.noise[0] < 1.02


def test_what_is_left_in_a_pot_makes_the_noise_of_its_measure_smaller_and_costs_no_more() -> None:
    shape = {"gaussian": False, "choices": 3, "keys": False, "weights": (1.0, 3.0, 1.0), "tails": (0, 2), "alone": True}
    plan = allocate(Target(epsilon=3.0), **shape)
    assert (plan.pots, plan.choices, plan.tails) == ((0, 2), 1, 0)
    # everything that may be spent one after the other, in pure epsilons
    spent = 2 * (plan.counted + plan.sketched + plan.later) + plan.choice + sum(1 / noise for noise in plan.noise)
    assert spent == pytest.approx(3.0, rel=1e-9)
    assert spent <= 3.0
    assert plan.spared({}) == plan.spared({0: 0.0}) == plan
    best = plan.hoped
    for i in (0, 2):
        assert 1 / best.noise[i] == pytest.approx(1 / plan.noise[i] + plan.chosen)
        assert 1 / best.noise[i] <= 1 / plan.noise[i] + plan.chosen
    assert best.noise[1] == plan.noise[1]
    assert plan.cost.epsilon(0.0) == pytest.approx(3.0)
    # the steps of a pot are one part of the cost, with its measure; the pots are parts of their own
    apart = Cost.pure(plan.later + 1 / plan.noise[0])
    assert plan.cost.zcdp() < (2 * apart + Cost.pure(plan.choice) + Cost.pure(1 / plan.noise[1])).zcdp() * 1.02


def test_few_large_units_are_counted_at_any_price() -> None:
    shape = {"gaussian": False, "choices": 1, "keys": False, "weights": (1.0,), "tails": (0,)}
    checks = [allocate(Target(epsilon=epsilon), **shape).checked for epsilon in (0.1, 0.4, 0.5, 1.0, 3.0)]
    assert checks == pytest.approx([0.02, 0.08, 0.1, 0.1, 0.15])
    two = {**shape, "choices": 2, "weights": (1.0, 1.0), "tails": (0, 1)}
    assert allocate(Target(epsilon=1.0), **two).checked == pytest.approx(0.1)


@settings(max_examples=25)
@given(epsilon=st.floats(1e-3, 20), left=st.floats(0, 1), **SHAPES)
def test_no_way_to_empty_the_pots_costs_more_than_epsilon(epsilon: float, left: float, shape: dict[str, Any]) -> None:
    plan = allocate(Target(epsilon=epsilon, delta=1e-9), **(shape | {"gaussian": False, "spreads": 0}))
    spared = plan.spared(dict.fromkeys(plan.pots, left * plan.later / (1 + 1e-12)))
    used = (1 - left) * len(plan.pots) * plan.later
    first = len(plan.pots) * (plan.counted + plan.sketched) + plan.choices * plan.choice + plan.key_epsilon
    assert first + used + sum(1 / noise for noise in spared.noise) <= epsilon
    # and each pot with its measure no more than the part of the cost that is theirs
    for i in plan.pots:
        assert (1 - left) * plan.later + 1 / spared.noise[i] <= (plan.later + 1 / plan.noise[i]) * (1 + 1e-12)
        taken = plan.later + plan.more_for(i)  # a choice that takes more leaves the measure most of what it has
        assert taken + 1 / plan.feared.noise[i] <= (plan.later + 1 / plan.noise[i]) * (1 + 1e-12)
        assert 0 < plan.feared.noise[i] <= plan.noise[i] / 0.64


def test_staircase_noise_is_taken_for_single_numbers_that_are_well_paid_and_costs_pure_epsilon() -> None:
    shape = {"gaussian": False, "choices": 0, "keys": False, "weights": (1.0,)}
    assert allocate(Target(epsilon=1.0), alone=True, **shape).is_staircase(0)
    assert not allocate(Target(epsilon=0.8), alone=True, **shape).is_staircase(0)
    assert not allocate(Target(epsilon=1.0), **shape).is_staircase(0)
    # Laplace noise of the same epsilon has a smaller delta below it: it must not be claimed for a staircase.
    cost = allocate(Target(epsilon=1.0), alone=True, **shape).cost
    assert cost.delta(0.0) == pytest.approx(math.tanh(0.5), rel=1e-6)


@given(level=st.floats(1e-6, 50), rows=st.integers(1, 1000))
def test_what_rows_of_a_unit_cost_together_is_no_more_than_the_level(level: float, rows: int) -> None:
    assert Fraction(of_row(level, rows)) * rows <= Fraction(level)
    assert of_row(level, rows) == pytest.approx(level / rows, rel=1e-11)


def test_private_keys_need_a_delta_and_the_refusal_says_so() -> None:
    with pytest.raises(InvalidArgument, match="list the keys in the policy"):
        allocate(Target(epsilon=1.0), gaussian=False, choices=0, keys=True, weights=(1.0,))


def test_a_price_in_epsilon_has_the_delta_that_is_stated() -> None:
    assert target_of(0.5, 1e-7, None) == Target(epsilon=0.5, delta=1e-7)
    assert target_of(0.5, None, None) == Target(epsilon=0.5)


@pytest.mark.parametrize(
    ("cost", "target"),
    [
        (Cost.pure(0.5), Target(epsilon=0.5)),
        (Cost.approximate(0.5, 1e-7), Target(epsilon=0.5, delta=1e-7)),
        (Cost.concentrated(0.1), Target(rho=0.1)),
        (Cost.gaussian_dp(0.2), Target(mu=0.2)),
        (Cost.gaussian(4.0), Target(mu=0.25)),
        (Cost.laplace(4.0), Target(epsilon=0.25)),
    ],
)
def test_a_cost_that_is_a_plain_guarantee_is_a_target(cost: Cost, target: Target) -> None:
    assert target_of(None, None, cost) == target


@pytest.mark.parametrize(
    ("epsilon", "delta", "cost"),
    [
        (None, None, None),
        (0.5, None, Cost.pure(0.5)),
        (None, 1e-7, Cost.pure(0.5)),
        (-1.0, None, None),
        (math.nan, None, None),
        (0.5, 1.5, None),
        (None, None, 0.5),
        (None, None, Cost.pure(0.5) + Cost.laplace(2.0)),
        (None, None, 2 * Cost.pure(0.5)),
        (None, None, Cost.randomized_response(0.5)),
    ],
)
def test_anything_else_is_refused(epsilon: object, delta: object, cost: object) -> None:
    with pytest.raises(InvalidArgument):
        target_of(epsilon, delta, cost)


def test_a_number_of_units_gets_less_of_the_price_than_numbers_of_rows_beside_it() -> None:
    asked = Aggregate("count", "a0", "COUNT(*)"), Aggregate("count_units", "a1", "COUNT(DISTINCT u)")
    plan = private_plan(block(*asked), Target(epsilon=1.0), Options())
    rows, units = plan.allocation.noise
    assert units == pytest.approx(3 * rows)
    limited = private_plan(block(*asked), Target(epsilon=1.0), Options.of({"max_rows": 4})).allocation.noise
    assert limited[1] == pytest.approx(2 * limited[0])
    gaussian = private_plan(block(*asked), Target(rho=0.1), Options())
    assert gaussian.gaussian
    assert gaussian.allocation.noise[1] == pytest.approx(9 ** (1 / 3) * gaussian.allocation.noise[0])
    once = private_plan(block(*asked, rows_per_unit=1), Target(epsilon=1.0), Options()).allocation.noise
    assert once[0] == once[1]
