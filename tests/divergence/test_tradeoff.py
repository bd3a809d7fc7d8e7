"""Trade-off functions: constructions, conjugates, group privacy, composition, and which side they err on."""

from __future__ import annotations

import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from discreet.divergence import (
    TradeOff,
    gaussian_noise,
    hockey_stick,
    hockey_stick_gaussian,
    laplace_noise,
    logistic_noise,
    total_variation,
    tradeoff_gaussian,
)
from discreet.errors import CertificateError, InvalidArgument
from divergence.pairs import normalised, pairs, pairs_and_channels

ALPHAS = np.concatenate(
    [[0.0], np.geomspace(1e-15, 1e-2, 60), np.linspace(0.01, 0.99, 99), 1 - np.geomspace(1e-2, 1e-15, 60), [1.0]]
)
EPSILONS = np.linspace(-6, 6, 49)
CURVES = {
    "identity": TradeOff.identity(),
    "Gaussian": TradeOff.gaussian(1.2),
    "Laplace": TradeOff.laplace(0.8),
    "logistic": TradeOff.shifted(logistic_noise(), shift=1.0),
    "guarantee": TradeOff.from_guarantee(0.7, 0.05),
    "finite": TradeOff.from_pair([0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.4, 0.3]),
    "profile": TradeOff.gaussian(1.2).below(),
}
every_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@every_curve
def test_every_curve_is_a_trade_off_function(curve: TradeOff) -> None:
    missed = curve(ALPHAS)
    assert (np.diff(missed) <= 1e-15).all()
    assert ((missed >= 0) & (missed <= 1 - ALPHAS + 1e-15)).all()
    even = curve(np.linspace(0, 1, 201))
    assert (np.diff(even, 2) >= -1e-11).all(), "convex"
    assert float(curve(1.0)) == 0
    np.testing.assert_allclose(curve.power(ALPHAS), 1 - missed, atol=1e-11)
    assert isinstance(float(curve(0.3)), float)


@every_curve
def test_the_profile_is_the_conjugate_and_its_supporting_lines_touch(curve: TradeOff) -> None:
    deltas = curve.delta(EPSILONS)
    lines = 1 - deltas[:, None] - np.exp(EPSILONS)[:, None] * ALPHAS
    assert (lines <= curve(ALPHAS) + 1e-11).all(), "every line supports"
    np.testing.assert_allclose(curve.conjugate(-np.exp(EPSILONS)), deltas - 1, atol=1e-14)
    # and their maximum gives the curve back (biconjugation), up to the spacing of the lines
    fine = np.linspace(-12, 12, 4001)
    envelope = (1 - curve.delta(fine)[:, None] - np.exp(fine)[:, None] * ALPHAS).max(axis=0)
    np.testing.assert_allclose(np.maximum(envelope, 0), curve(ALPHAS), atol=2e-3)


@every_curve
def test_conjugate_of_other_slopes(curve: TradeOff) -> None:
    assert list(curve.conjugate([0.0, 2.0])) == [0.0, 2.0]
    assert float(curve.conjugate(-1.0)) == pytest.approx(curve.advantage() - 1)
    assert float(curve.conjugate(-math.inf)) == pytest.approx(float(curve.power(0.0)) - 1, abs=1e-11)


@every_curve
def test_the_inverse_swaps_the_two_errors(curve: TradeOff) -> None:
    other = curve.inverse()
    np.testing.assert_allclose(
        other.delta(EPSILONS), 1 - np.exp(EPSILONS) * (1 - curve.delta(-EPSILONS)), atol=1e-9, rtol=1e-9
    )
    alpha = np.linspace(0.05, 0.9, 18)
    missed = curve(alpha)
    inside = missed > 1e-9
    np.testing.assert_allclose(other(missed[inside]), alpha[inside], atol=1e-7)
    np.testing.assert_allclose(other.inverse()(ALPHAS), curve(ALPHAS), atol=1e-14)


