r"""The minimiser of a sum of losses with a ridge penalty, found to a stated accuracy that is proved and not hoped for.

    F(w) = sum_i l(x_i . w, y_i) + (ridge / 2) ||w||^2 + <b, w>

is ridge-strongly convex, so that ||grad F(w)|| <= gamma puts w within gamma / ridge of the minimiser. Any method may
look for such a w; here it is L-BFGS in coordinates in which the curvature is at most 1. What counts is the check:
`Objective.gradient_bound` is never below the norm of the gradient in real arithmetic. It adds the rows times the slopes
exactly, in whole numbers (slopes in 2^-48 parts), and adds to the norm what rounding may have hidden:

    a margin    2 u ||x|| ||w|| and what is cut off below: weights are two whole numbers each, whose products with rows
                are exact in any order of summation (as in `rows.py`), and their sum is rounded once; u = 2^-53,
    a slope     smoothness times that and a few more roundings, and (16 + 2 outputs) u lipschitz: more than exp, log and
                the normal distribution function are off in the libraries in use,
    a sum       n R times the error of a slope, and n R lipschitz sqrt(outputs) 2^-48 for cutting slopes to parts,
    the rest    8 u (ridge ||w|| + ||b|| + n R lipschitz).

Up to 2^26 rows all of this stays below 2^-20 R lipschitz for weights of reasonable size, which is therefore a fair
gamma that need not depend on the data.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from discreet.errors import FitFailed, InvalidArgument
from discreet.learning.rows import PARTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.problem import Facts, Problem

    Reals = NDArray[np.float64]

__all__ = ["MOST_ROWS", "Objective", "fair_gamma", "minimised"]

MOST_ROWS = 1 << 26
"""Beyond this many rows the error of a sum is no longer below every gamma that is planned for."""
_U = 2.0**-53
_LEVELS = 3
_BLOCK = 1 << 16
_MEMORY = 10
_MOST_STEPS, _MOST_TRIES = 20_000, 30
_MOST_WHITENED = 3000


def fair_gamma(facts: Facts) -> float:
    """2^-20 times the largest gradient of one record: a gradient this small can be reached and proved."""
    return math.ldexp(facts.lipschitz, -20)


@dataclass(frozen=True, eq=False)
class Objective:
    """F of a problem, for a ridge and a linear term b of the shape of the weights. Not private."""

    problem: Problem
    ridge: float
    linear: Reals

    def __post_init__(self) -> None:
        if len(self.problem) > MOST_ROWS:
            raise InvalidArgument(
                "rows", "more than 2^26", "sums over so many are not exact enough; use another solver"
            )

    def gradient(self, weights: Reals) -> Reals:
        """The gradient, to the precision of floats."""
        rows, loss = self.problem.rows, self.problem.facts.loss
        slopes = loss.slopes(rows.steps @ (weights * rows.lattice.step), self.problem.targets)
        return np.asarray((rows.steps.T @ slopes) * rows.lattice.step + self.ridge * weights + self.linear)

    def gradient_bound(self, weights: Reals) -> float:
        """At least the norm of the gradient in real arithmetic."""
        facts, rows = self.problem.facts, self.problem.rows
        loss, n = facts.loss, len(self.problem)
        margins, missing = self._exact_margins(weights)
        exact = self._exact_sum(np.clip(loss.slopes(margins, self.problem.targets) / loss.lipschitz, -1.0, 1.0))
        size, radius = float(np.linalg.norm(weights)), facts.row_norm
        total = exact * (rows.lattice.step * loss.lipschitz) + self.ridge * weights + self.linear
        margin = 2 * _U * radius * size + radius * missing
        slope = 2 * loss.smoothness * (margin + 4 * _U * (math.sqrt(loss.outputs) + radius * size))
        slope += loss.lipschitz * ((16 + 2 * loss.outputs) * _U + 2.0**-48 * math.sqrt(loss.outputs))
        rest = 8 * _U * (self.ridge * size + float(np.linalg.norm(self.linear)) + n * facts.lipschitz)
        bound = float(np.linalg.norm(total)) * (1 + 1e-9) + (n * radius * slope + rest) * (1 + 1e-9)
        return bound if math.isfinite(bound) else math.inf

    def _exact_margins(self, weights: Reals) -> tuple[Reals, float]:
        """x . w of every row, rounded once, for weights that are off by at most the second number in l2."""
        rows = self.problem.rows
        size = float(np.abs(weights).max(initial=0.0)) * math.sqrt(weights.size)  # squares could underflow
        if not 0 < size < math.inf:
            return rows.steps @ weights, 0.0  # zeros, or nothing that a bound could be computed from
        exponent = math.frexp(size)[1] - 31  # ||high|| <= 2^31, and ||low|| <= 2^31: products with rows up to 2^51
        fine = 31 - (weights.size.bit_length() + 1) // 2
        scaled = np.ldexp(weights, -exponent)
        high = np.trunc(scaled)
        low = np.trunc(np.ldexp(scaled - high, fine))
        exponent += rows.lattice.exponent
        margins = np.ldexp(rows.steps @ high, exponent) + np.ldexp(rows.steps @ low, exponent - fine)
        return margins, math.sqrt(weights.size) * math.ldexp(1.0, exponent - rows.lattice.exponent - fine)

    def _exact_sum(self, shares: Reals) -> Reals:
        """sum of share_i x_i in steps, for shares in [-1, 1] cut to 2^-48 parts: one rounding for each level."""
        steps, total = self.problem.rows.steps, np.zeros_like(self.linear)
        left, worth = shares, 1.0
        for _ in range(_LEVELS):
            left, worth = left * PARTS, worth / PARTS
            parts = np.trunc(left)
            left = left - parts
            level = np.zeros(total.shape, dtype=np.int64)
            for start in range(0, len(steps), _BLOCK):  # 2^20 2^16 2^16: whole numbers up to 2^52, exact in any order
                block = slice(start, start + _BLOCK)
                level += (steps[block].T @ parts[block]).astype(np.int64)
            total += level * worth
        return total


@dataclass(frozen=True, eq=False)
class _Whitened:
    """Coordinates z = C^T w with C C^T = smoothness sum x x^T + ridge: there the curvature is at most 1."""

    objective: Objective

    @cached_property
    def factor(self) -> Reals | float:
        """C, or the root of a number that bounds all of it where there are very many features."""
        rows, facts = self.objective.problem.rows, self.objective.problem.facts
        smooth, ridge = facts.loss.smoothness, self.objective.ridge
        if rows.features > _MOST_WHITENED:
            return self._whole
        matrix = (rows.steps.T @ rows.steps) * (smooth * rows.lattice.step**2)
        matrix[np.diag_indices_from(matrix)] += ridge * (1 + 1e-9)
        try:
            return np.asarray(cholesky(matrix, lower=True))
        except LinAlgError:  # a ridge that rounding swallows: no data must make a fit fail
            return self._whole

    @property
    def _whole(self) -> float:
        """The root of a number that bounds all of the curvature."""
        rows, facts = self.objective.problem.rows, self.objective.problem.facts
        squares = rows.lattice.step**2 * float(np.sum(np.square(rows.steps)))
        return math.sqrt(facts.loss.smoothness * squares + self.objective.ridge)

    def weights(self, place: Reals) -> Reals:
        """w of z."""
        if isinstance(self.factor, float):
            return place / self.factor
        return np.asarray(solve_triangular(self.factor, place, lower=True, trans=1, check_finite=False))

    def pulled(self, gradient: Reals) -> Reals:
        """The gradient in z of the gradient in w."""
        if isinstance(self.factor, float):
            return gradient / self.factor
        return np.asarray(solve_triangular(self.factor, gradient, lower=True, check_finite=False))


def _direction(gradient: Reals, past: deque[tuple[Reals, Reals]]) -> Reals:
    """-H g by the two loops of L-BFGS [Nocedal 1980]."""
    turned, shares = gradient.copy(), []
    for move, change in reversed(past):
        share = float(np.vdot(move, turned) / np.vdot(move, change))
        shares.append(share)
        turned -= share * change
    if past:
        move, change = past[-1]
        turned *= float(np.vdot(move, change) / np.vdot(change, change))
    for (move, change), share in zip(past, reversed(shares), strict=True):
        turned += move * (share - float(np.vdot(change, turned) / np.vdot(move, change)))
    return -turned


def minimised(objective: Objective, *, gamma: float) -> Reals:
    """Weights with a gradient of norm at most gamma, in real arithmetic.

    A step is accepted by the slope at its end, which for a convex function proves that it went down unless it went too
    far; no values of F are compared, whose rounding would end the search early. Where L-BFGS makes no progress a plain
    step does: in these coordinates it always goes down, and strong convexity makes it converge.
    """
    whitened = _Whitened(objective)
    place = np.zeros_like(objective.linear)
    weights = whitened.weights(place)
    full = objective.gradient(weights)
    target = gamma / 2
    past: deque[tuple[Reals, Reals]] = deque(maxlen=_MEMORY)
    for _ in range(_MOST_STEPS):
        if float(np.linalg.norm(full)) <= target:
            if objective.gradient_bound(weights) <= gamma:
                return weights
            target /= 2
            if target < gamma * 2.0**-12:
                break
        gradient = whitened.pulled(full)
        along = _direction(gradient, past)
        slope = float(np.vdot(gradient, along))
        if not slope < 0:
            past.clear()
            along, slope = -gradient, -float(np.vdot(gradient, gradient))
        length, tries = 1.0, 0
        while True:
            ahead = place + length * along
            weights = whitened.weights(ahead)
            full = objective.gradient(weights)
            change = whitened.pulled(full) - gradient
            after = slope + float(np.vdot(change, along))
            tries += 1
            if not after > -0.5 * slope or tries == _MOST_TRIES:
                break
            length *= slope / (slope - after)  # where a straight slope would be zero
        move = ahead - place
        if float(np.vdot(move, change)) > 1e-12 * float(np.vdot(move, move)):
            past.append((move, change))
        else:
            past.clear()
        place = ahead
    raise FitFailed("the search for the minimum", "Use another solver, such as NoisyGradientDescent.")
