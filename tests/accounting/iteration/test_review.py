"""Attempts that once succeeded: costs of one place taken for those of everybody, and of runs for those of samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import Cost, last_iterate
from discreet.errors import InvalidArgument

ONE = {"lipschitz": 1.0, "smoothness": 0.5, "step": 1.0, "noise": 2.0}


def test_clipping_takes_the_strong_convexity_of_a_linear_model_away() -> None:
    with pytest.raises(InvalidArgument, match="flat where it is clipped"):
        last_iterate.pnsgd(n=50, position=1, strong_convexity=0.5, clipped=True, linear_model=True, **ONE)
    clipped = last_iterate.pnsgd(n=50, position=1, clipped=True, linear_model=True, **ONE)
    assert clipped.gdp() == pytest.approx(1 / math.sqrt(50))  # every step a translation


def test_a_group_holds_people_at_other_positions() -> None:
    with pytest.raises(InvalidArgument, match="people at others"):
        last_iterate.pnsgd(n=100, position=1, **ONE).grouped(2)
    with pytest.raises(InvalidArgument, match="people at others"):
        last_iterate.stop_pnsgd(n=100, position=1, **ONE).grouped(2)


@pytest.mark.parametrize("how", [{}, {"scheme": "balls_in_bins"}, {"adjacency": "replace-one"}])
def test_no_way_of_sampling_accepts_a_run(how: dict[str, str]) -> None:
    run = last_iterate.pnsgd(n=100, position=1, adjacency="add-remove", **ONE)
    for cost in (run, 2 * run, run + Cost.gaussian(1.0)):
        with pytest.raises(InvalidArgument, match="another run"):
            cost.sampled(0.1, **how)


@pytest.mark.parametrize("flag", [{"clipped": True}, {"convex": False}, {"linear_model": True}])
def test_given_contractions_do_not_silence_refusals(flag: dict[str, bool]) -> None:
    with pytest.raises(InvalidArgument, match="leave out"):
        last_iterate.process(steps=9, step=0.5, noise=1.0, lipschitz=1.0, contraction=1.0, **flag)


def test_a_certain_leak_is_read_and_not_a_crash() -> None:
    assert (Cost.approximate(0.0, 1.0) + Cost.gaussian(1.0)).delta(0.1) == 1.0
    assert (Cost.approximate(0.0, 1.0) + Cost.gaussian(1.0)).epsilon(0.5) == math.inf
    cost = last_iterate.sampled_projected_sgd(
        n=4, steps=15, rate=0.1, lipschitz=1, smoothness=1, step=0.6, noise=7.5, diameter=0.3, strong_convexity=0.1
    )
    assert cost.delta(0.1) <= 1.0


def test_without_a_position_nobody_pays_more_even_if_noise_grows() -> None:
    """Linear losses: the record at 1 shifts the mean by 2, the variance is 1 + 0.01. Its mu is 1.99, exactly."""
    run = {"n": 2, "lipschitz": 1, "smoothness": 1, "step": [1.0, 0.01], "noise": [1.0, 10.0]}
    assert last_iterate.pnsgd(**run).gdp() == pytest.approx(2 / math.sqrt(1.01))


def test_without_a_position_nobody_pays_more_even_if_steps_change() -> None:
    step = [1.289, 0.019, 0.045, 1.146, 0.019, 0.086, 1.429, 0.24, 0.059]
    run = {"n": 3, "batch": 1, "epochs": 3, "lipschitz": 1, "smoothness": 1, "step": step, "noise": 1.0}
    worst = max(last_iterate.cyclic(**run, position=place).gdp() for place in (1, 2, 3))
    assert last_iterate.cyclic(**run).gdp() == worst


BOUNDED = {
    "n": 6,
    "lipschitz": 1,
    "smoothness": 1,
    "step": [1.0, 0.1, 0.1, 0.1, 0.1, 0.1],
    "noise": [0.02, 20, 20, 20, 20, 9],
    "diameter": 1.0,
}
"""The first record has the largest mu, and contraction hides it; the last has a smaller one, and nothing follows."""


def test_the_worst_of_all_is_not_read_by_what_hides_one() -> None:
    first, last = (last_iterate.pnsgd(position=place, **BOUNDED) for place in (1, 6))
    assert first.gdp() > last.gdp()
    assert first.epsilon(1e-6) < 0.7 * last.epsilon(1e-6)
    for worst in (
        last_iterate.pnsgd(**BOUNDED),
        last_iterate.pnsgd_by_position(**BOUNDED).worst(1e-6),
        last_iterate.cyclic(batch=1, epochs=1, **BOUNDED),
        last_iterate.cyclic_by_position(batch=1, epochs=1, **BOUNDED).worst(1e-6),
    ):
        assert worst.epsilon(1e-6) >= last.epsilon(1e-6)
        assert worst.delta(0.5) >= last.delta(0.5)
        assert Cost.from_dict(worst.to_dict()) == worst
        assert Cost.from_dict(worst.to_dict()).epsilon(1e-6) == worst.epsilon(1e-6)
        assert "contraction" not in worst.explain(delta=1e-6).amplification


def test_the_worst_of_everyone_promises_enough_for_all() -> None:
    draw = np.random.default_rng(8)
    for diameter in (None, 0.3, 2.0):
        people = last_iterate.process_by_person(
            members=draw.integers(1, 9, 60),
            people=8,
            step=draw.uniform(0.1, 1.5, 60),
            noise=draw.uniform(0.5, 4.0, 60),
            lipschitz=1.0,
            smoothness=1.0,
            diameter=diameter,
        )
        worst = people.worst(1e-6).epsilon(1e-6)
        assert all(people.for_person(i).epsilon(1e-6) <= worst * (1 + 1e-8) for i in range(1, 9))
        assert worst == pytest.approx(people.epsilon(1e-6).max(), rel=1e-5)


def test_too_many_positions_to_try_are_refused_with_advice() -> None:
    steps = [1 / (t + 1) for t in range(1000)]
    with pytest.raises(InvalidArgument, match="not known in advance"):
        last_iterate.pnsgd(n=1000, lipschitz=1, smoothness=1, step=steps, noise=1.0)
    assert last_iterate.pnsgd(n=1000, position=1, lipschitz=1, smoothness=1, step=steps, noise=1.0).gdp() > 0


def test_two_runs_on_a_bounded_set_keep_their_plateau() -> None:
    run = {"n": 10_000, "steps": 10**7, "rate": 0.01, "lipschitz": 1, "smoothness": 1, "step": 0.1, "diameter": 0.1}
    a = last_iterate.sampled_projected_sgd(noise=0.02, **run)
    b = last_iterate.sampled_projected_sgd(noise=0.021, **run)
    assert (a + b).epsilon(1e-6) <= a.epsilon(5e-7) + b.epsilon(5e-7)


def test_what_is_left_out_of_a_run_is_said() -> None:
    run = last_iterate.pnsgd(n=10, position=1, adjacency="add-remove", **ONE)
    full = last_iterate.noisy_gradient_descent(n=10, steps=5, adjacency="add-remove", **ONE)
    for cost in (run, run + Cost.gaussian(2.0), run + full):
        assert "left out of every step" in cost.explain(delta=1e-6).neighbours
        assert "closes up when a record leaves it is not covered" in cost.explain(delta=1e-6).neighbours
    assert "divided by is public" in full.explain(delta=1e-6).neighbours
    assert Cost.gaussian(2.0).explain(delta=1e-6).neighbours == "one person more or fewer in the data"
    replaced = last_iterate.pnsgd(n=10, position=1, **ONE)
    assert "exchanged for anybody else's" in replaced.explain(delta=1e-6).neighbours


def test_a_list_that_closes_up_costs_more_than_a_zeroed_record() -> None:
    """Losses g_i w with g = (1, -1, 1, -1, ...): without the first record every later step turns its sign."""
    n, eta, noise = 40, 1.0, 2.0
    signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    zeroed, closed = signs.copy(), np.append(signs[1:], 0.0)
    zeroed[0] = 0.0
    # w_T = -eta sum g + noise: linear losses do not care where a gradient stands, strongly convex ones do
    c = 0.5
    weight = c ** np.arange(n - 1, -1, -1)
    deviation = eta * noise * math.sqrt((weight**2).sum())
    truth = {
        name: abs(eta * ((signs - other) * weight).sum()) / deviation for name, other in (("z", zeroed), ("c", closed))
    }
    run = {"n": n, "position": 1, "lipschitz": 1.0, "smoothness": 0.5, "strong_convexity": 0.5, "step": 1.0}
    bound = last_iterate.pnsgd(noise=noise, adjacency="add-remove", **run).gdp()
    assert truth["z"] <= bound * (1 + 1e-9)
    assert truth["c"] > 100 * bound


def test_explain_names_the_bound_that_was_read_with_the_numbers_of_the_others() -> None:
    shared = {"n": 10, "position": 5, "lipschitz": 1.0, "smoothness": 1.0, "step": 1.0, "noise": 2.0}
    cost = last_iterate.pnsgd(diameter=1.0, **shared)
    words = cost.explain(delta=1e-6).amplification
    assert "contraction won with epsilon = 0.35846" in words
    assert cost.epsilon(1e-6) == pytest.approx(0.35846, abs=1e-5)
    assert "4.8866 by composition" in words
    assert Cost.gaussian_dp(1.0).epsilon(1e-6) == pytest.approx(4.8866, abs=1e-4)
    assert "0.94052 by iteration from the diameter" in words
    assert Cost.gaussian_dp(cost.gdp()).epsilon(1e-6) == pytest.approx(0.94052, abs=1e-5)
    assert "iteration won" in last_iterate.pnsgd(**shared).explain(delta=1e-6).amplification
    assert "contraction won with delta" in cost.explain(epsilon=0.5).amplification


def test_the_winner_of_one_part_is_told_for_the_whole_cost() -> None:
    shared = {"lipschitz": 1.0, "smoothness": 1.0, "step": 1.0, "noise": 2.0}
    total = 3 * last_iterate.pnsgd(n=10, position=5, diameter=1.0, **shared) + last_iterate.stop_pnsgd(n=9, **shared)
    words = total.explain(delta=1e-6).amplification
    value = f"epsilon = {total.epsilon(1e-6):.3f}"
    assert words.count(value) == 2
    assert "pnsgd, record 5 of 10: contraction won" in words
    assert "stop_pnsgd, record 1 of 9: iteration won" in words


def test_a_composition_that_protects_nobody_is_named_without_a_number() -> None:
    run = last_iterate.noisy_gradient_descent(
        n=1, steps=10**5, lipschitz=1.0, smoothness=1.0, step=1.0, noise=1.0, strong_convexity=0.5
    )
    assert "no finite number by composition" in run.explain(delta=1e-6).amplification
