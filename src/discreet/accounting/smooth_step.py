r"""One Poisson-sampled window as matrices between Chebyshev series, for the spline accountant.

The density of the loss, C (1 - (1-q) e^{-l})^{-3/2}, is cut into pieces of equal width and replaced on each by a
polynomial that is close to it *in proportion*, so that D changes by that proportion at most. As |1 - e^{-z}| >=
1 - e^{-Re z}, on a Bernstein ellipse the density is at most its value at the leftmost point. Its Chebyshev coefficients
are then at most 2 M rho^{-k} [Trefethen 2013, Thm 8.1], and interpolation in n points, where a coefficient k >= n is
taken for another, errs by at most 4 M rho^{1-n} / (rho - 1). Polynomials convolve to polynomials, so the matrices are
exact but for rounding, and what is cut off from them is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting import chebyshev
from discreet.accounting.pair import ROUNDING, Direction
from discreet.accounting.saddle import Unreachable
from discreet.divergence.legendre import long_gauss_legendre

if TYPE_CHECKING:
    from discreet.accounting.pair import Reals
    from discreet.accounting.window_step import WindowStep

__all__ = ["SmoothStep", "pieces_of", "smooth_step"]

_MOST_PIECES = 64
_LONG = float(np.finfo(np.longdouble).eps)
"""Matrices are computed in extended precision where there is one; the bounds ask the machine."""


@dataclass(frozen=True, eq=False)
class SmoothStep:
    """new[n] = sum_s matrices[s] @ old[n - s] for the density of one release; atoms are added elsewhere."""

    matrices: tuple[Reals, ...]
    errors: tuple[Reals, ...]
    """For each coefficient of old[n - s]: what is cut off or lost to rounding in new[n], per unit."""
    proportion: float
    """By which the density used may be off the true one."""
    heights: Reals
    """Upper bounds of the density on its pieces, from depth 0 on."""

    @property
    def degree(self) -> int:
        return int(self.matrices[0].shape[0])

    def apply(self, old: Reals) -> tuple[Reals, Reals]:
        """The density's share of the new series, and the error made."""
        new, error = np.zeros(old.shape), np.zeros(len(old))
        size = np.abs(old)
        for shift, (matrix, lost) in enumerate(zip(self.matrices, self.errors, strict=True)):
            kept = len(old) - shift
            if kept <= 0:
                break
            new[shift:] += old[:kept] @ matrix.T
            error[shift:] += size[:kept] @ lost
        return new, error * (1 + 1e-9)

    def log_moments(self, step: WindowStep, slopes: Reals) -> Reals:
        """Upper bounds of ln of the integral of e^{-slope y} over the whole symmetric law, atoms included."""
        width = step.drop / len(self.heights)
        starts = width * np.arange(len(self.heights))
        inside = np.exp(-np.outer(slopes, starts)) * (-np.expm1(-slopes * width) / slopes)[:, None]
        return np.asarray(np.log(step.near + step.far * np.exp(-slopes * step.drop) + inside @ self.heights))


def pieces_of(step: WindowStep, widest: float) -> int:
    """Into how many pieces the density is cut: not wider than the distance to its singularity."""
    count = math.ceil(max(step.drop / step.gap, step.drop / widest))
    if count > _MOST_PIECES:
        raise Unreachable(f"the density of the sampled loss would be cut into {count} pieces")
    return max(1, count)


