"""Moments: the sums that COUNT, SUM, AVG and VARIANCE are made of, as exact integers in the engine.

A value is clamped to its bounds, shifted by a public centre and rounded to a multiple of a public quantum 2^k; from
then on it is an integer, and sums of integers do not depend on the order of rows, the threads or the layout of files.

| rows that hold | contribute |
|---|---|
| NULL or NaN | nothing |
| a value below or above the bounds, ±infinity | the bound |
| no declared bounds | values beyond 2^31 in absolute value count as that; finer than 2^-16 is rounded |

Each number of a unit in a group is cut at ±2^47 quanta: its square has 94 bits, and the squares of 2^32 groups fit into
128, so that no sum can overflow. Without declared bounds, fractions need more room, and are cut at ±2^62 quanta, which
is 2^46; squares even more, and are cut at 2^94. The norm of numbers that are so large is taken in coarser steps (see
`bounding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.query.plan import Aggregate

__all__ = ["LARGEST", "MOST_ROWS", "WIDE", "WIDEST", "Moment", "is_centred", "moments_of", "number"]

LARGEST, WIDE, WIDEST = 1 << 47, 1 << 62, 1 << 94
"""No unit's number in one group is larger than the first of these, in quanta, unless nobody knows how large values are:
then fractions may be as large as the second, and squares as the third."""

MOST_ROWS = (1 << 31) - 1
"""No unit counts with more rows than this in one group."""

_UNDECLARED = 31  # log2 of the largest value without declared bounds
_FINEST = -16  # log2 of the quantum without declared bounds
_DIGITS = 30  # bits of a value with declared bounds
_SPREADS = {"variance", "variance_pop", "stddev", "stddev_pop"}
_WHOLE = 1.5 * 2.0**52  # next to it, up to 2^51 away, doubles are the whole numbers


@dataclass(frozen=True)
class Moment:
    """One sum over the rows of a unit in a group.

    `kind` is "rows", "present" (rows where the argument is not NULL), "units" (1 for each unit that has a row), "sum"
    (of x - centre) or "square" (of (x - centre)^2 - lift).
    """

    kind: str
    argument: str | None = None
    bounds: tuple[float, float] | None = None
    centre: float = 0.0
    integer: bool = False
    lift: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether the numbers are counts: whole and nonnegative."""
        return self.kind in ("rows", "present", "units")

    @property
    def largest(self) -> int:
        """No unit's number in one group is larger, in quanta."""
        if self.kind == "square" and self.bounds is None:
            return WIDEST
        return WIDE if self.kind == "sum" and self.bounds is None and not self.integer else LARGEST

    @property
    def sql_type(self) -> str:
        """The type of a unit's number in SQL."""
        return "HUGEINT" if self.largest > WIDE else "BIGINT"

    @property
    def sign(self) -> int:
        """1 or -1 if no row contributes anything below, or above, 0 by what is public, else 0."""
        if self.lift:
            return 0
        if self.counts or self.kind == "square" or (self.bounds is not None and self.bounds[0] >= self.centre):
            return 1
        return -1 if self.bounds is not None and self.bounds[1] <= self.centre else 0

    @cached_property
    def row_bound(self) -> float | None:
        """The largest contribution of one row in absolute value, if that is public."""
        if self.counts:
            return 1.0
        if self.bounds is None:
            return None
        reach = max(abs(self.bounds[0] - self.centre), abs(self.bounds[1] - self.centre))
        return max(reach * reach - self.lift, self.lift) if self.kind == "square" else reach

    @cached_property
    def exponent(self) -> int:
        """k of the quantum 2^k."""
        if self.counts:
            return 0
        if self.row_bound is None:
            return 0 if self.integer else _FINEST
        if self.row_bound == 0:
            return 0
        finest = math.ceil(math.log2(self.row_bound)) - _DIGITS
        whole = self.integer and self.kind == "sum" and float(self.centre).is_integer()
        return max(finest, 0) if whole else finest

    @property
    def quantum(self) -> float:
        """The step in which the numbers are counted."""
        return math.ldexp(1.0, self.exponent)

    @property
    def rounding(self) -> float:
        """By how much what a row counts for may differ from its value: nothing for whole numbers in whole steps."""
        whole = self.integer and float(self.centre).is_integer() and self.quantum <= 1
        return 0.0 if self.counts or (whole and self.kind == "sum") else self.quantum / 2

    @property
    def smallest(self) -> float:
        """The smallest bound on one unit that makes sense, in quanta: one row, or a small value if that is unknown."""
        if self.counts:
            return 1.0
        return 2.0**-4 / self.quantum if self.row_bound is None else max(1.0, self.row_bound / self.quantum / 64)

    @property
    def reach(self) -> float:
        """How many times the smallest bound the units' sizes may well be."""
        if self.counts:
            return 1e3
        return 1e7 if self.row_bound is None else 1e4

    @property
    def row_steps(self) -> int | None:
        """`row_bound` in quanta, rounded up."""
        return None if self.row_bound is None else self.steps_of_row(0)

    @property
    def most_of_row(self) -> float:
        """The largest contribution of one row in quanta: by declared bounds, or because larger values are cut."""
        if self.row_steps is not None:
            return float(self.row_steps)
        largest = math.ldexp(1.0, _UNDECLARED) + abs(self.centre)
        return (largest * largest if self.kind == "square" else largest) / self.quantum

    def steps_of_row(self, coarser: int) -> int:
        """`row_bound` in steps of 2^coarser quanta, rounded up; only where that is public."""
        assert self.row_bound is not None
        return math.ceil(self.row_bound / math.ldexp(self.quantum, coarser))

    def is_present_in(self, other: Moment) -> bool:
        """Whether this counts exactly the rows that have a `value` in the other one: neither NULL nor NaN."""
        return (
            self.kind == "present" and not self.integer and other.kind == "sum" and other.argument == self.argument
        ) and other.row_steps is not None

    def value(self, coarser: int = 0, *, double: bool = False) -> str:
        """SQL of one row's contribution in steps of 2^coarser quanta, an integer or NULL; never an error.

        With `double` it is a whole DOUBLE, which takes less time to make and to add up; only with declared bounds.
        Conditions do what least() and greatest() would, which take longer in the engine than all the rest of a sum. NaN
        is larger than infinity to the engine, so it meets none of them.
        """
        assert self.argument is not None
        x = f"CAST({self.argument} AS DOUBLE)"
        if self.bounds is not None:
            low, high = self.bounds
        else:
            high = math.ldexp(1.0, _UNDECLARED)
            low = -high
        within = self._whole(self._steps(x, coarser), double)
        return (
            f"CASE WHEN {x} BETWEEN {number(low)} AND {number(high)} THEN {within} "
            f"WHEN {x} < {number(low)} THEN {self._whole_of(self._steps_of(low, coarser), double)} "
            f"WHEN {x} <= {number(math.inf)} THEN {self._whole_of(self._steps_of(high, coarser), double)} END"
        )

    def _steps(self, x: str, coarser: int) -> str:
        """SQL of the contribution of a value within the bounds, in steps that need not be whole.

        Rounding is monotone, so it is at most `steps_of_row`, which is computed from the bounds by the same operations.
        """
        moved = x if self.centre == 0 else f"({x} - {number(self.centre)})"
        if self.kind == "square":
            moved = f"({moved} * {moved})" if self.lift == 0 else f"({moved} * {moved} - {number(self.lift)})"
        exponent = self.exponent + coarser
        return moved if exponent == 0 else f"{moved} * {number(math.ldexp(1.0, -exponent))}"

    def _steps_of(self, value: float, coarser: int) -> float:
        """What `_steps` gives for a value, by the same operations: a long statement takes long to be planned."""
        moved = value - self.centre
        if self.kind == "square":
            moved = moved * moved - self.lift
        return moved * math.ldexp(1.0, -self.exponent - coarser)

    def _whole(self, steps: str, double: bool) -> str:
        """SQL of the next whole number."""
        if double:
            # Beyond 2^52 doubles are whole, and the sum is rounded to the nearest, halves to even, as the cast below
            # does: what a row adds must not depend on the way. (round() takes halves up.) Steps are at most 2^30.
            return f"(({steps} + {number(_WHOLE)}) - {number(_WHOLE)})"
        # The cast rounds. Squares are in steps of 1 where values are whole, else of 2^-16, and may need 128 bits.
        return f"TRY_CAST({steps} AS {'BIGINT' if self.integer and self.kind != 'square' else self.sql_type})"

    def _whole_of(self, steps: float, double: bool) -> str:
        """The same of a number."""
        return number((steps + _WHOLE) - _WHOLE) if double else self._whole(number(steps), double)

    def total(self) -> str:
        """SQL of the sum over the rows of a group, not yet cut."""
        if self.kind == "rows":
            return "count(*)"
        if self.kind == "present":
            return f"count({self.argument if self.integer else f'NULLIF({self.argument}, {number(math.nan)})'})"
        if self.kind == "units":
            return "1"
        return f"coalesce(sum({self.value()}), 0)"

    def of_unit(self) -> str:
        """SQL of one unit's number in a group: at most `largest` in absolute value."""
        if self.kind in ("rows", "present"):
            return f"least({self.total()}, {MOST_ROWS})"
        if self.kind == "units":
            return "CAST(1 AS BIGINT)"
        return f"CAST(least(greatest({self.total()}, {-self.largest}), {self.largest}) AS {self.sql_type})"

    @property
    def label(self) -> str:
        """What it is, in words."""
        of = f" of {self.argument}" if self.argument else ""
        return {
            "rows": "number of rows",
            "present": f"number of values{of}",
            "units": "number of units",
            "sum": f"sum{of}",
            "square": f"sum of squares{of}",
        }[self.kind]


