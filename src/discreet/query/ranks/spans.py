"""Which of the candidates of many choices are listed: a run of numbers for each, with the first and the last of all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.noise.choice import FAR

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

__all__ = ["Spans", "far", "whole_numbers"]

_FEW = 400  # candidates of a choice, on average


@dataclass(frozen=True)
class Spans:
    """Numbers of candidates, one choice after the other; `starts` says where each begins, and where all end."""

    starts: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, low: NDArray[np.int64], high: NDArray[np.int64], sizes: NDArray[np.int64]) -> Spans:
        """Those from `low` up to `high`, which is not one of them, and the first and the last of all; at least one."""
        low = np.clip(low, 0, sizes - 1)
        high = np.maximum(np.minimum(high, sizes), low + 1)
        first, end = low - (low > 0), high + (high < sizes)
        starts = np.concatenate([[0], np.cumsum(end - first)])
        numbers = np.arange(starts[-1]) - np.repeat(starts[:-1] - first, end - first)
        numbers[starts[:-1]] = 0  # where that is not the first of the run, it is the one before it
        numbers[starts[1:] - 1] = sizes - 1
        return cls(starts, numbers)

    def scored(self, score: Callable[[Any, NDArray[np.int64]], NDArray[np.int64]]) -> NDArray[np.int64]:
        """What `score` says of them, which is asked about numbers of candidates of one choice, or of one each.

        Where there are few of each choice it is about all of them; else about one choice after the other, which fits
        into the processor's cache.
        """
        widths = np.diff(self.starts)
        if self.numbers.size <= _FEW * widths.size:
            return score(np.repeat(np.arange(widths.size), widths), self.numbers)
        return np.concatenate([score(i, self.numbers[a:b]) for i, (a, b) in enumerate(pairwise(self.starts.tolist()))])


def far(factor: Fraction) -> int:
    """By how much a score is to be below the best for its candidate not to be listed."""
    return -(-FAR * factor.denominator // factor.numerator)


def whole_numbers(value: int, size: int) -> NDArray[Any]:
    """The same Python integer so many times: it has no largest one."""
    return np.full(size, value, dtype=object)
