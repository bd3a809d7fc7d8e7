"""Many small programs side by side: each has the answer of the one that is solved alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.iteration.crowd import mu_of_epochs, mu_of_uses, repeated, solve_rows, stretches
from discreet.accounting.iteration.process import Process
from discreet.accounting.iteration.program import solve
from discreet.accounting.iteration.runs import Runs, runs_of


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 5), st.sampled_from([0.2, 1.0, math.inf]))
def test_rows_have_the_mu_of_programs_that_are_solved_one_by_one(
    seed: int, steps: int, people: int, diameter: float
) -> None:
    draw = np.random.default_rng(seed)
    c = draw.choice([0.0, 0.5, 0.9, 1.0, 1.1], (steps, people))
    nu = draw.uniform(0.2, 2.0, (steps, people))
    s = draw.uniform(0.1, 2.0, (steps, people)) * (draw.random((steps, people)) < 0.7)
    s[0] = 1.0
    found = solve_rows(c, nu, s, diameter=diameter)
    for i in range(people):
        alone = solve(c[:, i], nu[:, i], s[:, i], diameter=math.inf).mu
        if diameter == math.inf:
            assert found[i] == pytest.approx(alone, rel=1e-9)
        else:
            assert found[i] <= alone * (1 + 1e-9)


@given(st.integers(0, 2**32), st.integers(1, 70))
def test_stretches_contract_at_least_and_blur_at_most_as_their_steps_do(seed: int, steps: int) -> None:
    draw = np.random.default_rng(seed)
    factor, noise = draw.uniform(0.3, 1.2, steps), draw.uniform(0.1, 2.0, steps)
    low = draw.integers(0, steps + 1, 9)
    high = np.array([draw.integers(start, steps + 1) for start in low])
    c, nu = stretches(factor, noise, low, high)
    for i in range(9):
        product, variance = Fraction(1), Fraction(0)
        for t in range(low[i], high[i]):
            product *= Fraction(factor[t])
            variance = variance * Fraction(factor[t]) ** 2 + Fraction(noise[t]) ** 2
        assert Fraction(c[i]) >= product
        assert Fraction(nu[i]) ** 2 <= variance
        assert c[i] == pytest.approx(float(product), rel=1e-12)
        assert nu[i] == pytest.approx(math.sqrt(variance), rel=1e-12)


@given(st.sampled_from([0.0, 0.4, 0.9, 0.9999, 1.0]), st.integers(1, 60), st.floats(0.0, 3.0))
def test_equal_steps_with_a_push_are_one_step(c: float, times: int, distance: float) -> None:
    """Whatever distance comes in, and however much of it is to be taken off, no corner is inside."""
    one = repeated(c, 0.7, 0.3, np.array([times]))
    merged = solve_rows(*(column[None] for column in one), start=distance)[0]
    ones = np.ones((times, 1))
    assert merged == pytest.approx(solve_rows(c * ones, 0.7 * ones, 0.3 * ones, start=distance)[0], rel=1e-9)


@given(
    st.integers(1, 9),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    st.sampled_from([None, 0.1, 1.0, 10.0]),
)
def test_passes_have_the_mu_of_the_whole_process(stride: int, epochs: int, c: float, diameter: float | None) -> None:
    tails = np.arange(stride, 0, -1)
    found = mu_of_epochs(factor=c, noise=0.8, push=0.5, stride=stride, epochs=epochs, tails=tails, diameter=diameter)
    for tail, mu in zip(tails.tolist(), found.tolist(), strict=True):
        push = np.zeros(stride * epochs)
        push[stride - tail :: stride] = 0.5
        steps = stride * epochs
        whole = Process("laps", Runs.same(steps, c), Runs.same(steps, 0.8), runs_of(push), diameter)
        assert mu == pytest.approx(max(whole.mu, 1e-100), rel=1e-9, abs=1e-60)


def test_many_uses_on_a_bounded_set_are_within_a_few_percent_of_the_best_start() -> None:
    draw = np.random.default_rng(2)
    steps, k, people = 6000, 300, 80
    factor, noise, push = 1 - 0.01 * draw.random(steps), draw.uniform(0.5, 1, steps), draw.uniform(0.05, 0.1, steps)
    uses = np.stack([np.sort(draw.choice(steps, k, replace=False)) for _ in range(people)], axis=1)
    found = mu_of_uses(factor, noise, push, uses, steps=steps, diameter=0.4)
    for i in (0, 40):
        touched = np.zeros(steps)
        touched[uses[:, i]] = push[uses[:, i]]
        own = Process("uses", runs_of(factor), runs_of(noise), runs_of(touched), 0.4).mu
        assert own * (1 - 1e-9) <= found[i] <= 1.02 * own


def test_a_last_step_without_noise_hides_nothing() -> None:
    one = np.ones((1, 1))
    assert solve_rows(one, 0 * one, one)[0] == math.inf
    assert solve_rows(np.ones((2, 1)), np.array([[0.0], [2.0]]), np.array([[1.0], [0.0]]))[0] == pytest.approx(0.5)
