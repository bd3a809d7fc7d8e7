r"""The best coin for showing something that n people support, if a thing that nobody supports is never shown.

Of all probabilities π_0 = 0, π_1, π_2, … that are (ε, δ)-indistinguishable for neighbouring n,

    π_{n+1} <= e^ε π_n + δ     and     1 - π_n <= e^ε (1 - π_{n+1}) + δ,

the largest at every n are those of [Desfontaines et al. 2022]

    π_{n+1} = min(e^ε π_n + δ,  1 - e^{-ε} (1 - π_n - δ),  1).

The first of the three is the smallest while π_n <= (1 - δ) / (1 + e^ε). With D = δ / (e^ε - 1) and c the first n at
which it is not,

    π_n = D (e^{nε} - 1)                                   for n <= c,
    1 - π_{c+m} = e^{-mε} (1 - π_c) - D (1 - e^{-mε})       for m >= 0, and π = 1 once this is negative.

The coins fall with exactly these probabilities: floats decide only where they are certain, integers decide the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.leaves.leaf import decimal
from discreet.arguments import unit_fraction
from discreet.noise.certified import exp_minus
from discreet.noise.coins import settle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator
    from discreet.noise.coins import Bias

__all__ = ["Keeping", "at_most"]

# Floats decide a coin only if the word is farther from the probability than these: a thousand times what expm1 and the
# products around it can be off for exponents up to 10^3, and more than a word is rounded.
_RELATIVE = 2.0**-36
_ABSOLUTE = 2.0**-60
_LEAST_UNIT, _LARGEST_EXPONENT = 1e-300, 700.0

Interval = tuple[Fraction, Fraction]


def at_most(value: float) -> Fraction:
    """The smaller of a float's exact value and the decimal number it prints as: a guarantee for both readings."""
    return min(Fraction(value), decimal(value))


