"""From the user's columns to rows of bounded norm and back: public numbers only.

A column with bounds is clamped to them and mapped to [-1, 1]; one of bounds (0, 1), an indicator say, stays as it is,
so that rows of indicators stay short. A constant column carries the intercept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import one_of, real
from discreet.errors import InvalidArgument
from discreet.learning.rows import RowLattice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["Scaling", "checked_bounds", "one_bound"]


def one_bound(name: str, bounds: Any) -> tuple[float, float]:
    """One pair (low, high), low < high."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidArgument(name, bounds, "pass a pair (low, high)") from None
    pair = real(name, low), real(name, high)
    if not pair[0] < pair[1] or max(map(abs, pair)) > 1e100:
        raise InvalidArgument(name, bounds, "pass a pair (low, high) with low < high, both within 1e100 of zero")
    return pair


def checked_bounds(bounds: Any, features: int, names: Sequence[str] | None = None) -> tuple[Reals, Reals]:
    """The lower and upper bounds of every column: from one pair for all, or one pair for each.

    Pairs may be given by the `names` of the columns, if these have any: a dict or a Series of pairs, or a frame with a
    row or a column for each.
    """
    if hasattr(bounds, "items"):
        bounds = _in_order(_by_name(bounds, features), names)
    table = np.asarray(bounds, dtype=object)
    if table.shape == (2,):
        pairs = [one_bound("bounds", bounds)] * features
    elif table.shape == (features, 2):
        pairs = [one_bound("bounds", pair) for pair in bounds]
    else:
        raise InvalidArgument(
            "bounds",
            f"of shape {table.shape}",
            f"pass one pair (low, high) for all {features} columns, one for each of them in a list or in a dict by "
            "their names, or 'private' to buy them",
        )
    return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])


def _by_name(bounds: Any, features: int) -> dict[Any, Any]:
    """Pairs by name, from a dict, a Series, or a frame: with two columns, or with two rows and other columns."""
    if not hasattr(bounds, "columns"):
        return dict(bounds.items())
    values = np.asarray(bounds, dtype=object)
    if values.shape == (2, features) and (features != 2 or not _is_low_high(bounds.columns)):
        return dict(zip(bounds.columns, values.T.tolist(), strict=True))
    if values.ndim == 2 and values.shape[1] == 2:
        return dict(zip(bounds.index, values.tolist(), strict=True))
    raise InvalidArgument(
        "bounds",
        f"a frame of shape {values.shape}",
        "pass one with a row for each column of X and two columns, low and high, or the other way round",
    )


def _is_low_high(columns: Any) -> bool:
    """Whether two columns of a frame are the bounds themselves, where they might also be the columns of X."""
    return [str(name).lower() for name in columns] in (["low", "high"], ["lower", "upper"], ["min", "max"])


def _in_order(pairs: dict[Any, Any], names: Sequence[str] | None) -> list[Any]:
    if names is None:
        raise InvalidArgument(
            "bounds",
            f"by the names {', '.join(map(repr, pairs))}",
            "the columns of X have no names; pass a data frame, or a list of pairs in the order of the columns",
        )
    known = [str(name) for name in names]
    for name in pairs:
        one_of("bounds", name, known)
    missing = [name for name in known if name not in pairs]
    if missing:
        raise InvalidArgument("bounds", pairs, f"state a pair (low, high) for {', '.join(map(repr, missing))} as well")
    return [pairs[name] for name in known]


@dataclass(frozen=True, eq=False)
class Scaling:
    """x becomes (clamp(x, low, high) - centre) / half, followed by `constant` if there is an intercept."""

    low: Reals
    high: Reals
    centre: Reals
    half: Reals
    constant: float

    @classmethod
    def within(cls, bounds: tuple[Reals, Reals], *, constant: float) -> Scaling:
        """For columns with bounds."""
        low, high = bounds
        indicator = (low == 0) & (high == 1)
        centre = np.where(indicator, 0.0, low + (high - low) / 2)
        half = np.where(indicator, 1.0, (high - low) / 2)
        return cls(low, high, centre, half, constant)

    @classmethod
    def between(cls, bounds: tuple[Reals, Reals], *, same_units: bool = False, constant: float = 0.0) -> Scaling:
        """For columns with bounds, all of them centred, and scaled to [-1, 1] unless the units are to stay the same."""
        low, high = bounds
        half = (high - low) / 2
        return cls(low, high, low + half, np.ones_like(half) if same_units else half, constant)

    @classmethod
    def through_zero(cls, bounds: tuple[Reals, Reals]) -> Scaling:
        """For columns with bounds and a model without an intercept: scaled, and nothing is shifted."""
        low, high = bounds
        return cls(low, high, np.zeros_like(low), np.maximum(np.abs(low), np.abs(high)), 0.0)

    @classmethod
    def none(cls, features: int, *, constant: float) -> Scaling:
        """For rows whose norm alone is bounded."""
        wide = np.full(features, np.inf)
        return cls(-wide, wide, np.zeros(features), np.ones(features), constant)

    @property
    def worst_norm(self) -> float:
        """The largest l2 norm that a scaled row within the bounds can have, the constant left out."""
        corners = np.maximum(
            np.abs((self.low - self.centre) / self.half), np.abs((self.high - self.centre) / self.half)
        )
        return float(np.sqrt(np.sum(corners**2)))

    def scaled(self, table: Reals) -> Reals:
        """(clamp(x) - centre) / half of every column. Not private."""
        return np.asarray((np.clip(table, self.low, self.high) - self.centre) / self.half)

    def rows(self, table: Reals, row_norm: float) -> Reals:
        """Scaled rows, shortened to `row_norm`, with the constant appended; each a function of its own row alone."""
        short = RowLattice(row_norm).place(self.scaled(table)).values()
        return np.column_stack([short, np.full(len(short), self.constant)]) if self.constant else short

    def norms(self, table: Reals) -> Reals:
        """The l2 norms of the scaled rows, the constant left out, added column by column. Not private."""
        squares = np.zeros(len(table))
        for column in self.scaled(table).T:
            squares += np.square(np.clip(column, -1e150, 1e150))
        return np.sqrt(squares)

    def radius(self, row_norm: float) -> float:
        """The bound on the norm of `rows`, the constant included."""
        return math.nextafter(math.hypot(row_norm, self.constant), math.inf)

    def unscaled(self, weights: Reals) -> tuple[Reals, Reals | float]:
        """Coefficients and intercept for the user's own columns; one column of weights for each output."""
        inner = weights[:-1] if self.constant else weights
        half = self.half if weights.ndim == 1 else self.half[:, None]
        coefficients = inner / half
        shift = self.centre @ coefficients
        intercept = self.constant * weights[-1] - shift if self.constant else -shift
        return coefficients, intercept
