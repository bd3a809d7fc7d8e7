"""Odometers: exact sums, and the claim at stopping times checked on interactions followed through every answer."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.interactions import Release, State, box, gaussian, response, transcripts
from discreet.accounting.cost import Cost
from discreet.accounting.odometer import Odometer
from discreet.errors import AdjacencyMismatch, InvalidArgument, StorageError, UnknownVersion

SHARES: dict[str | float, float] = {"leak": 0.3, 1.5: 0.2, 3.0: 0.25, 12.0: 0.25}


def test_sums_are_exact_and_rounded_up() -> None:
    meter = Odometer()
    for _ in range(10):
        meter.charge(Cost.pure(0.1))
    assert meter.pure_epsilon == meter.epsilon == 1.0
    assert meter.spent == 10 * Cost.pure(0.1)
    meter = Odometer()
    meter.charge(Cost.gaussian_dp(3.0) + Cost.gaussian_dp(4.0))
    assert meter.mu == 5.0
    assert meter.rho == pytest.approx(12.5, rel=1e-13)
    assert meter.rho >= 12.5
    assert meter.epsilon == meter.pure_epsilon == math.inf


def test_nothing_spent_reads_zero() -> None:
    for meter in (Odometer(), Odometer(delta=1e-6)):
        assert (meter.epsilon, meter.pure_epsilon, meter.rho, meter.mu) == (0, 0, 0, 0)


def test_a_leak_beyond_its_share_leaves_nothing_to_claim() -> None:
    meter = Odometer(delta=1e-6)
    meter.charge(Cost.approximate(0.5, 2e-7))
    assert meter.epsilon == 0.5
    meter.charge(Cost.approximate(0.5, 1e-7))
    assert meter.epsilon == math.inf
    assert meter.pure_epsilon == meter.rho == meter.mu == math.inf


@pytest.mark.parametrize(
    "spent",
    [
        100 * Cost.gaussian(50.0),
        500 * Cost.pure(0.01),
        300 * Cost.discrete_gaussian(40.0) + 100 * Cost.discrete_laplace(100.0),
        1000 * Cost.gaussian(10.0).sampled(rate=0.2),
        40 * Cost.concentrated(0.01),
    ],
    ids=repr,
)
def test_the_reading_is_above_every_fixed_plan_and_below_one_and_a_half_times_it(spent: Cost) -> None:
    meter = Odometer(delta=1e-6)
    meter.charge(spent)
    fixed = spent.epsilon(1e-6, method="renyi")
    assert spent.bounds(delta=1e-6)[0] <= meter.epsilon <= 1.5 * fixed


def test_few_small_releases_read_as_the_sum_of_their_epsilons() -> None:
    meter = Odometer(delta=1e-6)
    for _ in range(3):
        meter.charge(Cost.pure(0.1))
    assert meter.epsilon == 0.3


def stopper(menu: tuple[Release, ...], seed: int, depth: int):  # type: ignore[no-untyped-def]
    """Chooses by what it has seen, and stops at once when the answers have given much away."""

    def wishes(state: State, _: object) -> list[Release]:
        draw = np.random.default_rng([seed, *state.answers])
        if len(state.answers) >= depth or abs(state.loss) > draw.exponential(2.0):
            return []
        return [menu[draw.integers(len(menu))]]

    return wishes


def excess(ends: list[tuple[State, Odometer]]) -> float:
    """The exact P(A) - E_Q[1_A e^epsilon] of the worst event A, over both orders."""
    finite = [(end, meter.epsilon) for end, meter in ends if meter.epsilon < math.inf]
    forward = math.fsum(max(0.0, end.p - math.exp(reading) * end.q) for end, reading in finite)
    backward = math.fsum(max(0.0, end.q - math.exp(reading) * end.p) for end, reading in finite)
    return max(forward, backward)


@given(seed=st.integers(0, 2**32 - 1), delta=st.sampled_from([1e-3, 0.02, 0.2]))
@settings(max_examples=20)
def test_the_claim_holds_at_stopping_times(seed: int, delta: float) -> None:
    menu = (*map(response, (0.2, 1.0, 3.0)), *map(gaussian, (0.2, 1.0, 2.0)), box(0.3, delta / 8))
    ends = transcripts(stopper(menu, seed, depth=3), Odometer(delta=delta, shares=SHARES))
    assert excess(ends) <= delta  # type: ignore[arg-type]


def test_the_claim_can_fail_for_a_reading_that_is_too_small() -> None:
    ends = transcripts(stopper((gaussian(2.0),), 1, depth=3), Odometer(delta=0.02, shares=SHARES))
    total = math.fsum(max(0.0, end.p - math.exp(0.4 * meter.epsilon) * end.q) for end, meter in ends)  # type: ignore[attr-defined]
    assert total > 0.02


def test_the_default_shares_add_up_to_at_most_one() -> None:
    shares = Odometer(delta=1e-6).to_dict()["shares"]
    assert sum(Fraction(repr(share)) for _, share in shares) <= 1


@pytest.mark.parametrize(
    "meter",
    [Odometer(), Odometer(delta=1e-6), Odometer(delta=1e-3, shares=SHARES, adjacency="replace-one")],
    ids=repr,
)
def test_a_stored_odometer_comes_back_with_the_same_reading(meter: Odometer) -> None:
    meter.charge(Cost.pure(0.1, adjacency=meter.adjacency) + Cost.gaussian(3.0, adjacency=meter.adjacency))
    for twin in (Odometer.from_dict(json.loads(json.dumps(meter.to_dict()))), pickle.loads(pickle.dumps(meter))):
        assert (twin.spent, twin.delta, twin.epsilon, twin.rho) == (meter.spent, meter.delta, meter.epsilon, meter.rho)
        assert twin.adjacency == meter.adjacency
        assert repr(twin) == repr(meter)


def test_bad_input_is_refused() -> None:
    for arguments in (
        {"delta": 1.0},
        {"delta": -1e-6},
        {"delta": math.nan},
        {"shares": {3.0: 1.0}},
        {"delta": 1e-6, "shares": {"gaussian": 1}},
        {"delta": 1e-6, "shares": {3.0: 1.1}},
        {"adjacency": "other"},
    ):
        with pytest.raises(InvalidArgument):
            Odometer(**arguments)  # type: ignore[arg-type]
    meter = Odometer()
    with pytest.raises(AdjacencyMismatch):
        meter.charge(Cost.pure(0.1, adjacency="replace-one"))
    with pytest.raises(InvalidArgument):
        meter.charge(0.1)  # type: ignore[arg-type]
    assert meter.spent == Cost.zero()
    good = meter.to_dict()
    with pytest.raises(UnknownVersion):
        Odometer.from_dict(good | {"version": 2})
    for bad in ({"shares": 7}, {"delta": 2.0}, {"shares": [["leak"]]}):
        with pytest.raises(StorageError):
            Odometer.from_dict(good | bad)
    with pytest.raises(StorageError):
        Odometer.from_dict({"format": "discreet.filter", "version": 1})
    assert Odometer.from_json(meter.to_json()).to_dict() == good
    with pytest.raises(StorageError, match=r"Odometer\.to_json"):
        Odometer.from_json("no text of ours")
