r"""`Budget`: a promise about everything that will ever be released, and the limits that keep it.

| budget | promise | limit | proved by |
|---|---|---|---|
| `Budget(epsilon=e)` | e-DP | sum of epsilon <= e | [Rogers et al. 2016] |
| `Budget(rho=r)` | r-zCDP | sum of rho <= r | [Feldman and Zrnic 2021; Lécuyer 2021], at every order |
| `Budget(mu=m)` | m-GDP | sum of mu^2 <= m^2 | [Smith and Thakurta 2022; Koskela et al. 2023] |
| `Budget(renyi={a: r})` | D_a <= r at *every* order given | sum of D_a <= r | [Feldman and Zrnic 2021; Lécuyer 2021] |
| `Budget(epsilon=e, delta=d)` | (e, d)-DP | below | below |

**(epsilon, delta).** Delta is divided among several limits, once and for all. A release is admitted as long as the
leaks so far fit into their share of delta *and at least one* of these holds for all that was released:

* sum of epsilon <= e; needs no share of delta, as no loss then exceeds e;
* sum of mu^2 <= m^2, with m the largest mu that is (e, share * d)-DP;
* for one of the orders a: sum of D_a <= r(a), the largest divergence of that order that converts to (e, share * d)-DP.

Proof. Let L be the loss of the whole transcript. For one limit alone, halt the interaction just before it would be
exceeded: the halted interaction is (e, share * d)-DP, so E[(1 - e^{e-L})_+] over the transcripts that stay within that
limit is at most share * d. Every transcript stays within at least one of them; the shares add up.

**The division is needed.** To admit as long as *some* order keeps its full limit (share 1 for each) is not valid: which
order survives may depend on the answers, and an adversary can make one part of the answers exhaust delta at one order
and the rest exhaust it again at another. Nor may delta move between leaks and losses on the way. Both adversaries are
in the tests. If the kinds of releases are known in advance, put the whole share where they are cheap:
`shares={"gaussian": 1}` is exact for Gaussian noise, `shares={"leak": 1}` is basic composition, `shares={16.0: 1}` a
single Rényi order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.accounting import gaussian_dp, renyi
from discreet.accounting.charges import LARGEST_EPSILON, Exact, Quantity, decimal, finite
from discreet.accounting.classic import ceiling
from discreet.accounting.cost import Cost
from discreet.arguments import ADJACENCIES, nonnegative, one_of, positive, real
from discreet.errors import InvalidArgument, StorageError, left

__all__ = ["Budget", "Limit", "Shares", "checked_shares"]

_ORDERS_PER_OCTAVE = 8
_SIDE_ORDERS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # octaves of order - 1 away from the main order, on both sides
_QUARTER = 0.25

LEAST_DELTA = 1e-300
"""Parts of a smaller delta would be rounded to nothing."""

_EXAMPLE = '{"leak": 0.1, "gaussian": 0.4, 16.0: 0.5}'

Shares = tuple[tuple[str | float, float], ...]


@dataclass(frozen=True)
class Limit:
    """A quantity and the largest total of it; `delta` is the share of delta that pays for reaching it."""

    quantity: Quantity
    most: Fraction
    delta: float = 0.0

    def holds(self, total: Exact) -> bool:
        """Whether the total keeps the limit."""
        return total <= self.most


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much may be revealed about one person in total, in one unit; see the module for what each one promises.

    `shares` divides delta: `"leak"` for releases that carry a delta of their own, `"gaussian"`, and Rényi orders. By
    default a quarter each goes to leaks, to Gaussian releases, to the Rényi order that is best for zCDP-like releases,
    and to up to twelve orders around it.

    >>> Budget(epsilon=1.0, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    mu: float | None = None
    renyi: Mapping[float, float] | tuple[tuple[float, float], ...] | None = None
    shares: Mapping[str | float, float] | Shares | None = None
    adjacency: str = "add-remove"

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu", "renyi") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidArgument(
                "epsilon, rho, mu, renyi",
                tuple(given) or None,
                "a budget has one unit: Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6), Budget(rho=0.1), "
                "Budget(mu=0.5) or Budget(renyi={8.0: 1.0})",
            )
        one_of("adjacency", self.adjacency, ADJACENCIES)
        if given != ["renyi"]:
            object.__setattr__(self, given[0], nonnegative(given[0], getattr(self, given[0])))
        else:
            object.__setattr__(self, "renyi", _curve(self.renyi))
        if self.epsilon is not None and self.epsilon > LARGEST_EPSILON:
            raise InvalidArgument("epsilon", self.epsilon, f"above {LARGEST_EPSILON:g} nobody is protected; pass less")
        delta = nonnegative("delta", self.delta)
        if delta >= 1:
            raise InvalidArgument("delta", self.delta, "pass a number below 1; keep it below 1 / (number of people)")
        if 0 < delta < LEAST_DELTA:
            raise InvalidArgument("delta", self.delta, f"pass 0, or at least {LEAST_DELTA:g}")
        if delta > 0 and self.epsilon is None:
            raise InvalidArgument(
                "delta", self.delta, "only a budget in epsilon has a delta: Budget(epsilon=..., delta=...)"
            )
        object.__setattr__(self, "delta", delta)
        if self.shares is not None:
            if delta == 0:
                raise InvalidArgument(
                    "shares",
                    self.shares,
                    "shares divide the delta of a budget, and this one has none: write "
                    "Budget(epsilon=1.0, delta=1e-6, shares={...}), or leave them out",
                )
            object.__setattr__(self, "shares", checked_shares(self.shares))

    @property
    def unit(self) -> str:
        """The unit of `Filter.remaining`: "epsilon", "rho" or "mu"."""
        return "epsilon" if self.epsilon is not None else "mu" if self.mu is not None else "rho"

    def left(self, remaining: float, *, digits: int = 6) -> str:
        """What is left of it, as it is shown: rounded down, and 0 where it is less than a billionth of what adds up.

        >>> Budget(epsilon=1.0).left(0.3), Budget(epsilon=1.0).left(1.49e-12)
        ('0.3', '0')
        """
        whole = min(value / order for order, value in self._renyi()) if self.renyi else getattr(self, self.unit)
        return left(remaining, of=whole, squared=self.mu is not None, digits=digits)

    def part(self, share: float) -> Budget:
        """The budget of which 1 / share make this one together.

        >>> Budget(epsilon=10.0, delta=1e-6).part(0.25)
        Budget(epsilon=2.5, delta=2.5e-07)
        """
        if self.renyi is not None:
            return replace(self, renyi=tuple((order, _times(share, value)) for order, value in self._renyi()))
        if self.mu is not None:
            return replace(self, mu=math.sqrt(share) * self.mu)
        if self.rho is not None:
            return replace(self, rho=_times(share, self.rho))
        assert self.epsilon is not None
        epsilon, delta = _times(share, self.epsilon), _times(share, self.delta)
        if delta < LEAST_DELTA:
            return replace(self, epsilon=epsilon, delta=0.0, shares=None)
        return replace(self, epsilon=epsilon, delta=delta)

    @property
    def cost(self) -> Cost:
        """What the whole interaction may be said to cost once a filter with this budget guards it."""
        if self.epsilon is not None:
            return Cost.approximate(self.epsilon, self.delta, adjacency=self.adjacency)
        if self.rho is not None:
            return Cost.concentrated(self.rho, adjacency=self.adjacency)
        if self.mu is not None:
            return Cost.gaussian_dp(self.mu, adjacency=self.adjacency)
        return Cost.renyi(dict(self._renyi()), adjacency=self.adjacency)

    def required(self) -> tuple[Limit, ...]:
        """The limits that must all hold."""
        if self.rho is not None:
            return (Limit(Quantity("rho"), _fraction(self.rho)),)
        if self.mu is not None:
            return (Limit(Quantity("mu2"), _fraction(self.mu) ** 2),)
        if self.epsilon is None:
            return tuple(Limit(Quantity("renyi", order), _fraction(value)) for order, value in self._renyi())
        if self.delta == 0:
            return (Limit(Quantity("epsilon"), _fraction(self.epsilon)),)
        share = dict(self.divided()).get("leak", 0.0)
        return (Limit(Quantity("leak"), _fraction(share) * _fraction(self.delta)),)

    def alternatives(self) -> tuple[Limit, ...]:
        """The limits of which at least one must hold; none for budgets other than (epsilon, delta)."""
        if self.epsilon is None or self.delta == 0:
            return ()
        limits = [Limit(Quantity("epsilon", without_leak=True), _fraction(self.epsilon))]
        for name, share in self.divided():
            delta = -ceiling(-_fraction(share) * _fraction(self.delta))
            if name == "gaussian":
                most = gaussian_dp.largest_mu(self.epsilon, delta)
                limits.append(Limit(Quantity("mu2", without_leak=True), Fraction(most) ** 2, delta))
            elif name != "leak":
                order = float(name)
                most = renyi_limit(order, self.epsilon, delta)
                if most > 0:
                    limits.append(Limit(Quantity("renyi", order, without_leak=True), Fraction(most), delta))
        return tuple(limits)

    def divided(self) -> Shares:
        """The shares of delta, as given or by default."""
        if self.epsilon is None or self.delta == 0:
            return ()
        if self.shares is not None:
            assert isinstance(self.shares, tuple)
            return self.shares
        return _default_shares(self.epsilon, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """The budget as JSON values, with the division of delta written out."""
        if self.renyi is not None:
            return {"renyi": [list(row) for row in self._renyi()], "adjacency": self.adjacency}
        amount = {self.unit: getattr(self, self.unit)}
        if self.delta > 0:
            amount |= {"delta": self.delta, "shares": [list(row) for row in self.divided()]}
        return amount | {"adjacency": self.adjacency}

    @classmethod
    def from_dict(cls, description: object) -> Budget:
        """The budget that `to_dict` described."""
        known = {"epsilon", "delta", "rho", "mu", "renyi", "shares", "adjacency"}
        if not isinstance(description, Mapping) or not set(description) <= known:
            raise StorageError(f"a budget is an object with fields among {sorted(known)}. See Budget.to_dict().")
        values = dict(description)
        try:
            for name in ("renyi", "shares"):
                if name in values:
                    values[name] = tuple((row[0], row[1]) for row in values[name])
            return cls(**values)
        except (TypeError, IndexError, KeyError) as error:
            raise StorageError(f"the description of a budget is malformed: {error}. See Budget.to_dict().") from error
        except InvalidArgument as error:
            raise StorageError(f"the description of a budget has an invalid value: {error}") from error

    def __repr__(self) -> str:
        if self.renyi is not None:
            shown = [f"renyi={dict(self._renyi())!r}"]
        else:
            shown = [f"{self.unit}={getattr(self, self.unit)!r}"]
        if self.delta > 0:
            shown.append(f"delta={self.delta!r}")
        if self.shares is not None:
            shown.append(f"shares={dict(self.divided())!r}")
        if self.adjacency != "add-remove":
            shown.append(f"adjacency={self.adjacency!r}")
        return f"Budget({', '.join(shown)})"

    def _renyi(self) -> tuple[tuple[float, float], ...]:
        assert isinstance(self.renyi, tuple)
        return self.renyi


def _times(share: float, value: float) -> float:
    """The product of two numbers as they are written: a tenth of 3 is 0.3."""
    return float(_fraction(share) * _fraction(value))


def _fraction(value: float) -> Fraction:
    return finite(decimal(value))


def _curve(given: object) -> tuple[tuple[float, float], ...]:
    rows = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(rows, tuple) or not rows:
        raise InvalidArgument("renyi", given, "pass a mapping {order: value} with at least one order > 1")
    return tuple(sorted((_order("order", order), nonnegative(f"renyi[{order}]", value)) for order, value in rows))


def _order(argument: str, value: object) -> float:
    order = real(argument, value, advice="pass an order > 1")
    if order <= 1:
        raise InvalidArgument(argument, value, "pass an order > 1")
    return order


def checked_shares(given: object) -> Shares:
    """The shares of delta as rows, if they are known names or orders > 1 and add up to at most 1."""
    rows = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(rows, tuple) or not rows or not all(isinstance(row, tuple) and len(row) == 2 for row in rows):
        raise InvalidArgument("shares", given, f"pass a mapping such as {_EXAMPLE}")
    checked: dict[str | float, float] = {}
    for name, share in rows:
        try:
            key = one_of("shares", name, ("leak", "gaussian")) if isinstance(name, str) else _order("shares", name)
        except InvalidArgument as error:
            advice = f"the keys are 'leak', 'gaussian' and Rényi orders > 1, as in {_EXAMPLE}"
            raise InvalidArgument("a key of shares", name, advice) from error
        checked[key] = positive(f"shares[{name!r}]", share)
    total = sum((_fraction(share) for share in checked.values()), Fraction(0))
    if total > 1:
        raise InvalidArgument(
            "shares", dict(rows), f"they add up to {float(total):.6g}; parts of one delta add up to at most 1"
        )
    return tuple(checked.items())


@lru_cache(maxsize=256)
def _default_shares(epsilon: float, delta: float) -> Shares:
    """A quarter each for leaks, Gaussians, the main order, and together the orders around it that can be of any use."""
    main = _main_step(epsilon, _QUARTER * delta)
    steps = [main + sign * round(octaves * _ORDERS_PER_OCTAVE) for octaves in _SIDE_ORDERS for sign in (-1, 1)]
    orders = [_grid_order(step) for step in sorted(steps)]
    useful = [order for order in orders if _closed_limit(order, epsilon, delta * _QUARTER / len(orders)) > 0] or orders
    each = math.floor(1000 * _QUARTER / len(useful)) / 1000
    return ("leak", _QUARTER), ("gaussian", _QUARTER), (_grid_order(main), _QUARTER), *((o, each) for o in useful)


def _grid_order(step: int) -> float:
    """1 + 2^(step/8), to six digits so that it prints short."""
    return float(f"{1 + 2 ** (step / _ORDERS_PER_OCTAVE):.6g}")


def _main_step(epsilon: float, delta: float) -> int:
    """The order of the grid that admits the largest rho: it maximises r(order) / order, by the closed conversion."""
    return max(range(-48, 97), key=lambda step: _closed_limit(_grid_order(step), epsilon, delta) / _grid_order(step))


def _closed_limit(order: float, epsilon: float, delta: float) -> float:
    """r with r + ln((a-1)/a) - (ln delta + ln a)/(a-1) = epsilon; negative where even r = 0 does not reach it."""
    return epsilon + math.log1p(1 / (order - 1)) + (math.log(delta) + math.log(order)) / (order - 1)


@lru_cache(maxsize=4096)
def renyi_limit(order: float, epsilon: float, delta: float) -> float:
    """The largest divergence of this order that certainly converts to (epsilon, delta), to about ten digits.

    `renyi.epsilon_at_order` is certified and grows with the divergence, so every value at which it stays at or below
    epsilon is valid. Both conversions of `renyi` are tried by it, so the closed one gives a first valid value.
    """

    def excess(value: float) -> float:
        return renyi.epsilon_at_order(order, value, delta) - epsilon

    low = max(_closed_limit(order, epsilon, delta) * (1 - 1e-12) - 1e-12, 0.0)
    at_low = excess(low)
    if at_low > 0:
        return 0.0
    step = 1.01 * -at_low + 1e-6
    high = low + step
    while (at_high := excess(high)) <= 0:
        low, at_low, step = high, at_high, 2 * step
        high = low + step
    while high - low > 1e-11 * low + 1e-300:
        # a secant on both sides of its root, then a half: mostly two or three rounds
        root = low - at_low * (high - low) / (at_high - at_low)
        nudge = 0.4e-11 * root
        for tried in (root - nudge, root + nudge, None):
            value = 0.5 * (low + high) if tried is None else tried
            if not low < value < high or (tried is None and high - low <= 1e-11 * low):
                continue
            found = excess(value)
            if found <= 0:
                low, at_low = value, found
            else:
                high, at_high = value, found
    return low
