r"""Choosing a candidate by its score: the exponential mechanism, permute-and-flip, report-noisy-max and the top k.

Scores u_1, …, u_n are computed from the data. `sensitivity` bounds how much one person changes *each* of them (the
l-infinity norm). With a = epsilon / (2 sensitivity), or a = epsilon / sensitivity if the scores are `monotone`, all of
these release an index with a law that depends on the scores through a u_i alone.

`monotone` means: between any two neighbouring data sets either no score falls or no score rises. Counting scores are
monotone under 'add-remove': a new record raises some and lowers none. Under 'replace-one' they are not.

Scores are exact numbers (ints, Fractions, floats at their exact value) and the law is exact: no softmax in floating
point is on the path from bits to choice.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import decimal, finite_epsilon
from discreet.arguments import count, one_of, truth, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.sensitivity import as_written, sensitivity_of
from discreet.mechanisms.values import blank
from discreet.noise import exponential_choice, noisy_top, permute_and_flip
from discreet.noise.scores import Scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax", "Selection", "TopK", "flag", "level"]


def level(epsilon: float) -> Fraction:
    """The smaller of a float's exact value and the decimal number it prints as: a claim that holds in both readings."""
    return min(Fraction(epsilon), decimal(epsilon))


def flag(argument: str, value: object) -> bool:
    """A statement that is True or False, also as NumPy writes them."""
    return truth(argument, bool(value) if isinstance(value, np.bool_) else value)


def example_scores(
    sensitivity: float, *, monotone: bool, candidates: int | None
) -> list[tuple[list[float], list[float]]]:
    """Scores and their neighbours, as far apart as they may be: one rises, and the others fall unless monotone."""
    others = (candidates or 4) - 1
    if not others:
        return [([0.0], [sensitivity])]
    fallen = 0.0 if monotone else -sensitivity
    return [([0.0] * (others + 1), [sensitivity] + [fallen] * others)]


