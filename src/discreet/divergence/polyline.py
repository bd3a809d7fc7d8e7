r"""Piecewise-linear trade-off curves, stored as the finite pair of distributions behind them.

A convex, non-increasing, piecewise-linear curve on [0, 1] with f(1) = 0 is the trade-off curve of the finite pair whose
cells are its segments: a segment that spans q in false alarm and falls by p in missed detection is an outcome of
probability p under P and q under Q. Storing (p, q) by falling ratio p/q rather than vertices keeps both ends of the
curve exact: 1 - f near 0 and f near 1 are sums of small positive numbers, never differences from one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.divergence.finite import log_ratio
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.divergence.logspace import Reals

__all__ = ["Polyline"]

_MERGE = 2.0**-46  # outcomes whose log ratios differ by less are one outcome up to the rounding of products
_LARGEST_TABLE = 20_000_000


@dataclass(frozen=True, eq=False)
class Polyline:
    r"""The curve of the finite pair (p, q): it starts at 1 - p(q = 0) and falls with slopes -p_i/q_i.

    `slack` is a bound on the relative rounding error of the construction. Where it is positive the curve is meant as a
    certified lower bound: values are rounded down and profiles up by it.
    """

    p: Reals
    q: Reals
    slack: float = 0.0

    def __post_init__(self) -> None:
        p, q = np.asarray(self.p, dtype=np.float64), np.asarray(self.q, dtype=np.float64)
        kept = (p > 0) | (q > 0)
        p, q = p[kept], q[kept]
        loss = log_ratio(p, q)
        order = np.argsort(-loss, kind="stable")
        p, q, loss = p[order], q[order], loss[order]
        with np.errstate(invalid="ignore"):
            step = loss[:-1] - loss[1:]
            new = np.isinf(step) | (step > _MERGE * (1.0 + np.abs(loss[1:])))
        starts = np.concatenate([[0], 1 + np.nonzero(new)[0]])
        p, q = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
        p.flags.writeable = q.flags.writeable = False
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "q", q)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Polyline):
            return NotImplemented
        return self.slack == other.slack and np.array_equal(self.p, other.p) and np.array_equal(self.q, other.q)

    def __hash__(self) -> int:
        return hash((self.p.tobytes(), self.q.tobytes(), self.slack))

    def __reduce__(self) -> tuple[type[Polyline], tuple[Reals, Reals, float]]:
        return type(self), (self.p.copy(), self.q.copy(), self.slack)

    def __repr__(self) -> str:
        return f"Polyline({self.p.size} segments)"

    @cached_property
    def loss(self) -> Reals:
        """ln(p/q) of each segment, falling."""
        return log_ratio(self.p, self.q)

    @cached_property
    def _left(self) -> tuple[Reals, Reals]:
        """Sums of p and q from the left, starting with 0."""
        return _running(self.p), _running(self.q)

    @cached_property
    def _right(self) -> tuple[Reals, Reals]:
        """Sums of p and q still to come, ending with 0."""
        return _running(self.p[::-1])[::-1], _running(self.q[::-1])[::-1]

    @cached_property
    def breaks(self) -> Reals:
        """False alarms at the vertices, from 0 to 1."""
        left, right = self._left[1], self._right[1]
        return np.maximum.accumulate(np.where(left <= 0.5, left, 1.0 - right))

    def vertices(self) -> tuple[Reals, Reals]:
        """False alarms and missed detections at the vertices; the first may repeat alpha = 0 where the curve jumps."""
        left, right = self._left[0], self._right[0]
        return self.breaks, np.where(right <= 0.5, right, 1.0 - left)

    def _segment(self, alpha: Reals) -> tuple[NDArray[np.intp], Reals]:
        index = np.clip(np.searchsorted(self.breaks, alpha, side="right") - 1, 0, self.p.size - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            passed = (alpha - self.breaks[index]) / self.q[index]
        return index, np.clip(np.where(self.q[index] > 0, passed, 1.0), 0.0, 1.0)

    def value(self, alpha: Reals) -> Reals:
        """Missed detection at false alarm alpha."""
        shifted = np.minimum(alpha * (1.0 + self.slack), 1.0)
        index, passed = self._segment(shifted)
        missed = self._right[0][index + 1] + self.p[index] * (1.0 - passed)
        return np.where(shifted >= 1.0, 0.0, np.minimum(missed, 1.0) * (1.0 - self.slack))

    def power(self, alpha: Reals) -> Reals:
        """1 - value(alpha), accurate also where it is tiny."""
        shifted = np.minimum(alpha * (1.0 + self.slack), 1.0)
        index, passed = self._segment(shifted)
        taken = self._left[0][index] + self.p[index] * passed
        return np.where(taken < 0.5, taken * (1.0 + self.slack), 1.0 - self.value(alpha))

    def delta(self, epsilon: Reals) -> Reals:
        """Hockey-stick divergence of (p, q): the sum of max(0, p - e^epsilon q)."""
        levels = epsilon - self.slack * (1.0 + np.minimum(np.abs(epsilon), 1e6))
        counts = np.searchsorted(-self.loss, -levels, side="right")
        result = np.empty(levels.shape)
        for index in np.ndindex(levels.shape):
            k = int(counts[index])
            half = np.exp(0.5 * min(float(levels[index]), 1400.0))  # e^epsilon may overflow where e^epsilon q does not
            result[index] = np.maximum(self.p[:k] - self.q[:k] * half * half, 0.0).sum()
        return np.minimum(result * (1.0 + self.slack), 1.0)

    def inverse(self) -> Polyline:
        """The curve of the pair in the other order."""
        return Polyline(self.q, self.p, self.slack)

    def composed(self, other: object) -> Polyline | None:
        """The curve of both pairs observed together: the product table, outcomes of equal ratio merged."""
        if not isinstance(other, Polyline):
            return None
        if self.p.size * other.p.size > _LARGEST_TABLE:
            raise InvalidArgument(
                "other", other, f"the product would have {self.p.size * other.p.size} segments; compose coarser curves"
            )
        return Polyline(
            np.multiply.outer(self.p, other.p).ravel(),
            np.multiply.outer(self.q, other.q).ravel(),
            self.slack + other.slack,
        )

    @property
    def is_identity(self) -> bool:
        """Whether the pair is one and the same distribution: f(alpha) = 1 - alpha."""
        return self.p.size == 1 and self.p[0] == self.q[0] == 1.0

    def grouped(self, k: int) -> Polyline:
        """The k-fold concatenation f o (1 - f) o ... o (1 - f)."""
        result, power = Polyline(np.ones(1), np.ones(1)), self
        while k:
            if k & 1:
                result = _concatenated(power, result)
            power, k = (_concatenated(power, power), k >> 1) if k > 1 else (power, 0)
        return result

    def symmetrised(self) -> Polyline:
        """The largest convex curve below both this one and its inverse."""
        columns = [
            np.concatenate([ours, theirs])
            for ours, theirs in zip(self._left + self._right, self.inverse()._left + self.inverse()._right, strict=True)
        ]
        points = [_Vertex(*map(float, row)) for row in zip(*columns, strict=True)]
        points.sort(key=lambda v: (0, v.q, v.p) if v.q <= 0.5 else (1, -v.q_left, -v.p_left))
        hull: list[_Vertex] = []
        for point in points:
            while len(hull) > 1 and hull[-1].is_hidden(hull[-2], point):
                hull.pop()
            hull.append(point)
        steps = np.array([b.since(a) for a, b in itertools.pairwise(hull)])
        return Polyline(steps[:, 0], steps[:, 1], self.slack)


class _Vertex(NamedTuple):
    """A vertex by what lies before it and what is left after it, so that differences near both ends are exact."""

    p: float
    q: float
    p_left: float
    q_left: float

    def since(self, start: _Vertex) -> tuple[float, float]:
        """p and q between two vertices."""
        dp = self.p - start.p if self.p <= 0.5 else start.p_left - self.p_left
        dq = self.q - start.q if self.q <= 0.5 else start.q_left - self.q_left
        return max(dp, 0.0), max(dq, 0.0)

    def is_hidden(self, before: _Vertex, after: _Vertex) -> bool:
        """Whether this vertex lies above the chord of its neighbours (in missed detection)."""
        dp, dq = self.since(before)
        next_dp, next_dq = after.since(self)
        return dp * next_dq <= next_dp * dq


def _running(masses: Reals) -> Reals:
    return np.concatenate([[0.0], np.cumsum(masses)])


def _concatenated(outer: Polyline, inner: Polyline) -> Polyline:
    """The curve whose power is the outer power applied to the inner one, on a common refinement of the axis between.

    A piece of length m of that axis, inside segment i of the inner and j of the outer curve, becomes a segment with
    q = m q_i/p_i and p = m p_j/q_j. Lengths are measured from the nearer end of the axis.
    """
    rising, sinking = inner.p > 0, outer.q > 0
    first, second = inner.p[rising], outer.q[sinking]
    ends = [_running(first), _running(second)]
    tails = [_running(first[::-1]), _running(second[::-1])]
    left = np.unique(np.concatenate([e[e <= 0.5] for e in ends]))
    right = np.unique(np.concatenate([e[e < 0.5] for e in tails]))
    lengths = [np.diff(left), np.diff(right), np.array([max(0.0, 1.0 - left[-1] - right[-1])])]
    centres = [0.5 * (left[1:] + left[:-1]), 0.5 * (right[1:] + right[:-1]), 0.5 * (left[-1:] + 1.0 - right[-1:])]
    where = []
    for end, tail in zip(ends, tails, strict=True):
        last = end.size - 2
        before = np.searchsorted(end, centres[0], side="right") - 1
        after = last - (np.searchsorted(tail, centres[1], side="right") - 1)
        middle = np.searchsorted(end, centres[2], side="right") - 1
        where.append(np.clip(np.concatenate([before, after, middle]), 0, last))
    length = np.concatenate(lengths)
    i, j = where
    q = length * (inner.q[rising][i] / first[i])
    p = length * (outer.p[sinking][j] / second[j])
    return Polyline(
        np.concatenate([outer.p[~sinking], p, np.zeros(int((~rising).sum()))]),
        np.concatenate([np.zeros(int((~sinking).sum())), q, inner.q[~rising]]),
        outer.slack + inner.slack,
    )
