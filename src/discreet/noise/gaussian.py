"""Noise of Gaussian shape: the discrete Gaussian, and the continuous one rounded to whole numbers."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from discreet.noise.certified import exp_minus
from discreet.noise.normal_law import DiscreteNormal, RoundedNormal
from discreet.noise.sampler import Sampler, Signed, checked_scale, drawn, signed
from discreet.noise.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.sampler import Scale, Size

__all__ = ["discrete_gaussian", "rounded_gaussian"]

LARGEST_SCALE: Final = 10**9
TABLE_SCALE: Final = 1024  # up to here one table of 9.1 * scale thresholds holds all words
KEPT: Final = 16

_ELEVEN = np.uint64(11)
_UNIT = 2.0**-53
_OVER, _UNDER = 1 + 2.0**-48, 1 - 2.0**-48


@overload
def discrete_gaussian(scale: Scale, size: None = None, *, generator: Generator | None = None) -> int: ...
@overload
def discrete_gaussian(scale: Scale, size: Size, *, generator: Generator | None = None) -> NDArray[np.int64]: ...
def discrete_gaussian(
    scale: Scale, size: Size | None = None, *, generator: Generator | None = None
) -> int | NDArray[np.int64]:
    """Exact draws from the discrete Gaussian law: P(X = k) ∝ e^{-k² / 2 scale²}. [Canonne et al. 2020]

    The scale is taken at its exact value, also if it is a float, and is at most 10^9. One draw is a Python integer,
    many are an int64 array (a draw beyond int64 has probability below e^{-10^19} and would be refused, not wrapped).
    """
    exact = checked_scale(scale, most=LARGEST_SCALE)
    return drawn(lambda: _discrete_gaussian(exact), size, generator)


@overload
def rounded_gaussian(scale: Scale, size: None = None, *, generator: Generator | None = None) -> int: ...
@overload
def rounded_gaussian(scale: Scale, size: Size, *, generator: Generator | None = None) -> NDArray[np.int64]: ...
def rounded_gaussian(
    scale: Scale, size: Size | None = None, *, generator: Generator | None = None
) -> int | NDArray[np.int64]:
    """Exact draws of N(0, scale²) rounded to the nearest whole number.

        P(X = k) = Φ((k + 1/2) / scale) - Φ((k - 1/2) / scale).

    Added to a whole number it is the continuous Gaussian mechanism followed by rounding, so it costs exactly what that
    one costs. Arguments as for `discrete_gaussian`.
    """
    exact = checked_scale(scale, most=LARGEST_SCALE)
    return drawn(lambda: _rounded_gaussian(exact), size, generator)


class Layers(Sampler):
    """Gaussian magnitudes of any scale: a layer from a table, a place within it, and an exact rejection.

    Let s = scale / 2^shift be between 512 and 1024. A layer h with mass ∝ e^{-h²/2s²} and a place t, uniform in [0, 1),
    are accepted with probability e^{-x}, x = t (2h + t) / 2s²: then 2^shift (h + t) has the density e^{-y²/2 scale²}.
    Fewer than one in 1000 are rejected.

    V is uniform, and the pair is kept if V >= 1 - e^{-x}. Because x - x² <= 1 - e^{-x} <= x, products and comparisons
    decide nearly always; in arrays they are made in floating point, whose every rounding (each product and quotient
    within 2^-53 of itself) is covered by a factor 1 ± 2^-48. What they cannot decide is decided in integers, with more
    bits if needed, so that the law is exact.
    """

    def __init__(self, scale: Fraction) -> None:
        self.shift = (-(-scale.numerator // (scale.denominator * TABLE_SCALE)) - 1).bit_length()
        small = scale / (1 << self.shift)
        self.table = Table(DiscreteNormal(small, sides=1))
        self.decay = 1 / (2 * small**2)
        self.decay_float = float(self.decay)

    @abstractmethod
    def place(self, word: int, bits: int) -> tuple[Fraction, Fraction]:
        """Bounds of t, given so many of its bits."""

    @abstractmethod
    def places(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of t, exact as floats."""

    @abstractmethod
    def value(self, layer: int, word: int) -> int:
        """The magnitude."""

    @abstractmethod
    def values(self, layers: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The magnitudes."""

    zero_has_a_sign: bool
    """Whether +0 and -0 are different things before rounding, or one thing that must not be counted twice."""

    def one(self, generator: Generator) -> int:
        while True:
            word, place, chance = generator.word(), generator.word(), generator.word()
            layer = self.table.draw(word, generator)
            if not self.kept(layer, place, chance, generator):
                continue
            value = self.value(layer, place)
            if value or self.zero_has_a_sign or not word & 1:
                return -value if word & 1 else value

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        found = np.empty(n, dtype=np.int64)
        waiting = np.arange(n)
        while waiting.size:
            words, place, chance = generator.words(3 * waiting.size).reshape(3, -1)
            layers = self.table.draws(words, generator)
            kept = self._kept(layers, place, chance, generator)
            values = signed(self.values(layers, place), words)
            if not self.zero_has_a_sign:
                kept &= (values != 0) | (words & np.uint64(1) == 0)
            found[waiting] = values
            waiting = waiting[~kept]
        return found

    def _kept(
        self,
        layers: NDArray[np.int64],
        places: NDArray[np.uint64],
        chances: NDArray[np.uint64],
        generator: Generator,
    ) -> NDArray[np.bool_]:
        low, high = self.places(places)
        twice = 2.0 * layers
        chance = (chances >> _ELEVEN).astype(np.float64) * _UNIT  # V lies in [chance, chance + 2^-53]
        most = high * (twice + high) * (self.decay_float * _OVER)
        kept = chance >= most
        doubtful = np.flatnonzero(~kept)
        least = low[doubtful] * (twice[doubtful] + low[doubtful]) * (self.decay_float * _UNDER)
        rejected = chance[doubtful] + _UNIT <= least * (1 - most[doubtful]) * _UNDER
        for i in doubtful[~rejected]:
            kept[i] = self.kept(int(layers[i]), int(places[i]), int(chances[i]), generator)
        return kept

    def kept(self, layer: int, place: int, chance: int, generator: Generator) -> bool:
        """Whether V >= 1 - e^{-x}, exactly; place and V have 64 bits each and get more if these do not decide."""
        bits = 64
        while True:
            low, high = self.place(place, bits)
            most = high * (2 * layer + high) * self.decay
            if chance * most.denominator >= most.numerator << bits:  # V >= x
                return True
            least = low * (2 * layer + low) * self.decay
            if chance >= (1 << bits) - exp_minus(most, bits)[0]:
                return True
            if chance + 1 <= (1 << bits) - exp_minus(least, bits)[1]:
                return False
            place, chance, bits = place << 64 | generator.word(), chance << 64 | generator.word(), bits + 64


class DiscreteLayers(Layers):
    """The discrete Gaussian: the place is one of 2^shift."""

    zero_has_a_sign = False

    def place(self, word: int, bits: int) -> tuple[Fraction, Fraction]:
        place = Fraction(word >> (bits - self.shift), 1 << self.shift)
        return place, place

    def places(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        place = (words >> np.uint64(64 - self.shift)).astype(np.float64) * 2.0**-self.shift
        return place, place

    def value(self, layer: int, word: int) -> int:
        return (layer << self.shift) + (word >> (64 - self.shift))

    def values(self, layers: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        return (layers << self.shift) + (words >> np.uint64(64 - self.shift)).view(np.int64)


class RoundedLayers(Layers):
    """The rounded Gaussian: the place is a real number, of which the word holds the first 64 bits."""

    zero_has_a_sign = True

    def place(self, word: int, bits: int) -> tuple[Fraction, Fraction]:
        return Fraction(word, 1 << bits), Fraction(word + 1, 1 << bits)

    def places(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        place = (words >> _ELEVEN).astype(np.float64) * _UNIT
        return place, place + _UNIT

    def value(self, layer: int, word: int) -> int:
        return (layer << self.shift) + (((word >> (63 - self.shift)) + 1) >> 1)

    def values(self, layers: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        halves = (words >> np.uint64(63 - self.shift)).view(np.int64)
        return (layers << self.shift) + ((halves + 1) >> 1)


@lru_cache(maxsize=KEPT)
def _discrete_gaussian(scale: Fraction) -> Sampler:
    return Signed(Table(DiscreteNormal(scale, sides=2))) if scale <= TABLE_SCALE else DiscreteLayers(scale)


@lru_cache(maxsize=KEPT)
def _rounded_gaussian(scale: Fraction) -> Sampler:
    return Signed(Table(RoundedNormal(scale))) if scale <= TABLE_SCALE else RoundedLayers(scale)
