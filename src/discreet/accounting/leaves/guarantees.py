"""Black boxes known only by a guarantee: pure, approximate, concentrated, Gaussian and Rényi differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.leaves.choices import response_pair
from discreet.accounting.leaves.leaf import LARGEST_EPSILON, Leaf, check_fields, decimal, finite_epsilon, rounded_up
from discreet.accounting.pair import ROUNDING
from discreet.accounting.pairs.gaussian import GaussianPair
from discreet.arguments import nonnegative, positive, probability, real
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from discreet.accounting.pair import Pair

__all__ = ["Approximate", "Concentrated", "GaussianGuarantee", "Pure", "RenyiCurve"]


@dataclass(frozen=True)
class Pure(Leaf):
    """epsilon-DP: dominated by binary randomized response, which is epsilon-DP itself [Kairouz et al. 2015]."""

    kind: ClassVar[str] = "pure"
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", finite_epsilon(self.epsilon))

    def pair(self) -> Pair:
        return response_pair(self.epsilon)

    def rdp(self, order: float) -> float:
        r"""In closed form, no digit of a small epsilon lost: with y = epsilon/2 and x = (2 order - 1) y,

            (order - 1) D_order = ln(cosh x / cosh y) = ln(1 + 2 sinh(order y) sinh((order - 1) y) / cosh y).

        Arguments are off by 2 roundings and t coth t <= 1 + t, so what follows 1 is off by 8 (4 + x + y) of them.
        """
        y = self.epsilon / 2
        x = (2 * order - 1) * y
        if not x <= LARGEST_EPSILON:
            return super().rdp(order)
        excess = 2 * math.sinh(order * y) * math.sinh((order - 1) * y) / math.cosh(y)
        return math.log1p(excess * (1 + 32 * ROUNDING * (4 + x + y))) / (order - 1) * (1 + 1e-14)

    def grouped(self, size: int) -> Leaf:
        return Pure(self.epsilon * size)


@dataclass(frozen=True)
class Approximate(Leaf):
    """(epsilon, delta)-DP: leak with probability delta, else randomized response [Kairouz et al. 2015, Thm 3.3]."""

    kind: ClassVar[str] = "approximate"
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = nonnegative("epsilon", self.epsilon)
        object.__setattr__(self, "epsilon", finite_epsilon(epsilon) if epsilon else 0.0)
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def pair(self) -> Pair:
        if self.epsilon == 0:
            from discreet.accounting.pairs.atoms import AtomsPair

            return AtomsPair(np.zeros(1), np.array([1 - self.delta]), self.delta, self.delta, symmetric=True)
        return response_pair(self.epsilon, delta=self.delta)

    def rdp(self, order: float) -> float:
        return math.inf if self.delta > 0 else super().rdp(order)

    def grouped(self, size: int) -> Leaf:
        """(k eps, delta (e^{k eps} - 1) / (e^eps - 1))."""
        if self.epsilon * size > LARGEST_EPSILON:
            return Approximate(LARGEST_EPSILON, 1.0)
        growth = size if self.epsilon == 0 else math.expm1(size * self.epsilon) / math.expm1(self.epsilon)
        return Approximate(self.epsilon * size, min(1.0, self.delta * growth * (1 + 1e-14)))


@dataclass(frozen=True)
class GaussianGuarantee(Leaf):
    """mu-GDP: dominated by N(mu, 1) against N(0, 1) [Dong et al. 2022]."""

    kind: ClassVar[str] = "gaussian_dp"
    mu: float

    def __post_init__(self) -> None:
        mu = positive("mu", self.mu)
        if not 1e-100 <= mu <= LARGEST_EPSILON:
            raise InvalidArgument("mu", self.mu, f"pass 0, or a number between 1e-100 and {LARGEST_EPSILON:g}")
        object.__setattr__(self, "mu", mu)

    def pair(self) -> Pair:
        return GaussianPair(self.mu)

    def zcdp(self) -> float:
        return rounded_up(decimal(self.mu) ** 2 / 2)

    def gdp(self) -> float:
        return self.mu

    def grouped(self, size: int) -> Leaf:
        return GaussianGuarantee(self.mu * size)


@dataclass(frozen=True)
class Concentrated(Leaf):
    """rho-zCDP: D_a <= a rho for all a > 1 [Bun and Steinke 2016]. N(sqrt(2 rho), 1) meets it with equality."""

    kind: ClassVar[str] = "concentrated"
    can_be_sampled: ClassVar[bool] = False
    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive("rho", self.rho))

    def pair(self) -> None:
        return None

    def witness(self) -> Pair:
        return GaussianPair(math.sqrt(2 * self.rho) * (1 - 1e-15))

    def rdp(self, order: float) -> float:
        return order * self.rho * (1 + 1e-15)

    def zcdp(self) -> float:
        return self.rho

    def gdp(self) -> float:
        return math.inf

    def grouped(self, size: int) -> Leaf:
        return Concentrated(self.rho * size * size)


@dataclass(frozen=True)
class RenyiCurve(Leaf):
    """D_a <= value at finitely many orders a > 1; between them the larger order's value holds (D_a grows with a)."""

    kind: ClassVar[str] = "renyi"
    can_be_sampled: ClassVar[bool] = False
    curve: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        given = self.curve.items() if isinstance(self.curve, Mapping) else self.curve
        try:
            rows = sorted(
                (real("order", order), nonnegative(f"value at order {order}", value)) for order, value in given
            )
        except TypeError:
            raise InvalidArgument("curve", self.curve, "pass a mapping {order: value} with orders > 1") from None
        if not rows:
            raise InvalidArgument("curve", self.curve, "pass at least one order > 1 with its value")
        for order, _ in rows:
            if order <= 1:
                raise InvalidArgument("order", order, "pass orders > 1")
        object.__setattr__(self, "curve", tuple(rows))

    def pair(self) -> None:
        return None

    def witness(self) -> Pair | None:
        """The Gaussian pair that stays below the curve at all given orders."""
        mu = math.sqrt(min(2 * value / order for order, value in self.curve)) * (1 - 1e-14)
        return GaussianPair(mu) if mu > 0 else None

    def rdp(self, order: float) -> float:
        return next((value for known, value in self.curve if known >= order), math.inf)

    def orders(self) -> tuple[float, ...]:
        return tuple(order for order, _ in self.curve)

    def pure_epsilon(self) -> float:
        return math.inf

    def grouped(self, size: int) -> Leaf:
        """From the curve at orders size * a and a little below: the weak triangle inequality, see `renyi.group`."""
        from discreet.accounting import renyi

        moved = renyi.group(self.rdp, size)
        rows = tuple((order / size, moved(order / size)) for order, _ in self.curve if order / size > 1)
        rows = tuple(row for row in rows if math.isfinite(row[1]))
        if not rows:
            largest = self.curve[-1][0]
            raise InvalidArgument("size", size, f"a curve with orders up to {largest:g} covers smaller groups only")
        return RenyiCurve(rows)

    def fields(self) -> dict[str, Any]:
        return {"curve": [list(row) for row in self.curve]}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        check_fields("a 'renyi' entry", values, ["curve"])
        curve = values["curve"]
        if not isinstance(curve, list) or not all(isinstance(row, list) and len(row) == 2 for row in curve):
            raise StorageError("the field 'curve' of a 'renyi' entry must be a list of [order, value] pairs.")
        return cls(tuple((row[0], row[1]) for row in curve))

    def describe(self) -> str:
        return f"renyi({len(self.curve)} orders, {self.curve[0][0]:g} to {self.curve[-1][0]:g})"
