"""How many values a unit keeps for COUNT(DISTINCT x): what the choice may cost, its law, and that it chooses well."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, chdtrc, logsumexp

from discreet import Budget, Curator
from discreet.query import gains
from discreet.query import run as running
from discreet.query.bounding import lottery
from discreet.query.gains import KEPT, choose_kept, gained, gains_wanted, kept_of
from discreet.query.measuring import measure
from discreet.query.options import Options
from discreet.query.plan import Aggregate
from discreet.query.private import private_plan
from discreet.query.target import Target
from query.tables import PUBLIC, block, session_of, visits

ALPHA = 1e-9
CANDIDATES = list(KEPT.values())

Orders = list[list[int]]
"""The pairs of each unit, in its order."""


def counted(orders: Orders) -> list[int]:
    """D(m) for every candidate, by its definition."""
    return [len({pair for order in orders for pair in order[:m]}) for m in CANDIDATES]


def scores(counts: list[int], wanted: float) -> np.ndarray:
    """R_i for every candidate, in floats, by the formula."""
    c, d = np.array(CANDIDATES, dtype=float), np.array(counts, dtype=float)
    apart = c[None, :] - c[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = (d[None, :] - d[:, None] - wanted * apart) / np.maximum(3 * c[:, None], 1.5 * apart)
    return np.where(apart > 0, np.maximum(gain, 0), 0).max(axis=1)


orders = st.lists(st.lists(st.integers(0, 25), unique=True, max_size=12), max_size=7)


@given(others=orders, order=st.lists(st.integers(0, 40), unique=True, max_size=20))
def test_a_unit_more_changes_a_count_by_no_more_than_it_keeps_and_a_gain_by_no_more_than_it_keeps_more(
    others: Orders, order: list[int]
) -> None:
    moved = np.array(counted([*others, order])) - np.array(counted(others))
    kept = np.array(CANDIDATES)
    assert (moved >= 0).all()
    assert (moved <= kept).all()
    gain = moved[None, :] - moved[:, None]
    larger = kept[None, :] > kept[:, None]
    assert (gain <= kept[None, :] - kept[:, None])[larger].all()
    assert (gain >= -kept[:, None] * np.ones_like(gain))[larger].all()


@given(
    others=orders,
    order=st.lists(st.integers(0, 40), unique=True, max_size=20),
    wanted=st.fractions(0, 3, max_denominator=1024),
)
def test_a_unit_more_moves_every_score_within_one_window_of_length_one(
    others: Orders, order: list[int], wanted: Fraction
) -> None:
    moved = [b - a for a, b in zip(*(gained(counted(one), wanted) for one in (others, [*others, order])), strict=True)]
    assert Fraction(-1, 3) <= min(moved)
    assert max(moved) <= Fraction(2, 3)


def test_both_ends_of_the_window_are_reached() -> None:
    alone = [[*range(64)]]
    rise = gained(counted(alone), Fraction(0))[0] - gained(counted([]), Fraction(0))[0]
    assert rise > Fraction(6, 10)  # one person who holds all values alone
    others = [[*range(100 * u, 100 * u + 8)] for u in range(9)]  # the last four of eight are lost with four
    saves = [7, 107, 207, 307]
    before, after = (gained(counted(one), Fraction(0))[CANDIDATES.index(4)] for one in (others, [*others, saves]))
    assert after - before == Fraction(-1, 3)


@given(others=orders, wanted=st.integers(0, 3000))
def test_scores_are_those_of_the_formula(others: Orders, wanted: int) -> None:
    exact = gained(counted(others), Fraction(wanted, 1024))
    assert [float(score) for score in exact] == pytest.approx(scores(counted(others), wanted / 1024), abs=1e-12)


# ---------------------------------------------------------------------- the law

SMALL = [[*range(10 * u, 10 * u + 6)] for u in range(20)]
LARGEST = 20.0


def law(counts: list[int], *, epsilon: float, wanted: float, largest: float = math.inf) -> np.ndarray:
    """Probabilities by the exponential mechanism, in floats."""
    numbers = [n for n in KEPT if n == 0 or kept_of(_before(n), epsilon=epsilon, wanted=wanted) < largest]
    kept = np.array([KEPT[n] for n in numbers], dtype=float)
    power = gains._power(epsilon, wanted)
    octaves = np.concatenate([[1.0], np.log2(kept[1:] / kept[:-1])])
    lost = scores(counts[: kept.size] + [counts[kept.size - 1]] * (len(CANDIDATES) - kept.size), wanted)[: kept.size]
    logs = -epsilon * lost - power * np.log(kept) + np.log(octaves)
    return np.asarray(logs - logsumexp(logs))


def _before(number: int) -> int:
    numbers = list(KEPT)
    return numbers[numbers.index(number) - 1]


def flipped(logs: np.ndarray) -> np.ndarray:
    """The law of permute-and-flip with these logarithms of weights, by enumeration of all coins."""
    coins = np.exp(logs - logs.max())
    found = np.zeros(coins.size)
    for outcome in range(1, 1 << coins.size):
        fell = np.array([outcome >> i & 1 for i in range(coins.size)], dtype=bool)
        found[fell] += np.prod(np.where(fell, coins, 1 - coins)) / fell.sum()
    return found


@pytest.mark.parametrize("bounded", [True, False])
def test_candidates_are_chosen_by_the_law_and_by_no_other(bounded: bool) -> None:
    counts, draws = counted(SMALL), 6000

    def expected(epsilon: float) -> np.ndarray:
        logs = law(counts, epsilon=epsilon, wanted=1.25, largest=LARGEST)
        return np.exp(logs) if bounded else flipped(logs)

    facts: dict[str, Any] = {"wanted": 1.25, "largest": LARGEST, "bounded": bounded}
    chosen = [choose_kept(counts, epsilon=0.2, **facts) for _ in range(draws)]
    seen = np.array([chosen.count(number) for number in KEPT][: expected(0.2).size])
    assert seen.sum() == draws

    def p_value(probabilities: np.ndarray) -> float:
        order = np.argsort(probabilities)[::-1]
        likely = order[probabilities[order] * draws >= 20]
        cells = [*seen[likely], draws - seen[likely].sum()]
        means = [*probabilities[likely] * draws, draws * (1 - probabilities[likely].sum())]
        return float(
            chdtrc(len(cells) - 1, sum((a - b) ** 2 / max(b, 1e-9) for a, b in zip(cells, means, strict=True)))
        )

    assert p_value(expected(0.2)) > ALPHA
    assert p_value(expected(0.28)) < ALPHA
    assert p_value(expected(0.14)) < ALPHA


WORST = {
    "all values alone": ([], [*range(1024)]),
    "all values alone, beside others": (SMALL, [*range(1000, 1064)]),
    "what others lose": ([[*range(100 * u, 100 * u + 8)] for u in range(9)], [7, 107, 207, 307]),
}


@pytest.mark.parametrize("wanted", [0.6, 40.0])
@pytest.mark.parametrize(("others", "order"), WORST.values(), ids=WORST)
def test_one_unit_more_moves_every_probability_within_a_window_of_epsilon(
    others: Orders, order: list[int], wanted: float
) -> None:
    for epsilon in (0.06, 0.6, 3.0):
        before, after = (law(counted(one), epsilon=epsilon, wanted=wanted) for one in (others, [*others, order]))
        moved = after - before
        assert np.max(np.abs(moved)) <= epsilon * (1 + 1e-9)
        assert moved.max() - moved.min() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(("others", "order"), WORST.values(), ids=WORST)
def test_draws_do_not_prove_more_than_epsilon(others: Orders, order: list[int], bounded: bool) -> None:
    """A lower bound on the privacy loss of any set of the most telling candidates, from draws of both sides."""
    epsilon, draws = 1.0, 2000
    facts: dict[str, Any] = {"wanted": 0.6, "largest": 64.0, "bounded": bounded}
    sides = [
        np.array([choose_kept(counts, epsilon=epsilon, **facts) for _ in range(draws)])
        for counts in (counted(others), counted([*others, order]))
    ]
    for one, other in (sides, sides[::-1]):
        for number in KEPT:
            for event in (lambda x, n=number: x <= n, lambda x, n=number: x >= n, lambda x, n=number: x == n):
                often, seldom = int(event(one).sum()), int(event(other).sum())
                if often == 0 or seldom == draws:
                    continue
                low = _quantile(often, draws - often + 1, ALPHA)
                high = _quantile(seldom + 1, draws - seldom, 1 - ALPHA)
                assert low <= math.exp(epsilon) * high


def _quantile(a: float, b: float, share: float) -> float:
    """The quantile of a beta law, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if betainc(a, b, middle) < share else (low, middle)
    return low


