"""Exact choice of one candidate: the exponential mechanism's law and permute-and-flip, one word per question.

Weights e^{-x} are computed in floating point with a certified error, and a word of random bits that falls closer to a
boundary than that error is handed to integer arithmetic, which draws further bits until the answer is certain. The law
of the answer is therefore the one on paper; floats only decide how soon it is known.

Errors, with X = scale * gap the exact exponent and x its float: x = X (1 + t), |t| <= 2^-50, because gap, scale and
product are each rounded once or twice; the computed exponential is within a relative `EXP_ERROR` of e^{-x} (NumPy keeps
a few units in the last place, 2^-50; we allow 16 times that and test it). Where weights underflow, the error is below
1e-300 and vanishes beside these.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from discreet.noise.certified import exp_minus
from discreet.noise.coins import settle, shape_of
from discreet.noise.generator import chosen_generator
from discreet.noise.integers import uniform_integers
from discreet.noise.scores import Scores, exponents_of_each, factor_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.coins import Bias
    from discreet.noise.generator import Generator
    from discreet.noise.sampler import Size

__all__ = ["FAR", "Listed", "exponential_choice", "listed_choices", "permute_and_flip"]

EXP_ERROR = 2.0**-46
_EXPONENT_ERROR = 2.0**-49
_UNSEEN = 2.0**-53  # a word is read as a float in [0, 1) of 53 bits; the rest of U adds less than this
_SHIFT = np.uint64(11)
_TOGETHER, _TABLE = 1024, 1 << 18  # choices, and candidates, that are put side by side

FAR = 64
"""Candidates of a weight of at most e to the minus this, beside the best one's, are left to integer arithmetic."""


@overload
def exponential_choice(
    scores: object, size: None = None, *, scale: object = 1, generator: Generator | None = None
) -> int: ...
@overload
def exponential_choice(
    scores: object, size: Size, *, scale: object = 1, generator: Generator | None = None
) -> NDArray[np.int64]: ...
def exponential_choice(
    scores: object, size: Size | None = None, *, scale: object = 1, generator: Generator | None = None
) -> int | NDArray[np.int64]:
    """The index i with probability exactly e^{scale * scores[i]} / sum_j e^{scale * scores[j]}.

    Scores and scale are rationals: ints, Fractions, or floats at their exact value; scale > 0. A uniform U is compared
    with the cumulative weights; it takes one word unless the word is ambiguous, which happens with probability about
    n (2^-42 + n 2^-50) among n candidates. [McSherry and Talwar 2007]

    >>> exponential_choice([0, 1000, 5], scale=10)
    1
    """
    candidates = Scores(scores)
    factor = factor_of(scale)
    shape = shape_of(size)
    source = chosen_generator(generator)
    near, ends, slack = cumulative(candidates, factor)
    if shape is None:
        word = source.word()
        place = _place_of(word, ends, slack)
        return settle_choice(word, candidates, factor, source) if place is None else int(near[place])
    words = source.words(math.prod(shape))
    starts = (words >> _SHIFT) * _UNSEEN
    first = ends.searchsorted((starts - slack) * ends[-1], side="right")
    last = ends.searchsorted((starts + _UNSEEN + slack) * ends[-1], side="right")
    chosen: NDArray[np.int64] = near[np.minimum(first, len(ends) - 1)]
    for i in np.flatnonzero((first != last) & (first != len(ends) - 1)):
        chosen[i] = settle_choice(int(words[i]), candidates, factor, source)
    return chosen.reshape(shape)


@dataclass(frozen=True)
class Listed:
    """Some candidates of each of several choices, those that matter, for whoever knows which ones do.

    One choice after the other; `starts` says where each begins, and at last where all end. `places` are the indices of
    candidates in ascending order, the first and the last of all among them, and `scores` theirs; the caller vouches
    that every other one is at least FAR / scale below the best. `everything` gives the scores of all candidates of one
    choice, and is called where a word may mean one that is not listed.
    """

    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    scores: NDArray[np.int64]
    everything: Callable[[int], NDArray[np.int64]]


def listed_choices(listed: Listed, *, scale: object = 1, generator: Generator | None = None) -> NDArray[np.int64]:
    """For each of them what `exponential_choice` chooses among all its candidates, by one word each.

    They are put side by side, in rows of equal length that end with weights of 0: what holds for the ends of one list
    of weights (see `cumulative`) holds for every row.
    """
    factor, source = factor_of(scale), chosen_generator(generator)
    widths = np.diff(listed.starts)
    chosen = np.zeros(widths.size, dtype=np.int64)
    done = 0
    while done < widths.size:
        wide = np.maximum.accumulate(widths[done : done + _TOGETHER])
        end = done + max(1, int(np.searchsorted(wide * np.arange(1, wide.size + 1), _TABLE, side="right")))
        chosen[done:end] = _side_by_side(listed, done, end, factor, source)
        done = end
    return chosen


def _side_by_side(listed: Listed, begin: int, end: int, factor: Fraction, source: Generator) -> NDArray[np.int64]:
    """What is chosen in those from `begin` up to `end`, which is not one of them."""
    starts = listed.starts[begin : end + 1]
    sizes, some = np.diff(starts), slice(int(starts[0]), int(starts[-1]))
    exponents, width = exponents_of_each(listed.scores[some], starts - starts[0], factor), int(sizes.max())
    if exponents.size < sizes.size * width:  # of unequal lengths
        padded = np.full((sizes.size, width), math.inf)
        padded[np.arange(width) < sizes[:, None]] = exponents
        exponents = padded
    exponents = exponents.reshape(sizes.size, width)
    ends = _weights(exponents).cumsum(axis=1)
    words = source.words(sizes.size)
    slack = _slack(listed.places[starts[1:] - 1] + 1)
    lower, total = (words >> _SHIFT) * _UNSEEN, ends[:, -1]
    first = (ends <= ((lower - slack) * total)[:, None]).sum(axis=1)
    last = (ends <= ((lower + _UNSEEN + slack) * total)[:, None]).sum(axis=1)
    chosen: NDArray[np.int64] = listed.places[starts[:-1] + first]
    for i in np.flatnonzero((first != last) & (first != sizes - 1)).tolist():
        chosen[i] = settle_choice(int(words[i]), Scores(listed.everything(begin + i)), factor, source)
    return chosen


