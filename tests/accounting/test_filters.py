"""Filters: exact sums, no overspending by anyone, storing and refusals; `test_adversaries` checks the guarantee."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import re
import threading
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from accounting.interactions import (
    renyi,
)
from discreet.accounting import gaussian_dp
from discreet.accounting import renyi as renyi_accountant
from discreet.accounting.budget import Budget, renyi_limit
from discreet.accounting.charges import decimal, floor_root
from discreet.accounting.cost import Cost
from discreet.accounting.filters import Filter
from discreet.errors import AdjacencyMismatch, BudgetExceeded, InvalidArgument, StorageError, UnknownVersion


def refuses(guard: Filter, cost: Cost) -> bool:
    """Whether the charge is refused; checks that `admits` agrees and that a refusal changes nothing."""
    before, admitted = (guard.spent, guard.remaining, guard.limits()), guard.admits(cost)
    assert (guard.spent, guard.remaining, guard.limits()) == before
    if admitted:
        return False
    with pytest.raises(BudgetExceeded):
        guard.charge(cost)
    assert (guard.spent, guard.remaining, guard.limits()) == before
    return True


# ------------------------------------------------------------------------------------------------ closed forms


def test_ten_tenths_are_one() -> None:
    guard = Filter(Budget(epsilon=1.0))
    for _ in range(10):
        guard.charge(Cost.pure(0.1))
    assert guard.remaining == 0
    assert guard.spent == 10 * Cost.pure(0.1)
    assert refuses(guard, Cost.pure(1e-100))


def test_gaussian_budgets_add_squares() -> None:
    guard = Filter(Budget(mu=5.0))
    guard.charge(Cost.gaussian_dp(3.0))
    assert guard.remaining == 4
    guard.charge(Cost.gaussian_dp(4.0))
    assert guard.remaining == 0


def test_concentrated_budgets_add_rho_and_take_every_mechanism_that_has_one() -> None:
    guard = Filter(Budget(rho=1.0))
    guard.charge(4 * Cost.concentrated(0.1))
    guard.charge(Cost.gaussian(noise_multiplier=2.0))  # rho = 1/8
    assert guard.remaining == pytest.approx(0.475, rel=1e-12)
    guard.charge(Cost.laplace(noise_multiplier=2.0))
    assert guard.remaining < 0.475
    assert refuses(guard, Cost.approximate(0.1, 1e-9))


def test_renyi_budgets_hold_at_every_order_they_name() -> None:
    guard = Filter(Budget(renyi={2.0: 0.1, 8.0: 1.0}))
    assert guard.remaining == pytest.approx(0.05, rel=1e-9)  # the largest rho: order 2 is in the way
    guard.charge(Cost.renyi({2.0: 0.06, 8.0: 0.3}))
    assert refuses(guard, Cost.renyi({2.0: 0.06, 8.0: 0.3}))
    assert refuses(guard, Cost.renyi({2.0: 0.01, 8.0: 0.8}))
    guard.charge(Cost.renyi({2.0: 0.04, 8.0: 0.7}))
    assert guard.remaining == 0


def test_basic_composition_is_one_of_the_alternatives() -> None:
    guard = Filter(Budget(epsilon=3.0, delta=1e-6, shares={"leak": 1}))
    for _ in range(6):
        guard.charge(Cost.approximate(0.5, 1e-7))
    assert guard.remaining == 0
    assert guard.remaining_delta == 4e-7
    assert refuses(guard, Cost.approximate(0.5, 1e-7))


def test_a_leak_beyond_its_share_is_refused_and_named() -> None:
    guard = Filter(Budget(epsilon=3.0, delta=1e-6))
    guard.charge(Cost.approximate(0.1, 2e-7))
    with pytest.raises(BudgetExceeded) as refused:
        guard.charge(Cost.approximate(0.1, 2e-7))
    assert refused.value.unit == "delta"
    assert refused.value.remaining == pytest.approx(5e-8)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), [(1.0, 1e-6, 50.0), (8.0, 1e-9, 20.0), (0.25, 1e-4, 100.0)])
def test_a_gaussian_share_is_exact_for_gaussian_noise(epsilon: float, delta: float, sigma: float) -> None:
    guard = Filter(Budget(epsilon=epsilon, delta=delta, shares={"gaussian": 1}))
    step = Cost.gaussian(noise_multiplier=sigma)
    count = _largest(lambda n: (n * step).epsilon(delta) <= epsilon)
    assert _largest(lambda n: guard.admits(n * step)) == count > 50


@pytest.mark.parametrize(
    "step",
    [Cost.gaussian(100.0), Cost.discrete_gaussian(100.0), Cost.laplace(100.0), Cost.discrete_laplace(100.0),
     Cost.pure(0.01), Cost.concentrated(5e-5), Cost.gaussian_dp(0.01), Cost.gaussian(30.0).sampled(rate=0.3)],
    ids=repr,
)  # fmt: skip
def test_adaptivity_costs_less_than_a_third_of_the_releases(step: Cost) -> None:
    guard = Filter(Budget(epsilon=1.0, delta=1e-6))
    fixed = _largest(
        lambda n: gaussian_dp.epsilon_bounds(math.sqrt(n) * math.sqrt(2 * step.rdp(20.0) / 20), 1e-6)[1] <= 1
    )
    assert _largest(lambda n: guard.admits(n * step)) >= 0.7 * fixed


def _largest(holds: object) -> int:
    high = 1
    while holds(high):  # type: ignore[operator]
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)  # type: ignore[operator]
    return low


@pytest.mark.parametrize("order", [1.01, 1.5, 4.0, 32.0, 500.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.05, 1e-3), (10.0, 1e-12), (0.0, 0.1)])
def test_the_limit_of_an_order_converts_to_the_budget_and_no_larger_one_does(
    order: float, epsilon: float, delta: float
) -> None:
    limit = renyi_limit(order, epsilon, delta)
    assert renyi_accountant.epsilon_at_order(order, limit, delta) <= epsilon
    if epsilon > 0:
        assert limit > 0
        assert renyi_accountant.epsilon_at_order(order, limit * (1 + 1e-9), delta) > epsilon


def test_the_shares_of_delta_add_up_to_at_most_one() -> None:
    for epsilon in (1e-3, 0.1, 1.0, 5.0, 50.0):
        for delta in (1e-2, 1e-6, 1e-15, 1e-50):
            budget = Budget(epsilon=epsilon, delta=delta)
            assert sum(Fraction(repr(share)) for _, share in budget.divided()) <= 1
            deltas = [Fraction(limit.delta) for limit in budget.alternatives()]
            assert sum(deltas) + budget.required()[0].most <= Fraction(repr(delta))


# -------------------------------------------------------------------------- adversaries that count in last digits

KINDS = {
    "epsilon": (Cost.pure, lambda x: Fraction(repr(x))),
    "rho": (Cost.concentrated, lambda x: Fraction(repr(x))),
    "mu": (Cost.gaussian_dp, lambda x: Fraction(repr(x)) ** 2),
}


class Spender(RuleBasedStateMachine):
    """Charges whatever it likes, overspends by one unit in the last place, and keeps its own exact books."""

    @initialize(unit=st.sampled_from(sorted(KINDS)), amount=st.floats(1e-12, 500))
    def open(self, unit: str, amount: float) -> None:
        self.cost, self.size = KINDS[unit]
        self.guard = Filter(Budget(**{unit: amount}))
        self.most, self.spent, self.costs = self.size(amount), Fraction(0), Cost.zero()

    def attempt(self, x: float, times: int = 1) -> None:
        if 0 < x < 1e-100:  # such small costs are refused when they are made
            return
        cost = times * self.cost(x)
        fits = self.spent + times * self.size(x) <= self.most
        assert refuses(self.guard, cost) is not fits
        if fits:
            self.guard.charge(cost)
            self.spent += times * self.size(x)
            self.costs += cost

    @rule(x=st.floats(0, 600), times=st.integers(1, 1000))
    def anything(self, x: float, times: int) -> None:
        self.attempt(x, times)

    @rule(share=st.floats(0, 1))
    def part_of_the_rest(self, share: float) -> None:
        self.attempt(share * self.guard.remaining)

    @rule()
    def one_unit_more_than_the_rest(self) -> None:
        assert refuses(self.guard, self.cost(max(1e-100, math.nextafter(self.guard.remaining, math.inf))))

    @precondition(lambda self: self.guard.remaining > 1e-100)
    @rule()
    def all_of_the_rest(self) -> None:
        assert self.guard.admits(self.cost(self.guard.remaining))
        self.attempt(self.guard.remaining)

    @rule()
    def store_and_read_back(self) -> None:
        self.guard = Filter.from_dict(json.loads(json.dumps(self.guard.to_dict())))

    @invariant()
    def the_books_agree_and_nothing_is_overspent(self) -> None:
        assert self.spent <= self.most
        assert self.guard.spent == self.costs


TestSpender = Spender.TestCase
TestSpender.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_what_remains_of_a_delta_budget_is_admitted_and_little_more_is(seed: int) -> None:
    draw = np.random.default_rng(seed)
    guard = Filter(Budget(epsilon=2.0, delta=1e-5))
    menu = [
        Cost.pure(0.05),
        Cost.gaussian(8.0),
        Cost.approximate(0.1, 1e-7),
        Cost.laplace(16.0),
        Cost.concentrated(0.001),
    ]
    while guard.remaining > 0.02 and draw.random() < 0.97:
        cost = int(draw.integers(1, 9)) * menu[draw.integers(len(menu))]
        if not refuses(guard, cost):
            guard.charge(cost)
        left = guard.remaining
        if left > 0:
            assert guard.admits(Cost.pure(left))
        assert not guard.admits(Cost.pure(left + 1e-6))


def test_threads_never_overspend_together() -> None:
    guard, admitted, refused = Filter(Budget(epsilon=1.0)), [0] * 8, [0] * 8
    start = threading.Barrier(8)

    def hammer(index: int) -> None:
        start.wait()
        for _ in range(500):
            try:
                guard.charge(Cost.pure(0.001))
                admitted[index] += 1
            except BudgetExceeded:
                refused[index] += 1

    threads = [threading.Thread(target=hammer, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(admitted) == 1000
    assert sum(refused) == 3000
    assert guard.spent == 1000 * Cost.pure(0.001)


# ---------------------------------------------------------------------------------------- adjacency, storing, input


def test_costs_under_another_adjacency_are_refused_and_nothing_changes() -> None:
    guard = Filter(Budget(epsilon=1.0, adjacency="replace-one"))
    with pytest.raises(AdjacencyMismatch):
        guard.charge(Cost.pure(0.1))
    with pytest.raises(AdjacencyMismatch):
        guard.admits(Cost.pure(0.1))
    guard.charge(Cost.pure(0.25, adjacency="replace-one"))
    assert guard.spent == Cost.pure(0.25, adjacency="replace-one")
    assert guard.remaining == 0.75
    assert guard.budget.cost == Cost.pure(1.0, adjacency="replace-one")


BUDGETS = [
    Budget(epsilon=1.0),
    Budget(epsilon=0.0),
    Budget(epsilon=1.0, delta=1e-6),
    Budget(epsilon=1.0, delta=1e-6, shares={"leak": 0.1, 16.0: 0.9}, adjacency="replace-one"),
    Budget(rho=0.3),
    Budget(mu=0.7),
    Budget(renyi={2.0: 0.1, 16.0: 1.0}),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_a_stored_filter_comes_back_with_the_same_answers(budget: Budget) -> None:
    guard = Filter(budget)
    cost = Cost.pure(1e-3, adjacency=budget.adjacency)
    if guard.admits(cost):
        guard.charge(cost)
    for twin in (
        Filter.from_dict(json.loads(json.dumps(guard.to_dict()))),
        pickle.loads(pickle.dumps(guard)),
        copy.deepcopy(guard),
    ):
        assert twin.spent == guard.spent
        assert twin.remaining == guard.remaining
        assert twin.limits() == guard.limits()
        assert repr(twin.budget.cost) == repr(budget.cost)
    assert eval(repr(budget)) == budget


def test_unreadable_descriptions_are_refused_with_advice() -> None:
    good = Filter(Budget(epsilon=1.0)).to_dict()
    with pytest.raises(UnknownVersion, match="version 99"):
        Filter.from_dict(good | {"version": 99})
    with pytest.raises(StorageError, match=r"discreet\.filter"):
        Filter.from_dict({"format": "something"})
    with pytest.raises(StorageError, match="has the field 'more'"):
        Filter.from_dict(good | {"more": 1})
    with pytest.raises(StorageError, match="a filter lacks the field 'spent'"):
        Filter.from_dict({name: value for name, value in good.items() if name != "spent"})
    for budget in ({"epsilon": -1.0}, {"epsilon": 1.0, "rho": 1.0}, {"epsilom": 1.0}, 7, {"epsilon": 1.0, "shares": 3}):
        with pytest.raises(StorageError):
            Filter.from_dict(good | {"budget": budget})
    overspent = good | {"spent": Cost.pure(2.0).to_dict()}
    with pytest.raises(
        StorageError, match="exceed the budget: they need epsilon = 2 and epsilon = 1 is all"
    ) as refused:
        Filter.from_dict(overspent)
    assert "nothing was charged" not in str(refused.value)


@pytest.mark.parametrize(
    ("shares", "advice"),
    [
        ({"gausian": 1}, "a key of shares = 'gausian'.*'leak', 'gaussian' and Rényi orders"),
        ({0.5: 1}, r"a key of shares = 0\.5.*orders > 1"),
        ({"leak": 0.7, "gaussian": 0.7}, r"add up to 1\.4; .* at most 1"),
        (("leak",), "pass a mapping such as"),
        (0.5, "pass a mapping such as"),
        ({"leak": "half"}, r"shares\['leak'\] = 'half'"),
    ],
)
def test_wrong_shares_are_refused_with_an_example(shares: object, advice: str) -> None:
    with pytest.raises(InvalidArgument, match=advice):
        Budget(epsilon=1.0, delta=1e-6, shares=shares)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"this one has none: write Budget\(epsilon=1\.0, delta=1e-6, shares="):
        Budget(rho=1.0, shares=shares)  # type: ignore[arg-type]


def test_a_refusal_says_what_would_be_admitted_in_the_unit_of_the_budget() -> None:
    guard = Filter(Budget(epsilon=3.0, delta=1e-6))
    guard.charge(20 * Cost.gaussian(20.0))
    with pytest.raises(BudgetExceeded, match="whose epsilon is at most") as refused:
        guard.charge(Cost.pure(50.0))
    assert refused.value.pure == guard.remaining > 0
    said = float(re.findall(r"at most ([\d.]+) at delta 0", str(refused.value))[0])
    assert 0.99 * guard.remaining <= said <= guard.remaining
    guard.charge(Cost.pure(said))
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    while guard.remaining > 0:
        guard.charge(Cost.pure(guard.remaining))
    with pytest.raises(BudgetExceeded, match="costs at most"):
        guard.charge(Cost.pure(50.0))


def test_one_release_that_has_an_epsilon_is_refused_in_epsilon_whatever_limit_is_closest() -> None:
    guard = Filter(Budget(epsilon=3.0, delta=1e-6))
    guard.charge(Cost.gaussian(2.0))  # now the limits of divergences have more room than the sum of epsilons
    for cost in (Cost.pure(100.0), Cost.laplace(noise_multiplier=0.01), Cost.approximate(100.0, 1e-8)):
        with pytest.raises(BudgetExceeded, match="needs epsilon = 100 and only epsilon = ") as refused:
            guard.charge(cost)
        assert refused.value.remaining == guard.remaining
        assert "Rényi" not in str(refused.value)
    with pytest.raises(BudgetExceeded, match="does not fit; what comes closest is a Rényi divergence"):
        guard.charge(100 * Cost.laplace(noise_multiplier=2.0))


def test_a_leak_beyond_its_share_is_told_what_to_pass() -> None:
    guard = Filter(Budget(epsilon=3.0, delta=1e-6))
    for taken in (0.0, 1.7e-7):
        guard.charge(Cost.approximate(0.5, taken))
        with pytest.raises(BudgetExceeded, match=r"of the 2\.5e-07 that it sets aside") as refused:
            guard.charge(Cost.approximate(1.0, 1e-6))
        delta, epsilon = re.findall(r"(?:delta|epsilon)=([\d.e-]+) or less", str(refused.value))
        assert guard.admits(Cost.approximate(float(epsilon), float(delta)))
        assert float(delta) > 0.99 * guard.remaining_delta
        assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    guard.charge(Cost.approximate(0.5, guard.remaining_delta))
    with pytest.raises(BudgetExceeded, match="Pass delta=0, and epsilon="):
        guard.charge(Cost.approximate(0.5, 1e-9))


@pytest.mark.parametrize("budget", [Budget(epsilon=3.0, delta=1e-6), Budget(mu=1.0), Budget(mu=1 / 3), Budget(mu=0.7)])
def test_gaussian_noise_that_is_refused_is_told_how_much_would_do(budget: Budget) -> None:
    guard = Filter(budget)
    for _ in range(5):
        with pytest.raises(BudgetExceeded, match="Gaussian noise with a noise_multiplier of at least") as refused:
            guard.charge(Cost.gaussian(0.1))
        said = float(re.findall(r"noise_multiplier of at least ([\d.]+)", str(refused.value))[0])
        assert guard.admits(Cost.gaussian(said))
        assert not guard.admits(Cost.gaussian(0.98 * said))
        guard.charge(Cost.gaussian(3 * said))


def test_a_filter_comes_back_from_its_text() -> None:
    guard = Filter(Budget(epsilon=1.0, delta=1e-6))
    guard.charge(Cost.gaussian(20.0))
    assert Filter.from_json(guard.to_json()).to_dict() == guard.to_dict()
    for text, advice in (
        ("{", r"Filter\.to_json\(\) wrote"),
        ("[]", "an object, not a list"),
        (Cost.zero().to_json(), "filter"),
    ):
        with pytest.raises(StorageError, match=advice):
            Filter.from_json(text)


@pytest.mark.parametrize(
    ("budget", "cost", "advice"),
    [
        (
            Budget(epsilon=1.0),
            Cost.gaussian(5.0),
            r"gaussian\(noise_multiplier=5\) has no finite pure epsilon.*budget a delta",
        ),
        (
            Budget(epsilon=1.0),
            Cost.pure(0.1) + Cost.concentrated(0.1),
            r"concentrated\(rho=0\.1\) has no finite pure epsilon",
        ),
        (Budget(rho=1.0), Cost.approximate(0.1, 1e-9), r"has no finite rho.*Budget\(epsilon=\.\.\., delta=1e-6\)"),
        (Budget(mu=1.0), Cost.concentrated(0.1), "has no finite mu"),
        (Budget(renyi={8.0: 1.0}), Cost.approximate(0.1, 1e-9), "has no finite Rényi divergence of order 8"),
    ],
)
def test_a_release_that_no_such_budget_admits_is_told_so(budget: Budget, cost: Cost, advice: str) -> None:
    guard = Filter(budget)
    with pytest.raises(BudgetExceeded, match=advice) as refused:
        guard.charge(cost)
    assert refused.value.requested == math.inf
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    assert guard.spent == Cost.zero()


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": 1.0, "rho": 1.0}, {"rho": 1.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1.0}, {"epsilon": 1.0, "delta": -1e-6}, {"renyi": {}}, {"renyi": {1.0: 1.0}},
        {"renyi": {2.0: -1.0}}, {"renyi": 3.0}, {"epsilon": 1.0, "shares": {"leak": 1}}, {"mu": math.inf},
        {"epsilon": 601.0}, {"epsilon": "1"},
        {"epsilon": 1.0, "delta": 1e-6, "shares": {"leak": 0.5, 8.0: 0.6}}, {"epsilon": 1.0, "adjacency": "other"},
        {"epsilon": 1.0, "delta": 1e-6, "shares": {"leaks": 1}}, {"epsilon": 1.0, "delta": 1e-6, "shares": {0.5: 1}},
        {"epsilon": 1.0, "delta": 1e-6, "shares": {}}, {"epsilon": 1.0, "delta": 1e-6, "shares": {8.0: 0.0}},
    ],
    ids=repr,
)  # fmt: skip
def test_impossible_budgets_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Budget(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "budget",
    [
        Budget(mu=1e200),
        Budget(mu=1e-200),
        Budget(mu=5e-324),
        Budget(mu=1.7e308),
        Budget(rho=1e-300),
        Budget(rho=1.7e308),
        Budget(epsilon=5e-324),
        Budget(epsilon=1e-300, delta=1e-300),
        Budget(epsilon=600.0, delta=0.999),
    ],
    ids=repr,
)
def test_budgets_of_any_size_say_what_is_left_and_what_is_too_much(budget: Budget) -> None:
    guard = Filter(budget)
    for cost in (Cost.pure(600.0) * 10**15, Cost.concentrated(1e9) * 10**15, Cost.pure(1e-100), Cost.zero()):
        if not refuses(guard, cost):
            guard.charge(cost)
        assert 0 <= guard.remaining <= 1.8e308


@given(st.floats(1e-300, 1e300))
def test_the_root_of_what_is_left_is_the_largest_whose_square_fits(mu: float) -> None:
    exact = decimal(mu) ** 2
    assert floor_root(exact) == mu
    assert floor_root(exact * (1 - Fraction(1, 10**40))) == math.nextafter(mu, 0.0)


def test_a_delta_whose_parts_would_vanish_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="pass 0, or at least 1e-300"):
        Budget(epsilon=1.0, delta=5e-324)


def test_only_budgets_and_costs_are_accepted() -> None:
    with pytest.raises(InvalidArgument, match="Budget"):
        Filter(1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="Cost"):
        Filter(Budget(epsilon=1.0)).charge(0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("budget", "release", "almost"),
    [
        (Budget(epsilon=1.0), Cost.pure, 1 - 1.5e-12),
        (Budget(epsilon=1.0, delta=1e-6), Cost.pure, 1 - 1.5e-12),
        (Budget(rho=0.1), Cost.concentrated, 0.1 - 1.5e-13),
        (Budget(mu=2.0), Cost.gaussian_dp, 2 - 1e-10),
        (Budget(renyi={2.0: 0.1, 8.0: 0.4}), Cost.concentrated, 0.05 - 1e-13),
    ],
)
def test_the_dust_of_a_spent_budget_is_shown_as_nothing_and_still_counted(
    budget: Budget, release: Callable[[float], Cost], almost: float
) -> None:
    guard = Filter(budget)
    guard.charge(release(almost))
    assert repr(guard) == f"Filter({budget!r}, remaining=0)"
    with pytest.raises(BudgetExceeded, match="costs at most 0,") as refused:
        guard.charge(release(almost))
    assert f"only {refused.value.unit} = 0 is left" in str(refused.value)
    assert guard.remaining > 0
    guard.charge(release(guard.remaining))


@given(
    whole=st.floats(1e-3, 50),
    parts=st.lists(st.floats(1e-3, 1), min_size=1, max_size=4),
    budget=st.sampled_from(["epsilon", "rho", "mu", "delta"]),
    digits=st.integers(1, 9),
)
def test_never_more_is_shown_than_is_left(whole: float, parts: list[float], budget: str, digits: int) -> None:
    delta = {"delta": 1e-6} if budget == "delta" else {}
    unit = "epsilon" if delta else budget
    guard = Filter(Budget(**{unit: whole}, **delta))
    release = {"epsilon": Cost.pure, "rho": Cost.concentrated, "mu": Cost.gaussian_dp}[unit]
    for part in parts:
        with contextlib.suppress(BudgetExceeded):
            guard.charge(release(part * whole))
    shown = float(guard.budget.left(guard.remaining, digits=digits))
    assert shown <= guard.remaining
    assert shown == 0 or guard.admits(release(shown))


def test_a_filter_says_what_it_guards_and_what_is_left() -> None:
    guard = Filter(Budget(epsilon=1.0))
    guard.charge(Cost.pure(0.25))
    assert repr(guard) == "Filter(Budget(epsilon=1.0), remaining=0.75)"
    [(limit, share)] = guard.limits()
    assert (limit.quantity.unit, limit.most, share) == ("epsilon", 1, 0.25)
    with pytest.raises(BudgetExceeded, match=r"needs epsilon = 1 and only epsilon = 0\.75 is left"):
        guard.charge(Cost.pure(1.0))
    with pytest.raises(BudgetExceeded, match="needs mu = 2 and only mu = 1 is left"):
        Filter(Budget(mu=1.0)).charge(Cost.gaussian_dp(2.0))


def test_mechanisms_with_a_leak_are_counted_by_their_leak_and_the_rest() -> None:
    guard = Filter(Budget(epsilon=1.0, delta=0.1, shares={"leak": 0.5, "gaussian": 0.25, 3.0: 0.25}))
    leaky = Cost.from_pair([0.01, 0.59, 0.4], [0.0, 0.4, 0.6])  # leaks 0.01 one way; the rest differs by 0.4 or less
    guard.charge(leaky)
    assert guard.remaining_delta == pytest.approx(0.04)
    spent = {limit.quantity.unit: share * float(limit.most) for limit, share in guard.limits()}
    p, q = np.array([0.59, 0.4]) / 0.99, np.array([0.4, 0.6])
    assert spent["epsilon"] == pytest.approx(max(np.log(p / q).max(), np.log(q / p).max()), rel=1e-9)
    assert spent["Rényi divergence of order 3"] == pytest.approx(renyi(p, q, 3.0), rel=1e-9)
    assert refuses(Filter(Budget(epsilon=1.0)), leaky)
    assert refuses(guard, Cost.approximate(0.0, 1.0))
    sampled = Cost.approximate(0.5, 0.02).sampled(rate=0.5)
    guard.charge(sampled)
    assert guard.remaining_delta == pytest.approx(0.03)