@dataclass(frozen=True, repr=False)
class Selection(Mechanism):
    """What all choices by score have in common: parameters, their check, and the factor a of the scores."""

    epsilon: float
    sensitivity: float = field(kw_only=True)
    monotone: bool = field(default=False, kw_only=True)
    candidates: int | None = field(default=None, kw_only=True)
    """How many candidates there are, if that is known in advance; then `release` takes that many scores."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))
        object.__setattr__(self, "sensitivity", sensitivity_of("sensitivity", self.sensitivity))
        object.__setattr__(self, "monotone", flag("monotone", self.monotone))
        if self.candidates is not None:
            object.__setattr__(self, "candidates", count("candidates", self.candidates, least=1))

    @cached_property
    def factor(self) -> Fraction:
        """a, exactly: scores enter the law as a * score."""
        return level(self.epsilon) / (as_written(self.sensitivity) * (1 if self.monotone else 2))

    def check(self, value: object) -> None:
        """Refuses what are not scores, or not as many as were declared."""
        self._check_number(value)
        Scores(blank(value) if isinstance(value, np.ndarray | Sequence) else value)

    def release(self, value: object, *, generator: Generator | None = None) -> int:
        """The index of the chosen candidate, from one score per candidate."""
        self._check_number(value)
        return self._choose(value, generator)

    @abstractmethod
    def _choose(self, scores: object, generator: Generator | None) -> int:
        """The chosen index; checks the scores before it draws."""

    @abstractmethod
    def _gap(self, confidence: float, candidates: int) -> float:
        """a times the gap that holds with this probability."""

    def error(self, confidence: float = 0.95, *, candidates: int | None = None) -> float:
        """The chosen score is at most this far below the best one, with this probability, whatever the scores are."""
        confidence = unit_fraction("confidence", confidence)
        number = self._number(candidates)
        return 0.0 if number == 1 else self._gap(confidence, number) / float(self.factor) * (1 + 1e-12)

    def examples(self) -> list[tuple[list[float], list[float]]]:
        """Scores that one person may turn into each other: what an audit compares."""
        return example_scores(self.sensitivity, monotone=self.monotone, candidates=self.candidates)

    def _number(self, candidates: object) -> int:
        given = self.candidates if candidates is None else count("candidates", candidates, least=1)
        if given is None:
            raise InvalidArgument(
                "candidates", None, "the error grows with the number of candidates: pass candidates=, here or above"
            )
        if self.candidates is not None and given != self.candidates:
            raise InvalidArgument("candidates", given, f"this mechanism was made for {self.candidates} candidates")
        return given

    def _check_number(self, scores: object) -> None:
        if self.candidates is not None and hasattr(scores, "__len__") and len(scores) != self.candidates:
            raise InvalidArgument(
                "scores", f"{len(scores)} scores", f"this mechanism was made for {self.candidates} candidates"
            )


@dataclass(frozen=True, repr=False)
class ExponentialMechanism(Selection):
    """Candidate i with probability e^{a u_i} / sum_j e^{a u_j}. [McSherry and Talwar 2007]

    It is epsilon-DP and of bounded range epsilon: its log-probabilities move within a window of that length, which
    composes better than epsilon-DP alone. [Dong et al. 2020]

    >>> ExponentialMechanism(epsilon=20, sensitivity=1).release([3, 50, 7])
    1
    """

    kind: ClassVar[str] = "exponential_mechanism"

    @property
    def cost(self) -> Cost:
        return Cost.exponential_mechanism(self.epsilon, adjacency=self.adjacency)

    def releases(self, value: object, n: int, *, generator: Generator | None = None) -> NDArray[np.int64]:
        """n independent choices from the same scores, at a fraction of the time; each of them costs `cost`."""
        self._check_number(value)
        return exponential_choice(value, n, scale=self.factor, generator=generator)

    def _choose(self, scores: object, generator: Generator | None) -> int:
        return exponential_choice(scores, scale=self.factor, generator=generator)

    def _gap(self, confidence: float, candidates: int) -> float:
        return _softmax_gap(confidence, candidates)


@dataclass(frozen=True, repr=False)
class PermuteAndFlip(Selection):
    """Goes through the candidates in random order and takes the first whose coin of bias e^{a (u_i - max u)} falls.

    It is epsilon-DP, and its expected score is never below that of the exponential mechanism.
    [McKenna and Sheldon 2020] It is not of bounded range: for many compositions the exponential mechanism may be the
    better choice. For monotone scores a may be doubled, because the noisy maximum of exponential noise, which has the
    same law [Ding et al. 2021], compares numbers that move by at most `sensitivity` against each other.

    >>> PermuteAndFlip(epsilon=20, sensitivity=1).release([3, 50, 7])
    1
    """

    kind: ClassVar[str] = "permute_and_flip"

    @property
    def cost(self) -> Cost:
        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def _choose(self, scores: object, generator: Generator | None) -> int:
        return permute_and_flip(scores, scale=self.factor, generator=generator)

    def _gap(self, confidence: float, candidates: int) -> float:
        return _flip_gap(confidence, candidates)


NOISES = ("exponential", "gumbel", "laplace")


@dataclass(frozen=True, repr=False)
class ReportNoisyMax(Selection):
    """The candidate with the largest a u_i + noise of scale 1, compared as real numbers and never rounded.

    "exponential" noise has the law of permute-and-flip [Ding et al. 2021], "gumbel" that of the exponential mechanism
    with its bounded range; "laplace" is the textbook version: never better, here for comparison. All are epsilon-DP:
    given the other candidates' noise, i wins if its own exceeds a threshold that a person moves by at most
    2 sensitivity (sensitivity, if the scores are monotone), and a step of s costs a factor e^{a s} of that probability.

    >>> ReportNoisyMax(epsilon=20, sensitivity=1, noise="gumbel").release([3, 50, 7])
    1
    """

    kind: ClassVar[str] = "report_noisy_max"
    noise: str = field(default="exponential", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("noise", self.noise, NOISES)

    @property
    def cost(self) -> Cost:
        if self.noise == "gumbel":
            return Cost.exponential_mechanism(self.epsilon, adjacency=self.adjacency)
        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def _choose(self, scores: object, generator: Generator | None) -> int:
        return int(noisy_top(scores, noise=self.noise, scale=self.factor, generator=generator)[0])

    def _gap(self, confidence: float, candidates: int) -> float:
        if self.noise == "laplace":
            return _laplace_gap(confidence, candidates)
        return (_flip_gap if self.noise == "exponential" else _softmax_gap)(confidence, candidates)


@dataclass(frozen=True, repr=False)
class TopK(Mechanism):
    """The k best candidates, the best first: k exponential mechanisms at epsilon / k, each without those chosen before.

    Drawn at once as the k largest of a u_i + Gumbel noise, which is the same law [Durfee and Rogers 2019]. The cost is
    that of k mechanisms of bounded range epsilon / k: epsilon-DP, and less at delta > 0 than epsilon-DP alone.

    >>> TopK(2, epsilon=60, sensitivity=1).release([3, 50, 70]).tolist()
    [2, 1]
    """

    kind: ClassVar[str] = "top_k"
    k: int
    epsilon: float = field(kw_only=True)
    sensitivity: float = field(kw_only=True)
    monotone: bool = field(default=False, kw_only=True)
    candidates: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "k", count("k", self.k, least=1))
        one = self._one
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))
        for name in ("sensitivity", "monotone", "candidates"):
            object.__setattr__(self, name, getattr(one, name))
        if self.candidates is not None and self.candidates < self.k:
            raise InvalidArgument("k", self.k, f"there are only {self.candidates} candidates")

    @cached_property
    def _one(self) -> ExponentialMechanism:
        """One of the k choices, at epsilon / k."""
        return ExponentialMechanism(
            _share(finite_epsilon(self.epsilon), self.k),
            sensitivity=self.sensitivity,
            monotone=self.monotone,
            candidates=self.candidates,
            adjacency=self.adjacency,
        )

    @cached_property
    def factor(self) -> Fraction:
        """a of every choice, exactly: epsilon / k over the sensitivity, or over twice it if not monotone."""
        return self._one.factor

    @property
    def cost(self) -> Cost:
        return self.k * self._one.cost

    def check(self, value: object) -> None:
        """Refuses what are not scores, or not as many as were declared."""
        self._one.check(value)

    def release(self, value: object, *, generator: Generator | None = None) -> NDArray[np.int64]:
        """The indices of the k chosen candidates, from one score per candidate."""
        self._one._check_number(value)
        return noisy_top(value, self.k, scale=self.factor, generator=generator)

    def examples(self) -> list[tuple[list[float], list[float]]]:
        """Scores that one person may turn into each other: what an audit compares."""
        number = self.candidates or max(4, self.k + 1)
        return example_scores(self.sensitivity, monotone=self.monotone, candidates=number)

    def error(self, confidence: float = 0.95, *, candidates: int | None = None) -> float:
        """Every chosen score is at most this far below the k-th best, with this probability, whatever the scores are.

        The j-th choice is among n - j + 1 candidates of which at most n - j are bad, whatever was chosen before: all k
        choices are good with probability at least the product of 1 / (1 + (n - j) e^{-a gap}).
        """
        confidence = unit_fraction("confidence", confidence)
        number = self._one._number(candidates)
        if number < self.k:
            raise InvalidArgument("candidates", number, f"pass at least k = {self.k}")
        bad = np.arange(number - 1, number - self.k - 1, -1, dtype=float)
        misses = lambda gap: -math.expm1(-float(np.log1p(bad * math.exp(-gap)).sum()))
        return _smallest(misses, 1 - confidence) / float(self.factor) * (1 + 1e-12)


def _share(epsilon: float, k: int) -> float:
    """The largest float that prints as at most a k-th of what epsilon prints as: k of them stay within epsilon."""
    exact = decimal(epsilon) / k
    value = float(exact)
    while decimal(value) > exact:
        value = math.nextafter(value, 0.0)
    return value


def _softmax_gap(confidence: float, candidates: int) -> float:
    """The worst case is one best candidate and all others at the gap: (n-1) e^{-gap} <= (1 - c) / c."""
    return max(0.0, math.log(candidates - 1) + math.log(confidence) - math.log1p(-confidence))


def _flip_gap(confidence: float, candidates: int) -> float:
    """The same worst case: the best one is taken with probability (1 - (1 - q)^n) / (n q), q = e^{-gap}."""

    def misses(gap: float) -> float:
        q = math.exp(-gap)
        if candidates * q < 1e-6:  # the formula cancels; it is (n - 1) q / 2 minus something
            return (candidates - 1) * q / 2
        taken = -math.expm1(candidates * math.log1p(-q)) if q < 1 else 1.0
        return (1 - taken / (candidates * q)) * (1 + 1e-9)  # more than the cancellation can hide

    return _smallest(misses, 1 - confidence)


def _laplace_gap(confidence: float, candidates: int) -> float:
    """A union bound: one of n - 1 differences of Laplace variables exceeds the gap, each with e^{-g} (2 + g) / 4."""
    return _smallest(lambda gap: (candidates - 1) * math.exp(-gap) * (2 + gap) / 4, 1 - confidence)


def _smallest(misses: Callable[[float], float], allowed: float) -> float:
    """The smallest gap whose probability of being exceeded is at most what is allowed, rounded up."""
    low, high = 0.0, 1.0
    if misses(low) <= allowed:
        return low
    while misses(high) > allowed:
        high *= 2
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if misses(middle) <= allowed else (middle, high)
    return high
