"""Checks of the arguments that users pass, each raising `InvalidArgument` with advice.

Every check returns the value in its canonical Python type, so that callers write
`epsilon = nonnegative("epsilon", epsilon)` at the first call the user wrote.
"""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ADJACENCIES",
    "count",
    "nonnegative",
    "one_of",
    "positive",
    "probability",
    "rational",
    "real",
    "truth",
    "unit_fraction",
    "words",
]

ADJACENCIES = ("add-remove", "replace-one")
"""The neighbouring relations that a privacy number can be about."""


def real(argument: str, value: object, *, advice: str = "pass a finite number") -> float:
    """The value as a finite float; refuses NaN, infinities, booleans and anything that is not a number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidArgument(argument, value, f"{advice} (got {type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidArgument(argument, value, f"{advice} (too large for a float)") from None
    if not math.isfinite(number):
        raise InvalidArgument(argument, value, advice)
    return number


def rational(argument: str, value: object, *, advice: str = "pass an int, a Fraction or a finite float") -> Fraction:
    """The value as an exact fraction: a float counts as the binary fraction that it is, so 0.1 is not 1/10."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidArgument(argument, value, f"{advice} (got {type(value).__name__})")
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if not math.isfinite(value):
        raise InvalidArgument(argument, value, advice)
    return Fraction(float(value))


def positive(argument: str, value: object) -> float:
    """The value as a finite float > 0."""
    number = real(argument, value, advice="pass a finite number > 0")
    if number <= 0:
        raise InvalidArgument(argument, value, "pass a number > 0")
    return number


def nonnegative(argument: str, value: object) -> float:
    """The value as a finite float >= 0."""
    number = real(argument, value, advice="pass a finite number >= 0")
    if number < 0:
        raise InvalidArgument(argument, value, "pass a number >= 0")
    return number + 0.0


def probability(argument: str, value: object) -> float:
    """The value as a float in [0, 1]."""
    number = real(argument, value, advice="pass a number between 0 and 1")
    if not 0 <= number <= 1:
        raise InvalidArgument(argument, value, "pass a number between 0 and 1")
    return number + 0.0


def unit_fraction(argument: str, value: object) -> float:
    """The value as a float strictly between 0 and 1."""
    number = probability(argument, value)
    if not 0 < number < 1:
        raise InvalidArgument(argument, value, "pass a number strictly between 0 and 1")
    return number


def count(argument: str, value: object, *, least: int = 0) -> int:
    """The value as an int >= `least`; refuses floats that are not whole, booleans and NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidArgument(argument, value, f"pass a whole number >= {least} (got {type(value).__name__})")
    if isinstance(value, numbers.Integral):
        number = int(value)
    elif isinstance(value, numbers.Rational):
        number = int(value.numerator) if value.denominator == 1 else least - 1
    else:
        number = int(float(value)) if math.isfinite(value) and float(value).is_integer() else least - 1
    if number < least:
        raise InvalidArgument(argument, value, f"pass a whole number >= {least}")
    return number


def truth(argument: str, value: object) -> bool:
    """True or False, and nothing that merely looks like it: "no" would be True."""
    if not isinstance(value, bool):
        raise InvalidArgument(argument, value, "pass True or False")
    return value


def words(argument: str, value: object, *, advice: str) -> str:
    """The value if it is a text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument, value, advice)
    return value


def one_of(argument: str, value: object, options: Iterable[str]) -> str:
    """The value if it is one of the options; otherwise says which exist and the closest one."""
    known = list(options)
    if isinstance(value, str) and value in known:
        return value
    import difflib

    close = difflib.get_close_matches(str(value), known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    raise InvalidArgument(argument, value, f"choose one of {', '.join(map(repr, known))}{hint}")
