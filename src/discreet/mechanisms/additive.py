"""Mechanisms that add integer noise: to integers as they are, and to reals on a lattice fixed in advance."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from discreet.arguments import count, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.lattice import added
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.values import blank, integers, reals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.mechanisms.lattice import Lattice
    from discreet.noise import Generator

__all__ = ["Additive", "IntegerAdditive", "LatticeAdditive"]


@dataclass(frozen=True, init=False, repr=False)
class Additive(Mechanism):
    """Independent integer noise on every coordinate, in steps of some unit.

    A subclass says how it is drawn and how far it reaches; both may depend on the number of coordinates of the value,
    which neighbouring data sets must share and which every release shows.
    """

    @abstractmethod
    def _draw(self, dimension: int, shape: tuple[int, ...] | None, generator: Generator | None) -> Any:
        """Noise in steps for a value of this many coordinates: an int if shape is None, else int64 of that shape."""

    @abstractmethod
    def _reach(self, miss: float, dimension: int) -> int:
        """The smallest number of steps that one coordinate's noise exceeds with probability at most `miss`."""

    @abstractmethod
    def _moments(self, dimension: int) -> tuple[float, float]:
        """E|Z| and E Z^2 of one coordinate's noise in steps."""

    @property
    def _unit(self) -> float:
        return 1.0

    @property
    def _rounding(self) -> float:
        """How far, in steps, the value may be from where the noise is added."""
        return 0.0

    def _declared(self) -> int | None:
        """The number of coordinates, if the mechanism was told."""
        return getattr(self, "dimension", None)

    def _coordinates(self, dimension: object) -> int:
        declared = self._declared()
        if dimension is None:
            return declared or 1
        number = count("dimension", dimension, least=1)
        if declared is not None and number != declared:
            raise InvalidArgument("dimension", dimension, f"this mechanism was made for dimension {declared}")
        return number

    def _size_of(self, value: object) -> int:
        size = value.size if isinstance(value, np.ndarray) else 1
        declared = self._declared()
        if declared is not None and size != declared:
            raise InvalidArgument(
                "value", f"{size} coordinates", f"this mechanism was made for dimension {declared}; release that many"
            )
        return size

    def error(self, confidence: float = 0.95, *, dimension: int | None = None, simultaneous: bool = False) -> float:
        """The half-width that holds with this probability: |released - value| <= error(confidence).

        It is the exact quantile of the integer noise plus the half step by which the value was rounded, if it was. It
        holds for each coordinate; with `simultaneous` for all coordinates at once, whose noise is independent.
        `dimension` is the number of coordinates, 1 unless declared.
        """
        confidence = unit_fraction("confidence", confidence)
        coordinates = self._coordinates(dimension)
        miss = -math.expm1(math.log(confidence) / coordinates) if simultaneous else 1 - confidence
        return (self._reach(miss * (1 - 1e-15), coordinates) + self._rounding) * self._unit

    @property
    def error_slack(self) -> float:
        """`error(confidence)` is at most this much above the exact quantile of |released - value|."""
        return (self._rounding + 1) * self._unit

    @property
    def variance(self) -> float:
        """The variance of the noise on one coordinate."""
        return self._moments(self._coordinates(None))[1] * self._unit**2

    @property
    def expected_absolute_error(self) -> float:
        """The mean of |noise| on one coordinate."""
        return self._moments(self._coordinates(None))[0] * self._unit


@dataclass(frozen=True, init=False, repr=False)
class IntegerAdditive(Additive):
    """Integers in, integers out."""

    def check(self, value: Any) -> None:
        """Refuses what is neither a whole number nor an array of them, or has another dimension than was declared."""
        self._size_of(integers(blank(value)))

    @overload
    def release(self, value: int, *, generator: Generator | None = None) -> int: ...

    @overload
    def release(
        self, value: NDArray[np.integer[Any]] | Sequence[Any], *, generator: Generator | None = None
    ) -> NDArray[np.int64]: ...

    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        """The value plus integer noise: an int for an int, an int64 array for an array.

        Arrays stop at the ends of int64; that is a function of the exact sum, so it reveals nothing more.
        """
        placed = integers(value)
        size = self._size_of(placed)
        if isinstance(placed, int):
            return placed + int(self._draw(size, None, generator))
        return _saturating_sum(placed, self._draw(size, placed.shape, generator))

    def releases(self, value: Any, n: int, *, generator: Generator | None = None) -> Any:
        """n independent releases of one value: int64 of shape (n, *shape of the value)."""
        number = count("n", n)
        placed = integers(value)
        size = self._size_of(placed)
        steps = integers([placed] if isinstance(placed, int) else placed[None])
        assert isinstance(steps, np.ndarray)
        noise = self._draw(size, (number, *np.shape(placed)), generator)
        return _saturating_sum(np.broadcast_to(steps, noise.shape), noise)


@dataclass(frozen=True, init=False, repr=False)
class LatticeAdditive(Additive):
    """Reals in, multiples of the granularity out: see `lattice` for the rounding and what it adds to a sensitivity."""

    sensitivity: float

    @property
    @abstractmethod
    def lattice(self) -> Lattice:
        """The lattice of all possible outputs."""

    @property
    def _unit(self) -> float:
        return self.lattice.granularity

    @property
    def _rounding(self) -> float:
        return 0.5

    def check(self, value: Any) -> None:
        """Refuses what is neither a number nor an array of them, or has another dimension than was declared."""
        self._size_of(reals(blank(value)))

    @overload
    def release(self, value: float | Fraction, *, generator: Generator | None = None) -> float: ...

    @overload
    def release(
        self, value: NDArray[Any] | Sequence[Any], *, generator: Generator | None = None
    ) -> NDArray[np.float64]: ...

    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        """The value, rounded to the lattice, plus integer noise: a float for a number, float64 for an array.

        Results are multiples of the granularity: exactly up to 2^53 steps, and the nearest float beyond.
        """
        exact = reals(value)
        size = self._size_of(exact)
        placed = self.lattice.place(exact)
        shape = None if isinstance(placed, int) else placed.shape
        return self.lattice.restore(added(placed, self._draw(size, shape, generator)))

    def releases(self, value: Any, n: int, *, generator: Generator | None = None) -> Any:
        """n independent releases of one value: float64 of shape (n, *shape of the value)."""
        number = count("n", n)
        exact = reals(value)
        size = self._size_of(exact)
        placed = self.lattice.place(exact)
        if isinstance(placed, int):
            placed = np.array(placed, dtype=np.int64 if abs(placed) < 1 << 62 else object)
        noise = self._draw(size, (number, *placed.shape), generator)
        return self.lattice.restore(added(np.broadcast_to(placed, noise.shape), noise))

    def examples(self) -> list[tuple[Any, Any]]:
        """One person moves one coordinate by all of the sensitivity, or as many as allowed."""
        changed = getattr(self, "coordinates", 1)
        size = self._declared() or changed
        if size == 1:
            return [(0.0, self.sensitivity)]
        there = np.zeros(size)
        there[:changed] = self.sensitivity
        return [(np.zeros(size), there)]


def _saturating_sum(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """left + right, stopped at the ends of int64."""
    total = left + right
    wrapped = ((left ^ total) & (right ^ total)) < 0  # both have the sign that the sum lacks
    ends = np.iinfo(np.int64)
    return np.where(wrapped, np.where(left < 0, ends.min, ends.max), total)
