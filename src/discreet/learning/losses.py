r"""Losses of generalised linear models: a loss of one row depends on its margins x^T w alone.

A loss declares, for every target it allows,

    lipschitz    the largest l2 norm of its slope (its gradient in the margins),
    smoothness   the largest operator norm of its curvature (its Hessian in the margins),

so that for rows of norm at most R the loss is (lipschitz R)-Lipschitz and (smoothness R^2)-smooth in w. Privacy rests
on both: they are proved in the docstrings, and tests look for margins that break them. Where the textbook loss has no
such constants (squares, Poisson), it is continued by straight lines: clipping the slope of a convex function of one
margin gives a convex function again, which is why clipping is allowed here and not for gradients in general.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit

from discreet.arguments import count, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = [
    "Expansion",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Softmax",
    "Squared",
    "probabilities",
]


@dataclass(frozen=True)
class Expansion:
    """A loss to second order at margin zero: value + s m + (curvature / 2) m^2 with |s| <= slope for all targets."""

    slope: float
    curvature: float


class Loss(ABC):
    """A convex loss of one margin, or of `outputs` margins; all methods work on rows at once.

    `margins` has shape (n,) for one output and (n, outputs) else; so have slopes. Every value depends on its own row
    alone, whatever else is in the arrays.
    """

    name: ClassVar[str]
    outputs: int = 1

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """The largest l2 norm of a row's slope."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """The largest curvature of a row's loss in its margins."""

    @abstractmethod
    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        """The loss of every row."""

    @abstractmethod
    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        """The derivative of every row's loss in its margins."""

    @abstractmethod
    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        """The second derivative of every row's loss in its margin; for several outputs, in each of its margins."""

    @abstractmethod
    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        """The targets, clamped row by row to what the constants above are proved for."""

    @property
    def usual_curvature(self) -> float:
        """About the curvature of the mean loss in one of its margins, where these are of ordinary size.

        Steps are made for it where nothing of privacy rests on them: on data few rows are in the bend of a loss.
        """
        return self.smoothness

    @property
    def usual_radius(self) -> float:
        """About how far noise may move the weights in one step before the fit suffers; no privacy rests on it."""
        return 1.5

    @property
    def corners(self) -> int:
        """k such that all slopes of one target lie in the hull of 0 and k points of norm at most `lipschitz`."""
        if self.outputs != 1:
            raise InvalidArgument("loss", self.name, "its slopes are not known to lie between few points")
        return 2  # the two ends of an interval

    def log_determinant(self, ratio: float) -> float:
        """The largest ln det(I + ratio C) over the curvatures C of one row, in all its margins."""
        if self.outputs != 1:
            raise InvalidArgument("loss", self.name, "no bound on its determinants is known")
        return math.log1p(self.smoothness * ratio) * (1 + 1e-14)

    def expansion(self) -> Expansion:
        """The loss to second order at margin zero, where its curvature there is the same for all targets."""
        raise InvalidArgument(
            "loss", self.name, "it has no quadratic expansion at zero that fits all targets; use another solver"
        )


def _exponentials(margins: Reals) -> tuple[Reals, Reals, Reals]:
    """Margins less the largest of their row, e to that, and its sum, added column by column: a row's own affair."""
    shifted = margins - margins.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    total = powers[:, 0].copy()
    for column in range(1, powers.shape[1]):
        total += powers[:, column]
    return shifted, powers, total


