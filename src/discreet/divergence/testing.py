r"""Neyman-Pearson tests: what an attacker who sees one release can achieve.

The attacker decides between the null hypothesis (the person is not in the data: noise around 0) and the alternative
(the person is: noise around the shift). By the Neyman-Pearson lemma the best tests compare the likelihood ratio with a
threshold; for symmetric log-concave noise that is the observation itself. [Neyman and Pearson 1933]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arguments import nonnegative, unit_fraction
from discreet.divergence.shifted import ShiftedFamily, gaussian_noise, laplace_noise
from discreet.divergence.tradeoff import TradeOff
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from discreet.divergence.logspace import Reals

__all__ = ["ThresholdTest", "bayes_error", "gaussian_test", "laplace_test", "positive_predictive_value"]


@dataclass(frozen=True)
class ThresholdTest:
    r"""Raise the alarm if the observation exceeds a threshold; unit noise, around 0 or around `shift`.

    Thresholds are in units of the noise scale. For noise of scale sigma around 0 or 1, threshold t there is t/sigma
    here, and shift = 1/sigma: P_FA = P(X > t/sigma), P_MD = P(X > (1 - t)/sigma).
    """

    family: ShiftedFamily
    shift: float
    tradeoff: TradeOff

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", nonnegative("shift", self.shift))

    def false_alarm(self, threshold: ArrayLike) -> Reals:
        """Probability of an alarm when the person is not in the data (type I error)."""
        return np.exp(self.family.log_upper_tail(np.asarray(threshold, dtype=np.float64)))[()]

    def missed_detection(self, threshold: ArrayLike) -> Reals:
        """Probability of no alarm when the person is in the data (type II error)."""
        return np.exp(self.family.log_upper_tail(self.shift - np.asarray(threshold, dtype=np.float64)))[()]

    def detection(self, threshold: ArrayLike) -> Reals:
        """Probability of an alarm when the person is in the data, accurate also where it is tiny."""
        return np.exp(self.family.log_upper_tail(np.asarray(threshold, dtype=np.float64) - self.shift))[()]

    def positive_predictive_value(self, threshold: ArrayLike, *, prior: float) -> Reals:
        """Probability that the person is in the data given an alarm, if it was `prior` before."""
        prior = unit_fraction("prior", prior)
        points = np.asarray(threshold, dtype=np.float64)
        # the ratio of the two tails in log space: both may underflow
        log_odds = self.family.log_upper_tail(points - self.shift) - self.family.log_upper_tail(points)
        return 1.0 / (1.0 + np.exp(math.log1p(-prior) - math.log(prior) - log_odds))

    def advantage(self) -> float:
        """Largest detection minus false alarm of any test, reached at the threshold shift/2: the total variation."""
        return self.tradeoff.advantage()


def gaussian_test(mu: float) -> ThresholdTest:
    """The test behind mu-Gaussian differential privacy: N(0, 1) or N(mu, 1).

    >>> test = gaussian_test(1.0)
    >>> round(float(test.false_alarm(0.5)), 6), round(float(test.missed_detection(0.5)), 6)
    (0.308538, 0.308538)
    """
    return ThresholdTest(gaussian_noise(), mu, TradeOff.gaussian(mu))


def laplace_test(epsilon: float) -> ThresholdTest:
    """The test behind the Laplace mechanism with epsilon = sensitivity / scale.

    >>> round(laplace_test(1.0).advantage(), 6)
    0.393469
    """
    return ThresholdTest(laplace_noise(), epsilon, TradeOff.laplace(epsilon))


def positive_predictive_value(curve: TradeOff, *, prior: float, false_alarm: ArrayLike) -> Reals:
    r"""Largest probability that the person is in the data given an alarm, over the tests with that false alarm.

        PPV = prior (1 - f(alpha)) / (prior (1 - f(alpha)) + (1 - prior) alpha)

    >>> round(float(positive_predictive_value(TradeOff.gaussian(1.0), prior=0.01, false_alarm=1e-3)), 6)
    0.155999
    """
    prior = unit_fraction("prior", prior)
    alpha = np.asarray(false_alarm, dtype=np.float64)
    if not ((alpha > 0) & (alpha <= 1)).all():
        raise InvalidArgument("false_alarm", false_alarm, "pass probabilities > 0 and <= 1")
    # odds against: one division of two numbers that may both be tiny
    return (1.0 / (1.0 + (1.0 - prior) / prior * (alpha / curve.power(alpha))))[()]


def bayes_error(curve: TradeOff, *, prior: float) -> float:
    r"""Smallest probability of a wrong guess when the person is in the data with probability `prior`.

        min over alpha of (1 - prior) alpha + prior f(alpha) = prior (1 - delta(ln((1 - prior)/prior)))

    At prior 1/2 it is (1 - advantage)/2.

    >>> round(bayes_error(TradeOff.gaussian(1.0), prior=0.5), 6)
    0.308538
    """
    prior = unit_fraction("prior", prior)
    if prior > 0.5:  # seen from the other hypothesis, so that delta is read at epsilon >= 0
        curve, prior = curve.inverse(), 1.0 - prior
    return prior * (1.0 - float(curve.delta(math.log1p(-prior) - math.log(prior))))
