"""What an estimator may buy instead of being told: the number of records, bounds of columns and norms, the classes.

Each purchase takes a goal of its own and gives a value, paid for first. In a rehearsal it gives a stand-in.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.learning.convex.moments import noise_for
from discreet.learning.report import Release
from discreet.learning.rows import PARTS
from discreet.mechanisms import DiscreteLaplace, Quantiles, RoundedGaussian, StableHistogram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.account import Account
    from discreet.learning.goal import Goal

    Reals = NDArray[np.float64]

__all__ = [
    "buy_bounds",
    "buy_classes",
    "buy_most",
    "buy_records",
    "buy_row_norm",
    "buy_total",
    "worth_buying",
]

_FINEST = 2.0**-30
"""Values are told apart down to this size when bounds are bought, and up to 2^60."""
_LARGEST = 63.0  # asinh(2^60 / 2^-30) and a little more
_GRAIN = 0.125
_NORMS = 9.75  # 2^14, as a logarithm, and a little more
"""Bounds that are bought are known to a factor of e^(1/8): a finer choice would have to tell more places apart."""


def buy_records(goal: Goal, table: Reals, account: Account) -> int:
    """The number of records, with noise; at least 1."""
    mechanism: DiscreteLaplace | RoundedGaussian
    if goal.epsilon is not None and goal.is_pure:
        mechanism = DiscreteLaplace(epsilon=goal.epsilon, adjacency=goal.adjacency)
    else:
        mechanism = RoundedGaussian(noise_multiplier=1 / goal.gaussian, adjacency=goal.adjacency)
    account.buy(Release("the number of records", mechanism.cost, "a count changes by one"))
    if account.is_rehearsal:
        return len(table)
    return max(1, mechanism.release(len(table), generator=account.generator))


def buy_bounds(goal: Goal, table: Reals, account: Account, *, what: str = "") -> tuple[Reals, Reals]:
    """For every column, bounds that hold nearly all of it: two quantiles on a scale that is logarithmic far from 0.

    Quintiles are bought, which noise in ranks moves far less than extremes, and the range between them is continued by
    one and a half times as much on both sides: 3.4 standard deviations of a normal column, all of a uniform one.
    A fifth of the records outweighs a thousand empty places from about 100 / (epsilon of one quantile) records on.
    """
    features = table.shape[1]
    mechanism = _quantiles(goal, (0.2, 0.8), features)
    account.buy(
        Release(
            what or f"bounds of {features} columns",
            features * mechanism.cost,
            "two quantiles a column, by the exponential mechanism; "
            f"guesses for fewer than about {math.ceil(200 / mechanism.epsilon)} records",
        )
    )
    if account.is_rehearsal:
        return np.full(features, -1.0), np.ones(features)
    squeezed = np.arcsinh(np.clip(table, -(2.0**61), 2.0**61) / _FINEST)  # no value makes it overflow
    ends = np.array(
        [[float(q) for q in mechanism.release(squeezed[:, j], generator=account.generator)] for j in range(features)]
    )
    ends += [-_GRAIN, _GRAIN]
    low, high = np.sinh(ends[:, 0]) * _FINEST, np.sinh(ends[:, 1]) * _FINEST
    beyond = 1.5 * np.maximum(high - low, 1e-6)
    return low - beyond, high + beyond


def buy_row_norm(goal: Goal, norms: Reals, account: Account, *, most: float) -> float:
    """A norm that about 95 % of the rows do not exceed, between `most` / 2^14 and `most`."""
    low, high = math.log(most) - _NORMS, math.log(most)
    mechanism = _quantiles(goal, (0.95,), 1, low=low, high=high)
    account.buy(Release("the bound on the norm of a row", mechanism.cost, "a quantile, by the exponential mechanism"))
    if account.is_rehearsal:
        return most
    logs = np.log(np.maximum(norms, most * math.exp(-_NORMS)))
    return min(most, math.exp(float(mechanism.release(logs, generator=account.generator)[0]) + _GRAIN))


def buy_most(goal: Goal, counts: Reals, account: Account, *, most: float) -> float:
    """2.5 times what about 90 % of the counts do not exceed, at most `most`, which is above 1.

    Noise in ranks moves this level less than a higher one, and what is clamped is little of the sum of all counts.
    """
    mechanism = _quantiles(goal, (0.9,), 1, low=-_GRAIN, high=math.log(most))
    account.buy(
        Release("the bound on counts that are believed", mechanism.cost, "a quantile, by the exponential mechanism")
    )
    if account.is_rehearsal:
        return most
    logs = np.log(np.clip(counts, 1.0, most))
    return min(most, 2.5 * math.exp(float(mechanism.release(logs, generator=account.generator)[0])))


def buy_total(goal: Goal, counts: Reals, account: Account, *, most: float) -> tuple[float, float]:
    """The noisy sum of counts between 0 and `most`, and the standard deviation of its noise."""
    mechanism = noise_for(goal, l1=Fraction(PARTS), l2=Fraction(PARTS), dimension=1)
    account.buy(Release("the sum of the counts", mechanism.cost, f"one count is between 0 and {most:.4g}"))
    deviation = math.sqrt(mechanism.variance) * most / PARTS
    if account.is_rehearsal:
        return len(counts) * most / 4, deviation
    whole = np.trunc(np.minimum(np.clip(counts, 0.0, most) / most, 1.0) * PARTS).astype(np.int64)
    noisy = np.asarray(mechanism.release(np.array([int(whole.sum())]), generator=account.generator))
    return float(noisy[0]) * most / PARTS, deviation


def worth_buying(goal: Goal, records: int | None) -> bool:
    """Whether the 95 % quantile that `buy_row_norm` would choose is more than a guess, by public numbers."""
    epsilon = goal.epsilon if goal.epsilon is not None else goal.gaussian
    return records is None or records * epsilon >= 100


def buy_classes(goal: Goal, labels: NDArray[Any], account: Account) -> list[Any]:
    """The labels that are common enough to be shown."""
    if goal.is_pure or goal.epsilon is None:
        raise InvalidArgument(
            "classes", "private", "a list of classes can only be bought with epsilon and delta > 0; state classes=[...]"
        )
    mechanism = StableHistogram(epsilon=goal.epsilon, delta=goal.delta, adjacency=goal.adjacency)
    account.buy(Release("the list of classes", mechanism.cost, "noisy counts of labels above a threshold"))
    values, counts = np.unique(labels, return_counts=True)
    if account.is_rehearsal:
        return ["a", "b"] if labels.dtype.kind in "OSU" else [0, 1]
    shown, _ = mechanism.release((np.arange(len(values)), counts), generator=account.generator)
    return list(values[np.sort(shown)])


@lru_cache(maxsize=64)  # a rehearsal has looked for it already
def _quantiles(
    goal: Goal, levels: tuple[float, ...], times: int, *, low: float = -_LARGEST, high: float = _LARGEST
) -> Quantiles:
    """The mechanism for quantiles of squeezed columns whose cost, so many times, meets the goal."""

    def at(epsilon: float) -> Quantiles:
        return Quantiles(low, high, levels=levels, epsilon=epsilon, granularity=_GRAIN, adjacency=goal.adjacency)

    def total(epsilon: float) -> Cost:
        return times * at(epsilon).cost

    if goal.epsilon is not None and (times == 1 or goal.is_pure):
        return at(math.nextafter(goal.epsilon / times, 0))
    least, largest = 1e-6, 100.0
    if not total(least).gdp() <= goal.gaussian:
        raise InvalidArgument(
            "bounds", "private", "the share for it is too small; state the bounds, or pass more epsilon"
        )
    while largest / least > 1.01:
        middle = math.sqrt(least * largest)
        least, largest = (middle, largest) if total(middle).gdp() <= goal.gaussian else (least, middle)
    return at(least)