@every_curve
def test_groups_are_repeated_concatenation(curve: TradeOff) -> None:
    assert curve.grouped(0) == TradeOff.identity()
    np.testing.assert_allclose(curve.grouped(1)(ALPHAS), curve(ALPHAS), atol=1e-12)
    reached = ALPHAS
    for size in (1, 2, 3, 4, 5):
        reached = curve.power(reached)
        np.testing.assert_allclose(curve.grouped(size)(ALPHAS), 1 - reached, atol=1e-10)


@every_curve
def test_equal_curves_are_equal_and_survive_pickling(curve: TradeOff) -> None:
    again = pickle.loads(pickle.dumps(curve))
    assert again == curve
    assert hash(again) == hash(curve)
    assert curve != TradeOff.gaussian(3.21)
    assert curve.compose(TradeOff.identity()) == curve == TradeOff.identity().compose(curve)


@given(pairs())
def test_a_finite_pair_gives_its_hockey_sticks_and_total_variation(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = pair
    f = TradeOff.from_pair(p, q)
    np.testing.assert_allclose(f.delta(EPSILONS), hockey_stick(p, q, epsilon=EPSILONS), atol=1e-14)
    assert f.advantage() == pytest.approx(total_variation(p, q), abs=1e-14)
    np.testing.assert_allclose(f.inverse().delta(EPSILONS), hockey_stick(q, p, epsilon=EPSILONS), atol=1e-14)


@given(pairs(), st.lists(st.booleans(), min_size=6, max_size=6), st.floats(0, 1))
def test_no_randomized_test_beats_the_curve(
    pair: tuple[np.ndarray, np.ndarray], chosen: list[bool], coin: float
) -> None:
    p, q = pair
    test = np.where(chosen[: p.size], coin, 1 - coin)
    false_alarm, detection = min(1.0, float(q @ test)), float(p @ test)
    assert 1 - detection >= float(TradeOff.from_pair(p, q)(false_alarm)) - 1e-12


@given(pairs_and_channels())
def test_post_processing_raises_the_curve(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    p, q, channel = case
    before = TradeOff.from_pair(p, q)
    after = TradeOff.from_pair(normalised(list(p @ channel)), normalised(list(q @ channel)))
    alphas = ALPHAS[60:160]  # at the ends a curve may jump, and rounding of the channel moves the jump
    assert (after(alphas) >= before(alphas) - 1e-9).all()
    assert (after.delta(EPSILONS) <= before.delta(EPSILONS) + 1e-11).all()


@given(pairs())
def test_the_symmetrised_curve_has_the_larger_profile(pair: tuple[np.ndarray, np.ndarray]) -> None:
    f = TradeOff.from_pair(*pair)
    both = f.symmetrised()
    larger = np.maximum(f.delta(EPSILONS), f.inverse().delta(EPSILONS))
    np.testing.assert_allclose(both.delta(EPSILONS), larger, atol=1e-13)
    np.testing.assert_allclose(both.inverse().delta(EPSILONS), larger, atol=1e-13)
    assert (both(ALPHAS) <= np.minimum(f(ALPHAS), f.inverse()(ALPHAS)) + 1e-12).all()


@given(pairs(), pairs())
def test_composition_of_finite_pairs_is_their_product(
    one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]
) -> None:
    f, g = TradeOff.from_pair(*one), TradeOff.from_pair(*two)
    p, q = np.outer(one[0], two[0]).ravel(), np.outer(one[1], two[1]).ravel()
    expected = np.maximum(p - np.exp(EPSILONS)[:, None] * q, 0).sum(axis=1)
    np.testing.assert_allclose(f.compose(g).delta(EPSILONS), expected, atol=1e-13)
    np.testing.assert_allclose(g.compose(f).delta(EPSILONS), expected, atol=1e-13)


@given(pairs(), pairs(), pairs())
def test_a_chain_of_three_distributions_is_no_easier_than_its_concatenation(
    one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray], three: tuple[np.ndarray, np.ndarray]
) -> None:
    # P, Q, R on one space; a curve f below T(Q, P) and T(R, Q) gives f o (1 - f) below T(R, P)
    size = min(one[0].size, two[0].size, three[0].size)
    assume(all(d[0][:size].sum() > 1e-6 for d in (one, two, three)))
    p, q, r = (normalised(list(d[0][:size])) for d in (one, two, three))
    step = TradeOff.from_profile(
        lambda e: np.minimum(1, np.maximum(hockey_stick(p, q, epsilon=e), hockey_stick(q, r, epsilon=e)) + 1e-14),
        reverse=lambda e: np.minimum(
            1, np.maximum(hockey_stick(q, p, epsilon=e), hockey_stick(r, q, epsilon=e)) + 1e-14
        ),
    )
    assert (step.grouped(2)(ALPHAS) <= TradeOff.from_pair(p, r)(ALPHAS) + 1e-12).all()


