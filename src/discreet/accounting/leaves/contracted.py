r"""A release that noise on a bounded set has blurred since: hockey-stick divergences shrink by a factor at every step.

A step w -> phi(Pi w) + N(0, nu^2 I) on a set of which phi makes an image of diameter R is a channel. Its contraction
coefficient for E_gamma is reached by two points [Asoodeh et al. 2020], here two Gaussians at distance R: it is at most
theta_gamma(R/nu), the profile of (R/nu)-GDP at epsilon = ln gamma. So a state that was mu-GDP has, k steps later,

    delta(epsilon) <= delta_mu(epsilon) prod_k theta_{e^epsilon}(R_k / nu_k).

Nothing is assumed about convexity or smoothness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.leaves.guarantees import Approximate, GaussianGuarantee
from discreet.accounting.leaves.leaf import LARGEST_EPSILON, Leaf, Rival, check_fields
from discreet.accounting.leaves.own import leaf_from_lower_curve
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.arguments import count, positive
from discreet.divergence.gaussian import log_hockey_stick_gaussian
from discreet.divergence.tradeoff import TradeOff
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.accounting.leaves.leaf import Parts
    from discreet.accounting.pair import Direction, Pair

    Reals = NDArray[np.float64]

__all__ = ["Contracted", "log_delta_of"]

_POINTS = 1200
_LAST = 1e-15
"""The table for compositions ends where delta has come down to this."""


@dataclass(frozen=True, eq=False)
class _ContractedPair(AtomsPair):
    """A table for compositions, and the closed form for a single reading; each dominates the release."""

    owner: Contracted | None = None

    def profile(self, epsilon: float, direction: Direction) -> tuple[float, float]:
        if self.owner is None or epsilon < 0:
            return super().profile(epsilon, direction)
        return 0.0, float(self.owner.profile(np.array([epsilon]))[0])


@dataclass(frozen=True)
class Contracted(Leaf):
    """A state that was mu-GDP, after steps with these ratios R/nu of diameter to noise: (how often, ratio)."""

    kind: ClassVar[str] = "contracted"
    can_be_sampled: ClassVar[bool] = False
    of_one_run: ClassVar[bool] = True
    mu: float
    ratios: tuple[tuple[int, float], ...]

    def is_of_position(self) -> bool:
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive("mu", self.mu))
        if self.mu > LARGEST_EPSILON:
            raise InvalidArgument("mu", self.mu, f"a mu above {LARGEST_EPSILON:g} protects nobody; add noise")
        rows = tuple((count("steps", times, least=1), positive("ratio", ratio)) for times, ratio in self.ratios)
        object.__setattr__(self, "ratios", rows)

    def profile(self, epsilon: Reals) -> Reals:
        """An upper bound of delta at each epsilon >= 0, of both directions."""
        log_delta = log_delta_of(self.mu, epsilon)
        for times, ratio in self.ratios:
            if ratio <= LARGEST_EPSILON:  # otherwise nothing is blurred
                log_delta = log_delta + times * log_delta_of(ratio, epsilon)
        return np.asarray(np.minimum(1.0, np.exp(np.maximum(log_delta, -744.0))))

    def pair(self) -> Pair:
        return self._pair

    @cached_property
    def _pair(self) -> Pair:
        last = 1.0
        while self.profile(np.array([last]))[0] > _LAST and last < 690:
            last *= 1.3
        low = 0.0
        for _ in range(20):  # where it has come down
            middle = 0.5 * (low + last)
            low, last = (low, middle) if self.profile(np.array([middle]))[0] <= _LAST else (middle, last)
        levels = np.linspace(0.0, last, _POINTS)
        curve = TradeOff.from_profile(lambda _: self.profile(levels), epsilons=levels)
        table = leaf_from_lower_curve(curve).pair()
        assert isinstance(table, AtomsPair)
        return _ContractedPair(
            table.loss,
            table.mass,
            table.p_missing,
            table.q_missing,
            symmetric=True,
            p_cut=table.p_cut,
            q_cut=table.q_cut,
            blur=table.blur,
            owner=self,
        )

    def witness(self) -> None:
        return None

    def alternatives(self, *, epsilon: float | None, delta: float | None) -> tuple[Parts, ...]:
        """The state as it was, and one point of the curve: the table for compositions has some mass at infinity."""
        box = self.box(epsilon=epsilon, delta=delta)
        return (((GaussianGuarantee(self.mu), 1),), *([] if box is None else [((box, 1),)]))

    def box(self, *, epsilon: float | None, delta: float | None) -> Approximate | None:
        """The (epsilon, delta) guarantee that answers this question; None where it would be empty."""
        if epsilon is not None:
            epsilon = epsilon if epsilon >= 1e-100 else 0.0
            found = float(self.profile(np.array([epsilon]))[0])
            return Approximate(epsilon, found) if epsilon <= LARGEST_EPSILON and found < 1 else None
        if delta is None or not 0 < delta < 1:
            return None
        level, low, high = delta * (1 - 1e-9), 0.0, LARGEST_EPSILON
        if self.profile(np.zeros(1))[0] <= level:
            return Approximate(0.0, level)
        if self.profile(np.array([high]))[0] > level:
            return None
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.profile(np.array([middle]))[0] <= level else (middle, high)
        return Approximate(high, level)

    def if_released(self) -> Parts:
        return ((GaussianGuarantee(self.mu), 1),)

    def gdp(self) -> float:
        return self.mu

    def zcdp(self) -> float:
        return self.mu**2 / 2 * (1 + 1e-15)

    def rdp(self, order: float) -> float:
        return order * self.zcdp() * (1 + 1e-15)

    def pure_epsilon(self) -> float:
        return math.inf

    def rivals(self) -> tuple[Rival, ...]:
        steps = sum(times for times, _ in self.ratios)
        return (
            Rival(
                "composition", ((GaussianGuarantee(self.mu), 1),), "the steps since the record's last use hide little"
            ),
            Rival(
                "contraction",
                ((self, 1),),
                f"the state was {self.mu:.6g}-GDP when the record was last used, and {steps} noisy steps on a bounded "
                "set have shrunk every hockey-stick divergence since",
            ),
        )

    def subject(self) -> str:
        return "a noisy pass on a bounded set"

    def fields(self) -> dict[str, Any]:
        return {"mu": self.mu, "ratios": [list(row) for row in self.ratios]}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Leaf:
        check_fields("a 'contracted' entry", values, ["mu", "ratios"])
        rows = values["ratios"]
        if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 2 for row in rows):
            raise StorageError("the field 'ratios' of a 'contracted' entry must be a list of [count, ratio] pairs.")
        return cls(values["mu"], tuple((row[0], row[1]) for row in rows))

    def describe(self) -> str:
        return f"contracted(mu={self.mu:.6g}, {sum(times for times, _ in self.ratios)} steps since)"


def log_delta_of(mu: float, epsilon: Reals) -> Reals:
    """ln delta of mu-GDP at each epsilon, rounded up; at most 0."""
    near = np.minimum(epsilon, mu * (1e4 + mu / 2))  # further out delta is smaller still
    value = np.asarray(log_hockey_stick_gaussian(near, mu=mu))
    return np.minimum(0.0, value + 1e-11 * (1 + np.abs(value)))
