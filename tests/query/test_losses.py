"""The allowance for what a chosen bound cuts off: where it goes, and how large it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from discreet.query import choices
from discreet.query.choices import STEPS, bound_of, choose_bound
from discreet.query.laws import GAUSSIAN, LAPLACE, NoisySum
from discreet.query.losses import allowance, summed, usual


def coverage(sizes: np.ndarray, monkeypatch: pytest.MonkeyPatch, *, allowed: bool) -> float:
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
        lost = allowance(noisy, sign=1) if allowed else np.zeros(1)
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
