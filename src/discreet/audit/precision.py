"""The low bits of floating-point releases: where textbook noise leaves traces of the input.

A float x is odd * 2^t. Noise added in floating point to 0 keeps all its low bits; added to 1 it loses those below
2^-52. So t says which input it was, with events that are frequent on one input and impossible on its neighbour
[Mironov 2012; Haney et al. 2022]. A release that lives on a lattice fixed in advance has the same t on both.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.outcomes import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["bit_views", "lowest_bit", "off_lattice"]

_ZERO = 2000
"""The exponent given to 0, which every power of two divides."""


def lowest_bit(values: NDArray[Any]) -> NDArray[np.float64]:
    """The exponent t of the lowest bit that is set: x = odd * 2^t.

    >>> lowest_bit(np.array([1.0, 0.75, 6.0]))
    array([ 0., -2.,  1.])
    """
    mantissa, exponent = np.frexp(np.nan_to_num(values.astype(np.float64)))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, _ZERO, exponent - 53 + zeros).astype(np.float64)


def _used_bits(values: NDArray[Any]) -> NDArray[np.float64]:
    """The number of bits between the highest and the lowest that are set."""
    return np.where(values == 0, 0, np.frexp(values.astype(np.float64))[1] - lowest_bit(values))


def _last_byte(values: NDArray[Any]) -> NDArray[np.float64]:
    return (np.ascontiguousarray(values, dtype=np.float64).view(np.uint64) & np.uint64(255)).astype(np.float64)


def bit_views(releases: NDArray[Any]) -> Sequence[View]:
    """Views of the low bits, for releases that are floats; of an array, those of the coordinate with the lowest bit."""
    if releases.dtype.kind != "f":
        return []
    return [
        View("the exponent of the lowest bit of the release", lambda x: lowest_bit(_rows(x)).min(axis=1)),
        View("the number of significant bits of the release", lambda x: _used_bits(_rows(x)).max(axis=1)),
        View("the last byte of the mantissa of the release", lambda x: _last_byte(_rows(x))[:, 0]),
    ]


def _rows(releases: NDArray[Any]) -> NDArray[Any]:
    return releases.reshape(len(releases), -1)


def off_lattice(releases: NDArray[Any], granularity: float) -> int:
    """How many numbers are not multiples of the granularity, which is a power of two.

    >>> off_lattice(np.array([0.5, 1.0, 1.25]), 0.5)
    1
    """
    exponent = math.frexp(granularity)[1] - 1
    return int((lowest_bit(np.asarray(releases, dtype=np.float64)) < exponent).sum())
