"""What a fit may spend: an (epsilon, delta), a cost or a budget, and how it is divided among the parts of a fit."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache

from discreet.accounting.budget import Budget
from discreet.accounting.calibration import calibrate
from discreet.accounting.cost import Cost
from discreet.accounting.leaves.leaf import finite_epsilon
from discreet.arguments import ADJACENCIES, nonnegative, one_of, positive, probability, unit_fraction
from discreet.errors import InvalidArgument, WideBracket

__all__ = ["Goal"]


_NEAR = 3e-4
"""How near the logarithm of a noise multiplier beside other releases is found."""
_APART, _FARTHEST = 0.1, math.log(100.0)
"""The first step of that search, and how far it goes."""


@dataclass(frozen=True)
class Goal:
    """The most that a fit may reveal about one record: (epsilon, delta), or mu for Gaussian privacy of any delta.

    delta = 0 asks for pure epsilon. Either `epsilon` or `mu` is set; `adjacency` says what one record's presence means.
    `ratio` is set by `after`: what Gaussian releases may still reveal beside what was spent already.

    >>> round(Goal(epsilon=1.0, delta=1e-6).gaussian, 6)
    0.236704
    >>> Goal(epsilon=1.0, delta=1e-6).carve(0.1)
    (Goal(epsilon=0.1, delta=1e-07), Goal(epsilon=0.9, delta=9e-07))
    """

    epsilon: float | None = None
    delta: float = 0.0
    mu: float | None = None
    adjacency: str = "add-remove"
    ratio: float | None = None

    def __post_init__(self) -> None:
        one_of("adjacency", self.adjacency, ADJACENCIES)
        if (self.epsilon is None) == (self.mu is None):
            raise InvalidArgument("epsilon, mu", (self.epsilon, self.mu), "a goal has one of them")
        if self.mu is not None:
            positive("mu", self.mu)
            if self.delta:
                raise InvalidArgument("delta", self.delta, "a goal in mu has no delta of its own")
        else:
            positive("epsilon", self.epsilon)
            if probability("delta", self.delta) >= 1:
                raise InvalidArgument(
                    "delta", self.delta, "pass a number below 1; keep it below 1 / (number of people)"
                )

    def __repr__(self) -> str:
        inner = f"mu={self.mu:.6g}" if self.mu is not None else f"epsilon={self.epsilon:.6g}, delta={self.delta:.6g}"
        return f"Goal({inner})" if self.adjacency == "add-remove" else f"Goal({inner}, adjacency={self.adjacency!r})"

    @classmethod
    def of(
        cls,
        *,
        epsilon: object = None,
        delta: object = None,
        cost: object = None,
        budget: object = None,
        adjacency: str = "add-remove",
    ) -> Goal:
        """The goal that an estimator's arguments state: `cost` or `budget` if given, else epsilon and delta."""
        one_of("adjacency", adjacency, ADJACENCIES)
        if cost is not None and budget is not None:
            raise InvalidArgument("cost, budget", (cost, budget), "pass one of them, or epsilon and delta")
        if budget is not None:
            return cls._of_budget(budget, adjacency)
        if cost is not None:
            return cls._of_cost(cost, adjacency)
        return cls(
            epsilon=finite_epsilon(epsilon),
            delta=nonnegative("delta", 0.0 if delta is None else delta),
            adjacency=adjacency,
        )

    @classmethod
    def _of_budget(cls, budget: object, adjacency: str) -> Goal:
        if not isinstance(budget, Budget):
            raise InvalidArgument(
                "budget",
                budget,
                "pass a discreet.Budget, such as Budget(epsilon=1.0, delta=1e-6): the most that this fit may spend. "
                "A filter or a ledger pays for it by fit(X, y, charge=...)",
            )
        if budget.adjacency != adjacency:
            raise InvalidArgument("budget", budget, f"its adjacency is not the estimator's, {adjacency!r}")
        if budget.mu is not None:
            return cls(mu=positive("budget", budget.mu), adjacency=adjacency)
        if budget.rho is not None:
            return cls(mu=math.sqrt(2 * positive("budget", budget.rho)), adjacency=adjacency)
        if budget.epsilon is None:
            raise InvalidArgument("budget", budget, "state it in epsilon and delta, rho or mu")
        return cls(epsilon=positive("budget", budget.epsilon), delta=budget.delta, adjacency=adjacency)

    @classmethod
    def _of_cost(cls, cost: object, adjacency: str) -> Goal:
        if not isinstance(cost, Cost):
            raise InvalidArgument("cost", cost, "pass a discreet.Cost, such as Cost.gaussian_dp(0.2)")
        if cost.adjacency != adjacency:
            raise InvalidArgument("cost", cost, f"its adjacency is not the estimator's, {adjacency!r}")
        kinds, parts = _kinds(cost), cost.to_dict()["parts"]
        pure = cost.epsilon(0.0)
        if math.isfinite(pure) and pure > 0:
            return cls(epsilon=finite_epsilon(pure), adjacency=adjacency)
        if kinds == {"approximate"} and len(parts) == 1 and parts[0]["count"] == 1:
            return cls(epsilon=finite_epsilon(parts[0]["epsilon"]), delta=parts[0]["delta"], adjacency=adjacency)
        if kinds and kinds <= {"gaussian", "gaussian_dp", "concentrated"}:
            # a Gaussian release of sqrt(2 rho) is one of rho: exactly this cost, or less than a concentrated one allows
            return cls(mu=math.sqrt(2 * positive("cost", cost.zcdp())) * (1 - 1e-12), adjacency=adjacency)
        raise InvalidArgument(
            "cost",
            cost,
            "state the price as a plain guarantee: Cost.pure, Cost.approximate, Cost.concentrated, Cost.gaussian_dp or "
            "Cost.gaussian; or pass epsilon and delta",
        )

    @property
    def cost(self) -> Cost:
        """The goal itself as a cost: what may be said of anything that meets it."""
        if self.mu is not None:
            return Cost.gaussian_dp(self.mu, adjacency=self.adjacency)
        assert self.epsilon is not None
        if self.is_pure:
            return Cost.pure(self.epsilon, adjacency=self.adjacency)
        return Cost.approximate(self.epsilon, self.delta, adjacency=self.adjacency)

    @property
    def is_pure(self) -> bool:
        """No delta may be spent: only mechanisms of pure epsilon will do."""
        return self.mu is None and self.delta == 0

    @cached_property
    def gaussian(self) -> float:
        """The largest mu such that Gaussian releases of sensitivity-to-noise ratio mu in total meet the goal.

        Gaussian releases of ratios mu_1, mu_2, ... cost what one of sqrt(mu_1^2 + mu_2^2 + ...) does.
        """
        if self.ratio is not None:
            return self.ratio
        if self.mu is not None:
            return self.mu
        if self.is_pure:
            raise InvalidArgument("delta", self.delta, "Gaussian noise needs delta > 0; pass delta, such as 1e-6")
        assert self.epsilon is not None
        return 1 / _multiplier(self.epsilon, self.delta)

    def share(self, part: float) -> Goal:
        """A goal for something that is bought on the way: this share of epsilon and delta, or of mu squared."""
        return self.carve(part)[0]

    def after(self, spent: Cost) -> Goal:
        """What may be spent beside `spent`, which is known beforehand: less epsilon and delta, or less mu.

        What Gaussian releases may reveal is found by composing them with `spent`, so that nothing is wasted.
        """
        if self.mu is not None:
            # Gaussian privacy implies zero-concentrated privacy, so this is right for budgets in mu and in rho
            left = self.mu**2 - spent.gdp() ** 2
            if not left > 0:
                raise self._too_much(spent)
            return Goal(mu=math.sqrt(left) * (1 - 1e-12), adjacency=self.adjacency)
        assert self.epsilon is not None
        # some of delta is given up where that saves much of epsilon
        delta, paid = 0.0, _read(spent, 0.0)
        epsilon = math.nextafter(self.epsilon - paid, 0)
        if not self.is_pure and (cheaper := _read(spent, self.delta / 2)) < 0.9 * paid and cheaper < self.epsilon:
            left = math.nextafter(self.epsilon - cheaper, 0)
            left = self._box_beside(spent, left, self.delta - self.delta / 2)
            if left > epsilon:  # not where the smallest deltas cannot be read together
                delta, epsilon = self.delta / 2, left
        if not epsilon > 0:
            raise self._too_much(spent)
        ratio = None
        if not self.is_pure:
            known = spent.gdp()
            if known < 0.3 * self.gaussian:  # Gaussian privacy composes exactly, and little is lost by reading it so
                ratio = math.sqrt(self.gaussian**2 - known**2) * (1 - 1e-12)
            else:
                ratio = 1 / self._beside(spent)
        return Goal(epsilon=epsilon, delta=self.delta - delta, adjacency=self.adjacency, ratio=ratio)

    def _box_beside(self, spent: Cost, epsilon: float, delta: float) -> float:
        """At most `epsilon`, so that a box of it is also *read* as within the goal beside what was spent."""
        for _ in range(40):
            if self.met_by(spent + Cost.approximate(epsilon, delta, adjacency=self.adjacency)):
                return epsilon
            epsilon *= 0.97
        return 0.0

    def _beside(self, spent: Cost) -> float:
        """The noise multiplier of a Gaussian release that, with what was spent, meets the goal."""
        assert self.epsilon is not None
        found = _multiplier_beside(spent, self.epsilon, self.delta)
        if found is None:
            raise self._too_much(spent)
        return found

    def _too_much(self, spent: Cost) -> InvalidArgument:
        return InvalidArgument("epsilon", self.epsilon or self.mu, f"nothing is left of it after {spent!r}; pass more")

    def carve(self, share: float) -> tuple[Goal, Goal]:
        """A share of the goal, and the rest; releases that meet each of them meet this one together."""
        part = unit_fraction("share", share)
        if self.mu is not None:
            first, second = self.mu * math.sqrt(part), self.mu * math.sqrt(1 - part)
            return Goal(mu=first, adjacency=self.adjacency), Goal(mu=second * (1 - 1e-15), adjacency=self.adjacency)
        assert self.epsilon is not None
        epsilon, delta = self.epsilon * part, self.delta * part
        # what is left is rounded down, so that the two never exceed the whole
        rest = Goal(
            epsilon=math.nextafter(self.epsilon - epsilon, 0),
            delta=max(0.0, math.nextafter(self.delta - delta, 0)),
            adjacency=self.adjacency,
        )
        return Goal(epsilon=epsilon, delta=delta, adjacency=self.adjacency), rest

    def divided(self, *shares: float) -> tuple[Goal, ...]:
        """One goal for each of several releases, by shares that add up to 1 or less; together they meet this one.

        Pure goals divide epsilon, all others mu^2, which is exact for Gaussian releases: they need no delta each.
        """
        parts = [unit_fraction("shares", share) if share != 1 else 1.0 for share in shares]
        if math.fsum(parts) > 1 + 1e-12:
            raise InvalidArgument("shares", shares, "they must not add up to more than 1")
        less = 1 - 1e-12  # what rounding could add
        if self.is_pure:
            assert self.epsilon is not None
            return tuple(Goal(epsilon=self.epsilon * part * less, adjacency=self.adjacency) for part in parts)
        return tuple(Goal(mu=self.gaussian * math.sqrt(part) * less, adjacency=self.adjacency) for part in parts)

    def met_by(self, cost: Cost) -> bool:
        """Whether the certified reading of `cost` is within the goal."""
        if self.mu is not None:
            return cost.gdp() <= self.mu * (1 + 1e-9)
        assert self.epsilon is not None
        return _read(cost, self.delta) <= self.epsilon * (1 + 1e-9)


