"""The minimiser of a tilted objective: exact laws on a line stay within the Gaussian privacy that is claimed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from discreet.learning.convex.tilted import Shape, gaussian_privacy, largest_ratio, profile, profile_cost
from learning.convex import flux

ONE, TWO = Shape(corners=1, is_line=True), Shape(corners=2, is_line=True)
GRID = np.linspace(-12.0, 12.0, 60_001)


def attained(with_it, without):
    """The largest Phi^-1(detection) - Phi^-1(false alarm) over all likelihood-ratio tests of two lists of masses.

    Tests whose errors are below 1e-7 are left out: sums over a grid are not that good.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.nan_to_num(without / with_it, nan=np.inf))
    detection, alarm = np.cumsum(with_it[order]), np.cumsum(without[order])
    known = (np.minimum(detection, alarm) > 1e-7) & (np.maximum(detection, alarm) < 1 - 1e-7)
    return float((ndtri(detection[known]) - ndtri(alarm[known])).max())


def shifted_and_stretched(ratio, offset, start, low):
    """Masses of u ~ N(0, 1), and of u with u + t(u) ~ N(0, 1): t falls from `ratio` to `low` from `start` on."""
    fall = -math.expm1(-offset)
    shift = np.clip(ratio - fall * (GRID - start), low, ratio)
    return np.diff(ndtr(GRID)), np.diff(ndtr(GRID + shift))


@pytest.mark.parametrize(("shape", "low"), [(ONE, 0.0), (TWO, -1.0)], ids=["one sign", "two signs"])
@pytest.mark.parametrize("relative", [0.05, 0.2, 0.4, 1.0, 3.0])
def test_no_shift_that_stretches_reveals_more_than_is_claimed(shape, low, relative):
    # every such pair is that of a record with a piecewise quadratic loss
    for ratio in (0.1, 0.5, 1.5):
        offset = math.log1p(relative * ratio)
        claimed = gaussian_privacy(ratio, offset=offset, shape=shape)
        found = max(
            attained(*shifted_and_stretched(ratio, offset, start, low * ratio)) for start in np.arange(-6.0, 5.1, 0.5)
        )
        assert found <= claimed + 1e-6
        assert found >= ratio - 1e-6  # the shift alone is reached
        if relative >= 1:
            assert found > 1.02 * ratio  # and the stretch is no fiction


@pytest.mark.parametrize("shape", [ONE, TWO], ids=["one sign", "two signs"])
@pytest.mark.parametrize("relative", [0.1, 0.3, 0.45, 0.55, 1.5])
def test_far_out_where_a_falling_shift_helps_most_intervals_stay_within_the_claim(shape, relative):
    # in logarithms, down to probabilities of 1e-190: at 0.45 the worst interval lies about seven deviations out
    for ratio in (0.05, 1.0):
        offset = math.log1p(relative * ratio)
        fall, low = -math.expm1(-offset), 0.0 if shape.corners == 1 else -ratio
        left = np.linspace(-3.0, 28.0, 500)[:, None]
        length = np.geomspace(1e-3, (ratio - low) / fall + 20, 400)
        right, shift = left + length, np.maximum(low, ratio - fall * length)
        detection = ndtri_exp(log_mass(left, right))
        found = detection - ndtri_exp(log_mass(left + ratio, right + shift))
        largest = float(found[np.isfinite(found)].max())
        assert largest <= gaussian_privacy(ratio, offset=offset, shape=shape) * (1 + 1e-9)
        assert largest > ratio * (1 + 0.02 * min(relative, 1.0) ** 2)  # more than the shift alone


def log_mass(left, right):
    """ln P(left < Z < right), to the right of the centre."""
    near, far = log_ndtr(-left), log_ndtr(-right)
    return near + np.log1p(-np.exp(np.minimum(far - near, -1e-16)))


def minimiser(records, slope, *, ridge, sigma, places):
    """The masses of the minimiser between places, for records (x, y) on the line: -b is the gradient there."""
    total = ridge * places
    for x, y in records:
        total = total + x * slope(x * places, y)
    return np.diff(ndtr(total / sigma))


