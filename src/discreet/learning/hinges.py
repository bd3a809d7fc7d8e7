r"""Hinge losses with rounded corners, for two classes and for many; `losses.py` says what a loss declares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr

from discreet.arguments import count, positive
from discreet.learning.losses import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["GaussianHinge", "MulticlassHinge", "SmoothedHinge"]

_USUAL = 0.5
"""The slope of a hinge goes from -1 to 0 between the margins -1 and 1 of the two classes: 1/2 on the mean."""
_COARSE = 2.0**26


def _signs(targets: NDArray[Any]) -> Reals:
    """-1 for targets up to zero, +1 for the others."""
    return np.where(np.asarray(targets) > 0, 1.0, -1.0)


@dataclass(frozen=True)
class _TwoClassHinge(Loss):
    """What hinges of one margin share, whatever rounds their corner: slopes between 0 and -y, for y in {-1, 1}."""

    width: float = 0.5

    def __post_init__(self) -> None:
        positive("width", self.width)

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def usual_curvature(self) -> float:
        return min(self.smoothness, _USUAL)

    @property
    def corners(self) -> int:
        """One: the slope of a target never changes its sign."""
        return 1

    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        return _signs(targets)


@dataclass(frozen=True)
class SmoothedHinge(_TwoClassHinge):
    """max(0, 1 - y m) for y in {-1, 1}, with its corner rounded off by a parabola of this `width` (Huber's hinge).

    Zero for y m >= 1 + width/2, 1 - y m for y m <= 1 - width/2, a parabola of curvature 1/width between.
    """

    name: ClassVar[str] = "smoothed hinge"

    @property
    def smoothness(self) -> float:
        return math.nextafter(1 / self.width, math.inf)

    def _gap(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        """How far into the parabola: 0 at its flat end, width at the other."""
        return np.clip(1 + self.width / 2 - _signs(targets) * margins, 0.0, None)

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        gap = self._gap(margins, targets)
        inside = np.minimum(gap, self.width)
        return np.asarray(inside * (gap - inside / 2) / self.width)

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        return np.asarray(-_signs(targets) * np.minimum(self._gap(margins, targets) / self.width, 1.0))

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        gap = self._gap(margins, targets)
        return np.where((gap > 0) & (gap < self.width), 1 / self.width, 0.0)


@dataclass(frozen=True)
class GaussianHinge(_TwoClassHinge):
    """The hinge loss smoothed by a Gaussian of this `width` in its one margin [Feldman et al. 2018, Sec. 5.3].

    E max(0, 1 - y m + width Z): slope -y Phi((1 - y m) / width), curvature at most 1 / (width sqrt(2 pi)), and never
    more than width / sqrt(2 pi) above the hinge.
    """

    name: ClassVar[str] = "Gaussian hinge"

    @property
    def smoothness(self) -> float:
        return math.nextafter(1 / (self.width * math.sqrt(2 * math.pi)), math.inf)

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        u = (1 - _signs(targets) * margins) / self.width
        density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
        return np.asarray(self.width * (u * np.exp(log_ndtr(u)) + density))

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        signs = _signs(targets)
        return np.asarray(-signs * ndtr((1 - signs * margins) / self.width))

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        u = (1 - _signs(targets) * margins) / self.width
        return np.asarray(np.exp(-(u**2) / 2) / (self.width * math.sqrt(2 * math.pi)))


@dataclass(frozen=True)
class MulticlassHinge(Loss):
    r"""max_j (m_j + [j != y]) - m_y for classes y = 0, ..., outputs - 1 [Crammer and Singer 2001], its corners rounded.

    With v_j = m_j + [j != y], h = width / 2 and p over the probability vectors,

        max_p  p . v - m_y + (h / 2) (1 - |p|^2),

    is at least the hinge and at most width / 4 more. Its maximum is at p = the projection of v / h onto the probability
    vectors, and its slope is p - e_y: of squared norm at most 2, as for `Softmax`. Projections do not enlarge
    distances, so that the slope is (1 / h)-Lipschitz: the curvature is at most 2 / width. For two classes it is
    `SmoothedHinge(width)` of m_y - m_j. Where classes j in S share p, the curvature is (I - 1 1^T / |S|) / h on S and
    zero elsewhere: at most K - 1 eigenvalues 1 / h.
    """

    outputs: int = 2
    width: float = 0.5
    name: ClassVar[str] = "multi-class hinge"

    def __post_init__(self) -> None:
        count("outputs", self.outputs, least=2)
        positive("width", self.width)

    @property
    def lipschitz(self) -> float:
        return math.nextafter(math.sqrt(2), 2)

    @property
    def smoothness(self) -> float:
        return math.nextafter(2 / self.width, math.inf)

    @property
    def usual_curvature(self) -> float:
        """1 / K, as for `Softmax`."""
        return min(self.smoothness, 1 / self.outputs)

    @property
    def corners(self) -> int:
        """p - e_y is the mean of e_j - e_y over the classes j: one point for each but y itself, which gives 0."""
        return self.outputs - 1

    def log_determinant(self, ratio: float) -> float:
        """(K - 1) ln(1 + 2 ratio / width)."""
        return (self.outputs - 1) * math.log1p(self.smoothness * ratio) * (1 + 1e-14)

    def _scores(self, margins: Reals, targets: NDArray[Any]) -> tuple[Reals, Reals]:
        """(v - max v) / h, cut at -1, beyond which p is zero; and max v - m_y."""
        chosen = np.asarray(targets, dtype=np.intp)
        rows = np.arange(len(chosen))
        raised = margins + 1
        raised[rows, chosen] = margins[rows, chosen]
        largest = raised.max(axis=1)
        scores = np.maximum((raised - largest[:, None]) / (self.width / 2), -1.0)
        return scores, largest - margins[rows, chosen]

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        scores, gap = self._scores(margins, targets)
        p = _projected(scores)
        inner = p * (scores - p / 2)
        total = inner[:, 0].copy()
        for column in range(1, self.outputs):
            total += inner[:, column]
        return np.asarray(gap + self.width / 2 * (total + 0.5))

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        slopes = _projected(self._scores(margins, targets)[0])
        chosen = np.asarray(targets, dtype=np.intp)
        slopes[np.arange(len(chosen)), chosen] -= 1
        return slopes

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        shared = _projected(self._scores(margins, targets)[0]) > 0
        return np.asarray(shared * (1 - 1 / shared.sum(axis=1, keepdims=True)) / (self.width / 2))

    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        classes: NDArray[Any] = np.clip(np.asarray(targets), 0, self.outputs - 1).astype(np.intp)
        return classes


def _projected(scores: Reals) -> Reals:
    """The nearest probability vector p = max(0, s - t) of every row s of numbers in [-1, 0], the largest of them 0.

    t = (s_1 + ... + s_k - 1) / k for the k largest, where k is the last for which s_k > t [Held et al. 1974]. Sums are
    exact up to one rounding: multiples of 2^-26 add up without any, and what is left of them is below 2^-26. So t is
    right to 3 u and p, in l2, to 6 u sqrt(K) for scores that are right to 2 u, u = 2^-53.
    """
    ordered = -np.sort(-scores, axis=1)
    coarse = np.rint(ordered * _COARSE) / _COARSE
    numbers = np.arange(1.0, scores.shape[1] + 1)
    thresholds = (np.cumsum(coarse, axis=1) + np.cumsum(ordered - coarse, axis=1) - 1) / numbers
    last = scores.shape[1] - 1 - np.argmax((ordered > thresholds)[:, ::-1], axis=1)
    return np.asarray(np.maximum(scores - thresholds[np.arange(len(scores)), last][:, None], 0.0))
