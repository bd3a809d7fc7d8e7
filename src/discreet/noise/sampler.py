"""What every sampler does: single draws as Python integers, many as an int64 array, arguments checked first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from discreet.arguments import count, rational
from discreet.errors import InvalidArgument
from discreet.noise.generator import chosen_generator

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from discreet.noise.generator import Generator
    from discreet.noise.table import Table

__all__ = ["Sampler", "Scale", "Signed", "Size", "Unsigned", "checked_scale", "drawn"]

Scale: TypeAlias = "int | float | Fraction"
Size: TypeAlias = "int | tuple[int, ...]"

BLOCK: Final = 1 << 17  # draws made at a time, so that memory is the result's and little more
_ONE = np.uint64(1)


class Sampler(ABC):
    """Draws from one law with one parameter; holds tables, no state."""

    @abstractmethod
    def one(self, generator: Generator) -> int:
        """One draw. The work hardly depends on what is drawn."""

    @abstractmethod
    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        """n independent draws."""


class Unsigned(Sampler):
    """A table's own draws: one word each."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def one(self, generator: Generator) -> int:
        return self.table.draw(generator.word(), generator)

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        return self.table.draws(generator.words(n), generator)


class Signed(Sampler):
    """A table's draws with the sign that the last bit of their word gives; zero has no sign."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def one(self, generator: Generator) -> int:
        word = generator.word()
        sign = -(word & 1)
        return (self.table.draw(word, generator) ^ sign) - sign

    def many(self, n: int, generator: Generator) -> NDArray[np.int64]:
        words = generator.words(n)
        return signed(self.table.draws(words, generator), words)


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


def drawn(make: Callable[[], Sampler], size: Size | None, generator: Generator | None) -> int | NDArray[np.int64]:
    """One draw for size None, else an array of that shape; the sampler is made once size and generator are checked."""
    chosen = chosen_generator(generator)
    if size is None:
        return make().one(chosen)
    draws = _empty(size)
    sampler, flat = make(), draws.reshape(-1)
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
