"""The spline accountant: brackets hold sums of residues, are narrow, and do not depend on how the work is split."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Cost
from discreet.accounting.discretise import tails_of
from discreet.accounting.pair import Direction, Pair
from discreet.accounting.pairs.window import WindowPair
from discreet.accounting.saddle import Unreachable
from discreet.accounting.smooth_step import pieces_of, smooth_step
from discreet.accounting.spline import SplineLoss
from discreet.accounting.window_step import WindowStep
from discreet.errors import CertificateError
from reference import convolution, exact
from reference.quadrature import use_precision

use_precision()

some = settings(max_examples=15, deadline=None)
scales = st.floats(0.05, 1000.0) | st.sampled_from([0.5, 1.0, 2.0, 2.5, 5.0])
releases = st.lists(st.tuples(scales, st.integers(1, 5)), min_size=1, max_size=3, unique_by=lambda item: item[0])


def spline(*parts: tuple[Pair, int]) -> SplineLoss:
    return SplineLoss(parts, Direction.FORWARD)


def laplaces(parts: list[tuple[float, int]]) -> SplineLoss:
    return spline(*((WindowPair(1 / b, with_atoms=True), times) for b, times in parts))


def holds(bracket: tuple[float, float], truth: arb) -> bool:
    return bool(arb(bracket[0]) <= truth) and bool(truth <= arb(bracket[1]))


# ------------------------------------------------------------------ brackets


@some
@given(parts=releases, share=st.floats(0.0, 0.999))
def test_the_bracket_of_laplace_releases_holds_the_sum_of_residues_and_is_narrow(
    parts: list[tuple[float, int]], share: float
) -> None:
    found = laplaces(parts)
    epsilon = share * found.top
    low, high = found.bounds(epsilon)
    assert holds((low, high), exact.laplaces(parts, arb(epsilon)))
    assert high - low <= 1e-9 * high / (1 - share)


@some
@given(b=st.floats(0.2, 50.0), count=st.integers(2, 60), share=st.floats(0.0, 0.99))
def test_the_bracket_of_equal_releases_holds_the_sum_of_residues(b: float, count: int, share: float) -> None:
    epsilon = share * count / b
    low, high = laplaces([(b, count)]).bounds(epsilon)
    assert holds((low, high), exact.laplace(b, count, arb(epsilon)))
    assert high - low <= 1e-7 * high


@some
@given(
    b=st.floats(0.3, 30.0),
    count=st.integers(1, 6),
    level=st.floats(0.05, 2.0),
    responses=st.integers(1, 12),
    options=st.integers(2, 5),
    share=st.floats(0.0, 0.95),
)
def test_finite_laws_beside_laplace_are_averaged_over(
    b: float, count: int, level: float, responses: int, options: int, share: float
) -> None:
    cost = count * Cost.laplace(b) + responses * Cost.randomized_response(level, options=options)
    epsilon = share * cost.pure_epsilon()
    reading = cost.reading(epsilon=epsilon)
    law = exact.randomized_response(level, responses, options)
    assert reading.method == "spline"
    assert holds((reading.lower, reading.upper), exact.laplaces_and_atoms([(b, count)], law, arb(epsilon)))
    assert reading.width <= 1e-9


@some
@given(parts=releases, log_delta=st.floats(-30, -0.5))
def test_epsilon_is_bracketed_to_ten_digits_however_small_delta(
    parts: list[tuple[float, int]], log_delta: float
) -> None:
    parts = [(b, times + 1) for b, times in parts]
    cost = sum((times * Cost.laplace(b) for b, times in parts), Cost.zero())
    delta = 10.0**log_delta
    low, high = cost.bounds(delta=delta)
    assert high - low <= 1e-10 * high
    assert low == 0 or exact.laplaces(parts, arb(low)) >= arb(delta)
    assert exact.laplaces(parts, arb(high)) <= arb(delta)


def test_seven_laplace_releases_at_a_delta_that_grids_do_not_hold() -> None:
    low, high = (7 * Cost.laplace(3.0)).bounds(delta=1e-30)
    assert 7 / 3 * (1 - 1e-12) < low <= high <= 7 / 3 * (1 + 1e-13)


# ------------------------------------------------------------------ the same number by other paths


@some
@given(b=st.floats(0.2, 50.0), first=st.integers(1, 5), second=st.integers(1, 5), share=st.floats(0.0, 0.98))
def test_equal_releases_told_apart_cost_the_same(b: float, first: int, second: int, share: float) -> None:
    """Told apart they go from knot to knot, together along the lattice."""
    pair = WindowPair(1 / b, with_atoms=True)
    together, apart = spline((pair, first + second)), spline((pair, first), (pair, second))
    epsilon = share * together.top
    one, other = together.bounds(epsilon), apart.bounds(epsilon)
    assert max(one[0], other[0]) <= min(one[1], other[1])
    assert max(one[1] - one[0], other[1] - other[0]) <= 1e-8 * one[1]


@pytest.mark.parametrize(
    "cost",
    [
        4 * Cost.laplace(1.0),
        2 * Cost.laplace(0.7) + 3 * Cost.laplace(2.0),
        3 * Cost.laplace(2.0) + 2 * Cost.approximate(0.5, 1e-8),
    ],
    ids=str,
)
def test_the_spline_lies_within_the_grid(cost: Cost) -> None:
    for asked in ({"delta": 1e-6}, {"epsilon": 1.0}):
        narrow, wide = cost.bounds(**asked, method="spline"), cost.bounds(**asked, method="grid")
        assert max(narrow[0], wide[0]) <= min(narrow[1], wide[1])
        assert narrow[1] - narrow[0] < wide[1] - wide[0]


@settings(max_examples=5, deadline=None)
@given(level=st.floats(0.05, 3.0), count=st.integers(2, 12), share=st.floats(0.0, 0.7))
def test_windows_without_atoms_agree_with_the_grid(level: float, count: int, share: float) -> None:
    pair = WindowPair(level, with_atoms=False)
    low, high = spline((pair, count)).bounds(share * level * count)
    assert 0 < low <= high
    assert high - low <= 1e-6 * high
    wide = (count * Cost.exponential_mechanism(level)).reading(epsilon=share * level * count, method="grid").upper
    assert low <= wide
    assert wide <= high * (1 + 1e-3)


@some
@given(level=st.floats(0.05, 3.0), x=st.floats(0.0, 0.99))
def test_one_window_is_its_closed_form(level: float, x: float) -> None:
    for with_atoms in (True, False):
        pair = WindowPair(level, with_atoms=with_atoms)
        low, high = spline((pair, 1)).bounds(x * level)
        truth = pair.profile(x * level, Direction.FORWARD)
        assert low <= truth[1]
        assert truth[0] <= high


# ------------------------------------------------------------------ Poisson sampling

DIRECTIONS = {"remove": Direction.FORWARD, "add": Direction.BACKWARD}


@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize(
    ("b", "rate", "count"),
    [
        (1.0, 0.1, 2),
        *(pytest.param(*row, marks=pytest.mark.slow) for row in ((3.0, 0.5, 12), (1.5, 0.95, 4), (20.0, 1e-3, 6))),
    ],
)
def test_the_bracket_of_sampled_laplace_releases_holds_the_reference(
    b: float, rate: float, count: int, name: str
) -> None:
    truth = convolution.profile(b, rate, name, count, order=64)
    with np.errstate(all="ignore"):
        found = SplineLoss([(WindowPair(1 / b, with_atoms=True, rate=rate), count)], DIRECTIONS[name])
    for share in (0.0, 0.01, 0.2, 0.5, 0.8, 0.97):
        low, high = found.bounds(share * found.top)
        assert holds((low, high), truth(arb(share * found.top)))
        assert high - low <= 1e-9 * high


@pytest.mark.parametrize("direction", Direction)
@some
@given(level=st.floats(0.02, 2.0), rate=st.floats(1e-4, 0.99), share=st.floats(0.0, 0.99))
def test_one_sampled_window_is_its_closed_form(level: float, rate: float, share: float, direction: Direction) -> None:
    pair = WindowPair(level, with_atoms=True, rate=rate)
    with np.errstate(all="ignore"):
        found = SplineLoss([(pair, 1)], direction)
    epsilon = share * found.top
    (low, high), truth = found.bounds(epsilon), pair.profile(epsilon, direction)
    assert low <= truth[1] * (1 + 1e-12)
    assert truth[0] * (1 - 1e-12) <= high
    assert high - low <= 1e-8 * high


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(("level", "rate"), [(0.3, 0.2), (1.0, 0.01), (2.0, 0.7)])
def test_the_density_of_a_sampled_window_adds_up_to_its_mass(level: float, rate: float, direction: Direction) -> None:
    """The matrices against the distribution functions of the pair, which know nothing of them."""
    pair = WindowPair(level, with_atoms=True, rate=rate)
    step = WindowStep.of(pair, direction)
    smooth = smooth_step(step, pieces_of(step, 2.0))
    count = len(smooth.heights)
    ones = np.zeros((count + 1, smooth.degree))
    ones[:, 0] = 1.0  # the constant 1: its convolution at the end of the window is the whole mass
    within, _ = smooth.apply(ones)
    mass = float(within[count - 1].sum())  # every T_j is 1 at the lower end of a piece
    edges = step.top - step.drop * np.linspace(1, 0, 20_001)[1:-1]
    above = tails_of(pair, direction, edges)[0]
    middles = (edges[:-1] + edges[1:]) / 2
    assert mass == pytest.approx(float((np.exp(-middles / 2) * -np.diff(above)).sum()), rel=1e-3)


@pytest.mark.parametrize(
    "cost",
    [
        3 * Cost.laplace(0.5).sampled(0.1),
        2 * Cost.laplace(1.0).sampled(0.2) + Cost.laplace(2.0) + 3 * Cost.randomized_response(0.3),
    ],
    ids=str,
)
def test_sampled_releases_beside_others_agree_with_the_grid(cost: Cost) -> None:
    narrow, wide = cost.reading(epsilon=0.3), cost.reading(epsilon=0.3, method="grid")
    assert narrow.method == "spline"
    assert max(narrow.lower, wide.lower) <= min(narrow.upper, wide.upper)
    assert narrow.width <= 1e-10


# ------------------------------------------------------------------ hard places


@pytest.mark.parametrize("parts", [[(1.0, 4)], [(1.0, 3), (2.5, 2)], [(0.1, 2), (3.0, 2)]], ids=str)
def test_at_the_knots_the_bracket_is_no_wider(parts: list[tuple[float, int]]) -> None:
    found = laplaces(parts)
    for k in range(6):
        epsilon = found.top - 2 * k / parts[-1][0]
        if 0 <= epsilon < found.top:
            low, high = found.bounds(epsilon)
            assert holds((low, high), exact.laplaces(parts, arb(epsilon)))
            assert high - low <= 1e-10 * high


def test_scales_that_almost_agree_make_pieces_that_are_almost_empty() -> None:
    parts = [(1.0, 3), (1.0 + 2**-50, 2), (2.0 - 2**-48, 2)]
    found = laplaces(parts)
    for share in (0.0, 0.3, 0.9):
        low, high = found.bounds(share * found.top)
        assert holds((low, high), exact.laplaces(parts, arb(share * found.top)))
        assert high - low <= 1e-9 * high


def test_scales_far_apart() -> None:
    parts = [(0.05, 2), (2000.0, 3)]
    found = laplaces(parts)
    for epsilon in (0.0, 1.0, 39.99, 40.0, 40.001):
        low, high = found.bounds(epsilon)
        assert holds((low, high), exact.laplaces(parts, arb(epsilon)))
        assert high - low <= 1e-8 * high


def test_beyond_the_largest_loss_nothing_is_lost() -> None:
    found = laplaces([(1.0, 3), (3.0, 1)])
    assert found.bounds(found.top * (1 + 1e-12)) == (0.0, 0.0)
    low, high = found.bounds(found.top)
    assert low == 0.0
    assert 0 < high < 1e-12


def test_tiny_costs_keep_their_digits() -> None:
    cost = 3 * Cost.laplace(1e9)
    low, high = cost.bounds(epsilon=1e-9)
    assert holds((low, high), exact.laplace(1e9, 3, arb(1e-9)))
    assert high - low <= 1e-9 * high


@pytest.mark.parametrize(
    "parts",
    [
        ((WindowPair(1.0, with_atoms=True), 10**9),),
        ((WindowPair(400.0, with_atoms=True), 3),),
        tuple((WindowPair(1 / math.sqrt(k + 1), with_atoms=True), 1) for k in range(40)),
    ],
    ids=["too many", "too large", "too many knots"],
)
def test_what_is_out_of_reach_is_refused(parts: tuple[tuple[Pair, int], ...]) -> None:
    with pytest.raises(Unreachable):
        SplineLoss(parts, Direction.FORWARD)


def test_asked_for_by_name_it_refuses_what_it_cannot_do() -> None:
    with pytest.raises(CertificateError, match="spline"):
        (3 * Cost.gaussian(1.0).sampled(0.1)).epsilon(1e-5, method="spline")
