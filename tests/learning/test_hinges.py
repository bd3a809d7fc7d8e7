"""Hinges for two classes and for many keep the constants that privacy rests on, and are as exact as is stated."""

import math
from decimal import Decimal, localcontext
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.learning import GaussianHinge, MulticlassHinge, SmoothedHinge

WIDTHS = st.sampled_from([0.01, 0.5, 3.0])


def drawn(rng, loss, size, rows=5):
    margins = rng.standard_normal((rows, loss.outputs)) * size
    return margins, rng.integers(0, loss.outputs, rows)


def test_the_gaussian_hinge_is_close_to_the_hinge():
    loss = GaussianHinge(width=0.1)
    margins = np.linspace(-3, 3, 601)
    excess = loss.values(margins, np.ones(601)) - np.maximum(0, 1 - margins)
    assert excess.min() >= -1e-12
    assert excess.max() <= 0.1 / np.sqrt(2 * np.pi) + 1e-12


@given(seed=st.integers(0, 2**32), k=st.integers(2, 12), size=st.sampled_from([0.1, 1.0, 30.0, 1e6]), width=WIDTHS)
def test_slopes_of_many_classes_and_their_change_stay_within_the_constants(seed, k, size, width):
    rng, loss = np.random.default_rng(seed), MulticlassHinge(outputs=k, width=width)
    margins, targets = drawn(rng, loss, size)
    slopes = loss.slopes(margins, targets)
    assert np.linalg.norm(slopes, axis=1).max() <= loss.lipschitz * (1 + 1e-12)
    assert np.abs(slopes.sum(axis=1)).max() <= 1e-14 * k
    step = rng.standard_normal((5, k)) * rng.choice([1e-3, 1.0]) * min(width, 1.0)
    change = loss.slopes(margins + step, targets) - slopes
    size_of_step = np.linalg.norm((margins + step) - margins, axis=1)
    assert (np.linalg.norm(change, axis=1) <= loss.smoothness * size_of_step * (1 + 1e-9) + 1e-12 * (1 + size)).all()
    assert (np.sum(change * step, axis=1) >= -1e-10 * (1 + size)).all()  # convex


def test_both_constants_of_many_classes_are_attained():
    loss = MulticlassHinge(outputs=3, width=0.4)
    assert np.linalg.norm(loss.slopes(np.array([[9.0, 0.0, 0.0]]), np.array([1]))) == pytest.approx(loss.lipschitz)
    margins = np.array([[0.0, 0.0, -9.0], [1e-3, -1e-3, -9.0]])
    slopes = loss.slopes(margins, np.array([2, 2]))
    steepest = np.linalg.norm(slopes[1] - slopes[0]) / np.linalg.norm(margins[1] - margins[0])
    assert steepest == pytest.approx(loss.smoothness, rel=1e-9)


@given(seed=st.integers(0, 2**32), k=st.integers(2, 8), width=WIDTHS)
def test_slopes_of_many_classes_are_derivatives_of_values(seed, k, width):
    rng, loss = np.random.default_rng(seed), MulticlassHinge(outputs=k, width=width)
    margins, targets = drawn(rng, loss, 1.0)
    along, h = rng.standard_normal((5, k)), 1e-6
    rise = (loss.values(margins + h * along, targets) - loss.values(margins - h * along, targets)) / (2 * h)
    between = (loss.slopes(margins + h * along, targets) + loss.slopes(margins - h * along, targets)) / 2
    expected = np.sum(between * along, axis=1)
    assert rise == pytest.approx(expected, abs=2e-9 + 4 * h * loss.smoothness * np.sum(along**2, axis=1).max())


@given(seed=st.integers(0, 2**32), k=st.integers(2, 8), width=WIDTHS, size=st.sampled_from([0.3, 3.0]))
def test_the_hinge_of_many_classes_is_close_to_that_of_crammer_and_singer(seed, k, width, size):
    rng, loss = np.random.default_rng(seed), MulticlassHinge(outputs=k, width=width)
    margins, targets = drawn(rng, loss, size)
    own = np.eye(k)[targets]
    sharp = (margins + 1 - own).max(axis=1) - np.sum(margins * own, axis=1)
    excess = loss.values(margins, targets) - sharp
    assert excess.min() >= -1e-12
    assert excess.max() <= width / 4 + 1e-12


@given(seed=st.integers(0, 2**32), width=WIDTHS)
def test_for_two_classes_it_is_the_smoothed_hinge_of_the_difference(seed, width):
    rng = np.random.default_rng(seed)
    margins, targets = drawn(rng, MulticlassHinge(outputs=2), 2.0)
    difference = margins[:, 1] - margins[:, 0]
    two, one = MulticlassHinge(outputs=2, width=width), SmoothedHinge(width=width)
    assert two.values(margins, targets) == pytest.approx(one.values(difference, targets), abs=1e-12)
    assert two.slopes(margins, targets)[:, 1] == pytest.approx(one.slopes(difference, targets), abs=1e-12 / width)


def nearest(scores):
    """The projection onto the probability vectors in rational arithmetic: the support whose p is the nearest."""
    best = None
    for size in range(1, len(scores) + 1):
        for support in combinations(range(len(scores)), size):
            shift = (sum(scores[j] for j in support) - 1) / size
            p = [scores[j] - shift if j in support else Decimal(0) for j in range(len(scores))]
            distance = sum((a - b) ** 2 for a, b in zip(p, scores, strict=True))
            if min(p) >= 0 and (best is None or distance < best[0]):
                best = distance, p
    return best[1]


def test_slopes_of_many_classes_are_those_of_real_arithmetic_as_exactly_as_solvers_assume():
    rng, worst = np.random.default_rng(9), 0.0
    for width in (1e-3, 0.5, 20.0):
        loss = MulticlassHinge(outputs=6, width=width)
        for size in (0.1 * width, width, 30.0):
            margins, targets = drawn(rng, loss, size, rows=4)
            margins[0] = np.round(margins[0], 1)  # with ties
            for row, target, found in zip(margins, targets, loss.slopes(margins, targets), strict=True):
                with localcontext() as context:
                    context.prec = 50
                    half = Decimal(width) / 2
                    scores = [(Decimal(float(m)) + (j != target)) / half for j, m in enumerate(row)]
                    exact = [p - (j == target) for j, p in enumerate(nearest(scores))]
                    error = sum((Decimal(float(a)) - b) ** 2 for a, b in zip(found, exact, strict=True)).sqrt()
                # 6 sqrt(K) u for the projection; v is rounded once, by u |v|, before it is divided
                allowed = 2**-53 * (6 * math.sqrt(6) + loss.smoothness * (math.sqrt(6) + np.linalg.norm(row)))
                worst = max(worst, float(error) / allowed)
    assert 0.01 < worst <= 1.0


def test_sums_of_very_many_classes_lose_nothing():
    k, loss = 20_000, MulticlassHinge(outputs=20_000, width=2.0)
    margins = -1 - np.random.default_rng(2).random((1, k)) * 1e-4
    margins[0, 0] = 0.0
    slopes = loss.slopes(margins, np.array([0]))
    # the probabilities add up to one: k of them, each with the error of the common threshold
    assert abs(math.fsum(slopes[0])) <= k * 4 * 2**-53
