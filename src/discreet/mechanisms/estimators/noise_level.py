"""How much noise a whole release gets, and the part of it that each of its statistics gets.

Parts with shares w_1 + ... + w_k = 1 get noise multipliers m_i with 1 / m_i^2 = w_i / m^2 for Gaussian noise and
1 / m_i = w_i / m for Laplace noise, rounded up: the composition is then at most that of one release with multiplier m.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

from discreet.accounting.leaves.leaf import decimal, rounded_up
from discreet.arguments import one_of, positive
from discreet.errors import InvalidArgument
from discreet.mechanisms.gaussian import Gaussian, gaussian_multiplier
from discreet.mechanisms.laplace import Laplace, laplace_multiplier
from discreet.mechanisms.selection import level
from discreet.mechanisms.sensitivity import as_written, root_above

__all__ = ["noise_level", "noisy", "part_multiplier"]

_HAIR = 1 + Fraction(1, 1 << 48)
"""Sums of costs are rounded up; with a hair more noise they stay within the level that was asked for."""


def noise_level(
    noises: tuple[str, ...], *, epsilon: object, delta: object, rho: object, noise: str, noise_multiplier: float
) -> tuple[str, float]:
    """The kind of noise and its multiplier, from exactly one of the ways to say it."""
    given = {"epsilon": epsilon, "rho": rho, "noise_multiplier": noise_multiplier or None}
    passed = [name for name, value in given.items() if value is not None]
    if len(passed) != 1 or (delta is not None and passed != ["epsilon"]):
        raise InvalidArgument(
            "epsilon, delta, rho, noise_multiplier",
            (epsilon, delta, rho, noise_multiplier or None),
            "pass epsilon, epsilon and delta, rho, or noise_multiplier",
        )
    implied = "laplace" if passed == ["epsilon"] and delta is None else "gaussian"
    kind = one_of("noise", noise or implied, ("laplace", "gaussian"))
    if passed != ["noise_multiplier"] and kind != implied:
        raise InvalidArgument(
            "noise", noise, "epsilon alone means Laplace noise; epsilon and delta, or rho, mean Gaussian noise"
        )
    if kind not in noises:
        raise InvalidArgument("noise", kind, "this estimator needs Gaussian noise: pass epsilon and delta, or rho")
    if passed == ["rho"]:
        # 1 / sqrt(2 rho), rounded up
        exact = 1 / (2 * decimal(positive("rho", rho)))
        return kind, _not_below(root_above(exact.numerator * exact.denominator) / exact.denominator)
    multiplier = noise_multiplier or None
    if kind == "laplace":
        return kind, laplace_multiplier(epsilon, multiplier, None, 1.0)
    return kind, gaussian_multiplier(multiplier, epsilon, delta)


def part_multiplier(noise: str, noise_multiplier: float, share: Fraction) -> float:
    """The noise multiplier of a part with this share of the whole."""
    if share == 1:
        return noise_multiplier
    factor = 1 / share if noise == "laplace" else root_above(share.numerator * share.denominator) / share.numerator
    return _not_below(as_written(noise_multiplier) * factor * _HAIR)


def noisy(
    estimator: Any, sensitivity: Fraction | float, share: Fraction = Fraction(1), **options: Any
) -> Laplace | Gaussian:
    """The mechanism for a part with this share: `sensitivity` is l1 for Laplace noise and l2 for Gaussian noise."""
    kind = Laplace if estimator.noise == "laplace" else Gaussian
    multiplier = part_multiplier(estimator.noise, estimator.noise_multiplier, share)
    return kind(
        noise_multiplier=multiplier, sensitivity=cast("float", sensitivity), adjacency=estimator.adjacency, **options
    )


def _not_below(exact: Fraction) -> float:
    """A float that is not below `exact` in either of its readings."""
    value = rounded_up(exact)
    while level(value) < exact:
        value = math.nextafter(value, math.inf)
    return value
