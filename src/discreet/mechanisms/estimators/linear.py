"""Least squares from noisy sums of products."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.arguments import nonnegative, real
from discreet.divergence.special import ndtri
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.covariance import BoundedRows
from discreet.mechanisms.estimators.noise_level import noisy
from discreet.mechanisms.estimators.ratio import noise_scale
from discreet.mechanisms.estimators.vectors import OFF_DIAGONAL, Ball, table_of, unfolded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from discreet.mechanisms.additive import Additive

__all__ = ["LinearModel"]


@dataclass(frozen=True, repr=False)
class LinearModel(BoundedRows):
    r"""Coefficients of a linear model, ridge regression from noisy X^T X and X^T y (the last column of a row is y).

    A row (x, y) has `dimension` numbers x, shortened to `radius`, and y, clamped to [-target, target]. An intercept is
    the coefficient of one more coordinate that is constant, as large as the radius. With y scaled to the radius the
    whole row lies in a ball of radius sqrt(3) times that, and the matrix of all its products is released once, with
    Gaussian noise: sums of squares of the inputs, products with y, and the square of y that is not used.

    The value is (A + penalty I)^{-1} b, the intercept last. By default the penalty is the size of the noise in A's
    largest eigenvalue, 2 sqrt(d) times its scale, which keeps the inverse tame. Error bars are by the delta method: the
    noise in A and b to first order, (A + penalty I)^{-1} (e - E w). They leave out the pull of the penalty.

    >>> rows = [(x / 50, 0.5 * x / 50 + 0.1) for x in range(-50, 51)] * 500
    >>> model = LinearModel(dimension=1, radius=1.0, target=1.0, epsilon=1.0, delta=1e-6)
    >>> slope, intercept = model.release(rows)
    >>> bool(abs(slope - 0.5) < 0.1 and abs(intercept - 0.1) < 0.1)
    True
    """

    kind: ClassVar[str] = "linear_model"
    covers: ClassVar[str] = "the noise, to first order"
    leaves_out: ClassVar[str] = "what clipping and the penalty change; the sampling error, if the rows are a sample"
    target: float = field(kw_only=True)
    penalty: float | None = field(default=None, kw_only=True)

    def _validate(self) -> None:
        super()._validate()
        target = real("target", self.target)
        if not 1e-100 <= target <= 1e100:
            raise InvalidArgument("target", self.target, "pass a bound of |y|, a number > 0")
        object.__setattr__(self, "target", target)
        if self.penalty is not None:
            object.__setattr__(self, "penalty", nonnegative("penalty", self.penalty))

    @property
    def _size(self) -> int:
        return self.dimension + 2

    @cached_property
    def _whole(self) -> Ball:
        """Inputs in units of the radius, the constant 1, and y in units of its bound."""
        return Ball((0.0,) * self._size, 1.75)

    def _mechanisms(self) -> dict[str, Additive]:
        size = self._size * (self._size + 1) // 2
        sensitivity = self._whole.product_sensitivity(replace=self.public_rows)
        return {"products": noisy(self, sensitivity, Fraction(1), dimension=size)}

    def _exact(self, data: Any) -> dict[str, Any]:
        table = table_of(data, self.dimension + 1)
        inputs = self._ball.place(table[:, :-1]) / self._ball.reach
        answers = np.clip(np.where(np.isnan(table[:, -1]), 0.0, table[:, -1]) / self.target, -1.0, 1.0)
        rows = np.column_stack([inputs, np.ones(len(table)), answers])
        return {"products": self._whole.products(self._whole.place(rows))}

    def _solved(self, statistics: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The scaled coefficients, and the inverse matrix that made them."""
        matrix = unfolded(statistics["products"], self._size)
        kept = self.dimension + 1
        gram, right = matrix[:kept, :kept], matrix[:kept, kept]
        penalty = self.penalty
        if penalty is None:
            penalty = 2 * math.sqrt(kept) * self._noise / float(OFF_DIAGONAL)
        values, vectors = np.linalg.eigh(gram)
        floor = max(penalty, self._noise, 1e-9)
        inverse = (vectors / np.maximum(values + penalty, floor)) @ vectors.T
        return inverse @ right, inverse

    @property
    def _noise(self) -> float:
        size = self._size * (self._size + 1) // 2
        return noise_scale(self.mechanisms["products"], size)  # type: ignore[arg-type]

    @property
    def _units(self) -> NDArray[np.float64]:
        return np.array([self.target / self.radius] * self.dimension + [self.target])

    def _shifted(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = scaled * self._units
        found[-1] -= found[:-1] @ np.array(self._ball.center)
        return found

    def value_of(self, statistics: Mapping[str, Any]) -> NDArray[np.float64]:
        return self._shifted(self._solved(statistics)[0])

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        scaled, inverse = self._solved(statistics)
        kept = self.dimension + 1
        diagonal, beside = self._noise, self._noise / float(OFF_DIAGONAL)
        back = np.diag(self._units)
        back[-1, :-1] -= self._units[:-1] * np.array(self._ball.center)
        rows = back @ inverse
        # variance of a^T (e - E w): E symmetric with independent entries on and above the diagonal
        spread = np.zeros(kept)
        for k, a in enumerate(rows):
            cross = np.outer(a, scaled)
            mixed = np.triu(cross + cross.T, 1)
            spread[k] = (diagonal * np.linalg.norm(a * scaled)) ** 2 + (beside * np.linalg.norm(mixed)) ** 2
            spread[k] += (beside * np.linalg.norm(a)) ** 2
        width = -float(ndtri((1 - confidence) / 2)) * np.sqrt(spread)
        value = self._shifted(scaled)
        return value - width, value + width

    def examples(self) -> list[tuple[Any, Any]]:
        """One person with the longest row is added, or changes the sign of the answer."""
        rows = np.zeros((9, self.dimension + 1))
        one = np.array([[self.radius, *[0.0] * (self.dimension - 1), self.target]])
        if self.center is not None:
            one[0, :-1] += np.array(self.center)
        other = one * np.array([1.0] * self.dimension + [-1.0])
        return (
            [(np.vstack([rows, one]), np.vstack([rows, other]))]
            if self.public_rows
            else [(rows, np.vstack([rows, one]))]
        )

    def bad_values(self) -> list[Any]:
        wide = [[1.0] * (self.dimension + 2)]
        return [None, "seven", 7, {}, object(), wide, [["a"] * (self.dimension + 1)], [[[1.0]]]]
