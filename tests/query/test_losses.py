"""The allowance for what a chosen bound cuts off: where it goes, and how large it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr, ndtri

from discreet.query import choices
from discreet.query import run as running
from discreet.query.allocation import allocate
from discreet.query.choices import STEPS, bound_of, choose_bound, most_above, spread_above, units_above
from discreet.query.laws import GAUSSIAN, LAPLACE, NoisySum
from discreet.query.losses import (
    HEAVY,
    _lognormal_excess,
    added,
    allowance,
    blurred,
    doubt,
    excess,
    heaviness,
    looked_share,
    made_up,
    shortfall,
    summed,
    tells,
    usual,
)
from discreet.query.measuring import measure
from discreet.query.options import Options
from discreet.query.plan import Aggregate
from discreet.query.private import private_plan
from discreet.query.remembered import Choice
from discreet.query.target import Target
from query.tables import PUBLIC, block, session_of, visits


def coverage(sizes: np.ndarray, monkeypatch: pytest.MonkeyPatch, *, allowed: bool, looked: bool = False) -> float:
    """How often the interval of a single number at epsilon 1 holds: exactly, over all bounds that may be chosen."""
    laws = []

    def spied(scores: list, *, scale: Fraction, generator: object = None) -> int:
        logs = np.array([float(score * scale) for score in scores])
        laws.append(np.exp(logs - logsumexp(logs)))
        return 0

    monkeypatch.setattr(choices, "exponential_choice", spied)
    buckets, units = np.unique(np.ceil(np.log2(sizes) * STEPS - 1e-9).astype(int), return_counts=True)
    first = choose_bound(buckets, units, epsilon=0.2, allowed=2.0, smallest=1.0)
    held = 0.0
    for i in np.flatnonzero(laws[0] > 1e-7):
        bound = bound_of(first + int(i))
        noisy = NoisySum(np.minimum(sizes, bound).sum(keepdims=True), bound / 0.8, LAPLACE)
        facts = {"tenth": float(np.quantile(sizes, 0.9)), "units": float(sizes.size), "above": 7.0}
        heavy = heaviness(bound, **facts, looked=0.01, chosen=0.2, groups=1) if looked else 1.0
        lost = allowance(noisy, sign=1, skew=heavy) if allowed else np.zeros(1)
        low, high = (end[0] for end in NoisySum(noisy.values, noisy.scale, LAPLACE, lost).interval(0.95))
        # moved by the noise, they hold the truth unless the noise is beyond either of these
        ends = np.array([sizes.sum() - low, high - sizes.sum()]) / noisy.scale
        tails = np.where(ends >= 0, LAPLACE.beyond(np.abs(ends)) / 2, 1 - LAPLACE.beyond(np.abs(ends)) / 2)
        held += laws[0][i] * (1 - tails.sum())
    return float(held)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_a_cut_sum_hold_the_sum_of_all_and_those_of_the_noise_do_not(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = np.random.default_rng(seed)
    for sizes in (np.ones(500), stream.integers(1, 21, 500), np.ceil(20 * stream.lognormal(0, 0.5, 3000))):
        assert 0.94 < coverage(sizes.astype(float), monkeypatch, allowed=True) < 0.965
    heavy = np.ceil(6 * stream.lognormal(0, 1, 3000))
    assert coverage(heavy, monkeypatch, allowed=True) > 0.87
    assert coverage(heavy, monkeypatch, allowed=False) < coverage(heavy, monkeypatch, allowed=True) - 0.02


@pytest.mark.parametrize("exponent", [1.5, 2.0])
def test_a_look_at_the_tail_finds_most_of_what_a_heavy_one_loses(
    exponent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = np.random.default_rng(3)
    with_look, without = [], []
    for _ in range(8):
        sizes = np.ceil(5 * (1 + stream.pareto(exponent, 10_000)))
        with_look.append(coverage(sizes, monkeypatch, allowed=True, looked=True))
        without.append(coverage(sizes, monkeypatch, allowed=True))
    assert np.mean(with_look) > 0.85
    assert np.mean(without) < 0.8
    light = stream.integers(1, 21, 10_000).astype(float)
    assert coverage(light, monkeypatch, allowed=True, looked=True) < 0.965


def test_the_heaviness_of_a_tail_follows_its_exponent() -> None:
    facts = {"units": 10_000.0, "above": 5.0, "looked": 0.02, "chosen": 0.2}

    def of(exponent: float, **others: float) -> float:
        """The size that 5 of 10 000 units exceed, where a tenth exceeds 10."""
        return heaviness(10 * 200 ** (1 / exponent), tenth=10.0, **facts | others)

    assert of(2.0) == pytest.approx(5.0)
    assert of(1.5) == pytest.approx(5 * 2**2.5)
    assert of(4.0) == of(30.0) == 1.0
    assert of(1.01) == 40.0
    assert of(2.0, chosen=0.05) == pytest.approx(4.25**0.25**0.8)
    assert of(2.0, chosen=0.6) == pytest.approx(6.5)  # a choice that is well paid tells more
    assert of(2.0, looked=0.001) == 1.0  # too few to tell
    assert of(2.0, units=-50.0) == heaviness(1.0, tenth=1e9, **facts) == 1.0
    assert of(2.0, units=-50.0, groups=1) == of(2.0, units=-50.0, groups=0) == 2.3  # one unit may decide
    assert of(2.0, units=-50.0, groups=4) == pytest.approx(1.325)
    assert of(2.0, groups=1) == pytest.approx(5.0)
    # a coarse look may have missed a heavy tail
    assert of(30.0, looked=0.004, groups=1) == pytest.approx(1.12)
    assert of(30.0, looked=0.01, groups=1) == 1.0


def test_a_doubt_is_said_where_a_tail_is_heavy_or_units_are_few_and_nowhere_else() -> None:
    def of(
        exponent: float, *, units: float = 1e5, spread: float = 0.0, single: bool = True, anything: bool = False
    ) -> str | None:
        """Of the bound that 7 units exceed, where a tenth exceeds 16."""
        number = round(STEPS * (4 + np.log2(units / 70) / exponent)) if units > 70 else 16
        told = {"units": units, "size": 4 * STEPS, "looked": 0.01, "spread": spread}
        return doubt(Choice(number, 0.2, 1.28, 2.0, **told), single=single, anything=anything)

    assert of(4.0) is of(3.0) is of(3.0, spread=2.0, single=False) is None
    assert "many times larger" in (of(1.8) or "")
    assert "many times larger" in (of(1.8, spread=2.0, single=False) or "")
    assert "too few" in (of(4.0, units=1000.0) or "")
    assert "guess" in (of(4.0, units=150.0) or "")
    assert "guess" in (of(4.0, units=-30.0) or "")
    assert of(4.0, units=2000.0) is None
    assert "too few" in (of(4.0, units=225.0) or "")
    assert "guess" in (of(4.0, units=225.0, anything=True) or "")  # more bounds to choose from
    assert doubt(Choice(20, 0.2, 1.28, 2.0), single=True) is None  # nothing was looked at


def test_beside_a_bound_that_was_read_off_a_sketch_what_is_expected_to_be_lost_is_allowed_for() -> None:
    told = {"lost": 0.5, "unsure": 0.4, "seen": 25_000.0, "steep": 4.0}
    read = Choice(20.25, 0.2, 1.1, 2.0, units=1e6, size=9, looked=0.01, **told)
    for groups, noise in ((1, 1.1), (1, 1.0), (40, 1.02)):
        together = excess(read, noise, groups=groups) * usual(groups, gaussian=False) * noise * groups
        assert together == pytest.approx(0.5 + 4 * 0.4, rel=0.02)
    coarse = replace(read, seen=250.0)
    assert excess(coarse, 1.1, groups=1) == pytest.approx(2 * excess(read, 1.1, groups=1), rel=0.02)
    assert excess(replace(coarse, steep=0.0), 1.1, groups=1) == pytest.approx(excess(read, 1.1, groups=1), rel=0.02)
    assert excess(read, 1.1, groups=1) < 0.5 * excess(Choice(20, 0.2, 1.1, 2.0), 1.1, groups=1)
    assert doubt(read, single=True) is None
    assert doubt(replace(read, steep=2.0), single=True) == HEAVY
    assert doubt(replace(read, steep=0.0), single=True) is None  # an end


def test_a_part_of_what_a_curve_says_is_cut_off_is_added_and_allowed_for_the_less() -> None:
    read = Choice(20.25, 0.2, 1.1, 2.0, units=1e12, size=9, looked=0.01, lost=0.5, seen=1e10)
    noisy = NoisySum(
        np.array([1000.0]), 110.0, LAPLACE, np.array([250.0])
    )  # a bound of 100 and noise of 1.1 times that
    curved = replace(read, steep=4.0)
    for chosen, sign in ((read, 1), (curved, 0), (replace(curved, lost=0.0), 1)):
        assert made_up(noisy, chosen, 1.1, sign=sign) is noisy
    nobody = replace(noisy, values=np.zeros(0), lost=np.zeros(0))
    assert made_up(nobody, curved, 1.1, sign=1) is nobody  # no group was kept
    for sign in (1, -1):
        found = made_up(replace(noisy, lost=sign * noisy.lost), curved, 1.1, sign=sign)
        assert found.values[0] == pytest.approx(1000 + sign * 0.2085 * 50, rel=1e-4)
        assert found.lost[0] == pytest.approx(sign * (250 - 0.2085 * 50), rel=1e-4)
    # most often nobody exceeds the bound of a group: nothing is added; and never all that is expected
    for above, part in ((0.1, 0.0), (0.8, 0.0), (1.6, 0.147), (16.0, 0.608), (1e9, 0.8)):
        assert added(above, groups=1, blur=1.0) == pytest.approx(part, abs=1e-3)
        assert added(above, groups=1, blur=blurred(250.0)) == pytest.approx(part / 2, abs=1e-3)  # of a coarse sketch
    assert added(16.0, groups=20, blur=1.0) == 0.0
    two = made_up(
        replace(noisy, values=np.array([3e6, 1e6]), lost=np.zeros(2)), replace(curved, allowed=4.0), 1.1, sign=1
    )
    assert (two.values - [3e6, 1e6]).tolist() == pytest.approx([0.288 * 50 * 0.75, 0.288 * 50 * 0.25], rel=1e-3)


@pytest.mark.parametrize("people", [200, 1000])
def test_a_table_that_is_too_small_for_a_look_is_allowed_twice_as_much_for_a_single_number(
    people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = np.random.default_rng(5)
    tables = [np.ceil(20 * stream.lognormal(0, 1, people)) for _ in range(4)]
    twice = [coverage(sizes, monkeypatch, allowed=True, looked=True) for sizes in tables]
    once = [coverage(sizes, monkeypatch, allowed=True) for sizes in tables]
    assert np.mean(once) < 0.93
    assert np.mean(twice) > np.mean(once) + 0.04
    light = stream.integers(1, 21, people).astype(float)
    assert 0.94 < coverage(light, monkeypatch, allowed=True, looked=True) < 0.965


def test_a_look_costs_what_the_plan_says(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = (PUBLIC,)
    asked = Aggregate("count", "a0", "COUNT(*)"), Aggregate("avg", "a1", "AVG(x)", "x0", bounds=(0.0, 50.0))
    plan = private_plan(block(*asked, keys=keys), Target(epsilon=1.0, delta=1e-6), Options())
    seen: list[tuple[str, float]] = []
    choose, share, draw = running.choose_bound, running.choose_share, running.rounded_laplace

    def bound(*arguments: object, epsilon: float, bounded: bool, **others: object) -> int:
        assert bounded
        assert plan.gaussian
        seen.append(("choice", epsilon))
        return choose(*arguments, epsilon=epsilon, bounded=bounded, **others)  # type: ignore[arg-type]

    def tenth(*arguments: object, epsilon: float, **others: object) -> int:
        seen.append(("look", epsilon))
        return share(*arguments, epsilon=epsilon, **others)  # type: ignore[arg-type]

    def counted(scale: float, size: int, **others: object) -> np.ndarray:
        if scale == pytest.approx(1 / plan.allocation.tail, rel=1e-9):
            seen.append(("look", 1 / scale))
        return draw(scale, size, **others)  # type: ignore[arg-type]

    for name, spy in (("choose_bound", bound), ("choose_share", tenth), ("rounded_laplace", counted)):
        monkeypatch.setattr(running, name, spy)
    with session_of(visits(500, 4000)) as session:
        measure(session, plan)
    # the number of rows is counted, and its tail matters; an average is weighed and not cut
    assert plan.allocation.tails == 1
    steps = 2 + plan.allocation.spreads  # and in how many groups people are, where there are groups
    assert plan.allocation.spreads == len(keys)
    assert [level for kind, level in seen if kind == "look"] == pytest.approx([plan.allocation.tail] * steps)
    assert all(level <= plan.allocation.tail for kind, level in seen if kind == "look")
    assert [level for kind, level in seen if kind == "choice"] == [plan.allocation.choice] * plan.allocation.choices


def spread_out(people: int, rows: float, groups: int, *, each: int | None = None, seed: int = 0) -> np.ndarray:
    """Counts of people with lognormal numbers of rows by group: spread over all groups, or in so many groups each."""
    stream = np.random.default_rng(seed)
    activity = np.maximum(1, stream.poisson(rows * stream.lognormal(-0.5, 1, people)))
    if each is None:
        return np.asarray(stream.poisson(activity[:, None] / groups, (people, groups)), dtype=float)
    counts = np.zeros((people, groups))
    for person in range(people):
        counts[person, stream.integers(0, groups, each)] += np.ceil(activity[person] / each)
    return counts


def by_group(counts: np.ndarray, monkeypatch: pytest.MonkeyPatch, *, told: bool) -> tuple[float, float]:
    """How often an interval of a group holds at epsilon 1, and the median error: over all bounds that may be chosen.

    What is looked at is taken to be found as it is. Where nothing is told, as many units may exceed the bound as if the
    largest lost in 40 groups, and the allowance is the usual one.
    """
    laws = []

    def spied(scores: list, *, scale: Fraction, generator: object = None) -> int:
        logs = np.array([float(score * scale) for score in scores])
        laws.append(np.exp(logs - logsumexp(logs)))
        return 0

    monkeypatch.setattr(choices, "exponential_choice", spied)
    people, groups = counts.shape
    plan = allocate(
        Target(epsilon=1.0, delta=1e-6), gaussian=True, choices=1, keys=False, weights=(1.0,), tails=(0,), spreads=1
    )
    norms, noise = np.linalg.norm(counts, axis=1), plan.noise[0]
    ratios = counts.sum(axis=1) / np.maximum(norms, 1)
    looked = float(np.quantile(ratios, 0.9)) if told else None
    allowed = noise * units_above(groups, single=False, looked=looked)
    if told:
        allowed = min(allowed, most_above(people, epsilon=plan.choice))
    buckets, units = np.unique(np.ceil(np.log2(np.maximum(norms, 0.5)) * STEPS - 1e-9).astype(int), return_counts=True)
    first = choose_bound(buckets, units, epsilon=plan.choice, allowed=allowed, smallest=1.0)
    size = float(np.quantile(norms, looked_share(people, above=allowed + 1 / plan.choice)))
    held, error, true = 0.0, 0.0, counts.sum(axis=0)
    for i in np.flatnonzero(laws[0] > 1e-4):
        bound = bound_of(first + int(i))
        kept = (counts * np.minimum(1, bound / np.maximum(norms, 1e-9))[:, None]).sum(axis=0)
        more = shortfall(
            bound,
            size=min(size, bound),
            units=people,
            allowed=allowed,
            chosen=plan.choice,
            looked=plan.tail,
            spread=spread_above(groups, single=False, looked=looked),
            noise=noise,
            groups=groups,
        )
        noisy = NoisySum(kept, noise * bound, GAUSSIAN)
        low, high = NoisySum(
            kept, noisy.scale, GAUSSIAN, allowance(noisy, sign=1, skew=more if told else 1.0)
        ).interval(0.95)
        held += laws[0][i] * float(np.mean(ndtr((high - true) / noisy.scale) - ndtr((low - true) / noisy.scale)))
        quantiles = ndtri((np.arange(99) + 0.5) / 99)
        error += laws[0][i] * float(np.median(np.abs(quantiles[:, None] * noisy.scale + (kept - true)[None, :])))
    return held, error


@pytest.mark.parametrize(("people", "rows", "groups"), [(1500, 100.0, 1000), (3000, 100.0, 300), (1500, 300.0, 365)])
def test_where_large_units_are_in_hundreds_of_groups_intervals_hold_and_errors_are_small(
    people: int, rows: float, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = spread_out(people, rows, groups)
    held, error = by_group(counts, monkeypatch, told=True)
    before, worse = by_group(counts, monkeypatch, told=False)
    assert 0.94 < held < 0.97
    assert before < 0.85
    assert error < worse


@pytest.mark.parametrize(("each", "groups"), [(1, 50), (3, 50), (3, 365), (None, 50), (None, 12)])
def test_where_units_are_in_few_groups_intervals_hold_and_errors_are_no_larger_than_before(
    each: int | None, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = spread_out(3000, 20.0, groups, each=each)
    held, error = by_group(counts, monkeypatch, told=True)
    _, before = by_group(counts, monkeypatch, told=False)
    assert 0.94 < held < 0.975
    assert error < 1.05 * before


@pytest.mark.parametrize("spread", [0.3, 1.0, 1.5])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.4])
def test_what_lognormal_sizes_lose_is_known_from_two_of_their_quantiles(share: float, spread: float) -> None:
    beyond = min(0.9, max(0.1, 2 * share))
    bound, other = np.exp(-spread * ndtri(np.array([share, beyond])))
    sizes = np.exp(spread * ndtri((np.arange(4_000_000) + 0.5) / 4_000_000))
    excess = float(np.mean(sizes[sizes > bound] / bound - 1))
    assert _lognormal_excess(float(np.log(bound / other)), share, beyond) == pytest.approx(excess, rel=0.02)


def test_the_expected_loss_grows_with_the_tail_and_has_a_least_and_a_largest_value() -> None:
    facts = {"units": 1e5, "allowed": 300.0, "chosen": 0.12, "looked": 0.02, "noise": 4.6, "groups": 365}
    usually = usual(365, gaussian=True)

    def of(ratio: float, **others: float) -> float:
        return usually * shortfall(ratio * 10.0, size=10.0, **{"spread": 6.0} | facts | others)  # type: ignore[arg-type]

    assert of(1.0) == of(1.3) == pytest.approx(0.5 + 4 / 365)
    assert of(1.0, groups=3, allowed=3.0) / usually * usual(3, gaussian=True) == pytest.approx(1.5)
    found = [of(ratio) for ratio in (4.0, 6.0, 9.0, 13.0)]
    assert 0.5 + 4 / 365 < found[0] < found[1] < found[2] < found[3]
    assert of(1e6) == pytest.approx(1.5 * (3 + 12 / 365))
    assert of(1e6, looked=0.0005) == pytest.approx(3 + 12 / 365)  # a coarse look finds tails where there are none
    assert of(1.0, looked=0.0005) == pytest.approx(0.5 + 4 / 365 + 0.6 / 2)  # and misses them where they are
    assert of(5.0, spread=8.0) == pytest.approx(of(5.0) * 8 / 6)
    assert of(8.0, units=500.0) == pytest.approx(1.3 + 0.7 / 365)  # too few to tell
    assert not tells(500.0, looked=0.02)
    assert tells(1000.0, looked=0.02)
    assert looked_share(1e5, above=300.0) == 0.9
    assert looked_share(1e5, above=2e4) == pytest.approx(0.6)
    assert looked_share(1e5, above=9e4) == pytest.approx(0.1)


def test_a_single_number_gets_five_scales_of_laplace_noise_and_one_of_gaussian() -> None:
    assert allowance(NoisySum(np.array([900.0]), 10.0, LAPLACE), sign=1) == pytest.approx([50.0])
    assert allowance(NoisySum(np.array([900.0]), 10.0, GAUSSIAN), sign=1) == pytest.approx([10.0])


def test_large_groups_get_more_of_it_and_the_sign_is_that_of_what_is_cut_off() -> None:
    noisy = NoisySum(np.array([1000.0, 3000.0]), 1.0, LAPLACE)
    up = allowance(noisy, sign=1)
    assert up[1] / up[0] == pytest.approx(3.0, rel=1e-3)
    assert up.sum() == pytest.approx(2 * (1.5 + 3.5 / 2))
    assert allowance(noisy, sign=-1) == pytest.approx(-up)
    mixed = NoisySum(np.array([1000.0, -3000.0]), 1.0, LAPLACE)
    assert allowance(mixed, sign=0) == pytest.approx(up * [1, -1])


def test_groups_that_differ_by_noise_alone_get_equal_parts() -> None:
    noisy = NoisySum(np.random.default_rng(1).normal(0, 10, 500), 10.0, GAUSSIAN)
    assert np.ptp(allowance(noisy, sign=1)) < 0.2 * np.mean(allowance(noisy, sign=1))


def test_no_groups_have_no_allowance() -> None:
    assert allowance(NoisySum(np.zeros(0), 1.0, LAPLACE), sign=1).size == 0
    assert allowance(NoisySum(np.zeros(3), 1.0, LAPLACE), sign=1) == pytest.approx(1.5 + 3.5 / 3)


@pytest.mark.parametrize(("gaussian", "single"), [(True, False), (True, True), (False, True)])
def test_sums_over_groups_are_allowed_twice_what_the_units_above_the_bound_lose(gaussian: bool, single: bool) -> None:
    for groups in (2, 8, 40, 1000):
        together = summed(groups, gaussian=gaussian, single=single) * usual(groups, gaussian=gaussian) * groups
        above = 1.6 * groups / (1.0 if single else min(groups, 40) ** 0.5)
        assert together >= 2 * above * (1 - 1e-12)
        least = (1.5 if gaussian else 1.0) * usual(groups, gaussian=gaussian) * groups
        assert together == pytest.approx(max(2 * above, least))