@dataclass(frozen=True)
class Keeping:
    """The optimal keeping probabilities for exact ε > 0 and 0 < δ < 1."""

    epsilon: Fraction
    delta: Fraction

    @cached_property
    def crossover(self) -> int:
        """c, the first n with π_n > (1 - δ) / (1 + e^ε), which is e^{nε} > 1 + tanh(ε/2) (1 - δ) / δ."""
        ratio = _log_ratio((1 - self.delta) / self.delta) + math.log(math.tanh(float(self.epsilon) / 2))
        size = ratio if ratio > 40 else math.log1p(math.exp(ratio))
        n = max(1, math.floor(size / float(self.epsilon)))
        while not self._crossed(n):
            n += 1
        while n > 1 and self._crossed(n - 1):
            n -= 1
        return n

    def _crossed(self, n: int) -> bool:
        """Equality would make e^ε algebraic, so that enough bits always decide."""
        bits = self._guard(n)
        while True:
            low, high = _exp(self.epsilon, bits)
            least, most = _exp(n * self.epsilon, bits)
            odds = (1 - self.delta) / self.delta
            if least > 0 and low > 0:
                # with E = e^{-ε}: tanh(ε/2) = (1 - E)/(1 + E)
                if 1 / most > 1 + odds * (1 - low) / (1 + low):
                    return True
                if 1 / least < 1 + odds * (1 - high) / (1 + high):
                    return False
            bits *= 2

    def _guard(self, n: int) -> int:
        """Binary digits that e^{-nε} and 1 - e^{-ε} lose, and some to spare."""
        small = max(0, -_log2(self.epsilon))
        return 64 + 4 * small - 3 * _log2(self.delta) + n.bit_length() + 5 * math.ceil(self.epsilon)

    def bias(self, n: int) -> Bias:
        """π_n as a function of the precision: bits -> (lower, upper) with lower <= π_n 2^bits <= upper."""

        def bounds(bits: int) -> tuple[int, int]:
            low, high = self.interval(n, bits)
            return math.floor(low * 2**bits), math.ceil(high * 2**bits)

        return bounds

    def interval(self, n: int, bits: int) -> Interval:
        """Rational numbers around π_n, about 2^-bits apart."""
        if n <= 0:
            return Fraction(0), Fraction(0)
        if n <= self.crossover:
            return self._rising(n, bits)
        return self._settling(n - self.crossover, bits)

    def _rising(self, n: int, bits: int) -> Interval:
        work = bits + self._guard(n)
        unit_low, unit_high = self._unit(work)
        low, high = _exp(n * self.epsilon, work)
        return unit_low * (1 - high) / high, unit_high * (1 - low) / low

    def _settling(self, steps: int, bits: int) -> Interval:
        work = bits + self._guard(self.crossover)
        unit_low, unit_high = self._unit(work)
        start_low, start_high = self._rising(self.crossover, bits + 8)
        low, high = _exp(steps * self.epsilon, work)
        missing_low = low * (1 - start_high) - unit_high * (1 - low)
        missing_high = high * (1 - start_low) - unit_low * (1 - high)
        return 1 - max(missing_high, Fraction(0)), 1 - max(missing_low, Fraction(0))

    def _unit(self, work: int) -> Interval:
        """D = δ E / (1 - E) with E = e^{-ε}."""
        low, high = _exp(self.epsilon, work)
        return self.delta * low / (1 - low), self.delta * high / (1 - high)

    @cached_property
    def _floats(self) -> tuple[float, float, float]:
        """ε, D and 1 - π_c to a few ulps."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        unit = delta / math.expm1(epsilon) if epsilon < 700 else 0.0
        return epsilon, unit, float(1 - self._rising(self.crossover, 64)[0])

    def probabilities(self, n: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """π_n to a few ulps, and a bound of the error with a thousandfold reserve: 0 where π_n is certainly 1."""
        epsilon, unit, start = self._floats
        counts = n.astype(np.float64)
        crossover = float(self.crossover)
        before = counts <= crossover
        # A tiny D has lost digits, and e^{cε} may be beyond floats: then what is up to the crossover is left to `bias`.
        exact = unit < _LEAST_UNIT or crossover * epsilon > _LARGEST_EXPONENT
        with np.errstate(under="ignore"):
            rising = np.full(counts.shape, 0.5) if exact else unit * np.expm1(np.clip(counts, 0.0, crossover) * epsilon)
            decay = -np.maximum(counts - crossover, 0.0) * epsilon
            missing = start * np.exp(decay) + unit * np.expm1(decay)
        value = np.where(before, rising, 1.0 - np.clip(missing, 0.0, 1.0))
        # past the end `missing` is far below 0 and its own error does not matter: the probability is 1
        sure = ~before & (missing < -_RELATIVE * (1 + unit))
        error = np.where(before, 1.0 if exact else rising * _RELATIVE, _RELATIVE * (1 + unit)) + _ABSOLUTE
        return value, np.where(sure, 0.0, error)

    def probability(self, n: int) -> float:
        """π_n as the nearest float."""
        return float(self.interval(n, 128)[0])

    @cached_property
    def end(self) -> int:
        """The smallest n with π_n = 1, up to the rounding of floats."""
        return self._least(1.0)

    def least(self, confidence: float) -> int:
        """The smallest n with π_n >= confidence, up to the rounding of floats."""
        return self._least(unit_fraction("confidence", confidence))

    def _least(self, target: float) -> int:
        low, high = 0, 1
        while self.probability(high) < target:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.probability(middle) >= target else (middle, high)
        return high

    def draw(self, n: NDArray[np.int64], generator: Generator) -> NDArray[np.bool_]:
        """Independent coins that fall True with probability exactly π_n."""
        words = generator.words(n.size)
        uniform = words.astype(np.float64) * 2.0**-64
        value, error = self.probabilities(n)
        kept = ((uniform < value) | (error == 0)) & (n > 0)  # the largest words round to 1.0
        open_words = np.flatnonzero((np.abs(uniform - value) <= error) & (error > 0) & (n > 0))
        for i in open_words:
            kept[i] = settle(int(words[i]), self.bias(int(n[i])), generator)
        return np.asarray(kept, dtype=np.bool_)


def _exp(exponent: Fraction, bits: int) -> Interval:
    low, high = exp_minus(exponent, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


def _log2(value: Fraction) -> int:
    """log2(value), to within 1."""
    return value.numerator.bit_length() - value.denominator.bit_length()


def _log_ratio(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
