"""The guarantee of a filter against analysts who look at the answers: followed exactly, and with real noise."""

from __future__ import annotations

import copy
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.interactions import (
    Release,
    State,
    box,
    finite,
    gaussian,
    hockey_stick,
    laws,
    renyi,
    response,
    transcripts,
)
from discreet.accounting import gaussian_dp
from discreet.accounting.budget import Budget, renyi_limit
from discreet.accounting.cost import Cost
from discreet.accounting.filters import Filter
from discreet.errors import BudgetExceeded

# ------------------------------------------------------------- adversaries that look at answers, followed exactly

SIZES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


def chaser(menu: tuple[Release, ...], seed: int, depth: int = 4):  # type: ignore[no-untyped-def]
    """Asks for more the more it has learned, at random otherwise; tries large releases first and is often refused."""

    def wishes(state: State, _: object) -> list[Release]:
        if len(state.answers) >= depth:
            return []
        draw = np.random.default_rng([seed, *state.answers])
        order = sorted(draw.permutation(len(menu)).tolist(), reverse=bool(state.loss > draw.normal()))
        return [menu[index] for index in order]

    return wishes


@given(seed=st.integers(0, 2**32 - 1), epsilon=st.sampled_from([0.3, 1.0, 2.5]))
@settings(max_examples=15)
def test_pure_budgets_hold_against_adaptive_adversaries(seed: int, epsilon: float) -> None:
    ends = transcripts(chaser(tuple(map(response, SIZES)), seed), Filter(Budget(epsilon=epsilon)))
    assert max(abs(end.loss) for end, _ in ends) <= epsilon * (1 + 1e-9)


@given(seed=st.integers(0, 2**32 - 1), rho=st.sampled_from([0.02, 0.1, 1.0]))
@settings(max_examples=15)
def test_concentrated_budgets_hold_against_adaptive_adversaries(seed: int, rho: float) -> None:
    menu = (*map(response, SIZES), *map(gaussian, SIZES))
    p, q = laws(transcripts(chaser(menu, seed, depth=3), Filter(Budget(rho=rho))))
    for order in (1.1, 2.0, 5.0, 20.0):
        assert renyi(p, q, order) <= order * rho * (1 + 1e-9) + 1e-12


@given(seed=st.integers(0, 2**32 - 1), mu=st.sampled_from([0.3, 1.0, 2.0]))
@settings(max_examples=15)
def test_gaussian_budgets_hold_against_adaptive_adversaries(seed: int, mu: float) -> None:
    menu = (*map(response, SIZES), *map(gaussian, SIZES))
    p, q = laws(transcripts(chaser(menu, seed, depth=3), Filter(Budget(mu=mu))))
    for epsilon in (0.0, 0.2, 1.0, 3.0):
        assert hockey_stick(p, q, epsilon) <= gaussian_dp.delta_bounds(mu, epsilon)[1] + 1e-12


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_renyi_budgets_hold_against_adaptive_adversaries(seed: int) -> None:
    limits = {1.5: 0.1, 4.0: 0.3, 16.0: 0.8}
    menu = (*map(response, SIZES), *map(gaussian, SIZES))
    p, q = laws(transcripts(chaser(menu, seed, depth=3), Filter(Budget(renyi=limits))))
    for order, value in limits.items():
        assert renyi(p, q, order) <= value * (1 + 1e-9)


@given(seed=st.integers(0, 2**32 - 1), epsilon=st.sampled_from([0.3, 0.8, 1.5]), delta=st.sampled_from([0.002, 0.05]))
@settings(max_examples=20)
def test_delta_budgets_hold_against_adaptive_adversaries(seed: int, epsilon: float, delta: float) -> None:
    leaks = tuple(box(size, delta / 8) for size in (0.1, 0.4))
    menu = (*map(response, SIZES), *map(gaussian, SIZES), *leaks)
    shares: dict[str | float, float] = {"leak": 0.3, "gaussian": 0.3, 3.0: 0.2, 12.0: 0.2}
    guard = Filter(Budget(epsilon=epsilon, delta=delta, shares=shares))
    p, q = laws(transcripts(chaser(menu, seed, depth=3), guard))
    assert hockey_stick(p, q, epsilon) <= delta