def test_hundred_randomized_responses_merge_to_a_binomial() -> None:
    e, n = 0.1, 100
    one = TradeOff.from_guarantee(e, 0.0)
    many = TradeOff.identity()
    for _ in range(n):
        many = many.compose(one)
    assert many.curve.p.size == n + 1  # type: ignore[attr-defined]
    with mp.workdps(40):
        win = mp.exp(mp.mpf(e)) / (1 + mp.exp(mp.mpf(e)))
        for epsilon in (0.0, 1.0, 5.0, 9.5):
            exact = sum(
                mp.binomial(n, k)
                * max(mp.mpf(0), win**k * (1 - win) ** (n - k) - mp.exp(epsilon) * (1 - win) ** k * win ** (n - k))
                for k in range(n + 1)
            )
            assert float(many.delta(epsilon)) == pytest.approx(float(exact), rel=1e-11)
    assert float(many.delta(10.0 + 1e-9)) == 0


@given(st.floats(0, 50), st.floats(0, 50), st.integers(1, 20))
def test_gaussians_compose_by_pythagoras_and_group_by_multiplication(a: float, b: float, k: int) -> None:
    assert TradeOff.gaussian(a).compose(TradeOff.gaussian(b)) == TradeOff.gaussian(math.hypot(a, b))
    assert TradeOff.gaussian(a).grouped(k) == TradeOff.gaussian(k * a)
    assert TradeOff.laplace(a).grouped(k) == TradeOff.laplace(k * a)


def test_a_piecewise_linear_gaussian_composes_and_groups_to_nearly_the_gaussian() -> None:
    f = TradeOff.gaussian(0.7).below()
    for ours, exact in ((f.compose(f), 0.7 * 2**0.5), (f.grouped(3), 2.1)):
        gap = TradeOff.gaussian(exact)(ALPHAS) - ours(ALPHAS)
        assert gap.min() >= 0, "from below stays below"
        assert gap.max() < 3e-5


@given(epsilon=st.floats(0, 700), delta=st.floats(0, 1), alpha=st.floats(0, 1))
def test_a_guarantee_is_its_two_lines(epsilon: float, delta: float, alpha: float) -> None:
    f = TradeOff.from_guarantee(epsilon, delta)
    expected = max(0.0, 1 - delta - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - delta - alpha))
    assert float(f(alpha)) == pytest.approx(expected, abs=2e-15)
    assert float(f.delta(epsilon)) == pytest.approx(delta, abs=1e-15)
    assert f.symmetrised().delta(0.3) == pytest.approx(float(f.delta(0.3)), abs=1e-15)


