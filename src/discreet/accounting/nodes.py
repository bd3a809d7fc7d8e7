"""Quadrature nodes of a likelihood ratio, and power means E_Q[w^b] from them with a bound of every rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.divergence.logspace import exp_minus, log1p_minus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.floating[Any]]
    Complexes = NDArray[np.complexfloating[Any, Any]]

__all__ = ["ROUNDING", "ErrorBound", "Nodes", "guarded", "log_near_one", "log_power_line_of", "log_power_mean_of"]

ROUNDING = 2.0**-53
"""Relative error of one correctly rounded operation.

Elementary functions (exp, log, log1p, expm1, sin, cos, atan2) are taken to be good to 4 ulp and every bound in this
room charges at least 32 ROUNDING a node, several times what an operation-by-operation count gives.
"""


class ErrorBound(Protocol):
    """ln of a bound of |sum over the nodes - E_Q[w^b]| for each exponent b."""

    def __call__(self, powers: Complexes) -> Reals: ...


@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature for E_Q[g(l)]: losses l_j, excesses v_j = e^{l_j} - 1, log weights, and its error."""

    loss: Reals
    excess: Reals
    log_weight: Reals
    log_error: ErrorBound | None = None
    """None: the sum is exact (atoms)."""
    slip: Reals | None = None
    """Absolute error of each loss in units of ROUNDING; None for 4 |loss|."""


