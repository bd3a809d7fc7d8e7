"""The three parts of a sampled Gaussian step: they add up, and their bounds hold against multi-precision integrals."""

from __future__ import annotations

import cmath
import itertools
import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.nodes import log_power_mean_of
from discreet.accounting.pairs.split import SplitStep

STEPS = [
    SplitStep(1.0, 0.01, 3.0, 5.0, 0.3, 0.1),
    SplitStep(0.4, 1e-4, 1.2, 2.5, 0.1, 0.05),
    SplitStep(5.0, 0.2, 4.0, 30.0, 2.0, 1.0),
]


def mean(step: SplitStep, which: str, power: complex) -> complex:
    """E_Q[psi w^b] by rigorous integration in balls, sharing nothing with the package but the definition."""
    ctx.prec = 128
    s, q, half = arb(step.sigma), arb(step.rate), arb(1) / 2

    def cdf(z: acb) -> acb:
        return (-z / arb(2).sqrt()).erfc() / 2

    def integrand(z: acb, _: object) -> acb:
        far = (z - step.stop) / arb(step.stop_width)
        large = (z - step.start) / arb(step.start_width)
        share = {"far": cdf(far), "middle": cdf(large) * cdf(-far), "small": cdf(-large) * cdf(-far)}[which]
        w = 1 - q + q * ((z - half) / s**2).exp()
        normal = (-z * z / (2 * s * s)).exp() / (s * (2 * arb.pi()).sqrt())
        return share * normal * (acb(power.real, power.imag) * w.log()).exp()

    marks = {-12 * step.sigma, step.start, step.stop, step.end}
    if which == "far":  # 1 - chi_f is below 1e-57 beyond the end
        marks |= {step.end + k * step.sigma for k in range(1, 12)}
    ends = sorted(marks)
    total = sum((acb.integral(integrand, a, b) for a, b in itertools.pairwise(ends)), acb(0))
    return complex(total)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("which", ["small", "middle"])
def test_nodes_give_the_transform_within_their_error(step: SplitStep, which: str) -> None:
    for power in (1.0 + 0j, 2.5 + 0j, 4.0 + 3.0j, 3.0 - 20.0j):
        nodes = step.nodes(which, (power.real, power.real), abs(power.imag))
        truth = mean(step, which, power)
        value = complex(np.exp(power * nodes.loss + nodes.log_weight).sum())
        assert nodes.log_error is not None
        allowed = math.exp(float(nodes.log_error(np.array([power]))[0]))
        size = float(np.exp(power.real * nodes.loss + nodes.log_weight).sum())
        assert abs(value - truth) <= allowed + 1e-13 * size
        assert allowed <= 1e-12 * size * (1 + 2 * abs(power))


@pytest.mark.parametrize("step", STEPS)
def test_the_small_part_is_computed_from_its_distance_to_one(step: SplitStep) -> None:
    powers = np.array([2.0 + 0j, 3.0 + 5.0j])
    nodes = step.nodes("small", (2.0, 3.0), 5.0, math.log(1e8))
    value, error = log_power_mean_of(nodes, powers, *step.missing)
    for power, found, allowed in zip(powers, value, error, strict=True):
        truth = cmath.log(mean(step, "small", complex(power)))
        assert abs(found - truth) <= allowed + 1e-15 * abs(truth)
        assert allowed < 1e-12


@pytest.mark.parametrize("step", STEPS)
def test_bounds_lie_above_what_they_bound_and_not_far(step: SplitStep) -> None:
    for which, power in (("small", 2.0), ("middle", 3.0), ("far", -2.0), ("far", -0.5)):
        truth = math.log(mean(step, which, complex(power)).real)
        bound = float(step.log_mean_above(which, np.array([power]))[0])
        assert truth <= bound <= truth + 0.5


@pytest.mark.parametrize("step", STEPS)
def test_the_decay_of_the_middle_is_bounded(step: SplitStep) -> None:
    reaches = np.array([1.0, 30.0, 1e5])
    bounds = step.log_decay("middle", 2.0, reaches)
    for reach, bound in zip(reaches[:2], bounds[:2], strict=True):
        for height in (reach, 1.3 * reach):
            assert math.log(abs(mean(step, "middle", complex(2.0, height))) + 1e-300) <= bound + 1e-9
    assert bounds[2] < bounds[0] - 20.0


@pytest.mark.parametrize("step", STEPS)
def test_the_decay_of_the_small_part_is_bounded_sharply(step: SplitStep) -> None:
    start = math.log(mean(step, "small", 2.0 + 0j).real)
    reaches = np.array([0.3, 2.0, 20.0])
    bounds = step.small_decay(2.0, reaches)
    for reach, bound in zip(reaches, bounds, strict=True):
        for height in (reach, 1.7 * reach):
            assert math.log(abs(mean(step, "small", complex(2.0, height)))) <= bound + 1e-14
    assert bounds[0] < start  # below the value on the real axis, so many repetitions fall


@settings(max_examples=40, deadline=None)
@given(
    sigma=st.floats(0.2, 20.0),
    log_rate=st.floats(-13.0, -0.1),
    start=st.floats(0.5, 6.0),
    gap=st.floats(2.0, 10.0),
    power=st.floats(1.0, 8.0),
)
def test_the_parts_add_up_to_the_whole(sigma: float, log_rate: float, start: float, gap: float, power: float) -> None:
    width = sigma / 4
    step = SplitStep(sigma, math.exp(log_rate), start * sigma, start * sigma + gap * width, width, width)
    p_far, q_far = step.far_masses
    for p, far in ((0.0, q_far), (1.0, p_far)):
        sums = [step.nodes(which, (p, p), 0.0) for which in ("small", "middle")]
        total = far + sum(float(np.exp(p * n.loss + n.log_weight).sum()) for n in sums)
        assert total == pytest.approx(1.0, abs=1e-13)
    above = [float(step.log_mean_above(which, np.array([power]))[0]) for which in ("small", "middle")]
    whole = float(step.pair.log_power_mean(np.array([complex(power)]))[0][0].real)
    nodes = [step.nodes(which, (power, power), 0.0) for which in ("small", "middle")]
    parts = [float(np.exp(power * n.loss + n.log_weight).sum()) for n in nodes]
    assert all(math.log(part) <= bound for part, bound in zip(parts, above, strict=True))
    assert sum(parts) <= math.exp(whole) * (1 + 1e-12)
