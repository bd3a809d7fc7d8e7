"""Curves of sizes: known laws are continued as they go on, and nothing that a sketch may hold makes them fail."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from discreet.query.choices import CANDIDATES, OFTEN, STEPS, bound_of
from discreet.query.curve import Curve, End, shape_of
from discreet.query.losses import added
from discreet.query.sketch import Sketch

PEOPLE = 100_000
EPSILON = 0.035


def counted(sizes: np.ndarray, length: int = 160) -> np.ndarray:
    numbers = np.where(sizes > 0.5, np.ceil(np.log2(np.maximum(sizes, 0.5)) * STEPS - 1e-9), CANDIDATES[0])
    return np.bincount((numbers - CANDIDATES[0]).astype(int), minlength=length)


def noisy(sizes: np.ndarray, stream: np.random.Generator, epsilon: float = EPSILON) -> Sketch:
    counts = counted(sizes)
    return Sketch(tuple((counts + np.rint(stream.laplace(0, 1 / epsilon, counts.size))).tolist()), epsilon)


def spread(people: int, quantile: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """People who have exactly the quantiles of a law, rounded up."""
    return np.ceil(quantile((np.arange(people) + 0.5) / people))


LAWS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    # the law, and how far the size that two people exceed may be off, in logarithms, in the mean and in one sketch
    "lognormal": (lambda p: 20 * np.exp(ndtri(p)), 0.1),
    "lognormal of spread 1/2": (lambda p: 20 * np.exp(0.5 * ndtri(p)), 0.1),
    "normal": (lambda p: np.maximum(100 + 15 * ndtri(p), 1), 0.1),
    "exponential": (lambda p: -30 * np.log1p(-p), 0.25),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_smooth_law_is_continued_beyond_what_a_sketch_shows(law: str) -> None:
    quantile, far = LAWS[law]
    sizes, stream = spread(PEOPLE, quantile), np.random.default_rng(3)
    curves = [shape_of(noisy(sizes, stream)) for _ in range(24)]
    found = [curve for curve in curves if isinstance(curve, Curve)]
    assert len(found) >= 20
    for above in (2.0, 20.0):
        true = math.log(quantile(np.array([1 - above / PEOPLE]))[0])
        off = np.log([curve.exceeded_by(above) for curve in found]) - true
        assert abs(np.mean(off)) < far
        assert np.std(off) < 0.2
    # a sketch cannot show so few: its noise is 29 a bucket
    assert 1 / EPSILON > 20


def test_what_is_lost_is_what_the_law_has_beyond_the_bound() -> None:
    spread_of, people = 0.8, 50_000
    t = np.linspace(-2, 9, 4000)
    from discreet.divergence.normal import log_tails

    curve = Curve(people, t, math.log(people) + log_tails(t / spread_of))
    for above in (1.0, 5.0, 100.0):
        bound = curve.exceeded_by(above)
        stream = np.random.default_rng(1)
        # the sum over people of what is above, and of its square, by drawing from the law beyond the bound
        beyond = np.exp(spread_of * ndtri(1 - stream.random(400_000) * above / people)) - bound
        mean, variance = curve.lost(bound)
        assert mean == pytest.approx(above * beyond.mean(), rel=0.03)
        assert variance == pytest.approx(above * (beyond**2).mean(), rel=0.1)


def curve_of(log_size: Callable[[np.ndarray], np.ndarray]) -> Curve:
    """The curve of a law, given log x by the logarithm of the part of people that are larger."""
    above = np.linspace(math.log(0.3 * PEOPLE), math.log(1e-4), 2000)
    return Curve(PEOPLE, log_size(above - math.log(PEOPLE)), above)


@pytest.mark.parametrize("groups", [1, 40])
@pytest.mark.parametrize("multiplier", [0.3, 1.17, 4.4])
@pytest.mark.parametrize(
    "log_size",
    [
        lambda part: 2 - ndtri(np.exp(part)),  # lognormal of spread 1
        lambda part: 2 - 0.3 * ndtri(np.exp(part)),
        lambda part: np.log(-20 * part),  # exponential
    ],
    ids=["lognormal", "narrow", "exponential"],
)
def test_the_best_bound_has_nearly_the_least_median_error(
    log_size: Callable[[np.ndarray], np.ndarray], multiplier: float, groups: int
) -> None:
    """Tables are drawn from the law; beside each bound the error is Laplace noise and what is lost of a group."""
    curve, stream = curve_of(log_size), np.random.default_rng(5)
    usual = OFTEN * multiplier * groups
    least = curve.exceeded_by(40 * usual)
    most = curve.above(least)
    tails = []
    for _ in range(4000):
        parts = stream.random(stream.poisson(most / groups)) * most
        tails.append(np.array([curve.exceeded_by(part) for part in parts]))

    def error(bound: float) -> float:
        mean = curve.lost(bound)[0] / groups * added(curve.above(bound), groups=groups, blur=1.0)
        lost = np.array([np.maximum(tail - bound, 0).sum() for tail in tails])
        noise = multiplier * bound * np.random.default_rng(6).laplace(size=lost.size)
        return float(np.median(np.abs(noise - lost + mean)))

    best = curve.best(usual, groups=groups, noise=multiplier * math.log(2), blur=1.0)
    tried = {bound: error(bound) for bound in {curve.bound(usual * 2.0**k) for k in np.arange(-2, 3.6, 0.5)}}
    assert error(best) < 1.1 * min(tried.values())
    if groups == 1 and multiplier > 1:
        assert error(best) < error(curve.bound(usual))
    # whoever doubts the curve stays nearer to what it says that nobody exceeds
    assert curve.best(usual, groups=groups, noise=multiplier * math.log(2), blur=4.0) >= best


def test_fewer_are_above_a_larger_size_and_less_is_lost() -> None:
    stream = np.random.default_rng(8)
    curve = shape_of(noisy(np.ceil(20 * stream.lognormal(0, 1, PEOPLE)), stream))
    assert isinstance(curve, Curve)
    sizes = [curve.exceeded_by(above) for above in (1000.0, 100.0, 10.0, 1.0, 0.1)]
    assert sizes == sorted(sizes)
    lost = [curve.lost(size)[0] for size in sizes]
    assert lost == sorted(lost, reverse=True)
    assert curve.units == pytest.approx(PEOPLE, rel=0.02)


@pytest.mark.parametrize(
    ("sizes", "end"),
    [
        (np.full(3000, 1.0), 1.0),
        (np.full(20_000, 12.0), 13.0),
        (np.minimum(spread(50_000, LAWS["lognormal"][0]), 100), 107.0),
        (np.concatenate([np.zeros(90_000), np.full(3000, 1.0)]), 1.0),
    ],
    ids=["one each", "twelve each", "at most a hundred", "many have nothing"],
)
def test_where_everybody_has_the_same_or_a_limit_sizes_end_there(sizes: np.ndarray, end: float) -> None:
    stream = np.random.default_rng(5)
    found = [shape_of(noisy(sizes, stream)) for _ in range(20)]
    bounds = [shape.bound(2.0) for shape in found if isinstance(shape, End)]
    assert len(bounds) >= 18
    assert np.median(bounds) == pytest.approx(end, rel=0.12)
    assert np.median(bounds) >= sizes.max()


@pytest.mark.parametrize(
    "sizes",
    [
        np.zeros(0),
        np.zeros(100_000),
        spread(400, LAWS["lognormal"][0]),
        np.ceil(5 * np.random.default_rng(2).pareto(2, 100_000) + 5),
    ],
    ids=["nobody", "nothing", "too few", "a heavy tail"],
)
def test_where_nothing_smooth_is_to_be_seen_there_is_no_shape(sizes: np.ndarray) -> None:
    stream = np.random.default_rng(6)
    found = [shape_of(noisy(sizes, stream)) for _ in range(20)]
    assert sum(shape is None for shape in found) >= 18


def test_three_sizes_are_too_few_to_see_a_bend() -> None:
    stream = np.random.default_rng(8)
    sizes = stream.poisson(0.5, 20_000).astype(float)  # at most 5 or 6
    shapes = [shape_of(noisy(sizes, stream, epsilon=0.105)) for _ in range(60)]
    assert max(shape.bound(1.0) for shape in shapes if shape is not None) < 12


def test_many_units_far_beyond_are_seen() -> None:
    stream = np.random.default_rng(7)
    people = 10 * stream.lognormal(0, 0.4, 50_000)
    robots = 3000 * stream.lognormal(0, 0.4, 1500)
    curves = [shape_of(noisy(np.ceil(np.concatenate([people, robots])), stream)) for _ in range(20)]
    low = [curve for curve in curves if curve is not None and curve.bound(2.0) < 1000]
    assert len(low) <= 1


COUNTS = st.lists(st.floats(-1e6, 1e9) | st.integers(-300, 3000), min_size=2, max_size=len(CANDIDATES))


@settings(max_examples=150, deadline=None)
@given(counts=COUNTS, epsilon=st.floats(1e-6, 50), above=st.floats(1e-3, 1e6))
@example(counts=[0] * 448 + [10**9], epsilon=1.0, above=1.0)
@example(counts=[0, 10**9, 0], epsilon=1.0, above=1.0)
@example(counts=[0] + [10**6] * 440, epsilon=1.0, above=1.0)
@example(counts=[0, *range(1000, 30_000, 1000)], epsilon=0.5, above=1e-3)
@example(counts=[0, 533_485_535, 4_211_488, 0, 17_281_295], epsilon=6.205598855821098, above=1.0)
def test_whatever_a_sketch_holds_a_bound_can_be_read_off_or_not(
    counts: list[float], epsilon: float, above: float
) -> None:
    shape = shape_of(Sketch(tuple(counts), epsilon))
    if shape is None:
        return
    size = shape.bound(above)
    assert math.isfinite(size)
    assert size >= 1
    assert size.is_integer()
    if isinstance(shape, End):
        assert size in [max(1.0, math.floor(bound_of(number) * (1 + 1e-9))) for number in CANDIDATES]
        return
    best = shape.best(above, groups=3.0, noise=0.8, blur=1.5)
    assert math.isfinite(best)
    assert best >= 1
    assert best.is_integer()
    assert 0 < shape.above(size) <= shape.most
    assert shape.steepness(size) > 0
    assert min(shape.lost(size)) >= 0
