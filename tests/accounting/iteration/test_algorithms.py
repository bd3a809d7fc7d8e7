"""The named algorithms: closed forms to 1e-9, refusals of what is not covered, storing and words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import AdjacencyMismatch, Cost, InvalidArgument, StorageError, last_iterate

LOSS = {"lipschitz": 1.5, "smoothness": 1.0}


@given(n=st.integers(1, 3000), share=st.floats(0, 1), sigma=st.floats(0.1, 5), eta=st.floats(0.01, 2.0))
def test_pnsgd_has_the_cost_of_theorem_23(n: int, share: float, sigma: float, eta: float) -> None:
    position = 1 + int(share * (n - 1))
    cost = last_iterate.pnsgd(n=n, position=position, step=eta, noise=sigma, **LOSS)
    assert cost.gdp() == pytest.approx(2 * 1.5 / (sigma * math.sqrt(n + 1 - position)), rel=1e-9)
    assert cost.rdp(8.0) == pytest.approx(8 * 2 * 1.5**2 / (sigma**2 * (n + 1 - position)), rel=1e-9)
    assert cost.adjacency == "replace-one"


@given(n=st.integers(1, 500), share=st.floats(0, 1), rho=st.floats(0.01, 1.0), eta=st.floats(0.05, 1.9))
def test_strongly_convex_pnsgd_has_its_closed_form(n: int, share: float, rho: float, eta: float) -> None:
    m = n - 1 - int(share * (n - 1))
    cost = last_iterate.pnsgd(n=n, position=n - m, step=eta, noise=2.0, strong_convexity=rho, **LOSS)
    c = max(abs(1 - eta * rho), abs(1 - eta))
    total = math.fsum(c ** (2 * i) for i in range(m + 1))
    expected = 1.5 * c**m / math.sqrt(total)
    if expected > 1e-9:  # c itself is rounded up by 1e-16
        assert cost.gdp() == pytest.approx(expected, rel=1e-9)
    assert cost.gdp() >= expected


@given(n=st.integers(1, 400), epochs=st.integers(1, 40), share=st.floats(0, 1))
def test_several_epochs_have_the_cost_of_appendix_b(n: int, epochs: int, share: float) -> None:
    position = 1 + int(share * (n - 1))
    cost = last_iterate.multi_epoch_pnsgd(n=n, epochs=epochs, position=position, step=1.0, noise=2.0, **LOSS)
    expected = (3 / 2.0) ** 2 * ((epochs - 1) / n + 1 / (n + 1 - position))
    assert cost.gdp() ** 2 == pytest.approx(expected, rel=1e-9)
    assert cost.gdp() ** 2 / 2 < 4 * 1.5**2 / 2.0**2 if epochs == n else True


@pytest.mark.parametrize("rho", [0.002, 0.1, 0.9])
@pytest.mark.parametrize("epochs", [1, 2, 50, 200])
def test_cyclic_batches_have_their_closed_form(rho: float, epochs: int) -> None:
    n, batch, sigma, eta = 60_000, 1500, 0.01, 0.5
    cost = last_iterate.cyclic(n=n, batch=batch, epochs=epochs, step=eta, noise=sigma, strong_convexity=rho, **LOSS)
    c, k = max(1 - eta * rho, 1 - eta), n // batch
    ratio = (1 - c ** (k * (epochs - 1))) / (1 + c ** (k * (epochs - 1)))
    expected = 3 / (batch * sigma) * math.sqrt(1 + c ** (2 * k - 2) * (1 - c * c) / (1 - c**k) ** 2 * ratio)
    assert cost.gdp() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 10, 10_000])
@pytest.mark.parametrize("rho", [0.01, 0.5])
def test_full_batch_descent_has_its_closed_form(steps: int, rho: float) -> None:
    cost = last_iterate.noisy_gradient_descent(n=1000, steps=steps, step=0.8, noise=0.01, strong_convexity=rho, **LOSS)
    c = 1 - 0.8 * rho
    expected = 3 / (1000 * 0.01) * math.sqrt((1 - c**steps) / (1 + c**steps) * (1 + c) / (1 - c))
    assert cost.gdp() == pytest.approx(expected, rel=1e-9)
    plain = last_iterate.noisy_gradient_descent(n=1000, steps=steps, step=0.8, noise=0.01, **LOSS)
    assert plain.gdp() == pytest.approx(3 / (1000 * 0.01) * math.sqrt(steps), rel=1e-9)


@pytest.mark.parametrize("diameter", [0.01, 0.3, 5.0])
@pytest.mark.parametrize("steps", [3, 500, 50_000])
def test_projected_descent_is_never_worse_than_the_published_plateau(diameter: float, steps: int) -> None:
    n, eta, sigma, moved = 200, 0.5, 0.05, 3.0
    cost = last_iterate.noisy_gradient_descent(n=n, steps=steps, step=eta, noise=sigma, diameter=diameter, **LOSS)
    plateau = math.sqrt(3 * moved * diameter / (eta * n) + (moved / n) ** 2 * math.ceil(diameter * n / (eta * moved)))
    assert cost.gdp() <= min(math.sqrt(steps) * moved / (n * sigma), plateau / sigma) * (1 + 1e-9)


@pytest.mark.parametrize("epochs", [1, 20, 3000])
def test_projected_cyclic_batches_are_never_worse_than_the_published_plateau(epochs: int) -> None:
    batch, batches, eta, sigma, moved, diameter = 10, 20, 0.5, 0.5, 3.0, 0.8
    cost = last_iterate.cyclic(n=200, batch=batch, epochs=epochs, step=eta, noise=sigma, diameter=diameter, **LOSS)
    plateau = math.sqrt(
        (moved / batch) ** 2
        + 3 * moved * diameter / (batch * eta * batches)
        + (moved / batch) ** 2 / batches * math.ceil(batch * diameter / (eta * moved))
    )
    assert cost.gdp() <= min(math.sqrt(epochs) * moved / (batch * sigma), plateau / sigma) * (1 + 1e-9)


def test_more_steps_never_cost_more_than_the_plateau() -> None:
    def epsilon(steps: int, diameter: float | None) -> float:
        return last_iterate.noisy_gradient_descent(
            n=1000, steps=steps, step=0.5, noise=0.2, diameter=diameter, **LOSS
        ).epsilon(delta=1e-6)

    counts = [10**k for k in range(1, 7)]
    bounded, free = [epsilon(k, 1.0) for k in counts], [epsilon(k, None) for k in counts]
    assert bounded[:3] == pytest.approx(free[:3], rel=1e-9)
    assert bounded[-1] == pytest.approx(bounded[-2], rel=1e-9)
    assert free[-1] > 5 * bounded[-1]


def test_the_worst_position_is_the_last_private_one() -> None:
    shared = {"n": 100, "step": 1.0, "noise": 1.0, **LOSS}
    assert last_iterate.pnsgd(**shared) == last_iterate.pnsgd(position=100, **shared)
    assert last_iterate.pnsgd(public=30, **shared) == last_iterate.pnsgd(position=70, **shared)
    costs = [last_iterate.pnsgd(position=k, **shared).gdp() for k in range(1, 101)]
    assert costs == sorted(costs)


def test_a_zeroed_record_costs_half_of_a_replaced_one() -> None:
    shared = {"n": 100, "step": 1.0, "noise": 1.0, **LOSS}
    replaced, zeroed = last_iterate.pnsgd(**shared), last_iterate.pnsgd(adjacency="add-remove", **shared)
    assert replaced.gdp() == pytest.approx(2 * zeroed.gdp(), rel=1e-12)
    with pytest.raises(AdjacencyMismatch):
        _ = replaced + zeroed


def test_merged_stretches_and_single_steps_agree() -> None:
    """A schedule with tiny changes cannot be merged: it must cost the same as the one that is."""
    rng = np.random.default_rng(5)
    steps, touches = 300, [7, 8, 100, 250]
    shared = {"steps": steps, "noise": 1.0, "touches": touches, "strong_convexity": 0.05, **LOSS}
    even = last_iterate.describe(step=0.5, **shared)
    uneven = last_iterate.describe(step=0.5 * (1 + 1e-13 * rng.random(steps)), **shared)
    assert even.mu == pytest.approx(uneven.mu, rel=1e-9)
    assert even.allocation() == pytest.approx(uneven.allocation(), rel=1e-6, abs=1e-12)
    energy = ((even.allocation() / 0.5) ** 2).sum()
    assert math.sqrt(energy) == pytest.approx(even.mu, rel=1e-9)


def test_schedules_of_noise_and_steps_are_taken_step_by_step() -> None:
    # one push and unequal noise: mu = s / sqrt(sum nu^2)
    noise = np.array([1.0, 2.0, 3.0, 4.0])
    eta = np.array([0.1, 0.2, 0.3, 0.4])
    found = last_iterate.describe(steps=4, step=eta, noise=noise, touches=2, batch=[1, 5, 1, 1], **LOSS).mu
    expected = 0.2 * 3 / 5 / math.sqrt(((eta * noise)[1:] ** 2).sum())
    assert found == pytest.approx(expected, rel=1e-12)


def test_contraction_factors_may_be_given_directly() -> None:
    shared = {"steps": 20, "step": 0.5, "noise": 1.0, "lipschitz": 1.5}
    derived = last_iterate.describe(smoothness=1.0, strong_convexity=0.4, **shared)
    given_directly = last_iterate.describe(contraction=0.8, **shared)
    assert derived.mu == pytest.approx(given_directly.mu, rel=1e-12)


def test_without_convexity_a_bounded_set_helps_and_nothing_else() -> None:
    shared = {"steps": 1000, "step": 0.1, "noise": 1.0, "lipschitz": 1.0, "smoothness": 1.0, "convex": False}
    free, bounded = last_iterate.describe(**shared), last_iterate.describe(diameter=0.2, **shared)
    assert free.mu == pytest.approx(free.composition, rel=1e-9)
    assert free.winner == "composition"
    assert bounded.mu < 0.1 * free.mu
    assert bounded.winner == "iteration from the diameter"


@pytest.mark.parametrize(
    ("change", "argument", "advice"),
    [
        ({"smoothness": math.inf}, "smoothness", "Huber"),
        ({"smoothness": None}, "smoothness", "Huber"),
        ({"step": 2.0000001}, "step", "2 / smoothness"),
        ({"step": [0.1] * 9 + [2.1]}, "step", "2 / smoothness"),
        ({"clipped": True}, "clipped", "linear_model=True"),
        ({"strong_convexity": 1.5}, "strong_convexity", "at most the smoothness"),
        ({"position": 11}, "position", "1 to 10"),
        ({"position": 0}, "position", ">= 1"),
        ({"position": 2.5}, "position", "whole number"),
        ({"position": 9, "public": 2}, "position", "public"),
        ({"public": 10}, "public", "at least one"),
        ({"noise": 0.0}, "noise", "> 0"),
        ({"noise": math.nan}, "noise", "> 0"),
        ({"step": -1.0}, "step", "> 0"),
        ({"step": [0.1, 0.2]}, "step", "10 steps"),
        ({"lipschitz": math.inf}, "lipschitz", "finite"),
        ({"diameter": 0.0}, "diameter", "> 0"),
        ({"adjacency": "replace"}, "adjacency", "replace-one"),
        ({"noise": 1e-9}, "process", "add noise"),
    ],
)
def test_what_is_not_covered_is_refused_with_advice(change: dict, argument: str, advice: str) -> None:
    arguments = {"n": 10, "step": 0.5, "noise": 1.0, **LOSS, **change}
    with pytest.raises(InvalidArgument, match=advice) as caught:
        last_iterate.pnsgd(**arguments)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"touches": 11}, "between 1 and 10"),
        ({"touches": []}, "at least one step"),
        ({"touches": "some"}, "'all'"),
        ({"diameter": 1.0, "radius": 0.5}, "either"),
        ({"sensitivity": 1.0}, "exactly one"),
        ({"contraction": 0.5}, "either"),
        ({"convex": False, "strong_convexity": 0.1}, "not convex"),
        ({"batch": 0}, "> 0"),
    ],
)
def test_a_process_that_contradicts_itself_is_refused(change: dict, advice: str) -> None:
    with pytest.raises(InvalidArgument, match=advice):
        last_iterate.process(**{"steps": 10, "step": 0.5, "noise": 1.0, **LOSS, **change})


def test_clipped_gradients_of_linear_models_are_accepted() -> None:
    cost = last_iterate.pnsgd(n=10, step=0.5, noise=1.0, clipped=True, linear_model=True, **LOSS)
    assert cost == last_iterate.pnsgd(n=10, step=0.5, noise=1.0, **LOSS)


def test_a_cost_is_stored_as_its_description_and_solved_again_when_read() -> None:
    cost = last_iterate.cyclic(
        n=100, batch=5, epochs=30, step=0.5, noise=0.2, strong_convexity=0.1, diameter=3.0, **LOSS
    )
    text = (2 * cost + Cost.gaussian(3.0, adjacency="replace-one")).to_json()
    assert '"mu"' not in text
    back = Cost.from_json(text)
    assert back == 2 * cost + Cost.gaussian(3.0, adjacency="replace-one")
    assert back.epsilon(1e-6) == (2 * cost + Cost.gaussian(3.0, adjacency="replace-one")).epsilon(1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"push": []},
        {"push": [[1, -1.0]]},
        {"noise": [[10, 0.0]]},
        {"noise": "much"},
        {"contraction": [[9, 1.0]]},
        {"contraction": [[2.5, 1.0]]},
        {"diameter": -1.0},
        {"name": 7},
        {"mu": 0.1},
    ],
)
def test_a_damaged_description_is_refused(change: dict) -> None:
    stored = last_iterate.pnsgd(n=10, step=0.5, noise=1.0, **LOSS).to_dict()
    stored["parts"][0].update(change)
    with pytest.raises(StorageError):
        Cost.from_dict(stored)


def test_explain_says_which_bound_won_and_why() -> None:
    shared = {"step": 0.5, "noise": 1.0, **LOSS}
    assert "iteration won" in str(last_iterate.pnsgd(n=10, position=1, **shared).explain(delta=1e-6))
    assert "composition won" in str(last_iterate.pnsgd(n=10, **shared).explain(delta=1e-6))
    bounded = last_iterate.noisy_gradient_descent(n=10, steps=10**5, diameter=0.5, **shared)
    words = str(bounded.explain(delta=1e-6))
    assert "iteration from the diameter won" in words
    assert "Amplified" not in str(Cost.gaussian(1.0).explain(delta=1e-6))


def test_costs_of_last_iterates_compose_like_all_others() -> None:
    cost = last_iterate.pnsgd(n=100, position=1, step=0.5, noise=1.0, **LOSS)
    assert (4 * cost).gdp() == pytest.approx(2 * cost.gdp(), rel=1e-9)
    total = cost + Cost.laplace(5.0, adjacency="replace-one")
    assert total.epsilon(1e-6) > cost.epsilon(1e-6)
    assert cost.tradeoff()(0.05) == pytest.approx(float(Cost.gaussian_dp(0.3).tradeoff()(0.05)), rel=1e-9)
    with pytest.raises(InvalidArgument):
        cost.with_adjacency("add-remove").sampled(rate=0.5)


def test_the_door_is_open_by_either_name() -> None:
    from discreet.last_iterate import pnsgd

    assert discreet.last_iterate.pnsgd is pnsgd
