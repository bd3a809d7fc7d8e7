"""Noise of Gaussian shape: the discrete Gaussian, and the continuous one rounded to whole numbers."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from discreet.noise import kernel
from discreet.noise.certified import exp_minus
from discreet.noise.normal_law import DiscreteNormal, RoundedNormal
from discreet.noise.sampler import SIGNS, Either, Sampler, Signed, drawn, kept, signed
from discreet.noise.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.sampler import Scale, Size

__all__ = ["discrete_gaussian", "rounded_gaussian"]

LARGEST_SCALE: Final = 10**9
LARGEST_ROUNDED: Final = 10**12
TABLE_SCALE: Final = 1024  # up to here one table of 9.1 * scale thresholds holds all words
LAYER_SCALE: Final = 256
FEW_SCALE: Final = 64  # of layers for few draws: a table of a quarter of the size, which takes 2 ms to make
FEW: Final = 1 << 15
LEAST_LAYERED: Final = 8

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
    many are an int64 array (a draw beyond int64 has probability below e^{-10^19}).
    """
    return drawn(_discrete_gaussian(scale), size, generator)


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
    one costs. Arguments as for `discrete_gaussian`, scales up to 10^12.
    """
    return drawn(_rounded_gaussian(scale), size, generator)


class Layers(Sampler):
    """Gaussian magnitudes of any scale: a layer from a table, a place within it, and an exact rejection.

    Let s = scale / 2^shift be between half of `widest` and `widest`, or shift = 0 and s less than that. A layer h with
    mass ∝ e^{-h²/2s²} and a place t, uniform in [0, 1), are accepted with probability e^{-x}, x = t (2h + t) / 2s²;
    then 2^shift (h + t) has the density e^{-y²/2 scale²}. Fewer than one in 2s are rejected.

    V is uniform, and the pair is kept if V >= 1 - e^{-x}. Because x - x² <= 1 - e^{-x} <= x, products and comparisons
    decide nearly always; in arrays they are made in floating point, whose every rounding (each product and quotient
    within 2^-53 of itself) is covered by a factor 1 ± 2^-48. What they cannot decide is decided in integers, with more
    bits if needed, so that the law is exact.
    """

    def __init__(self, scale: Fraction, *, widest: int = LAYER_SCALE) -> None:
        self.shift = (-(-scale.numerator // (scale.denominator * widest)) - 1).bit_length()
        small = scale / (1 << self.shift)
        self.table = Table(DiscreteNormal(small, sides=1))
        self.decay = 1 / (2 * small**2)
        self.decay_over, self.decay_under = float(self.decay) * _OVER, float(self.decay) * _UNDER

    @abstractmethod
    def place(self, word: int, bits: int) -> tuple[int, int, int]:
        """(low, high, n) with low <= 2^n t <= high, given so many bits of t."""

    @abstractmethod
    def places(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of t, exact as floats."""

    @abstractmethod
    def most(self, word: int) -> float:
        """The upper bound of t, exact as a float."""

    @abstractmethod
    def rest(self, word: int) -> int:
        """What the place adds to the magnitude 2^shift h."""

    @abstractmethod
    def rests(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """What the places add."""

    zero_has_a_sign: bool
    """Whether +0 and -0 are different things before rounding, or one thing that must not be counted twice."""

    def one(self, generator: Generator) -> np.int64:
        while True:
            words = generator.few(3)
            layer = self.table.draw(words[:1], generator)
            word, place, chance = map(int, words)
            most = self.most(place)
            likely = (chance >> 11) * _UNIT >= most * (2.0 * float(layer) + most) * self.decay_over
            if not likely and not self.kept(int(layer), place, chance, generator):
                continue
            value = (layer << np.int64(self.shift)) + np.int64(self.rest(place))
            if value or self.zero_has_a_sign or not word & 1:
                return value * SIGNS[word & 1]

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        found = np.empty(n, dtype=np.int64)
        waiting = np.arange(n)
        while waiting.size:
            words, place, chance = generator.words(3 * waiting.size).reshape(3, -1)
            layers = self.table.draws(words, generator)
            kept = self._kept(layers, place, chance, generator)
            values = signed((layers << self.shift) + self.rests(place), words)
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
        most = high * (twice + high) * self.decay_over
        kept = chance >= most
        doubtful = np.flatnonzero(~kept)
        least = low[doubtful] * (twice[doubtful] + low[doubtful]) * self.decay_under
        rejected = chance[doubtful] + _UNIT <= least * (1 - most[doubtful]) * _UNDER
        for i in doubtful[~rejected]:
            kept[i] = self.kept(int(layers[i]), int(places[i]), int(chances[i]), generator)
        return kept

    def kept(self, layer: int, place: int, chance: int, generator: Generator) -> bool:
        """Whether V >= 1 - e^{-x}, exactly; place and V have 64 bits each and get more if these do not decide."""
        decay, bits = self.decay, 64
        while True:
            low, high, n = self.place(place, bits)
            most = high * ((layer << n + 1) + high) * decay.numerator
            if chance * decay.denominator << 2 * n >= most << bits:  # V >= x: nearly always
                return True
            surely = exp_minus(Fraction(most, decay.denominator << 2 * n), bits)[0]
            if chance >= (1 << bits) - surely:
                return True
            least = Fraction(low * ((layer << n + 1) + low) * decay.numerator, decay.denominator << 2 * n)
            if chance + 1 <= (1 << bits) - exp_minus(least, bits)[1]:
                return False
            place, chance, bits = place << 64 | generator.word(), chance << 64 | generator.word(), bits + 64


class DiscreteLayers(Layers):
    """The discrete Gaussian: the place is one of 2^shift."""

    zero_has_a_sign = False

    def place(self, word: int, bits: int) -> tuple[int, int, int]:
        place = word >> (bits - self.shift)
        return place, place, self.shift

    def places(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        place = (words >> np.uint64(64 - self.shift)).astype(np.float64) * 2.0**-self.shift
        return place, place

    def most(self, word: int) -> float:
        return (word >> (64 - self.shift)) * 2.0**-self.shift

    def rest(self, word: int) -> int:
        return word >> (64 - self.shift)

    def rests(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        return (words >> np.uint64(64 - self.shift)).view(np.int64)


class RoundedLayers(Layers):
    """The rounded Gaussian: the place is a real number, of which the word holds the first 64 bits."""

    zero_has_a_sign = True

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        compiled = kernel.loaded_layers()
        if compiled is None:
            return super().many(n, generator)
        found, doubtful = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        words, place, chance = generator.words(3 * n).reshape(3, -1)
        guide, thresholds = self.table.guide, self.table.thresholds
        doubts = compiled(words, place, chance, guide, thresholds, self.shift, self.decay_over, found, doubtful)
        if not doubts:
            return found
        # one in 300: decided as ever, and drawn again if rejected; the generator is asked in the same order
        left = doubtful[:doubts]
        words, place, chance = words[left], place[left], chance[left]
        layers = self.table.draws(words, generator)
        kept = self._kept(layers, place, chance, generator)
        found[left] = signed((layers << self.shift) + self.rests(place), words)
        again = left[~kept]
        if again.size:
            found[again] = super().many(again.size, generator)
        return found

    def place(self, word: int, bits: int) -> tuple[int, int, int]:
        return word, word + 1, bits

    def places(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        place = (words >> _ELEVEN).astype(np.float64) * _UNIT
        return place, place + _UNIT

    def most(self, word: int) -> float:
        return ((word >> 11) + 1) * _UNIT

    def rest(self, word: int) -> int:
        return ((word >> (63 - self.shift)) + 1) >> 1

    def rests(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        return ((words >> np.uint64(63 - self.shift)).view(np.int64) + 1) >> 1


_discrete_gaussian = kept(
    lambda scale: Signed(Table(DiscreteNormal(scale, sides=2))) if scale <= TABLE_SCALE else DiscreteLayers(scale),
    most=LARGEST_SCALE,
)


def _rounded(scale: Fraction) -> Sampler:
    many = cache(lambda: Signed(Table(RoundedNormal(scale))) if scale <= TABLE_SCALE else RoundedLayers(scale))
    few = cache(lambda: RoundedLayers(scale, widest=FEW_SCALE))
    return many() if scale < LEAST_LAYERED else Either(one=many, few=few, many=many, most=FEW)


_rounded_gaussian = kept(_rounded, most=LARGEST_ROUNDED)
