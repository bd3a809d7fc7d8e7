"""The covariance matrix of rows in a ball, from a noisy second moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.arguments import count, positive, real
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.estimator import NoisyStatistics
from discreet.mechanisms.estimators.noise_level import noisy
from discreet.mechanisms.estimators.ratio import ratio_interval
from discreet.mechanisms.estimators.vectors import OFF_DIAGONAL, Ball, table_of, unfolded
from discreet.mechanisms.selection import flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from discreet.mechanisms.additive import Additive

__all__ = ["BoundedRows", "Covariance"]


@dataclass(frozen=True, repr=False)
class BoundedRows(NoisyStatistics):
    """Rows of `dimension` numbers, shortened to `radius` around `center` (zero by default): see `Ball` for the rule."""

    noises: ClassVar[tuple[str, ...]] = ("gaussian",)
    leaves_out: ClassVar[str] = "what shortening rows to the radius changes; the sampling error, if they are a sample"
    dimension: int = field(kw_only=True)
    radius: float = field(kw_only=True)
    center: tuple[float, ...] | None = field(default=None, kw_only=True)

    def _validate(self) -> None:
        object.__setattr__(self, "dimension", count("dimension", self.dimension, least=1))
        radius = positive("radius", self.radius)
        if not 1e-100 <= radius <= 1e100 or self.dimension > 1000:
            raise InvalidArgument(
                "radius, dimension", (self.radius, self.dimension), "pass a radius between 1e-100 and 1e100 and <= 1000"
            )
        object.__setattr__(self, "radius", radius)
        listed: object = self.center
        if listed is not None:
            if not isinstance(listed, list | tuple | np.ndarray) or len(listed) != self.dimension:
                raise InvalidArgument("center", self.center, f"pass {self.dimension} numbers")
            object.__setattr__(self, "center", tuple(real("center", float(entry)) for entry in listed))

    @cached_property
    def _ball(self) -> Ball:
        return Ball(self.center or (0.0,) * self.dimension, self.radius)

    def bad_values(self) -> list[Any]:
        wide = [[1.0] * (self.dimension + 1)]
        return [None, "seven", 7, {}, object(), wide, [["a"] * self.dimension], [[[1.0]]], np.array([[True]])]

    def examples(self) -> list[tuple[Any, Any]]:
        """One person with the longest row is added, or turns it around by a right angle."""
        start = np.array(self._ball.center)
        rows = np.tile(start, (self.dimension**2 + 9, 1))
        one, other = start.copy(), start.copy()
        one[0] += self.radius
        other[-1] += -self.radius if self.dimension == 1 else self.radius
        if self.public_rows:
            return [(np.vstack([rows, one]), np.vstack([rows, other]))]
        return [(rows, np.vstack([rows, one]))]


@dataclass(frozen=True, repr=False)
class Covariance(BoundedRows):
    """The covariance matrix (divided by the number of rows), with Gaussian noise on sums and products of the rows.

    Half of the noise level goes to the products and a quarter each to the sum and the number of rows; under
    "replace-one" the number is public, and its quarter goes to the sum. The value is symmetric; with `positive` its
    negative eigenvalues are replaced by zero, which is free. The intervals are for the entries before that.

    >>> estimator = Covariance(dimension=2, radius=3.0, epsilon=1.0, delta=1e-6)
    >>> estimator.release([[1.0, 0.5], [-1.0, -0.5]] * 5000).value.shape
    (2, 2)
    """

    kind: ClassVar[str] = "covariance"
    positive: bool = field(default=True, kw_only=True)

    def _validate(self) -> None:
        super()._validate()
        object.__setattr__(self, "positive", flag("positive", self.positive))

    def _mechanisms(self) -> dict[str, Additive]:
        ball, d, replace = self._ball, self.dimension, self.public_rows
        quarter = Fraction(1, 4)
        made: dict[str, Additive] = {} if replace else {"rows": noisy(self, 1, quarter)}
        made["sum"] = noisy(self, ball.sum_sensitivity(replace=replace), quarter * (2 if replace else 1), dimension=d)
        made["products"] = noisy(
            self, ball.product_sensitivity(replace=replace), Fraction(1, 2), dimension=d * (d + 1) // 2
        )
        return made

    def _exact(self, data: Any) -> dict[str, Any]:
        placed = self._ball.place(table_of(data, self.dimension))
        ball = self._ball
        return {"rows": len(placed), "sum": ball.sums(placed), "products": ball.products(placed)}

    def value_of(self, statistics: Mapping[str, Any]) -> NDArray[np.float64]:
        rows = max(1.0, float(statistics["rows"]))
        mean = np.asarray(statistics["sum"], dtype=float) / rows
        matrix = unfolded(np.asarray(statistics["products"], dtype=float) / rows, self.dimension) - np.outer(mean, mean)
        if not self.positive:
            return matrix
        values, vectors = np.linalg.eigh(matrix)
        repaired: NDArray[np.float64] = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return (repaired + repaired.T) / 2

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        """Each entry from the intervals of three ratios, at a third of the probability of missing each."""
        d, miss, reach = self.dimension, (1 - confidence) / 3, self.radius
        below = None if self.public_rows else self.mechanisms["rows"]
        rows = float(statistics["rows"])

        def ratios(name: str, within: float, size: int) -> list[tuple[float, float]]:
            return [
                ratio_interval(
                    float(entry),
                    rows,
                    noises=(self.mechanisms[name], below),  # type: ignore[arg-type]
                    dimension=size,
                    miss=miss,
                    within=(-within, within),
                )
                for entry in statistics[name]
            ]

        means = ratios("sum", reach, d)
        products = ratios("products", reach**2 * float(OFF_DIAGONAL), d * (d + 1) // 2)
        low, high = np.zeros((d, d)), np.zeros((d, d))
        rounding = 4 * reach * float(self._ball.step)
        entries = zip(*np.triu_indices(d), strict=True)
        for (i, j), (least, most) in zip(entries, products, strict=True):
            factor = 1.0 if i == j else float(OFF_DIAGONAL)
            corners = [a * b for a in means[i] for b in means[j]]
            if i == j:
                a, b = means[i]
                corners = [0.0 if a <= 0 <= b else min(a * a, b * b), max(a * a, b * b)]
            low[i, j] = low[j, i] = least / factor - max(corners) - rounding
            high[i, j] = high[j, i] = most / factor - min(corners) + rounding
        return low, high
