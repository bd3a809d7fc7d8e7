"""What may be released: a number or an array of numbers, checked before any randomness is used.

A refusal says what kind of thing was passed, never its content: messages must not carry raw data.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LARGEST_SIZE", "blank", "blank_rows", "integers", "reals", "unrounded"]

LARGEST_SIZE = 1 << 30
"""Larger arrays are refused: noise for 2^30 values takes 8 GiB."""

_ZEROS: tuple[tuple[type, object], ...] = (
    (bool, False),
    (numbers.Integral, 0),
    (numbers.Rational, Fraction()),
    (numbers.Real, 0.0),
)
_REAL = "pass a finite number, or an array of them (integers, floats, Fractions)"
_FINITE = "NaN and infinities cannot be released; clamp rows first, with discreet.mechanisms.Bounds"
_INTEGER = "pass a whole number, or an array of an integer dtype up to 64 bits"


def reals(value: object, *, argument: str = "value") -> Fraction | NDArray[Any]:
    """A finite real as an exact Fraction, or an array of finite reals: of dtype float64, or of exact objects.

    Floats are taken at their exact value. Python integers, Fractions and wide integer dtypes stay exact.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, numbers.Real):
        return _exact(value, argument)
    array = _array(value, argument, _REAL)
    array = unrounded(value, array)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise InvalidArgument(argument, _described(array), _FINITE)
        return array
    if array.dtype.kind in "iu":
        # an int64 beyond 2^53 is no float64
        if array.dtype.itemsize < 8 or bool(((array <= 1 << 53) & (array >= -(1 << 53))).all()):
            return array.astype(np.float64)
        array = array.astype(object)
    if array.dtype == object:
        exact = np.empty(array.shape, dtype=object)
        # whole numbers are exact as they are, and fractions of them would take most of the time of a release
        exact.reshape(-1)[:] = [entry if type(entry) is int else _exact(entry, argument) for entry in array.flat]
        return exact
    raise InvalidArgument(argument, _described(array), _REAL)


def integers(value: object, *, argument: str = "value") -> int | NDArray[np.int64]:
    """A whole number of any size, or an array of them as int64; floats are refused even where they are whole."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, bool) and isinstance(value, numbers.Integral):
        return int(value)
    array = _array(value, argument, _INTEGER)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise InvalidArgument(argument, _described(array), _INTEGER)
    return array.astype(np.int64)


def blank(value: Any) -> object:
    """Zeros of the same type, dtype and shape: what is known of a value before it is paid for.

    The entries of a list, and of an array of objects, may be of any type: which one depends on the data. What is no
    number and has none is given back as it is.
    """
    for kind, zero in _ZEROS:
        if isinstance(value, kind):
            return zero
    if isinstance(value, np.ndarray):
        return np.zeros(value.shape, value.dtype)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [blank(entry) if isinstance(entry, list | tuple | np.ndarray) else 0 for entry in value]
    return np.zeros(np.shape(value), dtype=np.int64) if _becomes_array(value) else value


def blank_rows(data: object) -> object:
    """One row of zeros of the same dtype and width, if there are any, as their number is private; none of a list."""
    if isinstance(data, np.ndarray):
        return np.zeros((min(1, len(data)), *data.shape[1:]) if data.ndim else (), data.dtype)
    return [] if isinstance(data, list | tuple) or _becomes_array(data) else data


def unrounded(value: object, array: NDArray[Any]) -> NDArray[Any]:
    """What NumPy made of a list, or its numbers as they were if there may be an integer that became another float.

    NumPy turns integers beside floats into floats. Beyond 2^53 that moves them, by more than one person may.
    """
    if array.dtype.kind != "f" or hasattr(value, "__array__") or not bool((np.abs(array) >= 1 << 53).any()):
        return array
    return np.asarray(value, dtype=object)


def _array(value: object, argument: str, advice: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(argument, _described(value), advice) from None
    if array.ndim == 0 or array.dtype.kind not in "iufO":
        raise InvalidArgument(argument, _described(array if array.ndim else value), advice)
    if array.size == 0:
        raise InvalidArgument(argument, _described(array), "there is nothing to release in an empty array")
    if array.size > LARGEST_SIZE:
        raise InvalidArgument(argument, _described(array), f"release at most {LARGEST_SIZE} numbers at a time")
    return array


def _exact(value: object, argument: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidArgument(argument, _described(value), _REAL)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    number = float(value)
    if not math.isfinite(number):
        raise InvalidArgument(argument, _described(value), _FINITE)
    return Fraction(number)


def _becomes_array(value: object) -> bool:
    """Whether NumPy makes an array of it, as of a column of pandas: its dtype may depend on the numbers."""
    return hasattr(value, "__array__") and not isinstance(value, np.generic)


def _described(value: object) -> str:
    """The kind of a value, for messages: never its content."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"a {type(value).__name__}"