@lru_cache(maxsize=64)
def smooth_step(step: WindowStep, count: int) -> SmoothStep:
    """The density of one sampled release, cut into `count` pieces."""
    order, proportion = _order(step, count)
    degree = max(20, order - 4)
    width = step.drop / count
    places = _long_points(order)
    ends = np.array([_density(step, np.array([k * width, (k + 1) * width])) for k in range(count)], dtype=float)
    heights = ends.max(axis=1) * (1 + 64 * ROUNDING)
    proportion += 2 * order * (order + 40) * _LONG * float((ends.max(axis=1) / ends.min(axis=1)).max())
    values = np.array([_density(step, width * (k + (places + 1) / 2)) for k in range(count)])
    series = values @ _long_matrix(order).T  # a row for each piece
    out = degree + order + 1
    theta = (_long_points(out) + 1) / 2
    nodes, weights = long_gauss_legendre((degree + order) // 2 + 1)
    u = (nodes + 1) / 2
    keep_at, lift_at = np.outer(theta, u), theta[:, None] + np.outer(1 - theta, u)
    keep_weight, lift_weight = np.outer(theta, weights / 2), np.outer(1 - theta, weights / 2)
    keep_basis = np.asarray(_basis(2 * (theta[:, None] - keep_at) - 1, degree), dtype=float)
    lift_basis = np.asarray(_basis(2 * (1 + theta[:, None] - lift_at) - 1, degree), dtype=float)
    found = np.zeros((count + 1, out, degree))
    sizes = np.zeros(count + 1)
    for later, at, weight, basis in ((0, keep_at, keep_weight, keep_basis), (1, lift_at, lift_weight, lift_basis)):
        curve = np.asarray(_basis(2 * at - 1, order), dtype=float)
        density = np.tensordot(series.astype(float), curve, axes=(1, 2)) * np.asarray(weight * width, dtype=float)
        found[later : count + later] += np.matmul(density[:, :, None, :], basis)[:, :, 0, :]
        sizes[later : count + later] += heights * width
    matrices = np.matmul(_long_matrix(out), found.astype(np.longdouble))
    # a value is a sum of len(u) products with the density, itself a sum of `order` terms; from the values, coefficients
    # are found in extended precision
    ratio = float((np.abs(series).sum(axis=1) / heights).max())
    rounded = ROUNDING * chebyshev.lebesgue(out) * (len(u) + 8 + (order + 8) * ratio)
    each = rounded + _LONG * (4 * out * (out + 8) + 200 * (np.arange(degree) + 1.0) ** 2)
    errors = [each * size * (1 + 1e-9) for size in sizes]
    kept = [np.asarray(matrix[:degree], dtype=float) for matrix in matrices]
    cut = [np.asarray(np.abs(matrix[degree:]).sum(axis=0), dtype=float) for matrix in matrices]
    rounding = ROUNDING * (degree + count + 16)
    total = tuple(
        error + lost * (1 + 1e-9) + rounding * np.abs(matrix).sum(axis=0)
        for error, lost, matrix in zip(errors, cut, kept, strict=True)
    )
    return SmoothStep(tuple(kept), total, proportion, heights)


def _density(step: WindowStep, depth: Reals) -> Reals:
    """The density at these depths, in extended precision."""
    y = np.asarray(depth, dtype=np.longdouble)
    above = y if step.direction is Direction.BACKWARD else np.longdouble(step.drop) - y
    return np.asarray(step.scale * (-np.expm1(-(np.longdouble(step.gap) + above))) ** np.longdouble(-1.5))


def _order(step: WindowStep, count: int) -> tuple[int, float]:
    """How many points hold the density to one rounding on each of the pieces, and its error in proportion."""
    half = step.drop / count / 2
    starts = step.gap + 2 * half * np.arange(count)  # from the singularity on, whatever the direction
    least = (-np.expm1(-(starts + 2 * half))) ** -1.5
    for order in range(8, 72, 4):
        best = np.full(count, np.inf)
        for share in (0.3, 0.5, 0.7, 0.85, 0.95):
            centre = 1 + share * starts / half
            rho = centre + np.sqrt(centre * centre - 1)
            most = (-np.expm1(-(1 - share) * starts)) ** -1.5
            best = np.minimum(best, 4 * most * rho ** (1.0 - order) / (rho - 1) / least)
        if float(best.max()) < ROUNDING / 4:
            return order, float(best.max()) * (1 + 1e-9)
    raise Unreachable("the density of the sampled loss is too steep for the spline")


def _long_points(count: int) -> Reals:
    angle = _long_pi() * (np.arange(count, dtype=np.longdouble) + np.longdouble(0.5)) / count
    return np.asarray(np.cos(angle))


@lru_cache(maxsize=64)
def _long_matrix(count: int) -> Reals:
    angle = _long_pi() * (np.arange(count, dtype=np.longdouble) + np.longdouble(0.5)) / count
    matrix = np.cos(np.outer(np.arange(count, dtype=np.longdouble), angle)) * (np.longdouble(2) / count)
    matrix[0] /= 2
    return np.asarray(matrix)


def _long_pi() -> Reals:
    return np.asarray(4 * np.arctan(np.ones(1, dtype=np.longdouble)))


def _basis(points: Reals, count: int) -> Reals:
    """T_0 .. T_{count-1} at the points, along a new last axis."""
    result = np.empty((*points.shape, count), dtype=np.longdouble)
    result[..., 0] = 1
    result[..., 1] = points
    for j in range(2, count):
        result[..., j] = 2 * points * result[..., j - 1] - result[..., j - 2]
    return result
