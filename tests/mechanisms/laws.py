"""What the tests of mechanisms share: exact masses of integer noise, and a chi-square test with fixed error rates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import chdtrc, erfc

ALPHA = 1e-9
DRAWS = 40_000

Mass = Callable[[int], float]


def rounded_laplace(scale: float) -> Mass:
    return lambda k: -math.expm1(-0.5 / scale) if k == 0 else math.sinh(0.5 / scale) * math.exp(-abs(k) / scale)


def rounded_gaussian(scale: float) -> Mass:
    def tail(x: float) -> float:
        return 0.5 * float(erfc(x / (scale * math.sqrt(2))))

    return lambda k: 1 - 2 * tail(0.5) if k == 0 else tail(abs(k) - 0.5) - tail(abs(k) + 0.5)


def discrete_laplace(scale: float) -> Mass:
    return lambda k: math.tanh(0.5 / scale) * math.exp(-abs(k) / scale)


def discrete_gaussian(scale: float) -> Mass:
    reach = math.ceil(40 * scale) + 1
    total = math.fsum(math.exp(-0.5 * (k / scale) ** 2) for k in range(-reach, reach + 1))
    return lambda k: math.exp(-0.5 * (k / scale) ** 2) / total


def p_value(draws: np.ndarray, mass: Mass) -> float:
    """Chi-square over whole numbers, those of expectation below 20 pooled into the two tails."""
    reach = 0
    while mass(reach) * len(draws) >= 20 or reach == 0:
        reach += 1
    cells = np.arange(-reach + 1, reach)
    expected = np.array([mass(int(k)) for k in cells]) * len(draws)
    rest = (len(draws) - expected.sum()) / 2
    counts = np.array([(draws == k).sum() for k in cells])
    observed = np.concatenate([[(draws < cells[0]).sum()], counts, [(draws > cells[-1]).sum()]])
    expected = np.concatenate([[rest], expected, [rest]])
    keep = expected >= 1
    statistic = float(((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum())
    return float(chdtrc(keep.sum() - 1, statistic))
