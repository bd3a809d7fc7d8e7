r"""The inner loop of projected noisy gradient steps on whole numbers, compiled if numba is installed.

The state is a vector of whole numbers V, in steps of the iterate's lattice. One step of a batch is

    P = V, or V B / ||V|| rounded if ||V|| > B;       V <- P - round(c sum_j slope_j x_j + shrink P) + noise,

with slopes at the margins m_j = scale (x_j . P). Sums and products are floats, in any order, and
docs/proofs/pnsgd-lattice.md bounds how far that is from the real step. P and the rounded part are whole numbers below
2^53, so that the last line is exact. Both versions below do this, the compiled one for the losses it knows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from discreet.learning.hinges import GaussianHinge, SmoothedHinge
from discreet.learning.losses import Huber, Logistic, Poisson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.losses import Loss

    Reals = NDArray[np.float64]
    Wholes = NDArray[np.int64]

__all__ = ["MANY", "Constants", "Pass", "compiled", "interpreted", "steps"]

MANY: Final = 1 << 14  # steps of one run from which on importing numba pays

_LOGISTIC, _HUBER, _HINGE, _GAUSSIAN_HINGE, _POISSON = range(5)
_ROOT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class Constants:
    """The numbers of a run, all public."""

    pull: float
    """c: what a slope of one adds, in steps of the iterate for each step of the row."""
    margin: float
    """What one step of the row times one step of the iterate adds to a margin."""
    shrink: float
    """Step size times strong convexity of the penalty."""
    reach: float
    """B: the radius in steps."""
    bound: float
    """The largest norm of a slope."""


class Pass(Protocol):
    """Some steps: the state is changed in place; row edges[t] is the first of step t, edges[t + 1] that of the next."""

    def __call__(self, state: Wholes, rows: Reals, targets: NDArray[Any], edges: Wholes, noise: Wholes) -> None: ...


def _numbers(loss: Loss) -> tuple[int, float] | None:
    """The number of the loss in the compiled loop, and its parameter; None for others."""
    match loss:
        case Logistic():
            return _LOGISTIC, 0.0
        case Huber():
            return _HUBER, float(loss.limit)
        case SmoothedHinge():
            return _HINGE, float(loss.width)
        case GaussianHinge():
            return _GAUSSIAN_HINGE, float(loss.width)
        case Poisson():
            return _POISSON, float(loss.ceiling)
    return None


def steps(  # noqa: PLR0917 - compiled functions are called by position
    state: Wholes,
    rows: Reals,
    targets: Reals,
    edges: Wholes,
    noise: Wholes,
    loss: tuple[int, float],
    constants: tuple[float, float, float, float, float],
) -> None:
    """Take as many steps as there are rows of noise; what numba compiles."""
    kind, width = loss
    pull, margin_step, shrink, reach, bound = constants
    size = state.size
    place, move = np.empty(size), np.empty(size)
    for t in range(edges.size - 1):
        square = 0.0
        for i in range(size):
            place[i] = np.float64(state[i])
            square += place[i] * place[i]
        if square > reach * reach:
            factor = reach / math.sqrt(square)
            for i in range(size):
                place[i] = np.rint(place[i] * factor)
        for i in range(size):
            move[i] = shrink * place[i]
        for j in range(edges[t], edges[t + 1]):
            margin = 0.0
            for i in range(size):
                margin += rows[j, i] * place[i]
            margin *= margin_step
            if not math.isfinite(margin):  # a row that is no row: as if it were zero
                continue
            target = targets[j]
            sign = 1.0 if target > 0 else -1.0
            if kind == _LOGISTIC:
                tail = math.exp(-abs(margin))
                slope = (1.0 if margin >= 0 else tail) / (1.0 + tail)
                if target > 0:
                    slope -= 1.0
            elif kind == _HUBER:
                slope = min(max(margin - target, -width), width)
            elif kind == _HINGE:
                slope = -sign * min(max(1.0 + width / 2 - sign * margin, 0.0) / width, 1.0)
            elif kind == _GAUSSIAN_HINGE:
                slope = -sign * 0.5 * math.erfc((sign * margin - 1.0) / width * _ROOT_HALF)
            else:
                slope = math.exp(min(margin, width)) - target
            if math.isnan(slope):
                slope = 0.0
            slope = pull * min(max(slope, -bound), bound)
            for i in range(size):
                move[i] += slope * rows[j, i]
        for i in range(size):
            state[i] = np.int64(place[i] - np.rint(move[i])) + noise[t, i]


@cache
def _loaded() -> Any | None:
    """The compiled loop, if numba is there."""
    try:
        from numba import njit
    except ImportError:
        return None
    # sums may be reordered, which the error bound allows; nothing is assumed about infinities and the like
    freedom = {"reassoc", "contract"}
    try:
        return njit(cache=True, nogil=True, fastmath=freedom)(steps)
    except RuntimeError:  # no folder in which compiled code could be kept for the next process
        return njit(nogil=True, fastmath=freedom)(steps)


def compiled(loss: Loss, constants: Constants) -> Pass | None:
    """The compiled steps for a loss of one output that the loop knows; None without numba or for other losses."""
    numbers = _numbers(loss)
    loop = None if numbers is None else _loaded()
    if loop is None:
        return None
    values = (constants.pull, constants.margin, constants.shrink, constants.reach, constants.bound)

    def run(state: Wholes, rows: Reals, targets: NDArray[Any], edges: Wholes, noise: Wholes) -> None:
        loop(state, rows, np.asarray(targets, dtype=np.float64), edges, noise, numbers, values)

    return run


def interpreted(loss: Loss, constants: Constants) -> Pass:
    """The same steps in NumPy, for any loss."""

    def run(state: Wholes, rows: Reals, targets: NDArray[Any], edges: Wholes, noise: Wholes) -> None:
        for t, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            place = state.astype(np.float64)
            size = math.sqrt(float(place @ place))
            if size > constants.reach:
                place = np.rint(place * (constants.reach / size))
            batch = rows[low:high]
            answers = targets[low:high]
            with np.errstate(invalid="ignore"):
                margins = batch @ place.reshape(batch.shape[1], -1) * constants.margin
            sound = np.isfinite(margins).all(axis=1)
            if not sound.all():  # a row that is no row: as if it were zero
                batch, answers, margins = batch[sound], answers[sound], margins[sound]
            slopes = loss.slopes(margins if loss.outputs > 1 else margins[:, 0], answers)
            slopes = _bounded(slopes.reshape(len(batch), -1), constants.bound)
            move = (batch.T @ (constants.pull * slopes)).ravel() + constants.shrink * place
            state[:] = (place - np.rint(move)).astype(np.int64) + noise[t]

    return run


def _bounded(slopes: Reals, bound: float) -> Reals:
    """Slopes of at most this norm, row by row; what is no number is zero."""
    slopes = np.where(np.isnan(slopes), 0.0, slopes)
    sizes = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
    over = sizes > bound
    if over.any():
        slopes[over] *= (bound / sizes[over])[:, None]
    return slopes
