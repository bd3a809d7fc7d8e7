"""Quantiles: the exponential mechanism over places, exactly; monotone, order-free, with the cost of its rounds."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtr, chdtrc

from discreet import Cost
from discreet.audit.refusals import CountingGenerator
from discreet.errors import InvalidArgument
from discreet.mechanisms import Estimator, Maximum, Median, Minimum, Quantiles
from discreet.mechanisms.estimators.quantiles import _parts
from discreet.mechanisms.estimators.ranks import choose_place
from discreet.noise.scores import Scores
from discreet.noise.testing import SeededGenerator
from discreet.noise.weighted import settle_weighted, weighted_choice

ALPHA = 1e-9
COLUMN = np.random.default_rng(9).normal(50, 12, 4000)
ESTIMATORS: list[Any] = [
    Median(0, 100, epsilon=1),
    Median(0, 100, epsilon=1, adjacency="replace-one", bracket=0.05),
    Quantiles(0, 100, levels=[0.1, 0.25, 0.5, 0.75, 0.9], epsilon=2),
    Quantiles(0, 100, levels=[0.9, 0.95, 0.99], epsilon=2, adjacency="replace-one"),
    Maximum(0, 100, epsilon=1),
    Minimum(0, 100, epsilon=1),
]


def fits(draws: list[int], law: dict[int, float]) -> float:
    counts = Counter(draws)
    assert set(counts) <= set(law)
    statistic = sum((counts[y] - len(draws) * p) ** 2 / (len(draws) * p) for y, p in law.items())
    return float(chdtrc(len(law) - 1, statistic))


def law_of_places(rows: list[int], last: int, target: Fraction, scale: float) -> dict[int, float]:
    """The exponential mechanism, place by place."""
    weights = {y: math.exp(-scale * abs(sum(x < y for x in rows) - target)) for y in range(last + 1)}
    total = math.fsum(weights.values())
    return {y: weight / total for y, weight in weights.items()}


@pytest.mark.parametrize(
    ("rows", "target"),
    [([2, 3, 3, 7], Fraction(2)), ([], Fraction(0)), ([0, 0, 9], Fraction(3, 2)), ([5], Fraction(1))],
)
def test_a_place_is_chosen_with_the_law_of_the_exponential_mechanism(rows: list[int], target: Fraction) -> None:
    placed = np.array(sorted(rows), dtype=np.int64)
    draws = [
        choose_place(placed, first=0, last=9, target=target, scale=Fraction(1, 2), generator=None) for _ in range(4000)
    ]
    assert fits(draws, law_of_places(rows, 9, target, 0.5)) > ALPHA
    assert not rows or fits(draws, law_of_places(rows, 9, target, 1.5)) < ALPHA


def test_the_law_keeps_epsilon_between_neighbours_as_fractions_of_powers() -> None:
    # with e^{a/2} replaced by the whole number 2 all probabilities are fractions, and so is their largest ratio
    def law(rows: tuple[int, ...]) -> list[Fraction]:
        n = len(rows)
        weights = [Fraction(1, 2 ** abs(2 * sum(x < y for x in rows) - n)) for y in range(4)]
        return [weight / sum(weights) for weight in weights]

    worst = Fraction(1)
    for rows in itertools.product(range(4), repeat=3):
        for extra in range(4):
            one, two = law(rows), law((*rows, extra))
            ratios = [a / b for a, b in zip(one, two, strict=True)]
            worst = max(worst, *ratios, *(1 / ratio for ratio in ratios))
            assert max(ratios) / min(ratios) <= 4  # the bounded range: e^{2 a s}, s = 1/2, e^{a/2} = 2
    assert 2 <= worst <= 4


def test_weights_are_whole_numbers_and_the_law_is_theirs() -> None:
    scores, weights = np.array([0, 1, 2, 5]), np.array([4, 0, 2, 1])
    draws = [weighted_choice(scores, weights, scale=Fraction(1, 2)) for _ in range(5000)]
    raw = {i: w * math.exp(s / 2) for i, (s, w) in enumerate(zip([0, 1, 2, 5], [4, 0, 2, 1], strict=True)) if w}
    total = sum(raw.values())
    assert fits(draws, {i: p / total for i, p in raw.items()}) > ALPHA
    assert fits(draws, dict.fromkeys(raw, 1 / 3)) < ALPHA


def test_the_refinement_agrees_with_the_floats_wherever_they_are_certain() -> None:
    candidates, weights = Scores(np.array([0, 1, 3, 2])), np.array([7, 1, 2, 1 << 40])
    exact = np.cumsum(weights * np.exp(-0.3 * np.array([3.0, 2.0, 0.0, 1.0])))
    for word in range(0, (1 << 64) - (1 << 12), (1 << 64) // 997):
        chosen = settle_weighted(word, candidates, weights, Fraction(3, 10), SeededGenerator(1))
        assert chosen == np.searchsorted(exact / exact[-1], word / 2**64, side="right")


@pytest.mark.parametrize("weights", [[0, 0], [1], [1, -1], [0.5, 0.5], [1 << 63, 1]])
def test_bad_weights_are_refused(weights: list[Any]) -> None:
    with pytest.raises(InvalidArgument):
        weighted_choice([1, 2], np.array(weights))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_results_are_monotone_within_bounds_and_free_of_the_order(estimator: Any) -> None:
    turned = COLUMN[np.random.default_rng(3).permutation(len(COLUMN))]
    one, other = (estimator.release(rows, generator=SeededGenerator(5)) for rows in (COLUMN, turned))
    assert np.array_equal(np.asarray(one), np.asarray(other))
    for rows in (COLUMN, [], [3.0], [math.nan, math.inf, -math.inf], np.full(500, 42.0)):
        values = np.atleast_1d(np.asarray(estimator.release(rows)))
        assert (np.diff(values) >= 0).all()
        assert ((values >= 0) & (values <= 100)).all()
        assert np.all(np.divmod(values, estimator.granularity)[1] == 0)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_json_and_bad_data(estimator: Any) -> None:
    assert Estimator.from_dict(json.loads(json.dumps(estimator.to_dict()))) == estimator
    for bad in estimator.bad_values():
        generator = CountingGenerator()
        with pytest.raises(InvalidArgument):
            estimator.release(bad, generator=generator)
        assert generator.taken == 0


@pytest.mark.parametrize(("levels", "rounds"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (15, 4)])
def test_the_cost_is_that_of_the_rounds_and_every_round_has_disjoint_parts(levels: int, rounds: int) -> None:
    estimator = Quantiles(0, 1, levels=[(i + 1) / (levels + 1) for i in range(levels)], epsilon=1)
    assert estimator.rounds == rounds
    assert estimator.cost == rounds * Cost.exponential_mechanism(estimator._epsilon_of_round)
    assert 0.999 < estimator.cost.epsilon(0) <= 1
    assert estimator.cost.epsilon(1e-3) < 1
    parts = list(_parts(levels))
    assert sorted(middle for _, middle, _ in parts) == list(range(levels))
    depth: dict[int, int] = {}
    for low, middle, high in parts:
        depth[middle] = 1 + max((depth[i] for i in (low - 1, high) if i in depth), default=0)
    assert max(depth.values()) == rounds


def test_the_rank_error_holds_and_so_do_intervals() -> None:
    estimator = Quantiles(0, 100, levels=[0.25, 0.5, 0.75], epsilon=8, bracket=0.15, adjacency="replace-one")
    exact = np.quantile(COLUMN, [0.25, 0.5, 0.75])
    runs, held = 100, 0
    for _ in range(runs):
        low, high = estimator.release(COLUMN).interval(0.9)
        held += bool(((low <= exact) & (exact <= high)).all())
        assert (low > 0).all(), "the bracket is wide enough for these rows"
        assert (high < 100).all()
    assert bdtr(held, runs, 0.9) > ALPHA
    assert Median(0, 100, epsilon=1).release(COLUMN).interval() == (0.0, 100.0)
    assert Median(0, 100, epsilon=1, rows=3000, bracket=0.2).release(COLUMN).interval()[0] > 30


def test_many_equal_rows_are_found_exactly() -> None:
    rows = np.repeat([10.0, 20.0, 30.0], 2000)
    estimate = Quantiles(0, 100, levels=[0.2, 0.5, 0.8], epsilon=4).release(rows)
    assert np.asarray(estimate) == pytest.approx([10, 20, 30], abs=1e-3)


def test_errors_shrink_with_the_number_of_rows() -> None:
    errors = []
    for n in (200, 20_000):
        rows = (np.arange(n) + 0.5) * 100 / n
        errors.append(np.mean([abs(float(Median(0, 100, epsilon=0.5).release(rows)) - 50) for _ in range(30)]))
    assert errors[1] < errors[0] / 10


def test_the_maximum_stays_below_the_largest_row_and_close_to_it() -> None:
    rows = np.arange(10_000) / 200.0
    maximum, minimum = Maximum(-50, 100, epsilon=1), Minimum(-50, 100, epsilon=1)
    above = 0
    for _ in range(200):
        largest = maximum.release(rows)
        above += float(largest) > rows.max()
        assert (rows > float(largest)).sum() <= maximum.rows_beyond(1 - 1e-12)
        assert (rows < float(minimum.release(rows))).sum() <= minimum.rows_beyond(1 - 1e-12)
    assert above <= 20  # P(above) <= 0.01: more than 20 of 200 with probability below 1e-13
    assert largest.interval(0.9)[1] == 100
    assert largest.interval(0.9)[0] == pytest.approx(float(largest), abs=1e-3)
    assert largest.interval(0.995) == (-50, 100)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Median(0, 1, epsilon=0),
        lambda: Median(0, 1, epsilon=math.inf),
        lambda: Median(1, 0, epsilon=1),
        lambda: Median(0, 1, epsilon=1, levels=(0.4,)),
        lambda: Median(0, 1, epsilon=1, bracket=0),
        lambda: Median(0, 1, epsilon=1, rows=0),
        lambda: Median(0, 1, epsilon=1, granularity=0.3),
        lambda: Median(0, 1, epsilon=1, missing=3),
        lambda: Quantiles(0, 1, epsilon=1, levels=[]),
        lambda: Quantiles(0, 1, epsilon=1, levels=0.5),
        lambda: Quantiles(0, 1, epsilon=1, levels=[0.5, 0.5]),
        lambda: Quantiles(0, 1, epsilon=1, levels=[0.5, 0.4]),
        lambda: Quantiles(0, 1, epsilon=1, levels=[0.0, 0.4]),
        lambda: Quantiles(0, 1, epsilon=1, levels=[1e-9, 0.4]),
        lambda: Maximum(0, 1, epsilon=1, beyond=1),
        lambda: Minimum(0, 1, epsilon=-1),
    ],
)
def test_bad_parameters_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()