def _place_of(word: int, ends: NDArray[np.float64], slack: float) -> int | None:
    """Whose weight a word falls on, by the ends of the weights; None if that is not certain."""
    start = (word >> 11) * _UNSEEN
    total = float(ends[-1])
    first, last = ends.searchsorted(((start - slack) * total, (start + _UNSEEN + slack) * total), side="right")
    return int(first) if first == last or first == len(ends) - 1 else None


def cumulative(candidates: Scores, factor: Fraction) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Candidates, the ends of their cumulative weights, and a share of the total within which no end is to be trusted.

    With W the total weight >= 1, an end is off by at most W (EXP_ERROR + 2^-49 ln n + n 2^-53): the exponents' errors
    add up to 2^-49 sum_i w_i x_i <= 2^-49 W ln n (the entropy of n outcomes), and n additions round n times. Four times
    that covers the two ends and the total in one comparison, the last 53-bit rounding included.

    Candidates of weight up to e^-FAR are left out, but for the first and the last one: together they move an end by
    less than n 2^-92 W. They are chosen where a word is settled exactly, which it is wherever one of them could be
    meant: each lies at an end of those that are listed.
    """
    exponents = candidates.exponents(factor)
    close = exponents < FAR
    close[0] = close[-1] = True
    near = np.flatnonzero(close)
    return near, _weights(exponents[near]).cumsum(), float(_slack(len(exponents)))


def _slack(n: Any) -> Any:
    """What `cumulative` says of n candidates, of which all that matter are listed; also for an array of numbers."""
    return 4 * (EXP_ERROR + _EXPONENT_ERROR * (1 + np.log(n)) + n * 2.0**-52)


def float_weights(candidates: Scores, factor: Fraction) -> NDArray[np.float64]:
    """Weights e^{-factor * gap} as floats."""
    return _weights(candidates.exponents(factor))


def _weights(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(under="ignore"):
        return np.exp(-exponents)


def settle_choice(word: int, candidates: Scores, factor: Fraction, generator: Generator) -> int:
    """The index in whose interval U falls, for a U that starts with the bits of `word`.

    Equal scores that follow each other have one weight, which is multiplied: among a million equal ones it takes no
    more time than among two different ones.
    """
    n, bits = len(candidates), 64
    starts = candidates.runs()
    exponents = [factor * candidates.gap(i) for i in starts]
    counts = [end - start for start, end in pairwise([*starts, n])]
    while True:
        precision = bits + n.bit_length() + 8
        known = {x: exp_minus(x, precision) for x in set(exponents)}
        lower = [0]
        upper = [0]
        for x, count in zip(exponents, counts, strict=True):
            low, high = known[x]
            lower.append(lower[-1] + count * low)
            upper.append(upper[-1] + count * high)
        # the first end e with certainly U W < e: (word + 1) W <= e 2^bits with W at most upper[-1] and e at least least
        least = -(-(word + 1) * upper[-1] >> bits)
        run = min(bisect.bisect_left(lower, least, lo=1), len(starts)) - 1
        low, high = known[exponents[run]]
        before = counts[run] - 1 if lower[run + 1] < least else -((lower[run] - least) // low) - 1
        i = starts[run] + before
        if word * lower[-1] >= upper[run] + before * high << bits or i == 0:
            return i
        word, bits = word << 64 | generator.word(), bits + 64


def permute_and_flip(scores: object, *, scale: object = 1, generator: Generator | None = None) -> int:
    """The index that permute-and-flip chooses: in random order, the first whose coin of bias e^{-scale * gap} falls.

    All coins are flipped at once and one of those that fell is taken uniformly, which is the same law: the first of
    them in a uniformly random order. The best candidate's coin always falls. The law is that of the largest
    scale * score plus standard exponential noise. [McKenna and Sheldon 2020; Ding et al. 2021]

    >>> permute_and_flip([0, 1000, 5], scale=10)
    1
    """
    candidates = Scores(scores)
    factor = factor_of(scale)
    source = chosen_generator(generator)
    return flipped(source.words(len(candidates)), candidates, factor, source)


def flipped(
    words: NDArray[np.uint64], candidates: Scores, factor: Fraction, generator: Generator, *, slack: float = 0.0
) -> int:
    """One of the candidates whose word lies below its weight, uniformly. Words within `slack` are settled exactly."""
    weights = float_weights(candidates, factor)
    starts = (words >> _SHIFT) * _UNSEEN
    # weights are at most 1, and the exponent's error moves one by at most 2^-49 w x <= 2^-49 / e
    error = 2 * EXP_ERROR + _EXPONENT_ERROR + slack
    fell = starts < weights - (error + _UNSEEN)
    unclear = (starts < weights + error) ^ fell
    if unclear.any():
        for i in np.flatnonzero(unclear):
            fell[i] = settle(int(words[i]), _exponential_bias(factor * candidates.gap(int(i))), generator)
    heads = np.flatnonzero(fell)
    return int(heads[uniform_integers(heads.size, generator=generator)]) if heads.size > 1 else int(heads[0])


def _exponential_bias(exponent: Fraction) -> Bias:
    return lambda bits: exp_minus(exponent, bits)
