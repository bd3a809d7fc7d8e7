r"""The contour for many different jagged parts: a little Gaussian noise is added to the loss and paid for.

Losses with atoms on no common lattice have a transform that never falls, so a line cannot be cut. Composing with one
more Gaussian mechanism, N(eta, 1) against N(0, 1), makes it fall like e^{-eta^2 y^2 / 2}. With D of the composition and
B of the blurred one,

    B(x) - kappa <= D(x) <= B(x),      kappa = 1.25 (B(x-eta) - (1 + e^-eta) B(x) + e^-eta B(x+eta))

for eta <= 1/20: a butterfly of second order in eta (proof in docs/proofs/blurred.md). The line is now long, but where
many parts differ their transforms are hardly ever large at the same height: an interval of heights on which the
product is provably negligible is left out, and its bound is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.contour import Line, values_along
from discreet.accounting.pair import Direction, Pair, unit_interval
from discreet.accounting.pairs.gaussian import GaussianPair
from discreet.accounting.saddle import Unreachable, cumulants_of, period_for, saddle, sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from discreet.accounting.pair import Reals

__all__ = ["BlurredLine", "blurred_line"]

_GOAL = math.log(1e-13)
_WIDEST = 0.05
_DEPTH = 26.0
"""Intervals on which the transform is below e^-26 of its value on the real axis are left out."""
_MOST_INTERVALS = 1_000_000
_MOST_HEIGHTS = 400_000
_MOST_WORK = 4e7


@dataclass(frozen=True, eq=False)
class BlurredLine(Line):
    """A line of the composition with one more Gaussian mechanism of mu = `eta`."""

    eta: float = 0.0

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon) without the blur."""
        low, high = super().bounds(epsilon)
        left, right = super().bounds(epsilon - self.eta)[1], super().bounds(epsilon + self.eta)[1]
        shrink = math.exp(-self.eta)
        butterfly = left - (1 + shrink) * low + shrink * right
        return unit_interval(low - 1.25 * butterfly * (1 + 1e-9), high)


def blurred_line(
    pairs: Sequence[tuple[Pair, int]],
    direction: Direction,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    width: float = 3e-9,
) -> BlurredLine:
    """A line suited to reading D at this epsilon, or to finding the epsilon with D(epsilon) = delta.

    `width` is about the relative width of epsilon that the blur may cost; where losses cluster it costs more.
    """
    if not all(pair.has_transform for pair, _ in pairs):
        raise Unreachable("a part is known only by its distribution functions")
    chosen = sketch(pairs)
    t, near, log_delta, variance = saddle(lambda s: cumulants_of(chosen, direction, s), epsilon=epsilon, delta=delta)
    if near <= 0:
        t, near, log_delta, variance = saddle(lambda s: cumulants_of(chosen, direction, s), epsilon=0.0)
    spread = math.sqrt(variance)
    eta = min(_WIDEST, 0.05 * spread, math.sqrt(width * max(near, 1e-3 / t) / (1.25 * (t + 1))))
    blurred = [*pairs, (GaussianPair(eta), 1)]
    goal = log_delta + _GOAL
    period, aliases = period_for(blurred, direction, t=t, epsilon=near, goal=goal, width=spread)
    power = float(direction.power(np.array([complex(t)]))[0].real)
    height, log_far = _heights(pairs, power, eta, 2 * math.pi / period)
    work = len(height) * sum(pair.node_count((power, power), float(height[-1])) for pair, _ in pairs)
    if work > _MOST_WORK:
        raise Unreachable(f"{work:.1e} evaluations of the integrand would be needed")
    log_value, log_error, log_common = values_along(blurred, direction, power, height)
    log_cut = float(log_value[0].real + log_error[0]) + log_common + log_far
    return BlurredLine(
        t, height, log_value, log_error, period, tuple(aliases), log_cut, 0.0, 0.0, near, 0.0, log_common, eta
    )


def _heights(pairs: Sequence[tuple[Pair, int]], power: float, eta: float, spacing: float) -> tuple[Reals, float]:
    """Multiples of the spacing that matter, and ln of a bound of (1/pi) int |phi(t+iy)/phi(t)| / y^2 dy over the rest.

    An interval of n nodes adds at most n + 1 spacings times its bound over the square of the height before it.
    """
    steps = sum(count for _, count in pairs)
    spreads = [math.sqrt(pair.cumulants(power)[2]) for pair, _ in pairs]
    reach = math.sqrt(math.fsum(count * own**2 for (_, count), own in zip(pairs, spreads, strict=True)) / steps)
    if not reach > 0:
        raise Unreachable("the losses under this tilt have no spread")
    last = math.sqrt(2 * _DEPTH) / eta
    nodes = max(1, int(min(0.3, max(0.06, steps / 700)) / reach / spacing))
    total = math.ceil(last / (nodes * spacing))
    if total > _MOST_INTERVALS:
        raise Unreachable(f"{total} intervals of heights would have to be looked at")
    # the parts that fall most come first: few intervals are left for the others
    ranks = [-count * min(1.0, own * last) for (_, count), own in zip(pairs, spreads, strict=True)]
    order = [pairs[index] for index in np.argsort(ranks, kind="stable")]
    first = np.arange(total) * nodes
    kept, charged = np.zeros(0, dtype=np.int64), 0.0
    while True:
        alive, bound = _sift(order, first, power=power, eta=eta, nodes=nodes, spacing=spacing)
        gone = np.ones(len(first), dtype=bool)
        gone[alive] = False
        begin = (first[gone] - 1) * spacing
        charged += float((np.exp(bound[gone]) / begin**2).sum()) * (nodes + 1) * spacing
        if nodes == 1 or len(alive) * nodes < 1000:
            if len(alive) * nodes > _MOST_HEIGHTS:
                raise Unreachable(f"the transform is large at {len(alive) * nodes} heights")
            kept = np.sort((first[alive][:, None] + np.arange(nodes)).ravel())
            break
        parts = min(nodes, 4)  # what is left is looked at again, more closely
        cuts = [nodes * k // parts for k in range(parts + 1)]
        if len({cuts[k + 1] - cuts[k] for k in range(parts)}) > 1:
            parts, cuts = nodes, list(range(nodes + 1))
        if len(alive) * parts > _MOST_INTERVALS:
            raise Unreachable(f"{len(alive) * parts} intervals of heights would have to be looked at")
        first = (first[alive][:, None] + np.array(cuts[:-1])).ravel()
        nodes = cuts[1]
    beyond = math.exp(-_DEPTH) / (last - spacing)
    return spacing * kept, math.log((charged + beyond) / math.pi * (1 + 1e-9))


def _sift(
    pairs: Sequence[tuple[Pair, int]], first: NDArray[np.int64], *, power: float, eta: float, nodes: int, spacing: float
) -> tuple[NDArray[np.intp], Reals]:
    """Which intervals of nodes stay, and bounds of the transform on those that do not."""
    half = 0.5 * (nodes - 1) * spacing
    left = first * spacing
    bound = -0.5 * (eta * left) ** 2
    stays = first <= nodes  # around the real axis nothing is ever left out
    alive = np.flatnonzero(~stays)
    for pair, count in pairs:
        bound[alive] += count * pair.log_modulus(power, left[alive] + half, half)
        alive = alive[bound[alive] > -_DEPTH]
        if not len(alive):
            break
    return np.append(np.flatnonzero(stays), alive), bound
