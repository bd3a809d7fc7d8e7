r"""Which groups are shown, where the policy does not list them.

**One group for each unit** (Laplace path): every group that n units have is kept by the optimal coin for (epsilon,
delta), `KeySelection`; no (epsilon, delta)-DP mechanism keeps any group with a larger probability.

**Many groups for each unit** (Gaussian path): a unit with k groups gives each the weight 1/sqrt(k), which has l2 norm 1
[Gopi et al. 2020]. Gaussian noise of standard deviation s is added to the total weight of every group that somebody
has, and those that reach a threshold t are kept.

**Claim.** This is a Gaussian mechanism with noise multiplier s, but for an event of probability at most d, if

    max_k  k Phi((1/sqrt(k) - t) / s)  <=  d.

*Proof.* Compare with the mechanism that shows noisy weights for the groups of the *other* units only. On data without
the unit both are the same, and it is the Gaussian mechanism followed by a threshold; with the unit its groups that
nobody else has are not shown. They differ only if such a group reaches the threshold: each of at most k groups has
weight 1/sqrt(k) there. The maximum over k is taken over the numbers of groups that a unit may have; one that has more
than `MOST_GROUPS`, or than a limit that was stated, is left out of the selection, with the groups that nobody else has.

Noise is independent from group to group, so that the event is one of the noise of those groups alone, and has the same
probability whatever else is shown: what is charged, a Gaussian mechanism and a leak of d, is a mixture of the two.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.divergence.normal import log_tails, score, scores
from discreet.mechanisms import KeySelection
from discreet.noise import rounded_gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.query.allocation import Allocation

__all__ = [
    "MOST_GROUPS",
    "WEIGHT",
    "kept_by_count",
    "kept_by_weight",
    "threshold",
    "threshold_of_copies",
    "units_shown",
]

MOST_GROUPS = 1 << 16
WEIGHT = 1 << 20
"""The weight 1, as an integer."""


@lru_cache(maxsize=256)
def threshold(noise: float, failure: float, most: int = MOST_GROUPS) -> float:
    """The smallest weight t at which a group is shown: the largest over k <= most of 1/sqrt(k) + noise z(failure / k).

    z is the upper quantile of a normal. Rounded upward, by about 1e-9 of the probability and of the weight.
    """
    # Between the listed numbers of groups, k of the next one and 1/sqrt(k) of the one before bound both factors.
    listed = np.concatenate([np.arange(1.0, 4097.0), np.floor(np.geomspace(4096, MOST_GROUPS, 2000))])
    k = np.unique(np.minimum(listed, most))
    weight = 1 / np.sqrt(np.concatenate([[1.0], k[:-1] + 1]))
    reached = weight + noise * scores(math.log(failure) - 1e-9 - np.log(k))
    return max(0.0, float(np.max(reached))) * (1 + 1e-9)


@lru_cache(maxsize=256)
def threshold_of_copies(noise: float, failure: float, copies: int) -> float:
    """The same where every row is a unit, and is in at most so many groups, with a weight that adds up to 1.

    Below the threshold the chance to reach it is convex in the weight, and a copy has weight 1 / copies at least. So of
    all ways to be in k groups the worst is that one has all that is left, 1 - (k - 1) / copies, and the others one copy
    each.
    """
    k = np.arange(1.0, copies + 1)

    def log_chance(t: float) -> float:
        largest = log_tails((t - 1 + (k - 1) / copies) / noise)
        others = log_tails(np.full(copies, (t - 1 / copies) / noise))
        return float(np.max(np.logaddexp(largest, np.log(np.maximum(k - 1, 1e-300)) + others)))

    target = math.log(failure) - 1e-9
    low, high = 1.0, max(1.0, 1 + noise * score(target - math.log(copies)))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_chance(middle) <= target else (middle, high)
    return high * (1 + 1e-9)


def kept_by_weight(
    weights: NDArray[np.int64],
    allocation: Allocation,
    generator: Generator | None = None,
    *,
    groups: int | None = None,
    most: int = MOST_GROUPS,
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which groups are kept, and their noisy weights; weights are in units of 1 / WEIGHT, rounded towards 0.

    A unit has at most `most` weights, which are equal and have l2 norm 1. Or it gives weight 1 to each of at most
    `groups`, or several of them to one, and then everything is scaled by that number.
    """
    unit = WEIGHT * (groups or 1)
    least = _least_weight(allocation, groups=groups, most=most)
    noisy = weights + rounded_gaussian(allocation.key_noise * unit * (1 + 1e-12), weights.size, generator=generator)
    kept = noisy >= math.ceil(least * unit) + 1
    return kept, noisy[kept]


def kept_by_count(
    units: NDArray[np.int64], allocation: Allocation, generator: Generator | None = None, *, groups: int = 1
) -> NDArray[Any]:
    """Which groups are kept, from the number of units in each; a unit has at most `groups` of them."""
    selection = KeySelection(epsilon=allocation.key_epsilon, delta=allocation.key_delta, keys_per_unit=groups)
    shown = selection.release((np.arange(units.size), units), generator=generator)
    kept = np.zeros(units.size, dtype=bool)
    kept[np.asarray(shown, dtype=np.int64)] = True
    return kept


def units_shown(
    allocation: Allocation, confidence: float, *, gaussian: bool, groups: int | None = None, most: int = MOST_GROUPS
) -> int:
    """How many units a group needs to be kept with this probability, if they are in no other group.

    The arguments are those with which groups are kept: `gaussian` by weight, else by count.
    """
    if not gaussian:
        selection = KeySelection(epsilon=allocation.key_epsilon, delta=allocation.key_delta, keys_per_unit=groups or 1)
        return int(selection.error(confidence))
    least = _least_weight(allocation, groups=groups, most=most)
    return max(1, math.ceil((groups or 1) * (least + allocation.key_noise * score(math.log1p(-confidence)))))


def _least_weight(allocation: Allocation, *, groups: int | None, most: int) -> float:
    noise, failure = allocation.key_noise, allocation.key_delta
    return threshold(noise, failure, most) if groups is None else threshold_of_copies(noise, failure, groups)
