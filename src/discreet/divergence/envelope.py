r"""Certified lower curves: a trade-off curve from below, out of finitely many guarantees or points.

Which side a piecewise-linear curve errs on decides whether it is a guarantee. The polygon through points *of* a convex
curve lies above it and understates what an attacker can do; it is never built here. The maximum of supporting lines
lies below: every guarantee (epsilon, delta) is one, so finitely many of them give a certified lower curve.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.divergence.polyline import Polyline
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.divergence.logspace import Reals

__all__ = ["default_epsilons", "from_guarantees", "from_points"]

_LARGEST_EPSILON = 690.0  # e^epsilon stays finite; leaving out larger ones is on the safe side


class _Line(NamedTuple):
    """The supporting line missed >= 1 - delta - e^epsilon alpha."""

    epsilon: float
    delta: float

    def crossing(self, steeper: _Line) -> float:
        """The alpha at which the steeper line takes over (to the left)."""
        return (self.delta - steeper.delta) / (math.exp(self.epsilon) * math.expm1(steeper.epsilon - self.epsilon))


def default_epsilons(*profiles: Callable[[Reals], Reals], nodes: int = 512) -> Reals:
    """Where to read profiles: a geometric grid, refined over the range in which they fall.

    Any grid gives a certified curve; a good one gives a tight curve. Up to the epsilon from which on no delta falls by
    more than 1e-12 the grid is uniform, beyond it geometric.
    """
    coarse = np.concatenate([[0.0], np.geomspace(1e-6, _LARGEST_EPSILON, 96)])
    ends = []
    for profile in profiles:
        deltas = np.broadcast_to(np.asarray(profile(coarse), dtype=np.float64), coarse.shape)
        falling = np.nonzero(deltas > deltas[-1] + 1e-12)[0]
        ends.append(coarse[min(falling[-1] + 1, coarse.size - 1)] if falling.size else 0.0)
    return np.unique(np.concatenate([coarse, np.linspace(0.0, max(ends), nodes)]))


def from_guarantees(epsilons: Reals, deltas: Reals, reverse: Reals) -> Polyline:
    r"""The largest curve that guarantees (epsilon_i, delta_i) in one order and (epsilon_i, reverse_i) in the other.

        f(alpha) = max over i of 0, 1 - delta_i - e^{epsilon_i} alpha, e^{-epsilon_i} (1 - reverse_i - alpha)

    If the deltas are upper bounds of a true profile this is a lower bound of its trade-off curve, whatever the grid.
    [Wasserman and Zhou 2010; Dong et al. 2022, Prop. 2.12]
    """
    if epsilons.ndim != 1 or epsilons.size == 0 or not (epsilons >= 0).all():
        raise InvalidArgument("epsilons", epsilons, "pass a non-empty list of numbers >= 0")
    for name, values in (("delta", deltas), ("reverse", reverse)):
        if values.shape != epsilons.shape:
            raise InvalidArgument(name, values, "return one delta per epsilon")
        if not ((values >= 0) & (values <= 1)).all():
            raise InvalidArgument(name, values, "return deltas between 0 and 1")
    ours, theirs = _chain(epsilons, deltas), _chain(epsilons, reverse)
    alpha, beta = _junction(ours, theirs)
    left, right = _cells(ours, alpha, 1.0 - beta), _cells(theirs, beta, 1.0 - alpha)
    p = np.concatenate([left[0], right[1]])
    q = np.concatenate([left[1], right[0]])
    return Polyline(p, q, slack=(epsilons.size + 8) * 2.0**-50)


def _chain(epsilons: Reals, deltas: Reals) -> list[_Line]:
    """The lines that are active somewhere on alpha > 0, from shallow to steep: the lower hull of (e^epsilon, delta)."""
    chain: list[_Line] = []
    for index in np.argsort(epsilons, kind="stable"):
        line = _Line(float(epsilons[index]), float(deltas[index]))
        if line.epsilon > _LARGEST_EPSILON or line.delta >= 1.0:
            continue
        if chain and line.epsilon == chain[-1].epsilon:
            if line.delta >= chain[-1].delta:
                continue
            chain.pop()
        if chain and line.delta >= chain[-1].delta:  # steeper and no better at 0: never active
            continue
        while len(chain) > 1 and chain[-2].crossing(chain[-1]) <= chain[-1].crossing(line):
            chain.pop()
        chain.append(line)
    return chain


def _junction(ours: list[_Line], theirs: list[_Line]) -> tuple[float, float]:
    """Where the lines of the two orders meet; removes the ones that are active nowhere."""
    while ours and theirs:
        left, right = ours[0], theirs[0]
        if left.epsilon == right.epsilon == 0.0:  # one and the same slope: keep the better of the two
            worse = ours if left.delta >= right.delta else theirs
            worse.pop(0)
            continue
        alpha, beta = _crossing(left, right), _crossing(right, left)
        if left.epsilon + right.epsilon < 1.0:  # nearly parallel: stay on the lines even if the crossing is ill-placed
            if alpha <= beta:
                beta = (1.0 - left.delta) - math.exp(left.epsilon) * alpha
            else:
                alpha = (1.0 - right.delta) - math.exp(right.epsilon) * beta
        if alpha <= (left.crossing(ours[1]) if len(ours) > 1 else 0.0):
            ours.pop(0)
        elif beta <= (right.crossing(theirs[1]) if len(theirs) > 1 else 0.0):
            theirs.pop(0)
        else:
            return alpha, beta
    return (_reach(ours), 0.0) if ours else (0.0, _reach(theirs))


def _reach(chain: list[_Line]) -> float:
    """Where a chain that meets no other comes down to zero; removes the lines that are active nowhere before."""
    while chain:
        end = (1.0 - chain[0].delta) * math.exp(-chain[0].epsilon)
        if len(chain) == 1 or end > chain[0].crossing(chain[1]):
            return end
        chain.pop(0)
    return 0.0


def _crossing(left: _Line, right: _Line) -> float:
    """The alpha at which missed = 1 - delta - e^l alpha meets alpha = 1 - delta' - e^r missed; l + r > 0."""
    if left.epsilon + right.epsilon < 1.0:
        rise = math.expm1(right.epsilon) - math.exp(right.epsilon) * left.delta + right.delta
        return rise / math.expm1(left.epsilon + right.epsilon)
    flat = math.exp(-right.epsilon)
    return ((1.0 - left.delta) - flat * (1.0 - right.delta)) / (math.exp(left.epsilon) - flat)


