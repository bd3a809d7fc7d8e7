"""`Target`: what one question may cost, in the notion in which the analyst stated it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discreet.accounting import Cost
from discreet.arguments import nonnegative, positive
from discreet.errors import InvalidArgument

__all__ = ["DELTA_SHARE", "Target", "target_of"]

MOST_EPSILON = 600.0
DELTA_SHARE = 100
"""A question that states no delta takes this fraction of the smallest that the budgets have which pay for it."""


@dataclass(frozen=True)
class Target:
    """The largest cost of a question: (epsilon, delta), or rho of zCDP, or mu of Gaussian DP."""

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidArgument("epsilon, cost", None, "say what the question may cost: epsilon=0.5, or cost=...")
        positive(given[0], getattr(self, given[0]))
        if nonnegative("delta", self.delta) >= 1:
            raise InvalidArgument("delta", self.delta, "pass a number below 1, such as 1e-7")

    @property
    def has_slack(self) -> bool:
        """Whether a small probability of failure is allowed: needed to show keys that are not public."""
        return self.delta > 0

    def divided(self, parts: int) -> Target:
        """An equal share for each of several blocks whose costs add up."""
        if parts == 1:
            return self
        if self.epsilon is not None:
            return Target(epsilon=self.epsilon / parts, delta=self.delta / parts)
        if self.rho is not None:
            return Target(rho=self.rho / parts)
        assert self.mu is not None
        return Target(mu=self.mu / parts**0.5)

    @property
    def unit(self) -> str:
        """The notion in which it is stated."""
        return "epsilon" if self.epsilon is not None else "rho" if self.rho is not None else "mu"

    @property
    def stated(self) -> dict[str, float]:
        """The same by name, as the ledger keeps it."""
        return {self.unit: self.size} | ({"delta": self.delta} if self.delta else {})

    @property
    def size(self) -> float:
        """How much of that."""
        return float(getattr(self, self.unit))

    def resized(self, size: float) -> Target:
        """The same kind of target with another epsilon, rho or mu."""
        return replace(self, **{self.unit: size})

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"rho = {self.rho:g}" if self.rho is not None else f"mu = {self.mu:g}"
        return f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else "")


def target_of(epsilon: object, delta: object, cost: object) -> Target:
    """The target of a call: `epsilon`, with a `delta` if there is one, or a `cost` that is a plain guarantee."""
    if (epsilon is None) == (cost is None):
        raise InvalidArgument(
            "epsilon, cost",
            (epsilon, cost),
            "say what this question may cost, in one way: epsilon=0.5, or cost=Cost.concentrated(0.01), "
            "Cost.gaussian_dp(0.2), Cost.approximate(0.5, 1e-8)",
        )
    if cost is not None:
        if delta is not None:
            raise InvalidArgument("delta", delta, "goes with epsilon=; a cost states its own")
        return _of_cost(cost)
    slack = 0.0 if delta is None else nonnegative("delta", delta)
    if positive("epsilon", epsilon) > MOST_EPSILON:
        raise InvalidArgument("epsilon", epsilon, f"above {MOST_EPSILON:g} nobody is protected; 0.1 to 1 is usual")
    return Target(epsilon=positive("epsilon", epsilon), delta=slack)


def _of_cost(cost: object) -> Target:
    advice = (
        "pass a plain guarantee: Cost.pure(e), Cost.approximate(e, d), Cost.concentrated(rho) or Cost.gaussian_dp(mu)"
    )
    if not isinstance(cost, Cost):
        raise InvalidArgument("cost", cost, advice)
    if cost.adjacency != "add-remove":
        raise InvalidArgument("cost", cost, "questions protect against adding or removing a person: state it for that")
    parts = cost.to_dict()["parts"]
    if len(parts) != 1 or parts[0]["count"] != 1:
        raise InvalidArgument("cost", cost, advice)
    fields = parts[0]
    kind = fields.get("kind")
    if kind == "pure":
        return Target(epsilon=fields["epsilon"])
    if kind == "approximate":
        return Target(epsilon=fields["epsilon"], delta=fields["delta"])
    if kind == "concentrated":
        return Target(rho=fields["rho"])
    if kind == "gaussian_dp":
        return Target(mu=fields["mu"])
    if kind == "gaussian":
        return Target(mu=1 / fields["noise_multiplier"])
    if kind == "laplace":
        return Target(epsilon=1 / fields["noise_multiplier"])
    raise InvalidArgument("cost", cost, advice)
