"""Propose-test-release for any answer that is safe on most data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet.accounting import Cost
from discreet.errors import AdjacencyMismatch, InvalidArgument, StorageError
from discreet.mechanisms.distance_test import DistanceTested

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.noise import Generator

__all__ = ["ProposeTestRelease"]


@dataclass(frozen=True, init=False, repr=False)
class ProposeTestRelease(DistanceTested):
    """A base answer, given only if the data passes a private test of its distance to unsafe data [Dwork and Lei 2009].

    - `base` is a function of the data whose value does not change between safe data and its neighbours, or anything
      with `cost` and `release(value, generator=...)`, such as a mechanism, whose cost holds on safe data only.
    - `statistic`, if given, is applied to the data first: `base` then gets its value.
    - `distance_to_unsafe` maps the data to a whole number >= 0 (or infinity) that changes by at most 1 between
      neighbours and is 0 wherever `base` is not safe. The Hamming distance to the nearest unsafe data set is the
      largest such function; a lower bound of it that changes by at most 1 is as good.

    These two facts are yours to prove: nothing can check them here. The release costs (epsilon, delta) and
    the cost of the base. It gives the base's answer or `REFUSED`.

    >>> import numpy as np
    >>> def margin(votes):  # the majority changes only if half of the lead is replaced
    ...     return max(0, (abs(2 * int(np.sum(votes)) - len(votes)) - 1) // 2)
    >>> majority = ProposeTestRelease(
    ...     lambda votes: bool(2 * np.sum(votes) > len(votes)), margin, epsilon=1.0, delta=1e-6,
    ...     adjacency="replace-one")
    >>> majority.release(np.array([1] * 80 + [0] * 20)), majority.cost.epsilon(1e-6) < 1.000001
    (True, True)
    """

    base: Any
    distance_to_unsafe: Callable[[Any], Any]
    statistic: Callable[[Any], Any] | None

    def __init__(
        self,
        base: Any,
        distance_to_unsafe: Callable[[Any], Any],
        *,
        epsilon: float,
        delta: float,
        statistic: Callable[[Any], Any] | None = None,
        test: str = "optimal",
        adjacency: str = "add-remove",
    ) -> None:
        private = isinstance(getattr(base, "cost", None), Cost) and callable(getattr(base, "release", None))
        if not private and not callable(base):
            raise InvalidArgument(
                "base", base, "pass a function of the data, or something with cost and release(value)"
            )
        if not callable(distance_to_unsafe):
            raise InvalidArgument(
                "distance_to_unsafe", distance_to_unsafe, "pass a function from the data to an int >= 0"
            )
        if statistic is not None and not callable(statistic):
            raise InvalidArgument("statistic", statistic, "pass a function from the data to what the base releases")
        self._set_test(
            epsilon=epsilon,
            delta=delta,
            test=test,
            adjacency=adjacency,
            base=base,
            distance_to_unsafe=distance_to_unsafe,
            statistic=statistic,
        )
        if private and base.cost.adjacency != adjacency:
            raise AdjacencyMismatch(adjacency, base.cost.adjacency)

    def _distance(self, data: Any) -> int | float:
        """`distance_to_unsafe(data)`, checked."""
        found = self.distance_to_unsafe(data)
        if isinstance(found, float) and found == math.inf:
            return math.inf
        if isinstance(found, int | np.integer) and not isinstance(found, bool) and found >= 0:
            return int(found)
        raise InvalidArgument(
            "distance_to_unsafe", f"a {type(found).__name__}", "it must return an int >= 0 (round down), or math.inf"
        )

    def _answer(self, data: Any, generator: Generator) -> Any:
        value = data if self.statistic is None else self.statistic(data)
        if hasattr(self.base, "release"):
            return self.base.release(value, generator=generator)
        return self.base(value)

    def _answer_cost(self) -> Cost:
        return self.base.cost if hasattr(self.base, "release") else Cost.zero(adjacency=self.adjacency)

    def error(self, confidence: float = 0.95) -> float:
        """The distance from unsafe data at which the base's answer is given with at least this probability."""
        return float(self.distance_needed(confidence))

    def to_dict(self) -> NoReturn:
        """Refuses: functions cannot be stored. Store the arguments and make the mechanism again."""
        raise StorageError(
            "a ProposeTestRelease holds functions, which have no stored form. Store its epsilon, delta, test and "
            "adjacency, and make it again from your functions; its cost can be stored with cost.to_dict()."
        )