def moments_of(aggregate: Aggregate, others: tuple[Aggregate, ...]) -> tuple[Moment, ...]:
    """The moments that an aggregate is computed from, given all aggregates of the block; empty if it is no moment."""
    function, argument = aggregate.function, aggregate.argument
    if function == "count":
        return (Moment("rows") if argument is None else Moment("present", argument, integer=aggregate.kind != "float"),)
    if function == "count_units":
        return (Moment("units"),)
    integer = aggregate.kind != "float"
    bounds = aggregate.bounds
    same = {other.function for other in others if other.argument == argument}
    lift = 0.0
    if aggregate.middle and bounds is not None and same & {"avg", *_SPREADS}:
        centre = (bounds[0] + bounds[1]) / 2
        lift = (bounds[1] - centre) ** 2 / 2
    else:
        centre = 0.0 if not is_centred(same, bounds) else aggregate.centre if bounds is None else _centre(bounds)
    total = Moment("sum", argument, bounds, centre, integer)
    present = Moment("present", argument, integer=integer)
    if function == "sum":
        return (total,) if centre == 0 else (total, present)
    if function == "avg":
        return total, present
    if function in _SPREADS:
        return total, present, Moment("square", argument, bounds, centre, integer, lift)
    return ()


def is_centred(functions: set[str], bounds: tuple[float, float] | None) -> bool:
    """Whether values need not be measured from 0, given all functions of an argument.

    Where their sum is shown, that would be made of two noisy numbers. It is, beside a spread, from a centre that is
    public. Not from one that is chosen: which numbers a question needs must not depend on where that is.
    """
    return "sum" not in functions or (bounds is not None and bool(functions & _SPREADS))


def _centre(bounds: tuple[float, float]) -> float:
    """Where values are measured from if it has to be found how much of a unit counts.

    That is the middle of a range that does not nearly begin at 0, else its end next to 0: values of a wide range that
    begins near 0 are mostly near its lower end, and measuring from the middle would make every one of them large.
    """
    low, high = bounds
    if low < 0 < high:
        return (low + high) / 2 if min(-low, high) * 4 >= max(-low, high) else 0.0
    near, far = (low, high) if low >= 0 else (high, low)
    return (low + high) / 2 if abs(far) <= 8 * abs(near) else near


def number(value: float) -> str:
    """A DOUBLE in SQL, exactly: with an exponent, since a literal without one would be read as a DECIMAL."""
    if not math.isfinite(value):
        return f"CAST('{float(value)!r}' AS DOUBLE)"
    digits = repr(abs(float(value)))
    literal = digits if "e" in digits else f"{digits}e0"
    return f"(-{literal})" if math.copysign(1.0, value) < 0 else literal
