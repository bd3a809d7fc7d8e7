"""Exact choice of one candidate with probability proportional to a whole number times e^{score}.

The same method as in `choice`: floats with a certified error decide, and integers with more random bits where they
cannot. Errors: a weight w e^{-x} is off by a relative EXP_ERROR + 2^-51 and by what the exponent's error 2^-49 x does,
at most 2^-49 (ln n + ln w_max) of the total W >= 1 (sum_k p_k x_k is the entropy of the law plus the mean of
ln(w_k / W)). Ends are added up in blocks of b, so each is the result of at most b + n / b additions.
"""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import InvalidArgument
from discreet.noise.certified import exp_minus
from discreet.noise.choice import EXP_ERROR
from discreet.noise.generator import chosen_generator
from discreet.noise.scores import Scores, factor_of

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.generator import Generator

__all__ = ["weighted_choice"]

_UNSEEN = 2.0**-53
_LARGEST = 1 << 62
_EXPONENT_ERROR = 2.0**-49


def weighted_choice(
    scores: object, weights: NDArray[np.int64], *, scale: object = 1, generator: Generator | None = None
) -> int:
    """The index i with probability exactly weights[i] e^{scale * scores[i]} / sum_j weights[j] e^{scale * scores[j]}.

    Weights are whole numbers from 0 to 2^62, not all of them 0. Scores and scale are rationals; scale > 0.

    >>> weighted_choice([0, 1000, 5000], np.array([3, 1, 0]), scale=10)
    1
    """
    whole = np.asarray(weights)
    given = np.asarray(scores)
    factor = factor_of(scale)
    if whole.dtype != np.int64 or whole.ndim != 1 or whole.shape != given.shape:
        raise InvalidArgument("weights", f"{whole.dtype} of shape {whole.shape}", "pass one int64 per score")
    if not whole.size or int(whole.min()) < 0 or not 0 < int(whole.max()) <= _LARGEST:
        raise InvalidArgument("weights", "weights out of range", "pass whole numbers from 0 to 2^62, not all 0")
    places = np.flatnonzero(whole)
    candidates = Scores(given[places])
    kept = whole[places]
    source = chosen_generator(generator)
    return int(places[_choose(candidates, kept, factor, source)])


def _choose(candidates: Scores, weights: NDArray[np.int64], factor: Fraction, source: Generator) -> int:
    ends, slack = _ends(candidates, weights, factor)
    word = source.word()
    start, total = (word >> 11) * _UNSEEN, float(ends[-1])
    first, last = ends.searchsorted(((start - slack) * total, (start + _UNSEEN + slack) * total), side="right")
    if first == last or first == len(ends) - 1:
        return int(first)
    return settle_weighted(word, candidates, weights, factor, source)


def _ends(candidates: Scores, weights: NDArray[np.int64], factor: Fraction) -> tuple[NDArray[np.float64], float]:
    """Ends of the cumulative weights, and a share of the total within which an end is not to be trusted."""
    with np.errstate(under="ignore"):
        shares = weights * np.exp(-candidates.exponents(factor))
    n = len(shares)
    block = math.isqrt(n) + 1
    padded = np.zeros(-(-n // block) * block)
    padded[:n] = shares
    within = padded.reshape(-1, block).cumsum(axis=1)
    before = np.concatenate([[0.0], within[:-1, -1].cumsum()])
    ends = np.maximum.accumulate((within + before[:, None]).ravel()[:n])
    additions = 2 * block + 2
    error = EXP_ERROR + _EXPONENT_ERROR * (1 + math.log(n) + math.log(float(weights.max()))) + additions * 2.0**-52
    return ends, 4 * error


def settle_weighted(
    word: int, candidates: Scores, weights: NDArray[np.int64], factor: Fraction, generator: Generator
) -> int:
    """The index in whose interval U falls, for a U that starts with the 64 bits of `word`."""
    n, bits = len(candidates), 64
    exponents = [factor * candidates.gap(i) for i in range(n)]
    whole = [int(weight) for weight in weights]
    while True:
        precision = bits + n.bit_length() + 72
        known = {x: exp_minus(x, precision) for x in set(exponents)}
        lower, upper = [0], [0]
        for x, weight in zip(exponents, whole, strict=True):
            low, high = known[x]
            lower.append(lower[-1] + weight * max(0, low))
            upper.append(upper[-1] + weight * high)
        # certainly U W < end: (word + 1) W <= end 2^bits with W at most upper[-1] and the end at least lower[i]
        first = bisect.bisect_left(lower, -(-(word + 1) * upper[-1] >> bits), lo=1)
        i = min(first, n) - 1
        if i == 0 or word * lower[-1] >= upper[i] << bits:
            return i
        word, bits = word << 64 | generator.word(), bits + 64
