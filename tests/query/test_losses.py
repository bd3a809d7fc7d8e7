"""The allowance for what a chosen bound cuts off: where it goes, and how large it is."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.query.laws import GAUSSIAN, LAPLACE, NoisySum
from discreet.query.losses import allowance


def test_a_single_number_gets_three_scales_of_laplace_noise_and_one_of_gaussian() -> None:
    assert allowance(NoisySum(np.array([900.0]), 10.0, LAPLACE), sign=1) == pytest.approx([30.0])
    assert allowance(NoisySum(np.array([900.0]), 10.0, GAUSSIAN), sign=1) == pytest.approx([10.0])


def test_large_groups_get_more_of_it_and_the_sign_is_that_of_what_is_cut_off() -> None:
    noisy = NoisySum(np.array([1000.0, 3000.0]), 1.0, LAPLACE)
    up = allowance(noisy, sign=1)
    assert up[1] / up[0] == pytest.approx(3.0, rel=1e-3)
    assert up.sum() == pytest.approx(2 * 1.5 * 1.5)
    assert allowance(noisy, sign=-1) == pytest.approx(-up)
    mixed = NoisySum(np.array([1000.0, -3000.0]), 1.0, LAPLACE)
    assert allowance(mixed, sign=0) == pytest.approx(up * [1, -1])


def test_groups_that_differ_by_noise_alone_get_equal_parts() -> None:
    noisy = NoisySum(np.random.default_rng(1).normal(0, 10, 500), 10.0, GAUSSIAN)
    assert np.ptp(allowance(noisy, sign=1)) < 0.2 * np.mean(allowance(noisy, sign=1))


def test_no_groups_have_no_allowance() -> None:
    assert allowance(NoisySum(np.zeros(0), 1.0, LAPLACE), sign=1).size == 0
    assert allowance(NoisySum(np.zeros(3), 1.0, LAPLACE), sign=1) == pytest.approx(2.0)
