"""Skip- and Stop-PNSGD: mixtures over the number of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Cost, InvalidArgument, last_iterate
from discreet.accounting import gaussian_dp
from discreet.accounting.leaves import Leaf
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.mixture import GaussianMixturePair
from discreet.accounting.renyi import epsilon as renyi_epsilon

LOSS = {"lipschitz": 1.0, "smoothness": 1.0, "step": 1.0}


@settings(max_examples=20)
@given(n=st.integers(1, 80), share=st.floats(0, 1), sigma=st.floats(0.5, 20), epsilon=st.floats(0, 3))
def test_stopping_costs_the_mean_over_all_lengths(n: int, share: float, sigma: float, epsilon: float) -> None:
    position = 1 + int(share * (n - 1))
    cost = last_iterate.stop_pnsgd(n=n, position=position, noise=sigma, **LOSS)
    mus = [2 / (sigma * math.sqrt(k)) for k in range(1, n - position + 2)]
    expected = math.fsum(gaussian_dp.delta_bounds(mu, epsilon)[1] for mu in mus) / n
    assert cost.delta(epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(n=st.integers(6, 5000), order=st.floats(1.01, 60), room=st.floats(1, 5))
def test_stopping_is_never_worse_than_theorem_26_where_it_applies(n: int, order: float, room: float) -> None:
    sigma = room * math.sqrt(2 * order * (order - 1))
    cost = last_iterate.stop_pnsgd(n=n, noise=max(sigma, 0.01), **LOSS)
    assert cost.rdp(order) <= 4 * order * math.log(n) / (n * max(sigma, 0.01) ** 2) * (1 + 1e-9)


def test_theorem_26_as_printed_is_too_small_for_few_records() -> None:
    # with one record nothing is random: the run is one Gaussian step, and ln(1) = 0 cannot be its cost
    cost = last_iterate.stop_pnsgd(n=1, noise=2.0, **LOSS)
    assert cost.gdp() == pytest.approx(1.0)
    assert cost.delta(1.0) == pytest.approx(gaussian_dp.delta_bounds(1.0, 1.0)[1], rel=1e-9)


def test_stopping_needs_no_condition_on_the_noise() -> None:
    cost = last_iterate.stop_pnsgd(n=1000, noise=0.2, **LOSS)
    assert 0 < cost.epsilon(1e-5) < Cost.gaussian_dp(10.0).epsilon(1e-5)


@settings(max_examples=20)
@given(n=st.integers(1, 500), share=st.floats(0, 1), epsilon=st.floats(0, 3))
def test_skipping_is_never_worse_than_not_skipping(n: int, share: float, epsilon: float) -> None:
    position = 1 + int(share * (n - 1))
    skipped = last_iterate.skip_pnsgd(n=n, position=position, noise=2.0, **LOSS)
    plain = last_iterate.pnsgd(n=n, position=position, noise=2.0, **LOSS)
    used = min(1.0, position / (n // 2 + 1))
    assert skipped.delta(epsilon) <= plain.delta(epsilon) * (1 + 1e-9)
    expected = used * gaussian_dp.delta_bounds(1 / math.sqrt(n + 1 - position), epsilon)[1]
    assert skipped.delta(epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_many_lengths_are_grouped_upwards_by_little() -> None:
    n, sigma = 5000, 20.0
    cost = 50 * last_iterate.stop_pnsgd(n=n, noise=sigma, **LOSS)
    mus = 2 / (sigma * np.sqrt(np.arange(1, n + 1)))
    exact = 50 * Cost(((_Whole(tuple([1 / n] * n), tuple(mus)), 1),))
    assert exact.epsilon(1e-6) <= cost.epsilon(1e-6) <= exact.epsilon(1e-6) * 1.001


@dataclass(frozen=True)
class _Whole(Leaf):
    """A mixture that is not grouped."""

    kind: ClassVar[str] = "test_whole_mixture"
    weights: tuple[float, ...]
    mus: tuple[float, ...]

    def pair(self) -> GaussianMixturePair:
        return GaussianMixturePair(self.weights, self.mus)


def test_the_contour_the_grid_and_renyi_agree_about_a_mixture() -> None:
    cost = 100 * last_iterate.stop_pnsgd(n=30, noise=10.0, **LOSS)
    contour, grid = cost.epsilon(1e-6, method="contour"), cost.epsilon(1e-6, method="grid")
    assert contour == pytest.approx(grid, rel=1e-5)
    assert contour < cost.epsilon(1e-6, method="renyi") < 1.3 * contour


def test_a_mixture_that_may_do_nothing_composes_on_the_grid() -> None:
    one = last_iterate.skip_pnsgd(n=100, position=10, noise=1.0, **LOSS)
    weight, mu = 10 / 51, 2 / math.sqrt(91)
    # three copies: the number of uses is binomial, and j uses are one Gaussian of mu sqrt(j)
    exact = sum(
        math.comb(3, j) * weight**j * (1 - weight) ** (3 - j) * gaussian_dp.delta_bounds(mu * math.sqrt(j), 0.3)[1]
        for j in range(1, 4)
    )
    found = (3 * one).delta(0.3)
    assert exact <= found <= exact * 1.001


@given(st.floats(-4, 6), st.floats(0.05, 3), st.floats(0.05, 2), st.floats(0.05, 0.9))
def test_transform_tails_and_profile_of_a_mixture_are_those_of_its_parts(
    power: float, first: float, second: float, weight: float
) -> None:
    low, high = min(first, second), max(first, second)
    rest = 0.5 * (1 - weight)
    pair = GaussianMixturePair((weight, rest), (high, low))
    value, error = pair.log_power_mean(np.array([complex(power, 0.7)]))
    b = complex(power, 0.7)
    exact = weight * np.exp(b * (b - 1) * high**2 / 2) + rest * np.exp(b * (b - 1) * low**2 / 2) + (1 - weight - rest)
    assert abs(np.exp(value[0]) - exact) <= (np.exp(error[0]) - 1) * abs(np.exp(value[0])) + 1e-13 * abs(exact)
    tails = pair.tails(np.array([-0.5, 0.0, 0.7]))
    assert tails.p_above + tails.p_below == pytest.approx(np.ones(3), abs=1e-12)
    assert tails.q_above + tails.q_below == pytest.approx(np.ones(3), abs=1e-12)
    delta = tails.p_above[2] - math.exp(0.7) * tails.q_above[2]
    low_delta, high_delta = pair.profile(0.7, Direction.FORWARD)
    assert low_delta - 1e-12 <= delta <= high_delta + 1e-12
    assert abs(exact) <= math.exp(pair.log_decay(power, np.array([0.7]))[0]) * (1 + 1e-12)


def test_far_from_the_real_axis_a_mixture_without_rest_still_has_a_bound() -> None:
    pair = GaussianMixturePair((0.5, 0.5), (1.0, 0.5))
    far = pair.log_decay(2.3, np.array([60.0, 1e4]))
    assert np.isfinite(far).all()
    assert (far < -400).all()


def test_k_tasks_on_one_data_set_cost_about_as_much_as_one_with_the_noise_of_theorem_32() -> None:
    n, epsilon, delta = 10_000, 0.5, 1e-6
    for k in (1, 100, n // 10):
        q = max(2 * k * math.log(n) / n, 2 * math.log(1 / delta))
        sigma = 4 * math.sqrt(q * math.log(1 / delta)) / epsilon
        total = k * last_iterate.stop_pnsgd(n=n, noise=sigma, **LOSS)
        assert total.epsilon(delta) < epsilon
        # the theorem's own route, Rényi at one order, is looser than the reading
        assert renyi_epsilon(total.rdp, delta) < epsilon


@pytest.mark.parametrize("function", [last_iterate.stop_pnsgd, last_iterate.skip_pnsgd])
def test_a_random_run_is_stored_and_read_back(function) -> None:
    cost = function(n=100, position=3, noise=2.0, strong_convexity=0.5, **LOSS)
    assert Cost.from_json(cost.to_json()) == cost
    assert cost.explain(delta=1e-6).amplification


@pytest.mark.parametrize("change", [{"position": 101}, {"position": 0}, {"noise": 0.0}, {"noise": 1e-9}, {"step": 3.0}])
def test_random_runs_refuse_what_is_out_of_range(change: dict) -> None:
    with pytest.raises(InvalidArgument):
        last_iterate.stop_pnsgd(**{"n": 100, "noise": 1.0, **LOSS, **change})
    with pytest.raises(InvalidArgument):
        last_iterate.skip_pnsgd(**{"n": 100, "noise": 1.0, **LOSS, **change})
