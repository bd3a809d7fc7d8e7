"""The blurred contour: its inequality, and its brackets against exact lists and the grid."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import floats, integers, lists, sampled_from, tuples

from discreet.accounting import Cost
from discreet.accounting.blurred import blurred_line
from discreet.accounting.exact import EnumeratedLoss
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.saddle import Unreachable


def gaussian_profile(x, eta):
    return mpmath.ncdf(eta / 2 - x / eta) - mpmath.exp(x) * mpmath.ncdf(-eta / 2 - x / eta)


@pytest.mark.parametrize("eta", [1e-9, 1e-6, 1e-3, 0.01, 0.02, 0.03, 0.04, 0.05])
def test_the_three_ratios_of_the_proof_leave_a_margin(eta):
    with mpmath.workdps(60):
        eta = mpmath.mpf(eta)
        needed = 1.8 + mpmath.exp(-eta)
        at = lambda z: gaussian_profile(z * eta, eta)
        assert at(-0.5) / at(0.5) > needed + 0.04
        assert at(-1) / at(0) + mpmath.exp(-eta) * at(1.5) / at(0.5) > needed + 0.04


@pytest.mark.parametrize("eta", [1e-6, 1e-3, 0.05])
def test_a_butterfly_pays_for_the_blur_at_every_distance(eta):
    with mpmath.workdps(80):
        eta = mpmath.mpf(eta)
        for step in range(-120, 121):
            x = eta * step / 12
            own = gaussian_profile(x, eta) - max(mpmath.mpf(0), -mpmath.expm1(x))
            shrink = mpmath.exp(-eta)
            butterfly = gaussian_profile(x - eta, eta) - (1 + shrink) * gaussian_profile(x, eta)
            butterfly += shrink * gaussian_profile(x + eta, eta)
            assert 0 <= own <= 1.25 * butterfly


def pair_of(cost):
    ((leaf, count),) = cost.parts
    pair = leaf.pair()
    assert pair is not None
    return pair, count


@settings(max_examples=8, deadline=None)
@given(
    groups=lists(tuples(floats(0.05, 0.6), integers(8, 25)), min_size=3, max_size=4),
    share=floats(0.1, 0.6),
)
def test_brackets_hold_the_exact_list(groups, share):
    pairs = [pair_of(count * Cost.randomized_response(epsilon)) for epsilon, count in groups]
    assert all(isinstance(pair, AtomsPair) for pair, _ in pairs)
    epsilon = share * sum(epsilon * count for epsilon, count in groups)
    exact = EnumeratedLoss(pairs, Direction.FORWARD).bounds(epsilon)
    try:
        lower, upper = blurred_line(pairs, Direction.FORWARD, epsilon=epsilon).bounds(epsilon)
    except Unreachable:
        return
    assert lower <= exact[1]
    assert exact[0] <= upper
    assert 0 <= lower <= upper <= 1


JAGGED = [
    Cost.laplace(2.0),
    Cost.laplace(0.4),
    Cost.laplace(3.0).sampled(0.3),
    Cost.randomized_response(0.7),
    Cost.randomized_response(1.2, options=5),
    Cost.staircase(1.5),
    Cost.discrete_gaussian(9.0, sensitivity=2),
]


@pytest.mark.parametrize("cost", JAGGED, ids=str)
@settings(max_examples=15, deadline=None)
@given(power=sampled_from([1.5, 4.0, 12.0, -0.5, -3.0]), height=floats(0.5, 300), half=floats(0, 0.3))
def test_the_rough_modulus_bounds_the_transform_on_its_interval(cost, power, height, half):
    pair, _ = pair_of(cost)
    bound = float(pair.log_modulus(power, np.array([height]), half)[0])
    heights = height + half * np.linspace(-1, 1, 41)
    value, error = pair.log_power_mean(power + 1j * np.append(0.0, heights))
    found = (value.real - error)[1:] - (value.real + error)[0]
    assert bound >= float(found.max())
    assert bound <= 0


@settings(max_examples=40, deadline=None)
@given(scale=floats(0.5, 5), power=floats(1.2, 9), turns=floats(21, 200))
def test_far_up_the_closed_form_of_laplace_agrees_with_mpmath(scale, power, turns):
    pair, _ = pair_of(Cost.laplace(scale))
    height = turns * scale
    value, error = pair._far_up(np.array([complex(power, height)]))
    with mpmath.workdps(40):
        a, b = 1 / mpmath.mpf(scale), mpmath.mpc(power, height)
        bent = b - mpmath.mpf(1) / 2
        density = mpmath.exp(-a / 2) / 4 * (mpmath.exp(bent * a) - mpmath.exp(-bent * a)) / bent
        mean = density + mpmath.exp(-b * a) / 2 + mpmath.exp(-a + b * a) / 2
        gap = mpmath.exp(mpmath.mpc(complex(value[0]))) / mean - 1
        assert abs(gap) <= math.expm1(float(error[0]))


@pytest.mark.parametrize(
    "parts",
    [
        [Cost.laplace(5 + 0.1 * i) for i in range(120)],
        [Cost.randomized_response(0.1 + 0.0317 * i) for i in range(60)],
        [Cost.discrete_gaussian(10 + 0.1 * i) for i in range(60)],
        [30 * Cost.randomized_response(0.05 + 0.0317 * i) for i in range(6)],
    ],
    ids=["laplace", "randomized response", "discrete gaussian", "six groups"],
)
def test_many_different_jagged_parts_have_a_narrow_bracket(parts):
    reading = sum(parts, 0 * parts[0]).reading(delta=1e-6)
    assert reading.method == "contour"
    assert reading.width <= 1e-8


def test_the_order_of_the_parts_does_not_matter():
    parts = [Cost.discrete_gaussian(10 + 0.1 * i) for i in range(40)]
    there, back = sum(parts[1:], parts[0]), sum(parts[-2::-1], parts[-1])
    assert there.epsilon(1e-6) == pytest.approx(back.epsilon(1e-6), rel=1e-8)
    assert math.isclose(there.delta(2.0), back.delta(2.0), rel_tol=1e-7)


def test_a_line_that_would_need_too_many_heights_is_refused():
    pairs = [pair_of(2 * Cost.laplace(1 / 598))]
    with pytest.raises(Unreachable, match="heights"):
        blurred_line(pairs, Direction.FORWARD, epsilon=600.0)


def test_parts_without_a_rough_modulus_are_refused():
    pairs = [pair_of(10_000 * Cost.gaussian(0.1).sampled(1e-6))]
    with np.errstate(all="ignore"), pytest.raises(Unreachable, match="heights"):
        blurred_line(pairs, Direction.FORWARD, epsilon=0.0)
