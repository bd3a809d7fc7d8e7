"""Noise with exponential tails: geometric, discrete Laplace, rounded Laplace."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from discreet.arguments import count
from discreet.errors import InvalidArgument
from discreet.noise.law import Digit, Geometric, Positive, RoundedLaplace, Sign, TwoSidedGeometric
from discreet.noise.sampler import SIGNS, Either, Sampler, Signed, Unsigned, drawn, kept, signed
from discreet.noise.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.sampler import Scale, Size

__all__ = ["discrete_laplace", "geometric", "geometric_sampler", "rounded_laplace", "truncated_geometric"]

LARGEST_SCALE: Final = 10**12
TABLE_SCALE: Final = 1024  # up to here one table of 44 * scale thresholds holds all words
SCAN_SCALE: Final = 128  # up to here comparing with all of them is cheap enough for single draws
TOP_SCALE: Final = 64  # of the first digit
DIGIT_BITS: Final = 12
FEW: Final = 1 << 12
FEW_TOP_SCALE: Final = 8  # for few draws: more digits, whose tables take 1 ms to make instead of 10 to 100
FEW_DIGIT_BITS: Final = 4


@overload
def discrete_laplace(scale: Scale, size: None = None, *, generator: Generator | None = None) -> int: ...
@overload
def discrete_laplace(scale: Scale, size: Size, *, generator: Generator | None = None) -> NDArray[np.int64]: ...
def discrete_laplace(
    scale: Scale, size: Size | None = None, *, generator: Generator | None = None
) -> int | NDArray[np.int64]:
    """Exact draws from the discrete Laplace (two-sided geometric) law: P(X = k) = tanh(1/2 scale) e^{-|k|/scale}.

    The scale is taken at its exact value, also if it is a float, and is at most 10^12. One draw is a Python integer,
    many are an int64 array (a draw beyond int64 has probability below e^{-9,000,000}).
    [Ghosh et al. 2012]
    """
    return drawn(_discrete_laplace(scale), size, generator)


@overload
def rounded_laplace(scale: Scale, size: None = None, *, generator: Generator | None = None) -> int: ...
@overload
def rounded_laplace(scale: Scale, size: Size, *, generator: Generator | None = None) -> NDArray[np.int64]: ...
def rounded_laplace(
    scale: Scale, size: Size | None = None, *, generator: Generator | None = None
) -> int | NDArray[np.int64]:
    """Exact draws of a continuous Laplace variable rounded to the nearest whole number.

        P(X = 0) = 1 - e^{-1/(2 scale)},      P(X = ±k) = sinh(1/(2 scale)) e^{-k/scale}   for k >= 1.

    Added to a whole number it is the continuous Laplace mechanism followed by rounding, so it costs what that one
    costs. Arguments as for `discrete_laplace`.
    """
    return drawn(_rounded_laplace(scale), size, generator)


@overload
def geometric(scale: Scale, size: None = None, *, generator: Generator | None = None) -> int: ...
@overload
def geometric(scale: Scale, size: Size, *, generator: Generator | None = None) -> NDArray[np.int64]: ...
def geometric(scale: Scale, size: Size | None = None, *, generator: Generator | None = None) -> int | NDArray[np.int64]:
    """Exact draws from the one-sided geometric law: P(X = k) = (1 - e^{-1/scale}) e^{-k/scale} for k >= 0.

    Arguments as for `discrete_laplace`.
    """
    return drawn(geometric_sampler(scale), size, generator)


@overload
def truncated_geometric(scale: Scale, bound: int, size: None = None, *, generator: Generator | None = None) -> int: ...
@overload
def truncated_geometric(
    scale: Scale, bound: int, size: Size, *, generator: Generator | None = None
) -> NDArray[np.int64]: ...
def truncated_geometric(
    scale: Scale, bound: int, size: Size | None = None, *, generator: Generator | None = None
) -> int | NDArray[np.int64]:
    """Exact draws of discrete Laplace noise clamped to [-bound, bound].

    The mass of all k >= bound sits at bound: P(X = ±bound) = e^{-bound/scale} / (1 + e^{-1/scale}), as in the truncated
    geometric mechanism of [Ghosh et al. 2012]. That mechanism clamps the *answer*, value + noise, to the range of the
    query, which costs nothing. Noise that is itself bounded is another thing: added to different values its ends
    differ, so on its own it is never purely private; account for the mass beyond the bound as a failure probability.
    """
    sampler = _discrete_laplace(scale)
    most = count("bound", bound, least=1)
    if most > np.iinfo(np.int64).max:
        raise InvalidArgument("bound", bound, "pass a bound below 2^63, or use discrete_laplace")
    draws = drawn(sampler, size, generator)
    return max(-most, min(most, draws)) if isinstance(draws, int) else draws.clip(-most, most, out=draws)


class Digits(Sampler):
    """A geometric variable of any scale, digit by digit: the digits are independent, see `Digit`."""

    def __init__(self, scale: Fraction, *, few: bool = False) -> None:
        top_scale, bits = (FEW_TOP_SCALE, FEW_DIGIT_BITS) if few else (TOP_SCALE, DIGIT_BITS)
        shift = (-(-scale.numerator // (scale.denominator * top_scale)) - 1).bit_length()
        self.top = Table(Geometric((1 << shift) / scale))
        self.shift, self._shift = shift, np.int64(shift)
        self.digits: list[tuple[int, Table]] = []
        for place in range(0, shift, bits):
            width = min(bits, shift - place)
            self.digits.append((place, Table(Digit((1 << place) / scale, width))))

    def one(self, generator: Generator) -> np.int64:
        words = generator.few(1 + len(self.digits))
        low = 0
        for word, (place, table) in zip(words[1:].tolist(), self.digits, strict=True):
            low += table.found(word, generator) << place
        return (self.top.draw(words[:1], generator) << self._shift) + np.int64(low)

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        value = self.top.draws(generator.words(n), generator)
        value <<= self.shift
        for place, table in self.digits:
            digit = table.draws(generator.words(n), generator)
            digit <<= place
            value += digit
        return value


class TwoSidedDigits(Sampler):
    """Discrete Laplace of any scale from a geometric variable G and a biased sign: G or -1 - G, see `Sign`."""

    def __init__(self, scale: Fraction, *, few: bool = False) -> None:
        self.magnitude = Digits(scale, few=few)
        self.sign = Table(Sign(1 / scale))

    def one(self, generator: Generator) -> np.int64:
        return self.magnitude.one(generator) ^ np.int64(-self.sign.found(generator.word(), generator))

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        value = self.magnitude.many(n, generator)
        value ^= np.negative(self.sign.draws(generator.words(n), generator))
        return value


class RoundedDigits(Sampler):
    """Rounded Laplace of any scale: zero with probability 1 - e^{-1/2 scale}, else ±(1 + G) with G geometric."""

    def __init__(self, scale: Fraction, *, few: bool = False) -> None:
        self.magnitude = Digits(scale, few=few)
        self.positive = Table(Positive(1 / (2 * scale)))

    def one(self, generator: Generator) -> np.int64:
        word = generator.word()
        factor = np.int64(self.positive.found(word, generator)) * SIGNS[word & 1]
        return (self.magnitude.one(generator) + SIGNS[0]) * factor

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        words = generator.words(n)
        value = self.magnitude.many(n, generator)
        value += 1
        value *= self.positive.draws(words, generator)
        return signed(value, words)


def _family(
    table: Callable[[], Sampler], digits: type[Digits | TwoSidedDigits | RoundedDigits], scale: Fraction
) -> Sampler:
    whole, wide, narrow = cache(table), cache(lambda: digits(scale)), cache(lambda: digits(scale, few=True))
    return Either(
        one=whole if scale <= SCAN_SCALE else wide,
        few=whole if scale <= FEW_TOP_SCALE else narrow,
        many=whole if scale <= TABLE_SCALE else wide,
        most=FEW,
    )


geometric_sampler = kept(
    lambda scale: _family(lambda: Unsigned(Table(Geometric(1 / scale))), Digits, scale),
    most=LARGEST_SCALE,
)
_discrete_laplace = kept(
    lambda scale: _family(lambda: Signed(Table(TwoSidedGeometric(1 / scale))), TwoSidedDigits, scale),
    most=LARGEST_SCALE,
)
_rounded_laplace = kept(
    lambda scale: _family(lambda: Signed(Table(RoundedLaplace(1 / scale))), RoundedDigits, scale),
    most=LARGEST_SCALE,
)
