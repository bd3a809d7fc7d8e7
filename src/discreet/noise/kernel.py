"""The compiled way to look words up: the same draws from the same words, for large arrays if numba is installed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MANY", "Kernel", "load", "loaded", "look_up"]

MANY: Final = 1 << 20  # draws in one call from which on importing numba pays

_kernel: Kernel | None = None


class Kernel(Protocol):
    """`look_up`, compiled or not."""

    def __call__(
        self,
        words: NDArray[np.uint64],
        guide: NDArray[np.int32],
        thresholds: NDArray[np.uint64],
        drawn: NDArray[np.int64],
        doubtful: NDArray[np.int64],
    ) -> int: ...


def look_up(
    words: NDArray[np.uint64],
    guide: NDArray[np.int32],
    thresholds: NDArray[np.uint64],
    drawn: NDArray[np.int64],
    doubtful: NDArray[np.int64],
) -> int:
    """Write the draw of each word and the places of words that equal a threshold; returns the number of the latter."""
    found = 0
    for i in range(words.size):
        word = words[i]
        k = np.int64(guide[np.int64(word >> np.uint64(48))])
        if k < 0:
            u = word >> np.uint64(1)
            low, high = 0, thresholds.size  # the number of thresholds <= u, by bisection
            while low < high:
                middle = (low + high) // 2
                if thresholds[middle] <= u:
                    low = middle + 1
                else:
                    high = middle
            k = np.int64(low)
            if low > 0 and thresholds[low - 1] == u:
                doubtful[found] = i
                found += 1
        drawn[i] = k
    return found


@cache
def load() -> bool:
    """Compile the kernel if numba is there; the next large lookups use it."""
    global _kernel  # noqa: PLW0603 - one kernel in a process
    try:
        from numba import njit
    except ImportError:
        return False
    try:
        compiled = njit(cache=True, nogil=True)(look_up)
    except RuntimeError:  # no folder in which compiled code could be kept for the next process
        compiled = njit(nogil=True)(look_up)
    _kernel = cast("Kernel", compiled)
    return True


def loaded() -> Kernel | None:
    """The compiled kernel, if it was loaded."""
    return _kernel
