r"""The mean of data that lies close together, somewhere on the real line that nobody knows in advance.

Sorted, y_1 <= ... <= y_n. Dropping the J smallest and the J largest, S(y) = y_{J+1} + ... + y_{n-J}. With

    W_t(y) = max over a + b = t + 1 of y_{n-J+a} - y_{J+1-b}       (a, b >= 0, infinite beyond the ends),

one replaced person changes S by at most W_0(y), and W_t(y') <= W_{t+1}(y) for neighbours. Hence the number of t >= 0
with W_t(y) <= width changes by at most 1 between neighbours, and where it is positive S has sensitivity `width`: it is
a distance for propose-test-release. Proof in docs/proofs/stability.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.arguments import ADJACENCIES, count, one_of
from discreet.errors import InvalidArgument
from discreet.mechanisms.distance_test import DistanceTested
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sensitivity import sensitivity_of
from discreet.mechanisms.values import blank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting import Cost
    from discreet.noise import Generator

__all__ = ["ClusteredMean", "distance_to_spread"]

_FAR = 1e290
_SURE = 1 - 1e-9
_SHARE = 1 - 1e-9
"""Leaves room for the rounding of accountants, so that the whole reads as (epsilon, delta)."""

_ADVICE = "pass a one-dimensional array of numbers, one for each person"


@dataclass(frozen=True, init=False, repr=False)
class ClusteredMean(DistanceTested):
    """The mean of numbers without bounds, if all but a few lie within `width` of each other; else `REFUSED`.

    Where they lie need not be known. The `trim` smallest and largest numbers are left out, and the mean of the others
    is released with Laplace noise for sensitivity width / (size - 2 trim), if a test with half of `epsilon` finds the
    data far from data on which that sensitivity would be wrong. `outliers` is how many numbers, on either side, may lie
    elsewhere without harm: `trim` is that number and the distance that the test needs.

    Neighbours differ in one replaced person, so `size` is public. NaN counts as a number far to the right, infinities
    and numbers beyond 10^290 as numbers far out on their side.

    >>> import numpy as np
    >>> mean = ClusteredMean(epsilon=1.0, delta=1e-6, width=2.0, size=2000, outliers=5)
    >>> answer = mean.release(1234.0 + np.sin(np.arange(2000)))
    >>> mean.trim, abs(answer - 1234.0) < 0.1, round(mean.error(0.95), 4)
    (55, True, 0.0063)
    """

    kind: ClassVar[str] = "clustered_mean"

    width: float
    size: int
    outliers: int

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        width: float,
        size: int,
        outliers: int = 0,
        test: str = "optimal",
        adjacency: str = "replace-one",
    ) -> None:
        if one_of("adjacency", adjacency, ADJACENCIES) != "replace-one":
            raise InvalidArgument("adjacency", adjacency, "the size must be public: pass 'replace-one'")
        self._set_test(
            epsilon=epsilon,
            delta=delta,
            test=test,
            adjacency=adjacency,
            width=sensitivity_of("width", width),
            size=count("size", size, least=1),
            outliers=count("outliers", outliers),
        )
        if self.size <= 2 * self.trim:
            raise InvalidArgument(
                "size",
                size,
                f"this needs more than {2 * self.trim} numbers: pass more, a larger epsilon or fewer outliers",
            )
        _ = self.noise

    @property
    def test_epsilon(self) -> float:
        """Half of epsilon goes to the test, the other half to the noise."""
        return self.epsilon / 2 * _SHARE

    @property
    def test_delta(self) -> float:
        """All of delta goes to the test."""
        return self.delta * _SHARE

    @cached_property
    def trim(self) -> int:
        """How many numbers are left out on either side."""
        return self.outliers + self.distance_needed(_SURE)

    @cached_property
    def noise(self) -> Laplace:
        """The mechanism that releases the sum of the numbers that are left."""
        return Laplace(epsilon=self.epsilon / 2 * _SHARE, sensitivity=self.width, adjacency=self.adjacency)

    def check(self, value: Any) -> None:
        """Refuses what is no column of the declared size."""
        self._checked(blank(value))

    def _checked(self, data: Any) -> NDArray[Any]:
        """The numbers in steps of the lattice, sorted."""
        try:
            values = np.asarray(data)
        except (TypeError, ValueError):
            raise InvalidArgument("data", f"a {type(data).__name__}", _ADVICE) from None
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise InvalidArgument("data", f"an array of {values.dtype} with {values.ndim} dimensions", _ADVICE)
        if values.size != self.size:
            raise InvalidArgument("data", f"{values.size} numbers", f"this mechanism was made for size={self.size}")
        numbers = np.nan_to_num(values.astype(np.float64), nan=_FAR, posinf=_FAR, neginf=-_FAR).clip(-_FAR, _FAR)
        return self._placed(np.sort(numbers))

    def _placed(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        """The numbers in steps: int64 if all fit, else Python integers, made one by one only where it must be."""
        lattice = self.noise.lattice
        fits = np.abs(numbers) < math.ldexp(1.0, min(lattice.exponent + 61, 1000))
        if fits.all():
            return np.asarray(lattice.place(numbers))
        steps = np.empty(numbers.shape, dtype=object)
        for chosen in (fits, ~fits):
            if chosen.any():
                steps[chosen] = np.asarray(lattice.place(numbers[chosen])).astype(object)
        return steps

    def _distance(self, steps: NDArray[Any]) -> int:
        """The number of t >= 0 with W_t <= width."""
        return distance_to_spread(steps, trim=self.trim, width=self.noise.lattice.l1_steps(Fraction(self.width), 1))

    def _answer(self, data: Any, generator: Generator) -> float:
        kept = data[self.trim : self.size - self.trim]
        total = sum(int(y) for y in kept) * self.noise.lattice.step
        return self.noise.release(total, generator=generator) / int(kept.size)

    def _answer_cost(self) -> Cost:
        return self.noise.cost

    def examples(self) -> list[tuple[Any, Any]]:
        """Safe data whose sum moves by all of the width, and data on both sides of the middle of the test."""
        cluster = np.where(np.arange(self.size) % 2, 0.0, self.width)
        moved = np.append(cluster[:-2], [self.width, self.width])
        far = np.where(np.arange(self.size) < self.trim - self.distance_needed(0.5), math.inf, cluster)
        return [(cluster, moved), (far, np.append(far[:-1], math.inf))]

    def bad_values(self) -> list[Any]:
        """What is no column of the declared size."""
        return [None, 1.0, "text", np.zeros(self.size + 1), np.zeros((self.size, 1)), np.full(self.size, "a")]

    def error(self, confidence: float = 0.95) -> float:
        """How far an answer is, with this probability, from the mean of the numbers that are left in."""
        return self.noise.error(confidence) / (self.size - 2 * self.trim) + self.noise.granularity / 2


def distance_to_spread(steps: NDArray[Any], *, trim: int, width: int) -> int:
    """The number of t >= 0 with W_t <= width for sorted integers, in O(trim)."""
    upper = [int(y) for y in steps[steps.size - trim - 1 :]]  # y_{n-J+a} for a = 0..J
    lower = [int(y) for y in steps[trim::-1]]  # y_{J+1-b} for b = 0..J
    # The smallest a + b that exceeds the width: as a grows, the first such b can only fall.
    fewest, b = trim + 1, trim + 1
    for a, high in enumerate(upper):
        while b > 0 and high - lower[b - 1] > width:
            b -= 1
        fewest = min(fewest, a + b)
    return max(0, fewest - 1)