# ---------------------------------------------------------------------- what is counted


@pytest.mark.parametrize("keys", [(), (PUBLIC,)], ids=["one", "groups"])
def test_counts_are_those_of_the_definition(keys: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Aggregate("count_distinct", "a0", "values", "nx")
    plan = private_plan(block(asked, keys=keys), Target(epsilon=1.0, delta=1e-6), Options())
    seen: list[list[int]] = []

    def spied(counts: list[int], **_: Any) -> int:
        seen.append(counts)
        return 4

    monkeypatch.setattr(running, "choose_kept", spied)
    monkeypatch.setattr(running.Run, "secret", 987654321)
    with session_of(visits(20, 300, 7)) as session:
        found = measure(session, plan)
        *cities, _ = PUBLIC.values or ()  # the last is NULL
        cases = " ".join(f"WHEN k0 = '{city}' THEN {i}" for i, city in enumerate(cities))
        place = f"CASE {cases} WHEN k0 IS NULL THEN {len(cities)} END"
        rows = (
            f"SELECT DISTINCT u, {place if keys else '0'} AS g, nx AS x FROM ({plan.block.rows}) WHERE nx IS NOT NULL"
        )
        lot = lottery("u, CAST(g AS INTEGER)", 987654321) if keys else "0"
        listed = session.table(
            f"SELECT u, g, x, {lottery(f'u, {lot}, x', 987654321)} AS lot FROM ({rows}) WHERE g IS NOT NULL"
        ).to_pylist()
    units: dict[Any, list[tuple[int, Any]]] = {}
    for row in sorted(listed, key=lambda row: row["lot"]):
        units.setdefault(row["u"], []).append((row["g"], row["x"]))
    numbers: dict[Any, int] = {}
    by_unit = [[numbers.setdefault(pair, len(numbers)) for pair in pairs] for pairs in units.values()]
    assert seen == [counted(by_unit)]
    assert len(set(seen[0])) > 3
    [bound] = found.bounds.values()
    assert bound == 4.0  # twice the second candidate


def test_the_orders_of_units_differ() -> None:
    """With one order for all, everybody would keep the same few of the values that all have."""
    rows = pa.table({"u": np.repeat(np.arange(500), 40), "x": np.tile(np.arange(40), 500)})
    with opened(rows) as curator:
        answer = curator.sql("SELECT COUNT(DISTINCT x) AS n FROM data", epsilon=60.0, max_rows=1)
        assert answer.bounds == {"distinct values of a unit, for count(DISTINCT x)": 1.0}
        assert abs(answer.fetchall()[0][0] - 40) <= 1


# ---------------------------------------------------------------------- that it chooses well


def opened(rows: pa.Table) -> Curator:
    return Curator.open(rows, unit="u", budget=Budget(epsilon=600.0), ledger=":memory:")


def chosen_for(counts: list[int], epsilon: float, draws: int = 60) -> np.ndarray:
    noise = 1 / (0.8 * epsilon)
    facts = {"epsilon": 0.2 * epsilon, "wanted": gains_wanted(noise, groups=1)}
    return np.array([kept_of(choose_kept(counts, bounded=False, **facts), **facts) for _ in range(draws)])


def test_one_value_of_each_unit_is_kept_where_values_are_shared() -> None:
    counts = [720] * len(CANDIDATES)
    for epsilon in (0.3, 1.0, 3.0):
        assert np.mean(chosen_for(counts, epsilon, 200) == 1) > 0.5


def test_values_that_nobody_shares_are_kept() -> None:
    counts = [2000 * min(m, 30) for m in CANDIDATES]
    for epsilon in (0.3, 1.0, 3.0):
        kept = chosen_for(counts, epsilon)
        assert np.mean(kept >= 30) > 0.9
        assert np.median(kept) <= 90


def test_with_many_groups_a_gain_has_to_be_worth_the_noise_of_all() -> None:
    counts = [2000 * min(m, 30) for m in CANDIDATES]
    facts = {"epsilon": 0.2, "wanted": gains_wanted(5.0, groups=2000)}
    assert {kept_of(choose_kept(counts, **facts), **facts) for _ in range(20)} == {1}
    facts = {"epsilon": 0.2, "wanted": gains_wanted(5.0, groups=100)}
    assert np.median([kept_of(choose_kept(counts, **facts), **facts) for _ in range(20)]) >= 30


@pytest.mark.parametrize("largest", [1.0, 2.0, 3.0, 7.0, 1000.0])
def test_no_more_is_chosen_than_a_unit_can_have(largest: float) -> None:
    facts = {"epsilon": 1e-6, "wanted": 1.0}
    counts = [10**9 * m for m in CANDIDATES]
    kept = {kept_of(choose_kept(counts, largest=largest, **facts), **facts) for _ in range(100)}
    assert max(kept) < 4 * largest
    assert (largest > 1) or kept == {1}
    sure = kept_of(choose_kept(counts, largest=largest, epsilon=9.0, wanted=1.0), epsilon=9.0, wanted=1.0)
    assert sure >= largest


def test_candidates_are_whole_numbers_in_order() -> None:
    assert CANDIDATES[:12] == [1, 2, 3, 4, 5, 6, 8, 9, 11, 13, 16, 19]
    assert sorted(set(CANDIDATES)) == CANDIDATES
    assert list(KEPT) == sorted(KEPT)
    assert CANDIDATES[-1] == 1 << 30


def test_answers_are_near_the_truth_where_values_are_shared_and_where_they_are_not() -> None:
    rng = np.random.default_rng(3)
    unit = np.repeat(np.arange(4000), rng.integers(1, 30, 4000))
    rows = pa.table({"u": unit, "shared": rng.integers(0, 300, unit.size), "own": np.arange(unit.size)})
    errors: dict[str, list[float]] = {"shared": [], "own": []}
    for _ in range(5):  # each with no memory of another
        with opened(rows) as curator:
            for name, found in errors.items():
                answer = curator.sql(f"SELECT COUNT(DISTINCT {name}) AS n FROM data", epsilon=1.0)
                found.append(abs(answer.fetchall()[0][0] - (300 if name == "shared" else unit.size)))
    assert np.median(errors["shared"]) < 30
    assert np.median(errors["own"]) < 600
