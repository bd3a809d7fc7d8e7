"""Private choices of bounds: what they may cost, and that they choose well."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp

from discreet import Budget, Curator
from discreet.query import choices
from discreet.query.choices import (
    STEPS,
    bound_of,
    bucket,
    choose_bound,
    choose_share,
    lean,
    most_above,
    number_of,
    spread_above,
    tolerated,
    units_above,
)


def law(scores: list, scale: object) -> np.ndarray:
    logs = np.array([float(score * scale) for score in scores])
    return logs - logsumexp(logs)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The log-probabilities of every choice, as they are handed to the exact sampler."""
    laws: list[np.ndarray] = []
    original = choices.exponential_choice

    def spied(scores: list, *, scale: object, generator: object = None) -> int:
        laws.append(law(scores, scale))
        return int(original(scores, scale=scale))

    monkeypatch.setattr(choices, "exponential_choice", spied)
    return laws


@pytest.mark.parametrize("allowed", [0.0, 1.5, 30.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.7])
def test_one_unit_more_moves_every_probability_by_no_more_than_epsilon(
    allowed: float, epsilon: float, seen: list[np.ndarray]
) -> None:
    rng = np.random.default_rng(4)
    buckets, units = np.arange(-4, 60), rng.integers(0, 9, 64)
    worst = 0.0
    for extra in range(0, 64, 3):
        more = units.copy()
        more[extra] += 1
        seen.clear()
        for counts in (units, more):
            choose_bound(buckets, counts, epsilon=epsilon, allowed=allowed)
        gap = seen[1] - seen[0]
        assert np.max(np.abs(gap)) <= epsilon * (1 + 1e-9)
        assert np.max(gap) - np.min(gap) <= epsilon * (1 + 1e-9)  # the bounded range that the cost claims
        worst = max(worst, float(np.max(np.abs(gap))))
    assert worst > 0.1 * epsilon


@pytest.mark.parametrize("below", [None, -2, 20, 57, 90])
@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("further", [None, (0, 1.0), (150, 0.0), (10_000, 0.2)])
def test_one_unit_more_moves_a_choice_of_a_share_by_no_more_than_epsilon(
    share: float, further: tuple[int, float] | None, below: int | None, seen: list[np.ndarray]
) -> None:
    rng = np.random.default_rng(5)
    buckets, units = np.arange(-4, 60), rng.integers(0, 9, 64)
    for extra in range(0, 64, 3):
        more = units.copy()
        more[extra] += 1
        seen.clear()
        for counts in (units, more):
            choose_share(buckets, counts, epsilon=0.5, share=share, further=further, below=below)
        gap = seen[1] - seen[0]
        assert np.max(np.abs(gap)) <= 0.5 * (1 + 1e-9)


def test_where_there_are_more_units_another_share_of_those_that_are_more_is_meant_to_be_above() -> None:
    sizes = np.random.default_rng(9).lognormal(3, 1, 100_000)
    for many, share in ((100_000, 0.8 * 0.98 + 0.2 * 0.7), (20_000, 0.7)):
        numbers, units = np.unique([number_of(size) for size in sizes[:many]], return_counts=True)
        found = [choose_share(numbers, units, epsilon=0.2, share=0.7, further=(20_000, 0.98)) for _ in range(5)]
        within = float(np.mean(sizes[:many] <= bound_of(round(np.median(found)))))
        assert within == pytest.approx(share, abs=0.05)


def test_a_bound_is_near_the_size_that_few_units_exceed() -> None:
    rng = np.random.default_rng(6)
    sizes = rng.lognormal(3, 1, 100_000)
    numbers, units = np.unique(np.ceil(np.log2(sizes) * choices.STEPS).astype(int), return_counts=True)
    chosen = [bound_of(choose_bound(numbers, units, epsilon=0.2, allowed=100.0)) for _ in range(40)]
    exact = np.sort(sizes)[-100]
    assert exact / 1.5 < np.median(chosen) < exact * 1.5
    shares = [bound_of(choose_share(numbers, units, epsilon=0.2, share=0.9)) for _ in range(20)]
    assert np.quantile(sizes, 0.9) / 1.3 < np.median(shares) < np.quantile(sizes, 0.9) * 1.3


def test_a_bound_for_few_people_is_not_near_zero_where_it_is_known_that_they_are_few() -> None:
    numbers, units = np.array([math.ceil(choices.STEPS * math.log2(28))]), np.array([50])
    facts = {"epsilon": 0.2, "allowed": 2.0, "bounded": False}
    few = [bound_of(choose_bound(numbers, units, sure=0.0, **facts)) for _ in range(60)]
    many = [bound_of(choose_bound(numbers, units, **facts)) for _ in range(60)]
    assert np.median(few) >= 28
    assert np.median(many) < 28
    assert choices.preference(0.2, 2.0, units=1000.0) == choices.preference(0.2, 2.0) == pytest.approx(3.0)


