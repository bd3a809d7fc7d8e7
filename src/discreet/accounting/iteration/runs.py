"""A schedule as runs of equal numbers: a million equal steps are one row, a million different ones two arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Reals = NDArray[np.float64]
    Counts = NDArray[np.int64]

__all__ = ["Runs", "runs_of"]

_MOST = 2**62
"""Steps that are counted without overflow."""


@dataclass(frozen=True, eq=False)
class Runs:
    """How often each value is used, in order; values are finite and >= 0. Equal and hashed by content.

    >>> list(Runs.of("noise", [(2, 1.0), (1, 0.5)]))
    [(2, 1.0), (1, 0.5)]
    """

    counts: Counts
    values: Reals

    def __post_init__(self) -> None:
        if self.counts.shape != self.values.shape or self.counts.ndim != 1 or (self.counts < 1).any():
            raise InvalidArgument("counts", self.counts, "pass one whole number >= 1 for each value")
        _check("values", self.values, self.values >= 0, ">= 0")
        for array in (self.counts, self.values):
            array.setflags(write=False)

    @classmethod
    def of(cls, name: str, given: Any, *, positive_values: bool = False) -> Runs:
        """Runs from themselves or from pairs (how often, value), checked."""
        if isinstance(given, Runs):
            runs = given
        else:
            counts, values = _columns(name, given)
            _check(name, values, values >= 0, ">= 0")
            runs = cls(counts, values)
        if positive_values:
            _check(name, runs.values, runs.values > 0, "> 0")
        return runs

    @classmethod
    def same(cls, steps: int, value: float) -> Runs:
        """One value in every step."""
        return cls(np.array([steps], dtype=np.int64), np.array([float(value)]))

    @cached_property
    def steps(self) -> int:
        """How many steps there are."""
        return int(self.counts.sum())

    @cached_property
    def ends(self) -> Counts:
        """After which step each run ends."""
        return np.cumsum(self.counts)

    def joined(self) -> Runs:
        """The same schedule with neighbouring runs of the same value made one."""
        starts = np.flatnonzero(np.concatenate([[True], np.diff(self.values) != 0]))
        if len(starts) == len(self):
            return self
        return Runs(np.add.reduceat(self.counts, starts), self.values[starts])

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self.counts.tolist(), self.values.tolist(), strict=True))

    @cached_property
    def content(self) -> bytes:
        """Counts and values as bytes."""
        return self.counts.tobytes() + self.values.tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Runs):
            return NotImplemented
        return np.array_equal(self.counts, other.counts) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.content)

    def __repr__(self) -> str:
        if len(self) > 4:
            return f"Runs({len(self)} runs, {self.steps} steps)"
        return f"Runs({', '.join(f'{count} * {value!r}' for count, value in self)})"


def _check(name: str, values: Reals, good: NDArray[np.bool_], sign: str) -> None:
    if not (good & np.isfinite(values)).all():
        bad = values[~(good & np.isfinite(values))]
        raise InvalidArgument(name, float(bad[0]), f"pass finite numbers {sign}")


def _columns(name: str, given: Any) -> tuple[Counts, Reals]:
    """Counts and values of rows, checked to be two columns of numbers, the first whole and at least 1."""
    advice = "pass pairs (how often, value)"
    try:
        rows = list(given)
        if not rows:
            return np.empty(0, dtype=np.int64), np.empty(0)
        often, values = zip(*rows, strict=True)
        counts, numbers = np.array(often), np.array(values, dtype=np.float64) + 0.0  # -0.0 is 0.0
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(name, given, advice) from None
    if counts.dtype.kind not in "iuf" or counts.ndim != 1 or numbers.ndim != 1:
        raise InvalidArgument(name, given, advice)
    if not ((counts >= 1) & (counts == np.floor(counts))).all():
        raise InvalidArgument(name, given, f"{advice} with whole numbers >= 1")
    if float(counts.sum(dtype=np.float64)) > _MOST:
        raise InvalidArgument(name, given, f"{advice}, at most 2^62 steps")
    return counts.astype(np.int64), numbers


def runs_of(values: Reals) -> Runs:
    """A schedule with one number for each step, as runs of equal numbers.

    >>> runs_of(np.array([1.0, 1.0, 0.5]))
    Runs(2 * 1.0, 1 * 0.5)
    """
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    return Runs(np.ones(len(numbers), dtype=np.int64), numbers).joined() if len(numbers) else Runs.of("values", ())
