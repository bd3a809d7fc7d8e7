"""The `Cost` algebra: it adds up like numbers, keeps its adjacency, and reads the same however it was written."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

from discreet.accounting import METHODS, Cost, renyi
from discreet.errors import AdjacencyMismatch, InvalidArgument, WideBracket

GAUSSIAN, LAPLACE, RESPONSE = Cost.gaussian(2.0), Cost.laplace(3.0), Cost.randomized_response(0.4)

LEAVES: list[Cost] = [
    GAUSSIAN,
    LAPLACE,
    RESPONSE,
    Cost.discrete_gaussian(2.0, sensitivity=3),
    Cost.discrete_laplace(2.0, sensitivity=3),
    Cost.staircase(0.5),
    Cost.staircase(0.5, gamma=0.7),
    Cost.randomized_response(0.4, options=5),
    Cost.exponential_mechanism(0.5),
    Cost.pure(0.5),
    Cost.approximate(0.5, 1e-6),
    Cost.concentrated(0.1),
    Cost.gaussian_dp(0.5),
    Cost.renyi({2: 0.2, 8: 1.0}),
    Cost.from_pair([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]),
    GAUSSIAN.sampled(0.1),
    LAPLACE.sampled(0.1),
]
each_leaf = pytest.mark.parametrize("cost", LEAVES, ids=repr)


# ------------------------------------------------------------------ adding and repeating


def test_order_and_grouping_of_a_sum_do_not_matter() -> None:
    assert GAUSSIAN + LAPLACE == LAPLACE + GAUSSIAN
    assert (GAUSSIAN + LAPLACE) + RESPONSE == GAUSSIAN + (LAPLACE + RESPONSE)
    assert hash(GAUSSIAN + LAPLACE) == hash(LAPLACE + GAUSSIAN)
    assert repr(GAUSSIAN + LAPLACE) == repr(LAPLACE + GAUSSIAN)


@each_leaf
def test_repeating_is_adding(cost: Cost) -> None:
    assert 3 * cost == cost * 3 == cost + cost + cost == sum([cost] * 3)
    assert hash(3 * cost) == hash(cost + cost + cost)
    assert 2 * (3 * cost) == 6 * cost
    assert 1 * cost == cost
    assert 2 * cost != 3 * cost


def test_repeating_distributes_over_a_sum() -> None:
    assert 3 * (GAUSSIAN + 2 * LAPLACE) == 3 * GAUSSIAN + 6 * LAPLACE
    assert sum([GAUSSIAN, LAPLACE, GAUSSIAN]) == 2 * GAUSSIAN + LAPLACE


@each_leaf
def test_nothing_costs_nothing(cost: Cost) -> None:
    nothing = 0 * cost
    assert nothing == Cost.zero()
    assert cost + nothing == nothing + cost == cost
    assert nothing.bounds(delta=0.0) == nothing.bounds(epsilon=0.0) == (0.0, 0.0)
    assert nothing.rdp(2.0) == nothing.zcdp() == nothing.pure_epsilon() == nothing.gdp() == nothing.advantage() == 0.0


@pytest.mark.parametrize("make", [Cost.pure, Cost.concentrated, Cost.gaussian_dp, lambda x: Cost.approximate(x, 0.0)])
def test_a_guarantee_of_zero_is_no_cost(make: Callable[[float], Cost]) -> None:
    assert make(0.0) == make(0) == Cost.zero()


def test_different_parameters_are_different_costs() -> None:
    assert Cost.gaussian(math.nextafter(2.0, 3.0)) != GAUSSIAN
    assert Cost.pure(0.4) != RESPONSE
    assert GAUSSIAN.with_adjacency("replace-one") != GAUSSIAN
    assert len({*LEAVES, *LEAVES}) == len(LEAVES)


def test_whole_numbers_of_any_type_repeat() -> None:
    assert np.int64(3) * GAUSSIAN == 3.0 * GAUSSIAN == 3 * GAUSSIAN


def test_a_cost_is_not_a_number() -> None:
    for wrong in (lambda: GAUSSIAN + 1, lambda: 1.5 + GAUSSIAN, lambda: GAUSSIAN * LAPLACE, lambda: GAUSSIAN + None):
        with pytest.raises(TypeError):
            wrong()


@each_leaf
def test_pickled_costs_come_back_equal(cost: Cost) -> None:
    back = pickle.loads(pickle.dumps(2 * cost))
    assert back == 2 * cost
    assert hash(back) == hash(2 * cost)


def test_a_cost_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        GAUSSIAN.adjacency = "replace-one"  # type: ignore[misc]


# ------------------------------------------------------------------ adjacency


def test_every_operation_keeps_the_adjacency() -> None:
    cost = Cost.gaussian(2.0, adjacency="replace-one")
    for kept in (cost, 3 * cost, 0 * cost, cost + cost, cost.grouped(2), Cost.from_dict(cost.to_dict())):
        assert kept.adjacency == "replace-one"
    assert GAUSSIAN.sampled(0.5).adjacency == GAUSSIAN.adjacency == "add-remove"
    assert Cost.pure(0.0, adjacency="replace-one").adjacency == "replace-one"


def test_different_adjacencies_do_not_add() -> None:
    with pytest.raises(AdjacencyMismatch, match="replace-one") as refused:
        GAUSSIAN + Cost.gaussian(2.0, adjacency="replace-one")
    assert {refused.value.left, refused.value.right} == {"add-remove", "replace-one"}
    with pytest.raises(AdjacencyMismatch):
        Cost.zero() + Cost.zero(adjacency="replace-one")


def test_sampling_is_refused_under_replace_one() -> None:
    with pytest.raises(InvalidArgument, match="adjacency"):
        Cost.gaussian(2.0, adjacency="replace-one").sampled(0.1)


# ------------------------------------------------------------------ sampling and groups


@each_leaf
def test_sampling_nobody_costs_nothing_and_everybody_changes_nothing(cost: Cost) -> None:
    assert cost.sampled(0.0) == cost.sampled(0) == Cost.zero()
    assert cost.sampled(1.0) == cost.sampled(1) == cost


def test_sampling_twice_is_sampling_by_the_product() -> None:
    assert GAUSSIAN.sampled(0.5).sampled(0.5) == GAUSSIAN.sampled(0.25)


@pytest.mark.parametrize("cost", [2 * GAUSSIAN, GAUSSIAN + LAPLACE, Cost.concentrated(0.1), Cost.renyi({2: 1.0})])
def test_compositions_and_curves_can_be_sampled_and_stored(cost: Cost) -> None:
    sampled = cost.sampled(0.1)
    assert sampled.delta(0.5) <= cost.delta(0.5)
    assert Cost.from_json(sampled.to_json()) == sampled


@pytest.mark.parametrize(
    ("one", "group"),
    [
        (Cost.gaussian(6.0), Cost.gaussian(2.0)),
        (Cost.laplace(6.0), Cost.laplace(2.0)),
        (Cost.discrete_laplace(6.0), Cost.discrete_laplace(2.0, sensitivity=3)),
        (Cost.discrete_gaussian(6.0), Cost.discrete_gaussian(2.0, sensitivity=3)),
        (Cost.pure(0.25), Cost.pure(0.75)),
        (Cost.gaussian_dp(0.25), Cost.gaussian_dp(0.75)),
        (Cost.concentrated(0.125), Cost.concentrated(1.125)),
    ],
)
def test_a_group_of_three_in_closed_form(one: Cost, group: Cost) -> None:
    assert one.grouped(3) == group
    assert (2 * one).grouped(3) == 2 * group
    assert one.grouped(1) == one


def test_a_group_of_a_box_follows_the_geometric_sum() -> None:
    # (e, d)-DP is (k e, d (1 + e^e + ... + e^{(k-1) e}))-DP for k people
    group = Cost.approximate(0.1, 1e-6).grouped(3)
    assert group.delta(0.1 * 3) == pytest.approx(1e-6 * (1 + math.exp(0.1) + math.exp(0.2)), rel=1e-9)


@pytest.mark.parametrize(
    "cost",
    [
        RESPONSE,
        pytest.param(Cost.exponential_mechanism(0.4), marks=pytest.mark.slow),
        pytest.param(Cost.gaussian(2.0).sampled(0.2), marks=pytest.mark.slow),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:a group of 2:discreet.WideBracket")
def test_a_group_costs_at_least_one_person_and_at_most_a_pure_group(cost: Cost) -> None:
    assert cost.grouped(2).delta(0.1) >= cost.bounds(epsilon=0.1)[0]
    if math.isfinite(cost.pure_epsilon()):
        assert cost.grouped(2).delta(0.1) <= Cost.pure(2 * 0.4).delta(0.1) * (1 + 1e-9)


@pytest.mark.parametrize("cost", [10 * Cost.gaussian(2.0).sampled(0.1), RESPONSE], ids=repr)
def test_a_group_without_a_law_of_its_own_warns_that_only_the_upper_end_is_known(cost: Cost) -> None:
    with pytest.warns(WideBracket, match=r"a group of 3 .* Upper bounds are valid .* lower bounds are 0"):
        group = cost.grouped(3)
    lower, upper = group.bounds(delta=1e-6)
    assert lower == 0.0
    assert upper >= cost.bounds(delta=1e-6)[0]


@pytest.mark.filterwarnings("ignore:a group of:discreet.WideBracket")
def test_a_group_of_a_sampled_mechanism_covers_one_who_leaves_for_another_who_joins() -> None:
    # +1 exchanged for -1: (1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1), at distance two
    rate, sigma, epsilon = 0.5, 1.0, 2.0
    x = np.linspace(-40.0, 40.0, 400_001)

    def half_sampled(mean: float) -> np.ndarray:
        bells = [np.exp(-0.5 * ((x - m) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) for m in (0.0, mean)]
        return (1 - rate) * bells[0] + rate * bells[1]

    leaks = np.maximum(half_sampled(1.0) - math.exp(epsilon) * half_sampled(-1.0), 0.0)
    exchanged = float(leaks.sum() * (x[1] - x[0]))
    one = Cost.gaussian(sigma).sampled(rate)
    assert one.delta(epsilon) < exchanged <= one.grouped(2).delta(epsilon)


def test_a_group_of_a_million_is_read_or_refused_without_noise() -> None:
    for cost in (Cost.gaussian(1.0), Cost.laplace(1.0), Cost.renyi({2.0: 1.0})):
        with pytest.raises(InvalidArgument, match="too large for this cost"):
            cost.grouped(10**6)
    with pytest.warns(WideBracket, match="a group of 1000000") as caught:
        group = Cost.gaussian(1.0).sampled(0.01).grouped(10**6)
    assert [warning.category for warning in caught] == [WideBracket]
    assert group.epsilon(1e-6) == math.inf


# ------------------------------------------------------------------ readings at the edges


@each_leaf
def test_delta_one_allows_everything(cost: Cost) -> None:
    assert cost.bounds(delta=1.0) == cost.bounds(delta=1) == (0.0, 0.0)


@pytest.mark.parametrize("cost", [GAUSSIAN, GAUSSIAN.sampled(0.1), Cost.gaussian_dp(2.0), Cost.concentrated(0.1)])
def test_unbounded_losses_have_no_epsilon_at_delta_zero(cost: Cost) -> None:
    assert (2 * cost).epsilon(0.0) == math.inf
    assert cost.pure_epsilon() == math.inf


@pytest.mark.parametrize(
    ("cost", "largest"),
    [
        (LAPLACE, 1 / 3),
        (RESPONSE, 0.4),
        (5 * RESPONSE, 2.0),
        (3 * LAPLACE + RESPONSE, 1.4),
        (Cost.staircase(0.5), 0.5),
        (Cost.pure(0.25) + Cost.discrete_laplace(4.0), 0.5),
        (LAPLACE.sampled(0.1), math.log1p(0.1 * math.expm1(1 / 3))),
    ],
    ids=repr,
)
def test_epsilon_at_delta_zero_is_the_largest_loss(cost: Cost, largest: float) -> None:
    lower, upper = cost.bounds(delta=0.0)
    assert lower <= largest * (1 + 1e-15)
    assert largest * (1 - 1e-15) <= upper
    assert upper == pytest.approx(largest, rel=1e-12)
    assert cost.pure_epsilon() == pytest.approx(largest, rel=1e-12)
    assert cost.delta(largest * (1 + 1e-9)) == 0.0


def test_a_leak_has_infinite_epsilon_below_its_probability() -> None:
    box = Cost.approximate(0.5, 1e-3)
    assert box.bounds(delta=0.0) == box.bounds(delta=5e-4) == (math.inf, math.inf)
    assert (10 * box).bounds(delta=9e-3) == (math.inf, math.inf)
    assert math.isfinite((10 * box).epsilon(1.01e-2))
    assert box.delta(50.0) == pytest.approx(1e-3, rel=1e-12)
    assert Cost.from_pair([1.0, 0.0], [0.0, 1.0]).bounds(delta=0.5) == (math.inf, math.inf)


def test_a_large_delta_needs_no_epsilon() -> None:
    assert GAUSSIAN.bounds(delta=0.9) == (0.0, 0.0)
    assert (5 * RESPONSE).bounds(delta=0.9) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("cost", "advantage"),
    [
        (GAUSSIAN, mp.erf(mp.mpf(1) / 2 / (2 * mp.sqrt(2)))),
        (LAPLACE, -mp.expm1(-mp.mpf(1) / 3 / 2)),
        (RESPONSE, mp.tanh(mp.mpf(0.4) / 2)),
        (GAUSSIAN.sampled(0.25), mp.erf(mp.mpf(1) / 2 / (2 * mp.sqrt(2))) / 4),
        (Cost.approximate(0.0, 0.01), mp.mpf(0.01)),
    ],
    ids=repr,
)
def test_advantage_is_the_total_variation(cost: Cost, advantage: mp.mpf) -> None:
    assert mp.mpf(cost.bounds(epsilon=0.0)[0]) <= advantage <= mp.mpf(cost.advantage())
    assert cost.advantage() == cost.delta(0.0) == pytest.approx(float(advantage), rel=1e-11)


def test_exactly_one_of_delta_and_epsilon_is_given() -> None:
    for given in ({}, {"delta": 1e-5, "epsilon": 1.0}):
        with pytest.raises(InvalidArgument, match="exactly one"):
            GAUSSIAN.bounds(**given)


# ------------------------------------------------------------------ methods


ALLOWED: list[tuple[Cost, tuple[str, ...]]] = [
    (GAUSSIAN, ("exact", "gaussian_dp", "contour", "grid", "renyi", "concentrated")),
    (20 * GAUSSIAN.sampled(0.05), ("contour", "grid", "renyi", "concentrated")),
    (10 * RESPONSE, ("contour", "grid", "renyi", "concentrated", "classic", "advanced")),
    (LAPLACE, ("exact", "grid", "renyi", "concentrated", "classic", "advanced")),
    (6 * LAPLACE, ("spline", "grid", "renyi", "concentrated", "classic", "advanced")),
    (8 * Cost.approximate(0.2, 1e-8), ("contour", "grid", "classic", "advanced")),
    (GAUSSIAN + RESPONSE, ("contour", "grid", "renyi", "concentrated")),
    (20 * Cost.exponential_mechanism(0.2), ("spline", "grid", "renyi", "concentrated", "classic", "advanced")),
]


@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
@pytest.mark.parametrize(
    ("cost", "method"), [pytest.param(c, m, id=f"{c!r}, {m}") for c, methods in ALLOWED for m in methods]
)
def test_each_method_is_used_when_asked_for_and_auto_is_never_worse(cost: Cost, method: str) -> None:
    for asked in ({"delta": 1e-6}, {"epsilon": 0.2}):
        forced, auto = cost.reading(**asked, method=method), cost.reading(**asked)
        if (cost, method) != (GAUSSIAN, "exact"):
            assert forced.method == method
        assert forced.lower <= forced.upper
        assert auto.lower <= forced.upper, "brackets of the same number overlap"
        assert forced.lower <= auto.upper
        assert auto.upper <= forced.upper * (1 + 1e-7), "a bracket this narrow needs no second opinion"


@pytest.mark.parametrize(
    ("cost", "method"),
    [
        (2 * LAPLACE, "exact"),
        (LAPLACE, "gaussian_dp"),
        (GAUSSIAN, "classic"),
        (GAUSSIAN, "advanced"),
        (Cost.concentrated(0.1), "contour"),
        (Cost.renyi({2: 1.0}), "grid"),
    ],
)
def test_a_method_that_does_not_apply_is_refused(cost: Cost, method: str) -> None:
    with pytest.raises(InvalidArgument, match="method"):
        cost.epsilon(1e-5, method=method)


def test_an_unknown_method_is_refused_with_the_closest_name() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'contour'"):
        GAUSSIAN.epsilon(1e-5, method="contuor")
    assert METHODS[0] == "auto"


# ------------------------------------------------------------------ showing


def test_repr_tells_mechanisms_counts_and_adjacency() -> None:
    assert repr(Cost.zero()) == "Cost(zero)"
    assert repr(14 * Cost.gaussian(1.1).sampled(0.25) + LAPLACE) == (
        "Cost(laplace(noise_multiplier=3) + 14 * gaussian(noise_multiplier=1.1).sampled(rate=0.25))"
    )
    assert repr(GAUSSIAN.with_adjacency("replace-one")).endswith(", adjacency='replace-one')")


@each_leaf
def test_html_shows_the_parts_and_a_reading(cost: Cost) -> None:
    html = (3 * cost)._repr_html_()
    assert html.startswith("<table>")
    assert "<td style='text-align:right'>3</td>" in html
    assert cost.parts[0][0].describe().split("(")[0] in html
    assert "epsilon at delta 1e-06" in html


@pytest.mark.parametrize("other", [Cost.laplace(2.0), Cost.pure(0.5), 2 * Cost.randomized_response(0.25)])
def test_a_box_beside_pure_parts_is_read_at_its_own_delta(other):
    # basic composition: (0.5, 1e-6) and 0.5 give (1, 1e-6), and 1e-6 is the least delta of the box
    cost = Cost.approximate(0.5, 1e-6) + other
    lower, upper = cost.bounds(delta=1e-6)
    assert lower <= 1.0 <= upper <= 1.0 + 1e-9
    assert cost.delta(1.0 + 1e-9) == pytest.approx(1e-6, rel=1e-9)


def test_a_long_sum_is_the_same_as_its_parts_at_once():
    costs = [(1 + i % 3) * Cost.gaussian(1 + (i * 7) % 5).sampled(0.01 * (1 + i % 4)) for i in range(60)]
    costs += [Cost.laplace(2.0), Cost.zero(), Cost.pure(0.1), Cost.laplace(2.0)]
    together = Cost(tuple(part for cost in costs for part in cost.parts))
    assert sum(costs) == together
    assert sum(reversed(costs)) == together
    assert hash(sum(costs)) == hash(together)
    assert Cost.from_dict(sum(costs).to_dict()) == together
    assert pickle.loads(pickle.dumps(sum(costs))) == together


@pytest.mark.parametrize("times", [1, 7])
def test_a_curve_at_a_few_orders_is_read_at_these_orders(times):
    # steps of the curve are narrow valleys that a search over real orders may pass by: every order alone is a bound
    rng = np.random.default_rng(4)
    for _ in range(30):
        orders = np.sort(1 + rng.lognormal(1, 2, 6))
        values = np.sort(rng.lognormal(-1, 2, 6))
        curve = dict(zip(orders.tolist(), values.tolist(), strict=True))
        cost = times * Cost.renyi(curve)
        alone = [renyi.epsilon_at_order(order, times * value, 1e-6) for order, value in curve.items()]
        assert cost.epsilon(1e-6) <= min(alone) * (1 + 1e-12)
        assert cost.delta(1.0) <= min(renyi.delta_at_order(o, times * v, 1.0) for o, v in curve.items()) * (1 + 1e-9)
        both = cost + Cost.laplace(3.0)
        with_noise = [
            renyi.epsilon_at_order(order, times * value + Cost.laplace(3.0).rdp(order), 1e-6)
            for order, value in curve.items()
        ]
        assert both.epsilon(1e-6) <= min(with_noise) * (1 + 1e-9)
