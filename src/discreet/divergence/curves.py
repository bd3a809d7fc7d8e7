r"""The curves behind `TradeOff`: what each must answer, and the smooth ones known in closed form.

Orientation, everywhere in this room: alpha = Q(A) is the false alarm and 1 - f(alpha) = P(A) the power of the best
test A between the null hypothesis Q and the alternative P, and delta(epsilon) = sup_A P(A) - e^epsilon Q(A).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from discreet.arguments import nonnegative
from discreet.divergence.gaussian import hockey_stick_gaussian, tradeoff_gaussian
from discreet.divergence.laplace import hockey_stick_laplace, tradeoff_laplace
from discreet.divergence.special import ndtr, ndtri

if TYPE_CHECKING:
    from discreet.divergence.logspace import Reals
    from discreet.divergence.shifted import ShiftedFamily

__all__ = ["Curve", "GaussianCurve", "LaplaceCurve", "ShiftedCurve"]


class Curve(Protocol):
    """A trade-off curve; arrays in, arrays of the same shape out."""

    @property
    def breaks(self) -> Reals | None:
        """False alarms between which the curve is linear; None if it is smooth."""

    @property
    def is_identity(self) -> bool:
        """Whether the two distributions are equal: f(alpha) = 1 - alpha."""

    def value(self, alpha: Reals) -> Reals:
        """Missed detection at false alarm alpha."""

    def power(self, alpha: Reals) -> Reals:
        """1 - value(alpha), accurate also where it is tiny."""

    def delta(self, epsilon: Reals) -> Reals:
        """Hockey-stick divergence E_gamma(P||Q) at gamma = e^epsilon, for every real epsilon."""

    def inverse(self) -> Curve:
        """The curve of the pair in the other order."""

    def symmetrised(self) -> Curve:
        """The largest convex curve below this one and its inverse."""

    def grouped(self, k: int) -> Curve:
        """The k-fold concatenation f o (1 - f) o ... o (1 - f), k >= 1."""

    def composed(self, other: object) -> Curve | None:
        """The curve of both pairs observed together, or None if this curve does not know it exactly."""


class _Symmetric:
    """What the smooth curves of symmetric pairs share."""

    @property
    def breaks(self) -> Reals | None:
        return None

    def inverse(self) -> Self:
        return self

    def symmetrised(self) -> Self:
        return self


@dataclass(frozen=True)
class GaussianCurve(_Symmetric):
    """The curve of N(mu, 1) against N(0, 1)."""

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", nonnegative("mu", self.mu))

    @property
    def is_identity(self) -> bool:
        return self.mu == 0

    def value(self, alpha: Reals) -> Reals:
        return tradeoff_gaussian(alpha, mu=self.mu)

    def power(self, alpha: Reals) -> Reals:
        return np.asarray(ndtr(ndtri(alpha) + self.mu))

    def delta(self, epsilon: Reals) -> Reals:
        return hockey_stick_gaussian(epsilon, mu=self.mu)

    def grouped(self, k: int) -> GaussianCurve:
        return GaussianCurve(k * self.mu)

    def composed(self, other: object) -> GaussianCurve | None:
        return GaussianCurve(math.hypot(self.mu, other.mu)) if isinstance(other, GaussianCurve) else None


@dataclass(frozen=True)
class LaplaceCurve(_Symmetric):
    """The curve of Laplace(shift, 1) against Laplace(0, 1)."""

    shift: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", nonnegative("shift", self.shift))

    @property
    def is_identity(self) -> bool:
        return self.shift == 0

    def value(self, alpha: Reals) -> Reals:
        return tradeoff_laplace(alpha, shift=self.shift)

    def power(self, alpha: Reals) -> Reals:
        kept = math.exp(-self.shift)
        return np.where(alpha < 0.5 * kept, np.exp(min(self.shift, 700.0)) * alpha, 1.0 - self.value(alpha))

    def delta(self, epsilon: Reals) -> Reals:
        return hockey_stick_laplace(epsilon, shift=self.shift)

    def grouped(self, k: int) -> LaplaceCurve:
        return LaplaceCurve(k * self.shift)

    def composed(self, other: object) -> None:  # noqa: ARG002 - the product of two Laplace pairs is no shift
        return None


@dataclass(frozen=True)
class ShiftedCurve(_Symmetric):
    """The curve of any symmetric log-concave noise, shifted against unshifted."""

    family: ShiftedFamily
    shift: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", nonnegative("shift", self.shift))

    @property
    def is_identity(self) -> bool:
        return self.shift == 0

    def value(self, alpha: Reals) -> Reals:
        return self.family.tradeoff(alpha, shift=self.shift)

    def power(self, alpha: Reals) -> Reals:
        with np.errstate(divide="ignore"):
            x = self.family.upper_quantile(np.log(alpha))
        taken = np.exp(self.family.log_upper_tail(x - self.shift))
        return np.where(alpha == 0, 0.0, np.where(alpha == 1, 1.0, taken))

    def delta(self, epsilon: Reals) -> Reals:
        return self.family.hockey_stick(epsilon, shift=self.shift)

    def grouped(self, k: int) -> ShiftedCurve:
        return ShiftedCurve(self.family, k * self.shift)

    def composed(self, other: object) -> None:  # noqa: ARG002 - the product of two pairs is no shift
        return None
