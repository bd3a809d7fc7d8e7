r"""Many questions, few that matter: above-threshold and the sparse vector technique.

A stream of values f_1, f_2, … is compared with a public threshold T, and only the comparisons are released:

    above_i = [ f_i + nu_i >= T + rho ],    rho ~ Laplace(D / e1),    nu_i ~ Laplace(2 c D / e2), fresh for each i,

until c of them were above. However many values there are, this is (e1 + e2)-DP if one person changes each f_i by at
most D = `sensitivity`; with monotone answers (between neighbours no f_i falls, or none rises) nu_i ~ Laplace(c D / e2)
is enough. epsilon is split as e1 : e2 = 1 : (2c)^{2/3}, or 1 : c^{2/3} for monotone answers, which makes the variance
of nu_i - rho smallest. [Lyu et al. 2017]

The noise is real-valued and drawn bit by bit: a comparison takes as many bits as it needs and is never made on rounded
numbers, so the theorem holds as it stands. The noisy threshold stays the same for all questions and is never released.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import finite_epsilon
from discreet.arguments import count, real, unit_fraction
from discreet.errors import BudgetExceeded, InvalidArgument
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.selection import flag, level
from discreet.mechanisms.sensitivity import as_written, sensitivity_of
from discreet.mechanisms.values import blank, reals
from discreet.noise.lazy import LazyNoise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["AboveThreshold", "Comparisons", "SparseVector"]

_FLOAT_ERROR = 2.0**-46


@dataclass(frozen=True, repr=False)
class Comparing(Mechanism):
    """What above-threshold and sparse vector share: parameters, the split of epsilon, and sessions."""

    epsilon: float
    sensitivity: float = field(kw_only=True)
    threshold: float = field(kw_only=True)
    monotone: bool = field(default=False, kw_only=True)
    queries: int | None = field(default=None, kw_only=True)
    """How many values will be asked about at most, if that is known in advance; the cost does not depend on it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))
        object.__setattr__(self, "sensitivity", sensitivity_of("sensitivity", self.sensitivity))
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        object.__setattr__(self, "monotone", flag("monotone", self.monotone))
        if self.queries is not None:
            object.__setattr__(self, "queries", count("queries", self.queries, least=1))

    @property
    @abstractmethod
    def limit(self) -> int:
        """After how many answers 'above' it ends: c."""

    @cached_property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The scales of rho and of nu_i, exactly."""
        changes = self.limit if self.monotone else 2 * self.limit
        epsilon, sensitivity = level(self.epsilon), as_written(self.sensitivity)
        first = epsilon * Fraction(1 / (1 + changes ** (2 / 3)))
        return sensitivity / first, changes * sensitivity / (epsilon - first)

    @property
    def cost(self) -> Cost:
        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def session(self, *, generator: Generator | None = None) -> Comparisons:
        """A new run with a fresh noisy threshold: each costs `cost`, however many values are asked about."""
        return Comparisons(self, generator=generator)

    def examples(self) -> list[tuple[list[float], list[float]]]:
        """Values that one person may turn into each other: what an audit compares."""
        number = min(self.queries or 4, 4)
        other = 0.0 if self.monotone else -self.sensitivity
        changed = [self.threshold + change for change in (*[other] * (number - 1), self.sensitivity)]
        return [([self.threshold] * number, changed)]

    def check(self, value: object) -> None:
        """Refuses what is no list, or a longer one than was declared."""
        self._listed(blank(value) if isinstance(value, np.ndarray | list | tuple) else value)

    def _listed(self, values: object) -> list[object]:
        """The values of a one-dimensional array or list, all checked before the first of them is compared."""
        if not isinstance(values, np.ndarray | list | tuple) or (isinstance(values, np.ndarray) and values.ndim != 1):
            raise InvalidArgument(
                "value", type(values).__name__, "pass a one-dimensional array or a list; ask a session() one by one"
            )
        if not len(values):
            raise InvalidArgument("value", values, "there is nothing to compare in an empty list")
        if self.queries is not None and len(values) > self.queries:
            raise InvalidArgument("value", f"{len(values)} values", f"this was made for at most {self.queries} queries")
        listed = list(values)
        for one in listed:
            _number(one)
        return listed

    def error(self, confidence: float = 0.95, *, queries: int | None = None) -> float:
        """With this probability every 'above' has f_i >= T - error and every 'below' has f_i <= T + error.

        True if |rho| <= r and all |nu_i| <= s with r + s = error; these are independent, and the best split is taken.
        """
        confidence = unit_fraction("confidence", confidence)
        number = self.queries if queries is None else count("queries", queries, least=1)
        if number is None:
            raise InvalidArgument(
                "queries", None, "the error grows with the number of values: pass queries=, here or above"
            )
        first, each = (float(scale) for scale in self.scales)
        shares = np.linspace(0, 1, 1002)[1:-1]
        log_first = shares * math.log(confidence)  # ln P(|rho| <= r); the rest is left for the nu_i
        log_each = (1 - shares) * math.log(confidence) / number
        reach = -first * np.log(-np.expm1(log_first)) - each * np.log(-np.expm1(log_each))
        return float(reach.min()) * (1 + 1e-12)


@dataclass(frozen=True, repr=False)
class AboveThreshold(Comparing):
    """The index of the first value above a threshold, approximately: sparse vector that ends with its first 'above'.

    >>> AboveThreshold(epsilon=50, sensitivity=1, threshold=100).release([3, 20, 250, 400])
    2
    """

    kind: ClassVar[str] = "above_threshold"

    @property
    def limit(self) -> int:
        """One."""
        return 1

    def release(self, value: object, *, generator: Generator | None = None) -> int | None:
        """The index of the first of these values that is above, None if there is none."""
        values = self._listed(value)
        run = self.session(generator=generator)
        return next((i for i, one in enumerate(values) if run.ask(one)), None)


@dataclass(frozen=True, repr=False)
class SparseVector(Comparing):
    """Which of many values are above a threshold, approximately, until `positives` of them are.

    >>> SparseVector(epsilon=90, sensitivity=1, threshold=100, positives=2).release([300, 3, 200, 400]).tolist()
    [True, False, True]
    """

    kind: ClassVar[str] = "sparse_vector"
    positives: int = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "positives", count("positives", self.positives, least=1))
        if self.positives > 10**12:
            raise InvalidArgument("positives", self.positives, "pass at most 10^12: so many answers are no longer few")

    @property
    def limit(self) -> int:
        """The number of positives."""
        return self.positives

    def release(self, value: object, *, generator: Generator | None = None) -> NDArray[np.bool_]:
        """Whether each value is above; ends with the last of the positives, so the answer may be shorter."""
        values = self._listed(value)
        run = self.session(generator=generator)
        answers = []
        for one in values:
            answers.append(run.ask(one))
            if not run.remaining:
                break
        return np.array(answers, dtype=np.bool_)


class Comparisons:
    """One run of above-threshold or sparse vector: a noisy threshold, and values asked about one by one.

    The values may be chosen after seeing earlier answers. When the last positive was given, further values are refused.
    """

    def __init__(self, mechanism: Comparing, *, generator: Generator | None = None) -> None:
        self.mechanism = mechanism
        self.remaining = mechanism.limit
        """How many more answers may be 'above'."""
        self.asked = 0
        self._generator = generator
        self._first, self._each = mechanism.scales
        self._threshold = Fraction(mechanism.threshold)
        self._rho = LazyNoise("laplace", 1, generator=generator)

    def ask(self, value: object) -> bool:
        """Whether the value is above the threshold, approximately."""
        exact = _number(value)
        if not self.remaining:
            raise BudgetExceeded(requested=1, remaining=0, unit="answers above the threshold")
        if self.mechanism.queries is not None and self.asked >= self.mechanism.queries:
            raise BudgetExceeded(requested=1, remaining=0, unit="queries")
        self.asked += 1
        nu = LazyNoise("laplace", 1, generator=self._generator)
        above = exceeds(exact - self._threshold, nu, self._each, self._rho, self._first)
        self.remaining -= above
        return above


def exceeds(margin: Fraction, nu: LazyNoise, each: Fraction, rho: LazyNoise, first: Fraction) -> bool:
    """Whether margin + each * nu >= first * rho, in floats if these are certain and with further bits if not."""
    up, down = _product(nu, each), _product(rho, first)
    start = _float(margin)
    total = start + up[0] - down[0]
    error = up[1] + down[1] + _FLOAT_ERROR * (abs(start) + abs(up[0]) + abs(down[0]))
    if abs(total) > error:  # false if anything is infinite or NaN
        return total > 0
    bits = 64
    while True:
        (low, high), (least, most) = nu.ends(0, bits), rho.ends(0, bits)
        if low is not None and most is not None and margin * (1 << bits) + each * low - first * most >= 0:
            return True
        if high is not None and least is not None and margin * (1 << bits) + each * high - first * least < 0:
            return False
        bits += 64


def _number(value: object) -> Fraction:
    exact = reals(value)
    if not isinstance(exact, Fraction):
        raise InvalidArgument("value", "an array", "ask about one number at a time")
    return exact


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _product(noise: LazyNoise, scale: Fraction) -> tuple[float, float]:
    values, error = noise.floats()
    factor = _float(scale)
    return float(values[0]) * factor, float(np.broadcast_to(error, 1)[0]) * factor
