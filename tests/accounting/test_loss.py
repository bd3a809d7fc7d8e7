"""The law of the privacy loss: above the truth, close to it, whatever the number of releases."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet.accounting.cost import Cost
from discreet.accounting.loss import Loss
from discreet.errors import InvalidArgument

MU = 0.6
GAUSSIAN = 4 * Cost.gaussian(2 / MU)  # read by the contour integral, not in closed form
SAMPLED = 10_000 * Cost.gaussian(1.0).sampled(0.01)


def gaussian_tail(x: np.ndarray) -> np.ndarray:
    """P(L > x) for L ~ N(mu^2/2, mu^2)."""
    return np.asarray(ndtr((MU**2 / 2 - x) / MU))


def binomial(count: int, epsilon: float) -> dict[int, float]:
    """P(L = k epsilon) of `count` binary randomized responses."""
    p = 1 / (1 + math.exp(-epsilon))
    return {2 * k - count: math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)}


def table_tail(law: Loss, x: float) -> float:
    return float(law.mass[law.loss > x].sum()) + law.infinite


def test_the_tail_of_a_gaussian_loss_is_normal() -> None:
    x = np.linspace(-2.5, 4.0, 60)
    truth = gaussian_tail(x)
    tail = np.asarray(GAUSSIAN.loss().tail(x))
    assert (tail >= truth).all()
    assert tail == pytest.approx(truth, rel=2e-4)


def test_the_deep_tail_keeps_its_digits() -> None:
    x = np.array([6.0, 10.0])
    truth = gaussian_tail(x)
    assert truth[1] < 1e-50
    tail = np.asarray(GAUSSIAN.loss().tail(x))
    assert (tail >= truth).all()
    assert tail == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("cost", [GAUSSIAN, Cost.gaussian(1 / MU)], ids=["contour", "closed form"])
def test_the_table_is_stochastically_larger_than_the_loss_by_less_than_two_percent(cost: Cost) -> None:
    law = cost.loss()
    for x in np.linspace(-3.0, 4.0, 200):
        assert table_tail(law, x) >= float(gaussian_tail(x)) * (1 - 1e-12) - 1e-12
        assert table_tail(law, x) <= float(gaussian_tail(x)) + 0.02
    assert float(law.mass.sum()) + law.infinite == pytest.approx(1.0, abs=1e-12)
    assert (law.mass >= 0).all()
    assert (np.diff(law.loss) > 0).all()
    assert law.infinite < 1e-12
    assert law.mean() == pytest.approx(MU**2 / 2, rel=1e-9)
    assert law.std() == pytest.approx(MU, rel=1e-9)


@given(count=st.integers(1, 40), epsilon=st.floats(0.05, 1.0))
def test_randomized_responses_have_a_binomial_loss(count: int, epsilon: float) -> None:
    law = (count * Cost.randomized_response(epsilon)).loss()
    truth = binomial(count, epsilon)
    assert law.is_lattice
    for loss, mass in zip(law.loss, law.mass, strict=True):
        steps = round(loss / epsilon)
        assert loss == pytest.approx(steps * epsilon, abs=1e-12)
        assert mass == pytest.approx(truth.get(steps, 0.0), abs=1e-9 / epsilon)
    for steps in range(-count, count, 3):
        exact = math.fsum(mass for k, mass in truth.items() if k > steps)
        tail = float(law.tail((steps + 0.5) * epsilon))
        assert exact * (1 - 1e-13) <= tail <= exact + 1e-9 / epsilon
    assert float(law.tail(count * epsilon * 1.001)) == 0.0
    assert law.mean() == pytest.approx(count * epsilon * math.tanh(epsilon / 2), rel=1e-9)


def test_a_loss_that_equals_x_up_to_rounding_is_counted() -> None:
    law = (3 * Cost.randomized_response(0.1)).loss()
    truth = binomial(3, 0.1)
    assert float(law.tail(0.1)) == pytest.approx(truth[1] + truth[3], rel=1e-9)


def test_the_laplace_loss_has_its_atoms() -> None:
    # loss +1/b with probability 1/2, -1/b with probability e^{-1/b} / 2, in between continuous
    law = Cost.laplace(2.0).loss()
    assert not law.is_lattice
    assert float(law.mass[-1]) == pytest.approx(0.5, abs=1e-3)
    assert float(law.tail(0.49999)) == pytest.approx(0.5, abs=1e-5)
    assert float(law.tail(-0.5001)) == 1.0
    assert float(law.tail(-0.49999)) == pytest.approx(1 - 0.5 * math.exp(-0.5), abs=1e-5)
    assert law.quantile(0.6) == pytest.approx(0.5, rel=1e-9)


def test_two_laplace_releases_share_the_atom_of_their_largest_loss() -> None:
    law = (2 * Cost.laplace(1.0)).loss()
    assert 0.25 <= float(law.tail(1.9999)) < 0.255
    assert law.infinite == 0.0
    assert float(law.mass[law.loss > 1.99].sum()) == pytest.approx(0.25, abs=0.01)


def test_the_two_directions_of_a_sampled_mechanism_differ() -> None:
    # w = 1 - q + q e^{x - 1/2}; forward the loss is ln w under w N(0, 1), backward -ln w under N(0, 1)
    x = np.linspace(-12.0, 13.0, 200_001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    ratio = 0.9 + 0.1 * np.exp(x - 0.5)
    step = x[1] - x[0]
    cost = 50 * Cost.gaussian(1.0).sampled(0.1)
    forward, backward = Loss.of(cost, points=64), Loss.of(cost, direction="backward", points=64)
    assert forward.mean() == pytest.approx(50 * step * float((density * ratio * np.log(ratio)).sum()), rel=1e-8)
    assert backward.mean() == pytest.approx(-50 * step * float((density * np.log(ratio)).sum()), rel=1e-8)
    assert backward.quantile(0.999) < forward.quantile(0.999)
    assert backward.loss[-1] <= 50 * -math.log(0.9) * (1 + 1e-9)  # the largest loss backwards


def test_ten_thousand_steps_agree_with_one_fast_fourier_transform() -> None:
    # an independent, uncertified composition: the law of one step on a fine grid, its transform to the power 10^4
    size, half = 1 << 21, 16.0
    step = 2 * half / size
    edges = step * (np.arange(-2_000_000 // 16, 2_000_000 // 16) - 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = 0.5 + np.log1p(np.maximum(np.expm1(edges) / 0.01, -1.0))
    below = 0.99 * ndtr(z) + 0.01 * ndtr(z - 1.0)
    mass = np.diff(below)
    circle = np.zeros(size)
    np.add.at(circle, np.arange(-2_000_000 // 16, 2_000_000 // 16 - 1) % size, mass)
    spectrum = np.fft.rfft(circle)
    total = np.maximum(np.fft.irfft(spectrum**10_000, size), 0.0)
    losses = step * np.fft.fftfreq(size, 1 / size)
    law = SAMPLED.loss()
    for x in (-1.0, 0.0, 0.8, 2.0, 4.0):
        assert float(law.tail(x)) == pytest.approx(float(total[losses > x].sum()), rel=2e-3)
    assert law.quantile(0.5) == pytest.approx(0.82, abs=0.02)


def test_boxes_leak_outright_with_their_delta() -> None:
    law = (10 * Cost.approximate(0.1, 1e-3)).loss()
    assert law.infinite == pytest.approx(1 - 0.999**10, rel=1e-12)
    assert law.quantile(1 - 0.999 * law.infinite) == math.inf
    assert law.quantile(0.5) < 1.0
    assert float(law.tail(1e9)) == law.infinite


def test_outright_leaks_and_unbounded_losses_go_together() -> None:
    law = (3 * Cost.approximate(0.5, 1e-3) + Cost.gaussian(2.0)).loss()
    leak = 1 - 0.999**3
    assert law.infinite == pytest.approx(leak, rel=1e-9)
    assert float(law.mass.sum()) == pytest.approx(1 - leak, rel=1e-9)
    assert float(law.tail(30.0)) == pytest.approx(leak, rel=1e-9)
    assert law.loss[-1] < 10.0


def test_quantiles_are_never_too_small() -> None:
    law = GAUSSIAN.loss()
    for p in (0.01, 0.5, 0.9, 1 - 1e-6):
        x = law.quantile(p)
        assert float(gaussian_tail(x)) <= 1 - p
        assert float(gaussian_tail(x - 0.1)) >= 1 - p
    assert law.quantile(0.0) == law.loss[0]


def test_nothing_released_is_loss_zero() -> None:
    law = Cost.zero().loss()
    assert (law.loss.tolist(), law.mass.tolist(), law.infinite) == ([0.0], [1.0], 0.0)
    assert float(law.tail(0.0)) == 0.0
    assert float(law.tail(-1e-9)) == 1.0
    assert law.quantile(1.0) == 0.0


def test_renyi_divergences_alone_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="Rényi"):
        (Cost.laplace(1.0) + Cost.concentrated(0.1)).loss()


@pytest.mark.parametrize(
    ("options", "name"),
    [({"direction": "sideways"}, "direction"), ({"points": 3}, "points"), ({"points": 20.5}, "points")],
)
def test_bad_options_are_refused(options: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        Loss.of(Cost.laplace(1.0), **options)  # type: ignore[arg-type]


def test_bad_readings_are_refused() -> None:
    law = Cost.laplace(1.0).loss()
    with pytest.raises(InvalidArgument, match="x = "):
        law.tail([0.0, math.nan])
    with pytest.raises(InvalidArgument, match="p = "):
        law.quantile(1.5)


def test_a_law_survives_pickling() -> None:
    law = Loss.of(GAUSSIAN, points=64)
    again = pickle.loads(pickle.dumps(law))
    assert again.loss.tolist() == law.loss.tolist()
    assert again.mass.tolist() == law.mass.tolist()


def test_a_loss_prints_in_one_line() -> None:
    text = repr(Cost.gaussian(1.0).loss())
    assert text.startswith("Loss(Cost(gaussian(noise_multiplier=1)), direction='forward', 640 points from -7.5 to ")
    assert "mean 0.5, std 1, infinite" in text
    assert "\n" not in text