def logistic(margins, target):
    return 1 / (1 + np.exp(-margins)) - target


def huber(margins, target):
    return np.clip(margins - target, -1.0, 1.0)


@pytest.mark.parametrize(("slope", "bend", "shape", "last"), [(logistic, 0.25, ONE, 0), (huber, 1.0, TWO, 3)])
@pytest.mark.parametrize("ridge", [0.3, 2.0, 20.0])
def test_the_minimiser_on_the_line_is_within_its_gaussian_privacy_and_not_far_below(slope, bend, shape, last, ridge):
    nearest = 0.0
    for sigma in (1.0, 4.0):
        reach = (60 + 9 * sigma) / ridge
        places = np.linspace(-reach, reach, 100_001)
        claimed = gaussian_privacy(1 / sigma, offset=math.log1p(bend / ridge), shape=shape)
        for rest in ([], [(1.0, 0)], [(-1.0, 1), (0.3, 0)], [(1.0, 0)] * 40):
            for record in ((1.0, 1), (-1.0, 1), (0.5, last)):
                law = [
                    minimiser(records, slope, ridge=ridge, sigma=sigma, places=places)
                    for records in ([*rest, record], rest)
                ]
                assert all(masses.sum() == pytest.approx(1.0, abs=1e-9) for masses in law)
                found = attained(*law)
                assert found == pytest.approx(attained(law[1], law[0]), abs=2e-3)  # one number for both orders
                assert found <= claimed + 1e-6
                nearest = max(nearest, found / claimed)
            # a replaced record is two such changes
            law = [
                minimiser([*rest, record], slope, ridge=ridge, sigma=sigma, places=places)
                for record in ((1.0, 1), (-1.0, 1))
            ]
            assert attained(*law) <= 2 * claimed + 1e-6
    assert nearest > (0.75 if ridge >= 2 else 0.4)  # noise that is a quarter less would not do


@pytest.mark.parametrize("seed", range(3))
def test_in_three_dimensions_no_likelihood_ratio_test_does_better(seed):
    # conditional on the noise across the row the law is one on a line: the test statistic is the loss itself
    rng = np.random.default_rng(seed)
    draws, ridge, sigma = 10_000, 2.0, 1.5
    row = np.array([1.0, 0.0, 0.0])  # forty such rows of the other label make its slope steep
    table = np.vstack([rng.standard_normal((6, 3)) / 2, np.tile(row, (40, 1))])
    labels = np.append(rng.integers(0, 2, 6), np.zeros(40))

    def minima(rows, targets):
        noise = sigma * rng.standard_normal((draws, 3))
        weights = np.zeros((draws, 3))
        for _ in range(15):  # Newton's method, all draws at once
            p = 1 / (1 + np.exp(-weights @ rows.T))
            gradient = (p - targets) @ rows + ridge * weights + noise
            bends = np.einsum("ki,kj,nk->nij", rows, rows, p * (1 - p)) + ridge * np.eye(3)
            weights = weights - np.linalg.solve(bends, gradient[..., None])[..., 0]
        return weights

    def loss(weights):
        p = 1 / (1 + np.exp(-weights @ table.T))
        gradient = (p - labels) @ table + ridge * weights
        bends = np.einsum("ki,kj,nk->nij", table, table, p * (1 - p)) + ridge * np.eye(3)
        q = 1 / (1 + np.exp(-weights @ row))
        more = gradient + (q - 1)[:, None] * row
        stretched = bends + (q * (1 - q))[:, None, None] * np.outer(row, row)
        shift = (np.sum(gradient**2, 1) - np.sum(more**2, 1)) / (2 * sigma**2)
        return shift + np.linalg.slogdet(stretched)[1] - np.linalg.slogdet(bends)[1]

    absent, present = loss(minima(table, labels)), loss(minima(np.vstack([table, row]), np.append(labels, 1)))
    mu = gaussian_privacy(1 / sigma, offset=math.log1p(0.25 / ridge), shape=ONE)
    margin = 3 / math.sqrt(draws)  # six standard errors: both error rates below 1e-8
    for level in np.quantile(absent, [0.02, 0.1, 0.3, 0.5, 0.8, 0.95]):
        alarm, detection = np.mean(absent > level), np.mean(present > level)
        assert detection <= ndtr(ndtri(min(1.0, alarm + margin)) + mu) + margin
    # a claim of half of it is refuted by the same draws
    median = np.median(absent)
    assert np.mean(present > median) > ndtr(ndtri(0.5 + margin) + mu / 2) + margin


