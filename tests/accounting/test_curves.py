"""Whole curves of a cost: never on the wrong side of the truth, close to it, and cheap to read at many points."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import sources
from discreet.accounting.cost import Cost
from discreet.accounting.curves import Profile, tradeoff_of
from discreet.divergence import TradeOff, hockey_stick_gaussian, hockey_stick_laplace
from discreet.divergence.curves import GaussianCurve
from discreet.errors import InvalidArgument
from reference.tables import StoredRow, rows

SAMPLED = 10_000 * Cost.gaussian(1.0).sampled(0.01)
COSTS = {
    "sampled Gaussian": SAMPLED,
    "sampled Laplace": 300 * Cost.laplace(1.0).sampled(0.05),
    "Laplace and sampled Gaussian": Cost.laplace(2.0) + 1_000 * Cost.gaussian(1.0).sampled(0.01),
    "randomized responses": 100 * Cost.randomized_response(0.1),
    "boxes": 10 * Cost.approximate(0.1, 1e-4),
    "Laplace once": Cost.laplace(1.0),
    "exponential mechanisms": 5 * Cost.exponential_mechanism(0.5),
}
PARAMETERS = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())


def cost_of(row: StoredRow) -> Cost:
    """The cost that a row of the reference tables describes."""

    def one(mechanism: Mapping[str, object]) -> Cost:
        given = dict(mechanism)
        kind, times, rate = str(given.pop("kind")), given.pop("count", 1), given.pop("rate", None)
        cost = getattr(Cost, kind.removeprefix("sampled_"))(**given)
        return times * (cost if rate is None else cost.sampled(rate))

    return sum((one(mechanism) for mechanism in row.mechanisms), Cost.zero())


# the settings in which a profile or a curve is drawn; extremes are the business of the accountants' own tests
DRAWN = (
    "ordinary",
    "small delta",
    "deep tail",
    "sigma 1, q 0.01",
    "sigma 1.5",
    "sigma 4",
    "sigma 10",
    "Gaussian 5",
    "Gaussian and boxes",
    "100 randomized",
    "randomized response 0.1",
    "staircase 1",
    "boxes 0.1",
    "sampled Gaussian and Laplace",
    "two noise levels",
)
TRUTHS = [row for row in rows("sampled_gaussian", "gaussian", "finite", "mixtures") if row.name.startswith(DRAWN)]


@pytest.mark.parametrize("row", TRUTHS, ids=lambda row: row.name)
def test_the_profile_brackets_the_high_precision_truth(row: StoredRow) -> None:
    profile = cost_of(row).profile()
    if row.epsilon is not None:
        before = after = row.epsilon
        truth = float(row.larger)
    else:
        assert row.delta is not None
        truth, epsilon = row.delta, float(row.larger)
        before, after = math.nextafter(epsilon, 0.0), math.nextafter(epsilon, math.inf)
    upper, lower = float(profile(before)), float(profile.lower(after))
    assert lower <= truth <= upper
    assert upper - lower <= 2e-6 * truth


@pytest.mark.parametrize("row", [row for row in TRUTHS if row.epsilon is not None], ids=lambda row: row.name)
def test_the_delta_of_the_tradeoff_curve_is_above_the_high_precision_truth(row: StoredRow) -> None:
    assert row.epsilon is not None
    truth = float(row.larger)
    delta = float(cost_of(row).tradeoff().delta(row.epsilon))
    assert truth <= delta <= truth + 2e-5


# ------------------------------------------------------------------------------------------------------------ profile


@PARAMETERS
def test_the_profile_is_the_delta_of_the_cost_to_a_millionth(cost: Cost) -> None:
    profile = cost.profile()
    for epsilon in (0.0, 0.003, 0.3, 0.8, 2.0):
        lower, upper = cost.bounds(epsilon=epsilon)
        assert lower <= float(profile(epsilon)) <= upper * (1 + 2e-6)
        assert lower * (1 - 2e-6) <= float(profile.lower(epsilon)) <= upper


@PARAMETERS
def test_a_point_of_the_profile_does_not_depend_on_the_other_points(cost: Cost) -> None:
    epsilons = np.linspace(0.0, 2.2, 40)
    together = cost.profile()(epsilons)
    profile = cost.profile()
    assert [float(profile(e)) for e in epsilons[::-1]] == together[::-1].tolist()


def test_many_epsilons_share_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = sources.line_for_epsilon
    monkeypatch.setattr(sources, "line_for_epsilon", lambda *args: made.append(args) or original(*args))
    deltas = SAMPLED.profile()(np.linspace(0.0, 10.0, 500))
    assert deltas[0] > 0.4 > 1e-11 > deltas[-1]
    assert len(made) <= 16  # both directions


def test_closed_forms_are_read_as_they_are() -> None:
    epsilons = np.array([0.0, 0.4, 1.0, 3.0])
    gaussian = Profile(4 * Cost.gaussian(2.0))
    assert gaussian(epsilons) == pytest.approx(hockey_stick_gaussian(epsilons, mu=1.0), rel=1e-12)
    assert (gaussian(epsilons) >= hockey_stick_gaussian(epsilons, mu=1.0)).all()
    laplace = Profile(Cost.laplace(0.5))
    assert laplace(epsilons) == pytest.approx(hockey_stick_laplace(epsilons, shift=2.0), rel=1e-12, abs=1e-13)


def test_shapes_are_kept() -> None:
    profile = Cost.gaussian(1.0).profile()
    assert isinstance(profile(1.0), float)
    assert profile([[0.0, 1.0, 1.0]]).shape == profile.lower([[0.0, 1.0, 1.0]]).shape == (1, 3)
    assert profile([]).shape == (0,)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf, [0.0, -1.0], "one", None])
def test_an_epsilon_that_is_no_number_from_zero_up_is_refused(epsilon: object) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        Cost.gaussian(1.0).profile()(epsilon)  # type: ignore[arg-type]


def test_nothing_released_is_delta_zero() -> None:
    profile = Cost.zero().profile()
    assert profile([0.0, 1.0]).tolist() == profile.lower([0.0, 1.0]).tolist() == [0.0, 0.0]


def test_outright_leaks_stay_at_every_epsilon() -> None:
    profile = COSTS["boxes"].profile()
    leak = float(1 - (1 - Fraction(1e-4)) ** 10)
    assert float(profile.lower(50.0)) <= leak <= float(profile(50.0)) <= leak * (1 + 1e-13)


def test_a_part_known_by_renyi_divergences_is_read_by_the_renyi_accountant() -> None:
    cost = Cost.renyi({2.0: 0.1, 8.0: 0.5}) + Cost.laplace(5.0)
    profile = cost.profile()
    for epsilon in (0.0, 1.0):
        lower, upper = cost.bounds(epsilon=epsilon)
        assert float(profile(epsilon)) == upper
        assert float(profile.lower(epsilon)) == pytest.approx(lower, rel=1e-6)


def test_a_curve_of_the_users_own_is_bracketed_by_its_two_polygons() -> None:
    cost = 2 * Cost.from_tradeoff(TradeOff.gaussian(0.5))
    profile = cost.profile()
    truth = float(hockey_stick_gaussian(0.5, mu=math.sqrt(0.5)))
    assert truth * 0.99 <= float(profile.lower(0.5)) <= truth <= float(profile(0.5)) <= truth * 1.01


def test_profiles_compare_and_travel_by_their_cost() -> None:
    profile = SAMPLED.profile()
    profile(1.0)
    again = pickle.loads(pickle.dumps(profile))
    assert again == profile == Profile(SAMPLED) != Profile(2 * SAMPLED)
    assert float(again(1.0)) == float(profile(1.0))


# ----------------------------------------------------------------------------------------------------------- tradeoff

ALPHAS = np.concatenate([[0.0, 1e-9, 1e-6, 1e-4], np.linspace(0.001, 1.0, 200)])


def assert_close_below(curve: TradeOff, truth: TradeOff, *, within: float) -> None:
    gap = np.asarray(truth(ALPHAS)) - np.asarray(curve(ALPHAS))
    assert gap.min() >= -1e-13
    assert gap.max() <= within


def test_gaussian_parts_give_the_gaussian_curve_rounded_up() -> None:
    curve = (9 * Cost.gaussian(3.0) + Cost.gaussian(0.5)).tradeoff().curve
    assert isinstance(curve, GaussianCurve)
    assert math.sqrt(5.0) <= curve.mu <= math.sqrt(5.0) * (1 + 1e-15)


def test_nothing_released_is_perfect_privacy() -> None:
    assert Cost.zero().tradeoff() == TradeOff.identity()


def test_laplace_noise_gives_its_curve_from_below() -> None:
    assert_close_below(Cost.laplace(0.7).tradeoff(), TradeOff.laplace(1 / 0.7), within=4e-5)


def test_a_box_gives_its_curve_from_below() -> None:
    truth = TradeOff.from_guarantee(1.5, 0.02)
    assert_close_below(Cost.approximate(1.5, 0.02).tradeoff(), truth, within=4e-5)


@given(epsilon=st.floats(0.05, 2.0), count=st.integers(1, 8))
def test_randomized_responses_give_the_product_of_their_curves_from_below(epsilon: float, count: int) -> None:
    one = TradeOff.from_guarantee(epsilon, 0.0)
    truth = TradeOff.identity()
    for _ in range(count):
        truth = truth.compose(one)
    assert_close_below((count * Cost.randomized_response(epsilon)).tradeoff(), truth, within=4e-5)


@pytest.mark.parametrize("cost", [SAMPLED, COSTS["Laplace and sampled Gaussian"]], ids=["sampled", "mixed"])
def test_the_curve_leaves_little_room_under_the_lower_profile(cost: Cost) -> None:
    # every lower delta is a line that the true curve can rise to: it lies below their maximum, up to the grid
    epsilons = np.linspace(0.0, 9.0, 1_100)
    deltas = np.asarray(cost.profile().lower(epsilons))
    curve = cost.tradeoff()
    for alpha in (1e-6, 1e-3, 0.01, 0.1, 0.3, 0.6, 0.9):
        steep, flat = 1 - deltas - np.exp(epsilons) * alpha, np.exp(-epsilons) * (1 - deltas - alpha)
        highest = max(0.0, steep.max(), flat.max())
        assert float(curve(alpha)) <= highest + 1e-5
        assert float(curve(alpha)) >= highest - 4e-5
        assert float(curve.power(alpha)) <= (1 - highest) * 1.02


def test_small_false_alarms_keep_their_power_to_two_percent() -> None:
    truth = TradeOff.gaussian(1.0)
    curve = (Cost.gaussian(1.0) + Cost.pure(1e-11)).tradeoff()
    for alpha in (1e-9, 1e-6, 1e-3):
        assert float(truth.power(alpha)) <= float(curve.power(alpha)) * (1 + 1e-9)
        assert float(curve.power(alpha)) <= float(truth.power(alpha)) * 1.02


def test_more_releases_give_a_lower_curve() -> None:
    few, many = (5_000 * Cost.gaussian(1.0).sampled(0.01)).tradeoff(), SAMPLED.tradeoff()
    assert (np.asarray(many(ALPHAS)) <= np.asarray(few(ALPHAS)) + 1e-12).all()
    assert float(many(0.1)) < float(few(0.1)) - 0.05


def test_the_curve_of_a_cost_holds_in_both_orders() -> None:
    curve = SAMPLED.tradeoff()
    assert np.asarray(curve.inverse()(ALPHAS)) == pytest.approx(np.asarray(curve(ALPHAS)), abs=1e-9)


def test_a_renyi_part_gives_a_certified_curve_too() -> None:
    # N(sqrt(2 rho), 1) is rho-zCDP, so no valid curve lies above its own
    curve = tradeoff_of(Cost.concentrated(0.5))
    gap = np.asarray(TradeOff.gaussian(1.0)(ALPHAS)) - np.asarray(curve(ALPHAS))
    assert gap.min() >= 0
    assert gap.max() < 0.2
