"""A private test of how far data is from trouble: the middle of propose-test-release."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import numpy as np

from discreet.accounting import Cost
from discreet.arguments import ADJACENCIES, count, one_of, unit_fraction
from discreet.mechanisms.keeping import Keeping, at_most
from discreet.mechanisms.key_selection import key_failure, key_level
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.thresholding import laplace_threshold, log_laplace_tail
from discreet.noise import discrete_laplace
from discreet.noise.generator import chosen_generator

if TYPE_CHECKING:
    from discreet.noise import Generator

__all__ = ["REFUSED", "TESTS", "DistanceTested", "Refused"]

TESTS: Final = ("optimal", "laplace")


@final
class Refused:
    """The answer when a test fails: there is one, `REFUSED`. It is falsy; compare with `answer is REFUSED`."""

    _only: ClassVar[Refused | None] = None

    def __new__(cls) -> Refused:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "REFUSED"

    def __reduce__(self) -> tuple[type[Refused], tuple[()]]:
        return Refused, ()


REFUSED: Final = Refused()


@dataclass(frozen=True, init=False, repr=False)
class DistanceTested(Mechanism):
    r"""Answers only on data that are far from every data set on which answering is unsafe.

    A data set is *safe* if answering on it and on any of its neighbours are as close as the answer's own cost says. The
    distance d is a whole number that changes by at most 1 between neighbours and is 0 on every unsafe data set.
    The answer is given with probability p_d, else `REFUSED`. Two tests:

    - "optimal": p_d = π_{d+1}, the largest probabilities with p_0 <= delta that are (test_epsilon, delta)-DP, see
      `KeySelection`;
    - "laplace": d + Z >= t with discrete Laplace noise Z of scale 1 / test_epsilon and the smallest t for which
      P(Z >= t) = e^{-t test_epsilon} / (1 + e^{-test_epsilon}) <= delta. This is the rule "noisy distance above
      ln(1/δ)/ε" of [Dwork and Lei 2009], with the constant of the noise that is drawn.

    Either way the release costs (test_epsilon, delta) and what the answer costs on safe data; proof in
    docs/proofs/stability.md.
    """

    epsilon: float
    delta: float
    test: str

    def _set_test(self, *, epsilon: object, delta: object, test: object, adjacency: str, **others: Any) -> None:
        one_of("adjacency", adjacency, ADJACENCIES)
        self._set(
            epsilon=key_level(epsilon),
            delta=key_failure(delta),
            test=one_of("test", test, TESTS),
            adjacency=adjacency,
            **others,
        )

    @property
    def test_epsilon(self) -> float:
        """The epsilon of the test: all of `epsilon`, unless the answer takes a part of it."""
        return self.epsilon

    @property
    def test_delta(self) -> float:
        """The delta of the test."""
        return self.delta

    def distance(self, data: Any) -> int | float:
        """How far the data is from unsafe data: not private, for those who may see the data."""
        return self._distance(self._checked(data))

    @abstractmethod
    def _distance(self, data: Any) -> int | float:
        """The distance of data that was checked."""

    @abstractmethod
    def _answer(self, data: Any, generator: Generator) -> Any:
        """What is released if the test passes."""

    @abstractmethod
    def _answer_cost(self) -> Cost:
        """What the answer costs on safe data."""

    def _checked(self, data: Any) -> Any:
        """The data in the form that distance and answer take; refuses what cannot be data."""
        return data

    @property
    def cost(self) -> Cost:
        """(test_epsilon, delta) for the test, and the cost of the answer on safe data."""
        return Cost.approximate(self.test_epsilon, self.test_delta, adjacency=self.adjacency) + self._answer_cost()

    @cached_property
    def _keeping(self) -> Keeping:
        return Keeping(at_most(self.test_epsilon), at_most(self.test_delta))

    @cached_property
    def threshold(self) -> int:
        """The distance that passes for sure ("optimal"), or that the noisy one must reach ("laplace")."""
        if self.test == "optimal":
            return self._keeping.end - 1
        return laplace_threshold(self.test_epsilon, math.log(self.test_delta))

    def probability_of_answering(self, distance: int) -> float:
        """p_d, the probability that data at this distance from unsafe data is answered."""
        number = count("distance", distance)
        if self.test == "optimal":
            return self._keeping.probability(number + 1)
        return math.exp(log_laplace_tail(self.test_epsilon, self.threshold - number))

    def distance_needed(self, confidence: float = 0.95) -> int:
        """The smallest distance at which the answer is given with at least this probability."""
        target = unit_fraction("confidence", confidence)
        if self.test == "optimal":
            return max(0, self._keeping.least(target) - 1)
        low, high = -1, self.threshold
        while self.probability_of_answering(high) < target:
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.probability_of_answering(middle) >= target else (middle, high)
        return high

    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        """The answer, or `REFUSED` if the test fails: check with `is REFUSED`."""
        data = self._checked(value)
        distance = self._distance(data)
        source = chosen_generator(generator)
        return self._answer(data, source) if self._passes(distance, source) else REFUSED

    def _passes(self, distance: float, generator: Generator) -> bool:
        if distance == math.inf:
            return True
        if self.test == "optimal":
            supporters = np.array([min(int(distance) + 1, 1 << 62)], dtype=np.int64)
            return bool(self._keeping.draw(supporters, generator)[0])
        return int(distance) + discrete_laplace(1 / at_most(self.test_epsilon), generator=generator) >= self.threshold
