r"""Tables of counts over every set of k columns, with noise that grows with the square root of their number.

A row is in one cell of each of the m tables, so adding one changes all cells together by m in l1 and sqrt(m) in l2;
replacing one, by 2m and sqrt(2m). With Gaussian noise the error of each cell therefore grows with sqrt(m), with Laplace
noise with m: for many tables the Gaussian wins, though it needs a delta [Dwork and Roth 2014].
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.arguments import count
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.counts import rows_of
from discreet.mechanisms.estimators.estimator import NoisyStatistics
from discreet.mechanisms.estimators.noise_level import noisy
from discreet.mechanisms.laplace import DiscreteLaplace
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from discreet.mechanisms.additive import Additive
    from discreet.mechanisms.estimators.estimate import Estimate

__all__ = ["Marginals"]

_MOST_CELLS = 1 << 24


@dataclass(frozen=True, repr=False)
class Marginals(NoisyStatistics):
    """The k-way marginals of a table of codes: column j holds whole numbers from 0 to sizes[j] - 1.

    `ways` is k. The value has all cells of all tables in one vector; `tables(estimate)` takes it apart. A row with a
    code out of range is not counted in the tables that look at it.

    >>> marginals = Marginals(sizes=(2, 3), ways=1, epsilon=1.0, delta=1e-6)
    >>> estimate = marginals.release([[0, 2], [1, 2], [0, 0]])
    >>> {columns: table.shape for columns, table in marginals.tables(estimate).items()}
    {(0,): (2,), (1,): (3,)}
    """

    kind: ClassVar[str] = "marginals"
    leaves_out: ClassVar[str] = "rows with codes out of range; the sampling error, if the rows are a sample"
    sizes: tuple[int, ...] = field(kw_only=True)
    ways: int = field(default=1, kw_only=True)

    def _validate(self) -> None:
        listed: object = self.sizes
        if not isinstance(listed, list | tuple) or not listed:
            raise InvalidArgument("sizes", self.sizes, "pass the number of codes of each column")
        object.__setattr__(self, "sizes", tuple(count("sizes", size, least=1) for size in listed))
        object.__setattr__(self, "ways", count("ways", self.ways, least=1))
        if self.ways > len(self.sizes):
            raise InvalidArgument("ways", self.ways, f"there are only {len(self.sizes)} columns")
        if self.cells > _MOST_CELLS:
            raise InvalidArgument("ways", self.ways, f"{self.cells} cells are too many; pass fewer ways or columns")

    @property
    def column_sets(self) -> list[tuple[int, ...]]:
        """Which columns each table looks at."""
        return list(itertools.combinations(range(len(self.sizes)), self.ways))

    @property
    def cells(self) -> int:
        """How many cells there are in all tables."""
        return sum(math.prod(self.sizes[j] for j in columns) for columns in self.column_sets)

    def _mechanisms(self) -> dict[str, Additive]:
        moved = len(self.column_sets) * (2 if self.public_rows else 1)
        if self.noise == "gaussian":
            return {"cells": noisy(self, root_above(moved), dimension=self.cells)}
        made = DiscreteLaplace(noise_multiplier=self.noise_multiplier, sensitivity=moved, adjacency=self.adjacency)
        return {"cells": made}

    def _exact(self, data: Any) -> dict[str, Any]:
        rows = rows_of(data)
        if rows.size == 0:
            return {"cells": np.zeros(self.cells, dtype=np.int64)}
        if rows.ndim != 2 or rows.shape[1] != len(self.sizes) or rows.dtype.kind not in "iu":
            raise InvalidArgument(
                "data", f"{rows.dtype} of shape {rows.shape}", f"pass whole numbers in {len(self.sizes)} columns"
            )
        within = [(rows[:, j] >= 0) & (rows[:, j] < size) for j, size in enumerate(self.sizes)]
        found = []
        for columns in self.column_sets:
            shape = [self.sizes[j] for j in columns]
            kept = np.logical_and.reduce([within[j] for j in columns])
            cells = np.ravel_multi_index([rows[kept, j].astype(np.int64) for j in columns], shape)
            found.append(np.bincount(cells, minlength=math.prod(shape)))
        return {"cells": np.concatenate(found).astype(np.int64)}

    def tables(self, estimate: Estimate) -> dict[tuple[int, ...], NDArray[np.float64]]:
        """The tables of an estimate, by the columns that they look at."""
        cells, found, start = np.asarray(estimate), {}, 0
        for columns in self.column_sets:
            shape = tuple(self.sizes[j] for j in columns)
            found[columns] = cells[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)
        return found

    def value_of(self, statistics: Mapping[str, Any]) -> NDArray[np.float64]:
        return np.asarray(statistics["cells"], dtype=np.float64)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        width, cells = self.error(confidence), self.value_of(statistics)
        return np.maximum(cells - width, 0.0), np.maximum(cells + width, 0.0)

    def error(self, confidence: float = 0.95) -> float:
        """Each cell is at most this far from the true count, with this probability: the exact quantile."""
        return self._error_of("cells", confidence)

    @property
    def expected_absolute_error(self) -> float:
        """The mean of |noise| in one cell."""
        return self.mechanisms["cells"].expected_absolute_error

    def _values(self, statistics: Mapping[str, Any], n: int) -> NDArray[Any]:
        return self.value_of(statistics)

    def bad_values(self) -> list[Any]:
        columns = len(self.sizes)
        return [None, "seven", 7, {}, [[0.5] * columns], [[0] * (columns + 1)], [0, 1], [["a"] * columns]]

    def examples(self) -> list[tuple[Any, Any]]:
        """One person is added, or changes all columns."""
        zeros = np.zeros((self.cells + 3, len(self.sizes)), dtype=np.int64)
        other = np.array([[size - 1 for size in self.sizes]])
        return [(zeros, np.concatenate([zeros[1:] if self.public_rows else zeros, other]))]