def test_a_group_of_two_under_pure_privacy_doubles_epsilon_at_the_ends_only() -> None:
    f = TradeOff.from_guarantee(1.0, 0.0).grouped(2)
    assert float(f.delta(2.0)) == pytest.approx(0.0, abs=1e-15)
    assert float(f.delta(1.999)) > 0
    # 1 - f rises with slopes e^2, 1, e^-2; its largest distance to the diagonal is on the middle part
    assert f.advantage() == pytest.approx(1 - math.exp(-1), rel=1e-14)
    assert f.advantage() < TradeOff.from_guarantee(2.0, 0.0).advantage()


@given(mu=st.floats(-6, 1.3).map(lambda x: 10.0**x))
def test_a_curve_from_a_profile_is_certified_from_below_and_close(mu: float) -> None:
    f = TradeOff.from_profile(lambda e: np.minimum(hockey_stick_gaussian(e, mu=mu) * (1 + 1e-12), 1.0))
    gap = tradeoff_gaussian(ALPHAS, mu=mu) - f(ALPHAS)
    assert gap.min() >= 0
    assert gap.max() <= 1e-3
    epsilons = np.linspace(0, 7 * mu + mu * mu / 2, 40)
    assert (f.delta(epsilons) >= hockey_stick_gaussian(epsilons, mu=mu)).all()
    assert (f.inverse().delta(epsilons) >= hockey_stick_gaussian(epsilons, mu=mu)).all()


@given(st.lists(st.floats(0, 12), min_size=1, max_size=30), st.floats(0.05, 3))
def test_any_grid_of_any_guarantees_gives_the_maximum_of_their_lines(epsilons: list[float], mu: float) -> None:
    grid = np.array(epsilons)
    f = TradeOff.from_profile(lambda e: hockey_stick_gaussian(e, mu=mu), epsilons=grid)
    with mp.workdps(40):
        deltas = [mp.mpf(float(d)) for d in hockey_stick_gaussian(grid, mu=mu)]
        for alpha in ALPHAS[::12]:
            a = mp.mpf(float(alpha))
            lines = [1 - d - mp.exp(e) * a for d, e in zip(deltas, epsilons, strict=True)]
            lines += [mp.exp(-e) * (1 - d - a) for d, e in zip(deltas, epsilons, strict=True)]
            exact = max(mp.mpf(0), *lines)
            assert mp.mpf(float(f(alpha))) <= exact, "rounding included"
            assert float(f(alpha)) == pytest.approx(float(exact), abs=1e-11)


def test_noisy_profiles_stay_certified() -> None:
    # an upper bound that is neither convex nor monotone still gives valid lines
    wobble = lambda e: np.minimum(1.0, hockey_stick_gaussian(e, mu=1.0) * (1.05 + 0.05 * np.sin(40 * e)))
    f = TradeOff.from_profile(wobble)
    gap = tradeoff_gaussian(ALPHAS, mu=1.0) - f(ALPHAS)
    assert gap.min() >= 0
    assert gap.max() < 0.02


@given(pairs())
def test_an_asymmetric_profile_keeps_its_two_orders_apart(pair: tuple[np.ndarray, np.ndarray]) -> None:
    exact = TradeOff.from_pair(*pair)
    assume(all(abs(loss) < 30 or math.isinf(loss) for loss in exact.curve.loss))  # type: ignore[attr-defined]
    up = lambda f: lambda e: np.minimum(f.delta(e) * (1 + 1e-12) + 1e-15, 1.0)
    f = TradeOff.from_profile(up(exact), reverse=up(exact.inverse()))
    assert (f(ALPHAS) <= exact(ALPHAS)).all()
    np.testing.assert_allclose(f(ALPHAS[60:160]), exact(ALPHAS[60:160]), atol=2e-2)


