r"""How much batches cut from a shuffled list cost *at least*: for comparison with what Poisson sampling would claim.

Records are clipped to [-1, 1], the list is shuffled once, cut into T batches of equal size, and every batch's sum is
released with N(0, sigma^2) noise. All records are -1 but one, which is +1 or contributes nothing ("zero-out", a form of
add-remove). After a shift known to everybody the sums are noise, plus 2 in one batch against plus 1 in one batch, the
batch being uniformly random. The event "some sum exceeds C" gives [Chua et al. 2024]

    delta(epsilon) >= 1 - Phi((C-2)/sigma) Phi(C/sigma)^{T-1} - e^epsilon (1 - Phi((C-1)/sigma) Phi(C/sigma)^{T-1}).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.leaves.noise import Gaussian
from discreet.arguments import count, nonnegative, positive, probability
from discreet.divergence.special import log_ndtr
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost

__all__ = ["delta_at_least", "epsilon_at_least", "estimate_of_epoch"]


def estimate_of_epoch(cost: Cost, batches: int, *, delta: float | None, epsilon: float | None) -> float:
    """The lower bound for one epoch in which every batch of a shuffled list is released with the noise of `cost`.

    Several Gaussian releases on the same batch are one, with less noise.
    """
    if (delta is None) == (epsilon is None):
        raise InvalidArgument("delta, epsilon", (delta, epsilon), "pass exactly one of delta= and epsilon=")
    noise = [(leaf.noise_multiplier, times) for leaf, times in cost.parts if isinstance(leaf, Gaussian)]
    if len(noise) < len(cost.parts) or not noise or cost.adjacency != "add-remove":
        raise InvalidArgument(
            "shuffled_batches",
            batches,
            "the bound is known for a sum with Gaussian noise in which a record turns to nothing: ask it of "
            f"Cost.gaussian(noise_multiplier) under 'add-remove', not of {cost!r}",
        )
    multiplier = 1 / math.sqrt(math.fsum(times / value**2 for value, times in noise)) * (1 + 1e-15)
    if delta is not None:
        return epsilon_at_least(multiplier, batches=batches, delta=delta)
    assert epsilon is not None
    return delta_at_least(multiplier, batches=batches, epsilon=epsilon)


def delta_at_least(noise_multiplier: float, *, batches: int, epsilon: float) -> float:
    """A lower bound of delta for one epoch of shuffled batches of a sum with Gaussian noise.

    >>> delta_at_least(0.4, batches=1000, epsilon=4.0) > 0.005
    True
    """
    sigma = positive("noise_multiplier", noise_multiplier)
    number = count("batches", batches, least=1)
    level = nonnegative("epsilon", epsilon)
    places = np.linspace(-4 * sigma, 2 + 12 * sigma, 4001)
    rest = (number - 1) * log_ndtr(places / sigma)
    high = -np.expm1(log_ndtr((places - 2) / sigma) + rest)
    low = -np.expm1(log_ndtr((places - 1) / sigma) + rest)
    scaled = np.exp(np.minimum(level + np.log(np.maximum(low, 1e-320)), 2.0))
    # T roundings of a logarithm, and that of a difference
    slack = 1e-15 * (number + 16) * (high + scaled)
    return max(0.0, float((high - scaled - slack).max()))


def epsilon_at_least(noise_multiplier: float, *, batches: int, delta: float) -> float:
    """A lower bound of epsilon at this delta for one epoch of shuffled batches of a sum with Gaussian noise."""
    level = probability("delta", delta)
    if delta_at_least(noise_multiplier, batches=batches, epsilon=0.0) <= level:
        return 0.0
    low, high = 0.0, 1.0
    while high < 1e4 and delta_at_least(noise_multiplier, batches=batches, epsilon=high) > level:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        is_above = delta_at_least(noise_multiplier, batches=batches, epsilon=middle) > level
        low, high = (middle, high) if is_above else (low, middle)
    return low if math.isfinite(low) else 0.0