def probabilities(margins: Reals) -> Reals:
    """softmax(m) of every row."""
    _, powers, total = _exponentials(margins)
    return np.asarray(powers / total[:, None])


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^m) - y m for y in {0, 1}: the slope expit(m) - y is within (-1, 1), the curvature at most 1/4."""

    name: ClassVar[str] = "logistic"

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def smoothness(self) -> float:
        return 0.25

    @property
    def corners(self) -> int:
        """One: the slope of a target never changes its sign."""
        return 1

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        return np.asarray(np.logaddexp(0.0, np.where(targets > 0, -margins, margins)))

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        return np.asarray(expit(margins) - (targets > 0))

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        del targets
        return np.asarray(expit(margins) * expit(-margins))

    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.where(np.asarray(targets) > 0, 1.0, 0.0))

    def expansion(self) -> Expansion:
        """log 2 + (1/2 - y) m + m^2 / 8."""
        return Expansion(slope=0.5, curvature=0.25)


@dataclass(frozen=True)
class Softmax(Loss):
    """-log softmax(m)_y for classes y = 0, ..., outputs - 1.

    The slope is p - e_y with p >= 0 and sum p = 1. Its squared norm is |p|^2 - 2 p_y + 1 <= (1 - p_y)^2 + (1 - p_y)^2,
    at most 2. The curvature diag(p) - p p^T has largest eigenvalue at most 1/2: for a unit vector v it is the variance
    of v_J, J ~ p, and a variable on [min v, max v] has variance at most (max v - min v)^2 / 4 <= 2 |v|^2 / 4.
    """

    outputs: int = 2
    name: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        count("outputs", self.outputs, least=2)

    @property
    def lipschitz(self) -> float:
        return math.nextafter(math.sqrt(2), 2)

    @property
    def smoothness(self) -> float:
        return 0.5

    @property
    def usual_curvature(self) -> float:
        """1 / K, as at margin zero."""
        return 1 / self.outputs

    @property
    def corners(self) -> int:
        """p - e_y is the mean of e_j - e_y over the classes j: one point for each but y itself, which gives 0."""
        return self.outputs - 1

    def log_determinant(self, ratio: float) -> float:
        """(K - 1) ln(1 + ratio / K): K - 1 eigenvalues of diag(p) - p p^T that add up to 1 - |p|^2 <= 1 - 1/K."""
        return (self.outputs - 1) * math.log1p(ratio / self.outputs) * (1 + 1e-14)

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        chosen = np.asarray(targets, dtype=np.intp)
        shifted, total = _exponentials(margins)[::2]
        return np.log(total) - shifted[np.arange(len(chosen)), chosen]

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        slopes = probabilities(margins)
        chosen = np.asarray(targets, dtype=np.intp)
        slopes[np.arange(len(chosen)), chosen] -= 1
        return slopes

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        del targets
        p = probabilities(margins)
        return p * (1 - p)

    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        classes: NDArray[Any] = np.clip(np.asarray(targets), 0, self.outputs - 1).astype(np.intp)
        return classes


@dataclass(frozen=True)
class Squared(Loss):
    """(m - y)^2 / 2 for targets clamped to [-most, most]: its slope has no bound, as some solvers need."""

    most: float
    name: ClassVar[str] = "squared"

    def __post_init__(self) -> None:
        positive("most", self.most)

    @property
    def lipschitz(self) -> float:
        raise InvalidArgument(
            "loss",
            self,
            "the squared loss has no bounded slope; use SufficientStatistics or FunctionalMechanism, or the loss Huber",
        )

    @property
    def smoothness(self) -> float:
        return 1.0

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        return np.asarray((margins - targets) ** 2 / 2)

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        return np.asarray(margins - targets)

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        del targets
        return np.ones_like(margins)

    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        return np.clip(np.asarray(targets, dtype=np.float64), -self.most, self.most)

    def expansion(self) -> Expansion:
        """y^2 / 2 - y m + m^2 / 2: itself."""
        return Expansion(slope=float(self.most), curvature=1.0)


@dataclass(frozen=True)
class Huber(Loss):
    """(m - y)^2 / 2 with its slope clipped to [-limit, limit]: least squares up to that residual, straight beyond."""

    limit: float
    name: ClassVar[str] = "squared"

    def __post_init__(self) -> None:
        positive("limit", self.limit)

    @property
    def lipschitz(self) -> float:
        return float(self.limit)

    @property
    def smoothness(self) -> float:
        return 1.0

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        size = np.abs(margins - targets)
        inside = np.minimum(size, self.limit)
        return np.asarray(inside * (size - inside / 2))

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        clipped: Reals = np.clip(margins - targets, -self.limit, self.limit)
        return clipped

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        return np.asarray(np.where(np.abs(margins - targets) <= self.limit, 1.0, 0.0))

    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(targets, dtype=np.float64)


@dataclass(frozen=True)
class Poisson(Loss):
    """e^m - y m for counts y in [0, most], continued by a straight line for margins above `ceiling`.

    The slope e^min(m, ceiling) - y lies in [-most, e^ceiling], the curvature in [0, e^ceiling]. `usual` is the rate
    that steps are made for, if one is known, else the largest; no privacy rests on it.
    """

    most: float
    ceiling: float
    usual: float | None = None
    name: ClassVar[str] = "Poisson"

    def __post_init__(self) -> None:
        positive("most", self.most)
        if not -50 <= self.ceiling <= 50:
            raise InvalidArgument("ceiling", self.ceiling, "pass a log-rate between -50 and 50")
        if self.usual is not None:
            positive("usual", self.usual)

    @property
    def lipschitz(self) -> float:
        return max(float(self.most), self.smoothness)

    @property
    def smoothness(self) -> float:
        return math.nextafter(math.exp(self.ceiling), math.inf)

    @property
    def usual_curvature(self) -> float:
        return self.smoothness if self.usual is None else min(self.smoothness, self.usual)

    @property
    def usual_radius(self) -> float:
        """Less than for others: rates grow faster than margins."""
        return 0.75

    def values(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        inside = np.minimum(margins, self.ceiling)
        return np.asarray(np.exp(inside) * (1 + margins - inside) - targets * margins)

    def slopes(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        return np.asarray(np.exp(np.minimum(margins, self.ceiling)) - targets)

    def curvatures(self, margins: Reals, targets: NDArray[Any]) -> Reals:
        del targets
        return np.where(margins <= self.ceiling, np.exp(np.minimum(margins, self.ceiling)), 0.0)

    def checked(self, targets: NDArray[Any]) -> NDArray[Any]:
        return np.clip(np.asarray(targets, dtype=np.float64), 0.0, self.most)

    def expansion(self) -> Expansion:
        """1 + (1 - y) m + m^2 / 2, where the straight line begins above zero."""
        if self.ceiling <= 0:
            return super().expansion()
        return Expansion(slope=max(1.0, float(self.most) - 1.0), curvature=1.0)