@pytest.mark.parametrize("epsilon", [0.005, 0.01, 0.02, 0.05, 0.2])
@pytest.mark.parametrize("allowed", [10.0, 700.0, 1500.0])
@pytest.mark.parametrize("reach", [1e3, 1e4, 1e7])
def test_no_bound_is_near_zero_where_many_units_may_be_above_and_all_are_far_from_it(
    epsilon: float, allowed: float, reach: float
) -> None:
    """As many of them as a choice at this price may be meant to leave above."""
    allowed = min(allowed, choices.most_above(2900.0, epsilon=epsilon))
    sizes = np.random.default_rng(8).uniform(60, 130, 3000)
    numbers, units = np.unique(np.ceil(np.log2(sizes) * choices.STEPS).astype(int), return_counts=True)
    facts = {"epsilon": epsilon, "allowed": allowed, "sure": 2900.0, "smallest": 130 / reach, "reach": reach}
    chosen = [bound_of(choose_bound(numbers, units, bounded=True, **facts)) for _ in range(50)]
    assert np.quantile(chosen, 0.2) > 50


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("largest", [0.1, 1.0, 20.0, 21.0, 2.0**112, math.inf])
def test_no_candidate_beyond_the_largest_size_is_chosen(largest: float, bounded: bool) -> None:
    facts = {"epsilon": 1e-9, "allowed": 0.0, "bounded": bounded}
    chosen = [choose_bound(np.array([9]), np.array([3]), largest=largest, **facts) for _ in range(30)]
    assert max(chosen) <= max(-4, math.ceil(4 * math.log2(min(largest, 2.0**112))))
    few = [choose_bound(np.array([9]), np.array([3]), largest=2.0, smallest=2.0, **facts) for _ in range(30)]
    assert set(few) == {4}


@pytest.mark.parametrize("largest", [1.0, 3.0, 20.0, 21.0])
def test_the_first_candidate_that_cuts_nobody_is_among_them(largest: float) -> None:
    numbers, units = np.array([number_of(largest)]), np.array([10_000])
    chosen = choose_bound(numbers, units, epsilon=1.0, allowed=0.0, largest=largest)
    assert bound_of(chosen) >= largest > bound_of(chosen - 1)


def test_a_share_of_few_units_with_large_sizes_is_found_below_what_few_exceed() -> None:
    sizes = 2.0**31 * np.random.default_rng(7).uniform(0.5, 1.0, 800)
    numbers, units = np.unique(np.ceil(np.log2(sizes) * choices.STEPS).astype(int), return_counts=True)
    found = [choose_share(numbers, units, epsilon=0.05, share=0.9, below=31 * choices.STEPS) for _ in range(20)]
    assert 2.0**30 < np.median([bound_of(one) for one in found]) <= 2.0**31
    assert max(found) <= 31 * choices.STEPS


def test_the_least_of_equally_good_candidates_is_found_below_a_public_one() -> None:
    buckets, units = np.array([0]), np.array([20_000])
    power = lean(20_000.0, epsilon=0.02)
    assert power == 10.0
    assert lean(400.0, epsilon=0.02) == lean(-9.0, epsilon=0.02) == 1.2
    chosen = [choose_share(buckets, units, epsilon=0.02, share=0.9, below=20, power=power) for _ in range(60)]
    assert np.mean(chosen) < 2  # by the law 0.2
    ties = [choose_share(buckets, units, epsilon=0.02, share=0.9, below=20) for _ in range(60)]
    assert np.mean(ties) > 4  # by the law 10: all that nobody exceeds are equally good


def test_without_any_units_a_choice_is_still_made() -> None:
    empty = np.array([], dtype=int)
    assert bound_of(choose_bound(empty, empty, epsilon=0.2, allowed=1.0)) > 0
    assert bound_of(choose_share(empty, empty, epsilon=0.2, share=0.9)) > 0


def test_the_bucket_of_a_size_is_the_first_bound_that_is_not_below_it() -> None:
    import duckdb

    for size in (0.0, 0.3, 1.0, 1.0001, 7.0, 2.0**40, 2.0**100):
        ((number,),) = duckdb.sql(f"SELECT {bucket(f'{size!r}::DOUBLE')}").fetchall()
        if size > 0.5:
            assert bound_of(number) >= size * (1 - 1e-12)
            assert bound_of(number - 1) < size
        else:
            assert bound_of(number) == 0.5
    assert math.isfinite(bound_of(448))


def test_the_number_of_a_size_is_that_of_its_bucket() -> None:
    for number in range(-4, 448):
        assert number_of(bound_of(number)) == number
        assert number_of(bound_of(number) * 1.01) == min(number + 1, 448)
    assert number_of(0.0) == number_of(-3.0) == -4


