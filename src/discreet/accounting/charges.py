r"""What a cost adds to the running totals of a filter: exact numbers, one for each quantity that is counted.

A float stands for the shortest decimal that prints it, so 0.1 is one tenth and ten of them are one; totals are exact
fractions. Leaves answer with upper bounds, so no total is below the true one.

**Leaks.** Some mechanisms have an infinite loss with a small probability: an (epsilon, delta) box, or a pair (P, Q)
with outcomes that the other distribution lacks. Let m be the larger of the two missing masses and P', Q' the two
distributions given that the outcome exists in both. Then both are mixtures with the same weight,

    P = m P" + (1 - m) P',        Q = m Q" + (1 - m) Q',

as P - (1 - m) P' and Q - (1 - m) Q' are nonnegative: the mechanism leaks with probability m, whatever the data, and is
(P', Q') otherwise. For a box this is [Kairouz et al. 2015, Thm 3.3] with m = delta and P', Q' within e^epsilon of each
other. A filter counts m as leaked, and the rest by the divergences of P' and Q'. Adaptively chosen leaks add up: the
probability that anything leaks is at most the largest sum of the m along a path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.classic import ceiling
from discreet.accounting.leaves.guarantees import Pure
from discreet.accounting.pair import Direction, Pair
from discreet.accounting.saddle import Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from discreet.accounting.leaves.leaf import Leaf

__all__ = [
    "INFINITE",
    "LARGEST_EPSILON",
    "Exact",
    "Quantity",
    "decimal",
    "finite",
    "floor_decimal",
    "floor_root",
    "up",
    "up_root",
]

Exact = Fraction | float
"""A fraction, or infinity (the only float that occurs)."""

INFINITE: float = math.inf

_MARGIN = 1 + 1e-14  # lifts what is computed here from a few elementary functions
_MOST_NODES = 100_000

LARGEST_EPSILON = 600.0
"""No single release may have a larger epsilon, and no budget either."""


@dataclass(frozen=True)
class Quantity:
    """Something that adds up over adaptively chosen releases.

    `kind` is one of `"leak"` (probability of an infinite loss), `"epsilon"`, `"rho"`, `"mu2"` (the square of mu) and
    `"renyi"` (with its order). `without_leak` counts what is left of a mechanism when its leak is counted elsewhere.
    """

    kind: str
    order: float = math.inf
    without_leak: bool = False

    @property
    def unit(self) -> str:
        """The name that people know the quantity by."""
        if self.kind == "renyi":
            return f"Rényi divergence of order {self.order:g}"
        return {"leak": "delta", "mu2": "mu^2"}.get(self.kind, self.kind)

    def of(self, parts: Iterable[tuple[Leaf, int]]) -> Exact:
        """The exact total over leaves and how often each is used."""
        total: Exact = Fraction(0)
        for leaf, times in parts:
            total = total + times * _amount(self, leaf)
            if total == INFINITE:
                break
        return total


def decimal(value: float) -> Exact:
    """The exact value of the decimal that a float prints as."""
    return INFINITE if value == math.inf else Fraction(repr(float(value)))


def floor_decimal(exact: Exact) -> float:
    """The largest float >= 0 whose decimal is at most `exact`, 0 if that is negative."""
    if exact == INFINITE:
        return math.inf
    if exact <= 0:
        return 0.0
    try:
        value = float(exact)
    except OverflowError:
        return float(np.finfo(float).max)
    while decimal(math.nextafter(value, math.inf)) <= exact:
        value = math.nextafter(value, math.inf)
    while decimal(value) > exact:
        value = math.nextafter(value, 0.0)
    return value


def floor_root(exact: Exact) -> float:
    """The largest float >= 0 whose decimal has a square of at most `exact`."""
    if exact == INFINITE:
        return math.inf
    if exact <= 0:
        return 0.0
    whole = finite(exact)
    # by whole numbers of about 128 bits: the square of a float may be too large or too small for one
    scale = 64 - (whole.numerator.bit_length() - whole.denominator.bit_length()) // 2
    power = Fraction(2) ** scale
    root = min(float(Fraction(math.isqrt(math.floor(whole * power * power))) / power), float(np.finfo(float).max))
    while decimal(math.nextafter(root, math.inf)) ** 2 <= exact:
        root = math.nextafter(root, math.inf)
    while decimal(root) ** 2 > exact:
        root = math.nextafter(root, 0.0)
    return root


def up(exact: Exact) -> float:
    """The smallest float whose decimal is not below."""
    if exact == INFINITE:
        return math.inf
    value = ceiling(finite(exact))
    if value < math.inf and decimal(value) < exact:
        return math.nextafter(value, math.inf)
    below = math.nextafter(value, -math.inf)
    return below if decimal(below) >= exact else value


def up_root(exact: Exact) -> float:
    """A float whose decimal is not below the root, at most one step above the smallest such."""
    if exact == INFINITE:
        return math.inf
    root = math.sqrt(ceiling(finite(exact)))
    return root if decimal(root) ** 2 >= exact else math.nextafter(root, math.inf)


def finite(exact: Exact) -> Fraction:
    """The fraction, for a number that is known not to be infinite."""
    assert not isinstance(exact, float)
    return exact


@lru_cache(maxsize=1 << 16)
def _amount(quantity: Quantity, leaf: Leaf) -> Exact:
    pair = leaf.pair()
    leak = 0.0 if pair is None else max(pair.p_missing, pair.q_missing)
    if quantity.kind == "leak":
        return decimal(leak)
    if leak == 0 or not quantity.without_leak:
        return _of_leaf(quantity, leaf)
    assert pair is not None
    if leak >= 1:
        return Fraction(0)  # all of it leaks
    rest = _largest_loss(pair)
    if quantity.kind == "epsilon" or rest == 0:
        return decimal(rest)
    whole = _of_leaf(quantity, Pure(rest)) if rest <= LARGEST_EPSILON else INFINITE
    return min(whole, decimal(_finite_renyi(pair, quantity.order))) if quantity.kind == "renyi" else whole


def _of_leaf(quantity: Quantity, leaf: Leaf) -> Exact:
    if quantity.kind == "epsilon":
        return decimal(leaf.pure_epsilon())
    if quantity.kind == "rho":
        return decimal(leaf.zcdp())
    if quantity.kind == "mu2":
        mu = decimal(leaf.gdp())
        return mu if mu == INFINITE else mu * mu
    try:
        value = leaf.rdp(quantity.order)
    except (OverflowError, Unreachable):
        value = math.inf  # too far out to be computed: this order is of no use for this leaf
    return decimal(min(value, leaf.zcdp() * quantity.order * _MARGIN))


def _largest_loss(pair: Pair) -> float:
    """The largest loss, in either order, given that the outcome exists in both."""
    low, high = pair.span
    shift = math.log1p(-pair.q_missing) - math.log1p(-pair.p_missing)  # of ln dP'/dQ' against ln dP/dQ
    if pair.symmetric:
        return max(high, 0.0) + abs(shift)
    return max(high + shift, -low - shift, 0.0) * _MARGIN


def _finite_renyi(pair: Pair, order: float) -> float:
    """The larger Rényi divergence of P', Q': ln(sum P'^a Q'^(1-a)) / (a-1), from the sum over P and Q."""
    worst = 0.0
    for direction in pair.directions():
        powers = direction.power(np.array([complex(order - 1)]))
        power = float(powers[0].real)
        try:
            if pair.node_count((power, power), 0.0) > _MOST_NODES:
                return math.inf
            value, error = pair.log_power_mean(powers)
        except (OverflowError, Unreachable):
            return math.inf
        own, other = pair.infinite(direction), pair.infinite(_other(direction))
        if pair.symmetric:  # one direction stands for both: take the worse assignment of the two masses
            own, other = max(own, other), min(own, other)
        total = float(value[0].real) + float(error[0]) - order * math.log1p(-own) + (order - 1) * math.log1p(-other)
        worst = max(worst, total / (order - 1) * _MARGIN)
    return worst


def _other(direction: Direction) -> Direction:
    return Direction.BACKWARD if direction is Direction.FORWARD else Direction.FORWARD
