r"""When records are too few for a goal, or a delta too large for records: from public numbers alone.

Every model here is learned from sums over records with noise. One record moves such a sum by at most some length, and n
of them by n times that. Noise for a sum of d numbers, if all of a goal's mu were spent on it at once, is about

    changes sqrt(d) / mu       times that length; sqrt(2) changes d / epsilon for a pure goal,

changes = 2 where a record is replaced, else 1. With fewer records than that, the noise is longer than what they could
say if all of them said the same: the model would be noise for certain. It needs many times more to be good.

A release of (epsilon, delta) may publish a record, whole, with probability delta. Where delta n >= 1 that happens to
somebody.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.learning.goal import Goal

__all__ = ["LARGEST_DELTA", "check_delta", "check_enough", "fewest_records"]

LARGEST_DELTA = 0.01


def fewest_records(goal: Goal, dimension: int) -> int:
    """The number of records that noise for a sum of so many numbers outweighs, whatever they say.

    >>> from discreet.learning import Goal
    >>> fewest_records(Goal(epsilon=1.0, delta=1e-6), 100), fewest_records(Goal(epsilon=1.0), 100)
    (43, 142)
    """
    changes = 1 if goal.adjacency == "add-remove" else 2
    if goal.is_pure:
        assert goal.epsilon is not None
        return math.ceil(math.sqrt(2) * changes * dimension / goal.epsilon)
    return math.ceil(changes * math.sqrt(dimension) / goal.gaussian)


def check_enough(records: int, goal: Goal, dimension: int) -> None:
    """Refuse a public number of records that noise outweighs if so many numbers are learned."""
    fewest = fewest_records(goal, dimension)
    if records < fewest:
        raise InvalidArgument(
            "n",
            records,
            f"noise for {goal!r} outweighs fewer than {fewest} records if {dimension} numbers are learned, whatever "
            "they say; pass more records (many more for a good model), fewer columns, or a larger epsilon",
        )


def check_delta(delta: float, records: int | None = None) -> None:
    """Refuse a delta that protects nobody: above 0.01, or 1 / n for a public number n of records."""
    if delta > LARGEST_DELTA:
        raise InvalidArgument(
            "delta",
            delta,
            "with this probability a record may be published whole; keep it well below 1 / (number of records), such "
            f"as 1e-6, and at most {LARGEST_DELTA} for very few",
        )
    if records is not None and delta * records >= 1:
        raise InvalidArgument(
            "delta", delta, f"it must be below 1 / n, and is not for {records} records: somebody's might be published"
        )