def _read(cost: Cost, delta: float) -> float:
    """The certified epsilon, while something is searched for: any valid bound will do, however wide its bracket is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBracket)
        return cost.epsilon(delta)


def _kinds(cost: Cost) -> set[str]:
    """The kinds of a cost's parts."""
    return {str(part.get("kind")) for part in cost.to_dict()["parts"]}


@lru_cache(maxsize=64)
def _multiplier_beside(spent: Cost, epsilon: float, delta: float) -> float | None:
    """At most a thousandth above the least noise multiplier that meets the goal beside `spent`; None if none does.

    A reading of several kinds of mechanism takes a tenth of a second: the last digits of noise are not worth many.
    """
    from scipy.optimize import brentq

    def excess(log_multiplier: float) -> float:
        cost = spent + Cost.gaussian(math.exp(log_multiplier), adjacency=spent.adjacency)
        return _read(cost, delta) - epsilon

    alone = math.log(_multiplier(epsilon, delta))
    low, high = alone, alone + _APART
    while excess(high) > 0:
        if high >= alone + _FARTHEST:
            return None
        low, high = high, min(high + 2 * (high - low), alone + _FARTHEST)
    if excess(low) > 0:
        high = float(brentq(excess, low, high, xtol=_NEAR))
    while excess(high) > 0:
        high += _NEAR
    return math.exp(high)


@lru_cache(maxsize=256)
def _multiplier(epsilon: float, delta: float) -> float:
    return calibrate(Cost.gaussian, epsilon=epsilon, delta=delta)
