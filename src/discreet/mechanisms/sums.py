r"""Exact sums of bounded columns: fixed point, the same bit for bit in every order, with the sensitivity on paper.

Every row is clamped to [lower, upper], put on a lattice and added as an integer. What happens to a row depends on that
row alone: NaN becomes a declared number, infinities become the bound on their side. Floating-point addition would not
do: its result depends on the order of the rows, and one row can move it by far more than that row's value
[Casacuberta et al. 2022].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import ADJACENCIES, one_of, real
from discreet.errors import InvalidArgument
from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.values import unrounded

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Bounds"]

_LARGEST = 1 << 62
_LIMB = 31
_MOST_ROWS = 1 << 31
"""Two limbs of 31 bits of up to 2^31 rows: neither sum leaves int64."""


@dataclass(frozen=True)
class Bounds:
    r"""The interval that every row is clamped to, on a lattice: rows become integers, and their sum is exact.

    - `lower` and `upper` are moved inwards to the lattice, so clamped rows never exceed what was declared.
    - `granularity` is a power of two; by default 2^-30 of the larger bound.
    - A row x becomes floor(clamp(x) / granularity + 1/2). NaN becomes `missing`, by default the number in
      [lower, upper] that is nearest to zero. Infinities become the bound on their side.

    One row added or removed changes the sum by at most `sensitivity("add-remove")` = max(|lower|, |upper|), one row
    replaced by at most `sensitivity("replace-one")` = upper - lower: exactly, as numbers of steps.

    >>> from discreet.mechanisms import Bounds
    >>> bounds = Bounds(0, 10)
    >>> float(bounds.sum([1.5, 2.25, float("nan"), float("inf"), -3.0]))
    13.75
    """

    lower: float
    upper: float
    granularity: float | None = None
    missing: float | None = None

    def __post_init__(self) -> None:
        lower, upper = real("lower", self.lower), real("upper", self.upper)
        if not lower < upper:
            raise InvalidArgument("lower, upper", (self.lower, self.upper), "pass lower < upper")
        largest = max(abs(lower), abs(upper))
        fine = math.ldexp(1.0, math.frexp(largest)[1] - 31)
        lattice = Lattice.of(fine if self.granularity is None else self.granularity)
        for name, value in (("lower", lower), ("upper", upper), ("granularity", lattice.granularity)):
            object.__setattr__(self, name, value)
        if largest / lattice.granularity >= _LARGEST:
            raise InvalidArgument(
                "granularity",
                self.granularity,
                f"the bounds are more than 2^62 steps apart; pass at least "
                f"{math.ldexp(1.0, math.frexp(largest)[1] - 61)!r}",
            )
        low, high = self.ends
        if low >= high:
            raise InvalidArgument(
                "granularity", self.granularity, "no two multiples lie between the bounds; pass a finer one"
            )
        if self.missing is not None:
            missing = real("missing", self.missing)
            if not lower <= missing <= upper:
                raise InvalidArgument("missing", self.missing, "pass a number between lower and upper")
            object.__setattr__(self, "missing", missing)

    @property
    def lattice(self) -> Lattice:
        """The lattice of the rows and of their sum."""
        return Lattice.of(self.granularity)

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, moved inwards to the lattice."""
        step = self.lattice.step
        return math.ceil(Fraction(self.lower) / step), math.floor(Fraction(self.upper) / step)

    def steps_apart(self, adjacency: str = "add-remove") -> int:
        """How many steps the sum of two neighbours can differ by."""
        low, high = self.ends
        name = one_of("adjacency", adjacency, ADJACENCIES)
        return max(abs(low), abs(high)) if name == "add-remove" else high - low

    def sensitivity(self, adjacency: str = "add-remove") -> Fraction:
        """How much the sum of two neighbours can differ by: a multiple of the granularity, exactly."""
        return self.steps_apart(adjacency) * self.lattice.step

    def place(self, values: ArrayLike) -> NDArray[np.int64]:
        """Every row in steps: clamped, NaN replaced, rounded; a row's result depends on that row alone."""
        rows = _rows(values)
        low, high = self.ends
        if rows.dtype.kind in "iu":
            return self._place_integers(rows, low, high)
        if rows.dtype == object:
            exact = [self._place_one(row, low, high) for row in rows.flat]
            return np.array(exact, dtype=np.int64).reshape(rows.shape)
        rows = rows.astype(np.float64, copy=True)
        empty = np.isnan(rows)
        # floats on both sides of the clamp, so that what is placed lies within the exact bounds below
        np.clip(rows, self.lower, self.upper, out=rows)
        rows[empty] = 0.0
        placed = self.lattice.place(rows)
        assert isinstance(placed, np.ndarray)
        np.clip(placed, low, high, out=placed)
        placed[empty] = self._missing(low, high)
        return placed

    def _place_one(self, row: float, low: int, high: int) -> int:
        if not math.isfinite(row):
            return self._missing(low, high) if math.isnan(row) else (low if row < 0 else high)
        exact = Fraction(int(row) if isinstance(row, int | np.integer) else float(row))
        return min(high, max(low, math.floor(exact / self.lattice.step + Fraction(1, 2))))

    def _place_integers(self, rows: NDArray[Any], low: int, high: int) -> NDArray[np.int64]:
        """Integers stay exact beyond 2^53."""
        ends = np.iinfo(rows.dtype)
        # clamped to whole numbers that lie outside the bounds, or at the ends of the dtype: nothing below overflows
        least = max(ends.min, math.floor(self.lower))
        most = min(ends.max, math.ceil(self.upper))
        if least > most:  # no number of this dtype is within the bounds
            least = most = max(ends.min, min(ends.max, least))
        rows = np.clip(rows, least, most).astype(np.int64 if rows.dtype != np.uint64 or most < _LARGEST else object)
        exponent = self.lattice.exponent
        if rows.dtype == object or exponent > 62 or max(abs(least), abs(most)) << max(0, -exponent) >= _LARGEST:
            exact = [math.floor(Fraction(int(row)) / self.lattice.step + Fraction(1, 2)) for row in rows.flat]
            placed = np.array([min(high, max(low, row)) for row in exact], dtype=np.int64).reshape(rows.shape)
        else:
            # floor(x / 2^k + 1/2) = (x + 2^{k-1}) >> k
            placed = rows << -exponent if exponent <= 0 else (rows + (1 << (exponent - 1))) >> exponent
        return np.clip(placed, low, high)

    def _missing(self, low: int, high: int) -> int:
        if self.missing is None:
            return min(high, max(low, 0))
        placed = self.lattice.place(Fraction(self.missing))
        assert isinstance(placed, int)
        return min(high, max(low, placed))

    def steps(self, values: ArrayLike) -> int:
        """The exact sum of a column, in steps: a Python integer, so it cannot overflow. No rows sum to 0."""
        return _total(self.place(values).ravel())

    def sum(self, values: ArrayLike) -> Fraction:
        """The exact sum of a column, as a number."""
        return self.steps(values) * self.lattice.step

    def sums(self, table: ArrayLike) -> list[Fraction]:
        """The exact sums of the columns of a table of rows."""
        placed = self.place(table)
        if placed.ndim != 2:
            raise InvalidArgument("table", f"an array of {placed.ndim} dimensions", "pass rows and columns")
        return [_total(placed[:, column]) * self.lattice.step for column in range(placed.shape[1])]


