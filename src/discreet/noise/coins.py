"""Coins with an exact bias: one word each, and more words only where one does not decide."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, overload

import numpy as np

from discreet.arguments import count, rational
from discreet.errors import InvalidArgument
from discreet.noise.certified import exp_minus
from discreet.noise.generator import chosen_generator

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.sampler import Size

__all__ = ["Bias", "bernoulli", "bernoulli_exp", "flip", "shape_of"]

Bias: TypeAlias = Callable[[int], tuple[int, int]]
"""A probability p as a function of the precision: bits -> (lower, upper) with lower <= p 2^bits <= upper."""


@overload
def bernoulli(p: object, size: None = None, *, generator: Generator | None = None) -> bool: ...
@overload
def bernoulli(p: object, size: Size, *, generator: Generator | None = None) -> NDArray[np.bool_]: ...
def bernoulli(p: object, size: Size | None = None, *, generator: Generator | None = None) -> bool | NDArray[np.bool_]:
    """True with probability exactly p, a rational in [0, 1] (a float is taken at its exact value).

    A uniform U in [0, 1) is compared with p through its first 64 bits; if these are those of p, the next bits decide.

    >>> bernoulli(1), bernoulli(0)
    (True, False)
    """
    exact = rational("p", p)
    if not 0 <= exact <= 1:
        raise InvalidArgument("p", p, "pass a probability between 0 and 1")
    return flip(rational_bias(exact), size, generator=generator)


@overload
def bernoulli_exp(x: object, size: None = None, *, generator: Generator | None = None) -> bool: ...
@overload
def bernoulli_exp(x: object, size: Size, *, generator: Generator | None = None) -> NDArray[np.bool_]: ...
def bernoulli_exp(
    x: object, size: Size | None = None, *, generator: Generator | None = None
) -> bool | NDArray[np.bool_]:
    """True with probability exactly e^{-x} for a rational x >= 0 (a float is taken at its exact value).

    The bits of e^{-x} are computed with integers, as many as the comparison with a uniform number needs.

    >>> bernoulli_exp(0)
    True
    """
    exact = rational("x", x)
    if exact < 0:
        raise InvalidArgument("x", x, "pass a number >= 0")
    return flip(lambda bits: exp_minus(exact, bits), size, generator=generator)


def rational_bias(p: Fraction) -> Bias:
    """The bias of a coin with rational probability."""
    return lambda bits: ((p.numerator << bits) // p.denominator, -((-p.numerator << bits) // p.denominator))


@overload
def flip(bias: Bias, size: None = None, *, generator: Generator | None = None) -> bool: ...
@overload
def flip(bias: Bias, size: Size | None, *, generator: Generator | None = None) -> bool | NDArray[np.bool_]: ...
def flip(bias: Bias, size: Size | None = None, *, generator: Generator | None = None) -> bool | NDArray[np.bool_]:
    """Coins that fall True with the probability that `bias` describes to any precision."""
    shape = shape_of(size)
    source = chosen_generator(generator)
    lower, upper = bias(64)
    if shape is None:
        word = source.word()
        return word < lower or (word < upper and settle(word, bias, source))
    words = source.words(math.prod(shape))
    if lower >= 1 << 64:
        fell = np.ones(words.size, dtype=np.bool_)
    else:
        fell = words < np.uint64(lower)
        open_words = words - np.uint64(lower) < np.uint64(upper - lower)  # wraps around below lower
        for i in np.flatnonzero(open_words):
            fell[i] = settle(int(words[i]), bias, source)
    return fell.reshape(shape)


def settle(word: int, bias: Bias, generator: Generator) -> bool:
    """Whether U < p for a U that starts with the bits of `word`: draws further bits until that is certain."""
    bits = 64
    while True:
        lower, upper = bias(bits)
        if word < lower:  # then U < (word + 1) / 2^bits <= p
            return True
        if word >= upper:
            return False
        word, bits = word << 64 | generator.word(), bits + 64


def shape_of(size: object) -> tuple[int, ...] | None:
    """The shape that a sampler was asked for; None for a single value."""
    if size is None:
        return None
    if isinstance(size, tuple):
        return tuple(count("size", side) for side in size)
    return (count("size", size),)
