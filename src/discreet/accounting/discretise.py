"""One step of loss on a lattice, twice: once so that privacy can only look worse, once only better.

For a cell of losses (a, b] that holds P-mass p and Q-mass q:

- *upper*: split it onto the two end points so that both masses are kept, x = (p - q e^a) / (1 - e^{a-b}) at b and p - x
  at a. The result dominates the cell [Doroshenko et al. 2022].
- *lower*: merge the cell into the single loss ln(p/q): a post-processing. The cell edges are bent by
  -(h^2/12) d/dl ln(p(l) e^{-l/2}), so that ln(p/q) meets the lattice up to O(h^4), and what is left is paid for by
  evaluating at a slightly larger epsilon.

Both are wrong by O(h^2) in opposite directions. What lies above the window becomes an infinite loss (upper) or is
pulled down to its end (lower); what lies below is pulled up (upper) or dropped (lower).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.pair import ROUNDING, Direction, Pair

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals

__all__ = ["LatticeLaw", "discretise", "loss_span", "tails_of"]

_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class LatticeLaw:
    """Masses at origin + step * j, mass moved to +inf, and a bound of how much each loss may be off."""

    origin: float
    mass: Reals
    infinite: float
    shift: float


def discretise(
    pair: Pair, direction: Direction, step: float, window: tuple[float, float], t: float
) -> tuple[LatticeLaw, LatticeLaw]:
    """(lower, upper) discretisation of one step."""
    origin = window[0]
    if pair.is_finite:
        return _listed(*_outcomes(pair, direction), step, window)
    slack = 1e-9 if len(pair.atoms()[0]) else 0.0  # an atom at the end is met up to rounding, see `_snapped`
    count = max(1, math.ceil((window[1] - origin) / step - slack))
    if not slack and origin + step * count < window[1]:
        count += 1  # rounding must not leave the end of the window outside
    edges = origin + step * np.arange(count + 1)
    positions, _ = pair.atoms()
    if len(positions):
        edges = _snapped(edges, positions if direction is Direction.FORWARD else -positions[::-1], step)
    upper, log_density = _upper(pair, direction, edges, step)
    if len(positions):  # edges were moved by this much at most to meet an atom
        upper = replace(upper, shift=upper.shift + 1e-9 * step)
    interior = len(positions) > 2
    lower = _lower(pair, direction, edges, step=step, log_density=None if interior else log_density, t=t)
    if len(positions):
        lower = replace(lower, shift=lower.shift + 1e-9 * step)
    return lower, upper


def _outcomes(pair: Pair, direction: Direction) -> tuple[Reals, Reals, Reals]:
    """Losses of this direction, increasing, and their masses under the first and the second distribution."""
    loss, q = pair.atoms()
    p = q * np.exp(loss)
    return (loss, p, q) if direction is Direction.FORWARD else (-loss[::-1], q[::-1], p[::-1])


def _listed(loss: Reals, p: Reals, q: Reals, step: float, window: tuple[float, float]) -> tuple[LatticeLaw, LatticeLaw]:
    """(lower, upper) from the outcomes themselves: no mass is a difference of tails, so none is in doubt.

    Upper: the share (1 - e^{a-l}) / (1 - e^{a-b}) of an outcome goes to the right end of its cell [a, b]. Lower:
    outcomes nearest to the same point are merged, and their loss moves down to a point.
    """
    anchor = float(loss[np.abs(loss - window[0]).argmin()])  # an outcome that the lattice meets
    origin = anchor - step * round((anchor - window[0]) / step)
    count = max(1, math.ceil((window[1] - origin) / step - 1e-9))
    place = (loss - origin) / step
    # positions are rounded, in units of the lattice by this much
    doubt = 16 * ROUNDING * (abs(origin) + float(np.abs(loss).max()))
    inside = np.clip(place, 0.0, count)
    left = np.minimum(np.floor(inside + 1e-9), count - 1).astype(int)
    share = np.clip(-np.expm1(-step * (inside - left)) / -math.expm1(-step), 0.0, 1.0)
    kept = place <= count + 1e-9
    mass = np.zeros(count + 1)
    for place_in, part in ((left, p * (1 - share)), (left + 1, p * share)):
        mass += np.bincount(place_in[kept], weights=part[kept], minlength=count + 1)
    upper = LatticeLaw(origin, mass, float(p[~kept].sum()), doubt + 1e-9 * step)
    near = np.rint(inside).astype(int)
    p_cell, q_cell = (np.bincount(near, weights=side, minlength=count + 1) for side in (p, q))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (np.log(p_cell) - np.log(q_cell) - origin) / step
    index = np.floor(centre + 1e-9)
    good = np.isfinite(centre) & (index >= 0)
    index = np.minimum(index[good], count).astype(int)  # what lies above the window is pulled down to its end
    lower = LatticeLaw(
        origin,
        np.asarray(np.bincount(index, weights=p_cell[good], minlength=count + 1), dtype=float),
        0.0,
        doubt + len(loss) * ROUNDING + 1e-9 * step,
    )
    return lower, upper


def _snapped(edges: Reals, positions: Reals, step: float) -> Reals:
    """Edges that meet an atom up to rounding are set to the atom itself, so that it is counted on one side only."""
    index = np.clip(np.rint((positions - edges[0]) / step).astype(int), 0, len(edges) - 1)
    close = np.abs(edges[index] - positions) < 1e-9 * step
    edges = edges.copy()
    edges[index[close]] = positions[close]
    return edges


def _cells(above: Reals, below: Reals) -> tuple[Reals, Reals]:
    """Masses of the cells between consecutive edges, and the tail each was subtracted from."""
    use_above = above[:-1] < below[1:]
    mass = np.where(use_above, above[:-1] - above[1:], below[1:] - below[:-1])
    tail = np.where(use_above, above[:-1], below[1:])
    # a tail e^-k is good to a few k roundings
    return np.maximum(mass, 0.0), tail * (1 + np.minimum(np.abs(np.log(np.maximum(tail, 1e-320))), 745.0) / 8)


@dataclass(frozen=True, eq=False)
class _Masses:
    """P- and Q-mass of every cell, the tail each was subtracted from, and P's tails beyond the outermost edges."""

    p: Reals
    p_tail: Reals
    q: Reals
    q_tail: Reals
    p_first: float
    p_last: float