def _rows(values: ArrayLike) -> NDArray[Any]:
    try:
        rows = np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidArgument("values", f"a {type(values).__name__}", "pass an array of numbers") from None
    if rows.size == 0 and rows.ndim:
        return np.zeros(rows.shape, dtype=np.int64)
    rows = unrounded(values, rows)
    exact = rows.dtype == object and all(isinstance(row, int | float | np.integer | np.floating) for row in rows.flat)
    if rows.ndim == 0 or (not exact and (rows.dtype.kind not in "iuf" or rows.dtype.itemsize > 8)):
        raise InvalidArgument(
            "values", f"{rows.dtype} of shape {rows.shape}", "pass an array of integers or floats up to 64 bits"
        )
    if rows.size >= _MOST_ROWS:
        raise InvalidArgument("values", f"{rows.size} numbers", "sum at most 2^31 at a time, and add the sums")
    return rows


def _total(placed: NDArray[np.int64]) -> int:
    """The exact sum, by two limbs where one int64 might not hold it."""
    if placed.size == 0:
        return 0
    widest = max(abs(int(placed.max())), abs(int(placed.min())))
    if widest * placed.size < _LARGEST:
        return int(placed.sum())
    high = int((placed >> _LIMB).sum())
    low = int((placed & ((1 << _LIMB) - 1)).sum())
    return (high << _LIMB) + low
