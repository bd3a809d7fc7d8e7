r"""What an attacker can make of a cost: detection rates and posterior beliefs, rounded against the claim.

Let P and Q be the answers' laws on neighbouring data and delta(epsilon) the privacy profile. An attacker decides from
the answers whether the data were those of P. Every test with false-alarm probability f has

    detection <= min over epsilon >= 0 of e^epsilon f + delta(epsilon)                  [Wasserman and Zhou 2010],

so a prior belief p turns, at a positive test, into at most p d / (p d + (1 - p) f) with d that bound: the positive
predictive value. Without a delta the posterior after *any* answer is at most p e^epsilon / (1 - p + p e^epsilon). The
advantage, detection minus false alarm of the best test, is delta(0), and the best guess at even odds errs with
probability (1 - advantage) / 2. Every epsilon of the minimum is valid, so the search for it need not be exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost

__all__ = ["detection_at", "least_detection", "positive_predictive_value", "posterior"]


def posterior(prior: float, epsilon: float) -> float:
    """p e^eps / (1 - p + p e^eps), rounded up."""
    return min(1.0, prior / (prior + (1 - prior) * math.exp(-epsilon)) * (1 + 1e-14))


def detection_at(epsilon: float, delta: float, false_alarm: float) -> float:
    """e^eps f + delta, rounded up, at most 1."""
    log_scaled = epsilon + math.log(false_alarm)
    return min(1.0, (math.exp(log_scaled) + delta) * (1 + 1e-13)) if log_scaled < 0 else 1.0


def least_detection(cost: Cost, false_alarm: float) -> float:
    """The smallest bound over a grid of epsilons, refined twice: the bound is convex in e^epsilon."""
    profile = cost.profile()
    grid = np.linspace(0.0, math.log(1 / false_alarm), 33)
    least = detection_at(cost.pure_epsilon(), 0.0, false_alarm)
    for _ in range(3):
        bounds = [detection_at(float(e), float(d), false_alarm) for e, d in zip(grid, profile(grid), strict=True)]
        index = int(np.argmin(bounds))
        least = min(least, bounds[index])
        grid = np.linspace(grid[max(index - 1, 0)], grid[min(index + 1, len(grid) - 1)], 17)
    return least


def positive_predictive_value(detection: float, *, prior: float, false_alarm: float) -> float:
    """The belief after a positive test, rounded up."""
    hit = prior * detection
    return min(1.0, hit / (hit + (1 - prior) * false_alarm) * (1 + 1e-14)) if hit > 0 else 0.0
