"""Counts, sums and squares in groups: exact, with the sensitivity that the noise is made for."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.audit import check
from discreet.learning import Goal
from discreet.learning.rows import RowLattice
from discreet.learning.tallies import BOX, GroupTally, box_rows

SHARES = (0.2, 0.4, 0.4)


def changes(tally, one, other):
    """How far two data sets move every part, in l1 and in l2 squared."""
    left, right = tally.exact(*one), tally.exact(*other)
    for name in left:
        moved = [int(a - b) for a, b in zip(left[name].ravel(), right[name].ravel(), strict=True)]
        yield name, sum(map(abs, moved)), sum(x * x for x in moved)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["laplace", "gaussian"])
def test_one_record_moves_every_part_by_at_most_its_sensitivity_and_nearly_that(adjacency, delta):
    rng = np.random.default_rng(0)
    tally = GroupTally.of_box(3, 4, Goal(epsilon=1.0, delta=delta, adjacency=adjacency), SHARES)
    table, places = rng.uniform(-3, 3, (30, 4)), rng.integers(0, 3, 30)
    table[0], table[1], places[0], places[1] = 9, 0, 2, 2
    largest = dict.fromkeys(tally.mechanisms, 0.0)
    for i in range(30):
        neighbours = []
        if adjacency == "add-remove":
            neighbours.append((np.delete(table, i, 0), np.delete(places, i)))
        else:
            for row, place in ((-table[i], places[i]), (np.zeros(4), places[i]), (table[i], (places[i] + 1) % 3)):
                other, where = table.copy(), places.copy()
                other[i], where[i] = row, place
                neighbours.append((other, where))
        for other, where in neighbours:
            for name, first, second in changes(tally, (box_rows(table), places), (box_rows(other), where)):
                bound = Fraction(tally.mechanisms[name].sensitivity)
                size = Fraction(first) ** 2 if delta == 0 else Fraction(second)
                assert size <= bound**2
                largest[name] = max(largest[name], float(size / bound**2))
    assert all(value > 0.99 for value in largest.values())


def test_rows_in_a_ball_have_the_sensitivity_of_its_radius():
    rng = np.random.default_rng(1)
    lattice = RowLattice(2.5)
    tally = GroupTally(
        2, 3, Fraction(2 * lattice.reach), Fraction(lattice.reach), Goal(epsilon=1.0, delta=1e-6), (0.2, 0.8, 0.0)
    )
    steps = lattice.place(rng.standard_normal((200, 3)) * 5).steps.astype(np.int64)
    places = rng.integers(0, 2, 200)
    largest = max(
        second
        for i in range(200)
        for name, _, second in changes(tally, (steps, places), (np.delete(steps, i, 0), np.delete(places, i)))
        if name == "sums"
    )
    assert 0.999 * lattice.reach**2 < largest <= lattice.reach**2


def test_sums_are_exact_whatever_the_order_of_rows():
    rng = np.random.default_rng(2)
    rows, places = box_rows(rng.uniform(-1, 1, (5000, 2))), rng.integers(0, 4, 5000)
    tally = GroupTally.of_box(4, 2, Goal(epsilon=1.0), SHARES)
    order = rng.permutation(5000)
    one, other = tally.exact(rows, places), tally.exact(rows[order], places[order])
    for name, values in one.items():
        assert (values == other[name]).all()
    slow = [[sum(int(v) for v in rows[places == g, j]) for j in range(2)] for g in range(4)]
    assert one["sums"].tolist() == slow


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_tally_meets_its_goal_and_spends_it(adjacency, delta):
    goal = Goal(epsilon=0.7, delta=delta, adjacency=adjacency)
    first, *others = (release.cost for release in GroupTally.of_box(3, 5, goal, SHARES).releases)
    cost = sum(others, first)
    assert goal.met_by(cost)
    assert cost.epsilon(delta) > 0.7 * (1 - 1e-5)


def test_releases_estimate_what_they_are_named_after():
    rng = np.random.default_rng(3)
    scaled, places = rng.uniform(-1, 1, (40_000, 2)), rng.integers(0, 2, 40_000)
    tally = GroupTally.of_box(2, 2, Goal(epsilon=1.0, delta=1e-6), SHARES)
    noisy, sizes = tally.release(box_rows(scaled), places), tally.deviations
    for group in range(2):
        inside = scaled[places == group]
        assert abs(noisy.counts[group] - len(inside)) < 7 * sizes["counts"]
        assert np.abs(noisy.sums[group] - inside.sum(axis=0) * BOX).max() < 7 * sizes["sums"] + len(inside)
        squares = (inside**2).sum(axis=0) * BOX**2
        assert np.abs(noisy.squares[group] - squares).max() < 7 * sizes["squares"] + 2 * BOX * len(inside)


def test_a_public_number_of_records_is_used_and_not_released():
    tally = GroupTally.of_box(1, 2, Goal(epsilon=1.0, delta=1e-6), (0.0, 0.5, 0.5))
    assert set(tally.mechanisms) == {"sums", "squares"}
    noisy = tally.release(box_rows(np.zeros((50, 2))), np.zeros(50, dtype=np.intp), records=50)
    assert noisy.counts.tolist() == [50.0]
    with pytest.raises(InvalidArgument, match="records"):
        tally.release(box_rows(np.zeros((50, 2))), np.zeros(50, dtype=np.intp))


def _scored(goal):
    tally = GroupTally.of_box(2, 1, goal, SHARES)
    table, places = np.array([[0.5], [1.0]]), np.array([1, 0])

    def release(present):
        # the best way to tell whether the record in the first group is there: its log-likelihood ratio
        exact, score = tally.exact(box_rows(table[: 1 + present]), places[: 1 + present]), 0.0
        for name, mechanism in tally.mechanisms.items():
            score += float(mechanism.release(exact[name]).ravel()[0]) * mechanism.sensitivity / mechanism.variance
        return score

    first, *others = (part.cost for part in tally.releases)
    return sum(others, first), release


def test_an_audit_finds_nothing_and_would_find_a_third_of_the_noise():
    goal = Goal(epsilon=4.0, delta=1e-5)
    inputs = (False, True)
    cost, release = _scored(goal)
    assert check(release=release, cost=cost, inputs=inputs, draws=700, bad_values=[None]).passed
    _, too_little = _scored(Goal(mu=3 * goal.gaussian))
    assert not check(release=too_little, cost=cost, inputs=inputs, draws=700, bad_values=[None]).passed
