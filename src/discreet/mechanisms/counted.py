"""Keys with the number of people behind each, read from a mapping or two arrays and given back in a harmless order.

The rows of a table come in some order, and so do the keys of a dictionary made from them. What is given back is
therefore shuffled first, by the same secure generator, and then sorted where the keys can be sorted: its order depends
on the set of kept keys and on nothing else. The same holds for the width of an array of strings; every other dtype is
taken as known to all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.mechanisms.values import LARGEST_SIZE, blank, integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.noise import Generator

__all__ = ["CountedKeys", "neighbouring_counts", "permutation"]

_ADVICE = "pass a mapping {key: count}, or a pair (keys, counts) of equally long sequences"


@dataclass(frozen=True)
class CountedKeys:
    """Distinct keys, and how many people each has."""

    keys: NDArray[Any]
    counts: NDArray[np.int64]
    is_mapping: bool

    @staticmethod
    def check(value: object) -> None:
        """Refuses what is neither a mapping nor a pair of keys and counts, by types, dtypes and lengths alone."""
        if not isinstance(value, Mapping):
            keys, counts = _pair(value)
            _numbers(_keys(keys), blank(counts))

    @classmethod
    def of(cls, value: object) -> CountedKeys:
        """The keys and counts of a mapping or of a pair; refuses repeated keys, negative counts and anything else."""
        if isinstance(value, Mapping):
            keys = _objects(list(value))
            numbers = _numbers(keys, list(value.values()))
        else:
            listed, counts = _pair(value)
            keys = _keys(listed)
            numbers = _numbers(keys, counts)
        if bool((numbers < 0).any()):
            raise InvalidArgument(
                "counts", "a negative count", "pass how many people have each key: whole numbers >= 0"
            )
        if not isinstance(value, Mapping):
            _check_distinct(keys)
        return cls(keys, numbers, isinstance(value, Mapping))

    def chosen(self, kept: NDArray[np.bool_], generator: Generator) -> NDArray[np.intp]:
        """The positions of the kept keys in an order that depends on the set of these keys alone."""
        places = np.flatnonzero(kept)
        if self.keys.dtype != object:
            return places[np.argsort(self.keys[places])]
        places = places[permutation(places.size, generator)]
        listed = self.keys[places].tolist()
        try:
            return places[sorted(range(len(listed)), key=listed.__getitem__)]
        except TypeError:  # keys that have no order stay shuffled
            return places

    def shown(self, places: NDArray[np.intp]) -> NDArray[Any]:
        """The keys at these positions. An array of strings is as wide as the longest of them, not of all that exist."""
        keys = self.keys[places]
        return np.array(keys.tolist(), dtype=keys.dtype.kind) if keys.dtype.kind in "US" else keys


def neighbouring_counts(keys: int, adjacency: str, people: int) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Neighbouring tables in which one person has `keys` keys: alone, and beside `people` others."""
    names = [f"key {place}" for place in range(keys)]
    if adjacency == "add-remove":
        return [({}, dict.fromkeys(names, 1)), (dict.fromkeys(names, people), dict.fromkeys(names, people + 1))]
    others = [f"other {place}" for place in range(keys)]
    before, after = dict.fromkeys(names, people), dict.fromkeys(others, people)
    return [
        (dict.fromkeys(names, 1), dict.fromkeys(others, 1)),
        (
            {**before, **dict.fromkeys(others, people + 1)},
            {**dict.fromkeys(names, people + 1), **after},
        ),
    ]


def permutation(n: int, generator: Generator) -> NDArray[np.intp]:
    """A uniformly random order of n things: that of n random words, drawn again if two are equal."""
    while True:
        words = generator.words(n)
        order = np.argsort(words)
        if n < 2 or bool((np.diff(words[order]) != 0).all()):
            return order


def _objects(keys: list[Any]) -> NDArray[Any]:
    """An array of objects: NumPy would turn tuples into rows, and numbers beside strings into strings."""
    array = np.empty(len(keys), dtype=object)
    array[:] = keys
    return array


def _pair(value: object) -> tuple[object, object]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidArgument("counts", f"a {type(value).__name__}", _ADVICE)
    return value


def _numbers(keys: NDArray[Any], counts: object) -> NDArray[np.int64]:
    """One number for each key."""
    numbers = np.zeros(0, dtype=np.int64) if _is_empty(counts) else integers(counts, argument="counts")
    if not isinstance(numbers, np.ndarray) or numbers.ndim != 1 or numbers.size != keys.size:
        raise InvalidArgument("counts", f"{keys.size} keys and other counts", _ADVICE)
    return numbers


def _keys(keys: object) -> NDArray[Any]:
    if isinstance(keys, np.ndarray):
        array = keys
    elif isinstance(keys, list | tuple):
        array = np.empty(len(keys), dtype=object)
        for place, key in enumerate(keys):
            array[place] = key
    else:
        raise InvalidArgument("keys", f"a {type(keys).__name__}", _ADVICE)
    if array.ndim != 1 or array.dtype.kind not in "biufUSMmO":
        raise InvalidArgument("keys", f"an array of {array.dtype} with {array.ndim} dimensions", _ADVICE)
    if array.size > LARGEST_SIZE:
        raise InvalidArgument("keys", f"{array.size} keys", f"pass at most {LARGEST_SIZE} keys at a time")
    return array


def _is_empty(counts: object) -> bool:
    return isinstance(counts, list | tuple | np.ndarray) and len(counts) == 0


def _check_distinct(keys: NDArray[Any]) -> None:
    if keys.dtype == object:
        try:
            distinct = len(set(keys.tolist()))
        except TypeError:
            raise InvalidArgument("keys", "an unhashable key", "pass keys that can be put into a set") from None
    else:
        if keys.dtype.kind in "fMm" and bool((np.isnan if keys.dtype.kind == "f" else np.isnat)(keys).any()):
            raise InvalidArgument("keys", "a key that is not a number", "leave out the rows without a key")
        ordered = np.sort(keys)
        distinct = keys.size - int((ordered[1:] == ordered[:-1]).sum())
    if distinct != keys.size:
        raise InvalidArgument("keys", "a repeated key", "add up the counts of equal keys first")
