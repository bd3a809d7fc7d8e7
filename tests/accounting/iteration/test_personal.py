"""Everybody's cost at once agrees with each person's own, is never below it, and is worst where it should be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from discreet import Cost, InvalidArgument, last_iterate
from discreet.accounting import gaussian_dp
from discreet.accounting.iteration.personal import Blurred, log_delta_above

LOSS = {"lipschitz": 1.0, "smoothness": 1.0}
MAKERS = {
    "pnsgd": (last_iterate.pnsgd_by_position, {}),
    "pnsgd, strongly convex": (last_iterate.pnsgd_by_position, {"strong_convexity": 0.01}),
    "skip": (last_iterate.skip_pnsgd_by_position, {}),
    "stop": (last_iterate.stop_pnsgd_by_position, {}),
    "epochs": (last_iterate.multi_epoch_pnsgd_by_position, {"epochs": 7}),
    "epochs, strongly convex": (last_iterate.multi_epoch_pnsgd_by_position, {"epochs": 7, "strong_convexity": 0.02}),
    "pnsgd, bounded": (last_iterate.pnsgd_by_position, {"diameter": 0.7}),
    "epochs, bounded": (last_iterate.multi_epoch_pnsgd_by_position, {"epochs": 70, "diameter": 0.7}),
    "batches": (last_iterate.cyclic_by_position, {"epochs": 7, "noise": 0.5}),
    "batches, bounded": (last_iterate.cyclic_by_position, {"epochs": 70, "noise": 0.5, "diameter": 0.1}),
    "descent": (last_iterate.noisy_gradient_descent_by_position, {"steps": 30}),
    "process": (last_iterate.process_by_person, {}),
    "process, bounded": (last_iterate.process_by_person, {"diameter": 0.7, "strong_convexity": 0.01}),
}
EACH = pytest.mark.parametrize("which", MAKERS)


def everyone(which: str, n: int, **options):
    maker, extra = MAKERS[which]
    size = {"n": n}
    if maker is last_iterate.cyclic_by_position:
        size = {"n": n, "batch": max(1, n // 20)}
    if maker is last_iterate.process_by_person:  # forwards, then backwards
        size = {"members": np.concatenate([np.arange(1, n + 1), np.arange(n, 0, -1)])}
    return maker(**{**size, "step": 0.5, "noise": 3.0, **LOSS, **extra, **options})


@EACH
@pytest.mark.parametrize("n", [1, 2, 40, 20_000])
def test_everyone_at_once_is_never_below_each_person_alone_and_close(which: str, n: int) -> None:
    people = everyone(which, n)
    epsilons, deltas = people.epsilon(1e-6), people.delta(0.1)
    assert len(people) == len(epsilons) == n
    for position in sorted({1, 2, n // 3, n // 2, n - 1, n} & set(range(1, n + 1))):
        one = people.for_person(position)
        if which == "process, bounded":  # of which contraction is read for one person only
            one = Cost.gaussian_dp(one.gdp())
        alone = one.epsilon(1e-6)
        assert alone <= epsilons[position - 1] * (1 + 1e-9) + 1e-12
        assert epsilons[position - 1] <= alone * 1.003 + 1e-9
        assert one.delta(0.1) <= deltas[position - 1] * (1 + 1e-6) + 1e-12
        assert deltas[position - 1] <= one.delta(0.1) * 1.02 + 1e-12


@EACH
def test_the_worst_person_has_the_largest_epsilon(which: str) -> None:
    people = everyone(which, 100)
    epsilons = people.epsilon(1e-6)
    assert people.worst(delta=1e-6).epsilon(1e-6) == pytest.approx(epsilons.max(), rel=1e-3)
    first = {"stop": 1, "descent": 1, "batches": 96, "batches, bounded": 96, "process": 1, "process, bounded": 1}
    assert people.worst_position(1e-6) == first.get(which, 100)
    assert people.quantile(1.0, delta=1e-6) == epsilons.max()
    assert people.quantile(0.5, delta=1e-6) <= epsilons.max()


def test_half_of_the_people_in_a_long_run_are_hardly_seen() -> None:
    people = everyone("pnsgd", 1_000_000)
    assert people.quantile(0.5, delta=1e-6) < 0.01 < people.worst().epsilon(1e-6)


@given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=40), st.floats(0, 1))
def test_schedules_give_everyone_the_mu_of_their_own_process(steps: list[float], rho: float) -> None:
    n = len(steps)
    noise = 1 + np.arange(n) / 7
    people = last_iterate.pnsgd_by_position(n=n, step=steps, noise=noise, strong_convexity=rho, **LOSS)
    for position in range(1, n + 1):
        own = people.for_person(position).gdp()
        assert people.mu[position - 1] == pytest.approx(own, rel=1e-9, abs=1e-60)


@given(st.integers(1, 60), st.integers(1, 9), st.floats(0, 1), st.floats(0.05, 1.9))
def test_the_two_edges_of_several_epochs_are_the_hull(n: int, epochs: int, rho: float, step: float) -> None:
    people = last_iterate.multi_epoch_pnsgd_by_position(
        n=n, epochs=epochs, step=step, noise=1.0, strong_convexity=rho, **LOSS
    )
    for position in {1, 1 + n // 2, n}:
        own = people.for_person(position).gdp()
        assert people.mu[position - 1] == pytest.approx(own, rel=1e-9, abs=1e-40)


def test_members_may_be_numbers_lists_or_a_table() -> None:
    shared = {"step": 0.5, "noise": 3.0, "batch": 2, **LOSS}
    table = last_iterate.process_by_person(members=np.array([[1, 2], [3, 4], [1, 3], [2, 4]]), **shared)
    lists = last_iterate.process_by_person(members=[[1, 2], (4, 3), np.array([3, 1]), [4, 2]], **shared)
    assert (table.mu == lists.mu).all()
    quiet = last_iterate.process_by_person(members=[1, 0, 2, 0], step=0.5, noise=3.0, **LOSS)
    empty = last_iterate.process_by_person(members=[[1], [], [2], []], step=0.5, noise=3.0, **LOSS)
    assert (quiet.mu == empty.mu).all()
    assert quiet.for_person(2).gdp() == pytest.approx(2 / 3 / math.sqrt(2), rel=1e-9)


def test_records_that_are_never_used_cost_nothing() -> None:
    people = last_iterate.process_by_person(members=[1, 3], people=4, step=0.5, noise=3.0, **LOSS)
    assert len(people) == 4
    assert people.epsilon(1e-6)[[1, 3]].tolist() == [0.0, 0.0]
    assert people.for_person(4).epsilon(1e-9) == 0.0
    assert people.worst().gdp() == pytest.approx(2 / 3, rel=1e-9)


@pytest.mark.parametrize(
    ("members", "advice"),
    [
        ([[1, 1], [2, 3]], "twice"),
        ([1.5, 2.0], "whole numbers"),
        ([-1, 2], "whole numbers"),
        ([], "whole numbers"),
        ([0, 0], "numbered from 1"),
        ("ab", "whole numbers"),
        (7, "whole numbers"),
        ([[1, 2], 3], "whole numbers"),
        ([1, 9], "1 to 5"),
    ],
)
def test_members_that_make_no_sense_are_refused(members: object, advice: str) -> None:
    with pytest.raises(InvalidArgument, match=advice):
        last_iterate.process_by_person(members=members, people=5, step=0.5, noise=3.0, **LOSS)


@given(st.integers(0, 2**32), st.sampled_from([None, 0.3, 2.0]))
def test_everyone_has_the_mu_of_their_own_process(seed: int, diameter: float | None) -> None:
    draw = np.random.default_rng(seed)
    steps, people = int(draw.integers(1, 30)), 4
    members = [draw.permutation(people)[: draw.integers(people + 1)] + 1 for _ in range(steps)]
    members[0] = np.array([2])
    everyone = last_iterate.process_by_person(
        members=members,
        people=people,
        step=draw.uniform(0.1, 2.0, steps),
        noise=draw.uniform(0.5, 2.0, steps) if draw.random() < 0.7 else 1.0,
        batch=draw.integers(1, 9, steps),
        strong_convexity=draw.choice([0.0, 0.3]),
        diameter=diameter,
        **LOSS,
    )
    for person in range(1, people + 1):
        own = everyone.for_person(person)
        if own.parts:
            assert everyone.mu[person - 1] == pytest.approx(own.gdp(), rel=1e-9, abs=1e-60)


def test_where_steps_expand_nobody_is_below_their_own_process_and_the_bound_stays_useful() -> None:
    draw = np.random.default_rng(4)
    members = draw.integers(1, 40, 400)
    options = {"step": 0.2, "noise": 1.0, "lipschitz": 1.0, "smoothness": 1.0, "convex": False, "diameter": 0.3}
    everyone = last_iterate.process_by_person(members=members, people=40, **options)
    for person in (1, 11, 21):
        own = everyone.for_person(person).gdp()
        assert own * (1 - 1e-9) <= everyone.mu[person - 1] <= 1.05 * own


@given(st.integers(1, 300), st.floats(0.1, 5), st.floats(0.2, 3), st.sampled_from([1e-2, 1e-6, 1e-20]))
def test_contraction_for_everyone_is_the_closed_form_on_a_grid(
    steps: int, mu: float, ratio: float, delta: float
) -> None:
    (epsilon,) = Blurred(mu, ratio, np.array([float(steps)])).epsilon(delta)

    def log_delta(level: float) -> float:
        return sum(
            times * math.log(max(gaussian_dp.delta_bounds(m, level)[1], 1e-300))
            for times, m in ((1, mu), (steps, ratio))
        )

    assert log_delta(epsilon) <= math.log(delta) + 1e-6
    if epsilon > 1e-6:
        assert log_delta(epsilon / 1.0011) > math.log(delta) - 1e-6


@given(st.floats(-10, 3.5), st.floats(0, 8))
def test_the_quick_profile_is_above_the_exact_one_and_close(log_mu: float, score: float) -> None:
    mu = math.exp(log_mu)
    epsilon = mu * score
    exact = gaussian_dp.delta_bounds(mu, epsilon)[0]
    quick = float(np.exp(log_delta_above(np.array([mu]), np.array([epsilon])))[0])
    assert quick >= exact
    if epsilon / mu - mu / 2 > -5:
        assert quick <= exact * (1 + 1e-4)


def test_public_records_have_no_cost_and_make_the_others_cheap() -> None:
    people = last_iterate.pnsgd_by_position(n=1000, public=100, step=1.0, noise=1.0, **LOSS)
    assert len(people) == 900
    assert people.worst().gdp() == pytest.approx(2 / math.sqrt(101), rel=1e-9)
    with pytest.raises(InvalidArgument, match="1 to 900"):
        people.for_person(901)


@pytest.mark.parametrize("level", [-0.1, 1.5, math.nan])
def test_levels_out_of_range_are_refused(level: float) -> None:
    with pytest.raises(InvalidArgument):
        everyone("pnsgd", 10).epsilon(level)


def test_extreme_deltas_have_their_limits() -> None:
    people = everyone("pnsgd", 10)
    assert (people.epsilon(1.0) == 0).all()
    assert (people.epsilon(0.0) == math.inf).all()
    assert (people.epsilon(1e-250) > people.epsilon(1e-6)).all()


def test_too_little_noise_is_refused_for_everyone() -> None:
    with pytest.raises(InvalidArgument, match="protects nobody"):
        everyone("pnsgd", 10, noise=1e-6)


def test_the_picture_shows_epsilon_by_position(tmp_path) -> None:
    people = everyone("pnsgd", 500)
    ax = people.plot(delta=1e-5, path=tmp_path / "people.png")
    (line,) = ax.lines
    assert line.get_ydata() == pytest.approx(people.epsilon(1e-5)[np.asarray(line.get_xdata()) - 1])
    assert "1e-05" in ax.get_ylabel()
    assert (tmp_path / "people.png").stat().st_size > 1000
    plt.close("all")