def _masses(pair: Pair, direction: Direction, edges: Reals) -> _Masses:
    """The cells between the edges, a block of them at a time: memory stays small."""
    p, p_tail, q, q_tail = (np.empty(len(edges) - 1) for _ in range(4))
    p_first = p_last = 0.0
    for start in range(0, len(edges) - 1, _BLOCK):
        cells = slice(start, start + _BLOCK)
        p_above, p_below, q_above, q_below = tails_of(pair, direction, edges[start : start + _BLOCK + 1])
        p[cells], p_tail[cells] = _cells(p_above, p_below)
        q[cells], q_tail[cells] = _cells(q_above, q_below)
        p_first, p_last = (float(p_below[0]) if start == 0 else p_first), float(p_above[-1])
    return _Masses(p, p_tail, q, q_tail, p_first, p_last)


def _upper(pair: Pair, direction: Direction, edges: Reals, step: float) -> tuple[LatticeLaw, Reals]:
    cells = _masses(pair, direction, edges)
    p = cells.p
    left = np.exp(np.minimum(edges[:-1], 700.0))  # beyond, q is 0 in floating point and all of p moves up
    move = (p - cells.q * left + 16 * ROUNDING * (cells.p_tail + cells.q_tail * left)) / -math.expm1(-step)
    del left
    move = np.clip(move, 0.0, p)
    mass = np.zeros(len(edges))
    mass[1:] += move
    mass[:-1] += p - move
    mass[0] += cells.p_first
    law = LatticeLaw(float(edges[0]), mass, cells.p_last, _tail_shift(p, cells.p_tail, step))
    with np.errstate(divide="ignore"):
        return law, np.log(p) - 0.5 * (edges[:-1] + 0.5 * step)


def _tail_shift(p: Reals, tail: Reals, step: float) -> float:
    """A relative error of 16 ROUNDING in a tail moves the loss by 16 ROUNDING tail / density; the worst of all cells
    that hold a share of the mass worth counting."""
    heavy = p > max(1e-30 * float(p.max()), 0.0)
    if not heavy.any():
        return 0.0
    return float((32 * ROUNDING * tail[heavy] * step / p[heavy]).max())


