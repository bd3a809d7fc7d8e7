"""The median, or another quantile, with noise for how close together the data really is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting import Cost
from discreet.arguments import ADJACENCIES, one_of, real, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.keeping import at_most
from discreet.mechanisms.key_selection import key_failure, key_level
from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.smooth_sensitivity import Levels, laplace_growth, level_of_rank
from discreet.mechanisms.values import blank_rows
from discreet.noise import discrete_laplace
from discreet.noise.generator import chosen_generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["SmoothQuantile"]

_FINENESS = 30
_FLOOR = 22
_WIDEST = 37
_ADVICE = "pass a one-dimensional array of numbers, one for each person"


@dataclass(frozen=True, init=False, repr=False)
class SmoothQuantile(Mechanism):
    """A quantile of numbers in [lower, upper], the median by default, with Laplace noise for its smooth sensitivity.

    Noise for the worst case would be as wide as [lower, upper]. This noise has scale 2 S / epsilon, where S bounds how
    far the quantile of *this* data can move and changes little between neighbours: its logarithm by about
    epsilon / (2 ln(1/delta)) [Nissim et al. 2007]. Lattice and levels of S are fixed in advance, and S is computed in
    whole numbers, so the release is (epsilon, delta)-DP on the computer: docs/proofs/stability.md.

    The quantile is the ceil(quantile n)-th smallest number (the lower median for even n), `lower` of no data. Rows are
    clamped to [lower, upper]; NaN is left out. The noise is at least 2^-22 of upper - lower, divided by epsilon / 2.

    >>> import numpy as np
    >>> median = SmoothQuantile(lower=0, upper=1000, epsilon=1.0, delta=1e-6)
    >>> data = 500 + 100 * np.sin(np.arange(100_001))
    >>> abs(median.release(data) - 500) < 50, median.error_for(data, 0.95) < 2
    (True, True)
    """

    kind: ClassVar[str] = "smooth_quantile"

    lower: float
    upper: float
    epsilon: float
    delta: float
    quantile: float

    def __init__(
        self,
        *,
        lower: float,
        upper: float,
        epsilon: float,
        delta: float,
        quantile: float = 0.5,
        adjacency: str = "add-remove",
    ) -> None:
        one_of("adjacency", adjacency, ADJACENCIES)
        bottom, top = real("lower", lower), real("upper", upper)
        if not bottom < top or not 1e-250 <= top - bottom <= 1e250:
            raise InvalidArgument("lower, upper", (lower, upper), "pass lower < upper, less than 1e250 apart")
        self._set(
            lower=bottom,
            upper=top,
            epsilon=key_level(epsilon),
            delta=key_failure(delta),
            quantile=unit_fraction("quantile", quantile),
            adjacency=adjacency,
        )
        _ = self._levels.units

    @property
    def cost(self) -> Cost:
        """(epsilon, delta)."""
        return Cost.approximate(self.epsilon, self.delta, adjacency=self.adjacency)

    # ---------------------------------------------------------------- what is fixed in advance

    @cached_property
    def _multiplier(self) -> Fraction:
        """Noise scale divided by S."""
        return 2 / at_most(self.epsilon)

    @cached_property
    def _bits(self) -> int:
        """log2 of the number of steps: fewer for tiny epsilon, so that the widest noise can be drawn exactly."""
        return min(_FINENESS, _WIDEST - max(0, math.ceil(math.log2(float(self._multiplier)))))

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of all possible outputs: 2^30 steps or a little more between lower and upper."""
        return Lattice(math.frexp(self.upper - self.lower)[1] - 1 - self._bits)

    @property
    def granularity(self) -> float:
        """The step of the lattice."""
        return self.lattice.granularity

    @cached_property
    def _ends(self) -> tuple[int, int]:
        return self._place_one(self.lower), self._place_one(self.upper)

    def _place_one(self, value: float) -> int:
        placed = self.lattice.place(Fraction(value))
        assert isinstance(placed, int)
        return placed

    @cached_property
    def _levels(self) -> Levels:
        least = 1 << max(0, self._bits - _FLOOR)
        growth = laplace_growth(at_most(self.epsilon), at_most(self.delta), least_scale=self._multiplier * least)
        return Levels(least, max(self._ends[1] - self._ends[0], least), growth)

    # ---------------------------------------------------------------- releasing

    def _checked(self, data: Any) -> tuple[int, int]:
        """The quantile in steps above `lower`, and the level of its noise."""
        try:
            values = np.asarray(data)
        except (TypeError, ValueError):
            raise InvalidArgument("data", f"a {type(data).__name__}", _ADVICE) from None
        if values.ndim != 1 or (values.dtype.kind not in "iuf" and values.size):
            raise InvalidArgument("data", f"an array of {values.dtype} with {values.ndim} dimensions", _ADVICE)
        numbers = values.astype(np.float64)
        numbers = numbers[~np.isnan(numbers)].clip(self.lower, self.upper)
        rank = math.ceil(Fraction(self.quantile) * numbers.size)
        ordered, skipped = self._near(numbers, rank)
        width = self._ends[1] - self._ends[0]
        level = level_of_rank(ordered, rank - skipped, lower=0, upper=width, levels=self._levels)
        return int(ordered[rank - skipped - 1]) if rank else 0, level

    def _near(self, numbers: NDArray[np.float64], rank: int) -> tuple[NDArray[np.int64], int]:
        """The numbers of ranks within reach, sorted, in steps above `lower`, and how many smaller ones there are."""
        reach = self._levels.units.size + 2
        first, last = max(0, rank - 1 - reach), min(numbers.size, rank + reach)
        if first > 0 or last < numbers.size:
            ends = sorted({first, last - 1})
            numbers = np.partition(numbers, ends)[first:last]
        if not numbers.size:
            return np.zeros(0, dtype=np.int64), 0
        placed = np.asarray(self.lattice.place(np.sort(numbers)))
        return (placed - self._ends[0]).astype(np.int64), first

    def scale_for(self, data: Any) -> float:
        """The noise scale that this data gets: not private, for those who may see the data and for simulations."""
        _, level = self._checked(data)
        return float(self._multiplier * self._levels.scale(level)) * self.granularity

    def check(self, value: Any) -> None:
        """Refuses what is no column of numbers."""
        self._checked(blank_rows(value))

    def release(self, value: Any, *, generator: Generator | None = None) -> float:
        """The noisy quantile, a multiple of the granularity clamped to [lower, upper]."""
        steps, level = self._checked(value)
        source = chosen_generator(generator)
        noise = discrete_laplace(self._multiplier * self._levels.scale(level), generator=source)
        low, high = self._ends
        answer = float(self.lattice.restore(min(max(low + steps + noise, low), high)))
        return min(max(answer, self.lower), self.upper)

    def error(self, confidence: float = 0.95) -> float:
        """upper - lower: nothing better holds for all data. See `error_for`."""
        unit_fraction("confidence", confidence)
        return self.upper - self.lower

    def error_for(self, data: Any, confidence: float = 0.95) -> float:
        """The half-width that holds with this probability for this data: not private, as `scale_for`."""
        miss = 1 - unit_fraction("confidence", confidence)
        _, level = self._checked(data)
        scale = float(self._multiplier * self._levels.scale(level))
        # P(|Z| > k) = 2 e^{-(k+1)/b} / (1 + e^{-1/b})
        steps = max(0, math.ceil(-scale * math.log(miss * (1 + math.exp(-1 / scale)) / 2) - 1 + 1e-9))
        return min((steps + 0.5) * self.granularity, self.upper - self.lower)

    # ---------------------------------------------------------------- auditing

    def examples(self) -> list[tuple[Any, Any]]:
        """No data against one number, a median that jumps, and one that is stuck."""
        middle = (self.lower + self.upper) / 2
        split = [self.lower] * 20 + [self.upper] * 20
        pairs: list[tuple[Any, Any]] = []
        for base in (split, [middle] * 200):
            other = [*base, self.upper] if self.adjacency == "add-remove" else [*base[1:], self.upper]
            pairs.append((np.array(base), np.array(other)))
        return pairs

    def bad_values(self) -> list[Any]:
        """What is no column of numbers."""
        return [None, 3.0, "text", ["a"], np.zeros((2, 2)), np.array([1j]), [[1.0], [2.0]]]
