"""The allowance for what a chosen bound cuts off: where it goes, and how large it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from discreet.query import choices
from discreet.query import run as running
from discreet.query.choices import STEPS, bound_of, choose_bound
from discreet.query.laws import GAUSSIAN, LAPLACE, NoisySum
from discreet.query.losses import allowance, heaviness, summed, usual
from discreet.query.measuring import measure
from discreet.query.options import Options
from discreet.query.plan import Aggregate
from discreet.query.private import private_plan
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
    for i, probability in enumerate(laws[0]):
        bound = bound_of(first + i)
        noisy = NoisySum(np.minimum(sizes, bound).sum(keepdims=True), bound / 0.8, LAPLACE)
        facts = {"tenth": float(np.quantile(sizes, 0.9)), "units": float(sizes.size), "above": 7.0}
        heavy = heaviness(bound, **facts, looked=0.01, chosen=0.2) if looked else 1.0
        lost = allowance(noisy, sign=1, skew=heavy) if allowed else np.zeros(1)
        low, high = (end[0] for end in NoisySum(noisy.values, noisy.scale, LAPLACE, lost).interval(0.95))
        # moved by the noise, they hold the truth unless the noise is beyond either of these
        ends = np.array([sizes.sum() - low, high - sizes.sum()]) / noisy.scale
        tails = np.where(ends >= 0, LAPLACE.beyond(np.abs(ends)) / 2, 1 - LAPLACE.beyond(np.abs(ends)) / 2)
        held += probability * (1 - tails.sum())
    return float(held)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_a_cut_sum_hold_the_sum_of_all_and_those_of_the_noise_do_not(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = np.random.default_rng(seed)
    for sizes in (np.ones(500), stream.integers(1, 21, 500), np.ceil(20 * stream.lognormal(0, 0.5, 3000))):
        assert 0.94 < coverage(sizes.astype(float), monkeypatch, allowed=True) < 0.965
    heavy = np.ceil(6 * stream.lognormal(0, 1, 3000))
    assert coverage(heavy, monkeypatch, allowed=True) > 0.88
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

    assert of(2.0) == pytest.approx(4.0)
    assert of(1.5) == pytest.approx(16.0)
    assert of(4.0) == of(30.0) == 1.0
    assert of(1.01) == 30.0
    assert of(2.0, chosen=0.05) == pytest.approx(4.0**0.25)
    assert of(2.0, looked=0.001) == 1.0  # too few to tell
    assert of(2.0, units=-50.0) == heaviness(1.0, tenth=1e9, **facts) == 1.0


@pytest.mark.parametrize("keys", [(), (PUBLIC,)], ids=["one", "groups"])
def test_a_look_costs_what_the_plan_says(keys: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Aggregate("count", "a0", "COUNT(*)"), Aggregate("avg", "a1", "AVG(x)", "x0", bounds=(0.0, 50.0))
    plan = private_plan(block(*asked, keys=keys), Target(epsilon=1.0, delta=1e-6), Options())
    seen: list[tuple[str, float]] = []
    choose, share, draw = running.choose_bound, running.choose_share, running.rounded_laplace

    def bound(*arguments: object, epsilon: float, bounded: bool, **others: object) -> int:
        assert bounded == plan.gaussian
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
    assert [level for kind, level in seen if kind == "look"] == pytest.approx([plan.allocation.tail] * 2)
    assert all(level <= plan.allocation.tail for kind, level in seen if kind == "look")
    assert [level for kind, level in seen if kind == "choice"] == [plan.allocation.choice] * plan.allocation.choices


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
        assert together == pytest.approx(max(2 * above, usual(groups, gaussian=gaussian) * groups))
