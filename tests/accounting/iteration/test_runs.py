"""Schedules as runs: nothing is lost, equal content is equal, and long ones are never spelled out in Python."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import InvalidArgument, last_iterate
from discreet.accounting.iteration.process import Process, merge
from discreet.accounting.iteration.runs import Runs, runs_of

levels = st.lists(st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=60)


@given(levels)
def test_runs_say_what_the_schedule_says(values: list[float]) -> None:
    runs = runs_of(np.array(values))
    assert np.repeat(runs.values, runs.counts).tolist() == [abs(value) for value in values]
    assert (np.diff(runs.values) != 0).all()
    assert runs.steps == len(values) == int(runs.ends[-1])
    assert runs == Runs.of("values", list(runs))
    assert hash(runs) == hash(Runs.of("values", list(runs)))
    assert runs != runs_of(np.array([*values, 7.0]))


def test_runs_cannot_be_written_to() -> None:
    runs = runs_of(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="read-only"):
        runs.values[0] = 5.0


def test_a_schedule_of_the_user_is_neither_kept_nor_locked() -> None:
    step = np.linspace(0.1, 1.0, 50)
    plan = last_iterate.describe(steps=50, step=step, noise=1.0, lipschitz=1.0, smoothness=1.0, touches=3)
    before = plan.mu
    step[:] = 0.5
    assert last_iterate.describe(steps=50, step=step, noise=1.0, lipschitz=1.0, smoothness=1.0, touches=3).mu != before
    assert plan == Process(plan.name, plan.contraction, plan.noise, plan.push)


@pytest.mark.parametrize(
    "rows", [[(0, 1.0)], [(1.5, 1.0)], [(1, math.nan)], [(1, -1.0)], [(1,)], 3, "ab", [(2**62, 1.0)] * 2, [("a", 1.0)]]
)
def test_rows_that_are_no_schedule_are_refused(rows: object) -> None:
    with pytest.raises(InvalidArgument, match="noise"):
        Runs.of("noise", rows)


def test_a_noise_of_zero_is_refused_and_a_push_of_zero_is_not() -> None:
    with pytest.raises(InvalidArgument, match="> 0"):
        Runs.of("noise", [(1, 0.0)], positive_values=True)
    assert len(Runs.of("push", [(1, 0.0)])) == 1


@given(st.integers(1, 100), st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.999999, 1.0, 1.01]), st.floats(0.1, 3))
def test_merged_steps_contract_at_least_and_blur_at_most_as_the_steps_do(k: int, c: float, nu: float) -> None:
    factor, noise = merge(np.array([k]), np.array([c]), np.array([nu]))
    exact = Fraction(c)
    assert Fraction(float(factor[0])) >= exact**k or float(exact**k) < 1e-300
    assert Fraction(float(noise[0])) ** 2 <= Fraction(nu) ** 2 * sum(exact ** (2 * i) for i in range(k))
    assert float(factor[0]) == pytest.approx(c**k, rel=1e-12)
    assert float(noise[0]) == pytest.approx(nu * math.sqrt(math.fsum(c ** (2 * i) for i in range(k))), rel=1e-11)


def test_many_different_steps_make_arrays_and_no_lists() -> None:
    steps = 200_000
    draw = np.random.default_rng(3)
    size, noise = draw.uniform(0.1, 1.0, steps), draw.uniform(1.0, 2.0, steps)
    touches = np.flatnonzero(draw.random(steps) < 1e-3) + 1
    cost = last_iterate.process(
        steps=steps, step=size, noise=noise, lipschitz=1, smoothness=1, strong_convexity=1e-4, touches=touches
    )
    process = cost.parts[0][0].process
    assert isinstance(process.noise.values, np.ndarray)
    assert len(process.noise) == steps
    # thinned to one step in a thousand, with what lies between merged by hand, it is the same process
    edges = np.concatenate([touches - 1, [steps]])
    factor = 1 - size * 1e-4
    rows = []
    for low, high in itertools.pairwise(edges):
        c, later = factor[low:high], np.concatenate([np.cumprod(factor[low + 1 : high][::-1])[::-1], [1.0]])
        rows.append((c.prod(), math.sqrt(((size * noise)[low:high] ** 2 * later**2).sum()), 2 * size[low] * later[0]))
    small = Process("thinned", *(runs_of(np.array(column)) for column in zip(*rows, strict=True)))
    assert process.mu == pytest.approx(small.mu, rel=1e-8)
