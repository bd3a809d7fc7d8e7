"""Goals: what a fit may spend, stated in any of its ways, and divided without loss."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import AdjacencyMismatch, Budget, Cost, InvalidArgument
from discreet.learning import Goal


def test_a_gaussian_of_the_goals_ratio_meets_it_and_a_stronger_one_does_not():
    goal = Goal(epsilon=1.0, delta=1e-6)
    assert goal.met_by(Cost.gaussian(1 / goal.gaussian))
    assert not goal.met_by(Cost.gaussian(1 / goal.gaussian * 0.999))


@given(epsilon=st.floats(0.05, 8), share=st.floats(0.01, 0.99))
def test_the_parts_of_a_goal_meet_it_together(epsilon, share):
    goal = Goal(epsilon=epsilon, delta=1e-6)
    first, rest = goal.carve(share)
    assert first.epsilon + rest.epsilon <= epsilon
    assert first.delta + rest.delta <= 1e-6
    assert goal.met_by(Cost.gaussian(1 / first.gaussian) + Cost.gaussian(1 / rest.gaussian))


@pytest.mark.parametrize(
    "spent", [Cost.gaussian(8.0), Cost.exponential_mechanism(0.4), 3 * Cost.exponential_mechanism(0.2)]
)
@pytest.mark.parametrize("goal", [Goal(mu=1.0), Goal(epsilon=1.0, delta=1e-6), Goal(epsilon=4.0, delta=1e-9)])
def test_what_is_left_beside_what_was_spent_meets_the_goal_together_with_it(goal, spent):
    left = goal.after(spent)
    assert goal.met_by(spent + Cost.gaussian(1 / left.gaussian))
    assert not goal.met_by(spent + Cost.gaussian(0.8 / left.gaussian))  # and wastes little


def test_many_small_purchases_are_read_by_their_composition():
    goal, spent = Goal(epsilon=1.0, delta=1e-6), 208 * Cost.exponential_mechanism(0.0053)  # 1.1 if they are added up
    left = goal.after(spent)
    assert goal.met_by(spent + Cost.gaussian(1 / left.gaussian))
    assert goal.met_by(spent + Cost.approximate(left.epsilon, left.delta))
    assert left.epsilon > 0.5


def test_a_goal_that_is_spent_has_nothing_left():
    with pytest.raises(InvalidArgument, match="nothing is left"):
        Goal(mu=0.1).after(Cost.gaussian(1.0))
    with pytest.raises(InvalidArgument, match="nothing is left"):
        Goal(epsilon=0.1).after(Cost.pure(0.2))


def test_budgets_and_costs_are_read_in_their_own_notion():
    assert Goal.of(budget=Budget(mu=0.5)).gaussian == 0.5
    assert Goal.of(budget=Budget(rho=0.02)).gaussian == pytest.approx(0.2)
    assert Goal.of(budget=Budget(epsilon=1.0, delta=1e-6)) == Goal(epsilon=1.0, delta=1e-6)
    assert Goal.of(cost=Cost.gaussian(4.0)).gaussian == pytest.approx(0.25, rel=1e-9)
    assert Goal.of(cost=Cost.gaussian(4.0)).gaussian <= 0.25
    assert Goal.of(cost=Cost.pure(0.5)) == Goal(epsilon=0.5)
    assert Goal.of(cost=Cost.pure(0.5)).is_pure
    assert Goal.of(cost=2 * Cost.laplace(4.0)) == Goal(epsilon=0.5)
    assert Goal.of(cost=Cost.approximate(1.0, 1e-6)) == Goal(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    "price",
    [
        Cost.pure(0.7),
        Cost.approximate(1.0, 1e-5),
        Cost.concentrated(0.1),
        Cost.gaussian(2.0),
        3 * Cost.gaussian(4.0) + Cost.gaussian_dp(0.3),
        Cost.gaussian(3.0) + Cost.concentrated(0.02),
    ],
    ids=repr,
)
def test_what_meets_the_goal_of_a_price_is_read_as_no_more_than_the_price(price):
    spent = Goal.of(cost=price).cost
    for delta in (1e-3, 1e-5, 1e-8):
        assert spent.epsilon(delta) <= price.epsilon(delta) * (1 + 1e-9)


@pytest.mark.parametrize(
    "spent",
    [Cost.pure(0.5), Cost.approximate(0.4, 1e-7) + 3 * Cost.pure(0.1), Cost.laplace(2.5), Cost.gaussian(5.0)],
    ids=["pure", "boxes", "laplace", "gaussian"],
)
def test_noise_beside_what_was_spent_meets_the_goal_and_little_less_would_not(spent):
    goal = Goal(epsilon=1.0, delta=1e-6)
    left = goal.after(spent)
    assert goal.met_by(spent + Cost.gaussian(1 / left.gaussian))
    assert not goal.met_by(spent + Cost.gaussian(1 / left.gaussian * 0.998))


def test_the_smallest_deltas_are_searched_without_a_warning_for_every_step():
    goal = Goal(epsilon=1.0, delta=1e-300)  # a warning would be an error here
    assert goal.after(Cost.laplace(10.0)).epsilon == pytest.approx(0.9)
    with pytest.raises(InvalidArgument, match="nothing is left"):
        goal.after(3 * Cost.laplace(20.0) + Cost.gaussian(5.0))


def test_a_purchase_that_leaves_no_room_for_noise_is_refused():
    with pytest.raises(InvalidArgument, match="nothing is left"):
        Goal(epsilon=1.0, delta=1e-6).after(Cost.pure(0.9999999))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": -1e-6}, "delta"),
        ({"epsilon": 1.0, "adjacency": "neighbour"}, "adjacency"),
        ({"cost": Cost.gaussian(1.0), "budget": Budget(mu=1.0)}, "one of them"),
        ({"cost": 3}, "discreet.Cost"),
        ({"budget": 3}, "discreet.Budget"),
        ({"cost": 2 * Cost.approximate(1.0, 1e-6)}, "plain guarantee"),
        ({"cost": 10 * Cost.gaussian(2.0).sampled(rate=0.1)}, "plain guarantee"),
        ({"cost": Cost.gaussian(2.0) + Cost.approximate(1.0, 1e-6)}, "plain guarantee"),
        ({"cost": Cost.zero()}, "plain guarantee"),
        ({"cost": 7 * Cost.pure(100.0)}, "protects nobody"),
        ({"budget": Budget(mu=1.0, adjacency="replace-one")}, "adjacency"),
    ],
)
def test_what_is_no_goal_is_refused(arguments, word):
    with pytest.raises((InvalidArgument, AdjacencyMismatch), match=word):
        Goal.of(**arguments)


def test_pure_goals_have_no_gaussian():
    with pytest.raises(InvalidArgument, match="delta > 0"):
        _ = Goal(epsilon=1.0).gaussian
