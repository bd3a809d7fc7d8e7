"""Staircase noise on the whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from discreet.arguments import count, rational
from discreet.errors import InvalidArgument
from discreet.noise.certified import exp_minus, over, product
from discreet.noise.integers import uniform_integers
from discreet.noise.laplace import geometric_sampler
from discreet.noise.law import Law
from discreet.noise.sampler import KEPT, SIGNS, Sampler, Signed, drawn, signed
from discreet.noise.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.certified import Bounds
    from discreet.noise.generator import Generator
    from discreet.noise.sampler import Scale, Size

__all__ = ["staircase"]

LARGEST_SPREAD: Final = 10**12
TABLE_STEPS: Final = 1 << 16  # whole numbers that hold all words of a table


@overload
def staircase(
    epsilon: Scale, sensitivity: int, split: int, size: None = None, *, generator: Generator | None = None
) -> int: ...
@overload
def staircase(
    epsilon: Scale, sensitivity: int, split: int, size: Size, *, generator: Generator | None = None
) -> NDArray[np.int64]: ...
def staircase(
    epsilon: Scale, sensitivity: int, split: int, size: Size | None = None, *, generator: Generator | None = None
) -> int | NDArray[np.int64]:
    """Exact draws from the staircase law on the whole numbers: steps that fall by e^{-epsilon} every `sensitivity`.

    With r = split, b = e^{-epsilon} and c = ⌊|x| / sensitivity⌋,

        P(X = x) ∝ b^c if |x| - c sensitivity < r,      b^{c+1} otherwise,

    so that a shift by at most `sensitivity` changes no mass by more than e^{epsilon}. 1 <= split <= sensitivity is the
    width of the first step; the best one depends on what is minimised [Geng and Viswanath 2016]. epsilon is taken at
    its exact value, sensitivity / epsilon and sensitivity are at most 10^12; size as for `discrete_laplace`.
    """
    exact = rational("epsilon", epsilon)
    step = count("sensitivity", sensitivity, least=1)
    width = count("split", split, least=1)
    if exact <= 0:
        raise InvalidArgument("epsilon", epsilon, "pass a number > 0")
    if step > LARGEST_SPREAD:
        raise InvalidArgument("sensitivity", sensitivity, f"pass at most {LARGEST_SPREAD:.0e}; count in coarser units")
    if width > step:
        raise InvalidArgument("split", split, f"pass a whole number from 1 to sensitivity = {step}")
    if step > LARGEST_SPREAD * exact:
        raise InvalidArgument("epsilon", epsilon, f"sensitivity / epsilon is at most {LARGEST_SPREAD:.0e}; pass more")
    return drawn(_sampler(exact, step, width), size, generator)


@dataclass(frozen=True)
class StaircaseMagnitude(Law):
    """|X| for X staircase noise.

    With k = c sensitivity + d, d < sensitivity, x = min(d, r), y = d - x and D the sensitivity,

        P(|X| >= k) = 2 b^c [(r - x) + (D - r - y + x) b + y b²] / [(2r - 1) + (2D - 2r + 1) b]    for k >= 1.
    """

    epsilon: Fraction
    sensitivity: int
    split: int

    def bounds(self, k: int, bits: int) -> Bounds:
        guard = self.sensitivity.bit_length() + 8
        precision = bits + guard
        block, offset = divmod(k, self.sensitivity)
        share = self._share(offset, exp_minus(self.epsilon, precision), precision)
        low, high = product(share, exp_minus(block * self.epsilon, precision), precision)
        return (1 << bits) - (high >> guard) - 1, (1 << bits) - (low >> guard)

    def sweep(self, bits: int) -> Iterator[Bounds]:
        guard = self.sensitivity.bit_length() + 48  # enough for 2^40 blocks, each of which adds a unit or two
        precision = bits + guard
        b = exp_minus(self.epsilon, precision)
        shares = [self._share(offset, b, precision) for offset in range(self.sensitivity)]
        start, power = 1, (1 << precision, 1 << precision)
        while True:
            for share in shares[start:]:
                low, high = product(share, power, precision)
                yield (1 << bits) - (high >> guard) - 1, (1 << bits) - (low >> guard)
            start, power = 0, product(power, b, precision)

    def _share(self, offset: int, b: Bounds, precision: int) -> Bounds:
        """P(|X| >= offset) for 0 < offset < D by the formula, with b between its bounds."""
        first = min(offset, self.split)
        second, rest = offset - first, self.sensitivity - self.split
        square = product(b, b, precision)
        tail = [
            2 * ((self.split - first << precision) + (rest - second + first) * b[i] + second * square[i])
            for i in (0, 1)
        ]
        whole = [(2 * self.split - 1 << precision) + (2 * rest + 1) * b[i] for i in (0, 1)]
        return over((tail[0], tail[1]), (whole[0], whole[1]), precision)


@dataclass(frozen=True)
class FirstStep(Law):
    """M = 0 with probability r / (r + b (D - r)): whether a place lies on the first step of its block."""

    epsilon: Fraction
    sensitivity: int
    split: int
    support = 2

    def bounds(self, k: int, bits: int) -> Bounds:  # noqa: ARG002 - k = 1 is the only one
        precision = bits + self.sensitivity.bit_length()
        first, rest = self.split << precision, self.sensitivity - self.split
        b = exp_minus(self.epsilon, precision)
        return over((first, first), (first + rest * b[0], first + rest * b[1]), bits)


class Steps(Sampler):
    """Staircase noise of any size: a block, a step of it, a place on the step, a sign; minus zero is drawn again."""

    def __init__(self, epsilon: Fraction, sensitivity: int, split: int) -> None:
        self.blocks = geometric_sampler(1 / epsilon)
        self.step = Table(FirstStep(epsilon, sensitivity, split)) if split < sensitivity else None
        self.sensitivity, self.split = sensitivity, split

    def one(self, generator: Generator) -> np.int64:
        while True:
            word = generator.word()
            step = self.step.found(word, generator) if self.step is not None else 0
            start, width = (self.split, self.sensitivity - self.split) if step else (0, self.split)
            place = uniform_integers(width, generator=generator)
            value = self.blocks.one(generator) * np.int64(self.sensitivity) + np.int64(start + place)
            if value or not word & 1:
                return value * SIGNS[word & 1]

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        found = np.empty(n, dtype=np.int64)
        waiting = np.arange(n)
        while waiting.size:
            words = generator.words(waiting.size)
            value = self.blocks.many(waiting.size, generator) * self.sensitivity
            step = np.zeros_like(value) if self.step is None else self.step.draws(words, generator)
            for which, start, width in ((0, 0, self.split), (1, self.split, self.sensitivity - self.split)):
                here = np.flatnonzero(step == which)
                if here.size:
                    value[here] += start + uniform_integers(width, here.size, generator=generator)
            kept = (value != 0) | (words & np.uint64(1) == 0)
            found[waiting] = signed(value, words)
            waiting = waiting[~kept]
        return found


@lru_cache(maxsize=KEPT)
def _sampler(epsilon: Fraction, sensitivity: int, split: int) -> Sampler:
    # 44 / epsilon blocks, and one more, hold all words of a table
    if sensitivity * (44 + epsilon) <= TABLE_STEPS * epsilon:
        return Signed(Table(StaircaseMagnitude(epsilon, sensitivity, split)))
    return Steps(epsilon, sensitivity, split)
