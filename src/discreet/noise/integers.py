"""Uniform integers below any bound, without the bias of a remainder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from discreet.arguments import count
from discreet.noise.coins import shape_of
from discreet.noise.generator import chosen_generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.sampler import Size

__all__ = ["uniform_integers"]


@overload
def uniform_integers(bound: int, size: None = None, *, generator: Generator | None = None) -> int: ...
@overload
def uniform_integers(bound: int, size: Size, *, generator: Generator | None = None) -> NDArray[Any]: ...
def uniform_integers(bound: int, size: Size | None = None, *, generator: Generator | None = None) -> int | NDArray[Any]:
    """Independent integers, uniform on 0 .. bound - 1, for any bound >= 1.

    Words are reduced modulo the bound, after the words in the last, incomplete run of `bound` values were drawn anew.
    Arrays have dtype int64 for bounds up to 2^63 and hold Python integers beyond.

    >>> uniform_integers(1, 3)
    array([0, 0, 0])
    """
    bound = count("bound", bound, least=1)
    shape = shape_of(size)
    source = chosen_generator(generator)
    if shape is None:
        return _below(bound, source)
    n = math.prod(shape)
    if bound > 1 << 63:
        drawn: NDArray[Any] = np.array([_below(bound, source) for _ in range(n)], dtype=object)
        return drawn.reshape(shape)
    words = source.words(n)
    incomplete = (1 << 64) % bound
    if incomplete:
        most = np.uint64((1 << 64) - incomplete - 1)
        rejected = np.flatnonzero(words > most)
        while rejected.size:
            words[rejected] = source.words(rejected.size)
            rejected = rejected[words[rejected] > most]
    return (words % np.uint64(bound)).astype(np.int64).reshape(shape)


def _below(bound: int, generator: Generator) -> int:
    bits = 64 * -(-(bound - 1).bit_length() // 64) or 64
    complete = (1 << bits) - (1 << bits) % bound
    while True:
        drawn = generator.integer(bits)
        if drawn < complete:
            return drawn % bound