def test_profiles_without_any_privacy_give_the_zero_curve() -> None:
    for f in (
        TradeOff.from_profile(np.ones_like),
        TradeOff.from_guarantee(0.0, 1.0),
        TradeOff.from_guarantee(3.0, 1.0),
    ):
        assert (f(ALPHAS) == 0).all()
        assert f.advantage() == 1.0
    one_sided = TradeOff.from_profile(lambda e: np.full_like(e, 0.25), reverse=np.ones_like, epsilons=[0.0, 1.0])
    np.testing.assert_allclose(one_sided([0.0, 0.5, 0.75, 0.9]), [0.75, 0.25, 0.0, 0.0], atol=1e-12)
    other = TradeOff.from_profile(np.ones_like, reverse=lambda e: np.full_like(e, 0.25), epsilons=[0.0, 1.0])
    np.testing.assert_allclose(other([0.0, 0.5, 0.75, 0.9]), [0.75, 0.25, 0.0, 0.0], atol=1e-12)


def test_tails_of_1e_300_survive_pairs_profiles_inverses_groups_and_composition() -> None:
    tiny = TradeOff.from_pair([1e-300, 1.0], [0.0, 1.0])
    assert float(tiny.delta(5.0)) == 1e-300
    assert float(tiny.power(0.0)) == 1e-300
    assert float(tiny.grouped(2).delta(5.0)) == pytest.approx(2e-300, rel=1e-12)
    assert float(tiny.compose(tiny).delta(5.0)) == pytest.approx(2e-300, rel=1e-12)
    assert float(tiny.inverse().inverse().delta(5.0)) == 1e-300
    assert float(tiny.symmetrised().inverse().delta(5.0)) == pytest.approx(1e-300, rel=1e-12)
    assert float(TradeOff.from_guarantee(2.0, 1e-300).delta(2.0)) == pytest.approx(1e-300, rel=1e-12)
    f = TradeOff.from_profile(lambda e: np.minimum(1, hockey_stick_gaussian(e, mu=1.0)), epsilons=[0.0, 1.0, 36.0])
    assert float(f.power(0.0)) == pytest.approx(float(hockey_stick_gaussian(36.0, mu=1.0)), rel=1e-9)
    assert 1e-300 < float(f.power(0.0)) < 1e-270


@pytest.mark.parametrize("mu", [0.01, 0.5, 1.0, 3.0])
def test_conjugate_round_trip(mu: float) -> None:
    f = TradeOff.gaussian(mu)
    back = TradeOff.from_conjugate(f.conjugate)
    gap = f(ALPHAS) - back(ALPHAS)
    assert gap.min() >= 0
    assert gap.max() < 2e-4


def test_conjugate_round_trip_of_an_asymmetric_curve() -> None:
    f = CURVES["finite"]
    back = TradeOff.from_conjugate(f.conjugate, epsilons=np.linspace(0, 3, 3001))
    gap = f(ALPHAS) - back(ALPHAS)
    assert gap.min() >= -1e-15
    assert gap.max() < 1e-3


@pytest.mark.parametrize("name", ["Gaussian", "Laplace", "logistic", "guarantee"])
def test_a_curve_from_a_function_is_certified_from_below_and_close(name: str) -> None:
    f = CURVES[name]
    sampled = TradeOff.from_function(f)
    gap = f(ALPHAS) - sampled(ALPHAS)
    assert gap.min() >= 0
    assert gap.max() < 2e-3
    coarse = TradeOff.from_function(f, alphas=np.linspace(0, 1, 21))
    assert (coarse(ALPHAS) <= f(ALPHAS)).all()


def test_joining_points_of_a_smooth_curve_would_lie_above_it() -> None:
    # why from_vertices is not from_function
    x = np.linspace(0, 1, 21)
    f = CURVES["Gaussian"]
    assert (TradeOff.from_vertices(x, f(x))(ALPHAS) >= f(ALPHAS) - 1e-12).all()
    assert float(TradeOff.from_vertices(x, f(x)).delta(1.0)) < float(f.delta(1.0))


