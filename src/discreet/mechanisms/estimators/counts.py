"""How many rows there are, and how many in each of the bins that are known in advance."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.arguments import real
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.estimator import NoisyStatistics
from discreet.mechanisms.estimators.noise_level import noisy
from discreet.mechanisms.laplace import DiscreteLaplace
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from discreet.mechanisms.additive import Additive

__all__ = ["Count", "Histogram", "rows_of"]

_ROWS = "pass an array or a list with one entry per row"


def rows_of(data: object, *, argument: str = "data") -> NDArray[Any]:
    """The rows as an array with one or two axes; refuses what is not a column or a table, and never shows it."""
    if not isinstance(data, list | tuple | np.ndarray) and not hasattr(data, "__array__"):
        raise InvalidArgument(argument, f"a {type(data).__name__}", _ROWS)
    try:
        rows = np.asarray(data)
    except (TypeError, ValueError):
        raise InvalidArgument(argument, f"a {type(data).__name__}", _ROWS) from None
    if rows.ndim not in (1, 2):
        raise InvalidArgument(argument, f"an array of {rows.ndim} dimensions", _ROWS)
    return rows


@dataclass(frozen=True, repr=False)
class Count(NoisyStatistics):
    """The number of rows, or of those that are True in a boolean column; one person changes it by at most 1.

    Geometric noise for a pure `epsilon`, rounded Gaussian noise else: the value is a whole number. Rows with NaN count.
    Under "replace-one" the number of rows is public, so the data must be a boolean column.

    >>> smokers = Count(epsilon=1.0)
    >>> estimate = smokers.release([True, False, True, True])
    >>> low, high = estimate.interval(0.95)
    >>> high - float(estimate), smokers.error(0.95)
    (3.0, 3.0)
    """

    kind: ClassVar[str] = "count"
    leaves_out: ClassVar[str] = "nothing, for these rows; the sampling error, if they are a sample"

    def _validate(self) -> None:
        pass

    def _mechanisms(self) -> dict[str, Additive]:
        if self.noise == "laplace":
            return {"count": DiscreteLaplace(noise_multiplier=self.noise_multiplier, adjacency=self.adjacency)}
        return {"count": noisy(self, 1, granularity=1.0)}

    def _exact(self, data: Any) -> dict[str, Any]:
        rows = rows_of(data)
        if rows.dtype == np.bool_:
            if rows.ndim != 1:
                raise InvalidArgument("data", "a table of booleans", "pass one column")
            return {"count": int(rows.sum())}
        if rows.dtype.kind not in "iufUSMm":
            raise InvalidArgument("data", f"an array of {rows.dtype}", "pass booleans, numbers, words or dates")
        if self.public_rows and rows.size:
            raise InvalidArgument(
                "data", f"an array of {rows.dtype}", "the number of rows is public under 'replace-one': pass booleans"
            )
        return {"count": len(rows)}

    def value_of(self, statistics: Mapping[str, Any]) -> float:
        return float(statistics["count"])

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        width = self.error(confidence)
        low, high = self.value_of(statistics) - width, self.value_of(statistics) + width
        return max(0.0, low), max(0.0, high)

    def error(self, confidence: float = 0.95) -> float:
        """|count - true count| is at most this, with this probability: the exact quantile."""
        return self._error_of("count", confidence) - (0.5 if self.noise == "gaussian" else 0.0)  # integers stay put

    def _values(self, statistics: Mapping[str, Any], n: int) -> NDArray[Any]:
        return np.asarray(statistics["count"], dtype=np.float64)

    def bad_values(self) -> list[Any]:
        return [None, "seven", 1j, object(), {}, 7, 7.5, [[1, 2], [3]], [[[1.0]]], np.array([1j]), np.array([None])]

    def examples(self) -> list[tuple[Any, Any]]:
        """One person is added, or changes from False to True."""
        return [
            (np.array([False, True]), np.array([True, True]) if self.public_rows else np.array([False, True, True]))
        ]


@dataclass(frozen=True, repr=False)
class Histogram(NoisyStatistics):
    """The number of rows in each of the bins, which are public: `categories`, or numbers between `edges`.

    One person is in one bin: the l1 and l2 sensitivities are 1 under "add-remove", 2 and sqrt(2) under "replace-one".
    With k + 1 edges there are k bins, each with its lower and without its upper edge; the last one has both. Rows that
    are in no bin, NaN among them, are not counted. Bins must not be read off the data: for that see `StableHistogram`.

    >>> ages = Histogram(edges=[0, 18, 65, 120], epsilon=1.0)
    >>> len(ages.release([4, 30, 31, 70]))
    3
    """

    kind: ClassVar[str] = "histogram"
    leaves_out: ClassVar[str] = "rows in no bin; the sampling error, if the rows are a sample"
    categories: tuple[str | int, ...] | None = field(default=None, kw_only=True)
    edges: tuple[float, ...] | None = field(default=None, kw_only=True)

    def _validate(self) -> None:
        if (self.categories is None) == (self.edges is None):
            raise InvalidArgument("categories, edges", (self.categories, self.edges), "pass one of the two")
        if self.edges is not None:
            edges = tuple(real("edges", edge) for edge in _listed("edges", self.edges))
            if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
                raise InvalidArgument("edges", self.edges, "pass at least two numbers, each above the one before")
            object.__setattr__(self, "edges", edges)
            return
        found = _listed("categories", self.categories)
        names = tuple(name.item() if isinstance(name, np.generic) else name for name in found)
        kinds = {type(name) for name in names}
        if not names or len(set(names)) != len(names) or kinds not in ({str}, {int}):
            raise InvalidArgument("categories", self.categories, "pass distinct words, or distinct whole numbers")
        object.__setattr__(self, "categories", names)

    @property
    def bins(self) -> int:
        """How many bins there are."""
        if self.edges is not None:
            return len(self.edges) - 1
        assert self.categories is not None
        return len(self.categories)

    def _mechanisms(self) -> dict[str, Additive]:
        moved = 2 if self.public_rows else 1
        if self.noise == "laplace":
            made: Additive = DiscreteLaplace(
                noise_multiplier=self.noise_multiplier, sensitivity=moved, adjacency=self.adjacency
            )
        else:
            made = noisy(self, root_above(moved), dimension=self.bins)
        return {"counts": made}

    def _exact(self, data: Any) -> dict[str, Any]:
        rows = rows_of(data)
        if rows.ndim != 1:
            raise InvalidArgument("data", "a table", "pass one column")
        return {"counts": self._by_edges(rows) if self.edges is not None else self._by_category(rows)}

    def _by_edges(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        if rows.size == 0:
            return np.zeros(self.bins, dtype=np.int64)
        if rows.dtype.kind not in "iuf":
            raise InvalidArgument("data", f"an array of {rows.dtype}", "pass a column of numbers")
        edges = np.array(self.edges)
        place = np.searchsorted(edges, rows.astype(np.float64), side="right")  # NaN goes behind everything
        place[rows == edges[-1]] = self.bins
        return np.bincount(place, minlength=self.bins + 2)[1 : self.bins + 1].astype(np.int64)

    def _by_category(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        assert self.categories is not None
        wanted = "U" if isinstance(self.categories[0], str) else "iu"
        if rows.size and rows.dtype.kind not in wanted:
            raise InvalidArgument("data", f"an array of {rows.dtype}", "pass a column of the categories' type")
        if not rows.size:
            return np.zeros(self.bins, dtype=np.int64)
        values, counts = np.unique(rows, return_counts=True)
        found = dict(zip(values.tolist(), counts.tolist(), strict=True))
        return np.array([found.get(name, 0) for name in self.categories], dtype=np.int64)

    def value_of(self, statistics: Mapping[str, Any]) -> NDArray[np.float64]:
        return np.asarray(statistics["counts"], dtype=np.float64)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        width = self.error(confidence)
        counts = self.value_of(statistics)
        return np.maximum(counts - width, 0.0), np.maximum(counts + width, 0.0)

    def error(self, confidence: float = 0.95) -> float:
        """Each count is at most this far from the true one, with this probability: the exact quantile."""
        return self._error_of("counts", confidence)

    def _values(self, statistics: Mapping[str, Any], n: int) -> NDArray[Any]:
        return np.asarray(statistics["counts"], dtype=np.float64)

    def bad_values(self) -> list[Any]:
        return [None, "seven", object(), {}, 7, [[1, 2], [3]], [[1, 2], [3, 4]], np.array([1j]), np.array([None])]

    def examples(self) -> list[tuple[Any, Any]]:
        """One person is added to a bin, or changes from the first to the last."""
        if self.edges is not None:
            first, last = np.array([self.edges[0]]), np.array([self.edges[-1]])
        else:
            assert self.categories is not None
            first, last = np.array([self.categories[0]]), np.array([self.categories[-1]])
        five = np.repeat(first, self.bins + 5)
        return [(five, np.concatenate([five[1:], last]) if self.public_rows else np.concatenate([five, last]))]


def _listed(argument: str, value: object) -> list[Any]:
    if not isinstance(value, list | tuple | np.ndarray | range):
        raise InvalidArgument(argument, value, "pass a list")
    return list(value)