def _lower(
    pair: Pair, direction: Direction, edges: Reals, *, step: float, log_density: Reals | None, t: float
) -> LatticeLaw:
    places = edges
    if log_density is not None:
        # where most of the mass sits in the first cell, its own centre is a better lattice point than its end
        above, below, q_above, q_below = tails_of(pair, direction, np.array([edges[0] - step, edges[0] + 0.5 * step]))
        (first,), (p_tail,) = _cells(above, below)
        (other,), (q_tail,) = _cells(q_above, q_below)
        if first > 0.1 and other > 0:
            centre = math.log(first / other) - 16 * ROUNDING * (p_tail / first + q_tail / other)
            edges = edges + min(max(centre - float(edges[0]), 0.0), 0.5 * step)
    borders = 0.5 * (edges[:-1] + edges[1:])
    if log_density is not None and len(edges) > 3:
        with np.errstate(invalid="ignore"):
            slope = np.diff(log_density) / step
        slope = np.clip(np.where(np.isfinite(slope), slope, 0.0), -4.0 / step, 4.0 / step)
        at_borders = np.interp(borders, places[1:-1], slope)
        borders = borders - step * step / 12 * at_borders
        del slope, at_borders
    cells = _masses(pair, direction, np.concatenate([[edges[0] - step], borders, [edges[-1] + step]]))
    p, p_tail, q = cells.p, cells.p_tail, cells.q
    # whatever lies beyond the last border keeps its mass at the last edge
    beyond = tails_of(pair, direction, borders[-1:])
    p[-1], q[-1] = beyond[0][0], beyond[2][0]
    del borders
    with np.errstate(divide="ignore", invalid="ignore"):
        doubt = p_tail / p
        doubt += cells.q_tail / q
        doubt *= 16 * ROUNDING
        centre = np.log(p)
        centre -= np.log(q)
        centre -= doubt
    del cells, q, doubt
    gap = np.where(p > 0, edges - centre, np.inf)
    if log_density is None:
        index = np.floor((centre - edges[0]) / step + 1e-9)
        good = np.isfinite(centre) & (index >= 0)
        counted = np.bincount(index[good].astype(int), weights=p[good], minlength=len(edges))
        return LatticeLaw(float(edges[0]), np.asarray(counted, dtype=float), 0.0, 1e-9 * step)
    del centre
    tilted = np.where(p > 0, np.log(np.maximum(p, 1e-320)) + t * edges, -np.inf)
    share = np.exp(tilted - tilted.max())
    share /= share.sum()
    del tilted
    # a cell whose centre misses its lattice point by too much moves down by one point (or is dropped) instead
    order = np.argsort(gap)
    rest = np.append(np.cumsum(share[order][::-1])[::-1][1:], 0.0)
    price = np.maximum(gap[order], 0.0) + step * rest
    shift = float(max(0.0, gap[order][int(np.argmin(price))]))
    stay, down = gap <= shift, (gap > shift) & (gap <= step)
    mass = np.where(stay, p, 0.0)
    mass[:-1] += np.where(down, p, 0.0)[1:]
    return LatticeLaw(float(edges[0]), mass, 0.0, shift + _tail_shift(p, p_tail, step))


def tails_of(pair: Pair, direction: Direction, x: Reals) -> tuple[Reals, Reals, Reals, Reals]:
    """P(L > x), P(L <= x) and the same under the other distribution, for the loss of this direction."""
    if direction is Direction.FORWARD:
        tails = pair.tails(x)
        return tails.p_above, tails.p_below, tails.q_above, tails.q_below
    tails = pair.tails(-x)
    q, p = np.zeros(len(x)), np.zeros(len(x))
    positions, masses = pair.atoms()
    if len(positions):
        index = np.minimum(np.searchsorted(positions, -x), len(positions) - 1)
        hit = positions[index] == -x
        q = np.where(hit, masses[index], 0.0)
        p = q * np.exp(np.where(hit, positions[index], 0.0))
    below_q, below_p = np.maximum(tails.q_below - q, 0.0), np.maximum(tails.p_below - p, 0.0)
    return below_q, tails.q_above + q, below_p, tails.p_above + p


def loss_span(pair: Pair, direction: Direction) -> tuple[float, float]:
    """Smallest and largest finite loss of this direction."""
    low, high = pair.span
    return (low, high) if direction is Direction.FORWARD else (-high, -low)
