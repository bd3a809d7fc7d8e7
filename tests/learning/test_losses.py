"""Losses keep the constants they declare, and slopes are derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.learning import GaussianHinge, Huber, Logistic, MulticlassHinge, Poisson, SmoothedHinge, Softmax

ONE = [
    Logistic(),
    Huber(limit=2.0),
    SmoothedHinge(),
    SmoothedHinge(width=0.01),
    GaussianHinge(),
    GaussianHinge(width=0.02),
    Poisson(most=8.0, ceiling=1.5),
]


def of(loss):
    return type(loss).__name__


@pytest.mark.parametrize("loss", ONE, ids=of)
@given(margin=st.floats(-60, 60), target=st.floats(-5, 12), step=st.floats(1e-3, 5))
def test_slopes_and_their_change_stay_within_the_constants(loss, margin, target, step):
    margins = np.array([margin, margin + step])
    targets = loss.checked(np.array([target, target]))
    slopes = loss.slopes(margins, targets)
    assert np.abs(slopes).max() <= loss.lipschitz
    change = slopes[1] - slopes[0]
    assert -1e-12 * loss.lipschitz <= change <= loss.smoothness * step * (1 + 1e-9) + 1e-12  # convex and smooth


@pytest.mark.parametrize("loss", ONE, ids=of)
def test_slopes_are_derivatives_of_values_and_curvatures_of_slopes(loss):
    margins = np.linspace(-4, 4, 81) + 0.00123
    for y in (0.0, 1.0, 3.0):
        targets = loss.checked(np.full(81, y))
        h = 1e-5
        rise = (loss.values(margins + h, targets) - loss.values(margins - h, targets)) / (2 * h)
        assert rise == pytest.approx(loss.slopes(margins, targets), abs=1e-5)
        bend = (loss.slopes(margins + h, targets) - loss.slopes(margins - h, targets)) / (2 * h)
        assert bend == pytest.approx(loss.curvatures(margins, targets), abs=2e-3 * loss.smoothness)


@given(seed=st.integers(0, 2**32), k=st.integers(2, 12), size=st.sampled_from([0.1, 1.0, 30.0, 800.0]))
def test_softmax_slopes_and_their_change_stay_within_the_constants(seed, k, size):
    rng = np.random.default_rng(seed)
    loss = Softmax(outputs=k)
    margins = rng.standard_normal((5, k)) * size
    targets = rng.integers(0, k, 5)
    slopes = loss.slopes(margins, targets)
    assert np.linalg.norm(slopes, axis=1).max() <= loss.lipschitz
    step = rng.standard_normal((5, k))
    change = loss.slopes(margins + step, targets) - slopes
    assert (np.linalg.norm(change, axis=1) <= loss.smoothness * np.linalg.norm(step, axis=1) * (1 + 1e-9) + 1e-12).all()


def test_softmax_constants_are_nearly_attained():
    loss = Softmax(outputs=2)
    assert np.linalg.norm(loss.slopes(np.array([[50.0, -50.0]]), np.array([1]))) == pytest.approx(loss.lipschitz)
    h = 1e-4 / np.sqrt(2)
    slopes = loss.slopes(np.array([[h, -h], [-h, h]]), np.array([0, 0]))
    assert np.linalg.norm(slopes[0] - slopes[1]) / 2e-4 == pytest.approx(loss.smoothness, rel=1e-6)


@pytest.mark.parametrize("loss", [*ONE, Softmax(outputs=5), MulticlassHinge(outputs=5), MulticlassHinge(40)], ids=of)
def test_a_rows_slope_does_not_depend_on_its_place_or_its_company(loss):
    rng = np.random.default_rng(5)
    margins = rng.standard_normal((1003,) if loss.outputs == 1 else (1003, loss.outputs)) * 3
    targets = loss.checked(rng.integers(0, 5, 1003))
    slopes = loss.slopes(margins, targets)
    for start in (1, 2, 3, 5, 8, 501, 1002):
        assert (loss.slopes(margins[start:].copy(), targets[start:]) == slopes[start:]).all()
