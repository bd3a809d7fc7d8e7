"""Rows on their lattice: sums that are exact, in any order, and change by no more than they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.learning.rows import PARTS, RowLattice, products, squared_lengths


def table(rng, n, d, spread=1.0):
    return rng.standard_normal((n, d)) * spread


@given(seed=st.integers(0, 2**32), radius=st.floats(1e-6, 1e6), spread=st.sampled_from([1e-3, 1.0, 1e3, 1e30]))
def test_no_row_is_longer_than_the_radius_in_whole_numbers(seed, radius, spread):
    rows = RowLattice(radius).place(table(np.random.default_rng(seed), 50, 7, spread * radius))
    assert (rows.steps == np.round(rows.steps)).all()
    exact = [sum(int(x) ** 2 for x in row) for row in rows.steps]
    assert max(exact) <= rows.lattice.reach**2
    assert exact == squared_lengths(rows.steps).tolist()
    assert rows.lattice.reach * rows.lattice.step <= radius


def test_rows_within_the_radius_keep_their_values_to_a_step():
    inside = table(np.random.default_rng(1), 100, 5, 0.1)
    rows = RowLattice(10.0).place(inside)
    assert np.abs(rows.values() - inside).max() < rows.lattice.step


def test_a_row_of_three_thousand_columns_is_bounded_too():
    rows = RowLattice(1.0).place(table(np.random.default_rng(2), 3, 3000, 100.0))
    assert all(sum(int(x) ** 2 for x in row) <= rows.lattice.reach**2 for row in rows.steps)


@given(seed=st.integers(0, 2**32))
def test_margins_are_the_exact_products_of_whole_numbers(seed):
    rng = np.random.default_rng(seed)
    rows = RowLattice(3.0).place(table(rng, 20, 9))
    weights = rng.standard_normal(9) * 10.0 ** rng.integers(-9, 9)
    shuffled = rng.permutation(20)
    margins = rows.margins(weights)
    assert margins == pytest.approx(rows.values() @ weights, rel=1e-8, abs=1e-8 * np.linalg.norm(weights))
    again = RowLattice(3.0).place(rows.values()[shuffled]).margins(weights)
    assert (again == margins[shuffled]).all()  # bit for bit
    for i in range(20):  # a row's margin does not depend on how many others there are
        alone = RowLattice(3.0).place(rows.values()[[i]]).margins(weights)
        assert alone[0] == margins[i]


@given(seed=st.integers(0, 2**32), outputs=st.sampled_from([None, 3]))
def test_one_record_changes_the_pull_by_at_most_what_is_said(seed, outputs):
    rng = np.random.default_rng(seed)
    values = table(rng, 30, 6, 5.0)
    slopes = rng.standard_normal((30,) if outputs is None else (30, outputs)) * 10  # most are over the bound
    bound = 1.5
    whole = RowLattice(2.0).place(values).pull(slopes, bound=bound)
    for i in (0, 17):
        rest = RowLattice(2.0).place(np.delete(values, i, 0)).pull(np.delete(slopes, i, 0), bound=bound)
        change = [int(x) for x in (whole - rest).ravel()]
        assert sum(x**2 for x in change) <= (PARTS * RowLattice(2.0).reach) ** 2


def test_the_pull_of_many_rows_is_added_without_rounding():
    rng = np.random.default_rng(3)
    n = (1 << 16) + 1000  # more than one block, all rows and slopes at their largest
    values = np.full((n, 1), 7.9999)
    rows = RowLattice(7.9999).place(values)
    pulled = rows.pull(np.full(n, 1.0), bound=1.0)
    assert int(pulled[0]) == n * PARTS * int(rows.steps[0, 0])
    signs = rng.choice([-1.0, 1.0], n)
    assert int(rows.pull(signs, bound=1.0)[0]) == int(signs.sum()) * PARTS * int(rows.steps[0, 0])


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf"), 1e-200])
def test_a_radius_that_is_none_is_refused(radius):
    with pytest.raises(InvalidArgument, match="row_norm"):
        RowLattice(radius)


@pytest.mark.parametrize("radius", [1e-100, 1e-3, 1.0, 1e100])
def test_no_finite_number_is_too_large_to_be_shortened(radius):
    largest = np.finfo(float).max
    lattice = RowLattice(radius)
    table = np.array([[largest, 1.0], [-largest, largest], [largest, radius], [1e300, -1e200]])
    steps = lattice.place(table).steps
    assert np.isfinite(steps).all()
    assert all(sum(int(x) ** 2 for x in row) <= lattice.reach**2 for row in steps)
    assert (np.abs(steps).max(axis=1) > 0.5 * lattice.reach).all()


@given(seed=st.integers(0, 2**32), n=st.integers(1, 40), outputs=st.sampled_from([(), (1,), (3,)]))
def test_the_product_of_a_row_does_not_depend_on_other_rows(seed, n, outputs):
    rng = np.random.default_rng(seed)
    rows, weights = table(rng, n, 13), rng.standard_normal((13, *outputs))
    together = products(rows, weights)
    assert np.allclose(together, rows @ weights)
    alone = np.concatenate([products(rows[i : i + 1], weights) for i in range(n)])
    assert (together == alone).all()
    assert (products(rows[1:], weights) == together[1:]).all()


def test_products_that_overflow_stay_in_their_row():
    rows = np.array([[1.7e308, 1.7e308], [1.0, 2.0]])
    assert products(rows, np.array([2.0, -3.0]))[1] == -4.0
