r"""The spline accountant: few releases with losses in windows (Laplace noise), exactly piece by piece.

For a loss L with law P write P(dl) = e^{l/2} g(dl). Then phi(x) = e^{-x/2} D(x), D(x) = E (1 - e^{x-L})_+, is

    phi(x) = int_x^inf 2 sinh((l - x)/2) g(dl),

one more release is a convolution of phi with its own g, and all terms are non-negative. For Laplace noise of scale 1/a,
g = (e^{-a/2}/2) (point masses at -a and a, density 1/2 between): from one release to the next phi is a polynomial on
each piece between the knots (sums of +-a_i), if it was one before, with a degree one higher. So nothing is approximated
but the start, 2 sinh(-x/2) for x < 0, and coefficients that are dropped because they are negligible are *seen*: the
error made in each step is counted piece by piece, and passed on by the inequality

    |error(x)| <= C e^{-sigma x} for all x  implies  |(error * g)(x)| <= C e^{-sigma x} int e^{sigma l} g(dl),

for a handful of tilts sigma of which the best is taken in the end. Releases with finitely many outcomes come last: D
is the mean over their total losses. Poisson-sampled windows have a smooth density instead of a constant one, see
`smooth_step`. Everything is laid out by depth, the distance below the largest possible loss, in whole multiples of a
quantum, so that knots add up without rounding. Proofs: docs/proofs/spline.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting import chebyshev
from discreet.accounting.exact import EnumeratedLoss, finite_sums, invert
from discreet.accounting.pair import ROUNDING, Direction, Pair, unit_interval
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.window import WindowPair
from discreet.accounting.saddle import Unreachable
from discreet.accounting.smooth_step import pieces_of, smooth_step
from discreet.accounting.window_step import WindowStep
from discreet.divergence.special import ive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from discreet.accounting.pair import Reals

    Depths = NDArray[np.int64]

__all__ = ["SplineLoss"]

_WIDEST = 2.0
"""Pieces are cut to this width, so that 20 coefficients hold them to the last digit."""
_MOST_PIECES = 16_000
_MOST_WORK = 300_000
_MOST_ATOMS = 20_000
_DEEPEST = 1_000.0
"""phi grows like e^{depth/2}: beyond this, floating point does not hold it."""


@dataclass(frozen=True)
class _Group:
    """A window step, how often it is applied, and its drop in quanta."""

    step: WindowStep
    times: int
    drop: int
    slip: float
    """By how much a loss of one release is moved: rounding of its ends and of the drop to whole quanta."""


class SplineLoss:
    """Reads D of a composition of windows and finite laws in one direction, like a `Line` of the contour accountant."""

    def __init__(self, pairs: Sequence[tuple[Pair, int]], direction: Direction) -> None:
        windows, finite = _sorted_out(pairs, direction)
        self._atoms, self._log_mass, self._atom_error = finite_sums(finite, direction)
        self.top = math.fsum(times * step.top for step, times in windows)
        reach = self.top + max(0.0, float(self._atoms.max()))
        self._lay_out(windows, reach)
        self._shift = math.fsum(group.times * group.slip for group in self._groups)
        self._shift += 8 * ROUNDING * (self.top + float(np.abs(self._atoms).max()))
        self._shift += math.fsum(times * pair.position_error * float(np.abs(pair.loss).max()) for pair, times in finite)
        self._relative = math.fsum(group.times * (group.slip + 64 * ROUNDING) for group in self._groups)
        if self._smooth is not None:
            self._relative += self._groups[0].times * self._smooth.proportion
        self._relative += math.fsum(times * pair.tail_error for pair, times in finite)
        self._found: tuple[tuple[float, float], tuple[float, float]] | None = None
        self._compose()

    # ------------------------------------------------------------------------------------------------- building

    def _lay_out(self, windows: Sequence[tuple[WindowStep, int]], reach: float) -> None:
        """Chooses the windows whose drop spaces the pieces (the others cut them further), quantum and tilts."""
        plans = []
        for place, (step, times) in enumerate(windows):
            rest = [*windows[:place], *windows[place + 1 :]]
            if not all(other.is_flat for other, _ in rest):
                continue
            share = max(1, math.ceil(step.drop / _WIDEST)) if step.is_flat else pieces_of(step, _WIDEST)
            count = math.ceil((reach / step.drop) * share) + 2
            pieces = count * math.prod(k + 1 for _, k in rest)
            work = times * count * (1.0 if step.is_flat else 0.7 * share)
            work += 0.5 * pieces * sum(k for _, k in rest)
            plans.append((work, pieces, place, share, count, rest))
        work, pieces, place, share, count, rest = min(plans)
        step, times = windows[place]
        deepest = step.drop / share * count
        if deepest > _DEEPEST:
            raise Unreachable(f"losses up to {deepest:.3g} are too large for the spline")
        if pieces > _MOST_PIECES or work > _MOST_WORK:
            raise Unreachable(f"{pieces:.3g} pieces are too many for the spline")
        self._quantum = 2.0 ** (math.ceil(math.log2(deepest)) - 50)
        width = round(step.drop / share / self._quantum)
        self._groups = [self._group(step, times, share * width)]
        self._groups += [self._group(other, k, round(other.drop / self._quantum)) for other, k in rest]
        self._share, self._limit = share, count * width
        self._smooth = None if step.is_flat else smooth_step(step, share)
        bare = sum(k for other, k in windows if not other.near)  # without atoms, degrees grow where phi is small
        self._degree = self._smooth.degree if self._smooth else 20 + min(20, bare)
        self._knots: Depths = width * np.arange(count + 1, dtype=np.int64)
        finest = min(step.drop for step, _ in windows)
        self._tilts = np.append(0.0, np.geomspace(0.25 / deepest, 40 / min(finest, width * self._quantum), 23))

    def _group(self, step: WindowStep, times: int, drop: int) -> _Group:
        return _Group(step, times, drop, step.slip + abs(drop * self._quantum - step.drop) + 4 * ROUNDING * step.drop)

    def _compose(self) -> None:
        width = float(self._knots[1]) * self._quantum
        self._series, residual = _start(width, len(self._knots) - 1, self._degree)
        self._log_error = np.full(len(self._tilts), -np.inf)
        self._note(residual)
        for index, group in enumerate(self._groups):
            log_moment = group.step.log_moments(self._tilts)
            if index == 0 and self._smooth is not None:
                log_moment = np.fmin(log_moment, self._smooth.log_moments(group.step, self._tilts + 0.5))
            log_moment = log_moment + (self._tilts + 1) * group.slip + 1e-12
            for _ in range(group.times):
                residual = self._along_lattice(group, width) if index == 0 else self._between_knots(group)
                self._log_error = self._log_error + log_moment
                self._note(residual)

    def _note(self, residual: Reals) -> None:
        """Adds an error made just now, given piece by piece, to the bounds C e^{sigma depth}."""
        above = self._knots[:-1] * self._quantum
        logs = np.log(residual * (1 + 1e-9)) - (self._tilts[:, None] + 0.5) * above
        self._log_error = np.logaddexp(self._log_error, logs.max(axis=1))

    def _along_lattice(self, group: _Group, width: float) -> Reals:
        """One release whose drop is a whole number of pieces: coefficients are added, none is computed anew."""
        step, old, half = group.step, self._series, width / 2
        if self._smooth is not None:
            within, error = self._smooth.apply(old)
            lower, size = _shifted(old, self._share), np.abs(old).sum(axis=1)
            self._series = step.near * old + step.far * lower + within
            outside = step.near * size + step.far * _shifted(size, self._share)
            return np.asarray(error + 16 * ROUNDING * (outside + np.abs(within).sum(axis=1)))
        density = step.scale * (step.drop / (group.drop * self._quantum)) * half
        lower = _shifted(old, self._share)
        size = np.abs(old).sum(axis=1)
        lower_size = _shifted(size, self._share)
        inner, whole = chebyshev.antiderivative(old), chebyshev.integral(old)
        inner = inner - _shifted(inner, self._share)
        total, roundings = chebyshev.running(whole)
        total = total[:-1]
        covered = total - _shifted(total, self._share)
        new = step.near * old + step.far * lower
        new += density * inner[:, :-1]
        new[:, 0] += density * covered
        self._series = new
        above, _ = chebyshev.running(2 * size)
        error = 16 * (step.near * size + step.far * lower_size)
        error += density * (3 * (self._degree + 16) * (size + lower_size))
        error += density * (2 * roundings + self._degree + 16) * above[:-1]
        return np.asarray(ROUNDING * error + density * np.abs(inner[:, -1]))

    def _between_knots(self, group: _Group) -> Reals:
        """One release of any drop: the new pieces lie within old ones, and are interpolated there."""
        step, knots, old = group.step, self._knots, self._series
        joined = np.union1d(knots, knots + group.drop)
        joined = joined[joined <= self._limit]
        left, right = joined[:-1], joined[1:]
        half = 0.5 * self._quantum * np.diff(knots)
        density = step.scale * (step.drop / (group.drop * self._quantum))
        inner, whole = chebyshev.antiderivative(old), chebyshev.integral(old) * half
        total, roundings = chebyshev.running(whole)
        size = np.abs(old).sum(axis=1)
        above, _ = chebyshev.running(2 * size * half)
        value_error = chebyshev.values_error(old)
        inner_error = chebyshev.values_error(inner) + 3 * (self._degree + 6) * ROUNDING * size
        count = self._degree + 1
        points, matrix = chebyshev.interpolation(count)
        found = np.zeros((len(left), count))
        error = np.zeros(len(left))
        for drop, mass, sign in ((0, step.near, 1.0), (group.drop, step.far, -1.0)):
            rows = np.flatnonzero(left >= drop)
            index = np.searchsorted(knots, left[rows] - drop, side="right") - 1
            span = (knots[index + 1] - knots[index]).astype(float)
            scale = (right[rows] - left[rows]) / span
            centre = ((left[rows] - drop - knots[index]) + (right[rows] - drop - knots[index + 1])) / span
            places = np.clip(centre[:, None] + scale[:, None] * points, -1.0, 1.0)
            inside = half[index, None] * chebyshev.values(inner[index], places)
            found[rows] += mass * chebyshev.values(old[index], places)
            found[rows] += (sign * density) * (total[index, None] + inside)
            error[rows] += mass * (value_error[index] + 8 * ROUNDING * size[index])
            error[rows] += density * half[index] * (inner_error[index] + 24 * ROUNDING * size[index])
            error[rows] += density * (roundings + self._degree + 16) * ROUNDING * above[index]
        new = found @ matrix.T
        self._series, self._knots = np.ascontiguousarray(new[:, :-1]), joined
        rounding = 2 * count * (count + 8) * ROUNDING * np.abs(found).max(axis=1)
        return np.asarray(chebyshev.lebesgue(count) * error + rounding + np.abs(new[:, -1]))

    # -------------------------------------------------------------------------------------------------- reading

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Certified lower and upper value of D(epsilon)."""
        shift = self._shift + 8 * ROUNDING * abs(epsilon)
        low, high = self._enclosure(epsilon + shift)[0], self._enclosure(epsilon - shift)[1]
        return unit_interval(low, high)

    def _enclosure(self, epsilon: float) -> tuple[float, float]:
        loss = self._atoms
        depth = self.top - (epsilon - loss)
        inside = depth > 0
        if not inside.any():
            return 0.0, 0.0
        depth, loss = depth[inside], loss[inside]
        quanta = depth / self._quantum
        index = np.clip(np.searchsorted(self._knots, quanta, side="right") - 1, 0, len(self._knots) - 2)
        left, right = self._knots[index], self._knots[index + 1]
        places = ((quanta - left) - (right - quanta)) / (right - left)
        series = self._series[index]
        weight = np.exp(self._log_mass[inside] + 0.5 * (epsilon - loss))
        value = weight * chebyshev.values(series, np.clip(places, -1.0, 1.0)[:, None])[:, 0]
        error = weight * chebyshev.values_error(series)
        passed = self._log_error[:, None] + (self._tilts[:, None] + 0.5) * depth
        error += weight * np.exp(np.minimum(passed.min(axis=0), 700.0)) * (1 + 1e-9)
        relative = self._atom_error[inside] + self._relative + ROUNDING * (64 + np.abs(epsilon - loss))
        relative += ROUNDING * (len(loss) + 16)
        low = float(((value - error) * np.exp(-relative)).sum())
        high = float(((value + error) * np.exp(relative)).sum())
        return (low, high) if math.isfinite(high) and math.isfinite(low) else (0.0, 1.0)

    def epsilon_bounds(self, low_delta: float, high_delta: float) -> tuple[float, float]:
        """(lower, upper) for the epsilon at which D passes between the two deltas."""
        if self._found is None or self._found[0] != (low_delta, high_delta):
            self._found = (low_delta, high_delta), invert(self.bounds, low_delta, high_delta)
        return self._found[1]

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return len(self._series)