# ------------------------------------------------------------ three rules that look right and are not; ours refuses


class Permissive:
    """A guard that admits whatever `rule` accepts as the list of costs so far."""

    def __init__(self, accepts, charged: tuple[Cost, ...] = ()) -> None:  # type: ignore[no-untyped-def]
        self.accepts, self.charged = accepts, charged

    def charge(self, cost: Cost) -> None:
        if not self.accepts(sum([*self.charged, cost], Cost.zero())):
            raise BudgetExceeded(requested=0.0, remaining=0.0, unit="epsilon")
        self.charged = (*self.charged, cost)


def delta_at(ends: list, epsilon: float) -> float:
    return hockey_stick(*laws(ends), epsilon)


def test_numerical_composition_of_every_possible_list_does_not_cover_an_adaptive_choice() -> None:
    epsilon, delta = 0.3, 0.01
    first, leak = response(0.1), box(0.0, 0.999 * delta)

    def composed(size: float) -> float:
        return (first.cost + Cost.pure(size)).delta(epsilon)

    low, high = 0.2, 0.5  # the randomized response that uses up delta after the first one
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if composed(middle) <= delta else (low, middle)

    def wishes(state: State, _: object) -> list[Release]:
        return [[first], [response(low) if state.loss > 0 else leak], []][len(state.answers)]

    naive = transcripts(wishes, Permissive(lambda total: total.delta(epsilon) <= delta))
    assert delta_at(naive, epsilon) > 1.4 * delta
    for shares in (None, {"leak": 0.5, "gaussian": 0.5}, {"leak": 1.0}):
        guarded = transcripts(wishes, Filter(Budget(epsilon=epsilon, delta=delta, shares=shares)))
        assert delta_at(guarded, epsilon) <= delta


def tightest(order: float, *, epsilon: float, loss: float, room: float) -> Release:
    """The release of this Rényi divergence that adds the most to delta(epsilon) after a loss so far."""
    reach = epsilon + math.log(order / (order - 1)) - loss  # the loss at which the conversion of the order is tight

    def divergence(mass: float) -> float:
        return renyi(
            np.array([mass, 1 - mass]), np.array([mass * math.exp(-reach), 1 - mass * math.exp(-reach)]), order
        )

    low, high = -30.0, -1e-6
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if divergence(math.exp(middle)) <= room * (1 - 1e-9) else (low, middle)
    mass = math.exp(low)
    return finite((mass, 1 - mass), (mass * math.exp(-reach), 1 - mass * math.exp(-reach)))


def test_keeping_some_order_within_its_full_limit_does_not_keep_delta() -> None:
    # a rare and strong first answer, after which the large order is used up; after all others it is the small one
    epsilon, delta, orders = 4.0, 1e-3, (2.0, 8.0)
    common, rare, mass = 0.2, 1.2, 0.0092
    rest = 1 - mass
    kept = (rest * math.exp(common) - 1 + mass * math.exp(-rare)) / (2 * math.sinh(common))
    p = (mass, kept, rest - kept)
    first = finite(p, tuple(x * math.exp(-loss) for x, loss in zip(p, (rare, common, -common), strict=True)))
    limits = {order: renyi_limit(order, epsilon, delta) for order in orders}
    rooms = {order: limits[order] - first.cost.rdp(order) for order in orders}
    small = tightest(2.0, epsilon=epsilon, loss=common, room=rooms[2.0])
    large = tightest(8.0, epsilon=epsilon, loss=rare, room=rooms[8.0])

    def wishes(state: State, _: object) -> list[Release]:
        return [[first], [large if state.answers == (0,) else small], []][len(state.answers)]

    naive = transcripts(wishes, Permissive(lambda total: any(total.rdp(a) <= limits[a] for a in orders)))
    assert len(naive) == 6
    assert delta_at(naive, epsilon) > 1.5 * delta
    guarded = transcripts(wishes, Filter(Budget(epsilon=epsilon, delta=delta, shares={2.0: 0.5, 8.0: 0.5})))
    assert len(guarded) < 6
    assert delta_at(guarded, epsilon) <= delta


