r"""How much one person can change a value: one number in one norm, converted only upwards.

For a change v of a vector with d coordinates,

    ||v||_2 <= ||v||_1 <= sqrt(d) ||v||_2,      ||v||_inf <= ||v||_2 <= sqrt(d) ||v||_inf,      ||v||_1 <= d ||v||_inf.

A bound in one norm becomes one in another by these and by nothing else, rounded up. Where a conversion needs d, the
mechanism must be told `dimension`, and then releases values of that size alone.
"""

from __future__ import annotations

import math
import numbers
from fractions import Fraction

from discreet.accounting.leaves.leaf import decimal
from discreet.arguments import count, positive
from discreet.errors import InvalidArgument

__all__ = ["as_written", "below", "checked_dimension", "in_l1", "in_l2", "root_above", "sensitivity_of", "whole_square"]


def as_written(value: float) -> Fraction:
    """The larger of a float's exact value and the decimal number it prints as: noise for both readings."""
    return max(Fraction(value), decimal(value))


def below(exact: Fraction) -> float:
    """The largest float that is not above `exact` in either of its readings."""
    value = float(exact)
    while as_written(value) > exact:
        value = math.nextafter(value, 0.0)
    return value


def sensitivity_of(argument: str, value: object) -> float:
    """A positive float, never below what was passed; a float stands for its exact value."""
    number = positive(argument, value)
    if isinstance(value, numbers.Rational):
        number = _above(Fraction(int(value.numerator), int(value.denominator)))
    if not 1e-250 <= number <= 1e250:
        raise InvalidArgument(argument, value, "pass a sensitivity between 1e-250 and 1e250: choose other units")
    return number


def checked_dimension(value: object) -> int | None:
    """A number of coordinates, if one was declared."""
    return None if value is None else count("dimension", value, least=1)


def root_above(number: int) -> Fraction:
    """sqrt(number) rounded up to a multiple of 2^-64, exact for squares."""
    scaled = number << 128
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << 64)


def whole_square(sensitivity: float) -> int:
    """The largest square of a change of integers within this l2 sensitivity; the float nearest to sqrt(3) gives 3."""
    return math.floor(Fraction(sensitivity) ** 2 * (1 + Fraction(1, 10**14)))


def in_l1(sensitivity: object, l1: object, l2: object, linf: object, dimension: int | None) -> float:
    """The l1 sensitivity from exactly one of a bare one (which is l1), an l1, an l2 or an l-infinity one."""
    name, value = _only(sensitivity=sensitivity, l1_sensitivity=l1, l2_sensitivity=l2, linf_sensitivity=linf)
    number = sensitivity_of(name, value)
    if name in ("sensitivity", "l1_sensitivity"):
        return number
    factor = root_above(_needed(name, dimension)) if name == "l2_sensitivity" else Fraction(_needed(name, dimension))
    return _times(number, factor)


def in_l2(sensitivity: object, l1: object, l2: object, linf: object, dimension: int | None) -> float:
    """The l2 sensitivity from exactly one of a bare one (which is l2), an l1, an l2 or an l-infinity one."""
    name, value = _only(sensitivity=sensitivity, l1_sensitivity=l1, l2_sensitivity=l2, linf_sensitivity=linf)
    number = sensitivity_of(name, value)
    if name != "linf_sensitivity":  # the l2 norm is at most the l1 norm
        return number
    return _times(number, root_above(_needed(name, dimension)))


def _times(number: float, factor: Fraction) -> float:
    return number if factor == 1 else _above(Fraction(number) * factor)


def _above(exact: Fraction) -> float:
    """The smallest float that is not below `exact`."""
    value = float(exact)
    return value if Fraction(value) >= exact else math.nextafter(value, math.inf)


def _only(**given: object) -> tuple[str, object]:
    passed = [(name, value) for name, value in given.items() if value is not None]
    if len(passed) != 1:
        raise InvalidArgument(
            "sensitivity",
            dict(passed) or None,
            f"pass exactly one of {', '.join(given)}: how much one person can change the value",
        )
    return passed[0]


def _needed(name: str, dimension: int | None) -> int:
    if dimension is None:
        raise InvalidArgument("dimension", None, f"{name} needs dimension=, the number of coordinates, to be converted")
    return dimension