def _sorted_out(
    pairs: Sequence[tuple[Pair, int]], direction: Direction
) -> tuple[list[tuple[WindowStep, int]], list[tuple[AtomsPair, int]]]:
    """Windows and finite laws."""
    windows = [(WindowStep.of(pair, direction), times) for pair, times in pairs if isinstance(pair, WindowPair)]
    finite = [(pair, times) for pair, times in pairs if isinstance(pair, AtomsPair)]
    if not windows or len(windows) + len(finite) < len(pairs):
        raise Unreachable("the spline needs losses in windows, and finite laws beside them")
    if sum(not step.is_flat for step, _ in windows) > 1:
        raise Unreachable("the spline takes sampled windows of one kind only")
    if EnumeratedLoss.size(finite) > _MOST_ATOMS:
        raise Unreachable("the finite laws have too many outcomes for the spline")
    return windows, finite


def _start(width: float, count: int, degree: int) -> tuple[Reals, Reals]:
    """2 sinh(y/2) on pieces of this width from depth 0 on, and its error.

    sinh((c + h t)/2) = sinh(c/2) cosh(ht/2) + cosh(c/2) sinh(ht/2), whose Chebyshev coefficients are
    2 I_j(h/2) (the first I_0), even ones with sinh(c/2) and odd ones with cosh(c/2): all of one sign.
    """
    centre = width * (np.arange(count) + 0.5)
    j = np.arange(degree + 1)
    z = width / 4
    size = 4.0 * ive(j, z) * math.exp(z)
    size[0] *= 0.5
    series = np.where(j % 2 == 0, np.sinh(centre / 2)[:, None], np.cosh(centre / 2)[:, None]) * size
    # later coefficients fall at least by z / (j + 1) <= 1/4 from each to the next
    rest = 2 * (size[-1] + size[-1] * z) * np.cosh(centre / 2)
    return series[:, :-1], rest + 256 * ROUNDING * (1 + centre / 16) * series[:, :-1].sum(axis=1)


def _shifted(rows: Reals, places: int) -> Reals:
    """Rows moved down by some places, zeros above."""
    result = np.zeros(rows.shape)
    result[places:] = rows[:-places]
    return result
