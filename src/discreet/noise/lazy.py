"""Continuous noise known to as many bits as a comparison needs, and the exact order of noisy scores.

A draw is a uniform number U whose bits are revealed word by word. Its first word gives the noise in floating point with
a certified error; a comparison that this does not decide is repeated with integers and more words. No comparison is
ever made on rounded noise, so the winner has exactly the law of real-valued noise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet.arguments import count, one_of
from discreet.errors import InvalidArgument
from discreet.noise.generator import chosen_generator
from discreet.noise.logarithm import log_bounds
from discreet.noise.scores import Scores, factor_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.generator import Generator

__all__ = ["LAWS", "LazyNoise", "noisy_top"]

Ends = tuple["int | None", "int | None"]
"""lower <= y 2^bits <= upper; None for an end that is infinite."""

# Words within 2^40 of either end say too little about their noise and are always settled with more bits. Between them U
# is known to a relative 2^-39 towards 0, and 1 - U, through a float of 53 bits, to a relative 2^-29: so is -ln(1 - U),
# and the noise to an absolute 2^-28. It is at most 45 there; log, log1p and the sums add a few units of 2^-53 to each.
_END = 1 << 40
_RESOLUTION = 2.0**-27
_EXPONENT_ERROR = 2.0**-48  # relative; exponents are within 2^-50 and are rounded once more in a sum


class Law(Protocol):
    """A continuous law as a function of a uniform number."""

    def floats(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The noise to within _RESOLUTION, for words that are not at an end."""

    def ends(self, number: int, known: int, bits: int) -> Ends:
        """Ends of the noise 2^bits for all U in [number, number + 1] / 2^known."""