def test_vertices_round_trip() -> None:
    f = CURVES["finite"]
    alphas, betas = f.curve.vertices()  # type: ignore[attr-defined]
    np.testing.assert_allclose(TradeOff.from_vertices(alphas, betas)(ALPHAS), f(ALPHAS), atol=1e-14)
    jump = TradeOff.from_vertices([0.0, 1.0], [0.5, 0.0])
    assert float(jump.delta(10.0)) == pytest.approx(0.5)


def test_shifted_families_agree_with_the_closed_forms() -> None:
    for smooth, exact in (
        (TradeOff.shifted(gaussian_noise(), shift=1.2), CURVES["Gaussian"]),
        (TradeOff.shifted(laplace_noise(), shift=0.8), CURVES["Laplace"]),
    ):
        np.testing.assert_allclose(smooth.delta(EPSILONS), exact.delta(EPSILONS), rtol=1e-11)
        np.testing.assert_allclose(smooth(ALPHAS), exact(ALPHAS), rtol=1e-12)
        tiny = np.geomspace(1e-300, 0.5, 60)
        np.testing.assert_allclose(smooth.power(tiny), exact.power(tiny), rtol=1e-11)


def test_what_has_no_closed_form_product_is_refused_with_advice() -> None:
    with pytest.raises(CertificateError, match=r"below\(\)"):
        CURVES["Laplace"].compose(CURVES["Gaussian"])
    with pytest.raises(CertificateError, match="LaplaceCurve and Polyline"):
        CURVES["Laplace"].compose(CURVES["finite"])
    product = CURVES["Laplace"].below(epsilons=np.linspace(0, 1, 30)).compose(CURVES["finite"])
    assert product.advantage() > CURVES["finite"].advantage()
    big = TradeOff(CURVES["profile"].grouped(6).curve)
    with pytest.raises(InvalidArgument, match="segments"):
        big.compose(big)


@pytest.mark.parametrize(
    "call",
    [
        lambda: TradeOff.gaussian(-1.0),
        lambda: TradeOff.gaussian(math.nan),
        lambda: TradeOff.laplace(-1.0),
        lambda: TradeOff.from_guarantee(-1.0, 0.0),
        lambda: TradeOff.from_guarantee(1.0, 1.5),
        lambda: TradeOff.from_pair([0.5], [0.5]),
        lambda: TradeOff.identity()(1.5),
        lambda: TradeOff.identity()(math.nan),
        lambda: TradeOff.identity().delta(math.nan),
        lambda: TradeOff.identity().conjugate(math.nan),
        lambda: TradeOff.identity().grouped(-1),
        lambda: TradeOff.identity().grouped(1.5),  # type: ignore[arg-type]
        lambda: TradeOff.from_profile(lambda e: e - 1.0, epsilons=[0.0, 1.0]),
        lambda: TradeOff.from_profile(lambda e: np.full_like(e, math.nan), epsilons=[0.0]),
        lambda: TradeOff.from_profile(lambda e: 0.5, epsilons=[0.0, 1.0]),  # type: ignore[arg-type,return-value]
        lambda: TradeOff.from_profile(np.ones_like, epsilons=[-1.0]),
        lambda: TradeOff.from_profile(np.ones_like, epsilons=[]),
        lambda: TradeOff.from_function(lambda a: a),
        lambda: TradeOff.from_function(lambda a: np.cos(a * math.pi / 2)),
        lambda: TradeOff.from_function(lambda a: 1 - a, alphas=[0.0, 1.0]),
        lambda: TradeOff.from_function(lambda a: 1 - a, alphas=[0.1, 0.2, 0.3, 1.0]),
        lambda: TradeOff.from_vertices([0.0, 0.5, 1.0], [1.0, 0.9, 0.0]),
        lambda: TradeOff.from_vertices([0.0, 1.0], [1.0, 0.5]),
        lambda: TradeOff.from_vertices([0.0], [1.0]),
    ],
)
def test_anything_that_is_no_trade_off_function_is_refused(call: object) -> None:
    with pytest.raises(InvalidArgument):
        call()  # type: ignore[operator]