def test_moving_delta_from_losses_to_leaks_on_the_way_does_not_keep_delta() -> None:
    # after a promising answer the losses may use all of delta, after another one a leak does
    epsilon, delta, order = 4.0, 1e-3, 6.0
    first, leak = response(0.5), box(0.0, 0.99 * delta)
    room = renyi_limit(order, epsilon, delta) - first.cost.rdp(order)
    second = tightest(order, epsilon=epsilon, loss=0.5, room=room)

    def accepts(total: Cost) -> bool:
        leaked = sum(leaf.delta * times for leaf, times in total.parts if leaf.kind == "approximate")
        losses = Cost(tuple(part for part in total.parts if part[0].kind != "approximate"))
        return leaked < delta and losses.rdp(order) <= renyi_limit(order, epsilon, delta - leaked)

    def wishes(state: State, _: object) -> list[Release]:
        return [[first], [second if state.loss > 0 else leak], []][len(state.answers)]

    naive = transcripts(wishes, Permissive(accepts))
    assert delta_at(naive, epsilon) > 1.3 * delta
    guarded = transcripts(wishes, Filter(Budget(epsilon=epsilon, delta=delta, shares={"leak": 0.5, order: 0.5})))
    assert delta_at(guarded, epsilon) <= delta


# -------------------------------------------------------------------------------------- real noise, both error rates

ALPHA = 1e-9
RUNS = 20_000


class Analyst:
    """Takes less noise whenever the answers look promising; filters that stand at the same place are shared by runs."""

    def __init__(self, guard: Filter) -> None:
        self.after: dict[float, Analyst] = {}
        for sigma in (2.0, 5.0):
            if guard.admits(Cost.gaussian(sigma)):
                following = copy.copy(guard)
                following.charge(Cost.gaussian(sigma))
                self.after[sigma] = _place(following)

    def loss(self, draw: np.random.Generator) -> float:
        """The loss of one run to the end; the person is in the data, the true answer is 1 and without them 0."""
        place, total = self, 0.0
        while place.after:
            sigma = min(place.after) if total > 0 else max(place.after)
            answer = 1 + sigma * draw.standard_normal()
            total += (answer - 0.5) / sigma**2
            place = place.after[sigma]
        return total


_PLACES: dict[str, Analyst] = {}


def _place(guard: Filter) -> Analyst:
    key = repr((guard.budget, guard.spent))
    if key not in _PLACES:
        _PLACES[key] = Analyst(guard)
    return _PLACES[key]


def simulated_delta(budget: Budget, epsilon: float, draw: np.random.Generator) -> float:
    """Mean of (1 - e^{epsilon - L})_+ over many runs."""
    analyst = _place(Filter(budget))
    return math.fsum(max(0.0, -math.expm1(epsilon - analyst.loss(draw))) for _ in range(RUNS)) / RUNS


def test_an_analyst_with_real_gaussian_noise_stays_within_the_claim_and_an_overspender_does_not() -> None:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)
    claim = gaussian_dp.delta_bounds(1.0, 1.0)[1]
    margin = math.sqrt(math.log(1 / ALPHA) / (2 * RUNS))  # Hoeffding, for means of numbers in [0, 1]
    assert simulated_delta(Budget(mu=1.0), 1.0, draw) <= claim + margin
    assert simulated_delta(Budget(mu=1.6), 1.0, draw) > claim + margin
