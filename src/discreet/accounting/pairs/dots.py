r"""A finite pair that dominates all pairs below a given privacy profile: its corners lie on the profile.

The hockey-stick divergence h(gamma) = E_gamma(P || Q) is convex in gamma. If u_i >= h(gamma_i) at some gamma_i, then h
stays below the largest convex function through those points, and that function is the divergence of a pair with one
outcome of loss ln gamma_i for each corner and Q-mass equal to the change of slope there [Doroshenko et al. 2022]. It
dominates at every gamma, so it may stand for the pair in every composition.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pairs.atoms import AtomsPair
from discreet.errors import CertificateError

if TYPE_CHECKING:
    from discreet.accounting.pair import Lattice, Reals

__all__ = ["table_through"]

_LARGEST = 600.0
_SLACK = 1e-11
"""Relative rounding of the masses, paid for by making all of them larger at the cost of loss 0."""


def table_through(
    epsilons: Reals, forward: Reals, backward: Reals | None = None, *, lattice: Lattice | None = None
) -> AtomsPair:
    """The pair with corners at `epsilons` (0 = first < second < ...), where the profiles are at most these deltas.

    `backward` is the profile of the reverse order, the same as `forward` if it is None. Beyond the last epsilon the
    profile stays at its last value: the probability of an infinite loss. `lattice` is that of the corners, if any.
    """
    forward = _cut(epsilons, forward)
    backward = None if backward is None else _cut(epsilons, backward)
    epsilons = np.minimum(_cut(epsilons, epsilons, last=_LARGEST), _LARGEST)
    same = backward is None
    sides = [np.minimum.accumulate(np.asarray(forward, dtype=float))]
    sides.append(sides[0] if backward is None else np.minimum.accumulate(np.asarray(backward, dtype=float)))
    kept = _apart(epsilons, min(float(sides[0][0]), float(sides[1][0])))
    epsilons, sides = epsilons[kept], [side[kept] for side in sides]
    start, slope = _start(epsilons, *sides)
    raised, grown = start * (1 + _SLACK), np.expm1(np.minimum(epsilons, 700.0))
    slope *= (1 - raised) / (1 - start) if start < 1 else 0.0
    masses = []
    for side, steepest in zip(sides, (slope, 1 - raised - slope), strict=True):
        # from a larger start the profile may not fall faster than before: mass near loss 0 is all there is to give
        values = np.minimum(np.maximum(side * (1 + _SLACK), raised - steepest * grown), raised)
        values[0] = raised
        masses.append(_masses(epsilons, values))
    (up, p_up, q_up, p_missing), (down, q_down, p_down, q_missing) = masses
    rest = 1.0 - math.fsum(np.concatenate([p_up, p_down])) - p_missing
    other = 1.0 - math.fsum(np.concatenate([q_up, q_down])) - q_missing
    short = -min(rest, other)
    if short > 0:
        # no mass is left at loss 0, up to rounding: every outcome gives up a share `part` of its mass, which takes at
        # most part * start from the profile; as much is made an infinite loss
        if short > 1e-9 or not start < 1:
            raise CertificateError(
                "a dominating table", limit="a profile that is not one", advice="Please report it: see SECURITY.md."
            )
        part = 2 * (short + 1e-15) / (1 - start)
        p_up, q_up, p_down, q_down = (side * (1 - part) for side in (p_up, q_up, p_down, q_down))
        p_missing, q_missing = (m * (1 - part) + part * start for m in (p_missing, q_missing))
        rest = 1.0 - math.fsum(np.concatenate([p_up, p_down])) - p_missing
    loss = np.concatenate([-down[::-1], [0.0], up])
    mass = np.concatenate([q_down[::-1], [max(rest, 1e-300)], q_up])
    keep = (mass > 0) & (mass * np.exp(np.minimum(loss, 700.0)) > 0)
    keep[len(down)] = True
    return AtomsPair(
        loss[keep],
        mass[keep],
        p_missing=p_missing,
        q_missing=q_missing,
        symmetric=same,
        lattice=lattice,
        position_error=0.0,
    )


def _cut(epsilons: Reals, values: Reals, last: float | None = None) -> Reals:
    """The values at corners up to the largest; losses beyond it count as infinite, from a last corner on."""
    inside = np.asarray(epsilons, dtype=float) < _LARGEST
    kept = np.asarray(values, dtype=float)[inside]
    return kept if inside.all() else np.append(kept, kept[-1] if last is None else last)


def _apart(epsilons: Reals, start: float) -> list[int]:
    """The first, the last, and of the others those far enough from their neighbours for a slope to mean anything.

    To leave a corner out is always on the safe side.
    """
    least, first = 1e-6 * start, 1e-3 * start  # what is left for loss 0 is a difference of the first slopes
    kept = [len(epsilons) - 1]
    for index in range(len(epsilons) - 2, 0, -1):
        if epsilons[kept[-1]] - epsilons[index] >= least and epsilons[index] >= first:
            kept.append(index)
    return [0, *reversed(kept)]


def _start(epsilons: Reals, forward: Reals, backward: Reals) -> tuple[float, float]:
    r"""An upper bound of the total variation h(1): the smaller value given, and no more than convexity allows.

    With h(e^-eps) = 1 - e^-eps (1 - backward(eps)), h(1) lies below the chord from e^-eps to e^eps':

        h(1) <= ((e^eps' - 1) h(e^-eps) + (1 - e^-eps) h(e^eps')) / (e^eps' - e^-eps).

    Also returned: a slope between that of all chords to the right of 1 and that of all to its left, -s. In the reverse
    order it is -(1 - h(1) - s).
    """
    start = min(float(forward[0]), float(backward[0]))
    x, left = np.expm1(np.minimum(epsilons[1:], 700.0)), -np.expm1(-epsilons[1:])
    below = left + np.exp(-epsilons[1:]) * backward[1:]
    chords = (x * below + left * forward[1:]) / (x + left)
    start = min(start, float(chords.min()))
    right_slope = left_slope = 0.0
    for _ in range(50):  # the steepest corners of the two sides may differ
        i = int(np.argmax((start - forward[1:]) / x))
        j = int(np.argmin((below - start) / left))
        right_slope, left_slope = float((start - forward[1 + i]) / x[i]), float((below[j] - start) / left[j])
        if right_slope <= left_slope * (1 + 1e-12):
            break
        start = min(start, float((x[i] * below[j] + left[j] * forward[1 + i]) / (x[i] + left[j])))
    return start, 0.5 * (right_slope + left_slope)


def _masses(epsilons: Reals, values: Reals) -> tuple[Reals, Reals, Reals, float]:
    """Losses > 0, their masses under the first and the second distribution, and the first's mass of infinite loss."""
    x = np.expm1(np.minimum(epsilons, 700.0))
    corner = _hull(x, values)
    x, values, losses = x[corner], values[corner], epsilons[corner]
    fall = -np.diff(values) / np.diff(x)
    change = np.append(fall[:-1] - fall[1:], fall[-1:])
    change = np.maximum(change, 0.0)
    return losses[1:], change * np.exp(losses[1:]), change, float(values[-1])


def _hull(x: Reals, values: Reals) -> list[int]:
    """Indices of the corners of the largest convex function through the points."""
    corners: list[int] = []
    slopes: list[float] = []
    for index in range(len(x)):
        while corners:
            slope = (values[index] - values[corners[-1]]) / (x[index] - x[corners[-1]])
            if slopes and slope <= slopes[-1]:
                corners.pop()
                slopes.pop()
                continue
            slopes.append(slope)
            break
        corners.append(index)
    return corners
