"""The convex program: the solution is optimal against a slow judge, and satisfies the constraints exactly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.iteration.program import lower_hull, solve

factors = st.floats(0.2, 1.2)
noises = st.floats(0.3, 3.0)
pushes = st.one_of(st.just(0.0), st.floats(0.1, 2.0))


def steps(most: int) -> st.SearchStrategy[list[tuple[float, float, float]]]:
    return st.lists(st.tuples(factors, noises, pushes), min_size=1, max_size=most)


def by_enumeration(c: np.ndarray, nu: np.ndarray, s: np.ndarray, start: int = 0, distance: float = 0.0) -> float:
    """The least energy over all ways to cut time into stretches of constant slope that keep every distance >= 0."""
    c, nu, s = c[start:], nu[start:], s[start:]
    weight = np.array([math.prod(c[t + 1 :]) for t in range(len(s))])
    x, y = np.cumsum((nu * weight) ** 2), np.cumsum(s * weight) + distance * math.prod(c)
    best = math.inf
    for size in range(len(s)):
        for cuts in itertools.combinations(range(len(s) - 1), size):
            energy, last_x, last_y, allowed = 0.0, 0.0, 0.0, True
            for low, high in itertools.pairwise([-1, *cuts, len(s) - 1]):
                slope = (y[high] - last_y) / (x[high] - last_x)
                inside = last_y + slope * (x[low + 1 : high] - last_x)
                allowed &= slope >= 0 and bool((inside <= y[low + 1 : high] * (1 + 1e-12)).all())
                energy += (y[high] - last_y) ** 2 / (x[high] - last_x)
                last_x, last_y = x[high], y[high]
            if allowed:
                best = min(best, energy)
    return math.sqrt(best)


def exact_energy(c: np.ndarray, nu: np.ndarray, s: np.ndarray, solution, diameter: float = math.inf) -> Fraction:
    """The energy of the shifts in exact arithmetic; fails if they break a constraint."""
    z = Fraction(diameter) if solution.start else Fraction(0)
    energy = Fraction(0)
    rows = list(zip(c.tolist(), nu.tolist(), s.tolist(), solution.shifts.tolist(), strict=True))[solution.start :]
    for factor, noise, push, shift in rows:
        if diameter < math.inf:
            z = min(z, Fraction(diameter))
        reach = Fraction(factor) * z + Fraction(push)
        taken = min(Fraction(shift), reach)
        z = reach - taken
        energy += (taken / Fraction(noise)) ** 2
    assert z == 0, "some distance is left at the end"
    return energy


@given(steps(7))
def test_the_solution_is_optimal_and_satisfies_the_constraints_exactly(rows: list[tuple[float, float, float]]) -> None:
    c, nu, s = map(np.array, zip(*rows, strict=True))
    solution = solve(c, nu, s)
    if not s.any():
        assert solution.mu == 0
        return
    assert solution.mu == pytest.approx(by_enumeration(c, nu, s), rel=1e-9)
    assert Fraction(solution.mu) ** 2 >= exact_energy(c, nu, s, solution)


@given(steps(6), st.floats(0.05, 3.0))
def test_on_a_bounded_set_the_best_start_is_found_and_every_constraint_holds(
    rows: list[tuple[float, float, float]], diameter: float
) -> None:
    c, nu, s = map(np.array, zip(*rows, strict=True))
    solution = solve(c, nu, s, diameter=diameter)
    if not s.any():
        return
    best = min(by_enumeration(c, nu, s), *(by_enumeration(c, nu, s, k, diameter) for k in range(len(s))))
    assert solution.mu <= best * (1 + 1e-9)
    assert Fraction(solution.mu) ** 2 >= exact_energy(c, nu, s, solution, diameter)


@given(st.integers(0, 2**32), st.integers(50, 250))
def test_long_random_schedules_satisfy_the_constraints_exactly(seed: int, length: int) -> None:
    draw = np.random.default_rng(seed)
    c = 1 - draw.random(length) * draw.choice([0.0, 1e-4, 0.1])
    nu, s = draw.random(length) + 0.1, draw.random(length) * (draw.random(length) < 0.2)
    s[0] = 1.0
    solution = solve(c, nu, s)
    assert Fraction(solution.mu) ** 2 >= exact_energy(c, nu, s, solution)
    assert solution.mu <= math.sqrt(((s / nu) ** 2).sum()) * (1 + 1e-9)


def test_a_solver_that_took_a_little_less_would_be_caught() -> None:
    c, nu, s = np.full(9, 0.9), np.ones(9), np.ones(9)
    solution = solve(c, nu, s)
    assert Fraction(solution.mu * (1 - 1e-11)) ** 2 < exact_energy(c, nu, s, solution)


@pytest.mark.parametrize("c", [0.5, 0.9, 0.9999, 1.0])
@pytest.mark.parametrize("length", [1, 7, 1000, 100_000])
def test_one_push_at_the_start_has_its_closed_form(c: float, length: int) -> None:
    s = np.zeros(length)
    s[0] = 1.0
    shrunk, total = c ** (length - 1), length if c == 1 else (1 - c ** (2 * length)) / (1 - c * c)
    found = solve(np.full(length, c), np.full(length, 2.0), s).mu
    if shrunk > 1e-90:
        assert found == pytest.approx(shrunk / math.sqrt(total) / 2, rel=1e-9)
    else:
        assert 0 < found <= 1e-80


@pytest.mark.parametrize("c", [0.5, 0.9, 0.9999])
@pytest.mark.parametrize("length", [1, 7, 1000, 100_000])
def test_equal_pushes_at_every_step_have_their_closed_form(c: float, length: int) -> None:
    ones = np.ones(length)
    expected = math.sqrt((1 - c**length) / (1 + c**length) * (1 + c) / (1 - c))
    assert solve(c * ones, ones, ones).mu == pytest.approx(expected, rel=1e-9)


def test_a_step_that_forgets_everything_leaves_only_what_comes_after_it() -> None:
    c, ones = np.array([1.0, 1.0, 0.0, 1.0]), np.ones(4)
    assert solve(c, ones, np.array([5.0, 5.0, 0.0, 0.0])).mu <= 1e-90
    assert solve(c, ones, np.array([5.0, 5.0, 1.0, 0.0])).mu == pytest.approx(math.sqrt(0.5), rel=1e-12)


def test_expanding_steps_beyond_the_range_of_floats_are_composed() -> None:
    ones = np.ones(20_000)
    assert solve(1.1 * ones, ones, ones).mu == pytest.approx(math.sqrt(20_000), rel=1e-9)
    late = solve(1.1 * ones, ones, ones, diameter=2.0)
    assert late.mu < 4
    assert late.start > 19_900


def test_the_diameter_gives_a_plateau_of_four_times_the_square_root() -> None:
    # c = 1: the best m steps have (D + m)^2 / m, least at m = D
    ones = np.ones(100_000)
    solution = solve(ones, ones, ones, diameter=100.0)
    assert solution.mu == pytest.approx(20.0, rel=1e-9)
    assert len(ones) - solution.start == 100


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=2, max_size=300))
def test_the_hull_is_convex_and_below_all_points(rows: list[tuple[float, float]]) -> None:
    x, y = np.cumsum([dx for dx, _ in rows]), np.cumsum([dy for _, dy in rows])
    hull = lower_hull(x, y)
    assert hull[0] == 0
    assert hull[-1] == len(x) - 1
    slopes = np.diff(y[hull]) / np.diff(x[hull])
    assert (np.diff(slopes) > -1e-9).all()
    assert (np.interp(x, x[hull], y[hull]) <= y + 1e-9).all()


def test_a_spiral_of_points_is_finished_one_by_one() -> None:
    # a convex curve with a bump at its end that eats it up corner by corner, one in each round
    x = np.arange(2000.0)
    y = np.append((x[:-1] / 100) ** 2, 0.0)
    assert lower_hull(x, y).tolist() == [0, 1999]
