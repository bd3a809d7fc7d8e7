"""Sum, mean and variance of a column between public bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.mechanisms.estimators.columns import Centred, column_of, exact_total
from discreet.mechanisms.estimators.estimator import NoisyStatistics
from discreet.mechanisms.estimators.noise_level import noisy
from discreet.mechanisms.estimators.ratio import ratio_interval
from discreet.mechanisms.sums import Bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.mechanisms.additive import Additive
    from discreet.mechanisms.gaussian import Gaussian
    from discreet.mechanisms.laplace import Laplace

__all__ = ["BoundedColumn", "Mean", "Moments", "Sum", "Variance"]

_BIAS = "what clamping to the bounds changes; the sampling error, if the rows are a sample"


@dataclass(frozen=True, repr=False)
class BoundedColumn(NoisyStatistics):
    """Every row is clamped to [lower, upper]; NaN becomes `missing`, by default the number nearest to zero in there."""

    leaves_out: ClassVar[str] = _BIAS
    lower: float
    upper: float
    missing: float | None = field(default=None, kw_only=True)

    def _validate(self) -> None:
        checked = Bounds(self.lower, self.upper, missing=self.missing)
        for name in ("lower", "upper", "missing"):
            object.__setattr__(self, name, getattr(checked, name))

    def bad_values(self) -> list[Any]:
        return [*super().bad_values(), [[1.0, 2.0]], np.array([True]), np.array(["2026-01-01"], dtype="datetime64[D]")]

    def examples(self) -> list[tuple[Any, Any]]:
        """One person with an extreme value is added, or changes it to the other extreme."""
        if self.public_rows:
            return [([self.lower] * 5, [self.lower] * 4 + [self.upper])]
        return [([self.lower] * 5, [self.lower] * 6), ([self.lower] * 5, [self.lower] * 5 + [self.upper])]


@dataclass(frozen=True, repr=False)
class Sum(BoundedColumn):
    """The sum of a column between public bounds, added up exactly.

    One person changes it by at most max(|lower|, |upper|) under "add-remove" and upper - lower under "replace-one".

    >>> spend = Sum(0, 100, epsilon=1.0)
    >>> spend.error(0.95) < 300
    True
    """

    kind: ClassVar[str] = "sum"

    @cached_property
    def _bounds(self) -> Bounds:
        return Bounds(self.lower, self.upper, missing=self.missing)

    def _mechanisms(self) -> dict[str, Additive]:
        return {"sum": noisy(self, self._bounds.sensitivity(self.adjacency))}

    def _exact(self, data: Any) -> dict[str, Any]:
        return {"sum": self._bounds.steps(column_of(data)) * self._bounds.lattice.step}

    def value_of(self, statistics: Mapping[str, Any]) -> float:
        return float(statistics["sum"])

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        width, value = self.error(confidence), self.value_of(statistics)
        return value - width, value + width

    def error(self, confidence: float = 0.95) -> float:
        """|sum - sum of the clamped rows| is at most this, with this probability: the exact quantile."""
        return self._error_of("sum", confidence)

    def _values(self, statistics: Mapping[str, Any], n: int) -> Any:
        return statistics["sum"]


@dataclass(frozen=True, repr=False)
class Moments(BoundedColumn):
    """Noisy sums of powers around the middle and, under "add-remove", a noisy number of rows.

    Everything is divided by the number of rows: private and noisy, or public and exact.
    """

    powers: ClassVar[tuple[int, ...]]

    @cached_property
    def _column(self) -> Centred:
        return Centred.between(self.lower, self.upper, self.missing)

    @property
    def middle(self) -> float:
        """The number around which rows are added up."""
        return float(self._column.middle * self._column.step)

    @property
    def half(self) -> float:
        """How far a clamped row may be from the middle."""
        return float(self._column.half * self._column.step)

    def _mechanisms(self) -> dict[str, Additive]:
        share = Fraction(1, len(self.powers) + (not self.public_rows))
        half, step = self._column.half, self._column.step
        made: dict[str, Additive] = {}
        if not self.public_rows:
            made["rows"] = noisy(self, 1, share)
        # 2h or h around zero; h^2, or h^2 / 2 around h^2 / 2
        made["sum"] = noisy(self, half * step * (2 if self.public_rows else 1), share)
        if 2 in self.powers:
            made["squares"] = noisy(self, half**2 * step**2 / (1 if self.public_rows else 2), share)
        return made

    def _exact(self, data: Any) -> dict[str, Any]:
        column = self._column
        placed = column.place(data)
        exact: dict[str, Any] = {"rows": len(placed), "sum": exact_total(placed) * column.step}
        if 2 in self.powers:
            squares = exact_total(placed, power=2) - len(placed) * Fraction(column.half**2, 2)
            exact["squares"] = squares * column.step**2
        return exact

    def _ratio(self, statistics: Mapping[str, Any], name: str) -> Any:
        """The mean of z, or of z^2, within its public range; of one release, or of many at once."""
        reach = self.half if name == "sum" else self.half**2 / 2
        ratio = np.clip(statistics[name] / np.maximum(1.0, statistics["rows"]), -reach, reach)
        return ratio if name == "sum" else ratio + reach

    def _values(self, statistics: Mapping[str, Any], n: int) -> Any:
        return self.value_of(statistics)

    def _ratio_interval(self, statistics: Mapping[str, Any], name: str, miss: float) -> tuple[float, float]:
        reach = self.half if name == "sum" else self.half**2 / 2
        low, high = ratio_interval(
            float(statistics[name]),
            float(statistics["rows"]),
            noises=(self._lattice(name), None if self.public_rows else self._lattice("rows")),
            miss=miss,
            within=(-reach, reach),
        )
        shift = 0.0 if name == "sum" else reach
        return low + shift, high + shift

    def _lattice(self, name: str) -> Laplace | Gaussian:
        made = self.mechanisms[name]
        assert hasattr(made, "granularity")
        return made  # type: ignore[return-value]

    def _mean(self, statistics: Mapping[str, Any]) -> Any:
        return np.clip(self.middle + self._ratio(statistics, "sum"), self.lower, self.upper)

    def _mean_interval(self, statistics: Mapping[str, Any], miss: float) -> tuple[float, float]:
        low, high = self._ratio_interval(statistics, "sum", miss)
        rounding = float(self._column.step)  # rows were rounded to the lattice
        return max(self.lower, self.middle + low - rounding), min(self.upper, self.middle + high + rounding)

    def _variance(self, statistics: Mapping[str, Any]) -> Any:
        mean = self._ratio(statistics, "sum")
        return np.clip(self._ratio(statistics, "squares") - mean**2, 0.0, self.half**2)

    def _variance_interval(self, statistics: Mapping[str, Any], miss: float) -> tuple[float, float]:
        """Both ratios are within their intervals with probability 1 - miss, and then so is the difference."""
        low, high = self._ratio_interval(statistics, "sum", miss / 2)
        least, most = self._ratio_interval(statistics, "squares", miss / 2)
        nearest = 0.0 if low <= 0 <= high else min(low**2, high**2)
        rounding = 4 * self.half * float(self._column.step)
        return max(0.0, least - max(low**2, high**2) - rounding), min(self.half**2, most - nearest + rounding)


@dataclass(frozen=True, repr=False)
class Mean(Moments):
    """The mean of a column between public bounds: a noisy sum around the middle over a noisy number of rows.

    Half of the noise level goes to each of the two. Under "replace-one" the number of rows is public, and all of it
    goes to the sum. The interval is that of the ratio [Fieller 1954], exact for the noise: see `ratio_interval`.

    >>> ages = Mean(0, 120, epsilon=1.0)
    >>> estimate = ages.release([30, 40, 50, 60] * 500)
    >>> abs(float(estimate) - 45) < 5
    True
    """

    kind: ClassVar[str] = "mean"
    powers: ClassVar[tuple[int, ...]] = (1,)

    def value_of(self, statistics: Mapping[str, Any]) -> Any:
        return self._mean(statistics)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        return self._mean_interval(statistics, 1 - confidence)


@dataclass(frozen=True, repr=False)
class Variance(Moments):
    """The variance (divided by the number of rows) of a column between public bounds, with its root.

    From noisy sums of z and of z^2 around the middle and, under "add-remove", a noisy number of rows, a third of the
    noise level each. The interval joins those of the two ratios, at half the probability of missing each.

    >>> estimate = Variance(0, 10, epsilon=1.0).release([2.0, 4.0, 6.0, 8.0] * 5000)
    >>> abs(float(estimate) - 5) < 1
    True
    """

    kind: ClassVar[str] = "variance"
    powers: ClassVar[tuple[int, ...]] = (1, 2)

    def value_of(self, statistics: Mapping[str, Any]) -> Any:
        return self._variance(statistics)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        return self._variance_interval(statistics, 1 - confidence)