def test_units_that_are_in_many_groups_lose_in_all_of_them_and_fewer_may_exceed_the_bound() -> None:
    assert spread_above(1000, single=True, looked=9.0) == 1.0
    assert spread_above(1000, single=False) == 40**0.5
    assert spread_above(8, single=False) == 8**0.5
    # those above the bound are in 2.5 times the groups that a tenth of the units exceeds, and in one at least
    assert spread_above(1000, single=False, looked=10.0) == pytest.approx(250**0.5)
    assert spread_above(100, single=False, looked=10.0) == 10.0
    assert spread_above(1000, single=False, looked=0.5) == 1.0
    assert units_above(1000, single=False, looked=10.0) == pytest.approx(1600 / 250**0.5)
    assert units_above(0, single=False, looked=1.0) == 0.0


def test_at_most_half_of_the_units_are_meant_to_exceed_a_bound() -> None:
    assert most_above(10_000, epsilon=0.1) == 5000
    assert most_above(400, epsilon=0.1) == 400 - 250
    assert most_above(300, epsilon=0.1) == 75
    assert most_above(-20.0, epsilon=0.1) == 1.0


def test_permute_and_flip_chooses_by_the_same_scores_and_costs_its_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[str, tuple[list, object]] = {}
    for name in ("exponential_choice", "permute_and_flip"):

        def spied(scores: list, *, scale: object, generator: object = None, name: str = name) -> int:
            calls[name] = ([int(score) for score in scores], scale)
            return 0

        monkeypatch.setattr(choices, name, spied)
    buckets, units = np.arange(0, 40), np.full(40, 7)
    for bounded in (True, False):
        choose_bound(buckets, units, epsilon=0.3, allowed=2.0, bounded=bounded)
    # the scores are monotone, so that a unit moves them by 1 in one direction: the factor is epsilon for both
    assert calls["exponential_choice"] == calls["permute_and_flip"]
    assert float(calls["permute_and_flip"][1]) * choices._PARTS == pytest.approx(0.3)


def test_where_many_groups_are_selected_few_units_exceed_the_bound() -> None:
    stream = np.random.default_rng(3)
    people, places, each = 4000, 400, 60
    weight = np.ceil(stream.lognormal(0, 1, people)).astype(int)
    who = np.repeat(np.arange(people), each)
    rows = pa.table(
        {"u": np.repeat(who, weight[who]), "g": np.repeat(stream.integers(0, places, who.size), weight[who])}
    )
    with Curator.open(rows, unit="u", budget=Budget(epsilon=50.0, delta=1e-4), ledger=":memory:", name="t") as curator:
        answer = curator.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1.0, delta=1e-6)
    assert len(answer.fetchall()) > 300
    counts = np.zeros((people, places))
    np.add.at(counts, (rows["u"].to_numpy(), rows["g"].to_numpy()), 1)
    norms = np.linalg.norm(counts, axis=1)
    assert (
        np.mean(norms > answer.bounds["number of rows"]) < 0.04
    )  # by what all groups lose together it would be a tenth


def test_where_groups_outnumber_people_answers_are_not_near_zero() -> None:
    stream = np.random.default_rng(4)
    people, places = 1000, 2000
    weight = np.maximum(1, stream.poisson(20 * stream.lognormal(-0.5, 1, people)))
    unit = np.repeat(np.arange(people), weight)
    rows = pa.table({"u": unit, "g": stream.integers(0, places, unit.size)})
    keys = {"g": {"keys": list(range(places))}}
    budget = Budget(epsilon=9.0, delta=1e-4)
    with Curator.open(rows, unit="u", budget=budget, ledger=":memory:", name="t", columns=keys) as curator:
        answer = curator.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1.0, delta=1e-6)
    # a norm that half of the people have; by the noise alone all could exceed it, and the bound would be 1
    assert answer.bounds["number of rows"] > 2
    true = np.bincount(rows["g"].to_numpy(), minlength=places)
    ends = answer.intervals(0.95).to_pylist()
    held = [row["n_low"] <= true[row["g"]] <= row["n_high"] for row in ends]
    assert np.mean(held) > 0.9  # of 2000 with independent noise: at 0.94, seven standard deviations


def test_no_unit_is_meant_to_exceed_a_bound_where_the_noise_is_smaller_than_one_would_lose() -> None:
    assert [tolerated(allowed) for allowed in (0.0, 0.6, 0.99, 1.0, 1.4, 1.6, 40.2)] == [0, 0, 0, 1, 1, 2, 40]
    sizes = np.array([10.0] * 500 + [900.0])  # one unit is far above all others
    buckets = np.ceil(np.log2(sizes) * STEPS)
    numbers, units = np.unique(buckets, return_counts=True)
    for allowed, bound in ((0.7, 900.0), (1.0, 10.0)):
        chosen = choose_bound(numbers, units, epsilon=60.0, allowed=allowed)
        assert bound <= bound_of(chosen) <= 1.2 * bound
