r"""`Curve`: how many units are larger than what, from a sketch; also beyond the sizes that the sketch shows.

A bound is best where one or two units of a hundred thousand exceed it. To count so few takes a large part of epsilon.
What the sizes of thousands are like is seen at a small part of it, and sizes of people go on where they are large as
they do where they are a little smaller. So a smooth curve is put through the upper part of a noisy sketch and
continued. It is post-processing: whatever is done here costs nothing.

With N units of which N(x) are larger than x, let

    g(log x) = the normal score of N(x) / N,     N(x) = N P(Z > g).

For lognormal sizes g is a straight line. It bends upwards for lighter tails (exponential, Poisson, normal sizes),
downwards for power laws, and slowly for all of these. Two curves are fitted, a line and a parabola whose bend c is
taken to be normal with a standard deviation of a tenth of the square of the slope. The likelihood is that of counts y_j
in buckets which are normal with mean and variance N_j and N_j + 2/e^2: units are drawn from the law, and noise is
added. The two are weighed by their evidence (a Gaussian integral at each maximum), three times as much for the line,
and log x at a given N(x) is the weighted mean. A curve that was fitted to the upper half of a table is worth less where
it matters than one that was fitted to its upper fifth; of a small table more is needed to see anything.

There is no curve where the units are too few for the noise, where neither fits, and where the sketch shows many units
beyond what was fitted. But there may be an `End`: many units in the last bucket in which some are seen, as where
everybody has one row, or twelve, or at most a hundred.

`sizing` counts those above a bound that was read off a sketch, besides: sizes need not go on as they do. How well
this does on many kinds of tables is in docs/benchmarks.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.divergence.normal import scores, tails
from discreet.query.choices import CANDIDATES, STEPS, bound_of
from discreet.query.losses import added, few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from discreet.query.sketch import Sketch

    Reals = NDArray[np.float64]

__all__ = ["Curve", "End", "shape_of"]

_ENOUGH, _LEAST_SEEN, _TO_BEND = 250.0, 2, 4
"""Units times epsilon that a curve needs, buckets in which some are seen, and as many as a parabola needs of these."""

_UPPER, _MOST_UPPER, _LEAST_UPPER = 0.2, 0.5, 300.0
"""The part of the units to which a curve is fitted: the upper fifth, or up to half, where there are fewer than 300 / e
in a fifth."""

_ABOVE = 2 * STEPS
"""Buckets above the last that is seen to have units, to which a curve is fitted."""

_BEND = 0.1
_FOR_LINE = 0.3
"""The standard deviation of the bend, in squares of the slope; and the odds of a parabola before anything is seen."""

_FITS, _BEYOND = 2.5, 4.0
"""The largest mean square of the deviations, in their variances; and of what is beyond, in standard deviations."""

_LEAST_SLOPE = 0.25
"""Beyond what is seen, the slope stays above this part of the slope there."""

_LEAST_RISE = 0.05
"""The least slope of a curve at the last bucket that is seen: tails that are heavier are not sized."""

_NEWTON, _HALVED, _CLOSE, _FAR = 40, 12, 1e-3, 0.7
"""Steps of the fit, times that a step is halved, the gain after which it ends, and the longest step in g."""

_MANY = 2.0
"""How many times as many units as can be seen are in the last bucket before an end."""

_LEAST_ABOVE, _NEAR = 1e-4, 0.1
"""A curve is written down to where so many units are above; and its slope is taken so far on both sides, in log x."""

_TRIED = np.linspace(-1.5, 2.5, 17)
"""Powers of 2 by which the number of units above a bound is tried to be larger than usual."""

_MEDIAN, _OFF = 0.6745, 0.3
"""The median of |X|, for X normal; and by which part a curve is off about what a bound cuts off, or more."""

_STEP, _REACH = 0.01, 5.0
"""The curve is written down in steps of log x, up to so far beyond the last bucket that is seen."""


@dataclass(frozen=True)
class Curve:
    """log x and log N(x), for sizes x that grow: `units` is N.

    Sizes are whole numbers: N(k + 1/2) units have more than k, and so they are where a bound is at least k and below
    k + 1.
    """

    units: float
    log_sizes: Reals
    log_above: Reals

    @property
    def most(self) -> float:
        """No point of the curve is exceeded by more units."""
        return math.exp(float(self.log_above[0]))

    def exceeded_by(self, above: float) -> float:
        """The x with N(x) = above, or the end of the curve that is nearest."""
        return float(math.exp(np.interp(-math.log(above), -self.log_above, self.log_sizes)))

    def bound(self, above: float) -> float:
        """The least whole number that about so many units exceed, or fewer."""
        return float(max(1, math.ceil(self.exceeded_by(above) - 0.5)))

    def above(self, bound: float) -> float:
        """How many units exceed a bound."""
        return math.exp(float(np.interp(math.log(math.floor(bound) + 0.5), self.log_sizes, self.log_above)))

    def steepness(self, bound: float) -> float:
        """With which power of the size the number of units above falls at a bound."""
        logs = np.interp(math.log(bound) + np.array([-_NEAR, _NEAR]), self.log_sizes, self.log_above)
        return max(float(logs[0] - logs[1]) / (2 * _NEAR), 1e-3)

    def lost(self, bound: float) -> tuple[float, float]:
        """What a bound is expected to cut off of all units together, and the variance of that: units are drawn.

        The integrals of N(x) and of 2 (x - bound) N(x) over x > bound.
        """
        at = math.log(bound)
        beyond = self.log_sizes > at
        sizes = np.exp(np.concatenate([[at], self.log_sizes[beyond]])) - bound
        above = np.exp(np.concatenate([[np.interp(at, self.log_sizes, self.log_above)], self.log_above[beyond]]))
        width, middle = np.diff(sizes), (sizes[1:] + sizes[:-1]) / 2
        number = (above[1:] + above[:-1]) / 2
        return float(np.sum(number * width)), float(np.sum(2 * middle * number * width))

    def best(self, usual: float, *, groups: float, noise: float, blur: float) -> float:
        """The bound C of least error in each of so many groups, near to the one that `usual` units exceed.

        An error is noise, usually `noise` times C, and what is lost in a group: by chance, which has the variance v /
        groups, by the part r of its mean m / groups that is not added to the sum (see `losses.added`), and because the
        curve is off, by a part d of the mean that grows with `blur`, and is larger where few units decide. The median
        of |X| for X normal is 0.6745 standard deviations, and so C is where

            (noise C)^2 + 0.6745^2 (v / groups + (r^2 + d^2) (m / groups)^2)

        is least. It is fewer units that exceed it where tails are heavy, and up to three times more where they are not.
        """
        tried = np.clip(usual * 2.0**_TRIED, _LEAST_ABOVE, self.most)

        def error(bound: float) -> float:
            mean, variance = (part / groups for part in self.lost(bound))
            above = self.above(bound)
            left, off = 1 - added(above, groups=groups, blur=blur), blur * (_OFF + few(above) / 2)
            return (noise * bound) ** 2 + _MEDIAN**2 * (variance + (left**2 + off**2) * mean**2)

        return min(sorted({self.bound(above) for above in tried.tolist()}), key=error)


@dataclass(frozen=True)
class End:
    """The upper end of the last bucket, if there are many units in it and, it seems, none beyond."""

    size: float

    def bound(self, above: float) -> float:  # noqa: ARG002 - however many may be
        """The largest whole number up to it."""
        return float(max(1, math.floor(self.size * (1 + 1e-9))))


def shape_of(sketch: Sketch) -> Curve | End | None:
    """The curve through a sketch, or the end of sizes; None where neither is to be seen."""
    curve, seen = _curve(sketch), sketch.seen
    if curve is not None or not seen.size:
        return curve
    last = int(seen[-1])
    return End(bound_of(CANDIDATES[last])) if sketch.counts[last] > _MANY * sketch.least_seen else None


def _curve(sketch: Sketch) -> Curve | None:
    counts, epsilon = np.array(sketch.counts[1:], dtype=np.float64), sketch.epsilon  # without units of size 0
    seen = sketch.seen - 1
    if seen.size < _LEAST_SEEN:
        return None
    first, top = max(int(seen[0]) - STEPS, 0), int(seen[-1])
    units = float(counts[first : top + STEPS + 1].sum())
    if units * epsilon < _ENOUGH:
        return None
    wanted = min(_MOST_UPPER * units, max(_UPPER * units, _LEAST_UPPER / epsilon))
    from_above = np.cumsum(counts[first : top + STEPS + 1][::-1])[::-1]
    start = min(first + int(np.flatnonzero(from_above >= wanted)[-1]), top)
    last = min(counts.size - 1, top + _ABOVE)
    beyond = counts[last + 1 :]
    if beyond.size and beyond.sum() > _BEYOND * math.sqrt(2 * beyond.size) / epsilon:
        return None
    ends, edges = _edges(max(start - 1, 0), last)
    within = np.cumsum(counts)[ends]
    rows = np.concatenate([[float(counts[first : ends[0] + 1].sum())], np.diff(within)])
    buckets = np.concatenate([[max(ends[0] + 1 - first, 1)], np.diff(ends)])
    at_top = math.log(_edge(top))
    fit = _Fit(units, np.log(edges) - at_top, rows, 2 / epsilon**2 * buckets)
    line = fit.fitted(fit.start(6 / epsilon), bends=False)
    bent = fit.fitted(np.array([*line.found, 0.0]), bends=True)
    if not (math.isfinite(line.evidence) and math.isfinite(bent.evidence)):
        return None
    odds = 0.0 if seen.size < _TO_BEND else _FOR_LINE * math.exp(min(50.0, bent.evidence - line.evidence))
    weight = odds / (1 + odds)
    if (bent if weight > 0.5 else line).misfit > _FITS:
        return None
    above = np.linspace(math.log(_LEAST_ABOVE), math.log(0.3 * units), 200)
    sizes = (1 - weight) * fit.sizes(line.found, above) + weight * fit.sizes(bent.found, above)
    return Curve(units, at_top + sizes[::-1], above[::-1])


def _edge(place: int) -> float:
    """The upper end of a bucket, in the middle between two whole numbers."""
    return math.floor(bound_of(CANDIDATES[0] + 1 + place) * (1 + 1e-9)) + 0.5


def _edges(first: int, last: int) -> tuple[NDArray[np.int64], Reals]:
    """The places of buckets whose upper ends differ: sizes are whole numbers, and not every bucket has one."""
    listed = {_edge(place): place for place in range(last, first - 1, -1)}  # of equal ends the first bucket stays
    edges = sorted(listed)
    return np.array([listed[edge] for edge in edges]), np.array(edges)


@dataclass(frozen=True)
class _Fitted:
    """Where a fit has ended: a and b of a + b t, or also c of c t^2; its evidence, and how far rows are from it."""

    found: Reals
    evidence: float
    misfit: float


@dataclass(frozen=True)
class _Fit:
    """Counts between edges at t = log x, with the variances of their noise; of all units before the first edge."""

    units: float
    places: Reals
    rows: Reals
    noise: Reals

    def start(self, surely: float) -> Reals:
        """A line through the scores at edges that surely so many units exceed."""
        above = self.units - np.cumsum(self.rows)
        g = scores(np.log(np.clip(above / self.units, 1e-9, 1 - 1e-9)))
        sure = above > surely
        if sure.sum() < 2:
            return np.array([g[0] - 4 * self.places[0], 4.0])
        t, g = self.places[sure], g[sure]
        middle, away = float(t.mean()), t - t.mean()
        slope = max(float(away @ g) / float(away @ away), 0.3)
        return np.array([float(g.mean()) - slope * middle, slope])

    def fitted(self, found: Reals, *, bends: bool) -> _Fitted:
        """The most likely line or parabola, by Gauss and Newton's method from here."""
        basis = self.places[:, None] ** np.arange(3 if bends else 2)
        g, expected, variance, likely = self._likelihood(basis, found)
        curvature = np.eye(found.size)
        for _ in range(_NEWTON):
            slopes = basis * (self.units * np.exp(-g * g / 2) / math.sqrt(2 * math.pi))[:, None]
            slopes[1:] -= slopes[:-1].copy()
            curvature = slopes.T @ (slopes / variance[:, None]) + 1e-9 * np.eye(found.size)
            towards = slopes.T @ ((self.rows - expected) / variance)
            if bends:
                curvature[2, 2] += _stiffness(found)
                towards[2] -= _stiffness(found) * found[2]
            try:
                step: Reals = np.linalg.solve(curvature, towards).astype(np.float64)
            except np.linalg.LinAlgError:
                break
            step *= min(1.0, _FAR / max(float(np.max(np.abs(basis @ step))), 1e-300))
            better = next(self._better(basis, found, step, likely), None)
            if better is None:
                break
            found, (g, expected, variance, now) = better
            gained, likely = now - likely, now
            if gained < _CLOSE:
                break
        evidence = likely - 0.5 * float(np.linalg.slogdet(curvature)[1])
        evidence += 0.5 * math.log(_stiffness(found)) if bends else 0.0
        misfit = float(np.sum((self.rows - expected) ** 2 / variance)) / max(self.rows.size - found.size, 1)
        return _Fitted(found, evidence, misfit)

    def sizes(self, found: Reals, log_above: Reals) -> Reals:
        """log x at which so many units are larger, with a slope that stays positive beyond what is seen."""
        t = np.arange(self.places[0], _REACH, _STEP)
        a, b, c = (*found, 0.0)[:3]
        g = a + b * t + c * t * t
        beyond = t > 0
        slope = np.maximum(b + 2 * c * t[beyond], _LEAST_SLOPE * b)
        g[beyond] = (g[~beyond][-1] if (~beyond).any() else a) + np.cumsum(slope) * _STEP
        g = np.maximum.accumulate(g)
        above = math.log(self.units) + np.log(np.maximum(_above(g), 1e-300))
        return np.interp(-log_above, -above, t)

    def _likelihood(self, basis: Reals, found: Reals) -> tuple[Reals, Reals, Reals, float]:
        g = basis @ found
        above = _above(g)
        expected = self.units * np.concatenate([[1 - above[0]], above[:-1] - above[1:]])
        variance = np.maximum(expected, 0.0) + self.noise
        likely = -0.5 * float(np.sum((self.rows - expected) ** 2 / variance + np.log(variance)))
        if found.size > 2:
            likely -= 0.5 * _stiffness(found) * found[2] ** 2
        return g, expected, variance, likely

    def _better(
        self, basis: Reals, found: Reals, step: Reals, likely: float
    ) -> Iterator[tuple[Reals, tuple[Reals, Reals, Reals, float]]]:
        """Along a step, halved again and again: what is no less likely, and grows."""
        for halved in range(_HALVED):
            tried = found + step / 2**halved
            if tried[1] > _LEAST_RISE:
                now = self._likelihood(basis, tried)
                if now[3] >= likely - 1e-9:
                    yield tried, now


def _stiffness(found: Reals) -> float:
    """1 / variance of the bend of a parabola with this slope."""
    return float(_BEND * found[1] ** 2) ** -2


def _above(g: Reals) -> Reals:
    """P(Z > g)."""
    tail = tails(np.abs(g))
    return np.where(g < 0, 1 - tail, tail)
