r"""Randomized response: everyone answers truthfully with probability p, and the noise is taken out of the totals.

With k options, the truth is told with probability p = e^eps / (e^eps + k - 1), and every other option is named with
probability q = 1 / (e^eps + k - 1). If n_v of n people hold option v and c_v of the reports name it, then

    E c_v = n_v p + (n - n_v) q,        Var c_v = n_v p (1 - p) + (n - n_v) q (1 - q),

so (c_v - n q) / (p - q) is an unbiased estimate of n_v with variance Var c_v / (p - q)^2.
[Warner 1965; Kairouz et al. 2016]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import finite_epsilon
from discreet.arguments import count, real, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.selection import level
from discreet.mechanisms.values import blank, integers
from discreet.noise import uniform_integers
from discreet.noise.certified import exp_minus
from discreet.noise.coins import flip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["RandomizedResponse", "ResponseEstimate"]


@dataclass(frozen=True)
class ResponseEstimate:
    """How many people hold each option, estimated from their reports."""

    counts: NDArray[np.float64]
    """Unbiased estimates; they sum to the number of reports and may be negative."""

    standard_errors: NDArray[np.float64]
    """Root of the variance formula at the estimate (which is unbiased for the variance), at least 0."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    """Each option's count lies in [lower, upper] with at least the confidence that was asked for."""


