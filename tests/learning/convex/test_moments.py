"""Sums of products: exact in any order, and one record moves them by no more than the noise is made for."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import InvalidArgument
from discreet.learning import Goal
from discreet.learning.convex.moments import SecondMoment, SlopeSum, noise_for, second_moment
from discreet.learning.rows import RowLattice

GAUSSIAN = Goal(epsilon=1.0, delta=1e-6)
PURE = Goal(epsilon=1.0)


def slow(rows):
    """The judge: Python integers, one row after the other."""
    total = [[0] * rows.features for _ in range(rows.features)]
    for row in rows.steps:
        whole = [int(x) for x in row]
        for i, a in enumerate(whole):
            for j, b in enumerate(whole):
                total[i][j] += a * b
    return total


def test_the_second_moment_is_exact_across_blocks_of_rows():
    rng = np.random.default_rng(0)
    rows = RowLattice(1.0).place(rng.standard_normal((9001, 3)))
    assert second_moment(rows).tolist() == slow(rows)


def test_long_equal_rows_do_not_round():
    # 5000 rows of the largest square: 5000 * 2^40 would lose its last bits if floats of one product held it all
    rows = RowLattice(0.999).place(np.full((5000, 1), 0.999))
    assert second_moment(rows)[0, 0] == 5000 * int(rows.steps[0, 0]) ** 2


@pytest.mark.parametrize("goal", [GAUSSIAN, PURE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_record_moves_the_products_by_at_most_the_sensitivity_and_nearly_that(goal, adjacency):
    rng = np.random.default_rng(1)
    goal = Goal(epsilon=goal.epsilon, delta=goal.delta, adjacency=adjacency)
    release = SecondMoment(RowLattice(1.5), 4, goal)
    table = rng.standard_normal((40, 4)) * 3
    corners = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [9, 0, 0, 0], [0, 9, 0, 0.0]])
    table[:4] = corners * 2
    whole = release.exact(release.lattice.place(table))
    largest = Fraction(0)
    for i in range(40):
        if adjacency == "add-remove":
            others = [np.delete(table, i, 0)]
        else:
            others = [np.vstack([table[:i], corner[None] * 2, table[i + 1 :]]) for corner in corners]
        for other in others:
            change = [int(a - b) for a, b in zip(whole, release.exact(release.lattice.place(other)), strict=True)]
            bound = Fraction(release.mechanism.sensitivity)
            size = sum(map(abs, change)) ** 2 if goal.is_pure else sum(x * x for x in change)
            assert size <= bound**2
            largest = max(largest, Fraction(size) / bound**2)
    # replacing (1, 1, 1, 1) by (1, -1, 1, -1) is the worst for l2; no pair reaches twice the l1 bound
    assert largest > (0.98 if adjacency == "add-remove" or not goal.is_pure else 0.2)


@pytest.mark.parametrize("goal", [GAUSSIAN, PURE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_record_moves_the_sum_of_slopes_by_at_most_the_sensitivity_and_nearly_that(goal, adjacency):
    rng = np.random.default_rng(2)
    goal = Goal(epsilon=goal.epsilon, delta=goal.delta, adjacency=adjacency)
    release = SlopeSum(RowLattice(0.7), 3, 2.5, goal)
    table, numbers = rng.standard_normal((30, 3)) * 3, rng.uniform(-9, 9, 30)
    table[0], numbers[0] = [5, 5, 5], 9
    whole = release.lattice.place(table).pull(numbers, bound=2.5)
    largest = 0.0
    for i in range(30):
        if adjacency == "add-remove":
            other, rest = np.delete(table, i, 0), np.delete(numbers, i)
        else:
            other, rest = table.copy(), numbers.copy()
            rest[i] = -numbers[i]
        change = whole - release.lattice.place(other).pull(rest, bound=2.5)
        size = float(np.abs(change).sum() if goal.is_pure else math.sqrt(sum(int(x) ** 2 for x in change)))
        assert size <= release.mechanism.sensitivity
        largest = max(largest, size / release.mechanism.sensitivity)
    assert largest > 0.98


@pytest.mark.parametrize("goal", [GAUSSIAN, PURE], ids=["gaussian", "laplace"])
def test_releases_are_in_the_units_of_the_rows(goal):
    rng = np.random.default_rng(3)
    table = rng.uniform(-0.5, 0.5, (3000, 3))
    release = SecondMoment(RowLattice(1.0), 3, goal)
    noisy = release.release(release.lattice.place(table))
    one, beside = release.deviations
    assert np.array_equal(noisy, noisy.T)
    error = noisy - table.T @ table
    assert np.abs(np.diag(error)).max() < 25 * one  # e^-17 for Laplace noise
    assert np.abs(error).max() < 25 * max(one, beside)
    slopes = rng.uniform(-2, 2, 3000)
    total = SlopeSum(RowLattice(1.0), 3, 2.0, goal)
    noisy_sum = total.release(total.lattice.place(table), slopes)
    assert np.abs(noisy_sum - slopes @ table).max() < 25 * total.deviation + 0.2


def test_noise_has_the_deviation_that_is_stated_and_no_other():
    release = SecondMoment(RowLattice(1.0), 2, GAUSSIAN)
    rows = release.lattice.place(np.zeros((1, 2)))
    draws = np.array([release.release(rows) for _ in range(4000)])
    one, beside = release.deviations
    # 4000 draws: the sum of squares is chi-square; beyond 6.2 standard deviations with probability 1e-9
    for entry, deviation in ((draws[:, 0, 0], one), (draws[:, 1, 1], one), (draws[:, 0, 1], beside)):
        score = (np.sum(entry**2) / deviation**2 - 4000) / math.sqrt(2 * 4000)
        assert abs(score) < 6.2
        assert abs((np.sum(entry**2) / (0.8 * deviation) ** 2 - 4000) / math.sqrt(2 * 4000)) > 6.2


def test_the_width_covers_the_noise_of_most_draws():
    release = SecondMoment(RowLattice(1.0), 20, GAUSSIAN)
    rows = release.lattice.place(np.zeros((1, 20)))
    largest = [np.abs(np.linalg.eigvalsh(release.release(rows))).max() for _ in range(20)]
    assert 0.6 * release.width < np.mean(largest) < 1.2 * release.width


@given(epsilon=st.floats(0.05, 20), delta=st.sampled_from([0.0, 1e-9, 1e-5]), shares=st.floats(0.05, 0.9))
def test_a_divided_goal_is_met_and_spent(epsilon, delta, shares):
    goal = Goal(epsilon=epsilon, delta=delta)
    parts = goal.divided(shares, 1 - shares)
    first, second = (noise_for(part, l1=Fraction(3), l2=Fraction(2), dimension=2).cost for part in parts)
    assert goal.met_by(first + second)
    assert (first + second).epsilon(delta) > epsilon * (1 - 1e-5)


def test_shares_beyond_the_whole_are_refused():
    with pytest.raises(InvalidArgument, match="add up"):
        GAUSSIAN.divided(0.6, 0.5)


def test_too_many_columns_are_refused_before_a_matrix_is_made():
    with pytest.raises(InvalidArgument, match="at most 4000"):
        SecondMoment(RowLattice(1.0), 4001, GAUSSIAN)


def test_rows_of_another_lattice_are_refused():
    with pytest.raises(InvalidArgument, match="planned for"):
        SecondMoment(RowLattice(1.0), 2, GAUSSIAN).release(RowLattice(2.0).place(np.zeros((3, 2))))
