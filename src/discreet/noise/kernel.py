"""The compiled way to draw: the same draws from the same words, for large arrays if numba is installed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MANY", "Kernel", "LayerKernel", "layered", "load", "loaded", "loaded_layers", "look_up"]

MANY: Final = 1 << 20  # draws in one call from which on importing numba pays

_kernel: Kernel | None = None
_layers: LayerKernel | None = None

_UNIT = 2.0**-53


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


class LayerKernel(Protocol):
    """`layered`, compiled or not."""

    def __call__(  # noqa: PLR0917 - compiled functions are called by position
        self,
        words: NDArray[np.uint64],
        places: NDArray[np.uint64],
        chances: NDArray[np.uint64],
        guide: NDArray[np.int32],
        thresholds: NDArray[np.uint64],
        shift: int,
        decay: float,
        drawn: NDArray[np.int64],
        doubtful: NDArray[np.int64],
    ) -> int: ...


def _draw(word: np.uint64, guide: NDArray[np.int32], thresholds: NDArray[np.uint64]) -> np.int64:
    """k, the draw of a word: the number of thresholds up to its first 63 bits; -1 - k if it equals the last of them."""
    k = np.int64(guide[np.int64(word >> np.uint64(48))])
    if k < 0:
        u = word >> np.uint64(1)
        low, high = 0, thresholds.size
        while low < high:
            middle = (low + high) // 2
            if thresholds[middle] <= u:
                low = middle + 1
            else:
                high = middle
        k = np.int64(low)
        if low > 0 and thresholds[low - 1] == u:
            k = np.int64(-1) - k
    return k


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
        k = _draw(words[i], guide, thresholds)
        if k < 0:
            doubtful[found] = i
            found += 1
            k = np.int64(-1) - k
        drawn[i] = k
    return found


def layered(  # noqa: PLR0917
    words: NDArray[np.uint64],
    places: NDArray[np.uint64],
    chances: NDArray[np.uint64],
    guide: NDArray[np.int32],
    thresholds: NDArray[np.uint64],
    shift: int,
    decay: float,
    drawn: NDArray[np.int64],
    doubtful: NDArray[np.int64],
) -> int:
    """Write the rounded Gaussian of each layer word, place and chance that is surely kept; the places of the others.

    `shift` and `decay` are those of `RoundedLayers`, `decay` rounded up. Returns how many are in doubt.
    """
    found = 0
    spare, up = np.uint64(63 - shift), np.int64(shift)
    for i in range(words.size):
        word = words[i]
        k = _draw(word, guide, thresholds)
        if k < 0:
            doubtful[found] = i
            found += 1
            continue
        place = places[i]
        most = (np.float64(np.int64(place >> np.uint64(11))) + 1.0) * _UNIT
        chance = np.float64(np.int64(chances[i] >> np.uint64(11))) * _UNIT
        if chance < most * (2.0 * np.float64(k) + most) * decay:
            doubtful[found] = i
            found += 1
            continue
        value = (k << up) + ((np.int64(place >> spare) + np.int64(1)) >> np.int64(1))
        sign = -np.int64(word & np.uint64(1))
        drawn[i] = (value ^ sign) - sign
    return found


@cache
def load() -> bool:
    """Compile the kernels if numba is there; the next large lookups use them."""
    global _kernel, _layers
    try:
        from numba import njit
        from numba.extending import register_jitable
    except ImportError:
        return False
    register_jitable(_draw)  # compiled into both, and still a function of Python
    try:
        compiled = [njit(cache=True, nogil=True)(function) for function in (look_up, layered)]
    except RuntimeError:  # no folder in which compiled code could be kept for the next process
        compiled = [njit(nogil=True)(function) for function in (look_up, layered)]
    _kernel, _layers = cast("Kernel", compiled[0]), cast("LayerKernel", compiled[1])
    return True


def loaded() -> Kernel | None:
    """The compiled kernel, if it was loaded."""
    return _kernel


def loaded_layers() -> LayerKernel | None:
    """The compiled kernel of large Gaussians, if it was loaded."""
    return _layers
