"""The groups of an answer that are public: every combination of the values that its keys can have."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines.arrow import gathered

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.query.plan import Key

__all__ = ["group_columns"]

_KEPT = 1 << 16
"""Keys of up to so many groups are kept for the next question."""


def group_columns(keys: tuple[Key, ...]) -> dict[str, pa.Array]:
    """The columns of the keys of all public groups, in order of the lists; none without keys."""
    values = [value for key in keys for value in key.values or ()]
    if math.prod(len(key.values or ()) for key in keys) > _KEPT or any(isinstance(value, float) for value in values):
        return _columns(keys)
    return dict(_kept_columns(keys, tuple(type(value) for value in values)))


def _columns(keys: tuple[Key, ...]) -> dict[str, pa.Array]:
    shape = [len(key.values or ()) for key in keys]
    places = np.unravel_index(np.arange(math.prod(shape)), shape) if keys else ()
    return {key.column: gathered(key.values or (), place) for key, place in zip(keys, places, strict=True)}


@lru_cache(maxsize=8)
def _kept_columns(keys: tuple[Key, ...], kinds: tuple[type, ...]) -> dict[str, pa.Array]:  # noqa: ARG001
    """The same, for values of these types: 1 and True are equal, and are not one column."""
    return _columns(keys)
