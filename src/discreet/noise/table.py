"""Exact inversion: one word looks up one draw, and words that cannot decide are given more bits until they can.

A word u of 63 bits stands for the interval [u, u+1) / 2^63 in which a uniform real number U lies. The draw is the
number of k >= 1 with P(M < k) <= U. With T_k = ⌊2^63 P(M < k)⌋, a word u > T_k is surely above P(M < k) and u < T_k
surely below; only u = T_k, one word in 2^63 for each k, cannot tell. Then 64 more bits of U are drawn and compared with
64 more bits of P(M < k), as long as it takes: the draw has exactly its law, the far tail included.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from discreet.noise import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.law import Law

__all__ = ["Table"]

WORD_BITS: Final = 63
LAST: Final = (1 << WORD_BITS) - 1
SWEEP_BITS: Final = WORD_BITS + 64
GUIDE_BITS: Final = 16
EVEN: Final = (1 << 64) - 2
CHUNK: Final = 1 << 14  # words looked up at a time: they stay in the cache
UNGUIDED: Final = 1 << 10  # up to so many, searching takes less time than making a guide

_ONE = np.uint64(1)
_GUIDE_SHIFT = np.uint64(64 - GUIDE_BITS)


class Table:
    """Certified thresholds of a law, and the draws that they give."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.sorted = thresholds(law)
        self.thresholds = np.array(self.sorted, dtype=np.uint64)
        # For single draws: w >> 1 >= T means w >= 2 T; before all of them an odd number, which equals no 2 T
        marks = np.concatenate([np.ones(1, dtype=np.uint64), self.thresholds << _ONE])
        self._doubled, self._marks = marks[1:], marks.data

    @cached_property
    def guide(self) -> NDArray[np.int32]:
        """By the first 16 bits of a word: the draw if no threshold has these bits, else -1."""
        bits = (self.thresholds >> np.uint64(WORD_BITS - GUIDE_BITS)).astype(np.int64)
        having = np.bincount(bits, minlength=1 << GUIDE_BITS)
        return np.where(having == 0, np.cumsum(having), -1).astype(np.int32)

    def draw(self, word: NDArray[np.uint64], generator: Generator) -> np.int64:
        """The draw of an array of one word, of which the first 63 bits count.

        All thresholds are compared, in their order, so that the time does not depend on the draw.
        """
        k = np.count_nonzero(self._doubled <= word)
        number = int(word[0])
        if self._marks[k] == number & EVEN:
            return np.int64(self.refined(number >> 1, generator))
        return np.int64(k)

    def found(self, word: int, generator: Generator) -> int:
        """The draw of one word by bisection: quicker, for digits whose size says little about the noise's."""
        u = word >> 1
        k = bisect_right(self.sorted, u)
        if k and self.sorted[k - 1] == u:
            return self.refined(u, generator)
        return k

    def draws(self, words: NDArray[np.uint64], generator: Generator) -> NDArray[np.int64]:
        """The draws of many words, of which the first 63 bits count."""
        drawn = np.empty(words.size, dtype=np.int64)
        compiled = kernel.loaded()
        for start in range(0, words.size, CHUNK):
            part, found = words[start : start + CHUNK], drawn[start : start + CHUNK]
            for i in self._look_up(part, found) if compiled is None else self._compiled(compiled, part, found):
                found[i] = self.refined(int(part[i]) >> 1, generator)
        return drawn

    def _look_up(self, words: NDArray[np.uint64], drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        """Write the draws; returns the places of words that equal a threshold."""
        if words.size <= UNGUIDED:
            open_ = np.arange(words.size)
        else:
            drawn[:] = self.guide.take((words >> _GUIDE_SHIFT).view(np.int64))
            open_ = np.flatnonzero(drawn < 0)
        rest = words[open_] >> _ONE
        k = self.thresholds.searchsorted(rest, "right")
        drawn[open_] = k
        doubtful: NDArray[np.int64] = open_[(self.thresholds.take(k - 1, mode="wrap") == rest) & (k > 0)]
        return doubtful

    def _compiled(
        self, look_up: kernel.Kernel, words: NDArray[np.uint64], drawn: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        doubtful = np.empty(words.size, dtype=np.int64)
        return doubtful[: look_up(words, self.guide, self.thresholds, drawn, doubtful)]

    def refined(self, u: int, generator: Generator) -> int:
        """The draw of a word that equals a threshold: more bits of U against more bits of the law."""
        least = bisect_left(self.sorted, u)  # P(M < least) is surely below U
        support, bits = self.law.support, WORD_BITS
        while True:
            u = u << 64 | generator.word()
            bits += 64
            if support is None and u + 1 == 1 << bits:
                continue  # nothing but ones: no bound of k yet
            low, high = least, least + 1
            while u >= self.law.floor(high, bits):  # to a k that is surely above U
                low, high = high, high + 2 * (high - least)
            while high - low > 1:
                middle = (low + high) // 2
                if u >= self.law.floor(middle, bits):
                    low = middle
                else:
                    high = middle
            if low == least or u > self.law.floor(low, bits):
                return low


def thresholds(law: Law) -> list[int]:
    """T_k for k = 1, 2, … up to the support, or to the first that leaves no word above it."""
    found: list[int] = []
    extra = SWEEP_BITS - WORD_BITS
    for k, bounds in enumerate(law.sweep(SWEEP_BITS), start=1):
        low, high = max(bounds[0], 0) >> extra, min(bounds[1], (1 << SWEEP_BITS) - 1) >> extra
        found.append(low if low == high else law.floor(k, WORD_BITS))
        if found[-1] == LAST and law.support is None:
            break
    return found
