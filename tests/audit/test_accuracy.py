"""The stated error: understated and overstated noise are both rejected, the exact statement is not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from discreet.audit.accuracy import error_holds
from discreet.noise import discrete_laplace

DRAWS = 100_000


@dataclass(frozen=True)
class Stated:
    """The exact quantile of |X| for discrete Laplace noise: P(|X| > k) = 2 r^(k+1) / (1 + r), r = e^{-1/scale}."""

    scale: float
    error_slack: float | None = 0.0

    def error(self, confidence: float = 0.95) -> float:
        ratio = math.exp(-1 / self.scale)
        steps = self.scale * math.log(2 / ((1 + ratio) * (1 - confidence))) - 1
        return max(0, math.ceil(steps - 1e-12))


@pytest.mark.parametrize(("scale", "verdict"), [(20.0, "passed"), (22.0, "failed"), (18.0, "failed")])
def test_only_the_noise_that_was_stated_passes(scale: float, verdict: str) -> None:
    drawn = 7 + discrete_laplace(scale, DRAWS)
    assert error_holds(Stated(20.0), [(7, drawn)], miss=1e-9).verdict == verdict


@pytest.mark.parametrize(("scale", "verdict"), [(20.0, "passed"), (22.0, "failed"), (10.0, "passed")])
def test_an_error_that_is_no_quantile_must_only_hold(scale: float, verdict: str) -> None:
    drawn = discrete_laplace(scale, DRAWS)
    assert error_holds(Stated(20.0, error_slack=None), [(0, drawn)], miss=1e-9).verdict == verdict


def test_arrays_are_looked_at_by_their_first_coordinate() -> None:
    drawn = np.array([1, 2]) + discrete_laplace(20.0, (DRAWS, 2))
    assert error_holds(Stated(20.0), [(np.array([1, 2]), drawn)], miss=1e-9).verdict == "passed"
    assert error_holds(Stated(18.0), [(np.array([1, 2]), drawn)], miss=1e-9).verdict == "failed"


def test_no_statement_no_verdict() -> None:
    assert error_holds(object(), [(0, np.zeros(5))], miss=1e-9).verdict == "skipped"
    assert error_holds(Stated(1.0), [("a", np.array(["a"], dtype=object))], miss=1e-9).verdict == "skipped"
