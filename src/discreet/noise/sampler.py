"""What every sampler does: single draws as Python integers, many as an int64 array, arguments checked first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from discreet.arguments import count, rational
from discreet.errors import InvalidArgument
from discreet.noise import kernel
from discreet.noise.generator import chosen_generator, secure_generator

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.table import Table

__all__ = ["KEPT", "Either", "Sampler", "Scale", "Signed", "Size", "Unsigned", "drawn", "kept"]

Scale: TypeAlias = "int | float | Fraction"
Size: TypeAlias = "int | tuple[int, ...]"

BLOCK: Final = 1 << 17  # draws made at a time, so that memory is the result's and little more
# Single draws do the same work whatever they draw, up to the last step: making a Python integer takes some nanoseconds
# more or less by its size. A loop of random length, a microsecond or two, covers these.
JITTER: Final = 255
KEPT: Final = 16  # samplers kept in a family: the largest table takes three megabytes
SIGNS: Final = np.int64(1), np.int64(-1)
_ONE = np.uint64(1)


class Sampler(ABC):
    """Draws from one law with one parameter; holds tables, no state."""

    @abstractmethod
    def one(self, generator: Generator) -> np.int64:
        """One draw. The work does not depend on the size of what is drawn, which is why it is no Python integer yet."""

    @abstractmethod
    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        """n independent draws."""


class Unsigned(Sampler):
    """A table's own draws: one word each."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def one(self, generator: Generator) -> np.int64:
        return self.table.draw(generator.few(1), generator)

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        return self.table.draws(generator.words(n), generator)


class Signed(Sampler):
    """A table's draws with the sign that the last bit of their word gives; zero has no sign."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def one(self, generator: Generator) -> np.int64:
        word = generator.few(1)
        return self.table.draw(word, generator) * SIGNS[int(word[0]) & 1]

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        words = generator.words(n)
        return signed(self.table.draws(words, generator), words)


class Either(Sampler):
    """Ways to draw from the same law, for one draw, up to `most` and many: made, and kept, by who is passed."""

    def __init__(
        self,
        *,
        one: Callable[[], Sampler],
        few: Callable[[], Sampler],
        many: Callable[[], Sampler],
        most: int,
    ) -> None:
        self._one, self._few, self._many, self._most = one, few, many, most

    def one(self, generator: Generator) -> np.int64:
        return self._one().one(generator)

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        return (self._few if n <= self._most else self._many)().many(n, generator)


def signed(magnitudes: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The magnitudes, negated in place where the last bit of their word is set."""
    signs = np.negative((words & _ONE).view(np.int64))
    magnitudes ^= signs
    magnitudes -= signs
    return magnitudes


def checked_scale(value: object, *, most: int) -> Fraction:
    """The exact scale, if 0 < scale <= most."""
    scale = rational("scale", value)
    if not 0 < scale <= most:
        raise InvalidArgument("scale", value, f"pass a number > 0 and at most {most:.0e}")
    return scale


def kept(make: Callable[[Fraction], Sampler], *, most: int) -> Callable[[object], Sampler]:
    """The samplers of one family by their scale, the latest few of them kept."""
    made = lru_cache(maxsize=KEPT)(make)

    # A single draw must not pay for the hash of a fraction: known scales are found by what was passed.
    @lru_cache(maxsize=KEPT, typed=True)
    def known(scale: object) -> Sampler:
        return made(checked_scale(scale, most=most))

    def sampler(scale: object) -> Sampler:
        try:
            return known(scale)
        except TypeError:  # it has no hash, so it is no number
            return made(checked_scale(scale, most=most))

    return sampler


def drawn(sampler: Sampler, size: Size | None, generator: Generator | None) -> int | NDArray[np.int64]:
    """One draw for size None, else an array of that shape."""
    chosen = chosen_generator(generator)
    if size is None:
        draw = int(sampler.one(chosen))
        for _ in range(secure_generator().word() & JITTER):
            pass
        return draw
    draws = _empty(size)
    flat = draws.reshape(-1)
    if flat.size >= kernel.MANY:
        kernel.load()
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        block[:] = sampler.many(block.size, chosen)
    return draws


def _empty(size: object) -> NDArray[np.int64]:
    shape = tuple(count("size", n) for n in size) if isinstance(size, tuple | list) else (count("size", size),)
    try:
        return np.empty(shape, dtype=np.int64)
    except (MemoryError, ValueError, OverflowError):
        raise InvalidArgument("size", size, "so many draws do not fit into memory; draw them in pieces") from None
