"""Where all randomness comes from: words of a cipher that the operating system keys."""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from discreet.arguments import count
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Generator", "SecureGenerator", "chosen_generator", "secure_generator"]

# One key makes at most this many bytes. Far below the 2^68 bytes at which counter mode of a 128-bit block could be told
# from noise; small, so that a key that leaks from memory gives away little that was drawn before.
BYTES_PER_KEY = 1 << 20
BUFFER_WORDS = 512
FEW_WORDS = 64  # up to so many come from the buffer: setting a key costs more than they do
MOST_BITS = 1 << 30

_ZEROS = bytes(BYTES_PER_KEY)


class Generator(ABC):
    """Independent uniform bits: what every sampler draws from.

    Production code uses `secure_generator()`, which is what a sampler takes when none is given. Others exist for tests.
    """

    @abstractmethod
    def words(self, n: int) -> NDArray[np.uint64]:
        """n independent uniform 64-bit words."""

    def word(self) -> int:
        """One uniform 64-bit word as a Python integer."""
        return int(self.words(1)[0])

    def few(self, n: int) -> NDArray[np.uint64]:
        """n <= 64 words, the cheap way."""
        return self.words(n)

    def integer(self, bits: int) -> int:
        """A uniform integer in [0, 2^bits)."""
        bits = count("bits", bits)
        if bits <= 64:
            return self.word() >> (64 - bits) if bits else 0
        if bits > MOST_BITS:
            raise InvalidArgument("bits", bits, f"ask for at most {MOST_BITS} bits at a time")
        n = -(-bits // 64)
        return int.from_bytes(self.words(n).astype("<u8").tobytes(), "little") >> (64 * n - bits)


class SecureGenerator(Generator):
    """AES-256 in counter mode, keyed by the operating system.

    - A key is 32 bytes of `os.urandom`. It makes at most `BYTES_PER_KEY` bytes and is then forgotten: what was drawn
      earlier cannot be computed from what memory holds later. Words that were handed out one by one are overwritten.
    - Threads may share it: every word is given to exactly one caller.
    - After a fork the child drops what was buffered and draws from keys of its own.
    - It cannot be pickled or copied: two copies would draw the same noise, and the difference of two answers with the
      same noise is the difference of the data.
    """

    def __init__(self) -> None:
        self._start()
        _LIVING.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._buffer = np.zeros(BUFFER_WORDS, dtype=np.uint64)
        self._view = self._buffer.data
        self._next = BUFFER_WORDS
        self._process = os.getpid()

    def words(self, n: int) -> NDArray[np.uint64]:
        """n independent uniform 64-bit words; many of them come from keys used for this call only."""
        n = count("n", n)
        if n <= FEW_WORDS:
            return self.few(n)
        try:
            drawn = np.empty(n, dtype=np.uint64)
        except (MemoryError, ValueError):
            raise InvalidArgument("n", n, "so many words do not fit into memory; draw them in pieces") from None
        fill(drawn.data.cast("B"))
        return drawn

    def few(self, n: int) -> NDArray[np.uint64]:
        """n <= 64 words from the buffer, which forgets them."""
        if self._process != os.getpid():
            self._start()
        with self._lock:
            start = self._taken(n)
            part = self._buffer[start : start + n]
            words = part.copy()
            part.fill(0)
        return words

    def word(self) -> int:
        """One uniform 64-bit word as a Python integer: the cheap way for single draws."""
        if self._process != os.getpid():  # a fork that did not go through Python's hooks
            self._start()
        with self._lock:
            start = self._taken(1)
            word: int = self._view[start]
            self._view[start] = 0
        return word

    def _taken(self, n: int) -> int:
        """Where the next n words of the buffer begin; the lock is held."""
        start = self._next
        if start + n > BUFFER_WORDS:
            fill(self._view.cast("B"))
            start = 0
        self._next = start + n
        return start

    def __reduce__(self) -> str:
        advice = "a secure generator is never copied; use discreet.noise.secure_generator()"
        raise InvalidArgument("generator", self, advice)


def fill(target: memoryview) -> None:
    """Overwrite the bytes with the stream of fresh keys."""
    for start in range(0, len(target), BYTES_PER_KEY):
        piece = target[start : start + BYTES_PER_KEY]
        stream = Cipher(AES(_fresh_key()), CTR(bytes(16))).encryptor()  # a fresh key needs no nonce
        # memoryview: the zeros are not copied
        stream.update_into(memoryview(_ZEROS)[: len(piece)], piece)


def _fresh_key() -> bytes:
    return os.urandom(32)


_LIVING: weakref.WeakSet[SecureGenerator] = weakref.WeakSet()


def _after_fork() -> None:
    # The child is the only thread there is: a lock held elsewhere at the time of the fork would never be released.
    for generator in list(_LIVING):
        generator._start()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


@cache
def secure_generator() -> SecureGenerator:
    """The generator of this process: all noise that protects data comes from it."""
    return SecureGenerator()


def chosen_generator(generator: object) -> Generator:
    """The generator that a sampler was given, or the secure one; refuses anything predictable."""
    if generator is None:
        return secure_generator()
    if not isinstance(generator, Generator):
        raise InvalidArgument(
            "generator",
            generator,
            f"leave it out: noise comes from a cryptographic generator, and a {type(generator).__module__}."
            f"{type(generator).__qualname__} is predictable. Tests pass discreet.noise.testing.SeededGenerator(seed)",
        )
    return generator