@dataclass(frozen=True, repr=False)
class RandomizedResponse(Mechanism):
    """Everyone's own answer among `options` (the numbers 0 … options - 1): the truth with probability p, else another.

    The cost is that of one report, and 'replace-one' is what it protects: the answer could have been any other. Whoever
    gives several answers pays for each of them.

    >>> reports = RandomizedResponse(epsilon=1.0, options=3).release([0, 2, 1, 1])
    >>> reports.shape
    (4,)
    """

    kind: ClassVar[str] = "randomized_response"
    epsilon: float
    options: int = field(default=2, kw_only=True)
    adjacency: str = field(default="replace-one", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))
        object.__setattr__(self, "options", count("options", self.options, least=2))
        if self.adjacency != "replace-one":
            raise InvalidArgument(
                "adjacency",
                self.adjacency,
                "randomized response hides an answer, not whether somebody answered: the number of reports is public. "
                "Pass 'replace-one'",
            )
        if self.options > 1 << 62:
            raise InvalidArgument("options", self.options, "pass at most 2^62 options")

    @property
    def cost(self) -> Cost:
        return Cost.randomized_response(self.epsilon, options=self.options, adjacency=self.adjacency)

    @property
    def truth(self) -> float:
        """p: how likely the truth is told."""
        return 1 / (1 + (self.options - 1) * math.exp(-self.epsilon))

    @property
    def other(self) -> float:
        """q: how likely a given other option is named."""
        return math.exp(-self.epsilon) * self.truth

    @property
    def contrast(self) -> float:
        """p - q = (1 - e^-eps) p, without cancellation."""
        return -math.expm1(-self.epsilon) * self.truth

    def check(self, value: object) -> None:
        """Refuses what is neither an answer nor an array of them."""
        integers(_numbered(blank(value)) if self.options == 2 else blank(value))

    def release(self, value: object, *, generator: Generator | None = None) -> Any:
        """The reports: an int for an int, an int64 array for an array with one answer per person.

        Answers to a yes-or-no question may be given as booleans; their reports are 1 for yes and 0 for no.
        """
        answers = integers(_numbered(value) if self.options == 2 else value)
        array = np.atleast_1d(np.asarray(answers))
        if not isinstance(answers, np.ndarray) and not 0 <= answers < self.options:
            raise InvalidArgument("value", "an answer out of range", f"pass a number from 0 to {self.options - 1}")
        if ((array < 0) | (array >= self.options)).any():
            raise InvalidArgument("value", "an answer out of range", f"pass numbers from 0 to {self.options - 1}")
        kept = flip(self._bias, array.shape, generator=generator)
        others = uniform_integers(self.options - 1, array.shape, generator=generator)
        reports = np.where(kept, array, others + (others >= array))
        return reports.reshape(np.shape(answers)) if isinstance(answers, np.ndarray) else int(reports[0])

    def examples(self) -> list[tuple[int, int]]:
        """Two answers that differ: what an audit compares."""
        return [(0, 1)]

    def releases(self, value: int, n: int, *, generator: Generator | None = None) -> NDArray[np.int64]:
        """n independent reports of one answer."""
        reports: NDArray[np.int64] = self.release(np.full(n, value, dtype=np.int64), generator=generator)
        return reports

    def _bias(self, bits: int) -> tuple[int, int]:
        """p 2^bits from below and above, for epsilon in the reading that costs less."""
        work = bits + self.options.bit_length() + 8
        low, high = exp_minus(level(self.epsilon), work)
        one = 1 << work
        return (one << bits) // (one + (self.options - 1) * high), -(
            -(one << bits) // (one + (self.options - 1) * max(0, low))
        )

    def error(self, confidence: float = 0.95) -> float:
        """One report is at most this far from the answer, as numbers: the smallest d with p + d q >= confidence.

        Exact for an answer at either end, where d options lie within a distance d; 0 if the truth is likely enough.
        Totals are far more accurate than single reports: see `estimate_error`.
        """
        missing = unit_fraction("confidence", confidence) - self.truth
        return float(min(self.options - 1, math.ceil(missing / self.other * (1 + 1e-12)))) if missing > 0 else 0.0

    def estimate_error(self, confidence: float = 0.95, *, reports: int) -> float:
        """The estimated count of an option is at most this far from the true one, with this probability.

        Hoeffding's inequality for n independent reports: sqrt(n ln(2 / (1 - c)) / 2) / (p - q), or the largest error
        there is if that is smaller. [Hoeffding 1963, Thm 1]
        """
        confidence, reports = unit_fraction("confidence", confidence), count("reports", reports, least=1)
        tails = math.sqrt(reports * (math.log(2) - math.log1p(-confidence)) / 2)
        return min(tails, reports * max(self.truth, 1 - self.other)) / self.contrast * (1 + 1e-12)

    def variance(self, held: float, *, reports: int) -> float:
        """The exact variance of the estimated count of an option that `held` of the people hold."""
        reports = count("reports", reports, least=1)
        held = real("held", held)
        if not 0 <= held <= reports:
            raise InvalidArgument("held", held, f"pass a number from 0 to {reports}")
        p, q = self.truth, self.other
        return (held * p * (1 - p) + (reports - held) * q * (1 - q)) / self.contrast**2

    def estimate(self, reports: object, *, confidence: float = 0.95) -> ResponseEstimate:
        """Estimates of how many people hold each option, from everybody's reports.

        The intervals are those of Clopper and Pearson for the mean probability of a report, translated to counts. They
        are valid for the people that were asked, not only for a sample: of all sums of independent coins with one mean,
        the binomial has the heaviest tails. [Clopper and Pearson 1934; Hoeffding 1956, Thm 4]
        """
        confidence = unit_fraction("confidence", confidence)
        if confidence < 0.5:
            raise InvalidArgument("confidence", confidence, "pass at least 0.5: the proof needs short tails")
        given = np.atleast_1d(np.asarray(integers(reports, argument="reports"))).ravel()
        if self.options > 10**7:
            raise InvalidArgument("options", self.options, "estimates are made for up to 10^7 options")
        if ((given < 0) | (given >= self.options)).any():
            raise InvalidArgument("reports", "a report out of range", f"pass numbers from 0 to {self.options - 1}")
        return self._estimated(np.bincount(given, minlength=self.options), given.size, confidence)

    def _estimated(self, named: NDArray[Any], n: int, confidence: float) -> ResponseEstimate:
        from scipy.special import betaincinv

        p, q, miss = self.truth, self.other, (1 - confidence) / 2
        counts = (named - n * q) / self.contrast
        variances = (counts * p * (1 - p) + (n - counts) * q * (1 - q)) / self.contrast**2
        low, high = np.zeros(named.shape), np.ones(named.shape)
        some, left = named > 0, named < n
        low[some] = betaincinv(named[some], n - named[some] + 1, np.float64(miss))
        high[left] = betaincinv(named[left] + 1, n - named[left], np.float64(1 - miss))
        lower, upper = (n * np.clip((share - q) / self.contrast, 0.0, 1.0) for share in (low, high))
        return ResponseEstimate(
            counts=counts,
            standard_errors=np.sqrt(np.maximum(variances, 0.0)),
            lower=np.maximum(0.0, lower - 1e-9 * n),
            upper=np.minimum(float(n), upper + 1e-9 * n),
        )


def _numbered(value: object) -> object:
    """Booleans as 0 and 1, anything else as it is."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, list | tuple) and value and all(isinstance(answer, bool | np.bool_) for answer in value):
        return [int(answer) for answer in value]
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        return value.astype(np.int64)
    return value
