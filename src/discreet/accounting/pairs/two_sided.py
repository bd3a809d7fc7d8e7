r"""A Poisson-sampled Gaussian step when one record is replaced: both data sets may hold a record, or none.

If every record adds a vector of length at most 1 to the sum and s is the noise, then

    P = (1-q) N(0, s^2) + q N(1, s^2),      Q = (1-q) N(0, s^2) + q N(-1, s^2)

dominate: proof in docs/proofs/replaced.md. Sampling the pair N(2, s^2), N(0, s^2) of the unsampled release instead
gives too little after composition [Lebeda et al. 2024]. With y = e^{x/s^2} and c = q e^{-1/(2 s^2)} the loss at x is
ln((1-q) + c y) - ln((1-q) + c/y), rising in x, and

    x = s^2 (l/2 + asinh((1-q) sinh(l/2) / c)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING, Tails
from discreet.accounting.pairs.tails import TailsPair
from discreet.divergence.special import ndtr

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals

__all__ = ["TwoSidedGaussianPair"]


@dataclass(frozen=True)
class TwoSidedGaussianPair(TailsPair):
    """One record replaced in a Poisson-sampled sum with Gaussian noise of standard deviation `sigma`."""

    sigma: float
    rate: float
    symmetric = True
    most_points = 1 << 20
    tail_error = 4096 * ROUNDING

    @property
    def span(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def output(self, loss: Reals) -> Reals:
        """The output x with this loss."""
        half = 0.5 * np.abs(loss)
        log_scale = math.log1p(-self.rate) - math.log(self.rate) + 0.5 / self.sigma**2
        with np.errstate(divide="ignore"):
            # ln sinh(h) = h + ln((1 - e^{-2h}) / 2)
            log_ratio = log_scale + half + np.log(-0.5 * np.expm1(-2 * half))
        bend = np.where(log_ratio > 300, log_ratio + math.log(2.0), np.arcsinh(np.exp(np.minimum(log_ratio, 300.0))))
        return np.asarray(np.sign(loss) * self.sigma**2 * (half + bend))

    def tails(self, loss: Reals) -> Tails:
        x = self.output(np.clip(loss, -1e6, 1e6)) / self.sigma
        shift, q = 1 / self.sigma, self.rate
        return Tails(
            (1 - q) * ndtr(-x) + q * ndtr(shift - x),
            (1 - q) * ndtr(x) + q * ndtr(x - shift),
            (1 - q) * ndtr(-x) + q * ndtr(-x - shift),
            (1 - q) * ndtr(x) + q * ndtr(x + shift),
        )
