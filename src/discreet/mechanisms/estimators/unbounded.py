r"""The mean of rows whose bounds nobody knows: start from a generous ball and shrink it round by round.

Each round adds up the rows within the present ball with Gaussian noise and moves the center there [Biswas et al. 2020];
then a noisy histogram of the distances to it, by powers of two, gives a smaller scale. What is added up next
depends on what was released before; noise multipliers do not, so the rounds compose as if all were fixed in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.arguments import count, positive
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.estimate import Estimate
from discreet.mechanisms.estimators.estimator import NoisyStatistics
from discreet.mechanisms.estimators.noise_level import noisy
from discreet.mechanisms.estimators.ratio import noise_scale, ratio_interval
from discreet.mechanisms.estimators.vectors import Ball, table_of
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.sensitivity import root_above

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from discreet.mechanisms.additive import Additive
    from discreet.mechanisms.gaussian import Gaussian
    from discreet.mechanisms.laplace import Laplace
    from discreet.noise import Generator

__all__ = ["UnboundedMean"]

_DOUBT = 1e-3


@dataclass(frozen=True, repr=False)
class UnboundedMean(NoisyStatistics):
    """The mean of rows in one or more dimensions, from a `radius` around zero that holds it and a range of `scales`.

    The standard deviation in every direction is between scales[0] and scales[1]; both may be generous, as every one of
    the `rounds` cuts them down. Half of the noise level goes to the last sum, an eighth to the number of rows (public
    under "replace-one", and then to the last sum as well), and the rest to the rounds. The guarantee holds for all
    data. Accuracy is for rows with light tails: those further from the mean than sqrt(d) + sqrt(2 ln(1000 n))
    deviations are shortened. NaN counts as the present center's coordinate.

    >>> estimator = UnboundedMean(radius=1e6, scales=(0.01, 1e4), epsilon=1.0, delta=1e-6)
    >>> estimate = estimator.release([1234.0 + i / 100 for i in range(-100, 101)] * 100)
    >>> abs(float(estimate) - 1234) < 1
    True
    """

    kind: ClassVar[str] = "unbounded_mean"
    noises: ClassVar[tuple[str, ...]] = ("gaussian",)
    leaves_out: ClassVar[str] = "rows shortened in the last round; the sampling error, if the rows are a sample"
    radius: float = field(kw_only=True)
    scales: tuple[float, float] = field(kw_only=True)
    dimension: int = field(default=1, kw_only=True)
    rounds: int = field(default=3, kw_only=True)

    def _validate(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius))
        object.__setattr__(self, "dimension", count("dimension", self.dimension, least=1))
        object.__setattr__(self, "rounds", count("rounds", self.rounds, least=1))
        listed: object = self.scales
        if not isinstance(listed, list | tuple) or len(listed) != 2:
            raise InvalidArgument("scales", self.scales, "pass the smallest and the largest standard deviation")
        scales = tuple(positive("scales", scale) for scale in listed)
        if not 1e-100 <= scales[0] <= scales[1] <= 1e100 or self.radius > 1e100:
            raise InvalidArgument("scales", self.scales, "pass the smaller one first, both between 1e-100 and 1e100")
        object.__setattr__(self, "scales", scales)

    @property
    def _last(self) -> Fraction:
        return Fraction(5, 8) if self.public_rows else Fraction(1, 2)

    @property
    def _step(self) -> Fraction:
        return Fraction(3, 8) / (2 * self.rounds)

    def _mechanisms(self) -> dict[str, Additive]:
        """One mechanism for each step, with the multiplier that it will have; its sensitivity is known by then."""
        made: dict[str, Additive] = {} if self.public_rows else {"rows": noisy(self, 1, Fraction(1, 8))}
        for i in range(self.rounds):
            made[f"center {i + 1}"] = noisy(self, 1, self._step)
            made[f"scale {i + 1}"] = self._measuring(self._step)
        made["sum"] = noisy(self, 1, self._last)
        return made

    def _exact(self, data: Any) -> dict[str, Any]:
        return {"table": table_of(data, self.dimension)}

    def release(self, value: Any, *, generator: Generator | None = None) -> Estimate:
        """The mean of all rows; `generator` is for tests alone."""
        table = self._exact(value)["table"]
        rows: float = len(table)
        if not self.public_rows:
            rows = float(self.mechanisms["rows"].release(len(table), generator=generator))
        n, d = max(1.0, rows), self.dimension
        spread = math.sqrt(d) + math.sqrt(2 * math.log(1 / _DOUBT))
        far = math.sqrt(d) + math.sqrt(2 * math.log(n / _DOUBT))
        center, radius, scale = (0.0,) * d, self.radius, self.scales[1]
        for _ in range(self.rounds):
            ball = Ball(center, radius + scale * far)
            adding = self._adding(ball, self._step)
            moved = adding.release(ball.sums(ball.place(table)), generator=generator) / n
            center = tuple(float(x) for x in np.array(center) + moved)
            miscounted = 0.0 if self.public_rows else 4 * noise_scale(self._rows, 1) / n
            doubt = spread * (scale / math.sqrt(n) + noise_scale(adding, d) / n) + miscounted * ball.radius
            radius = min(radius, doubt)
            scale = min(scale, max(self.scales[0], self._measured(table, center, n, generator)))
        ball = Ball(center, radius + scale * far)
        last = self._adding(ball, self._last).release(ball.sums(ball.place(table)), generator=generator)
        return Estimate(self, {"rows": rows, "center": center, "radius": ball.radius, "scale": scale, "sum": last})

    @property
    def _octaves(self) -> tuple[int, int]:
        """Distances are counted between these powers of two, those outside at the ends."""
        low, high = self.scales
        return math.floor(math.log2(low)) - 1, math.ceil(math.log2(high * math.sqrt(self.dimension))) + 1

    def _measured(
        self, table: NDArray[np.float64], center: tuple[float, ...], n: float, generator: Generator | None
    ) -> float:
        """A standard deviation that is hardly too small: from the power of two that three quarters of the rows are in.

        One row is in one bin of the histogram of distances to the center, whatever its scale.
        """
        low, high = self._octaves
        with np.errstate(over="ignore", invalid="ignore"):
            moved = table - np.array(center)
            distances = np.sqrt((np.where(np.isnan(moved), 0.0, moved) ** 2).sum(axis=1))
        exponents = np.where(np.isfinite(distances), np.frexp(np.maximum(distances, 2.0**low))[1], high)
        bins = np.clip(exponents, low, high) - low
        counts = np.bincount(bins, minlength=high - low + 1)
        noised = self._measuring(self._step).release(counts, generator=generator)
        reached = np.flatnonzero(np.cumsum(noised) >= 0.75 * n)
        top = high if not len(reached) else int(reached[0]) + low
        return 1.25 * math.ldexp(1.0, top) / math.sqrt(self.dimension)

    def _measuring(self, share: Fraction) -> Laplace | Gaussian:
        low, high = self._octaves
        return noisy(self, root_above(2 if self.public_rows else 1), share, dimension=high - low + 1)

    @property
    def _rows(self) -> Laplace | Gaussian:
        return self.mechanisms["rows"]  # type: ignore[return-value]

    def _adding(self, ball: Ball, share: Fraction) -> Laplace | Gaussian:
        return noisy(self, ball.sum_sensitivity(replace=self.public_rows), share, dimension=self.dimension)

    releases = Mechanism.releases

    def value_of(self, statistics: Mapping[str, Any]) -> Any:
        moved = np.asarray(statistics["sum"]) / max(1.0, float(statistics["rows"]))
        found: NDArray[np.float64] = np.array(statistics["center"]) + moved
        return found if self.dimension > 1 else float(found[0])

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        ball = Ball(statistics["center"], statistics["radius"])
        noises = (self._adding(ball, self._last), None if self.public_rows else self._rows)
        ends = np.array(
            [
                ratio_interval(
                    float(entry),
                    float(statistics["rows"]),
                    noises=noises,
                    dimension=self.dimension,
                    miss=1 - confidence,
                    within=(-ball.radius, ball.radius),
                )
                for entry in statistics["sum"]
            ]
        )
        low, high = np.array(ball.center)[:, None].T + ends.T + np.array([[-1.0], [1.0]]) * float(ball.step)
        return (low, high) if self.dimension > 1 else (float(low[0]), float(high[0]))

    def bad_values(self) -> list[Any]:
        wide = [[1.0] * (self.dimension + 1)]
        return [None, "seven", 7, {}, object(), wide, [["a"] * self.dimension], [[[1.0]]]]

    def examples(self) -> list[tuple[Any, Any]]:
        """One person far away is added, or moves to the other side."""
        rows = np.zeros((9, self.dimension))
        far = np.full((1, self.dimension), self.radius)
        if self.public_rows:
            return [(np.vstack([rows, far]), np.vstack([rows, -far]))]
        return [(rows, np.vstack([rows, far]))]
