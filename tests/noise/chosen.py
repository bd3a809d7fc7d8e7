"""A generator that returns the words it was given, then random ones: it drives a sampler into a chosen corner."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from discreet.noise import Generator, SecureGenerator


class ChosenWords(Generator):
    """The given words in their order; afterwards fresh ones. `taken` counts what was drawn."""

    def __init__(self, words: Iterable[int]) -> None:
        self._left = list(words)
        self._then = SecureGenerator()
        self.taken = 0

    def words(self, n: int) -> NDArray[np.uint64]:
        self.taken += n
        head, self._left = self._left[:n], self._left[n:]
        return np.concatenate([np.array(head, dtype=np.uint64), self._then.words(n - len(head))])
