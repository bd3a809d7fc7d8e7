r"""Quantiles of a column, many at once, each chosen by its rank with the exponential mechanism.

The middle level first; then the rows below the result and those above it, each with the levels on its side, and so on:
m levels take D = ceil(log2(m + 1)) rounds [Kaplan et al. 2022]. In one round everybody's row is in one part alone, so a
round costs what one choice costs, and results are monotone.

In a part with n rows, level q aims at rank q n. A place y scores -|L(y) - q n| = -|(1 - q) L(y) - q G(y)|, with G(y)
rows not below y. One row more changes L by one and not G, or the other way round, and so the score by at most
max(q, 1 - q). One row replaced may change two parts in that way; either way all log-probabilities of a round move
within a window of twice the length, so a round has the bounded range of a choice at twice the level.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import decimal, finite_epsilon
from discreet.arguments import count, unit_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.estimators.estimate import Estimate
from discreet.mechanisms.estimators.estimator import Estimator
from discreet.mechanisms.estimators.ranks import Places, choose_place
from discreet.mechanisms.selection import level
from discreet.mechanisms.sums import Bounds
from discreet.mechanisms.values import blank_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from discreet.noise import Generator

__all__ = ["COLLISIONS", "Median", "Quantiles", "RankEstimator"]

COLLISIONS = 16
"""2^20 equal rows have more than this many on one of 2^20 places with probability below 1e-7."""


@dataclass(frozen=True, repr=False)
class RankEstimator(Estimator):
    """Rows are clamped to [lower, upper], NaN becomes `missing`; results are multiples of `granularity` in there."""

    leaves_out: ClassVar[str] = "what clamping and rounding change; the sampling error, if the rows are a sample"
    lower: float
    upper: float
    epsilon: float = field(kw_only=True)
    granularity: float | None = field(default=None, kw_only=True)
    missing: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))
        if self.epsilon <= 0:
            raise InvalidArgument("epsilon", self.epsilon, "pass a number > 0")
        checked = Bounds(self.lower, self.upper, granularity=self.granularity, missing=self.missing)
        bounds = self._places.bounds
        object.__setattr__(self, "lower", checked.lower)
        object.__setattr__(self, "upper", checked.upper)
        object.__setattr__(self, "missing", checked.missing)
        object.__setattr__(self, "granularity", bounds.granularity)

    @cached_property
    def _places(self) -> Places:
        return Places.between(self.lower, self.upper, granularity=self.granularity, missing=self.missing)

    def check(self, value: Any) -> None:
        """Refuses what is no column of numbers, by its dtype and shape alone."""
        self._places.place(blank_rows(value))

    def bad_values(self) -> list[Any]:
        return [*super().bad_values(), [[1.0, 2.0]], np.array([True]), np.array(["2026-01-01"], dtype="datetime64[D]")]

    def examples(self) -> list[tuple[Any, Any]]:
        """One person with an extreme value is added, or changes it to the other extreme."""
        width = self.upper - self.lower
        inner = [self.lower + width * share for share in (0.25, 0.375, 0.5, 0.625, 0.75)]
        if self.public_rows:
            return [([self.lower, *inner], [*inner, self.upper])]
        return [(inner, [*inner, self.upper])]


@dataclass(frozen=True, repr=False)
class Quantiles(RankEstimator):
    """The quantiles of a column at `levels` between 0 and 1, at a total level of `epsilon`.

    The cost is that of D = ceil(log2(m + 1)) exponential mechanisms at epsilon / D for m levels, which is epsilon-DP,
    and less at delta > 0. Levels are read as fractions with denominators up to 10^6.

    For error bars, pass `rows`, a public number of rows that there are at least (under "replace-one" it is known), and
    `bracket`: then the levels q - bracket and q + bracket are chosen as well. The interval at level q reaches to the
    nearest released quantiles that are further away in rank than choices err: see `rank_error`. Without them it is
    everything between the bounds.

    >>> income = Quantiles(0, 100, levels=[0.25, 0.5, 0.75], epsilon=2.0)
    >>> estimate = income.release([i / 100 for i in range(10_000)])
    >>> abs(float(estimate[1]) - 50) < 5
    True
    """

    kind: ClassVar[str] = "quantiles"
    levels: tuple[float, ...] = field(kw_only=True)
    bracket: float | None = field(default=None, kw_only=True)
    rows: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        listed: object = self.levels
        if not isinstance(listed, list | tuple | np.ndarray) or len(listed) == 0:
            raise InvalidArgument("levels", self.levels, "pass a list of numbers between 0 and 1")
        levels = tuple(
            unit_fraction("levels", float(one) if isinstance(one, np.generic) else one) for one in self.levels
        )
        if any(a >= b for a, b in itertools.pairwise(levels)):
            raise InvalidArgument("levels", levels, "pass them in growing order, without repetition")
        object.__setattr__(self, "levels", levels)
        if self.bracket is not None:
            object.__setattr__(self, "bracket", unit_fraction("bracket", self.bracket))
        if self.rows is not None:
            object.__setattr__(self, "rows", count("rows", self.rows, least=1))
        targets = self.targets
        if any(not 0 < one < 1 for one in map(_fraction, levels)) or len(set(map(_fraction, levels))) != len(levels):
            raise InvalidArgument("levels", levels, "pass levels at least 10^-6 apart, and from 0 and 1")
        if len(targets) > 1 << 16:
            raise InvalidArgument("levels", f"{len(levels)} levels", "pass at most 65536")
        self._scale(Fraction(1, 2))

    @cached_property
    def targets(self) -> tuple[Fraction, ...]:
        """All levels that are chosen, those of the brackets included, in growing order."""
        wanted = {_fraction(one) for one in self.levels}
        if self.bracket is not None:
            margin = _fraction(self.bracket)
            wanted |= {one + side * margin for one in wanted for side in (-1, 1)}
        return tuple(sorted(one for one in wanted if 0 < one < 1))

    @property
    def rounds(self) -> int:
        """D, how many choices the row of one person takes part in."""
        return len(self.targets).bit_length()

    @property
    def _epsilon_of_round(self) -> float:
        exact = decimal(self.epsilon) / self.rounds
        value = float(exact)
        while decimal(value) > exact:
            value = math.nextafter(value, 0.0)
        return value

    @property
    def cost(self) -> Cost:
        """The composition of the rounds, each of the bounded range of an exponential mechanism [Dong et al. 2020]."""
        return self.rounds * Cost.exponential_mechanism(self._epsilon_of_round, adjacency=self.adjacency)

    def _scale(self, q: Fraction) -> Fraction:
        """a: scores of a part's choice at level q enter the law as a * score."""
        moved = max(q, 1 - q)
        if self.public_rows:
            moved = Fraction(1) if len(self.targets) == 1 else 2 * moved
        return level(self._epsilon_of_round) / (2 * moved)

    def release(self, value: Any, *, generator: Generator | None = None) -> Estimate:
        """The quantiles of all rows; `generator` is for tests alone."""
        self._places.place(value)  # whatever is refused is refused before bits are drawn
        rows = self._places.spread(value, generator)
        chosen = np.empty(len(self.targets), dtype=np.int64)
        for low, middle, high in _parts(len(self.targets)):
            first = int(chosen[low - 1]) if low else 0
            last = int(chosen[high]) if high < len(chosen) else self._places.number - 1
            start = int(rows.searchsorted(first, "left"))
            inside = rows[start : len(rows) if high == len(chosen) else int(rows.searchsorted(last, "left"))]
            q = self._relative(low, middle, high)
            chosen[middle] = choose_place(
                inside, first=first, last=last, target=q * len(inside), scale=self._scale(q), generator=generator
            )
        statistics: dict[str, Any] = {"quantiles": np.array([self._places.restore(int(place)) for place in chosen])}
        if self.public_rows:
            statistics["rows"] = len(rows)
        return Estimate(self, statistics)

    def value_of(self, statistics: Mapping[str, Any]) -> Any:
        place = {one: i for i, one in enumerate(self.targets)}
        return statistics["quantiles"][[place[_fraction(one)] for one in self.levels]]

    def rank_error(self, confidence: float = 0.95) -> float:
        """With this probability all chosen ranks are at most this far from their targets, counted in rows.

        A choice among N places misses by more than t with probability at most N e^{-a (t - s)}, if some place is
        within s of the target; the errors of a part's ends add to those of the levels inside. The spreading leaves
        s <= 16 for up to a million equal rows, except with a probability below 1e-7 that is not counted in.
        """
        miss = 1 - unit_fraction("confidence", confidence)
        worst = min(self._scale(q) for q in (self._relative(*part) for part in _parts(len(self.targets))))
        single = math.log(self._places.number * len(self.targets) / miss) / float(worst) + COLLISIONS
        return self.rounds * single * (1 + 1e-12)

    def _relative(self, low: int, middle: int, high: int) -> Fraction:
        """The level of a part's middle, among the rows of that part."""
        below = self.targets[low - 1] if low else Fraction(0)
        above = self.targets[high] if high < len(self.targets) else Fraction(1)
        return (self.targets[middle] - below) / (above - below)

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[Any, Any]:
        quantiles = statistics["quantiles"]
        rows = statistics.get("rows", self.rows)
        wanted = [_fraction(one) for one in self.levels]
        low, high = np.full(len(wanted), self.lower), np.full(len(wanted), self.upper)
        if rows:
            margin = (self.rank_error(confidence) + 1) / rows
            step = float(self.granularity or 0.0)
            for i, q in enumerate(wanted):
                under = [j for j, one in enumerate(self.targets) if float(q - one) >= margin]
                over = [j for j, one in enumerate(self.targets) if float(one - q) >= margin]
                low[i] = max(self.lower, quantiles[under[-1]] - step) if under else self.lower
                high[i] = min(self.upper, quantiles[over[0]] + step) if over else self.upper
        return low, high