def log_power_mean_of(
    nodes: Nodes, powers: Complexes, p_missing: float = 0.0, q_missing: float = 0.0
) -> tuple[Complexes, Reals]:
    r"""ln sum_j q_j w_j^b for each b in `powers`, and a bound of its absolute error.

    A single step of a long training run has E_Q[w^b] = 1 + O(1e-16 ...), so 1 must never be formed. As
    E_Q[1] = 1 - q_missing and E_Q[w] = 1 - p_missing are known exactly,

        E_Q[w^b] - 1 = -q_missing + b (q_missing - p_missing) + E_Q[ (e^{bl} - 1 - bl) + b (ln(1+v) - v) ],

    every bracket computed without cancellation. When w^b overflows, the plain sum in log scale is as good.
    """
    loss = nodes.loss
    block = max(1, 500_000 // len(loss))
    if len(powers) > block:  # memory stays small
        blocks = [
            log_power_mean_of(nodes, powers[start : start + block], p_missing, q_missing)
            for start in range(0, len(powers), block)
        ]
        return np.concatenate([value for value, _ in blocks]), np.concatenate([error for _, error in blocks])
    log_error = np.full(len(powers), -np.inf) if nodes.log_error is None else nodes.log_error(powers)
    reals, index = np.unique(powers.real, return_inverse=True)
    real_part = np.outer(reals, loss)
    size = np.abs(powers)
    if float(real_part.max()) <= 300.0:
        weight = np.exp(nodes.log_weight)
        exponent = np.outer(powers, loss)
        deep = nodes.excess < -0.5
        bend = np.where(deep, loss - nodes.excess, log1p_minus(np.where(deep, 0.0, nodes.excess)))
        bend_mean = float((bend * weight).sum())
        # with A = bl, |A (e^A - 1)| is at most |A|^2 max(1, e^Re A) and at most |A| (1 + e^Re A)
        growth = np.exp(real_part)
        # a weight e^-k carries some k roundings of its own
        care = weight * (1 + np.abs(nodes.log_weight) / 16)
        square = (np.maximum(growth, 1.0) * (care * loss * loss)).sum(axis=1)[index] * size * size
        linear = ((1.0 + growth) * (care * np.abs(loss))).sum(axis=1)[index] * size
        sizes = np.minimum(square, linear)
        excess = np.einsum("ij,j->i", exp_minus(exponent), weight) + powers * bend_mean
        excess += -q_missing + powers * (q_missing - p_missing)
        bends = float((np.abs(bend) * care).sum())
        error = 64 * ROUNDING * (sizes + np.abs(powers) * bends + np.abs(excess)) + np.exp(log_error)
        if nodes.slip is not None:
            # d/dl of a node's term is b (e^{bl} - e^l), at most |b| |b - 1| |l| max(e^{bl}, e^l) and |b| (e^{bl} + e^l)
            extra = weight * np.maximum(nodes.slip - 4 * np.abs(loss), 0.0)
            ratio = np.exp(loss)
            steep = (np.maximum(growth, ratio) * (extra * np.abs(loss))).sum(axis=1)[index] * size * np.abs(powers - 1)
            plain = ((growth + ratio) * extra).sum(axis=1)[index] * size
            error += ROUNDING * np.minimum(steep, plain)
        if p_missing or q_missing:
            error += 512 * ROUNDING * (q_missing + np.abs(powers) * (q_missing + p_missing))
        mean = 1.0 + excess
        return guarded(log_near_one(excess), np.abs(mean), error)
    exponent = np.outer(powers, loss) + nodes.log_weight
    top = exponent.real.max(axis=1)
    terms = np.exp(exponent - top[:, None])
    mean = terms.sum(axis=1)
    slip = 4 * np.abs(loss) if nodes.slip is None else nodes.slip
    reach = 1.0 + size[:, None] * (np.abs(loss) + slip) + np.abs(nodes.log_weight)
    error = 64 * ROUNDING * (reach * np.abs(terms)).sum(axis=1)
    error += np.exp(np.minimum(log_error - top, 700.0))
    value, bound = guarded(np.log(mean), np.abs(mean), error)
    return value + top, bound + 4 * ROUNDING * np.abs(top)


_BLOCK = 64


def log_power_line_of(nodes: Nodes, power: float, spacing: float, count: int) -> tuple[Complexes, Reals, float, float]:
    """ln of E_Q[w^{power + iy}] / E_Q[w^power] at y = spacing n for n = 0 .. count - 1, a bound of its error, and
    ln E_Q[w^power] with its error.

    A long line costs a few multiplications a node instead of an exponential: phases for one block of heights are
    made once, and the coefficients turned from block to block. With y = y_0 + y_1 and U = e^{i y_0 l} - 1,
    V = e^{i y_1 l} - 1,

        e^{iyl} - 1 = U + V + U V,

    so sums of small numbers are formed, and the error is in proportion to E|yl|, not to 1. Sums are pairwise.
    """
    exponent = power * nodes.loss + nodes.log_weight
    top = float(exponent.max())
    coefficient = np.exp(exponent - top)
    total = float(coefficient.sum())
    kept = coefficient > 1e-26 * total
    dropped = float(coefficient[~kept].sum()) / total
    loss, weight = nodes.loss[kept], coefficient[kept] / total
    block = max(1, min(_BLOCK, 2 * math.isqrt(count), 500_000 // len(loss)))  # few sines, and memory stays small
    near = _turned(np.outer(spacing * np.arange(block), loss))
    near_sum = (near * weight).sum(axis=1)
    change = np.empty(block * math.ceil(count / block), dtype=complex)
    for start in range(0, count, block):
        far = _turned((spacing * start) * loss) * weight
        change[start : start + block] = near_sum + (far.sum() + (near * far).sum(axis=1) if start else 0.0)
    change = change[:count]
    height = spacing * np.arange(count)
    # |e^{iyl} - 1| <= min(2, y|l|); each term is off by the rounding of its weight's exponent, of a pairwise sum and of
    # a few products, and by that of its phase, 4 y|l|
    slip = (4 * np.abs(nodes.loss) if nodes.slip is None else nodes.slip)[kept]
    care = weight * (48 + 4 * (abs(power) * np.abs(loss) + np.abs(nodes.log_weight[kept]) + abs(top)))
    care += weight * abs(power) * slip
    order = np.argsort(np.abs(loss))
    extent = np.abs(loss)[order]
    linear = np.append(0.0, np.cumsum(care[order] * extent))
    flat = np.append(np.cumsum(care[order][::-1])[::-1], 0.0)
    split = np.searchsorted(extent, 2 / np.maximum(height, 1e-300))
    error = np.asarray(ROUNDING * (height * linear[split] + 2 * flat[split]) * (1 + 1e-9))
    error += 2 * ROUNDING * height * float((weight * (slip + 4 * np.abs(loss))).sum()) + 2 * dropped
    log_start = top + math.log(total)
    start_error = float(ROUNDING * (64 + 4 * float(care.sum()) + 4 * abs(log_start)) + dropped)
    if nodes.log_error is not None:
        quadrature = np.exp(np.minimum(nodes.log_error(power + 1j * height) - log_start, 700.0))
        error += quadrature + quadrature[0]
        start_error += 2 * float(quadrature[0])
    value, error = guarded(log_near_one(change), np.abs(1.0 + change), error)
    return value, error, log_start, start_error


def log_near_one(change: Complexes) -> Complexes:
    """ln(1 + change), without cancellation where the change is small and without blow-up where the sum is."""
    modulus = np.abs(1.0 + change)
    square = change.real * (2 + change.real) + change.imag**2
    near = modulus > 0.5
    size = np.where(near, 0.5 * np.log1p(np.where(near, square, 0.0)), np.log(np.where(near, 1.0, modulus) + 1e-300))
    return np.asarray(size + 1j * np.angle(1.0 + change))


def _turned(angle: Reals) -> Complexes:
    """e^{i angle} - 1 without cancellation."""
    result = np.empty(angle.shape, dtype=complex)
    half = np.sin(0.5 * angle)
    result.real = -2 * half * half
    result.imag = np.sin(angle)
    return result


def guarded(value: Complexes, modulus: Reals, error: Reals) -> tuple[Complexes, Reals]:
    """Turns an absolute error of a mean into one of its logarithm; a mean lost in its error is replaced by a bound.

    If |mean| < 4 error, then the true modulus is below 5 error. Reporting ln(4 error) with log-error ln 3.25 keeps
    |truth^k - reported^k| <= reported^k (3.25^k - 1) for every k >= 1.
    """
    lost = ~(modulus >= 4 * error)  # also where a NaN slipped in
    safe = np.where(lost, 1.0, modulus)
    bound = -np.log1p(-np.where(lost, 0.0, error / safe)) + 8 * ROUNDING * np.abs(value)
    value = np.where(lost, np.log(np.maximum(4 * error, 1e-300)), value)
    return value, np.where(lost, np.log(3.25), bound)