class Exponential:
    """-ln U: density e^{-y} for y > 0."""

    def floats(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """-ln U at the word's float."""
        noise: NDArray[np.float64] = -np.log(words * 2.0**-64)
        return noise

    def ends(self, number: int, known: int, bits: int) -> Ends:
        """Falls as U grows."""
        lower = -log_bounds(number + 1, known, bits)[1]
        return max(0, lower), (-log_bounds(number, known, bits)[0] if number else None)


class Gumbel:
    """-ln(-ln(1 - U)): the law with P(y <= t) = exp(-e^{-t})."""

    def floats(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """-ln(-ln(1 - U)) at the word's float."""
        noise = words.astype(np.float64)
        noise *= -(2.0**-64)
        np.log1p(noise, out=noise)
        np.negative(noise, out=noise)
        np.log(noise, out=noise)
        np.negative(noise, out=noise)
        return noise

    def ends(self, number: int, known: int, bits: int) -> Ends:
        """Falls as U grows: -ln(1 - U) is bracketed first, to twice the digits, then its logarithm."""
        fine = bits + known
        whole = 1 << known
        least = max(0, -log_bounds(whole - number, known, fine)[1])
        most = -log_bounds(whole - number - 1, known, fine)[0] if number + 1 < whole else None
        lower = -log_bounds(most, fine, bits)[1] if most is not None else None
        return lower, (-log_bounds(least, fine, bits)[0] if least else None)


class Laplace:
    """+-(-ln V): the first bit of U is the sign, the others are V. Density e^{-|y|} / 2."""

    def floats(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The sign of the first bit times -ln of the others."""
        magnitude = -np.log((words & np.uint64((1 << 63) - 1)) * 2.0**-63)
        noise: NDArray[np.float64] = np.where(words >> np.uint64(63), -magnitude, magnitude)
        return noise

    def ends(self, number: int, known: int, bits: int) -> Ends:
        """Those of the magnitude, mirrored for the negative half."""
        half = 1 << (known - 1)
        lower, upper = Exponential().ends(number % half, known - 1, bits)
        if number < half:
            return lower, upper
        return (None if upper is None else -upper), (None if lower is None else -lower)


LAWS: dict[str, Law] = {"exponential": Exponential(), "gumbel": Gumbel(), "laplace": Laplace()}
"""The laws of noise that can be compared lazily, all of scale 1."""


class LazyNoise:
    """Independent draws of a law of scale 1, each with as many bits as were asked of it so far."""

    def __init__(self, law: str, size: int, *, generator: Generator | None = None) -> None:
        self._law = LAWS[one_of("law", law, LAWS)]
        self._generator = chosen_generator(generator)
        self._words = self._generator.words(count("size", size))
        self._drawn: dict[int, tuple[int, int]] = {}

    def floats(self) -> tuple[NDArray[np.float64], float | NDArray[np.float64]]:
        """The draws as floats with a bound of their error, infinite where the first word lies at an end."""
        words = self._words
        # the sign bit is not part of the number: both ends of both halves are ends of Laplace noise
        near = (words + np.uint64(_END)) & np.uint64((1 << 63) - 1) < np.uint64(2 * _END)
        if not near.any():
            return self._law.floats(words), _RESOLUTION
        return self._law.floats(np.where(near, np.uint64(1 << 62), words)), np.where(near, np.inf, _RESOLUTION)

    def ends(self, i: int, bits: int) -> Ends:
        """Ends of draw i times 2^bits, from at least `bits` bits of it."""
        number, known = self._drawn.get(i, (int(self._words[i]), 64))
        while known < bits:
            number, known = number << 64 | self._generator.word(), known + 64
        self._drawn[i] = number, known
        return self._law.ends(number, known, bits)


def noisy_top(
    scores: object, k: int = 1, *, noise: str = "gumbel", scale: object = 1, generator: Generator | None = None
) -> NDArray[np.int64]:
    """The indices of the k largest values of scale * score + noise of scale 1, the largest first.

    The order is that of real-valued noise, exactly: "gumbel" makes k draws without replacement with probabilities
    proportional to e^{scale * score} [Durfee and Rogers 2019], "exponential" with k = 1 is permute-and-flip
    [Ding et al. 2021], "laplace" is the classic report-noisy-max.

    >>> noisy_top([0, 1000, 500], 2).tolist()
    [1, 2]
    """
    candidates = Scores(scores)
    factor = factor_of(scale)
    k = count("k", k, least=1)
    if k > len(candidates):
        raise InvalidArgument("k", k, f"there are only {len(candidates)} candidates")
    draws = LazyNoise(noise, len(candidates), generator=generator)
    return ranked(candidates, factor, draws, k)


def ranked(candidates: Scores, factor: Fraction, draws: LazyNoise, k: int, *, slack: float = 0.0) -> NDArray[np.int64]:
    """The k largest of factor * score + draw; candidates closer to each other than `slack` are settled exactly."""
    values, errors = draws.floats()
    exponents = candidates.exponents(factor)
    with np.errstate(invalid="ignore"):
        keys = values - exponents
        errors = exponents * _EXPONENT_ERROR + (errors + slack)
        lower, upper = keys - errors, keys + errors
    if not exponents.max() < math.inf:  # too large for a float, which says nothing about the order among them
        upper[~(upper < math.inf)] = math.inf
        lower[~(lower > -math.inf)] = -math.inf
    if k == 1:
        order = np.array([lower.argmax()])
    else:
        order = np.argpartition(-lower, k - 1)[:k]
        order = order[np.argsort(-lower[order])]
    contenders = np.flatnonzero(upper >= lower[order[-1]])
    if contenders.size == k and (lower[order[:-1]] > upper[order[1:]]).all():
        return order.astype(np.int64)
    return np.array(settle_order([int(i) for i in contenders], candidates, factor, draws, k), dtype=np.int64)


def settle_order(
    contenders: Sequence[int], candidates: Scores, factor: Fraction, draws: LazyNoise, k: int
) -> list[int]:
    """The k largest among the contenders, in order, with as many bits as that takes."""
    bits = 64
    shifts = {i: factor * candidates.gap(i) for i in contenders}
    while True:
        spans = []
        for i in contenders:
            low, high = draws.ends(i, bits)
            x = shifts[i]
            scaled = x.numerator << bits
            least = None if low is None else low + -scaled // x.denominator
            most = None if high is None else high - scaled // x.denominator
            spans.append((least, most, i))
        spans.sort(key=lambda span: (span[0] is not None, span[0] or 0), reverse=True)
        if _separated(spans, k):
            return [i for _, _, i in spans[:k]]
        bits += 64


def _separated(spans: list[tuple[int | None, int | None, int]], k: int) -> bool:
    """Whether each of the first k lies certainly above all that follow."""
    highest: float | int = -math.inf
    for position in range(len(spans) - 1, -1, -1):
        low, high, _ = spans[position]
        if position < k and position + 1 < len(spans) and (low is None or low <= highest):
            return False
        highest = math.inf if high is None else max(highest, high)
    return True
