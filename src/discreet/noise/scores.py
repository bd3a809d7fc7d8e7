"""Scores of candidates: exact numbers, with their distance to the best one as certified floats."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import rational
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Scores", "exponents_of_each", "factor_of"]

_ADVICE = "pass a non-empty one-dimensional array or list of finite ints, Fractions or floats, one score per candidate"
_SMALLEST = 5e-324
_SMALLEST_FACTOR, _LARGEST_FACTOR = 1e-290, 1e290


class Scores:
    """Scores at their exact value, and `gaps`: how far each stays below the best, within a relative 2^-52.

    A gap beyond the range of floats is infinite and one below it 5e-324; it is 0 exactly for the best scores.
    Refuses NaN, infinities and anything that is not a number, and never repeats a score in a message.
    """

    __slots__ = ("_best", "_values", "gaps")

    def __init__(self, scores: object, *, argument: str = "scores") -> None:
        values = _canonical(scores, argument)
        self._values = values
        self.gaps: NDArray[np.float64]
        if isinstance(values, list):
            self._best = best = max(values)
            self.gaps = np.array([_rounded(best - value) for value in values])
        elif values.dtype == np.float64:
            top = float(values.max())
            if not math.isfinite(top) or not math.isfinite(values.min()):  # NaN spreads through both
                raise InvalidArgument(argument, described(scores), _ADVICE)
            with np.errstate(over="ignore"):
                self.gaps = top - values
            self._best = Fraction(top)
        else:
            largest = values.max()
            self.gaps = _gaps(largest, values)
            self._best = Fraction(int(largest))

    def __len__(self) -> int:
        return len(self._values)

    def exponents(self, factor: Fraction) -> NDArray[np.float64]:
        """factor * gap as floats, within a relative 2^-50 of the exact product; infinite only if it exceeds 1e18."""
        multiplier = _moderate(factor)
        if multiplier is None:
            return np.array([_rounded(factor * self.gap(i)) for i in range(len(self))])
        with np.errstate(over="ignore", under="ignore"):
            return self.gaps * multiplier

    def runs(self) -> list[int]:
        """The first candidates of all runs of equal scores."""
        values = self._values
        if isinstance(values, list):
            return [i for i, value in enumerate(values) if not i or value != values[i - 1]]
        return [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()]

    def gap(self, i: int) -> Fraction:
        """The exact distance of candidate i to the best score."""
        value = self._values[i]
        if isinstance(value, Fraction):
            return self._best - value
        return self._best - (Fraction(float(value)) if isinstance(value, np.floating) else Fraction(int(value)))


def exponents_of_each(scores: NDArray[np.int64], starts: NDArray[np.int64], factor: Fraction) -> NDArray[np.float64]:
    """What `exponents` gives, for several lists of scores one after the other; none is empty.

    `starts` says where each begins, and at last where all end.
    """
    best = np.repeat(np.maximum.reduceat(scores, starts[:-1]), np.diff(starts))
    multiplier = _moderate(factor)
    if multiplier is None:
        exact = (factor * (one - other) for one, other in zip(best.tolist(), scores.tolist(), strict=True))
        return np.array([_rounded(gap) for gap in exact])
    with np.errstate(over="ignore", under="ignore"):
        return _gaps(best, scores) * multiplier


def factor_of(scale: object) -> Fraction:
    """The exact factor of the scores, > 0."""
    factor = rational("scale", scale)
    if factor <= 0:
        raise InvalidArgument("scale", scale, "pass a number > 0")
    return factor


def _canonical(scores: object, argument: str) -> NDArray[Any] | list[Fraction]:
    """A float64, int64 or uint64 array, or a list of Fractions for everything that fits into none of them."""
    if isinstance(scores, np.ndarray):
        if scores.ndim != 1 or not scores.size:
            raise InvalidArgument(argument, described(scores), _ADVICE)
        if scores.dtype.kind == "f" and scores.itemsize <= 8:
            return scores.astype(np.float64, copy=False)
        if scores.dtype.kind in "iu":
            return scores.astype(np.int64 if scores.dtype.kind == "i" else np.uint64, copy=False)
        if scores.dtype.kind != "O":
            raise InvalidArgument(argument, described(scores), _ADVICE)
        scores = scores.tolist()
    if isinstance(scores, str | bytes) or not isinstance(scores, Sequence) or not len(scores):
        raise InvalidArgument(argument, described(scores), _ADVICE)
    kinds = set(map(type, scores))
    if kinds == {float}:
        return np.array(scores, dtype=np.float64)
    if kinds == {int} and min(scores) >= -(1 << 63) and max(scores) < 1 << 63:
        return np.array(scores, dtype=np.int64)
    if not all(isinstance(score, numbers.Real) and not isinstance(score, bool) for score in scores):
        raise InvalidArgument(argument, described(scores), _ADVICE)
    if not all(isinstance(score, numbers.Rational) or math.isfinite(score) for score in scores):
        raise InvalidArgument(argument, described(scores), _ADVICE)
    return [rational(argument, score) for score in scores]


def _gaps(best: Any, values: NDArray[Any]) -> NDArray[np.float64]:
    """By how much 64-bit integers are below others: that wraps around to its true value, which is rounded once."""
    gaps: NDArray[np.float64] = (best.view(np.uint64) - values.view(np.uint64)).astype(np.float64)
    return gaps


def _moderate(factor: Fraction) -> float | None:
    """The factor as a float; None if it is too extreme for one rounding of its products."""
    multiplier = _rounded(factor)
    return multiplier if _SMALLEST_FACTOR <= multiplier <= _LARGEST_FACTOR else None


def _rounded(exact: Fraction) -> float:
    """The nearest float, but neither 0 for a positive number nor an error for one that is too large."""
    try:
        value = float(exact)
    except OverflowError:
        return math.inf
    return max(value, _SMALLEST) if exact else 0.0


def described(scores: object) -> str:
    """What was passed, without a single value of it: scores are computed from the data."""
    if isinstance(scores, np.ndarray):
        return f"array of shape {scores.shape} and dtype {scores.dtype}"
    length = f" of length {len(scores)}" if hasattr(scores, "__len__") else ""
    return f"{type(scores).__name__}{length}"
