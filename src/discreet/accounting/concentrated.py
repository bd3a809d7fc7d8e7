r"""The concentrated accountant: rho-zCDP, with certified brackets.

A mechanism is rho-zCDP if D_alpha <= alpha rho for all orders alpha > 1 and both orders of every neighbouring pair
[Bun and Steinke 2016, Def. 1.1]. Compositions add up [Bun and Steinke 2016, Lemma 1.7]. The neighbouring relation is
that under which rho was found.

* Upper ends: the Rényi conversions of `renyi`, minimised over all real orders; every order is valid.
* Lower ends: the Gaussian mechanism with mu = sqrt(2 rho) is rho-zCDP, so no function of rho alone can promise less
  than it has. Between the two lies what the number rho leaves open, not a lack of computation.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.accounting import gaussian_dp, renyi
from discreet.accounting.classic import ceiling
from discreet.arguments import count, nonnegative, probability
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["compose", "delta", "delta_bounds", "epsilon", "epsilon_bounds", "group"]


def epsilon(rho: float, delta: float, *, conversion: str = "optimal") -> float:
    r"""Certified epsilon at `delta` of every rho-zCDP mechanism: the minimum over real orders alpha > 1 of

        alpha rho + ln((alpha-1)/alpha) - (ln delta + ln alpha) / (alpha-1)              (conversion "improved")

    [Canonne et al. 2020, Prop. 12], or of the optimal conversion of each order. Infinite for delta = 0 < rho.

    >>> round(epsilon(0.5, 1e-6), 6)
    5.221534
    """
    rho, delta = nonnegative("rho", rho), probability("delta", delta)
    return renyi.epsilon(lambda order: _raised(order, rho), delta, conversion=conversion)


def delta(rho: float, epsilon: float, *, conversion: str = "optimal") -> float:
    """Certified delta at `epsilon` of every rho-zCDP mechanism: the minimum over real orders, as in `epsilon`.

    >>> round(delta(0.5, 5.221534), 10)
    1e-06
    """
    rho, epsilon = nonnegative("rho", rho), nonnegative("epsilon", epsilon)
    return renyi.delta(lambda order: _raised(order, rho), epsilon, conversion=conversion)


def epsilon_bounds(rho: float, delta: float) -> tuple[float, float]:
    """(lower, upper): what the Gaussian mechanism has at `delta`, and what every rho-zCDP mechanism has at most."""
    rho, delta = nonnegative("rho", rho), probability("delta", delta)
    return gaussian_dp.epsilon_bounds(_gaussian_mu(rho), delta)[0], epsilon(rho, delta)


def delta_bounds(rho: float, epsilon: float) -> tuple[float, float]:
    """(lower, upper): what the Gaussian mechanism has at `epsilon`, and what every rho-zCDP mechanism has at most."""
    rho, epsilon = nonnegative("rho", rho), nonnegative("epsilon", epsilon)
    return gaussian_dp.delta_bounds(_gaussian_mu(rho), epsilon)[0], delta(rho, epsilon)


def compose(rhos: Sequence[float], *, counts: Sequence[int] | None = None) -> float:
    """sum count rho, the rho of a composition, rounded upward. [Bun and Steinke 2016, Lemma 1.7]

    >>> compose([0.5, 0.25], counts=[2, 4])
    2.0
    """
    if counts is not None and len(counts) != len(rhos):
        raise InvalidArgument("counts", counts, f"pass one count for each of the {len(rhos)} values of rho")
    times = [1] * len(rhos) if counts is None else [count(f"counts[{i}]", k) for i, k in enumerate(counts)]
    return ceiling(sum((k * Fraction(nonnegative(f"rhos[{i}]", rhos[i])) for i, k in enumerate(times)), Fraction(0)))


def group(rho: float, size: int) -> float:
    """size^2 rho, the rho for groups of `size` people, rounded upward. [Bun and Steinke 2016, Prop. 1.9]"""
    return ceiling(count("size", size, least=1) ** 2 * Fraction(nonnegative("rho", rho)))


def _raised(order: float, rho: float) -> float:
    """order * rho, rounded upward; 0 for rho = 0 even at order infinity."""
    return math.nextafter(order * rho, math.inf) if rho > 0.0 else 0.0


def _gaussian_mu(rho: float) -> float:
    """sqrt(2 rho), rounded downward."""
    return math.nextafter(math.sqrt(2.0 * rho), 0.0)
