r"""The computed part of the proof in docs/proofs/objective.md: how fast a set can grow under a field that falls slowly.

For a field f that never rises, with f <= 1 and |f'| <= steepness, and a set U of Gaussian measure Phi(-x), x >= 0,

    flux(U) = integral over U of (u f + |f'|) phi <= level Phi(-x) + K(level),
    K(level) = sup over f of the integral of (u f + |f'| - level)_+ phi           for every level >= 0.

`one_sided` proves flux(U) <= (1 + excess) phi(x) for fields in [0, 1], `two_sided` for fields in [-1, 1] and for the
same field with the other sign. Every step errs upwards: these are proofs, whatever the number of cells.
"""

import math

import numpy as np
from scipy.special import ndtr, ndtri

ROOT = math.sqrt(2 * math.pi)
UP = 1 + 1e-9
"""More than all rounding."""


def density(x):
    return np.exp(-np.square(x) / 2) / ROOT


def tail(x):
    return ndtr(-x)


def grown(levels, steepness, cells):
    """K at each level, by a dynamic programme over cells of u and values of f that are multiples of one cell's fall.

    The best value still to come is convex in f, so in a cell a fall by a part of the most that is possible is no better
    than the mean of no fall and the full one. Without a fall a cell is worth the integral of (u f - level)_+ phi with f
    at its left end; a full fall adds at most (cell's width) min(steepness, (u f + steepness - level)_+) phi, all at
    their largest. Left of 0 u f counts as 0.
    """
    level = np.asarray(levels, dtype=float)[:, None]
    start = np.where(level >= steepness, level - steepness, -4.0)  # before it nothing is gained
    top = np.where(level >= steepness, level + np.minimum(6.0, 14 / np.maximum(level, 1e-9)), 6.0)
    width = (top - start) / cells
    field = 1 - np.arange(cells + 1)[None, :] * steepness * width
    positive = np.maximum(field, 0.0)
    threshold = level / np.maximum(field, 1e-300)
    best = positive * density(top) + steepness * tail(top)
    for i in range(cells - 1, -1, -1):
        left, right = start + i * width, start + (i + 1) * width
        near, far = np.maximum(left, 0.0), np.maximum(right, 0.0)
        low = np.clip(threshold, near, far)
        kept = np.maximum(positive * (density(low) - density(far)) - level * (tail(low) - tail(far)), 0.0)
        gain = np.minimum(steepness, np.maximum(far * positive + steepness - level, 0.0))
        peak = np.where(left >= 0, density(left), np.where(right <= 0, density(right), 1 / ROOT))
        fallen = np.concatenate([best[:, 1:], best[:, -1:]], axis=1)
        best = kept + np.maximum(best, width * gain * peak + fallen)
    return (best[:, 0] + np.maximum(steepness - level[:, 0], 0.0) * tail(-start[:, 0])) * UP


def worst(low, high, level, value):
    """sup over low <= x <= high of (value + level tail(x)) / density(x), which is convex in x: at one of the ends."""
    return np.maximum((value + level * tail(low)) / density(low), (value + level * tail(high)) / density(high))


def cells_of_x(most, width):
    """Cells from 0 to `most`, of a third of this width up to 1."""
    fine = np.linspace(0.0, 1.0, math.ceil(3 / width) + 1)
    edges = np.concatenate([fine[:-1], np.linspace(1.0, most, math.ceil((most - 1) / width) + 1)])
    return edges[:-1], edges[1:]


def forward(steepness, excess, *, cells, one_sign):
    """For every cell of x a bound of flux / density - 1, up to where that is steepness / x <= excess."""
    low, high = cells_of_x(steepness / excess, 0.3 * steepness)
    bound = 1 + steepness * tail(low) / density(low)
    for factor, here in ((1 + 0.12 * steepness**2, low >= 0), (1.4, high <= 1)):
        level = (low + high)[here] / 2 * factor
        value = np.concatenate([grown(part, steepness, cells) for part in np.array_split(level, len(level) // 64 + 1)])
        bound[here] = np.minimum(bound[here], worst(low[here], high[here], level, value))
    if one_sign:  # by the complement flux(U) is at most the integral of u_- phi
        near = high < 1
        bound[near] = np.minimum(bound[near], np.exp(high[near] ** 2 / 2))
    return bound * UP - 1


def one_sided(steepness, excess, *, cells=600):
    """Whether flux <= (1 + excess) density is proved for fields in [0, 1] and all x."""
    return bool((forward(steepness, excess, cells=cells, one_sign=True) <= excess).all())


def polynomial(low, high, first, second, level):
    """The integral of (first u + second u^2 - level) phi from low to high."""
    mass = tail(low) - tail(high)
    squares = low * density(low) - high * density(high) + mass
    return first * (density(low) - density(high)) + second * squares - level * mass


def half(at_zero, steepness, level):
    """The integral over u > 0 of (u min(1, at_zero + steepness u) - level)_+ phi."""
    full = (1 - at_zero) / steepness
    root = np.sqrt(at_zero**2 + 4 * steepness * level)
    begin = np.where(at_zero > 0, 2 * level / np.maximum(at_zero + root, 1e-300), (root - at_zero) / (2 * steepness))
    begin, straight = np.minimum(begin, full), np.maximum(full, level)
    rising = np.maximum(polynomial(begin, full, at_zero, steepness, level), 0.0)
    return rising + density(straight) - level * tail(straight)


def backward(steepness, *, parts=200):
    """The same for the field -f, f in [-1, 1]: at most 2 I(tail / 2) / I(tail) anyway, I the isoperimetric profile.

    That falls as x grows. The field at 0 is anything from 0 to 1, or else mirrored, and rises by `steepness` at most.
    """
    low, high = cells_of_x(4 + 2 / steepness, 0.1 * steepness)
    at_zero = np.linspace(0.0, 1.0, parts + 1)[:, None]
    bound = 2 * density(ndtri(tail(low) / 2)) / density(low)
    for factor in (1.0, 1 + 0.3 * steepness**2, 1 + 0.6 * steepness**2):
        level = (low + high) / 2 * factor
        value = (half(at_zero[1:], steepness, level) + half(-at_zero[:-1], steepness, level)).max(axis=0)
        bound = np.minimum(bound, worst(low, high, level, value * UP))
    return np.append(bound, 2 * density(ndtri(tail(high[-1]) / 2)) / density(high[-1])) * UP - 1


def two_sided(steepness, excess, *, cells=600):
    """Whether flux <= (1 + excess) density is proved for fields in [-1, 1] of either sign and all x."""
    there, back = forward(steepness, excess, cells=cells, one_sign=False), backward(steepness)
    return bool((there <= excess).all() and (back <= excess).all())