def test_the_constants_are_proved_at_the_steepest_and_the_flattest_field():
    (one, most_one), (two, most_two) = ONE.constants, TWO.constants
    assert flux.one_sided(most_one, one * 0.52**2)
    assert flux.two_sided(most_two, two * 0.43**2)
    # a bound that cannot hold is not proved
    assert not flux.one_sided(most_one, 0.08 * most_one**2, cells=200)
    assert not flux.two_sided(most_two, 0.3 * most_two**2, cells=200)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "proved", "factor"), [(ONE, flux.one_sided, 1.08), (TWO, flux.two_sided, 1.05)])
def test_the_constants_are_proved_for_every_field(shape, proved, factor):
    # what a steeper field can do bounds what a flatter one can: from one steepness to the next
    constant, most = shape.constants
    below, steepness = 0.2, 0.2
    while True:
        assert proved(steepness, constant * below**2)
        if steepness == most:
            break
        below, steepness = steepness, min(steepness * factor, most)


def test_the_slow_fields_reach_the_half_line_and_the_levels_bound_it():
    # a field that never falls has K(level) = density(level) - level tail(level); a slow one has hardly more
    level = np.array([0.5, 1.0, 3.0])
    still = flux.density(level) - level * flux.tail(level)
    grown = flux.grown(level, 0.05, 800)
    assert (grown >= still).all()
    assert (grown <= still * 1.05).all()


@given(
    ratio=st.floats(1e-4, 5.0),
    offset=st.floats(1e-6, 1.0),
    shape=st.sampled_from([ONE, TWO, Shape(corners=9, is_line=False)]),
)
def test_more_noise_and_a_larger_ridge_never_reveal_more(ratio, offset, shape):
    mu = gaussian_privacy(ratio, offset=offset, shape=shape)
    assert mu >= ratio
    assert mu <= gaussian_privacy(ratio * 1.01, offset=offset, shape=shape) * (1 + 1e-9)
    assert mu <= gaussian_privacy(ratio, offset=offset * 1.01, shape=shape) * (1 + 1e-9)
    found = largest_ratio(mu, offset=offset, shape=shape)
    assert gaussian_privacy(found, offset=offset, shape=shape) <= mu
    assert found >= ratio * (1 - 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_profile_as_a_cost_is_never_below_itself_and_close_to_it_where_it_matters(adjacency):
    changes = 1 if adjacency == "add-remove" else 2
    kind = {"ratio": 0.2, "corners": 4, "offset": 0.05}
    box = 1.0 if changes == 1 else 2.0
    cost = profile_cost(box, profile(box, changes=changes, **kind), adjacency=adjacency, **kind)
    for epsilon in np.linspace(0.4, 1.5, 12) * box:  # further down it is not convex, and the cost is less with right
        assert cost.delta(float(epsilon)) >= profile(float(epsilon), changes=changes, **kind) * (1 - 1e-9) - 1e-12
    assert cost.delta(box) == pytest.approx(profile(box, changes=changes, **kind), rel=0.01)


def test_spread_is_one_for_one_direction_and_grows_slowly():
    assert ONE.spread == 1.0
    # 2 I(1/4) / I(1/2), I the isoperimetric profile of the Gaussian
    assert Shape(corners=2, is_line=False).spread == pytest.approx(2 * math.exp(-(ndtri(0.25) ** 2) / 2), rel=1e-9)
    assert 2.5 < Shape(corners=9, is_line=False).spread < 2.6