@dataclass(frozen=True, repr=False)
class Median(Quantiles):
    """The median: `Quantiles` at the level 1/2 alone, as one number.

    >>> estimate = Median(0, 100, epsilon=1.0).release(list(range(101)) * 20)
    >>> 40 < float(estimate) < 60
    True
    """

    kind: ClassVar[str] = "median"
    levels: tuple[float, ...] = field(default=(0.5,), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels != (0.5,):
            raise InvalidArgument("levels", self.levels, "the median has the level 0.5; use Quantiles for others")

    def value_of(self, statistics: Mapping[str, Any]) -> float:
        return float(super().value_of(statistics)[0])

    def interval_of(self, statistics: Mapping[str, Any], confidence: float) -> tuple[float, float]:
        low, high = super().interval_of(statistics, confidence)
        return float(low[0]), float(high[0])


def _fraction(value: float) -> Fraction:
    return decimal(value).limit_denominator(10**6)


def _parts(number: int) -> Iterator[tuple[int, int, int]]:
    """(low, middle, high): levels low .. high - 1 are still to be chosen in this part; middles first."""
    waiting: Sequence[tuple[int, int]] = [(0, number)]
    while waiting:
        following = []
        for low, high in waiting:
            middle = (low + high) // 2
            yield low, middle, high
            following += [(a, b) for a, b in ((low, middle), (middle + 1, high)) if a < b]
        waiting = following
