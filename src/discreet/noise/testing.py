"""Noise that repeats, for tests only: refused wherever pytest is not running."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from discreet.arguments import count
from discreet.errors import InvalidArgument
from discreet.noise.generator import Generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SeededGenerator"]


class SeededGenerator(Generator):
    """The same words for the same seed, whatever the sizes in which they are drawn. Exists only inside a test run.

    Two answers with the same noise differ by the data alone, so a seed in production is no protection at all.
    """

    def __init__(self, seed: int) -> None:
        if "pytest" not in sys.modules or "PYTEST_VERSION" not in os.environ:
            raise InvalidArgument(
                "seed",
                seed,
                "production noise is never seeded, and pytest is not running. Leave `generator` out to draw from the "
                "operating system's randomness",
            )
        key = hashlib.sha256(b"discreet.noise.testing:%d" % count("seed", seed)).digest()
        self._stream = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next n words of the seed's stream."""
        return np.frombuffer(bytearray(self._stream.update(bytes(8 * count("n", n)))), dtype="<u8").astype(np.uint64)