def _cells(chain: list[_Line], end: float, total: float) -> tuple[Reals, Reals]:
    """Segments (p, q) of the chain from alpha = 0 to `end`, where 1 - missed has reached `total`."""
    if not chain:
        return np.array([total]), np.array([end])
    cuts = [0.0, *(shallow.crossing(steep) for shallow, steep in reversed(list(itertools.pairwise(chain)))), end]
    q = np.maximum(np.diff(np.array(cuts)), 0.0)
    slopes = np.exp([line.epsilon for line in reversed(chain)])
    return np.concatenate([[chain[-1].delta], slopes * q]), np.concatenate([[0.0], q])


def _checked_slopes(alphas: Reals, betas: Reals) -> Reals:
    """Slopes of the chords; refuses values that no trade-off function has, naming the worst place."""
    noise = 1e-12
    outside = np.maximum(betas - (1.0 - alphas), -betas)
    worst = int(np.argmax(outside))
    if not outside[worst] <= noise or (betas < 0).any():
        raise _not_a_tradeoff(alphas[worst], betas[worst], "it lies between 0 and 1 - alpha")
    rises = np.diff(betas)
    worst = int(np.argmax(rises))
    if rises[worst] > noise:
        raise _not_a_tradeoff(
            alphas[worst + 1], betas[worst + 1], f"it never rises, and is less at {alphas[worst]:.6g}"
        )
    slopes = rises / np.diff(alphas)
    # rounding of f alone moves a chord's slope by 2^-52 / width
    bends = np.diff(slopes) + 2.0**-50 / np.minimum(np.diff(alphas)[1:], np.diff(alphas)[:-1])
    worst = int(np.argmin(bends))
    if bends[worst] < -noise:
        raise _not_a_tradeoff(alphas[worst + 1], betas[worst + 1], "it is convex, and here it is not")
    return slopes


def _not_a_tradeoff(alpha: float, beta: float, rule: str) -> InvalidArgument:
    return InvalidArgument(
        f"f({alpha:.6g})",
        float(beta),
        f"f gives the least missed-detection rate at each false-alarm rate alpha: {rule}. Pass for example "
        "lambda alpha: (1 - alpha)**2",
    )


def from_points(alphas: Reals, betas: Reals) -> Polyline:
    r"""A curve below every convex trade-off curve that passes through the given points.

    Outside its own interval a chord of a convex function lies below it. Between two neighbouring points the curve is
    therefore above the extensions of the chords on either side; their crossings are the vertices of the result, whose
    convex hull is returned. It gives up O(h^2) against the true curve for points at distance h.
    """
    if alphas.ndim != 1 or alphas.size < 4 or alphas.shape != betas.shape:
        raise InvalidArgument("alphas", alphas, "pass at least four false alarms, and one missed detection for each")
    if alphas[0] != 0.0 or alphas[-1] != 1.0 or not (np.diff(alphas) > 0).all():
        raise InvalidArgument("alphas", alphas, "pass increasing false alarms from 0 to 1")
    slopes = _checked_slopes(alphas, betas)
    vertices: list[tuple[float, float]] = []
    for i in range(alphas.size - 1):
        a, b = float(alphas[i]), float(alphas[i + 1])
        bounds = []
        if i > 0:
            bounds.append((float(slopes[i - 1]), float(betas[i])))
        if i < slopes.size - 1:
            bounds.append((float(slopes[i + 1]), float(betas[i + 1] - slopes[i + 1] * (b - a))))
        else:
            bounds.append((0.0, 0.0))
        if len(bounds) == 1:
            vertices.append((a, bounds[0][1]))
            continue
        (s, c), (t, d) = bounds
        x = (c - d) / (t - s) if t > s else 0.0
        x = min(max(x, 0.0), b - a)
        vertices.append((a + x, max(0.0, min(c + s * x, d + t * x))))
    vertices.append((1.0, 0.0))
    hull: list[tuple[float, float]] = []
    for point in vertices:
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (point[0] - hull[-1][0]) >= (point[1] - hull[-1][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append(point)
    x, y = np.array(hull).T
    y = np.minimum.accumulate(np.clip(y, 0.0, 1.0 - x))
    p = np.concatenate([[1.0 - y[0]], -np.diff(y)])
    q = np.concatenate([[0.0], np.diff(x)])
    return Polyline(p, q, slack=1e-12)
